// Passes but for those of sugar (test_desugar.c): small programs before, their dump after.
#include <stdio.h>

#include "sim/ir/verify/verify.h"
#include "sim/passes/passes.h"
#include "sim/readers/text/text.h"
#include "tests/unit/support/ir_test.h"

// ---- transforms over several dimensions ----

static mp_value_t *transform(ir_t *ir, uint32_t type, const char *result, mp_value_t *operand,
                             mp_named_attr_t lengths) {
  const mp_attr_t *value = NULL;
  assert_ok(mp_attr_make_enum(ir->module->arena, MP_ENUM_FFT_TYPE, type, &value));
  return ir_op(ir, MP_OP_FFT, result, VALUES(operand),
               ATTRS(lengths, ir_attr(MP_ATTR_FFT_TYPE, value)));
}

#define BETWEEN "tensor<5x4x6x5xcomplex<f32>>\n"

static void test_transforms(void **state) {
  (void)state;
  ir_t ir = ir_start("5x4x6x8xf32 0x4xcomplex<f32>", "5x4x6x8xf32 0x4xcomplex<f32>");
  mp_value_t *there = transform(&ir, MP_FFT_RFFT, "5x4x6x5xcomplex<f32>", ir.args[0],
                                IR_INTS(&ir, MP_ATTR_FFT_LENGTH, 4, 6, 8));
  mp_value_t *inverse = transform(&ir, MP_FFT_IFFT, "5x4x6x5xcomplex<f32>", there,
                                  IR_INTS(&ir, MP_ATTR_FFT_LENGTH, 6, 5));
  mp_value_t *back = transform(&ir, MP_FFT_IRFFT, "5x4x6x8xf32", inverse,
                               IR_INTS(&ir, MP_ATTR_FFT_LENGTH, 4, 6, 8));
  mp_value_t *none = transform(&ir, MP_FFT_FFT, "0x4xcomplex<f32>", ir.args[1],
                               IR_INTS(&ir, MP_ATTR_FFT_LENGTH, 0, 4));
  ir_return(&ir, VALUES(back, none));
  assert_ok(mp_pass_transforms(ir.module));
  static const uint32_t types[] = {MP_FFT_RFFT, MP_FFT_FFT,  MP_FFT_FFT,   MP_FFT_IFFT, MP_FFT_IFFT,
                                   MP_FFT_IFFT, MP_FFT_IFFT, MP_FFT_IRFFT, MP_FFT_FFT};
  const mp_op_t *op = ir.block->first;
  for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); ++i, op = op->next) {
    assert_int_equal(mp_op_enum(op, MP_ATTR_FFT_TYPE, UINT32_MAX), types[i]);
  }
  ir_check(&ir, "%2 = fft(%0) {fft_length=[8] fft_type=kind 5} : " BETWEEN
                "%3 = fft(%2) {fft_length=[6] fft_type=kind 5 minipod.kept=1} : " BETWEEN
                "%4 = fft(%3) {fft_length=[4] fft_type=kind 5 minipod.kept=2} : " BETWEEN
                "%5 = fft(%4) {fft_length=[5] fft_type=kind 5} : " BETWEEN
                "%6 = fft(%5) {fft_length=[6] fft_type=kind 5 minipod.kept=1} : " BETWEEN
                "%7 = fft(%6) {fft_length=[4] fft_type=kind 5 minipod.kept=2} : " BETWEEN
                "%8 = fft(%7) {fft_length=[6] fft_type=kind 5 minipod.kept=1} : " BETWEEN
                "%9 = fft(%8) {fft_length=[8] fft_type=kind 5} : tensor<5x4x6x8xf32>\n"
                "%10 = fft(%1) {fft_length=[0,4] fft_type=kind 5} : tensor<0x4xcomplex<f32>>\n"
                "return(%9, %10)\n");
  ir_end(&ir);
}

// ---- splats and folding ----

static void test_splat(void **state) {
  (void)state;
  ir_t ir = ir_start("", "128x129xf32 4xf32");
  const float value = 1.5f;
  mp_value_t *large = ir_constant(&ir, "128x129xf32", &value, sizeof(value));
  mp_value_t *small = ir_constant(&ir, "128x128xf32", &value, sizeof(value));
  ir_return(&ir, VALUES(large, small));
  assert_ok(mp_pass_splat(ir.module));
  ir_check(&ir,
           "%0 = constant() {value=splat 1.5} : tensor<f32>\n"
           "%1 = broadcast_in_dim(%0) {broadcast_dimensions=[]} : tensor<128x129xf32>\n"
           "%2 = constant() {value=splat 1.5} : tensor<128x128xf32>\n"
           "return(%1, %2)\n");
  ir_end(&ir);
}

