// Running: hand-made programs on pods of several devices.

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sim/base/alloc.h"
#include "sim/runtime/buffers/buffer.h"
#include "sim/runtime/client.h"
#include "sim/runtime/runs/executable.h"
#include "tests/unit/support/clients.h"
#include "tests/unit/support/launches.h"
#include "tests/unit/support/loop_programs.h"
#include "tests/unit/support/unit.h"

// ---- Kernels ----

// Leaves each part's number times x[0] with the others; in the end all of y is their sum.
static mp_status_t share_multiples(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  const float x = *(const float *)call->operands[0];
  float *shared = call->shared;
  memset(call->scratch, (int)call->part, kernel->scratch_bytes);
  shared[call->part] = x * (float)call->part;
  if (x < 0 && call->part == 3) return mp_status_make(MP_OUT_OF_RANGE, "%g is negative", (double)x);
  return NULL;
}

static mp_status_t sum_multiples(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  const float *shared = call->shared;
  float sum = 0;
  memset(call->scratch, 0xAB, kernel->scratch_bytes);
  for (uint32_t i = 0; i < kernel->num_parts; ++i) sum += shared[i];
  for (int i = 0; i < 4; ++i) ((float *)call->results[0])[i] = sum;
  return NULL;
}

static mp_status_t fail_on_negative(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  (void)kernel;
  const float *x = call->operands[0];
  if (x[0] < 0) return mp_status_make(MP_OUT_OF_RANGE, "%g is negative", (double)x[0]);
  return NULL;
}

// condition = id is not 2
static mp_status_t is_not_two(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  (void)kernel;
  *(uint8_t *)call->results[0] = *(const uint32_t *)call->operands[0] != 2;
  return NULL;
}

// ---- Programs ----

static mp_program_t *add_one_program(uint32_t devices) {
  return program_of_parts("add_one", devices, add_one, 2);
}

static mp_program_t *sharing_program(uint32_t devices) {
  test_program_t p;
  program_begin(&p, "sharing", 1, devices);
  mp_slot_t x = slot_param(program_param(&p, MP_DTYPE_F32, 4));
  mp_slot_t y = slot_result(program_result(&p, MP_DTYPE_F32, 4));
  program_launch(&p, share_multiples, 9, 1, &x, 1, &y);
  mp_kernel_t *kernel = mp_arena_copy(p.arena, p.commands[0].kernel, sizeof(*kernel));
  kernel->finish = sum_multiples;
  kernel->shared_bytes = 9 * sizeof(float);
  p.commands[0].kernel = kernel;
  return program_end(&p);
}

// y = x; while (y[0] < 100) y = (psum(y) / 4) + 1, on 4 devices
static mp_program_t *psum_loop_program(void) {
  test_program_t p;
  program_begin(&p, "psum_loop", 2, 2);
  mp_slot_t x = slot_param(program_param(&p, MP_DTYPE_F32, 4));
  mp_slot_t y = slot_result(program_result(&p, MP_DTYPE_F32, 4));
  mp_slot_t condition = slot_arena(0), sum = slot_arena(64);
  p.program->arena_bytes = 128;
  program_copy(&p, x, y, 16);
  program_launch(&p, less_than_100, 1, 1, &y, 1, &condition);  // 1
  program_jump(&p, MP_CMD_BRANCH_UNLESS, condition, 7);        // 2
  program_collective(&p, MP_COLLECTIVE_ALL_REDUCE, "stablehlo.all_reduce", 4, y, sum);
  program_launch(&p, quarter, 1, 1, &sum, 1, &y);
  program_launch(&p, add_one, 1, 1, &y, 1, &y);
  program_jump(&p, MP_CMD_JUMP, condition, 1);
  return program_end(&p);  // 7
}

// Partition 2 goes around the psum, or (`other`) to a second one.
static mp_program_t *skipping_program(bool other) {
  test_program_t p;
  program_begin(&p, "skipping", 1, 4);
  mp_slot_t x = slot_param(program_param(&p, MP_DTYPE_F32, 4));
  mp_slot_t y = slot_result(program_result(&p, MP_DTYPE_F32, 4));
  mp_slot_t id = slot_arena(0), condition = slot_arena(64);
  p.program->arena_bytes = 128;
  command_slots(&p, program_command(&p, MP_CMD_PARTITION_ID), 0, NULL, 1, &id);
  program_launch(&p, is_not_two, 1, 1, &id, 1, &condition);
  program_jump(&p, MP_CMD_BRANCH_UNLESS, condition, 5);
  program_collective(&p, MP_COLLECTIVE_ALL_REDUCE, "stablehlo.all_reduce", 4, x, y);
  program_jump(&p, MP_CMD_JUMP, condition, 6);
  if (other) {
    program_collective(&p, MP_COLLECTIVE_ALL_REDUCE, "stablehlo.all_reduce", 4, x, y);
  } else {
    program_copy(&p, x, y, 16);
  }
  return program_end(&p);  // 6
}

