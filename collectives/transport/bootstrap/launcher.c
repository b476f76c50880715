#include "collectives/transport/bootstrap/launcher.h"

#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "sim/base/str.h"

typedef struct {
  const char *name;
  const char *rank;
  const char *size;     // NULL: unknown
  const char *near;     // number of ranks on this host; NULL: unknown
  const char *also[2];  // must also be set
  const char *modules[2];
} launcher_row_t;

// The first row that matches counts. Slurm sets its variables in batch scripts too, where it has
// not launched the process: they count only together with a variable of a process manager
// interface.
static const launcher_row_t g_launchers[] = {
    {.name = "Open MPI's mpirun",
     .rank = "OMPI_COMM_WORLD_RANK",
     .size = "OMPI_COMM_WORLD_SIZE",
     .near = "OMPI_COMM_WORLD_LOCAL_SIZE",
     .modules = {"ompi", NULL}},
    {.name = "Slurm's srun",
     .rank = "SLURM_PROCID",
     .size = "SLURM_STEP_NUM_TASKS",
     .also = {"SLURM_STEP_NODELIST", "PMIX_RANK"},
     .modules = {"ompi", "mpich"}},
    // Open MPI does not speak PMI-2, and would abort the process.
    {.name = "Slurm's srun",
     .rank = "SLURM_PROCID",
     .size = "SLURM_STEP_NUM_TASKS",
     .also = {"SLURM_STEP_NODELIST", "PMI_RANK"},
     .modules = {"mpich", NULL}},
    {.name = "MPICH's mpiexec (Hydra)",
     .rank = "PMI_RANK",
     .size = "PMI_SIZE",
     .near = "MPI_LOCALNRANKS",
     .modules = {"mpich", "ompi"}},
    {.name = "a PMIx launcher",
     .rank = "PMIX_RANK",
     .also = {"PMIX_NAMESPACE", NULL},
     .modules = {"ompi", "mpich"}},
};
enum { NUM_LAUNCHERS = sizeof(g_launchers) / sizeof(g_launchers[0]) };

// The number in a variable; false if there is none.
static bool launcher_number_in(const char *variable, int64_t *out_value) {
  const char *text = getenv(variable);
  long long value;
  if (text == NULL || !mp_str_parse_i64(mp_str(text), &value)) return false;
  *out_value = value;
  return true;
}

static bool launcher_matches(const launcher_row_t *row, mp_launcher_t *launcher) {
  for (int i = 0; i < 2; ++i) {
    if (row->also[i] != NULL && getenv(row->also[i]) == NULL) return false;
  }
  int64_t near = -1;
  launcher->size = -1;
  launcher->job = getenv("PMIX_NAMESPACE");
  launcher->is_one_host = row->near != NULL && row->size != NULL &&
                          launcher_number_in(row->near, &near) &&
                          launcher_number_in(row->size, &launcher->size) && near == launcher->size;
  return launcher_number_in(row->rank, &launcher->rank) &&
         (row->size == NULL || launcher_number_in(row->size, &launcher->size));
}

static bool launcher_find_in(const launcher_row_t *rows, int count, mp_launcher_t *out_launcher) {
  for (int i = 0; i < count; ++i) {
    const launcher_row_t *row = &rows[i];
    mp_launcher_t launcher = {.name = row->name,
                              .rank_variable = row->rank,
                              .modules = {row->modules[0], row->modules[1]}};
    if (!launcher_matches(row, &launcher)) continue;
    *out_launcher = launcher;
    return true;
  }
  return false;
}

bool mp_launcher_find(mp_launcher_t *out_launcher) {
  return launcher_find_in(g_launchers, NUM_LAUNCHERS, out_launcher);
}

// Starters, which leave it to the processes to find each other.
static const launcher_row_t g_starters[] = {
    {.name = "Slurm's srun",
     .rank = "SLURM_PROCID",
     .size = "SLURM_STEP_NUM_TASKS",
     .also = {"SLURM_STEP_NODELIST", NULL}},
    {.name = "torchrun",
     .rank = "RANK",
     .size = "WORLD_SIZE",
     .also = {"MASTER_ADDR", "TORCHELASTIC_RUN_ID"}},
};
enum { NUM_STARTERS = sizeof(g_starters) / sizeof(g_starters[0]) };

bool mp_launcher_find_starter(mp_launcher_t *out_starter) {
  return launcher_find_in(g_starters, NUM_STARTERS, out_starter);
}

bool mp_launcher_is_child_of_rank(void) {
  int64_t owner;
  return launcher_number_in(MP_MPI_OWNER_VARIABLE, &owner) && owner != (int64_t)getpid();
}
