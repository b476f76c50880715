// Kernels for attention: which custom_calls are some, and what they take, by hand.
#include <math.h>

#include "sim/chip/chip_program.h"
#include "sim/chip/cost/attention_cost.h"
#include "sim/chip/cost/irregular_cost.h"
#include "sim/plan/compile.h"
#include "sim/readers/text/text.h"
#include "tests/unit/support/unit.h"

// A chip of 1e15 operations a second, on which nothing else takes time.
static mp_chip_t bare_chip(void) {
  mp_chip_t chip = {
      .vector_flops = 1e15, .memory_bandwidth = 1e18, .figures = mp_chip_figures_none()};
  for (int kind = 0; kind < MP_FLOP_KIND_COUNT; ++kind) chip.flops[kind] = 1e15;
  for (int i = 0; i < MP_WORK_CLASS_COUNT; ++i) chip.efficiency[i] = 1;
  return chip;
}

static void set(mp_figure_list_t *list, uint32_t count, const double *each) {
  list->count = count;
  memcpy(list->each, each, count * sizeof(*each));
}

// Nobody has registered the functions of these programs.
// Of a program of one kernel.
static double seconds_of(const mp_chip_t *chip, const char *text) {
  mp_module_t *module = NULL;
  mp_program_t *program = NULL;
  mp_arena_t *arena = NULL;
  const mp_chip_program_t *chip_program = NULL;
  const mp_compile_request_t request = {.keep_partitioned = true, .absent_calls = true};
  assert_ok(mp_read_text(text, strlen(text), &module));
  assert_ok(mp_arena_create(&arena));
  assert_ok(mp_compile_module(module, &request, &program));
  assert_ok(mp_chip_program_create(chip, program, NULL, arena, &chip_program));
  assert_int_equal(chip_program->num_kernels, 1);
  const double seconds = chip_program->kernels[0].seconds;
  mp_program_release(program);
  mp_arena_release(arena);
  return seconds;
}

static void expect_us(const mp_chip_t *chip, const char *text, double us) {
  assert_float_equal(seconds_of(chip, text) * 1e6, us, 1e-3);
}

#define TABLE  "tensor<1x4x4xi8>"
#define HEADS  "tensor<2x3x2048x128xbf16>"
#define TOKENS "tensor<2x3x2048xf32>"
// Of six heads, 2,048 tokens and blocks of 512.
#define SPLASH(name, suffix, config, results)                                                      \
  "func.func @main(%t: " TABLE ", %q: " HEADS ", %k: " HEADS ", %s: " TOKENS ") -> (" results      \
  ") {\n%0:2 = \"stablehlo.custom_call\"(%t, %q, %k, %s) {call_target_name = \"tpu_custom_call\"," \
  " api_version = 1 : i32, backend_config = \"" config "\", kernel_name = \"" name                 \
  "\", mhlo.frontend_attributes = {kernel_metadata = \"{\\22xprof_metadata\\22:\\22{\\\\\\22"      \
  "block_q" suffix "\\\\\\22: 512, \\\\\\22block_kv" suffix "\\\\\\22: 512}\\22}\"}} : (" TABLE    \
  ", " HEADS ", " HEADS ", " TOKENS ") -> (" results ")\nreturn %0#0, %0#1 : " results "\n}\n"

#define FORWARD SPLASH("splash_mha_fwd_residuals", "", "", HEADS ", " TOKENS)
#define DKV     SPLASH("splash_mha_dkv_no_residuals", "_dkv", "", HEADS ", " HEADS)

// Operations of a matmul of one block.
static const double g_block = 2 * 512.0 * 512 * 128;

static void a_chip_without_figures_does_the_matmuls(void **state) {
  (void)state;
  const mp_chip_t chip = bare_chip();
  expect_us(&chip, FORWARD, 6 * 2 * 16 * g_block / 2 / 1e9);
  expect_us(&chip, DKV, 6 * 4 * 16 * g_block / 2 / 1e9);
}

