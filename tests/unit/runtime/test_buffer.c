// Buffers: transfers with any strides, deletion, external references, copies, raw writes, errors.

#include "sim/runtime/buffers/buffer.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/base/alloc.h"
#include "tests/unit/support/clients.h"
#include "tests/unit/support/unit.h"

static mp_memory_t *memory_of(mp_client_t *client, uint32_t device, mp_memory_space_t space) {
  return mp_device_memory(mp_client_device(client, device), space);
}

static void read_back(mp_buffer_t *buffer, void *data, size_t size, const int64_t *strides) {
  mp_event_t *done;
  assert_ok(mp_buffer_to_host(buffer, data, size, strides, &done));
  assert_ok(mp_event_await(done));
  mp_event_release(done);
}

static void host_arrays_of_any_strides_become_dense(void **state) {
  (void)state;
  mp_client_t *client = make_client(1);
  mp_memory_t *memory = memory_of(client, 0, MP_MEMORY_DEVICE);
  int32_t data[6] = {0, 1, 2, 3, 4, 5};  // 2 x 3
  int64_t dims[2] = {3, 2};
  struct {
    int64_t strides[2];
    int first;
    int32_t expected[6];
  } cases[] = {
      {{8, 4}, 0, {0, 1, 2, 3, 4, 5}},    // dense
      {{4, 12}, 0, {0, 3, 1, 4, 2, 5}},   // transposed
      {{-8, -4}, 5, {5, 4, 3, 2, 1, 0}},  // reversed
      {{0, 4}, 1, {1, 2, 1, 2, 1, 2}},    // repeated
      {{-4, 12}, 2, {2, 5, 1, 4, 0, 3}},  // both
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    mp_host_array_t array = {.dtype = MP_DTYPE_S32,
                             .rank = 2,
                             .dims = dims,
                             .data = data + cases[i].first,
                             .byte_strides = cases[i].strides};
    mp_buffer_t *buffer;
    mp_event_t *done;
    assert_ok(
        mp_buffer_from_host(memory, &array, MP_HOST_UNTIL_TRANSFER_COMPLETES, &buffer, &done));
    assert_ok(mp_event_await(done));
    mp_event_release(done);
    int32_t back[6];
    read_back(buffer, back, sizeof(back), NULL);
    assert_memory_equal(back, cases[i].expected, sizeof(back));
    int64_t column_major[2] = {4, 12};
    read_back(buffer, back, sizeof(back), column_major);
    for (int r = 0; r < 3; ++r) {
      for (int c = 0; c < 2; ++c) assert_int_equal(back[c * 3 + r], cases[i].expected[r * 2 + c]);
    }
    mp_buffer_release(buffer);
  }
  mp_client_release(client);
}

static void large_and_odd_arrays_come_and_go(void **state) {
  (void)state;
  mp_client_t *client = make_client(2);
  mp_memory_t *memory = memory_of(client, 1, MP_MEMORY_DEVICE);
  int64_t dims[1] = {5 * 1000 * 1000 + 3};
  size_t size = (size_t)dims[0];
  char *data = malloc(size + 1), *back = malloc(size);
  for (size_t i = 0; i <= size; ++i) data[i] = (char)(i * 31);
  for (int semantics = 0; semantics < 2; ++semantics) {
    mp_host_array_t array = {.dtype = MP_DTYPE_S8, .rank = 1, .dims = dims, .data = data + 1};
    mp_buffer_t *buffer;
    mp_event_t *done;
    assert_ok(mp_buffer_from_host(memory, &array, (mp_host_semantics_t)semantics, &buffer, &done));
    assert_ok(mp_event_await(done));
    mp_event_release(done);
    memset(back, 0, size);
    read_back(buffer, back, size, NULL);
    assert_memory_equal(back, data + 1, size);
    mp_buffer_release(buffer);
  }
  free(data);
  free(back);
  mp_client_release(client);
}

