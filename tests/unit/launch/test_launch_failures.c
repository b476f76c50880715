// Launches that fail half-way: their arguments are given back unchanged, they count all the same,
// and launches that wait for them fail.
#include <pthread.h>
#include <sched.h>

#include "sim/base/alloc.h"
#include "sim/runtime/buffers/buffer_impl.h"
#include "sim/runtime/devices/client_impl.h"
#include "sim/runtime/launch/launch.h"
#include "sim/runtime/order/launch_order.h"
#include "tests/unit/support/launches.h"
#include "tests/unit/support/processes/worlds.h"
#include "tests/unit/support/programs.h"

// How long a test waits for what must come. Only a failing test waits for so long.
static const double k_long_seconds = 60;

static mp_status_t add_one(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  (void)kernel;
  const float *x = call->operands[0];
  float *y = call->results[0];
  for (int i = 0; i < 4; ++i) y[i] = x[i] + 1;
  return NULL;
}

// y[i] = x[i] + 1. With `donates`, y takes x's memory over.
static mp_program_t *adding_program(uint32_t num_values, bool donates) {
  test_program_t p;
  program_begin(&p, "adding", 1, 1);
  for (uint32_t i = 0; i < num_values; ++i) {
    mp_slot_t x = slot_param(program_param(&p, MP_DTYPE_F32, 4));
    mp_slot_t y = slot_result(program_result(&p, MP_DTYPE_F32, 4));
    p.params[i].alias = donates ? (int32_t)i : -1;
    p.results[i].alias = donates ? (int32_t)i : -1;
    program_launch(&p, add_one, 1, 1, &x, 1, &y);
  }
  return program_end(&p);
}

// ---- One device, several values ----

enum { NUM_VALUES = 3 };

typedef struct {
  mp_executable_t *executable;
  mp_buffer_t *x[NUM_VALUES], *y[NUM_VALUES];
} values_t;

static mp_status_t launch_values(values_t *v) {
  mp_buffer_t *const *arguments[1] = {v->x};
  mp_buffer_t **results[1] = {v->y};
  const mp_launch_t launch = {.arguments = arguments};
  return mp_executable_launch(v->executable, &launch, results, NULL);
}

// False: the run had no memory either.
static bool has_run(mp_buffer_t *result) {
  mp_status_t status = mp_event_await(mp_buffer_definition(result));
  if (status == NULL) return true;
  assert_int_equal(mp_status_code(status), MP_RESOURCE_EXHAUSTED);
  mp_status_release(status);
  return false;
}

static void release_values(mp_buffer_t **values) {
  for (int i = 0; i < NUM_VALUES; ++i) {
    mp_buffer_release(values[i]);
    values[i] = NULL;
  }
}

// Whatever allocation fails: a launch that does not happen leaves its donated arguments usable, and
// one that does gives right results, or none.
static void donated_arguments_survive_a_failed_launch(void **state) {
  (void)state;
  mp_client_t *client = make_client(1);
  mp_device_t *device = mp_client_device(client, 0);
  values_t v = {.executable = make_executable(client, adding_program(NUM_VALUES, true))};
  int failures = 0;
  for (int n = 1, in_a_row = 0; in_a_row < 10; ++n) {
    for (int i = 0; i < NUM_VALUES; ++i) v.x[i] = make_f32(device, 4, (float)i);
    mp_alloc_fail_at(n, 0);
    mp_status_t status = launch_values(&v);
    mp_alloc_fail_at(0, 0);
    const bool is_launched = status == NULL;
    failures += !is_launched;
    in_a_row = is_launched ? in_a_row + 1 : 0;
    mp_status_release(status);
    for (int i = 0; i < NUM_VALUES; ++i) {
      assert_int_equal(mp_buffer_is_deleted(v.x[i]), is_launched);
      if (!is_launched) {
        expect_f32(v.x[i], 4, (float)i);
      } else if (has_run(v.y[i])) {
        expect_f32(v.y[i], 4, (float)i + 1);
      }
    }
    release_values(v.x);
    if (is_launched) release_values(v.y);
    assert_int_equal(stats_of(device, MP_MEMORY_DEVICE).bytes_in_use, 0);
  }
  assert_true(failures > NUM_VALUES);
  mp_executable_release(v.executable);
  mp_client_release(client);
}

