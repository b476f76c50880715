// Max-min fair rates by progressive filling.
//
// The work is that of all uses together, times the logarithm of the number of links in use.
#ifndef MINIPOD_SIM_MODEL_NETWORK_TRAFFIC_FLOWS_SHARE_H_
#define MINIPOD_SIM_MODEL_NETWORK_TRAFFIC_FLOWS_SHARE_H_

#include "sim/base/containers/array.h"
#include "sim/base/containers/hash_map.h"
#include "sim/model/network/network.h"

// The users of links. `previous_rate` is the caller's.
typedef struct {
  const mp_network_use_t *uses;
  uint32_t num_uses;  // not 0
  double rate, previous_rate;
} mp_flows_user_t;

// A link that is in use.
typedef struct {
  uint32_t link;
  uint32_t first_user, num_users;  // in user_of
  uint32_t num_growing;            // users whose rate is not decided yet
  double bandwidth;                // left by those whose rate is decided
  double times;                    // of those that still grow
} mp_flows_used_t;

// The rate at which a link is full; it only grows while others' rates are decided.
typedef struct {
  double rate;
  uint32_t used;
} mp_flows_limit_t;

// A user that shared before, and its rate.
typedef struct {
  const mp_network_use_t *uses;
  uint32_t num_uses;
  double rate;
} mp_flows_former_t;

// The users that shared at a time, in their order: so many, from `first` on.
typedef struct {
  uint64_t hash;
  uint32_t first, count;
} mp_flows_round_t;

typedef struct {
  const mp_network_t *network;
  double *bandwidths;  // [links] what others leave of each; NULL: there are no others
  uint32_t *used_of;   // [links] index in `used` + 1; 0 between computations
  MP_ARRAY(mp_flows_used_t) used;
  MP_ARRAY(uint32_t) user_of;
  MP_ARRAY(mp_flows_limit_t) limits;  // a heap, the least rate first
  MP_ARRAY(mp_flows_former_t) formers;
  MP_HASH_MAP(mp_flows_round_t) rounds;
} mp_flows_share_t;

MP_NODISCARD mp_status_t mp_flows_share_init(mp_flows_share_t *share, const mp_network_t *network);
void mp_flows_share_deinit(mp_flows_share_t *share);

// Gives the share bandwidths of its own, those of the links, for the caller to change. The second
// time nothing happens.
MP_NODISCARD mp_status_t mp_flows_share_yield(mp_flows_share_t *share);
// Makes room for so many uses in all, so that computing cannot fail. RESOURCE_EXHAUSTED for more
// than there can be.
MP_NODISCARD mp_status_t mp_flows_share_reserve(mp_flows_share_t *share, size_t num_uses);
// Sets the rate of each user. There is room for all their uses.
void mp_flows_share_compute(mp_flows_share_t *share, uint32_t count, mp_flows_user_t *const *users);
// The same from memory if the same users have shared before, in the same order: the rounds of a
// loop have the same traffic. Only while `bandwidths` are what they were at the beginning.
void mp_flows_share_recall(mp_flows_share_t *share, uint32_t count, mp_flows_user_t *const *users);

#endif  // MINIPOD_SIM_MODEL_NETWORK_TRAFFIC_FLOWS_SHARE_H_
