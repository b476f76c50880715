// Runs Mosaic kernels: grids and blocks, control flow, memory, DMAs, and what is refused.
#include <math.h>
#include <stdlib.h>

#include "tests/unit/mosaic/mosaic_bench.h"

// ---- grids ----

// 20 rows in blocks of 8: the last block is not whole.
static void test_blocks(void **state) {
  (void)state;
  bench_t bench;
  bench_begin(&bench);
  bench_operand(&bench, MP_DTYPE_F32, 20, 128);
  bench_result(&bench, MP_DTYPE_F32, 20, 128);
  assert_ok(bench_compile(
      &bench, MODULE(ARGS, TYPES, ZERO LOAD("%a", "%x") ADD("%b", "%a", "%a") STORE("%b", "%y"),
                     GRID("3", "arbitrary", ROWS))));
  float *x = counting(20 * 128), *y = counting(24 * 128);
  assert_ok(bench_run(&bench, (const void *[]){x}, (void *[]){y}));
  for (int i = 0; i < 20 * 128; ++i) assert_true(y[i] == 2 * x[i]);
  assert_true(y[20 * 128] == (float)(20 * 128 % 1000));  // behind the array
  free(x);
  free(y);
  bench_end(&bench);
}

static void test_block_outside(void **state) {
  (void)state;
  bench_t bench;
  bench_begin(&bench);
  bench_operand(&bench, MP_DTYPE_F32, 16, 128);
  bench_result(&bench, MP_DTYPE_F32, 16, 128);
  assert_ok(bench_compile(&bench, MODULE(ARGS, TYPES, ZERO LOAD("%a", "%x") STORE("%a", "%y"),
                                         GRID("3", "arbitrary", ROWS))));
  float *x = counting(16 * 128), *y = counting(16 * 128);
  assert_status(bench_run(&bench, (const void *[]){x}, (void *[]){y}), MP_OUT_OF_RANGE,
                "kernel 'k', grid step (2): operand 0 (argument 1 of the kernel): the block with "
                "index 2 of dimension 0 is outside of its 16 elements");
  free(x);
  free(y);
  bench_end(&bench);
}

#define SCRATCH_ARGS  ARGS ", %s: " VMEM("8x128")
#define SCRATCH_TYPES TYPES ", " VMEM("8x128")
// The least of the blocks so far, carried in scratch memory, which begins as NaN.
#define CARRY                                                                              \
  ZERO LOAD("%a", "%x") LOAD("%c", "%s") "%d = " OP "arith.minnumf\"(%a, %c) : (" V ", " V \
                                         ") -> " V "\n" STORE("%d", "%s") STORE("%d", "%y")

static void check_carry(const char *text, bool is_one_block, uint32_t num_parts) {
  bench_t bench;
  bench_begin(&bench);
  bench_operand(&bench, MP_DTYPE_F32, 32, 128);
  bench_result(&bench, MP_DTYPE_F32, is_one_block ? 8 : 32, 128);
  assert_ok(bench_compile(&bench, text));
  assert_int_equal(bench.kernel->num_parts, num_parts);
  float *x = counting(32 * 128), *y = counting(32 * 128);
  assert_ok(bench_run(&bench, (const void *[]){x}, (void *[]){y}));
  for (int i = 0; i < 1024; ++i) {
    float least = NAN;
    for (int k = 0; k < 4; ++k) {
      least = fminf(least, x[k * 1024 + i]);
      if (!is_one_block) assert_true(y[k * 1024 + i] == least);
    }
    if (is_one_block) assert_true(y[i] == least);
  }
  free(x);
  free(y);
  bench_end(&bench);
}

// A kernel that says its steps are parallel, and carries values from one to the next.
static void test_carries(void **state) {
  (void)state;
  check_carry(MODULE(SCRATCH_ARGS, SCRATCH_TYPES, CARRY,
                     ", scratch_operands = 1 : i64" GRID("4", "arbitrary", ROWS)),
              false, 1);
  check_carry(MODULE(SCRATCH_ARGS, SCRATCH_TYPES, CARRY,
                     ", scratch_operands = 1 : i64" GRID("4", "parallel", ROWS)),
              false, 4);
  check_carry(MODULE(SCRATCH_ARGS, SCRATCH_TYPES, CARRY,
                     ", scratch_operands = 1 : i64" GRID(
                         "4", "parallel", "transform_indices = affine_map<(d0) -> (0, 0)>")),
              true, 4);
}

