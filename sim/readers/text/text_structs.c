// StableHLO's attributes (StablehloAttrs.td). Where the IR has single attributes for the fields of
// a struct, the struct is read as a dictionary of those; text_normal.c then moves the items of the
// dictionary into the op's list.
#include "sim/readers/text/text_parser.h"

// ---- enumerations: #stablehlo<precision HIGH>, also #stablehlo.precision<HIGH> ----

static const char *const enums[MP_ENUM_COUNT] = {
#define ENUM_NAME(name, text, ...) [MP_ENUM_##name] = text,
    MP_ENUMS(ENUM_NAME)
#undef ENUM_NAME
};

static bool text_structs_find_enum(mp_str_t name, mp_enum_kind_t *out_kind) {
  for (int i = 0; i < MP_ENUM_COUNT; ++i) {
    if (!mp_str_is(name, enums[i])) continue;
    *out_kind = (mp_enum_kind_t)i;
    return true;
  }
  return false;
}

static mp_status_t text_structs_read_enum_value(mp_text_t *t, mp_enum_kind_t kind,
                                                const mp_attr_t **out_attr) {
  int value = t->tok.kind == MP_TOKEN_WORD ? mp_enum_value_from_name(kind, t->tok.text) : -1;
  if (value < 0) return mp_text_expected(t, "an enumeration's value");
  mp_text_advance(t);
  return mp_attr_make_enum(t->arena, kind, (uint32_t)value, out_attr);
}

static mp_status_t text_structs_read_enum(mp_text_t *t, mp_str_t name, const mp_attr_t **out_attr) {
  mp_enum_kind_t kind;
  MP_RETURN_IF_ERROR(mp_text_expect(t, '<'));
  if (name.size == 0) {
    if (t->tok.kind != MP_TOKEN_WORD) return mp_text_expected(t, "an enumeration's name");
    name = t->tok.text;
    mp_text_advance(t);
  }
  if (!text_structs_find_enum(name, &kind))
    return mp_text_error(t, &t->last, MP_UNIMPLEMENTED,
                         "the attribute '#stablehlo.%.*s' is not known", MP_STR_ARG(name));
  MP_RETURN_IF_ERROR(text_structs_read_enum_value(t, kind, out_attr));
  return mp_text_expect(t, '>');
}

// ---- structs whose fields are the op's attributes ----

enum { MAX_FIELDS = 10 };

typedef struct {
  const char *text;  // NULL: the attribute's own name
  mp_attr_name_t name;
} field_t;

typedef struct {
  const char *name;
  field_t fields[MAX_FIELDS];  // up to the first OTHER
} struct_t;

