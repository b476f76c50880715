#include "sim/model/faults/link_users.h"

#include "sim/base/alloc.h"
#include "sim/base/assert.h"

struct mp_link_users_s {
  uint32_t num_links;
  const mp_collective_t *first[];  // [num_links]
};

typedef struct {
  mp_network_t *network;
  mp_link_users_t *users;
  const int32_t *ids;
  const mp_collective_t *collective;
} look_t;

static void link_users_note(const look_t *look, const mp_transfer_t *transfer) {
  for (uint32_t i = 0; i < transfer->num_uses; ++i) {
    const mp_collective_t **first = &look->users->first[transfer->uses[i].link];
    if (*first == NULL) *first = look->collective;
  }
}

static mp_status_t link_users_look_at_pairs(const look_t *look) {
  const mp_collective_t *collective = look->collective;
  for (uint32_t i = 0; i < collective->num_pairs; ++i) {
    mp_transfer_t transfer;
    MP_RETURN_IF_ERROR(mp_network_message(
        look->network, mp_network_device(look->ids[collective->pairs[2 * i]]),
        mp_network_device(look->ids[collective->pairs[2 * i + 1]]), 1, &transfer));
    link_users_note(look, &transfer);
  }
  return NULL;
}

static mp_status_t link_users_look_at_groups(const look_t *look) {
  for (uint32_t g = 0; g < look->collective->groups->num_groups; ++g) {
    const mp_traffic_t *traffic;
    MP_RETURN_IF_ERROR(mp_network_traffic(look->network, look->collective, g, look->ids, &traffic));
    for (uint32_t s = 0; s < traffic->num_stages; ++s) {
      const mp_stage_t *stage = &traffic->stages[s];
      for (uint32_t t = 0; t < stage->num_transfers; ++t)
        link_users_note(look, &stage->transfers[t]);
    }
  }
  return NULL;
}

static mp_status_t link_users_look(look_t *look, const mp_program_t *program) {
  for (uint32_t i = 0; i < program->num_commands; ++i) {
    look->collective = program->commands[i].collective;
    if (look->collective == NULL) continue;
    const mp_collective_kind_t kind = look->collective->kind;
    const bool has_pairs = kind == MP_COLLECTIVE_PERMUTE || kind == MP_COLLECTIVE_SEND_RECV;
    MP_RETURN_IF_ERROR(has_pairs ? link_users_look_at_pairs(look)
                                 : link_users_look_at_groups(look));
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
    look_t look = {.network = network, .users = users, .ids = copy};
    status = link_users_look(&look, program);
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
