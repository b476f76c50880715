#include "sim/runtime/memory/memory.h"

#include <stddef.h>
#include <sys/mman.h>

#include "sim/base/alloc.h"
#include "sim/base/containers/list.h"
#include "sim/base/os/process.h"
#include "sim/runtime/memory/heap.h"

enum {
  MP_IDLE_FLOOR = 256 << 20,  // bytes of idle pages that a client may always keep
  MP_IDLE_SHARE = 4,          // above the floor, at most 1/MP_IDLE_SHARE of the machine's memory
  MP_TRIM_FROM = 1 << 20,     // for smaller blocks the bound is not checked
};

void mp_memory_init(mp_memory_t *memory, const mp_memory_t *who) {
  *memory = (mp_memory_t){.budget = who->budget,
                          .device = who->device,
                          .device_id = who->device_id,
                          .numa_node = who->numa_node,
                          .completed = who->completed,
                          .space = who->space,
                          .capacity = who->capacity,
                          .pool = who->pool};
  mp_lock_init(&memory->lock, MP_LOCK_MEMORY);
}

void mp_memory_deinit(mp_memory_t *memory) {
  MP_ASSERT(memory->live.first == NULL && atomic_load(&memory->in_use) == 0);
  mp_heap_release(memory->heap);
  mp_lock_deinit(&memory->lock);
}

// ---- Allocation ----

static uint64_t memory_in_use(const mp_memory_t *memory) {
  // Relaxed: the lock synchronizes its holders, and other threads need only an approximate number
  // for a message.
  return atomic_load_explicit(&memory->in_use, memory_order_relaxed);
}

// Only holders of the lock write, so a relaxed store suffices.
static void memory_set_in_use(mp_memory_t *memory, uint64_t bytes) {
  mp_lock_assert_held(&memory->lock);
  atomic_store_explicit(&memory->in_use, bytes, memory_order_relaxed);
}

// Adds to a sum that several memories share, unless that would go beyond the limit. The
// compare-and-exchange checks and adds in one step, so that allocations on several devices together
// never exceed the limit. It publishes nothing: a block belongs to one memory, and changes owners
// under that memory's lock.
static bool memory_add_within(_Atomic uint64_t *sum, uint64_t bytes, uint64_t limit) {
  uint64_t before = atomic_load_explicit(sum, memory_order_relaxed);
  do {
    if (bytes > limit || before > limit - bytes) return false;
  } while (!atomic_compare_exchange_weak(sum, &before, before + bytes));
  return true;
}

// Adds to the bytes in use, or returns the limit that would be exceeded. `charge` counts against
// the capacity, `bytes` against the machine. The capacities may allow more than the machine has:
// then the allocation fails here, before the kernel's out-of-memory killer acts.
static mp_memory_limit_t memory_reserve(mp_memory_t *memory, uint64_t charge, uint64_t bytes) {
  mp_lock_assert_held(&memory->lock);
  mp_memory_pool_t *pool = memory->pool;
  mp_memory_budget_t *budget = memory->budget;
  const uint64_t in_use = memory_in_use(memory);
  if (pool != NULL) {
    if (!memory_add_within(&pool->bytes_in_use, charge, pool->capacity)) return MP_LIMIT_POOL;
  } else if (charge > memory->capacity || in_use > memory->capacity - charge) {
    return MP_LIMIT_CAPACITY;
  }
  const uint64_t machine = budget->machine_bytes == 0 ? UINT64_MAX : budget->machine_bytes;
  if (!memory_add_within(&budget->bytes_in_use, bytes, machine)) {
    if (pool != NULL) atomic_fetch_sub(&pool->bytes_in_use, charge);
    return MP_LIMIT_MACHINE;
  }
  memory_set_in_use(memory, in_use + charge);
  return MP_LIMIT_NONE;
}

// Adds an allocation that was reserved and has succeeded to the statistics.
static void memory_count(mp_memory_t *memory, uint64_t bytes) {
  mp_lock_assert_held(&memory->lock);
  memory->num_allocs += 1;
  if (memory_in_use(memory) > memory->peak) memory->peak = memory_in_use(memory);
  if (bytes > memory->largest_alloc) memory->largest_alloc = bytes;
}