static void test_fold_identities(void **state) {
  (void)state;
  ir_t ir = ir_start("2x3xf32 f32", "3x2xf32 2x3xf32 4x3x2xf32");
  mp_value_t *same = ir_op(&ir, MP_OP_CONVERT, "2x3xf32", VALUES(ir.args[0]), NO_ATTRS);
  mp_value_t *still = ir_op(&ir, MP_OP_TRANSPOSE, "2x3xf32", VALUES(same),
                            ATTRS(IR_INTS(&ir, MP_ATTR_PERMUTATION, 0, 1)));
  mp_value_t *turned = ir_op(&ir, MP_OP_TRANSPOSE, "3x2xf32", VALUES(still),
                             ATTRS(IR_INTS(&ir, MP_ATTR_PERMUTATION, 1, 0)));
  mp_value_t *flat = ir_op(&ir, MP_OP_RESHAPE, "6xf32", VALUES(turned), NO_ATTRS);
  mp_value_t *back = ir_op(&ir, MP_OP_RESHAPE, "2x3xf32", VALUES(flat), NO_ATTRS);
  mp_value_t *wide = ir_op(&ir, MP_OP_BROADCAST_IN_DIM, "3x2xf32", VALUES(still),
                           ATTRS(IR_INTS(&ir, MP_ATTR_BROADCAST_DIMENSIONS, 1, 0)));
  mp_value_t *wider = ir_op(&ir, MP_OP_BROADCAST_IN_DIM, "4x3x2xf32", VALUES(wide),
                            ATTRS(IR_INTS(&ir, MP_ATTR_BROADCAST_DIMENSIONS, 1, 2)));
  ir_return(&ir, VALUES(turned, back, wider));
  assert_ok(mp_pass_fold(ir.module));
  assert_ok(mp_pass_dead_code(ir.module));
  ir_check(&ir,
           "%2 = transpose(%0) {permutation=[1,0]} : tensor<3x2xf32>\n"
           "%3 = reshape(%2) : tensor<2x3xf32>\n"
           "%4 = broadcast_in_dim(%0) {broadcast_dimensions=[2,1]} : tensor<4x3x2xf32>\n"
           "return(%2, %3, %4)\n");
  ir_end(&ir);
}

// reshape(reshape(x)) back to x's own type disappears altogether.
static void test_fold_reshape_back(void **state) {
  (void)state;
  ir_t ir = ir_start("2x3xf32", "2x3xf32");
  mp_value_t *flat = ir_op(&ir, MP_OP_RESHAPE, "6xf32", VALUES(ir.args[0]), NO_ATTRS);
  ir_return(&ir, VALUES(ir_op(&ir, MP_OP_RESHAPE, "2x3xf32", VALUES(flat), NO_ATTRS)));
  assert_ok(mp_pass_fold(ir.module));
  assert_ok(mp_pass_dead_code(ir.module));
  ir_check(&ir, "return(%0)\n");
  ir_end(&ir);
}

// A transpose of a transpose is one of what that began with, also across dimensions of size 1.
static void test_transposes(void **state) {
  (void)state;
  ir_t ir = ir_start("2x3x4xf32 5x1x6xf32", "2x3x4xf32 4x2x3xf32 6x1x5xf32 1x5x6xf32");
  mp_value_t *turned = ir_op(&ir, MP_OP_TRANSPOSE, "4x2x3xf32", VALUES(ir.args[0]),
                             ATTRS(IR_INTS(&ir, MP_ATTR_PERMUTATION, 2, 0, 1)));
  mp_value_t *back = ir_op(&ir, MP_OP_TRANSPOSE, "2x3x4xf32", VALUES(turned),
                           ATTRS(IR_INTS(&ir, MP_ATTR_PERMUTATION, 1, 2, 0)));
  mp_value_t *longer = ir_op(&ir, MP_OP_RESHAPE, "4x1x2x3xf32", VALUES(turned), NO_ATTRS);
  mp_value_t *again = ir_op(&ir, MP_OP_TRANSPOSE, "3x1x4x2xf32", VALUES(longer),
                            ATTRS(IR_INTS(&ir, MP_ATTR_PERMUTATION, 3, 1, 0, 2)));
  mp_value_t *third = ir_op(&ir, MP_OP_TRANSPOSE, "4x2x3x1xf32", VALUES(again),
                            ATTRS(IR_INTS(&ir, MP_ATTR_PERMUTATION, 2, 3, 0, 1)));
  mp_value_t *shorter = ir_op(&ir, MP_OP_RESHAPE, "4x2x3xf32", VALUES(third), NO_ATTRS);
  mp_value_t *alone = ir_op(&ir, MP_OP_TRANSPOSE, "6x1x5xf32", VALUES(ir.args[1]),
                            ATTRS(IR_INTS(&ir, MP_ATTR_PERMUTATION, 2, 1, 0)));
  mp_value_t *moved = ir_op(&ir, MP_OP_TRANSPOSE, "1x5x6xf32", VALUES(ir.args[1]),
                            ATTRS(IR_INTS(&ir, MP_ATTR_PERMUTATION, 1, 0, 2)));
  ir_return(&ir, VALUES(back, shorter, alone, moved));
  assert_ok(mp_pass_transposes(ir.module));
  assert_ok(mp_pass_fold(ir.module));
  assert_ok(mp_pass_dead_code(ir.module));
  ir_check(&ir,
           "%2 = transpose(%0) {permutation=[2,0,1]} : tensor<4x2x3xf32>\n"
           "%3 = transpose(%1) {permutation=[2,1,0]} : tensor<6x1x5xf32>\n"
           "%4 = reshape(%1) : tensor<1x5x6xf32>\n"
           "return(%0, %2, %3, %4)\n");
  ir_end(&ir);
}

