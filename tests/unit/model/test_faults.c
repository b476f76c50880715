// Faults: which launches and transfers fail, which bits flip, what is slow and for how long.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/alloc.h"
#include "sim/model/faults/faults.h"
#include "tests/unit/support/network_test.h"
#include "tests/unit/support/timed.h"

// Round numbers: 1 us per launch and op, 1 GB/s and 1 us per link, 1 TB/s of memory.
#define POD                                                                                    \
  "ring:4 hbm:1GiB launch_latency:1us op_latency:1us links.latency:1us links.bandwidth:1GB/s " \
  "memory.bandwidth:1TB/s host_link.latency:2us host_link.bandwidth:1GB/s flops.f32:1T"

#define REPLICAS "attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 4 : i32} {\n"

static const char k_all_reduce[] =
    "module @jit_sum " REPLICAS
    "func.func @main(%x: tensor<250000xf32>) -> tensor<250000xf32> {\n"
    "  %r = \"stablehlo.all_reduce\"(%x) <{replica_groups = dense<[[0,1,2,3]]> : "
    "tensor<1x4xi64>}> ({\n^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
    "  %s = stablehlo.add %a, %b : tensor<f32>\n  stablehlo.return %s : tensor<f32>\n})"
    " : (tensor<250000xf32>) -> tensor<250000xf32> loc(#loc)\n"
    "  return %r : tensor<250000xf32>\n}\n}\n"
    "#file = loc(\"train.py\":7:3)\n#loc = loc(\"psum\"(#file))\n";

static const char k_permute[] =
    "module @shift " REPLICAS
    "func.func @main(%x: tensor<250000xf32>) -> tensor<250000xf32> {\n"
    "  %r = \"stablehlo.collective_permute\"(%x) <{source_target_pairs = dense<[[0,1]]> : "
    "tensor<1x2xi64>}> : (tensor<250000xf32>) -> tensor<250000xf32>\n"
    "  return %r : tensor<250000xf32>\n}\n}\n";

static const char k_square[] =
    "module @square " REPLICAS
    "func.func @main(%x: tensor<1000000xf32>) -> (tensor<1000000xf32>, tensor<3xi1>) {\n"
    "  %y = stablehlo.multiply %x, %x : tensor<1000000xf32>\n"
    "  %t = stablehlo.constant dense<true> : tensor<3xi1>\n"
    "  return %y, %t : tensor<1000000xf32>, tensor<3xi1>\n}\n}\n";

static const uint32_t k_four[] = {0, 1, 2, 3};

// A program on four devices of a pod with faults.
typedef struct {
  timed_t timed;
  mp_faults_t *faults;
  mp_link_users_t *users;
} world_t;

static world_t world_with(const char *text, const char *algorithms) {
  world_t w = {0};
  mp_options_t *options = NULL;
  const mp_named_value_t values[] = {
      {.name = MP_STR("time"), .type = MP_VALUE_STRING, .string_value = MP_STR("model")},
      {.name = MP_STR("algorithms"), .type = MP_VALUE_STRING, .string_value = mp_str(algorithms)}};
  assert_ok(mp_options_create(values, 2, &options));
  w.timed = time_program_with(options, POD, compile_text(text), 4);
  assert_ok(mp_faults_create(w.timed.pod, options, &w.faults));
  mp_options_release(options);
  return w;
}

static world_t world_of(const char *text) {
  return world_with(text, "");
}

static void world_end(world_t *w) {
  mp_link_users_release(w->users);
  mp_faults_release(w->faults);
  time_end(&w->timed);
}

static void add(world_t *w, const char *text) {
  assert_ok(mp_faults_add(w->faults, "f.yaml", mp_str(text)));
}

static void heal(world_t *w) {
  mp_faults_clear(w->faults);
}

static mp_status_t meet_flips(world_t *w, uint32_t count, const uint32_t *logical,
                              uint32_t *num_flips, mp_faults_flip_t **flips) {
  const mp_faults_launch_t launch = {.program = w->timed.device_program,
                                     .num_devices = 4,
                                     .ids = k_four,
                                     .num_shares = count,
                                     .logical = logical,
                                     .users = &w->users};
  return mp_faults_meet_launch(w->faults, &launch, num_flips, flips);
}

