// minipod's side of the interface: the table of functions that handlers call, and the opaque types
// in it. For the files of this room, and for code that passes the table on.
#ifndef MINIPOD_SIM_FOREIGN_FOREIGN_API_H_
#define MINIPOD_SIM_FOREIGN_FOREIGN_API_H_

#include <stdatomic.h>
#include <stdbool.h>

#include "sim/base/status.h"
#include "sim/foreign/foreign_abi.h"
#include "sim/foreign/foreign_call.h"

// The table; one for the process.
const XLA_FFI_Api *mp_foreign_api(void);

// ---- Errors: an XLA_FFI_Error is a status under another name ----

// Consumes the status. NULL stays NULL.
static inline XLA_FFI_Error *mp_foreign_error(mp_status_t status) {
  return (XLA_FFI_Error *)status;
}
// The inverse: the caller owns the status.
static inline mp_status_t mp_foreign_status(XLA_FFI_Error *error) {
  return (mp_status_t)error;
}

// ---- Contexts: one argument of each handler ----

struct XLA_FFI_ExecutionContext {
  const mp_foreign_call_t *call;
  const mp_foreign_invocation_t *invocation;  // NULL in the instantiate stage
  XLA_FFI_ExecutionStage stage;
  mp_foreign_state_t *instantiate;  // of the call
};

// Calls a handler and returns its error. `*out_future` is the future that the handler returned, or
// NULL.
MP_NODISCARD mp_status_t mp_foreign_invoke(XLA_FFI_Handler *handler, XLA_FFI_CallFrame *frame,
                                           XLA_FFI_Future **out_future);
// Asks a handler for its version, traits and state. INVALID_ARGUMENT when it was compiled for a
// version newer than minipod's or older than 0.1; the handler's error when it does not answer.
MP_NODISCARD mp_status_t mp_foreign_ask_metadata(XLA_FFI_Handler *handler,
                                                 XLA_FFI_Metadata *out_metadata);

// ---- Futures: the result of a handler whose work continues after it has returned ----

// Makes a future that is not set.
MP_NODISCARD mp_status_t mp_foreign_future_create(XLA_FFI_Future **out_future);
// Sets it; consumes the status. A future is set once: false when it was set before.
bool mp_foreign_future_set(XLA_FFI_Future *future, mp_status_t status);
// Takes the future that a handler returned. True: it was already set, the caller owns its value
// `*out_status`, and `done` is not called. False: the thread that sets it calls done(context,
// status), which owns the status; this may already have happened.
bool mp_foreign_future_take(XLA_FFI_Future *future, void (*done)(void *, mp_status_t),
                            void *context, mp_status_t *out_status);
// Takes the future and waits until it is set; for stages that must end before the program
// continues.
MP_NODISCARD mp_status_t mp_foreign_future_await(XLA_FFI_Future *future);

#endif  // MINIPOD_SIM_FOREIGN_FOREIGN_API_H_
