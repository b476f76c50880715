// The registrations of the process: foreign functions by name and platform, and types by name.
//
// Registrations are per process, not per client, and last until it ends, as with XLA. A handler
// that is registered for "minipod" is preferred to one of the same name for "Host" (which JAX calls
// "cpu"). Handlers for "Host" are used because they work on host memory, which minipod's devices
// have.
//
// All functions are thread-safe.
#ifndef MINIPOD_SIM_FOREIGN_FOREIGN_REGISTRY_H_
#define MINIPOD_SIM_FOREIGN_FOREIGN_REGISTRY_H_

#include <stdbool.h>

#include "sim/base/status.h"
#include "sim/base/str.h"
#include "sim/foreign/foreign_abi.h"

// A registered function. Constant, and never freed.
typedef struct mp_foreign_handler_s mp_foreign_handler_t;
struct mp_foreign_handler_s {
  mp_str_t name, platform;
  bool is_typed;                  // `bundle` is used; otherwise `untyped`
  bool may_block;                 // registered as a function that may wait (for Python's lock)
  bool explains_itself;           // its errors are passed on unchanged
  XLA_FFI_Handler_Bundle bundle;  // of typed ones; execute is never NULL
  void (*before_use)(void);       // prepares what the function needs; may be NULL
  void *untyped;                  // a function of API version 1, 2 or 3: the call says which
  XLA_FFI_Handler_Traits traits;
  XLA_FFI_TypeId state_type_id;      // type of the state that `instantiate` makes; 0: unknown
  int major_version, minor_version;  // version of the headers that it was compiled with
  const mp_foreign_handler_t *next;  // registered before
};

typedef struct {
  bool may_block;
  XLA_FFI_Handler_Traits traits;
  void (*before_use)(void);  // called, on any thread, before a call is made; may be NULL
  bool explains_itself;      // its errors already name their origin
} mp_foreign_traits_t;

// Registers the handlers of a name's stages. Asks each handler for its version (so it is called
// here, with a frame that has the metadata extension). INVALID_ARGUMENT for a bundle without
// `execute`, or one that was compiled for an unknown version; ALREADY_EXISTS when the name has
// other handlers on the platform. Registering the same again does nothing.
MP_NODISCARD mp_status_t mp_foreign_register_typed(mp_str_t name, mp_str_t platform,
                                                   const XLA_FFI_Handler_Bundle *bundle,
                                                   mp_foreign_traits_t traits);
// Registers a function of the interface before FFI. ALREADY_EXISTS when the name has another one.
MP_NODISCARD mp_status_t mp_foreign_register_untyped(mp_str_t name, mp_str_t platform,
                                                     void *function);

// The function that a call of this name refers to; NULL when there is none.
const mp_foreign_handler_t *mp_foreign_find(mp_str_t name, bool is_typed);
// Appends the names that are registered, in alphabetical order, at most `limit` of them; first
// those that resemble `name`. For messages.
void mp_foreign_list(mp_str_t name, size_t limit, mp_strbuf_t *out);

// Registers a type. An id of 0 is replaced by a new one; any other must be new, or be that of the
// same name. INVALID_ARGUMENT for an id that is another type's, or a name that has another id.
MP_NODISCARD mp_status_t mp_foreign_register_type(mp_str_t name, void (*deleter)(void *),
                                                  XLA_FFI_TypeId *inout_id);
// Finds the function that deletes objects of the type, which is NULL when it has none. False: there
// is no such type.
bool mp_foreign_type_deleter(XLA_FFI_TypeId id, void (**out_deleter)(void *));

#endif  // MINIPOD_SIM_FOREIGN_FOREIGN_REGISTRY_H_