// The block of an array with ten rows in the second of two steps: six rows are past its end.
static void test_unset(void **state) {
  (void)state;
  bench_t bench;
  bench_begin(&bench);
  bench_operand(&bench, MP_DTYPE_F32, 10, 128);
  bench_result(&bench, MP_DTYPE_F32, 16, 128);
  assert_ok(bench_compile(&bench, MODULE(ARGS, TYPES, ZERO LOAD("%a", "%x") STORE("%a", "%y"),
                                         GRID("2", "arbitrary", ROWS))));
  float *x = counting(10 * 128), *y = counting(16 * 128);
  assert_ok(bench_run(&bench, (const void *[]){x}, (void *[]){y}));
  for (int i = 0; i < 16 * 128; ++i) assert_true(i < 10 * 128 ? y[i] == x[i] : isnan(y[i]));
  free(x);
  free(y);
  bench_end(&bench);
}

// ---- functions that newer versions of JAX write as one op ----

#define UNARY(op, attrs) "%b = " OP op "\"(%a) " attrs ": (" V ") -> " V "\n"

static void check_function(const char *text, float (*function)(float x)) {
  bench_t bench;
  bench_begin(&bench);
  bench_operand(&bench, MP_DTYPE_F32, 8, 128);
  bench_result(&bench, MP_DTYPE_F32, 8, 128);
  assert_ok(bench_compile(&bench, text));
  float *x = counting(1024), *y = counting(1024);
  for (int i = 0; i < 1024; ++i) x[i] = (x[i] - 500) / 77;
  assert_ok(bench_run(&bench, (const void *[]){x}, (void *[]){y}));
  for (int i = 0; i < 1024; ++i) assert_float_equal(y[i], function(x[i]), 1e-6);
  free(x);
  free(y);
  bench_end(&bench);
}

static float logistic(float x) {
  return 1 / (1 + expf(-x));
}

// With 8 bits of exponent and 1 of mantissa: 1, 1.5, 2, 3, 4, ...
static float rounded(float x) {
  if (x == 0) return 0;
  int exponent = 0;
  const float fraction = frexpf(x, &exponent);
  return ldexpf(nearbyintf(fraction * 4) / 4, exponent);
}

static void test_functions(void **state) {
  (void)state;
  check_function(
      MODULE(ARGS, TYPES, ZERO LOAD("%a", "%x") UNARY("tpu.logistic", "") STORE("%b", "%y"),
             GRID("1", "arbitrary", ROWS)),
      logistic);
  check_function(
      MODULE(ARGS, TYPES,
             ZERO LOAD("%a", "%x") UNARY("tpu.reduce_precision",
                                         "{exponent_bits = 8 : i32, mantissa_bits = 1 : i32} ")
                 STORE("%b", "%y"),
             GRID("1", "arbitrary", ROWS)),
      rounded);
}

// ---- control flow ----

#define I32(name, number) \
  name " = " OP "arith.constant\"() {value = " number " : i32} : () -> i32\n"

// A loop that swaps the values that it carries: x, x + x, x, ...
static void test_loop(void **state) {
  (void)state;
  bench_t bench;
  bench_begin(&bench);
  bench_operand(&bench, MP_DTYPE_F32, 8, 128);
  bench_result(&bench, MP_DTYPE_F32, 8, 128);
  assert_ok(bench_compile(
      &bench, MODULE("%x: " VMEM("8x128") ", %y: " VMEM("8x128"), VMEM("8x128") ", " VMEM("8x128"),
                     ZERO LOAD("%a", "%x") ADD("%b", "%a", "%a") I32("%n0", "0") I32("%n3", "3")
                         I32("%n1", "1") "%r:2 = " OP
                                         "scf.for\"(%n0, %n3, %n1, %a, %b) ({\n^bb0(%j: i32, %p: " V
                                         ", %q: " V "):\n" OP "scf.yield\"(%q, %p) : (" V ", " V
                                         ") -> ()\n}) : (i32, i32, i32, " V ", " V ") -> (" V ", " V
                                         ")\n" STORE("%r#0", "%y"),
                     "")));
  float *x = counting(1024), *y = counting(1024);
  assert_ok(bench_run(&bench, (const void *[]){x}, (void *[]){y}));
  for (int i = 0; i < 1024; ++i) assert_true(y[i] == 2 * x[i]);
  free(x);
  free(y);
  bench_end(&bench);
}

// ---- memory ----

#define HBM(dims) "memref<" dims "xf32, #tpu.memory_space<any>>"
#define SEMAPHORE "memref<!tpu.dma_semaphore, #tpu.memory_space<semaphore_mem>>"
#define SLICE                                                                            \
  "%part = " OP                                                                          \
  "tpu.memref_slice\"(%x, %n, %n0) {operandSegmentSizes = array<i32: 1, 2, 0>} : (" HBM( \
      "32x128") ", i32, i32) -> " HBM("8x128") "\n"
