#include "sim/runtime/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "sim/runtime/client_impl.h"
#include "sim/runtime/heap.h"

enum {
  MP_MAX_HOLDERS = 10,        // rows of the table of who holds what
  MP_IDLE_FLOOR = 256 << 20,  // idle pages that a client may always keep
  MP_IDLE_SHARE = 4,          // and never more than this part of the machine's memory
  MP_TRIM_FROM = 1 << 20,     // smaller blocks are not worth a look at the bound
};

static const char *const k_origin_texts[] = {
    [MP_ORIGIN_HOST] = "transfer from the host",
    [MP_ORIGIN_RESULT] = "result",
    [MP_ORIGIN_COPY] = "copy",
    [MP_ORIGIN_UNINITIALIZED] = "to be written by the front end",
    [MP_ORIGIN_EXTERNAL] = "adopted host memory",
    [MP_ORIGIN_TEMPORARY] = "temporaries",
};

mp_label_t mp_label_make(mp_origin_t origin, mp_dtype_t dtype, const int64_t *dims, uint32_t rank,
                         mp_name_t *name, uint32_t index) {
  mp_label_t label = {.origin = origin, .dtype = dtype, .rank = rank, .index = index, .name = name};
  for (uint32_t i = 0; i < rank && i < MP_LABEL_MAX_RANK; ++i) label.dims[i] = dims[i];
  return label;
}

void mp_memory_init(mp_memory_t *memory, mp_device_t *device, mp_memory_space_t space,
                    uint64_t capacity) {
  *memory = (mp_memory_t){.device = device, .space = space, .capacity = capacity};
  pthread_mutex_init(&memory->lock, NULL);
}

void mp_memory_deinit(mp_memory_t *memory) {
  mp_heap_release(memory->heap);
  pthread_mutex_destroy(&memory->lock);
}

void mp_memory_describe(const mp_memory_t *memory, mp_strbuf_t *out) {
  mp_strbuf_printf(out, "%s memory of device %" PRIu32, mp_memory_space_name(memory->space),
                   mp_device_id(memory->device));
}

// ---- Who holds what ----

typedef struct {
  const mp_label_t *label;
  uint64_t bytes;
  uint64_t count;
} mp_holder_t;

static int compare_labels(const mp_label_t *a, const mp_label_t *b) {
  if (a->origin != b->origin) return a->origin < b->origin ? -1 : 1;
  if (a->dtype != b->dtype) return a->dtype < b->dtype ? -1 : 1;
  if (a->rank != b->rank) return a->rank < b->rank ? -1 : 1;
  if (a->index != b->index) return a->index < b->index ? -1 : 1;
  if (a->name != b->name) {
    int order = strcmp(a->name == NULL ? "" : a->name->text, b->name == NULL ? "" : b->name->text);
    if (order != 0) return order;
  }
  return memcmp(a->dims, b->dims, sizeof(a->dims));
}

static int by_label(const void *a, const void *b) {
  return compare_labels(((const mp_holder_t *)a)->label, ((const mp_holder_t *)b)->label);
}

static int by_bytes(const void *a, const void *b) {
  uint64_t x = ((const mp_holder_t *)a)->bytes, y = ((const mp_holder_t *)b)->bytes;
  return x > y ? -1 : x < y;
}

static void print_label(const mp_label_t *label, mp_strbuf_t *out) {
  if (label->origin != MP_ORIGIN_TEMPORARY) {
    mp_strbuf_printf(out, "%s[", mp_dtype_name(label->dtype));
    for (uint32_t i = 0; i < label->rank; ++i) {
      if (i == MP_LABEL_MAX_RANK) {
        mp_strbuf_puts(out, ",...");
        break;
      }
      mp_strbuf_printf(out, "%s%" PRId64, i == 0 ? "" : ",", label->dims[i]);
    }
    mp_strbuf_puts(out, "], ");
  }
  mp_strbuf_puts(out, k_origin_texts[label->origin]);
  if (label->origin == MP_ORIGIN_RESULT) mp_strbuf_printf(out, " %" PRIu32, label->index);
  if (label->name != NULL) mp_strbuf_printf(out, " of %s", label->name->text);
}

// Brings equal labels together; returns how many groups there are.
static size_t merge_equal(mp_holder_t *holders, size_t count) {
  qsort(holders, count, sizeof(*holders), by_label);
  size_t groups = 0;
  for (size_t i = 0; i < count; ++i) {
    if (groups != 0 && compare_labels(holders[groups - 1].label, holders[i].label) == 0) {
      holders[groups - 1].bytes += holders[i].bytes;
      holders[groups - 1].count += 1;
    } else {
      holders[groups++] = holders[i];
    }
  }
  qsort(holders, groups, sizeof(*holders), by_bytes);
  return groups;
}

