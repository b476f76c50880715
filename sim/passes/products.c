// Matmuls of transposed values, and transposed matmuls: dot_general can read its operands by any
// dimensions, and swapping the operands transposes the result. The sums have the same order, so the
// bits stay the same; only a pass over memory is saved.
#include "sim/passes/passes.h"
#include "sim/passes/rewrite/rewrite.h"

typedef struct {
  mp_module_t *module;
  uint32_t *uses;  // by value id
} products_t;

// The attributes of one side of a dot_general, and those of the other.
typedef struct {
  mp_attr_name_t batching, contracting;
} side_t;
static const side_t k_sides[2] = {
    {MP_ATTR_LHS_BATCHING_DIMENSIONS, MP_ATTR_LHS_CONTRACTING_DIMENSIONS},
    {MP_ATTR_RHS_BATCHING_DIMENSIONS, MP_ATTR_RHS_CONTRACTING_DIMENSIONS},
};

// ---- operands ----

// Whether the dimensions that are neither batch nor contracted have the same order before and after
// the transpose, so that the result's dimensions keep theirs.
static bool products_keeps_order(const mp_op_t *dot, const side_t *side, mp_index_list_t perm) {
  const mp_index_list_t batching = mp_op_ints(dot, side->batching);
  const mp_index_list_t contracting = mp_op_ints(dot, side->contracting);
  int64_t previous = -1;
  for (uint32_t i = 0; i < perm.count; ++i) {
    if (mp_index_list_has(batching, i) || mp_index_list_has(contracting, i)) continue;
    if (perm.values[i] < previous) return false;
    previous = perm.values[i];
  }
  return true;
}

static mp_status_t products_map_dims(mp_module_t *module, mp_op_t *dot, mp_attr_name_t name,
                                     mp_index_list_t perm) {
  const mp_index_list_t dims = mp_op_ints(dot, name);
  int64_t *mapped = MP_ARENA_ARRAY(module->arena, int64_t, (size_t)dims.count + 1);
  MP_RETURN_IF_NULL(mapped);
  for (uint32_t i = 0; i < dims.count; ++i) mapped[i] = perm.values[dims.values[i]];
  mp_named_attr_t attr;
  MP_RETURN_IF_ERROR(mp_rewrite_ints(module, name, mapped, dims.count, &attr));
  return mp_op_set_attr(module, dot, attr.name, attr.value);
}

// dot(transpose(x), y) = dot(x, y) by other dimensions of x.
static mp_status_t products_read_through(products_t *products, mp_op_t *dot, uint32_t number) {
  const mp_op_t *transpose = dot->operands[number]->op;
  if (transpose == NULL || transpose->code != MP_OP_TRANSPOSE) return NULL;
  if (transpose->parent != dot->parent) return NULL;  // a loop would move it in each round
  const mp_index_list_t perm = mp_op_ints(transpose, MP_ATTR_PERMUTATION);
  const side_t *side = &k_sides[number];
  if (!products_keeps_order(dot, side, perm)) return NULL;
  MP_RETURN_IF_ERROR(products_map_dims(products->module, dot, side->batching, perm));
  MP_RETURN_IF_ERROR(products_map_dims(products->module, dot, side->contracting, perm));
  dot->operands[number] = transpose->operands[0];
  return NULL;
}

// ---- results ----

// Whether `count` dimensions from `first` on are all 1.
static bool products_are_single(const mp_type_t *type, uint32_t first, uint32_t count) {
  for (uint32_t i = first; i < first + count; ++i) {
    if (type->dims[i] != 1) return false;
  }
  return true;
}

// Whether the permutation swaps the row and column dimensions of the result, and keeps the order
// within both. (With one row or one column the kernel sums in another order than for the transposed
// matmul.)
static bool products_exchanges(const mp_op_t *dot, mp_index_list_t perm) {
  const uint32_t batch = mp_op_ints(dot, MP_ATTR_LHS_BATCHING_DIMENSIONS).count;
  const uint32_t contracted = mp_op_ints(dot, MP_ATTR_LHS_CONTRACTING_DIMENSIONS).count;
  const uint32_t rows = dot->operands[0]->type->rank - batch - contracted;
  const uint32_t columns = dot->operands[1]->type->rank - batch - contracted;
  const mp_type_t *type = dot->results[0].type;
  if (products_are_single(type, batch, rows)) return false;
  if (products_are_single(type, batch + rows, columns)) return false;
  for (uint32_t i = 0; i < batch; ++i) {
    if (perm.values[i] != i) return false;
  }
  for (uint32_t i = 0; i < columns; ++i) {
    if (perm.values[batch + i] != batch + rows + i) return false;
  }
  for (uint32_t i = 0; i < rows; ++i) {
    if (perm.values[batch + columns + i] != batch + i) return false;
  }
  return true;
}

