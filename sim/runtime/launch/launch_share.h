// One device's share of a launch (launch.c): what is done for it under the launch lock.
#ifndef MINIPOD_SIM_RUNTIME_LAUNCH_LAUNCH_SHARE_H_
#define MINIPOD_SIM_RUNTIME_LAUNCH_LAUNCH_SHARE_H_

#include "sim/runtime/buffers/buffer_impl.h"
#include "sim/runtime/launch/launch.h"
#include "sim/runtime/order/faulty.h"
#include "sim/runtime/runs/run.h"

// What a share holds of one argument.
typedef struct {
  mp_take_t take;
  bool is_donated;
  mp_storage_t *storage;  // a hold; NULL: an error buffer, or the hold was given back to the buffer
} mp_launch_argument_t;

// One device's share of a launch.
typedef struct {
  uint32_t logical;
  mp_device_t *device;
  bool is_beside;               // its run uses a side stream
  mp_buffer_t *const *buffers;  // the arguments
  mp_run_t *run;
  uint32_t num_taken;
  uint32_t num_adopted;             // of the taken arguments: lent memory (mp_storage_is_adopted)
  mp_launch_argument_t *arguments;  // [num_params]
  uint32_t num_results;             // made so far
  mp_buffer_t **results;            // [num_results]
  mp_span_t *arena;
} mp_launch_share_t;

// A launch in progress.
typedef struct {
  mp_executable_t *executable;
  const mp_launch_t *launch;
  uint64_t claim;
  mp_order_t order;
  uint32_t num_shares;
  mp_launch_share_t *shares;
  mp_session_t *session;  // when there are several devices and no collectives; else NULL
  mp_label_t arena_label;
  // For the model of time, if there is one:
  mp_stamp_t *inputs;               // [num_shares] the newest transfer that its arguments come from
  mp_model_share_t **model_shares;  // [num_shares]
  mp_replica_check_t *check;        // NULL: nothing is compared
  mp_stamp_t stamp;                 // of the launch; 0: there is none
  uint32_t num_flips;               // of bits, by faults
  mp_faults_flip_t *flips;
} mp_launch_state_t;

// Checks and takes the arguments, and makes the run with the storage of its results. On an error
// the share stays partly prepared, and must be undone if it has a run.
MP_NODISCARD mp_status_t mp_launch_share_prepare(mp_launch_state_t *l, mp_launch_share_t *share);
// Gives everything back except the holds on arguments, of which the first `num_taken` are left to
// the caller: releasing adopted memory calls its owner, which must happen without any lock. Holds
// on donated arguments become the buffers' own again.
void mp_launch_share_undo(mp_launch_share_t *share);
// Puts a share that was prepared into the stream of its device. Cannot fail.
void mp_launch_share_commit(mp_launch_state_t *l, mp_launch_share_t *share);

#endif  // MINIPOD_SIM_RUNTIME_LAUNCH_LAUNCH_SHARE_H_
