// Ports: a client's side of its world's hub.
#include "sim/base/alloc.h"
#include "sim/runtime/hub_impl.h"

static bool is_of_epoch(const mp_packet_t *packet, uint64_t epoch) {
  return mp_packet_epoch(packet) == epoch;
}

static bool is_of_launch(const mp_packet_t *packet, uint64_t number) {
  return mp_packet_launch(packet) == number;
}

static void cancel_incomplete(mp_session_t *session, void *context) {
  (void)context;
  if (mp_session_is_complete(session)) return;
  mp_session_poison(session, mp_status_make(MP_CANCELLED, "the client was closed"));
}

static void take_early(mp_hub_t *hub, mp_port_t *port) {
  for (mp_packet_t *packet;
       (packet = mp_mail_take(&hub->early, is_of_epoch, port->epoch)) != NULL;) {
    mp_hub_route(port, packet);
  }
}

mp_status_t mp_port_open(mp_world_t *world, mp_client_t *client, double exit_timeout_s,
                         mp_port_t **out_port) {
  mp_port_t *port = mp_calloc(1, sizeof(*port));
  MP_RETURN_IF_NULL(port);
  port->client = client;
  port->is_open = true;
  mp_status_t status = mp_hub_get(world, &port->hub);
  if (status != NULL) {
    mp_free(port);
    return status;
  }
  mp_hub_t *hub = port->hub;
  pthread_mutex_lock(&hub->lock);
  hub->exit_timeout_s = exit_timeout_s;
  port->epoch = hub->num_epochs++;
  port->next = hub->ports;
  hub->ports = port;
  take_early(hub, port);
  pthread_mutex_unlock(&hub->lock);
  *out_port = port;
  return NULL;
}

void mp_port_close(mp_port_t *port) {
  if (port == NULL || !port->is_open) return;
  mp_hub_t *hub = port->hub;
  mp_session_t *forgotten = NULL;
  pthread_mutex_lock(&hub->lock);
  mp_port_t **link = &hub->ports;
  while (*link != port) link = &(*link)->next;
  *link = port->next;
  port->is_open = false;
  for (mp_lane_t *lane; (lane = port->lanes) != NULL;) {
    port->lanes = lane->next;
    if (lane->last != NULL) {
      mp_peers_set_next(lane->last->peers, forgotten);
      forgotten = lane->sessions;
    }
    mp_mail_clear(&lane->early);
    mp_free(lane);
  }
  pthread_mutex_unlock(&hub->lock);
  while (forgotten != NULL) {
    mp_session_t *next = mp_peers_next(forgotten->peers);
    mp_session_release(forgotten);
    forgotten = next;
  }
}

void mp_port_release(mp_port_t *port) {
  if (port == NULL) return;
  mp_port_close(port);
  mp_free(port);
}

mp_world_t *mp_port_world(const mp_port_t *port) {
  return port->hub->world;
}

mp_client_t *mp_port_client(const mp_port_t *port) {
  return port->client;
}

uint64_t mp_port_launch_key(const mp_port_t *port, uint64_t number) {
  return port->epoch << MP_EPOCH_SHIFT | number;
}

// ---- Launches ----

static bool is_of_earlier_launch(const mp_packet_t *packet, uint64_t number) {
  return mp_packet_launch(packet) < number;
}

static void deliver_early(mp_lane_t *lane, uint64_t number, mp_session_t *session) {
  mp_packet_t *refused;  // of a launch that this process had no memory for
  while ((refused = mp_mail_take(&lane->early, is_of_earlier_launch, number)) != NULL) {
    mp_packet_release(refused);
  }
  for (mp_packet_t *packet; (packet = mp_mail_take(&lane->early, is_of_launch, number)) != NULL;) {
    mp_session_deliver(session, packet);
  }
  if (number >= lane->lost_begin && number < lane->lost_end) {
    mp_session_poison(session, mp_status_out_of_memory());
  }
}

mp_status_t mp_port_enter(mp_port_t *port, uint64_t devices, uint64_t number,
                          mp_session_t *session) {
  mp_hub_t *hub = port->hub;
  mp_status_t status = NULL;
  pthread_mutex_lock(&hub->lock);
  mp_lane_t *lane = port->is_open ? mp_hub_get_lane(port, devices) : NULL;
  if (lane == NULL) {
    status = port->is_open ? mp_status_out_of_memory()
                           : mp_status_make(MP_FAILED_PRECONDITION, "the client was closed");
  } else if (number < lane->num_entered) {
    status = mp_status_out_of_memory();  // refused for another device of this process
  } else {
    mp_peers_set_next(session->peers, NULL);
    if (lane->last != NULL) {
      mp_peers_set_next(lane->last->peers, session);
    } else {
      lane->sessions = session;
    }
    lane->last = mp_session_retain(session);
    lane->num_entered = number + 1;
    deliver_early(lane, number, session);
    for (uint32_t rank = 0; rank < mp_world_size(hub->world); ++rank) {
      if (hub->losses[rank] != NULL) mp_session_lose(session, rank, hub->losses[rank]);
    }
  }
  pthread_mutex_unlock(&hub->lock);
  return status;
}

void mp_port_refuse(mp_port_t *port, uint64_t devices, uint64_t number, uint32_t num_ranks,
                    const uint32_t *ranks, mp_status_code_t code) {
  const mp_envelope_t envelope = {
      .channel = MP_CHANNEL_SESSIONS,
      .words = {MP_PACKET_POISON, (uint32_t)code},
      .key = {devices, mp_port_launch_key(port, number)},
  };
  for (uint32_t i = 0; i < num_ranks; ++i) {
    mp_status_ignore(mp_world_send(port->hub->world, ranks[i], &envelope, NULL));
  }
}

static bool unlink_session(mp_lane_t *lane, const mp_session_t *session) {
  mp_session_t *previous = NULL;
  mp_session_t *at = lane->sessions;
  for (; at != NULL && at != session; at = mp_peers_next(at->peers)) previous = at;
  if (at == NULL) return false;
  mp_session_t *next = mp_peers_next(at->peers);
  if (previous != NULL) {
    mp_peers_set_next(previous->peers, next);
  } else {
    lane->sessions = next;
  }
  if (lane->last == session) lane->last = previous;
  return true;
}

void mp_port_leave(mp_port_t *port, mp_session_t *session) {
  bool was_there = false;
  pthread_mutex_lock(&port->hub->lock);
  for (mp_lane_t *lane = port->lanes; lane != NULL && !was_there; lane = lane->next) {
    was_there = unlink_session(lane, session);
  }
  pthread_mutex_unlock(&port->hub->lock);
  if (was_there) mp_session_release(session);
}

void mp_port_visit(mp_port_t *port, void (*visit)(mp_session_t *session, void *context),
                   void *context) {
  pthread_mutex_lock(&port->hub->lock);
  mp_hub_visit(port, visit, context);
  pthread_mutex_unlock(&port->hub->lock);
}

bool mp_port_linger(mp_port_t *port) {
  pthread_mutex_lock(&port->hub->lock);
  mp_hub_visit(port, cancel_incomplete, NULL);
  port->is_lingering = mp_hub_is_moving(port);
  bool must_linger = port->is_lingering;
  pthread_mutex_unlock(&port->hub->lock);
  return must_linger;
}

bool mp_port_is_spent(mp_port_t *port) {
  pthread_mutex_lock(&port->hub->lock);
  bool is_spent = port->is_lingering && !mp_hub_is_moving(port);
  pthread_mutex_unlock(&port->hub->lock);
  return is_spent;
}
