// What the files of the verifier share; private to this folder. A check is called after the numbers
// of operands, results and regions were checked by the table of ops, and after the types of all
// values were found to be such that values may have.
#ifndef MINIPOD_SIM_MOSAIC_IR_MOSAIC_VERIFY_H_
#define MINIPOD_SIM_MOSAIC_IR_MOSAIC_VERIFY_H_

#include "sim/mosaic/ir/mosaic_ir.h"

typedef mp_status_t (*mp_mosaic_check_t)(const mp_mosaic_op_t *op);

// INVALID_ARGUMENT about an op, unless `holds`.
#define MP_MOSAIC_CHECK(op, holds, ...)                                \
  do {                                                                 \
    if (!(holds)) {                                                    \
      return mp_mosaic_op_error(op, MP_INVALID_ARGUMENT, __VA_ARGS__); \
    }                                                                  \
  } while (0)

// The check of an op; NULL: the general rules suffice.
mp_mosaic_check_t mp_mosaic_check_values(mp_mosaic_opcode_t code);   // arith, math
mp_mosaic_check_t mp_mosaic_check_vectors(mp_mosaic_opcode_t code);  // shapes of vectors
mp_mosaic_check_t mp_mosaic_check_matmul(mp_mosaic_opcode_t code);   // reductions, matmul
mp_mosaic_check_t mp_mosaic_check_memory(mp_mosaic_opcode_t code);   // loads, stores, views
mp_mosaic_check_t mp_mosaic_check_async(mp_mosaic_opcode_t code);    // DMAs, semaphores

// The attributes of the kernel (the function with a grid) and of its windows.
MP_NODISCARD mp_status_t mp_mosaic_check_kernel(const mp_mosaic_module_t *module,
                                                const mp_mosaic_func_t *func);

// That functions do not call themselves, through others or not.
MP_NODISCARD mp_status_t mp_mosaic_check_calls(const mp_mosaic_module_t *module);

// ---- types ----

static inline const mp_mosaic_type_t *mp_mosaic_in(const mp_mosaic_op_t *op, uint32_t i) {
  return op->operands[i]->type;
}
static inline const mp_mosaic_type_t *mp_mosaic_out(const mp_mosaic_op_t *op, uint32_t i) {
  return op->results[i].type;
}
static inline bool mp_mosaic_is_vector(const mp_mosaic_type_t *type) {
  return type->kind == MP_MOSAIC_VECTOR;
}
static inline bool mp_mosaic_is_float(const mp_mosaic_type_t *type) {
  return type->kind != MP_MOSAIC_MEMREF && mp_dtype_is_float(type->dtype);
}
// Integers, booleans and indices.
static inline bool mp_mosaic_is_int(const mp_mosaic_type_t *type) {
  return type->kind != MP_MOSAIC_MEMREF &&
         (mp_dtype_is_integer(type->dtype) || type->dtype == MP_DTYPE_BOOL);
}
static inline bool mp_mosaic_is_scalar_int(const mp_mosaic_type_t *type) {
  return type->kind == MP_MOSAIC_SCALAR && mp_mosaic_is_int(type);
}
static inline bool mp_mosaic_is_memref(const mp_mosaic_type_t *type) {
  return type->kind == MP_MOSAIC_MEMREF;
}
static inline bool mp_mosaic_is_numbers(const mp_mosaic_type_t *type) {
  return mp_mosaic_is_memref(type) && type->element == MP_MOSAIC_NUMBER;
}
static inline bool mp_mosaic_is_semaphore(const mp_mosaic_type_t *type) {
  return mp_mosaic_is_memref(type) && type->element != MP_MOSAIC_NUMBER;
}
// Whether both are scalars, or vectors of one shape.
bool mp_mosaic_same_shape(const mp_mosaic_type_t *a, const mp_mosaic_type_t *b);
// Whether both have the same dimensions; a dynamic one equals any.
bool mp_mosaic_same_dims(const mp_mosaic_type_t *a, const mp_mosaic_type_t *b);

// ---- attributes ----

// A list of integers, from INTS or an ARRAY of INT; false: it is absent or another attribute.
typedef struct {
  const mp_mosaic_attr_t *attr;
  uint32_t count;
} mp_mosaic_ints_t;
bool mp_mosaic_ints(const mp_mosaic_op_t *op, const char *name, mp_mosaic_ints_t *out_ints);
bool mp_mosaic_ints_of(const mp_mosaic_attr_t *attr, mp_mosaic_ints_t *out_ints);
static inline int64_t mp_mosaic_int_at(mp_mosaic_ints_t ints, uint32_t i) {
  const mp_mosaic_attr_t *a = ints.attr;
  return a->kind == MP_MOSAIC_INTS ? a->ints.values[i] : a->list.items[i].value->i64;
}
// Reads operandSegmentSizes: `count` numbers that add up to the number of operands. Bit i of `many`
// is set if segment i may have more than one operand; bit i of `needed`, if it must have one.
MP_NODISCARD mp_status_t mp_mosaic_segments(const mp_mosaic_op_t *op, uint32_t count, unsigned many,
                                            unsigned needed, uint32_t *out_sizes);
// The number of a dimension below `rank`.
MP_NODISCARD mp_status_t mp_mosaic_check_dim(const mp_mosaic_op_t *op, const char *name,
                                             uint32_t rank, uint32_t *out_dim);
// The list has dimensions below `rank`, each once; `name` is the attribute's.
MP_NODISCARD mp_status_t mp_mosaic_check_dims(const mp_mosaic_op_t *op, const char *name,
                                              mp_mosaic_ints_t dims, uint32_t rank);
// Operands from `first` on are `count` scalars of integers.
MP_NODISCARD mp_status_t mp_mosaic_check_indices(const mp_mosaic_op_t *op, uint32_t first,
                                                 uint32_t count);

#endif  // MINIPOD_SIM_MOSAIC_IR_MOSAIC_VERIFY_H_
