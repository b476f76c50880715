// Finds the axes of a mesh in lists of devices.
#include <stdio.h>
#include <string.h>

#include "sim/spmd/gspmd/gspmd_parts.h"

typedef struct {
  uint32_t count;
  mp_mesh_digit_t digits[MP_GSPMD_MAX_AXES];  // minor to major
} digits_t;

// The position, in the common order of devices, of the device of each tile.
static bool gspmd_mesh_find_positions(const mp_gspmd_sharding_t *sharding, uint32_t num_partitions,
                                      const int64_t *position_of, int64_t *out_positions) {
  if (sharding->num_devices != (int64_t)num_partitions) return false;
  for (int64_t i = 0; i < sharding->num_devices; ++i) {
    const int64_t device = sharding->devices[i];
    out_positions[i] = position_of == NULL ? device : position_of[device];
  }
  return true;
}

// Reads the tiles along one dimension, which are `step` apart in the list, as digits of the
// position; false when they are not.
static bool gspmd_mesh_read_digits(const int64_t *positions, int64_t step, int64_t size,
                                   digits_t *out) {
  out->count = 0;
  for (int64_t unit = step, left = size; left > 1;) {
    const int64_t stride = positions[unit];
    int64_t run = 2;
    while (run < left && positions[unit * run] == run * stride) ++run;
    if (stride < 1 || left % run != 0 || out->count == MP_GSPMD_MAX_AXES) return false;
    out->digits[out->count++] = (mp_mesh_digit_t){stride, run};
    unit *= run;
    left /= run;
  }
  return true;
}

// Reads the digits of all dimensions; false when the list is not ordered by digits.
static bool gspmd_mesh_read_walk(const mp_gspmd_sharding_t *sharding, const int64_t *positions,
                                 digits_t *digits) {
  if (positions[0] != 0) return false;
  int64_t step = 1;
  for (uint32_t d = sharding->num_dims; d-- > 0;) {
    if (!gspmd_mesh_read_digits(positions, step, sharding->dims[d], &digits[d])) return false;
    step *= sharding->dims[d];
  }
  for (int64_t i = 0; i < sharding->num_devices; ++i) {
    int64_t position = 0;
    int64_t rest = i;
    for (uint32_t d = sharding->num_dims; d-- > 0;) {
      for (uint32_t k = 0; k < digits[d].count; ++k) {
        const mp_mesh_digit_t digit = digits[d].digits[k];
        position += rest % digit.size * digit.stride;
        rest /= digit.size;
      }
    }
    if (position != positions[i]) return false;
  }
  return true;
}

typedef struct {
  mp_gspmd_importer_t *im;
  int64_t *position_of;  // by device; NULL: a device's position is its number
  const int64_t *device_ids;
  int64_t *positions;  // of the current entry's tiles
  int64_t cuts[64];    // the strides at which axes begin, ascending
  uint32_t num_cuts;
} mesh_finder_t;

static bool gspmd_mesh_add_cut(mesh_finder_t *f, int64_t value) {
  uint32_t at = 0;
  while (at < f->num_cuts && f->cuts[at] < value) ++at;
  if (at < f->num_cuts && f->cuts[at] == value) return true;
  if (f->num_cuts == sizeof(f->cuts) / sizeof(f->cuts[0])) return false;
  memmove(f->cuts + at + 1, f->cuts + at, (f->num_cuts - at) * sizeof(*f->cuts));
  f->cuts[at] = value;
  ++f->num_cuts;
  return true;
}

static mp_status_t gspmd_mesh_walk_of(mesh_finder_t *f, const mp_gspmd_entry_t *entry,
                                      digits_t **out_digits, bool *out_found) {
  *out_digits = MP_ARENA_ARRAY(f->im->scratch, digits_t, entry->sharding.num_dims);
  MP_RETURN_IF_NULL(*out_digits);
  *out_found = gspmd_mesh_find_positions(&entry->sharding, f->im->num_partitions, f->position_of,
                                         f->positions) &&
               gspmd_mesh_read_walk(&entry->sharding, f->positions, *out_digits);
  return NULL;
}

// Finds the common order of the devices. It is that of their numbers, unless some list is not
// ordered by digits of the numbers; then the first such list is the order.
static mp_status_t gspmd_mesh_find_order(mesh_finder_t *f) {
  for (const mp_gspmd_entry_t *entry = f->im->entries; entry != NULL; entry = entry->next) {
    if (entry->sharding.kind != MP_GSPMD_TILED) continue;
    if (entry->sharding.num_devices != (int64_t)f->im->num_partitions) continue;
    digits_t *digits = NULL;
    bool found = false;
    MP_RETURN_IF_ERROR(gspmd_mesh_walk_of(f, entry, &digits, &found));
    if (found) continue;
    const size_t count = f->im->num_partitions;
    f->device_ids =
        mp_arena_copy(f->im->module->arena, entry->sharding.devices, count * sizeof(int64_t));
    f->position_of = MP_ARENA_ARRAY(f->im->scratch, int64_t, count);
    if (f->device_ids == NULL || f->position_of == NULL) return mp_status_out_of_memory();
    for (size_t i = 0; i < count; ++i) f->position_of[f->device_ids[i]] = (int64_t)i;
    return NULL;
  }
  return NULL;
}

