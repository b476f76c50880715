#include "collectives/transport/hosts/mpi.h"

#include <string.h>

#include "collectives/transport/hosts/polling.h"
#include "collectives/transport/world_impl.h"
#include "sim/base/alloc.h"
#include "sim/base/assert.h"
#include "sim/base/containers/list.h"

enum {
  MP_TAG_HEADER = 1,
  MP_TAG_BULK = 2,
  MP_WHOLE_BYTES = 256 << 10,  // data up to this size go with their header, as one message
  MP_COPIED_BYTES = 32 << 10,  // data up to this size are copied out of the receive buffer
  MP_PIECES = 4,  // larger data are sent in this many pieces, of a size between the next two
  MP_SMALLEST_PIECE = 128 << 10,
  MP_LARGEST_PIECE = 1 << 20,
  MP_WINDOW = 8,  // pieces in flight at a time, per message
  // Receives that are posted at any time: one for each message in flight of a peer, but few in
  // total, because data come into them in turn, through the caches.
  MP_LEAST_RECEIVES = 4,
  MP_HEADER_RECEIVES = 8,
};

// The header, which comes first: alone, or followed by the data.
typedef struct {
  mp_envelope_t envelope;
  uint64_t bytes;  // of the data
  unsigned char unused[8];
} mpi_header_t;

_Static_assert(sizeof(mpi_header_t) == sizeof(((mp_payload_block_t *)NULL)->wire),
               "a header lies right before the data of a block");

// Pieces of one message, sent or received in order.
typedef struct {
  uint64_t next;          // byte to be posted next
  uint32_t first, count;  // requests in flight, a ring
  mp_mpi_request_t requests[MP_WINDOW];
} mpi_pieces_t;

typedef struct mpi_out_s {
  struct mpi_out_s *next;
  mp_payload_block_t *block;  // NULL: there are no data
  bool is_whole;              // the block has the header, too
  bool is_posted;             // the header
  bool is_header_done;
  mp_mpi_request_t header_request;
  mpi_pieces_t pieces;
  mpi_header_t header;
} mpi_out_t;

typedef struct mpi_in_s {
  struct mpi_in_s *next;
  mp_packet_t *packet;
  mp_payload_block_t
      *block;  // the destination of data that did not come with their header; owned by the packet
  mpi_pieces_t pieces;
} mpi_in_t;

typedef MP_QUEUE(mpi_out_t) mpi_outs_t;

typedef struct {
  mpi_outs_t outs;
  MP_QUEUE(mpi_in_t) ins;
  // This peer no longer sends or receives. Messages that MPI had begun to send by then stay in
  // `given_up`, because MPI may still read them, but no thread waits for them.
  bool is_dropped;
  mpi_out_t *given_up;
} mpi_peer_t;

// A header that has come but was not taken yet, because memory was short. The receive that contains
// it is posted again only when it was taken.
typedef struct {
  bool is_there;
  uint32_t from;
  size_t size;
} mpi_held_t;

typedef struct {
  mp_transport_t base;
  mp_world_t *world;
  const mp_mpi_module_t *module;
  mpi_peer_t *peers;  // by rank

  // For the queues that senders fill; only the progress thread uses the rest. It alone calls MPI,
  // and must not keep senders waiting meanwhile.
  mp_lock_t lock;
  mpi_outs_t *fresh;        // by rank: handed over by senders
  bool has_fresh;           // under the lock
  atomic_uint num_pending;  // unfinished sends; the leaving thread polls it without the lock

  mp_payload_block_t *headers[MP_HEADER_RECEIVES];  // of MP_WHOLE_BYTES, the receive buffers
  mp_mpi_request_t header_requests[MP_HEADER_RECEIVES];
  uint32_t num_headers;  // receives that are posted
  uint32_t next_header;  // the oldest one
  mpi_held_t held;       // what the oldest receive holds
  // The first progress posts the receives, on the thread that tests them. After a failed receive
  // the order of messages is unknown, so all peers are lost, for good.
  bool is_open;
  bool is_broken;
  mp_polling_t polling;
  // Set by the thread that leaves the job, and acknowledged by the progress thread, which alone
  // calls MPI: once is_closed is set, that thread calls MPI no more.
  atomic_bool must_close;
  atomic_bool is_closed;
} mpi_t;

