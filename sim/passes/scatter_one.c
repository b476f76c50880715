// A scatter with one window in a loop, x[i] = y or x[i] += y with a computed i, becomes a
// dynamic_slice, the combination with the update if the window is inside of the array, and a
// dynamic_update_slice. These can be steps of small loops (sim/loops), while a scatter is a kernel
// with a large set-up cost.
#include "sim/ir/reducer.h"
#include "sim/ir/schema.h"
#include "sim/numeric/dims.h"
#include "sim/passes/passes.h"
#include "sim/passes/rewrite/rewrite.h"

// For a larger window the slice would cost more than is saved.
enum { MAX_WINDOW_BYTES = 4096 };

typedef struct {
  mp_module_t *module;
  mp_op_t *op;
  mp_reduce_kind_t kind;
  const mp_type_t *window;          // its type, with all dimensions of the operand
  mp_value_t *starts[MP_MAX_RANK];  // scalars, one for each dimension of the operand
  mp_value_t *is_inside;            // NULL: it always is
} scatter_t;

static bool scatter_one_is_in_loop(const mp_op_t *op) {
  const mp_op_t *around = op->parent->parent_op;
  while (around != NULL && around->code != MP_OP_WHILE) around = around->parent->parent_op;
  return around != NULL;
}

// Small loops can only move narrow floating-point numbers, not compute with them.
static bool scatter_one_is_step(const mp_type_t *type, mp_reduce_kind_t kind) {
  return kind == MP_REDUCE_SECOND || !mp_dtype_is_float(type->dtype) ||
         type->dtype == MP_DTYPE_F32 || type->dtype == MP_DTYPE_F64;
}

// Whether the op is such a scatter.
static bool scatter_one_matches(const mp_op_t *op, mp_reduce_kind_t *out_kind) {
  if (op->code != MP_OP_SCATTER || op->num_operands != 3 || op->num_results != 1) return false;
  for (uint32_t i = 0; i < 3; ++i) {
    if (!mp_type_is_static(op->operands[i]->type)) return false;
  }
  const mp_type_t *indices = op->operands[1]->type;
  if (op->operands[0]->type->rank == 0) return false;
  const int64_t vector_dim = mp_op_int(op, MP_ATTR_INDEX_VECTOR_DIM, indices->rank);
  for (uint32_t d = 0; d < indices->rank; ++d) {
    if (d != vector_dim && indices->dims[d] != 1) return false;
  }
  if (mp_op_ints(op, MP_ATTR_INPUT_BATCHING_DIMS).count != 0) return false;
  int64_t bytes = 0;
  if (!mp_type_num_bytes(op->operands[2]->type, &bytes) || bytes == 0) return false;
  *out_kind = mp_reducer_kind(op->regions[0]);
  if (!scatter_one_is_step(op->operands[0]->type, *out_kind)) return false;
  return bytes <= MAX_WINDOW_BYTES && *out_kind != MP_REDUCE_CUSTOM && scatter_one_is_in_loop(op);
}

// The window has the update's dimensions, and dimensions of one element that the update lacks.
static mp_status_t scatter_one_find_window(scatter_t *s) {
  const mp_type_t *operand = s->op->operands[0]->type, *update = s->op->operands[2]->type;
  const mp_index_list_t inserted = mp_op_ints(s->op, MP_ATTR_INSERTED_WINDOW_DIMS);
  const mp_index_list_t in_update = mp_op_ints(s->op, MP_ATTR_UPDATE_WINDOW_DIMS);
  int64_t dims[MP_MAX_RANK];
  size_t next = 0;
  for (uint32_t d = 0; d < operand->rank; ++d) {
    dims[d] = mp_index_list_has(inserted, d) ? 1 : update->dims[in_update.values[next++]];
  }
  return mp_type_tensor(s->module->arena, operand->dtype, dims, operand->rank, &s->window);
}

static mp_status_t scatter_one_number(const scatter_t *s, mp_dtype_t dtype, int64_t number,
                                      mp_value_t **out_value) {
  const mp_type_t *type = NULL;
  MP_RETURN_IF_ERROR(mp_type_tensor(s->module->arena, dtype, NULL, 0, &type));
  return mp_rewrite_insert_number(s->module, s->op, type, number, out_value);
}

// Component `k` of the only index vector, as a scalar.
static mp_status_t scatter_one_component(const scatter_t *s, uint32_t k, mp_value_t **out_value) {
  mp_value_t *indices = s->op->operands[1];
  const mp_type_t *type = indices->type;
  mp_arena_t *arena = s->module->arena;
  const int64_t vector_dim = mp_op_int(s->op, MP_ATTR_INDEX_VECTOR_DIM, type->rank);
  int64_t starts[MP_MAX_RANK], ones[MP_MAX_RANK];
  for (uint32_t d = 0; d < type->rank; ++d) {
    starts[d] = d == vector_dim ? k : 0;
    ones[d] = 1;
  }
  const mp_type_t *one = NULL, *scalar = NULL;
  MP_RETURN_IF_ERROR(mp_type_tensor(arena, type->dtype, ones, type->rank, &one));
  MP_RETURN_IF_ERROR(mp_type_tensor(arena, type->dtype, NULL, 0, &scalar));
  mp_value_t *value = indices;
  mp_value_t *const *joined = mp_rewrite_joined(indices, vector_dim);
  if (joined != NULL) {
    value = joined[k];
  } else if (!mp_type_equal(one, type)) {
    MP_RETURN_IF_ERROR(mp_rewrite_insert_slice(s->module, s->op, value, starts, one, &value));
  }
  return mp_rewrite_insert(s->module, s->op, MP_OP_RESHAPE, &value, 1, scalar, out_value);
}

