// Comparisons and conversions.
#include "sim/mosaic/vectors/translate.h"
#include "sim/mosaic/vectors/translate_stochastic.h"

// ---- comparisons ----

// The predicates of arith.cmpi, in their order.
static const struct {
  uint32_t direction;
  bool is_unsigned;
} g_integer_predicates[] = {
    {MP_CMP_EQ, false}, {MP_CMP_NE, false}, {MP_CMP_LT, false}, {MP_CMP_LE, false},
    {MP_CMP_GT, false}, {MP_CMP_GE, false}, {MP_CMP_LT, true},  {MP_CMP_LE, true},
    {MP_CMP_GT, true},  {MP_CMP_GE, true},
};

static mp_status_t translate_convert_compare_integers(const mp_translate_t *t, int64_t predicate) {
  mp_value_t *x = t->in[0], *y = t->in[1];
  if (predicate < 0 || predicate >= 10) return mp_translate_refuse(t);
  if (g_integer_predicates[predicate].is_unsigned && x->type->dtype != MP_DTYPE_BOOL) {
    const mp_dtype_t dtype = mp_translate_unsigned(x->type->dtype);
    x = mp_shlo_bits_as(t->hlo, x, dtype);
    y = mp_shlo_bits_as(t->hlo, y, dtype);
  }
  t->out[0] = mp_shlo_compare(t->hlo, g_integer_predicates[predicate].direction, x, y);
  return NULL;
}

// The predicates of arith.cmpf: those that are true for no NaN, then those that are true for each.
enum { CMPF_FALSE, CMPF_ORDERED = 7, CMPF_UNORDERED = 14, CMPF_TRUE };

static mp_value_t *translate_convert_compare_is_unordered(mp_shlo_t *hlo, mp_value_t *x,
                                                          mp_value_t *y) {
  return mp_shlo_binary(hlo, MP_OP_OR, mp_translate_is_nan(hlo, x), mp_translate_is_nan(hlo, y));
}

static mp_value_t *translate_convert_compare_floats_by(mp_shlo_t *hlo, int64_t predicate,
                                                       mp_value_t *x, mp_value_t *y) {
  // StableHLO's comparisons are those without NaN, except for NE.
  static const int ordered[] = {0, MP_CMP_EQ, MP_CMP_GT, MP_CMP_GE, MP_CMP_LT, MP_CMP_LE};
  static const int inverse[] = {
      [9] = MP_CMP_LE, [10] = MP_CMP_LT, [11] = MP_CMP_GE, [12] = MP_CMP_GT};
  switch (predicate) {
    case 1:
    case 2:
    case 3:
    case 4:
    case 5:
      return mp_shlo_compare(hlo, (uint32_t)ordered[predicate], x, y);
    case CMPF_ORDERED:
      return mp_shlo_unary(hlo, MP_OP_NOT, translate_convert_compare_is_unordered(hlo, x, y));
    case 8:  // ueq
      return mp_shlo_binary(hlo, MP_OP_OR, translate_convert_compare_is_unordered(hlo, x, y),
                            mp_shlo_compare(hlo, MP_CMP_EQ, x, y));
    case 9:
    case 10:
    case 11:
    case 12:
      return mp_shlo_unary(hlo, MP_OP_NOT,
                           mp_shlo_compare(hlo, (uint32_t)inverse[predicate], x, y));
    // JAX writes `one` for x != y, and means that a NaN differs from all numbers.
    case 6:   // one
    case 13:  // une
      return mp_shlo_compare(hlo, MP_CMP_NE, x, y);
    case CMPF_UNORDERED:
      return translate_convert_compare_is_unordered(hlo, x, y);
    default:
      return NULL;
  }
}

mp_status_t mp_translate_compare(const mp_translate_t *t) {
  const int64_t predicate = mp_mosaic_op_int(t->op, "predicate", -1);
  if (t->op->code == MP_MOSAIC_CMPI) return translate_convert_compare_integers(t, predicate);
  if (predicate == CMPF_FALSE || predicate == CMPF_TRUE) {
    t->out[0] = mp_shlo_integer(t->hlo, t->type, predicate == CMPF_TRUE);
    return NULL;
  }
  t->out[0] = translate_convert_compare_floats_by(t->hlo, predicate, t->in[0], t->in[1]);
  if (t->out[0] == NULL && t->hlo->status == NULL) return mp_translate_refuse(t);
  return NULL;
}

