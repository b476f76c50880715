// Which processes launches are meant for, according to the user's coordinator.
//
// A process may die and be restarted between two steps of a program, or within one, and the world
// may report that to each of the others before, during or after its launch. All of them share only
// the coordinator's report at the beginning of the step. So if a launch was meant for a process
// that has been replaced, it fails at once in all processes, although the world has a process of
// that rank: the newcomer does not know of this step and never joins it.
#include <inttypes.h>

#include "sim/base/alloc.h"
#include "sim/runtime/remote/router_impl.h"

static bool meant_was_replaced(const mp_rank_names_t *names, uint64_t incarnation) {
  for (uint32_t i = 0; i < MP_KEPT_INCARNATIONS && i < names->num_replaced; ++i) {
    if (names->replaced[i] == incarnation) return true;
  }
  return false;
}

static mp_status_t meant_error(uint32_t rank) {
  return mp_status_make(MP_UNAVAILABLE,
                        "process %" PRIu32 " has ended, and a restarted one has replaced it", rank);
}

// Fails the launches in flight that were meant for the process that was just replaced.
static void meant_fail_all(const mp_endpoint_t *endpoint, uint32_t rank) {
  mp_lock_assert_held(&endpoint->router->lock);
  mp_status_t why = meant_error(rank);
  for (mp_launch_queue_t *queue = endpoint->queues; queue != NULL; queue = queue->next) {
    for (mp_peers_t *peers = queue->peers.first; peers != NULL; peers = peers->next) {
      if (peers->meant == MP_MEANT_KNOWN) endpoint->calls->replace(peers->session, rank, why);
    }
  }
  mp_status_release(why);
}

void mp_endpoint_note_incarnations(mp_endpoint_t *endpoint, const uint64_t *incarnations) {
  mp_router_t *router = endpoint->router;
  const uint32_t size = mp_world_size(router->world);
  mp_lock(&router->lock);
  if (endpoint->names == NULL) endpoint->names = mp_calloc(size, sizeof(*endpoint->names));
  // Without memory launches wait for newcomers up to the time limit, as without a coordinator.
  for (uint32_t rank = 0; rank < size && endpoint->names != NULL; ++rank) {
    mp_rank_names_t *names = &endpoint->names[rank];
    const uint64_t now = incarnations[rank];
    if (now == 0 || now == names->latest || meant_was_replaced(names, now)) continue;
    if (names->latest != 0) {
      names->replaced[names->num_replaced++ % MP_KEPT_INCARNATIONS] = names->latest;
      meant_fail_all(endpoint, rank);
    }
    names->latest = now;
  }
  mp_unlock(&router->lock);
}

void mp_endpoint_mean(mp_endpoint_t *endpoint, mp_peers_t *peers, size_t count, const int *ranks,
                      const int64_t *incarnations) {
  mp_lock(&endpoint->router->lock);
  const uint32_t size = mp_world_size(endpoint->router->world);
  bool is_known = endpoint->names != NULL;
  for (size_t i = 0; i < count && endpoint->names != NULL; ++i) {
    if (ranks[i] < 0 || (uint32_t)ranks[i] >= size) continue;
    const mp_rank_names_t *names = &endpoint->names[ranks[i]];
    const uint64_t meant = (uint64_t)incarnations[i];
    is_known = is_known && meant == names->latest;
    if (meant == names->latest || !meant_was_replaced(names, meant)) continue;
    mp_status_t why = meant_error((uint32_t)ranks[i]);
    endpoint->calls->replace(peers->session, (uint32_t)ranks[i], why);
    mp_status_release(why);
  }
  peers->meant = is_known ? MP_MEANT_KNOWN : MP_MEANT_UNKNOWN;
  mp_unlock(&endpoint->router->lock);
}
