// The deadlock proof: finds runs of several launches that wait for each other.
//
// Whether a single launch is stuck can be seen from its session alone (session.h). But launches
// that name single devices can enter the streams of different devices in different orders, so that
// each of two launches waits at a collective for a run that is queued after the other one. Such a
// deadlock is looked for when nothing moves any more: every worker is idle, nothing is runnable,
// and some runs are parked. Then a run can continue only if it waits for something from outside (an
// input, a launch that has not come, another process), or for a run that can continue. If no
// participant of a session can continue, the session is stuck for ever. One such session is
// poisoned, so that the others can continue. Events from outside may move runs during the look:
// such a look proves nothing and is repeated.
#ifndef MINIPOD_SIM_RUNTIME_RUNS_DEADLOCK_H_
#define MINIPOD_SIM_RUNTIME_RUNS_DEADLOCK_H_

#include "sim/runtime/devices/ahead.h"
#include "sim/runtime/devices/device.h"

// Looks for a stuck session and poisons it, if no thread is active and runs were parked or queued
// after others since the last look. Called without locks by each thread that stops working: a
// worker before it goes to sleep, a thread that has launched.
void mp_deadlock_check(mp_client_t *client);

#ifdef MINIPOD_ASSERTS
// For tests: called after each participant that a look has read, with the launch lock held; NULL:
// nothing is called. May be set only while no look is under way.
extern void (*mp_deadlock_at_read)(void);
#endif

// What keeps the first run of the device from continuing by itself, directly or through the streams
// that it waits for: the worst of all reasons. Takes the launch lock.
mp_holdup_t mp_deadlock_find_holdup(mp_device_t *device);

#endif  // MINIPOD_SIM_RUNTIME_RUNS_DEADLOCK_H_
