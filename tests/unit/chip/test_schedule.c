// The order of nodes in which collectives go on beside work, by hand.
#include <math.h>
#include <stdio.h>

#include "sim/chip/schedule/combine.h"
#include "sim/chip/schedule/overlap.h"
#include "sim/chip/schedule/schedule.h"
#include "tests/unit/support/unit.h"

#define INPUTS(...)                                                   \
  .num_inputs = sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), \
  .inputs = (const uint32_t[]) {                                      \
    __VA_ARGS__                                                       \
  }

// Says the order as a text: numbers of nodes, those that are started as "(1", waited for as "1)".
static void expect_order(uint32_t count, const mp_schedule_node_t *nodes, uint32_t tracks,
                         uint32_t most_started, const char *expected) {
  const mp_schedule_limits_t limits = {.num_tracks = tracks, .most_started = most_started};
  mp_arena_t *arena = NULL;
  uint32_t num_slots = 0;
  const mp_schedule_slot_t *slots = NULL;
  char text[256] = "";
  assert_ok(mp_arena_create(&arena));
  assert_ok(mp_schedule_order(arena, count, nodes, &limits, &num_slots, &slots));
  for (uint32_t i = 0; i < num_slots; ++i) {
    char one[32];
    snprintf(one, sizeof(one), "%s%s%u%s", i == 0 ? "" : " ",
             slots[i].part == MP_SCHEDULE_START ? "(" : "", slots[i].node,
             slots[i].part == MP_SCHEDULE_DONE ? ")" : "");
    strcat(text, one);
  }
  assert_string_equal(text, expected);
  mp_arena_release(arena);
}

static void work_keeps_its_order(void **state) {
  (void)state;
  const mp_schedule_node_t nodes[] = {
      {.seconds = 1}, {.seconds = 1, INPUTS(0)}, {.seconds = 1}, {.seconds = 1, INPUTS(0, 2)}};
  expect_order(4, nodes, 1, 4, "0 1 2 3");
}

// Begins just early enough: what comes before goes first, so that its result lies in memory for
// no longer than it has to.
static void what_is_needed_late_is_started_late(void **state) {
  (void)state;
  const mp_schedule_node_t nodes[] = {{.seconds = 2, .is_async = true},
                                      {.seconds = 5},
                                      {.seconds = 1},
                                      {.seconds = 1},
                                      {.seconds = 1, INPUTS(0, 3)}};
  expect_order(5, nodes, 1, 4, "1 (0 2 3 0) 4");
}

// Copies to the host and from it have streams of their own: a collective does not wait for them,
// and they do not count among those that are started.
static void each_direction_of_the_host_has_a_stream(void **state) {
  (void)state;
  const mp_schedule_node_t nodes[] = {
      {.seconds = 3, .is_async = true},
      {.seconds = 3, .is_async = true, .stream = MP_SCHEDULE_TO_HOST},
      {.seconds = 3, .is_async = true, .stream = MP_SCHEDULE_FROM_HOST},
      {.seconds = 3},
      {.seconds = 1, INPUTS(0, 1, 2, 3)}};
  expect_order(5, nodes, 1, 1, "(0 (1 (2 3 0) 1) 2) 4");
}

static void independent_work_fills_the_gap(void **state) {
  (void)state;
  // The program has the other work behind the user of the collective.
  const mp_schedule_node_t nodes[] = {{.seconds = 1},
                                      {.seconds = 4, .is_async = true, INPUTS(0)},
                                      {.seconds = 1, INPUTS(1)},
                                      {.seconds = 5, INPUTS(0)},
                                      {.seconds = 1, INPUTS(2, 3)}};
  expect_order(5, nodes, 1, 4, "0 (1 3 1) 2 4");
}

static void tracks_and_memory_are_limits(void **state) {
  (void)state;
  const mp_schedule_node_t nodes[] = {{.seconds = 2, .is_async = true},
                                      {.seconds = 2, .is_async = true},
                                      {.seconds = 1},
                                      {.seconds = 1},
                                      {.seconds = 1},
                                      {.seconds = 1},
                                      {.seconds = 1, INPUTS(0, 1, 5)}};
  // One after the other: the first has to begin four before the end, the second two.
  expect_order(7, nodes, 1, 4, "(0 2 3 (1 4 5 0) 1) 6");
  expect_order(7, nodes, 2, 4, "2 3 (0 (1 4 5 0) 1) 6");
  expect_order(7, nodes, 1, 1, "(0 2 3 0) (1 4 5 1) 6");
}

