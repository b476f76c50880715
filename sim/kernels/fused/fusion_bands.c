// A fused op of two batched products: its bands one after the other. For each band, the kernels of
// the first product, of the ops between, and of the last product run one after the other, with all
// their parts. Values between them are in the scratch memory.
#include "sim/kernels/fused/fusion_bands.h"

#include "sim/kernels/shape.h"

typedef struct {
  const mp_kernel_t *kernel;
  uint32_t num_operands;
  // By operand: the number of the fused op's argument, or one of the next two numbers for the two
  // buffers.
  const uint32_t *from;
} stage_t;

typedef struct {
  mp_kernel_t base;
  int64_t count;  // of bands
  uint32_t num_args;
  const int64_t *steps;  // by argument: bytes from band to band
  int64_t result_step;
  stage_t stages[3];
  // Where the buffers of the first two stages and the kernels' own scratch memory begin in the
  // scratch memory.
  size_t buffers[2], shared, inner, pointers;
} fusion_bands_t;

static mp_status_t fusion_bands_stage(const stage_t *stage, const void *const *values, void *result,
                                      char *scratch, char *shared, const void **operands) {
  const mp_kernel_t *kernel = stage->kernel;
  for (uint32_t i = 0; i < stage->num_operands; ++i) operands[i] = values[stage->from[i]];
  mp_kernel_call_t call = {
      .operands = operands, .results = &result, .scratch = scratch, .shared = shared};
  for (call.part = 0; call.part < kernel->num_parts; ++call.part) {
    MP_RETURN_IF_ERROR(kernel->run(kernel, &call));
  }
  call.part = 0;
  return kernel->finish == NULL ? NULL : kernel->finish(kernel, &call);
}

static mp_status_t fusion_bands_run(const mp_kernel_t *base, const mp_kernel_call_t *call) {
  const fusion_bands_t *self = (const fusion_bands_t *)base;
  char *scratch = call->scratch;
  const void **values = (const void **)(void *)(scratch + self->pointers);
  const void **operands = values + self->num_args + 2;
  void *const buffers[2] = {scratch + self->buffers[0], scratch + self->buffers[1]};
  int64_t begin = 0, end = 0;
  mp_part_range(self->count, base->num_parts, call->part, &begin, &end);
  for (int64_t band = begin; band < end; ++band) {
    void *const results[3] = {buffers[0], buffers[1],
                              (char *)call->results[0] + band * self->result_step};
    for (uint32_t i = 0; i < self->num_args; ++i) {
      values[i] = (const char *)call->operands[i] + band * self->steps[i];
    }
    values[self->num_args] = buffers[0];
    values[self->num_args + 1] = buffers[1];
    for (uint32_t s = 0; s < 3; ++s) {
      MP_RETURN_IF_ERROR(fusion_bands_stage(&self->stages[s], values, results[s],
                                            scratch + self->inner, scratch + self->shared,
                                            operands));
    }
  }
  return NULL;
}

// ---- Making ----

// The operands of a product: arguments of the region, and for the last one a buffer.
static mp_status_t fusion_bands_product(mp_arena_t *arena, const mp_op_t *op, uint32_t buffer,
                                        stage_t *stage) {
  uint32_t *from = MP_ARENA_ARRAY(arena, uint32_t, 2);
  MP_RETURN_IF_NULL(from);
  for (uint32_t i = 0; i < 2; ++i) {
    from[i] = op->operands[i]->op == NULL ? op->operands[i]->index : buffer;
  }
  stage->num_operands = 2;
  stage->from = from;
  return NULL;
}

static mp_status_t fusion_bands_middle(mp_arena_t *arena, uint32_t num_args, stage_t *stage) {
  uint32_t *from = MP_ARENA_ARRAY(arena, uint32_t, (size_t)num_args + 1);
  MP_RETURN_IF_NULL(from);
  for (uint32_t i = 0; i <= num_args; ++i) from[i] = i;  // the last one is the first buffer
  stage->num_operands = num_args + 1;
  stage->from = from;
  return NULL;
}

static mp_status_t fusion_bands_find_steps(mp_arena_t *arena, const mp_op_t *op,
                                           const mp_bands_t *bands, fusion_bands_t *self) {
  int64_t *steps = MP_ARENA_ARRAY(arena, int64_t, (size_t)op->num_operands + 1);
  MP_RETURN_IF_NULL(steps);
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const int64_t bytes = mp_shape_bytes(mp_op_operand_type(op, i));
    steps[i] = bands->has_bands[i] ? bytes / bands->count : 0;
  }
  self->steps = steps;
  self->result_step = mp_shape_bytes(mp_op_result_type(op, 0)) / bands->count;
  return NULL;
}

// Lays out the scratch memory. The ops between the products overwrite their operand if they may.
static void fusion_bands_lay_out(fusion_bands_t *self, const mp_bands_t *bands) {
  const mp_kernel_t *middle = self->stages[1].kernel;
  const bool in_place =
      self->num_args < 32 && (mp_kernel_in_place(middle, 0) >> self->num_args & 1) != 0;
  size_t at = mp_round_up_64((size_t)mp_shape_bytes(mp_op_result_type(bands->first, 0)));
  self->buffers[1] = in_place ? 0 : at;
  if (!in_place) at += mp_round_up_64((size_t)mp_shape_bytes(mp_op_result_type(bands->middle, 0)));
  size_t inner = 0, shared = 0;
  for (uint32_t s = 0; s < 3; ++s) {
    const mp_kernel_t *kernel = self->stages[s].kernel;
    if (kernel->scratch_bytes > inner) inner = kernel->scratch_bytes;
    if (kernel->shared_bytes > shared) shared = kernel->shared_bytes;
  }
  self->shared = at;
  self->inner = at + mp_round_up_64(shared);
  self->pointers = self->inner + mp_round_up_64(inner);
  self->base.scratch_bytes = self->pointers + (2 * self->num_args + 4) * sizeof(void *);
}

mp_status_t mp_fusion_make_bands(mp_arena_t *arena, const mp_op_t *op, const mp_bands_t *bands,
                                 mp_kernel_maker_t make, const mp_kernel_t **out_kernel) {
  fusion_bands_t *self = MP_ARENA_NEW(arena, fusion_bands_t);
  MP_RETURN_IF_NULL(self);
  mp_kernel_init(&self->base, fusion_bands_run, op);
  self->count = bands->count;
  self->num_args = op->num_operands;
  const mp_op_t *const ops[3] = {bands->first, bands->middle, bands->last};
  for (uint32_t s = 0; s < 3; ++s) {
    MP_RETURN_IF_ERROR(make(arena, ops[s], &self->stages[s].kernel));
  }
  MP_RETURN_IF_ERROR(fusion_bands_product(arena, bands->first, 0, &self->stages[0]));
  MP_RETURN_IF_ERROR(fusion_bands_middle(arena, self->num_args, &self->stages[1]));
  MP_RETURN_IF_ERROR(
      fusion_bands_product(arena, bands->last, self->num_args + 1, &self->stages[2]));
  MP_RETURN_IF_ERROR(fusion_bands_find_steps(arena, op, bands, self));
  fusion_bands_lay_out(self, bands);
  self->base.num_parts = mp_part_count(bands->count, 1);
  *out_kernel = &self->base;
  return NULL;
}
