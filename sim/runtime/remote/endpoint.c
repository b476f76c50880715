// Endpoints: a client's side of its world's router.
//
// An endpoint has no lock of its own. Packets come on the world's progress thread, launches on any
// thread, and neither may miss the other: a packet is queued as early exactly if its client or
// launch has not searched that queue yet. So both act under the router's lock. Sessions take
// packets under it, too (router.c), but are released without it, because that may be the last
// reference.
#include <inttypes.h>

#include "sim/base/alloc.h"
#include "sim/base/containers/list.h"
#include "sim/base/hash.h"
#include "sim/runtime/remote/router_impl.h"

static bool endpoint_is_of_epoch(const mp_packet_t *packet, uint64_t epoch) {
  return mp_packet_epoch(packet) == epoch;
}

static bool endpoint_is_of_launch(const mp_packet_t *packet, uint64_t number) {
  return mp_packet_launch(packet) == number;
}

static void endpoint_cancel_incomplete(mp_session_t *session, void *context) {
  const mp_session_calls_t *calls = ((const mp_endpoint_t *)context)->calls;
  if (calls->is_complete(session)) return;
  calls->poison(session, mp_status_make(MP_CANCELLED, "the client was closed"));
}

static bool endpoint_is_of_earlier_epoch(const mp_packet_t *packet, uint64_t epoch) {
  return mp_packet_epoch(packet) < epoch;
}

static void endpoint_take_early(mp_router_t *router, mp_endpoint_t *endpoint) {
  mp_packet_t *refused;  // of a client that this process could not make
  while ((refused = mp_packet_list_take(&router->early, endpoint_is_of_earlier_epoch,
                                        endpoint->epoch)) != NULL) {
    mp_packet_release(refused);
  }
  for (mp_packet_t *packet; (packet = mp_packet_list_take(&router->early, endpoint_is_of_epoch,
                                                          endpoint->epoch)) != NULL;) {
    mp_router_route(endpoint, packet);
  }
}

mp_status_t mp_endpoint_open(mp_world_t *world, uint64_t number, mp_client_t *client,
                             const mp_session_calls_t *calls, double exit_timeout_s,
                             mp_endpoint_t **out_endpoint) {
  mp_endpoint_t *endpoint = mp_calloc(1, sizeof(*endpoint));
  MP_RETURN_IF_NULL(endpoint);
  endpoint->client = client;
  endpoint->calls = calls;
  endpoint->is_open = true;
  atomic_store(&endpoint->carries, true);
  mp_status_t status = mp_router_get(world, &endpoint->router);
  if (status != NULL) {
    mp_free(endpoint);
    return status;
  }
  mp_router_t *router = endpoint->router;
  mp_lock(&router->lock);
  router->exit_timeout_s = exit_timeout_s;
  MP_ASSERT(number >> (64 - MP_EPOCH_SHIFT) == 0);
  endpoint->epoch = number;
  // Threads that make clients at the same time may get here in any order.
  if (number >= router->num_epochs) router->num_epochs = number + 1;
  endpoint->next = router->endpoints;
  router->endpoints = endpoint;
  endpoint_take_early(router, endpoint);
  mp_unlock(&router->lock);
  *out_endpoint = endpoint;
  return NULL;
}

bool mp_endpoint_carries(const mp_endpoint_t *endpoint) {
  return atomic_load(&endpoint->carries);
}

void mp_endpoint_carry_no_more(mp_endpoint_t *endpoint) {
  if (endpoint == NULL) return;
  atomic_store(&endpoint->carries, false);
  mp_world_work_off(endpoint->router->world, MP_CHANNEL_SESSIONS);
}

void mp_endpoint_close(mp_endpoint_t *endpoint) {
  // Without the lock: only the end of its client writes is_open, and only the end calls this.
  if (endpoint == NULL || !endpoint->is_open) return;
  mp_router_t *router = endpoint->router;
  MP_QUEUE(mp_peers_t) forgotten = {NULL, NULL};
  mp_lock(&router->lock);
  mp_endpoint_t **link = &router->endpoints;
  while (*link != endpoint) {
    MP_ASSERT(*link != NULL);  // an open endpoint is in its router's list
    link = &(*link)->next;
  }
  *link = endpoint->next;
  endpoint->is_open = false;
  for (mp_launch_queue_t *queue; (queue = endpoint->queues) != NULL;) {
    endpoint->queues = queue->next;
    MP_QUEUE_APPEND(&forgotten, &queue->peers, next);
    mp_packet_list_clear(&queue->early);
    mp_free(queue);
  }
  mp_packet_list_clear(&endpoint->early);
  mp_packet_list_clear(&endpoint->inquiries);
  mp_unlock(&router->lock);
  // The endpoint is out of the list, so no other thread can find these sessions any more.
  for (mp_peers_t *peers; (peers = forgotten.first) != NULL;) {
    MP_QUEUE_POP(&forgotten, next);
    endpoint->calls->release(peers->session);  // this may free `peers`
  }
}

