// The price of small kernels: steps, copies, units, and values that decide.
#include "tests/unit/support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/mosaic/price/price.h"
#include "sim/mosaic/read/mosaic_reader.h"

static const mp_price_chip_t g_wide = {.clock = 1e9,
                                       .is_wide = true,
                                       .bandwidth = 1e12,
                                       .latency = 1e-6,
                                       .cores = 1,
                                       .rules = {true, true, true}};

static void price_on(const mp_price_chip_t *chip, const char *text,
                     const mp_price_operand_t *operands, uint32_t count, mp_price_t *out) {
  mp_mosaic_module_t *module = NULL;
  assert_ok(mp_mosaic_read(text, strlen(text), &module));
  assert_ok(mp_mosaic_verify(module));
  assert_ok(mp_price_kernel(chip, module, operands, count, out));
  mp_mosaic_module_release(module);
}

static void price_file_on(const mp_price_chip_t *chip, const char *name,
                          const mp_price_operand_t *operands, uint32_t count, mp_price_t *out) {
  enum { MOST_BYTES = 1 << 20 };
  char path[1024];
  snprintf(path, sizeof(path), "%s/tests/fixtures/mosaic/%s", MINIPOD_SOURCE_DIR, name);
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  char *text = calloc(1, MOST_BYTES);
  assert_true(fread(text, 1, MOST_BYTES - 1, file) > 0);
  fclose(file);
  price_on(chip, text, operands, count, out);
  free(text);
}

static void price_file(const char *name, const mp_price_operand_t *operands, uint32_t count,
                       mp_price_t *out) {
  price_file_on(&g_wide, name, operands, count, out);
}

// 2 x 2 x 2 steps of 128 x 128 blocks: both operands change in each step, the result in every
// second.
static void test_matmul_copies_what_changes(void **state) {
  (void)state;
  const mp_price_operand_t operands[2] = {{0}};
  mp_price_t price;
  price_file("matmul.txt", operands, 2, &price);
  assert_int_equal((int)price.steps, 8);
  assert_int_equal((int)price.copies, 8 + 8 + 4);
  assert_int_equal((int)price.flops, 8 * 2 * 128 * 128 * 128);
  // Two buffers for each of three blocks of bf16, and a sum in f32.
  assert_int_equal((int)price.vmem, 6 * 128 * 128 * 2 + 128 * 128 * 4);
  assert_true(price.fill > 0.8e-6 && price.compute > 0 && !price.is_guessed);
  assert_int_equal(price.grid.rank, 3);
  for (uint32_t d = 0; d < 3; ++d) assert_int_equal(price.grid.dims[d], 2);
  assert_true(price.block.rank == 2 && price.block.dims[0] == 128 && price.block.dims[1] == 128);
  assert_true(price.seconds >= price.compute && price.seconds >= price.bytes / 1e12);
}

// Steps that wait for the latency of their blocks are overhead; what units and bandwidth need is
// not.
static void test_overhead_of_steps(void **state) {
  (void)state;
  const mp_price_operand_t operands[2] = {{0}};
  mp_price_chip_t chip = g_wide;
  mp_price_t price;
  chip.latency = 100e-6;
  price_file_on(&chip, "matmul.txt", operands, 2, &price);
  assert_true(price.overhead > 0.95 * (price.seconds - price.fill));
  chip.latency = 0;
  chip.bandwidth = 1e8;
  price_file_on(&chip, "matmul.txt", operands, 2, &price);
  assert_true(price.overhead >= 0 && price.overhead < 0.1 * price.seconds);
}

#define MODULE_BEGIN(args) \
  "\"builtin.module\"() ({ \"stable_mosaic.func.func\"() ({ ^bb0(" args "):\n"
#define MODULE_END(attrs)                                  \
  "\"stable_mosaic.func.return\"() : () -> ()\n}) {" attrs \
  "} : () -> ()\n}) {stable_mosaic.version = 11 : i64} : () -> ()\n"
#define VMEM "#tpu.memory_space<vmem>"
#define SMEM "#tpu.memory_space<smem>"

// exp of eight registers, as often as the prefetched number says.
static const char g_loop[] = MODULE_BEGIN("%n: memref<1xi32, " SMEM ">, %x: memref<64x128xf32, " VMEM
                                          ">, %o: memref<64x128xf32, " VMEM ">")
    "%0 = \"stable_mosaic.arith.constant\"() {value = 0 : index} : () -> index\n"
    "%1 = \"stable_mosaic.memref.load\"(%n, %0) : (memref<1xi32, " SMEM ">, index) -> i32\n"
    "%2 = \"stable_mosaic.arith.constant\"() {value = 0 : i32} : () -> i32\n"
    "%3 = \"stable_mosaic.arith.constant\"() {value = 1 : i32} : () -> i32\n"
    "\"stable_mosaic.scf.for\"(%2, %1, %3) ({ ^bb0(%i: i32):\n"
    "  %4 = \"stable_mosaic.vector.load\"(%x, %0, %0) : (memref<64x128xf32, " VMEM
    ">, index, index) -> vector<64x128xf32>\n"
    "  %5 = \"stable_mosaic.math.exp\"(%4) {fastmath = #arith.fastmath<none>} : (vector<64x128xf32>) -> "
    "vector<64x128xf32>\n"
    "  \"stable_mosaic.tpu.vector_store\"(%5, %o, %0, %0) {add = false, operandSegmentSizes = "
    "array<i32: 1, 1, 2, 0>, strides = array<i32>} : (vector<64x128xf32>, memref<64x128xf32, " VMEM
    ">, index, index) -> ()\n"
    "  \"stable_mosaic.scf.yield\"() : () -> ()\n"
    "}) : (i32, i32, i32) -> ()\n" MODULE_END(
        "function_type = (memref<1xi32, " SMEM ">, memref<64x128xf32, " VMEM
        ">, memref<64x128xf32, " VMEM
        ">) -> (), scalar_prefetch = 1 : i64, scratch_operands = 0 : i64, sym_name = \"f\"");

