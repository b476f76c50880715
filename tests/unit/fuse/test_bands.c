// Two batched products and what is between them as one op, band by band: the bits of both ways,
// what becomes one op, and what must not.
#include "tests/unit/support/fused_runs.h"
#include "tests/unit/support/unit.h"

// Ten bands of 60 x 70.
#define Q     "tensor<2x5x60x16xf32>"
#define K     "tensor<2x5x70x16xf32>"
#define S     "tensor<2x5x60x70xf32>"
#define C     "tensor<2x5x60xf32>"
#define BATCH "batching_dims = [0, 1] x [0, 1]"

#define SCORES                                                                              \
  "%s = stablehlo.dot_general %q, %k, " BATCH ", contracting_dims = [3] x [3] : (" Q ", " K \
  ") -> " S "\n"

#define SOFTMAX                                                                                \
  "%l = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"                                  \
  "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"                                         \
  "%m = stablehlo.reduce(%t init: %l) applies stablehlo.maximum across dimensions = [3] : (" S \
  ", tensor<f32>) -> " C                                                                       \
  "\n"                                                                                         \
  "%c = stablehlo.reshape %m : (" C                                                            \
  ") -> tensor<2x5x60x1xf32>\n"                                                                \
  "%w = stablehlo.broadcast_in_dim %c, dims = [0, 1, 2, 3] : (tensor<2x5x60x1xf32>) -> " S     \
  "\n"                                                                                         \
  "%d = stablehlo.subtract %t, %w : " S                                                        \
  "\n"                                                                                         \
  "%e = stablehlo.exponential %d : " S                                                         \
  "\n"                                                                                         \
  "%n = stablehlo.reduce(%e init: %z) applies stablehlo.add across dimensions = [3] : (" S     \
  ", tensor<f32>) -> " C                                                                       \
  "\n"                                                                                         \
  "%v = stablehlo.broadcast_in_dim %n, dims = [0, 1, 2] : (" C ") -> " S                       \
  "\n"                                                                                         \
  "%p = stablehlo.divide %e, %v : " S "\n"

#define PRODUCT                                                                             \
  "%o = stablehlo.dot_general %p, %x, " BATCH ", contracting_dims = [3] x [2] : (" S ", " K \
  ") "                                                                                      \
  "-> " Q "\n"

static void attention_is_one(void **state) {
  (void)state;
  expect_launches("func.func @main(%q: " Q ", %k: " K ", %x: " K ") -> " Q " {\n" SCORES
                  "%t = stablehlo.negate %s : " S "\n" SOFTMAX PRODUCT "return %o : " Q "\n}\n",
                  1);
}

// A mask for all bands, a scale for each, and numbers that are counted.
static void what_all_bands_read_stays_whole(void **state) {
  (void)state;
  expect_launches("func.func @main(%q: " Q ", %k: " K ", %x: " K
                  ", %mask: tensor<60x70xi1>, %scale: tensor<2x5xf32>) -> " Q " {\n" SCORES
                  "%b = stablehlo.broadcast_in_dim %scale, dims = [0, 1] : (tensor<2x5xf32>) -> " S
                  "\n"
                  "%y = stablehlo.multiply %s, %b : " S
                  "\n"
                  "%r = stablehlo.iota dim = 3 : " S
                  "\n"
                  "%u = stablehlo.subtract %y, %r : " S
                  "\n"
                  "%f = stablehlo.constant dense<-1.0e30> : " S
                  "\n"
                  "%a = stablehlo.broadcast_in_dim %mask, dims = [2, 3] : (tensor<60x70xi1>) -> "
                  "tensor<2x5x60x70xi1>\n"
                  "%t = stablehlo.select %a, %u, %f : tensor<2x5x60x70xi1>, " S "\n" SOFTMAX PRODUCT
                  "return %o : " Q "\n}\n",
                  1);
}

// What is between the products has another type, and is the right side of the second one.
static void types_may_change_between(void **state) {
  (void)state;
  expect_launches(
      "func.func @main(%q: " Q ", %k: " K
      ", %x: tensor<2x5x60x9xbf16>) -> tensor<2x5x9x70xf32> {\n" SCORES
      "%h = stablehlo.tanh %s : " S
      "\n"
      "%p = stablehlo.convert %h : (" S
      ") -> tensor<2x5x60x70xbf16>\n"
      "%o = stablehlo.dot_general %x, %p, " BATCH
      ", contracting_dims = [2] x [2] : (tensor<2x5x60x9xbf16>, tensor<2x5x60x70xbf16>) -> "
      "tensor<2x5x9x70xf32>\n"
      "return %o : tensor<2x5x9x70xf32>\n}\n",
      1);
}

