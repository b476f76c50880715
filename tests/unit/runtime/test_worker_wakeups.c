// Wake-ups: whenever a worker makes devices runnable and goes on with something else, another one
// that sleeps takes them. Nothing is timed: kernels and callbacks wait for each other, which they
// can do only when they run at once, on different workers. Each test first lets all other workers
// fall asleep; one that is awake would look for work anyway.
#include <stdatomic.h>
#include <unistd.h>

#include "sim/base/os/clock.h"
#include "sim/runtime/devices/device_impl.h"
#include "sim/runtime/workers/workers.h"
#include "tests/unit/support/launches.h"
#include "tests/unit/support/programs.h"

// How long something waits for what must come. Only a failing test waits for so long.
static const double k_long_seconds = 60;

// ---- What kernels and callbacks do ----

static mp_client_t *g_client;
static atomic_int g_inside, g_wanted;  // calls of `meet_others` so far, and how many are to be
static atomic_int g_missed;            // waits that ended without what they waited for
static atomic_int g_callbacks;         // that are to come to their end

static bool wait_until(bool (*is_so)(void)) {
  const double deadline = mp_clock_seconds() + k_long_seconds;
  while (!is_so()) {
    if (mp_clock_seconds() > deadline) {
      atomic_fetch_add(&g_missed, 1);
      return false;
    }
    usleep(100);
  }
  return true;
}

static bool others_are_asleep(void) {
  uint32_t count = 0;
  for (uint32_t q = 0; q < g_client->workers->num_queues; ++q) {
    count += atomic_load(&g_client->workers->queues[q].sleepers);
  }
  return count == g_client->workers->num_workers - 1;
}

static bool others_are_inside(void) {
  return atomic_load(&g_inside) >= atomic_load(&g_wanted);
}

// They say so a moment before they do.
static void let_others_sleep(void) {
  (void)wait_until(others_are_asleep);
  usleep(50000);
}

static mp_status_t let_others_sleep_if_one(const mp_kernel_t *kernel,
                                           const mp_kernel_call_t *call) {
  (void)kernel;
  if (*(const float *)call->operands[0] == 1) let_others_sleep();
  return NULL;
}

static mp_status_t meet_others(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  (void)kernel, (void)call;
  atomic_fetch_add(&g_inside, 1);
  (void)wait_until(others_are_inside);
  return NULL;
}

static mp_status_t enter(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  (void)kernel, (void)call;
  atomic_fetch_add(&g_inside, 1);
  return NULL;
}

static void begin(int wanted) {
  atomic_store(&g_inside, 0);
  atomic_store(&g_wanted, wanted);
  atomic_store(&g_missed, 0);
  atomic_store(&g_callbacks, 0);
}

// ---- Programs ----

// Workers run programs with a long estimated time, not the launching thread.
static void program_begin_for_workers(test_program_t *p, const char *name, uint32_t devices) {
  program_begin(p, name, 1, devices);
  p->program->flops = 1e9;
}

static mp_program_t *watched_psum_program(uint32_t devices) {
  test_program_t p;
  program_begin_for_workers(&p, "psum", devices);
  mp_slot_t x = slot_param(program_param(&p, MP_DTYPE_F32, 4));
  mp_slot_t y = slot_result(program_result(&p, MP_DTYPE_F32, 4));
  program_launch(&p, let_others_sleep_if_one, 1, 1, &x, 0, NULL);
  program_collective(&p, MP_COLLECTIVE_ALL_REDUCE, "stablehlo.all_reduce", 4, x, y);
  program_launch(&p, meet_others, 1, 0, NULL, 0, NULL);
  return program_end(&p);
}

