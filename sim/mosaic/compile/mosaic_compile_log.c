// What a kernel prints (pl.debug_print).
#include "sim/mosaic/compile/mosaic_compiler.h"

static mp_status_t mosaic_compile_log_value(mp_mosaic_compiler_t *c, const mp_mosaic_value_t *value,
                                            mp_mosaic_logged_t *out_logged) {
  mp_mosaic_place_t place;
  MP_RETURN_IF_ERROR(mp_mosaic_need(c, value, &place));
  *out_logged = (mp_mosaic_logged_t){.index = place.index,
                                     .dtype = value->type->dtype,
                                     .is_view = place.kind == MP_MOSAIC_IN_VIEW,
                                     .is_vector = place.kind == MP_MOSAIC_IN_VECTOR};
  return NULL;
}

mp_status_t mp_mosaic_compile_log(mp_mosaic_compiler_t *c, const mp_mosaic_op_t *op) {
  const mp_mosaic_attr_t *tag = mp_mosaic_op_attr(op, "tag");
  const mp_mosaic_attr_t *formatted = mp_mosaic_op_attr(op, "formatted");
  const bool has_tag = tag != NULL && tag->kind == MP_MOSAIC_STRING;
  mp_mosaic_log_t *log = MP_ARENA_NEW(c->arena, mp_mosaic_log_t);
  mp_mosaic_logged_t *values = MP_ARENA_ARRAY(c->arena, mp_mosaic_logged_t, op->num_operands + 1);
  if (log == NULL || values == NULL) return mp_status_out_of_memory();
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const bool is_scalar = op->operands[i]->type->kind == MP_MOSAIC_SCALAR;
    if (is_scalar != (op->code == MP_MOSAIC_LOG_VALUES)) {
      return mp_mosaic_op_error(op, MP_UNIMPLEMENTED, "operand %u cannot be printed", i);
    }
    MP_RETURN_IF_ERROR(mosaic_compile_log_value(c, op->operands[i], &values[i]));
  }
  const char *text = has_tag ? mp_arena_strndup(c->arena, tag->str.data, tag->str.size) : "";
  MP_RETURN_IF_NULL(text);
  *log = (mp_mosaic_log_t){.text = text,
                           .is_formatted = formatted != NULL && formatted->i64 != 0,
                           .count = op->num_operands,
                           .values = values};
  c->has_state = true;  // it is printed once, and in order
  const mp_mosaic_instruction_t in = {.kind = MP_MOSAIC_DO_LOG, .u.log = log};
  return mp_mosaic_emit(c, &in);
}
