// One group of a manual region, presented as all partitions: a partitioner that is called for code
// in the region knows only one group. All groups compute the same on different data.
#include "sim/spmd/partition/partitioner.h"

#include "sim/spmd/sharding/placement.h"

mp_status_t mp_partitioner_group(mp_partitioner_t *p, const mp_op_t *op,
                                 mp_partition_group_t *out_group) {
  *out_group = (mp_partition_group_t){.scope = p->scope};
  if (p->scope->parent == NULL) return NULL;
  const uint32_t count = p->scope->num_partitions;
  const int32_t *groups = p->scope->groups;
  uint32_t *members = MP_ARENA_ARRAY(p->arena, uint32_t, count);
  uint32_t *numbers = MP_ARENA_ARRAY(p->arena, uint32_t, count);
  uint32_t *sizes = MP_ARENA_ARRAY(p->arena, uint32_t, count);  // of each group
  if (members == NULL || numbers == NULL || sizes == NULL) return mp_status_out_of_memory();
  for (uint32_t i = 0; i < count; ++i) {
    numbers[i] = sizes[groups[i]]++;
    if (groups[i] == groups[0]) members[numbers[i]] = i;
  }
  const uint32_t size = sizes[groups[0]];
  for (uint32_t i = 0; i < count; ++i) {
    if (sizes[groups[i]] == size) continue;
    return mp_op_error(op, MP_INTERNAL, "the groups of a manual region are not equally large");
  }
  out_group->members = members;
  out_group->numbers = numbers;
  return mp_spmd_scope_top(p->arena, size, &out_group->scope);
}

// Boxes of which partition i of `scope` holds that of partition `which[i]` in `from`.
static mp_status_t partition_group_rearrange(const mp_spmd_scope_t *scope, const mp_type_t *type,
                                             const mp_boxes_t *from, const uint32_t *which,
                                             const mp_boxes_t **out_boxes) {
  mp_boxes_t boxes;
  int64_t *starts = NULL, *sizes = NULL;
  MP_RETURN_IF_ERROR(mp_placement_start(scope, type, &boxes, &starts, &sizes));
  for (uint32_t i = 0; i < boxes.num_partitions; ++i) {
    for (uint32_t d = 0; d < boxes.rank; ++d) {
      starts[(size_t)i * boxes.rank + d] = from->starts[(size_t)which[i] * from->rank + d];
      sizes[(size_t)i * boxes.rank + d] = from->sizes[(size_t)which[i] * from->rank + d];
    }
  }
  return mp_spmd_pool_boxes(scope->pool, &boxes, out_boxes);
}

// Whether the partitions of all groups hold the boxes that those of the first group hold.
static bool partition_group_is_same_in_all(const mp_partition_group_t *group,
                                           const mp_boxes_t *boxes) {
  for (uint32_t i = 0; i < boxes->num_partitions; ++i) {
    const size_t own = (size_t)i * boxes->rank;
    const size_t other = (size_t)group->members[group->numbers[i]] * boxes->rank;
    for (uint32_t d = 0; d < boxes->rank; ++d) {
      if (boxes->starts[own + d] != boxes->starts[other + d]) return false;
      if (boxes->sizes[own + d] != boxes->sizes[other + d]) return false;
    }
  }
  return true;
}

mp_status_t mp_partitioner_to_group(const mp_partition_group_t *group, const mp_type_t *type,
                                    const mp_boxes_t *boxes, const mp_boxes_t **out_boxes) {
  *out_boxes = boxes;
  if (group->members == NULL || boxes == NULL) return NULL;
  *out_boxes = NULL;
  if (!partition_group_is_same_in_all(group, boxes)) return NULL;
  return partition_group_rearrange(group->scope, type, boxes, group->members, out_boxes);
}

mp_status_t mp_partitioner_from_group(mp_partitioner_t *p, const mp_partition_group_t *group,
                                      const mp_type_t *type, const mp_boxes_t *boxes,
                                      const mp_boxes_t **out_boxes) {
  *out_boxes = boxes;
  if (group->members == NULL || boxes == NULL) return NULL;
  return partition_group_rearrange(p->scope, type, boxes, group->numbers, out_boxes);
}

static mp_status_t partition_group_check_op(void *context, mp_op_t *inner) {
  const mp_op_t *op = context;
  const bool is_of_group = mp_op_has(inner, MP_OP_TRAIT_COLLECTIVE) ||
                           inner->code == MP_OP_PARTITION_ID || inner->code == MP_OP_REPLICA_ID;
  if (!is_of_group) return NULL;
  return mp_op_error(
      op, MP_UNIMPLEMENTED,
      "its partitioner's program holds %s, inside of a region in which some axes are manual",
      mp_op_info(inner->code)->name);
}

mp_status_t mp_partitioner_check_group_program(const mp_partition_group_t *group, const mp_op_t *op,
                                               mp_module_t *program) {
  if (group->members == NULL) return NULL;
  return mp_module_walk(program, partition_group_check_op, (void *)op);
}
