// Constants, dense<elements> : type. The elements come before the type that says how to read them,
// so they are skipped first and read when the type is known.
#include "sim/readers/text/text_parser.h"

// The constant that is being filled in.
typedef struct {
  const mp_type_t *type;
  size_t element_size;
  unsigned char *data;
  size_t count;  // elements of the type
  size_t filled;
} dense_t;

// ---- elements ----

static uint64_t text_dense_mask_of(mp_dtype_t dtype) {
  int bits = mp_dtype_bits(dtype);
  return bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
}

static mp_status_t text_dense_read_integer(mp_text_t *t, mp_dtype_t dtype, void *element) {
  bool negative = mp_text_accept(t, '-');
  uint64_t value = 0, mask = text_dense_mask_of(dtype);
  if (t->tok.kind != MP_TOKEN_INTEGER && t->tok.kind != MP_TOKEN_HEX)
    return mp_text_expected(t, "an integer");
  bool fits = mp_text_scan_u64(&t->tok, &value);
  bool is_unsigned = mp_dtype_class(dtype) == MP_CLASS_UNSIGNED;
  if (!fits || value > (negative ? mask / 2 + 1 : mask) || (negative && is_unsigned && value != 0))
    return mp_text_error(t, &t->tok, MP_INVALID_ARGUMENT, "the integer does not fit into %s",
                         mp_dtype_name(dtype));
  if (negative) value = 0 - value;
  value &= mask;
  memcpy(element, &value, mp_dtype_size(dtype));
  mp_text_advance(t);
  return NULL;
}

static mp_status_t text_dense_read_float(mp_text_t *t, mp_dtype_t dtype, void *element) {
  bool negative = mp_text_accept(t, '-');
  if (t->tok.kind == MP_TOKEN_HEX) {
    uint64_t bits;
    if (!mp_text_scan_u64(&t->tok, &bits) || (bits & ~text_dense_mask_of(dtype)) != 0 || negative)
      return mp_text_error(t, &t->tok, MP_INVALID_ARGUMENT, "the bits do not fit into %s",
                           mp_dtype_name(dtype));
    memcpy(element, &bits, mp_dtype_size(dtype));
  } else {
    double value;
    if ((t->tok.kind != MP_TOKEN_FLOAT && t->tok.kind != MP_TOKEN_INTEGER) ||
        mp_str_scan_double(t->tok.text, &value) != t->tok.text.size)
      return mp_text_expected(t, "a floating-point number");
    mp_float_encode(dtype, negative ? -value : value, element);
  }
  mp_text_advance(t);
  return NULL;
}

static mp_status_t text_dense_read_element(mp_text_t *t, mp_dtype_t dtype, void *element) {
  switch (mp_dtype_class(dtype)) {
    case MP_CLASS_BOOL:
      if (t->tok.kind == MP_TOKEN_INTEGER) return text_dense_read_integer(t, dtype, element);
      {
        bool value;
        MP_RETURN_IF_ERROR(mp_text_bool(t, &value));
        *(unsigned char *)element = value;
        return NULL;
      }
    case MP_CLASS_SIGNED:
    case MP_CLASS_UNSIGNED:
      return text_dense_read_integer(t, dtype, element);
    case MP_CLASS_FLOAT:
      return text_dense_read_float(t, dtype, element);
    case MP_CLASS_COMPLEX: {
      mp_dtype_t part = mp_dtype_real_part(dtype);
      MP_RETURN_IF_ERROR(mp_text_expect(t, '('));
      MP_RETURN_IF_ERROR(text_dense_read_float(t, part, element));
      MP_RETURN_IF_ERROR(mp_text_expect(t, ','));
      MP_RETURN_IF_ERROR(text_dense_read_float(t, part, (char *)element + mp_dtype_size(part)));
      return mp_text_expect(t, ')');
    }
    case MP_CLASS_NONE:
      break;
  }
  return mp_text_expected(t, "an element");
}

