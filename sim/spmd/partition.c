#include "sim/spmd/partition.h"

#include <string.h>

#include "sim/ir/mesh.h"
#include "sim/spmd/annotations.h"
#include "sim/spmd/append.h"
#include "sim/spmd/lower.h"
#include "sim/spmd/placement.h"
#include "sim/spmd/propagate.h"
#include "sim/spmd/unreduced.h"
#include "sim/spmd/versions.h"

typedef struct {
  mp_module_t *module;
  mp_arena_t *arena;
  mp_versions_t versions;
  const mp_spmd_scope_t *scope;
  // What every value is sharded by; without it (shardings that one space of atoms cannot say, or
  // one partition) only elementwise ops work on parts.
  bool is_propagated;
  mp_propagation_t propagation;
} mp_partitioner_t;

static mp_status_t partition_block(mp_partitioner_t *p, const mp_block_t *block,
                                   const mp_op_t **out_terminator);

static mp_status_t get_whole(mp_partitioner_t *p, const mp_op_t *op, const mp_value_t *value,
                             mp_value_t **out_value) {
  return mp_versions_get(&p->versions, p->scope, value, NULL, op->loc, out_value);
}

// --- ops that only say where a value shall lie ---

// `status` with the op and its location in the message.
static mp_status_t at_op(const mp_op_t *op, mp_status_t status) {
  if (status == NULL) return NULL;
  mp_status_t error = mp_op_error(op, mp_status_code(status), "%s", mp_status_message(status));
  mp_status_release(status);
  return error;
}

// The placement that an op's own annotation asks for; whole when it has none.
static mp_status_t annotated(mp_partitioner_t *p, const mp_op_t *op, const mp_boxes_t **out_boxes) {
  const mp_type_t *type = op->results[0].type;
  const mp_attr_t *attr = mp_op_attr(op, MP_ATTR_SHARDING);
  *out_boxes = NULL;
  mp_status_t status = NULL;
  if (attr != NULL && attr->kind == MP_KIND_SHARDING) {
    status = mp_placement_from_sdy(p->scope, type, attr->u.sharding, NULL, out_boxes);
  } else if (mp_op_attr(op, MP_ATTR_MHLO_SHARDING) != NULL) {
    status =
        mp_placement_from_gspmd(p->scope, type, mp_op_str(op, MP_ATTR_MHLO_SHARDING), out_boxes);
  }
  return at_op(op, status);
}

static mp_status_t partition_identity(mp_partitioner_t *p, const mp_op_t *op) {
  const mp_value_t *operand = op->operands[0];
  const mp_value_t *result = &op->results[0];
  p->versions.versions[result->id] = NULL;
  // Oldest first, so that the result's versions come in the operand's order.
  const mp_version_t *chain[64];
  uint32_t count = 0;
  for (const mp_version_t *v = p->versions.versions[operand->id]; v != NULL && count < 64;
       v = v->next) {
    chain[count++] = v;
  }
  while (count-- > 0) {
    MP_RETURN_IF_ERROR(
        mp_versions_add(&p->versions, result, chain[count]->boxes, chain[count]->value));
  }
  MP_RETURN_IF_ERROR(annotated(p, op, &p->versions.preferred[result->id]));
  return NULL;
}

// --- GSPMD's way in and out of manual code ---

static bool is_call_to(const mp_op_t *op, const char *target) {
  return op->code == MP_OP_CUSTOM_CALL && op->num_operands == 1 && op->num_results == 1 &&
         mp_str_is(mp_op_str(op, MP_ATTR_CALL_TARGET_NAME), target);
}

static mp_status_t check_local_type(mp_partitioner_t *p, const mp_op_t *op,
                                    const mp_type_t *global_type, const mp_boxes_t *boxes,
                                    const mp_type_t *local_type) {
  const mp_type_t *expected = NULL;
  MP_RETURN_IF_ERROR(mp_placement_local_type(p->arena, global_type, boxes, &expected));
  if (mp_type_equal(expected, local_type)) return NULL;
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_type_print(local_type, &text);
  mp_strbuf_puts(&text, " is not the local part ");
  mp_type_print(expected, &text);
  mp_status_t status = mp_op_error(op, MP_INVALID_ARGUMENT, "%s", mp_strbuf_text(&text));
  mp_strbuf_deinit(&text);
  return status;
}