static void compilers_differ(void **state) {
  (void)state;
  mp_chip_figures_t figures = mp_chip_figures_none();
  assert_int_equal(mp_overlap_order(&figures, MP_COLLECTIVE_PERMUTE, 4), MP_OVERLAP_SYNC);
  figures.compiler = MP_CHIP_COMPILER_TPU;
  assert_int_equal(mp_overlap_order(&figures, MP_COLLECTIVE_PERMUTE, 4), MP_OVERLAP_ASYNC);
  assert_int_equal(mp_overlap_order(&figures, MP_COLLECTIVE_ALL_GATHER, 4), MP_OVERLAP_DECOMPOSED);
  assert_int_equal(mp_overlap_order(&figures, MP_COLLECTIVE_ALL_REDUCE, 4), MP_OVERLAP_SYNC);
  figures.compiler = MP_CHIP_COMPILER_GPU;
  assert_int_equal(mp_overlap_order(&figures, MP_COLLECTIVE_ALL_REDUCE, 4), MP_OVERLAP_ASYNC);
  figures.overlap_all_reduce = 0;
  assert_int_equal(mp_overlap_order(&figures, MP_COLLECTIVE_ALL_REDUCE, 4), MP_OVERLAP_SYNC);
  assert_string_equal(mp_overlap_name(MP_OVERLAP_DECOMPOSED), "decomposed");
}

// However large the shards of their members are.
static void large_groups_make_no_rings(void **state) {
  (void)state;
  mp_chip_figures_t figures = mp_chip_figures_none();
  const mp_collective_kind_t gather = MP_COLLECTIVE_ALL_GATHER;
  const mp_collective_kind_t scatter = MP_COLLECTIVE_REDUCE_SCATTER;
  figures.compiler = MP_CHIP_COMPILER_TPU;
  assert_int_equal(mp_overlap_order(&figures, gather, 256), MP_OVERLAP_DECOMPOSED);
  figures.overlap_ring_members = 32;
  assert_int_equal(mp_overlap_order(&figures, gather, 32), MP_OVERLAP_DECOMPOSED);
  assert_int_equal(mp_overlap_order(&figures, scatter, 32), MP_OVERLAP_DECOMPOSED);
  assert_int_equal(mp_overlap_order(&figures, gather, 33), MP_OVERLAP_ASYNC);
  assert_int_equal(mp_overlap_order(&figures, scatter, 33), MP_OVERLAP_SYNC);
  // What the chip's figures have otherwise stays so.
  figures.overlap_all_gather = 0;
  assert_int_equal(mp_overlap_order(&figures, gather, 256), MP_OVERLAP_SYNC);
  assert_int_equal(mp_overlap_order(&figures, MP_COLLECTIVE_PERMUTE, 256), MP_OVERLAP_ASYNC);
}

// Chips differ in what becomes of gathers and scatters of which no ring is made.
static void what_is_no_ring_is_done_as_figures_say(void **state) {
  (void)state;
  mp_chip_figures_t figures = mp_chip_figures_none();
  const mp_collective_kind_t gather = MP_COLLECTIVE_ALL_GATHER;
  const mp_collective_kind_t scatter = MP_COLLECTIVE_REDUCE_SCATTER;
  assert_int_equal(mp_overlap_without_ring(&figures, scatter), MP_OVERLAP_ASYNC);
  assert_false(figures.overlap_carried == 1);
  assert_false(mp_overlap_sums_whole(&figures, scatter, 64, 4096, true));
  figures.compiler = MP_CHIP_COMPILER_TPU;
  figures.overlap_ring_members = 32;
  assert_int_equal(mp_overlap_without_ring(&figures, gather), MP_OVERLAP_ASYNC);
  assert_int_equal(mp_overlap_without_ring(&figures, scatter), MP_OVERLAP_SYNC);
  figures.overlap_no_ring = 0;
  assert_int_equal(mp_overlap_without_ring(&figures, gather), MP_OVERLAP_SYNC);
  assert_int_equal(mp_overlap_order(&figures, gather, 33), MP_OVERLAP_SYNC);
  assert_int_equal(mp_overlap_order(&figures, gather, 32), MP_OVERLAP_DECOMPOSED);
  figures.overlap_carried = figures.overlap_whole_sums = figures.overlap_whole_gathers = 1;
  assert_true(figures.overlap_carried == 1);
  assert_true(mp_overlap_sums_whole(&figures, scatter, 16, 4096, true));
  assert_false(mp_overlap_sums_whole(&figures, scatter, 16, 4096, false));
  assert_true(mp_overlap_sums_whole(&figures, gather, 33, 4096, true));
  assert_false(mp_overlap_sums_whole(&figures, gather, 32, 4096, true));
}

