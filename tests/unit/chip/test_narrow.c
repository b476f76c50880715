// In which type a TPU has what products alone read.
#include "tests/unit/chip/cluster_samples.h"

#define MULTIPLY(r, a, b, precision)                                                               \
  "%" r " = stablehlo.dot_general %" a ", %" b ", contracting_dims = [1] x [0]" precision " : (" S \
  ", " S ") -> " S "\n"
#define MAIN \
  "func.func @main(%x: " S ", %u: " S ", %v: " S ", %w: " S ") -> (" S ", " S ", " S ") {\n"
#define RETURN(third) "return %p, %q, %" third " : " S ", " S ", " S "\n}\n"

static double bytes_with(mp_chip_compiler_t compiler, const char *text) {
  const mp_chip_figures_t figures = figures_of(compiler);
  found_t f = find_with(&figures, text);
  const double bytes = sum_bytes(&f);
  find_end(&f);
  return bytes;
}

// Both products multiply in bf16: what they share is written and read in half of its bytes.
static void what_is_only_multiplied_lies_in_bf16(void **state) {
  (void)state;
  static const char text[] = MAIN MULTIPLY("h", "x", "u", "") MULTIPLY("p", "h", "v", "")
      MULTIPLY("q", "h", "w", "") RETURN("x");
  assert_float_equal(bytes_with(TPU, text), (2 + 3 * 0.5 + 2 + 2) * SQUARE, 1e-3);
  assert_float_equal(bytes_with(GPU, text), (2 + 3 * 1 + 2 + 2) * SQUARE, 1e-3);
}

// An activation that two products read is written so, too, instead of being made by each.
static void activations_are_written_in_bf16(void **state) {
  (void)state;
  static const char text[] =
      MAIN MULTIPLY("h", "x", "u", "") "%a = stablehlo.tanh %h : " S
                                       "\n" MULTIPLY("p", "a", "v", "") MULTIPLY("q", "a", "w", "")
                                           RETURN("x");
  assert_float_equal(bytes_with(TPU, text), (2 + 3 * 0.5 + 2 + 2) * SQUARE, 1e-3);
}

static void others_find_it_in_f32(void **state) {
  (void)state;
  // Somebody else reads it.
  static const char summed[] = MAIN MULTIPLY("h", "x", "u", "") MULTIPLY("p", "h", "v", "")
      MULTIPLY("q", "h", "w", "") RETURN("h");
  assert_float_equal(bytes_with(TPU, summed), (2 + 3 + 2 + 2) * SQUARE, 1e-3);
  // Products of several passes want all of its bits.
  static const char exact[] = MAIN MULTIPLY("h", "x", "u", "") MULTIPLY(
      "p", "h", "v", ", precision = [HIGHEST, HIGHEST]") MULTIPLY("q", "h", "w", "") RETURN("x");
  assert_float_equal(bytes_with(TPU, exact), (2 + 3 + 2 + 2) * SQUARE, 1e-3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_only_multiplied_lies_in_bf16),
      cmocka_unit_test(activations_are_written_in_bf16),
      cmocka_unit_test(others_find_it_in_f32),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