// Every device checks x, then sums.
static mp_program_t *checked_psum_program(uint32_t devices) {
  test_program_t p;
  program_begin(&p, "checked", devices, 1);
  mp_slot_t x = slot_param(program_param(&p, MP_DTYPE_F32, 4));
  mp_slot_t y = slot_result(program_result(&p, MP_DTYPE_F32, 4));
  program_launch(&p, fail_on_negative, 1, 1, &x, 0, NULL);
  program_collective(&p, MP_COLLECTIVE_ALL_REDUCE, "stablehlo.all_reduce", 4, x, y);
  return program_end(&p);
}

// Each device but the last sends x to the next one, and receives into y.
static mp_program_t *shift_program(uint32_t devices) {
  test_program_t p;
  program_begin(&p, "shift", 1, devices);
  mp_slot_t x = slot_param(program_param(&p, MP_DTYPE_F32, 4));
  mp_slot_t y = slot_result(program_result(&p, MP_DTYPE_F32, 4));
  mp_slot_t both[2] = {x, y};
  uint32_t pairs[128];
  for (uint32_t i = 0; i + 1 < devices; ++i) {
    pairs[2 * i] = i;
    pairs[2 * i + 1] = i + 1;
  }
  for (int i = 0; i < 2; ++i) {
    mp_collective_t *c =
        program_collective(&p, MP_COLLECTIVE_SEND_RECV,
                           i == 0 ? "stablehlo.recv" : "stablehlo.send", 4, both[0], both[1]);
    c->num_pairs = devices - 1;
    c->pairs = mp_arena_copy(p.arena, pairs, sizeof(pairs));
  }
  // Receiving first, so that all but the first one park.
  mp_cmd_t *recv = &p.commands[0], *send = &p.commands[1];
  recv->kind = MP_CMD_RECV;
  recv->num_operands = 0;
  send->kind = MP_CMD_SEND;
  send->num_results = 0;
  return program_end(&p);
}

static mp_program_t *donating_program(int32_t param_alias, bool shares_result) {
  test_program_t p;
  program_begin(&p, "donating", 1, 1);
  mp_slot_t x = slot_param(program_param(&p, MP_DTYPE_F32, 4));
  mp_slot_t z = slot_param(program_param(&p, MP_DTYPE_F32, 4));
  mp_slot_t y = slot_result(program_result(&p, MP_DTYPE_F32, 4));
  (void)z;
  p.params[0].alias = param_alias;
  if (shares_result) p.results[0].alias = 0;
  program_launch(&p, add_one, 1, 1, &x, 1, &y);
  return program_end(&p);
}

// ---- Tests ----

static void a_program_runs(void **state) {
  (void)state;
  mp_client_t *client = make_client(1);
  mp_executable_t *executable = make_executable(client, add_one_program(1));
  launch_and_expect(executable, 1.5f, 2.5f);
  mp_executable_release(executable);
  mp_client_release(client);
}

static void parts_share_memory(void **state) {
  (void)state;
  mp_client_t *client = make_client(2);
  mp_executable_t *executable = make_executable(client, sharing_program(2));
  for (int i = 1; i < 50; ++i) {
    launch_and_expect(executable, (float)i, (float)(36 * i));
  }
  test_launch_t l;
  launch_filled(&l, executable, 1, -1);
  for (uint32_t d = 0; d < 2; ++d) launch_expect_error(&l, d, MP_OUT_OF_RANGE, "-1 is negative");
  launch_end(&l);
  mp_executable_release(executable);
  mp_client_release(client);
}

