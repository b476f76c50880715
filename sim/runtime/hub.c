// Hubs: routing, losses, the end of the process.
#include "sim/runtime/hub_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "sim/base/alloc.h"
#include "sim/base/clock.h"
#include "sim/base/process.h"

// Hubs stay: a world lives as long as the process, but for those of tests.
static pthread_mutex_t g_hubs_lock = PTHREAD_MUTEX_INITIALIZER;
static mp_hub_t *g_hubs;
static bool g_has_exit_handler;

// ---- Lanes; the hub's lock is held ----

mp_lane_t *mp_hub_get_lane(mp_port_t *port, uint64_t devices) {
  for (mp_lane_t *lane = port->lanes; lane != NULL; lane = lane->next) {
    if (lane->devices == devices) return lane;
  }
  mp_lane_t *lane = mp_calloc(1, sizeof(*lane));
  if (lane == NULL) return NULL;
  lane->devices = devices;
  lane->next = port->lanes;
  port->lanes = lane;
  return lane;
}

static mp_session_t *find_session(const mp_lane_t *lane, uint64_t number) {
  mp_session_t *session = lane->sessions;
  while (session != NULL && mp_peers_number(session->peers) < number) {
    session = mp_peers_next(session->peers);
  }
  if (session == NULL || mp_peers_number(session->peers) != number) return NULL;
  return session;
}

// Somebody waits for a launch that this process has not come to.
static void answer_early(const mp_port_t *port, const mp_lane_t *lane, mp_packet_t *packet) {
  char text[128];
  const int size =
      lane->num_entered == 0
          ? snprintf(text, sizeof(text), "nothing was launched here on these devices yet")
          : snprintf(text, sizeof(text),
                     "the last launch here on these devices was launch %" PRIu64,
                     lane->num_entered - 1);
  mp_envelope_t envelope = packet->envelope;
  envelope.words[0] = MP_PACKET_ANSWER;
  mp_parcel_t *parcel = NULL;
  mp_status_t status = mp_parcel_create(port->hub->world, (size_t)size, &parcel);
  if (status == NULL) {
    memcpy(parcel->data, text, (size_t)size);
    status = mp_world_send(port->hub->world, packet->from, &envelope, parcel);
    mp_parcel_release(parcel);
  }
  mp_status_ignore(status);
  mp_packet_release(packet);
}

void mp_hub_route(mp_port_t *port, mp_packet_t *packet) {
  mp_lane_t *lane = mp_hub_get_lane(port, packet->envelope.key[0]);
  const uint64_t number = mp_packet_launch(packet);
  if (lane == NULL) {
    mp_packet_release(packet);  // out of memory: whoever waits for it will say so in time
  } else if (mp_packet_kind(packet) == MP_PACKET_ASK && number >= lane->num_entered) {
    answer_early(port, lane, packet);
  } else if (number >= lane->num_entered) {
    if (!mp_mail_push(&lane->early, packet)) {
      if (lane->lost_end == 0 || number < lane->lost_begin) lane->lost_begin = number;
      if (number >= lane->lost_end) lane->lost_end = number + 1;
    }
  } else {
    mp_session_t *session = find_session(lane, number);
    if (session != NULL) {
      mp_session_deliver(session, packet);
    } else {
      mp_packet_release(packet);  // over
    }
  }
}

static mp_port_t *find_port(const mp_hub_t *hub, uint64_t epoch) {
  mp_port_t *port = hub->ports;
  while (port != NULL && port->epoch != epoch) port = port->next;
  return port;
}

// ---- The handler ----

static void deliver(void *context, mp_packet_t *packet) {
  mp_hub_t *hub = context;
  pthread_mutex_lock(&hub->lock);
  mp_port_t *port = find_port(hub, mp_packet_epoch(packet));
  if (port != NULL) {
    mp_hub_route(port, packet);
  } else if (mp_packet_epoch(packet) >= hub->num_epochs) {
    (void)mp_mail_push(&hub->early, packet);
  } else {
    mp_packet_release(packet);
  }
  pthread_mutex_unlock(&hub->lock);
}

static void on_lost(void *context, uint32_t rank, mp_status_t why) {
  mp_hub_t *hub = context;
  pthread_mutex_lock(&hub->lock);
  if (hub->losses[rank] == NULL) hub->losses[rank] = mp_status_retain(why);
  for (mp_port_t *port = hub->ports; port != NULL; port = port->next) {
    for (mp_lane_t *lane = port->lanes; lane != NULL; lane = lane->next) {
      mp_session_t *next;
      for (mp_session_t *session = lane->sessions; session != NULL; session = next) {
        next = mp_peers_next(session->peers);
        mp_session_lose(session, rank, why);
      }
    }
  }
  pthread_mutex_unlock(&hub->lock);
}

