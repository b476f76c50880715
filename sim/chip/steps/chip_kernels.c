// Turns a fusion into a kernel with its time.
#include "sim/chip/basis/kernel_basis.h"
#include "sim/chip/cost/kernel_cost.h"
#include "sim/chip/mosaic/mosaic_cost.h"
#include "sim/chip/steps/chip_builder.h"
#include "sim/ir/op_name.h"

// The bytes that a fusion copies in addition to its accesses: arrays before an update in place, and
// the parts of complex arguments.
static double chip_kernels_bytes_copied(const mp_chip_builder_t *b,
                                        const mp_chip_fusion_t *fusion) {
  double bytes = 0;
  for (const mp_chip_fusion_member_t *m = NULL; mp_chip_fusion_visit(b->c->fusions, fusion, &m);) {
    bytes += mp_chip_bytes_kept(b, m->op) + mp_chip_bytes_split(b, m->op);
  }
  return bytes;
}

// A TPU kernel that is priced by its own program.
static mp_status_t chip_kernels_price(mp_chip_builder_t *b, mp_chip_kernel_t *kernel) {
  mp_price_t price;
  mp_mosaic_module_t *module = mp_mosaic_price_module(b->c->chip, kernel->op);
  if (module == NULL) return NULL;
  const bool is_priced = mp_mosaic_price(b->c->chip, kernel->op, module, NULL, &price);
  mp_mosaic_module_release(module);
  if (!is_priced) return NULL;
  mp_price_t *kept = MP_ARENA_NEW(b->c->arena, mp_price_t);
  MP_RETURN_IF_NULL(kept);
  *kept = price;
  kernel->price = kept;
  kernel->flops = price.flops;
  kernel->bytes = price.bytes;
  kernel->seconds = mp_mosaic_seconds(b->c->chip, &price);
  return NULL;
}

mp_status_t mp_chip_add_kernel(mp_chip_builder_t *b, const mp_op_t *op,
                               const mp_ring_matmul_t *ring) {
  const mp_chip_fusion_t *fusion = mp_chip_fusion_at(b->c->fusions, op);
  if (fusion == NULL) return NULL;
  for (const mp_chip_fusion_member_t *m = NULL; mp_chip_fusion_visit(b->c->fusions, fusion, &m);) {
    MP_RETURN_IF_ERROR(mp_chip_add_layout_copies(b, m->op, op));
  }
  if (mp_chip_fusion_moves_nothing(b->c->fusions, fusion)) return NULL;
  MP_RETURN_IF_ERROR(mp_chip_copy_gemm_operands(b, fusion->hero));
  MP_RETURN_IF_ERROR(mp_chip_pad_gemm_operands(b, fusion->hero));
  const mp_work_t *work = &fusion->work;
  const double bytes = fusion->bytes + chip_kernels_bytes_copied(b, fusion);
  const mp_kernel_time_t time = mp_ring_time(b->c->chip, b->c->fusions, fusion, bytes, ring);
  mp_chip_kernel_t kernel = {
      .op = fusion->hero,
      .name = mp_op_short_name(fusion->hero),
      .work_class = work->work_class,
      .kind = work->matmul.batch > 0 ? mp_chip_flop_kind(work->matmul.dtype) : MP_FLOP_F32,
      .flops = mp_kernel_flops(fusion),
      .transcendentals = work->transcendentals,
      .bytes = bytes,
      .seconds = time.seconds,
      .figure = mp_kernel_figure(b->c->chip, work, &time),
      .fusion = 1 + (uint32_t)(fusion - b->c->fusions->fusions.items),
  };
  MP_RETURN_IF_ERROR(chip_kernels_price(b, &kernel));
  const bool by_values =
      kernel.price != NULL && kernel.price->is_guessed && kernel.op->control != 0;
  return by_values ? MP_ARRAY_PUSH(b->c->scratch, &b->by_values, kernel)
                   : mp_chip_put_kernel(b, &kernel);
}
