// Memory spaces: the books and the allocator of one space of one device.
//
// A space gives out blocks from chunks of address space that are mapped as needed; pages cost
// nothing until they are touched. The capacity is enforced on the sum of the blocks: that of this
// space alone where one is described, otherwise that of a *pool*, the sum over the devices of a
// NUMA node. Because chunks can always be added, free space never is too fragmented to be used:
// what fits the capacity (and, over all memories of the client, the machine) is granted. Blocks
// below 4 MiB live in plain chunks, larger ones in chunks with huge pages. The allocator takes the
// block that fits best and joins free neighbours; all sizes are multiples of 64 bytes, and blocks
// are aligned to 64 bytes. Blocks of 1 MiB and more, and all of pinned_host, are aligned to pages.
//
// Stream order. A block may be freed while runs of its device that use it are still in the queue:
// `free_after` is the number of the last such run. It then counts as free at once, and may be given
// to a *later* run of the same device (which starts only after the earlier ones), but to no other
// user before that run is done. So a long queue does not exhaust the space.
//
// Freed blocks keep their pages for reuse (touching fresh pages is what large results cost most),
// up to a bound for the whole client; beyond it pages go back to the system.
//
// Thread-safe: each space has a lock, held briefly, which is a leaf in the lock order
// (sim/runtime/README.md).
#ifndef MINIPOD_SIM_RUNTIME_MEMORY_MEMORY_H_
#define MINIPOD_SIM_RUNTIME_MEMORY_MEMORY_H_

#include <stdatomic.h>

#include "sim/base/containers/list.h"
#include "sim/base/os/lock.h"
#include "sim/numeric/dtype.h"
#include "sim/runtime/memory/memory_stats.h"
#include "sim/runtime/memory/name.h"
#include "topology/pod.h"

// The memory's device; this room does not look into it.
typedef struct mp_device_s mp_device_t;

// What an allocation is for, as shown in the table of holders. A result is number `index` of the
// executable `name`, temporaries are of a run of `name`.
#define MP_ORIGINS(X)                                \
  X(HOST, "transfer from the host")                  \
  X(RESULT, "result")                                \
  X(COPY, "copy")                                    \
  X(UNINITIALIZED, "to be written by the front end") \
  X(EXTERNAL, "adopted host memory")                 \
  X(TEMPORARY, "temporaries")

typedef enum {
#define MP_ORIGIN_ENUM(name, text) MP_ORIGIN_##name,
  MP_ORIGINS(MP_ORIGIN_ENUM)
#undef MP_ORIGIN_ENUM
} mp_origin_t;

enum { MP_LABEL_MAX_RANK = 6 };  // further dimensions are shown as "..."

typedef struct {
  mp_origin_t origin;
  mp_dtype_t dtype;
  uint32_t rank;
  uint32_t index;   // of RESULT
  mp_name_t *name;  // of the executable; NULL: none
  int64_t dims[MP_LABEL_MAX_RANK];
  atomic_int references;  // of one that was made by mp_label_create, and does not change
} mp_label_t;

// A label for an array. `name` may be NULL; the label borrows it.
mp_label_t mp_label_make(mp_origin_t origin, mp_dtype_t dtype, const int64_t *dims, uint32_t rank,
                         mp_name_t *name, uint32_t index);

// A copy of the label, which retains its name, for many to share. RESOURCE_EXHAUSTED when memory is
// short.
MP_NODISCARD mp_status_t mp_label_create(const mp_label_t *label, mp_label_t **out_label);
// mp_label_retain adds a reference and returns such a copy; the last mp_label_release frees it.
// NULL has no effect in either.
mp_label_t *mp_label_retain(mp_label_t *label);
void mp_label_release(mp_label_t *label);

// Appends "f32[8,128], result 0 of jit_f".
void mp_label_print(const mp_label_t *label, mp_strbuf_t *out);

// A block: a piece of a chunk that is free or live (given out). Under the memory's lock.
typedef struct mp_span_s mp_span_t;
struct mp_span_s {
  mp_span_t *list_prev, *list_next;  // of its bin when free, of the live blocks otherwise
  char *data;
  uint64_t bytes;
  uint64_t charged;         // while live: what counts against the capacity
  const mp_label_t *label;  // while live; the storage's or the launch's
  bool is_free;
  uint8_t pool;    // of the heap
  bool is_locked;  // by mlock
  // Only in blocks of a heap. Blocks that are only counted, perhaps millions, are allocated without
  // these fields.
  mp_span_t *prev, *next;  // neighbours by address in the chunk
  uint64_t touched;        // while free: bytes that may be backed by pages
  uint64_t free_after;     // while free: the last run that uses it; later runs may have it
};

typedef struct mp_heap_s mp_heap_t;