static void zero_sized_and_scalar_arrays_work(void **state) {
  (void)state;
  mp_client_t *client = make_client(1);
  mp_memory_t *memory = memory_of(client, 0, MP_MEMORY_DEVICE);
  int64_t dims[2] = {0, 7};
  mp_host_array_t empty = {.dtype = MP_DTYPE_F64, .rank = 2, .dims = dims};
  mp_buffer_t *buffer;
  assert_ok(mp_buffer_from_host(memory, &empty, MP_HOST_ONLY_DURING_CALL, &buffer, NULL));
  assert_int_equal(mp_buffer_bytes(buffer), 0);
  void *data;
  assert_ok(mp_buffer_acquire_external(buffer, &data));
  assert_non_null(data);
  mp_buffer_release_external(buffer);
  read_back(buffer, NULL, 0, NULL);
  mp_buffer_release(buffer);
  double value = 3;
  mp_host_array_t scalar = {.dtype = MP_DTYPE_F64, .data = &value};
  assert_ok(mp_buffer_from_host(memory, &scalar, MP_HOST_ONLY_DURING_CALL, &buffer, NULL));
  value = 0;
  read_back(buffer, &value, sizeof(value), NULL);
  assert_true(value == 3);
  mp_buffer_release(buffer);
  mp_client_release(client);
}

static void nonsense_is_refused(void **state) {
  (void)state;
  mp_client_t *client = make_client(1);
  mp_memory_t *memory = memory_of(client, 0, MP_MEMORY_DEVICE);
  mp_buffer_t *buffer;
  mp_event_t *event;
  int64_t negative = -1, huge[2] = {INT64_MAX, 4}, big = 1ll << 60;
  assert_status(mp_buffer_create(memory, MP_DTYPE_F32, &negative, 1, &buffer, &event),
                MP_INVALID_ARGUMENT, "negative");
  assert_status(mp_buffer_create(memory, MP_DTYPE_F32, huge, 2, &buffer, &event),
                MP_INVALID_ARGUMENT, "2^63");
  assert_status(mp_buffer_create(memory, MP_DTYPE_F32, huge, 33, &buffer, &event),
                MP_INVALID_ARGUMENT, "rank 33");
  assert_status(mp_buffer_create(memory, MP_DTYPE_INVALID, huge, 1, &buffer, &event),
                MP_INVALID_ARGUMENT, "element type");
  assert_status(mp_buffer_create(memory, MP_DTYPE_F32, &big, 1, &buffer, &event),
                MP_RESOURCE_EXHAUSTED, "do not fit");
  mp_buffer_t *x = make_f32(mp_client_device(client, 0), 4, 1);
  char small[8];
  assert_status(mp_buffer_to_host(x, small, sizeof(small), NULL, &event), MP_INVALID_ARGUMENT,
                "8 bytes");
  assert_status(mp_buffer_read_raw(x, small, 12, 8, &event), MP_INVALID_ARGUMENT, "buffer of 16");
  mp_buffer_release(x);
  mp_client_release(client);
}

static void deleting_leaves_external_views_valid(void **state) {
  (void)state;
  mp_client_t *client = make_client(1);
  mp_device_t *device = mp_client_device(client, 0);
  mp_buffer_t *x = make_f32(device, 1024, 5);
  void *data, *again;
  assert_ok(mp_buffer_acquire_external(x, &data));
  assert_ok(mp_buffer_acquire_external(x, &again));
  assert_ptr_equal(data, again);
  mp_buffer_release_external(x);
  mp_buffer_delete(x);
  mp_buffer_delete(x);
  assert_true(mp_buffer_is_deleted(x));
  assert_true(((float *)data)[1023] == 5);
  assert_int_equal(stats_of(device, MP_MEMORY_DEVICE).bytes_in_use, 4096);
  mp_event_t *event;
  assert_status(mp_buffer_to_host(x, data, 4096, NULL, &event), MP_INVALID_ARGUMENT, "deleted");
  mp_buffer_release(x);  // the view holds it
  assert_true(((float *)data)[0] == 5);
  mp_buffer_release_external(x);
  assert_int_equal(stats_of(device, MP_MEMORY_DEVICE).bytes_in_use, 0);
  mp_client_release(client);
}