void mp_memory_describe_holders(const mp_memory_t *memory, mp_strbuf_t *out) {
  size_t count = 0;
  for (const mp_span_t *b = memory->live; b != NULL; b = b->list_next) ++count;
  mp_holder_t *holders = mp_calloc(count, sizeof(*holders));
  if (count == 0 || holders == NULL) {
    mp_free(holders);
    return;
  }
  size_t n = 0;
  for (const mp_span_t *b = memory->live; b != NULL; b = b->list_next) {
    holders[n++] = (mp_holder_t){b->label, b->bytes, 1};
  }
  size_t groups = merge_equal(holders, count);
  mp_strbuf_puts(out, "\nlive buffers, largest first:");
  uint64_t rest = 0;
  for (size_t i = 0; i < groups; ++i) {
    if (i >= MP_MAX_HOLDERS) {
      rest += holders[i].bytes;
      continue;
    }
    mp_strbuf_printf(out, "\n  %12" PRIu64 " bytes  ", holders[i].bytes);
    if (holders[i].count > 1) mp_strbuf_printf(out, "%" PRIu64 " x ", holders[i].count);
    print_label(holders[i].label, out);
  }
  if (rest != 0) {
    mp_strbuf_printf(out, "\n  %12" PRIu64 " bytes  in %zu other groups", rest,
                     groups - MP_MAX_HOLDERS);
  }
  mp_free(holders);
}

static mp_status_t exhausted(const mp_memory_t *memory, uint64_t bytes, const mp_label_t *label,
                             const char *reason) {
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_strbuf_printf(&text, "out of memory: %" PRIu64 " bytes for ", bytes);
  print_label(label, &text);
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
  mp_status_t status = mp_status_make(MP_RESOURCE_EXHAUSTED, "%s", mp_strbuf_text(&text));
  mp_strbuf_deinit(&text);
  return status;
}

// ---- Allocation ----

// Adds to the books, or says why not. What the described capacities allow may still be more than
// the machine has: then it is refused here and not by the kernel's out-of-memory killer.
static mp_status_t charge(mp_memory_t *memory, uint64_t bytes, const mp_label_t *label) {
  if (bytes > memory->capacity || memory->in_use > memory->capacity - bytes) {
    return exhausted(memory, bytes, label, NULL);
  }
  mp_client_t *client = mp_device_client(memory->device);
  uint64_t total = atomic_fetch_add(&client->bytes_in_use, bytes) + bytes;
  if (client->machine_bytes != 0 && total > client->machine_bytes) {
    atomic_fetch_sub(&client->bytes_in_use, bytes);
    char reason[128];
    snprintf(reason, sizeof(reason),
             "the machine has %" PRIu64 " bytes, and all devices together would hold %" PRIu64,
             client->machine_bytes, total);
    return exhausted(memory, bytes, label, reason);
  }
  memory->in_use += bytes;
  memory->num_allocs += 1;
  if (memory->in_use > memory->peak) memory->peak = memory->in_use;
  if (bytes > memory->largest_alloc) memory->largest_alloc = bytes;
  return NULL;
}

static void discharge(mp_memory_t *memory, uint64_t bytes) {
  memory->in_use -= bytes;
  atomic_fetch_sub(&mp_device_client(memory->device)->bytes_in_use, bytes);
}

static void add_live(mp_memory_t *memory, mp_span_t *block, const mp_label_t *label) {
  block->label = label;
  block->list_prev = NULL;
  block->list_next = memory->live;
  if (memory->live != NULL) memory->live->list_prev = block;
  memory->live = block;
}

static void remove_live(mp_memory_t *memory, mp_span_t *block) {
  if (block->list_prev != NULL) {
    block->list_prev->list_next = block->list_next;
  } else {
    memory->live = block->list_next;
  }
  if (block->list_next != NULL) block->list_next->list_prev = block->list_prev;
}

