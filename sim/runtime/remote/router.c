// Routers: where packets go, what happens when a process is lost, and the end of this process.
#include "sim/runtime/remote/router_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "sim/base/alloc.h"
#include "sim/base/os/clock.h"
#include "sim/base/os/process.h"

// An inquiry that comes while so many wait is dropped: its sender asks again.
enum { MP_MAX_INQUIRIES = 4096 };

// Routers live as long as the process, because their worlds do; only tests end worlds earlier
// (mp_router_forget). So a thread that has found a router under the lock may use it without. The
// lock protects only the list: it is never held while a router's own lock is taken.
static mp_lock_t g_routers_lock = MP_LOCK_INITIALIZER(MP_LOCK_ROUTERS);
static mp_router_t *g_routers;
static bool g_has_exit_handler;

// ---- Launch queues; the router's lock is held ----

mp_launch_queue_t *mp_router_find_queue(const mp_endpoint_t *endpoint, uint64_t devices) {
  mp_launch_queue_t *queue = endpoint->queues;
  while (queue != NULL && queue->devices != devices) queue = queue->next;
  return queue;
}

static bool router_is_of_devices(const mp_packet_t *packet, uint64_t devices) {
  return packet->envelope.key[0] == devices;
}

mp_launch_queue_t *mp_router_get_queue(mp_endpoint_t *endpoint, uint64_t devices) {
  mp_lock_assert_held(&endpoint->router->lock);
  mp_launch_queue_t *queue = mp_router_find_queue(endpoint, devices);
  if (queue != NULL) return queue;
  queue = mp_calloc(1, sizeof(*queue));
  if (queue == NULL) return NULL;
  queue->devices = devices;
  queue->next = endpoint->queues;
  endpoint->queues = queue;
  for (mp_packet_t *packet;
       (packet = mp_packet_list_take(&endpoint->early, router_is_of_devices, devices)) != NULL;) {
    mp_packet_list_push(&queue->early, packet);
  }
  return queue;
}

static mp_peers_t *router_find_peers(const mp_launch_queue_t *queue, uint64_t number) {
  mp_peers_t *peers = queue->peers.first;
  while (peers != NULL && peers->number < number) peers = peers->next;
  return peers == NULL || peers->number != number ? NULL : peers;
}

mp_peers_t *mp_router_find_peers(const mp_endpoint_t *endpoint, uint64_t devices, uint64_t number) {
  mp_lock_assert_held(&endpoint->router->lock);
  const mp_launch_queue_t *queue = mp_router_find_queue(endpoint, devices);
  return queue == NULL ? NULL : router_find_peers(queue, number);
}

typedef struct {
  const mp_endpoint_t *endpoint;
  mp_strbuf_t *text;
} router_answer_t;

static void router_add_wait(mp_session_t *session, void *context) {
  const router_answer_t *answer = context;
  answer->endpoint->calls->describe_wait(session, answer->text);
}

// Answers a process that asks about a launch that this process has not made yet, and says where it
// waits meanwhile. Takes the packet.
static void router_answer_early(mp_endpoint_t *endpoint, uint64_t num_entered,
                                mp_packet_t *packet) {
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  if (num_entered == 0) {
    mp_strbuf_puts(&text, "it has launched nothing on these devices yet");
  } else {
    mp_strbuf_printf(&text, "its last launch on these devices was launch %" PRIu64,
                     num_entered - 1);
  }
  mp_router_visit(endpoint, router_add_wait, &(router_answer_t){endpoint, &text});
  mp_envelope_t envelope = packet->envelope;
  envelope.words[0] = MP_PACKET_ANSWER;
  mp_payload_t *payload = NULL;
  mp_status_t status = mp_strbuf_status(&text);
  if (status == NULL) status = mp_payload_create(endpoint->router->world, text.size, &payload);
  if (status == NULL) {
    memcpy(payload->data, mp_strbuf_text(&text), text.size);
    status = mp_world_send(endpoint->router->world, packet->from, &envelope, payload);
    mp_payload_release(payload);
  }
  mp_strbuf_deinit(&text);
  mp_status_ignore(status);
  mp_packet_release(packet);
}

