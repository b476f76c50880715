// By how much a collective slows down the compute that it overlaps with.
#include <math.h>

#include "sim/chip/schedule/chip_order_impl.h"

typedef struct {
  double work, matmuls;  // seconds
} beside_t;

static bool chip_order_lost_is_matmul(const mp_communication_t *c, const mp_chip_item_t *item) {
  const mp_chip_fusion_t *fusion = mp_chip_fusion_at(c->fusions, item->op);
  return fusion != NULL && fusion->work.work_class == MP_WORK_MATMUL;
}

// The work between the start of a collective and its end, at `end`.
static beside_t chip_order_lost_find(const mp_communication_t *c, const mp_chip_order_t *order,
                                     uint32_t end) {
  beside_t beside = {0, 0};
  for (uint32_t i = end; i-- > 0;) {
    const mp_chip_item_t *item = &order->slots[i].item;
    if (item->collective == order->slots[end].item.collective) break;
    if (item->collective != UINT32_MAX) continue;
    beside.work += item->seconds;
    if (chip_order_lost_is_matmul(c, item)) beside.matmuls += item->seconds;
  }
  return beside;
}

// The share of this work's rate that a collective takes while both run: the share of the
// multiprocessors that it runs on. Matmuls lose more (`overlap.lost`): they have about one block
// per multiprocessor, so the last blocks start when others have ended.
static double chip_order_lost_share(const mp_chip_figures_t *figures, const beside_t *beside) {
  const double units = figures->overlap_units / figures->matmul_units;
  const double of_matmuls = beside->work > 0 ? beside->matmuls / beside->work : 0;
  return units + of_matmuls * (mp_figure_or(figures->overlap_lost, units) - units);
}

double mp_chip_order_lost_seconds(const mp_communication_t *c, const mp_chip_order_t *order,
                                  uint32_t end) {
  const mp_chip_figures_t *figures = &c->chip->figures;
  const mp_chip_item_t *item = &order->slots[end].item;
  if (!(figures->overlap_units > 0 && figures->overlap_units < figures->matmul_units)) return 0;
  const beside_t beside = chip_order_lost_find(c, order, end);
  const double share = fmin(chip_order_lost_share(figures, &beside), 1), left = 1 - share;
  return (left > 0 ? fmin(item->seconds, beside.work / left) : item->seconds) * share;
}
