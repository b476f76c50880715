// "minipod.check_index": indices within bounds pass, others are errors that show all numbers.
#include "tests/unit/support/kernel_test.h"

static void begin(kernel_bench_t *bench, uint32_t num_operands, const char *config) {
  bench_begin(bench, MP_OP_CUSTOM_CALL);
  for (uint32_t i = 0; i < num_operands; ++i) bench_operand(bench, MP_DTYPE_S32, 0, NULL);
  bench_result(bench, MP_DTYPE_S32, 0, NULL);
  bench_string(bench, MP_ATTR_CALL_TARGET_NAME, "minipod.check_index");
  bench_string(bench, MP_ATTR_BACKEND_CONFIG, config);
}

static mp_status_t run(const kernel_bench_t *bench, const int32_t *numbers, int32_t *out) {
  const void *operands[BENCH_MAX];
  for (uint32_t i = 0; i < bench->num_operands; ++i) operands[i] = &numbers[i];
  const mp_kernel_call_t call = {.operands = operands, .results = (void *[]){out}};
  return bench->kernel->run(bench->kernel, &call);
}

static void indices_are_compared(void **state) {
  (void)state;
  kernel_bench_t bench;
  begin(&bench, 7, "2;[{0}, {3}] in step {6}, {7} {} {x {");
  bench_make(&bench);
  int32_t out = 0;
  assert_ok(run(&bench, (int32_t[]){5, 0, 5, -2, -2, 3, 9}, &out));
  assert_int_equal(out, 5);
  const char *said = "[5, -3] in step 9, {7} {} {x {";
  assert_status(run(&bench, (int32_t[]){5, 0, 5, -3, -2, 3, 9}, &out), MP_OUT_OF_RANGE, said);
  assert_status(run(&bench, (int32_t[]){6, 0, 5, 0, -2, 3, 9}, &out), MP_OUT_OF_RANGE, "[6, 0]");
  assert_status(run(&bench, (int32_t[]){0, 0, 5, 4, -2, 3, 9}, &out), MP_OUT_OF_RANGE, "[0, 4]");
  bench_end(&bench);
}

static void what_is_no_check_is_refused(void **state) {
  (void)state;
  static const char *const configs[] = {"",   ";",   "1",  "x;",
                                        "0;", "-1;", "3;", "99999999999999999999;"};
  for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); ++i) {
    kernel_bench_t bench;
    begin(&bench, 8, configs[i]);
    bench_make_op(&bench);
    mp_status_t status = mp_kernel_create(bench.module->arena, bench.op, &bench.kernel);
    if (i == 2) {
      assert_ok(status);  // a check without a text
    } else {
      assert_status(status, MP_INVALID_ARGUMENT, "backend_config");
    }
    bench_end(&bench);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(indices_are_compared),
      cmocka_unit_test(what_is_no_check_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
