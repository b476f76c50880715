// Writes shardings as Shardy's annotations on every value.
#include "sim/spmd/propagation/import_shardings.h"
#include "sim/spmd/propagation/propagate.h"
#include "sim/spmd/sharding/annotations.h"

typedef struct {
  mp_module_t *module;
  const mp_propagation_t *propagation;
} annotator_t;

static mp_status_t propagate_annotate_export_one(const annotator_t *a,
                                                 const mp_atom_sharding_t *sharding,
                                                 const mp_mesh_t *mesh, mp_sdy_sharding_t *out) {
  if (sharding != NULL && sharding->mesh != NULL) {
    return mp_atom_sharding_export(a->module->arena, &a->propagation->space, sharding, out);
  }
  const uint32_t rank = sharding == NULL ? 0 : sharding->rank;
  mp_dim_sharding_t *dims = MP_ARENA_ARRAY(a->module->arena, mp_dim_sharding_t, rank);
  MP_RETURN_IF_NULL(dims);
  for (uint32_t d = 0; d < rank; ++d) {
    dims[d] = (mp_dim_sharding_t){.is_open = sharding->dims[d].is_open, .priority = -1};
  }
  *out = (mp_sdy_sharding_t){.mesh = mesh, .rank = rank, .dims = dims};
  return NULL;
}

static mp_status_t propagate_annotate_shardings_attr(const annotator_t *a, const mp_value_t *values,
                                                     uint32_t count, const mp_attr_t **out_attr) {
  const mp_mesh_t *mesh = NULL;
  *out_attr = NULL;
  for (uint32_t i = 0; i < count && mesh == NULL; ++i) {
    const mp_atom_sharding_t *sharding = a->propagation->values[values[i].id];
    if (sharding != NULL) mesh = sharding->mesh;
  }
  if (mesh == NULL) return NULL;
  mp_sdy_sharding_t *list = MP_ARENA_ARRAY(a->module->arena, mp_sdy_sharding_t, count);
  MP_RETURN_IF_NULL(list);
  for (uint32_t i = 0; i < count; ++i) {
    MP_RETURN_IF_ERROR(
        propagate_annotate_export_one(a, a->propagation->values[values[i].id], mesh, &list[i]));
  }
  return mp_annotation_make_list(a->module->arena, list, count, out_attr);
}

static mp_status_t propagate_annotate_sharding_attr(const annotator_t *a,
                                                    const mp_atom_sharding_t *sharding,
                                                    const mp_attr_t **out_attr) {
  *out_attr = NULL;
  if (sharding == NULL || sharding->mesh == NULL) return NULL;
  mp_sdy_sharding_t exported;
  MP_RETURN_IF_ERROR(propagate_annotate_export_one(a, sharding, sharding->mesh, &exported));
  return mp_annotation_make(a->module->arena, &exported, out_attr);
}

// The sharding of an operand of a manual region: by the manual axes of its annotation, and then as
// the region's argument is sharded.
static mp_status_t propagate_annotate_outer_sharding(const annotator_t *a,
                                                     const mp_sdy_sharding_t *annotation,
                                                     const mp_atom_sharding_t *inner,
                                                     const mp_mesh_t *mesh, uint32_t own,
                                                     mp_sdy_sharding_t *out) {
  mp_arena_t *arena = a->module->arena;
  mp_atom_sharding_t *outer = NULL;
  bool found = false;
  MP_RETURN_IF_ERROR(mp_atom_sharding_import(arena, &a->propagation->space, annotation,
                                             inner->manual & ~own, &outer, &found));
  if (!found) return NULL;
  for (uint32_t d = 0; d < outer->rank; ++d) {
    mp_atoms_t *atoms = &outer->dims[d].atoms;
    uint32_t kept = 0;
    while (kept < atoms->count && (own >> atoms->atoms[kept] & 1) != 0) ++kept;
    atoms->count = (uint8_t)kept;
    for (uint32_t i = 0; i < inner->dims[d].atoms.count && atoms->count < MP_MAX_ATOMS; ++i) {
      atoms->atoms[atoms->count++] = inner->dims[d].atoms.atoms[i];
    }
    outer->dims[d].is_open = inner->dims[d].is_open;
  }
  outer->replicated |= own & ~mp_atom_sharding_used(outer) & ~outer->unreduced;
  if (mesh != NULL) outer->mesh = mesh;
  return mp_atom_sharding_export(arena, &a->propagation->space, outer, out);
}

