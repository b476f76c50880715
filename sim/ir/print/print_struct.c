// Prints the attributes that StableHLO's text writes as one struct, while the IR, like VHLO, holds
// them as single attributes.
#include <inttypes.h>
#include <string.h>

#include "sim/ir/print/print_parts.h"

// ---- the structs ----

static void print_struct_channel(const mp_op_t *op, mp_strbuf_t *out) {
  mp_strbuf_printf(out, "#stablehlo.channel_handle<handle = %" PRId64 ", type = %" PRId64 ">",
                   mp_op_int(op, MP_ATTR_CHANNEL_ID, 0), mp_op_int(op, MP_ATTR_CHANNEL_TYPE, 0));
}

// Prints `name = value, ...` for the fields that are not empty or zero.
static void print_struct_fields(const mp_op_t *op, const mp_attr_name_t *names, size_t count,
                                mp_strbuf_t *out) {
  bool first = true;
  for (size_t i = 0; i < count; ++i) {
    const mp_attr_t *value = mp_op_attr(op, names[i]);
    if (value == NULL) continue;
    bool number = value->kind == MP_KIND_INT;
    mp_index_list_t list = mp_print_ints_of(value);
    if (number ? value->u.i64 == 0 : list.count == 0) continue;
    mp_strbuf_printf(out, "%s%s = ", first ? "" : ", ", mp_attr_name_text(names[i]));
    first = false;
    if (number)
      mp_strbuf_printf(out, "%" PRId64, value->u.i64);
    else
      mp_print_index_list(list, out);
  }
}

static void print_struct_dot(const mp_op_t *op, mp_strbuf_t *out) {
  static const mp_attr_name_t names[] = {
      MP_ATTR_LHS_BATCHING_DIMENSIONS, MP_ATTR_RHS_BATCHING_DIMENSIONS,
      MP_ATTR_LHS_CONTRACTING_DIMENSIONS, MP_ATTR_RHS_CONTRACTING_DIMENSIONS};
  mp_strbuf_puts(out, "#stablehlo.dot<");
  print_struct_fields(op, names, 4, out);
  mp_strbuf_putc(out, '>');
}

static void print_struct_gather(const mp_op_t *op, mp_strbuf_t *out) {
  static const mp_attr_name_t names[] = {
      MP_ATTR_OFFSET_DIMS,           MP_ATTR_COLLAPSED_SLICE_DIMS,
      MP_ATTR_OPERAND_BATCHING_DIMS, MP_ATTR_START_INDICES_BATCHING_DIMS,
      MP_ATTR_START_INDEX_MAP,       MP_ATTR_INDEX_VECTOR_DIM};
  mp_strbuf_puts(out, "#stablehlo.gather<");
  print_struct_fields(op, names, 6, out);
  mp_strbuf_putc(out, '>');
}

static void print_struct_scatter(const mp_op_t *op, mp_strbuf_t *out) {
  static const mp_attr_name_t names[] = {
      MP_ATTR_UPDATE_WINDOW_DIMS,           MP_ATTR_INSERTED_WINDOW_DIMS,
      MP_ATTR_INPUT_BATCHING_DIMS,          MP_ATTR_SCATTER_INDICES_BATCHING_DIMS,
      MP_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS, MP_ATTR_INDEX_VECTOR_DIM};
  mp_strbuf_puts(out, "#stablehlo.scatter<");
  print_struct_fields(op, names, 6, out);
  mp_strbuf_putc(out, '>');
}

void mp_print_dot_algorithm(const mp_op_t *op, mp_strbuf_t *out) {
  static const mp_attr_name_t names[] = {
      MP_ATTR_LHS_PRECISION_TYPE,          MP_ATTR_RHS_PRECISION_TYPE,
      MP_ATTR_ACCUMULATION_TYPE,           MP_ATTR_LHS_COMPONENT_COUNT,
      MP_ATTR_RHS_COMPONENT_COUNT,         MP_ATTR_NUM_PRIMITIVE_OPERATIONS,
      MP_ATTR_ALLOW_IMPRECISE_ACCUMULATION};
  mp_strbuf_putc(out, '<');
  bool first = true;
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
    const mp_attr_t *value = mp_op_attr(op, names[i]);
    if (value == NULL) continue;
    mp_strbuf_printf(out, "%s%s = ", first ? "" : ", ", mp_attr_name_text(names[i]));
    first = false;
    if (value->kind == MP_KIND_TYPE)
      mp_strbuf_puts(out, mp_dtype_name(value->u.type->dtype));
    else if (value->kind == MP_KIND_BOOL)
      mp_strbuf_puts(out, value->u.boolean ? "true" : "false");
    else
      mp_strbuf_printf(out, "%" PRId64, value->kind == MP_KIND_INT ? value->u.i64 : 0);
  }
  mp_strbuf_putc(out, '>');
}

static void print_struct_algorithm(const mp_op_t *op, mp_strbuf_t *out) {
  mp_strbuf_puts(out, "#stablehlo.dot_algorithm");
  mp_print_dot_algorithm(op, out);
}

