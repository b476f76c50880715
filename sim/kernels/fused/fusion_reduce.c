// A fused op that ends in a reduction of long rows or of columns: the kernel of the reduction,
// whose elements are computed, some hundred at a time, when it asks for them. They are never an
// array.
#include "sim/kernels/fused/fusion_reduce.h"

#include "sim/kernels/fused/tile.h"
#include "sim/kernels/kernel_makers.h"
#include "sim/kernels/reduction/reduce.h"
#include "sim/kernels/shape.h"

// How many elements are computed ahead, if they are going to be asked for.
enum { WINDOW = 2048 };

_Static_assert((int)WINDOW >= (int)MP_FOLD_LANES, "the window has what is asked for at once");

typedef struct {
  mp_kernel_t base;
  mp_tile_program_t program;
  const mp_kernel_t *reduce;
  uint32_t start;       // the operand that is the start value, if it is none of the region's own
  const void *element;  // the start value, if it is
  size_t size;          // bytes of an element
  size_t tiles, window, operands;  // where these begin in the scratch memory
} fusion_reduce_t;

typedef struct {
  mp_fold_source_t base;
  const fusion_reduce_t *kernel;
  mp_tile_run_t run;
  char *window;
  void *result;        // where element 0 would lie if the window were part of the whole array
  int64_t begin, end;  // what is in the window
} fusion_source_t;

static const char *fusion_reduce_load(mp_fold_source_t *base, int64_t first, int64_t count) {
  fusion_source_t *source = (fusion_source_t *)base;
  const int64_t size = (int64_t)source->kernel->size;
  if (first < source->begin || first + count > source->end) {
    const int64_t most = mp_min_i64(first + WINDOW, base->limit);
    source->begin = first;
    source->end = mp_max_i64(first + count, most);
    source->result = (void *)((uintptr_t)source->window - (uintptr_t)(first * size));
    mp_tile_run(&source->run, source->begin, source->end);
  }
  return source->window + (first - source->begin) * size;
}

// The call of the reduction's kernel. `operands` has room for its two operands.
static mp_kernel_call_t fusion_reduce_call(const fusion_reduce_t *kernel,
                                           const mp_kernel_call_t *call, const void **operands) {
  operands[0] = NULL;
  operands[1] = kernel->element != NULL ? kernel->element : call->operands[kernel->start];
  mp_kernel_call_t reduce = *call;
  reduce.operands = operands;
  return reduce;
}

static mp_status_t fusion_reduce_run(const mp_kernel_t *base, const mp_kernel_call_t *call) {
  const fusion_reduce_t *kernel = (const fusion_reduce_t *)base;
  char *scratch = call->scratch;
  fusion_source_t source = {
      .base = {fusion_reduce_load, 0}, .kernel = kernel, .window = scratch + kernel->window};
  const mp_kernel_call_t tiles = {
      .operands = call->operands, .results = &source.result, .scratch = scratch + kernel->tiles};
  source.run = mp_tile_begin(&kernel->program, &tiles);
  const void *operands[2];
  const mp_kernel_call_t reduce = fusion_reduce_call(kernel, call, operands);
  mp_reduce_run_from(kernel->reduce, &reduce, &source.base);
  return NULL;
}

static mp_status_t fusion_reduce_finish(const mp_kernel_t *base, const mp_kernel_call_t *call) {
  const fusion_reduce_t *kernel = (const fusion_reduce_t *)base;
  const void *operands[2];
  const mp_kernel_call_t reduce = fusion_reduce_call(kernel, call, operands);
  return kernel->reduce->finish(kernel->reduce, &reduce);
}

// Finds out where the start value is.
static mp_status_t fusion_reduce_find_start(fusion_reduce_t *kernel, const mp_op_t *reduce) {
  const mp_value_t *start = reduce->operands[1];
  if (start->op == NULL) {
    kernel->start = start->index;
    return NULL;
  }
  kernel->element = mp_op_splat(start->op);
  if (kernel->element != NULL) return NULL;
  return mp_op_error(reduce, MP_UNIMPLEMENTED, "a computed start value cannot be fused");
}

const mp_op_t *mp_fusion_reduction(const mp_op_t *fusion) {
  const mp_op_t *terminator = mp_block_terminator(fusion->regions[0]);
  const mp_op_t *op = terminator->prev;
  int64_t row = 0;
  const bool is_end = op != NULL && terminator->num_operands == 1 && op->num_results == 1 &&
                      terminator->operands[0] == &op->results[0];
  return is_end && mp_reduce_reads_runs(op) && !mp_tile_reduces(op, &row) ? op : NULL;
}

mp_status_t mp_fusion_make_reduction(mp_arena_t *arena, const mp_op_t *op, const mp_op_t *reduce,
                                     const mp_kernel_t **out_kernel) {
  fusion_reduce_t *kernel = MP_ARENA_NEW(arena, fusion_reduce_t);
  MP_RETURN_IF_NULL(kernel);
  mp_kernel_init(&kernel->base, fusion_reduce_run, op);
  MP_RETURN_IF_ERROR(mp_tile_compile(arena, op->regions[0], reduce, 1, &kernel->program));
  if (kernel->program.row != 1) {
    return mp_op_error(reduce, MP_UNIMPLEMENTED, "a reduction of reduced rows cannot be fused");
  }
  MP_RETURN_IF_ERROR(fusion_reduce_find_start(kernel, reduce));
  MP_RETURN_IF_ERROR(mp_kernel_make_reduce(arena, reduce, &kernel->reduce));
  kernel->size = mp_dtype_size(mp_op_operand_type(reduce, 0)->dtype);
  kernel->tiles = mp_round_up_64(kernel->reduce->scratch_bytes);
  kernel->window = kernel->tiles + mp_round_up_64(kernel->program.scratch_bytes);
  kernel->base.scratch_bytes = kernel->window + WINDOW * kernel->size;
  kernel->base.num_parts = kernel->reduce->num_parts;
  kernel->base.shared_bytes = kernel->reduce->shared_bytes;
  if (kernel->reduce->finish != NULL) kernel->base.finish = fusion_reduce_finish;
  *out_kernel = &kernel->base;
  return NULL;
}
