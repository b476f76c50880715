// Folding, in one forward sweep. Operands are first replaced according to earlier folds; then the
// op itself may turn out to compute an earlier value. Dead-code elimination removes ops whose
// results are not used any more.

#include "sim/base/containers/hash_map.h"
#include "sim/base/hash.h"
#include "sim/ir/reducer.h"
#include "sim/ir/schema.h"
#include "sim/passes/passes.h"
#include "sim/passes/rewrite/rewrite.h"

typedef struct {
  uint64_t hash;  // of what the op computes and of the block in which it is
  mp_op_t *op;
} known_op_t;

typedef struct {
  mp_module_t *module;
  mp_value_t **replaced;  // by value id: the value to use instead; NULL: the value itself
  MP_HASH_MAP(known_op_t) known;
} folder_t;

// ---- ops that are one of their operands ----

static bool simplify_is_iota(mp_index_list_t list) {
  for (uint32_t i = 0; i < list.count; ++i) {
    if (list.values[i] != i) return false;
  }
  return true;
}

// reshape(reshape(x)) = reshape(x)
static void simplify_skip_inner_reshape(mp_op_t *op) {
  const mp_op_t *inner = op->operands[0]->op;
  if (inner != NULL && inner->code == MP_OP_RESHAPE) op->operands[0] = inner->operands[0];
}

// broadcast(broadcast(x)) = broadcast(x), whose dimensions are those of both, one after the other.
static mp_status_t simplify_skip_inner_broadcast(mp_module_t *module, mp_op_t *op) {
  const mp_op_t *inner = op->operands[0]->op;
  if (inner == NULL || inner->code != MP_OP_BROADCAST_IN_DIM) return NULL;
  const mp_index_list_t outer_dims = mp_op_ints(op, MP_ATTR_BROADCAST_DIMENSIONS);
  const mp_index_list_t inner_dims = mp_op_ints(inner, MP_ATTR_BROADCAST_DIMENSIONS);
  int64_t *dims = MP_ARENA_ARRAY(module->arena, int64_t, inner_dims.count);
  MP_RETURN_IF_NULL(dims);
  for (uint32_t i = 0; i < inner_dims.count; ++i) {
    dims[i] = outer_dims.values[inner_dims.values[i]];
  }
  mp_named_attr_t attr;
  MP_RETURN_IF_ERROR(
      mp_rewrite_ints(module, MP_ATTR_BROADCAST_DIMENSIONS, dims, inner_dims.count, &attr));
  op->operands[0] = inner->operands[0];
  return mp_op_set_attr(module, op, attr.name, attr.value);
}

// A broadcast that only adds dimensions of size 1 keeps all elements in their order: it is a
// reshape.
static mp_status_t simplify_reshape_broadcast(mp_module_t *module, mp_op_t *op) {
  int64_t in = 0, out = 0;
  if (!mp_type_num_elements(op->operands[0]->type, &in) ||
      !mp_type_num_elements(op->results[0].type, &out) || in != out) {
    return NULL;
  }
  const mp_index_list_t dims = mp_op_ints(op, MP_ATTR_BROADCAST_DIMENSIONS);
  for (uint32_t i = 1; i < dims.count; ++i) {
    if (dims.values[i] <= dims.values[i - 1]) return NULL;
  }
  return mp_rewrite_become(module, op, MP_OP_RESHAPE, NULL, 0);
}

static mp_status_t simplify(folder_t *folder, mp_op_t *op, bool *out_is_identity) {
  *out_is_identity = false;
  if (op->num_operands != 1 || op->num_results != 1) return NULL;
  if (op->code == MP_OP_BROADCAST_IN_DIM) {
    MP_RETURN_IF_ERROR(simplify_skip_inner_broadcast(folder->module, op));
    MP_RETURN_IF_ERROR(simplify_reshape_broadcast(folder->module, op));
  }
  bool is_identity = true;
  switch (op->code) {
    case MP_OP_CONVERT:
      break;
    case MP_OP_RESHAPE:
      simplify_skip_inner_reshape(op);
      break;
    case MP_OP_TRANSPOSE:
      is_identity = simplify_is_iota(mp_op_ints(op, MP_ATTR_PERMUTATION));
      break;
    case MP_OP_BROADCAST_IN_DIM:
      is_identity = simplify_is_iota(mp_op_ints(op, MP_ATTR_BROADCAST_DIMENSIONS));
      break;
    default:
      return NULL;
  }
  *out_is_identity = is_identity && mp_type_equal(op->operands[0]->type, op->results[0].type);
  return NULL;
}

// ---- equal ops ----

// Whether an equal op of the block may replace this one.
static bool simplify_may_be_shared(const mp_op_t *op) {
  const mp_op_info_t *info = mp_op_info(op->code);
  // For a reduction of a known kind the kind fully describes the region.
  const bool has_kind = op->code == MP_OP_REDUCE && op->num_results == 1 &&
                        mp_reducer_kind(op->regions[0]) != MP_REDUCE_CUSTOM;
  return op->num_results == 1 && (op->num_regions == 0 || has_kind) &&
         info->effect == MP_OP_EFFECT_PURE &&
         (info->role == MP_OP_ROLE_KERNEL || info->role == MP_OP_ROLE_NOTHING);
}

