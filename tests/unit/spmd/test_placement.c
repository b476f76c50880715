// Placements: which box of a tensor each partition holds, from Shardy and GSPMD forms.
#include <stdio.h>

#include "sim/spmd/gspmd/gspmd.h"
#include "sim/spmd/sharding/placement.h"
#include "tests/unit/support/ir_test.h"
#include "tests/unit/support/sdy_test.h"

// A module for its arena and types, and a top scope.
typedef struct {
  ir_t ir;
  mp_arena_t *arena;
  const mp_spmd_scope_t *top;
} bench_t;

static bench_t start(uint32_t num_partitions) {
  bench_t bench = {.ir = ir_start("", "")};
  bench.arena = bench.ir.module->arena;
  assert_ok(mp_spmd_scope_top(bench.arena, num_partitions, &bench.top));
  return bench;
}

static void finish(bench_t *bench) {
  ir_end(&bench->ir);
}

static const mp_type_t *type_of(bench_t *bench, const char *text) {
  return ir_parse_type(&bench->ir, &text);
}

static void check_boxes(const mp_boxes_t *boxes, const char *expected) {
  mp_strbuf_t out;
  mp_strbuf_init(&out);
  if (boxes == NULL) {
    mp_strbuf_puts(&out, "whole");
  } else {
    ir_dump_boxes(&out, boxes);
  }
  assert_string_equal(mp_strbuf_text(&out), expected);
  mp_strbuf_deinit(&out);
}

// ---- Shardy ----

typedef struct {
  const char *mesh, *type, *sharding, *expected;
} sdy_case_t;

static void test_sdy_forms(void **state) {
  (void)state;
  static const sdy_case_t cases[] = {
      {"x=2 y=2", "8xf32", "x", "0:[0+4] 1:[0+4] 2:[4+4] 3:[4+4]"},
      {"x=2 y=2", "8xf32", "y", "0:[0+4] 1:[4+4] 2:[0+4] 3:[4+4]"},
      {"x=2 y=2", "8xf32", "x,y", "0:[0+2] 1:[2+2] 2:[4+2] 3:[6+2]"},
      {"x=2 y=2", "8xf32", "y,x", "0:[0+2] 1:[4+2] 2:[2+2] 3:[6+2]"},
      {"x=2 y=2", "4x6xf32", "y;x", "0:[0+2,0+3] 1:[2+2,0+3] 2:[0+2,3+3] 3:[2+2,3+3]"},
      {"x=2 y=2", "4x6xf32", ";x?", "0:[0+4,0+3] 1:[0+4,0+3] 2:[0+4,3+3] 3:[0+4,3+3]"},
      {"x=2 y=2", "4x6xf32", ";", "whole"},
      {"x=2 y=2", "f32", "", "whole"},
      // Sub-axes: the major and the minor half of x.
      {"x=4", "8xf32", "x:1:2", "0:[0+4] 1:[0+4] 2:[4+4] 3:[4+4]"},
      {"x=4", "8xf32", "x:2:2", "0:[0+4] 1:[4+4] 2:[0+4] 3:[4+4]"},
      {"x=4", "8xf32", "x:2:2,x:1:2", "0:[0+2] 1:[4+2] 2:[2+2] 3:[6+2]"},
      // Uneven: parts of ceil(n/k), the last ones shorter or empty.
      {"x=4", "10xf32", "x", "0:[0+3] 1:[3+3] 2:[6+3] 3:[9+1]"},
      {"x=4", "5xf32", "x", "0:[0+2] 1:[2+2] 2:[4+1] 3:[6+0]"},
      {"x=4", "2xf32", "x", "0:[0+1] 1:[1+1] 2:[2+0] 3:[3+0]"},
      {"x=4", "0xf32", "x", "0:[0+0] 1:[1+0] 2:[2+0] 3:[3+0]"},
      {"x=4 z=1", "8xf32", "z", "whole"},
      {"", "8x8xf32", ";", "whole"},  // the maximal and the empty mesh
      {"", "token", "", "whole"},
      {"x=4", "?xf32", "x", "whole"},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    bench_t bench = start(4);
    const mp_boxes_t *boxes = NULL;
    const mp_type_t *type = type_of(&bench, cases[i].type);
    const mp_mesh_t *mesh = sdy_mesh(bench.arena, cases[i].mesh, NULL, 0);
    const mp_sdy_sharding_t sharding =
        sdy_sharding(bench.arena, mesh, type->rank, cases[i].sharding);
    assert_ok(mp_placement_from_sdy(bench.top, type, &sharding, NULL, &boxes));
    check_boxes(boxes, cases[i].expected);
    finish(&bench);
  }
}

