// What kernels take on a chip, by hand: matmuls of all types and shapes, fusions, updates, loops.
#include <math.h>

#include "sim/base/fault.h"
#include "sim/chip/chip_program.h"
#include "sim/chip/fuse/chip_fusion_kinds.h"
#include "sim/plan/compile.h"
#include "tests/unit/support/op_samples.h"

// A chip with round numbers, whose matrix unit takes tiles of 128 x 128.
static mp_chip_t round_chip(void) {
  mp_chip_t chip = {
      .flops = {[MP_FLOP_F64] = 1e12,
                [MP_FLOP_F32] = 10e12,
                [MP_FLOP_BF16] = 100e12,
                [MP_FLOP_F16] = 80e12,
                [MP_FLOP_F8] = 200e12,
                [MP_FLOP_S8] = 400e12,
                [MP_FLOP_S4] = 800e12},
      .matrix_rows = 128,
      .matrix_columns = 128,
      .vector_flops = 1e12,
      .transcendental_flops = 8,
      .memory_bandwidth = 1e12,
      .launch_latency = 1e-5,
      .op_latency = 1e-6,
      .scalar_latency = 1e-7,
      .figures = mp_chip_figures_none(),
  };
  for (int i = 0; i < MP_WORK_CLASS_COUNT; ++i) chip.efficiency[i] = 1;
  return chip;
}

typedef struct {
  mp_arena_t *arena;
  mp_program_t *program;
  const mp_chip_program_t *chip_program;
} costed_t;

static costed_t cost_text_on(const mp_chip_t *chip, const char *text) {
  costed_t c = {0};
  mp_module_t *module = NULL;
  const mp_compile_request_t request = {.keep_partitioned = true};
  assert_ok(mp_read_text(text, strlen(text), &module));
  assert_ok(mp_arena_create(&c.arena));
  assert_ok(mp_compile_module(module, &request, &c.program));
  assert_ok(mp_chip_program_create(chip, c.program, NULL, c.arena, &c.chip_program));
  return c;
}

static costed_t cost_text(const char *text) {
  const mp_chip_t chip = round_chip();
  return cost_text_on(&chip, text);
}

static void cost_end(costed_t *c) {
  mp_program_release(c->program);
  mp_arena_release(c->arena);
}

// The only kernel that takes time.
static const mp_chip_kernel_t *only_kernel(const costed_t *c) {
  const mp_chip_kernel_t *found = NULL;
  for (uint32_t i = 0; i < c->chip_program->num_kernels; ++i) {
    const mp_chip_kernel_t *kernel = &c->chip_program->kernels[i];
    if (kernel->seconds == 0) continue;
    if (found != NULL) fail_msg("%s and %s take time", found->name, kernel->name);
    found = kernel;
  }
  assert_non_null(found);
  return found;
}

// The only kernel of the program has this class, moves so many bytes and takes so many seconds.
static void expect_one(const char *text, mp_work_class_t work_class, double bytes, double seconds) {
  costed_t c = cost_text(text);
  const mp_chip_kernel_t *kernel = only_kernel(&c);
  assert_string_equal(mp_work_class_name(kernel->work_class), mp_work_class_name(work_class));
  assert_float_equal(kernel->bytes, bytes, 1e-3);
  assert_float_equal(kernel->seconds * 1e9, seconds * 1e9, 1e-4);
  cost_end(&c);
}

#define MAX(a, b) ((a) > (b) ? (a) : (b))

// ---- matmuls ----

static double matmul_seconds(const mp_chip_t *chip, const char *a, const char *b,
                             const char *result) {
  char text[1024];
  snprintf(text, sizeof(text),
           "func.func @main(%%a: tensor<%s>, %%b: tensor<%s>) -> tensor<%s> {\n"
           "%%0 = stablehlo.dot_general %%a, %%b, contracting_dims = [1] x [0] : (tensor<%s>, "
           "tensor<%s>) -> tensor<%s>\nreturn %%0 : tensor<%s>\n}\n",
           a, b, result, a, b, result, result);
  costed_t c = cost_text_on(chip, text);
  const double seconds = only_kernel(&c)->seconds;
  cost_end(&c);
  return seconds;
}

static void expect_matmul(const char *a, const char *b, const char *result, double seconds) {
  mp_chip_t chip = round_chip();
  chip.memory_bandwidth = 1e18;
  chip.op_latency = 0;
  assert_float_equal(matmul_seconds(&chip, a, b, result) * 1e9, seconds * 1e9, 1e-3);
}

static void products_take_the_rate_of_their_type(void **state) {
  (void)state;
  const double flops = 2.0 * 1024 * 512 * 256;
#define SQUARE(type, result) "1024x256x" type, "256x512x" type, "1024x512x" result
  expect_matmul(SQUARE("f64", "f64"), flops / 1e12);
  expect_matmul(SQUARE("f32", "f32"), flops / 10e12);
  expect_matmul(SQUARE("bf16", "f32"), flops / 100e12);
  expect_matmul(SQUARE("f16", "f16"), flops / 80e12);
  expect_matmul(SQUARE("f8E4M3FN", "f32"), flops / 200e12);
  expect_matmul(SQUARE("i8", "i32"), flops / 400e12);
  expect_matmul(SQUARE("i4", "i32"), flops / 800e12);
  expect_matmul(SQUARE("complex<f32>", "complex<f32>"), 4 * flops / 10e12);
  // The matrix unit has no rate for wider integers; the wider type of two counts.
  expect_matmul(SQUARE("i32", "i32"), flops / 1e12);
}

