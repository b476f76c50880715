// The transport between hosts: MPI messages, through a module (mpi/mpi_module.h).
//
// A packet is one MPI message on the tag of headers, with small data after the header; larger data
// follow in pieces on a tag of their own. MPI keeps the order per sender and tag. All MPI calls are
// made on the progress thread, and none of them waits. The thread that has closed the transport may
// finalize MPI.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_HOSTS_MPI_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_HOSTS_MPI_H_

#include "collectives/transport/mpi/mpi_module.h"
#include "collectives/transport/transport.h"

// A transport for all peers of the world that use it. MPI runs, and `module` has made its
// communicator. RESOURCE_EXHAUSTED when memory is short.
MP_NODISCARD mp_status_t mp_mpi_create(mp_world_t *world, const mp_mpi_module_t *module,
                                       mp_transport_t **out_transport);

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_HOSTS_MPI_H_
