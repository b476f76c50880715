// Virtual times: launches, transfers and waits by hand; loops, permutations and messages; the same
// times however a launch comes in and whether it was seen before.
#include <math.h>
#include <unistd.h>

#include "sim/base/os/clock.h"
#include "sim/model/network/traffic/flows.h"
#include "tests/unit/support/timed.h"

// Round numbers: 1 us per launch and op, 1 GB/s and 1 us per link, 1 TB/s of memory.
#define POD                                                                                    \
  "ring:4 hbm:1GiB launch_latency:1us op_latency:1us links.latency:1us links.bandwidth:1GB/s " \
  "memory.bandwidth:1TB/s host_link.latency:2us host_link.bandwidth:1GB/s flops.f32:1T"

#define SUM_BODY                                  \
  "({\n^bb0(%a: tensor<f32>, %b: tensor<f32>):\n" \
  "  %s = stablehlo.add %a, %b : tensor<f32>\n"   \
  "  stablehlo.return %s : tensor<f32>\n})"

static const char k_all_reduce[] =
    "module @sum attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 4 : i32} {\n"
    "func.func @main(%x: tensor<250000xf32>) -> tensor<250000xf32> {\n"
    "  %r = \"stablehlo.all_reduce\"(%x) <{replica_groups = dense<[[0,1,2,3]]> : "
    "tensor<1x4xi64>}> " SUM_BODY
    " : (tensor<250000xf32>) -> tensor<250000xf32>\n"
    "  return %r : tensor<250000xf32>\n}\n}\n";

static const char k_add[] =
    "module @add attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 4 : i32} {\n"
    "func.func @main(%x: tensor<250000xf32>) -> tensor<250000xf32> {\n"
    "  %d = stablehlo.add %x, %x : tensor<250000xf32>\n"
    "  return %d : tensor<250000xf32>\n}\n}\n";

static const char k_permute[] =
    "module @shift attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 4 : i32} {\n"
    "func.func @main(%x: tensor<250000xf32>) -> tensor<250000xf32> {\n"
    "  %r = \"stablehlo.collective_permute\"(%x) <{source_target_pairs = dense<[[0,1]]> : "
    "tensor<1x2xi64>}> : (tensor<250000xf32>) -> tensor<250000xf32>\n"
    "  return %r : tensor<250000xf32>\n}\n}\n";

// As long as the number is positive.
static const char k_loop[] =
    "module @count {\n"
    "func.func @main(%n: tensor<i32>, %x: tensor<1000000xf32>) -> tensor<1000000xf32> {\n"
    "  %zero = stablehlo.constant dense<0> : tensor<i32>\n"
    "  %one = stablehlo.constant dense<1> : tensor<i32>\n"
    "  %r:2 = stablehlo.while(%i = %n, %c = %x) : tensor<i32>, tensor<1000000xf32>\n"
    "  cond {\n    %p = stablehlo.compare GT, %i, %zero : (tensor<i32>, tensor<i32>) -> "
    "tensor<i1>\n    stablehlo.return %p : tensor<i1>\n  } do {\n"
    "    %d = stablehlo.subtract %i, %one : tensor<i32>\n"
    "    %y = stablehlo.add %c, %c : tensor<1000000xf32>\n"
    "    stablehlo.return %d, %y : tensor<i32>, tensor<1000000xf32>\n  }\n"
    "  return %r#1 : tensor<1000000xf32>\n}\n}\n";

static timed_t time_text(const char *text, uint32_t num_devices) {
  return time_text_on(POD, text, num_devices);
}

static mp_model_books_t read_books(timed_t *t) {
  mp_model_books_t books;
  mp_model_read(t->model, &books, NULL, NULL);
  assert_int_equal(books.lost, 0);
  return books;
}

static double micros(mp_moment_t moment) {
  return mp_moment_seconds(moment) * 1e6;
}

static void expect_near(double found, double expected) {
  if (fabs(found - expected) > 1e-3 * expected) fail_msg("%f, expected %f", found, expected);
}