// ---- convolution: letters and spatial numbers by position ----

// Prints the letters and numbers of one of the three tensors: [b, 0, 1, f].
static void print_struct_conv_tensor(int64_t first, char first_letter, int64_t second,
                                     char second_letter, mp_index_list_t spatial,
                                     mp_strbuf_t *out) {
  mp_strbuf_putc(out, '[');
  for (int64_t at = 0; at < (int64_t)spatial.count + 2; ++at) {
    if (at > 0) mp_strbuf_puts(out, ", ");
    if (at == first) {
      mp_strbuf_putc(out, first_letter);
    } else if (at == second) {
      mp_strbuf_putc(out, second_letter);
    } else {
      uint32_t i = 0;
      while (i < spatial.count && spatial.values[i] != at) ++i;
      if (i < spatial.count)
        mp_strbuf_printf(out, "%u", i);
      else
        mp_strbuf_putc(out, '?');
    }
  }
  mp_strbuf_putc(out, ']');
}

void mp_print_conv_numbers(const mp_op_t *op, mp_strbuf_t *out) {
  print_struct_conv_tensor(mp_op_int(op, MP_ATTR_INPUT_BATCH_DIMENSION, -1), 'b',
                           mp_op_int(op, MP_ATTR_INPUT_FEATURE_DIMENSION, -1), 'f',
                           mp_op_ints(op, MP_ATTR_INPUT_SPATIAL_DIMENSIONS), out);
  mp_strbuf_putc(out, 'x');
  print_struct_conv_tensor(mp_op_int(op, MP_ATTR_KERNEL_INPUT_FEATURE_DIMENSION, -1), 'i',
                           mp_op_int(op, MP_ATTR_KERNEL_OUTPUT_FEATURE_DIMENSION, -1), 'o',
                           mp_op_ints(op, MP_ATTR_KERNEL_SPATIAL_DIMENSIONS), out);
  mp_strbuf_puts(out, "->");
  print_struct_conv_tensor(mp_op_int(op, MP_ATTR_OUTPUT_BATCH_DIMENSION, -1), 'b',
                           mp_op_int(op, MP_ATTR_OUTPUT_FEATURE_DIMENSION, -1), 'f',
                           mp_op_ints(op, MP_ATTR_OUTPUT_SPATIAL_DIMENSIONS), out);
}

static void print_struct_conv(const mp_op_t *op, mp_strbuf_t *out) {
  mp_strbuf_puts(out, "#stablehlo.conv<");
  mp_print_conv_numbers(op, out);
  mp_strbuf_putc(out, '>');
}

// ---- the struct of each op ----

enum { MAX_STRUCT_FIELDS = 10 };

// A struct. It is printed as `name` unless all of its fields are absent or have their default
// value.
typedef struct {
  const char *name;
  void (*print)(const mp_op_t *op, mp_strbuf_t *out);
  mp_attr_name_t fields[MAX_STRUCT_FIELDS];  // the first OTHER ends the list
} struct_attr_t;

static const struct_attr_t structs[] = {
    {"channel_handle", print_struct_channel, {MP_ATTR_CHANNEL_ID, MP_ATTR_CHANNEL_TYPE}},
    {"dot_dimension_numbers",
     print_struct_dot,
     {MP_ATTR_LHS_BATCHING_DIMENSIONS, MP_ATTR_RHS_BATCHING_DIMENSIONS,
      MP_ATTR_LHS_CONTRACTING_DIMENSIONS, MP_ATTR_RHS_CONTRACTING_DIMENSIONS}},
    {"algorithm",
     print_struct_algorithm,
     {MP_ATTR_LHS_PRECISION_TYPE, MP_ATTR_RHS_PRECISION_TYPE, MP_ATTR_ACCUMULATION_TYPE,
      MP_ATTR_LHS_COMPONENT_COUNT, MP_ATTR_RHS_COMPONENT_COUNT, MP_ATTR_NUM_PRIMITIVE_OPERATIONS,
      MP_ATTR_ALLOW_IMPRECISE_ACCUMULATION}},
    {"dimension_numbers",
     print_struct_gather,
     {MP_ATTR_OFFSET_DIMS, MP_ATTR_COLLAPSED_SLICE_DIMS, MP_ATTR_OPERAND_BATCHING_DIMS,
      MP_ATTR_START_INDICES_BATCHING_DIMS, MP_ATTR_START_INDEX_MAP, MP_ATTR_INDEX_VECTOR_DIM}},
    {"scatter_dimension_numbers",
     print_struct_scatter,
     {MP_ATTR_UPDATE_WINDOW_DIMS, MP_ATTR_INSERTED_WINDOW_DIMS, MP_ATTR_INPUT_BATCHING_DIMS,
      MP_ATTR_SCATTER_INDICES_BATCHING_DIMS, MP_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS,
      MP_ATTR_INDEX_VECTOR_DIM}},
    {"dimension_numbers",
     print_struct_conv,
     {MP_ATTR_INPUT_BATCH_DIMENSION, MP_ATTR_INPUT_FEATURE_DIMENSION,
      MP_ATTR_INPUT_SPATIAL_DIMENSIONS, MP_ATTR_KERNEL_INPUT_FEATURE_DIMENSION,
      MP_ATTR_KERNEL_OUTPUT_FEATURE_DIMENSION, MP_ATTR_KERNEL_SPATIAL_DIMENSIONS,
      MP_ATTR_OUTPUT_BATCH_DIMENSION, MP_ATTR_OUTPUT_FEATURE_DIMENSION,
      MP_ATTR_OUTPUT_SPATIAL_DIMENSIONS}},
};

