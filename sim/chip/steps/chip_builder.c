// Appends kernels and collectives to the steps of a chip program.
#include <math.h>

#include "sim/base/assert.h"
#include "sim/chip/basis/kernel_basis.h"
#include "sim/chip/cost/kernel_cost.h"
#include "sim/chip/cost/vector_cost.h"
#include "sim/chip/steps/chip_builder.h"
#include "sim/ir/op_name.h"

mp_status_t mp_chip_add_step(mp_chip_builder_t *b, const mp_chip_step_t *step) {
  b->must_begin = false;
  return MP_ARRAY_PUSH(b->c->arena, &b->steps, *step);
}

mp_status_t mp_chip_put_kernel(mp_chip_builder_t *b, const mp_chip_kernel_t *kernel) {
  const uint32_t number = b->kernels.count;
  MP_ASSERT_MSG(isfinite(kernel->seconds) && kernel->seconds >= 0, "%s: %g seconds", kernel->name,
                kernel->seconds);
  MP_ASSERT_MSG(isfinite(kernel->bytes) && kernel->bytes >= 0, "%s: %g bytes", kernel->name,
                kernel->bytes);
  const mp_chip_step_kind_t kind = b->is_in_part ? MP_CHIP_STEP_PART : MP_CHIP_STEP_WORK;
  mp_chip_kernel_t own = *kernel;
  if (own.figure == MP_CHIP_FIGURE_NONE) {
    own.figure = mp_kernel_copy_figure(b->c->chip, kernel->work_class, kernel->bytes);
  }
  MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(b->c->arena, &b->kernels, own));
  mp_chip_step_t *last = b->steps.count == 0 ? NULL : &b->steps.items[b->steps.count - 1];
  if (last == NULL || last->kind != kind || last->op != NULL || b->must_begin) {
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(
        b->c->arena, &b->steps, (mp_chip_step_t){.kind = kind, .first = number, .rounds = -1}));
    last = &b->steps.items[b->steps.count - 1];
    b->must_begin = false;
  }
  MP_ASSERT(last->end == number || last->end == 0);  // a step's kernels are consecutive
  last->end = number + 1;
  last->time += mp_moment_of(kernel->seconds);
  return NULL;
}

mp_status_t mp_chip_add_copy(mp_chip_builder_t *b, const mp_op_t *op, double bytes) {
  enum { SCALAR_BYTES = 16 };
  const bool is_scalar = bytes <= 2 * SCALAR_BYTES;
  const double seconds =
      (is_scalar ? mp_kernel_scalar_time(b->c->chip) : mp_kernel_copy_time(b->c->chip, bytes))
          .seconds;
  return mp_chip_put_kernel(
      b, &(mp_chip_kernel_t){.op = op,
                             .name = "copy",
                             .work_class = is_scalar ? MP_WORK_SCALAR : MP_WORK_COPY,
                             .kind = MP_FLOP_F32,
                             .bytes = bytes,
                             .seconds = seconds});
}

mp_status_t mp_chip_add_vmem_copy(mp_chip_builder_t *b, const mp_op_t *op,
                                  const mp_value_t *value) {
  const double seconds =
      mp_vmem_copy_seconds(b->c->chip, mp_layouts_bytes(&b->c->fusions->layouts, value));
  return mp_chip_put_kernel(b, &(mp_chip_kernel_t){.op = op,
                                                   .name = "copy",
                                                   .work_class = MP_WORK_COPY,
                                                   .kind = MP_FLOP_F32,
                                                   .seconds = seconds,
                                                   .figure = MP_CHIP_FIGURE_vmem_store});
}

mp_status_t mp_chip_add_scalar(mp_chip_builder_t *b, const mp_op_t *op) {
  return mp_chip_put_kernel(
      b, &(mp_chip_kernel_t){.op = op,
                             .name = mp_op_short_name(op),
                             .work_class = MP_WORK_SCALAR,
                             .kind = MP_FLOP_F32,
                             .seconds = mp_kernel_scalar_time(b->c->chip).seconds});
}
