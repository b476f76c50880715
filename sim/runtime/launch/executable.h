// Executables: a program placed on devices, and its launches.
//
// Thread-safe and reference-counted; launches in flight hold the executable.
#ifndef MINIPOD_SIM_RUNTIME_LAUNCH_EXECUTABLE_H_
#define MINIPOD_SIM_RUNTIME_LAUNCH_EXECUTABLE_H_

#include "sim/plan/program.h"
#include "sim/runtime/buffers/buffer.h"
#include "sim/runtime/devices/client.h"
#include "sim/runtime/devices/event.h"

typedef struct mp_executable_s mp_executable_t;

// Adopts `program`, also on failure. `assignment[replica * num_partitions + partition]` is the
// global device id; ids must exist and be distinct, and may be those of other processes.
MP_NODISCARD mp_status_t mp_executable_create(mp_client_t *client, mp_program_t *program,
                                              const uint32_t *assignment,
                                              mp_executable_t **out_executable);
mp_executable_t *mp_executable_retain(mp_executable_t *executable);
void mp_executable_release(mp_executable_t *executable);

mp_client_t *mp_executable_client(const mp_executable_t *executable);
const mp_program_t *mp_executable_program(const mp_executable_t *executable);
// num_replicas * num_partitions of them, in logical order.
uint32_t mp_executable_num_devices(const mp_executable_t *executable);
mp_device_t *mp_executable_device(const mp_executable_t *executable, uint32_t logical);
// The logical numbers of those that belong to this process, ascending; there may be none.
const uint32_t *mp_executable_local(const mp_executable_t *executable, uint32_t *out_count);

typedef struct {
  // The logical devices of this process to run on, each with its arguments. NULL: all of this
  // process, in order. Other processes launch the program on theirs. A launch of some
  // of them only (one at a time, from one thread or many) meets the others' launches at
  // collectives: the n-th launch on each device belongs together. One that is refused counts too,
  // and those that belong to it fail.
  uint32_t num_devices;
  const uint32_t *logical;
  mp_buffer_t *const *const *arguments;  // [num_devices][num_params], borrowed
  uint32_t num_non_donatable;
  const int64_t *non_donatable;  // parameter numbers that must not be donated this time
} mp_launch_t;

// Checks the arguments (count, type, memory, device, deleted, donated twice), gives out the
// results' storage and enqueues on all devices under one lock; returns at once. On error nothing is
// stored and nothing runs. `out_results[i][r]` are new buffers owned by the caller; `out_done` may
// be NULL or receives one event per device. Failures while running come out of these events and of
// the results' definitions, on all participants, with the first cause.
MP_NODISCARD mp_status_t mp_executable_launch(mp_executable_t *executable,
                                              const mp_launch_t *launch,
                                              mp_buffer_t **const *out_results,
                                              mp_event_t **out_done);
// In place of a launch that the caller cannot make: it counts, and what other devices, of this
// process and of others, launch to meet it fails with `error` (borrowed). Only `logical` and
// `num_devices` of `launch` are looked at.
void mp_executable_refuse(mp_executable_t *executable, const mp_launch_t *launch,
                          mp_status_t error);

#endif  // MINIPOD_SIM_RUNTIME_LAUNCH_EXECUTABLE_H_
