// Elementwise arithmetic: one loop per op and element type, for the elementwise kernels and for
// region functions.
//
// There are loops for the *computing* types: bool, s/u 8-64, f32, f64, c64, c128. Narrower types
// are widened block by block and narrowed again: f4, f6, f8, f16 and bf16 are computed in f32 and
// rounded once per op, 2- and 4-bit integers are computed in 8 bits and wrapped. The results are
// those of the StableHLO specification; where it leaves a choice:
//   integers wrap; x / 0 is -1 (all bits set), x rem 0 is x, MIN / -1 is MIN; shifts by the width
//   or more give 0, or the sign for arithmetic shifts; a negative power of an integer is 0 unless
//   the base is 1 or -1; conversion of floating-point numbers to integers saturates, and NaN
//   becomes 0; minimum and maximum give NaN if either operand is NaN, and -0 is less than +0;
//   complex numbers are ordered by their real, then by their imaginary part.
#ifndef MINIPOD_SIM_KERNELS_ELEMENTWISE_ELEMENTWISE_H_
#define MINIPOD_SIM_KERNELS_ELEMENTWISE_ELEMENTWISE_H_

#include <stdint.h>

#include "sim/base/status.h"
#include "sim/ir/module.h"
#include "sim/native/native.h"
#include "sim/numeric/dtype.h"

// Computes out[i] = f(in[0][i], in[1][i], ...) for i in [0, n). `out` may be the same array as an
// input.
typedef void (*mp_ew_loop_t)(int64_t n, const void *const *in, void *out);

enum { MP_EW_MAX_INPUTS = 3 };

// How to fill the upper bits of a 2- or 4-bit input: with zeros, as stored, or with copies of the
// sign.
typedef enum { MP_EXTEND_NONE, MP_EXTEND_SIGN } mp_extend_t;

// An op over arrays, bound to its element types.
typedef struct {
  mp_ew_loop_t loop;
  uint32_t num_inputs;
  mp_dtype_t inputs[MP_EW_MAX_INPUTS];  // as stored
  mp_dtype_t output;
  bool direct;           // the stored types are the computing types
  bool saturate;         // float to a 2- or 4-bit integer: clamp instead of wrapping
  mp_extend_t extend;    // 2- and 4-bit inputs
  bool widens, narrows;  // nothing but a narrow float to f32, or back
  int32_t params[2];     // reduce_precision: exponent and mantissa bits; the loop's last input
  bool has_params;
} mp_ew_t;

// Finds the loop for an elementwise op (MP_OP_TRAIT_ELEMENTWISE). UNIMPLEMENTED by mp_op_error if
// its element types have no loop.
MP_NODISCARD mp_status_t mp_ew_bind(const mp_op_t *op, mp_ew_t *out_ew);

// The same for "convert" between two types, and for a binary op whose operands and result have one
// type. False when there is no loop.
bool mp_ew_bind_convert(mp_dtype_t from, mp_dtype_t to, mp_ew_t *out_ew);
bool mp_ew_bind_binary(mp_opcode_t code, mp_dtype_t dtype, mp_ew_t *out_ew);

// The op for machine code (sim/native), on computing types, which are wider than the stored types
// of narrow elements. Its `code` is MP_OP_COUNT if machine code cannot have the op.
mp_native_op_t mp_ew_native(const mp_op_t *op);

// Runs the op on `n` elements of arrays of stored elements. `out` may be the same array as an input
// whose elements have the same size.
void mp_ew_run(const mp_ew_t *ew, int64_t n, const void *const *in, void *out);

// The type in which arithmetic on `dtype` is done; MP_DTYPE_INVALID when there is none.
mp_dtype_t mp_ew_computing_type(mp_dtype_t dtype);

// The loop of an op with scalar operands: a bit in `scalars` marks an operand of one element, which
// is combined with all elements of the others. Its pointer in `in` is to that element. The results
// have the bits of the op's own loop, in the computing type. NULL when there is none.
mp_ew_loop_t mp_ew_scalar_loop(const mp_op_t *op, uint32_t scalars);
// The loop of a product and a sum (`code` is ADD) or difference (SUBTRACT): in[0] * in[1], rounded,
// and in[2]. The product is the first operand if `is_first`. The elements have the computing type
// `dtype`; `scalars` as above. NULL when there is none.
mp_ew_loop_t mp_ew_product_loop(mp_opcode_t code, mp_dtype_t dtype, bool is_first,
                                uint32_t scalars);
// The loop that rotates integers to the left, as two shifts and an "or" do. in[1] is one element,
// less than their width. NULL for other types.
mp_ew_loop_t mp_ew_rotate_loop(mp_dtype_t dtype);

// ---- the loops by kind ----
//
// For elementwise.c. Each returns the loop for an op and a computing type, NULL when there is none.

// Ops on bool and integers, on floating-point numbers, and on complex numbers.
mp_ew_loop_t mp_ew_integer_loop(mp_opcode_t code, mp_dtype_t dtype);
mp_ew_loop_t mp_ew_float_loop(mp_opcode_t code, mp_dtype_t dtype);
mp_ew_loop_t mp_ew_complex_loop(mp_opcode_t code, mp_dtype_t dtype);
// Conversion between two computing types.
mp_ew_loop_t mp_ew_convert_loop(mp_dtype_t from, mp_dtype_t to);
// Conversion of f64 or c128 to f32 by mp_float_from_f64_to_odd, as a step to a narrow type.
mp_ew_loop_t mp_ew_convert_to_odd_loop(mp_dtype_t from);
// Comparison in a direction (MP_CMP_EQ, ...); with `total`, floating-point numbers are compared in
// total order.
mp_ew_loop_t mp_ew_compare_loop(uint32_t direction, bool total, mp_dtype_t dtype);
// Maximum and minimum with a scalar as second operand, and clamp with scalar bounds.
mp_ew_loop_t mp_ew_bound_loop(mp_opcode_t code, mp_dtype_t dtype);
// Selection between elements of `size` bytes. The inputs are booleans and two arrays.
mp_ew_loop_t mp_ew_select_loop(size_t size);
// reduce_precision on stored elements of `dtype`, which must have infinities; other types go
// through f32. in[1] has the numbers of exponent and fraction bits to keep (two int32_t).
mp_ew_loop_t mp_ew_precision_loop(mp_dtype_t dtype);
// The number of leading zeros in elements of 2 or 4 bits that are stored in a byte each.
mp_ew_loop_t mp_ew_narrow_clz_loop(int bits);

#endif  // MINIPOD_SIM_KERNELS_ELEMENTWISE_ELEMENTWISE_H_
