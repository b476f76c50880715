// Leaving the job: the end of a process that has joined.
//
// It is done by an exit handler, because that knows the exit status, runs in every kind of program,
// and comes after everything that Python does at its end.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_LEAVE_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_LEAVE_H_

#include "collectives/transport/mpi/mpi_module.h"
#include "collectives/transport/transport.h"

// Registers the exit handler; called once per process, as soon as MPI runs, or before the world is
// started if there is none. `module` is NULL in a job without MPI. `is_ours`: this library has
// initialized MPI, and finalizes it. `rank` is that of this process. A process that ends with
// success waits at most `timeout_s` seconds for the others. RESOURCE_EXHAUSTED or UNAVAILABLE when
// a handler cannot be registered.
MP_NODISCARD mp_status_t mp_leave_prepare(const mp_mpi_module_t *module, bool is_ours, int rank,
                                          double timeout_s);
// Gives the exit handler the world to leave, and the transport between hosts (may be NULL) to
// close. Borrowed.
void mp_leave_set_world(mp_world_t *world, mp_transport_t *far);
// Adds a world of some processes of the job, which is left first. RESOURCE_EXHAUSTED when memory is
// short. One thread at a time makes and drops worlds.
MP_NODISCARD mp_status_t mp_leave_add_world(mp_world_t *world, mp_transport_t *far);
// The world will not be used, and is freed after this.
void mp_leave_drop_world(mp_world_t *world);

// Whether this process is in a world without MPI, which it may leave at any time.
bool mp_leave_is_quick(void);
// Leaves a world without MPI now, before the process ends with this status: the rest of the process
// does not use the world any more, and must not keep the others waiting. True: a process of the
// world is lost, so a wait for all at the end of the process would never end; the first process has
// waited for the live ones. In processes with MPI it has no effect and returns false.
bool mp_leave_early(uint32_t status);

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_LEAVE_H_
