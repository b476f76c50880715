#include "sim/spmd/build/append_collective.h"

#include "sim/base/alloc.h"
#include "sim/base/assert.h"
#include "sim/spmd/build/combine_sums.h"

mp_status_t mp_append_groups(mp_module_t *module, const int64_t *table, int64_t rows,
                             int64_t columns, const mp_attr_t **out_groups) {
  const int64_t count = rows * columns;
  const int64_t replicas = module->num_replicas;
  int64_t *ids = mp_malloc((size_t)(count * replicas) * sizeof(*ids));
  MP_RETURN_IF_NULL(ids);
  for (int64_t i = 0; i < count * replicas; ++i) {
    MP_ASSERT(table[i % count] >= 0 && table[i % count] < (int64_t)module->num_partitions);
    ids[i] = table[i % count] + i / count * (int64_t)module->num_partitions;
  }
  mp_status_t status = mp_module_make_table(module, ids, rows * replicas, columns, out_groups);
  mp_free(ids);
  return status;
}

enum { MP_MAX_COLLECTIVE_ATTRS = 5 };

typedef struct {
  mp_opcode_t code;
  mp_opcode_t reducer;  // MP_OP_COUNT: the op has no region
  mp_named_attr_t attrs[MP_MAX_COLLECTIVE_ATTRS];
  uint32_t count;
} attr_list_t;

static mp_named_attr_t *append_collective_add_attr(attr_list_t *list, mp_attr_name_t name) {
  MP_ASSERT(list->count < MP_MAX_COLLECTIVE_ATTRS);
  mp_named_attr_t *attr = &list->attrs[list->count++];
  *attr = (mp_named_attr_t){.name = name, .text = mp_str(mp_attr_name_text(name))};
  return attr;
}

static mp_status_t append_collective_add_int(mp_module_t *module, attr_list_t *list,
                                             mp_attr_name_t name, int64_t value) {
  return mp_attr_make_int(module->arena, MP_DTYPE_S64, value,
                          &append_collective_add_attr(list, name)->value);
}

// All collectives get channel 1, like JAX's own; their place in the program distinguishes them.
static mp_status_t append_collective_add_channel(mp_module_t *module, attr_list_t *list) {
  return append_collective_add_int(module, list, MP_ATTR_CHANNEL_ID, 1);
}

// Adds the attributes of groups with flattened ids, which number the partitions of all replicas.
static mp_status_t append_collective_add_groups(mp_module_t *module, attr_list_t *list,
                                                const mp_attr_t *groups) {
  MP_RETURN_IF_ERROR(append_collective_add_channel(module, list));
  append_collective_add_attr(list, MP_ATTR_REPLICA_GROUPS)->value = groups;
  return mp_attr_make_bool(module->arena, true,
                           &append_collective_add_attr(list, MP_ATTR_USE_GLOBAL_DEVICE_IDS)->value);
}

static mp_status_t append_collective_append(const mp_append_at_t *at, const attr_list_t *list,
                                            mp_value_t *value, const mp_type_t *type,
                                            mp_value_t **out_value) {
  mp_block_t *region = NULL;
  if (list->reducer != MP_OP_COUNT) {
    MP_RETURN_IF_ERROR(
        mp_block_create_reducer(at->module, list->reducer, type->dtype, at->loc, &region));
  }
  const mp_op_spec_t spec = {.code = list->code,
                             .loc = at->loc,
                             .num_operands = 1,
                             .operands = &value,
                             .num_results = 1,
                             .result_types = &type,
                             .num_regions = region != NULL,
                             .regions = &region,
                             .num_attrs = list->count,
                             .attrs = list->attrs};
  mp_op_t *op = NULL;
  MP_RETURN_IF_ERROR(mp_op_create(at->module, &spec, &op));
  mp_block_append(at->block, op);
  *out_value = &op->results[0];
  return NULL;
}

mp_status_t mp_append_all_reduce(const mp_append_at_t *at, const mp_attr_t *groups,
                                 mp_opcode_t reducer, mp_value_t *value, mp_value_t **out_value) {
  attr_list_t list = {.code = MP_OP_ALL_REDUCE, .reducer = reducer};
  MP_RETURN_IF_ERROR(append_collective_add_groups(at->module, &list, groups));
  MP_RETURN_IF_ERROR(append_collective_append(at, &list, value, value->type, out_value));
  (*out_value)->op->id = MP_COMBINE_MAY;
  return NULL;
}

