// Linear ops on values that are still terms of sums. Adding two such values first and summing up
// once sends half as much as summing up both, and gradients that a program accumulates are summed
// up once at the end.
#include "sim/ir/reducer.h"
#include "sim/numeric/dtype.h"
#include "sim/spmd/build/unreduced.h"
#include "sim/spmd/partition/partitioner.h"
#include "sim/spmd/sharding/placement.h"

static mp_status_t partition_terms_count_uses(void *context, mp_op_t *op) {
  mp_partitioner_t *p = context;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    ++p->uses[op->operands[i]->id];
    p->users[op->operands[i]->id] = op;
  }
  return NULL;
}

mp_status_t mp_partitioner_count_uses(mp_partitioner_t *p) {
  const size_t count = (size_t)p->versions.num_values + 1;
  p->uses = MP_ARENA_ARRAY(p->arena, uint32_t, count);
  p->users = MP_ARENA_ARRAY(p->arena, const mp_op_t *, count);
  if (p->uses == NULL || p->users == NULL) return mp_status_out_of_memory();
  return mp_module_walk(p->module, partition_terms_count_uses, p);
}

// The placement of a value that exists only as terms of a sum and has one use, so that nothing else
// needs the sum; NULL for other values.
static const mp_boxes_t *partition_terms_of(const mp_partitioner_t *p, const mp_value_t *value) {
  const mp_version_t *version = p->versions.versions[value->id];
  if (version == NULL || version->next != NULL || version->boxes == NULL) return NULL;
  if (version->boxes->partials == NULL || p->uses[value->id] != 1) return NULL;
  if (version->boxes->unreduced_kind != MP_UNREDUCED_SUM) return NULL;
  return version->boxes;
}

static bool partition_terms_is_unreduced(const mp_partitioner_t *p, const mp_value_t *value) {
  const mp_atom_sharding_t *sharding = p->propagation.values[value->id];
  return sharding != NULL && sharding->unreduced != 0;
}

// Whether a sharding requests the value as terms: its own, or that of a constraint that is its only
// user.
static bool partition_terms_is_wanted_in_terms(const mp_partitioner_t *p, const mp_value_t *value) {
  if (partition_terms_is_unreduced(p, value)) return true;
  const mp_op_t *user = p->users[value->id];
  return p->uses[value->id] == 1 && user->code == MP_OP_SDY_SHARDING_CONSTRAINT &&
         partition_terms_is_unreduced(p, &user->results[0]);
}

// ---- placements ----

