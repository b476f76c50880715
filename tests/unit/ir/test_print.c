// The printer: exact texts. That all it prints reads back is tested with the reader (test_text.c).
#include "tests/unit/support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/ir/print/print_module.h"
#include "sim/readers/text/text.h"

static mp_module_t *read_text(const char *text) {
  mp_module_t *module = NULL;
  assert_ok(mp_read_text(text, strlen(text), &module));
  return module;
}

static void check(const char *program, const mp_print_options_t *options, const char *expected) {
  mp_module_t *module = read_text(program);
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  assert_ok(mp_module_print(module, options, &text));
  assert_string_equal(mp_strbuf_text(&text), expected);
  mp_strbuf_deinit(&text);
  mp_module_release(module);
}

// What is printed prints the same again.
static const char canonical[] =
    "module @jit_f attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 2 : i32, "
    "mhlo.num_replicas = 1 : i32} {\n"
    "  sdy.mesh @mesh = <[\"x\"=2]>\n"
    "  func.func public @main(%arg0: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, "
    "[{\"x\"}, "
    "{?}]>}, %arg1: tensor<i32>) -> (tensor<4xf32> {jax.result_info = \"r\"}) {\n"
    "    %0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
    "    %1 = stablehlo.tanh %arg0 : tensor<4x8xf32>\n"
    "    %2:2 = stablehlo.while(%arg2 = %1, %arg3 = %arg1) : tensor<4x8xf32>, tensor<i32>\n"
    "    cond {\n"
    "      %3 = stablehlo.compare LT, %arg3, %arg1, SIGNED : (tensor<i32>, tensor<i32>) -> "
    "tensor<i1>\n"
    "      stablehlo.return %3 : tensor<i1>\n"
    "    } do {\n"
    "      %4 = func.call @g(%arg2) : (tensor<4x8xf32>) -> tensor<4x8xf32>\n"
    "      stablehlo.return %4, %arg3 : tensor<4x8xf32>, tensor<i32>\n"
    "    }\n"
    "    %5 = stablehlo.reduce(%2#0 init: %0) applies stablehlo.add across dimensions = [1] : "
    "(tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>\n"
    "    %6 = \"stablehlo.case\"(%2#1) ({\n"
    "      stablehlo.return %5 : tensor<4xf32>\n"
    "    }) {mhlo.sharding = \"{replicated}\"} : (tensor<i32>) -> tensor<4xf32>\n"
    "    return %6 : tensor<4xf32>\n"
    "  }\n"
    "  func.func private @g(%arg0: tensor<4x8xf32>) -> tensor<4x8xf32> {\n"
    "    return %arg0 : tensor<4x8xf32>\n"
    "  }\n"
    "}\n";

static void test_canonical(void **state) {
  (void)state;
  check(canonical, NULL, canonical);
}

static void check_number(const char *dense, const char *expected) {
  char program[4096], text[4096];
  snprintf(program, sizeof(program), "func.func @f() { %%0 = stablehlo.constant %s return }",
           dense);
  snprintf(text, sizeof(text),
           "module attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {\n"
           "  func.func @f() {\n    %%0 = stablehlo.constant %s\n    return\n  }\n}\n",
           expected);
  check(program, NULL, text);
}

// Much as MLIR writes them: six digits where they suffice, all that are needed otherwise, the bits
// where a decimal number would be an integer.
static void test_numbers(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"dense<0.1> : tensor<f32>", "dense<1.000000e-01> : tensor<f32>"},
      {"dense<3.4028235e+38> : tensor<f32>", "dense<3.40282347E+38> : tensor<f32>"},
      {"dense<123456789.0> : tensor<f32>", "dense<0x4CEB79A3> : tensor<f32>"},
      {"dense<1.17549435e-38> : tensor<f32>", "dense<1.17549435E-38> : tensor<f32>"},
      {"dense<-0.0> : tensor<f32>", "dense<-0.000000e+00> : tensor<f32>"},
      {"dense<0x7FC00000> : tensor<f32>", "dense<0x7FC00000> : tensor<f32>"},
      {"dense<3.141592653589793> : tensor<f64>", "dense<3.1415926535897931> : tensor<f64>"},
      {"dense<1.0e-30> : tensor<f32>", "dense<1.000000e-30> : tensor<f32>"},
      {"dense<0.1> : tensor<f16>", "dense<9.997560e-02> : tensor<f16>"},
      {"dense<0.1> : tensor<bf16>", "dense<1.000980e-01> : tensor<bf16>"},
      {"dense<0.1> : tensor<f8E4M3FN>", "dense<1.015620e-01> : tensor<f8E4M3FN>"},
      {"dense<(1.0, 2.0)> : tensor<complex<f32>>",
       "dense<(1.000000e+00,2.000000e+00)> : tensor<complex<f32>>"},
      {"dense<[[-1, 7], [1, 2]]> : tensor<2x2xi4>", "dense<[[-1, 7], [1, 2]]> : tensor<2x2xi4>"},
      {"dense<[true, true]> : tensor<2xi1>", "dense<true> : tensor<2xi1>"},
      {"dense<[[], []]> : tensor<2x0xf32>", "dense<> : tensor<2x0xf32>"},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i)
    check_number(cases[i][0], cases[i][1]);
}

