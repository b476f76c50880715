// Inline runs: threads that run what they launch.
//
// A launch that is over sooner than a worker could be woken is run by the launching thread, which
// acts as a worker for its own runs (worker.h). Whether it does is guessed from the program and
// corrected by how long it took; who runs a program never changes its results.
#ifndef MINIPOD_SIM_RUNTIME_LAUNCH_INLINE_RUN_H_
#define MINIPOD_SIM_RUNTIME_LAUNCH_INLINE_RUN_H_

#include "sim/runtime/devices/worker.h"
#include "sim/runtime/launch/executable_impl.h"

// What the calling thread needs to run this launch on `num_devices` devices itself; NULL: it shall
// not (the launch is too long, or the thread is a worker or inline run already), or memory is
// short.
mp_worker_t *mp_inline_get(const mp_executable_t *executable, uint32_t num_devices);
// Runs these devices' first runs, and what becomes runnable of the same launch, until none is left.
void mp_inline_launch(mp_worker_t *inline_worker, mp_executable_t *executable,
                      mp_device_list_t *devices);
void mp_inline_put(mp_worker_t *inline_worker);

#endif  // MINIPOD_SIM_RUNTIME_LAUNCH_INLINE_RUN_H_
