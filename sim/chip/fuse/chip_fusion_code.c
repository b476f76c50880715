// GPUs: how often a fusion emits an op, and how many of its elements it computes.
#include <math.h>

#include "sim/base/hash.h"
#include "sim/chip/fuse/chip_fusion_impl.h"

// The most times that a kernel emits an op. Evidence: optimized programs of associative scans have
// three to five stages in a kernel.
#define CHIP_FUSION_CODE_MOST 8

// Sums up how often ops of the fusion read the op's result. Elementwise readers share one read.
static double chip_fusion_code_sum(const mp_chip_fusion_find_t *find, const mp_op_t *op,
                                   uint32_t number, bool is_share) {
  double together = 0, apart = 0;
  for (uint32_t i = 0; i < op->num_results; ++i) {
    uint32_t at = mp_chip_fusion_first_use(find, &op->results[i]);
    for (; at != MP_CHIP_FUSION_NONE; at = find->uses.items[at].next) {
      const mp_chip_fusion_use_t *use = &find->uses.items[at];
      if (mp_chip_fusion_now(find, use->fusion) != number) continue;
      const double times = is_share ? use->share : use->emitted;
      if (mp_op_has(use->op, MP_OP_TRAIT_ELEMENTWISE)) {
        together = fmax(together, times);
      } else {
        apart += times;
      }
    }
  }
  return together + apart;
}

double mp_chip_fusion_emitted(const mp_chip_fusion_find_t *find, const mp_op_t *op,
                              uint32_t number) {
  const double times = chip_fusion_code_sum(find, op, number, false);
  return times > 0 ? times : 1;
}

double mp_chip_fusion_utilization(const mp_chip_fusion_find_t *find, const mp_op_t *op,
                                  uint32_t number) {
  return chip_fusion_code_sum(find, op, number, true);
}

// Slices, pads and generators are computed at each reader, whatever the code size.
static bool chip_fusion_code_moves(const mp_op_t *op) {
  return op->code == MP_OP_SLICE || op->code == MP_OP_PAD || mp_chip_fusion_is_generator(op);
}

bool mp_chip_fusion_has_room(const mp_chip_fusion_find_t *find, const mp_op_t *op,
                             uint32_t number) {
  if (chip_fusion_code_moves(op)) return true;
  return mp_chip_fusion_emitted(find, op, number) <= CHIP_FUSION_CODE_MOST;
}
