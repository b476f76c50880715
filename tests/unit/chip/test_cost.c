// What kernels take by kind, by hand: functions, rows by index, sorts, windows, decompositions.
#include <math.h>

#include "sim/chip/chip_program.h"
#include "sim/plan/compile.h"
#include "sim/readers/text/text.h"
#include "tests/unit/support/unit.h"

// A chip with round numbers, on which nothing takes time but what a test sets.
static mp_chip_t bare_chip(void) {
  mp_chip_t chip = {.vector_flops = 1e12,
                    .transcendental_flops = 8,
                    .memory_bandwidth = 1e18,
                    .figures = mp_chip_figures_none()};
  for (int kind = 0; kind < MP_FLOP_KIND_COUNT; ++kind) chip.flops[kind] = 1e18;
  for (int i = 0; i < MP_WORK_CLASS_COUNT; ++i) chip.efficiency[i] = 1;
  return chip;
}

static double program_seconds(const mp_chip_t *chip, const char *text) {
  mp_module_t *module = NULL;
  mp_program_t *program = NULL;
  mp_arena_t *arena = NULL;
  const mp_chip_program_t *chip_program = NULL;
  const mp_compile_request_t request = {.keep_partitioned = true};
  assert_ok(mp_read_text(text, strlen(text), &module));
  assert_ok(mp_arena_create(&arena));
  assert_ok(mp_compile_module(module, &request, &program));
  assert_ok(mp_chip_program_create(chip, program, NULL, arena, &chip_program));
  double seconds = 0;
  for (uint32_t i = 0; i < chip_program->num_kernels; ++i)
    seconds += chip_program->kernels[i].seconds;
  mp_program_release(program);
  mp_arena_release(arena);
  return seconds;
}

static void expect_ns(const mp_chip_t *chip, const char *text, double ns) {
  assert_float_equal(program_seconds(chip, text) * 1e9, ns, 1e-4 * fmax(ns, 1));
}

#define UNARY(op, type)                                                            \
  "func.func @main(%x: tensor<" type ">) -> tensor<" type ">{\n%0 = stablehlo." op \
  " %x : "                                                                         \
  "tensor<" type ">\nreturn %0 : tensor<" type ">\n}\n"
#define BINARY(op, type)                                                        \
  "func.func @main(%x: tensor<" type ">, %y: tensor<" type ">) -> tensor<" type \
  "> {\n%0 "                                                                    \
  "= stablehlo." op " %x, %y : tensor<" type ">\nreturn %0 : tensor<" type ">\n}\n"

static void functions_count_by_kind(void **state) {
  (void)state;
  mp_chip_t chip = bare_chip();
  expect_ns(&chip, UNARY("exponential", "1000xf32"), 8);
  expect_ns(&chip, BINARY("divide", "1000xf32"), 1);
  chip.figures.vector_exponential = 4;
  chip.figures.vector_sine = 150;
  chip.figures.vector_division = 6;
  chip.figures.vector_integer_division = 20;
  chip.figures.vector_share = 0.5;
  expect_ns(&chip, UNARY("negate", "1000xf32"), 2);
  expect_ns(&chip, UNARY("exponential", "1000xf32"), 8);
  expect_ns(&chip, UNARY("sine", "1000xf32"), 300);
  expect_ns(&chip, BINARY("divide", "1000xf32"), 12);
  expect_ns(&chip, BINARY("divide", "1000xi32"), 40);
  // XLA multiplies by one over a number that it knows.
  expect_ns(&chip,
            "func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {\n"
            "%c = stablehlo.constant dense<3.0> : tensor<1000xf32>\n"
            "%0 = stablehlo.divide %x, %c : tensor<1000xf32>\nreturn %0 : tensor<1000xf32>\n}\n",
            2);
}

// A small kernel takes the latencies, a large one its bytes.
static void memory_has_a_latency(void **state) {
  (void)state;
  mp_chip_t chip = bare_chip();
  chip.memory_bandwidth = 1e12;
  chip.op_latency = 200e-9;
  chip.figures.memory_latency = 900e-9;
  expect_ns(&chip, UNARY("negate", "1000xf32"), 1100 + 8);
  expect_ns(&chip, UNARY("negate", "1000000xf32"), 1100 + 8000);
  // Windows that fill at the beginning and empty at the end.
  chip.figures.memory_ramp = 100000;
  expect_ns(&chip, UNARY("negate", "1000xf32"), 1100 + 8 + 8);
  expect_ns(&chip, UNARY("negate", "1000000xf32"), 1100 + 8000 + 100);
}

