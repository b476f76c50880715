// Figures of chips: a chip that takes its sibling's.
#include "tests/unit/support/unit.h"
#include "topology/figures/figures.h"

static mp_chip_figures_t find(const char *name) {
  mp_chip_figures_t figures;
  assert_ok(mp_chip_figures_find(mp_str(name), &figures));
  return figures;
}

static void siblings_share_what_is_not_their_own(void **state) {
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

static void a_file_overrides_its_sibling(void **state) {
  (void)state;
  mp_chip_figures_t figures;
  assert_ok(
      mp_chip_figures_read("my.yaml", MP_STR("sibling: h200\nmemory:\n  share: 0.5\n"), &figures));
  assert_true(figures.memory_share == 0.5);
  assert_true(figures.fusion_again.each[0] == find("h200").fusion_again.each[0]);
  expect_refusal("sibling: h2000\n", "my.yaml:1: key 'sibling': there are no parameters of chip");
  expect_refusal("compiler: gpu\nsibling: h100\n", "my.yaml:2: key 'sibling': expected before");
  expect_refusal("sibling: [h100]\n", "my.yaml:1: key 'sibling'");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(siblings_share_what_is_not_their_own),
      cmocka_unit_test(a_file_overrides_its_sibling),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