static void small_matmuls_are_padded_to_tiles(void **state) {
  (void)state;
  // Of 130, 256 in the unit; of the rows that run through, whichever factor's, 136.
  expect_matmul("130x130xbf16", "130x130xbf16", "130x130xf32", 2.0 * 136 * 256 * 256 / 100e12);
  expect_matmul("1024x130xbf16", "130x130xbf16", "1024x130xf32", 2.0 * 1024 * 136 * 256 / 100e12);
  // A row times a matrix: eight rows at least.
  expect_matmul("1x4096xbf16", "4096x4096xbf16", "1x4096xf32", 2.0 * 8 * 4096 * 4096 / 100e12);
  // A tiny one is sooner done by the vector unit.
  expect_matmul("2x2xbf16", "2x2xbf16", "2x2xf32", 2.0 * 8 / 1e12);
  mp_chip_t chip = round_chip();
  chip.matrix_rows = chip.matrix_columns = 0;
  chip.memory_bandwidth = 1e18;
  chip.op_latency = 0;
  assert_float_equal(matmul_seconds(&chip, "2x2xbf16", "2x2xbf16", "2x2xf32") * 1e12,
                     16 / 100e12 * 1e12, 1e-6);
}

static void products_of_little_depth_wait_for_memory(void **state) {
  (void)state;
  mp_chip_t chip = round_chip();
  chip.memory_bandwidth = 0.5e12;
  const double bytes = (1024.0 * 256 + 256 * 512 + 1024 * 512) * 2;
  assert_float_equal(matmul_seconds(&chip, "1024x256xbf16", "256x512xbf16", "1024x512xbf16") * 1e9,
                     (bytes / 0.5e12 + 1e-6) * 1e9, 1e-3);
  chip.efficiency[MP_WORK_MATMUL] = 0.5;
  assert_float_equal(matmul_seconds(&chip, "1024x256xbf16", "256x512xbf16", "1024x512xbf16") * 1e9,
                     (2 * bytes / 0.5e12 + 1e-6) * 1e9, 1e-3);
}

static void convolutions_are_matmuls(void **state) {
  (void)state;
  // [8 * 32 * 32, 9 * 64] x [9 * 64, 256], without padding.
  static const char text[] =
      "func.func @main(%a: tensor<8x34x34x64xbf16>, %b: tensor<3x3x64x256xbf16>) -> "
      "tensor<8x32x32x256xbf16> {\n"
      "%0 = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], "
      "window = {stride = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : "
      "(tensor<8x34x34x64xbf16>, tensor<3x3x64x256xbf16>) -> tensor<8x32x32x256xbf16>\n"
      "return %0 : tensor<8x32x32x256xbf16>\n}\n";
  const double bytes = 2.0 * (8 * 34 * 34 * 64 + 9 * 64 * 256 + 8 * 32 * 32 * 256);
  const double seconds = 2.0 * 8192 * 640 * 256 / 100e12;
  expect_one(text, MP_WORK_CONVOLUTION, bytes, MAX(seconds, bytes / 1e12) + 1e-6);
}

// ---- fusions ----

static void a_matmul_with_bias_and_activation_is_one_kernel(void **state) {
  (void)state;
  static const char text[] =
      "func.func @main(%x: tensor<512x1024xf32>, %w: tensor<1024x256xf32>, %b: tensor<256xf32>) -> "
      "tensor<512x256xbf16> {\n"
      "%0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<512x1024xf32>, "
      "tensor<1024x256xf32>) -> tensor<512x256xf32>\n"
      "%1 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<256xf32>) -> "
      "tensor<512x256xf32>\n"
      "%2 = stablehlo.add %0, %1 : tensor<512x256xf32>\n"
      "%3 = stablehlo.tanh %2 : tensor<512x256xf32>\n"
      "%4 = stablehlo.convert %3 : (tensor<512x256xf32>) -> tensor<512x256xbf16>\n"
      "return %4 : tensor<512x256xbf16>\n}\n";
  const double bytes = 4.0 * (512 * 1024 + 1024 * 256 + 256) + 2.0 * 512 * 256;
  expect_one(text, MP_WORK_MATMUL, bytes, 2.0 * 512 * 256 * 1024 / 10e12 + 1e-6);
  costed_t c = cost_text(text);
  assert_string_equal(only_kernel(&c)->name, "dot_general");
  cost_end(&c);
}

#define A                  "tensor<1000xf32>"
#define CONST(name, value) "%" name " = stablehlo.constant dense<" value "> : " A "\n"

static void elements_go_through_memory_once(void **state) {
  (void)state;
  static const char text[] = "func.func @main(%x: " A ", %y: " A ") -> " A " {\n" CONST(
      "c", "2.0") "%0 = stablehlo.multiply %x, %c : " A "\n%1 = stablehlo.add %0, %y : " A
                  "\n%2 = stablehlo.exponential %1 : " A "\n%3 = stablehlo.subtract %2, %x : " A
                  "\nreturn %3 : " A "\n}\n";
  // 3 operations and a transcendental, 8 operations, for each element; x, y and the result.
  expect_one(text, MP_WORK_ELEMENTWISE, 12000, MAX(11e3 / 1e12, 12e3 / 1e12) + 1e-6);
}

