#include "sim/mosaic/compile/mosaic_compiler.h"

mp_status_t mp_mosaic_need(mp_mosaic_compiler_t *c, const mp_mosaic_value_t *value,
                           mp_mosaic_place_t *out_place) {
  const mp_mosaic_place_t *place = &c->frame->places[value->id];
  if (place->kind == MP_MOSAIC_NOWHERE && mp_mosaic_is_made_again(value)) {
    MP_RETURN_IF_ERROR(mp_mosaic_make_again(c, value, out_place));
  } else {
    if (place->kind == MP_MOSAIC_NOWHERE) MP_RETURN_IF_ERROR(mp_mosaic_end_segment(c));
    *out_place = *place;
  }
  if (out_place->kind == MP_MOSAIC_NOWHERE) {
    return mp_status_make(MP_INTERNAL, "a Mosaic value is read before it is made");
  }
  if (out_place->kind != MP_MOSAIC_IN_VECTOR) return NULL;
  return mp_mosaic_use_vector(c, out_place->index);
}

mp_status_t mp_mosaic_need_index(mp_mosaic_compiler_t *c, const mp_mosaic_value_t *value,
                                 uint32_t *out_index) {
  mp_mosaic_place_t place;
  MP_RETURN_IF_ERROR(mp_mosaic_need(c, value, &place));
  *out_index = place.index;
  return NULL;
}

// ---- moves ----

static mp_status_t mosaic_need_move(mp_mosaic_compiler_t *c, mp_mosaic_place_t from,
                                    mp_mosaic_place_t to) {
  mp_mosaic_instruction_t move = {.out = to.index, .a = from.index};
  if (from.kind == to.kind && from.index == to.index) return NULL;
  switch (to.kind) {
    case MP_MOSAIC_IN_REGISTER:
      move.kind = MP_MOSAIC_DO_MOVE;
      break;
    case MP_MOSAIC_IN_VECTOR:
      move.kind = MP_MOSAIC_DO_COPY;
      move.value = (int64_t)c->vectors.items[to.index].bytes;
      MP_RETURN_IF_ERROR(mp_mosaic_use_vector(c, from.index));
      MP_RETURN_IF_ERROR(mp_mosaic_use_vector(c, to.index));
      break;
    default:
      move.kind = MP_MOSAIC_DO_MOVE_VIEW;
  }
  return mp_mosaic_emit(c, &move);
}

static bool mosaic_need_is_target(const mp_mosaic_place_t *places, uint32_t count, uint32_t self,
                                  mp_mosaic_place_t from) {
  for (uint32_t i = 0; i < count; ++i) {
    if (i != self && places[i].kind == from.kind && places[i].index == from.index) return true;
  }
  return false;
}

mp_status_t mp_mosaic_emit_moves(mp_mosaic_compiler_t *c, mp_mosaic_value_t *const *values,
                                 uint32_t count, const mp_mosaic_place_t *places) {
  mp_mosaic_place_t *from = MP_ARENA_ARRAY(c->scratch, mp_mosaic_place_t, count);
  MP_RETURN_IF_NULL(from);
  for (uint32_t i = 0; i < count; ++i) {
    MP_RETURN_IF_ERROR(mp_mosaic_need(c, values[i], &from[i]));
  }
  // A place that another move overwrites is first copied.
  for (uint32_t i = 0; i < count; ++i) {
    if (!mosaic_need_is_target(places, count, i, from[i])) continue;
    mp_mosaic_place_t copy;
    MP_RETURN_IF_ERROR(mp_mosaic_new_place(c, values[i]->type, &copy));
    MP_RETURN_IF_ERROR(mosaic_need_move(c, from[i], copy));
    from[i] = copy;
  }
  for (uint32_t i = 0; i < count; ++i) MP_RETURN_IF_ERROR(mosaic_need_move(c, from[i], places[i]));
  return NULL;
}
