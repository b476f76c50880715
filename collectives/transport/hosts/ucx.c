#include "collectives/transport/hosts/ucx.h"

#include <string.h>

#include "collectives/transport/hosts/ucx_impl.h"
#include "sim/base/alloc.h"
#include "sim/base/assert.h"

// The time after which to try again to get memory.
enum { MP_UCX_RETRY_US = 1000 };

// ---- Failures ----

static void ucx_failed(void *context, uint32_t rank, mp_ucs_status_t status) {
  mp_ucx_fail(context, rank, status);
}

// A failed peer counts as lost, unless it has already said goodbye.
static void ucx_drop(mp_ucx_t *self, uint32_t rank) {
  mp_ucx_peer_t *peer = &self->peers[rank];
  peer->is_dropped = true;
  mp_ucx_drop_outs(self, rank);
  mp_ucx_drop_ins(self, rank);
  char name[MP_PEER_NAME_BYTES];
  mp_world_peer_name(self->world, rank, name);
  const char *why = self->library->ucs_status_string(peer->failure);
  mp_world_lose(
      self->world, rank,
      peer->failure == MP_UCS_ERR_NO_MEMORY
          ? mp_status_make(MP_UNAVAILABLE, "a message of %s was lost: there is no memory", name)
          : mp_status_make(MP_UNAVAILABLE,
                           "%s has ended unexpectedly, or its host cannot be reached any "
                           "more (UCX: %s)",
                           name, why));
  atomic_store(&peer->is_over, true);
}

// ---- Progress ----

// Whether the connections may be closed (mp_ucx_engine_close): each peer's connection has received
// something, or was never begun.
static bool ucx_is_settled(const mp_ucx_t *self) {
  bool is_settled = self->sending.first == NULL && self->orphans.first == NULL;
  for (uint32_t rank = 0; rank < self->world->size; ++rank) {
    const mp_ucx_peer_t *peer = &self->peers[rank];
    const bool is_begun = peer->is_known && peer->address == NULL;
    is_settled = is_settled && !peer->has_failed && is_begun == peer->was_greeted;
  }
  return is_settled;
}

static void ucx_close_now(mp_ucx_t *self) {
  mp_ucx_engine_close(self->engine, ucx_is_settled(self));
  mp_ucx_forget_outs(self);
  mp_ucx_forget_ins(self);
  // After the last call of UCX.
  atomic_store(&self->is_closed, true);
}

mp_status_t mp_ucx_open(mp_ucx_t *self, uint32_t rank) {
  mp_ucx_peer_t *peer = &self->peers[rank];
  mp_status_t status = mp_ucx_engine_connect(self->engine, rank, peer->address);
  mp_free(peer->address);
  peer->address = NULL;
  return status;
}

// Opens this side of the connection when the peer has greeted, or when its greeting is overdue.
static void ucx_answer(mp_ucx_t *self, uint32_t rank) {
  const mp_ucx_peer_t *peer = &self->peers[rank];
  if (peer->address == NULL || (!peer->was_greeted && peer->num_ticks < MP_UCX_MOST_TICKS)) return;
  mp_status_t status = mp_ucx_open(self, rank);
  if (status != NULL) mp_ucx_fail(self, rank, MP_UCS_ERR_UNREACHABLE);
  mp_status_ignore(status);
}

static void ucx_tick(mp_transport_t *transport) {
  mp_ucx_t *self = (mp_ucx_t *)transport;
  for (uint32_t rank = 0; rank < self->world->size; ++rank) ++self->peers[rank].num_ticks;
}

static bool ucx_progress(mp_transport_t *transport) {
  mp_ucx_t *self = (mp_ucx_t *)transport;
  if (atomic_load(&self->is_closed)) return false;
  if (atomic_load(&self->must_close)) {
    ucx_close_now(self);
    return false;
  }
  self->lacks_memory = false;
  mp_ucx_take_fresh(self);
  bool did = false;
  for (uint32_t rank = 0; rank < self->world->size; ++rank) {
    ucx_answer(self, rank);
    did |= mp_ucx_receive_visit(self, rank);
    if (self->peers[rank].is_dropped) {
      mp_ucx_drop_outs(self, rank);
    } else {
      did |= mp_ucx_push_out(self, rank);
    }
  }
  did |= mp_ucx_engine_progress(self->engine);
  for (uint32_t rank = 0; rank < self->world->size; ++rank) {
    did |= mp_ucx_deliver_in(self, rank);
    // After everything that came before its end was delivered.
    if (self->peers[rank].has_failed && !self->peers[rank].is_dropped) ucx_drop(self, rank);
  }
  mp_polling_note(&self->polling, did);
  return did;
}