// The part of a global value by the sharding that its @Sharding annotation gives it.
static mp_status_t partition_full_to_shard(mp_partitioner_t *p, const mp_op_t *op) {
  const mp_value_t *operand = op->operands[0];
  const mp_boxes_t *boxes = p->versions.preferred[operand->id];
  MP_RETURN_IF_ERROR(check_local_type(p, op, operand->type, boxes, op->results[0].type));
  mp_value_t *value = NULL;
  MP_RETURN_IF_ERROR(mp_versions_get(&p->versions, p->scope, operand, boxes, op->loc, &value));
  return mp_versions_add(&p->versions, &op->results[0], NULL, value);
}

static mp_status_t partition_shard_to_full(mp_partitioner_t *p, const mp_op_t *op) {
  const mp_boxes_t *boxes = NULL;
  MP_RETURN_IF_ERROR(annotated(p, op, &boxes));
  MP_RETURN_IF_ERROR(check_local_type(p, op, op->results[0].type, boxes, op->operands[0]->type));
  mp_value_t *value = NULL;
  MP_RETURN_IF_ERROR(get_whole(p, op, op->operands[0], &value));
  return mp_versions_add(&p->versions, &op->results[0], boxes, value);
}

// --- manual regions ---

static mp_status_t manual_placement(mp_partitioner_t *p, const mp_op_t *op, const mp_type_t *type,
                                    const mp_sdy_sharding_t *sharding,
                                    const mp_axis_list_t *manual_axes, const mp_type_t *local_type,
                                    const mp_boxes_t **out_boxes) {
  MP_RETURN_IF_ERROR(
      at_op(op, mp_placement_from_sdy(p->scope, type, sharding, manual_axes, out_boxes)));
  if (!mp_type_is_tensor(type)) return NULL;
  return check_local_type(p, op, type, *out_boxes, local_type);
}

// The mesh whose axes are manual: the first with more than one device, as tokens and scalars may
// come with an empty one.
static const mp_mesh_t *mesh_of(const mp_sdy_shardings_t *in, const mp_sdy_shardings_t *out) {
  const mp_sdy_shardings_t *lists[] = {in, out};
  const mp_mesh_t *any = NULL;
  for (int side = 0; side < 2; ++side) {
    for (uint32_t i = 0; i < lists[side]->count; ++i) {
      const mp_mesh_t *mesh = lists[side]->shardings[i].mesh;
      if (mesh == NULL) continue;
      if (mp_mesh_size(mesh) != 1) return mesh;
      any = mesh;
    }
  }
  return any;
}

static mp_status_t check_manual(mp_partitioner_t *p, const mp_op_t *op) {
  const mp_attr_t *in = mp_op_attr(op, MP_ATTR_IN_SHARDINGS);
  const mp_attr_t *out = mp_op_attr(op, MP_ATTR_OUT_SHARDINGS);
  const mp_attr_t *axes = mp_op_attr(op, MP_ATTR_MANUAL_AXES);
  if (in == NULL || in->kind != MP_KIND_SHARDINGS || out == NULL ||
      out->kind != MP_KIND_SHARDINGS || axes == NULL || axes->kind != MP_KIND_AXES) {
    return mp_op_error(op, MP_INVALID_ARGUMENT,
                       "in_shardings, out_shardings and manual_axes are needed");
  }
  if (in->u.shardings.count != op->num_operands || out->u.shardings.count != op->num_results ||
      op->regions[0]->num_args != op->num_operands) {
    return mp_op_error(op, MP_INVALID_ARGUMENT,
                       "%u operands and %u results, but %u in_shardings and %u out_shardings",
                       op->num_operands, op->num_results, in->u.shardings.count,
                       out->u.shardings.count);
  }
  mp_value_t **captures = NULL;
  uint32_t num_captures = 0;
  MP_RETURN_IF_ERROR(mp_op_captures(op, p->arena, &captures, &num_captures));
  if (num_captures == 0) return NULL;
  return mp_op_error(op, MP_INVALID_ARGUMENT, "the body uses a value from outside of it");
}

