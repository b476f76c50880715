// Routers: receive packets from sessions of other processes.
//
// There is one router per world, for as long as the world is in use, and in it one endpoint per
// client. A client's number is that of the agreement in which the processes made it. A packet names
// the client's number, the list of devices (by a hash) and the number of the launch on that list.
// The router hands it to the session of that launch, keeps it until this process makes the launch,
// and drops it if the launch is over here.
//
// Thread-safe. Packets of one launch are handed over one at a time, in order. Lock order: launch
// lock > router > session.
#ifndef MINIPOD_SIM_RUNTIME_REMOTE_ROUTER_H_
#define MINIPOD_SIM_RUNTIME_REMOTE_ROUTER_H_

#include "collectives/transport/world.h"
#include "sim/base/status.h"
#include "sim/base/str.h"

typedef struct mp_client_s mp_client_t;
typedef struct mp_router_s mp_router_t;
typedef struct mp_endpoint_s mp_endpoint_t;
typedef struct mp_session_s mp_session_t;
typedef struct mp_peers_s mp_peers_t;

// The channels of the world that the runtime uses.
typedef enum {
  MP_CHANNEL_SESSIONS,  // collectives, send and recv, poison: to routers
  MP_CHANNEL_PARCELS,   // contents of buffers (sim/runtime/parcels)
  MP_NUM_CHANNELS,
} mp_channel_t;
_Static_assert(MP_NUM_CHANNELS <= (int)MP_WORLD_CHANNELS, "the world has a channel for each use");

// The kind of a session's packet. In its envelope words[0] is the kind and, above the lowest 8
// bits, the place (stripe * MP_SCHEDULE_MAX_PHASES + phase) of a payload; key[0] is the hash of the
// list of devices, key[1] names the client and the launch (mp_endpoint_launch_key). The other words
// and the packet's bytes depend on the kind.
typedef enum {
  // A payload from another process for a remote collective. key[2]: the group's hash; key[3]: the
  // number in the group sequence | low word of the program's digest << 32; words[1]: low word of
  // the collective's digest; words[2]: its ordinal. Bytes: the payload (collective_schedule.h).
  MP_PACKET_PAYLOAD,
  // The operands of a send op. key[2]: the channel; key[3]: number of operands | their types << 32;
  // words[1]: source, words[2]: target (logical numbers). Bytes: the operands (mailbox.h).
  MP_PACKET_MESSAGE,
  // A message of a kernel that communicates (sessions/talks.h). key[2]: the hash of program,
  // command, round and receiver; key[3]: the round; words[1]: the receiver (logical number),
  // words[2]: the command. The place is 1 if the message is dropped when its receiver has left.
  MP_PACKET_TALK,
  // The launch has failed. words[1]: the status code. Bytes: the text, if there was memory for it.
  MP_PACKET_POISON,
  // All participants of the sender are done.
  MP_PACKET_LEAVE,
  // "We are not at the same collective": envelope as for PAYLOAD, with the sender's own side.
  // Bytes: its traits and a text (remote_collective.c).
  MP_PACKET_DISPUTE,
  // "What are your participants doing?"
  MP_PACKET_ASK,
  // The answer. Bytes: the text.
  MP_PACKET_ANSWER,
  MP_PACKET_KINDS,  // those above are handed to sessions; the others wait as inquiries (inquiry.c)
  // "Does a participant of yours that keeps others waiting wait itself?" The key's launch has the
  // participant: words[1] is its logical number, the place its device. words[2] is 1 if a message
  // of it is missing; else
  // the launch's collective with key[2] and key[3] (low word), as in a PAYLOAD. Bytes:
  // circles/probe.h.
  MP_PACKET_PROBE = MP_PACKET_KINDS,
  // The launches of a circle of waits fail; the key's launch is one of them. Bytes:
  // circles/probe.h.
  MP_PACKET_CIRCLE,
} mp_packet_kind_t;

// The two parts of a packet's words[0]: mp_packet_kind and mp_packet_place.
static inline mp_packet_kind_t mp_packet_kind(const mp_packet_t *packet) {
  return (mp_packet_kind_t)(packet->envelope.words[0] & 0xff);
}
static inline uint32_t mp_packet_place(const mp_packet_t *packet) {
  return packet->envelope.words[0] >> 8;
}

