// Stochastic rounding: a value between two numbers of the narrower type becomes the upper one as
// often as it is near to it. Which one hardware takes for given random bits is not published; the
// lowest bits are used here.
#include "sim/mosaic/vectors/translate_stochastic.h"

enum { F32_MANTISSA = 23, F32_BIAS = 127 };

typedef struct {
  mp_dtype_t dtype;
  int mantissa;  // bits
  int smallest;  // exponent of the smallest normal number
} narrow_t;

static const narrow_t kNarrow[] = {
    {MP_DTYPE_BF16, 7, -126},
    {MP_DTYPE_F8E5M2, 2, -14},
    {MP_DTYPE_F8E4M3FN, 3, -6},
    {MP_DTYPE_F8E4M3B11FNUZ, 3, -10},
};

static const narrow_t *translate_stochastic_find(mp_dtype_t dtype) {
  for (size_t i = 0; i < sizeof(kNarrow) / sizeof(*kNarrow); ++i) {
    if (kNarrow[i].dtype == dtype) return &kNarrow[i];
  }
  return NULL;
}

// Random bits are added below the bits that are kept, which carries into the exponent.
static mp_value_t *translate_stochastic_normal(mp_shlo_t *hlo, const narrow_t *to, mp_value_t *bits,
                                               mp_value_t *random) {
  const int64_t low = (INT64_C(1) << (F32_MANTISSA - to->mantissa)) - 1;
  mp_value_t *below = mp_shlo_binary(hlo, MP_OP_AND, random, mp_shlo_integer(hlo, bits->type, low));
  mp_value_t *sum = mp_shlo_binary(hlo, MP_OP_ADD, bits, below);
  mp_value_t *kept =
      mp_shlo_binary(hlo, MP_OP_AND, sum, mp_shlo_integer(hlo, bits->type, UINT32_MAX - low));
  return mp_shlo_bits_as(hlo, kept, MP_DTYPE_F32);
}

static mp_value_t *translate_stochastic_times(mp_shlo_t *hlo, mp_value_t *x, int exponent) {
  const double factor =
      exponent < 0 ? 1.0 / (double)(INT64_C(1) << -exponent) : (double)(INT64_C(1) << exponent);
  return mp_shlo_binary(hlo, MP_OP_MULTIPLY, x, mp_shlo_float(hlo, x->type, factor));
}

// Subnormal numbers have one distance: a fraction of 20 random bits is added to the multiple of it,
// which f32 still holds, since the multiple is below 8.
static mp_value_t *translate_stochastic_subnormal(mp_shlo_t *hlo, const narrow_t *to,
                                                  mp_value_t *magnitude, mp_value_t *random) {
  enum { FRACTION = 20 };
  const int distance = to->smallest - to->mantissa;
  mp_value_t *below = mp_shlo_binary(hlo, MP_OP_AND, random,
                                     mp_shlo_integer(hlo, random->type, (1 << FRACTION) - 1));
  mp_value_t *fraction =
      translate_stochastic_times(hlo, mp_shlo_convert(hlo, below, MP_DTYPE_F32), -FRACTION);
  mp_value_t *multiple = translate_stochastic_times(hlo, magnitude, -distance);
  mp_value_t *sum = mp_shlo_binary(hlo, MP_OP_ADD, multiple, fraction);
  return translate_stochastic_times(hlo, mp_shlo_unary(hlo, MP_OP_FLOOR, sum), distance);
}

// The magnitude of x, of these bits, rounded; x as f32.
static mp_value_t *translate_stochastic_round(mp_shlo_t *hlo, const narrow_t *to, mp_value_t *bits,
                                              mp_value_t *random) {
  mp_value_t *normal = translate_stochastic_normal(hlo, to, bits, random);
  if (to->smallest <= 1 - F32_BIAS) return normal;
  mp_value_t *magnitude = mp_shlo_bits_as(hlo, bits, MP_DTYPE_F32);
  mp_value_t *subnormal = translate_stochastic_subnormal(hlo, to, magnitude, random);
  mp_value_t *least =
      mp_shlo_integer(hlo, bits->type, (int64_t)(to->smallest + F32_BIAS) << F32_MANTISSA);
  return mp_shlo_select(hlo, mp_shlo_compare(hlo, MP_CMP_LT, bits, least), subnormal, normal);
}

mp_value_t *mp_translate_stochastic(const mp_translate_t *t) {
  mp_shlo_t *hlo = t->hlo;
  mp_value_t *x = t->in[0];
  const narrow_t *to = translate_stochastic_find(t->type->dtype);
  if (to == NULL || x->type->dtype != MP_DTYPE_F32) return NULL;
  mp_value_t *all = mp_shlo_bits_as(hlo, x, MP_DTYPE_U32);
  mp_value_t *random = mp_shlo_bits_as(hlo, t->in[1], MP_DTYPE_U32);
  if (all == NULL || random == NULL) return NULL;
  mp_value_t *bits =
      mp_shlo_binary(hlo, MP_OP_AND, all, mp_shlo_integer(hlo, all->type, INT32_MAX));
  mp_value_t *sign =
      mp_shlo_binary(hlo, MP_OP_AND, all, mp_shlo_integer(hlo, all->type, INT64_C(1) << 31));
  mp_value_t *rounded = translate_stochastic_round(hlo, to, bits, random);
  mp_value_t *is_finite =
      mp_shlo_op(hlo, MP_OP_IS_FINITE, &x, 1, mp_shlo_retype(hlo, x->type, MP_DTYPE_BOOL), NULL, 0);
  mp_value_t *with_sign = mp_shlo_bits_as(
      hlo, mp_shlo_binary(hlo, MP_OP_OR, mp_shlo_bits_as(hlo, rounded, MP_DTYPE_U32), sign),
      MP_DTYPE_F32);
  return mp_shlo_convert(hlo, mp_shlo_select(hlo, is_finite, with_sign, x), to->dtype);
}
