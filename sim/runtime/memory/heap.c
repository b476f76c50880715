#include "sim/runtime/memory/heap.h"

#include <sys/mman.h>

#include "sim/base/alloc.h"
#include "sim/base/os/maps.h"
#include "sim/base/os/pages.h"
#include "sim/base/os/system.h"

enum {
  MP_BINS_PER_DOUBLING = 4,
  MP_NUM_BINS = 58 * MP_BINS_PER_DOUBLING,
  MP_BIN_WORDS = (MP_NUM_BINS + 63) / 64,
  MP_BEST_FIT_STEPS = 32,  // blocks looked at in the request's own bin
  MP_FIRST_CHUNK = 256 << 10,
  MP_LAST_CHUNK = 64 << 20,
  MP_HUGE_PAGE = 2 << 20,
  MP_TRIM_BLOCK = 64 << 10,
};

// All blocks of a pool have the same granularity, so that they stay aligned when they are split.
typedef enum {
  MP_POOL_SMALL,  // multiples of 64 bytes (pinned_host: of a page)
  MP_POOL_PAGES,  // multiples of a page
  MP_POOL_HUGE,   // the same, in chunks with huge pages
  MP_NUM_POOLS,
} pool_kind_t;

typedef struct chunk_s {
  struct chunk_s *next;
  char *data;
  uint64_t bytes;
} chunk_t;

typedef struct {
  mp_span_t *bins[MP_NUM_BINS];
  uint64_t used[MP_BIN_WORDS];  // bit i: bins[i] is not empty
  uint64_t next_chunk;
} pool_t;

struct mp_heap_s {
  pool_t pools[MP_NUM_POOLS];
  chunk_t *chunks;
  int32_t numa_node;
  bool is_bound;
  uint64_t idle;  // sum of `touched` over free blocks
};

mp_status_t mp_heap_create(int32_t numa_node, mp_heap_t **out_heap) {
  mp_heap_t *heap = mp_calloc(1, sizeof(*heap));
  MP_RETURN_IF_NULL(heap);
  heap->numa_node = numa_node;
  heap->is_bound = numa_node >= 0;
  heap->pools[MP_POOL_SMALL].next_chunk = MP_FIRST_CHUNK;
  heap->pools[MP_POOL_PAGES].next_chunk = MP_BIG_BLOCK;
  heap->pools[MP_POOL_HUGE].next_chunk = MP_LAST_CHUNK;
  *out_heap = heap;
  return NULL;
}

void mp_heap_release(mp_heap_t *heap) {
  if (heap == NULL) return;
  for (int pool = 0; pool < MP_NUM_POOLS; ++pool) {
    for (int i = 0; i < MP_NUM_BINS; ++i) {
      for (mp_span_t *block = heap->pools[pool].bins[i]; block != NULL;) {
        mp_span_t *next = block->list_next;
        mp_free(block);
        block = next;
      }
    }
  }
  for (chunk_t *chunk = heap->chunks; chunk != NULL;) {
    chunk_t *next = chunk->next;
    mp_munmap(chunk->data, chunk->bytes);
    mp_free(chunk);
    chunk = next;
  }
  mp_free(heap);
}

bool mp_heap_is_bound(const mp_heap_t *heap) {
  return heap->is_bound;
}

bool mp_heap_look_at_pages(const mp_heap_t *heap, mp_pages_t *out_pages) {
  enum { MOST_PAGES = 1 << 14 };  // some milliseconds
  *out_pages = (mp_pages_t){0};
  if (heap->numa_node < 0) return false;
  uint64_t bytes = 0;
  for (const chunk_t *chunk = heap->chunks; chunk != NULL; chunk = chunk->next) {
    bytes += chunk->bytes;
  }
  const uint64_t step = (bytes / MP_PAGE_BYTES / MOST_PAGES + 1) * MP_PAGE_BYTES;
  for (const chunk_t *chunk = heap->chunks; chunk != NULL; chunk = chunk->next) {
    if (!mp_pages_look(chunk->data, chunk->bytes, step, heap->numa_node, out_pages)) return false;
  }
  return true;
}

uint64_t mp_heap_idle_bytes(const mp_heap_t *heap) {
  return heap->idle;
}

static uint64_t heap_round_up(uint64_t bytes, uint64_t unit) {
  return (bytes + unit - 1) & ~(unit - 1);
}

uint64_t mp_heap_round(uint64_t bytes, bool whole_pages) {
  if (bytes > (uint64_t)1 << 56) return 0;
  whole_pages = whole_pages || bytes >= MP_PAGE_ALIGNED_FROM;
  return heap_round_up(bytes, whole_pages ? MP_PAGE_BYTES : MP_BLOCK_ALIGN);
}

