// Stripes: a large collective between hosts as several smaller ones.
//
// An all_reduce treats each element separately, so it may be done for one range of the elements
// after the other without changing a bit. If its members are on several hosts, this has two
// advantages: while one stripe is transferred the next one is packed, and the data of a stripe stay
// in the caches from packing to combining. Other collectives are one stripe.
#ifndef MINIPOD_COLLECTIVES_COLLECTIVE_STRIPE_H_
#define MINIPOD_COLLECTIVES_COLLECTIVE_STRIPE_H_

#include "collectives/collective_schedule.h"

enum {
  // The bytes from one process to another in one phase of a stripe. With fewer, the cost of
  // messages grows; with more, a stripe does not stay in a core's cache
  // (`tools/bench/psum_hosts.py`).
  MP_STRIPE_BYTES = 256 << 10,
};

// Whether a large collective of this kind is cut into stripes, on one host or several.
bool mp_collective_is_striped(const mp_collective_t *collective, bool spans_hosts);
// The number of stripes of the collective of a group with this layout: at least 1, and the same in
// all processes.
uint32_t mp_collective_num_stripes(const mp_collective_t *collective,
                                   const mp_group_layout_t *layout);

typedef struct {
  mp_collective_schedule_t *schedule;
  mp_collective_t collective;  // the same on fewer elements; unused if there is one stripe
} mp_collective_stripe_t;

// Stripe `index` of `count` with its schedule; like mp_collective_schedule_create: all arguments
// are borrowed until the stripe is released. RESOURCE_EXHAUSTED when memory is short.
MP_NODISCARD mp_status_t mp_collective_stripe_create(const mp_collective_t *collective,
                                                     uint32_t group, uint32_t index, uint32_t count,
                                                     const mp_group_layout_t *layout,
                                                     mp_contribution_t *contributions,
                                                     const uint32_t *names,
                                                     mp_collective_stripe_t **out_stripe);
// Frees the stripe with its schedule, but not the payloads. NULL: nothing.
void mp_collective_stripe_release(mp_collective_stripe_t *stripe);

#endif  // MINIPOD_COLLECTIVES_COLLECTIVE_STRIPE_H_
