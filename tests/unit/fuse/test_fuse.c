// Fused programs have the bits of the same programs op by op: programs drawn at random, and a few
// of which it is known what becomes one op.
#include "tests/unit/support/unit.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/support/fused_runs.h"
#include "tests/unit/support/hostile/fusable_programs.h"

// Programs of an everyday run; sanitizers take ten times as long.
#ifdef UNIT_SANITIZED
enum { NUM_PROGRAMS = 250 };
#else
enum { NUM_PROGRAMS = 2000 };
#endif

// MINIPOD_TEST_PROGRAMS: how many programs; MINIPOD_TEST_SEED: the first one's number.
static void check_programs(uint64_t usual_count, bool with_code) {
  const char *count_text = getenv("MINIPOD_TEST_PROGRAMS"), *seed = getenv("MINIPOD_TEST_SEED");
  const uint64_t count = count_text == NULL ? usual_count : strtoull(count_text, NULL, 10);
  const uint64_t first = seed == NULL ? 1 : strtoull(seed, NULL, 10);
  mp_client_t *client = make_client(1);
  for (uint64_t i = 0; i < count; ++i) {
    draw_t draw;
    draw_program(&draw, first + i);
    if (with_code) {
      check_native(client, mp_strbuf_text(&draw.text), first + i);
    } else {
      check_text(client, mp_strbuf_text(&draw.text), first + i);
    }
    mp_strbuf_deinit(&draw.text);
  }
  mp_client_release(client);
}

static void random_programs_keep_their_bits(void **state) {
  (void)state;
  check_programs(NUM_PROGRAMS, false);
}

static void machine_code_keeps_the_bits(void **state) {
  (void)state;
  if (!native_is_there()) skip();
  check_programs(NUM_PROGRAMS / 10, true);
}

// ---- what becomes one op ----

#define T "tensor<8x40xf32>"
#define C "tensor<8xf32>"

static void a_chain_is_one(void **state) {
  (void)state;
  expect_launches("func.func @main(%x: " T ", %y: " T ") -> " T
                  " {\n"
                  "%a = stablehlo.multiply %x, %y : " T
                  "\n"
                  "%b = stablehlo.tanh %a : " T
                  "\n"
                  "%c = stablehlo.add %b, %x : " T
                  "\n"
                  "return %c : " T "\n}\n",
                  1);
}

