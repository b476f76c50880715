#include "sim/spmd/build/combine_sums.h"

#include <stdlib.h>

#include "sim/numeric/dtype.h"

// The most sums, and the most bytes, that one all_reduce combines, because all terms must be in
// memory until then.
enum { MP_MAX_COMBINED = 64, MP_MAX_COMBINED_BYTES = 32 << 20 };

// A sum and where in its block it can be made: after the op at position `first`, and before the op
// at `last`.
typedef struct {
  mp_op_t *op;
  int64_t bytes;
  uint32_t first, last;  // positions, counted from 1; 0 is the beginning of the block
  bool is_done;
} sum_t;

typedef struct {
  mp_module_t *module;
  mp_block_t *block;
  mp_arena_t *scratch;
  uint32_t num_ops, num_sums;
  mp_op_t **ops;  // by position
  sum_t *sums;    // sorted by `last` when the block has been read
} combiner_t;

// ---- reading a block ----

static bool combine_sums_is_sum(const mp_op_t *op) {
  return op != NULL && op->code == MP_OP_ALL_REDUCE && op->id == MP_COMBINE_MAY;
}

static int64_t combine_sums_bytes_of(const mp_op_t *op) {
  int64_t elements = 0;
  if (!mp_type_num_elements(op->results[0].type, &elements)) return MP_MAX_COMBINED_BYTES;
  return elements * (int64_t)mp_dtype_size(op->results[0].type->dtype);
}

// Notes which sums the op at `position`, or an op in its regions, uses.
static void combine_sums_note_uses(combiner_t *combiner, const mp_op_t *op, uint32_t position) {
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const mp_op_t *source = op->operands[i]->op;
    if (!combine_sums_is_sum(source) || source->parent != combiner->block) continue;
    sum_t *sum = &combiner->sums[op->operands[i]->id];
    if (position < sum->last) sum->last = position;
  }
  for (uint32_t r = 0; r < op->num_regions; ++r) {
    for (const mp_op_t *inner = op->regions[r]->first; inner != NULL; inner = inner->next) {
      combine_sums_note_uses(combiner, inner, position);
    }
  }
}

static int combine_sums_compare_sums(const void *a, const void *b) {
  const sum_t *left = a;
  const sum_t *right = b;
  if (left->last != right->last) return left->last < right->last ? -1 : 1;
  return left->op->results[0].id < right->op->results[0].id ? -1 : 1;
}

static mp_status_t combine_sums_read_block(combiner_t *combiner) {
  uint32_t position = 0;
  uint32_t sums = 0;
  for (mp_op_t *op = combiner->block->first; op != NULL; op = op->next) {
    ++combiner->num_ops;
    if (combine_sums_is_sum(op)) ++combiner->num_sums;
  }
  if (combiner->num_sums < 2) return NULL;
  combiner->ops = MP_ARENA_ARRAY(combiner->scratch, mp_op_t *, (size_t)combiner->num_ops + 2);
  combiner->sums = MP_ARENA_ARRAY(combiner->scratch, sum_t, combiner->num_sums);
  if (combiner->ops == NULL || combiner->sums == NULL) return mp_status_out_of_memory();
  for (mp_op_t *op = combiner->block->first; op != NULL; op = op->next) {
    combiner->ops[++position] = op;
    if (combine_sums_is_sum(op)) {
      op->results[0].id = sums;
      combiner->sums[sums++] =
          (sum_t){.op = op, .bytes = combine_sums_bytes_of(op), .last = UINT32_MAX};
    } else if (op->code != MP_OP_ALL_REDUCE) {
      op->id = position;
    }
  }
  for (uint32_t i = 1; i <= combiner->num_ops; ++i)
    combine_sums_note_uses(combiner, combiner->ops[i], i);
  for (uint32_t i = 0; i < combiner->num_sums; ++i) {
    sum_t *sum = &combiner->sums[i];
    const mp_op_t *source = sum->op->operands[0]->op;
    if (source != NULL && source->parent != combiner->block) source = NULL;
    // The sum of another sum stays where it is, because the other one may move. A sum that is not
    // used stays too.
    sum->is_done =
        sum->last > combiner->num_ops || (source != NULL && source->code == MP_OP_ALL_REDUCE);
    sum->first = source == NULL ? 0 : source->id;
  }
  qsort(combiner->sums, combiner->num_sums, sizeof(*combiner->sums), combine_sums_compare_sums);
  return NULL;
}

// ---- combining ----

static bool combine_sums_go_together(const mp_op_t *a, const mp_op_t *b) {
  return a->results[0].type->dtype == b->results[0].type->dtype &&
         a->regions[0]->first->code == b->regions[0]->first->code &&
         mp_attr_equal(mp_op_attr(a, MP_ATTR_REPLICA_GROUPS),
                       mp_op_attr(b, MP_ATTR_REPLICA_GROUPS));
}

