// Locks: mutexes that know their place in the order in which they may be taken.
//
// Every mutex of the library is an mp_lock_t with one of the ranks below. A thread takes locks from
// the outermost rank inwards only, so no two threads can wait for each other. Where MINIPOD_ASSERTS
// is defined each thread keeps a list of what it holds, and breaking a rule aborts with the names
// of both locks and the places where they were taken; elsewhere a lock is a pthread_mutex_t and
// nothing else.
//
// The rules:
//   - while a lock is held, only locks of ranks further down the table are taken;
//   - a thread never holds two locks of one rank;
//   - nothing is taken while a *leaf* is held;
//   - a thread that waits (for an event, a job, another thread, other processes) or calls a
//     callback of the client holds only *long* locks, which are made to be held meanwhile.
#ifndef MINIPOD_SIM_BASE_OS_LOCK_H_
#define MINIPOD_SIM_BASE_OS_LOCK_H_

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "sim/base/assert.h"

// Outermost first: name, words, rule.
#define MP_LOCK_RANKS(X)                                                                       \
  X(BOOTSTRAP, "bootstrap", LONG)             /* joining the job, once per process */          \
  X(AFTERWARDS, "what packets led to", LONG)  /* a handler works off its packets */            \
  X(TURN, "turn", PLAIN)                      /* a round of a world's progress */              \
  X(ROUTERS, "list of routers", PLAIN)        /* the routers of all worlds */                  \
  X(POSTS, "list of post offices", PLAIN)     /* those of all worlds */                        \
  X(LAUNCH, "launch", PLAIN)                  /* a client's launches enter all streams */      \
  X(CHANNEL, "channel", PLAIN)                /* calls of one handler of a world */            \
  X(ROUTER, "router", PLAIN)                  /* packets of other processes */                 \
  X(DEVICE, "device", PLAIN)                  /* the stream of a device */                     \
  X(SESSION, "session", PLAIN)                /* a launch on its participants */               \
  X(TALK_MEMORY, "memory of a kernel", PLAIN) /* what other devices copy into */               \
  X(TALK, "talk", LEAF)                       /* kernels that communicate */                   \
  X(QUEUE, "core queue", LEAF)                /* runnable devices of a core group */           \
  X(JOBS, "job list", LEAF)                   /* jobs that workers may help with */            \
  X(BUFFER, "buffer", LEAF)                   /* who holds a buffer's storage */               \
  X(MEMORY, "memory", LEAF)                   /* books and heap of a memory space */           \
  X(WATCH, "watch", LEAF)                     /* a watch is to stop */                         \
  X(CALLERS, "callers", LEAF)                 /* calls that may block, their threads */        \
  X(PACER, "pacer", LEAF)                     /* what is held back until its time */           \
  X(WORLD, "world", LEAF)                     /* peers' fates, exchanges */                    \
  X(FOREIGN, "foreign functions", LEAF)       /* what is registered */                         \
  X(NATIVE, "machine code", LEAF)             /* what has been compiled; the compiler */       \
  X(CLIENTS, "list of clients", LEAF)         /* those that get faults */                      \
  X(FAULTS, "faults", LEAF)                   /* the faults of a client, and their network */  \
  X(REPORTS, "list of reports", LONG)         /* the reports of all clients */                 \
  X(WATCHERS, "watchers", LONG)               /* who watches a time model changes */           \
  X(HOST_CLOCK, "host's clock", LEAF)         /* the clock of a host that sees the pod */      \
  X(MODEL, "time model", PLAIN)               /* the log of the time model, what it came to */ \
  X(REPORT, "report", LEAF)                   /* books of programs that are gone, timelines */ \
  X(SEND, "sends to a peer", PLAIN)           /* the order of what goes to one peer */         \
  X(LOCAL_JOB, "job of local worlds", PLAIN)  /* the worlds of one process, in tests */        \
  X(MPI, "MPI's sends", LEAF)                 /* what senders hand to the progress thread */   \
  X(UCX, "UCX's sends", LEAF)                 /* the same */                                   \
  X(POST, "post office", LEAF)                /* parcels and their receivers */                \
  X(INBOX, "inbox", LEAF)                     /* what others hand to the progress thread */    \
  X(SEGMENT, "segment", LEAF)                 /* the heap of shared memory */                  \
  X(MPI_START, "MPI's start", LEAF)           /* MPI_Init and the thread that waits */         \
  X(TRANSFER, "chunked transfer", LEAF)       /* one buffer that is filled in pieces */        \
  X(USER_DATA, "user data", LEAF)             /* what callers attach to memory spaces */       \
  X(PROFILER, "profiler", LEAF)               /* what launches leave for the profiler */       \
  X(UNREAD, "unread errors", LEAF)            /* errors of launches, deliveries */

