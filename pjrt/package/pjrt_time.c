// Reports of virtual times: their creation and their output.
//
// A client's report ends with the client, or with the process: clients that are never destroyed
// write theirs in an exit handler.
#include "pjrt/package/pjrt_time.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "pjrt/compile/pjrt_dump.h"
#include "pjrt/package/pjrt_clients.h"
#include "sim/base/alloc.h"
#include "sim/base/log.h"
#include "sim/base/os/clock.h"
#include "sim/base/os/host_clock.h"
#include "sim/base/os/lock.h"
#include "sim/base/os/process.h"
#include "sim/runtime/workers/caller.h"

typedef struct timed_s timed_t;
struct timed_s {
  timed_t *next;
  PJRT_Client *client;
  mp_report_t *report;
  uint32_t generation;  // of processes
};

static mp_lock_t g_lock = MP_LOCK_INITIALIZER(MP_LOCK_REPORTS);
static timed_t *g_clients;       // under the lock: those that have a report
static bool g_has_exit_handler;  // under the lock
// The generation of the process that keeps them, written under the lock. Atomic, because a forked
// child must read it without the lock, which a thread of its parent may have held.
static atomic_uint g_generation;

// Whether this is a forked child of the process that keeps the reports: it has no reports, and
// takes no lock.
static bool pjrt_time_is_forked(void) {
  return atomic_load(&g_generation) != mp_process_generation();
}

// ---- Ends ----

static void pjrt_time_write(const timed_t *timed) {
  const char *dump = timed->client->dump;
  if (dump == NULL || dump[0] == '\0') return;
  mp_strbuf_t table, json;
  mp_strbuf_init(&table);
  mp_strbuf_init(&json);
  mp_status_t status = mp_report_print(timed->report, &table);
  if (status == NULL) status = mp_report_print_json(timed->report, &json);
  if (status == NULL) {
    mp_pjrt_dump_time(dump, &table, &json);
  } else {
    mp_log(MP_LOG_WARNING, "the table of virtual times: %s", mp_status_message(status));
  }
  mp_status_release(status);
  mp_strbuf_deinit(&json);
  mp_strbuf_deinit(&table);
}

// A forked child writes nothing, and threads of its parent may hold locks for ever.
static void pjrt_time_close(timed_t *timed) {
  if (timed->generation == mp_process_generation()) {
    pjrt_time_write(timed);
    mp_report_release(timed->report);
  }
  mp_free(timed);
}

void mp_pjrt_time_end(PJRT_Client *client) {
  if (client->client == NULL || mp_client_model(client->client) == NULL) return;
  if (pjrt_time_is_forked()) return;
  mp_lock(&g_lock);
  timed_t *found = NULL;
  for (timed_t **at = &g_clients; *at != NULL && found == NULL; at = &(*at)->next) {
    if ((*at)->client != client) continue;
    found = *at;
    *at = found->next;
    break;
  }
  if (found != NULL) pjrt_time_close(found);
  mp_unlock(&g_lock);
}

static void pjrt_time_on_exit(int status, void *context) {
  (void)status;
  (void)context;
  if (mp_process_generation() != 0) return;
  mp_lock(&g_lock);
  while (g_clients != NULL) {
    timed_t *timed = g_clients;
    g_clients = timed->next;
    pjrt_time_close(timed);
  }
  mp_unlock(&g_lock);
}

// ---- Beginning ----

mp_status_t mp_pjrt_time_begin(PJRT_Client *client, const mp_options_t *options) {
  mp_model_t *model = mp_client_model(client->client);
  if (model == NULL) return NULL;
  timed_t *timed = mp_calloc(1, sizeof(*timed));
  MP_RETURN_IF_NULL(timed);
  mp_status_t status = mp_report_create(model, options, &timed->report);
  if (status != NULL) {
    mp_free(timed);
    return status;
  }
  timed->client = client;
  timed->generation = mp_process_generation();
  mp_lock(&g_lock);
  atomic_store(&g_generation, timed->generation);
  timed->next = g_clients;
  g_clients = timed;
  if (!g_has_exit_handler) g_has_exit_handler = on_exit(pjrt_time_on_exit, NULL) == 0;
  mp_unlock(&g_lock);
  return NULL;
}

// ---- Reading ----

void mp_pjrt_time_visit(void (*visit)(mp_report_t *report, void *context), void *context) {
  if (pjrt_time_is_forked()) return;
  mp_lock(&g_lock);
  for (const timed_t *timed = g_clients; timed != NULL; timed = timed->next) {
    if (timed->generation == mp_process_generation()) visit(timed->report, context);
  }
  mp_unlock(&g_lock);
}

