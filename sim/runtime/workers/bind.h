// Which cpus the threads of a client run on.
//
// Where binding is not allowed, or the machine is a made-up one, threads run anywhere.
#ifndef MINIPOD_SIM_RUNTIME_WORKERS_BIND_H_
#define MINIPOD_SIM_RUNTIME_WORKERS_BIND_H_

#include <stdbool.h>

typedef struct mp_client_s mp_client_t;
typedef struct mp_worker_s mp_worker_t;

// Binds the calling thread, which is this worker, to its core where there is one worker per core,
// otherwise to all cpus of its group. A process of a job does not bind its workers to single cores:
// those of other processes may be on this host, each with a worker for the same core, and the
// kernel could not move one of them to a core that is free.
void mp_bind_closely(mp_worker_t *self);
// Before the worker, or a thread in an inline run, goes on with a run: one that calls foreign
// functions runs on any cpu of the group. Threads that a function starts may run where its caller
// may at that moment, for ever; and a library's threads that look for work for a while may be on
// the worker's core, where the two would take turns. A worker stays as it is until a run of the
// other kind comes.
void mp_bind_for_run(mp_worker_t *self, bool has_calls);
// Lets the calling thread, which some worker may have started, run on all cpus of the client's.
void mp_bind_to_all(const mp_client_t *client);

#endif  // MINIPOD_SIM_RUNTIME_WORKERS_BIND_H_