static void test_sdy_refusals(void **state) {
  (void)state;
  static const sdy_case_t cases[] = {
      {"x=2 y=4", "8xf32", "x", "mesh @mesh has 8 devices, the program 4"},
      {"x=4", "8xf32", "w", "mesh @mesh has no axis \"w\""},
      {"x=4", "8xf32", "x:1:3", "sub-axis \"x\":(1)3 does not divide its axis of size 4"},
      {"x=4", "8xf32", "x:0:2", "sub-axis"},
      {"x=4", "8xf32", "x,x", "uses axis \"x\" twice"},
      {"x=4", "8x8xf32", "x;x", "uses axis \"x\" twice"},
      {"x=4", "8x8xf32", "x;x:2:2", "uses axis \"x\" twice"},
      {"x=0", "8xf32", "x", "mesh @mesh has 0 devices, the program 4"},
      {"x=4611686018427387904 y=4611686018427387904", "8xf32", "x", "9223372036854775807 devices"},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    bench_t bench = start(4);
    const mp_boxes_t *boxes = NULL;
    const mp_type_t *type = type_of(&bench, cases[i].type);
    const mp_mesh_t *mesh = sdy_mesh(bench.arena, cases[i].mesh, NULL, 0);
    const mp_sdy_sharding_t sharding =
        sdy_sharding(bench.arena, mesh, type->rank, cases[i].sharding);
    assert_status(mp_placement_from_sdy(bench.top, type, &sharding, NULL, &boxes),
                  MP_INVALID_ARGUMENT, cases[i].expected);
    finish(&bench);
  }
}

static void test_sdy_other_refusals(void **state) {
  (void)state;
  bench_t bench = start(4);
  const mp_boxes_t *boxes = NULL;
  const mp_mesh_t *mesh = sdy_mesh(bench.arena, "x=4", NULL, 0);
  mp_sdy_sharding_t sharding = sdy_sharding(bench.arena, mesh, 1, "x");
  assert_status(
      mp_placement_from_sdy(bench.top, type_of(&bench, "8x8xf32"), &sharding, NULL, &boxes),
      MP_INVALID_ARGUMENT, "a sharding of rank 1 on a tensor of rank 2");
  sharding.unreduced = sdy_axis_list(bench.arena, "x");
  assert_status(mp_placement_from_sdy(bench.top, type_of(&bench, "8xf32"), &sharding, NULL, &boxes),
                MP_INVALID_ARGUMENT, "uses axis \"x\" twice");
  const int64_t ids[] = {0, 1, 2, 2};
  sharding = sdy_sharding(bench.arena, sdy_mesh(bench.arena, "x=4", ids, 4), 1, "x");
  assert_status(mp_placement_from_sdy(bench.top, type_of(&bench, "8xf32"), &sharding, NULL, &boxes),
                MP_INVALID_ARGUMENT, "not a permutation of 0 .. 3");
  // As many axes as a hostile program cares to write.
  char many[400] = "";
  for (int i = 0; i < 66; ++i) (void)strcat(many, i == 0 ? "x:4:1" : ",x:4:1");
  sharding = sdy_sharding(bench.arena, mesh, 1, many);
  assert_ok(mp_placement_from_sdy(bench.top, type_of(&bench, "8xf32"), &sharding, NULL, &boxes));
  assert_null(boxes);
  finish(&bench);
}

static void test_device_ids(void **state) {
  (void)state;
  bench_t bench = start(4);
  const mp_boxes_t *boxes = NULL;
  const int64_t ids[] = {3, 1, 0, 2};  // position 0 is partition 3
  const mp_mesh_t *mesh = sdy_mesh(bench.arena, "x=4", ids, 4);
  const mp_sdy_sharding_t sharding = sdy_sharding(bench.arena, mesh, 1, "x");
  assert_ok(mp_placement_from_sdy(bench.top, type_of(&bench, "8xf32"), &sharding, NULL, &boxes));
  check_boxes(boxes, "0:[4+2] 1:[2+2] 2:[6+2] 3:[0+2]");
  // The maximal mesh: no axes, one id.
  const int64_t one[] = {2};
  const mp_sdy_sharding_t maximal =
      sdy_sharding(bench.arena, sdy_mesh(bench.arena, "", one, 1), 1, "");
  assert_ok(mp_placement_from_sdy(bench.top, type_of(&bench, "8xf32"), &maximal, NULL, &boxes));
  assert_null(boxes);
  finish(&bench);
}

