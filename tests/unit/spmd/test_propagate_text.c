// Propagation of whole programs in text: what annotations mean (priorities, groups, chains of
// constraints, manual regions), seen in the text that is annotated with every value's sharding.
#include <stdio.h>
#include <string.h>

#include "sim/ir/print/print_module.h"
#include "sim/passes/passes.h"
#include "sim/readers/text/text.h"
#include "sim/spmd/gspmd/gspmd_import.h"
#include "sim/spmd/propagation/propagate.h"
#include "tests/unit/support/unit.h"

#define MESH "sdy.mesh @mesh = <[\"x\"=2, \"y\"=4]>\n"
#define A    "tensor<8x16xf32>"

// A main with these parameters, results and body, on eight partitions.
#define PROGRAM(params, results, body)                            \
  "module @m attributes {mhlo.num_partitions = 8 : i32} {\n" MESH \
  "sdy.mesh @other = <[\"a\"=8]>\n"                               \
  "func.func public @main(" params ") -> (" results ") {\n" body "\n}\n}\n"

#define SHARDED(text) "{sdy.sharding = #sdy.sharding<@mesh, " text ">}"

// Propagates with all parameters and results open. Every text of `expected` (NULL ends them) must
// be in what comes out.
static void check_with(bool is_as_in_xla, const char *program, const char *const *expected) {
  mp_module_t *module = NULL;
  assert_ok(mp_read_text(program, strlen(program), &module));
  assert_ok(mp_spmd_import_gspmd(module, module->num_partitions));
  assert_ok(mp_passes_prepare(module));
  const bool open[8] = {true, true, true, true, true, true, true, true};
  const mp_propagate_options_t options = {module->num_partitions, open, open, is_as_in_xla};
  mp_propagation_t propagation;
  bool found = false;
  assert_ok(mp_propagate(module, &options, &propagation, &found));
  assert_true(found);
  assert_ok(mp_propagation_annotate(module, &propagation));
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  assert_ok(mp_module_print(module, NULL, &text));
  for (; *expected != NULL; ++expected) {
    if (strstr(mp_strbuf_text(&text), *expected) != NULL) continue;
    fail_msg("'%s' is not in:\n%s", *expected, mp_strbuf_text(&text));
  }
  mp_strbuf_deinit(&text);
  mp_module_release(module);
}

static void check(const char *program, const char *const *expected) {
  check_with(false, program, expected);
}

#define TEXTS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_parameters(void **state) {
  (void)state;
  // An open parameter takes what its use wants, in even parts of whole axes.
  check(PROGRAM("%a: " A ", %b: tensor<6xf32>", A ", tensor<6xf32>",
                "%0 = sdy.sharding_constraint %a <@mesh, [{\"x\"}, {}]> : " A "\n"
                "%1 = sdy.sharding_constraint %b <@mesh, [{\"y\"}]> : tensor<6xf32>\n"
                "return %0, %1 : " A ", tensor<6xf32>"),
        TEXTS("%arg0: tensor<8x16xf32> " SHARDED("[{\"x\"}, {}]"),
              "%arg1: tensor<6xf32> " SHARDED("[{}]"),
              "-> (tensor<8x16xf32> " SHARDED("[{\"x\", ?}, {?}]")));
}

static void test_priorities(void **state) {
  (void)state;
  // Without them both conflict on x; the column wins here as its priority is 0.
  check(PROGRAM("%a: " A " " SHARDED("[{\"x\"}p1, {}]") ", %b: " A " " SHARDED("[{}, {\"x\"}]"), A,
                "%0 = stablehlo.add %a, %b : " A "\nreturn %0 : " A),
        TEXTS("%0 = stablehlo.add %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, "
              "[{?}, {\"x\", ?}]>]>}"));
  check(PROGRAM("%a: " A " " SHARDED("[{\"x\"}, {}]") ", %b: " A " " SHARDED("[{}, {\"x\"}p2]"), A,
                "%0 = stablehlo.add %a, %b : " A "\nreturn %0 : " A),
        TEXTS("[{\"x\", ?}, {?}]>]>}"));
}

