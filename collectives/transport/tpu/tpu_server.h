// The store of process 0, while the processes of a TPU job join: keys and values, which each
// process puts and gets over TCP.
//
// A thread serves all connections. It drops connections that do not begin with the greeting of this
// job. If a process of the job ends before it says goodbye, the server puts an error under its
// number in the folder of failures, so the others need not wait for it.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_TPU_TPU_SERVER_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_TPU_TPU_SERVER_H_

#include "collectives/transport/tpu/tpu_job.h"

typedef struct mp_tpu_server_s mp_tpu_server_t;

// A name of the job that is equal in all its processes.
uint64_t mp_tpu_job_hash(const mp_tpu_job_t *job);

// Listens on the address of process 0 and starts the thread. `failures` is the folder of failures.
// UNAVAILABLE when the address cannot be used, for instance because another program listens there.
MP_NODISCARD mp_status_t mp_tpu_server_start(const mp_tpu_job_t *job, const char *failures,
                                             mp_tpu_server_t **out_server);
// Waits for at most `seconds` until no other process is connected, ends the thread, and closes the
// port. NULL: nothing.
void mp_tpu_server_stop(mp_tpu_server_t *server, double seconds);

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_TPU_TPU_SERVER_H_
