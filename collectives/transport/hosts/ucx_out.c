// Sending by the UCX transport.
#include "collectives/transport/hosts/ucx_impl.h"
#include "sim/base/alloc.h"

mp_ucx_out_t *mp_ucx_make_out(const mp_ucx_t *self, mp_ucx_kind_t kind, uint32_t to) {
  mp_ucx_out_t *out = mp_calloc(1, sizeof(*out));
  if (out == NULL) return NULL;
  out->header.kind = kind;
  out->header.from = self->world->rank;
  out->header.to = to;
  out->header.incarnation = (uint32_t)self->world->peers[self->world->rank].incarnation;
  return out;
}

void mp_ucx_free_out(mp_ucx_out_t *out) {
  mp_payload_block_release(out->block);
  mp_free(out);
}

mp_status_t mp_ucx_send(mp_transport_t *transport, uint32_t to, const mp_envelope_t *envelope,
                        mp_payload_block_t *block) {
  mp_ucx_t *self = (mp_ucx_t *)transport;
  mp_ucx_out_t *out = mp_ucx_make_out(self, MP_UCX_PACKET, to);
  MP_RETURN_IF_NULL(out);
  out->header.envelope = *envelope;
  if (block != NULL && block->payload.bytes != 0) {
    out->header.bytes = block->payload.bytes;
    mp_payload_block_retain(block);
    out->block = block;
  }
  mp_lock(&self->lock);
  MP_QUEUE_PUSH(&self->fresh[to], out, next);
  self->has_fresh = true;
  // Under the lock: counted before the progress thread can take it and subtract it again. A goodbye
  // counts twice: until it is sent, and until it is acknowledged.
  atomic_fetch_add(&self->num_pending, mp_world_is_goodbye(envelope) ? 2 : 1);
  mp_unlock(&self->lock);
  mp_world_ring(self->world);
  return NULL;
}

void mp_ucx_take_fresh(mp_ucx_t *self) {
  mp_lock(&self->lock);
  for (uint32_t rank = 0; self->has_fresh && rank < self->world->size; ++rank) {
    MP_QUEUE_APPEND(&self->peers[rank].outs, &self->fresh[rank], next);
  }
  self->has_fresh = false;
  mp_unlock(&self->lock);
}

static void ucx_out_finish(mp_ucx_t *self, mp_ucx_out_t *out) {
  if (out->header.kind == MP_UCX_PACKET) atomic_fetch_sub(&self->num_pending, 1);
  mp_ucx_free_out(out);
}

void mp_ucx_sent(void *context, mp_ucx_item_t *item, mp_ucs_status_t status) {
  mp_ucx_t *self = context;
  mp_ucx_out_t *out = (mp_ucx_out_t *)item;
  const bool is_current = out->connection == self->peers[out->header.to].connection;
  if (status != MP_UCS_OK && is_current) mp_ucx_fail(self, out->header.to, status);
  MP_LIST_REMOVE(&self->sending, out, prev, next);
  ucx_out_finish(self, out);
}

void mp_ucx_hear(mp_ucx_t *self, mp_ucx_peer_t *peer) {
  if (peer->awaits_heard) atomic_fetch_sub(&self->num_pending, 1);
  peer->awaits_heard = false;
}

// Hands a message to the engine; false: memory is short.
static bool ucx_out_begin(mp_ucx_t *self, mp_ucx_out_t *out) {
  mp_ucx_header_t *header = &out->header;
  header->seal = mp_seal(&self->key, &header->kind, sizeof(*header) - sizeof(header->seal));
  out->connection = self->peers[header->to].connection;
  const void *data = out->block == NULL ? NULL : mp_payload_block_data(out->block);
  // In the list first, because it may be sent, and freed, before the engine returns.
  MP_LIST_APPEND(&self->sending, out, prev, next);
  if (mp_ucx_engine_send(self->engine, header->to, header, sizeof(*header), data, header->bytes,
                         &out->item)) {
    return true;
  }
  MP_LIST_REMOVE(&self->sending, out, prev, next);
  return false;
}

// A peer that has left waits only for this process's goodbye.
static bool ucx_out_is_in_vain(const mp_ucx_t *self, const mp_ucx_out_t *out) {
  // Relaxed: this same thread sets it.
  const atomic_bool *is_gone = &self->world->peers[out->header.to].is_gone;
  return atomic_load_explicit(is_gone, memory_order_relaxed) &&
         !mp_world_is_goodbye(&out->header.envelope);
}

// Sends a message of the transport itself, if it is owed; it stays owed while memory is short.
static void ucx_out_pay(mp_ucx_t *self, uint32_t to, mp_ucx_kind_t kind, uint64_t number,
                        bool *owed) {
  if (!*owed) return;
  mp_ucx_out_t *out = mp_ucx_make_out(self, kind, to);
  if (out != NULL) {
    out->header.number = number;
    *owed = !ucx_out_begin(self, out);
    if (*owed) mp_ucx_free_out(out);
  }
  self->lacks_memory |= *owed;
}

static void ucx_out_put_back(mp_ucx_peer_t *peer, mp_ucx_out_t *out) {
  out->next = peer->outs.first;
  peer->outs.first = out;
  if (peer->outs.last == NULL) peer->outs.last = out;
}

bool mp_ucx_push_out(mp_ucx_t *self, uint32_t to) {
  mp_ucx_peer_t *peer = &self->peers[to];
  if (peer->address != NULL) return false;  // not connected yet
  if (peer->knock != NULL && ucx_out_begin(self, peer->knock)) peer->knock = NULL;
  self->lacks_memory |= peer->knock != NULL;
  ucx_out_pay(self, to, MP_UCX_GREETING, 0, &peer->owes_greeting);
  ucx_out_pay(self, to, MP_UCX_HEARD, peer->heard, &peer->owes_heard);
  bool did = false;
  while (peer->outs.first != NULL && !peer->has_failed) {
    mp_ucx_out_t *out = peer->outs.first;
    MP_QUEUE_POP(&peer->outs, next);
    did = true;
    if (ucx_out_is_in_vain(self, out)) {
      ucx_out_finish(self, out);
      continue;
    }
    const bool is_goodbye = mp_world_is_goodbye(&out->header.envelope);
    out->header.number = peer->next_out;
    if (!ucx_out_begin(self, out)) {
      ucx_out_put_back(peer, out);
      self->lacks_memory = true;
      break;
    }
    if (is_goodbye) {
      peer->awaits_heard = true;
      peer->goodbye = peer->next_out;
    }
    ++peer->next_out;
  }
  return did;
}

void mp_ucx_drop_outs(mp_ucx_t *self, uint32_t to) {
  mp_ucx_peer_t *peer = &self->peers[to];
  mp_ucx_hear(self, peer);
  peer->owes_heard = false;
  while (peer->outs.first != NULL) {
    mp_ucx_out_t *out = peer->outs.first;
    MP_QUEUE_POP(&peer->outs, next);
    if (mp_world_is_goodbye(&out->header.envelope)) atomic_fetch_sub(&self->num_pending, 1);
    ucx_out_finish(self, out);
  }
}

void mp_ucx_forget_outs(mp_ucx_t *self) {
  while (self->sending.first != NULL) {
    mp_ucx_out_t *out = self->sending.first;
    MP_LIST_REMOVE(&self->sending, out, prev, next);
    ucx_out_finish(self, out);
  }
}