#define REDUCE(dimension, result)                                                                 \
  "func.func @main(%x: tensor<100x1000xf32>) -> tensor<" result                                   \
  "> {\n%z = stablehlo.constant dense<0.0> : tensor<f32>\n"                                       \
  "%0 = \"stablehlo.reduce\"(%x, %z) <{dimensions = array<i64: " dimension                        \
  ">}> ({\n^bb0(%p: tensor<f32>, %q: tensor<f32>):\n%r = stablehlo.add %p, %q : tensor<f32>\n"    \
  "stablehlo.return %r : tensor<f32>\n}) : (tensor<100x1000xf32>, tensor<f32>) -> tensor<" result \
  ">\nreturn %0 : tensor<" result ">\n}\n"

// A TPU with units that take a register of 8 x 128 words in so many nanoseconds.
static mp_chip_t bare_tpu(void) {
  mp_chip_t chip = bare_chip();
  chip.figures.compiler = MP_CHIP_COMPILER_TPU;
  chip.figures.vmem_store = 1e-9;
  chip.figures.vmem_rotate = 5e-9;
  chip.figures.vmem_reduce = 10e-9;
  chip.figures.vmem_broadcast = 20e-9;
  return chip;
}

// An operation is 1.024 ns on a register. There are 13 x 8 of them, of which some are not full.
static void lanes_are_reduced_once_for_each_row_of_tiles(void **state) {
  (void)state;
  const mp_chip_t chip = bare_tpu();
  expect_ns(&chip, REDUCE("0", "1000xf32"), 1.024 * (13 * 8 + 8 * 6));
  expect_ns(&chip, REDUCE("1", "100xf32"), 13 * 10);
}

#define REDUCE_NARROW                                                                  \
  "func.func @main(%x: tensor<1024x16xf32>) -> tensor<1024xf32> {\n"                   \
  "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"                                 \
  "%0 = \"stablehlo.reduce\"(%x, %z) <{dimensions = array<i64: 1>}> ({\n"              \
  "^bb0(%p: tensor<f32>, %q: tensor<f32>):\n%r = stablehlo.add %p, %q : tensor<f32>\n" \
  "stablehlo.return %r : tensor<f32>\n}) : (tensor<1024x16xf32>, tensor<f32>) -> "     \
  "tensor<1024xf32>\nreturn %0 : tensor<1024xf32>\n}\n"

// A narrow dimension is in the sublanes, and nothing is reduced across lanes.
static void narrow_rows_are_in_sublanes(void **state) {
  (void)state;
  const mp_chip_t chip = bare_tpu();
  expect_ns(&chip, REDUCE_NARROW, 1.024 * (16 + 8 * 6));
}

#define SLICE(slice, type)                                                                         \
  "func.func @main(%x: tensor<256x512xf32>) -> tensor<" type "> {\n%0 = stablehlo.slice %x " slice \
  " : (tensor<256x512xf32>) -> tensor<" type ">\nreturn %0 : tensor<" type ">\n}\n"

static void slices_between_tiles_are_rotated(void **state) {
  (void)state;
  const mp_chip_t chip = bare_tpu();
  expect_ns(&chip, SLICE("[8:256, 128:512]", "248x384xf32"), 31 * 3);
  expect_ns(&chip, SLICE("[1:249, 128:512]", "248x384xf32"), 31 * 3 * 2 * 1.024);
  expect_ns(&chip, SLICE("[8:256, 1:385]", "248x384xf32"), 31 * 3 * 5);
}

// ---- by index ----

#define GATHER(table, indices, sizes, offsets, result)                                           \
  "func.func @main(%t: tensor<" table ">, %i: tensor<" indices ">) -> tensor<" result            \
  "> {\n%0 = \"stablehlo.gather\"(%t, %i) <{dimension_numbers = #stablehlo.gather<"              \
  "offset_dims = [" offsets                                                                      \
  "], collapsed_slice_dims = [0], start_index_map = [0], "                                       \
  "index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: " sizes           \
  ">}> "                                                                                         \
  ": (tensor<" table ">, tensor<" indices ">) -> tensor<" result ">\nreturn %0 : tensor<" result \
  ">\n}\n"

