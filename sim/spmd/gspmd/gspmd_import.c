#include "sim/spmd/gspmd/gspmd_import.h"

#include <string.h>

#include "sim/spmd/gspmd/gspmd_parts.h"
#include "sim/spmd/sharding/annotations.h"

// ---- reading ----

static mp_status_t gspmd_import_read_op(void *context, mp_op_t *op) {
  mp_gspmd_importer_t *im = context;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    im->users[op->operands[i]->id] = op;
    ++im->uses[op->operands[i]->id];
  }
  // A group names no mesh, so it fits annotations of either kind.
  im->has_sdy |= (strncmp(mp_op_info(op->code)->name, "sdy.", 4) == 0 &&
                  op->code != MP_OP_SDY_SHARDING_GROUP) ||
                 mp_op_attr(op, MP_ATTR_SDY_SHARDING) != NULL;
  if (mp_gspmd_is_call(op, "SPMDFullToShardShape") ||
      mp_gspmd_is_call(op, "SPMDShardToFullShape")) {
    ++im->num_borders;
  }
  return mp_op_error_at(op, mp_gspmd_add_entries(im, mp_op_str(op, MP_ATTR_MHLO_SHARDING)));
}

static mp_str_t gspmd_import_string_in(const mp_attr_t *dict) {
  const mp_attr_t *attr = mp_attr_dict_get(dict, MP_ATTR_MHLO_SHARDING);
  return attr != NULL && attr->kind == MP_KIND_STRING ? attr->u.str : (mp_str_t){0};
}

static mp_status_t gspmd_import_read_dicts(mp_gspmd_importer_t *im, const mp_attr_t *const *dicts,
                                           uint32_t count, const char *what,
                                           const mp_func_t *func) {
  for (uint32_t i = 0; dicts != NULL && i < count; ++i) {
    im->has_sdy |= mp_attr_dict_get(dicts[i], MP_ATTR_SDY_SHARDING) != NULL;
    MP_RETURN_IF_ERROR(
        mp_status_annotate(mp_gspmd_add_entries(im, gspmd_import_string_in(dicts[i])),
                           "%s %u of %.*s", what, i, MP_STR_ARG(func->name)));
  }
  return NULL;
}

static mp_status_t gspmd_import_read_all(mp_gspmd_importer_t *im) {
  im->num_values = mp_module_number_values(im->module);
  im->users = MP_ARENA_ARRAY(im->scratch, mp_op_t *, (size_t)im->num_values + 1);
  im->uses = MP_ARENA_ARRAY(im->scratch, uint32_t, (size_t)im->num_values + 1);
  if (im->users == NULL || im->uses == NULL) return mp_status_out_of_memory();
  for (const mp_func_t *func = im->module->funcs.first; func != NULL; func = func->next) {
    if (func->body == NULL) continue;
    MP_RETURN_IF_ERROR(
        gspmd_import_read_dicts(im, func->arg_attrs, func->body->num_args, "argument", func));
    MP_RETURN_IF_ERROR(
        gspmd_import_read_dicts(im, func->result_attrs, func->num_results, "result", func));
  }
  return mp_module_walk(im->module, gspmd_import_read_op, im);
}

// ---- writing ----

static mp_status_t gspmd_import_make_attr(mp_gspmd_importer_t *im, mp_str_t text,
                                          const mp_type_t *type, const mp_op_t *op,
                                          const mp_attr_t **out_attr) {
  const mp_gspmd_entry_t *entry = mp_gspmd_find_entry(im, text);
  mp_sdy_sharding_t sharding;
  if (entry == NULL) {
    return mp_status_make(MP_INVALID_ARGUMENT, "sharding \"%.*s\" of a tuple on one value",
                          MP_STR_ARG(text));
  }
  MP_RETURN_IF_ERROR(mp_gspmd_to_sdy(im, entry, type, op, UINT32_MAX, &sharding));
  return mp_annotation_make(im->module->arena, &sharding, out_attr);
}

