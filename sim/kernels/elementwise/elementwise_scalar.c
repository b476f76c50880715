// Loops of binary ops with one scalar operand. The results are those of an array of copies of the
// scalar, without the array. in[0] and in[1] are in the op's order; the scalar's has one element.
#include "sim/kernels/elementwise/elementwise.h"
#include "sim/kernels/loops.h"
#include "sim/numeric/words.h"

#define LEFT(kind, op, name) \
  MP_LOOP_LEFT(op##_##name, MP_T(name), MP_T(name), MP_MEANING(name, MP_##kind##_##op))
#define RIGHT(kind, op, name) \
  MP_LOOP_RIGHT(op##_##name, MP_T(name), MP_T(name), MP_MEANING(name, MP_##kind##_##op))
#define BOTH(kind, op, name) LEFT(kind, op, name) RIGHT(kind, op, name)

// If both operands are NaN, the result is the first, made quiet. Compilers exchange the operands of
// sums and products, which would change such results. So if the scalar is NaN, a loop chooses the
// operand explicitly.
#define ORDERED(kind, op, name)                                                                   \
  LEFT(kind, op, name)                                                                            \
  MP_LOOP_RIGHT(op##_##name##_number, MP_T(name), MP_T(name), MP_MEANING(name, MP_##kind##_##op)) \
  MP_LOOP_RIGHT(op##_##name##_nan, MP_T(name), MP_T(name), (x != x ? x : y) + 0)                  \
  static void op##_##name##_right(int64_t n, const void *const *in, void *out) {                  \
    const MP_T(name) y = *(const MP_T(name) *)in[1];                                              \
    (y != y ? op##_##name##_nan_right : op##_##name##_number_right)(n, in, out);                  \
  }

// clang-format changes these macros again each time it runs.
// clang-format off
#define FLOAT_LOOPS(name)                                                             \
  ORDERED(REAL, ADD, name) ORDERED(REAL, MULTIPLY, name) BOTH(REAL, DIVIDE, name)     \
  BOTH(REAL, SUBTRACT, name) MP_DIRECTIONS(COMPARE, name)
// Wrapping arithmetic has the same bits for signed and unsigned numbers.
#define INTEGER_LOOPS(name)                                                           \
  BOTH(INT, ADD, name) BOTH(INT, AND, name) BOTH(INT, MULTIPLY, name)                 \
  BOTH(INT, OR, name) BOTH(INT, SUBTRACT, name) BOTH(INT, XOR, name)                  \
  RIGHT(INT, SHIFT_LEFT, name) RIGHT(INT, SHIFT_RIGHT_LOGICAL, name)                  \
  MP_LOOP_RIGHT(rotate_##name, MP_T(name), MP_T(name),                                \
                x << y | x >> ((8 * sizeof(x) - y) % (8 * sizeof(x))))
// clang-format on
#define COMPARE(direction, operator, name) \
  MP_LOOP_RIGHT(direction##_##name, MP_T(name), uint8_t, x operator y)

FLOAT_LOOPS(F32)
FLOAT_LOOPS(F64)
INTEGER_LOOPS(U32)
INTEGER_LOOPS(U64)
MP_DIRECTIONS(COMPARE, S32)

// The loops of an op: with the left and with the right operand a scalar, or NULL.
typedef struct {
  mp_ew_loop_t left, right;
} pair_t;

// clang-format off
#define PAIR(op, name)  [MP_OP_##op] = {op##_##name##_left, op##_##name##_right},
#define RIGHT_ONLY(op, name) [MP_OP_##op] = {NULL, op##_##name##_right},
#define FLOAT_PAIRS(name)                                                             \
  PAIR(ADD, name) PAIR(DIVIDE, name) PAIR(MULTIPLY, name) PAIR(SUBTRACT, name)
#define INTEGER_PAIRS(name)                                                           \
  PAIR(ADD, name) PAIR(AND, name) PAIR(MULTIPLY, name) PAIR(OR, name)                 \
  PAIR(SUBTRACT, name) PAIR(XOR, name)                                                \
  RIGHT_ONLY(SHIFT_LEFT, name) RIGHT_ONLY(SHIFT_RIGHT_LOGICAL, name)
// clang-format on

static const pair_t g_f32[MP_OP_COUNT] = {FLOAT_PAIRS(F32)};
static const pair_t g_f64[MP_OP_COUNT] = {FLOAT_PAIRS(F64)};
static const pair_t g_u32[MP_OP_COUNT] = {INTEGER_PAIRS(U32)};
static const pair_t g_u64[MP_OP_COUNT] = {INTEGER_PAIRS(U64)};

#define ENTRY(direction, operator, name) [MP_CMP_##direction] = direction##_##name##_right,
static const mp_ew_loop_t g_compare_f32[MP_CMP_COUNT] = {MP_DIRECTIONS(ENTRY, F32)};
static const mp_ew_loop_t g_compare_f64[MP_CMP_COUNT] = {MP_DIRECTIONS(ENTRY, F64)};
static const mp_ew_loop_t g_compare_s32[MP_CMP_COUNT] = {MP_DIRECTIONS(ENTRY, S32)};

static mp_ew_loop_t elementwise_scalar_compare(const mp_op_t *op, mp_dtype_t dtype) {
  const uint32_t direction = mp_op_enum(op, MP_ATTR_COMPARISON_DIRECTION, MP_CMP_EQ);
  const uint32_t type = mp_op_enum(op, MP_ATTR_COMPARE_TYPE, MP_CMP_NOTYPE);
  if (type == MP_CMP_TOTALORDER || direction >= MP_CMP_COUNT) return NULL;
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

// Selects between an array and a scalar, in[scalar], by a third array.
#define SELECT_LOOP(name, T, scalar, read_x, read_y)                        \
  MP_VECTOR static void name(int64_t n, const void *const *in, void *out) { \
    const uint8_t *p = in[0];                                               \
    const T *some = in[3 - scalar];                                         \
    const T one = *(const T *)in[scalar];                                   \
    T *r = out;                                                             \
    MP_INDEPENDENT for (int64_t i = 0; i < n; ++i) {                        \
      T x = read_x, y = read_y;                                             \
      r[i] = p[i] != 0 ? x : y;                                             \
    }                                                                       \
  }
SELECT_LOOP(select_left_4, uint32_t, 1, one, some[i])
SELECT_LOOP(select_right_4, uint32_t, 2, some[i], one)
SELECT_LOOP(select_left_8, uint64_t, 1, one, some[i])
SELECT_LOOP(select_right_8, uint64_t, 2, some[i], one)

// Selection in which input 1 or 2 is a scalar.
static mp_ew_loop_t elementwise_scalar_select_loop(size_t size, uint32_t scalar) {
  if (size == 4) return scalar == 1 ? select_left_4 : select_right_4;
  if (size == 8) return scalar == 1 ? select_left_8 : select_right_8;
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
    return elementwise_scalar_select_loop(mp_dtype_size(dtype), scalars == SECOND ? 1 : 2);
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
