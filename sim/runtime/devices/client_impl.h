// The insides of clients and devices, for the rooms of sim/runtime.
#ifndef MINIPOD_SIM_RUNTIME_DEVICES_CLIENT_IMPL_H_
#define MINIPOD_SIM_RUNTIME_DEVICES_CLIENT_IMPL_H_

#include <stdatomic.h>

#include "sim/base/os/lock.h"
#include "sim/model/clock/model.h"
#include "sim/model/faults/faults.h"
#include "sim/runtime/devices/device.h"
#include "sim/runtime/devices/runner.h"
#include "sim/runtime/memory/memory.h"

typedef struct mp_run_s mp_run_t;
typedef struct mp_launches_s mp_launches_t;
typedef struct mp_endpoint_s mp_endpoint_t;
typedef struct mp_watch_s mp_watch_t;
typedef struct mp_pacer_s mp_pacer_t;
typedef struct mp_core_queue_s mp_core_queue_t;
typedef struct mp_workers_s mp_workers_t;

// Who has the first run of a device's stream: exactly one of these at any time
// (sim/runtime/README.md, invariant 2). Only debug and sanitizer builds keep it, for their checks.
typedef enum {
  MP_OWNER_BLOCKERS,  // what it waits for; also while the stream is empty
  MP_OWNER_LIST,      // a list on its way to a queue, or the own list of an inline run
  MP_OWNER_QUEUE,     // the queue of its core group
  MP_OWNER_WORKER,    // a worker or inline run executes it
  MP_OWNER_SESSION,   // it is parked
  MP_OWNER_CALL,      // a call that may block is out for it
} mp_run_owner_t;

struct mp_device_s {
  mp_client_t *client;
  uint32_t id;
  bool is_local;  // it belongs to this process; otherwise the fields below `info` are not used
  const mp_pod_device_t *info;
  mp_core_queue_t *queue;  // of its core group: where it is put when it is runnable
  mp_memory_t *memories;   // [MP_MEMORY_SPACE_COUNT]

  // The stream: runs in order. The first one is the only one that may execute.
  mp_lock_t lock;
  // MP_QUEUE; under the lock, but whoever has the first run may read `first` without.
  mp_run_t *first, *last;
  uint64_t enqueued;           // number of the newest run; under the client's launch lock
  _Atomic uint64_t completed;  // number of the newest run that is over
  // Runs in the stream that may make calls that block, or wait for a run that may (launch/call.h),
  // and the thread that has launched all of these (mp_launching_thread).
  atomic_uint num_behind_call;
  _Atomic uint64_t behind_call_of;

  atomic_uint num_beside;  // runs beside the stream (order/side_stream.h) that are not over

  // Of a side stream (order/side_stream.h), which is a device in all but its memories: these are
  // those of the device that it belongs to. In the client's list, under the launch lock.
  mp_device_t *next_side;
  bool is_calling;  // it is for programs that make calls which one thread has launched
  // How far launches are ahead (ahead.h): runs in the stream, and the bytes that they read and
  // write. Changed under the lock, read without.
  _Atomic uint32_t num_ahead;
  _Atomic uint64_t bytes_ahead;
  // What mp_device_completed was, plus 1, when a thread has waited in vain for an input:
  // until a run is over, nobody waits for that again. 0: never.
  _Atomic uint64_t waited_in_vain;
  uint32_t num_waiters;   // threads that wait for a place in the stream
  atomic_uint num_moves;  // their futex word; changed under the lock
  // Which look of deadlock.c has found the device, and the next one that it found; under the
  // client's launch lock.
  uint64_t looked;
  mp_device_t *next_looked;

  mp_device_t *next_runnable;  // in a core queue or a worker's own list
#ifdef MINIPOD_ASSERTS
  atomic_uint owner;  // mp_run_owner_t
#endif
};

// What the rooms of the runtime need of a client. What only some of them look into stands behind a
// pointer, and is an object of that room.
struct mp_client_s {
  atomic_int references;  // of users: the last one stops the workers
  atomic_int holds;       // of users together, buffers, executables, workers: the last one frees
  uint32_t generation;    // mp_process_generation() when it was made: to notice a fork
  const mp_runner_t *runner;  // what rooms above do for those below

  mp_workers_t *workers;      // the threads and what they work on (workers/workers.h)
  mp_launches_t *launches;    // what its launches share (order/launch_order.h)
  atomic_bool is_stopping;    // set under the launch lock when the client ends, and never cleared
  atomic_bool is_faulty;      // there are faults
  atomic_uint num_launching;  // threads in a launch (launching.h); the end waits on it as a futex
  bool shapes_only;           // programs run for their shapes alone (launch/shapes.h)
  mp_model_t *model;          // of time; NULL: no virtual times are kept
  mp_pacer_t *pacer;          // keeps real time behind virtual time; NULL: nothing does
  mp_faults_t *faults;        // dead and slow devices and links (order/faulty.h)

  mp_pod_t *pod;
  uint32_t num_devices;
  mp_device_t *devices;
  uint32_t first_local, num_local;

  mp_memory_t *memories;      // of the local devices
  mp_memory_budget_t budget;  // of all memories: this process's share of the machine
  uint32_t num_pool_nodes;    // NUMA nodes whose devices share capacities (-1 counts as one)
  mp_memory_pool_t (*pools)[MP_MEMORY_SPACE_COUNT];  // [num_pool_nodes] of each such node

  // Of a job of several processes; NULL: the process is alone.
  mp_world_t *world;        // borrowed
  mp_endpoint_t *endpoint;  // where packets come in (remote/router.h)
  mp_watch_t *watch;        // looks after waits for other processes (watch/watch.h)
  double timeout_s;         // how long other processes are waited for; 0: for ever
};

// Objects that outlive the user's last reference hold the client's memory, not its threads:
// mp_client_hold adds a hold, and the last mp_client_unhold has the client freed (in a forked child
// nothing is freed).
void mp_client_hold(mp_client_t *client);
void mp_client_unhold(mp_client_t *client);
// True in a child of the process that made the client. Locks may be held for ever there: take none.
bool mp_client_is_forked(const mp_client_t *client);
// True when the client ends: workers and launches come to a stop.
static inline bool mp_client_is_stopping(const mp_client_t *client) {
  return atomic_load_explicit(&client->is_stopping, memory_order_acquire);
}
// The NUMA node that the device's memories shall be bound to; -1 when there is nothing to choose.
int32_t mp_client_numa_node(const mp_client_t *client, const mp_device_t *device);

// The first run of the device goes from one owner to the next; checked in debug and sanitizer
// builds. While the client stops, runs are ended wherever they are, so nothing is checked.
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

#endif  // MINIPOD_SIM_RUNTIME_DEVICES_CLIENT_IMPL_H_
