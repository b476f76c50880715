#include "sim/ir/mesh.h"
#include "sim/spmd/propagation/import_parts.h"
#include "sim/spmd/sharding/annotations.h"

// ---- reading annotations ----

static mp_status_t import_shardings_give(mp_importer_t *im, const mp_value_t *value,
                                         const mp_sdy_sharding_t *sharding, uint32_t manual) {
  if (!mp_type_is_tensor(value->type)) return NULL;
  // A maximal sharding has no dimensions, whatever the value's rank.
  const bool is_maximal = sharding->rank == 0 && sharding->mesh != NULL &&
                          sharding->mesh->num_axes == 0 && sharding->mesh->num_device_ids == 1;
  mp_atom_sharding_t **slot = &im->given[value->id];
  if (is_maximal) {
    MP_RETURN_IF_ERROR(mp_atom_sharding_create(im->arena, value->type->rank, false, slot));
    (*slot)->mesh = sharding->mesh;
    return NULL;
  }
  if (sharding->rank != value->type->rank) {
    im->is_sayable = false;
    return NULL;
  }
  bool found = false;
  MP_RETURN_IF_ERROR(mp_atom_sharding_import(im->arena, im->space, sharding, manual, slot, &found));
  im->is_sayable &= found;
  return NULL;
}

static mp_status_t import_shardings_read_block(mp_importer_t *im, mp_block_t *block,
                                               uint32_t manual);

static mp_status_t import_shardings_read_manual(mp_importer_t *im, mp_op_t *op, uint32_t manual) {
  const mp_mesh_t *mesh = NULL;
  uint32_t own = 0;
  if (!mp_manual_atoms(im->space, op, &mesh, &own)) {
    im->is_sayable = false;  // the partitioner will report the error
    return NULL;
  }
  const mp_sdy_shardings_t *in = &mp_op_attr(op, MP_ATTR_IN_SHARDINGS)->u.shardings;
  const mp_sdy_shardings_t *out = &mp_op_attr(op, MP_ATTR_OUT_SHARDINGS)->u.shardings;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const mp_value_t *arg = &op->regions[0]->args[i];
    MP_RETURN_IF_ERROR(import_shardings_give(im, arg, &in->shardings[i], manual | own));
    if (im->given[arg->id] != NULL && own != 0) im->given[arg->id]->mesh = mesh;
  }
  for (uint32_t i = 0; i < op->num_results; ++i) {
    MP_RETURN_IF_ERROR(import_shardings_give(im, &op->results[i], &out->shardings[i], manual));
    mp_import_fix_unused(im->given[op->results[i].id], mesh, own);
  }
  return import_shardings_read_block(im, op->regions[0], manual | own);
}

static mp_status_t import_shardings_read_own(mp_importer_t *im, const mp_op_t *op,
                                             uint32_t manual) {
  const bool is_constraint =
      op->code == MP_OP_SDY_SHARDING_CONSTRAINT || op->code == MP_OP_SDY_RESHARD;
  const mp_attr_t *attr = mp_op_attr(op, is_constraint ? MP_ATTR_SHARDING : MP_ATTR_SDY_SHARDING);
  if (attr == NULL) return NULL;
  if (attr->kind == MP_KIND_SHARDING && op->num_results == 1) {
    return import_shardings_give(im, &op->results[0], attr->u.sharding, manual);
  }
  if (attr->kind != MP_KIND_SHARDINGS || attr->u.shardings.count != op->num_results) return NULL;
  for (uint32_t i = 0; i < op->num_results; ++i) {
    MP_RETURN_IF_ERROR(
        import_shardings_give(im, &op->results[i], &attr->u.shardings.shardings[i], manual));
  }
  return NULL;
}

// Whether the op is in a region that computes elements for another op, such as a reducer. Nothing
// is sharded there, whatever annotations say.
static bool import_shardings_is_within_op(const mp_op_t *op) {
  const mp_op_t *parent = op->parent->parent_op;
  return parent != NULL && !mp_op_has(parent, MP_OP_TRAIT_FLOW);
}

static mp_status_t import_shardings_read_op(mp_importer_t *im, mp_op_t *op, uint32_t manual) {
  op->id = ++im->num_ops;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    mp_use_t *use = MP_ARENA_NEW(im->scratch, mp_use_t);
    MP_RETURN_IF_NULL(use);
    *use = (mp_use_t){op, i, im->uses[op->operands[i]->id]};
    im->uses[op->operands[i]->id] = use;
  }
  for (uint32_t i = 0; i < op->num_results; ++i) im->values[op->results[i].id] = &op->results[i];
  if (import_shardings_is_within_op(op)) return NULL;
  if (op->code == MP_OP_SDY_MANUAL_COMPUTATION) return import_shardings_read_manual(im, op, manual);
  MP_RETURN_IF_ERROR(import_shardings_read_own(im, op, manual));
  for (uint32_t r = 0; r < op->num_regions; ++r) {
    MP_RETURN_IF_ERROR(import_shardings_read_block(im, op->regions[r], manual));
  }
  return NULL;
}

