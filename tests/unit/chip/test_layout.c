// Layouts on TPUs: padding, reshapes that move nothing, what matmuls read, and the copies between.
#include "sim/chip/layout/layout_assign.h"
#include "tests/unit/chip/fusion_samples.h"

static const mp_type_t *tensor(const int64_t *dims, uint32_t rank) {
  static mp_type_t types[8];
  static uint32_t next;
  mp_type_t *type = &types[next++ % 8];
  *type = (mp_type_t){.kind = MP_TYPE_TENSOR, .dtype = MP_DTYPE_F32, .rank = rank, .dims = dims};
  return type;
}

static void the_compact_layout_pads_least(void **state) {
  (void)state;
  static const int64_t plain[] = {2048, 1024}, heads[] = {4096, 4, 16, 32}, narrow[] = {65536, 48};
  const mp_tile_layout_t a = mp_tile_layout_compact(tensor(plain, 2));
  assert_int_equal(a.lane, 1);
  assert_int_equal(a.sublane, 0);
  const mp_tile_layout_t b = mp_tile_layout_compact(tensor(heads, 4));
  assert_int_equal(b.lane, 0);
  assert_int_equal(b.sublane, 3);
  assert_int_equal(mp_tile_layout_compact(tensor(narrow, 2)).lane, 0);
  assert_float_equal(mp_tile_padding(tensor(narrow, 2), (mp_tile_layout_t){1, 0, false}),
                     128.0 / 48, 1e-9);
}

static void a_reshape_moves_nothing_if_tiles_stay_whole(void **state) {
  (void)state;
  static const int64_t flat[] = {4, 2048, 2048}, heads[] = {4, 2048, 16, 128},
                       odd[] = {4, 2048, 32, 64};
  const mp_tile_layout_t rows = {2, 1, false};
  mp_tile_layout_t out;
  assert_true(mp_tile_layout_reshape(tensor(flat, 3), tensor(heads, 4), rows, &out));
  assert_int_equal(out.lane, 3);
  assert_int_equal(out.sublane, 1);
  assert_false(out.is_split);
  assert_true(mp_tile_layout_reshape(tensor(heads, 4), tensor(flat, 3), out, &out));
  assert_true(mp_tile_layout_equal(out, rows));
  // Parts that fill no tile stay where they are, and are one dimension again afterwards.
  assert_true(mp_tile_layout_reshape(tensor(flat, 3), tensor(odd, 4), rows, &out));
  assert_true(out.is_split);
  assert_true(mp_tile_layout_reshape(tensor(odd, 4), tensor(flat, 3), out, &out));
  assert_true(mp_tile_layout_equal(out, rows));
}

// The copies of a program, by what needs them.
static uint32_t copies_of(const char *text) {
  const mp_chip_figures_t figures = figures_of(TPU);
  found_t f = find_with(&figures, text);
  const uint32_t count = f.fusions.layouts.copies.count;
  find_end(&f);
  return count;
}

#define BATCH "tensor<4096x16x32xf32>"

static void batches_in_the_lanes_are_copied(void **state) {
  (void)state;
  static const char small[] =
      "func.func @main(%a: " BATCH ", %b: " BATCH
      ") -> tensor<4096x16x16xf32> {\n"
      "%0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [2] "
      ": (" BATCH ", " BATCH ") -> tensor<4096x16x16xf32>\nreturn %0 : tensor<4096x16x16xf32>\n}\n";
  assert_int_equal(copies_of(small), 3);  // both operands, and the result
  static const char large[] =
      "func.func @main(%a: tensor<8x512x128xf32>, %b: tensor<8x512x128xf32>) -> "
      "tensor<8x512x512xf32> {\n"
      "%0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [2] "
      ": "
      "(tensor<8x512x128xf32>, tensor<8x512x128xf32>) -> tensor<8x512x512xf32>\n"
      "return %0 : tensor<8x512x512xf32>\n}\n";
  assert_int_equal(copies_of(large), 0);
}

// Vectors by small matrices are elementwise products, which take any layout.
static void vectors_by_small_matrices_take_batches_in_the_lanes(void **state) {
  (void)state;
#define VECTORS  "tensor<65536x8xf32>"
#define MATRICES "tensor<65536x8x8xf32>"
  static const char text[] =
      "func.func @main(%a: " VECTORS ", %b: " MATRICES ") -> " VECTORS
      " {\n"
      "%0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [1] x [1] "
      ": (" VECTORS ", " MATRICES ") -> " VECTORS "\nreturn %0 : " VECTORS "\n}\n";
  assert_int_equal(copies_of(text), 0);
#undef MATRICES
#undef VECTORS
}

