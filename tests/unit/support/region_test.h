// Regions for kernel tests: blocks of scalar ops, built by hand on a bench (kernel_test.h).
//
//   mp_block_t *block = region_begin(&bench, 2, (mp_dtype_t[]){MP_DTYPE_F32, MP_DTYPE_F32});
//   mp_value_t *sum = region_binary(&bench, block, MP_OP_ADD, &block->args[0], &block->args[1]);
//   region_return(&bench, block, 1, &sum);
#ifndef MINIPOD_TESTS_UNIT_SUPPORT_REGION_TEST_H_
#define MINIPOD_TESTS_UNIT_SUPPORT_REGION_TEST_H_

#include "tests/unit/support/kernel_test.h"

static inline const mp_type_t *region_scalar(kernel_bench_t *bench, mp_dtype_t dtype) {
  const mp_type_t *type = NULL;
  assert_ok(mp_type_tensor(bench->module->arena, dtype, NULL, 0, &type));
  return type;
}

// A new region of the bench's op, with scalar arguments.
static inline mp_block_t *region_begin(kernel_bench_t *bench, uint32_t num_args,
                                       const mp_dtype_t *dtypes) {
  const mp_type_t *types[BENCH_MAX];
  for (uint32_t i = 0; i < num_args; ++i) types[i] = region_scalar(bench, dtypes[i]);
  mp_block_t *block = NULL;
  assert_ok(mp_block_create(bench->module, num_args, types, &block));
  bench->regions[bench->num_regions++] = block;
  return block;
}

static inline mp_value_t *region_op(kernel_bench_t *bench, mp_block_t *block, mp_opcode_t code,
                                    mp_dtype_t result, uint32_t num_operands,
                                    mp_value_t *const *operands, uint32_t num_attrs,
                                    const mp_named_attr_t *attrs) {
  const mp_type_t *type = region_scalar(bench, result);
  mp_op_spec_t spec = {.code = code,
                       .num_operands = num_operands,
                       .operands = operands,
                       .num_results = 1,
                       .result_types = &type,
                       .num_attrs = num_attrs,
                       .attrs = attrs};
  mp_op_t *op = NULL;
  assert_ok(mp_op_create(bench->module, &spec, &op));
  mp_block_append(block, op);
  return &op->results[0];
}

static inline mp_value_t *region_unary(kernel_bench_t *bench, mp_block_t *block, mp_opcode_t code,
                                       mp_dtype_t result, mp_value_t *x) {
  return region_op(bench, block, code, result, 1, &x, 0, NULL);
}

static inline mp_value_t *region_binary(kernel_bench_t *bench, mp_block_t *block, mp_opcode_t code,
                                        mp_value_t *x, mp_value_t *y) {
  return region_op(bench, block, code, x->type->dtype, 2, (mp_value_t *[]){x, y}, 0, NULL);
}

static inline mp_value_t *region_select(kernel_bench_t *bench, mp_block_t *block, mp_value_t *which,
                                        mp_value_t *x, mp_value_t *y) {
  return region_op(bench, block, MP_OP_SELECT, x->type->dtype, 3, (mp_value_t *[]){which, x, y}, 0,
                   NULL);
}

static inline mp_value_t *region_compare(kernel_bench_t *bench, mp_block_t *block,
                                         uint32_t direction, uint32_t type, mp_value_t *x,
                                         mp_value_t *y) {
  mp_named_attr_t attrs[2] = {{.name = MP_ATTR_COMPARISON_DIRECTION},
                              {.name = MP_ATTR_COMPARE_TYPE}};
  assert_ok(mp_attr_make_enum(bench->module->arena, MP_ENUM_COMPARISON_DIRECTION, direction,
                              &attrs[0].value));
  assert_ok(
      mp_attr_make_enum(bench->module->arena, MP_ENUM_COMPARISON_TYPE, type, &attrs[1].value));
  return region_op(bench, block, MP_OP_COMPARE, MP_DTYPE_BOOL, 2, (mp_value_t *[]){x, y}, 2, attrs);
}

static inline mp_value_t *region_constant(kernel_bench_t *bench, mp_block_t *block,
                                          mp_dtype_t dtype, const void *element) {
  mp_named_attr_t attr = {.name = MP_ATTR_VALUE};
  assert_ok(mp_attr_make_dense(bench->module->arena, region_scalar(bench, dtype), element,
                               mp_dtype_size(dtype), true, &attr.value));
  return region_op(bench, block, MP_OP_CONSTANT, dtype, 0, NULL, 1, &attr);
}

static inline void region_return(kernel_bench_t *bench, mp_block_t *block, uint32_t num_values,
                                 mp_value_t *const *values) {
  mp_op_spec_t spec = {.code = MP_OP_RETURN, .num_operands = num_values, .operands = values};
  mp_op_t *op = NULL;
  assert_ok(mp_op_create(bench->module, &spec, &op));
  mp_block_append(block, op);
}

// The region of a plain reduction: one op on its two arguments.
static inline void region_reducer(kernel_bench_t *bench, mp_opcode_t code, mp_dtype_t dtype) {
  mp_block_t *block = region_begin(bench, 2, (mp_dtype_t[]){dtype, dtype});
  mp_value_t *value = region_binary(bench, block, code, &block->args[0], &block->args[1]);
  region_return(bench, block, 1, &value);
}

#endif  // MINIPOD_TESTS_UNIT_SUPPORT_REGION_TEST_H_
