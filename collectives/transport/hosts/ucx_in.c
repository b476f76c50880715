// Receiving by the UCX transport.
#include <string.h>

#include "collectives/transport/hosts/ucx_impl.h"
#include "sim/base/alloc.h"
#include "sim/base/assert.h"

// ---- Notes of what has come ----

mp_status_t mp_ucx_make_spares(mp_ucx_t *self) {
  self->spares = mp_calloc(MP_UCX_SPARE_INS, sizeof(*self->spares));
  MP_RETURN_IF_NULL(self->spares);
  for (uint32_t i = 0; i < MP_UCX_SPARE_INS; ++i) {
    self->spares[i].next = self->spare;
    self->spare = &self->spares[i];
  }
  return NULL;
}

static mp_ucx_in_t *ucx_in_make(mp_ucx_t *self, const mp_ucx_header_t *header, void *data) {
  mp_ucx_in_t *in = self->spare;
  if (in != NULL) {
    self->spare = in->next;
  } else {
    in = mp_malloc(sizeof(*in));
    if (in == NULL) return NULL;
  }
  *in = (mp_ucx_in_t){.state = MP_UCX_HELD, .data = data, .header = *header};
  return in;
}

static void ucx_in_free(mp_ucx_t *self, mp_ucx_in_t *in) {
  mp_packet_release(in->packet);
  if (in < self->spares || in >= self->spares + MP_UCX_SPARE_INS) {
    mp_free(in);
    return;
  }
  in->next = self->spare;
  self->spare = in;
}

// ---- Arrival ----

// Whether a message belongs to this job and is for this process. All others are ignored: strangers
// can send to an open port.
static bool ucx_in_is_sound(const mp_ucx_t *self, const mp_ucx_header_t *header, size_t bytes) {
  const mp_world_t *world = self->world;
  return header->seal ==
             mp_seal(&self->key, &header->kind, sizeof(*header) - sizeof(header->seal)) &&
         header->to == world->rank && header->from < world->size && header->from != world->rank &&
         header->bytes == bytes;
}

// Whether it is from the process that the current connection leads to, and not from its
// predecessor.
static bool ucx_in_is_current(const mp_ucx_t *self, const mp_ucx_header_t *header) {
  const mp_ucx_peer_t *peer = &self->peers[header->from];
  return !peer->is_dropped && header->incarnation == peer->incarnation;
}

// Makes the packet of a message, whose bytes are at `here` or, if that is NULL, to be fetched into
// it. False, without any effect: memory is short.
static bool ucx_in_open(mp_ucx_t *self, mp_ucx_in_t *in, const void *here) {
  const mp_ucx_header_t *header = &in->header;
  const bool is_inline = header->bytes == 0 || (here != NULL && header->bytes <= MP_INLINE_BYTES);
  mp_payload_block_t *block = NULL;
  if (is_inline) {
    in->packet =
        mp_packet_create_inline(self->world, header->from, &header->envelope, here, header->bytes);
  } else {
    block = mp_world_take_block(self->world, header->bytes);
    if (block == NULL) return false;
    in->packet = mp_packet_create(self->world, header->from, &header->envelope, block);
    if (in->packet == NULL) mp_payload_block_release(block);
  }
  if (in->packet == NULL) return false;
  if (is_inline || here != NULL) {
    if (!is_inline) memcpy(mp_payload_block_data(block), here, header->bytes);
    in->state = MP_UCX_THERE;
    return true;
  }
  in->state = MP_UCX_FETCHING;
  if (mp_ucx_engine_fetch(self->engine, in->data, mp_payload_block_data(block), header->bytes,
                          &in->item)) {
    return true;
  }
  in->state = MP_UCX_HELD;
  mp_packet_release(in->packet);
  in->packet = NULL;
  return false;
}

// Inserts a message into its peer's list, by number; false when the list has its number already.
static bool ucx_in_queue(mp_ucx_peer_t *peer, mp_ucx_in_t *in) {
  mp_ucx_in_t *previous = peer->ins.last;
  while (previous != NULL && previous->header.number > in->header.number) {
    previous = previous->prev;
  }
  if (previous != NULL && previous->header.number == in->header.number) return false;
  mp_ucx_in_t *following = previous == NULL ? peer->ins.first : previous->next;
  if (following == NULL) {
    MP_LIST_APPEND(&peer->ins, in, prev, next);
  } else {
    MP_LIST_INSERT_BEFORE(&peer->ins, following, in, prev, next);
  }
  return true;
}

