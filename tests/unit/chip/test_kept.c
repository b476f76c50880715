// What a compiler for TPUs makes again behind a matmul that is read anyway.
#include "tests/unit/chip/fusion_samples.h"

enum { HALF_BYTES = 256 * 256 * 2 };
#define H         "tensor<256x256xbf16>"
#define HOP(r, o) "%" r " = stablehlo." o " : " H "\n"
#define MATMUL_OF(type, r, a, b)                                                                   \
  "%" r " = stablehlo.dot_general %" a ", %" b ", contracting_dims = [1] x [0] : (" type ", " type \
  ") -> " type "\n"

static double bytes_of(const char *text, uint32_t count) {
  const mp_chip_figures_t figures = figures_of(TPU);
  found_t f = find_with(&figures, text);
  assert_int_equal(count_fusions(&f), count);
  const double bytes = sum_bytes(&f);
  find_end(&f);
  return bytes;
}

// An activation is made of the matmul's result by all that read it, where its gradient wants that
// result, too: one array is written instead of two.
static void activations_are_made_again_for_gradients(void **state) {
  (void)state;
#define ACTIVATED                                                                               \
  "func.func @main(%x: " H ", %u: " H ", %v: " H ", %w: " H ", %y: " H ") -> (" H ", " H ", " H \
  ") {\n" MATMUL_OF(H, "h", "x", "u") HOP("t", "tanh %h") HOP("a", "multiply %h, %t")           \
      MATMUL_OF(H, "p", "a", "v") MATMUL_OF(H, "q", "a", "w")
  static const char kept[] = ACTIVATED HOP("g", "add %h, %t")
      HOP("o", "multiply %g, %y") "return %p, %q, %o : " H ", " H ", " H "\n}\n";
  // x, u and h; h, v and p; h, w and q; h, y and o.
  assert_float_equal(bytes_of(kept, 4), 12 * HALF_BYTES, 1e-3);
  // Without a gradient the activation is what the first matmul writes.
  static const char activation[] =
      ACTIVATED HOP("o", "multiply %y, %y") "return %p, %q, %o : " H ", " H ", " H "\n}\n";
  assert_float_equal(bytes_of(activation, 4), 11 * HALF_BYTES, 1e-3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(activations_are_made_again_for_gradients),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
