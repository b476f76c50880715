// Starting MPI: finding the module, initializing, learning who we are.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_MPI_START_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_MPI_START_H_

#include "collectives/transport/bootstrap/launcher.h"
#include "collectives/transport/mpi/mpi_module.h"
#include "sim/base/status.h"

// Opens the module at `path`, or if that is "" the first of the launcher's (NULL: of all) that can
// be opened beside the plugin. UNAVAILABLE with everything that was tried.
MP_NODISCARD mp_status_t mp_mpi_open_module(const char *path, const mp_launcher_t *launcher,
                                            const mp_mpi_module_t **out_module);

// Initializes MPI or joins who did, and makes our communicator. MPI has no time limits here, so a
// thread of its own does it: DEADLINE_EXCEEDED, with the names of those who are missing if that can
// be known, leaves the thread behind. `launcher` may be NULL. *out_is_ours: MPI was not running
// before.
MP_NODISCARD mp_status_t mp_mpi_start(const mp_mpi_module_t *module, const mp_launcher_t *launcher,
                                      double timeout_s, mp_mpi_who_t *out_who, bool *out_is_ours);

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_MPI_START_H_