static void tpus_go_through_blocks(void **state) {
  (void)state;
  mp_chip_t chip = bare_chip();
  const double forward[] = {0.5, 1, 100, 10, 40}, dkv[] = {0.8, 1, 200, 20, 80};
  set(&chip.figures.attention_splash_forward, MP_ATTENTION_TPU_COUNT, forward);
  set(&chip.figures.attention_splash_dkv, MP_ATTENTION_TPU_COUNT, dkv);
  // Of 16 blocks of a head 6 are all masked.
  const double in_blocks = 6 * 10 * 2 * g_block / 0.5 / 1e9;
  expect_us(&chip, FORWARD, in_blocks + 6 * (10 * 100 + 6 * 10 + 4 * 40) * 1e-3);
  const double of_dkv = 6 * 10 * 4 * g_block / 0.8 / 1e9;
  expect_us(&chip, DKV, of_dkv + 6 * (10 * 200 + 6 * 20 + 4 * 80) * 1e-3);
  // Both cores have a half of the heads; but one of them has all of the backward pass.
  chip.figures.attention_cores = 2;
  expect_us(&chip, FORWARD, in_blocks + 3 * (10 * 100 + 6 * 10 + 4 * 40) * 1e-3);
  expect_us(&chip, DKV, 2 * of_dkv + 6 * (10 * 200 + 6 * 20 + 4 * 80) * 1e-3);
}

// Scores are compared by position if there is a mask, and by segment if the name says so.
static void masks_count_for_all_scores_of_a_block(void **state) {
  (void)state;
  mp_chip_t chip = bare_chip();
  const double forward[] = {0.5, 1, 0, 0, 0};
  const double mask[] = {20, 40, 0, 0, 0}, segments[] = {50, 200, 0, 0, 0};
  set(&chip.figures.attention_splash_forward, MP_ATTENTION_TPU_COUNT, forward);
  set(&chip.figures.attention_mask, MP_ATTENTION_MASK_COUNT, mask);
  set(&chip.figures.attention_segments, MP_ATTENTION_MASK_COUNT, segments);
  const double in_blocks = 6 * 10 * 2 * g_block / 0.5 / 1e9;
  expect_us(&chip, FORWARD, in_blocks + 6 * 10 * 20e-3);
  expect_us(&chip, SPLASH("splash_mha_fwd_segmented_residuals", "", "", HEADS ", " TOKENS),
            in_blocks + 6 * 10 * 70e-3);
  mp_attention_t a = {.heads = 1,
                      .queries = 2048,
                      .keys = 2048,
                      .width = 128,
                      .is_splash = true,
                      .is_segmented = true,
                      .block_queries = 512,
                      .block_keys = 1024};
  assert_float_equal(mp_attention_seconds(&chip, &a),
                     16 * 2 * g_block / 0.5 / 1e15 + 8 * 2 * 200e-9, 1e-12);
}

// One kernel for all gradients has parts of the queries' in front, which no other kernel has:
// arrays that it works in are no gradients. Two sequences of three heads that share keys.
#define SHARED(parts)                                                                              \
  "func.func @main(%q: " HEADS ", %k: tensor<2x2048x128xbf16>) -> (" parts                         \
  ", tensor<2x512x128xf32>, tensor<2x2048x128xbf16>) {\n%0:3 = \"stablehlo.custom_call\"(%q, %k) " \
  "{call_target_name = \"tpu_custom_call\", api_version = 1 : i32, kernel_name = "                 \
  "\"splash_mqa_dkv_no_residuals\"} : (" HEADS ", tensor<2x2048x128xbf16>) -> (" parts             \
  ", tensor<2x512x128xf32>, tensor<2x2048x128xbf16>)\nreturn %0#0, %0#1, %0#2 : " parts            \
  ", tensor<2x512x128xf32>, tensor<2x2048x128xbf16>\n}\n"

static void a_kernel_may_make_all_gradients(void **state) {
  (void)state;
  mp_chip_t chip = bare_chip();
  const double dkv[] = {0.8, 1, 0, 0, 0}, fused[] = {0.5, 1, 0, 0, 0};
  set(&chip.figures.attention_splash_dkv, MP_ATTENTION_TPU_COUNT, dkv);
  set(&chip.figures.attention_splash_fused, MP_ATTENTION_TPU_COUNT, fused);
  expect_us(&chip, SHARED("tensor<2x512x128xf32>"), 6 * 16 * 4 * g_block / 0.8 / 1e9);
  expect_us(&chip, SHARED("tensor<2x4x3x2048x128xbf16>"), 6 * 16 * 5 * g_block / 0.5 / 1e9);
}