static void test_all_reduce(void **state) {
  (void)state;
  timed_t t = time_text(k_all_reduce, 4);
  (void)time_launch(&t, 4, NULL);
  const double first = micros(read_books(&t).now);
  // A ring of four both ways: 2 * 3/4 of a megabyte, half of it each way, at 1 GB/s; 6 steps.
  expect_near(first, 1 + 750 + 6);
  // Launches that are not waited for follow each other without gaps.
  for (int i = 0; i < 10; ++i) (void)time_launch(&t, 4, NULL);
  expect_near(micros(read_books(&t).now), 1 + 11 * 756);
  assert_int_equal(read_books(&t).host, 0);
  time_end(&t);
}

static void test_host_waits(void **state) {
  (void)state;
  timed_t t = time_text(k_all_reduce, 4);
  mp_stamp_t stamp = time_launch(&t, 4, NULL);
  mp_model_get(t.model, 2, 0, stamp);
  expect_near(micros(read_books(&t).host), 757);
  stamp = time_launch(&t, 4, NULL);
  // Four megabytes from four devices come over four links at the same time.
  for (uint32_t d = 0; d < 4; ++d) mp_model_get(t.model, d, 1000000, stamp);
  expect_near(micros(read_books(&t).host), 757 + 757 + 1002);
  time_end(&t);
}

static void test_inputs(void **state) {
  (void)state;
  timed_t t = time_text(k_all_reduce, 4);
  const mp_stamp_t put = mp_model_put(t.model, 3, 2000000);
  const mp_stamp_t inputs[4] = {0, 0, 0, mp_stamp_newer_transfer(0, put)};
  assert_true(inputs[3] == put);
  (void)time_launch(&t, 4, inputs);
  expect_near(micros(read_books(&t).now), 2002 + 756);
  // What was launched first does not wait for a transfer that it does not use.
  (void)mp_model_put(t.model, 0, 50000000);
  (void)time_launch(&t, 4, NULL);
  expect_near(micros(read_books(&t).now), 2002 + 2 * 756);
  time_end(&t);
}

static void test_the_host_waits_for_all(void **state) {
  (void)state;
  timed_t t = time_text(k_all_reduce, 4);
  (void)time_launch(&t, 4, NULL);
  expect_near(micros(read_books(&t).host), 0);
  mp_model_wait(t.model);
  expect_near(micros(read_books(&t).host), 757);
  mp_model_wait(t.model);
  (void)time_launch(&t, 4, NULL);
  expect_near(micros(read_books(&t).host), 757);
  expect_near(micros(read_books(&t).now), 2 * 757);
  time_end(&t);
}

// Seconds from `start` to the moment at which the host may see what the stamp names.
static double due_after(const timed_t *t, double start, mp_stamp_t stamp) {
  double moment = 0;
  assert_true(mp_model_due(t->model, stamp, &moment));
  return moment - start;
}

static void test_pace(void **state) {
  (void)state;
  timed_t t = time_text_on(POD " time:paced pace:1e6", k_all_reduce, 4);  // a second for a us
  assert_true(mp_model_is_paced(t.model));
  double before = mp_clock_seconds();
  const mp_stamp_t launch = time_launch(&t, 4, NULL);
  const mp_stamp_t wait = mp_model_get(t.model, 0, 0, launch);
  double after = mp_clock_seconds();
  assert_true(due_after(&t, before, launch) >= 757 && due_after(&t, after, launch) <= 757.001);
  assert_true(due_after(&t, before, wait) >= 757 && due_after(&t, after, wait) <= 757.001);
  // What the host asks for later is due later, whatever it did meanwhile.
  (void)usleep(20000);
  before = mp_clock_seconds();
  const mp_stamp_t next = time_launch(&t, 4, NULL);
  assert_true(due_after(&t, before, next) >= 757);
  // What devices do one after the other while the host goes on has only the times of the devices.
  const mp_stamp_t third = time_launch(&t, 4, NULL);
  after = mp_clock_seconds();
  assert_true(due_after(&t, after, third) <= 757 + 757 + 756.001);
  assert_true(due_after(&t, before, 0) < 0);
  time_end(&t);
}

static void test_pace_of_what_is_not_known_yet(void **state) {
  (void)state;
  timed_t t = time_text_on(POD " time:paced", k_loop, 1);
  const uint32_t logical[] = {0};
  const mp_stamp_t none[] = {0};
  mp_model_share_t *share;
  const mp_stamp_t stamp =
      mp_model_launch(t.program, &(mp_model_call_t){.number = 1}, 1, logical, none, &share);
  double moment;
  assert_false(mp_model_due(t.model, stamp, &moment));
  mp_path_add(mp_model_share_path(share), 1, 1, 1);
  mp_model_share_end(share);
  assert_true(mp_model_due(t.model, stamp, &moment));
  time_end(&t);
}

