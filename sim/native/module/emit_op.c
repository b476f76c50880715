// Elementwise ops. What each computes, to the bit, is what the loops of sim/kernels/elementwise do,
// where the reasons stand as well.
#include <math.h>

#include "sim/native/module/emit.h"

typedef LLVMValueRef value_t;

static value_t emit_op_select(const emit_t *e, value_t which, value_t yes, value_t no) {
  return LLVMBuildSelect(e->builder, which, yes, no, "");
}

static value_t emit_op_compare_ints(const emit_t *e, LLVMIntPredicate how, value_t x, value_t y) {
  return LLVMBuildICmp(e->builder, how, x, y, "");
}

static value_t emit_op_compare_reals(const emit_t *e, LLVMRealPredicate how, value_t x, value_t y) {
  return LLVMBuildFCmp(e->builder, how, x, y, "");
}

static value_t emit_op_call(const emit_t *e, const char *name, value_t x) {
  return emit_intrinsic(e, name, LLVMTypeOf(x), NULL, &x, 1);
}

static value_t emit_op_call2(const emit_t *e, const char *name, value_t x, value_t y) {
  value_t arguments[] = {x, y};
  return emit_intrinsic(e, name, LLVMTypeOf(x), NULL, arguments, 2);
}

// ---- f32 and f64 ----

static value_t emit_op_bits(const emit_t *e, mp_dtype_t dtype, value_t x) {
  return LLVMBuildBitCast(e->builder, x, emit_int_type(e, 8 * emit_bytes(dtype)), "");
}

// The larger or smaller one; NaN if x is NaN, or y; of zeros the right one.
static value_t emit_op_extreme_of_two(const emit_t *e, mp_dtype_t dtype, bool larger, value_t x,
                                      value_t y) {
  LLVMBuilderRef b = e->builder;
  const value_t beyond = emit_op_compare_reals(e, larger ? LLVMRealOGT : LLVMRealOLT, x, y);
  const value_t takes_x = LLVMBuildOr(b, beyond, emit_op_compare_reals(e, LLVMRealUNO, x, x), "");
  const value_t one = emit_op_select(e, takes_x, x, y);
  const value_t x_bits = emit_op_bits(e, dtype, x), y_bits = emit_op_bits(e, dtype, y);
  const value_t both =
      larger ? LLVMBuildAnd(b, x_bits, y_bits, "") : LLVMBuildOr(b, x_bits, y_bits, "");
  const value_t equal = emit_op_compare_reals(e, LLVMRealOEQ, x, y);
  return emit_op_select(e, equal, LLVMBuildBitCast(b, both, LLVMTypeOf(x), ""), one);
}

// The number that a value is, if it is a known one and no NaN.
static bool emit_op_is_number(value_t x, double *out_number) {
  if (!LLVMIsConstant(x)) return false;
  LLVMTypeRef type = LLVMTypeOf(x);
  const value_t one =
      LLVMGetTypeKind(type) == LLVMVectorTypeKind ? LLVMGetAggregateElement(x, 0) : x;
  LLVMBool lost = 0;
  if (one == NULL || LLVMIsAConstantFP(one) == NULL) return false;
  *out_number = LLVMConstRealGetDouble(one, &lost);
  return *out_number == *out_number;
}

// The same where `bound` is the number `of_bound`. Zeros are equal, but +0 is the larger one.
static value_t emit_op_extreme_of_bound(const emit_t *e, bool larger, value_t bound,
                                        double of_bound, value_t x) {
  if (of_bound == 0 && !signbit(of_bound) == larger) {
    const LLVMRealPredicate is_beyond = larger ? LLVMRealUGT : LLVMRealULT;
    return emit_op_select(e, emit_op_compare_reals(e, is_beyond, x, bound), x, bound);
  }
  const LLVMRealPredicate is_beyond = larger ? LLVMRealOGT : LLVMRealOLT;
  return emit_op_select(e, emit_op_compare_reals(e, is_beyond, bound, x), bound, x);
}

