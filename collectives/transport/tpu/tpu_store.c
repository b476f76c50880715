#include "collectives/transport/tpu/tpu_store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "collectives/transport/tpu/tpu_message.h"
#include "collectives/transport/tpu/tpu_server.h"
#include "sim/base/alloc.h"
#include "sim/base/log.h"
#include "sim/base/os/clock.h"
#include "sim/base/os/system.h"

// How long one attempt to connect may take, and the answer to a greeting.
static const double k_attempt_seconds = 2;
// How long a refusal is tried again: the program that listens may be of an earlier job, and about
// to end.
static const double k_refusal_seconds = 3;
// How much longer a process waits than the server.
static const double k_grace_seconds = 20;
// How long process 0 waits until the others have read its error.
static const double k_last_words_seconds = 2;
// After this time a process that waits for process 0 prints that.
static const double k_notice_seconds = 15;

struct mp_tpu_store_s {
  const mp_tpu_job_t *job;
  int file;                 // -1: not connected
  mp_tpu_server_t *server;  // in process 0
  mp_key_value_store_t functions;
};

// ---- Connecting ----

// "process 0 (localhost:8070, the first address in TPU_PROCESS_ADDRESSES)"
static void tpu_store_name_first(const mp_tpu_store_t *store, char text[400]) {
  const mp_str_t address = mp_tpu_job_address(store->job, 0);
  snprintf(text, 400, "process 0 (%.*s, the first address in %s)", MP_STR_SHOWN(address, 255),
           store->job->list_variable);
}

// Whether a connection ends where it began: without a listener, the system may connect a port of
// this host with itself.
static bool tpu_store_is_own(int file) {
  struct sockaddr_storage here, there;
  socklen_t here_size = sizeof(here), there_size = sizeof(there);
  return getsockname(file, (struct sockaddr *)&here, &here_size) == 0 &&
         getpeername(file, (struct sockaddr *)&there, &there_size) == 0 &&
         here_size == there_size && memcmp(&here, &there, here_size) == 0;
}