bool mp_ucx_came(void *context, const void *bytes, size_t header_bytes, void *data, size_t size,
                 bool is_here) {
  mp_ucx_t *self = context;
  mp_ucx_header_t header;
  if (header_bytes != sizeof(header)) return false;
  memcpy(&header, bytes, sizeof(header));
  if (!ucx_in_is_sound(self, &header, size)) return false;
  if (header.kind == MP_UCX_KNOCK) {
    if (is_here) mp_ucx_note_knock(self, &header, data);
    return false;
  }
  if (!ucx_in_is_current(self, &header)) return false;
  mp_ucx_peer_t *peer = &self->peers[header.from];
  peer->was_greeted = true;  // any message proves the connection
  if (header.kind == MP_UCX_HEARD) {
    if (header.number == peer->goodbye) mp_ucx_hear(self, peer);
    return false;
  }
  if (header.kind != MP_UCX_PACKET || header.number < peer->next_in) return false;
  mp_ucx_in_t *in = ucx_in_make(self, &header, data);
  if (in == NULL) {
    mp_ucx_fail(self, header.from, MP_UCS_ERR_NO_MEMORY);
    return false;
  }
  if (!ucx_in_queue(peer, in)) {
    ucx_in_free(self, in);
    return false;
  }
  const bool is_taken = (is_here || size == 0) && ucx_in_open(self, in, data);
  return !is_taken && data != NULL;
}

void mp_ucx_fetched(void *context, mp_ucx_item_t *item, mp_ucs_status_t status) {
  mp_ucx_t *self = context;
  mp_ucx_in_t *in = (mp_ucx_in_t *)item;
  if (in->is_orphan) {
    MP_LIST_REMOVE(&self->orphans, in, prev, next);
    ucx_in_free(self, in);
  } else if (status == MP_UCS_OK) {
    in->state = MP_UCX_THERE;
  } else {
    mp_ucx_fail(self, in->header.from,
                status);  // it stays in the list, and is freed with the others
    in->state = MP_UCX_HELD;
    in->data = NULL;
  }
}

// ---- Delivery ----

bool mp_ucx_deliver_in(mp_ucx_t *self, uint32_t from) {
  mp_ucx_peer_t *peer = &self->peers[from];
  for (mp_ucx_in_t *in = peer->ins.first; in != NULL && !peer->has_failed; in = in->next) {
    if (in->state == MP_UCX_HELD && !ucx_in_open(self, in, NULL)) {
      self->lacks_memory = true;
      break;
    }
  }
  bool did = false;
  while (peer->ins.first != NULL) {
    mp_ucx_in_t *in = peer->ins.first;
    if (in->state != MP_UCX_THERE || in->header.number != peer->next_in) break;
    MP_LIST_REMOVE(&peer->ins, in, prev, next);
    ++peer->next_in;
    if (mp_world_is_goodbye(&in->header.envelope)) {
      peer->owes_heard = true;
      peer->heard = in->header.number;
    }
    mp_packet_t *packet = in->packet;
    in->packet = NULL;
    ucx_in_free(self, in);
    mp_world_arrive(self->world, packet);
    did = true;
  }
  return did;
}

void mp_ucx_drop_ins(mp_ucx_t *self, uint32_t from) {
  mp_ucx_peer_t *peer = &self->peers[from];
  while (peer->ins.first != NULL) {
    mp_ucx_in_t *in = peer->ins.first;
    MP_LIST_REMOVE(&peer->ins, in, prev, next);
    if (in->state == MP_UCX_FETCHING) {
      in->is_orphan = true;
      MP_LIST_APPEND(&self->orphans, in, prev, next);
      continue;
    }
    if (in->state == MP_UCX_HELD && in->data != NULL) mp_ucx_engine_refuse(self->engine, in->data);
    ucx_in_free(self, in);
  }
}

void mp_ucx_forget_ins(mp_ucx_t *self) {
  for (uint32_t rank = 0; rank < self->world->size; ++rank) {
    mp_ucx_peer_t *peer = &self->peers[rank];
    while (peer->ins.first != NULL) {
      mp_ucx_in_t *in = peer->ins.first;
      MP_LIST_REMOVE(&peer->ins, in, prev, next);
      ucx_in_free(self, in);
    }
  }
  while (self->orphans.first != NULL) {
    mp_ucx_in_t *in = self->orphans.first;
    MP_LIST_REMOVE(&self->orphans, in, prev, next);
    ucx_in_free(self, in);
  }
}