// Reshapes that move elements from one dimension to another end a chain of transposes.
static void test_transposes_across_reshapes(void **state) {
  (void)state;
  ir_t ir = ir_start("4x6xf32", "6x4xf32 4x6xf32");
  mp_value_t *turned = ir_op(&ir, MP_OP_TRANSPOSE, "6x4xf32", VALUES(ir.args[0]),
                             ATTRS(IR_INTS(&ir, MP_ATTR_PERMUTATION, 1, 0)));
  mp_value_t *other = ir_op(&ir, MP_OP_RESHAPE, "4x6xf32", VALUES(turned), NO_ATTRS);
  mp_value_t *first = ir_op(&ir, MP_OP_TRANSPOSE, "6x4xf32", VALUES(other),
                            ATTRS(IR_INTS(&ir, MP_ATTR_PERMUTATION, 1, 0)));
  ir_return(&ir, VALUES(first, other));
  assert_ok(mp_pass_transposes(ir.module));
  ir_check(&ir,
           "%1 = transpose(%0) {permutation=[1,0]} : tensor<6x4xf32>\n"
           "%2 = reshape(%1) : tensor<4x6xf32>\n"
           "%3 = transpose(%2) {permutation=[1,0]} : tensor<6x4xf32>\n"
           "return(%3, %2)\n");
  ir_end(&ir);
}

// A broadcast that only adds dimensions of size 1 is a reshape, one that turns or repeats is not.
static void test_unit_broadcasts(void **state) {
  (void)state;
  ir_t ir = ir_start("3x2xf32", "3x1x2xf32 2x3xf32 1x3x2x2xf32");
  mp_value_t *longer = ir_op(&ir, MP_OP_BROADCAST_IN_DIM, "3x1x2xf32", VALUES(ir.args[0]),
                             ATTRS(IR_INTS(&ir, MP_ATTR_BROADCAST_DIMENSIONS, 0, 2)));
  mp_value_t *turned = ir_op(&ir, MP_OP_BROADCAST_IN_DIM, "2x3xf32", VALUES(ir.args[0]),
                             ATTRS(IR_INTS(&ir, MP_ATTR_BROADCAST_DIMENSIONS, 1, 0)));
  mp_value_t *wider = ir_op(&ir, MP_OP_BROADCAST_IN_DIM, "1x3x2x2xf32", VALUES(ir.args[0]),
                            ATTRS(IR_INTS(&ir, MP_ATTR_BROADCAST_DIMENSIONS, 1, 2)));
  ir_return(&ir, VALUES(longer, turned, wider));
  assert_ok(mp_pass_unit_broadcasts(ir.module));
  ir_check(&ir,
           "%1 = reshape(%0) : tensor<3x1x2xf32>\n"
           "%2 = broadcast_in_dim(%0) {broadcast_dimensions=[1,0]} : tensor<2x3xf32>\n"
           "%3 = broadcast_in_dim(%0) {broadcast_dimensions=[1,2]} : tensor<1x3x2x2xf32>\n"
           "return(%1, %2, %3)\n");
  ir_end(&ir);
}

static void test_fold_equal_ops(void **state) {
  (void)state;
  ir_t ir = ir_start("i32", "4xf32");
  const float one = 1, zero = 0, minus_zero = -0.0f;
  mp_value_t *a = ir_constant(&ir, "f32", &one, 4), *b = ir_constant(&ir, "f32", &one, 4);
  mp_value_t *c = ir_constant(&ir, "f32", &zero, 4), *d = ir_constant(&ir, "f32", &minus_zero, 4);
  mp_named_attr_t none = IR_INTS(&ir, MP_ATTR_BROADCAST_DIMENSIONS, 0);
  none = ir_list(&ir, MP_ATTR_BROADCAST_DIMENSIONS, NULL, 0);
  mp_value_t *wide[4];
  mp_value_t *const scalars[] = {a, b, c, d};
  for (int i = 0; i < 4; ++i) {
    wide[i] = ir_op(&ir, MP_OP_BROADCAST_IN_DIM, "4xf32", VALUES(scalars[i]), ATTRS(none));
  }
  mp_value_t *i0 =
      ir_op(&ir, MP_OP_IOTA, "4xf32", NO_VALUES, ATTRS(ir_int(&ir, MP_ATTR_IOTA_DIMENSION, 0)));
  mp_value_t *i1 =
      ir_op(&ir, MP_OP_IOTA, "4xf32", NO_VALUES, ATTRS(ir_int(&ir, MP_ATTR_IOTA_DIMENSION, 0)));
  // Blocks are for themselves: the region's constant stays.
  mp_block_t *main_block = ir.block;
  mp_block_t *region = ir_block(&ir, "");
  mp_value_t *inside = ir_constant(&ir, "f32", &one, 4);
  ir_return(&ir, VALUES(inside, b));
  ir.block = main_block;
  mp_op_t *branch =
      ir_op_regions(&ir, MP_OP_CASE, "f32 f32", VALUES(ir.args[0]), NO_ATTRS, 1, &region);
  ir_return(&ir, VALUES(wide[0], wide[1], wide[2], wide[3], i0, i1, &branch->results[0],
                        &branch->results[1]));
  assert_ok(mp_pass_fold(ir.module));
  assert_ok(mp_pass_dead_code(ir.module));
  ir_check(&ir,
           "%1 = constant() {value=1} : tensor<f32>\n"
           "%2 = constant() {value=0} : tensor<f32>\n"
           "%3 = constant() {value=-0} : tensor<f32>\n"
           "%4 = broadcast_in_dim(%1) {broadcast_dimensions=[]} : tensor<4xf32>\n"
           "%5 = broadcast_in_dim(%2) {broadcast_dimensions=[]} : tensor<4xf32>\n"
           "%6 = broadcast_in_dim(%3) {broadcast_dimensions=[]} : tensor<4xf32>\n"
           "%7 = iota() {iota_dimension=0} : tensor<4xf32>\n"
           "%9, %10 = case(%0) : tensor<f32>, tensor<f32>\n"
           " ^()\n"
           "  %8 = constant() {value=1} : tensor<f32>\n"
           "  return(%8, %1)\n"
           "return(%4, %4, %5, %6, %7, %7, %9, %10)\n");
  ir_end(&ir);
}