static void memory_discharge(mp_memory_t *memory, uint64_t charge, uint64_t bytes) {
  mp_lock_assert_held(&memory->lock);
  memory_set_in_use(memory, memory_in_use(memory) - charge);
  if (memory->pool != NULL) atomic_fetch_sub(&memory->pool->bytes_in_use, charge);
  atomic_fetch_sub(&memory->budget->bytes_in_use, bytes);
}

static void memory_add_live(mp_memory_t *memory, mp_span_t *block, const mp_label_t *label) {
  mp_lock_assert_held(&memory->lock);
  block->label = label;
  MP_LIST_PREPEND(&memory->live, block, list_prev, list_next);
}

static void memory_remove_live(mp_memory_t *memory, mp_span_t *block) {
  mp_lock_assert_held(&memory->lock);
  MP_ASSERT((block->list_prev != NULL ? block->list_prev->list_next : memory->live.first) == block);
  MP_LIST_REMOVE(&memory->live, block, list_prev, list_next);
}

// A block of the heap, or, if blocks are only counted, one without bytes.
static mp_span_t *memory_take(mp_memory_t *memory, uint64_t bytes, uint64_t after) {
  mp_lock_assert_held(&memory->lock);
  if (memory->heap == NULL) {
    mp_span_t *block = mp_calloc(1, offsetof(mp_span_t, prev));
    if (block == NULL) return NULL;
    block->data = mp_empty_array();
    block->bytes = bytes;
    return block;
  }
  uint64_t idle_before = mp_heap_idle_bytes(memory->heap);
  mp_span_t *block = mp_heap_take(memory->heap, bytes, after);
  memory->is_bound = mp_heap_is_bound(memory->heap);
  uint64_t idle_after = mp_heap_idle_bytes(memory->heap);
  atomic_fetch_sub(&memory->budget->bytes_idle, idle_before - idle_after);
  return block;
}

// Gives it back. True: some of its pages may go back to the system.
static bool memory_give(mp_memory_t *memory, mp_span_t *block, uint64_t free_after) {
  mp_lock_assert_held(&memory->lock);
  if (memory->heap == NULL) {
    mp_free(block);
    return false;
  }
  uint64_t idle_before = mp_heap_idle_bytes(memory->heap);
  mp_heap_give(memory->heap, block, free_after);
  uint64_t idle_after = mp_heap_idle_bytes(memory->heap);
  atomic_fetch_add(&memory->budget->bytes_idle, idle_after - idle_before);
  return true;
}

static mp_memory_limit_t memory_alloc_locked(mp_memory_t *memory, uint64_t bytes, uint64_t charge,
                                             uint64_t after, const mp_label_t *label,
                                             mp_span_t **out_block) {
  mp_lock_assert_held(&memory->lock);
  if (memory->heap == NULL && !memory->budget->is_counted_only) {
    mp_status_t status = mp_heap_create(memory->numa_node, &memory->heap);
    mp_status_ignore(status);  // the limit that is returned says as much
    if (status != NULL) return MP_LIMIT_SYSTEM;
  }
  const mp_memory_limit_t limit = memory_reserve(memory, charge, bytes);
  if (limit != MP_LIMIT_NONE) return limit;
  mp_span_t *block = memory_take(memory, bytes, after);
  if (block == NULL) {
    memory_discharge(memory, charge, bytes);
    return MP_LIMIT_SYSTEM;
  }
  block->charged = charge;
  memory_count(memory, charge);
  memory_add_live(memory, block, label);
  if (memory->space == MP_MEMORY_PINNED_HOST && memory->heap != NULL) {
    // Locking may fail, because RLIMIT_MEMLOCK is often only a few MiB. The statistics show whether
    // it did.
    block->is_locked = mlock(block->data, block->bytes) == 0;
    if (block->is_locked) {
      ++memory->num_locked;
    } else {
      ++memory->num_unlocked;
    }
  }
  *out_block = block;
  return MP_LIMIT_NONE;
}

