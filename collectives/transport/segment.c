#include "collectives/transport/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/base/alloc.h"
#include "sim/base/assert.h"
#include "sim/base/os/lock.h"
#include "sim/base/os/system.h"

enum {
  MP_PAGE = 4096,
  MP_NUM_CLASSES = 160,
  MP_BIG_BYTES = 64 << 10,  // from here on blocks begin on a page and can give their pages back
};
#define MP_MIN_SEGMENT   (UINT64_C(64) << 20)
#define MP_ALL_SEGMENTS  (UINT64_C(16) << 40)  // address space for all segments of one host
#define MP_MAX_IDLE      (UINT64_C(1) << 30)   // free pages that are kept at most
#define MP_SEGMENT_MAGIC UINT64_C(0x31676573706e696d)

// At the beginning of the shared memory.
typedef struct {
  uint64_t magic;
  uint64_t cookie[2];
  uint64_t bytes;
  uint32_t num_rings;
  // Set by the owner shortly before its end, and read after that end: it publishes no other data.
  atomic_bool is_explained;
  mp_doorbell_t doorbell;
  atomic_uint num_knocks;  // incremented after a knock at a door, and before the bell rings
  // Stack of free blocks that the owner has not seen yet. A lock in shared memory would stay taken
  // when a process dies with it, so this is the one word by which others change the heap.
  _Alignas(64) _Atomic uint64_t returned;
} segment_head_t;

// The heap: the free blocks of each size class, in two stacks, named by the offset of their top.
typedef struct {
  uint64_t warm[MP_NUM_CLASSES];  // these still have their pages
  uint64_t cold[MP_NUM_CLASSES];  // these have returned all pages but the first one
  uint64_t fresh;                 // from this offset on nothing was ever used
  uint64_t idle_bytes;            // of big blocks in `warm`
  uint64_t least_idle;            // the least value of idle_bytes since the last trim
} segment_heap_t;

struct mp_segment_s {
  atomic_uint references;  // within this process: each process has a mapping of its own
  segment_head_t *head;
  mp_segment_address_t address;
  int fd;          // -1: another process's
  mp_lock_t lock;  // of the heap; in this process only, because the owner alone allocates
  segment_heap_t heap;
};

static uint64_t segment_class_bytes(uint32_t size_class) {
  uint32_t doublings = size_class / 4;
  return (UINT64_C(256) << doublings) + (UINT64_C(64) << doublings) * (size_class % 4);
}

// The smallest class with room for `bytes`, header included; MP_NUM_CLASSES when there is none.
static uint32_t segment_class_for(uint64_t bytes) {
  if (bytes <= 256) return 0;
  uint32_t doublings = 63 - (uint32_t)__builtin_clzll((bytes - 1) >> 8);
  for (uint32_t i = 4 * doublings; i < MP_NUM_CLASSES; ++i) {
    if (segment_class_bytes(i) >= bytes) return i;
  }
  return MP_NUM_CLASSES;
}

static uint64_t segment_rings_offset(void) {
  return (sizeof(segment_head_t) + MP_PAGE - 1) / MP_PAGE * MP_PAGE;
}

static uint64_t segment_heap_offset(uint32_t num_rings) {
  uint64_t end = segment_rings_offset() + num_rings * sizeof(mp_ring_t);
  return (end + MP_PAGE - 1) / MP_PAGE * MP_PAGE;
}

// ---- Life ----

// Twice the machine's memory, as long as all segments of the host fit into an address space.
static uint64_t segment_wanted_bytes(uint32_t num_processes) {
  uint64_t bytes = 2 * (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
  uint64_t share = MP_ALL_SEGMENTS / (num_processes == 0 ? 1 : num_processes);
  if (bytes > share) bytes = share;
  struct rlimit limit;  // a process that makes a file larger than this gets a deadly signal
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      bytes > limit.rlim_cur) {
    bytes = limit.rlim_cur;
  }
  return bytes / MP_PAGE * MP_PAGE;
}

static void *segment_map_file(int fd, uint64_t bytes) {
  void *memory = mp_mmap(bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd);
  if (memory == MAP_FAILED) return NULL;
  (void)madvise(memory, bytes, MADV_DONTDUMP);
  return memory;
}

static mp_status_t segment_wrap(segment_head_t *head, int fd, const mp_segment_address_t *address,
                                mp_segment_t **out_segment) {
  mp_segment_t *segment = mp_calloc(1, sizeof(*segment));
  MP_RETURN_IF_NULL(segment);
  atomic_init(&segment->references, 1);
  segment->head = head;
  segment->fd = fd;
  segment->address = *address;
  segment->heap.fresh = segment_heap_offset(head->num_rings);
  mp_lock_init(&segment->lock, MP_LOCK_SEGMENT);
  *out_segment = segment;
  return NULL;
}