// A struct belongs to an op if the op has its first field.
static const struct_attr_t *print_struct_find_struct(mp_opcode_t code, mp_attr_name_t field) {
  for (size_t i = 0; i < sizeof(structs) / sizeof(structs[0]); ++i) {
    if (mp_schema_find(code, structs[i].fields[0]) == NULL) continue;
    for (int j = 0; j < MAX_STRUCT_FIELDS && structs[i].fields[j] != MP_ATTR_OTHER; ++j)
      if (structs[i].fields[j] == field) return &structs[i];
  }
  return NULL;
}

// MLIR's own verifier asks for some structs even if all of their fields are empty.
static bool print_struct_is_struct_printed(const mp_op_t *op, const struct_attr_t *s) {
  if (s->print != print_struct_channel && s->print != print_struct_algorithm) return true;
  for (int i = 0; i < MAX_STRUCT_FIELDS && s->fields[i] != MP_ATTR_OTHER; ++i) {
    const mp_schema_attr_t *row = mp_schema_find(op->code, s->fields[i]);
    const mp_attr_t *value = mp_op_attr(op, s->fields[i]);
    if (row != NULL && value != NULL && !mp_schema_is_default(op, row, value)) return true;
  }
  return false;
}

// MLIR wants both layouts of a custom call or none, so that one may have to be printed although it
// has its default value.
static bool print_struct_is_printed_default(const mp_op_t *op, mp_attr_name_t name) {
  mp_attr_name_t other = MP_ATTR_OTHER;
  if (name == MP_ATTR_OPERAND_LAYOUTS) other = MP_ATTR_RESULT_LAYOUTS;
  if (name == MP_ATTR_RESULT_LAYOUTS) other = MP_ATTR_OPERAND_LAYOUTS;
  if (other != MP_ATTR_OTHER) {
    const mp_attr_t *value = mp_op_attr(op, other);
    return value != NULL && value->kind == MP_KIND_ARRAY && value->u.array.count > 0;
  }
  return name == MP_ATTR_FEATURE_GROUP_COUNT || name == MP_ATTR_BATCH_GROUP_COUNT;
}

static bool print_struct_is_in(const mp_attr_name_t *names, uint32_t count, mp_attr_name_t name) {
  for (uint32_t i = 0; i < count; ++i)
    if (names[i] == name) return true;
  return false;
}

static uint32_t print_struct_insert_item(mp_print_item_t *items, uint32_t count,
                                         mp_print_item_t item) {
  uint32_t at = count;
  for (; at > 0 && mp_str_compare(items[at - 1].name, item.name) > 0; --at)
    items[at] = items[at - 1];
  items[at] = item;
  return count + 1;
}

uint32_t mp_print_own_items(const mp_op_t *op, const mp_attr_name_t *skip, uint32_t num_skip,
                            mp_print_item_t *items) {
  uint32_t count = 0;
  uint32_t structs_done = 0;
  for (uint32_t i = 0; i < op->num_attrs && count < MP_MAX_PRINTED_ATTRS; ++i) {
    const mp_named_attr_t *attr = &op->attrs[i];
    const mp_schema_attr_t *row = mp_schema_find(op->code, attr->name);
    if (row == NULL || print_struct_is_in(skip, num_skip, attr->name)) continue;
    const struct_attr_t *s = print_struct_find_struct(op->code, attr->name);
    if (s != NULL) {
      uint32_t bit = 1u << (s - structs);
      if ((structs_done & bit) == 0 && print_struct_is_struct_printed(op, s))
        count = print_struct_insert_item(items, count,
                                         (mp_print_item_t){mp_str(s->name), NULL, s->print});
      structs_done |= bit;
      continue;
    }
    if (mp_schema_is_default(op, row, attr->value) &&
        !print_struct_is_printed_default(op, attr->name))
      continue;
    count = print_struct_insert_item(items, count, (mp_print_item_t){attr->text, attr, NULL});
  }
  return count;
}

void mp_print_item(const mp_op_t *op, const mp_print_item_t *item, mp_strbuf_t *out) {
  if (item->attr != NULL) {
    mp_print_named(item->attr, mp_schema_find(op->code, item->attr->name), out);
    return;
  }
  mp_strbuf_printf(out, "%.*s = ", MP_STR_ARG(item->name));
  item->print(op, out);
}
