// Gathers by several indices, x[i, j], whose indices are joined to vectors only for the gather:
// reshapes the indexed dimensions of x into one, and computes the places in it from i and j,
// element by element. Then the gather can end a fused op, and the vectors are never written to
// memory.
#include "sim/fuse/fuse_graph.h"
#include "sim/ir/schema.h"
#include "sim/kernels/shape.h"
#include "sim/passes/passes.h"
#include "sim/passes/rewrite/rewrite.h"

// Fewer index vectors are not worth it.
enum { MIN_VECTORS = 1024 };

typedef struct {
  mp_module_t *module;
  mp_op_t *op;
  mp_value_t *const *parts;  // i, j, ...: the components of the index vectors, all of one type
  uint32_t num_indexed;      // of these, and of dimensions, which are the operand's first ones
} gathers_t;

// Whether exactly the first dimensions of the operand are indexed, one element each, and the type
// of the indices can number their elements.
static bool fuse_gathers_indexes_first(const mp_op_t *op, uint32_t count) {
  const mp_index_list_t map = mp_op_ints(op, MP_ATTR_START_INDEX_MAP);
  const mp_index_list_t left_out = mp_op_ints(op, MP_ATTR_COLLAPSED_SLICE_DIMS);
  if (map.count != count || left_out.count != count) return false;
  if (mp_op_ints(op, MP_ATTR_OPERAND_BATCHING_DIMS).count != 0) return false;
  int64_t places = 1;
  for (uint32_t d = 0; d < count; ++d) {
    if (!mp_index_list_has(left_out, d) || !mp_index_list_has(map, d)) return false;
    places = MP_WORK(places, op->operands[0]->type->dims[d], 1);
  }
  return places > 0 && places <= INT32_MAX;
}

static bool fuse_gathers_matches(const mp_op_t *op) {
  if (op->code != MP_OP_GATHER) return false;
  if (!mp_type_is_static(op->operands[0]->type) || !mp_type_is_static(op->operands[1]->type)) {
    return false;
  }
  const mp_type_t *indices = op->operands[1]->type;
  const mp_dtype_t dtype = indices->dtype;
  if (dtype != MP_DTYPE_S32 && dtype != MP_DTYPE_S64) return false;
  const int64_t last = (int64_t)indices->rank - 1;
  if (mp_rewrite_joined(op->operands[1], last) == NULL) return false;
  if (mp_op_int(op, MP_ATTR_INDEX_VECTOR_DIM, -1) != last) return false;
  const uint32_t count = (uint32_t)indices->dims[last];
  return count > 1 && mp_shape_count(indices) / count >= MIN_VECTORS &&
         fuse_gathers_indexes_first(op, count);
}

// Index `component`, clamped to its dimension `d` like in the gather, times the stride of that
// dimension.
static mp_status_t fuse_gathers_term(const gathers_t *g, uint32_t component, int64_t d,
                                     mp_value_t **out_term) {
  const mp_type_t *operand = g->op->operands[0]->type, *type = g->parts[0]->type, *scalar = NULL;
  MP_RETURN_IF_ERROR(mp_type_tensor(g->module->arena, type->dtype, NULL, 0, &scalar));
  mp_value_t *clamp[3] = {NULL, g->parts[component], NULL};
  MP_RETURN_IF_ERROR(mp_rewrite_insert_number(g->module, g->op, scalar, 0, &clamp[0]));
  MP_RETURN_IF_ERROR(
      mp_rewrite_insert_number(g->module, g->op, scalar, operand->dims[d] - 1, &clamp[2]));
  MP_RETURN_IF_ERROR(mp_rewrite_insert(g->module, g->op, MP_OP_CLAMP, clamp, 3, type, out_term));
  int64_t distance = 1;
  for (uint32_t k = (uint32_t)d + 1; k < g->num_indexed; ++k) distance *= operand->dims[k];
  if (distance == 1) return NULL;
  mp_value_t *factors[2] = {*out_term, NULL};
  MP_RETURN_IF_ERROR(mp_rewrite_insert_number(g->module, g->op, type, distance, &factors[1]));
  return mp_rewrite_insert(g->module, g->op, MP_OP_MULTIPLY, factors, 2, type, out_term);
}

