// stablehlo.map: a region over the elements of its operands.
#include "sim/kernels/elementwise/elementwise.h"
#include "sim/kernels/elementwise/elementwise_makers.h"
#include "sim/kernels/elementwise/region.h"
#include "sim/kernels/shape.h"

typedef struct {
  mp_kernel_t base;
  const mp_region_fn_t *fn;
  uint32_t num_operands;
  int64_t count;
} map_t;

enum { GRAIN = 16 * 1024 };

static mp_status_t map_run(const mp_kernel_t *base, const mp_kernel_call_t *call) {
  const map_t *kernel = (const map_t *)base;
  int64_t begin, end;
  mp_part_range(kernel->count, base->num_parts, call->part, &begin, &end);
  // The scratch memory holds the pointers to the blocks and then the region's registers.
  const void **in = call->scratch;
  char *registers = (char *)call->scratch + mp_round_up_64(kernel->num_operands * sizeof(*in));
  const void *const *captures = call->operands + kernel->num_operands;
  size_t out_size = mp_dtype_size(mp_op_result_type(base->op, 0)->dtype);
  for (int64_t i = begin; i < end; i += MP_REGION_MAX_LANES) {
    for (uint32_t k = 0; k < kernel->num_operands; ++k) {
      size_t size = mp_dtype_size(mp_op_operand_type(base->op, k)->dtype);
      in[k] = (const char *)call->operands[k] + (size_t)i * size;
    }
    void *out = (char *)call->results[0] + (size_t)i * out_size;
    mp_region_fn_run(kernel->fn, mp_min_i64(end - i, MP_REGION_MAX_LANES), in, captures, &out,
                     registers);
  }
  return NULL;
}

mp_status_t mp_kernel_make_map(mp_arena_t *arena, const mp_op_t *op,
                               const mp_kernel_t **out_kernel) {
  map_t *kernel = MP_ARENA_NEW(arena, map_t);
  MP_RETURN_IF_NULL(kernel);
  mp_kernel_init(&kernel->base, map_run, op);
  MP_RETURN_IF_ERROR(mp_region_fn_create(arena, op->regions[0], &kernel->fn));
  kernel->num_operands = op->num_operands;
  kernel->count = mp_shape_count(mp_op_result_type(op, 0));
  kernel->base.num_parts = mp_part_count(kernel->count, GRAIN);
  kernel->base.scratch_bytes =
      mp_round_up_64(op->num_operands * sizeof(void *)) + mp_region_fn_scratch_bytes(kernel->fn);
  *out_kernel = &kernel->base;
  return NULL;
}
