// Runs: one launch of a program on one device.
//
// A run is a state machine: a command number, an arena, and pointers to parameters and results. It
// is *blocked* (earlier runs of the device, or inputs, are not there yet), *runnable* (its device
// is in a core queue), *running* (a worker executes its commands), *parked* (at a meeting point of
// its session) or *over*. sim/runtime/README.md has the picture.
//
// Whoever removes the last blocker makes the device runnable. Only the worker that took the device
// from the queue touches a running run; it gives the run away by parking, yielding or ending it.
#ifndef MINIPOD_SIM_RUNTIME_LAUNCH_RUN_H_
#define MINIPOD_SIM_RUNTIME_LAUNCH_RUN_H_

#include "sim/runtime/buffers/storage.h"
#include "sim/runtime/launch/executable_impl.h"
#include "sim/runtime/launch/session.h"

// A donated parameter that could not be taken over: copied to its result before the run begins.
typedef struct {
  void *to;
  const void *from;
  uint64_t bytes;
} mp_prologue_copy_t;

struct mp_run_s {
  atomic_int references;        // the stream's, and one per input that is waited for
  mp_executable_t *executable;  // retained
  mp_device_t *device;
  mp_session_t *session;  // retained; NULL: alone in the world
  uint32_t logical;
  uint64_t number;                   // in its device's stream
  mp_run_t *next;                    // in the stream
  atomic_int blockers;               // earlier runs (together 1), pending inputs, the launch itself
  _Atomic(mp_status_t) error;        // of a failed input, when there is no session
  const mp_worker_t *inline_worker;  // the launching thread, if it runs this itself

  uint32_t pc;
  bool is_started;
  char *arena;
  mp_event_t *event;    // set at the end; the results' definition
  const void **params;  // [num_params]
  void **results;       // [num_results]
  uint32_t num_copies, num_holds;
  mp_prologue_copy_t *copies;
  mp_storage_t **holds;    // storages that stream order does not protect
  const void **inputs;     // [executable->max_operands] of the command at hand
  void **outputs;          // [executable->max_results]
  mp_arrival_t arrival;    // while at a meeting: collective is NULL else
  mp_receiver_t receiver;  // while parked
};

// A run with room for its arrays, zeroed; `max_holds` and `max_copies` are what the launch may fill
// in. Retains executable and session.
MP_NODISCARD mp_status_t mp_run_create(mp_executable_t *executable, uint32_t logical,
                                       mp_run_t **out_run);
mp_run_t *mp_run_retain(mp_run_t *run);
void mp_run_release(mp_run_t *run);

// Appends to its device's stream, which takes the caller's reference. Under the launch lock.
void mp_run_enqueue(mp_run_t *run);
// Adds `event` to what the run waits for; its failure is the run's.
void mp_run_wait_for(mp_run_t *run, mp_event_t *event);
// Removes one blocker; when it was the last one, the device goes onto `runnable`.
void mp_run_unblock(mp_run_t *run, mp_device_list_t *runnable);

mp_device_t *mp_run_device(const mp_run_t *run);
// True when the first run of the device is to be run by this inline worker.
bool mp_run_is_inline(const mp_device_t *device, const mp_worker_t *inline_worker);

// Why mp_run_commands came back.
typedef enum {
  MP_STEP_GO_ON,    // (not a reason)
  MP_STEP_PARKED,   // at a meeting point: the run belongs to whoever resumes it
  MP_STEP_YIELDED,  // at a back edge: others wait, or the run has to end
  MP_STEP_OVER,
} mp_step_t;

// Executes commands from run->pc on (commands.c).
MP_NODISCARD mp_status_t mp_run_commands(mp_worker_t *self, mp_run_t *run, mp_step_t *out_step);

// Runs the first run of a device that the caller took from a queue.
void mp_run_continue(mp_worker_t *self, mp_device_t *device);
// Ends it, well or badly (consumes `status`): gives everything back, lets the next run of the
// device go, and sets the event.
void mp_run_end(mp_run_t *run, mp_status_t status);

#endif  // MINIPOD_SIM_RUNTIME_LAUNCH_RUN_H_