static void test_groups(void **state) {
  (void)state;
  // One member's sharding is all's.
  check(PROGRAM("%a: " A " " SHARDED("[{\"x\"}, {\"y\"}]") ", %b: " A, A,
                "%0 = stablehlo.tanh %b : " A "\n"
                "sdy.sharding_group %a group_id=3 : " A "\n"
                "sdy.sharding_group %0 group_id=3 : " A "\nreturn %0 : " A),
        TEXTS("stablehlo.tanh %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{\"x\"}, "
              "{\"y\"}]>]>}"));
  // Members that differ: an open constraint each.
  check(PROGRAM("%a: " A " " SHARDED("[{\"x\"}, {}]") ", %b: " A " " SHARDED("[{}, {\"y\"}]"),
                A ", " A,
                "sdy.sharding_group %a group_id=0 : " A "\n"
                "sdy.sharding_group %b group_id=0 : " A "\nreturn %a, %b : " A ", " A),
        TEXTS("sdy.sharding_constraint %arg0 <@mesh, ", "sdy.sharding_constraint %arg1 <@mesh, "));
}

static void test_constants(void **state) {
  (void)state;
  // Each use has its own iota, sharded as that use wants it.
  check(PROGRAM("%a: " A " " SHARDED("[{\"x\"}, {}]") ", %b: " A " " SHARDED("[{}, {\"y\"}]"),
                A ", " A,
                "%c = stablehlo.iota dim = 0 : " A "\n%0 = stablehlo.add %a, %c : " A "\n"
                "%1 = stablehlo.add %b, %c : " A "\nreturn %0, %1 : " A ", " A),
        TEXTS("stablehlo.iota dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{\"x\", "
              "?}, {?}]>]>}",
              "stablehlo.iota dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, "
              "{\"y\", ?}]>]>}"));
}

static void test_chains(void **state) {
  (void)state;
  // Behind the chain the negation reads its end.
  check(PROGRAM("%a: " A, A ", " A,
                "%t = stablehlo.tanh %a : " A "\n"
                "%0 = sdy.sharding_constraint %t <@mesh, [{\"x\"}, {}]> : " A "\n"
                "%1 = sdy.sharding_constraint %0 <@mesh, [{}, {\"y\"}]> : " A "\n"
                "%2 = stablehlo.negate %t : " A "\nreturn %1, %2 : " A ", " A),
        TEXTS("stablehlo.negate %2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {\"y\", "
              "?}]>]>}"));
}

// As in Shardy, users decide the dimensions that a broadcast leaves open. To the partitioner one
// that only adds a dimension of one element is the reshape that XLA makes of it, which decides it
// first.
static void test_broadcasts(void **state) {
  (void)state;
#define STACKED(n)                                                                         \
  PROGRAM("%a: " A                                                                         \
          " " SHARDED("[{\"x\"}, {}]") ", %w: tensor<16x4xf32> " SHARDED("[{\"x\"}, {}]"), \
          "tensor<" n "x8x4xf32>",                                                         \
          "%0 = stablehlo.broadcast_in_dim %a, dims = [1, 2] : (" A ") -> tensor<" n       \
          "x8x16xf32>\n"                                                                   \
          "%1 = stablehlo.dot_general %0, %w, contracting_dims = [2] x [0] : (tensor<" n   \
          "x8x16xf32>, tensor<16x4xf32>) -> tensor<" n                                     \
          "x8x4xf32>\n"                                                                    \
          "return %1 : tensor<" n "x8x4xf32>")
  const char *const *by_user = TEXTS(
      "dims = [1, 2] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {?}, {\"x\", ?}]>]>}");
  const char *const *by_operand = TEXTS(
      "dims = [1, 2] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {\"x\", ?}, {?}]>]>}");
  check_with(false, STACKED("1"), by_user);
  check_with(true, STACKED("1"), by_operand);
  check_with(true, STACKED("2"), by_user);
#undef STACKED
}

static void test_meshes(void **state) {
  (void)state;
  // Values over different meshes do not mix, although y of one is part of a of the other.
  check(PROGRAM("%a: " A " " SHARDED(
                    "[{\"x\"}, {}]") ", %b: " A
                                     " {sdy.sharding = #sdy.sharding<@other, [{\"a\"}, {}]>}",
                A, "%0 = stablehlo.add %a, %b : " A "\nreturn %0 : " A),
        TEXTS("%0 = stablehlo.add %arg0, %arg1 : tensor<8x16xf32>"));
}

