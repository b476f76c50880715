// argmax and argmin: the kernel that compares alone gives the bits of the region as it is written.
#include <math.h>

#include "sim/kernels/reduction/reduction_makers.h"
#include "tests/unit/support/region_test.h"

// How the region is written. WRONG_TIES keeps the higher position of two equal values.
typedef enum { JAX, WITH_MINIMUM, NEGATED, WRONG_TIES } form_t;

// (a, i, b, j) -> the better of a and b, and its position.
static void add_region(kernel_bench_t *bench, mp_dtype_t dtype, mp_dtype_t index, bool is_min,
                       form_t form) {
  mp_block_t *block = region_begin(bench, 4, (mp_dtype_t[]){dtype, index, dtype, index});
  mp_value_t *a = &block->args[0], *i = &block->args[1], *b = &block->args[2], *j = &block->args[3];
  const uint32_t type = mp_dtype_is_float(dtype) ? MP_CMP_FLOAT : MP_CMP_NOTYPE;
  const uint32_t better = is_min ? MP_CMP_LT : MP_CMP_GT;
  mp_value_t *keep = region_compare(bench, block, better, type, a, b);
  mp_value_t *nan = region_compare(bench, block, MP_CMP_NE, type, a, a);
  keep = region_binary(bench, block, MP_OP_OR, keep, nan);
  mp_value_t *ties = region_compare(bench, block, MP_CMP_EQ, type, a, b);
  const uint32_t first = form == WRONG_TIES ? MP_CMP_GT : MP_CMP_LT;
  mp_value_t *position = NULL;
  if (form == WITH_MINIMUM) {
    mp_value_t *lower = region_binary(bench, block, MP_OP_MINIMUM, j, i);
    position = region_select(bench, block, keep, i, j);
    position = region_select(bench, block, ties, lower, position);
  } else {
    mp_value_t *lower = region_compare(bench, block, first, MP_CMP_NOTYPE, i, j);
    lower = region_binary(bench, block, MP_OP_AND, ties, lower);
    position =
        region_select(bench, block, region_binary(bench, block, MP_OP_OR, keep, lower), i, j);
  }
  mp_value_t *results[] = {region_select(bench, block, keep, a, b), position};
  if (form == NEGATED) {
    mp_value_t *other = region_unary(bench, block, MP_OP_NOT, MP_DTYPE_BOOL, keep);
    results[0] = region_select(bench, block, other, b, a);
  }
  region_return(bench, block, 2, results);
}

// Makes the reduction of [outer, length, inner] values along the middle dimension. With `counted`
// its positions are an iota, otherwise they are an argument.
static void begin_best(kernel_bench_t *bench, mp_dtype_t dtype, mp_dtype_t index,
                       const int64_t *dims, bool is_min, form_t form, bool counted) {
  bench_begin(bench, MP_OP_REDUCE);
  bench_operand(bench, dtype, 3, dims);
  bench_operand(bench, index, 3, dims);
  bench_operand(bench, dtype, 0, NULL);
  bench_operand(bench, index, 0, NULL);
  const int64_t kept[] = {dims[0], dims[2]}, along = 1;
  bench_result(bench, dtype, 2, kept);
  bench_result(bench, index, 2, kept);
  bench_ints(bench, MP_ATTR_DIMENSIONS, 1, &along);
  add_region(bench, dtype, index, is_min, form);
  bench_make_op(bench);
  mp_named_attr_t attr = {.name = MP_ATTR_IOTA_DIMENSION, .text = mp_str("iota_dimension")};
  assert_ok(mp_attr_make_int(bench->module->arena, MP_DTYPE_S64, 1, &attr.value));
  const mp_op_spec_t spec = {.code = MP_OP_IOTA,
                             .num_results = 1,
                             .result_types = &bench->operands[1],
                             .num_attrs = 1,
                             .attrs = &attr};
  mp_op_t *iota = NULL;
  assert_ok(mp_op_create(bench->module, &spec, &iota));
  mp_block_insert_before(bench->op, iota);
  if (counted) bench->op->operands[1] = &iota->results[0];
  assert_ok(mp_kernel_create(bench->module->arena, bench->op, &bench->kernel));
}

// One of the elements that are hard to compare, or any.
static void draw(mp_dtype_t dtype, int kind, uint32_t number, void *out) {
  const double hard[] = {0.0, -0.0, NAN, -1, 1, INFINITY, -INFINITY, 2};
  const uint32_t any = number * 2654435761u >> 7;
  double value = (double)(any % 100003) - 50000;
  if (kind == 1) value = hard[any % 2];
  if (kind == 2) value = hard[any % 8];
  if (kind == 3) value = any % 1000 == 0 ? NAN : value;
  if (kind == 4) value = NAN;
  if (kind == 5) value = -INFINITY;
  const float narrow = (float)value;
  const int32_t whole = kind == 0 ? (int32_t)any : (int32_t)(any % 4) - 2;
  uint32_t bits;
  memcpy(&bits, &narrow, sizeof(bits));
  if (isnan(value)) bits |= (any & 1) << 31 | (any % 64) << 16;  // NaNs that differ
  if (dtype == MP_DTYPE_F32) {
    memcpy(out, &bits, sizeof(bits));
  } else if (dtype == MP_DTYPE_F64) {
    memcpy(out, &value, sizeof(value));
  } else if (dtype == MP_DTYPE_BF16) {
    memcpy(out, (char *)&bits + 2, 2);
  } else if (dtype == MP_DTYPE_BOOL) {
    *(uint8_t *)out = any & 1;
  } else {
    const int64_t wide = whole;
    memcpy(out, &wide, mp_dtype_size(dtype));
  }
}

