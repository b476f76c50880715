// Memory spaces and layouts of memrefs.
#include "sim/mosaic/read/mosaic_text.h"

// ---- memory spaces ----

static mp_status_t mosaic_layout_set_space(const mp_mosaic_attr_t *attr, mp_mosaic_type_t *type) {
  static const struct {
    const char *name;
    mp_mosaic_space_t space;
  } spaces[] = {
      {"any", MP_MOSAIC_SPACE_ANY},   {"vmem", MP_MOSAIC_SPACE_VMEM},
      {"smem", MP_MOSAIC_SPACE_SMEM}, {"hbm", MP_MOSAIC_SPACE_HBM},
      {"cmem", MP_MOSAIC_SPACE_CMEM}, {"semaphore_mem", MP_MOSAIC_SPACE_SEMAPHORE_MEM},
      {"host", MP_MOSAIC_SPACE_HOST}, {"vmem_shared", MP_MOSAIC_SPACE_VMEM_SHARED},
  };
  const mp_mosaic_attr_t *item = attr->list.count == 1 ? attr->list.items[0].value : NULL;
  if (item == NULL || item->kind != MP_MOSAIC_STRING)
    return mp_status_make(MP_INVALID_ARGUMENT, "a memory space without a name");
  for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); ++i) {
    if (!mp_str_is(item->str, spaces[i].name)) continue;
    type->space = spaces[i].space;
    return NULL;
  }
  return mp_status_make(MP_UNIMPLEMENTED, "the memory space '%.*s' is not known",
                        MP_STR_SHOWN(item->str, 60));
}

// ---- layouts ----

static mp_status_t mosaic_layout_set_strides(mp_arena_t *arena, const int64_t *strides,
                                             uint32_t count, int64_t offset,
                                             mp_mosaic_type_t *type) {
  if (count != type->rank)
    return mp_status_make(MP_INVALID_ARGUMENT, "a memref of rank %u has a layout of rank %u",
                          type->rank, count);
  int64_t *copy = MP_ARENA_ARRAY(arena, int64_t, count + 1);
  MP_RETURN_IF_NULL(copy);
  for (uint32_t i = 0; i < count; ++i) copy[i] = strides[i];
  type->strides = copy;
  type->offset = offset;
  return NULL;
}

// The term of an affine sum: dim * constant, dim, a constant, or what holds a symbol.
static bool mosaic_layout_add_term(const mp_mosaic_affine_t *e, int64_t *strides, int64_t *offset) {
  switch (e->kind) {
    case MP_MOSAIC_AFFINE_CONSTANT:
      if (*offset == MP_MOSAIC_DYNAMIC) return true;
      return !__builtin_add_overflow(*offset, e->value, offset);
    case MP_MOSAIC_AFFINE_SYMBOL:
      *offset = MP_MOSAIC_DYNAMIC;
      return true;
    case MP_MOSAIC_AFFINE_DIM:
      return strides[e->value] != MP_MOSAIC_DYNAMIC &&
             !__builtin_add_overflow(strides[e->value], 1, &strides[e->value]);
    case MP_MOSAIC_AFFINE_ADD:
      return mosaic_layout_add_term(e->lhs, strides, offset) &&
             mosaic_layout_add_term(e->rhs, strides, offset);
    case MP_MOSAIC_AFFINE_MUL:
      if (e->lhs->kind != MP_MOSAIC_AFFINE_DIM) return false;
      if (e->rhs->kind == MP_MOSAIC_AFFINE_SYMBOL) {
        strides[e->lhs->value] = MP_MOSAIC_DYNAMIC;
        return true;
      }
      return e->rhs->kind == MP_MOSAIC_AFFINE_CONSTANT && strides[e->lhs->value] == 0 &&
             ((strides[e->lhs->value] = e->rhs->value), true);
    default:
      return false;
  }
}

static bool mosaic_layout_is_identity(const mp_mosaic_map_t *map) {
  if (map->num_results != map->num_dims) return false;
  for (uint32_t i = 0; i < map->num_dims; ++i)
    if (map->results[i]->kind != MP_MOSAIC_AFFINE_DIM || map->results[i]->value != i) return false;
  return true;
}

static mp_status_t mosaic_layout_set_map(mp_arena_t *arena, const mp_mosaic_map_t *map,
                                         mp_mosaic_type_t *type) {
  if (map->num_dims != type->rank)
    return mp_status_make(MP_INVALID_ARGUMENT, "a memref of rank %u has a layout of rank %u",
                          type->rank, map->num_dims);
  if (mosaic_layout_is_identity(map)) return NULL;
  int64_t *strides = MP_ARENA_ARRAY(arena, int64_t, map->num_dims + 1);
  MP_RETURN_IF_NULL(strides);
  int64_t offset = 0;
  if (map->num_results != 1 || !mosaic_layout_add_term(map->results[0], strides, &offset))
    return mp_status_make(MP_UNIMPLEMENTED, "only layouts that are sums of strides are supported");
  return mosaic_layout_set_strides(arena, strides, map->num_dims, offset, type);
}

// strided<[8, ?], offset: ?>, as the text reader keeps it: the strides, then the offset.
static mp_status_t mosaic_layout_set_strided(mp_arena_t *arena, const mp_mosaic_attr_t *attr,
                                             mp_mosaic_type_t *type) {
  const uint32_t count = attr->ints.count - 1;
  return mosaic_layout_set_strides(arena, attr->ints.values, count, attr->ints.values[count], type);
}

mp_status_t mp_mosaic_apply_layout(mp_arena_t *arena, const mp_mosaic_attr_t *attr,
                                   mp_mosaic_type_t *type) {
  if (attr->kind == MP_MOSAIC_MAP) return mosaic_layout_set_map(arena, attr->map, type);
  if (attr->kind == MP_MOSAIC_DIALECT && mp_str_is(attr->str, "tpu.memory_space"))
    return mosaic_layout_set_space(attr, type);
  if (attr->kind == MP_MOSAIC_DIALECT && mp_str_is(attr->str, "builtin.strided"))
    return mosaic_layout_set_strided(arena, attr, type);
  // Tiles say where elements lie in the memory of the machine, which no op sees.
  if (attr->kind == MP_MOSAIC_DIALECT && mp_str_is(attr->str, "tpu.tiled")) return NULL;
  return mp_status_make(MP_UNIMPLEMENTED,
                        "a memref has an attribute other than a memory space or a known layout");
}
