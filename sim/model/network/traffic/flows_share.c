#include "sim/model/network/traffic/flows_share.h"

#include "sim/base/assert.h"
#include "sim/base/hash.h"

// No more than so many are remembered: 24 MiB of them.
enum { FORMERS_MOST = 1 << 20 };

mp_status_t mp_flows_share_init(mp_flows_share_t *share, const mp_network_t *network) {
  const uint32_t count = mp_network_num_links(network);
  *share =
      (mp_flows_share_t){.network = network, .used_of = mp_calloc(count, sizeof(*share->used_of))};
  return share->used_of == NULL ? mp_status_out_of_memory() : NULL;
}

mp_status_t mp_flows_share_yield(mp_flows_share_t *share) {
  const uint32_t count = mp_network_num_links(share->network);
  if (share->bandwidths != NULL) return NULL;
  share->bandwidths = mp_calloc(count, sizeof(*share->bandwidths));
  MP_RETURN_IF_NULL(share->bandwidths);
  for (uint32_t i = 0; i < count; ++i) {
    share->bandwidths[i] = mp_network_link(share->network, i)->bandwidth;
  }
  return NULL;
}

void mp_flows_share_deinit(mp_flows_share_t *share) {
  mp_free(share->bandwidths);
  mp_free(share->used_of);
  MP_ARRAY_FREE(&share->used);
  MP_ARRAY_FREE(&share->user_of);
  MP_ARRAY_FREE(&share->limits);
  MP_ARRAY_FREE(&share->formers);
  MP_HASH_MAP_FREE(&share->rounds);
}

mp_status_t mp_flows_share_reserve(mp_flows_share_t *share, size_t num_uses) {
  if (num_uses > UINT32_MAX) return mp_status_out_of_memory();
  share->used.count = share->user_of.count = share->limits.count = 0;
  MP_RETURN_IF_ERROR(MP_ARRAY_RESERVE(NULL, &share->used, (uint32_t)num_uses));
  MP_RETURN_IF_ERROR(MP_ARRAY_RESERVE(NULL, &share->user_of, (uint32_t)num_uses));
  return MP_ARRAY_RESERVE(NULL, &share->limits, (uint32_t)num_uses);
}

// ---- The heap of limits: the least rate first, of equal ones the link used first ----

static bool flows_share_is_before(mp_flows_limit_t a, mp_flows_limit_t b) {
  return a.rate < b.rate || (a.rate == b.rate && a.used < b.used);
}

// Puts a limit where place `at`, whose content is given up, leaves room below.
static void flows_share_sink(mp_flows_share_t *share, uint32_t at, mp_flows_limit_t limit) {
  mp_flows_limit_t *limits = share->limits.items;
  for (uint32_t child; (child = 2 * at + 1) < share->limits.count; at = child) {
    if (child + 1 < share->limits.count &&
        flows_share_is_before(limits[child + 1], limits[child])) {
      ++child;
    }
    if (!flows_share_is_before(limits[child], limit)) break;
    limits[at] = limits[child];
  }
  limits[at] = limit;
}

static void flows_share_drop_first(mp_flows_share_t *share) {
  MP_ASSERT(share->limits.count != 0);
  const uint32_t last = --share->limits.count;
  if (last != 0) flows_share_sink(share, 0, share->limits.items[last]);
}

// ---- Filling ----

static void flows_share_use(mp_flows_share_t *share, const mp_network_use_t *use) {
  uint32_t *slot = &share->used_of[use->link];
  if (*slot == 0) {
    MP_ASSERT(share->used.count < share->used.capacity);
    const double bandwidth = share->bandwidths != NULL
                                 ? share->bandwidths[use->link]
                                 : mp_network_link(share->network, use->link)->bandwidth;
    share->used.items[share->used.count++] =
        (mp_flows_used_t){.link = use->link, .bandwidth = bandwidth};
    *slot = share->used.count;
  }
  mp_flows_used_t *used = &share->used.items[*slot - 1];
  used->times += use->times;
  ++used->num_growing;
}

