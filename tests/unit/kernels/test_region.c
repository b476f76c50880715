// Region functions: registers, results, captured values, what is seen through and what is refused.
#include "sim/kernels/elementwise/region.h"

#include <math.h>

#include "tests/unit/support/region_test.h"

typedef struct {
  kernel_bench_t bench;
  mp_block_t *block;
  const mp_region_fn_t *fn;
} fixture_t;

static void begin(fixture_t *f, uint32_t num_args, const mp_dtype_t *dtypes) {
  bench_begin(&f->bench, MP_OP_REDUCE);
  f->block = region_begin(&f->bench, num_args, dtypes);
}

static void compile(fixture_t *f) {
  bench_operand(&f->bench, MP_DTYPE_F32, 0, NULL);
  bench_make_op(&f->bench);
  assert_ok(mp_region_fn_create(f->bench.module->arena, f->block, &f->fn));
}

static void run(const fixture_t *f, int64_t n, const void *const *in, const void *const *captures,
                void *const *out) {
  size_t bytes = (mp_region_fn_scratch_bytes(f->fn) + 64) & ~(size_t)63;
  void *scratch = aligned_alloc(64, bytes);
  assert_non_null(scratch);
  memset(scratch, 0xCD, bytes);
  mp_region_fn_run(f->fn, n, in, captures, out, scratch);
  free(scratch);
}

static const mp_dtype_t g_two_f32[] = {MP_DTYPE_F32, MP_DTYPE_F32};

// Many values, most of them dead soon: registers are reused, and none too early.
static void test_long_computation(void **state) {
  (void)state;
  fixture_t f;
  begin(&f, 2, g_two_f32);
  mp_value_t *x = &f.block->args[0], *y = &f.block->args[1], *early = x;
  for (int i = 0; i < 50; ++i) {
    x = region_binary(&f.bench, f.block, MP_OP_ADD, x, y);
    if (i == 3) early = x;
    if (i % 7 == 0) y = region_binary(&f.bench, f.block, MP_OP_SUBTRACT, x, y);
  }
  x = region_binary(&f.bench, f.block, MP_OP_MULTIPLY, x, early);
  region_return(&f.bench, f.block, 1, &x);
  compile(&f);
  assert_in_range(mp_region_fn_scratch_bytes(f.fn), 1, 6 * MP_REGION_MAX_LANES * sizeof(float));
  float a[MP_REGION_MAX_LANES], b[MP_REGION_MAX_LANES];
  for (int i = 0; i < MP_REGION_MAX_LANES; ++i) {
    a[i] = (float)i;
    b[i] = (float)(i % 3);
  }
  float wanted[MP_REGION_MAX_LANES];
  for (int k = 0; k < MP_REGION_MAX_LANES; ++k) {
    float u = a[k], v = b[k], w = 0;
    for (int i = 0; i < 50; ++i) {
      u = u + v;
      if (i == 3) w = u;
      if (i % 7 == 0) v = u - v;
    }
    wanted[k] = u * w;
  }
  run(&f, MP_REGION_MAX_LANES, (const void *[]){a, b}, NULL, (void *[]){a});  // in place
  assert_memory_equal(a, wanted, sizeof(wanted));
  bench_end(&f.bench);
}

// Arguments exchanged, in place: no output is written before all are read.
static void test_exchange_in_place(void **state) {
  (void)state;
  fixture_t f;
  begin(&f, 2, g_two_f32);
  region_return(&f.bench, f.block, 2, (mp_value_t *[]){&f.block->args[1], &f.block->args[0]});
  compile(&f);
  float a[2] = {1, 2}, b[2] = {3, 4};
  run(&f, 2, (const void *[]){a, b}, NULL, (void *[]){a, b});
  assert_true(a[0] == 3 && a[1] == 4 && b[0] == 1 && b[1] == 2);
  bench_end(&f.bench);
}