// A buffer whose definition the test owes.
static mp_buffer_t *make_pending(mp_device_t *device, mp_event_t **out_definition) {
  mp_buffer_t *buffer = NULL;
  assert_ok(mp_buffer_create(mp_device_memory(device, MP_MEMORY_DEVICE), MP_DTYPE_F32,
                             &(int64_t){4}, 1, &buffer, out_definition));
  return buffer;
}

static void write_and_define(mp_buffer_t *buffer, mp_event_t *definition, float value) {
  const float data[4] = {value, value, value, value};
  mp_event_t *written = buffer_write(buffer, data, 0, sizeof(data));
  assert_ok(mp_event_await(written));
  mp_event_release(written);
  mp_event_set(definition, NULL);
  mp_event_release(definition);
}

// Launches get memory that runs in the queue before them still use. When such a launch fails it
// gives this memory back to later runs only: a transfer, which writes at once, must not get it.
static void memory_of_queued_runs_stays_theirs_after_a_failed_launch(void **state) {
  (void)state;
  for (int n = 1; n < 20; ++n) {
    mp_client_t *client = make_client(1);
    mp_device_t *device = mp_client_device(client, 0);
    mp_executable_t *executable = make_executable(client, adding_program(1, false));
    mp_event_t *definition = NULL;
    test_launch_t l;
    launch_begin(&l, executable, 1);
    l.arguments[0][0] = make_pending(device, &definition);
    launch_go(&l);
    // The result's memory lies between blocks in use, so that it stays a block of its own. From
    // its release on it is free once the run is over.
    mp_buffer_t *neighbour = make_f32(device, 4, 0);
    mp_buffer_release(l.results[0]);
    l.results[0] = NULL;
    mp_buffer_t *result = NULL;
    mp_alloc_fail_at(n, 0);
    mp_status_t status = launch_try(&l, &result);
    mp_alloc_fail_at(0, 0);
    const bool is_launched = status == NULL;
    mp_status_release(status);
    if (is_launched) mp_buffer_release(result);
    mp_buffer_t *others[4];
    for (int i = 0; i < 4; ++i) others[i] = make_f32(device, 4, 7);
    write_and_define(l.arguments[0][0], definition, 1);
    assert_ok(mp_event_await(l.done[0]));
    for (int i = 0; i < 4; ++i) {
      expect_f32(others[i], 4, 7);
      mp_buffer_release(others[i]);
    }
    mp_buffer_release(neighbour);
    launch_end(&l);
    mp_executable_release(executable);
    mp_client_release(client);
  }
}

// ---- Deleting while a launch fails ----

// A launch in a thread of its own, which finds no memory for its temporaries. It has to wait for
// the memory's lock, so that the test can do something when the arguments are taken.
typedef struct {
  values_t values;
  mp_client_t *client;
  mp_memory_t *memory;
  uint64_t capacity;  // of the memory
  pthread_t thread;
  bool was_view_released, was_locked;
} halted_t;

static void *launch_what_fails(void *context) {
  halted_t *h = context;
  mp_status_t status = launch_values(&h->values);
  const bool is_right = mp_status_code(status) == MP_RESOURCE_EXHAUSTED;
  mp_status_release(status);
  return is_right ? h : NULL;
}

static void begin_halted(halted_t *h) {
  pthread_mutex_lock(&h->memory->lock.mutex);
  h->memory->pool->capacity = 0;
  assert_int_equal(pthread_create(&h->thread, NULL, launch_what_fails, h), 0);
}

static void end_halted(halted_t *h) {
  pthread_mutex_unlock(&h->memory->lock.mutex);
  void *result = NULL;
  pthread_join(h->thread, &result);
  h->memory->pool->capacity = h->capacity;
  assert_non_null(result);
}

