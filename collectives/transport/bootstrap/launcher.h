// Launchers: whether an MPI launcher started this process, from the environment.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_LAUNCHER_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_LAUNCHER_H_

#include <stdbool.h>
#include <stdint.h>

typedef struct {
  const char *name;           // "Open MPI's mpirun"
  const char *rank_variable;  // where `rank` was read
  int64_t rank;
  int64_t size;            // -1: the launcher does not say
  const char *job;         // what all processes of the job call it; NULL: not said
  bool is_one_host;        // all ranks are on this host
  const char *modules[2];  // MPI modules to try, likeliest first: "ompi", "mpich"
} mp_launcher_t;

// Finds the launcher that started this process; false: there is none. A batch system that sets
// ranks without having started the process as one (a Slurm batch script) is no launcher. The
// strings are static or in the environment, which is read here, so no other thread may change it
// meanwhile.
bool mp_launcher_find(mp_launcher_t *out_launcher);

// The same of what starts processes that then find each other by themselves, as under
// jax.distributed.initialize(): without it each of them is alone, which is hardly ever meant.
bool mp_launcher_find_starter(mp_launcher_t *out_starter);

// The variable that says to which process MPI belongs, for its children to see.
#define MP_MPI_OWNER_VARIABLE "MINIPOD_MPI_OWNER"
// True when MPI belongs to another process, from which this one descends.
bool mp_launcher_is_child_of_rank(void);

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_LAUNCHER_H_
