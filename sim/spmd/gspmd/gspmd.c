#include "sim/spmd/gspmd/gspmd.h"

#include <string.h>

#include "sim/numeric/iota_list.h"

enum { MP_GSPMD_MAX_DIMS = MP_IOTA_MAX_RANK };

typedef struct {
  mp_arena_t *arena;
  mp_str_t text;
  size_t at;
  int64_t max_devices;
} gspmd_cursor_t;

static mp_status_t gspmd_expected(const gspmd_cursor_t *cursor, const char *what) {
  return mp_status_make(MP_INVALID_ARGUMENT, "sharding \"%.*s\", position %zu: expected %s",
                        MP_STR_ARG(cursor->text), cursor->at, what);
}

static void gspmd_skip_spaces(gspmd_cursor_t *cursor) {
  while (cursor->at < cursor->text.size && cursor->text.data[cursor->at] == ' ') ++cursor->at;
}

static bool gspmd_accept(gspmd_cursor_t *cursor, const char *word) {
  mp_str_t rest = {cursor->text.data + cursor->at, cursor->text.size - cursor->at};
  if (!mp_str_starts_with(rest, word)) return false;
  cursor->at += strlen(word);
  return true;
}

static mp_status_t gspmd_parse_int(gspmd_cursor_t *cursor, int64_t *out_value) {
  int64_t value = 0;
  size_t begin = cursor->at;
  while (cursor->at < cursor->text.size) {
    char c = cursor->text.data[cursor->at];
    if (c < '0' || c > '9') break;
    if (value > INT32_MAX / 10) return gspmd_expected(cursor, "a smaller number");
    value = value * 10 + (c - '0');
    ++cursor->at;
  }
  if (cursor->at == begin) return gspmd_expected(cursor, "a number");
  *out_value = value;
  return NULL;
}

// Reads INT ("," INT)*, at most `max` of them.
static mp_status_t gspmd_parse_ints(gspmd_cursor_t *cursor, int64_t *values, uint32_t max,
                                    uint32_t *out_count) {
  uint32_t count = 0;
  do {
    gspmd_skip_spaces(cursor);
    if (count == max) return gspmd_expected(cursor, "fewer numbers");
    MP_RETURN_IF_ERROR(gspmd_parse_int(cursor, &values[count++]));
  } while (gspmd_accept(cursor, ","));
  *out_count = count;
  return NULL;
}

static bool gspmd_parse_kind(gspmd_cursor_t *cursor, mp_gspmd_kind_t *out_kind) {
  static const struct {
    const char *word;
    mp_gspmd_kind_t kind;
  } kinds[] = {{"replicated", MP_GSPMD_REPLICATED},
               {"manual", MP_GSPMD_MANUAL},
               {"unreduced", MP_GSPMD_UNREDUCED},
               {"unknown", MP_GSPMD_UNKNOWN},
               {"maximal", MP_GSPMD_MAXIMAL}};
  for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); ++i) {
    if (gspmd_accept(cursor, kinds[i].word)) {
      *out_kind = kinds[i].kind;
      return true;
    }
  }
  return false;
}

// Reads "<=[r]T(p)": the devices are an iota over the dimensions r, transposed by p, in row-major
// order.
static mp_status_t gspmd_expand_iota(gspmd_cursor_t *cursor, int64_t count, int64_t *devices) {
  int64_t shape[MP_GSPMD_MAX_DIMS], permutation[MP_GSPMD_MAX_DIMS];
  const int64_t *order = NULL;
  uint32_t rank = 0, permuted = 0;
  MP_RETURN_IF_ERROR(gspmd_parse_ints(cursor, shape, MP_GSPMD_MAX_DIMS, &rank));
  if (!gspmd_accept(cursor, "]")) return gspmd_expected(cursor, "']'");
  if (!mp_iota_fits(shape, NULL, rank, count)) {
    return gspmd_expected(cursor, "a reshape of as many devices as there are tiles");
  }
  if (gspmd_accept(cursor, "T(")) {
    MP_RETURN_IF_ERROR(gspmd_parse_ints(cursor, permutation, MP_GSPMD_MAX_DIMS, &permuted));
    order = permutation;
    if (permuted != rank || !mp_iota_fits(shape, order, rank, count)) {
      return gspmd_expected(cursor, "a permutation of the reshape's dimensions");
    }
    if (!gspmd_accept(cursor, ")")) return gspmd_expected(cursor, "')'");
  }
  mp_iota_transposed(shape, order, rank, devices);
  return NULL;
}