// What two kernels read and can compute as they read is computed by both; else it is in memory.
static void a_value_with_two_users_is_computed_by_both(void **state) {
  (void)state;
  static const char text[] =
      "func.func @main(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {\n"
      "%0 = stablehlo.tanh %x : tensor<64x64xf32>\n"
      "%1 = stablehlo.dot_general %0, %x, contracting_dims = [1] x [0] : (tensor<64x64xf32>, "
      "tensor<64x64xf32>) -> tensor<64x64xf32>\n"
      "%2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : (tensor<64x64xf32>, "
      "tensor<64x64xf32>) -> tensor<64x64xf32>\nreturn %2 : tensor<64x64xf32>\n}\n";
  enum { MATRIX = 64 * 64 * 4 };
  costed_t c = cost_text(text);
  double bytes = 0;
  for (uint32_t i = 0; i < c.chip_program->num_kernels; ++i)
    bytes += c.chip_program->kernels[i].bytes;
  assert_true(bytes == (2 + 3) * MATRIX);
  cost_end(&c);
}

#define SUM                                                                              \
  "({\n^bb0(%p: tensor<f32>, %q: tensor<f32>):\n%r = stablehlo.add %p, %q : tensor<f32>" \
  "\nstablehlo.return %r : tensor<f32>\n})"

// A reduction computes what it sums up; the mean behind it is part of the kernel, too.
static void a_mean_of_squares_is_one_kernel(void **state) {
  (void)state;
  static const char text[] =
      "func.func @main(%x: tensor<100x1000xf32>) -> tensor<100xf32> {\n"
      "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "%n = stablehlo.constant dense<1000.0> : tensor<100xf32>\n"
      "%0 = stablehlo.multiply %x, %x : tensor<100x1000xf32>\n"
      "%1 = \"stablehlo.reduce\"(%0, %z) <{dimensions = array<i64: 1>}> " SUM
      " : (tensor<100x1000xf32>, tensor<f32>) -> tensor<100xf32>\n"
      "%2 = stablehlo.divide %1, %n : tensor<100xf32>\nreturn %2 : tensor<100xf32>\n}\n";
  expect_one(text, MP_WORK_REDUCTION, 400e3 + 400, 400400 / 1e12 + 1e-6);
}

// A layer of a stack is read where it lies.
static void a_slice_for_a_matmul_is_no_copy(void **state) {
  (void)state;
  static const char text[] =
      "func.func @main(%w: tensor<12x64x64xf32>, %x: tensor<64x64xf32>, %i: tensor<i32>) -> "
      "tensor<64x64xf32> {\n%z = stablehlo.constant dense<0> : tensor<i32>\n"
      "%0 = stablehlo.dynamic_slice %w, %i, %z, %z, sizes = [1, 64, 64] : (tensor<12x64x64xf32>, "
      "tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x64xf32>\n"
      "%1 = stablehlo.reshape %0 : (tensor<1x64x64xf32>) -> tensor<64x64xf32>\n"
      "%2 = stablehlo.dot_general %x, %1, contracting_dims = [1] x [0] : (tensor<64x64xf32>, "
      "tensor<64x64xf32>) -> tensor<64x64xf32>\nreturn %2 : tensor<64x64xf32>\n}\n";
  const double bytes = 3 * 64 * 64 * 4 + 4;
  expect_one(text, MP_WORK_MATMUL, bytes, MAX(bytes / 1e12, 2.0 * 64 * 128 * 128 / 10e12) + 1e-6);
}

// ---- updates ----

#define UPDATE(attribute)                                                                      \
  "func.func @main(%a: tensor<1024x64xf32>" attribute                                          \
  ", %u: tensor<1x64xf32>, %i: tensor<i32>) -> tensor<1024x64xf32> {\n"                        \
  "%z = stablehlo.constant dense<0> : tensor<i32>\n%v = stablehlo.negate %u : tensor<1x64xf32" \
  ">\n%0 = stablehlo.dynamic_update_slice %a, %v, %i, %z : (tensor<1024x64xf32>, "             \
  "tensor<1x64xf32>, tensor<i32>, tensor<i32>) -> tensor<1024x64xf32>\nreturn %0 : "           \
  "tensor<1024x64xf32>\n}\n"

static void an_update_in_place_moves_the_update(void **state) {
  (void)state;
  // The update is read and written, with the index; an array that stays as it was is copied before.
  const double bytes = 2 * 256 + 4, copied = 2.0 * 1024 * 64 * 4;
  expect_one(UPDATE(" {tf.aliasing_output = 0 : i32}"), MP_WORK_COPY, bytes, bytes / 1e12 + 1e-6);
  expect_one(UPDATE(""), MP_WORK_COPY, bytes + copied, (bytes + copied) / 1e12 + 1e-6);
}

// Copies of arguments that are returned cost what they move; those of donated ones nothing.
static void a_donated_argument_is_not_copied(void **state) {
  (void)state;
  expect_one("func.func @main(%x: " A ") -> " A " {\nreturn %x : " A "\n}\n", MP_WORK_COPY, 8000,
             8000 / 1e12 + 1e-6);
  costed_t c = cost_text("func.func @main(%x: " A " {tf.aliasing_output = 0 : i32}) -> " A
                         " {\nreturn %x : " A "\n}\n");
  assert_int_equal(c.chip_program->num_kernels, 0);
  cost_end(&c);
}

// ---- other steps ----

static costed_t cost_sample(const mp_chip_t *chip, mp_opcode_t code) {
  costed_t c = {0};
  const mp_compile_request_t request = {
      .num_replicas = 2, .num_partitions = 2, .keep_partitioned = true};
  assert_ok(mp_compile_module(sample_read(code), &request, &c.program));
  assert_ok(mp_arena_create(&c.arena));
  assert_ok(mp_chip_program_create(chip, c.program, NULL, c.arena, &c.chip_program));
  return c;
}