// MLIR's versions differ in the hexadecimal form of booleans, so these are listed.
static void test_many_booleans(void **state) {
  (void)state;
  char dense[2048], *at = dense;
  at += sprintf(at, "dense<[true");
  for (int i = 1; i < 200; ++i) at += sprintf(at, i % 3 == 0 ? ", true" : ", false");
  sprintf(at, "]> : tensor<200xi1>");
  check_number(dense, dense);
}

static void test_options(void **state) {
  (void)state;
  const mp_print_options_t generic = {.generic = true, .locations = true, .elide_elements = 2};
  check(
      "func.func @f(%a: tensor<3xf32>) {\n"
      "  %0 = stablehlo.slice %a [0:2] {b.c, a.b = 1} : (tensor<3xf32>) -> tensor<2xf32> "
      "loc(\"x\"(\"f.py\":1:2))\n"
      "  return loc(unknown)\n"
      "} loc(fused[\"a\", unknown])",
      &generic,
      "module attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {\n"
      "  func.func @f(%arg0: tensor<3xf32>) {\n"
      "    %0 = \"stablehlo.slice\"(%arg0) <{limit_indices = array<i64: 2>, start_indices = "
      "array<i64: 0>, strides = array<i64: 1>}> {a.b = 1 : i64, b.c} : (tensor<3xf32>) -> "
      "tensor<2xf32> loc(\"x\"(\"f.py\":1:2))\n"
      "    \"func.return\"() : () -> () loc(unknown)\n"
      "  } loc(fused[\"a\", unknown])\n"
      "}\n");
  const mp_print_options_t elided = {.elide_elements = 2};
  check("func.func @f() { %0 = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi32> return }",
        &elided,
        "module attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {\n"
        "  func.func @f() {\n"
        "    %0 = stablehlo.constant dense<...> : tensor<3xi32>\n"
        "    return\n"
        "  }\n"
        "}\n");
}

// Ops that share a deep call stack: its text is printed as long as there is room, then the name and
// the innermost position.
static void test_deep_locations(void **state) {
  (void)state;
  enum { DEPTH = 300000 };
  mp_module_t *module = read_text(
      "func.func @main(%a: tensor<f32>) {\n"
      "  %0 = stablehlo.add %a, %a : tensor<f32>\n"
      "  %1 = stablehlo.add %a, %a : tensor<f32>\n"
      "  return\n"
      "}");
  mp_loc_t file = {.kind = MP_LOC_FILE, .text = MP_STR("f.py"), .line = 1, .column = 2};
  mp_loc_t *calls = calloc(DEPTH, sizeof(*calls));
  const mp_loc_t *(*children)[2] = calloc(DEPTH, sizeof(*children));
  assert_true(calls != NULL && children != NULL);
  for (int i = 0; i < DEPTH; ++i) {
    children[i][0] = &file;
    children[i][1] = i == 0 ? &file : &calls[i - 1];
    calls[i] = (mp_loc_t){.kind = MP_LOC_CALL_SITE, .num_children = 2, .children = children[i]};
  }
  const mp_loc_t *child[] = {&calls[DEPTH - 1]};
  mp_loc_t name = {.kind = MP_LOC_NAME, .text = MP_STR("x"), .num_children = 1, .children = child};
  mp_op_t *first = module->main->body->first;
  first->loc = first->next->loc = &name;
  const mp_print_options_t options = {.locations = true};
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  assert_ok(mp_module_print(module, &options, &text));
  const char *long_form =
      strstr(mp_strbuf_text(&text), " loc(\"x\"(callsite(\"f.py\":1:2 at calls");
  assert_non_null(long_form);
  assert_non_null(strstr(long_form,
                         "%1 = stablehlo.add %arg0, %arg0 : tensor<f32> "
                         "loc(\"x\"(\"f.py\":1:2))\n"));
  mp_strbuf_deinit(&text);
  mp_module_release(module);
  free(children);
  free(calls);
}

static void test_op_alone(void **state) {
  (void)state;
  mp_module_t *module = read_text(canonical);
  const mp_op_t *reduce = module->main->body->last->prev->prev;
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  assert_ok(mp_op_print(reduce, NULL, &text));
  assert_string_equal(mp_strbuf_text(&text),
                      "%0 = stablehlo.reduce(%1#0 init: %2) applies stablehlo.add across "
                      "dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>");
  mp_strbuf_deinit(&text);
  mp_module_release(module);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_canonical),      cmocka_unit_test(test_numbers),
      cmocka_unit_test(test_many_booleans),  cmocka_unit_test(test_options),
      cmocka_unit_test(test_deep_locations), cmocka_unit_test(test_op_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
