// Contexts of executions: data and options that the caller of an execution provides for foreign
// functions.
//
// Reference-counted: the caller and every run that was launched with the context hold it.
// Thread-safe.
#ifndef MINIPOD_SIM_FOREIGN_FOREIGN_CONTEXT_H_
#define MINIPOD_SIM_FOREIGN_FOREIGN_CONTEXT_H_

#include "sim/base/options.h"
#include "sim/foreign/foreign_call.h"

typedef struct mp_foreign_context_s mp_foreign_context_t;

// An empty context, which the caller owns. RESOURCE_EXHAUSTED when memory is short.
MP_NODISCARD mp_status_t mp_foreign_context_create(mp_foreign_context_t **out_context);
// A context with the data of `outer`, which it retains (NULL: none), and with these options, which
// are copied. Nothing can be added to it.
MP_NODISCARD mp_status_t mp_foreign_context_create_with(mp_foreign_context_t *outer,
                                                        const mp_named_value_t *options,
                                                        size_t num_options,
                                                        mp_foreign_context_t **out_context);
// mp_foreign_context_retain adds a reference and returns the context; the last
// mp_foreign_context_release frees it. NULL has no effect in either.
mp_foreign_context_t *mp_foreign_context_retain(mp_foreign_context_t *context);
void mp_foreign_context_release(mp_foreign_context_t *context);

// Adds data (borrowed: they must outlive the executions) for functions that ask for this type.
// INVALID_ARGUMENT for the type 0, ALREADY_EXISTS when the context has data of the type.
MP_NODISCARD mp_status_t mp_foreign_context_add(mp_foreign_context_t *context, int64_t type_id,
                                                void *data);
// The data in the form of an invocation; they live as long as the context. NULL: none.
const mp_foreign_user_data_t *mp_foreign_context_data(mp_foreign_context_t *context);
// The options in the form of an invocation; they live as long as the context. NULL: none.
const XLA_FFI_Attrs *mp_foreign_context_options(const mp_foreign_context_t *context);

#endif  // MINIPOD_SIM_FOREIGN_FOREIGN_CONTEXT_H_