// Unreduced over y, sharded over x, copied over z: partitions that differ in y hold terms of a sum.
static void test_unreduced(void **state) {
  (void)state;
  bench_t bench = start(8);
  const mp_boxes_t *boxes = NULL;
  const mp_mesh_t *mesh = sdy_mesh(bench.arena, "x=2 y=2 z=2", NULL, 0);
  mp_sdy_sharding_t sharding = sdy_sharding(bench.arena, mesh, 1, "x");
  sharding.unreduced = sdy_axis_list(bench.arena, "y");
  assert_ok(mp_placement_from_sdy(bench.top, type_of(&bench, "8xf32"), &sharding, NULL, &boxes));
  const int32_t partials[] = {0, 1, 0, 1, 4, 5, 4, 5};
  assert_memory_equal(boxes->partials, partials, sizeof(partials));
  bool is_grid = false;
  mp_tiles_t tiles;
  assert_ok(mp_placement_to_tiles(bench.arena, boxes, &is_grid, &tiles));
  assert_true(is_grid);
  assert_int_equal(tiles.copies, 4);
  assert_int_equal(tiles.terms, 2);
  const int64_t partitions[] = {0, 1, 2, 3, 4, 5, 6, 7};
  assert_memory_equal(tiles.partitions, partitions, sizeof(partitions));
  // Over z: within a tile by term, then by copy.
  sharding.unreduced = sdy_axis_list(bench.arena, "z");
  assert_ok(mp_placement_from_sdy(bench.top, type_of(&bench, "8xf32"), &sharding, NULL, &boxes));
  assert_ok(mp_placement_to_tiles(bench.arena, boxes, &is_grid, &tiles));
  const int64_t by_term[] = {0, 2, 1, 3, 4, 6, 5, 7};
  assert_memory_equal(tiles.partitions, by_term, sizeof(by_term));
  // Only unreduced, and equal however often it is made.
  sharding = sdy_sharding(bench.arena, mesh, 1, "");
  sharding.unreduced = sdy_axis_list(bench.arena, "x,y,z");
  const mp_boxes_t *again = NULL;
  assert_ok(mp_placement_from_sdy(bench.top, type_of(&bench, "8xf32"), &sharding, NULL, &boxes));
  assert_ok(mp_placement_from_sdy(bench.top, type_of(&bench, "8xf32"), &sharding, NULL, &again));
  assert_non_null(boxes);
  assert_ptr_equal(boxes, again);
  // Terms of a maximum are no terms of a sum.
  sharding.unreduced_kind = MP_UNREDUCED_MAX;
  assert_ok(mp_placement_from_sdy(bench.top, type_of(&bench, "8xf32"), &sharding, NULL, &again));
  assert_int_equal(again->unreduced_kind, MP_UNREDUCED_MAX);
  assert_false(mp_placement_equal(boxes, again));
  finish(&bench);
}

// Equal boxes are one object, however they were written.
static void test_pool(void **state) {
  (void)state;
  bench_t bench = start(4);
  const mp_mesh_t *mesh = sdy_mesh(bench.arena, "x=2 y=2", NULL, 0);
  const mp_type_t *type = type_of(&bench, "8xf32");
  const char *const spellings[] = {"x,y", "x,y?", "x,y:1:2"};
  const mp_boxes_t *first = NULL, *boxes = NULL;
  assert_ok(mp_placement_from_gspmd(bench.top, type, MP_STR("{devices=[4]<=[4]}"), &first));
  for (int i = 0; i < 3; ++i) {
    const mp_sdy_sharding_t sharding = sdy_sharding(bench.arena, mesh, 1, spellings[i]);
    assert_ok(mp_placement_from_sdy(bench.top, type, &sharding, NULL, &boxes));
    assert_ptr_equal(boxes, first);
  }
  // Many different ones: the table grows and still finds them.
  for (int round = 0; round < 2; ++round) {
    for (int64_t dim = 1; dim < 400; ++dim) {
      static const mp_boxes_t *seen[400];
      const mp_type_t *other = NULL;
      assert_ok(mp_type_tensor(bench.arena, MP_DTYPE_F32, &dim, 1, &other));
      assert_ok(mp_placement_from_gspmd(bench.top, other, MP_STR("{devices=[4]<=[4]}"), &boxes));
      if (round == 1) assert_ptr_equal(boxes, seen[dim]);
      seen[dim] = boxes;
    }
  }
  finish(&bench);
}

