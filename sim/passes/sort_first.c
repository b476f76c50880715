// Frontends express "the largest k" as a sort and slices of its results. If only such slices use
// the results of a sort, it computes only the first elements (MP_ATTR_FIRST), as many as the
// largest slice takes; a slice that takes all of them becomes a reshape, which is free.
#include "sim/ir/schema.h"
#include "sim/passes/passes.h"
#include "sim/passes/rewrite/rewrite.h"

typedef struct {
  mp_module_t *module;
  int64_t *needed;  // by value id: how many first elements of a sort's result are used
} sort_first_t;

static uint32_t sort_first_dimension(const mp_op_t *sort) {
  const int64_t dimension = mp_op_int(sort, MP_ATTR_DIMENSION, -1);
  return (uint32_t)(dimension < 0 ? dimension + sort->operands[0]->type->rank : dimension);
}

// How many first elements along dimension `along` of an operand of this type the op uses; all if
// it is not a slice that begins with the first one and is whole in all other dimensions.
static int64_t sort_first_used(const mp_op_t *op, const mp_type_t *type, uint32_t along) {
  if (op->code != MP_OP_SLICE) return type->dims[along];
  const mp_index_list_t starts = mp_op_ints(op, MP_ATTR_START_INDICES);
  const mp_index_list_t limits = mp_op_ints(op, MP_ATTR_LIMIT_INDICES);
  const mp_index_list_t strides = mp_op_ints(op, MP_ATTR_STRIDES);
  for (uint32_t i = 0; i < type->rank; ++i) {
    const bool is_whole = i == along || limits.values[i] == type->dims[i];
    if (starts.values[i] != 0 || strides.values[i] != 1 || !is_whole) return type->dims[along];
  }
  return limits.values[along];
}

static mp_status_t sort_first_note_uses(void *context, mp_op_t *op) {
  const sort_first_t *pass = context;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const mp_value_t *value = op->operands[i];
    if (value->op == NULL || value->op->code != MP_OP_SORT) continue;
    const int64_t used = sort_first_used(op, value->type, sort_first_dimension(value->op));
    int64_t *needed = &pass->needed[value->id];
    if (used > *needed) *needed = used;
  }
  return NULL;
}

static mp_status_t sort_first_shrink(void *context, mp_op_t *op) {
  const sort_first_t *pass = context;
  if (op->code != MP_OP_SORT || mp_op_attr(op, MP_ATTR_FIRST) != NULL) return NULL;
  if (!mp_type_is_static(op->operands[0]->type)) return NULL;
  const uint32_t along = sort_first_dimension(op);
  int64_t first = 0;
  for (uint32_t i = 0; i < op->num_results; ++i) {
    const int64_t needed = pass->needed[op->results[i].id];
    if (needed > first) first = needed;
  }
  // Other passes remove sorts without elements.
  if (first == 0 || first == op->operands[0]->type->dims[along]) return NULL;
  mp_arena_t *arena = pass->module->arena;
  for (uint32_t i = 0; i < op->num_results; ++i) {
    const mp_type_t *in = op->operands[i]->type;
    int64_t *dims = mp_arena_copy(arena, in->dims, in->rank * sizeof(*dims));
    MP_RETURN_IF_NULL(dims);
    dims[along] = first;
    MP_RETURN_IF_ERROR(mp_type_tensor(arena, in->dtype, dims, in->rank, &op->results[i].type));
  }
  const mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_attr_make_int(arena, MP_DTYPE_S64, first, &attr));
  return mp_op_set_attr(pass->module, op, MP_ATTR_FIRST, attr);
}

// Replaces slices that take everything.
static mp_status_t sort_first_skip_slice(void *context, mp_op_t *op) {
  const sort_first_t *pass = context;
  if (op->code != MP_OP_SLICE) return NULL;
  const mp_op_t *sort = op->operands[0]->op;
  if (sort == NULL || sort->code != MP_OP_SORT || mp_op_attr(sort, MP_ATTR_FIRST) == NULL) {
    return NULL;
  }
  if (!mp_type_equal(op->operands[0]->type, op->results[0].type)) return NULL;
  return mp_rewrite_become(pass->module, op, MP_OP_RESHAPE, NULL, 0);
}

mp_status_t mp_pass_sort_first(mp_module_t *module) {
  const uint32_t num_values = mp_module_number_values(module);
  sort_first_t pass = {.module = module};
  pass.needed = MP_ARENA_ARRAY(module->arena, int64_t, (size_t)num_values + 1);
  MP_RETURN_IF_NULL(pass.needed);
  MP_RETURN_IF_ERROR(mp_module_walk(module, sort_first_note_uses, &pass));
  MP_RETURN_IF_ERROR(mp_module_walk(module, sort_first_shrink, &pass));
  return mp_module_walk(module, sort_first_skip_slice, &pass);
}