mp_status_t mp_segment_create(uint32_t num_rings, uint32_t num_processes,
                              mp_segment_t **out_segment) {
  int fd = mp_memfd_create("minipod", MFD_CLOEXEC);
  if (fd < 0) {
    return mp_status_make(MP_RESOURCE_EXHAUSTED, "no memory to share with other processes: %s",
                          strerror(errno));
  }
  uint64_t bytes = segment_wanted_bytes(num_processes);
  uint64_t least = segment_heap_offset(num_rings) + MP_MIN_SEGMENT;
  segment_head_t *head = NULL;
  int error = 0;
  for (; head == NULL && bytes >= least; bytes = bytes / 2 / MP_PAGE * MP_PAGE) {
    error = ftruncate(fd, (off_t)bytes) == 0 ? 0 : errno;
    if (error != 0) continue;
    head = segment_map_file(fd, bytes);
    if (head != NULL) break;
    error = errno;
  }
  mp_status_t status = NULL;
  if (head == NULL) {
    status = mp_status_make(MP_RESOURCE_EXHAUSTED, "no memory to share with other processes: %s",
                            error == 0 ? "the limit for files is too small" : strerror(error));
  } else {
    head->bytes = bytes;
    head->num_rings = num_rings;
    mp_segment_address_t address = {.pid = getpid(), .fd = fd};
    if (getrandom(head->cookie, sizeof(head->cookie), 0) != (ssize_t)sizeof(head->cookie)) {
      head->cookie[0] = (uintptr_t)head;  // early at boot there are no random bytes: the pid and
                                          // the file's number must be enough
    }
    memcpy(address.cookie, head->cookie, sizeof(address.cookie));
    head->magic = MP_SEGMENT_MAGIC;
    status = segment_wrap(head, fd, &address, out_segment);
    if (status != NULL) mp_munmap(head, bytes);
  }
  if (status != NULL) close(fd);
  return status;
}

// True when the file is the segment that `address` names.
static bool segment_is_meant(const segment_head_t *head, const mp_segment_address_t *address) {
  return head->magic == MP_SEGMENT_MAGIC &&
         memcmp(head->cookie, address->cookie, sizeof(head->cookie)) == 0;
}

static mp_status_t segment_map_found(int fd, const mp_segment_address_t *address,
                                     segment_head_t **out_head) {
  struct stat found;
  if (fstat(fd, &found) != 0 || (uint64_t)found.st_size < sizeof(segment_head_t)) {
    return mp_status_make(MP_UNAVAILABLE, "not a segment");
  }
  uint64_t bytes = (uint64_t)found.st_size;
  segment_head_t *head = segment_map_file(fd, bytes);
  if (head == NULL) return mp_status_make(MP_UNAVAILABLE, "%s", strerror(errno));
  if (!segment_is_meant(head, address) || head->bytes != bytes ||
      segment_heap_offset(head->num_rings) > bytes) {
    mp_munmap(head, bytes);
    return mp_status_make(MP_UNAVAILABLE, "another process has this number here");
  }
  *out_head = head;
  return NULL;
}

mp_status_t mp_segment_open(const mp_segment_address_t *address, mp_segment_t **out_segment) {
  char path[64];
  snprintf(path, sizeof(path), "/proc/%" PRId64 "/fd/%" PRId64, address->pid, address->fd);
  // Without O_NONBLOCK this could block for ever, if the number now belongs to a process that has a
  // pipe there.
  int fd = mp_open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    return mp_status_make(MP_UNAVAILABLE, "the memory of process %" PRId64 " (%s): %s",
                          address->pid, path, strerror(errno));
  }
  segment_head_t *head = NULL;
  mp_status_t status = segment_map_found(fd, address, &head);
  close(fd);
  if (status != NULL) {
    return mp_status_annotate(status, "the memory of process %" PRId64 " (%s)", address->pid, path);
  }
  uint64_t bytes = head->bytes;
  status = segment_wrap(head, -1, address, out_segment);
  if (status != NULL) mp_munmap(head, bytes);
  return status;
}

mp_segment_t *mp_segment_retain(mp_segment_t *segment) {
  // Relaxed: the caller has a reference already.
  atomic_fetch_add_explicit(&segment->references, 1, memory_order_relaxed);
  return segment;
}