// Fills `used`, `user_of` and `limits`.
static void flows_share_collect(mp_flows_share_t *share, uint32_t count,
                                mp_flows_user_t *const *users) {
  share->used.count = 0;
  for (uint32_t i = 0; i < count; ++i) {
    users[i]->rate = -1;
    for (uint32_t u = 0; u < users[i]->num_uses; ++u) flows_share_use(share, &users[i]->uses[u]);
  }
  uint32_t first = 0;
  share->limits.count = share->used.count;
  for (uint32_t i = 0; i < share->used.count; ++i) {
    mp_flows_used_t *used = &share->used.items[i];
    used->first_user = first;
    first += used->num_growing;
  }
  for (uint32_t i = 0; i < count; ++i) {
    for (uint32_t u = 0; u < users[i]->num_uses; ++u) {
      mp_flows_used_t *used = &share->used.items[share->used_of[users[i]->uses[u].link] - 1];
      MP_ASSERT(used->num_users < used->num_growing);
      share->user_of.items[used->first_user + used->num_users++] = i;
    }
  }
  for (uint32_t i = share->used.count; i-- > 0;) {
    const mp_flows_used_t *used = &share->used.items[i];
    flows_share_sink(share, i,
                     (mp_flows_limit_t){mp_network_flow_rate(used->bandwidth, used->times), i});
  }
}

// The user grows no more: its links have less left for the others.
static void flows_share_decide(mp_flows_share_t *share, mp_flows_user_t *user, double rate) {
  user->rate = rate;
  for (uint32_t u = 0; u < user->num_uses; ++u) {
    mp_flows_used_t *used = &share->used.items[share->used_of[user->uses[u].link] - 1];
    used->bandwidth -= rate * user->uses[u].times;
    used->times -= user->uses[u].times;
    MP_ASSERT(used->num_growing != 0);
    --used->num_growing;
  }
}

void mp_flows_share_compute(mp_flows_share_t *share, uint32_t count,
                            mp_flows_user_t *const *users) {
  flows_share_collect(share, count, users);
  double reached = 0;
  while (share->limits.count != 0) {
    const mp_flows_limit_t limit = share->limits.items[0];
    const mp_flows_used_t *used = &share->used.items[limit.used];
    if (used->num_growing == 0) {
      flows_share_drop_first(share);
      continue;
    }
    // Rounding must not let a limit fall below what all have reached already.
    double rate = mp_network_flow_rate(used->bandwidth, used->times);
    if (!(rate > reached)) rate = reached;
    if (rate > limit.rate) {
      flows_share_sink(share, 0, (mp_flows_limit_t){rate, limit.used});
      continue;
    }
    MP_ASSERT(limit.rate >= reached);  // rates grow together
    reached = limit.rate;
    for (uint32_t i = 0; i < used->num_users; ++i) {
      mp_flows_user_t *user = users[share->user_of.items[used->first_user + i]];
      if (user->rate < 0) flows_share_decide(share, user, reached);
    }
  }
  for (uint32_t i = 0; i < share->used.count; ++i) share->used_of[share->used.items[i].link] = 0;
}

// ---- Memory ----

static uint64_t flows_share_hash(uint32_t count, mp_flows_user_t *const *users) {
  uint64_t hash = MP_HASH_START;
  for (uint32_t i = 0; i < count; ++i) hash = mp_hash_u64(hash, mp_hash_pointer(users[i]->uses));
  return hash;
}

static bool flows_share_is(const mp_flows_share_t *share, const mp_flows_round_t *round,
                           uint32_t count, mp_flows_user_t *const *users) {
  if (round->count != count) return false;
  for (uint32_t i = 0; i < count; ++i) {
    const mp_flows_former_t *former = &share->formers.items[round->first + i];
    if (former->uses != users[i]->uses || former->num_uses != users[i]->num_uses) return false;
  }
  return true;
}

// Forgetting is no error.
static void flows_share_remember(mp_flows_share_t *share, uint64_t hash, uint32_t count,
                                 mp_flows_user_t *const *users) {
  const mp_flows_round_t round = {hash, share->formers.count, count};
  if (count > FORMERS_MOST - share->formers.count) return;
  mp_status_t status = MP_ARRAY_RESERVE(NULL, &share->formers, count);
  if (status == NULL) status = MP_HASH_MAP_ADD(NULL, &share->rounds, &round);
  for (uint32_t i = 0; i < count && status == NULL; ++i) {
    share->formers.items[share->formers.count++] =
        (mp_flows_former_t){users[i]->uses, users[i]->num_uses, users[i]->rate};
  }
  mp_status_release(status);
}

void mp_flows_share_recall(mp_flows_share_t *share, uint32_t count, mp_flows_user_t *const *users) {
  const uint64_t hash = flows_share_hash(count, users);
  const mp_flows_round_t *round;
  MP_HASH_MAP_EACH(&share->rounds, hash, round) {
    if (!flows_share_is(share, round, count, users)) continue;
    for (uint32_t i = 0; i < count; ++i)
      users[i]->rate = share->formers.items[round->first + i].rate;
    return;
  }
  mp_flows_share_compute(share, count, users);
  flows_share_remember(share, hash, count, users);
}