// The nested lists of dimensions `level` and above.
static mp_status_t text_dense_read_nested(mp_text_t *t, dense_t *d, uint32_t level) {
  if (level == d->type->rank) {
    if (d->filled == d->count) return mp_text_expected(t, "fewer elements");
    MP_RETURN_IF_ERROR(
        text_dense_read_element(t, d->type->dtype, d->data + d->filled * d->element_size));
    ++d->filled;
    return NULL;
  }
  MP_RETURN_IF_ERROR(mp_text_enter(t));
  --t->weight;  // mp_text_enter counted a node, but lists of elements are none
  MP_RETURN_IF_ERROR(mp_text_expect(t, '['));
  for (int64_t i = 0; i < d->type->dims[level]; ++i) {
    if (i > 0) MP_RETURN_IF_ERROR(mp_text_expect(t, ','));
    MP_RETURN_IF_ERROR(text_dense_read_nested(t, d, level + 1));
  }
  MP_RETURN_IF_ERROR(mp_text_expect(t, ']'));
  mp_text_leave(t);
  return NULL;
}

// ---- hexadecimal bytes ----

static mp_status_t text_dense_decode_hex(mp_text_t *t, unsigned char *bytes, size_t size) {
  const char *digits = t->tok.text.data + 3;  // the first three characters are "0x
  for (size_t i = 0; i < size; ++i) {
    int high = mp_text_hex_digit(digits[2 * i]), low = mp_text_hex_digit(digits[2 * i + 1]);
    if (high < 0 || low < 0)
      return mp_text_error(t, &t->tok, MP_INVALID_ARGUMENT, "a digit that is not hexadecimal");
    bytes[i] = (unsigned char)(high * 16 + low);
  }
  return NULL;
}

// Clears the bits that an element type does not have.
static void text_dense_mask_elements(dense_t *d, size_t count) {
  mp_dtype_t dtype = d->type->dtype;
  if (dtype == MP_DTYPE_BOOL)
    for (size_t i = 0; i < count; ++i) d->data[i] = d->data[i] != 0;
  else if (mp_dtype_bits(dtype) < 8)
    for (size_t i = 0; i < count; ++i) d->data[i] &= (unsigned char)text_dense_mask_of(dtype);
}

// "0x...": the bytes of all elements, the bytes of one element that stands for all, or (from older
// writers) booleans, eight to a byte.
static mp_status_t text_dense_read_hex(mp_text_t *t, dense_t *d, bool *out_splat) {
  mp_str_t text = t->tok.text;
  if (text.size < 4 || text.data[1] != '0' || text.data[2] != 'x' || text.size % 2 != 0)
    return mp_text_expected(t, "\"0x...\"");
  size_t size = (text.size - 4) / 2;
  size_t whole = d->count * d->element_size;
  bool splat = size == d->element_size && d->count != 1;
  bool packed = d->type->dtype == MP_DTYPE_BOOL && size == (d->count + 7) / 8 && size != d->count;
  if (size != whole && !splat && !packed)
    return mp_text_error(t, &t->tok, MP_INVALID_ARGUMENT, "%zu bytes for %zu elements of %s", size,
                         d->count, mp_dtype_name(d->type->dtype));
  packed = packed && !splat;
  unsigned char *bytes = packed ? mp_arena_alloc(t->scratch, size) : d->data;
  MP_RETURN_IF_NULL(bytes);
  MP_RETURN_IF_ERROR(text_dense_decode_hex(t, bytes, size));
  for (size_t i = 0; packed && i < d->count; ++i) d->data[i] = bytes[i / 8] >> (i % 8) & 1;
  text_dense_mask_elements(d, splat ? 1 : d->count);
  *out_splat = splat;
  mp_text_advance(t);
  return NULL;
}

// ---- the whole constant ----

// Moves behind the '>' that ends the elements.
static mp_status_t text_dense_skip_elements(mp_text_t *t) {
  int depth = 0;
  while (!(mp_text_is(t, '>') && depth == 0)) {
    if (t->tok.kind == MP_TOKEN_END || t->tok.kind == MP_TOKEN_ERROR)
      return mp_text_expected(t, "'>'");
    if (mp_text_is(t, '[') || mp_text_is(t, '(')) ++depth;
    if (mp_text_is(t, ']') || mp_text_is(t, ')')) --depth;
    mp_text_advance(t);
  }
  mp_text_advance(t);
  return NULL;
}

