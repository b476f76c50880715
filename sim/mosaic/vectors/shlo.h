// Makes StableHLO ops, for the translation of Mosaic's vector ops.
//
// The first failure is kept in `status`; all later calls do nothing and return NULL, as do calls
// with an operand that is NULL. So formulas can be written as expressions.
#ifndef MINIPOD_SIM_MOSAIC_VECTORS_SHLO_H_
#define MINIPOD_SIM_MOSAIC_VECTORS_SHLO_H_

#include "sim/ir/module.h"

typedef struct {
  mp_module_t *module;
  mp_op_t *end;  // new ops come before it, and get its location
  mp_status_t status;
} mp_shlo_t;

const mp_type_t *mp_shlo_type(mp_shlo_t *hlo, mp_dtype_t dtype, const int64_t *dims, uint32_t rank);
// The type with other elements.
const mp_type_t *mp_shlo_retype(mp_shlo_t *hlo, const mp_type_t *type, mp_dtype_t dtype);

// Any op with one result; its attributes are completed with their defaults.
mp_value_t *mp_shlo_op(mp_shlo_t *hlo, mp_opcode_t code, mp_value_t *const *operands,
                       uint32_t count, const mp_type_t *type, const mp_named_attr_t *attrs,
                       uint32_t num_attrs);
// Elementwise ops whose result has the type of the first operand.
mp_value_t *mp_shlo_unary(mp_shlo_t *hlo, mp_opcode_t code, mp_value_t *x);
mp_value_t *mp_shlo_binary(mp_shlo_t *hlo, mp_opcode_t code, mp_value_t *x, mp_value_t *y);
// XLA's functions without an op: "mhlo.erf" and the like (sim/passes/desugar).
mp_value_t *mp_shlo_function(mp_shlo_t *hlo, const char *name, mp_value_t *x);

// The same elements in another element type: converted; with the same bits (NULL if the types have
// different numbers of them). The value itself if it has the type.
mp_value_t *mp_shlo_convert(mp_shlo_t *hlo, mp_value_t *x, mp_dtype_t dtype);
mp_value_t *mp_shlo_bits_as(mp_shlo_t *hlo, mp_value_t *x, mp_dtype_t dtype);

// One number everywhere.
mp_value_t *mp_shlo_integer(mp_shlo_t *hlo, const mp_type_t *type, int64_t number);
mp_value_t *mp_shlo_float(mp_shlo_t *hlo, const mp_type_t *type, double number);
// Any number of the type's kind.
mp_value_t *mp_shlo_number(mp_shlo_t *hlo, const mp_type_t *type, double number);

// `direction` is MP_CMP_...
mp_value_t *mp_shlo_compare(mp_shlo_t *hlo, uint32_t direction, mp_value_t *x, mp_value_t *y);
mp_value_t *mp_shlo_select(mp_shlo_t *hlo, mp_value_t *which, mp_value_t *x, mp_value_t *y);

// The elements rounded to so many bits of exponent and mantissa.
mp_value_t *mp_shlo_reduce_precision(mp_shlo_t *hlo, mp_value_t *x, int64_t exponent,
                                     int64_t mantissa);
// Elements that count along a dimension.
mp_value_t *mp_shlo_iota(mp_shlo_t *hlo, const mp_type_t *type, int64_t dim);
mp_value_t *mp_shlo_reshape(mp_shlo_t *hlo, mp_value_t *x, const int64_t *dims, uint32_t rank);
// Dimension k of `x` becomes dimension where[k] of `type`.
mp_value_t *mp_shlo_broadcast(mp_shlo_t *hlo, mp_value_t *x, const mp_type_t *type,
                              const int64_t *where);
// `starts`, `sizes` and `strides` (NULL: all are 1) for each dimension.
mp_value_t *mp_shlo_slice(mp_shlo_t *hlo, mp_value_t *x, const int64_t *starts,
                          const int64_t *sizes, const int64_t *strides);
mp_value_t *mp_shlo_transpose(mp_shlo_t *hlo, mp_value_t *x, const int64_t *permutation);
mp_value_t *mp_shlo_concatenate(mp_shlo_t *hlo, mp_value_t *const *values, uint32_t count,
                                int64_t dim);
// The part of `x` with the dimensions of `type` that begins at `starts`, scalars of one type.
mp_value_t *mp_shlo_dynamic_slice(mp_shlo_t *hlo, mp_value_t *x, mp_value_t *const *starts,
                                  const mp_type_t *type);
// `x` with a part that is `part`.
mp_value_t *mp_shlo_update(mp_shlo_t *hlo, mp_value_t *x, mp_value_t *part, const int64_t *starts);
// Combines all elements along some dimensions, beginning with the scalar `init`, by `code`.
mp_value_t *mp_shlo_reduce(mp_shlo_t *hlo, mp_opcode_t code, mp_value_t *x, mp_value_t *init,
                           const int64_t *dims, uint32_t count);
// out[i...] = x[index_0[i...], index_1[i...], ...], with an index of type s32 per dimension of x.
mp_value_t *mp_shlo_take(mp_shlo_t *hlo, mp_value_t *x, mp_value_t *const *indices);

#endif  // MINIPOD_SIM_MOSAIC_VECTORS_SHLO_H_