// Small blocks wait for what they read: half of a latency, and two arrays.
static void small_blocks_wait_for_memory(void **state) {
  (void)state;
  mp_chip_t chip = bare_chip();
  const double forward[] = {1, 1, 100, 0, 0};
  set(&chip.figures.attention_splash_forward, MP_ATTENTION_TPU_COUNT, forward);
  chip.memory_bandwidth = 1e12;
  chip.figures.memory_latency = 1e-6;
  const mp_attention_t a = {.heads = 1,
                            .queries = 256,
                            .keys = 512,
                            .width = 64,
                            .block_queries = 128,
                            .block_keys = 128};
  assert_float_equal(mp_attention_seconds(&chip, &a), 8 * (500e-9 + 4 * 128 * 128 / 1e12), 1e-12);
}

// A window leaves some blocks of each row, which tables in front tell: here two of four.
static void windows_leave_less(void **state) {
  (void)state;
  mp_chip_t chip = bare_chip();
  const double forward[] = {0.5, 1, 0, 0, 0};
  set(&chip.figures.attention_splash_forward, MP_ATTENTION_TPU_COUNT, forward);
  mp_attention_t a = {.heads = 1,
                      .queries = 2048,
                      .keys = 2048,
                      .width = 128,
                      .is_causal = true,
                      .block_queries = 512,
                      .block_keys = 512,
                      .steps = 8};
  assert_float_equal(mp_attention_seconds(&chip, &a), 8 * 2 * g_block / 0.5 / 1e15, 1e-12);
  chip.figures.attention_splash_forward.count = 0;
  a.window = 512;
  assert_float_equal(mp_attention_seconds(&chip, &a), 0.25 * 0.875 * 32 * g_block / 1e15, 1e-12);
}

// Kernels of one's own, which say what they have to do.
#define OWN(config)                                                                              \
  "func.func @main(%x: tensor<64x128xf32>) -> tensor<64x128xf32> {\n%0 = stablehlo.custom_call " \
  "@minipod.kernel(%x) {backend_config = \"" config                                              \
  "\"} : (tensor<64x128xf32>) -> tensor<64x128xf32>\nreturn %0 : tensor<64x128xf32>\n}\n"
#define COUNTED                                                        \
  "\\22kernel\\22: {\\22flops\\22: 4000000000, \\22vector\\22: 1000, " \
  "\\22transcendentals\\22: 20, \\22bytes_accessed\\22: 2000000}"
#define STATED "\\22cost_estimate\\22: {\\22flops\\22: 0, \\22bytes_accessed\\22: 3000000}"

static void kernels_of_ones_own_say_what_they_do(void **state) {
  (void)state;
  mp_chip_t chip = bare_chip();
  expect_us(&chip, OWN("{" COUNTED "}"), 4);
  chip.memory_bandwidth = 1e12;
  expect_us(&chip, OWN("{" COUNTED "}"), 4);
  expect_us(&chip, OWN("{" COUNTED ", " STATED "}"), 3);
  chip.memory_bandwidth = 1e11;
  expect_us(&chip, OWN("{" COUNTED "}"), 20);
}

// Operations that a call states are those that it does.
static void an_estimate_says_how_much(void **state) {
  (void)state;
  mp_chip_t chip = bare_chip();
  const double forward[] = {0.5, 1, 100, 0, 0};
  set(&chip.figures.attention_splash_forward, MP_ATTENTION_TPU_COUNT, forward);
  // Three blocks.
  expect_us(
      &chip,
      SPLASH("splash_mha_fwd", "",
             "{\\22custom_call_config\\22: {\\22cost_estimate\\22: {\\22flops\\22: 402653184}}}",
             HEADS ", " TOKENS),
      3 * 2 * g_block / 0.5 / 1e9 + 0.3);
}

