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

// One row for each type; whatever differs from type to type is a column:
//
//   enum name, MLIR spelling, class, bits, storage bytes;
//   the format of a float: style, exponent bits, fraction bits, bias. The style says what the codes
//   with the largest exponent stand for:
//     IEEE    infinities and NaNs
//     FN      one NaN per sign, with all bits set; all others are numbers
//     FNUZ    numbers; the code that would be minus zero is the only NaN
//     FINITE  numbers; there is no NaN
//     SCALE   no sign and no fraction; all bits set is NaN;
//   the numbers that others have for it (mp_dtype_numbers_t): PJRT, XLA, foreign functions, the
//   field of literals, MLIR's bytecode, VHLO's. 0 is none; of VHLO's, which begin with 0, it is -1.
//
// The parts are for code that is made for each type of a kind, with a loop for each.
#define MP_DTYPES_SMALL_SIGNED(X)                                 \
  X(S2, "i2", SIGNED, 2, 1, NONE, 0, 0, 0, 24, 26, 26, 26, 0, 31) \
  X(S4, "i4", SIGNED, 4, 1, NONE, 0, 0, 0, 21, 21, 21, 21, 0, 10)
#define MP_DTYPES_SIGNED(X)                                       \
  X(S8, "i8", SIGNED, 8, 1, NONE, 0, 0, 0, 2, 2, 2, 15, 0, 11)    \
  X(S16, "i16", SIGNED, 16, 2, NONE, 0, 0, 0, 3, 3, 3, 17, 0, 12) \
  X(S32, "i32", SIGNED, 32, 4, NONE, 0, 0, 0, 4, 4, 4, 4, 0, 13)  \
  X(S64, "i64", SIGNED, 64, 8, NONE, 0, 0, 0, 5, 5, 5, 5, 0, 14)
#define MP_DTYPES_SMALL_UNSIGNED(X)                                  \
  X(U2, "ui2", UNSIGNED, 2, 1, NONE, 0, 0, 0, 25, 27, 27, 27, 0, 32) \
  X(U4, "ui4", UNSIGNED, 4, 1, NONE, 0, 0, 0, 22, 22, 22, 22, 0, 15)
#define MP_DTYPES_UNSIGNED(X)                                        \
  X(U8, "ui8", UNSIGNED, 8, 1, NONE, 0, 0, 0, 6, 6, 6, 3, 0, 16)     \
  X(U16, "ui16", UNSIGNED, 16, 2, NONE, 0, 0, 0, 7, 7, 7, 16, 0, 17) \
  X(U32, "ui32", UNSIGNED, 32, 4, NONE, 0, 0, 0, 8, 8, 8, 6, 0, 18)  \
  X(U64, "ui64", UNSIGNED, 64, 8, NONE, 0, 0, 0, 9, 9, 9, 7, 0, 19)
#define MP_DTYPES_BYTE_FLOATS(X)                                                         \
  X(F4E2M1FN, "f4E2M1FN", FLOAT, 4, 1, FINITE, 2, 1, 1, 29, 32, 32, 32, 29, 37)          \
  X(F6E2M3FN, "f6E2M3FN", FLOAT, 6, 1, FINITE, 2, 3, 1, 32, 36, 0, 36, 30, 38)           \
  X(F6E3M2FN, "f6E3M2FN", FLOAT, 6, 1, FINITE, 3, 2, 3, 33, 35, 0, 35, 31, 39)           \
  X(F8E3M4, "f8E3M4", FLOAT, 8, 1, IEEE, 3, 4, 3, 27, 29, 29, 29, 28, 36)                \
  X(F8E4M3, "f8E4M3", FLOAT, 8, 1, IEEE, 4, 3, 7, 26, 28, 28, 28, 23, 35)                \
  X(F8E4M3FN, "f8E4M3FN", FLOAT, 8, 1, FN, 4, 3, 7, 17, 20, 20, 20, 24, 6)               \
  X(F8E4M3FNUZ, "f8E4M3FNUZ", FLOAT, 8, 1, FNUZ, 4, 3, 8, 20, 25, 25, 25, 26, 27)        \
  X(F8E4M3B11FNUZ, "f8E4M3B11FNUZ", FLOAT, 8, 1, FNUZ, 4, 3, 11, 18, 23, 23, 23, 27, 29) \
  X(F8E5M2, "f8E5M2", FLOAT, 8, 1, IEEE, 5, 2, 15, 16, 19, 19, 19, 22, 7)                \
  X(F8E5M2FNUZ, "f8E5M2FNUZ", FLOAT, 8, 1, FNUZ, 5, 2, 16, 19, 24, 24, 24, 25, 28)       \
  X(F8E8M0FNU, "f8E8M0FNU", FLOAT, 8, 1, SCALE, 8, 0, 127, 28, 33, 33, 33, 32, 40)
