// Mistakes that checked runs of Mosaic kernels find.
#include "tests/unit/mosaic/mosaic_bench.h"

#define HBM(dims)      "memref<" dims "xf32, #tpu.memory_space<any>>"
#define SEMAPHORE_TYPE "memref<!tpu.dma_semaphore, #tpu.memory_space<semaphore_mem>>"
#define DMA_ARGS \
  "%x: " HBM("8x128") ", %y: " VMEM("8x128") ", %b: " VMEM("8x128") ", %s: " SEMAPHORE_TYPE
#define DMA_TYPES HBM("8x128") ", " VMEM("8x128") ", " VMEM("8x128") ", " SEMAPHORE_TYPE
#define DMA_MODULE(body)                 \
  MODULE(DMA_ARGS, DMA_TYPES, ZERO body, \
         ", scratch_operands = 2 : i64, iteration_bounds = array<i64>, window_params = [{}, {}]")
#define ENQUEUE(from, from_type, to)                  \
  OP "tpu.enqueue_dma\"(" from ", " to                \
     ", %s) {operandSegmentSizes = array<i32: 1, 0, " \
     "1, 1, 0, 0>} : (" from_type ", " VMEM("8x128") ", " SEMAPHORE_TYPE ") -> ()\n"
#define START ENQUEUE("%x", HBM("8x128"), "%b")
#define WAIT                                                                            \
  OP "tpu.wait_dma2\"(%s, %x, %b) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : " \
     "(" SEMAPHORE_TYPE ", " HBM("8x128") ", " VMEM("8x128") ") -> ()\n"

// Runs the kernel on a counting array, with checks.
static mp_status_t run(const char *text) {
  bench_t bench;
  bench_begin(&bench);
  bench.target.checks = true;
  bench_operand(&bench, MP_DTYPE_F32, 8, 128);
  bench_result(&bench, MP_DTYPE_F32, 8, 128);
  mp_status_t status = bench_compile(&bench, text);
  float *x = counting(1024), *y = counting(1024);
  if (status == NULL) status = bench_run(&bench, (const void *[]){x}, (void *[]){y});
  for (int i = 0; status == NULL && i < 1024; ++i) assert_true(y[i] == x[i]);
  free(x);
  free(y);
  bench_end(&bench);
  return status;
}

static void test_races(void **state) {
  (void)state;
  assert_ok(run(DMA_MODULE(START WAIT LOAD("%a", "%b") STORE("%a", "%y"))));
  assert_status(run(DMA_MODULE(START LOAD("%a", "%b") WAIT STORE("%a", "%y"))),
                MP_FAILED_PRECONDITION,
                "vector.load, <mosaic>:6:6: race: it reads scratch memory 0 (argument 2 of the "
                "kernel), which a DMA may still write: no wait has shown that the DMA is complete "
                "which was started by tpu.enqueue_dma, <mosaic>:5:1, grid step ()");
  assert_status(
      run(DMA_MODULE(START WAIT LOAD("%a", "%b") START STORE("%a", "%b") WAIT STORE("%a", "%y"))),
      MP_FAILED_PRECONDITION, "race: it writes scratch memory 0");
  // A second one into the same memory.
  assert_status(run(DMA_MODULE(START START WAIT WAIT LOAD("%a", "%b") STORE("%a", "%y"))),
                MP_FAILED_PRECONDITION, "tpu.enqueue_dma");
}

static void test_semaphores(void **state) {
  (void)state;
  assert_status(run(DMA_MODULE(START WAIT LOAD("%a", "%b") STORE("%a", "%y") START)),
                MP_FAILED_PRECONDITION,
                "kernel 'k': the kernel ends while a semaphore is not zero: number 0 of scratch "
                "memory 1 (argument 3 of the kernel) is 4096; no wait has shown that the DMA is "
                "complete which was started by tpu.enqueue_dma");
}

#define COPY(types, body)                                                                      \
  MODULE("%x: " VMEM("8x128") ", %y: " VMEM("8x128") ", %b: " VMEM("8x128"), types, ZERO body, \
         ", scratch_operands = 1 : i64, iteration_bounds = array<i64>, window_params = [{}, {}]")
