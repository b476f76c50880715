#include "sim/runtime/memory/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>

#include "sim/base/containers/list.h"
#include "sim/base/os/process.h"
#include "sim/runtime/memory/heap.h"

enum {
  MP_IDLE_FLOOR = 256 << 20,  // bytes of idle pages that a client may always keep
  MP_IDLE_SHARE = 4,       // above the floor, at most one part in so many of the machine's memory
  MP_TRIM_FROM = 1 << 20,  // for smaller blocks the bound is not looked at
};

void mp_memory_init(mp_memory_t *memory, const mp_memory_t *who) {
  *memory = (mp_memory_t){.budget = who->budget,
                          .device = who->device,
                          .device_id = who->device_id,
                          .numa_node = who->numa_node,
                          .completed = who->completed,
                          .space = who->space,
                          .capacity = who->capacity};
  mp_lock_init(&memory->lock, MP_LOCK_MEMORY);
}

void mp_memory_deinit(mp_memory_t *memory) {
  MP_ASSERT(memory->live.first == NULL && memory->in_use == 0);
  mp_heap_release(memory->heap);
  mp_lock_deinit(&memory->lock);
}

void mp_memory_describe(const mp_memory_t *memory, mp_strbuf_t *out) {
  mp_strbuf_printf(out, "%s memory of device %" PRIu32, mp_memory_space_name(memory->space),
                   memory->device_id);
}

static mp_status_t memory_exhausted(const mp_memory_t *memory, uint64_t bytes,
                                    const mp_label_t *label, const char *reason) {
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_strbuf_printf(&text, "out of memory: %" PRIu64 " bytes for ", bytes);
  mp_label_print(label, &text);
  mp_strbuf_puts(&text, " do not fit in ");
  mp_memory_describe(memory, &text);
  uint64_t left = memory->capacity - memory->in_use;
  if (memory->capacity != UINT64_MAX) {
    mp_strbuf_printf(
        &text, ": capacity %" PRIu64 " bytes, in use %" PRIu64 ", largest free block %" PRIu64,
        memory->capacity, memory->in_use, left);
  } else {
    mp_strbuf_printf(&text, ": in use %" PRIu64 " bytes", memory->in_use);
  }
  if (reason != NULL) mp_strbuf_printf(&text, " (%s)", reason);
  mp_memory_describe_holders(memory, &text);
  // When there is no memory for the whole text, a shorter one has to do.
  mp_status_t status =
      mp_status_make(MP_RESOURCE_EXHAUSTED, "%s",
                     text.failed ? "out of memory of a device, and of host memory to say more"
                                 : mp_strbuf_text(&text));
  mp_strbuf_deinit(&text);
  return status;
}

// ---- Allocation ----

// Adds to what is in use, or says why not. What the described capacities allow may still be more
// than the machine has: then it is refused here and not by the kernel's out-of-memory killer.
static mp_status_t memory_reserve(mp_memory_t *memory, uint64_t bytes, const mp_label_t *label) {
  mp_lock_assert_held(&memory->lock);
  if (bytes > memory->capacity || memory->in_use > memory->capacity - bytes) {
    return memory_exhausted(memory, bytes, label, NULL);
  }
  mp_memory_budget_t *budget = memory->budget;
  uint64_t total = atomic_fetch_add(&budget->bytes_in_use, bytes) + bytes;
  if (budget->machine_bytes != 0 && total > budget->machine_bytes) {
    atomic_fetch_sub(&budget->bytes_in_use, bytes);
    char reason[128];
    snprintf(reason, sizeof(reason),
             "the machine has %" PRIu64 " bytes, and all devices together would hold %" PRIu64,
             budget->machine_bytes, total);
    return memory_exhausted(memory, bytes, label, reason);
  }
  memory->in_use += bytes;
  return NULL;
}

// Enters an allocation that has succeeded, and was reserved before, into the statistics.
static void memory_count(mp_memory_t *memory, uint64_t bytes) {
  mp_lock_assert_held(&memory->lock);
  memory->num_allocs += 1;
  if (memory->in_use > memory->peak) memory->peak = memory->in_use;
  if (bytes > memory->largest_alloc) memory->largest_alloc = bytes;
}

