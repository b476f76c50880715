// Regions of elementwise ops and small reductions, and ops that only move elements, as steps.
#include "sim/base/assert.h"
#include "sim/kernels/elementwise/elementwise_makers.h"
#include "sim/kernels/fused/tile/tile.h"
#include "sim/kernels/shape.h"
#include "sim/kernels/strided.h"
#include "sim/loops/loop_impl.h"

// Up to this many elements the ops of a region become separate steps. The kernel of a region has a
// fixed cost per run, but then needs less memory: consecutive commands may have more elements if
// everything that their region computes stays in the first-level cache.
enum { MAX_FUSED = 256, MAX_STRAIGHT = 2048, MAX_STRAIGHT_BYTES = 24 * 1024 };

// ---- regions ----

// Where the elements of a value are. A value of one element may have two places: one for ops of one
// element, and one with as many copies as the other ops have elements.
typedef struct {
  const mp_value_t *value;
  int64_t count;
  mp_loop_ref_t ref;
} binding_t;

typedef struct {
  mp_loop_builder_t *b;
  const mp_op_t *op;  // the fused op
  const mp_loop_ref_t *operands, *results;
  int64_t count;  // elements of the op that is being added
  MP_ARRAY(binding_t) bindings;
} region_t;

static const mp_loop_ref_t *compute_find(const region_t *r, const mp_value_t *value,
                                         int64_t count) {
  for (uint32_t i = r->bindings.count; i-- > 0;) {
    const binding_t *binding = &r->bindings.items[i];
    if (binding->value == value && binding->count == count) return &binding->ref;
  }
  return NULL;
}

// Elements that are known now, in the arena.
static mp_status_t compute_known(region_t *r, const mp_view_t *view, const mp_op_t *op,
                                 mp_loop_ref_t *out_ref, bool *out_done) {
  const mp_dtype_t dtype = op->results[0].type->dtype;
  const size_t size = mp_dtype_size(dtype);
  char *memory = mp_arena_alloc(r->b->arena, size * (size_t)r->count + 63);
  MP_RETURN_IF_NULL(memory);
  memory += (64 - (uintptr_t)memory % 64) % 64;
  *out_done = true;
  *out_ref = mp_loop_address_ref(r->b, memory);
  if (op->code == MP_OP_IOTA) {
    mp_view_count(view, dtype, 0, r->count, memory);
    return NULL;
  }
  const void *one = mp_op_splat(op), *all = mp_op_stored(op);
  *out_done = one != NULL || all != NULL;
  if (one != NULL) {
    mp_fill(memory, one, size, r->count);
  } else if (all != NULL) {
    mp_view_load(view, size, all, 0, r->count, memory);
  }
  return NULL;
}

// The elements of `base` through the view, in their order: in place if they are contiguous,
// otherwise copied to `place`, or to new memory if that is NULL.
static mp_status_t compute_view(region_t *r, const mp_view_t *view, size_t size, mp_loop_ref_t base,
                                const mp_loop_ref_t *place, mp_loop_ref_t *out_ref) {
  int64_t first = 0;
  if (mp_view_find_run(view, 0, r->count, &first)) {
    *out_ref = (mp_loop_ref_t){base.base, base.offset + (uintptr_t)first * size};
    return NULL;
  }
  mp_loop_step_t step = {.what = MP_DO_VIEW, .size = (uint32_t)size, .num_refs = 1, .in = {base}};
  step.count = r->count;
  if (mp_view_is_one(view)) {
    step.what = MP_DO_FILL;
    step.in[0].offset += (uintptr_t)view->offset * size;
  } else {
    MP_RETURN_IF_ERROR(mp_view_keep(r->b->arena, view, size, &step.u.view));
  }
  if (place != NULL) {
    step.out = *place;
  } else {
    MP_RETURN_IF_ERROR(mp_loop_own_ref(r->b, size * (size_t)r->count, &step.out));
  }
  *out_ref = step.out;
  return mp_loop_add_step(r->b, &step);
}

