#include "sim/spmd/sharding/placement.h"

#include <string.h>

#include "sim/base/assert.h"
#include "sim/base/containers/hash_map.h"
#include "sim/base/hash.h"
#include "sim/ir/mesh.h"

// ---- scopes ----

mp_status_t mp_spmd_scope_top(mp_arena_t *arena, uint32_t num_partitions,
                              const mp_spmd_scope_t **out_scope) {
  mp_spmd_scope_t *scope = MP_ARENA_NEW(arena, mp_spmd_scope_t);
  int32_t *groups = MP_ARENA_ARRAY(arena, int32_t, num_partitions);
  if (scope == NULL || groups == NULL) return mp_status_out_of_memory();
  MP_RETURN_IF_ERROR(mp_spmd_pool_create(arena, &scope->pool));
  scope->num_partitions = num_partitions;
  MP_RETURN_IF_ERROR(mp_spmd_pool_groups(scope->pool, groups, num_partitions, &scope->groups));
  *out_scope = scope;
  return NULL;
}

// Whether the axis is manual in this scope or in one around it.
static bool placement_is_manual(const mp_spmd_scope_t *scope, mp_str_t axis) {
  for (; scope != NULL; scope = scope->parent) {
    for (uint32_t i = 0; i < scope->manual_axes.count; ++i) {
      if (mp_str_equal(scope->manual_axes.axes[i].name, axis)) return true;
    }
  }
  return false;
}

static bool placement_list_has_axis(const mp_axis_list_t *list, mp_str_t axis) {
  for (uint32_t i = 0; i < list->count; ++i) {
    if (mp_str_equal(list->axes[i].name, axis)) return true;
  }
  return false;
}

// ---- meshes ----

// A mesh, and the position of each partition in the mesh's row-major order.
typedef struct {
  const mp_mesh_t *mesh;
  bool is_trivial;           // it has one device or no axes, so it cannot shard anything
  const int64_t *positions;  // [num_partitions]; NULL: a partition's position is its number
} mesh_view_t;

static mp_status_t placement_view_mesh(mp_arena_t *arena, const mp_mesh_t *mesh,
                                       uint32_t num_partitions, mesh_view_t *out_view) {
  if (mesh == NULL) return mp_status_make(MP_INVALID_ARGUMENT, "a sharding without a mesh");
  mesh_view_t view = {.mesh = mesh, .is_trivial = mp_mesh_size(mesh) == 1};
  if (!view.is_trivial) {
    MP_RETURN_IF_ERROR(mp_mesh_positions(arena, mesh, num_partitions, &view.positions));
  }
  *out_view = view;
  return NULL;
}

static int64_t placement_digit_of(const mesh_view_t *view, mp_mesh_digit_t digit,
                                  uint32_t partition) {
  const int64_t position = view->positions == NULL ? partition : view->positions[partition];
  return mp_mesh_digit_of(digit, position);
}

// ---- groups ----

// Sets keys[p] to partition p's position with all digits except those of the manual axes set to 0.
// All keys must be 0 before.
static mp_status_t placement_manual_keys(const mp_spmd_scope_t *parent, const mesh_view_t *view,
                                         const mp_axis_list_t *manual_axes, int64_t *keys) {
  for (uint32_t i = 0; i < manual_axes->count; ++i) {
    if (placement_is_manual(parent, manual_axes->axes[i].name)) continue;
    mp_mesh_digit_t digit = {1, 1};
    MP_RETURN_IF_ERROR(mp_mesh_find_digit(view->mesh, &manual_axes->axes[i], &digit));
    for (uint32_t p = 0; p < parent->num_partitions; ++p) {
      const int64_t key = placement_digit_of(view, digit, p) * digit.stride;
      // An axis may be named twice; its digit is added once.
      if (keys[p] / digit.stride % digit.size == 0) keys[p] += key;
    }
  }
  return NULL;
}

typedef struct {
  uint64_t hash;       // of the pair (parent's group, key)
  uint32_t partition;  // the first partition with this pair
} group_entry_t;