// Heads that are narrower than the lanes are padded up; wide ones have a rate of their own.
static void widths_count(void **state) {
  (void)state;
  mp_chip_t chip = bare_chip();
  const double forward[] = {0.5, 0.8, 0, 0, 0};
  set(&chip.figures.attention_splash_forward, MP_ATTENTION_TPU_COUNT, forward);
  mp_attention_t a = {.heads = 1,
                      .queries = 1024,
                      .keys = 1024,
                      .width = 64,
                      .block_queries = 512,
                      .block_keys = 512};
  const double full = 4 * 2 * g_block / 1e15;
  assert_float_equal(mp_attention_seconds(&chip, &a), full / 0.5, 1e-12);
  a.width = 256;
  assert_float_equal(mp_attention_seconds(&chip, &a), 2 * full / 0.8, 1e-12);
}

#define CUDNN(name, mask)                                                                         \
  "func.func @main(%q: tensor<2x2048x3x128xbf16>, %k: tensor<2x2048x3x128xbf16>) -> (" HEADS      \
  ", " TOKENS ") {\n%0:2 = \"stablehlo.custom_call\"(%q, %k) {call_target_name = \"__cudnn$" name \
  "\", api_version = 1 : i32, backend_config = \"{\\22cudnn_fmha_backend_config\\22: "            \
  "{\\22intermediate_tensor_shape\\22: {\\22element_type\\22: \\22BF16\\22, \\22dimensions\\22"   \
  ": [\\222\\22, \\223\\22, \\222048\\22, \\222048\\22], \\22tuple_shapes\\22: []}, "             \
  "\\22mask_type\\22: \\22" mask                                                                  \
  "\\22}}\"} : (tensor<2x2048x3x128xbf16>, tensor<2x2048x3x128xbf16>) -> (" HEADS ", " TOKENS     \
  ")\nreturn %0#0, %0#1 : " HEADS ", " TOKENS "\n}\n"

static void gpus_have_a_rate_by_sequence(void **state) {
  (void)state;
  mp_chip_t chip = bare_chip();
  const double full[] = {0.1, 0.2, 0.4, 0.5, 0.6, 0.7}, half[] = {0.1, 0.1, 0.2, 0.3, 0.3, 0.3};
  const double heads[] = {0.5, 0.9, 0.8, 1};
  const double flops = 6 * 16 * 2 * g_block;
  expect_us(&chip, CUDNN("fmhaSoftmax", "CAUSAL"), flops / 2 / 1e9);
  set(&chip.figures.attention_forward, MP_ATTENTION_GPU_COUNT, full);
  set(&chip.figures.attention_forward_causal, MP_ATTENTION_GPU_COUNT, half);
  set(&chip.figures.attention_backward, MP_ATTENTION_GPU_COUNT, half);
  set(&chip.figures.attention_heads, MP_ATTENTION_HEADS_COUNT, heads);
  expect_us(&chip, CUDNN("fmhaSoftmax", "NO_MASK"), flops / 0.4 / 1e9);
  expect_us(&chip, CUDNN("fmhaSoftmax", "CAUSAL"), flops / 2 / 0.2 / 1e9);
  expect_us(&chip, CUDNN("fmhaSoftmaxBackward", "NO_MASK"), 2.5 * flops / 0.2 / 1e9);
  mp_attention_t a = {.heads = 1, .queries = 1448, .keys = 1448, .width = 64};
  const double of_a = 4 * a.queries * a.keys * a.width / 1e15;
  assert_float_equal(mp_attention_seconds(&chip, &a), of_a / (0.3 * 0.5), 1e-3 * of_a);
  a.queries = a.keys = 1 << 20;
  a.width = 512;
  const double of_long = 4 * a.queries * a.keys * a.width / 1e15;
  assert_float_equal(mp_attention_seconds(&chip, &a), of_long / (0.7 * 0.9), 1e-9 * of_long);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_chip_without_figures_does_the_matmuls),
      cmocka_unit_test(tpus_go_through_blocks),
      cmocka_unit_test(masks_count_for_all_scores_of_a_block),
      cmocka_unit_test(a_kernel_may_make_all_gradients),
      cmocka_unit_test(small_blocks_wait_for_memory),
      cmocka_unit_test(windows_leave_less),
      cmocka_unit_test(kernels_of_ones_own_say_what_they_do),
      cmocka_unit_test(an_estimate_says_how_much),
      cmocka_unit_test(widths_count),
      cmocka_unit_test(gpus_have_a_rate_by_sequence),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