static mp_status_t import_shardings_read_block(mp_importer_t *im, mp_block_t *block,
                                               uint32_t manual) {
  for (uint32_t i = 0; i < block->num_args; ++i) im->values[block->args[i].id] = &block->args[i];
  for (mp_op_t *op = block->first; op != NULL && im->is_sayable; op = op->next) {
    MP_RETURN_IF_ERROR(import_shardings_read_op(im, op, manual));
  }
  return NULL;
}

// Reads the shardings of parameters. A parameter without a sharding, to which propagation may not
// give one, is whole on every device.
static mp_status_t import_shardings_read_params(mp_importer_t *im) {
  const mp_func_t *main = im->module->main;
  for (uint32_t i = 0; i < main->body->num_args; ++i) {
    const mp_value_t *arg = &main->body->args[i];
    const mp_attr_t *attr = mp_annotation_of(main->arg_attrs, i);
    if (attr != NULL) {
      MP_RETURN_IF_ERROR(import_shardings_give(im, arg, attr->u.sharding, 0));
    } else if ((im->is_param_open == NULL || !im->is_param_open[i]) &&
               mp_type_is_tensor(arg->type)) {
      MP_RETURN_IF_ERROR(
          mp_atom_sharding_create(im->arena, arg->type->rank, false, &im->given[arg->id]));
    }
  }
  return NULL;
}

// ---- all of it ----

typedef struct {
  uint32_t num_groups;
  uint32_t num_constraints;  // the most constraints that may be added
} room_t;

static mp_status_t import_shardings_count_room(void *context, mp_op_t *op) {
  room_t *room = context;
  if (op->code == MP_OP_SDY_MANUAL_COMPUTATION) room->num_constraints += op->num_operands;
  if (op->code == MP_OP_SDY_SHARDING_GROUP) {
    ++room->num_groups;
    ++room->num_constraints;
  }
  return NULL;
}

static mp_status_t import_shardings_import(mp_importer_t *im, mp_import_t *out) {
  mp_block_t *body = im->module->main->body;
  room_t counts = {0};
  MP_RETURN_IF_ERROR(mp_block_walk(body, import_shardings_count_room, &counts));
  im->num_groups = counts.num_groups;
  im->num_values = mp_module_number_values(im->module);
  const size_t room = (size_t)im->num_values + counts.num_constraints;
  im->values = MP_ARENA_ARRAY(im->scratch, mp_value_t *, room + 1);
  im->given = MP_ARENA_ARRAY(im->scratch, mp_atom_sharding_t *, room + 1);
  im->uses = MP_ARENA_ARRAY(im->scratch, mp_use_t *, room + 1);
  im->is_torn = MP_ARENA_ARRAY(im->scratch, bool, room + 1);
  if (im->values == NULL || im->given == NULL || im->uses == NULL || im->is_torn == NULL) {
    return mp_status_out_of_memory();
  }
  MP_RETURN_IF_ERROR(import_shardings_read_params(im));
  MP_RETURN_IF_ERROR(import_shardings_read_block(im, body, 0));
  if (!im->is_sayable) return NULL;
  MP_RETURN_IF_ERROR(mp_import_constraints(im));
  if (im->num_groups != 0) MP_RETURN_IF_ERROR(mp_import_groups(im));
  mp_given_t *given = MP_ARENA_ARRAY(im->arena, mp_given_t, im->num_values);
  MP_RETURN_IF_NULL(given);
  for (uint32_t i = 0; i < im->num_values; ++i) {
    if (im->given[i] == NULL || im->values[i] == NULL) continue;
    given[out->num_given++] = (mp_given_t){im->values[i], im->given[i]};
  }
  out->given = given;
  return NULL;
}

mp_status_t mp_spmd_import(mp_module_t *module, const mp_atom_space_t *space,
                           const bool *is_param_open, mp_import_t *out) {
  mp_importer_t im = {.module = module,
                      .arena = module->arena,
                      .space = space,
                      .is_param_open = is_param_open,
                      .is_sayable = true};
  *out = (mp_import_t){0};
  MP_RETURN_IF_ERROR(mp_arena_create(&im.scratch));
  mp_status_t status = import_shardings_import(&im, out);
  mp_arena_release(im.scratch);
  out->is_sayable = im.is_sayable;
  return status;
}
