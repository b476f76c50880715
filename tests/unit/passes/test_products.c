// Products of transposed values and transposed products: which transposes vanish, and that the
// bits are those of a program in which they cannot.
#include <stdio.h>

#include "tests/unit/support/hostile/hostile_values.h"
#include "tests/unit/support/text_runs.h"

typedef struct {
  const char *x, *y, *result;  // the types of the arguments and of the result
  const char *body;            // %r is the result; BARRIER stands where values may be held up
  uint32_t transposes;         // that are left
} case_t;

static const case_t k_cases[] = {
    {"7x5xf32", "7x6xf32", "5x6xf32",
     "%t = stablehlo.transpose %x, dims = [1, 0] : (tensor<7x5xf32>) -> tensor<5x7xf32>\n"
     "%u = BARRIER %t : tensor<5x7xf32>\n"
     "%r = stablehlo.dot_general %u, %y, contracting_dims = [1] x [0] : (tensor<5x7xf32>, "
     "tensor<7x6xf32>) -> tensor<5x6xf32>\n",
     0},
    {"3x5x7xf32", "3x7x6xbf16", "3x6x5xf32",
     "%t = stablehlo.dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [2] x [1], "
     "precision = [HIGH, DEFAULT] : (tensor<3x5x7xf32>, tensor<3x7x6xbf16>) -> "
     "tensor<3x5x6xf32>\n"
     "%u = BARRIER %t : tensor<3x5x6xf32>\n"
     "%r = stablehlo.transpose %u, dims = [0, 2, 1] : (tensor<3x5x6xf32>) -> tensor<3x6x5xf32>\n",
     0},
    // The batch dimension comes last before the transpose; rows and columns are two dimensions.
    {"4x5x7x3xf32", "3x7x6xf32", "3x6x4x5xf32",
     "%a = stablehlo.transpose %x, dims = [3, 0, 2, 1] : (tensor<4x5x7x3xf32>) -> "
     "tensor<3x4x7x5xf32>\n"
     "%b = BARRIER %a : tensor<3x4x7x5xf32>\n"
     "%t = stablehlo.dot_general %b, %y, batching_dims = [0] x [0], contracting_dims = [2] x [1] : "
     "(tensor<3x4x7x5xf32>, tensor<3x7x6xf32>) -> tensor<3x4x5x6xf32>\n"
     "%u = BARRIER %t : tensor<3x4x5x6xf32>\n"
     "%r = stablehlo.transpose %u, dims = [0, 3, 1, 2] : (tensor<3x4x5x6xf32>) -> "
     "tensor<3x6x4x5xf32>\n",
     0},
    // The rows' two dimensions change places.
    {"4x5x7xf32", "7x6xf32", "5x4x6xf32",
     "%t = stablehlo.transpose %x, dims = [1, 0, 2] : (tensor<4x5x7xf32>) -> tensor<5x4x7xf32>\n"
     "%u = BARRIER %t : tensor<5x4x7xf32>\n"
     "%r = stablehlo.dot_general %u, %y, contracting_dims = [2] x [0] : (tensor<5x4x7xf32>, "
     "tensor<7x6xf32>) -> tensor<5x4x6xf32>\n",
     1},
    {"4x5x7xf32", "7x6xf32", "6x5x4xf32",
     "%t = stablehlo.dot_general %x, %y, contracting_dims = [2] x [0] : (tensor<4x5x7xf32>, "
     "tensor<7x6xf32>) -> tensor<4x5x6xf32>\n"
     "%u = BARRIER %t : tensor<4x5x6xf32>\n"
     "%r = stablehlo.transpose %u, dims = [2, 1, 0] : (tensor<4x5x6xf32>) -> tensor<6x5x4xf32>\n",
     1},
    // Two products over two dimensions, of which one is also wanted as it is.
    {"7x2x5xf32", "2x7x6xf32", "6x5xf32",
     "%t = stablehlo.dot_general %x, %y, contracting_dims = [0, 1] x [1, 0] : "
     "(tensor<7x2x5xf32>, tensor<2x7x6xf32>) -> tensor<5x6xf32>\n"
     "%u = BARRIER %t : tensor<5x6xf32>\n"
     "%a = stablehlo.transpose %u, dims = [1, 0] : (tensor<5x6xf32>) -> tensor<6x5xf32>\n"
     "%d = BARRIER %a : tensor<6x5xf32>\n"
     "%b = stablehlo.dot_general %t, %t, contracting_dims = [0] x [0] : (tensor<5x6xf32>, "
     "tensor<5x6xf32>) -> tensor<6x6xf32>\n"
     "%r = stablehlo.dot_general %b, %d, contracting_dims = [1] x [0] : (tensor<6x6xf32>, "
     "tensor<6x5xf32>) -> tensor<6x5xf32>\n",
     0},
    // A loop would compute the product in each round.
    {"5x7xf32", "7x6xf32", "6x5xf32",
     "%t = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<5x7xf32>, "
     "tensor<7x6xf32>) -> tensor<5x6xf32>\n"
     "%u = BARRIER %t : tensor<5x6xf32>\n"
     "%z = stablehlo.constant dense<0> : tensor<i32>\n"
     "%o = stablehlo.constant dense<1> : tensor<i32>\n"
     "%n = stablehlo.constant dense<3> : tensor<i32>\n"
     "%q = stablehlo.constant dense<0.0> : tensor<6x5xf32>\n"
     "%w:2 = stablehlo.while(%i = %z, %a = %q) : tensor<i32>, tensor<6x5xf32>\n"
     "cond {\n"
     "%p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
     "stablehlo.return %p : tensor<i1>\n"
     "} do {\n"
     "%s = stablehlo.transpose %u, dims = [1, 0] : (tensor<5x6xf32>) -> tensor<6x5xf32>\n"
     "%b = stablehlo.add %a, %s : tensor<6x5xf32>\n"
     "%j = stablehlo.add %i, %o : tensor<i32>\n"
     "stablehlo.return %j, %b : tensor<i32>, tensor<6x5xf32>\n"
     "}\n"
     "%r = stablehlo.negate %w#1 : tensor<6x5xf32>\n",
     1},
    // Sums of complex products have another order when they are exchanged.
    {"5x7xcomplex<f32>", "7x6xcomplex<f32>", "6x5xcomplex<f32>",
     "%t = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<5x7xcomplex<f32>>, "
     "tensor<7x6xcomplex<f32>>) -> tensor<5x6xcomplex<f32>>\n"
     "%u = BARRIER %t : tensor<5x6xcomplex<f32>>\n"
     "%r = stablehlo.transpose %u, dims = [1, 0] : (tensor<5x6xcomplex<f32>>) -> "
     "tensor<6x5xcomplex<f32>>\n",
     1},
};

