// Joining by the variables of TPU hosts: processes that have neither an MPI launcher nor a
// framework's coordinator, but TPU_PROCESS_ADDRESSES and CLOUD_TPU_TASK_ID.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_TPU_WORLD_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_TPU_WORLD_H_

#include "collectives/transport/tpu/tpu_job.h"
#include "collectives/transport/world.h"

// Makes the world of the processes of `job`, through a store that process 0 has while they join.
// The errors of tpu_store.h and store_world.h.
MP_NODISCARD mp_status_t mp_tpu_world_join(const mp_options_t *options, const mp_tpu_job_t *job,
                                           mp_world_t **out_world);

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_TPU_WORLD_H_