static mp_status_t gspmd_parse_suffix(gspmd_cursor_t *cursor, mp_gspmd_sharding_t *sharding) {
  mp_gspmd_kind_t *kinds = MP_ARENA_ARRAY(cursor->arena, mp_gspmd_kind_t, MP_GSPMD_MAX_DIMS);
  MP_RETURN_IF_NULL(kinds);
  sharding->subgroups = kinds;
  gspmd_skip_spaces(cursor);
  if (gspmd_accept(cursor, "last_tile_dim_replicate")) {
    kinds[0] = MP_GSPMD_REPLICATED;
    sharding->num_subgroups = 1;
  } else if (gspmd_accept(cursor, "last_tile_dims={")) {
    uint32_t count = 0;
    do {
      gspmd_skip_spaces(cursor);
      if (count == MP_GSPMD_MAX_DIMS || !gspmd_parse_kind(cursor, &kinds[count++])) {
        return gspmd_expected(cursor, "replicated, manual, unreduced or maximal");
      }
    } while (gspmd_accept(cursor, ","));
    if (!gspmd_accept(cursor, "}")) return gspmd_expected(cursor, "'}'");
    sharding->num_subgroups = count;
  }
  if (sharding->num_subgroups > sharding->num_dims)
    return gspmd_expected(cursor, "fewer subgroups");
  return NULL;
}

static mp_status_t gspmd_parse_tiles(gspmd_cursor_t *cursor, mp_gspmd_sharding_t *sharding) {
  int64_t *dims = MP_ARENA_ARRAY(cursor->arena, int64_t, MP_GSPMD_MAX_DIMS);
  MP_RETURN_IF_NULL(dims);
  sharding->kind = MP_GSPMD_TILED;
  sharding->dims = dims;
  MP_RETURN_IF_ERROR(gspmd_parse_ints(cursor, dims, MP_GSPMD_MAX_DIMS, &sharding->num_dims));
  if (!gspmd_accept(cursor, "]")) return gspmd_expected(cursor, "']'");
  int64_t count = 1;
  for (uint32_t i = 0; i < sharding->num_dims; ++i) {
    if (dims[i] < 1 || __builtin_mul_overflow(count, dims[i], &count) ||
        count > cursor->max_devices) {
      return gspmd_expected(cursor, "tiles for at most as many devices as there are partitions");
    }
  }
  int64_t *devices = MP_ARENA_ARRAY(cursor->arena, int64_t, (size_t)count);
  MP_RETURN_IF_NULL(devices);
  sharding->num_devices = count;
  sharding->devices = devices;
  gspmd_skip_spaces(cursor);
  if (gspmd_accept(cursor, "<=[")) {
    MP_RETURN_IF_ERROR(gspmd_expand_iota(cursor, count, devices));
  } else {
    uint32_t listed = 0;
    MP_RETURN_IF_ERROR(gspmd_parse_ints(cursor, devices, (uint32_t)count, &listed));
    if (listed != count) return gspmd_expected(cursor, "as many devices as there are tiles");
  }
  return gspmd_parse_suffix(cursor, sharding);
}

mp_status_t mp_gspmd_parse(mp_arena_t *arena, mp_str_t text, int64_t max_devices,
                           mp_gspmd_sharding_t *out_sharding) {
  gspmd_cursor_t cursor = {arena, text, 0, max_devices};
  mp_gspmd_sharding_t sharding = {.kind = MP_GSPMD_REPLICATED, .group = -1};
  if (!gspmd_accept(&cursor, "{")) return gspmd_expected(&cursor, "'{'");
  if (gspmd_accept(&cursor, "devices=[")) {
    MP_RETURN_IF_ERROR(gspmd_parse_tiles(&cursor, &sharding));
  } else if (!gspmd_parse_kind(&cursor, &sharding.kind)) {
    return gspmd_expected(&cursor, "replicated, manual, unreduced, unknown, maximal or devices=[");
  } else if (sharding.kind == MP_GSPMD_MAXIMAL) {
    gspmd_skip_spaces(&cursor);
    if (!gspmd_accept(&cursor, "device=")) return gspmd_expected(&cursor, "device=");
    MP_RETURN_IF_ERROR(gspmd_parse_int(&cursor, &sharding.device));
  }
  gspmd_skip_spaces(&cursor);
  if (gspmd_accept(&cursor, "shard_as ") || gspmd_accept(&cursor, "shard_like ")) {
    MP_RETURN_IF_ERROR(gspmd_parse_int(&cursor, &sharding.group));
    gspmd_skip_spaces(&cursor);
  }
  if (gspmd_accept(&cursor, "metadata=")) {
    if (text.data[text.size - 1] != '}') return gspmd_expected(&cursor, "'}' at the end");
  } else if (!gspmd_accept(&cursor, "}") || cursor.at != text.size) {
    return gspmd_expected(&cursor, "'}' and the end");
  }
  *out_sharding = sharding;
  return NULL;
}

