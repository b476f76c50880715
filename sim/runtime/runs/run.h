// Runs: one launch of a program on one device.
//
// A run is a state machine: a command number, an arena, and pointers to parameters and results. At
// any time it is in one of these states (sim/runtime/README.md has the picture):
//
//   blocked   earlier runs of the device, inputs, or the launch itself are not done (`blockers`)
//   runnable  its device is in the queue of its core group, or on the launching thread's own list
//   running   a worker, or the launching thread, executes its commands
//   parked    it waits at a meeting point of its session
//   out it waits for a foreign function (call.h)
//   over      it is out of the stream, and its event is set
//
// The thread that removes the last blocker makes the device runnable. Only the thread that took the
// device from the queue touches a running run; that thread gives the run away by parking it, by
// yielding or by ending it. Fields without a remark are written before the launch removes its own
// blocker, and only read afterwards, so they need no lock.
#ifndef MINIPOD_SIM_RUNTIME_RUNS_RUN_H_
#define MINIPOD_SIM_RUNTIME_RUNS_RUN_H_

#include "sim/runtime/buffers/storage.h"
#include "sim/runtime/runs/call.h"
#include "sim/runtime/runs/executable_impl.h"
#include "sim/runtime/runs/shapes.h"
#include "sim/runtime/sessions/session.h"
#include "sim/runtime/sessions/talks.h"

// If a donated parameter's memory could not be taken over, its result has its own memory. The
// parameter's bytes are copied there before the first command.
typedef struct {
  void *to;
  const void *from;
  uint64_t bytes;
} mp_prologue_copy_t;

struct mp_run_s {
  atomic_int references;        // the stream's, and one per input that is waited for
  mp_executable_t *executable;  // retained
  mp_device_t *device;
  mp_session_t *session;          // retained; NULL: one device and no collectives
  uint32_t logical;               // number of the device in the executable
  mp_foreign_context_t *context;  // retained; NULL: none
  mp_others_t others;             // what processes that do not exist bring
  uint64_t launch;                // number of the launch in its client
  uint64_t number;                // in its device's stream, from 1; given out under the launch lock
  mp_run_t *next;                 // in the stream, under the device's lock
  uint64_t bytes;                 // of its arguments and results
  bool is_behind_call;            // it may make calls that block, or wait for a run that may
  // What keeps it from starting: the launch itself, the earlier runs of the stream (together 1),
  // and each input that is not ready yet. The thread that decrements it to 0 owns the run.
  atomic_int blockers;
  // Of the first input that failed, set by the thread that failed it; owned. Stays NULL in a run
  // with a session, which is poisoned instead.
  _Atomic(mp_status_t) error;
  // The launching thread's worker, if that thread executes this run itself. Only compared: once the
  // launch has returned, the worker may be freed or serve another launch.
  const mp_worker_t *inline_worker;

  // ---- What the launch prepared ----
  char *arena;  // the temporaries; NULL: the program has none
  mp_event_t
      *event;    // set when the run is over; the definition of all results that are not checked
  double began;  // the time when a worker began it; 0: the launching thread did
  const void **params;  // [num_params]
  void **results;       // [num_results]
  uint32_t num_copies, num_holds;
  mp_prologue_copy_t *copies;  // [num_copies], room for the parameters that may be donated
  // [num_holds], owned; the launch has allocated the list. Storages that stream order does not
  // protect: adopted inputs, or all inputs and results of a run in a side stream
  // (order/side_stream.h). NULL: none.
  mp_storage_t **holds;
  mp_span_t *own_arena;  // what `arena` points into, for a run in a side stream; else NULL