static void begin_values(halted_t *h, mp_client_t *client, bool donates) {
  mp_device_t *device = mp_client_device(client, 0);
  *h = (halted_t){.client = client, .memory = mp_device_memory(device, MP_MEMORY_DEVICE)};
  h->capacity = h->memory->pool->capacity;
  mp_program_t *program = adding_program(NUM_VALUES, donates);
  program->arena_bytes = 64;
  h->values.executable = make_executable(client, program);
  for (int i = 0; i < NUM_VALUES; ++i) h->values.x[i] = make_f32(device, 4, 1);
}

static void end_values(halted_t *h) {
  release_values(h->values.x);
  mp_executable_release(h->values.executable);
  assert_int_equal(stats_of(mp_client_device(h->client, 0), MP_MEMORY_DEVICE).bytes_in_use, 0);
}

// What a failed launch had taken comes back, but not to a user who has deleted it meanwhile.
static void a_deletion_during_a_failed_launch_holds(void **state) {
  (void)state;
  mp_client_t *client = make_client(1);
  halted_t h;
  begin_values(&h, client, true);
  begin_halted(&h);
  while (!mp_buffer_is_deleted(h.values.x[0])) sched_yield();
  mp_buffer_delete(h.values.x[0]);
  end_halted(&h);
  assert_true(mp_buffer_is_deleted(h.values.x[0]));
  assert_false(mp_buffer_is_deleted(h.values.x[1]));
  end_values(&h);
  mp_client_release(client);
}

static void on_view_released(void *context) {
  halted_t *h = context;
  h->was_view_released = true;
  h->was_locked = pthread_mutex_trylock(&h->client->launches->lock.mutex) != 0;
  if (!h->was_locked) pthread_mutex_unlock(&h->client->launches->lock.mutex);
}

// The failed launch has the last hold on memory that a user lent. The user's callback may do
// anything, launch included, so no lock is held then. A donated argument is the launch's while it
// is prepared, and is not given back to a user who has deleted it meanwhile.
static void give_lent_memory_back(bool donates) {
  static _Alignas(64) float data[4];
  mp_client_t *client = make_client(1);
  halted_t h;
  begin_values(&h, client, donates);
  mp_buffer_release(h.values.x[0]);
  assert_ok(mp_buffer_view_external(mp_device_memory(mp_client_device(client, 0), MP_MEMORY_DEVICE),
                                    MP_DTYPE_F32, &(int64_t){4}, 1, data, on_view_released, &h,
                                    &h.values.x[0]));
  begin_halted(&h);
  while (donates ? !mp_buffer_is_deleted(h.values.x[0])
                 : mp_storage_is_sole(h.values.x[0]->storage)) {
    sched_yield();
  }
  mp_buffer_delete(h.values.x[0]);
  assert_false(h.was_view_released);
  end_halted(&h);
  assert_true(h.was_view_released);
  assert_false(h.was_locked);
  end_values(&h);
  mp_client_release(client);
}

static void lent_memory_is_given_back_without_locks(void **state) {
  (void)state;
  give_lent_memory_back(false);
  give_lent_memory_back(true);
}

// A run that finds no scratch memory for a kernel fails; the next one finds it.
static void a_run_without_scratch_memory_fails(void **state) {
  (void)state;
  int failed_runs = 0;
  for (int n = 1; n < 20; ++n) {
    mp_client_t *client = make_client(1);
    mp_executable_t *executable = make_executable(client, adding_program(1, false));
    test_launch_t l;
    launch_begin(&l, executable, 1);
    l.arguments[0][0] = make_f32(mp_client_device(client, 0), 4, 1);
    mp_alloc_fail_at(n, 0);
    mp_status_t status = launch_to(&l, l.results, l.done);
    if (status == NULL) {
      status = mp_event_await(l.done[0]);
      failed_runs += status != NULL;
    }
    mp_alloc_fail_at(0, 0);
    if (status != NULL) assert_int_equal(mp_status_code(status), MP_RESOURCE_EXHAUSTED);
    mp_status_release(status);
    launch_end(&l);
    launch_and_expect(executable, 1, 2);
    mp_executable_release(executable);
    mp_client_release(client);
  }
  assert_true(failed_runs > 0);
}

