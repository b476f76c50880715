#include "sim/runtime/order/device_set.h"

#include <string.h>

#include "sim/base/alloc.h"
#include "sim/base/hash.h"
#include "sim/runtime/devices/device_impl.h"
#include "sim/runtime/order/launch_order.h"

static uint32_t device_set_rank_of(const mp_client_t *client, uint32_t id) {
  return (uint32_t)client->devices[id].info->process_index;
}

// Fills in the rank of each device, and the lists of those that take part; false: there are no
// other ranks.
static bool device_set_list_ranks(const mp_client_t *client, mp_device_set_t *set,
                                  uint32_t *ranks_of, uint32_t *rank_of_member, uint32_t *ranks) {
  for (uint32_t i = 0; i < set->num_devices; ++i) {
    ranks_of[i] = device_set_rank_of(client, set->ids[i]);
    if (!set->takes_part[i]) continue;
    rank_of_member[set->num_members++] = ranks_of[i];
    bool is_known = client->devices[set->ids[i]].is_local;
    for (uint32_t r = 0; r < set->num_ranks && !is_known; ++r) is_known = ranks[r] == ranks_of[i];
    if (!is_known) ranks[set->num_ranks++] = ranks_of[i];
  }
  return set->num_ranks != 0;
}

static bool device_set_is_whole(const bool *takes_part, uint32_t num_devices) {
  return memchr(takes_part, false, num_devices * sizeof(*takes_part)) == NULL;
}

static bool device_set_is_of(const mp_device_set_t *set, const uint32_t *ids,
                             const bool *takes_part, uint32_t num_devices) {
  if (set->num_devices != num_devices) return false;
  if (memcmp(set->ids, ids, num_devices * sizeof(*ids)) != 0) return false;
  if (takes_part == NULL) return device_set_is_whole(set->takes_part, num_devices);
  return memcmp(set->takes_part, takes_part, num_devices * sizeof(*takes_part)) == 0;
}

// The name of the set in packets.
static void device_set_name(mp_device_set_t *set) {
  set->hash = mp_endpoint_hash(set->endpoint, set->ids_hash, set->num_members, set->rank_of_member,
                               &set->num_returns);
}

static mp_status_t device_set_create(mp_client_t *client, const uint32_t *ids,
                                     const bool *takes_part, uint32_t num_devices,
                                     mp_device_set_t **out_set) {
  const size_t n = num_devices;
  mp_device_set_t *set = mp_calloc(
      1, sizeof(*set) + n * (sizeof(uint64_t) + 4 * sizeof(uint32_t) + sizeof(*takes_part)));
  MP_RETURN_IF_NULL(set);
  set->num_devices = num_devices;
  set->num_launches = (uint64_t *)(set + 1);
  uint32_t *lists = (uint32_t *)(set->num_launches + n);
  bool *part = (bool *)(lists + 4 * n);
  memcpy(lists, ids, n * sizeof(*ids));
  for (size_t i = 0; i < n; ++i) part[i] = takes_part == NULL || takes_part[i];
  set->ids = lists;
  set->takes_part = part;
  set->ids_hash = mp_hash_bytes(MP_HASH_START, ids, n * sizeof(*ids));
  if (!device_set_is_whole(part, num_devices)) {
    set->ids_hash = mp_hash_bytes(set->ids_hash, part, n * sizeof(*part));
  }
  set->ranks_of = lists + n;
  set->rank_of_member = lists + 2 * n;
  set->ranks = lists + 3 * n;
  set->is_shared = device_set_list_ranks(client, set, lists + n, lists + 2 * n, lists + 3 * n);
  if (set->is_shared && client->is_for_all) {
    set->num_ranks = 0;
  } else if (set->is_shared) {
    set->endpoint = client->endpoint;
    device_set_name(set);
  }
  *out_set = set;
  return NULL;
}

mp_status_t mp_device_set_get(mp_client_t *client, const uint32_t *ids, const bool *takes_part,
                              uint32_t num_devices, mp_device_set_t **out_set) {
  mp_launches_t *launches = client->launches;
  mp_lock_assert_held(&launches->lock);
  mp_device_set_t *set = launches->sets;
  while (set != NULL && !device_set_is_of(set, ids, takes_part, num_devices)) set = set->next;
  if (set == NULL) {
    MP_RETURN_IF_ERROR(device_set_create(client, ids, takes_part, num_devices, &set));
    set->next = launches->sets;
    launches->sets = set;
  }
  *out_set = set;
  return NULL;
}

