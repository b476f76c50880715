// Ops that read the bits of elements in another way.
//
// A TPU packs narrow elements along the second-minor dimension: rows 2i and 2i + 1 of bf16 are the
// low and the high halves of row i of 32-bit words.
#include <string.h>

#include "sim/mosaic/vectors/translate.h"

// ---- elements of other sizes ----

// Words [..., m, n] become elements [..., m * ratio, n]; `down` is the element type.
static mp_value_t *translate_bits_split(const mp_translate_t *t, int64_t ratio, mp_dtype_t dtype) {
  mp_shlo_t *hlo = t->hlo;
  mp_value_t *x = t->in[0];
  const uint32_t rank = x->type->rank;
  int64_t dims[MP_MAX_RANK], permutation[MP_MAX_RANK];
  memcpy(dims, x->type->dims, rank * sizeof(*dims));
  dims[rank] = ratio;
  for (uint32_t d = 0; d + 2 < rank; ++d) permutation[d] = d;
  permutation[rank - 2] = rank - 2;
  permutation[rank - 1] = rank;
  permutation[rank] = rank - 1;
  const mp_type_t *type = mp_shlo_type(hlo, dtype, dims, rank + 1);
  mp_value_t *parts = mp_shlo_op(hlo, MP_OP_BITCAST_CONVERT, &x, 1, type, NULL, 0);
  parts = mp_shlo_transpose(hlo, parts, permutation);
  return mp_shlo_reshape(hlo, parts, t->type->dims, t->type->rank);
}

// Elements [..., m * ratio, n] become words [..., m, n].
static mp_value_t *translate_bits_join(const mp_translate_t *t, int64_t ratio) {
  mp_shlo_t *hlo = t->hlo;
  mp_value_t *x = t->in[0];
  const uint32_t rank = x->type->rank;
  int64_t dims[MP_MAX_RANK], permutation[MP_MAX_RANK];
  memcpy(dims, t->type->dims, rank * sizeof(*dims));
  dims[rank] = dims[rank - 1];
  dims[rank - 1] = ratio;
  for (uint32_t d = 0; d + 1 < rank; ++d) permutation[d] = d;
  permutation[rank - 1] = rank;
  permutation[rank] = rank - 1;
  mp_value_t *rows = mp_shlo_reshape(hlo, x, dims, rank + 1);
  rows = mp_shlo_transpose(hlo, rows, permutation);
  return mp_shlo_op(hlo, MP_OP_BITCAST_CONVERT, &rows, 1, t->type, NULL, 0);
}

static mp_value_t *translate_bits_cast(const mp_translate_t *t) {
  mp_value_t *x = t->in[0];
  const uint32_t rank = x->type->rank;
  const int from = mp_dtype_bits(x->type->dtype), to = mp_dtype_bits(t->type->dtype);
  if (from == to) return mp_shlo_bits_as(t->hlo, x, t->type->dtype);
  if (from < 2 || to < 2 || rank < 2 || t->type->rank != rank) return NULL;
  for (uint32_t d = 0; d < rank; ++d) {
    const int64_t ratio = d == rank - 2 ? from : 1, back = d == rank - 2 ? to : 1;
    if (x->type->dims[d] * ratio != t->type->dims[d] * back) return NULL;
  }
  return from > to ? translate_bits_split(t, from / to, t->type->dtype)
                   : translate_bits_join(t, to / from);
}

// ---- elements in words ----

static mp_dtype_t translate_bits_type_of(const mp_mosaic_op_t *op, const char *name) {
  const mp_mosaic_attr_t *attr = mp_mosaic_op_attr(op, name);
  return attr != NULL && attr->kind == MP_MOSAIC_TYPE ? attr->type->dtype : MP_DTYPE_INVALID;
}

