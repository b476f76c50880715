// Prints attributes, dictionaries and locations.
#include <inttypes.h>

#include "sim/ir/print/print_parts.h"

mp_index_list_t mp_print_ints_of(const mp_attr_t *attr) {
  if (attr == NULL || (attr->kind != MP_KIND_INTS && attr->kind != MP_KIND_BOOLS))
    return (mp_index_list_t){0};
  return (mp_index_list_t){(uint32_t)attr->u.ints.count, attr->u.ints.values};
}

static void print_attr_int_item(bool is_bool, int64_t value, mp_strbuf_t *out) {
  if (is_bool)
    mp_strbuf_puts(out, value != 0 ? "true" : "false");
  else
    mp_strbuf_printf(out, "%" PRId64, value);
}

// array<i64: 1, 2>
static void print_attr_array(const mp_attr_t *attr, mp_strbuf_t *out) {
  bool is_bool = attr->kind == MP_KIND_BOOLS;
  mp_strbuf_puts(out, is_bool ? "array<i1" : "array<i64");
  for (size_t i = 0; i < attr->u.ints.count; ++i) {
    mp_strbuf_puts(out, i == 0 ? ": " : ", ");
    print_attr_int_item(is_bool, attr->u.ints.values[i], out);
  }
  mp_strbuf_putc(out, '>');
}

static bool print_attr_are_equal(const int64_t *values, size_t count) {
  for (size_t i = 1; i < count; ++i)
    if (values[i] != values[0]) return false;
  return true;
}

// dense<[[0, 1], [2, -1]]> : tensor<2x2xi64>
static void print_attr_int_table(const mp_attr_t *attr, const char *element, mp_strbuf_t *out) {
  const int64_t *values = attr->u.ints.values;
  size_t count = attr->u.ints.count;
  bool table = attr->u.ints.rank == 2;
  size_t columns = table ? (size_t)attr->u.ints.dims[1] : count;
  mp_strbuf_puts(out, "dense<");
  if (count > 0 && print_attr_are_equal(values, count)) {
    mp_strbuf_printf(out, "%" PRId64, values[0]);
  } else if (count > 0) {
    if (table) mp_strbuf_putc(out, '[');
    for (size_t i = 0; i < count; i += columns) {
      if (i > 0) mp_strbuf_puts(out, ", ");
      mp_print_index_list((mp_index_list_t){(uint32_t)columns, values + i}, out);
    }
    if (table) mp_strbuf_putc(out, ']');
  }
  mp_strbuf_puts(out, "> : tensor<");
  for (uint32_t i = 0; i < attr->u.ints.rank; ++i)
    mp_strbuf_printf(out, "%" PRId64 "x", attr->u.ints.dims[i]);
  mp_strbuf_printf(out, "%s>", element);
}

// With `typed`, numbers are printed with their type. Within arrays those of MLIR's default types,
// i64 and f64, are printed without.
static void print_attr_value(const mp_attr_t *attr, bool typed, const mp_schema_attr_t *row,
                             mp_strbuf_t *out);

static void print_attr_items(const mp_attr_t *attr, const mp_schema_attr_t *row, mp_strbuf_t *out) {
  mp_strbuf_putc(out, '[');
  for (size_t i = 0; i < attr->u.array.count; ++i) {
    if (i > 0) mp_strbuf_puts(out, ", ");
    print_attr_value(attr->u.array.items[i], false, row, out);
  }
  mp_strbuf_putc(out, ']');
}

// ---- StableHLO's own ----

static void print_attr_enum(const mp_attr_t *attr, mp_strbuf_t *out) {
  static const char *const names[MP_ENUM_COUNT] = {
#define ENUM_NAME(name, text, ...) [MP_ENUM_##name] = text,
      MP_ENUMS(ENUM_NAME)
#undef ENUM_NAME
  };
  mp_enum_kind_t kind = attr->u.enumeration.kind;
  uint32_t value = attr->u.enumeration.value;
  const char *text = mp_enum_value_name(kind, value);
  if (kind == MP_ENUM_API_VERSION)
    mp_strbuf_printf(out, "%u : i32", value);
  else if (kind == MP_ENUM_RESULT_ACCURACY_MODE)
    mp_strbuf_printf(out, "#stablehlo.result_accuracy_mode<%s>", text != NULL ? text : "?");
  else
    mp_strbuf_printf(out, "#stablehlo<%s %s>", names[kind], text != NULL ? text : "?");
}