// ---- conversions ----

static mp_value_t *translate_convert_from_unsigned(const mp_translate_t *t) {
  mp_value_t *x = t->in[0];
  if (x->type->dtype != MP_DTYPE_BOOL) {
    x = mp_shlo_bits_as(t->hlo, x, mp_translate_unsigned(x->type->dtype));
  }
  return mp_shlo_convert(t->hlo, x, t->type->dtype);
}

// i1 has the values 0 and -1.
static mp_value_t *translate_convert_from_signed(const mp_translate_t *t) {
  mp_value_t *x = mp_shlo_convert(t->hlo, t->in[0], t->type->dtype);
  const bool is_bool = t->in[0]->type->dtype == MP_DTYPE_BOOL;
  return is_bool ? mp_shlo_unary(t->hlo, MP_OP_NEGATE, x) : x;
}

static mp_value_t *translate_convert_truncated(const mp_translate_t *t) {
  mp_value_t *x = t->in[0];
  if (t->type->dtype == MP_DTYPE_BOOL) {
    x = mp_shlo_binary(t->hlo, MP_OP_AND, x, mp_shlo_integer(t->hlo, x->type, 1));
  }
  return mp_shlo_convert(t->hlo, x, t->type->dtype);
}

static mp_value_t *translate_convert_to_integer(const mp_translate_t *t, bool is_unsigned) {
  mp_value_t *x = t->in[0];
  const mp_str_t mode = mp_translate_word(t->op, "rounding_mode");
  if (mp_str_is(mode, "to_nearest_even")) x = mp_shlo_unary(t->hlo, MP_OP_ROUND_NEAREST_EVEN, x);
  if (!is_unsigned) return mp_shlo_convert(t->hlo, x, t->type->dtype);
  x = mp_shlo_convert(t->hlo, x, mp_translate_unsigned(t->type->dtype));
  return mp_shlo_bits_as(t->hlo, x, t->type->dtype);
}

static mp_value_t *translate_convert_any(const mp_translate_t *t) {
  switch (t->op->code) {
    case MP_MOSAIC_EXTF:
    case MP_MOSAIC_TRUNCF:
    case MP_MOSAIC_TPU_EXTF:
    case MP_MOSAIC_TPU_TRUNCF:
      return mp_shlo_convert(t->hlo, t->in[0], t->type->dtype);
    case MP_MOSAIC_EXTSI:
    case MP_MOSAIC_INDEX_CAST:
    case MP_MOSAIC_SITOFP:
    case MP_MOSAIC_TPU_SITOFP:
      return translate_convert_from_signed(t);
    case MP_MOSAIC_EXTUI:
    case MP_MOSAIC_INDEX_CASTUI:
    case MP_MOSAIC_UITOFP:
    case MP_MOSAIC_TPU_UITOFP:
      return translate_convert_from_unsigned(t);
    case MP_MOSAIC_TRUNCI:
      return translate_convert_truncated(t);
    case MP_MOSAIC_FPTOSI:
    case MP_MOSAIC_TPU_FPTOSI:
      return translate_convert_to_integer(t, false);
    case MP_MOSAIC_FPTOUI:
    case MP_MOSAIC_TPU_FPTOUI:
      return translate_convert_to_integer(t, true);
    case MP_MOSAIC_BITCAST:
      return mp_shlo_bits_as(t->hlo, t->in[0], t->type->dtype);
    case MP_MOSAIC_STOCHASTIC_CONVERT:
      return mp_translate_stochastic(t);
    default:
      return NULL;
  }
}

mp_status_t mp_translate_conversion(const mp_translate_t *t) {
  t->out[0] = translate_convert_any(t);
  if (t->out[0] == NULL && t->hlo->status == NULL) return mp_translate_refuse(t);
  return NULL;
}
