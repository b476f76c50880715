// Options: precedence, types, ranges, unknown names.

#include <stdlib.h>
#include <string.h>

#include "sim/base/alloc.h"
#include "tests/unit/support/options_test.h"
#include "tests/unit/support/unit.h"

static mp_named_value_t text_option(const char *name, const char *value) {
  return (mp_named_value_t){
      .name = mp_str(name), .type = MP_VALUE_STRING, .string_value = mp_str(value)};
}

static mp_named_value_t int_option(const char *name, int64_t value) {
  return (mp_named_value_t){.name = mp_str(name), .type = MP_VALUE_INT64, .int64_value = value};
}

static void defaults_are_unset(void **state) {
  (void)state;
  mp_options_t *options = NULL;
  assert_ok(mp_options_create(NULL, 0, &options));
  assert_int_equal(options->num_devices, MP_OPTION_UNSET);
  assert_int_equal(options->device_memory, MP_OPTION_UNSET);
  assert_int_equal(options->workers, MP_OPTION_UNSET);
  assert_int_equal(options->node_id, MP_OPTION_UNSET);
  assert_string_equal(options->topology, "");
  assert_string_equal(options->machine, "");
  assert_int_equal(options->log_level, MP_LOG_WARNING);
  assert_int_equal(options->source[MP_OPTION_ID_topology], MP_SOURCE_DEFAULT);
  mp_options_release(options);
}

static void create_option_beats_environment_beats_default(void **state) {
  (void)state;
  setenv("MINIPOD_DEVICES", "6", 1);
  setenv("MINIPOD_TOPOLOGY", "v5e:2x2", 1);
  setenv("MINIPOD_DEVICE_MEMORY", "1.5 GiB", 1);
  setenv("MINIPOD_WORKERS", "", 1);  // empty counts as not set
  const mp_named_value_t values[] = {int_option("num_devices", 8), int_option("node_id", 0),
                                     int_option("num_nodes", 1), int_option("partition_index", 3)};
  mp_options_t *options = NULL;
  assert_ok(mp_options_create(values, 4, &options));
  assert_int_equal(options->num_devices, 8);
  assert_int_equal(options->source[MP_OPTION_ID_num_devices], MP_SOURCE_CREATE_OPTION);
  assert_string_equal(options->topology, "v5e:2x2");
  assert_int_equal(options->source[MP_OPTION_ID_topology], MP_SOURCE_ENVIRONMENT);
  assert_int_equal(options->device_memory, 3ll << 29);
  assert_int_equal(options->workers, MP_OPTION_UNSET);
  assert_int_equal(options->node_id, 0);
  assert_int_equal(options->num_nodes, 1);
  assert_int_equal(options->partition_index, 3);
  mp_options_release(options);
}

static void options_in_code_win(void **state) {
  (void)state;
  setenv("MINIPOD_DEVICES", "6", 1);
  setenv("MINIPOD_FUSE", "0", 1);
  setenv("MINIPOD_TIME", "model", 1);
  const mp_named_value_t values[] = {text_option("topology", "v5e:2x2"), text_option("fuse", ""),
                                     text_option("time", "")};
  mp_options_t *options = NULL;
  assert_ok(mp_options_create(values, 3, &options));
  assert_string_equal(options->topology, "v5e:2x2");
  assert_int_equal(options->num_devices, MP_OPTION_UNSET);
  assert_int_equal(options->fuse, 1);
  assert_string_equal(options->time, "off");
  assert_int_equal(options->source[MP_OPTION_ID_time], MP_SOURCE_DEFAULT);
  mp_options_release(options);
}

static void numbers_come_as_strings_too(void **state) {
  (void)state;
  const mp_named_value_t values[] = {text_option("num_devices", "12"),
                                     text_option("device_memory", "64MiB"),
                                     text_option("log_level", "error")};
  mp_options_t *options = NULL;
  assert_ok(mp_options_create(values, 3, &options));
  assert_int_equal(options->num_devices, 12);
  assert_int_equal(options->device_memory, 64 << 20);
  assert_int_equal(options->log_level, MP_LOG_ERROR);
  mp_options_release(options);
  mp_log_set_level(MP_LOG_OFF);
}

