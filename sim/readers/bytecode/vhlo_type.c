// The VHLO dialect's types (StableHLO VhloBytecode.cpp).
#include "sim/readers/bytecode/bytecode_reader.h"

// The codes of all types but those of elements, which are in MP_DTYPES.
enum {
  CODE_COMPLEX = 1,
  CODE_FUNC = 8,
  CODE_TENSOR = 20,
  CODE_ENCODED_TENSOR = 21,
  CODE_TOKEN = 22,
  CODE_TUPLE = 23,
  CODE_QUANT = 24,
  CODE_UNRANKED = 25,
  CODE_QUANT_AXIS = 30,
  CODE_NONE = 33,
  CODE_BUFFER = 41,
  CODE_FUTURE = 42,
};

static mp_status_t vhlo_type_read_f64(mp_bc_cursor_t *c, double *out_value) {
  uint64_t bits = 0;
  MP_RETURN_IF_ERROR(mp_bc_bits(c, 64, &bits));
  memcpy(out_value, &bits, sizeof(bits));
  return NULL;
}

// Reads the scales and zero points of per-axis quantisation, one of each for every index of the
// axis.
static mp_status_t vhlo_type_read_scales(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_quant_t *quant) {
  mp_bc_cursor_t before = *c;
  size_t count = 0;
  MP_RETURN_IF_ERROR(mp_bc_count(c, "scales", &count));
  double *scales = MP_ARENA_ARRAY(r->arena, double, count);
  MP_RETURN_IF_NULL(scales);
  for (size_t i = 0; i < count; ++i) MP_RETURN_IF_ERROR(vhlo_type_read_f64(c, &scales[i]));
  mp_index_list_t zero_points;
  MP_RETURN_IF_ERROR(mp_bc_index_list(r, c, &zero_points));
  if (zero_points.count != count) {
    return mp_bc_fail(&before, "a quantised type has %zu scales and %u zero points", count,
                      zero_points.count);
  }
  quant->num_scales = (uint32_t)count;
  quant->scales = scales;
  quant->zero_points = zero_points.values;
  return NULL;
}

static mp_status_t vhlo_type_read_scale(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_quant_t *quant) {
  double *scale = MP_ARENA_NEW(r->arena, double);
  MP_RETURN_IF_NULL(scale);
  int64_t *zero_point = MP_ARENA_NEW(r->arena, int64_t);
  MP_RETURN_IF_NULL(zero_point);
  MP_RETURN_IF_ERROR(vhlo_type_read_f64(c, scale));
  MP_RETURN_IF_ERROR(mp_bc_svarint(c, zero_point));
  quant->num_scales = 1;
  quant->scales = scale;
  quant->zero_points = zero_point;
  return NULL;
}

// Nothing computes with quantised types yet; they are read so that the verifier can name them when
// it refuses them.
static mp_status_t vhlo_type_read_quant(mp_bc_reader_t *r, mp_bc_cursor_t *c, bool per_axis,
                                        mp_bc_type_t *out_type) {
  const mp_bc_type_t *storage, *expressed;
  uint64_t flags, axis;
  mp_quant_t *quant = MP_ARENA_NEW(r->arena, mp_quant_t);
  MP_RETURN_IF_NULL(quant);
  MP_RETURN_IF_ERROR(mp_bc_bounded(c, UINT32_MAX, "quantisation flags", &flags));
  MP_RETURN_IF_ERROR(mp_bc_scalar(r, c, &storage));
  MP_RETURN_IF_ERROR(mp_bc_scalar(r, c, &expressed));
  quant->axis = -1;
  if (per_axis) {
    MP_RETURN_IF_ERROR(mp_bc_bounded(c, INT32_MAX, "a quantisation axis", &axis));
    quant->axis = (int64_t)axis;
  } else {
    MP_RETURN_IF_ERROR(vhlo_type_read_scale(r, c, quant));
  }
  MP_RETURN_IF_ERROR(mp_bc_svarint(c, &quant->storage_min));
  MP_RETURN_IF_ERROR(mp_bc_svarint(c, &quant->storage_max));
  if (per_axis) MP_RETURN_IF_ERROR(vhlo_type_read_scales(r, c, quant));
  quant->flags = (uint32_t)flags;
  quant->storage = storage->dtype;
  quant->expressed = expressed->dtype;
  return mp_bc_scalar_type(r, storage->dtype, quant, out_type);
}

// Reads a tensor type with an encoding, which can only be the bounds of dynamic dimensions.
static mp_status_t vhlo_type_read_encoded_tensor(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                                 mp_bc_type_t *out_type) {
  const void *bounds = NULL;
  MP_RETURN_IF_ERROR(mp_bc_object(r, c, MP_BC_BOUNDS, &bounds));
  return mp_bc_tensor_type(r, c, MP_TYPE_TENSOR, bounds, out_type);
}

mp_status_t mp_bc_vhlo_type(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_bc_type_t *out_type) {
  static const mp_type_t none = {.kind = MP_TYPE_NONE};
  mp_bc_cursor_t before = *c;
  uint64_t code = 0;
  MP_RETURN_IF_ERROR(mp_bc_varint(c, &code));
  const mp_dtype_t scalar = mp_dtype_from_number(MP_NUMBERS_VHLO, code);
  if (scalar != MP_DTYPE_INVALID) return mp_bc_scalar_type(r, scalar, NULL, out_type);
  switch (code) {
    case CODE_COMPLEX:
      return mp_bc_complex_type(r, c, out_type);
    case CODE_FUNC:
      return mp_bc_compound_type(r, c, MP_TYPE_FUNCTION, out_type);
    case CODE_TENSOR:
      return mp_bc_tensor_type(r, c, MP_TYPE_TENSOR, NULL, out_type);
    case CODE_ENCODED_TENSOR:
      return vhlo_type_read_encoded_tensor(r, c, out_type);
    case CODE_TOKEN:
      *out_type = (mp_bc_type_t){.type = mp_type_token()};
      return NULL;
    case CODE_TUPLE:
      return mp_bc_compound_type(r, c, MP_TYPE_TUPLE, out_type);
    case CODE_QUANT:
      return vhlo_type_read_quant(r, c, false, out_type);
    case CODE_UNRANKED:
      return mp_bc_unranked_type(r, c, out_type);
    case CODE_QUANT_AXIS:
      return vhlo_type_read_quant(r, c, true, out_type);
    case CODE_NONE:
      *out_type = (mp_bc_type_t){.type = &none};
      return NULL;
    case CODE_BUFFER:
      return mp_bc_tensor_type(r, c, MP_TYPE_BUFFER, NULL, out_type);
    case CODE_FUTURE:
      return mp_bc_compound_type(r, c, MP_TYPE_FUTURE, out_type);
    default:
      return mp_bc_unknown(&before, "vhlo type %llu is not read", (unsigned long long)code);
  }
}