static mp_status_t propagate_annotate_manual(const annotator_t *a, mp_op_t *op) {
  const mp_mesh_t *mesh = NULL;
  uint32_t own = 0;
  if (!mp_manual_atoms(&a->propagation->space, op, &mesh, &own)) return NULL;
  const mp_sdy_shardings_t *old = &mp_op_attr(op, MP_ATTR_IN_SHARDINGS)->u.shardings;
  mp_sdy_sharding_t *list = MP_ARENA_ARRAY(a->module->arena, mp_sdy_sharding_t, op->num_operands);
  MP_RETURN_IF_NULL(list);
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const mp_atom_sharding_t *inner = a->propagation->values[op->regions[0]->args[i].id];
    list[i] = old->shardings[i];
    if (inner == NULL) continue;
    MP_RETURN_IF_ERROR(
        propagate_annotate_outer_sharding(a, &old->shardings[i], inner, mesh, own, &list[i]));
  }
  const mp_attr_t *in = NULL;
  MP_RETURN_IF_ERROR(mp_annotation_make_list(a->module->arena, list, op->num_operands, &in));
  MP_RETURN_IF_ERROR(mp_op_set_attr(a->module, op, MP_ATTR_IN_SHARDINGS, in));
  const mp_attr_t *out = NULL;
  MP_RETURN_IF_ERROR(propagate_annotate_shardings_attr(a, op->results, op->num_results, &out));
  return out == NULL ? NULL : mp_op_set_attr(a->module, op, MP_ATTR_OUT_SHARDINGS, out);
}

static mp_status_t propagate_annotate_op(void *context, mp_op_t *op) {
  const annotator_t *a = context;
  const mp_attr_t *attr = NULL;
  if (op->code == MP_OP_SDY_MANUAL_COMPUTATION) return propagate_annotate_manual(a, op);
  if (op->num_results == 0) return NULL;
  if (op->code == MP_OP_SDY_SHARDING_CONSTRAINT || op->code == MP_OP_SDY_RESHARD) {
    MP_RETURN_IF_ERROR(
        propagate_annotate_sharding_attr(a, a->propagation->values[op->results[0].id], &attr));
    return attr == NULL ? NULL : mp_op_set_attr(a->module, op, MP_ATTR_SHARDING, attr);
  }
  MP_RETURN_IF_ERROR(propagate_annotate_shardings_attr(a, op->results, op->num_results, &attr));
  return attr == NULL ? NULL : mp_op_set_attr(a->module, op, MP_ATTR_SDY_SHARDING, attr);
}

static mp_status_t propagate_annotate_main(const annotator_t *a) {
  mp_arena_t *arena = a->module->arena;
  mp_func_t *main = a->module->main;
  const uint32_t num_args = main->body->num_args;
  const mp_attr_t **args = MP_ARENA_ARRAY(arena, const mp_attr_t *, num_args);
  const mp_attr_t **results = MP_ARENA_ARRAY(arena, const mp_attr_t *, main->num_results);
  if (args == NULL || results == NULL) return mp_status_out_of_memory();
  for (uint32_t i = 0; i < num_args; ++i) {
    const mp_attr_t *attr = NULL;
    args[i] = main->arg_attrs == NULL ? NULL : main->arg_attrs[i];
    MP_RETURN_IF_ERROR(
        propagate_annotate_sharding_attr(a, a->propagation->values[main->body->args[i].id], &attr));
    if (attr != NULL) MP_RETURN_IF_ERROR(mp_annotation_set(arena, args[i], attr, &args[i]));
  }
  for (uint32_t i = 0; i < main->num_results; ++i) {
    const mp_attr_t *attr = NULL;
    results[i] = main->result_attrs == NULL ? NULL : main->result_attrs[i];
    MP_RETURN_IF_ERROR(propagate_annotate_sharding_attr(a, a->propagation->results[i], &attr));
    if (attr != NULL) MP_RETURN_IF_ERROR(mp_annotation_set(arena, results[i], attr, &results[i]));
  }
  main->arg_attrs = args;
  main->result_attrs = results;
  return NULL;
}

mp_status_t mp_propagation_annotate(mp_module_t *module, const mp_propagation_t *propagation) {
  annotator_t annotator = {module, propagation};
  MP_RETURN_IF_ERROR(propagate_annotate_main(&annotator));
  return mp_block_walk(module->main->body, propagate_annotate_op, &annotator);
}
