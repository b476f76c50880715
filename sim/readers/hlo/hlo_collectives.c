// Collectives.
#include "sim/readers/hlo/hlo_groups.h"
#include "sim/readers/hlo/hlo_ops.h"
#include "sim/readers/hlo/hlo_sharding.h"
#include "sim/readers/hlo/hlo_start.h"

// Channel types of StableHLO.
enum { DEVICE_TO_DEVICE = 1, DEVICE_TO_HOST = 2, HOST_TO_DEVICE = 3 };

static mp_status_t hlo_collectives_operands(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                            mp_hlo_leaves_t *out) {
  MP_RETURN_IF_ERROR(mp_hlo_gather_operands(b, inst, 0, inst->operand_ids.count, out));
  if (out->count != 0) return NULL;
  return mp_hlo_error(inst, MP_INVALID_ARGUMENT, "operand_ids: there are no operands");
}

// Adds the groups to the attributes, and gives them.
static mp_status_t hlo_collectives_put_groups(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                              mp_hlo_attrs_t *attrs, const mp_attr_t **out_groups) {
  MP_RETURN_IF_ERROR(mp_hlo_read_groups(b, inst, out_groups));
  mp_hlo_put_int(attrs, MP_ATTR_CHANNEL_ID, MP_DTYPE_S64, inst->channel_id);
  mp_hlo_put(attrs, MP_ATTR_REPLICA_GROUPS, *out_groups);
  return NULL;
}

// ---- reductions ----

// The computation works on scalars of one type, but operands may have several types: then each type
// gets an operation of its own, if the computation is a single operation that also works on that
// type.
static mp_status_t hlo_collectives_region(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                          mp_dtype_t dtype, mp_block_t **out_region) {
  MP_RETURN_IF_ERROR(mp_hlo_build_region(b, inst, 0, out_region));
  const mp_block_t *region = *out_region;
  const mp_op_t *only = region->first;
  if (region->num_args != 2 || region->args[0].type->kind != MP_TYPE_TENSOR ||
      region->args[0].type->dtype == dtype || only->next != region->last ||
      only->num_operands != 2 || only->num_results != 1 ||
      !mp_op_has(only, MP_OP_TRAIT_ELEMENTWISE)) {
    return NULL;
  }
  return mp_block_create_reducer(b->h->module, only->code, dtype, inst->loc, out_region);
}

// Reduces the operands with the type of operand `first`, which is the first of them.
static mp_status_t hlo_collectives_reduce_type(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                               mp_hlo_leaves_t operands, uint32_t first,
                                               const mp_hlo_attrs_t *attrs, mp_hlo_leaves_t *out) {
  const mp_dtype_t dtype = operands.items[first]->type->dtype;
  mp_hlo_leaves_t same = {0}, results = {0};
  mp_block_t *region = NULL;
  MP_RETURN_IF_ERROR(mp_hlo_new_leaves(b->h, operands.count - first, &same));
  const mp_type_t **types = MP_ARENA_ARRAY(b->h->source.arena, const mp_type_t *, same.count);
  MP_RETURN_IF_NULL(types);
  same.count = 0;
  for (uint32_t i = first; i < operands.count; ++i) {
    if (operands.items[i]->type->dtype != dtype) continue;
    types[same.count] = operands.items[i]->type;
    same.items[same.count++] = operands.items[i];
  }
  MP_RETURN_IF_ERROR(hlo_collectives_region(b, inst, dtype, &region));
  const mp_hlo_op_t op = {.code = MP_OP_ALL_REDUCE,
                          .operands = same,
                          .num_results = same.count,
                          .types = types,
                          .num_regions = 1,
                          .regions = &region,
                          .attrs = attrs};
  MP_RETURN_IF_ERROR(mp_hlo_emit(b, inst, &op, &results));
  uint32_t at = 0;
  for (uint32_t i = first; i < operands.count; ++i) {
    if (operands.items[i]->type->dtype == dtype) out->items[i] = results.items[at++];
  }
  return NULL;
}

mp_status_t mp_hlo_build_all_reduce(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                    mp_hlo_leaves_t *out) {
  mp_hlo_attrs_t attrs = mp_hlo_attrs(b);
  const mp_attr_t *groups = NULL;
  mp_hlo_leaves_t operands = {0};
  MP_RETURN_IF_ERROR(hlo_collectives_operands(b, inst, &operands));
  MP_RETURN_IF_ERROR(hlo_collectives_put_groups(b, inst, &attrs, &groups));
  mp_hlo_put_bool(&attrs, MP_ATTR_USE_GLOBAL_DEVICE_IDS, inst->use_global_device_ids);
  if (mp_hlo_groups_are_alone(inst, groups)) {
    *out = operands;
    return NULL;
  }
  MP_RETURN_IF_ERROR(mp_hlo_new_leaves(b->h, operands.count, out));
  for (uint32_t i = 0; i < operands.count; ++i) {
    if (operands.items[i]->type->kind != MP_TYPE_TENSOR) {
      return mp_hlo_error(inst, MP_INVALID_ARGUMENT, "operand value %u is not an array", i);
    }
    if (out->items[i] != NULL) continue;
    MP_RETURN_IF_ERROR(hlo_collectives_reduce_type(b, inst, operands, i, &attrs, out));
  }
  return NULL;
}