// A copy that is cut into parts, which do not end between elements, and one that is not.
static void copies_are_whole(void **state) {
  (void)state;
  mp_client_t *client = make_client(2);
  static const int64_t counts[] = {3700001, 1100007, 5};
  for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); ++i) {
    const int64_t count = counts[i];
    test_program_t p;
    program_begin(&p, "copy", 1, 2);
    const mp_slot_t x = slot_param(program_param(&p, MP_DTYPE_U8, count));
    const mp_slot_t y = slot_result(program_result(&p, MP_DTYPE_U8, count));
    program_copy(&p, x, y, (uint64_t)count);
    mp_executable_t *executable = make_executable(client, program_end(&p));
    test_launch_t l;
    launch_begin(&l, executable, 1);
    uint8_t *data = malloc((size_t)count), *got = malloc((size_t)count);
    for (uint32_t d = 0; d < 2; ++d) {
      for (int64_t k = 0; k < count; ++k) data[k] = (uint8_t)((uint64_t)k * 2654435761u >> 13);
      mp_host_array_t array = {.dtype = MP_DTYPE_U8, .rank = 1, .dims = &count, .data = data};
      mp_memory_t *memory = mp_device_memory(mp_executable_device(executable, d), MP_MEMORY_DEVICE);
      assert_ok(
          mp_buffer_from_host(memory, &array, MP_HOST_ONLY_DURING_CALL, &l.arguments[d][0], NULL));
    }
    launch_go(&l);
    for (uint32_t d = 0; d < 2; ++d) {
      mp_event_t *done = NULL;
      memset(got, 0xAB, (size_t)count);
      assert_ok(mp_buffer_to_host(l.results[d], got, (uint64_t)count, NULL, &done));
      assert_ok(mp_event_await(done));
      mp_event_release(done);
      assert_memory_equal(got, data, (size_t)count);
    }
    launch_end(&l);
    mp_executable_release(executable);
    free(data);
    free(got);
  }
  mp_client_release(client);
}

static void loops_yield_and_end(void **state) {
  (void)state;
  mp_client_t *client = make_client(16);
  mp_executable_t *executable = make_executable(client, loop_program(16, add_one));
  launch_and_expect(executable, 0, 100);
  mp_executable_release(executable);
  mp_client_release(client);
}

static void devices_sum(void **state) {
  (void)state;
  const int64_t counts[] = {4, 1000, 100000};
  mp_client_t *client = make_client(8);
  for (int i = 0; i < 3; ++i) {
    mp_executable_t *executable = make_executable(client, psum_program(8, counts[i]));
    test_launch_t l;
    launch_begin(&l, executable, 1);
    for (uint32_t d = 0; d < 8; ++d) {
      l.arguments[d][0] = make_f32(mp_client_device(client, d), counts[i], (float)d);
    }
    launch_go(&l);
    for (uint32_t d = 0; d < 8; ++d) expect_f32(l.results[d], counts[i], 28);
    launch_end(&l);
    mp_executable_release(executable);
  }
  mp_client_release(client);
}

static void collectives_in_loops_meet_each_time(void **state) {
  (void)state;
  mp_client_t *client = make_client(4);
  mp_executable_t *executable = make_executable(client, psum_loop_program());
  launch_and_expect(executable, 0, 100);
  mp_executable_release(executable);
  mp_client_release(client);
}

static void a_device_that_skips_a_collective_is_named(void **state) {
  (void)state;
  mp_client_t *client = make_client(5);
  mp_executable_t *executable = make_executable(client, skipping_program(false));
  mp_executable_t *good = make_executable(client, psum_program(4, 4));
  for (int round = 0; round < 3; ++round) {
    test_launch_t l;
    launch_filled(&l, executable, 1, 1);
    // Device 2 was done before: its result is good.
    expect_f32(l.results[2], 4, 1);
    launch_expect_error(&l, 0, MP_ABORTED,
                        "device 2 finished without reaching stablehlo.all_reduce (psum at "
                        "train.py:12:7) that devices 0, 1, 3 wait at");
    launch_expect_error(&l, 3, MP_ABORTED, "stuck");
    launch_end(&l);
    launch_and_expect(good, 1, 4);
  }
  mp_executable_release(executable);
  mp_executable_release(good);
  mp_client_release(client);
}

static void different_collectives_do_not_meet(void **state) {
  (void)state;
  mp_client_t *client = make_client(4);
  mp_executable_t *executable = make_executable(client, skipping_program(true));
  test_launch_t l;
  launch_filled(&l, executable, 1, 1);
  launch_expect_error(&l, 0, MP_INVALID_ARGUMENT, "different places of the program");
  launch_expect_error(&l, 2, MP_INVALID_ARGUMENT, "device 2 is at stablehlo.all_reduce");
  launch_end(&l);
  mp_executable_release(executable);
  mp_client_release(client);
}

