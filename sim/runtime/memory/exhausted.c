// The out-of-memory error: which limit was hit, the holders of memory, and which setting changes
// the limit.
#include <inttypes.h>
#include <sys/resource.h>

#include "sim/base/os/maps.h"
#include "sim/runtime/memory/heap.h"
#include "sim/runtime/memory/memory.h"

enum { MP_MAX_SHARERS = 8 };  // devices in the list of those that share a capacity

// Appends "device memory of device 3".
static void exhausted_describe(const mp_memory_t *memory, mp_strbuf_t *out) {
  mp_strbuf_printf(out, "%s memory of device %" PRIu32, mp_memory_space_name(memory->space),
                   memory->device_id);
}

// The setting that determines a device's own capacity.
static const char *exhausted_setting(const mp_memory_t *memory) {
#define SETTING_DEVICE        "MINIPOD_DEVICE_MEMORY, or memory.device in the description of the pod,"
#define SETTING_PINNED_HOST   "memory.pinned_host in the description of the pod"
#define SETTING_UNPINNED_HOST "memory.unpinned_host in the description of the pod"
  static const char *const settings[MP_MEMORY_SPACE_COUNT] = {
#define ROW(name, text) [MP_MEMORY_##name] = SETTING_##name,
      MP_MEMORY_SPACES(ROW)
#undef ROW
  };
  return settings[memory->space];
}

static uint64_t exhausted_in_use(const mp_memory_t *memory) {
  // Relaxed, and read after the refusal: the message gives the approximate amount in use.
  return atomic_load_explicit(&memory->in_use, memory_order_relaxed);
}

static void exhausted_describe_capacity(const mp_memory_t *memory, mp_strbuf_t *out) {
  const uint64_t in_use = exhausted_in_use(memory);
  mp_strbuf_printf(out,
                   ": capacity %" PRIu64 " bytes, in use %" PRIu64 ", largest free block %" PRIu64
                   " (the capacity is the device's own; %s sets it)",
                   memory->capacity, in_use, memory->capacity - in_use, exhausted_setting(memory));
}

static void exhausted_describe_pool(const mp_memory_t *memory, mp_strbuf_t *out) {
  const mp_memory_pool_t *pool = memory->pool;
  const uint64_t in_use = atomic_load(&pool->bytes_in_use);
  const uint64_t left = in_use < pool->capacity ? pool->capacity - in_use : 0;
  mp_strbuf_puts(out, ": the devices of this process ");
  if (pool->numa_node >= 0) mp_strbuf_printf(out, "on NUMA node %d ", (int)pool->numa_node);
  mp_strbuf_printf(out,
                   "share a capacity of %" PRIu64 " bytes, in use %" PRIu64
                   ", by this device %" PRIu64 ", largest free block %" PRIu64
                   " (it is the machine's share for them; %s gives each device a capacity of its "
                   "own)",
                   pool->capacity, in_use, exhausted_in_use(memory), left,
                   exhausted_setting(memory));
}

static void exhausted_describe_machine(const mp_memory_t *memory, uint64_t bytes,
                                       mp_strbuf_t *out) {
  const mp_memory_budget_t *budget = memory->budget;
  mp_strbuf_printf(out,
                   ": in use %" PRIu64 " bytes (the machine has %" PRIu64
                   " bytes for this process, and all its devices together would hold %" PRIu64
                   "; in a container its memory limit counts)",
                   exhausted_in_use(memory), budget->machine_bytes,
                   atomic_load(&budget->bytes_in_use) + bytes);
}

static void exhausted_describe_system(const mp_memory_t *memory, mp_strbuf_t *out) {
  mp_strbuf_printf(out, ": in use %" PRIu64 " bytes (the operating system gives no more memory",
                   exhausted_in_use(memory));
  struct rlimit limit;
  uint64_t maps = 0, most_maps = 0;
  if (mp_maps_are_short() && mp_maps_count(&maps, &most_maps)) {
    mp_strbuf_printf(out,
                     ": the process has %" PRIu64 " memory maps of the %" PRIu64
                     " that vm.max_map_count allows, and the rest is kept for its other parts; "
                     "'sysctl -w vm.max_map_count=%" PRIu64 "' as root allows more",
                     maps, most_maps, 16 * most_maps);
  } else if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    mp_strbuf_printf(out, ": the address space is limited to %" PRIu64 " bytes, see 'ulimit -v'",
                     (uint64_t)limit.rlim_cur);
  } else {
    mp_strbuf_puts(out, ": see vm.overcommit_memory and the limits of the container");
  }
  mp_strbuf_puts(out, ")");
}

