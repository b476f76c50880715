// Folding: one forward sweep. Each op's operands are first replaced by what earlier folds left of
// them; then the op itself may turn out to be an earlier value. Ops that lost all users stay for
// dead code elimination.
#include <string.h>

#include "sim/base/hash.h"
#include "sim/ir/schema.h"
#include "sim/passes/passes.h"
#include "sim/passes/rewrite.h"

typedef struct {
  mp_module_t *module;
  mp_value_t **replaced;  // by value id; NULL: itself
  mp_op_t **table;        // by hash of an op that expands, linear probing; of the block in work
  mp_op_t **used;         // the filled entries' ops, to empty the table again
  uint32_t capacity;      // of the table, a power of two above twice the number of ops
  uint32_t num_used;
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

// broadcast(broadcast(x)) = broadcast(x) with the dimensions followed through both.
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

static mp_status_t simplify(folder_t *folder, mp_op_t *op, bool *out_is_identity) {
  *out_is_identity = false;
  if (op->num_operands != 1 || op->num_results != 1) return NULL;
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
      MP_RETURN_IF_ERROR(simplify_skip_inner_broadcast(folder->module, op));
      is_identity = simplify_is_iota(mp_op_ints(op, MP_ATTR_BROADCAST_DIMENSIONS));
      break;
    default:
      return NULL;
  }
  *out_is_identity = is_identity && mp_type_equal(op->operands[0]->type, op->results[0].type);
  return NULL;
}

// ---- equal ops that expand ----

// Of the attributes only those that make the op: INT, INTS and DENSE are what these ops have.
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
  if (a == b) return true;
  if (a == NULL || b == NULL || a->kind != b->kind) return false;
  switch (a->kind) {
    case MP_KIND_INT:
      return a->u.i64 == b->u.i64;
    case MP_KIND_INTS:
      return a->u.ints.count == b->u.ints.count &&
             memcmp(a->u.ints.values, b->u.ints.values, a->u.ints.count * sizeof(int64_t)) == 0;
    case MP_KIND_DENSE:
      return a->u.dense.splat == b->u.dense.splat && a->u.dense.size == b->u.dense.size &&
             memcmp(a->u.dense.data, b->u.dense.data, a->u.dense.size) == 0;
    default:
      return false;
  }
}

static uint64_t simplify_hash_op(const mp_op_t *op) {
  const mp_schema_t schema = mp_schema_of(op->code);
  const mp_type_t *type = op->results[0].type;
  uint64_t hash = mp_hash_u64(MP_HASH_START, (uint64_t)op->code << 32 | (uint64_t)type->dtype);
  hash = mp_hash_bytes(hash, type->dims, type->rank * sizeof(int64_t));
  for (uint32_t i = 0; i < op->num_operands; ++i) hash = mp_hash_u64(hash, op->operands[i]->id);
  for (uint32_t i = 0; i < schema.count; ++i) {
    const mp_attr_t *attr = mp_op_attr(op, schema.attrs[i].name);
    if (attr != NULL) hash = simplify_hash_attr(hash, attr);
  }
  return hash ^ hash >> 32;
}

static bool simplify_ops_equal(const mp_op_t *a, const mp_op_t *b) {
  if (a->code != b->code || a->num_operands != b->num_operands) return false;
  if (!mp_type_equal(a->results[0].type, b->results[0].type)) return false;
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

// The earlier op of this block that computes the same, or `op` itself, which is then remembered.
static mp_op_t *simplify_find_equal(folder_t *folder, mp_op_t *op) {
  uint32_t at = (uint32_t)simplify_hash_op(op) & (folder->capacity - 1);
  for (; folder->table[at] != NULL; at = (at + 1) & (folder->capacity - 1)) {
    if (simplify_ops_equal(folder->table[at], op)) return folder->table[at];
  }
  folder->table[at] = op;
  folder->used[folder->num_used++] = op;
  op->id = at;
  return op;
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

// Regions come after the block itself: they use its values, and one table serves block after block.
static mp_status_t simplify_fold_block(folder_t *folder, mp_block_t *block) {
  for (mp_op_t *op = block->first; op != NULL; op = op->next) {
    MP_RETURN_IF_ERROR(simplify_fold_op(folder, op));
    if (!mp_op_has(op, MP_OP_TRAIT_EXPANDS) || folder->replaced[op->results[0].id] != NULL)
      continue;
    mp_op_t *same = simplify_find_equal(folder, op);
    if (same != op) folder->replaced[op->results[0].id] = &same->results[0];
  }
  while (folder->num_used > 0) folder->table[folder->used[--folder->num_used]->id] = NULL;
  for (mp_op_t *op = block->first; op != NULL; op = op->next) {
    for (uint32_t r = 0; r < op->num_regions; ++r) {
      MP_RETURN_IF_ERROR(simplify_fold_block(folder, op->regions[r]));
    }
  }
  return NULL;
}

static mp_status_t simplify_count_op(void *context, mp_op_t *op) {
  (void)op;
  ++*(uint32_t *)context;
  return NULL;
}

mp_status_t mp_pass_fold(mp_module_t *module) {
  const uint32_t num_values = mp_module_number_values(module);
  uint32_t num_ops = 0;
  MP_RETURN_IF_ERROR(mp_module_walk(module, simplify_count_op, &num_ops));
  folder_t folder = {.module = module, .capacity = 16};
  while (folder.capacity < 2 * (uint64_t)num_ops) folder.capacity *= 2;
  folder.replaced = MP_ARENA_ARRAY(module->arena, mp_value_t *, (size_t)num_values + 1);
  folder.table = MP_ARENA_ARRAY(module->arena, mp_op_t *, folder.capacity);
  folder.used = MP_ARENA_ARRAY(module->arena, mp_op_t *, (size_t)num_ops + 1);
  if (folder.replaced == NULL || folder.table == NULL || folder.used == NULL) {
    return mp_status_out_of_memory();
  }
  for (mp_func_t *func = module->funcs.first; func != NULL; func = func->next) {
    MP_RETURN_IF_ERROR(simplify_fold_block(&folder, func->body));
  }
  return NULL;
}