static void rows_move_in_granules_and_scalars_one_by_one(void **state) {
  (void)state;
  mp_chip_t chip = bare_chip();
  chip.memory_bandwidth = 1e12;
  chip.figures.gather_granule = 512;
  // Rows of 512 bytes: what they have, which is more than the indices, is read and written.
  expect_ns(&chip, GATHER("4096x128xf32", "1000x1xi32", "1, 128", "1", "1000x128xf32"),
            (2 * 512e3 + 4000) * 1e-3);
  // Scalars: as many as the chip looks up.
  chip.figures.gather_slice = 5e-9;
  expect_ns(&chip, GATHER("4096xf32", "1000x1xi32", "1", "", "1000xf32"), 5000);
  chip.figures.gather_slice = 0;
  expect_ns(&chip, GATHER("4096xf32", "1000x1xi32", "1", "", "1000xf32"), 512);
}

// Of a table that a cache has, each byte comes from memory once, and sectors of 32 bytes from
// there.
static void a_small_table_is_found_in_the_cache(void **state) {
  (void)state;
  mp_chip_t chip = bare_chip();
  chip.memory_bandwidth = 1e12;
  chip.figures.gather_granule = 64;
  chip.figures.gather_cache = 1 << 20;
  chip.figures.gather_cache_rate = 2;
  // The indices and the result, 8 bytes for each, take less than the sectors.
  expect_ns(&chip, GATHER("4096xf32", "100000x1xi32", "1", "", "100000xf32"), 100000 * 32 / 2e3);
  chip.figures.gather_cache = 1 << 10;
  expect_ns(&chip, GATHER("4096xf32", "100000x1xi32", "1", "", "100000xf32"), 100000 * 64 / 1e3);
}

// The table is copied into rows of 128 lanes, and the result from these into its compact layout.
static void narrow_rows_are_copied_to_lanes_and_back(void **state) {
  (void)state;
  mp_chip_t chip = bare_chip();
  chip.memory_bandwidth = 1e12;
  chip.figures.compiler = MP_CHIP_COMPILER_TPU;
  chip.figures.gather_granule = 512;
  const double table = 4096.0 * 64 * 4, rows = 1000 * 512.0;
  expect_ns(&chip, GATHER("4096x64xf32", "1000x1xi32", "1, 64", "1", "1000x64xf32"),
            (3 * table + 2 * rows + 4096 + rows + 1024 * 64 * 4) * 1e-3);
}

#define SCATTER(sorted)                                                                           \
  "func.func @main(%x: tensor<4096x128xf32>, %i: tensor<1024x1xi32>, %u: tensor<1024x128xf32>) "  \
  "-> tensor<4096x128xf32> {\n"                                                                   \
  "%0 = \"stablehlo.scatter\"(%x, %i, %u) <{indices_are_sorted "                                  \
  "= " sorted                                                                                     \
  ", scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], "                   \
  "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, "       \
  "unique_indices = false}> ({\n^bb0(%p: tensor<f32>, %q: tensor<f32>):\n%r = stablehlo.add %p, " \
  "%q : tensor<f32>\nstablehlo.return %r : tensor<f32>\n}) : (tensor<4096x128xf32>, "             \
  "tensor<1024x1xi32>, tensor<1024x128xf32>) -> tensor<4096x128xf32>\n"                           \
  "return %0 : tensor<4096x128xf32>\n}\n"

// ---- lookups of a TPU ----

#define COLUMNS                                                                                 \
  "func.func @main(%t: tensor<512x1024xf32>, %i: tensor<256x1xi32>) -> tensor<512x256xf32> {\n" \
  "%0 = \"stablehlo.gather\"(%t, %i) <{dimension_numbers = #stablehlo.gather<"                  \
  "offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], "                      \
  "index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 512, 1>}> "      \
  ": (tensor<512x1024xf32>, tensor<256x1xi32>) -> tensor<512x256xf32>\n"                        \
  "return %0 : tensor<512x256xf32>\n}\n"

// A table of columns is copied so that columns are in the lanes, and so is the result.
static void columns_are_copied_to_lanes_and_back(void **state) {
  (void)state;
  mp_chip_t chip = bare_chip();
  chip.memory_bandwidth = 1e12;
  chip.figures.compiler = MP_CHIP_COMPILER_TPU;
  chip.figures.gather_granule = 512;
  expect_ns(&chip, COLUMNS, (2 * 512 * 1024 * 4 + 4 * 256 * 512 * 4 + 1024) * 1e-3);
}

