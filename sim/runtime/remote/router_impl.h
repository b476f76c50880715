// The insides of routers and endpoints.
#ifndef MINIPOD_SIM_RUNTIME_REMOTE_ROUTER_IMPL_H_
#define MINIPOD_SIM_RUNTIME_REMOTE_ROUTER_IMPL_H_

#include "sim/base/os/lock.h"
#include "sim/runtime/remote/peers.h"
#include "sim/runtime/remote/router.h"

enum { MP_EPOCH_SHIFT = 48 };

// The launches on one list of devices.
typedef struct mp_launch_queue_s mp_launch_queue_t;
struct mp_launch_queue_s {
  mp_launch_queue_t *next;
  uint64_t devices;
  uint64_t num_entered;      // launches so far: packets of later ones wait
  mp_peers_t *first, *last;  // of sessions that have entered and not over, oldest first
  mp_packet_list_t early;
};

struct mp_endpoint_s {
  mp_endpoint_t *next;  // in the router
  mp_router_t *router;
  mp_client_t *client;  // not looked into
  const mp_session_calls_t *calls;
  uint64_t epoch;
  bool is_open, is_lingering;
  mp_launch_queue_t *queues;
  mp_packet_list_t early;  // for lists of devices that nothing was launched on yet
};

struct mp_router_s {
  mp_router_t *next;
  mp_world_t *world;
  uint32_t generation;  // mp_process_generation()
  mp_lock_t lock;
  uint64_t num_epochs;  // packets of these clients and later ones are early
  mp_endpoint_t *endpoints;
  mp_packet_list_t early;  // for clients that are not there yet
  mp_status_t *losses;     // [size of the world]
  double exit_timeout_s;
};

// Which client of the world a packet is for, and which launch.
static inline uint64_t mp_packet_epoch(const mp_packet_t *packet) {
  return packet->envelope.key[1] >> MP_EPOCH_SHIFT;
}

static inline uint64_t mp_packet_launch(const mp_packet_t *packet) {
  return packet->envelope.key[1] & ((UINT64_C(1) << MP_EPOCH_SHIFT) - 1);
}

// The world's router, made and attached when there is none.
MP_NODISCARD mp_status_t mp_router_get(mp_world_t *world, mp_router_t **out_router);

// ---- The router's lock is held ----

// Makes the queue when there is none. NULL: memory is short.
mp_launch_queue_t *mp_router_get_queue(mp_endpoint_t *endpoint, uint64_t devices);
// Takes the packet to its session, or keeps it for one to come, or drops it.
void mp_router_route(mp_endpoint_t *endpoint, mp_packet_t *packet);
void mp_router_visit(mp_endpoint_t *endpoint, void (*visit)(mp_session_t *session, void *context),
                     void *context);
// Some launch has participants that are not done.
bool mp_router_is_moving(mp_endpoint_t *endpoint);

#endif  // MINIPOD_SIM_RUNTIME_REMOTE_ROUTER_IMPL_H_
