// Calls of foreign functions: what a device provides for a function that it runs, how a run calls a
// function outside of its program, and how the run continues afterwards.
//
// A function that never blocks runs on the thread that executes the run, like a kernel. A function
// that was registered as blocking runs on a caller thread (caller.h). A function that returns a
// future may end on any thread. Meanwhile the run is *out*: it stays at the head of its stream, no
// thread owns it, and it never counts as stuck, because the function may do anything. If its
// session fails, the run ends when the call does. The thread that ends the call makes the device
// runnable.
//
// When the client ends, a run that is out is removed from its stream, so that all other runs can be
// ended. Its memory, the event of its results and its hold on the client stay until the call ends.
#ifndef MINIPOD_SIM_RUNTIME_RUNS_CALL_H_
#define MINIPOD_SIM_RUNTIME_RUNS_CALL_H_

#include "sim/foreign/foreign_call.h"
#include "sim/plan/program.h"
#include "sim/runtime/workers/caller.h"

typedef struct mp_buffer_s mp_buffer_t;
typedef struct mp_executable_s mp_executable_t;
typedef struct mp_run_s mp_run_t;
typedef struct mp_worker_s mp_worker_t;

// The progress of a call. Two threads change it, the one that owns the run and the one that ends
// the call, in either order: from the state the second one sees what is left to do.
typedef enum {
  MP_CALL_NONE,      // the run is in no call
  MP_CALL_STARTING,  // the function runs on the run's own thread, which continues if it has ended
                     // by then
  MP_CALL_OUT,   // the run waits for it; the thread that ends the call makes the device runnable
  MP_CALL_OVER,  // it has ended, and `status` is there for the run's own thread
  MP_CALL_ABANDONED,  // it has not ended, but the run is in no stream: the thread that ends it ends
                      // the run
} mp_call_state_t;

// The call that a run is in. While `state` is NONE only the run's own thread changes it, afterwards
// only holders of the device's lock. Messages about waits read it without the lock.
typedef struct {
  mp_blocking_t blocking;  // for caller threads
  _Atomic mp_call_state_t state;
  mp_status_t status;  // of a call that is over; owned
  const mp_cmd_t *cmd;
  void **stand_ins;  // owned, [cmd->num_operands] owned: for operands without values; NULL: none
  mp_foreign_invocation_t invocation;
} mp_run_call_t;

// Executes a CALL command, or ends it when the run is back from it. `*out_is_out`: the run is out,
// and may be on another thread or gone already. The caller has set run->pc to the command. Errors
// are the function's.
MP_NODISCARD mp_status_t mp_run_call(mp_worker_t *self, mp_run_t *run, const mp_cmd_t *cmd,
                                     bool *out_is_out);
// Removes a run that is out from its stream, whose head it is; false: it is not out. The device's
// lock is held, and the client is stopping. The caller notifies the run's session; the thread that
// ends the call ends the run.
bool mp_run_abandon_call(mp_run_t *run);

// Which stream each run of a launch enters.
//
// A launch uses side streams in two cases: its thread is itself inside a foreign function; or an
// unfinished run of one of its devices may be in a call, while the launch's own runs neither call
// nor wait for a call.
//
// All other launches enter the devices' streams. Programs with calls keep their order there, so
// that they print in the order of their launches. But only launches of one thread are ordered. A
// call may wait for what other threads launch, so a run that may call, or wait for a call, uses a
// side stream if the stream has such runs of another thread. Hence all such runs in a stream were
// launched by one thread.
typedef struct {
  bool is_behind_call;  // the runs may make calls that block, or wait for a run that may
  bool is_beside;       // all of them use side streams
} mp_order_t;

// The order of a launch with these arguments on these devices (logical numbers). The caller holds
// the launch lock.
mp_order_t mp_call_choose_order(const mp_executable_t *executable, uint32_t num_devices,
                                const uint32_t *logical, mp_buffer_t *const *const *arguments);
// True when the run on `device` of a launch with this order uses a side stream. The caller holds
// the launch lock.
bool mp_call_goes_beside(const mp_device_t *device, mp_order_t order);
// A guess of the same before the launch, without the lock.
bool mp_call_would_go_beside(const mp_executable_t *executable, uint32_t num_devices,
                             const uint32_t *logical, mp_buffer_t *const *const *arguments,
                             const mp_device_t *device);

// True when the run waits for a foreign function. Takes no lock, so the answer may be outdated.
bool mp_run_is_out(const mp_run_t *run);

// Runs the stages of foreign functions that precede the run's first command. The states that they
// create are freed when the run ends.
MP_NODISCARD mp_status_t mp_run_begin_calls(mp_run_t *run);

#endif  // MINIPOD_SIM_RUNTIME_RUNS_CALL_H_
