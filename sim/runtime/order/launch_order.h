// What all launches of a client share: the launch lock and what is under it.
#ifndef MINIPOD_SIM_RUNTIME_ORDER_LAUNCH_ORDER_H_
#define MINIPOD_SIM_RUNTIME_ORDER_LAUNCH_ORDER_H_

#include "sim/base/os/lock.h"
#include "sim/base/status.h"

typedef struct mp_device_s mp_device_t;
typedef struct mp_device_set_s mp_device_set_t;

// The progress of the checks that launches do (runs/client_check.h).
typedef struct {
  uint64_t number;  // of the current check
  uint64_t debt;    // steps beyond their share that earlier launches did; the next ones do fewer
  uint32_t next;    // number of the next item to check
} mp_client_check_t;

typedef struct mp_launches_s {
  // The launch lock. Launches enter all their devices' streams under it, so that any two launches
  // have the same order on all devices they share. It protects all following fields.
  mp_lock_t lock;
  mp_device_set_t *sets;  // owned
  uint64_t num_launches;  // numbers the launches, for claims on donated buffers
  mp_device_t *sides;     // owned; side streams (side_stream.h)
  bool has_blocked;       // a program that makes calls was launched
  uint64_t num_looks;     // of runs/deadlock.c
#ifdef MINIPOD_ASSERTS
  mp_client_check_t check;
#endif
} mp_launches_t;

// Makes what a new client's launches will share. RESOURCE_EXHAUSTED when memory is short.
MP_NODISCARD mp_status_t mp_launches_create(mp_launches_t **out_launches);
// Frees it with its device sets and side streams, whose runs are over. NULL: nothing.
void mp_launches_destroy(mp_launches_t *launches);

#endif  // MINIPOD_SIM_RUNTIME_ORDER_LAUNCH_ORDER_H_