static void buffers_survive_their_client(void **state) {
  (void)state;
  mp_client_t *client = make_client(2);
  mp_buffer_t *x = make_f32(mp_client_device(client, 1), 4, 5);
  mp_client_release(client);
  float *data;
  assert_ok(mp_buffer_acquire_external(x, (void **)&data));
  assert_true(data[3] == 5);
  mp_event_t *event;
  assert_status(mp_buffer_to_host(x, data, 16, NULL, &event), MP_FAILED_PRECONDITION, "closed");
  mp_buffer_release_external(x);
  mp_buffer_release(x);
}

static void copies_wait_for_their_source(void **state) {
  (void)state;
  mp_client_t *client = make_client(2);
  int64_t dims = 1 << 19;
  size_t size = (size_t)dims * 4;
  mp_buffer_t *source, *pinned, *other;
  mp_event_t *definition, *written;
  assert_ok(mp_buffer_create(memory_of(client, 0, MP_MEMORY_DEVICE), MP_DTYPE_F32, &dims, 1,
                             &source, &definition));
  assert_ok(mp_buffer_copy_to_memory(source, memory_of(client, 0, MP_MEMORY_PINNED_HOST), &pinned));
  assert_ok(mp_buffer_copy_to_memory(pinned, memory_of(client, 1, MP_MEMORY_DEVICE), &other));
  assert_false(mp_event_is_ready(mp_buffer_definition(other)));
  float *data = malloc(size);
  for (int64_t i = 0; i < dims; ++i) data[i] = 7;
  for (size_t at = 0; at < size; at += size / 4) {
    written = buffer_write(source, (char *)data + at, at, size / 4);
    assert_ok(mp_event_await(written));
    mp_event_release(written);
  }
  free(data);
  mp_event_set(definition, NULL);
  mp_event_release(definition);
  mp_buffer_release(source);
  mp_buffer_release(pinned);
  expect_f32(other, dims, 7);
  float one;
  mp_event_t *done;
  assert_ok(mp_buffer_read_raw(other, &one, 16, 4, &done));
  assert_ok(mp_event_await(done));
  mp_event_release(done);
  assert_true(one == 7);
  mp_buffer_release(other);
  mp_client_release(client);
}

// Each copy's end starts the next one, on one thread: that must not nest.
static void a_long_chain_of_copies_needs_no_stack(void **state) {
  (void)state;
  mp_client_t *client = make_client(2);
  int64_t dims = 4;
  mp_buffer_t *x;
  mp_event_t *definition;
  assert_ok(mp_buffer_create(memory_of(client, 0, MP_MEMORY_DEVICE), MP_DTYPE_F32, &dims, 1, &x,
                             &definition));
  float *data;
  assert_ok(mp_buffer_acquire_external(x, (void **)&data));
  for (int i = 0; i < 4; ++i) data[i] = 7;
  mp_buffer_release_external(x);
  for (uint32_t i = 1; i < 50000; ++i) {
    mp_buffer_t *copy;
    assert_ok(mp_buffer_copy_to_memory(x, memory_of(client, i % 2, MP_MEMORY_DEVICE), &copy));
    mp_buffer_release(x);
    x = copy;
  }
  mp_event_set(definition, NULL);
  mp_event_release(definition);
  expect_f32(x, 4, 7);
  mp_buffer_release(x);
  mp_client_release(client);
}

static void errors_are_data(void **state) {
  (void)state;
  mp_client_t *client = make_client(2);
  int64_t dims = 4;
  mp_buffer_t *bad, *copy;
  assert_ok(mp_buffer_create_error(memory_of(client, 0, MP_MEMORY_DEVICE), MP_DTYPE_F32, &dims, 1,
                                   mp_status_make(MP_DATA_LOSS, "first cause"), &bad));
  assert_ok(mp_buffer_copy_to_memory(bad, memory_of(client, 1, MP_MEMORY_DEVICE), &copy));
  assert_status(mp_event_await(mp_buffer_definition(copy)), MP_DATA_LOSS, "first cause");
  float data[4];
  mp_event_t *done;
  assert_ok(mp_buffer_to_host(copy, data, sizeof(data), NULL, &done));
  assert_status(mp_event_await(done), MP_DATA_LOSS, "first cause");
  mp_event_release(done);
  void *view;
  assert_ok(mp_buffer_acquire_external(bad, &view));
  mp_buffer_release_external(bad);
  mp_buffer_release(bad);
  mp_buffer_release(copy);
  mp_client_release(client);
}

