#include "sim/ir/mesh.h"

#include <string.h>

#include "sim/base/assert.h"

int64_t mp_mesh_size(const mp_mesh_t *mesh) {
  int64_t size = 1;
  for (uint32_t i = 0; i < mesh->num_axes; ++i) {
    if (mesh->axes[i].size <= 0) return 0;
    if (__builtin_mul_overflow(size, mesh->axes[i].size, &size)) size = INT64_MAX;
  }
  return size;
}

mp_status_t mp_mesh_find_digit(const mp_mesh_t *mesh, const mp_axis_ref_t *axis,
                               mp_mesh_digit_t *out_digit) {
  int64_t stride = 1;
  for (uint32_t i = mesh->num_axes; i-- > 0;) {
    const int64_t size = mesh->axes[i].size;
    if (!mp_str_equal(mesh->axes[i].name, axis->name)) {
      stride *= size;
      continue;
    }
    if (axis->size == 0) {
      *out_digit = (mp_mesh_digit_t){stride, size};
      return NULL;
    }
    // Both factors are compared with the axis' size first, so that their product cannot overflow.
    const bool fits = axis->pre_size >= 1 && axis->size >= 1 && axis->pre_size <= size &&
                      axis->size <= size / axis->pre_size &&
                      size % (axis->pre_size * axis->size) == 0;
    if (!fits) {
      return mp_status_make(MP_INVALID_ARGUMENT,
                            "sub-axis \"%.*s\":(%lld)%lld does not divide its axis of size %lld",
                            MP_STR_ARG(axis->name), (long long)axis->pre_size,
                            (long long)axis->size, (long long)size);
    }
    const int64_t rest = size / (axis->pre_size * axis->size);
    MP_ASSERT(rest >= 1 && axis->pre_size * axis->size * rest == size);
    *out_digit = (mp_mesh_digit_t){stride * rest, axis->size};
    return NULL;
  }
  return mp_status_make(MP_INVALID_ARGUMENT, "mesh @%.*s has no axis \"%.*s\"",
                        MP_STR_ARG(mesh->name), MP_STR_ARG(axis->name));
}

mp_status_t mp_mesh_positions(mp_arena_t *arena, const mp_mesh_t *mesh, int64_t num_devices,
                              const int64_t **out_positions) {
  const int64_t size = mp_mesh_size(mesh);
  if (size != num_devices) {
    return mp_status_make(MP_INVALID_ARGUMENT, "mesh @%.*s has %lld devices, the program %lld",
                          MP_STR_ARG(mesh->name), (long long)size, (long long)num_devices);
  }
  *out_positions = NULL;
  if (mesh->num_device_ids == 0) return NULL;
  int64_t *positions = MP_ARENA_ARRAY(arena, int64_t, (size_t)num_devices);
  MP_RETURN_IF_NULL(positions);
  memset(positions, -1, (size_t)num_devices * sizeof(*positions));
  bool is_permutation = mesh->num_device_ids == num_devices;
  for (uint32_t i = 0; is_permutation && i < mesh->num_device_ids; ++i) {
    const int64_t id = mesh->device_ids[i];
    is_permutation = id >= 0 && id < num_devices && positions[id] < 0;
    if (is_permutation) positions[id] = i;
  }
  if (!is_permutation) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "the device_ids of mesh @%.*s are not a permutation of 0 .. %lld",
                          MP_STR_ARG(mesh->name), (long long)(num_devices - 1));
  }
  *out_positions = positions;
  return NULL;
}
