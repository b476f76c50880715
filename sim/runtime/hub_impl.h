// The insides of hubs and ports.
#ifndef MINIPOD_SIM_RUNTIME_HUB_IMPL_H_
#define MINIPOD_SIM_RUNTIME_HUB_IMPL_H_

#include "sim/runtime/hub.h"
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

// Which client of the world a packet is for, and which launch.
static inline uint64_t mp_packet_epoch(const mp_packet_t *packet) {
  return packet->envelope.key[1] >> MP_EPOCH_SHIFT;
}

static inline uint64_t mp_packet_launch(const mp_packet_t *packet) {
  return packet->envelope.key[1] & ((UINT64_C(1) << MP_EPOCH_SHIFT) - 1);
}

// The world's hub, made and attached when there is none.
MP_NODISCARD mp_status_t mp_hub_get(mp_world_t *world, mp_hub_t **out_hub);

// ---- The hub's lock is held ----

// NULL: memory is short.
mp_lane_t *mp_hub_get_lane(mp_port_t *port, uint64_t devices);
// Takes the packet to its session, or keeps it for one to come, or drops it.
void mp_hub_route(mp_port_t *port, mp_packet_t *packet);
void mp_hub_visit(mp_port_t *port, void (*visit)(mp_session_t *session, void *context),
                  void *context);
// Some launch has participants that are not done.
bool mp_hub_is_moving(mp_port_t *port);

#endif  // MINIPOD_SIM_RUNTIME_HUB_IMPL_H_
