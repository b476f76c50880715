// Which ops a compiler for GPUs makes one kernel, by hand.
#include "tests/unit/chip/cluster_samples.h"

#define SOFTMAX                                                                  \
  ZERO REDUCE("m", "x", "maximum") SPREAD("ms", "m") OP("s", "subtract %x, %ms") \
      OP("e", "exponential %s") REDUCE("t", "e", "add")

// What is looked up is cut out of an array on the way, unless it is more than that part; but what a
// kernel makes that keeps rows at hand is written before.
static void a_table_is_cut_and_no_softmax(void **state) {
  (void)state;
#define LOOKUP(rows)                                                                           \
  "func.func @main(%t: tensor<2x256x1024xf32>, %i: tensor<" rows "x1xi32>) -> tensor<" rows    \
  "x1024xf32> {\n%0 = stablehlo.slice %t [1:2, 0:256, 0:1024] : (tensor<2x256x1024xf32>) -> "  \
  "tensor<1x256x1024xf32>\n%1 = stablehlo.reshape %0 : (tensor<1x256x1024xf32>) -> " M         \
  "\n%2 = \"stablehlo.gather\"(%1, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = " \
  "[1], "                                                                                      \
  "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = "   \
  "array<i64: 1, 1024>}> : (" M ", tensor<" rows "x1xi32>) -> tensor<" rows                    \
  "x1024xf32>\nreturn %2 : tensor<" rows "x1024xf32>\n}\n"
  expect(GPU, LOOKUP("16"), 1, 2.0 * 16 * COLUMNS * 4 + 16 * 4);
  expect(GPU, LOOKUP("512"), 2, 2.0 * SIZE + 3.0 * SIZE + 512 * 4);
#undef LOOKUP
  static const char own[] =
      "func.func @main(%x: " M ", %i: tensor<256x1xi32>) -> " V " {\n" SOFTMAX SPREAD("ts", "t")
          OP("p", "divide %e, %ts") "%2 = \"stablehlo.gather\"(%p, %i) <{dimension_numbers = "
      "#stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], "
      "start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 1>, "
      "slice_sizes = array<i64: 1, 1>}> : (" M ", tensor<256x1xi32>) -> " V "\nreturn %2 : " V
      "\n}\n";
  expect(GPU, own, 2, 2.0 * SIZE + 3.0 * ROWS * 4);
  // Of rows that are written no more is made by a kernel that keeps them. There is one of the array
  // less its maximum, with the sum of exponentials, one that squares this, one of the softmax, and
  // the lookup.
  static const char others[] =
      "func.func @main(%x: " M ", %i: tensor<256x1xi32>) -> (" M ", " V ", " V
      ") {\n" SOFTMAX SPREAD("ts", "t") OP("p", "divide %e, %ts") "%2 = \"stablehlo.gather\"(%p, %i) "
      "<{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = "
      "[0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 1>, "
      "slice_sizes = array<i64: 1, 1>}> : (" M ", tensor<256x1xi32>) -> " V
      "\n%3 = stablehlo.multiply %t, %t : " V "\nreturn %p, %2, %3 : " M ", " V ", " V "\n}\n";
  expect(GPU, others, 4, 4.0 * SIZE + 7.0 * ROWS * 4);
}

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

// The gradient of log_softmax: of an array that the kernel reads along with a softmax's rows the
// sum is taken there, too, where it meets them. Another array is not read for its sum alone.
static void sums_meet_rows(void **state) {
  (void)state;
#define GRADIENT(summed)                                                                 \
  "func.func @main(%x: " M ", %d: " M ", %o: " M ") -> " M                               \
  " {\n" SOFTMAX OP("n", "negate %" summed)                                              \
      REDUCE("u", "n", "add") "%v = stablehlo.divide %u, %t : " V "\n" SPREAD("vs", "v") \
          OP("a", "multiply %vs, %e") OP("g", "add %d, %a") "return %g : " M "\n}\n"
  expect(GPU, GRADIENT("d"), 1, 3.0 * SIZE);
  expect(GPU, GRADIENT("o"), 2, 4.0 * SIZE + 2 * ROWS * 4);
#undef GRADIENT
}