static void collectives_cost_the_chip_nothing(void **state) {
  (void)state;
  const mp_chip_t chip = round_chip();
  costed_t c = cost_sample(&chip, MP_OP_ALL_REDUCE);
  assert_int_equal(c.chip_program->num_collectives, 1);
  assert_string_equal(c.chip_program->collectives[0].name, "all_reduce");
  assert_int_equal(c.chip_program->num_kernels, 0);
  assert_int_equal(c.chip_program->num_steps, 2);
  assert_int_equal(c.chip_program->steps[0].kind, MP_CHIP_STEP_MEET);
  cost_end(&c);
}

// ---- loops ----

// for (i = 0; i < n; ++i) for (j = 0; j < i; ++j) x = tanh(x)
#define LOOP                                                                               \
  "func.func @main(%x: tensor<8xf32>, %n: tensor<i32>) -> tensor<8xf32> {\n"               \
  "%c0 = stablehlo.constant dense<0> : tensor<i32>\n"                                      \
  "%c1 = stablehlo.constant dense<1> : tensor<i32>\n"                                      \
  "%0:2 = stablehlo.while(%i = %c0, %a = %x) : tensor<i32>, tensor<8xf32>\n"               \
  "cond {\n%p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n" \
  "stablehlo.return %p : tensor<i1>\n} do {\n"                                             \
  "%1:2 = stablehlo.while(%j = %c0, %b = %a) : tensor<i32>, tensor<8xf32>\n"               \
  "cond {\n%q = stablehlo.compare LT, %j, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>\n" \
  "stablehlo.return %q : tensor<i1>\n} do {\n"                                             \
  "%d = stablehlo.tanh %b : tensor<8xf32>\n%k = stablehlo.add %j, %c1 : tensor<i32>\n"     \
  "stablehlo.return %k, %d : tensor<i32>, tensor<8xf32>\n}\n"                              \
  "%m = stablehlo.add %i, %c1 : tensor<i32>\n"                                             \
  "stablehlo.return %m, %1#1 : tensor<i32>, tensor<8xf32>\n}\n"                            \
  "return %0#1 : tensor<8xf32>\n}\n"

// A loop without communication is one step, whose parts are its blocks; one with it is jumps.
static void loops_are_counted_or_walked(void **state) {
  (void)state;
  costed_t c = cost_text(LOOP);
  const mp_chip_step_t *steps = c.chip_program->steps;
  assert_int_equal(c.chip_program->num_controls, 3);
  uint32_t at = 0;
  while (steps[at].kind == MP_CHIP_STEP_WORK) ++at;  // the start values
  assert_int_equal(steps[at].kind, MP_CHIP_STEP_LOCAL);
  const mp_chip_flow_t *outer = steps[at].flow;
  assert_true(outer->is_loop && outer->num_blocks == 2 && outer->rounds == -1);
  assert_int_equal(outer->blocks[0].num_flows, 0);
  assert_int_equal(outer->blocks[1].num_flows, 1);
  const mp_chip_flow_t *inner = &outer->blocks[1].flows[0];
  const mp_chip_step_t *body = &steps[inner->blocks[1].step];
  assert_true(inner->control != outer->control);
  assert_int_equal(body->kind, MP_CHIP_STEP_PART);
  double transcendentals = 0;
  for (uint32_t i = body->first; i < body->end; ++i) {
    transcendentals += c.chip_program->kernels[i].transcendentals;
  }
  assert_true(transcendentals == 8);
  assert_int_equal(steps[steps[at].targets[0]].kind, MP_CHIP_STEP_END);
  cost_end(&c);
}

// for (i = 0; i < 4; ++i) x = tanh(x)
#define COUNTED                                                                             \
  "func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {\n"                                 \
  "%c0 = stablehlo.constant dense<0> : tensor<i32>\n"                                       \
  "%c1 = stablehlo.constant dense<1> : tensor<i32>\n"                                       \
  "%c4 = stablehlo.constant dense<4> : tensor<i32>\n"                                       \
  "%0:2 = stablehlo.while(%i = %c0, %a = %x) : tensor<i32>, tensor<8xf32>\n"                \
  "cond {\n%p = stablehlo.compare LT, %i, %c4 : (tensor<i32>, tensor<i32>) -> tensor<i1>\n" \
  "stablehlo.return %p : tensor<i1>\n} do {\n"                                              \
  "%d = stablehlo.tanh %a : tensor<8xf32>\n%k = stablehlo.add %i, %c1 : tensor<i32>\n"      \
  "stablehlo.return %k, %d : tensor<i32>, tensor<8xf32>\n}\n"                               \
  "return %0#1 : tensor<8xf32>\n}\n"

static uint32_t count_kernels(const costed_t *c, const char *name) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < c->chip_program->num_kernels; ++i) {
    count += strcmp(c->chip_program->kernels[i].name, name) == 0;
  }
  return count;
}

// The host of a GPU starts as many rounds as the program says; else it has to look.
static void counted_rounds_need_no_condition(void **state) {
  (void)state;
  mp_chip_t chip = round_chip();
  costed_t c = cost_text_on(&chip, COUNTED);
  assert_int_equal(count_kernels(&c, "compare"), 1);
  cost_end(&c);
  for (int i = 0; i < 2; ++i) {
    chip.figures.compiler = i == 0 ? MP_CHIP_COMPILER_GPU : MP_CHIP_COMPILER_TPU;
    c = cost_text_on(&chip, COUNTED);
    assert_int_equal(count_kernels(&c, "compare"), 0);
    assert_int_equal(count_kernels(&c, "tanh"), 1);
    cost_end(&c);
  }
  c = cost_text_on(&chip, LOOP);
  assert_int_equal(count_kernels(&c, "compare"), 2);
  cost_end(&c);
}

