// Properties of a block's items, for the files that order them.
#include "collectives/collective_parts.h"
#include "sim/base/assert.h"
#include "sim/chip/schedule/chip_order_impl.h"

mp_chip_collective_t *mp_chip_order_collective(const mp_chip_ordering_t *o, uint32_t item) {
  const uint32_t number = o->items.items[item].collective;
  if (number == ORDER_NONE) return NULL;
  MP_ASSERT(number < o->c->collectives.count);
  return &o->c->collectives.items[number];
}

uint32_t mp_chip_order_kind(const mp_chip_ordering_t *o, uint32_t item) {
  const mp_chip_collective_t *one = mp_chip_order_collective(o, item);
  return one == NULL ? MP_COLLECTIVE_KINDS : one->collective->kind;
}

uint32_t mp_chip_order_num_members(const mp_collective_t *collective) {
  const mp_groups_t *groups = collective->groups;
  uint32_t most = 0;
  for (uint32_t g = 0; groups != NULL && g < groups->num_groups; ++g) {
    const uint32_t members = groups->offsets[g + 1] - groups->offsets[g];
    if (members > most) most = members;
  }
  return most;
}

double mp_chip_order_result_bytes(const mp_collective_t *collective) {
  double bytes = 0;
  for (uint32_t i = 0; i < collective->num_operands; ++i) {
    const mp_collective_operand_t *operand = &collective->operands[i];
    bytes += (double)mp_operand_bytes(operand, operand->result_dims);
  }
  return bytes;
}

bool mp_chip_order_is_too_small(const mp_chip_ordering_t *o, const mp_collective_t *collective) {
  return mp_overlap_is_too_small(&o->c->chip->figures, collective->kind,
                                 mp_chip_order_result_bytes(collective));
}

mp_overlap_t mp_chip_order_overlap(const mp_chip_ordering_t *o, const mp_collective_t *collective) {
  if (mp_chip_order_is_too_small(o, collective)) return MP_OVERLAP_SYNC;
  return mp_overlap_order(&o->c->chip->figures, collective->kind,
                          mp_chip_order_num_members(collective));
}

double mp_chip_order_kernel_seconds(const mp_chip_ordering_t *o, const mp_op_t *op,
                                    mp_ring_matmul_t ring) {
  const mp_chip_fusion_t *fusion = mp_chip_fusion_at(o->c->fusions, op);
  if (fusion == NULL) return 0;
  return mp_ring_time(o->c->chip, o->c->fusions, fusion, fusion->bytes, &ring).seconds;
}
