// Values in the memory of the chip's host, by hand: which lie there, what crosses, and what both
// memories need.
#include "sim/chip/chip_program.h"
#include "sim/plan/compile.h"
#include "tests/unit/support/op_samples.h"

enum { MIB = 1024 * 1024 };

typedef struct {
  mp_arena_t *arena;
  mp_program_t *program;
  const mp_chip_program_t *chip_program;
} made_t;

static mp_chip_t chip_of(mp_chip_compiler_t compiler) {
  mp_chip_t chip = {.vector_flops = 1e12, .memory_bandwidth = 1e12, .op_latency = 1e-6};
  for (int i = 0; i < MP_FLOP_KIND_COUNT; ++i) chip.flops[i] = 1e14;
  for (int i = 0; i < MP_WORK_CLASS_COUNT; ++i) chip.efficiency[i] = 1;
  chip.figures = mp_chip_figures_none();
  chip.figures.compiler = compiler;
  return chip;
}

// With a link to the host of 1 MiB in a millisecond.
static made_t make_for(mp_chip_compiler_t compiler, const char *text, uint32_t num_replicas) {
  made_t m = {0};
  mp_module_t *module = NULL;
  const mp_chip_t chip = chip_of(compiler);
  const mp_chip_links_t links = {.host_latency = 1e-6, .host_bandwidth = MIB * 1e3};
  const mp_compile_request_t request = {.num_replicas = num_replicas, .keep_partitioned = true};
  assert_ok(mp_read_text(text, strlen(text), &module));
  assert_ok(mp_arena_create(&m.arena));
  assert_ok(mp_compile_module(module, &request, &m.program));
  assert_ok(mp_chip_program_create(&chip, m.program, &links, m.arena, &m.chip_program));
  return m;
}

static made_t make_on(mp_chip_compiler_t compiler, const char *text) {
  return make_for(compiler, text, 1);
}

static void end(made_t *m) {
  mp_program_release(m->program);
  mp_arena_release(m->arena);
}

static void expect_space(const mp_chip_space_t *space, uint64_t arguments, uint64_t results,
                         uint64_t temporaries) {
  assert_int_equal(space->arguments, arguments);
  assert_int_equal(space->results, results);
  assert_int_equal(space->temporaries, temporaries);
}

// How many copies go each way, and the bytes of each.
static void expect_copies(const mp_chip_program_t *chip_program, uint32_t to_host,
                          uint32_t from_host, double bytes) {
  uint32_t counts[2] = {0};
  for (uint32_t i = 0; i < chip_program->num_copies; ++i) {
    const mp_chip_copy_t *copy = &chip_program->copies[i];
    counts[copy->is_to_host] += 1;
    assert_float_equal(copy->bytes, bytes, 0);
    assert_float_equal(copy->seconds, 1e-6 + bytes / MIB * 1e-3, 1e-9);
  }
  assert_int_equal(counts[true], to_host);
  assert_int_equal(counts[false], from_host);
}

// The kinds of all steps, a letter each: work, copy, await, jump, branch, local, end.
static void expect_steps(const mp_chip_program_t *chip_program, const char *expected) {
  static const char letters[] = {
      [MP_CHIP_STEP_WORK] = 'w', [MP_CHIP_STEP_COPY] = 'c',   [MP_CHIP_STEP_AWAIT] = 'a',
      [MP_CHIP_STEP_JUMP] = 'j', [MP_CHIP_STEP_BRANCH] = 'b', [MP_CHIP_STEP_LOCAL] = 'l',
      [MP_CHIP_STEP_PART] = 'p', [MP_CHIP_STEP_END] = '.'};
  char text[64] = "";
  assert_in_range(chip_program->num_steps, 1, sizeof(text) - 1);
  for (uint32_t i = 0; i < chip_program->num_steps; ++i)
    text[i] = letters[chip_program->steps[i].kind];
  assert_string_equal(text, expected);
}

#define M     "tensor<512x512xf32>"
#define STACK "tensor<4x512x512xf32>"
#define DOT(result, a, b)                                                                        \
  "  " result " = stablehlo.dot_general " a ", " b ", contracting_dims = [1] x [0] : (" M ", " M \
  ") -> " M "\n"
