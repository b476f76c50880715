// Futexes: a thread sleeps on a word of memory until another changes the word and wakes it.
//
// They are used where a mutex and a condition variable would cost two cache lines and twice the
// time. The word of the functions named `_shared` may lie in memory that processes share; the
// others work within one process. Waking an address that is no longer in use is harmless: at worst
// a thread that waits for something else there wakes up without reason, which all waiters expect.
#ifndef MINIPOD_SIM_BASE_OS_FUTEX_H_
#define MINIPOD_SIM_BASE_OS_FUTEX_H_

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// Sleeps while `*word` is `expected`. Returns when woken, on a signal, when `*word` is another
// value, or after `timeout` (from now on; NULL: no limit), and does not say which: callers look
// again.
static inline void mp_futex_wait(atomic_uint *word, unsigned expected,
                                 const struct timespec *timeout) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, timeout, NULL, 0);
}

// Wakes at most `count` of the threads that sleep on `word`.
static inline void mp_futex_wake(atomic_uint *word, int count) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

// The same for sleepers with a mark, of which a waker may leave some out.
static inline void mp_futex_wait_marked(atomic_uint *word, unsigned expected, unsigned mark) {
  syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, expected, NULL, NULL, mark);
}
// Wakes at most `count` of the threads that sleep on `word` whose marks have a bit of `marks`.
static inline void mp_futex_wake_marked(atomic_uint *word, int count, unsigned marks) {
  syscall(SYS_futex, word, FUTEX_WAKE_BITSET_PRIVATE, count, NULL, NULL, marks);
}

// Wakes all threads that sleep on `word`.
static inline void mp_futex_wake_all(atomic_uint *word) {
  mp_futex_wake(word, INT_MAX);
}

// mp_futex_wait for a word that processes share.
static inline void mp_futex_wait_shared(atomic_uint *word, unsigned expected,
                                        const struct timespec *timeout) {
  syscall(SYS_futex, word, FUTEX_WAIT, expected, timeout, NULL, 0);
}

// Wakes all threads, of all processes, that sleep on a word that processes share.
static inline void mp_futex_wake_shared(atomic_uint *word) {
  syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

#endif  // MINIPOD_SIM_BASE_OS_FUTEX_H_
