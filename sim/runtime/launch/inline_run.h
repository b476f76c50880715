// Inline runs: threads that run what they launch.
//
// A launch that is over sooner than a worker could be woken is run by the launching thread, which
// acts as a worker for its own runs (worker.h), and so is what is left of one by the thread for
// messages, when that has ended a collective of it (sessions/meet.c). Whether a launch is so short
// is guessed from the program, and corrected by how long earlier launches took. Which thread runs a
// program never changes its results.
//
// A thread that is expected to wait for its launch before it does anything else
// (mp_launching_note) also runs longer ones itself: those that took no more than a few milliseconds
// when workers ran them. It has workers help with large kernels, but need not wait until one has
// been woken, and is not woken at the end.
#ifndef MINIPOD_SIM_RUNTIME_LAUNCH_INLINE_RUN_H_
#define MINIPOD_SIM_RUNTIME_LAUNCH_INLINE_RUN_H_

#include "sim/runtime/launch/executable_impl.h"
#include "sim/runtime/workers/worker.h"

// The worker that the calling thread acts as when it runs this launch on `num_devices` devices
// itself; the caller gives it back with mp_inline_put. `awaits`: the thread is expected to wait for
// the launch at once, and may do so. NULL: the workers shall run the launch,
// because it is too long or others of the program were, because the thread is a worker or in an
// inline run already, or because memory is short.
mp_worker_t *mp_inline_get(mp_executable_t *executable, uint32_t num_devices, bool awaits);
// Runs the first runs of these devices, and what becomes runnable of the same launch meanwhile,
// until none is left. Takes the contents of the list. Notes whether the launch took too long for
// this. Called without locks.
void mp_inline_launch(mp_worker_t *inline_worker, mp_executable_t *executable,
                      mp_device_list_t *devices);
// Runs the first runs of devices that were resumed on the calling thread, linked by
// `next_runnable`, which belong to one launch; the thread acts as a worker for them, as above, if
// they are so short that waking one would take as long. Otherwise workers run them. Called without
// locks, by somebody who holds the client.
void mp_inline_go_on(mp_client_t *client, mp_device_t *first);
// A run of the executable took so long, on workers or with their help.
void mp_inline_note_long(mp_executable_t *executable, double seconds);
// Gives the worker back: the client keeps one for its next inline run, and others are freed.
void mp_inline_put(mp_worker_t *inline_worker);

#endif  // MINIPOD_SIM_RUNTIME_LAUNCH_INLINE_RUN_H_
