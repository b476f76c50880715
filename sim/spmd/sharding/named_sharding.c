#include "sim/spmd/sharding/named_sharding.h"

#include <inttypes.h>

#include "sim/base/arena.h"
#include "sim/base/containers/array.h"
#include "sim/base/proto.h"
#include "sim/numeric/iota_list.h"

enum {
  MAX_DEVICES = 1 << 20,  // no pod has more, and a few bytes could encode any number
  MAX_FACTORS = MP_IOTA_MAX_RANK,
};

// Numbers of fields, by message.
enum { NAMED_MESH = 2, NAMED_DIM, NAMED_REPLICATED, NAMED_UNREDUCED, NAMED_MANUAL = 7 };
enum { DIM_AXES = 1 };
enum { MESH_AXES = 1, MESH_DEVICES, MESH_IOTA };
enum { AXIS_SIZE = 2 };
enum { IOTA_DIMS = 1, IOTA_PERMUTATION };
enum { REF_AXIS = 1, REF_PART };
enum { PART_PRE_SIZE = 1, PART_SIZE };

typedef MP_ARRAY(int64_t) ints_t;

// A part of an axis, or all of it: the axis' number in base (..., size, ...), of which the digit
// with that size counts; `pre_size` is the product of the sizes before it. Size 0: all of the axis.
typedef struct {
  int64_t axis, pre_size, size;
} part_t;
typedef MP_ARRAY(part_t) parts_t;

// The mesh's axes split into digits, major to minor, such that each digit is used as a whole.
typedef struct {
  int64_t size, axis, pre_size;
  bool is_used;
} factor_t;

typedef struct {
  mp_arena_t *arena;
  ints_t axes, devices, iota_dims, iota_permutation;  // of the mesh
  int64_t num_devices;
  MP_ARRAY(parts_t) dims;
  parts_t replicated, unreduced, manual;
  uint32_t num_factors;
  factor_t factors[MAX_FACTORS];
  uint32_t num_ordered;
  int64_t order[MAX_FACTORS];  // the factors as the tiles have them, major to minor
} named_t;

static mp_status_t named_sharding_error(const char *what) {
  return mp_status_make(MP_INVALID_ARGUMENT, "OpSharding.named_sharding: %s", what);
}

// ---- the message ----

static mp_status_t named_sharding_read_ints(mp_arena_t *arena, mp_proto_reader_t *reader,
                                            const mp_proto_field_t *field, ints_t *ints) {
  mp_proto_values_t values = mp_proto_values(reader, field, MP_PROTO_VARINT);
  for (uint64_t value; mp_proto_values_next(&values, &value);) {
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(arena, ints, (int64_t)value));
  }
  return NULL;
}

static mp_status_t named_sharding_read_iota(named_t *n, mp_str_t bytes) {
  mp_proto_reader_t reader = mp_proto_reader(bytes, "MeshProto.IotaTransform");
  mp_proto_field_t field;
  while (mp_proto_next(&reader, &field)) {
    if (field.number != IOTA_DIMS && field.number != IOTA_PERMUTATION) continue;
    MP_RETURN_IF_ERROR(
        named_sharding_read_ints(n->arena, &reader, &field,
                                 field.number == IOTA_DIMS ? &n->iota_dims : &n->iota_permutation));
  }
  return mp_proto_reader_status(&reader);
}

static mp_status_t named_sharding_read_axis(named_t *n, mp_str_t bytes) {
  mp_proto_reader_t reader = mp_proto_reader(bytes, "MeshProto.MeshAxis");
  mp_proto_field_t field;
  int64_t size = 0;
  while (mp_proto_next(&reader, &field)) {
    if (field.number == AXIS_SIZE) size = (int64_t)mp_proto_varint(&reader, &field);
  }
  MP_RETURN_IF_ERROR(mp_proto_reader_status(&reader));
  if (size < 1 || size > MAX_DEVICES / n->num_devices) {
    return named_sharding_error("the size of the mesh is out of range");
  }
  n->num_devices *= size;
  return MP_ARRAY_PUSH(n->arena, &n->axes, size);
}

