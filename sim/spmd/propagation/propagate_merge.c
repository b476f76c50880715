// Merges copies of constants that got the same sharding.
#include "sim/base/containers/hash_map.h"
#include "sim/base/hash.h"
#include "sim/ir/mesh.h"
#include "sim/spmd/propagation/propagate_parts.h"
#include "sim/spmd/propagation/split_constants.h"

typedef struct {
  uint64_t hash;
  mp_op_t *op;
} kept_op_t;

typedef struct {
  const mp_propagation_t *propagation;
  mp_arena_t *scratch;
  MP_HASH_MAP(kept_op_t) kept;
  mp_value_t **replaced;  // by value id
} merger_t;

static const mp_atom_sharding_t *propagate_merge_sharding_of(const merger_t *merger,
                                                             const mp_op_t *op) {
  return merger->propagation->values[op->results[0].id];
}

static bool propagate_merge_is_candidate(const merger_t *merger, const mp_op_t *op) {
  if (op->num_results != 1 || op->num_regions != 0) return false;
  return mp_op_has(op, MP_OP_TRAIT_AGAIN) && mp_op_info(op->code)->effect == MP_OP_EFFECT_PURE &&
         propagate_merge_sharding_of(merger, op) != NULL;
}

static bool propagate_merge_same_sharding(const mp_atom_sharding_t *a,
                                          const mp_atom_sharding_t *b) {
  if (!mp_atom_sharding_equal(a, b)) return false;
  if (a->mesh == NULL || b->mesh == NULL) return a->mesh == b->mesh;
  return mp_mesh_same_devices(a->mesh, b->mesh);
}

// Whether two ops are copies of the same op. Copies have the same objects as types and values of
// attributes, so that comparing addresses is enough.
static bool propagate_merge_same_op(const merger_t *merger, const mp_op_t *a, const mp_op_t *b) {
  if (a->code != b->code || a->parent != b->parent || a->num_operands != b->num_operands ||
      a->num_attrs != b->num_attrs || a->results[0].type != b->results[0].type) {
    return false;
  }
  for (uint32_t i = 0; i < a->num_operands; ++i) {
    if (a->operands[i] != b->operands[i]) return false;
  }
  for (uint32_t i = 0; i < a->num_attrs; ++i) {
    if (a->attrs[i].name != b->attrs[i].name || a->attrs[i].value != b->attrs[i].value) {
      return false;
    }
  }
  return propagate_merge_same_sharding(propagate_merge_sharding_of(merger, a),
                                       propagate_merge_sharding_of(merger, b));
}

static uint64_t propagate_merge_hash_of(const mp_op_t *op) {
  uint64_t hash = mp_hash_u64((uint64_t)op->code, (uint64_t)(uintptr_t)op->parent);
  hash = mp_hash_u64(hash, (uint64_t)(uintptr_t)op->results[0].type);
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    hash = mp_hash_u64(hash, (uint64_t)(uintptr_t)op->operands[i]);
  }
  for (uint32_t i = 0; i < op->num_attrs; ++i) {
    hash = mp_hash_u64(hash, (uint64_t)(uintptr_t)op->attrs[i].value);
  }
  return hash;
}

static mp_status_t propagate_merge_op(void *context, mp_op_t *op) {
  merger_t *merger = context;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    mp_value_t *value = merger->replaced[op->operands[i]->id];
    if (value != NULL) op->operands[i] = value;
  }
  if (!propagate_merge_is_candidate(merger, op)) return NULL;
  const kept_op_t wanted = {propagate_merge_hash_of(op), op}, *known;
  MP_HASH_MAP_EACH(&merger->kept, wanted.hash, known) {
    if (!propagate_merge_same_op(merger, known->op, op)) continue;
    merger->replaced[op->results[0].id] = &known->op->results[0];
    mp_op_unlink(op);
    return NULL;
  }
  return MP_HASH_MAP_ADD(merger->scratch, &merger->kept, &wanted);
}

// ---- numbers ----

// The values by their old numbers.
typedef struct {
  mp_value_t **values;
} values_t;

static void propagate_merge_collect_args(const values_t *old, const mp_block_t *block) {
  for (uint32_t i = 0; i < block->num_args; ++i) old->values[block->args[i].id] = &block->args[i];
}

static mp_status_t propagate_merge_collect_op(void *context, mp_op_t *op) {
  const values_t *old = context;
  for (uint32_t i = 0; i < op->num_results; ++i) old->values[op->results[i].id] = &op->results[i];
  for (uint32_t r = 0; r < op->num_regions; ++r) propagate_merge_collect_args(old, op->regions[r]);
  return NULL;
}

// Renumbers the remaining values, and moves the shardings to their new numbers.
static mp_status_t propagate_merge_renumber(mp_propagator_t *p, mp_arena_t *scratch) {
  mp_propagation_t *out = p->out;
  const uint32_t count = out->num_values;
  values_t old = {MP_ARENA_ARRAY(scratch, mp_value_t *, (size_t)count + 1)};
  mp_atom_sharding_t **shardings =
      MP_ARENA_ARRAY(p->arena, mp_atom_sharding_t *, (size_t)count + 1);
  if (old.values == NULL || shardings == NULL) return mp_status_out_of_memory();
  propagate_merge_collect_args(&old, p->module->main->body);
  MP_RETURN_IF_ERROR(mp_block_walk(p->module->main->body, propagate_merge_collect_op, &old));
  out->num_values = mp_module_number_values(p->module);
  for (uint32_t i = 0; i < count; ++i) {
    if (old.values[i] != NULL) shardings[old.values[i]->id] = out->values[i];
  }
  out->values = shardings;
  return NULL;
}

static mp_status_t propagate_merge_merge(merger_t *merger, mp_block_t *body) {
  merger->replaced =
      MP_ARENA_ARRAY(merger->scratch, mp_value_t *, (size_t)merger->propagation->num_values + 1);
  MP_RETURN_IF_NULL(merger->replaced);
  return mp_block_walk(body, propagate_merge_op, merger);
}

mp_status_t mp_propagate_merge(mp_propagator_t *p) {
  merger_t merger = {.propagation = p->out};
  MP_RETURN_IF_ERROR(mp_arena_create(&merger.scratch));
  mp_status_t status = propagate_merge_merge(&merger, p->module->main->body);
  if (status == NULL) status = propagate_merge_renumber(p, merger.scratch);
  mp_arena_release(merger.scratch);
  return status;
}