static value_t emit_op_extreme(const emit_t *e, mp_dtype_t dtype, bool larger, value_t x,
                               value_t y) {
  double number = 0;
  if (emit_op_is_number(x, &number)) return emit_op_extreme_of_bound(e, larger, x, number, y);
  if (emit_op_is_number(y, &number)) return emit_op_extreme_of_bound(e, larger, y, number, x);
  return emit_op_extreme_of_two(e, dtype, larger, x, y);
}

static value_t emit_op_sign(const emit_t *e, value_t x) {
  LLVMTypeRef type = LLVMTypeOf(x);
  const value_t unit = emit_op_call2(e, "llvm.copysign", emit_real(type, 1), x);
  const value_t is_itself = emit_op_compare_reals(e, LLVMRealUEQ, x, emit_real(type, 0));
  return emit_op_select(e, is_itself, x, unit);
}

// To nearest, halves away from zero.
static value_t emit_op_round_away(const emit_t *e, value_t x) {
  LLVMTypeRef type = LLVMTypeOf(x);
  const value_t whole = emit_op_call(e, "llvm.trunc", x);
  const value_t rest = emit_op_call(e, "llvm.fabs", LLVMBuildFSub(e->builder, x, whole, ""));
  const value_t unit = emit_op_call2(e, "llvm.copysign", emit_real(type, 1), x);
  const value_t up = LLVMBuildFAdd(e->builder, whole, unit, "");
  const value_t is_up = emit_op_compare_reals(e, LLVMRealOGE, rest, emit_real(type, 0.5));
  return emit_op_select(e, is_up, up, emit_op_call2(e, "llvm.copysign", whole, x));
}

static value_t emit_op_unary_real(const emit_t *e, mp_opcode_t code, value_t x) {
  LLVMTypeRef type = LLVMTypeOf(x);
  switch (code) {
    case MP_OP_ABS:
      return emit_op_call(e, "llvm.fabs", x);
    case MP_OP_CEIL:
      return emit_op_call(e, "llvm.ceil", x);
    case MP_OP_FLOOR:
      return emit_op_call(e, "llvm.floor", x);
    case MP_OP_IS_FINITE:
      return emit_op_compare_reals(e, LLVMRealOLT, emit_op_call(e, "llvm.fabs", x),
                                   emit_real(type, INFINITY));
    case MP_OP_NEGATE:
      return LLVMBuildFNeg(e->builder, x, "");
    case MP_OP_ROUND_NEAREST_AFZ:
      return emit_op_round_away(e, x);
    case MP_OP_ROUND_NEAREST_EVEN:
      return emit_op_call(e, "llvm.roundeven", x);
    case MP_OP_RSQRT:
      return LLVMBuildFDiv(e->builder, emit_real(type, 1), emit_op_call(e, "llvm.sqrt", x), "");
    case MP_OP_SIGN:
      return emit_op_sign(e, x);
    case MP_OP_SQRT:
      return emit_op_call(e, "llvm.sqrt", x);
    default:
      return emit_math(e, code, x);
  }
}

static value_t emit_op_real(const emit_t *e, const mp_native_op_t *op, const value_t *in) {
  const value_t x = in[0], y = in[1];
  switch (op->code) {
    case MP_OP_ADD:
      return LLVMBuildFAdd(e->builder, x, y, "");
    case MP_OP_SUBTRACT:
      return LLVMBuildFSub(e->builder, x, y, "");
    case MP_OP_MULTIPLY:
      return LLVMBuildFMul(e->builder, x, y, "");
    case MP_OP_DIVIDE:
      return LLVMBuildFDiv(e->builder, x, y, "");
    case MP_OP_MAXIMUM:
      return emit_op_extreme(e, op->from, true, x, y);
    case MP_OP_MINIMUM:
      return emit_op_extreme(e, op->from, false, x, y);
    case MP_OP_CLAMP:
      return emit_op_extreme(e, op->from, false, emit_op_extreme(e, op->from, true, x, y), in[2]);
    default:
      return emit_op_unary_real(e, op->code, x);
  }
}

// ---- integers ----

static value_t emit_op_extreme_int(const emit_t *e, bool is_signed, bool larger, value_t x,
                                   value_t y) {
  const char *name =
      larger ? (is_signed ? "llvm.smax" : "llvm.umax") : (is_signed ? "llvm.smin" : "llvm.umin");
  return emit_op_call2(e, name, x, y);
}