// Two launches of single devices in different orders on two devices: each waits for the other.
static void launches_in_opposite_orders_are_proved_stuck(void **state) {
  (void)state;
  mp_client_t *client = make_client(2);
  uint32_t forward[] = {0, 1}, backward[] = {1, 0};
  mp_executable_t *executables[2];
  assert_ok(mp_executable_create(client, psum_program(2, 4), forward, &executables[0]));
  assert_ok(mp_executable_create(client, psum_program(2, 4), backward, &executables[1]));
  for (int round = 0; round < 5; ++round) {
    test_launch_t l[2][2];  // [device][n-th launch on it]
    for (uint32_t d = 0; d < 2; ++d) {
      for (uint32_t n = 0; n < 2; ++n) {
        uint32_t which = d ^ n;  // device 0: first then second, device 1 the other way round
        launch_begin(&l[d][n], executables[which], 1);
        l[d][n].num_devices = 1;
        l[d][n].logical[0] = which == 0 ? d : 1 - d;
        l[d][n].arguments[0][0] = make_f32(mp_client_device(client, d), 4, 1);
        launch_go(&l[d][n]);
      }
    }
    // One of the two is poisoned, the other goes on.
    int failed = 0;
    for (uint32_t d = 0; d < 2; ++d) {
      for (uint32_t n = 0; n < 2; ++n) {
        mp_status_t status = mp_event_await(l[d][n].done[0]);
        if (status != NULL) {
          ++failed;
          assert_status(status, MP_ABORTED, "queued behind one that is stuck");
        } else {
          expect_f32(l[d][n].results[0], 4, 2);
        }
        launch_end(&l[d][n]);
      }
    }
    assert_int_equal(failed, 2);
  }
  mp_executable_release(executables[0]);
  mp_executable_release(executables[1]);
  mp_client_release(client);
}

static void a_failure_poisons_all_participants(void **state) {
  (void)state;
  mp_client_t *client = make_client(8);
  mp_executable_t *executable = make_executable(client, checked_psum_program(8));
  test_launch_t l;
  for (int round = 0; round < 10; ++round) {
    launch_begin(&l, executable, 1);
    for (uint32_t d = 0; d < 8; ++d) {
      l.arguments[d][0] = make_f32(mp_client_device(client, d), 4, d == 5 ? -3 : 1);
    }
    launch_go(&l);
    for (uint32_t d = 0; d < 8; ++d) launch_expect_error(&l, d, MP_OUT_OF_RANGE, "-3 is negative");
    launch_end(&l);
    launch_and_expect(executable, 1, 8);
  }
  mp_executable_release(executable);
  mp_client_release(client);
}

static void a_failed_or_late_input_is_awaited(void **state) {
  (void)state;
  mp_client_t *client = make_client(4);
  mp_executable_t *executable = make_executable(client, psum_program(4, 4));
  for (int fails = 0; fails < 2; ++fails) {
    test_launch_t l;
    launch_begin(&l, executable, 1);
    mp_event_t *definition = NULL;
    int64_t dims = 4;
    for (uint32_t d = 0; d < 4; ++d) {
      mp_device_t *device = mp_client_device(client, d);
      if (d != 1) {
        l.arguments[d][0] = make_f32(device, 4, 2);
        continue;
      }
      assert_ok(mp_buffer_create(mp_device_memory(device, MP_MEMORY_DEVICE), MP_DTYPE_F32, &dims, 1,
                                 &l.arguments[d][0], &definition));
    }
    launch_go(&l);
    assert_false(mp_event_wait_for(l.done[3], 0.01));
    float data[4] = {2, 2, 2, 2};
    mp_event_t *written = buffer_write(l.arguments[1][0], data, 0, 16);
    mp_event_release(written);
    mp_event_set(definition, fails ? mp_status_make(MP_DATA_LOSS, "lost on the way") : NULL);
    mp_event_release(definition);
    for (uint32_t d = 0; d < 4; ++d) {
      if (fails) {
        launch_expect_error(&l, d, MP_DATA_LOSS, "lost on the way");
      } else {
        expect_f32(l.results[d], 4, 8);
      }
    }
    launch_end(&l);
  }
  mp_executable_release(executable);
  mp_client_release(client);
}

