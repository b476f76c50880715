// What memory holds before a kernel writes it.
#ifndef MINIPOD_SIM_MOSAIC_RUN_MOSAIC_UNSET_H_
#define MINIPOD_SIM_MOSAIC_RUN_MOSAIC_UNSET_H_

#include "sim/mosaic/ir/mosaic_ir.h"

// Fills `bytes` bytes of elements of the type. On a TPU such memory has any value. Here it has one
// that makes a mistake visible, and is the same in each run, as in JAX's interpreter for TPUs: NaN
// for floats, the largest number for integers, false. Semaphores begin as 0.
void mp_mosaic_unset(const mp_mosaic_type_t *type, void *memory, size_t bytes);
// The same with other values, which depend on `salt`: what depends on them is different then.
void mp_mosaic_unset_otherwise(const mp_mosaic_type_t *type, uint32_t salt, void *memory,
                               size_t bytes);

#endif  // MINIPOD_SIM_MOSAIC_RUN_MOSAIC_UNSET_H_