// Shifts by the width or more give 0, or the sign.
static value_t emit_op_shift(const emit_t *e, const mp_native_op_t *op, value_t x, value_t y) {
  LLVMTypeRef type = LLVMTypeOf(x);
  const unsigned bits = 8 * emit_bytes(op->from);
  const value_t last = emit_int(type, bits - 1);
  if (op->code == MP_OP_SHIFT_RIGHT_ARITHMETIC) {
    return LLVMBuildAShr(e->builder, x, emit_op_call2(e, "llvm.umin", y, last), "");
  }
  if (op->is_rotation) {
    value_t arguments[] = {x, x, y};
    return emit_intrinsic(e, "llvm.fshl", type, NULL, arguments, 3);
  }
  const value_t fits = emit_op_compare_ints(e, LLVMIntULT, y, emit_int(type, bits));
  const value_t by = LLVMBuildAnd(e->builder, y, last, "");
  const value_t shifted = op->code == MP_OP_SHIFT_LEFT ? LLVMBuildShl(e->builder, x, by, "")
                                                       : LLVMBuildLShr(e->builder, x, by, "");
  return emit_op_select(e, fits, shifted, LLVMConstNull(type));
}

// x / 0 is -1, x rem 0 is x, and what would overflow wraps.
static value_t emit_op_divide_int(const emit_t *e, const mp_native_op_t *op, value_t x, value_t y) {
  LLVMBuilderRef b = e->builder;
  LLVMTypeRef type = LLVMTypeOf(x);
  const bool is_signed = emit_is_signed(op->from), divides = op->code == MP_OP_DIVIDE;
  const value_t zero = LLVMConstNull(type), minus_one = LLVMConstAllOnes(type);
  const value_t by_zero = emit_op_compare_ints(e, LLVMIntEQ, y, zero);
  value_t is_odd = by_zero, by_minus_one = NULL;
  if (is_signed) {
    by_minus_one = emit_op_compare_ints(e, LLVMIntEQ, y, minus_one);
    is_odd = LLVMBuildOr(b, by_zero, by_minus_one, "");
  }
  const value_t safe = emit_op_select(e, is_odd, emit_int(type, 1), y);
  value_t result = NULL;
  if (is_signed) {
    result = divides ? LLVMBuildSDiv(b, x, safe, "") : LLVMBuildSRem(b, x, safe, "");
    result = emit_op_select(e, by_minus_one, divides ? LLVMBuildNeg(b, x, "") : zero, result);
  } else {
    result = divides ? LLVMBuildUDiv(b, x, safe, "") : LLVMBuildURem(b, x, safe, "");
  }
  return emit_op_select(e, by_zero, divides ? minus_one : x, result);
}

static value_t emit_op_unary_int(const emit_t *e, const mp_native_op_t *op, value_t x) {
  LLVMBuilderRef b = e->builder;
  LLVMTypeRef type = LLVMTypeOf(x);
  const value_t zero = LLVMConstNull(type);
  const bool is_signed = emit_is_signed(op->from);
  switch (op->code) {
    case MP_OP_ABS:
      if (!is_signed) return x;
      return emit_op_select(e, emit_op_compare_ints(e, LLVMIntSLT, x, zero), LLVMBuildNeg(b, x, ""),
                            x);
    case MP_OP_NEGATE:
      return LLVMBuildNeg(b, x, "");
    case MP_OP_NOT:
      return LLVMBuildNot(b, x, "");
    case MP_OP_POPCNT:
      return emit_op_call(e, "llvm.ctpop", x);
    case MP_OP_SIGN: {
      value_t unit = emit_int(type, 1);
      unit = emit_op_select(e, emit_op_compare_ints(e, LLVMIntEQ, x, zero), zero, unit);
      if (!is_signed) return unit;
      return emit_op_select(e, emit_op_compare_ints(e, LLVMIntSLT, x, zero), LLVMConstAllOnes(type),
                            unit);
    }
    default:
      return NULL;
  }
}