// A launch that flips nothing.
static mp_status_t meet(world_t *w) {
  uint32_t num_flips = 0;
  mp_faults_flip_t *flips = NULL;
  MP_RETURN_IF_ERROR(meet_flips(w, 4, k_four, &num_flips, &flips));
  assert_null(flips);
  return NULL;
}

// Microseconds that one launch takes.
static double launch(world_t *w) {
  static uint64_t number = 0;
  const mp_stamp_t none[4] = {0};
  mp_model_share_t *shares[4];
  mp_health_t *health;
  mp_model_books_t before, after;
  assert_ok(meet(w));
  if (mp_faults_take_health(w->faults, &health)) mp_model_set_health(w->timed.model, health);
  mp_model_read(w->timed.model, &before, NULL, NULL);
  const mp_stamp_t stamp = mp_model_launch(w->timed.program, &(mp_model_call_t){.number = ++number},
                                           4, k_four, none, shares);
  mp_model_get(w->timed.model, 0, 0, stamp);
  mp_model_read(w->timed.model, &after, NULL, NULL);
  assert_int_equal(after.lost, 0);
  return mp_moment_seconds(after.now - before.now) * 1e6;
}

static void expect_near(double found, double expected) {
  if (fabs(found - expected) > 1e-3 * expected) fail_msg("%f, expected %f", found, expected);
}

// ---- What is dead ----

static void a_dead_device_is_named(void **state) {
  (void)state;
  world_t w = world_of(k_square);
  add(&w, "- {device: 2, dead: true}");
  assert_status(meet(&w), MP_UNAVAILABLE, "square (launch 1): device 2 is dead (f.yaml:1)");
  heal(&w);
  assert_ok(meet(&w));
  world_end(&w);
}

static void a_dead_link_is_named_with_what_needs_it(void **state) {
  (void)state;
  world_t w = world_of(k_all_reduce);
  add(&w, "\n- {link: slice 0 (3) -x, dead: true}");
  assert_status(meet(&w), MP_UNAVAILABLE,
                "jit_sum (launch 1): link 'slice 0 (3) -x' is dead (f.yaml:2); "
                "stablehlo.all_reduce (psum at train.py:7:3) needs it");
  heal(&w);
  // No collective goes to the host.
  add(&w, "- {link: device 1 to host, dead: true}");
  assert_ok(meet(&w));
  world_end(&w);
}

static void the_algorithm_that_was_chosen_says_which_links_are_needed(void **state) {
  (void)state;
  world_t w = world_with(k_all_reduce, "all_reduce:ring");
  add(&w, "- {link: slice 0 (3) -x, dead: true}");
  assert_ok(meet(&w));
  add(&w, "- {link: slice 0 (3) +x, dead: true}");
  assert_status(meet(&w), MP_UNAVAILABLE, "'slice 0 (3) +x' is dead");
  world_end(&w);
}

static void a_permutation_needs_its_ways_only(void **state) {
  (void)state;
  world_t w = world_of(k_permute);
  add(&w, "- {link: slice 0 (1) +x, dead: true}");
  assert_ok(meet(&w));
  add(&w, "- {link: slice 0 (0) +x, dead: true}");
  assert_status(meet(&w), MP_UNAVAILABLE, "'slice 0 (0) +x' is dead");
  world_end(&w);
}

static void launches_of_the_program_are_counted(void **state) {
  (void)state;
  world_t w = world_of(k_all_reduce);
  add(&w, "- {device: 0, dead: true, program: sum, step: 3, until: 4}");
  add(&w, "- {device: 1, dead: true, program: su}");
  assert_ok(meet(&w));
  assert_ok(meet(&w));
  assert_status(meet(&w), MP_UNAVAILABLE, "(launch 3): device 0");
  assert_status(meet(&w), MP_UNAVAILABLE, "(launch 4): device 0");
  assert_ok(meet(&w));
  world_end(&w);
}