#define PLACE(result, value, kind)                                         \
  "  " result " = stablehlo.custom_call @annotate_device_placement(" value \
  ") {has_side_effect = true, mhlo.frontend_attributes = "                 \
  "{_xla_buffer_placement = \"" kind "\"}} : (" M ") -> " M "\n"

// What goes to the host and comes back has no place on the chip meanwhile. Copies go on beside work
// where the chip's compiler lets them.
static void values_go_and_come_back(void **state) {
  (void)state;
  static const char text[] = "func.func @main(%x: " M ") -> " M " {\n" DOT("%a", "%x", "%x")
      PLACE("%b", "%a", "pinned_host") DOT("%c", "%x", "%a") DOT("%d", "%c", "%c")
          PLACE("%e", "%b", "device") DOT("%f", "%d", "%e") "  return %f : " M "\n}\n";
  made_t m = make_on(MP_CHIP_COMPILER_TPU, text);
  expect_copies(m.chip_program, 1, 1, MIB);
  assert_true(m.chip_program->copies[0].is_async);
  expect_space(&m.chip_program->memory.host, 0, 0, MIB);
  end(&m);
  m = make_on(MP_CHIP_COMPILER_PLAIN, text);
  expect_steps(m.chip_program, "wcawcaw.");
  assert_false(m.chip_program->copies[0].is_async);
  end(&m);
}

// A scan that puts what it has into a stack on the host, and one that takes it from there: the
// stack is never on the chip, and each round copies its part.
#define LOOP(carried, types, body, returned)                                             \
  "  %r:" carried " : " types                                                            \
  "\n    cond {\n      %n = stablehlo.constant dense<4> : tensor<i32>\n"                 \
  "      %l = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n" \
  "      stablehlo.return %l : tensor<i1>\n    } do {\n"                                 \
  "      %one = stablehlo.constant dense<1> : tensor<i32>\n"                             \
  "      %z = stablehlo.constant dense<0> : tensor<i32>\n" body                          \
  "      %j = stablehlo.add %i, %one : tensor<i32>\n"                                    \
  "      stablehlo.return %j, " returned "    }\n"
#define SCANS(kind)                                                                           \
  "func.func @main(%x: " M ") -> " M                                                          \
  " {\n"                                                                                      \
  "  %zero = stablehlo.constant dense<0> : tensor<i32>\n"                                     \
  "  %f = stablehlo.constant dense<0.0> : tensor<f32>\n"                                      \
  "  %s = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> " STACK "\n" LOOP(      \
      "3 = stablehlo.while(%i = %zero, %c = %x, %t = %s)", "tensor<i32>, " M ", " STACK,      \
      PLACE("%h", "%c",                                                                       \
            kind) "  %u = stablehlo.reshape %h : (" M                                         \
                  ") -> tensor<1x512x512xf32>\n"                                              \
                  "  %v = stablehlo.dynamic_update_slice %t, %u, %i, %z, %z : (" STACK        \
                  ", tensor<1x512x512xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> " STACK \
                  "\n" DOT("%d", "%c", "%x"),                                                 \
      "%d, %v : tensor<i32>, " M ", " STACK "\n") BACK
#define BACK \
  "  %q:2 = stablehlo.while(%i = %zero, %c = %r#1) : tensor<i32>, " M "\n    cond {\n"          \
  "      %n = stablehlo.constant dense<4> : tensor<i32>\n"                                     \
  "      %l = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"       \
  "      stablehlo.return %l : tensor<i1>\n    } do {\n"                                       \
  "      %one = stablehlo.constant dense<1> : tensor<i32>\n"                                   \
  "      %z = stablehlo.constant dense<0> : tensor<i32>\n"                                     \
  "      %u = stablehlo.dynamic_slice %r#2, %i, %z, %z, sizes = [1, 512, 512] : (" STACK       \
  ", tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x512x512xf32>\n"                        \
  "      %v = stablehlo.reshape %u : (tensor<1x512x512xf32>) -> " M "\n"                       \
  "      %b:2 = stablehlo.optimization_barrier %v, %c : " M ", " M "\n"                         \
  PLACE("%w", "%b#0", "device") DOT("%d", "%b#1", "%w")                                            \
  "      %j = stablehlo.add %i, %one : tensor<i32>\n"                                          \
  "      stablehlo.return %j, %d : tensor<i32>, " M "\n    }\n  return %q#1 : " M "\n}\n"

