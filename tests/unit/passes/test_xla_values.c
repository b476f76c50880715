// Rewrites as XLA makes them: each rule of the table, programs before and after, and what no rule
// may touch.
#include "tests/unit/support/unit.h"

#include <stdio.h>
#include <string.h>

#include "sim/ir/print/print_module.h"
#include "sim/ir/verify/verify.h"
#include "sim/passes/passes.h"
#include "sim/passes/xla/xla_values.h"
#include "sim/readers/text/text.h"

#define F "tensor<4xf32>"
#define P "tensor<4xi1>"
// %a and %b are numbers, %p is a boolean, %c and %d are constants: 3 and 0.5.
#define CONSTANTS                                                          \
  "%c = stablehlo.constant dense<3.0> : " F                                \
  "\n"                                                                     \
  "%half = stablehlo.constant dense<0.5> : tensor<f32>\n"                  \
  "%d = stablehlo.broadcast_in_dim %half, dims = [] : (tensor<f32>) -> " F \
  "\n"                                                                     \
  "%one = stablehlo.constant dense<1.0> : " F                              \
  "\n"                                                                     \
  "%zero = stablehlo.constant dense<0.0> : " F                             \
  "\n"                                                                     \
  "%list = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : " F "\n"

static void check(const char *rule, const char *type, const char *body, const char *result,
                  const char *expected) {
  char program[4096];
  snprintf(program, sizeof(program),
           "func.func @main(%%a: " F ", %%b: " F ", %%p: " P
           ", %%z: tensor<4xcomplex<f32>>, %%n: tensor<4xi32>) -> %s {\n%s%s\n"
           "return %s : %s\n}\n",
           type, CONSTANTS, body, result, type);
  mp_module_t *module = NULL;
  assert_ok(mp_read_text(program, strlen(program), &module));
  assert_ok(mp_module_verify(module));
  assert_ok(mp_pass_xla_values(module));
  assert_ok(mp_pass_dead_code(module));
  assert_ok(mp_module_verify(module));
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  assert_ok(mp_module_print(module, NULL, &text));
  const char *begin = strstr(mp_strbuf_text(&text), "{\n    ");
  assert_non_null(begin);
  char found[4096];
  size_t size = 0;
  for (const char *at = begin + 2; *at != '\0' && strncmp(at, "\n  }", 4) != 0; ++at) {
    const bool is_indent = *at == ' ' && (at[-1] == '\n' || at[-1] == ' ');
    if (!is_indent) found[size++] = *at;
  }
  found[size] = '\0';
  if (strcmp(found, expected) != 0) print_error("%s\n", rule);
  assert_string_equal(found, expected);
  mp_strbuf_deinit(&text);
  mp_module_release(module);
}

typedef struct {
  const char *rule, *body, *expected;
} case_t;

#define RETURN(value) "return %" value " : " F

