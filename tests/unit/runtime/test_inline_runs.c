// Which launches the launching thread runs itself, after some of them took much longer than
// guessed.
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "tests/unit/support/launches.h"
#include "tests/unit/support/programs.h"

static pthread_t g_launching;
static atomic_bool g_is_slow;
static atomic_int g_num_inline;

static mp_status_t run_kernel(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  (void)kernel;
  if (pthread_equal(pthread_self(), g_launching)) atomic_fetch_add(&g_num_inline, 1);
  if (atomic_load(&g_is_slow)) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  memset(call->results[0], 0, 4 * sizeof(float));
  return NULL;
}

// How many of so many launches this thread runs itself.
static int count_inline(mp_executable_t *executable, int num_launches) {
  atomic_store(&g_num_inline, 0);
  for (int i = 0; i < num_launches; ++i) {
    test_launch_t l;
    launch_filled(&l, executable, 1, 1);
    launch_end(&l);
  }
  return atomic_load(&g_num_inline);
}

static void slow_ones_are_left_to_the_workers_for_a_while(void **state) {
  (void)state;
  mp_client_t *client = make_client(1);
  mp_executable_t *executable =
      make_executable(client, one_kernel_program("kernel", 1, run_kernel));
  g_launching = pthread_self();
  atomic_store(&g_is_slow, true);
  // Two, and then one after 64 launches, after 128 more, after 256 more.
  assert_int_equal(count_inline(executable, 500), 5);
  // Once they are short again they are found to be, at the latest after 512 launches. Where the
  // machine is so busy that short ones take long, it takes longer.
  atomic_store(&g_is_slow, false);
  int num_inline = 0;
  for (int round = 0; round < 1000 && num_inline < 50; ++round) {
    num_inline = count_inline(executable, 100);
  }
  assert_true(num_inline >= 50);
  mp_executable_release(executable);
  mp_client_release(client);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(slow_ones_are_left_to_the_workers_for_a_while),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
