// Converts attributes from the text's form to the IR's: splits structs, gives values the kinds that
// the schema names, fills in defaults, and sorts them into VHLO's order.
#include <stdlib.h>

#include "sim/readers/text/text_parser.h"

// ---- lists of integers ----

static int64_t text_normal_element_value(const mp_attr_t *dense, size_t i) {
  mp_dtype_t dtype = dense->u.dense.type->dtype;
  size_t size = mp_dtype_size(dtype);
  uint64_t bits = 0;
  memcpy(&bits, (const char *)dense->u.dense.data + (dense->u.dense.splat ? 0 : i * size), size);
  int unused = 64 - mp_dtype_bits(dtype);
  if (mp_dtype_class(dtype) == MP_CLASS_SIGNED) return (int64_t)(bits << unused) >> unused;
  return (int64_t)bits;
}

static mp_status_t text_normal_dense_to_ints(mp_text_t *t, const mp_token_t *token,
                                             const mp_attr_t *dense, const mp_attr_t **out_value) {
  const mp_type_t *type = dense->u.dense.type;
  bool is_bool = type->dtype == MP_DTYPE_BOOL;
  if ((!is_bool && !mp_dtype_is_integer(type->dtype)) || type->rank < 1 || type->rank > 2 ||
      type->quant != NULL) {
    *out_value = dense;
    return NULL;
  }
  int64_t count;
  // The count is checked, because a few bytes of text may describe a splat of any size.
  if (!mp_type_num_elements(type, &count) ||
      !mp_arena_has_room(t->arena, (size_t)count, sizeof(int64_t))) {
    return mp_text_error(t, token, MP_INVALID_ARGUMENT, "a list that is too large for the program");
  }
  mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_text_new_attr(t, is_bool ? MP_KIND_BOOLS : MP_KIND_INTS, &attr));
  int64_t *values = MP_ARENA_ARRAY(t->arena, int64_t, (size_t)count);
  MP_RETURN_IF_NULL(values);
  for (int64_t i = 0; i < count; ++i) values[i] = text_normal_element_value(dense, (size_t)i);
  attr->u.ints.values = values;
  attr->u.ints.count = (size_t)count;
  attr->u.ints.rank = type->rank;
  for (uint32_t i = 0; i < type->rank; ++i) attr->u.ints.dims[i] = type->dims[i];
  *out_value = attr;
  return NULL;
}

static mp_status_t text_normal_array_to_ints(mp_text_t *t, const mp_attr_t *array,
                                             const mp_attr_t **out_value) {
  size_t count = array->u.array.count;
  int64_t *values = MP_ARENA_ARRAY(t->scratch, int64_t, count);
  MP_RETURN_IF_NULL(values);
  *out_value = array;
  for (size_t i = 0; i < count; ++i) {
    const mp_attr_t *item = array->u.array.items[i];
    if (item->kind != MP_KIND_INT) return NULL;
    values[i] = item->u.i64;
  }
  return mp_attr_make_ints(t->arena, values, count, out_value);
}

mp_status_t mp_text_to_ints(mp_text_t *t, const mp_token_t *token, const mp_attr_t *value,
                            const mp_attr_t **out_value) {
  *out_value = value;
  if (value->kind == MP_KIND_DENSE) return text_normal_dense_to_ints(t, token, value, out_value);
  return value->kind == MP_KIND_ARRAY ? text_normal_array_to_ints(t, value, out_value) : NULL;
}

// Layouts are a list of dense constants of the type `index`.
static mp_status_t text_normal_layouts_to_ints(mp_text_t *t, const mp_token_t *token,
                                               const mp_attr_t *value,
                                               const mp_attr_t **out_value) {
  *out_value = value;
  if (value->kind != MP_KIND_ARRAY) return NULL;
  size_t count = value->u.array.count;
  const mp_attr_t **items = MP_ARENA_ARRAY(t->arena, const mp_attr_t *, count);
  MP_RETURN_IF_NULL(items);
  for (size_t i = 0; i < count; ++i)
    MP_RETURN_IF_ERROR(mp_text_to_ints(t, token, value->u.array.items[i], &items[i]));
  mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_text_new_attr(t, MP_KIND_ARRAY, &attr));
  attr->u.array.items = items;
  attr->u.array.count = count;
  *out_value = attr;
  return NULL;
}

// ---- kinds by schema ----

static bool text_normal_has_kind(const mp_schema_attr_t *row, mp_attr_kind_t kind) {
  return (row->kinds >> kind & 1) != 0;
}

static mp_status_t text_normal_convert_int(mp_text_t *t, const mp_token_t *token,
                                           const mp_schema_attr_t *row, const mp_attr_t *value,
                                           const mp_attr_t **out_value) {
  if (text_normal_has_kind(row, MP_KIND_ENUM)) {
    // Text may give the number of an enumeration's value, as in api_version = 4 : i32.
    if (value->u.i64 < 0 || value->u.i64 > UINT32_MAX ||
        mp_enum_value_name(row->enum_kind, (uint32_t)value->u.i64) == NULL)
      return mp_text_error(t, token, MP_INVALID_ARGUMENT, "%s has no value %lld",
                           mp_attr_name_text(row->name), (long long)value->u.i64);
    return mp_attr_make_enum(t->arena, row->enum_kind, (uint32_t)value->u.i64, out_value);
  }
  if (!text_normal_has_kind(row, MP_KIND_INT) || value->dtype == row->dtype) return NULL;
  const int spare = 64 - mp_dtype_bits(row->dtype);
  if ((int64_t)((uint64_t)value->u.i64 << spare) >> spare != value->u.i64)
    return mp_text_error(t, token, MP_INVALID_ARGUMENT, "%s is %lld, which does not fit into %s",
                         mp_attr_name_text(row->name), (long long)value->u.i64,
                         mp_dtype_name(row->dtype));
  return mp_attr_make_int(t->arena, row->dtype, value->u.i64, out_value);
}

