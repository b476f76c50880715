// Gathers whose indices are computed while it asks for them: the bits of both ways, what becomes
// one op, and what must not.
#include "tests/unit/support/fused_runs.h"
#include "tests/unit/support/unit.h"

// As many indices as make several tiles and parts, not a multiple of either.
#define N  "9001"
#define I  "tensor<" N "xi32>"
#define IV "tensor<" N "x1xi32>"
#define F  "tensor<" N "xf32>"

// Indices of small numbers, some of them negative, as x[i] has them: i < 0 ? i + 50 : i.
#define NORMALIZED                                                   \
  "%c5 = stablehlo.constant dense<5> : " I                           \
  "\n"                                                               \
  "%c50 = stablehlo.constant dense<50> : " I                         \
  "\n"                                                               \
  "%c63 = stablehlo.constant dense<63> : " I                         \
  "\n"                                                               \
  "%c0 = stablehlo.constant dense<0> : " I                           \
  "\n"                                                               \
  "%m = stablehlo.and %i, %c63 : " I                                 \
  "\n"                                                               \
  "%s = stablehlo.subtract %m, %c5 : " I                             \
  "\n"                                                               \
  "%p = stablehlo.compare LT, %s, %c0 : (" I ", " I ") -> tensor<" N \
  "xi1>\n"                                                           \
  "%a = stablehlo.add %s, %c50 : " I                                 \
  "\n"                                                               \
  "%k = stablehlo.select %p, %a, %s : tensor<" N "xi1>, " I "\n"

#define VECTORS NORMALIZED "%v = stablehlo.reshape %k : (" I ") -> " IV "\n"

// The table is the value X.
#define GATHER_OF(X, TABLE, INDICES, OUT)                                      \
  "%g = \"stablehlo.gather\"(" X                                               \
  ", %v) <{dimension_numbers = #stablehlo.gather<"                             \
  "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, " \
  "slice_sizes = array<i64: 1>}> : (" TABLE ", " INDICES ") -> " OUT "\n"
#define GATHER(TABLE, INDICES, OUT) GATHER_OF("%x", TABLE, INDICES, OUT)

static void elements_of_a_table_are_one(void **state) {
  (void)state;
  expect_launches("func.func @main(%x: tensor<50xf32>, %i: " I ") -> " F
                  " {\n" VECTORS GATHER("tensor<50xf32>", IV, F) "return %g : " F "\n}\n",
                  1);
}

#define JOINED \
  "%v = stablehlo.concatenate %i, %j, dim = 1 : (" IV ", " IV ") -> tensor<" N "x2xi32>\n"
#define GATHER_PAIRS(LEFT_OUT, MAP, SIZES, X, OUT)                                      \
  "%g = \"stablehlo.gather\"(%x, %v) <{dimension_numbers = #stablehlo.gather<" LEFT_OUT \
  ", start_index_map = " MAP ", index_vector_dim = 1>, slice_sizes = array<i64: " SIZES \
  ">}> : (" X ", tensor<" N "x2xi32>) -> " OUT "\n"

// x[j, i]: places in x are computed from both, which also have to be moved into it.
static void elements_of_a_matrix_are_one(void **state) {
  (void)state;
  expect_launches("func.func @main(%x: tensor<50x30xf32>, %i: " IV ", %j: " IV ") -> " F
                  " {\n" JOINED GATHER_PAIRS("collapsed_slice_dims = [0, 1]", "[1, 0]", "1, 1",
                                             "tensor<50x30xf32>", F) "return %g : " F "\n}\n",
                  1);
}

// The second index takes rows of two, which are no elements: the vectors have to be there.
static void windows_of_a_matrix_are_not(void **state) {
  (void)state;
  expect_launches("func.func @main(%x: tensor<50x30xf32>, %i: " IV ", %j: " IV ") -> tensor<" N
                  "x2xf32> {\n" JOINED GATHER_PAIRS("offset_dims = [1], collapsed_slice_dims = [0]",
                                                    "[0, 1]", "1, 2", "tensor<50x30xf32>",
                                                    "tensor<" N "x2xf32>") "return %g : tensor<" N
                                                                           "x2xf32>\n}\n",
                  2);
}