// The locations of all sums, in the order of the operands.
static mp_status_t combine_sums_loc(const combiner_t *combiner, mp_op_t *const *ops, uint32_t count,
                                    const mp_loc_t **out_loc) {
  static const mp_loc_t k_unknown = {.kind = MP_LOC_UNKNOWN};
  mp_arena_t *arena = combiner->module->arena;
  mp_loc_t *fused = MP_ARENA_NEW(arena, mp_loc_t);
  const mp_loc_t **parts = MP_ARENA_ARRAY(arena, const mp_loc_t *, count);
  MP_RETURN_IF_NULL(fused);
  MP_RETURN_IF_NULL(parts);
  for (uint32_t i = 0; i < count; ++i) parts[i] = ops[i]->loc != NULL ? ops[i]->loc : &k_unknown;
  *fused = (mp_loc_t){.kind = MP_LOC_FUSED, .num_children = count, .children = parts};
  *out_loc = fused;
  return NULL;
}

// Makes one op of these sums before `position`. `redirects` gets the new value of each result.
static mp_status_t combine_sums_combine(combiner_t *combiner, mp_op_t *const *ops, uint32_t count,
                                        mp_op_t *position, mp_value_t **redirects) {
  mp_value_t *operands[MP_MAX_COMBINED];
  const mp_type_t *types[MP_MAX_COMBINED];
  for (uint32_t i = 0; i < count; ++i) {
    operands[i] = ops[i]->operands[0];
    types[i] = ops[i]->results[0].type;
  }
  const mp_loc_t *loc = NULL;
  MP_RETURN_IF_ERROR(combine_sums_loc(combiner, ops, count, &loc));
  const mp_op_spec_t spec = {.code = ops[0]->code,
                             .loc = loc,
                             .num_operands = count,
                             .operands = operands,
                             .num_results = count,
                             .result_types = types,
                             .num_regions = 1,
                             .regions = ops[0]->regions,
                             .num_attrs = ops[0]->num_attrs,
                             .attrs = ops[0]->attrs};
  mp_op_t *op = NULL;
  MP_RETURN_IF_ERROR(mp_op_create(combiner->module, &spec, &op));
  mp_block_insert_before(position, op);
  for (uint32_t i = 0; i < count; ++i) {
    redirects[ops[i]->results[0].id] = &op->results[i];
    mp_op_unlink(ops[i]);
  }
  return NULL;
}

// Combines the sum at `at` with all later ones that can be made in its place.
static mp_status_t combine_sums_with(combiner_t *combiner, uint32_t at, mp_value_t **redirects) {
  sum_t *sums = combiner->sums;
  mp_op_t *ops[MP_MAX_COMBINED] = {sums[at].op};
  uint32_t count = 1;
  int64_t bytes = sums[at].bytes;
  for (uint32_t i = at + 1; i < combiner->num_sums && count < MP_MAX_COMBINED; ++i) {
    if (sums[i].is_done || sums[i].first >= sums[at].last ||
        bytes + sums[i].bytes > MP_MAX_COMBINED_BYTES ||
        !combine_sums_go_together(ops[0], sums[i].op)) {
      continue;
    }
    ops[count++] = sums[i].op;
    bytes += sums[i].bytes;
    sums[i].is_done = true;
  }
  if (count == 1) return NULL;
  return combine_sums_combine(combiner, ops, count, combiner->ops[sums[at].last], redirects);
}

// Replaces the results of combined sums. These are the only ops that are used and in no block.
static void combine_sums_redirect(const mp_block_t *block, mp_value_t **redirects) {
  for (mp_op_t *op = block->first; op != NULL; op = op->next) {
    for (uint32_t i = 0; i < op->num_operands; ++i) {
      const mp_op_t *source = op->operands[i]->op;
      if (combine_sums_is_sum(source) && source->parent == NULL) {
        op->operands[i] = redirects[op->operands[i]->id];
      }
    }
    for (uint32_t r = 0; r < op->num_regions; ++r) combine_sums_redirect(op->regions[r], redirects);
  }
}

static mp_status_t combine_sums_block(mp_module_t *module, mp_block_t *block, mp_arena_t *scratch) {
  for (mp_op_t *op = block->first; op != NULL; op = op->next) {
    for (uint32_t r = 0; r < op->num_regions; ++r) {
      MP_RETURN_IF_ERROR(combine_sums_block(module, op->regions[r], scratch));
    }
  }
  combiner_t combiner = {.module = module, .block = block, .scratch = scratch};
  MP_RETURN_IF_ERROR(combine_sums_read_block(&combiner));
  if (combiner.num_sums < 2) return NULL;
  mp_value_t **redirects = MP_ARENA_ARRAY(scratch, mp_value_t *, combiner.num_sums);
  MP_RETURN_IF_NULL(redirects);
  for (uint32_t i = 0; i < combiner.num_sums; ++i) {
    if (!combiner.sums[i].is_done) MP_RETURN_IF_ERROR(combine_sums_with(&combiner, i, redirects));
  }
  combine_sums_redirect(block, redirects);
  return NULL;
}

mp_status_t mp_spmd_combine(mp_module_t *module, mp_block_t *body) {
  mp_arena_t *scratch = NULL;
  MP_RETURN_IF_ERROR(mp_arena_create(&scratch));
  mp_status_t status = combine_sums_block(module, body, scratch);
  mp_arena_release(scratch);
  return status;
}
