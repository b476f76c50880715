// Which ops the compilers of chips make one kernel, and what these read and write, by hand. What
// only compilers for GPUs do: test_gpu_fusions.c.
#include "tests/unit/chip/fusion_samples.h"

static void siblings_read_what_they_share_once(void **state) {
  (void)state;
  static const char text[] =
      "func.func @main(%x: " M ") -> (" V ", " V ") {\n" ZERO REDUCE("0", "x", "add")
          OP("1", "multiply %x, %x") REDUCE("2", "1", "add") "return %0, %2 : " V ", " V "\n}\n";
  expect(TPU, text, 1, SIZE + 2 * ROWS * 4);
  expect(GPU, text, 1, SIZE + 2 * ROWS * 4);
}

// The sum of labels goes with the sum of exponentials, not with the maximum before it.
static void a_sum_of_labels_waits_for_the_maximum(void **state) {
  (void)state;
  static const char text[] =
      "func.func @main(%x: " M ", %y: " M ") -> (" V ", " V ") {\n" ZERO REDUCE("0", "x", "maximum")
          SPREAD("1", "0") OP("2", "subtract %x, %1") OP("3", "exponential %2")
              REDUCE("4", "3", "add") OP("5", "multiply %x, %y")
                  REDUCE("6", "5", "add") "return %4, %6 : " V ", " V "\n}\n";
  const mp_chip_figures_t figures = figures_of(TPU);
  found_t f = find_with(&figures, text);
  uint32_t num_maxima = 0;
  for (uint32_t i = 0; i < f.fusions.fusions.count; ++i) {
    num_maxima += f.fusions.fusions.items[i].num_reads == 1;
  }
  assert_int_equal(count_fusions(&f), 2);
  assert_int_equal(num_maxima, 1);
  find_end(&f);
}

// The second one needs the first one.
static void a_variance_reads_its_array_twice(void **state) {
  (void)state;
  static const char text[] = "func.func @main(%x: " M ") -> " V " {\n" ZERO REDUCE("0", "x", "add")
      SPREAD("1", "0") OP("2", "subtract %x, %1") OP("3", "multiply %2, %2")
          REDUCE("4", "3", "add") "return %4 : " V "\n}\n";
  expect(TPU, text, 2, 2.0 * (SIZE + ROWS * 4) + ROWS * 4);
  expect(GPU, text, 1, SIZE + ROWS * 4);
}

// On TPUs the sums of rows of one matrix are a row themselves, and it is read three times: for the
// maximum, the sum, and the result. So are longer rows of several.
static void a_softmax_keeps_its_rows(void **state) {
  (void)state;
  static const char matrix[] =
      "func.func @main(%x: " M ") -> " M " {\n" ZERO REDUCE("0", "x", "maximum") SPREAD("1", "0")
          OP("2", "subtract %x, %1") OP("3", "exponential %2") REDUCE("4", "3", "add")
              SPREAD("5", "4") OP("6", "divide %3, %5") "return %6 : " M "\n}\n";
  static const char several[] =
      "func.func @main(%x: " SCORES ") -> " SCORES " {\n" ZERO SCORES_REDUCE("0", "x", "maximum")
          SCORES_SPREAD("1", "0") SCORES_OP("2", "subtract %x, %1") SCORES_OP("3", "exponential %2")
              SCORES_REDUCE("4", "3", "add") SCORES_SPREAD("5", "4")
                  SCORES_OP("6", "divide %3, %5") "return %6 : " SCORES "\n}\n";
  expect(TPU, matrix, 3, 4.0 * SIZE + 5.0 * ROWS * 4);
  expect(GPU, matrix, 1, 2.0 * SIZE);
  expect(TPU, several, 1, 4.0 * SIZE);
  mp_chip_figures_t figures = figures_of(TPU);
  figures.fusion_row = COLUMNS - 1;
  found_t f = find_with(&figures, several);
  assert_int_equal(count_fusions(&f), 3);
  assert_float_equal(sum_bytes(&f), 8.0 * SIZE + 10.0 * ROWS * 4, 1e-3);
  find_end(&f);
}

