// Launches: runs of an executable on its devices, made of arguments.
//
// Thread-safe; launches in flight hold the executable.
#ifndef MINIPOD_SIM_RUNTIME_LAUNCH_LAUNCH_H_
#define MINIPOD_SIM_RUNTIME_LAUNCH_LAUNCH_H_

#include "sim/runtime/runs/executable.h"
#include "sim/runtime/runs/shapes.h"

typedef struct {
  // The logical devices of this process to run on, each with its arguments. `logical` NULL: all
  // devices of this process, in order. Other processes launch the program on their own devices. A
  // launch that names only some devices (one at a time, from one thread or many) meets launches on
  // the others at collectives: the n-th launches on each device belong together. A launch that is
  // refused counts too, and the launches that belong to it fail.
  uint32_t num_devices;                  // not used when `logical` is NULL
  const uint32_t *logical;               // [num_devices]
  mp_buffer_t *const *const *arguments;  // [num_devices][num_params], borrowed
  uint32_t num_non_donatable;
  const int64_t *non_donatable;   // parameter numbers that must not be donated this time
  mp_foreign_context_t *context;  // what foreign functions can look up; NULL: nothing
  // Where the program is called from ("train.py:12", "blocks.0.up at train.py:12"), for reports and
  // for messages about a launch that waits for other processes; borrowed. NULL: unknown.
  const char *caller;
  // The processes that the launch is meant for, as the caller's coordinator describes them
  // (mp_endpoint_mean); borrowed, [num_tasks].
  size_t num_tasks;
  const int *task_ids;
  const int64_t *incarnation_ids;
  int64_t traced;      // the caller's profiler's number of this call; 0: none
  mp_others_t others;  // what processes that do not exist bring to its collectives
  // Whether an argument may have another shape than its parameter, with the same element type and
  // number of bytes. Its elements are then read in row-major order.
  bool takes_other_shapes;
} mp_launch_t;

// Checks the arguments (type, memory, device, deleted, donated twice), allocates the results'
// storage and enqueues the program on all devices under one lock. Returns without waiting for the
// program, but runs a short one before it returns (inline_run.h), and a thread that is far ahead of
// the devices waits first until they have a place for one more run (devices/ahead.h). On an error
// nothing is stored and nothing runs: INVALID_ARGUMENT, RESOURCE_EXHAUSTED, or FAILED_PRECONDITION
// in a forked child and when the client was closed. `out_results[i][r]` are new buffers owned by
// the caller; `out_done` may be NULL, or receives one event per device, owned by the caller.
// Failures of the running program are reported by these events and by the results' definitions, on
// all participants, with the first cause.
MP_NODISCARD mp_status_t mp_executable_launch(mp_executable_t *executable,
                                              const mp_launch_t *launch,
                                              mp_buffer_t **const *out_results,
                                              mp_event_t **out_done);
// For a caller that reports a refused launch only through its results: returns what
// mp_executable_launch would have returned, as buffers and events that have failed with `error`
// (borrowed). The arguments stay as they are, the donated ones too. RESOURCE_EXHAUSTED when memory
// is short.
MP_NODISCARD mp_status_t mp_executable_fail(mp_executable_t *executable, const mp_launch_t *launch,
                                            mp_status_t error, mp_buffer_t **const *out_results,
                                            mp_event_t **out_done);
// Called in place of a launch that the caller cannot make: the launch counts, and the launches on
// other devices that belong to it, in this process and in others, fail with `error` (borrowed).
// Only `logical` and `num_devices` of `launch` are read.
void mp_executable_refuse(mp_executable_t *executable, const mp_launch_t *launch,
                          mp_status_t error);

#endif  // MINIPOD_SIM_RUNTIME_LAUNCH_LAUNCH_H_
