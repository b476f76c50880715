// Which values are in VMEM, and which are prefetched.

#include "tests/unit/chip/fusion_samples.h"

// What a loop carries stays in VMEM, and so does what it reads in all rounds.
static void carried_values_stay_in_scratch_memory(void **state) {
  (void)state;
  static const char text[] =
      "func.func @main(%x: " S ", %w: " S ", %n: tensor<i32>) -> " S
      " {\n"
      "%c0 = stablehlo.constant dense<0> : tensor<i32>\n"
      "%c1 = stablehlo.constant dense<1> : tensor<i32>\n"
      "%0:2 = stablehlo.while(%i = %c0, %a = %x) : tensor<i32>, " S
      "\ncond {\n%p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
      "stablehlo.return %p : tensor<i1>\n} do {\n%d = stablehlo.tanh %a : " S
      "\n%k = stablehlo.add %i, %c1 : tensor<i32>\n"
      "stablehlo.return %k, %d : tensor<i32>, " S "\n}\nreturn %0#1 : " S "\n}\n";
  mp_chip_figures_t figures = figures_of(TPU);
  figures.memory_scratch = SQUARE + 64;
  found_t f = find_with(&figures, text);
  assert_true(sum_bytes(&f) < 64);
  find_end(&f);
  figures.memory_scratch = SQUARE - 8;
  f = find_with(&figures, text);
  assert_true(sum_bytes(&f) >= 2 * SQUARE);
  find_end(&f);
}

// The loop of a function with the argument %n: %n rounds over the state %a, which begins with
// zeros; a round computes the next state %d.
#define ROUNDS_BEGIN                                                                       \
  "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"                                     \
  "%x = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<f32>) -> tensor<256x256xf32>\n" \
  "%c0 = stablehlo.constant dense<0> : tensor<i32>\n"                                      \
  "%c1 = stablehlo.constant dense<1> : tensor<i32>\n"                                      \
  "%0:2 = stablehlo.while(%i = %c0, %a = %x) : tensor<i32>, tensor<256x256xf32>\n"         \
  "cond {\n%p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n" \
  "stablehlo.return %p : tensor<i1>\n} do {\n"
#define ROUNDS_END                                                  \
  "%k = stablehlo.add %i, %c1 : tensor<i32>\n"                      \
  "stablehlo.return %k, %d : tensor<i32>, tensor<256x256xf32>\n}\n" \
  "return %0#1 : tensor<256x256xf32>\n}\n"

// A loop over states of a type that are multiplied by a weight of another type in each round, and
// begin with zeros.
#define ROUNDS(type, weight, cast) ROUNDS_BEHIND("", type, weight, cast)
#define ROUNDS_BEHIND(before, type, weight, cast)                                           \
  "func.func @main(%w: tensor<256x256x" weight                                              \
  ">, %n: tensor<i32>) -> tensor<256x256xf32> {\n" before ROUNDS_BEGIN cast                 \
  "%d = stablehlo.dot_general %b, %w, contracting_dims = [1] x [0] : (tensor<256x256x" type \
  ">, tensor<256x256x" weight ">) -> tensor<256x256xf32>\n" ROUNDS_END
#define NARROW "%b = stablehlo.convert %a : (tensor<256x256xf32>) -> tensor<256x256xbf16>\n"
#define WIDE   "%b = stablehlo.negate %a : tensor<256x256xf32>\n"

#define SUM                                                                     \
  "%e = stablehlo.convert %a : (tensor<256x256xf32>) -> tensor<256x256xbf16>\n" \
  "%b = stablehlo.add %e, %y : tensor<256x256xbf16>\n"
#define BEFORE                                                         \
  "%y = stablehlo.dot_general %w, %w, contracting_dims = [1] x [0] : " \
  "(tensor<256x256xbf16>, tensor<256x256xbf16>) -> tensor<256x256xbf16>\n"

// A weight that is cast before the loop stays in VMEM; one that is read as it came does
// not, unless a matmul comes before the loop, beside which it is copied. On a TPU the loop itself
// makes its constant initial values; on a GPU a kernel writes them before.
static void rounds_keep_weights_that_are_cast(void **state) {
  (void)state;
  enum { BYTES = 256 * 256 * 4 };
  mp_chip_figures_t figures = figures_of(TPU);
  figures.memory_scratch = BYTES + BYTES / 2 + 64;
  found_t f = find_with(&figures, ROUNDS("f32", "f32", WIDE));
  assert_true(sum_bytes(&f) < 64);
  find_end(&f);
  figures.fusion_cores = 2;  // each has a VMEM: what rounds hand on goes through memory
  f = find_with(&figures, ROUNDS("f32", "f32", WIDE));
  assert_float_equal(sum_bytes(&f), 2.0 * BYTES, 64);
  find_end(&f);
  figures.fusion_cores = 1;
  f = find_with(&figures, ROUNDS("bf16", "bf16", NARROW));
  assert_float_equal(sum_bytes(&f), BYTES / 2, 64);
  find_end(&f);
  figures.memory_scratch = BYTES + BYTES / 2 - 64;
  f = find_with(&figures, ROUNDS("f32", "f32", WIDE));
  assert_float_equal(sum_bytes(&f), BYTES / 2, 64);
  assert_int_equal(f.fusions.loop_copies.count, 1);
  assert_float_equal(f.fusions.loop_copies.items[0].bytes, 1.5 * BYTES, 1e-3);
  assert_float_equal(f.fusions.loop_copies.items[0].held, BYTES / 2, 1e-3);
  find_end(&f);
  figures = figures_of(GPU);
  f = find_with(&figures, ROUNDS("f32", "f32", WIDE));
  assert_true(sum_bytes(&f) >= 4.0 * BYTES);
  find_end(&f);
}