// The vectors have no dimension of their own, and the elements are bytes.
static void scalar_indices_are_one(void **state) {
  (void)state;
  expect_launches("func.func @main(%x: tensor<50xui8>, %i: " I ") -> tensor<" N
                  "xui8> {\n" NORMALIZED
                  "%g = \"stablehlo.gather\"(%x, %k) <{dimension_numbers = #stablehlo.gather<"
                  "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, "
                  "slice_sizes = array<i64: 1>}> : (tensor<50xui8>, " I ") -> tensor<" N
                  "xui8>\n"
                  "return %g : tensor<" N "xui8>\n}\n",
                  1);
}

// Numbers of 64 bits, far outside of the table on both sides: the ends of a column are taken.
static void wide_indices_are_one(void **state) {
  (void)state;
  expect_launches("func.func @main(%x: tensor<50x3xi16>, %i: tensor<" N "xi64>) -> tensor<" N
                  "xi16> {\n"
                  "%k = stablehlo.not %i : tensor<" N
                  "xi64>\n"
                  "%v = stablehlo.reshape %k : (tensor<" N "xi64>) -> tensor<" N
                  "x1xi64>\n"
                  "%g = \"stablehlo.gather\"(%x, %v) <{dimension_numbers = #stablehlo.gather<"
                  "collapsed_slice_dims = [0, 1], start_index_map = [0], index_vector_dim = 1>, "
                  "slice_sizes = array<i64: 1, 1>}> : (tensor<50x3xi16>, tensor<" N
                  "x1xi64>) -> tensor<" N
                  "xi16>\n"
                  "return %g : tensor<" N "xi16>\n}\n",
                  1);
}

static void rows_of_a_table_are_one(void **state) {
  (void)state;
  expect_launches(
      "func.func @main(%x: tensor<50x7xf64>, %i: " I ") -> tensor<" N "x7xf64> {\n" VECTORS
      "%g = \"stablehlo.gather\"(%x, %v) <{dimension_numbers = #stablehlo.gather<"
      "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,"
      " slice_sizes = array<i64: 1, 7>}> : (tensor<50x7xf64>, " IV ") -> tensor<" N
      "x7xf64>\n"
      "return %g : tensor<" N "x7xf64>\n}\n",
      1);
}

// Three components for each slice, from 64-bit numbers; slices lie between the numbers of slices.
static void vectors_of_several_components_are_one(void **state) {
  (void)state;
  expect_launches(
      "func.func @main(%x: tensor<9x8x7x6xf32>, %i: tensor<30x3x90x3xi64>) -> "
      "tensor<30x6x3x90xf32> {\n"
      "%c = stablehlo.constant dense<7> : tensor<30x3x90x3xi64>\n"
      "%k = stablehlo.and %i, %c : tensor<30x3x90x3xi64>\n"
      "%d = stablehlo.negate %k : tensor<30x3x90x3xi64>\n"
      "%v = stablehlo.add %d, %c : tensor<30x3x90x3xi64>\n"
      "%g = \"stablehlo.gather\"(%x, %v) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],"
      " collapsed_slice_dims = [0, 1, 2], start_index_map = [2, 0, 1], index_vector_dim = 3>, "
      "slice_sizes = array<i64: 1, 1, 1, 6>}> : (tensor<9x8x7x6xf32>, tensor<30x3x90x3xi64>) -> "
      "tensor<30x6x3x90xf32>\n"
      "return %g : tensor<30x6x3x90xf32>\n}\n",
      1);
}

// As jnp.take_along_axis has it: each row of indices belongs to a row of the table.
static void batches_are_one(void **state) {
  (void)state;
  expect_launches(
      "func.func @main(%x: tensor<90x40xi16>, %i: tensor<90x120x1xui32>) -> tensor<90x120xi16> {\n"
      "%c = stablehlo.constant dense<47> : tensor<90x120x1xui32>\n"
      "%d = stablehlo.constant dense<3> : tensor<90x120x1xui32>\n"
      "%k = stablehlo.and %i, %c : tensor<90x120x1xui32>\n"
      "%v = stablehlo.shift_right_logical %k, %d : tensor<90x120x1xui32>\n"
      "%g = \"stablehlo.gather\"(%x, %v) <{dimension_numbers = #stablehlo.gather<"
      "collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], "
      "start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>}> : "
      "(tensor<90x40xi16>, tensor<90x120x1xui32>) -> tensor<90x120xi16>\n"
      "return %g : tensor<90x120xi16>\n}\n",
      1);
}

