#include "sim/spmd/placement.h"

#include <string.h>

#include "sim/base/box.h"

mp_status_t mp_spmd_scope_top(mp_arena_t *arena, uint32_t num_partitions,
                              const mp_spmd_scope_t **out_scope) {
  mp_spmd_scope_t *scope = MP_ARENA_NEW(arena, mp_spmd_scope_t);
  int32_t *groups = MP_ARENA_ARRAY(arena, int32_t, num_partitions);
  if (scope == NULL || groups == NULL) return mp_status_out_of_memory();
  scope->num_partitions = num_partitions;
  scope->groups = groups;  // all in group 0
  *out_scope = scope;
  return NULL;
}

bool mp_spmd_scope_is_manual(const mp_spmd_scope_t *scope, mp_str_t axis) {
  for (; scope != NULL; scope = scope->parent) {
    for (uint32_t i = 0; i < scope->manual_axes.count; ++i) {
      if (mp_str_equal(scope->manual_axes.axes[i].name, axis)) return true;
    }
  }
  return false;
}

static bool list_has_axis(const mp_axis_list_t *list, mp_str_t axis) {
  for (uint32_t i = 0; i < list->count; ++i) {
    if (mp_str_equal(list->axes[i].name, axis)) return true;
  }
  return false;
}

// --- meshes ---

// A mesh resolved for P partitions: the position of each partition in the mesh's row-major order.
typedef struct {
  const mp_mesh_t *mesh;
  bool is_trivial;          // one device (or none named): sharding over it means nothing
  const int64_t *position;  // [num_partitions], NULL: the partition itself
} mp_mesh_view_t;

static mp_status_t view_mesh(mp_arena_t *arena, const mp_mesh_t *mesh, uint32_t num_partitions,
                             mp_mesh_view_t *out_view) {
  int64_t size = 1;
  for (uint32_t i = 0; i < mesh->num_axes; ++i) {
    if (__builtin_mul_overflow(size, mesh->axes[i].size, &size)) size = INT64_MAX;
  }
  mp_mesh_view_t view = {.mesh = mesh, .is_trivial = size == 1};
  if (!view.is_trivial && size != (int64_t)num_partitions) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "mesh @%.*s has %lld devices, the program %u partitions",
                          MP_STR_ARG(mesh->name), (long long)size, num_partitions);
  }
  if (!view.is_trivial && mesh->num_device_ids != 0) {
    int64_t *position = MP_ARENA_ARRAY(arena, int64_t, num_partitions);
    MP_RETURN_IF_NULL(position);
    memset(position, -1, num_partitions * sizeof(*position));
    for (uint32_t i = 0; i < mesh->num_device_ids; ++i) {
      int64_t id = mesh->device_ids[i];
      if (id < 0 || id >= (int64_t)num_partitions || position[id] >= 0 ||
          mesh->num_device_ids != num_partitions) {
        return mp_status_make(MP_INVALID_ARGUMENT,
                              "the device_ids of mesh @%.*s are no permutation of 0 .. %u",
                              MP_STR_ARG(mesh->name), num_partitions - 1);
      }
      position[id] = i;
    }
    view.position = position;
  }
  *out_view = view;
  return NULL;
}

// One (sub-)axis as digits of a mesh position: (position / stride) % size.
typedef struct {
  int64_t stride, size;
} mp_digit_t;

