// Ops that wait for the first use of their result: the memory that it saves, and when they stay.

#include "sim/plan/compile.h"
#include "tests/unit/support/unit.h"

#define T "tensor<64x64xf32>"
enum { MATRIX = 64 * 64 * 4 };

static mp_program_t *compile(const char *text) {
  const mp_compile_request_t request = {.op_by_op = true};
  mp_program_t *program = NULL;
  assert_ok(mp_compile(text, strlen(text), &request, &program));
  return program;
}

static void expect_arena(const char *text, uint64_t matrices) {
  mp_program_t *program = compile(text);
  // Scalars take 64 bytes each.
  assert_in_range(program->arena_bytes, matrices * MATRIX, matrices * MATRIX + 256);
  mp_program_release(program);
}

static uint32_t count(const mp_program_t *program, mp_cmd_kind_t kind) {
  uint32_t num = 0;
  for (uint32_t i = 0; i < program->num_commands; ++i) num += program->commands[i].kind == kind;
  return num;
}

// Three products before the first use of %k.
#define USE_OF_K                                     \
  "%a = stablehlo.dot %x, %y : (" T ", " T ") -> " T \
  "\n"                                               \
  "%b = stablehlo.dot %a, %y : (" T ", " T ") -> " T \
  "\n"                                               \
  "%c = stablehlo.dot %b, %y : (" T ", " T ") -> " T \
  "\n"                                               \
  "%d = stablehlo.add %c, %k : " T                   \
  "\n"                                               \
  "%e = stablehlo.dot %d, %y : (" T ", " T ") -> " T \
  "\n"                                               \
  "return %e : " T "\n}\n"

// %k is needed at the end, its operand is there all the time: without waiting, three matrices.
static void an_op_waits_for_its_use(void **state) {
  (void)state;
  expect_arena("func.func @main(%x: " T ", %y: " T ") -> " T
               " {\n"
               "%k = stablehlo.multiply %x, %y : " T "\n" USE_OF_K,
               2);
}

// The same when it is computed in steps, a reshape among them, each the last use of the one before.
static void a_chain_waits_as_a_whole(void **state) {
  (void)state;
  expect_arena("func.func @main(%x: " T ", %y: " T ") -> " T
               " {\n"
               "%i = stablehlo.multiply %x, %y : " T
               "\n"
               "%j = stablehlo.reshape %i : (" T
               ") -> tensor<4096xf32>\n"
               "%l = stablehlo.tanh %j : tensor<4096xf32>\n"
               "%k = stablehlo.reshape %l : (tensor<4096xf32>) -> " T "\n" USE_OF_K,
               2);
}

// %k is the last to use %a, which would have to live as long instead, and %s lets go of %f, which
// is larger: neither may wait.
static void an_op_stays_that_lets_memory_go(void **state) {
  (void)state;
  mp_program_t *program = compile("func.func @main(%x: " T ", %y: " T ") -> (" T
                                  ", tensor<64x32xf32>) {\n"
                                  "%a = stablehlo.dot %x, %y : (" T ", " T ") -> " T
                                  "\n"
                                  "%f = stablehlo.dot %a, %y : (" T ", " T ") -> " T
                                  "\n"
                                  "%k = stablehlo.tanh %a : " T
                                  "\n"
                                  "%s = stablehlo.slice %f [0:64, 0:32] : (" T
                                  ") -> tensor<64x32xf32>\n"
                                  "%b = stablehlo.dot %y, %x : (" T ", " T ") -> " T
                                  "\n"
                                  "%c = stablehlo.dot %b, %s : (" T
                                  ", tensor<64x32xf32>) -> tensor<64x32xf32>\n"
                                  "%d = stablehlo.dot %b, %k : (" T ", " T ") -> " T
                                  "\n"
                                  "return %d, %c : " T ", tensor<64x32xf32>\n}\n");
  static const char *const order[] = {"dot_general", "dot_general", "tanh",       "slice",
                                      "dot_general", "dot_general", "dot_general"};
  for (uint32_t i = 0; i < sizeof(order) / sizeof(*order); ++i) {
    assert_string_equal(program->commands[i].name + strlen("stablehlo."), order[i]);
  }
  mp_program_release(program);
}

// %k could wait for %d, but then it would read %x after the result has been written there.
static void donated_memory_is_free_as_early(void **state) {
  (void)state;
  mp_program_t *program =
      compile("func.func @main(%x: " T " {tf.aliasing_output = 0 : i32}, %y: " T ") -> (" T ", " T
              ") {\n"
              "%k = stablehlo.tanh %x : " T
              "\n"
              "%a = stablehlo.add %x, %y : " T
              "\n"
              "%b = stablehlo.dot %a, %y : (" T ", " T ") -> " T
              "\n"
              "%d = stablehlo.dot %b, %k : (" T ", " T ") -> " T
              "\n"
              "return %a, %d : " T ", " T "\n}\n");
  assert_int_equal(count(program, MP_CMD_COPY), 0);
  assert_string_equal(program->commands[0].name, "stablehlo.tanh");
  mp_program_release(program);
}

// In a loop the values from outside live until it ends, but what it carries is wanted for the next
// round: %k waits, and %l does not.
static void loops_have_an_order_of_their_own(void **state) {
  (void)state;
  mp_program_t *program = compile(
      "func.func @main(%x: " T ", %y: " T ", %n: tensor<i32>) -> " T
      " {\n"
      "%0:2 = stablehlo.while(%c = %x, %i = %n) : " T
      ", tensor<i32>\n"
      "cond {\n"
      "%p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
      "stablehlo.return %p : tensor<i1>\n} do {\n"
      "%k = stablehlo.multiply %y, %y : " T
      "\n"
      "%l = stablehlo.tanh %c : " T
      "\n"
      "%m = stablehlo.dot %y, %c : (" T ", " T ") -> " T
      "\n"
      "%o = stablehlo.dot %m, %k : (" T ", " T ") -> " T
      "\n"
      "%q = stablehlo.dot %o, %y : (" T ", " T ") -> " T
      "\n"
      "%r = stablehlo.add %q, %l : " T
      "\n"
      "stablehlo.return %r, %i : " T
      ", tensor<i32>\n}\n"
      "return %0#0 : " T "\n}\n");
  uint32_t at[3] = {0};
  for (uint32_t i = 0; i < program->num_commands; ++i) {
    const char *name = program->commands[i].name;
    if (strcmp(name, "stablehlo.tanh") == 0) at[0] = i;
    if (strcmp(name, "stablehlo.dot_general") == 0 && at[1] == 0) at[1] = i;
    if (strcmp(name, "stablehlo.multiply") == 0) at[2] = i;
  }
  assert_true(0 < at[0] && at[0] < at[1] && at[1] < at[2]);
  mp_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_op_waits_for_its_use),
      cmocka_unit_test(a_chain_waits_as_a_whole),
      cmocka_unit_test(an_op_stays_that_lets_memory_go),
      cmocka_unit_test(donated_memory_is_free_as_early),
      cmocka_unit_test(loops_have_an_order_of_their_own),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