// ---- Trouble ----

static void mpi_lose(mpi_t *self, uint32_t rank, const char *error) {
  char name[MP_PEER_NAME_BYTES];
  mp_world_peer_name(self->world, rank, name);
  mp_world_lose(self->world, rank,
                mp_status_make(MP_UNAVAILABLE, "%s cannot be reached any more: %s", name, error));
  self->peers[rank].is_dropped = true;
}

static void mpi_lose_all(mpi_t *self, const char *error) {
  self->is_broken = true;
  for (uint32_t rank = 0; rank < self->world->size; ++rank) {
    mp_transport_t *transport = atomic_load(&self->world->peers[rank].transport);
    if (transport == &self->base) mpi_lose(self, rank, error);
  }
}

// ---- Pieces ----

// The size of the piece that begins at `next`; sender and receiver compute the same. Pieces are
// sent without a handshake, so MPI may copy them at the receiver: small ones stay in the cache
// meanwhile.
static uint64_t mpi_piece_at(uint64_t next, uint64_t bytes) {
  MP_ASSERT(next <= bytes);
  uint64_t size = bytes / MP_PIECES;
  if (size < MP_SMALLEST_PIECE) size = MP_SMALLEST_PIECE;
  if (size > MP_LARGEST_PIECE) size = MP_LARGEST_PIECE;
  const uint64_t left = bytes - next;
  return left < size ? left : size;
}

static bool mpi_pieces_done(const mpi_pieces_t *pieces, uint64_t bytes) {
  return pieces->next == bytes && pieces->count == 0;
}

// Tests the pieces in flight, oldest first, and removes those that are done; -1 with `error`.
static int mpi_test_piece(mpi_t *self, mpi_pieces_t *pieces, bool *did, mp_mpi_error_t error) {
  int done = 1, from;
  size_t bytes;
  while (pieces->count != 0 && done) {
    mp_mpi_request_t *request = &pieces->requests[pieces->first];
    if (self->module->test(request, &done, &from, &bytes, error) != 0) return -1;
    if (!done) break;
    pieces->first = (pieces->first + 1) % MP_WINDOW;
    --pieces->count;
    *did = true;
  }
  return 0;
}

static mp_mpi_request_t *mpi_next_request(mpi_pieces_t *pieces) {
  MP_ASSERT(pieces->count < MP_WINDOW);
  return &pieces->requests[(pieces->first + pieces->count) % MP_WINDOW];
}

// ---- Sending ----

static mp_status_t mpi_send(mp_transport_t *transport, uint32_t to, const mp_envelope_t *envelope,
                            mp_payload_block_t *block) {
  mpi_t *self = (mpi_t *)transport;
  mpi_out_t *out = mp_calloc(1, sizeof(*out));
  MP_RETURN_IF_NULL(out);
  out->header.envelope = *envelope;
  if (block != NULL && block->payload.bytes != 0) {
    out->header.bytes = block->payload.bytes;
    out->is_whole = out->header.bytes <= MP_WHOLE_BYTES &&
                    mp_payload_block_write_wire(block, &out->header, sizeof(out->header));
    mp_payload_block_retain(block);
    out->block = block;
  }
  mp_lock(&self->lock);
  MP_QUEUE_PUSH(&self->fresh[to], out, next);
  self->has_fresh = true;
  // Under the lock: counted before the progress thread can take the message and decrement the
  // count.
  atomic_fetch_add(&self->num_pending, 1);
  mp_unlock(&self->lock);
  mp_world_ring(self->world);
  return NULL;
}

// Moves what senders handed over to the queues of the progress thread.
static void mpi_take_fresh(mpi_t *self) {
  mp_lock(&self->lock);
  for (uint32_t rank = 0; self->has_fresh && rank < self->world->size; ++rank) {
    MP_QUEUE_APPEND(&self->peers[rank].outs, &self->fresh[rank], next);
  }
  self->has_fresh = false;
  mp_unlock(&self->lock);
}