static mp_status_t find_digit(const mp_mesh_t *mesh, const mp_axis_ref_t *axis,
                              mp_digit_t *out_digit) {
  int64_t stride = 1;
  for (uint32_t i = mesh->num_axes; i-- > 0;) {
    int64_t size = mesh->axes[i].size;
    if (!mp_str_equal(mesh->axes[i].name, axis->name)) {
      stride *= size;
      continue;
    }
    if (axis->size == 0) {
      *out_digit = (mp_digit_t){stride, size};
      return NULL;
    }
    // "x":(m)k views x as [m, k, rest]; this is the middle factor.
    if (axis->pre_size < 1 || axis->size < 1 || axis->size > size || axis->pre_size > size ||
        size % (axis->pre_size * axis->size) != 0) {
      return mp_status_make(MP_INVALID_ARGUMENT,
                            "sub-axis \"%.*s\":(%lld)%lld does not divide its axis of size %lld",
                            MP_STR_ARG(axis->name), (long long)axis->pre_size,
                            (long long)axis->size, (long long)size);
    }
    *out_digit = (mp_digit_t){stride * (size / (axis->pre_size * axis->size)), axis->size};
    return NULL;
  }
  return mp_status_make(MP_INVALID_ARGUMENT, "mesh @%.*s has no axis \"%.*s\"",
                        MP_STR_ARG(mesh->name), MP_STR_ARG(axis->name));
}

static int64_t digit_of(const mp_mesh_view_t *view, const mp_digit_t *digit, uint32_t partition) {
  int64_t position = view->position == NULL ? (int64_t)partition : view->position[partition];
  return position / digit->stride % digit->size;
}

mp_status_t mp_spmd_scope_enter(mp_arena_t *arena, const mp_spmd_scope_t *parent,
                                const mp_mesh_t *mesh, mp_axis_list_t manual_axes,
                                const mp_spmd_scope_t **out_scope) {
  mp_spmd_scope_t *scope = MP_ARENA_NEW(arena, mp_spmd_scope_t);
  int32_t *groups = MP_ARENA_ARRAY(arena, int32_t, parent->num_partitions);
  if (scope == NULL || groups == NULL) return mp_status_out_of_memory();
  *scope = (mp_spmd_scope_t){parent, parent->num_partitions, manual_axes, groups};
  memcpy(groups, parent->groups, parent->num_partitions * sizeof(*groups));
  *out_scope = scope;
  if (mesh == NULL) return NULL;
  mp_mesh_view_t view = {0};
  MP_RETURN_IF_ERROR(view_mesh(arena, mesh, parent->num_partitions, &view));
  if (view.is_trivial) return NULL;
  // Group numbers stay below the number of partitions if the digits are folded in one by one and
  // renumbered: two partitions stay together when they were and agree on the digit.
  for (uint32_t i = 0; i < manual_axes.count; ++i) {
    if (mp_spmd_scope_is_manual(parent, manual_axes.axes[i].name)) continue;
    mp_digit_t digit = {1, 1};
    MP_RETURN_IF_ERROR(find_digit(mesh, &manual_axes.axes[i], &digit));
    int32_t *first =
        MP_ARENA_ARRAY(arena, int32_t, (size_t)parent->num_partitions * (size_t)digit.size);
    MP_RETURN_IF_NULL(first);  // 0: not seen; else new group + 1
    int32_t count = 0;
    for (uint32_t p = 0; p < parent->num_partitions; ++p) {
      int32_t *entry = &first[groups[p] * digit.size + digit_of(&view, &digit, p)];
      if (*entry == 0) *entry = ++count;
      groups[p] = *entry - 1;
    }
  }
  return NULL;
}

// --- boxes ---

static mp_status_t new_boxes(mp_arena_t *arena, const mp_spmd_scope_t *scope, const mp_type_t *type,
                             mp_boxes_t **out_boxes, int64_t **out_starts, int64_t **out_sizes) {
  size_t count = (size_t)scope->num_partitions * type->rank;
  mp_boxes_t *boxes = MP_ARENA_NEW(arena, mp_boxes_t);
  int64_t *starts = MP_ARENA_ARRAY(arena, int64_t, count);
  int64_t *sizes = MP_ARENA_ARRAY(arena, int64_t, count);
  if (boxes == NULL || starts == NULL || sizes == NULL) return mp_status_out_of_memory();
  *boxes = (mp_boxes_t){scope->num_partitions, type->rank, type->dims, starts, sizes,
                        scope->groups,         NULL};
  *out_boxes = boxes;
  *out_starts = starts;
  *out_sizes = sizes;
  return NULL;
}