// Rows that are short enough are gone through in the kernel that makes them by a matmul: the
// maximum, the exponentials, which are written, and their sum. The quotient reads them.
static void a_matmul_keeps_its_short_rows(void **state) {
  (void)state;
  static const char text[] =
      "func.func @main(%a: tensor<2x256x128xf32>, %b: tensor<2x128x1024xf32>) -> (" SCORES
      ", " SCORE_SUMS ") {\n" ZERO
      "%x = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1] "
      ": (tensor<2x256x128xf32>, tensor<2x128x1024xf32>) -> " SCORES
      "\n" SCORES_REDUCE("0", "x", "maximum") SCORES_SPREAD("1", "0")
          SCORES_OP("2", "subtract %x, %1") SCORES_OP("3", "exponential %2")
              SCORES_REDUCE("4", "3", "add") "return %3, %4 : " SCORES ", " SCORE_SUMS "\n}\n";
  const double factors = 2 * (256 * 128 + 128 * 1024) * 4;
  mp_chip_figures_t figures = figures_of(TPU);
  figures.fusion_matmul_row = COLUMNS;
  found_t f = find_with(&figures, text);
  assert_int_equal(count_fusions(&f), 1);
  assert_float_equal(sum_bytes(&f), factors + 2.0 * (SIZE + ROWS * 4), 1e-3);
  find_end(&f);
  figures.fusion_matmul_row = COLUMNS - 1;
  f = find_with(&figures, text);
  assert_int_equal(count_fusions(&f), 2);
  assert_float_equal(sum_bytes(&f), factors + 2.0 * (3.0 * SIZE + ROWS * 4), 1e-3);
  find_end(&f);
}

// The rows may be widened from the matmul's own type, and scaled, on their way. If heads fill the
// lanes, the figure for these decides.
static void rows_of_a_matmul_may_be_widened(void **state) {
  (void)state;
#define ATTENTION(queries, keys, batch, summed)                                               \
  "func.func @main(%a: " queries ", %b: " keys ") -> (" SCORES ", " SCORE_SUMS ") {\n" ZERO   \
  "%s = stablehlo.dot_general %a, %b, batching_dims = " batch ", contracting_dims = " summed  \
  " : (" queries ", " keys                                                                    \
  ") -> tensor<2x256x1024xbf16>\n"                                                            \
  "%w = stablehlo.convert %s : (tensor<2x256x1024xbf16>) -> " SCORES                          \
  "\n"                                                                                        \
  "%x = stablehlo.multiply %w, %w : " SCORES "\n" SCORES_REDUCE(                              \
      "0", "x", "maximum") "%1 = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (" SCORE_SUMS \
                           ") -> " SCORES                                                     \
                           "\n"                                                               \
                           "%2 = stablehlo.subtract %x, %1 : " SCORES                         \
                           "\n%3 = stablehlo.exponential %2 : " SCORES                        \
                           "\n" SCORES_REDUCE("4", "3", "add") "return %3, %4 : " SCORES      \
                                                               ", " SCORE_SUMS "\n}\n"
  static const char apart[] =
      ATTENTION("tensor<2x256x128xbf16>", "tensor<2x1024x128xbf16>", "[0] x [0]", "[2] x [2]");
  static const char narrow[] =
      ATTENTION("tensor<256x2x64xbf16>", "tensor<1024x2x64xbf16>", "[1] x [1]", "[2] x [2]");
  static const char mixed[] =
      ATTENTION("tensor<256x2x128xbf16>", "tensor<1024x2x128xbf16>", "[1] x [1]", "[2] x [2]");
  mp_chip_figures_t figures = figures_of(TPU);
  figures.fusion_matmul_row = COLUMNS;
  const char *const texts[] = {apart, narrow, mixed};
  for (uint32_t i = 0; i < 3; ++i) {
    figures.fusion_mixed_row = COLUMNS;
    found_t f = find_with(&figures, texts[i]);
    assert_int_equal(count_fusions(&f), 1);
    find_end(&f);
    figures.fusion_mixed_row = COLUMNS / 2;
    f = find_with(&figures, texts[i]);
    assert_int_equal(count_fusions(&f), texts[i] == narrow ? 1 : 2);
    find_end(&f);
  }
}

static uint32_t count_chained(const found_t *f) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < f->fusions.fusions.count; ++i) {
    count += f->fusions.fusions.items[i].inner.batch > 0;
  }
  return count;
}

