// Attributes: scalars, lists and dictionaries. Constants and the attributes of StableHLO and of
// Shardy have files of their own.
#include "sim/readers/text/text_parser.h"

// ---- numbers ----

static mp_status_t text_attrs_make_float(mp_text_t *t, mp_dtype_t dtype, const mp_token_t *token,
                                         bool negative, const mp_attr_t **out_attr) {
  mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_text_new_attr(t, MP_KIND_FLOAT, &attr));
  attr->dtype = dtype;
  unsigned char element[8] = {0};
  if (token->kind == MP_TOKEN_HEX) {
    uint64_t bits;
    if (!mp_text_scan_u64(token, &bits))
      return mp_text_error(t, token, MP_INVALID_ARGUMENT, "the number is too long");
    memcpy(element, &bits, sizeof(bits));
  } else {
    double value;
    if (mp_str_scan_double(token->text, &value) != token->text.size)
      return mp_text_error(t, token, MP_INVALID_ARGUMENT, "the number is malformed");
    mp_float_encode(dtype, negative ? -value : value, element);
  }
  attr->u.f64 = mp_float_decode(dtype, element);
  *out_attr = attr;
  return NULL;
}

static mp_status_t text_attrs_make_int(mp_text_t *t, mp_dtype_t dtype, const mp_token_t *token,
                                       bool negative, const mp_attr_t **out_attr) {
  uint64_t value;
  bool fits = mp_text_scan_u64(token, &value);
  int bits = mp_dtype_bits(dtype);
  bool is_unsigned = mp_dtype_class(dtype) == MP_CLASS_UNSIGNED;
  uint64_t max = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
  if (negative) max = max / 2 + 1;
  if (!fits || value > max || (negative && is_unsigned && value != 0))
    return mp_text_error(t, token, MP_INVALID_ARGUMENT, "the integer does not fit into %s",
                         mp_dtype_name(dtype));
  if (negative) value = 0 - value;
  // Integers of signless and signed types are held sign-extended.
  if (!is_unsigned) value = (uint64_t)((int64_t)(value << (64 - bits)) >> (64 - bits));
  return mp_attr_make_int(t->arena, dtype, (int64_t)value, out_attr);
}

// -1.5 : f32. Without a type it is i64 or f64.
mp_status_t mp_text_number(mp_text_t *t, const mp_attr_t **out_attr) {
  bool negative = mp_text_accept(t, '-');
  mp_token_t token = t->tok;
  if (token.kind != MP_TOKEN_INTEGER && token.kind != MP_TOKEN_HEX && token.kind != MP_TOKEN_FLOAT)
    return mp_text_expected(t, "a number");
  mp_text_advance(t);
  mp_dtype_t dtype = token.kind == MP_TOKEN_FLOAT ? MP_DTYPE_F64 : MP_DTYPE_S64;
  if (mp_text_accept(t, ':')) MP_RETURN_IF_ERROR(mp_text_dtype(t, &dtype));
  if (mp_dtype_is_float(dtype)) return text_attrs_make_float(t, dtype, &token, negative, out_attr);
  if (token.kind == MP_TOKEN_FLOAT || (!mp_dtype_is_integer(dtype) && dtype != MP_DTYPE_BOOL))
    return mp_text_error(t, &token, MP_INVALID_ARGUMENT, "a number that is not of type %s",
                         mp_dtype_name(dtype));
  if (dtype != MP_DTYPE_BOOL) return text_attrs_make_int(t, dtype, &token, negative, out_attr);
  bool is_zero = mp_str_is(token.text, "0");
  return mp_attr_make_bool(t->arena, !is_zero, out_attr);
}

// ---- lists ----

mp_status_t mp_text_array(mp_text_t *t,
                          mp_status_t (*read)(mp_text_t *t, const mp_attr_t **out_attr),
                          const mp_attr_t **out_attr) {
  mp_text_attrs_t items = {0};
  MP_TEXT_LIST(t, '[', ']', const mp_attr_t *, &items, read);
  mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_text_new_attr(t, MP_KIND_ARRAY, &attr));
  attr->u.array.items = mp_arena_copy(t->arena, items.items, items.count * sizeof(attr));
  MP_RETURN_IF_NULL(attr->u.array.items);
  attr->u.array.count = items.count;
  *out_attr = attr;
  return NULL;
}