static uint32_t ucx_poll_after_us(mp_transport_t *transport) {
  mp_ucx_t *self = (mp_ucx_t *)transport;
  if (atomic_load(&self->is_closed)) return 0;
  const uint32_t pause = mp_polling_pause_us(&self->polling);
  return self->lacks_memory && pause < MP_UCX_RETRY_US ? MP_UCX_RETRY_US : pause;
}

static bool ucx_drained(mp_transport_t *transport) {
  mp_ucx_t *self = (mp_ucx_t *)transport;
  return atomic_load(&self->num_pending) == 0 || atomic_load(&self->is_closed);
}

static bool ucx_is_over(mp_transport_t *transport, uint32_t rank) {
  return atomic_load(&((mp_ucx_t *)transport)->peers[rank].is_over);
}

static void ucx_close(mp_transport_t *transport) {
  mp_ucx_t *self = (mp_ucx_t *)transport;
  // Set before the bell, so that the progress thread sees it in the round after the ring.
  atomic_store(&self->must_close, true);
  mp_world_ring(self->world);
}

static bool ucx_is_closed(mp_transport_t *transport) {
  return atomic_load(&((mp_ucx_t *)transport)->is_closed);
}

// ---- Creating and closing ----

static void ucx_release(mp_transport_t *transport) {
  mp_ucx_t *self = (mp_ucx_t *)transport;
  mp_ucx_engine_release(self->engine);
  if (self->peers != NULL && self->fresh != NULL) {
    mp_ucx_take_fresh(self);
    mp_ucx_forget_outs(self);
    mp_ucx_forget_ins(self);
    mp_ucx_forget_visits(self);
    for (uint32_t rank = 0; rank < self->world->size; ++rank) {
      mp_ucx_drop_outs(self, rank);
      mp_free(self->peers[rank].address);
    }
  }
  mp_lock_deinit(&self->lock);
  mp_free(self->spares);
  mp_free(self->fresh);
  mp_free(self->peers);
  mp_free(self);
}

static const mp_transport_ops_t g_ucx_ops = {
    .name = "UCX",
    .send = mp_ucx_send,
    .progress = ucx_progress,
    .tick = ucx_tick,
    .poll_after_us = ucx_poll_after_us,
    .drained = ucx_drained,
    .is_over = ucx_is_over,
    .close = ucx_close,
    .is_closed = ucx_is_closed,
    .release = ucx_release,
};

mp_status_t mp_ucx_create(mp_world_t *world, const mp_ucx_library_t *library,
                          mp_transport_t **out_transport) {
  static const mp_ucx_callbacks_t callbacks = {
      .came = mp_ucx_came, .sent = mp_ucx_sent, .fetched = mp_ucx_fetched, .failed = ucx_failed};
  mp_ucx_t *self = mp_calloc(1, sizeof(*self));
  MP_RETURN_IF_NULL(self);
  self->base.ops = &g_ucx_ops;
  self->world = world;
  self->library = library;
  mp_lock_init(&self->lock, MP_LOCK_UCX);
  self->peers = mp_calloc(world->size, sizeof(*self->peers));
  self->fresh = mp_calloc(world->size, sizeof(*self->fresh));
  mp_status_t status =
      self->peers == NULL || self->fresh == NULL ? mp_status_out_of_memory() : NULL;
  if (status == NULL) status = mp_ucx_make_spares(self);
  if (status == NULL) {
    status = mp_ucx_engine_create(library, world->size, &callbacks, self, &self->engine);
  }
  if (status != NULL) {
    ucx_release(&self->base);
    return status;
  }
  *out_transport = &self->base;
  return NULL;
}

mp_str_t mp_ucx_address(const mp_transport_t *transport) {
  const void *bytes = NULL;
  size_t size = 0;
  mp_ucx_engine_address(((const mp_ucx_t *)transport)->engine, &bytes, &size);
  return (mp_str_t){bytes, size};
}

void mp_ucx_set_key(mp_transport_t *transport, const mp_seal_key_t *key) {
  ((mp_ucx_t *)transport)->key = *key;
}

mp_status_t mp_ucx_connect(mp_transport_t *transport, uint32_t rank, mp_str_t address) {
  mp_ucx_t *self = (mp_ucx_t *)transport;
  mp_ucx_peer_t *peer = &self->peers[rank];
  peer->address = mp_malloc(address.size);
  MP_RETURN_IF_NULL(peer->address);
  memcpy(peer->address, address.data, address.size);
  peer->is_known = true;
  if (rank < self->world->rank) return NULL;
  peer->owes_greeting = true;
  return mp_ucx_open(self, rank);
}
