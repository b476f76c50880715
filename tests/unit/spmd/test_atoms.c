// Atoms against a model that looks at devices one by one: random meshes, orders of devices and
// shardings; from Shardy's form and from GSPMD's strings, and back. A failure prints its seed.
#include <stdio.h>

#include "sim/ir/print/print_module.h"
#include "sim/spmd/gspmd/gspmd_import.h"
#include "sim/spmd/sharding/annotations.h"
#include "sim/spmd/sharding/atoms.h"
#include "tests/unit/support/ir_test.h"
#include "tests/unit/support/sdy_test.h"

enum { MAX_AXES = 3, MAX_DEVICES = 64, RANK = 3, CASES = 400 };

typedef struct {
  uint64_t random;
  uint32_t num_axes;
  int64_t sizes[MAX_AXES];
  uint32_t num_devices;
  int64_t device_ids[MAX_DEVICES];  // by position
  int64_t position_of[MAX_DEVICES];
  bool is_ordered;  // device_ids are 0, 1, 2, ...
  // For each axis: the dimension it shards, or RANK: none, or RANK + 1: unreduced.
  uint32_t use[MAX_AXES];
  uint32_t order[MAX_AXES];  // axes in the order in which they stand in their dimensions
  int64_t dims[RANK];
  bool is_open[RANK];
} model_t;

static uint32_t draw(model_t *model, uint32_t below) {
  model->random ^= model->random << 13;
  model->random ^= model->random >> 7;
  model->random ^= model->random << 17;
  return (uint32_t)(model->random >> 33) % below;
}

static void shuffle(model_t *model, int64_t *values, uint32_t count) {
  for (uint32_t i = count; i > 1; --i) {
    const uint32_t j = draw(model, i);
    const int64_t other = values[j];
    values[j] = values[i - 1];
    values[i - 1] = other;
  }
}

static model_t draw_model(uint64_t seed) {
  static const int64_t sizes[] = {2, 3, 4, 2};
  model_t model = {.random = seed * 0x9E3779B97F4A7C15ull + 1};
  model.num_axes = 1 + draw(&model, MAX_AXES);
  model.num_devices = 1;
  for (uint32_t a = 0; a < model.num_axes; ++a) {
    model.sizes[a] = sizes[draw(&model, 4)];
    model.num_devices *= (uint32_t)model.sizes[a];
    model.use[a] = draw(&model, RANK + 2);
    model.order[a] = a;
  }
  for (uint32_t i = model.num_axes; i > 1; --i) {
    const uint32_t j = draw(&model, i);
    const uint32_t other = model.order[j];
    model.order[j] = model.order[i - 1];
    model.order[i - 1] = other;
  }
  for (uint32_t i = 0; i < model.num_devices; ++i) model.device_ids[i] = i;
  model.is_ordered = draw(&model, 2) == 0;
  if (!model.is_ordered) shuffle(&model, model.device_ids, model.num_devices);
  for (uint32_t i = 0; i < model.num_devices; ++i) model.position_of[model.device_ids[i]] = i;
  for (uint32_t d = 0; d < RANK; ++d) {
    model.dims[d] = 1 + draw(&model, 13);
    model.is_open[d] = draw(&model, 2) == 0;
  }
  return model;
}

// ---- the model ----

static int64_t coordinate(const model_t *model, uint32_t device, uint32_t axis) {
  int64_t position = model->position_of[device];
  for (uint32_t a = model->num_axes; a-- > axis + 1;) position /= model->sizes[a];
  return position % model->sizes[axis];
}

// The part of dimension d (or of the unreduced axes) that a device has, and how many there are.
static int64_t part_of(const model_t *model, uint32_t device, uint32_t d, int64_t *out_parts) {
  int64_t part = 0;
  *out_parts = 1;
  for (uint32_t i = 0; i < model->num_axes; ++i) {
    const uint32_t a = model->order[i];
    if (model->use[a] != d) continue;
    part = part * model->sizes[a] + coordinate(model, device, a);
    *out_parts *= model->sizes[a];
  }
  return part;
}

