// What devices are seen to do: idle, at work, waiting at a meeting; also while they change.
#include "sim/runtime/look/look.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "tests/unit/support/launches.h"
#include "tests/unit/support/programs.h"

// One device is launched and comes to the sum; the other one is launched later.
static void a_device_that_waits_is_seen_where_it_waits(void **state) {
  (void)state;
  mp_client_t *client = make_client(2);
  mp_executable_t *executable = make_executable(client, psum_program(2, 4));
  test_launch_t l[2];
  mp_look_t look;
  for (uint32_t d = 0; d < 2; ++d) {
    mp_look(mp_client_device(client, d), &look);
    assert_int_equal(look.state, MP_LOOK_IDLE);
    assert_string_equal(look.program, "");
    launch_begin(&l[d], executable, 1);
    l[d].num_devices = 1;
    l[d].logical[0] = d;
    l[d].arguments[0][0] = make_f32(mp_client_device(client, d), 4, 1);
  }
  launch_go(&l[0]);
  do {
    mp_look(mp_client_device(client, 0), &look);
  } while (look.state != MP_LOOK_WAITING);
  assert_int_equal(look.queued, 1);
  assert_int_not_equal(strlen(look.place), 0);
  assert_int_not_equal(strlen(look.program), 0);
  assert_true(look.memory.bytes_in_use > 0);
  assert_false(mp_look_is_faulty(client));
  launch_go(&l[1]);
  for (uint32_t d = 0; d < 2; ++d) assert_ok(mp_event_await(l[d].done[0]));
  mp_look(mp_client_device(client, 0), &look);
  assert_int_equal(look.state, MP_LOOK_IDLE);
  assert_int_equal(look.completed, 1);
  for (uint32_t d = 0; d < 2; ++d) launch_end(&l[d]);
  mp_executable_release(executable);
  mp_client_release(client);
}

static atomic_bool g_is_over;

static void *look_all_the_time(void *context) {
  mp_client_t *client = context;
  mp_look_t look;
  while (!atomic_load(&g_is_over)) {
    for (uint32_t d = 0; d < 4; ++d) {
      mp_look(mp_client_device(client, d), &look);
      // A text, whatever it is: the session's lock keeps the collective that it names.
      assert_true(strlen(look.place) < sizeof(look.place));
      assert_true(look.state == MP_LOOK_WAITING || look.place[0] == '\0');
    }
  }
  return NULL;
}

static void reading_disturbs_no_process(void **state) {
  (void)state;
  mp_client_t *client = make_client(4);
  mp_executable_t *executable = make_executable(client, psum_program(4, 4));
  pthread_t looker;
  assert_int_equal(pthread_create(&looker, NULL, look_all_the_time, client), 0);
  for (int i = 0; i < 300; ++i) {
    test_launch_t l;
    launch_begin(&l, executable, 1);
    for (uint32_t d = 0; d < 4; ++d)
      l.arguments[d][0] = make_f32(mp_client_device(client, d), 4, 1);
    launch_go(&l);
    for (uint32_t d = 0; d < 4; ++d) assert_ok(mp_event_await(l.done[d]));
    launch_end(&l);
  }
  atomic_store(&g_is_over, true);
  pthread_join(looker, NULL);
  mp_executable_release(executable);
  mp_client_release(client);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_device_that_waits_is_seen_where_it_waits),
      cmocka_unit_test(reading_disturbs_no_process),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