// ---- factors of matmuls ----

#define HEADS "tensor<2x32x4x16xf32>"
#define SCORES                                                                         \
  "batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3] : (" HEADS ", " HEADS \
  ") -> "                                                                              \
  "tensor<2x4x32x32xf32>\n"
#define HEADS_FIRST "tensor<2x4x32x16xf32>"
#define SCORES_FIRST                                                                               \
  "batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : (" HEADS_FIRST ", " HEADS_FIRST \
  ") -> tensor<2x4x32x32xf32>\n"

static void expect_copies(mp_chip_compiler_t compiler, const char *text, uint32_t copies) {
  mp_chip_t chip = round_chip();
  chip.figures.compiler = compiler;
  costed_t c = cost_text_on(&chip, text);
  assert_int_equal(count_kernels(&c, "copy"), copies);
  cost_end(&c);
}

// A result that is an argument is copied: on TPUs in tiles of 8 x 128.
static void tpus_copy_whole_tiles(void **state) {
  (void)state;
  static const char text[] =
      "func.func @main(%x: tensor<9x130xf32>) -> tensor<9x130xf32> {\n"
      "return %x : tensor<9x130xf32>\n}\n";
  mp_chip_t chip = round_chip();
  for (int is_tpu = 0; is_tpu < 2; ++is_tpu) {
    chip.figures.compiler = is_tpu ? MP_CHIP_COMPILER_TPU : MP_CHIP_COMPILER_GPU;
    costed_t c = cost_text_on(&chip, text);
    assert_true(only_kernel(&c)->bytes == 2 * (is_tpu ? 16 * 256 : 9 * 130) * 4);
    cost_end(&c);
  }
}

// for (i = 0; i < 4; ++i) x = ...
#define SQUARES "tensor<256x256xbf16>"
#define STEPS(body)                                                                         \
  "func.func @main(%x: " SQUARES ", %w: " SQUARES ") -> " SQUARES                           \
  " {\n%c0 = stablehlo.constant dense<0> : tensor<i32>\n"                                   \
  "%c1 = stablehlo.constant dense<1> : tensor<i32>\n"                                       \
  "%c4 = stablehlo.constant dense<4> : tensor<i32>\n"                                       \
  "%s = stablehlo.negate %x : " SQUARES                                                     \
  "\n"                                                                                      \
  "%0:2 = stablehlo.while(%i = %c0, %a = %s) : tensor<i32>, " SQUARES                       \
  "\n"                                                                                      \
  "cond {\n%p = stablehlo.compare LT, %i, %c4 : (tensor<i32>, tensor<i32>) -> tensor<i1>\n" \
  "stablehlo.return %p : tensor<i1>\n} do {\n" body                                         \
  "%k = stablehlo.add %i, %c1 : tensor<i32>"                                                \
  "\nstablehlo.return %k, %e : tensor<i32>, " SQUARES "\n}\nreturn %0#1 : " SQUARES "\n}\n"
#define PRODUCT(result, x)                                                                   \
  "%" result " = stablehlo.dot_general %" x ", %w, contracting_dims = [1] x [0] : (" SQUARES \
  ", " SQUARES ") -> " SQUARES "\n"
#define OTHER(result, op, x, y) "%" result " = stablehlo." op " %" x ", %" y " : " SQUARES "\n"

// The kernel of a matmul that makes the next round's value needs all of a factor: where that is
// this round's value, it is copied. A residual may be written over, unless it is read later.
static void rounds_copy_what_they_hold(void **state) {
  (void)state;
  expect_copies(MP_CHIP_COMPILER_TPU, STEPS(PRODUCT("d", "a") OTHER("e", "add", "d", "a")), 1);
  expect_copies(MP_CHIP_COMPILER_TPU, STEPS(PRODUCT("d", "w") OTHER("e", "add", "d", "a")), 0);
  expect_copies(MP_CHIP_COMPILER_TPU, STEPS(OTHER("e", "multiply", "a", "a")), 0);
}

// On a GPU so is what a kernel finds in other places than it writes, but for what another one has
// read before. There the counter's first value is copied, too.
static void rounds_of_gpus_copy_what_moves(void **state) {
  (void)state;
  const mp_chip_compiler_t gpu = MP_CHIP_COMPILER_GPU;
#define TURNED "%t = stablehlo.transpose %a, dims = [1, 0] : (" SQUARES ") -> " SQUARES "\n"
  expect_copies(gpu, STEPS(TURNED OTHER("e", "add", "t", "a")), 1 + 1);
  expect_copies(gpu, STEPS(PRODUCT("d", "a") OTHER("e", "add", "d", "a")), 1 + 1);
  expect_copies(gpu, STEPS(PRODUCT("d", "w") OTHER("e", "add", "d", "a")), 1);
  expect_copies(gpu, STEPS(OTHER("e", "multiply", "a", "w")), 1);
  expect_copies(gpu, STEPS(PRODUCT("d", "a") OTHER("e", "divide", "d", "w")), 1);
#undef TURNED
}

