// Real processes, forked from the test, with a key-value store in memory that they share: for what
// joins through such a store.
#ifndef MINIPOD_TESTS_UNIT_SUPPORT_PROCESSES_STORE_PROCESSES_H_
#define MINIPOD_TESTS_UNIT_SUPPORT_PROCESSES_STORE_PROCESSES_H_

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collectives/transport/bootstrap/bootstrap.h"
#include "collectives/transport/bootstrap/hello.h"
#include "sim/base/fault.h"
#include "sim/base/os/clock.h"
#include "tests/unit/support/unit.h"

enum { MOST_PROCESSES = 8, MOST_ENTRIES = 128, LIMIT_SECONDS = 60 };

typedef struct {
  char key[96];
  char value[1024];
  size_t size;
} entry_t;

// The result of a process.
typedef struct {
  mp_status_code_t code;
  char message[600];
  double seconds;
  bool has_world;
} outcome_t;

static struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  entry_t entries[MOST_ENTRIES];
  uint32_t num_entries;
  outcome_t outcomes[MOST_PROCESSES];
  int64_t num_refusals;
} * g_shared;

static inline int store_setup(void **state) {
  (void)state;
  g_shared =
      mmap(NULL, sizeof(*g_shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(g_shared, MAP_FAILED);
  pthread_mutexattr_t mutex;
  pthread_mutexattr_init(&mutex);
  pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&g_shared->lock, &mutex);
  pthread_condattr_t cond;
  pthread_condattr_init(&cond);
  pthread_condattr_setpshared(&cond, PTHREAD_PROCESS_SHARED);
  pthread_condattr_setclock(&cond, CLOCK_MONOTONIC);
  pthread_cond_init(&g_shared->changed, &cond);
  return 0;
}

static inline int store_teardown(void **state) {
  (void)state;
  munmap(g_shared, sizeof(*g_shared));
  return 0;
}

// ---- The store ----

// What one process does otherwise than the others.
typedef struct {
  uint32_t rank;           // as it says itself
  int64_t num_nodes;       // 0: as many as there are
  const char *dies_at;     // kills itself when it puts a key with this text
  const char *dies_for;    // kills itself when it looks for a key with this text
  const char *refused_at;  // the store refuses such a key
  void (*tamper)(mp_hello_t *hello);
  const char *environment;  // "A=1"
  bool can_only_wait;       // its store has no try_get
  void (*afterwards)(mp_world_t *world);
  mp_fault_t fault;      // what the system refuses
  int64_t fault_number;  // the how manieth time; 0: never
} process_t;

static const process_t *g_process;

static inline entry_t *store_find(const char *key) {
  for (uint32_t i = 0; i < g_shared->num_entries; ++i) {
    if (strcmp(g_shared->entries[i].key, key) == 0) return &g_shared->entries[i];
  }
  return NULL;
}

static inline mp_status_t store_put(void *context, const char *key, mp_str_t value) {
  (void)context;
  if (g_process->dies_at != NULL && strstr(key, g_process->dies_at) != NULL) raise(SIGKILL);
  if (g_process->refused_at != NULL && strstr(key, g_process->refused_at) != NULL) {
    return mp_status_make(MP_UNAVAILABLE, "the coordinator is away");
  }
  mp_status_t status = NULL;
  pthread_mutex_lock(&g_shared->lock);
  entry_t *entry = store_find(key);
  if (entry != NULL) {
    status = mp_status_make(MP_ALREADY_EXISTS, "key %s", key);
  } else {
    entry = &g_shared->entries[g_shared->num_entries++];
    snprintf(entry->key, sizeof(entry->key), "%s", key);
    memcpy(entry->value, value.data, value.size);
    entry->size = value.size;
    if (g_process->tamper != NULL && strstr(key, "hello") != NULL) {
      mp_hello_t hello;
      memcpy(&hello, entry->value + 1, sizeof(hello));
      g_process->tamper(&hello);
      memcpy(entry->value + 1, &hello, sizeof(hello));
    }
    pthread_cond_broadcast(&g_shared->changed);
  }
  pthread_mutex_unlock(&g_shared->lock);
  return status;
}

static inline mp_status_t store_get(void *context, const char *key, double timeout_s,
                                    mp_strbuf_t *value) {
  (void)context;
  if (g_process->dies_for != NULL && strstr(key, g_process->dies_for) != NULL) raise(SIGKILL);
  const struct timespec until = mp_clock_after(timeout_s);
  mp_status_t status = NULL;
  pthread_mutex_lock(&g_shared->lock);
  const entry_t *entry = NULL;
  while ((entry = store_find(key)) == NULL && status == NULL) {
    if (pthread_cond_timedwait(&g_shared->changed, &g_shared->lock, &until) != 0) {
      status = mp_status_make(MP_DEADLINE_EXCEEDED, "no value for %s", key);
    }
  }
  if (entry != NULL) {
    mp_status_ignore(status);
    status = NULL;
    mp_strbuf_append(value, entry->value, entry->size);
  }
  pthread_mutex_unlock(&g_shared->lock);
  return status;
}

static inline mp_status_t store_try_get(void *context, const char *key, mp_strbuf_t *value) {
  (void)context;
  mp_status_t status = NULL;
  pthread_mutex_lock(&g_shared->lock);
  const entry_t *entry = store_find(key);
  if (entry != NULL) {
    mp_strbuf_append(value, entry->value, entry->size);
  } else {
    status = mp_status_make(MP_NOT_FOUND, "no value for %s", key);
  }
  pthread_mutex_unlock(&g_shared->lock);
  return status;
}

static const mp_key_value_store_t k_store = {
    .put = store_put, .get = store_get, .try_get = store_try_get};
static const mp_key_value_store_t k_waiting_store = {.put = store_put, .get = store_get};

// ---- Processes ----

static inline mp_status_t join(int64_t node_id, int64_t num_nodes,
                               const mp_key_value_store_t *store, mp_world_t **out_world) {
  const mp_named_value_t values[] = {
      {.name = MP_STR("node_id"), .type = MP_VALUE_INT64, .int64_value = node_id},
      {.name = MP_STR("num_nodes"), .type = MP_VALUE_INT64, .int64_value = num_nodes}};
  mp_options_t *options = NULL;
  MP_RETURN_IF_ERROR(mp_options_create(values, 2, &options));
  if (g_process->fault_number != 0) {
    mp_fault_watch();
    mp_fault_at(g_process->fault, g_process->fault_number, 1);
  }
  mp_status_t status = mp_world_join(options, store, out_world);
  if (g_process->fault_number != 0) g_shared->num_refusals = mp_fault_refusals(g_process->fault);
  mp_options_release(options);
  return status;
}

static inline int run_process(const process_t *process, outcome_t *outcome, uint32_t count) {
  alarm(LIMIT_SECONDS);
  g_process = process;
  char environment[64] = "";
  if (process->environment != NULL) {
    snprintf(environment, sizeof(environment), "%s", process->environment);
    putenv(environment);
  }
  mp_world_t *world = NULL;
  const double begin = mp_clock_seconds();
  mp_status_t status = join(process->rank, process->num_nodes == 0 ? count : process->num_nodes,
                            process->can_only_wait ? &k_waiting_store : &k_store, &world);
  outcome->seconds = mp_clock_seconds() - begin;
  outcome->code = mp_status_code(status);
  outcome->has_world = world != NULL;
  snprintf(outcome->message, sizeof(outcome->message), "%s", mp_status_message(status));
  mp_status_release(status);
  if (outcome->code == MP_OK && process->afterwards != NULL) process->afterwards(world);
  return 0;
}

// Runs all processes to their end, and gives their wait statuses.
static inline void run(uint32_t count, const process_t *processes, int *out_ends) {
  g_shared->num_entries = 0;
  memset(g_shared->outcomes, 0xff, sizeof(g_shared->outcomes));
  pid_t children[MOST_PROCESSES];
  for (uint32_t i = 0; i < count; ++i) {
    children[i] = fork();
    if (children[i] == 0) exit(run_process(&processes[i], &g_shared->outcomes[i], count));
  }
  for (uint32_t i = 0; i < count; ++i) {
    assert_int_equal(waitpid(children[i], &out_ends[i], 0), children[i]);
  }
}

// ---- What is expected ----

// In a process.
static inline void check(bool is_right, const char *what) {
  if (is_right) return;
  fprintf(stderr, "process %u: %s\n", g_process->rank, what);
  _exit(9);
}

// That the first processes survive, with this error.
static inline void expect_failure(uint32_t count, const process_t *processes, uint32_t survivors,
                                  mp_status_code_t code, const char *text) {
  int ends[MOST_PROCESSES];
  run(count, processes, ends);
  for (uint32_t i = 0; i < survivors; ++i) {
    const outcome_t *outcome = &g_shared->outcomes[i];
    assert_int_equal(ends[i], 0);
    if (outcome->code != code || strstr(outcome->message, text) == NULL) {
      fail_msg("process %u: %s: %s", i, mp_status_code_name(outcome->code), outcome->message);
    }
    assert_false(outcome->has_world);
    assert_true(outcome->seconds < LIMIT_SECONDS / 2);
  }
}

// That both fail, or both join, when the system refuses the n-th request of each kind in process 1,
// up to `most` of them.
static inline void expect_that_refusals_are_heard_of(int64_t most,
                                                     void (*tamper)(mp_hello_t *hello)) {
  for (mp_fault_t kind = 0; kind < MP_FAULT_COUNT; ++kind) {
    bool has_failed = true;
    for (int64_t n = 1; has_failed && n < most; ++n) {
      const process_t processes[] = {
          {.rank = 0, .environment = "MINIPOD_INIT_TIMEOUT_S=20"},
          {.rank = 1, .fault = kind, .fault_number = n, .tamper = tamper}};
      int ends[2];
      run(2, processes, ends);
      const outcome_t *outcomes = g_shared->outcomes;
      if (ends[0] != 0 || ends[1] != 0 || outcomes[0].seconds > 15 ||
          (outcomes[0].code == MP_OK) != (outcomes[1].code == MP_OK)) {
        fail_msg("fault %d, request %d: %x %x; %s: %s: %s", (int)kind, (int)n, ends[0], ends[1],
                 outcomes[0].message, mp_status_code_name(outcomes[1].code), outcomes[1].message);
      }
      has_failed = g_shared->num_refusals != 0;
    }
    assert_false(has_failed);
  }
}

#endif  // MINIPOD_TESTS_UNIT_SUPPORT_PROCESSES_STORE_PROCESSES_H_