#define CHAIN(m, k, h, n, results, returned)                                                  \
  "func.func @main(%a: tensor<" m "x" k "xbf16>, %b: tensor<" k "x" h "xbf16>, %c: tensor<" h \
  "x" n "xbf16>) -> " results                                                                 \
  " {\n"                                                                                      \
  "%0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<" m "x" k        \
  "xbf16>, tensor<" k "x" h "xbf16>) -> tensor<" m "x" h                                      \
  "xbf16>\n"                                                                                  \
  "%1 = stablehlo.tanh %0 : tensor<" m "x" h                                                  \
  "xbf16>\n"                                                                                  \
  "%2 = stablehlo.dot_general %1, %c, contracting_dims = [1] x [0] : (tensor<" m "x" h        \
  "xbf16>, tensor<" h "x" n "xbf16>) -> tensor<" m "x" n                                      \
  "xbf16>\n"                                                                                  \
  "return " returned " : " results "\n}\n"

// A matmul of which another one makes a factor reads that one's factors, where these are small.
static void small_matmuls_are_chained(void **state) {
  (void)state;
  const mp_chip_figures_t figures = figures_of(TPU);
  found_t f =
      find_with(&figures, CHAIN("4096", "2048", "16", "2048", "tensor<4096x2048xbf16>", "%2"));
  assert_int_equal(count_fusions(&f), 1);
  assert_int_equal(count_chained(&f), 1);
  // A row of 16 and a column of 16 are as narrow tiles are.
  assert_float_equal(sum_bytes(&f), 2.0 * (2 * 4096 * 2048 + 2 * 16 * 2048), 1e-3);
  const mp_chip_fusion_t *fusion = &f.fusions.fusions.items[0];
  const mp_chip_fusion_access_t *reads = mp_chip_fusion_accesses(&f.fusions, fusion);
  uint32_t inner = 0;
  for (uint32_t i = 0; i < fusion->num_reads; ++i) {
    inner +=
        reads[i].sides == MP_CHIP_FUSION_INNER_LHS || reads[i].sides == MP_CHIP_FUSION_INNER_RHS;
  }
  assert_int_equal(inner, 2);
  find_end(&f);
  // What both need at hand is too much; or somebody else reads what is between.
  f = find_with(&figures, CHAIN("4096", "1024", "4096", "1024", "tensor<4096x1024xbf16>", "%2"));
  assert_int_equal(count_chained(&f), 0);
  find_end(&f);
  f = find_with(&figures,
                "func.func @main(%a: tensor<64x64xbf16>) -> (tensor<64x64xbf16>, "
                "tensor<64x64xbf16>) {\n"
                "%0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] : "
                "(tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>\n"
                "%1 = stablehlo.dot_general %0, %a, contracting_dims = [1] x [0] : "
                "(tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>\n"
                "return %0, %1 : tensor<64x64xbf16>, tensor<64x64xbf16>\n}\n");
  assert_int_equal(count_chained(&f), 0);
  find_end(&f);
  const mp_chip_figures_t others = figures_of(GPU);
  f = find_with(&others, CHAIN("4096", "2048", "16", "2048", "tensor<4096x2048xbf16>", "%2"));
  assert_int_equal(count_chained(&f), 0);
  find_end(&f);
}

// The maximum of what was widened is widened afterwards; it is then no pattern that keeps rows.
static void a_widened_softmax_is_three_kernels(void **state) {
  (void)state;
  static const char text[] =
      "func.func @main(%y: tensor<256x1024xbf16>) -> " M " {\n" ZERO
      "%x = stablehlo.convert %y : (tensor<256x1024xbf16>) -> " M "\n" REDUCE("0", "x", "maximum")
          SPREAD("1", "0") OP("2", "subtract %x, %1") OP("3", "exponential %2")
              REDUCE("4", "3", "add") SPREAD("5", "4") OP("6", "divide %3, %5") "return %6 : " M
                                                                                "\n}\n";
  expect(TPU, text, 3, 3.0 * SIZE / 2 + SIZE + 5.0 * ROWS * 4);
  expect(GPU, text, 1, 1.5 * SIZE);
}