// The part number `index` of `parts` equal ones (the last shorter or empty).
static void set_part(int64_t dim, int64_t parts, int64_t index, int64_t *out_start,
                     int64_t *out_size) {
  int64_t step = (dim + parts - 1) / parts;
  int64_t start = index * step < dim ? index * step : dim;
  *out_start = start;
  *out_size = dim - start < step ? dim - start : step;
}

mp_status_t mp_placement_whole(mp_arena_t *arena, const mp_spmd_scope_t *scope,
                               const mp_type_t *type, const mp_boxes_t **out_boxes) {
  mp_boxes_t *boxes = NULL;
  int64_t *starts = NULL;
  int64_t *sizes = NULL;
  MP_RETURN_IF_ERROR(new_boxes(arena, scope, type, &boxes, &starts, &sizes));
  for (uint32_t p = 0; p < scope->num_partitions; ++p) {
    memcpy(sizes + (size_t)p * type->rank, type->dims, type->rank * sizeof(*sizes));
  }
  *out_boxes = boxes;
  return NULL;
}

enum { MP_MAX_DIGITS = 64 };

// The digits that split dimension `dim`, major to minor, and how many parts they make.
static mp_status_t dim_digits(const mp_spmd_scope_t *scope, const mp_sdy_sharding_t *sharding,
                              uint32_t dim, const mp_axis_list_t *only, mp_digit_t *digits,
                              uint32_t *out_count, int64_t *out_parts) {
  const mp_axis_list_t *axes = &sharding->dims[dim].axes;
  uint32_t count = 0;
  int64_t parts = 1;
  for (uint32_t i = 0; i < axes->count; ++i) {
    if (mp_spmd_scope_is_manual(scope, axes->axes[i].name)) continue;
    if (only != NULL && !list_has_axis(only, axes->axes[i].name)) continue;
    if (count == MP_MAX_DIGITS) {
      return mp_status_make(MP_INVALID_ARGUMENT, "a dimension is sharded over more than %d axes",
                            MP_MAX_DIGITS);
    }
    MP_RETURN_IF_ERROR(find_digit(sharding->mesh, &axes->axes[i], &digits[count]));
    parts *= digits[count++].size;
  }
  *out_count = count;
  *out_parts = parts;
  return NULL;
}

// Numbers the partitions that hold terms of the same sum alike: those of one group that differ only
// in the unreduced axes. NULL when no unreduced axis counts here.
static mp_status_t find_partials(mp_arena_t *arena, const mp_spmd_scope_t *scope,
                                 const mp_mesh_view_t *view, const mp_axis_list_t *unreduced,
                                 const mp_axis_list_t *only, const int32_t **out_partials) {
  mp_digit_t digits[MP_MAX_DIGITS];
  uint32_t count = 0;
  for (uint32_t i = 0; i < unreduced->count && count < MP_MAX_DIGITS; ++i) {
    if (mp_spmd_scope_is_manual(scope, unreduced->axes[i].name)) continue;
    if (only != NULL && !list_has_axis(only, unreduced->axes[i].name)) continue;
    MP_RETURN_IF_ERROR(find_digit(view->mesh, &unreduced->axes[i], &digits[count++]));
  }
  *out_partials = NULL;
  if (count == 0) return NULL;
  int32_t *partials = MP_ARENA_ARRAY(arena, int32_t, scope->num_partitions);
  int32_t *first = MP_ARENA_ARRAY(arena, int32_t, scope->num_partitions);  // by position, + 1
  if (partials == NULL || first == NULL) return mp_status_out_of_memory();
  for (uint32_t p = 0; p < scope->num_partitions; ++p) {
    int64_t position = view->position == NULL ? (int64_t)p : view->position[p];
    for (uint32_t i = 0; i < count; ++i)
      position -= digit_of(view, &digits[i], p) * digits[i].stride;
    if (first[position] == 0) first[position] = (int32_t)p + 1;
    partials[p] = first[position] - 1;
  }
  *out_partials = partials;
  return NULL;
}

