// Launchers, from the environment alone.

#include "collectives/transport/bootstrap/launcher.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/support/unit.h"

// Sets the variables of `text` ("A=1 B=2") and no others that launchers set.
static void set_environment(const char *text) {
  static const char *const known[] = {"OMPI_COMM_WORLD_RANK",
                                      "OMPI_COMM_WORLD_SIZE",
                                      "PMI_RANK",
                                      "PMI_SIZE",
                                      "PMIX_RANK",
                                      "PMIX_NAMESPACE",
                                      "SLURM_PROCID",
                                      "SLURM_NTASKS",
                                      "SLURM_STEP_NODELIST",
                                      "SLURM_STEP_NUM_TASKS",
                                      "RANK",
                                      "WORLD_SIZE",
                                      "MASTER_ADDR",
                                      "TORCHELASTIC_RUN_ID",
                                      MP_MPI_OWNER_VARIABLE};
  for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); ++i) unsetenv(known[i]);
  char copy[512];
  snprintf(copy, sizeof(copy), "%s", text);
  for (char *entry = strtok(copy, " "); entry != NULL; entry = strtok(NULL, " ")) {
    char *equals = strchr(entry, '=');
    *equals = '\0';
    setenv(entry, equals + 1, 1);
  }
}

static void finds_launchers(void **state) {
  (void)state;
  static const struct {
    const char *environment;
    const char *name;  // NULL: none
    int64_t rank, size;
    const char *module;
  } rows[] = {
      {"", NULL, 0, 0, NULL},
      {"OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4 PMIX_RANK=3 PMIX_NAMESPACE=x", "Open MPI", 3,
       4, "ompi"},
      {"PMI_RANK=0 PMI_SIZE=2", "Hydra", 0, 2, "mpich"},
      {"PMI_RANK=0", NULL, 0, 0, NULL},
      {"SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=8 SLURM_STEP_NODELIST=a PMIX_RANK=1 PMIX_NAMESPACE=x",
       "srun", 1, 8, "ompi"},
      {"SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=8 SLURM_STEP_NODELIST=a PMI_RANK=1 PMI_SIZE=8", "srun",
       1, 8, "mpich"},
      // A batch script, and srun without a process manager interface.
      {"SLURM_PROCID=0 SLURM_NTASKS=8", NULL, 0, 0, NULL},
      {"SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=8 SLURM_STEP_NODELIST=a", NULL, 0, 0, NULL},
      {"PMIX_RANK=2 PMIX_NAMESPACE=x", "PMIx", 2, -1, "ompi"},
      {"PMIX_RANK=2", NULL, 0, 0, NULL},
      {"OMPI_COMM_WORLD_RANK=three OMPI_COMM_WORLD_SIZE=4", NULL, 0, 0, NULL},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    set_environment(rows[i].environment);
    mp_launcher_t found;
    bool is_found = mp_launcher_find(&found);
    if (is_found != (rows[i].name != NULL)) fail_msg("'%s'", rows[i].environment);
    if (!is_found) continue;
    assert_non_null(strstr(found.name, rows[i].name));
    assert_int_equal(found.rank, rows[i].rank);
    assert_int_equal(found.size, rows[i].size);
    assert_string_equal(found.modules[0], rows[i].module);
  }
}

// Those that leave it to the processes to find each other.
static void finds_starters(void **state) {
  (void)state;
  static const struct {
    const char *environment;
    const char *name;  // NULL: none
    int64_t rank, size;
  } rows[] = {
      {"", NULL, 0, 0},
      {"SLURM_PROCID=0 SLURM_NTASKS=8", NULL, 0, 0},
      {"SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=8 SLURM_STEP_NODELIST=a", "Slurm's srun", 1, 8},
      {"RANK=1 WORLD_SIZE=2", NULL, 0, 0},
      {"RANK=1 WORLD_SIZE=2 MASTER_ADDR=a TORCHELASTIC_RUN_ID=none", "torchrun", 1, 2},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    set_environment(rows[i].environment);
    mp_launcher_t found;
    bool is_found = mp_launcher_find_starter(&found);
    if (is_found != (rows[i].name != NULL)) fail_msg("'%s'", rows[i].environment);
    if (!is_found) continue;
    assert_string_equal(found.name, rows[i].name);
    assert_int_equal(found.rank, rows[i].rank);
    assert_int_equal(found.size, rows[i].size);
  }
}

static void knows_children_of_ranks(void **state) {
  (void)state;
  char text[64];
  set_environment("");
  assert_false(mp_launcher_is_child_of_rank());
  snprintf(text, sizeof(text), "%s=%d", MP_MPI_OWNER_VARIABLE, (int)getpid());
  set_environment(text);
  assert_false(mp_launcher_is_child_of_rank());
  snprintf(text, sizeof(text), "%s=%d", MP_MPI_OWNER_VARIABLE, (int)getppid());
  set_environment(text);
  assert_true(mp_launcher_is_child_of_rank());
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(finds_launchers),
      cmocka_unit_test(finds_starters),
      cmocka_unit_test(knows_children_of_ranks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
