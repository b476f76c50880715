// Two processes (worlds of threads) of one device each, and their launches.
#ifndef MINIPOD_TESTS_UNIT_SUPPORT_PROCESSES_PAIRS_H_
#define MINIPOD_TESTS_UNIT_SUPPORT_PROCESSES_PAIRS_H_

#include <time.h>

#include "tests/unit/support/launches.h"
#include "tests/unit/support/processes/worlds.h"
#include "tests/unit/support/programs.h"

enum { PAIR_COUNT = 4 };  // elements of an argument

static inline void start_pair(pods_t *pods) {
  static const pod_option_t options[] = {{"num_devices", "1"}, {"workers", "2"}, {NULL, NULL}};
  start_pods(pods, 2, 2, options);
}

// A sum of both.
static inline mp_program_t *pair_sum_program(void) {
  return psum_program(2, PAIR_COUNT);
}

static inline void make_pair_executables(const pods_t *pods, mp_program_t *(*make)(void),
                                         mp_executable_t *executables[2]) {
  static const uint32_t ids[] = {0, 1};
  for (uint32_t rank = 0; rank < 2; ++rank) {
    assert_ok(mp_executable_create(pods->clients[rank], make(), ids, &executables[rank]));
  }
}

// A launch of ones that has not begun.
static inline void pair_launch_begin(test_launch_t *l, const pods_t *pods, uint32_t rank,
                                     mp_executable_t *executable) {
  launch_begin(l, executable, 1);
  l->num_devices = 1;
  l->logical[0] = rank;
  l->arguments[0][0] = make_f32(mp_client_device(pods->clients[rank], rank), PAIR_COUNT, 1);
}

static inline void pair_launch(test_launch_t *l, const pods_t *pods, uint32_t rank,
                               mp_executable_t *executable) {
  pair_launch_begin(l, pods, rank, executable);
  launch_go(l);
}

// Most probably a process that has launched waits by then; what is expected must not depend on it.
static inline void let_it_park(void) {
  nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

#endif  // MINIPOD_TESTS_UNIT_SUPPORT_PROCESSES_PAIRS_H_