// A GPU of XLA's count with so many figures: three for each, and launches that cost nothing.
static mp_chip_figures_t figures_that_count(uint32_t members) {
  enum { LAUNCH = 1 };
  mp_chip_figures_t figures = figures_of(GPU);
  figures.cluster_again.count = members;
  for (uint32_t i = 0; i < members; ++i) figures.cluster_again.each[i] = 3;
  figures.cluster_again.each[LAUNCH] = 0;
  return figures;
}

// Of the gradient of a softmax, where the compiler counts cycles: exponentials that three kernels
// want. Where 120 cycles and what is done around them are longer than the memory takes for what is
// written and read (at 10 operations a byte), they are written, with the rows' maximum in their
// kernel, and each sum reads them; at 40 a byte each kernel makes them, so that all is one.
static void dear_work_is_written_where_memory_is_fast(void **state) {
  (void)state;
  enum { BALANCE = 0, EXPONENTIAL = 5, MEMBERS = 13 };
  static const char gradient[] =
      "func.func @main(%x: " M ", %d: " M ") -> " M " {\n" SOFTMAX SPREAD("ts", "t")
          OP("b", "divide %d, %ts") OP("a", "multiply %b, %e") REDUCE("u", "a", "add")
              SPREAD("us", "u") OP("c", "subtract %b, %us")
                  OP("g", "multiply %c, %e") "return %g : " M "\n}\n";
  mp_chip_figures_t figures = figures_that_count(MEMBERS);
  figures.cluster_again.each[EXPONENTIAL] = 120;
  figures.cluster_again.each[BALANCE] = 40;
  found_t f = find_with(&figures, gradient);
  assert_int_equal(count_clusters(&f), 1);
  find_end(&f);
  figures.cluster_again.each[BALANCE] = 10;
  f = find_with(&figures, gradient);
  assert_int_equal(count_clusters(&f), 4);
  assert_float_equal(sum_bytes(&f), (2.0 + 1 + 2 + 3) * SIZE + 5.0 * ROWS * 4, 1e-3);
  find_end(&f);
}

// The gradient of a layer norm: where the difference from a mean is made, another sum of rows is,
// too, if the kernel reads all that it sums up. Another array is not read for it.
static void sums_of_kept_values_meet_rows(void **state) {
  (void)state;
#define GRADIENT(other)                                                                  \
  "func.func @main(%x: " M ", %d: " M ", %e: " M ", %f: " M ") -> " M                    \
  " {\n" ZERO REDUCE("m", "x", "add") SPREAD("ms", "m") OP("y", "subtract %x, %ms")      \
      OP("t", "multiply %d, %e") OP("w", "multiply %d, %" other) REDUCE("u", "w", "add") \
          SPREAD("us", "u") OP("a", "add %y, %t") OP("g", "add %a, %us") "return %g : " M "\n}\n"
  expect(GPU, GRADIENT("e"), 1, 4.0 * SIZE);
  expect(GPU, GRADIENT("f"), 2, 6.0 * SIZE + 2.0 * ROWS * 4);
#undef GRADIENT
}

// Of few blocks of threads each asks for so much of the memory's bandwidth at most, and what is
// broadcast comes no faster. A sum of 256 rows for 1,024 columns has 16 blocks, of 32 threads that
// go through two columns each. Where 16 fill the memory's bandwidth, it makes what it sums up;
// where 64 do, that is written before: 2 arrays and 4 times one are fewer than 4 times two.
static void few_blocks_read_what_is_written(void **state) {
  (void)state;
  enum { BALANCE = 0, BLOCKS = 13, UNITS = 14, MEMBERS = 15 };
  static const char text[] =
      "func.func @main(%x: " M ", %v: " V ") -> tensor<1024xf32> {\n" ZERO SPREAD("w", "v")
          OP("a", "subtract %x, %w") "%r = stablehlo.reduce(%a init: %z) applies stablehlo.add "
      "across dimensions = [0] : (" M ", tensor<f32>) -> tensor<1024xf32>\n"
      "return %r : tensor<1024xf32>\n}\n";
  mp_chip_figures_t figures = figures_that_count(MEMBERS);
  figures.cluster_again.each[BALANCE] = 20;
  figures.cluster_again.each[BLOCKS] = figures.cluster_again.each[UNITS] = 16;
  found_t f = find_with(&figures, text);
  assert_int_equal(count_clusters(&f), 1);
  assert_float_equal(sum_bytes(&f), SIZE + ROWS * 4 + COLUMNS * 4, 1e-3);
  find_end(&f);
  figures.cluster_again.each[BLOCKS] = 64;
  f = find_with(&figures, text);
  assert_int_equal(count_clusters(&f), 2);
  assert_float_equal(sum_bytes(&f), 3.0 * SIZE + ROWS * 4 + COLUMNS * 4, 1e-3);
  find_end(&f);
}

