#include "sim/chip/schedule/overlap.h"

#include "sim/base/assert.h"
#include "sim/chip/rules/chip_policy.h"
#include "sim/chip/rules/chip_rules.h"

const char *mp_overlap_name(mp_overlap_t order) {
  static const char *const names[] = {"sync", "async", "decomposed"};
  return names[order];
}

// The overlap of a kind that the chip's file sets instead; NAN: none.
static double overlap_figure(const mp_chip_figures_t *figures, mp_collective_kind_t kind) {
  if (kind == MP_COLLECTIVE_ALL_REDUCE) return figures->overlap_all_reduce;
  if (kind == MP_COLLECTIVE_ALL_GATHER) return figures->overlap_all_gather;
  const bool is_permute = kind == MP_COLLECTIVE_PERMUTE || kind == MP_COLLECTIVE_EXCHANGE;
  return is_permute ? figures->overlap_permute : NAN;
}

// The table of README.md.
static mp_overlap_t overlap_of_kind(const mp_chip_figures_t *figures, mp_collective_kind_t kind) {
  const double figure = overlap_figure(figures, kind);
  if (figure >= 0 && figure < MP_OVERLAP_COUNT) return (mp_overlap_t)figure;
  if (kind == MP_COLLECTIVE_SEND_RECV) return MP_OVERLAP_SYNC;
  if (mp_chip_policy(figures)->starts_collectives) return MP_OVERLAP_ASYNC;
  if (!mp_chip_policy(figures)->decomposes_collectives) return MP_OVERLAP_SYNC;
  switch (kind) {
    case MP_COLLECTIVE_ALL_GATHER:
    case MP_COLLECTIVE_REDUCE_SCATTER:
      return MP_OVERLAP_DECOMPOSED;
    case MP_COLLECTIVE_PERMUTE:
    case MP_COLLECTIVE_EXCHANGE:
      return MP_OVERLAP_ASYNC;
    default:
      return MP_OVERLAP_SYNC;
  }
}

mp_overlap_t mp_overlap_without_ring(const mp_chip_figures_t *figures, mp_collective_kind_t kind) {
  if (kind == MP_COLLECTIVE_REDUCE_SCATTER && mp_chip_policy(figures)->decomposes_collectives) {
    return overlap_of_kind(figures, MP_COLLECTIVE_ALL_REDUCE);
  }
  return figures->overlap_no_ring == 0 ? MP_OVERLAP_SYNC : MP_OVERLAP_ASYNC;
}

// The partitioner assumes that the matmul hides the ring, except for its first and last messages. A
// ring uses the links of one dimension, the collective those of all. So with n members along k
// dimensions it compares 2/n of the ring's time with 1/k of it. The matmul must also take longer
// than one message (`overlap.ring_work`).
bool mp_overlap_ring_is_faster(const mp_chip_figures_t *figures, const mp_overlap_ring_t *ring) {
  MP_ASSERT(ring->message >= 0 && ring->matmul >= 0);
  const bool has_dims = figures->overlap_ring_dims == 1 && ring->num_dims > 1;
  const double least = mp_figure_or(figures->overlap_ring_work, 0) * ring->message;
  return ring->members > 2 * (has_dims ? ring->num_dims : 1) && ring->matmul >= least &&
         mp_chip_rule(figures, MP_CHIP_RULE_collective_matmul);
}

bool mp_overlap_sums_whole(const mp_chip_figures_t *figures, mp_collective_kind_t kind,
                           uint32_t members, double elements, bool is_of_all) {
  enum { LANES = 128 };
  const bool is_gather = kind == MP_COLLECTIVE_ALL_GATHER;
  const bool is_scatter = kind == MP_COLLECTIVE_REDUCE_SCATTER;
  const bool is_short = is_gather && mp_chip_policy(figures)->has_tiles && elements < LANES;
  const bool may_all =
      (is_scatter && figures->overlap_whole_sums == 1) ||
      (is_gather && figures->overlap_whole_gathers == 1 && members > figures->overlap_ring_members);
  return (is_short || (is_of_all && may_all)) && mp_chip_rule(figures, MP_CHIP_RULE_whole_sums);
}

bool mp_overlap_is_too_small(const mp_chip_figures_t *figures, mp_collective_kind_t kind,
                             double bytes) {
  return kind == MP_COLLECTIVE_ALL_REDUCE && bytes < mp_figure_or(figures->overlap_least, 0);
}

bool mp_overlap_may_combine(const mp_chip_figures_t *figures, mp_collective_kind_t kind) {
  if (kind == MP_COLLECTIVE_ALL_REDUCE) return true;
  return mp_chip_policy(figures)->combines_gathers &&
         (kind == MP_COLLECTIVE_REDUCE_SCATTER || kind == MP_COLLECTIVE_ALL_GATHER);
}

mp_overlap_t mp_overlap_order(const mp_chip_figures_t *figures, mp_collective_kind_t kind,
                              uint32_t members) {
  const mp_overlap_t order = overlap_of_kind(figures, kind);
  // Without `overlap.ring_members` the bound is NaN, and no number of members exceeds it.
  const bool is_large = members > figures->overlap_ring_members;
  return order == MP_OVERLAP_DECOMPOSED && is_large ? mp_overlap_without_ring(figures, kind)
                                                    : order;
}
