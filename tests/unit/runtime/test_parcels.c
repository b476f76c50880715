// Parcels between the devices of several processes: in either order, errors, losses, what does not
// fit.
#include <string.h>

#include "sim/base/os/clock.h"
#include "sim/runtime/parcels/parcel.h"
#include "tests/unit/support/launches.h"
#include "tests/unit/support/processes/worlds.h"
#include "tests/unit/support/programs.h"

static const pod_option_t k_options[] = {{"num_devices", "2"}, {"workers", "2"}, {NULL, NULL}};

static mp_memory_t *memory_of(const pods_t *pods, uint32_t device) {
  return mp_device_memory(mp_client_device(pods->clients[device / 2], device), MP_MEMORY_DEVICE);
}

static mp_buffer_t *make(const pods_t *pods, uint32_t device, int64_t count, float first) {
  float *values = malloc((size_t)count * sizeof(float) + 1);
  for (int64_t i = 0; i < count; ++i) values[i] = first + (float)(i % 1000);
  const mp_host_array_t array = {.dtype = MP_DTYPE_F32, .rank = 1, .dims = &count, .data = values};
  mp_buffer_t *buffer = NULL;
  assert_ok(mp_buffer_from_host(memory_of(pods, device), &array, MP_HOST_ONLY_DURING_CALL, &buffer,
                                NULL));
  free(values);
  return buffer;
}

static void send(const mp_buffer_t *buffer, uint32_t target, int64_t key) {
  mp_event_t *sent = NULL;
  assert_ok(mp_parcel_send((mp_buffer_t *)buffer, target, key, &sent));
  assert_ok(mp_event_await(sent));
  mp_event_release(sent);
}

static mp_buffer_t *await(const pods_t *pods, uint32_t device, int64_t count, uint32_t source,
                          int64_t key) {
  mp_buffer_t *buffer = NULL;
  assert_ok(
      mp_parcel_receive(memory_of(pods, device), MP_DTYPE_F32, &count, 1, source, key, &buffer));
  return buffer;
}

// Checks what has come, and releases it.
static void expect(mp_buffer_t *buffer, int64_t count, float first) {
  float *values = malloc((size_t)count * sizeof(float) + 1);
  mp_event_t *done = NULL;
  assert_ok(mp_buffer_to_host(buffer, values, (uint64_t)count * sizeof(float), NULL, &done));
  assert_ok(mp_event_await(done));
  mp_event_release(done);
  for (int64_t i = 0; i < count; ++i) assert_true(values[i] == first + (float)(i % 1000));
  free(values);
  mp_buffer_release(buffer);
}

static void expect_error(mp_buffer_t *buffer, mp_status_code_t code, const char *text) {
  assert_status(mp_event_await(mp_buffer_definition(buffer)), code, text);
  mp_buffer_release(buffer);
}

static void either_side_may_be_first(void **state) {
  (void)state;
  static const int64_t counts[] = {0, 1, 7, 100, 100000, 3000000};
  for (uint32_t per_host = 1; per_host <= 2; ++per_host) {
    pods_t pods;
    start_pods(&pods, 2, per_host, k_options);
    for (int64_t i = 0; i < 6; ++i) {
      mp_buffer_t *buffer = make(&pods, 1, counts[i], (float)i);
      mp_buffer_t *waiting = await(&pods, 2, counts[i], 1, 2 * i);
      send(buffer, 2, 2 * i);
      expect(waiting, counts[i], (float)i);
      send(buffer, 3, 2 * i + 1);
      mp_buffer_release(buffer);
      expect(await(&pods, 3, counts[i], 1, 2 * i + 1), counts[i], (float)i);
    }
    stop_pods(&pods);
  }
}

static void keys_and_devices_tell_parcels_apart(void **state) {
  (void)state;
  pods_t pods;
  start_pods(&pods, 2, 2, k_options);
  mp_buffer_t *buffers[4], *waiting[2][2][4];
  for (uint32_t i = 0; i < 4; ++i) buffers[i] = make(&pods, i, 5, (float)(10 * i));
  for (uint32_t key = 0; key < 4; ++key) {
    for (uint32_t i = 0; i < 2; ++i) {
      // Each of two devices gets from both of the other process, and the other way round.
      waiting[0][i][key] = await(&pods, i, 5, 2 + (key + i) % 2, key);
      waiting[1][i][key] = await(&pods, 2 + i, 5, (key + i) % 2, key);
    }
  }
  for (uint32_t key = 4; key-- > 0;) {
    for (uint32_t i = 0; i < 2; ++i) {
      send(buffers[2 + (key + i) % 2], i, key);
      send(buffers[(key + i) % 2], 2 + i, key);
    }
  }
  for (uint32_t key = 0; key < 4; ++key) {
    for (uint32_t i = 0; i < 2; ++i) {
      expect(waiting[0][i][key], 5, (float)(10 * (2 + (key + i) % 2)));
      expect(waiting[1][i][key], 5, (float)(10 * ((key + i) % 2)));
    }
  }
  // A device of the same process is reached as well.
  mp_buffer_t *near = await(&pods, 1, 5, 0, 9);
  send(buffers[0], 1, 9);
  expect(near, 5, 0);
  for (uint32_t i = 0; i < 4; ++i) mp_buffer_release(buffers[i]);
  stop_pods(&pods);
}

