// Attributes: MLIR's own, and those of dialects, which are kept as lists of what they hold.
#include "sim/mosaic/read/mosaic_text.h"

static mp_status_t mosaic_text_attrs_finish_list(mp_text_t *t, mp_mosaic_attr_t attr,
                                                 const mp_mosaic_items_t *items,
                                                 const mp_mosaic_attr_t **out_attr) {
  attr.list.items = mp_arena_copy(t->arena, items->items, items->count * sizeof(items->items[0]));
  MP_RETURN_IF_NULL(attr.list.items);
  attr.list.count = items->count;
  return mp_mosaic_attr_copy(t->arena, &attr, out_attr);
}

static mp_status_t mosaic_text_attrs_make_text(mp_text_t *t, mp_str_t text,
                                               const mp_mosaic_attr_t **out_attr) {
  const mp_mosaic_attr_t attr = {.kind = MP_MOSAIC_STRING, .str = text};
  return mp_mosaic_attr_copy(t->arena, &attr, out_attr);
}

static mp_status_t mosaic_text_attrs_copy_name(mp_text_t *t, mp_str_t name, mp_str_t *out_name) {
  const char *copy = mp_arena_strndup(t->arena, name.data, name.size);
  MP_RETURN_IF_NULL(copy);
  *out_name = (mp_str_t){copy, name.size};
  return NULL;
}

// ---- lists and dictionaries ----

// [x, y], or (x, y) in attributes of dialects.
static mp_status_t mosaic_text_attrs_read_list(mp_text_t *t, char open, char close,
                                               mp_status_t (*read)(mp_text_t *t,
                                                                   mp_mosaic_named_t *out_item),
                                               mp_mosaic_attr_t attr,
                                               const mp_mosaic_attr_t **out_attr) {
  mp_mosaic_items_t items = {0};
  MP_RETURN_IF_ERROR(mp_text_expect(t, open));
  while (!mp_text_accept(t, close)) {
    mp_mosaic_named_t item = {.name = MP_STR("")};
    if (items.count > 0) MP_RETURN_IF_ERROR(mp_text_expect(t, ','));
    MP_RETURN_IF_ERROR(read(t, &item));
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, &items, item));
  }
  return mosaic_text_attrs_finish_list(t, attr, &items, out_attr);
}

static mp_status_t mosaic_text_attrs_read_item(mp_text_t *t, mp_mosaic_named_t *out_item) {
  return mp_mosaic_text_attr(t, &out_item->value);
}

mp_status_t mp_mosaic_text_sort(mp_text_t *t, const mp_token_t *token, mp_mosaic_items_t *items) {
  const mp_str_t twice = mp_mosaic_sort_attrs(items->items, items->count);
  if (twice.size == 0) return NULL;
  return mp_text_error(t, token, MP_INVALID_ARGUMENT, "'%.*s' is given twice",
                       MP_STR_SHOWN(twice, 100));
}

mp_status_t mp_mosaic_text_dict(mp_text_t *t, mp_mosaic_items_t *items) {
  static const mp_mosaic_attr_t unit = {.kind = MP_MOSAIC_UNIT};
  MP_RETURN_IF_ERROR(mp_text_expect(t, '{'));
  for (bool first = true; !mp_text_accept(t, '}'); first = false) {
    mp_mosaic_named_t item = {.value = &unit};
    if (!first) MP_RETURN_IF_ERROR(mp_text_expect(t, ','));
    MP_RETURN_IF_ERROR(mp_text_name(t, &item.name));
    if (mp_text_accept(t, '=')) MP_RETURN_IF_ERROR(mp_mosaic_text_attr(t, &item.value));
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, items, item));
  }
  return NULL;
}

static mp_status_t mosaic_text_attrs_read_dict(mp_text_t *t, const mp_mosaic_attr_t **out_attr) {
  const mp_token_t token = t->tok;
  mp_mosaic_items_t items = {0};
  MP_RETURN_IF_ERROR(mp_mosaic_text_dict(t, &items));
  MP_RETURN_IF_ERROR(mp_mosaic_text_sort(t, &token, &items));
  return mosaic_text_attrs_finish_list(t, (mp_mosaic_attr_t){.kind = MP_MOSAIC_DICT}, &items,
                                       out_attr);
}

// ---- attributes of dialects ----

static mp_status_t mosaic_text_attrs_read_field(mp_text_t *t, mp_mosaic_named_t *out_item);