// SparseCores look up more than some rows, but not many more than the table has. They neither read
// nor write VMEM.
static void sparse_cores_look_up_many_rows(void **state) {
  (void)state;
  mp_chip_t chip = bare_chip();
  chip.memory_bandwidth = 1e12;
  chip.figures.compiler = MP_CHIP_COMPILER_TPU;
  chip.figures.gather_granule = 64;
  chip.figures.gather_apart = 1024;
  chip.figures.memory_scratch = 64 << 20;
  const double table = 4096.0 * 64 * 4, row = 64 * 4, line = 128 * 4, index = 4;
  expect_ns(&chip, GATHER("4096x64xf32", "1024x1xi32", "1, 64", "1", "1024x64xf32"),
            (table + 1024 * fmax(row, index) + 1024 * row) * 1e-3);
  expect_ns(&chip, GATHER("4096x64xf32", "2048x1xi32", "1, 64", "1", "2048x64xf32"),
            (3 * table + 2048 * (2 * line + index) + 2048 * (line + row)) * 1e-3);
  expect_ns(&chip, GATHER("4096x64xf32", "8192x1xi32", "1, 64", "1", "8192x64xf32"),
            (table + 8192 * fmax(row, index) + 8192 * row) * 1e-3);
}

// A TPU goes through all elements of a row to take out some; rows it finds where they are.
static void elements_apart_are_taken_out_of_lanes(void **state) {
  (void)state;
  mp_chip_t chip = bare_chip();
  chip.figures.tiles_element = 0.01e-9;
#define EVEN(strides, result)                                                            \
  "func.func @main(%x: tensor<1024x1024xf32>) -> tensor<" result                         \
  "> {\n%0 = \"stablehlo.slice\"(%x) <{start_indices = array<i64: 0, 0>, limit_indices " \
  "= array<i64: 1024, 1024>, strides = array<i64: " strides                              \
  ">}> : (tensor<1024x1024xf32>) -> tensor<" result ">\nreturn %0 : tensor<" result ">\n}\n"
  expect_ns(&chip, EVEN("1, 2", "1024x512xf32"), 0.0042);
  chip.figures.compiler = MP_CHIP_COMPILER_TPU;
  expect_ns(&chip, EVEN("1, 2", "1024x512xf32"), 1024 * 1024 * 0.01);
  expect_ns(&chip, EVEN("2, 1", "512x1024xf32"), 0.0042);
}

// The gradient of such a slice: what is put between others in the lanes comes there by a matmul.
static void elements_between_others_are_put_into_lanes(void **state) {
  (void)state;
  mp_chip_t chip = bare_chip();
  chip.figures.tiles_element = 0.01e-9;
#define BETWEEN(type, interior, result)                                                \
  "func.func @main(%x: tensor<" type ">, %z: tensor<f32>) -> tensor<" result           \
  "> {\n%0 = stablehlo.pad %x, %z, low = [0, 0], high = [0, 0], interior = [" interior \
  "] : (tensor<" type ">, tensor<f32>) -> tensor<" result ">\nreturn %0 : tensor<" result ">\n}\n"
  expect_ns(&chip, BETWEEN("1024x512xf32", "0, 1", "1024x1023xf32"), 0.0063);
  chip.figures.compiler = MP_CHIP_COMPILER_TPU;
  expect_ns(&chip, BETWEEN("1024x512xf32", "0, 1", "1024x1023xf32"), 1024 * 1023 * 0.01);
  expect_ns(&chip, BETWEEN("512x1024xf32", "1, 0", "1023x1024xf32"), 0.0063);
}

// Real and imaginary parts of an argument are taken out of it by a kernel each.
static void complex_arguments_are_read_twice(void **state) {
  (void)state;
  mp_chip_t chip = bare_chip();
  chip.memory_bandwidth = 1e12;
  expect_ns(&chip, UNARY("negate", "1024xcomplex<f32>"), 2 * 8.192);
  chip.figures.compiler = MP_CHIP_COMPILER_TPU;
  chip.figures.memory_scratch = 2 * 8192;
  expect_ns(&chip, UNARY("negate", "1024xcomplex<f32>"), 3 * 8.192);
  // Parts that do not fit into VMEM are written and read.
  chip.figures.memory_scratch = 8192;
  expect_ns(&chip, UNARY("negate", "1024xcomplex<f32>"), 5 * 8.192);
}

// On a TPU the indices of sums are sorted with their places, by kernels of their own.
static void indices_of_sums_are_sorted_first(void **state) {
  (void)state;
  mp_chip_t chip = bare_chip();
  chip.op_latency = 100e-9;
  chip.figures.sort_stage = 5;
  expect_ns(&chip, SCATTER("false"), 100);
  chip.figures.compiler = MP_CHIP_COMPILER_TPU;
  expect_ns(&chip, SCATTER("true"), 100);
  expect_ns(&chip, SCATTER("false"), 1024 * 2 * 5 * 55 * 1e-3 + 4 * 100);
}