static void mpi_free_out(mpi_out_t *out) {
  mp_payload_block_release(out->block);
  mp_free(out);
}

static mpi_out_t *mpi_take_first_out(mpi_t *self, mpi_peer_t *peer) {
  mpi_out_t *out = peer->outs.first;
  MP_ASSERT(out != NULL && atomic_load(&self->num_pending) != 0);
  MP_QUEUE_POP(&peer->outs, next);
  // Sequentially consistent: a thread that sees zero (mpi_drained) sees that MPI has finished all
  // messages.
  atomic_fetch_sub(&self->num_pending, 1);
  return out;
}

// Empties the queue to a peer that was dropped.
static bool mpi_give_up_out(mpi_t *self, mpi_peer_t *peer) {
  if (peer->outs.first == NULL) return false;
  while (peer->outs.first != NULL) {
    mpi_out_t *out = mpi_take_first_out(self, peer);
    if (out->is_posted) {
      out->next = peer->given_up;
      peer->given_up = out;
    } else {
      mpi_free_out(out);
    }
  }
  return true;
}

// The number of bytes that follow the header in separate messages.
static uint64_t mpi_bytes_in_pieces(const mpi_out_t *out) {
  return out->is_whole ? 0 : out->header.bytes;
}

// Posts as much of this message as possible; *out_all: all of it was posted. -1 with `error`.
static int mpi_post_out(mpi_t *self, uint32_t to, mpi_out_t *out, bool *did, bool *out_all,
                        mp_mpi_error_t error) {
  const uint64_t bytes = mpi_bytes_in_pieces(out);
  if (!out->is_posted) {
    const void *first = out->is_whole ? out->block->wire : (const void *)&out->header;
    const size_t size = sizeof(out->header) + (out->is_whole ? out->header.bytes : 0);
    if (self->module->send(first, size, (int)to, MP_TAG_HEADER, &out->header_request, error) != 0)
      return -1;
    out->is_posted = true;
    *did = true;
  }
  while (out->pieces.next < bytes && out->pieces.count < MP_WINDOW) {
    uint64_t size = mpi_piece_at(out->pieces.next, bytes);
    const char *data = (const char *)mp_payload_block_data(out->block) + out->pieces.next;
    if (self->module->send(data, size, (int)to, MP_TAG_BULK, mpi_next_request(&out->pieces),
                           error) != 0) {
      return -1;
    }
    out->pieces.next += size;
    ++out->pieces.count;
    *did = true;
  }
  *out_all = out->pieces.next == bytes;
  return 0;
}

static int mpi_test_out(mpi_t *self, mpi_out_t *out, bool *did, mp_mpi_error_t error) {
  int from;
  size_t bytes;
  int done = 0;
  if (out->is_posted && !out->is_header_done) {
    if (self->module->test(&out->header_request, &done, &from, &bytes, error) != 0) return -1;
    out->is_header_done = done != 0;
  }
  return mpi_test_piece(self, &out->pieces, did, error);
}

// True when a message need not be sent any more: its receiver has left, and waits only for this
// process's goodbye. A message that was begun must be finished all the same.
static bool mpi_is_in_vain(const mpi_t *self, uint32_t to, const mpi_out_t *out) {
  // Relaxed: this same thread sets it.
  return atomic_load_explicit(&self->world->peers[to].is_gone, memory_order_relaxed) &&
         !out->is_posted && !mp_world_is_goodbye(&out->header.envelope);
}

