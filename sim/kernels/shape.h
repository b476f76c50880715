// Shape arithmetic that kernel makers share: static sizes, row-major strides, small helpers.
//
// Makers get verified ops with static shapes, so nothing here fails; shapes are those of tensor
// types.
#ifndef MINIPOD_SIM_KERNELS_SHAPE_H_
#define MINIPOD_SIM_KERNELS_SHAPE_H_

#include <stdint.h>

#include "sim/base/assert.h"
#include "sim/ir/module.h"
#include "sim/kernels/kernel.h"
#include "sim/numeric/dims.h"

// Offsets within windows are sums of products of a window's sizes, strides, dilations and paddings;
// with numbers of at most this magnitude nothing overflows.
#define MP_WINDOW_MOST (INT64_C(1) << 31)

// The type of operand i, which must exist.
static inline const mp_type_t *mp_op_operand_type(const mp_op_t *op, uint32_t i) {
  return op->operands[i]->type;
}
// The same for result i.
static inline const mp_type_t *mp_op_result_type(const mp_op_t *op, uint32_t i) {
  return op->results[i].type;
}

// The number of elements of a static tensor type.
static inline int64_t mp_shape_count(const mp_type_t *type) {
  return mp_dims_product(type->dims, 0, type->rank);
}

// The bytes that the elements of a static tensor type take when stored.
static inline int64_t mp_shape_bytes(const mp_type_t *type) {
  return mp_shape_count(type) * (int64_t)mp_dtype_size(type->dtype);
}

// The product of sizes as an estimate of work: INT64_MAX where it does not fit, since programs can
// have types of arrays that no memory holds.
#define MP_WORK(...)                                 \
  mp_dims_product((const int64_t[]){__VA_ARGS__}, 0, \
                  sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

// Row-major strides in units of `unit` (1: elements; the element size: bytes).
static inline void mp_dims_strides(const int64_t *dims, uint32_t rank, int64_t unit,
                                   int64_t *out_strides) {
  for (uint32_t i = rank; i-- > 0;) {
    out_strides[i] = unit;
    unit = mp_dims_next_stride(unit, dims[i]);
  }
}

// `value` limited to [low, high].
static inline int64_t mp_clamp_i64(int64_t value, int64_t low, int64_t high) {
  MP_ASSERT(low <= high);
  return value < low ? low : value > high ? high : value;
}

// The smaller of two numbers.
static inline int64_t mp_min_i64(int64_t a, int64_t b) {
  return a < b ? a : b;
}

// The larger of two numbers.
static inline int64_t mp_max_i64(int64_t a, int64_t b) {
  return a > b ? a : b;
}

// Rounds up to a multiple of 64, which is the alignment of arrays.
static inline size_t mp_round_up_64(size_t bytes) {
  return (bytes + 63) & ~(size_t)63;
}

// One element of an integer (or bool) tensor as int64. A number that is too large becomes
// INT64_MAX, which gives the same as the number itself when it is clamped as an index.
int64_t mp_load_index(mp_dtype_t dtype, const void *element);

// Fills in the fixed fields of a kernel: one part, no scratch, not in place.
static inline void mp_kernel_init(mp_kernel_t *kernel, mp_kernel_run_t run, const mp_op_t *op) {
  *kernel = (mp_kernel_t){.run = run, .num_parts = 1, .op = op};
}

#endif  // MINIPOD_SIM_KERNELS_SHAPE_H_