static void test_borders(void **state) {
  (void)state;
  // The free axis y flows into the region and out of it.
  check(PROGRAM("%a: " A " " SHARDED("[{\"x\"}, {\"y\"}]"), A,
                "%0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{\"x\", ?}, {?}]>] "
                "out_shardings=[<@mesh, [{\"x\", ?}, {?}]>] manual_axes={\"x\"} "
                "(%b: tensor<4x16xf32>) {\n%1 = stablehlo.tanh %b : tensor<4x16xf32>\n"
                "sdy.return %1 : tensor<4x16xf32>\n} : (" A ") -> " A "\nreturn %0 : " A),
        TEXTS("in_shardings=[<@mesh, [{\"x\", ?}, {\"y\", ?}]>]",
              "out_shardings=[<@mesh, [{\"x\", ?}, {\"y\", ?}]>]",
              "-> (tensor<8x16xf32> " SHARDED("[{\"x\", ?}, {\"y\", ?}]"),
              "stablehlo.tanh %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {\"y\", "
              "?}]>]>}"));
}

static void test_barriers(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"FORWARD", "stablehlo.tanh %0 {sdy.sharding"},  // only forwards
      {"BACKWARD", "stablehlo.tanh %0 : "},
      {"NONE", "stablehlo.tanh %0 : "},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    char program[1024];
    snprintf(program, sizeof(program),
             PROGRAM("%%a: " A " " SHARDED("[{\"x\"}, {}]"), A,
                     "%%0 = sdy.propagation_barrier %%a allowed_direction=%s : " A "\n"
                     "%%1 = stablehlo.tanh %%0 : " A "\nreturn %%1 : " A),
             cases[i][0]);
    check(program, TEXTS(cases[i][1]));
  }
}

// A device order that is no digits of the ids is an order of its own.
static void test_device_order(void **state) {
  (void)state;
  check(
      "module @m attributes {mhlo.num_partitions = 4 : i32} {\n"
      "sdy.mesh @mesh = <[\"x\"=2, \"y\"=2], device_ids=[3, 0, 1, 2]>\n"
      "func.func public @main(%a: " A " " SHARDED("[{\"x\"}, {}]") ") -> (" A
                                                                   ") {\n"
                                                                   "%0 = stablehlo.tanh %a : " A
                                                                   "\nreturn %0 : " A "\n}\n}\n",
      TEXTS("-> (tensor<8x16xf32> " SHARDED("[{\"x\", ?}, {?}]")));
}

// ---- errors ----

static void check_refused(const char *program, const char *message) {
  mp_module_t *module = NULL;
  assert_ok(mp_read_text(program, strlen(program), &module));
  assert_ok(mp_passes_prepare(module));
  const mp_propagate_options_t options = {module->num_partitions, NULL, NULL, false};
  mp_propagation_t propagation;
  bool found = false;
  assert_status(mp_propagate(module, &options, &propagation, &found), MP_INVALID_ARGUMENT, message);
  mp_module_release(module);
}

static void test_group_errors(void **state) {
  (void)state;
  check_refused(PROGRAM("%a: " A ", %b: tensor<8x8xf32>", A,
                        "sdy.sharding_group %a group_id=4 : " A "\n"
                        "sdy.sharding_group %b group_id=4 : tensor<8x8xf32>\nreturn %a : " A),
                "tensor<8x8xf32> in sharding group 4, which has a member of tensor<8x16xf32> "
                "[sdy.sharding_group");
  check_refused(PROGRAM("%a: " A, A,
                        "sdy.sharding_group %a group_id=1 : " A "\n"
                        "%0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{}, {}]>] "
                        "out_shardings=[<@mesh, [{}, {}]>] manual_axes={\"x\"} (%b: " A ") {\n"
                        "sdy.sharding_group %b group_id=1 : " A "\nsdy.return %b : " A "\n} : (" A
                        ") -> " A "\nreturn %0 : " A),
                "sharding group 1 has members inside and outside of a manual region");
}

// ---- GSPMD ----

#define CALL(target, operand, config, sharding, from, to)                      \
  "stablehlo.custom_call @" target "(" operand ") {backend_config = \"" config \
  "\", mhlo.sharding = \"" sharding "\"} : (" from ") -> " to "\n"
#define LOCAL "tensor<4x4xf32>"
#define GSPMD "module @m attributes {mhlo.num_partitions = 8 : i32} {\n"

