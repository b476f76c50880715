// Element types, shared by every layer.
//
// Names are MLIR's. Elements are stored one per `storage` bytes: types narrower than a byte take a
// whole byte each (value in the low bits, the upper bits zero), as in StableHLO's constants and in
// PJRT's host buffers. bool is one byte, 0 or 1. Complex is (real, imaginary).
#ifndef MINIPOD_SIM_NUMERIC_DTYPE_H_
#define MINIPOD_SIM_NUMERIC_DTYPE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/str.h"

typedef enum {
  MP_CLASS_NONE,
  MP_CLASS_BOOL,
  MP_CLASS_SIGNED,
  MP_CLASS_UNSIGNED,
  MP_CLASS_FLOAT,
  MP_CLASS_COMPLEX,
} mp_dtype_class_t;

// enum name, MLIR spelling, PJRT_Buffer_Type, class, bits, storage bytes
#define MP_DTYPES(X)                                 \
  X(INVALID, "invalid", 0, NONE, 0, 0)               \
  X(BOOL, "i1", 1, BOOL, 1, 1)                       \
  X(S2, "i2", 24, SIGNED, 2, 1)                      \
  X(S4, "i4", 21, SIGNED, 4, 1)                      \
  X(S8, "i8", 2, SIGNED, 8, 1)                       \
  X(S16, "i16", 3, SIGNED, 16, 2)                    \
  X(S32, "i32", 4, SIGNED, 32, 4)                    \
  X(S64, "i64", 5, SIGNED, 64, 8)                    \
  X(U2, "ui2", 25, UNSIGNED, 2, 1)                   \
  X(U4, "ui4", 22, UNSIGNED, 4, 1)                   \
  X(U8, "ui8", 6, UNSIGNED, 8, 1)                    \
  X(U16, "ui16", 7, UNSIGNED, 16, 2)                 \
  X(U32, "ui32", 8, UNSIGNED, 32, 4)                 \
  X(U64, "ui64", 9, UNSIGNED, 64, 8)                 \
  X(F4E2M1FN, "f4E2M1FN", 29, FLOAT, 4, 1)           \
  X(F6E2M3FN, "f6E2M3FN", 32, FLOAT, 6, 1)           \
  X(F6E3M2FN, "f6E3M2FN", 33, FLOAT, 6, 1)           \
  X(F8E3M4, "f8E3M4", 27, FLOAT, 8, 1)               \
  X(F8E4M3, "f8E4M3", 26, FLOAT, 8, 1)               \
  X(F8E4M3FN, "f8E4M3FN", 17, FLOAT, 8, 1)           \
  X(F8E4M3FNUZ, "f8E4M3FNUZ", 20, FLOAT, 8, 1)       \
  X(F8E4M3B11FNUZ, "f8E4M3B11FNUZ", 18, FLOAT, 8, 1) \
  X(F8E5M2, "f8E5M2", 16, FLOAT, 8, 1)               \
  X(F8E5M2FNUZ, "f8E5M2FNUZ", 19, FLOAT, 8, 1)       \
  X(F8E8M0FNU, "f8E8M0FNU", 28, FLOAT, 8, 1)         \
  X(F16, "f16", 10, FLOAT, 16, 2)                    \
  X(BF16, "bf16", 13, FLOAT, 16, 2)                  \
  X(F32, "f32", 11, FLOAT, 32, 4)                    \
  X(F64, "f64", 12, FLOAT, 64, 8)                    \
  X(TF32, "tf32", 0, FLOAT, 19, 4)                   \
  X(C64, "complex<f32>", 14, COMPLEX, 64, 8)         \
  X(C128, "complex<f64>", 15, COMPLEX, 128, 16)      \
  X(INDEX, "index", 0, SIGNED, 64, 8)

typedef enum {
#define MP_DTYPE_ENUM(name, text, pjrt, kind, bits, storage) MP_DTYPE_##name,
  MP_DTYPES(MP_DTYPE_ENUM)
#undef MP_DTYPE_ENUM
      MP_DTYPE_COUNT
} mp_dtype_t;

// MLIR's spelling, such as "f32".
const char *mp_dtype_name(mp_dtype_t dtype);
// The class of the type: signed, floating-point, ...
mp_dtype_class_t mp_dtype_class(mp_dtype_t dtype);
// The bits that an element's value needs.
int mp_dtype_bits(mp_dtype_t dtype);
// The bytes that a stored element takes.
size_t mp_dtype_size(mp_dtype_t dtype);
// The PJRT_Buffer_Type; 0 (INVALID) when PJRT has none.
int mp_dtype_to_pjrt(mp_dtype_t dtype);
// Whether values of a program can have the type. These are the types that PJRT has.
static inline bool mp_dtype_is_storable(mp_dtype_t dtype) {
  return mp_dtype_to_pjrt(dtype) != 0;
}
// The type with this PJRT_Buffer_Type, or with this spelling; MP_DTYPE_INVALID when there is none.
mp_dtype_t mp_dtype_from_pjrt(int pjrt_type);
mp_dtype_t mp_dtype_from_name(mp_str_t name);

// Whether the type is signed or unsigned; booleans are neither.
static inline bool mp_dtype_is_integer(mp_dtype_t dtype) {
  mp_dtype_class_t c = mp_dtype_class(dtype);
  return c == MP_CLASS_SIGNED || c == MP_CLASS_UNSIGNED;
}
// Whether it is a real floating-point type.
static inline bool mp_dtype_is_float(mp_dtype_t dtype) {
  return mp_dtype_class(dtype) == MP_CLASS_FLOAT;
}
// Whether it is a complex type.
static inline bool mp_dtype_is_complex(mp_dtype_t dtype) {
  return mp_dtype_class(dtype) == MP_CLASS_COMPLEX;
}
// f32 for c64, f64 for c128, otherwise the type itself.
mp_dtype_t mp_dtype_real_part(mp_dtype_t dtype);

// Decode one stored element of any floating-point type to a double, exactly, and encode a double,
// rounded to nearest, ties to even. What is too large becomes infinity, or what the format has
// instead (float.h), by the rules of StableHLO and of LLVM's APFloat.
double mp_float_decode(mp_dtype_t dtype, const void *element);
void mp_float_encode(mp_dtype_t dtype, double value, void *out_element);

#endif  // MINIPOD_SIM_NUMERIC_DTYPE_H_