#define MP_DTYPES_HALF_FLOATS(X)                                     \
  X(F16, "f16", FLOAT, 16, 2, IEEE, 5, 10, 15, 10, 10, 10, 11, 4, 3) \
  X(BF16, "bf16", FLOAT, 16, 2, IEEE, 8, 7, 127, 13, 16, 16, 13, 3, 2)
#define MP_DTYPES_FLOATS(X)                                          \
  X(F32, "f32", FLOAT, 32, 4, IEEE, 8, 23, 127, 11, 11, 11, 8, 5, 4) \
  X(F64, "f64", FLOAT, 64, 8, IEEE, 11, 52, 1023, 12, 12, 12, 9, 6, 5)
#define MP_DTYPES_COMPLEX(X)                                                   \
  X(C64, "complex<f32>", COMPLEX, 64, 8, NONE, 0, 0, 0, 14, 15, 15, 12, 0, -1) \
  X(C128, "complex<f64>", COMPLEX, 128, 16, NONE, 0, 0, 0, 15, 18, 18, 18, 0, -1)
#define MP_DTYPES(X)                                                  \
  X(INVALID, "invalid", NONE, 0, 0, NONE, 0, 0, 0, 0, 0, 0, 0, 0, -1) \
  X(BOOL, "i1", BOOL, 1, 1, NONE, 0, 0, 0, 1, 1, 1, 2, 0, 0)          \
  MP_DTYPES_SMALL_SIGNED(X)                                           \
  MP_DTYPES_SIGNED(X)                                                 \
  MP_DTYPES_SMALL_UNSIGNED(X)                                         \
  MP_DTYPES_UNSIGNED(X)                                               \
  MP_DTYPES_BYTE_FLOATS(X)                                            \
  MP_DTYPES_HALF_FLOATS(X)                                            \
  MP_DTYPES_FLOATS(X)                                                 \
  X(TF32, "tf32", FLOAT, 19, 4, IEEE, 8, 10, 127, 0, 0, 0, 0, 21, 34) \
  MP_DTYPES_COMPLEX(X)                                                \
  X(INDEX, "index", SIGNED, 64, 8, NONE, 0, 0, 0, 0, 0, 0, 0, 1, 9)

typedef enum {
#define MP_DTYPE_ENUM(name, ...) MP_DTYPE_##name,
  MP_DTYPES(MP_DTYPE_ENUM)
#undef MP_DTYPE_ENUM
      MP_DTYPE_COUNT
} mp_dtype_t;

// The numberings of the types.
typedef enum {
  MP_NUMBERS_PJRT,     // PJRT_Buffer_Type
  MP_NUMBERS_XLA,      // PrimitiveType of HLO's protos
  MP_NUMBERS_FOREIGN,  // XLA_FFI_DataType: XLA's numbers of the types that foreign functions know
  MP_NUMBERS_LITERAL,  // the field of a LiteralProto that holds elements of the type
  MP_NUMBERS_BUILTIN,  // bytecode of MLIR's builtin dialect; integers and complex types have none
  MP_NUMBERS_VHLO,     // bytecode of VHLO, StableHLO's portable form
  MP_NUMBERS_COUNT
} mp_dtype_numbers_t;

// MLIR's spelling, such as "f32".
const char *mp_dtype_name(mp_dtype_t dtype);
// The class of the type: signed, floating-point, ...
mp_dtype_class_t mp_dtype_class(mp_dtype_t dtype);
// The bits that an element's value needs.
int mp_dtype_bits(mp_dtype_t dtype);
// The bytes that a stored element takes.
size_t mp_dtype_size(mp_dtype_t dtype);
// The type's number in one numbering, and the type that has it. Where there is none: 0 (VHLO: -1),
// and MP_DTYPE_INVALID.
int mp_dtype_number(mp_dtype_t dtype, mp_dtype_numbers_t numbers);
mp_dtype_t mp_dtype_from_number(mp_dtype_numbers_t numbers, uint64_t number);
// Whether values of a program can have the type. These are the types that PJRT has.
static inline bool mp_dtype_is_storable(mp_dtype_t dtype) {
  return mp_dtype_number(dtype, MP_NUMBERS_PJRT) != 0;
}
// The type with this spelling; MP_DTYPE_INVALID when there is none.
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