static void messages_go_from_device_to_device(void **state) {
  (void)state;
  mp_client_t *client = make_client(6);
  mp_executable_t *executable = make_executable(client, shift_program(6));
  test_launch_t l;
  launch_begin(&l, executable, 1);
  for (uint32_t d = 0; d < 6; ++d) {
    l.arguments[d][0] = make_f32(mp_client_device(client, d), 4, (float)d + 1);
  }
  launch_go(&l);
  for (uint32_t d = 0; d < 6; ++d) expect_f32(l.results[d], 4, (float)d);
  launch_end(&l);
  mp_executable_release(executable);
  mp_client_release(client);
}

static void *launch_one_device(void *context) {
  test_launch_t *l = context;
  launch_go(l);
  return NULL;
}

static void launches_of_single_devices_meet(void **state) {
  (void)state;
  enum { ROUNDS = 5 };
  mp_client_t *client = make_client(3);
  mp_executable_t *executable = make_executable(client, psum_program(3, 4));
  for (int threaded = 0; threaded < 2; ++threaded) {
    static test_launch_t l[ROUNDS][3];
    // Device by device: the n-th launches belong together, whatever the order of the calls.
    pthread_t threads[ROUNDS * 3];
    for (uint32_t d = 0; d < 3; ++d) {
      for (int r = 0; r < ROUNDS; ++r) {
        launch_begin(&l[r][d], executable, 1);
        l[r][d].num_devices = 1;
        l[r][d].logical[0] = d;
        l[r][d].arguments[0][0] = make_f32(mp_client_device(client, d), 4, (float)(d + 1));
        if (threaded) {
          assert_int_equal(
              pthread_create(&threads[r * 3 + (int)d], NULL, launch_one_device, &l[r][d]), 0);
        } else {
          launch_go(&l[r][d]);
        }
      }
    }
    for (int i = 0; i < ROUNDS * 3 && threaded; ++i) pthread_join(threads[i], NULL);
    for (int r = 0; r < ROUNDS; ++r) {
      for (uint32_t d = 0; d < 3; ++d) {
        expect_f32(l[r][d].results[0], 4, 6);
        launch_end(&l[r][d]);
      }
    }
  }
  mp_executable_release(executable);
  mp_client_release(client);
}

static void donation_follows_the_rules(void **state) {
  (void)state;
  mp_client_t *client = make_client(1);
  mp_device_t *device = mp_client_device(client, 0);
  mp_executable_t *executable = make_executable(client, donating_program(0, true));
  mp_buffer_t *z = make_f32(device, 4, 0);
  test_launch_t l;
  // Taken over: deleted, no new memory, the same address.
  launch_begin(&l, executable, 2);
  mp_buffer_t *x = l.arguments[0][0] = make_f32(device, 4, 1);
  l.arguments[0][1] = mp_buffer_retain(z);
  void *before, *after;
  assert_ok(mp_buffer_acquire_external(x, &before));
  mp_buffer_release_external(x);
  int64_t in_use = stats_of(device, MP_MEMORY_DEVICE).bytes_in_use;
  launch_go(&l);
  assert_true(mp_buffer_is_deleted(x));
  assert_int_equal(stats_of(device, MP_MEMORY_DEVICE).bytes_in_use, in_use);
  expect_f32(l.results[0], 4, 2);
  assert_ok(mp_buffer_acquire_external(l.results[0], &after));
  mp_buffer_release_external(l.results[0]);
  assert_ptr_equal(before, after);
  // Again: refused, and what was there stays.
  mp_buffer_t *result;
  assert_status(launch_try(&l, &result), MP_INVALID_ARGUMENT,
                "donating: argument 0: the buffer has been donated");
  launch_end(&l);
  // Twice in one call.
  launch_begin(&l, executable, 2);
  l.arguments[0][0] = make_f32(device, 4, 1);
  l.arguments[0][1] = mp_buffer_retain(l.arguments[0][0]);
  assert_status(launch_try(&l, &result), MP_INVALID_ARGUMENT,
                "argument 1: the buffer is donated to");
  assert_false(mp_buffer_is_deleted(l.arguments[0][0]));
  expect_f32(l.arguments[0][0], 4, 1);
  launch_end(&l);
  // With a view out: a copy, the input stays.
  launch_begin(&l, executable, 2);
  x = l.arguments[0][0] = make_f32(device, 4, 5);
  l.arguments[0][1] = mp_buffer_retain(z);
  float *view;
  assert_ok(mp_buffer_acquire_external(x, (void **)&view));
  launch_go(&l);
  expect_f32(l.results[0], 4, 6);
  assert_false(mp_buffer_is_deleted(x));
  assert_true(view[0] == 5);
  mp_buffer_release_external(x);
  launch_end(&l);
  // Not this time.
  int64_t none[] = {0};
  launch_begin(&l, executable, 2);
  x = l.arguments[0][0] = make_f32(device, 4, 5);
  l.arguments[0][1] = mp_buffer_retain(z);
  l.launch.num_non_donatable = 1;
  l.launch.non_donatable = none;
  launch_go(&l);
  expect_f32(l.results[0], 4, 6);
  expect_f32(x, 4, 5);
  launch_end(&l);
  mp_executable_release(executable);
  // Donated to nothing in particular.
  executable = make_executable(client, donating_program(-2, false));
  launch_begin(&l, executable, 2);
  x = l.arguments[0][0] = make_f32(device, 4, 5);
  l.arguments[0][1] = mp_buffer_retain(z);
  launch_go(&l);
  assert_true(mp_buffer_is_deleted(x));
  expect_f32(l.results[0], 4, 6);
  launch_end(&l);
  mp_executable_release(executable);
  mp_buffer_release(z);
  assert_int_equal(stats_of(device, MP_MEMORY_DEVICE).bytes_in_use, 0);
  mp_client_release(client);
}