// StableHLO's op has one operand.
mp_status_t mp_hlo_build_reduce_scatter(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                        mp_hlo_leaves_t *out) {
  mp_hlo_attrs_t attrs = mp_hlo_attrs(b);
  const mp_attr_t *groups = NULL;
  mp_hlo_leaves_t operands = {0};
  int64_t dim = 0;
  MP_RETURN_IF_ERROR(hlo_collectives_operands(b, inst, &operands));
  MP_RETURN_IF_ERROR(hlo_collectives_put_groups(b, inst, &attrs, &groups));
  MP_RETURN_IF_ERROR(mp_hlo_one_dimension(inst, &dim));
  mp_hlo_put_int(&attrs, MP_ATTR_SCATTER_DIMENSION, MP_DTYPE_S64, dim);
  mp_hlo_put_bool(&attrs, MP_ATTR_USE_GLOBAL_DEVICE_IDS, inst->use_global_device_ids);
  if (mp_hlo_groups_are_alone(inst, groups)) {
    *out = operands;
    return NULL;
  }
  MP_RETURN_IF_ERROR(mp_hlo_new_leaves(b->h, inst->shape->num_leaves, out));
  if (operands.count != out->count) {
    return mp_hlo_error(inst, MP_INVALID_ARGUMENT, "shape: %u results for %u operands", out->count,
                        operands.count);
  }
  for (uint32_t i = 0; i < out->count; ++i) {
    mp_block_t *region = NULL;
    mp_hlo_leaves_t result = {0};
    if (operands.items[i]->type->kind != MP_TYPE_TENSOR) {
      return mp_hlo_error(inst, MP_INVALID_ARGUMENT, "operand value %u is not an array", i);
    }
    MP_RETURN_IF_ERROR(hlo_collectives_region(b, inst, operands.items[i]->type->dtype, &region));
    const mp_hlo_op_t op = {.code = MP_OP_REDUCE_SCATTER,
                            .operands = {1, operands.items + i},
                            .num_results = 1,
                            .types = inst->shape->types + i,
                            .num_regions = 1,
                            .regions = &region,
                            .attrs = &attrs};
    MP_RETURN_IF_ERROR(mp_hlo_emit(b, inst, &op, &result));
    out->items[i] = result.items[0];
  }
  return NULL;
}

// ---- gathering and broadcasting ----

static mp_status_t hlo_collectives_gather(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                          mp_hlo_leaves_t operands, const mp_hlo_shape_t *shape,
                                          mp_hlo_leaves_t *out) {
  mp_hlo_attrs_t attrs = mp_hlo_attrs(b);
  const mp_attr_t *groups = NULL;
  int64_t dim = 0;
  MP_RETURN_IF_ERROR(mp_hlo_one_dimension(inst, &dim));
  mp_hlo_put_int(&attrs, MP_ATTR_ALL_GATHER_DIM, MP_DTYPE_S64, dim);
  MP_RETURN_IF_ERROR(hlo_collectives_put_groups(b, inst, &attrs, &groups));
  mp_hlo_put_bool(&attrs, MP_ATTR_USE_GLOBAL_DEVICE_IDS, inst->use_global_device_ids);
  if (mp_hlo_groups_are_alone(inst, groups)) {
    *out = operands;
    return NULL;
  }
  const mp_hlo_op_t op = {.code = MP_OP_ALL_GATHER,
                          .operands = operands,
                          .num_results = shape->num_leaves,
                          .types = shape->types,
                          .attrs = &attrs};
  return mp_hlo_emit(b, inst, &op, out);
}

mp_status_t mp_hlo_build_all_gather(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                    mp_hlo_leaves_t *out) {
  mp_hlo_leaves_t operands = {0};
  MP_RETURN_IF_ERROR(hlo_collectives_operands(b, inst, &operands));
  return hlo_collectives_gather(b, inst, operands, inst->shape, out);
}

