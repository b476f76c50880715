// Quiet clients: proving that runs of several launches wait for each other.
//
// One launch alone proves itself stuck (session.h). Launches of single devices can also be entered
// in different orders on different devices, so that each waits at a collective for one that is
// queued behind the other. That shows when nothing moves any more: every worker is idle, nothing is
// runnable, and some runs are parked. Then a run can still go on only if it waits for something
// from outside (an input, a launch that has not come), or for a run that can. Sessions whose
// participants all cannot are stuck for ever; one of them is poisoned, which lets the others go on.
#ifndef MINIPOD_SIM_RUNTIME_LAUNCH_DEADLOCK_H_
#define MINIPOD_SIM_RUNTIME_LAUNCH_DEADLOCK_H_

#include "sim/runtime/devices/client_impl.h"

// Looks, if nobody is at work and runs were parked or queued behind others since the last look.
// Called by whoever stops working: a worker before it goes to sleep, a thread that has launched.
void mp_deadlock_check(mp_client_t *client);

// A run was parked, or queued behind another one.
static inline void mp_deadlock_needs_look(mp_client_t *client) {
  if (atomic_load_explicit(&client->needs_look, memory_order_relaxed)) return;
  atomic_store(&client->needs_look, true);
}

#endif  // MINIPOD_SIM_RUNTIME_LAUNCH_DEADLOCK_H_