#define FIELD(name) \
  { NULL, MP_ATTR_##name }

static const struct_t structs[] = {
    {"channel_handle", {{"handle", MP_ATTR_CHANNEL_ID}, {"type", MP_ATTR_CHANNEL_TYPE}}},
    {"dot",
     {FIELD(LHS_BATCHING_DIMENSIONS), FIELD(RHS_BATCHING_DIMENSIONS),
      FIELD(LHS_CONTRACTING_DIMENSIONS), FIELD(RHS_CONTRACTING_DIMENSIONS)}},
    {"dot_algorithm",
     {FIELD(LHS_PRECISION_TYPE), FIELD(RHS_PRECISION_TYPE), FIELD(ACCUMULATION_TYPE),
      FIELD(LHS_COMPONENT_COUNT), FIELD(RHS_COMPONENT_COUNT), FIELD(NUM_PRIMITIVE_OPERATIONS),
      FIELD(ALLOW_IMPRECISE_ACCUMULATION)}},
    {"gather",
     {FIELD(OFFSET_DIMS), FIELD(COLLAPSED_SLICE_DIMS), FIELD(OPERAND_BATCHING_DIMS),
      FIELD(START_INDICES_BATCHING_DIMS), FIELD(START_INDEX_MAP), FIELD(INDEX_VECTOR_DIM)}},
    {"scatter",
     {FIELD(UPDATE_WINDOW_DIMS), FIELD(INSERTED_WINDOW_DIMS), FIELD(INPUT_BATCHING_DIMS),
      FIELD(SCATTER_INDICES_BATCHING_DIMS), FIELD(SCATTER_DIMS_TO_OPERAND_DIMS),
      FIELD(INDEX_VECTOR_DIM)}},
};

static const struct_t raw_conv = {
    "conv",
    {FIELD(INPUT_BATCH_DIMENSION), FIELD(INPUT_FEATURE_DIMENSION), FIELD(INPUT_SPATIAL_DIMENSIONS),
     FIELD(KERNEL_INPUT_FEATURE_DIMENSION), FIELD(KERNEL_OUTPUT_FEATURE_DIMENSION),
     FIELD(KERNEL_SPATIAL_DIMENSIONS), FIELD(OUTPUT_BATCH_DIMENSION),
     FIELD(OUTPUT_FEATURE_DIMENSION), FIELD(OUTPUT_SPATIAL_DIMENSIONS)}};

static const field_t *text_structs_find_field(const struct_t *s, mp_str_t text) {
  for (int i = 0; i < MAX_FIELDS && s->fields[i].name != MP_ATTR_OTHER; ++i) {
    const char *name =
        s->fields[i].text != NULL ? s->fields[i].text : mp_attr_name_text(s->fields[i].name);
    if (mp_str_is(text, name)) return &s->fields[i];
  }
  return NULL;
}

static bool text_structs_is_dtype_field(mp_attr_name_t name) {
  return name == MP_ATTR_LHS_PRECISION_TYPE || name == MP_ATTR_RHS_PRECISION_TYPE ||
         name == MP_ATTR_ACCUMULATION_TYPE;
}

static mp_status_t text_structs_read_field_value(mp_text_t *t, mp_attr_name_t name,
                                                 const mp_attr_t **out_value) {
  if (text_structs_is_dtype_field(name)) {
    mp_dtype_t dtype;
    const mp_type_t *type = NULL;
    MP_RETURN_IF_ERROR(mp_text_dtype(t, &dtype));
    MP_RETURN_IF_ERROR(mp_type_tensor(t->arena, dtype, NULL, 0, &type));
    return mp_attr_make_type(t->arena, type, out_value);
  }
  if (mp_text_is(t, '[')) {
    mp_index_list_t list;
    MP_RETURN_IF_ERROR(mp_text_index_list(t, &list));
    return mp_attr_make_ints(t->arena, list.values, list.count, out_value);
  }
  return mp_text_attr(t, out_value);
}

static bool text_structs_is_end(mp_token_t token) {
  return token.kind == MP_TOKEN_PUNCT && token.text.data[0] == '>';
}

// name = value, ... up to the '>', which is taken too.
static mp_status_t text_structs_read_fields(mp_text_t *t, const struct_t *s,
                                            const mp_attr_t **out_attr) {
  mp_text_items_t items = {0};
  mp_token_t token = t->tok;
  while (!mp_text_is(t, '>')) {
    if (items.count > 0) MP_RETURN_IF_ERROR(mp_text_expect(t, ','));
    const field_t *field =
        t->tok.kind == MP_TOKEN_WORD ? text_structs_find_field(s, t->tok.text) : NULL;
    if (field == NULL) return mp_text_expected(t, "the name of a field");
    mp_text_advance(t);
    MP_RETURN_IF_ERROR(mp_text_expect(t, '='));
    mp_named_attr_t item = {field->name, mp_str(mp_attr_name_text(field->name)), NULL};
    MP_RETURN_IF_ERROR(text_structs_read_field_value(t, field->name, &item.value));
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, &items, item));
    // The list may end in a comma.
    if (mp_text_is(t, ',') && text_structs_is_end(mp_text_peek(t))) mp_text_advance(t);
  }
  mp_text_advance(t);
  return mp_text_make_dict(t, &token, items.items, items.count, out_attr);
}

static const struct_t *text_structs_find_struct(mp_str_t name) {
  for (size_t i = 0; i < sizeof(structs) / sizeof(structs[0]); ++i)
    if (mp_str_is(name, structs[i].name)) return &structs[i];
  return NULL;
}

static mp_status_t text_structs_read_struct(mp_text_t *t, mp_str_t name,
                                            const mp_attr_t **out_attr) {
  MP_RETURN_IF_ERROR(mp_text_expect(t, '<'));
  return text_structs_read_fields(t, text_structs_find_struct(name), out_attr);
}

mp_status_t mp_text_dot_algorithm(mp_text_t *t, const mp_attr_t **out_fields) {
  return text_structs_read_struct(t, MP_STR("dot_algorithm"), out_fields);
}

// ---- convolution ----