static void count(void *context) {
  ++*(int *)context;
}

static void adopted_memory_is_counted_and_given_back_once(void **state) {
  (void)state;
  mp_client_t *client = make_client(1);
  mp_device_t *device = mp_client_device(client, 0);
  float data[4] = {1, 1, 1, 1};
  int64_t dims = 4;
  int calls = 0;
  mp_buffer_t *x;
  assert_ok(mp_buffer_view_external(mp_device_memory(device, MP_MEMORY_UNPINNED_HOST), MP_DTYPE_F32,
                                    &dims, 1, data, count, &calls, &x));
  assert_int_equal(stats_of(device, MP_MEMORY_UNPINNED_HOST).bytes_in_use, 16);
  void *view;
  assert_ok(mp_buffer_acquire_external(x, &view));
  assert_ptr_equal(view, data);
  mp_buffer_delete(x);
  assert_int_equal(calls, 0);
  mp_buffer_release_external(x);
  assert_int_equal(calls, 1);
  mp_buffer_release(x);
  assert_int_equal(calls, 1);
  assert_int_equal(stats_of(device, MP_MEMORY_UNPINNED_HOST).bytes_in_use, 0);
  mp_client_release(client);
}

static void a_forked_child_gets_errors_and_may_release(void **state) {
  (void)state;
  mp_client_t *client = make_client(2);
  mp_buffer_t *x = make_f32(mp_client_device(client, 0), 4, 1);
  pid_t child = fork();
  if (child == 0) {
    float data[4];
    mp_event_t *done;
    mp_status_t status = mp_buffer_to_host(x, data, sizeof(data), NULL, &done);
    bool ok = mp_status_code(status) == MP_FAILED_PRECONDITION;
    mp_status_release(status);
    mp_buffer_delete(x);
    mp_buffer_release(x);
    mp_client_release(client);
    _exit(ok ? 0 : 1);
  }
  int result = -1;
  assert_int_equal(waitpid(child, &result, 0), child);
  assert_int_equal(result, 0);
  expect_f32(x, 4, 1);
  mp_buffer_release(x);
  mp_client_release(client);
}

// A client that runs programs for their shapes alone, where reads of absent values give `absent`.
static mp_client_t *make_client_without_values(const char *absent) {
  mp_named_value_t values[] = {
      {.name = MP_STR("num_devices"), .type = MP_VALUE_INT64, .int64_value = 1},
      {.name = MP_STR("time"), .type = MP_VALUE_STRING, .string_value = MP_STR("model")},
      {.name = MP_STR("values"), .type = MP_VALUE_STRING, .string_value = MP_STR("shapes")},
      {.name = MP_STR("log_level"), .type = MP_VALUE_STRING, .string_value = MP_STR("error")},
      {.name = MP_STR("absent"), .type = MP_VALUE_STRING, .string_value = mp_str(absent)},
  };
  mp_options_t *options;
  assert_ok(mp_options_create(values, sizeof(values) / sizeof(values[0]), &options));
  mp_client_t *client = NULL;
  assert_ok(mp_client_create(options, NULL, NULL, &client));
  mp_options_release(options);
  return client;
}

// An array of 200 x 100 doubles, which is too large to have values.
static mp_buffer_t *make_absent(mp_client_t *client) {
  double *data = calloc(200 * 100, sizeof(double));
  const int64_t dims[2] = {200, 100};
  mp_host_array_t array = {.dtype = MP_DTYPE_F64, .rank = 2, .dims = dims, .data = data};
  mp_buffer_t *buffer = NULL;
  assert_ok(mp_buffer_from_host(memory_of(client, 0, MP_MEMORY_DEVICE), &array,
                                MP_HOST_ONLY_DURING_CALL, &buffer, NULL));
  free(data);
  return buffer;
}

