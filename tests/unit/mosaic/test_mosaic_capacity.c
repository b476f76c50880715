// Kernels that need more VMEM or SMEM than they may have.
#include "tests/unit/mosaic/mosaic_bench.h"

#define SPACED(type, space) "memref<" type ", #tpu.memory_space<" space ">>"
#define FIXED               "transform_indices = affine_map<(d0) -> (0, 0)>"
#define WINDOWS(n, modes) \
  ", iteration_bounds = array<i64: " n ">, window_params = [{" ROWS "}, {" ROWS modes "}]"

static mp_status_t compile_for(const char *text, mp_mosaic_target_t target, int64_t vmem_limit) {
  bench_t bench;
  bench_begin(&bench);
  bench.target = target;
  bench.vmem_limit = vmem_limit;
  bench_operand(&bench, MP_DTYPE_F32, 32, 128);
  bench_result(&bench, MP_DTYPE_F32, 32, 128);
  mp_status_t status = bench_compile(&bench, text);
  bench_end(&bench);
  return status;
}

static mp_status_t compile_with(const char *text, int64_t vmem_limit) {
  return compile_for(text, (mp_mosaic_target_t){0}, vmem_limit);
}

#define COPY ZERO LOAD("%a", "%x") STORE("%a", "%y")

// Blocks have 4 KiB, in two buffers each if there is more than one step.
static void test_blocks(void **state) {
  (void)state;
  assert_ok(compile_with(MODULE(ARGS, TYPES, COPY, WINDOWS("4", "")), 16384));
  assert_status(
      compile_with(MODULE(ARGS, TYPES, COPY, WINDOWS("4", "")), 16383), MP_RESOURCE_EXHAUSTED,
      "Ran out of memory in memory space vmem while allocating on stack for Mosaic function 'k', "
      "which needs 16384 bytes of VMEM, of which it may have 16383: operand 0 4096 x 2 buffers, "
      "result 0 4096 x 2 buffers\n"
      "input window allocation for operator input 0. The window shape is f32[8,128], while the "
      "full "
      "shape is f32[32,128]. This allocation has 2 buffering levels.\n"
      "output window allocation for operator output 0. The window shape is f32[8,128], while");
  assert_ok(compile_with(MODULE(ARGS, TYPES, COPY, WINDOWS("1", "")), 8192));
  assert_ok(compile_with(
      MODULE(ARGS, TYPES, COPY, WINDOWS("4", ", pipeline_mode = #tpu.pipeline_mode<synchronous>")),
      12288));
  assert_status(
      compile_with(MODULE(ARGS, TYPES, COPY,
                          WINDOWS("4", ", pipeline_mode = #tpu.pipeline_mode<synchronous>")),
                   12287),
      MP_RESOURCE_EXHAUSTED,
      "operator output 0. The window shape is f32[8,128], while the full shape is f32[32,128]. "
      "This "
      "allocation is single buffered.");
  assert_ok(compile_with(MODULE(ARGS, TYPES, COPY, GRID("4", "arbitrary", FIXED)), 12288));
}

// Rows of scratch memory are padded to 128 lanes. Regions that follow each other reuse memory.
#define ALLOCA(type)                                               \
  OP "tpu.region\"() ({\n%m = " OP                                 \
     "memref.alloca\"() {operandSegmentSizes = array<i32: 0, 0>} " \
     ": () -> " SPACED(type, "vmem") "\n" OP "tpu.yield\"() : () -> ()\n}) : () -> ()\n"

static void test_scratch(void **state) {
  (void)state;
  const char *text =
      MODULE(ARGS ", %s: " SPACED("8x1xf32", "vmem"), TYPES ", " SPACED("8x1xf32", "vmem"),
             COPY ALLOCA("8x128xf32") ALLOCA("16x128xbf16"),
             ", scratch_operands = 1 : i64" GRID("1", "arbitrary", ROWS));
  assert_ok(compile_with(text, 16384));
  assert_status(compile_with(text, 16383), MP_RESOURCE_EXHAUSTED,
                "scratch argument 3 4096, scoped memory 4096");
}

static void test_most(void **state) {
  (void)state;
  assert_status(compile_with(MODULE(ARGS ", %s: " SPACED("393217x128xf32", "vmem"),
                                    TYPES ", " SPACED("393217x128xf32", "vmem"), COPY,
                                    ", scratch_operands = 1 : i64" GRID("1", "arbitrary", ROWS)),
                             0),
                MP_RESOURCE_EXHAUSTED, "of VMEM, of which it may have 201326592");
  assert_status(compile_with(MODULE(ARGS ", %s: " SPACED("262145xi32", "smem"),
                                    TYPES ", " SPACED("262145xi32", "smem"), COPY,
                                    ", scratch_operands = 1 : i64" GRID("1", "arbitrary", ROWS)),
                             0),
                MP_RESOURCE_EXHAUSTED,
                "needs 1048580 bytes of SMEM, of which it may have 1048576: scratch argument 3");
}

// The target's memories are a limit, too.
static void test_target(void **state) {
  (void)state;
  const char *text =
      MODULE(ARGS ", %s: " SPACED("1024xi32", "smem"), TYPES ", " SPACED("1024xi32", "smem"), COPY,
             ", scratch_operands = 1 : i64" GRID("1", "arbitrary", ROWS));
  const mp_mosaic_target_t fits = {.vmem = 8192, .smem = 4096};
  assert_ok(compile_for(text, fits, 1 << 20));
  assert_status(compile_for(text, (mp_mosaic_target_t){.vmem = 8191}, 1 << 20),
                MP_RESOURCE_EXHAUSTED, "needs 8192 bytes of VMEM, of which it may have 8191");
  assert_status(compile_for(text, (mp_mosaic_target_t){.smem = 4095}, 0), MP_RESOURCE_EXHAUSTED,
                "needs 4096 bytes of SMEM, of which it may have 4095");
  const mp_mosaic_target_t gives_less = {.vmem = 1 << 20, .scoped_vmem = 8191};
  assert_ok(compile_for(text, gives_less, 8192));
  assert_status(compile_for(text, gives_less, 0), MP_RESOURCE_EXHAUSTED,
                "needs 8192 bytes of VMEM, of which it may have 8191 without vmem_limit_bytes: op");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_blocks),
      cmocka_unit_test(test_scratch),
      cmocka_unit_test(test_most),
      cmocka_unit_test(test_target),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