// Device 0 sends to device 1.
static mp_program_t *send_program(void) {
  test_program_t p;
  program_begin_for_workers(&p, "send", 2);
  mp_slot_t x = slot_param(program_param(&p, MP_DTYPE_F32, 4));
  mp_slot_t y = slot_result(program_result(&p, MP_DTYPE_F32, 4));
  static const uint32_t pairs[] = {0, 1};
  for (int i = 0; i < 2; ++i) {
    mp_collective_t *c = program_collective(&p, MP_COLLECTIVE_SEND_RECV, "stablehlo.send", 4, x, y);
    c->num_pairs = 1;
    c->pairs = pairs;
    mp_cmd_t *cmd = &p.commands[p.program->num_commands - 1];
    cmd->kind = i == 0 ? MP_CMD_RECV : MP_CMD_SEND;
    *(i == 0 ? &cmd->num_operands : &cmd->num_results) = 0;
    if (i == 0) program_launch(&p, let_others_sleep_if_one, 1, 1, &x, 0, NULL);
  }
  program_launch(&p, meet_others, 1, 0, NULL, 0, NULL);
  return program_end(&p);
}

// Whose result of `count` elements has no contents.
static mp_program_t *kernel_program(mp_kernel_run_t run, int64_t count) {
  test_program_t p;
  program_begin_for_workers(&p, "kernel", 1);
  mp_slot_t x = slot_param(program_param(&p, MP_DTYPE_F32, 4));
  (void)program_result(&p, MP_DTYPE_F32, count);
  program_launch(&p, run, 1, 1, &x, 0, NULL);
  return program_end(&p);
}

// ---- A client, and devices of it that are run by the same workers ----

enum {
  MAX_DEVICES = 3,
  COPY_COUNT = 1 << 17,  // elements of 512 KiB, which one thread copies
};
static uint32_t g_ids[MAX_DEVICES];

static int setup(void **state) {
  (void)state;
  g_client = make_client(3 * MAX_DEVICES);
  for (uint32_t q = 0; q < g_client->workers->num_queues; ++q) {
    const mp_core_queue_t *queue = &g_client->workers->queues[q];
    if (queue->num_workers < 2) continue;
    uint32_t count = 0;
    for (uint32_t d = 0; d < g_client->num_devices && count < MAX_DEVICES; ++d) {
      if (g_client->devices[d].queue == queue) g_ids[count++] = d;
    }
    if (count == MAX_DEVICES) return 0;
  }
  g_client = (mp_client_release(g_client), NULL);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  mp_client_release(g_client);
  return 0;
}

static mp_executable_t *place(mp_program_t *program, const uint32_t *ids) {
  mp_executable_t *executable = NULL;
  assert_ok(mp_executable_create(g_client, program, ids, &executable));
  return executable;
}

// Argument d is a vector of d + first.
static void begin_launch(test_launch_t *l, mp_executable_t *executable, float first) {
  launch_begin(l, executable, 1);
  for (uint32_t d = 0; d < l->num_devices; ++d) {
    l->arguments[d][0] = make_f32(mp_executable_device(executable, d), 4, first + (float)d);
  }
}

// Fails when a kernel or callback waited in vain.
static void end_launch(test_launch_t *l) {
  for (uint32_t d = 0; d < l->num_devices; ++d) assert_ok(mp_event_await(l->done[d]));
  while (atomic_load(&g_callbacks) != 0) usleep(100);
  launch_end(l);
  mp_executable_release(l->executable);
  assert_int_equal(atomic_load(&g_missed), 0);
}

// ---- Tests ----

// The last participant does the meeting's work, makes the others runnable and goes on itself.
static void participants_go_on_at_once_after_a_meeting(void **state) {
  (void)state;
  if (g_client == NULL) skip();
  for (uint32_t devices = 2; devices <= MAX_DEVICES; ++devices) {
    begin((int)devices);
    test_launch_t l;
    // One device waits until the others are parked, so it is the last one.
    begin_launch(&l, place(watched_psum_program(devices), g_ids), 1);
    launch_go(&l);
    end_launch(&l);
  }
}