// A library takes the matrices of a batch one after the other.
static void factors_are_turned_for_gpus(void **state) {
  (void)state;
  // Heads lie inside of tokens: both are turned, each of them once.
  static const char *const inside =
      "func.func @main(%q: " HEADS ", %k: " HEADS
      ") -> (tensor<2x4x32x32xf32>, tensor<2x4x32x32xf32>) {\n"
      "%0 = stablehlo.dot_general %q, %k, " SCORES "%1 = stablehlo.dot_general %k, %k, " SCORES
      "return %0, %1 : tensor<2x4x32x32xf32>, "
      "tensor<2x4x32x32xf32>\n}\n";
  expect_copies(MP_CHIP_COMPILER_GPU, inside, 2);
  expect_copies(MP_CHIP_COMPILER_TPU, inside, 0);
  // A transpose in front of a matmul is one, too; a kernel of the compiler writes as is wanted.
  static const char *const transposed =
      "func.func @main(%q: " HEADS ", %k: " HEADS
      ") -> tensor<2x4x32x32xf32> {\n"
      "%a = stablehlo.transpose %q, dims = [0, 2, 1, 3] : (" HEADS ") -> " HEADS_FIRST
      "\n"
      "%n = stablehlo.negate %k : " HEADS
      "\n"
      "%b = stablehlo.transpose %n, dims = [0, 2, 1, 3] : (" HEADS ") -> " HEADS_FIRST
      "\n"
      "%0 = stablehlo.dot_general %a, %b, " SCORES_FIRST "return %0 : tensor<2x4x32x32xf32>\n}\n";
  expect_copies(MP_CHIP_COMPILER_GPU, transposed, 1);
  static const char *const whole =
      "func.func @main(%q: " HEADS_FIRST ", %k: " HEADS_FIRST
      ") -> tensor<2x4x32x32xf32> {\n"
      "%0 = stablehlo.dot_general %q, %k, " SCORES_FIRST "return %0 : tensor<2x4x32x32xf32>\n}\n";
  expect_copies(MP_CHIP_COMPILER_GPU, whole, 0);
}

// Of 16-bit floats, to multiples of eight: one factor's rows here.
static void rows_are_padded_for_gpus(void **state) {
  (void)state;
#define PADDED(rows, type)                                                               \
  "func.func @main(%x: tensor<" rows "x256x" type ">, %w: tensor<256x64x" type           \
  ">) -> tensor<" rows "x64x" type                                                       \
  "> {\n%0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<" rows \
  "x256x" type ">, tensor<256x64x" type ">) -> tensor<" rows "x64x" type                 \
  ">\nreturn %0 : tensor<" rows "x64x" type ">\n}\n"
  expect_copies(MP_CHIP_COMPILER_GPU, PADDED("100", "bf16"), 1);
  expect_copies(MP_CHIP_COMPILER_GPU, PADDED("104", "bf16"), 0);
  expect_copies(MP_CHIP_COMPILER_GPU, PADDED("100", "f32"), 0);
  expect_copies(MP_CHIP_COMPILER_TPU, PADDED("100", "bf16"), 0);
}

// ---- collectives beside work ----

// for (i = 0; i < 4; ++i) { x = x @ all_gather(w[i]); v[i] = all_reduce(x) }; two of the latter.
#define MEETING(name, of)                                                          \
  "%" name " = \"stablehlo.all_reduce\"(%" of                                      \
  ") ({\n^bb0(%s: tensor<f32>, %t: tensor<f32>):\n"                                \
  "%u = stablehlo.add %s, %t : tensor<f32>\nstablehlo.return %u : tensor<f32>\n})" \
  " {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}"                          \
  " : (tensor<64x64xf32>) -> tensor<64x64xf32>\n"
#define ROUNDS \
  "func.func @main(%x: tensor<64x64xf32>, %w: tensor<4x32x64xf32>, %v: tensor<4x64x64xf32>)"      \
  " -> (tensor<64x64xf32>, tensor<4x64x64xf32>) {\n"                                             \
  "%c0 = stablehlo.constant dense<0> : tensor<i32>\n"                                            \
  "%c1 = stablehlo.constant dense<1> : tensor<i32>\n"                                            \
  "%c4 = stablehlo.constant dense<4> : tensor<i32>\n"                                            \
  "%0:3 = stablehlo.while(%i = %c0, %a = %x, %b = %v) : tensor<i32>, tensor<64x64xf32>,"          \
  " tensor<4x64x64xf32>\n"                                                                       \
  "cond {\n%p = stablehlo.compare LT, %i, %c4 : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"      \
  "stablehlo.return %p : tensor<i1>\n} do {\n"                                                   \
  "%d = stablehlo.dynamic_slice %w, %i, %c0, %c0, sizes = [1, 32, 64] : (tensor<4x32x64xf32>,"    \
  " tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x32x64xf32>\n"                             \
  "%e = stablehlo.reshape %d : (tensor<1x32x64xf32>) -> tensor<32x64xf32>\n"                     \
  "%f = \"stablehlo.all_gather\"(%e) {all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]>" \
  " : tensor<1x2xi64>} : (tensor<32x64xf32>) -> tensor<64x64xf32>\n"                             \
  "%g = stablehlo.dot %a, %f : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>\n"    \
  "%h = stablehlo.dot %g, %g : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>\n"    \
  MEETING("j", "g") MEETING("k", "h")                                                                     \
  "%l = stablehlo.add %j, %k : tensor<64x64xf32>\n"                                              \
  "%m = stablehlo.reshape %l : (tensor<64x64xf32>) -> tensor<1x64x64xf32>\n"                     \
  "%n = stablehlo.dynamic_update_slice %b, %m, %i, %c0, %c0 : (tensor<4x64x64xf32>,"              \
  " tensor<1x64x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x64x64xf32>\n"        \
  "%o = stablehlo.add %i, %c1 : tensor<i32>\n"                                                   \
  "stablehlo.return %o, %h, %n : tensor<i32>, tensor<64x64xf32>, tensor<4x64x64xf32>\n}\n"       \
  "return %0#1, %0#2 : tensor<64x64xf32>, tensor<4x64x64xf32>\n}\n"