void mp_segment_release(mp_segment_t *segment) {
  if (segment == NULL) return;
  // Release and acquire: all accesses to the mapping, by any thread, come before it is unmapped.
  if (atomic_fetch_sub_explicit(&segment->references, 1, memory_order_acq_rel) != 1) return;
  mp_munmap(segment->head, segment->head->bytes);
  if (segment->fd >= 0) close(segment->fd);
  mp_lock_deinit(&segment->lock);
  mp_free(segment);
}

mp_segment_address_t mp_segment_address(const mp_segment_t *segment) {
  return segment->address;
}

mp_doorbell_t *mp_segment_doorbell(mp_segment_t *segment) {
  return &segment->head->doorbell;
}

void mp_segment_explain(mp_segment_t *segment) {
  atomic_store(&segment->head->is_explained, true);
}

bool mp_segment_is_explained(const mp_segment_t *segment) {
  return atomic_load(&segment->head->is_explained);
}

uint32_t mp_segment_num_rings(const mp_segment_t *segment) {
  return segment->head->num_rings;
}

atomic_uint *mp_segment_num_knocks(mp_segment_t *segment) {
  return &segment->head->num_knocks;
}

mp_ring_t *mp_segment_ring(mp_segment_t *segment, uint32_t index) {
  MP_ASSERT(index < segment->head->num_rings);
  char *rings = (char *)segment->head + segment_rings_offset();
  return (mp_ring_t *)(void *)(rings + index * sizeof(mp_ring_t));
}

// ---- Payload ----

static mp_payload_block_t *segment_block_at(mp_segment_t *segment, uint64_t offset) {
  return (mp_payload_block_t *)(void *)((char *)segment->head + offset);
}

uint64_t mp_segment_offset_of(const mp_segment_t *segment, const mp_payload_block_t *block) {
  bool is_inside =
      block->offset != 0 && (const char *)block - block->offset == (const char *)segment->head;
  return is_inside ? block->offset : 0;
}

mp_payload_block_t *mp_segment_block_at(mp_segment_t *segment, uint64_t offset) {
  const segment_head_t *head = segment->head;
  if (offset < segment_heap_offset(head->num_rings) || offset % MP_PAYLOAD_ALIGNMENT != 0 ||
      offset > head->bytes - sizeof(mp_payload_block_t)) {
    return NULL;
  }
  mp_payload_block_t *block = segment_block_at(segment, offset);
  const uint64_t room = head->bytes - offset - sizeof(mp_payload_block_t);
  return block->offset == offset && block->payload.bytes <= room ? block : NULL;
}

void mp_segment_return(mp_payload_block_t *block) {
  segment_head_t *head = (segment_head_t *)(void *)((char *)block - block->offset);
  // Any process pushes, and only the owner takes, always the whole stack: a top that was read twice
  // is the same stack. Release: what was read of the block comes before the owner has it again.
  // The top is read relaxed, because a pusher notes its offset and never looks into that block.
  uint64_t top = atomic_load_explicit(&head->returned, memory_order_relaxed);
  do {
    block->next = top;
  } while (!atomic_compare_exchange_weak_explicit(&head->returned, &top, block->offset,
                                                  memory_order_release, memory_order_relaxed));
}

static void segment_push(uint64_t *stack, mp_payload_block_t *block) {
  MP_ASSERT(block->offset != 0 && atomic_load(&block->references) == 0);
  block->next = *stack;
  *stack = block->offset;
}

static mp_payload_block_t *segment_pop(mp_segment_t *segment, uint64_t *stack) {
  if (*stack == 0) return NULL;
  mp_payload_block_t *block = segment_block_at(segment, *stack);
  MP_ASSERT(block->offset == *stack);
  *stack = block->next;
  return block;
}

static bool segment_is_big(uint32_t size_class) {
  MP_ASSERT(size_class < MP_NUM_CLASSES);
  return segment_class_bytes(size_class) >= MP_BIG_BYTES;
}

// Gives back all pages of a free block except the one with its header.
static void segment_cool(mp_segment_t *segment, mp_payload_block_t *block) {
  mp_lock_assert_held(&segment->lock);
  uint64_t bytes = segment_class_bytes(block->size_class);
  (void)madvise((char *)block + MP_PAGE, bytes - MP_PAGE, MADV_REMOVE);
  segment_push(&segment->heap.cold[block->size_class], block);
}