void mp_endpoint_release(mp_endpoint_t *endpoint) {
  if (endpoint == NULL) return;
  mp_endpoint_close(endpoint);
  mp_free(endpoint->names);
  mp_free(endpoint);
}

mp_world_t *mp_endpoint_world(const mp_endpoint_t *endpoint) {
  return endpoint->router->world;
}

mp_client_t *mp_endpoint_client(const mp_endpoint_t *endpoint) {
  return endpoint->client;
}

uint64_t mp_endpoint_launch_key(const mp_endpoint_t *endpoint, uint64_t number) {
  MP_ASSERT(number >> MP_EPOCH_SHIFT == 0);
  return endpoint->epoch << MP_EPOCH_SHIFT | number;
}

// ---- Launches ----

static bool endpoint_is_of_earlier_launch(const mp_packet_t *packet, uint64_t number) {
  return mp_packet_launch(packet) < number;
}

static void endpoint_deliver_early(mp_endpoint_t *endpoint, mp_launch_queue_t *queue,
                                   mp_peers_t *peers) {
  const uint64_t number = peers->number;
  mp_packet_t *refused;  // a packet of a launch that this process had no memory for
  while ((refused = mp_packet_list_take(&queue->early, endpoint_is_of_earlier_launch, number)) !=
         NULL) {
    mp_packet_release(refused);
  }
  for (mp_packet_t *packet;
       (packet = mp_packet_list_take(&queue->early, endpoint_is_of_launch, number)) != NULL;) {
    mp_router_hand_over(endpoint, peers, packet);
  }
}

uint64_t mp_endpoint_hash(const mp_endpoint_t *endpoint, uint64_t ids, uint32_t num_devices,
                          const uint32_t *ranks_of, uint64_t *out_returns) {
  mp_router_t *router = endpoint->router;
  uint64_t hash = ids;
  mp_lock(&router->lock);
  for (uint32_t i = 0; i < num_devices; ++i) {
    const uint64_t incarnation = router->incarnations[ranks_of[i]];
    if (incarnation != 0) hash = mp_hash_u64(mp_hash_u64(hash, i), incarnation);
  }
  *out_returns = atomic_load(&router->num_returns);
  mp_unlock(&router->lock);
  return hash;
}

uint64_t mp_endpoint_num_returns(const mp_endpoint_t *endpoint) {
  return atomic_load(&endpoint->router->num_returns);
}

uint64_t mp_endpoint_first_number(mp_endpoint_t *endpoint, uint64_t devices) {
  mp_router_t *router = endpoint->router;
  uint64_t first = 0;
  mp_lock(&router->lock);
  // If another process was restarted after this one, that one is the newcomer, and the list is new
  // to both.
  const bool is_newcomer = router->incarnations[mp_world_rank(router->world)] != 0 &&
                           atomic_load(&router->num_returns) == router->returns_before;
  mp_launch_queue_t *queue =
      is_newcomer && endpoint->is_open ? mp_router_get_queue(endpoint, devices) : NULL;
  if (queue != NULL && queue->num_entered == 0) {
    for (const mp_packet_t *packet = queue->early.first; packet != NULL; packet = packet->next) {
      const uint64_t number = mp_packet_launch(packet);
      if (mp_packet_kind(packet) == MP_PACKET_POISON && number >= first) first = number + 1;
    }
  }
  mp_unlock(&router->lock);
  return first;
}

// Fails a launch if one of its processes was restarted after the launch's list was named: no other
// process launches on the old list. The router's lock is held.
static void endpoint_lose_returned(const mp_endpoint_t *endpoint, const mp_peers_t *peers) {
  const mp_router_t *router = endpoint->router;
  for (uint32_t i = 0; i < peers->num_ranks; ++i) {
    const uint32_t rank = peers->ranks[i];
    if (router->returned_at[rank] <= peers->num_returns) continue;
    mp_status_t why = mp_status_make(
        MP_UNAVAILABLE, "process %" PRIu32 " has ended and was restarted just now", rank);
    endpoint->calls->lose(peers->session, rank, why);
    mp_status_release(why);
  }
}