// Adds a value that is defined before `position` to the group in its sharding, such as {unknown
// shard_as 3}. Does nothing without a group.
static mp_status_t gspmd_import_add_group(mp_gspmd_importer_t *im, const mp_gspmd_entry_t *entry,
                                          mp_value_t *value, mp_op_t *position) {
  const mp_attr_t *id = NULL;
  if (entry == NULL || entry->sharding.group < 0) return NULL;
  MP_RETURN_IF_ERROR(mp_attr_make_int(im->module->arena, MP_DTYPE_S64, entry->sharding.group, &id));
  const mp_named_attr_t attr = {MP_ATTR_GROUP_ID, MP_STR("group_id"), id};
  const mp_op_spec_t spec = {.code = MP_OP_SDY_SHARDING_GROUP,
                             .loc = position->loc,
                             .num_operands = 1,
                             .operands = &value,
                             .num_attrs = 1,
                             .attrs = &attr};
  mp_op_t *member = NULL;
  MP_RETURN_IF_ERROR(mp_op_create(im->module, &spec, &member));
  mp_block_insert_before(position, member);
  return NULL;
}

static mp_status_t gspmd_import_become_constraint(mp_gspmd_importer_t *im, mp_op_t *op) {
  const mp_str_t text = mp_op_str(op, MP_ATTR_MHLO_SHARDING);
  const mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(gspmd_import_make_attr(im, text, op->results[0].type, op, &attr));
  mp_named_attr_t *attrs = MP_ARENA_NEW(im->module->arena, mp_named_attr_t);
  MP_RETURN_IF_NULL(attrs);
  MP_RETURN_IF_ERROR(
      gspmd_import_add_group(im, mp_gspmd_find_entry(im, text), op->operands[0], op));
  *attrs = (mp_named_attr_t){MP_ATTR_SHARDING, MP_STR("sharding"), attr};
  op->code = MP_OP_SDY_SHARDING_CONSTRAINT;
  op->attrs = attrs;
  op->num_attrs = 1;
  return NULL;
}

// Turns the sharding string of an op into sdy.sharding, one sharding for each result. As in
// Shardy's own annotations, an op without results that belongs on one device has one sharding.
static mp_status_t gspmd_import_annotate_results(mp_gspmd_importer_t *im, mp_op_t *op,
                                                 mp_str_t text) {
  uint32_t count = op->num_results;
  mp_sdy_sharding_t *list = MP_ARENA_ARRAY(im->module->arena, mp_sdy_sharding_t, (size_t)count + 1);
  const mp_attr_t *attr = NULL;
  mp_str_t element = text;
  size_t at = 0;
  MP_RETURN_IF_NULL(list);
  for (uint32_t i = 0; i < op->num_results; ++i) {
    (void)mp_gspmd_next_element(text, &at, &element);  // a single one holds for all results
    const mp_gspmd_entry_t *entry = mp_gspmd_find_entry(im, element);
    MP_RETURN_IF_ERROR(mp_gspmd_to_sdy(im, entry, op->results[i].type, NULL, UINT32_MAX, &list[i]));
    if (op->next != NULL) {
      MP_RETURN_IF_ERROR(gspmd_import_add_group(im, entry, &op->results[i], op->next));
    }
  }
  const mp_gspmd_entry_t *only = mp_gspmd_find_entry(im, text);
  if (count == 0 && only != NULL && only->sharding.kind == MP_GSPMD_MAXIMAL) {
    list[count] = (mp_sdy_sharding_t){.rank = 0};
    MP_RETURN_IF_ERROR(mp_gspmd_maximal_mesh(im, only->sharding.device, &list[count++].mesh));
  }
  MP_RETURN_IF_ERROR(mp_annotation_make_list(im->module->arena, list, count, &attr));
  mp_named_attr_t *attrs = MP_ARENA_ARRAY(im->module->arena, mp_named_attr_t, op->num_attrs);
  MP_RETURN_IF_NULL(attrs);
  for (uint32_t i = 0; i < op->num_attrs; ++i) {
    attrs[i] = op->attrs[i];
    if (attrs[i].name != MP_ATTR_MHLO_SHARDING) continue;
    attrs[i] = (mp_named_attr_t){MP_ATTR_SDY_SHARDING, MP_STR("sdy.sharding"), attr};
  }
  op->attrs = attrs;
  return NULL;
}