// Reads one element of array<T: ...> into the bytes of its type.
static mp_status_t text_attrs_read_array_element(mp_text_t *t, mp_dtype_t dtype, void *element) {
  if (dtype == MP_DTYPE_BOOL && t->tok.kind == MP_TOKEN_WORD) {
    bool value;
    MP_RETURN_IF_ERROR(mp_text_bool(t, &value));
    *(unsigned char *)element = value;
    return NULL;
  }
  bool negative = mp_text_accept(t, '-');
  mp_token_t token = t->tok;
  if (token.kind != MP_TOKEN_INTEGER && token.kind != MP_TOKEN_HEX && token.kind != MP_TOKEN_FLOAT)
    return mp_text_expected(t, "a number");
  const mp_attr_t *value = NULL;
  if (mp_dtype_is_float(dtype)) {
    MP_RETURN_IF_ERROR(text_attrs_make_float(t, dtype, &token, negative, &value));
    mp_float_encode(dtype, value->u.f64, element);
  } else if (token.kind == MP_TOKEN_FLOAT) {
    return mp_text_expected(t, "an integer");
  } else {
    MP_RETURN_IF_ERROR(text_attrs_make_int(t, dtype, &token, negative, &value));
    uint64_t bits = (uint64_t)value->u.i64;
    int width = mp_dtype_bits(dtype);
    if (width < 64) bits &= ((uint64_t)1 << width) - 1;
    memcpy(element, &bits, mp_dtype_size(dtype));
  }
  mp_text_advance(t);
  return NULL;
}

static bool text_attrs_all_equal(const char *elements, size_t count, size_t size) {
  for (size_t i = 1; i < count; ++i) {
    if (memcmp(elements, elements + i * size, size) != 0) return false;
  }
  return count > 1;
}

// Arrays of i64 and of i1 become the IR's lists. No op has other arrays; those become constants of
// rank 1, equal to those that dense<...> makes.
static mp_status_t text_attrs_make_array(mp_text_t *t, mp_dtype_t dtype, const void *elements,
                                         size_t count, const mp_attr_t **out_attr) {
  mp_attr_t *attr = NULL;
  if (dtype == MP_DTYPE_S64) return mp_attr_make_ints(t->arena, elements, count, out_attr);
  if (dtype == MP_DTYPE_BOOL) {
    int64_t *values = MP_ARENA_ARRAY(t->scratch, int64_t, count);
    MP_RETURN_IF_NULL(values);
    for (size_t i = 0; i < count; ++i) values[i] = ((const unsigned char *)elements)[i];
    MP_RETURN_IF_ERROR(mp_text_new_attr(t, MP_KIND_BOOLS, &attr));
    attr->u.ints.values = mp_arena_copy(t->arena, values, count * sizeof(int64_t));
    MP_RETURN_IF_NULL(attr->u.ints.values);
    attr->u.ints.count = count;
    attr->u.ints.rank = 1;
    attr->u.ints.dims[0] = (int64_t)count;
    *out_attr = attr;
    return NULL;
  }
  const mp_type_t *type = NULL;
  MP_RETURN_IF_ERROR(mp_type_tensor(t->arena, dtype, (int64_t[]){(int64_t)count}, 1, &type));
  const size_t size = mp_dtype_size(dtype);
  const bool is_splat = text_attrs_all_equal(elements, count, size);
  return mp_attr_make_dense(t->arena, type, elements, is_splat ? size : count * size, is_splat,
                            out_attr);
}

