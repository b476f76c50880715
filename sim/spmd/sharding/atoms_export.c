// Converts atoms back to Shardy's axes.
#include "sim/ir/mesh.h"
#include "sim/spmd/sharding/atoms.h"

// Finds the axis of the mesh to which an atom belongs, and returns the sub-axis of that atom alone.
// False when it belongs to no axis of this mesh.
static bool atoms_export_axis_of_atom(const mp_atom_space_t *space, const mp_mesh_t *mesh,
                                      uint8_t atom, mp_axis_ref_t *out_axis) {
  int64_t stride = 1;
  for (uint32_t i = mesh->num_axes; i-- > 0;) {
    const int64_t end = stride * mesh->axes[i].size;
    const int64_t atom_end = space->stride[atom] * space->prime[atom];
    if (space->stride[atom] >= stride && atom_end <= end) {
      *out_axis = (mp_axis_ref_t){mesh->axes[i].name, end / atom_end, space->prime[atom]};
      return true;
    }
    stride = end;
  }
  return false;
}

static int64_t atoms_export_axis_size(const mp_mesh_t *mesh, mp_str_t name) {
  for (uint32_t i = 0; i < mesh->num_axes; ++i) {
    if (mp_str_equal(mesh->axes[i].name, name)) return mesh->axes[i].size;
  }
  return 0;
}

// Converts a list. Atoms that follow each other in an axis become one sub-axis, or the axis itself
// if they are all of its atoms.
static mp_status_t atoms_export_list(mp_arena_t *arena, const mp_atom_space_t *space,
                                     const mp_mesh_t *mesh, const mp_atoms_t *atoms,
                                     mp_axis_list_t *out_list) {
  mp_axis_ref_t *axes = MP_ARENA_ARRAY(arena, mp_axis_ref_t, atoms->count);
  MP_RETURN_IF_NULL(axes);
  uint32_t count = 0;
  for (uint32_t i = 0; i < atoms->count; ++i) {
    mp_axis_ref_t axis = {0};
    if (!atoms_export_axis_of_atom(space, mesh, atoms->atoms[i], &axis)) continue;
    mp_axis_ref_t *last = count == 0 ? NULL : &axes[count - 1];
    if (last != NULL && mp_str_equal(last->name, axis.name) &&
        last->pre_size * last->size == axis.pre_size) {
      last->size *= axis.size;
    } else {
      axes[count++] = axis;
    }
  }
  for (uint32_t i = 0; i < count; ++i) {
    if (axes[i].pre_size == 1 && axes[i].size == atoms_export_axis_size(mesh, axes[i].name))
      axes[i].size = 0;
  }
  *out_list = (mp_axis_list_t){count, axes};
  return NULL;
}

static mp_status_t atoms_export_set(mp_arena_t *arena, const mp_atom_space_t *space,
                                    const mp_mesh_t *mesh, uint32_t set, mp_axis_list_t *out_list) {
  mp_atoms_t atoms = {0};
  for (uint32_t a = 0; a < space->count; ++a) {
    if (set >> a & 1) atoms.atoms[atoms.count++] = (uint8_t)a;
  }
  return atoms_export_list(arena, space, mesh, &atoms, out_list);
}

mp_status_t mp_atom_sharding_export(mp_arena_t *arena, const mp_atom_space_t *space,
                                    const mp_atom_sharding_t *sharding,
                                    mp_sdy_sharding_t *out_sharding) {
  // A maximal mesh has no axes, and the sharding only names the value's device.
  if (sharding->mesh->num_axes == 0 && sharding->mesh->num_device_ids == 1) {
    *out_sharding = (mp_sdy_sharding_t){.mesh = sharding->mesh};
    return NULL;
  }
  mp_dim_sharding_t *dims = MP_ARENA_ARRAY(arena, mp_dim_sharding_t, sharding->rank);
  MP_RETURN_IF_NULL(dims);
  mp_sdy_sharding_t result = {.mesh = sharding->mesh, .rank = sharding->rank, .dims = dims};
  for (uint32_t d = 0; d < sharding->rank; ++d) {
    const mp_dim_atoms_t *from = &sharding->dims[d];
    dims[d] = (mp_dim_sharding_t){.is_open = from->is_open,
                                  .priority = from->priority == 0 ? -1 : from->priority};
    MP_RETURN_IF_ERROR(
        atoms_export_list(arena, space, sharding->mesh, &from->atoms, &dims[d].axes));
  }
  MP_RETURN_IF_ERROR(
      atoms_export_set(arena, space, sharding->mesh, sharding->replicated, &result.replicated));
  MP_RETURN_IF_ERROR(
      atoms_export_set(arena, space, sharding->mesh, sharding->unreduced, &result.unreduced));
  if (sharding->unreduced != 0) result.unreduced_kind = sharding->unreduced_kind;
  *out_sharding = result;
  return NULL;
}