// What a reversal reads is in memory.
static void a_reversal_is_a_kernel(void **state) {
  (void)state;
  static const char text[] = "func.func @main(%x: " M ") -> " M " {\n" OP(
      "0", "negate %x") "%1 = stablehlo.reverse %0, dims = [0] : " M "\nreturn %1 : " M "\n}\n";
  expect(TPU, text, 2, 4.0 * SIZE);
  expect(GPU, text, 1, 2.0 * SIZE);
}

// An inverse root for each row is made once and not for each element.
static void expensive_values_are_not_broadcast(void **state) {
  (void)state;
  static const char text[] =
      "func.func @main(%x: " M ", %v: " V ") -> " M " {\n%0 = stablehlo.rsqrt %v : " V
      "\n" SPREAD("1", "0") OP("2", "multiply %x, %1") "return %2 : " M "\n}\n";
  expect(TPU, text, 2, 2.0 * SIZE + 3.0 * ROWS * 4);
}

static void a_matmul_takes_what_is_around_it(void **state) {
  (void)state;
  static const char text[] =
      "func.func @main(%x: " M ", %y: " M ", %r: " S ") -> (" S ", " S ") {\n" OP("0", "negate %x")
          DOT("1", "0", "y") "%2 = stablehlo.add %1, %r : " S "\n%3 = stablehlo.logistic %2 : " S
                             "\nreturn %2, %3 : " S ", " S "\n}\n";
  expect(TPU, text, 1, 2.0 * SIZE + 3 * SQUARE);
  // Libraries do the matmul alone.
  expect(GPU, text, 3, 2.0 * SIZE + 2.0 * SIZE + SQUARE + 4 * SQUARE);
}

// What SparseCores look something up in is written to memory, whatever room VMEM has.
static void a_table_of_sparse_cores_lies_in_memory(void **state) {
  (void)state;
  static const char text[] =
      "func.func @main(%x: " M ", %i: tensor<16x1xi32>) -> (" V
      ", tensor<16x1024xf32>) {\n" ZERO OP("0", "tanh %x") REDUCE("1", "0", "add")
      "%2 = \"stablehlo.gather\"(%0, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], "
      "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, "
      "slice_sizes = array<i64: 1, 1024>, indices_are_sorted = false}> : (" M
      ", tensor<16x1xi32>) -> tensor<16x1024xf32>\n"
      "return %1, %2 : " V ", tensor<16x1024xf32>\n}\n";
  const double rows = 16.0 * COLUMNS * 4;
  mp_chip_figures_t figures = figures_of(TPU);
  figures.memory_scratch = 1 << 30;
  found_t f = find_with(&figures, text);
  const double near = sum_bytes(&f);
  find_end(&f);
  figures.gather_apart = 8;
  f = find_with(&figures, text);
  assert_float_equal(sum_bytes(&f) - near, SIZE + rows, 1e-3);
  find_end(&f);
}

// A gate is another array, which no library multiplies with; one array may be added.
static void libraries_add_and_do_not_gate(void **state) {
  (void)state;
  static const char gate[] =
      "func.func @main(%x: " M ", %y: " M ", %r: " S ") -> " S
      " {\n" DOT("1", "x", "y") "%2 = stablehlo.logistic %r : " S
                                "\n%3 = stablehlo.multiply %1, %2 : " S "\nreturn %3 : " S "\n}\n";
  expect(GPU, gate, 2, 2.0 * SIZE + 4 * SQUARE);
  expect(TPU, gate, 1, 2.0 * SIZE + 2 * SQUARE);
  static const char sum[] = "func.func @main(%x: " M ", %y: " M ", %r: " S ") -> " S " {\n" DOT(
      "1", "x", "y") "%2 = stablehlo.add %1, %r : " S "\nreturn %2 : " S "\n}\n";
  expect(GPU, sum, 1, 2.0 * SIZE + 2 * SQUARE);
}

// The matmul of a loop that is needed in two places is written by the first one.
static void updates_of_a_weight_are_one_kernel(void **state) {
  (void)state;
  static const char text[] =
      "func.func @main(%p: " M ", %m: " M ", %g: " M ") -> (" M ", " M ") {\n" OP("0", "add %m, %g")
          OP("1", "sqrt %0") OP("2", "subtract %p, %1") "return %2, %0 : " M ", " M "\n}\n";
  expect(TPU, text, 1, 5.0 * SIZE);
  expect(GPU, text, 1, 5.0 * SIZE);
}