// is_inside = is_inside and index `direction` number
static mp_status_t scatter_one_require(scatter_t *s, mp_value_t *index, uint32_t direction,
                                       int64_t number) {
  mp_value_t *limit = NULL, *both[2] = {s->is_inside, NULL};
  MP_RETURN_IF_ERROR(scatter_one_number(s, index->type->dtype, number, &limit));
  MP_RETURN_IF_ERROR(
      mp_rewrite_insert_compare(s->module, s->op, direction, index, limit, &both[1]));
  if (s->is_inside == NULL) {
    s->is_inside = both[1];
    return NULL;
  }
  return mp_rewrite_insert(s->module, s->op, MP_OP_AND, both, 2, both[1]->type, &s->is_inside);
}

// The start of the window, and whether all of it is inside of the operand.
static mp_status_t scatter_one_find_starts(scatter_t *s) {
  const mp_type_t *operand = s->op->operands[0]->type;
  const mp_dtype_t dtype = s->op->operands[1]->type->dtype;
  const mp_index_list_t indexed = mp_op_ints(s->op, MP_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS);
  for (uint32_t k = 0; k < indexed.count; ++k) {
    const int64_t d = indexed.values[k];
    MP_RETURN_IF_ERROR(scatter_one_component(s, k, &s->starts[d]));
    if (mp_dtype_class(dtype) == MP_CLASS_SIGNED) {
      MP_RETURN_IF_ERROR(scatter_one_require(s, s->starts[d], MP_CMP_GE, 0));
    }
    const int64_t most = operand->dims[d] - s->window->dims[d];
    MP_RETURN_IF_ERROR(scatter_one_require(s, s->starts[d], MP_CMP_LE, most));
  }
  for (uint32_t d = 0; d < operand->rank; ++d) {
    if (s->starts[d] == NULL) {
      MP_RETURN_IF_ERROR(scatter_one_number(s, dtype, 0, &s->starts[d]));
    }
  }
  return NULL;
}

// The values that are put back.
static mp_status_t scatter_one_combine(const scatter_t *s, mp_value_t **out_value) {
  const mp_type_t *operand = s->op->operands[0]->type;
  mp_value_t *values[1 + MP_MAX_RANK] = {s->op->operands[0]};
  for (uint32_t d = 0; d < operand->rank; ++d) values[1 + d] = s->starts[d];
  mp_named_attr_t sizes;
  MP_RETURN_IF_ERROR(
      mp_rewrite_ints(s->module, MP_ATTR_SLICE_SIZES, s->window->dims, operand->rank, &sizes));
  mp_value_t *old = NULL, *update = NULL;
  const mp_op_one_t made = {.code = MP_OP_DYNAMIC_SLICE,
                            .type = s->window,
                            .operands = values,
                            .num_operands = 1 + operand->rank,
                            .attrs = &sizes,
                            .num_attrs = 1};
  MP_RETURN_IF_ERROR(mp_rewrite_insert_op(s->module, s->op, &made, &old));
  MP_RETURN_IF_ERROR(mp_rewrite_insert(s->module, s->op, MP_OP_RESHAPE, &s->op->operands[2], 1,
                                       s->window, &update));
  if (s->kind != MP_REDUCE_SECOND) {
    mp_value_t *pair[2] = {old, update};
    MP_RETURN_IF_ERROR(mp_rewrite_insert(s->module, s->op, mp_reduce_kind_opcode(s->kind), pair, 2,
                                         s->window, &update));
  }
  *out_value = update;
  if (s->is_inside == NULL) return NULL;
  mp_value_t *choice[3] = {s->is_inside, update, old};
  return mp_rewrite_insert(s->module, s->op, MP_OP_SELECT, choice, 3, s->window, out_value);
}

// Whether steps can take and put the window, and all numbers that are compared with indices fit
// their type.
static bool scatter_one_fits(const scatter_t *s) {
  const mp_type_t *operand = s->op->operands[0]->type;
  const int bits = mp_dtype_bits(s->op->operands[1]->type->dtype);
  for (uint32_t d = 0; d < operand->rank; ++d) {
    const int64_t most = operand->dims[d] - s->window->dims[d];
    if (most < 0 || (bits < 64 && most >> (bits - 1) != 0)) return false;
  }
  return bits >= 8 && mp_dims_is_piece(operand->dims, s->window->dims, operand->rank);
}

static mp_status_t scatter_one_op(void *context, mp_op_t *op) {
  scatter_t s = {.module = context, .op = op};
  if (!scatter_one_matches(op, &s.kind)) return NULL;
  MP_RETURN_IF_ERROR(scatter_one_find_window(&s));
  if (!scatter_one_fits(&s)) return NULL;
  MP_RETURN_IF_ERROR(scatter_one_find_starts(&s));
  mp_value_t *operands[2 + MP_MAX_RANK] = {op->operands[0], NULL};
  MP_RETURN_IF_ERROR(scatter_one_combine(&s, &operands[1]));
  const uint32_t rank = s.window->rank;
  for (uint32_t d = 0; d < rank; ++d) operands[2 + d] = s.starts[d];
  op->num_regions = 0;
  MP_RETURN_IF_ERROR(mp_rewrite_become(s.module, op, MP_OP_DYNAMIC_UPDATE_SLICE, NULL, 0));
  return mp_rewrite_set_operands(s.module, op, operands, 2 + rank);
}

mp_status_t mp_pass_scatter_one(mp_module_t *module) {
  return mp_module_walk(module, scatter_one_op, module);
}
