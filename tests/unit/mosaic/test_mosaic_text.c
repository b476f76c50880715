// The reader of Mosaic's text, and the printer, which is held to what the reader makes of its text.
#include "tests/unit/support/unit.h"

#include <stdio.h>
#include <string.h>

#include "sim/mosaic/read/mosaic_reader.h"

// A kernel with most of what the grammar has, whose body has `ops`.
#define KERNEL(version, ops)                                                                  \
  "#map = affine_map<(d0)[s0] -> (d0 floordiv 2 + s0, -(d0 - 3) * 2, 0)>\n"                   \
  "!tile = vector<8x128xf32>\n"                                                               \
  "module @m attributes {stable_mosaic.version = " version                                    \
  " : i64} {\n"                                                                               \
  "  \"stable_mosaic.func.func\"() <{function_type = (i32, memref<8x128xf32, "                \
  "#tpu.memory_space<vmem>>, memref<2x!tpu.dma_semaphore, #tpu.memory_space<semaphore_mem>>"  \
  ", memref<8x128xf32, strided<[256, ?], offset: 4>, #tpu.memory_space<any>>) -> (), "        \
  "sym_name = \"kernel\"}> ({\n"                                                              \
  "  ^bb0(%i: i32, %x: memref<8x128xf32, #tpu.memory_space<vmem>>, "                          \
  "%s: memref<2x!tpu.dma_semaphore, #tpu.memory_space<semaphore_mem>>, "                      \
  "%y: memref<8x128xf32, affine_map<(d0, d1)[s0] -> (d0 * 256 + d1 * s0 + 4)>, "              \
  "#tpu.memory_space<any>>):\n" ops                                                           \
  "    \"stable_mosaic.func.return\"() : () -> ()\n"                                          \
  "  }) {iteration_bounds = array<i64: 4>, window_params = [{transform_indices = #map}, {}, " \
  "{}]} : () -> ()\n"                                                                         \
  "}\n"

static mp_mosaic_module_t *read_text(const char *text) {
  mp_mosaic_module_t *module = NULL;
  assert_ok(mp_mosaic_read(text, strlen(text), &module));
  return module;
}

static void expect_error(const char *text, mp_status_code_t code, const char *message) {
  mp_mosaic_module_t *module = NULL;
  assert_status(mp_mosaic_read(text, strlen(text), &module), code, message);
}

// Reads, prints, reads and prints again: both texts must be equal.
static void check_print(const char *text) {
  mp_mosaic_module_t *module = read_text(text);
  mp_strbuf_t first, second;
  mp_strbuf_init(&first);
  mp_strbuf_init(&second);
  mp_mosaic_print(module, &first);
  mp_mosaic_module_t *again = read_text(mp_strbuf_text(&first));
  mp_mosaic_print(again, &second);
  assert_string_equal(mp_strbuf_text(&first), mp_strbuf_text(&second));
  mp_mosaic_module_release(again);
  mp_mosaic_module_release(module);
  mp_strbuf_deinit(&first);
  mp_strbuf_deinit(&second);
}

static const char ops[] = KERNEL(
    "13",
    "    %c = \"stable_mosaic.arith.constant\"() {value = 0 : index} : () -> index\n"
    "    %v = \"stable_mosaic.arith.constant\"() {value = dense<0xFF800000> : vector<8x128xf32>} "
    ": () -> !tile loc(#loc1)\n"
    "    %n = \"stable_mosaic.arith.constant\"() {value = dense<[1, -2]> : vector<2xi32>} : () -> "
    "vector<2xi32>\n"
    "    %b = \"stable_mosaic.arith.constant\"() {value = true} : () -> i1\n"
    "    %h = \"stable_mosaic.arith.constant\"() {value = 0x7F80 : bf16} : () -> bf16\n"
    "    %w = \"stable_mosaic.tpu.iota\"() {dimensions = array<i32: 1>} : () -> vector<8x128xi32>\n"
    "    %r:2 = \"stable_mosaic.scf.if\"(%b) ({\n"
    "      \"stable_mosaic.scf.yield\"(%i, %c) : (i32, index) -> ()\n"
    "    }, {\n"
    "      \"stable_mosaic.scf.yield\"(%i, %c) : (i32, index) -> ()\n"
    "    }) : (i1) -> (i32, index)\n"
    "    %d = \"stable_mosaic.arith.addi\"(%r#0, %i) {overflowFlags = #arith.overflow<nsw, nuw>} : "
    "(i32, i32) -> i32\n"
    "    %m = \"stable_mosaic.tpu.matmul\"(%v, %v, %v) {dimension_numbers = "
    "#tpu.dot_dimension_numbers<[1], [1], [0], [0], [0, 0, 1, 0], [], []>, precision = "
    "#tpu.contract_precision<fp32>, transpose_lhs = false, note = #tpu.vpad<\"32,{0,0}\">, "
    "parts = #tpu.x<a = 1, (b, 2), f32>} : (!tile, !tile, !tile) -> !tile\n"
    "    \"stable_mosaic.tpu.enqueue_dma\"(%x, %x, %s) {operandSegmentSizes = array<i32: 1, 0, 1, "
    "1, 0, 0>} : (memref<8x128xf32, #tpu.memory_space<vmem>>, memref<8x128xf32, "
    "#tpu.memory_space<vmem>>, memref<2x!tpu.dma_semaphore, #tpu.memory_space<semaphore_mem>>) -> "
    "()\n") "#loc1 = loc(\"dot\"(\"kernel.py\":12:7))\n";

