// Loops of binary ops of which one operand is a scalar: the same results as with an array of copies
// of it, without the array. in[0] and in[1] are in the op's order; the scalar's has one element.
#include "sim/kernels/elementwise/elementwise.h"
#include "sim/kernels/loops.h"

#define LOOP_BOTH(name, T, R, expr) MP_LOOP_LEFT(name, T, R, expr) MP_LOOP_RIGHT(name, T, R, expr)

// Of two NaNs the result is the first, made quiet. Compilers exchange the operands of sums and
// products, which shows where both are NaN: with a scalar that is NaN, each is chosen by hand.
#define LOOP_BOTH_ORDERED(name, T, expr)                                  \
  MP_LOOP_LEFT(name, T, T, expr)                                          \
  MP_LOOP_RIGHT(name##_number, T, T, expr)                                \
  MP_LOOP_RIGHT(name##_nan, T, T, (x != x ? x : y) + 0)                   \
  static void name##_right(int64_t n, const void *const *in, void *out) { \
    const T y = *(const T *)in[1];                                        \
    (y != y ? name##_nan_right : name##_number_right)(n, in, out);        \
  }

#define FLOAT_LOOPS(name, T)                  \
  LOOP_BOTH_ORDERED(add_##name, T, x + y)     \
  LOOP_BOTH(divide_##name, T, T, x / y)       \
  LOOP_BOTH_ORDERED(multiply_##name, T, x *y) \
  LOOP_BOTH(subtract_##name, T, T, x - y)     \
  COMPARE_LOOPS(name, T)

// Wrapping arithmetic has the same bits for signed and unsigned numbers. Shifting by the width or
// more gives 0.
#define INTEGER_LOOPS(name, T, width)                             \
  LOOP_BOTH(add_##name, T, T, x + y)                              \
  LOOP_BOTH(and_##name, T, T, x &y)                               \
  LOOP_BOTH(multiply_##name, T, T, x *y)                          \
  LOOP_BOTH(or_##name, T, T, x | y)                               \
  LOOP_BOTH(subtract_##name, T, T, x - y)                         \
  LOOP_BOTH(xor_##name, T, T, x ^ y)                              \
  MP_LOOP_RIGHT(shift_left_##name, T, T, y < width ? x << y : 0)  \
  MP_LOOP_RIGHT(shift_right_##name, T, T, y < width ? x >> y : 0) \
  MP_LOOP_RIGHT(rotate_##name, T, T, x << y | x >> ((width - y) % width))

#define COMPARE_LOOPS(name, T)                 \
  MP_LOOP_RIGHT(eq_##name, T, uint8_t, x == y) \
  MP_LOOP_RIGHT(ge_##name, T, uint8_t, x >= y) \
  MP_LOOP_RIGHT(gt_##name, T, uint8_t, x > y)  \
  MP_LOOP_RIGHT(le_##name, T, uint8_t, x <= y) \
  MP_LOOP_RIGHT(lt_##name, T, uint8_t, x < y)  \
  MP_LOOP_RIGHT(ne_##name, T, uint8_t, x != y)

FLOAT_LOOPS(F32, float)
FLOAT_LOOPS(F64, double)
INTEGER_LOOPS(U32, uint32_t, 32)
INTEGER_LOOPS(U64, uint64_t, 64)
COMPARE_LOOPS(S32, int32_t)

// The loops of an op: with the left and with the right operand a scalar, or NULL.
typedef struct {
  mp_ew_loop_t left, right;
} pair_t;

#define BOTH(loop) \
  { loop##_left, loop##_right }
#define RIGHT(loop) \
  { NULL, loop##_right }

#define FLOAT_ROWS(name)                                                                \
  {                                                                                     \
    [MP_OP_ADD] = BOTH(add_##name), [MP_OP_DIVIDE] = BOTH(divide_##name),               \
    [MP_OP_MULTIPLY] = BOTH(multiply_##name), [MP_OP_SUBTRACT] = BOTH(subtract_##name), \
  }
#define INTEGER_ROWS(name)                                                    \
  {                                                                           \
    [MP_OP_ADD] = BOTH(add_##name), [MP_OP_AND] = BOTH(and_##name),           \
    [MP_OP_MULTIPLY] = BOTH(multiply_##name), [MP_OP_OR] = BOTH(or_##name),   \
    [MP_OP_SHIFT_LEFT] = RIGHT(shift_left_##name),                            \
    [MP_OP_SHIFT_RIGHT_LOGICAL] = RIGHT(shift_right_##name),                  \
    [MP_OP_SUBTRACT] = BOTH(subtract_##name), [MP_OP_XOR] = BOTH(xor_##name), \
  }

static const pair_t g_f32[MP_OP_COUNT] = FLOAT_ROWS(F32);
static const pair_t g_f64[MP_OP_COUNT] = FLOAT_ROWS(F64);
static const pair_t g_u32[MP_OP_COUNT] = INTEGER_ROWS(U32);
static const pair_t g_u64[MP_OP_COUNT] = INTEGER_ROWS(U64);

#define COMPARE_ROWS(name)                                            \
  {                                                                   \
    [MP_CMP_EQ] = eq_##name##_right, [MP_CMP_GE] = ge_##name##_right, \
    [MP_CMP_GT] = gt_##name##_right, [MP_CMP_LE] = le_##name##_right, \
    [MP_CMP_LT] = lt_##name##_right, [MP_CMP_NE] = ne_##name##_right, \
  }
enum { NUM_DIRECTIONS = 6 };
static const mp_ew_loop_t g_compare_f32[NUM_DIRECTIONS] = COMPARE_ROWS(F32);
static const mp_ew_loop_t g_compare_f64[NUM_DIRECTIONS] = COMPARE_ROWS(F64);
static const mp_ew_loop_t g_compare_s32[NUM_DIRECTIONS] = COMPARE_ROWS(S32);

static mp_ew_loop_t elementwise_scalar_compare(const mp_op_t *op, mp_dtype_t dtype) {
  const uint32_t direction = mp_op_enum(op, MP_ATTR_COMPARISON_DIRECTION, MP_CMP_EQ);
  const uint32_t type = mp_op_enum(op, MP_ATTR_COMPARE_TYPE, MP_CMP_NOTYPE);
  if (type == MP_CMP_TOTALORDER || direction >= NUM_DIRECTIONS) return NULL;
  switch (dtype) {
    case MP_DTYPE_F32:
      return g_compare_f32[direction];
    case MP_DTYPE_F64:
      return g_compare_f64[direction];
    case MP_DTYPE_S32:
      return g_compare_s32[direction];
    default:
      return NULL;
  }
}

#define SELECT_LOOPS(T)                                                                 \
  MP_VECTOR static void select_left_##T(int64_t n, const void *const *in, void *out) {  \
    const uint8_t *p = in[0];                                                           \
    const T x = *(const T *)in[1];                                                      \
    const T *b = in[2];                                                                 \
    T *r = out;                                                                         \
    MP_INDEPENDENT for (int64_t i = 0; i < n; ++i) {                                    \
      T y = b[i];                                                                       \
      r[i] = p[i] != 0 ? x : y;                                                         \
    }                                                                                   \
  }                                                                                     \
  MP_VECTOR static void select_right_##T(int64_t n, const void *const *in, void *out) { \
    const uint8_t *p = in[0];                                                           \
    const T *a = in[1];                                                                 \
    const T y = *(const T *)in[2];                                                      \
    T *r = out;                                                                         \
    MP_INDEPENDENT for (int64_t i = 0; i < n; ++i) {                                    \
      T x = a[i];                                                                       \
      r[i] = p[i] != 0 ? x : y;                                                         \
    }                                                                                   \
  }
SELECT_LOOPS(uint32_t)
SELECT_LOOPS(uint64_t)

mp_ew_loop_t mp_ew_select_scalar_loop(size_t size, uint32_t scalar) {
  if (size == 4) return scalar == 1 ? select_left_uint32_t : select_right_uint32_t;
  if (size == 8) return scalar == 1 ? select_left_uint64_t : select_right_uint64_t;
  return NULL;
}

// A bit for each input.
enum { FIRST = 1, SECOND = 2, THIRD = 4 };

mp_ew_loop_t mp_ew_scalar_loop(const mp_op_t *op, uint32_t scalars) {
  const mp_dtype_t dtype = mp_ew_computing_type(op->operands[op->num_operands - 1]->type->dtype);
  if (op->code == MP_OP_COMPARE) {
    return scalars == SECOND ? elementwise_scalar_compare(op, dtype) : NULL;
  }
  if (op->code == MP_OP_CLAMP) {
    return scalars == (FIRST | THIRD) ? mp_ew_bound_loop(op->code, dtype) : NULL;
  }
  if (op->code == MP_OP_MAXIMUM || op->code == MP_OP_MINIMUM) {
    return scalars == SECOND ? mp_ew_bound_loop(op->code, dtype) : NULL;
  }
  if (op->code == MP_OP_SELECT && (scalars == SECOND || scalars == THIRD)) {
    return mp_ew_select_scalar_loop(mp_dtype_size(dtype), scalars == SECOND ? 1 : 2);
  }
  if (op->num_operands != 2 || (scalars != FIRST && scalars != SECOND)) return NULL;
  const pair_t *rows = NULL;
  switch (dtype) {
    case MP_DTYPE_F32:
      rows = g_f32;
      break;
    case MP_DTYPE_F64:
      rows = g_f64;
      break;
    case MP_DTYPE_U32:
    case MP_DTYPE_S32:
      rows = g_u32;
      break;
    case MP_DTYPE_U64:
    case MP_DTYPE_S64:
      rows = g_u64;
      break;
    default:
      return NULL;
  }
  return scalars == FIRST ? rows[op->code].left : rows[op->code].right;
}

mp_ew_loop_t mp_ew_rotate_loop(mp_dtype_t dtype) {
  switch (dtype) {
    case MP_DTYPE_U32:
    case MP_DTYPE_S32:
      return rotate_U32_right;
    case MP_DTYPE_U64:
    case MP_DTYPE_S64:
      return rotate_U64_right;
    default:
      return NULL;
  }
}