// ---- Launches of single devices ----

// A launch on the device with this logical number alone.
static void begin_single(test_launch_t *l, mp_executable_t *executable, uint32_t logical,
                         int64_t count) {
  launch_begin(l, executable, 1);
  l->num_devices = 1;
  l->logical[0] = logical;
  l->arguments[0][0] = make_f32(mp_executable_device(executable, logical), count, 1);
}

static void expect_soon(test_launch_t *l, mp_status_code_t code, const char *text) {
  assert_true(mp_event_wait_for(l->done[0], k_long_seconds));
  launch_expect_error(l, 0, code, text);
}

// All devices once, each by itself.
static void expect_sum_of_singles(mp_executable_t *executable, uint32_t num_devices) {
  test_launch_t l[3];
  for (uint32_t d = 0; d < num_devices; ++d) {
    begin_single(&l[d], executable, d, 4);
    launch_go(&l[d]);
  }
  for (uint32_t d = 0; d < num_devices; ++d) {
    assert_true(mp_event_wait_for(l[d].done[0], k_long_seconds));
    launch_expect(&l[d], (float)num_devices);
    launch_end(&l[d]);
  }
}

// The launch on device 1 is refused: it counts, and those of the others fail with its error,
// whether they come before or after it.
static void a_refused_launch_of_one_device_fails_on_the_others(void **state) {
  (void)state;
  mp_client_t *client = make_client(3);
  mp_executable_t *executable = make_executable(client, psum_program(3, 4));
  for (int round = 0; round < 3; ++round) {
    test_launch_t before, refused, after;
    begin_single(&before, executable, 0, 4);
    launch_go(&before);
    begin_single(&refused, executable, 1, 5);
    mp_buffer_t *result = NULL;
    assert_status(launch_try(&refused, &result), MP_INVALID_ARGUMENT, "expected tensor<4xf32>");
    expect_soon(&before, MP_INVALID_ARGUMENT, "expected tensor<4xf32>");
    begin_single(&after, executable, 2, 4);
    launch_go(&after);
    expect_soon(&after, MP_INVALID_ARGUMENT, "expected tensor<4xf32>");
    launch_end(&before);
    launch_end(&refused);
    launch_end(&after);
    expect_sum_of_singles(executable, 3);
  }
  mp_executable_release(executable);
  mp_client_release(client);
}

// A launch on all devices that is refused counts on all.
static void a_refused_launch_of_all_devices_fails_on_those_before_it(void **state) {
  (void)state;
  mp_client_t *client = make_client(2);
  mp_executable_t *executable = make_executable(client, psum_program(2, 4));
  test_launch_t single, all;
  begin_single(&single, executable, 0, 4);  // belongs to what device 1 comes to first
  launch_go(&single);
  launch_begin(&all, executable, 1);
  for (uint32_t d = 0; d < 2; ++d) {
    all.arguments[d][0] = make_f32(mp_executable_device(executable, d), 4 + d, 1);
  }
  mp_buffer_t *results[2];
  assert_status(launch_try(&all, results), MP_INVALID_ARGUMENT, "expected tensor<4xf32>");
  expect_soon(&single, MP_INVALID_ARGUMENT, "expected tensor<4xf32>");
  launch_end(&single);
  launch_end(&all);
  // Device 1 has one launch to make good, which belongs to the refused one of device 0.
  begin_single(&single, executable, 1, 4);
  launch_go(&single);
  expect_soon(&single, MP_INVALID_ARGUMENT, "expected tensor<4xf32>");
  launch_end(&single);
  expect_sum_of_singles(executable, 2);
  mp_executable_release(executable);
  mp_client_release(client);
}