static mp_status_t gspmd_import_write_op(void *context, mp_op_t *op) {
  mp_gspmd_importer_t *im = context;
  const mp_str_t text = mp_op_str(op, MP_ATTR_MHLO_SHARDING);
  if (text.size == 0) return NULL;
  return mp_op_error_at(op, mp_gspmd_is_call(op, "Sharding")
                                ? gspmd_import_become_constraint(im, op)
                                : gspmd_import_annotate_results(im, op, text));
}

static mp_status_t gspmd_import_write_dicts(mp_gspmd_importer_t *im, const mp_attr_t **dicts,
                                            uint32_t count, const mp_type_t *const *types,
                                            const char *what) {
  for (uint32_t i = 0; dicts != NULL && i < count; ++i) {
    const mp_str_t text = gspmd_import_string_in(dicts[i]);
    const mp_attr_t *attr = NULL;
    if (text.size == 0) continue;
    MP_RETURN_IF_ERROR(mp_status_annotate(gspmd_import_make_attr(im, text, types[i], NULL, &attr),
                                          "%s %u of main", what, i));
    MP_RETURN_IF_ERROR(mp_annotation_set(im->module->arena, dicts[i], attr, &dicts[i]));
  }
  return NULL;
}

static mp_status_t gspmd_import_write_all(mp_gspmd_importer_t *im) {
  const mp_func_t *main = im->module->main;
  const uint32_t num_args = main->body->num_args;
  const mp_type_t **types = MP_ARENA_ARRAY(im->scratch, const mp_type_t *, num_args);
  MP_RETURN_IF_NULL(types);
  for (uint32_t i = 0; i < num_args; ++i) {
    const mp_str_t text =
        gspmd_import_string_in(main->arg_attrs == NULL ? NULL : main->arg_attrs[i]);
    types[i] = main->body->args[i].type;
    MP_RETURN_IF_ERROR(gspmd_import_add_group(im, mp_gspmd_find_entry(im, text),
                                              &main->body->args[i], main->body->first));
  }
  MP_RETURN_IF_ERROR(gspmd_import_write_dicts(im, main->arg_attrs, num_args, types, "argument"));
  MP_RETURN_IF_ERROR(gspmd_import_write_dicts(im, main->result_attrs, main->num_results,
                                              main->result_types, "result"));
  return mp_module_walk(im->module, gspmd_import_write_op, im);
}

// ---- all of it ----

static mp_status_t gspmd_import_import(mp_gspmd_importer_t *im) {
  bool possible = false;
  MP_RETURN_IF_ERROR(mp_gspmd_outline(im->module, im->scratch));
  MP_RETURN_IF_ERROR(gspmd_import_read_all(im));
  if (im->entries == NULL || im->has_sdy) return NULL;
  MP_RETURN_IF_ERROR(mp_gspmd_find_mesh(im, &possible));
  if (possible && im->num_borders != 0) {
    MP_RETURN_IF_ERROR(mp_gspmd_make_regions(im, false, &possible));
    if (possible) MP_RETURN_IF_ERROR(mp_gspmd_make_regions(im, true, &possible));
  }
  if (!possible) return NULL;
  MP_RETURN_IF_ERROR(mp_module_add_mesh(im->module, im->mesh));
  return gspmd_import_write_all(im);
}

mp_status_t mp_spmd_import_gspmd(mp_module_t *module, uint32_t num_partitions) {
  mp_gspmd_importer_t im = {.module = module, .num_partitions = num_partitions};
  if (num_partitions == 1) return NULL;
  MP_RETURN_IF_ERROR(mp_arena_create(&im.scratch));
  mp_status_t status = gspmd_import_import(&im);
  mp_arena_release(im.scratch);
  return status;
}
