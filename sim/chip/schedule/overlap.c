#include "sim/chip/schedule/overlap.h"

#include <math.h>

#include "sim/chip/rules/chip_rules.h"

enum { MP_OVERLAP_LANES = 128 };  // of a TPU's vector

static const char *const k_order_names[] = {
#define ORDER_NAME(name, text) [MP_OVERLAP_##name] = text,
    MP_OVERLAPS(ORDER_NAME)
#undef ORDER_NAME
};

const char *mp_overlap_name(mp_overlap_t order) {
  return k_order_names[order];
}

// What compilers do with a kind: TPUs', GPUs'.
#define KINDS(X)                       \
  X(ALL_REDUCE, SYNC, ASYNC)           \
  X(ALL_GATHER, DECOMPOSED, ASYNC)     \
  X(REDUCE_SCATTER, DECOMPOSED, ASYNC) \
  X(ALL_TO_ALL, SYNC, ASYNC)           \
  X(PERMUTE, ASYNC, ASYNC)             \
  X(BROADCAST, SYNC, ASYNC)            \
  X(RAGGED_ALL_TO_ALL, SYNC, ASYNC)    \
  X(EXCHANGE, ASYNC, ASYNC)

// What a chip's file says of a kind instead; NAN: nothing.
static double overlap_figure(const mp_chip_figures_t *figures, mp_collective_kind_t kind) {
  if (kind == MP_COLLECTIVE_ALL_REDUCE) return figures->overlap_all_reduce;
  if (kind == MP_COLLECTIVE_ALL_GATHER) return figures->overlap_all_gather;
  const bool is_permute = kind == MP_COLLECTIVE_PERMUTE || kind == MP_COLLECTIVE_EXCHANGE;
  return is_permute ? figures->overlap_permute : NAN;
}

static mp_overlap_t overlap_of(const mp_chip_figures_t *figures, double figure, mp_overlap_t on_tpu,
                               mp_overlap_t on_gpu) {
  if (figure >= 0 && figure < MP_OVERLAP_COUNT) return (mp_overlap_t)figure;
  if (figures->compiler == MP_CHIP_COMPILER_TPU) return on_tpu;
  return figures->compiler == MP_CHIP_COMPILER_GPU ? on_gpu : MP_OVERLAP_SYNC;
}

static mp_overlap_t overlap_of_kind(const mp_chip_figures_t *figures, mp_collective_kind_t kind) {
  switch (kind) {
#define OVERLAP_CASE(name, tpu, gpu) \
  case MP_COLLECTIVE_##name:         \
    return overlap_of(figures, overlap_figure(figures, kind), MP_OVERLAP_##tpu, MP_OVERLAP_##gpu);
    KINDS(OVERLAP_CASE)
#undef OVERLAP_CASE
    case MP_COLLECTIVE_SEND_RECV:
      break;
  }
  return MP_OVERLAP_SYNC;
}

mp_overlap_t mp_overlap_without_ring(const mp_chip_figures_t *figures, mp_collective_kind_t kind) {
  const bool is_sum = kind == MP_COLLECTIVE_REDUCE_SCATTER;
  if (is_sum && figures->compiler == MP_CHIP_COMPILER_TPU &&
      mp_chip_rule(figures, MP_CHIP_RULE_scatter_as_all_reduce)) {
    return overlap_of_kind(figures, MP_COLLECTIVE_ALL_REDUCE);
  }
  return figures->overlap_no_ring == 0 ? MP_OVERLAP_SYNC : MP_OVERLAP_ASYNC;
}

// A ring has the links of one dimension, the collective those of all, and a ring's first and last
// messages go on beside nothing. So its partitioner compares, with n members along k dimensions and
// a matmul that takes longer than the ring: 2/n of the ring's time with 1/k of it.
// Where `overlap.ring_dims` does not say so, any group is a line to it.
bool mp_overlap_may_ring(const mp_chip_figures_t *figures, uint32_t members, uint32_t num_dims) {
  const bool is_line = num_dims == 0 || figures->overlap_ring_dims != 1;
  return members > 2 * (is_line ? 1 : num_dims) ||
         !mp_chip_rule(figures, MP_CHIP_RULE_ring_link_gain);
}

bool mp_overlap_is_carried(const mp_chip_figures_t *figures) {
  return figures->overlap_carried == 1 && mp_chip_rule(figures, MP_CHIP_RULE_gather_in_matmul);
}

bool mp_overlap_gathers_whole(const mp_chip_figures_t *figures, uint32_t members) {
  return figures->overlap_whole_gathers == 1 && members > figures->overlap_ring_members &&
         mp_chip_rule(figures, MP_CHIP_RULE_whole_all_gather);
}

bool mp_overlap_sums_short(const mp_chip_figures_t *figures, int64_t elements) {
  return figures->compiler == MP_CHIP_COMPILER_TPU && elements < MP_OVERLAP_LANES &&
         mp_chip_rule(figures, MP_CHIP_RULE_short_gather_sum);
}

bool mp_overlap_is_too_small(const mp_chip_figures_t *figures, mp_collective_kind_t kind,
                             double bytes) {
  return kind == MP_COLLECTIVE_ALL_REDUCE && bytes < mp_figure_or(figures->overlap_least, 0) &&
         mp_chip_rule(figures, MP_CHIP_RULE_small_all_reduce_sync);
}

bool mp_overlap_may_combine(const mp_chip_figures_t *figures, mp_collective_kind_t kind) {
  if (kind == MP_COLLECTIVE_ALL_REDUCE) return true;
  if (kind != MP_COLLECTIVE_REDUCE_SCATTER && kind != MP_COLLECTIVE_ALL_GATHER) return false;
  return figures->compiler != MP_CHIP_COMPILER_TPU ||
         !mp_chip_rule(figures, MP_CHIP_RULE_combine_all_reduce_only);
}

bool mp_overlap_sums_whole(const mp_chip_figures_t *figures) {
  return figures->overlap_whole_sums == 1 &&
         mp_chip_rule(figures, MP_CHIP_RULE_whole_reduce_scatter);
}

mp_overlap_t mp_overlap_order(const mp_chip_figures_t *figures, mp_collective_kind_t kind,
                              uint32_t members) {
  const mp_overlap_t order = overlap_of_kind(figures, kind);
  const double most = figures->overlap_ring_members;  // absent: NaN, to which nothing compares
  if (order != MP_OVERLAP_DECOMPOSED || !(members > most) ||
      !mp_chip_rule(figures, MP_CHIP_RULE_ring_group_limit)) {
    return order;
  }
  return mp_overlap_without_ring(figures, kind);
}