static void check_boxes(const model_t *model, const mp_boxes_t *boxes) {
  for (uint32_t p = 0; p < model->num_devices; ++p) {
    for (uint32_t d = 0; d < RANK; ++d) {
      int64_t parts = 1;
      const int64_t part = part_of(model, p, d, &parts);
      const int64_t step = (model->dims[d] + parts - 1) / parts;
      const int64_t start = part * step;
      int64_t size = model->dims[d] - start;
      if (size > step) size = step;
      if (size < 0) size = 0;
      assert_int_equal(boxes == NULL ? model->dims[d] : boxes->sizes[p * RANK + d], size);
      if (size != 0 || boxes != NULL) {
        assert_int_equal(boxes == NULL ? 0 : boxes->starts[p * RANK + d], start);
      }
    }
  }
}

// Devices hold terms of one sum when they differ in the unreduced axes only.
static void check_partials(const model_t *model, const mp_boxes_t *boxes) {
  int64_t terms = 1;
  (void)part_of(model, 0, RANK + 1, &terms);
  const int32_t *partials = boxes == NULL ? NULL : boxes->partials;
  assert_true((partials != NULL) == (terms > 1));
  for (uint32_t p = 0; partials != NULL && p < model->num_devices; ++p) {
    for (uint32_t q = 0; q < model->num_devices; ++q) {
      bool is_same = true;
      for (uint32_t a = 0; a < model->num_axes; ++a) {
        is_same &= model->use[a] == RANK + 1 || coordinate(model, p, a) == coordinate(model, q, a);
      }
      assert_true((partials[p] == partials[q]) == is_same);
    }
    assert_true(partials[p] <= (int32_t)p && partials[partials[p]] == partials[p]);
  }
}

// ---- Shardy's form ----

static const mp_mesh_t *model_mesh(const model_t *model, mp_arena_t *arena) {
  static const char *const names[MAX_AXES] = {"x", "y", "z"};
  mp_mesh_t *mesh = MP_ARENA_NEW(arena, mp_mesh_t);
  mp_mesh_axis_t *axes = MP_ARENA_ARRAY(arena, mp_mesh_axis_t, MAX_AXES);
  for (uint32_t a = 0; a < model->num_axes; ++a) {
    axes[a] = (mp_mesh_axis_t){mp_str(names[a]), model->sizes[a]};
  }
  *mesh = (mp_mesh_t){.name = MP_STR("mesh"), .num_axes = model->num_axes, .axes = axes};
  if (!model->is_ordered) {
    mesh->num_device_ids = model->num_devices;
    mesh->device_ids =
        mp_arena_copy(arena, model->device_ids, model->num_devices * sizeof(int64_t));
  }
  return mesh;
}

static mp_axis_list_t model_axes(const model_t *model, mp_arena_t *arena, const mp_mesh_t *mesh,
                                 uint32_t use) {
  mp_axis_ref_t *axes = MP_ARENA_ARRAY(arena, mp_axis_ref_t, MAX_AXES);
  uint32_t count = 0;
  for (uint32_t i = 0; i < model->num_axes; ++i) {
    const uint32_t a = model->order[i];
    if (model->use[a] == use) axes[count++] = (mp_axis_ref_t){mesh->axes[a].name, 1, 0};
  }
  return (mp_axis_list_t){count, axes};
}

static mp_sdy_sharding_t model_sharding(const model_t *model, mp_arena_t *arena) {
  const mp_mesh_t *mesh = model_mesh(model, arena);
  mp_dim_sharding_t *dims = MP_ARENA_ARRAY(arena, mp_dim_sharding_t, RANK);
  for (uint32_t d = 0; d < RANK; ++d) {
    dims[d] = (mp_dim_sharding_t){model_axes(model, arena, mesh, d), model->is_open[d], -1};
  }
  return (mp_sdy_sharding_t){.mesh = mesh,
                             .rank = RANK,
                             .dims = dims,
                             .unreduced = model_axes(model, arena, mesh, RANK + 1)};
}

