#include "sim/kernels/contraction/conv_phases.h"

#include "sim/base/assert.h"
#include "sim/kernels/shape.h"

mp_conv_phase_t mp_conv_phase(int64_t by, int64_t start, int64_t pad) {
  MP_ASSERT(by >= 1 && start >= 0 && start < by);
  const int64_t tap = (pad - start) % by;
  return (mp_conv_phase_t){by, start, tap < 0 ? tap + by : tap};
}

int64_t mp_conv_phase_count(int64_t extent, int64_t start, int64_t by) {
  return extent <= start ? 0 : (extent - start + by - 1) / by;
}

// Position by * q + start reads, by its window's position by * u + tap, element q + u - (pad -
// start - tap) / by.
void mp_conv_take_phase(mp_conv_dim_t *dim, mp_conv_phase_t phase) {
  if (phase.by == 1) return;
  MP_ASSERT(dim->lhs_dilation == phase.by && dim->rhs_dilation == 1 && dim->step == 1);
  dim->lhs_dilation = 1;
  dim->pad = (dim->pad - phase.start - phase.tap) / phase.by;
  dim->window = mp_conv_phase_count(dim->window, phase.tap, phase.by);
}

typedef struct {
  const mp_kernel_t *kernel;
  int64_t offset;  // bytes from the first result of the whole to the phase's first
  uint32_t first;  // the first of its parts
} phase_t;

struct mp_conv_phases_s {
  mp_kernel_t base;
  uint32_t count;
  phase_t *phases;
};

static mp_status_t conv_phases_run(const mp_kernel_t *base, const mp_kernel_call_t *call) {
  const mp_conv_phases_t *self = (const mp_conv_phases_t *)base;
  uint32_t i = self->count - 1;
  while (self->phases[i].first > call->part) --i;
  const phase_t *phase = &self->phases[i];
  void *result = (char *)call->results[0] + phase->offset;
  mp_kernel_call_t part = *call;
  part.results = &result;
  part.part -= phase->first;
  return phase->kernel->run(phase->kernel, &part);
}

mp_status_t mp_conv_phases_create(mp_arena_t *arena, const mp_op_t *op, uint32_t most,
                                  mp_conv_phases_t **out_phases) {
  mp_conv_phases_t *self = MP_ARENA_NEW(arena, mp_conv_phases_t);
  MP_RETURN_IF_NULL(self);
  mp_kernel_init(&self->base, conv_phases_run, op);
  self->phases = MP_ARENA_ARRAY(arena, phase_t, most);
  MP_RETURN_IF_NULL(self->phases);
  self->base.num_parts = 0;
  *out_phases = self;
  return NULL;
}

void mp_conv_phases_add(mp_conv_phases_t *self, const mp_kernel_t *kernel, int64_t offset) {
  MP_ASSERT(kernel->finish == NULL);
  self->phases[self->count++] = (phase_t){kernel, offset, self->base.num_parts};
  self->base.num_parts += kernel->num_parts;
  if (kernel->scratch_bytes > self->base.scratch_bytes) {
    self->base.scratch_bytes = kernel->scratch_bytes;
  }
}

const mp_kernel_t *mp_conv_phases_kernel(const mp_conv_phases_t *self) {
  return &self->base;
}