// Where the elements of a value of the region are, `count` of them in their order.
static mp_status_t compute_read(region_t *r, const mp_value_t *value, mp_loop_ref_t *out_ref,
                                bool *out_done) {
  const mp_loop_ref_t *known = compute_find(r, value, r->count);
  *out_done = true;
  if (known != NULL) {
    *out_ref = *known;
    return NULL;
  }
  mp_view_t view;
  const mp_value_t *base = NULL;
  mp_view_of(value, MP_VIEW_MAX_OPS, &view, &base);
  if (mp_shape_count(value->type) == 1 && r->count != 1) {
    // One element for all: a bound of clamp, a predicate.
    view.rank = 1;
    view.dims[0].extent = r->count;
    view.dims[0].stride = 0;
  }
  const size_t size = mp_dtype_size(value->type->dtype);
  const bool is_known =
      base->op != NULL && (base->op->code == MP_OP_CONSTANT || base->op->code == MP_OP_IOTA);
  if (is_known) {
    MP_RETURN_IF_ERROR(compute_known(r, &view, base->op, out_ref, out_done));
  } else {
    const mp_loop_ref_t *of_base = base->op == NULL
                                       ? &r->operands[base->index]
                                       : compute_find(r, base, mp_shape_count(base->type));
    *out_done = of_base != NULL;
    if (of_base != NULL) MP_RETURN_IF_ERROR(compute_view(r, &view, size, *of_base, NULL, out_ref));
  }
  if (!*out_done) return NULL;
  const binding_t binding = {value, r->count, *out_ref};
  return MP_ARRAY_PUSH(r->b->arena, &r->bindings, binding);
}

// Whether the op reads bytes of the argument, directly, through views or under another type.
static bool compute_reads(const mp_op_t *op, const mp_value_t *argument) {
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const mp_value_t *value = op->operands[i];
    while (value->op != NULL &&
           (mp_view_looks_through(value->op) || value->op->code == MP_OP_BITCAST_CONVERT)) {
      value = value->op->operands[0];
    }
    if (value == argument) return true;
  }
  return false;
}

// Whether the region still reads the bytes at `place` after `op`: then the result of `op` cannot be
// written there.
static bool compute_is_needed(const region_t *r, const mp_op_t *op, mp_loop_ref_t place) {
  const mp_block_t *block = r->op->regions[0];
  for (uint32_t i = 0; i < block->num_args; ++i) {
    if (!mp_loop_same_ref(r->operands[i], place)) continue;
    for (const mp_op_t *next = op->next; next != NULL; next = next->next) {
      if (compute_reads(next, &block->args[i])) return true;
    }
  }
  return false;
}

// The place of an op's result: the fused op's result if it is one, and the place is free; otherwise
// new memory.
static mp_status_t compute_place(const region_t *r, const mp_op_t *op, mp_loop_ref_t *out_ref) {
  const mp_op_t *end = mp_block_terminator(r->op->regions[0]);
  for (uint32_t i = 0; i < end->num_operands; ++i) {
    if (end->operands[i] != &op->results[0] || compute_is_needed(r, op, r->results[i])) continue;
    *out_ref = r->results[i];
    return NULL;
  }
  return mp_loop_own_ref(r->b, (size_t)mp_shape_bytes(op->results[0].type), out_ref);
}

// Whether all elements of a value are equal to one that is known or an argument's; `out_ref` refers
// to it.
static mp_status_t compute_find_one(const region_t *r, const mp_value_t *value,
                                    mp_loop_ref_t *out_ref, bool *out_is_one) {
  mp_view_t view;
  const mp_value_t *base = NULL;
  mp_view_of(value, MP_VIEW_MAX_OPS, &view, &base);
  const size_t size = mp_dtype_size(value->type->dtype);
  const bool is_constant = base->op != NULL && base->op->code == MP_OP_CONSTANT;
  const void *element = is_constant ? mp_op_splat(base->op) : NULL;
  *out_is_one = element != NULL || (base->op == NULL && mp_view_is_one(&view));
  if (!*out_is_one) return NULL;
  if (element == NULL) {
    *out_ref = r->operands[base->index];
    out_ref->offset += (uintptr_t)view.offset * size;
    return NULL;
  }
  void *copy = mp_arena_copy(r->b->arena, element, size);
  MP_RETURN_IF_NULL(copy);
  *out_ref = mp_loop_address_ref(r->b, copy);
  return NULL;
}

