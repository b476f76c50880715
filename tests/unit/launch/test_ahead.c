// How far launches run ahead (sim/runtime/devices/ahead.h): a stream takes a bounded number of runs
// and bytes, and no program hangs that would go on without the bound.
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "sim/runtime/devices/device_impl.h"
#include "sim/runtime/devices/launching.h"
#include "sim/runtime/runs/executable_impl.h"
#include "tests/unit/support/launches.h"
#include "tests/unit/support/processes/worlds.h"
#include "tests/unit/support/programs.h"

// ---- Programs ----

static atomic_bool g_gate_is_open;

// y = x + 1, once the gate is open.
static mp_status_t add_one_behind_gate(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  (void)kernel;
  while (!atomic_load(&g_gate_is_open)) usleep(200);
  for (int i = 0; i < 4; ++i) {
    ((float *)call->results[0])[i] = ((const float *)call->operands[0])[i] + 1;
  }
  return NULL;
}

// `count` floats come in and go out, of which four are looked at. It is run by the workers.
static mp_program_t *gated_program(int64_t count) {
  test_program_t p;
  program_begin(&p, "gated", 1, 1);
  p.program->flops = 1e9;
  mp_slot_t x = slot_param(program_param(&p, MP_DTYPE_F32, count));
  mp_slot_t y = slot_result(program_result(&p, MP_DTYPE_F32, count));
  program_launch(&p, add_one_behind_gate, 1, 1, &x, 1, &y);
  return program_end(&p);
}

// ---- A thread that launches step after step ----

typedef struct {
  mp_executable_t *executable;
  mp_device_t *device;
  int num_launches;
  mp_buffer_t *value;    // the argument of the next launch, then its result
  mp_event_t *last;      // the end of the newest launch
  atomic_int launched;   // so far
  uint32_t most_ahead;   // seen after any launch
  uint32_t most_beside;  // the same of runs beside the stream
  mp_status_t failure;   // of the launch that ended it
} dispatch_t;

// Each launch takes the result of the one before it, as a training loop does.
static void *dispatch(void *context) {
  dispatch_t *d = context;
  for (int i = 0; i < d->num_launches && d->failure == NULL; ++i) {
    test_launch_t l;
    launch_begin(&l, d->executable, 1);
    l.arguments[0][0] = d->value;
    d->failure = launch_to(&l, l.results, l.done);
    if (d->failure != NULL) break;
    const uint32_t ahead = atomic_load(&d->device->num_ahead);
    const uint32_t beside = atomic_load(&d->device->num_beside);
    if (ahead > d->most_ahead) d->most_ahead = ahead;
    if (beside > d->most_beside) d->most_beside = beside;
    mp_buffer_release(d->value);
    mp_event_release(d->last);
    d->value = l.results[0];
    d->last = l.done[0];
    atomic_fetch_add(&d->launched, 1);
  }
  return NULL;
}

static dispatch_t dispatch_on(mp_client_t *client, int num_launches) {
  mp_device_t *device = mp_client_device(client, 0);
  return (dispatch_t){.executable = make_executable(client, gated_program(4)),
                      .device = device,
                      .num_launches = num_launches,
                      .value = make_f32(device, 4, 0)};
}

// Four zeros that count as there when the event is set.
static mp_buffer_t *make_f32_later(mp_device_t *device, mp_event_t **out_definition) {
  mp_buffer_t *buffer;
  assert_ok(mp_buffer_create(mp_device_memory(device, MP_MEMORY_DEVICE), MP_DTYPE_F32,
                             &(int64_t){4}, 1, &buffer, out_definition));
  const float zeros[4] = {0};
  mp_event_t *written = buffer_write(buffer, zeros, 0, sizeof(zeros));
  mp_event_release(written);
  return buffer;
}

static void dispatch_end(dispatch_t *d) {
  mp_event_release(d->last);
  mp_buffer_release(d->value);
  mp_executable_release(d->executable);
}

static void wait_until_waiting(mp_device_t *device) {
  for (bool is_waiting = false; !is_waiting;) {
    usleep(200);
    mp_lock(&device->lock);
    is_waiting = device->num_waiters != 0;
    mp_unlock(&device->lock);
  }
}

// ---- The bound ----

