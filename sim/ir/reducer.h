// Reducers are the scalar regions (a, b) -> op(a, b) of reduce, scatter, all_reduce and the like.
// Here are properties that can be read off one; mp_block_create_reducer (module.h) makes them.
#ifndef MINIPOD_SIM_IR_REDUCER_H_
#define MINIPOD_SIM_IR_REDUCER_H_

#include "sim/ir/module.h"

// The kinds of reducers that kernels, collectives and the partitioner may treat specially: the
// region is one op on its two arguments, in either order if the op is commutative. Copies
// (mp_region_see_through) and conversions to a wider element type and back do not count.
//
// Name, and the op (MP_OP_COUNT: it is none). SECOND returns its second argument (scatter "set").
#define MP_REDUCE_KINDS(X) \
  X(CUSTOM, COUNT)         \
  X(ADD, ADD)              \
  X(MUL, MULTIPLY)         \
  X(MIN, MINIMUM)          \
  X(MAX, MAXIMUM)          \
  X(AND, AND)              \
  X(OR, OR)                \
  X(XOR, XOR)              \
  X(SECOND, COUNT)

typedef enum {
#define MP_REDUCE_ENUM(name, op) MP_REDUCE_##name,
  MP_REDUCE_KINDS(MP_REDUCE_ENUM)
#undef MP_REDUCE_ENUM
} mp_reduce_kind_t;

// The kind of a region that returns these values.
mp_reduce_kind_t mp_region_kind(const mp_block_t *block, const mp_value_t *const *results,
                                uint32_t num_results);

// The same for what the block's terminator returns.
mp_reduce_kind_t mp_reducer_kind(const mp_block_t *block);

// The kind of one result of a region (a_1 .. a_n, b_1 .. b_n) -> n results: what result r makes of
// a_r and b_r, if it uses no other arguments, and otherwise CUSTOM.
mp_reduce_kind_t mp_reducer_result_kind(const mp_block_t *block, uint32_t result);

// The op that the kind stands for: ADD to XOR. MP_OP_COUNT for CUSTOM and SECOND.
mp_opcode_t mp_reduce_kind_opcode(mp_reduce_kind_t kind);

// Whether each result r of a region with arguments a_1 .. a_n, b_1 .. b_n is always a_r or b_r, as
// in argmax. A reduction with such a region may use its initial value any number of times.
bool mp_reducer_is_choice(const mp_block_t *block);

// The element that `code` (ADD, MULTIPLY, OR, XOR) combines with any other without changing it, as
// a stored element of up to 16 bytes. For sums of floating-point numbers it is negative zero if the
// type has one. False when there is no such element.
bool mp_reducer_identity(mp_dtype_t dtype, mp_opcode_t code, void *out_element);

// Whether `value`, a scalar, is a constant of that element; for a sum zeros of either sign count.
bool mp_reducer_is_identity(const mp_value_t *value, mp_opcode_t code);

// Whether a reduction by `code` may use `value`, its initial value, any number of times.
bool mp_reducer_may_repeat(const mp_value_t *value, mp_opcode_t code);

// The value that `value` is a copy of, through ops that do not change a scalar; `value` itself when
// it is none.
const mp_value_t *mp_region_see_through(const mp_value_t *value);

// Makes the reduction of an array, by the binary elementwise op `code`; the second operand is where
// it begins, `dims` its attribute of dimensions. It belongs to no block.
MP_NODISCARD mp_status_t mp_op_create_reduce(mp_module_t *module, mp_opcode_t code,
                                             const mp_loc_t *loc, mp_value_t *const operands[2],
                                             const mp_type_t *type, const mp_named_attr_t *dims,
                                             mp_op_t **out_op);

#endif  // MINIPOD_SIM_IR_REDUCER_H_
