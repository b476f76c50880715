#include "pjrt/compile/pjrt_sharding.h"

#include "sim/spmd/sharding/op_sharding.h"

mp_status_t mp_pjrt_sharding_write(mp_arena_t *arena, const mp_boxes_t *boxes, bool is_manual,
                                   bool spell_out, mp_strbuf_t *out) {
  if (is_manual) {
    mp_op_sharding_write_manual(out);
    return NULL;
  }
  bool is_grid = false;
  MP_RETURN_IF_ERROR(mp_op_sharding_write(arena, boxes, spell_out, out, &is_grid));
  if (is_grid) return NULL;
  return mp_status_make(MP_INTERNAL, "the parts of a value are not a grid");
}

static mp_status_t pjrt_sharding_list_one(mp_arena_t *arena, const mp_boxes_t *boxes,
                                          bool spell_out, const char **out_bytes,
                                          size_t *out_size) {
  *out_bytes = "";
  *out_size = 0;
  if (boxes == NULL) return NULL;
  // The memory for finding the tiles, 32 bytes per device, is freed at once.
  mp_arena_t *scratch = NULL;
  MP_RETURN_IF_ERROR(mp_arena_create(&scratch));
  mp_strbuf_t bytes;
  mp_strbuf_init(&bytes);
  mp_status_t status = mp_pjrt_sharding_write(scratch, boxes, false, spell_out, &bytes);
  mp_arena_release(scratch);
  if (status == NULL) status = mp_strbuf_status(&bytes);
  if (status == NULL) {
    *out_bytes = mp_arena_strndup(arena, mp_strbuf_text(&bytes), bytes.size);
    *out_size = bytes.size;
    if (*out_bytes == NULL) status = mp_status_out_of_memory();
  }
  mp_strbuf_deinit(&bytes);
  return status;
}

mp_status_t mp_pjrt_sharding_list(mp_arena_t *arena, const mp_program_io_t *values, uint32_t count,
                                  bool spell_out, const char ***out_shardings, size_t **out_sizes) {
  if (count == 0) return NULL;
  const char **shardings = MP_ARENA_ARRAY(arena, const char *, count + 1);
  size_t *sizes = MP_ARENA_ARRAY(arena, size_t, count + 1);
  MP_RETURN_IF_NULL(shardings);
  MP_RETURN_IF_NULL(sizes);
  for (uint32_t i = 0; i < count; ++i) {
    MP_RETURN_IF_ERROR(
        pjrt_sharding_list_one(arena, values[i].sharding, spell_out, &shardings[i], &sizes[i]));
  }
  *out_shardings = shardings;
  *out_sizes = sizes;
  return NULL;
}
