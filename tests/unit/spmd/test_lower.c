// Local forms: what an op becomes on the parts of its operands. Programs are text, two partitions
// on a mesh x=2; what is looked at is the row of ops that each partition runs.
#include "sim/ir/verify/verify.h"
#include "sim/passes/passes.h"
#include "sim/readers/text/text.h"
#include "sim/spmd/partition/partition.h"
#include "tests/unit/support/unit.h"

#define X "{sdy.sharding = #sdy.sharding<@mesh, "
#define Y ">}"

static const char g_add[] =
    "({^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
    "%s = stablehlo.add %a, %b : tensor<f32>\n"
    "stablehlo.return %s : tensor<f32>})";

static const char g_second[] =
    "({^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
    "stablehlo.return %b : tensor<f32>})";

// "gather 2x4xf32; all_reduce 4xf32; ...": the ops of main, their first results' types.
static void put_ops(const mp_module_t *module, mp_strbuf_t *out) {
  for (const mp_op_t *op = module->main->body->first; op != NULL; op = op->next) {
    const char *name = mp_op_info(op->code)->name;
    mp_strbuf_puts(out, strchr(name, '.') + 1);
    if (op->num_results != 0) {
      const mp_type_t *type = op->results[0].type;
      mp_strbuf_putc(out, ' ');
      for (uint32_t d = 0; d < type->rank; ++d) {
        mp_strbuf_printf(out, "%lldx", (long long)type->dims[d]);
      }
      mp_strbuf_puts(out, mp_dtype_name(type->dtype));
      mp_strbuf_puts(out, "; ");
    }
  }
}

// Partitions `func.func @main<params> -> <results> { <body> }`; `region` stands for %s in the body.
static void check(const char *params, const char *results, const char *body, const char *region,
                  const char *expected) {
  mp_strbuf_t text, found;
  mp_strbuf_init(&text);
  mp_strbuf_init(&found);
  mp_strbuf_printf(&text,
                   "module {\nsdy.mesh @mesh = <[\"x\"=2]>\nfunc.func public @main(%s) -> (%s) {\n",
                   params, results);
  const char *at = strstr(body, "REGION");
  mp_strbuf_append(&text, body, at == NULL ? strlen(body) : (size_t)(at - body));
  if (at != NULL) mp_strbuf_printf(&text, "%s%s", region, at + strlen("REGION"));
  mp_strbuf_puts(&text, "\n}\n}\n");
  mp_module_t *module = NULL;
  assert_ok(mp_read_text(mp_strbuf_text(&text), text.size, &module));
  assert_ok(mp_module_verify(module));
  assert_ok(mp_passes_prepare(module));
  const bool is_open = true;
  const mp_partition_options_t options = {
      .num_partitions = 2, .propagate_to_results = &is_open, .num_propagate_to_results = 1};
  mp_partition_t parts;
  assert_ok(mp_spmd_partition(module, &options, &parts));
  assert_ok(mp_module_verify(module));
  put_ops(module, &found);
  assert_string_equal(mp_strbuf_text(&found), expected);
  mp_strbuf_deinit(&text);
  mp_strbuf_deinit(&found);
  mp_module_release(module);
}

// ---- gather and scatter ----

#define GATHER                                                                                  \
  "%r = \"stablehlo.gather\"(%array, %indices) <{dimension_numbers = "                          \
  "#stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], "    \
  "index_vector_dim = 1>, slice_sizes = array<i64: 1, 6>}> : (tensor<8x6xf32>, tensor<4xi32>) " \
  "-> tensor<4x6xf32>\nreturn %r : tensor<4x6xf32>"