static void a_receiver_goes_on_at_once_with_its_sender(void **state) {
  (void)state;
  if (g_client == NULL) skip();
  begin(2);
  test_launch_t l;
  begin_launch(&l, place(send_program(), g_ids), 1);
  launch_go(&l);
  end_launch(&l);
}

static void await_run(mp_status_t status, void *context) {
  (void)status, (void)context;
  (void)wait_until(others_are_inside);
  atomic_fetch_sub(&g_callbacks, 1);
}

static void write_ones(mp_buffer_t *buffer) {
  const float ones[4] = {1, 1, 1, 1};
  mp_event_t *written = buffer_write(buffer, ones, 0, sizeof(ones));
  assert_ok(mp_event_await(written));
  mp_event_release(written);
}

// The argument is pending until the test sets it.
static void set_pending(test_launch_t *l, mp_event_t **out_definition) {
  mp_memory_t *memory = mp_buffer_memory(l->arguments[0][0]);
  mp_buffer_release(l->arguments[0][0]);
  assert_ok(mp_buffer_create(memory, MP_DTYPE_F32, &(int64_t){4}, 1, &l->arguments[0][0],
                             out_definition));
}

// When a run is over, its worker makes the copies that wait for it. Such a copy takes so long that
// another worker should take the device's next run. The copy's callback waits for that run, which
// shows whether another worker did.
static void the_next_run_does_not_wait_for_copies(void **state) {
  (void)state;
  if (g_client == NULL) skip();
  begin(1);
  test_launch_t first, second;
  mp_event_t *definition = NULL, *copied = NULL;
  begin_launch(&first, place(kernel_program(let_others_sleep_if_one, COPY_COUNT), g_ids), 1);
  begin_launch(&second, place(kernel_program(enter, 4), g_ids), 1);
  set_pending(&first, &definition);
  launch_go(&first);
  launch_go(&second);
  static float to[COPY_COUNT];
  assert_ok(mp_buffer_to_host(first.results[0], to, sizeof(to), NULL, &copied));
  atomic_store(&g_callbacks, 1);
  assert_ok(mp_event_on_ready(copied, await_run, NULL));
  write_ones(first.arguments[0][0]);
  mp_event_set(definition, NULL);
  mp_event_release(definition);
  end_launch(&second);
  end_launch(&first);
  mp_event_release(copied);
}

static void define_and_await_run(mp_status_t status, void *context) {
  (void)status;
  let_others_sleep();
  mp_event_set(context, NULL);
  (void)wait_until(others_are_inside);
  atomic_fetch_sub(&g_callbacks, 1);
}

// A callback on a worker brings the input of another device's run, and waits for it.
static void work_that_a_callback_brings_does_not_wait_for_it(void **state) {
  (void)state;
  if (g_client == NULL) skip();
  begin(1);
  test_launch_t first, second;
  mp_event_t *definitions[2] = {NULL, NULL};
  begin_launch(&first, place(kernel_program(let_others_sleep_if_one, 4), g_ids), 1);
  begin_launch(&second, place(kernel_program(enter, 4), g_ids + 1), 1);
  set_pending(&first, &definitions[0]);
  set_pending(&second, &definitions[1]);
  launch_go(&first);
  launch_go(&second);
  atomic_store(&g_callbacks, 1);
  assert_ok(mp_event_on_ready(first.done[0], define_and_await_run, definitions[1]));
  write_ones(first.arguments[0][0]);
  mp_event_set(definitions[0], NULL);
  end_launch(&second);
  end_launch(&first);
  for (int i = 0; i < 2; ++i) mp_event_release(definitions[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(participants_go_on_at_once_after_a_meeting),
      cmocka_unit_test(a_receiver_goes_on_at_once_with_its_sender),
      cmocka_unit_test(the_next_run_does_not_wait_for_copies),
      cmocka_unit_test(work_that_a_callback_brings_does_not_wait_for_it),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
