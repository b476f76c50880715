// Which processes of a job a client has, as its options say.
#include <string.h>

#include "collectives/transport/store/subset.h"
#include "tests/unit/support/unit.h"

static mp_options_t options_of(const char *list, int64_t node_id, int64_t num_nodes) {
  return (mp_options_t){.subset = list, .node_id = node_id, .num_nodes = num_nodes};
}

static mp_subset_t read_list(const char *list, int64_t node_id) {
  const mp_options_t options = options_of(list, node_id, 8);
  mp_subset_t subset;
  assert_ok(mp_subset_read(&options, &subset));
  return subset;
}

static void lists_are_read(void **state) {
  (void)state;
  const mp_subset_t one = read_list("0,7,3", 3), other = read_list("0,7,3", 0);
  assert_int_equal(one.size, 3);
  assert_int_equal(one.rank, 2);
  assert_int_equal(other.rank, 0);
  assert_true(one.name == other.name);
  assert_int_equal(read_list("5", 5).size, 1);
}

static void other_subsets_have_other_names(void **state) {
  (void)state;
  const mp_options_t numbers = options_of("", 1, 2), more = options_of("", 1, 3);
  const uint64_t names[] = {read_list("0,1", 1).name,
                            read_list("1,0", 1).name,
                            read_list("0,1,2", 1).name,
                            read_list("1,2", 1).name,
                            mp_subset_of_numbers(&numbers, 0, 8).name,
                            mp_subset_of_numbers(&more, 0, 8).name};
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
    for (size_t j = 0; j < i; ++j) assert_true(names[i] != names[j]);
  }
  assert_int_equal(mp_subset_of_numbers(&more, 0, 8).rank, 1);
  assert_int_equal(mp_subset_of_numbers(&more, 0, 8).size, 3);
}

static void what_is_no_list_is_refused(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {",", "not a list of numbers"},    {"1,", "not a list of numbers"},
      {"1,,2", "not a list of numbers"}, {"1;2", "not a list of numbers"},
      {"-1,1", "not a list of numbers"}, {" 1", "not a list of numbers"},
      {"1,x", "not a list of numbers"},  {"1,99999999999999999999999", "not a list of numbers"},
      {"1,8", "fewer processes"},        {"1,2,1", "twice"},
      {"0,2", "not among them"},         {"11,2", "fewer processes"}};
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    const mp_options_t options = options_of(cases[i][0], 1, 8);
    mp_subset_t subset;
    assert_status(mp_subset_read(&options, &subset), MP_INVALID_ARGUMENT, cases[i][1]);
  }
  const mp_options_t unnumbered = options_of("0,1", MP_OPTION_UNSET, MP_OPTION_UNSET);
  mp_subset_t subset;
  assert_status(mp_subset_read(&unnumbered, &subset), MP_INVALID_ARGUMENT, "not among them");
}

static void folders_fit(void **state) {
  (void)state;
  const mp_subset_t subset = {.rank = 0, .size = 2, .name = UINT64_MAX};
  char folder[MP_STORE_FOLDER_BYTES];
  mp_subset_folder(&subset, "hello", folder);
  assert_string_equal(folder, "minipod/ffffffffffffffff/hello");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lists_are_read),
      cmocka_unit_test(other_subsets_have_other_names),
      cmocka_unit_test(what_is_no_list_is_refused),
      cmocka_unit_test(folders_fit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
