#include "sim/model/report/events/chakra_groups.h"

#include <inttypes.h>

#include "sim/base/alloc.h"
#include "sim/base/containers/array.h"
#include "sim/base/containers/hash_map.h"
#include "sim/base/hash.h"

typedef struct {
  uint32_t count;
  const int32_t *ids;  // [count]
} group_t;

typedef struct {
  uint64_t hash;
  uint32_t group;  // index
} group_entry_t;

struct mp_chakra_groups_s {
  mp_arena_t *arena;  // owned
  uint32_t num_devices;
  MP_ARRAY(group_t) list;
  MP_HASH_MAP(group_entry_t) by_hash;
  int32_t *scratch;   // [num_devices]
  uint32_t *logical;  // [num_devices] each device's logical number in the last program, probably
};

static mp_status_t chakra_groups_make(mp_chakra_groups_t *groups) {
  MP_RETURN_IF_ERROR(mp_arena_create(&groups->arena));
  groups->scratch = MP_ARENA_ARRAY(groups->arena, int32_t, groups->num_devices);
  groups->logical = MP_ARENA_ARRAY(groups->arena, uint32_t, groups->num_devices);
  MP_RETURN_IF_NULL(groups->scratch);
  MP_RETURN_IF_NULL(groups->logical);
  return NULL;
}

mp_status_t mp_chakra_groups_create(uint32_t num_devices, mp_chakra_groups_t **out_groups) {
  mp_chakra_groups_t *groups = mp_calloc(1, sizeof(*groups));
  MP_RETURN_IF_NULL(groups);
  groups->num_devices = num_devices;
  mp_status_t status = chakra_groups_make(groups);
  if (status != NULL) {
    mp_chakra_groups_release(groups);
    return status;
  }
  *out_groups = groups;
  return NULL;
}

void mp_chakra_groups_release(mp_chakra_groups_t *groups) {
  if (groups == NULL) return;
  mp_arena_release(groups->arena);
  mp_free(groups);
}

static void chakra_groups_learn(mp_chakra_groups_t *groups, const mp_model_program_t *program) {
  const int32_t *ids = mp_model_program_ids(program);
  const uint32_t count = mp_model_program_num_devices(program);
  for (uint32_t i = 0; i < count; ++i) groups->logical[ids[i]] = i;
}

static mp_status_t chakra_groups_add(mp_chakra_groups_t *groups, uint64_t hash, uint32_t count) {
  int32_t *ids = MP_ARENA_ARRAY(groups->arena, int32_t, count + 1);
  MP_RETURN_IF_NULL(ids);
  memcpy(ids, groups->scratch, count * sizeof(*ids));
  const group_entry_t entry = {hash, groups->list.count};
  MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(groups->arena, &groups->list, (group_t){count, ids}));
  return MP_HASH_MAP_ADD(groups->arena, &groups->by_hash, &entry);
}

uint32_t mp_chakra_group_of(mp_chakra_groups_t *groups, const mp_model_program_t *program,
                            const mp_collective_t *collective, uint32_t device) {
  const int32_t *ids = mp_model_program_ids(program);
  const mp_groups_t *all = collective->groups;
  uint32_t logical = groups->logical[device];
  if (logical >= mp_model_program_num_devices(program) || ids[logical] != (int32_t)device) {
    chakra_groups_learn(groups, program);
    logical = groups->logical[device];
  }
  if (all->group_of[logical] < 0) return 0;
  const uint32_t first = all->offsets[all->group_of[logical]];
  const uint32_t count = all->offsets[all->group_of[logical] + 1] - first;
  for (uint32_t i = 0; i < count; ++i) groups->scratch[i] = ids[all->members[first + i]];
  const size_t bytes = count * sizeof(*groups->scratch);
  const uint64_t hash = mp_hash_bytes(MP_HASH_START, groups->scratch, bytes);
  const group_entry_t *entry;
  MP_HASH_MAP_EACH(&groups->by_hash, hash, entry) {
    const group_t *group = &groups->list.items[entry->group];
    if (group->count == count && memcmp(group->ids, groups->scratch, bytes) == 0) {
      return entry->group + 1;
    }
  }
  mp_status_t status = chakra_groups_add(groups, hash, count);
  if (status == NULL) return groups->list.count;
  mp_status_release(status);
  return 0;
}

void mp_chakra_groups_print(const mp_chakra_groups_t *groups, mp_strbuf_t *out) {
  mp_strbuf_puts(out, "{");
  for (uint32_t g = 0; g < groups->list.count; ++g) {
    const group_t *group = &groups->list.items[g];
    mp_strbuf_printf(out, "%s\n  \"%" PRIu32 "\": [", g == 0 ? "" : ",", g + 1);
    for (uint32_t i = 0; i < group->count; ++i) {
      mp_strbuf_printf(out, "%s%" PRId32, i == 0 ? "" : ", ", group->ids[i]);
    }
    mp_strbuf_puts(out, "]");
  }
  mp_strbuf_puts(out, "\n}\n");
}