// Numbers the pairs (parent's group, key) in the order of their first partition. So partitions are
// in one group if they were in one before and agree on the manual axes.
static mp_status_t placement_number_groups(mp_arena_t *scratch, const mp_spmd_scope_t *parent,
                                           const int64_t *keys, int32_t *groups) {
  MP_HASH_MAP(group_entry_t) firsts = {0};
  for (uint32_t p = 0; p < parent->num_partitions; ++p) {
    const uint64_t hash = mp_hash_u64((uint64_t)parent->groups[p], (uint64_t)keys[p]);
    const group_entry_t wanted = {hash, p}, *first;
    MP_HASH_MAP_EACH(&firsts, hash, first) {
      const uint32_t other = first->partition;
      if (parent->groups[other] == parent->groups[p] && keys[other] == keys[p]) break;
    }
    groups[p] = first != NULL ? groups[first->partition] : (int32_t)firsts.map.count;
    if (first == NULL) MP_RETURN_IF_ERROR(MP_HASH_MAP_ADD(scratch, &firsts, &wanted));
  }
  return NULL;
}

static mp_status_t placement_make_groups(mp_arena_t *scratch, const mp_spmd_scope_t *parent,
                                         const mp_mesh_t *mesh, const mp_axis_list_t *manual_axes,
                                         const int32_t **out_groups) {
  const uint32_t count = parent->num_partitions;
  mesh_view_t view = {0};
  MP_RETURN_IF_ERROR(placement_view_mesh(scratch, mesh, count, &view));
  *out_groups = parent->groups;
  if (view.is_trivial) return NULL;
  int64_t *keys = MP_ARENA_ARRAY(scratch, int64_t, count);
  int32_t *groups = MP_ARENA_ARRAY(scratch, int32_t, count);
  if (keys == NULL || groups == NULL) return mp_status_out_of_memory();
  MP_RETURN_IF_ERROR(placement_manual_keys(parent, &view, manual_axes, keys));
  MP_RETURN_IF_ERROR(placement_number_groups(scratch, parent, keys, groups));
  return mp_spmd_pool_groups(parent->pool, groups, count, out_groups);
}

mp_status_t mp_spmd_scope_enter(mp_arena_t *arena, const mp_spmd_scope_t *parent,
                                const mp_mesh_t *mesh, mp_axis_list_t manual_axes,
                                const mp_spmd_scope_t **out_scope) {
  mp_spmd_scope_t *scope = MP_ARENA_NEW(arena, mp_spmd_scope_t);
  MP_RETURN_IF_NULL(scope);
  *scope = (mp_spmd_scope_t){.parent = parent,
                             .num_partitions = parent->num_partitions,
                             .manual_axes = manual_axes,
                             .groups = parent->groups,
                             .pool = parent->pool};
  if (mesh != NULL && parent->num_partitions > 1) {
    mp_arena_t *scratch = NULL;
    MP_RETURN_IF_ERROR(mp_arena_create(&scratch));
    mp_status_t status = placement_make_groups(scratch, parent, mesh, &manual_axes, &scope->groups);
    mp_arena_release(scratch);
    MP_RETURN_IF_ERROR(status);
  }
  *out_scope = scope;
  return NULL;
}

// ---- boxes ----

mp_status_t mp_placement_start(const mp_spmd_scope_t *scope, const mp_type_t *type,
                               mp_boxes_t *out_boxes, int64_t **out_starts, int64_t **out_sizes) {
  if (type->rank > MP_MAX_RANK) {
    return mp_status_make(MP_UNIMPLEMENTED, "a tensor of rank %u; at most %d are supported",
                          type->rank, MP_MAX_RANK);
  }
  const size_t count = (size_t)scope->num_partitions * type->rank;
  int64_t *numbers = NULL;
  MP_RETURN_IF_ERROR(mp_spmd_pool_scratch(scope->pool, 2 * (uint64_t)count, &numbers));
  memset(numbers, 0, 2 * count * sizeof(*numbers));
  *out_boxes = (mp_boxes_t){.num_partitions = scope->num_partitions,
                            .rank = type->rank,
                            .dims = type->dims,
                            .starts = numbers,
                            .sizes = numbers + count,
                            .groups = scope->groups};
  *out_starts = numbers;
  *out_sizes = numbers + count;
  return NULL;
}

void mp_placement_part(int64_t dim, int64_t parts, int64_t index, int64_t *out_start,
                       int64_t *out_size) {
  MP_ASSERT(dim >= 0 && parts >= 1 && index >= 0 && index < parts);
  const int64_t step = dim == 0 ? 1 : (dim - 1) / parts + 1;
  // Empty parts start beyond the end. There are at most as many parts as partitions, so this could
  // overflow only for dimensions near the largest integer, for which no memory suffices.
  int64_t start;
  if (__builtin_mul_overflow(index, step, &start)) start = INT64_MAX;
  *out_start = start;
  if (start >= dim) {
    *out_size = 0;
  } else {
    *out_size = dim - start < step ? dim - start : step;
  }
}

