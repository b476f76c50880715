#include "sim/base/assert.h"
#include "sim/spmd/partition/partitioner.h"

#include "sim/spmd/build/append.h"
#include "sim/spmd/build/unreduced.h"
#include "sim/spmd/local/lower.h"
#include "sim/spmd/sharding/placement.h"

static bool partition_op_has_version(const mp_partitioner_t *p, const mp_op_t *op,
                                     const mp_boxes_t *boxes) {
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    if (!mp_type_same_shape(op->operands[i]->type, op->results[0].type)) continue;
    if (!mp_versions_has(&p->versions, op->operands[i], boxes)) return false;
  }
  return true;
}

// The placement in which an elementwise op works: that of the first operand with the result's shape
// that is in parts. NULL: the op works on whole arrays. That is also so if all operands have a
// whole version and only some have parts, because then nothing need be sent.
static const mp_boxes_t *partition_op_elementwise_placement(const mp_partitioner_t *p,
                                                            const mp_op_t *op) {
  if (!mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE)) return NULL;
  if (op->num_results != 1 || p->scope->num_partitions == 1 || p->is_propagated) return NULL;
  const mp_boxes_t *boxes = NULL;
  for (uint32_t i = 0; i < op->num_operands && boxes == NULL; ++i) {
    if (!mp_type_same_shape(op->operands[i]->type, op->results[0].type)) continue;
    boxes = mp_versions_sharded(&p->versions, op->operands[i]);
  }
  if (boxes == NULL) return NULL;
  return partition_op_has_version(p, op, boxes) || !partition_op_has_version(p, op, NULL) ? boxes
                                                                                          : NULL;
}

// ---- making ops ----

// Regions use whole values from outside. These versions must exist before the region begins, or
// each run of the region would recompute them.
static mp_status_t partition_op_bring_captures(mp_partitioner_t *p, const mp_op_t *op) {
  mp_value_t **captures = NULL;
  uint32_t count = 0;
  MP_RETURN_IF_ERROR(mp_op_captures(op, p->arena, &captures, &count));
  for (uint32_t i = 0; i < count; ++i) {
    mp_value_t *value = NULL;
    MP_RETURN_IF_ERROR(mp_partitioner_get_whole(p, op, captures[i], &value));
  }
  return NULL;
}

// Makes an op on whole operands, or an elementwise op on parts that exist already.
static mp_status_t partition_op_whole(mp_partitioner_t *p, const mp_op_t *op) {
  const mp_boxes_t *boxes = partition_op_elementwise_placement(p, op);
  if (op->num_regions != 0) MP_RETURN_IF_ERROR(partition_op_bring_captures(p, op));
  mp_op_parts_t parts;
  MP_RETURN_IF_ERROR(mp_partitioner_start_op(p, op, &parts));
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    // Scalars among the operands (clamp's bounds, select's predicate) stay whole.
    bool is_part = boxes != NULL && mp_type_same_shape(op->operands[i]->type, op->results[0].type);
    MP_RETURN_IF_ERROR(mp_versions_get(&p->versions, p->scope, op->operands[i],
                                       is_part ? boxes : NULL, op->loc, &parts.operands[i]));
  }
  for (uint32_t i = 0; i < op->num_results; ++i) {
    MP_RETURN_IF_ERROR(
        mp_placement_local_type(p->arena, op->results[i].type, boxes, &parts.types[i]));
  }
  for (uint32_t r = 0; r < op->num_regions; ++r) {
    MP_RETURN_IF_ERROR(
        mp_partitioner_copy_region(p, op->regions[r], NULL, NULL, &parts.regions[r]));
  }
  mp_op_t *copy = NULL;
  MP_RETURN_IF_ERROR(mp_partitioner_finish_op(p, op, &parts, &copy));
  for (uint32_t i = 0; i < op->num_results; ++i) {
    MP_RETURN_IF_ERROR(mp_versions_add(&p->versions, &op->results[i], boxes, &copy->results[i]));
  }
  return NULL;
}

// Whether the first result is terms of a sum on the parts.
static bool partition_op_is_sum(const mp_local_op_t *local) {
  return local->results[0] != NULL && local->results[0]->partials != NULL;
}

// Makes the results of the op on its parts, by the op itself or by the local form's `emit`.
static mp_status_t partition_op_make_results(mp_partitioner_t *p, const mp_op_t *op,
                                             const mp_local_op_t *local, const mp_op_parts_t *parts,
                                             uint8_t rings, mp_value_t **results) {
  if (local->emit != NULL) {
    const mp_op_spec_t spec = {op->code,        op->loc,      op->num_operands, parts->operands,
                               op->num_results, parts->types, op->num_regions,  parts->regions,
                               op->num_attrs,   parts->attrs};
    return local->emit(local, p->module, p->versions.block, &spec, results);
  }
  mp_op_t *copy = NULL;
  MP_RETURN_IF_ERROR(mp_partitioner_finish_op(p, op, parts, &copy));
  copy->rings = rings;
  for (uint32_t i = 0; i < op->num_results; ++i) results[i] = &copy->results[i];
  return NULL;
}

