// Custom calls that differ between devices: those that are annotated to be on one device (a maximal
// sharding), and those that take the parts of their operands unchanged.
//
// A call on one device becomes a branch: that device calls, the others continue with zeros, and the
// results are broadcast from there. A call without results sends nothing.
#include "sim/spmd/partition/partitioner.h"

#include "sim/base/assert.h"
#include "sim/spmd/build/append.h"
#include "sim/spmd/build/append_collective.h"
#include "sim/spmd/sharding/placement.h"

// JAX's callback that gets the part of each device.
static const char k_partitioned_target[] = "xla_ffi_partitioned_python_cpu_callback";

static bool partition_call_is_maximal(const mp_sdy_sharding_t *sharding) {
  const mp_mesh_t *mesh = sharding->mesh;
  return mesh != NULL && mesh->num_axes == 0 && mesh->num_device_ids == 1;
}

// The first maximal sharding of the op's annotation; NULL: there is none. (JAX 0.9 gives tokens
// another sharding than the arrays beside them.)
static const mp_sdy_sharding_t *partition_call_maximal(const mp_op_t *op) {
  const mp_attr_t *attr = mp_op_attr(op, MP_ATTR_SDY_SHARDING);
  if (attr == NULL) return NULL;
  if (attr->kind == MP_KIND_SHARDING) {
    return partition_call_is_maximal(attr->u.sharding) ? attr->u.sharding : NULL;
  }
  for (uint32_t i = 0; attr->kind == MP_KIND_SHARDINGS && i < attr->u.shardings.count; ++i) {
    const mp_sdy_sharding_t *sharding = &attr->u.shardings.shardings[i];
    if (partition_call_is_maximal(sharding)) return sharding;
  }
  return NULL;
}

// Whether the op belongs on one partition of the whole program, and on which.
static bool partition_call_is_on_one(const mp_partitioner_t *p, const mp_op_t *op,
                                     int64_t *out_partition) {
  if (p->scope->parent != NULL || p->module->num_partitions == 1) return false;
  const mp_sdy_sharding_t *sharding = partition_call_maximal(op);
  if (sharding == NULL) return false;
  *out_partition = sharding->mesh->device_ids[0];
  return true;
}

// ---- On one device ----

// The number of the branch that each partition takes: 0 calls, 1 does not.
static mp_status_t partition_call_branch(mp_partitioner_t *p, const mp_op_t *op, int64_t partition,
                                         mp_value_t **out_number) {
  const uint32_t count = p->module->num_partitions;
  int32_t *table = MP_ARENA_ARRAY(p->arena, int32_t, count);
  MP_RETURN_IF_NULL(table);
  for (uint32_t i = 0; i < count; ++i) table[i] = (int64_t)i != partition;
  return mp_append_lookup(&(mp_append_at_t){p->module, p->versions.block, op->loc}, MP_DTYPE_S32,
                          table, count, out_number);
}

// Ends a branch with the tensors among `results`, which are values of its block.
static mp_status_t partition_call_return(mp_partitioner_t *p, const mp_op_t *op, mp_block_t *block,
                                         mp_value_t *const *results, uint32_t count) {
  const mp_op_spec_t spec = {
      .code = MP_OP_RETURN, .loc = op->loc, .num_operands = count, .operands = results};
  mp_op_t *terminator = NULL;
  MP_RETURN_IF_ERROR(mp_op_create(p->module, &spec, &terminator));
  mp_block_append(block, terminator);
  return NULL;
}

static mp_status_t partition_call_make_branches(mp_partitioner_t *p, const mp_op_t *op,
                                                mp_block_t **regions) {
  mp_block_t *outside = p->versions.block;
  mp_value_t **results = MP_ARENA_ARRAY(p->arena, mp_value_t *, op->num_results);
  mp_op_parts_t parts;
  MP_RETURN_IF_ERROR(mp_partitioner_start_op(p, op, &parts));
  MP_RETURN_IF_NULL(results);
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    MP_RETURN_IF_ERROR(mp_partitioner_get_whole(p, op, op->operands[i], &parts.operands[i]));
  }
  for (uint32_t i = 0; i < op->num_results; ++i) parts.types[i] = op->results[i].type;
  for (uint32_t r = 0; r < 2; ++r) {
    MP_RETURN_IF_ERROR(mp_block_create(p->module, 0, NULL, &regions[r]));
  }
  mp_op_t *call = NULL;
  p->versions.block = regions[0];
  mp_status_t status = mp_partitioner_finish_op(p, op, &parts, &call);
  p->versions.block = outside;
  MP_RETURN_IF_ERROR(status);
  uint32_t count = 0;
  for (uint32_t i = 0; i < op->num_results; ++i) {
    if (mp_type_is_tensor(op->results[i].type)) results[count++] = &call->results[i];
  }
  MP_RETURN_IF_ERROR(partition_call_return(p, op, regions[0], results, count));
  static const char zero[16] = {0};
  count = 0;
  for (uint32_t i = 0; i < op->num_results; ++i) {
    const mp_type_t *type = op->results[i].type;
    if (!mp_type_is_tensor(type)) continue;
    MP_RETURN_IF_ERROR(mp_append_constant(&(mp_append_at_t){p->module, regions[1], NULL}, type,
                                          zero, mp_dtype_size(type->dtype), true,
                                          &results[count++]));
  }
  return partition_call_return(p, op, regions[1], results, count);
}