// ---- scopes ----

static void test_scopes(void **state) {
  (void)state;
  bench_t bench = start(8);
  const mp_mesh_t *mesh = sdy_mesh(bench.arena, "x=2 y=2 z=2", NULL, 0);
  const mp_spmd_scope_t *outer = NULL, *inner = NULL;
  assert_ok(
      mp_spmd_scope_enter(bench.arena, bench.top, mesh, sdy_axis_list(bench.arena, "y"), &outer));
  assert_ok(mp_spmd_scope_enter(bench.arena, outer, mesh, sdy_axis_list(bench.arena, "x"), &inner));
  const int32_t by_y[] = {0, 0, 1, 1, 0, 0, 1, 1};
  const int32_t by_xy[] = {0, 0, 1, 1, 2, 2, 3, 3};
  assert_memory_equal(outer->groups, by_y, sizeof(by_y));
  assert_memory_equal(inner->groups, by_xy, sizeof(by_xy));
  // Manual axes do not split; `only` picks the manual ones of an operand.
  const mp_type_t *type = type_of(&bench, "8xf32");
  const mp_sdy_sharding_t sharding = sdy_sharding(bench.arena, mesh, 1, "y,z");
  const mp_boxes_t *boxes = NULL;
  assert_ok(mp_placement_from_sdy(outer, type, &sharding, NULL, &boxes));
  check_boxes(boxes, "0:[0+4] 1:[4+4] 2/1:[0+4] 3/1:[4+4] 4:[0+4] 5:[4+4] 6/1:[0+4] 7/1:[4+4]");
  assert_ok(mp_placement_from_sdy(bench.top, type, &sharding, &outer->manual_axes, &boxes));
  check_boxes(boxes, "0:[0+4] 1:[0+4] 2:[4+4] 3:[4+4] 4:[0+4] 5:[0+4] 6:[4+4] 7:[4+4]");
  finish(&bench);
}

// ---- GSPMD ----

static void test_gspmd_strings(void **state) {
  (void)state;
  static const struct {
    const char *text, *type, *expected;
  } cases[] = {
      {"{replicated}", "8xf32", "whole"},
      {"{manual}", "8xf32", "whole"},
      {"{unknown shard_as 3}", "8xf32", "whole"},
      {"{maximal device=3}", "8xf32", "whole"},
      {"{devices=[4]<=[4]}", "8xf32", "0:[0+2] 1:[2+2] 2:[4+2] 3:[6+2]"},
      {"{devices=[4]3,1,2,0}", "8xf32", "0:[6+2] 1:[2+2] 2:[4+2] 3:[0+2]"},
      {"{devices=[2,2]<=[2,2]T(1,0)}", "4x4xf32",
       "0:[0+2,0+2] 1:[2+2,0+2] 2:[0+2,2+2] 3:[2+2,2+2]"},
      {"{devices=[2,1,2]<=[4] last_tile_dim_replicate}", "4x4xf32",
       "0:[0+2,0+4] 1:[0+2,0+4] 2:[2+2,0+4] 3:[2+2,0+4]"},
      {"{devices=[1,2,2]<=[2,2]T(1,0) last_tile_dims={manual}}", "4x4xf32",
       "0:[0+4,0+2] 1:[0+4,2+2] 2:[0+4,0+2] 3:[0+4,2+2]"},
      {"{devices=[1,1,2,2]<=[4] last_tile_dims={manual, replicated}}", "4x4xf32", "whole"},
      {"{devices=[4]<=[4] metadata={op_name=\"x\"}}", "6xf32", "0:[0+2] 1:[2+2] 2:[4+2] 3:[6+0]"},
      {"{devices=[4]<=[4]}", "?xf32", "whole"},
      {"{devices=[4]<=[4]}", "token", "whole"},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    bench_t bench = start(4);
    const mp_boxes_t *boxes = NULL;
    assert_ok(mp_placement_from_gspmd(bench.top, type_of(&bench, cases[i].type),
                                      mp_str(cases[i].text), &boxes));
    check_boxes(boxes, cases[i].expected);
    finish(&bench);
  }
}

