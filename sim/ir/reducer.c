#include "sim/ir/reducer.h"

#include <string.h>

#include "sim/base/assert.h"

// ---- making ----

mp_status_t mp_block_create_reducer(mp_module_t *module, mp_opcode_t code, mp_dtype_t dtype,
                                    const mp_loc_t *loc, mp_block_t **out_block) {
  const mp_type_t *scalar = NULL;
  MP_RETURN_IF_ERROR(mp_type_tensor(module->arena, dtype, NULL, 0, &scalar));
  mp_block_t *block = NULL;
  MP_RETURN_IF_ERROR(mp_block_create(module, 2, (const mp_type_t *[]){scalar, scalar}, &block));
  const mp_op_spec_t combine_spec = {.code = code,
                                     .loc = loc,
                                     .num_operands = 2,
                                     .operands = (mp_value_t *[]){&block->args[0], &block->args[1]},
                                     .num_results = 1,
                                     .result_types = &scalar};
  mp_op_t *combined = NULL;
  MP_RETURN_IF_ERROR(mp_op_create(module, &combine_spec, &combined));
  mp_block_append(block, combined);
  const mp_op_spec_t return_spec = {.code = MP_OP_RETURN,
                                    .loc = loc,
                                    .num_operands = 1,
                                    .operands = (mp_value_t *[]){&combined->results[0]}};
  mp_op_t *terminator = NULL;
  MP_RETURN_IF_ERROR(mp_op_create(module, &return_spec, &terminator));
  mp_block_append(block, terminator);
  *out_block = block;
  return NULL;
}

mp_status_t mp_op_create_reduce(mp_module_t *module, mp_opcode_t code, const mp_loc_t *loc,
                                mp_value_t *const operands[2], const mp_type_t *type,
                                const mp_named_attr_t *dims, mp_op_t **out_op) {
  mp_block_t *region = NULL;
  MP_RETURN_IF_ERROR(mp_block_create_reducer(module, code, type->dtype, loc, &region));
  const mp_op_spec_t spec = {.code = MP_OP_REDUCE,
                             .loc = loc,
                             .num_operands = 2,
                             .operands = operands,
                             .num_results = 1,
                             .result_types = &type,
                             .num_regions = 1,
                             .regions = &region,
                             .num_attrs = 1,
                             .attrs = dims};
  return mp_op_create(module, &spec, out_op);
}

// ---- recognising ----

static bool reducer_is_scalar(const mp_type_t *type) {
  return mp_type_is_tensor(type) && type->rank == 0;
}

const mp_value_t *mp_region_see_through(const mp_value_t *value) {
  while (value->op != NULL) {
    const mp_op_t *op = value->op;
    if (mp_op_has(op, MP_OP_TRAIT_MOVES)) {
      if (!reducer_is_scalar(op->operands[0]->type) || !reducer_is_scalar(value->type))
        return value;
      value = op->operands[0];
      continue;
    }
    switch (op->code) {
      case MP_OP_BITCAST_CONVERT: {
        const mp_type_t *from = op->operands[0]->type;
        if (!reducer_is_scalar(from) || !reducer_is_scalar(value->type)) return value;
        if (mp_dtype_bits(from->dtype) != mp_dtype_bits(value->type->dtype)) return value;
        value = op->operands[0];
        break;
      }
      case MP_OP_OPTIMIZATION_BARRIER:
        value = op->operands[value->index];
        break;
      case MP_OP_GET_TUPLE_ELEMENT: {
        const mp_value_t *tuple = mp_region_see_through(op->operands[0]);
        int64_t index = mp_op_int(op, MP_ATTR_INDEX, -1);
        if (tuple->op == NULL || tuple->op->code != MP_OP_TUPLE) return value;
        if (index < 0 || index >= tuple->op->num_operands) return value;
        value = tuple->op->operands[index];
        break;
      }
      default:
        return value;
    }
  }
  return value;
}