static mp_status_t a_nanosecond(void *context, const mp_collective_t *collective, double *seconds) {
  (void)context;
  (void)collective;
  *seconds = 1e-9;
  return NULL;
}

static mp_chip_spread_t in_a_line(void *context, const mp_collective_t *collective) {
  (void)context;
  (void)collective;
  return (mp_chip_spread_t){2, 1};
}

// How many collectives are waited for where they stand, how many go on beside work, and how many
// operands the largest has.
static void expect_collectives_of(const char *text, const mp_chip_figures_t *figures, uint32_t met,
                                  uint32_t started, uint32_t operands) {
  const mp_compile_request_t request = {.num_replicas = 2, .keep_partitioned = true};
  const mp_chip_links_t links = {.seconds = a_nanosecond, .spread = in_a_line};
  mp_chip_t chip = round_chip();
  mp_module_t *module = NULL;
  costed_t c = {0};
  chip.figures = *figures;
  assert_ok(mp_read_text(text, strlen(text), &module));
  assert_ok(mp_arena_create(&c.arena));
  assert_ok(mp_compile_module(module, &request, &c.program));
  assert_ok(mp_chip_program_create(&chip, c.program, &links, c.arena, &c.chip_program));
  uint32_t kinds[MP_CHIP_STEP_END + 1] = {0}, most = 0;
  for (uint32_t s = 0; s < c.chip_program->num_steps; ++s) {
    const mp_chip_step_t *step = &c.chip_program->steps[s];
    kinds[step->kind] += 1;
    if (step->kind != MP_CHIP_STEP_MEET && step->kind != MP_CHIP_STEP_START) continue;
    const uint32_t count = c.chip_program->collectives[step->collective].collective->num_operands;
    if (count > most) most = count;
  }
  assert_int_equal(kinds[MP_CHIP_STEP_MEET], met);
  assert_int_equal(kinds[MP_CHIP_STEP_START], started);
  assert_int_equal(kinds[MP_CHIP_STEP_DONE], started);
  assert_int_equal(most, operands);
  cost_end(&c);
}

static void expect_collectives(const mp_chip_figures_t *figures, uint32_t met, uint32_t started,
                               uint32_t operands) {
  expect_collectives_of(ROUNDS, figures, met, started, operands);
}

// Two vectors that are gathered, and each multiplied with what is gathered.
#define GATHERED(o, v, half, whole)                                                     \
  "%" o " = \"stablehlo.all_gather\"(%" v                                               \
  ") {all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : " \
  "(tensor<" half "xf32>) -> tensor<" whole "xf32>\n"
#define VECTORS(half, whole)                                                             \
  "func.func @main(%x: tensor<" half "xf32>, %y: tensor<" half "xf32>) -> tensor<" whole \
  "xf32> {\n" GATHERED("a", "x", half, whole)                                            \
      GATHERED("b", "y", half, whole) "%c = stablehlo.multiply %a, %b : tensor<" whole   \
                                      "xf32>\n"                                          \
                                      "return %c : tensor<" whole "xf32>\n}\n"

// Of short vectors on a TPU: sums of whole ones, which are one; longer ones are gathered.
static void short_vectors_are_added_up(void **state) {
  (void)state;
  mp_chip_figures_t figures = mp_chip_figures_none();
  figures.compiler = MP_CHIP_COMPILER_TPU;
  figures.overlap_no_ring = 0;
  figures.overlap_combine = 1e6;
  expect_collectives_of(VECTORS("64", "128"), &figures, 1, 0, 2);
  expect_collectives_of(VECTORS("128", "256"), &figures, 2, 0, 1);
}

static void collectives_are_combined_and_pipelined(void **state) {
  (void)state;
  mp_chip_figures_t figures = mp_chip_figures_none();
  expect_collectives(&figures, 3, 0, 1);
  // The gather is waited for at once; one sum is beside the second matmul, one beside the counter.
  figures.compiler = MP_CHIP_COMPILER_GPU;
  figures.overlap_started = 1;
  expect_collectives(&figures, 1, 2, 1);
  figures.overlap_combine = 1e6;
  expect_collectives(&figures, 1, 1, 2);
  // In other rounds than the matmuls of their own.
  figures.overlap_pipeline = 1;
  expect_collectives(&figures, 0, 2, 2);
}

// ---- all programs ----

// The work of ops that a compiler does; how often rounds of loops would do it is not known.
static void add_folded(const mp_block_t *block, double times, mp_work_t *sum) {
  for (const mp_op_t *op = block->first; op != NULL; op = op->next) {
    mp_work_t work;
    for (uint32_t i = 0; i < op->num_regions; ++i) add_folded(op->regions[i], INFINITY, sum);
    if (op->code == MP_OP_CONSTANT || op->code == MP_OP_BROADCAST_IN_DIM) continue;
    if (op->num_results != 1 || !mp_chip_fusion_is_folded(&op->results[0])) continue;
    mp_work_of_op(op, &work);
    if (work.flops > 0) sum->flops += times * work.flops;
    if (work.transcendentals > 0) sum->transcendentals += times * work.transcendentals;
  }
}