static mp_status_t named_sharding_read_mesh(named_t *n, mp_str_t bytes) {
  mp_proto_reader_t reader = mp_proto_reader(bytes, "MeshProto");
  mp_proto_field_t field;
  while (mp_proto_next(&reader, &field)) {
    if (field.number == MESH_AXES) {
      MP_RETURN_IF_ERROR(named_sharding_read_axis(n, mp_proto_bytes(&reader, &field)));
    } else if (field.number == MESH_DEVICES) {
      MP_RETURN_IF_ERROR(named_sharding_read_ints(n->arena, &reader, &field, &n->devices));
    } else if (field.number == MESH_IOTA) {
      MP_RETURN_IF_ERROR(named_sharding_read_iota(n, mp_proto_bytes(&reader, &field)));
    }
  }
  return mp_proto_reader_status(&reader);
}

static mp_status_t named_sharding_read_part(named_t *n, mp_str_t bytes, parts_t *parts) {
  mp_proto_reader_t reader = mp_proto_reader(bytes, "AxisRefProto");
  mp_proto_field_t field, inner_field;
  part_t part = {.pre_size = 1};
  while (mp_proto_next(&reader, &field)) {
    if (field.number == REF_AXIS) part.axis = (int64_t)mp_proto_varint(&reader, &field);
    if (field.number != REF_PART) continue;
    mp_proto_reader_t inner = mp_proto_reader(mp_proto_bytes(&reader, &field), "SubAxis");
    while (mp_proto_next(&inner, &inner_field)) {
      if (inner_field.number == PART_PRE_SIZE) {
        part.pre_size = (int64_t)mp_proto_varint(&inner, &inner_field);
      } else if (inner_field.number == PART_SIZE) {
        part.size = (int64_t)mp_proto_varint(&inner, &inner_field);
      }
    }
    MP_RETURN_IF_ERROR(mp_proto_reader_status(&inner));
    if (part.size < 1) return named_sharding_error("a part of an axis has no size");
  }
  MP_RETURN_IF_ERROR(mp_proto_reader_status(&reader));
  return MP_ARRAY_PUSH(n->arena, parts, part);
}

static mp_status_t named_sharding_read_dim(named_t *n, mp_str_t bytes) {
  mp_proto_reader_t reader = mp_proto_reader(bytes, "DimensionSharding");
  mp_proto_field_t field;
  parts_t parts = {0};
  while (mp_proto_next(&reader, &field)) {
    if (field.number != DIM_AXES) continue;
    MP_RETURN_IF_ERROR(named_sharding_read_part(n, mp_proto_bytes(&reader, &field), &parts));
  }
  MP_RETURN_IF_ERROR(mp_proto_reader_status(&reader));
  return MP_ARRAY_PUSH(n->arena, &n->dims, parts);
}

static mp_status_t named_sharding_read(named_t *n, mp_str_t message) {
  mp_proto_reader_t reader = mp_proto_reader(message, "NamedShardingProto");
  mp_proto_field_t field;
  while (mp_proto_next(&reader, &field)) {
    parts_t *parts = field.number == NAMED_REPLICATED  ? &n->replicated
                     : field.number == NAMED_UNREDUCED ? &n->unreduced
                     : field.number == NAMED_MANUAL    ? &n->manual
                                                       : NULL;
    if (field.number != NAMED_MESH && field.number != NAMED_DIM && parts == NULL) continue;
    const mp_str_t bytes = mp_proto_bytes(&reader, &field);
    if (field.number == NAMED_MESH) {
      MP_RETURN_IF_ERROR(named_sharding_read_mesh(n, bytes));
    } else if (field.number == NAMED_DIM) {
      MP_RETURN_IF_ERROR(named_sharding_read_dim(n, bytes));
    } else {
      MP_RETURN_IF_ERROR(named_sharding_read_part(n, bytes, parts));
    }
  }
  return mp_proto_reader_status(&reader);
}

// ---- digits ----

// Adds a cut of the axis: after the digits whose sizes have this product.
static mp_status_t named_sharding_cut(ints_t *cuts, mp_arena_t *arena, int64_t at) {
  uint32_t i = 0;
  while (i < cuts->count && cuts->items[i] < at) ++i;
  if (i < cuts->count && cuts->items[i] == at) return NULL;
  MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(arena, cuts, at));
  for (uint32_t k = cuts->count - 1; k > i; --k) cuts->items[k] = cuts->items[k - 1];
  cuts->items[i] = at;
  return NULL;
}

