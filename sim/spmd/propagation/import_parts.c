// Shared by the files that read annotations.
#include "sim/spmd/propagation/import_parts.h"

#include "sim/ir/mesh.h"
#include "sim/spmd/sharding/annotations.h"

bool mp_manual_atoms(const mp_atom_space_t *space, const mp_op_t *op, const mp_mesh_t **out_mesh,
                     uint32_t *out_atoms) {
  const mp_attr_t *in = mp_op_attr(op, MP_ATTR_IN_SHARDINGS);
  const mp_attr_t *out = mp_op_attr(op, MP_ATTR_OUT_SHARDINGS);
  const mp_attr_t *axes = mp_op_attr(op, MP_ATTR_MANUAL_AXES);
  *out_mesh = NULL;
  *out_atoms = 0;
  if (in == NULL || in->kind != MP_KIND_SHARDINGS || in->u.shardings.count != op->num_operands ||
      out == NULL || out->kind != MP_KIND_SHARDINGS || out->u.shardings.count != op->num_results ||
      axes == NULL || axes->kind != MP_KIND_AXES || op->regions[0]->num_args != op->num_operands) {
    return false;
  }
  const mp_sdy_shardings_t *lists[] = {&in->u.shardings, &out->u.shardings};
  for (uint32_t side = 0; side < 2; ++side) {
    for (uint32_t i = 0; i < lists[side]->count && *out_mesh == NULL; ++i) {
      const mp_mesh_t *mesh = lists[side]->shardings[i].mesh;
      if (mesh != NULL && mp_mesh_size(mesh) > 1) *out_mesh = mesh;
    }
  }
  if (*out_mesh == NULL) return true;
  mp_atoms_t atoms = {0};
  for (uint32_t i = 0; i < axes->u.axes.count; ++i) {
    if (!mp_atoms_of_axis(space, *out_mesh, &axes->u.axes.axes[i], &atoms)) return false;
  }
  *out_atoms = mp_atoms_set(&atoms);
  return true;
}

const mp_value_t *mp_import_holder(const mp_value_t *value) {
  if (value->op != NULL || value->block->parent_op == NULL) return value;
  const mp_op_t *parent = value->block->parent_op;
  if (parent->code == MP_OP_SDY_MANUAL_COMPUTATION) return value;
  return parent->code == MP_OP_WHILE ? &parent->results[value->index] : NULL;
}

void mp_import_fix_unused(mp_atom_sharding_t *sharding, const mp_mesh_t *mesh, uint32_t own) {
  if (sharding == NULL) return;
  const uint32_t used = mp_atom_sharding_used(sharding) | sharding->unreduced;
  if (own & ~used & ~sharding->replicated) {
    sharding->replicated |= own & ~used;
    sharding->mesh = mesh;
  }
}
