// Parameters of chips: files that are like others.
#include <stdio.h>
#include <string.h>

#include "tests/unit/support/unit.h"
#include "topology/figures/figures.h"
#include "topology/presets/presets.h"

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

static void read(const char *text, mp_chip_figures_t *out) {
  assert_ok(mp_chip_figures_read("my.yaml", mp_str(text), out));
}

static void members_of_lists_have_names(void **state) {
  (void)state;
  mp_chip_figures_t named, bare, some;
  read("matmul:\n  tile: {rows: 3, k: 1, columns: 2}\n", &named);
  read("matmul:\n  tile: [1, 2, 3]\n", &bare);
  assert_int_equal(named.matmul_tile.count, MP_MATMUL_TILE_COUNT);
  assert_true(named.matmul_tile.each[MP_MATMUL_TILE_ROWS] == 3);
  assert_memory_equal(&named.matmul_tile, &bare.matmul_tile, sizeof(bare.matmul_tile));
  // Of a chip that the file is like, the members that are not given.
  read("like: v5e\nmatmul:\n  tile:\n    rows: 40\n", &some);
  assert_true(some.matmul_tile.each[MP_MATMUL_TILE_ROWS] == 40);
  assert_true(some.matmul_tile.each[MP_MATMUL_TILE_K] == 128);
}

static void wrong_members_are_refused(void **state) {
  (void)state;
  expect_refusal("matmul:\n  tile: {k: 1,\n    row: 2}\n",
                 "my.yaml:3: key 'matmul.tile': no member 'row', did you mean rows; its 3 members "
                 "are k, columns, rows");
  expect_refusal("matmul:\n  tile: {k: 1, rows: 2}\n",
                 "my.yaml:2: key 'matmul.tile': missing: columns; its 3 members are");
  expect_refusal("like: h100\nmatmul:\n  tile: {k: 1, rows: 2}\n", "missing: columns");
  expect_refusal("matmul:\n  tile: {k: 1, k: 2}\n", "key 'matmul.tile': twice: k");
  expect_refusal("matmul:\n  tile: {k: -1}\n", "expected a number from 0 for k;");
  expect_refusal("matmul:\n  tile: {k: [1]}\n", "expected a number from 0 for k;");
  expect_refusal("matmul:\n  tile: {[k]: 1}\n", "expected the name of a member;");
  expect_refusal("matmul:\n  tile: [1, 2]\n", "too few numbers; its 3 members are");
  expect_refusal("matmul:\n  tile: [1, 2, 3, 4]\n", "too many numbers; its 3 members are");
  expect_refusal("matmul:\n  tile: 3\n", "expected names and numbers; its 3 members are");
  expect_refusal("matmul:\n  step: {k: 3}\n", "key 'matmul.step': expected a time");
}

// ---- sources ----

static mp_chip_source_t source_of(const mp_chip_figures_t *figures, const char *key) {
  size_t i = 0;
  while (strcmp(mp_chip_figure_key((mp_chip_figure_t)i), key) != 0) ++i;
  return (mp_chip_source_t)figures->sources[i];
}

static void every_parameter_of_a_known_chip_has_a_source(void **state) {
  (void)state;
  for (size_t chip = 0; mp_chip_files[chip].name != NULL; ++chip) {
    const mp_chip_figures_t figures = find(mp_chip_files[chip].name);
    for (size_t i = 0; i < MP_FIGURE_COUNT; ++i) {
      const bool is_marked = figures.sources[i] != MP_CHIP_SOURCE_UNMARKED;
      if (mp_chip_figure_is_given(&figures, (mp_chip_figure_t)i) == is_marked) continue;
      fail_msg("%s: '%s' has %s", mp_chip_files[chip].name, mp_chip_figure_key((mp_chip_figure_t)i),
               is_marked ? "a source, but no value" : "no source");
    }
  }
}

