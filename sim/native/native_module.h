// What the module offers to the library that opens it.
#ifndef MINIPOD_SIM_NATIVE_NATIVE_MODULE_H_
#define MINIPOD_SIM_NATIVE_NATIVE_MODULE_H_

#include "sim/native/native.h"

// Changes with the contract below and with that of native.h.
#define MP_NATIVE_MODULE_VERSION 1
#define MP_NATIVE_MODULE_SYMBOL  "minipod_native_module"

typedef struct {
  int version;
  // As mp_native_compile_map and mp_native_compile_loop, but compiles anew each time, and only one
  // thread may be in them at a time.
  mp_native_map_fn_t (*compile_map)(const mp_native_map_t *map);
  mp_native_loop_fn_t (*compile_loop)(const mp_native_loop_t *loop);
} mp_native_module_t;

// NULL if there can be no code on this machine.
typedef const mp_native_module_t *mp_native_module_fn_t(void);

#endif  // MINIPOD_SIM_NATIVE_NATIVE_MODULE_H_
