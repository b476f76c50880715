// A Mosaic kernel under test: its call, its runs, and texts of which modules are made.
#ifndef MINIPOD_TESTS_UNIT_MOSAIC_MOSAIC_BENCH_H_
#define MINIPOD_TESTS_UNIT_MOSAIC_MOSAIC_BENCH_H_

#include "tests/unit/support/unit.h"

#include <stdlib.h>
#include <string.h>

#include "sim/ir/module.h"
#include "sim/mosaic/kernel/mosaic_kernel.h"
#include "sim/mosaic/read/mosaic_reader.h"

// ---- a kernel under test ----

enum { MOST = 8 };

typedef struct {
  mp_module_t *module;
  uint32_t num_operands, num_results;
  const mp_type_t *operands[MOST], *results[MOST];
  const mp_attr_t *aliases;  // output_operand_aliases; NULL: none
  mp_mosaic_target_t target;
  int64_t vmem_limit;
  const mp_kernel_t *kernel;
} bench_t;

static inline void bench_begin(bench_t *bench) {
  memset(bench, 0, sizeof(*bench));
  assert_ok(mp_module_create(&bench->module));
}

static inline void bench_operand(bench_t *bench, mp_dtype_t dtype, int64_t m, int64_t n) {
  assert_ok(mp_type_tensor(bench->module->arena, dtype, (int64_t[]){m, n}, n == 0 ? 1 : 2,
                           &bench->operands[bench->num_operands++]));
}

static inline void bench_result(bench_t *bench, mp_dtype_t dtype, int64_t m, int64_t n) {
  assert_ok(mp_type_tensor(bench->module->arena, dtype, (int64_t[]){m, n}, 2,
                           &bench->results[bench->num_results++]));
}

static inline mp_status_t bench_compile(bench_t *bench, const char *text) {
  mp_mosaic_module_t *mosaic = NULL;
  mp_block_t *block = NULL;
  mp_op_t *op = NULL;
  mp_value_t *values[MOST];
  const mp_attr_t *target = NULL;
  assert_ok(mp_mosaic_read(text, strlen(text), &mosaic));
  assert_ok(mp_mosaic_verify(mosaic));
  assert_ok(mp_block_create(bench->module, bench->num_operands, bench->operands, &block));
  for (uint32_t i = 0; i < bench->num_operands; ++i) values[i] = &block->args[i];
  assert_ok(mp_attr_make_string(bench->module->arena, MP_STR(MP_MOSAIC_TARGET), &target));
  const mp_named_attr_t attrs[] = {
      {MP_ATTR_CALL_TARGET_NAME, MP_STR("call_target_name"), target},
      {MP_ATTR_OUTPUT_OPERAND_ALIASES, MP_STR("output_operand_aliases"), bench->aliases}};
  const mp_op_spec_t spec = {.code = MP_OP_CUSTOM_CALL,
                             .num_operands = bench->num_operands,
                             .operands = values,
                             .num_results = bench->num_results,
                             .result_types = bench->results,
                             .num_attrs = bench->aliases == NULL ? 1 : 2,
                             .attrs = attrs};
  assert_ok(mp_op_create(bench->module, &spec, &op));
  mp_block_append(block, op);
  mp_status_t status = mp_mosaic_make_kernel_of(bench->module->arena, op, mosaic, &bench->target,
                                                bench->vmem_limit, &bench->kernel);
  mp_mosaic_module_release(mosaic);
  return status;
}

// All parts, the last one first, with dirty memory.
static inline mp_status_t bench_run(const bench_t *bench, const void *const *operands,
                                    void *const *results) {
  const mp_kernel_t *kernel = bench->kernel;
  const size_t bytes = (kernel->scratch_bytes + 64) & ~(size_t)63;
  void *scratch = aligned_alloc(64, bytes), *shared = aligned_alloc(64, 64);
  mp_status_t status = NULL;
  for (uint32_t part = kernel->num_parts; part-- > 0 && status == NULL;) {
    memset(scratch, 0xAB, bytes);
    const mp_kernel_call_t call = {operands, results, scratch, part, shared};
    status = kernel->run(kernel, &call);
  }
  if (status == NULL && kernel->finish != NULL) {
    const mp_kernel_call_t call = {operands, results, scratch, 0, shared};
    status = kernel->finish(kernel, &call);
  }
  free(shared);
  free(scratch);
  return status;
}

static inline void bench_end(bench_t *bench) {
  mp_module_release(bench->module);
}

static inline float *counting(int64_t count) {
  float *values = aligned_alloc(64, ((size_t)count * 4 + 63) & ~(size_t)63);
  for (int64_t i = 0; i < count; ++i) values[i] = (float)(i % 1000);
  return values;
}

// ---- texts ----

#define OP         "\"stable_mosaic."
#define VMEM(dims) "memref<" dims "xf32, #tpu.memory_space<vmem>>"
#define V          "vector<8x128xf32>"
#define ZERO       "%z = " OP "arith.constant\"() {value = 0 : index} : () -> index\n"
#define LOAD(name, from) \
  name " = " OP "vector.load\"(" from ", %z, %z) : (" VMEM("8x128") ", index, " \
       "index) -> " V "\n"
#define STORE(value, to) \
  OP "vector.store\"(" value ", " to ", %z, %z) : (" V ", " VMEM("8x128") ", index, index) -> " \
                                                                          "()\n"
#define ADD(name, a, b) name " = " OP "arith.addf\"(" a ", " b ") : (" V ", " V ") -> " V "\n"
#define RETURN          OP "func.return\"() : () -> ()\n"
#define MODULE(args, types, body, attributes)                   \
  "module attributes {stable_mosaic.version = 13 : i64} {\n" OP \
  "func.func\"() ({\n"                                          \
  "^bb0(" args "):\n" body RETURN "}) {function_type = (" types \
  ") -> (), sym_name = \"k\"" attributes "} : () -> ()\n}\n"

#define ROWS "transform_indices = affine_map<(d0) -> (d0, 0)>"
#define GRID(n, semantics, outs)                                                                \
  ", iteration_bounds = array<i64: " n                                                          \
  ">, dimension_semantics = [#tpu.dimension_semantics<" semantics ">], window_params = [{" ROWS \
  "}, {" outs "}]"
#define ARGS  "%i: i32, %x: " VMEM("8x128") ", %y: " VMEM("8x128")
#define TYPES "i32, " VMEM("8x128") ", " VMEM("8x128")

#endif  // MINIPOD_TESTS_UNIT_MOSAIC_MOSAIC_BENCH_H_