static void errors_reach_the_receiver(void **state) {
  (void)state;
  pods_t pods;
  start_pods(&pods, 2, 2, k_options);
  static const int64_t four = 4;
  mp_buffer_t *broken = NULL, *pending = NULL;
  assert_ok(mp_buffer_create_error(memory_of(&pods, 0), MP_DTYPE_F32, &four, 1,
                                   mp_status_make(MP_DATA_LOSS, "it broke"), &broken));
  mp_buffer_t *waiting = await(&pods, 2, 4, 0, 1);
  mp_event_t *sent = NULL;
  assert_ok(mp_parcel_send(broken, 2, 1, &sent));
  assert_status(mp_event_await(sent), MP_DATA_LOSS, "it broke");
  mp_event_release(sent);
  expect_error(waiting, MP_DATA_LOSS, "process 0 could not send this array: it broke");
  mp_buffer_release(broken);
  // The contents go when they are there.
  mp_event_t *definition = NULL;
  assert_ok(mp_buffer_create(memory_of(&pods, 0), MP_DTYPE_F32, &four, 1, &pending, &definition));
  assert_ok(mp_parcel_send(pending, 2, 2, &sent));
  assert_false(mp_event_is_ready(sent));
  mp_event_set(definition, mp_status_make(MP_ABORTED, "nothing came"));
  assert_status(mp_event_await(sent), MP_ABORTED, "nothing came");
  mp_event_release(sent);
  mp_event_release(definition);
  mp_buffer_release(pending);
  expect_error(await(&pods, 2, 4, 0, 2), MP_ABORTED, "nothing came");
  // What does not fit.
  mp_buffer_t *buffer = make(&pods, 0, 4, 0);
  send(buffer, 2, 3);
  expect_error(await(&pods, 2, 5, 0, 3), MP_INVALID_ARGUMENT,
               "sends an array of 16 bytes, but this one awaits 20 bytes of f32");
  assert_status(mp_parcel_send(buffer, 4, 4, &sent), MP_INVALID_ARGUMENT, "no device has the id 4");
  mp_buffer_delete(buffer);
  assert_ok(mp_parcel_send(buffer, 2, 5, &sent));
  assert_status(mp_event_await(sent), MP_INVALID_ARGUMENT, "deleted");
  mp_event_release(sent);
  mp_buffer_release(buffer);
  stop_pods(&pods);
}

static void a_lost_process_sends_nothing(void **state) {
  (void)state;
  pods_t pods;
  start_pods(&pods, 2, 2, k_options);
  mp_buffer_t *buffer = make(&pods, 0, 4, 1);
  send(buffer, 2, 1);
  mp_buffer_release(buffer);
  mp_buffer_t *waiting = await(&pods, 2, 4, 0, 2);
  mp_client_release(pods.clients[0]);
  pods.clients[0] = NULL;
  close_pod_world(pods.worlds[0]);
  expect_error(waiting, MP_UNAVAILABLE, "process 0");
  expect(await(&pods, 3 - 1, 4, 0, 1), 4, 1);  // came before
  expect_error(await(&pods, 3, 4, 0, 3), MP_UNAVAILABLE, "has exited");
  mp_client_release(pods.clients[1]);
  close_pod_world(pods.worlds[1]);
  mp_status_release(pods.statuses[0]);
  mp_status_release(pods.statuses[1]);
}

static void no_device_sends(void **state) {
  (void)state;
  static const pod_option_t limited[] = {
      {"num_devices", "2"}, {"workers", "2"}, {"collective_timeout", "1"}, {NULL, NULL}};
  pods_t pods;
  start_pods(&pods, 2, 2, limited);
  const double begin = mp_clock_seconds();
  mp_buffer_t *waiting[3];
  for (int64_t i = 0; i < 3; ++i) waiting[i] = await(&pods, 2, 4 + i, 0, i);
  mp_buffer_t *buffer = make(&pods, 0, 5, 7);
  send(buffer, 2, 1);
  mp_buffer_release(buffer);
  expect(waiting[1], 5, 7);
  expect_error(
      waiting[0], MP_DEADLINE_EXCEEDED,
      "device 2 has waited 1 s for an array (tensor<4xf32>) that device 0 of process 0 has "
      "not sent");
  expect_error(waiting[2], MP_DEADLINE_EXCEEDED, "MINIPOD_COLLECTIVE_TIMEOUT_S");
  assert_true(mp_clock_seconds() - begin >= 1);
  // Others go on, and each wait has its own time.
  buffer = make(&pods, 0, 4, 3);
  waiting[0] = await(&pods, 2, 4, 0, 7);
  send(buffer, 2, 7);
  mp_buffer_release(buffer);
  expect(waiting[0], 4, 3);
  stop_pods(&pods);
}

