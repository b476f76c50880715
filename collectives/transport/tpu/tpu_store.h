// The key-value store of a TPU job, through which its processes join: a connection to process 0,
// which has the values.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_TPU_TPU_STORE_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_TPU_TPU_STORE_H_

#include "collectives/transport/key_value_store.h"
#include "collectives/transport/tpu/tpu_job.h"

typedef struct mp_tpu_store_s mp_tpu_store_t;

// Connects to process 0, for which it waits at most `timeout_s` seconds; process 0 itself begins to
// listen. `failures` is the folder of failed processes. The job and `failures` must live as long as
// the store.
//
// DEADLINE_EXCEEDED, with the address, when process 0 does not listen; UNAVAILABLE when the address
// of process 0 cannot be used there; FAILED_PRECONDITION or ALREADY_EXISTS when process 0 is of
// another job, or another process has joined with this number.
MP_NODISCARD mp_status_t mp_tpu_store_open(const mp_tpu_job_t *job, const char *failures,
                                           double timeout_s, mp_tpu_store_t **out_store);
// The store as functions, which live as long as it.
const mp_key_value_store_t *mp_tpu_store_functions(const mp_tpu_store_t *store);
// Disconnects. If joining has failed (`has_joined` is false), process 0 leaves the others some time
// to read why.
void mp_tpu_store_close(mp_tpu_store_t *store, bool has_joined);

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_TPU_TPU_STORE_H_