// Takes the body out of its wrapper: operands become parts by the manual axes, results are parts.
static mp_status_t partition_manual(mp_partitioner_t *p, const mp_op_t *op) {
  MP_RETURN_IF_ERROR(check_manual(p, op));
  const mp_attr_t *in = mp_op_attr(op, MP_ATTR_IN_SHARDINGS);
  const mp_attr_t *out = mp_op_attr(op, MP_ATTR_OUT_SHARDINGS);
  const mp_axis_list_t *axes = &mp_op_attr(op, MP_ATTR_MANUAL_AXES)->u.axes;
  const mp_block_t *body = op->regions[0];
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const mp_boxes_t *boxes = NULL;
    MP_RETURN_IF_ERROR(manual_placement(p, op, op->operands[i]->type, &in->u.shardings.shardings[i],
                                        axes, body->args[i].type, &boxes));
    mp_value_t *value = NULL;
    MP_RETURN_IF_ERROR(
        mp_versions_get(&p->versions, p->scope, op->operands[i], boxes, op->loc, &value));
    MP_RETURN_IF_ERROR(mp_versions_add(&p->versions, &body->args[i], NULL, value));
  }
  const mp_spmd_scope_t *outer = p->scope;
  const mp_mesh_t *mesh = mesh_of(&in->u.shardings, &out->u.shardings);
  MP_RETURN_IF_ERROR(at_op(op, mp_spmd_scope_enter(p->arena, outer, mesh, *axes, &p->scope)));
  const mp_op_t *terminator = NULL;
  MP_RETURN_IF_ERROR(partition_block(p, body, &terminator));
  if (terminator == NULL || terminator->num_operands != op->num_results) {
    return mp_op_error(op, MP_INVALID_ARGUMENT, "the body does not return %u values",
                       op->num_results);
  }
  mp_value_t **values = MP_ARENA_ARRAY(p->arena, mp_value_t *, op->num_results);
  MP_RETURN_IF_NULL(values);
  for (uint32_t i = 0; i < op->num_results; ++i) {
    MP_RETURN_IF_ERROR(get_whole(p, op, terminator->operands[i], &values[i]));
  }
  p->scope = outer;
  for (uint32_t i = 0; i < op->num_results; ++i) {
    const mp_boxes_t *boxes = NULL;
    MP_RETURN_IF_ERROR(manual_placement(p, op, op->results[i].type, &out->u.shardings.shardings[i],
                                        axes, terminator->operands[i]->type, &boxes));
    MP_RETURN_IF_ERROR(mp_versions_add(&p->versions, &op->results[i], boxes, values[i]));
  }
  return NULL;
}

// --- all other ops ---

static bool has_version(const mp_partitioner_t *p, const mp_op_t *op, const mp_boxes_t *boxes) {
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    if (!mp_type_same_shape(op->operands[i]->type, op->results[0].type)) continue;
    if (!mp_versions_has(&p->versions, op->operands[i], boxes)) return false;
  }
  return true;
}

// The placement on whose parts an elementwise op works: that of the first operand of the result's
// shape that has parts. NULL: it works on whole arrays, also when all are there and only some in
// parts, so that nothing need be sent.
static const mp_boxes_t *elementwise_placement(const mp_partitioner_t *p, const mp_op_t *op) {
  if ((mp_op_info(op->code)->traits & MP_OP_TRAIT_ELEMENTWISE) == 0) return NULL;
  if (op->num_results != 1 || p->scope->num_partitions == 1) return NULL;
  const mp_boxes_t *boxes = NULL;
  for (uint32_t i = 0; i < op->num_operands && boxes == NULL; ++i) {
    if (!mp_type_same_shape(op->operands[i]->type, op->results[0].type)) continue;
    boxes = mp_versions_sharded(&p->versions, op->operands[i]);
  }
  if (boxes == NULL) return NULL;
  return has_version(p, op, boxes) || !has_version(p, op, NULL) ? boxes : NULL;
}

// The placement that propagation gave a value; whole without propagation.
static mp_status_t boxes_of(mp_partitioner_t *p, const mp_value_t *value,
                            const mp_boxes_t **out_boxes) {
  *out_boxes = NULL;
  if (!p->is_propagated) return NULL;
  return mp_atom_sharding_boxes(&p->propagation.space, p->scope, value->type,
                                p->propagation.values[value->id], out_boxes);
}