static void threads_that_launch_device_by_device_count_alike(void **state) {
  (void)state;
  world_t w = world_of(k_all_reduce);
  uint32_t count = 0;
  mp_faults_flip_t *flips = NULL;
  add(&w, "- {device: 3, dead: true, program: jit_sum, step: 2}");
  for (uint32_t d = 0; d < 4; ++d) assert_ok(meet_flips(&w, 1, &k_four[d], &count, &flips));
  for (uint32_t d = 0; d < 4; ++d) {
    assert_status(meet_flips(&w, 1, &k_four[d], &count, &flips), MP_UNAVAILABLE, "(launch 2)");
  }
  world_end(&w);
}

static void transfers_meet_what_is_dead(void **state) {
  (void)state;
  world_t w = world_of(k_all_reduce);
  add(&w, "- {device: 1, dead: true}\n- {link: device 2 from host, dead: true}");
  const mp_network_end_t host = mp_network_host(0);
  assert_status(mp_faults_meet_transfer(w.faults, host, mp_network_device(1)), MP_UNAVAILABLE,
                "device 1 is dead (f.yaml:1); a transfer from host 0 to device 1 needs it");
  assert_status(mp_faults_meet_transfer(w.faults, mp_network_device(1), mp_network_device(0)),
                MP_UNAVAILABLE, "device 1 is dead");
  assert_status(mp_faults_meet_transfer(w.faults, host, mp_network_device(2)), MP_UNAVAILABLE,
                "link 'device 2 from host' is dead (f.yaml:2)");
  assert_ok(mp_faults_meet_transfer(w.faults, mp_network_device(2), host));
  assert_ok(mp_faults_meet_transfer(w.faults, mp_network_device(0), mp_network_device(3)));
  world_end(&w);
}

// ---- Bits ----

static void a_flip_finds_its_bit(void **state) {
  (void)state;
  world_t w = world_of(k_square);
  uint32_t count = 0;
  mp_faults_flip_t *flips = NULL;
  add(&w,
      "- {flip: {result: 0, device: 2, element: 5, bit: 30}, program: square, step: 2}\n"
      "- {flip: {argument: 0, device: 3, bit: 0}, program: square, step: 2}");
  assert_ok(meet(&w));
  assert_ok(meet_flips(&w, 4, k_four, &count, &flips));
  assert_int_equal(count, 2);
  assert_true(flips[0].is_result && flips[0].index == 0 && flips[0].logical == 2);
  assert_true(flips[0].byte == 23 && flips[0].mask == 0x40);
  assert_true(!flips[1].is_result && flips[1].logical == 3 && flips[1].byte == 0);
  assert_int_equal(flips[1].mask, 1);
  mp_free(flips);
  assert_ok(meet(&w));  // once is enough
  world_end(&w);
}

static void flips_that_do_not_fit_are_refused(void **state) {
  (void)state;
  world_t w = world_of(k_square);
  static const struct {
    const char *what, *words;
  } bad[] = {
      {"result: 2, device: 0, bit: 0", "f.yaml:1: key 'flip.result': square has 2 of them"},
      {"result: \"['w']\", device: 0, bit: 0", "square has no result '['w']'"},
      {"argument: 1, device: 0, bit: 0", "key 'flip.argument': square has 1 of them"},
      {"result: 0, device: 0, element: 1000000, bit: 0", "key 'flip.element'"},
      {"result: 0, device: 0, bit: 32", "key 'flip.bit'"},
      {"result: 1, device: 0, bit: 1", "key 'flip.bit': square has 1 of them"},
  };
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i) {
    char text[128];
    snprintf(text, sizeof(text), "- {flip: {%s}, program: square}", bad[i].what);
    add(&w, text);
    assert_status(meet(&w), MP_INVALID_ARGUMENT, bad[i].words);
    heal(&w);
  }
  world_end(&w);
}

// ---- What is slow ----

static void a_slow_device_lengthens_its_work(void **state) {
  (void)state;
  world_t w = world_of(k_square);
  // 8 MB at 1 TB/s, and the latency of an op; then the constant.
  const double well = launch(&w);
  add(&w, "- {device: 1, slow: 3}");
  const double slow = launch(&w);
  expect_near(slow - 1, 3 * (well - 1));
  add(&w, "- {device: 1, slow: 2}");  // both together
  expect_near(launch(&w) - 1, 6 * (well - 1));
  heal(&w);
  expect_near(launch(&w), well);
  world_end(&w);
}