static void print_attr_accuracy(const mp_attr_t *attr, mp_strbuf_t *out) {
  mp_strbuf_puts(out, "#stablehlo.result_accuracy<");
  if (attr->u.accuracy.atol != 0) {
    mp_strbuf_puts(out, "atol = ");
    mp_print_float(MP_DTYPE_F64, attr->u.accuracy.atol, out);
    mp_strbuf_puts(out, ", ");
  }
  if (attr->u.accuracy.rtol != 0) {
    mp_strbuf_puts(out, "rtol = ");
    mp_print_float(MP_DTYPE_F64, attr->u.accuracy.rtol, out);
    mp_strbuf_puts(out, ", ");
  }
  if (attr->u.accuracy.ulps != 0)
    mp_strbuf_printf(out, "ulps = %" PRId64 ", ", attr->u.accuracy.ulps);
  const char *mode = mp_enum_value_name(MP_ENUM_RESULT_ACCURACY_MODE, attr->u.accuracy.mode);
  mp_strbuf_printf(out, "mode = #stablehlo.result_accuracy_mode<%s>>", mode != NULL ? mode : "?");
}

static void print_attr_alias(const mp_attr_t *attr, mp_strbuf_t *out) {
  mp_strbuf_puts(out, "#stablehlo.output_operand_alias<output_tuple_indices = ");
  mp_print_index_list(attr->u.alias.output_tuple_indices, out);
  mp_strbuf_printf(
      out, ", operand_index = %" PRId64 ", operand_tuple_indices = ", attr->u.alias.operand_index);
  mp_print_index_list(attr->u.alias.operand_tuple_indices, out);
  mp_strbuf_putc(out, '>');
}

static void print_attr_stablehlo_mesh(const mp_mesh_t *mesh, mp_strbuf_t *out) {
  mp_strbuf_puts(out, "#stablehlo.mesh<axes=[");
  for (uint32_t i = 0; i < mesh->num_axes; ++i) {
    mp_strbuf_puts(out, i > 0 ? ", <name = " : "<name = ");
    mp_print_quoted(mesh->axes[i].name, out);
    mp_strbuf_printf(out, ", size = %" PRId64 ">", mesh->axes[i].size);
  }
  mp_strbuf_putc(out, ']');
  if (mesh->num_device_ids > 0) {
    mp_strbuf_puts(out, ", device_ids=dense<");
    mp_print_index_list((mp_index_list_t){mesh->num_device_ids, mesh->device_ids}, out);
    mp_strbuf_printf(out, "> : tensor<%uxi64>", mesh->num_device_ids);
  }
  mp_strbuf_putc(out, '>');
}

static void print_attr_mesh_groups(const mp_attr_t *attr, mp_strbuf_t *out) {
  const mp_mesh_t *mesh = attr->u.mesh_groups.mesh;
  mp_strbuf_puts(out, "#stablehlo.replica_group_mesh_axes<mesh = ");
  if (mesh->name.size > 0)
    mp_print_symbol(mesh->name, out);
  else
    print_attr_stablehlo_mesh(mesh, out);
  mp_strbuf_puts(out, ", axes = [");
  for (uint32_t i = 0; i < attr->u.mesh_groups.axes.count; ++i) {
    const mp_axis_ref_t *axis = &attr->u.mesh_groups.axes.axes[i];
    mp_strbuf_puts(out, i > 0 ? ", #stablehlo.axis_ref<name = " : "#stablehlo.axis_ref<name = ");
    mp_print_quoted(axis->name, out);
    if (axis->size != 0)
      mp_strbuf_printf(out, ", sub_axis_info = (%" PRId64 ")%" PRId64, axis->pre_size, axis->size);
    mp_strbuf_putc(out, '>');
  }
  mp_strbuf_puts(out, "]>");
}

static void print_attr_numbers(const char *before, const int32_t *values, uint32_t count,
                               mp_strbuf_t *out) {
  mp_strbuf_puts(out, before);
  for (uint32_t i = 0; i < count; ++i) mp_strbuf_printf(out, "%s%d", i > 0 ? ", " : "[", values[i]);
  mp_strbuf_puts(out, count > 0 ? "]" : "[]");
}