// No kernel makes the array of numbers 0, 1, 2, ...
static void counted_indices_are_one(void **state) {
  (void)state;
  expect_launches("func.func @main(%x: tensor<50xf32>) -> " F
                  " {\n"
                  "%v = stablehlo.iota dim = 0 : " IV
                  "\n" GATHER("tensor<50xf32>", IV, F) "return %g : " F "\n}\n",
                  1);
}

// The table of the one gather is what the other one's indices are made of.
static void a_table_may_be_the_source_of_indices(void **state) {
  (void)state;
  expect_launches("func.func @main(%i: " I ") -> " I
                  " {\n" VECTORS GATHER_OF("%i", I, IV, I) "return %g : " I "\n}\n",
                  1);
}

// A table has to be there as a whole, also if it is the indices.
static void a_computed_table_stays_an_array(void **state) {
  (void)state;
  expect_launches("func.func @main(%i: " I ") -> " I
                  " {\n" VECTORS GATHER_OF("%k", I, IV, I) "return %g : " I "\n}\n",
                  2);
  expect_launches("func.func @main(%y: " F ", %i: " I ") -> " F
                  " {\n"
                  "%x = stablehlo.multiply %y, %y : " F "\n" VECTORS GATHER(
                      F, IV, F) "%o = stablehlo.add %g, %x : " F "\nreturn %o : " F "\n}\n",
                  3);
}

// Another op reads the indices, so they are an array anyway.
static void indices_that_are_returned_stay_an_array(void **state) {
  (void)state;
  expect_launches("func.func @main(%x: tensor<50xf32>, %i: " I ") -> (" F ", " I
                  ") {\n" VECTORS GATHER("tensor<50xf32>", IV, F) "return %g, %k : " F ", " I
                                                                  "\n}\n",
                  2);
}

// The components of a vector lie far from each other.
static void other_orders_stay_two(void **state) {
  (void)state;
  expect_launches("func.func @main(%x: tensor<8x8xf32>, %i: tensor<2x" N "xi32>) -> " F
                  " {\n"
                  "%c = stablehlo.constant dense<7> : tensor<2x" N
                  "xi32>\n"
                  "%v = stablehlo.and %i, %c : tensor<2x" N
                  "xi32>\n"
                  "%g = \"stablehlo.gather\"(%x, %v) <{dimension_numbers = #stablehlo.gather<"
                  "collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 0>, "
                  "slice_sizes = array<i64: 1, 1>}> : (tensor<8x8xf32>, tensor<2x" N "xi32>) -> " F
                  "\n"
                  "return %g : " F "\n}\n",
                  2);
}

// A gather in a fused op of the program's own that looks up what the op computes.
static void a_table_in_the_region_is_refused(void **state) {
  (void)state;
  expect_refused(
      "func.func @main(%a: tensor<64xf32>, %i: tensor<64x1xi32>) -> tensor<64xf32> {\n"
      "%0 = \"minipod.fusion\"(%a, %i) ({\n"
      "^bb0(%y: tensor<64xf32>, %v: tensor<64x1xi32>):\n"
      "%x = stablehlo.negate %y : tensor<64xf32>\n" GATHER("tensor<64xf32>", "tensor<64x1xi32>",
                                                           "tensor<64xf32>")
      "\"stablehlo.return\"(%g) : (tensor<64xf32>) -> ()\n"
      "}) : (tensor<64xf32>, tensor<64x1xi32>) -> tensor<64xf32>\n"
      "return %0 : tensor<64xf32>\n}\n",
      "stablehlo.gather");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(elements_of_a_table_are_one),
      cmocka_unit_test(elements_of_a_matrix_are_one),
      cmocka_unit_test(windows_of_a_matrix_are_not),
      cmocka_unit_test(scalar_indices_are_one),
      cmocka_unit_test(wide_indices_are_one),
      cmocka_unit_test(rows_of_a_table_are_one),
      cmocka_unit_test(vectors_of_several_components_are_one),
      cmocka_unit_test(batches_are_one),
      cmocka_unit_test(counted_indices_are_one),
      cmocka_unit_test(a_table_may_be_the_source_of_indices),
      cmocka_unit_test(a_computed_table_stays_an_array),
      cmocka_unit_test(indices_that_are_returned_stay_an_array),
      cmocka_unit_test(other_orders_stay_two),
      cmocka_unit_test(a_table_in_the_region_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