// Vectors that fill no row of lanes are added up, exchanges are permutes, and of sums alone several
// are made one.
static void tpus_add_up_short_vectors(void **state) {
  (void)state;
  mp_chip_figures_t figures = mp_chip_figures_none();
  const mp_collective_kind_t gather = MP_COLLECTIVE_ALL_GATHER;
  assert_false(mp_overlap_sums_whole(&figures, gather, 4, 1, false));
  assert_true(mp_overlap_may_combine(&figures, MP_COLLECTIVE_ALL_GATHER));
  figures.compiler = MP_CHIP_COMPILER_TPU;
  assert_true(mp_overlap_sums_whole(&figures, gather, 4, 127, false));
  assert_false(mp_overlap_sums_whole(&figures, gather, 4, 128, false));
  assert_true(mp_overlap_may_combine(&figures, MP_COLLECTIVE_ALL_REDUCE));
  assert_false(mp_overlap_may_combine(&figures, MP_COLLECTIVE_ALL_GATHER));
  assert_int_equal(mp_overlap_order(&figures, MP_COLLECTIVE_EXCHANGE, 4), MP_OVERLAP_ASYNC);
}

// ---- Collectives that are made one ----

// Who leads each of `count` nodes of these keys, with a byte each.
static void assert_leaders(uint32_t count, const uint64_t *keys, uint32_t num_edges,
                           const mp_edge_t *edges, double most_bytes, const uint32_t *wanted) {
  mp_arena_t *arena = NULL;
  mp_combine_node_t nodes[8] = {0};
  const uint32_t *leaders = NULL;
  assert_ok(mp_arena_create(&arena));
  for (uint32_t n = 0; n < count; ++n) nodes[n] = (mp_combine_node_t){keys[n], 1};
  assert_ok(mp_combine_find(arena, count, nodes, num_edges, edges, most_bytes, &leaders));
  for (uint32_t n = 0; n < count; ++n) assert_int_equal(leaders[n], wanted[n]);
  mp_arena_release(arena);
}

static bool is_ring(const mp_chip_figures_t *figures, uint32_t members, uint32_t num_dims,
                    double matmul) {
  const mp_overlap_ring_t ring = {members, num_dims, 1, matmul};
  return mp_overlap_ring_is_faster(figures, &ring);
}

// The matmul has to take longer than the ring's first message. A group of two gains nothing, nor,
// if groups have the links of all dimensions, do 2x2 chips; cubes of eight do.
static void rings_are_made_where_they_are_faster(void **state) {
  (void)state;
  mp_chip_figures_t figures = mp_chip_figures_none();
  figures.overlap_ring_work = 1.08;
  assert_false(is_ring(&figures, 2, 1, 100));
  assert_true(is_ring(&figures, 4, 2, 100));
  assert_true(is_ring(&figures, 16, 2, 1.1));
  assert_false(is_ring(&figures, 16, 2, 1.07));
  figures.overlap_ring_dims = 1;
  assert_false(is_ring(&figures, 2, 0, 100));
  assert_true(is_ring(&figures, 4, 1, 100));
  assert_false(is_ring(&figures, 4, 2, 100));
  assert_true(is_ring(&figures, 8, 3, 100));
  assert_true(is_ring(&figures, 16, 3, 2));  // 2x2x4, although the messages take 8
  figures.overlap_ring_work = INFINITY;
  assert_false(is_ring(&figures, 16, 1, 100));
}

// A 7x's SparseCores take over sums of 64 KiB and more; other kinds, and other chips, know no
// least.
static void small_sums_are_waited_for(void **state) {
  (void)state;
  mp_chip_figures_t figures = mp_chip_figures_none();
  assert_false(mp_overlap_is_too_small(&figures, MP_COLLECTIVE_ALL_REDUCE, 4));
  figures.overlap_least = 65536;
  assert_true(mp_overlap_is_too_small(&figures, MP_COLLECTIVE_ALL_REDUCE, 49152));
  assert_false(mp_overlap_is_too_small(&figures, MP_COLLECTIVE_ALL_REDUCE, 65536));
  assert_false(mp_overlap_is_too_small(&figures, MP_COLLECTIVE_ALL_GATHER, 4));
}

static void test_combine(void **state) {
  (void)state;
  // Up to three bytes, one key only; work in between stays what it is.
  assert_leaders(7, (uint64_t[]){5, 0, 5, 6, 5, 5, 6}, 0, NULL, 3,
                 (uint32_t[]){0, 1, 0, 3, 0, 5, 3});
  // The second one needs the first one by way of work; the third one does not.
  assert_leaders(4, (uint64_t[]){5, 0, 5, 5}, 2, (mp_edge_t[]){{0, 1}, {1, 2}}, 9,
                 (uint32_t[]){0, 1, 2, 0});
  // Each alone could be: 0 with 3, and 1 with 2. But 1 needs 0, and 3 needs 2.
  assert_leaders(4, (uint64_t[]){5, 6, 6, 5}, 2, (mp_edge_t[]){{0, 1}, {2, 3}}, 9,
                 (uint32_t[]){0, 1, 2, 0});
}

