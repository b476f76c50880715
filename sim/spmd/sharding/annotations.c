#include "sim/spmd/sharding/annotations.h"

bool mp_is_placement_op(const mp_op_t *op) {
  static const char *const calls[] = {
      "Sharding",        "annotate_device_placement",  "LayoutConstraint",
      "InspectSharding", "xla.sdy.FuncResultSharding", "xla.sdy.PropagationBarrier"};
  if (mp_op_info(op->code)->role == MP_OP_ROLE_SHARDING) return mp_op_has(op, MP_OP_TRAIT_MOVES);
  if (op->code != MP_OP_CUSTOM_CALL) return false;
  if (op->num_operands != 1 || op->num_results != 1) return false;
  for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); ++i) {
    if (mp_str_is(mp_op_str(op, MP_ATTR_CALL_TARGET_NAME), calls[i])) return true;
  }
  return false;
}

const mp_attr_t *mp_annotation_of(const mp_attr_t *const *dicts, uint32_t i) {
  const mp_attr_t *attr = dicts == NULL ? NULL : mp_attr_dict_get(dicts[i], MP_ATTR_SDY_SHARDING);
  return attr != NULL && attr->kind == MP_KIND_SHARDING ? attr : NULL;
}

mp_status_t mp_annotation_set(mp_arena_t *arena, const mp_attr_t *dict, const mp_attr_t *attr,
                              const mp_attr_t **out_dict) {
  const size_t count = dict != NULL && dict->kind == MP_KIND_DICT ? dict->u.dict.count : 0;
  mp_named_attr_t *items = MP_ARENA_ARRAY(arena, mp_named_attr_t, count + 1);
  mp_attr_t *result = MP_ARENA_NEW(arena, mp_attr_t);
  if (items == NULL || result == NULL) return mp_status_out_of_memory();
  size_t kept = 0;
  for (size_t i = 0; i < count; ++i) {
    const mp_named_attr_t *item = &dict->u.dict.items[i];
    if (item->name == MP_ATTR_SDY_SHARDING || item->name == MP_ATTR_MHLO_SHARDING) continue;
    items[kept++] = *item;
  }
  items[kept++] = (mp_named_attr_t){MP_ATTR_SDY_SHARDING, MP_STR("sdy.sharding"), attr};
  result->kind = MP_KIND_DICT;
  result->u.dict.items = items;
  result->u.dict.count = kept;
  *out_dict = result;
  return NULL;
}

mp_status_t mp_annotation_make(mp_arena_t *arena, const mp_sdy_sharding_t *sharding,
                               const mp_attr_t **out_attr) {
  mp_attr_t *attr = MP_ARENA_NEW(arena, mp_attr_t);
  mp_sdy_sharding_t *copy = mp_arena_copy(arena, sharding, sizeof(*sharding));
  if (attr == NULL || copy == NULL) return mp_status_out_of_memory();
  attr->kind = MP_KIND_SHARDING;
  attr->u.sharding = copy;
  *out_attr = attr;
  return NULL;
}

mp_status_t mp_annotation_make_list(mp_arena_t *arena, const mp_sdy_sharding_t *shardings,
                                    uint32_t count, const mp_attr_t **out_attr) {
  mp_attr_t *attr = MP_ARENA_NEW(arena, mp_attr_t);
  MP_RETURN_IF_NULL(attr);
  attr->kind = MP_KIND_SHARDINGS;
  attr->u.shardings = (mp_sdy_shardings_t){count, shardings};
  *out_attr = attr;
  return NULL;
}

typedef struct {
  mp_arena_t *arena;
  mp_annotations_t *out;
} collector_t;

static mp_status_t annotations_add_mesh(collector_t *collector, const mp_mesh_t *mesh) {
  mp_annotations_t *out = collector->out;
  if (mesh == NULL) return NULL;
  for (uint32_t i = 0; i < out->meshes.count; ++i) {
    if (out->meshes.items[i] == mesh) return NULL;
  }
  return MP_ARRAY_PUSH(collector->arena, &out->meshes, mesh);
}

static mp_status_t annotations_add_attr(collector_t *collector, mp_attr_name_t name,
                                        const mp_attr_t *attr) {
  if (name == MP_ATTR_MHLO_SHARDING) collector->out->has_gspmd = true;
  if (attr->kind == MP_KIND_SHARDING)
    return annotations_add_mesh(collector, attr->u.sharding->mesh);
  if (attr->kind != MP_KIND_SHARDINGS) return NULL;
  for (uint32_t i = 0; i < attr->u.shardings.count; ++i) {
    MP_RETURN_IF_ERROR(annotations_add_mesh(collector, attr->u.shardings.shardings[i].mesh));
  }
  return NULL;
}

static mp_status_t annotations_visit(void *context, mp_op_t *op) {
  for (uint32_t i = 0; i < op->num_attrs; ++i) {
    MP_RETURN_IF_ERROR(annotations_add_attr(context, op->attrs[i].name, op->attrs[i].value));
  }
  return NULL;
}

static mp_status_t annotations_add_dicts(collector_t *collector, const mp_attr_t *const *dicts,
                                         uint32_t count) {
  for (uint32_t i = 0; dicts != NULL && i < count; ++i) {
    if (dicts[i] == NULL || dicts[i]->kind != MP_KIND_DICT) continue;
    for (size_t k = 0; k < dicts[i]->u.dict.count; ++k) {
      const mp_named_attr_t *item = &dicts[i]->u.dict.items[k];
      MP_RETURN_IF_ERROR(annotations_add_attr(collector, item->name, item->value));
    }
  }
  return NULL;
}

mp_status_t mp_annotations_collect(mp_module_t *module, mp_annotations_t *out) {
  *out = (mp_annotations_t){0};
  collector_t collector = {.arena = module->arena, .out = out};
  const mp_func_t *main = module->main;
  MP_RETURN_IF_ERROR(annotations_add_dicts(&collector, main->arg_attrs, main->body->num_args));
  MP_RETURN_IF_ERROR(annotations_add_dicts(&collector, main->result_attrs, main->num_results));
  return mp_block_walk(main->body, annotations_visit, &collector);
}