// Blocks that fill the memory's bandwidth, and no more, read what is broadcast no faster than from
// memory. Of sums that read the same each counts, though they become one kernel: what both want is
// written where three numbers for each row go into it.
static void broadcasts_come_no_faster_than_blocks_ask(void **state) {
  (void)state;
  enum { BALANCE = 0, BLOCKS = 13, UNITS = 14, MEMBERS = 15 };
#define COLUMN_SUM(r, o)                                  \
  "%" r " = stablehlo.reduce(%" o                         \
  " init: %z) applies stablehlo.add across dimensions = " \
  "[0] : (" M ", tensor<f32>) -> tensor<1024xf32>\n"
  static const char text[] =
      "func.func @main(%x: " M ", %v: " V ") -> (tensor<1024xf32>, tensor<1024xf32>, " M
      ") {\n" ZERO SPREAD("w", "v") OP("a", "subtract %x, %w") OP("b", "multiply %a, %w") OP(
          "c", "maximum %b, %w") COLUMN_SUM("r", "c") OP("d", "multiply %c, %x")
          COLUMN_SUM("s", "d") OP("e", "negate %c") "return %r, %s, %e : tensor<1024xf32>, "
      "tensor<1024xf32>, " M "\n}\n";
#undef COLUMN_SUM
  mp_chip_figures_t figures = figures_that_count(MEMBERS);
  figures.cluster_again.each[BALANCE] = 2;
  figures.cluster_again.each[UNITS] = 16;
  figures.cluster_again.each[BLOCKS] = 1;
  found_t f = find_with(&figures, text);
  assert_int_equal(count_clusters(&f), 1);
  assert_float_equal(sum_bytes(&f), 2.0 * SIZE + ROWS * 4 + 2 * COLUMNS * 4, 1e-3);
  find_end(&f);
  figures.cluster_again.each[BLOCKS] = 16;
  f = find_with(&figures, text);
  assert_int_equal(count_clusters(&f), 2);
  assert_float_equal(sum_bytes(&f), 5.0 * SIZE + ROWS * 4 + 2 * COLUMNS * 4, 1e-3);
  find_end(&f);
}

// Behind a sum is nothing but what has one operand, where its results are many: pairs, here. Three
// elements each thread adds up by itself.
static void sums_end_in_ops_of_one_operand(void **state) {
  (void)state;
#define SUM(size, ops)                                                                         \
  "func.func @main(%x: tensor<256x1024x" size "xf32>) -> " M " {\n" ZERO                       \
  "%h = stablehlo.constant dense<0.5> : " M                                                    \
  "\n%r = stablehlo.reduce(%x init: %z) applies "                                              \
  "stablehlo.add across dimensions = [2] : (tensor<256x1024x" size "xf32>, tensor<f32>) -> " M \
  "\n" ops "return %e : " M "\n}\n"
#define SCALED OP("s", "multiply %r, %h") OP("e", "exponential %s")
  expect(GPU, SUM("2", OP("e", "exponential %r")), 1, 3.0 * SIZE);
  expect(GPU, SUM("2", SCALED), 2, 5.0 * SIZE);
  expect(GPU, SUM("3", SCALED), 1, 4.0 * SIZE);
#undef SCALED
#undef SUM
}