static void wrong_arguments_are_named(void **state) {
  (void)state;
  mp_client_t *client = make_client(2);
  mp_executable_t *executable = make_executable(client, add_one_program(1));
  mp_buffer_t *result;
  test_launch_t l;
  launch_begin(&l, executable, 1);
  l.arguments[0][0] = make_f32(mp_client_device(client, 0), 5, 1);
  assert_status(launch_try(&l, &result), MP_INVALID_ARGUMENT,
                "add_one: argument 0: expected tensor<4xf32>, got tensor<5xf32>");
  launch_end(&l);
  launch_begin(&l, executable, 1);
  l.arguments[0][0] = make_f32(mp_client_device(client, 1), 4, 1);
  assert_status(launch_try(&l, &result), MP_INVALID_ARGUMENT, "argument 0 is on device 1");
  launch_end(&l);
  launch_begin(&l, executable, 1);
  l.arguments[0][0] = make_f32(mp_client_device(client, 0), 4, 1);
  mp_buffer_delete(l.arguments[0][0]);
  assert_status(launch_try(&l, &result), MP_INVALID_ARGUMENT,
                "argument 0: the buffer has been deleted");
  launch_end(&l);
  mp_executable_release(executable);
  uint32_t twice[] = {1, 1}, unknown[] = {0, 7};
  assert_status(mp_executable_create(client, add_one_program(2), twice, &executable),
                MP_INVALID_ARGUMENT, "device 1 twice");
  assert_status(mp_executable_create(client, add_one_program(2), unknown, &executable),
                MP_INVALID_ARGUMENT, "device 7");
  mp_client_release(client);
}

// A queue of 2,000 runs fits into memory for a few, because memory goes round in stream order.
static void a_long_queue_does_not_exhaust_the_memory(void **state) {
  (void)state;
  mp_client_t *client = make_client_with(1, 64 << 10);
  mp_device_t *device = mp_client_device(client, 0);
  mp_executable_t *executable = make_executable(client, add_one_program(1));
  mp_buffer_t *x = NULL;
  mp_event_t *definition;
  int64_t dims = 4;
  assert_ok(mp_buffer_create(mp_device_memory(device, MP_MEMORY_DEVICE), MP_DTYPE_F32, &dims, 1, &x,
                             &definition));
  for (int i = 0; i < 2000; ++i) {
    test_launch_t l;
    launch_begin(&l, executable, 1);
    l.arguments[0][0] = x;
    launch_go(&l);
    x = mp_buffer_retain(l.results[0]);
    launch_end_no_wait(&l);
  }
  mp_event_set(definition, NULL);
  mp_event_release(definition);
  assert_ok(mp_event_await(mp_buffer_definition(x)));
  mp_buffer_release(x);
  mp_executable_release(executable);
  mp_client_release(client);
}