#define REVERSE_OF(type, dims)                                        \
  "func.func @main(%x: tensor<" type ">) -> tensor<" type             \
  ">  {\n%0 = stablehlo.reverse %x, dims = [" dims "] : tensor<" type \
  ">\nreturn %0 : tensor<" type ">\n}\n"
#define REVERSE(dims) REVERSE_OF("100x1000xf32", dims)

static void reversing_the_last_dimension_is_dear(void **state) {
  (void)state;
  mp_chip_t chip = bare_chip();
  chip.figures.reverse_element = 1e-9;
  expect_ns(&chip, REVERSE("0"), 800e3 / 1e18 * 1e9);
  expect_ns(&chip, REVERSE("1"), 100e3);
  // On a TPU what lies in tiles is meant, across lanes or rows: colours do not.
  expect_ns(&chip, REVERSE_OF("32x128x3xf32", "2"), 32 * 128 * 3);
  chip.figures.compiler = MP_CHIP_COMPILER_TPU;
  expect_ns(&chip, REVERSE("1"), 100e3);
  expect_ns(&chip, REVERSE_OF("128x100xf32", "1"), 12800);
  expect_ns(&chip, REVERSE_OF("32x128x3xf32", "2"), 0);
}

// ---- in stages ----

#define SORT(type)                                                                           \
  "func.func @main(%x: tensor<" type ">) -> tensor<" type                                    \
  "> {\n%0 = \"stablehlo.sort\"(%x) <{dimension = 1 : i64, is_stable = true}> ({\n^bb0(%p: " \
  "tensor<f32>, %q: tensor<f32>):\n%r = stablehlo.compare LT, %p, %q : (tensor<f32>, "       \
  "tensor<f32>) -> tensor<i1>\nstablehlo.return %r : tensor<i1>\n}) : (tensor<" type         \
  ">) -> tensor<" type ">\nreturn %0 : tensor<" type ">\n}\n"

static void a_sort_is_a_network(void **state) {
  (void)state;
  mp_chip_t chip = bare_chip();
  chip.figures.sort_stage = 5;
  // 1,024 is done in 10 x 11 / 2 stages, with the places beside the keys.
  expect_ns(&chip, SORT("10x1024xf32"), 10240.0 * 2 * 5 * 55 * 1e-3);
  // Tiles of 256: two stages more go through memory, the second one twice.
  chip.memory_bandwidth = 1e9;
  chip.figures.sort_tile = 256;
  expect_ns(&chip, SORT("10x1024xf32"), 4 * 2 * 4 * 10240.0);
}

// Of the 100 best of 1,024, blocks of 128 are sorted, and of two blocks one is left.
static void the_best_are_found_in_fewer_stages(void **state) {
  (void)state;
  mp_chip_t chip = bare_chip();
  chip.figures.sort_stage = 5;
  static const char text[] =
      "func.func @main(%x: tensor<10x1024xf32>) -> tensor<10x100xf32> {\n"
      "%0 = \"stablehlo.sort\"(%x) <{dimension = 1 : i64, is_stable = true, minipod.first = 100 : "
      "i64}> ({\n^bb0(%p: tensor<f32>, %q: tensor<f32>):\n%r = stablehlo.compare GT, %p, %q : "
      "(tensor<f32>, tensor<f32>) -> tensor<i1>\nstablehlo.return %r : tensor<i1>\n}) : "
      "(tensor<10x1024xf32>) -> tensor<10x100xf32>\nreturn %0 : tensor<10x100xf32>\n}\n";
  expect_ns(&chip, text, 10240.0 * 2 * 5 * (28 + 7) * 1e-3);
}

#define BEST(lines, line, k, type, order) \
  BEST_OF(lines "x" line "x", lines "x" k "x", k, type, order)