// ---- values that loops carry ----

// while (flag) { (w, flag, x) = (w, is_finite(x), inner loop on (w, flag, x)) }: neither carries w.
static void test_loop_values(void **state) {
  (void)state;
  ir_t ir = ir_start("f32 i1 f32", "f32 f32 i1");
  mp_block_t *main_block = ir.block;
  mp_block_t *condition = ir_block(&ir, "f32 i1 f32");
  ir_return(&ir, VALUES(&condition->args[1]));
  mp_block_t *body = ir_block(&ir, "f32 i1 f32");
  mp_block_t *inner_condition = ir_block(&ir, "f32 i1 f32");
  ir_return(&ir, VALUES(&inner_condition->args[1]));
  mp_block_t *inner_body = ir_block(&ir, "f32 i1 f32");
  mp_value_t *w = &inner_body->args[0], *x = &inner_body->args[2];
  mp_value_t *sum = ir_op(&ir, MP_OP_ADD, "f32", VALUES(w, x), NO_ATTRS);
  mp_value_t *finite = ir_op(&ir, MP_OP_IS_FINITE, "i1", VALUES(sum), NO_ATTRS);
  ir_return(&ir, VALUES(w, finite, sum));
  ir.block = body;
  mp_op_t *inner = ir_op_regions(&ir, MP_OP_WHILE, "f32 i1 f32",
                                 VALUES(&body->args[0], &body->args[1], &body->args[2]), NO_ATTRS,
                                 2, (mp_block_t *[]){inner_condition, inner_body});
  mp_value_t *flag = ir_op(&ir, MP_OP_IS_FINITE, "i1", VALUES(&inner->results[2]), NO_ATTRS);
  ir_return(&ir, VALUES(&inner->results[0], flag, &inner->results[2]));
  ir.block = main_block;
  mp_op_t *loop =
      ir_op_regions(&ir, MP_OP_WHILE, "f32 i1 f32", VALUES(ir.args[0], ir.args[1], ir.args[2]),
                    NO_ATTRS, 2, (mp_block_t *[]){condition, body});
  ir_return(&ir, VALUES(&loop->results[0], &loop->results[2], &loop->results[1]));
  assert_ok(mp_pass_loop_values(ir.module));
  ir_check(&ir,
           "%16, %17 = while(%1, %2) : tensor<i1>, tensor<f32>\n"
           " ^(%3: tensor<i1>, %4: tensor<f32>)\n"
           "  return(%3)\n"
           " ^(%5: tensor<i1>, %6: tensor<f32>)\n"
           "  %13, %14 = while(%5, %6) : tensor<i1>, tensor<f32>\n"
           "   ^(%7: tensor<i1>, %8: tensor<f32>)\n"
           "    return(%7)\n"
           "   ^(%9: tensor<i1>, %10: tensor<f32>)\n"
           "    %11 = add(%0, %10) : tensor<f32>\n"
           "    %12 = is_finite(%11) : tensor<i1>\n"
           "    return(%12, %11)\n"
           "  %15 = is_finite(%14) : tensor<i1>\n"
           "  return(%15, %14)\n"
           "return(%0, %17, %16)\n");
  ir_end(&ir);
}