static void softmax_is_one(void **state) {
  (void)state;
  expect_launches(
      "func.func @main(%x: " T ") -> " T
      " {\n"
      "%l = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
      "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "%m = stablehlo.reduce(%x init: %l) applies stablehlo.maximum across dimensions = [1] : (" T
      ", tensor<f32>) -> " C
      "\n"
      "%w = stablehlo.broadcast_in_dim %m, dims = [0] : (" C ") -> " T
      "\n"
      "%d = stablehlo.subtract %x, %w : " T
      "\n"
      "%e = stablehlo.exponential %d : " T
      "\n"
      "%s = stablehlo.reduce(%e init: %z) applies stablehlo.add across dimensions = [1] : (" T
      ", tensor<f32>) -> " C
      "\n"
      "%v = stablehlo.broadcast_in_dim %s, dims = [0] : (" C ") -> " T
      "\n"
      "%r = stablehlo.divide %e, %v : " T
      "\n"
      "return %r : " T "\n}\n",
      1);
}

#define HALF "tensor<8x20xf32>"

// Both read the halves of a row, and neither reads the other.
static void siblings_that_read_one_array_in_pieces_are_one(void **state) {
  (void)state;
  expect_launches("func.func @main(%x: " T ", %y: " T ") -> (" HALF ", " HALF
                  ") {\n"
                  "%l = stablehlo.slice %x [0:8, 0:20] : (" T ") -> " HALF
                  "\n"
                  "%r = stablehlo.slice %x [0:8, 20:40] : (" T ") -> " HALF
                  "\n"
                  "%m = stablehlo.slice %y [0:8, 10:30] : (" T ") -> " HALF
                  "\n"
                  "%a = stablehlo.multiply %l, %m : " HALF
                  "\n"
                  "%b = stablehlo.subtract %m, %r : " HALF
                  "\n"
                  "return %a, %b : " HALF ", " HALF "\n}\n",
                  1);
}

#define LONG "tensor<8x400xf32>"

// One row is a tile, in which each op on sums would be a step for one element.
static void much_work_on_sums_of_long_rows_stays_apart(void **state) {
  (void)state;
  expect_launches(
      "func.func @main(%x: " LONG ") -> " C
      " {\n"
      "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "%a = stablehlo.multiply %x, %x : " LONG
      "\n"
      "%b0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1] : (" LONG
      ", tensor<f32>) -> " C
      "\n"
      "%b1 = stablehlo.multiply %b0, %b0 : " C
      "\n"
      "%b2 = stablehlo.add %b1, %b1 : " C
      "\n"
      "%b3 = stablehlo.multiply %b2, %b2 : " C
      "\n"
      "%b4 = stablehlo.add %b3, %b3 : " C
      "\n"
      "%b5 = stablehlo.multiply %b4, %b4 : " C
      "\n"
      "%b6 = stablehlo.add %b5, %b5 : " C
      "\n"
      "%b7 = stablehlo.multiply %b6, %b6 : " C
      "\n"
      "%b8 = stablehlo.add %b7, %b7 : " C
      "\n"
      "%b9 = stablehlo.multiply %b8, %b8 : " C
      "\n"
      "%b10 = stablehlo.add %b9, %b9 : " C
      "\n"
      "%b11 = stablehlo.multiply %b10, %b10 : " C
      "\n"
      "%b12 = stablehlo.add %b11, %b11 : " C
      "\n"
      "return %b12 : " C "\n}\n",
      2);
}

// The barrier uses %a before %c is there, and %c uses the barrier: they cannot be one op.
static void what_waits_for_itself_stays_two(void **state) {
  (void)state;
  expect_launches("func.func @main(%x: " T ", %y: " T ") -> " T
                  " {\n"
                  "%a = stablehlo.multiply %x, %y : " T
                  "\n"
                  "%b = stablehlo.optimization_barrier %a : " T
                  "\n"
                  "%c = stablehlo.add %a, %b : " T
                  "\n"
                  "return %c : " T "\n}\n",
                  2);
}

// Each step needs elements of the step before that lie elsewhere.
static void what_is_moved_between_stays_two(void **state) {
  (void)state;
  expect_launches("func.func @main(%x: " T ") -> " T
                  " {\n"
                  "%a = stablehlo.multiply %x, %x : " T
                  "\n"
                  "%b = stablehlo.reverse %a, dims = [1] : " T
                  "\n"
                  "%c = stablehlo.add %a, %b : " T
                  "\n"
                  "return %c : " T "\n}\n",
                  2);
}

static void a_used_middle_is_a_result(void **state) {
  (void)state;
  expect_launches("func.func @main(%x: " T ") -> (" T ", " T ", " C
                  ") {\n"
                  "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
                  "%a = stablehlo.multiply %x, %x : " T
                  "\n"
                  "%b = stablehlo.negate %a : " T
                  "\n"
                  "%s = stablehlo.reduce(%b init: %z) applies stablehlo.add across dimensions = "
                  "[1] : (" T ", tensor<f32>) -> " C
                  "\n"
                  "return %a, %b, %s : " T ", " T ", " C "\n}\n",
                  1);
}

// The division of a variance: x / (40 - 0), if that is positive, and NaN otherwise.
static void scalars_of_constants_are_computed_before(void **state) {
  (void)state;
  expect_launches("func.func @main(%x: " T ") -> " T
                  " {\n"
                  "%i = stablehlo.constant dense<0> : tensor<i32>\n"
                  "%n = stablehlo.constant dense<40.0> : tensor<bf16>\n"
                  "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
                  "%k = stablehlo.constant dense<0x7FC00000> : tensor<f32>\n"
                  "%a = stablehlo.convert %i : (tensor<i32>) -> tensor<f32>\n"
                  "%b = stablehlo.convert %n : (tensor<bf16>) -> tensor<f32>\n"
                  "%c = stablehlo.subtract %b, %a : tensor<f32>\n"
                  "%p = stablehlo.compare GT, %c, %z : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
                  "%w = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> " T
                  "\n"
                  "%v = stablehlo.broadcast_in_dim %k, dims = [] : (tensor<f32>) -> " T
                  "\n"
                  "%d = stablehlo.divide %x, %w : " T
                  "\n"
                  "%r = stablehlo.select %p, %d, %v : tensor<i1>, " T "\nreturn %r : " T "\n}\n",
                  1);
}

// A mask and the picked rows of a table are there before the program runs, also within a loop.
static void arrays_of_constants_are_computed_before(void **state) {
  (void)state;
  expect_launches(
      "func.func @main(%x: tensor<3x2xf32>) -> tensor<3x2xf32> {\n"
      "%t = stablehlo.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>\n"
      "%i = stablehlo.constant dense<[[2], [0], [1]]> : tensor<3x1xi32>\n"
      "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "%r = stablehlo.iota dim = 0 : tensor<3x2xi32>\n"
      "%c = stablehlo.iota dim = 1 : tensor<3x2xi32>\n"
      "%m = stablehlo.compare LT, %r, %c : (tensor<3x2xi32>, tensor<3x2xi32>) -> tensor<3x2xi1>\n"
      "%g = \"stablehlo.gather\"(%t, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = "
      "[1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes "
      "= array<i64: 1, 2>, indices_are_sorted = false}> : (tensor<3x2xf32>, tensor<3x1xi32>) -> "
      "tensor<3x2xf32>\n"
      "%s = stablehlo.reduce(%g init: %z) applies stablehlo.add across dimensions = [0] : "
      "(tensor<3x2xf32>, tensor<f32>) -> tensor<2xf32>\n"
      "%b = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<2xf32>) -> tensor<3x2xf32>\n"
      "%a = stablehlo.add %x, %b : tensor<3x2xf32>\n"
      "%o = stablehlo.select %m, %a, %g : tensor<3x2xi1>, tensor<3x2xf32>\n"
      "return %o : tensor<3x2xf32>\n}\n",
      1);
}

// A program may hold fused ops itself; what is in them has to be what fusion would put there.
static void what_cannot_be_fused_is_refused(void **state) {
  (void)state;
  static const char text[] =
      "func.func @main(%a: tensor<4xui32>) -> tensor<8xui32> {\n"
      "%0 = \"minipod.fusion\"(%a) ({\n"
      "^bb0(%x: tensor<4xui32>):\n"
      "%o = stablehlo.concatenate %x, %x, dim = 0 : (tensor<4xui32>, tensor<4xui32>) -> "
      "tensor<8xui32>\n"
      "\"stablehlo.return\"(%o) : (tensor<8xui32>) -> ()\n"
      "}) : (tensor<4xui32>) -> tensor<8xui32>\n"
      "return %0 : tensor<8xui32>\n}\n";
  expect_refused(text, "stablehlo.concatenate");
}

// No program of this size runs, but its memory can be computed: UBSan checks the products.
static void enormous_arrays_compile(void **state) {
  (void)state;
  static const char text[] =
      "func.func @main(%x: tensor<1099511627776xi8>) -> tensor<1099511627776xi8> {\n"
      "%n = stablehlo.negate %x : tensor<1099511627776xi8>\n"
      "%a = stablehlo.add %n, %x : tensor<1099511627776xi8>\n"
      "return %a : tensor<1099511627776xi8>\n}\n";
  const mp_compile_request_t request = {0};
  mp_program_t *program = NULL;
  assert_ok(mp_compile(text, strlen(text), &request, &program));
  mp_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_programs_keep_their_bits),
      cmocka_unit_test(machine_code_keeps_the_bits),
      cmocka_unit_test(a_chain_is_one),
      cmocka_unit_test(softmax_is_one),
      cmocka_unit_test(siblings_that_read_one_array_in_pieces_are_one),
      cmocka_unit_test(much_work_on_sums_of_long_rows_stays_apart),
      cmocka_unit_test(what_waits_for_itself_stays_two),
      cmocka_unit_test(what_is_moved_between_stays_two),
      cmocka_unit_test(a_used_middle_is_a_result),
      cmocka_unit_test(scalars_of_constants_are_computed_before),
      cmocka_unit_test(arrays_of_constants_are_computed_before),
      cmocka_unit_test(what_cannot_be_fused_is_refused),
      cmocka_unit_test(enormous_arrays_compile),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