// The boxes of minipod.exchange: the starts of all partitions one after the other, then the sizes.
static void print_attr_boxes(const mp_boxes_t *boxes, mp_strbuf_t *out) {
  uint32_t total = boxes->num_partitions * boxes->rank;
  mp_strbuf_puts(out, "#minipod.boxes<dims = ");
  mp_print_index_list((mp_index_list_t){boxes->rank, boxes->dims}, out);
  mp_strbuf_puts(out, ", starts = ");
  mp_print_index_list((mp_index_list_t){total, boxes->starts}, out);
  mp_strbuf_puts(out, ", sizes = ");
  mp_print_index_list((mp_index_list_t){total, boxes->sizes}, out);
  print_attr_numbers(", groups = ", boxes->groups, boxes->num_partitions, out);
  if (boxes->partials != NULL)
    print_attr_numbers(", partials = ", boxes->partials, boxes->num_partitions, out);
  mp_strbuf_putc(out, '>');
}

// ---- any ----

static void print_attr_int(const mp_attr_t *attr, bool typed, mp_strbuf_t *out) {
  int unused = 64 - mp_dtype_bits(attr->dtype);
  if (mp_dtype_class(attr->dtype) == MP_CLASS_UNSIGNED)
    mp_strbuf_printf(out, "%" PRIu64, (uint64_t)attr->u.i64 << unused >> unused);
  else
    mp_strbuf_printf(out, "%" PRId64, attr->u.i64);
  if (typed || attr->dtype != MP_DTYPE_S64)
    mp_strbuf_printf(out, " : %s", mp_dtype_name(attr->dtype));
}

static void print_attr_value(const mp_attr_t *attr, bool typed, const mp_schema_attr_t *row,
                             mp_strbuf_t *out) {
  // Layouts are printed with the element type `index`, wherever they occur.
  bool layouts =
      row != NULL && (row->name == MP_ATTR_OPERAND_LAYOUTS || row->name == MP_ATTR_RESULT_LAYOUTS);
  switch (attr->kind) {
    case MP_KIND_UNIT:
      mp_strbuf_puts(out, "unit");
      break;
    case MP_KIND_BOOL:
      mp_strbuf_puts(out, attr->u.boolean ? "true" : "false");
      break;
    case MP_KIND_INT:
      print_attr_int(attr, typed, out);
      break;
    case MP_KIND_FLOAT:
      mp_print_float(attr->dtype, attr->u.f64, out);
      if (typed || attr->dtype != MP_DTYPE_F64)
        mp_strbuf_printf(out, " : %s", mp_dtype_name(attr->dtype));
      break;
    case MP_KIND_STRING:
      if (row != NULL && row->is_symbol)
        mp_print_symbol(attr->u.str, out);
      else
        mp_print_quoted(attr->u.str, out);
      break;
    case MP_KIND_ENUM:
      print_attr_enum(attr, out);
      break;
    case MP_KIND_INTS:
    case MP_KIND_BOOLS:
      if (layouts || attr->u.ints.rank == 2)
        print_attr_int_table(attr, layouts ? "index" : "i64", out);
      else
        print_attr_array(attr, out);
      break;
    case MP_KIND_DENSE:
      mp_print_dense(attr, 0, out);
      break;
    case MP_KIND_TYPE:
      mp_type_print(attr->u.type, out);
      break;
    case MP_KIND_ARRAY:
      print_attr_items(attr, row, out);
      break;
    case MP_KIND_DICT:
      mp_print_dict(attr->u.dict.items, attr->u.dict.count, out);
      break;
    case MP_KIND_RESULT_ACCURACY:
      print_attr_accuracy(attr, out);
      break;
    case MP_KIND_OUTPUT_ALIAS:
      print_attr_alias(attr, out);
      break;
    case MP_KIND_MESH_GROUPS:
      print_attr_mesh_groups(attr, out);
      break;
    case MP_KIND_AXES:
      if (row == NULL || row->name != MP_ATTR_MANUAL_AXES) {
        mp_print_sdy(attr, out);
        break;
      }
      mp_strbuf_puts(out, "#sdy<manual_axes");
      mp_print_axes(attr->u.axes, out);
      mp_strbuf_putc(out, '>');
      break;
    case MP_KIND_MESH:
    case MP_KIND_SHARDING:
    case MP_KIND_SHARDINGS:
    case MP_KIND_AXES_LISTS:
    case MP_KIND_ALL_TO_ALL_PARAMS:
    case MP_KIND_SHARDING_RULE:
      mp_print_sdy(attr, out);
      break;
    case MP_KIND_BOXES:
      print_attr_boxes(attr->u.boxes, out);
      break;
  }
}