#define BEST_OF(in, out, k, type, order)                                                      \
  "func.func @main(%x: tensor<" in type ">) -> (tensor<" out type ">, tensor<" out            \
  "i32>) {\n%i = stablehlo.iota dim = 1 : tensor<" in                                         \
  "i32>\n%0:2 = \"stablehlo.sort\"(%x, %i) <{dimension = 1 : i64, is_stable = true, "         \
  "minipod.first = " k " : i64}> ({\n^bb0(%p: tensor<" type ">, %q: tensor<" type             \
  ">, %r: tensor<i32>, %s: tensor<i32>):\n%t = stablehlo.compare GT, %p, %q, " order          \
  " : (tensor<" type ">, tensor<" type                                                        \
  ">) -> tensor<i1>\nstablehlo.return %t : tensor<i1>\n}) : (tensor<" in type ">, tensor<" in \
  "i32>) -> (tensor<" out type ">, tensor<" out "i32>)\nreturn %0#0, %0#1 : tensor<" out type \
  ">, tensor<" out "i32>\n}\n"

// A TPU searches a long line for a few; a shorter one, and whole numbers, it sorts. The formula has
// four cycles where final bundles of libtpu have 905 + 8 x 2,770, 1,582 + 200 x 4,120 + 1,860.
static void the_best_are_searched_on_a_tpu(void **state) {
  (void)state;
  mp_chip_t chip = bare_chip();
  chip.figures.sort_stage = 5;
  chip.figures.sort_best = 4e-9;
  // A line in each of 128 lanes, 512 tiles; 16 lines are no sooner done, 129 in two turns.
  expect_ns(&chip, BEST("128", "4096", "8", "f32", "TOTALORDER"), 4 * 8.5 * (512 + 180));
  expect_ns(&chip, BEST("16", "4096", "8", "f32", "TOTALORDER"), 4 * 8.5 * (512 + 180));
  expect_ns(&chip, BEST("129", "4096", "8", "f32", "TOTALORDER"), 4 * 8.5 * 2 * (512 + 180));
  // Eight lines lie along the lanes. Places beside bf16 make one word of both.
  expect_ns(&chip, BEST("8", "4096", "8", "f32", "TOTALORDER"), 4 * 8.5 * (32 + 28));
  expect_ns(&chip, BEST("8", "4096", "8", "bf16", "TOTALORDER"), 4 * 4 * 32);
  // Too short a line for eight, and elements that are not searched: all of it is sorted.
  expect_ns(&chip, BEST("128", "512", "8", "f32", "TOTALORDER"), 65536 * 2 * 5 * 45 * 1e-3);
  expect_ns(&chip, BEST("16", "128256", "200", "f32", "TOTALORDER"), 4 * 200.5 * 2 * (1002 + 28));
  expect_ns(&chip, BEST("128", "1024", "8", "i32", "SIGNED"), 131072 * 2 * 5 * 55 * 1e-3);
  // Fewer lines than lanes run along the lanes.
  expect_ns(&chip, SORT("127x1024xf32"), 1.6 * 127 * 1024.0 * 2 * 5 * 55 * 1e-3);
}

// A length of 1,024 has two factors of up to 256, each of which is three matmuls.
static void a_transform_is_matmuls_in_real_numbers(void **state) {
  (void)state;
  mp_chip_t chip = bare_chip();
  chip.figures.fft_element = 1e-9;
  chip.figures.matmul_launch = 2e-6;
  static const char text[] =
      "func.func @main(%x: tensor<2x1024xcomplex<f32>>) -> tensor<2x1024xcomplex<f32>> {\n"
      "%0 = stablehlo.fft %x, type = FFT, length = [1024] : (tensor<2x1024xcomplex<f32>>) -> "
      "tensor<2x1024xcomplex<f32>>\nreturn %0 : tensor<2x1024xcomplex<f32>>\n}\n";
  expect_ns(&chip, text, 2048 * 2 + 6 * 2000);
  static const char whole[] =
      "func.func @main(%x: tensor<8x256xcomplex<f32>>) -> tensor<8x256xcomplex<f32>> {\n"
      "%0 = stablehlo.fft %x, type = FFT, length = [256] : (tensor<8x256xcomplex<f32>>) -> "
      "tensor<8x256xcomplex<f32>>\nreturn %0 : tensor<8x256xcomplex<f32>>\n}\n";
  expect_ns(&chip, whole, 2048 + 3 * 2000);
  chip.figures.memory_scratch = 1e6;
  chip.figures.matmul_scratch_launch = 500e-9;
  expect_ns(&chip, text, 2048 * 2 + 6 * 500);
  chip.figures.matmul_step = 100e-9;
  expect_ns(&chip, text, 2048 * 2 + 6 * 600);
}

