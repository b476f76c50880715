#include "sim/base/os/host_clock.h"

#include <math.h>
#include <stdatomic.h>
#include <time.h>

#include "sim/base/os/core_wait.h"
#include "sim/base/os/lock.h"
#include "sim/base/os/process.h"

static mp_lock_t g_lock = MP_LOCK_INITIALIZER(MP_LOCK_HOST_CLOCK);
static atomic_uint g_uses, g_stops;  // written under the lock

// The clock was at `value` at the moment `since`, or is since then, when nothing stops it: all
// written under the lock. The version is odd while they change; a reader that finds another one
// afterwards has read a mixture, and reads again.
static atomic_uint g_version;
static atomic_llong g_value, g_since;
static uint32_t g_generation;  // of processes, in which it is stopped and set; under the lock
static int64_t g_paused;       // until when it stands after the last call; under the lock
static atomic_llong g_shown;   // the latest that was shown

// When the thread has read the clock, in real time, since it last stopped it; 0: it has not.
static _Thread_local int64_t t_read;

static int64_t host_clock_real(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// The time base in here: real time but for what the script has waited for a core, which it would
// not do on a host of its own. It goes back a little where such a wait shows only now. A thread
// that loses its core in here, between the two questions, asks both again: the second answer has a
// wait in it that the first one has not.
static int64_t host_clock_own(int64_t *real) {
  enum { MOST = 4 };  // where the kernel takes long to answer, each time
  int64_t own = 0, then = host_clock_real();
  for (int i = 0; i < MOST; i++) {
    *real = then;
    own = *real - mp_core_wait_ns(*real);
    then = host_clock_real();
    if (then - *real < MP_CORE_WAIT_STALE_NS) break;
  }
  return own;
}

static int64_t host_clock_now(void) {
  int64_t real;
  return host_clock_own(&real);
}

static int64_t host_clock_at(int64_t own) {
  const int64_t value = atomic_load(&g_value), since = atomic_load(&g_since);
  const bool stands = atomic_load(&g_stops) != 0 || own < since;
  return stands ? value : value + (own - since);
}

// The lock is held.
static void host_clock_set(int64_t value, int64_t since, uint32_t stops) {
  atomic_fetch_add(&g_version, 1);
  atomic_store(&g_value, value);
  atomic_store(&g_since, since);
  atomic_store(&g_stops, stops);
  atomic_fetch_add(&g_version, 1);
}

bool mp_host_clock_is_used(void) {
  return atomic_load_explicit(&g_uses, memory_order_relaxed) != 0;
}

void mp_host_clock_use(void) {
  mp_process_watch_forks();
  mp_lock(&g_lock);
  if (atomic_load(&g_uses) == 0) {
    mp_core_wait_start();
    int64_t real;
    const int64_t own = host_clock_own(&real);
    g_generation = mp_process_generation();
    atomic_store(&g_shown, 0);
    g_paused = 0;
    host_clock_set(real, own, 0);
  }
  atomic_fetch_add(&g_uses, 1);
  mp_unlock(&g_lock);
}

void mp_host_clock_unuse(void) {
  mp_lock(&g_lock);
  atomic_fetch_sub(&g_uses, 1);
  mp_unlock(&g_lock);
}

static int64_t host_clock_read(void) {
  for (;;) {
    const unsigned version = atomic_load(&g_version);
    const int64_t now = host_clock_at(host_clock_now());
    if (version % 2 == 0 && atomic_load(&g_version) == version) return now;
  }
}

// A thread that reads the clock while it stands waits for a moment, perhaps for one that has to
// come before the clock goes on: so it goes on for that thread's sake.
static int64_t host_clock_creep(void) {
  int64_t real;
  const int64_t own = host_clock_own(&real), gone = real - t_read;
  mp_lock(&g_lock);
  if (atomic_load(&g_stops) != 0) {
    const int64_t most = MP_HOST_CLOCK_CREEP_NS;
    host_clock_set(atomic_load(&g_value) + (gone < most ? gone : most), own, atomic_load(&g_stops));
  }
  const int64_t now = host_clock_at(own);
  mp_unlock(&g_lock);
  return now;
}

double mp_host_clock_seconds(void) {
  if (!mp_host_clock_is_used()) return 1e-9 * (double)host_clock_real();
  return 1e-9 * (double)host_clock_read();
}

// What is shown never goes back, in no thread, where a wait for a core shows only afterwards.
static int64_t host_clock_not_before(int64_t now) {
  long long shown = atomic_load(&g_shown);
  while (shown < now && !atomic_compare_exchange_weak(&g_shown, &shown, now)) {
  }
  return shown < now ? now : shown;
}

int64_t mp_host_clock_show(void) {
  if (!mp_host_clock_is_used()) return host_clock_real();
  // In a forked child no thread is left that would start it.
  if (mp_process_generation() != g_generation) {
    return host_clock_not_before(atomic_load(&g_value) + host_clock_now() - atomic_load(&g_since));
  }
  const bool stands = t_read != 0 && atomic_load(&g_stops) != 0;
  const int64_t now = stands ? host_clock_creep() : host_clock_read();
  t_read = host_clock_real();
  return host_clock_not_before(now);
}

void mp_host_clock_stop(void) {
  t_read = 0;
  mp_lock(&g_lock);
  const int64_t now = host_clock_now();
  host_clock_set(host_clock_at(now), now, atomic_load(&g_stops) + 1);
  mp_unlock(&g_lock);
}

// Gives a stop back; the clock goes on from `since`, if nothing else has it stopped. The lock is
// held.
static void host_clock_end_stop(int64_t since) {
  const uint32_t stops = atomic_load(&g_stops);
  if (stops == 0) return;  // it may have been used again since the stop
  host_clock_set(atomic_load(&g_value), since, stops - 1);
}

void mp_host_clock_go(void) {
  mp_lock(&g_lock);
  g_paused = host_clock_now() + MP_HOST_CLOCK_PAUSE_NS;
  host_clock_end_stop(g_paused);
  mp_unlock(&g_lock);
}

void mp_host_clock_go_on(void) {
  mp_lock(&g_lock);
  const int64_t now = host_clock_now();
  host_clock_end_stop(g_paused > now ? g_paused : now);
  mp_unlock(&g_lock);
}

void mp_host_clock_advance(double moment) {
  if (!(moment < 1e9 * 9)) return;  // centuries; smaller moments fit into 64 bits of nanoseconds
  const int64_t value = (int64_t)ceil(moment * 1e9);
  mp_lock(&g_lock);
  const int64_t now = host_clock_now();
  if (value > host_clock_at(now)) {
    const int64_t since = atomic_load(&g_since);
    host_clock_set(value, since > now ? since : now, atomic_load(&g_stops));
  }
  mp_unlock(&g_lock);
}
