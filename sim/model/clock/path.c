#include "sim/model/clock/path.h"

#include <stddef.h>

#include "sim/base/alloc.h"
#include "sim/base/containers/array.h"
#include "sim/base/hash.h"

// A path of more entries (16 MiB) is cut.
enum { MP_PATH_MOST_ENTRIES = 1 << 20 };

void mp_path_add(mp_path_t *path, uint64_t choice) {
  if (path->is_cut) return;
  mp_path_entry_t *last = path->num_entries == 0 ? NULL : &path->entries[path->num_entries - 1];
  if (last != NULL && last->choice == choice && last->count != UINT32_MAX) {
    last->count += 1;
    return;
  }
  if (path->num_entries == MP_PATH_MOST_ENTRIES ||
      !mp_array_can_hold(NULL, &path->entries, sizeof(*path->entries), path->num_entries,
                         &path->capacity, 1)) {
    path->is_cut = true;
    return;
  }
  path->entries[path->num_entries++] = (mp_path_entry_t){.choice = choice, .count = 1};
}

void mp_path_clear(mp_path_t *path) {
  mp_free(path->entries);
  *path = (mp_path_t){0};
}

bool mp_path_equal(const mp_path_t *a, const mp_path_t *b) {
  if (a->num_entries != b->num_entries || a->is_cut != b->is_cut) return false;
  for (uint32_t i = 0; i < a->num_entries; ++i) {
    if (a->entries[i].choice != b->entries[i].choice) return false;
    if (a->entries[i].count != b->entries[i].count) return false;
  }
  return true;
}

uint64_t mp_path_hash(const mp_path_t *path) {
  uint64_t hash = mp_hash_u64(MP_HASH_START, path->is_cut);
  for (uint32_t i = 0; i < path->num_entries; ++i) {
    hash = mp_hash_u64(hash, path->entries[i].choice);
    hash = mp_hash_u64(hash, path->entries[i].count);
  }
  return hash;
}

bool mp_path_take(const mp_path_t *path, mp_path_cursor_t *cursor, uint64_t *out_choice) {
  *out_choice = 0;
  if (cursor->entry == path->num_entries) return false;
  const mp_path_entry_t *entry = &path->entries[cursor->entry];
  *out_choice = entry->choice;
  if (++cursor->used == entry->count) *cursor = (mp_path_cursor_t){.entry = cursor->entry + 1};
  return true;
}