// XLA for GPUs writes the words of all blocks one after the other, and lays them side by side then.
static void random_bits_on_gpus_are_written_twice(void **state) {
  (void)state;
  mp_chip_t chip = bare_chip();
  chip.vector_flops = 1e18;
  chip.memory_bandwidth = 1e12;
  chip.op_latency = 1e-6;
  static const char text[] =
      "func.func @main(%k: tensor<2xui64>) -> (tensor<2xui64>, tensor<250000xui32>) {\n"
      "%0, %1 = stablehlo.rng_bit_generator %k, algorithm = PHILOX : (tensor<2xui64>) -> "
      "(tensor<2xui64>, tensor<250000xui32>)\n"
      "return %0, %1 : tensor<2xui64>, tensor<250000xui32>\n}\n";
  const double once = program_seconds(&chip, text) * 1e9;
  assert_float_equal(once, 1000 + 1000, 1);
  chip.figures.compiler = MP_CHIP_COMPILER_GPU;
  expect_ns(&chip, text, once + 1000 + 2000);
}

#define SELECT(source, padding)                                                                    \
  "func.func @main(%x: tensor<250000x4xf32>, %g: tensor<" source                                   \
  ">) -> tensor<250000x4xf32> {\n"                                                                 \
  "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"                                             \
  "%0 = \"stablehlo.select_and_scatter\"(%x, %g, %z) ({\n"                                         \
  "^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"                                                      \
  "%c = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"                 \
  "stablehlo.return %c : tensor<i1>\n}, {\n^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"              \
  "%c = stablehlo.add %a, %b : tensor<f32>\nstablehlo.return %c : tensor<f32>\n}) {"               \
  "window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1, 2>, padding = dense<[[0, " \
  "0], [" padding "]]> : tensor<2x2xi64>} : (tensor<250000x4xf32>, tensor<" source                 \
  ">, tensor<f32>) -> tensor<250000x4xf32>\n"                                                      \
  "return %0 : tensor<250000x4xf32>\n}\n"

// XLA for GPUs writes values and places of windows and zeros, and adds to those places then.
static void gradients_of_largest_elements_are_three_kernels_on_gpus(void **state) {
  (void)state;
  enum { OPERAND = 4000, WINDOWS = 2000 };
  mp_chip_t chip = bare_chip();
  chip.vector_flops = 1e18;
  chip.memory_bandwidth = 1e12;
  chip.op_latency = 1e-6;
  const double once = 1000 + 2 * OPERAND;
  assert_float_equal(program_seconds(&chip, SELECT("250000x2xf32", "0, 0")) * 1e9, once + WINDOWS,
                     1);
  chip.figures.compiler = MP_CHIP_COMPILER_GPU;
  expect_ns(&chip, SELECT("250000x2xf32", "0, 0"), 2000 + once + (1 + 1 + 2 * 2 + 2) * WINDOWS);
}

#define CONVOLVED(type)                                                                         \
  "func.func @main(%x: tensor<" type ">, %w: tensor<1x1x64x64xf32>) -> tensor<" type            \
  "> {\n%0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, " \
  "f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = "   \
  "[1, 1], reverse = [0, 0]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : ("  \
  "tensor<" type ">, tensor<1x1x64x64xf32>) -> tensor<" type ">\nreturn %0 : tensor<" type      \
  ">\n}\n"

static void a_decomposition_goes_column_by_column(void **state) {
  (void)state;
  mp_chip_t chip = bare_chip();
  chip.figures.linalg_column = 100e-9;
  expect_ns(&chip,
            "func.func @main(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {\n"
            "%0 = \"stablehlo.cholesky\"(%x) <{lower = true}> : (tensor<64x64xf32>) -> "
            "tensor<64x64xf32>\nreturn %0 : tensor<64x64xf32>\n}\n",
            6400);
}

#define GROUPS  "tensor<4x300x64xf32>"
#define RESULTS "tensor<4x300x32xf32>"
// The rows %x once per group, and zeros where the mask %m says that a row is not the group's.
#define GROUPED_ROWS                                                                    \
  "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"                                  \
  "%0 = stablehlo.broadcast_in_dim %x, dims = [1, 2] : (tensor<300x64xf32>) -> " GROUPS \
  "\n"                                                                                  \
  "%1 = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<f32>) -> " GROUPS            \
  "\n"                                                                                  \
  "%2 = stablehlo.select %m, %0, %1 : tensor<4x300x64xi1>, " GROUPS "\n"

