// The insides of clients, for the rooms of sim/runtime.
#ifndef MINIPOD_SIM_RUNTIME_DEVICES_CLIENT_IMPL_H_
#define MINIPOD_SIM_RUNTIME_DEVICES_CLIENT_IMPL_H_

#include <stdatomic.h>

#include "sim/base/os/lock.h"
#include "sim/model/clock/model.h"
#include "sim/model/faults/faults.h"
#include "sim/runtime/devices/device.h"
#include "sim/runtime/devices/runner.h"
#include "sim/runtime/memory/memory.h"
#include "sim/runtime/memory/run_region.h"

typedef struct mp_launches_s mp_launches_t;
typedef struct mp_endpoint_s mp_endpoint_t;
typedef struct mp_watch_s mp_watch_t;
typedef struct mp_circles_s mp_circles_t;
typedef struct mp_pacer_s mp_pacer_t;
typedef struct mp_workers_s mp_workers_t;

// What the rooms of the runtime need of a client. The state of a single room is an object of that
// room behind a pointer.
struct mp_client_s {
  atomic_int references;  // of users: the last one stops the workers
  atomic_int holds;     // of all users (as one), buffers, executables, workers: the last one frees
  uint32_t generation;  // mp_process_generation() when it was made: to notice a fork
  const mp_runner_t *runner;  // functions of rooms above for those below

  mp_workers_t *workers;      // the threads and what they work on (workers/workers.h)
  mp_launches_t *launches;    // what its launches share (order/launch_order.h)
  atomic_bool is_stopping;    // set under the launch lock when the client ends, and never cleared
  atomic_bool is_faulty;      // there are faults; set under the launch lock, read without (reach.h)
  atomic_uint num_launching;  // threads in a launch (launching.h); the end waits on it as a futex
  bool matches_groups;        // launches are counted per group of devices (runs/partners.h)
  bool checks_replicas;       // launches compare arrays that should be equal on several devices
  double callback_wait;       // seconds that launches of programs with calls wait for their end
  bool shapes_only;           // programs run for their shapes alone (runs/shapes.h)
  mp_regions_t regions;       // where such programs run
  mp_absent_mode_t
      absent;              // the result of reading values that were not computed (buffers/absent.h)
  int32_t unknown_branch;  // the branch taken if its condition was not computed (runs/shapes.h)
  int64_t unknown_trip_count;
  atomic_bool has_told_absent;  // the first such read was reported
  mp_model_t *model;            // the model of time; NULL: no virtual times are kept
  mp_pacer_t *pacer;            // keeps real time behind virtual time; NULL: nothing does
  mp_faults_t *faults;          // dead and slow devices and links (order/faulty.h)

  mp_pod_t *pod;
  uint32_t num_devices;
  mp_device_t *devices;
  uint32_t first_local, num_local;

  mp_memory_t *memories;      // of the local devices
  mp_memory_budget_t budget;  // for all memories: this process's share of the machine
  uint32_t num_pool_nodes;    // NUMA nodes whose devices share capacities (-1 counts as one)
  mp_memory_pool_t (*pools)[MP_MEMORY_SPACE_COUNT];  // [num_pool_nodes] of each such node

  bool is_for_all;  // the other processes of its job do not exist, and it stands for them

  // Of a job of several processes; NULL: the process is alone.
  mp_world_t *world;        // borrowed
  uint64_t number;          // the client's in its world
  mp_endpoint_t *endpoint;  // receives packets (remote/router.h)
  mp_watch_t *watch;        // watches waits for other processes (watch/watch.h)
  mp_circles_t *circles;    // finds circles of such waits (circles/circle.h)
  double timeout_s;         // how long to wait for other processes; 0: for ever
};

// Objects that outlive the user's last reference hold the client's memory, not its threads:
// mp_client_hold adds a hold, and the last mp_client_unhold frees the client (except in a forked
// child).
void mp_client_hold(mp_client_t *client);
void mp_client_unhold(mp_client_t *client);
// True in a child of the process that made the client. Locks may be held for ever there: take none.
bool mp_client_is_forked(const mp_client_t *client);
// True when the client ends: workers and launches come to a stop.
static inline bool mp_client_is_stopping(const mp_client_t *client) {
  // Checked in every loop. Acquire suffices for callers that merely may stop; threads that must not
  // miss the flag, or must not be missed, load it sequentially consistently (job.c, launching.c).
  return atomic_load_explicit(&client->is_stopping, memory_order_acquire);
}
// The NUMA node to bind the device's memories to; -1: none.
int32_t mp_client_numa_node(const mp_client_t *client, const mp_device_t *device);

#endif  // MINIPOD_SIM_RUNTIME_DEVICES_CLIENT_IMPL_H_