static void a_slow_link_lengthens_what_goes_over_it(void **state) {
  (void)state;
  world_t w = world_of(k_permute);
  expect_near(launch(&w), 1 + 1001);
  add(&w, "- {link: slice 0 (0) +x, bandwidth: 0.5}");
  expect_near(launch(&w), 1 + 2001);
  heal(&w);
  add(&w, "- {link: slice 0 (0) +x, loss: 0.75, latency: 9us}");
  expect_near(launch(&w), 1 + 4010);
  heal(&w);
  add(&w, "- {link: slice 0 (1) +x, bandwidth: 0.5}");
  expect_near(launch(&w), 1 + 1001);
  world_end(&w);
}

static void a_slow_link_is_slow_from_launch_to_launch(void **state) {
  (void)state;
  world_t w = world_of(k_all_reduce);
  const double well = launch(&w);
  add(&w, "- {link: slice 0 (0) +x, bandwidth: 0.5, program: sum, step: 2, until: 3}");
  expect_near(launch(&w), well);
  const double slow = launch(&w);
  // A two-way ring: half of the bytes go round over the slow link.
  expect_near(slow, 1 + 2 * 750 + 6);
  expect_near(launch(&w), slow);
  expect_near(launch(&w), well);
  world_end(&w);
}

static void many_healths_in_turn(void **state) {
  (void)state;
  world_t w = world_of(k_permute);
  for (int round = 0; round < 2; ++round) {
    for (int i = 1; i <= 20; ++i) {
      char text[64];
      snprintf(text, sizeof(text), "- {link: slice 0 (0) +x, latency: %dus}", i);
      heal(&w);
      add(&w, text);
      expect_near(launch(&w), 1 + 1001 + i);
    }
  }
  world_end(&w);
}

static void slow_host_links_lengthen_transfers(void **state) {
  (void)state;
  world_t w = world_of(k_permute);
  mp_model_books_t books;
  mp_health_t *health;
  add(&w, "- {link: device 1 to host, bandwidth: 0.25}");
  assert_true(mp_faults_take_health(w.faults, &health));
  mp_health_release(health);
  assert_false(mp_faults_take_health(w.faults, &health));
  heal(&w);
  add(&w, "- {link: device 1 to host, bandwidth: 0.25}");
  assert_true(mp_faults_take_health(w.faults, &health));
  mp_model_set_health(w.timed.model, health);
  mp_model_get(w.timed.model, 1, 1000000, 0);
  mp_model_read(w.timed.model, &books, NULL, NULL);
  expect_near(mp_moment_seconds(books.host) * 1e6, 4002);
  world_end(&w);
}

static void stragglers_follow_from_their_seed(void **state) {
  (void)state;
  double times[3][20];
  static const int seeds[] = {5, 5, 6};
  for (int i = 0; i < 3; ++i) {
    char text[64];
    world_t w = world_of(k_square);
    snprintf(text, sizeof(text), "- stragglers: {seed: %d, spread: 0.5}", seeds[i]);
    add(&w, text);
    for (int n = 0; n < 20; ++n) times[i][n] = launch(&w);
    world_end(&w);
  }
  assert_memory_equal(times[0], times[1], sizeof(times[0]));
  for (int n = 0; n < 20; ++n) {
    assert_true(times[0][n] != times[2][n]);
    assert_true(n == 0 || times[0][n] != times[0][n - 1]);
  }
}

static void stragglers_have_the_described_number_and_speed(void **state) {
  (void)state;
  const mp_stragglers_t stragglers = {.seed = 1, .spread = 0.5, .share = 0.1};
  mp_health_t *health = NULL;
  const mp_health_t like = {.num_devices = 100, .num_stragglers = 1, .stragglers = &stragglers};
  assert_ok(mp_health_create(&like, &health));
  double sum = 0;
  int slow = 0;
  enum { ROUNDS = 1000 };
  for (uint64_t n = 0; n < ROUNDS; ++n) {
    for (uint32_t d = 0; d < 100; ++d) {
      const double slowness = mp_health_slowness(health, d, 9, n);
      assert_true(slowness >= 1);
      slow += slowness > 1;
      sum += slowness - 1;
    }
  }
  expect_near(round(slow / 1000.0), 10);
  assert_true(fabs(sum / slow - 0.5) < 0.02);
  mp_health_release(health);
}

