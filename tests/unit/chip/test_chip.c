// The chip of a description: what is derived, what is a default, and calibrations.
#include "sim/chip/cost/chip.h"
#include "sim/chip/cost/matmul_cost.h"
#include "tests/unit/support/unit.h"

static mp_chip_t chip_of(const char *description) {
  mp_pod_t *pod = NULL;
  mp_chip_t chip;
  assert_ok(mp_pod_create_from_name(mp_str(description), "test", &pod));
  assert_ok(mp_chip_from_pod(mp_pod_info(pod), &chip));
  mp_pod_release(pod);
  return chip;
}

static void expect_usable_without_latencies(const mp_chip_t *chip) {
  for (int kind = 0; kind < MP_FLOP_KIND_COUNT; ++kind) {
    assert_true(chip->flops[kind] > 0 && chip->flops[kind] < 1e30);
  }
  assert_true(chip->vector_flops > 0 && chip->memory_bandwidth > 0);
  for (int i = 0; i < MP_WORK_CLASS_COUNT; ++i) {
    assert_true(chip->efficiency[i] > 0 && chip->efficiency[i] <= 1);
  }
}

static void expect_usable(const mp_chip_t *chip) {
  expect_usable_without_latencies(chip);
  assert_true(chip->op_latency > 0 && chip->launch_latency > 0 && chip->scalar_latency > 0);
}

static void what_is_described_counts(void **state) {
  (void)state;
  const mp_chip_t chip = chip_of(
      "torus:2x2 flops.bf16:200T flops.f32:50T flops.s8:400T flops.vector:5T "
      "memory.bandwidth:1TB/s launch_latency:2us op_latency:1us matrix_unit:256x128");
  expect_usable(&chip);
  assert_true(chip.flops[MP_FLOP_BF16] == 200e12 && chip.flops[MP_FLOP_F16] == 200e12);
  assert_true(chip.flops[MP_FLOP_F32] == 50e12 && !chip.f32_by_bf16);
  assert_true(chip.flops[MP_FLOP_S8] == 400e12 && chip.flops[MP_FLOP_S4] == 400e12);
  assert_true(chip.flops[MP_FLOP_F8] == 200e12 && chip.flops[MP_FLOP_F64] == 50e12 / 32);
  assert_true(chip.vector_flops == 5e12 && chip.memory_bandwidth == 1e12);
  assert_true(chip.launch_latency == 2e-6 && chip.op_latency == 1e-6);
  assert_true(chip.matrix_rows == 256 && chip.matrix_columns == 128);
}

// No time at all is a time, unlike one that is not described.
static void latencies_may_be_zero(void **state) {
  (void)state;
  const mp_chip_t chip = chip_of("v5e:2x2 launch_latency:0 op_latency:0ns");
  assert_true(chip.launch_latency == 0 && chip.op_latency == 0 && chip.scalar_latency == 0);
  expect_usable_without_latencies(&chip);
}

static void what_is_not_described_is_derived(void **state) {
  (void)state;
  static const char *const descriptions[] = {"torus:2x2",
                                             "torus:2x2 flops.f64:1T",
                                             "torus:2x2 flops.s4:1P",
                                             "torus:2x2 flops.f8:2P",
                                             "torus:2x2 memory.bandwidth:3TB/s",
                                             "v2:2x2",
                                             "v5e:2x2"};
  for (size_t i = 0; i < sizeof(descriptions) / sizeof(descriptions[0]); ++i) {
    const mp_chip_t chip = chip_of(descriptions[i]);
    expect_usable(&chip);
  }
  mp_chip_t chip = chip_of("torus:2x2 flops.bf16:320T");
  assert_true(chip.f32_by_bf16 && chip.flops[MP_FLOP_F32] == 320e12);
  assert_true(chip.vector_flops == 10e12);
  // Without a matrix unit for narrow types, all types run at one rate.
  chip = chip_of("torus:2x2 flops.f32:10T");
  assert_true(!chip.f32_by_bf16 && chip.flops[MP_FLOP_BF16] == 10e12);
  assert_true(chip.vector_flops == 10e12);
}