// However small they are, 256 at most are one.
static void many_make_several(void **state) {
  (void)state;
  enum { COUNT = 300 };
  mp_combine_node_t nodes[COUNT];
  mp_arena_t *arena = NULL;
  const uint32_t *leaders = NULL;
  for (uint32_t n = 0; n < COUNT; ++n) nodes[n] = (mp_combine_node_t){7, 1};
  assert_ok(mp_arena_create(&arena));
  assert_ok(mp_combine_find(arena, COUNT, nodes, 0, NULL, 1e9, &leaders));
  assert_int_equal(leaders[255], 0);
  assert_int_equal(leaders[256], 256);
  assert_int_equal(leaders[299], 256);
  mp_arena_release(arena);
}

static void flags_change_what_a_compiler_does(void **state) {
  (void)state;
#define FLAG  "xla_tpu_enable_async_collective_fusion_fuse_all_gather"
#define RINGS "xla_jf_spmd_threshold_for_windowed_einsum_mib"
  const mp_collective_kind_t gather = MP_COLLECTIVE_ALL_GATHER;
  mp_chip_figures_t figures;
  assert_ok(mp_chip_figures_find(MP_STR("v6e"), &figures));
  assert_int_equal(mp_overlap_without_ring(&figures, gather), MP_OVERLAP_SYNC);
  assert_ok(mp_chip_figures_take_flags(MP_STR(FLAG "=true"), &figures));
  assert_int_equal(mp_overlap_without_ring(&figures, gather), MP_OVERLAP_ASYNC);
  assert_true(figures.overlap_carried == 1);
  assert_ok(mp_chip_figures_take_flags(MP_STR(FLAG "=true," FLAG "=false"), &figures));
  assert_int_equal(mp_overlap_without_ring(&figures, gather), MP_OVERLAP_SYNC);
  // Of another compiler: nothing.
  assert_ok(mp_chip_figures_find(MP_STR("h100"), &figures));
  assert_ok(mp_chip_figures_take_flags(MP_STR(FLAG "=true"), &figures));
  assert_false(figures.overlap_carried == 1);
  assert_ok(mp_chip_figures_find(MP_STR("v6e"), &figures));
  assert_true(isfinite(figures.overlap_ring_work));
  assert_ok(mp_chip_figures_take_flags(MP_STR(RINGS "=1000000," FLAG "=true"), &figures));
  assert_true(isinf(figures.overlap_ring_work) && figures.overlap_carried == 1);
  assert_true(mp_chip_figures_take_flag(MP_STR(FLAG "=false"), &figures));
  assert_false(figures.overlap_carried == 1);
  assert_false(mp_chip_figures_take_flag(MP_STR(FLAG), &figures));
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_chip_flags_write(MP_STR("--" RINGS "=1000000 -b --" FLAG "  --" RINGS "=5 c=d"), &text);
  assert_string_equal(mp_strbuf_text(&text), FLAG "=true " RINGS "=1000000");
  mp_strbuf_deinit(&text);
  static const char *const wrong[] = {"xla_foo=true", FLAG,         FLAG "=1", ",",
                                      "=true",        RINGS "=512", RINGS};
  for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i) {
    assert_status(mp_chip_figures_take_flags(mp_str(wrong[i]), &figures), MP_INVALID_ARGUMENT,
                  "key 'flags': expected " FLAG);
  }
}

static void init_args_change_it_too(void **state) {
  (void)state;
  mp_chip_figures_t figures;
  assert_ok(mp_chip_figures_find(MP_STR("v6e"), &figures));
  mp_chip_figures_take_init_args(MP_STR("  --xla_foo=1 --" FLAG " -" RINGS "=1000000 --"),
                                 &figures);
  assert_true(isinf(figures.overlap_ring_work) && figures.overlap_carried == 1);
  mp_chip_figures_take_init_args(MP_STR("--" FLAG "=false --" FLAG "=7"), &figures);
  assert_false(figures.overlap_carried == 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(init_args_change_it_too),
      cmocka_unit_test(rings_are_made_where_they_are_faster),
      cmocka_unit_test(small_sums_are_waited_for),
      cmocka_unit_test(test_combine),
      cmocka_unit_test(many_make_several),
      cmocka_unit_test(tpus_add_up_short_vectors),
      cmocka_unit_test(work_keeps_its_order),
      cmocka_unit_test(what_is_needed_late_is_started_late),
      cmocka_unit_test(each_direction_of_the_host_has_a_stream),
      cmocka_unit_test(independent_work_fills_the_gap),
      cmocka_unit_test(tracks_and_memory_are_limits),
      cmocka_unit_test(compilers_differ),
      cmocka_unit_test(large_groups_make_no_rings),
      cmocka_unit_test(what_is_no_ring_is_done_as_figures_say),
      cmocka_unit_test(flags_change_what_a_compiler_does),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