// A loop whose rounds multiply a slice each of a stack by a weight.
#define STACK(type)                                                                                \
  "func.func @main(%xs: tensor<64x256x256x" type                                                   \
  ">, %n: tensor<i32>) -> tensor<256x256xf32> {\n" ROUNDS_BEGIN                                    \
  "%s = stablehlo.dynamic_slice %xs, %i, %c0, %c0, sizes = [1, 256, 256] : "                       \
  "(tensor<64x256x256x" type ">, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x256x256x" type \
  ">\n%b = stablehlo.reshape %s : (tensor<1x256x256x" type ">) -> tensor<256x256x" type            \
  ">\n%e = stablehlo.convert %a : (tensor<256x256xf32>) -> tensor<256x256x" type                   \
  ">\n%d = stablehlo.dot_general %b, %e, contracting_dims = [1] x [0] : (tensor<256x256x" type     \
  ">, tensor<256x256x" type ">) -> tensor<256x256xf32>\n" ROUNDS_END

// A stack of factors in f32 is cast before the loop and stays in VMEM, if there is room.
static void rounds_keep_stacks_that_are_cast(void **state) {
  (void)state;
  enum { BYTES = 256 * 256 * 4, STACK_BYTES = 64 * BYTES };
  mp_chip_figures_t figures = figures_of(TPU);
  figures.memory_scratch = BYTES + STACK_BYTES / 2 + 64;
  found_t f = find_with(&figures, STACK("f32"));
  assert_true(sum_bytes(&f) < 64);
  find_end(&f);
  f = find_with(&figures, STACK("bf16"));
  assert_float_equal(sum_bytes(&f), BYTES / 2, 64);
  find_end(&f);
  figures.memory_scratch = BYTES + STACK_BYTES / 2 - 64;
  f = find_with(&figures, STACK("f32"));
  assert_float_equal(sum_bytes(&f), BYTES / 2, 64);
  assert_float_equal(f.fusions.loop_copies.items[0].bytes, 1.5 * STACK_BYTES, 1e-3);
  find_end(&f);
}

// Of the arguments one is in VMEM when the program begins, the largest one that fits.
// What an earlier kernel has left room for is copied there beside the kernel before.
static void one_factor_is_fetched_before(void **state) {
  (void)state;
  static const char text[] =
      "func.func @main(%x: tensor<256x512xf32>, %v: tensor<512x1024xf32>, %w: "
      "tensor<1024x2048xf32>, %u: tensor<2048x128xf32>) -> tensor<256x128xf32> {\n"
      "%0 = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0] : (tensor<256x512xf32>, "
      "tensor<512x1024xf32>) -> tensor<256x1024xf32>\n"
      "%1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] : (tensor<256x1024xf32>, "
      "tensor<1024x2048xf32>) -> tensor<256x2048xf32>\n"
      "%2 = stablehlo.dot_general %1, %u, contracting_dims = [1] x [0] : (tensor<256x2048xf32>, "
      "tensor<2048x128xf32>) -> tensor<256x128xf32>\nreturn %2 : tensor<256x128xf32>\n}\n";
  enum { V_BYTES = 512 * 1024 * 4, W_BYTES = 1024 * 2048 * 4 };
  mp_chip_figures_t figures = figures_of(TPU);
  for (int is_small = 0; is_small < 2; ++is_small) {
    figures.matmul_resident = is_small ? V_BYTES : W_BYTES;
    found_t f = find_with(&figures, text);
    uint32_t first = 0, second = 0;
    const mp_chip_fusion_access_t *v = read_of(&f, V_BYTES, &first);
    const mp_chip_fusion_access_t *w = read_of(&f, W_BYTES, &second);
    assert_non_null(v);
    assert_non_null(w);
    assert_int_equal(v->space == MP_SPACE_PREFETCHED, is_small);
    assert_int_equal(w->space == MP_SPACE_PREFETCHED, !is_small);
    find_end(&f);
  }
  // While the last matmul is at work the next run's argument comes: there is room for both.
  enum { U_BYTES = 2048 * 128 * 4 };
  for (int is_small = 0; is_small < 2; ++is_small) {
    figures.matmul_resident = W_BYTES + (is_small ? U_BYTES - 1 : U_BYTES);
    found_t f = find_with(&figures, text);
    for (uint32_t i = 0; i < f.fusions.accesses.count; ++i) {
      const mp_chip_fusion_access_t *access = &f.fusions.accesses.items[i];
      if (access->value->index != 3 || access->value->op != NULL) continue;
      assert_int_equal(access->space == MP_SPACE_PREFETCHED, !is_small);
    }
    find_end(&f);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(carried_values_stay_in_scratch_memory),
      cmocka_unit_test(rounds_keep_weights_that_are_cast),
      cmocka_unit_test(rounds_keep_stacks_that_are_cast),
      cmocka_unit_test(one_factor_is_fetched_before),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
