// Results of Mosaic kernels: those that are operands, and those that the grid comes to again, or
// never.
#include <malloc.h>
#include <math.h>
#include <stdlib.h>

#include "tests/unit/mosaic/mosaic_bench.h"

#define AT(expression)      "transform_indices = affine_map<(d0) -> (" expression ", 0)>"
#define WINDOWS(n, windows) ", iteration_bounds = array<i64: " n ">, window_params = [" windows "]"

// ---- operands that are results ----

#define ARGS3  ARGS ", %r: " VMEM("8x128")
#define TYPES3 TYPES ", " VMEM("8x128")
#define DOUBLE ZERO LOAD("%a", "%x") ADD("%b", "%a", "%a") STORE("%b", "%y")
#define BOUNDS ", window_bounds = array<i64: 8, 128>"

// The result begins as operand 1, and the kernel writes this operand.
static void check_alias(const char *text, float factor) {
  bench_t bench;
  bench_begin(&bench);
  bench_operand(&bench, MP_DTYPE_F32, 8, 128);
  bench_operand(&bench, MP_DTYPE_F32, 8, 128);
  bench_result(&bench, MP_DTYPE_F32, 8, 128);
  const mp_attr_t alias = {.kind = MP_KIND_OUTPUT_ALIAS, .u.alias.operand_index = 1};
  const mp_attr_t *const items[] = {&alias};
  const mp_attr_t aliases = {.kind = MP_KIND_ARRAY, .u.array = {items, 1}};
  bench.aliases = &aliases;
  assert_ok(bench_compile(&bench, text));
  float *x = counting(1024), *y = counting(1024), *r = counting(1024);
  for (int i = 0; i < 1024; ++i) r[i] = -1;
  assert_ok(bench_run(&bench, (const void *[]){x, y}, (void *[]){r}));
  for (int i = 0; i < 1024; ++i) {
    assert_true(r[i] == factor * x[i]);
    assert_true(y[i] == x[i]);
  }
  free(x);
  free(y);
  free(r);
  bench_end(&bench);
}

static void test_shared(void **state) {
  (void)state;
  check_alias(
      MODULE(ARGS3, TYPES3, DOUBLE, WINDOWS("1", "{" AT("0") "}, {" AT("0") "}, {" AT("0") "}")),
      2);
  // Blocks are copies, even of whole arrays.
  check_alias(
      MODULE(ARGS3, TYPES3, DOUBLE,
             WINDOWS("1", "{" AT("0") BOUNDS "}, {" AT("0") BOUNDS "}, {" AT("0") BOUNDS "}")),
      1);
}

// ---- blocks that are visited again ----

#define LEAST                                                                              \
  ZERO LOAD("%a", "%x") LOAD("%c", "%y") "%d = " OP "arith.minnumf\"(%a, %c) : (" V ", " V \
                                         ") -> " V "\n" STORE("%d", "%y")
#define REVISITS(mode)                        \
  MODULE(ARGS, TYPES, LEAST,                  \
         WINDOWS("4", "{" AT("d0") "}, {" AT( \
                          "d0 mod 2") ", revisit_mode = #tpu.revisit_mode<" mode ">}"))

static mp_status_t run_revisits(const char *text, const float *x, float *y) {
  bench_t bench;
  bench_begin(&bench);
  bench_operand(&bench, MP_DTYPE_F32, 32, 128);
  bench_result(&bench, MP_DTYPE_F32, 16, 256);  // its blocks do not lie in one piece
  mp_status_t status = bench_compile(&bench, text);
  if (status == NULL) status = bench_run(&bench, (const void *[]){x}, (void *[]){y});
  bench_end(&bench);
  return status;
}

static void test_revisits(void **state) {
  (void)state;
  float *x = counting(32 * 128), *y = counting(16 * 256);
  for (int is_any = 0; is_any < 2; ++is_any) {
    assert_ok(run_revisits(is_any != 0 ? REVISITS("any") : REVISITS("immediate"), x, y));
    for (int i = 0; i < 16; ++i) {
      for (int j = 0; j < 128; ++j) {
        const float first = x[i * 128 + j], second = x[(i + 16) * 128 + j];
        assert_true(y[i * 256 + j] == (is_any != 0 ? fminf(first, second) : second));
        assert_true(isnan(y[i * 256 + 128 + j]));  // the grid never comes there
      }
    }
  }
  assert_status(run_revisits(REVISITS("seldom"), x, y), MP_UNIMPLEMENTED,
                "Mosaic function 'k': revisit_mode seldom of the window of argument 2 is not "
                "supported");
  free(x);
  free(y);
}

// ---- blocks in an order that the grid's bounds determine ----

#define LAST_FIRST                                                                               \
  "module attributes {stable_mosaic.version = 13 : i64} {\n" OP                                  \
  "func.func\"() ({\n^bb0(%i: i32):\n%n = " OP                                                   \
  "tpu.iteration_bound\"() {dim = 0 : i32} : () -> i32\n%o = " OP                                \
  "arith.constant\"() {value = 1 : i32} : () -> i32\n%f = " OP                                   \
  "arith.constant\"() {value = 0 : i32} : () -> i32\n%l = " OP                                   \
  "arith.subi\"(%n, %o) : (i32, i32) -> i32\n%r = " OP                                           \
  "arith.subi\"(%l, %i) : (i32, i32) -> i32\n" OP                                                \
  "func.return\"(%r, %f) : (i32, i32) -> ()\n}) {function_type = (i32) -> (i32, i32), sym_name " \
  "= \"t\"} : () -> ()\n" OP "func.func\"() ({\n^bb0(" ARGS "):\n" ZERO LOAD("%a", "%x")         \
      STORE("%a", "%y") RETURN                                                                   \
      "}) {function_type = (" TYPES ") -> (), sym_name = \"k\"" PARALLEL WINDOWS(                \
          "2", "{transform_indices = @t}, {transform_indices = @t}") "} : () -> ()\n}\n"

