// Clients over several processes: which devices there are, what the foreign ones refuse, programs
// on none, some or all of a process's devices.
#include <string.h>

#include "sim/runtime/launch/launch.h"
#include "tests/unit/support/launches.h"
#include "tests/unit/support/programs.h"

#include "tests/unit/support/processes/worlds.h"

static const pod_option_t k_two_devices[] = {{"num_devices", "2"}, {"workers", "2"}, {NULL, NULL}};

static void test_devices(void **state) {
  (void)state;
  pods_t pods;
  start_pods(&pods, 3, 2, k_two_devices);
  for (uint32_t rank = 0; rank < 3; ++rank) {
    mp_client_t *client = pods.clients[rank];
    assert_int_equal(mp_client_num_devices(client), 6);
    const mp_pod_info_t *info = mp_pod_info(mp_client_pod(client));
    assert_int_equal(info->num_processes, 3);
    assert_int_equal(info->process_index, rank);
    for (uint32_t id = 0; id < 6; ++id) {
      mp_device_t *device = mp_client_device(client, id);
      assert_int_equal(mp_device_id(device), id);
      assert_int_equal(mp_device_info(device)->process_index, id / 2);
      assert_int_equal(mp_device_info(device)->local_hardware_id, id % 2);
      assert_int_equal(mp_device_info(device)->host_index, id / 4);
      assert_int_equal(mp_device_is_local(device), id / 2 == rank);
      assert_int_equal(mp_device_memory(device, MP_MEMORY_DEVICE) != NULL, id / 2 == rank);
      // All agree on capacities, whichever process owns the device.
      assert_int_equal(
          mp_device_info(device)->capacity[MP_MEMORY_DEVICE],
          mp_device_info(mp_client_device(pods.clients[0], id))->capacity[MP_MEMORY_DEVICE]);
    }
  }
  stop_pods(&pods);
}

static void test_memory_is_shared_by_the_ranks_of_a_host(void **state) {
  (void)state;
  mp_client_t *alone = make_client(4);
  const uint64_t whole = mp_device_info(mp_client_device(alone, 0))->capacity[MP_MEMORY_DEVICE];
  mp_client_release(alone);
  pods_t pods;
  start_pods(&pods, 2, 2, k_two_devices);
  const mp_pod_device_t *device = mp_device_info(mp_client_device(pods.clients[1], 2));
  assert_true(device->is_shared[MP_MEMORY_DEVICE]);
  assert_in_range(2 * device->capacity[MP_MEMORY_DEVICE], whole - (2 << 20), whole);
  stop_pods(&pods);
}

static void test_foreign_devices_refuse(void **state) {
  (void)state;
  pods_t pods;
  start_pods(&pods, 2, 2, k_two_devices);
  mp_status_t status = mp_device_check_local(mp_client_device(pods.clients[0], 3), "copy to");
  assert_status(status, MP_INVALID_ARGUMENT,
                "copy to device 3: it belongs to process 1, this is process 0");
  assert_ok(mp_device_check_local(mp_client_device(pods.clients[1], 3), "copy to"));
  stop_pods(&pods);
}

static void test_disagreement_fails_everywhere(void **state) {
  (void)state;
  static const pod_option_t first[] = {{"topology", "ring:4"}, {NULL, NULL}};
  static const pod_option_t second[] = {{"topology", "ring:8"}, {NULL, NULL}};
  const pod_option_t *options[] = {first, second};
  pods_t pods;
  try_start_pods(&pods, 2, 1, options);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    assert_null(pods.clients[rank]);
    assert_non_null(strstr(mp_status_message(pods.statuses[rank]), "disagree on the topology"));
    assert_non_null(strstr(mp_status_message(pods.statuses[rank]), "\"ring:4\""));
    assert_non_null(strstr(mp_status_message(pods.statuses[rank]), "\"ring:8\""));
  }
  stop_pods(&pods);
}

// y = x + 1
static mp_status_t add_one(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  (void)kernel;
  const float *x = call->operands[0];
  for (int i = 0; i < 4; ++i) ((float *)call->results[0])[i] = x[i] + 1;
  return NULL;
}

static mp_program_t *add_one_program(uint32_t devices) {
  test_program_t p;
  program_begin(&p, "add_one", 1, devices);
  mp_slot_t x = slot_param(program_param(&p, MP_DTYPE_F32, 4));
  mp_slot_t y = slot_result(program_result(&p, MP_DTYPE_F32, 4));
  program_launch(&p, add_one, 1, 1, &x, 1, &y);
  return program_end(&p);
}

// Four devices of two processes, and their program on `count` of them.
static mp_executable_t *place(const pods_t *pods, uint32_t rank, const uint32_t *ids,
                              uint32_t count) {
  mp_executable_t *executable = NULL;
  assert_ok(mp_executable_create(pods->clients[rank], add_one_program(count), ids, &executable));
  return executable;
}

static void test_launch_on_the_own_devices(void **state) {
  (void)state;
  static const uint32_t ids[] = {2, 1, 3, 0};
  pods_t pods;
  start_pods(&pods, 2, 2, k_two_devices);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    mp_executable_t *executable = place(&pods, rank, ids, 4);
    uint32_t count = 0;
    const uint32_t *local = mp_executable_local(executable, &count);
    assert_int_equal(count, 2);
    assert_int_equal(local[0], rank == 0 ? 1 : 0);
    assert_int_equal(local[1], rank == 0 ? 3 : 2);
    test_launch_t l;
    launch_begin(&l, executable, 1);
    l.num_devices = 2;
    memcpy(l.logical, local, sizeof(*local) * 2);
    for (uint32_t i = 0; i < 2; ++i) {
      l.arguments[i][0] = make_f32(mp_executable_device(executable, local[i]), 4, 5);
    }
    launch_go(&l);
    launch_expect(&l, 6);
    // Devices of the other process are refused by name, and nothing runs.
    mp_buffer_t *results[2];
    l.logical[1] = 3 - local[1];
    assert_status(launch_try(&l, results), MP_INVALID_ARGUMENT, "it belongs to process");
    launch_end(&l);
    mp_executable_release(executable);
  }
  stop_pods(&pods);
}

static void test_launch_without_an_own_device(void **state) {
  (void)state;
  static const uint32_t ids[] = {3, 2};
  pods_t pods;
  start_pods(&pods, 2, 1, k_two_devices);
  mp_executable_t *executable = place(&pods, 0, ids, 2);
  uint32_t count = 1;
  (void)mp_executable_local(executable, &count);
  assert_int_equal(count, 0);
  mp_launch_t launch = {0};
  assert_ok(mp_executable_launch(executable, &launch, NULL, NULL));
  mp_executable_release(executable);
  stop_pods(&pods);
}

static void test_num_nodes_needs_a_world(void **state) {
  (void)state;
  mp_named_value_t value = {.name = MP_STR("num_nodes"), .type = MP_VALUE_INT64, .int64_value = 2};
  mp_options_t *options = NULL;
  assert_ok(mp_options_create(&value, 1, &options));
  mp_client_t *client = NULL;
  assert_status(mp_client_create_in(options, NULL, &client), MP_UNIMPLEMENTED,
                "one of 2 processes");
  mp_options_release(options);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_devices),
      cmocka_unit_test(test_memory_is_shared_by_the_ranks_of_a_host),
      cmocka_unit_test(test_foreign_devices_refuse),
      cmocka_unit_test(test_disagreement_fails_everywhere),
      cmocka_unit_test(test_launch_on_the_own_devices),
      cmocka_unit_test(test_launch_without_an_own_device),
      cmocka_unit_test(test_num_nodes_needs_a_world),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