// Before partitioning, what another op made is not carried; a parameter still is.
static void test_loop_values_early(void **state) {
  (void)state;
  ir_t ir = ir_start("f32 i1", "f32");
  mp_block_t *main_block = ir.block;
  mp_value_t *made = ir_op(&ir, MP_OP_NEGATE, "f32", VALUES(ir.args[0]), NO_ATTRS);
  mp_block_t *condition = ir_block(&ir, "f32 f32 i1");
  ir_return(&ir, VALUES(&condition->args[2]));
  mp_block_t *body = ir_block(&ir, "f32 f32 i1");
  mp_value_t *sum = ir_op(&ir, MP_OP_ADD, "f32", VALUES(&body->args[0], &body->args[1]), NO_ATTRS);
  mp_value_t *finite = ir_op(&ir, MP_OP_IS_FINITE, "i1", VALUES(sum), NO_ATTRS);
  ir_return(&ir, VALUES(&body->args[0], &body->args[1], finite));
  ir.block = main_block;
  mp_op_t *loop =
      ir_op_regions(&ir, MP_OP_WHILE, "f32 f32 i1", VALUES(ir.args[0], made, ir.args[1]), NO_ATTRS,
                    2, (mp_block_t *[]){condition, body});
  ir_return(&ir, VALUES(&loop->results[1]));
  assert_ok(mp_pass_loop_values_early(ir.module));
  ir_check(&ir,
           "%2 = negate(%0) : tensor<f32>\n"
           "%9, %10 = while(%0, %1) : tensor<f32>, tensor<i1>\n"
           " ^(%3: tensor<f32>, %4: tensor<i1>)\n"
           "  return(%4)\n"
           " ^(%5: tensor<f32>, %6: tensor<i1>)\n"
           "  %7 = add(%5, %2) : tensor<f32>\n"
           "  %8 = is_finite(%7) : tensor<i1>\n"
           "  return(%5, %8)\n"
           "return(%2)\n");
  ir_end(&ir);
}

// A loop that changes nothing runs for ever, or not at all.
static void test_loop_that_changes_nothing(void **state) {
  (void)state;
  ir_t ir = ir_start("i1", "i1");
  mp_block_t *main_block = ir.block;
  mp_block_t *condition = ir_block(&ir, "i1");
  ir_return(&ir, VALUES(condition->args));
  mp_block_t *body = ir_block(&ir, "i1");
  ir_return(&ir, VALUES(body->args));
  ir.block = main_block;
  mp_op_t *loop = ir_op_regions(&ir, MP_OP_WHILE, "i1", VALUES(ir.args[0]), NO_ATTRS, 2,
                                (mp_block_t *[]){condition, body});
  ir_return(&ir, VALUES(loop->results));
  assert_ok(mp_pass_loop_values(ir.module));
  ir_check(&ir,
           "%3 = while(%0) : tensor<i1>\n"
           " ^(%1: tensor<i1>)\n"
           "  return(%1)\n"
           " ^(%2: tensor<i1>)\n"
           "  return(%2)\n"
           "return(%3)\n");
  ir_end(&ir);
}

// ---- dead code, inlining ----

static void test_dead_code(void **state) {
  (void)state;
  ir_t ir = ir_start("f32 i32", "f32");
  mp_value_t *unused = ir_op(&ir, MP_OP_NEGATE, "f32", VALUES(ir.args[0]), NO_ATTRS);
  (void)ir_op(&ir, MP_OP_ABS, "f32", VALUES(unused), NO_ATTRS);
  (void)ir_op(&ir, MP_OP_CUSTOM_CALL, "f32", VALUES(ir.args[0]),
              ATTRS(ir_string(&ir, MP_ATTR_CALL_TARGET_NAME, "pure")));
  const mp_attr_t *yes = NULL;
  assert_ok(mp_attr_make_bool(ir.module->arena, true, &yes));
  (void)ir_op(&ir, MP_OP_CUSTOM_CALL, "f32", VALUES(ir.args[0]),
              ATTRS(ir_string(&ir, MP_ATTR_CALL_TARGET_NAME, "effect"),
                    ir_attr(MP_ATTR_HAS_SIDE_EFFECT, yes)));
  // A branch whose result is unused stays for the collective in it, and its operand with it.
  mp_value_t *captured = ir_op(&ir, MP_OP_COSINE, "f32", VALUES(ir.args[0]), NO_ATTRS);
  mp_block_t *main_block = ir.block;
  mp_block_t *region = ir_block(&ir, "");
  const mp_attr_t *pairs = NULL;
  assert_ok(mp_attr_make_table(ir.module->arena, (int64_t[]){0, 0}, 1, 2, &pairs));
  (void)ir_op(&ir, MP_OP_SINE, "f32", VALUES(ir.args[0]), NO_ATTRS);
  ir_return(&ir, VALUES(ir_op(&ir, MP_OP_COLLECTIVE_PERMUTE, "f32", VALUES(captured),
                              ATTRS(ir_attr(MP_ATTR_SOURCE_TARGET_PAIRS, pairs)))));
  ir.block = main_block;
  (void)ir_op_regions(&ir, MP_OP_CASE, "f32", VALUES(ir.args[1]), NO_ATTRS, 1, &region);
  ir_return(&ir, VALUES(ir.args[0]));
  assert_ok(mp_pass_dead_code(ir.module));
  ir_check(&ir,
           "%2 = custom_call(%0) {call_target_name=\"effect\" has_side_effect=true} : "
           "tensor<f32>\n"
           "%3 = cosine(%0) : tensor<f32>\n"
           "%5 = case(%1) : tensor<f32>\n"
           " ^()\n"
           "  %4 = collective_permute(%3) {source_target_pairs=[[0,0]]} : tensor<f32>\n"
           "  return(%4)\n"
           "return(%0)\n");
  ir_end(&ir);
}