static void test_gather(void **state) {
  (void)state;
  // Whole slices in parts, indices in parts: nothing but the local sizes.
  check("%array: tensor<8x6xf32> " X "[{}, {\"x\"}]" Y ", %indices: tensor<4xi32>",
        "tensor<4x6xf32>", GATHER, "", "gather 4x3xf32; return");
  check("%array: tensor<8x6xf32>, %indices: tensor<4xi32> " X "[{\"x\"}]" Y, "tensor<4x6xf32>",
        GATHER, "", "gather 2x6xf32; return");
  // The indexed dimension in parts: indices are shifted, the rest is masked, and summed up.
  check("%array: tensor<8x6xf32> " X "[{\"x\"}, {}]" Y ", %indices: tensor<4xi32>",
        "tensor<4x6xf32>", GATHER, "",
        "convert 4xi64; constant 4xi64; constant 1xi64; reshape i64; "
        "broadcast_in_dim 4xi64; constant 2x1xi64; partition_id ui32; constant ui32; "
        "dynamic_slice 1x1xi64; reshape 1xi64; reshape i64; broadcast_in_dim 4xi64; "
        "maximum 4xi64; minimum 4xi64; subtract 4xi64; constant 4xi64; constant 1xi64; "
        "reshape i64; broadcast_in_dim 4xi64; compare 4xi1; compare 4xi1; and 4xi1; "
        "broadcast_in_dim 4x6xi1; gather 4x6xf32; constant 4x6xf32; select 4x6xf32; "
        "all_reduce 4x6xf32; return");
}

#define SCATTER                                                                             \
  "%r = \"stablehlo.scatter\"(%array, %indices, %updates) <{scatter_dimension_numbers = "   \
  "#stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], "               \
  "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> REGION : (tensor<8x6xf32>, " \
  "tensor<4xi32>, tensor<4x6xf32>) -> tensor<8x6xf32>\nreturn %r : tensor<8x6xf32>"

static void test_scatter(void **state) {
  (void)state;
  // The indexed dimension in parts: indices are shifted, what falls outside is dropped.
  check("%array: tensor<8x6xf32> " X "[{\"x\"}, {}]" Y
        ", %indices: tensor<4xi32>, "
        "%updates: tensor<4x6xf32>",
        "tensor<8x6xf32>", SCATTER, g_add,
        "convert 4xi64; constant 2x1xi64; partition_id ui32; constant ui32; "
        "dynamic_slice 1x1xi64; reshape 1xi64; reshape i64; broadcast_in_dim 4xi64; "
        "subtract 4xi64; scatter 4x6xf32; return");
  // Updates in parts: only one part begins with the array, and the results are summed up.
  check("%array: tensor<8x6xf32>, %indices: tensor<4xi32>, %updates: tensor<4x6xf32> " X
        "[{\"x\"}, {}]" Y,
        "tensor<8x6xf32>", SCATTER, g_add,
        "partition_id ui32; constant ui32; multiply ui32; dynamic_slice 2xi32; "
        "convert 2xi64; constant 2xi1; partition_id ui32; dynamic_slice 1xi1; "
        "reshape i1; constant 8x6xf32; select 8x6xf32; scatter 8x6xf32; "
        "all_reduce 8x6xf32; return");
  // Which of several updates stays is not for parts to say.
  check("%array: tensor<8x6xf32>, %indices: tensor<4xi32>, %updates: tensor<4x6xf32> " X
        "[{\"x\"}, {}]" Y,
        "tensor<8x6xf32>", SCATTER, g_second, "all_gather 4x6xf32; scatter 8x6xf32; return");
}

// ---- windows ----

