// Scalars that a TPU's compiler refuses: it computes with i1, i32 and f32 alone. Scalars of
// narrower types are loaded, stored and converted. Each rule was tried with libtpu 0.0.52.
#include "sim/mosaic/kernel/mosaic_maker.h"

enum { WORD_BITS = 32 };

static bool mosaic_make_scalars_is_narrow(const mp_mosaic_type_t *type) {
  if (type->kind != MP_MOSAIC_SCALAR || type->dtype == MP_DTYPE_INDEX) return false;
  const int bits = mp_dtype_bits(type->dtype);
  return bits > 1 && bits < WORD_BITS;
}

// Appends what the compiler says of the op, one of whose scalars is narrow.
static void mosaic_make_scalars_put(const mp_mosaic_op_t *op, bool is_float, mp_strbuf_t *out) {
  const char *name = mp_mosaic_op_info(op->code)->name;
  switch (op->code) {
    case MP_MOSAIC_EXTRACT:
      mp_strbuf_puts(out, "Only 32-bit scalar vector.extracts supported");
      return;
    case MP_MOSAIC_ADDI:
    case MP_MOSAIC_SUBI:
    case MP_MOSAIC_MULI:
      mp_strbuf_printf(out, "Not implemented: Only i32 %s is supported", name);
      return;
    default:
      break;
  }
  if (is_float || op->code == MP_MOSAIC_CMPI || op->code == MP_MOSAIC_SELECT)
    mp_strbuf_printf(out, "failed to legalize operation '%s'", name);
  else
    mp_strbuf_puts(out, "Not implemented: Only i1 and i32 scalars are supported");
}

// Conversions between narrow types and 32-bit ones, which are accepted, or of narrow floats to
// narrow floats, which are not.
static bool mosaic_make_scalars_converts(const mp_mosaic_op_t *op) {
  const mp_mosaic_type_t *from = op->operands[0]->type, *to = op->results[0].type;
  switch (op->code) {
    case MP_MOSAIC_EXTF:
    case MP_MOSAIC_TPU_EXTF:
      return to->dtype == MP_DTYPE_F32 && from->dtype != MP_DTYPE_F16;
    case MP_MOSAIC_TRUNCF:
    case MP_MOSAIC_TPU_TRUNCF:
      return from->dtype == MP_DTYPE_F32;
    default:
      return op->code >= MP_MOSAIC_EXTSI && op->code <= MP_MOSAIC_TPU_UITOFP;
  }
}

static bool mosaic_make_scalars_is_constant(const mp_mosaic_value_t *value) {
  return value->op != NULL && value->op->code == MP_MOSAIC_CONSTANT;
}

// Whether the op may have scalars of this narrow type.
static bool mosaic_make_scalars_accepts(const mp_mosaic_op_t *op, mp_dtype_t dtype) {
  switch (mp_mosaic_op_info(op->code)->op_class) {
    case MP_MOSAIC_CLASS_SCALAR_OR_VECTOR:
      if (op->code == MP_MOSAIC_CONSTANT) return true;
      return op->num_operands == 1 && mosaic_make_scalars_converts(op);
    case MP_MOSAIC_CLASS_FLOW:  // narrow floats are no results of loops and conditions
      return !mp_dtype_is_float(dtype) || op->num_regions == 0 || op->num_results == 0;
    case MP_MOSAIC_CLASS_WRITE:  // nor are they constants, but in vectors
      return !mp_dtype_is_float(dtype) || !mosaic_make_scalars_is_constant(op->operands[0]);
    default:
      return op->code != MP_MOSAIC_EXTRACT;
  }
}

// Vectors of f32 have powers, scalars have not.
static mp_status_t mosaic_make_scalars_power(const mp_mosaic_maker_t *maker,
                                             const mp_mosaic_op_t *op) {
  if (op->code != MP_MOSAIC_POWF || op->results[0].type->kind != MP_MOSAIC_SCALAR) return NULL;
  return mp_mosaic_op_refused(
      op,
      "Mosaic function '%s': a TPU's compiler refuses powers of scalars; compute them with vectors "
      "(failed to legalize operation 'math.powf')",
      maker->kernel->name);
}

static mp_status_t mosaic_make_scalars_value(const mp_mosaic_maker_t *maker,
                                             const mp_mosaic_op_t *op,
                                             const mp_mosaic_type_t *type) {
  if (!mosaic_make_scalars_is_narrow(type)) return NULL;
  if (mosaic_make_scalars_accepts(op, type->dtype)) return NULL;
  const bool is_float = mp_dtype_is_float(type->dtype);
  mp_strbuf_t reason;
  mp_strbuf_init(&reason);
  mosaic_make_scalars_put(op, is_float, &reason);
  mp_status_t status = mp_mosaic_op_refused(
      op,
      "Mosaic function '%s': a TPU's compiler refuses this op on scalars of %s; convert them to %s "
      "first (%s)",
      maker->kernel->name, mp_dtype_name(type->dtype), is_float ? "f32" : "i32",
      mp_strbuf_text(&reason));
  mp_strbuf_deinit(&reason);
  return status;
}

mp_status_t mp_mosaic_make_scalars(const mp_mosaic_maker_t *maker, const mp_mosaic_op_t *op) {
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    MP_RETURN_IF_ERROR(mosaic_make_scalars_value(maker, op, op->operands[i]->type));
  }
  for (uint32_t i = 0; i < op->num_results; ++i) {
    MP_RETURN_IF_ERROR(mosaic_make_scalars_value(maker, op, op->results[i].type));
  }
  return mosaic_make_scalars_power(maker, op);
}