static void the_most_specific_source_counts(void **state) {
  (void)state;
  mp_chip_figures_t figures;
  read(
      "sources:\n  estimate:\n    memory.share: a guess\n  data sheet: {memory: a, host.put: b}\n"
      "memory: {share: 0.5, latency: 1us}\nhost: {put: 1GB/s, get: 1GB/s}\n",
      &figures);
  assert_int_equal(source_of(&figures, "memory.share"), MP_CHIP_SOURCE_ESTIMATE);
  assert_int_equal(source_of(&figures, "memory.latency"), MP_CHIP_SOURCE_DATA_SHEET);
  assert_int_equal(source_of(&figures, "host.put"), MP_CHIP_SOURCE_DATA_SHEET);
  assert_int_equal(source_of(&figures, "host.get"), MP_CHIP_SOURCE_UNMARKED);
  assert_int_equal(source_of(&figures, "memory.scratch"), MP_CHIP_SOURCE_UNMARKED);
}

// A group's mark is for the parameters that the file sets; others are marked one by one.
static void parameters_of_another_chip_are_copied(void **state) {
  (void)state;
  mp_chip_figures_t figures;
  read(
      "like: v5e\nmemory: {share: 0.5, latency: 1us}\nvector: {root: none}\n"
      "sources: {measured: {memory.share: here, vector: there, vector.tanh: there}}\n",
      &figures);
  assert_int_equal(source_of(&figures, "memory.share"), MP_CHIP_SOURCE_MEASURED);
  assert_int_equal(source_of(&figures, "memory.latency"), MP_CHIP_SOURCE_UNMARKED);
  assert_int_equal(source_of(&figures, "memory.scratch"), MP_CHIP_SOURCE_COPIED);
  assert_int_equal(source_of(&figures, "vector.sine"), MP_CHIP_SOURCE_COPIED);
  assert_int_equal(source_of(&figures, "vector.tanh"), MP_CHIP_SOURCE_MEASURED);
  assert_int_equal(source_of(&figures, "vector.root"), MP_CHIP_SOURCE_UNMARKED);
}

static void wrong_sources_are_refused(void **state) {
  (void)state;
  expect_refusal("sources: measured\n", "my.yaml:1: key 'sources': expected once, with kinds");
  expect_refusal("sources: {}\nsources: {}\n", "my.yaml:2: key 'sources': expected once");
  expect_refusal("sources:\n  mesured: {}\n",
                 "my.yaml:2: key 'sources': unknown kind 'mesured', did you mean 'measured'?");
  expect_refusal("sources:\n  unmarked: {}\n", "unknown kind 'unmarked'");
  expect_refusal("sources:\n  [measured]: {}\n", "unknown kind ''");
  expect_refusal("sources: {copied: [memory]}\n", "expected parameters or groups, each with a");
  expect_refusal("sources: {copied: {memory: }}\n", "expected parameters or groups, each with a");
  expect_refusal("sources: {copied: {memory: [a]}}\n", "expected parameters or groups, each");
  expect_refusal("sources: {copied: {memory.shares: a}}\n",
                 "unknown parameter or group 'memory.shares', did you mean 'memory.share'?");
  expect_refusal("sources: {copied: {compiler: a}}\n", "unknown parameter or group 'compiler'");
  expect_refusal("sources: {copied: {mem: a}}\n", "unknown parameter or group 'mem'");
  expect_refusal("sources:\n  copied: {memory: a}\n  measured: {memory: b}\n",
                 "my.yaml:3: key 'sources': 'memory' is given twice, first in line 2");
  expect_refusal("sources:\n  copied: {memory.share: a}\n",
                 "my.yaml:2: key 'sources': 'memory.share' has no value");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(like_chips_share_what_is_not_their_own),
      cmocka_unit_test(a_file_overrides_the_one_that_it_is_like),
      cmocka_unit_test(none_removes_a_parameter),
      cmocka_unit_test(the_chip_to_be_like_is_checked),
      cmocka_unit_test(a_circle_of_files_is_refused),
      cmocka_unit_test(members_of_lists_have_names),
      cmocka_unit_test(wrong_members_are_refused),
      cmocka_unit_test(every_parameter_of_a_known_chip_has_a_source),
      cmocka_unit_test(the_most_specific_source_counts),
      cmocka_unit_test(parameters_of_another_chip_are_copied),
      cmocka_unit_test(wrong_sources_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
