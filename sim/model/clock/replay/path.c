#include "sim/model/clock/replay/path.h"

#include <stddef.h>

#include "sim/base/alloc.h"
#include "sim/base/assert.h"
#include "sim/base/containers/array.h"
#include "sim/base/hash.h"

// A stream of more entries (16 MiB) is cut.
enum { PATH_MOST_ENTRIES = 1 << 20 };

// ---- Streams ----

static const mp_path_stream_t *path_stream(const mp_path_t *path, uint32_t i) {
  return i == 0 ? &path->one : &path->more[i - 1];
}

// The number of the stream of a loop or branch; num_streams if there is none.
static uint32_t path_find(const mp_path_t *path, uint32_t control) {
  uint32_t i = 0;
  while (i < path->num_streams && path_stream(path, i)->control != control) ++i;
  return i;
}

// The stream to write to, made when it is the first choice; NULL: memory is short.
static mp_path_stream_t *path_writable(mp_path_t *path, uint32_t control) {
  if (path->num_streams == 0 || path_stream(path, path->last)->control != control) {
    path->last = path_find(path, control);
  }
  if (path->last == path->num_streams) {
    if (path->num_streams != 0 && !mp_array_can_hold(NULL, &path->more, sizeof(*path->more),
                                                     path->num_streams - 1, &path->capacity, 1)) {
      path->last = 0;
      return NULL;
    }
    path->num_streams += 1;
    *(mp_path_stream_t *)(uintptr_t)path_stream(path, path->last) =
        (mp_path_stream_t){.control = control};
  }
  return (mp_path_stream_t *)(uintptr_t)path_stream(path, path->last);
}

// ---- Entries ----

static const mp_path_entry_t *path_entry(const mp_path_stream_t *stream, uint32_t i) {
  return i < MP_PATH_FEW ? &stream->few[i] : &stream->more[i - MP_PATH_FEW];
}

// The place of a new entry; NULL: there is none.
static mp_path_entry_t *path_append(mp_path_stream_t *stream) {
  if (stream->num_entries < MP_PATH_FEW) return &stream->few[stream->num_entries++];
  const uint32_t more = stream->num_entries - MP_PATH_FEW;
  if (more == PATH_MOST_ENTRIES ||
      !mp_array_can_hold(NULL, &stream->more, sizeof(*stream->more), more, &stream->capacity, 1)) {
    return NULL;
  }
  stream->num_entries += 1;
  return &stream->more[more];
}

static bool path_stream_add(mp_path_stream_t *stream, uint64_t choice, uint64_t count) {
  if (stream->num_entries != 0) {
    mp_path_entry_t *last =
        (mp_path_entry_t *)(uintptr_t)path_entry(stream, stream->num_entries - 1);
    MP_ASSERT(last->count != 0);
    if (last->choice == choice) {
      last->count += count;
      return true;
    }
  }
  mp_path_entry_t *entry = path_append(stream);
  if (entry == NULL) return false;
  *entry = (mp_path_entry_t){.choice = choice, .count = count};
  return true;
}

void mp_path_add(mp_path_t *path, uint32_t control, uint64_t choice, uint64_t count) {
  if (control == 0 || path->is_cut || count == 0) return;
  mp_path_stream_t *stream = path_writable(path, control);
  path->is_cut = stream == NULL || !path_stream_add(stream, choice, count);
}

void mp_path_clear(mp_path_t *path) {
  for (uint32_t i = 0; i < path->num_streams; ++i) mp_free(path_stream(path, i)->more);
  mp_free(path->more);
  *path = (mp_path_t){0};
}

// The streams lie in the order of their first choices, which is the same for equal ways.
uint64_t mp_path_hash(const mp_path_t *path) {
  uint64_t hash = mp_hash_u64(MP_HASH_START, path->is_cut);
  for (uint32_t s = 0; s < path->num_streams; ++s) {
    const mp_path_stream_t *stream = path_stream(path, s);
    hash = mp_hash_u64(hash, (uint64_t)stream->control << 32 | stream->num_entries);
    for (uint32_t i = 0; i < stream->num_entries; ++i) {
      hash = mp_hash_u64(hash, path_entry(stream, i)->choice);
      hash = mp_hash_u64(hash, path_entry(stream, i)->count);
    }
  }
  return hash;
}

uint64_t mp_path_next(const mp_path_t *path, uint32_t control, const mp_path_cursor_t *cursor,
                      uint64_t *out_choice) {
  *out_choice = 0;
  const uint32_t number = path_find(path, control);
  if (number == path->num_streams) return 0;
  const mp_path_stream_t *stream = path_stream(path, number);
  if (cursor->entry == stream->num_entries) return 0;
  const mp_path_entry_t *entry = path_entry(stream, cursor->entry);
  *out_choice = entry->choice;
  MP_ASSERT(cursor->used < entry->count);
  return entry->count - cursor->used;
}

void mp_path_take(const mp_path_t *path, uint32_t control, mp_path_cursor_t *cursor,
                  uint64_t count) {
  const uint32_t number = path_find(path, control);
  MP_ASSERT(number < path->num_streams);
  const mp_path_stream_t *stream = path_stream(path, number);
  MP_ASSERT(cursor->entry < stream->num_entries);
  cursor->used += count;
  MP_ASSERT(cursor->used <= path_entry(stream, cursor->entry)->count);
  if (cursor->used == path_entry(stream, cursor->entry)->count) {
    *cursor = (mp_path_cursor_t){.entry = cursor->entry + 1};
  }
}
