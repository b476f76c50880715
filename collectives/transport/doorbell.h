// Doorbells: let a thread sleep until another one, perhaps in another process, has work for it.
//
// The sleeper reads the count, looks for work, and sleeps only if the count is still the same. All
// accesses are sequentially consistent: either the sleeper sees the new count, or the ringing
// thread sees that it sleeps.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_DOORBELL_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_DOORBELL_H_

#include <stdatomic.h>

#include "sim/base/os/clock.h"
#include "sim/base/os/futex.h"

typedef struct {
  // Counts; the futex word. A count, not a flag that the sleeper clears: a ring between the
  // sleeper's check for work and its sleep is not lost.
  _Alignas(64) atomic_uint rung;
  atomic_uint is_asleep;  // saves a system call per ring while the other thread works
} mp_doorbell_t;

// Counts up, and wakes the sleeper if there is one. Any thread of any process that maps the
// doorbell.
static inline void mp_doorbell_ring(mp_doorbell_t *bell) {
  // Sequentially consistent: either this thread sees that the other is asleep, or the other, which
  // sets is_asleep first, finds the count changed (the kernel compares it) and does not sleep.
  atomic_fetch_add(&bell->rung, 1);
  if (atomic_load(&bell->is_asleep) != 0) mp_futex_wake_shared(&bell->rung);
}

// Like mp_doorbell_sleep, for a thread whose work another one does meanwhile: ringing does not wake
// it.
static inline void mp_doorbell_doze(mp_doorbell_t *bell, unsigned rung, double seconds) {
  const struct timespec timeout = mp_clock_interval(seconds);
  mp_futex_wait_shared(&bell->rung, rung, &timeout);
}

// Sleeps until a ring since `rung` was read, for at most `seconds`, or until a signal comes. A
// doorbell has one sleeper.
static inline void mp_doorbell_sleep(mp_doorbell_t *bell, unsigned rung, double seconds) {
  // Set before the kernel compares the count, which it does after a full barrier. It may be cleared
  // late: a thread that still sees it makes one unnecessary system call.
  atomic_store(&bell->is_asleep, 1);
  mp_doorbell_doze(bell, rung, seconds);
  atomic_store(&bell->is_asleep, 0);
}

// Wakes the thread that dozes or sleeps.
static inline void mp_doorbell_wake(mp_doorbell_t *bell) {
  mp_futex_wake_shared(&bell->rung);
}

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_DOORBELL_H_
