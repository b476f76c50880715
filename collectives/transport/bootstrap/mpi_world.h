// Joining by MPI: the world of the processes that an MPI launcher has started.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_MPI_WORLD_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_MPI_WORLD_H_

#include "collectives/transport/bootstrap/launcher.h"
#include "collectives/transport/world.h"
#include "sim/base/options.h"

// Makes the world; NULL: MPI says that this process is alone. `launcher` may be NULL. A world that
// was made stays even if joining fails afterwards. The errors of mp_mpi_open_module, mp_mpi_start
// and mp_hello_compare; FAILED_PRECONDITION when MPI has been finalized.
MP_NODISCARD mp_status_t mp_mpi_world_join(const mp_options_t *options,
                                           const mp_launcher_t *launcher, mp_world_t **out_world);

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_MPI_WORLD_H_