// Ends the block in work with the values of `terminator` in these placements (NULL: all whole).
static mp_status_t copy_terminator(mp_partitioner_t *p, const mp_op_t *terminator,
                                   const mp_boxes_t *const *boxes) {
  mp_value_t **operands = MP_ARENA_ARRAY(p->arena, mp_value_t *, terminator->num_operands);
  MP_RETURN_IF_NULL(operands);
  for (uint32_t i = 0; i < terminator->num_operands; ++i) {
    MP_RETURN_IF_ERROR(mp_versions_get(&p->versions, p->scope, terminator->operands[i],
                                       boxes == NULL ? NULL : boxes[i], terminator->loc,
                                       &operands[i]));
  }
  const mp_op_spec_t spec = {.code = terminator->code,
                             .loc = terminator->loc,
                             .num_operands = terminator->num_operands,
                             .operands = operands};
  mp_op_t *copy = NULL;
  MP_RETURN_IF_ERROR(mp_op_create(p->module, &spec, &copy));
  mp_block_append(p->versions.block, copy);
  return NULL;
}

// A region whose arguments and returned values lie as these placements say (NULL: all whole).
static mp_status_t copy_region(mp_partitioner_t *p, const mp_block_t *from,
                               const mp_boxes_t *const *args, const mp_boxes_t *const *returned,
                               mp_block_t **out_to) {
  const mp_type_t **types = MP_ARENA_ARRAY(p->arena, const mp_type_t *, from->num_args);
  MP_RETURN_IF_NULL(types);
  for (uint32_t i = 0; i < from->num_args; ++i) {
    MP_RETURN_IF_ERROR(mp_placement_local_type(p->arena, from->args[i].type,
                                               args == NULL ? NULL : args[i], &types[i]));
  }
  mp_block_t *to = NULL;
  MP_RETURN_IF_ERROR(mp_block_create(p->module, from->num_args, types, &to));
  mp_block_t *outer = p->versions.block;
  const uint32_t mark = p->versions.log_size;
  p->versions.block = to;
  for (uint32_t i = 0; i < from->num_args; ++i) {
    MP_RETURN_IF_ERROR(
        mp_versions_add(&p->versions, &from->args[i], args == NULL ? NULL : args[i], &to->args[i]));
  }
  const mp_op_t *terminator = NULL;
  MP_RETURN_IF_ERROR(partition_block(p, from, &terminator));
  if (terminator != NULL) MP_RETURN_IF_ERROR(copy_terminator(p, terminator, returned));
  mp_versions_rewind(&p->versions, mark);
  p->versions.block = outer;
  *out_to = to;
  return NULL;
}

// Regions see outer values whole: those versions must exist before the region begins, or each run
// of the region would make them again.
static mp_status_t bring_captures(mp_partitioner_t *p, const mp_op_t *op) {
  mp_value_t **captures = NULL;
  uint32_t count = 0;
  MP_RETURN_IF_ERROR(mp_op_captures(op, p->arena, &captures, &count));
  for (uint32_t i = 0; i < count; ++i) {
    mp_value_t *value = NULL;
    MP_RETURN_IF_ERROR(get_whole(p, op, captures[i], &value));
  }
  return NULL;
}

// An op in the making: its operands and regions are per-device already.
typedef struct {
  mp_value_t **operands;
  const mp_type_t **types;
  mp_block_t **regions;
  const mp_named_attr_t *attrs;
} mp_op_parts_t;

static mp_status_t start_op(mp_partitioner_t *p, const mp_op_t *op, mp_op_parts_t *out_parts) {
  *out_parts = (mp_op_parts_t){
      .operands = MP_ARENA_ARRAY(p->arena, mp_value_t *, op->num_operands),
      .types = MP_ARENA_ARRAY(p->arena, const mp_type_t *, op->num_results),
      .regions = MP_ARENA_ARRAY(p->arena, mp_block_t *, op->num_regions),
      .attrs = op->attrs,
  };
  if (out_parts->operands == NULL || out_parts->types == NULL || out_parts->regions == NULL) {
    return mp_status_out_of_memory();
  }
  return NULL;
}