static void expect_sums(const costed_t *c, const char *name) {
  mp_work_t folded = {0};
  add_folded(c->program->partitioned->main->body, 1, &folded);
  double flops = folded.flops, transcendentals = folded.transcendentals;
  for (uint32_t i = 0; i < c->chip_program->num_kernels; ++i) {
    const mp_chip_kernel_t *kernel = &c->chip_program->kernels[i];
    flops += kernel->flops;
    transcendentals += kernel->transcendentals;
    if (!(kernel->seconds >= 0 && kernel->bytes >= 0) || isinf(kernel->seconds)) {
      fail_msg("%s: %s takes %g s", name, kernel->name, kernel->seconds);
    }
  }
  // What several kernels compute is done several times.
  if (flops < c->program->flops * (1 - 1e-9) || transcendentals < c->program->transcendentals) {
    fail_msg("%s: %g operations, the program has %g", name, flops, c->program->flops);
  }
}

static void every_op_takes_time(void **state) {
  (void)state;
  const mp_chip_t chip = round_chip();
  FOR_EACH_OP(code) {
    const mp_op_role_t role = mp_op_info(code)->role;
    if (role == MP_OP_ROLE_REFUSED) continue;
    costed_t c = cost_sample(&chip, code);
    expect_sums(&c, op_name(code));
    double seconds = 0;
    for (uint32_t i = 0; i < c.chip_program->num_kernels; ++i)
      seconds += c.chip_program->kernels[i].seconds;
    if (role == MP_OP_ROLE_KERNEL && code != MP_OP_BITCAST_CONVERT && seconds == 0) {
      fail_msg("%s takes no time", op_name(code));
    }
    cost_end(&c);
  }
}

static void cost_fixture(const char *path) {
  const mp_chip_t chip = round_chip();
  fixture_t file = fixture_read_path(path);
  // Our own fused ops leave out what two of their ops would do twice.
  const mp_compile_request_t request = {.op_by_op = true, .keep_partitioned = true};
  costed_t c = {0};
  mp_status_t status = mp_compile(file.data, file.size, &request, &c.program);
  if (status == NULL) {
    assert_ok(mp_arena_create(&c.arena));
    assert_ok(mp_chip_program_create(&chip, c.program, NULL, c.arena, &c.chip_program));
    expect_sums(&c, path);
    cost_end(&c);
  }
  mp_status_release(status);  // of functions that only Python has
  free(file.data);
}

static void costs_add_up_to_the_analysis(void **state) {
  (void)state;
  fixture_programs(cost_fixture);
}

static void short_memory_is_an_error(void **state) {
  (void)state;
  const mp_chip_t chip = round_chip();
  fixture_t file = fixture_read("programs/conv_008.mlirbc");
  const mp_compile_request_t request = {.keep_partitioned = true};
  mp_program_t *program = NULL;
  assert_ok(mp_compile(file.data, file.size, &request, &program));
  mp_fault_watch();
  uint32_t num_errors = 0;
  for (bool is_well = false; !is_well; ++num_errors) {
    mp_arena_t *arena = NULL;
    const mp_chip_program_t *chip_program = NULL;
    assert_ok(mp_arena_create(&arena));
    mp_fault_at(MP_FAULT_ARENA, num_errors + 1, 1);
    mp_status_t status = mp_chip_program_create(&chip, program, NULL, arena, &chip_program);
    mp_fault_at(MP_FAULT_ARENA, 0, 0);
    is_well = status == NULL;
    if (!is_well) assert_int_equal(mp_status_code(status), MP_RESOURCE_EXHAUSTED);
    mp_status_release(status);
    mp_arena_release(arena);
  }
  assert_true(num_errors > 3);
  mp_program_release(program);
  free(file.data);
}

int main(void) {
  samples_load();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(products_take_the_rate_of_their_type),
      cmocka_unit_test(small_matmuls_are_padded_to_tiles),
      cmocka_unit_test(products_of_little_depth_wait_for_memory),
      cmocka_unit_test(convolutions_are_matmuls),
      cmocka_unit_test(a_matmul_with_bias_and_activation_is_one_kernel),
      cmocka_unit_test(elements_go_through_memory_once),
      cmocka_unit_test(a_value_with_two_users_is_computed_by_both),
      cmocka_unit_test(a_mean_of_squares_is_one_kernel),
      cmocka_unit_test(a_slice_for_a_matmul_is_no_copy),
      cmocka_unit_test(an_update_in_place_moves_the_update),
      cmocka_unit_test(a_donated_argument_is_not_copied),
      cmocka_unit_test(collectives_cost_the_chip_nothing),
      cmocka_unit_test(loops_are_counted_or_walked),
      cmocka_unit_test(counted_rounds_need_no_condition),
      cmocka_unit_test(tpus_copy_whole_tiles),
      cmocka_unit_test(rounds_copy_what_they_hold),
      cmocka_unit_test(rounds_of_gpus_copy_what_moves),
      cmocka_unit_test(factors_are_turned_for_gpus),
      cmocka_unit_test(rows_are_padded_for_gpus),
      cmocka_unit_test(collectives_are_combined_and_pipelined),
      cmocka_unit_test(short_vectors_are_added_up),
      cmocka_unit_test(every_op_takes_time),
      cmocka_unit_test(costs_add_up_to_the_analysis),
      cmocka_unit_test(short_memory_is_an_error),
  };
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  samples_unload();
  return failed;
}