// All readers of a block that need the same layout find the same copy.
static void readers_share_a_copy(void **state) {
  (void)state;
  static const char text[] =
      "func.func @main(%a: " BATCH ", %b: " BATCH ") -> (" BATCH ", tensor<4096x16x16xf32>, " BATCH
      ") {\n"
      "%0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [2] "
      ": (" BATCH ", " BATCH
      ") -> tensor<4096x16x16xf32>\n"
      "%1 = stablehlo.dot_general %0, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1] "
      ": (tensor<4096x16x16xf32>, " BATCH ") -> " BATCH "\nreturn %1, %0, %1 : " BATCH
      ", tensor<4096x16x16xf32>, " BATCH "\n}\n";
  const mp_chip_figures_t figures = figures_of(TPU);
  found_t f = find_with(&figures, text);
  const mp_block_t *main = f.program->partitioned->main->body;
  const mp_op_t *end = mp_block_terminator(main);
  const mp_layouts_t *layouts = &f.fusions.layouts;
  assert_int_equal(layouts->copies.count, 4);  // two arguments, two results
  const uint32_t copy = mp_layouts_copy_for(layouts, &main->args[1], main->first);
  assert_int_not_equal(copy, MP_LAYOUT_NONE);
  for (const mp_op_t *op = main->first; op != end; op = op->next) {
    assert_int_equal(mp_layouts_copy_for(layouts, &main->args[1], op), copy);
  }
  for (uint32_t i = 0; i < 3; ++i) {
    assert_int_not_equal(mp_layouts_copy_for(layouts, end->operands[i], end), MP_LAYOUT_NONE);
  }
  find_end(&f);
}

static void a_transpose_is_a_copy_only_for_the_result(void **state) {
  (void)state;
#define SQUARE_TYPE "tensor<512x512xf32>"
#define TRANSPOSED                                       \
  "func.func @main(%a: " SQUARE_TYPE ") -> " SQUARE_TYPE \
  " {\n"                                                 \
  "%0 = stablehlo.transpose %a, dims = [1, 0] : (" SQUARE_TYPE ") -> " SQUARE_TYPE "\n"
  assert_int_equal(copies_of(TRANSPOSED "return %0 : " SQUARE_TYPE "\n}\n"), 1);
  assert_int_equal(copies_of(TRANSPOSED "%1 = stablehlo.transpose %0, dims = [1, 0] : (" SQUARE_TYPE
                                        ") -> " SQUARE_TYPE "\nreturn %1 : " SQUARE_TYPE "\n}\n"),
                   0);
#undef TRANSPOSED
#undef SQUARE_TYPE
}

// A gather of rows reads and writes rows in the lanes, unless that makes a large table much larger.
static void gathers_have_rows_in_the_lanes(void **state) {
  (void)state;
#define ROWS(table, result)                                                                       \
  "func.func @main(%t: tensor<" table ">, %i: tensor<4096x1xi32>) -> tensor<" result              \
  "> {\n%0 = \"stablehlo.gather\"(%t, %i) <{dimension_numbers = #stablehlo.gather<"               \
  "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, " \
  "slice_sizes = array<i64: 1, 32>, indices_are_sorted = false}> : (tensor<" table                \
  ">, tensor<4096x1xi32>) -> tensor<" result ">\nreturn %0 : tensor<" result ">\n}\n"
  assert_int_equal(copies_of(ROWS("4096x32xf32", "4096x32xf32")), 2);
  assert_int_equal(copies_of(ROWS("1048576x32xf32", "4096x32xf32")), 0);
}

// Windows extend along any dimension but that of the lanes.
#define PARTS "tensor<8192x16x4xf32>"
#define PART  "tensor<8192x16x1xf32>"

