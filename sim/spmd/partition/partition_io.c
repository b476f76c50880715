#include "sim/spmd/partition/partitioner.h"

#include "sim/spmd/gspmd/gspmd.h"
#include "sim/spmd/sharding/placement.h"

// The placement by the sharding in the attributes of an argument or result; `*out_has` says whether
// there is one.
static mp_status_t partition_io_placement(mp_partitioner_t *p, const mp_type_t *type,
                                          const mp_attr_t *attrs, bool *out_has,
                                          const mp_boxes_t **out_boxes) {
  const mp_attr_t *sdy = mp_attr_dict_get(attrs, MP_ATTR_SDY_SHARDING);
  const mp_attr_t *gspmd = mp_attr_dict_get(attrs, MP_ATTR_MHLO_SHARDING);
  *out_has = true;
  *out_boxes = NULL;
  if (sdy != NULL && sdy->kind == MP_KIND_SHARDING) {
    return mp_placement_from_sdy(p->scope, type, sdy->u.sharding, NULL, out_boxes);
  }
  if (gspmd != NULL && gspmd->kind == MP_KIND_STRING) {
    return mp_placement_from_gspmd(p->scope, type, gspmd->u.str, out_boxes);
  }
  *out_has = false;
  return NULL;
}

bool mp_partitioner_is_allowed(const bool *flags, uint32_t count, uint32_t index) {
  if (count == 1) return flags[0];
  return index < count && flags[index];
}

// The use of a parameter. If only manual regions use it, `op` is the first of these and `operand`
// the number of the operand; otherwise `op` is NULL.
typedef struct {
  const mp_op_t *op;
  uint32_t operand;
  bool is_mixed;  // something else uses it too
} param_use_t;

static void partition_io_note_use(const mp_block_t *body, param_use_t *uses,
                                  const mp_value_t *value, const mp_op_t *op, uint32_t operand,
                                  bool is_manual) {
  if (value->block != body) return;
  param_use_t *use = &uses[value->index];
  use->is_mixed |= !is_manual;
  if (use->is_mixed) {
    use->op = NULL;
  } else if (use->op == NULL) {
    *use = (param_use_t){op, operand, false};
  }
}

static mp_status_t partition_io_find_manual_uses(mp_partitioner_t *p, const mp_block_t *body,
                                                 param_use_t *uses) {
  for (const mp_op_t *op = body->first; op != NULL; op = op->next) {
    const bool is_manual = op->code == MP_OP_SDY_MANUAL_COMPUTATION;
    for (uint32_t i = 0; i < op->num_operands; ++i) {
      partition_io_note_use(body, uses, op->operands[i], op, i, is_manual);
    }
    if (op->num_regions == 0) continue;
    mp_value_t **captures = NULL;
    uint32_t num_captures = 0;
    MP_RETURN_IF_ERROR(mp_op_captures(op, p->arena, &captures, &num_captures));
    for (uint32_t i = 0; i < num_captures; ++i)
      partition_io_note_use(body, uses, captures[i], op, 0, false);
  }
  return NULL;
}

// The placement in which the manual region that uses this parameter needs it.
static mp_status_t partition_io_wanted_placement(mp_partitioner_t *p, const mp_type_t *type,
                                                 const param_use_t *use,
                                                 const mp_boxes_t **out_boxes) {
  MP_RETURN_IF_ERROR(mp_partitioner_check_manual(p, use->op));
  const mp_attr_t *in = mp_op_attr(use->op, MP_ATTR_IN_SHARDINGS);
  const mp_axis_list_t *axes = &mp_op_attr(use->op, MP_ATTR_MANUAL_AXES)->u.axes;
  return mp_partitioner_manual_placement(p, use->op, type, &in->u.shardings.shardings[use->operand],
                                         axes, use->op->regions[0]->args[use->operand].type,
                                         out_boxes);
}