// The bits of each element of a source, narrowed to `dtype`, in the lowest bits of a word.
static mp_value_t *translate_bits_lowest(mp_shlo_t *hlo, mp_value_t *x, mp_dtype_t dtype) {
  x = mp_shlo_convert(hlo, x, dtype);
  const mp_dtype_t bits = mp_translate_unsigned(dtype);
  if (mp_dtype_is_float(dtype) || mp_dtype_class(dtype) == MP_CLASS_SIGNED) {
    x = mp_shlo_bits_as(hlo, x, bits);
  }
  return mp_shlo_convert(hlo, x, MP_DTYPE_U32);
}

// A word, of 32 bits or narrower, in 32 bits; and the other way round.
static mp_value_t *translate_bits_widen(mp_shlo_t *hlo, mp_value_t *word) {
  word = mp_shlo_bits_as(hlo, word, mp_translate_unsigned(word->type->dtype));
  return mp_shlo_convert(hlo, word, MP_DTYPE_U32);
}

static mp_value_t *translate_bits_narrow(mp_shlo_t *hlo, mp_value_t *word, mp_dtype_t dtype) {
  word = mp_shlo_convert(hlo, word, mp_translate_unsigned(dtype));
  return mp_shlo_bits_as(hlo, word, dtype);
}

static mp_value_t *translate_bits_pack(const mp_translate_t *t) {
  mp_shlo_t *hlo = t->hlo;
  const mp_dtype_t dtype = translate_bits_type_of(t->op, "target_type");
  const int width = mp_dtype_bits(dtype);
  mp_value_t *word = NULL;
  const int word_bits = mp_dtype_bits(t->type->dtype);
  if (dtype == MP_DTYPE_INVALID || width < 2 || word_bits > 32 ||
      width * (int)t->op->num_operands > word_bits) {
    return NULL;
  }
  for (uint32_t i = 0; i < t->op->num_operands; ++i) {
    mp_value_t *part = translate_bits_lowest(hlo, t->in[i], dtype);
    if (part == NULL) return NULL;
    if (i != 0) {
      mp_value_t *by = mp_shlo_integer(hlo, part->type, (int64_t)i * width);
      part = mp_shlo_binary(hlo, MP_OP_SHIFT_LEFT, part, by);
    }
    word = word == NULL ? part : mp_shlo_binary(hlo, MP_OP_OR, word, part);
  }
  return translate_bits_narrow(hlo, word, t->type->dtype);
}

static mp_value_t *translate_bits_unpack(const mp_translate_t *t) {
  mp_shlo_t *hlo = t->hlo;
  const mp_dtype_t dtype = translate_bits_type_of(t->op, "source_type");
  const int64_t index = mp_mosaic_op_int(t->op, "index", 0);
  const int width = mp_dtype_bits(dtype);
  const int word_bits = mp_dtype_bits(t->in[0]->type->dtype);
  if (dtype == MP_DTYPE_INVALID || width < 2 || word_bits > 32 || index < 0 ||
      (index + 1) * width > word_bits) {
    return NULL;
  }
  mp_value_t *word = translate_bits_widen(hlo, t->in[0]);
  if (word == NULL) return NULL;
  mp_value_t *by = mp_shlo_integer(hlo, word->type, index * width);
  mp_value_t *part = mp_shlo_binary(hlo, MP_OP_SHIFT_RIGHT_LOGICAL, word, by);
  part = translate_bits_narrow(hlo, part, dtype);
  return mp_shlo_convert(hlo, part, t->type->dtype);
}

mp_status_t mp_translate_bits(const mp_translate_t *t) {
  switch (t->op->code) {
    case MP_MOSAIC_PACK_ELEMENTWISE:
      t->out[0] = translate_bits_pack(t);
      break;
    case MP_MOSAIC_UNPACK_ELEMENTWISE:
      t->out[0] = translate_bits_unpack(t);
      break;
    default:
      t->out[0] = translate_bits_cast(t);
  }
  if (t->out[0] == NULL && t->hlo->status == NULL) {
    return mp_mosaic_op_error(t->op, MP_UNIMPLEMENTED, "this form of the op is not supported");
  }
  return NULL;
}