// One side is read by both products.
static void operands_may_be_shared(void **state) {
  (void)state;
  expect_launches("func.func @main(%q: " Q ", %x: " K ") -> " Q
                  " {\n"
                  "%s = stablehlo.dot_general %q, %x, " BATCH ", contracting_dims = [3] x [3] : (" Q
                  ", " K ") -> " S
                  "\n"
                  "%h = stablehlo.tanh %s : " S
                  "\n"
                  "%p = stablehlo.multiply %h, %h : " S "\n" PRODUCT "return %o : " Q "\n}\n",
                  1);
}

// The scores, and values computed from them, are arrays if other ops read them.
static void what_is_returned_stays_an_array(void **state) {
  (void)state;
  expect_launches("func.func @main(%q: " Q ", %k: " K ", %x: " K ") -> (" Q ", " S ") {\n" SCORES
                  "%h = stablehlo.tanh %s : " S
                  "\n"
                  "%p = stablehlo.multiply %h, %h : " S "\n" PRODUCT "return %o, %s : " Q ", " S
                  "\n}\n",
                  3);
  expect_launches("func.func @main(%q: " Q ", %k: " K ", %x: " K ") -> (" Q ", " S ") {\n" SCORES
                  "%h = stablehlo.tanh %s : " S
                  "\n"
                  "%p = stablehlo.multiply %h, %h : " S "\n" PRODUCT "return %o, %p : " Q ", " S
                  "\n}\n",
                  3);
}

// A sum over bands, bands in another order, and bands that are another dimension of one product.
static void bands_that_need_each_other_stay_apart(void **state) {
  (void)state;
  expect_launches("func.func @main(%q: " Q ", %k: " K ", %x: " K ") -> " Q " {\n" SCORES
                  "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
                  "%h = stablehlo.tanh %s : " S
                  "\n"
                  "%r = stablehlo.reverse %h, dims = [0] : " S
                  "\n"
                  "%p = stablehlo.add %r, %s : " S "\n" PRODUCT "return %o : " Q "\n}\n",
                  4);
  expect_launches(
      "func.func @main(%q: tensor<10x60x16xf32>, %k: tensor<10x60x16xf32>, "
      "%x: tensor<16x60x60xf32>) -> tensor<60x10x16xf32> {\n"
      "%s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], "
      "contracting_dims = [2] x [2] : (tensor<10x60x16xf32>, tensor<10x60x16xf32>) -> "
      "tensor<10x60x60xf32>\n"
      "%h = stablehlo.tanh %s : tensor<10x60x60xf32>\n"
      "%p = stablehlo.multiply %h, %h : tensor<10x60x60xf32>\n"
      "%o = stablehlo.dot_general %p, %x, batching_dims = [1] x [1], "
      "contracting_dims = [2] x [2] : (tensor<10x60x60xf32>, tensor<16x60x60xf32>) -> "
      "tensor<60x10x16xf32>\n"
      "return %o : tensor<60x10x16xf32>\n}\n",
      3);
}

// A fused op of the program's own whose bands need each other is no such op, and none of tiles.
static void other_bands_are_refused(void **state) {
  (void)state;
  expect_refused(
      "func.func @main(%q: tensor<4x4x4xf32>, %x: tensor<4x4x4xf32>) -> tensor<4x4x4xf32> {\n"
      "%0 = \"minipod.fusion\"(%q, %x) ({\n"
      "^bb0(%a: tensor<4x4x4xf32>, %b: tensor<4x4x4xf32>):\n"
      "%s = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1] "
      ": "
      "(tensor<4x4x4xf32>, tensor<4x4x4xf32>) -> tensor<4x4x4xf32>\n"
      "%t = stablehlo.transpose %s, dims = [1, 0, 2] : (tensor<4x4x4xf32>) -> tensor<4x4x4xf32>\n"
      "%o = stablehlo.dot_general %t, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1] "
      ": "
      "(tensor<4x4x4xf32>, tensor<4x4x4xf32>) -> tensor<4x4x4xf32>\n"
      "\"stablehlo.return\"(%o) : (tensor<4x4x4xf32>) -> ()\n"
      "}) : (tensor<4x4x4xf32>, tensor<4x4x4xf32>) -> tensor<4x4x4xf32>\n"
      "return %0 : tensor<4x4x4xf32>\n}\n",
      "stablehlo.dot_general");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(attention_is_one),
      cmocka_unit_test(what_all_bands_read_stays_whole),
      cmocka_unit_test(types_may_change_between),
      cmocka_unit_test(operands_may_be_shared),
      cmocka_unit_test(what_is_returned_stays_an_array),
      cmocka_unit_test(bands_that_need_each_other_stay_apart),
      cmocka_unit_test(other_bands_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