mp_status_t mp_endpoint_enter(mp_endpoint_t *endpoint, uint64_t devices, uint64_t number,
                              mp_peers_t *peers) {
  mp_router_t *router = endpoint->router;
  mp_status_t status = NULL;
  mp_lock(&router->lock);
  mp_launch_queue_t *queue = endpoint->is_open ? mp_router_get_queue(endpoint, devices) : NULL;
  if (queue == NULL) {
    status = endpoint->is_open ? mp_status_out_of_memory()
                               : mp_status_make(MP_FAILED_PRECONDITION, "the client was closed");
  } else if (number < queue->num_entered) {
    status = mp_status_out_of_memory();  // refused for another device of this process
  } else {
    MP_ASSERT(peers->number == number);
    MP_QUEUE_PUSH(&queue->peers, peers, next);
    (void)endpoint->calls->retain(peers->session);
    queue->num_entered = number + 1;
    // Under the same lock as the counting of the launch, so that later packets come after these.
    endpoint_deliver_early(endpoint, queue, peers);
    for (uint32_t rank = 0; rank < mp_world_size(router->world); ++rank) {
      if (router->losses[rank] != NULL) {
        endpoint->calls->lose(peers->session, rank, router->losses[rank]);
      }
    }
    endpoint_lose_returned(endpoint, peers);
  }
  mp_unlock(&router->lock);
  return status;
}

void mp_endpoint_refuse(mp_endpoint_t *endpoint, uint64_t devices, uint64_t number,
                        uint32_t num_ranks, const uint32_t *ranks, mp_status_code_t code) {
  const mp_envelope_t envelope = {
      .channel = MP_CHANNEL_SESSIONS,
      .words = {MP_PACKET_POISON, (uint32_t)code},
      .key = {devices, mp_endpoint_launch_key(endpoint, number)},
  };
  for (uint32_t i = 0; i < num_ranks; ++i) {
    mp_status_ignore(mp_world_send(endpoint->router->world, ranks[i], &envelope, NULL));
  }
}

static bool endpoint_unlink(mp_launch_queue_t *queue, const mp_peers_t *peers) {
  mp_peers_t *previous = NULL;
  mp_peers_t *at = queue->peers.first;
  for (; at != NULL && at != peers; at = at->next) previous = at;
  if (at == NULL) return false;
  MP_QUEUE_REMOVE(&queue->peers, previous, at, next);
  return true;
}

void mp_endpoint_leave(mp_endpoint_t *endpoint, mp_peers_t *peers) {
  bool was_there = false;
  mp_lock(&endpoint->router->lock);
  for (mp_launch_queue_t *queue = endpoint->queues; queue != NULL && !was_there;
       queue = queue->next) {
    was_there = endpoint_unlink(queue, peers);
  }
  mp_unlock(&endpoint->router->lock);
  // Either this function or the close removes it from the list, and then releases the list's
  // reference.
  if (was_there) endpoint->calls->release(peers->session);
}

void mp_endpoint_visit(mp_endpoint_t *endpoint, void (*visit)(mp_session_t *session, void *context),
                       void *context) {
  // The lock keeps the sessions alive: each is in a list, which has a reference.
  mp_lock(&endpoint->router->lock);
  mp_router_visit(endpoint, visit, context);
  mp_unlock(&endpoint->router->lock);
}

bool mp_endpoint_linger(mp_endpoint_t *endpoint) {
  mp_lock(&endpoint->router->lock);
  mp_router_visit(endpoint, endpoint_cancel_incomplete, endpoint);
  // Decided under one lock, because the watch ends the client as soon as it finds a lingering
  // endpoint with nothing in flight: so either the watch ends it or the caller, and never both.
  endpoint->is_lingering = mp_router_is_moving(endpoint);
  bool must_linger = endpoint->is_lingering;
  mp_unlock(&endpoint->router->lock);
  return must_linger;
}

bool mp_endpoint_is_spent(mp_endpoint_t *endpoint) {
  mp_lock(&endpoint->router->lock);
  bool is_spent = endpoint->is_lingering && !mp_router_is_moving(endpoint);
  mp_unlock(&endpoint->router->lock);
  return is_spent;
}
