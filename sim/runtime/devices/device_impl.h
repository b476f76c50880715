// The insides of devices, for the rooms of sim/runtime.
#ifndef MINIPOD_SIM_RUNTIME_DEVICES_DEVICE_IMPL_H_
#define MINIPOD_SIM_RUNTIME_DEVICES_DEVICE_IMPL_H_

#include <stdatomic.h>

#include "sim/base/os/lock.h"
#include "sim/runtime/devices/client_impl.h"

typedef struct mp_core_queue_s mp_core_queue_t;
typedef struct mp_run_s mp_run_t;

// The owner of the first run of a device's stream: exactly one of these at any time
// (sim/runtime/README.md, invariant 2). Only debug and sanitizer builds keep it, for their checks.
typedef enum {
  MP_OWNER_BLOCKERS,  // its blockers; also while the stream is empty
  MP_OWNER_LIST,      // a list that will be queued, or the own list of an inline run
  MP_OWNER_QUEUE,     // the queue of its core group
  MP_OWNER_WORKER,    // a worker or inline run executes it
  MP_OWNER_SESSION,   // its session, because it is parked
  MP_OWNER_CALL,      // a call that may block
} mp_run_owner_t;

struct mp_device_s {
  mp_client_t *client;
  uint32_t id;
  bool is_local;  // it belongs to this process; otherwise the fields below `info` are not used
  const mp_pod_device_t *info;
  mp_core_queue_t *queue;  // of its core group: it is queued here when it is runnable
  mp_memory_t *memories;   // [MP_MEMORY_SPACE_COUNT]
  mp_lock_t buffers_lock;  // of all buffers in them

  // The stream: runs in order. The first one is the only one that may execute.
  mp_lock_t lock;
  // MP_QUEUE; under the lock, but the owner of the first run may read `first` without.
  mp_run_t *first, *last;
  uint64_t enqueued;  // number of the newest run; under the client's launch lock
  // Number of the newest run that is over. Written under the lock, so it grows in steps of one;
  // read by all threads, to which it publishes what that run and those before it did (run.c).
  _Atomic uint64_t completed;
  // Runs in the stream that may make calls that block, or wait for a run that may (runs/call.h),
  // and the thread that has launched all of these (mp_launching_thread). Incremented under the
  // launch lock and the device's lock, so a launch that holds the launch lock never reads too few;
  // the guess before a launch reads them without a lock.
  atomic_uint num_behind_call;
  _Atomic uint64_t behind_call_of;

  // Unfinished runs in side streams (order/side_stream.h). Used only for the bound; threads that
  // wait for a place sleep on it for a moment, and are not woken (ahead.c).
  atomic_uint num_beside;

  // For side streams (order/side_stream.h), which are devices that share the memories of the device
  // they belong to: the link of the client's list, under the launch lock.
  mp_device_t *next_side;
  bool is_calling;  // it is for programs with calls that one thread has launched
  // How far launches are ahead (ahead.h): runs in the stream, and the bytes that they read and
  // write. Changed under the lock, read without.
  _Atomic uint32_t num_ahead;
  _Atomic uint64_t bytes_ahead;
  // mp_device_completed + 1 at the time when a thread has waited in vain for an input: until the
  // next run is over, no thread waits for that again. 0: never.
  _Atomic uint64_t waited_in_vain;
  uint32_t num_waiters;   // threads that wait for a place in the stream
  atomic_uint num_moves;  // their futex word; changed under the lock
  // The look of deadlock.c that has found the device, and the next device that it found; under the
  // client's launch lock.
  uint64_t looked;
  mp_device_t *next_looked;

  mp_device_t *next_runnable;  // in a core queue or a worker's own list
#ifdef MINIPOD_ASSERTS
  atomic_uint owner;  // mp_run_owner_t
#endif
};

// Passes the first run of the device from one owner to the next; checked in debug and sanitizer
// builds. While the client stops, runs are ended in any state, so nothing is checked.
static inline void mp_device_hand_over(mp_device_t *device, mp_run_owner_t from,
                                       mp_run_owner_t to) {
#ifdef MINIPOD_ASSERTS
  const unsigned was = atomic_exchange(&device->owner, to);
  MP_ASSERT_MSG(was == from || mp_client_is_stopping(device->client),
                "device %u: its run goes from owner %u to %u, but %u had it", device->id,
                (unsigned)from, (unsigned)to, was);
#else
  (void)device, (void)from, (void)to;
#endif
}

// The number of the newest run of the device that is over.
static inline uint64_t mp_device_completed(const mp_device_t *device) {
  return atomic_load_explicit(&device->completed, memory_order_acquire);
}

#endif  // MINIPOD_SIM_RUNTIME_DEVICES_DEVICE_IMPL_H_
