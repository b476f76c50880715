#include "collectives/transport/bootstrap/tpu_world.h"

#include "collectives/transport/bootstrap/store_world.h"
#include "collectives/transport/store/store_talk.h"
#include "collectives/transport/tpu/tpu_store.h"

mp_status_t mp_tpu_world_join(const mp_options_t *options, const mp_tpu_job_t *job,
                              mp_world_t **out_world) {
  // As after jax.distributed.initialize(). The texts remain those of `options`.
  mp_options_t numbered = *options;
  numbered.node_id = job->rank;
  numbered.num_nodes = job->size;
  mp_tpu_store_t *store = NULL;
  MP_RETURN_IF_ERROR(
      mp_tpu_store_open(job, MP_STORE_FAILURES, (double)options->init_timeout, &store));
  mp_status_t status =
      mp_store_world_join(&numbered, mp_tpu_store_functions(store), NULL, true, out_world);
  mp_tpu_store_close(store, status == NULL);
  return status;
}
