// Inline runs: threads that run what they launch.
//
// If a launch ends sooner than a worker could be woken, the launching thread runs it, and acts as a
// worker for its own runs (worker.h). In the same way the thread for messages runs the rest of a
// launch after it has ended a collective of it (sessions/meet.c). Whether a launch is so short is
// estimated from the program, and corrected by the times of earlier launches. Which thread runs a
// program never changes its results.
//
// A thread that is expected to wait for its launch before it does anything else (mp_launching_note)
// also runs longer ones itself: those that took no more than a few milliseconds when workers ran
// them. Workers help it with large kernels, but it need not wait until one has been woken, and does
// not have to be woken at the end.
#ifndef MINIPOD_SIM_RUNTIME_RUNS_INLINE_RUN_H_
#define MINIPOD_SIM_RUNTIME_RUNS_INLINE_RUN_H_

#include "sim/runtime/runs/executable_impl.h"
#include "sim/runtime/workers/worker.h"

// The worker that the calling thread acts as when it runs this launch on `num_devices` devices
// itself; the caller gives it back with mp_inline_put. `awaits`: the thread is expected to wait for
// the launch at once, and may do so. NULL: the workers should run the launch, because it or earlier
// launches of the program took too long, because the thread is a worker or already in an inline
// run, or because memory is short.
mp_worker_t *mp_inline_get(mp_executable_t *executable, uint32_t num_devices, bool awaits);
// Runs the first runs of these devices, and runs of the same launch that become runnable meanwhile,
// until none is left. Empties the list. Records whether the launch took too long for an inline run.
// Called without locks.
void mp_inline_launch(mp_worker_t *inline_worker, mp_executable_t *executable,
                      mp_device_list_t *devices);
// Runs the first runs of devices that were resumed on the calling thread, linked by
// `next_runnable`, which belong to one launch; if they are so short that waking a worker would take
// as long, the thread acts as a worker for them, as above. Otherwise workers run them. Called
// without locks; the caller holds the client.
void mp_inline_go_on(mp_client_t *client, mp_device_t *first);
// Records how long a run of the executable took on workers or with their help.
void mp_inline_note_long(mp_executable_t *executable, double seconds);
// Gives the worker back: the client keeps one for its next inline run and frees others.
void mp_inline_put(mp_worker_t *inline_worker);

#endif  // MINIPOD_SIM_RUNTIME_RUNS_INLINE_RUN_H_