// ---- Launches in flight; the hub's lock is held ----

void mp_hub_visit(mp_port_t *port, void (*visit)(mp_session_t *session, void *context),
                  void *context) {
  for (mp_lane_t *lane = port->lanes; lane != NULL; lane = lane->next) {
    for (mp_session_t *session = lane->sessions; session != NULL;) {
      mp_session_t *next = mp_peers_next(session->peers);
      visit(session, context);
      session = next;
    }
  }
}

static void find_moving(mp_session_t *session, void *is_moving) {
  *(bool *)is_moving |= mp_session_is_moving(session);
}

bool mp_hub_is_moving(mp_port_t *port) {
  bool found = false;
  mp_hub_visit(port, find_moving, &found);
  return found;
}

static void cancel(mp_session_t *session, void *context) {
  (void)context;
  mp_session_poison(session, mp_status_make(MP_CANCELLED, "the client was closed"));
}

static bool has_moving_ports(mp_hub_t *hub) {
  bool found = false;
  pthread_mutex_lock(&hub->lock);
  for (mp_port_t *port = hub->ports; port != NULL; port = port->next)
    found |= mp_hub_is_moving(port);
  pthread_mutex_unlock(&hub->lock);
  return found;
}

// A process that ends well first does its part of what it has launched: others may wait for it.
// Runs before the world's own handler, which was registered earlier, says goodbye.
static void on_exit_status(int status, void *context) {
  (void)context;
  if (status != 0) return;
  for (mp_hub_t *hub = g_hubs; hub != NULL; hub = hub->next) {
    if (hub->generation != mp_process_generation()) continue;
    const double deadline = mp_clock_seconds() + hub->exit_timeout_s;
    while (has_moving_ports(hub) && mp_clock_seconds() < deadline) {
      nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
  }
}

// ---- Hubs ----

static mp_status_t find_or_make(mp_world_t *world, mp_hub_t **out_hub) {
  for (mp_hub_t *hub = g_hubs; hub != NULL; hub = hub->next) {
    if (hub->world == world) {
      *out_hub = hub;
      return NULL;
    }
  }
  mp_hub_t *hub = mp_calloc(1, sizeof(*hub) + mp_world_size(world) * sizeof(mp_status_t));
  MP_RETURN_IF_NULL(hub);
  hub->world = world;
  hub->generation = mp_process_generation();
  hub->losses = (mp_status_t *)(hub + 1);
  pthread_mutex_init(&hub->lock, NULL);
  hub->next = g_hubs;
  g_hubs = hub;
  if (!g_has_exit_handler) g_has_exit_handler = on_exit(on_exit_status, NULL) == 0;
  mp_world_attach(world, MP_CHANNEL_SESSIONS,
                  &(mp_handler_t){.deliver = deliver, .lost = on_lost, .context = hub});
  *out_hub = hub;
  return NULL;
}

mp_status_t mp_hub_get(mp_world_t *world, mp_hub_t **out_hub) {
  pthread_mutex_lock(&g_hubs_lock);
  mp_status_t status = find_or_make(world, out_hub);
  pthread_mutex_unlock(&g_hubs_lock);
  return status;
}

// Cancels what lingers and waits for its end.
static void clear_ports(mp_hub_t *hub) {
  for (bool is_empty = false; !is_empty;) {
    pthread_mutex_lock(&hub->lock);
    for (mp_port_t *port = hub->ports; port != NULL; port = port->next) {
      mp_hub_visit(port, cancel, NULL);
    }
    is_empty = hub->ports == NULL;
    pthread_mutex_unlock(&hub->lock);
    if (!is_empty) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  }
}

void mp_hub_forget(mp_world_t *world) {
  mp_world_detach(world, MP_CHANNEL_SESSIONS);
  pthread_mutex_lock(&g_hubs_lock);
  mp_hub_t **link = &g_hubs;
  while (*link != NULL && (*link)->world != world) link = &(*link)->next;
  mp_hub_t *hub = *link;
  if (hub != NULL) *link = hub->next;
  pthread_mutex_unlock(&g_hubs_lock);
  if (hub == NULL) return;
  clear_ports(hub);
  mp_mail_clear(&hub->early);
  for (uint32_t i = 0; i < mp_world_size(world); ++i) mp_status_release(hub->losses[i]);
  pthread_mutex_destroy(&hub->lock);
  mp_free(hub);
}
