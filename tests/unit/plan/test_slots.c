// Which values share memory: temporary memory that a program does without, because values are
// computed where results lie or where an operand lay.

#include "sim/plan/compile.h"
#include "tests/unit/support/unit.h"

#define T "tensor<64x64xf32>"
enum { MATRIX = 64 * 64 * 4 };

// Compiles the program with ops fused or not, and checks how many matrices its arena has.
static void expect_arena(const char *text, bool op_by_op, uint64_t matrices) {
  const mp_compile_request_t request = {.op_by_op = op_by_op};
  mp_program_t *program = NULL;
  assert_ok(mp_compile(text, strlen(text), &request, &program));
  // Scalars take 64 bytes each.
  assert_in_range(program->arena_bytes, matrices * MATRIX, matrices * MATRIX + 256);
  mp_program_release(program);
}

#define DOT(TO, FROM) "%" TO " = stablehlo.dot %" FROM ", %y : (" T ", " T ") -> " T "\n"

// Each of the ops may overwrite its first operand, so the product is computed into the result.
static void a_chain_lies_where_the_result_lies(void **state) {
  (void)state;
  static const char text[] = "func.func @main(%x: " T ", %y: " T ") -> " T " {\n" DOT(
      "a", "x") "%b = stablehlo.tanh %a : " T
                "\n"
                "%c = stablehlo.reshape %b : (" T
                ") -> tensor<4096xf32>\n"
                "%d = stablehlo.negate %c : tensor<4096xf32>\n"
                "%e = stablehlo.reshape %d : (tensor<4096xf32>) -> " T "\nreturn %e : " T "\n}\n";
  expect_arena(text, true, 0);
  expect_arena(text, false, 0);
}

// The memory of %x is the result's. The product cannot lie there: %x is still read for the sum.
static void a_donated_argument_is_kept_while_it_is_read(void **state) {
  (void)state;
  static const char text[] =
      "func.func @main(%x: " T " {tf.aliasing_output = 0 : i32}, %y: " T ") -> " T
      " {\n" DOT("a", "x") "%b = stablehlo.tanh %a : " T
                           "\n"
                           "%c = stablehlo.add %b, %x : " T "\nreturn %c : " T "\n}\n";
  expect_arena(text, true, 1);
  expect_arena(text, false, 1);
}

// What is read again later keeps its memory.
static void what_is_read_later_is_kept(void **state) {
  (void)state;
  static const char text[] = "func.func @main(%x: " T ", %y: " T ") -> " T " {\n" DOT(
      "a", "x") "%b = stablehlo.tanh %a : " T "\n" DOT("c", "b") "%d = stablehlo.add %c, %a : " T
                                                                 "\nreturn %d : " T "\n}\n";
  // Either %a or %c lies in the result, and %b where nothing else lies.
  expect_arena(text, true, 2);
}

// One op with three results, each of which may overwrite another donated argument.
static void each_result_of_a_fusion_overwrites_an_argument(void **state) {
  (void)state;
  static const char text[] = "func.func @main(%p: " T " {tf.aliasing_output = 0 : i32}, %m: " T
                             " {tf.aliasing_output = 1 : i32}, %v: " T
                             " {tf.aliasing_output = 2 : i32}, %g: " T ") -> (" T ", " T ", " T
                             ") {\n"
                             "%a = stablehlo.add %m, %g : " T
                             "\n"
                             "%s = stablehlo.multiply %g, %g : " T
                             "\n"
                             "%b = stablehlo.add %v, %s : " T
                             "\n"
                             "%r = stablehlo.divide %a, %b : " T
                             "\n"
                             "%q = stablehlo.subtract %p, %r : " T
                             "\n"
                             "return %q, %a, %b : " T ", " T ", " T "\n}\n";
  expect_arena(text, false, 0);
}