static bool text_dense_all_equal(const dense_t *d) {
  for (size_t i = 1; i < d->count; ++i)
    if (memcmp(d->data, d->data + i * d->element_size, d->element_size) != 0) return false;
  return d->count > 1;
}

// Reads the elements, with `tok` at the first of them. They take `text_size` characters of the
// program, which bounds their number.
static mp_status_t text_dense_read_elements(mp_text_t *t, dense_t *d, size_t text_size,
                                            bool *out_splat) {
  *out_splat = false;
  if (mp_text_is(t, '>')) {
    if (d->count != 0) return mp_text_expected(t, "elements");
    return NULL;
  }
  // A single element stands for all.
  bool list = mp_text_is(t, '[');
  bool hex = t->tok.kind == MP_TOKEN_STRING;
  size_t room = list || hex ? d->count : 1;
  if (list && d->count > text_size) return mp_text_expected(t, "more elements");
  if (hex && d->count > 1 && d->count / 8 > text_size) room = 1;
  d->data = mp_arena_alloc_array(t->arena, room > 0 ? room : 1, d->element_size);
  MP_RETURN_IF_NULL(d->data);
  if (hex) {
    if (room < d->count && t->tok.text.size != 4 + 2 * d->element_size)
      return mp_text_error(t, &t->tok, MP_INVALID_ARGUMENT, "too few bytes for the type");
    return text_dense_read_hex(t, d, out_splat);
  }
  if (list) return text_dense_read_nested(t, d, 0);
  // A tensor without elements may be written with one element all the same; it is dropped.
  *out_splat = true;
  return text_dense_read_element(t, d->type->dtype, d->data);
}

static mp_status_t text_dense_read_type(mp_text_t *t, mp_text_type_reader_t read_type, dense_t *d) {
  mp_token_t token = t->tok;
  MP_RETURN_IF_ERROR(read_type(t, &d->type));
  int64_t count;
  bool is_static = d->type->kind == MP_TYPE_TENSOR && mp_type_num_elements(d->type, &count);
  if (!is_static)
    return mp_text_error(t, &token, MP_INVALID_ARGUMENT, "a constant of a type without fixed size");
  d->count = (size_t)count;
  d->element_size = mp_dtype_size(d->type->dtype);
  return NULL;
}

mp_status_t mp_text_dense_of(mp_text_t *t, mp_text_type_reader_t read_type,
                             const mp_attr_t **out_attr) {
  dense_t d = {0};
  bool splat;
  MP_RETURN_IF_ERROR(mp_text_expect(t, '<'));
  mp_lexer_t elements = t->lex;
  mp_token_t first = t->tok;
  MP_RETURN_IF_ERROR(text_dense_skip_elements(t));
  size_t text_size = (size_t)(t->last.start - first.start);
  MP_RETURN_IF_ERROR(mp_text_expect(t, ':'));
  MP_RETURN_IF_ERROR(text_dense_read_type(t, read_type, &d));
  mp_lexer_t behind = t->lex;
  mp_token_t next = t->tok;
  t->lex = elements;
  t->tok = first;
  MP_RETURN_IF_ERROR(text_dense_read_elements(t, &d, text_size, &splat));
  MP_RETURN_IF_ERROR(mp_text_expect(t, '>'));
  t->lex = behind;
  t->tok = next;

  mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_text_new_attr(t, MP_KIND_DENSE, &attr));
  splat = d.count > 1 && (splat || text_dense_all_equal(&d));
  attr->u.dense.type = d.type;
  attr->u.dense.data = d.data != NULL ? d.data : mp_arena_alloc(t->arena, 1);
  MP_RETURN_IF_NULL(attr->u.dense.data);
  attr->u.dense.size = (splat ? 1 : d.count) * d.element_size;
  attr->u.dense.splat = splat;
  *out_attr = attr;
  return NULL;
}

mp_status_t mp_text_dense(mp_text_t *t, const mp_attr_t **out_attr) {
  return mp_text_dense_of(t, mp_text_type, out_attr);
}