// What the letters and numbers of one of a convolution's three tensors stand for.
typedef struct {
  char first, second;  // b and f, or i and o
  mp_attr_name_t first_name, second_name, spatial_name;
} conv_tensor_t;

// Says that the dimension at `position` of the tensor is the spatial dimension of this number.
typedef struct {
  int64_t number, position;
} spatial_t;
typedef MP_ARRAY(spatial_t) spatials_t;

static mp_status_t text_structs_add_item(mp_text_t *t, mp_text_items_t *items, mp_attr_name_t name,
                                         const mp_attr_t *value) {
  mp_named_attr_t item = {name, mp_str(mp_attr_name_text(name)), value};
  return MP_ARRAY_PUSH(t->scratch, items, item);
}

static mp_status_t text_structs_add_int(mp_text_t *t, mp_text_items_t *items, mp_attr_name_t name,
                                        int64_t value) {
  const mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_attr_make_int(t->arena, MP_DTYPE_S64, value, &attr));
  return text_structs_add_item(t, items, name, attr);
}

// The text lists, for each position, the spatial dimension there; the attribute lists, for each
// spatial dimension, its position.
static mp_status_t text_structs_add_spatial(mp_text_t *t, mp_text_items_t *items,
                                            const mp_token_t *token, mp_attr_name_t name,
                                            const spatials_t *numbers) {
  int64_t *positions = MP_ARENA_ARRAY(t->scratch, int64_t, numbers->count);
  bool *seen = MP_ARENA_ARRAY(t->scratch, bool, numbers->count);
  if (positions == NULL || seen == NULL) return mp_status_out_of_memory();
  for (uint32_t i = 0; i < numbers->count; ++i) {
    int64_t number = numbers->items[i].number;
    if (number < 0 || number >= (int64_t)numbers->count || seen[number])
      return mp_text_error(t, token, MP_INVALID_ARGUMENT,
                           "the spatial dimensions are not numbered from 0 on");
    seen[number] = true;
    positions[number] = numbers->items[i].position;
  }
  const mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_attr_make_ints(t->arena, positions, numbers->count, &attr));
  return text_structs_add_item(t, items, name, attr);
}

static mp_status_t text_structs_read_conv_tensor(mp_text_t *t, const conv_tensor_t *tensor,
                                                 mp_text_items_t *items) {
  mp_token_t token = t->tok;
  spatials_t numbers = {0};
  int64_t first = -1, second = -1;
  MP_RETURN_IF_ERROR(mp_text_expect(t, '['));
  for (int64_t position = 0; !mp_text_is(t, ']'); ++position) {
    if (position > 0) MP_RETURN_IF_ERROR(mp_text_expect(t, ','));
    if (t->tok.kind == MP_TOKEN_INTEGER) {
      spatial_t spatial = {0, position};
      MP_RETURN_IF_ERROR(mp_text_i64(t, &spatial.number));
      MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, &numbers, spatial));
      continue;
    }
    bool letter = t->tok.kind == MP_TOKEN_WORD && t->tok.text.size == 1;
    if (letter && t->tok.text.data[0] == tensor->first)
      first = position;
    else if (letter && t->tok.text.data[0] == tensor->second)
      second = position;
    else if (!mp_text_is(t, '?'))
      return mp_text_expected(t, "a dimension's letter or number");
    mp_text_advance(t);
  }
  mp_text_advance(t);
  if (first < 0 || second < 0)
    return mp_text_error(t, &token, MP_INVALID_ARGUMENT, "a dimension '%c' is missing",
                         first < 0 ? tensor->first : tensor->second);
  MP_RETURN_IF_ERROR(text_structs_add_int(t, items, tensor->first_name, first));
  MP_RETURN_IF_ERROR(text_structs_add_int(t, items, tensor->second_name, second));
  return text_structs_add_spatial(t, items, &token, tensor->spatial_name, &numbers);
}

