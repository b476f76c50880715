#include "sim/base/os/host_clock.h"

#include <math.h>
#include <stdatomic.h>
#include <time.h>

#include "sim/base/os/lock.h"
#include "sim/base/os/process.h"

static mp_lock_t g_lock = MP_LOCK_INITIALIZER(MP_LOCK_HOST_CLOCK);
static atomic_uint g_uses, g_stops;  // written under the lock

// The clock was at `value` at the real moment `since`, or is since then, when nothing stops it: all
// written under the lock. The version is odd while they change; a reader that finds another one
// afterwards has read a mixture, and reads again.
static atomic_uint g_version;
static atomic_llong g_value, g_since;
static uint32_t g_generation;  // of processes, in which it is stopped and set; under the lock

// When the thread has read the clock, in real time, since it last stopped it; 0: it has not.
static _Thread_local int64_t t_read;

static int64_t host_clock_real(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t host_clock_at(int64_t real) {
  const int64_t value = atomic_load(&g_value), since = atomic_load(&g_since);
  const bool stands = atomic_load(&g_stops) != 0 || real < since;
  return stands ? value : value + (real - since);
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
    const int64_t now = host_clock_real();
    g_generation = mp_process_generation();
    host_clock_set(now, now, 0);
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
    const int64_t now = host_clock_at(host_clock_real());
    if (version % 2 == 0 && atomic_load(&g_version) == version) return now;
  }
}

// A thread that reads the clock while it stands waits for a moment, perhaps for one that has to
// come before the clock goes on: so it goes on for that thread's sake.
static int64_t host_clock_creep(int64_t real) {
  const int64_t gone = real - t_read;
  mp_lock(&g_lock);
  if (atomic_load(&g_stops) != 0) {
    const int64_t most = MP_HOST_CLOCK_CREEP_NS;
    host_clock_set(atomic_load(&g_value) + (gone < most ? gone : most), real,
                   atomic_load(&g_stops));
  }
  const int64_t now = host_clock_at(real);
  mp_unlock(&g_lock);
  return now;
}

double mp_host_clock_seconds(void) {
  if (!mp_host_clock_is_used()) return 1e-9 * (double)host_clock_real();
  return 1e-9 * (double)host_clock_read();
}

int64_t mp_host_clock_show(void) {
  const int64_t real = host_clock_real();
  if (!mp_host_clock_is_used()) return real;
  // In a forked child nobody is left who would set it going.
  if (mp_process_generation() != g_generation) {
    return atomic_load(&g_value) + (real - atomic_load(&g_since));
  }
  const bool stands = t_read != 0 && atomic_load(&g_stops) != 0;
  const int64_t now = stands ? host_clock_creep(real) : host_clock_read();
  t_read = real;
  return now;
}

void mp_host_clock_stop(void) {
  t_read = 0;
  mp_lock(&g_lock);
  const int64_t now = host_clock_real();
  host_clock_set(host_clock_at(now), now, atomic_load(&g_stops) + 1);
  mp_unlock(&g_lock);
}

void mp_host_clock_go(void) {
  mp_lock(&g_lock);
  const uint32_t stops = atomic_load(&g_stops);
  if (stops != 0) {  // it may have been used anew since the stop
    host_clock_set(atomic_load(&g_value), host_clock_real() + MP_HOST_CLOCK_PAUSE_NS, stops - 1);
  }
  mp_unlock(&g_lock);
}

void mp_host_clock_advance(double moment) {
  if (!(moment < 1e9 * 9)) return;  // centuries; what is left of them has room in 64 bits
  const int64_t value = (int64_t)ceil(moment * 1e9);
  mp_lock(&g_lock);
  const int64_t now = host_clock_real();
  if (value > host_clock_at(now)) {
    const int64_t since = atomic_load(&g_since);
    host_clock_set(value, since > now ? since : now, atomic_load(&g_stops));
  }
  mp_unlock(&g_lock);
}