static void test_permutation(void **state) {
  (void)state;
  timed_t t = time_text(k_permute, 4);
  (void)time_launch(&t, 4, NULL);
  const mp_model_books_t books = read_books(&t);
  // Only the two ends of the message wait for it.
  expect_near(micros(books.devices[0]), 1 + 1001);
  expect_near(micros(books.devices[1]), 1 + 1001);
  expect_near(micros(books.devices[2]), 1);
  time_end(&t);
}

// Runs the loop so many times round, as its run would tell.
static double time_of_loop(timed_t *t, uint32_t rounds) {
  const uint32_t logical[] = {0};
  const mp_stamp_t none[] = {0};
  mp_model_share_t *share;
  const mp_moment_t before = read_books(t).now;
  (void)mp_model_launch(t->program, &(mp_model_call_t){.number = 1}, 1, logical, none, &share);
  assert_non_null(share);
  for (uint32_t i = 0; i < rounds; ++i) mp_path_add(mp_model_share_path(share), 1, 0, 1);
  mp_path_add(mp_model_share_path(share), 1, 1, 1);
  assert_int_equal(read_books(t).pending, 1);  // not before the run is over
  mp_model_share_end(share);
  return micros(read_books(t).now - before);
}

static void test_paths(void **state) {
  (void)state;
  timed_t t = time_text(k_loop, 1);
  (void)time_of_loop(&t, 0);  // the launch latency shows in the first one alone
  const double none = time_of_loop(&t, 0), one = time_of_loop(&t, 1), ten = time_of_loop(&t, 10);
  assert_true(one > none + 8);  // eight megabytes at 1 TB/s
  expect_near(ten - none, 10 * (one - none));
  // What was seen before comes to the same.
  assert_true(time_of_loop(&t, 10) == time_of_loop(&t, 10));
  mp_model_estimate_t estimate;
  assert_ok(mp_model_program_estimate(t.program, &estimate));
  expect_near(estimate.seconds * 1e6, one);
  assert_true(estimate.work_seconds > 0 && estimate.work_seconds <= estimate.seconds);
  time_end(&t);
}

// A thread for each device: the launches come one by one, in any order.
static void test_one_by_one(void **state) {
  (void)state;
  timed_t t = time_text(k_all_reduce, 4);
  (void)time_launch(&t, 4, NULL);
  const mp_moment_t whole = read_books(&t).now;
  const mp_stamp_t none[] = {0};
  const uint32_t order[] = {2, 0, 3, 1};
  for (uint32_t i = 0; i < 4; ++i) {
    mp_model_share_t *share;
    (void)mp_model_launch(t.program, &(mp_model_call_t){.number = 77}, 1, &order[i], none, &share);
  }
  const mp_model_books_t books = read_books(&t);
  assert_int_equal(books.launches, 2);
  assert_int_equal(books.pending, 0);
  expect_near(micros(books.now), micros(whole) + 756);
  time_end(&t);
}

// Reading times waits for runs that still execute, but not for runs after a launch that other
// devices have yet to join.
static void test_awaited(void **state) {
  (void)state;
  timed_t t = time_text(k_loop, 1);
  const uint32_t ids[] = {0, 1, 2, 3};
  const mp_stamp_t none[] = {0};
  mp_model_share_t *shares[2], *share;
  assert_true(mp_model_await(t.model, 0));
  (void)mp_model_launch(t.program, &(mp_model_call_t){.number = 1}, 1, ids, none, &shares[0]);
  assert_false(mp_model_await(t.model, 0));
  mp_program_t *device_program = compile_text(k_all_reduce);
  mp_model_program_t *sum;
  assert_ok(mp_model_program_create(t.model, device_program, 4, ids, &sum));
  (void)mp_model_launch(sum, &(mp_model_call_t){.number = 1}, 1, ids, none, &share);
  (void)mp_model_launch(t.program, &(mp_model_call_t){.number = 2}, 1, ids, none, &shares[1]);
  for (uint32_t i = 0; i < 2; ++i) mp_path_add(mp_model_share_path(shares[i]), 1, 1, 1);
  assert_false(mp_model_await(t.model, 0));
  mp_model_share_end(shares[0]);
  assert_true(mp_model_await(t.model, 1000));
  mp_model_share_end(shares[1]);
  mp_model_program_release(sum, device_program);
  time_end(&t);
}