static void memory_trim_locked(mp_memory_t *memory) {
  mp_lock_assert_held(&memory->lock);
  uint64_t before = mp_heap_idle_bytes(memory->heap);
  // Acquire: runs up to this one have finished accessing the pages that are given back.
  mp_heap_trim(memory->heap, atomic_load_explicit(memory->completed, memory_order_acquire));
  uint64_t given = before - mp_heap_idle_bytes(memory->heap);
  atomic_fetch_sub(&memory->budget->bytes_idle, given);
}

// Idle pages of one device must not take the memory that others need: when live and idle bytes
// together approach the machine's memory, all idle pages are given back. The sums are read one
// after the other while other threads change them; an error of a block or two only changes when
// this happens. Called without locks, because this takes the locks of all memories, one at a time.
static void memory_make_room(mp_memory_budget_t *budget) {
  uint64_t idle = atomic_load_explicit(&budget->bytes_idle, memory_order_relaxed);
  uint64_t live = atomic_load_explicit(&budget->bytes_in_use, memory_order_relaxed);
  if (budget->machine_bytes == 0 || idle + live < budget->machine_bytes / 10 * 9) return;
  if (idle < MP_IDLE_FLOOR) return;
  for (uint32_t i = 0; i < budget->num_memories; ++i) {
    mp_memory_t *memory = &budget->memories[i];
    mp_lock(&memory->lock);
    if (memory->heap != NULL) memory_trim_locked(memory);
    mp_unlock(&memory->lock);
  }
}

static mp_status_t memory_alloc(mp_memory_t *memory, uint64_t rounded, uint64_t charge,
                                uint64_t after, const mp_label_t *label, mp_span_t **out_block) {
  mp_lock(&memory->lock);
  const mp_memory_limit_t limit =
      memory_alloc_locked(memory, rounded, charge, after, label, out_block);
  mp_unlock(&memory->lock);
  // Without the lock, which is a leaf: making room and the error's message take the locks of other
  // memories.
  if (rounded >= MP_TRIM_FROM) memory_make_room(memory->budget);
  if (limit == MP_LIMIT_NONE) return NULL;
  const bool is_described = limit == MP_LIMIT_CAPACITY || limit == MP_LIMIT_POOL;
  return mp_memory_exhausted(memory, is_described ? charge : rounded, label, limit);
}

mp_status_t mp_memory_alloc(mp_memory_t *memory, uint64_t bytes, uint64_t after,
                            const mp_label_t *label, mp_span_t **out_block) {
  return mp_memory_alloc_as(memory, bytes, bytes, after, label, out_block);
}

mp_status_t mp_memory_alloc_as(mp_memory_t *memory, uint64_t bytes, uint64_t charge, uint64_t after,
                               const mp_label_t *label, mp_span_t **out_block) {
  MP_ASSERT(bytes != 0 && label != NULL);
  const uint64_t rounded = mp_heap_round(bytes, memory->space == MP_MEMORY_PINNED_HOST);
  if (rounded == 0) return mp_memory_exhausted(memory, bytes, label, MP_LIMIT_SYSTEM);
  // A shared capacity is this machine's own memory.
  const bool is_itself = charge == bytes || memory->pool != NULL;
  return memory_alloc(memory, rounded, is_itself ? rounded : charge, after, label, out_block);
}

// True when pages should go back to the system. Idle pages are kept up to a floor; above it, as
// long as they are no more than the live ones and a small part of the machine's memory.
// Approximate, because other threads change the sums meanwhile.
static bool memory_keeps_too_much(mp_memory_budget_t *budget) {
  uint64_t idle = atomic_load_explicit(&budget->bytes_idle, memory_order_relaxed);
  if (idle <= MP_IDLE_FLOOR) return false;
  uint64_t live = atomic_load_explicit(&budget->bytes_in_use, memory_order_relaxed);
  return idle > live ||
         (budget->machine_bytes != 0 && idle > budget->machine_bytes / MP_IDLE_SHARE);
}