typedef struct {
  mp_strbuf_t text;
  mp_status_t status;
  bool is_json;
  uint32_t count;
  double newest;  // seconds
} read_t;

static void pjrt_time_print(mp_report_t *report, void *context) {
  read_t *read = context;
  if (read->status != NULL) return;
  if (read->count++ != 0) mp_strbuf_putc(&read->text, read->is_json ? ',' : '\n');
  read->status = read->is_json ? mp_report_print_json(report, &read->text)
                               : mp_report_print(report, &read->text);
}

static const char *pjrt_time_report(bool is_json, char **out_text) {
  read_t read = {.is_json = is_json};
  mp_strbuf_init(&read.text);
  if (is_json) mp_strbuf_putc(&read.text, '[');
  mp_pjrt_time_visit(pjrt_time_print, &read);
  if (is_json) mp_strbuf_putc(&read.text, ']');
  if (read.status == NULL && read.count == 0) {
    read.status = mp_status_make(MP_FAILED_PRECONDITION,
                                 "no virtual times are kept: set MINIPOD_TIME=model (or the client "
                                 "option time) before devices are used for the first time");
  }
  if (read.status == NULL) {
    size_t size;
    *out_text = mp_strbuf_take(&read.text, &size);
    if (*out_text == NULL) read.status = mp_status_out_of_memory();
  }
  mp_strbuf_deinit(&read.text);
  return mp_pjrt_text(read.status);
}

const char *minipod_time_report(char **out_text) {
  return pjrt_time_report(false, out_text);
}

const char *minipod_time_report_json(char **out_text) {
  return pjrt_time_report(true, out_text);
}

void minipod_time_free(char *text) {
  mp_free(text);
}

// Of the newest client, which comes first: arrays may keep an older client alive.
static void pjrt_time_look(mp_report_t *report, void *context) {
  read_t *read = context;
  if (read->count++ == 0) read->newest = mp_moment_seconds(mp_report_now(report));
}

double minipod_virtual_time(void) {
  read_t read = {.newest = -1};
  mp_pjrt_time_visit(pjrt_time_look, &read);
  return read.newest;
}

// Without the lock: clients may come and go meanwhile.
static bool pjrt_time_await(double seconds) {
  uint32_t count = 0;
  mp_client_t **clients = NULL;
  mp_status_t status = mp_pjrt_clients_list(&count, &clients);
  bool is_known = status == NULL;
  const double until = mp_clock_seconds() + seconds;
  for (uint32_t i = 0; i < count; ++i) {
    mp_model_t *model = mp_client_model(clients[i]);
    is_known = is_known && (model == NULL || mp_model_await(model, until - mp_clock_seconds()));
  }
  mp_pjrt_clients_free(count, clients);
  mp_status_release(status);
  return is_known;
}

int minipod_await_launches(double seconds) {
  if (mp_caller_current() != NULL) return -1;
  return pjrt_time_await(seconds) ? 1 : 0;
}

void minipod_expect_waits(void) {
  mp_pjrt_expect_waits();
}

void minipod_host_waits(void) {
  uint32_t count = 0;
  mp_client_t **clients = NULL;
  mp_status_release(mp_pjrt_clients_list(&count, &clients));
  for (uint32_t i = 0; i < count; ++i) {
    mp_model_t *model = mp_client_model(clients[i]);
    if (model != NULL) mp_model_wait(model);
  }
  mp_pjrt_clients_free(count, clients);
}

int64_t minipod_host_clock(void) {
  return mp_host_clock_show();
}

bool minipod_has_host_clock(void) {
  return mp_host_clock_is_used();
}

// Under the interpreter's lock.
static struct {
  mp_python_method_t real;
  double (*asked)(void *seconds);
  void *moment;
} g_sleep;

void minipod_follow_sleep(mp_python_method_t real, double (*asked)(void *seconds), void *moment) {
  g_sleep.real = real;
  g_sleep.asked = asked;
  g_sleep.moment = moment;
}

void *minipod_sleep(void *self, void *seconds) {
  const double asked = g_sleep.asked(seconds);
  if (asked < 0 || !mp_host_clock_is_used()) return g_sleep.real(self, seconds);
  const double end = mp_host_clock_seconds() + asked;
  // An interrupt ends it early, as it ends the real one.
  void *none = g_sleep.real(self, g_sleep.moment);
  if (none != NULL) mp_host_clock_advance(end);
  return none;
}