// A word, a list, or any attribute.
static mp_status_t mosaic_text_attrs_read_part(mp_text_t *t, const mp_mosaic_attr_t **out_attr) {
  const mp_mosaic_attr_t list = {.kind = MP_MOSAIC_ARRAY};
  if (mp_text_is(t, '[') || mp_text_is(t, '(')) {
    const bool is_square = mp_text_is(t, '[');
    MP_RETURN_IF_ERROR(mp_text_enter(t));
    MP_RETURN_IF_ERROR(mosaic_text_attrs_read_list(t, is_square ? '[' : '(', is_square ? ']' : ')',
                                                   mosaic_text_attrs_read_field, list, out_attr));
    mp_text_leave(t);
    return NULL;
  }
  const bool is_word = t->tok.kind == MP_TOKEN_WORD && !mp_mosaic_text_is_type(t) &&
                       !mp_text_is_word(t, "true") && !mp_text_is_word(t, "false") &&
                       !mp_text_is_word(t, "array") && !mp_text_is_word(t, "dense");
  if (!is_word) return mp_mosaic_text_attr(t, out_attr);
  mp_str_t word = {0};
  MP_RETURN_IF_ERROR(mosaic_text_attrs_copy_name(t, t->tok.text, &word));
  mp_text_advance(t);
  return mosaic_text_attrs_make_text(t, word, out_attr);
}

// A part, or name = part.
static mp_status_t mosaic_text_attrs_read_field(mp_text_t *t, mp_mosaic_named_t *out_item) {
  const mp_token_t next = mp_text_peek(t);
  if (t->tok.kind == MP_TOKEN_WORD && next.kind == MP_TOKEN_PUNCT && next.text.data[0] == '=') {
    MP_RETURN_IF_ERROR(mosaic_text_attrs_copy_name(t, t->tok.text, &out_item->name));
    mp_text_advance(t);
    mp_text_advance(t);
  }
  return mosaic_text_attrs_read_part(t, &out_item->value);
}

static mp_status_t mosaic_text_attrs_alias_value(mp_text_t *t, mp_text_alias_t *alias) {
  const mp_mosaic_attr_t *attr = NULL;
  if (mp_text_is_word(t, "loc")) return mp_text_optional_loc(t, &alias->loc);
  MP_RETURN_IF_ERROR(mp_mosaic_text_attr(t, &attr));
  alias->other = attr;
  return NULL;
}

// #tpu.memory_space<vmem>; without a dialect it is an alias.
static mp_status_t mosaic_text_attrs_read_hash(mp_text_t *t, const mp_mosaic_attr_t **out_attr) {
  mp_text_alias_t *alias = mp_text_find_alias(t, t->tok.text, false);
  if (alias != NULL) {
    MP_RETURN_IF_ERROR(mp_text_read_alias(t, alias, mosaic_text_attrs_alias_value));
    if (alias->other == NULL) return mp_text_expected(t, "an attribute");
    mp_text_advance(t);
    *out_attr = alias->other;
    return NULL;
  }
  if (memchr(t->tok.text.data, '.', t->tok.text.size) == NULL)
    return mp_text_error(t, &t->tok, MP_UNIMPLEMENTED, "the attribute '#%.*s' is not known",
                         MP_STR_SHOWN(t->tok.text, 60));
  mp_mosaic_attr_t attr = {.kind = MP_MOSAIC_DIALECT};
  MP_RETURN_IF_ERROR(mosaic_text_attrs_copy_name(t, t->tok.text, &attr.str));
  mp_text_advance(t);
  if (!mp_text_is(t, '<')) return mp_mosaic_attr_copy(t->arena, &attr, out_attr);
  return mosaic_text_attrs_read_list(t, '<', '>', mosaic_text_attrs_read_field, attr, out_attr);
}

// ---- MLIR's own ----

// <[8, ?], offset: ?> from behind `strided`: INTS of the strides and the offset.
static mp_status_t mosaic_text_attrs_read_stride(mp_text_t *t, int64_t *out_value) {
  *out_value = MP_MOSAIC_DYNAMIC;
  return mp_text_accept(t, '?') ? NULL : mp_text_i64(t, out_value);
}

static mp_status_t mosaic_text_attrs_read_strided(mp_text_t *t, const mp_mosaic_attr_t **out_attr) {
  mp_text_ints_t ints = {0};
  int64_t offset = 0;
  MP_RETURN_IF_ERROR(mp_text_expect(t, '<'));
  MP_TEXT_LIST(t, '[', ']', int64_t, &ints, mosaic_text_attrs_read_stride);
  if (mp_text_accept(t, ',')) {
    MP_RETURN_IF_ERROR(mp_text_expect_word(t, "offset"));
    MP_RETURN_IF_ERROR(mp_text_expect(t, ':'));
    MP_RETURN_IF_ERROR(mosaic_text_attrs_read_stride(t, &offset));
  }
  MP_RETURN_IF_ERROR(mp_text_expect(t, '>'));
  MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, &ints, offset));
  mp_mosaic_attr_t attr = {.kind = MP_MOSAIC_DIALECT, .str = MP_STR("builtin.strided")};
  attr.ints.values = mp_arena_copy(t->arena, ints.items, ints.count * sizeof(int64_t));
  MP_RETURN_IF_NULL(attr.ints.values);
  attr.ints.count = ints.count;
  return mp_mosaic_attr_copy(t->arena, &attr, out_attr);
}