// Some participants of this process have counted this launch already, without a session: it was
// refused, and there was no memory for the session that would have notified the others
// (mp_device_set_skip). These participants never come, so the new session fails at once.
static void device_set_skip_refused(const mp_device_set_t *set, mp_session_t *session) {
  for (uint32_t i = 0; i < set->num_devices; ++i) {
    if (set->num_launches[i] <= session->number) continue;
    mp_session_poison(session, mp_status_out_of_memory());
    (void)mp_session_skip(
        session, i);  // never the last: the participant that made the session has not joined yet
  }
}

static mp_status_t device_set_make_session(const mp_device_set_t *set, uint64_t number,
                                           mp_session_t **out_session) {
  mp_session_t *session;
  MP_RETURN_IF_ERROR(mp_session_create(set->num_devices, set->ids, &session));
  session->number = number;
  if (set->endpoint != NULL) {
    mp_status_t status =
        mp_session_connect(session, &(mp_session_link_t){.endpoint = set->endpoint,
                                                         .devices = set->hash,
                                                         .number = number,
                                                         .num_returns = set->num_returns,
                                                         .ranks_of = set->ranks_of,
                                                         .ranks = set->ranks,
                                                         .num_ranks = set->num_ranks});
    if (status != NULL) {
      mp_session_release(session);
      return status;
    }
  }
  for (uint32_t i = 0; i < set->num_devices; ++i) {
    if (!set->takes_part[i]) mp_session_leave_out(session, i);
  }
  device_set_skip_refused(set, session);
  *out_session = session;
  return NULL;
}

// If a process of the set has been restarted, all processes treat the set as a new one and count
// its launches from the start. Not while launches of this process are missing on some of its
// devices: those belong to the time before the restart, and fail.
static void device_set_look_for_returns(mp_device_set_t *set) {
  if (set->endpoint == NULL || set->waiting != NULL) return;
  if (mp_endpoint_num_returns(set->endpoint) == set->num_returns) return;
  const uint64_t before = set->hash;
  device_set_name(set);
  if (set->hash == before) return;
  set->has_begun = false;
}

// Begins to count the launches of a set when this process first launches on it.
static void device_set_begin(mp_device_set_t *set) {
  if (set->endpoint == NULL || set->has_begun) return;
  set->has_begun = true;
  const uint64_t first = mp_endpoint_first_number(set->endpoint, set->hash);
  for (uint32_t i = 0; i < set->num_devices; ++i) set->num_launches[i] = first;
}

mp_status_t mp_device_set_session(mp_device_set_t *set, uint32_t logical,
                                  mp_session_t **out_session) {
  MP_ASSERT(logical < set->num_devices);
  device_set_look_for_returns(set);
  device_set_begin(set);
  uint64_t number = set->num_launches[logical];
  mp_session_t *session = set->waiting;
  while (session != NULL && session->number != number) session = session->next;
  if (session == NULL) {
    MP_RETURN_IF_ERROR(device_set_make_session(set, number, &session));
    session->next = set->waiting;
    set->waiting = session;
  }
  *out_session = mp_session_retain(session);
  return NULL;
}

// All launches of this process have come, so the session will not be looked up any more.
static void device_set_forget(mp_device_set_t *set, mp_session_t *session) {
  mp_session_t **link = &set->waiting;
  while (*link != session) {
    MP_ASSERT(*link != NULL);  // it is in the list
    link = &(*link)->next;
  }
  *link = session->next;
  mp_session_release(session);
}

void mp_device_set_join(mp_device_set_t *set, uint32_t logical, mp_session_t *session,
                        mp_device_t *device, mp_run_t *run) {
  mp_lock_assert_held(&device->client->launches->lock);
  set->num_launches[logical] += 1;
  if (mp_session_join(session, logical, device, run)) device_set_forget(set, session);
}

void mp_device_set_skip(mp_device_set_t *set, uint32_t logical, mp_status_t error) {
  mp_session_t *session;
  mp_status_t status = mp_device_set_session(set, logical, &session);
  // The launch counts in any case, because it counts on the other devices of the set.
  const uint64_t number = set->num_launches[logical]++;
  if (status != NULL) {
    mp_status_ignore(status);
    // The other participants of this process get an error when they come (device_set_skip_refused);
    // the other processes are notified now.
    if (set->endpoint == NULL) return;
    mp_endpoint_refuse(set->endpoint, set->hash, number, set->num_ranks, set->ranks,
                       mp_status_code(error));
    return;
  }
  mp_session_poison(session, mp_status_retain(error));
  if (mp_session_skip(session, logical)) device_set_forget(set, session);
  mp_session_release(session);
}

void mp_device_set_release(mp_device_set_t *set) {
  while (set->waiting != NULL) {
    mp_session_t *next = set->waiting->next;
    mp_session_release(set->waiting);
    set->waiting = next;
  }
  mp_free(set);
}
