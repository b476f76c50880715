// What a host sees of a paced client: no earlier than its virtual time, and at once when it ends.
#include <pthread.h>
#include <stdio.h>

#include "sim/base/os/clock.h"
#include "tests/unit/support/clients.h"

// A client on whose pod each transfer takes as long as this.
static mp_client_t *make_paced(const char *latency, const char *pace) {
  char topology[96];
  snprintf(topology, sizeof(topology), "ring:2 hbm:1MiB host_link.latency:%s", latency);
  const mp_named_value_t values[] = {
      {.name = MP_STR("topology"), .string_value = mp_str(topology)},
      {.name = MP_STR("time"), .string_value = MP_STR("paced")},
      {.name = MP_STR("pace"), .string_value = mp_str(pace)},
  };
  mp_options_t *options;
  assert_ok(mp_options_create(values, 3, &options));
  mp_client_t *client = NULL;
  assert_ok(mp_client_create(options, NULL, NULL, &client));
  mp_options_release(options);
  return client;
}

static void await_well(mp_event_t *event) {
  assert_ok(mp_event_await(event));
  mp_event_release(event);
}

static void what_is_there_is_seen_when_its_time_has_come(void **state) {
  (void)state;
  mp_client_t *client = make_paced("5us", "1e4");  // 50 ms
  const double start = mp_clock_seconds();
  mp_buffer_t *buffer = make_f32(mp_client_device(client, 1), 4, 2);
  assert_true(mp_event_is_ready(mp_buffer_definition(buffer)));  // inside nothing waits
  await_well(mp_buffer_ready_event(buffer, true));
  assert_true(mp_clock_seconds() - start >= 0.05);
  expect_f32(buffer, 4, 2);
  assert_true(mp_clock_seconds() - start >= 0.1);
  // Nothing more to wait for.
  mp_event_t *event = mp_buffer_ready_event(buffer, true);
  await_well(event);
  mp_buffer_release(buffer);
  mp_client_release(client);
}

static void transfers_of_several_devices_go_on_together(void **state) {
  (void)state;
  mp_client_t *client = make_paced("20ms", "1");
  mp_buffer_t *buffers[40];
  mp_event_t *events[40];
  for (uint32_t i = 0; i < 40; ++i) {
    buffers[i] = make_f32(mp_client_device(client, i % 2), 4, (float)i);
    events[i] = mp_buffer_ready_event(buffers[i], true);
  }
  // Twenty to each device, one after the other: the last ones become ready last, in whatever order
  // they are awaited.
  const double start = mp_clock_seconds();
  for (uint32_t i = 40; i-- > 0;) await_well(events[i]);
  assert_true(mp_clock_seconds() - start >= 0.3);
  for (uint32_t i = 0; i < 40; ++i) mp_buffer_release(buffers[i]);
  mp_client_release(client);
}

static void *await_in_thread(void *event) {
  await_well(event);
  return NULL;
}

static void the_end_of_the_client_is_not_held_back(void **state) {
  (void)state;
  mp_client_t *client = make_paced("1000s", "1");
  mp_buffer_t *buffer = make_f32(mp_client_device(client, 0), 4, 2);
  mp_event_t *event = mp_buffer_ready_event(buffer, true);
  assert_false(mp_event_wait_for(event, 0.01));
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, await_in_thread, mp_event_retain(event)), 0);
  mp_client_release(client);
  pthread_join(thread, NULL);
  await_well(event);
  mp_buffer_release(buffer);
}

static void a_callback_may_end_the_client(void **state) {
  (void)state;
  mp_client_t *client = make_paced("10ms", "1");
  mp_buffer_t *now = make_f32(mp_client_device(client, 0), 4, 2);
  mp_event_t *first = mp_buffer_ready_event(now, true);
  mp_buffer_t *later = make_f32(mp_client_device(client, 0), 4, 2);
  mp_event_t *second = mp_buffer_ready_event(later, true);
  assert_ok(mp_event_on_ready(first, release_client, client));
  await_well(second);
  await_well(first);
  mp_buffer_release(now);
  mp_buffer_release(later);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_there_is_seen_when_its_time_has_come),
      cmocka_unit_test(transfers_of_several_devices_go_on_together),
      cmocka_unit_test(the_end_of_the_client_is_not_held_back),
      cmocka_unit_test(a_callback_may_end_the_client),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