mp_status_t mp_text_conv_numbers(mp_text_t *t, const mp_attr_t **out_fields) {
  static const conv_tensor_t tensors[] = {
      {'b', 'f', MP_ATTR_INPUT_BATCH_DIMENSION, MP_ATTR_INPUT_FEATURE_DIMENSION,
       MP_ATTR_INPUT_SPATIAL_DIMENSIONS},
      {'i', 'o', MP_ATTR_KERNEL_INPUT_FEATURE_DIMENSION, MP_ATTR_KERNEL_OUTPUT_FEATURE_DIMENSION,
       MP_ATTR_KERNEL_SPATIAL_DIMENSIONS},
      {'b', 'f', MP_ATTR_OUTPUT_BATCH_DIMENSION, MP_ATTR_OUTPUT_FEATURE_DIMENSION,
       MP_ATTR_OUTPUT_SPATIAL_DIMENSIONS},
  };
  mp_text_items_t items = {0};
  mp_token_t token = t->tok;
  MP_RETURN_IF_ERROR(text_structs_read_conv_tensor(t, &tensors[0], &items));
  MP_RETURN_IF_ERROR(mp_text_expect_word(t, "x"));
  MP_RETURN_IF_ERROR(text_structs_read_conv_tensor(t, &tensors[1], &items));
  MP_RETURN_IF_ERROR(mp_text_expect_arrow(t));
  MP_RETURN_IF_ERROR(text_structs_read_conv_tensor(t, &tensors[2], &items));
  return mp_text_make_dict(t, &token, items.items, items.count, out_fields);
}

// <[b, 0, f]x[0, i, o]->[b, 0, f]> or <raw input_batch_dimension = 0, ...>
static mp_status_t text_structs_read_conv(mp_text_t *t, mp_str_t name, const mp_attr_t **out_attr) {
  (void)name;
  MP_RETURN_IF_ERROR(mp_text_expect(t, '<'));
  if (!mp_text_accept_word(t, "raw")) {
    MP_RETURN_IF_ERROR(mp_text_conv_numbers(t, out_attr));
    return mp_text_expect(t, '>');
  }
  const mp_attr_t *given = NULL;
  mp_token_t token = t->tok;
  MP_RETURN_IF_ERROR(text_structs_read_fields(t, &raw_conv, &given));
  // In this form a field that is left out is 0.
  mp_text_items_t items = {0};
  for (int i = 0; i < MAX_FIELDS && raw_conv.fields[i].name != MP_ATTR_OTHER; ++i) {
    const mp_attr_t *value = mp_attr_dict_get(given, raw_conv.fields[i].name);
    bool list =
        mp_schema_find(MP_OP_CONVOLUTION, raw_conv.fields[i].name)->kinds == 1u << MP_KIND_INTS;
    if (value != NULL)
      MP_RETURN_IF_ERROR(text_structs_add_item(t, &items, raw_conv.fields[i].name, value));
    else if (!list)
      MP_RETURN_IF_ERROR(text_structs_add_int(t, &items, raw_conv.fields[i].name, 0));
  }
  return mp_text_make_dict(t, &token, items.items, items.count, out_attr);
}

// ---- values of their own kind ----

// output_tuple_indices = [..], operand_index = N, operand_tuple_indices = [..]
static mp_status_t text_structs_read_alias(mp_text_t *t, mp_str_t name,
                                           const mp_attr_t **out_attr) {
  (void)name;
  mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_text_new_attr(t, MP_KIND_OUTPUT_ALIAS, &attr));
  MP_RETURN_IF_ERROR(mp_text_expect(t, '<'));
  for (bool first = true; !mp_text_is(t, '>'); first = false) {
    if (!first) MP_RETURN_IF_ERROR(mp_text_expect(t, ','));
    mp_str_t field = t->tok.text;
    if (t->tok.kind != MP_TOKEN_WORD) return mp_text_expected(t, "the name of a field");
    mp_text_advance(t);
    MP_RETURN_IF_ERROR(mp_text_expect(t, '='));
    if (mp_str_is(field, "output_tuple_indices"))
      MP_RETURN_IF_ERROR(mp_text_index_list(t, &attr->u.alias.output_tuple_indices));
    else if (mp_str_is(field, "operand_tuple_indices"))
      MP_RETURN_IF_ERROR(mp_text_index_list(t, &attr->u.alias.operand_tuple_indices));
    else if (mp_str_is(field, "operand_index"))
      MP_RETURN_IF_ERROR(mp_text_i64(t, &attr->u.alias.operand_index));
    else
      return mp_text_expected(t, "a field of output_operand_alias");
  }
  mp_text_advance(t);
  *out_attr = attr;
  return NULL;
}

