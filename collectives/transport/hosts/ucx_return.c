// Restarted processes of other hosts: knocking, and answering knocks.
#include <string.h>

#include "collectives/transport/hosts/ucx_impl.h"
#include "collectives/transport/world_return.h"
#include "sim/base/alloc.h"

static void ucx_return_free(mp_ucx_visit_t *visit) {
  if (visit == NULL) return;
  if (visit->out != NULL) mp_ucx_free_out(visit->out);
  mp_free(visit->address);
  mp_free(visit);
}

void mp_ucx_forget_visits(mp_ucx_t *self) {
  for (uint32_t rank = 0; rank < self->world->size; ++rank) {
    mp_ucx_peer_t *peer = &self->peers[rank];
    ucx_return_free(atomic_exchange(&peer->errand, NULL));
    ucx_return_free(peer->visit);
    if (peer->knock != NULL) mp_ucx_free_out(peer->knock);
    peer->visit = NULL;
    peer->knock = NULL;
  }
}

static void *ucx_return_copy(const void *bytes, size_t size) {
  void *copy = mp_malloc(size);
  if (copy != NULL) memcpy(copy, bytes, size);
  return copy;
}

// ---- Knocking ----

// The knock as a message: this process's description, and its address.
static mp_ucx_out_t *ucx_return_make_knock(mp_ucx_t *self, uint32_t to, const mp_knock_t *knock) {
  const mp_str_t address = mp_ucx_address(&self->base);
  mp_ucx_out_t *out = mp_ucx_make_out(self, MP_UCX_KNOCK, to);
  if (out == NULL) return NULL;
  out->header.bytes = sizeof(*knock) + address.size;
  out->block = mp_payload_block_create(out->header.bytes);
  if (out->block == NULL) {
    mp_ucx_free_out(out);
    return NULL;
  }
  char *data = mp_payload_block_data(out->block);
  memcpy(data, knock, sizeof(*knock));
  memcpy(data + sizeof(*knock), address.data, address.size);
  out->header.envelope.key[0] = mp_seal(&self->key, data, out->header.bytes);
  return out;
}

mp_status_t mp_ucx_knock(mp_transport_t *transport, uint32_t rank, uint64_t incarnation,
                         mp_str_t address, const mp_knock_t *knock) {
  mp_ucx_t *self = (mp_ucx_t *)transport;
  mp_ucx_visit_t *errand = mp_calloc(1, sizeof(*errand));
  MP_RETURN_IF_NULL(errand);
  errand->knock.incarnation = incarnation;
  errand->address = ucx_return_copy(address.data, address.size);
  errand->out = ucx_return_make_knock(self, rank, knock);
  if (errand->address == NULL || errand->out == NULL) {
    ucx_return_free(errand);
    return mp_status_out_of_memory();
  }
  // The progress thread sends it: it alone uses UCX.
  ucx_return_free(atomic_exchange(&self->peers[rank].errand, errand));
  mp_world_ring(self->world);
  return NULL;
}

static void ucx_return_go(mp_ucx_t *self, uint32_t rank, mp_ucx_visit_t *errand) {
  mp_ucx_peer_t *peer = &self->peers[rank];
  peer->address = errand->address;
  errand->address = NULL;
  peer->is_known = true;
  peer->incarnation = (uint32_t)errand->knock.incarnation;
  mp_status_t status = mp_ucx_open(self, rank);
  if (status == NULL) {
    peer->knock = errand->out;
    errand->out = NULL;
  } else {
    mp_ucx_fail(self, rank, MP_UCS_ERR_UNREACHABLE);
  }
  mp_status_ignore(status);
  ucx_return_free(errand);
}

// ---- Answering knocks ----

