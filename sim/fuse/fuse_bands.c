// Matmuls with the ops between them: if only one fused op reads the result of a batched matmul, and
// only another batched matmul reads that op's result, the three become one op, which runs band by
// band (sim/kernels/fused/band.h). Then attention needs no memory for its scores.
#include "sim/base/containers/array.h"
#include "sim/fuse/fuse_graph.h"
#include "sim/kernels/fused/band.h"
#include "sim/kernels/fused/fusion_end.h"
#include "sim/kernels/table/kernel_table.h"

// MIN_BYTES: the least size of the array between the matmuls. MAX_BAND_BYTES: a band of it has to
// stay in the cache. MIN_BANDS: fewer would not keep all workers busy.
enum { MIN_BYTES = 128 * 1024, MAX_BAND_BYTES = 512 * 1024, MIN_BANDS = 8 };

typedef struct {
  mp_module_t *module;
  mp_arena_t *scratch;
  mp_value_t **map;    // by value id
  uint32_t *num_uses;  // by value id
} bander_t;

// The three ops.
typedef struct {
  mp_op_t *first, *middle, *last;
  MP_ARRAY(mp_value_t *) inputs;
} banded_t;

static mp_status_t fuse_bands_count_uses(void *context, mp_op_t *op) {
  const bander_t *b = context;
  for (uint32_t i = 0; i < op->num_operands; ++i) ++b->num_uses[op->operands[i]->id];
  return NULL;
}

// The op in the block that uses the value, which has one use; NULL: the use is in another block.
static mp_op_t *fuse_bands_user(const mp_value_t *value) {
  for (mp_op_t *op = value->op->next; op != NULL; op = op->next) {
    for (uint32_t i = 0; i < op->num_operands; ++i) {
      if (op->operands[i] == value) return op;
    }
  }
  return NULL;
}

// Whether bands pay off for the sizes of the first matmul's result.
static bool fuse_bands_pay(const mp_op_t *first) {
  const mp_type_t *type = first->results[0].type;
  const uint32_t rank = mp_op_ints(first, MP_ATTR_LHS_BATCHING_DIMENSIONS).count;
  int64_t bytes = 0, bands = 1;
  if (!mp_type_num_bytes(type, &bytes) || bytes < MIN_BYTES) return false;
  for (uint32_t i = 0; i < rank; ++i) bands *= type->dims[i];
  return bands >= MIN_BANDS && bytes / bands <= MAX_BAND_BYTES;
}

// Whether `middle` is the op between two matmuls.
static bool fuse_bands_find(const bander_t *b, mp_op_t *middle, banded_t *out_ops) {
  if (middle->code != MP_OP_FUSION || middle->num_results != 1) return false;
  if (b->num_uses[middle->results[0].id] != 1 || mp_fusion_end(middle) != NULL) return false;
  mp_op_t *first = NULL;
  for (uint32_t i = 0; i < middle->num_operands && first == NULL; ++i) {
    mp_op_t *op = middle->operands[i]->op;
    const bool is_product = op != NULL && op->code == MP_OP_DOT_GENERAL &&
                            op->parent == middle->parent && b->num_uses[op->results[0].id] == 1;
    if (is_product && fuse_bands_pay(op)) first = op;
  }
  if (first == NULL) return false;
  mp_op_t *last = fuse_bands_user(&middle->results[0]);
  if (last == NULL || last->code != MP_OP_DOT_GENERAL) return false;
  *out_ops = (banded_t){.first = first, .middle = middle, .last = last};
  return true;
}

// ---- The op ----

static mp_status_t fuse_bands_add_inputs(const bander_t *b, const mp_op_t *op, banded_t *ops) {
  for (uint32_t k = 0; k < op->num_operands; ++k) {
    mp_value_t *value = op->operands[k];
    bool is_known = value->op == ops->first || value->op == ops->middle;
    for (uint32_t i = 0; i < ops->inputs.count && !is_known; ++i) {
      is_known = ops->inputs.items[i] == value;
    }
    if (!is_known) MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(b->scratch, &ops->inputs, value));
  }
  return NULL;
}

static mp_status_t fuse_bands_copy(const bander_t *b, mp_block_t *block, const mp_op_t *op) {
  mp_op_t *copy = NULL;
  MP_RETURN_IF_ERROR(mp_op_clone(b->module, op, b->map, &copy));
  mp_block_append(block, copy);
  return NULL;
}

// Copies the three ops into the block, the one in the middle as the ops of its region, and returns
// the last one's result.
static mp_status_t fuse_bands_fill(const bander_t *b, const banded_t *ops, mp_block_t *block) {
  const mp_block_t *region = ops->middle->regions[0];
  const mp_op_t *end = mp_block_terminator(region);
  MP_RETURN_IF_ERROR(fuse_bands_copy(b, block, ops->first));
  for (uint32_t i = 0; i < region->num_args; ++i) {
    b->map[region->args[i].id] = b->map[ops->middle->operands[i]->id];
  }
  for (const mp_op_t *op = region->first; op != end; op = op->next) {
    MP_RETURN_IF_ERROR(fuse_bands_copy(b, block, op));
  }
  b->map[ops->middle->results[0].id] = b->map[end->operands[0]->id];
  MP_RETURN_IF_ERROR(fuse_bands_copy(b, block, ops->last));
  mp_value_t *result = &block->last->results[0];
  const mp_op_spec_t spec = {
      .code = MP_OP_RETURN, .loc = ops->last->loc, .num_operands = 1, .operands = &result};
  mp_op_t *copy = NULL;
  MP_RETURN_IF_ERROR(mp_op_create(b->module, &spec, &copy));
  mp_block_append(block, copy);
  return NULL;
}

