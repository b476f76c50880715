// The client's end while a launching thread runs devices itself.
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "sim/runtime/devices/client_impl.h"
#include "tests/unit/support/launches.h"
#include "tests/unit/support/programs.h"

// The launch on the last device brings the others to their end on its thread, one after the other.
// A callback of the first one lets the client go, which cancels the second one.
static void a_callback_may_release_the_client(void **state) {
  (void)state;
  mp_client_t *client = make_client(3);
  mp_executable_t *executable = make_executable(client, psum_program(3, 4));
  test_launch_t l[3];
  for (uint32_t d = 0; d < 3; ++d) {
    launch_begin(&l[d], executable, 1);
    l[d].num_devices = 1;
    l[d].logical[0] = d;
    l[d].arguments[0][0] = make_f32(mp_client_device(client, d), 4, 1);
  }
  for (uint32_t d = 0; d < 3; ++d) {
    launch_go(&l[d]);
    if (d == 0) assert_ok(mp_event_on_ready(l[0].done[0], release_client, client));
  }
  assert_ok(mp_event_await(l[0].done[0]));
  assert_ok(mp_event_await(l[2].done[0]));
  // When a worker took it, it may have come to its end before.
  mp_status_t status = mp_event_await(l[1].done[0]);
  if (status != NULL) assert_status(status, MP_CANCELLED, "the client was closed");
  for (uint32_t d = 0; d < 3; ++d) launch_end(&l[d]);
  mp_executable_release(executable);
}

// ---- Another thread ends the client ----

static mp_client_t *g_client;
static atomic_bool g_is_inside;

// Until the client is ending, and a little longer: its end must not overtake this.
static mp_status_t wait_for_the_end(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  (void)kernel;
  atomic_store(&g_is_inside, true);
  while (!mp_client_is_stopping(g_client)) usleep(100);
  usleep(50000);
  memset(call->results[0], 0, 4 * sizeof(float));
  return NULL;
}

static void *release_meanwhile(void *context) {
  while (!atomic_load(&g_is_inside)) usleep(100);
  mp_client_release(context);
  return NULL;
}

// What a launching thread is at it finishes; what it has not begun is cancelled.
static void the_client_ends_when_no_thread_is_launching(void **state) {
  (void)state;
  g_client = make_client(2);
  mp_executable_t *executable =
      make_executable(g_client, one_kernel_program("waiting", 2, wait_for_the_end));
  test_launch_t l;
  launch_begin(&l, executable, 1);
  for (uint32_t d = 0; d < 2; ++d)
    l.arguments[d][0] = make_f32(mp_client_device(g_client, d), 4, 1);
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, release_meanwhile, g_client), 0);
  launch_go(&l);
  pthread_join(thread, NULL);
  assert_ok(mp_event_await(l.done[0]));
  launch_expect_error(&l, 1, MP_CANCELLED, "the client was closed");
  launch_end(&l);
  mp_executable_release(executable);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_callback_may_release_the_client),
      cmocka_unit_test(the_client_ends_when_no_thread_is_launching),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