static mp_buffer_t *await_any(const pods_t *pods, uint32_t device, int64_t count,
                              mp_parcel_ticket_t *out_ticket) {
  mp_buffer_t *buffer = NULL;
  assert_ok(
      mp_parcel_receive_any(memory_of(pods, device), MP_DTYPE_F32, &count, 1, out_ticket, &buffer));
  return buffer;
}

static void send_to(const pods_t *pods, uint32_t from, const mp_parcel_ticket_t *ticket,
                    int64_t count, float first) {
  mp_buffer_t *buffer = make(pods, from, count, first);
  mp_event_t *sent = NULL;
  assert_ok(mp_parcel_send_to(buffer, ticket, &sent));
  assert_ok(mp_event_await(sent));
  mp_event_release(sent);
  mp_buffer_release(buffer);
}

static void tickets_are_for_any_sender(void **state) {
  (void)state;
  pods_t pods;
  start_pods(&pods, 3, 1, k_options);
  mp_parcel_ticket_t tickets[4];
  mp_buffer_t *waiting[4];
  for (uint32_t i = 0; i < 4; ++i) waiting[i] = await_any(&pods, 2 + i % 2, 5, &tickets[i]);
  send_to(&pods, 0, &tickets[1], 5, 10);
  send_to(&pods, 4, &tickets[0], 5, 20);
  send_to(&pods, 3, &tickets[2], 5, 30);  // of the same process
  expect(waiting[0], 5, 20);
  expect(waiting[1], 5, 10);
  expect(waiting[2], 5, 30);
  // The wait ends by the receiver, once.
  mp_parcel_cancel(pods.clients[1], &tickets[3], mp_status_make(MP_CANCELLED, "not wanted"));
  expect_error(waiting[3], MP_CANCELLED, "not wanted");
  mp_parcel_cancel(pods.clients[1], &tickets[3], mp_status_make(MP_CANCELLED, "not wanted"));
  send_to(&pods, 0, &tickets[3], 5, 0);  // is dropped
  // What does not fit, errors, and what is no ticket.
  waiting[0] = await_any(&pods, 2, 5, &tickets[0]);
  send_to(&pods, 0, &tickets[0], 4, 0);
  expect_error(waiting[0], MP_INVALID_ARGUMENT, "sends an array of 16 bytes");
  mp_buffer_t *buffer = make(&pods, 0, 5, 0);
  mp_event_t *sent = NULL;
  mp_parcel_ticket_t wrong = tickets[0];
  wrong.target = 6;
  assert_status(mp_parcel_send_to(buffer, &wrong, &sent), MP_INVALID_ARGUMENT,
                "no device has the id 6");
  wrong.magic = 5;
  assert_status(mp_parcel_send_to(buffer, &wrong, &sent), MP_INVALID_ARGUMENT, "not minipod's");
  waiting[0] = await_any(&pods, 2, 5, &tickets[0]);
  mp_buffer_delete(buffer);
  assert_ok(mp_parcel_send_to(buffer, &tickets[0], &sent));
  assert_status(mp_event_await(sent), MP_INVALID_ARGUMENT, "deleted");
  mp_event_release(sent);
  mp_buffer_release(buffer);
  expect_error(waiting[0], MP_INVALID_ARGUMENT, "process 0 could not send this array");
  stop_pods(&pods);
}

// Fails, and names both processes.
static void send_again(const pods_t *pods, uint32_t from, const mp_parcel_ticket_t *ticket) {
  mp_buffer_t *buffer = make(pods, from, 5, 0);
  mp_event_t *sent = NULL;
  assert_status(mp_parcel_send_to(buffer, ticket, &sent), MP_FAILED_PRECONDITION,
                "process 0 sends two arrays to process 1 with the descriptor of one receive");
  mp_buffer_release(buffer);
}