static void test_windows(void **state) {
  (void)state;
  // Two convolutions side by side: a group for each part.
  check("%a: tensor<2x5x4xf32> " X "[{}, {}, {\"x\"}]" Y ", %k: tensor<3x2x6xf32>",
        "tensor<2x3x6xf32>",
        "%r = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = "
        "{} "
        "{batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<2x5x4xf32>, "
        "tensor<3x2x6xf32>) -> tensor<2x3x6xf32>\nreturn %r : tensor<2x3x6xf32>",
        "",
        "partition_id ui32; constant ui32; constant ui32; multiply ui32; "
        "dynamic_slice 3x2x3xf32; convolution 2x3x3xf32; return");
  // A border of one element from either side.
  check(
      "%a: tensor<1x8x1xf32> " X "[{}, {\"x\"}, {}]" Y ", %k: tensor<3x1x1xf32>",
      "tensor<1x8x1xf32>",
      "%r = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = "
      "{pad = [[1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : "
      "(tensor<1x8x1xf32>, tensor<3x1x1xf32>) -> tensor<1x8x1xf32>\nreturn %r : tensor<1x8x1xf32>",
      "",
      "exchange 1x5x1xf32; constant f32; pad 1x17x1xf32; constant i64; constant 2xi64; "
      "partition_id ui32; dynamic_slice 1xi64; reshape i64; constant i64; "
      "dynamic_slice 1x6x1xf32; convolution 1x4x1xf32; return");
  // A window as long as everything: the dimension comes together, the other one is dealt out.
  check(
      "%a: tensor<8x4xf32> " X "[{\"x\"}, {}]" Y, "tensor<8x4xf32>",
      "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "%r = \"stablehlo.reduce_window\"(%a, %z) <{window_dimensions = array<i64: 8, 1>, padding = "
      "dense<[[7, 0], [0, 0]]> : tensor<2x2xi64>}> REGION : (tensor<8x4xf32>, tensor<f32>) -> "
      "tensor<8x4xf32>\nreturn %r : tensor<8x4xf32>",
      g_add,
      "constant f32; all_to_all 8x2xf32; reduce_window 8x2xf32; all_to_all 4x4xf32; "
      "return");
}

// ---- what moves elements ----

static void test_moving(void **state) {
  (void)state;
  // Each part takes what falls into it of the update.
  check("%a: tensor<8xf32> " X "[{\"x\"}]" Y ", %u: tensor<3xf32>, %i: tensor<i32>",
        "tensor<8xf32>",
        "%r = stablehlo.dynamic_update_slice %a, %u, %i : (tensor<8xf32>, tensor<3xf32>, "
        "tensor<i32>) -> tensor<8xf32>\nreturn %r : tensor<8xf32>",
        "",
        "constant 2xi64; partition_id ui32; dynamic_slice 1xi64; reshape i64; "
        "convert i64; constant i64; constant i64; maximum i64; minimum i64; "
        "subtract i64; constant i64; constant i64; maximum i64; minimum i64; "
        "constant f32; constant i1; constant 3xi1; pad 11xf32; dynamic_slice 4xf32; "
        "pad 11xi1; dynamic_slice 4xi1; constant i64; dynamic_slice 4xf32; select 4xf32; "
        "dynamic_update_slice 4xf32; return");
  // A slice's parts are intervals of the operand; every second element stays where it is.
  check("%a: tensor<8xf32> " X "[{\"x\"}]" Y, "tensor<4xf32>",
        "%r = stablehlo.slice %a [0:8:2] : (tensor<8xf32>) -> tensor<4xf32>\n"
        "return %r : tensor<4xf32>",
        "", "exchange 3xf32; slice 2xf32; return");
  // As much is cut off as is added: still not the same elements.
  check("%a: tensor<8xf32> " X "[{\"x\"}]" Y ", %z: tensor<f32>", "tensor<8xf32>",
        "%r = stablehlo.pad %a, %z, low = [1], high = [-1], interior = [0] : (tensor<8xf32>, "
        "tensor<f32>) -> tensor<8xf32>\nreturn %r : tensor<8xf32>",
        "",
        "exchange 4xf32; iota 4xi64; constant 2xi64; partition_id ui32; "
        "dynamic_slice 1xi64; reshape i64; broadcast_in_dim 4xi64; compare 4xi1; "
        "broadcast_in_dim 4xi1; broadcast_in_dim 4xf32; select 4xf32; pad 12xf32; "
        "constant 2xi64; partition_id ui32; dynamic_slice 1xi64; reshape i64; "
        "dynamic_slice 4xf32; pad 4xf32; return");
  // Each piece goes where it belongs; one that has passed its end gives way to the next.
  check("%a: tensor<4xf32> " X "[{\"x\"}]" Y ", %b: tensor<4xf32> " X "[{\"x\"}]" Y,
        "tensor<8xf32>",
        "%r = stablehlo.concatenate %a, %b, dim = 0 : (tensor<4xf32>, tensor<4xf32>) -> "
        "tensor<8xf32>\nreturn %r : tensor<8xf32>",
        "",
        "exchange 4xf32; exchange 4xf32; constant f32; pad 12xf32; constant 2xi64; "
        "partition_id ui32; dynamic_slice 1xi64; reshape i64; dynamic_slice 4xf32; "
        "pad 12xf32; constant 2xi64; partition_id ui32; dynamic_slice 1xi64; "
        "reshape i64; dynamic_slice 4xf32; iota 4xi64; constant 2xi64; "
        "partition_id ui32; dynamic_slice 1xi64; reshape i64; broadcast_in_dim 4xi64; "
        "compare 4xi1; broadcast_in_dim 4xi1; select 4xf32; return");
}

