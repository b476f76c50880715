// The check of one launch (option `check`): compares arguments and results that should be equal on
// several devices.
//
//   arguments there ──▶ compare ──▶ `arguments` is set ──▶ the runs may begin
//   runs over ──▶ compare ──▶ (digests to the other processes and back) ──▶ `done` is set
//
// `arguments` is an additional input of every run of the launch. `done` is the definition of all
// results of the launch, in place of each run's own event. So results of a launch that fails its
// check are never seen, and the error is reported like any other.
//
// Devices of this process are compared byte by byte, devices of other processes by digests, which
// the launch exchanges (launch/launch.c).
//
// Thread-safe and reference-counted. The thread that adds the last array compares.
#ifndef MINIPOD_SIM_RUNTIME_REPLICAS_REPLICA_CHECK_H_
#define MINIPOD_SIM_RUNTIME_REPLICAS_REPLICA_CHECK_H_

#include "sim/runtime/buffers/storage.h"
#include "sim/runtime/devices/event.h"
#include "sim/runtime/replicas/replicas.h"

typedef struct mp_replica_check_s mp_replica_check_t;

typedef struct {
  mp_replicas_t *replicas;  // retained
  uint32_t num_shares;
  const uint32_t *logical;  // [num_shares] the devices of the launch, copied
  uint64_t launch;          // the number of the launch of the program, from 1
  const char *caller;       // "train.py:12", copied; NULL: not known
  bool is_exchanged;        // mp_replica_check_judge will be called
} mp_replica_check_spec_t;

MP_NODISCARD mp_status_t mp_replica_check_create(const mp_replica_check_spec_t *spec,
                                                 mp_replica_check_t **out_check);
// mp_replica_check_retain adds a reference and returns the same; the last mp_replica_check_release
// frees it. NULL has no effect in either.
mp_replica_check_t *mp_replica_check_retain(mp_replica_check_t *check);
void mp_replica_check_release(mp_replica_check_t *check);

// Set when the arguments were compared; borrowed. Only for checks with arguments to compare.
mp_event_t *mp_replica_check_arguments(const mp_replica_check_t *check);
// Set when all is over, with the first error; borrowed.
mp_event_t *mp_replica_check_done(const mp_replica_check_t *check);
// Set when this process has compared its own, before `done` if there are others; borrowed.
mp_event_t *mp_replica_check_compared(const mp_replica_check_t *check);

// The arrays that it compares.
const mp_replicas_t *mp_replica_check_replicas(const mp_replica_check_t *check);
// Adds the array on the device of a share. Its storage is held until the array was compared.
// `ready` (an argument's definition, retained) is set when the bytes are defined; NULL for a
// result. A NULL `storage` (an error buffer) is not compared.
void mp_replica_check_add(mp_replica_check_t *check, uint32_t share, uint32_t array,
                          mp_storage_t *storage, mp_event_t *ready);
// Begins to wait for the arguments. Called after all were added.
void mp_replica_check_begin(mp_replica_check_t *check);
// Counts the run of a share as over when `event` is set. Called before the run may begin.
void mp_replica_check_add_run(mp_replica_check_t *check, mp_event_t *event);
// No further run is added.
void mp_replica_check_end_runs(mp_replica_check_t *check);

// After `compared`: copies the digests of a share's arrays, [num_arrays], for the other processes.
void mp_replica_check_digests(const mp_replica_check_t *check, uint32_t share, uint64_t *out);
// Compares the digests of all devices, [num_devices][num_arrays]; `done` is set after this and
// after `compared`. With an error of the exchange (borrowed) `digests` are not read.
void mp_replica_check_judge(mp_replica_check_t *check, mp_status_t error, const uint64_t *digests);

#endif  // MINIPOD_SIM_RUNTIME_REPLICAS_REPLICA_CHECK_H_