  // ---- Of the thread that runs it ----
  mp_model_share_t *share;  // in the model of time: what the run records in its path; NULL: nothing
  mp_path_t *path;          // the share's, or NULL
  uint64_t *edges;          // [executable->max_edges] of the loop that the run is in; else 0
  mp_shape_run_t *shape_run;  // of a run without values; NULL: it has values
  mp_region_t *region;        // where such a run has its memory, from its start to its end
  uint32_t pc;                // the command to continue with; set before the run is given away
  uint32_t loop_at;  // the place in it, if it is a loop that was left at a back edge; otherwise 0
  bool is_started;   // the prologue copies are done
  // Bits that a fault flips before the first command or after the last one; owned.
  uint32_t num_flips;
  mp_faults_flip_t *flips;  // [num_flips]
  const void **inputs;      // [executable->max_operands] addresses for the current command
  void **outputs;           // [executable->max_results]
  // While at a meeting; arrival.collective is NULL otherwise. While the run is parked others write
  // `is_over`, under the session's lock.
  mp_arrival_t arrival;
  // While waiting for a message. While the run is parked the sender sets receiver.message, under
  // the session's lock.
  mp_receiver_t receiver;
  mp_session_talk_t *talk;  // while it is in a kernel that communicates; else NULL
  mp_run_call_t call;       // while it is in a foreign function
  // States that stages of foreign functions have created, by mp_foreign_call_t.index; NULL: none.
  mp_foreign_states_t *states;
};

// A new run for the executable's device `logical`, with room for its arrays, whose contents are not
// initialized. It retains the executable, has one blocker (the launch), an event, and neither
// session nor arena yet. RESOURCE_EXHAUSTED when memory is short.
MP_NODISCARD mp_status_t mp_run_create(mp_executable_t *executable, uint32_t logical,
                                       mp_run_t **out_run);
// mp_run_retain adds a reference. The last mp_run_release frees the run and gives back its holds,
// its session and the executable; it does not set the event, which is what mp_run_end is for. NULL
// is released without effect.
mp_run_t *mp_run_retain(mp_run_t *run);
void mp_run_release(mp_run_t *run);
// Frees what replaced operands without values in the run's last call (call.h).
void mp_run_free_stand_ins(mp_run_t *run);

// Appends the run to its device's stream, which takes the caller's reference. The caller holds the
// launch lock, and has given the run its number.
void mp_run_enqueue(mp_run_t *run);
// Adds `event` (borrowed) to what the run waits for. If the event fails, so does the run: its error
// poisons the session, or becomes run->error. Called by the launching thread, before it removes the
// launch's own blocker.
void mp_run_wait_for(mp_run_t *run, mp_event_t *event);
// Removes one blocker. When it was the last one, the device goes onto `runnable`, which the caller
// passes to mp_schedule; the run may not be touched any more.
void mp_run_unblock(mp_run_t *run, mp_device_list_t *runnable);

// True when the first run of the device is to be run by this inline worker. The caller has that run
// (it is unblocked and in no queue yet), so the stream's head cannot change meanwhile.
bool mp_run_is_inline(const mp_device_t *device, const mp_worker_t *inline_worker);

// Why mp_run_commands returned.
typedef enum {
  MP_STEP_GO_ON,    // (not a reason)
  MP_STEP_PARKED,   // at a meeting point, or out: the thread that resumes the run owns it
  MP_STEP_YIELDED,  // at a back edge or in a kernel that polls: others go first, or the run ends
  MP_STEP_OVER,     // the last command was executed
} mp_step_t;

// Executes commands from run->pc on, until one of the reasons above or a failure (commands.c).
// After MP_STEP_PARKED the run may already be on another thread, or be freed.
MP_NODISCARD mp_status_t mp_run_commands(mp_worker_t *self, mp_run_t *run, mp_step_t *out_step);

// Runs the first run of a device that the caller took from a queue, as far as it goes: until it is
// over, parks, or yields and goes back to the queue. No lock is held.
void mp_run_continue(mp_worker_t *self, mp_device_t *device);
// Ends the first run of its device with `status` (consumed; NULL: success): leaves the session,
// gives back all holds, unblocks the next run of the device, and sets the event last. Calls back,
// so no lock is held. Takes the stream's reference: the run may be freed afterwards.
void mp_run_end(mp_run_t *run, mp_status_t status);

// Ends a run that was removed from its stream and its session while it was out (call.h): gives back
// all holds and sets the event. Calls back, so no lock is held. Takes the stream's reference.
void mp_run_end_abandoned(mp_run_t *run);

#endif  // MINIPOD_SIM_RUNTIME_RUNS_RUN_H_