// The functions of sessions/session.h that routers call; sessions are opaque to them. They take the
// session's lock; most are called with the router's lock held.
typedef struct {
  mp_session_t *(*retain)(mp_session_t *session);
  void (*release)(mp_session_t *session);
  // Hands over a packet of this launch. True: the thread that got the packet calls `carry_on` when
  // the router's lock is free.
  bool (*deliver)(mp_session_t *session, mp_packet_t *packet);
  // Does the work that a packet has made possible. Only the lock of mp_world_work_off is held; work
  // that needs that one free is left in *followup.
  void (*carry_on)(mp_session_t *session, mp_followup_t *followup);
  // The process with this rank sends no more; `why` is borrowed.
  void (*lose)(mp_session_t *session, uint32_t rank, mp_status_t why);
  // The same for a process that was replaced by another one, which other processes of the launch
  // may not know yet.
  void (*replace)(mp_session_t *session, uint32_t rank, mp_status_t why);
  // The launch fails with `error`, which is consumed.
  void (*poison)(mp_session_t *session, mp_status_t error);
  // Appends where participants of this process wait for other processes, if they do.
  void (*describe_wait)(mp_session_t *session, mp_strbuf_t *out);
  // True when some participants of this process were launched and are not done.
  bool (*is_moving)(mp_session_t *session);
  // True when all participants of this process were launched or refused.
  bool (*is_complete)(mp_session_t *session);
} mp_session_calls_t;

// Opens the client's endpoint; packets come from now on. `world` and `client` are borrowed.
// `number` is the client's, unique in its world over time. `exit_timeout_s`: how many seconds a
// process that exits with status 0 waits for launches that other processes take part in.
// RESOURCE_EXHAUSTED when memory is short.
MP_NODISCARD mp_status_t mp_endpoint_open(mp_world_t *world, uint64_t number, mp_client_t *client,
                                          const mp_session_calls_t *calls, double exit_timeout_s,
                                          mp_endpoint_t **out_endpoint);
// Called when the client's users have released it. True when launches that other processes take
// part in are still in flight: the client has to live until mp_endpoint_is_spent. Launches that can
// never be complete, because some devices of this process were not launched, fail with CANCELLED.
bool mp_endpoint_linger(mp_endpoint_t *endpoint);
// True when mp_endpoint_linger returned true and those launches are over now.
bool mp_endpoint_is_spent(mp_endpoint_t *endpoint);
// Whether `carry_on` (mp_session_calls_t) may be called for sessions of this endpoint.
bool mp_endpoint_carries(const mp_endpoint_t *endpoint);
// From now on workers do the work that packets make possible for the client's sessions. Work that
// has already begun is done when this returns.
void mp_endpoint_carry_no_more(mp_endpoint_t *endpoint);
// Closes the endpoint: when this returns, no packet is being delivered and none will be. Drops
// waiting packets and releases sessions. The endpoint itself lives until mp_endpoint_release.
// Closing twice, or NULL, has no effect.
void mp_endpoint_close(mp_endpoint_t *endpoint);
// Closes the endpoint if it is open, and frees it. NULL: nothing.
void mp_endpoint_release(mp_endpoint_t *endpoint);

// Called when this process exits with success: waits until it has done its part of its launches,
// because other processes may wait for it; at most for the exit timeout. No thread may make or
// release a client meanwhile.
void mp_router_finish_all(void);
// Called before a world ends (in tests): the world's router detaches from it and is freed. All
// clients of the world must have been released; launches that are still in flight are cancelled.
void mp_router_forget(mp_world_t *world);

// The endpoint's world and client, both borrowed.
mp_world_t *mp_endpoint_world(const mp_endpoint_t *endpoint);
mp_client_t *mp_endpoint_client(const mp_endpoint_t *endpoint);
// The key of a launch in packets: its number on its list of devices (below 2^48), combined with the
// client's number.
uint64_t mp_endpoint_launch_key(const mp_endpoint_t *endpoint, uint64_t number);

// The hash by which packets name a list of devices: `ids` is the hash of their numbers, and
// `ranks_of` ([num_devices]) gives the process of each. When a process of the list is restarted
// (collectives/transport/world_return.h), the list counts as a new one, and its launches are
// counted from the start. `out_returns`: the number of restarts so far.
uint64_t mp_endpoint_hash(const mp_endpoint_t *endpoint, uint64_t ids, uint32_t num_devices,
                          const uint32_t *ranks_of, uint64_t *out_returns);
