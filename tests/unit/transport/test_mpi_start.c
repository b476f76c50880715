// Starting MPI: what the caller learns when it goes well, badly or not at all, and time limits that
// do not depend on the clock that people set.
#include "collectives/transport/bootstrap/mpi_start.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/support/unit.h"

// The clock is set back by a day after each time it is read.
int clock_gettime(clockid_t clock, struct timespec *now) {
  const int result = (int)syscall(SYS_clock_gettime, clock, now);
  if (clock == CLOCK_REALTIME) now->tv_sec += 24 * 3600;
  return result;
}

// ---- An MPI ----

static atomic_bool g_comes;        // whether the other processes do
static atomic_int g_num_starting;  // threads that are in it
static bool g_fails;

static int init(int *out_is_ours, mp_mpi_error_t error) {
  (void)error;
  atomic_fetch_add(&g_num_starting, 1);
  *out_is_ours = 1;
  return 0;
}

static int join_begin(mp_mpi_error_t error) {
  if (!g_fails) return 0;
  strcpy(error, "no communicator");
  atomic_fetch_sub(&g_num_starting, 1);
  return -1;
}

static int join_test(int *out_done, mp_mpi_who_t *out_who, mp_mpi_error_t error) {
  (void)error;
  *out_done = atomic_load(&g_comes);
  *out_who = (mp_mpi_who_t){.rank = 3, .size = 4, .leader = 2, .num_near = 2};
  if (*out_done) atomic_fetch_sub(&g_num_starting, 1);
  return 0;
}

static const mp_mpi_module_t k_module = {
    .init = init, .join_begin = join_begin, .join_test = join_test};

static void await_threads(void) {
  while (atomic_load(&g_num_starting) != 0) usleep(1000);
}

// ---- Tests ----

static void names_this_process(void **state) {
  (void)state;
  mp_mpi_who_t who = {0};
  bool is_ours = false;
  g_fails = false;
  atomic_store(&g_comes, true);
  // Half a minute of a long job, and a limit of more years than a clock has.
  const double limits[] = {30, 1e18};
  for (int i = 0; i < 2; ++i) {
    assert_ok(mp_mpi_start(&k_module, NULL, limits[i], &who, &is_ours));
    assert_int_equal(who.rank, 3);
    assert_true(is_ours);
    await_threads();
  }
}

// The limit is in seconds of time that passes; the test itself ends it if it is not.
static void limits_are_in_time_that_passes(void **state) {
  (void)state;
  mp_mpi_who_t who = {.rank = 77};
  bool is_ours = false;
  g_fails = false;
  atomic_store(&g_comes, false);
  alarm(60);
  assert_status(mp_mpi_start(&k_module, NULL, 0.2, &who, &is_ours), MP_DEADLINE_EXCEEDED,
                "did not all start within 0.2 s");
  alarm(0);
  assert_int_equal(who.rank, 77);
  assert_false(is_ours);
  atomic_store(&g_comes, true);
  await_threads();
}

static void failures_tell_nothing_else(void **state) {
  (void)state;
  mp_mpi_who_t who = {.rank = 77};
  bool is_ours = false;
  g_fails = true;
  assert_status(mp_mpi_start(&k_module, NULL, 30, &who, &is_ours), MP_UNAVAILABLE,
                "no communicator");
  assert_int_equal(who.rank, 77);
  assert_false(is_ours);
  await_threads();
}

// The tests have no modules beside them. An MPI that was opened for one all the same would give its
// functions to the module that is tried next, which is another MPI's.
static void a_missing_module_opens_no_mpi(void **state) {
  (void)state;
  const mp_mpi_module_t *module = NULL;
  assert_status(mp_mpi_open_module("", NULL, &module), MP_UNAVAILABLE,
                "minipod_mpi_ompi.so: No such file or directory; ");
  static const char *const libraries[] = {"libmpi.so.40", "libmpich.so.12", "libmpi.so.12"};
  for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); ++i) {
    assert_null(dlopen(libraries[i], RTLD_NOW | RTLD_NOLOAD));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names_this_process),
      cmocka_unit_test(failures_tell_nothing_else),
      cmocka_unit_test(limits_are_in_time_that_passes),
      cmocka_unit_test(a_missing_module_opens_no_mpi),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
