// Stripes: a large collective between hosts as several smaller ones.
//
// An all_reduce treats each element by itself, so it may be done for one range of the elements
// after the other without changing a bit. Two things are won where its members are on several
// hosts: while one stripe is on its way the next one is packed, and what is packed, sent, received
// and combined together still lies in the caches. Other collectives are one stripe.
#ifndef MINIPOD_COLLECTIVES_COLLECTIVE_STRIPE_H_
#define MINIPOD_COLLECTIVES_COLLECTIVE_STRIPE_H_

#include "collectives/collective_schedule.h"

enum {
  // What goes from one process to another in one phase of a stripe. With less, the cost of messages
  // grows; with more, a stripe does not stay in a core's cache (`tools/bench/psum_hosts.py`).
  MP_STRIPE_BYTES = 256 << 10,
};

// Whether a large collective of this kind is cut into stripes, on one host or several.
bool mp_collective_is_striped(const mp_collective_t *collective, bool spans_hosts);
// Into how many stripes the collective of a group with this layout is cut: at least 1, and the same
// number in all processes.
uint32_t mp_collective_num_stripes(const mp_collective_t *collective,
                                   const mp_group_layout_t *layout);

typedef struct {
  mp_collective_schedule_t *schedule;
  mp_collective_t collective;  // the same on fewer elements; unused where there is one stripe
} mp_collective_stripe_t;

// Stripe `index` of `count` with its schedule, for the rest as mp_collective_schedule_create: all
// that is given is borrowed until the stripe is released. RESOURCE_EXHAUSTED when memory is short.
MP_NODISCARD mp_status_t mp_collective_stripe_create(const mp_collective_t *collective,
                                                     uint32_t group, uint32_t index, uint32_t count,
                                                     const mp_group_layout_t *layout,
                                                     mp_contribution_t *contributions,
                                                     const uint32_t *names,
                                                     mp_collective_stripe_t **out_stripe);
// Frees the stripe with its schedule, but not the payloads. NULL: nothing.
void mp_collective_stripe_release(mp_collective_stripe_t *stripe);

#endif  // MINIPOD_COLLECTIVES_COLLECTIVE_STRIPE_H_
