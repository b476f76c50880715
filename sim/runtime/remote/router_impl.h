// The insides of routers and endpoints: router.c and endpoint.c.
#ifndef MINIPOD_SIM_RUNTIME_REMOTE_ROUTER_IMPL_H_
#define MINIPOD_SIM_RUNTIME_REMOTE_ROUTER_IMPL_H_

#include "sim/base/containers/list.h"
#include "sim/base/os/lock.h"
#include "sim/runtime/remote/peers.h"
#include "sim/runtime/remote/router.h"

// A launch's key has the client's number in its world (its *epoch*) from this bit on.
enum { MP_EPOCH_SHIFT = 48 };

// A launch queue: the launches on one list of devices. Under the router's lock.
typedef struct mp_launch_queue_s mp_launch_queue_t;
struct mp_launch_queue_s {
  mp_launch_queue_t *next;
  uint64_t devices;            // the hash of the list
  uint64_t num_entered;        // launches that have come so far; packets of later ones wait
  MP_QUEUE(mp_peers_t) peers;  // sessions that have entered and are not over, oldest first
  mp_packet_list_t early;      // of launches that have not come
};

// The incarnations of a rank's processes, as the coordinator reports them.
enum { MP_KEPT_INCARNATIONS = 4 };
typedef struct {
  uint64_t latest;                          // 0: not known yet
  uint64_t replaced[MP_KEPT_INCARNATIONS];  // the last ones before it
  uint32_t num_replaced;
} mp_rank_names_t;

// `router`, `client`, `calls` and `epoch` never change; the rest is under the router's lock.
struct mp_endpoint_s {
  mp_endpoint_t *next;  // in the router's list
  mp_router_t *router;
  mp_client_t *client;  // opaque
  const mp_session_calls_t *calls;
  uint64_t epoch;              // the client's number in its world
  bool is_open, is_lingering;  // not closed yet; the client's users have released it
  atomic_bool carries;         // until mp_endpoint_carry_no_more
  mp_launch_queue_t *queues;
  mp_packet_list_t early;  // for lists of devices without any launch yet
  mp_packet_list_t inquiries;
  uint32_t num_inquiries;
  void (*wake)(void *context);  // mp_endpoint_on_inquiry; NULL: none
  void *wake_context;
  mp_rank_names_t
      *names;  // [size of the world], owned; NULL: the coordinator has reported nothing yet
};

struct mp_router_s {
  mp_router_t *next;  // in the list of all routers, under that list's lock
  mp_world_t *world;
  uint32_t generation;  // mp_process_generation() when it was made
  mp_lock_t lock;       // of all that follows
  uint64_t num_epochs;  // greatest number of a client + 1: packets for this one and later are early
  mp_endpoint_t *endpoints;
  mp_packet_list_t early;  // for clients that do not exist yet
  // Sessions for which mp_session_carry_on is due, each with a reference to the session.
  MP_QUEUE(mp_peers_t) carried;
  mp_status_t *losses;      // [size of the world] why a rank sends no more; NULL: it is alive
  uint64_t *incarnations;   // [size of the world] of restarted processes; 0: not restarted
  uint64_t *returned_at;    // [size of the world] num_returns at its last restart
  uint64_t returns_before;  // number of restarts when this process started, including its own
  // The number of restarts. Launches read it without the lock, and again with it.
  _Atomic uint64_t num_returns;
  double exit_timeout_s;  // of the client that was made last
};

// Which client of the world a packet is for.
static inline uint64_t mp_packet_epoch(const mp_packet_t *packet) {
  return packet->envelope.key[1] >> MP_EPOCH_SHIFT;
}

// Which launch of that client it is for: its number on the list of devices in key[0].
static inline uint64_t mp_packet_launch(const mp_packet_t *packet) {
  return packet->envelope.key[1] & ((UINT64_C(1) << MP_EPOCH_SHIFT) - 1);
}

// The world's router, made and attached to the world on first use. Borrowed. RESOURCE_EXHAUSTED
// when memory is short.
MP_NODISCARD mp_status_t mp_router_get(mp_world_t *world, mp_router_t **out_router);

// ---- The router's lock is held ----

// The launch queue of this list of devices; NULL: nothing was launched on it.
mp_launch_queue_t *mp_router_find_queue(const mp_endpoint_t *endpoint, uint64_t devices);
// The launch queue of this list of devices, made on first use. NULL: memory is short.
mp_launch_queue_t *mp_router_get_queue(mp_endpoint_t *endpoint, uint64_t devices);
// Takes a packet for this endpoint: hands it to its session, keeps it for a session to come, or
// drops it.
void mp_router_route(mp_endpoint_t *endpoint, mp_packet_t *packet);
// The peers of launch `number` on this list of devices; NULL: they have not entered, or have left.
mp_peers_t *mp_router_find_peers(const mp_endpoint_t *endpoint, uint64_t devices, uint64_t number);
// Hands a packet to the session of its launch, and queues the session if mp_session_carry_on is
// due.
void mp_router_hand_over(mp_endpoint_t *endpoint, mp_peers_t *peers, mp_packet_t *packet);
// Calls `visit` with `context` for each session in the endpoint.
void mp_router_visit(mp_endpoint_t *endpoint, void (*visit)(mp_session_t *session, void *context),
                     void *context);
// True when some launch has participants in this process that are not done.
bool mp_router_is_moving(mp_endpoint_t *endpoint);

#endif  // MINIPOD_SIM_RUNTIME_REMOTE_ROUTER_IMPL_H_
