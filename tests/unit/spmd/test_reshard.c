// Resharding plans: the steps from one layout to another, and what they cost. That the ops compute
// what they shall is tested end to end (tests/e2e/sharding/test_reshard.py).
#include <stdio.h>

#include "sim/spmd/reshard/reshard_plan.h"
#include "tests/unit/support/ir_test.h"
#include "tests/unit/support/sdy_test.h"

typedef struct {
  ir_t ir;
  mp_arena_t *arena;
  const mp_spmd_scope_t *top;
  const mp_mesh_t *mesh;
  const mp_type_t *type;
} bench_t;

static bench_t start(const char *mesh, const char *type) {
  bench_t bench = {.ir = ir_start("", "")};
  bench.arena = bench.ir.module->arena;
  bench.mesh = sdy_mesh(bench.arena, mesh, NULL, 0);
  bench.type = ir_parse_type(&bench.ir, &type);
  assert_ok(mp_spmd_scope_top(bench.arena, (uint32_t)mp_mesh_size(bench.mesh), &bench.top));
  return bench;
}

// "x;y" or, unreduced, "x;y +z".
static const mp_boxes_t *place(bench_t *bench, const char *text) {
  const char *plus = strstr(text, " +");
  char *dims =
      mp_arena_strndup(bench->arena, text, plus == NULL ? strlen(text) : (size_t)(plus - text));
  mp_sdy_sharding_t sharding = sdy_sharding(bench->arena, bench->mesh, bench->type->rank, dims);
  if (plus != NULL) sharding.unreduced = sdy_axis_list(bench->arena, plus + 2);
  const mp_boxes_t *boxes = NULL;
  assert_ok(mp_placement_from_sdy(bench->top, bench->type, &sharding, NULL, &boxes));
  return boxes;
}

static const char *const g_kinds[] = {
    [MP_RESHARD_SLICE] = "slice",       [MP_RESHARD_ALL_GATHER] = "gather",
    [MP_RESHARD_ALL_TO_ALL] = "swap",   [MP_RESHARD_PERMUTE] = "permute",
    [MP_RESHARD_ALL_REDUCE] = "reduce", [MP_RESHARD_REDUCE_SCATTER] = "scatter",
};

static void check_plan(const char *mesh, const char *type, const char *from, const char *to,
                       const char *expected) {
  bench_t bench = start(mesh, type);
  mp_reshard_plan_t plan;
  bool found = false;
  assert_ok(mp_reshard_plan(bench.type, place(&bench, from), place(&bench, to), &plan, &found));
  char text[256] = "none";
  size_t size = 0;
  for (uint32_t i = 0; found && i < plan.num_steps; ++i) {
    size += (size_t)snprintf(text + size, sizeof(text) - size, "%s ", g_kinds[plan.steps[i].kind]);
  }
  if (found) (void)snprintf(text + size, sizeof(text) - size, "%.0f", plan.bytes);
  assert_string_equal(text, expected);
  ir_end(&bench.ir);
}

// 8 x 8 floats are 256 bytes.
static void test_plain_answers(void **state) {
  (void)state;
  static const char *const cases[][3] = {
      {";", "x;y", "slice 0"},
      {"x;", "x;y", "slice 0"},
      {"x;y", "x;", "gather 96"},
      {"x;", ";", "gather 128"},
      {"x,y;", "x;", "gather 96"},
      {"x;", ";x", "swap 64"},
      {"x,y;", "x;y", "swap 24"},
      {"x,y;", "y,x;", "permute 24"},
      {"x;y", "y;x", "swap permute 32"},
      {"x;", "y;", "slice permute 32"},
      {"x;y", ";", "gather gather 224"},
      // Sums: of all, of a part, behind slices.
      {"; +x", ";", "reduce 256"},
      {"; +y", "y;", "scatter 192"},
      {"x; +y", "x;y", "scatter 96"},
      {"x; +y", ";", "reduce gather 320"},
      {"; +x", ";y", "slice reduce 64"},
      {"; +x,y", "x;", "scatter reduce 320"},
      // Terms that stay terms along one axis.
      {"; +x,y", "; +x", "reduce 384"},
      {"; +x,y", "y; +x", "scatter 192"},
      {"; +x", "; +x,y", "none"},
      {";", "; +x", "none"},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); ++i) {
    check_plan("x=2 y=4", "8x8xf32", cases[i][0], cases[i][1], cases[i][2]);
  }
}

static void test_what_has_no_plan(void **state) {
  (void)state;
  check_plan("x=4", "6xf32", "x", "", "none");       // uneven parts
  check_plan("x=4", "0x4xf32", "x;", ";x", "none");  // nothing to send
  check_plan("x=2 y=3", "6x6xf32", "x;", "y;", "slice permute gather 40");
  check_plan("x=3 y=2", "6x6xf32", "x;y", "y;x", "swap permute swap 44");
  // Halves of a narrow sum would be rounded once more.
  check_plan("x=2 y=4", "8x8xbf16", "; +x,y", "x;", "reduce slice 224");
}