// Rows go by 128 at a time, by the matrix of their group: once more where the next one begins.
static void each_group_goes_through_its_own_rows(void **state) {
  (void)state;
  static const char text[] =
      "func.func @main(%x: tensor<300x64xf32>, %w: tensor<4x64x32xf32>, %m: "
      "tensor<4x300x64xi1>) -> tensor<300x32xf32> {\n" GROUPED_ROWS
      "%3 = stablehlo.dot_general %2, %w, contracting_dims = [2, 0] x [1, 0] : (" GROUPS
      ", tensor<4x64x32xf32>) -> tensor<300x32xf32>\n"
      "return %3 : tensor<300x32xf32>\n}\n";
  mp_chip_t chip = bare_chip();
  chip.flops[MP_FLOP_F32] = 1e12;
  chip.vector_flops = 1e15;
  const double all = program_seconds(&chip, text);
  chip.figures.compiler = MP_CHIP_COMPILER_TPU;
  const double own = program_seconds(&chip, text);
  assert_float_equal(own / all, (3 + 4 - 1) * 128.0 / (4 * 300), 1e-3);
  chip.figures.matmul_ragged = 2e-6;
  const double more = program_seconds(&chip, text) - own;
  assert_float_equal(more, (3 + 4 - 1) * 2e-6, 1e-12);
  // So does the mask, not once for each group.
  chip.vector_flops = 1e9;
  assert_float_equal(program_seconds(&chip, text), 300 * 64 / 1e9 + more, 1e-6);
}

// The gradient of the matrices: each group sums up its own rows.
static void each_group_sums_its_own_rows(void **state) {
  (void)state;
  static const char text[] =
      "func.func @main(%x: tensor<300x64xf32>, %g: tensor<300x32xf32>, %m: tensor<4x300x64xi1>, "
      "%n: tensor<4x300x32xi1>) -> tensor<4x64x32xf32> {\n" GROUPED_ROWS
      "%3 = stablehlo.broadcast_in_dim %g, dims = [1, 2] : (tensor<300x32xf32>) -> " RESULTS
      "\n"
      "%4 = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<f32>) -> " RESULTS
      "\n"
      "%5 = stablehlo.select %n, %3, %4 : tensor<4x300x32xi1>, " RESULTS
      "\n"
      "%6 = stablehlo.dot_general %2, %5, batching_dims = [0] x [0], contracting_dims = [1] x "
      "[1] : (" GROUPS ", " RESULTS
      ") -> tensor<4x64x32xf32>\n"
      "return %6 : tensor<4x64x32xf32>\n}\n";
  mp_chip_t chip = bare_chip();
  chip.flops[MP_FLOP_F32] = 1e12;
  chip.vector_flops = 1e15;
  const double all = program_seconds(&chip, text);
  chip.figures.compiler = MP_CHIP_COMPILER_TPU;
  assert_float_equal(program_seconds(&chip, text) / all, (3 + 4 - 1) * 128.0 / (4 * 300), 1e-3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(functions_count_by_kind),
      cmocka_unit_test(memory_has_a_latency),
      cmocka_unit_test(lanes_are_reduced_once_for_each_row_of_tiles),
      cmocka_unit_test(narrow_rows_are_in_sublanes),
      cmocka_unit_test(slices_between_tiles_are_rotated),
      cmocka_unit_test(rows_move_in_granules_and_scalars_one_by_one),
      cmocka_unit_test(a_small_table_is_found_in_the_cache),
      cmocka_unit_test(narrow_rows_are_copied_to_lanes_and_back),
      cmocka_unit_test(columns_are_copied_to_lanes_and_back),
      cmocka_unit_test(sparse_cores_look_up_many_rows),
      cmocka_unit_test(elements_apart_are_taken_out_of_lanes),
      cmocka_unit_test(elements_between_others_are_put_into_lanes),
      cmocka_unit_test(complex_arguments_are_read_twice),
      cmocka_unit_test(indices_of_sums_are_sorted_first),
      cmocka_unit_test(reversing_the_last_dimension_is_dear),
      cmocka_unit_test(a_sort_is_a_network),
      cmocka_unit_test(the_best_are_found_in_fewer_stages),
      cmocka_unit_test(the_best_are_searched_on_a_tpu),
      cmocka_unit_test(a_transform_is_matmuls_in_real_numbers),
      cmocka_unit_test(random_bits_on_gpus_are_written_twice),
      cmocka_unit_test(gradients_of_largest_elements_are_three_kernels_on_gpus),
      cmocka_unit_test(a_decomposition_goes_column_by_column),
      cmocka_unit_test(each_group_goes_through_its_own_rows),
      cmocka_unit_test(each_group_sums_its_own_rows),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