// The shape of the results: element 1 of such an instruction's shape.
static mp_status_t hlo_collectives_started(const mp_hlo_inst_t *inst,
                                           const mp_hlo_shape_t **out_shape) {
  if (inst->shape->type != NULL || inst->shape->num_elements < 2) {
    return mp_hlo_error(inst, MP_INVALID_ARGUMENT, "shape: no tuple of operands and results");
  }
  *out_shape = inst->shape->elements[1];
  return NULL;
}

mp_status_t mp_hlo_build_all_gather_start(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                          mp_hlo_leaves_t *out) {
  mp_hlo_leaves_t operands = {0}, results = {0};
  const mp_hlo_shape_t *shape = NULL;
  MP_RETURN_IF_ERROR(hlo_collectives_operands(b, inst, &operands));
  MP_RETURN_IF_ERROR(hlo_collectives_started(inst, &shape));
  MP_RETURN_IF_ERROR(hlo_collectives_gather(b, inst, operands, shape, &results));
  return mp_hlo_finish_start(b, inst, operands, results, out);
}

mp_status_t mp_hlo_build_collective_broadcast(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                              mp_hlo_leaves_t *out) {
  mp_hlo_attrs_t attrs = mp_hlo_attrs(b);
  const mp_attr_t *groups = NULL;
  mp_hlo_leaves_t operands = {0};
  MP_RETURN_IF_ERROR(hlo_collectives_operands(b, inst, &operands));
  MP_RETURN_IF_ERROR(hlo_collectives_put_groups(b, inst, &attrs, &groups));
  if (mp_hlo_groups_are_alone(inst, groups)) {
    *out = operands;
    return NULL;
  }
  return mp_hlo_emit_whole(b, inst, MP_OP_COLLECTIVE_BROADCAST, operands, NULL, 0, &attrs, out);
}

// ---- permuting ----

static mp_status_t hlo_collectives_permute(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                           mp_hlo_leaves_t operands, mp_hlo_leaves_t *out) {
  mp_hlo_attrs_t attrs = mp_hlo_attrs(b);
  const mp_attr_t *pairs = NULL;
  MP_RETURN_IF_ERROR(mp_hlo_read_pairs(b, inst, &pairs));
  mp_hlo_put_int(&attrs, MP_ATTR_CHANNEL_ID, MP_DTYPE_S64, inst->channel_id);
  mp_hlo_put(&attrs, MP_ATTR_SOURCE_TARGET_PAIRS, pairs);
  MP_RETURN_IF_ERROR(mp_hlo_new_leaves(b->h, operands.count, out));
  for (uint32_t i = 0; i < operands.count; ++i) {
    MP_RETURN_IF_ERROR(mp_hlo_emit_one(b, inst, MP_OP_COLLECTIVE_PERMUTE, &operands.items[i], 1,
                                       operands.items[i]->type, &attrs, &out->items[i]));
  }
  return NULL;
}

mp_status_t mp_hlo_build_collective_permute(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                            mp_hlo_leaves_t *out) {
  mp_hlo_leaves_t operands = {0};
  MP_RETURN_IF_ERROR(hlo_collectives_operands(b, inst, &operands));
  return hlo_collectives_permute(b, inst, operands, out);
}

mp_status_t mp_hlo_build_collective_permute_start(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                                  mp_hlo_leaves_t *out) {
  mp_hlo_leaves_t operands = {0}, results = {0};
  MP_RETURN_IF_ERROR(hlo_collectives_operands(b, inst, &operands));
  MP_RETURN_IF_ERROR(hlo_collectives_permute(b, inst, operands, &results));
  return mp_hlo_finish_start(b, inst, operands, results, out);
}

// ---- sending and receiving ----

// Reads "{{0,1},{1,2}}".
static mp_status_t hlo_collectives_parse_pairs(mp_arena_t *arena, mp_str_t text,
                                               mp_hlo_ints_t *ids) {
  for (size_t i = 0; i < text.size;) {
    size_t end = i;
    long long id = 0;
    while (end < text.size && text.data[end] >= '0' && text.data[end] <= '9') ++end;
    if (mp_str_parse_i64((mp_str_t){text.data + i, end - i}, &id)) {
      MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(arena, ids, id));
    }
    i = end + 1;
  }
  return NULL;
}