static void too_large_temporaries_are_refused(void **state) {
  (void)state;
  mp_client_t *client = make_client_with(2, 64 << 10);
  mp_program_t *program = loop_program(2, add_one);
  program->arena_bytes = 128 << 10;
  mp_executable_t *executable = make_executable(client, program);
  test_launch_t l;
  launch_begin(&l, executable, 1);
  for (uint32_t d = 0; d < 2; ++d) l.arguments[d][0] = make_f32(mp_client_device(client, d), 4, 1);
  mp_buffer_t *results[2];
  assert_status(launch_try(&l, results), MP_RESOURCE_EXHAUSTED, "temporaries of loop");
  launch_end(&l);
  mp_executable_release(executable);
  assert_int_equal(stats_of(mp_client_device(client, 0), MP_MEMORY_DEVICE).bytes_in_use, 0);
  mp_client_release(client);
}

// ---- Many threads ----

typedef struct {
  mp_executable_t *executable;
  float expected;  // of arguments of ones
} thread_t;

static void release_event(mp_status_t status, void *context) {
  (void)status;
  mp_event_release(*(mp_event_t **)context);
  free(context);
}

static void *launch_many(void *context) {
  const thread_t *t = context;
  uint32_t n = mp_executable_num_devices(t->executable);
  for (int round = 0; round < 12; ++round) {
    test_launch_t l;
    launch_begin(&l, t->executable, mp_executable_program(t->executable)->num_params);
    for (uint32_t d = 0; d < n; ++d) {
      for (uint32_t a = 0; a < l.num_arguments; ++a) {
        l.arguments[d][a] = make_f32(mp_executable_device(t->executable, d), 4, 1);
      }
    }
    launch_go(&l);
    for (uint32_t d = 0; d < n; ++d) {
      if (round % 2 == 0) expect_f32(l.results[d], 4, t->expected);
      mp_event_t **event = malloc(sizeof(*event));
      *event = l.done[d];
      l.done[d] = NULL;
      assert_ok(mp_event_on_ready(*event, release_event, event));
    }
    launch_end_no_wait(&l);
  }
  return NULL;
}

static void threads_launch_on_overlapping_devices(void **state) {
  (void)state;
  enum { THREADS = 6 };
  mp_client_t *client = make_client(64);
  // All, all backwards, some, all in a strange order; a loop of collectives; a donation.
  uint32_t ids[THREADS][64] = {[4] = {40, 7, 33, 2}, [5] = {33}};
  for (uint32_t i = 0; i < 64; ++i) {
    ids[0][i] = i;
    ids[1][i] = 63 - i;
    ids[2][i] = 30 + i;
    ids[3][i] = i ^ 5;
  }
  mp_program_t *programs[THREADS] = {psum_program(64, 4), psum_program(64, 4),
                                     psum_program(20, 4), add_one_program(64),
                                     psum_loop_program(), donating_program(0, true)};
  thread_t contexts[THREADS] = {{NULL, 64}, {NULL, 64},  {NULL, 20},
                                {NULL, 2},  {NULL, 100}, {NULL, 2}};
  pthread_t threads[THREADS];
  for (uint32_t i = 0; i < THREADS; ++i) {
    assert_ok(mp_executable_create(client, programs[i], ids[i], &contexts[i].executable));
    assert_int_equal(pthread_create(&threads[i], NULL, launch_many, &contexts[i]), 0);
  }
  for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
  for (int i = 0; i < THREADS; ++i) mp_executable_release(contexts[i].executable);
  mp_client_release(client);
}

// ---- Endings ----

static void a_client_may_go_with_work_in_flight(void **state) {
  (void)state;
  mp_client_t *client = make_client(6);
  // One device loops for ever, two wait for a third that never comes, one waits for its input.
  mp_executable_t *loop = make_executable(client, loop_program(1, quarter));
  uint32_t ids[] = {1, 2, 3}, last = 5;
  mp_executable_t *psum, *late;
  assert_ok(mp_executable_create(client, psum_program(3, 4), ids, &psum));
  assert_ok(mp_executable_create(client, add_one_program(1), &last, &late));
  test_launch_t endless, parked[2], waiting;
  launch_filled(&endless, loop, 1, 1);
  for (uint32_t i = 0; i < 2; ++i) {
    launch_begin(&parked[i], psum, 1);
    parked[i].num_devices = 1;
    parked[i].logical[0] = i;
    parked[i].arguments[0][0] = make_f32(mp_client_device(client, ids[i]), 4, 1);
    launch_go(&parked[i]);
  }
  launch_begin(&waiting, late, 1);
  int64_t dims = 4;
  mp_event_t *definition;
  assert_ok(mp_buffer_create(mp_device_memory(mp_client_device(client, 5), MP_MEMORY_DEVICE),
                             MP_DTYPE_F32, &dims, 1, &waiting.arguments[0][0], &definition));
  launch_go(&waiting);
  usleep(2000);
  mp_client_release(client);
  launch_expect_error(&endless, 0, MP_CANCELLED, "closed");
  launch_expect_error(&parked[0], 0, MP_CANCELLED, "closed");
  launch_expect_error(&parked[1], 0, MP_CANCELLED, "closed");
  launch_expect_error(&waiting, 0, MP_CANCELLED, "closed");
  mp_event_set(definition, NULL);
  mp_event_release(definition);
  mp_buffer_t *result;
  assert_status(launch_try(&endless, &result), MP_FAILED_PRECONDITION, "closed");
  launch_end(&endless);
  launch_end(&parked[0]);
  launch_end(&parked[1]);
  launch_end(&waiting);
  mp_executable_release(loop);
  mp_executable_release(psum);
  mp_executable_release(late);
  // And a second one.
  a_program_runs(state);
}

