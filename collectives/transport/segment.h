// Segments: memory of one process that the others of its host map too.
//
// A segment is one anonymous file (memfd): it has no name in any file system, so nothing is left
// behind whichever way the processes end. It is far larger than what is ever in use; pages exist
// only where something was written. It holds
//   - a header with the doorbell of its owner's progress thread,
//   - one ring per process of the host, in which that process puts what it has for the owner,
//   - a heap of payload (payload.h), which the owner allocates and everybody may release.
// Big payload that has not been needed for a second gives its pages back.
//
// Thread-safe, except where said otherwise.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_SEGMENT_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_SEGMENT_H_

#include <stdbool.h>
#include <sys/types.h>

#include "collectives/transport/doorbell.h"
#include "collectives/transport/payload.h"

typedef struct mp_segment_s mp_segment_t;

// ---- Rings ----

enum { MP_RING_SLOTS = 256, MP_INLINE_BYTES = 64 };

// A packet on its way.
typedef struct {
  mp_envelope_t envelope;
  uint64_t offset;  // of its payload in the sender's segment; 0: the bytes are here
  uint32_t bytes;   // of data
  _Alignas(16) unsigned char data[MP_INLINE_BYTES];
} mp_ring_slot_t;

// One writer, one reader; positions count on for ever.
typedef struct {
  _Alignas(64) atomic_uint head;  // the writer's
  _Alignas(64) atomic_uint tail;  // the reader's
  atomic_uint writer_waits;       // set by the writer before it gives up on a full ring
  _Alignas(64) mp_ring_slot_t slots[MP_RING_SLOTS];
} mp_ring_t;

// ---- Life ----

// What another process needs to map a segment.
typedef struct {
  int64_t pid;
  int64_t fd;
  uint64_t cookie[2];  // random: proves that the file found is the one meant
} mp_segment_address_t;

// A segment of this process with `num_rings` rings, for a host with `num_processes` of them (which
// share the address space of each). RESOURCE_EXHAUSTED when the system gives none.
MP_NODISCARD mp_status_t mp_segment_create(uint32_t num_rings, uint32_t num_processes,
                                           mp_segment_t **out_segment);
// Another process's. UNAVAILABLE when this process may not or cannot map it.
MP_NODISCARD mp_status_t mp_segment_open(const mp_segment_address_t *address,
                                         mp_segment_t **out_segment);
mp_segment_t *mp_segment_retain(mp_segment_t *segment);
void mp_segment_release(mp_segment_t *segment);

mp_segment_address_t mp_segment_address(const mp_segment_t *segment);
mp_doorbell_t *mp_segment_doorbell(mp_segment_t *segment);
// Owner: it has told the user why it ends, so that nobody else need say that it did.
void mp_segment_explain(mp_segment_t *segment);
bool mp_segment_is_explained(const mp_segment_t *segment);
uint32_t mp_segment_num_rings(const mp_segment_t *segment);
mp_ring_t *mp_segment_ring(mp_segment_t *segment, uint32_t index);

// ---- Payload ----

// Owner only. NULL when the segment is full.
mp_payload_block_t *mp_segment_take(mp_segment_t *segment, size_t bytes);
// Where payload of this segment lies in it, for others to find it by; 0 when it is not of this
// segment.
uint64_t mp_segment_offset_of(const mp_segment_t *segment, const mp_payload_block_t *block);
// NULL when no payload begins there, or when it says that it goes on beyond the segment.
mp_payload_block_t *mp_segment_block_at(mp_segment_t *segment, uint64_t offset);
// Hands payload of any segment back to its owner: nobody refers to it any more. Any process; by
// mp_payload_block_release only.
void mp_segment_return(mp_payload_block_t *block);
// Owner only, every second or so: gives pages back that were free all the time since the last call.
void mp_segment_trim(mp_segment_t *segment);
// Bytes of big payload that is free and still has its pages (for tests).
size_t mp_segment_idle_bytes(mp_segment_t *segment);

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_SEGMENT_H_
