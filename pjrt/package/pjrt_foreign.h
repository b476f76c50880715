// Functions that the Python package calls in the library, beside the PJRT C API: registering
// foreign functions with all that the FFI extension has no words for.
//
// They return NULL, or why they failed: a text that the calling thread's next call overwrites.
#ifndef MINIPOD_PJRT_PACKAGE_PJRT_FOREIGN_H_
#define MINIPOD_PJRT_PACKAGE_PJRT_FOREIGN_H_

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
// Says that functions whose names begin with `prefix` call a library with threads of its own, as
// many as `get` says (`usual`, if the number was not set) and `set` chooses
// (sim/foreign/foreign_pool.h).
MP_EXPORT const char *minipod_register_foreign_pool(const char *prefix, int (*get)(void),
                                                    void (*set)(int threads), int usual);
// Registers a type. `*inout_id` is its id, or 0 for a new one; `deleter` may be NULL.
MP_EXPORT const char *minipod_register_foreign_type(const char *name, int64_t *inout_id,
                                                    void (*deleter)(void *object));

// The text that such a function returns for a status, which is consumed.
const char *mp_pjrt_text(mp_status_t status);

// ---- Python callbacks (pjrt_python.c) ----
//
// A program calls Python through three foreign functions, with the names that JAX gives them on
// CPUs; their attribute `index` is the number of the callable. The library turns a call into an
// array of numbers and hands that to the package's one function, on caller threads
// (sim/runtime/workers/caller.h), so that workers never wait for Python's lock.

// What kind of callable is meant.
enum {
  MP_PYTHON_ARRAYS,   // it gets arrays and returns arrays
  MP_PYTHON_BUFFERS,  // it gets the memory of operands and results (JAX's buffer_callback)
};

// A call, as the package sees it: `MP_PYTHON_HEAD` numbers, then for each operand and each result
// its element type (XLA_FFI_DataType), address, rank and dimensions.
enum {
  MP_PYTHON_LENGTH,  // how many numbers there are
  MP_PYTHON_KIND,
  MP_PYTHON_NUMBER,  // of the callable
  MP_PYTHON_NUM_INPUTS,
  MP_PYTHON_NUM_OUTPUTS,
  MP_PYTHON_HEAD,
};

typedef struct {
  size_t struct_size;  // of the caller's struct
  // A program that calls `number` was made, and will say so when it is gone. 0, or not 0 after
  // minipod_python_fail. Called on the thread that compiles.
  int (*hold)(uint64_t number);
  // CPython's own functions: PyGILState_Ensure and PyEval_SaveThread. A thread that stays makes
  // Python know it once, so that what Python and JAX keep for threads is not made again in each
  // call.
  int (*ensure)(void);
  void *(*save)(void);
  // Calls the callable. 0, or not 0 after minipod_python_fail.
  int (*call)(const int64_t *numbers);
} minipod_python_t;

// Sets the package's functions, which must stay for ever, and registers the foreign functions.
// NULL, or why it failed.
MP_EXPORT const char *minipod_python_open(const minipod_python_t *python);
// Says why the function that the library has called on this thread fails: `text` becomes the
// error's message, with the code INTERNAL.
MP_EXPORT void minipod_python_fail(const char *text, size_t size);
// Takes up to `room` numbers of callables whose programs are gone: one for each `hold`.
MP_EXPORT size_t minipod_python_take_released(uint64_t *numbers, size_t room);
// How many runs are not over whose programs may call the package.
MP_EXPORT uint32_t minipod_python_pending(void);
// From now on the package is not called any more: calls fail as CANCELLED. Waits until those that
// have begun are over, at most `seconds`, and returns how many are not. May be repeated.
MP_EXPORT uint32_t minipod_python_close(double seconds);

#endif  // MINIPOD_PJRT_PACKAGE_PJRT_FOREIGN_H_