// Inside a manual region partitions of other groups hold other values: no way leads through them.
static void test_groups(void **state) {
  (void)state;
  bench_t bench = start("x=2 y=2 z=2", "8x8xf32");
  assert_ok(mp_spmd_scope_enter(bench.arena, bench.top, bench.mesh, sdy_axis_list(bench.arena, "x"),
                                &bench.top));
  mp_reshard_plan_t plan;
  bool found = false;
  assert_ok(mp_reshard_plan(bench.type, place(&bench, "z;y"), place(&bench, "y;"), &plan, &found));
  assert_true(found);
  for (uint32_t i = 0; i < plan.num_steps; ++i) {
    assert_int_equal(plan.steps[i].after.dim[0], MP_LAYOUT_COPIES);
  }
  ir_end(&bench.ir);
}

// ---- at random ----

static uint32_t next(uint32_t *seed) {
  *seed = *seed * 1664525u + 1013904223u;
  return *seed >> 8;
}

// Axes in random order on random dimensions, or on none.
static void random_sharding(uint32_t *seed, const char *axes, uint32_t rank, char *out) {
  char order[8];
  const uint32_t count = (uint32_t)strlen(axes);
  memcpy(order, axes, count + 1);
  for (uint32_t i = count; i > 1; --i) {
    const uint32_t j = next(seed) % i;
    const char swapped = order[j];
    order[j] = order[i - 1];
    order[i - 1] = swapped;
  }
  uint32_t where[8];
  for (uint32_t i = 0; i < count; ++i) where[i] = next(seed) % (rank + 1);
  size_t size = 0;
  for (uint32_t d = 0; d < rank; ++d) {
    bool first = true;
    for (uint32_t i = 0; i < count; ++i) {
      if (where[i] != d) continue;
      if (!first) out[size++] = ',';
      out[size++] = order[i];
      first = false;
    }
    if (d + 1 < rank) out[size++] = ';';
  }
  out[size] = '\0';
}

// Plans arrive, step from step, and never send less than what is missing; mostly little more.
static void test_random(void **state) {
  (void)state;
  static const char *const meshes[][2] = {
      {"x=2 y=4", "xy"}, {"x=2 y=2 z=2", "xyz"}, {"x=2 y=3", "xy"}, {"x=4 y=4 z=8", "xyz"}};
  uint32_t seed = 1;
  double sent = 0;
  double missing = 0;
  for (int i = 0; i < 400; ++i) {
    const char *const *mesh = meshes[i % 4];
    bench_t bench = start(mesh[0], "1536x1536xf32");
    char from[32];
    char to[32];
    random_sharding(&seed, mesh[1], 2, from);
    random_sharding(&seed, mesh[1], 2, to);
    const mp_boxes_t *source = place(&bench, from);
    const mp_boxes_t *target = place(&bench, to);
    mp_reshard_plan_t plan;
    bool found = false;
    assert_ok(mp_reshard_plan(bench.type, source, target, &plan, &found));
    const double least = mp_reshard_exchange_bytes(bench.type, source, target);
    if (found && plan.num_steps != 0) {
      mp_layout_t layout;
      assert_true(mp_layout_from_boxes(&plan.space, source, &layout));
      for (uint32_t s = 0; s < plan.num_steps; ++s) {
        assert_true(mp_layout_equal(&plan.steps[s].before, &layout));
        layout = plan.steps[s].after;
      }
      mp_layout_t wanted;
      assert_true(mp_layout_from_boxes(&plan.space, target, &wanted));
      assert_true(mp_layout_equal(&layout, &wanted));
      if (plan.bytes < least - 0.5) print_error("%s: %s -> %s\n", mesh[0], from, to);
      assert_true(plan.bytes >= least - 0.5);
      sent += plan.bytes;
      missing += least;
    } else {
      assert_true(source == target);
    }
    ir_end(&bench.ir);
  }
  assert_true(sent <= 1.1 * missing);
}

// ---- layouts ----

static void test_layouts(void **state) {
  (void)state;
  mp_atom_space_t spaces[MP_MAX_SPACES];
  assert_int_equal(mp_layout_spaces(8, spaces), 1);
  assert_int_equal(mp_layout_spaces(12, spaces), 3);
  assert_int_equal(mp_layout_spaces(1, spaces), 1);
  assert_int_equal(mp_layout_spaces(2310, spaces), MP_MAX_SPACES);
  bench_t bench = start("x=2 y=3", "6x4xf32");
  mp_layout_t layout;
  assert_int_equal(mp_layout_spaces(6, spaces), 2);
  assert_true(mp_layout_from_boxes(&spaces[0], place(&bench, "y;x"), &layout));
  assert_int_equal(layout.dim[0], 1);
  assert_int_equal(layout.dim[1], 0);
  // 3 x 2 digits do not say it.
  assert_false(mp_layout_from_boxes(&spaces[1], place(&bench, "y;x"), &layout));
  ir_end(&bench.ir);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_plain_answers), cmocka_unit_test(test_what_has_no_plan),
      cmocka_unit_test(test_groups),        cmocka_unit_test(test_random),
      cmocka_unit_test(test_layouts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