// The number of the element, or slice, of each index vector.
static mp_status_t fuse_gathers_places(const gathers_t *g, mp_value_t **out_places) {
  const mp_index_list_t map = mp_op_ints(g->op, MP_ATTR_START_INDEX_MAP);
  const mp_type_t *type = g->parts[0]->type;
  MP_RETURN_IF_ERROR(fuse_gathers_term(g, 0, map.values[0], out_places));
  for (uint32_t k = 1; k < g->num_indexed; ++k) {
    mp_value_t *terms[2] = {*out_places, NULL};
    MP_RETURN_IF_ERROR(fuse_gathers_term(g, k, map.values[k], &terms[1]));
    MP_RETURN_IF_ERROR(mp_rewrite_insert(g->module, g->op, MP_OP_ADD, terms, 2, type, out_places));
  }
  return NULL;
}

// The operand with one dimension instead of all indexed ones.
static mp_status_t fuse_gathers_table(const gathers_t *g, mp_value_t **out_table) {
  const mp_type_t *operand = g->op->operands[0]->type, *type = NULL;
  int64_t dims[MP_MAX_RANK] = {1};
  uint32_t rank = 1;
  for (uint32_t d = 0; d < operand->rank; ++d) {
    if (d < g->num_indexed) {
      dims[0] *= operand->dims[d];
    } else {
      dims[rank++] = operand->dims[d];
    }
  }
  MP_RETURN_IF_ERROR(mp_type_tensor(g->module->arena, operand->dtype, dims, rank, &type));
  return mp_rewrite_insert(g->module, g->op, MP_OP_RESHAPE, &g->op->operands[0], 1, type,
                           out_table);
}

static mp_status_t fuse_gathers_set(const gathers_t *g, mp_attr_name_t name, const int64_t *values,
                                    uint32_t count) {
  mp_named_attr_t attr;
  MP_RETURN_IF_ERROR(mp_rewrite_ints(g->module, name, values, count, &attr));
  return mp_op_set_attr(g->module, g->op, attr.name, attr.value);
}

typedef struct {
  mp_module_t *module;
  bool has_changed;
} gathers_walk_t;

static mp_status_t fuse_gathers_visit(void *context, mp_op_t *op) {
  gathers_walk_t *walk = context;
  if (!fuse_gathers_matches(op)) return NULL;
  walk->has_changed = true;
  const mp_value_t *vectors = op->operands[1];
  const gathers_t g = {.module = walk->module,
                       .op = op,
                       .parts = mp_rewrite_joined(vectors, (int64_t)vectors->type->rank - 1),
                       .num_indexed = mp_op_ints(op, MP_ATTR_START_INDEX_MAP).count};
  mp_value_t *operands[2] = {NULL, NULL};
  MP_RETURN_IF_ERROR(fuse_gathers_table(&g, &operands[0]));
  MP_RETURN_IF_ERROR(fuse_gathers_places(&g, &operands[1]));
  const mp_index_list_t sizes = mp_op_ints(op, MP_ATTR_SLICE_SIZES);
  const int64_t first = 0, *rest = sizes.values + g.num_indexed - 1;  // that size is 1, too
  MP_RETURN_IF_ERROR(
      fuse_gathers_set(&g, MP_ATTR_SLICE_SIZES, rest, sizes.count - g.num_indexed + 1));
  MP_RETURN_IF_ERROR(fuse_gathers_set(&g, MP_ATTR_START_INDEX_MAP, &first, 1));
  MP_RETURN_IF_ERROR(fuse_gathers_set(&g, MP_ATTR_COLLAPSED_SLICE_DIMS, &first, 1));
  // Sorted vectors may give unsorted places, because the gather clamps some of them.
  const mp_attr_t *no = NULL;
  MP_RETURN_IF_ERROR(mp_attr_make_bool(g.module->arena, false, &no));
  MP_RETURN_IF_ERROR(mp_op_set_attr(g.module, op, MP_ATTR_INDICES_ARE_SORTED, no));
  return mp_rewrite_set_operands(g.module, op, operands, 2);
}

mp_status_t mp_fuse_gathers(mp_module_t *module) {
  gathers_walk_t walk = {.module = module};
  MP_RETURN_IF_ERROR(mp_module_walk(module, fuse_gathers_visit, &walk));
  // The vectors are now dead: remove them, so that they do not keep their operands.
  return walk.has_changed ? mp_pass_dead_code(module) : NULL;
}
