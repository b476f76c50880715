// What XLA's compiler for GPUs makes no kernels of: code in which ops are there too often, and rows
// whose elements come from anywhere.
#include <math.h>

#include "sim/base/hash.h"
#include "sim/chip/fuse/chip_fusion_impl.h"

// What is wanted in several orders is in it several times, no more often than this: texts of
// associative scans have three to five of their stages in a kernel.
#define CHIP_FUSION_CODE_MOST 8

double mp_chip_fusion_emitted(const mp_chip_fusion_find_t *find, const mp_op_t *op,
                              uint32_t number) {
  double together = 0, apart = 0;
  for (uint32_t i = 0; i < op->num_results; ++i) {
    uint32_t at = mp_chip_fusion_first_use(find, &op->results[i]);
    for (; at != MP_CHIP_FUSION_NONE; at = find->uses.items[at].next) {
      const mp_chip_fusion_use_t *use = &find->uses.items[at];
      if (mp_chip_fusion_now(find, use->fusion) != number) continue;
      if (!mp_op_has(use->op, MP_OP_TRAIT_ELEMENTWISE)) {
        apart += use->emitted;
      } else if (use->emitted > together) {
        together = use->emitted;
      }
    }
  }
  return together + apart > 0 ? together + apart : 1;
}

double mp_chip_fusion_utilization(const mp_chip_fusion_find_t *find, const mp_op_t *op,
                                  uint32_t number) {
  double together = 0, apart = 0;
  for (uint32_t i = 0; i < op->num_results; ++i) {
    uint32_t at = mp_chip_fusion_first_use(find, &op->results[i]);
    for (; at != MP_CHIP_FUSION_NONE; at = find->uses.items[at].next) {
      const mp_chip_fusion_use_t *use = &find->uses.items[at];
      if (mp_chip_fusion_now(find, use->fusion) != number) continue;
      if (!mp_op_has(use->op, MP_OP_TRAIT_ELEMENTWISE)) {
        apart += use->share;
      } else if (use->share > together) {
        together = use->share;
      }
    }
  }
  return together + apart;
}

// Parts that are cut out of an array or put in its place are made where they are read.
static bool chip_fusion_code_moves(const mp_op_t *op) {
  return op->code == MP_OP_SLICE || op->code == MP_OP_PAD || mp_chip_fusion_is_generator(op);
}

bool mp_chip_fusion_has_room(const mp_chip_fusion_find_t *find, const mp_op_t *op,
                             uint32_t number) {
  if (chip_fusion_code_moves(op)) return true;
  return mp_chip_fusion_emitted(find, op, number) <= CHIP_FUSION_CODE_MOST;
}