// The program, with barriers or with something in their place that changes nothing.
static void write_program(const case_t *c, bool has_barriers, char *out) {
  const char *word = has_barriers ? "stablehlo.optimization_barrier" : "stablehlo.convert";
  out += sprintf(out, "func.func @main(%%x: tensor<%s>, %%y: tensor<%s>) -> tensor<%s> {\n", c->x,
                 c->y, c->result);
  for (const char *at = c->body; *at != '\0';) {
    if (strncmp(at, "BARRIER", 7) == 0) {
      out += sprintf(out, "%s", word);
      at += 7;
    } else {
      *out++ = *at++;
    }
  }
  sprintf(out, "return %%r : tensor<%s>\n}\n", c->result);
}

static uint32_t count_transposes(const mp_program_t *program) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < program->num_commands; ++i) {
    const char *name = program->commands[i].name;
    count += name != NULL && strcmp(name, "stablehlo.transpose") == 0;
  }
  return count;
}

// Runs the program; the number of its transposes.
static uint32_t run(mp_client_t *client, const case_t *c, bool has_barriers, text_run_t *out_run) {
  char text[4096];
  write_program(c, has_barriers, text);
  mp_status_t status =
      text_run_begin_as(client, text, &(mp_compile_request_t){.op_by_op = true}, out_run);
  if (status != NULL) fail_msg("%s\n%s", mp_status_message(status), text);
  char *arguments[2];
  uint64_t state = 1;
  for (uint32_t i = 0; i < 2; ++i) {
    const mp_program_io_t *io = &out_run->program->params[i];
    arguments[i] = malloc((size_t)io->bytes);
    assert_non_null(arguments[i]);
    // Numbers between 1 and 2, whose sums are not exact.
    const mp_dtype_t real = mp_dtype_real_part(io->type->dtype);
    const uint64_t size = mp_dtype_size(real);
    for (uint64_t k = 0; k < io->bytes / size; ++k) {
      const uint32_t bits = 0x3f800000u | (uint32_t)(hostile_random(&state) & 0x7fffff);
      memcpy(arguments[i] + k * size, (const char *)&bits + 4 - size, (size_t)size);
    }
  }
  assert_ok(text_run_launch(out_run, (const void *const *)arguments));
  for (uint32_t i = 0; i < 2; ++i) free(arguments[i]);
  return count_transposes(out_run->program);
}

static void test_products(void **state) {
  (void)state;
  mp_client_t *client = make_client(1);
  for (size_t i = 0; i < sizeof(k_cases) / sizeof(k_cases[0]); ++i) {
    text_run_t with = {0}, without = {0};
    assert_true(run(client, &k_cases[i], true, &with) > 0);
    const uint32_t left = run(client, &k_cases[i], false, &without);
    if (left != k_cases[i].transposes) fail_msg("case %zu has %u transposes", i, left);
    assert_memory_equal(with.results[0][0], without.results[0][0],
                        (size_t)with.program->results[0].bytes);
    text_run_end(&with);
    text_run_end(&without);
  }
  mp_client_release(client);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_products)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