mp_status_t mp_append_reduce_scatter(const mp_append_at_t *at, const mp_attr_t *groups,
                                     mp_opcode_t reducer, uint32_t dim, mp_value_t *value,
                                     const mp_type_t *type, mp_value_t **out_value) {
  attr_list_t list = {.code = MP_OP_REDUCE_SCATTER, .reducer = reducer};
  MP_RETURN_IF_ERROR(append_collective_add_groups(at->module, &list, groups));
  MP_RETURN_IF_ERROR(append_collective_add_int(at->module, &list, MP_ATTR_SCATTER_DIMENSION, dim));
  return append_collective_append(at, &list, value, type, out_value);
}

mp_status_t mp_append_all_gather(const mp_append_at_t *at, const mp_attr_t *groups, uint32_t dim,
                                 mp_value_t *value, const mp_type_t *type, mp_value_t **out_value) {
  attr_list_t list = {.code = MP_OP_ALL_GATHER, .reducer = MP_OP_COUNT};
  MP_RETURN_IF_ERROR(append_collective_add_int(at->module, &list, MP_ATTR_ALL_GATHER_DIM, dim));
  MP_RETURN_IF_ERROR(append_collective_add_groups(at->module, &list, groups));
  return append_collective_append(at, &list, value, type, out_value);
}

mp_status_t mp_append_all_to_all(const mp_append_at_t *at, const mp_append_exchange_t *exchange,
                                 mp_value_t *value, const mp_type_t *type, mp_value_t **out_value) {
  attr_list_t list = {.code = MP_OP_ALL_TO_ALL, .reducer = MP_OP_COUNT};
  MP_RETURN_IF_ERROR(append_collective_add_channel(at->module, &list));
  MP_RETURN_IF_ERROR(
      append_collective_add_int(at->module, &list, MP_ATTR_CONCAT_DIMENSION, exchange->concat_dim));
  MP_RETURN_IF_ERROR(
      mp_module_make_table(at->module, exchange->groups, exchange->rows, exchange->columns,
                           &append_collective_add_attr(&list, MP_ATTR_REPLICA_GROUPS)->value));
  MP_RETURN_IF_ERROR(
      append_collective_add_int(at->module, &list, MP_ATTR_SPLIT_COUNT, exchange->columns));
  MP_RETURN_IF_ERROR(
      append_collective_add_int(at->module, &list, MP_ATTR_SPLIT_DIMENSION, exchange->split_dim));
  return append_collective_append(at, &list, value, type, out_value);
}

mp_status_t mp_append_permute(const mp_append_at_t *at, const int64_t *pairs, int64_t num_pairs,
                              mp_value_t *value, mp_value_t **out_value) {
  attr_list_t list = {.code = MP_OP_COLLECTIVE_PERMUTE, .reducer = MP_OP_COUNT};
  MP_RETURN_IF_ERROR(append_collective_add_channel(at->module, &list));
  MP_RETURN_IF_ERROR(
      mp_module_make_table(at->module, pairs, num_pairs, 2,
                           &append_collective_add_attr(&list, MP_ATTR_SOURCE_TARGET_PAIRS)->value));
  return append_collective_append(at, &list, value, value->type, out_value);
}

mp_status_t mp_append_broadcast_from(const mp_append_at_t *at, int64_t source, mp_value_t *value,
                                     mp_value_t **out_value) {
  const int64_t count = at->module->num_partitions;
  int64_t *group = MP_ARENA_ARRAY(at->module->arena, int64_t, (size_t)count);
  MP_RETURN_IF_NULL(group);
  MP_ASSERT(source >= 0 && source < count);
  group[0] = source;  // a group's first member sends
  for (int64_t i = 1; i < count; ++i) group[i] = i <= source ? i - 1 : i;
  attr_list_t list = {.code = MP_OP_COLLECTIVE_BROADCAST, .reducer = MP_OP_COUNT};
  MP_RETURN_IF_ERROR(append_collective_add_channel(at->module, &list));
  MP_RETURN_IF_ERROR(
      mp_attr_make_table(at->module->arena, group, 1, count,
                         &append_collective_add_attr(&list, MP_ATTR_REPLICA_GROUPS)->value));
  return append_collective_append(at, &list, value, value->type, out_value);
}
