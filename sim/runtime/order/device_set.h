// Device sets: which launches of which participants belong together.
#ifndef MINIPOD_SIM_RUNTIME_ORDER_DEVICE_SET_H_
#define MINIPOD_SIM_RUNTIME_ORDER_DEVICE_SET_H_

#include "sim/runtime/sessions/session.h"

typedef struct mp_device_set_s mp_device_set_t;

// A device set: the list of devices that launches run on, in logical order. All executables with
// the same list share one. Launches of programs with collectives are counted per participant: the
// n-th launch on each belongs to the n-th session, in all processes alike. With the option `match`:
// groups, programs whose collectives do not connect all devices have sets of their own, in which
// only the connected devices take part (runs/partners.h). `num_launches` and `waiting` change under
// the client's launch lock; the rest never changes.
struct mp_device_set_s {
  mp_device_set_t *next;  // in the client's list, under the launch lock
  uint32_t num_devices;
  const uint32_t *ids;     // [num_devices] global
  const bool *takes_part;  // [num_devices]
  uint64_t *num_launches;  // [num_devices]
  mp_session_t *waiting;   // retained: sessions in which launches of this process are missing
  bool is_shared;          // some devices belong to other processes
  // Then; otherwise, or if the other processes do not exist, endpoint is NULL and num_ranks 0.
  mp_endpoint_t *endpoint;  // the client's
  uint64_t ids_hash;        // of the list of ids, and of those that take part
  // `hash` names the set in packets: mp_endpoint_hash with `num_returns`, the number of restarts.
  // After a restart the launches are counted from the start; both change under the launch lock.
  uint64_t hash, num_returns;
  bool has_begun;            // the first launch number of this process is known
  const uint32_t *ranks_of;  // [num_devices] the process that each device belongs to
  uint32_t num_members;
  const uint32_t *rank_of_member;  // [num_members] of each device that takes part
  uint32_t num_ranks;
  const uint32_t *ranks;  // [num_ranks] the other processes of these
};

// The caller holds the launch lock for all functions but mp_device_set_release.

// The set of these devices, made when it is new; `takes_part` NULL: all take part. Borrowed: it
// lives as long as the client. RESOURCE_EXHAUSTED when memory is short.
MP_NODISCARD mp_status_t mp_device_set_get(mp_client_t *client, const uint32_t *ids,
                                           const bool *takes_part, uint32_t num_devices,
                                           mp_device_set_t **out_set);
// The session (retained) that the participant's next launch belongs to. Made if this participant is
// the first. RESOURCE_EXHAUSTED when memory is short.
MP_NODISCARD mp_status_t mp_device_set_session(mp_device_set_t *set, uint32_t logical,
                                               mp_session_t **out_session);
// The launch happens on `device`, or on a side stream of it: it is counted, and `run` joins the
// session that mp_device_set_session gave.
void mp_device_set_join(mp_device_set_t *set, uint32_t logical, mp_session_t *session,
                        mp_device_t *device, mp_run_t *run);
// The launch failed on this device before it began. It counts all the same, and the launches that
// belong to it, on other devices of this process and of others, fail with `error` (borrowed).
void mp_device_set_skip(mp_device_set_t *set, uint32_t logical, mp_status_t error);
// Frees the set when its client ends, with the sessions whose missing launches never came.
void mp_device_set_release(mp_device_set_t *set);

#endif  // MINIPOD_SIM_RUNTIME_ORDER_DEVICE_SET_H_
