// Checks of a whole client against the invariants of sim/runtime/README.md, in debug and sanitizer
// builds (sim/base/assert.h); nothing in release builds. What is broken aborts.
//
// Checked are: the streams (order, numbers, blockers, who owns the first run), sessions (counters,
// states, who is parked where), device sets, core queues, jobs, memory (books, heaps), and lanes.
#ifndef MINIPOD_SIM_RUNTIME_LAUNCH_CLIENT_CHECK_H_
#define MINIPOD_SIM_RUNTIME_LAUNCH_CLIENT_CHECK_H_

#include "sim/runtime/devices/client_impl.h"

#ifdef MINIPOD_ASSERTS

// At every launch, under the launch lock. Looks at everything where that is little, and else goes
// on where the last launch stopped: what it costs is bounded per launch, so that on 1,024 devices
// or with long queues a launch stays quick and everything gets its turn.
void mp_client_check_launch(mp_client_t *client);
// Everything at once. With `is_alone` the caller is the client's only user and nothing runs: then
// the sums over all memories are compared too.
void mp_client_check_all(mp_client_t *client, bool is_alone);

#else

static inline void mp_client_check_launch(mp_client_t *client) {
  (void)client;
}

#endif

#endif  // MINIPOD_SIM_RUNTIME_LAUNCH_CLIENT_CHECK_H_