static void test_gspmd_refusals(void **state) {
  (void)state;
  static const struct {
    const char *text;
    mp_status_code_t code;
    const char *expected;
  } cases[] = {
      {"", MP_INVALID_ARGUMENT, "position 0: expected '{'"},
      {"replicated", MP_INVALID_ARGUMENT, "position 0: expected '{'"},
      {"{", MP_INVALID_ARGUMENT, "position 1: expected replicated, manual"},
      {"{replicated", MP_INVALID_ARGUMENT, "position 11: expected '}' and the end"},
      {"{replicated} ", MP_INVALID_ARGUMENT, "position 12: expected '}' and the end"},
      {"{{replicated}}", MP_INVALID_ARGUMENT, "position 1: expected replicated"},
      {"{maximal}", MP_INVALID_ARGUMENT, "position 8: expected device="},
      {"{maximal device=}", MP_INVALID_ARGUMENT, "position 16: expected a number"},
      {"{devices=[]<=[4]}", MP_INVALID_ARGUMENT, "position 10: expected a number"},
      {"{devices=[2,2<=[4]}", MP_INVALID_ARGUMENT, "position 13: expected ']'"},
      {"{devices=[0]<=[4]}", MP_INVALID_ARGUMENT, "position 12: expected tiles"},
      {"{devices=[8]<=[8]}", MP_INVALID_ARGUMENT, "position 12: expected tiles for at most"},
      {"{devices=[99999999999999999999]<=[4]}", MP_INVALID_ARGUMENT, "expected a smaller number"},
      {"{devices=[2000000000,2000000000,2000000000]<=[4]}", MP_INVALID_ARGUMENT, "expected tiles"},
      {"{devices=[4]<=[2]}", MP_INVALID_ARGUMENT, "expected a reshape of as many devices"},
      {"{devices=[4]<=[2,2]T(0,0)}", MP_INVALID_ARGUMENT, "expected a permutation"},
      {"{devices=[4]<=[2,2]T(0)}", MP_INVALID_ARGUMENT, "expected a permutation"},
      {"{devices=[4]<=[2,2]T(0,2)}", MP_INVALID_ARGUMENT, "expected a permutation"},
      {"{devices=[4]0,1,2}", MP_INVALID_ARGUMENT, "expected as many devices as there are tiles"},
      {"{devices=[4]0,1,2,3,4}", MP_INVALID_ARGUMENT, "position 20: expected fewer numbers"},
      {"{devices=[4]0,1,1,3}", MP_INVALID_ARGUMENT, "names partition 1 twice"},
      {"{devices=[4]0,1,7,3}", MP_INVALID_ARGUMENT, "names partition 7 twice or beyond 4"},
      {"{devices=[2]<=[2]}", MP_INVALID_ARGUMENT, "a sharding over 2 devices in a program of 4"},
      {"{devices=[2,2]<=[4]}", MP_INVALID_ARGUMENT, "on a tensor of rank 1"},
      {"{devices=[4]<=[4] last_tile_dims={manual,manual}}", MP_INVALID_ARGUMENT,
       "expected fewer subgroups"},
      {"{devices=[4]<=[4] last_tile_dims={what}}", MP_INVALID_ARGUMENT,
       "expected replicated, manual, unreduced or maximal"},
      {"{unreduced}", MP_UNIMPLEMENTED, "unreduced shardings"},
      {"{devices=[2,2]<=[4] last_tile_dims={unreduced}}", MP_UNIMPLEMENTED, "unreduced shardings"},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    bench_t bench = start(4);
    const mp_boxes_t *boxes = NULL;
    assert_status(
        mp_placement_from_gspmd(bench.top, type_of(&bench, "8xf32"), mp_str(cases[i].text), &boxes),
        cases[i].code, cases[i].expected);
    finish(&bench);
  }
}

// ---- random shardings against straightforward models ----

static uint64_t g_seed;

static uint32_t pick(uint32_t count) {
  g_seed = g_seed * 6364136223846793005ull + 1442695040888963407ull;
  return (uint32_t)(g_seed >> 33) % count;
}

