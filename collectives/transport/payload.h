// Payload blocks: reference-counted memory that holds the data of packets.
//
// A payload block is a header of two cache lines with the data right behind it. It lies on the heap
// or in a segment (segment.h). The references to a block in a segment are counted by all processes
// that map the segment; the process that drops the last one hands the block back to the segment's
// owner.
//
// All functions are thread-safe.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_PAYLOAD_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_PAYLOAD_H_

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "collectives/transport/world.h"
#include "sim/base/os/process.h"

enum { MP_PAYLOAD_ALIGNMENT = 64 };

enum { MP_WIRE_EMPTY, MP_WIRE_BEING_WRITTEN, MP_WIRE_WRITTEN };

typedef struct {
  // The one member that several change: the others are written before the block is first sent, and
  // the ring or the MPI message that carries it publishes them.
  _Alignas(MP_PAYLOAD_ALIGNMENT) _Atomic uint32_t references;
  uint32_t generation;   // of the process that created the block (sim/base/os/process.h)
  mp_payload_t payload;  // as its creator sees it; `data` is an address in the creator's process
  uint64_t offset;       // from the beginning of its segment; 0: on the heap
  uint64_t next;         // while free: the offset of the next free one
  uint32_t size_class;   // of a segment's
  // Whether a transport has written `wire`: of several transports that send the block at the same
  // time, one writes, and the others check that they would write the same bytes.
  _Atomic uint32_t wire_state;
  // Room right before the data for a transport's header, so that header and data are one message.
  _Alignas(MP_PAYLOAD_ALIGNMENT) unsigned char wire[MP_PAYLOAD_ALIGNMENT];
} mp_payload_block_t;

_Static_assert(sizeof(mp_payload_block_t) % MP_PAYLOAD_ALIGNMENT == 0,
               "the data begins on a cache line");

// The data, where this process has them mapped.
static inline void *mp_payload_block_data(mp_payload_block_t *block) {
  return block + 1;
}

// The block of a payload that this process has created.
static inline mp_payload_block_t *mp_payload_block_of(mp_payload_t *payload) {
  return (mp_payload_block_t *)((char *)payload - offsetof(mp_payload_block_t, payload));
}

// Writes `bytes` (up to MP_PAYLOAD_ALIGNMENT) before the block's data, for all transports that send
// it. False: another transport writes there now, or has written something else. After true, the
// caller may read them as long as it has the block.
bool mp_payload_block_write_wire(mp_payload_block_t *block, const void *header, size_t bytes);

// Writes the header of a block with one reference; its place (offset, size_class) was written
// before.
static inline void mp_payload_block_init(mp_payload_block_t *block, size_t bytes) {
  // Relaxed: no other thread knows the block yet. Its earlier users have returned it by
  // mp_segment_return, which orders their accesses before this one.
  atomic_store_explicit(&block->references, 1, memory_order_relaxed);
  block->generation = mp_process_generation();
  atomic_store_explicit(&block->wire_state, MP_WIRE_EMPTY, memory_order_relaxed);
  block->payload = (mp_payload_t){.data = mp_payload_block_data(block), .bytes = bytes};
}
// A block on the heap with one reference. NULL when memory is short.
mp_payload_block_t *mp_payload_block_create(size_t bytes);
// Adds a reference.
void mp_payload_block_retain(mp_payload_block_t *block);
// Drops a reference; the last one frees the block or hands it back to its segment. NULL: nothing.
void mp_payload_block_release(mp_payload_block_t *block);

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_PAYLOAD_H_
