#include "collectives/transport/bootstrap/far.h"

#include <string.h>
#include <sys/random.h>

#include "collectives/transport/hosts/ucx.h"
#include "collectives/transport/world_impl.h"

mp_status_t mp_far_open(mp_world_t *world, mp_strbuf_t *card, mp_transport_t **out_transport) {
  const mp_ucx_library_t *library = NULL;
  mp_transport_t *transport = NULL;
  MP_RETURN_IF_ERROR(mp_ucx_library_open(&library));
  mp_seal_key_t key = {{0, 0}};
  if (world->rank == 0 && getrandom(&key, sizeof(key), 0) != (ssize_t)sizeof(key)) {
    return mp_status_make(MP_UNAVAILABLE, "there are no random numbers for the secret of the job");
  }
  MP_RETURN_IF_ERROR(mp_ucx_create(world, library, &transport));
  mp_world_add_transport(world, transport);
  const mp_str_t address = mp_ucx_address(transport);
  mp_strbuf_append(card, (const char *)&key, sizeof(key));
  mp_strbuf_append(card, address.data, address.size);
  *out_transport = transport;
  return mp_strbuf_status(card);
}

static mp_status_t far_take_card(mp_world_t *world, const int64_t *leaders, uint32_t rank,
                                 const mp_strbuf_t *card, mp_transport_t *transport) {
  char name[MP_PEER_NAME_BYTES];
  mp_world_peer_name(world, rank, name);
  mp_seal_key_t key;
  if (card->size <= sizeof(key)) return mp_status_make(MP_INTERNAL, "%s has no address", name);
  memcpy(&key, card->data, sizeof(key));
  if (rank == 0) mp_ucx_set_key(transport, &key);
  if (leaders[rank] == leaders[world->rank]) return NULL;
  mp_status_t status = mp_ucx_connect(
      transport, rank, (mp_str_t){card->data + sizeof(key), card->size - sizeof(key)});
  if (status != NULL) return mp_status_annotate(status, "%s", name);
  atomic_store(&world->peers[rank].transport, transport);
  return NULL;
}

mp_status_t mp_far_take_secret(const mp_strbuf_t *card, mp_transport_t *transport) {
  mp_seal_key_t key;
  if (card->size <= sizeof(key)) return mp_status_make(MP_INTERNAL, "process 0 has no address");
  memcpy(&key, card->data, sizeof(key));
  mp_ucx_set_key(transport, &key);
  return NULL;
}

mp_status_t mp_far_knock(mp_world_t *world, uint32_t rank, uint64_t incarnation,
                         const mp_strbuf_t *card, const mp_knock_t *knock,
                         mp_transport_t *transport) {
  const size_t begin = sizeof(mp_seal_key_t);
  if (card->size <= begin) {
    return mp_status_make(MP_INTERNAL, "process %u has no address", rank);
  }
  atomic_store(&world->peers[rank].transport, transport);
  const mp_str_t address = {card->data + begin, card->size - begin};
  return mp_ucx_knock(transport, rank, incarnation, address, knock);
}

mp_status_t mp_far_connect(const mp_store_talk_t *talk, const char *folder, const int64_t *leaders,
                           mp_transport_t *transport) {
  mp_status_t status = NULL;
  for (uint32_t rank = 0; rank < talk->size && status == NULL; ++rank) {
    mp_strbuf_t card;
    mp_strbuf_init(&card);
    status = mp_store_hear(talk, folder, rank, &card);
    if (status == NULL) status = far_take_card(talk->world, leaders, rank, &card, transport);
    mp_strbuf_deinit(&card);
  }
  return status;
}