static mp_atom_sharding_t *import(const model_t *model, mp_arena_t *arena,
                                  const mp_sdy_sharding_t *sharding, mp_atom_space_t *out_space) {
  mp_atom_sharding_t *atoms = NULL;
  bool found = false;
  assert_ok(mp_atom_space_create(arena, &sharding->mesh, 1, model->num_devices, out_space, &found));
  assert_true(found);
  assert_ok(mp_atom_sharding_import(arena, out_space, sharding, 0, &atoms, &found));
  assert_true(found);
  return atoms;
}

static void check_seed(const model_t *model) {
  ir_t ir = ir_start("", "");
  mp_arena_t *arena = ir.module->arena;
  const mp_spmd_scope_t *scope = NULL;
  const mp_type_t *type = NULL;
  const mp_boxes_t *boxes = NULL;
  const mp_boxes_t *direct = NULL;
  assert_ok(mp_spmd_scope_top(arena, model->num_devices, &scope));
  assert_ok(mp_type_tensor(arena, MP_DTYPE_F32, model->dims, RANK, &type));
  const mp_sdy_sharding_t sharding = model_sharding(model, arena);
  mp_atom_space_t space;
  const mp_atom_sharding_t *atoms = import(model, arena, &sharding, &space);
  // There and back again.
  mp_sdy_sharding_t exported;
  assert_ok(mp_atom_sharding_export(arena, &space, atoms, &exported));
  mp_attr_t before = {.kind = MP_KIND_SHARDING, .u.sharding = &sharding};
  mp_attr_t after = {.kind = MP_KIND_SHARDING, .u.sharding = &exported};
  const mp_atom_sharding_t *again = import(model, arena, &exported, &space);
  assert_true(mp_atom_sharding_identical(atoms, again));
  if (sharding.unreduced.count <= 1) assert_true(mp_attr_equal(&before, &after));
  // Where the parts lie.
  assert_ok(mp_atom_sharding_boxes(&space, scope, type, atoms, &boxes));
  check_boxes(model, boxes);
  check_partials(model, boxes);
  assert_ok(mp_placement_from_sdy(scope, type, &sharding, NULL, &direct));
  check_boxes(model, direct);
  check_partials(model, direct);
  ir_end(&ir);
}

static uint64_t g_seed;

static void test_against_model(void **state) {
  (void)state;
  for (g_seed = 0; g_seed < CASES; ++g_seed) {
    const model_t model = draw_model(g_seed);
    check_seed(&model);
  }
}

// ---- GSPMD's form ----

// "{devices=[2,1,2,2]0,1,2,... last_tile_dims={unreduced, replicated}}": tile by tile.
static void print_gspmd(const model_t *model, mp_strbuf_t *out) {
  int64_t parts[RANK + 2];
  mp_strbuf_puts(out, "{devices=[");
  for (uint32_t d = 0; d < RANK + 2; ++d) {
    // The model's order of use: dimensions, RANK replicated, RANK + 1 unreduced.
    (void)part_of(model, 0, d, &parts[d]);
    mp_strbuf_printf(out, "%s%lld", d == 0 ? "" : ",", (long long)parts[d]);
  }
  mp_strbuf_putc(out, ']');
  for (uint32_t tile = 0; tile < model->num_devices; ++tile) {
    for (uint32_t p = 0; p < model->num_devices; ++p) {
      int64_t number = 0;
      for (uint32_t d = 0; d < RANK + 2; ++d) {
        const int64_t part = part_of(model, p, d, &parts[d]);
        number = number * parts[d] + part;
      }
      if (number == tile) mp_strbuf_printf(out, "%s%u", tile == 0 ? "" : ",", p);
    }
  }
  mp_strbuf_puts(out, " last_tile_dims={replicated, unreduced}}");
}

