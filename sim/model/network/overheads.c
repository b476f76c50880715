// What collectives and messages take besides their links: parameters of the chip, 0 without them.
//
// The runtime of a collective has a start, larger for more bytes, since these are divided among
// more channels and in other protocols; and members go over bytes in their own memory, which the
// links do not see: each copies its own part of the result, or adds it.
#include <math.h>

#include "sim/model/network/network_impl.h"

// MP_CHIP_COLLECTIVE; NaN: absent.
typedef struct {
  double start, members, ramp, ramp_from, own, all;
} overhead_t;

static overhead_t overheads_of(const mp_chip_figures_t *figures, mp_collective_kind_t kind,
                               mp_algorithm_t algorithm) {
#define OVERHEAD(name)                                                      \
  (overhead_t) {                                                            \
    figures->name##_start, figures->name##_members, figures->name##_ramp,   \
        figures->name##_ramp_from, figures->name##_own, figures->name##_all \
  }
  if (algorithm == MP_ALGORITHM_SWITCH_SUM) return OVERHEAD(switch_sum);
  switch (kind) {
    case MP_COLLECTIVE_ALL_REDUCE:
      return OVERHEAD(all_reduce);
    case MP_COLLECTIVE_REDUCE_SCATTER:
      return OVERHEAD(reduce_scatter);
    case MP_COLLECTIVE_ALL_GATHER:
    case MP_COLLECTIVE_BROADCAST:
      return OVERHEAD(all_gather);
    case MP_COLLECTIVE_PERMUTE:
    case MP_COLLECTIVE_SEND_RECV:
      return OVERHEAD(permute);
    default:
      return OVERHEAD(all_to_all);
  }
#undef OVERHEAD
}

double mp_network_overhead(const mp_network_t *network, mp_collective_kind_t kind,
                           mp_algorithm_t algorithm, uint32_t size, double bytes) {
  const overhead_t overhead = overheads_of(&network->figures, kind, algorithm);
  double seconds = mp_figure_or(overhead.start, 0);
  seconds += mp_figure_or(overhead.members, 0) * log2(size);
  if (overhead.ramp > 0 && overhead.ramp_from > 0) {
    seconds += overhead.ramp * log2(1 + bytes / overhead.ramp_from);
  }
  if (overhead.own > 0) seconds += bytes / size / overhead.own;
  if (overhead.all > 0) seconds += bytes / overhead.all;
  return seconds;
}

// How many channels carry a message, as NCCL counts them: a first one for 512 KiB, up to four for
// messages up to 64 MiB, and beyond that one for 16 MiB, up to 32.
static double overheads_channels(double bytes) {
  const double kib = 1024, mib = 1024 * kib;
  if (bytes <= 64 * mib) return fmin(fmax(bytes / (512 * kib), 1), 4);
  return fmin(bytes / (16 * mib), 32);
}

double mp_network_message_overhead(const mp_network_t *network, double rate, double bytes) {
  const double start =
      mp_network_overhead(network, MP_COLLECTIVE_PERMUTE, MP_ALGORITHM_DIRECT, 1, bytes);
  const double channels = overheads_channels(bytes) * network->figures.network_channel;
  return channels > 0 && channels < rate ? start + bytes / channels - bytes / rate : start;
}