static void stacks_of_scans_lie_on_the_host(void **state) {
  (void)state;
  made_t m = make_on(MP_CHIP_COMPILER_TPU, SCANS("pinned_host"));
  expect_copies(m.chip_program, 1, 1, MIB);
  expect_space(&m.chip_program->memory.host, 0, 0, 4 * MIB);
  assert_in_range(m.chip_program->memory.device.temporaries, 0, 4 * MIB - 1);
  // Loops with copies are gone through round by round.
  for (uint32_t i = 0; i < m.chip_program->num_steps; ++i) {
    assert_int_not_equal(m.chip_program->steps[i].kind, MP_CHIP_STEP_LOCAL);
  }
  end(&m);
  m = make_on(MP_CHIP_COMPILER_TPU, SCANS("device"));
  expect_copies(m.chip_program, 0, 0, 0);
  expect_space(&m.chip_program->memory.host, 0, 0, 0);
  assert_in_range(m.chip_program->memory.device.temporaries, 4 * MIB, 8 * MIB);
  end(&m);
}

// In programs for several devices what a round needs of the host comes in the round before, on
// TPUs. A round of the first loop copies what it carries, which its matmul still reads.
static void rounds_fetch_for_the_next_one(void **state) {
  (void)state;
  made_t m = make_for(MP_CHIP_COMPILER_TPU, SCANS("pinned_host"), 1);
  expect_steps(m.chip_program, "wbcwawjbcwawj.");
  end(&m);
  m = make_for(MP_CHIP_COMPILER_TPU, SCANS("pinned_host"), 2);
  expect_steps(m.chip_program, "wbcwawjbcwawj.");
  end(&m);
  m = make_for(MP_CHIP_COMPILER_GPU, SCANS("pinned_host"), 2);
  expect_steps(m.chip_program, "wbcwawjwbcwawj.");
  end(&m);
}

#define KIND "{mhlo.memory_kind = \"pinned_host\"}"

// Arguments and results that lie there cross where the program says so, or else where they are
// needed first and when they are made.
static void arguments_and_results_on_the_host(void **state) {
  (void)state;
  made_t m = make_on(MP_CHIP_COMPILER_TPU,
                     "func.func @main(%x: " M " " KIND ", %y: " M ") -> (" M " " KIND ", " M
                     ") {\n" PLACE("%a", "%x", "device") DOT("%b", "%a", "%y")
                         DOT("%c", "%y", "%y") "  return %b, %c : " M ", " M "\n}\n");
  expect_copies(m.chip_program, 1, 1, MIB);
  expect_space(&m.chip_program->memory.host, MIB, MIB, 0);
  assert_int_equal(m.chip_program->memory.device.arguments, MIB);
  assert_int_equal(m.chip_program->memory.device.results, MIB);
  assert_ok(mp_chip_memory_check_host(&m.chip_program->memory, m.program, 2 * MIB));
  mp_status_t status = mp_chip_memory_check_host(&m.chip_program->memory, m.program, 2 * MIB - 1);
  assert_int_equal(mp_status_code(status), MP_RESOURCE_EXHAUSTED);
  assert_non_null(strstr(mp_status_message(status), "memory.pinned_host"));
  mp_status_release(status);
  end(&m);
  m = make_on(MP_CHIP_COMPILER_TPU,
              "func.func @main(%x: " M " " KIND ") -> " M " {\n" DOT("%a", "%x", "%x")
                  DOT("%b", "%a", "%x") "  return %b : " M "\n}\n");
  expect_copies(m.chip_program, 0, 1, MIB);
  end(&m);
}

// What is handed on as it is stays there.
static void what_stays_on_the_host_costs_nothing(void **state) {
  (void)state;
  made_t m = make_on(MP_CHIP_COMPILER_TPU,
                     "func.func @main(%x: " M " " KIND ") -> (" M " " KIND
                     ") {\n" PLACE("%a", "%x", "pinned_host") "  return %a : " M "\n}\n");
  expect_copies(m.chip_program, 0, 0, 0);
  expect_steps(m.chip_program, ".");
  end(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(values_go_and_come_back),
      cmocka_unit_test(stacks_of_scans_lie_on_the_host),
      cmocka_unit_test(rounds_fetch_for_the_next_one),
      cmocka_unit_test(arguments_and_results_on_the_host),
      cmocka_unit_test(what_stays_on_the_host_costs_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