// ---- What is refused ----

static void faults_of_another_pod_are_refused(void **state) {
  (void)state;
  world_t w = world_of(k_square);
  static const struct {
    const char *text, *words;
  } bad[] = {
      {"- {device: 4, dead: true}", "f.yaml:1: key 'device': expected 0 to 3, got 4"},
      {"- {device: 1, slow: 2}\n- {link: slice 0 (1) +y, dead: true}",
       "f.yaml:2: key 'link': the pod has no link 'slice 0 (1) +y'; did you mean"},
      {"- {link: the one in the cellar, dead: true}", "its links have names such as 'slice 0"},
      {"- {flip: {result: 0, device: 9, bit: 0}, program: f}", "expected 0 to 3, got 9"},
  };
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i) {
    assert_status(mp_faults_add(w.faults, "f.yaml", mp_str(bad[i].text)), MP_INVALID_ARGUMENT,
                  bad[i].words);
    assert_int_equal(mp_faults_count(w.faults), 0);
  }
  world_end(&w);
}

static void create_with(const char *name, const char *value, const char *faults,
                        const char *words) {
  mp_pod_t *pod = NULL;
  mp_options_t *options = NULL;
  mp_faults_t *made = NULL;
  const mp_named_value_t values[] = {
      {.name = mp_str(name), .type = MP_VALUE_STRING, .string_value = mp_str(value)},
      {.name = MP_STR("faults"), .type = MP_VALUE_STRING, .string_value = mp_str(faults)}};
  assert_ok(mp_options_create(values, 2, &options));
  assert_ok(mp_pod_create_from_name(mp_str(POD), "test", &pod));
  if (words == NULL) {
    assert_ok(mp_faults_create(pod, options, &made));
    assert_int_equal(mp_faults_count(made), 1);
  } else {
    assert_status(mp_faults_create(pod, options, &made), MP_INVALID_ARGUMENT, words);
  }
  mp_faults_release(made);
  mp_options_release(options);
  mp_pod_release(pod);
}

static void the_option_is_a_list_or_a_file(void **state) {
  (void)state;
  create_with("time", "model", "[{device: 1, slow: 2}]", NULL);
  create_with("time", "off", "- {device: 1, dead: true}", NULL);
  create_with("time", "off", "- {device: 1, slow: 2}", "need the option time: model");
  create_with("time", "off", "- {device: 9, dead: true}", "option faults:1: key 'device'");
  create_with("values", "shapes", "- {flip: {result: 0, device: 1, bit: 1}, program: f}",
              "no bits to flip");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_dead_device_is_named),
      cmocka_unit_test(a_dead_link_is_named_with_what_needs_it),
      cmocka_unit_test(the_algorithm_that_was_chosen_says_which_links_are_needed),
      cmocka_unit_test(a_permutation_needs_its_ways_only),
      cmocka_unit_test(launches_of_the_program_are_counted),
      cmocka_unit_test(threads_that_launch_device_by_device_count_alike),
      cmocka_unit_test(transfers_meet_what_is_dead),
      cmocka_unit_test(a_flip_finds_its_bit),
      cmocka_unit_test(flips_that_do_not_fit_are_refused),
      cmocka_unit_test(a_slow_device_lengthens_its_work),
      cmocka_unit_test(a_slow_link_lengthens_what_goes_over_it),
      cmocka_unit_test(a_slow_link_is_slow_from_launch_to_launch),
      cmocka_unit_test(many_healths_in_turn),
      cmocka_unit_test(slow_host_links_lengthen_transfers),
      cmocka_unit_test(stragglers_follow_from_their_seed),
      cmocka_unit_test(stragglers_have_the_described_number_and_speed),
      cmocka_unit_test(faults_of_another_pod_are_refused),
      cmocka_unit_test(the_option_is_a_list_or_a_file),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