static const case_t g_cases[] = {
    {"mask", "%m = stablehlo.convert %p : (" P ") -> " F "\n%r = stablehlo.multiply %m, %a : " F,
     "%0 = stablehlo.constant dense<0.000000e+00> : " F
     "\n%1 = stablehlo.select %arg2, %arg0, %0 : " P ", " F "\n" RETURN("1")},
    {"mask on the right",
     "%m = stablehlo.convert %p : (" P ") -> " F "\n%r = stablehlo.multiply %a, %m : " F,
     "%0 = stablehlo.constant dense<0.000000e+00> : " F
     "\n%1 = stablehlo.select %arg2, %arg0, %0 : " P ", " F "\n" RETURN("1")},
    {"log_exp", "%e = stablehlo.exponential %a : " F "\n%r = stablehlo.log %e : " F,
     RETURN("arg0")},
    {"log_power of a constant",
     "%e = stablehlo.power %a, %d : " F "\n%f = stablehlo.power %a, %list : " F
     "\n%r = stablehlo.log %e : " F,
     "%0 = stablehlo.constant dense<5.000000e-01> : tensor<f32>\n"
     "%1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> " F
     "\n%2 = stablehlo.power %arg0, %1 : " F "\n%3 = stablehlo.log %2 : " F "\n" RETURN("3")},
    {"log_power", "%e = stablehlo.power %a, %b : " F "\n%r = stablehlo.log %e : " F,
     "%0 = stablehlo.abs %arg0 : " F "\n%1 = stablehlo.log %0 : " F
     "\n%2 = stablehlo.multiply %1, %arg1 : " F "\n%3 = stablehlo.constant dense<0.000000e+00> : " F
     "\n%4 = stablehlo.compare EQ, %arg1, %3, FLOAT : (" F ", " F ") -> " P
     "\n%5 = stablehlo.select %4, %3, %2 : " P ", " F "\n" RETURN("5")},
    {"exp_times_exp",
     "%e = stablehlo.exponential %a : " F "\n%f = stablehlo.exponential %b : " F
     "\n%r = stablehlo.multiply %e, %f : " F,
     "%0 = stablehlo.add %arg0, %arg1 : " F "\n%1 = stablehlo.exponential %0 : " F
     "\n" RETURN("1")},
    {"exp_over_exp",
     "%e = stablehlo.exponential %a : " F "\n%f = stablehlo.exponential %b : " F
     "\n%r = stablehlo.divide %e, %f : " F,
     "%0 = stablehlo.subtract %arg0, %arg1 : " F "\n%1 = stablehlo.exponential %0 : " F
     "\n" RETURN("1")},
    {"power_exp", "%e = stablehlo.exponential %a : " F "\n%r = stablehlo.power %e, %b : " F,
     "%0 = stablehlo.multiply %arg0, %arg1 : " F "\n%1 = stablehlo.exponential %0 : " F
     "\n" RETURN("1")},
    {"sqrt_square", "%s = stablehlo.multiply %a, %a : " F "\n%r = stablehlo.sqrt %s : " F,
     "%0 = stablehlo.abs %arg0 : " F "\n" RETURN("0")},
    {"plus_constants", "%s = stablehlo.add %c, %a : " F "\n%r = stablehlo.add %s, %d : " F,
     "%0 = stablehlo.constant dense<3.500000e+00> : " F "\n%1 = stablehlo.add %arg0, %0 : " F
     "\n" RETURN("1")},
    {"plus_constants: (a - b) + c",
     "%s = stablehlo.subtract %a, %c : " F "\n%r = stablehlo.add %s, %d : " F,
     "%0 = stablehlo.constant dense<-2.500000e+00> : " F "\n%1 = stablehlo.add %arg0, %0 : " F
     "\n" RETURN("1")},
    {"plus_constants: (a - b) - c",
     "%s = stablehlo.subtract %a, %c : " F "\n%r = stablehlo.subtract %s, %d : " F,
     "%0 = stablehlo.constant dense<3.500000e+00> : " F "\n%1 = stablehlo.subtract %arg0, %0 : " F
     "\n" RETURN("1")},
    {"plus_constants: (b - a) + c",
     "%s = stablehlo.subtract %c, %a : " F "\n%r = stablehlo.add %s, %d : " F,
     "%0 = stablehlo.constant dense<3.500000e+00> : " F "\n%1 = stablehlo.subtract %0, %arg0 : " F
     "\n" RETURN("1")},
    {"plus_constants of a list",
     "%s = stablehlo.add %a, %list : " F "\n%r = stablehlo.subtract %s, %c : " F,
     "%0 = stablehlo.constant dense<3.000000e+00> : " F
     "\n%1 = stablehlo.constant dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, "
     "4.000000e+00]> : " F "\n%2 = stablehlo.subtract %1, %0 : " F
     "\n%3 = stablehlo.add %arg0, %2 : " F "\n" RETURN("3")},
    {"plus_zero, which three constants leave",
     "%s = stablehlo.add %a, %c : " F "\n%t = stablehlo.subtract %s, %d : " F
     "\n%u = stablehlo.subtract %t, %one : " F "\n%v = stablehlo.subtract %u, %one : " F
     "\n%r = stablehlo.subtract %v, %d : " F,
     RETURN("arg0")},
    {"times_constants",
     "%s = stablehlo.multiply %c, %a : " F "\n%r = stablehlo.multiply %s, %d : " F,
     "%0 = stablehlo.constant dense<1.500000e+00> : " F "\n%1 = stablehlo.multiply %arg0, %0 : " F
     "\n" RETURN("1")},
    {"times_constants: (a / b) / c",
     "%s = stablehlo.divide %a, %d : " F "\n%r = stablehlo.divide %s, %d : " F,
     "%0 = stablehlo.constant dense<4.000000e+00> : " F "\n%1 = stablehlo.multiply %arg0, %0 : " F
     "\n" RETURN("1")},
    {"times_one", "%s = stablehlo.multiply %a, %d : " F "\n%r = stablehlo.divide %s, %d : " F,
     RETURN("arg0")},
    {"nothing: another mask's sum",
     "%m = stablehlo.convert %p : (" P ") -> " F "\n%r = stablehlo.add %m, %a : " F,
     "%0 = stablehlo.convert %arg2 : (" P ") -> " F "\n%1 = stablehlo.add %0, %arg0 : " F
     "\n" RETURN("1")},
    {"nothing: b / (a / c)",
     "%s = stablehlo.divide %a, %c : " F "\n%r = stablehlo.divide %b, %s : " F,
     "%0 = stablehlo.constant dense<3.000000e+00> : " F "\n%1 = stablehlo.divide %arg0, %0 : " F
     "\n%2 = stablehlo.divide %arg1, %1 : " F "\n" RETURN("2")},
};

static void every_rule(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof(g_cases) / sizeof(g_cases[0]); ++i)
    check(g_cases[i].rule, F, g_cases[i].body, "%r", g_cases[i].expected);
}

