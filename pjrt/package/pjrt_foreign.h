// Functions that the Python package calls in the library, in addition to the PJRT C API: they
// register foreign functions with all that the FFI extension cannot express.
//
// They return NULL, or an error message, which the calling thread's next call overwrites.
#ifndef MINIPOD_PJRT_PACKAGE_PJRT_FOREIGN_H_
#define MINIPOD_PJRT_PACKAGE_PJRT_FOREIGN_H_

#include <stddef.h>
#include <stdint.h>

#include "sim/foreign/foreign_registry.h"

#define MP_EXPORT __attribute__((visibility("default")))

typedef struct {
  size_t struct_size;             // size of the caller's struct
  const char *name, *platform;    // NUL-terminated
  XLA_FFI_Handler_Bundle bundle;  // of a typed function
  void *untyped;                  // a function of the interface before FFI; NULL: a typed one
  XLA_FFI_Handler_Traits traits;
  uint32_t may_block;        // nonzero: its calls may wait (for Python's lock)
  void (*before_use)(void);  // called before a program that calls it is compiled; may be NULL
} minipod_foreign_function_t;

// Registers a function for the process.
MP_EXPORT const char *minipod_register_foreign_function(const minipod_foreign_function_t *function);
// Registers that functions whose names begin with `prefix` call a library with its own threads.
// `get` and `set` read and change their number, and `usual` is the default
// (sim/foreign/foreign_pool.h).
MP_EXPORT const char *minipod_register_foreign_pool(const char *prefix, int (*get)(void),
                                                    void (*set)(int threads), int usual);
// Registers a type. `*inout_id` is its id, or 0 for a new one; `deleter` may be NULL.
MP_EXPORT const char *minipod_register_foreign_type(const char *name, int64_t *inout_id,
                                                    void (*deleter)(void *object));

// The error message that such a function returns for a status (consumed).
const char *mp_pjrt_text(mp_status_t status);

// ---- Python callbacks (pjrt_python.c) ----
//
// A program calls Python through three foreign functions, with the names that JAX gives them on
// CPUs; their attribute `index` is the number of the callable. The library encodes a call as an
// array of numbers and passes it to the package's function, on caller threads
// (sim/runtime/workers/caller.h), so that workers never wait for Python's lock.

// The kind of the callable.
enum {
  MP_PYTHON_ARRAYS,   // it gets arrays and returns arrays
  MP_PYTHON_BUFFERS,  // it gets the memory of operands and results (JAX's buffer_callback)
};

// The encoding of a call for the package: `MP_PYTHON_HEAD` numbers, then for each operand and each
// result its element type (XLA_FFI_DataType), address, rank and dimensions.
enum {
  MP_PYTHON_LENGTH,  // the number of numbers
  MP_PYTHON_KIND,
  MP_PYTHON_NUMBER,  // of the callable
  MP_PYTHON_NUM_INPUTS,
  MP_PYTHON_NUM_OUTPUTS,
  MP_PYTHON_HEAD,
};

typedef struct {
  size_t struct_size;  // size of the caller's struct
  // Called on the compiling thread when a program that calls `number` was made;
  // minipod_python_take_released returns the number when the program is freed. 0, or nonzero after
  // minipod_python_fail.
  int (*hold)(uint64_t number);
  // CPython's own functions: PyGILState_Ensure and PyEval_SaveThread. A thread that stays registers
  // with Python once, so that Python and JAX need not recreate their per-thread state in each call.
  int (*ensure)(void);
  void *(*save)(void);
  // Calls the callable. 0, or nonzero after minipod_python_fail.
  int (*call)(const int64_t *numbers);
} minipod_python_t;

// Sets the package's functions, which must stay valid for ever, and registers the foreign
// functions. NULL, or an error message.
MP_EXPORT const char *minipod_python_open(const minipod_python_t *python);
// Sets the error of the function that the library has called on this thread: `text` becomes the
// message, with the code INTERNAL.
MP_EXPORT void minipod_python_fail(const char *text, size_t size);
// Takes up to `room` numbers of callables whose programs were freed: one for each `hold`.
MP_EXPORT size_t minipod_python_take_released(uint64_t *numbers, size_t room);
// The number of unfinished runs whose programs may call the package.
MP_EXPORT uint32_t minipod_python_pending(void);
// Stops calling the package: later calls fail as CANCELLED. Waits until current calls are over, at
// most `seconds`, and returns the number of those that are not. May be repeated.
MP_EXPORT uint32_t minipod_python_close(double seconds);

#endif  // MINIPOD_PJRT_PACKAGE_PJRT_FOREIGN_H_
