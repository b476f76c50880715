// Functions of upper rooms that lower rooms of the runtime call. sim/runtime/client.c provides
// them.
#ifndef MINIPOD_SIM_RUNTIME_DEVICES_RUNNER_H_
#define MINIPOD_SIM_RUNTIME_DEVICES_RUNNER_H_

#include <stdbool.h>

#include "sim/runtime/devices/ahead.h"

typedef struct mp_client_s mp_client_t;
typedef struct mp_device_s mp_device_t;
typedef struct mp_run_s mp_run_t;
typedef struct mp_worker_s mp_worker_t;

typedef struct {
  // ---- For workers, which know only how to queue devices (runs/run.h, runs/deadlock.h) ----
  // Runs the first run of a device that the worker took from a queue.
  void (*run)(mp_worker_t *self, mp_device_t *device);
  // True when this inline worker should run the first run of the device.
  bool (*is_inline)(const mp_device_t *device, const mp_worker_t *inline_worker);
  // Called by a worker that has found no work, before it sleeps. If the other workers have none
  // either, launches may be waiting for each other.
  void (*look_for_deadlock)(mp_client_t *client);

  // ---- For sessions, which hold runs but do not look into them (runs/call.h) ---- Runs the
  // first runs of devices, linked by `next_runnable`, which belong to one launch and were resumed
  // on a thread that is no worker; or leaves them to workers. Called without locks, by a thread
  // that holds the client.
  void (*go_on)(mp_client_t *client, mp_device_t *first);
  // True when the run waits for a foreign function. Its session's lock may be held.
  bool (*is_out)(const mp_run_t *run);

  // ---- For threads that wait for a place (ahead.h) ---- What keeps the first run of the device
  // from continuing by itself. Called without locks.
  mp_holdup_t (*find_holdup)(mp_device_t *device);

  // ---- For the watch (circles/circle.h) ----
  // Called regularly: looks for circles of waits between processes.
  void (*probe)(mp_client_t *client);
  // Called when inquiries of other processes have come.
  void (*answer)(mp_client_t *client);

  // ---- For the end of a client (client.h) ----
  // The second half of mp_client_release: stops the threads, cancels what is left, gives back the
  // users' hold. Called once, when no user has a reference any more, by the thread that released
  // the last one or by the watch.
  void (*end)(mp_client_t *client);
  // Frees the client, which has no references any more.
  void (*destroy)(mp_client_t *client);
} mp_runner_t;

#endif  // MINIPOD_SIM_RUNTIME_DEVICES_RUNNER_H_