// A call may say that it can be removed although it has effects.
static void test_dead_calls(void **state) {
  (void)state;
  static const char text[] =
      "func.func @main(%x: tensor<f32>) -> tensor<f32> {\n"
      "  %0 = stablehlo.custom_call @stays(%x) {has_side_effect = true, mhlo.frontend_attributes = "
      "{xla_allow_dce_side_effecting_op = \"false\"}} : (tensor<f32>) -> tensor<f32>\n"
      "  %1 = stablehlo.custom_call @goes(%x) {has_side_effect = true, mhlo.frontend_attributes = "
      "{xla_allow_dce_side_effecting_op = \"true\"}} : (tensor<f32>) -> tensor<f32>\n"
      "  %2 = stablehlo.custom_call @used(%x) {has_side_effect = true, mhlo.frontend_attributes = "
      "{xla_allow_dce_side_effecting_op = \"true\"}} : (tensor<f32>) -> tensor<f32>\n"
      "  return %2 : tensor<f32>\n"
      "}\n";
  mp_module_t *module = NULL;
  assert_ok(mp_read_text(text, sizeof(text) - 1, &module));
  assert_ok(mp_pass_dead_code(module));
  const mp_op_t *first = module->main->body->first;
  assert_true(mp_str_is(mp_op_str(first, MP_ATTR_CALL_TARGET_NAME), "stays"));
  assert_true(mp_str_is(mp_op_str(first->next, MP_ATTR_CALL_TARGET_NAME), "used"));
  assert_int_equal(first->next->next->code, MP_OP_RETURN);
  mp_module_release(module);
}

// Before partitioning a kernel is one op, whose region is then put in its place or taken away.
#define KERNEL                                                                                  \
  "func.func @main(%x: tensor<f32>) -> tensor<f32> {\n"                                         \
  "  %0 = stablehlo.composite \"minipod.kernel\" %x {composite_attributes = {backend_config = " \
  "\"{}\", kernel_name = \"k\", other = 1 : i32}, decomposition = @body} : (tensor<f32>) -> "   \
  "tensor<f32>\n"                                                                               \
  "  %1 = stablehlo.abs %0 : tensor<f32>\n  return %1 : tensor<f32>\n}\n"                       \
  "func.func private @body(%x: tensor<f32>) -> tensor<f32> {\n"                                 \
  "  %0 = call @inner(%x) : (tensor<f32>) -> tensor<f32>\n"                                     \
  "  %1 = stablehlo.add %0, %x : tensor<f32>\n  return %1 : tensor<f32>\n}\n"                   \
  "func.func private @inner(%x: tensor<f32>) -> tensor<f32> {\n"                                \
  "  %0 = stablehlo.negate %x : tensor<f32>\n  return %0 : tensor<f32>\n}\n"

static void test_kernels(void **state) {
  (void)state;
  for (int is_open = 0; is_open < 2; ++is_open) {
    mp_module_t *module = NULL;
    assert_ok(mp_read_text(KERNEL, strlen(KERNEL), &module));
    assert_ok(mp_module_verify(module));
    assert_ok(mp_passes_prepare(module));
    assert_ok(mp_module_verify(module));
    const mp_op_t *kernel = module->main->body->first;
    assert_true(mp_op_is_kernel(kernel) && kernel->next->code == MP_OP_ABS);
    assert_true(mp_str_is(mp_op_str(kernel, MP_ATTR_KERNEL_NAME), "k"));
    assert_int_equal(kernel->regions[0]->first->code, MP_OP_NEGATE);
    assert_ok(is_open ? mp_pass_open_kernels(module) : mp_pass_close_kernels(module));
    assert_ok(mp_module_verify(module));
    const mp_op_t *first = module->main->body->first;
    assert_int_equal(first->code, is_open ? MP_OP_NEGATE : MP_OP_CUSTOM_CALL);
    assert_int_equal(first->num_regions, 0);
    assert_int_equal(first->next->code, is_open ? MP_OP_ADD : MP_OP_ABS);
    mp_module_release(module);
  }
}

// f(x) = g(g(x)) + x, g(x) = -x: two copies of g, then main's own op.
static void test_inline(void **state) {
  (void)state;
  ir_t ir = ir_start("f32", "f32");
  mp_func_t *callee = NULL;
  const mp_type_t *scalar = ir.args[0]->type;
  assert_ok(mp_func_create(ir.module, MP_STR("g"), 1, &scalar, 1, &scalar, &callee));
  mp_value_t *once =
      ir_op(&ir, MP_OP_CALL, "f32", VALUES(ir.args[0]), ATTRS(ir_string(&ir, MP_ATTR_CALLEE, "g")));
  mp_value_t *twice =
      ir_op(&ir, MP_OP_CALL, "f32", VALUES(once), ATTRS(ir_string(&ir, MP_ATTR_CALLEE, "g")));
  ir_return(&ir, VALUES(ir_op(&ir, MP_OP_ADD, "f32", VALUES(twice, ir.args[0]), NO_ATTRS)));
  ir.block = callee->body;
  ir_return(&ir, VALUES(ir_op(&ir, MP_OP_NEGATE, "f32", VALUES(callee->body->args), NO_ATTRS)));
  assert_ok(mp_passes_prepare(ir.module));
  ir_check(&ir,
           "%1 = negate(%0) : tensor<f32>\n"
           "%2 = negate(%1) : tensor<f32>\n"
           "%3 = add(%2, %0) : tensor<f32>\n"
           "return(%3)\n");
  assert_ptr_equal(ir.module->funcs.first, ir.main);
  assert_null(ir.main->next);
  ir_end(&ir);
}

