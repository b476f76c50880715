// What a device is doing at this moment, for tools outside of the program.
//
// A look takes the locks of the device, of its session and of its memory one after the other, each
// for a moment. So it is consistent for each of them, but not between them. Thread-safe; not for
// forked children, where locks may be held for ever.
#ifndef MINIPOD_SIM_RUNTIME_LOOK_LOOK_H_
#define MINIPOD_SIM_RUNTIME_LOOK_LOOK_H_

#include "sim/runtime/devices/device.h"
#include "sim/runtime/memory/memory_stats.h"

typedef enum {
  MP_LOOK_IDLE,     // its stream is empty
  MP_LOOK_BLOCKED,  // its program waits for its arguments, or for the launch on other devices
  MP_LOOK_RUNNING,
  MP_LOOK_WAITING,  // at a collective or for a message: `place`
} mp_look_state_t;

typedef struct {
  mp_look_state_t state;
  uint64_t queued;           // programs in its stream, including the one that runs
  uint64_t completed;        // programs that have finished
  char program[80];          // the first of its stream; "": idle. Cut where it is longer
  char place[160];           // where it waits: "psum (train.py:5:36)"; "" otherwise. Likewise
  mp_memory_stats_t memory;  // of its device memory
} mp_look_t;

// "idle", "blocked", "running" and "waiting".
const char *mp_look_state_name(mp_look_state_t state);
// Whether faults are in force on the pod.
bool mp_look_is_faulty(const mp_client_t *client);
// Looks at a device of this process.
void mp_look(mp_device_t *device, mp_look_t *out_look);

#endif  // MINIPOD_SIM_RUNTIME_LOOK_LOOK_H_