static value_t emit_op_int(const emit_t *e, const mp_native_op_t *op, const value_t *in) {
  LLVMBuilderRef b = e->builder;
  const value_t x = in[0], y = in[1];
  const bool is_signed = emit_is_signed(op->from);
  switch (op->code) {
    case MP_OP_ADD:
      return LLVMBuildAdd(b, x, y, "");
    case MP_OP_SUBTRACT:
      return LLVMBuildSub(b, x, y, "");
    case MP_OP_MULTIPLY:
      return LLVMBuildMul(b, x, y, "");
    case MP_OP_AND:
      return LLVMBuildAnd(b, x, y, "");
    case MP_OP_OR:
      return LLVMBuildOr(b, x, y, "");
    case MP_OP_XOR:
      return LLVMBuildXor(b, x, y, "");
    case MP_OP_MAXIMUM:
      return emit_op_extreme_int(e, is_signed, true, x, y);
    case MP_OP_MINIMUM:
      return emit_op_extreme_int(e, is_signed, false, x, y);
    case MP_OP_CLAMP:
      return emit_op_extreme_int(e, is_signed, false, emit_op_extreme_int(e, is_signed, true, x, y),
                                 in[2]);
    case MP_OP_DIVIDE:
    case MP_OP_REMAINDER:
      return emit_op_divide_int(e, op, x, y);
    case MP_OP_SHIFT_LEFT:
    case MP_OP_SHIFT_RIGHT_ARITHMETIC:
    case MP_OP_SHIFT_RIGHT_LOGICAL:
      return emit_op_shift(e, op, x, y);
    default:
      return emit_op_unary_int(e, op, x);
  }
}

// ---- comparison ----

static value_t emit_op_compare(const emit_t *e, const mp_native_op_t *op, const value_t *in) {
  static const LLVMRealPredicate of_reals[] = {
      [MP_CMP_EQ] = LLVMRealOEQ, [MP_CMP_NE] = LLVMRealUNE, [MP_CMP_GE] = LLVMRealOGE,
      [MP_CMP_GT] = LLVMRealOGT, [MP_CMP_LE] = LLVMRealOLE, [MP_CMP_LT] = LLVMRealOLT};
  static const LLVMIntPredicate of_signed[] = {
      [MP_CMP_EQ] = LLVMIntEQ,  [MP_CMP_NE] = LLVMIntNE,  [MP_CMP_GE] = LLVMIntSGE,
      [MP_CMP_GT] = LLVMIntSGT, [MP_CMP_LE] = LLVMIntSLE, [MP_CMP_LT] = LLVMIntSLT};
  static const LLVMIntPredicate of_unsigned[] = {
      [MP_CMP_EQ] = LLVMIntEQ,  [MP_CMP_NE] = LLVMIntNE,  [MP_CMP_GE] = LLVMIntUGE,
      [MP_CMP_GT] = LLVMIntUGT, [MP_CMP_LE] = LLVMIntULE, [MP_CMP_LT] = LLVMIntULT};
  if (emit_is_float(op->from)) {
    return emit_op_compare_reals(e, of_reals[op->direction], in[0], in[1]);
  }
  const LLVMIntPredicate how =
      emit_is_signed(op->from) ? of_signed[op->direction] : of_unsigned[op->direction];
  return emit_op_compare_ints(e, how, in[0], in[1]);
}

// ---- conversion ----

// f32 to bf16, to nearest even; NaN becomes quiet.
static value_t emit_op_to_bf16(const emit_t *e, value_t x) {
  LLVMBuilderRef b = e->builder;
  LLVMTypeRef ints = emit_int_type(e, 32);
  const value_t bits = LLVMBuildBitCast(b, x, ints, ""), half = emit_int(ints, 16);
  const value_t odd = LLVMBuildAnd(b, LLVMBuildLShr(b, bits, half, ""), emit_int(ints, 1), "");
  const value_t more = LLVMBuildAdd(b, odd, emit_int(ints, 0x7fff), "");
  const value_t rounded = LLVMBuildAdd(b, bits, more, "");
  const value_t quiet = LLVMBuildOr(b, bits, emit_int(ints, 0x400000), "");
  const value_t is_nan = emit_op_compare_reals(e, LLVMRealUNO, x, x);
  const value_t kept = emit_op_select(e, is_nan, quiet, rounded);
  return LLVMBuildTrunc(b, LLVMBuildLShr(b, kept, half, ""), emit_int_type(e, 16), "");
}