static const mp_mosaic_op_t *find_op(const mp_mosaic_module_t *module, mp_mosaic_opcode_t code) {
  const mp_mosaic_op_t *op = module->funcs.first->body->first;
  while (op != NULL && op->code != code) op = op->next;
  assert_non_null(op);
  return op;
}

static void test_reads_a_kernel(void **state) {
  (void)state;
  mp_mosaic_module_t *module = read_text(ops);
  const mp_mosaic_func_t *func = mp_mosaic_find_func(module, MP_STR("kernel"));
  assert_non_null(func);
  assert_int_equal(module->version, MP_MOSAIC_NEWEST_VERSION);
  assert_int_equal(func->type->num_inputs, 4);
  assert_int_equal(func->body->args[1].type->space, MP_MOSAIC_SPACE_VMEM);
  assert_int_equal(func->body->args[2].type->element, MP_MOSAIC_DMA_SEMAPHORE);
  // strided<> and the affine map that means the same are one type.
  assert_true(mp_mosaic_type_equal(func->body->args[3].type, func->type->elements[3]));
  assert_int_equal(func->body->args[3].type->strides[1], MP_MOSAIC_DYNAMIC);
  assert_int_equal(func->body->args[3].type->offset, 4);
  const mp_mosaic_attr_t *windows = mp_mosaic_attr(func->attrs, func->num_attrs, "window_params");
  assert_int_equal(windows->list.count, 3);
  const mp_mosaic_attr_t *map =
      mp_mosaic_attr(windows->list.items[0].value->list.items, 1, "transform_indices");
  assert_int_equal(map->map->num_results, 3);
  const mp_mosaic_op_t *matmul = find_op(module, MP_MOSAIC_MATMUL);
  const mp_mosaic_attr_t *numbers = mp_mosaic_op_attr(matmul, "dimension_numbers");
  assert_int_equal(numbers->list.count, 7);
  assert_int_equal(numbers->list.items[4].value->list.items[2].value->i64, 1);
  assert_int_equal(find_op(module, MP_MOSAIC_ADDI)->operands[0]->index, 0);
  assert_status(mp_mosaic_op_error(matmul->operands[0]->op, MP_UNIMPLEMENTED, "no"),
                MP_UNIMPLEMENTED, "no [arith.constant, dot at kernel.py:12:7 (kernel)]");
  mp_mosaic_module_release(module);
}

static void test_prints_what_it_reads(void **state) {
  (void)state;
  check_print(ops);
  check_print(
      "\"builtin.module\"() ({\n}) {stable_mosaic.version = 15 : i64} : () -> () loc(unknown)");
}

// What an older version spells otherwise has the newest form after reading.
static void test_converts_old_versions(void **state) {
  (void)state;
  mp_mosaic_module_t *module = read_text(ops);
  const mp_mosaic_attr_t *sizes =
      mp_mosaic_op_attr(find_op(module, MP_MOSAIC_ENQUEUE_DMA), "operandSegmentSizes");
  assert_int_equal(sizes->ints.count, 7);
  mp_mosaic_module_release(module);
  module = read_text(
      KERNEL("4", "%w = \"stable_mosaic.tpu.iota\"() {dimension = 1 : i32} : () -> vector<2xi32>"));
  const mp_mosaic_attr_t *dims = mp_mosaic_op_attr(find_op(module, MP_MOSAIC_IOTA), "dimensions");
  assert_int_equal(dims->ints.values[0], 1);
  mp_mosaic_module_release(module);
  expect_error(KERNEL("16", ""), MP_UNIMPLEMENTED, "version 16 of stable_mosaic");
}

static void test_names_what_is_wrong(void **state) {
  (void)state;
  expect_error(KERNEL("13", "\"stable_mosaic.tpu.fly\"() : () -> ()\n"), MP_UNIMPLEMENTED,
               "Mosaic kernel kernel: 6:1: the op 'stable_mosaic.tpu.fly' is not supported");
  expect_error(KERNEL("13", "%a = \"stable_mosaic.tpu.iota\"() : () -> vector<?xf32>"),
               MP_UNIMPLEMENTED, "a vector without fixed size");
  expect_error(KERNEL("13", "%a = \"stable_mosaic.tpu.iota\"() : () -> !tpu.thing"),
               MP_UNIMPLEMENTED, "'!tpu.thing' is not known");
  expect_error(KERNEL("13", "\"stable_mosaic.tpu.delay\"(%z) : (i32) -> ()"), MP_INVALID_ARGUMENT,
               "%z is not defined here");
  expect_error(KERNEL("13", "\"stable_mosaic.tpu.delay\"(%i) : (i8) -> ()"), MP_INVALID_ARGUMENT,
               "operand 0 of stable_mosaic.tpu.delay was defined as i32, here i8");
  expect_error("module {", MP_INVALID_ARGUMENT, "found the end of the text");
  expect_error("", MP_INVALID_ARGUMENT, "expected a module");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_reads_a_kernel),
      cmocka_unit_test(test_prints_what_it_reads),
      cmocka_unit_test(test_converts_old_versions),
      cmocka_unit_test(test_names_what_is_wrong),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