static mp_status_t named_sharding_cut_axis(named_t *n, const parts_t *parts, int64_t axis,
                                           ints_t *cuts) {
  for (uint32_t i = 0; i < parts->count; ++i) {
    const part_t *part = &parts->items[i];
    int64_t end = 0;
    if (part->axis < 0 || part->axis >= n->axes.count) {
      return named_sharding_error("an axis that the mesh does not have");
    }
    if (part->axis != axis || part->size == 0) continue;
    if (part->pre_size < 1 || __builtin_mul_overflow(part->pre_size, part->size, &end) ||
        n->axes.items[axis] % end != 0) {
      return named_sharding_error("a part of an axis does not divide it");
    }
    MP_RETURN_IF_ERROR(named_sharding_cut(cuts, n->arena, part->pre_size));
    MP_RETURN_IF_ERROR(named_sharding_cut(cuts, n->arena, end));
  }
  return NULL;
}

static mp_status_t named_sharding_find_factors(named_t *n) {
  for (uint32_t axis = 0; axis < n->axes.count; ++axis) {
    ints_t cuts = {0};
    MP_RETURN_IF_ERROR(named_sharding_cut(&cuts, n->arena, 1));
    MP_RETURN_IF_ERROR(named_sharding_cut(&cuts, n->arena, n->axes.items[axis]));
    for (uint32_t d = 0; d < n->dims.count; ++d) {
      MP_RETURN_IF_ERROR(named_sharding_cut_axis(n, &n->dims.items[d], axis, &cuts));
    }
    const parts_t *const others[] = {&n->replicated, &n->unreduced, &n->manual};
    for (uint32_t i = 0; i < sizeof(others) / sizeof(others[0]); ++i) {
      MP_RETURN_IF_ERROR(named_sharding_cut_axis(n, others[i], axis, &cuts));
    }
    for (uint32_t i = 0; i + 1 < cuts.count; ++i) {
      if (n->num_factors == MAX_FACTORS) return named_sharding_error("too many axes");
      if (cuts.items[i + 1] % cuts.items[i] != 0) {
        return named_sharding_error("parts of an axis overlap");
      }
      n->factors[n->num_factors++] =
          (factor_t){cuts.items[i + 1] / cuts.items[i], axis, cuts.items[i], false};
    }
  }
  return NULL;
}

// Appends the factors of these parts to `order`; returns the product of their sizes.
static mp_status_t named_sharding_order_parts(named_t *n, const parts_t *parts, int64_t *out_size) {
  *out_size = 1;
  for (uint32_t i = 0; i < parts->count; ++i) {
    const part_t *part = &parts->items[i];
    const int64_t end = part->size == 0 ? INT64_MAX : part->pre_size * part->size;
    for (uint32_t f = 0; f < n->num_factors; ++f) {
      factor_t *factor = &n->factors[f];
      if (factor->axis != part->axis || factor->pre_size < part->pre_size ||
          factor->pre_size >= end) {
        continue;
      }
      if (factor->is_used) return named_sharding_error("an axis is used twice");
      factor->is_used = true;
      n->order[n->num_ordered++] = f;
      *out_size *= factor->size;
    }
  }
  return NULL;
}

// ---- printing ----

static void named_sharding_print_list(const int64_t *values, uint32_t count, mp_strbuf_t *out) {
  for (uint32_t i = 0; i < count; ++i) {
    mp_strbuf_printf(out, "%s%" PRId64, i == 0 ? "" : ",", values[i]);
  }
}

// The devices of the mesh, row by row; NULL when they are in order.
static mp_status_t named_sharding_mesh_devices(named_t *n, const int64_t **out_devices) {
  *out_devices = NULL;
  if (n->devices.count != 0) {
    if (n->devices.count != n->num_devices) {
      return named_sharding_error("the mesh has not as many devices as its axes say");
    }
    *out_devices = n->devices.items;
    return NULL;
  }
  if (n->iota_dims.count == 0) return NULL;
  const int64_t *permutation = n->iota_permutation.count == 0 ? NULL : n->iota_permutation.items;
  if ((permutation != NULL && n->iota_permutation.count != n->iota_dims.count) ||
      !mp_iota_fits(n->iota_dims.items, permutation, n->iota_dims.count, n->num_devices)) {
    return named_sharding_error("the mesh's iota does not fit its axes");
  }
  int64_t *devices = MP_ARENA_ARRAY(n->arena, int64_t, (size_t)n->num_devices);
  MP_RETURN_IF_NULL(devices);
  mp_iota_transposed(n->iota_dims.items, permutation, n->iota_dims.count, devices);
  *out_devices = devices;
  return NULL;
}