mp_status_t mp_placement_whole(const mp_spmd_scope_t *scope, const mp_type_t *type,
                               const mp_boxes_t **out_boxes) {
  mp_boxes_t boxes;
  int64_t *starts = NULL;
  int64_t *sizes = NULL;
  MP_RETURN_IF_ERROR(mp_placement_start(scope, type, &boxes, &starts, &sizes));
  for (uint32_t p = 0; p < scope->num_partitions && type->rank != 0; ++p) {
    memcpy(sizes + (size_t)p * type->rank, type->dims, type->rank * sizeof(*sizes));
  }
  return mp_spmd_pool_boxes(scope->pool, &boxes, out_boxes);
}

enum { MP_MAX_DIGITS = 64 };

// The digits that cut a tensor: those of each dimension in turn, major to minor, and then the
// unreduced ones.
typedef struct {
  uint32_t count;
  mp_mesh_digit_t digits[MP_MAX_DIGITS];
  uint32_t end[MP_MAX_RANK];  // the end of each dimension's digits in the list
  uint32_t num_dim_digits;
} split_t;

// Whether a digit overlaps with one of the list: their ranges [stride, stride * size) do.
static bool placement_overlaps(const split_t *split, mp_mesh_digit_t digit) {
  for (uint32_t i = 0; i < split->count; ++i) {
    const mp_mesh_digit_t other = split->digits[i];
    if (digit.stride < other.stride * other.size && other.stride < digit.stride * digit.size) {
      return true;
    }
  }
  return false;
}

static bool placement_counts(const mp_spmd_scope_t *scope, const mp_axis_list_t *only,
                             mp_str_t axis) {
  return !placement_is_manual(scope, axis) && (only == NULL || placement_list_has_axis(only, axis));
}

// Adds the digit of one axis, unless the axis is manual or not requested.
static mp_status_t placement_add_digit(const mp_spmd_scope_t *scope, const mp_mesh_t *mesh,
                                       const mp_axis_ref_t *axis, const mp_axis_list_t *only,
                                       split_t *split) {
  mp_mesh_digit_t digit = {1, 1};
  if (!placement_counts(scope, only, axis->name)) return NULL;
  MP_RETURN_IF_ERROR(mp_mesh_find_digit(mesh, axis, &digit));
  if (digit.size == 1) return NULL;
  if (split->count == MP_MAX_DIGITS || placement_overlaps(split, digit)) {
    return mp_status_make(MP_INVALID_ARGUMENT, "a sharding uses axis \"%.*s\" twice",
                          MP_STR_ARG(axis->name));
  }
  split->digits[split->count++] = digit;
  return NULL;
}

// Finds the digits of a sharding. Products of disjoint digits are at most the mesh's size, so that
// nothing can overflow.
static mp_status_t placement_split_of(const mp_spmd_scope_t *scope,
                                      const mp_sdy_sharding_t *sharding, const mp_axis_list_t *only,
                                      split_t *split) {
  split->count = 0;
  for (uint32_t d = 0; d < sharding->rank; ++d) {
    const mp_axis_list_t *axes = &sharding->dims[d].axes;
    for (uint32_t i = 0; i < axes->count; ++i) {
      MP_RETURN_IF_ERROR(placement_add_digit(scope, sharding->mesh, &axes->axes[i], only, split));
    }
    split->end[d] = split->count;
  }
  split->num_dim_digits = split->count;
  for (uint32_t i = 0; i < sharding->unreduced.count; ++i) {
    MP_RETURN_IF_ERROR(
        placement_add_digit(scope, sharding->mesh, &sharding->unreduced.axes[i], only, split));
  }
  return NULL;
}

static void placement_fill_dim(const mesh_view_t *view, const mp_boxes_t *boxes,
                               const split_t *split, uint32_t d, int64_t *starts, int64_t *sizes) {
  const uint32_t begin = d == 0 ? 0 : split->end[d - 1];
  int64_t parts = 1;
  for (uint32_t i = begin; i < split->end[d]; ++i) parts *= split->digits[i].size;
  for (uint32_t p = 0; p < boxes->num_partitions; ++p) {
    int64_t index = 0;
    for (uint32_t i = begin; i < split->end[d]; ++i) {
      index = index * split->digits[i].size + placement_digit_of(view, split->digits[i], p);
    }
    const size_t at = (size_t)p * boxes->rank + d;
    mp_placement_part(boxes->dims[d], parts, index, &starts[at], &sizes[at]);
  }
}