static mp_status_t fuse_bands_make(const bander_t *b, banded_t *ops, mp_op_t **out_op) {
  MP_RETURN_IF_ERROR(fuse_bands_add_inputs(b, ops->first, ops));
  MP_RETURN_IF_ERROR(fuse_bands_add_inputs(b, ops->middle, ops));
  MP_RETURN_IF_ERROR(fuse_bands_add_inputs(b, ops->last, ops));
  const uint32_t count = ops->inputs.count;
  const mp_type_t **types = MP_ARENA_ARRAY(b->scratch, const mp_type_t *, (size_t)count + 1);
  MP_RETURN_IF_NULL(types);
  for (uint32_t i = 0; i < count; ++i) types[i] = ops->inputs.items[i]->type;
  mp_block_t *block = NULL;
  MP_RETURN_IF_ERROR(mp_block_create(b->module, count, types, &block));
  for (uint32_t i = 0; i < count; ++i) {
    block->args[i].id = ops->inputs.items[i]->id;
    b->map[ops->inputs.items[i]->id] = &block->args[i];
  }
  MP_RETURN_IF_ERROR(fuse_bands_fill(b, ops, block));
  const mp_type_t *type = ops->last->results[0].type;
  const mp_op_spec_t spec = {.code = MP_OP_FUSION,
                             .loc = ops->last->loc,
                             .num_operands = count,
                             .operands = ops->inputs.items,
                             .num_results = 1,
                             .result_types = &type,
                             .num_regions = 1,
                             .regions = &block};
  return mp_op_create(b->module, &spec, out_op);
}

// Whether there is a kernel for the op.
static mp_status_t fuse_bands_can_run(const mp_op_t *op, bool *out_can) {
  mp_arena_t *arena = NULL;
  mp_bands_t bands;
  const mp_kernel_t *kernel = NULL;
  *out_can = false;
  MP_RETURN_IF_ERROR(mp_arena_create(&arena));
  mp_status_t status = mp_bands_find(arena, op, out_can, &bands);
  if (status == NULL && *out_can) status = mp_kernel_create(arena, op, &kernel);
  mp_arena_release(arena);
  if (mp_status_code(status) != MP_UNIMPLEMENTED) return status;
  mp_status_release(status);
  *out_can = false;
  return NULL;
}

typedef struct {
  const mp_value_t *old;
  mp_value_t *by;
} replacement_t;

static mp_status_t fuse_bands_replace(void *context, mp_op_t *op) {
  const replacement_t *replacement = context;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    if (op->operands[i] == replacement->old) op->operands[i] = replacement->by;
  }
  return NULL;
}

static mp_status_t fuse_bands_join(const bander_t *b, banded_t *ops) {
  mp_op_t *op = NULL;
  bool can_run = false;
  MP_RETURN_IF_ERROR(fuse_bands_make(b, ops, &op));
  MP_RETURN_IF_ERROR(fuse_bands_can_run(op, &can_run));
  if (!can_run) return NULL;
  op->results[0].id = ops->last->results[0].id;
  mp_block_insert_before(ops->last, op);
  replacement_t replacement = {&ops->last->results[0], &op->results[0]};
  MP_RETURN_IF_ERROR(mp_module_walk(b->module, fuse_bands_replace, &replacement));
  mp_op_unlink(ops->first);
  mp_op_unlink(ops->middle);
  mp_op_unlink(ops->last);
  return NULL;
}

static mp_status_t fuse_bands_block(const bander_t *b, mp_block_t *block) {
  for (mp_op_t *op = block->first, *next; op != NULL; op = next) {
    next = op->next;
    banded_t ops;
    if (mp_op_info(op->code)->role == MP_OP_ROLE_CONTROL) {
      for (uint32_t r = 0; r < op->num_regions; ++r) {
        MP_RETURN_IF_ERROR(fuse_bands_block(b, op->regions[r]));
      }
    }
    if (!fuse_bands_find(b, op, &ops)) continue;
    if (next == ops.last) next = ops.last->next;  // it is removed
    MP_RETURN_IF_ERROR(fuse_bands_join(b, &ops));
  }
  return NULL;
}

mp_status_t mp_fuse_bands(mp_module_t *module, mp_arena_t *scratch) {
  const size_t count = (size_t)mp_module_number_values(module) + 1;
  bander_t b = {.module = module,
                .scratch = scratch,
                .map = MP_ARENA_ARRAY(scratch, mp_value_t *, count),
                .num_uses = MP_ARENA_ARRAY(scratch, uint32_t, count)};
  if (b.map == NULL || b.num_uses == NULL) return mp_status_out_of_memory();
  MP_RETURN_IF_ERROR(mp_module_walk(module, fuse_bands_count_uses, &b));
  return fuse_bands_block(&b, module->main->body);
}
