// Routers: where packets of other processes' sessions come in.
//
// There is one router per world, for as long as the world is in use, and one endpoint in it per
// client. A client's number is that of the agreement in which the processes made it; a packet names
// the client's number, the list of devices (by a hash) and the number of the launch on that list.
// It goes to that launch's session, waits for it when this process has not come so far, and is
// dropped when the launch is over here.
//
// Thread-safe. Packets of one launch are handed over one at a time, in order. Lock order: launch
// lock > router > session.
#ifndef MINIPOD_SIM_RUNTIME_REMOTE_ROUTER_H_
#define MINIPOD_SIM_RUNTIME_REMOTE_ROUTER_H_

#include "collectives/transport/world.h"
#include "sim/base/status.h"

typedef struct mp_client_s mp_client_t;
typedef struct mp_router_s mp_router_t;
typedef struct mp_endpoint_s mp_endpoint_t;
typedef struct mp_session_s mp_session_t;
typedef struct mp_peers_s mp_peers_t;

// The channels of the world that the runtime uses.
typedef enum {
  MP_CHANNEL_SESSIONS,  // collectives, send and recv, poison: to routers
  MP_NUM_CHANNELS,
} mp_channel_t;
_Static_assert(MP_NUM_CHANNELS <= (int)MP_WORLD_CHANNELS, "the world has a channel for each use");

// What packets of sessions are about: words[0] is the kind and, above 8 bits, the phase. key[0] is
// the hash of the devices, key[1] the launch (mp_launch_key). The rest depends on the kind.
typedef enum {
  MP_PACKET_PAYLOAD,  // of a meeting: key[2] its group, key[3] its number there | program << 32;
                      // words[1] the collective's digest, words[2] its ordinal
  MP_PACKET_MESSAGE,  // of a send: key[2] the channel, key[3] operands | their types << 32;
                      // words[1] source, [2] target
  MP_PACKET_POISON,   // words[1] the code; the text
  MP_PACKET_LEAVE,    // all participants of the process are done
  MP_PACKET_DISPUTE,  // like PARCEL: what the sender is at; mp_dispute_t
  MP_PACKET_ASK,      // what are your participants doing?
  MP_PACKET_ANSWER,   // the text
} mp_packet_kind_t;

static inline mp_packet_kind_t mp_packet_kind(const mp_packet_t *packet) {
  return (mp_packet_kind_t)(packet->envelope.words[0] & 0xff);
}
static inline uint32_t mp_packet_phase(const mp_packet_t *packet) {
  return packet->envelope.words[0] >> 8;
}

// What routers do with sessions, which they do not look into (session.h).
typedef struct {
  mp_session_t *(*retain)(mp_session_t *session);
  void (*release)(mp_session_t *session);
  // Takes a packet of this launch.
  void (*deliver)(mp_session_t *session, mp_packet_t *packet);
  // This rank sends no more.
  void (*lose)(mp_session_t *session, uint32_t rank, mp_status_t why);
  // The launch fails with `error`, which is consumed.
  void (*poison)(mp_session_t *session, mp_status_t error);
  // Some participants of this process were launched and are not done.
  bool (*is_moving)(mp_session_t *session);
  // All of this process were launched.
  bool (*is_complete)(mp_session_t *session);
} mp_session_calls_t;

// Opens the client's endpoint. Packets come at once. `number`: the client's, more than those of all
// clients before it in its world. `exit_timeout_s`: how long a process that exits well waits for
// launches that other processes take part in.
MP_NODISCARD mp_status_t mp_endpoint_open(mp_world_t *world, uint64_t number, mp_client_t *client,
                                          const mp_session_calls_t *calls, double exit_timeout_s,
                                          mp_endpoint_t **out_endpoint);
// The client's users are gone. True when launches that other processes take part in are in flight:
// the client has to go on until mp_endpoint_is_spent. Those that can never be complete fail.
bool mp_endpoint_linger(mp_endpoint_t *endpoint);
bool mp_endpoint_is_spent(mp_endpoint_t *endpoint);
// No more packets, and none in progress; what waits is dropped, sessions are forgotten. The
// endpoint itself lives until mp_endpoint_release.
void mp_endpoint_close(mp_endpoint_t *endpoint);
void mp_endpoint_release(mp_endpoint_t *endpoint);

// Before a world ends (tests): detaches from it. All its clients must have been released; launches
// that are still in flight are cancelled.
void mp_router_forget(mp_world_t *world);

mp_world_t *mp_endpoint_world(const mp_endpoint_t *endpoint);
mp_client_t *mp_endpoint_client(const mp_endpoint_t *endpoint);
// The number of a launch with the client's number.
uint64_t mp_endpoint_launch_key(const mp_endpoint_t *endpoint, uint64_t number);

// The peers of a new session enter: packets that were early are delivered before this returns.
// Sessions of one list of devices come in the order of their numbers.
MP_NODISCARD mp_status_t mp_endpoint_enter(mp_endpoint_t *endpoint, uint64_t devices,
                                           uint64_t number, mp_peers_t *peers);
// There is no memory even for a session: the others' sessions of this launch fail with `code`, and
// the number is not used here.
void mp_endpoint_refuse(mp_endpoint_t *endpoint, uint64_t devices, uint64_t number,
                        uint32_t num_ranks, const uint32_t *ranks, mp_status_code_t code);
// The session is over in this process.
void mp_endpoint_leave(mp_endpoint_t *endpoint, mp_peers_t *peers);

// Calls `visit` for each session, under the router's lock.
void mp_endpoint_visit(mp_endpoint_t *endpoint, void (*visit)(mp_session_t *session, void *context),
                       void *context);

#endif  // MINIPOD_SIM_RUNTIME_REMOTE_ROUTER_H_
