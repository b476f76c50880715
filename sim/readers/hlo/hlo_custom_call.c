// Calls of functions by their names.
#include "sim/readers/hlo/hlo_ops.h"
#include "sim/readers/hlo/hlo_sharding.h"
#include "sim/readers/text/text.h"

// ---- the configuration ----

// A typed handler's configuration is a dictionary in MLIR's text form. It is parsed as the
// attribute of an otherwise empty program.
static mp_status_t hlo_custom_call_parse(mp_hlo_build_t *b, mp_str_t text,
                                         const mp_attr_t **out_dict) {
  mp_strbuf_t program;
  mp_module_t *parsed = NULL;
  mp_strbuf_init(&program);
  mp_strbuf_puts(&program, "module attributes {mhlo.backend_config = ");
  mp_strbuf_append(&program, text.data, text.size);
  mp_strbuf_puts(&program, "} { func.func @main() { return } }");
  mp_status_t status = mp_strbuf_status(&program);
  if (status == NULL) status = mp_read_text(mp_strbuf_text(&program), program.size, &parsed);
  mp_strbuf_deinit(&program);
  MP_RETURN_IF_ERROR(mp_status_annotate(status, "backend_config"));
  *out_dict = mp_attr_dict_get(parsed->attrs, MP_ATTR_MHLO_BACKEND_CONFIG);
  mp_module_adopt(b->h->module, parsed);
  if (*out_dict != NULL && (*out_dict)->kind == MP_KIND_DICT) return NULL;
  return mp_status_make(MP_INVALID_ARGUMENT, "backend_config: no dictionary");
}

static mp_status_t hlo_custom_call_put_config(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                              mp_hlo_attrs_t *attrs) {
  if (inst->api_version != MP_API_TYPED_FFI) {
    mp_hlo_put_string(attrs, MP_ATTR_BACKEND_CONFIG, inst->backend_config);
    return NULL;
  }
  const mp_attr_t *dict = NULL;
  const mp_str_t text = inst->backend_config.size == 0 ? MP_STR("{}") : inst->backend_config;
  MP_RETURN_IF_ERROR(mp_hlo_error_at(inst, hlo_custom_call_parse(b, text, &dict)));
  mp_hlo_put(attrs, MP_ATTR_BACKEND_CONFIG, dict);
  return NULL;
}

// ---- layouts and aliases ----

static void hlo_custom_call_put_layouts(mp_hlo_attrs_t *attrs, mp_attr_name_t name,
                                        const mp_hlo_shape_t *const *leaves, uint32_t count) {
  const mp_attr_t **items = MP_ARENA_ARRAY(attrs->arena, const mp_attr_t *, count);
  for (uint32_t i = 0; items != NULL && i < count; ++i) {
    int64_t order[MP_MAX_RANK] = {0};
    const mp_hlo_shape_t *leaf = leaves[i];
    const uint32_t rank = leaf->type->kind == MP_TYPE_TENSOR ? leaf->type->rank : 0;
    for (uint32_t k = 0; k < rank; ++k) {
      order[k] = leaf->minor_to_major == NULL ? (int64_t)rank - 1 - k : leaf->minor_to_major[k];
    }
    mp_status_t status = mp_attr_make_ints(attrs->arena, order, rank, &items[i]);
    if (status != NULL) items = NULL;
    mp_status_ignore(status);
  }
  if (items == NULL) attrs->failed = true;
  if (items != NULL) mp_hlo_put_array(attrs, name, items, count);
}