typedef enum {
  MP_LOCK_UNUSABLE,  // not initialized yet, or destroyed
#define MP_LOCK_ENUM(name, words, rule) MP_LOCK_##name,
  MP_LOCK_RANKS(MP_LOCK_ENUM)
#undef MP_LOCK_ENUM
      MP_LOCK_COUNT,
} mp_lock_rank_t;

typedef struct {
  pthread_mutex_t mutex;
#ifdef MINIPOD_ASSERTS
  mp_lock_rank_t rank;
#endif
} mp_lock_t;

#ifdef MINIPOD_ASSERTS

#define MP_LOCK_INITIALIZER(rank_) \
  { .mutex = PTHREAD_MUTEX_INITIALIZER, .rank = (rank_) }

// Makes a lock of this rank, which no thread holds.
void mp_lock_init(mp_lock_t *lock, mp_lock_rank_t rank);
// Destroys a lock that no thread holds.
void mp_lock_deinit(mp_lock_t *lock);
// Checks the rules before the calling thread takes a lock, and notes that the thread holds it.
void mp_lock_note_take(const mp_lock_t *lock, const char *file, int line);
// The same before the thread gives a lock back.
void mp_lock_note_give(const mp_lock_t *lock, const char *file, int line);
// The check before the thread waits on a condition: it holds this lock and, except for long ones,
// no other.
void mp_lock_note_wait(const mp_lock_t *lock, const char *file, int line);
// What the two macros below check.
void mp_lock_check_held(const mp_lock_t *lock, const char *file, int line, const char *function);
void mp_lock_check_none_held(const char *file, int line, const char *function);

// Asserts that the calling thread holds the lock.
#define mp_lock_assert_held(lock) mp_lock_check_held((lock), __FILE__, __LINE__, __func__)
// Asserts that the calling thread may wait or call a callback: it holds only long locks.
#define mp_lock_assert_none_held() mp_lock_check_none_held(__FILE__, __LINE__, __func__)

#else

#define MP_LOCK_INITIALIZER(rank_) \
  { .mutex = PTHREAD_MUTEX_INITIALIZER }

// The same functions without assertions; there is no bookkeeping.
static inline void mp_lock_init(mp_lock_t *lock, mp_lock_rank_t rank) {
  (void)rank;
  pthread_mutex_init(&lock->mutex, NULL);
}
static inline void mp_lock_deinit(mp_lock_t *lock) {
  pthread_mutex_destroy(&lock->mutex);
}
static inline void mp_lock_note_take(const mp_lock_t *lock, const char *file, int line) {
  (void)lock, (void)file, (void)line;
}
static inline void mp_lock_note_give(const mp_lock_t *lock, const char *file, int line) {
  (void)lock, (void)file, (void)line;
}
static inline void mp_lock_note_wait(const mp_lock_t *lock, const char *file, int line) {
  (void)lock, (void)file, (void)line;
}
#define mp_lock_assert_held(lock)  ((void)sizeof((lock) == (const mp_lock_t *)NULL))
#define mp_lock_assert_none_held() ((void)0)

#endif

// Waits until the lock is free and takes it.
#define mp_lock(lock) mp_lock_at((lock), __FILE__, __LINE__)
static inline void mp_lock_at(mp_lock_t *lock, const char *file, int line) {
  // First the check: a thread that would wait for ever dies with the reason instead.
  mp_lock_note_take(lock, file, line);
  pthread_mutex_lock(&lock->mutex);
}

// Gives back a lock that the calling thread holds. Locks may be given back in any order.
#define mp_unlock(lock) mp_unlock_at((lock), __FILE__, __LINE__)
static inline void mp_unlock_at(mp_lock_t *lock, const char *file, int line) {
  mp_lock_note_give(lock, file, line);
  pthread_mutex_unlock(&lock->mutex);
}

// Gives the lock back, waits until `changed` is signalled or `deadline` (on the condition's clock)
// has passed, and takes the lock again. Like all condition variables it may also return for no
// reason. False: the deadline has passed.
#define mp_lock_wait_until(lock, changed, deadline) \
  mp_lock_wait_until_at((lock), (changed), (deadline), __FILE__, __LINE__)
static inline bool mp_lock_wait_until_at(mp_lock_t *lock, pthread_cond_t *changed,
                                         const struct timespec *deadline, const char *file,
                                         int line) {
  mp_lock_note_wait(lock, file, line);
  return pthread_cond_timedwait(changed, &lock->mutex, deadline) != ETIMEDOUT;
}

#endif  // MINIPOD_SIM_BASE_OS_LOCK_H_
