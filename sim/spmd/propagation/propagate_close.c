#include <string.h>

#include "sim/spmd/propagation/propagate_parts.h"
#include "sim/spmd/sharding/annotations.h"

// The number of atoms of the mesh axis that begins at `at` in the list; 0 when no whole axis does.
static uint32_t propagate_close_axis_at(const mp_atom_space_t *space, const mp_mesh_t *mesh,
                                        const mp_atoms_t *atoms, uint32_t at) {
  for (uint32_t i = 0; i < mesh->num_axes; ++i) {
    const mp_axis_ref_t whole = {.name = mesh->axes[i].name, .pre_size = 1};
    mp_atoms_t axis = {0};
    if (!mp_atoms_of_axis(space, mesh, &whole, &axis) || axis.count == 0) continue;
    if (axis.count > atoms->count - at) continue;
    if (memcmp(axis.atoms, atoms->atoms + at, axis.count) == 0) return axis.count;
  }
  return 0;
}

// Which shardings are to be reduced.
typedef struct {
  bool closed_too;  // also closed dimensions, not only those to which propagation may have added
  bool whole_axes;  // to whole axes, if the client can name only those
} close_t;

// Drops atoms from the minor end of a dimension's list until all parts have the same size.
static void propagate_close_dim(const mp_atom_space_t *space, const mp_mesh_t *mesh, int64_t size,
                                bool whole_axes, mp_dim_atoms_t *dim) {
  mp_atoms_t *atoms = &dim->atoms;
  uint32_t kept = 0;
  int64_t left = size;
  while (kept < atoms->count) {
    const uint32_t length = whole_axes ? propagate_close_axis_at(space, mesh, atoms, kept) : 1;
    mp_atoms_t axis = {.count = (uint8_t)length};
    memcpy(axis.atoms, atoms->atoms + kept, length);
    const int64_t parts = mp_atoms_product(space, &axis);
    if (length == 0 || left == 0 || left % parts != 0) break;
    left /= parts;
    kept += length;
  }
  atoms->count = (uint8_t)kept;
}

static void propagate_close_sharding(const mp_atom_space_t *space, const mp_type_t *type,
                                     close_t how, mp_atom_sharding_t *sharding) {
  if (sharding == NULL || sharding->mesh == NULL || !mp_type_is_static(type)) return;
  for (uint32_t d = 0; d < sharding->rank; ++d) {
    const bool is_open = sharding->dims[d].is_open;
    const int64_t parts = mp_atoms_product(space, &sharding->dims[d].atoms);
    const bool is_even = type->dims[d] != 0 && type->dims[d] % parts == 0;
    if (!is_open && (is_even || !how.closed_too)) continue;
    propagate_close_dim(space, sharding->mesh, type->dims[d], how.whole_axes, &sharding->dims[d]);
  }
}

static mp_status_t propagate_close_manual(void *context, mp_op_t *op) {
  const mp_propagator_t *p = context;
  const close_t how = {false, false};
  if (op->code != MP_OP_SDY_MANUAL_COMPUTATION) return NULL;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const mp_value_t *arg = &op->regions[0]->args[i];
    propagate_close_sharding(&p->out->space, arg->type, how, p->out->values[arg->id]);
  }
  for (uint32_t i = 0; i < op->num_results; ++i) {
    const mp_value_t *result = &op->results[i];
    propagate_close_sharding(&p->out->space, result->type, how, p->out->values[result->id]);
  }
  return NULL;
}

mp_status_t mp_propagate_close(mp_propagator_t *p) {
  const mp_func_t *main = p->module->main;
  for (uint32_t i = 0; i < main->body->num_args; ++i) {
    const mp_value_t *arg = &main->body->args[i];
    const close_t how = {mp_annotation_of(main->arg_attrs, i) == NULL, true};
    mp_atom_sharding_t **slot = &p->out->values[arg->id];
    if (*slot == NULL) continue;
    // A copy is changed, so that other members of its sharding group stay as they are.
    MP_RETURN_IF_ERROR(mp_atom_sharding_copy(p->arena, *slot, slot));
    propagate_close_sharding(&p->out->space, arg->type, how, *slot);
  }
  for (uint32_t i = 0; i < main->num_results; ++i) {
    const close_t how = {mp_annotation_of(main->result_attrs, i) == NULL, true};
    propagate_close_sharding(&p->out->space, main->result_types[i], how, p->out->results[i]);
  }
  return mp_block_walk(main->body, propagate_close_manual, p);
}
