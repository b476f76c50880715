// Units of sim/base/os/host_clock: when it goes on, stands and is set forward.
#include "sim/base/os/host_clock.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sim/base/os/clock.h"
#include "sim/base/os/core_wait.h"
#include "tests/unit/support/unit.h"

static const double k_pause = 1e-9 * MP_HOST_CLOCK_PAUSE_NS;

static double used_seconds(void) {
  struct timespec used;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return (double)used.tv_sec + 1e-9 * (double)used.tv_nsec;
}

// Lets so many seconds of a core go by.
static void pass(double seconds) {
  const double end = used_seconds() + seconds;
  while (used_seconds() < end) {
  }
}

static void unused_it_is_the_real_clock(void **state) {
  (void)state;
  assert_false(mp_host_clock_is_used());
  const double before = mp_clock_seconds(), now = mp_host_clock_seconds();
  assert_true(before <= now + 1e-6 && now <= mp_clock_seconds() + 1e-6);
}

static void it_goes_on_and_stands(void **state) {
  (void)state;
  mp_host_clock_use();
  const double begin = mp_host_clock_seconds();
  pass(0.002);
  assert_true(mp_host_clock_seconds() - begin >= 0.002 - 1e-4);
  mp_host_clock_stop();
  const int64_t stopped = mp_host_clock_show();
  pass(0.001);
  mp_host_clock_stop();
  mp_host_clock_go();
  assert_int_equal(mp_host_clock_show(), stopped);
  mp_host_clock_advance(0);  // long ago
  mp_host_clock_stop();
  mp_host_clock_go();
  assert_int_equal(mp_host_clock_show(), stopped);
  mp_host_clock_advance(1e-9 * (double)stopped + 3600);
  const int64_t later = mp_host_clock_show();
  assert_true(later - stopped >= 3599 * INT64_C(1000000000));
  mp_host_clock_go();
  pass(k_pause + 0.001);
  assert_true(mp_host_clock_show() > later);
  mp_host_clock_go();  // of a stop in the use before
  assert_true(mp_host_clock_show() > later);
  mp_host_clock_unuse();
  assert_true(mp_host_clock_show() < later);  // real time again
}

static void a_loop_that_waits_for_a_moment_ends(void **state) {
  (void)state;
  mp_host_clock_use();
  mp_host_clock_stop();
  const double real = mp_clock_seconds();
  const int64_t begin = mp_host_clock_show();
  while (mp_host_clock_show() < begin + 5000000) {
  }
  assert_true(mp_clock_seconds() - real >= 0.005 - 1e-6);
  mp_host_clock_stop();  // a thread that stops the clock and then reads it does not wait
  const int64_t once = mp_host_clock_show();
  pass(0.001);
  mp_host_clock_go();
  mp_host_clock_stop();
  assert_int_equal(mp_host_clock_show(), once);
  mp_host_clock_go();
  mp_host_clock_go();
  mp_host_clock_unuse();
}

static void it_stands_between_calls_that_are_near(void **state) {
  (void)state;
  mp_host_clock_use();
  mp_host_clock_stop();
  const int64_t begin = mp_host_clock_show();
  mp_host_clock_go();
  double longest = 0;  // between two calls: the machine may be busy
  for (int i = 0; i < 1000; ++i) {
    const double left = mp_clock_seconds();
    mp_host_clock_stop();
    mp_host_clock_go();
    if (mp_clock_seconds() - left > longest) longest = mp_clock_seconds() - left;
  }
  if (longest < k_pause) assert_int_equal(mp_host_clock_show(), begin);
  mp_host_clock_advance(mp_host_clock_seconds() + 1);  // in a pause, too
  assert_true(mp_host_clock_show() - begin >= 999999000);
  mp_host_clock_unuse();
}

// A stop around calls is followed by no pause of its own.
static void it_goes_on_at_once_after_the_last_call(void **state) {
  (void)state;
  mp_host_clock_use();
  mp_host_clock_stop();
  mp_host_clock_stop();
  mp_host_clock_go();
  pass(k_pause + 0.001);
  const double stood = mp_host_clock_seconds();
  mp_host_clock_go_on();
  pass(0.001);
  const double went = mp_host_clock_seconds() - stood;
  assert_true(went >= 0.001 - 1e-4);
  mp_host_clock_go_on();  // of no stop
  pass(0.001);
  assert_true(mp_host_clock_seconds() - stood >= went + 0.001 - 1e-4);
  mp_host_clock_unuse();
}