static mp_status_t products_swap_attrs(mp_module_t *module, const mp_op_t *from, mp_op_t *to,
                                       mp_attr_name_t left, mp_attr_name_t right) {
  const mp_attr_t *of_left = mp_op_attr(from, left), *of_right = mp_op_attr(from, right);
  if (of_left != NULL) MP_RETURN_IF_ERROR(mp_op_set_attr(module, to, right, of_left));
  return of_right == NULL ? NULL : mp_op_set_attr(module, to, left, of_right);
}

// The precisions are those of the operands, in their order.
static mp_status_t products_swap_precisions(mp_module_t *module, const mp_op_t *from, mp_op_t *to) {
  const mp_attr_t *config = mp_op_attr(from, MP_ATTR_PRECISION_CONFIG);
  if (config == NULL || config->kind != MP_KIND_ARRAY || config->u.array.count != 2) return NULL;
  const mp_attr_t **items = MP_ARENA_ARRAY(module->arena, const mp_attr_t *, 2);
  mp_attr_t *swapped = MP_ARENA_NEW(module->arena, mp_attr_t);
  if (items == NULL || swapped == NULL) return mp_status_out_of_memory();
  items[0] = config->u.array.items[1];
  items[1] = config->u.array.items[0];
  *swapped = *config;
  swapped->u.array.items = items;
  return mp_op_set_attr(module, to, MP_ATTR_PRECISION_CONFIG, swapped);
}

// The operands are swapped.
static uint8_t products_swap_rings(uint8_t rings) {
  const uint32_t rest = rings & ~(uint32_t)(MP_OP_RING_LHS | MP_OP_RING_RHS);
  return (uint8_t)(rest | (uint32_t)(rings & MP_OP_RING_LHS) << 1 |
                   (uint32_t)(rings & MP_OP_RING_RHS) >> 1);
}

// transpose(dot(x, y)) = dot(y, x)
static mp_status_t products_transpose(products_t *products, mp_op_t *op) {
  mp_module_t *module = products->module;
  mp_op_t *dot = op->operands[0]->op;
  if (dot == NULL || dot->code != MP_OP_DOT_GENERAL || products->uses[dot->results[0].id] != 1) {
    return NULL;
  }
  if (dot->parent != op->parent) return NULL;  // a loop would compute it in each round
  if (mp_dtype_is_complex(dot->results[0].type->dtype))
    return NULL;  // each complex product is a sum of products, whose order would change
  if (!products_exchanges(dot, mp_op_ints(op, MP_ATTR_PERMUTATION))) return NULL;
  MP_RETURN_IF_ERROR(mp_rewrite_become(module, op, MP_OP_DOT_GENERAL, dot->attrs, dot->num_attrs));
  op->loc = dot->loc;
  op->rings = products_swap_rings(dot->rings);
  mp_value_t *operands[2] = {dot->operands[1], dot->operands[0]};
  MP_RETURN_IF_ERROR(mp_rewrite_set_operands(module, op, operands, 2));
  static const mp_attr_name_t pairs[][2] = {
      {MP_ATTR_LHS_BATCHING_DIMENSIONS, MP_ATTR_RHS_BATCHING_DIMENSIONS},
      {MP_ATTR_LHS_CONTRACTING_DIMENSIONS, MP_ATTR_RHS_CONTRACTING_DIMENSIONS},
      {MP_ATTR_LHS_PRECISION_TYPE, MP_ATTR_RHS_PRECISION_TYPE},
      {MP_ATTR_LHS_COMPONENT_COUNT, MP_ATTR_RHS_COMPONENT_COUNT},
  };
  for (uint32_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); ++i) {
    MP_RETURN_IF_ERROR(products_swap_attrs(module, dot, op, pairs[i][0], pairs[i][1]));
  }
  return products_swap_precisions(module, dot, op);
}

// ---- the sweep ----

static mp_status_t products_count_uses(void *context, mp_op_t *op) {
  uint32_t *uses = context;
  for (uint32_t i = 0; i < op->num_operands; ++i) ++uses[op->operands[i]->id];
  return NULL;
}

static mp_status_t products_visit(void *context, mp_op_t *op) {
  products_t *products = context;
  if (op->code == MP_OP_TRANSPOSE) return products_transpose(products, op);
  if (op->code != MP_OP_DOT_GENERAL) return NULL;
  for (uint32_t i = 0; i < 2; ++i) MP_RETURN_IF_ERROR(products_read_through(products, op, i));
  return NULL;
}

mp_status_t mp_pass_products(mp_module_t *module) {
  products_t products = {.module = module};
  const uint32_t num_values = mp_module_number_values(module);
  products.uses = MP_ARENA_ARRAY(module->arena, uint32_t, (size_t)num_values + 1);
  MP_RETURN_IF_NULL(products.uses);
  MP_RETURN_IF_ERROR(mp_module_walk(module, products_count_uses, products.uses));
  return mp_module_walk(module, products_visit, &products);
}
