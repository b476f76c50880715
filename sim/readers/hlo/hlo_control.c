// Tuples, tokens, calls, loops and branches, and asynchronous instructions.
#include "sim/readers/hlo/hlo_ops.h"
#include "sim/readers/hlo/hlo_start.h"

// ---- values that are passed on ----

mp_status_t mp_hlo_build_parameter(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                   mp_hlo_leaves_t *out) {
  const uint32_t first = b->comp->param_leaf[inst->parameter_number];
  *out = (mp_hlo_leaves_t){inst->shape->num_leaves, b->args.items + first};
  return NULL;
}

// The leaves of all operands.
mp_status_t mp_hlo_build_forward(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                 mp_hlo_leaves_t *out) {
  return mp_hlo_gather_operands(b, inst, 0, inst->operand_ids.count, out);
}

// The first part of the first operand.
mp_status_t mp_hlo_build_first(mp_hlo_build_t *b, const mp_hlo_inst_t *inst, mp_hlo_leaves_t *out) {
  const mp_hlo_leaves_t whole = mp_hlo_operand(b, inst, 0);
  const uint32_t count = inst->shape->num_leaves;
  *out = (mp_hlo_leaves_t){count < whole.count ? count : whole.count, whole.items};
  return NULL;
}

// The leaves of one element of the operand, which must be a tuple.
static mp_status_t hlo_control_element(mp_hlo_build_t *b, const mp_hlo_inst_t *inst, int64_t index,
                                       mp_hlo_leaves_t *out) {
  const mp_hlo_shape_t *tuple = inst->operands[0]->shape;
  const mp_hlo_leaves_t whole = mp_hlo_operand(b, inst, 0);
  if (tuple->type != NULL || index < 0 || index >= tuple->num_elements) {
    return mp_hlo_error(inst, MP_INVALID_ARGUMENT,
                        "tuple_index: operand 0 ('%.*s') has no element %lld",
                        MP_STR_ARG(inst->operands[0]->name), (long long)index);
  }
  uint32_t first = 0;
  for (int64_t i = 0; i < index; ++i) first += tuple->elements[i]->num_leaves;
  *out = (mp_hlo_leaves_t){tuple->elements[index]->num_leaves, whole.items + first};
  return NULL;
}

mp_status_t mp_hlo_build_get_tuple_element(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                           mp_hlo_leaves_t *out) {
  return hlo_control_element(b, inst, inst->tuple_index, out);
}

mp_status_t mp_hlo_build_opt_barrier(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                     mp_hlo_leaves_t *out) {
  mp_hlo_leaves_t operands = {0};
  MP_RETURN_IF_ERROR(mp_hlo_gather_operands(b, inst, 0, inst->operand_ids.count, &operands));
  return mp_hlo_emit_whole(b, inst, MP_OP_OPTIMIZATION_BARRIER, operands, NULL, 0, NULL, out);
}

mp_status_t mp_hlo_build_after_all(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                   mp_hlo_leaves_t *out) {
  mp_hlo_leaves_t operands = {0};
  MP_RETURN_IF_ERROR(mp_hlo_gather_operands(b, inst, 0, inst->operand_ids.count, &operands));
  return mp_hlo_emit_whole(b, inst, MP_OP_AFTER_ALL, operands, NULL, 0, NULL, out);
}

// ---- calls, loops, branches ----

mp_status_t mp_hlo_build_call(mp_hlo_build_t *b, const mp_hlo_inst_t *inst, mp_hlo_leaves_t *out) {
  mp_hlo_comp_t *comp = NULL;
  mp_hlo_leaves_t operands = {0};
  MP_RETURN_IF_ERROR(mp_hlo_called(inst, 0, &comp));
  MP_RETURN_IF_ERROR(mp_hlo_gather_operands(b, inst, 0, inst->operand_ids.count, &operands));
  return mp_hlo_emit_call(b, inst, comp, operands, out);
}

mp_status_t mp_hlo_build_while(mp_hlo_build_t *b, const mp_hlo_inst_t *inst, mp_hlo_leaves_t *out) {
  enum { BODY, CONDITION };  // their order in HLO, which is reversed in StableHLO
  mp_block_t *regions[2] = {NULL, NULL};
  MP_RETURN_IF_ERROR(mp_hlo_build_region(b, inst, CONDITION, &regions[0]));
  MP_RETURN_IF_ERROR(mp_hlo_build_region(b, inst, BODY, &regions[1]));
  return mp_hlo_emit_whole(b, inst, MP_OP_WHILE, mp_hlo_operand(b, inst, 0), regions, 2, NULL, out);
}