// A loop that reads a part of its value without the last dimension carries it with the others in
// the tiles: copies before and after the loop, none in its iterations.
static void loops_carry_what_their_reshapes_want(void **state) {
  (void)state;
  static const char text[] =
      "func.func @main(%x: " PARTS ") -> " PARTS
      " {\n"
      "%c0 = stablehlo.constant dense<0> : tensor<i32>\n"
      "%c1 = stablehlo.constant dense<1> : tensor<i32>\n"
      "%c4 = stablehlo.constant dense<4> : tensor<i32>\n"
      "%0:2 = stablehlo.while(%i = %c0, %a = %x) : tensor<i32>, " PARTS
      "\n"
      "cond {\n%p = stablehlo.compare LT, %i, %c4 : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
      "stablehlo.return %p : tensor<i1>\n} do {\n"
      "%s = stablehlo.slice %a [0:8192, 0:16, 1:2] : (" PARTS ") -> " PART
      "\n"
      "%r = stablehlo.reshape %s : (" PART
      ") -> tensor<8192x16xf32>\n"
      "%b = stablehlo.broadcast_in_dim %r, dims = [0, 1] : (tensor<8192x16xf32>) -> " PARTS
      "\n"
      "%d = stablehlo.add %a, %b : " PARTS
      "\n%k = stablehlo.add %i, %c1 : tensor<i32>\n"
      "stablehlo.return %k, %d : tensor<i32>, " PARTS "\n}\nreturn %0#1 : " PARTS "\n}\n";
  assert_int_equal(copies_of(text), 2);
}

// A loop that fills a stack, of which the compact layout has the iterations in the lanes: rows stay
// in the lanes, and what main returns is a copy.
static void stacks_have_no_iterations_in_the_lanes(void **state) {
  (void)state;
#define FILL(count)                                                                             \
  "func.func @main(%r: tensor<1x16xf32>) -> tensor<" count                                      \
  "x16xf32> {\n%c0 = stablehlo.constant dense<0> : tensor<i32>\n"                               \
  "%c1 = stablehlo.constant dense<1> : tensor<i32>\n"                                           \
  "%c4 = stablehlo.constant dense<4> : tensor<i32>\n"                                           \
  "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"                                          \
  "%x = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<f32>) -> tensor<" count              \
  "x16xf32>\n%0:2 = stablehlo.while(%i = %c0, %a = %x) : tensor<i32>, tensor<" count            \
  "x16xf32>\ncond {\n%p = stablehlo.compare LT, %i, %c4 : (tensor<i32>, tensor<i32>) -> "       \
  "tensor<i1>\nstablehlo.return %p : tensor<i1>\n} do {\n"                                      \
  "%d = stablehlo.dynamic_update_slice %a, %r, %i, %c0 : (tensor<" count                        \
  "x16xf32>, tensor<1x16xf32>, tensor<i32>, tensor<i32>) -> tensor<" count                      \
  "x16xf32>\n%k = stablehlo.add %i, %c1 : tensor<i32>\nstablehlo.return %k, %d : tensor<i32>, " \
  "tensor<" count "x16xf32>\n}\nreturn %0#1 : tensor<" count "x16xf32>\n}\n"
  assert_int_equal(copies_of(FILL("128")), 1);
  assert_int_equal(copies_of(FILL("8")), 0);
}

static void windows_leave_the_lanes(void **state) {
  (void)state;
#define WINDOW(sizes)                                                                \
  "func.func @main(%x: tensor<512x1024xf32>) -> tensor<512x1024xf32> {\n"            \
  "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"                               \
  "%0 = \"stablehlo.reduce_window\"(%x, %z) <{window_dimensions = array<i64: " sizes \
  ">, padding = dense<[[" PADDING                                                    \
  "]]> : tensor<2x2xi64>}> ({\n^bb0(%a: tensor<f32>, %b: "                           \
  "tensor<f32>):\n%c = stablehlo.add %a, %b : tensor<f32>\nstablehlo.return %c : "   \
  "tensor<f32>\n}) : (tensor<512x1024xf32>, tensor<f32>) -> tensor<512x1024xf32>\n"  \
  "return %0 : tensor<512x1024xf32>\n}\n"
#define PADDING "0, 2], [0, 0"
  assert_int_equal(copies_of(WINDOW("3, 1")), 0);
#undef PADDING
#define PADDING "0, 0], [0, 2"
  assert_int_equal(copies_of(WINDOW("1, 3")), 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_compact_layout_pads_least),
      cmocka_unit_test(a_reshape_moves_nothing_if_tiles_stay_whole),
      cmocka_unit_test(batches_in_the_lanes_are_copied),
      cmocka_unit_test(vectors_by_small_matrices_take_batches_in_the_lanes),
      cmocka_unit_test(readers_share_a_copy),
      cmocka_unit_test(a_transpose_is_a_copy_only_for_the_result),
      cmocka_unit_test(gathers_have_rows_in_the_lanes),
      cmocka_unit_test(loops_carry_what_their_reshapes_want),
      cmocka_unit_test(stacks_have_no_iterations_in_the_lanes),
      cmocka_unit_test(windows_leave_the_lanes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