static void check_best(mp_dtype_t dtype, mp_dtype_t index, const int64_t *dims, int kind,
                       bool is_min, form_t form) {
  const size_t size = mp_dtype_size(dtype), index_size = mp_dtype_size(index);
  const int64_t count = dims[0] * dims[1] * dims[2], results = dims[0] * dims[2];
  char *in = malloc((size_t)count * size + 1), *positions = malloc((size_t)count * index_size + 1);
  for (int64_t i = 0; i < count; ++i) {
    draw(dtype, kind, (uint32_t)i + (uint32_t)kind * 977, in + (size_t)i * size);
    const int64_t position = i / dims[2] % dims[1];
    memcpy(positions + (size_t)i * index_size, &position, index_size);
  }
  char *values[2], *places[2];
  // A start value that is none of the elements, and one that may be.
  for (uint32_t start = 0; start < 2; ++start) {
    char init[8] = {0}, first[8] = {0};
    draw(dtype, start == 0 ? 5 : kind, 12345, init);
    first[0] = start == 0 ? 0 : 3;
    for (int counted = 0; counted < 2; ++counted) {
      values[counted] = calloc((size_t)results + 1, size);
      places[counted] = calloc((size_t)results + 1, index_size);
      kernel_bench_t bench;
      begin_best(&bench, dtype, index, dims, is_min, form, counted != 0);
      bool counts = counted != 0 && form != WRONG_TIES && dims[1] > 1;
      counts = counts && (dims[2] == 1 || dims[2] >= 16) && results > 0;
      assert_int_equal(mp_kernel_reduce_counts(bench.op, 1), counts);
      // The kernel that counts does not look at the positions.
      const void *operands[] = {in, counts ? in : positions, init, first};
      bench_run(&bench, operands, (void *[]){values[counted], places[counted]});
      bench_end(&bench);
    }
    assert_memory_equal(values[0], values[1], (size_t)results * size);
    assert_memory_equal(places[0], places[1], (size_t)results * index_size);
    for (int i = 0; i < 2; ++i) {
      free(values[i]);
      free(places[i]);
    }
  }
  free(in);
  free(positions);
}

static void test_best_is_what_the_region_says(void **state) {
  (void)state;
  static const int64_t shapes[][3] = {{3, 2, 1},   {5, 37, 1},  {2, 2500, 1}, {1, 1024, 1},
                                      {2, 70, 16}, {1, 9, 600}, {3, 5, 3},    {4, 1, 20},
                                      {2, 0, 3},   {0, 4, 1}};
  static const mp_dtype_t dtypes[] = {MP_DTYPE_F32, MP_DTYPE_F64, MP_DTYPE_BF16, MP_DTYPE_BOOL,
                                      MP_DTYPE_S8,  MP_DTYPE_U16, MP_DTYPE_S32,  MP_DTYPE_U64};
  for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); ++s) {
    for (size_t d = 0; d < sizeof(dtypes) / sizeof(dtypes[0]); ++d) {
      for (int kind = 0; kind < 6; ++kind) {
        const form_t form = (form_t)((s + d + (size_t)kind) % 3);
        const mp_dtype_t index = kind % 2 == 0 ? MP_DTYPE_S32 : MP_DTYPE_U64;
        check_best(dtypes[d], index, shapes[s], kind, false, form);
        check_best(dtypes[d], index, shapes[s], kind, true, form);
      }
    }
  }
}

// Few results of many elements, which are compared in pieces.
static void test_best_of_pieces(void **state) {
  (void)state;
  static const int64_t shapes[][3] = {{1, 300001, 1}, {1, 2101, 130}, {3, 90001, 1}};
  for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); ++s) {
    for (int kind = 0; kind < 6; ++kind) {
      const mp_dtype_t dtype = kind % 2 == 0 ? MP_DTYPE_F32 : MP_DTYPE_BF16;
      const mp_dtype_t index = kind % 2 == 0 ? MP_DTYPE_U64 : MP_DTYPE_S32;
      check_best(dtype, index, shapes[s], kind, kind % 3 == 0, JAX);
    }
  }
}

static void test_other_regions_run_as_written(void **state) {
  (void)state;
  check_best(MP_DTYPE_F32, MP_DTYPE_S32, (int64_t[]){3, 40, 1}, 2, false, WRONG_TIES);
  check_best(MP_DTYPE_S32, MP_DTYPE_S32, (int64_t[]){2, 9, 20}, 2, true, WRONG_TIES);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_best_is_what_the_region_says),
      cmocka_unit_test(test_best_of_pieces),
      cmocka_unit_test(test_other_regions_run_as_written),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