// Columns of one element lie in tiles along another dimension; a prime number of rows is padded.
static void arrays_lie_in_tiles(void **state) {
  (void)state;
  expect(TPU,
         "func.func @main(%x: tensor<1024x1xf32>) -> tensor<1024x1xf32> {\n"
         "%0 = stablehlo.negate %x : tensor<1024x1xf32>\nreturn %0 : tensor<1024x1xf32>\n}\n",
         1, 2.0 * 1024 * 4);
  static const char text[] =
      "func.func @main(%x: tensor<13x100xf32>) -> tensor<13x100xf32> {\n"
      "%0 = stablehlo.negate %x : tensor<13x100xf32>\nreturn %0 : tensor<13x100xf32>\n}\n";
  expect(TPU, text, 1, 2.0 * 16 * 128 * 4);
  expect(GPU, text, 1, 2.0 * 13 * 100 * 4);
}

static void small_values_stay_in_scratch_memory(void **state) {
  (void)state;
  // In three passes: for one the value would lie there in bf16.
  static const char text[] =
      "func.func @main(%x: " M ", %y: " M ") -> " S " {\n" DOT(
          "0", "x", "y") "%1 = stablehlo.dot_general %0, %0, contracting_dims = [1] x [0], "
                         "precision = [HIGH, HIGH] : (" S ", " S ") -> " S "\nreturn %1 : " S
                         "\n}\n";
  mp_chip_figures_t figures = figures_of(TPU);
  figures.memory_scratch = SQUARE;
  found_t f = find_with(&figures, text);
  assert_float_equal(sum_bytes(&f), 2.0 * SIZE + SQUARE, 1e-3);
  find_end(&f);
  figures.memory_scratch = SQUARE - 1;
  f = find_with(&figures, text);
  assert_float_equal(sum_bytes(&f), 2.0 * SIZE + 3 * SQUARE, 1e-3);
  find_end(&f);
  // Other compilers have no tiles, so a file of their chips that names VMEM changes nothing.
  figures = figures_of(GPU);
  figures.memory_scratch = SQUARE;
  f = find_with(&figures, text);
  assert_float_equal(sum_bytes(&f), 2.0 * SIZE + 3 * SQUARE, 1e-3);
  find_end(&f);
}

// What a sum of rows begins with is written to memory, where the result lies, though there is room.
static void what_is_updated_lies_in_memory(void **state) {
  (void)state;
  static const char text[] =
      "func.func @main(%i: tensor<8x1xi32>, %u: tensor<8x128xf32>) -> tensor<1024x128xf32> {\n" ZERO
      "%x = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<f32>) -> tensor<1024x128xf32>\n"
      "%0 = \"stablehlo.scatter\"(%x, %i, %u) <{indices_are_sorted = false, "
      "scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], "
      "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, "
      "unique_indices = false}> ({\n^bb0(%p: tensor<f32>, %q: tensor<f32>):\n%r = stablehlo.add "
      "%p, %q : tensor<f32>\nstablehlo.return %r : tensor<f32>\n}) : (tensor<1024x128xf32>, "
      "tensor<8x1xi32>, tensor<8x128xf32>) -> tensor<1024x128xf32>\n"
      "return %0 : tensor<1024x128xf32>\n}\n";
  mp_chip_figures_t figures = figures_of(TPU);
  found_t without = find_with(&figures, text);
  figures.memory_scratch = 1e9;
  found_t with = find_with(&figures, text);
  assert_true(sum_bytes(&without) >= 1024 * 128 * 4);
  assert_float_equal(sum_bytes(&with), sum_bytes(&without), 1e-3);
  find_end(&without);
  find_end(&with);
}