static mp_status_t alloc_locked(mp_memory_t *memory, uint64_t bytes, uint64_t after,
                                const mp_label_t *label, mp_span_t **out_block) {
  if (memory->heap == NULL) {
    int32_t node = mp_client_numa_node(mp_device_client(memory->device), memory->device);
    MP_RETURN_IF_ERROR(mp_heap_create(node, &memory->heap));
  }
  MP_RETURN_IF_ERROR(charge(memory, bytes, label));
  uint64_t idle_before = mp_heap_idle_bytes(memory->heap);
  mp_span_t *block = mp_heap_take(memory->heap, bytes, after);
  uint64_t idle_after = mp_heap_idle_bytes(memory->heap);
  atomic_fetch_sub(&mp_device_client(memory->device)->bytes_idle, idle_before - idle_after);
  memory->is_bound = mp_heap_is_bound(memory->heap);
  if (block == NULL) {
    discharge(memory, bytes);
    return exhausted(memory, bytes, label, "the operating system gives no more memory");
  }
  // A block that stayed whole for want of books is a little larger than what was charged.
  if (block->bytes != bytes) {
    memory->in_use += block->bytes - bytes;
    atomic_fetch_add(&mp_device_client(memory->device)->bytes_in_use, block->bytes - bytes);
  }
  add_live(memory, block, label);
  if (memory->space == MP_MEMORY_PINNED_HOST) {
    // Locking is a wish: RLIMIT_MEMLOCK is often a few MiB. The statistics say how it went.
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

static void trim_locked(mp_memory_t *memory) {
  uint64_t before = mp_heap_idle_bytes(memory->heap);
  mp_heap_trim(memory->heap, mp_device_completed(memory->device));
  uint64_t given = before - mp_heap_idle_bytes(memory->heap);
  atomic_fetch_sub(&mp_device_client(memory->device)->bytes_idle, given);
}

// Idle pages of one device must not crowd out what others need: when live and idle bytes together
// come near the machine's memory, all idle pages go.
static void make_room(mp_client_t *client) {
  uint64_t idle = atomic_load_explicit(&client->bytes_idle, memory_order_relaxed);
  uint64_t live = atomic_load_explicit(&client->bytes_in_use, memory_order_relaxed);
  if (client->machine_bytes == 0 || idle + live < client->machine_bytes / 10 * 9) return;
  if (idle < MP_IDLE_FLOOR) return;
  for (uint32_t i = 0; i < client->num_devices; ++i) {
    for (int space = 0; space < MP_MEMORY_SPACE_COUNT; ++space) {
      mp_memory_t *memory = &client->devices[i].memories[space];
      pthread_mutex_lock(&memory->lock);
      if (memory->heap != NULL) trim_locked(memory);
      pthread_mutex_unlock(&memory->lock);
    }
  }
}

mp_status_t mp_memory_alloc(mp_memory_t *memory, uint64_t bytes, uint64_t after,
                            const mp_label_t *label, mp_span_t **out_block) {
  uint64_t rounded = mp_heap_round(bytes, memory->space == MP_MEMORY_PINNED_HOST);
  pthread_mutex_lock(&memory->lock);
  mp_status_t status = rounded == 0 ? exhausted(memory, bytes, label, NULL)
                                    : alloc_locked(memory, rounded, after, label, out_block);
  pthread_mutex_unlock(&memory->lock);
  if (rounded >= MP_TRIM_FROM) make_room(mp_device_client(memory->device));
  return status;
}

// Idle pages are kept while they are fewer than the live ones (or a floor), and never much of the
// machine.
static bool keeps_too_much(mp_client_t *client) {
  uint64_t idle = atomic_load_explicit(&client->bytes_idle, memory_order_relaxed);
  if (idle <= MP_IDLE_FLOOR) return false;
  uint64_t live = atomic_load_explicit(&client->bytes_in_use, memory_order_relaxed);
  return idle > live ||
         (client->machine_bytes != 0 && idle > client->machine_bytes / MP_IDLE_SHARE);
}

void mp_memory_free(mp_memory_t *memory, mp_span_t *block, uint64_t free_after) {
  mp_client_t *client = mp_device_client(memory->device);
  pthread_mutex_lock(&memory->lock);
  uint64_t bytes = block->bytes;
  remove_live(memory, block);
  discharge(memory, bytes);
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
  atomic_fetch_add(&client->bytes_idle, mp_heap_idle_bytes(memory->heap) - idle_before);
  if (bytes >= MP_TRIM_FROM && keeps_too_much(client)) trim_locked(memory);
  pthread_mutex_unlock(&memory->lock);
}

mp_status_t mp_memory_charge(mp_memory_t *memory, uint64_t bytes, const mp_label_t *label) {
  pthread_mutex_lock(&memory->lock);
  mp_status_t status = charge(memory, bytes, label);
  pthread_mutex_unlock(&memory->lock);
  return status;
}

void mp_memory_discharge(mp_memory_t *memory, uint64_t bytes) {
  pthread_mutex_lock(&memory->lock);
  discharge(memory, bytes);
  pthread_mutex_unlock(&memory->lock);
}

void mp_memory_get_stats(const mp_memory_t *memory, mp_memory_stats_t *out_stats) {
  mp_client_t *client = mp_device_client(memory->device);
  pthread_mutex_t *lock = (pthread_mutex_t *)&memory->lock;
  // In a forked child another thread may have held the lock: then only the books' last state.
  bool is_child = mp_client_is_forked(client);
  if (!is_child) pthread_mutex_lock(lock);
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
  if (!is_child) pthread_mutex_unlock(lock);
}

void mp_memory_clear_stats(mp_memory_t *memory) {
  if (mp_client_is_forked(mp_device_client(memory->device))) return;
  pthread_mutex_lock(&memory->lock);
  memory->peak = memory->in_use;
  memory->num_allocs = 0;
  memory->largest_alloc = 0;
  pthread_mutex_unlock(&memory->lock);
}