void mp_router_hand_over(mp_endpoint_t *endpoint, mp_peers_t *peers, mp_packet_t *packet) {
  mp_lock_assert_held(&endpoint->router->lock);
  if (!endpoint->calls->deliver(peers->session, packet)) return;
  (void)endpoint->calls->retain(peers->session);
  MP_QUEUE_PUSH(&endpoint->router->carried, peers, next_carried);
}

// Keeps an inquiry for mp_endpoint_take_inquiry, and wakes its reader.
static void router_keep_inquiry(mp_endpoint_t *endpoint, mp_packet_t *packet) {
  mp_lock_assert_held(&endpoint->router->lock);
  if (endpoint->num_inquiries == MP_MAX_INQUIRIES) {
    mp_packet_release(packet);
    return;
  }
  endpoint->num_inquiries += 1;
  mp_packet_list_push(&endpoint->inquiries, packet);
  if (endpoint->wake != NULL) endpoint->wake(endpoint->wake_context);
}

void mp_router_route(mp_endpoint_t *endpoint, mp_packet_t *packet) {
  // The lock is held while the session takes the packet. So packets of one launch arrive in order,
  // although the launching thread delivers the early ones, and a closed endpoint gets no more
  // packets.
  mp_lock_assert_held(&endpoint->router->lock);
  if (mp_packet_kind(packet) >= MP_PACKET_KINDS) {
    router_keep_inquiry(endpoint, packet);
    return;
  }
  mp_launch_queue_t *queue = mp_router_find_queue(endpoint, packet->envelope.key[0]);
  const uint64_t num_entered = queue == NULL ? 0 : queue->num_entered;
  const uint64_t number = mp_packet_launch(packet);
  if (mp_packet_kind(packet) == MP_PACKET_ASK && number >= num_entered) {
    // Sends do not wait, so this may be done under the lock.
    router_answer_early(endpoint, num_entered, packet);
  } else if (number >= num_entered) {
    mp_packet_list_push(queue == NULL ? &endpoint->early : &queue->early, packet);
  } else {
    mp_peers_t *peers = router_find_peers(queue, number);
    if (peers != NULL) {
      mp_router_hand_over(endpoint, peers, packet);
    } else {
      mp_packet_release(packet);  // the launch is over here
    }
  }
}

static mp_endpoint_t *router_find_endpoint(const mp_router_t *router, uint64_t epoch) {
  mp_endpoint_t *endpoint = router->endpoints;
  while (endpoint != NULL && endpoint->epoch != epoch) endpoint = endpoint->next;
  return endpoint;
}

// ---- The world's handler ----

static void router_deliver(void *context, mp_packet_t *packet) {
  mp_router_t *router = context;
  // On the world's progress thread; the lock excludes threads that make clients and launch: a
  // packet must not be queued as early just after its client or launch has searched that queue.
  mp_lock(&router->lock);
  mp_endpoint_t *endpoint = router_find_endpoint(router, mp_packet_epoch(packet));
  if (endpoint != NULL) {
    mp_router_route(endpoint, packet);
  } else if (mp_packet_epoch(packet) >= router->num_epochs) {
    mp_packet_list_push(&router->early, packet);
  } else {
    mp_packet_release(packet);
  }
  mp_unlock(&router->lock);
}

static bool router_afterwards(void *context, mp_followup_t *followup) {
  mp_router_t *router = context;
  mp_lock(&router->lock);
  mp_peers_t *peers = router->carried.first;
  if (peers != NULL) MP_QUEUE_POP(&router->carried, next_carried);
  mp_unlock(&router->lock);
  if (peers == NULL) return false;
  const mp_session_calls_t *calls = peers->endpoint->calls;
  calls->carry_on(peers->session, followup);
  calls->release(peers->session);  // this may free `peers`
  return true;
}