// Whether the op computes in the stored types. A select between narrow elements does not, although
// its own loop takes stored elements.
static bool compute_is_as_stored(const mp_op_t *op) {
  const mp_dtype_t result = op->results[0].type->dtype;
  bool is_same = mp_ew_computing_type(result) == result;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const mp_dtype_t dtype = op->operands[i]->type->dtype;
    is_same = is_same && mp_ew_computing_type(dtype) == dtype;
  }
  return is_same;
}

// Finds the inputs that are one element for all, so that code for long vectors needs no copies, and
// the loop for them; `out_ones` has their bits, 0 if there is no such loop.
static mp_status_t compute_find_ones(const region_t *r, const mp_op_t *op, mp_loop_ref_t *in,
                                     mp_ew_loop_t *out_loop, uint32_t *out_ones) {
  uint32_t ones = 0;
  mp_loop_ref_t refs[MP_EW_MAX_INPUTS];
  *out_ones = 0;
  if (r->count <= MP_NATIVE_MAX_LANES || !compute_is_as_stored(op)) return NULL;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    bool is_one = false;
    MP_RETURN_IF_ERROR(compute_find_one(r, op->operands[i], &refs[i], &is_one));
    ones |= (uint32_t)is_one << i;
  }
  for (uint32_t k = 0; k < MP_TILE_NUM_SCALARS && ones != 0 && *out_ones == 0; ++k) {
    if ((mp_tile_scalars[k] & ~ones) != 0) continue;
    *out_loop = mp_ew_scalar_loop(op, mp_tile_scalars[k]);
    if (*out_loop != NULL) *out_ones = mp_tile_scalars[k];
  }
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    if ((*out_ones >> i & 1) != 0) in[i] = refs[i];
  }
  return NULL;
}

static mp_status_t compute_region_reduction(region_t *r, const mp_op_t *op, bool *out_done) {
  mp_loop_ref_t x, start, out;
  r->count = mp_shape_count(op->operands[0]->type);
  MP_RETURN_IF_ERROR(compute_read(r, op->operands[0], &x, out_done));
  if (!*out_done) return NULL;
  r->count = 1;
  MP_RETURN_IF_ERROR(compute_read(r, op->operands[1], &start, out_done));
  if (!*out_done) return NULL;
  MP_RETURN_IF_ERROR(compute_place(r, op, &out));
  MP_RETURN_IF_ERROR(mp_loop_add_reduction(r->b, op, x, start, out));
  const binding_t binding = {&op->results[0], r->count, out};
  return MP_ARRAY_PUSH(r->b->arena, &r->bindings, binding);
}

static mp_status_t compute_region_op(region_t *r, const mp_op_t *op, bool *out_done) {
  if (op->code == MP_OP_REDUCE) return compute_region_reduction(r, op, out_done);
  r->count = mp_shape_count(op->results[0].type);
  mp_loop_ref_t in[MP_EW_MAX_INPUTS], out;
  mp_ew_loop_t with_ones = NULL;
  uint32_t ones = 0;
  *out_done = true;
  MP_RETURN_IF_ERROR(compute_find_ones(r, op, in, &with_ones, &ones));
  for (uint32_t i = 0; i < op->num_operands && *out_done; ++i) {
    if ((ones >> i & 1) != 0) continue;
    MP_RETURN_IF_ERROR(compute_read(r, op->operands[i], &in[i], out_done));
  }
  if (!*out_done) return NULL;
  binding_t binding = {&op->results[0], r->count, in[0]};
  if (op->code != MP_OP_BITCAST_CONVERT) {
    mp_ew_t ew;
    MP_RETURN_IF_ERROR(mp_ew_bind(op, &ew));
    if (ones != 0) ew.loop = with_ones;
    MP_RETURN_IF_ERROR(compute_place(r, op, &out));
    MP_RETURN_IF_ERROR(mp_loop_add_op(r->b, op, &ew, ones, in, out, r->count));
    binding.ref = out;
  }
  return MP_ARRAY_PUSH(r->b->arena, &r->bindings, binding);
}