// A kernel that keeps rows has no other one beside it that reads the same array.
static void rows_have_no_siblings(void **state) {
  (void)state;
  static const char text[] = "func.func @main(%x: " M ") -> (" M ", " M ") {\n" SOFTMAX SPREAD(
      "ts", "t") OP("y", "divide %e, %ts") OP("n", "negate %x") "return %y, %n : " M ", " M "\n}\n";
  expect(GPU, text, 2, 4.0 * SIZE);
}

// So is what both ops of one kernel want, if they would be two without it.
static void dear_work_is_written_for_siblings(void **state) {
  (void)state;
  enum { BALANCE = 0, EXPONENTIAL = 5, MEMBERS = 13 };
  static const char text[] =
      "func.func @main(%x: " M ", %y: " M ") -> (" M ", " V ") {\n" ZERO OP("e", "exponential %x")
          REDUCE("s", "e", "add") OP("g", "multiply %e, %y") "return %g, %s : " M ", " V "\n}\n";
  mp_chip_figures_t figures = figures_that_count(MEMBERS);
  figures.cluster_again.each[EXPONENTIAL] = 120;
  figures.cluster_again.each[BALANCE] = 80;
  found_t f = find_with(&figures, text);
  assert_int_equal(count_clusters(&f), 1);
  assert_float_equal(sum_bytes(&f), 3.0 * SIZE + ROWS * 4, 1e-3);
  find_end(&f);
  figures.cluster_again.each[BALANCE] = 5;
  f = find_with(&figures, text);
  assert_int_equal(count_clusters(&f), 2);
  assert_float_equal(sum_bytes(&f), 5.0 * SIZE + ROWS * 4, 1e-3);
  find_end(&f);
}

