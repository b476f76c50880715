// The books of a memory space when an allocation fails half-way.
#include "sim/base/alloc.h"
#include "sim/runtime/memory/memory.h"
#include "tests/unit/support/clients.h"

enum { CAPACITY = 64 << 10 };

static mp_status_t create(mp_device_t *device, int64_t count, mp_buffer_t **out_buffer) {
  mp_event_t *definition = NULL;
  MP_RETURN_IF_ERROR(mp_buffer_create(mp_device_memory(device, MP_MEMORY_DEVICE), MP_DTYPE_F32,
                                      &count, 1, out_buffer, &definition));
  mp_event_set(definition, NULL);
  mp_event_release(definition);
  return NULL;
}

// What is in use never exceeds the capacity, and what was not allocated is in no statistics.
static void failed_allocations_are_not_counted(void **state) {
  (void)state;
  int failures = 0;
  for (int n = 1, in_a_row = 0; in_a_row < 10; ++n) {
    mp_client_t *client = make_client_with(1, CAPACITY);
    mp_device_t *device = mp_client_device(client, 0);
    mp_buffer_t *buffer = NULL, *rest = NULL;
    mp_alloc_fail_at(n, 0);
    mp_status_t status = create(device, 16, &buffer);
    mp_alloc_fail_at(0, 0);
    const mp_memory_stats_t stats = stats_of(device, MP_MEMORY_DEVICE);
    const bool is_there = status == NULL;
    failures += !is_there;
    in_a_row = is_there ? in_a_row + 1 : 0;
    mp_status_release(status);
    assert_true(stats.bytes_in_use <= stats.bytes_limit);
    assert_true(stats.peak_bytes_in_use <= stats.bytes_limit);
    assert_true(stats.largest_free_block_bytes >= 0);
    assert_int_equal(stats.bytes_in_use, is_there ? 64 : 0);
    // The storage may have been made before something else failed.
    if (stats.num_allocs == 0) assert_int_equal(stats.peak_bytes_in_use, 0);
    assert_int_equal(stats.peak_bytes_in_use, 64 * stats.num_allocs);
    assert_int_equal(stats.largest_alloc_size, 64 * stats.num_allocs);
    // All remaining memory can be allocated.
    assert_ok(create(device, (CAPACITY - stats.bytes_in_use) / 4, &rest));
    mp_buffer_release(rest);
    mp_buffer_release(buffer);
    assert_int_equal(stats_of(device, MP_MEMORY_DEVICE).bytes_in_use, 0);
    mp_client_release(client);
  }
  assert_true(failures > 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(failed_allocations_are_not_counted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
