// Replica groups (StableHLO spec, "Execution"): from ids in one of four modes to logical numbers.
#include <string.h>

#include "collectives/collective.h"
#include "sim/base/assert.h"

// The translation of one mode's ids to logical device numbers: each row of the table makes `copies`
// groups, and each id in it becomes `per_id` members.
typedef struct {
  uint32_t num_ids;      // ids are 0 .. num_ids-1
  uint32_t copies;       // groups per row
  uint32_t per_id;       // members per id
  uint32_t id_stride;    // logical numbers between ids
  uint32_t copy_stride;  // logical numbers between a row's groups (or an id's members)
} numbering_t;

static numbering_t replica_groups_numbering_of(mp_group_mode_t mode, uint32_t replicas,
                                               uint32_t partitions) {
  switch (mode) {
    case MP_GROUPS_CROSS_REPLICA:
      return (numbering_t){replicas, partitions, 1, partitions, 1};
    case MP_GROUPS_CROSS_PARTITION:
      return (numbering_t){partitions, replicas, 1, 1, partitions};
    case MP_GROUPS_CROSS_REPLICA_AND_PARTITION:
      return (numbering_t){replicas, 1, partitions, partitions, 1};
    case MP_GROUPS_FLATTENED_IDS:
      break;
  }
  return (numbering_t){replicas * partitions, 1, 1, 1, 0};
}

static mp_status_t replica_groups_check_table(const numbering_t *numbering, const int64_t *table,
                                              int64_t count, uint8_t *seen) {
  for (int64_t i = 0; i < count; ++i) {
    int64_t id = table[i];
    if (id == -1) continue;
    if (id < 0 || id >= (int64_t)numbering->num_ids) {
      return mp_status_make(MP_INVALID_ARGUMENT, "replica_groups: id %lld is not in 0 .. %u",
                            (long long)id, numbering->num_ids - 1);
    }
    if (seen[id]++) {
      return mp_status_make(MP_INVALID_ARGUMENT, "replica_groups: id %lld is named twice",
                            (long long)id);
    }
  }
  return NULL;
}

// Appends the members of group `copy` of one row, in the specification's order: member 0 of all ids
// of the row, then member 1 of all, and so on.
static uint32_t replica_groups_append_row(const numbering_t *numbering, const int64_t *row,
                                          int64_t columns, uint32_t copy, uint32_t *members) {
  uint32_t count = 0;
  for (uint32_t member = 0; member < numbering->per_id; ++member) {
    for (int64_t c = 0; c < columns; ++c) {
      if (row[c] < 0) continue;
      members[count++] =
          (uint32_t)row[c] * numbering->id_stride + (copy + member) * numbering->copy_stride;
    }
  }
  return count;
}

mp_status_t mp_groups_create(mp_arena_t *arena, mp_group_mode_t mode, uint32_t num_replicas,
                             uint32_t num_partitions, const int64_t *table, int64_t rows,
                             int64_t columns, const mp_groups_t **out_groups) {
  const numbering_t numbering = replica_groups_numbering_of(mode, num_replicas, num_partitions);
  const uint32_t num_devices = num_replicas * num_partitions;
  if (rows == 0 || columns == 0) {  // one group of all
    int64_t *all = MP_ARENA_ARRAY(arena, int64_t, numbering.num_ids);
    MP_RETURN_IF_NULL(all);
    for (uint32_t i = 0; i < numbering.num_ids; ++i) all[i] = i;
    table = all;
    rows = 1;
    columns = numbering.num_ids;
  }
  uint8_t *seen = MP_ARENA_ARRAY(arena, uint8_t, numbering.num_ids);
  MP_RETURN_IF_NULL(seen);
  MP_RETURN_IF_ERROR(replica_groups_check_table(&numbering, table, rows * columns, seen));

  // Ids are distinct, so at most num_ids rows have members; rows of nothing but padding are
  // dropped.
  mp_groups_t *groups = MP_ARENA_NEW(arena, mp_groups_t);
  uint32_t *offsets = MP_ARENA_ARRAY(arena, uint32_t, (size_t)num_devices + 1);
  uint32_t *members = MP_ARENA_ARRAY(arena, uint32_t, num_devices);
  int32_t *group_of = MP_ARENA_ARRAY(arena, int32_t, num_devices);
  uint32_t *position = MP_ARENA_ARRAY(arena, uint32_t, num_devices);
  if (groups == NULL || offsets == NULL || members == NULL || group_of == NULL ||
      position == NULL) {
    return mp_status_out_of_memory();
  }
  memset(group_of, -1, num_devices * sizeof(*group_of));
  uint32_t num_groups = 0;
  for (int64_t row = 0; row < rows; ++row) {
    for (uint32_t copy = 0; copy < numbering.copies; ++copy) {
      uint32_t begin = offsets[num_groups];
      uint32_t count = replica_groups_append_row(&numbering, table + row * columns, columns, copy,
                                                 members + begin);
      if (count == 0) continue;
      MP_ASSERT(num_groups < num_devices && begin + count <= num_devices);
      for (uint32_t i = 0; i < count; ++i) {
        MP_ASSERT(members[begin + i] < num_devices && group_of[members[begin + i]] == -1);
        group_of[members[begin + i]] = (int32_t)num_groups;
        position[members[begin + i]] = i;
      }
      offsets[++num_groups] = begin + count;
    }
  }
  *groups = (mp_groups_t){num_devices, num_groups, offsets, members, group_of, position};
  *out_groups = groups;
  return NULL;
}