static void a_process_may_exit_with_work_in_flight(void **state) {
  (void)state;
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    mp_client_t *client = make_client(2);
    mp_executable_t *loop = make_executable(client, loop_program(2, quarter));
    static test_launch_t l;
    launch_filled(&l, loop, 1, 1);
    exit(7);
  }
  int result = -1;
  assert_int_equal(waitpid(child, &result, 0), child);
  assert_true(WIFEXITED(result));
#ifndef __SANITIZE_ADDRESS__
  assert_int_equal(WEXITSTATUS(result), 7);
#endif
}

static void every_failed_allocation_is_survived(void **state) {
  (void)state;
  mp_client_t *client = make_client(3);
  mp_executable_t *executable = make_executable(client, psum_program(3, 4));
  int failures = 0;
  for (int n = 1; n < 60; ++n) {
    test_launch_t l;
    launch_begin(&l, executable, 1);
    for (uint32_t d = 0; d < 3; ++d)
      l.arguments[d][0] = make_f32(mp_client_device(client, d), 4, 1);
    mp_buffer_t *results[3];
    mp_alloc_fail_at(n, 0);
    mp_status_t status = launch_try(&l, results);
    mp_alloc_fail_at(0, 0);
    if (status != NULL) {
      assert_int_equal(mp_status_code(status), MP_RESOURCE_EXHAUSTED);
      mp_status_release(status);
      ++failures;
    } else {
      // The runs may have failed later; all in the same way.
      for (uint32_t d = 0; d < 3; ++d) {
        status = mp_event_await(mp_buffer_definition(results[d]));
        if (status == NULL) expect_f32(results[d], 4, 3);
        mp_status_release(status);
        mp_buffer_release(results[d]);
      }
    }
    launch_end(&l);
  }
  assert_true(failures > 10);
  for (uint32_t d = 0; d < 3; ++d) {
    assert_int_equal(stats_of(mp_client_device(client, d), MP_MEMORY_DEVICE).bytes_in_use, 0);
  }
  mp_executable_release(executable);
  mp_client_release(client);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_program_runs),
      cmocka_unit_test(copies_are_whole),
      cmocka_unit_test(parts_share_memory),
      cmocka_unit_test(loops_yield_and_end),
      cmocka_unit_test(devices_sum),
      cmocka_unit_test(collectives_in_loops_meet_each_time),
      cmocka_unit_test(a_device_that_skips_a_collective_is_named),
      cmocka_unit_test(different_collectives_do_not_meet),
      cmocka_unit_test(launches_in_opposite_orders_are_proved_stuck),
      cmocka_unit_test(a_failure_poisons_all_participants),
      cmocka_unit_test(a_failed_or_late_input_is_awaited),
      cmocka_unit_test(messages_go_from_device_to_device),
      cmocka_unit_test(launches_of_single_devices_meet),
      cmocka_unit_test(donation_follows_the_rules),
      cmocka_unit_test(wrong_arguments_are_named),
      cmocka_unit_test(a_long_queue_does_not_exhaust_the_memory),
      cmocka_unit_test(too_large_temporaries_are_refused),
      cmocka_unit_test(threads_launch_on_overlapping_devices),
      cmocka_unit_test(a_client_may_go_with_work_in_flight),
      cmocka_unit_test(a_process_may_exit_with_work_in_flight),
      cmocka_unit_test(every_failed_allocation_is_survived),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