static void shuffle(int64_t *values, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) values[i] = i;
  for (uint32_t i = count; i > 1; --i) {
    const uint32_t k = pick(i);
    const int64_t value = values[i - 1];
    values[i - 1] = values[k];
    values[k] = value;
  }
}

// What partition p holds of dimension d by the model: start and size.
typedef struct {
  int64_t parts[4];
  int64_t index[4][64];
} model_t;

static void check_model(const mp_boxes_t *boxes, const mp_type_t *type, const model_t *model,
                        uint32_t num_partitions, uint64_t seed) {
  bool is_whole = true;
  for (uint32_t d = 0; d < type->rank; ++d) is_whole &= model->parts[d] == 1;
  if (is_whole) {
    assert_null(boxes);
    return;
  }
  assert_non_null(boxes);
  for (uint32_t p = 0; p < num_partitions; ++p) {
    for (uint32_t d = 0; d < type->rank; ++d) {
      int64_t step = 0;
      while (step * model->parts[d] < type->dims[d]) ++step;
      int64_t size = 0;
      const int64_t start = model->index[d][p] * step;
      for (int64_t i = start; i < start + step; ++i) size += i < type->dims[d];
      const size_t at = (size_t)p * type->rank + d;
      if (boxes->sizes[at] != size || (size != 0 && boxes->starts[at] != start)) {
        fail_msg("seed %llu: partition %u, dimension %u: %lld+%lld instead of %lld+%lld",
                 (unsigned long long)seed, p, d, (long long)boxes->starts[at],
                 (long long)boxes->sizes[at], (long long)start, (long long)size);
      }
    }
  }
}

// The way back from boxes to tiles and forth again.
static void check_tiles(bench_t *bench, const mp_boxes_t *boxes) {
  bool is_grid = false;
  mp_tiles_t tiles;
  assert_ok(mp_placement_to_tiles(bench->arena, boxes, &is_grid, &tiles));
  assert_true(is_grid);
  int64_t num_tiles = 1;
  for (uint32_t d = 0; d < tiles.rank; ++d) num_tiles *= tiles.tiles[d];
  assert_int_equal(num_tiles * tiles.copies, boxes->num_partitions);
  for (int64_t i = 0; i < num_tiles * tiles.copies; ++i) {
    const int64_t p = tiles.partitions[i];
    if (i % tiles.copies != 0) assert_true(tiles.partitions[i - 1] < p);
    int64_t rest = i / tiles.copies;
    for (uint32_t d = tiles.rank; d-- > 0;) {
      int64_t part_start = 0, size = 0;
      mp_placement_part(boxes->dims[d], tiles.tiles[d], rest % tiles.tiles[d], &part_start, &size);
      rest /= tiles.tiles[d];
      assert_int_equal(boxes->starts[(size_t)p * tiles.rank + d], part_start);
      assert_int_equal(boxes->sizes[(size_t)p * tiles.rank + d], size);
    }
  }
}

static const mp_type_t *random_type(bench_t *bench, uint32_t rank) {
  int64_t dims[4];
  const mp_type_t *type = NULL;
  for (uint32_t d = 0; d < rank; ++d) dims[d] = pick(14);
  assert_ok(mp_type_tensor(bench->arena, MP_DTYPE_F32, dims, rank, &type));
  return type;
}