void mp_ucx_note_knock(mp_ucx_t *self, const mp_ucx_header_t *header, const void *data) {
  if (header->bytes <= sizeof(mp_knock_t) ||
      header->envelope.key[0] != mp_seal(&self->key, data, header->bytes)) {
    return;
  }
  mp_ucx_visit_t *visit = mp_calloc(1, sizeof(*visit));
  if (visit == NULL) return;  // the knocking process gives up after some time
  memcpy(&visit->knock, data, sizeof(visit->knock));
  const size_t bytes = header->bytes - sizeof(visit->knock);
  visit->address = ucx_return_copy((const char *)data + sizeof(visit->knock), bytes);
  const bool is_sound = visit->address != NULL && visit->knock.rank == header->from &&
                        header->incarnation == (uint32_t)visit->knock.incarnation &&
                        mp_world_check_knock(self->world, &visit->knock) == MP_OK;
  if (!is_sound) {
    ucx_return_free(visit);
    return;
  }
  ucx_return_free(self->peers[header->from].visit);
  self->peers[header->from].visit = visit;
}

// Whether the predecessor's connection and packets are gone. A process that has the job's secret
// and replaces another one proves that the other has ended, even if its connection does not show
// this yet.
static bool ucx_return_is_free(mp_ucx_t *self, uint32_t rank) {
  mp_ucx_peer_t *peer = &self->peers[rank];
  if (!peer->is_known || peer->is_dropped) return true;
  // UCX fails when a connection is broken while it is still being made.
  if (peer->was_greeted || peer->num_ticks >= MP_UCX_MOST_TICKS) {
    mp_ucx_fail(self, rank, MP_UCS_ERR_UNREACHABLE);
  }
  return false;  // it is dropped in this round
}

static void ucx_return_reset(mp_ucx_t *self, uint32_t rank, const mp_ucx_visit_t *visit) {
  mp_ucx_peer_t *peer = &self->peers[rank];
  mp_ucx_engine_forget(self->engine, rank);
  mp_ucx_take_fresh(self);
  mp_ucx_drop_outs(self, rank);
  mp_ucx_drop_ins(self, rank);
  mp_free(peer->address);
  if (peer->knock != NULL) mp_ucx_free_out(peer->knock);
  peer->knock = NULL;
  peer->address = NULL;
  peer->is_known = true;
  peer->owes_greeting = false;
  peer->was_greeted = true;  // by the knock
  peer->num_ticks = 0;
  peer->next_out = 0;
  peer->next_in = 0;
  peer->awaits_heard = false;
  peer->owes_heard = false;
  peer->has_failed = false;
  peer->is_dropped = false;
  atomic_store(&peer->is_over, false);
  peer->incarnation = (uint32_t)visit->knock.incarnation;
  ++peer->connection;
}

static bool ucx_return_let_in(mp_ucx_t *self, uint32_t rank, mp_ucx_visit_t *visit) {
  mp_ucx_peer_t *peer = &self->peers[rank];
  mp_bygone_t *bygone = mp_calloc(1, sizeof(*bygone));
  if (bygone == NULL) return false;
  ucx_return_reset(self, rank, visit);
  peer->address = visit->address;
  visit->address = NULL;
  mp_status_t status = mp_ucx_open(self, rank);
  // Other threads must not send to it before it counts as the newcomer; a failure is noticed in
  // this round.
  if (status != NULL) mp_ucx_fail(self, rank, MP_UCS_ERR_UNREACHABLE);
  mp_status_ignore(status);
  mp_world_take_back(self->world, &visit->knock, &self->base, bygone);
  return true;
}

bool mp_ucx_receive_visit(mp_ucx_t *self, uint32_t rank) {
  mp_ucx_peer_t *peer = &self->peers[rank];
  mp_ucx_visit_t *errand = atomic_exchange(&peer->errand, NULL);
  if (errand != NULL) ucx_return_go(self, rank, errand);
  mp_ucx_visit_t *visit = peer->visit;
  if (visit == NULL || !ucx_return_is_free(self, rank)) return errand != NULL;
  if (!ucx_return_let_in(self, rank, visit)) {
    self->lacks_memory = true;
    return false;
  }
  peer->visit = NULL;
  ucx_return_free(visit);
  return true;
}