static mp_status_t mosaic_text_attrs_read_map(mp_text_t *t, const mp_mosaic_attr_t **out_attr) {
  mp_mosaic_attr_t attr = {.kind = MP_MOSAIC_MAP};
  MP_RETURN_IF_ERROR(mp_text_expect(t, '<'));
  MP_RETURN_IF_ERROR(mp_mosaic_text_map(t, &attr.map));
  return mp_mosaic_attr_copy(t->arena, &attr, out_attr);
}

static mp_status_t mosaic_text_attrs_read_type(mp_text_t *t, const mp_mosaic_attr_t **out_attr) {
  mp_mosaic_attr_t attr = {.kind = MP_MOSAIC_TYPE};
  MP_RETURN_IF_ERROR(mp_mosaic_text_type(t, &attr.type));
  return mp_mosaic_attr_copy(t->arena, &attr, out_attr);
}

// A number, or array<i64: ...>.
static mp_status_t mosaic_text_attrs_read_plain(mp_text_t *t,
                                                mp_status_t (*read)(mp_text_t *t,
                                                                    const mp_attr_t **out_attr),
                                                const mp_mosaic_attr_t **out_attr) {
  const mp_token_t token = t->tok;
  const mp_attr_t *plain = NULL;
  MP_RETURN_IF_ERROR(read(t, &plain));
  mp_status_t status = mp_mosaic_from_plain(t->arena, plain, NULL, out_attr);
  return status == NULL ? NULL : mp_status_annotate(status, "%u:%u", token.line, token.column);
}

static mp_status_t mosaic_text_attrs_read_word(mp_text_t *t, const mp_mosaic_attr_t **out_attr) {
  if (mp_text_is_word(t, "true") || mp_text_is_word(t, "false")) {
    bool value;
    MP_RETURN_IF_ERROR(mp_text_bool(t, &value));
    const mp_mosaic_attr_t attr = {.kind = MP_MOSAIC_BOOL, .dtype = MP_DTYPE_BOOL, .i64 = value};
    return mp_mosaic_attr_copy(t->arena, &attr, out_attr);
  }
  if (mp_text_accept_word(t, "unit"))
    return mp_mosaic_attr_copy(t->arena, &(mp_mosaic_attr_t){.kind = MP_MOSAIC_UNIT}, out_attr);
  if (mp_text_is_word(t, "array"))
    return mosaic_text_attrs_read_plain(t, mp_text_numbers, out_attr);
  if (mp_text_accept_word(t, "dense")) return mp_mosaic_text_dense(t, out_attr);
  if (mp_text_accept_word(t, "affine_map")) return mosaic_text_attrs_read_map(t, out_attr);
  if (mp_text_accept_word(t, "strided")) return mosaic_text_attrs_read_strided(t, out_attr);
  if (mp_mosaic_text_is_type(t)) return mosaic_text_attrs_read_type(t, out_attr);
  return mp_text_expected(t, "an attribute");
}

static mp_status_t mosaic_text_attrs_read_string(mp_text_t *t, bool is_symbol,
                                                 const mp_mosaic_attr_t **out_attr) {
  mp_str_t text;
  MP_RETURN_IF_ERROR(is_symbol ? mp_text_symbol(t, &text) : mp_text_string(t, &text));
  return mosaic_text_attrs_make_text(t, text, out_attr);
}

static mp_status_t mosaic_text_attrs_read_attr(mp_text_t *t, const mp_mosaic_attr_t **out_attr) {
  const mp_mosaic_attr_t list = {.kind = MP_MOSAIC_ARRAY};
  switch (t->tok.kind) {
    case MP_TOKEN_STRING:
    case MP_TOKEN_SYMBOL:
      return mosaic_text_attrs_read_string(t, t->tok.kind == MP_TOKEN_SYMBOL, out_attr);
    case MP_TOKEN_INTEGER:
    case MP_TOKEN_HEX:
    case MP_TOKEN_FLOAT:
      return mosaic_text_attrs_read_plain(t, mp_text_number, out_attr);
    case MP_TOKEN_HASH:
      return mosaic_text_attrs_read_hash(t, out_attr);
    case MP_TOKEN_BANG:
      return mosaic_text_attrs_read_type(t, out_attr);
    case MP_TOKEN_WORD:
      return mosaic_text_attrs_read_word(t, out_attr);
    default:
      break;
  }
  if (mp_text_is(t, '-')) return mosaic_text_attrs_read_plain(t, mp_text_number, out_attr);
  if (mp_text_is(t, '['))
    return mosaic_text_attrs_read_list(t, '[', ']', mosaic_text_attrs_read_item, list, out_attr);
  if (mp_text_is(t, '{')) return mosaic_text_attrs_read_dict(t, out_attr);
  if (mp_text_is(t, '(')) return mosaic_text_attrs_read_type(t, out_attr);
  return mp_text_expected(t, "an attribute");
}

mp_status_t mp_mosaic_text_attr(mp_text_t *t, const mp_mosaic_attr_t **out_attr) {
  MP_RETURN_IF_ERROR(mp_text_enter(t));
  MP_RETURN_IF_ERROR(mosaic_text_attrs_read_attr(t, out_attr));
  mp_text_leave(t);
  return NULL;
}