// There is no memory for the launch on device 1, not even to note that it failed: the others must
// hear of it when they come.
static void a_launch_without_memory_fails_on_those_after_it(void **state) {
  (void)state;
  mp_client_t *client = make_client(3);
  mp_executable_t *executable = make_executable(client, psum_program(3, 4));
  int refusals = 0;
  for (int n = 1; n < 30; ++n) {
    test_launch_t l[3];
    for (uint32_t d = 0; d < 3; ++d) begin_single(&l[d], executable, d, 4);
    mp_buffer_t *result = NULL;
    mp_alloc_fail_at(n, 1);
    mp_status_t status = launch_try(&l[1], &result);
    mp_alloc_fail_at(0, 0);
    const bool is_refused = status != NULL;
    refusals += is_refused;
    mp_status_release(status);
    for (uint32_t d = 0; d < 3; d += 2) launch_go(&l[d]);
    for (uint32_t d = 0; d < 3; d += 2) {
      assert_true(mp_event_wait_for(l[d].done[0], k_long_seconds));
      status = mp_event_status(l[d].done[0]);
      if (is_refused) assert_int_equal(mp_status_code(status), MP_RESOURCE_EXHAUSTED);
      mp_status_release(status);
    }
    if (!is_refused) mp_buffer_release(result);
    for (uint32_t d = 0; d < 3; ++d) launch_end(&l[d]);
    expect_sum_of_singles(executable, 3);
  }
  assert_true(refusals > 2);
  mp_executable_release(executable);
  mp_client_release(client);
}

// The same if other processes take part: these are notified at once, the other devices of the
// process when they launch.
static void a_launch_without_memory_fails_on_its_neighbours(void **state) {
  (void)state;
  static const pod_option_t two_devices[] = {{"num_devices", "2"}, {"workers", "2"}, {NULL, NULL}};
  int refusals = 0;
  for (int n = 1; n < 30; ++n) {
    pods_t pods;
    start_pods(&pods, 2, 2, two_devices);
    mp_executable_t *executables[2];
    test_launch_t l[4];
    for (uint32_t rank = 0; rank < 2; ++rank) {
      executables[rank] = make_executable(pods.clients[rank], psum_program(4, 4));
    }
    for (uint32_t d = 0; d < 4; ++d) begin_single(&l[d], executables[d / 2], d, 4);
    mp_buffer_t *result = NULL;
    mp_alloc_fail_at(n, 1);
    mp_status_t status = launch_try(&l[2], &result);
    mp_alloc_fail_at(0, 0);
    const bool is_refused = status != NULL;
    refusals += is_refused;
    mp_status_release(status);
    for (uint32_t d = 0; d < 4; ++d) {
      if (d != 2) launch_go(&l[d]);
    }
    for (uint32_t d = 0; d < 4; ++d) {
      if (d == 2) continue;
      assert_true(mp_event_wait_for(l[d].done[0], k_long_seconds));
      status = mp_event_status(l[d].done[0]);
      if (is_refused) assert_int_equal(mp_status_code(status), MP_RESOURCE_EXHAUSTED);
      mp_status_release(status);
    }
    if (!is_refused) mp_buffer_release(result);
    for (uint32_t d = 0; d < 4; ++d) launch_end(&l[d]);
    for (uint32_t rank = 0; rank < 2; ++rank) mp_executable_release(executables[rank]);
    stop_pods(&pods);
  }
  assert_true(refusals > 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(donated_arguments_survive_a_failed_launch),
      cmocka_unit_test(memory_of_queued_runs_stays_theirs_after_a_failed_launch),
      cmocka_unit_test(a_deletion_during_a_failed_launch_holds),
      cmocka_unit_test(lent_memory_is_given_back_without_locks),
      cmocka_unit_test(a_run_without_scratch_memory_fails),
      cmocka_unit_test(a_refused_launch_of_one_device_fails_on_the_others),
      cmocka_unit_test(a_refused_launch_of_all_devices_fails_on_those_before_it),
      cmocka_unit_test(a_launch_without_memory_fails_on_those_after_it),
      cmocka_unit_test(a_launch_without_memory_fails_on_its_neighbours),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
