#include "sim/runtime/hub.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "sim/base/alloc.h"
#include "sim/base/clock.h"
#include "sim/base/process.h"
#include "sim/runtime/peers.h"
#include "sim/runtime/session.h"

enum { MP_EPOCH_SHIFT = 48 };

// The launches on one list of devices.
typedef struct mp_lane_s mp_lane_t;
struct mp_lane_s {
  mp_lane_t *next;
  uint64_t devices;
  uint64_t num_entered;           // launches so far: packets of later ones wait
  mp_session_t *sessions, *last;  // entered and not over, oldest first
  mp_mail_list_t early;
  uint64_t lost_begin, lost_end;  // launches that packets were lost of for want of memory
};

struct mp_port_s {
  mp_port_t *next;  // in the hub
  mp_hub_t *hub;
  mp_client_t *client;
  uint64_t epoch;
  bool is_open, is_lingering;
  mp_lane_t *lanes;
};

struct mp_hub_s {
  mp_hub_t *next;
  mp_world_t *world;
  uint32_t generation;  // mp_process_generation()
  pthread_mutex_t lock;
  uint64_t num_epochs;
  mp_port_t *ports;
  mp_mail_list_t early;  // for clients that are not there yet
  mp_status_t *losses;   // [size of the world]
  double exit_timeout_s;
};

// Hubs stay: a world lives as long as the process, but for those of tests.
static pthread_mutex_t g_hubs_lock = PTHREAD_MUTEX_INITIALIZER;
static mp_hub_t *g_hubs;
static bool g_has_exit_handler;

// ---- Mail ----

bool mp_mail_push(mp_mail_list_t *list, mp_packet_t *packet) {
  mp_mail_t *mail = mp_malloc(sizeof(*mail));
  if (mail == NULL) {
    mp_packet_release(packet);
    return false;
  }
  *mail = (mp_mail_t){NULL, packet};
  if (list->last != NULL) {
    list->last->next = mail;
  } else {
    list->first = mail;
  }
  list->last = mail;
  return true;
}

mp_packet_t *mp_mail_pop(mp_mail_list_t *list) {
  mp_mail_t *mail = list->first;
  if (mail == NULL) return NULL;
  mp_packet_t *packet = mail->packet;
  list->first = mail->next;
  if (list->first == NULL) list->last = NULL;
  mp_free(mail);
  return packet;
}

mp_packet_t *mp_mail_take(mp_mail_list_t *list,
                          bool (*is_wanted)(const mp_packet_t *packet, uint64_t number),
                          uint64_t number) {
  mp_mail_t *previous = NULL;
  for (mp_mail_t *mail = list->first; mail != NULL; previous = mail, mail = mail->next) {
    if (!is_wanted(mail->packet, number)) continue;
    mp_packet_t *packet = mail->packet;
    *(previous != NULL ? &previous->next : &list->first) = mail->next;
    if (list->last == mail) list->last = previous;
    mp_free(mail);
    return packet;
  }
  return NULL;
}

void mp_mail_clear(mp_mail_list_t *list) {
  for (mp_packet_t *packet; (packet = mp_mail_pop(list)) != NULL;) mp_packet_release(packet);
}

// ---- Lanes; the hub's lock is held ----

static mp_lane_t *get_lane(mp_port_t *port, uint64_t devices) {
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

static uint64_t epoch_of(const mp_packet_t *packet) {
  return packet->envelope.key[1] >> MP_EPOCH_SHIFT;
}

static uint64_t launch_of(const mp_packet_t *packet) {
  return packet->envelope.key[1] & ((UINT64_C(1) << MP_EPOCH_SHIFT) - 1);
}

static bool is_of_epoch(const mp_packet_t *packet, uint64_t epoch) {
  return epoch_of(packet) == epoch;
}

static bool is_of_launch(const mp_packet_t *packet, uint64_t number) {
  return launch_of(packet) == number;
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

static void route(mp_port_t *port, mp_packet_t *packet) {
  mp_lane_t *lane = get_lane(port, packet->envelope.key[0]);
  const uint64_t number = launch_of(packet);
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
  mp_port_t *port = find_port(hub, epoch_of(packet));
  if (port != NULL) {
    route(port, packet);
  } else if (epoch_of(packet) >= hub->num_epochs) {
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

typedef void (*mp_visit_t)(mp_session_t *session, void *context);

static void visit_port(mp_port_t *port, mp_visit_t visit, void *context) {
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

static bool is_moving(mp_port_t *port) {
  bool found = false;
  visit_port(port, find_moving, &found);
  return found;
}

static void cancel_incomplete(mp_session_t *session, void *context) {
  (void)context;
  if (mp_session_is_complete(session)) return;
  mp_session_poison(session, mp_status_make(MP_CANCELLED, "the client was closed"));
}

static void cancel(mp_session_t *session, void *context) {
  (void)context;
  mp_session_poison(session, mp_status_make(MP_CANCELLED, "the client was closed"));
}

static bool has_moving_ports(mp_hub_t *hub) {
  bool found = false;
  pthread_mutex_lock(&hub->lock);
  for (mp_port_t *port = hub->ports; port != NULL; port = port->next) found |= is_moving(port);
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

static mp_status_t get_hub(mp_world_t *world, mp_hub_t **out_hub) {
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

// Cancels what lingers and waits for its end.
static void clear_ports(mp_hub_t *hub) {
  for (bool is_empty = false; !is_empty;) {
    pthread_mutex_lock(&hub->lock);
    for (mp_port_t *port = hub->ports; port != NULL; port = port->next) {
      visit_port(port, cancel, NULL);
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

// ---- Ports ----

static void take_early(mp_hub_t *hub, mp_port_t *port) {
  for (mp_packet_t *packet;
       (packet = mp_mail_take(&hub->early, is_of_epoch, port->epoch)) != NULL;) {
    route(port, packet);
  }
}

mp_status_t mp_port_open(mp_world_t *world, mp_client_t *client, double exit_timeout_s,
                         mp_port_t **out_port) {
  mp_port_t *port = mp_calloc(1, sizeof(*port));
  MP_RETURN_IF_NULL(port);
  port->client = client;
  port->is_open = true;
  pthread_mutex_lock(&g_hubs_lock);
  mp_status_t status = get_hub(world, &port->hub);
  pthread_mutex_unlock(&g_hubs_lock);
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

static void deliver_early(mp_lane_t *lane, uint64_t number, mp_session_t *session) {
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
  mp_lane_t *lane = port->is_open ? get_lane(port, devices) : NULL;
  if (lane == NULL) {
    status = port->is_open ? mp_status_out_of_memory()
                           : mp_status_make(MP_FAILED_PRECONDITION, "the client was closed");
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
  visit_port(port, visit, context);
  pthread_mutex_unlock(&port->hub->lock);
}

bool mp_port_linger(mp_port_t *port) {
  pthread_mutex_lock(&port->hub->lock);
  visit_port(port, cancel_incomplete, NULL);
  port->is_lingering = is_moving(port);
  bool must_linger = port->is_lingering;
  pthread_mutex_unlock(&port->hub->lock);
  return must_linger;
}

bool mp_port_is_spent(mp_port_t *port) {
  pthread_mutex_lock(&port->hub->lock);
  bool is_spent = port->is_lingering && !is_moving(port);
  pthread_mutex_unlock(&port->hub->lock);
  return is_spent;
}
