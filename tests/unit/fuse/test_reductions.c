// Fused ops that end in reductions of long rows, of columns and of whole arrays have the bits of
// the reduction of the array, which they never make.
#include <stdio.h>

#include "tests/unit/support/fused_runs.h"

typedef struct {
  const char *shape, *dims, *result;  // of what is reduced, the dimensions, and the result
  const char *kind, *start;
} case_t;

static const case_t k_cases[] = {
    {"5000x70", "0", "70", "add", "1"},
    {"80x70", "0", "70", "maximum", "0"},
    {"70x1100", "0", "1100", "add", "0"},
    {"300x20", "0, 1", "", "add", "3"},
    {"3x20000", "1", "3", "add", "0"},
    {"3x9000", "1", "3", "multiply", "1"},
    {"40000", "0", "", "add", "0"},
    {"40000", "0", "", "minimum", "1"},
    {"4x33x65x3", "0, 1", "65x3", "add", "0"},
    {"4x33x65x64", "1", "4x65x64", "add", "0"},
    {"6x7x20x30", "1, 3", "6x20", "add", "0"},
    {"65x80", "0", "80", "add", "0"},
    // Those of few results that are cut into pieces: an array, rows, runs of rows, and lanes.
    {"300007", "0", "", "add", "1"},
    {"3x140001", "1", "3", "maximum", "0"},
    {"501x2x701", "0, 2", "2", "add", "3"},
    {"4101x70", "0", "70", "add", "0"},
    {"2x3001x97", "0, 1", "97", "multiply", "1"},
};
enum { FIRST_LARGE = 12, LARGE_ELEMENTS = 2 };  // large ones are tried with the first few types

static const char *const k_elements[] = {"f32", "bf16", "f64", "i32", "f16", "ui8", "f8E4M3FN"};

// sum(x * x - y) with y repeated from a smaller array, and with the elements' type converted to and
// fro where `converts`.
static void write_program(const case_t *c, const char *element, bool converts, char *out) {
  const char *x = *c->result == '\0' ? "" : "x";
  const char *middle = converts ? "f32" : element;
  out += sprintf(out, "func.func @main(%%x: tensor<%sx%s>, %%y: tensor<%s>, %%z: tensor<%s>) -> ",
                 c->shape, element, element, middle);
  out += sprintf(out, "tensor<%s%s%s> {\n", c->result, x, middle);
  out += sprintf(
      out, "%%b = stablehlo.broadcast_in_dim %%y, dims = [] : (tensor<%s>) -> tensor<%sx%s>\n",
      element, c->shape, element);
  out += sprintf(out, "%%a = stablehlo.multiply %%x, %%x : tensor<%sx%s>\n", c->shape, element);
  out += sprintf(out, "%%d = stablehlo.subtract %%a, %%b : tensor<%sx%s>\n", c->shape, element);
  out += sprintf(out, "%%c = stablehlo.convert %%d : (tensor<%sx%s>) -> tensor<%sx%s>\n", c->shape,
                 element, c->shape, middle);
  out += sprintf(out, "%%s = stablehlo.constant dense<%s> : tensor<%s>\n", c->start, "i32");
  out += sprintf(out, "%%t = stablehlo.convert %%s : (tensor<i32>) -> tensor<%s>\n", middle);
  out += sprintf(out,
                 "%%r = stablehlo.reduce(%%c init: %%%s) applies stablehlo.%s across dimensions = "
                 "[%s] : (tensor<%sx%s>, tensor<%s>) -> tensor<%s%s%s>\n",
                 *c->start == '3' ? "z" : "t", c->kind, c->dims, c->shape, middle, middle,
                 c->result, x, middle);
  sprintf(out, "return %%r : tensor<%s%s%s>\n}\n", c->result, x, middle);
}

static void reductions_of_all_forms(void **state) {
  (void)state;
  mp_client_t *client = make_client(1);
  for (size_t i = 0; i < sizeof(k_cases) / sizeof(k_cases[0]); ++i) {
    for (size_t e = 0; e < sizeof(k_elements) / sizeof(k_elements[0]); ++e) {
      if (i >= FIRST_LARGE && e >= LARGE_ELEMENTS) break;
      for (int converts = 0; converts < 2; ++converts) {
        char text[4096];
        write_program(&k_cases[i], k_elements[e], converts != 0, text);
        check_text(client, text, i);
      }
    }
  }
  mp_client_release(client);
}