static void in_a_forked_child_it_goes_on(void **state) {
  (void)state;
  mp_host_clock_use();
  mp_host_clock_stop();
  const pid_t child = fork();
  if (child == 0) {
    const int64_t now = mp_host_clock_show();
    pass(0.001);
    _exit(mp_host_clock_show() > now ? 0 : 1);
  }
  int status = 1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  mp_host_clock_go();
  mp_host_clock_unuse();
}

// A process that keeps the core busy on which this one is, and has to stay.
static pid_t share_the_core(cpu_set_t *before) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  assert_int_equal(sched_getaffinity(0, sizeof(*before), before), 0);
  assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
  const pid_t child = fork();
  if (child == 0) {
    for (volatile int spin = 0;; ++spin) {
    }
  }
  return child;
}

// Half of the core is another process's: twice as much real time goes by as this one computes.
static void waiting_for_a_core_does_not_count(void **state) {
  (void)state;
  mp_core_wait_start();
  cpu_set_t before;
  const pid_t child = share_the_core(&before);
  pass(0.05);
  const bool is_told = mp_core_wait_ns((int64_t)(1e9 * mp_clock_seconds())) != 0;
  mp_host_clock_use();
  const double begin = mp_host_clock_seconds(), used = used_seconds();
  int64_t shown = mp_host_clock_show();
  for (const double end = mp_clock_seconds() + 0.3; mp_clock_seconds() < end;) {
    const int64_t now = mp_host_clock_show();
    assert_true(now >= shown);
    shown = now;
  }
  const double gone = mp_host_clock_seconds() - begin, computed = used_seconds() - used;
  mp_host_clock_unuse();
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  sched_setaffinity(0, sizeof(before), &before);
  if (!is_told) skip();
  assert_true(gone >= computed - 0.005 && gone < computed + 0.03);
}

static void *ask_all_the_time(void *stop) {
  while (!atomic_load((atomic_bool *)stop)) (void)mp_host_clock_seconds();
  return NULL;
}

// A time that another thread has just read does not include the wait that ends now.
static void reads_of_other_threads_hide_no_wait(void **state) {
  (void)state;
  atomic_bool stop = false;
  pthread_t other;
  mp_host_clock_use();
  assert_int_equal(pthread_create(&other, NULL, ask_all_the_time, &stop), 0);
  cpu_set_t before;
  const pid_t child = share_the_core(&before);
  double least = 0;
  for (int i = 0; i < 1000; ++i) {
    const int64_t begin = mp_host_clock_show();
    const double used = used_seconds();
    pass(0.0005);
    const double computed = used_seconds() - used;
    const double more = 1e-9 * (double)(mp_host_clock_show() - begin) - computed;
    if (more < least) least = more;
  }
  atomic_store(&stop, true);
  pthread_join(other, NULL);
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  sched_setaffinity(0, sizeof(before), &before);
  mp_host_clock_unuse();
  assert_true(least > -0.0002);
}

// Sleeping counts as time: no thread waits for a core while it sleeps.
static void sleeping_is_time(void **state) {
  (void)state;
  mp_host_clock_use();
  const double begin = mp_host_clock_seconds();
  nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
  assert_true(mp_host_clock_seconds() - begin >= 0.05 - 1e-4);
  mp_host_clock_unuse();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(unused_it_is_the_real_clock),
      cmocka_unit_test(it_goes_on_and_stands),
      cmocka_unit_test(a_loop_that_waits_for_a_moment_ends),
      cmocka_unit_test(it_stands_between_calls_that_are_near),
      cmocka_unit_test(it_goes_on_at_once_after_the_last_call),
      cmocka_unit_test(in_a_forked_child_it_goes_on),
      cmocka_unit_test(waiting_for_a_core_does_not_count),
      cmocka_unit_test(reads_of_other_threads_hide_no_wait),
      cmocka_unit_test(sleeping_is_time),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