// Broadcasts the tensors of the branch from the partition to all, and makes new tokens: a token
// orders the end of the call, and so does the order of each device's commands.
static mp_status_t partition_call_spread(mp_partitioner_t *p, const mp_op_t *op, int64_t partition,
                                         const mp_op_t *branch) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < op->num_results; ++i) {
    const mp_type_t *type = op->results[i].type;
    mp_value_t *value = NULL;
    if (mp_type_is_tensor(type)) {
      MP_RETURN_IF_ERROR(
          mp_append_broadcast_from(&(mp_append_at_t){p->module, p->versions.block, op->loc},
                                   partition, &branch->results[count++], &value));
    } else {
      MP_RETURN_IF_ERROR(mp_append_op(&(mp_append_at_t){p->module, p->versions.block, op->loc},
                                      MP_OP_AFTER_ALL, NULL, 0, type, NULL, &value));
    }
    MP_RETURN_IF_ERROR(mp_versions_add(&p->versions, &op->results[i], NULL, value));
  }
  return NULL;
}

static mp_status_t partition_call_on_one(mp_partitioner_t *p, const mp_op_t *op,
                                         int64_t partition) {
  if (partition < 0 || partition >= (int64_t)p->module->num_partitions) {
    return mp_op_error(op, MP_INVALID_ARGUMENT,
                       "it is to be on partition %lld, but there are %u partitions",
                       (long long)partition, p->module->num_partitions);
  }
  mp_block_t *regions[2] = {NULL, NULL};
  MP_RETURN_IF_ERROR(partition_call_make_branches(p, op, regions));
  mp_value_t *number = NULL;
  MP_RETURN_IF_ERROR(partition_call_branch(p, op, partition, &number));
  const mp_type_t **types = MP_ARENA_ARRAY(p->arena, const mp_type_t *, op->num_results);
  MP_RETURN_IF_NULL(types);
  uint32_t count = 0;
  for (uint32_t i = 0; i < op->num_results; ++i) {
    if (mp_type_is_tensor(op->results[i].type)) types[count++] = op->results[i].type;
  }
  const mp_op_spec_t spec = {.code = MP_OP_CASE,
                             .loc = op->loc,
                             .num_operands = 1,
                             .operands = &number,
                             .num_results = count,
                             .result_types = types,
                             .num_regions = 2,
                             .regions = regions};
  mp_op_t *branch = NULL;
  MP_RETURN_IF_ERROR(mp_op_create(p->module, &spec, &branch));
  mp_block_append(p->versions.block, branch);
  return partition_call_spread(p, op, partition, branch);
}

// ---- With the parts of the operands ----

// The operand's placement by propagation. Terms of a sum are no parts: an unreduced value is passed
// whole.
static mp_status_t partition_call_placement(mp_partitioner_t *p, const mp_value_t *operand,
                                            const mp_boxes_t **out_boxes) {
  *out_boxes = NULL;
  const bool is_known = p->is_propagated && mp_type_is_tensor(operand->type);
  if (!is_known || p->propagation.values[operand->id] == NULL) return NULL;
  MP_RETURN_IF_ERROR(mp_atom_sharding_boxes(&p->propagation.space, p->scope, operand->type,
                                            p->propagation.values[operand->id], out_boxes));
  if (*out_boxes != NULL && (*out_boxes)->partials != NULL) *out_boxes = NULL;
  return NULL;
}

static mp_status_t partition_call_with_parts(mp_partitioner_t *p, const mp_op_t *op) {
  mp_op_parts_t parts;
  MP_RETURN_IF_ERROR(mp_partitioner_start_op(p, op, &parts));
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const mp_boxes_t *boxes = NULL;
    MP_RETURN_IF_ERROR(partition_call_placement(p, op->operands[i], &boxes));
    MP_RETURN_IF_ERROR(mp_versions_get(&p->versions, p->scope, op->operands[i], boxes, op->loc,
                                       &parts.operands[i]));
  }
  for (uint32_t i = 0; i < op->num_results; ++i) parts.types[i] = op->results[i].type;
  mp_op_t *copy = NULL;
  MP_RETURN_IF_ERROR(mp_partitioner_finish_op(p, op, &parts, &copy));
  for (uint32_t i = 0; i < op->num_results; ++i) {
    MP_RETURN_IF_ERROR(mp_versions_add(&p->versions, &op->results[i], NULL, &copy->results[i]));
  }
  return NULL;
}

mp_status_t mp_partitioner_call(mp_partitioner_t *p, const mp_op_t *op, bool *out_done) {
  int64_t partition = 0;
  *out_done = true;
  if (op->code == MP_OP_CUSTOM_CALL) {
    if (mp_str_is(mp_op_str(op, MP_ATTR_CALL_TARGET_NAME), k_partitioned_target)) {
      return partition_call_with_parts(p, op);
    }
    if (partition_call_is_on_one(p, op, &partition)) return partition_call_on_one(p, op, partition);
  }
  *out_done = false;
  return NULL;
}