static pool_kind_t heap_pool_of(uint64_t bytes) {
  if (bytes >= MP_BIG_BLOCK) return MP_POOL_HUGE;
  return bytes >= MP_PAGE_ALIGNED_FROM ? MP_POOL_PAGES : MP_POOL_SMALL;
}

// Bin b holds sizes from (4 + b % 4) * 2^(b / 4) / 4 units of 64 bytes up to those of bin b + 1.
static int heap_bin_of(uint64_t bytes) {
  MP_ASSERT(bytes >= MP_BLOCK_ALIGN);
  uint64_t units = bytes / MP_BLOCK_ALIGN;
  int doubling = 63 - __builtin_clzll(units);
  int quarter =
      doubling >= 2 ? (int)(units >> (doubling - 2)) & 3 : (int)(units << (2 - doubling)) & 3;
  return doubling * MP_BINS_PER_DOUBLING + quarter;
}

static void heap_bin_insert(mp_heap_t *heap, mp_span_t *block) {
  MP_ASSERT(block->pool < MP_NUM_POOLS && !block->is_free && block->touched <= block->bytes);
  pool_t *pool = &heap->pools[block->pool];
  int bin = heap_bin_of(block->bytes);
  block->is_free = true;
  block->list_prev = NULL;
  block->list_next = pool->bins[bin];
  if (block->list_next != NULL) block->list_next->list_prev = block;
  pool->bins[bin] = block;
  pool->used[bin / 64] |= (uint64_t)1 << (bin % 64);
  heap->idle += block->touched;
}

static void heap_bin_remove(mp_heap_t *heap, mp_span_t *block) {
  pool_t *pool = &heap->pools[block->pool];
  int bin = heap_bin_of(block->bytes);
  MP_ASSERT(block->is_free && heap->idle >= block->touched);
  MP_ASSERT((block->list_prev != NULL ? block->list_prev->list_next : pool->bins[bin]) == block);
  if (block->list_prev != NULL) {
    block->list_prev->list_next = block->list_next;
  } else {
    pool->bins[bin] = block->list_next;
    if (block->list_next == NULL) pool->used[bin / 64] &= ~((uint64_t)1 << (bin % 64));
  }
  if (block->list_next != NULL) block->list_next->list_prev = block->list_prev;
  block->is_free = false;
  heap->idle -= block->touched;
}

// The first bin >= `bin` that is not empty, or MP_NUM_BINS.
static int heap_next_used_bin(const pool_t *pool, int bin) {
  for (int word = bin / 64; word < MP_BIN_WORDS; ++word) {
    uint64_t bits = pool->used[word];
    if (word == bin / 64) bits &= ~(uint64_t)0 << (bin % 64);
    if (bits != 0) return word * 64 + __builtin_ctzll(bits);
  }
  return MP_NUM_BINS;
}

static mp_span_t *heap_find_fit(const pool_t *pool, uint64_t bytes, uint64_t after) {
  int own = heap_bin_of(bytes);
  for (int bin = heap_next_used_bin(pool, own); bin < MP_NUM_BINS;
       bin = heap_next_used_bin(pool, bin + 1)) {
    mp_span_t *best = NULL;
    int steps = 0;
    for (mp_span_t *block = pool->bins[bin]; block != NULL; block = block->list_next) {
      if (block->bytes < bytes || block->free_after > after) continue;
      if (best == NULL || block->bytes < best->bytes) best = block;
      if (best->bytes == bytes || ++steps == MP_BEST_FIT_STEPS) break;
    }
    if (best != NULL) return best;
  }
  return NULL;
}