// array<i64: 1, 2>
mp_status_t mp_text_numbers(mp_text_t *t, const mp_attr_t **out_attr) {
  mp_dtype_t dtype;
  MP_ARRAY(unsigned char) bytes = {0};
  mp_text_advance(t);
  MP_RETURN_IF_ERROR(mp_text_expect(t, '<'));
  MP_RETURN_IF_ERROR(mp_text_dtype(t, &dtype));
  if (mp_dtype_is_complex(dtype)) return mp_text_expected(t, "an array of numbers");
  const uint32_t size = (uint32_t)mp_dtype_size(dtype);
  if (mp_text_accept(t, ':')) {
    do {
      unsigned char element[8] = {0};
      MP_RETURN_IF_ERROR(text_attrs_read_array_element(t, dtype, element));
      MP_RETURN_IF_ERROR(MP_ARRAY_RESERVE(t->scratch, &bytes, size));
      memcpy(bytes.items + bytes.count, element, size);
      bytes.count += size;
    } while (mp_text_accept(t, ','));
  }
  MP_RETURN_IF_ERROR(mp_text_expect(t, '>'));
  return text_attrs_make_array(t, dtype, bytes.items, bytes.count / size, out_attr);
}

// ---- dictionaries ----

mp_status_t mp_text_dict_items(mp_text_t *t, mp_text_items_t *items) {
  MP_RETURN_IF_ERROR(mp_text_expect(t, '{'));
  for (uint32_t i = 0; !mp_text_is(t, '}'); ++i) {
    mp_str_t name;
    mp_attr_t *unit = NULL;
    const mp_attr_t *value = NULL;
    if (i > 0) MP_RETURN_IF_ERROR(mp_text_expect(t, ','));
    MP_RETURN_IF_ERROR(mp_text_name(t, &name));
    if (mp_text_accept(t, '=')) {
      MP_RETURN_IF_ERROR(mp_text_attr(t, &value));
    } else {
      MP_RETURN_IF_ERROR(mp_text_new_attr(t, MP_KIND_UNIT, &unit));
      value = unit;
    }
    mp_named_attr_t item;
    MP_RETURN_IF_ERROR(mp_text_named_attr(t, name, value, &item));
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, items, item));
  }
  mp_text_advance(t);
  return NULL;
}

mp_status_t mp_text_dict(mp_text_t *t, const mp_attr_t **out_dict) {
  mp_token_t token = t->tok;
  mp_text_items_t items = {0};
  MP_RETURN_IF_ERROR(mp_text_dict_items(t, &items));
  return mp_text_make_dict(t, &token, items.items, items.count, out_dict);
}

// ---- names: symbols, aliases, dialects ----

// @a or @a::@b; the latter is kept as one name.
static mp_status_t text_attrs_read_symbol_ref(mp_text_t *t, const mp_attr_t **out_attr) {
  mp_str_t name;
  MP_RETURN_IF_ERROR(mp_text_symbol(t, &name));
  if (mp_text_is(t, ':') && mp_text_peek(t).kind == MP_TOKEN_PUNCT &&
      mp_text_peek(t).text.data[0] == ':')
    return mp_text_error(t, &t->tok, MP_UNIMPLEMENTED, "nested symbols are not supported");
  return mp_attr_make_string(t->arena, name, out_attr);
}

static mp_status_t text_attrs_read_hash(mp_text_t *t, const mp_attr_t **out_attr) {
  static const struct {
    const char *dialect;
    mp_status_t (*read)(mp_text_t *t, mp_str_t name, const mp_attr_t **out_attr);
  } dialects[] = {{"stablehlo", mp_text_stablehlo_attr},
                  {"mhlo", mp_text_stablehlo_attr},
                  {"sdy", mp_text_sdy_attr}};
  mp_str_t text = t->tok.text;
  const char *dot = memchr(text.data, '.', text.size);
  size_t size = dot != NULL ? (size_t)(dot - text.data) : text.size;
  mp_str_t dialect = {text.data, size};
  mp_str_t name = dot != NULL ? (mp_str_t){dot + 1, text.size - size - 1} : MP_STR("");
  for (size_t i = 0; i < sizeof(dialects) / sizeof(dialects[0]); ++i) {
    if (!mp_str_is(dialect, dialects[i].dialect)) continue;
    mp_text_advance(t);
    return dialects[i].read(t, name, out_attr);
  }
  mp_text_alias_t *alias = mp_text_find_alias(t, text, false);
  if (alias == NULL)
    return mp_text_error(t, &t->tok, MP_UNIMPLEMENTED, "the attribute '#%.*s' is not known",
                         MP_STR_ARG(text));
  MP_RETURN_IF_ERROR(mp_text_read_alias(t, alias, mp_text_alias_value));
  if (alias->attr == NULL) return mp_text_expected(t, "an attribute");
  mp_text_advance(t);
  *out_attr = alias->attr;
  return NULL;
}