// Ops of a function without places have that of the call, and those with places keep theirs.
static void test_inline_places(void **state) {
  (void)state;
  ir_t ir = ir_start("f32", "f32");
  mp_func_t *callee = NULL;
  const mp_type_t *scalar = ir.args[0]->type;
  assert_ok(mp_func_create(ir.module, MP_STR("g"), 1, &scalar, 1, &scalar, &callee));
  const mp_loc_t train = {.kind = MP_LOC_FILE, .text = MP_STR("train.py"), .line = 12};
  const mp_loc_t own = {.kind = MP_LOC_FILE, .text = MP_STR("g.py"), .line = 3};
  const mp_loc_t name = {.kind = MP_LOC_NAME, .text = MP_STR("iota")};
  mp_value_t *called =
      ir_op(&ir, MP_OP_CALL, "f32", VALUES(ir.args[0]), ATTRS(ir_string(&ir, MP_ATTR_CALLEE, "g")));
  called->op->loc = &train;
  ir_return(&ir, VALUES(called));
  ir.block = callee->body;
  const mp_loc_t *const locs[] = {&name, NULL, &own};
  mp_value_t *value = callee->body->args;
  for (int i = 0; i < 3; ++i) {
    value = ir_op(&ir, MP_OP_NEGATE, "f32", VALUES(value), NO_ATTRS);
    value->op->loc = locs[i];
  }
  ir_return(&ir, VALUES(value));
  assert_ok(mp_passes_prepare(ir.module));
  static const char *const expected[] = {"iota at train.py:12", "train.py:12", "g.py:3"};
  const mp_op_t *op = ir.main->body->first;
  for (int i = 0; i < 3; ++i, op = op->next) {
    mp_strbuf_t text;
    mp_strbuf_init(&text);
    mp_loc_describe(op->loc, &text);
    assert_string_equal(mp_strbuf_text(&text), expected[i]);
    mp_strbuf_deinit(&text);
  }
  ir_end(&ir);
}

// The function of `callee`, a negation at `loc`, with a call of it in the block of ir.
static mp_value_t *ir_negating_call(ir_t *ir, const char *callee, const mp_loc_t *loc,
                                    mp_value_t *value, mp_block_t **out_body) {
  mp_func_t *func = NULL;
  const mp_type_t *scalar = value->type;
  assert_ok(mp_func_create(ir->module, mp_str(callee), 1, &scalar, 1, &scalar, &func));
  mp_value_t *called =
      ir_op(ir, MP_OP_CALL, "f32", VALUES(value), ATTRS(ir_string(ir, MP_ATTR_CALLEE, callee)));
  called->op->loc = loc;
  *out_body = func->body;
  return called;
}

// The names of a function's ops are those of the program: below the names of its calls.
static void test_inline_names(void **state) {
  (void)state;
  static const struct {
    const char *outer, *inner, *op, *expected;
  } cases[] = {
      {"jit(f)/layer/closed_call", "mlp/jit(gelu)", "tanh",
       "jit(f)/layer/closed_call/mlp/jit(gelu)/tanh"},
      {"jit(f)/layer/closed_call", "jit(f)/layer/mlp/jit(gelu)", "jit(f)/layer/mlp/tanh",
       "jit(f)/layer/mlp/tanh"},
      {"jit(f)/a", "jit(f2)", "x", "jit(f)/a/jit(f2)/x"},
      {"", "mlp", "tanh", "mlp/tanh"},
      {"jit(f)", "", "tanh", "jit(f)/tanh"},
      {"jit(f)", "mlp", "", "jit(f)/mlp"},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    ir_t ir = ir_start("f32", "f32");
    const mp_loc_t outer = {.kind = MP_LOC_NAME, .text = mp_str(cases[i].outer)};
    const mp_loc_t inner = {.kind = MP_LOC_NAME, .text = mp_str(cases[i].inner)};
    const mp_loc_t name = {.kind = MP_LOC_NAME, .text = mp_str(cases[i].op)};
    mp_block_t *g, *h;
    ir_return(&ir, VALUES(ir_negating_call(&ir, "g", &outer, ir.args[0], &g)));
    ir.block = g;
    ir_return(&ir, VALUES(ir_negating_call(&ir, "h", &inner, &g->args[0], &h)));
    ir.block = h;
    mp_value_t *negated = ir_op(&ir, MP_OP_NEGATE, "f32", VALUES(h->args), NO_ATTRS);
    negated->op->loc = &name;
    ir_return(&ir, VALUES(negated));
    assert_ok(mp_passes_prepare(ir.module));
    const mp_loc_t *found = mp_loc_find(ir.main->body->first->loc).name;
    assert_non_null(found);
    assert_int_equal(found->text.size, strlen(cases[i].expected));
    assert_memory_equal(found->text.data, cases[i].expected, found->text.size);
    ir_end(&ir);
  }
}

