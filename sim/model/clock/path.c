#include "sim/model/clock/path.h"

#include <stddef.h>

#include "sim/base/alloc.h"
#include "sim/base/containers/array.h"
#include "sim/base/hash.h"

// A path of more entries (16 MiB) is cut.
enum { MP_PATH_MOST_ENTRIES = 1 << 20 };

static const mp_path_entry_t *path_entry(const mp_path_t *path, uint32_t i) {
  return i < MP_PATH_FEW ? &path->few[i] : &path->more[i - MP_PATH_FEW];
}

static mp_path_entry_t *path_last(mp_path_t *path) {
  const uint32_t i = path->num_entries - 1;
  return i < MP_PATH_FEW ? &path->few[i] : &path->more[i - MP_PATH_FEW];
}

// The place of a new entry; NULL: there is none.
static mp_path_entry_t *path_append(mp_path_t *path) {
  if (path->num_entries < MP_PATH_FEW) return &path->few[path->num_entries++];
  const uint32_t more = path->num_entries - MP_PATH_FEW;
  if (more == MP_PATH_MOST_ENTRIES ||
      !mp_array_can_hold(NULL, &path->more, sizeof(*path->more), more, &path->capacity, 1)) {
    return NULL;
  }
  path->num_entries += 1;
  return &path->more[more];
}

void mp_path_add(mp_path_t *path, uint64_t choice) {
  if (path->is_cut) return;
  if (path->num_entries != 0) {
    mp_path_entry_t *last = path_last(path);
    if (last->choice == choice && last->count != UINT32_MAX) {
      last->count += 1;
      return;
    }
  }
  mp_path_entry_t *entry = path_append(path);
  if (entry == NULL) {
    path->is_cut = true;
  } else {
    *entry = (mp_path_entry_t){.choice = choice, .count = 1};
  }
}

void mp_path_clear(mp_path_t *path) {
  mp_free(path->more);
  *path = (mp_path_t){0};
}

uint64_t mp_path_hash(const mp_path_t *path) {
  uint64_t hash = mp_hash_u64(MP_HASH_START, path->is_cut);
  for (uint32_t i = 0; i < path->num_entries; ++i) {
    hash = mp_hash_u64(hash, path_entry(path, i)->choice);
    hash = mp_hash_u64(hash, path_entry(path, i)->count);
  }
  return hash;
}

bool mp_path_take(const mp_path_t *path, mp_path_cursor_t *cursor, uint64_t *out_choice) {
  *out_choice = 0;
  if (cursor->entry == path->num_entries) return false;
  const mp_path_entry_t *entry = path_entry(path, cursor->entry);
  *out_choice = entry->choice;
  if (++cursor->used == entry->count) *cursor = (mp_path_cursor_t){.entry = cursor->entry + 1};
  return true;
}