static void memory_discharge(mp_memory_t *memory, uint64_t bytes) {
  mp_lock_assert_held(&memory->lock);
  memory->in_use -= bytes;
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

static mp_status_t memory_alloc_locked(mp_memory_t *memory, uint64_t bytes, uint64_t after,
                                       const mp_label_t *label, mp_span_t **out_block) {
  mp_lock_assert_held(&memory->lock);
  if (memory->heap == NULL) {
    MP_RETURN_IF_ERROR(mp_heap_create(memory->numa_node, &memory->heap));
  }
  MP_RETURN_IF_ERROR(memory_reserve(memory, bytes, label));
  uint64_t idle_before = mp_heap_idle_bytes(memory->heap);
  mp_span_t *block = mp_heap_take(memory->heap, bytes, after);
  memory->is_bound = mp_heap_is_bound(memory->heap);
  uint64_t idle_after = mp_heap_idle_bytes(memory->heap);
  atomic_fetch_sub(&memory->budget->bytes_idle, idle_before - idle_after);
  if (block == NULL) {
    memory_discharge(memory, bytes);
    return memory_exhausted(memory, bytes, label, "the operating system gives no more memory");
  }
  memory_count(memory, bytes);
  memory_add_live(memory, block, label);
  if (memory->space == MP_MEMORY_PINNED_HOST) {
    // Locking may fail, because RLIMIT_MEMLOCK is often only a few MiB. The statistics say whether
    // it did.
    block->is_locked = mlock(block->data, block->bytes) == 0;
    if (block->is_locked) {
      ++memory->num_locked;
    } else {
      ++memory->num_unlocked;
    }
  }
  *out_block = block;
  return NULL;
}

static void memory_trim_locked(mp_memory_t *memory) {
  mp_lock_assert_held(&memory->lock);
  uint64_t before = mp_heap_idle_bytes(memory->heap);
  mp_heap_trim(memory->heap, atomic_load_explicit(memory->completed, memory_order_acquire));
  uint64_t given = before - mp_heap_idle_bytes(memory->heap);
  atomic_fetch_sub(&memory->budget->bytes_idle, given);
}

// Idle pages of one device must not crowd out what others need: when live and idle bytes together
// come near the machine's memory, all idle pages go.
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

mp_status_t mp_memory_alloc(mp_memory_t *memory, uint64_t bytes, uint64_t after,
                            const mp_label_t *label, mp_span_t **out_block) {
  MP_ASSERT(bytes != 0 && label != NULL);
  uint64_t rounded = mp_heap_round(bytes, memory->space == MP_MEMORY_PINNED_HOST);
  mp_lock(&memory->lock);
  mp_status_t status = rounded == 0 ? memory_exhausted(memory, bytes, label, NULL)
                                    : memory_alloc_locked(memory, rounded, after, label, out_block);
  mp_unlock(&memory->lock);
  if (rounded >= MP_TRIM_FROM) memory_make_room(memory->budget);
  return status;
}

// True when pages should go back to the system. Idle pages are kept up to a floor; above it, as
// long as they are no more than the live ones and no large part of the machine's memory.
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
  memory_discharge(memory, bytes);
  if (memory->space == MP_MEMORY_PINNED_HOST) {
    if (block->is_locked) {
      (void)munlock(block->data, bytes);
      block->is_locked = false;
      --memory->num_locked;
    } else {
      --memory->num_unlocked;
    }
  }
  uint64_t idle_before = mp_heap_idle_bytes(memory->heap);
  mp_heap_give(memory->heap, block, free_after);
  atomic_fetch_add(&budget->bytes_idle, mp_heap_idle_bytes(memory->heap) - idle_before);
  if (bytes >= MP_TRIM_FROM && memory_keeps_too_much(budget)) memory_trim_locked(memory);
  mp_unlock(&memory->lock);
}

mp_status_t mp_memory_charge(mp_memory_t *memory, uint64_t bytes, const mp_label_t *label) {
  mp_lock(&memory->lock);
  mp_status_t status = memory_reserve(memory, bytes, label);
  if (status == NULL) memory_count(memory, bytes);
  if (status == NULL) memory->adopted += bytes;
  mp_unlock(&memory->lock);
  return status;
}

void mp_memory_discharge(mp_memory_t *memory, uint64_t bytes) {
  mp_lock(&memory->lock);
  MP_ASSERT(memory->adopted >= bytes);
  memory->adopted -= bytes;
  memory_discharge(memory, bytes);
  mp_unlock(&memory->lock);
}

// In a child of the process that made the client: another thread may hold the lock for ever.
static bool memory_is_forked(const mp_memory_t *memory) {
  return memory->budget->generation != mp_process_generation();
}

void mp_memory_get_stats(const mp_memory_t *memory, mp_memory_stats_t *out_stats) {
  mp_lock_t *lock = (mp_lock_t *)&memory->lock;
  // In a forked child another thread may have held the lock: what it left is read without it.
  bool is_child = memory_is_forked(memory);
  if (!is_child) mp_lock(lock);
  uint64_t limit = memory->capacity < INT64_MAX ? memory->capacity : INT64_MAX;
  *out_stats = (mp_memory_stats_t){
      .bytes_in_use = (int64_t)memory->in_use,
      .peak_bytes_in_use = (int64_t)memory->peak,
      .bytes_limit = (int64_t)limit,
      .bytes_reservable = (int64_t)limit,
      .largest_free_block_bytes = (int64_t)(limit - memory->in_use),
      .num_allocs = (int64_t)memory->num_allocs,
      .largest_alloc_size = (int64_t)memory->largest_alloc,
      .is_bound = memory->is_bound,
      .is_locked = memory->num_locked != 0 && memory->num_unlocked == 0,
  };
  if (!is_child) mp_unlock(lock);
}

void mp_memory_clear_stats(mp_memory_t *memory) {
  if (memory_is_forked(memory)) return;
  mp_lock(&memory->lock);
  memory->peak = memory->in_use;
  memory->num_allocs = 0;
  memory->largest_alloc = 0;
  mp_unlock(&memory->lock);
}
