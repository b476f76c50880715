// Executables: a program placed on devices. launch/launch.h launches them.
//
// Thread-safe and reference-counted; launches in flight hold the executable.
#ifndef MINIPOD_SIM_RUNTIME_RUNS_EXECUTABLE_H_
#define MINIPOD_SIM_RUNTIME_RUNS_EXECUTABLE_H_

#include "sim/chip/memory/chip_memory.h"
#include "sim/foreign/foreign_context.h"
#include "sim/plan/program.h"
#include "sim/runtime/buffers/buffer.h"
#include "sim/runtime/devices/device.h"
#include "sim/runtime/devices/event.h"

typedef struct mp_executable_s mp_executable_t;

// Adopts `program`, also on failure. `assignment[replica * num_partitions + partition]` is the
// global device id; ids must exist and be distinct (else INVALID_ARGUMENT), and may be those of
// other processes. FAILED_PRECONDITION in a forked child and when the client was closed.
MP_NODISCARD mp_status_t mp_executable_create(mp_client_t *client, mp_program_t *program,
                                              const uint32_t *assignment,
                                              mp_executable_t **out_executable);
// mp_executable_retain adds a reference and returns the executable; the last mp_executable_release
// frees it, with its program. NULL has no effect in either.
mp_executable_t *mp_executable_retain(mp_executable_t *executable);
void mp_executable_release(mp_executable_t *executable);

// For tests: what it was made from, borrowed.
const mp_program_t *mp_executable_program(const mp_executable_t *executable);
// How many devices it runs on: num_replicas * num_partitions of the program.
uint32_t mp_executable_num_devices(const mp_executable_t *executable);
// How many of its parameters a launch donates unless `non_donatable` excludes some.
uint32_t mp_executable_num_donatable(const mp_executable_t *executable);
// The device with a logical number (replica * num_partitions + partition), which exists.
mp_device_t *mp_executable_device(const mp_executable_t *executable, uint32_t logical);
// For tests: the logical numbers of the devices that belong to this process, ascending; there may
// be none. Borrowed from the executable.
const uint32_t *mp_executable_local(const mp_executable_t *executable, uint32_t *out_count);

// What a run needs of the described chip's memory; NULL: the client does not model time.
const mp_chip_memory_t *mp_executable_memory(const mp_executable_t *executable);
// Whether the client models time.
bool mp_executable_has_time(const mp_executable_t *executable);
// Then: the seconds that a launch takes (mp_model_program_estimate).
MP_NODISCARD mp_status_t mp_executable_estimate(const mp_executable_t *executable,
                                                double *out_seconds);

// How many seconds the thread that has launched on `num_devices` devices of this process should
// wait for the end of the launch before it continues. Because of this wait, errors and effects of
// callbacks come while the program is called, as on JAX's CPU, and arrays that are compared (option
// `check`) hold memory no longer. 0: do not wait. That is so for programs without callbacks and
// checks, in a job of several processes, if the host's time is the described pod's, and if the
// launch may need this thread. A callback may wait for what the thread does next, so the time is
// short, and is halved after each wait that was in vain.
double mp_executable_patience(const mp_executable_t *executable, uint32_t num_devices);
// Whether it calls functions that may block: Python's.
bool mp_executable_has_callbacks(const mp_executable_t *executable);
// Records whether the launch was over in that time.
void mp_executable_note_wait(mp_executable_t *executable, bool was_over);

// The number of unfinished runs of this process whose programs call functions that may block.
uint32_t mp_executable_num_blocking_runs(void);

#endif  // MINIPOD_SIM_RUNTIME_RUNS_EXECUTABLE_H_
