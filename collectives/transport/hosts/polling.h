// How often to poll a transport whose packets ring no bell.
//
// Often after a packet has come, and less and less often while none does, so that answers are quick
// and an idle process takes about 1 % of a core.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_HOSTS_POLLING_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_HOSTS_POLLING_H_

#include <stdbool.h>
#include <stdint.h>

enum {
  MP_POLLS_PER_PAUSE = 30,
  MP_FIRST_PAUSE_US = 10,
  MP_LAST_PAUSE_US = 200,
  MP_LONG_IDLE_POLLS = 3000,  // after so many polls (about 0.6 s) without anything,
  MP_LONG_PAUSE_US = 1000,    // the pause is this long, which costs about 1 % of a core
};

typedef struct {
  unsigned idle_polls;
} mp_polling_t;

// Records whether a poll found anything.
static inline void mp_polling_note(mp_polling_t *polling, bool did) {
  const bool counts = polling->idle_polls <= MP_LONG_IDLE_POLLS;
  polling->idle_polls = did ? 0 : polling->idle_polls + counts;
}

// The microseconds to pause before the next poll.
static inline uint32_t mp_polling_pause_us(const mp_polling_t *polling) {
  if (polling->idle_polls > MP_LONG_IDLE_POLLS) return MP_LONG_PAUSE_US;
  const unsigned doublings = polling->idle_polls / MP_POLLS_PER_PAUSE;
  const uint32_t pause = (uint32_t)MP_FIRST_PAUSE_US << (doublings < 8 ? doublings : 8);
  return pause < MP_LAST_PAUSE_US ? pause : MP_LAST_PAUSE_US;
}

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_HOSTS_POLLING_H_
