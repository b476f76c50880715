// Clients and buffers for tests of the runtime.
#ifndef MINIPOD_TESTS_UNIT_SUPPORT_CLIENTS_H_
#define MINIPOD_TESTS_UNIT_SUPPORT_CLIENTS_H_

#include <stdlib.h>
#include <string.h>

#include "sim/runtime/buffers/buffer.h"
#include "sim/runtime/client.h"
#include "tests/unit/support/unit.h"

// With at least two workers, so that things happen at the same time on any machine.
static inline mp_client_t *make_client_with(int64_t num_devices, int64_t device_memory) {
  mp_named_value_t values[3] = {
      {.name = MP_STR("num_devices"), .type = MP_VALUE_INT64, .int64_value = num_devices},
      {.name = MP_STR("workers"), .type = MP_VALUE_INT64, .int64_value = 3},
      {.name = MP_STR("device_memory"), .type = MP_VALUE_INT64, .int64_value = device_memory},
  };
  mp_options_t *options;
  assert_ok(mp_options_create(values, device_memory == 0 ? 2 : 3, &options));
  mp_client_t *client = NULL;
  assert_ok(mp_client_create(options, NULL, NULL, &client));
  mp_options_release(options);
  return client;
}

static inline mp_client_t *make_client(int64_t num_devices) {
  return make_client_with(num_devices, 0);
}

// For an event of something that goes well: ends the client.
static inline void release_client(mp_status_t status, void *client) {
  assert_null(status);
  mp_client_release(client);
}

static inline mp_buffer_t *make_f32(mp_device_t *device, int64_t count, float value) {
  float *data = malloc((size_t)count * sizeof(float));
  for (int64_t i = 0; i < count; ++i) data[i] = value;
  mp_host_array_t array = {.dtype = MP_DTYPE_F32, .rank = 1, .dims = &count, .data = data};
  mp_buffer_t *buffer = NULL;
  assert_ok(mp_buffer_from_host(mp_device_memory(device, MP_MEMORY_DEVICE), &array,
                                MP_HOST_ONLY_DURING_CALL, &buffer, NULL));
  free(data);
  return buffer;
}

static inline void expect_f32(mp_buffer_t *buffer, int64_t count, float value) {
  float *data = calloc((size_t)count, sizeof(float));
  mp_event_t *done;
  assert_ok(mp_buffer_to_host(buffer, data, (uint64_t)count * sizeof(float), NULL, &done));
  assert_ok(mp_event_await(done));
  mp_event_release(done);
  for (int64_t i = 0; i < count; ++i) {
    if (data[i] != value) fail_msg("element %d is %f, not %f", (int)i, data[i], value);
  }
  free(data);
}

// Begins to write `size` bytes of `data` into a buffer that is not defined yet; returns the event
// of their arrival.
static inline mp_event_t *buffer_write(mp_buffer_t *buffer, const void *data, uint64_t offset,
                                       uint64_t size) {
  mp_event_t *written = NULL;
  assert_ok(mp_event_create(&written));
  assert_ok(mp_buffer_write_raw_to(buffer, data, offset, size, written));
  return written;
}

static inline mp_memory_stats_t stats_of(mp_device_t *device, mp_memory_space_t space) {
  mp_memory_stats_t stats;
  mp_memory_get_stats(mp_device_memory(device, space), &stats);
  return stats;
}

#endif  // MINIPOD_TESTS_UNIT_SUPPORT_CLIENTS_H_