// Launches on some devices, as the `number`th on them; the program has no choices.
static void launch_some(mp_model_program_t *program, uint64_t number, uint32_t count,
                        const uint32_t *logical) {
  const mp_stamp_t none[4] = {0};
  mp_model_share_t *shares[4];
  for (uint32_t i = 0; i < count; ++i) {
    (void)mp_model_launch(program, &(mp_model_call_t){.number = number}, 1, &logical[i], &none[i],
                          &shares[i]);
    assert_null(shares[i]);
  }
}

// A thread for each device, two of which have compiled the program for themselves, as threads do
// that come to it at the same time: it is one launch all the same, and another one is for other
// devices.
static void test_compiled_by_each(void **state) {
  (void)state;
  timed_t t = time_text(k_all_reduce, 4);
  (void)time_launch(&t, 4, NULL);
  const mp_moment_t whole = read_books(&t).now;
  mp_program_t *again = compile_text(k_all_reduce);
  mp_model_program_t *chip_program, *elsewhere;
  const uint32_t ids[] = {0, 1, 2, 3}, others[] = {3, 2, 1, 0};
  assert_ok(mp_model_program_create(t.model, again, 4, ids, &chip_program));
  assert_ok(mp_model_program_create(t.model, again, 4, others, &elsewhere));
  const uint32_t by_chip[] = {2, 0}, by_first[] = {3, 1};
  launch_some(chip_program, 77, 2, by_chip);
  launch_some(t.program, 77, 2, by_first);
  mp_model_books_t books = read_books(&t);
  assert_int_equal(books.launches, 2);
  assert_int_equal(books.pending, 0);
  expect_near(micros(books.now), micros(whole) + 756);
  launch_some(chip_program, 78, 2, by_chip);
  launch_some(elsewhere, 78, 2, by_first);
  books = read_books(&t);
  assert_int_equal(books.launches, 4);
  expect_near(micros(books.now), micros(whole) + 3 * 756);
  mp_model_program_release(elsewhere, NULL);
  mp_model_program_release(chip_program, again);
  time_end(&t);
}

// Times are read while some threads have launched and others do something else first: the launch is
// counted once.
static void test_times_read_between_launches(void **state) {
  (void)state;
  timed_t t = time_text(k_all_reduce, 4);
  (void)time_launch(&t, 4, NULL);
  const mp_moment_t whole = read_books(&t).now;
  mp_program_t *device_program = compile_text(k_add);
  mp_model_program_t *other;
  const uint32_t ids[] = {0, 1, 2, 3}, early[] = {2, 0}, late[] = {3, 1};
  assert_ok(mp_model_program_create(t.model, device_program, 4, ids, &other));
  launch_some(t.program, 77, 2, early);
  launch_some(t.program, 78, 1, early);
  assert_int_equal(read_books(&t).launches, 3);
  launch_some(other, 200, 2, late);
  launch_some(t.program, 77, 2, late);
  launch_some(t.program, 78, 1, late);
  mp_model_books_t books = read_books(&t);
  assert_int_equal(books.launches, 5);
  const double alone = micros(books.now) - micros(whole) - 2 * 756;
  assert_true(alone > 0 && alone < 10);  // of the other program
  // The launch 78 failed on two devices: what comes next is another launch.
  const uint32_t all[] = {0, 1, 2, 3};
  launch_some(t.program, 79, 4, all);
  launch_some(t.program, 80, 4, all);
  books = read_books(&t);
  assert_int_equal(books.launches, 7);
  assert_int_equal(books.pending, 0);
  expect_near(micros(books.now), micros(whole) + alone + 4 * 756);
  mp_model_program_release(other, device_program);
  time_end(&t);
}

