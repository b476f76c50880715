// Faults: a hook for tests that makes the system refuse what the library asks of it.
//
// Every request to the system that can be refused goes through alloc.h, arena.h or system.h, and
// those ask here first. So a test can make the n-th request of a kind fail, for every n, and check
// that the library reports the failure, frees everything and goes on.
//
// Nothing is counted before a test calls mp_fault_watch: until then a request costs one relaxed
// load of a variable that is never written. All functions are thread-safe; requests of all threads
// are counted together.
#ifndef MINIPOD_SIM_BASE_FAULT_H_
#define MINIPOD_SIM_BASE_FAULT_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

// Kind, and the errno of a refusal.
#define MP_FAULTS(X)                                    \
  X(ALLOCATION, ENOMEM) /* alloc.h */                   \
  X(ARENA, ENOMEM)      /* arena.h: each, not chunks */ \
  X(MMAP, ENOMEM)                                       \
  X(MEMFD, EMFILE)                                      \
  X(THREAD, EAGAIN)                                     \
  X(OPEN, EMFILE) /* fopen as well */

typedef enum {
#define MP_FAULT_ENUM(kind, error) MP_FAULT_##kind,
  MP_FAULTS(MP_FAULT_ENUM)
#undef MP_FAULT_ENUM
      MP_FAULT_COUNT
} mp_fault_t;

// ---- For alloc.c, arena.c and system.c ----

// True while a test watches. Read it through mp_fault_is_watched.
extern atomic_bool mp_fault_watching;

// Whether a test has called mp_fault_watch.
static inline bool mp_fault_is_watched(void) {
  // Relaxed: a test starts to watch before it makes the threads that it watches.
  return atomic_load_explicit(&mp_fault_watching, memory_order_relaxed);
}

// Counts one request of the kind; true (with errno set) when it must be refused.
bool mp_fault_count(mp_fault_t kind);

// The same, but counts nothing and is false while no test watches.
static inline bool mp_fault_strikes(mp_fault_t kind) {
  return mp_fault_is_watched() && mp_fault_count(kind);
}

// ---- For tests ----

// Starts counting, for as long as the process lives.
void mp_fault_watch(void);
// Counts the requests of the kind from 0 again and refuses the n-th one (1 = the next) and the
// `length - 1` requests after it. n = 0: none is refused.
void mp_fault_at(mp_fault_t kind, int64_t n, int64_t length);
// The number of requests of the kind since the last mp_fault_at for it, and the number of those
// that were refused.
int64_t mp_fault_requests(mp_fault_t kind);
int64_t mp_fault_refusals(mp_fault_t kind);

#endif  // MINIPOD_SIM_BASE_FAULT_H_
