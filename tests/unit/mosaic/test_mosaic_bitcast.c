// DMAs of Mosaic kernels between memory that is seen as other element types, and in other shapes.
#include <stdlib.h>

#include "tests/unit/mosaic/mosaic_bench.h"

#define ANY(type) "memref<" type ", #tpu.memory_space<any>>"
#define SEMAPHORE "memref<!tpu.dma_semaphore, #tpu.memory_space<semaphore_mem>>"
#define BITCAST_DMA(x, y, bitcast, from, to, type)                                            \
  MODULE("%x: " ANY(x) ", %y: " ANY(y) ", %s: " SEMAPHORE, ANY(x) ", " ANY(y) ", " SEMAPHORE, \
         bitcast OP                                                                           \
         "tpu.enqueue_dma\"(" from ", " to                                                    \
         ", %s) {operandSegmentSizes = array<i32: 1, 0, 1, 1, 0, 0>} : (" ANY(type) ", " ANY( \
             type) ", " SEMAPHORE ") -> ()\n" OP "tpu.wait_dma2\"(%s, " from ", " to          \
                   ") {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (" SEMAPHORE        \
                   ", " ANY(type) ", " ANY(type) ") -> ()\n",                                 \
         ", scratch_operands = 1 : i64")
#define BITCAST(name, of, from, to) \
  name " = " OP "tpu.memref_bitcast\"(" of ") : (" ANY(from) ") -> " ANY(to) "\n"

#define WORDS  "4x128xi32"
#define HALVES "8x128xi16"

// Rows 2i and 2i + 1 of halves are the low and the high ones of row i of words.
static void check_words(const uint32_t *words, const uint16_t *halves) {
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 128; ++j) {
      const uint32_t low = halves[2 * i * 128 + j], high = halves[(2 * i + 1) * 128 + j];
      assert_int_equal(words[i * 128 + j], low | high << 16);
    }
  }
}

static void check_dma(const char *text, bool is_of_words) {
  bench_t bench;
  bench_begin(&bench);
  const int64_t x_rows = is_of_words ? 4 : 8, y_rows = is_of_words ? 8 : 4;
  bench_operand(&bench, is_of_words ? MP_DTYPE_S32 : MP_DTYPE_S16, x_rows, 128);
  bench_result(&bench, is_of_words ? MP_DTYPE_S16 : MP_DTYPE_S32, y_rows, 128);
  assert_ok(bench_compile(&bench, text));
  void *x = counting(512), *y = counting(512);
  memset(y, 0, 2048);
  for (int i = 0; i < 1024; ++i) ((uint16_t *)x)[i] = (uint16_t)(i * 7 + 3);
  assert_ok(bench_run(&bench, (const void *[]){x}, (void *[]){y}));
  is_of_words ? check_words(x, y) : check_words(y, x);
  free(x);
  free(y);
  bench_end(&bench);
}

static void test_bitcast_dma(void **state) {
  (void)state;
  check_dma(BITCAST_DMA(WORDS, HALVES, BITCAST("%b", "%x", WORDS, HALVES), "%b", "%y", HALVES),
            true);
  check_dma(BITCAST_DMA(WORDS, HALVES, BITCAST("%b", "%y", HALVES, WORDS), "%x", "%b", WORDS),
            true);
  check_dma(BITCAST_DMA(HALVES, WORDS, BITCAST("%b", "%y", WORDS, HALVES), "%x", "%b", HALVES),
            false);
  check_dma(BITCAST_DMA(HALVES, WORDS, BITCAST("%b", "%x", HALVES, WORDS), "%b", "%y", WORDS),
            false);
}

// ---- words in other shapes ----

#define WIDE_HALVES "8x256xi16"
#define WIDE_WORDS  "4x256xi32"
#define NARROW      "8x128xi32"
#define RESHAPE(name, of, from, to) \
  name " = " OP "tpu.memref_reshape\"(" of ") : (" ANY(from) ") -> " ANY(to) "\n"

static mp_status_t run_rows(const char *text, const uint16_t *x, uint32_t *y) {
  bench_t bench;
  bench_begin(&bench);
  bench_operand(&bench, MP_DTYPE_S16, 8, 256);
  bench_result(&bench, MP_DTYPE_S32, 8, 128);
  assert_ok(bench_compile(&bench, text));
  mp_status_t status = bench_run(&bench, (const void *[]){x}, (void *[]){y});
  bench_end(&bench);
  return status;
}

