#include "sim/model/faults/link_users.h"

#include "sim/base/alloc.h"
#include "sim/base/assert.h"
#include "sim/model/network/traffic/traffic.h"

struct mp_link_users_s {
  uint32_t num_links;
  const mp_collective_t *first[];  // [num_links]
};

// A collective whose links are looked at.
typedef struct {
  mp_link_users_t *users;
  const mp_collective_t *collective;
} look_t;

static void link_users_note(void *context, const mp_transfer_t *transfer) {
  const look_t *look = context;
  for (uint32_t i = 0; i < transfer->num_uses; ++i) {
    const mp_collective_t **first = &look->users->first[transfer->uses[i].link];
    if (*first == NULL) *first = look->collective;
  }
}

static mp_status_t link_users_look(mp_network_t *network, const mp_program_t *program,
                                   const int32_t *ids, mp_link_users_t *users) {
  for (uint32_t i = 0; i < program->num_commands; ++i) {
    look_t look = {users, program->commands[i].collective};
    if (look.collective == NULL) continue;
    MP_RETURN_IF_ERROR(
        mp_network_visit_round(network, look.collective, ids, link_users_note, &look));
  }
  return NULL;
}

mp_status_t mp_link_users_create(mp_network_t *network, const mp_program_t *program,
                                 uint32_t num_devices, const uint32_t *ids,
                                 mp_link_users_t **out_users) {
  const uint32_t num_links = mp_network_num_links(network);
  int32_t *copy = mp_calloc(num_devices, sizeof(*copy));
  mp_link_users_t *users =
      mp_calloc(1, sizeof(*users) + num_links * sizeof(const mp_collective_t *));
  mp_status_t status = copy == NULL || users == NULL ? mp_status_out_of_memory() : NULL;
  if (status == NULL) {
    users->num_links = num_links;
    for (uint32_t i = 0; i < num_devices; ++i) copy[i] = (int32_t)ids[i];
    status = link_users_look(network, program, copy, users);
  }
  mp_free(copy);
  if (status != NULL) {
    mp_link_users_release(users);
    return status;
  }
  *out_users = users;
  return NULL;
}

void mp_link_users_release(mp_link_users_t *users) {
  mp_free(users);
}

const mp_collective_t *mp_link_users_find(const mp_link_users_t *users, uint32_t link) {
  MP_ASSERT(link < users->num_links);
  return users->first[link];
}