static void a_repeated_ticket_ends_all_waits_of_its_device(void **state) {
  (void)state;
  pods_t pods;
  start_pods(&pods, 3, 1, k_options);
  mp_parcel_ticket_t tickets[5];
  mp_buffer_t *waiting[5];
  for (uint32_t i = 0; i < 4; ++i) waiting[i] = await_any(&pods, 2, 5, &tickets[i]);
  waiting[4] = await_any(&pods, 3, 5, &tickets[4]);
  send_to(&pods, 0, &tickets[0], 5, 10);
  expect(waiting[0], 5, 10);
  send_again(&pods, 0, &tickets[0]);
  for (uint32_t i = 1; i < 4; ++i) {
    expect_error(waiting[i], MP_FAILED_PRECONDITION, "process 0 sends two arrays to process 1");
  }
  // The parcels of these come too late; another device, and known senders, are not affected.
  send_to(&pods, 0, &tickets[2], 5, 0);
  send_to(&pods, 4, &tickets[4], 5, 20);
  expect(waiting[4], 5, 20);
  mp_buffer_t *known = await(&pods, 2, 5, 0, 1);
  mp_buffer_t *buffer = make(&pods, 0, 5, 30);
  send(buffer, 2, 1);
  expect(known, 5, 30);
  mp_buffer_release(buffer);
  // A later receive may be the one that was meant.
  mp_parcel_ticket_t late;
  expect_error(await_any(&pods, 2, 5, &late), MP_FAILED_PRECONDITION, "sends two arrays");
  stop_pods(&pods);
}

static void two_senders_may_not_share_a_ticket(void **state) {
  (void)state;
  pods_t pods;
  start_pods(&pods, 3, 1, k_options);
  mp_parcel_ticket_t tickets[2];
  mp_buffer_t *waiting[2];
  for (uint32_t i = 0; i < 2; ++i) waiting[i] = await_any(&pods, 2, 5, &tickets[i]);
  send_to(&pods, 0, &tickets[0], 5, 10);
  expect(waiting[0], 5, 10);
  send_to(&pods, 4, &tickets[0], 5, 20);
  expect_error(waiting[1], MP_FAILED_PRECONDITION,
               "process 2 has sent an array to device 2 with the descriptor of a receive that has "
               "its array already");
  tickets[0].key = UINT64_MAX;
  mp_buffer_t *buffer = make(&pods, 0, 5, 0);
  mp_event_t *sent = NULL;
  assert_status(mp_parcel_send_to(buffer, &tickets[0], &sent), MP_INVALID_ARGUMENT,
                "no receive has the number");
  mp_buffer_release(buffer);
  stop_pods(&pods);
}

static void a_lost_process_may_be_the_sender(void **state) {
  (void)state;
  pods_t pods;
  start_pods(&pods, 3, 1, k_options);
  mp_parcel_ticket_t ticket;
  mp_buffer_t *waiting = await_any(&pods, 2, 4, &ticket);
  mp_client_release(pods.clients[0]);
  pods.clients[0] = NULL;
  close_pod_world(pods.worlds[0]);
  expect_error(waiting, MP_UNAVAILABLE, "process 0");
  // Transfers that begin afterwards are between the others.
  waiting = await_any(&pods, 2, 4, &ticket);
  send_to(&pods, 4, &ticket, 4, 1);
  expect(waiting, 4, 1);
  for (int i = 1; i < 3; ++i) {
    mp_client_release(pods.clients[i]);
    close_pod_world(pods.worlds[i]);
  }
  for (int i = 0; i < 3; ++i) mp_status_release(pods.statuses[i]);
}

static void a_process_alone_gets_an_error(void **state) {
  (void)state;
  mp_client_t *client = make_client(2);
  mp_memory_t *memory = mp_device_memory(mp_client_device(client, 0), MP_MEMORY_DEVICE);
  static const int64_t four = 4;
  mp_buffer_t *buffer = NULL;
  assert_status(mp_parcel_receive(memory, MP_DTYPE_F32, &four, 1, 1, 0, &buffer),
                MP_FAILED_PRECONDITION, "no other process");
  mp_parcel_ticket_t ticket;
  assert_status(mp_parcel_receive_any(memory, MP_DTYPE_F32, &four, 1, &ticket, &buffer),
                MP_FAILED_PRECONDITION, "no other process");
  mp_client_release(client);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(either_side_may_be_first),
      cmocka_unit_test(keys_and_devices_tell_parcels_apart),
      cmocka_unit_test(errors_reach_the_receiver),
      cmocka_unit_test(a_lost_process_sends_nothing),
      cmocka_unit_test(no_device_sends),
      cmocka_unit_test(tickets_are_for_any_sender),
      cmocka_unit_test(a_repeated_ticket_ends_all_waits_of_its_device),
      cmocka_unit_test(two_senders_may_not_share_a_ticket),
      cmocka_unit_test(a_lost_process_may_be_the_sender),
      cmocka_unit_test(a_process_alone_gets_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