static void bad_create_options_are_refused_by_name(void **state) {
  (void)state;
  const struct {
    mp_named_value_t value;
    const char *message;
  } cases[] = {
      {int_option("num_device", 4),
       "unknown create option 'num_device', did you mean "
       "'num_devices'?"},
      {int_option("xyzzy", 4), "known are num_devices, topology"},
      {int_option("", 4), "unknown create option ''"},
      {text_option("num_devices", "four"), "'num_devices': expected a whole number, got 'four'"},
      {int_option("num_devices", 0), "expected a number from 1 to 65536, got '0'"},
      {int_option("num_devices", -4), "expected a number from 1 to 65536, got '-4'"},
      {int_option("num_devices", INT64_MAX), "expected a number from 1 to 65536"},
      {text_option("num_devices", "99999999999999999999"), "expected a whole number"},
      {text_option("device_memory", "64 parsecs"), "expected a size such as 64MiB"},
      {int_option("device_memory", 0), "expected at least 1, got '0'"},
      {int_option("topology", 4), "'topology': expected a string, got an integer"},
      {text_option("log_level", "loud"), "expected off, error, warning, info or debug"},
      {{.name = MP_STR("workers"), .type = MP_VALUE_BOOL, .bool_value = true},
       "'workers': expected a number (or a string with one), got a bool"},
      {{.name = MP_STR("workers"), .type = (mp_value_type_t)77}, "got an unknown type"},
      {{.name = MP_STR("machine"), .string_value = MP_STR("a\0b")}, "without NUL"},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    mp_options_t *options = NULL;
    assert_status(mp_options_create(&cases[i].value, 1, &options), MP_INVALID_ARGUMENT,
                  cases[i].message);
    assert_null(options);
  }
}

static void bad_environment_is_refused_by_name(void **state) {
  (void)state;
  setenv("MINIPOD_DEVICES", "many", 1);
  mp_options_t *options = NULL;
  assert_status(mp_options_create(NULL, 0, &options), MP_INVALID_ARGUMENT,
                "environment variable MINIPOD_DEVICES: expected a whole number, got 'many'");
}

static void every_failed_allocation_is_an_error(void **state) {
  (void)state;
  setenv("MINIPOD_TOPOLOGY", "v5e:2x2", 1);
  const mp_named_value_t value = text_option("machine", "pack:1 core:2 pu:1");
  bool failed = true;
  int failures = -1;
  for (int n = 1; failed; ++n, ++failures) {
    assert_true(n < 100);
    mp_options_t *options = NULL;
    mp_alloc_fail_at(n, 0);
    mp_status_t status = mp_options_create(&value, 1, &options);
    mp_alloc_fail_at(0, 0);
    failed = status != NULL;
    if (failed) assert_int_equal(mp_status_code(status), MP_RESOURCE_EXHAUSTED);
    mp_status_release(status);
    mp_options_release(options);
  }
  assert_true(failures > 2);
}

static void the_table_documents_itself(void **state) {
  (void)state;
  for (int id = 0; id < MP_OPTION_ID_COUNT; ++id) {
    const mp_option_info_t *info = mp_option_info((mp_option_id_t)id);
    assert_true(strlen(info->name) > 0 && strlen(info->help) > 0);
    if (info->environment[0] != '\0') {
      assert_int_equal(strncmp(info->environment, "MINIPOD_", 8), 0);
    }
  }
}

int main(void) {
#define CASE(f) cmocka_unit_test_setup_teardown(f, clear_environment, clear_environment)
  const struct CMUnitTest tests[] = {
      CASE(defaults_are_unset),
      CASE(create_option_beats_environment_beats_default),
      CASE(options_in_code_win),
      CASE(numbers_come_as_strings_too),
      CASE(bad_create_options_are_refused_by_name),
      CASE(bad_environment_is_refused_by_name),
      CASE(every_failed_allocation_is_an_error),
      CASE(the_table_documents_itself),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