static void absent_values_are_read_as_numbers(void **state) {
  (void)state;
  enum { COUNT = 200 * 100 };
  mp_client_t *client = make_client_without_values("one");
  mp_buffer_t *buffer = make_absent(client);
  double *back = malloc(COUNT * sizeof(double));
  const int64_t column_major[2] = {sizeof(double), 200 * sizeof(double)};
  read_back(buffer, back, COUNT * sizeof(double), column_major);
  for (int i = 0; i < COUNT; ++i) assert_true(back[i] == 1);
  // Bytes from the middle of an element on, up to the middle of another.
  char bytes[5 + 24 + 5], expected[sizeof(bytes) + 8];
  const double one = 1;
  for (size_t i = 0; i + 8 <= sizeof(expected); i += 8) memcpy(expected + i, &one, 8);
  mp_event_t *done;
  assert_ok(mp_buffer_read_raw(buffer, bytes, 803, sizeof(bytes), &done));
  assert_ok(mp_event_await(done));
  mp_event_release(done);
  assert_memory_equal(bytes, expected + 3, sizeof(bytes));
  // One address, as long as the buffer or an external reference exists.
  void *first, *second;
  assert_ok(mp_buffer_acquire_external(buffer, &first));
  assert_ok(mp_buffer_acquire_external(buffer, &second));
  assert_true(first == second && ((double *)first)[COUNT - 1] == 1);
  mp_buffer_release_external(buffer);
  mp_buffer_delete(buffer);
  mp_buffer_release(buffer);
  assert_true(((double *)first)[0] == 1);
  mp_buffer_release_external(buffer);
  free(back);
  mp_client_release(client);
}

static void absent_values_are_errors_by_default(void **state) {
  (void)state;
  mp_client_t *client = make_client_without_values("error");
  mp_buffer_t *buffer = make_absent(client);
  double one;
  void *data;
  mp_event_t *done;
  assert_status(mp_buffer_acquire_external(buffer, &data), MP_FAILED_PRECONDITION,
                "this array has no values: f64[200,100], transfer from the host. ");
  assert_ok(mp_buffer_read_raw(buffer, &one, 0, sizeof(one), &done));
  mp_status_t status = mp_event_await(done);
  assert_int_equal(mp_status_code(status), MP_FAILED_PRECONDITION);
  mp_status_release(status);
  mp_event_release(done);
  mp_buffer_release(buffer);
  mp_client_release(client);
  // When memory is short nothing is held.
  client = make_client_without_values("nan");
  buffer = make_absent(client);
  mp_alloc_fail_at(1, 1);
  status = mp_buffer_acquire_external(buffer, &data);
  mp_alloc_fail_at(0, 0);
  assert_int_equal(mp_status_code(status), MP_RESOURCE_EXHAUSTED);
  mp_status_release(status);
  mp_buffer_release(buffer);
  mp_client_release(client);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(host_arrays_of_any_strides_become_dense),
      cmocka_unit_test(large_and_odd_arrays_come_and_go),
      cmocka_unit_test(zero_sized_and_scalar_arrays_work),
      cmocka_unit_test(nonsense_is_refused),
      cmocka_unit_test(deleting_leaves_external_views_valid),
      cmocka_unit_test(buffers_survive_their_client),
      cmocka_unit_test(copies_wait_for_their_source),
      cmocka_unit_test(a_long_chain_of_copies_needs_no_stack),
      cmocka_unit_test(errors_are_data),
      cmocka_unit_test(adopted_memory_is_counted_and_given_back_once),
      cmocka_unit_test(absent_values_are_read_as_numbers),
      cmocka_unit_test(absent_values_are_errors_by_default),
      cmocka_unit_test(a_forked_child_gets_errors_and_may_release),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