mp_status_t mp_partitioner_params(mp_partitioner_t *p, const mp_func_t *main,
                                  const mp_partition_options_t *options, mp_block_t **out_body,
                                  mp_partition_io_t *params) {
  const mp_block_t *old = main->body;
  param_use_t *uses = MP_ARENA_ARRAY(p->arena, param_use_t, old->num_args);
  MP_RETURN_IF_NULL(uses);
  MP_RETURN_IF_ERROR(partition_io_find_manual_uses(p, old, uses));
  const mp_type_t **types = MP_ARENA_ARRAY(p->arena, const mp_type_t *, old->num_args);
  MP_RETURN_IF_NULL(types);
  for (uint32_t i = 0; i < old->num_args; ++i) {
    bool has = false;
    params[i].global_type = old->args[i].type;
    MP_RETURN_IF_ERROR(mp_status_annotate(
        partition_io_placement(p, old->args[i].type,
                               main->arg_attrs == NULL ? NULL : main->arg_attrs[i], &has,
                               &params[i].boxes),
        "argument %u of main", i));
    const bool is_open = !has && mp_partitioner_is_allowed(options->propagate_to_params,
                                                           options->num_propagate_to_params, i);
    if (p->is_propagated && (has || is_open)) {
      MP_RETURN_IF_ERROR(mp_atom_sharding_boxes(&p->propagation.space, p->scope, old->args[i].type,
                                                p->propagation.values[old->args[i].id],
                                                &params[i].boxes));
    } else if (is_open && uses[i].op != NULL) {
      MP_RETURN_IF_ERROR(
          partition_io_wanted_placement(p, old->args[i].type, &uses[i], &params[i].boxes));
    }
    MP_RETURN_IF_ERROR(
        mp_placement_local_type(p->arena, old->args[i].type, params[i].boxes, &types[i]));
  }
  MP_RETURN_IF_ERROR(mp_block_create(p->module, old->num_args, types, out_body));
  for (uint32_t i = 0; i < old->num_args; ++i) {
    MP_RETURN_IF_ERROR(
        mp_versions_add(&p->versions, &old->args[i], params[i].boxes, &(*out_body)->args[i]));
  }
  return NULL;
}

// The placement of a result whose sharding the client leaves open, completely or in some
// dimensions: the one that propagation found, or else that of a constraint, or that of an existing
// version. If the parts are uneven, the result is whole, because clients cannot describe uneven
// parts (JAX refuses them).
static mp_status_t partition_io_open_result_placement(mp_partitioner_t *p, const mp_value_t *value,
                                                      uint32_t result,
                                                      const mp_boxes_t **out_boxes) {
  if (p->is_propagated) {
    return mp_atom_sharding_boxes(&p->propagation.space, p->scope, value->type,
                                  p->propagation.results[result], out_boxes);
  }
  const mp_boxes_t *boxes = p->versions.preferred[value->id];
  if (boxes == NULL) boxes = mp_versions_sharded(&p->versions, value);
  *out_boxes = boxes != NULL && mp_placement_is_even(boxes) ? boxes : NULL;
  return NULL;
}

mp_status_t mp_partitioner_results(mp_partitioner_t *p, const mp_func_t *main,
                                   const mp_op_t *terminator, const mp_partition_options_t *options,
                                   mp_partition_io_t *results) {
  mp_value_t **operands = MP_ARENA_ARRAY(p->arena, mp_value_t *, terminator->num_operands);
  MP_RETURN_IF_NULL(operands);
  for (uint32_t i = 0; i < terminator->num_operands; ++i) {
    const mp_value_t *value = terminator->operands[i];
    bool has = false;
    results[i].global_type = value->type;
    MP_RETURN_IF_ERROR(mp_status_annotate(
        partition_io_placement(p, value->type,
                               main->result_attrs == NULL ? NULL : main->result_attrs[i], &has,
                               &results[i].boxes),
        "result %u of main", i));
    if ((has && p->is_propagated) ||
        (!has && mp_partitioner_is_allowed(options->propagate_to_results,
                                           options->num_propagate_to_results, i))) {
      MP_RETURN_IF_ERROR(partition_io_open_result_placement(p, value, i, &results[i].boxes));
    }
    MP_RETURN_IF_ERROR(mp_versions_get(&p->versions, p->scope, value, results[i].boxes,
                                       terminator->loc, &operands[i]));
  }
  const mp_op_spec_t spec = {.code = terminator->code,
                             .loc = terminator->loc,
                             .num_operands = terminator->num_operands,
                             .operands = operands};
  mp_op_t *copy = NULL;
  MP_RETURN_IF_ERROR(mp_op_create(p->module, &spec, &copy));
  mp_block_append(p->versions.block, copy);
  for (uint32_t i = 0; i < main->num_results; ++i) main->result_types[i] = operands[i]->type;
  return NULL;
}
