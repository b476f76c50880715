// A call of a foreign function in a program: preparing it once, and calling it.
//
// A call is made at compile time and is constant afterwards, except for the state that its handler
// keeps in it; any number of devices may run it at the same time. Values are dense arrays of stored
// elements, as for kernels (sim/kernels/kernel.h), in the op's layouts.
#ifndef MINIPOD_SIM_FOREIGN_FOREIGN_CALL_H_
#define MINIPOD_SIM_FOREIGN_FOREIGN_CALL_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/foreign/foreign_pool.h"
#include "sim/foreign/foreign_registry.h"
#include "sim/foreign/foreign_state.h"
#include "sim/ir/module.h"

typedef struct mp_foreign_call_s mp_foreign_call_t;
struct mp_foreign_call_s {
  const mp_op_t *op;                    // for messages; lives as long as the program
  const mp_foreign_handler_t *handler;  // lives for ever
  bool is_absent;                       // the function is not registered: it cannot be started
  bool may_block;                       // the handler was registered as blocking
  bool has_stages;                      // it has a prepare or an initialize stage
  mp_foreign_pool_t *pool;              // threads of its library's own; NULL: none are known
  bool is_small;                     // for a call with a pool: it runs only on the calling thread
  uint32_t num_inputs, num_outputs;  // the op's, tokens included
  uint32_t index;                    // in its program; for the owner of the call
};

// Makes the call of a custom_call: finds its function, reads its attributes, and runs the
// function's instantiate stage, so foreign code runs here. The op must outlive the call.
// UNIMPLEMENTED with the names that are registered when the target is unknown; INVALID_ARGUMENT for
// attributes that the interface does not have; the function's own error when it refuses.
MP_NODISCARD mp_status_t mp_foreign_call_create(const mp_op_t *op, mp_foreign_call_t **out_call);
// The same for a program that runs for its shapes alone, in which functions may be missing: a call
// of a function that is not registered is never started.
MP_NODISCARD mp_status_t mp_foreign_call_create_or_absent(const mp_op_t *op,
                                                          mp_foreign_call_t **out_call);
// Ends the function's state and frees the call, which is not running. NULL is allowed.
void mp_foreign_call_release(mp_foreign_call_t *call);

// What a running function can request from its device. Thread-safe.
typedef struct {
  // `bytes` of the device's memory, aligned to `alignment` (a power of two, at most 64).
  mp_status_t (*allocate)(void *data, size_t bytes, size_t alignment, void **out_memory);
  void (*free)(void *data, void *memory, size_t bytes);
  // Runs task(argument) soon, on some thread, perhaps on this one before the call returns.
  mp_status_t (*schedule)(void *data, void (*task)(void *), void *argument);
  int64_t (*num_threads)(void *data);
} mp_foreign_host_t;

// Data that the caller of an execution has added, which foreign functions find by type.
typedef struct mp_foreign_user_data_s {
  const struct mp_foreign_user_data_s *next;
  int64_t type_id;
  void *data;
} mp_foreign_user_data_t;

// One run of a call. Everything that it points to is valid and constant until the run is over.
typedef struct {
  const void *const *inputs;  // [call->num_inputs]
  void *const *outputs;       // [call->num_outputs]
  int32_t device_ordinal;
  int64_t run_id;  // the same on all devices of a launch
  const mp_foreign_host_t *host;
  void *host_data;
  const mp_foreign_user_data_t *user_data;  // a list; NULL: none
  const XLA_FFI_Attrs *options;             // NULL: none
  // The states of this run's stages; NULL for a call without stages.
  mp_foreign_states_t *states;
  // Called once, on any thread and without locks, when a pending run is over; takes `status`. It
  // may be called before mp_foreign_call_start has returned.
  void (*done)(void *context, mp_status_t status);
  void *context;
} mp_foreign_invocation_t;

// Run the stages that precede `execute`; these may not read the arrays. Once per run of the
// program, before its first command: first all calls' prepare stage, then all calls' initialize
// stage. `invocation->states` belongs to this call and run.
MP_NODISCARD mp_status_t mp_foreign_call_prepare(const mp_foreign_call_t *call,
                                                 const mp_foreign_invocation_t *invocation);
MP_NODISCARD mp_status_t mp_foreign_call_initialize(const mp_foreign_call_t *call,
                                                    const mp_foreign_invocation_t *invocation);

// Calls the function. Either it is over when this returns, and its error is returned; or
// `*out_is_pending` is set, and invocation->done is called later. Errors name the op, its source
// line and the function. The caller holds no lock.
MP_NODISCARD mp_status_t mp_foreign_call_start(const mp_foreign_call_t *call,
                                               const mp_foreign_invocation_t *invocation,
                                               bool *out_is_pending);

#endif  // MINIPOD_SIM_FOREIGN_FOREIGN_CALL_H_