static mp_status_t finish_op(mp_partitioner_t *p, const mp_op_t *op, const mp_op_parts_t *parts,
                             mp_op_t **out_copy) {
  const mp_op_spec_t spec = {op->code,        op->loc,      op->num_operands, parts->operands,
                             op->num_results, parts->types, op->num_regions,  parts->regions,
                             op->num_attrs,   parts->attrs};
  MP_RETURN_IF_ERROR(mp_op_create(p->module, &spec, out_copy));
  mp_block_append(p->versions.block, *out_copy);
  return NULL;
}

// An op on whole operands, or an elementwise one on parts that happen to be there.
static mp_status_t partition_whole(mp_partitioner_t *p, const mp_op_t *op) {
  const mp_boxes_t *boxes = elementwise_placement(p, op);
  if (op->num_regions != 0) MP_RETURN_IF_ERROR(bring_captures(p, op));
  mp_op_parts_t parts;
  MP_RETURN_IF_ERROR(start_op(p, op, &parts));
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    // Scalars beside arrays (clamp's bounds, select's predicate) stay whole.
    bool is_part = boxes != NULL && mp_type_same_shape(op->operands[i]->type, op->results[0].type);
    MP_RETURN_IF_ERROR(mp_versions_get(&p->versions, p->scope, op->operands[i],
                                       is_part ? boxes : NULL, op->loc, &parts.operands[i]));
  }
  for (uint32_t i = 0; i < op->num_results; ++i) {
    MP_RETURN_IF_ERROR(
        mp_placement_local_type(p->arena, op->results[i].type, boxes, &parts.types[i]));
  }
  for (uint32_t r = 0; r < op->num_regions; ++r) {
    MP_RETURN_IF_ERROR(copy_region(p, op->regions[r], NULL, NULL, &parts.regions[r]));
  }
  mp_op_t *copy = NULL;
  MP_RETURN_IF_ERROR(finish_op(p, op, &parts, &copy));
  for (uint32_t i = 0; i < op->num_results; ++i) {
    MP_RETURN_IF_ERROR(mp_versions_add(&p->versions, &op->results[i], boxes, &copy->results[i]));
  }
  return NULL;
}

// An op on the parts that lowering chose.
static mp_status_t partition_local(mp_partitioner_t *p, const mp_op_t *op,
                                   const mp_local_op_t *local) {
  if (op->num_regions != 0) MP_RETURN_IF_ERROR(bring_captures(p, op));
  mp_op_parts_t parts;
  MP_RETURN_IF_ERROR(start_op(p, op, &parts));
  parts.attrs = local->attrs;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    MP_RETURN_IF_ERROR(mp_versions_get(&p->versions, p->scope, op->operands[i], local->operands[i],
                                       op->loc, &parts.operands[i]));
  }
  for (uint32_t i = 0; i < op->num_results; ++i) {
    MP_RETURN_IF_ERROR(
        mp_placement_local_type(p->arena, op->results[i].type, local->results[i], &parts.types[i]));
  }
  for (uint32_t r = 0; r < op->num_regions; ++r) {
    MP_RETURN_IF_ERROR(copy_region(p, op->regions[r], NULL, NULL, &parts.regions[r]));
  }
  mp_op_t *copy = NULL;
  MP_RETURN_IF_ERROR(finish_op(p, op, &parts, &copy));
  for (uint32_t i = 0; i < op->num_results; ++i) {
    mp_value_t *value = &copy->results[i];
    if (local->combine_over != NULL) {
      MP_RETURN_IF_ERROR(mp_unreduced_combine(p->module, p->versions.block, local->combine_over,
                                              local->combine, value, op->loc, &value));
    }
    MP_RETURN_IF_ERROR(mp_versions_add(&p->versions, &op->results[i], local->results[i], value));
  }
  return NULL;
}