static void masks_in_products(void **state) {
  (void)state;
  check("mask_dot", "tensor<f32>",
        "%m = stablehlo.convert %p : (" P ") -> " F
        "\n%r = stablehlo.dot_general %m, %a, contracting_dims = [0] x [0] : (" F ", " F
        ") -> tensor<f32>",
        "%r",
        "%0 = stablehlo.convert %arg2 : (" P ") -> " F
        "\n%1 = stablehlo.constant dense<0.000000e+00> : " F
        "\n%2 = stablehlo.select %arg2, %arg0, %1 : " P ", " F
        "\n%3 = stablehlo.dot_general %0, %2, contracting_dims = [0] x [0] : (" F ", " F
        ") -> tensor<f32>\nreturn %3 : tensor<f32>");
  check("no product of two vectors", "tensor<4x4xf32>",
        "%m = stablehlo.convert %p : (" P ") -> " F
        "\n%r = stablehlo.dot_general %m, %a, contracting_dims = [] x [] : (" F ", " F
        ") -> tensor<4x4xf32>",
        "%r",
        "%0 = stablehlo.convert %arg2 : (" P ") -> " F
        "\n%1 = stablehlo.dot_general %0, %arg0, contracting_dims = [] x [] : (" F ", " F
        ") -> tensor<4x4xf32>\nreturn %1 : tensor<4x4xf32>");
}

// Complex exponentials have a period, and integers no NaN.
static void other_types(void **state) {
  (void)state;
#define C "tensor<4xcomplex<f32>>"
#define I "tensor<4xi32>"
  check("log_exp", C, "%e = stablehlo.exponential %z : " C "\n%r = stablehlo.log %e : " C, "%r",
        "%0 = stablehlo.exponential %arg3 : " C "\n%1 = stablehlo.log %0 : " C "\nreturn %1 : " C);
  check("times_one", C,
        "%o = stablehlo.constant dense<(1.0, 0.0)> : " C "\n%r = stablehlo.multiply %z, %o : " C,
        "%r", "return %arg3 : " C);
  check("mask", C,
        "%m = stablehlo.convert %p : (" P ") -> " C "\n%r = stablehlo.multiply %z, %m : " C, "%r",
        "%0 = stablehlo.constant dense<(0.000000e+00,0.000000e+00)> : " C
        "\n%1 = stablehlo.select %arg2, %arg3, %0 : " P ", " C "\nreturn %1 : " C);
  check("mask", I,
        "%m = stablehlo.convert %p : (" P ") -> " I "\n%r = stablehlo.multiply %n, %m : " I, "%r",
        "%0 = stablehlo.convert %arg2 : (" P ") -> " I "\n%1 = stablehlo.multiply %arg4, %0 : " I
        "\nreturn %1 : " I);
}

// A loop's body is rewritten, but sees nothing of what is before the loop except constants; a
// reduction's region is left as it is.
static void regions(void **state) {
  (void)state;
  check(
      "in a loop", F,
      "%e = stablehlo.exponential %a : " F "\n%r = stablehlo.while(%i = %a) : " F
      " cond { %t = stablehlo.constant dense<true> : tensor<i1> stablehlo.return %t : tensor<i1> }"
      " do { %l = stablehlo.log %e : " F "\n%s = stablehlo.add %i, %c : " F
      "\n%u = stablehlo.subtract %s, %c : " F "\n%w = stablehlo.add %u, %l : " F
      "\nstablehlo.return %w : " F " }",
      "%r",
      "%0 = stablehlo.exponential %arg0 : " F "\n%1 = stablehlo.while(%arg5 = %arg0) : " F
      "\ncond {\n%2 = stablehlo.constant dense<true> : tensor<i1>\nstablehlo.return %2 : "
      "tensor<i1>\n} do {\n%3 = stablehlo.log %0 : " F "\n%4 = stablehlo.add %arg5, %3 : " F
      "\nstablehlo.return %4 : " F "\n}\nreturn %1 : " F);
}

// Every rule has its case above.
static void the_table_is_tested(void **state) {
  (void)state;
#define NAME(name, ...) #name,
  static const char *const names[] = {MP_XLA_RULES(NAME)};
#undef NAME
  for (size_t rule = 0; rule < sizeof(names) / sizeof(names[0]); ++rule) {
    bool is_tested = strcmp(names[rule], "mask_dot") == 0;
    for (size_t i = 0; i < sizeof(g_cases) / sizeof(g_cases[0]); ++i)
      is_tested |= strncmp(g_cases[i].rule, names[rule], strlen(names[rule])) == 0;
    if (!is_tested) print_error("%s\n", names[rule]);
    assert_true(is_tested);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_rule),          cmocka_unit_test(masks_in_products),
      cmocka_unit_test(other_types),         cmocka_unit_test(regions),
      cmocka_unit_test(the_table_is_tested),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
