// One process that stands for all of its job (option `bootstrap`: absent): what it knows of the
// results of collectives.
#include "sim/runtime/runs/shapes.h"
#include "tests/unit/support/launches.h"
#include "tests/unit/support/timed.h"
#include "tests/unit/support/unit.h"

// Process `rank` of four, with one device each.
static mp_client_t *make_lone_client(int64_t rank) {
  mp_named_value_t values[] = {
      {.name = MP_STR("bootstrap"), .type = MP_VALUE_STRING, .string_value = MP_STR("absent")},
      {.name = MP_STR("topology"), .type = MP_VALUE_STRING, .string_value = MP_STR("v6e:2x2")},
      {.name = MP_STR("time"), .type = MP_VALUE_STRING, .string_value = MP_STR("model")},
      {.name = MP_STR("values"), .type = MP_VALUE_STRING, .string_value = MP_STR("shapes")},
      {.name = MP_STR("log_level"), .type = MP_VALUE_STRING, .string_value = MP_STR("error")},
      {.name = MP_STR("num_nodes"), .type = MP_VALUE_INT64, .int64_value = 4},
      {.name = MP_STR("node_id"), .type = MP_VALUE_INT64, .int64_value = rank},
  };
  mp_options_t *options;
  assert_ok(mp_options_create(values, sizeof(values) / sizeof(values[0]), &options));
  mp_client_t *client = NULL;
  assert_ok(mp_client_create(options, NULL, NULL, &client));
  mp_options_release(options);
  return client;
}

// A sum, a broadcast and an exchange of the arguments of four replicas.
#define MAIN(op, groups, region)                                                  \
  "module @alone attributes {mhlo.num_replicas = 4 : i32} {\n"                    \
  "  func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"              \
  "    %y = \"stablehlo." op ", replica_groups = dense<" groups "xi64>}> " region \
  " : (tensor<4xf32>) -> tensor<4xf32>\n"                                         \
  "    return %y : tensor<4xf32>\n"                                               \
  "  }\n}\n"
#define SUM(groups)                                                                           \
  MAIN("all_reduce\"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 0, type = 0>", \
       groups,                                                                                \
       "({\n^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"                                        \
       "  %s = stablehlo.add %a, %b : tensor<f32>\n"                                          \
       "  stablehlo.return %s : tensor<f32>\n})")
#define BROADCAST(groups)                                \
  MAIN(                                                  \
      "collective_broadcast\"(%x) <{channel_handle = "   \
      "#stablehlo.channel_handle<handle = 0, type = 0>", \
      groups, "")
#define EXCHANGE(groups)                                                           \
  MAIN(                                                                            \
      "all_to_all\"(%x) <{split_dimension = 0 : i64, concat_dimension = 0 : i64, " \
      "split_count = 4 : i64",                                                     \
      groups, "")
#define FOUR  "[[0, 1, 2, 3]]> : tensor<1x4"
#define PAIRS "[[0, 1], [2, 3]]> : tensor<2x2"
#define EACH  "[[0], [1], [2], [3]]> : tensor<4x1"

// Process `rank` brings 2; `expected` 0: the result is not known.
static void expect(int64_t rank, const char *text, mp_others_t others, float expected) {
  mp_client_t *client = make_lone_client(rank);
  mp_executable_t *executable = make_executable(client, compile_text(text));
  test_launch_t l;
  launch_begin(&l, executable, 1);
  l.num_devices = 1;
  l.logical[0] = (uint32_t)rank;
  l.launch.others = others;
  l.arguments[0][0] = make_f32(mp_client_device(client, (uint32_t)rank), 4, 2);
  launch_go(&l);
  assert_ok(mp_event_await(l.done[0]));
  if (expected != 0) {
    expect_f32(l.results[0], 4, expected);
  } else {
    float data[4];
    mp_event_t *done = NULL;
    assert_ok(mp_buffer_to_host(l.results[0], data, sizeof(data), NULL, &done));
    assert_status(mp_event_await(done), MP_FAILED_PRECONDITION,
                  "this array has no values: f32[4], result 0 of alone");
    mp_event_release(done);
  }
  launch_end(&l);
  mp_executable_release(executable);
  mp_client_release(client);
}

// The others bring what this one brings.
static void test_equal_processes(void **state) {
  (void)state;
  expect(1, SUM(FOUR), MP_OTHERS_EQUAL, 8);
  expect(1, SUM(PAIRS), MP_OTHERS_EQUAL, 4);
  expect(1, SUM(EACH), MP_OTHERS_EQUAL, 2);
  expect(1, EXCHANGE(FOUR), MP_OTHERS_EQUAL, 0);
}

// A broadcast is known in the process that is the source.
static void test_broadcasts(void **state) {
  (void)state;
  expect(2, BROADCAST(PAIRS), MP_OTHERS_EQUAL, 2);
  expect(3, BROADCAST(PAIRS), MP_OTHERS_EQUAL, 0);
}

// The same for a broadcast that is made of a sum.
static void test_broadcasts_by_sums(void **state) {
  (void)state;
  expect(1, SUM(FOUR), MP_OTHERS_ZERO, 2);
  expect(1, SUM(FOUR), MP_OTHERS_UNKNOWN, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_equal_processes),
      cmocka_unit_test(test_broadcasts),
      cmocka_unit_test(test_broadcasts_by_sums),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
