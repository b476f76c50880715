// Functions that the Python package calls in the library, beside the PJRT C API: registering
// foreign functions with all that the FFI extension has no words for.
//
// They return NULL, or why they failed: a text that the calling thread's next call overwrites.
#ifndef MINIPOD_PJRT_PJRT_FOREIGN_H_
#define MINIPOD_PJRT_PJRT_FOREIGN_H_

#include <stddef.h>
#include <stdint.h>

#include "sim/foreign/foreign_registry.h"

#define MP_EXPORT __attribute__((visibility("default")))

typedef struct {
  size_t struct_size;             // of the caller's struct
  const char *name, *platform;    // NUL-terminated
  XLA_FFI_Handler_Bundle bundle;  // of a typed function
  void *untyped;                  // a function of the interface before FFI; NULL: a typed one
  XLA_FFI_Handler_Traits traits;
  uint32_t may_block;        // its calls may wait (for Python's lock): not 0
  void (*before_use)(void);  // called before a program that calls it is made; may be NULL
} minipod_foreign_function_t;

// Registers a function for the process.
MP_EXPORT const char *minipod_register_foreign_function(const minipod_foreign_function_t *function);
// Registers a type. `*inout_id` is its id, or 0 for a new one; `deleter` may be NULL.
MP_EXPORT const char *minipod_register_foreign_type(const char *name, int64_t *inout_id,
                                                    void (*deleter)(void *object));

// The text that such a function returns for a status, which is consumed.
const char *mp_pjrt_text(mp_status_t status);

#endif  // MINIPOD_PJRT_PJRT_FOREIGN_H_
