// By how much a collective slows down the compute that it overlaps with.
#include <math.h>

#include "sim/chip/schedule/chip_order_impl.h"

// The share of the work's rate that a collective takes while both run: the share of the
// multiprocessors that it runs on. Matmuls, this share of the work, lose more (`overlap.lost`):
// they have about one block per multiprocessor, so the last blocks start when others have ended.
static double chip_order_lost_share(const mp_chip_figures_t *figures, double of_matmuls) {
  const double units = figures->overlap_units / figures->matmul_units;
  return fmin(units + of_matmuls * (mp_figure_or(figures->overlap_lost, units) - units), 1);
}

double mp_chip_order_lost_seconds(const mp_chip_figures_t *figures, const mp_chip_order_t *order,
                                  uint32_t end) {
  const mp_chip_item_t *ended = order->slots[end].item;
  double work = 0, matmuls = 0;  // seconds between its start and its end
  if (!(figures->overlap_units > 0 && figures->overlap_units < figures->matmul_units)) return 0;
  for (uint32_t i = end; i-- > 0 && order->slots[i].item != ended;) {
    const mp_chip_item_t *item = order->slots[i].item;
    if (item->collective != ORDER_NONE) continue;
    work += item->seconds;
    if (item->is_matmul) matmuls += item->seconds;
  }
  const double share = chip_order_lost_share(figures, work > 0 ? matmuls / work : 0);
  const double left = 1 - share;
  return (left > 0 ? fmin(ended->seconds, work / left) : ended->seconds) * share;
}
