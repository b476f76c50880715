// Elementwise ops: the definitions of sim/numeric/meaning.h as instructions.
#include "sim/native/module/emit_words.h"

#define CASE(kind, name, arity, with) \
  case MP_OP_##name:                  \
    return MP_##kind##_##name;

// ---- f32 and f64 ----

// The value's number, if it is known and no NaN.
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

// The maximum or minimum if `bound` is the known number `of_bound`: then fewer comparisons are
// needed. Zeros are equal, but +0 is the larger one.
static value_t emit_op_extreme_of_bound(const emit_t *e, bool larger, value_t bound,
                                        double of_bound, value_t x) {
  if (of_bound == 0 && !signbit(of_bound) == larger) {
    const LLVMRealPredicate is_beyond = larger ? LLVMRealUGT : LLVMRealULT;
    return SELECT(LLVMBuildFCmp(e->builder, is_beyond, x, bound, ""), x, bound);
  }
  const LLVMRealPredicate is_beyond = larger ? LLVMRealOGT : LLVMRealOLT;
  return SELECT(LLVMBuildFCmp(e->builder, is_beyond, bound, x, ""), bound, x);
}

static value_t emit_op_extreme(const emit_t *e, bool larger, value_t x, value_t y) {
  LLVMTypeRef type = LLVMTypeOf(x);
  double number = 0;
  if (emit_op_is_number(x, &number)) return emit_op_extreme_of_bound(e, larger, x, number, y);
  if (emit_op_is_number(y, &number)) return emit_op_extreme_of_bound(e, larger, y, number, x);
  return larger ? MP_LARGER : MP_SMALLER;
}

#define LARGER(a, b)  emit_op_extreme(e, true, a, b)
#define SMALLER(a, b) emit_op_extreme(e, false, a, b)

static value_t emit_op_real(const emit_t *e, mp_opcode_t code, value_t x, value_t y, value_t z) {
  LLVMTypeRef type = LLVMTypeOf(x);
  switch (code) {
    MP_REAL_OPS(CASE, )
    CASE(REAL, IS_FINITE, 1, )
    default:
      return emit_math(e, code, x, y);
  }
}

// ---- integers ----

static value_t emit_op_int(const emit_t *e, const mp_native_op_t *op, value_t x, value_t y,
                           value_t z) {
  LLVMTypeRef type = LLVMTypeOf(x);
  const bool is_signed = emit_is_signed(op->from);
  const unsigned WIDTH = 8 * emit_bytes(op->from);
  if (op->is_rotation) return emit_call3(e, "llvm.fshl", x, x, y);
  switch (op->code) {
    MP_INT_OPS(CASE, )
    default:
      break;
  }
  if (is_signed) {
    switch (op->code) {
      MP_SIGNED_OPS(CASE, )
      default:
        return NULL;
    }
  }
  switch (op->code) {
    MP_UNSIGNED_OPS(CASE, )
    default:
      return NULL;
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
    return LLVMBuildFCmp(e->builder, of_reals[op->direction], in[0], in[1], "");
  }
  const LLVMIntPredicate how =
      emit_is_signed(op->from) ? of_signed[op->direction] : of_unsigned[op->direction];
  return LLVMBuildICmp(e->builder, how, in[0], in[1], "");
}

// ---- conversion ----

// f32 to bf16, to nearest even; NaN becomes quiet.
static value_t emit_op_to_bf16(const emit_t *e, value_t x) {
  LLVMTypeRef type = emit_int_type(e, 32);
  const value_t bits = I_OF(x), odd = AND(SHR(bits, INT(16)), INT(1));
  const value_t rounded = ADD(bits, ADD(odd, INT(0x7fff))), quiet = OR(bits, INT(0x400000));
  const value_t kept = SHR(SELECT(IS_NAN(x), quiet, rounded), INT(16));
  return LLVMBuildTrunc(e->builder, kept, emit_int_type(e, 16), "");
}

static value_t emit_op_from_bf16(const emit_t *e, value_t x) {
  LLVMTypeRef type = emit_int_type(e, 32);
  const value_t bits = SHL(LLVMBuildZExt(e->builder, x, type, ""), INT(16));
  return LLVMBuildBitCast(e->builder, bits, emit_value_type(e, MP_DTYPE_F32), "");
}

// Processors have instructions for f16; they round like the interpreters' loops, but make all NaNs
// quiet.
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
    return LLVMBuildFCmp(e->builder, LLVMRealUNE, x, emit_real(LLVMTypeOf(x), 0), "");
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
    return LLVMBuildIsNotNull(e->builder, x, "");
  }
  return LLVMBuildIntCast2(e->builder, x, type, emit_is_signed(op->from), "");
}

static value_t emit_op_convert(const emit_t *e, const mp_native_op_t *op, value_t x) {
  if (op->from == op->to) return x;
  if (op->from == MP_DTYPE_BF16) return emit_op_from_bf16(e, x);
  if (op->from == MP_DTYPE_F16) return emit_op_from_f16(e, x);
  return emit_is_float(op->from) ? emit_op_from_real(e, op, x) : emit_op_from_int(e, op, x);
}

bool emit_uses_known(const mp_native_op_t *op) {
  const bool is_bound = op->code == MP_OP_MAXIMUM || op->code == MP_OP_MINIMUM ||
                        op->code == MP_OP_CLAMP || op->code == MP_OP_COMPARE;
  // Most checks of a power are about its exponent.
  return is_bound || op->code == MP_OP_POWER || !emit_is_float(op->from);
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
      return SELECT(in[0], in[1], in[2]);
    default:
      return emit_is_float(op->from) ? emit_op_real(e, op->code, in[0], in[1], in[2])
                                     : emit_op_int(e, op, in[0], in[1], in[2]);
  }
}
