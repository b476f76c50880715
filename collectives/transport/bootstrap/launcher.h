// Launchers: whether an MPI launcher started this process, from the environment.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_LAUNCHER_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_LAUNCHER_H_

#include <stdbool.h>
#include <stdint.h>

typedef struct {
  const char *name;           // "Open MPI's mpirun"
  const char *rank_variable;  // the variable of `rank`
  int64_t rank;
  int64_t size;            // -1: unknown
  const char *job;         // the job's name, equal in all its processes; NULL: unknown
  bool is_one_host;        // all ranks are on this host
  const char *modules[2];  // MPI modules to try, likeliest first: "ompi", "mpich"
} mp_launcher_t;

// Finds the launcher that started this process; false: there is none. A batch system that sets
// ranks without having started the process as one (a Slurm batch script) is no launcher. The
// strings are static or in the environment, which is read here, so no other thread may change it
// meanwhile.
bool mp_launcher_find(mp_launcher_t *out_launcher);

// The same for starters whose processes find each other by themselves, as by
// jax.distributed.initialize(): without that each of them is alone, which is hardly ever intended.
bool mp_launcher_find_starter(mp_launcher_t *out_starter);

// The variable that tells children which process owns MPI.
#define MP_MPI_OWNER_VARIABLE "MINIPOD_MPI_OWNER"
// True when an ancestor of this process owns MPI.
bool mp_launcher_is_child_of_rank(void);

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_LAUNCHER_H_