// Numbers the sums: the number of a sum is the first partition that holds a term of it.
static mp_status_t placement_number_sums(mp_arena_t *scratch, const mp_spmd_scope_t *scope,
                                         const int64_t *positions, const mp_mesh_digit_t *digits,
                                         uint32_t num_digits, const int32_t **out_partials) {
  const uint32_t num_partitions = scope->num_partitions;
  int32_t *partials = MP_ARENA_ARRAY(scratch, int32_t, num_partitions);
  int32_t *first = MP_ARENA_ARRAY(scratch, int32_t, num_partitions);  // by position, plus 1
  if (partials == NULL || first == NULL) return mp_status_out_of_memory();
  for (uint32_t p = 0; p < num_partitions; ++p) {
    const int64_t position = positions == NULL ? (int64_t)p : positions[p];
    int64_t common = position;
    for (uint32_t i = 0; i < num_digits; ++i) {
      common -= mp_mesh_digit_of(digits[i], position) * digits[i].stride;
    }
    MP_ASSERT(common >= 0 && common < (int64_t)num_partitions);
    if (first[common] == 0) first[common] = (int32_t)p + 1;
    partials[p] = first[common] - 1;
  }
  return mp_spmd_pool_groups(scope->pool, partials, num_partitions, out_partials);
}

mp_status_t mp_placement_partials(const mp_spmd_scope_t *scope, const int64_t *positions,
                                  const mp_mesh_digit_t *digits, uint32_t num_digits,
                                  const int32_t **out_partials) {
  *out_partials = NULL;
  if (num_digits == 0) return NULL;
  mp_arena_t *scratch = NULL;
  MP_RETURN_IF_ERROR(mp_arena_create(&scratch));
  mp_status_t status =
      placement_number_sums(scratch, scope, positions, digits, num_digits, out_partials);
  mp_arena_release(scratch);
  return status;
}

static mp_status_t placement_boxes_from_sdy(mp_arena_t *scratch, const mp_spmd_scope_t *scope,
                                            const mp_type_t *type,
                                            const mp_sdy_sharding_t *sharding,
                                            const mp_axis_list_t *only,
                                            const mp_boxes_t **out_boxes) {
  mesh_view_t view = {0};
  MP_RETURN_IF_ERROR(placement_view_mesh(scratch, sharding->mesh, scope->num_partitions, &view));
  *out_boxes = NULL;
  if (view.is_trivial) return NULL;
  split_t split;
  MP_RETURN_IF_ERROR(placement_split_of(scope, sharding, only, &split));
  if (split.count == 0) return NULL;
  mp_boxes_t boxes;
  int64_t *starts = NULL;
  int64_t *sizes = NULL;
  MP_RETURN_IF_ERROR(mp_placement_start(scope, type, &boxes, &starts, &sizes));
  for (uint32_t d = 0; d < type->rank; ++d)
    placement_fill_dim(&view, &boxes, &split, d, starts, sizes);
  MP_RETURN_IF_ERROR(mp_placement_partials(scope, view.positions,
                                           split.digits + split.num_dim_digits,
                                           split.count - split.num_dim_digits, &boxes.partials));
  boxes.unreduced_kind = sharding->unreduced_kind;
  return mp_spmd_pool_boxes(scope->pool, &boxes, out_boxes);
}

mp_status_t mp_placement_from_sdy(const mp_spmd_scope_t *scope, const mp_type_t *type,
                                  const mp_sdy_sharding_t *sharding, const mp_axis_list_t *only,
                                  const mp_boxes_t **out_boxes) {
  *out_boxes = NULL;
  if (scope->num_partitions == 1 || !mp_type_is_static(type)) return NULL;
  if (sharding->rank != type->rank || type->rank > MP_MAX_RANK) {
    return mp_status_make(MP_INVALID_ARGUMENT, "a sharding of rank %u on a tensor of rank %u",
                          sharding->rank, type->rank);
  }
  // Not in the module's arena, which would keep the positions of device_ids as long as the module.
  mp_arena_t *scratch = NULL;
  MP_RETURN_IF_ERROR(mp_arena_create(&scratch));
  mp_status_t status = placement_boxes_from_sdy(scratch, scope, type, sharding, only, out_boxes);
  mp_arena_release(scratch);
  return status;
}

