// Replica groups that are given by axes of a mesh. Devices that differ only in the named axes form
// a group. Within a group the devices are ordered along these axes in the order of their names, the
// first axis changing slowest; the groups are in the mesh's row-major order of the other axes.
#include "sim/ir/mesh.h"
#include "sim/passes/desugar/desugar_impl.h"

enum { MP_GROUPS_MAX_DEVICES = 1 << 20 };

// The digits of the group's axes. INVALID_ARGUMENT when axes overlap, as an axis that is named
// twice does.
static mp_status_t desugar_groups_group_digits(mp_arena_t *arena, const mp_mesh_t *mesh,
                                               const mp_axis_list_t *axes,
                                               mp_mesh_digit_t **out_digits, int64_t *out_members) {
  mp_mesh_digit_t *digits = MP_ARENA_ARRAY(arena, mp_mesh_digit_t, axes->count);
  MP_RETURN_IF_NULL(digits);
  const int64_t size = mp_mesh_size(mesh);
  int64_t members = 1;
  for (uint32_t i = 0; i < axes->count; ++i) {
    MP_RETURN_IF_ERROR(mp_mesh_find_digit(mesh, &axes->axes[i], &digits[i]));
    if (members * digits[i].size > size) {
      return mp_status_make(MP_INVALID_ARGUMENT, "the axes of replica_groups overlap");
    }
    members *= digits[i].size;
  }
  *out_digits = digits;
  *out_members = members;
  return NULL;
}

static mp_status_t desugar_groups_fill_table(mp_arena_t *arena, const mp_mesh_t *mesh,
                                             const mp_axis_list_t *axes,
                                             const mp_attr_t **out_table) {
  const int64_t size = mp_mesh_size(mesh);
  if (size < 1 || size > MP_GROUPS_MAX_DEVICES) {
    return mp_status_make(MP_INVALID_ARGUMENT, "mesh @%.*s is empty or larger than %d devices",
                          MP_STR_ARG(mesh->name), MP_GROUPS_MAX_DEVICES);
  }
  const int64_t *unused = NULL;
  MP_RETURN_IF_ERROR(mp_mesh_positions(arena, mesh, size, &unused));  // only to check device_ids
  mp_mesh_digit_t *digits = NULL;
  int64_t members = 1;
  MP_RETURN_IF_ERROR(desugar_groups_group_digits(arena, mesh, axes, &digits, &members));
  // group_of[position] is the number of a group, for the position in it whose named digits are all
  // 0. Going through the positions in order, this is the first position of the group.
  int64_t *group_of = MP_ARENA_ARRAY(arena, int64_t, (size_t)size);
  int64_t *table = MP_ARENA_ARRAY(arena, int64_t, (size_t)size);
  if (group_of == NULL || table == NULL) return mp_status_out_of_memory();
  for (int64_t i = 0; i < size; ++i) table[i] = -1;
  int64_t num_groups = 0;
  for (int64_t position = 0; position < size; ++position) {
    int64_t first = position;
    int64_t member = 0;
    for (uint32_t i = 0; i < axes->count; ++i) {
      const int64_t digit = mp_mesh_digit_of(digits[i], position);
      first -= digit * digits[i].stride;
      member = member * digits[i].size + digit;
    }
    if (first == position) group_of[position] = num_groups++;
    const int64_t at = first < 0 ? -1 : group_of[first] * members + member;
    if (at < 0 || at >= size || table[at] != -1) {
      return mp_status_make(MP_INVALID_ARGUMENT, "the axes of replica_groups overlap");
    }
    table[at] = mesh->num_device_ids == 0 ? position : mesh->device_ids[position];
  }
  if (num_groups * members != size) {
    return mp_status_make(MP_INVALID_ARGUMENT, "the axes of replica_groups overlap");
  }
  return mp_attr_make_table(arena, table, num_groups, members, out_table);
}

mp_status_t mp_desugar_mesh_groups(mp_module_t *module, mp_op_t *op) {
  const mp_attr_t *groups = mp_op_attr(op, MP_ATTR_REPLICA_GROUPS);
  if (groups == NULL || groups->kind != MP_KIND_MESH_GROUPS) return NULL;
  const mp_mesh_t *mesh = groups->u.mesh_groups.mesh;
  if (mesh == NULL) return mp_op_error(op, MP_INVALID_ARGUMENT, "replica_groups name no mesh");
  const mp_attr_t *table = NULL;
  MP_RETURN_IF_ERROR(mp_op_error_at(
      op, desugar_groups_fill_table(module->arena, mesh, &groups->u.mesh_groups.axes, &table)));
  return mp_op_set_attr(module, op, MP_ATTR_REPLICA_GROUPS, table);
}