static void a_stream_takes_so_many_runs(void **state) {
  (void)state;
  enum { NUM_LAUNCHES = 45000 };
  mp_client_t *client = make_client(1);
  dispatch_t d = dispatch_on(client, NUM_LAUNCHES);
  atomic_store(&g_gate_is_open, false);
  const size_t before = mallinfo2().uordblks;
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, dispatch, &d), 0);
  wait_until_waiting(d.device);
  assert_int_equal(atomic_load(&d.launched), MP_AHEAD_RUNS);
  assert_true(mallinfo2().uordblks - before < MP_AHEAD_RUNS * 4096);
  atomic_store(&g_gate_is_open, true);
  pthread_join(thread, NULL);
  assert_ok(d.failure);
  assert_int_equal(d.most_ahead, MP_AHEAD_RUNS);
  assert_ok(mp_event_await(d.last));
  expect_f32(d.value, 4, NUM_LAUNCHES);
  dispatch_end(&d);
  mp_client_release(client);
}

// Of large arrays a stream takes fewer.
static void a_stream_takes_so_many_bytes(void **state) {
  (void)state;
  mp_client_t *client = make_client_with(1, (int64_t)1 << 40);
  const int64_t count = MP_AHEAD_BYTES / 8;  // argument and result together are the bound
  dispatch_t d = dispatch_on(client, 20);
  mp_executable_release(d.executable);
  mp_buffer_release(d.value);
  d.executable = make_executable(client, gated_program(count));
  mp_event_t *definition = NULL;
  assert_ok(mp_buffer_create(mp_device_memory(d.device, MP_MEMORY_DEVICE), MP_DTYPE_F32, &count, 1,
                             &d.value, &definition));
  mp_event_set(definition, NULL);
  mp_event_release(definition);
  atomic_store(&g_gate_is_open, false);
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, dispatch, &d), 0);
  wait_until_waiting(d.device);
  assert_int_equal(atomic_load(&d.launched), MP_AHEAD_FEW);
  atomic_store(&g_gate_is_open, true);
  pthread_join(thread, NULL);
  assert_ok(d.failure);
  assert_int_equal(d.most_ahead, MP_AHEAD_FEW);
  assert_ok(mp_event_await(d.last));
  dispatch_end(&d);
  mp_client_release(client);
}

// ---- Who does not wait ----

static void an_exempt_thread_does_not_wait(void **state) {
  (void)state;
  mp_client_t *client = make_client(1);
  dispatch_t d = dispatch_on(client, 2 * MP_AHEAD_RUNS);
  atomic_store(&g_gate_is_open, false);
  mp_launching_exempt();
  mp_launching_exempt();
  mp_launching_unexempt();
  dispatch(&d);
  mp_launching_unexempt();
  assert_true(mp_launching_may_wait());
  assert_int_equal(d.most_ahead, 2 * MP_AHEAD_RUNS);
  atomic_store(&g_gate_is_open, true);
  assert_ok(mp_event_await(d.last));
  expect_f32(d.value, 4, 2 * MP_AHEAD_RUNS);
  dispatch_end(&d);
  mp_client_release(client);
}

static void dispatch_in_callback(mp_status_t status, void *context) {
  (void)status;
  dispatch(context);
}

static void a_callback_does_not_wait(void **state) {
  (void)state;
  mp_client_t *client = make_client(1);
  dispatch_t d = dispatch_on(client, 2 * MP_AHEAD_RUNS);
  mp_event_t *event = NULL;
  assert_ok(mp_event_create(&event));
  assert_ok(mp_event_on_ready(event, dispatch_in_callback, &d));
  atomic_store(&g_gate_is_open, false);
  mp_event_set(event, NULL);
  mp_event_release(event);
  assert_int_equal(d.most_ahead, 2 * MP_AHEAD_RUNS);
  atomic_store(&g_gate_is_open, true);
  assert_ok(mp_event_await(d.last));
  dispatch_end(&d);
  mp_client_release(client);
}

static mp_status_t add_one_slowly(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  usleep(300);
  return add_one_behind_gate(kernel, call);
}

// While a run of the device may be in a foreign function, other launches use side streams; the
// device accepts a bounded number of these, too.
static void launches_in_side_streams(void **state) {
  (void)state;
  enum { NUM_LAUNCHES = 1500 };
  mp_client_t *client = make_client(1);
  dispatch_t d = dispatch_on(client, NUM_LAUNCHES);
  mp_executable_release(d.executable);
  test_program_t p;
  program_begin(&p, "slow", 1, 1);
  p.program->flops = 1e9;
  mp_slot_t x = slot_param(program_param(&p, MP_DTYPE_F32, 4));
  mp_slot_t y = slot_result(program_result(&p, MP_DTYPE_F32, 4));
  program_launch(&p, add_one_slowly, 1, 1, &x, 1, &y);
  d.executable = make_executable(client, program_end(&p));
  atomic_store(&g_gate_is_open, true);
  // One that may call, and has not even begun.
  mp_event_t *input;
  test_launch_t first;
  mp_executable_t *calling = make_executable(client, gated_program(4));
  calling->may_block = true;
  launch_begin(&first, calling, 1);
  first.arguments[0][0] = make_f32_later(d.device, &input);
  launch_go(&first);
  dispatch(&d);
  assert_ok(d.failure);
  // On a machine that is very busy a run may take longer than the thread's patience.
  assert_in_range(d.most_beside, MP_AHEAD_RUNS, NUM_LAUNCHES / 3);
  assert_int_equal(d.most_ahead, 1);
  assert_ok(mp_event_await(d.last));
  expect_f32(d.value, 4, NUM_LAUNCHES);
  mp_event_set(input, NULL);
  mp_event_release(input);
  launch_expect(&first, 1);
  launch_end(&first);
  mp_executable_release(calling);
  assert_int_equal(atomic_load(&d.device->num_beside), 0);
  dispatch_end(&d);
  mp_client_release(client);
}