// Axes are cut into sub-axes of a major and a minor factor; each is given to a random dimension.
static void random_sdy(uint64_t seed) {
  g_seed = seed;
  static const uint32_t sizes[] = {1, 2, 3, 4, 6};
  static const char *const names[] = {"a", "b", "c"};
  uint32_t axis_size[3], num_partitions = 1;
  char mesh_text[64] = "";
  for (int a = 0; a < 3; ++a) {
    axis_size[a] = sizes[pick(5)];
    if (num_partitions * axis_size[a] > 48) axis_size[a] = 1;
    num_partitions *= axis_size[a];
    (void)snprintf(mesh_text + strlen(mesh_text), 16, "%s%s=%u", a == 0 ? "" : " ", names[a],
                   axis_size[a]);
  }
  if (num_partitions == 1) return;
  bench_t bench = start(num_partitions);
  int64_t ids[64];
  shuffle(ids, num_partitions);
  const bool has_ids = pick(2) == 0;
  const mp_mesh_t *mesh =
      sdy_mesh(bench.arena, mesh_text, has_ids ? ids : NULL, has_ids ? num_partitions : 0);
  const uint32_t rank = 1 + pick(3);
  const mp_type_t *type = random_type(&bench, rank);

  model_t model = {.parts = {1, 1, 1, 1}};
  char text[4][128] = {"", "", "", ""};
  for (uint32_t a = 0; a < 3; ++a) {
    const uint32_t major = axis_size[a] % 2 == 0 && pick(2) == 0 ? 2 : axis_size[a];
    const uint32_t factor[2] = {major, axis_size[a] / major};
    for (uint32_t half = 0; half < 2; ++half) {
      const uint32_t d = pick(rank + 1);  // rank: nowhere
      if (d == rank || factor[half] == 1) continue;
      char *at = text[d] + strlen(text[d]);
      (void)snprintf(at, 32, "%s%s", text[d][0] == '\0' ? "" : ",", names[a]);
      if (factor[0] != axis_size[a]) {
        (void)snprintf(at + strlen(at), 16, ":%u:%u", half == 0 ? 1 : major, factor[half]);
      }
      model.parts[d] *= factor[half];
      for (uint32_t position = 0; position < num_partitions; ++position) {
        uint32_t coordinate = position;
        for (uint32_t later = 2; later > a; --later) coordinate /= axis_size[later];
        coordinate %= axis_size[a];
        const uint32_t digit = half == 0 ? coordinate / factor[1] : coordinate % factor[1];
        const int64_t p = has_ids ? ids[position] : position;
        model.index[d][p] = model.index[d][p] * factor[half] + digit;
      }
    }
  }
  char sharding_text[512] = "";
  for (uint32_t d = 0; d < rank; ++d) {
    (void)strcat(strcat(sharding_text, d == 0 ? "" : ";"), text[d]);
  }
  const mp_sdy_sharding_t sharding = sdy_sharding(bench.arena, mesh, rank, sharding_text);
  const mp_boxes_t *boxes = NULL;
  assert_ok(mp_placement_from_sdy(bench.top, type, &sharding, NULL, &boxes));
  check_model(boxes, type, &model, num_partitions, seed);
  if (boxes != NULL) check_tiles(&bench, boxes);
  finish(&bench);
}

#ifdef UNIT_SANITIZED
enum { NUM_RANDOM = 500 };
#else
enum { NUM_RANDOM = 2000 };
#endif

static void test_random_sdy(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= NUM_RANDOM; ++seed) random_sdy(seed);
}

// "{devices=[t..]<=[r..]T(p..)}" or the same as a list, with or without a replicated subgroup.
static void random_gspmd(uint64_t seed) {
  g_seed = seed;
  const uint32_t rank = 1 + pick(3);
  const bool has_subgroup = pick(2) == 0;
  const uint32_t num_tiles = rank + has_subgroup;
  int64_t tiles[4], permutation[4];
  uint32_t num_partitions = 1;
  for (uint32_t i = 0; i < num_tiles; ++i) {
    tiles[i] = 1 + pick(4);
    if (num_partitions * tiles[i] > 48) tiles[i] = 1;
    num_partitions *= (uint32_t)tiles[i];
  }
  if (num_partitions == 1) return;
  bench_t bench = start(num_partitions);
  const mp_type_t *type = random_type(&bench, rank);
  shuffle(permutation, num_tiles);
  // The reshape that is transposed has the tiles' sizes in another order.
  int64_t reshape[4], stride[4], devices[64];
  for (uint32_t i = 0; i < num_tiles; ++i) reshape[permutation[i]] = tiles[i];
  for (int64_t i = (int64_t)num_tiles - 1, s = 1; i >= 0; s *= reshape[i--]) stride[i] = s;
  model_t model = {.parts = {1, 1, 1, 1}};
  for (uint32_t i = 0; i < num_partitions; ++i) {
    int64_t rest = i, device = 0, index[4];
    for (uint32_t t = num_tiles; t-- > 0; rest /= tiles[t]) {
      index[t] = rest % tiles[t];
      device += index[t] * stride[permutation[t]];
    }
    devices[i] = device;
    for (uint32_t d = 0; d < rank; ++d) model.index[d][device] = index[d];
  }
  for (uint32_t d = 0; d < rank; ++d) model.parts[d] = tiles[d];

  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_strbuf_puts(&text, "{devices=[");
  ir_dump_numbers(&text, tiles, num_tiles);
  if (pick(2) == 0) {
    mp_strbuf_puts(&text, "]<=[");
    ir_dump_numbers(&text, reshape, num_tiles);
    mp_strbuf_puts(&text, "]T(");
    ir_dump_numbers(&text, permutation, num_tiles);
    mp_strbuf_putc(&text, ')');
  } else {
    mp_strbuf_putc(&text, ']');
    ir_dump_numbers(&text, devices, num_partitions);
  }
  mp_strbuf_puts(&text, has_subgroup ? " last_tile_dim_replicate}" : "}");
  const mp_boxes_t *boxes = NULL;
  assert_ok(mp_placement_from_gspmd(bench.top, type, (mp_str_t){text.data, text.size}, &boxes));
  check_model(boxes, type, &model, num_partitions, seed);
  if (boxes != NULL) check_tiles(&bench, boxes);
  mp_strbuf_deinit(&text);
  finish(&bench);
}