#define DMA_TYPES HBM("32x128") ", " VMEM("8x128") ", " SEMAPHORE
#define WAIT                                                                               \
  OP "tpu.wait_dma2\"(%s, %part, %y) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : " \
     "(" SEMAPHORE ", " HBM("8x128") ", " VMEM("8x128") ") -> ()\n"
#define ENQUEUE                                                                           \
  OP "tpu.enqueue_dma\"(%part, %y, %s) {operandSegmentSizes = array<i32: 1, 0, 1, 1, 0, " \
     "0>} : (" HBM("8x128") ", " VMEM("8x128") ", " SEMAPHORE ") -> ()\n"
#define DMA_MODULE(row, body)                                                       \
  MODULE("%x: " HBM("32x128") ", %y: " VMEM("8x128") ", %s: " SEMAPHORE, DMA_TYPES, \
         I32("%n", row) I32("%n0", "0") SLICE body, ", scratch_operands = 1 : i64")

static mp_status_t run_dma(const char *text, float **out_y) {
  bench_t bench;
  bench_begin(&bench);
  bench_operand(&bench, MP_DTYPE_F32, 32, 128);
  bench_result(&bench, MP_DTYPE_F32, 8, 128);
  assert_ok(bench_compile(&bench, text));
  float *x = counting(32 * 128);
  *out_y = counting(1024);
  mp_status_t status = bench_run(&bench, (const void *[]){x}, (void *[]){*out_y});
  free(x);
  bench_end(&bench);
  return status;
}

static void test_dma(void **state) {
  (void)state;
  float *y = NULL;
  assert_ok(run_dma(DMA_MODULE("16", ENQUEUE WAIT), &y));
  for (int i = 0; i < 1024; ++i) assert_true(y[i] == (float)((16 * 128 + i) % 1000));
  free(y);
  assert_status(run_dma(DMA_MODULE("16", WAIT), &y), MP_FAILED_PRECONDITION,
                "it waits for a semaphore that nothing signals: it is 0, and the wait is for 4096");
  free(y);
  // A part that is only waited for may be outside: its size counts.
  assert_status(run_dma(DMA_MODULE("25", WAIT), &y), MP_FAILED_PRECONDITION,
                "it is 0, and the wait is for 4096");
  free(y);
  assert_status(run_dma(DMA_MODULE("16", ENQUEUE WAIT WAIT), &y), MP_FAILED_PRECONDITION,
                "tpu.wait_dma2");
  free(y);
  assert_status(run_dma(DMA_MODULE("25", ENQUEUE WAIT), &y), MP_OUT_OF_RANGE,
                "argument 0 of the kernel: elements 25 to 32 of dimension 0 are outside of its 32");
  free(y);
}

// The form that JAX 0.12 writes: the DMA's operands, and whether its arrival is waited for.
#define WAIT_FOR(what, semaphores, operands, types)                                  \
  OP "tpu.wait_dma\"(" operands ") {operandSegmentSizes = array<i32: 1, " semaphores \
     ", 0, 0>, wait_target = " what "} : (" types ") -> ()\n"
#define PARTS        HBM("8x128") ", " VMEM("8x128")
#define WAIT_ARRIVAL WAIT_FOR("true", "0, 1, 1", "%part, %y, %s", PARTS ", " SEMAPHORE)
#define WAIT_READ(what) \
  WAIT_FOR(what, "1, 1, 0", "%part, %s, %y", HBM("8x128") ", " SEMAPHORE ", " VMEM("8x128"))

static void test_wait_for_arrival(void **state) {
  (void)state;
  float *y = NULL;
  assert_ok(run_dma(DMA_MODULE("16", ENQUEUE WAIT_ARRIVAL), &y));
  for (int i = 0; i < 1024; ++i) assert_true(y[i] == (float)((16 * 128 + i) % 1000));
  free(y);
  assert_status(run_dma(DMA_MODULE("25", WAIT_ARRIVAL), &y), MP_FAILED_PRECONDITION,
                "it is 0, and the wait is for 4096");
  free(y);
  assert_status(run_dma(DMA_MODULE("16", ENQUEUE WAIT_ARRIVAL WAIT_READ("false")), &y),
                MP_FAILED_PRECONDITION, "tpu.wait_dma");
  free(y);
}

