// How far launches run ahead of their devices.
//
// Launching is much faster than computing, and every run that is queued holds memory. So a stream
// accepts a bounded number of runs ahead; then the launching thread waits for a place. It waits
// before it takes any lock or memory, so no other thread waits for it. Places are not reserved:
// several threads that wait for one place may exceed the bound by one each.
//
// The bound must not stop a program that would run without it. The waiting thread may be the one
// that has to act next: to launch the share of another device, to write an input, to answer a
// process. So it waits as long as the stream can move by itself, and otherwise exceeds the bound:
//
//   what holds up the stream, directly or through         the thread that launches
//   the streams that its first run waits for
//   --------------------------------------------------- ------------------------------------------
//   nothing: it computes                                  waits for a place
//   a launch that has not come to some device             goes on at once
//   a foreign function or another process                 goes on when nothing has moved for 100 ms
// an input                                              the same, but then no thread waits any more
//                                                         before a run of the device is over
//
// Launches in side streams (side_stream.h) have a bound of the same size of their own.
//
// Some threads never wait: workers, threads in a callback of an event, and those that
// mp_launching_exempt (launching.h) has exempted.
#ifndef MINIPOD_SIM_RUNTIME_DEVICES_AHEAD_H_
#define MINIPOD_SIM_RUNTIME_DEVICES_AHEAD_H_

#include <stdbool.h>

typedef struct mp_device_s mp_device_t;

enum {
  MP_AHEAD_RUNS = 32,          // runs that a stream accepts: one that executes, the others after it
  MP_AHEAD_FEW = 4,            // accepted however large they are
  MP_AHEAD_BYTES = 256 << 20,  // of the arguments and results of more than these few
};

// What holds up a stream, in increasing order; the worst reason counts. The function comes from
// mp_runner_t.
typedef enum {
  MP_HOLDUP_NOTHING,  // it moves by itself, or a run has just ended
  MP_HOLDUP_CALL,     // a foreign function or another process
  MP_HOLDUP_INPUT,    // an input, which the thread that launches may have to write
  MP_HOLDUP_LAUNCH,   // a launch that has not come to one of the devices
} mp_holdup_t;

// True when the stream accepts one more run. Takes no lock.
bool mp_ahead_has_place(const mp_device_t *device);
// Waits until the device has a place in its stream, or must not be waited for. Returns early when
// the client is being closed. Called without locks, by threads that mp_launching_may_wait. The
// devices of one launch usually move together: `*has_looked` is true if another of them was just
// found to move by itself; then this one gets a moment before it is checked.
void mp_ahead_await(mp_device_t *device, bool *has_looked);

// The same for a launch in side streams (side_stream.h): the device accepts as many of these too.
// They wait only for inputs, so no search for the reason is needed: the thread continues when none
// has ended for 100 ms.
bool mp_ahead_has_place_beside(const mp_device_t *device);
void mp_ahead_await_beside(mp_device_t *device);

// True when a thread that waits for this device should be woken, now that a run of it is over. The
// caller holds the device's lock.
bool mp_ahead_is_awaited(const mp_device_t *device);

#endif  // MINIPOD_SIM_RUNTIME_DEVICES_AHEAD_H_