// The number of restarts so far.
uint64_t mp_endpoint_num_returns(const mp_endpoint_t *endpoint);
// The number of this process's first launch on a list of devices, by its hash: 0, except in a
// restarted process. Other processes may have launched on the list before this program did, and
// have failed because it was missing; their next launch is the one after those.
uint64_t mp_endpoint_first_number(mp_endpoint_t *endpoint, uint64_t devices);

// The peers of a new session enter the endpoint, which retains the session. Packets that were early
// for launch `number` on this list of devices are delivered before this returns. Sessions of one
// list enter in the order of their numbers; a number that was passed over was refused, and entering
// it later fails with RESOURCE_EXHAUSTED, which is also the error when memory is short.
// FAILED_PRECONDITION when the endpoint is closed.
//
// If a process was restarted since the peers' hash was made (mp_endpoint_hash), the launch fails as
// if the process were lost.
MP_NODISCARD mp_status_t mp_endpoint_enter(mp_endpoint_t *endpoint, uint64_t devices,
                                           uint64_t number, mp_peers_t *peers);
// Called when there is no memory even for a session: the sessions of this launch in the other
// processes (`ranks`) fail with `code`, and the number is not used here.
void mp_endpoint_refuse(mp_endpoint_t *endpoint, uint64_t devices, uint64_t number,
                        uint32_t num_ranks, const uint32_t *ranks, mp_status_code_t code);
// Called when the session is over in this process: the endpoint releases it, and drops later
// packets for it.
void mp_endpoint_leave(mp_endpoint_t *endpoint, mp_peers_t *peers);

// What the coordinator of a distributed run reports about its processes (meant.c). It notices
// deaths later than the world does, but programs rely on it: a launch is *meant for* the processes
// that the coordinator had named when the launch was made, by their incarnations (the coordinator's
// own numbers, not the world's; never 0).
//
// Records the current incarnations of all ranks, [size of the world]; 0: unknown. Launches in
// flight fail if they were meant for a process that has been replaced.
void mp_endpoint_note_incarnations(mp_endpoint_t *endpoint, const uint64_t *incarnations);
// Records the incarnations of `count` ranks that the launch of these peers, which have entered, is
// meant for; ranks outside of the world are ignored. The launch fails at once if one of them takes
// part and was replaced.
void mp_endpoint_mean(mp_endpoint_t *endpoint, mp_peers_t *peers, size_t count, const int *ranks,
                      const int64_t *incarnations);

// ---- Inquiries (inquiry.c): packets about the waits of several launches ----

// Sets the function that is called when an inquiry has come, with the router's lock held; NULL:
// none. Inquiries from before are kept.
void mp_endpoint_on_inquiry(mp_endpoint_t *endpoint, void (*wake)(void *context), void *context);
// Takes the oldest inquiry that has come; NULL: there is none. The caller releases it.
mp_packet_t *mp_endpoint_take_inquiry(mp_endpoint_t *endpoint);
// The session, retained, of launch `number` on this list of devices; NULL: this process has not
// made it yet, or it is over here.
mp_session_t *mp_endpoint_find_session(mp_endpoint_t *endpoint, uint64_t devices, uint64_t number);
// The session, retained, that an inquiry is about; NULL as above.
mp_session_t *mp_endpoint_find_subject(mp_endpoint_t *endpoint, const mp_packet_t *inquiry);
// Whether this process has made the launch that an inquiry is about.
bool mp_endpoint_has_had_subject(mp_endpoint_t *endpoint, const mp_packet_t *inquiry);
// Sends a packet with a copy of the bytes, if there are any. Takes no lock. Errors are dropped: the
// router reports lost processes.
void mp_endpoint_send(const mp_endpoint_t *endpoint, uint32_t rank, const mp_envelope_t *envelope,
                      const void *bytes, size_t size);

// Calls `visit` with `context` for each session in the endpoint, with the router's lock held.
void mp_endpoint_visit(mp_endpoint_t *endpoint, void (*visit)(mp_session_t *session, void *context),
                       void *context);

#endif  // MINIPOD_SIM_RUNTIME_REMOTE_ROUTER_H_