// (x - sum) * scale / largest, where sum and largest are a row's and scale is a column's: with rows
// of which a tile has one, and others.
static void rows_with_what_was_made_of_them(void **state) {
  (void)state;
  static const char *const shapes[] = {"7x511", "7x512", "3x2050", "5x700", "2x8192"};
  mp_client_t *client = make_client(1);
  for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); ++i) {
    for (size_t e = 0; e < sizeof(k_elements) / sizeof(k_elements[0]); ++e) {
      const char *x = strchr(shapes[i], 'x') + 1;
      char full[64], row[64], column[64], text[4096], *out = text;
      snprintf(full, sizeof(full), "tensor<%sx%s>", shapes[i], k_elements[e]);
      snprintf(column, sizeof(column), "tensor<%.1sx%s>", shapes[i], k_elements[e]);
      snprintf(row, sizeof(row), "tensor<%sx%s>", x, k_elements[e]);
      out += sprintf(out, "func.func @main(%%x: %s, %%s: %s, %%i: tensor<%s>) -> (%s, %s) {\n",
                     full, row, k_elements[e], full, full);
      static const char *const kinds[] = {"add", "maximum"};
      for (int k = 0; k < 2; ++k) {
        out += sprintf(out,
                       "%%r%d = stablehlo.reduce(%%x init: %%i) applies stablehlo.%s across "
                       "dimensions = [1] : (%s, tensor<%s>) -> %s\n"
                       "%%b%d = stablehlo.broadcast_in_dim %%r%d, dims = [0] : (%s) -> %s\n",
                       k, kinds[k], full, k_elements[e], column, k, k, column, full);
      }
      out += sprintf(out,
                     "%%w = stablehlo.broadcast_in_dim %%s, dims = [1] : (%s) -> %s\n"
                     "%%d = stablehlo.subtract %%x, %%b0 : %s\n"
                     "%%m = stablehlo.multiply %%d, %%w : %s\n"
                     "%%q = stablehlo.add %%m, %%b1 : %s\n"
                     "%%p = stablehlo.maximum %%b1, %%b0 : %s\n"
                     "return %%q, %%p : %s, %s\n}\n",
                     row, full, full, full, full, full, full, full);
      check_text(client, text, i);
    }
  }
  mp_client_release(client);
}

#define T "tensor<200x300xf32>"
#define C "tensor<300xf32>"
#define SUM(TO, FROM)                                     \
  "%" TO " = stablehlo.reduce(%" FROM                     \
  " init: %z) applies stablehlo.add across dimensions = " \
  "[0] : (" T ", tensor<f32>) -> " C "\n"
#define ZERO "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"

// The variance of columns: two sums, and the ops on the few results.
static void a_variance_is_made_without_arrays(void **state) {
  (void)state;
  expect_launches(
      "func.func @main(%x: " T ") -> " C " {\n" ZERO "%n = stablehlo.constant dense<200.0> : " C
      "\n" SUM("s", "x") "%m = stablehlo.divide %s, %n : " C
                         "\n"
                         "%b = stablehlo.broadcast_in_dim %m, dims = [1] : (" C ") -> " T
                         "\n"
                         "%d = stablehlo.subtract %x, %b : " T
                         "\n"
                         "%e = stablehlo.multiply %d, %d : " T "\n" SUM("v", "e") "return %v : " C
                                                                                  "\n}\n",
      3);
}

// %a is also wanted for itself.
static void what_others_read_is_an_array(void **state) {
  (void)state;
  expect_launches("func.func @main(%x: " T ") -> (" C ", " T ") {\n" ZERO
                  "%a = stablehlo.tanh %x : " T "\n" SUM("s", "a") "return %s, %a : " C ", " T
                                                                   "\n}\n",
                  2);
}

// The sum reads %a and %a backwards, which needs all of it.
static void reversed_values_are_arrays(void **state) {
  (void)state;
  expect_launches("func.func @main(%x: " T ") -> " C " {\n" ZERO "%a = stablehlo.tanh %x : " T
                  "\n"
                  "%b = stablehlo.transpose %a, dims = [1, 0] : (" T
                  ") -> tensor<300x200xf32>\n"
                  "%c = stablehlo.reshape %b : (tensor<300x200xf32>) -> " T
                  "\n"
                  "%d = stablehlo.add %a, %c : " T "\n" SUM("s", "d") "return %s : " C "\n}\n",
                  3);
}

// A program may hold such an op itself.
static void what_cannot_end_an_op_is_refused(void **state) {
  (void)state;
  static const char text[] =
      "func.func @main(%a: tensor<9000xf32>, %s: tensor<f32>) -> tensor<f32> {\n"
      "%0 = \"minipod.fusion\"(%a, %s) ({\n"
      "^bb0(%x: tensor<9000xf32>, %y: tensor<f32>):\n"
      "%t = stablehlo.negate %y : tensor<f32>\n"
      "%r = stablehlo.reduce(%x init: %t) applies stablehlo.add across dimensions = [0] : "
      "(tensor<9000xf32>, tensor<f32>) -> tensor<f32>\n"
      "\"stablehlo.return\"(%r) : (tensor<f32>) -> ()\n"
      "}) : (tensor<9000xf32>, tensor<f32>) -> tensor<f32>\n"
      "return %0 : tensor<f32>\n}\n";
  expect_refused(text, "stablehlo.negate");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reductions_of_all_forms),
      cmocka_unit_test(rows_with_what_was_made_of_them),
      cmocka_unit_test(a_variance_is_made_without_arrays),
      cmocka_unit_test(what_others_read_is_an_array),
      cmocka_unit_test(reversed_values_are_arrays),
      cmocka_unit_test(what_cannot_end_an_op_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
