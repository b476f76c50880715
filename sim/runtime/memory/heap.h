// The address space of one memory: chunks, blocks, and the bins of free blocks.
//
// Not thread-safe: the memory's lock protects it. Knows nothing of capacities and owners.
#ifndef MINIPOD_SIM_RUNTIME_MEMORY_HEAP_H_
#define MINIPOD_SIM_RUNTIME_MEMORY_HEAP_H_

#include "sim/base/os/pages.h"
#include "sim/runtime/memory/memory.h"

enum {
  MP_BLOCK_ALIGN = 64,
  MP_PAGE_BYTES = 4096,
  MP_PAGE_ALIGNED_FROM = 1 << 20,  // blocks this big start and end at page boundaries
  MP_BIG_BLOCK = 4 << 20,          // and these live in chunks with huge pages
};

// An empty heap. `numa_node` is the node to bind the chunks to; -1: nowhere. RESOURCE_EXHAUSTED
// when memory is short.
MP_NODISCARD mp_status_t mp_heap_create(int32_t numa_node, mp_heap_t **out_heap);
// Unmaps everything; no block may be live. NULL: nothing.
void mp_heap_release(mp_heap_t *heap);
// True while there is a node to bind to and every chunk could be bound.
bool mp_heap_is_bound(const mp_heap_t *heap);
// Counts the touched pages that are on the node that the heap is bound to: all pages up to 64 MiB
// of chunks, a sample beyond that. False if there is no node, or the system does not say.
bool mp_heap_look_at_pages(const mp_heap_t *heap, mp_pages_t *out_pages);

// `bytes`, rounded up as blocks are; 0 when it is more than 2^56. `whole_pages`: to pages in any
// case.
uint64_t mp_heap_round(uint64_t bytes, bool whole_pages);
// Takes a block of `bytes` (a result of mp_heap_round) whose free_after was at most `after`, if
// necessary from a new chunk. NULL: there is no address space, there are too few memory maps left,
// or there is no memory to describe the block.
mp_span_t *mp_heap_take(mp_heap_t *heap, uint64_t bytes, uint64_t after);
// Gives a block back and joins it with free neighbours.
void mp_heap_give(mp_heap_t *heap, mp_span_t *block, uint64_t free_after);
// How many bytes of free blocks may be backed by pages.
uint64_t mp_heap_idle_bytes(const mp_heap_t *heap);
// Gives the pages of free blocks of at least 64 KiB whose free_after is at most `completed` back to
// the system.
void mp_heap_trim(mp_heap_t *heap, uint64_t completed);

#ifdef MINIPOD_ASSERTS
// Asserts that the blocks, live and free, cover the chunks without gaps and overlaps, that free
// neighbours were joined, that bins and counts are right, and that no free block waits for a run
// newer than `newest`. Returns the number of blocks checked. For client_check.h.
uint64_t mp_heap_check(const mp_heap_t *heap, const mp_span_t *live, uint64_t newest);
#endif

#endif  // MINIPOD_SIM_RUNTIME_MEMORY_HEAP_H_