// Whether an op of the region writes elements to memory: a value that is moved only to be moved
// again is not written.
static bool compute_makes(const mp_op_t *op) {
  if (op->num_results != 1 || op->code == MP_OP_CONSTANT) return false;
  if (!mp_view_looks_through(op)) return true;
  for (const mp_op_t *next = op->next; next != NULL; next = next->next) {
    for (uint32_t i = 0; i < next->num_operands; ++i) {
      if (next->operands[i] == &op->results[0] && !mp_view_looks_through(next)) return true;
    }
  }
  return false;
}

// The bytes that the ops of a region compute, and those that they read out of order.
static int64_t compute_region_bytes(const mp_block_t *block) {
  int64_t bytes = 0;
  for (const mp_op_t *op = block->first; op != NULL; op = op->next) {
    if (compute_makes(op)) bytes += mp_shape_bytes(op->results[0].type);
  }
  return bytes;
}

// Whether an op of the region can be a step, with at most `most` elements.
static mp_status_t compute_can_open_op(const mp_loop_builder_t *b, const mp_op_t *op, int64_t most,
                                       bool *out_can) {
  if (op->code == MP_OP_REDUCE) return mp_loop_can_reduce(b, op, out_can);
  const int64_t count = mp_shape_count(op->results[0].type);
  *out_can = op->num_results == 1 && mp_tile_computes(op) && count >= 1 && count <= most;
  if (!*out_can || op->code == MP_OP_BITCAST_CONVERT) return NULL;
  mp_ew_t ew;
  MP_RETURN_IF_ERROR(mp_ew_bind(op, &ew));
  *out_can = ew.direct;
  return NULL;
}

// Whether all ops of the region can be steps.
static mp_status_t compute_can_open(const mp_loop_builder_t *b, const mp_op_t *fusion,
                                    bool *out_can) {
  const mp_block_t *block = fusion->regions[0];
  const mp_op_t *end = mp_block_terminator(block);
  const bool is_small = b->is_straight && compute_region_bytes(block) <= MAX_STRAIGHT_BYTES;
  const int64_t most = is_small ? MAX_STRAIGHT : MAX_FUSED;
  *out_can = true;
  for (const mp_op_t *op = block->first; op != end && *out_can; op = op->next) {
    if (mp_tile_looks_through(op)) continue;
    MP_RETURN_IF_ERROR(compute_can_open_op(b, op, most, out_can));
  }
  for (uint32_t i = 0; i < end->num_operands; ++i) {
    const int64_t count = mp_shape_count(end->operands[i]->type);
    *out_can = *out_can && count >= 1 && count <= most;
  }
  return NULL;
}

