// Types, constants and intrinsics.
#include <string.h>

#include "sim/native/module/emit.h"

typedef struct {
  mp_dtype_class_t class;
  unsigned bits, bytes;
} kind_t;

static const kind_t g_kinds[MP_DTYPE_COUNT] = {
#define ROW(name, text, class, bits, bytes, ...) \
  [MP_DTYPE_##name] = {MP_CLASS_##class, bits, bytes},
    MP_DTYPES(ROW)
#undef ROW
};

bool emit_is_float(mp_dtype_t dtype) {
  return dtype == MP_DTYPE_F32 || dtype == MP_DTYPE_F64;
}

bool emit_is_signed(mp_dtype_t dtype) {
  return g_kinds[dtype].class == MP_CLASS_SIGNED;
}

unsigned emit_bytes(mp_dtype_t dtype) {
  return g_kinds[dtype].bytes;
}

static LLVMTypeRef emit_type_by_lanes(const emit_t *e, LLVMTypeRef element) {
  return e->lanes == 1 ? element : LLVMVectorType(element, e->lanes);
}

LLVMTypeRef emit_int_type(const emit_t *e, unsigned bits) {
  return emit_type_by_lanes(e, LLVMIntTypeInContext(e->context, bits));
}

LLVMTypeRef emit_value_type(const emit_t *e, mp_dtype_t dtype) {
  if (dtype == MP_DTYPE_F32) return emit_type_by_lanes(e, LLVMFloatTypeInContext(e->context));
  if (dtype == MP_DTYPE_F64) return emit_type_by_lanes(e, LLVMDoubleTypeInContext(e->context));
  return emit_int_type(e, g_kinds[dtype].bits);
}

LLVMTypeRef emit_memory_type(const emit_t *e, mp_dtype_t dtype) {
  return dtype == MP_DTYPE_BOOL ? emit_int_type(e, 8) : emit_value_type(e, dtype);
}

// `one` in each lane.
static LLVMValueRef emit_type_splat(LLVMTypeRef type, LLVMValueRef one) {
  LLVMValueRef all[MP_NATIVE_MAX_LANES];
  const unsigned lanes = LLVMGetVectorSize(type);
  for (unsigned i = 0; i < lanes; ++i) all[i] = one;
  return LLVMConstVector(all, lanes);
}

LLVMValueRef emit_int(LLVMTypeRef type, uint64_t value) {
  if (LLVMGetTypeKind(type) != LLVMVectorTypeKind) return LLVMConstInt(type, value, false);
  return emit_type_splat(type, LLVMConstInt(LLVMGetElementType(type), value, false));
}

LLVMValueRef emit_real(LLVMTypeRef type, double value) {
  if (LLVMGetTypeKind(type) != LLVMVectorTypeKind) return LLVMConstReal(type, value);
  return emit_type_splat(type, LLVMConstReal(LLVMGetElementType(type), value));
}

LLVMValueRef emit_splat(const emit_t *e, LLVMTypeRef type, LLVMValueRef one) {
  if (e->lanes == 1) return one;
  LLVMTypeRef ints = LLVMInt32TypeInContext(e->context);
  LLVMValueRef first =
      LLVMBuildInsertElement(e->builder, LLVMGetPoison(type), one, LLVMConstNull(ints), "");
  return LLVMBuildShuffleVector(e->builder, first, LLVMGetPoison(type),
                                LLVMConstNull(LLVMVectorType(ints, e->lanes)), "");
}

LLVMValueRef emit_known(const emit_t *e, mp_dtype_t dtype, uint64_t bits) {
  LLVMTypeRef type = emit_value_type(e, dtype);
  if (!emit_is_float(dtype)) return emit_int(type, bits);
  double number = 0;
  float single = 0;
  memcpy(&number, &bits, sizeof(number));
  memcpy(&single, &bits, sizeof(single));
  if (dtype == MP_DTYPE_F32) number = (double)single;
  return number == number ? emit_real(type, number) : NULL;
}

LLVMValueRef emit_from_memory(const emit_t *e, mp_dtype_t dtype, LLVMValueRef value) {
  if (dtype != MP_DTYPE_BOOL) return value;
  return LLVMBuildICmp(e->builder, LLVMIntNE, value, LLVMConstNull(LLVMTypeOf(value)), "");
}

LLVMValueRef emit_to_memory(const emit_t *e, mp_dtype_t dtype, LLVMValueRef value) {
  if (dtype != MP_DTYPE_BOOL) return value;
  return LLVMBuildZExt(e->builder, value, emit_memory_type(e, dtype), "");
}

LLVMValueRef emit_intrinsic(const emit_t *e, const char *name, LLVMTypeRef type, LLVMTypeRef second,
                            LLVMValueRef *arguments, unsigned count) {
  LLVMTypeRef types[2] = {type, second};
  const unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
  const size_t num_types = second == NULL ? 1 : 2;
  LLVMValueRef callee = LLVMGetIntrinsicDeclaration(e->module, id, types, num_types);
  LLVMTypeRef function = LLVMIntrinsicGetType(e->context, id, types, num_types);
  return LLVMBuildCall2(e->builder, function, callee, arguments, count, "");
}

LLVMValueRef emit_fence(const emit_t *e, mp_dtype_t dtype, LLVMValueRef value) {
  if (!emit_is_float(dtype)) return value;
  return emit_intrinsic(e, "llvm.arithmetic.fence", LLVMTypeOf(value), NULL, &value, 1);
}