// Walks through the queue of one peer: posts in order, removes finished messages.
static bool mpi_push_out(mpi_t *self, uint32_t to) {
  mpi_peer_t *peer = &self->peers[to];
  mp_mpi_error_t error;
  bool did = false, all = true;
  int window = 64;  // most messages visited, so that a long queue is not walked each time
  for (mpi_out_t *out = peer->outs.first; out != NULL && all && window > 0; out = out->next) {
    --window;
    if (!mpi_is_in_vain(self, to, out) && mpi_post_out(self, to, out, &did, &all, error) != 0) {
      mpi_lose(self, to, error);
      return mpi_give_up_out(self, peer);
    }
  }
  // Only the oldest is tested: messages end in their order, and each test that finds nothing is a
  // system call, in which MPI checks everything in flight.
  for (mpi_out_t *out; (out = peer->outs.first) != NULL;) {
    const bool is_in_vain = mpi_is_in_vain(self, to, out);
    if (!is_in_vain && mpi_test_out(self, out, &did, error) != 0) {
      mpi_lose(self, to, error);
      return mpi_give_up_out(self, peer);
    }
    const bool is_done =
        out->is_header_done && mpi_pieces_done(&out->pieces, mpi_bytes_in_pieces(out));
    if (!is_done && !is_in_vain) break;
    mpi_free_out(mpi_take_first_out(self, peer));
    did = true;
  }
  return did;
}

// ---- Receiving ----

static int mpi_post_header(mpi_t *self, uint32_t index, mp_mpi_error_t error) {
  return self->module->receive(self->headers[index]->wire, sizeof(mpi_header_t) + MP_WHOLE_BYTES,
                               MP_MPI_ANY, MP_TAG_HEADER, &self->header_requests[index], error);
}

// A packet from data that came with their header, in this block: the block itself, if there is
// another one to receive into, or a copy. NULL: there is no memory.
static mp_packet_t *mpi_take_whole(mpi_t *self, uint32_t from, mp_payload_block_t **block) {
  const mpi_header_t header = *(const mpi_header_t *)(const void *)(*block)->wire;
  const void *data = mp_payload_block_data(*block);
  if (header.bytes <= MP_INLINE_BYTES)
    return mp_packet_create_inline(self->world, from, &header.envelope, data, header.bytes);
  const bool is_copy = header.bytes <= MP_COPIED_BYTES;
  mp_payload_block_t *other =
      mp_world_take_block(self->world, is_copy ? header.bytes : MP_WHOLE_BYTES);
  if (other == NULL) return NULL;
  mp_payload_block_t *taken = is_copy ? other : *block;
  mp_packet_t *packet = NULL;
  if (is_copy) {
    memcpy(mp_payload_block_data(other), data, header.bytes);
  } else {
    taken->payload.bytes = header.bytes;
  }
  packet = mp_packet_create(self->world, from, &header.envelope, taken);
  if (packet == NULL) {
    mp_payload_block_release(other);
  } else if (!is_copy) {
    *block = other;
  }
  return packet;
}

static mpi_in_t *mpi_make_in(mpi_t *self, uint32_t from, size_t size, mp_payload_block_t **block) {
  const mpi_header_t *header = (const mpi_header_t *)(const void *)(*block)->wire;
  mpi_in_t *in = mp_calloc(1, sizeof(*in));
  if (in == NULL) return NULL;
  if (size != sizeof(*header) || header->bytes == 0) {
    in->packet = mpi_take_whole(self, from, block);
  } else {
    in->block = mp_world_take_block(self->world, header->bytes);
    if (in->block != NULL)
      in->packet = mp_packet_create(self->world, from, &header->envelope, in->block);
    if (in->packet == NULL) mp_payload_block_release(in->block);
  }
  if (in->packet != NULL) return in;
  mp_free(in);
  return NULL;
}

// Takes a header that has come in this block, which may be another block afterwards; false: there
// is no memory for it. Skips an invalid header, and one from a dropped peer.
static bool mpi_take_header(mpi_t *self, uint32_t from, size_t size, mp_payload_block_t **block) {
  const mpi_header_t *header = (const mpi_header_t *)(const void *)(*block)->wire;
  const bool is_sound = from < self->world->size && size >= sizeof(*header) &&
                        (size == sizeof(*header) || size == sizeof(*header) + header->bytes);
  if (!is_sound || self->peers[from].is_dropped) return true;
  mpi_in_t *in = mpi_make_in(self, from, size, block);
  if (in == NULL) return false;
  MP_QUEUE_PUSH(&self->peers[from].ins, in, next);
  return true;
}

