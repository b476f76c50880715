#include <string.h>

#include "sim/ir/loc.h"
#include "sim/mosaic/compile/mosaic_compiler.h"
#include "sim/mosaic/vectors/vectors.h"

mp_status_t mp_mosaic_emit(mp_mosaic_compiler_t *c, const mp_mosaic_instruction_t *instruction) {
  if (c->code.count >= MP_MOSAIC_MOST_INSTRUCTIONS) {
    return mp_status_make(MP_RESOURCE_EXHAUSTED, "the kernel has more than %d instructions",
                          MP_MOSAIC_MOST_INSTRUCTIONS);
  }
  return MP_ARRAY_PUSH(c->arena, &c->code, *instruction);
}

mp_status_t mp_mosaic_where(mp_mosaic_compiler_t *c, const mp_mosaic_op_t *op,
                            const char **out_where) {
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_strbuf_puts(&text, mp_mosaic_op_info(op->code)->name);
  mp_strbuf_puts(&text, ", ");
  mp_loc_describe(op->loc, &text);
  *out_where = text.failed ? NULL : mp_arena_strndup(c->arena, text.data, text.size);
  mp_strbuf_deinit(&text);
  MP_RETURN_IF_NULL(*out_where);
  return NULL;
}

mp_status_t mp_mosaic_name_op(const mp_mosaic_op_t *op, mp_status_t status) {
  if (status == NULL || strchr(mp_status_message(status), '[') != NULL) return status;
  mp_status_t named =
      mp_mosaic_op_error(op, mp_status_code(status), "%s", mp_status_message(status));
  mp_status_release(status);
  return named;
}

mp_status_t mp_mosaic_copy_type(const mp_mosaic_compiler_t *c, const mp_mosaic_type_t *type,
                                const mp_mosaic_type_t **out_type) {
  mp_mosaic_type_t *copy = MP_ARENA_NEW(c->arena, mp_mosaic_type_t);
  MP_RETURN_IF_NULL(copy);
  *copy = (mp_mosaic_type_t){.kind = type->kind,
                             .element = type->element,
                             .dtype = type->dtype,
                             .rank = type->rank,
                             .space = type->space};
  copy->dims = mp_arena_copy(c->arena, type->dims, type->rank * sizeof(*type->dims));
  MP_RETURN_IF_NULL(copy->dims);
  *out_type = copy;
  return NULL;
}

// ---- places ----

mp_status_t mp_mosaic_new_register(mp_mosaic_compiler_t *c, int64_t value, uint32_t *out_register) {
  *out_register = c->registers.count;
  return MP_ARRAY_PUSH(c->arena, &c->registers, value);
}

mp_status_t mp_mosaic_new_vector(mp_mosaic_compiler_t *c, uint64_t bytes, uint32_t *out_vector) {
  const mp_mosaic_vector_t vector = {
      .bytes = bytes, .start = mp_mosaic_here(c), .end = mp_mosaic_here(c)};
  *out_vector = c->vectors.count;
  return MP_ARRAY_PUSH(c->scratch, &c->vectors, vector);
}

static mp_status_t mosaic_emit_vector_bytes(const mp_mosaic_type_t *type, uint64_t *out_bytes) {
  int64_t count = 0;
  if (!mp_mosaic_num_elements(type, &count) || count > (INT64_C(1) << 40)) {
    return mp_status_make(MP_UNIMPLEMENTED, "vectors of unknown size are not supported");
  }
  *out_bytes = (uint64_t)count * mp_dtype_size(mp_mosaic_tensor_dtype(type->dtype));
  return NULL;
}

mp_status_t mp_mosaic_new_place(mp_mosaic_compiler_t *c, const mp_mosaic_type_t *type,
                                mp_mosaic_place_t *out_place) {
  uint64_t bytes = 0;
  *out_place = (mp_mosaic_place_t){.root = MP_MOSAIC_NONE};
  switch (type->kind) {
    case MP_MOSAIC_SCALAR:
      out_place->kind = MP_MOSAIC_IN_REGISTER;
      return mp_mosaic_new_register(c, 0, &out_place->index);
    case MP_MOSAIC_VECTOR:
      out_place->kind = MP_MOSAIC_IN_VECTOR;
      MP_RETURN_IF_ERROR(mosaic_emit_vector_bytes(type, &bytes));
      return mp_mosaic_new_vector(c, bytes, &out_place->index);
    default:
      if (type->rank > MP_MOSAIC_MAX_RANK) {
        return mp_status_make(MP_UNIMPLEMENTED, "memrefs of more than %d dimensions",
                              MP_MOSAIC_MAX_RANK);
      }
      out_place->kind = MP_MOSAIC_IN_VIEW;
      out_place->index = c->num_views++;
      return NULL;
  }
}

mp_status_t mp_mosaic_new_result(mp_mosaic_compiler_t *c, const mp_mosaic_value_t *value,
                                 uint32_t *out_index) {
  mp_mosaic_place_t place;
  MP_RETURN_IF_ERROR(mp_mosaic_new_place(c, value->type, &place));
  mp_mosaic_set_place(c, value, place);
  *out_index = place.index;
  return NULL;
}

// ---- uses ----

// A vector that is written before a loop and read in it must stay until the loop's end.
mp_status_t mp_mosaic_use_vector(mp_mosaic_compiler_t *c, uint32_t vector) {
  mp_mosaic_vector_t *used = &c->vectors.items[vector];
  const uint32_t here = mp_mosaic_here(c);
  if (used->end < here) used->end = here;
  for (uint32_t i = 0; i < c->loops.count; ++i) {
    mp_mosaic_loop_t *loop = &c->loops.items[i];
    if (loop->begin <= used->start) continue;
    return MP_ARRAY_PUSH(c->scratch, &loop->kept_vectors, vector);
  }
  return NULL;
}

mp_status_t mp_mosaic_begin_loop(mp_mosaic_compiler_t *c) {
  const mp_mosaic_loop_t loop = {.begin = mp_mosaic_here(c)};
  return MP_ARRAY_PUSH(c->scratch, &c->loops, loop);
}

mp_status_t mp_mosaic_end_loop(mp_mosaic_compiler_t *c) {
  const mp_mosaic_loop_t loop = c->loops.items[--c->loops.count];
  const uint32_t here = mp_mosaic_here(c);
  for (uint32_t i = 0; i < loop.kept_vectors.count; ++i) {
    mp_mosaic_vector_t *vector = &c->vectors.items[loop.kept_vectors.items[i]];
    if (vector->end < here) vector->end = here;
  }
  return NULL;
}
