// libtpu's create options.
#include "sim/readers/options/libtpu_options.h"
#include "tests/unit/support/fixtures.h"

static void they_are_taken_out_of_the_list(void **state) {
  (void)state;
  mp_named_value_t values[] = {
      {.name = MP_STR("premapped_buffer_size"), .type = MP_VALUE_INT64, .int64_value = 1},
      {.name = MP_STR("time"), .type = MP_VALUE_STRING, .string_value = MP_STR("model")},
      {.name = MP_STR("skip_megascale_pjrt_client"), .type = MP_VALUE_BOOL},
      {.name = MP_STR("use_global_tpu_system"), .type = MP_VALUE_INT64},
      {.name = MP_STR("premapped_buffer_sizes"), .type = MP_VALUE_INT64},
  };
  size_t count = sizeof(values) / sizeof(values[0]);
  mp_libtpu_options_t options = 0;
  assert_ok(mp_libtpu_options_take(values, &count, &options));
  assert_int_equal(count, 2);
  assert_true(mp_str_is(values[0].name, "time"));
  assert_true(mp_str_is(values[1].name, "premapped_buffer_sizes"));
  assert_ok(mp_libtpu_options_check(options, true, "v6e:2x2", "TPU v6 lite"));
  assert_status(mp_libtpu_options_check(options, false, "torus:2x2", "minipod"),
                MP_INVALID_ARGUMENT,
                "libtpu's, and the pod 'torus:2x2' has no TPUs, but devices of kind 'minipod'");
  assert_ok(mp_libtpu_options_check(0, false, "torus:2x2", "minipod"));
}

static void a_value_has_its_type(void **state) {
  (void)state;
  static const struct {
    const char *name;
    mp_value_type_t type;
    const char *message;
  } rows[] = {
      {"premapped_buffer_size", MP_VALUE_STRING, "expected an integer"},
      {"ml_framework_name", MP_VALUE_BOOL, "expected a string"},
      {"use_tf_pjrt_client", MP_VALUE_FLOAT, "expected a bool"},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    mp_named_value_t value = {.name = mp_str(rows[i].name), .type = rows[i].type};
    size_t count = 1;
    mp_libtpu_options_t options = 0;
    assert_status(mp_libtpu_options_take(&value, &count, &options), MP_INVALID_ARGUMENT,
                  rows[i].message);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(they_are_taken_out_of_the_list),
      cmocka_unit_test(a_value_has_its_type),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