static void test_constants_and_types(void **state) {
  (void)state;
  fixture_t f;
  begin(&f, 1, (mp_dtype_t[]){MP_DTYPE_F32});
  const int32_t limit = 2;
  mp_value_t *two = region_constant(&f.bench, f.block, MP_DTYPE_S32, &limit);
  mp_value_t *whole =
      region_unary(&f.bench, f.block, MP_OP_CONVERT, MP_DTYPE_S32, &f.block->args[0]);
  mp_value_t *large = region_compare(&f.bench, f.block, MP_CMP_GT, MP_CMP_SIGNED, whole, two);
  mp_value_t *value = region_select(&f.bench, f.block, large, two, whole);
  region_return(&f.bench, f.block, 3, (mp_value_t *[]){value, large, two});
  compile(&f);
  assert_int_equal(mp_region_fn_kind(f.fn), MP_REDUCE_CUSTOM);
  const float x[3] = {1.5f, -9, 7};
  int32_t out[3], constant[3];
  uint8_t flags[3];
  run(&f, 3, (const void *[]){x}, NULL, (void *[]){out, flags, constant});
  assert_memory_equal(out, ((int32_t[]){1, -9, 2}), sizeof(out));
  assert_memory_equal(flags, ((uint8_t[]){0, 0, 1}), sizeof(flags));
  assert_memory_equal(constant, ((int32_t[]){2, 2, 2}), sizeof(constant));
  bench_end(&f.bench);
}

// Values from outside: scalars that follow the op's operands.
static void test_captures(void **state) {
  (void)state;
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_MAP);
  const mp_type_t *scalar = region_scalar(&bench, MP_DTYPE_F32), *array = NULL;
  assert_ok(mp_type_tensor(bench.module->arena, MP_DTYPE_F32, (int64_t[]){3}, 1, &array));
  mp_block_t *outside = NULL, *block = region_begin(&bench, 1, g_two_f32);
  assert_ok(
      mp_block_create(bench.module, 3, (const mp_type_t *[]){array, scalar, scalar}, &outside));
  mp_value_t *scaled =
      region_binary(&bench, block, MP_OP_MULTIPLY, &block->args[0], &outside->args[2]);
  mp_value_t *sum = region_binary(&bench, block, MP_OP_ADD, scaled, &outside->args[1]);
  region_return(&bench, block, 1, &sum);
  mp_value_t *operand = &outside->args[0];
  mp_op_spec_t spec = {.code = MP_OP_MAP,
                       .num_operands = 1,
                       .operands = &operand,
                       .num_results = 1,
                       .result_types = &array,
                       .num_regions = 1,
                       .regions = bench.regions};
  assert_ok(mp_op_create(bench.module, &spec, &bench.op));
  mp_block_append(outside, bench.op);
  assert_ok(mp_kernel_create(bench.module->arena, bench.op, &bench.kernel));
  const float x[3] = {1, 2, 3}, factor = 10, offset = 0.5f;
  float out[3];
  // In the order of first use: the factor, then the offset.
  bench_run(&bench, (const void *[]){x, &factor, &offset}, (void *[]){out});
  assert_true(out[0] == 10.5f && out[1] == 20.5f && out[2] == 30.5f);
  bench_end(&bench);
}

static mp_reduce_kind_t kind_of(mp_opcode_t code, bool swapped, bool constrained) {
  fixture_t f;
  begin(&f, 2, g_two_f32);
  mp_value_t *x = &f.block->args[swapped ? 1 : 0], *y = &f.block->args[swapped ? 0 : 1];
  if (constrained) {
    x = region_unary(&f.bench, f.block, MP_OP_SDY_SHARDING_CONSTRAINT, MP_DTYPE_F32, x);
  }
  mp_value_t *value = region_binary(&f.bench, f.block, code, x, y);
  if (constrained) {
    value = region_unary(&f.bench, f.block, MP_OP_OPTIMIZATION_BARRIER, MP_DTYPE_F32, value);
  }
  region_return(&f.bench, f.block, 1, &value);
  compile(&f);
  mp_reduce_kind_t kind = mp_region_fn_kind(f.fn);
  bench_end(&f.bench);
  return kind;
}

