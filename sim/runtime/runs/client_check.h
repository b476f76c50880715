// Checks of a whole client against the invariants of sim/runtime/README.md, in debug and sanitizer
// builds (sim/base/assert.h). An invariant that does not hold aborts the process. In release builds
// there are no checks.
//
// Checked are: the streams (order, numbers, blockers, the owner of the first run), sessions
// (counters, states, where each participant is parked), device sets, core queues, jobs, memory
// (books, heaps), and the launch queues of the client's endpoint.
#ifndef MINIPOD_SIM_RUNTIME_RUNS_CLIENT_CHECK_H_
#define MINIPOD_SIM_RUNTIME_RUNS_CLIENT_CHECK_H_

#include "sim/runtime/devices/device.h"

#ifdef MINIPOD_ASSERTS

// Called at every launch, under the launch lock. Checks everything if there is little to check, and
// otherwise continues where the last launch stopped. So the cost per launch is bounded, also on
// 1,024 devices or with long queues, and over several launches everything is checked.
void mp_client_check_launch(mp_client_t *client);
// Checks everything at once; takes the launch lock. `is_alone`: the caller is the client's only
// user and nothing runs, so the sums over all memories can be compared too.
void mp_client_check_all(mp_client_t *client, bool is_alone);

#else

// Nothing in release builds.
static inline void mp_client_check_launch(mp_client_t *client) {
  (void)client;
}

#endif

#endif  // MINIPOD_SIM_RUNTIME_RUNS_CLIENT_CHECK_H_