static mp_status_t compute_region(mp_loop_builder_t *b, const mp_op_t *op,
                                  const mp_loop_ref_t *operands, const mp_loop_ref_t *results,
                                  bool *out_done) {
  MP_RETURN_IF_ERROR(compute_can_open(b, op, out_done));
  if (!*out_done) return NULL;
  const mp_block_t *block = op->regions[0];
  const mp_op_t *end = mp_block_terminator(block);
  region_t r = {.b = b, .op = op, .operands = operands, .results = results};
  const uint32_t num_steps = b->steps.count, num_before = b->before.count;
  for (const mp_op_t *in = block->first; in != end && *out_done; in = in->next) {
    if (mp_tile_looks_through(in)) continue;
    MP_RETURN_IF_ERROR(compute_region_op(&r, in, out_done));
  }
  for (uint32_t i = 0; i < end->num_operands && *out_done; ++i) {
    mp_loop_ref_t ref;
    const uint64_t bytes = (uint64_t)mp_shape_bytes(end->operands[i]->type);
    r.count = mp_shape_count(end->operands[i]->type);
    MP_RETURN_IF_ERROR(compute_read(&r, end->operands[i], &ref, out_done));
    if (*out_done) MP_RETURN_IF_ERROR(mp_loop_add_copy_step(b, ref, results[i], bytes));
  }
  if (!*out_done) {
    b->steps.count = num_steps;
    b->before.count = num_before;
  }
  return NULL;
}

// ---- single ops ----

// An op that only moves elements: its result is a view of its operand.
static mp_status_t compute_move(mp_loop_builder_t *b, const mp_op_t *op, mp_loop_ref_t from,
                                mp_loop_ref_t to, bool *out_done) {
  const mp_type_t *type = op->results[0].type;
  region_t r = {.b = b, .op = op, .count = mp_shape_count(type)};
  mp_view_t view;
  const mp_value_t *base = NULL;
  mp_view_of(&op->results[0], 1, &view, &base);
  *out_done = base == op->operands[0] && r.count >= 1 &&
              r.count <= (b->is_straight ? MAX_STRAIGHT : MAX_FUSED);
  if (!*out_done) return NULL;
  mp_loop_ref_t at;
  // For an iota the view gives numbers, not places in memory.
  if (base->op != NULL && base->op->code == MP_OP_IOTA) {
    MP_RETURN_IF_ERROR(compute_known(&r, &view, base->op, &at, out_done));
  } else {
    MP_RETURN_IF_ERROR(compute_view(&r, &view, mp_dtype_size(type->dtype), from, &to, &at));
  }
  return mp_loop_add_copy_step(b, at, to, (uint64_t)mp_shape_bytes(type));
}

static mp_status_t compute_single(mp_loop_builder_t *b, const mp_op_t *op,
                                  const mp_loop_ref_t *operands, mp_loop_ref_t result,
                                  bool *out_done) {
  mp_ew_t ew;
  MP_RETURN_IF_ERROR(mp_ew_bind(op, &ew));
  const mp_type_t *type = op->results[0].type;
  *out_done = ew.direct && mp_shape_count(type) >= 1;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    *out_done &= mp_type_same_shape(mp_kernel_elementwise_operand(op, i)->type, type);
  }
  if (!*out_done) return NULL;
  return mp_loop_add_op(b, op, &ew, 0, operands, result, mp_shape_count(type));
}

static mp_status_t compute_reduction(mp_loop_builder_t *b, const mp_op_t *op,
                                     const mp_loop_ref_t *operands, mp_loop_ref_t result,
                                     bool *out_done) {
  MP_RETURN_IF_ERROR(mp_loop_can_reduce(b, op, out_done));
  if (!*out_done) return NULL;
  return mp_loop_add_reduction(b, op, operands[0], operands[1], result);
}

mp_status_t mp_loop_compute(mp_loop_builder_t *b, const mp_op_t *op, const mp_loop_ref_t *operands,
                            const mp_loop_ref_t *results, bool *out_done) {
  *out_done = false;
  if (op->code == MP_OP_FUSION) return compute_region(b, op, operands, results, out_done);
  if (op->code == MP_OP_REDUCE) return compute_reduction(b, op, operands, results[0], out_done);
  if (mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE) && op->num_operands <= MP_EW_MAX_INPUTS &&
      mp_op_info(op->code)->role == MP_OP_ROLE_KERNEL) {
    return compute_single(b, op, operands, results[0], out_done);
  }
  if (mp_view_looks_through(op)) return compute_move(b, op, operands[0], results[0], out_done);
  return NULL;
}
