// Converts ops of older versions of stable_mosaic to the newest one (jaxlib's serde rules).
#include "sim/mosaic/ir/mosaic_build.h"

typedef struct {
  mp_arena_t *arena;
  int64_t version;
} upgrade_t;

// Sets an attribute, in the place of one of the name `old`, or as a new one.
static mp_status_t mosaic_upgrade_set(const upgrade_t *u, mp_mosaic_op_t *op, const char *old,
                                      const char *name, const mp_mosaic_attr_t *value) {
  mp_mosaic_named_t *attrs = MP_ARENA_ARRAY(u->arena, mp_mosaic_named_t, op->num_attrs + 1);
  MP_RETURN_IF_NULL(attrs);
  uint32_t count = 0;
  for (uint32_t i = 0; i < op->num_attrs; ++i)
    if (!mp_str_is(op->attrs[i].name, old)) attrs[count++] = op->attrs[i];
  attrs[count++] = (mp_mosaic_named_t){mp_str(name), value};
  const mp_str_t twice = mp_mosaic_sort_attrs(attrs, count);
  if (twice.size > 0)
    return mp_mosaic_op_error(op, MP_INVALID_ARGUMENT, "%s and %s are both given", old, name);
  op->attrs = attrs;
  op->num_attrs = count;
  return NULL;
}

static mp_status_t mosaic_upgrade_set_ints(const upgrade_t *u, mp_mosaic_op_t *op, const char *old,
                                           const char *name, const int64_t *values,
                                           uint32_t count) {
  mp_mosaic_attr_t attr = {.kind = MP_MOSAIC_INTS, .dtype = MP_DTYPE_S32};
  attr.ints.values = mp_arena_copy(u->arena, values, count * sizeof(values[0]));
  MP_RETURN_IF_NULL(attr.ints.values);
  attr.ints.count = count;
  const mp_mosaic_attr_t *copy = NULL;
  MP_RETURN_IF_ERROR(mp_mosaic_attr_copy(u->arena, &attr, &copy));
  return mosaic_upgrade_set(u, op, old, name, copy);
}

static mp_status_t mosaic_upgrade_set_false(const upgrade_t *u, mp_mosaic_op_t *op,
                                            const char *name) {
  static const mp_mosaic_attr_t no = {.kind = MP_MOSAIC_BOOL, .dtype = MP_DTYPE_BOOL};
  return mosaic_upgrade_set(u, op, name, name, &no);
}

// `dimension` became the list `dimensions` in version 5 (gather) and 6 (iota).
static mp_status_t mosaic_upgrade_dimension(const upgrade_t *u, mp_mosaic_op_t *op) {
  const mp_mosaic_attr_t *attr = mp_mosaic_op_attr(op, "dimension");
  if (attr == NULL || attr->kind != MP_MOSAIC_INT)
    return mp_mosaic_op_error(op, MP_INVALID_ARGUMENT, "the attribute 'dimension' is missing");
  return mosaic_upgrade_set_ints(u, op, "dimension", "dimensions", &attr->i64, 1);
}

// In version 14 segments got a subcore at their end.
static mp_status_t mosaic_upgrade_segments(const upgrade_t *u, mp_mosaic_op_t *op,
                                           uint32_t expected) {
  int64_t sizes[8] = {0};
  const mp_mosaic_attr_t *attr = mp_mosaic_op_attr(op, "operandSegmentSizes");
  if (attr == NULL || attr->kind != MP_MOSAIC_INTS || attr->ints.count != expected)
    return mp_mosaic_op_error(op, MP_INVALID_ARGUMENT,
                              "operandSegmentSizes does not have %u numbers in version %lld",
                              expected, (long long)u->version);
  for (uint32_t i = 0; i < expected; ++i) sizes[i] = attr->ints.values[i];
  return mosaic_upgrade_set_ints(u, op, "operandSegmentSizes", "operandSegmentSizes", sizes,
                                 expected + 1);
}

static mp_status_t mosaic_upgrade_op(const upgrade_t *u, mp_mosaic_op_t *op) {
  static const int64_t waits[] = {1, 1, 1, 0, 0};
  const int64_t casts[] = {1, op->num_operands > 1, 0};
  const char *segments = "operandSegmentSizes";
  switch (op->code) {
    case MP_MOSAIC_DYNAMIC_GATHER:
      return u->version < 5 ? mosaic_upgrade_dimension(u, op) : NULL;
    case MP_MOSAIC_IOTA:
      return u->version < 6 ? mosaic_upgrade_dimension(u, op) : NULL;
    case MP_MOSAIC_WAIT_DMA2:
      if (u->version >= 7) return NULL;
      return mosaic_upgrade_set_ints(u, op, segments, segments, waits, 5);
    case MP_MOSAIC_TPU_STORE:
      return u->version < 11 ? mosaic_upgrade_set_false(u, op, "add") : NULL;
    case MP_MOSAIC_MATMUL:
      return u->version < 13 ? mosaic_upgrade_set_false(u, op, "transpose_lhs_hint") : NULL;
    case MP_MOSAIC_ENQUEUE_DMA:
    case MP_MOSAIC_WAIT_DMA:
      return u->version < 14 ? mosaic_upgrade_segments(u, op, 6) : NULL;
    case MP_MOSAIC_SEM_SIGNAL:
      return u->version < 14 ? mosaic_upgrade_segments(u, op, 4) : NULL;
    case MP_MOSAIC_REINTERPRET_CAST:
      if (u->version >= 15) return NULL;
      return mosaic_upgrade_set_ints(u, op, segments, segments, casts, 3);
    default:
      return NULL;
  }
}

static mp_status_t mosaic_upgrade_block(const upgrade_t *u, mp_mosaic_block_t *block) {
  for (mp_mosaic_op_t *op = block->first; op != NULL; op = op->next) {
    MP_RETURN_IF_ERROR(mosaic_upgrade_op(u, op));
    for (uint32_t i = 0; i < op->num_regions; ++i)
      MP_RETURN_IF_ERROR(mosaic_upgrade_block(u, op->regions[i]));
  }
  return NULL;
}

mp_status_t mp_mosaic_upgrade(mp_mosaic_module_t *module, int64_t version) {
  if (version < MP_MOSAIC_OLDEST_VERSION || version > MP_MOSAIC_NEWEST_VERSION)
    return mp_status_make(MP_UNIMPLEMENTED,
                          "version %lld of stable_mosaic is not supported, only %d to %d",
                          (long long)version, MP_MOSAIC_OLDEST_VERSION, MP_MOSAIC_NEWEST_VERSION);
  const upgrade_t upgrade = {module->arena, version};
  module->version = MP_MOSAIC_NEWEST_VERSION;
  if (version == MP_MOSAIC_NEWEST_VERSION) return NULL;
  for (mp_mosaic_func_t *func = module->funcs.first; func != NULL; func = func->next)
    MP_RETURN_IF_ERROR(mosaic_upgrade_block(&upgrade, func->body));
  return NULL;
}