// Maps `bytes` of address space, aligned to `align` (a power of two >= a page). The system assigns
// addresses downwards, so the aligned range is taken at the upper end: there it borders on the
// previous mapping, and both become one map. With a gap each chunk would be a map of its own, and a
// process may have only some 65,000.
static char *heap_map_aligned(uint64_t bytes, uint64_t align) {
  uint64_t total = bytes + (align > MP_PAGE_BYTES ? align : 0);
  char *data =
      mp_mmap(total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  if (data == MAP_FAILED) return NULL;
  if (total == bytes) return data;
  char *end = (char *)((uint64_t)(data + total) & ~(align - 1));
  char *start = end - bytes;
  if (end != data + total) mp_munmap(end, (size_t)(data + total - end));
  if (start != data) mp_munmap(data, (size_t)(start - data));
  return start;
}

static mp_span_t *heap_add_chunk(mp_heap_t *heap, uint64_t bytes, pool_kind_t kind) {
  if (mp_maps_are_short()) return NULL;
  pool_t *pool = &heap->pools[kind];
  uint64_t align = kind == MP_POOL_HUGE ? MP_HUGE_PAGE : MP_PAGE_BYTES;
  const uint64_t least = heap_round_up(bytes, align);
  uint64_t size = least < pool->next_chunk ? pool->next_chunk : least;
  chunk_t *chunk = mp_calloc(1, sizeof(*chunk));
  mp_span_t *block = mp_calloc(1, sizeof(*block));
  char *data = NULL;
  if (chunk != NULL && block != NULL) data = heap_map_aligned(size, align);
  // If address space is short, map a chunk for this block alone.
  if (chunk != NULL && block != NULL && data == NULL && size > least) {
    size = least;
    data = heap_map_aligned(size, align);
  }
  if (data == NULL) {
    mp_free(chunk);
    mp_free(block);
    return NULL;
  }
  // If this fails, the system's default is good enough.
  if (kind == MP_POOL_HUGE) (void)madvise(data, size, MADV_HUGEPAGE);
  if (heap->numa_node >= 0 && !mp_pages_bind(data, size, heap->numa_node)) heap->is_bound = false;
  if (pool->next_chunk < MP_LAST_CHUNK) pool->next_chunk *= 2;
  *chunk = (chunk_t){heap->chunks, data, size};
  heap->chunks = chunk;
  block->data = data;
  block->bytes = size;
  block->pool = (uint8_t)kind;
  heap_bin_insert(heap, block);
  return block;
}

// Cuts `block` (in no bin) to `bytes`; the rest becomes a free block. False when there is no memory
// to describe the rest: then the request fails. Returning the whole block would be wrong: it can be
// a thousand times larger, and only `bytes` were counted against the capacity.
static bool heap_split(mp_heap_t *heap, mp_span_t *block, uint64_t bytes) {
  MP_ASSERT(!block->is_free && block->bytes >= bytes && bytes % MP_BLOCK_ALIGN == 0);
  if (block->bytes == bytes) return true;
  mp_span_t *rest = mp_calloc(1, sizeof(*rest));
  if (rest == NULL) return false;
  rest->data = block->data + bytes;
  rest->bytes = block->bytes - bytes;
  rest->pool = block->pool;
  rest->free_after = block->free_after;
  rest->touched = block->touched > bytes ? block->touched - bytes : 0;
  rest->prev = block;
  rest->next = block->next;
  if (rest->next != NULL) rest->next->prev = rest;
  block->next = rest;
  block->bytes = bytes;
  heap_bin_insert(heap, rest);
  return true;
}

mp_span_t *mp_heap_take(mp_heap_t *heap, uint64_t bytes, uint64_t after) {
  MP_ASSERT(bytes != 0 && bytes % MP_BLOCK_ALIGN == 0);
  pool_kind_t kind = heap_pool_of(bytes);
  mp_span_t *block = heap_find_fit(&heap->pools[kind], bytes, after);
  if (block == NULL) block = heap_add_chunk(heap, bytes, kind);
  if (block == NULL) return NULL;
  heap_bin_remove(heap, block);
  if (heap_split(heap, block, bytes)) return block;
  heap_bin_insert(heap, block);
  return NULL;
}

// Joins the free block `right` into the block left of it; both are in no bin.
static mp_span_t *heap_join(mp_span_t *left, mp_span_t *right) {
  MP_ASSERT(left->next == right && left->data + left->bytes == right->data);
  MP_ASSERT(left->pool == right->pool && !left->is_free && !right->is_free);
  left->bytes += right->bytes;
  left->touched += right->touched;
  if (right->free_after > left->free_after) left->free_after = right->free_after;
  left->next = right->next;
  if (left->next != NULL) left->next->prev = left;
  mp_free(right);
  return left;
}

void mp_heap_give(mp_heap_t *heap, mp_span_t *block, uint64_t free_after) {
  MP_ASSERT(!block->is_free);
  block->label = NULL;
  block->free_after = free_after;
  block->touched = block->bytes;
  mp_span_t *next = block->next, *prev = block->prev;
  if (next != NULL && next->is_free) {
    heap_bin_remove(heap, next);
    block = heap_join(block, next);
  }
  if (prev != NULL && prev->is_free) {
    heap_bin_remove(heap, prev);
    block = heap_join(prev, block);
  }
  heap_bin_insert(heap, block);
}

static void heap_trim_block(mp_heap_t *heap, mp_span_t *block) {
  char *start = (char *)heap_round_up((uint64_t)block->data, MP_PAGE_BYTES);
  char *end = (char *)((uint64_t)(block->data + block->bytes) & ~(uint64_t)(MP_PAGE_BYTES - 1));
  if (end > start) (void)madvise(start, (size_t)(end - start), MADV_DONTNEED);
  heap->idle -= block->touched;
  block->touched = 0;
}

void mp_heap_trim(mp_heap_t *heap, uint64_t completed) {
  for (int kind = MP_NUM_POOLS - 1; kind >= 0; --kind) {
    pool_t *pool = &heap->pools[kind];
    int first = heap_bin_of(MP_TRIM_BLOCK);
    for (int bin = heap_next_used_bin(pool, first); bin < MP_NUM_BINS;
         bin = heap_next_used_bin(pool, bin + 1)) {
      for (mp_span_t *block = pool->bins[bin]; block != NULL; block = block->list_next) {
        if (block->touched != 0 && block->free_after <= completed) heap_trim_block(heap, block);
      }
    }
  }
}

// ---- Checks ----

#ifdef MINIPOD_ASSERTS

// Sums over the blocks of a heap.
typedef struct {
  uint64_t count, bytes, idle;
  uint64_t num_first;  // that begin a chunk
} heap_sums_t;

static const chunk_t *heap_chunk_of(const mp_heap_t *heap, const mp_span_t *block) {
  const chunk_t *chunk = heap->chunks;
  while (chunk != NULL && (block->data < chunk->data || block->data >= chunk->data + chunk->bytes))
    chunk = chunk->next;
  return chunk;
}

static void heap_check_block(const mp_heap_t *heap, const mp_span_t *block, heap_sums_t *sums) {
  const mp_span_t *prev = block->prev, *next = block->next;
  MP_ASSERT(block->bytes != 0 && block->bytes % MP_BLOCK_ALIGN == 0);
  MP_ASSERT(block->pool < MP_NUM_POOLS);
  if (prev != NULL) {
    MP_ASSERT(prev->next == block && prev->pool == block->pool);
    MP_ASSERT(prev->data + prev->bytes == block->data);
    MP_ASSERT(!prev->is_free || !block->is_free);  // otherwise they would have been joined
  }
  if (next != NULL) MP_ASSERT(next->prev == block && block->data + block->bytes == next->data);
  if (prev == NULL || next == NULL) {
    const chunk_t *chunk = heap_chunk_of(heap, block);
    MP_ASSERT(chunk != NULL);
    MP_ASSERT(prev != NULL || block->data == chunk->data);
    MP_ASSERT(next != NULL || block->data + block->bytes == chunk->data + chunk->bytes);
  }
  sums->num_first += prev == NULL;
  sums->bytes += block->bytes;
  sums->count += 1;
}

static void heap_check_bin(const mp_heap_t *heap, int pool, int bin, uint64_t newest,
                           heap_sums_t *sums) {
  const mp_span_t *before = NULL;
  for (const mp_span_t *block = heap->pools[pool].bins[bin]; block != NULL;
       before = block, block = block->list_next) {
    MP_ASSERT(block->is_free && block->list_prev == before);
    MP_ASSERT(block->pool == pool && heap_bin_of(block->bytes) == bin);
    MP_ASSERT(block->touched <= block->bytes);
    MP_ASSERT_MSG(block->free_after <= newest, "it waits for run %llu of %llu",
                  (unsigned long long)block->free_after, (unsigned long long)newest);
    heap_check_block(heap, block, sums);
    sums->idle += block->touched;
  }
}

uint64_t mp_heap_check(const mp_heap_t *heap, const mp_span_t *live, uint64_t newest) {
  heap_sums_t sums = {0};
  for (int pool = 0; pool < MP_NUM_POOLS; ++pool) {
    for (int bin = 0; bin < MP_NUM_BINS; ++bin) {
      const bool is_used = (heap->pools[pool].used[bin / 64] >> (bin % 64) & 1) != 0;
      MP_ASSERT(is_used == (heap->pools[pool].bins[bin] != NULL));
      heap_check_bin(heap, pool, bin, newest, &sums);
    }
  }
  MP_ASSERT(sums.idle == heap->idle);
  const mp_span_t *before = NULL;
  for (const mp_span_t *block = live; block != NULL; before = block, block = block->list_next) {
    MP_ASSERT(!block->is_free && block->list_prev == before);
    heap_check_block(heap, block, &sums);
  }
  uint64_t num_chunks = 0, bytes = 0;
  for (const chunk_t *chunk = heap->chunks; chunk != NULL; chunk = chunk->next) {
    num_chunks += 1;
    bytes += chunk->bytes;
  }
  MP_ASSERT(sums.num_first == num_chunks);
  MP_ASSERT_MSG(sums.bytes == bytes, "blocks of %llu bytes in chunks of %llu",
                (unsigned long long)sums.bytes, (unsigned long long)bytes);
  return sums.count + MP_NUM_POOLS * MP_NUM_BINS / 16;
}

#endif  // MINIPOD_ASSERTS
