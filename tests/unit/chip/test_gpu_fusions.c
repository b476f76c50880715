// Which ops a compiler for GPUs makes one kernel, by hand.
#include "tests/unit/chip/fusion_samples.h"

#define SOFTMAX                                                                  \
  ZERO REDUCE("m", "x", "maximum") SPREAD("ms", "m") OP("s", "subtract %x, %ms") \
      OP("e", "exponential %s") REDUCE("t", "e", "add")

// Where a maximum of rows comes back to them, what goes on with these is in its kernel, other sums
// of them, too.
static void sums_follow_rows(void **state) {
  (void)state;
  static const char gradient[] =
      "func.func @main(%x: " M ", %d: " M ") -> " M " {\n" SOFTMAX OP("a", "multiply %d, %e")
          REDUCE("u", "a", "add") SPREAD("ts", "t") SPREAD("us", "u") OP("b", "divide %d, %ts")
              OP("c", "subtract %b, %us") OP("g", "multiply %c, %e") "return %g : " M "\n}\n";
  expect(GPU, gradient, 1, 3.0 * SIZE);
}

// A kernel that keeps rows has no other one beside it that reads the same array.
static void rows_have_no_siblings(void **state) {
  (void)state;
  static const char text[] = "func.func @main(%x: " M ") -> (" M ", " M ") {\n" SOFTMAX SPREAD(
      "ts", "t") OP("y", "divide %e, %ts") OP("n", "negate %x") "return %y, %n : " M ", " M "\n}\n";
  expect(GPU, text, 2, 4.0 * SIZE);
}

#define GRID  "tensor<256x1024xf32>"
#define INNER "tensor<254x1024xf32>"
#define PART(r, from, to)                                                                 \
  "%" r " = \"stablehlo.slice\"(%x) <{start_indices = array<i64: " from                   \
  ", 0>, limit_indices = array<i64: " to ", 1024>, strides = array<i64: 1, 1>}> : (" GRID \
  ") -> " INNER "\n"

// What is made of neighbours is not written over them: they are read before.
// A vector by a small matrix is a sum that computes what it reads; by a large one it is the
// library's, which wants that in memory.
static void vectors_by_small_matrices_are_sums(void **state) {
  (void)state;
#define VECTOR(k, n)                                                                    \
  "func.func @main(%x: tensor<" k "xf32>, %w: tensor<" k "x" n "xf32>) -> tensor<" n    \
  "xf32> {\n%0 = stablehlo.negate %w : tensor<" k "x" n                                 \
  "xf32>\n%1 = stablehlo.dot_general %x, %0, contracting_dims = [0] x [0] : (tensor<" k \
  "xf32>, "                                                                             \
  "tensor<" k "x" n "xf32>) -> tensor<" n "xf32>\nreturn %1 : tensor<" n "xf32>\n}\n"
  expect(GPU, VECTOR("1024", "512"), 1, 4.0 * (1024 * 512 + 1024 + 512));
  expect(GPU, VECTOR("4096", "4096"), 2, 4.0 * (3 * 4096.0 * 4096 + 2 * 4096));
}

// Slices of the updated array are written before the update, whose kernel computes the rest.
static void one_neighbour_is_written_for_an_update(void **state) {
  (void)state;
  enum { INNER_BYTES = 254 * 1024 * 4 };
  static const char text[] =
      "func.func @main(%x: " GRID ") -> " GRID
      " {\n" PART("a", "0", "254") "%s = stablehlo.sine %a : " INNER "\n" PART(
          "b", "2", "256") "%t = stablehlo.cosine %b : " INNER
                           "\n%c = stablehlo.add %s, %t : " INNER
                           "\n%0 = stablehlo.constant dense<0> : tensor<i32>\n"
                           "%1 = stablehlo.constant dense<1> : tensor<i32>\n"
                           "%r = stablehlo.dynamic_update_slice %x, %c, %1, %0 : (" GRID ", " INNER
                           ", tensor<i32>, tensor<i32>) -> " GRID "\nreturn %r : " GRID "\n}\n";
  expect(GPU, text, 3, 7.0 * INNER_BYTES);
}

// A library of matmuls has gelu behind a matmul, and no other tanh.
static void tanh_alone_is_a_kernel(void **state) {
  (void)state;
#define ACTIVATED(ops)                                                         \
  "func.func @main(%x: " M ", %w: tensor<1024x1024xf32>) -> " M                \
  " {\n%d = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (" M  \
  ", tensor<1024x1024xf32>) -> " M "\n%h = stablehlo.constant dense<0.5> : " M \
  "\n%l = stablehlo.constant dense<1.0> : " M "\n" ops "return %y : " M "\n}\n"
  expect(GPU, ACTIVATED(OP("y", "tanh %d")), 2, 4.0 * SIZE + 4.0 * 1024 * 1024);
  expect(GPU,
         ACTIVATED(OP("a", "multiply %d, %d") OP("b", "multiply %a, %d") OP("c", "multiply %b, %h")
                       OP("e", "add %d, %c") OP("f", "multiply %e, %h") OP("t", "tanh %f")
                           OP("u", "add %t, %l") OP("v", "multiply %u, %h")
                               OP("y", "multiply %d, %v")),
         1, 2.0 * SIZE + 4.0 * 1024 * 1024);
#undef ACTIVATED
}

// The gradient of a mean is made of numbers that are known when XLA compiles: no kernel divides
// them. What main returns of them is written.
static void numbers_are_no_kernels(void **state) {
  (void)state;
#define MEAN(returned)                                                  \
  "func.func @main(%x: " M ") -> (" M                                   \
  ", tensor<f32>) {\n"                                                  \
  "%i = stablehlo.constant dense<1.0> : tensor<f32>\n"                  \
  "%n = stablehlo.constant dense<262144.0> : tensor<f32>\n"             \
  "%q = stablehlo.divide %i, %n : tensor<f32>\n"                        \
  "%k = stablehlo.exponential %q : tensor<f32>\n"                       \
  "%b = stablehlo.broadcast_in_dim %k, dims = [] : (tensor<f32>) -> " M \
  "\n" OP("y", "multiply %x, %b") "return %y, %" returned " : " M ", tensor<f32>\n}\n"
  expect(GPU, MEAN("n"), 1, 2.0 * SIZE);
  expect(TPU, MEAN("n"), 1, 2.0 * SIZE);
  expect(GPU, MEAN("q"), 2, 2.0 * SIZE + 4);
#undef MEAN
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(numbers_are_no_kernels),
      cmocka_unit_test(sums_follow_rows),
      cmocka_unit_test(one_neighbour_is_written_for_an_update),
      cmocka_unit_test(vectors_by_small_matrices_are_sums),
      cmocka_unit_test(rows_have_no_siblings),
      cmocka_unit_test(tanh_alone_is_a_kernel),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