static double price_of_loop(const int32_t *rounds, mp_price_t *out) {
  const mp_price_operand_t operands[2] = {{rounds, 1, false}, {0}};
  price_on(&g_wide, g_loop, operands, 2, out);
  return out->units[MP_PRICE_FUNCTION] * 1e9;
}

static void test_loops_run_as_often_as_values_say(void **state) {
  (void)state;
  mp_price_t price;
  const int32_t rounds[] = {100, 0};
  assert_int_equal((int)price_of_loop(&rounds[0], &price), 100 * 8);
  assert_false(price.is_guessed);
  assert_int_equal((int)price_of_loop(&rounds[1], &price), 0);
  assert_int_equal((int)price_of_loop(NULL, &price), 8);
  assert_true(price.is_guessed);
}

// While a step computes, the blocks of the next one arrive: eight steps that compute as long as a
// latency wait for none but the first.
static void test_blocks_arrive_during_compute(void **state) {
  (void)state;
  const mp_price_operand_t operands[2] = {{0}};
  mp_price_chip_t chip = g_wide;
  mp_price_t price;
  chip.latency = 50e-9;
  price_file_on(&chip, "matmul.txt", operands, 2, &price);
  // The last block is written when all is computed.
  assert_true(price.wait < 2 * 0.12e-6);
  assert_true(price.seconds < price.fill + price.compute + 2 * 0.12e-6);
}

static void test_narrow_cores_widen(void **state) {
  (void)state;
  mp_price_chip_t narrow = g_wide;
  mp_price_t wide_price, narrow_price;
  const int32_t rounds = 10;
  const mp_price_operand_t known[2] = {{&rounds, 1, false}, {0}};
  narrow.is_wide = false;
  price_on(&g_wide, g_loop, known, 2, &wide_price);
  price_on(&narrow, g_loop, known, 2, &narrow_price);
  // A narrow core stores one register per bundle, a wide one two.
  assert_int_equal((int)(narrow_price.units[MP_PRICE_STORE] * 1e9 + 0.5), 80);
  assert_int_equal((int)(wide_price.units[MP_PRICE_STORE] * 1e9 + 0.5), 40);
}

// The kernel copies eight blocks of 8 x 128 by DMAs of its own, the next one while it adds one up.
static void test_own_dmas_overlap(void **state) {
  (void)state;
  const mp_price_operand_t operands[1] = {{0}};
  mp_price_t price;
  price_file("copies.txt", operands, 1, &price);
  assert_int_equal((int)price.bytes, 64 * 128 * 4 + 8 * 128 * 4);
  assert_false(price.is_guessed);
  // Two are under way at a time: half of the latency of each, and that of the result.
  assert_true(price.wait > 4e-6 && price.wait < 7e-6);
}

static void test_index_of_blocks_by_values(void **state) {
  (void)state;
  const int32_t same[] = {3, 3, 3, 3}, other[] = {0, 1, 2, 3};
  mp_price_t price;
  price_file("prefetch.txt", (mp_price_operand_t[]){{same, 4, false}, {0}}, 2, &price);
  const double once = price.copies;
  price_file("prefetch.txt", (mp_price_operand_t[]){{other, 4, false}, {0}}, 2, &price);
  assert_int_equal((int)(price.copies - once), 3);
  assert_false(price.is_guessed);
  price_file("prefetch.txt", (mp_price_operand_t[]){{0}, {0}}, 2, &price);
  assert_int_equal((int)(price.copies - once), 3);
  assert_true(price.is_guessed);
}

static void test_cores_divide_parallel_steps(void **state) {
  (void)state;
  const mp_price_operand_t operands[2] = {{0}};
  mp_price_chip_t two = g_wide;
  mp_price_t one_price, two_price;
  price_file("matmul.txt", operands, 2, &one_price);
  two.cores = 2;
  price_file_on(&two, "matmul.txt", operands, 2, &two_price);
  assert_int_equal((int)two_price.steps, 4);
  assert_int_equal((int)two_price.copies, (int)one_price.copies);
  assert_true(two_price.compute < 0.7 * one_price.compute);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_matmul_copies_what_changes),
      cmocka_unit_test(test_overhead_of_steps),
      cmocka_unit_test(test_loops_run_as_often_as_values_say),
      cmocka_unit_test(test_blocks_arrive_during_compute),
      cmocka_unit_test(test_narrow_cores_widen),
      cmocka_unit_test(test_own_dmas_overlap),
      cmocka_unit_test(test_index_of_blocks_by_values),
      cmocka_unit_test(test_cores_divide_parallel_steps),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