// g swaps its arguments and calls itself through main twice with swapped operands: the operands
// must all be read before the first argument is bound.
static void test_inline_swapped(void **state) {
  (void)state;
  ir_t ir = ir_start("f32 f32", "f32");
  mp_func_t *inner = NULL, *outer = NULL;
  const mp_type_t *const types[] = {ir.args[0]->type, ir.args[0]->type};
  assert_ok(mp_func_create(ir.module, MP_STR("inner"), 2, types, 1, types, &inner));
  assert_ok(mp_func_create(ir.module, MP_STR("outer"), 2, types, 1, types, &outer));
  mp_value_t *result = ir_op(&ir, MP_OP_CALL, "f32", VALUES(ir.args[0], ir.args[1]),
                             ATTRS(ir_string(&ir, MP_ATTR_CALLEE, "outer")));
  ir_return(&ir, VALUES(result));
  ir.block = inner->body;
  mp_value_t *args = inner->body->args;
  ir_return(&ir, VALUES(ir_op(&ir, MP_OP_SUBTRACT, "f32", VALUES(&args[0], &args[1]), NO_ATTRS)));
  ir.block = outer->body;
  args = outer->body->args;
  mp_value_t *first = ir_op(&ir, MP_OP_CALL, "f32", VALUES(&args[1], &args[0]),
                            ATTRS(ir_string(&ir, MP_ATTR_CALLEE, "inner")));
  mp_value_t *second = ir_op(&ir, MP_OP_CALL, "f32", VALUES(first, &args[0]),
                             ATTRS(ir_string(&ir, MP_ATTR_CALLEE, "inner")));
  ir_return(&ir, VALUES(second));
  assert_ok(mp_passes_prepare(ir.module));
  ir_check(&ir,
           "%2 = subtract(%1, %0) : tensor<f32>\n"
           "%3 = subtract(%2, %0) : tensor<f32>\n"
           "return(%3)\n");
  ir_end(&ir);
}

// Each function calls the next twice: 2^26 ops.
static void test_inline_bomb(void **state) {
  (void)state;
  enum { DEPTH = 26 };
  ir_t ir = ir_start("f32", "f32");
  const mp_type_t *scalar = ir.args[0]->type;
  char name[8] = "main", next[8];
  mp_func_t *func = ir.main;
  for (int i = 0; i < DEPTH; ++i) {
    (void)snprintf(next, sizeof(next), "f%d", i);
    ir.block = func->body;
    mp_value_t *once = ir_op(&ir, MP_OP_CALL, "f32", VALUES(func->body->args),
                             ATTRS(ir_string(&ir, MP_ATTR_CALLEE, next)));
    ir_return(&ir, VALUES(ir_op(&ir, MP_OP_CALL, "f32", VALUES(once),
                                ATTRS(ir_string(&ir, MP_ATTR_CALLEE, next)))));
    (void)snprintf(name, sizeof(name), "%s", next);
    assert_ok(mp_func_create(ir.module, mp_str(name), 1, &scalar, 1, &scalar, &func));
  }
  ir.block = func->body;
  ir_return(&ir, VALUES(ir_op(&ir, MP_OP_NEGATE, "f32", VALUES(func->body->args), NO_ATTRS)));
  assert_status(mp_pass_inline(ir.module), MP_RESOURCE_EXHAUSTED, "ops after inlining");
  ir_end(&ir);
}

static void test_inline_refusals(void **state) {
  (void)state;
  ir_t ir = ir_start("f32", "f32");
  ir_return(&ir, VALUES(ir_op(&ir, MP_OP_CALL, "f32", VALUES(ir.args[0]),
                              ATTRS(ir_string(&ir, MP_ATTR_CALLEE, "nobody")))));
  assert_status(mp_pass_inline(ir.module), MP_INVALID_ARGUMENT,
                "there is no function @nobody [func.call]");
  ir_end(&ir);

  ir = ir_start("f32", "f32");
  ir_return(&ir, VALUES(ir_op(&ir, MP_OP_CALL, "f32", VALUES(ir.args[0]),
                              ATTRS(ir_string(&ir, MP_ATTR_CALLEE, "main")))));
  assert_status(mp_pass_inline(ir.module), MP_RESOURCE_EXHAUSTED, "nest deeper than 256");
  ir_end(&ir);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_transforms),
      cmocka_unit_test(test_splat),
      cmocka_unit_test(test_fold_identities),
      cmocka_unit_test(test_fold_reshape_back),
      cmocka_unit_test(test_transposes),
      cmocka_unit_test(test_transposes_across_reshapes),
      cmocka_unit_test(test_unit_broadcasts),
      cmocka_unit_test(test_fold_equal_ops),
      cmocka_unit_test(test_loop_values),
      cmocka_unit_test(test_loop_values_early),
      cmocka_unit_test(test_loop_that_changes_nothing),
      cmocka_unit_test(test_dead_code),
      cmocka_unit_test(test_dead_calls),
      cmocka_unit_test(test_kernels),
      cmocka_unit_test(test_inline),
      cmocka_unit_test(test_inline_swapped),
      cmocka_unit_test(test_inline_places),
      cmocka_unit_test(test_inline_names),
      cmocka_unit_test(test_inline_bomb),
      cmocka_unit_test(test_inline_refusals),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