// Waits until the connection is made; 0, or the number of an error.
static int tpu_store_await_connection(int file) {
  struct pollfd ready = {.fd = file, .events = POLLOUT};
  int error = 0;
  socklen_t size = sizeof(error);
  if (poll(&ready, 1, (int)(k_attempt_seconds * 1e3)) != 1) return ETIMEDOUT;
  return getsockopt(file, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

// Connects within the time of an attempt; -1 and errno.
static int tpu_store_connect_to(const struct addrinfo *at) {
  const int file = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (file < 0) return -1;
  int error = connect(file, at->ai_addr, at->ai_addrlen) == 0 ? 0 : errno;
  if (error == EINPROGRESS) error = tpu_store_await_connection(file);
  if (error == 0 && tpu_store_is_own(file)) error = ECONNREFUSED;
  const int flags = error == 0 ? fcntl(file, F_GETFL) : 0;
  if (error == 0 && (flags < 0 || fcntl(file, F_SETFL, flags & ~O_NONBLOCK) < 0)) error = errno;
  if (error != 0) {
    close(file);
    errno = error;
    return -1;
  }
  const int on = 1;
  (void)setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return file;
}

// Connects to process 0 once. UNAVAILABLE when it does not listen.
static mp_status_t tpu_store_connect(mp_tpu_store_t *store) {
  char host[MP_TPU_HOST_BYTES], port[MP_TPU_PORT_BYTES];
  mp_tpu_job_first(store->job, host, port);
  const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
  struct addrinfo *found = NULL;
  const int code = getaddrinfo(host, port, &hints, &found);
  if (code != 0) return mp_status_make(MP_UNAVAILABLE, "%s", gai_strerror(code));
  for (const struct addrinfo *at = found; at != NULL && store->file < 0; at = at->ai_next) {
    store->file = tpu_store_connect_to(at);
  }
  const int error = errno;
  freeaddrinfo(found);
  if (store->file >= 0) return NULL;
  return mp_status_make(MP_UNAVAILABLE, "%s", mp_system_text(error));
}

// Receives an answer; appends its value. The error in the answer is the result.
static mp_status_t tpu_store_take_answer(const mp_tpu_store_t *store, double seconds,
                                         mp_strbuf_t *value) {
  mp_tpu_answer_t answer;
  MP_RETURN_IF_ERROR(mp_tpu_receive(store->file, &answer, sizeof(answer), seconds));
  if (answer.size > MP_TPU_MOST_VALUE) {
    return mp_status_make(MP_UNAVAILABLE, "another program answers there");
  }
  char *bytes = mp_malloc(answer.size + 1);
  MP_RETURN_IF_NULL(bytes);
  mp_status_t status = mp_tpu_receive(store->file, bytes, answer.size, seconds);
  bytes[status == NULL ? answer.size : 0] = '\0';
  const mp_status_code_t code = mp_status_code_of_number(answer.code);
  if (status == NULL && code != MP_OK) status = mp_status_make(code, "%s", bytes);
  if (status == NULL && value != NULL) {
    mp_strbuf_append(value, bytes, answer.size);
    status = mp_strbuf_status(value);
  }
  mp_free(bytes);
  return status;
}

static mp_status_t tpu_store_greet(const mp_tpu_store_t *store) {
  mp_tpu_greeting_t greeting;
  memset(&greeting, 0, sizeof(greeting));
  memcpy(greeting.magic, MP_TPU_MAGIC, sizeof(MP_TPU_MAGIC));
  greeting.rank = store->job->rank;
  greeting.size = store->job->size;
  greeting.job = mp_tpu_job_hash(store->job);
  MP_RETURN_IF_ERROR(mp_tpu_send(store->file, &greeting, sizeof(greeting)));
  return tpu_store_take_answer(store, k_attempt_seconds, NULL);
}

// One attempt: a connection that process 0 has accepted.
static mp_status_t tpu_store_try(mp_tpu_store_t *store) {
  MP_RETURN_IF_ERROR(tpu_store_connect(store));
  mp_status_t status = tpu_store_greet(store);
  if (status == NULL) return NULL;
  close(store->file);
  store->file = -1;
  return status;
}

static bool tpu_store_is_refusal(mp_status_t status) {
  return mp_status_code(status) == MP_FAILED_PRECONDITION ||
         mp_status_code(status) == MP_ALREADY_EXISTS;
}

static mp_status_t tpu_store_reach(mp_tpu_store_t *store, double timeout_s) {
  const double begin = mp_clock_seconds();
  double refused_since = 0;
  bool has_told = false;
  char first[400];
  tpu_store_name_first(store, first);
  for (;;) {
    mp_status_t status = tpu_store_try(store);
    if (status == NULL) return NULL;
    const double now = mp_clock_seconds();
    if (!tpu_store_is_refusal(status)) refused_since = 0;
    if (tpu_store_is_refusal(status) && refused_since == 0) refused_since = now;
    if (refused_since != 0 && now - refused_since >= k_refusal_seconds) {
      return mp_status_annotate(status, "%s refuses this one, process %" PRIu32 " (%s)", first,
                                store->job->rank, store->job->rank_variable);
    }
    if (now - begin >= timeout_s) {
      mp_status_t late = mp_status_make(
          MP_DEADLINE_EXCEEDED, "%s does not answer process %" PRIu32 " within %g s: %s", first,
          store->job->rank, timeout_s, mp_status_message(status));
      mp_status_release(status);
      return late;
    }
    if (!has_told && now - begin >= k_notice_seconds) {
      mp_log_notice("process %" PRIu32 " waits for %s: %s", store->job->rank, first,
                    mp_status_message(status));
      has_told = true;
    }
    mp_status_ignore(status);
    nanosleep(&(struct timespec){.tv_nsec = now - begin < 1 ? 10000000 : 100000000}, NULL);
  }
}

// ---- Requests ----

// If process 0 has ended, that is the error.
static mp_status_t tpu_store_explain(const mp_tpu_store_t *store, mp_status_t status) {
  char first[400];
  tpu_store_name_first(store, first);
  if (mp_status_code(status) != MP_UNAVAILABLE) return status;
  mp_status_ignore(status);
  return mp_status_make(MP_UNAVAILABLE,
                        "%s has ended before all processes had joined; see its own output", first);
}

static mp_status_t tpu_store_ask(const mp_tpu_store_t *store, mp_tpu_request_kind_t kind,
                                 const char *key, mp_str_t put, double wait_s, mp_strbuf_t *value) {
  const double most_s = 3600;
  const mp_tpu_request_t request = {
      .kind = kind,
      .key_size = (uint32_t)strlen(key),
      .value_size = (uint32_t)put.size,
      .wait_ms = (uint32_t)((wait_s < most_s ? wait_s : most_s) * 1e3)};
  // In one piece, which the server reads at once.
  mp_strbuf_t bytes;
  mp_strbuf_init(&bytes);
  mp_strbuf_append(&bytes, (const char *)&request, sizeof(request));
  mp_strbuf_puts(&bytes, key);
  mp_strbuf_append(&bytes, put.data, put.size);
  mp_status_t status = mp_strbuf_status(&bytes);
  if (status == NULL) {
    status = tpu_store_explain(store, mp_tpu_send(store->file, bytes.data, bytes.size));
  }
  mp_strbuf_deinit(&bytes);
  if (status != NULL || kind == MP_TPU_BYE) return status;
  return tpu_store_explain(store, tpu_store_take_answer(store, wait_s + k_grace_seconds, value));
}

static mp_status_t tpu_store_put(void *context, const char *key, mp_str_t value) {
  return tpu_store_ask(context, MP_TPU_PUT, key, value, 0, NULL);
}

static mp_status_t tpu_store_get(void *context, const char *key, double timeout_s,
                                 mp_strbuf_t *value) {
  return tpu_store_ask(context, MP_TPU_GET, key, MP_STR(""), timeout_s, value);
}

static mp_status_t tpu_store_try_get(void *context, const char *key, mp_strbuf_t *value) {
  return tpu_store_ask(context, MP_TPU_GET, key, MP_STR(""), 0, value);
}

static void tpu_store_write_address(void *context, uint32_t rank, mp_strbuf_t *text) {
  const mp_tpu_store_t *store = context;
  const mp_str_t address = mp_tpu_job_address(store->job, rank);
  mp_strbuf_append(text, address.data, address.size);
}

// ---- Opening and closing ----

mp_status_t mp_tpu_store_open(const mp_tpu_job_t *job, const char *failures, double timeout_s,
                              mp_tpu_store_t **out_store) {
  mp_tpu_store_t *store = mp_calloc(1, sizeof(*store));
  MP_RETURN_IF_NULL(store);
  *store = (mp_tpu_store_t){.job = job,
                            .file = -1,
                            .functions = {.put = tpu_store_put,
                                          .get = tpu_store_get,
                                          .try_get = tpu_store_try_get,
                                          .write_address = tpu_store_write_address,
                                          .counted_by = job->list_variable,
                                          .context = store}};
  mp_status_t status = NULL;
  if (job->rank == 0) status = mp_tpu_server_start(job, failures, &store->server);
  if (status == NULL) status = tpu_store_reach(store, timeout_s);
  if (status != NULL) {
    mp_tpu_store_close(store, false);
  } else {
    *out_store = store;
  }
  return status;
}

const mp_key_value_store_t *mp_tpu_store_functions(const mp_tpu_store_t *store) {
  return &store->functions;
}

void mp_tpu_store_close(mp_tpu_store_t *store, bool has_joined) {
  if (store->file >= 0) {
    mp_status_ignore(tpu_store_ask(store, MP_TPU_BYE, "", MP_STR(""), 0, NULL));
    close(store->file);
  }
  mp_tpu_server_stop(store->server, has_joined ? 0 : k_last_words_seconds);
  mp_free(store);
}
