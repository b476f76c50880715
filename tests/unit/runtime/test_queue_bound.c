// How many launches a device takes ahead. Today it takes any number: dispatch never waits, and each
// launch holds memory until it is over. That is a known defect. When a stream has a limit, the
// expectation below turns round: the thread that launches waits after a few dozen launches and goes
// on when the device does.
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>

#include "sim/runtime/devices/client_impl.h"
#include "tests/unit/support/launches.h"
#include "tests/unit/support/programs.h"

enum { NUM_LAUNCHES = 3000 };

typedef struct {
  mp_executable_t *executable;
  mp_buffer_t *value;   // the argument of the next launch, then its result
  mp_event_t *last;     // the end of the newest launch
  atomic_int launched;  // so far
} dispatch_t;

// y = x + 1
static mp_status_t add_one(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  (void)kernel;
  for (int i = 0; i < 4; ++i) {
    ((float *)call->results[0])[i] = ((const float *)call->operands[0])[i] + 1;
  }
  return NULL;
}

static mp_program_t *step_program(void) {
  test_program_t p;
  program_begin(&p, "step", 1, 1);
  mp_slot_t x = slot_param(program_param(&p, MP_DTYPE_F32, 4));
  mp_slot_t y = slot_result(program_result(&p, MP_DTYPE_F32, 4));
  program_launch(&p, add_one, 1, 1, &x, 1, &y);
  return program_end(&p);
}

// Each launch takes the result of the one before it, as a training loop does.
static void *dispatch(void *context) {
  dispatch_t *d = context;
  for (int i = 0; i < NUM_LAUNCHES; ++i) {
    test_launch_t l;
    launch_begin(&l, d->executable, 1);
    l.arguments[0][0] = d->value;
    launch_go(&l);
    mp_buffer_release(d->value);
    mp_event_release(d->last);
    d->value = l.results[0];
    d->last = l.done[0];
    atomic_fetch_add(&d->launched, 1);
  }
  return NULL;
}

static void a_device_takes_any_number_of_launches_ahead(void **state) {
  (void)state;
  mp_client_t *client = make_client(1);
  mp_device_t *device = mp_client_device(client, 0);
  dispatch_t d = {.executable = make_executable(client, step_program())};
  mp_event_t *definition = NULL;
  assert_ok(mp_buffer_create(mp_device_memory(device, MP_MEMORY_DEVICE), MP_DTYPE_F32,
                             &(int64_t){4}, 1, &d.value, &definition));
  const float zeros[4] = {0};
  mp_event_t *written = NULL;
  assert_ok(mp_buffer_write_raw(d.value, zeros, 0, sizeof(zeros), &written));
  mp_event_release(written);
  // The first launch waits for its input, so none is over.
  const size_t before = mallinfo2().uordblks;
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, dispatch, &d), 0);
  // With a limit this would wait for ever: then wait until the thread has come to the limit, set
  // the input, and join it afterwards.
  pthread_join(thread, NULL);
  const int ahead = atomic_load(&d.launched) - (int)mp_device_completed(device);
  print_message("%d launches of %d are ahead of the device; each holds %zu bytes of host memory\n",
                ahead, NUM_LAUNCHES, (mallinfo2().uordblks - before) / NUM_LAUNCHES);
  assert_int_equal(ahead, NUM_LAUNCHES);  // to come: assert_true(ahead <= 32 and a few)
  mp_event_set(definition, NULL);
  mp_event_release(definition);
  assert_ok(mp_event_await(d.last));
  expect_f32(d.value, 4, NUM_LAUNCHES);
  mp_event_release(d.last);
  mp_buffer_release(d.value);
  mp_executable_release(d.executable);
  mp_client_release(client);
}

int main(void) {
  mallopt(M_ARENA_MAX, 1);  // the only one that mallinfo2 sees
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_device_takes_any_number_of_launches_ahead),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
