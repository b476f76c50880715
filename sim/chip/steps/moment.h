// Virtual time: whole picoseconds since the client was created. Integer sums do not depend on their
// order, and keep their precision in long runs. The type overflows after 213 days.
#ifndef MINIPOD_SIM_CHIP_STEPS_MOMENT_H_
#define MINIPOD_SIM_CHIP_STEPS_MOMENT_H_

#include <math.h>
#include <stdint.h>

typedef uint64_t mp_moment_t;
#define MP_MOMENTS_PER_SECOND 1e12

// Rounds seconds to picoseconds. Negative seconds and NaN become 0, large ones at most 9e18.
static inline mp_moment_t mp_moment_of(double seconds) {
  if (!(seconds > 0)) return 0;
  const double moments = nearbyint(seconds * MP_MOMENTS_PER_SECOND);
  const double most = 9e18;
  return moments < most ? (mp_moment_t)moments : (mp_moment_t)most;
}

static inline double mp_moment_seconds(mp_moment_t moment) {
  return (double)moment / MP_MOMENTS_PER_SECOND;
}

#endif  // MINIPOD_SIM_CHIP_STEPS_MOMENT_H_
