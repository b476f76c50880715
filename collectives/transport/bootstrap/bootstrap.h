// Bootstrap: which world this process is part of, and how it leaves it.
//
// There are three ways into a world (option `bootstrap`: auto takes the first one available).
//   mpi: an MPI launcher has started this process (Open MPI, MPICH and Slurm say so in the
//        environment). Only then is the MPI module loaded (minipod_mpi_*.so beside the plugin): the
//        plugin itself links no MPI. A launcher without a usable MPI is an error that says what was
//        tried; each process would otherwise silently be alone, which users can ask for by
//        MINIPOD_BOOTSTRAP=none. Child processes of a rank (data loaders, subprocesses) are alone:
//        MPI belongs to the rank (MINIPOD_MPI_OWNER holds its pid).
//   kv:  the client brings a key-value store, and the options node_id and num_nodes. Between
//        hosts UCX carries messages, which is opened only then.
//   tpu: the client brings no store, but the variables of TPU hosts list the processes
//        (../tpu/tpu_job.h); kv means this, too. Process 0 has the store, and from then on this is
//        the same as kv.
// Otherwise the process is alone.
//
// A client of some processes (subset.h) has its own world, which they join through the store, even
// if they are already in another world; it lives as long as these clients.
//
// Leaving: joining registers an exit handler. When the exit status is 0, it says goodbye to all,
// waits for their goodbyes (MINIPOD_EXIT_TIMEOUT_S), and finalizes MPI if this library initialized
// it. Any other status ends the whole job with that status, if there is a launcher; otherwise the
// others get it by a goodbye; this rank prints the reason as its last line.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_BOOTSTRAP_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_BOOTSTRAP_H_

#include "collectives/transport/key_value_store.h"
#include "collectives/transport/world.h"
#include "sim/base/options.h"

// The world of this process, or of the processes that the options name, joined at the first call;
// later calls for the same processes return the same one, or the same error. NULL when the process
// is alone (the next call may differ), and always with the option bootstrap: none or absent.
// `store` may be NULL; only this thread uses it, during this call. INVALID_ARGUMENT when the
// options node_id and num_nodes are given and disagree with the launcher or the world, both shown.
// The errors of mpi_world.h, tpu_job.h and tpu_world.h.
MP_NODISCARD mp_status_t mp_world_join(const mp_options_t *options,
                                       const mp_key_value_store_t *store, mp_world_t **out_world);

// Whether the other processes of the job do not exist, and this one stands for all (option
// bootstrap: absent). Then there is no world.
bool mp_bootstrap_is_absent(const mp_options_t *options);

// The world that this process has joined first; NULL when it has joined none, or is alone.
mp_world_t *mp_world_joined(void);

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_BOOTSTRAP_H_