// %a and %b both end at the fused op, which writes two results over them: each over another one.
// One of the two lies where %f will lie.
static void two_results_take_two_operands(void **state) {
  (void)state;
  static const char text[] =
      "func.func @main(%x: " T ", %y: " T ") -> (" T ", " T ") {\n" DOT("a", "x")
          DOT("b", "a") "%c = stablehlo.add %a, %b : " T
                        "\n"
                        "%d = stablehlo.multiply %c, %c : " T "\n" DOT("e", "c")
                            DOT("f", "d") "%g = stablehlo.add %e, %f : " T "\nreturn %g, %f : " T
                                          ", " T "\n}\n";
  expect_arena(text, false, 1);
}

// %a and %c lie where %f is written last, %b where %e will lie; %d is needed longer than that.
static void results_lend_their_memory(void **state) {
  (void)state;
  static const char text[] =
      "func.func @main(%x: " T ", %y: " T ") -> (" T
      ", tensor<128x64xf32>"
      ") {\n" DOT("a", "x") DOT("b", "a") DOT("c", "b")
          DOT("d", "c") "%e = stablehlo.concatenate %c, %d, dim = 0 : (" T ", " T
                        ") -> tensor<128x64xf32>\n"
                        "%f = stablehlo.dot %y, %x : (" T ", " T ") -> " T "\nreturn %f, %e : " T
                        ", tensor<128x64xf32>\n}\n";
  expect_arena(text, true, 1);
}

// ---- Results that begin as an operand ----

#define LARGE "tensor<700x500xf32>"
#define SMALL "tensor<70x50xf32>"
#define UPDATE(ARRAY, ATTRIBUTES)                                                                 \
  "func.func @main(%x: " ARRAY " " ATTRIBUTES ", %u: tensor<2x3xf32>, %i: tensor<i32>) -> " ARRAY \
  " {\n"                                                                                          \
  "%r = stablehlo.dynamic_update_slice %x, %u, %i, %i : (" ARRAY                                  \
  ", tensor<2x3xf32>, tensor<i32>, tensor<i32>) -> " ARRAY "\nreturn %r : " ARRAY "\n}\n"
#define SCATTER(ARRAY)                                                                 \
  "func.func @main(%x: " ARRAY ", %y: " ARRAY                                          \
  ", %u: tensor<4xf32>, %i: tensor<4x2xi32>) -> (" ARRAY ", " ARRAY                    \
  ") {\n"                                                                              \
  "%r:2 = \"stablehlo.scatter\"(%x, %y, %i, %u, %u) ({\n"                              \
  "^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>, %d: tensor<f32>):\n"        \
  "stablehlo.return %c, %d : tensor<f32>, tensor<f32>\n"                               \
  "}) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0, 1], " \
  "scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>} : (" ARRAY ", " ARRAY \
  ", tensor<4x2xi32>, tensor<4xf32>, tensor<4xf32>) -> (" ARRAY ", " ARRAY             \
  ")\nreturn %r#0, %r#1 : " ARRAY ", " ARRAY "\n}\n"

// Compiles the program and checks that its one kernel comes behind so many copies, and writes the
// results over the operands that were copied.
static void expect_copies(const char *text, uint32_t copies) {
  const mp_compile_request_t request = {0};
  mp_program_t *program = NULL;
  assert_ok(mp_compile(text, strlen(text), &request, &program));
  assert_int_equal(program->num_commands, copies + 2);
  const mp_cmd_t *launch = &program->commands[copies];
  assert_int_equal(launch->kind, MP_CMD_LAUNCH);
  for (uint32_t i = 0; i < copies; ++i) {
    const mp_cmd_t *copy = &program->commands[i];
    assert_int_equal(copy->kind, MP_CMD_COPY);
    assert_int_equal(copy->operands[0].kind, MP_SLOT_PARAM);
    assert_int_equal(copy->operands[0].index, i);
    assert_int_equal(copy->results[0].kind, MP_SLOT_RESULT);
    assert_int_equal(copy->results[0].index, i);
    assert_int_equal(launch->operands[i].kind, MP_SLOT_RESULT);
    assert_int_equal(launch->operands[i].index, i);
  }
  mp_program_release(program);
}