// Hashes an attribute, if its kind distinguishes most ops.
static uint64_t simplify_hash_attr(uint64_t hash, const mp_attr_t *attr) {
  switch (attr->kind) {
    case MP_KIND_INT:
      return mp_hash_u64(hash, (uint64_t)attr->u.i64);
    case MP_KIND_INTS:
      return mp_hash_bytes(hash, attr->u.ints.values, attr->u.ints.count * sizeof(int64_t));
    case MP_KIND_DENSE:
      return mp_hash_bytes(hash, attr->u.dense.data, attr->u.dense.size);
    default:
      return hash;
  }
}

static bool simplify_attrs_equal(const mp_attr_t *a, const mp_attr_t *b) {
  return a == b || (a != NULL && b != NULL && mp_attr_equal(a, b));
}

static uint64_t simplify_hash_op(const mp_op_t *op) {
  const mp_schema_t schema = mp_schema_of(op->code);
  const mp_type_t *type = op->results[0].type;
  uint64_t hash = mp_hash_u64(MP_HASH_START, (uint64_t)(uintptr_t)op->parent);
  hash = mp_hash_u64(hash, (uint64_t)op->code << 32 | (uint64_t)type->dtype);
  hash = mp_hash_bytes(hash, type->dims, type->rank * sizeof(int64_t));
  for (uint32_t i = 0; i < op->num_operands; ++i) hash = mp_hash_u64(hash, op->operands[i]->id);
  for (uint32_t i = 0; i < schema.count; ++i) {
    const mp_attr_t *attr = mp_op_attr(op, schema.attrs[i].name);
    if (attr != NULL) hash = simplify_hash_attr(hash, attr);
  }
  return hash;
}

static bool simplify_ops_equal(const mp_op_t *a, const mp_op_t *b) {
  if (a->parent != b->parent) return false;
  if (a->code != b->code || a->num_operands != b->num_operands) return false;
  if (!mp_type_equal(a->results[0].type, b->results[0].type)) return false;
  if (a->num_regions != 0 && mp_reducer_kind(a->regions[0]) != mp_reducer_kind(b->regions[0])) {
    return false;
  }
  for (uint32_t i = 0; i < a->num_operands; ++i) {
    if (a->operands[i] != b->operands[i]) return false;
  }
  const mp_schema_t schema = mp_schema_of(a->code);
  for (uint32_t i = 0; i < schema.count; ++i) {
    const mp_attr_name_t name = schema.attrs[i].name;
    if (!simplify_attrs_equal(mp_op_attr(a, name), mp_op_attr(b, name))) return false;
  }
  return true;
}

// Replaces `op` by an earlier op of this block that computes the same; if there is none, remembers
// `op`.
static mp_status_t simplify_replace_equal(folder_t *folder, mp_op_t *op) {
  const known_op_t wanted = {simplify_hash_op(op), op}, *known;
  MP_HASH_MAP_EACH(&folder->known, wanted.hash, known) {
    if (!simplify_ops_equal(known->op, op)) continue;
    folder->replaced[op->results[0].id] = &known->op->results[0];
    return NULL;
  }
  return MP_HASH_MAP_ADD(folder->module->arena, &folder->known, &wanted);
}

// ---- the sweep ----

static mp_status_t simplify_fold_op(folder_t *folder, mp_op_t *op) {
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    mp_value_t *other = folder->replaced[op->operands[i]->id];
    if (other != NULL) op->operands[i] = other;
  }
  bool is_identity = false;
  MP_RETURN_IF_ERROR(simplify(folder, op, &is_identity));
  if (is_identity) folder->replaced[op->results[0].id] = op->operands[0];
  return NULL;
}

// Folds the block, and then the regions of its ops, which use the block's values.
static mp_status_t simplify_fold_block(folder_t *folder, mp_block_t *block) {
  for (mp_op_t *op = block->first; op != NULL; op = op->next) {
    MP_RETURN_IF_ERROR(simplify_fold_op(folder, op));
    if (!simplify_may_be_shared(op) || folder->replaced[op->results[0].id] != NULL) continue;
    MP_RETURN_IF_ERROR(simplify_replace_equal(folder, op));
  }
  for (mp_op_t *op = block->first; op != NULL; op = op->next) {
    for (uint32_t r = 0; r < op->num_regions; ++r) {
      MP_RETURN_IF_ERROR(simplify_fold_block(folder, op->regions[r]));
    }
  }
  return NULL;
}

mp_status_t mp_pass_fold(mp_module_t *module) {
  const uint32_t num_values = mp_module_number_values(module);
  folder_t folder = {.module = module};
  folder.replaced = MP_ARENA_ARRAY(module->arena, mp_value_t *, (size_t)num_values + 1);
  MP_RETURN_IF_NULL(folder.replaced);
  for (mp_func_t *func = module->funcs.first; func != NULL; func = func->next) {
    MP_RETURN_IF_ERROR(simplify_fold_block(&folder, func->body));
  }
  return NULL;
}