static void test_kinds(void **state) {
  (void)state;
  assert_int_equal(kind_of(MP_OP_ADD, false, false), MP_REDUCE_ADD);
  assert_int_equal(kind_of(MP_OP_MAXIMUM, true, false), MP_REDUCE_MAX);
  assert_int_equal(kind_of(MP_OP_MULTIPLY, true, true), MP_REDUCE_MUL);
  assert_int_equal(kind_of(MP_OP_SUBTRACT, false, false), MP_REDUCE_CUSTOM);
  fixture_t f;
  begin(&f, 2, g_two_f32);
  mp_value_t *second = &f.block->args[1];
  region_return(&f.bench, f.block, 1, &second);
  compile(&f);
  assert_int_equal(mp_region_fn_kind(f.fn), MP_REDUCE_SECOND);
  bench_end(&f.bench);
  begin(&f, 2, g_two_f32);
  mp_value_t *twice =
      region_binary(&f.bench, f.block, MP_OP_ADD, &f.block->args[0], &f.block->args[0]);
  region_return(&f.bench, f.block, 1, &twice);
  compile(&f);
  assert_int_equal(mp_region_fn_kind(f.fn), MP_REDUCE_CUSTOM);
  bench_end(&f.bench);
}

// A maximum of the bits is not a maximum of the floats.
static void test_bitcasts_hide_the_kind(void **state) {
  (void)state;
  fixture_t f;
  begin(&f, 2, g_two_f32);
  mp_value_t *x =
      region_unary(&f.bench, f.block, MP_OP_BITCAST_CONVERT, MP_DTYPE_S32, &f.block->args[0]);
  mp_value_t *y =
      region_unary(&f.bench, f.block, MP_OP_BITCAST_CONVERT, MP_DTYPE_S32, &f.block->args[1]);
  mp_value_t *max = region_binary(&f.bench, f.block, MP_OP_MAXIMUM, x, y);
  mp_value_t *back = region_unary(&f.bench, f.block, MP_OP_BITCAST_CONVERT, MP_DTYPE_F32, max);
  region_return(&f.bench, f.block, 1, &back);
  compile(&f);
  assert_int_equal(mp_region_fn_kind(f.fn), MP_REDUCE_CUSTOM);
  const float a[1] = {-1}, b[1] = {-2};
  float out[1];
  run(&f, 1, (const void *[]){a, b}, NULL, (void *[]){out});
  assert_true(out[0] == -2);  // whose bits are the larger integer
  bench_end(&f.bench);
}

static void test_refusals(void **state) {
  (void)state;
  fixture_t f;
  begin(&f, 2, g_two_f32);
  mp_value_t *value =
      region_binary(&f.bench, f.block, MP_OP_DOT, &f.block->args[0], &f.block->args[1]);
  region_return(&f.bench, f.block, 1, &value);
  bench_make_op(&f.bench);
  assert_status(mp_region_fn_create(f.bench.module->arena, f.block, &f.fn), MP_UNIMPLEMENTED,
                "stablehlo.dot");
  bench_end(&f.bench);

  bench_begin(&f.bench, MP_OP_MAP);
  const mp_type_t *array = NULL;
  assert_ok(mp_type_tensor(f.bench.module->arena, MP_DTYPE_F32, (int64_t[]){3}, 1, &array));
  assert_ok(mp_block_create(f.bench.module, 1, &array, &f.block));
  value = &f.block->args[0];
  region_return(&f.bench, f.block, 1, &value);
  assert_status(mp_region_fn_create(f.bench.module->arena, f.block, &f.fn), MP_UNIMPLEMENTED,
                "not a scalar");
  bench_end(&f.bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_long_computation),
      cmocka_unit_test(test_exchange_in_place),
      cmocka_unit_test(test_constants_and_types),
      cmocka_unit_test(test_captures),
      cmocka_unit_test(test_kinds),
      cmocka_unit_test(test_bitcasts_hide_the_kind),
      cmocka_unit_test(test_refusals),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