// ---- What must not hang ----

// One thread launches the shares of one device before the first one of another.
static void share_by_share(void **state) {
  (void)state;
  enum { NUM_LAUNCHES = 100, NUM_DEVICES = 3 };
  mp_client_t *client = make_client(NUM_DEVICES);
  mp_executable_t *executable = make_executable(client, psum_program(NUM_DEVICES, 4));
  static test_launch_t launches[NUM_LAUNCHES][NUM_DEVICES];
  for (uint32_t device = 0; device < NUM_DEVICES; ++device) {
    for (int i = 0; i < NUM_LAUNCHES; ++i) {
      test_launch_t *l = &launches[i][device];
      launch_begin(l, executable, 1);
      l->num_devices = 1;
      l->logical[0] = device;
      l->arguments[0][0] = make_f32(mp_client_device(client, device), 4, (float)(i + 1));
      launch_go(l);
    }
  }
  for (int i = 0; i < NUM_LAUNCHES; ++i) {
    for (uint32_t device = 0; device < NUM_DEVICES; ++device) {
      launch_expect(&launches[i][device], (float)(NUM_DEVICES * (i + 1)));
      launch_end(&launches[i][device]);
    }
  }
  mp_executable_release(executable);
  mp_client_release(client);
}

// The stream of device 2 is full of runs that wait for device 1, whose first run misses a launch on
// device 0: it is the launching thread that has to make it.
static void a_stream_held_up_by_another_one(void **state) {
  (void)state;
  mp_client_t *client = make_client(3);
  const uint32_t first[] = {0, 1}, second[] = {1, 2};
  mp_executable_t *a = NULL, *b = NULL;
  assert_ok(mp_executable_create(client, psum_program(2, 4), first, &a));
  assert_ok(mp_executable_create(client, psum_program(2, 4), second, &b));
  enum { NUM_LAUNCHES = 2 * MP_AHEAD_RUNS };
  static test_launch_t held, launches[NUM_LAUNCHES], missing;
  launch_begin(&held, a, 1);
  held.num_devices = 1;
  held.logical[0] = 1;
  held.arguments[0][0] = make_f32(mp_client_device(client, 1), 4, 1);
  launch_go(&held);
  for (int i = 0; i < NUM_LAUNCHES; ++i) launch_filled(&launches[i], b, 1, (float)i);
  launch_begin(&missing, a, 1);
  missing.num_devices = 1;
  missing.logical[0] = 0;
  missing.arguments[0][0] = make_f32(mp_client_device(client, 0), 4, 2);
  launch_go(&missing);
  launch_expect(&held, 3);
  launch_expect(&missing, 3);
  launch_end(&held);
  launch_end(&missing);
  for (int i = 0; i < NUM_LAUNCHES; ++i) {
    launch_expect(&launches[i], (float)(2 * i));
    launch_end(&launches[i]);
  }
  mp_executable_release(a);
  mp_executable_release(b);
  mp_client_release(client);
}

// The thread that launches owes the input that the first run waits for.
static void an_input_that_comes_later(void **state) {
  (void)state;
  enum { NUM_LAUNCHES = MP_AHEAD_RUNS + 3 };
  mp_client_t *client = make_client(1);
  dispatch_t d = dispatch_on(client, NUM_LAUNCHES);
  mp_buffer_release(d.value);
  mp_event_t *definition;
  d.value = make_f32_later(d.device, &definition);
  atomic_store(&g_gate_is_open, true);
  dispatch(&d);
  assert_ok(d.failure);
  mp_event_set(definition, NULL);
  mp_event_release(definition);
  assert_ok(mp_event_await(d.last));
  expect_f32(d.value, 4, NUM_LAUNCHES);
  dispatch_end(&d);
  mp_client_release(client);
}