// `value` seen through copies and converts to a wider type of the same kind.
static const mp_value_t *reducer_see_through_widening(const mp_value_t *value) {
  for (;;) {
    value = mp_region_see_through(value);
    if (value->op == NULL || value->op->code != MP_OP_CONVERT) return value;
    mp_dtype_t from = value->op->operands[0]->type->dtype, to = value->type->dtype;
    if (mp_dtype_class(from) != mp_dtype_class(to)) return value;
    if (mp_dtype_bits(from) >= mp_dtype_bits(to)) return value;
    value = value->op->operands[0];
  }
}

static const mp_opcode_t g_kind_opcodes[] = {
#define ROW(name, op) [MP_REDUCE_##name] = MP_OP_##op,
    MP_REDUCE_KINDS(ROW)
#undef ROW
};

mp_opcode_t mp_reduce_kind_opcode(mp_reduce_kind_t kind) {
  MP_ASSERT((size_t)kind < sizeof(g_kind_opcodes) / sizeof(g_kind_opcodes[0]));
  return g_kind_opcodes[kind];
}

static mp_reduce_kind_t reducer_kind_of_op(mp_opcode_t code) {
  for (int kind = MP_REDUCE_ADD; kind <= MP_REDUCE_XOR; ++kind) {
    if (g_kind_opcodes[kind] == code) return (mp_reduce_kind_t)kind;
  }
  return MP_REDUCE_CUSTOM;
}

static bool reducer_has_bitcasts(const mp_block_t *block) {
  for (const mp_op_t *op = block->first; op != NULL; op = op->next) {
    // Arithmetic between bitcasts works on other numbers than the region's type says.
    if (op->code == MP_OP_BITCAST_CONVERT) return true;
  }
  return false;
}

// How `value` is made from two arguments of the region.
static mp_reduce_kind_t reducer_kind_of(const mp_value_t *first, const mp_value_t *second,
                                        const mp_value_t *value) {
  mp_dtype_t dtype = first->type->dtype;
  if (second->type->dtype != dtype || value->type->dtype != dtype) return MP_REDUCE_CUSTOM;
  if (value == second) return MP_REDUCE_SECOND;
  // A bf16 reducer may convert to f32, compute and convert back. Arithmetic on bf16 is defined in
  // the same way, so the kind is that of the op between the conversions.
  if (value->op != NULL && value->op->code == MP_OP_CONVERT) {
    const mp_value_t *wide = mp_region_see_through(value->op->operands[0]);
    if (mp_dtype_class(wide->type->dtype) != mp_dtype_class(dtype)) return MP_REDUCE_CUSTOM;
    if (mp_dtype_bits(wide->type->dtype) < mp_dtype_bits(dtype)) return MP_REDUCE_CUSTOM;
    value = wide;
  }
  if (value->op == NULL || value->op->num_operands != 2) return MP_REDUCE_CUSTOM;
  const mp_value_t *x = reducer_see_through_widening(value->op->operands[0]);
  const mp_value_t *y = reducer_see_through_widening(value->op->operands[1]);
  const bool is_swapped = x == second && y == first;
  if (is_swapped ? !mp_op_has(value->op, MP_OP_TRAIT_COMMUTATIVE) : x != first || y != second) {
    return MP_REDUCE_CUSTOM;
  }
  return reducer_kind_of_op(value->op->code);
}

mp_reduce_kind_t mp_region_kind(const mp_block_t *block, const mp_value_t *const *results,
                                uint32_t num_results) {
  if (block->num_args != 2 || num_results != 1 || reducer_has_bitcasts(block))
    return MP_REDUCE_CUSTOM;
  return reducer_kind_of(&block->args[0], &block->args[1], results[0]);
}

mp_reduce_kind_t mp_reducer_result_kind(const mp_block_t *block, uint32_t result) {
  const mp_op_t *end = mp_block_terminator(block);
  if (end == NULL || result >= end->num_operands || block->num_args != 2 * end->num_operands ||
      reducer_has_bitcasts(block)) {
    return MP_REDUCE_CUSTOM;
  }
  return reducer_kind_of(&block->args[result], &block->args[end->num_operands + result],
                         mp_region_see_through(end->operands[result]));
}