// ---- as a placement ----

mp_status_t mp_gspmd_check_devices(mp_arena_t *arena, const mp_gspmd_sharding_t *sharding,
                                   uint32_t num_partitions) {
  uint8_t *seen = MP_ARENA_ARRAY(arena, uint8_t, num_partitions);
  MP_RETURN_IF_NULL(seen);
  if (sharding->num_devices != (int64_t)num_partitions) {
    return mp_status_make(MP_INVALID_ARGUMENT, "a sharding over %lld devices in a program of %u",
                          (long long)sharding->num_devices, num_partitions);
  }
  for (int64_t i = 0; i < sharding->num_devices; ++i) {
    const int64_t p = sharding->devices[i];
    if (p >= (int64_t)num_partitions || seen[p]++) {
      return mp_status_make(MP_INVALID_ARGUMENT,
                            "a sharding names partition %lld twice or beyond %u partitions",
                            (long long)p, num_partitions);
    }
  }
  return NULL;
}

static mp_status_t gspmd_boxes_from_tiles(mp_arena_t *arena, const mp_spmd_scope_t *scope,
                                          const mp_type_t *type,
                                          const mp_gspmd_sharding_t *sharding,
                                          const mp_boxes_t **out_boxes) {
  MP_RETURN_IF_ERROR(mp_gspmd_check_devices(arena, sharding, scope->num_partitions));
  mp_boxes_t boxes;
  int64_t *starts = NULL;
  int64_t *sizes = NULL;
  MP_RETURN_IF_ERROR(mp_placement_start(scope, type, &boxes, &starts, &sizes));
  for (int64_t i = 0; i < sharding->num_devices; ++i) {
    int64_t rest = i;
    for (uint32_t d = sharding->num_dims; d-- > 0;) {
      const int64_t index = rest % sharding->dims[d];
      rest /= sharding->dims[d];
      if (d >= type->rank) continue;  // it is a dimension of subgroups
      const size_t at = (size_t)sharding->devices[i] * type->rank + d;
      mp_placement_part(type->dims[d], sharding->dims[d], index, &starts[at], &sizes[at]);
    }
  }
  return mp_spmd_pool_boxes(scope->pool, &boxes, out_boxes);
}

static mp_status_t gspmd_boxes_from_text(mp_arena_t *scratch, const mp_spmd_scope_t *scope,
                                         const mp_type_t *type, mp_str_t text,
                                         const mp_boxes_t **out_boxes) {
  mp_gspmd_sharding_t sharding;
  MP_RETURN_IF_ERROR(mp_gspmd_parse(scratch, text, scope->num_partitions, &sharding));
  *out_boxes = NULL;
  bool is_unreduced = sharding.kind == MP_GSPMD_UNREDUCED;
  for (uint32_t i = 0; i < sharding.num_subgroups; ++i) {
    is_unreduced |= sharding.subgroups[i] == MP_GSPMD_UNREDUCED;
  }
  if (is_unreduced) {
    return mp_status_make(MP_UNIMPLEMENTED, "unreduced shardings are not supported yet");
  }
  if (sharding.kind != MP_GSPMD_TILED || !mp_type_is_static(type)) return NULL;
  if (sharding.num_dims - sharding.num_subgroups != type->rank) {
    return mp_status_make(MP_INVALID_ARGUMENT, "sharding \"%.*s\" on a tensor of rank %u",
                          MP_STR_ARG(text), type->rank);
  }
  bool is_whole = true;
  for (uint32_t d = 0; d < type->rank; ++d) is_whole &= sharding.dims[d] == 1;
  if (is_whole) return NULL;
  return gspmd_boxes_from_tiles(scratch, scope, type, &sharding, out_boxes);
}

mp_status_t mp_placement_from_gspmd(const mp_spmd_scope_t *scope, const mp_type_t *type,
                                    mp_str_t text, const mp_boxes_t **out_boxes) {
  *out_boxes = NULL;
  if (scope->num_partitions == 1) return NULL;
  // Not in the module's arena, which would keep the list of devices of each annotation as long as
  // the module.
  mp_arena_t *scratch = NULL;
  MP_RETURN_IF_ERROR(mp_arena_create(&scratch));
  mp_status_t status = gspmd_boxes_from_text(scratch, scope, type, text, out_boxes);
  mp_arena_release(scratch);
  return status;
}