static void test_wait_needs_semaphore(void **state) {
  (void)state;
  const char *text = DMA_MODULE("16", ENQUEUE WAIT_READ("true"));
  mp_mosaic_module_t *module = NULL;
  assert_ok(mp_mosaic_read(text, strlen(text), &module));
  assert_status(mp_mosaic_verify(module), MP_INVALID_ARGUMENT,
                "it has no semaphore for what it waits for");
  mp_mosaic_module_release(module);
}

// ---- results that are computed where they are stored ----

#define NUMBERS(lhs, rhs, order)                                               \
  "{dimension_numbers = #tpu.dot_dimension_numbers<[1], [" rhs "], [0], [" lhs \
  "], [0, 0, 1, " order "], [], []>, transpose_lhs_hint = false}"
#define SQUARE "vector<8x8xf32>"
// y = x, n = (y y') x, y = n, z = old y - n: the memory of y may not change before z is computed.
#define STORE_EARLY                                                                               \
  ZERO LOAD("%a", "%x") STORE("%a", "%y") LOAD(                                                   \
      "%o", "%y") "%c0 = " OP "arith.constant\"() {value = dense<0.0> : " SQUARE                  \
                  "} : () -> " SQUARE "\n%c1 = " OP "arith.constant\"() {value = dense<0.0> : " V \
                  "} : () -> " V "\n%s = " OP "tpu.matmul\"(%o, %o, %c0) " NUMBERS(               \
                      "0", "1", "0") " : (" V ", " V ", " SQUARE ") -> " SQUARE "\n%n = " OP      \
                                     "tpu.matmul\"(%s, %a, %c1) " NUMBERS(                        \
                                         "1", "0", "1") " : (" SQUARE ", " V ", " V ") -> " V     \
                                                        "\n%d = " OP "arith.subf\"(%o, %n) : (" V \
                                                        ", " V ") -> " V "\n" STORE("%n", "%y")   \
                                                            STORE("%d", "%w")

static void test_store_early(void **state) {
  (void)state;
  bench_t bench;
  bench_begin(&bench);
  bench_operand(&bench, MP_DTYPE_F32, 8, 128);
  bench_result(&bench, MP_DTYPE_F32, 8, 128);
  bench_result(&bench, MP_DTYPE_F32, 8, 128);
  assert_ok(bench_compile(
      &bench, MODULE("%x: " VMEM("8x128") ", %y: " VMEM("8x128") ", %w: " VMEM("8x128"),
                     VMEM("8x128") ", " VMEM("8x128") ", " VMEM("8x128"), STORE_EARLY, "")));
  float *x = counting(1024), *y = counting(1024), *z = counting(1024);
  for (int i = 0; i < 1024; ++i) x[i] = (float)(i % 3) - 1;
  assert_ok(bench_run(&bench, (const void *[]){x}, (void *[]){y, z}));
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < 128; ++j) {
      float wanted = 0;
      for (int k = 0; k < 8; ++k) {
        float product = 0;
        for (int l = 0; l < 128; ++l) product += x[i * 128 + l] * x[k * 128 + l];
        wanted += product * x[k * 128 + j];
      }
      assert_true(y[i * 128 + j] == wanted);
      assert_true(z[i * 128 + j] == x[i * 128 + j] - wanted);
    }
  }
  free(x);
  free(y);
  free(z);
  bench_end(&bench);
}

// ---- refusals ----

#define XY_MODULE(body) \
  MODULE("%x: " VMEM("8x128") ", %y: " VMEM("8x128"), VMEM("8x128") ", " VMEM("8x128"), body, "")

static void test_refusals(void **state) {
  (void)state;
  bench_t bench;
  bench_begin(&bench);
  bench_operand(&bench, MP_DTYPE_F32, 8, 128);
  bench_result(&bench, MP_DTYPE_F32, 8, 128);
  assert_status(bench_compile(&bench, XY_MODULE(ZERO OP "tpu.barrier\"(%z) : (index) -> ()\n")),
                MP_UNIMPLEMENTED, "tpu.barrier");
  bench_operand(&bench, MP_DTYPE_F32, 8, 128);
  assert_status(bench_compile(&bench, XY_MODULE(ZERO LOAD("%a", "%x") STORE("%a", "%y"))),
                MP_UNIMPLEMENTED, "2 arguments, which do not fit to 2 operands and 1 results");
  bench_end(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_blocks),
      cmocka_unit_test(test_block_outside),
      cmocka_unit_test(test_carries),
      cmocka_unit_test(test_loop),
      cmocka_unit_test(test_dma),
      cmocka_unit_test(test_wait_for_arrival),
      cmocka_unit_test(test_wait_needs_semaphore),
      cmocka_unit_test(test_store_early),
      cmocka_unit_test(test_unset),
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_functions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
