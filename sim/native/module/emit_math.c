// Mathematical functions of f32: the loops' functions, whose words build instructions here.
#include "sim/native/module/emit_words.h"

#define FUNCTION(type, name, ...) static type name(const emit_t *e, __VA_ARGS__)
#define CALL(name, ...)           name(e, __VA_ARGS__)
#define REAL                      value_t
#define BITS                      value_t
#define IN_TYPE(name)                                     \
  LLVMTypeRef type = emit_value_type(e, MP_DTYPE_##name); \
  (void)type
#define INUM(n)     emit_int(emit_int_type(e, 32), n)
#define ISUB(a, b)  LLVMBuildSub(e->builder, a, b, "")
#define INOT        NOT
#define ISHL(a, n)  emit_shift(e, LLVMShl, a, n)
#define ISHR(a, n)  emit_shift(e, LLVMLShr, a, n)
#define ISAR(a, n)  emit_shift(e, LLVMAShr, a, n)
#define ILESS(a, b) LLVMBuildICmp(e->builder, LLVMIntSLT, a, b, "")
#define IMIN(a, b)  emit_call2(e, "llvm.umin", a, b)
#define REAL_OF(a)  LLVMBuildSIToFP(e->builder, a, type, "")
#include "sim/numeric/meaning_f32.h"

#define WIDE        value_t
#define LBITS       value_t
#define WIDEN(a)    LLVMBuildFPExt(e->builder, a, emit_value_type(e, MP_DTYPE_F64), "")
#define NARROW(a)   LLVMBuildFPTrunc(e->builder, a, emit_value_type(e, MP_DTYPE_F32), "")
#define WFMA        FMA
#define LNUM(n)     emit_int(emit_int_type(e, 64), n)
#define LADD(a, b)  LLVMBuildAdd(e->builder, a, b, "")
#define LSAR        ISAR
#define LREAL_OF(a) REAL_OF(a)
#include "sim/numeric/meaning_wide.h"

bool emit_is_function(const mp_native_op_t *op) {
#define OR_IS(name, function) || op->code == MP_OP_##name
  return op->from == MP_DTYPE_F32 && (false MP_REAL_FUNCTIONS(OR_IS));
#undef OR_IS
}

value_t emit_math(const emit_t *e, mp_opcode_t code, value_t x, value_t y) {
  switch (code) {
#define CASE(op, function) \
  case MP_OP_##op:         \
    return mp_##function##_f32(e, x);
    MP_REAL_FUNCTIONS(CASE)
#undef CASE
#define CASE(op, function) \
  case MP_OP_##op:         \
    return mp_##function##_f32(e, x, y);
    MP_WIDE_FUNCTIONS(CASE)
#undef CASE
    default:
      return NULL;
  }
}