static value_t emit_op_from_bf16(const emit_t *e, value_t x) {
  LLVMTypeRef ints = emit_int_type(e, 32);
  const value_t wide = LLVMBuildZExt(e->builder, x, ints, "");
  const value_t bits = LLVMBuildShl(e->builder, wide, emit_int(ints, 16), "");
  return LLVMBuildBitCast(e->builder, bits, emit_value_type(e, MP_DTYPE_F32), "");
}

// Machines have instructions for f16; they round as our loops do, but make all NaNs quiet.
static LLVMTypeRef emit_op_half(const emit_t *e) {
  LLVMTypeRef half = LLVMHalfTypeInContext(e->context);
  return e->lanes == 1 ? half : LLVMVectorType(half, e->lanes);
}

static value_t emit_op_to_f16(const emit_t *e, value_t x) {
  const value_t rounded = LLVMBuildFPTrunc(e->builder, x, emit_op_half(e), "");
  return LLVMBuildBitCast(e->builder, rounded, emit_int_type(e, 16), "");
}

static value_t emit_op_from_f16(const emit_t *e, value_t x) {
  const value_t narrow = LLVMBuildBitCast(e->builder, x, emit_op_half(e), "");
  return LLVMBuildFPExt(e->builder, narrow, emit_value_type(e, MP_DTYPE_F32), "");
}

static value_t emit_op_from_real(const emit_t *e, const mp_native_op_t *op, value_t x) {
  LLVMTypeRef type = emit_value_type(e, op->to);
  if (op->to == MP_DTYPE_BF16) return emit_op_to_bf16(e, x);
  if (op->to == MP_DTYPE_F16) return emit_op_to_f16(e, x);
  if (op->to == MP_DTYPE_BOOL) {
    return emit_op_compare_reals(e, LLVMRealUNE, x, emit_real(LLVMTypeOf(x), 0));
  }
  if (op->to == MP_DTYPE_F32) return LLVMBuildFPTrunc(e->builder, x, type, "");
  if (op->to == MP_DTYPE_F64) return LLVMBuildFPExt(e->builder, x, type, "");
  const char *name = emit_is_signed(op->to) ? "llvm.fptosi.sat" : "llvm.fptoui.sat";
  return emit_intrinsic(e, name, type, LLVMTypeOf(x), &x, 1);
}

static value_t emit_op_from_int(const emit_t *e, const mp_native_op_t *op, value_t x) {
  LLVMTypeRef type = emit_value_type(e, op->to);
  if (emit_is_float(op->to)) {
    return emit_is_signed(op->from) ? LLVMBuildSIToFP(e->builder, x, type, "")
                                    : LLVMBuildUIToFP(e->builder, x, type, "");
  }
  if (op->to == MP_DTYPE_BOOL) {
    return emit_op_compare_ints(e, LLVMIntNE, x, LLVMConstNull(LLVMTypeOf(x)));
  }
  return LLVMBuildIntCast2(e->builder, x, type, emit_is_signed(op->from), "");
}

static value_t emit_op_convert(const emit_t *e, const mp_native_op_t *op, value_t x) {
  if (op->from == op->to) return x;
  if (op->from == MP_DTYPE_BF16) return emit_op_from_bf16(e, x);
  if (op->from == MP_DTYPE_F16) return emit_op_from_f16(e, x);
  return emit_is_float(op->from) ? emit_op_from_real(e, op, x) : emit_op_from_int(e, op, x);
}

value_t emit_op(const emit_t *e, const mp_native_op_t *op, const value_t *in) {
  switch (op->code) {
    case MP_OP_COMPARE:
      return emit_op_compare(e, op, in);
    case MP_OP_BITCAST_CONVERT:
      return LLVMBuildBitCast(e->builder, in[0], emit_value_type(e, op->to), "");
    case MP_OP_CONVERT:
      return emit_op_convert(e, op, in[0]);
    case MP_OP_SELECT:
      return emit_op_select(e, in[0], in[1], in[2]);
    default:
      return emit_is_float(op->from) ? emit_op_real(e, op, in) : emit_op_int(e, op, in);
  }
}