// The memory that holds most, among those that share a capacity with `memory`.
static mp_memory_t *exhausted_largest_sharer(mp_memory_t *memory) {
  mp_memory_budget_t *budget = memory->budget;
  mp_memory_t *largest = memory;
  for (uint32_t i = 0; i < budget->num_memories; ++i) {
    mp_memory_t *other = &budget->memories[i];
    if (other->pool != memory->pool) continue;
    if (exhausted_in_use(other) > exhausted_in_use(largest)) largest = other;
  }
  return largest;
}

// Appends how much each device holds of the shared capacity.
static void exhausted_list_sharers(const mp_memory_t *memory, mp_strbuf_t *out) {
  const mp_memory_budget_t *budget = memory->budget;
  uint64_t rest = 0;
  uint32_t count = 0;
  mp_strbuf_puts(out, "\nheld by the devices that share it:");
  for (uint32_t i = 0; i < budget->num_memories; ++i) {
    const mp_memory_t *other = &budget->memories[i];
    const uint64_t in_use = exhausted_in_use(other);
    if (other->pool != memory->pool || in_use == 0) continue;
    if (count == MP_MAX_SHARERS) {
      rest += in_use;
      continue;
    }
    count += 1;
    mp_strbuf_printf(out, "\n  %12" PRIu64 " bytes  device %" PRIu32, in_use, other->device_id);
  }
  if (rest != 0) mp_strbuf_printf(out, "\n  %12" PRIu64 " bytes  other devices", rest);
}

// Under the lock: labels belong to the owners of the blocks, which change them under it.
static void exhausted_list_holders(mp_memory_t *memory, mp_strbuf_t *out) {
  mp_lock(&memory->lock);
  mp_memory_describe_holders(memory, out);
  mp_pages_t pages;
  if (memory->heap != NULL && mp_heap_look_at_pages(memory->heap, &pages)) {
    mp_strbuf_printf(out,
                     "\npages of device %" PRIu32 ": %" PRIu64 " bytes on its NUMA node %" PRId32
                     ", %" PRIu64 " bytes on others",
                     memory->device_id, pages.here, memory->numa_node, pages.elsewhere);
  }
  mp_unlock(&memory->lock);
}

mp_status_t mp_memory_exhausted(mp_memory_t *memory, uint64_t bytes, const mp_label_t *label,
                                mp_memory_limit_t limit) {
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_strbuf_printf(&text, "out of memory: %" PRIu64 " bytes for ", bytes);
  mp_label_print(label, &text);
  mp_strbuf_puts(&text, " do not fit in ");
  exhausted_describe(memory, &text);
  if (limit == MP_LIMIT_CAPACITY) exhausted_describe_capacity(memory, &text);
  if (limit == MP_LIMIT_POOL) exhausted_describe_pool(memory, &text);
  if (limit == MP_LIMIT_MACHINE) exhausted_describe_machine(memory, bytes, &text);
  if (limit == MP_LIMIT_SYSTEM) exhausted_describe_system(memory, &text);
  if (limit == MP_LIMIT_POOL) {
    exhausted_list_sharers(memory, &text);
    mp_memory_t *largest = exhausted_largest_sharer(memory);
    if (largest != memory) exhausted_list_holders(largest, &text);
  }
  exhausted_list_holders(memory, &text);
  // If there is no memory for the whole message, a shorter one must do.
  mp_status_t status =
      mp_status_make(MP_RESOURCE_EXHAUSTED, "%s",
                     text.failed ? "out of device memory, and of host memory for the details"
                                 : mp_strbuf_text(&text));
  mp_strbuf_deinit(&text);
  return status;
}
