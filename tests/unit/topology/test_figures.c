// Parameters of chips: files that are like others.
#include <stdio.h>

#include "tests/unit/support/unit.h"
#include "topology/figures/figures.h"

static mp_chip_figures_t find(const char *name) {
  mp_chip_figures_t figures;
  assert_ok(mp_chip_figures_find(mp_str(name), &figures));
  return figures;
}

static void like_chips_share_what_is_not_their_own(void **state) {
  (void)state;
  static const char *const pairs[][2] = {{"h200", "h100"}, {"gb200", "b200"}};
  for (size_t i = 0; i < 2; ++i) {
    const mp_chip_figures_t own = find(pairs[i][0]), other = find(pairs[i][1]);
    assert_int_equal(own.compiler, MP_CHIP_COMPILER_GPU);
    assert_true(own.memory_share == other.memory_share && own.memory_share > 0);
    assert_true(own.network_share == other.network_share && own.network_share > 0);
    assert_int_equal(own.fusion_again.count, other.fusion_again.count);
    assert_true(own.fusion_again.each[0] != other.fusion_again.each[0]);
  }
}

static void expect_refusal(const char *text, const char *message) {
  mp_chip_figures_t figures;
  assert_status(mp_chip_figures_read("my.yaml", mp_str(text), &figures), MP_INVALID_ARGUMENT,
                message);
}

static void a_file_overrides_the_one_that_it_is_like(void **state) {
  (void)state;
  mp_chip_figures_t figures;
  assert_ok(
      mp_chip_figures_read("my.yaml", MP_STR("like: h200\nmemory:\n  share: 0.5\n"), &figures));
  assert_true(figures.memory_share == 0.5);
  assert_true(figures.fusion_again.each[0] == find("h200").fusion_again.each[0]);
}

static void none_removes_a_parameter(void **state) {
  (void)state;
  mp_chip_figures_t figures;
  const mp_str_t text = MP_STR("like: v5e\nmemory:\n  scratch: none\nmatmul:\n  tile: none\n");
  assert_ok(mp_chip_figures_read("my.yaml", text, &figures));
  assert_true(isnan(figures.memory_scratch) && !isnan(find("v5e").memory_scratch));
  assert_int_equal(figures.matmul_tile.count, 0);
  assert_true(figures.memory_share == find("v5e").memory_share);
  expect_refusal("compiler: none\n", "my.yaml:1: key 'compiler': expected plain, tpu or gpu");
}

static void the_chip_to_be_like_is_checked(void **state) {
  (void)state;
  expect_refusal("\nlike: h20\n",
                 "my.yaml:2: key 'like': there are no parameters of chip 'h20', did you mean "
                 "'h200'?; known are ");
  expect_refusal("compiler: gpu\nlike: h100\n", "my.yaml:2: key 'like': expected once, before");
  expect_refusal("kernel: {}\nlike: h100\n", "my.yaml:2: key 'like': expected once, before");
  expect_refusal("like: h100\nlike: h100\n", "my.yaml:2: key 'like': expected once, before");
  expect_refusal("like: [h100]\n", "my.yaml:1: key 'like': there are no parameters");
}

// Two files in the working directory, each like the other.
static void a_circle_of_files_is_refused(void **state) {
  (void)state;
  static const char *const texts[][2] = {{"./circle_a.yaml", "like: ./circle_b.yaml\n"},
                                         {"./circle_b.yaml", "# b\nlike: ./circle_a.yaml\n"},
                                         {"./circle_c.yaml", "like: .//circle_c.yaml\n"}};
  for (size_t i = 0; i < 3; ++i) {
    FILE *file = fopen(texts[i][0], "w");
    assert_non_null(file);
    assert_true(fputs(texts[i][1], file) >= 0 && fclose(file) == 0);
  }
  mp_chip_figures_t figures;
  assert_status(mp_chip_figures_find(mp_str(texts[0][0]), &figures), MP_INVALID_ARGUMENT,
                "./circle_a.yaml:1: key 'like': ./circle_b.yaml:2: key 'like': "
                "'./circle_a.yaml' is like itself");
  assert_status(mp_chip_figures_find(mp_str(texts[2][0]), &figures), MP_INVALID_ARGUMENT,
                "'.//circle_c.yaml' is like itself");
  for (size_t i = 0; i < 3; ++i) assert_int_equal(remove(texts[i][0]), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(like_chips_share_what_is_not_their_own),
      cmocka_unit_test(a_file_overrides_the_one_that_it_is_like),
      cmocka_unit_test(none_removes_a_parameter),
      cmocka_unit_test(the_chip_to_be_like_is_checked),
      cmocka_unit_test(a_circle_of_files_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