static void router_on_lost(void *context, uint32_t rank, mp_status_t why) {
  mp_router_t *router = context;
  mp_lock(&router->lock);
  MP_ASSERT(rank < mp_world_size(router->world));
  // Kept for launches that enter later (endpoint.c). Recorded and reported under one lock, so that
  // a launch that enters meanwhile learns of the loss either here or there.
  if (router->losses[rank] == NULL) router->losses[rank] = mp_status_retain(why);
  for (mp_endpoint_t *endpoint = router->endpoints; endpoint != NULL; endpoint = endpoint->next) {
    for (mp_launch_queue_t *queue = endpoint->queues; queue != NULL; queue = queue->next) {
      mp_peers_t *next;
      for (mp_peers_t *peers = queue->peers.first; peers != NULL; peers = next) {
        next = peers->next;
        endpoint->calls->lose(peers->session, rank, why);
      }
    }
  }
  mp_unlock(&router->lock);
}

// Packets that the predecessor sent for later launches are dropped: they are not from this process.
static void router_on_returned(void *context, uint32_t rank, uint64_t incarnation) {
  mp_router_t *router = context;
  mp_lock(&router->lock);
  mp_packet_list_drop_from(&router->early, rank);
  for (mp_endpoint_t *endpoint = router->endpoints; endpoint != NULL; endpoint = endpoint->next) {
    mp_packet_list_drop_from(&endpoint->early, rank);
    for (mp_launch_queue_t *queue = endpoint->queues; queue != NULL; queue = queue->next) {
      mp_packet_list_drop_from(&queue->early, rank);
    }
  }
  mp_status_release(router->losses[rank]);
  router->losses[rank] = NULL;
  router->incarnations[rank] = incarnation;
  router->returned_at[rank] = atomic_load(&router->num_returns) + 1;
  atomic_store(&router->num_returns, router->returned_at[rank]);
  mp_unlock(&router->lock);
}

// ---- Launches in flight; the router's lock is held ----

void mp_router_visit(mp_endpoint_t *endpoint, void (*visit)(mp_session_t *session, void *context),
                     void *context) {
  mp_lock_assert_held(&endpoint->router->lock);
  for (mp_launch_queue_t *queue = endpoint->queues; queue != NULL; queue = queue->next) {
    mp_peers_t *next;
    for (mp_peers_t *peers = queue->peers.first; peers != NULL; peers = next) {
      next = peers->next;
      visit(peers->session, context);
    }
  }
}

typedef struct {
  const mp_session_calls_t *calls;
  bool is_moving;
} router_search_t;

static void router_find_moving(mp_session_t *session, void *context) {
  router_search_t *search = context;
  search->is_moving |= search->calls->is_moving(session);
}

bool mp_router_is_moving(mp_endpoint_t *endpoint) {
  router_search_t search = {.calls = endpoint->calls};
  mp_router_visit(endpoint, router_find_moving, &search);
  return search.is_moving;
}

static void router_cancel(mp_session_t *session, void *context) {
  const mp_endpoint_t *endpoint = context;
  endpoint->calls->poison(session, mp_status_make(MP_CANCELLED, "the client was closed"));
}

static bool router_has_moving_endpoints(mp_router_t *router) {
  bool found = false;
  mp_lock(&router->lock);
  for (mp_endpoint_t *endpoint = router->endpoints; endpoint != NULL; endpoint = endpoint->next)
    found |= mp_router_is_moving(endpoint);
  mp_unlock(&router->lock);
  return found;
}