// Transposes a placement.
static mp_status_t partition_terms_permute_boxes(mp_partitioner_t *p, const mp_op_t *op,
                                                 const mp_boxes_t *from,
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

// The placement of terms that are each as large as the value.
static mp_status_t partition_terms_whole_terms(mp_partitioner_t *p, const mp_type_t *type,
                                               const int32_t *partials,
                                               const mp_boxes_t **out_boxes) {
  const mp_boxes_t *whole = NULL;
  MP_RETURN_IF_ERROR(mp_placement_whole(p->scope, type, &whole));
  mp_boxes_t boxes = *whole;
  boxes.partials = partials;
  return mp_spmd_pool_boxes(p->scope->pool, &boxes, out_boxes);
}

static bool partition_terms_are_whole(const mp_boxes_t *boxes) {
  for (uint32_t i = 0; i < boxes->num_partitions; ++i) {
    for (uint32_t d = 0; d < boxes->rank; ++d) {
      if (boxes->sizes[(size_t)i * boxes->rank + d] != boxes->dims[d]) return false;
    }
  }
  return true;
}

// ---- which ops are linear in which operands ----

static bool partition_terms_widens(const mp_op_t *op) {
  const mp_dtype_t from = op->operands[0]->type->dtype;
  const mp_dtype_t to = op->results[0].type->dtype;
  return mp_dtype_is_float(from) && mp_dtype_is_float(to) &&
         mp_dtype_bits(to) >= 2 * mp_dtype_bits(from) && mp_dtype_bits(from) >= 16;
}

static bool partition_terms_adds_up(const mp_op_t *op) {
  return op->num_results == 1 &&
         mp_reduce_kind_opcode(mp_reducer_kind(op->regions[0])) == MP_OP_ADD &&
         mp_reducer_is_identity(op->operands[1], MP_OP_ADD);
}

// The number of operands, from the first on, in which the op is linear together; 0 if it is not.
static uint32_t partition_terms_num_linear(const mp_op_t *op) {
  if (mp_op_has(op, MP_OP_TRAIT_LINEAR)) return op->num_operands;
  if (mp_op_has(op, MP_OP_TRAIT_MOVES)) return 1;
  switch (op->code) {
    case MP_OP_DYNAMIC_UPDATE_SLICE:
      return 2;
    case MP_OP_CONVERT:
      return partition_terms_widens(op) ? 1 : 0;
    case MP_OP_REDUCE:
      return partition_terms_adds_up(op) ? 1 : 0;
    default:
      return 0;
  }
}

// The placement for ops that work on terms even if no sharding requests that: it costs nothing,
// because the result's terms are no larger than the operands' and at most one sum is made.
static mp_status_t partition_terms_place_unasked(mp_partitioner_t *p, const mp_op_t *op,
                                                 const mp_boxes_t *boxes,
                                                 const mp_boxes_t **out_boxes) {
  *out_boxes = NULL;
  switch (op->code) {
    case MP_OP_ADD:
    case MP_OP_SUBTRACT:
      if (mp_placement_equal(boxes, partition_terms_of(p, op->operands[1]))) *out_boxes = boxes;
      return NULL;
    case MP_OP_NEGATE:
      *out_boxes = boxes;
      return NULL;
    case MP_OP_TRANSPOSE:
      return partition_terms_permute_boxes(p, op, boxes, out_boxes);
    case MP_OP_RESHAPE:
    case MP_OP_REDUCE:
      if (!partition_terms_are_whole(boxes)) return NULL;
      return partition_terms_whole_terms(p, op->results[0].type, boxes->partials, out_boxes);
    default:
      return NULL;
  }
}

// An op on terms that is being made.
typedef struct {
  mp_op_parts_t parts;
  const mp_boxes_t *boxes;  // of the result; NULL: it does not work on terms
} terms_op_t;

static mp_status_t partition_terms_start(mp_partitioner_t *p, const mp_op_t *op, uint32_t linear,
                                         terms_op_t *out) {
  const mp_boxes_t *boxes = NULL;
  for (uint32_t i = 0; i < linear && boxes == NULL; ++i)
    boxes = partition_terms_of(p, op->operands[i]);
  if (boxes == NULL) return NULL;
  if (boxes == partition_terms_of(p, op->operands[0])) {
    MP_RETURN_IF_ERROR(partition_terms_place_unasked(p, op, boxes, &out->boxes));
  }
  const bool is_asked = out->boxes == NULL && partition_terms_are_whole(boxes) &&
                        partition_terms_is_wanted_in_terms(p, &op->results[0]);
  if (is_asked) {
    MP_RETURN_IF_ERROR(
        partition_terms_whole_terms(p, op->results[0].type, boxes->partials, &out->boxes));
  }
  if (out->boxes == NULL) return NULL;
  MP_RETURN_IF_ERROR(mp_partitioner_start_op(p, op, &out->parts));
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const mp_boxes_t *wanted = NULL;
    if (i < linear && !is_asked) wanted = partition_terms_of(p, op->operands[i]);
    if (i < linear && is_asked) {
      MP_RETURN_IF_ERROR(
          partition_terms_whole_terms(p, op->operands[i]->type, boxes->partials, &wanted));
    }
    MP_RETURN_IF_ERROR(mp_versions_get(&p->versions, p->scope, op->operands[i], wanted, op->loc,
                                       &out->parts.operands[i]));
  }
  return NULL;
}

mp_status_t mp_partitioner_terms(mp_partitioner_t *p, const mp_op_t *op, bool *out_done) {
  *out_done = false;
  const uint32_t linear = partition_terms_num_linear(op);
  // The sum of booleans is "or", which is not linear.
  if (linear == 0 || op->results[0].type->dtype == MP_DTYPE_BOOL) return NULL;
  terms_op_t terms = {.boxes = NULL};
  MP_RETURN_IF_ERROR(partition_terms_start(p, op, linear, &terms));
  if (terms.boxes == NULL) return NULL;
  MP_RETURN_IF_ERROR(
      mp_placement_local_type(p->arena, op->results[0].type, terms.boxes, &terms.parts.types[0]));
  for (uint32_t r = 0; r < op->num_regions; ++r) {
    MP_RETURN_IF_ERROR(
        mp_partitioner_copy_region(p, op->regions[r], NULL, NULL, &terms.parts.regions[r]));
  }
  mp_op_t *copy = NULL;
  MP_RETURN_IF_ERROR(mp_partitioner_finish_op(p, op, &terms.parts, &copy));
  *out_done = true;
  return mp_versions_add(&p->versions, &op->results[0], terms.boxes, &copy->results[0]);
}