static void large_operands_are_copied_before_an_update(void **state) {
  (void)state;
  expect_copies(UPDATE(LARGE, ""), 1);
  expect_copies(UPDATE(SMALL, ""), 0);
  expect_copies(SCATTER(LARGE), 2);
  expect_copies(SCATTER(SMALL), 0);
}

// ---- Results of a case ----

static uint32_t count_copies(const char *text) {
  const mp_compile_request_t request = {.op_by_op = true};
  mp_program_t *program = NULL;
  assert_ok(mp_compile(text, strlen(text), &request, &program));
  uint32_t copies = 0;
  for (uint32_t i = 0; i < program->num_commands; ++i) {
    copies += program->commands[i].kind == MP_CMD_COPY;
  }
  mp_program_release(program);
  return copies;
}

#define CASE(VALUE, BRANCH)                                                      \
  "\"stablehlo.case\"(%i) ({\nstablehlo.return " VALUE " : " T "\n}, {\n" BRANCH \
  "stablehlo.return %n : " T "\n}) : (tensor<i32>) -> " T "\n"
#define WITH_CASE(BRANCH) \
  "func.func @main(%x: " T ", %y: " T ", %i: tensor<i32>) -> " T       \
  " {\n" DOT("k", "x") "%r = " CASE("%k", BRANCH) "%z = stablehlo.dot " \
  "%r, %y : (" T ", " T ") -> " T "\nreturn %z : " T "\n}\n"

// The result lies where %k lies, over which the branch may write unless it reads %k later.
static void a_case_gives_on_without_a_copy(void **state) {
  (void)state;
  assert_int_equal(count_copies(WITH_CASE("%n = stablehlo.add %k, %y : " T "\n")), 0);
  assert_int_equal(count_copies(WITH_CASE("%n = stablehlo.add %x, %y : " T "\n")), 0);
  assert_int_equal(count_copies(WITH_CASE(DOT("n", "k"))), 1);
}

#define LOOP(RESULT)                                                               \
  "func.func @main(%x: " T ", %y: " T ", %i: tensor<i32>) -> " T                   \
  " {\n%one = stablehlo.constant dense<1> : tensor<i32>\n"                         \
  "%l:2 = stablehlo.while(%j = %i, %c = %x) : tensor<i32>, " T                     \
  "\ncond {\n%p = stablehlo.compare LT, %j, %one : (tensor<i32>, tensor<i32>) -> " \
  "tensor<i1>\nstablehlo.return %p : tensor<i1>\n} do {\n"                         \
  "%m = stablehlo.add %j, %one : tensor<i32>\n"                                    \
  "%r = " CASE("%c", "%n = stablehlo.subtract %y, %y : " T "\n") "%s = " CASE(     \
      "%r", "%n = stablehlo.add %r, %y : " T "\n") "stablehlo.return %m, " RESULT  \
                                                   " : tensor<i32>, " T            \
                                                   "\n}\nreturn %l#1 : "           \
                                                   "" T "\n}\n"

// All lie where the loop has what it carries; only its two start values are copied there.
static void cases_of_a_loop_change_what_it_carries(void **state) {
  (void)state;
  assert_int_equal(count_copies(LOOP("%s")), 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_chain_lies_where_the_result_lies),
      cmocka_unit_test(a_donated_argument_is_kept_while_it_is_read),
      cmocka_unit_test(what_is_read_later_is_kept),
      cmocka_unit_test(each_result_of_a_fusion_overwrites_an_argument),
      cmocka_unit_test(two_results_take_two_operands),
      cmocka_unit_test(results_lend_their_memory),
      cmocka_unit_test(large_operands_are_copied_before_an_update),
      cmocka_unit_test(a_case_gives_on_without_a_copy),
      cmocka_unit_test(cases_of_a_loop_change_what_it_carries),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
