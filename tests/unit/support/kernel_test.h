// A bench for one kernel: builds an op out of types and attributes, makes its kernel, runs all its
// parts (last one first, with dirty scratch, so that hidden order or state shows).
//
//   kernel_bench_t bench;
//   bench_begin(&bench, MP_OP_TRANSPOSE);
//   bench_operand(&bench, MP_DTYPE_F32, 2, (int64_t[]){2, 3});
//   bench_result(&bench, MP_DTYPE_F32, 2, (int64_t[]){3, 2});
//   bench_ints(&bench, MP_ATTR_PERMUTATION, 2, (int64_t[]){1, 0});
//   bench_make(&bench);
//   bench_run(&bench, (const void *[]){in}, (void *[]){out});
//   bench_end(&bench);
#ifndef MINIPOD_TESTS_UNIT_SUPPORT_KERNEL_TEST_H_
#define MINIPOD_TESTS_UNIT_SUPPORT_KERNEL_TEST_H_

#include <stdlib.h>
#include <string.h>

#include "sim/ir/module.h"
#include "sim/kernels/table/kernel_table.h"
#include "tests/unit/support/unit.h"

enum { BENCH_MAX = 16 };

typedef struct {
  mp_module_t *module;
  mp_opcode_t code;
  uint32_t num_operands, num_results, num_attrs, num_regions;
  const mp_type_t *operands[BENCH_MAX];
  const mp_type_t *results[BENCH_MAX];
  mp_named_attr_t attrs[BENCH_MAX];
  mp_block_t *regions[BENCH_MAX];
  mp_op_t *op;
  const mp_kernel_t *kernel;
} kernel_bench_t;

static inline void bench_begin(kernel_bench_t *bench, mp_opcode_t code) {
  memset(bench, 0, sizeof(*bench));
  assert_ok(mp_module_create(&bench->module));
  bench->code = code;
}

static inline void bench_operand(kernel_bench_t *bench, mp_dtype_t dtype, uint32_t rank,
                                 const int64_t *dims) {
  assert_ok(mp_type_tensor(bench->module->arena, dtype, dims, rank,
                           &bench->operands[bench->num_operands++]));
}

static inline void bench_result(kernel_bench_t *bench, mp_dtype_t dtype, uint32_t rank,
                                const int64_t *dims) {
  assert_ok(mp_type_tensor(bench->module->arena, dtype, dims, rank,
                           &bench->results[bench->num_results++]));
}

static inline const mp_attr_t **bench_attr(kernel_bench_t *bench, mp_attr_name_t name) {
  mp_named_attr_t *attr = &bench->attrs[bench->num_attrs++];
  attr->name = name;
  attr->text = mp_str(mp_attr_name_text(name));
  return &attr->value;
}

static inline void bench_ints(kernel_bench_t *bench, mp_attr_name_t name, size_t count,
                              const int64_t *values) {
  assert_ok(mp_attr_make_ints(bench->module->arena, values, count, bench_attr(bench, name)));
}

static inline void bench_table(kernel_bench_t *bench, mp_attr_name_t name, int64_t rows,
                               int64_t columns, const int64_t *values) {
  assert_ok(
      mp_attr_make_table(bench->module->arena, values, rows, columns, bench_attr(bench, name)));
}

static inline void bench_int(kernel_bench_t *bench, mp_attr_name_t name, int64_t value) {
  assert_ok(mp_attr_make_int(bench->module->arena, MP_DTYPE_S64, value, bench_attr(bench, name)));
}

static inline void bench_bool(kernel_bench_t *bench, mp_attr_name_t name, bool value) {
  assert_ok(mp_attr_make_bool(bench->module->arena, value, bench_attr(bench, name)));
}

static inline void bench_enum(kernel_bench_t *bench, mp_attr_name_t name, mp_enum_kind_t kind,
                              uint32_t value) {
  assert_ok(mp_attr_make_enum(bench->module->arena, kind, value, bench_attr(bench, name)));
}

static inline void bench_string(kernel_bench_t *bench, mp_attr_name_t name, const char *text) {
  assert_ok(mp_attr_make_string(bench->module->arena, mp_str(text), bench_attr(bench, name)));
}

// Makes the op, for tests that expect its kernel to be refused; bench_make for all others.
static inline void bench_make_op(kernel_bench_t *bench) {
  mp_block_t *block = NULL;
  assert_ok(mp_block_create(bench->module, bench->num_operands, bench->operands, &block));
  mp_value_t *values[BENCH_MAX];
  for (uint32_t i = 0; i < bench->num_operands; ++i) values[i] = &block->args[i];
  mp_op_spec_t spec = {.code = bench->code,
                       .num_operands = bench->num_operands,
                       .operands = values,
                       .num_results = bench->num_results,
                       .result_types = bench->results,
                       .num_regions = bench->num_regions,
                       .regions = bench->regions,
                       .num_attrs = bench->num_attrs,
                       .attrs = bench->attrs};
  assert_ok(mp_op_create(bench->module, &spec, &bench->op));
  mp_block_append(block, bench->op);
}

static inline void bench_make(kernel_bench_t *bench) {
  bench_make_op(bench);
  assert_ok(mp_kernel_create(bench->module->arena, bench->op, &bench->kernel));
}

static inline void bench_run(kernel_bench_t *bench, const void *const *operands,
                             void *const *results) {
  const mp_kernel_t *kernel = bench->kernel;
  size_t bytes = (kernel->scratch_bytes + 64) & ~(size_t)63;
  void *scratch = aligned_alloc(64, bytes);
  void *shared = aligned_alloc(64, (kernel->shared_bytes + 64) & ~(size_t)63);
  assert_non_null(scratch);
  assert_non_null(shared);
  memset(shared, 0xCD, kernel->shared_bytes);
  for (uint32_t part = kernel->num_parts; part-- > 0;) {
    memset(scratch, 0xAB, bytes);
    mp_kernel_call_t call = {operands, results, scratch, part, shared};
    assert_ok(kernel->run(kernel, &call));
  }
  if (kernel->finish != NULL) {
    mp_kernel_call_t call = {operands, results, scratch, 0, shared};
    memset(scratch, 0xAB, bytes);
    assert_ok(kernel->finish(kernel, &call));
  }
  free(shared);
  free(scratch);
}

static inline void bench_end(kernel_bench_t *bench) {
  mp_module_release(bench->module);
}

#endif  // MINIPOD_TESTS_UNIT_SUPPORT_KERNEL_TEST_H_