// A branch has no arguments in StableHLO: it uses the operands directly.
static mp_status_t hlo_control_branch(mp_hlo_build_t *b, const mp_hlo_inst_t *inst, uint32_t number,
                                      mp_block_t **out_region) {
  mp_hlo_leaves_t root = {0};
  MP_RETURN_IF_ERROR(mp_block_create(b->h->module, 0, NULL, out_region));
  MP_RETURN_IF_ERROR(mp_hlo_build_comp(b->h, inst->called[number], *out_region,
                                       mp_hlo_operand(b, inst, number + 1), &root));
  return mp_hlo_build_return(b->h, *out_region, inst->called[number]->root->loc, root);
}

// A boolean chooses between the first branch (true) and the second (false); a number chooses any.
mp_status_t mp_hlo_build_conditional(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                     mp_hlo_leaves_t *out) {
  const uint32_t count = inst->called_ids.count;
  mp_value_t *index = NULL;
  if (count == 0 || inst->operand_ids.count != (uint64_t)count + 1) {
    return mp_hlo_error(inst, MP_INVALID_ARGUMENT, "operand_ids: %u operands for %u branches",
                        inst->operand_ids.count, count);
  }
  MP_RETURN_IF_ERROR(mp_hlo_array(b, inst, 0, &index));
  const bool is_if = index->type->dtype == MP_DTYPE_BOOL;
  if (is_if && count != 2) {
    return mp_hlo_error(inst, MP_INVALID_ARGUMENT,
                        "called_computation_ids: %u branches for a boolean", count);
  }
  mp_block_t **regions = MP_ARENA_ARRAY(b->h->source.arena, mp_block_t *, count);
  mp_hlo_leaves_t operands = {0};
  MP_RETURN_IF_NULL(regions);
  for (uint32_t i = 0; i < count; ++i) {
    MP_RETURN_IF_ERROR(hlo_control_branch(b, inst, i, &regions[i]));
  }
  MP_RETURN_IF_ERROR(mp_hlo_new_leaves(b->h, 1, &operands));
  operands.items[0] = index;
  return mp_hlo_emit_whole(b, inst, is_if ? MP_OP_IF : MP_OP_CASE, operands, regions, count, NULL,
                           out);
}

// ---- asynchronous instructions ----

// Makes a constant of zeros for elements that only other runtimes use.
static mp_status_t hlo_control_zero(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                    const mp_type_t *type, mp_value_t **out_value) {
  static const char zeros[16];
  if (type->kind != MP_TYPE_TENSOR) {
    return mp_hlo_emit_one(b, inst, MP_OP_AFTER_ALL, NULL, 0, type, NULL, out_value);
  }
  return mp_hlo_emit_constant(b, inst, type, zeros, mp_dtype_size(type->dtype), true, out_value);
}

mp_status_t mp_hlo_finish_start(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                mp_hlo_leaves_t operands, mp_hlo_leaves_t results,
                                mp_hlo_leaves_t *out) {
  const uint32_t count = inst->shape->num_leaves;
  if ((uint64_t)operands.count + results.count > count) {
    return mp_hlo_error(inst, MP_INVALID_ARGUMENT,
                        "shape: %u values, but there are %u operands and %u results", count,
                        operands.count, results.count);
  }
  uint32_t at = 0;
  MP_RETURN_IF_ERROR(mp_hlo_new_leaves(b->h, count, out));
  for (uint32_t i = 0; i < operands.count; ++i) out->items[at++] = operands.items[i];
  for (uint32_t i = 0; i < results.count; ++i) out->items[at++] = results.items[i];
  for (; at < count; ++at) {
    MP_RETURN_IF_ERROR(hlo_control_zero(b, inst, inst->shape->types[at], &out->items[at]));
  }
  return NULL;
}

// The instruction's shape is a tuple of the operands, the results, and a context of the runtime.
// The work is done at the start.
mp_status_t mp_hlo_build_async_start(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                     mp_hlo_leaves_t *out) {
  mp_hlo_comp_t *comp = NULL;
  mp_hlo_leaves_t operands = {0}, results = {0};
  MP_RETURN_IF_ERROR(mp_hlo_called(inst, 0, &comp));
  MP_RETURN_IF_ERROR(mp_hlo_gather_operands(b, inst, 0, inst->operand_ids.count, &operands));
  MP_RETURN_IF_ERROR(mp_hlo_emit_call(b, inst, comp, operands, &results));
  return mp_hlo_finish_start(b, inst, operands, results, out);
}

mp_status_t mp_hlo_build_async_done(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                    mp_hlo_leaves_t *out) {
  return hlo_control_element(b, inst, 1, out);
}

// (the copy, the operand, a context of the runtime)
mp_status_t mp_hlo_build_copy_start(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                    mp_hlo_leaves_t *out) {
  const mp_hlo_leaves_t operand = mp_hlo_operand(b, inst, 0);
  return mp_hlo_finish_start(b, inst, operand, operand, out);
}
