#include "sim/ir/attr.h"

#include <stddef.h>

#include "sim/base/assert.h"

// ---- names ----

static const mp_str_t attr_names[MP_ATTR_NAME_COUNT] = {[MP_ATTR_OTHER] = {"", 0},
#define MP_ATTR_TEXT(name, text) [MP_ATTR_##name] = {text, sizeof(text) - 1},
                                                        MP_ATTR_NAMES(MP_ATTR_TEXT)
#undef MP_ATTR_TEXT
};

const char *mp_attr_name_text(mp_attr_name_t name) {
  MP_ASSERT((unsigned)name < MP_ATTR_NAME_COUNT);
  return attr_names[name].data;
}

mp_attr_name_t mp_attr_name_from_text(mp_str_t text) {
  for (int i = 1; i < MP_ATTR_NAME_COUNT; ++i)
    if (mp_str_equal(attr_names[i], text)) return (mp_attr_name_t)i;
  return MP_ATTR_OTHER;
}

// ---- enumerations ----

enum { MAX_ENUM_VALUES = 6 };

static const char *const enum_names[MP_ENUM_COUNT][MAX_ENUM_VALUES] = {
#define ENUM_ROW(name, text, code, ...) [MP_ENUM_##name] = {__VA_ARGS__},
    MP_ENUMS(ENUM_ROW)
#undef ENUM_ROW
};

const char *mp_enum_value_name(mp_enum_kind_t kind, uint32_t value) {
  if ((unsigned)kind >= MP_ENUM_COUNT) return NULL;
  return value < MAX_ENUM_VALUES ? enum_names[kind][value] : NULL;
}

int mp_enum_value_from_name(mp_enum_kind_t kind, mp_str_t name) {
  for (uint32_t value = 0; value < MAX_ENUM_VALUES; ++value) {
    const char *text = mp_enum_value_name(kind, value);
    if (text != NULL && mp_str_is(name, text)) return (int)value;
  }
  return -1;
}

// ---- makers ----

static mp_status_t attr_make(mp_arena_t *arena, mp_attr_t value, const mp_attr_t **out_attr) {
  mp_attr_t *attr = mp_arena_copy(arena, &value, sizeof(value));
  MP_RETURN_IF_NULL(attr);
  *out_attr = attr;
  return NULL;
}

mp_status_t mp_attr_make_bool(mp_arena_t *arena, bool value, const mp_attr_t **out_attr) {
  return attr_make(arena, (mp_attr_t){.kind = MP_KIND_BOOL, .u.boolean = value}, out_attr);
}

mp_status_t mp_attr_make_int(mp_arena_t *arena, mp_dtype_t dtype, int64_t value,
                             const mp_attr_t **out_attr) {
  return attr_make(arena, (mp_attr_t){.kind = MP_KIND_INT, .dtype = dtype, .u.i64 = value},
                   out_attr);
}

mp_status_t mp_attr_make_ints(mp_arena_t *arena, const int64_t *values, size_t count,
                              const mp_attr_t **out_attr) {
  int64_t *copy = mp_arena_copy(arena, values, count * sizeof(int64_t));
  MP_RETURN_IF_NULL(copy);
  mp_attr_t attr = {.kind = MP_KIND_INTS};
  attr.u.ints.values = copy;
  attr.u.ints.count = count;
  attr.u.ints.rank = 1;
  attr.u.ints.dims[0] = (int64_t)count;
  return attr_make(arena, attr, out_attr);
}

mp_status_t mp_attr_make_table(mp_arena_t *arena, const int64_t *values, int64_t rows,
                               int64_t columns, const mp_attr_t **out_attr) {
  MP_ASSERT(rows >= 0 && columns >= 0);
  size_t count = (size_t)rows * (size_t)columns;
  int64_t *copy = mp_arena_copy(arena, values, count * sizeof(int64_t));
  MP_RETURN_IF_NULL(copy);
  mp_attr_t attr = {.kind = MP_KIND_INTS};
  attr.u.ints.values = copy;
  attr.u.ints.count = count;
  attr.u.ints.rank = 2;
  attr.u.ints.dims[0] = rows;
  attr.u.ints.dims[1] = columns;
  return attr_make(arena, attr, out_attr);
}

mp_status_t mp_attr_make_string(mp_arena_t *arena, mp_str_t text, const mp_attr_t **out_attr) {
  char *copy = mp_arena_strndup(arena, text.data, text.size);
  MP_RETURN_IF_NULL(copy);
  return attr_make(arena, (mp_attr_t){.kind = MP_KIND_STRING, .u.str = {copy, text.size}},
                   out_attr);
}

mp_status_t mp_attr_make_enum(mp_arena_t *arena, mp_enum_kind_t kind, uint32_t value,
                              const mp_attr_t **out_attr) {
  MP_ASSERT(mp_enum_value_name(kind, value) != NULL);
  mp_attr_t attr = {.kind = MP_KIND_ENUM, .u.enumeration = {kind, value}};
  return attr_make(arena, attr, out_attr);
}

mp_status_t mp_attr_make_type(mp_arena_t *arena, const mp_type_t *type,
                              const mp_attr_t **out_attr) {
  MP_ASSERT(type != NULL);
  return attr_make(arena, (mp_attr_t){.kind = MP_KIND_TYPE, .u.type = type}, out_attr);
}

mp_status_t mp_attr_make_dense(mp_arena_t *arena, const mp_type_t *type, const void *data,
                               size_t size, bool splat, const mp_attr_t **out_attr) {
  void *copy = mp_arena_copy(arena, data, size);
  MP_RETURN_IF_NULL(copy);
  return attr_make(arena, (mp_attr_t){.kind = MP_KIND_DENSE, .u.dense = {type, copy, size, splat}},
                   out_attr);
}

// ---- dictionaries ----

const mp_attr_t *mp_attr_dict_get(const mp_attr_t *dict, mp_attr_name_t key) {
  if (dict == NULL || dict->kind != MP_KIND_DICT) return NULL;
  for (size_t i = 0; i < dict->u.dict.count; ++i)
    if (dict->u.dict.items[i].name == key) return dict->u.dict.items[i].value;
  return NULL;
}

const mp_attr_t *mp_attr_dict_get_text(const mp_attr_t *dict, const char *key) {
  if (dict == NULL || dict->kind != MP_KIND_DICT) return NULL;
  mp_str_t text = mp_str(key);
  for (size_t i = 0; i < dict->u.dict.count; ++i)
    if (mp_str_equal(dict->u.dict.items[i].text, text)) return dict->u.dict.items[i].value;
  return NULL;
}

mp_status_t mp_attr_dict_replace(mp_arena_t *arena, const mp_attr_t *dict, mp_attr_name_t key,
                                 const mp_attr_t *value, const mp_attr_t **out_dict) {
  const size_t bytes = dict->u.dict.count * sizeof(mp_named_attr_t);
  mp_named_attr_t *items = mp_arena_copy(arena, dict->u.dict.items, bytes);
  mp_attr_t *copy = mp_arena_copy(arena, dict, sizeof(*dict));
  if (items == NULL || copy == NULL) return mp_status_out_of_memory();
  for (size_t i = 0; i < dict->u.dict.count; ++i) {
    if (items[i].name == key) items[i].value = value;
  }
  copy->u.dict.items = items;
  *out_dict = copy;
  return NULL;
}
