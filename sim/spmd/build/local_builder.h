// Short forms over append.h for the ops that an op's local form needs around it (lower_*.c).
//
// Each function appends to the emitter's block and returns the op's one result. Index arithmetic is
// done in s64, in which no sum or difference of sizes and starts overflows.
#ifndef MINIPOD_SIM_SPMD_BUILD_LOCAL_BUILDER_H_
#define MINIPOD_SIM_SPMD_BUILD_LOCAL_BUILDER_H_

#include "sim/spmd/build/append.h"

typedef struct {
  mp_module_t *module;
  mp_block_t *block;
  const mp_loc_t *loc;
} mp_local_builder_t;

// Any op; `type` is the result's.
MP_NODISCARD mp_status_t mp_emit_op(const mp_local_builder_t *e, mp_opcode_t code,
                                    mp_value_t *const *operands, uint32_t num_operands,
                                    const mp_type_t *type, const mp_named_attr_t *attrs,
                                    uint32_t num_attrs, mp_value_t **out_value);
// An elementwise op of two values of one type.
MP_NODISCARD mp_status_t mp_emit_binary(const mp_local_builder_t *e, mp_opcode_t code,
                                        mp_value_t *a, mp_value_t *b, mp_value_t **out_value);
// Signed comparison of two s64 values; `direction` is MP_CMP_...
MP_NODISCARD mp_status_t mp_emit_compare(const mp_local_builder_t *e, uint32_t direction,
                                         mp_value_t *a, mp_value_t *b, mp_value_t **out_value);
// `a` where `pred` is true, else `b`.
MP_NODISCARD mp_status_t mp_emit_select(const mp_local_builder_t *e, mp_value_t *pred,
                                        mp_value_t *a, mp_value_t *b, mp_value_t **out_value);

// Makes a named attribute of a list of numbers; appends nothing.
MP_NODISCARD mp_status_t mp_emit_ints(const mp_local_builder_t *e, mp_attr_name_t name,
                                      const int64_t *values, uint32_t count,
                                      mp_named_attr_t *out_attr);

// An array of one element repeated: `element`, a stored element that is copied, or a number in an
// s64 array with the dimensions of `shape`.
MP_NODISCARD mp_status_t mp_emit_splat(const mp_local_builder_t *e, const mp_type_t *type,
                                       const void *element, mp_value_t **out_value);
MP_NODISCARD mp_status_t mp_emit_splat_s64(const mp_local_builder_t *e, const mp_type_t *shape,
                                           int64_t number, mp_value_t **out_value);
// Makes the tensor type with the dimensions of `shape` and this element type; appends nothing.
MP_NODISCARD mp_status_t mp_emit_type(const mp_local_builder_t *e, const mp_type_t *shape,
                                      mp_dtype_t dtype, const mp_type_t **out_type);

// Indices of any integer type converted to s64; ui64 indices that do not fit become the largest
// s64.
MP_NODISCARD mp_status_t mp_emit_index(const mp_local_builder_t *e, mp_value_t *value,
                                       mp_value_t **out_value);
// An s64 value limited to [low, high].
MP_NODISCARD mp_status_t mp_emit_clamp(const mp_local_builder_t *e, mp_value_t *value, int64_t low,
                                       int64_t high, mp_value_t **out_value);

// A vector of `count` numbers that differs between partitions: row partition_id of `table`
// [num_partitions * count], which is copied.
MP_NODISCARD mp_status_t mp_emit_row(const mp_local_builder_t *e, const int64_t *table,
                                     uint32_t num_partitions, uint32_t count,
                                     mp_value_t **out_value);
// A vector of constants, copied.
MP_NODISCARD mp_status_t mp_emit_vector(const mp_local_builder_t *e, const int64_t *numbers,
                                        uint32_t count, mp_value_t **out_value);
// The same elements with other dimensions.
MP_NODISCARD mp_status_t mp_emit_reshape(const mp_local_builder_t *e, mp_value_t *value,
                                         const int64_t *dims, uint32_t rank,
                                         mp_value_t **out_value);
// Dimension i of the value becomes dims[i] of the result, whose other dimensions repeat it.
MP_NODISCARD mp_status_t mp_emit_broadcast(const mp_local_builder_t *e, mp_value_t *value,
                                           const int64_t *dims, const mp_type_t *shape,
                                           mp_value_t **out_value);

// The numbers 0, 1, 2, ... along a dimension.
MP_NODISCARD mp_status_t mp_emit_iota(const mp_local_builder_t *e, const mp_type_t *type,
                                      int64_t dim, mp_value_t **out_value);
// Whether all booleans along a dimension are true.
MP_NODISCARD mp_status_t mp_emit_all(const mp_local_builder_t *e, mp_value_t *value, int64_t dim,
                                     mp_value_t **out_value);

#endif  // MINIPOD_SIM_SPMD_BUILD_LOCAL_BUILDER_H_
