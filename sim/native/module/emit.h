// Shared by the files of the module: LLVM instructions for one function, which works on vectors of
// `lanes` elements, or on single ones if `lanes` is 1.
#ifndef MINIPOD_SIM_NATIVE_MODULE_EMIT_H_
#define MINIPOD_SIM_NATIVE_MODULE_EMIT_H_

#include <llvm-c/Core.h>

#include "sim/native/native.h"

typedef struct {
  LLVMContextRef context;
  LLVMModuleRef module;
  LLVMBuilderRef builder;
  LLVMValueRef function;
  unsigned lanes;
} emit_t;

// ---- emit_type.c: types and constants ----

// The type of a value: i1 for booleans; bf16 and f16 are their 16 bits.
LLVMTypeRef emit_value_type(const emit_t *e, mp_dtype_t dtype);
// The same in memory form, in which booleans are bytes.
LLVMTypeRef emit_memory_type(const emit_t *e, mp_dtype_t dtype);
unsigned emit_bytes(mp_dtype_t dtype);  // of one element

bool emit_is_float(mp_dtype_t dtype);   // f32, f64
bool emit_is_signed(mp_dtype_t dtype);  // an integer

LLVMTypeRef emit_int_type(const emit_t *e, unsigned bits);  // integers of `bits` bits, by lanes
LLVMValueRef emit_int(LLVMTypeRef type, uint64_t value);    // of a type of integers, by lanes too
LLVMValueRef emit_real(LLVMTypeRef type, double value);

// `one` in all lanes of a type.
LLVMValueRef emit_splat(const emit_t *e, LLVMTypeRef type, LLVMValueRef one);

// A constant with these bits in every element; the low bits count. NULL for a NaN, because
// emit_real would not keep all of its bits.
LLVMValueRef emit_known(const emit_t *e, mp_dtype_t dtype, uint64_t bits);

// A value of memory type as one of value type, and back.
LLVMValueRef emit_from_memory(const emit_t *e, mp_dtype_t dtype, LLVMValueRef value);
LLVMValueRef emit_to_memory(const emit_t *e, mp_dtype_t dtype, LLVMValueRef value);

// Calls an intrinsic that is overloaded by `type`, and by `second` if that is not NULL.
LLVMValueRef emit_intrinsic(const emit_t *e, const char *name, LLVMTypeRef type, LLVMTypeRef second,
                            LLVMValueRef *arguments, unsigned count);

// Keeps LLVM from swapping the operands of a sum or product to save a load: if both are NaN, the
// result must be the first.
LLVMValueRef emit_fence(const emit_t *e, mp_dtype_t dtype, LLVMValueRef value);

// ---- emit_op.c ----

// The op's result. mp_native_knows is true for the op.
LLVMValueRef emit_op(const emit_t *e, const mp_native_op_t *op, const LLVMValueRef *in);

// Whether the op should use known elements as constants. LLVM simplifies arithmetic with constants:
// x * 1 becomes x, which has other bits if x is a signalling NaN. So most ops on f32 and f64 treat
// known elements like others.
bool emit_uses_known(const mp_native_op_t *op);

// ---- emit_math.c ----

// Whether the op is a mathematical function that is computed in f32.
bool emit_is_function(const mp_native_op_t *op);
LLVMValueRef emit_math(const emit_t *e, mp_opcode_t code, LLVMValueRef x, LLVMValueRef y);

// ---- emit_map.c, emit_loop.c: bodies of functions of the types in native.h ----

// False if memory is short.
bool emit_map(emit_t *e, const mp_native_map_t *map);
bool emit_loop(emit_t *e, const mp_native_loop_t *loop);

#endif  // MINIPOD_SIM_NATIVE_MODULE_EMIT_H_