mp_status_t mp_placement_from_sdy(mp_arena_t *arena, const mp_spmd_scope_t *scope,
                                  const mp_type_t *type, const mp_sdy_sharding_t *sharding,
                                  const mp_axis_list_t *only, const mp_boxes_t **out_boxes) {
  if (sharding->unreduced.count != 0 && sharding->unreduced_kind != MP_UNREDUCED_SUM) {
    return mp_status_make(MP_UNIMPLEMENTED,
                          "unreduced axes of a maximum or minimum are not supported yet");
  }
  *out_boxes = NULL;
  if (scope->num_partitions == 1 || !mp_type_is_tensor(type)) return NULL;
  if (sharding->rank != type->rank) {
    return mp_status_make(MP_INVALID_ARGUMENT, "a sharding of rank %u on a tensor of rank %u",
                          sharding->rank, type->rank);
  }
  mp_mesh_view_t view = {0};
  MP_RETURN_IF_ERROR(view_mesh(arena, sharding->mesh, scope->num_partitions, &view));
  if (view.is_trivial) return NULL;
  mp_boxes_t *boxes = NULL;
  int64_t *starts = NULL;
  int64_t *sizes = NULL;
  MP_RETURN_IF_ERROR(new_boxes(arena, scope, type, &boxes, &starts, &sizes));
  bool is_whole = true;
  for (uint32_t d = 0; d < type->rank; ++d) {
    mp_digit_t digits[MP_MAX_DIGITS];
    uint32_t count = 0;
    int64_t parts = 1;
    MP_RETURN_IF_ERROR(dim_digits(scope, sharding, d, only, digits, &count, &parts));
    is_whole &= parts == 1;
    for (uint32_t p = 0; p < scope->num_partitions; ++p) {
      int64_t index = 0;
      for (uint32_t i = 0; i < count; ++i) {
        index = index * digits[i].size + digit_of(&view, &digits[i], p);
      }
      size_t at = (size_t)p * type->rank + d;
      set_part(type->dims[d], parts, index, &starts[at], &sizes[at]);
    }
  }
  MP_RETURN_IF_ERROR(
      find_partials(arena, scope, &view, &sharding->unreduced, only, &boxes->partials));
  if (!is_whole || boxes->partials != NULL) *out_boxes = boxes;
  return NULL;
}

bool mp_placement_equal(const mp_boxes_t *a, const mp_boxes_t *b) {
  if (a == b) return true;
  if (a == NULL || b == NULL) return false;
  if (a->rank != b->rank || a->num_partitions != b->num_partitions) return false;
  if ((a->partials == NULL) != (b->partials == NULL)) return false;
  if (a->partials != NULL &&
      memcmp(a->partials, b->partials, a->num_partitions * sizeof(*a->partials)) != 0) {
    return false;
  }
  size_t bytes = (size_t)a->num_partitions * a->rank * sizeof(int64_t);
  return memcmp(a->starts, b->starts, bytes) == 0 && memcmp(a->sizes, b->sizes, bytes) == 0;
}

mp_status_t mp_placement_local_type(mp_arena_t *arena, const mp_type_t *type,
                                    const mp_boxes_t *boxes, const mp_type_t **out_type) {
  *out_type = type;
  if (boxes == NULL) return NULL;
  int64_t dims[MP_MAX_RANK] = {0};
  for (uint32_t p = 0; p < boxes->num_partitions; ++p) {
    for (uint32_t d = 0; d < boxes->rank; ++d) {
      int64_t size = boxes->sizes[(size_t)p * boxes->rank + d];
      if (size > dims[d]) dims[d] = size;
    }
  }
  return mp_type_tensor(arena, type->dtype, dims, type->rank, out_type);
}

// --- tiles ---