// ---- what needs a dimension whole ----

static void test_spreading(void **state) {
  (void)state;
  check("%a: tensor<8x4xf32> " X "[{}, {\"x\"}]" Y, "tensor<8x4xf32>",
        "%r = \"stablehlo.sort\"(%a) <{dimension = 1 : i64, is_stable = true}> "
        "({^bb0(%p: tensor<f32>, %q: tensor<f32>):\n"
        "%s = stablehlo.compare LT, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
        "stablehlo.return %s : tensor<i1>}) : (tensor<8x4xf32>) -> tensor<8x4xf32>\n"
        "return %r : tensor<8x4xf32>",
        "", "all_to_all 4x4xf32; sort 4x4xf32; all_to_all 8x2xf32; return");
  // Batches of a decomposition are independent.
  check("%a: tensor<4x3x3xf32> " X "[{\"x\"}, {}, {}]" Y, "tensor<4x3x3xf32>",
        "%r:2 = stablehlo.custom_call @Qr(%a) : (tensor<4x3x3xf32>) -> (tensor<4x3x3xf32>, "
        "tensor<4x3xf32>)\nreturn %r#0 : tensor<4x3x3xf32>",
        "", "custom_call 2x3x3xf32; return");
}

// ---- reductions that are no single op ----

static void test_argmax(void **state) {
  (void)state;
  // Each part's largest are gathered, and reduced again.
  check("%a: tensor<8x4xf32> " X "[{\"x\"}, {}]" Y ", %z: tensor<f32>, %n: tensor<i32>",
        "tensor<4xi32>",
        "%i = stablehlo.iota dim = 0 : tensor<8x4xi32>\n"
        "%r:2 = \"stablehlo.reduce\"(%a, %i, %z, %n) <{dimensions = array<i64: 0>}> "
        "({^bb0(%p: tensor<f32>, %j: tensor<i32>, %q: tensor<f32>, %k: tensor<i32>):\n"
        "%c = stablehlo.compare GE, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
        "%v = stablehlo.select %c, %p, %q : tensor<i1>, tensor<f32>\n"
        "%w = stablehlo.select %c, %j, %k : tensor<i1>, tensor<i32>\n"
        "stablehlo.return %v, %w : tensor<f32>, tensor<i32>}) : (tensor<8x4xf32>, tensor<8x4xi32>, "
        "tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>)\n"
        "return %r#1 : tensor<4xi32>",
        "",
        "iota 4x4xi64; constant 2xi64; partition_id ui32; dynamic_slice 1xi64; "
        "reshape i64; broadcast_in_dim 4x4xi64; add 4x4xi64; convert 4x4xi32; "
        "reduce 4xf32; reshape 1x4xf32; all_gather 2x4xf32; reshape 1x4xi32; "
        "all_gather 2x4xi32; reduce 4xf32; return");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_gather),    cmocka_unit_test(test_scatter),
      cmocka_unit_test(test_windows),   cmocka_unit_test(test_moving),
      cmocka_unit_test(test_spreading), cmocka_unit_test(test_argmax),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