#define ONE_EACH(operand)                                                                        \
  "func.func @main(%x: tensor<64x1024xf32>, %i: tensor<64x1x1xi32>, %u: tensor<64x1xf32>) -> "   \
  "tensor<64x1024xf32> {\n" ZERO                                                                 \
  "%y = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<f32>) -> tensor<64x1024xf32>\n"       \
  "%0 = \"stablehlo.scatter\"(" operand                                                          \
  ", %i, %u) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<"      \
  "inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], " \
  "scatter_dims_to_operand_dims = [1], index_vector_dim = 2>, unique_indices = false}> ({\n"     \
  "^bb0(%p: tensor<f32>, %q: tensor<f32>):\n%r = stablehlo.add %p, %q : tensor<f32>\n"           \
  "stablehlo.return %r : tensor<f32>\n}) : (tensor<64x1024xf32>, tensor<64x1x1xi32>, "           \
  "tensor<64x1xf32>) -> tensor<64x1024xf32>\n"                                                   \
  "%1 = stablehlo.subtract %x, %0 : tensor<64x1024xf32>\nreturn %1 : tensor<64x1024xf32>\n}\n"

// The gradient of a look-up in each row is made where it is read, by comparing places.
static void one_element_of_each_row_is_a_selection(void **state) {
  (void)state;
  mp_chip_figures_t figures = figures_of(TPU);
  found_t found = find_with(&figures, ONE_EACH("%y"));
  assert_int_equal(found.fusions.fusions.count, 1);
  find_end(&found);
  found = find_with(&figures, ONE_EACH("%x"));
  assert_int_equal(found.fusions.fusions.count, 2);
  find_end(&found);
  figures = figures_of(GPU);
  found = find_with(&figures, ONE_EACH("%y"));
  assert_true(found.fusions.fusions.count > 1);
  find_end(&found);
}

// ---- matmuls and what they read ----

// What is computed in front of a factor belongs to it, and so does what that reads; a residual is
// beside the matmul.
static void what_a_matmul_reads_has_sides(void **state) {
  (void)state;
  static const char text[] =
      "func.func @main(%x: tensor<256x512xbf16>, %w: tensor<512x1024xf32>, "
      "%r: tensor<256x1024xbf16>) -> tensor<256x1024xbf16> {\n"
      "%0 = stablehlo.convert %w : (tensor<512x1024xf32>) -> tensor<512x1024xbf16>\n"
      "%1 = stablehlo.dot_general %x, %0, contracting_dims = [1] x [0] : (tensor<256x512xbf16>, "
      "tensor<512x1024xbf16>) -> tensor<256x1024xbf16>\n"
      "%2 = stablehlo.add %1, %r : tensor<256x1024xbf16>\nreturn %2 : tensor<256x1024xbf16>\n}\n";
  const mp_chip_figures_t figures = figures_of(TPU);
  found_t f = find_with(&figures, text);
  static const struct {
    double bytes;
    uint8_t sides;
  } reads[] = {{256 * 512 * 2, MP_CHIP_FUSION_LHS},
               {512 * 1024 * 4, MP_CHIP_FUSION_RHS},
               {256 * 1024 * 2, MP_CHIP_FUSION_BESIDE}};
  for (size_t i = 0; i < sizeof(reads) / sizeof(reads[0]); ++i) {
    uint32_t skip = 0;
    const mp_chip_fusion_access_t *access = read_of(&f, reads[i].bytes, &skip);
    assert_non_null(access);
    assert_int_equal(access->sides, reads[i].sides);
    assert_int_equal(access->space, MP_SPACE_HBM);
  }
  find_end(&f);
}

// ---- rows in parts ----

#define HEADS "tensor<512x128xf32>"
#define HALF  "tensor<512x64xf32>"
#define ROTATED(x)                                                                          \
  "%a = \"stablehlo.slice\"(%" x                                                            \
  ") <{start_indices = array<i64: 0, 0>, limit_indices = array<i64: 512, 64>, strides = "   \
  "array<i64: 1, 1>}> : (" HEADS ") -> " HALF "\n%b = \"stablehlo.slice\"(%" x              \
  ") <{start_indices = array<i64: 0, 64>, limit_indices = array<i64: 512, 128>, strides = " \
  "array<i64: 1, 1>}> : (" HEADS ") -> " HALF "\n%c = stablehlo.subtract %a, %b : " HALF    \
  "\n%d = stablehlo.add %a, %b : " HALF                                                     \
  "\n%e = \"stablehlo.concatenate\"(%c, %d) <{dimension = 1 : i64}> : (" HALF ", " HALF     \
  ") -> " HEADS "\n"