// Brings an operand to its parts. The gather of a matmul's operand may become a collective matmul
// (`rings`). An exchange becomes permutes (slices, windows), except for the pieces of a
// concatenation, which compilers move to another dimension by an all_to_all.
static mp_status_t partition_op_bring(mp_partitioner_t *p, const mp_op_t *op,
                                      const mp_local_op_t *local, uint32_t index, uint8_t rings,
                                      mp_value_t **out_operand) {
  const bool may_ring = index < 2 && (rings >> index & MP_OP_RING_LHS) != 0;
  const bool is_excerpt = local->are_excerpts != NULL && local->are_excerpts[index];
  const mp_op_t *last = p->versions.block->last;
  MP_RETURN_IF_ERROR((is_excerpt ? mp_versions_get_excerpt : mp_versions_get)(
      &p->versions, p->scope, op->operands[index], local->operands[index], op->loc, out_operand));
  for (mp_op_t *made = p->versions.block->last; made != last; made = made->prev) {
    made->by_permutes = (may_ring && made->code == MP_OP_ALL_GATHER) ||
                        (made->code == MP_OP_EXCHANGE && op->code != MP_OP_CONCATENATE);
  }
  return NULL;
}

// Makes an op on the parts that lowering chose.
static mp_status_t partition_op_local(mp_partitioner_t *p, const mp_op_t *op,
                                      const mp_local_op_t *local) {
  if (op->num_regions != 0) MP_RETURN_IF_ERROR(partition_op_bring_captures(p, op));
  mp_op_parts_t parts;
  MP_RETURN_IF_ERROR(mp_partitioner_start_op(p, op, &parts));
  parts.attrs = local->attrs;
  const uint32_t num_regions = local->has_regions_twice ? 2 * op->num_regions : op->num_regions;
  parts.regions = MP_ARENA_ARRAY(p->arena, mp_block_t *, num_regions);
  MP_RETURN_IF_NULL(parts.regions);
  const uint8_t rings = mp_partitioner_rings(p, op, partition_op_is_sum(local));
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    MP_RETURN_IF_ERROR(partition_op_bring(p, op, local, i, rings, &parts.operands[i]));
  }
  for (uint32_t i = 0; i < op->num_results; ++i) {
    MP_RETURN_IF_ERROR(
        mp_placement_local_type(p->arena, op->results[i].type, local->results[i], &parts.types[i]));
  }
  for (uint32_t r = 0; r < num_regions; ++r) {
    const mp_block_t *region = op->regions[r % op->num_regions];
    MP_RETURN_IF_ERROR(mp_partitioner_copy_region(p, region, NULL, NULL, &parts.regions[r]));
  }
  mp_value_t **results = MP_ARENA_ARRAY(p->arena, mp_value_t *, op->num_results);
  MP_RETURN_IF_NULL(results);
  MP_RETURN_IF_ERROR(partition_op_make_results(p, op, local, &parts, rings, results));
  for (uint32_t i = 0; i < op->num_results; ++i) {
    mp_value_t *value = results[i];
    MP_ASSERT(value != NULL);
    if (local->combine_over != NULL) {
      MP_RETURN_IF_ERROR(
          mp_unreduced_combine(&(mp_append_at_t){p->module, p->versions.block, op->loc},
                               local->combine_over, local->combine, value, &value));
    }
    MP_RETURN_IF_ERROR(mp_versions_add(&p->versions, &op->results[i], local->results[i], value));
  }
  return NULL;
}

// An iota that is cut along its own dimension counts from the start of each part.
static mp_status_t partition_op_iota(mp_partitioner_t *p, const mp_op_t *op,
                                     const mp_local_op_t *local) {
  const mp_type_t *type = NULL;
  const uint32_t dimension = (uint32_t)mp_op_int(op, MP_ATTR_IOTA_DIMENSION, 0);
  MP_RETURN_IF_ERROR(
      mp_placement_local_type(p->arena, op->results[0].type, local->results[0], &type));
  if (type->dims[dimension] == op->results[0].type->dims[dimension]) {
    return partition_op_local(p, op, local);  // every part counts from 0
  }
  mp_value_t *value = NULL;
  MP_RETURN_IF_ERROR(mp_append_iota_part(&(mp_append_at_t){p->module, p->versions.block, op->loc},
                                         type, dimension, local->results[0], &value));
  return mp_versions_add(&p->versions, &op->results[0], local->results[0], value);
}

mp_status_t mp_partitioner_op(mp_partitioner_t *p, const mp_op_t *op) {
  if (!p->is_propagated) {
    if (partition_op_elementwise_placement(p, op) == NULL)
      MP_RETURN_IF_ERROR(mp_partitioner_note_whole(p, op));
    return partition_op_whole(p, op);
  }
  if (mp_op_has(op, MP_OP_TRAIT_FLOW)) return mp_partitioner_control(p, op);
  bool is_done = false;
  MP_RETURN_IF_ERROR(mp_partitioner_terms(p, op, &is_done));
  if (is_done) return NULL;
  // Propagation skips ops inside of reducers and the like, whose values are scalars.
  const bool is_known = op->num_results != 0 && p->propagation.values[op->results[0].id] != NULL;
  mp_local_op_t local = {0};
  bool is_local = false;
  if (is_known) {
    MP_RETURN_IF_ERROR(mp_op_error_at(
        op, mp_lower_op(p->arena, &p->propagation, p->scope, op, &local, &is_local)));
  }
  if (!is_local) {
    MP_RETURN_IF_ERROR(mp_partitioner_note_whole(p, op));
    return partition_op_whole(p, op);
  }
  return op->code == MP_OP_IOTA ? partition_op_iota(p, op, &local)
                                : partition_op_local(p, op, &local);
}