// Both processes are driven by one thread, as two processes of which one waits for the other by
// means that this one cannot see.
static void another_process_that_comes_later(void **state) {
  (void)state;
  enum { NUM_LAUNCHES = MP_AHEAD_RUNS + 3 };
  const pod_option_t options[] = {{"num_devices", "1"}, {"workers", "2"}, {NULL, NULL}};
  pods_t pods;
  start_pods(&pods, 2, 2, options);
  static test_launch_t launches[2][NUM_LAUNCHES];
  mp_executable_t *executables[2];
  for (uint32_t rank = 0; rank < 2; ++rank) {
    executables[rank] = make_executable(pods.clients[rank], psum_program(2, 4));
    for (int i = 0; i < NUM_LAUNCHES; ++i) {
      test_launch_t *l = &launches[rank][i];
      launch_begin(l, executables[rank], 1);
      l->num_devices = 1;
      l->logical[0] = rank;
      l->arguments[0][0] = make_f32(mp_client_device(pods.clients[rank], rank), 4, 1);
      launch_go(l);
    }
  }
  for (uint32_t rank = 0; rank < 2; ++rank) {
    for (int i = 0; i < NUM_LAUNCHES; ++i) {
      launch_expect(&launches[rank][i], 2);
      launch_end(&launches[rank][i]);
    }
    mp_executable_release(executables[rank]);
  }
  stop_pods(&pods);
}

typedef struct {
  mp_executable_t *executable;
  atomic_bool *may_begin;
  float sum;
} racer_t;

static void *race(void *context) {
  racer_t *racer = context;
  while (!atomic_load(racer->may_begin)) usleep(100);
  for (int i = 0; i < 500; ++i) {
    test_launch_t l;
    launch_filled(&l, racer->executable, 1, 1);
    launch_end_no_wait(&l);
  }
  test_launch_t last;
  launch_filled(&last, racer->executable, 1, (float)3);
  launch_expect(&last, racer->sum * 3);
  launch_end(&last);
  return NULL;
}

// Threads launch on devices that overlap, in all orders.
static void threads_in_opposite_order(void **state) {
  (void)state;
  enum { NUM_THREADS = 4 };
  static const uint32_t ids[NUM_THREADS][3] = {{0, 1, 2}, {2, 1, 0}, {1, 2, 3}, {3, 0, 2}};
  mp_client_t *client = make_client(4);
  atomic_bool may_begin = false;
  racer_t racers[NUM_THREADS];
  pthread_t threads[NUM_THREADS];
  for (int i = 0; i < NUM_THREADS; ++i) {
    racers[i] = (racer_t){.may_begin = &may_begin, .sum = i == 1 ? 2 : 3};
    assert_ok(mp_executable_create(client, psum_program(i == 1 ? 2 : 3, 4), ids[i],
                                   &racers[i].executable));
    assert_int_equal(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
  }
  atomic_store(&may_begin, true);
  for (int i = 0; i < NUM_THREADS; ++i) {
    pthread_join(threads[i], NULL);
    mp_executable_release(racers[i].executable);
  }
  mp_client_release(client);
}

static void *end_client(void *client) {
  mp_client_release(client);
  return NULL;
}

// A thread that waits comes out of the launch when the client is closed.
static void a_client_that_ends(void **state) {
  (void)state;
  mp_client_t *client = make_client(1);
  dispatch_t d = dispatch_on(client, 2 * MP_AHEAD_RUNS);
  atomic_store(&g_gate_is_open, false);
  pthread_t thread, ending;
  assert_int_equal(pthread_create(&thread, NULL, dispatch, &d), 0);
  wait_until_waiting(d.device);
  assert_int_equal(pthread_create(&ending, NULL, end_client, client), 0);
  pthread_join(thread, NULL);
  assert_status(d.failure, MP_FAILED_PRECONDITION, "its client was closed");
  assert_int_equal(atomic_load(&d.launched), MP_AHEAD_RUNS);
  atomic_store(&g_gate_is_open, true);
  pthread_join(ending, NULL);
  dispatch_end(&d);
}

int main(void) {
  mallopt(M_ARENA_MAX, 1);  // the only one that mallinfo2 sees
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_stream_takes_so_many_runs),
      cmocka_unit_test(a_stream_takes_so_many_bytes),
      cmocka_unit_test(launches_in_side_streams),
      cmocka_unit_test(an_exempt_thread_does_not_wait),
      cmocka_unit_test(a_callback_does_not_wait),
      cmocka_unit_test(share_by_share),
      cmocka_unit_test(a_stream_held_up_by_another_one),
      cmocka_unit_test(an_input_that_comes_later),
      cmocka_unit_test(another_process_that_comes_later),
      cmocka_unit_test(threads_in_opposite_order),
      cmocka_unit_test(a_client_that_ends),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
