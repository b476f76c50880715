// Time for measuring and for deadlines: seconds on a clock that never goes back.
#ifndef MINIPOD_SIM_BASE_OS_CLOCK_H_
#define MINIPOD_SIM_BASE_OS_CLOCK_H_

#include <time.h>

static inline double mp_clock_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif  // MINIPOD_SIM_BASE_OS_CLOCK_H_