bool mp_placement_is_even(const mp_boxes_t *boxes) {
  const size_t bytes = boxes->rank * sizeof(*boxes->sizes);
  for (uint32_t p = 1; p < boxes->num_partitions && bytes != 0; ++p) {
    if (memcmp(boxes->sizes, boxes->sizes + (size_t)p * boxes->rank, bytes) != 0) return false;
  }
  return true;
}

bool mp_placement_equal(const mp_boxes_t *a, const mp_boxes_t *b) {
  if (a == b) return true;
  if (a == NULL || b == NULL) return false;
  if (a->rank != b->rank || a->num_partitions != b->num_partitions) return false;
  // Both arrays come from the pool, in which equal ones are one object.
  if (a->partials != b->partials) return false;
  if (a->partials != NULL && a->unreduced_kind != b->unreduced_kind) return false;
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

// ---- tiles ----

// Finds the number of each partition's part in dimension d, and the number of parts; false when the
// parts do not have ceil(n/k) elements each.
static bool placement_parts_of_dim(const mp_boxes_t *boxes, uint32_t d, int64_t *indices,
                                   int64_t *out_parts) {
  int64_t step = 1;
  for (uint32_t p = 0; p < boxes->num_partitions; ++p) {
    int64_t size = boxes->sizes[(size_t)p * boxes->rank + d];
    if (size > step) step = size;
  }
  int64_t parts = 1;
  for (uint32_t p = 0; p < boxes->num_partitions; ++p) {
    int64_t start = boxes->starts[(size_t)p * boxes->rank + d];
    if (start % step != 0) return false;
    indices[p] = start / step;
    if (indices[p] + 1 > parts) parts = indices[p] + 1;
  }
  *out_parts = parts;
  const int64_t dim = boxes->dims[d];
  if (parts < (dim - 1) / step + 1 || (dim > 0 && step != (dim - 1) / parts + 1)) return false;
  for (uint32_t p = 0; p < boxes->num_partitions; ++p) {
    int64_t size = dim - indices[p] * step;
    if (size < 0) size = 0;
    if (size > step) size = step;
    if (boxes->sizes[(size_t)p * boxes->rank + d] != size) return false;
  }
  return true;
}

// Orders the `copies` partitions of a tile by their number within their sum, and then by sum, as a
// matrix of terms x sums. Returns the number of terms of each sum, which is 1 if the value is no
// sum. `row_of` and `terms_of` have room for one number per partition.
static int64_t placement_order_terms(const mp_boxes_t *boxes, int64_t *partitions, int64_t copies,
                                     int64_t *row_of, int64_t *terms_of, int64_t *ordered) {
  if (boxes->partials == NULL) return 1;
  int64_t sums = 0;
  for (int64_t i = 0; i < copies; ++i) {
    const int64_t p = partitions[i];
    terms_of[p] = 0;
    if (boxes->partials[p] == p) row_of[p] = sums++;
  }
  if (sums == 0 || copies % sums != 0) return 1;
  const int64_t terms = copies / sums;
  for (int64_t i = 0; i < copies; ++i) {
    const int64_t first = boxes->partials[partitions[i]];
    if (terms_of[first] == terms) return 1;
    ordered[terms_of[first]++ * sums + row_of[first]] = partitions[i];
  }
  memcpy(partitions, ordered, (size_t)copies * sizeof(*partitions));
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
    if (!placement_parts_of_dim(boxes, d, indices, &tiles[d])) return NULL;
    if (tiles[d] > (int64_t)count) return NULL;
    num_tiles *= tiles[d];
    if (num_tiles > (int64_t)count) return NULL;
    for (uint32_t p = 0; p < count; ++p) tile_of[p] = tile_of[p] * tiles[d] + indices[p];
  }
  if (count % num_tiles != 0) return NULL;
  int64_t copies = count / num_tiles;
  memset(indices, 0, count * sizeof(*indices));  // from here on: the copies seen of each tile
  for (uint32_t p = 0; p < count; ++p) {
    int64_t seen = indices[tile_of[p]]++;
    if (seen == copies) return NULL;
    partitions[tile_of[p] * copies + seen] = p;
  }
  int64_t terms = 1;
  int64_t *ordered = MP_ARENA_ARRAY(arena, int64_t, count);
  MP_RETURN_IF_NULL(ordered);
  for (int64_t tile = 0; tile < num_tiles; ++tile) {
    terms =
        placement_order_terms(boxes, partitions + tile * copies, copies, indices, tile_of, ordered);
  }
  *out_is_grid = true;
  *out_tiles = (mp_tiles_t){boxes->rank, tiles, copies, terms, partitions};
  return NULL;
}
