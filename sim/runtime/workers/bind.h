// Which cpus the threads of a client run on.
//
// If binding is not allowed, or the machine description is not the real machine, threads run
// anywhere.
#ifndef MINIPOD_SIM_RUNTIME_WORKERS_BIND_H_
#define MINIPOD_SIM_RUNTIME_WORKERS_BIND_H_

#include <stdbool.h>

typedef struct mp_client_s mp_client_t;
typedef struct mp_worker_s mp_worker_t;

// Binds the calling thread, which is this worker, to its core if there is one worker per core,
// otherwise to all cpus of its core group. A process of a job does not bind its workers to single
// cores: those of other processes may be on this host, each with a worker for the same core, and
// the kernel could not move one of them to a core that is free.
void mp_bind_closely(mp_worker_t *self);
// Called before the worker, or a thread in an inline run, continues a run. A run that calls foreign
// functions may use any cpu of the group: threads that a function starts inherit its caller's cpus
// for ever, and a library's threads that spin for work could sit on the worker's core and take
// turns with it. The binding stays until a run of the other kind comes.
void mp_bind_for_run(mp_worker_t *self, bool has_calls);
// Lets the calling thread, which a worker may have started, run on all cpus of the client.
void mp_bind_to_all(const mp_client_t *client);

#endif  // MINIPOD_SIM_RUNTIME_WORKERS_BIND_H_
