// The participants of this process that a participant waits for, directly or not, and what they
// wait for in other processes.
//
// A run waits either at a collective or for a message (it is parked), or for an earlier run of its
// stream. So what a participant waits for is found by going from one to the other. Where that leads
// to a run that is running, or that waits for an input, a launch or a foreign function, nothing is
// found: such a run may continue. A launch that has not come yet would be queued at the end of the
// device's stream, so it waits for the first run there; but not if a program has made calls, after
// which a launch may get a side stream.
#ifndef MINIPOD_SIM_RUNTIME_CIRCLES_BLOCKED_H_
#define MINIPOD_SIM_RUNTIME_CIRCLES_BLOCKED_H_

#include "sim/base/containers/array.h"
#include "sim/runtime/sessions/session.h"

// A participant of this process that cannot continue before others do.
typedef struct {
  mp_session_t *session;  // retained
  uint32_t logical;
  uint64_t changes;  // its session's mp_peers_t.num_changes when its waits were read
  char *place;       // owned; where it waits for other processes: "device 1 waits in f at ..."
} mp_blocked_t;

// A participant of another process for which one of them waits.
typedef struct {
  uint32_t blocked;  // its index
  uint32_t missing;  // in the session of that one
  bool is_message;
  uint64_t group;  // as in mp_wait_t
  uint32_t number;
} mp_blocked_wait_t;

typedef struct {
  MP_ARRAY(mp_blocked_t) blocked;
  MP_ARRAY(mp_blocked_wait_t) waits;
  // Those that are not parked themselves: (session, logical) of `blocked` before the earlier run of
  // their stream was found. Used during the search.
  MP_ARRAY(mp_blocked_t) queued;
  bool has_failed;  // memory was short: something may be missing
} mp_blocked_search_t;

// What another process asks about: a participant of this process that it waits for.
typedef struct {
  mp_session_t *session;  // borrowed; NULL: the launch has not come, or is over
  uint32_t missing;
  bool is_message;
  uint64_t group;
  uint32_t number;
  const mp_packet_t *packet;  // borrowed; names the launch and the participant's device
} mp_blocked_question_t;

// Finds what the first run of this stream waits for, if it is parked: at most one item of
// `blocked`, and its waits for other processes. The caller holds the launch lock.
void mp_blocked_find_first(mp_device_t *device, mp_blocked_search_t *out_search);
// Finds all participants of this process that the missing one waits for, and itself if it is
// parked; nothing if it has already done what it is waited for. If its launch has not come, it
// waits for the first run of its device. All that is found was true at one moment during the call.
// No lock is held. False: runs were moving meanwhile, so nothing is proven.
bool mp_blocked_find(mp_client_t *client, const mp_blocked_question_t *question,
                     mp_blocked_search_t *out_search);
// Releases what was found. The search must have been zeroed before it was used.
void mp_blocked_deinit(mp_blocked_search_t *search);

#endif  // MINIPOD_SIM_RUNTIME_CIRCLES_BLOCKED_H_
