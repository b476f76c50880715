// Leaving the job: what happens when a process that has joined ends.
//
// An exit handler, because it knows the exit status, runs for every kind of program, and comes
// after everything that Python does at its end.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_LEAVE_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_LEAVE_H_

#include "collectives/transport/mpi/mpi_module.h"
#include "collectives/transport/transport.h"

// Once per process, as soon as MPI runs. `who` says which rank we are.
MP_NODISCARD mp_status_t mp_leave_prepare(const mp_mpi_module_t *module, bool is_ours,
                                          const mp_mpi_who_t *who, double timeout_s);
// What is to be left in an orderly way: the world with its MPI transport.
void mp_leave_set_world(mp_world_t *world, mp_transport_t *mpi);

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_LEAVE_H_