// What all memories of a client share. No lock: the sums are atomic, the rest never changes.
typedef struct {
  uint64_t machine_bytes;         // what all memories may hold together; 0: no bound is known
  bool is_counted_only;           // blocks are only counted: they have no bytes
  _Atomic uint64_t bytes_in_use;  // by all of them
  _Atomic uint64_t bytes_idle;    // pages of free blocks
  mp_memory_t *memories;          // all of them, for giving idle pages back
  uint32_t num_memories;
  uint32_t generation;  // mp_process_generation() of their process
} mp_memory_budget_t;

// A capacity that the spaces of several devices share. No lock.
typedef struct {
  uint64_t capacity;
  int32_t numa_node;      // of the devices; -1: they are on several nodes, or it is not known
  uint32_t num_memories;  // that share it; written while the client is made
  _Atomic uint64_t bytes_in_use;  // by all of them
} mp_memory_pool_t;

// What comes before the lock never changes; the rest is under the lock.
struct mp_memory_s {
  mp_memory_budget_t *budget;
  mp_device_t *device;
  uint32_t device_id;
  int32_t numa_node;                  // to bind the pages to; -1: nowhere
  const _Atomic uint64_t *completed;  // number of the newest run of the device that is over
  mp_memory_space_t space;
  uint64_t capacity;       // the pool's if there is one
  mp_memory_pool_t *pool;  // NULL: the capacity is this memory's own
  mp_lock_t lock;
  mp_heap_t *heap;               // NULL before the first allocation
  MP_LIST(mp_span_t) live;       // blocks that were given out, newest first
  _Atomic uint64_t in_use;       // bytes; changed under the lock, read without
  uint64_t peak, largest_alloc;  // bytes
  uint64_t adopted;              // part of in_use: the user's memory, which has no block
  uint64_t num_allocs;
  bool is_bound;                      // all its chunks are bound to the NUMA node
  uint32_t num_locked, num_unlocked;  // live blocks of pinned_host
};

// Makes an empty memory. Its budget, device, device id, NUMA node, completed counter, space,
// capacity and pool are copied from `who`; its other fields are not read.
void mp_memory_init(mp_memory_t *memory, const mp_memory_t *who);
// Unmaps everything; no block may be in use.
void mp_memory_deinit(mp_memory_t *memory);

// A value of `after`: the block may still be in use by any run that is queued now.
#define MP_IN_STREAM_ORDER UINT64_MAX

// A block of at least `bytes` > 0 bytes, whose contents are not initialized. Free blocks are reused
// whose free_after is at most `after`: MP_IN_STREAM_ORDER for what only runs enqueued from now on
// will touch, mp_device_completed() for what is touched at once. `label` is borrowed until the
// block is freed. RESOURCE_EXHAUSTED with the table of holders.
MP_NODISCARD mp_status_t mp_memory_alloc(mp_memory_t *memory, uint64_t bytes, uint64_t after,
                                         const mp_label_t *label, mp_span_t **out_block);
// The same for a block that counts as `charge` bytes against a capacity of the memory's own,
// because the described device would use more or fewer bytes than this machine. Against the
// machine's memory it counts with its real size.
MP_NODISCARD mp_status_t mp_memory_alloc_as(mp_memory_t *memory, uint64_t bytes, uint64_t charge,
                                            uint64_t after, const mp_label_t *label,
                                            mp_span_t **out_block);
// Gives a block back. `free_after` is the number of the last enqueued run of the device that uses
// it; 0: none.
void mp_memory_free(mp_memory_t *memory, mp_span_t *block, uint64_t free_after);
// Counts memory of another owner (adopted host memory) against the capacity, without a block.
// RESOURCE_EXHAUSTED as for mp_memory_alloc; `label` is borrowed during the call.
MP_NODISCARD mp_status_t mp_memory_charge(mp_memory_t *memory, uint64_t bytes,
                                          const mp_label_t *label);
// Undoes mp_memory_charge.
void mp_memory_discharge(mp_memory_t *memory, uint64_t bytes);

// Appends the holders of memory: a line for each of the largest groups of live blocks with equal
// labels. The caller holds the memory's lock.
void mp_memory_describe_holders(const mp_memory_t *memory, mp_strbuf_t *out);

// The limit that an allocation would exceed.
typedef enum {
  MP_LIMIT_NONE,      // it fits
  MP_LIMIT_CAPACITY,  // the memory's own capacity
  MP_LIMIT_POOL,      // the capacity that it shares
  MP_LIMIT_MACHINE,   // the machine's memory, or that of the control group
  MP_LIMIT_SYSTEM,    // what the operating system gives
} mp_memory_limit_t;

// The error of an allocation of `bytes` for `label` that did not fit: which limit was hit, the
// holders, and which setting changes the limit. Called without locks. RESOURCE_EXHAUSTED, with a
// shorter message if there is no memory for the whole one.
MP_NODISCARD mp_status_t mp_memory_exhausted(mp_memory_t *memory, uint64_t bytes,
                                             const mp_label_t *label, mp_memory_limit_t limit);

#endif  // MINIPOD_SIM_RUNTIME_MEMORY_MEMORY_H_