// The layouts have a meaning only with constrain_layout.
static mp_status_t hlo_custom_call_read_layouts(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                                mp_hlo_attrs_t *attrs) {
  mp_arena_t *arena = b->h->source.arena;
  MP_ARRAY(const mp_hlo_shape_t *) leaves = {0};
  if (!inst->constrain_layout) return NULL;
  if (inst->operand_shapes.count != inst->operand_ids.count) {
    return mp_hlo_error(inst, MP_INVALID_ARGUMENT,
                        "operand_shapes_with_layout: %u shapes for %u operands",
                        inst->operand_shapes.count, inst->operand_ids.count);
  }
  for (uint32_t i = 0; i < inst->operand_shapes.count; ++i) {
    const mp_hlo_shape_t *shape = NULL;
    MP_RETURN_IF_ERROR(mp_hlo_error_at(
        inst, mp_status_annotate(mp_hlo_read_shape(&b->h->source, b->h->module->arena,
                                                   inst->operand_shapes.items[i], &shape),
                                 "operand_shapes_with_layout[%u]", i)));
    for (uint32_t k = 0; k < shape->num_leaves; ++k) {
      MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(arena, &leaves, shape->leaves[k]));
    }
  }
  hlo_custom_call_put_layouts(attrs, MP_ATTR_OPERAND_LAYOUTS, leaves.items, leaves.count);
  hlo_custom_call_put_layouts(attrs, MP_ATTR_RESULT_LAYOUTS, inst->shape->leaves,
                              inst->shape->num_leaves);
  return NULL;
}

typedef struct {
  mp_hlo_ints_t output, operand_index_path;
  int64_t operand;
} alias_t;

MP_HLO_MESSAGE(g_alias, "OutputOperandAliasing", MP_HLO_FIELD(1, INTS, alias_t, output),
               MP_HLO_FIELD(2, INT, alias_t, operand),
               MP_HLO_FIELD(3, INTS, alias_t, operand_index_path));

static mp_status_t hlo_custom_call_index(mp_arena_t *arena, const mp_hlo_ints_t *path,
                                         mp_index_list_t *out_list) {
  const int64_t *values = mp_arena_copy(arena, path->items, path->count * sizeof(*path->items));
  MP_RETURN_IF_NULL(values);
  *out_list = (mp_index_list_t){path->count, values};
  return NULL;
}

static mp_status_t hlo_custom_call_read_aliases(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                                mp_hlo_attrs_t *attrs) {
  const mp_attr_t **items =
      MP_ARENA_ARRAY(b->h->source.arena, const mp_attr_t *, inst->aliasing.count);
  MP_RETURN_IF_NULL(items);
  for (uint32_t i = 0; i < inst->aliasing.count; ++i) {
    alias_t alias = {0};
    MP_RETURN_IF_ERROR(mp_hlo_error_at(
        inst,
        mp_status_annotate(mp_hlo_decode(&b->h->source, &g_alias, inst->aliasing.items[i], &alias),
                           "output_operand_aliasing[%u]", i)));
    mp_attr_t *attr = mp_hlo_new_attr(attrs, MP_KIND_OUTPUT_ALIAS);
    MP_RETURN_IF_NULL(attr);
    attr->u.alias.operand_index = alias.operand;
    MP_RETURN_IF_ERROR(
        hlo_custom_call_index(attrs->arena, &alias.output, &attr->u.alias.output_tuple_indices));
    MP_RETURN_IF_ERROR(hlo_custom_call_index(attrs->arena, &alias.operand_index_path,
                                             &attr->u.alias.operand_tuple_indices));
    items[i] = attr;
  }
  if (inst->aliasing.count != 0) {
    mp_hlo_put_array(attrs, MP_ATTR_OUTPUT_OPERAND_ALIASES, items, inst->aliasing.count);
  }
  return NULL;
}

// ---- targets ----

static mp_status_t hlo_custom_call_put_called(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                              mp_hlo_attrs_t *attrs) {
  const mp_attr_t **names =
      MP_ARENA_ARRAY(b->h->source.arena, const mp_attr_t *, inst->called_ids.count);
  MP_RETURN_IF_NULL(names);
  for (uint32_t i = 0; i < inst->called_ids.count; ++i) {
    mp_func_t *func = NULL;
    MP_RETURN_IF_ERROR(mp_hlo_func_of(b->h, inst->called[i], &func));
    MP_RETURN_IF_ERROR(mp_attr_make_string(attrs->arena, func->name, &names[i]));
  }
  if (inst->called_ids.count != 0) {
    mp_hlo_put_array(attrs, MP_ATTR_CALLED_COMPUTATIONS, names, inst->called_ids.count);
  }
  return NULL;
}

