// Futexes: sleep on a word of memory until somebody changes it and wakes the sleepers.
//
// Used where a mutex and a condition variable would cost two cache lines and twice the time.
// Private to the process, but for those named `_shared`, whose word may lie in shared memory.
// Waking an address that is no longer in use is harmless (at worst somebody else's waiter sees a
// spurious wake-up, which all waiters expect).
#ifndef MINIPOD_SIM_BASE_OS_FUTEX_H_
#define MINIPOD_SIM_BASE_OS_FUTEX_H_

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// Returns when woken, when `*word` is not `expected`, on a signal, or after `timeout` (relative;
// NULL: none): callers look again.
static inline void mp_futex_wait(atomic_uint *word, unsigned expected,
                                 const struct timespec *timeout) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, timeout, NULL, 0);
}

static inline void mp_futex_wake(atomic_uint *word, int count) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

static inline void mp_futex_wake_all(atomic_uint *word) {
  mp_futex_wake(word, INT_MAX);
}

static inline void mp_futex_wait_shared(atomic_uint *word, unsigned expected,
                                        const struct timespec *timeout) {
  syscall(SYS_futex, word, FUTEX_WAIT, expected, timeout, NULL, 0);
}

static inline void mp_futex_wake_shared(atomic_uint *word) {
  syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

#endif  // MINIPOD_SIM_BASE_OS_FUTEX_H_