mp_reduce_kind_t mp_reducer_kind(const mp_block_t *block) {
  const mp_op_t *end = mp_block_terminator(block);
  if (end == NULL || end->num_operands != 1) return MP_REDUCE_CUSTOM;
  const mp_value_t *result = mp_region_see_through(end->operands[0]);
  return mp_region_kind(block, &result, 1);
}

// This is deep enough for any region that people write, and bounds the work for hostile ones.
enum { MAX_CHOICE_DEPTH = 8 };

static bool reducer_is_choice_of(const mp_block_t *block, const mp_value_t *value, uint32_t result,
                                 uint32_t depth) {
  MP_ASSERT(block->num_args >= 2 && result < block->num_args / 2);
  value = mp_region_see_through(value);
  if (value->block == block) return value->index % (block->num_args / 2) == result;
  if (value->op == NULL || value->op->parent != block || depth == 0) return false;
  const mp_op_t *op = value->op;
  switch (op->code) {
    case MP_OP_SELECT:
      return reducer_is_choice_of(block, op->operands[1], result, depth - 1) &&
             reducer_is_choice_of(block, op->operands[2], result, depth - 1);
    case MP_OP_MAXIMUM:
    case MP_OP_MINIMUM:
      return reducer_is_choice_of(block, op->operands[0], result, depth - 1) &&
             reducer_is_choice_of(block, op->operands[1], result, depth - 1);
    default:
      return false;
  }
}

bool mp_reducer_is_choice(const mp_block_t *block) {
  const mp_op_t *end = mp_block_terminator(block);
  if (end == NULL || block->num_args == 0 || block->num_args != 2 * end->num_operands) return false;
  for (uint32_t r = 0; r < end->num_operands; ++r) {
    if (!reducer_is_choice_of(block, end->operands[r], r, MAX_CHOICE_DEPTH)) return false;
  }
  return true;
}

// ---- initial values ----

bool mp_reducer_identity(mp_dtype_t dtype, mp_opcode_t code, void *out_element) {
  if (code != MP_OP_ADD && code != MP_OP_MULTIPLY && code != MP_OP_OR && code != MP_OP_XOR) {
    return false;
  }
  const bool is_one = code == MP_OP_MULTIPLY;
  const bool is_complex = mp_dtype_is_complex(dtype);
  unsigned char *element = out_element;
  memset(element, 0, mp_dtype_size(dtype));
  if (!mp_dtype_is_float(dtype) && !is_complex) {
    element[0] = is_one;
    return true;
  }
  // A complex product with 1 + 0i multiplies infinities by 0.
  if (is_complex && is_one) return false;
  const mp_dtype_t part = mp_dtype_real_part(dtype);
  const double number = is_one ? 1.0 : 0.0;
  mp_float_encode(part, is_one ? 1.0 : -0.0, element);
  if (mp_float_decode(part, element) != number) mp_float_encode(part, number, element);
  if (mp_float_decode(part, element) != number) return false;
  if (is_complex) memcpy(element + mp_dtype_size(part), element, mp_dtype_size(part));
  return true;
}

bool mp_reducer_is_identity(const mp_value_t *value, mp_opcode_t code) {
  const mp_dtype_t dtype = value->type->dtype;
  unsigned char identity[16];
  if (value->op == NULL || value->op->code != MP_OP_CONSTANT) return false;
  const char *element = mp_op_splat(value->op);
  if (element == NULL || !mp_reducer_identity(dtype, code, identity)) return false;
  if (memcmp(element, identity, mp_dtype_size(dtype)) == 0) return true;
  // Sums may begin with either zero.
  const bool is_complex = mp_dtype_is_complex(dtype);
  if (code != MP_OP_ADD || !(mp_dtype_is_float(dtype) || is_complex)) return false;
  const mp_dtype_t part = mp_dtype_real_part(dtype);
  return mp_float_decode(part, element) == 0 &&
         (!is_complex || mp_float_decode(part, element + mp_dtype_size(part)) == 0);
}

bool mp_reducer_may_repeat(const mp_value_t *value, mp_opcode_t code) {
  return mp_opcode_has(code, MP_OP_TRAIT_IDEMPOTENT) || mp_reducer_is_identity(value, code);
}
