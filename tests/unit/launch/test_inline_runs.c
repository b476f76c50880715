// Which launches the launching thread runs itself: after some of them took much longer than
// guessed, and where it waits for each of them at once.
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "sim/runtime/devices/launching.h"
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

// A program on one device of a new client; from now on it is this thread that launches.
static mp_executable_t *begin_launching(mp_program_t *program, mp_client_t **out_client) {
  *out_client = make_client(1);
  g_launching = pthread_self();
  atomic_store(&g_is_slow, false);
  return make_executable(*out_client, program);
}

static void end_launching(mp_executable_t *executable, mp_client_t *client) {
  mp_executable_release(executable);
  mp_client_release(client);
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
  mp_client_t *client = NULL;
  mp_executable_t *executable =
      begin_launching(one_kernel_program("kernel", 1, run_kernel), &client);
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
  end_launching(executable, client);
}

// ---- Threads that wait at once ----

// So many parts that the guess is that they take long.
enum { PARTS = 8 };

static atomic_int g_num_parts[PARTS];  // how often each was done

static mp_status_t run_part(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  (void)kernel;
  if (pthread_equal(pthread_self(), g_launching)) atomic_fetch_add(&g_num_inline, 1);
  if (atomic_load(&g_is_slow)) nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
  atomic_fetch_add(&g_num_parts[call->part], 1);
  if (call->part < 4) ((float *)call->results[0])[call->part] = 0;
  return NULL;
}

// How many parts of so many launches this thread does, which waits for each at once, or never says
// so. It sleeps until each is over: workers have done what it has not.
static int count_parts(mp_executable_t *executable, int num_launches, bool waits) {
  for (int i = 0; i < PARTS; ++i) atomic_store(&g_num_parts[i], 0);
  atomic_store(&g_num_inline, 0);
  for (int i = 0; i < num_launches; ++i) {
    test_launch_t l;
    launch_filled(&l, executable, 1, 1);
    if (waits) mp_launching_note_wait();
    launch_end(&l);
  }
  for (int i = 0; i < PARTS; ++i) assert_int_equal(atomic_load(&g_num_parts[i]), num_launches);
  return atomic_load(&g_num_inline);
}

static void a_thread_that_waits_at_once_takes_part(void **state) {
  (void)state;
  mp_client_t *client = NULL;
  mp_executable_t *executable =
      begin_launching(program_of_parts("parts", 1, run_part, PARTS), &client);
  assert_int_equal(count_parts(executable, 20, false), 0);
  // From the third launch on. A worker that happens to be awake may be quicker with some.
  assert_in_range(count_parts(executable, 200, true), 1, 200 * PARTS);
  // What takes long is the workers' again, but for the first launch, which was not known to.
  atomic_store(&g_is_slow, true);
  (void)count_parts(executable, 1, true);
  assert_int_equal(count_parts(executable, 10, true), 0);
  end_launching(executable, client);
}

// The first launch without a wait is still taken for one that will be waited for.
static void a_continuing_thread_is_not_held_up(void **state) {
  (void)state;
  mp_client_t *client = NULL;
  mp_executable_t *executable =
      begin_launching(program_of_parts("parts", 1, run_part, PARTS), &client);
  (void)count_parts(executable, 20, true);
  (void)count_parts(executable, 1, false);
  assert_int_equal(count_parts(executable, 20, false), 0);
  end_launching(executable, client);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_thread_that_waits_at_once_takes_part),
      cmocka_unit_test(a_continuing_thread_is_not_held_up),
      cmocka_unit_test(slow_ones_are_left_to_the_workers_for_a_while),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
