// Joining, as far as it goes without MPI: who is alone, and what is refused. (tests/mpi has the
// rest.)

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

// A process joins once, so each case has its own; its exit status tells.
static int join_in_child(const case_t *test) {
  char copy[512];
  snprintf(copy, sizeof(copy), "%s", test->environment);
  for (char *entry = strtok(copy, " "); entry != NULL; entry = strtok(NULL, " ")) putenv(entry);
  mp_named_value_t values[2] = {
      {.name = MP_STR("node_id"), .type = MP_VALUE_INT64, .int64_value = test->node_id},
      {.name = MP_STR("num_nodes"), .type = MP_VALUE_INT64, .int64_value = test->num_nodes}};
  mp_options_t *options = NULL;
  mp_status_t status = mp_options_create(values, test->num_nodes == 0 ? 0 : 2, &options);
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
       "expected auto, mpi, kv or none, got 'maybe'"},
      {TWO_RANKS, 1, 3, MP_INVALID_ARGUMENT,
       "3 processes (num_nodes), Open MPI's mpirun that there are 2"},
      {TWO_RANKS, 0, 2, MP_INVALID_ARGUMENT,
       "process 0 (node_id), Open MPI's mpirun that it is rank 1"},
      {TWO_RANKS "MINIPOD_MPI_MODULE=/nowhere/module.so", 1, 2, MP_UNAVAILABLE,
       "MPI cannot be used (MINIPOD_BOOTSTRAP=none lets each process work alone): tried "
       "/nowhere/module.so: "},
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(joins_or_says_why_not),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