// Puts the blocks that were released since the last call into the heap's stacks.
static void segment_take_back(mp_segment_t *segment) {
  mp_lock_assert_held(&segment->lock);
  // Acquire, with the release of each who has pushed: their links, and their last reads, are done.
  // It holds for those below the top, too, because all that follows a push are exchanges.
  uint64_t offset = atomic_exchange_explicit(&segment->head->returned, 0, memory_order_acquire);
  while (offset != 0) {
    mp_payload_block_t *block = segment_block_at(segment, offset);
    offset = block->next;
    uint64_t bytes = segment_class_bytes(block->size_class);
    if (segment_is_big(block->size_class) && segment->heap.idle_bytes + bytes > MP_MAX_IDLE) {
      segment_cool(segment, block);
      continue;
    }
    if (segment_is_big(block->size_class)) segment->heap.idle_bytes += bytes;
    segment_push(&segment->heap.warm[block->size_class], block);
  }
}

static mp_payload_block_t *segment_take_warm(mp_segment_t *segment, uint32_t size_class) {
  mp_lock_assert_held(&segment->lock);
  segment_heap_t *heap = &segment->heap;
  mp_payload_block_t *block = segment_pop(segment, &heap->warm[size_class]);
  if (block == NULL || !segment_is_big(size_class)) return block;
  MP_ASSERT(heap->idle_bytes >= segment_class_bytes(size_class));
  heap->idle_bytes -= segment_class_bytes(size_class);
  if (heap->idle_bytes < heap->least_idle) heap->least_idle = heap->idle_bytes;
  return block;
}

static mp_payload_block_t *segment_take_fresh(mp_segment_t *segment, uint32_t size_class) {
  mp_lock_assert_held(&segment->lock);
  segment_heap_t *heap = &segment->heap;
  uint64_t offset = heap->fresh;
  if (segment_is_big(size_class)) offset = (offset + MP_PAGE - 1) / MP_PAGE * MP_PAGE;
  uint64_t end;
  if (__builtin_add_overflow(offset, segment_class_bytes(size_class), &end) ||
      end > segment->head->bytes) {
    return NULL;
  }
  heap->fresh = end;
  mp_payload_block_t *block = segment_block_at(segment, offset);
  block->size_class = size_class;
  block->offset = offset;
  return block;
}

// A block of this class or, when the segment is full, of a larger one.
static mp_payload_block_t *segment_take_of_class(mp_segment_t *segment, uint32_t size_class) {
  mp_payload_block_t *block = segment_take_warm(segment, size_class);
  if (block == NULL) block = segment_pop(segment, &segment->heap.cold[size_class]);
  if (block == NULL) block = segment_take_fresh(segment, size_class);
  for (uint32_t i = size_class + 1; block == NULL && i < MP_NUM_CLASSES; ++i) {
    block = segment_take_warm(segment, i);
    if (block == NULL) block = segment_pop(segment, &segment->heap.cold[i]);
  }
  return block;
}

mp_payload_block_t *mp_segment_take(mp_segment_t *segment, size_t bytes) {
  MP_ASSERT(segment->fd >= 0);  // the owner is this process
  uint64_t total;
  if (__builtin_add_overflow((uint64_t)bytes, sizeof(mp_payload_block_t), &total)) return NULL;
  uint32_t size_class = segment_class_for(total);
  if (size_class == MP_NUM_CLASSES) return NULL;
  mp_lock(&segment->lock);
  segment_take_back(segment);
  mp_payload_block_t *block = segment_take_of_class(segment, size_class);
  mp_unlock(&segment->lock);
  if (block != NULL) mp_payload_block_init(block, bytes);
  return block;
}

void mp_segment_trim(mp_segment_t *segment) {
  segment_heap_t *heap = &segment->heap;
  mp_lock(&segment->lock);
  uint64_t excess = heap->least_idle;
  for (uint32_t i = MP_NUM_CLASSES; i-- > 0 && excess > 0 && segment_is_big(i);) {
    while (segment_class_bytes(i) <= excess && heap->warm[i] != 0) {
      mp_payload_block_t *block = segment_pop(segment, &heap->warm[i]);
      heap->idle_bytes -= segment_class_bytes(i);
      excess -= segment_class_bytes(i);
      segment_cool(segment, block);
    }
  }
  segment_take_back(segment);
  heap->least_idle = heap->idle_bytes;
  mp_unlock(&segment->lock);
}

size_t mp_segment_idle_bytes(mp_segment_t *segment) {
  mp_lock(&segment->lock);
  segment_take_back(segment);
  size_t bytes = segment->heap.idle_bytes;
  mp_unlock(&segment->lock);
  return bytes;
}
