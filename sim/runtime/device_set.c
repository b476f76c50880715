// Device sets: which launches of which participants belong together.
#include "sim/base/alloc.h"
#include "sim/runtime/executable_impl.h"
#include "sim/runtime/session.h"

mp_status_t mp_device_set_get(mp_client_t *client, const uint32_t *ids, uint32_t num_devices,
                              mp_device_set_t **out_set) {
  size_t bytes = num_devices * sizeof(*ids);
  for (mp_device_set_t *set = client->sets; set != NULL; set = set->next) {
    if (set->num_devices == num_devices && memcmp(set->ids, ids, bytes) == 0) {
      *out_set = set;
      return NULL;
    }
  }
  mp_device_set_t *set = mp_calloc(1, sizeof(*set) + num_devices * sizeof(uint64_t) + bytes);
  MP_RETURN_IF_NULL(set);
  set->num_devices = num_devices;
  set->num_launches = (uint64_t *)(set + 1);
  uint32_t *copy = (uint32_t *)(set->num_launches + num_devices);
  memcpy(copy, ids, bytes);
  set->ids = copy;
  set->next = client->sets;
  client->sets = set;
  *out_set = set;
  return NULL;
}

mp_status_t mp_device_set_session(mp_device_set_t *set, uint32_t logical,
                                  mp_session_t **out_session) {
  uint64_t number = set->num_launches[logical];
  mp_session_t *session = set->waiting;
  while (session != NULL && session->number != number) session = session->next;
  if (session == NULL) {
    MP_RETURN_IF_ERROR(mp_session_create(set->num_devices, set->ids, &session));
    session->number = number;
    session->next = set->waiting;
    set->waiting = session;
  }
  *out_session = mp_session_retain(session);
  return NULL;
}

void mp_device_set_join(mp_device_set_t *set, uint32_t logical, mp_session_t *session,
                        mp_run_t *run) {
  set->num_launches[logical] += 1;
  if (!mp_session_join(session, logical, run)) return;
  mp_session_t **link = &set->waiting;
  while (*link != session) link = &(*link)->next;
  *link = session->next;
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