// An iota that is sharded along its own dimension counts from each part's start.
static mp_status_t partition_iota(mp_partitioner_t *p, const mp_op_t *op,
                                  const mp_local_op_t *local) {
  const mp_type_t *type = NULL;
  const uint32_t dimension = (uint32_t)mp_op_int(op, MP_ATTR_IOTA_DIMENSION, 0);
  MP_RETURN_IF_ERROR(
      mp_placement_local_type(p->arena, op->results[0].type, local->results[0], &type));
  if (type->dims[dimension] == op->results[0].type->dims[dimension]) {
    return partition_local(p, op, local);  // every part counts from 0
  }
  mp_value_t *value = NULL;
  MP_RETURN_IF_ERROR(mp_append_iota_part(p->module, p->versions.block, type, dimension,
                                         local->results[0], op->loc, &value));
  return mp_versions_add(&p->versions, &op->results[0], local->results[0], value);
}

// Loops and branches: what they carry and return lies as propagation says, in all rounds and
// branches alike.
static mp_status_t partition_control(mp_partitioner_t *p, const mp_op_t *op) {
  mp_op_parts_t parts;
  MP_RETURN_IF_ERROR(start_op(p, op, &parts));
  const mp_boxes_t **boxes = MP_ARENA_ARRAY(p->arena, const mp_boxes_t *, op->num_results);
  MP_RETURN_IF_NULL(boxes);
  for (uint32_t i = 0; i < op->num_results; ++i) {
    MP_RETURN_IF_ERROR(boxes_of(p, &op->results[i], &boxes[i]));
    MP_RETURN_IF_ERROR(
        mp_placement_local_type(p->arena, op->results[i].type, boxes[i], &parts.types[i]));
  }
  const bool is_loop = op->code == MP_OP_WHILE;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    MP_RETURN_IF_ERROR(mp_versions_get(&p->versions, p->scope, op->operands[i],
                                       is_loop ? boxes[i] : NULL, op->loc, &parts.operands[i]));
  }
  for (uint32_t r = 0; r < op->num_regions; ++r) {
    const bool is_condition = is_loop && r == 0;
    MP_RETURN_IF_ERROR(copy_region(p, op->regions[r], is_loop ? boxes : NULL,
                                   is_condition ? NULL : boxes, &parts.regions[r]));
  }
  mp_op_t *copy = NULL;
  MP_RETURN_IF_ERROR(finish_op(p, op, &parts, &copy));
  for (uint32_t i = 0; i < op->num_results; ++i) {
    MP_RETURN_IF_ERROR(mp_versions_add(&p->versions, &op->results[i], boxes[i], &copy->results[i]));
  }
  return NULL;
}

static mp_status_t partition_op(mp_partitioner_t *p, const mp_op_t *op) {
  if (!p->is_propagated) return partition_whole(p, op);
  if (op->code == MP_OP_WHILE || op->code == MP_OP_CASE) return partition_control(p, op);
  // Ops inside reducers and the like are not propagated to: scalars, which are whole.
  const bool is_known = op->num_results != 0 && p->propagation.values[op->results[0].id] != NULL;
  mp_local_op_t local = {0};
  bool is_local = false;
  if (is_known) {
    MP_RETURN_IF_ERROR(
        at_op(op, mp_lower_op(p->arena, &p->propagation, p->scope, op, &local, &is_local)));
  }
  if (!is_local) return partition_whole(p, op);
  return op->code == MP_OP_IOTA ? partition_iota(p, op, &local) : partition_local(p, op, &local);
}

static mp_status_t dispatch(mp_partitioner_t *p, const mp_op_t *op) {
  if (op->code == MP_OP_SDY_MANUAL_COMPUTATION) return partition_manual(p, op);
  if (op->code == MP_OP_SDY_SHARDING_GROUP) return NULL;
  if (mp_is_placement_op(op)) return partition_identity(p, op);
  if (is_call_to(op, "SPMDFullToShardShape")) return partition_full_to_shard(p, op);
  if (is_call_to(op, "SPMDShardToFullShape")) return partition_shard_to_full(p, op);
  if (strncmp(mp_op_info(op->code)->name, "sdy.", 4) == 0) {
    return mp_op_error(op, MP_UNIMPLEMENTED,
                       "%s is an op that only partitioners make; programs must not hold it",
                       mp_op_info(op->code)->name);
  }
  return partition_op(p, op);
}