// ---- functions of indices that write memory ----

#define SCALARS "memref<4xi32, #tpu.memory_space<smem>>"
#define STORES_INDEX \
  "module attributes {stable_mosaic.version = 13 : i64} {\n" OP                                   \
  "func.func\"() ({\n^bb0(%i: i32, %p: " SCALARS "):\n" ZERO "%f = " OP                           \
  "arith.constant\"() {value = 0 : i32} : () -> i32\n" OP                                         \
  "memref.store\"(%i, %p, %z) : (i32, " SCALARS ", index) -> ()\n" OP                             \
  "func.return\"(%i, %f) : (i32, i32) -> ()\n}) {function_type = (i32, " SCALARS                  \
  ") -> (i32, i32), sym_name = \"t\"} : () -> ()\n" OP                                            \
  "func.func\"() ({\n^bb0(%i: i32, %p: " SCALARS                                                  \
  ", %x: " VMEM("8x128") ", %y: " VMEM("8x128") "):\n" ZERO LOAD("%a", "%x")                      \
      STORE(                                                                                      \
          "%a",                                                                                   \
          "%y") RETURN "}) {function_type = (i32, " SCALARS                                       \
                       ", " VMEM("8x128") ", " VMEM(                                              \
                           "8x128") ") -> (), sym_name = \"k\", scalar_prefetch = 1 : "           \
                                    "i64" WINDOWS("2",                                            \
                                                  "{transform_indices = @t}, {transform_indices " \
                                                  "= @t}") "} : () -> ()\n}\n"

// The memory is there in runs alone.
static void test_stored_index(void **state) {
  (void)state;
  bench_t bench;
  bench_begin(&bench);
  assert_ok(mp_type_tensor(bench.module->arena, MP_DTYPE_S32, (int64_t[]){4}, 1,
                           &bench.operands[bench.num_operands++]));
  bench_operand(&bench, MP_DTYPE_F32, 16, 128);
  bench_result(&bench, MP_DTYPE_F32, 16, 128);
  mallopt(M_PERTURB, 0xAA);  // new memory is not zero
  assert_ok(bench_compile(&bench, STORES_INDEX));
  mallopt(M_PERTURB, 0);
  const int32_t scalars[4] = {0};
  float *x = counting(2048), *y = counting(2048);
  memset(y, 0, 2048 * sizeof(*y));
  assert_ok(bench_run(&bench, (const void *[]){scalars, x}, (void *[]){y}));
  assert_memory_equal(x, y, 2048 * sizeof(*x));
  free(x);
  free(y);
  bench_end(&bench);
}

// ---- what is never written ----

// Two blocks, of which the kernel writes `written` values; the others are unset.
static void check_written(const char *text, uint32_t num_parts, int written) {
  bench_t bench;
  bench_begin(&bench);
  bench_operand(&bench, MP_DTYPE_F32, 16, 128);
  bench_result(&bench, MP_DTYPE_F32, 16, 128);
  assert_ok(bench_compile(&bench, text));
  assert_int_equal(bench.kernel->num_parts, num_parts);
  float *x = counting(2048), *y = counting(2048);
  for (int i = 0; i < 2048; ++i) y[i] = -1;
  assert_ok(bench_run(&bench, (const void *[]){x}, (void *[]){y}));
  for (int i = 0; i < 2048; ++i) assert_true(i < written ? y[i] == x[i] : isnan(y[i]));
  free(x);
  free(y);
  bench_end(&bench);
}

#define COPY ZERO LOAD("%a", "%x") STORE("%a", "%y")
#define IN_FIRST_STEP                                                           \
  ZERO "%f = " OP "arith.constant\"() {value = 0 : i32} : () -> i32\n%is = " OP \
       "arith.cmpi\"(%i, %f) {predicate = 0 : i64} : (i32, i32) -> i1\n" OP     \
       "scf.if\"(%is) ({\n" LOAD("%a", "%x") STORE("%a", "%y") OP               \
      "scf.yield\"() : () -> ()"                                                \
      "\n}, {\n}) : (i1) -> ()\n"
#define PARALLEL ", dimension_semantics = [#tpu.dimension_semantics<parallel>]"
#define ROW2     "{" AT("d0") "}, {" AT("d0") "}"

static void test_unwritten(void **state) {
  (void)state;
  check_written(MODULE(ARGS, TYPES, COPY, PARALLEL WINDOWS("2", ROW2)), 2, 2048);
  check_written(MODULE(ARGS, TYPES, COPY, PARALLEL WINDOWS("1", ROW2)), 1, 1024);
  check_written(MODULE(ARGS, TYPES, ZERO, PARALLEL WINDOWS("2", ROW2)), 2, 0);
  check_written(MODULE(ARGS, TYPES, IN_FIRST_STEP, PARALLEL WINDOWS("2", ROW2)), 2, 1024);
  // Blocks in another order: the grid comes to both, and to the first one only.
  check_written(
      MODULE(ARGS, TYPES, COPY, PARALLEL WINDOWS("2", "{" AT("1 - d0") "}, {" AT("1 - d0") "}")), 2,
      2048);
  check_written(
      MODULE(ARGS, TYPES, COPY,
             PARALLEL WINDOWS("2", "{" AT("d0 floordiv 2") "}, {" AT("d0 floordiv 2") "}")),
      1, 1024);
  check_written(LAST_FIRST, 2, 2048);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_shared),
      cmocka_unit_test(test_revisits),
      cmocka_unit_test(test_stored_index),
      cmocka_unit_test(test_unwritten),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