static mp_status_t text_structs_read_accuracy_field(mp_text_t *t, mp_attr_t *attr) {
  mp_token_t token = t->tok;
  if (token.kind != MP_TOKEN_WORD) return mp_text_expected(t, "the name of a field");
  mp_text_advance(t);
  MP_RETURN_IF_ERROR(mp_text_expect(t, '='));
  if (mp_str_is(token.text, "ulps")) return mp_text_i64(t, &attr->u.accuracy.ulps);
  const mp_attr_t *value = NULL;
  MP_RETURN_IF_ERROR(mp_text_attr(t, &value));
  if (mp_str_is(token.text, "mode") && value->kind == MP_KIND_ENUM &&
      value->u.enumeration.kind == MP_ENUM_RESULT_ACCURACY_MODE) {
    attr->u.accuracy.mode = value->u.enumeration.value;
    return NULL;
  }
  bool atol = mp_str_is(token.text, "atol");
  if (value->kind != MP_KIND_FLOAT || !(atol || mp_str_is(token.text, "rtol")))
    return mp_text_error(t, &token, MP_INVALID_ARGUMENT, "no field of result_accuracy");
  *(atol ? &attr->u.accuracy.atol : &attr->u.accuracy.rtol) = value->u.f64;
  return NULL;
}

static mp_status_t text_structs_read_accuracy(mp_text_t *t, mp_str_t name,
                                              const mp_attr_t **out_attr) {
  (void)name;
  mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_text_new_attr(t, MP_KIND_RESULT_ACCURACY, &attr));
  MP_RETURN_IF_ERROR(mp_text_expect(t, '<'));
  for (bool first = true; !mp_text_is(t, '>'); first = false) {
    if (!first) MP_RETURN_IF_ERROR(mp_text_expect(t, ','));
    MP_RETURN_IF_ERROR(text_structs_read_accuracy_field(t, attr));
  }
  mp_text_advance(t);
  *out_attr = attr;
  return NULL;
}

// ---- meshes as StableHLO spells them ----

// <name = "x", size = 4>; the attribute's name may stand in front.
static mp_status_t text_structs_read_mesh_axis(mp_text_t *t, mp_mesh_axis_t *axis) {
  if (t->tok.kind == MP_TOKEN_HASH) mp_text_advance(t);
  MP_RETURN_IF_ERROR(mp_text_expect(t, '<'));
  MP_RETURN_IF_ERROR(mp_text_expect_word(t, "name"));
  MP_RETURN_IF_ERROR(mp_text_expect(t, '='));
  MP_RETURN_IF_ERROR(mp_text_string(t, &axis->name));
  MP_RETURN_IF_ERROR(mp_text_expect(t, ','));
  MP_RETURN_IF_ERROR(mp_text_expect_word(t, "size"));
  MP_RETURN_IF_ERROR(mp_text_expect(t, '='));
  MP_RETURN_IF_ERROR(mp_text_i64(t, &axis->size));
  return mp_text_expect(t, '>');
}

static mp_status_t text_structs_read_device_ids(mp_text_t *t, mp_mesh_t *mesh) {
  const mp_attr_t *value, *ids;
  mp_token_t token = t->tok;
  MP_RETURN_IF_ERROR(mp_text_attr(t, &value));
  MP_RETURN_IF_ERROR(mp_text_to_ints(t, &token, value, &ids));
  if (ids->kind != MP_KIND_INTS || ids->u.ints.count > UINT32_MAX)
    return mp_text_error(t, &token, MP_INVALID_ARGUMENT, "device_ids is not a list of integers");
  mesh->num_device_ids = (uint32_t)ids->u.ints.count;
  mesh->device_ids = ids->u.ints.values;
  return NULL;
}

// <axes = [...], device_ids = dense<...>>
static mp_status_t text_structs_read_inline_mesh(mp_text_t *t, mp_mesh_t *mesh) {
  MP_ARRAY(mp_mesh_axis_t) axes = {0};
  mp_text_advance(t);
  MP_RETURN_IF_ERROR(mp_text_expect(t, '<'));
  MP_RETURN_IF_ERROR(mp_text_expect_word(t, "axes"));
  MP_RETURN_IF_ERROR(mp_text_expect(t, '='));
  MP_TEXT_LIST(t, '[', ']', mp_mesh_axis_t, &axes, text_structs_read_mesh_axis);
  mesh->num_axes = axes.count;
  mesh->axes = mp_arena_copy(t->arena, axes.items, axes.count * sizeof(mp_mesh_axis_t));
  MP_RETURN_IF_NULL(mesh->axes);
  if (mp_text_accept(t, ',')) {
    MP_RETURN_IF_ERROR(mp_text_expect_word(t, "device_ids"));
    MP_RETURN_IF_ERROR(mp_text_expect(t, '='));
    MP_RETURN_IF_ERROR(text_structs_read_device_ids(t, mesh));
  }
  return mp_text_expect(t, '>');
}

