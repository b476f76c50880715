// Segments: memory of one process that the others of its host map too.
//
// A segment is one anonymous file (memfd): it has no name in any file system, so nothing is left
// behind whichever way the processes end. It is far larger than what is ever in use; pages exist
// only where something was written. It holds
//   - a header with the doorbell of its owner's progress thread,
//   - one ring per process of the host, into which that process puts its packets for the owner,
//   - a heap of payload blocks (payload.h), which the owner allocates and any process may release.
// Big blocks that have not been needed for a second give their pages back.
//
// Thread-safe, except where noted.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_SEGMENT_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_SEGMENT_H_

#include <stdbool.h>
#include <sys/types.h>

#include "collectives/transport/doorbell.h"
#include "collectives/transport/payload.h"

typedef struct mp_segment_s mp_segment_t;

// What another process needs to map a segment.
typedef struct {
  int64_t pid;
  int64_t fd;
  uint64_t cookie[2];  // random: proves that the file found is the one meant
} mp_segment_address_t;

// ---- Doors ----

// How a restarted process introduces itself to its job (world_return.h). Gaps and the rest of texts
// are zero.
typedef struct {
  uint64_t incarnation;  // random, not 0
  uint32_t rank;
  uint32_t zero;
  int64_t pid;
  mp_segment_address_t address;  // all zero: it shares no memory with the receiver of this knock
  char hostname[64];
} mp_knock_t;

typedef enum {
  MP_DOOR_IDLE,
  MP_DOOR_WRITING,   // by the knocking process
  MP_DOOR_KNOCKED,   // the owner has to look
  MP_DOOR_READING,   // the owner does
  MP_DOOR_ANSWERED,  // in `answer`
} mp_door_state_t;

// A restarted process knocks here before it has a ring again. If it dies meanwhile, the door stays
// in whatever state it had, and the next process in its place takes it over.
typedef struct {
  _Alignas(64) atomic_uint state;
  uint32_t answer;  // a status code
  mp_knock_t knock;
} mp_door_t;

// ---- Rings ----

enum { MP_RING_SLOTS = 256, MP_INLINE_BYTES = 64 };

// A packet in a ring.
typedef struct {
  mp_envelope_t envelope;
  uint64_t offset;  // of its payload in the sender's segment; 0: the bytes are here
  uint32_t bytes;   // of data
  _Alignas(16) unsigned char data[MP_INLINE_BYTES];
} mp_ring_slot_t;

// A ring of packets with one writer and one reader. The positions are never reset; they wrap
// around. The slots from tail to head are the reader's and the others the writer's: each position
// hands slots over to the other process, and is stored after the last access to them (shm.c). The
// two are in lines of their own, so that writing does not take the reader's line away.
typedef struct {
  _Alignas(64) atomic_uint head;  // the writer's
  _Alignas(64) atomic_uint tail;  // the reader's
  // Set by the writer before it gives up on a full ring, cleared by the reader. It spares the
  // reader a bell, which may be a system call, for each slot that it empties.
  atomic_uint writer_waits;
  _Alignas(64) mp_ring_slot_t slots[MP_RING_SLOTS];
  mp_door_t door;
} mp_ring_t;

// ---- Life ----

// A new segment, owned by this process, with `num_rings` rings. `num_processes` is how many
// processes of the host have segments, because each of them maps all. RESOURCE_EXHAUSTED when the
// system gives no memory.
MP_NODISCARD mp_status_t mp_segment_create(uint32_t num_rings, uint32_t num_processes,
                                           mp_segment_t **out_segment);
// Maps the segment of another process. UNAVAILABLE when this process may not or cannot do that.
MP_NODISCARD mp_status_t mp_segment_open(const mp_segment_address_t *address,
                                         mp_segment_t **out_segment);
// mp_segment_retain adds a reference and returns the segment; the last mp_segment_release of this
// process unmaps it. NULL is released without effect.
mp_segment_t *mp_segment_retain(mp_segment_t *segment);
void mp_segment_release(mp_segment_t *segment);

// What another process needs to map it.
mp_segment_address_t mp_segment_address(const mp_segment_t *segment);
// The doorbell of its owner's progress thread.
mp_doorbell_t *mp_segment_doorbell(mp_segment_t *segment);
// Called by the owner when it has told the user why it ends: no other process need report its end.
void mp_segment_explain(mp_segment_t *segment);
// True when the owner has called mp_segment_explain.
bool mp_segment_is_explained(const mp_segment_t *segment);
// The rings: how many there are (mp_segment_num_rings), and one of them (mp_segment_ring).
uint32_t mp_segment_num_rings(const mp_segment_t *segment);
mp_ring_t *mp_segment_ring(mp_segment_t *segment, uint32_t index);
// Counts the knocks at all doors, so that the owner need not look at each.
atomic_uint *mp_segment_num_knocks(mp_segment_t *segment);

// ---- Payload blocks ----

// A block with one reference and room for `bytes`. Only the owner may call this. NULL when the
// segment is full.
mp_payload_block_t *mp_segment_take(mp_segment_t *segment, size_t bytes);
// At which byte of this segment a block lies, for other processes to find it; 0 when the block is
// not in this segment.
uint64_t mp_segment_offset_of(const mp_segment_t *segment, const mp_payload_block_t *block);
// The block that lies there. NULL when no block begins there, or when its size goes beyond the
// segment.
mp_payload_block_t *mp_segment_block_at(mp_segment_t *segment, uint64_t offset);
// Hands a block of any segment, which has no references any more, back to the segment's owner. Any
// process; called by mp_payload_block_release only.
void mp_segment_return(mp_payload_block_t *block);
// Called by the owner every second or so: gives pages back of blocks that were free all the time
// since the last call.
void mp_segment_trim(mp_segment_t *segment);
// How many bytes big blocks have that are free and still have their pages (for tests).
size_t mp_segment_idle_bytes(mp_segment_t *segment);

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_SEGMENT_H_
