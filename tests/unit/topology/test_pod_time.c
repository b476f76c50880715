// What descriptions and options say about the model of time.

#include "tests/unit/support/unit.h"
#include "topology/pod.h"

#define FIXTURES MINIPOD_SOURCE_DIR "/tests/fixtures/topology/"

static mp_pod_t *pod_named(const char *text) {
  mp_pod_t *pod = NULL;
  assert_ok(mp_pod_create_from_name(mp_str(text), "topology", &pod));
  return pod;
}

static mp_options_t *options_of(const char *name, const char *value) {
  mp_options_t *options = NULL;
  const mp_named_value_t given = {
      .name = mp_str(name), .type = MP_VALUE_STRING, .string_value = mp_str(value)};
  assert_ok(mp_options_create(&given, name[0] == '\0' ? 0 : 1, &options));
  return options;
}

static mp_pod_time_t time_of(const char *text, const char *option, const char *value) {
  mp_pod_t *pod = pod_named(text);
  mp_options_t *options = options_of(option, value);
  mp_pod_time_t time = {0};
  assert_ok(mp_pod_read_time(pod, options, &time));
  time.algorithms = time.calibration = NULL;
  mp_options_release(options);
  mp_pod_release(pod);
  return time;
}

static void options_override_what_is_said_about_time(void **state) {
  (void)state;
  assert_int_equal(time_of("ring:4", "", "").mode, MP_TIME_OFF);
  assert_true(time_of("ring:4", "", "").pace == 1);
  assert_int_equal(time_of("ring:4 time:model", "", "").mode, MP_TIME_MODEL);
  assert_int_equal(time_of("ring:4 time:paced pace:1e3", "", "").mode, MP_TIME_PACED);
  assert_true(time_of("ring:4 time:paced pace:1e3", "", "").pace == 1e3);
  assert_true(time_of("ring:4 time:paced pace:1e3", "pace", "0.5").pace == 0.5);
  assert_int_equal(time_of("ring:4 time:paced", "time", "off").mode, MP_TIME_OFF);
  assert_int_equal(time_of("ring:4", "clock", "virtual").clock, MP_CLOCK_VIRTUAL);
  assert_int_equal(time_of("ring:4 clock:virtual", "", "").clock, MP_CLOCK_VIRTUAL);
  assert_int_equal(time_of("ring:4 values:shapes", "", "").values, MP_VALUES_MODE_SHAPES);
  assert_int_equal(time_of("ring:4 values:shapes", "values", "real").values, MP_VALUES_MODE_REAL);
}

static mp_platform_t platform_of(const char *text, const char *value) {
  mp_pod_t *pod = pod_named(text);
  mp_options_t *options = value == NULL ? NULL : options_of("platform", value);
  mp_platform_t platform;
  assert_ok(mp_pod_read_platform(pod, options, &platform));
  mp_options_release(options);
  mp_pod_release(pod);
  return platform;
}

static void options_override_the_platforms_name(void **state) {
  (void)state;
  assert_int_equal(platform_of("v5e:2x2", NULL), MP_PLATFORM_TPU);
  assert_int_equal(platform_of("7x:2x2x1", NULL), MP_PLATFORM_TPU);
  assert_int_equal(platform_of("v5e:2x2 platform:minipod", NULL), MP_PLATFORM_MINIPOD);
  assert_int_equal(platform_of("v5e:2x2 platform:cpu", "auto"), MP_PLATFORM_TPU);
  assert_int_equal(platform_of("h100:8", NULL), MP_PLATFORM_GPU);
  assert_int_equal(platform_of("ring:4", NULL), MP_PLATFORM_MINIPOD);
  assert_int_equal(platform_of("ring:4", "cpu"), MP_PLATFORM_CPU);
  assert_int_equal(platform_of("v5e:2x2 platform:tpu", NULL), MP_PLATFORM_TPU);
  assert_int_equal(platform_of("v5e:2x2 platform:tpu", "minipod"), MP_PLATFORM_MINIPOD);
  assert_int_equal(platform_of("h100:8", "gpu"), MP_PLATFORM_GPU);
}

