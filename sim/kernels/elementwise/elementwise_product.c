// Loops that combine a product with a sum or difference. The product is rounded before the
// addition, so the results have the bits of two loops, but it is never stored. Polynomials consist
// of such pairs.
#include "sim/kernels/elementwise/elementwise.h"
#include "sim/kernels/loops.h"

// If both operands are NaN, the result is the first, made quiet. Compilers exchange the operands of
// sums and products, which would change such results. They cannot do so if both operands are
// vectors from memory; if a scalar is NaN, the code chooses the operand explicitly.
#define CHOSEN(T, first, second, expr) \
  ((first) != (first) ? (T)((first) + 0) : (second) != (second) ? (T)((second) + 0) : (T)(expr))

// The product of x, from in[0], and y, from in[1], with z, from in[2]. S...: this input has one
// element.
#define PRODUCT_LOOP(name, T, SX, SY, SZ, first, op, second)                          \
  MP_VECTOR static void name##_numbers(int64_t n, const void *const *in, void *out) { \
    const T *a = in[0], *b = in[1], *c = in[2];                                       \
    const T x0 = a[0], y0 = b[0], z0 = c[0];                                          \
    T *r = out;                                                                       \
    MP_INDEPENDENT for (int64_t i = 0; i < n; ++i) {                                  \
      const T x = SX ? x0 : a[i], y = SY ? y0 : b[i], z = SZ ? z0 : c[i];             \
      const T m = x * y;                                                              \
      r[i] = first op second;                                                         \
    }                                                                                 \
  }                                                                                   \
  static void name(int64_t n, const void *const *in, void *out) {                     \
    const T *a = in[0], *b = in[1], *c = in[2];                                       \
    const T x0 = a[0], y0 = b[0], z0 = c[0];                                          \
    T *r = out;                                                                       \
    if (!((SX && x0 != x0) || (SY && y0 != y0) || (SZ && z0 != z0))) {                \
      name##_numbers(n, in, out);                                                     \
      return;                                                                         \
    }                                                                                 \
    for (int64_t i = 0; i < n; ++i) {                                                 \
      const T x = SX ? x0 : a[i], y = SY ? y0 : b[i], z = SZ ? z0 : c[i];             \
      const T m = CHOSEN(T, x, y, x * y);                                             \
      r[i] = CHOSEN(T, first, second, first op second);                               \
    }                                                                                 \
  }

// One loop for each set of scalar inputs, one bit per input. The product of two scalars would be a
// scalar itself, and three scalars need no loop.
#define PRODUCT_LOOPS(name, T, first, op, second)       \
  PRODUCT_LOOP(name##_0, T, 0, 0, 0, first, op, second) \
  PRODUCT_LOOP(name##_1, T, 1, 0, 0, first, op, second) \
  PRODUCT_LOOP(name##_2, T, 0, 1, 0, first, op, second) \
  PRODUCT_LOOP(name##_4, T, 0, 0, 1, first, op, second) \
  PRODUCT_LOOP(name##_5, T, 1, 0, 1, first, op, second) \
  PRODUCT_LOOP(name##_6, T, 0, 1, 1, first, op, second)

#define TYPE_LOOPS(name, T)                       \
  PRODUCT_LOOPS(add_left_##name, T, m, +, z)      \
  PRODUCT_LOOPS(subtract_left_##name, T, m, -, z) \
  PRODUCT_LOOPS(subtract_right_##name, T, z, -, m)

TYPE_LOOPS(F32, float)
TYPE_LOOPS(F64, double)

enum { NUM_FORMS = 7 };

#define PRODUCT_ROW(name)                                                           \
  {                                                                                 \
    [0] = name##_0, [1] = name##_1, [2] = name##_2, [4] = name##_4, [5] = name##_5, \
    [6] = name##_6,                                                                 \
  }
// There are no loops for a sum with the product as second operand, because compilers would exchange
// the operands.
#define TYPE_ROWS(name)                                                          \
  {                                                                              \
    {{NULL}, PRODUCT_ROW(add_left_##name)},                                      \
        {PRODUCT_ROW(subtract_right_##name), PRODUCT_ROW(subtract_left_##name)}, \
  }

// By type, difference, whether the product comes first, and scalars.
static const mp_ew_loop_t g_loops[2][2][2][NUM_FORMS] = {TYPE_ROWS(F32), TYPE_ROWS(F64)};

mp_ew_loop_t mp_ew_product_loop(mp_opcode_t code, mp_dtype_t dtype, bool is_first,
                                uint32_t scalars) {
  if (dtype != MP_DTYPE_F32 && dtype != MP_DTYPE_F64) return NULL;
  if ((code != MP_OP_ADD && code != MP_OP_SUBTRACT) || scalars >= NUM_FORMS) return NULL;
  return g_loops[dtype == MP_DTYPE_F64][code == MP_OP_SUBTRACT][is_first][scalars];
}