// A matmul in f32, of bf16 ones where there are no others.
static void precision_costs_passes(void **state) {
  (void)state;
  mp_chip_t chip = chip_of("torus:2x2 flops.bf16:100T flops.vector:1T op_latency:1us");
  const mp_work_t work = {.work_class = MP_WORK_MATMUL,
                          .matmul = {.batch = 1,
                                     .m = 1024,
                                     .n = 1024,
                                     .k = 1024,
                                     .dtype = MP_DTYPE_F32,
                                     .passes = 1,
                                     .bf16_passes = 6}};
  const mp_matmul_kernel_t matmul = {.matmul = &work.matmul, .efficiency = 1};
  const double flops = 2.0 * 1024 * 1024 * 1024;
  assert_float_equal(mp_matmul_seconds(&chip, &matmul) * 1e6, (6 * flops / 100e12 + 1e-6) * 1e6,
                     1e-6);
  chip = chip_of("torus:2x2 flops.bf16:100T flops.f32:50T flops.vector:1T op_latency:1us");
  assert_float_equal(mp_matmul_seconds(&chip, &matmul) * 1e6, (flops / 50e12 + 1e-6) * 1e6, 1e-6);
}

static void kinds_are_those_of_types(void **state) {
  (void)state;
  static const struct {
    mp_dtype_t dtype;
    mp_flop_kind_t kind;
  } cases[] = {
      {MP_DTYPE_F64, MP_FLOP_F64},  {MP_DTYPE_C128, MP_FLOP_F64},  {MP_DTYPE_F32, MP_FLOP_F32},
      {MP_DTYPE_TF32, MP_FLOP_F32}, {MP_DTYPE_C64, MP_FLOP_F32},   {MP_DTYPE_BF16, MP_FLOP_BF16},
      {MP_DTYPE_F16, MP_FLOP_F16},  {MP_DTYPE_F8E5M2, MP_FLOP_F8}, {MP_DTYPE_F4E2M1FN, MP_FLOP_F8},
      {MP_DTYPE_S8, MP_FLOP_S8},    {MP_DTYPE_U8, MP_FLOP_S8},     {MP_DTYPE_U4, MP_FLOP_S4},
      {MP_DTYPE_S2, MP_FLOP_S4},    {MP_DTYPE_S32, MP_FLOP_F32},   {MP_DTYPE_BOOL, MP_FLOP_F32},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    assert_int_equal(mp_chip_flop_kind(cases[i].dtype), cases[i].kind);
  }
}

// ---- calibrations ----

static void a_calibration_sets_efficiencies(void **state) {
  (void)state;
  mp_chip_t chip = chip_of("v5e:2x2");
  assert_ok(mp_chip_calibrate(&chip, "c.yaml",
                              MP_STR("# measured\nmatmul: 0.8  # large ones\n\n  gather : "
                                     "2.5e-1\r\nelementwise: 1")));
  assert_true(chip.efficiency[MP_WORK_MATMUL] == 0.8);
  assert_true(chip.efficiency[MP_WORK_GATHER] == 0.25);
  assert_true(chip.efficiency[MP_WORK_ELEMENTWISE] == 1);
}

static void bad_calibrations_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *text, *message;
  } cases[] = {
      {"matmul: 0.5\nmatmull: 0.5\n", "c.yaml:2: key 'matmull': unknown, did you mean 'matmul'?"},
      {"qqqqqqqq: 1",
       "c.yaml:1: key 'qqqqqqqq': unknown, expected a class of operations such as "
       "'matmul'"},
      {"matmul: 1.5",
       "c.yaml:1: key 'matmul': expected a share of the peak above 0 and up to 1, "
       "such as 0.7, got '1.5'"},
      {"matmul: 0", "got '0'"},
      {"matmul: -1", "got '-1'"},
      {"matmul: fast", "got 'fast'"},
      {"matmul", "got ''"},
      {"matmul: nan", "got 'nan'"},
      {"sort: 1\n\nsort: 1", "c.yaml:3: key 'sort': given twice, first in line 1"},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    mp_chip_t chip = chip_of("v5e:2x2");
    chip.efficiency[MP_WORK_MATMUL] = 0.123;
    assert_status(mp_chip_calibrate(&chip, "c.yaml", mp_str(cases[i].text)), MP_INVALID_ARGUMENT,
                  cases[i].message);
    assert_true(chip.efficiency[MP_WORK_MATMUL] == 0.123);
  }
  mp_chip_t chip = chip_of("v5e:2x2");
  assert_status(mp_chip_calibrate_by_file(&chip, "/nowhere/c.yaml"), MP_NOT_FOUND,
                "cannot open calibration file '/nowhere/c.yaml'");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_described_counts),
      cmocka_unit_test(latencies_may_be_zero),
      cmocka_unit_test(what_is_not_described_is_derived),
      cmocka_unit_test(precision_costs_passes),
      cmocka_unit_test(kinds_are_those_of_types),
      cmocka_unit_test(a_calibration_sets_efficiencies),
      cmocka_unit_test(bad_calibrations_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