// The parts lie in the tiles of the whole, which are half empty then.
static void a_concatenation_reads_what_was_written(void **state) {
  (void)state;
  enum { BYTES = 512 * 128 * 4 };
  static const char text[] =
      "func.func @main(%x: " HEADS ") -> " HEADS " {\n" ROTATED("x") "return %e : " HEADS "\n}\n";
  expect(TPU, text, 2, (1 + 2 * 2 + 1) * BYTES);
  expect(GPU, text, 1, 2 * BYTES);
}

static void a_pad_reads_what_was_written(void **state) {
  (void)state;
  enum { BYTES = 512 * 128 * 4 };
  static const char text[] =
      "func.func @main(%x: " HEADS ") -> tensor<520x128xf32> {\n%y = stablehlo.negate %x : " HEADS
      "\n%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "%p = stablehlo.pad %y, %z, low = [8, 0], high = [0, 0], interior = "
      "[0, 0] : (" HEADS
      ", tensor<f32>) -> tensor<520x128xf32>\n"
      "return %p : tensor<520x128xf32>\n}\n";
  expect(TPU, text, 2, (3 + 520.0 / 512) * BYTES);
  expect(GPU, text, 1, (1 + 520.0 / 512) * BYTES);
}

// Halves of what is narrowed once it is put together are narrow, and stay in VMEM.
static void narrowed_parts_stay_in_scratch_memory(void **state) {
  (void)state;
  enum { BYTES = 512 * 128 * 4, NARROWED = BYTES / 4 };
  static const char text[] = "func.func @main(%x: " HEADS ") -> tensor<512x128xi8> {\n" ROTATED(
      "x") "%f = stablehlo.convert %e : (" HEADS
           ") -> tensor<512x128xi8>\nreturn %f : tensor<512x128xi8>\n}\n";
  expect(TPU, text, 2, BYTES + 2 * 2 * NARROWED + NARROWED);
  mp_chip_figures_t figures = figures_of(TPU);
  figures.memory_scratch = 2 * NARROWED;
  found_t f = find_with(&figures, text);
  assert_float_equal(sum_bytes(&f), BYTES + NARROWED, 1e-3);
  find_end(&f);
}

// What is computed is written before parts are cut out of it.
static void what_is_cut_is_written(void **state) {
  (void)state;
  enum { BYTES = 512 * 128 * 4 };
  static const char text[] =
      "func.func @main(%x: " HEADS ") -> " HEADS " {\n%y = stablehlo.exponential %x : " HEADS
      "\n" ROTATED("y") "return %e : " HEADS "\n}\n";
  expect(TPU, text, 3, (2 + 1 + 2 * 2 + 1) * BYTES);
  expect(GPU, text, 1, 2 * BYTES);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_concatenation_reads_what_was_written),
      cmocka_unit_test(a_pad_reads_what_was_written),
      cmocka_unit_test(narrowed_parts_stay_in_scratch_memory),
      cmocka_unit_test(what_is_cut_is_written),
      cmocka_unit_test(what_a_matmul_reads_has_sides),
      cmocka_unit_test(siblings_read_what_they_share_once),
      cmocka_unit_test(a_sum_of_labels_waits_for_the_maximum),
      cmocka_unit_test(a_variance_reads_its_array_twice),
      cmocka_unit_test(a_softmax_keeps_its_rows),
      cmocka_unit_test(a_matmul_keeps_its_short_rows),
      cmocka_unit_test(rows_of_a_matmul_may_be_widened),
      cmocka_unit_test(small_matmuls_are_chained),
      cmocka_unit_test(a_widened_softmax_is_three_kernels),
      cmocka_unit_test(a_reversal_is_a_kernel),
      cmocka_unit_test(expensive_values_are_not_broadcast),
      cmocka_unit_test(a_matmul_takes_what_is_around_it),
      cmocka_unit_test(a_table_of_sparse_cores_lies_in_memory),
      cmocka_unit_test(libraries_add_and_do_not_gate),
      cmocka_unit_test(updates_of_a_weight_are_one_kernel),
      cmocka_unit_test(arrays_lie_in_tiles),
      cmocka_unit_test(what_is_updated_lies_in_memory),
      cmocka_unit_test(one_element_of_each_row_is_a_selection),
      cmocka_unit_test(small_values_stay_in_scratch_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
