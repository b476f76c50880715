// Quiet clients: proving that runs of several launches wait for each other.
//
// One launch alone proves itself stuck (session.h). Launches of single devices can also be entered
// in different orders on different devices, so that each waits at a collective for one that is
// queued behind the other. That shows when nothing moves any more: every worker is idle, nothing is
// runnable, and some runs are parked. Then a run can still go on only if it waits for something
// from outside (an input, a launch that has not come), or for a run that can. Sessions whose
// participants all cannot are stuck for ever; one of them is poisoned, which lets the others go on.
#ifndef MINIPOD_SIM_RUNTIME_QUIET_H_
#define MINIPOD_SIM_RUNTIME_QUIET_H_

#include "sim/runtime/client_impl.h"

// Called by a worker before it goes to sleep; looks only if it is the last one that was awake and
// something was parked since the last look.
void mp_quiet_check(mp_client_t *client);

#endif  // MINIPOD_SIM_RUNTIME_QUIET_H_