// The part number of each partition in dimension d, and the number of parts; false when the parts
// are not ceil(n/k) each.
static bool parts_of_dim(const mp_boxes_t *boxes, uint32_t d, int64_t *indices,
                         int64_t *out_parts) {
  int64_t step = 0;
  for (uint32_t p = 0; p < boxes->num_partitions; ++p) {
    int64_t size = boxes->sizes[(size_t)p * boxes->rank + d];
    if (size > step) step = size;
  }
  int64_t parts = 1;
  for (uint32_t p = 0; p < boxes->num_partitions && step != 0; ++p) {
    int64_t start = boxes->starts[(size_t)p * boxes->rank + d];
    if (start % step != 0) return false;
    indices[p] = start / step;
    if (indices[p] + 1 > parts) parts = indices[p] + 1;
  }
  *out_parts = parts;
  return true;
}

// Orders the `copies` partitions of a tile by their number within their sum, then by sum: a matrix
// of terms x sums. Returns the number of terms of each sum, 1 without partial sums.
static int64_t order_terms(const mp_boxes_t *boxes, int64_t *partitions, int64_t copies,
                           int64_t *scratch) {
  if (boxes->partials == NULL) return 1;
  int64_t sums = 0;
  for (int64_t i = 0; i < copies; ++i) sums += boxes->partials[partitions[i]] == partitions[i];
  if (sums == 0 || copies % sums != 0) return 1;
  const int64_t terms = copies / sums;
  int64_t sum = 0;
  for (int64_t i = 0; i < copies; ++i) {
    if (boxes->partials[partitions[i]] != partitions[i]) continue;
    int64_t term = 0;
    for (int64_t j = 0; j < copies && term < terms; ++j) {
      if (boxes->partials[partitions[j]] != partitions[i]) continue;
      scratch[term++ * sums + sum] = partitions[j];
    }
    ++sum;
  }
  memcpy(partitions, scratch, (size_t)copies * sizeof(*partitions));
  return terms;
}

mp_status_t mp_placement_to_tiles(mp_arena_t *arena, const mp_boxes_t *boxes, bool *out_is_grid,
                                  mp_tiles_t *out_tiles) {
  const uint32_t count = boxes->num_partitions;
  int64_t *tile_of = MP_ARENA_ARRAY(arena, int64_t, count);
  int64_t *indices = MP_ARENA_ARRAY(arena, int64_t, count);
  int64_t *tiles = MP_ARENA_ARRAY(arena, int64_t, boxes->rank);
  int64_t *partitions = MP_ARENA_ARRAY(arena, int64_t, count);
  if (tile_of == NULL || indices == NULL || tiles == NULL || partitions == NULL) {
    return mp_status_out_of_memory();
  }
  *out_is_grid = false;
  int64_t num_tiles = 1;
  for (uint32_t d = 0; d < boxes->rank; ++d) {
    memset(indices, 0, count * sizeof(*indices));
    if (!parts_of_dim(boxes, d, indices, &tiles[d])) return NULL;
    num_tiles *= tiles[d];
    if (num_tiles > (int64_t)count) return NULL;
    for (uint32_t p = 0; p < count; ++p) tile_of[p] = tile_of[p] * tiles[d] + indices[p];
  }
  if (count % num_tiles != 0) return NULL;
  int64_t copies = count / num_tiles;
  memset(indices, 0, count * sizeof(*indices));  // now: copies seen of each tile
  for (uint32_t p = 0; p < count; ++p) {
    int64_t seen = indices[tile_of[p]]++;
    if (seen == copies) return NULL;
    partitions[tile_of[p] * copies + seen] = p;
  }
  int64_t terms = 1;
  for (int64_t tile = 0; tile < num_tiles; ++tile) {
    terms = order_terms(boxes, partitions + tile * copies, copies, indices);
  }
  *out_is_grid = true;
  *out_tiles = (mp_tiles_t){boxes->rank, tiles, copies, terms, partitions};
  return NULL;
}