static mp_status_t text_attrs_read_type_attr(mp_text_t *t, const mp_attr_t **out_attr) {
  const mp_type_t *type = NULL;
  MP_RETURN_IF_ERROR(mp_text_type(t, &type));
  return mp_attr_make_type(t->arena, type, out_attr);
}

static mp_status_t text_attrs_read_string_attr(mp_text_t *t, const mp_attr_t **out_attr) {
  mp_str_t text;
  MP_RETURN_IF_ERROR(mp_text_string(t, &text));
  if (mp_text_accept(t, ':')) {
    const mp_type_t *ignored = NULL;
    MP_RETURN_IF_ERROR(mp_text_type(t, &ignored));
  }
  return mp_attr_make_string(t->arena, text, out_attr);
}

static mp_status_t text_attrs_read_word_attr(mp_text_t *t, const mp_attr_t **out_attr) {
  if (mp_text_is_word(t, "true") || mp_text_is_word(t, "false")) {
    bool value;
    MP_RETURN_IF_ERROR(mp_text_bool(t, &value));
    return mp_attr_make_bool(t->arena, value, out_attr);
  }
  if (mp_text_accept_word(t, "unit")) {
    mp_attr_t *unit = NULL;
    MP_RETURN_IF_ERROR(mp_text_new_attr(t, MP_KIND_UNIT, &unit));
    *out_attr = unit;
    return NULL;
  }
  if (mp_text_is_word(t, "array")) return mp_text_numbers(t, out_attr);
  if (mp_text_accept_word(t, "dense")) return mp_text_dense(t, out_attr);
  static const char *const unsupported[] = {"dense_resource", "sparse",  "opaque",  "affine_map",
                                            "affine_set",     "strided", "distinct"};
  for (size_t i = 0; i < sizeof(unsupported) / sizeof(unsupported[0]); ++i)
    if (mp_text_is_word(t, unsupported[i]))
      return mp_text_error(t, &t->tok, MP_UNIMPLEMENTED, "%s<...> is not supported",
                           unsupported[i]);
  if (mp_text_is_type(t)) return text_attrs_read_type_attr(t, out_attr);
  return mp_text_expected(t, "an attribute");
}

static mp_status_t text_attrs_read_attr(mp_text_t *t, const mp_attr_t **out_attr) {
  switch (t->tok.kind) {
    case MP_TOKEN_STRING:
      return text_attrs_read_string_attr(t, out_attr);
    case MP_TOKEN_INTEGER:
    case MP_TOKEN_HEX:
    case MP_TOKEN_FLOAT:
      return mp_text_number(t, out_attr);
    case MP_TOKEN_SYMBOL:
      return text_attrs_read_symbol_ref(t, out_attr);
    case MP_TOKEN_HASH:
      return text_attrs_read_hash(t, out_attr);
    case MP_TOKEN_BANG:
      return text_attrs_read_type_attr(t, out_attr);
    case MP_TOKEN_WORD:
      return text_attrs_read_word_attr(t, out_attr);
    default:
      break;
  }
  if (mp_text_is(t, '-')) return mp_text_number(t, out_attr);
  if (mp_text_is(t, '[')) return mp_text_array(t, mp_text_attr, out_attr);
  if (mp_text_is(t, '{')) return mp_text_dict(t, out_attr);
  if (mp_text_is(t, '(')) return text_attrs_read_type_attr(t, out_attr);
  return mp_text_expected(t, "an attribute");
}

mp_status_t mp_text_attr(mp_text_t *t, const mp_attr_t **out_attr) {
  MP_RETURN_IF_ERROR(mp_text_enter(t));
  MP_RETURN_IF_ERROR(text_attrs_read_attr(t, out_attr));
  mp_text_leave(t);
  return NULL;
}

mp_status_t mp_text_alias_value(mp_text_t *t, mp_text_alias_t *alias) {
  if (mp_text_is_word(t, "loc")) return mp_text_optional_loc(t, &alias->loc);
  return mp_text_attr(t, &alias->attr);
}