// Checks whether the oldest receive has a header; -1 with `error`.
static int mpi_test_header(mpi_t *self, mp_mpi_error_t error) {
  if (self->held.is_there) return 0;
  int done = 0, from = 0;
  size_t size = 0;
  mp_mpi_request_t *request = &self->header_requests[self->next_header];
  if (self->module->test(request, &done, &from, &size, error) != 0) return -1;
  self->held = (mpi_held_t){.is_there = done != 0, .from = (uint32_t)from, .size = size};
  return 0;
}

static bool mpi_take_headers(mpi_t *self) {
  mp_mpi_error_t error;
  bool did = false;
  for (uint32_t count = 0; count < self->num_headers; ++count) {
    // Messages of one sender fill the receives in the order of posting.
    uint32_t index = self->next_header;
    if (mpi_test_header(self, error) != 0) {
      mpi_lose_all(self, error);
      return did;
    }
    if (!self->held.is_there) break;
    // A header without memory stays in its receive and is tried again; later ones wait in MPI.
    if (!mpi_take_header(self, self->held.from, self->held.size, &self->headers[index])) break;
    did = true;
    self->held.is_there = false;
    if (mpi_post_header(self, index, error) != 0) {
      mpi_lose_all(self, error);
      return did;
    }
    self->next_header = (index + 1) % self->num_headers;
  }
  return did;
}

// Posts receives for the pieces of messages, in the order of the headers, and tests them.
static int mpi_pull_in(mpi_t *self, uint32_t from, mpi_in_t *in, bool *did, bool *out_all,
                       mp_mpi_error_t error) {
  *out_all = true;
  if (in->block == NULL) return 0;
  uint64_t bytes = in->packet->bytes;
  while (in->pieces.next < bytes && in->pieces.count < MP_WINDOW) {
    uint64_t size = mpi_piece_at(in->pieces.next, bytes);
    char *data = (char *)mp_payload_block_data(in->block) + in->pieces.next;
    if (self->module->receive(data, size, (int)from, MP_TAG_BULK, mpi_next_request(&in->pieces),
                              error) != 0) {
      return -1;
    }
    in->pieces.next += size;
    ++in->pieces.count;
    *did = true;
  }
  *out_all = in->pieces.next == bytes;
  return mpi_test_piece(self, &in->pieces, did, error);
}

static bool mpi_deliver_in(mpi_t *self, uint32_t from) {
  mpi_peer_t *peer = &self->peers[from];
  mp_mpi_error_t error;
  bool did = false, all = true;
  for (mpi_in_t *in = peer->ins.first; in != NULL && all; in = in->next) {
    if (mpi_pull_in(self, from, in, &did, &all, error) != 0) {
      mpi_lose(self, from, error);
      return did;
    }
  }
  while (peer->ins.first != NULL) {
    mpi_in_t *in = peer->ins.first;
    if (in->block != NULL && !mpi_pieces_done(&in->pieces, in->packet->bytes)) break;
    MP_QUEUE_POP(&peer->ins, next);
    mp_world_arrive(self->world, in->packet);
    mp_free(in);
    did = true;
  }
  return did;
}

// ---- Progress ----

static void mpi_open_receives(mpi_t *self) {
  mp_mpi_error_t error;
  self->is_open = true;
  for (uint32_t i = 0; i < self->num_headers && !self->is_broken; ++i) {
    if (mpi_post_header(self, i, error) != 0) mpi_lose_all(self, error);
  }
}

static void mpi_close_receives(mpi_t *self) {
  for (uint32_t i = 0; self->is_open && !self->is_broken && i < self->num_headers; ++i) {
    bool is_posted = i != self->next_header || !self->held.is_there;
    if (is_posted) self->module->cancel(&self->header_requests[i]);
  }
  self->is_open = false;
  // After the last call of MPI. A thread that sees it (mpi_is_closed) may finalize MPI itself.
  atomic_store(&self->is_closed, true);
}

