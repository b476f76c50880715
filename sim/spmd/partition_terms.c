// Linear ops on values that are still terms of sums: adding first and summing up once sends half of
// what summing up twice does, and gradients that a program accumulates are summed up when it is
// done.
#include "sim/spmd/partitioner.h"
#include "sim/spmd/placement.h"

static mp_status_t count_uses(void *context, mp_op_t *op) {
  mp_partitioner_t *p = context;
  for (uint32_t i = 0; i < op->num_operands; ++i) ++p->uses[op->operands[i]->id];
  return NULL;
}

mp_status_t mp_partitioner_count_uses(mp_partitioner_t *p) {
  p->uses = MP_ARENA_ARRAY(p->arena, uint32_t, (size_t)p->versions.num_values + 1);
  MP_RETURN_IF_NULL(p->uses);
  return mp_module_walk(p->module, count_uses, p);
}

// The placement of a value that exists in terms alone, and is used by nothing else that would want
// their sum.
static const mp_boxes_t *terms_of(const mp_partitioner_t *p, const mp_value_t *value) {
  const mp_version_t *version = p->versions.versions[value->id];
  if (version == NULL || version->next != NULL || version->boxes == NULL) return NULL;
  return p->uses[value->id] == 1 ? version->boxes : NULL;
}

// A transposed placement.
static mp_status_t permute_boxes(mp_partitioner_t *p, const mp_op_t *op, const mp_boxes_t *from,
                                 const mp_boxes_t **out_boxes) {
  const mp_attr_t *permutation = mp_op_attr(op, MP_ATTR_PERMUTATION);
  mp_boxes_t boxes;
  int64_t *starts = NULL;
  int64_t *sizes = NULL;
  MP_RETURN_IF_ERROR(mp_placement_start(p->scope, op->results[0].type, &boxes, &starts, &sizes));
  for (uint32_t i = 0; i < from->num_partitions; ++i) {
    for (uint32_t d = 0; d < from->rank; ++d) {
      const size_t to = (size_t)i * from->rank + d;
      const size_t at = (size_t)i * from->rank + (size_t)permutation->u.ints.values[d];
      starts[to] = from->starts[at];
      sizes[to] = from->sizes[at];
    }
  }
  boxes.partials = from->partials;
  return mp_spmd_pool_boxes(p->scope->pool, &boxes, out_boxes);
}

// Whether the terms of the operands make the terms of the result, and where they lie.
static mp_status_t place_result(mp_partitioner_t *p, const mp_op_t *op,
                                const mp_boxes_t **out_boxes) {
  *out_boxes = NULL;
  if (op->num_operands == 0 || op->num_operands > 2) return NULL;
  const mp_boxes_t *boxes = terms_of(p, op->operands[0]);
  if (boxes == NULL || boxes->partials == NULL) return NULL;
  if (op->results[0].type->dtype == MP_DTYPE_BOOL) return NULL;  // adds by "or"
  switch (op->code) {
    case MP_OP_ADD:
    case MP_OP_SUBTRACT:
      if (op->operands[0] == op->operands[1]) return NULL;
      if (!mp_placement_equal(boxes, terms_of(p, op->operands[1]))) return NULL;
      *out_boxes = boxes;
      return NULL;
    case MP_OP_NEGATE:
      *out_boxes = boxes;
      return NULL;
    case MP_OP_TRANSPOSE:
      return permute_boxes(p, op, boxes, out_boxes);
    default:
      return NULL;
  }
}

mp_status_t mp_partitioner_terms(mp_partitioner_t *p, const mp_op_t *op, bool *out_done) {
  *out_done = false;
  const mp_boxes_t *boxes = NULL;
  MP_RETURN_IF_ERROR(place_result(p, op, &boxes));
  if (boxes == NULL) return NULL;
  mp_op_parts_t parts;
  MP_RETURN_IF_ERROR(mp_partitioner_start_op(p, op, &parts));
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    parts.operands[i] = p->versions.versions[op->operands[i]->id]->value;
  }
  MP_RETURN_IF_ERROR(
      mp_placement_local_type(p->arena, op->results[0].type, boxes, &parts.types[0]));
  mp_op_t *copy = NULL;
  MP_RETURN_IF_ERROR(mp_partitioner_finish_op(p, op, &parts, &copy));
  *out_done = true;
  return mp_versions_add(&p->versions, &op->results[0], boxes, &copy->results[0]);
}