// #stablehlo.axis_ref<name = "x", sub_axis_info = (1)2>
static mp_status_t text_structs_read_axis_ref(mp_text_t *t, mp_axis_ref_t *axis) {
  *axis = (mp_axis_ref_t){.pre_size = 1};
  if (t->tok.kind == MP_TOKEN_HASH) mp_text_advance(t);
  MP_RETURN_IF_ERROR(mp_text_expect(t, '<'));
  MP_RETURN_IF_ERROR(mp_text_expect_word(t, "name"));
  MP_RETURN_IF_ERROR(mp_text_expect(t, '='));
  MP_RETURN_IF_ERROR(mp_text_string(t, &axis->name));
  if (mp_text_accept(t, ',')) {
    MP_RETURN_IF_ERROR(mp_text_expect_word(t, "sub_axis_info"));
    MP_RETURN_IF_ERROR(mp_text_expect(t, '='));
    MP_RETURN_IF_ERROR(mp_text_expect(t, '('));
    MP_RETURN_IF_ERROR(mp_text_i64(t, &axis->pre_size));
    MP_RETURN_IF_ERROR(mp_text_expect(t, ')'));
    MP_RETURN_IF_ERROR(mp_text_i64(t, &axis->size));
  }
  return mp_text_expect(t, '>');
}

static mp_status_t text_structs_read_mesh_groups(mp_text_t *t, mp_str_t name,
                                                 const mp_attr_t **out_attr) {
  (void)name;
  mp_attr_t *attr = NULL;
  mp_mesh_t *mesh = NULL;
  MP_ARRAY(mp_axis_ref_t) axes = {0};
  MP_RETURN_IF_ERROR(mp_text_new_attr(t, MP_KIND_MESH_GROUPS, &attr));
  MP_RETURN_IF_ERROR(mp_text_expect(t, '<'));
  MP_RETURN_IF_ERROR(mp_text_expect_word(t, "mesh"));
  MP_RETURN_IF_ERROR(mp_text_expect(t, '='));
  if (t->tok.kind == MP_TOKEN_HASH) {
    mesh = MP_ARENA_NEW(t->arena, mp_mesh_t);
    MP_RETURN_IF_NULL(mesh);
    mesh->name = MP_STR("");
    MP_RETURN_IF_ERROR(text_structs_read_inline_mesh(t, mesh));
  } else {
    MP_RETURN_IF_ERROR(mp_text_mesh_ref(t, &mesh));
  }
  MP_RETURN_IF_ERROR(mp_text_expect(t, ','));
  MP_RETURN_IF_ERROR(mp_text_expect_word(t, "axes"));
  MP_RETURN_IF_ERROR(mp_text_expect(t, '='));
  MP_TEXT_LIST(t, '[', ']', mp_axis_ref_t, &axes, text_structs_read_axis_ref);
  attr->u.mesh_groups.mesh = mesh;
  attr->u.mesh_groups.axes.count = axes.count;
  attr->u.mesh_groups.axes.axes =
      mp_arena_copy(t->arena, axes.items, axes.count * sizeof(mp_axis_ref_t));
  MP_RETURN_IF_NULL(attr->u.mesh_groups.axes.axes);
  *out_attr = attr;
  return mp_text_expect(t, '>');
}

// ---- by name; what is not here is an enumeration ----

mp_status_t mp_text_stablehlo_attr(mp_text_t *t, mp_str_t name, const mp_attr_t **out_attr) {
  static const struct {
    const char *name;
    mp_status_t (*read)(mp_text_t *t, mp_str_t name, const mp_attr_t **out_attr);
  } readers[] = {
      {"conv", text_structs_read_conv},
      {"output_operand_alias", text_structs_read_alias},
      {"result_accuracy", text_structs_read_accuracy},
      {"replica_group_mesh_axes", text_structs_read_mesh_groups},
  };
  for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); ++i)
    if (mp_str_is(name, readers[i].name)) return readers[i].read(t, name, out_attr);
  if (text_structs_find_struct(name) != NULL) return text_structs_read_struct(t, name, out_attr);
  return text_structs_read_enum(t, name, out_attr);
}