// XLA's form of Shardy's sharding_group; the number, "0 : i64", is among the frontend's attributes.
static mp_status_t hlo_custom_call_group(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                         mp_hlo_leaves_t *out) {
  mp_hlo_attrs_t attrs = mp_hlo_attrs(b);
  mp_str_t text = {0};
  mp_value_t *member = NULL;
  long long number = 0;
  if (inst->operand_ids.count != 1) {
    return mp_hlo_error(inst, MP_INVALID_ARGUMENT, "operand_ids: %u operands where 1 is expected",
                        inst->operand_ids.count);
  }
  MP_RETURN_IF_ERROR(mp_hlo_array(b, inst, 0, &member));
  MP_RETURN_IF_ERROR(mp_hlo_frontend_text(b->h, inst, "xla.sdy.sharding_group_id", &text));
  size_t size = 0;
  while (size < text.size && text.data[size] != ' ') ++size;
  if (!mp_str_parse_i64((mp_str_t){text.data, size}, &number) || number < 0) {
    return mp_hlo_error(inst, MP_INVALID_ARGUMENT,
                        "frontend_attributes: 'xla.sdy.sharding_group_id' is not a number");
  }
  mp_hlo_put_int(&attrs, MP_ATTR_GROUP_ID, MP_DTYPE_S64, number);
  const mp_hlo_op_t op = {
      .code = MP_OP_SDY_SHARDING_GROUP, .operands = {1, &member}, .attrs = &attrs};
  return mp_hlo_emit(b, inst, &op, out);
}

mp_status_t mp_hlo_build_custom_call(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                     mp_hlo_leaves_t *out) {
  if (mp_str_is(inst->custom_call_target, "xla.sdy.ShardingGroup")) {
    return hlo_custom_call_group(b, inst, out);
  }
  mp_hlo_attrs_t attrs = mp_hlo_attrs(b);
  mp_hlo_leaves_t operands = {0};
  if (inst->api_version < MP_API_UNSPECIFIED || inst->api_version > MP_API_TYPED_FFI) {
    return mp_hlo_error(inst, MP_UNIMPLEMENTED, "custom_call_api_version: %lld is not supported",
                        (long long)inst->api_version);
  }
  MP_RETURN_IF_ERROR(mp_hlo_gather_operands(b, inst, 0, inst->operand_ids.count, &operands));
  const uint32_t version = inst->api_version == MP_API_UNSPECIFIED ? (uint32_t)MP_API_ORIGINAL
                                                                   : (uint32_t)inst->api_version;
  mp_hlo_put_enum(&attrs, MP_ATTR_API_VERSION, MP_ENUM_API_VERSION, version);
  MP_RETURN_IF_ERROR(hlo_custom_call_put_config(b, inst, &attrs));
  mp_hlo_put_string(&attrs, MP_ATTR_CALL_TARGET_NAME, inst->custom_call_target);
  MP_RETURN_IF_ERROR(hlo_custom_call_put_called(b, inst, &attrs));
  mp_hlo_put_bool(&attrs, MP_ATTR_HAS_SIDE_EFFECT, inst->has_side_effect);
  MP_RETURN_IF_ERROR(hlo_custom_call_read_layouts(b, inst, &attrs));
  MP_RETURN_IF_ERROR(hlo_custom_call_read_aliases(b, inst, &attrs));
  return mp_hlo_emit_whole(b, inst, MP_OP_CUSTOM_CALL, operands, NULL, 0, &attrs, out);
}