static mp_status_t gspmd_mesh_collect_cuts(mesh_finder_t *f, bool *out_found) {
  *out_found = gspmd_mesh_add_cut(f, 1) && gspmd_mesh_add_cut(f, f->im->num_partitions);
  for (mp_gspmd_entry_t *entry = f->im->entries; entry != NULL && *out_found; entry = entry->next) {
    if (entry->sharding.kind != MP_GSPMD_TILED) continue;
    digits_t *digits = NULL;
    MP_RETURN_IF_ERROR(gspmd_mesh_walk_of(f, entry, &digits, out_found));
    for (uint32_t d = 0; d < entry->sharding.num_dims && *out_found; ++d) {
      for (uint32_t i = 0; i < digits[d].count; ++i) {
        const mp_mesh_digit_t digit = digits[d].digits[i];
        *out_found &=
            gspmd_mesh_add_cut(f, digit.stride) && gspmd_mesh_add_cut(f, digit.stride * digit.size);
      }
    }
  }
  for (uint32_t i = 1; i < f->num_cuts && *out_found; ++i) {
    *out_found = f->cuts[i] % f->cuts[i - 1] == 0;
  }
  *out_found &= f->num_cuts - 1 <= MP_GSPMD_MAX_AXES;
  return NULL;
}

// Makes the mesh, with one axis between each two cuts, named after its place.
static mp_status_t gspmd_mesh_make_mesh(mesh_finder_t *f) {
  mp_arena_t *arena = f->im->module->arena;
  const uint32_t count = f->num_cuts - 1;
  mp_mesh_t *mesh = MP_ARENA_NEW(arena, mp_mesh_t);
  mp_mesh_axis_t *axes = MP_ARENA_ARRAY(arena, mp_mesh_axis_t, count);
  mp_axis_ref_t *names = MP_ARENA_ARRAY(arena, mp_axis_ref_t, count);
  if (mesh == NULL || axes == NULL || names == NULL) return mp_status_out_of_memory();
  for (uint32_t i = 0; i < count; ++i) {
    char name[16];
    const int size = snprintf(name, sizeof(name), "axis_%u", i);
    const char *copy = mp_arena_strndup(arena, name, (size_t)size);
    MP_RETURN_IF_NULL(copy);
    axes[i] = (mp_mesh_axis_t){{copy, (size_t)size}, f->cuts[count - i] / f->cuts[count - i - 1]};
    names[i] = (mp_axis_ref_t){.name = axes[i].name, .pre_size = 1};
  }
  *mesh = (mp_mesh_t){.name = MP_STR("gspmd_mesh"),
                      .num_axes = count,
                      .axes = axes,
                      .num_device_ids = f->device_ids == NULL ? 0 : f->im->num_partitions,
                      .device_ids = f->device_ids};
  f->im->mesh = mesh;
  f->im->names = names;
  return NULL;
}

// Adds the axes of a digit, which are those between two cuts, before the axes so far.
static void gspmd_mesh_put_axes(const mesh_finder_t *f, mp_mesh_digit_t digit,
                                mp_gspmd_axes_t *out) {
  const uint32_t count = f->num_cuts - 1;
  mp_gspmd_axes_t axes = {0};
  for (uint32_t i = 0; i < count; ++i) {
    const int64_t stride = f->cuts[count - i - 1];
    if (stride < digit.stride || stride >= digit.stride * digit.size) continue;
    axes.axes[axes.count++] = (uint8_t)i;
  }
  for (uint32_t i = 0; i < out->count && axes.count < MP_GSPMD_MAX_AXES; ++i) {
    axes.axes[axes.count++] = out->axes[i];
  }
  *out = axes;
}

static mp_status_t gspmd_mesh_name_dims(mesh_finder_t *f) {
  for (mp_gspmd_entry_t *entry = f->im->entries; entry != NULL; entry = entry->next) {
    if (entry->sharding.kind != MP_GSPMD_TILED) continue;
    digits_t *digits = NULL;
    bool found = false;
    MP_RETURN_IF_ERROR(gspmd_mesh_walk_of(f, entry, &digits, &found));
    entry->dims = MP_ARENA_ARRAY(f->im->scratch, mp_gspmd_axes_t, entry->sharding.num_dims);
    MP_RETURN_IF_NULL(entry->dims);
    for (uint32_t d = 0; d < entry->sharding.num_dims; ++d) {
      for (uint32_t i = 0; i < digits[d].count; ++i) {
        gspmd_mesh_put_axes(f, digits[d].digits[i], &entry->dims[d]);
      }
    }
  }
  return NULL;
}

mp_status_t mp_gspmd_find_mesh(mp_gspmd_importer_t *im, bool *out_found) {
  mesh_finder_t f = {.im = im};
  f.positions = MP_ARENA_ARRAY(im->scratch, int64_t, im->num_partitions);
  MP_RETURN_IF_NULL(f.positions);
  MP_RETURN_IF_ERROR(gspmd_mesh_find_order(&f));
  MP_RETURN_IF_ERROR(gspmd_mesh_collect_cuts(&f, out_found));
  if (!*out_found) return NULL;
  MP_RETURN_IF_ERROR(gspmd_mesh_make_mesh(&f));
  return gspmd_mesh_name_dims(&f);
}
