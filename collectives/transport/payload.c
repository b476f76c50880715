#include "collectives/transport/payload.h"

#include <string.h>

#include "collectives/transport/segment.h"
#include "sim/base/alloc.h"
#include "sim/base/assert.h"

mp_payload_block_t *mp_payload_block_create(size_t bytes) {
  size_t room;
  if (__builtin_add_overflow(bytes, sizeof(mp_payload_block_t), &room)) return NULL;
  mp_payload_block_t *block = mp_aligned_malloc(MP_PAYLOAD_ALIGNMENT, room);
  if (block == NULL) return NULL;
  block->offset = 0;
  mp_payload_block_init(block, bytes);
  return block;
}

bool mp_payload_block_write_wire(mp_payload_block_t *block, const void *header, size_t bytes) {
  MP_ASSERT(bytes <= sizeof(block->wire));
  uint32_t state = MP_WIRE_EMPTY;
  if (atomic_compare_exchange_strong(&block->wire_state, &state, MP_WIRE_BEING_WRITTEN)) {
    memcpy(block->wire, header, bytes);
    atomic_store(&block->wire_state, MP_WIRE_WRITTEN);
    return true;
  }
  // Written once and constant from then on, so that it may be compared while MPI sends it.
  return state == MP_WIRE_WRITTEN && memcmp(block->wire, header, bytes) == 0;
}

void mp_payload_block_retain(mp_payload_block_t *block) {
  // Relaxed: the caller has a reference already.
  const uint32_t before = atomic_fetch_add_explicit(&block->references, 1, memory_order_relaxed);
  MP_ASSERT(before > 0);
}

void mp_payload_block_release(mp_payload_block_t *block) {
  if (block == NULL) return;
  // The count is in shared memory: the last release, in any process, returns the block after all
  // have read it. Release orders those reads before it, acquire lets the last one return the memory
  // for new writes.
  const uint32_t before = atomic_fetch_sub_explicit(&block->references, 1, memory_order_acq_rel);
  MP_ASSERT(before > 0);
  if (before != 1) return;
  if (block->offset == 0) {
    mp_free(block);
  } else {
    mp_segment_return(block);
  }
}
