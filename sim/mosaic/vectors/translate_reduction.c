// Reductions.
#include <math.h>
#include <string.h>

#include "sim/mosaic/vectors/translate.h"

// A kind of reduction: the op that combines two elements, and what changes nothing: 0, 1, all bits
// set (-1), or the largest or smallest number of the type.
typedef enum { NEUTRAL_ZERO, NEUTRAL_ONE, NEUTRAL_ALL, NEUTRAL_LEAST, NEUTRAL_MOST } neutral_t;

typedef struct {
  const char *name;
  mp_opcode_t code;
  neutral_t neutral;
  bool is_unsigned;
} reduction_kind_t;

static const reduction_kind_t g_kinds[] = {
    {"add", MP_OP_ADD, NEUTRAL_ZERO, false},
    {"sum", MP_OP_ADD, NEUTRAL_ZERO, false},
    {"mul", MP_OP_MULTIPLY, NEUTRAL_ONE, false},
    {"and", MP_OP_AND, NEUTRAL_ALL, false},
    {"or", MP_OP_OR, NEUTRAL_ZERO, false},
    {"xor", MP_OP_XOR, NEUTRAL_ZERO, false},
    {"max", MP_OP_MAXIMUM, NEUTRAL_LEAST, false},
    {"min", MP_OP_MINIMUM, NEUTRAL_MOST, false},
    {"maxsi", MP_OP_MAXIMUM, NEUTRAL_LEAST, false},
    {"minsi", MP_OP_MINIMUM, NEUTRAL_MOST, false},
    {"maxui", MP_OP_MAXIMUM, NEUTRAL_ZERO, true},
    {"minui", MP_OP_MINIMUM, NEUTRAL_ALL, true},
    {"maximumf", MP_OP_MAXIMUM, NEUTRAL_LEAST, false},
    {"minimumf", MP_OP_MINIMUM, NEUTRAL_MOST, false},
    {"maxnumf", MP_OP_MAXIMUM, NEUTRAL_LEAST, false},
    {"minnumf", MP_OP_MINIMUM, NEUTRAL_MOST, false},
};

static const reduction_kind_t *translate_reduction_find(mp_str_t name) {
  for (size_t i = 0; i < sizeof(g_kinds) / sizeof(g_kinds[0]); ++i) {
    if (mp_str_is(name, g_kinds[i].name)) return &g_kinds[i];
  }
  return NULL;
}

static mp_value_t *translate_reduction_neutral(mp_shlo_t *hlo, const reduction_kind_t *kind,
                                               const mp_type_t *type) {
  if (type == NULL) return NULL;
  const bool is_float = mp_dtype_is_float(type->dtype);
  const int bits = mp_dtype_bits(type->dtype);
  const int64_t least = bits > 1 ? -(INT64_C(1) << (bits - 2)) * 2 : 0;
  switch (kind->neutral) {
    case NEUTRAL_ZERO:
    case NEUTRAL_ONE:
      return mp_shlo_number(hlo, type, kind->neutral == NEUTRAL_ONE);
    case NEUTRAL_ALL:
      return mp_shlo_integer(hlo, type, type->dtype == MP_DTYPE_BOOL ? 1 : -1);
    case NEUTRAL_LEAST:
      return is_float ? mp_shlo_float(hlo, type, -INFINITY) : mp_shlo_integer(hlo, type, least);
    default:
      return is_float ? mp_shlo_float(hlo, type, INFINITY) : mp_shlo_integer(hlo, type, ~least);
  }
}

// All elements along the dimensions; x is of the kind's own type.
static mp_value_t *translate_reduction_of(mp_shlo_t *hlo, const reduction_kind_t *kind,
                                          mp_value_t *x, mp_index_list_t dims) {
  if (x == NULL) return NULL;
  const mp_type_t *scalar = mp_shlo_type(hlo, x->type->dtype, NULL, 0);
  mp_value_t *neutral = translate_reduction_neutral(hlo, kind, scalar);
  return mp_shlo_reduce(hlo, kind->code, x, neutral, dims.values, dims.count);
}

static bool translate_reduction_dims_are_good(mp_index_list_t dims, const mp_type_t *type) {
  for (uint32_t i = 0; i < dims.count; ++i) {
    if (dims.values[i] < 0 || dims.values[i] >= (int64_t)type->rank) return false;
    if (i > 0 && dims.values[i] <= dims.values[i - 1]) return false;
  }
  return dims.count > 0;
}

// Whether a value is a constant whose elements all change nothing.
static bool translate_reduction_is_neutral(const reduction_kind_t *kind, mp_value_t *neutral,
                                           const mp_value_t *value) {
  (void)kind;
  const void *a = value->op == NULL ? NULL : mp_op_splat(value->op);
  const void *b = neutral == NULL ? NULL : mp_op_splat(neutral->op);
  return a != NULL && b != NULL && memcmp(a, b, mp_dtype_size(value->type->dtype)) == 0;
}

