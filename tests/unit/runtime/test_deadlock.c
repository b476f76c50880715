// The proof that launches wait for each other (sim/runtime/launch/deadlock.h), when something moves
// while it is made.

#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "sim/runtime/client.h"
#include "sim/runtime/devices/device_impl.h"
#include "sim/runtime/launch/deadlock.h"
#include "sim/runtime/launch/executable.h"
#include "sim/runtime/workers/workers.h"
#include "tests/unit/support/clients.h"
#include "tests/unit/support/launches.h"
#include "tests/unit/support/programs.h"
#include "tests/unit/support/unit.h"

#ifdef MINIPOD_ASSERTS

static mp_program_t *psum_program(uint32_t devices) {
  test_program_t p;
  program_begin(&p, "psum", 1, devices);
  mp_slot_t x = slot_param(program_param(&p, MP_DTYPE_F32, 4));
  mp_slot_t y = slot_result(program_result(&p, MP_DTYPE_F32, 4));
  program_collective(&p, MP_COLLECTIVE_ALL_REDUCE, "stablehlo.all_reduce", 4, x, y);
  return program_end(&p);
}

static mp_workers_t *g_workers;
static atomic_bool g_is_moving;
static atomic_uint g_num_reads;

// Does to the look what a run does that is resumed meanwhile.
static void move_during_the_look(void) {
  if (atomic_load(&g_is_moving)) mp_workers_need_look(g_workers);
  atomic_fetch_add(&g_num_reads, 1);
}

static bool is_any_over(test_launch_t launches[2][2]) {
  bool is_over = false;
  for (int i = 0; i < 4; ++i) is_over |= mp_event_is_ready(launches[i / 2][i % 2].done[0]);
  return is_over;
}

// Launches two programs of two devices on single devices, each device in its own order.
static void launch_crosswise(mp_client_t *client, mp_executable_t *const executables[2],
                             test_launch_t l[2][2]) {
  for (uint32_t d = 0; d < 2; ++d) {
    for (uint32_t n = 0; n < 2; ++n) {
      const uint32_t which = d ^ n;
      launch_begin(&l[d][n], executables[which], 1);
      l[d][n].num_devices = 1;
      l[d][n].logical[0] = which == 0 ? d : 1 - d;
      l[d][n].arguments[0][0] = make_f32(mp_client_device(client, d), 4, 1);
      launch_go(&l[d][n]);
    }
  }
}

// The devices are read one after the other. What was read is no proof if one of them has moved
// since: a session that has gone on would be called stuck.
static void a_look_in_which_something_moves_proves_nothing(void **state) {
  (void)state;
  mp_client_t *client = make_client(3);
  uint32_t forward[] = {0, 1}, backward[] = {1, 0}, other[] = {2};
  mp_executable_t *executables[2], *alone;
  assert_ok(mp_executable_create(client, psum_program(2), forward, &executables[0]));
  assert_ok(mp_executable_create(client, psum_program(2), backward, &executables[1]));
  assert_ok(mp_executable_create(client, psum_program(1), other, &alone));
  g_workers = client->workers;
  atomic_store(&g_is_moving, true);
  atomic_store(&g_num_reads, 0);
  mp_deadlock_at_read = move_during_the_look;
  test_launch_t l[2][2];
  launch_crosswise(client, executables, l);
  const struct timespec while_it_looks = {.tv_nsec = 50 * 1000 * 1000},
                        little = {.tv_nsec = 1000000};
  while (atomic_load(&g_num_reads) == 0) nanosleep(&little, NULL);
  nanosleep(&while_it_looks, NULL);
  assert_false(is_any_over(l));
  // Who has moved looks again when it is done, and then nothing moves.
  atomic_store(&g_is_moving, false);
  test_launch_t last;
  launch_filled(&last, alone, 1, 1);
  launch_expect(&last, 1);
  launch_end(&last);
  int failed = 0;
  for (int i = 0; i < 4; ++i) {
    mp_status_t status = mp_event_await(l[i / 2][i % 2].done[0]);
    failed += status != NULL;
    if (status != NULL) assert_status(status, MP_ABORTED, "queued behind one that is stuck");
    launch_end(&l[i / 2][i % 2]);
  }
  assert_int_equal(failed, 2);
  for (int e = 0; e < 2; ++e) mp_executable_release(executables[e]);
  mp_executable_release(alone);
  mp_client_release(client);
  mp_deadlock_at_read = NULL;  // nobody looks any more
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_look_in_which_something_moves_proves_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void) {
  puts("0 passed, 0 failed: only builds with assertions have the hook of these tests");
  return 0;
}

#endif
