// The deadlock proof: runs of several launches that wait for each other.
//
// That a single launch is stuck shows in its session alone (session.h). But launches that name
// single devices can be entered in different orders on different devices, so that each of two
// launches waits at a collective for a run that is queued behind the other one. That shows when
// nothing moves any more: every worker is idle, nothing is runnable, and some runs are parked. Then
// a run can go on only if it waits for something from outside (an input, a launch that has not
// come, another process), or for a run that can go on. A session none of whose participants can go
// on is stuck for ever; one such session is poisoned, which lets the others go on. What comes from
// outside may move runs while they are looked at: such a look proves nothing and is made again.
#ifndef MINIPOD_SIM_RUNTIME_LAUNCH_DEADLOCK_H_
#define MINIPOD_SIM_RUNTIME_LAUNCH_DEADLOCK_H_

#include "sim/runtime/devices/ahead.h"
#include "sim/runtime/devices/device.h"

// Looks for a stuck session and poisons it, if nobody is at work and runs were parked or queued
// behind others since the last look. Called without locks by whoever stops working: a worker before
// it goes to sleep, a thread that has launched.
void mp_deadlock_check(mp_client_t *client);

#ifdef MINIPOD_ASSERTS
// For tests: called after each participant that a look has read, with the launch lock held; NULL:
// nothing. Set while nobody looks.
extern void (*mp_deadlock_at_read)(void);
#endif

// What keeps the first run of the device from going on by itself, directly or through the streams
// that it waits for; the worst of it. Takes the launch lock.
mp_holdup_t mp_deadlock_find_holdup(mp_device_t *device);

#endif  // MINIPOD_SIM_RUNTIME_LAUNCH_DEADLOCK_H_