static mp_status_t named_sharding_print_devices(named_t *n, mp_strbuf_t *out) {
  int64_t sizes[MAX_FACTORS];
  const int64_t *devices = NULL;
  for (uint32_t f = 0; f < n->num_factors; ++f) sizes[f] = n->factors[f].size;
  MP_RETURN_IF_ERROR(named_sharding_mesh_devices(n, &devices));
  if (devices == NULL) {
    mp_strbuf_puts(out, "<=[");
    named_sharding_print_list(sizes, n->num_factors, out);
    mp_strbuf_puts(out, "]T(");
    named_sharding_print_list(n->order, n->num_ordered, out);
    mp_strbuf_puts(out, ")");
    return NULL;
  }
  int64_t *places = MP_ARENA_ARRAY(n->arena, int64_t, (size_t)n->num_devices);
  MP_RETURN_IF_NULL(places);
  mp_iota_transposed(sizes, n->order, n->num_factors, places);
  for (int64_t i = 0; i < n->num_devices; ++i) places[i] = devices[places[i]];
  named_sharding_print_list(places, (uint32_t)n->num_devices, out);
  return NULL;
}

static mp_status_t named_sharding_print_tiles(named_t *n, mp_strbuf_t *out) {
  static const char *const names[] = {"manual", "unreduced", "replicated"};
  const parts_t *const groups[] = {&n->manual, &n->unreduced, &n->replicated};
  int64_t sizes[3], tiles = 1, size = 1;
  mp_strbuf_puts(out, "devices=[");
  for (uint32_t d = 0; d < n->dims.count; ++d) {
    MP_RETURN_IF_ERROR(named_sharding_order_parts(n, &n->dims.items[d], &size));
    mp_strbuf_printf(out, "%s%" PRId64, d == 0 ? "" : ",", size);
    tiles *= size;
  }
  for (uint32_t g = 0; g < 3; ++g) {
    MP_RETURN_IF_ERROR(named_sharding_order_parts(n, groups[g], &sizes[g]));
    if (g < 2) tiles *= sizes[g];
  }
  // Unmentioned dimensions are replicated.
  for (uint32_t f = 0; f < n->num_factors; ++f) {
    if (!n->factors[f].is_used) n->order[n->num_ordered++] = f;
  }
  sizes[2] = n->num_devices / tiles;
  uint32_t num_groups = 0;
  for (uint32_t g = 0; g < 3; ++g) {
    if (sizes[g] == 1) continue;
    mp_strbuf_printf(out, "%s%" PRId64, n->dims.count == 0 && num_groups == 0 ? "" : ",", sizes[g]);
    ++num_groups;
  }
  mp_strbuf_puts(out, "]");
  MP_RETURN_IF_ERROR(named_sharding_print_devices(n, out));
  for (uint32_t g = 0, printed = 0; g < 3; ++g) {
    if (sizes[g] == 1) continue;
    mp_strbuf_printf(out, "%s%s", printed++ == 0 ? " last_tile_dims={" : ",", names[g]);
  }
  if (num_groups != 0) mp_strbuf_puts(out, "}");
  return NULL;
}

static mp_status_t named_sharding_print(named_t *n, mp_str_t message, mp_strbuf_t *out) {
  n->num_devices = 1;
  MP_RETURN_IF_ERROR(named_sharding_read(n, message));
  MP_RETURN_IF_ERROR(named_sharding_find_factors(n));
  bool says_nothing = n->unreduced.count == 0 && n->manual.count == 0;
  for (uint32_t d = 0; d < n->dims.count; ++d) says_nothing &= n->dims.items[d].count == 0;
  if (n->axes.count == 0 && n->devices.count == 1) {  // the mesh of one device
    mp_strbuf_printf(out, "{maximal device=%" PRId64 "}", n->devices.items[0]);
  } else if (n->num_devices == 1 || says_nothing) {
    mp_strbuf_puts(out, "{replicated}");
  } else {
    mp_strbuf_putc(out, '{');
    MP_RETURN_IF_ERROR(named_sharding_print_tiles(n, out));
    mp_strbuf_putc(out, '}');
  }
  return mp_strbuf_status(out);
}

mp_status_t mp_named_sharding_print(mp_str_t message, mp_strbuf_t *out) {
  named_t n = {0};
  MP_RETURN_IF_ERROR(mp_arena_create(&n.arena));
  mp_status_t status = named_sharding_print(&n, message, out);
  mp_arena_release(n.arena);
  return status;
}