// Words of two rows of halves, 256 a row, which are seen as two rows of 128.
static void test_bitcast_rows(void **state) {
  (void)state;
  uint16_t *x = aligned_alloc(64, 4096);
  uint32_t *y = aligned_alloc(64, 4096);
  for (int i = 0; i < 2048; ++i) x[i] = (uint16_t)(i * 7 + 3);
  memset(y, 0, 4096);
  assert_ok(run_rows(BITCAST_DMA(WIDE_HALVES, NARROW,
                                 BITCAST("%w", "%x", WIDE_HALVES, WIDE_WORDS)
                                     RESHAPE("%b", "%w", WIDE_WORDS, NARROW),
                                 "%b", "%y", NARROW),
                     x, y));
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 256; ++j) {
      const uint32_t low = x[2 * i * 256 + j], high = x[(2 * i + 1) * 256 + j];
      assert_int_equal(y[i * 256 + j], low | high << 16);
    }
  }
  free(x);
  free(y);
}

// The new rows need not divide the old ones in one dimension alone: 4x256 as 2x4x2x64.
static void test_bitcast_rows_outer(void **state) {
  (void)state;
  uint16_t *x = aligned_alloc(64, 4096);
  uint32_t *y = aligned_alloc(64, 4096);
  for (int i = 0; i < 2048; ++i) x[i] = (uint16_t)(i * 5 + 1);
  memset(y, 0, 4096);
  assert_ok(run_rows(BITCAST_DMA(WIDE_HALVES, NARROW,
                                 BITCAST("%w", "%x", WIDE_HALVES, WIDE_WORDS)
                                     RESHAPE("%b", "%w", WIDE_WORDS, "2x4x2x64xi32")
                                         RESHAPE("%c", "%y", NARROW, "2x4x2x64xi32"),
                                 "%b", "%c", "2x4x2x64xi32"),
                     x, y));
  for (int i = 0; i < 1024; ++i) {
    const int row = i / 256 * 512 + i % 256;
    assert_int_equal(y[i], x[row] | (uint32_t)x[row + 256] << 16);
  }
  free(x);
  free(y);
}

#define LOAD_STEPS(name, from, first, step)                                               \
  name " = " OP "tpu.strided_load\"(" from ", " first ", %z) {strides = array<i32: " step \
       ", 1>} : (memref<" NARROW                                                          \
       ", #tpu.memory_space<vmem>>, index, index) -> vector<4x128xi32>\n"
#define STEPS(step)                                                                       \
  MODULE("%x: memref<" WIDE_HALVES                                                        \
         ", #tpu.memory_space<vmem>>, %y: memref<4x128xi32, "                             \
         "#tpu.memory_space<vmem>>",                                                      \
         "memref<" WIDE_HALVES                                                            \
         ", #tpu.memory_space<vmem>>, memref<4x128xi32, "                                 \
         "#tpu.memory_space<vmem>>",                                                      \
         ZERO "%o = " OP "arith.constant\"() {value = 1 : index} : () -> index\n%w = " OP \
              "tpu.memref_bitcast\"(%x) : (memref<" WIDE_HALVES                           \
              ", #tpu.memory_space<vmem>>) -> memref<" WIDE_WORDS                         \
              ", #tpu.memory_space<vmem>>\n%r = " OP                                      \
              "tpu.memref_reshape\"(%w) : (memref<" WIDE_WORDS                            \
              ", #tpu.memory_space<vmem>>) -> memref<" NARROW                             \
              ", #tpu.memory_space<vmem>>\n" LOAD_STEPS("%a", "%r", "%o", step) OP        \
         "vector.store\"(%a, %y, %z, %z) : (vector<4x128xi32>, memref<4x128xi32, "        \
         "#tpu.memory_space<vmem>>, index, index) -> ()\n",                               \
         "")

// Every other row of those that were half a row: the second halves.
static void test_bitcast_steps(void **state) {
  (void)state;
  bench_t bench;
  bench_begin(&bench);
  bench_operand(&bench, MP_DTYPE_S16, 8, 256);
  bench_result(&bench, MP_DTYPE_S32, 4, 128);
  assert_ok(bench_compile(&bench, STEPS("2")));
  uint16_t *x = aligned_alloc(64, 4096);
  uint32_t *y = aligned_alloc(64, 2048);
  for (int i = 0; i < 2048; ++i) x[i] = (uint16_t)(i * 7 + 3);
  memset(y, 0, 2048);
  assert_ok(bench_run(&bench, (const void *[]){x}, (void *[]){y}));
  for (int i = 0; i < 512; ++i) {
    const int low = i / 128 * 512 + 128 + i % 128;
    assert_int_equal(y[i], x[low] | (uint32_t)x[low + 256] << 16);
  }
  free(x);
  free(y);
  bench_end(&bench);
}