static bool mpi_progress(mp_transport_t *transport) {
  mpi_t *self = (mpi_t *)transport;
  if (atomic_load(&self->is_closed)) return false;
  if (atomic_load(&self->must_close)) {
    mpi_close_receives(self);
    return false;
  }
  mpi_take_fresh(self);
  if (!self->is_open && !self->is_broken) mpi_open_receives(self);
  bool did = self->is_broken ? false : mpi_take_headers(self);
  for (uint32_t rank = 0; rank < self->world->size; ++rank) {
    mpi_peer_t *peer = &self->peers[rank];
    did |= peer->is_dropped ? mpi_give_up_out(self, peer) : mpi_push_out(self, rank);
    if (!peer->is_dropped) did |= mpi_deliver_in(self, rank);
  }
  mp_polling_note(&self->polling, did);
  return did;
}

static uint32_t mpi_poll_after_us(mp_transport_t *transport) {
  mpi_t *self = (mpi_t *)transport;
  if (atomic_load(&self->is_closed) || self->is_broken) return 0;
  return mp_polling_pause_us(&self->polling);
}

static bool mpi_drained(mp_transport_t *transport) {
  mpi_t *self = (mpi_t *)transport;
  return atomic_load(&self->num_pending) == 0 || atomic_load(&self->is_closed);
}

static void mpi_close(mp_transport_t *transport) {
  mpi_t *self = (mpi_t *)transport;
  // Set before the bell, so that the progress thread sees it in the round after the ring.
  atomic_store(&self->must_close, true);
  mp_world_ring(self->world);
}

static bool mpi_is_closed(mp_transport_t *transport) {
  return atomic_load(&((mpi_t *)transport)->is_closed);
}

// ---- Life ----

static void mpi_release(mp_transport_t *transport) {
  mpi_t *self = (mpi_t *)transport;
  mpi_take_fresh(self);
  for (uint32_t rank = 0; self->peers != NULL && rank < self->world->size; ++rank) {
    mpi_peer_t *peer = &self->peers[rank];
    (void)mpi_give_up_out(self, peer);
    while (peer->given_up != NULL) {
      mpi_out_t *out = peer->given_up;
      peer->given_up = out->next;
      mpi_free_out(out);
    }
    while (peer->ins.first != NULL) {
      mpi_in_t *in = peer->ins.first;
      MP_QUEUE_POP(&peer->ins, next);
      mp_packet_release(in->packet);
      mp_free(in);
    }
  }
  mp_lock_deinit(&self->lock);
  for (uint32_t i = 0; i < self->num_headers; ++i) mp_payload_block_release(self->headers[i]);
  mp_free(self->fresh);
  mp_free(self->peers);
  mp_free(self);
}

static const mp_transport_ops_t g_mpi_ops = {
    .name = "MPI",
    .send = mpi_send,
    .progress = mpi_progress,
    .poll_after_us = mpi_poll_after_us,
    .drained = mpi_drained,
    .close = mpi_close,
    .is_closed = mpi_is_closed,
    .release = mpi_release,
};

mp_status_t mp_mpi_create(mp_world_t *world, const mp_mpi_module_t *module,
                          mp_transport_t **out_transport) {
  mpi_t *self = mp_calloc(1, sizeof(*self));
  MP_RETURN_IF_NULL(self);
  self->base.ops = &g_mpi_ops;
  self->world = world;
  self->module = module;
  mp_lock_init(&self->lock, MP_LOCK_MPI);
  self->peers = mp_calloc(world->size, sizeof(*self->peers));
  self->fresh = mp_calloc(world->size, sizeof(*self->fresh));
  bool has_all = self->peers != NULL && self->fresh != NULL;
  self->num_headers = world->size - 1;
  if (self->num_headers < MP_LEAST_RECEIVES) self->num_headers = MP_LEAST_RECEIVES;
  if (self->num_headers > MP_HEADER_RECEIVES) self->num_headers = MP_HEADER_RECEIVES;
  for (uint32_t i = 0; i < self->num_headers; ++i) {
    self->headers[i] = mp_payload_block_create(MP_WHOLE_BYTES);
    has_all &= self->headers[i] != NULL;
  }
  if (!has_all) {
    mpi_release(&self->base);
    return mp_status_out_of_memory();
  }
  *out_transport = &self->base;
  return NULL;
}