// `*out_value` is `value` itself where there is nothing to convert, even if its kind is wrong: the
// verifier checks the kinds.
static mp_status_t text_normal_convert(mp_text_t *t, const mp_token_t *token,
                                       const mp_schema_attr_t *row, const mp_attr_t *value,
                                       const mp_attr_t **out_value) {
  *out_value = value;
  if (row->name == MP_ATTR_OPERAND_LAYOUTS || row->name == MP_ATTR_RESULT_LAYOUTS)
    return text_normal_layouts_to_ints(t, token, value, out_value);
  if (text_normal_has_kind(row, MP_KIND_INTS) || text_normal_has_kind(row, MP_KIND_BOOLS))
    return mp_text_to_ints(t, token, value, out_value);
  if (value->kind == MP_KIND_INT) return text_normal_convert_int(t, token, row, value, out_value);
  if (value->kind == MP_KIND_UNIT && text_normal_has_kind(row, MP_KIND_BOOL))
    return mp_attr_make_bool(t->arena, true, out_value);
  if (value->kind == MP_KIND_FLOAT && text_normal_has_kind(row, MP_KIND_FLOAT) &&
      value->dtype != row->dtype) {
    mp_attr_t *attr = NULL;
    MP_RETURN_IF_ERROR(mp_text_new_attr(t, MP_KIND_FLOAT, &attr));
    unsigned char element[8] = {0};
    mp_float_encode(row->dtype, value->u.f64, element);
    attr->dtype = row->dtype;
    attr->u.f64 = mp_float_decode(row->dtype, element);
    *out_value = attr;
  }
  return NULL;
}

// ---- the whole list ----

static bool text_normal_is_struct(mp_str_t name) {
  static const char *const names[] = {"channel_handle", "dot_dimension_numbers", "algorithm",
                                      "dimension_numbers", "scatter_dimension_numbers"};
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i)
    if (mp_str_is(name, names[i])) return true;
  return false;
}

// Gives attributes with other names in StableHLO's text their VHLO names.
static void text_normal_rename_attr(mp_opcode_t code, mp_named_attr_t *attr) {
  bool symbol = code == MP_OP_CUSTOM_CALL && mp_str_is(attr->text, "custom_call_api_version");
  if (!symbol) return;
  attr->name = MP_ATTR_API_VERSION;
  attr->text = mp_str(mp_attr_name_text(attr->name));
}

static int text_normal_compare_items(const void *a, const void *b) {
  return mp_str_compare(((const mp_named_attr_t *)a)->text, ((const mp_named_attr_t *)b)->text);
}

// Sorts by name. The generic form has two dictionaries; of a name in both, one item stays.
static uint32_t text_normal_sort_others(mp_named_attr_t *items, uint32_t count) {
  if (count > 1) qsort(items, count, sizeof(items[0]), text_normal_compare_items);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < count; ++i)
    if (kept == 0 || text_normal_compare_items(&items[kept - 1], &items[i]) != 0)
      items[kept++] = items[i];
  return kept;
}

static mp_status_t text_normal_add_fields(mp_text_t *t, const mp_text_op_t *op,
                                          const mp_attr_t *dict, mp_text_items_t *own) {
  for (size_t i = 0; i < dict->u.dict.count; ++i) {
    mp_named_attr_t field = dict->u.dict.items[i];
    const mp_schema_attr_t *row = mp_schema_find(op->code, field.name);
    // Fields for which the IR has no attribute are dropped, such as the type of a channel.
    if (row == NULL) continue;
    MP_RETURN_IF_ERROR(text_normal_convert(t, &op->token, row, field.value, &field.value));
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, own, field));
  }
  return NULL;
}

mp_status_t mp_text_normalize(mp_text_t *t, const mp_text_op_t *op, mp_named_attr_t **out_attrs,
                              uint32_t *out_count) {
  mp_text_items_t own = {0}, others = {0};
  const mp_named_attr_t *given = op->attrs.items;
  for (uint32_t i = 0; i < op->attrs.count; ++i) {
    mp_named_attr_t attr = given[i];
    text_normal_rename_attr(op->code, &attr);
    const mp_schema_attr_t *row = mp_schema_find(op->code, attr.name);
    if (row != NULL) {
      MP_RETURN_IF_ERROR(text_normal_convert(t, &op->token, row, attr.value, &attr.value));
      MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, &own, attr));
    } else if (attr.value->kind == MP_KIND_DICT && text_normal_is_struct(attr.text)) {
      MP_RETURN_IF_ERROR(text_normal_add_fields(t, op, attr.value, &own));
    } else {
      MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, &others, attr));
    }
  }
  uint32_t num_others = text_normal_sort_others(others.items, others.count);
  const mp_named_attr_t *other = others.items;
  for (uint32_t i = 0; i < num_others; ++i)
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, &own, other[i]));
  return mp_schema_complete(t->arena, op->code, own.items, own.count, out_attrs, out_count);
}