static void annotate(ir_t *ir, const mp_attr_t **slot, const char *text) {
  mp_named_attr_t item = ir_string(ir, MP_ATTR_MHLO_SHARDING, text);
  mp_attr_t *dict = MP_ARENA_NEW(ir->module->arena, mp_attr_t);
  dict->kind = MP_KIND_DICT;
  dict->u.dict.items = mp_arena_copy(ir->module->arena, &item, sizeof(item));
  dict->u.dict.count = 1;
  *slot = dict;
}

// The boxes that main's argument has by a GSPMD string.
static const mp_boxes_t *boxes_by(const model_t *model, ir_t *ir, const mp_spmd_scope_t *scope,
                                  const char *text) {
  const mp_boxes_t *boxes = NULL;
  mp_atom_space_t space;
  annotate(ir, &ir->main->arg_attrs[0], text);
  assert_ok(mp_spmd_import_gspmd(ir->module, model->num_devices));
  const mp_attr_t *attr = mp_annotation_of(ir->main->arg_attrs, 0);
  assert_non_null(attr);
  const mp_atom_sharding_t *atoms = import(model, ir->module->arena, attr->u.sharding, &space);
  assert_ok(mp_atom_sharding_boxes(&space, scope, ir->args[0]->type, atoms, &boxes));
  return boxes;
}

// The sharding that clients get (pjrt/compile/pjrt_sharding.c) reads back as the same boxes.
static void check_tiles(const model_t *model, ir_t *ir, const mp_spmd_scope_t *scope,
                        const mp_boxes_t *boxes) {
  mp_tiles_t tiles;
  bool is_grid = false;
  if (boxes == NULL || !mp_placement_is_even(boxes)) return;
  assert_ok(mp_placement_to_tiles(ir->module->arena, boxes, &is_grid, &tiles));
  if (!is_grid) return;
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_strbuf_puts(&text, "{devices=[");
  for (uint32_t d = 0; d < RANK; ++d) {
    mp_strbuf_printf(&text, "%lld,", (long long)tiles.tiles[d]);
  }
  mp_strbuf_printf(&text, "%lld,%lld]", (long long)tiles.terms,
                   (long long)(tiles.copies / tiles.terms));
  for (uint32_t i = 0; i < model->num_devices; ++i) {
    mp_strbuf_printf(&text, "%s%lld", i == 0 ? "" : ",", (long long)tiles.partitions[i]);
  }
  mp_strbuf_puts(&text, " last_tile_dims={unreduced, replicated}}");
  const mp_boxes_t *again = boxes_by(model, ir, scope, mp_strbuf_text(&text));
  assert_true(again == boxes || mp_placement_equal(again, boxes));
  check_partials(model, again);
  mp_strbuf_deinit(&text);
}

static void check_gspmd_seed(const model_t *model) {
  char type_text[64];
  snprintf(type_text, sizeof(type_text), "%lldx%lldx%lldxf32", (long long)model->dims[0],
           (long long)model->dims[1], (long long)model->dims[2]);
  ir_t ir = ir_start(type_text, type_text);
  mp_arena_t *arena = ir.module->arena;
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  print_gspmd(model, &text);
  ir_return(&ir, VALUES(ir.args[0]));
  const mp_spmd_scope_t *scope = NULL;
  assert_ok(mp_spmd_scope_top(arena, model->num_devices, &scope));
  const mp_boxes_t *boxes = boxes_by(model, &ir, scope, mp_strbuf_text(&text));
  check_boxes(model, boxes);
  check_partials(model, boxes);
  check_tiles(model, &ir, scope, boxes);
  mp_strbuf_deinit(&text);
  ir_end(&ir);
}

static void test_gspmd_against_model(void **state) {
  (void)state;
  for (g_seed = 0; g_seed < CASES; ++g_seed) {
    const model_t model = draw_model(g_seed);
    check_gspmd_seed(&model);
  }
}

