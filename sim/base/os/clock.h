// Time for measuring and for deadlines: seconds on a clock that never goes back.
#ifndef MINIPOD_SIM_BASE_OS_CLOCK_H_
#define MINIPOD_SIM_BASE_OS_CLOCK_H_

#include <pthread.h>
#include <time.h>

// The time now, in seconds since a moment that has no meaning: only differences do.
static inline double mp_clock_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// `seconds` (at least 0, at most what a time_t holds) as a length of time, for futexes.
static inline struct timespec mp_clock_interval(double seconds) {
  const time_t whole = (time_t)seconds;
  return (struct timespec){.tv_sec = whole, .tv_nsec = (long)((seconds - (double)whole) * 1e9)};
}

// The time that is `seconds` (at least 0) from now, for mp_lock_wait_until (lock.h) on conditions
// made by mp_clock_cond_init. Times beyond thirty years are cut to that.
static inline struct timespec mp_clock_after(double seconds) {
  const double most = 1e9;
  const double left = seconds < most ? (seconds > 0 ? seconds : 0) : most;
  const struct timespec interval = mp_clock_interval(left);
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += interval.tv_sec;
  until.tv_nsec += interval.tv_nsec;
  if (until.tv_nsec >= 1000000000) {
    until.tv_sec += 1;
    until.tv_nsec -= 1000000000;
  }
  return until;
}

// Makes a condition variable whose time limits are on this clock, not on the one that people set.
static inline void mp_clock_cond_init(pthread_cond_t *cond) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(cond, &attributes);
  pthread_condattr_destroy(&attributes);
}

#endif  // MINIPOD_SIM_BASE_OS_CLOCK_H_