static void expect_refused(const char *option, const char *value, const char *text) {
  mp_pod_t *pod = pod_named("ring:4");
  mp_options_t *options = options_of(option, value);
  mp_pod_time_t time;
  assert_status(mp_pod_read_time(pod, options, &time), MP_INVALID_ARGUMENT, text);
  mp_options_release(options);
  mp_pod_release(pod);
}

static void options_say_what_absent_values_give(void **state) {
  (void)state;
  assert_int_equal(time_of("ring:4", "", "").absent, MP_ABSENT_MODE_ERROR);
  assert_int_equal(time_of("ring:4", "absent", "one").absent, MP_ABSENT_MODE_ONE);
  assert_int_equal(time_of("ring:4", "", "").unknown_branch, MP_BRANCH_LARGEST);
  assert_int_equal(time_of("ring:4", "unknown_branch", "smallest").unknown_branch,
                   MP_BRANCH_SMALLEST);
  assert_int_equal(time_of("ring:4", "unknown_branch", "3").unknown_branch, 3);
  assert_int_equal(time_of("ring:4", "unknown_trip_count", "0").unknown_trip_count, 0);
  assert_int_equal(time_of("ring:4", "", "").unknown_trip_count, 1);
  expect_refused("absent", "none", "expected error, nan, zero or one, got 'none'");
  expect_refused("unknown_branch", "-1", "expected largest, smallest, or the number of a branch");
  expect_refused("unknown_branch", "4294967296", "got '4294967296'");
}

static void texts_about_time_and_where_they_were_given(void **state) {
  (void)state;
  mp_pod_t *pod = pod_named(FIXTURES "timed.yaml");
  mp_options_t *none = options_of("", ""), *given = options_of("algorithms", "all_gather:ring");
  mp_pod_time_t time;
  assert_ok(mp_pod_read_time(pod, none, &time));
  assert_string_equal(time.algorithms, "all_reduce:ring,all_gather:direct");
  assert_string_equal(time.calibration, "measured.txt");
  mp_status_t error = mp_status_make(MP_INVALID_ARGUMENT, "no");
  assert_status(mp_pod_blame_time(pod, none, MP_OPTION_ID_algorithms, mp_status_retain(error)),
                MP_INVALID_ARGUMENT, "topology/timed.yaml:4: key 'algorithms': no");
  assert_ok(mp_pod_read_time(pod, given, &time));
  assert_string_equal(time.algorithms, "all_gather:ring");
  assert_status(mp_pod_blame_time(pod, given, MP_OPTION_ID_algorithms, error), MP_INVALID_ARGUMENT,
                "option algorithms (create option): no");
  mp_options_release(none);
  // Options are read the same way.
  mp_options_t *bad = options_of("pace", "slow");
  assert_status(
      mp_pod_read_time(pod, bad, &time), MP_INVALID_ARGUMENT,
      "option pace (create option): expected a number from 1e-9 to 1e9 such as 1 or 1000, "
      "got 'slow'");
  mp_options_release(bad);
  mp_options_release(given);
  mp_pod_release(pod);
  // What it says of time goes with the pod, as all else.
  pod = pod_named("ring:4 time:paced algorithms:all_reduce:ring");
  error = mp_status_make(MP_INVALID_ARGUMENT, "no");
  none = options_of("", "");
  assert_status(mp_pod_blame_time(pod, none, MP_OPTION_ID_algorithms, error), MP_INVALID_ARGUMENT,
                "topology \"ring:4 time:paced algorithms:all_reduce:ring\": key 'algorithms': no");
  mp_strbuf_t bytes;
  mp_strbuf_init(&bytes);
  assert_ok(mp_pod_serialize(pod, &bytes));
  mp_pod_t *again = NULL;
  assert_ok(mp_pod_deserialize((mp_str_t){mp_strbuf_text(&bytes), bytes.size}, &again));
  assert_ok(mp_pod_read_time(again, none, &time));
  assert_int_equal(time.mode, MP_TIME_PACED);
  assert_string_equal(time.algorithms, "all_reduce:ring");
  mp_strbuf_deinit(&bytes);
  mp_options_release(none);
  mp_pod_release(again);
  mp_pod_release(pod);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(options_override_the_platforms_name),
      cmocka_unit_test(options_override_what_is_said_about_time),
      cmocka_unit_test(options_say_what_absent_values_give),
      cmocka_unit_test(texts_about_time_and_where_they_were_given),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