static int print_seed(void **state) {
  (void)state;
  if (g_seed != CASES) print_error("seed %llu\n", (unsigned long long)g_seed);
  return 0;
}

// ---- particular strings ----

static void check_imported(const char *text, const char *expected) {
  ir_t ir = ir_start("8x16xf32", "8x16xf32");
  annotate(&ir, &ir.main->arg_attrs[0], text);
  ir_return(&ir, VALUES(ir.args[0]));
  assert_ok(mp_spmd_import_gspmd(ir.module, 8));
  const mp_attr_t *attr = mp_annotation_of(ir.main->arg_attrs, 0);
  mp_strbuf_t out;
  mp_strbuf_init(&out);
  if (attr == NULL) {
    mp_strbuf_puts(&out, "as it was");
  } else {
    mp_attr_print(attr, &out);
  }
  assert_string_equal(mp_strbuf_text(&out), expected);
  mp_strbuf_deinit(&out);
  ir_end(&ir);
}

static void test_gspmd_strings(void **state) {
  (void)state;
  const char *prefix = "#sdy.sharding<@gspmd_mesh, ";
  static const char *const cases[][2] = {
      {"{devices=[2,4]<=[8]}", "[{\"axis_0\"}, {\"axis_1\"}]>"},
      {"{devices=[4,2]<=[2,4]T(1,0)}", "[{\"axis_1\"}, {\"axis_0\"}]>"},
      {"{devices=[8,1]<=[2,4]T(1,0)}", "[{\"axis_1\", \"axis_0\"}, {}]>"},
      {"{devices=[2,1,4]<=[8] last_tile_dim_replicate}", "[{\"axis_0\"}, {}]>"},
      {"{devices=[2,1,4]0,1,2,3,4,5,6,7 last_tile_dim_replicate}", "[{\"axis_0\"}, {}]>"},
      {"{devices=[2,1,4]0,2,4,6,1,3,5,7 last_tile_dim_replicate}", "[{\"axis_1\"}, {}]>"},
      {"{devices=[2,1,4]<=[8] last_tile_dims={unreduced}}",
       "[{\"axis_0\"}, {}], unreduced={\"axis_1\"}>"},
      {"{replicated}", "[{}, {}]>"},
      {"{unknown}", "[{?}, {?}]>"},
      {"{devices=[1,1,8]<=[8] last_tile_dim_replicate}", "[{}, {}]>"},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    char expected[128];
    snprintf(expected, sizeof(expected), "%s%s", prefix, cases[i][1]);
    check_imported(cases[i][0], expected);
  }
  check_imported("{maximal device=3}", "#sdy.sharding<mesh<[], device_ids=[3]>, []>");
}

static void check_refused(const char *text, const char *message) {
  ir_t ir = ir_start("8x16xf32", "8x16xf32");
  annotate(&ir, &ir.main->arg_attrs[0], text);
  ir_return(&ir, VALUES(ir.args[0]));
  assert_status(mp_spmd_import_gspmd(ir.module, 8), MP_INVALID_ARGUMENT, message);
  ir_end(&ir);
}

static void test_gspmd_refusals(void **state) {
  (void)state;
  check_refused("{devices=[2,4]<=[9]}", "argument 0 of main");
  check_refused("{devices=[2,2]<=[4]}", "a sharding over 4 devices in a program of 8");
  check_refused("{devices=[2,4]0,1,2,3,4,5,6,6}", "names partition 6 twice");
  check_refused("{devices=[2,4]0,1,2,3,4,5,6,8}", "names partition 8");
  check_refused("{devices=[2,2,2]<=[8]}", "on a tensor of rank 2");
  check_refused("{tiled}", "position 1: expected");
  check_refused("{{replicated}, {replicated}}", "of a tuple on one value");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_against_model, NULL, print_seed),
      cmocka_unit_test_setup_teardown(test_gspmd_against_model, NULL, print_seed),
      cmocka_unit_test(test_gspmd_strings),
      cmocka_unit_test(test_gspmd_refusals),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