static mp_status_t partition_block(mp_partitioner_t *p, const mp_block_t *block,
                                   const mp_op_t **out_terminator) {
  for (const mp_op_t *op = block->first; op != NULL; op = op->next) {
    if (mp_op_info(op->code)->traits & MP_OP_TRAIT_TERMINATOR) {
      *out_terminator = op;
      return NULL;
    }
    MP_RETURN_IF_ERROR(dispatch(p, op));
  }
  return NULL;
}

// --- main's parameters and results ---

// The sharding in an argument's or result's attributes. `out_has`: it has one.
static mp_status_t io_placement(mp_partitioner_t *p, const mp_type_t *type, const mp_attr_t *attrs,
                                bool *out_has, const mp_boxes_t **out_boxes) {
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

static bool is_allowed(const bool *flags, uint32_t count, uint32_t index) {
  if (count == 1) return flags[0];
  return index < count && flags[index];
}

// How a parameter is used: by the `operand`-th operand of manual region `op` first, and by nothing
// but manual regions. `op` is NULL when that is not so.
typedef struct {
  const mp_op_t *op;
  uint32_t operand;
  bool is_mixed;  // by something else too
} mp_param_use_t;

static void note_use(const mp_block_t *body, mp_param_use_t *uses, const mp_value_t *value,
                     const mp_op_t *op, uint32_t operand, bool is_manual) {
  if (value->block != body) return;
  mp_param_use_t *use = &uses[value->index];
  use->is_mixed |= !is_manual;
  if (use->is_mixed) {
    use->op = NULL;
  } else if (use->op == NULL) {
    *use = (mp_param_use_t){op, operand, false};
  }
}

static mp_status_t find_manual_uses(mp_partitioner_t *p, const mp_block_t *body,
                                    mp_param_use_t *uses) {
  for (const mp_op_t *op = body->first; op != NULL; op = op->next) {
    const bool is_manual = op->code == MP_OP_SDY_MANUAL_COMPUTATION;
    for (uint32_t i = 0; i < op->num_operands; ++i) {
      note_use(body, uses, op->operands[i], op, i, is_manual);
    }
    if (op->num_regions == 0) continue;
    mp_value_t **captures = NULL;
    uint32_t num_captures = 0;
    MP_RETURN_IF_ERROR(mp_op_captures(op, p->arena, &captures, &num_captures));
    for (uint32_t i = 0; i < num_captures; ++i) note_use(body, uses, captures[i], op, 0, false);
  }
  return NULL;
}

// The placement that the manual region using this parameter wants it in.
static mp_status_t wanted_placement(mp_partitioner_t *p, const mp_type_t *type,
                                    const mp_param_use_t *use, const mp_boxes_t **out_boxes) {
  MP_RETURN_IF_ERROR(check_manual(p, use->op));
  const mp_attr_t *in = mp_op_attr(use->op, MP_ATTR_IN_SHARDINGS);
  const mp_axis_list_t *axes = &mp_op_attr(use->op, MP_ATTR_MANUAL_AXES)->u.axes;
  return manual_placement(p, use->op, type, &in->u.shardings.shardings[use->operand], axes,
                          use->op->regions[0]->args[use->operand].type, out_boxes);
}

static mp_status_t partition_params(mp_partitioner_t *p, const mp_func_t *main,
                                    const mp_partition_options_t *options, mp_block_t **out_body,
                                    mp_partition_io_t *params) {
  const mp_block_t *old = main->body;
  mp_param_use_t *uses = MP_ARENA_ARRAY(p->arena, mp_param_use_t, old->num_args);
  MP_RETURN_IF_NULL(uses);
  MP_RETURN_IF_ERROR(find_manual_uses(p, old, uses));
  const mp_type_t **types = MP_ARENA_ARRAY(p->arena, const mp_type_t *, old->num_args);
  MP_RETURN_IF_NULL(types);
  for (uint32_t i = 0; i < old->num_args; ++i) {
    bool has = false;
    params[i].global_type = old->args[i].type;
    MP_RETURN_IF_ERROR(mp_status_annotate(
        io_placement(p, old->args[i].type, main->arg_attrs == NULL ? NULL : main->arg_attrs[i],
                     &has, &params[i].boxes),
        "argument %u of main", i));
    if (!has && uses[i].op != NULL &&
        is_allowed(options->propagate_to_params, options->num_propagate_to_params, i)) {
      MP_RETURN_IF_ERROR(wanted_placement(p, old->args[i].type, &uses[i], &params[i].boxes));
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

// What a result without a sharding of its own comes out as: what propagation found, or else what a
// constraint on it asks for, or the parts that are there. Uneven parts would be a shape that
// clients cannot describe (JAX refuses them): whole then.
static mp_status_t open_result_placement(mp_partitioner_t *p, const mp_value_t *value,
                                         uint32_t result, const mp_boxes_t **out_boxes) {
  if (p->is_propagated) {
    return mp_atom_sharding_boxes(&p->propagation.space, p->scope, value->type,
                                  p->propagation.results[result], out_boxes);
  }
  const mp_boxes_t *boxes = p->versions.preferred[value->id];
  if (boxes == NULL) boxes = mp_versions_sharded(&p->versions, value);
  *out_boxes = boxes != NULL && mp_placement_is_even(boxes) ? boxes : NULL;
  return NULL;
}

static mp_status_t partition_results(mp_partitioner_t *p, const mp_func_t *main,
                                     const mp_op_t *terminator,
                                     const mp_partition_options_t *options,
                                     mp_partition_io_t *results) {
  mp_value_t **operands = MP_ARENA_ARRAY(p->arena, mp_value_t *, terminator->num_operands);
  MP_RETURN_IF_NULL(operands);
  for (uint32_t i = 0; i < terminator->num_operands; ++i) {
    const mp_value_t *value = terminator->operands[i];
    bool has = false;
    results[i].global_type = value->type;
    MP_RETURN_IF_ERROR(mp_status_annotate(
        io_placement(p, value->type, main->result_attrs == NULL ? NULL : main->result_attrs[i],
                     &has, &results[i].boxes),
        "result %u of main", i));
    if (!has && is_allowed(options->propagate_to_results, options->num_propagate_to_results, i)) {
      MP_RETURN_IF_ERROR(open_result_placement(p, value, i, &results[i].boxes));
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

static mp_status_t propagate(mp_partitioner_t *p, const mp_partition_options_t *options) {
  const uint32_t num_results = p->module->main->num_results;
  if (options->num_partitions == 1) return NULL;
  bool *is_open = MP_ARENA_ARRAY(p->arena, bool, num_results);
  MP_RETURN_IF_NULL(is_open);
  for (uint32_t i = 0; i < num_results; ++i)
    is_open[i] = is_allowed(options->propagate_to_results, options->num_propagate_to_results, i);
  p->propagation.num_values = p->versions.num_values;
  return mp_propagate(p->module, options->num_partitions, is_open, &p->propagation,
                      &p->is_propagated);
}

mp_status_t mp_spmd_partition(mp_module_t *module, const mp_partition_options_t *options,
                              mp_partition_t *out_partition) {
  mp_func_t *main = module->main;
  mp_partitioner_t p = {.module = module, .arena = module->arena};
  MP_RETURN_IF_ERROR(mp_versions_create(module, &p.versions));
  MP_RETURN_IF_ERROR(mp_spmd_scope_top(p.arena, options->num_partitions, &p.scope));
  MP_RETURN_IF_ERROR(propagate(&p, options));
  mp_partition_io_t *params = MP_ARENA_ARRAY(p.arena, mp_partition_io_t, main->body->num_args);
  mp_partition_io_t *results = MP_ARENA_ARRAY(p.arena, mp_partition_io_t, main->num_results);
  if (params == NULL || results == NULL) return mp_status_out_of_memory();
  mp_block_t *body = NULL;
  MP_RETURN_IF_ERROR(partition_params(&p, main, options, &body, params));
  p.versions.block = body;
  const mp_op_t *terminator = NULL;
  MP_RETURN_IF_ERROR(partition_block(&p, main->body, &terminator));
  if (terminator == NULL || terminator->num_operands != main->num_results) {
    return mp_status_make(MP_INVALID_ARGUMENT, "main does not return %u values", main->num_results);
  }
  MP_RETURN_IF_ERROR(partition_results(&p, main, terminator, options, results));
  body->parent_func = main;
  main->body = body;
  *out_partition = (mp_partition_t){params, results};
  return NULL;
}