// Of what one_device_alone has to find: sums over all devices.
static void add_up_books(const mp_model_program_books_t *program, void *context) {
  mp_replay_device_books_t *out = context;
  *out = mp_books_total(&program->books);
  for (uint32_t s = 0; s < program->books.num_steps; ++s) {
    if (program->books.times[s] != 0) assert_int_equal(program->books.counts[s], program->launches);
  }
  assert_true(program->available == program->time && out->work <= program->time);
}

// A program without collectives of which one device after another is launched on, as by a process
// that has a program for each of its devices: what ran is in the books, and nothing else.
static void test_one_device_alone(void **state) {
  (void)state;
  timed_t t = time_text_on(POD " time:paced", k_add, 4);
  const mp_stamp_t none[] = {0};
  const uint32_t order[] = {2, 2, 0};
  for (uint32_t i = 0; i < 3; ++i) {
    mp_model_share_t *share;
    double due;
    const mp_stamp_t stamp = mp_model_launch(t.program, &(mp_model_call_t){.number = 10 + i}, 1,
                                             &order[i], none, &share);
    assert_true(mp_model_due(t.model, stamp, &due));  // no other device is waited for
  }
  mp_model_books_t books;
  mp_replay_device_books_t total;
  mp_model_read(t.model, &books, add_up_books, &total);
  assert_int_equal(books.launches, 3);
  assert_int_equal(books.pending, 0);
  const mp_moment_t once = books.devices[0] - mp_moment_of(1e-6);
  assert_true(total.work == 3 * once && once > 0);
  assert_true(books.devices[1] == 0 && books.devices[3] == 0);
  assert_true(books.devices[2] == mp_moment_of(1e-6) + 2 * once);
  time_end(&t);
}

static void expect_transfers(const mp_model_program_books_t *program, void *context) {
  const mp_replay_device_books_t total = mp_books_total(&program->books);
  assert_int_equal(program->launches, 2);
  // Devices 1 and 3 wait for one and two megabytes, and no device waits for them.
  expect_near(micros(program->transfers), 1001 + 2001);
  assert_true(program->available == total.work && program->available == 4 * program->time);
  *(bool *)context = true;
}

// Devices that begin at moments of their own, because of what they are given.
static void test_transfers(void **state) {
  (void)state;
  bool is_there = false;
  timed_t t = time_text(k_add, 4);
  mp_stamp_t inputs[4] = {0};
  inputs[1] = mp_model_put(t.model, 1, 1000000);
  inputs[3] = mp_model_put(t.model, 3, 2000000);
  for (int i = 0; i < 2; ++i) (void)time_launch(&t, 4, inputs);
  mp_model_books_t books;
  mp_model_read(t.model, &books, expect_transfers, &is_there);
  assert_true(is_there);
  time_end(&t);
}

// The same log gives the same bits, whenever it is computed.
static void test_deterministic(void **state) {
  (void)state;
  mp_moment_t ends[2] = {0};
  for (int round = 0; round < 2; ++round) {
    timed_t t = time_text(k_all_reduce, 4);
    for (uint32_t i = 0; i < 600; ++i) {
      const mp_stamp_t put = mp_model_put(t.model, i % 4, 1000 * (i % 37));
      const mp_stamp_t inputs[4] = {0, put, 0, 0};
      const mp_stamp_t stamp = time_launch(&t, 4, inputs);
      if (i % 5 == 0) mp_model_get(t.model, i % 3, 100 * i, stamp);
      if (round == 1 && i % 7 == 0) (void)read_books(&t);
    }
    ends[round] = read_books(&t).now;
    time_end(&t);
  }
  assert_true(ends[0] == ends[1] && ends[0] != 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_all_reduce),
      cmocka_unit_test(test_host_waits),
      cmocka_unit_test(test_inputs),
      cmocka_unit_test(test_the_host_waits_for_all),
      cmocka_unit_test(test_pace),
      cmocka_unit_test(test_pace_of_what_is_not_known_yet),
      cmocka_unit_test(test_permutation),
      cmocka_unit_test(test_paths),
      cmocka_unit_test(test_awaited),
      cmocka_unit_test(test_one_by_one),
      cmocka_unit_test(test_compiled_by_each),
      cmocka_unit_test(test_times_read_between_launches),
      cmocka_unit_test(test_one_device_alone),
      cmocka_unit_test(test_transfers),
      cmocka_unit_test(test_deterministic),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