// Rows that became pairs of parts do not become rows of 256 again.
static void test_bitcast_rows_refused(void **state) {
  (void)state;
  uint16_t *x = aligned_alloc(64, 4096);
  uint32_t *y = aligned_alloc(64, 4096);
  memset(x, 0, 4096);
  assert_status(run_rows(BITCAST_DMA(WIDE_HALVES, NARROW,
                                     BITCAST("%w", "%x", WIDE_HALVES, WIDE_WORDS)
                                         RESHAPE("%p", "%w", WIDE_WORDS, NARROW)
                                             RESHAPE("%b", "%p", NARROW, WIDE_WORDS)
                                                 RESHAPE("%c", "%y", NARROW, WIDE_WORDS),
                                     "%b", "%c", WIDE_WORDS),
                         x, y),
                MP_UNIMPLEMENTED, "not evenly spaced");
  free(x);
  free(y);
}

// ---- elements narrower than a byte ----

#define EIGHTH "32x128xi4"

// Row i of words holds rows 8i to 8i + 7 of 4-bit elements, each of which has a byte.
static void check_narrow(const char *text, bool is_of_words) {
  bench_t bench;
  bench_begin(&bench);
  bench_operand(&bench, is_of_words ? MP_DTYPE_S32 : MP_DTYPE_S4, is_of_words ? 4 : 32, 128);
  bench_result(&bench, is_of_words ? MP_DTYPE_S4 : MP_DTYPE_S32, is_of_words ? 32 : 4, 128);
  assert_ok(bench_compile(&bench, text));
  uint32_t *words = aligned_alloc(64, 2048);
  uint8_t *parts = aligned_alloc(64, 4096);
  for (int i = 0; i < 4096; ++i) parts[i] = (uint8_t)(is_of_words ? 0xee : (i * 7 + i / 128) % 16);
  for (int i = 0; i < 512; ++i) words[i] = is_of_words ? (uint32_t)i * 2654435761u : 0xeeeeeeee;
  if (is_of_words) {
    assert_ok(bench_run(&bench, (const void *[]){words}, (void *[]){parts}));
  } else {
    assert_ok(bench_run(&bench, (const void *[]){parts}, (void *[]){words}));
  }
  for (int i = 0; i < 4096; ++i) {
    const uint32_t word = words[i / 1024 * 128 + i % 128], part = i / 128 % 8;
    assert_int_equal(parts[i], word >> 4 * part & 15);
  }
  free(words);
  free(parts);
  bench_end(&bench);
}

static void test_bitcast_narrow(void **state) {
  (void)state;
  check_narrow(BITCAST_DMA(EIGHTH, WORDS, BITCAST("%b", "%x", EIGHTH, WORDS), "%b", "%y", WORDS),
               false);
  check_narrow(BITCAST_DMA(WORDS, EIGHTH, BITCAST("%b", "%y", EIGHTH, WORDS), "%x", "%b", WORDS),
               true);
}

// 16-bit elements that are seen as words do not become words of 4-bit elements.
static void test_bitcast_narrow_refused(void **state) {
  (void)state;
  bench_t bench;
  bench_begin(&bench);
  bench_operand(&bench, MP_DTYPE_S16, 8, 128);
  bench_result(&bench, MP_DTYPE_S4, 32, 128);
  assert_ok(bench_compile(
      &bench, BITCAST_DMA(HALVES, EIGHTH,
                          BITCAST("%a", "%x", HALVES, WORDS) BITCAST("%b", "%y", EIGHTH, WORDS),
                          "%a", "%b", WORDS)));
  void *x = counting(512), *y = counting(1024);
  assert_status(bench_run(&bench, (const void *[]){x}, (void *[]){y}), MP_UNIMPLEMENTED,
                "between words of elements of 4 bits and packed words");
  free(x);
  free(y);
  bench_end(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_bitcast_dma),           cmocka_unit_test(test_bitcast_rows),
      cmocka_unit_test(test_bitcast_rows_outer),    cmocka_unit_test(test_bitcast_steps),
      cmocka_unit_test(test_bitcast_rows_refused),  cmocka_unit_test(test_bitcast_narrow),
      cmocka_unit_test(test_bitcast_narrow_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
