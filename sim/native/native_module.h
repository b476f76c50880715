// The interface of the module for the library that opens it.
#ifndef MINIPOD_SIM_NATIVE_NATIVE_MODULE_H_
#define MINIPOD_SIM_NATIVE_NATIVE_MODULE_H_

#include "sim/native/native.h"

#define MP_NATIVE_MODULE_SYMBOL "minipod_native_module"

// The revision that both sides must agree on, besides their version: it changes with the ops, the
// element types and the forms of code.
enum { MP_NATIVE_REVISION = 4 };  // incremented for each change that sizes do not show
#define MP_NATIVE_CONTRACT                                                                       \
  ((uint64_t)(MP_OP_COUNT + 1024 * MP_NATIVE_REVISION) << 48 | (uint64_t)MP_DTYPE_COUNT << 40 |  \
   (uint64_t)MP_NATIVE_NUM_KINDS << 32 | (uint64_t)sizeof(mp_native_instruction_t) << 16 |       \
   (uint64_t)(sizeof(mp_native_loop_t) + sizeof(mp_native_frame_t) + sizeof(mp_native_value_t) + \
              sizeof(mp_native_ref_t)))

typedef struct {
  uint64_t contract;
  // Like mp_native_compile_map and mp_native_compile_loop, but compile again each time, and only
  // one thread at a time may call them.
  mp_native_map_fn_t (*compile_map)(const mp_native_map_t *map);
  mp_native_loop_fn_t (*compile_loop)(const mp_native_loop_t *loop);
} mp_native_module_t;

// NULL if there can be no code on this machine.
typedef const mp_native_module_t *mp_native_module_fn_t(void);

#endif  // MINIPOD_SIM_NATIVE_NATIVE_MODULE_H_