static mp_status_t hlo_collectives_put_channel(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                               int64_t host_type, mp_hlo_attrs_t *attrs) {
  mp_str_t text = {0};
  mp_hlo_ints_t ids = {0};
  mp_hlo_put_int(attrs, MP_ATTR_CHANNEL_ID, MP_DTYPE_S64, inst->channel_id);
  mp_hlo_put_int(attrs, MP_ATTR_CHANNEL_TYPE, MP_DTYPE_S64,
                 inst->is_host_transfer ? host_type : DEVICE_TO_DEVICE);
  mp_hlo_put_bool(attrs, MP_ATTR_IS_HOST_TRANSFER, inst->is_host_transfer);
  MP_RETURN_IF_ERROR(mp_hlo_frontend_text(b->h, inst, "_xla_send_recv_source_target_pairs", &text));
  MP_RETURN_IF_ERROR(hlo_collectives_parse_pairs(b->h->source.arena, text, &ids));
  if (ids.count != 0) {
    mp_hlo_put_pairs(attrs, MP_ATTR_SOURCE_TARGET_PAIRS, ids.items, ids.count / 2);
  }
  return NULL;
}

// (the data, what a runtime needs, the token)
mp_status_t mp_hlo_build_send(mp_hlo_build_t *b, const mp_hlo_inst_t *inst, mp_hlo_leaves_t *out) {
  mp_hlo_attrs_t attrs = mp_hlo_attrs(b);
  const mp_hlo_leaves_t data = mp_hlo_operand(b, inst, 0);
  mp_hlo_leaves_t operands = {0};
  mp_value_t *token = NULL;
  MP_RETURN_IF_ERROR(mp_hlo_gather_operands(b, inst, 0, 2, &operands));
  MP_RETURN_IF_ERROR(hlo_collectives_put_channel(b, inst, DEVICE_TO_HOST, &attrs));
  MP_RETURN_IF_ERROR(mp_hlo_emit_one(b, inst, MP_OP_SEND, operands.items, operands.count,
                                     mp_type_token(), &attrs, &token));
  MP_RETURN_IF_ERROR(mp_hlo_finish_start(b, inst, data, (mp_hlo_leaves_t){0}, out));
  if (out->count > data.count) out->items[out->count - 1] = token;
  return NULL;
}

mp_status_t mp_hlo_build_send_done(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                   mp_hlo_leaves_t *out) {
  const mp_hlo_leaves_t sent = mp_hlo_operand(b, inst, 0);
  *out = (mp_hlo_leaves_t){sent.count == 0 ? 0 : 1,
                           sent.items + (sent.count == 0 ? 0 : sent.count - 1)};
  return NULL;
}

// (the data, what a runtime needs, the token)
mp_status_t mp_hlo_build_recv(mp_hlo_build_t *b, const mp_hlo_inst_t *inst, mp_hlo_leaves_t *out) {
  mp_hlo_attrs_t attrs = mp_hlo_attrs(b);
  mp_hlo_leaves_t results = {0};
  const uint32_t count = inst->shape->num_leaves;
  if (inst->shape->type != NULL || inst->shape->num_elements != 3 || count < 3) {
    return mp_hlo_error(inst, MP_INVALID_ARGUMENT, "shape: no tuple of data, context and token");
  }
  MP_RETURN_IF_ERROR(hlo_collectives_put_channel(b, inst, HOST_TO_DEVICE, &attrs));
  const uint32_t num_data = inst->shape->elements[0]->num_leaves;
  const mp_type_t **types = MP_ARENA_ARRAY(b->h->source.arena, const mp_type_t *, num_data + 1);
  MP_RETURN_IF_NULL(types);
  for (uint32_t i = 0; i < num_data; ++i) types[i] = inst->shape->types[i];
  types[num_data] = mp_type_token();
  const mp_hlo_op_t op = {.code = MP_OP_RECV,
                          .operands = mp_hlo_operand(b, inst, 0),
                          .num_results = num_data + 1,
                          .types = types,
                          .attrs = &attrs};
  MP_RETURN_IF_ERROR(mp_hlo_emit(b, inst, &op, &results));
  const mp_hlo_leaves_t data = {num_data, results.items};
  MP_RETURN_IF_ERROR(mp_hlo_finish_start(b, inst, data, (mp_hlo_leaves_t){0}, out));
  out->items[count - 1] = results.items[num_data];
  return NULL;
}

// (the data, the token)
mp_status_t mp_hlo_build_recv_done(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                   mp_hlo_leaves_t *out) {
  const mp_hlo_leaves_t received = mp_hlo_operand(b, inst, 0);
  const uint32_t count = inst->shape->num_leaves;
  MP_RETURN_IF_ERROR(mp_hlo_new_leaves(b->h, count, out));
  if (count == 0 || received.count < count + 1) {
    return mp_hlo_error(inst, MP_INVALID_ARGUMENT, "operand 0 ('%.*s') is not a recv",
                        MP_STR_ARG(inst->operands[0]->name));
  }
  for (uint32_t i = 0; i + 1 < count; ++i) out->items[i] = received.items[i];
  out->items[count - 1] = received.items[received.count - 1];
  return NULL;
}
