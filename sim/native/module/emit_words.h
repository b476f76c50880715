// The words of sim/numeric/meaning.h as calls that build instructions, for integers, f32 and f64 by
// the types of their operands.
//
// Words use these names of their context: `e`, the function; `type`, that of constants; `is_signed`
// and WIDTH, the integers' sign and bits. No word names an operand twice, because each mention
// would build it again.
#ifndef MINIPOD_SIM_NATIVE_MODULE_EMIT_WORDS_H_
#define MINIPOD_SIM_NATIVE_MODULE_EMIT_WORDS_H_

#include <math.h>

#include "sim/native/module/emit.h"
#include "sim/numeric/meaning.h"

typedef LLVMValueRef value_t;

// ---- helpers ----

static inline bool emit_is_real(value_t x) {
  LLVMTypeRef type = LLVMTypeOf(x);
  if (LLVMGetTypeKind(type) == LLVMVectorTypeKind) type = LLVMGetElementType(type);
  return LLVMGetTypeKind(type) != LLVMIntegerTypeKind;
}

static inline value_t emit_arithmetic(const emit_t *e, LLVMOpcode of_ints, LLVMOpcode of_reals,
                                      value_t x, value_t y) {
  return LLVMBuildBinOp(e->builder, emit_is_real(x) ? of_reals : of_ints, x, y, "");
}

static inline value_t emit_negative(const emit_t *e, value_t x) {
  return emit_is_real(x) ? LLVMBuildFNeg(e->builder, x, "") : LLVMBuildNeg(e->builder, x, "");
}

static inline value_t emit_compare(const emit_t *e, LLVMIntPredicate of_ints,
                                   LLVMRealPredicate of_reals, value_t x, value_t y) {
  return emit_is_real(x) ? LLVMBuildFCmp(e->builder, of_reals, x, y, "")
                         : LLVMBuildICmp(e->builder, of_ints, x, y, "");
}

static inline value_t emit_call(const emit_t *e, const char *name, value_t x) {
  return emit_intrinsic(e, name, LLVMTypeOf(x), NULL, &x, 1);
}

static inline value_t emit_call2(const emit_t *e, const char *name, value_t x, value_t y) {
  value_t arguments[] = {x, y};
  return emit_intrinsic(e, name, LLVMTypeOf(x), NULL, arguments, 2);
}

static inline value_t emit_call3(const emit_t *e, const char *name, value_t x, value_t y,
                                 value_t z) {
  value_t arguments[] = {x, y, z};
  return emit_intrinsic(e, name, LLVMTypeOf(x), NULL, arguments, 3);
}

// The number of leading zero bits, which is all bits for 0.
static inline value_t emit_leading(const emit_t *e, value_t x) {
  return emit_call2(e, "llvm.ctlz", x, LLVMConstNull(LLVMInt1TypeInContext(e->context)));
}

static inline value_t emit_is_nan(const emit_t *e, value_t x) {
  return LLVMBuildFCmp(e->builder, LLVMRealUNO, x, x, "");
}

// The bits of a number as an integer, and back.
static inline value_t emit_int_of(const emit_t *e, value_t x) {
  LLVMTypeRef type = LLVMTypeOf(x);
  if (LLVMGetTypeKind(type) == LLVMVectorTypeKind) type = LLVMGetElementType(type);
  const unsigned bits = LLVMGetTypeKind(type) == LLVMFloatTypeKind ? 32 : 64;
  return LLVMBuildBitCast(e->builder, x, emit_int_type(e, bits), "");
}

static inline value_t emit_shift(const emit_t *e, LLVMOpcode how, value_t x, unsigned by) {
  return LLVMBuildBinOp(e->builder, how, x, emit_int(LLVMTypeOf(x), by), "");
}

// ---- words ----

#define INT(n)    emit_int(type, (uint64_t)(n))
#define NUM(n)    emit_real(type, (double)(n))
#define ADD(a, b) emit_arithmetic(e, LLVMAdd, LLVMFAdd, a, b)
#define SUB(a, b) emit_arithmetic(e, LLVMSub, LLVMFSub, a, b)
#define MUL(a, b) emit_arithmetic(e, LLVMMul, LLVMFMul, a, b)
#define NEG(a)    emit_negative(e, a)

#define SELECT(c, a, b) LLVMBuildSelect(e->builder, c, a, b, "")
#define CHOOSE          SELECT
#define FLAG(c)         LLVMBuildZExt(e->builder, c, type, "")
#define EITHER(c, d)    LLVMBuildOr(e->builder, c, d, "")
#define EQUAL(a, b)     emit_compare(e, LLVMIntEQ, LLVMRealOEQ, a, b)
#define LESS(a, b)      emit_compare(e, LLVMIntSLT, LLVMRealOLT, a, b)
#define GREATER(a, b)   emit_compare(e, LLVMIntSGT, LLVMRealOGT, a, b)
#define AT_LEAST(a, b)  emit_compare(e, LLVMIntSGE, LLVMRealOGE, a, b)
#define BELOW(a, b)     LLVMBuildICmp(e->builder, LLVMIntULT, a, b, "")

#define AND(a, b)      LLVMBuildAnd(e->builder, a, b, "")
#define OR(a, b)       LLVMBuildOr(e->builder, a, b, "")
#define XOR(a, b)      LLVMBuildXor(e->builder, a, b, "")
#define NOT(a)         LLVMBuildNot(e->builder, a, "")
#define SHL(a, b)      LLVMBuildShl(e->builder, a, b, "")
#define SHR(a, b)      LLVMBuildLShr(e->builder, a, b, "")
#define SAR(a, b)      LLVMBuildAShr(e->builder, a, b, "")
#define MAX(a, b)      emit_call2(e, is_signed ? "llvm.smax" : "llvm.umax", a, b)
#define MIN(a, b)      emit_call2(e, is_signed ? "llvm.smin" : "llvm.umin", a, b)
#define QUOTIENT(a, b) LLVMBuildBinOp(e->builder, is_signed ? LLVMSDiv : LLVMUDiv, a, b, "")
#define REST(a, b)     LLVMBuildBinOp(e->builder, is_signed ? LLVMSRem : LLVMURem, a, b, "")
#define ONES(a)        emit_call(e, "llvm.ctpop", a)
#define LEADING(a)     emit_leading(e, a)

#define DIV(a, b)      LLVMBuildFDiv(e->builder, a, b, "")
#define FMA(a, b, c)   emit_call3(e, "llvm.fma", a, b, c)
#define SQRT(a)        emit_call(e, "llvm.sqrt", a)
#define ABS(a)         emit_call(e, "llvm.fabs", a)
#define CEIL(a)        emit_call(e, "llvm.ceil", a)
#define FLOOR(a)       emit_call(e, "llvm.floor", a)
#define TRUNC(a)       emit_call(e, "llvm.trunc", a)
#define ROUND_EVEN(a)  emit_call(e, "llvm.roundeven", a)
#define COPYSIGN(a, b) emit_call2(e, "llvm.copysign", a, b)
#define IS_NAN(a)      emit_is_nan(e, a)
#define I_OF(a)        emit_int_of(e, a)
#define OF_I(a)        LLVMBuildBitCast(e->builder, a, type, "")
#define IAND           AND
#define IOR            OR

#endif  // MINIPOD_SIM_NATIVE_MODULE_EMIT_WORDS_H_