static void test_random_gspmd(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= NUM_RANDOM; ++seed) random_gspmd(seed);
}

// ---- limits ----

static void test_limits(void **state) {
  (void)state;
  bench_t bench = start(65536);
  const mp_mesh_t *mesh = sdy_mesh(bench.arena, "x=65536", NULL, 0);
  const mp_spmd_scope_t *scope = NULL;
  assert_ok(
      mp_spmd_scope_enter(bench.arena, bench.top, mesh, sdy_axis_list(bench.arena, "x"), &scope));
  assert_int_equal(scope->groups[65535], 65535);
  // A thousand annotations of the same boxes take the room of one.
  const mp_type_t *type = type_of(&bench, "65536x2xf32");
  const mp_sdy_sharding_t sharding = sdy_sharding(bench.arena, mesh, 2, "x;");
  const mp_boxes_t *boxes = NULL;
  assert_ok(mp_placement_from_sdy(bench.top, type, &sharding, NULL, &boxes));
  const size_t before = mp_arena_bytes(bench.arena);
  for (int i = 0; i < 100; ++i) {
    assert_ok(mp_placement_from_sdy(bench.top, type, &sharding, NULL, &boxes));
    assert_ok(
        mp_placement_from_gspmd(bench.top, type, MP_STR("{devices=[65536,1]<=[65536]}"), &boxes));
  }
  assert_true(mp_arena_bytes(bench.arena) - before < 1024);
  // Ranks beyond the limit are refused, also where nothing is split.
  int64_t dims[40];
  for (int i = 0; i < 40; ++i) dims[i] = 1;
  const mp_type_t *deep = NULL;
  assert_ok(mp_type_tensor(bench.arena, MP_DTYPE_F32, dims, 40, &deep));
  assert_status(mp_placement_whole(bench.top, deep, &boxes), MP_UNIMPLEMENTED,
                "a tensor of rank 40; at most 32 are supported");
  finish(&bench);
}

// Overlapping boxes, and boxes that leave something out.
static void test_no_grid(void **state) {
  (void)state;
  bench_t bench = start(2);
  const int64_t dims[] = {6}, starts[] = {0, 2}, sizes[] = {4, 4};
  const mp_boxes_t boxes = {2, 1, dims, starts, sizes, bench.top->groups, NULL, 0};
  bool is_grid = true;
  mp_tiles_t tiles;
  assert_ok(mp_placement_to_tiles(bench.arena, &boxes, &is_grid, &tiles));
  assert_false(is_grid);
  const int64_t same[] = {0, 0}, half[] = {3, 3};
  const mp_boxes_t missing = {2, 1, dims, same, half, bench.top->groups, NULL, 0};
  assert_ok(mp_placement_to_tiles(bench.arena, &missing, &is_grid, &tiles));
  assert_false(is_grid);
  finish(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sdy_forms),
      cmocka_unit_test(test_sdy_refusals),
      cmocka_unit_test(test_sdy_other_refusals),
      cmocka_unit_test(test_device_ids),
      cmocka_unit_test(test_unreduced),
      cmocka_unit_test(test_pool),
      cmocka_unit_test(test_scopes),
      cmocka_unit_test(test_gspmd_strings),
      cmocka_unit_test(test_gspmd_refusals),
      cmocka_unit_test(test_random_sdy),
      cmocka_unit_test(test_random_gspmd),
      cmocka_unit_test(test_limits),
      cmocka_unit_test(test_no_grid),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