// Rows of which elements come from anywhere are written before.
static void what_is_looked_up_is_no_row(void **state) {
  (void)state;
  static const char text[] =
      "func.func @main(%t: tensor<4096x1024xf32>, %i: tensor<256x1xi32>) -> " M " {\n" ZERO
      "%x = \"stablehlo.gather\"(%t, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = "
      "[1], "
      "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, "
      "indices_are_sorted = false, slice_sizes = array<i64: 1, 1024>}> : (tensor<4096x1024xf32>, "
      "tensor<256x1xi32>) -> " M "\n" REDUCE("1", "x", "add") SPREAD("2", "1")
          OP("3", "subtract %x, %2") "return %3 : " M "\n}\n";
  expect(GPU, text, 2, 4.0 * SIZE + ROWS * 4);
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

// Pages of a cache: scores are summed up along what lies side by side, as it is found. Values are
// not, and are written before.
static void what_is_found_is_turned_for_a_sum(void **state) {
  (void)state;
  enum { PAGES = 4 * 256 * 128 * 4, SCORES_SIZE = 4 * 256 * 4, HEAD = 4 * 128 * 4 };
#define FOUND(vector, summed, result)                                                              \
  "func.func @main(%p: " vector ", %t: tensor<65536x128xf32>, %i: tensor<4x256x1xi32>) -> " result \
  " {\n%0 = \"stablehlo.gather\"(%t, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = "   \
  "[2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = "  \
  "array<i64: 1, 128>}> : (tensor<65536x128xf32>, tensor<4x256x1xi32>) -> tensor<4x256x128xf32>"   \
  "\n%1 = stablehlo.dot_general %p, %0, batching_dims = [0] x [0], contracting_dims = [1] x "      \
  "[" summed "] : (" vector ", tensor<4x256x128xf32>) -> " result "\nreturn %1 : " result "\n}\n"
  expect(GPU, FOUND("tensor<4x128xf32>", "2", "tensor<4x256xf32>"), 1,
         1.0 * PAGES + 2 * SCORES_SIZE + HEAD);
  expect(GPU, FOUND("tensor<4x256xf32>", "1", "tensor<4x128xf32>"), 2,
         3.0 * PAGES + 2 * SCORES_SIZE + HEAD);
#undef FOUND
  // A bag of eight words.
  static const char bag[] =
      "func.func @main(%p: tensor<128x8xf32>, %t: tensor<4096x128xf32>, %i: tensor<128x8x1xi32>) "
      "-> "
      "tensor<128x128xf32> {\n%0 = \"stablehlo.gather\"(%t, %i) <{dimension_numbers = "
      "#stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], "
      "index_vector_dim = 2>, slice_sizes = array<i64: 1, 128>}> : (tensor<4096x128xf32>, "
      "tensor<128x8x1xi32>) -> tensor<128x8x128xf32>\n%1 = stablehlo.dot_general %p, %0, "
      "batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<128x8xf32>, "
      "tensor<128x8x128xf32>) -> tensor<128x128xf32>\nreturn %1 : tensor<128x128xf32>\n}\n";
  expect(GPU, bag, 1, (128.0 * 8 * 128 + 128 * 8 * 2 + 128 * 128) * 4);
}

// What a maximum of rows comes back to is written for the kernel that adds up columns, and made
// once more by the one that goes on with the rows.
static void others_get_sums_of_rows(void **state) {
  (void)state;
  enum { COUNT = 1024 * 256 };
  static const char text[] =
      "func.func @main(%x: tensor<1024x256xbf16>) -> (tensor<1024xf32>, tensor<256xf32>) {\n"
      "%l = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
      "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "%w = stablehlo.convert %x : (tensor<1024x256xbf16>) -> tensor<1024x256xf32>\n"
      "%0 = stablehlo.reduce(%w init: %l) applies stablehlo.maximum across dimensions = [1] : "
      "(tensor<1024x256xf32>, tensor<f32>) -> tensor<1024xf32>\n"
      "%1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<1024xf32>) -> "
      "tensor<1024x256xf32>\n%2 = stablehlo.subtract %w, %1 : tensor<1024x256xf32>\n"
      "%4 = stablehlo.reduce(%2 init: %z) applies stablehlo.add across dimensions = [0] : "
      "(tensor<1024x256xf32>, tensor<f32>) -> tensor<256xf32>\n"
      "%3 = stablehlo.exponential %2 : tensor<1024x256xf32>\n"
      "%5 = stablehlo.reduce(%3 init: %z) applies stablehlo.add across dimensions = [1] : "
      "(tensor<1024x256xf32>, tensor<f32>) -> tensor<1024xf32>\n"
      "return %5, %4 : tensor<1024xf32>, tensor<256xf32>\n}\n";
  expect(GPU, text, 3, (2 + 4 + 4 + 2) * 1.0 * COUNT + 1024 * 4 + 256 * 4);
}

// What adds up columns makes nothing that rows have to be at hand for: a softmax is written before,
// but a norm's rows, whose sum comes back to something else than was summed up, are made there.
static void columns_are_summed_of_written_rows(void **state) {
  (void)state;
#define COLUMNS(value)                                                                             \
  "%r = stablehlo.reduce(%" value " init: %z) applies stablehlo.add across dimensions = [0] : (" M \
  ", tensor<f32>) -> tensor<1024xf32>\nreturn %r : tensor<1024xf32>\n}\n"
  expect(GPU,
         "func.func @main(%x: " M ") -> tensor<1024xf32> {\n" SOFTMAX SPREAD("ts", "t")
             OP("p", "divide %e, %ts") COLUMNS("p"),
         2, 3.0 * SIZE + 1024 * 4);
  expect(GPU,
         "func.func @main(%x: " M ", %d: " M
         ") -> tensor<1024xf32> {\n" ZERO OP("a", "multiply %x, %d") REDUCE("s", "a", "add")
             SPREAD("ss", "s") OP("p", "multiply %x, %ss") COLUMNS("p"),
         2, 3.0 * SIZE + 2 * ROWS * 4 + 1024 * 4);
  // What main returns is written by the kernel with the rows, after all that is done with them.
  expect(GPU,
         "func.func @main(%x: " M ", %g: " M ") -> (" M ", tensor<1024xf32>) {\n" SOFTMAX
             SPREAD("ts", "t") OP("p", "divide %e, %ts") OP("q", "multiply %p, %g")
         "%r = stablehlo.reduce(%q init: %z) applies stablehlo.add across dimensions = [0] : (" M
         ", tensor<f32>) -> tensor<1024xf32>\nreturn %q, %r : " M ", tensor<1024xf32>\n}\n",
         2, 4.0 * SIZE + 1024 * 4);
#undef COLUMNS
}

// Rows are kept by a kernel that writes them whole, and copied to their place then.
static void rows_are_written_before_an_update(void **state) {
  (void)state;
  enum { BYTES = 1024 * 256 * 4 };
  static const char text[] =
      "func.func @main(%x: tensor<1024x256xf32>, %s: tensor<4096x256xf32>, %i: tensor<i32>) -> "
      "tensor<4096x256xf32> {\n%c0 = stablehlo.constant dense<0> : tensor<i32>\n"
      "%l = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
      "%0 = stablehlo.reduce(%x init: %l) applies stablehlo.maximum across dimensions = [1] : "
      "(tensor<1024x256xf32>, tensor<f32>) -> tensor<1024xf32>\n"
      "%1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<1024xf32>) -> "
      "tensor<1024x256xf32>\n%2 = stablehlo.subtract %x, %1 : tensor<1024x256xf32>\n"
      "%3 = stablehlo.exponential %2 : tensor<1024x256xf32>\n"
      "%4 = stablehlo.dynamic_update_slice %s, %3, %i, %c0 : (tensor<4096x256xf32>, "
      "tensor<1024x256xf32>, tensor<i32>, tensor<i32>) -> tensor<4096x256xf32>\n"
      "return %4 : tensor<4096x256xf32>\n}\n";
  expect(GPU, text, 2, 4.0 * BYTES + 4);
}

// What is summed up cumulatively is made before, if it is dear or made of several arrays.
static void cumulative_ops_read_expensive_values(void **state) {
  (void)state;
  enum { BYTES = 64 * 1024 * 4 };
#define CUMULATIVE(op)                                                                 \
  "func.func @main(%x: tensor<64x1024xf32>) -> tensor<64x1024xf32> {\n"                \
  "%z = stablehlo.constant dense<0.0> : tensor<f32>\n%0 = stablehlo." op               \
  " %x : tensor<64x1024xf32>\n%1 = \"stablehlo.reduce_window\"(%0, %z) ({\n"           \
  "^bb0(%a: tensor<f32>, %b: tensor<f32>):\n%s = stablehlo.add %a, %b : tensor<f32>\n" \
  "stablehlo.return %s : tensor<f32>\n}) {window_dimensions = array<i64: 1, 1024>, "   \
  "padding = dense<[[0, 0], [1023, 0]]> : tensor<2x2xi64>} : "                         \
  "(tensor<64x1024xf32>, tensor<f32>) -> tensor<64x1024xf32>\nreturn %1 : "            \
  "tensor<64x1024xf32>\n}\n"
  expect(GPU, CUMULATIVE("negate"), 1, 2.0 * BYTES);
  expect(GPU, CUMULATIVE("exponential"), 2, 4.0 * BYTES);
}

static void neighbours_are_read_before_an_update(void **state) {
  (void)state;
  enum { INNER_BYTES = 254 * 1024 * 4 };
  static const char text[] = "func.func @main(%x: " GRID ") -> " GRID " {\n" PART("a", "0", "254")
      PART("b", "2", "256") "%c = stablehlo.add %a, %b : " INNER
                            "\n%0 = stablehlo.constant dense<0> : tensor<i32>\n"
                            "%1 = stablehlo.constant dense<1> : tensor<i32>\n"
                            "%r = stablehlo.dynamic_update_slice %x, %c, %1, %0 : (" GRID ", " INNER
                            ", tensor<i32>, tensor<i32>) -> " GRID "\nreturn %r : " GRID "\n}\n";
  expect(GPU, text, 2, SIZE + 3.0 * INNER_BYTES);
}

// Of the ops that read one neighbour each the last one is in the update's kernel, and its neighbour
// is written; the other one has a kernel of its own, with its neighbour.
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

// Loops of as many elements that read the same vector are one kernel, but not those that share a
// number, or parts of an array.
static void loops_that_share_an_array_are_one(void **state) {
  (void)state;
  static const char vector[] =
      "func.func @main(%x: " M ", %y: " M ", %v: " V ") -> (" M ", " M ") {\n" SPREAD("0", "v")
          OP("1", "multiply %x, %0") OP("2", "add %y, %0") "return %1, %2 : " M ", " M "\n}\n";
  expect(GPU, vector, 1, 4.0 * SIZE + ROWS * 4);
  expect(TPU, vector, 2, 4.0 * SIZE + 2 * ROWS * 4);
  static const char number[] =
      "func.func @main(%x: " M ", %y: " M ", %v: tensor<f32>) -> (" M ", " M
      ") {\n"
      "%0 = stablehlo.broadcast_in_dim %v, dims = [] : (tensor<f32>) -> " M
      "\n" OP("1", "multiply %x, %0") OP("2", "add %y, %0") "return %1, %2 : " M ", " M "\n}\n";
  expect(GPU, number, 2, 4.0 * SIZE + 2 * 4);
  static const char parts[] =
      "func.func @main(%x: " GRID ") -> (" INNER ", " INNER ") {\n" PART("a", "0", "254")
          PART("b", "2", "256") "%0 = stablehlo.sine %a : " INNER
                                "\n%1 = stablehlo.cosine %b : " INNER "\nreturn %0, %1 : " INNER
                                ", " INNER "\n}\n";
  const mp_chip_figures_t figures = figures_of(GPU);
  found_t f = find_with(&figures, parts);
  assert_int_equal(count_clusters(&f), 2);
  find_end(&f);
}

// The variance of rows, which two kernels go through again: where cycles are cheap beside bytes
// each makes it, where they are dear it is written by one more.
static void sums_are_made_again_where_work_is_cheap(void **state) {
  (void)state;
  enum { BALANCE = 0, MEMBERS = 13 };
  static const char text[] =
      "func.func @main(%x: " M ", %d: " M ") -> (" M ", tensor<1024xf32>) {\n" ZERO
          REDUCE("m", "x", "add") SPREAD("ms", "m") OP("c", "subtract %x, %ms")
              OP("q", "multiply %c, %c") REDUCE("v", "q", "add") SPREAD("vs", "v")
                  OP("p", "multiply %c, %vs") OP("a", "multiply %p, %d")
      "%r = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0] : (" M
      ", tensor<f32>) -> tensor<1024xf32>\n" OP("b", "multiply %d, %vs")
          REDUCE("u", "b", "add") SPREAD("us", "u") OP("g", "subtract %b, %us")
      "return %g, %r : " M ", tensor<1024xf32>\n}\n";
  mp_chip_figures_t figures = figures_that_count(MEMBERS);
  figures.cluster_again.each[BALANCE] = 40;
  found_t f = find_with(&figures, text);
  const uint32_t made_again = count_clusters(&f);
  find_end(&f);
  figures.cluster_again.each[BALANCE] = 1;
  f = find_with(&figures, text);
  assert_int_equal(count_clusters(&f), made_again + 1);
  find_end(&f);
}

// What a dear op makes of 256 numbers is broadcast to rows of 1,024: where that is 100 cycles for
// each element, it is made once and written, where cycles are cheap beside bytes in the kernel that
// reads it. So it is with what two parts of a concatenation want, each of which makes it.
static void dear_work_is_not_made_for_each_element(void **state) {
  (void)state;
  enum { BALANCE = 0, SINE = 10, TANH = 9, MEMBERS = 13 };
  static const char rows[] =
      "func.func @main(%x: " M ", %v: " V ") -> " M " {\n%s = stablehlo.sine %v : " V
      "\n" SPREAD("w", "s") OP("y", "multiply %x, %w") "return %y : " M "\n}\n";
  static const char halves[] =
      "func.func @main(%x: " M ") -> tensor<256x2048xf32> {\n" OP("t", "tanh %x")
          OP("a", "multiply %t, %x")
              OP("b", "add %t, %x") "%c = stablehlo.concatenate %a, %b, dim = 1 : (" M ", " M
                                    ") -> tensor<256x2048xf32>\n"
                                    "return %c : tensor<256x2048xf32>\n}\n";
  mp_chip_figures_t figures = figures_that_count(MEMBERS);
  figures.cluster_again.each[BALANCE] = 20;
  figures.cluster_again.each[SINE] = figures.cluster_again.each[TANH] = 500;
  found_t f = find_with(&figures, rows);
  assert_int_equal(count_clusters(&f), 2);
  assert_float_equal(sum_bytes(&f), 2.0 * SIZE + 3 * ROWS * 4, 1e-3);
  find_end(&f);
  f = find_with(&figures, halves);
  assert_int_equal(count_clusters(&f), 2);
  assert_float_equal(sum_bytes(&f), 6.0 * SIZE, 1e-3);
  find_end(&f);
  figures.cluster_again.each[BALANCE] = 1e6;
  f = find_with(&figures, rows);
  assert_int_equal(count_clusters(&f), 1);
  find_end(&f);
  f = find_with(&figures, halves);
  assert_int_equal(count_clusters(&f), 1);
  find_end(&f);
}

// A library of products has gelu behind a product, and no other tanh.
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

// What is looked up in rows that were looked up is found in their table.
static void lookups_of_lookups_are_one(void **state) {
  (void)state;
#define FIND(r, o, offset, dim, sizes, from, to)                                          \
  "%" r " = \"stablehlo.gather\"(%" o                                                     \
  ", %i) <{dimension_numbers = #stablehlo.gather<"                                        \
  "offset_dims = [" offset "], collapsed_slice_dims = [" dim "], start_index_map = [" dim \
  "], index_vector_dim = 1>, slice_sizes = array<i64: " sizes ">}> : (" from              \
  ", tensor<512x1xi32>) -> " to "\n"
  static const char twice[] =
      "func.func @main(%x: " M ", %i: tensor<512x1xi32>) -> tensor<512x512xf32> {\n" FIND(
          "a", "x", "1", "0", "1, 1024", M, "tensor<512x1024xf32>")
          FIND("b", "a", "0", "1", "512, 1", "tensor<512x1024xf32>", "tensor<512x512xf32>")
              "%y = stablehlo.negate %b : tensor<512x512xf32>\nreturn %y : tensor<512x512xf32>\n}\n";
  const mp_chip_figures_t figures = figures_of(GPU);
  found_t f = find_with(&figures, twice);
  assert_int_equal(count_clusters(&f), 1);
  find_end(&f);
#undef FIND
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lookups_of_lookups_are_one),
      cmocka_unit_test(numbers_are_no_kernels),
      cmocka_unit_test(sums_are_made_again_where_work_is_cheap),
      cmocka_unit_test(sums_follow_rows),
      cmocka_unit_test(sums_meet_rows),
      cmocka_unit_test(a_table_is_cut_and_no_softmax),
      cmocka_unit_test(what_is_looked_up_is_no_row),
      cmocka_unit_test(neighbours_are_read_before_an_update),
      cmocka_unit_test(one_neighbour_is_written_for_an_update),
      cmocka_unit_test(loops_that_share_an_array_are_one),
      cmocka_unit_test(others_get_sums_of_rows),
      cmocka_unit_test(what_is_found_is_turned_for_a_sum),
      cmocka_unit_test(columns_are_summed_of_written_rows),
      cmocka_unit_test(rows_are_written_before_an_update),
      cmocka_unit_test(cumulative_ops_read_expensive_values),
      cmocka_unit_test(vectors_by_small_matrices_are_sums),
      cmocka_unit_test(dear_work_is_written_where_memory_is_fast),
      cmocka_unit_test(sums_of_kept_values_meet_rows),
      cmocka_unit_test(few_blocks_read_what_is_written),
      cmocka_unit_test(broadcasts_come_no_faster_than_blocks_ask),
      cmocka_unit_test(sums_end_in_ops_of_one_operand),
      cmocka_unit_test(rows_have_no_siblings),
      cmocka_unit_test(dear_work_is_written_for_siblings),
      cmocka_unit_test(dear_work_is_not_made_for_each_element),
      cmocka_unit_test(tanh_alone_is_a_kernel),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
