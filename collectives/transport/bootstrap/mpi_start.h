// Starting MPI: finding the module, initializing, reading rank and size.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_MPI_START_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_MPI_START_H_

#include "collectives/transport/bootstrap/launcher.h"
#include "collectives/transport/mpi/mpi_module.h"
#include "sim/base/status.h"

// Opens the module at `path`. If that is "", opens the first of the launcher's modules (of all
// modules when `launcher` is NULL) that can be opened in the plugin's folder. The module is never
// closed. UNAVAILABLE with everything that was tried.
MP_NODISCARD mp_status_t mp_mpi_open_module(const char *path, const mp_launcher_t *launcher,
                                            const mp_mpi_module_t **out_module);

// Initializes MPI, unless the program has, and makes minipod's communicator. MPI has no time limit
// for this, so a separate thread does it. After `timeout_s` seconds the thread is abandoned, and
// the error is DEADLINE_EXCEEDED, with the missing ranks if they can be found. `launcher` may be
// NULL. *out_is_ours: MPI was not running before.
MP_NODISCARD mp_status_t mp_mpi_start(const mp_mpi_module_t *module, const mp_launcher_t *launcher,
                                      double timeout_s, mp_mpi_who_t *out_who, bool *out_is_ours);

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_MPI_START_H_
