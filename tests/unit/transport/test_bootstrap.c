// Joining without MPI: processes that are alone, and errors. (tests/mpi has the rest.)

#include "collectives/transport/bootstrap/bootstrap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/support/unit.h"

typedef struct {
  const char *environment;     // "A=1 B=2"
  int64_t node_id, num_nodes;  // 0: not given
  mp_status_code_t code;
  const char *text;  // in the message
} case_t;

static mp_status_t make_options(int64_t node_id, int64_t num_nodes, mp_options_t **out_options) {
  const mp_named_value_t values[2] = {
      {.name = MP_STR("node_id"), .type = MP_VALUE_INT64, .int64_value = node_id},
      {.name = MP_STR("num_nodes"), .type = MP_VALUE_INT64, .int64_value = num_nodes}};
  return mp_options_create(values, num_nodes == 0 ? 0 : 2, out_options);
}

// A process joins once, so each case has its own; its exit status tells.
static int join_in_child(const case_t *test) {
  char copy[512];
  snprintf(copy, sizeof(copy), "%s", test->environment);
  for (char *entry = strtok(copy, " "); entry != NULL; entry = strtok(NULL, " ")) putenv(entry);
  mp_options_t *options = NULL;
  mp_status_t status = make_options(test->node_id, test->num_nodes, &options);
  if (status != NULL) return 1;
  static int nobody;
  mp_world_t *world = (mp_world_t *)(void *)&nobody;
  // Twice: the answer stays the same.
  for (int i = 0; i < 2; ++i) {
    status = mp_world_join(options, NULL, &world);
    if (mp_status_code(status) != test->code ||
        strstr(mp_status_message(status), test->text) == NULL) {
      fprintf(stderr, "'%s': %s\n", test->environment, mp_status_message(status));
      return 2;
    }
    if (status == NULL && world != NULL) return 3;
    mp_status_release(status);
  }
  mp_options_release(options);
  return 0;
}

static void joins_or_says_why_not(void **state) {
  (void)state;
#define TWO_RANKS "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 "
  static const case_t cases[] = {
      {"", 0, 0, MP_OK, ""},
      {"OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1", 0, 0, MP_OK, ""},
      {TWO_RANKS "MINIPOD_BOOTSTRAP=none", 0, 0, MP_OK, ""},
      {TWO_RANKS "MINIPOD_MPI_OWNER=1", 0, 0, MP_OK, ""},
      {TWO_RANKS "MINIPOD_BOOTSTRAP=maybe", 0, 0, MP_INVALID_ARGUMENT,
       "expected auto, mpi, kv, none or absent, got 'maybe'"},
      {TWO_RANKS, 1, 3, MP_INVALID_ARGUMENT,
       "3 processes (num_nodes), Open MPI's mpirun that there are 2"},
      {TWO_RANKS, 0, 2, MP_INVALID_ARGUMENT,
       "process 0 (node_id), Open MPI's mpirun that it is rank 1"},
      {TWO_RANKS "MINIPOD_MPI_MODULE=/nowhere/module.so", 1, 2, MP_UNAVAILABLE,
       "MPI cannot be used (jax.distributed.initialize() joins processes without it, "
       "MINIPOD_BOOTSTRAP=none lets each work alone): tried /nowhere/module.so: "},
      {TWO_RANKS "MINIPOD_MPI_MODULE=libm.so.6", 0, 0, MP_UNAVAILABLE,
       "another version of minipod"},
      {"PMI_RANK=0 PMI_SIZE=2 MINIPOD_MPI_MODULE=/nowhere/module.so", 0, 0, MP_UNAVAILABLE,
       "Hydra"},
      {"MINIPOD_BOOTSTRAP=kv", 0, 2, MP_FAILED_PRECONDITION,
       "option 'bootstrap' is kv, but the client does not bring what that needs"},
      {"MINIPOD_BOOTSTRAP=none", 0, 2, MP_OK, ""},
      {"MINIPOD_BOOTSTRAP=mpi MINIPOD_MPI_MODULE=/nowhere/module.so", 0, 0, MP_UNAVAILABLE,
       "option 'bootstrap' is mpi"},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    pid_t child = fork();
    if (child == 0) _exit(join_in_child(&cases[i]));
    int result = 0;
    assert_int_equal(waitpid(child, &result, 0), child);
    if (result != 0) fail_msg("case %zu ('%s'): %d", i, cases[i].environment, result);
  }
}

// ---- A fork while this process joins ----

// What a child can do whose parent holds the lock; its exit status is what is wrong.
static int run_forked(const mp_options_t *options, const mp_key_value_store_t *store) {
  alarm(10);  // it waits for the lock for ever
  static int nobody;
  mp_world_t *world = (mp_world_t *)(void *)&nobody;
  if (mp_world_join(options, store, &world) != NULL || world != NULL) return 1;
  return mp_world_joined() == NULL ? 0 : 2;
}

typedef struct {
  mp_key_value_store_t store;
  mp_options_t *options;
  int end;  // of the child, as waitpid says
} forking_store_t;

// Is called in the middle of joining.
static mp_status_t fork_and_refuse(void *context, const char *key, mp_str_t value) {
  (void)key, (void)value;
  forking_store_t *self = context;
  const pid_t child = fork();
  if (child == 0) _exit(run_forked(self->options, &self->store));
  (void)waitpid(child, &self->end, 0);
  return mp_status_make(MP_UNAVAILABLE, "no store");
}

static mp_status_t find_nothing(void *context, const char *key, double timeout_s,
                                mp_strbuf_t *value) {
  (void)context, (void)key, (void)timeout_s, (void)value;
  return mp_status_make(MP_UNAVAILABLE, "no store");
}

static void forked_child_waits_for_no_lock(void **state) {
  (void)state;
  forking_store_t self = {.store = {.put = fork_and_refuse, .get = find_nothing}, .end = -1};
  self.store.context = &self;
  mp_world_t *world = NULL;
  assert_null(make_options(0, 2, &self.options));
  mp_status_t status = mp_world_join(self.options, &self.store, &world);
  assert_int_equal(mp_status_code(status), MP_UNAVAILABLE);
  mp_status_release(status);
  mp_options_release(self.options);
  assert_int_equal(self.end, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(joins_or_says_why_not),
      cmocka_unit_test(forked_child_waits_for_no_lock),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