void mp_attr_print(const mp_attr_t *attr, mp_strbuf_t *out) {
  print_attr_value(attr, true, NULL, out);
}

void mp_print_named(const mp_named_attr_t *attr, const mp_schema_attr_t *row, mp_strbuf_t *out) {
  mp_print_name(attr->text, out);
  // In the text use_global_device_ids is a unit attribute.
  bool unit = attr->value->kind == MP_KIND_UNIT ||
              (row != NULL && row->name == MP_ATTR_USE_GLOBAL_DEVICE_IDS);
  if (unit) return;
  mp_strbuf_puts(out, " = ");
  print_attr_value(attr->value, true, row, out);
}

void mp_print_dict(const mp_named_attr_t *items, size_t count, mp_strbuf_t *out) {
  mp_strbuf_putc(out, '{');
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) mp_strbuf_puts(out, ", ");
    mp_print_named(&items[i], NULL, out);
  }
  mp_strbuf_putc(out, '}');
}

// ---- locations ----

static void print_attr_file(const mp_loc_t *loc, mp_strbuf_t *out) {
  mp_print_quoted(loc->text, out);
  mp_strbuf_printf(out, ":%u:%u", loc->line, loc->column);
  if (loc->end_line == 0 && loc->end_column == 0) return;
  if (loc->end_line == loc->line)
    mp_strbuf_printf(out, " to :%u", loc->end_column);
  else
    mp_strbuf_printf(out, " to %u:%u", loc->end_line, loc->end_column);
}

static void print_attr_loc(const mp_loc_t *loc, mp_strbuf_t *out);

// callsite(f at callsite(g at h)): a call stack may be deep.
static void print_attr_call_site(const mp_loc_t *loc, mp_strbuf_t *out) {
  uint32_t open = 0;
  for (; loc->kind == MP_LOC_CALL_SITE; loc = loc->children[1], ++open) {
    mp_strbuf_puts(out, "callsite(");
    print_attr_loc(loc->children[0], out);
    mp_strbuf_puts(out, " at ");
  }
  print_attr_loc(loc, out);
  for (; open > 0; --open) mp_strbuf_putc(out, ')');
}

static void print_attr_loc(const mp_loc_t *loc, mp_strbuf_t *out) {
  switch (loc->kind) {
    case MP_LOC_UNKNOWN:
      mp_strbuf_puts(out, "unknown");
      break;
    case MP_LOC_FILE:
      print_attr_file(loc, out);
      break;
    case MP_LOC_NAME:
      mp_print_quoted(loc->text, out);
      if (loc->num_children == 0) break;
      mp_strbuf_putc(out, '(');
      print_attr_loc(loc->children[0], out);
      mp_strbuf_putc(out, ')');
      break;
    case MP_LOC_CALL_SITE:
      print_attr_call_site(loc, out);
      break;
    case MP_LOC_FUSED:
      mp_strbuf_puts(out, "fused[");
      for (uint32_t i = 0; i < loc->num_children; ++i) {
        if (i > 0) mp_strbuf_puts(out, ", ");
        print_attr_loc(loc->children[i], out);
      }
      mp_strbuf_putc(out, ']');
      break;
  }
}

// Prints a location that is too long for the remaining room: only its name and the user's line.
static void print_attr_short_loc(const mp_loc_t *loc, mp_strbuf_t *out) {
  const mp_loc_found_t found = mp_loc_find(loc);
  const mp_loc_t *name = found.name, *file = found.file;
  if (name != NULL) mp_print_quoted(name->text, out);
  if (name != NULL && file != NULL) mp_strbuf_putc(out, '(');
  if (file != NULL) print_attr_file(file, out);
  if (name != NULL && file != NULL) mp_strbuf_putc(out, ')');
  if (name == NULL && file == NULL) mp_strbuf_puts(out, "unknown");
}

void mp_print_loc(const mp_loc_t *loc, uint64_t *room, mp_strbuf_t *out) {
  mp_strbuf_puts(out, "loc(");
  if (loc == NULL)
    mp_strbuf_puts(out, "unknown");
  else if (mp_loc_count(loc, room))
    print_attr_loc(loc, out);
  else
    print_attr_short_loc(loc, out);
  mp_strbuf_putc(out, ')');
}
