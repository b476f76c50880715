// A fused op that ends in a reduction of long rows or of columns, or in a gather. That op's kernel
// requests elements or index vectors, and tiles compute some hundred of them at a time. They are
// never stored as an array.
#include "sim/kernels/fused/fusion_end.h"

#include "sim/kernels/fused/tile/tile.h"
#include "sim/kernels/movement/gather.h"
#include "sim/kernels/movement/movement_makers.h"
#include "sim/kernels/reduction/reduce.h"
#include "sim/kernels/reduction/reduction_makers.h"
#include "sim/kernels/shape.h"
#include "sim/kernels/source.h"

// The number of elements that are computed ahead, if they will be requested.
enum { WINDOW = 2048 };

_Static_assert((int)WINDOW >= (int)MP_SOURCE_MOST, "the window holds the elements of one request");

typedef struct {
  mp_kernel_t base;
  mp_tile_program_t program;
  const mp_kernel_t *end;
  bool is_gather;
  uint32_t computed;     // the operand of `end` that is never an array
  uint32_t other;        // the end's other operand, if the region does not read it
  const void *element;   // the other operand, if it is
  size_t size;           // bytes of an element
  size_t tiles, window;  // where these begin in the scratch memory
} fusion_end_t;

typedef struct {
  mp_source_t base;
  const fusion_end_t *kernel;
  mp_tile_run_t run;
  char *window;
  void *result;        // the address of element 0 if the window were part of the whole array
  int64_t begin, end;  // what is in the window
} fusion_source_t;

static const char *fusion_end_load(mp_source_t *base, int64_t first, int64_t count) {
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

// The call of the end's kernel. `operands` has room for its two operands.
static mp_kernel_call_t fusion_end_call(const fusion_end_t *kernel, const mp_kernel_call_t *call,
                                        const void **operands) {
  operands[kernel->computed] = NULL;
  operands[1 - kernel->computed] =
      kernel->element != NULL ? kernel->element : call->operands[kernel->other];
  mp_kernel_call_t end = *call;
  end.operands = operands;
  return end;
}

static mp_status_t fusion_end_run(const mp_kernel_t *base, const mp_kernel_call_t *call) {
  const fusion_end_t *kernel = (const fusion_end_t *)base;
  char *scratch = call->scratch;
  fusion_source_t source = {
      .base = {fusion_end_load, 0}, .kernel = kernel, .window = scratch + kernel->window};
  const mp_kernel_call_t tiles = {
      .operands = call->operands, .results = &source.result, .scratch = scratch + kernel->tiles};
  source.run = mp_tile_begin(&kernel->program, &tiles);
  const void *operands[2];
  const mp_kernel_call_t end = fusion_end_call(kernel, call, operands);
  if (kernel->is_gather) {
    mp_gather_run_from(kernel->end, &end, &source.base);
  } else {
    mp_reduce_run_from(kernel->end, &end, &source.base);
  }
  return NULL;
}

static mp_status_t fusion_end_finish(const mp_kernel_t *base, const mp_kernel_call_t *call) {
  const fusion_end_t *kernel = (const fusion_end_t *)base;
  const void *operands[2];
  const mp_kernel_call_t end = fusion_end_call(kernel, call, operands);
  return kernel->end->finish(kernel->end, &end);
}

// Finds the operand that tiles do not compute: the start value of a reduction, or the table of a
// gather.
static mp_status_t fusion_end_find_other(fusion_end_t *kernel, const mp_op_t *end) {
  const mp_value_t *other = end->operands[1 - kernel->computed];
  if (other->op == NULL) {
    kernel->other = other->index;
    return NULL;
  }
  if (kernel->is_gather) {
    return mp_op_error(end, MP_UNIMPLEMENTED, "a computed table cannot be fused");
  }
  kernel->element = mp_op_splat(other->op);
  if (kernel->element != NULL) return NULL;
  return mp_op_error(end, MP_UNIMPLEMENTED, "a computed start value cannot be fused");
}

bool mp_fusion_may_end(const mp_op_t *op, uint32_t *out_operand) {
  int64_t row = 0;
  *out_operand = op->code == MP_OP_GATHER ? 1 : 0;
  if (op->code == MP_OP_GATHER) return mp_gather_reads_runs(op);
  return mp_reduce_reads_runs(op) && !mp_tile_reduces(op, &row);
}

const mp_op_t *mp_fusion_end(const mp_op_t *fusion) {
  const mp_op_t *terminator = mp_block_terminator(fusion->regions[0]);
  const mp_op_t *op = terminator->prev;
  uint32_t operand = 0;
  const bool is_last = op != NULL && terminator->num_operands == 1 && op->num_results == 1 &&
                       terminator->operands[0] == &op->results[0];
  return is_last && mp_fusion_may_end(op, &operand) ? op : NULL;
}

static mp_status_t fusion_end_make_kernel(mp_arena_t *arena, fusion_end_t *kernel,
                                          const mp_op_t *end) {
  if (kernel->is_gather) return mp_kernel_make_gather(arena, end, &kernel->end);
  return mp_kernel_make_reduce(arena, end, &kernel->end);
}

mp_status_t mp_fusion_make_end(mp_arena_t *arena, const mp_op_t *op, const mp_op_t *end,
                               const mp_kernel_t **out_kernel) {
  fusion_end_t *kernel = MP_ARENA_NEW(arena, fusion_end_t);
  MP_RETURN_IF_NULL(kernel);
  mp_kernel_init(&kernel->base, fusion_end_run, op);
  kernel->is_gather = end->code == MP_OP_GATHER;
  kernel->computed = kernel->is_gather ? 1 : 0;
  MP_RETURN_IF_ERROR(
      mp_tile_compile(arena, op->regions[0], end, kernel->computed, 1, &kernel->program));
  if (kernel->program.row != 1) {
    return mp_op_error(end, MP_UNIMPLEMENTED, "reduced rows cannot be fused with this operation");
  }
  MP_RETURN_IF_ERROR(fusion_end_find_other(kernel, end));
  MP_RETURN_IF_ERROR(fusion_end_make_kernel(arena, kernel, end));
  kernel->size = mp_dtype_size(mp_op_operand_type(end, kernel->computed)->dtype);
  kernel->tiles = mp_round_up_64(kernel->end->scratch_bytes);
  kernel->window = kernel->tiles + mp_round_up_64(kernel->program.scratch_bytes);
  kernel->base.scratch_bytes = kernel->window + WINDOW * kernel->size;
  kernel->base.num_parts = kernel->end->num_parts;
  kernel->base.shared_bytes = kernel->end->shared_bytes;
  if (kernel->end->finish != NULL) kernel->base.finish = fusion_end_finish;
  *out_kernel = &kernel->base;
  return NULL;
}