#define SELECT(name, a, b)                                                                      \
  "%m = " OP                                                                                    \
  "arith.constant\"() {value = dense<true> : vector<8x128xi1>} : () -> "                        \
  "vector<8x128xi1>\n" name " = " OP "arith.select\"(%m, " a ", " b ") : (vector<8x128xi1>, " V \
  ", " V ") -> " V "\n"
#define TYPES3 VMEM("8x128") ", " VMEM("8x128") ", " VMEM("8x128")

// Unset memory may be read if nothing depends on it.
static void test_unset(void **state) {
  (void)state;
  assert_ok(
      run(COPY(TYPES3, LOAD("%a", "%x") STORE("%a", "%b") LOAD("%c", "%b") STORE("%c", "%y"))));
  assert_status(
      run(COPY(TYPES3, LOAD("%a", "%x") LOAD("%c", "%b") ADD("%d", "%a", "%c") STORE("%d", "%y"))),
      MP_FAILED_PRECONDITION,
      "kernel 'k': vector.load, <mosaic>:6:6, grid step (): it reads scratch memory 0 "
      "(argument 2 of the kernel), which nothing has written, and the kernel's results "
      "depend on it");
  assert_ok(run(
      COPY(TYPES3, LOAD("%a", "%x") LOAD("%c", "%b") SELECT("%d", "%a", "%c") STORE("%d", "%y"))));
  assert_status(run(COPY(TYPES3, LOAD("%a", "%x") LOAD("%c", "%b") SELECT("%d", "%c", "%a")
                                     STORE("%d", "%y"))),
                MP_FAILED_PRECONDITION, "scratch memory 0");
}

// A sum over the steps in scratch memory, which the first step sets.
#define SUM                                                                          \
  ZERO "%zero = " OP "arith.constant\"() {value = 0 : i32} : () -> i32\n%f = " OP    \
       "arith.cmpi\"(%i, %zero) {predicate = 0 : i64} : (i32, i32) -> i1\n" OP       \
       "scf.if\"(%f) ({\n" LOAD("%p", "%x") STORE("%p", "%s") OP                     \
      "scf.yield\"() : () -> ()\n}, "                                                \
      "{\n}) : (i1) -> ()\n" LOAD("%a", "%x") LOAD("%c", "%s") ADD("%d", "%a", "%c") \
          STORE("%d", "%s") STORE("%d", "%y")
#define SUM_MODULE(semantics)                                        \
  MODULE(ARGS ", %s: " VMEM("8x128"), TYPES ", " VMEM("8x128"), SUM, \
         ", scratch_operands = 1 : i64" GRID("4", semantics, ROWS))

static mp_status_t run_for_cores(const char *text, int32_t cores) {
  bench_t bench;
  bench_begin(&bench);
  bench.target = (mp_mosaic_target_t){.checks = true, .cores = cores};
  bench_operand(&bench, MP_DTYPE_F32, 32, 128);
  bench_result(&bench, MP_DTYPE_F32, 32, 128);
  assert_ok(bench_compile(&bench, text));
  float *x = counting(4096), *y = counting(4096);
  mp_status_t status = bench_run(&bench, (const void *[]){x}, (void *[]){y});
  free(x);
  free(y);
  bench_end(&bench);
  return status;
}

static void test_two_cores(void **state) {
  (void)state;
  assert_ok(run_for_cores(SUM_MODULE("parallel"), 1));
  assert_ok(run_for_cores(SUM_MODULE("arbitrary"), 2));
  assert_status(
      run_for_cores(SUM_MODULE("parallel"), 2), MP_FAILED_PRECONDITION,
      "grid step (2): it reads scratch memory 0 (argument 3 of the kernel), which nothing "
      "has written on this core: the chip divides parallel steps between two");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_races), cmocka_unit_test(test_semaphores), cmocka_unit_test(test_unset),
      cmocka_unit_test(test_two_cores)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