void mp_memory_free(mp_memory_t *memory, mp_span_t *block, uint64_t free_after) {
  mp_memory_budget_t *budget = memory->budget;
  mp_lock(&memory->lock);
  MP_ASSERT(!block->is_free && block->label != NULL);
  uint64_t bytes = block->bytes;
  memory_remove_live(memory, block);
  memory_discharge(memory, block->charged, bytes);
  if (memory->space == MP_MEMORY_PINNED_HOST && memory->heap != NULL) {
    if (block->is_locked) {
      (void)munlock(block->data, bytes);
      block->is_locked = false;
      --memory->num_locked;
    } else {
      --memory->num_unlocked;
    }
  }
  const bool has_pages = memory_give(memory, block, free_after);
  if (has_pages && bytes >= MP_TRIM_FROM && memory_keeps_too_much(budget)) {
    memory_trim_locked(memory);
  }
  mp_unlock(&memory->lock);
}

mp_status_t mp_memory_charge(mp_memory_t *memory, uint64_t bytes, const mp_label_t *label) {
  mp_lock(&memory->lock);
  const mp_memory_limit_t limit = memory_reserve(memory, bytes, bytes);
  if (limit == MP_LIMIT_NONE) {
    memory_count(memory, bytes);
    memory->adopted += bytes;
  }
  mp_unlock(&memory->lock);
  if (limit == MP_LIMIT_NONE) return NULL;
  return mp_memory_exhausted(memory, bytes, label, limit);
}

void mp_memory_discharge(mp_memory_t *memory, uint64_t bytes) {
  mp_lock(&memory->lock);
  MP_ASSERT(memory->adopted >= bytes);
  memory->adopted -= bytes;
  memory_discharge(memory, bytes, bytes);
  mp_unlock(&memory->lock);
}

// True in a child of the process that made the client, where another thread may hold the lock for
// ever.
static bool memory_is_forked(const mp_memory_t *memory) {
  return memory->budget->generation != mp_process_generation();
}

void mp_memory_get_stats(const mp_memory_t *memory, mp_memory_stats_t *out_stats) {
  mp_lock_t *lock = (mp_lock_t *)&memory->lock;
  // In a forked child another thread may have held the lock, so the values are read without it.
  bool is_child = memory_is_forked(memory);
  if (!is_child) mp_lock(lock);
  const uint64_t limit = memory->capacity < INT64_MAX ? memory->capacity : INT64_MAX;
  const uint64_t in_use = memory_in_use(memory);
  const mp_memory_pool_t *pool = memory->pool;
  const uint64_t left = limit - (pool == NULL ? in_use : atomic_load(&pool->bytes_in_use));
  const uint64_t part = pool == NULL ? limit : limit / pool->num_memories;
  *out_stats = (mp_memory_stats_t){
      .bytes_in_use = (int64_t)in_use,
      .peak_bytes_in_use = (int64_t)memory->peak,
      .bytes_limit = (int64_t)limit,
      .bytes_reservable = (int64_t)(part < in_use + left ? part : in_use + left),
      .largest_free_block_bytes = (int64_t)left,
      .num_allocs = (int64_t)memory->num_allocs,
      .largest_alloc_size = (int64_t)memory->largest_alloc,
      .is_bound = memory->is_bound,
      .is_locked = memory->num_locked != 0 && memory->num_unlocked == 0,
  };
  mp_pages_t pages;
  const bool is_known =
      !is_child && memory->heap != NULL && mp_heap_look_at_pages(memory->heap, &pages);
  out_stats->bytes_on_node = is_known ? (int64_t)pages.here : -1;
  out_stats->bytes_off_node = is_known ? (int64_t)pages.elsewhere : -1;
  if (!is_child) mp_unlock(lock);
}

void mp_memory_clear_stats(mp_memory_t *memory) {
  if (memory_is_forked(memory)) return;
  mp_lock(&memory->lock);
  memory->peak = memory_in_use(memory);
  memory->num_allocs = 0;
  memory->largest_alloc = 0;
  mp_unlock(&memory->lock);
}