static mp_status_t translate_reduction_multi(const mp_translate_t *t,
                                             const reduction_kind_t *kind) {
  mp_shlo_t *hlo = t->hlo;
  int64_t buffer[MP_MAX_RANK];
  mp_value_t *x = t->in[0], *start = t->in[1];
  const mp_index_list_t dims = mp_translate_ints(t->op, "reduction_dims", buffer);
  if (!translate_reduction_dims_are_good(dims, x->type)) return mp_translate_refuse(t);
  if (kind->is_unsigned) {
    x = mp_shlo_bits_as(hlo, x, mp_translate_unsigned(x->type->dtype));
    start = mp_shlo_bits_as(hlo, start, mp_translate_unsigned(t->type->dtype));
  }
  mp_value_t *sum = translate_reduction_of(hlo, kind, x, dims);
  if (sum == NULL) return NULL;
  mp_value_t *neutral = sum->op->operands[1];
  if (!translate_reduction_is_neutral(kind, neutral, start)) {
    sum = mp_shlo_binary(hlo, kind->code, start, sum);
  }
  t->out[0] = mp_shlo_bits_as(hlo, sum, t->type->dtype);
  return NULL;
}

// A value without dimension `dim` once for each position along it.
static mp_value_t *translate_reduction_spread(mp_shlo_t *hlo, mp_value_t *x, const mp_type_t *type,
                                              int64_t dim) {
  int64_t where[MP_MAX_RANK];
  if (x == NULL || type == NULL) return NULL;
  for (uint32_t d = 0; d < x->type->rank; ++d) where[d] = (int64_t)d < dim ? d : d + 1;
  return mp_shlo_broadcast(hlo, x, type, where);
}

static mp_status_t translate_reduction_all(const mp_translate_t *t, const reduction_kind_t *kind) {
  const int64_t dim = mp_mosaic_op_int(t->op, "dim", -1);
  if (dim < 0 || dim >= (int64_t)t->type->rank || kind->is_unsigned) return mp_translate_refuse(t);
  mp_value_t *sum = translate_reduction_of(t->hlo, kind, t->in[0], (mp_index_list_t){1, &dim});
  t->out[0] = translate_reduction_spread(t->hlo, sum, t->type, dim);
  return NULL;
}

// The first position of the largest (or smallest) element, or of the first NaN.
static mp_status_t translate_reduction_index(const mp_translate_t *t, bool is_max) {
  mp_shlo_t *hlo = t->hlo;
  mp_value_t *x = t->in[0];
  const int64_t dim = mp_mosaic_op_int(t->op, "axis", -1);
  if (dim < 0 || dim >= (int64_t)x->type->rank) return mp_translate_refuse(t);
  const mp_index_list_t dims = {1, &dim};
  mp_value_t *best = translate_reduction_of(
      hlo, translate_reduction_find(mp_str(is_max ? "max" : "min")), x, dims);
  mp_value_t *is_best =
      mp_shlo_compare(hlo, MP_CMP_EQ, x, translate_reduction_spread(hlo, best, x->type, dim));
  if (mp_dtype_is_float(x->type->dtype)) {
    is_best = mp_shlo_binary(hlo, MP_OP_OR, is_best, mp_translate_is_nan(hlo, x));
  }
  const mp_type_t *type = mp_shlo_retype(hlo, x->type, t->type->dtype);
  if (type == NULL) return NULL;
  mp_value_t *here = mp_shlo_iota(hlo, type, dim);
  mp_value_t *behind = mp_shlo_integer(hlo, type, x->type->dims[dim]);
  mp_value_t *places = mp_shlo_select(hlo, is_best, here, behind);
  t->out[0] = translate_reduction_of(hlo, translate_reduction_find(MP_STR("min")), places, dims);
  return NULL;
}

mp_status_t mp_translate_reduction(const mp_translate_t *t) {
  const mp_str_t name = mp_translate_word(t->op, "kind");
  if (t->op->code == MP_MOSAIC_REDUCE_INDEX) {
    const bool is_max = mp_str_is(name, "arg_max");
    if (!is_max && !mp_str_is(name, "arg_min")) return mp_translate_refuse(t);
    return translate_reduction_index(t, is_max);
  }
  const reduction_kind_t *kind = translate_reduction_find(name);
  if (kind == NULL) {
    return mp_mosaic_op_error(t->op, MP_UNIMPLEMENTED, "reductions by '%.*s' are not supported",
                              MP_STR_ARG(name));
  }
  return t->op->code == MP_MOSAIC_ALL_REDUCE ? translate_reduction_all(t, kind)
                                             : translate_reduction_multi(t, kind);
}