static void test_gspmd_region(void **state) {
  (void)state;
  check(GSPMD "func.func public @main(%a: " A ") -> (" A
              ") {\n"
              "%0 = " CALL("Sharding", "%a", "", "{devices=[2,4]<=[8]}", A, A) "%1 = " CALL(
                  "SPMDFullToShardShape", "%0", "", "{manual}", A,
                  LOCAL) "%2 = call @body(%1) : (" LOCAL ") -> " LOCAL
                         "\n"
                         "%3 = " CALL("Sharding", "%2", "", "{manual}", LOCAL, LOCAL) "%4 = " CALL(
                             "SPMDShardToFullShape", "%3", "", "{devices=[2,4]<=[8]}", LOCAL,
                             A) "%5 = stablehlo.tanh %4 : " A "\nreturn %5 : " A
                                "\n}\n"
                                "func.func private @body(%a: " LOCAL ") -> " LOCAL
                                " {\n"
                                "%0 = stablehlo.negate %a : " LOCAL "\nreturn %0 : " LOCAL
                                "\n}\n}\n",
        TEXTS("sdy.manual_computation(%0) in_shardings=[<@gspmd_mesh, [{\"axis_0\"}, "
              "{\"axis_1\"}]>] out_shardings=[<@gspmd_mesh, [{\"axis_0\"}, {\"axis_1\"}]>] "
              "manual_axes={\"axis_0\", \"axis_1\"} (%arg1: tensor<4x4xf32>)",
              "-> (tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@gspmd_mesh, [{\"axis_0\", ?}, "
              "{\"axis_1\", ?}]>}"));
}

// As PyTorch/XLA writes it: no call, the parameter's own annotation, and a whole value that a part
// is combined with.
static void test_gspmd_inline_region(void **state) {
  (void)state;
  check(GSPMD "func.func public @main(%a: " A
              " {mhlo.sharding = \"{devices=[2,4]0,1,2,3,4,5,6,7}\"}, %b: " LOCAL ") -> (" A
              ") {\n"
              "%0 = " CALL(
                  "SPMDFullToShardShape", "%a", "", "{manual}", A,
                  LOCAL) "%1 = stablehlo.tanh %b : " LOCAL
                         "\n"
                         "%2 = stablehlo.add %0, %1 : " LOCAL
                         "\n"
                         "%3 = " CALL("Sharding", "%2", "", "{manual}", LOCAL, LOCAL) "%4 = " CALL(
                             "SPMDShardToFullShape", "%3", "", "{devices=[2,4]0,1,2,3,4,5,6,7}",
                             LOCAL, A) "%5 = stablehlo.negate %4 : " A "\nreturn %5 : " A
                                       "\n}\n}\n",
        TEXTS("sdy.manual_computation(%1, %2) in_shardings=[<@gspmd_mesh, [{\"axis_0\"}, "
              "{\"axis_1\"}]>, <@gspmd_mesh, [{}, {}]",
              "manual_axes={\"axis_0\", \"axis_1\"}", "stablehlo.negate"));
}

static void test_gspmd_group(void **state) {
  (void)state;
  check(GSPMD "func.func public @main(%a: " A " {mhlo.sharding = \"{devices=[2,4]<=[8]}\"}, %b: " A
              ") -> (" A
              ") {\n"
              "%t = stablehlo.tanh %b : " A
              "\n"
              "%0 = " CALL("Sharding", "%a", "", "{unknown shard_as 5}", A, A) "%1 = " CALL(
                  "Sharding", "%t", "", "{unknown shard_like 5}", A,
                  A) "%2 = stablehlo.add %1, %1 : " A "\nreturn %2 : " A "\n}\n}\n",
        TEXTS("sdy.sharding_group %arg0 group_id=5",
              "stablehlo.tanh %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@gspmd_mesh, "
              "[{\"axis_0\"}, {\"axis_1\"}]>]>}"));
  // Parameters and results of operations are members as well.
  check(GSPMD "func.func public @main(%a: " A
              " {mhlo.sharding = \"{devices=[2,4]<=[8] shard_as 5}\"}, %b: " A ") -> (" A
              ") {\n"
              "%t = stablehlo.tanh %b {mhlo.sharding = \"{unknown shard_as 5}\"} : " A
              "\nreturn %t : " A "\n}\n}\n",
        TEXTS("sdy.sharding_group %arg0 group_id=5", "sdy.sharding_group %0 group_id=5",
              "stablehlo.tanh %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@gspmd_mesh, "
              "[{\"axis_0\"}, {\"axis_1\"}]>]>}"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_parameters),   cmocka_unit_test(test_priorities),
      cmocka_unit_test(test_groups),       cmocka_unit_test(test_constants),
      cmocka_unit_test(test_chains),       cmocka_unit_test(test_broadcasts),
      cmocka_unit_test(test_meshes),       cmocka_unit_test(test_borders),
      cmocka_unit_test(test_barriers),     cmocka_unit_test(test_device_order),
      cmocka_unit_test(test_gspmd_region), cmocka_unit_test(test_gspmd_inline_region),
      cmocka_unit_test(test_gspmd_group),  cmocka_unit_test(test_group_errors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
