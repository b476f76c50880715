// Helpers for passes that change ops in place.
//
// An op that is sugar *becomes* the last op of its plain form: the object stays, so that its
// results keep their users, and ops that are needed before it are inserted there. Everything is
// allocated in the module's arena.
#ifndef MINIPOD_SIM_PASSES_REWRITE_REWRITE_H_
#define MINIPOD_SIM_PASSES_REWRITE_REWRITE_H_

#include "sim/base/status.h"
#include "sim/ir/module.h"

// Gives `op` another opcode. Its attributes are then those given, those of its old ones that the
// new opcode has too or that are discardable, and the defaults of all others.
MP_NODISCARD mp_status_t mp_rewrite_become(mp_module_t *module, mp_op_t *op, mp_opcode_t code,
                                           const mp_named_attr_t *attrs, uint32_t num_attrs);

// Gives `op` these operands in place of its old ones. The array is copied.
MP_NODISCARD mp_status_t mp_rewrite_set_operands(mp_module_t *module, mp_op_t *op,
                                                 mp_value_t *const *operands, uint32_t count);

// Appends a return without operands: a position in a block that has no terminator yet.
MP_NODISCARD mp_status_t mp_rewrite_append_return(mp_module_t *module, mp_block_t *block,
                                                  const mp_loc_t *loc, mp_op_t **out_position);

typedef struct {
  mp_opcode_t code;
  const mp_type_t *type;  // of its one result
  mp_value_t *const *operands;
  uint32_t num_operands, num_attrs;
  const mp_named_attr_t *attrs;
} mp_op_one_t;

// Makes an op and inserts it before `position`, whose location it gets. Attributes of the op that
// are not given have their defaults.
MP_NODISCARD mp_status_t mp_rewrite_insert_op(mp_module_t *module, mp_op_t *position,
                                              const mp_op_one_t *op, mp_value_t **out_value);
// The same, of an op without attributes.
MP_NODISCARD mp_status_t mp_rewrite_insert(mp_module_t *module, mp_op_t *position, mp_opcode_t code,
                                           mp_value_t *const *operands, uint32_t num_operands,
                                           const mp_type_t *type, mp_value_t **out_value);

// Inserts a transpose of `value`. Dimension k of its result is dimension permutation[k] of `value`.
MP_NODISCARD mp_status_t mp_rewrite_insert_transpose(mp_module_t *module, mp_op_t *position,
                                                     mp_value_t *value, const int64_t *permutation,
                                                     const mp_type_t *type, mp_value_t **out_value);

// Inserts the part of `value` that begins at `starts` and has the dimensions of `type`.
MP_NODISCARD mp_status_t mp_rewrite_insert_slice(mp_module_t *module, mp_op_t *position,
                                                 mp_value_t *value, const int64_t *starts,
                                                 const mp_type_t *type, mp_value_t **out_value);

// Inserts an array of `type` whose elements are copies of a scalar.
MP_NODISCARD mp_status_t mp_rewrite_insert_copies(mp_module_t *module, mp_op_t *position,
                                                  mp_value_t *scalar, const mp_type_t *type,
                                                  mp_value_t **out_value);

// Inserts the comparison of two values of one type, by the order of their numbers; `direction` is
// MP_CMP_...
MP_NODISCARD mp_status_t mp_rewrite_insert_compare(mp_module_t *module, mp_op_t *position,
                                                   uint32_t direction, mp_value_t *a, mp_value_t *b,
                                                   mp_value_t **out_value);

// Inserts a constant of `type` that has one element everywhere.
MP_NODISCARD mp_status_t mp_rewrite_insert_constant(mp_module_t *module, mp_op_t *position,
                                                    const mp_type_t *type, const void *element,
                                                    mp_value_t **out_value);

// Inserts a scalar constant whose bytes are all zero: the number zero in every type that can be
// summed.
MP_NODISCARD mp_status_t mp_rewrite_insert_zero(mp_module_t *module, mp_op_t *position,
                                                mp_dtype_t dtype, mp_value_t **out_value);

// Inserts a constant of `type`, of integers, with one number everywhere.
MP_NODISCARD mp_status_t mp_rewrite_insert_number(mp_module_t *module, mp_op_t *position,
                                                  const mp_type_t *type, int64_t number,
                                                  mp_value_t **out_value);

// The operands of the concatenation along `dim` that computes `value`, if each of them has size 1
// there, so that their number is the value's size; otherwise NULL.
mp_value_t *const *mp_rewrite_joined(const mp_value_t *value, int64_t dim);

// Make a named attribute: a list of integers, which is copied, or any value.
MP_NODISCARD mp_status_t mp_rewrite_ints(mp_module_t *module, mp_attr_name_t name,
                                         const int64_t *values, uint32_t count,
                                         mp_named_attr_t *out_attr);
mp_named_attr_t mp_rewrite_attr(mp_attr_name_t name, const mp_attr_t *value);

#endif  // MINIPOD_SIM_PASSES_REWRITE_REWRITE_H_