void mp_router_finish_all(void) {
  // Without the list's lock: no client is made any more, and a thread that the exit has interrupted
  // may hold the lock for ever.
  for (mp_router_t *router = g_routers; router != NULL; router = router->next) {
    // In a forked child the parent's launches do not move, and its locks may be held for ever.
    if (router->generation != mp_process_generation()) continue;
    const double deadline = mp_clock_seconds() + router->exit_timeout_s;
    while (router_has_moving_endpoints(router) && mp_clock_seconds() < deadline) {
      // Polls, because this happens once per process, and workers then need not know of the wait.
      nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
  }
}

// An exit handler: it runs before the world's own exit handler, which was registered earlier and
// sends the goodbye.
static void router_on_exit_status(int status, void *context) {
  (void)context;
  if (status == 0) mp_router_finish_all();
}

// ---- Routers ----

static mp_status_t router_find_or_make(mp_world_t *world, mp_router_t **out_router) {
  mp_lock_assert_held(&g_routers_lock);
  for (mp_router_t *router = g_routers; router != NULL; router = router->next) {
    if (router->world == world) {
      *out_router = router;
      return NULL;
    }
  }
  const size_t size = mp_world_size(world);
  mp_router_t *router =
      mp_calloc(1, sizeof(*router) + size * (sizeof(mp_status_t) + 2 * sizeof(uint64_t)));
  MP_RETURN_IF_NULL(router);
  router->world = world;
  router->generation = mp_process_generation();
  router->incarnations = (uint64_t *)(router + 1);
  router->returned_at = router->incarnations + size;
  router->losses = (mp_status_t *)(router->returned_at + size);
  mp_lock_init(&router->lock, MP_LOCK_ROUTER);
  router->next = g_routers;
  g_routers = router;
  if (!g_has_exit_handler) g_has_exit_handler = on_exit(router_on_exit_status, NULL) == 0;
  mp_world_attach(world, MP_CHANNEL_SESSIONS,
                  &(mp_handler_t){.deliver = router_deliver,
                                  .lost = router_on_lost,
                                  .returned = router_on_returned,
                                  .afterwards = router_afterwards,
                                  .context = router});
  router->returns_before = atomic_load(&router->num_returns);
  *out_router = router;
  return NULL;
}

mp_status_t mp_router_get(mp_world_t *world, mp_router_t **out_router) {
  // Threads may make the first clients of a world at the same time: the lock makes sure of one
  // router.
  mp_lock(&g_routers_lock);
  mp_status_t status = router_find_or_make(world, out_router);
  mp_unlock(&g_routers_lock);
  return status;
}

// Cancels the launches of clients that linger, and waits until these clients have ended.
static void router_clear_endpoints(mp_router_t *router) {
  for (bool is_empty = false; !is_empty;) {
    mp_lock(&router->lock);
    for (mp_endpoint_t *endpoint = router->endpoints; endpoint != NULL; endpoint = endpoint->next) {
      mp_router_visit(endpoint, router_cancel, endpoint);
    }
    is_empty = router->endpoints == NULL;
    mp_unlock(&router->lock);
    // Polls without the lock, because ending clients need it to leave the list.
    if (!is_empty) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  }
}

void mp_router_forget(mp_world_t *world) {
  // First stops incoming packets: this waits until a current delivery, and the work that follows
  // from it, is over.
  mp_world_detach(world, MP_CHANNEL_SESSIONS);
  mp_lock(&g_routers_lock);
  mp_router_t **link = &g_routers;
  while (*link != NULL && (*link)->world != world) link = &(*link)->next;
  mp_router_t *router = *link;
  if (router != NULL) *link = router->next;
  mp_unlock(&g_routers_lock);
  if (router == NULL) return;
  for (bool did = true; did;) {
    mp_followup_t followup = {0};
    did = router_afterwards(router, &followup);
    if (followup.run != NULL) followup.run(followup.context);
  }
  router_clear_endpoints(router);
  mp_packet_list_clear(&router->early);
  for (uint32_t i = 0; i < mp_world_size(world); ++i) mp_status_release(router->losses[i]);
  mp_lock_deinit(&router->lock);
  mp_free(router);
}
