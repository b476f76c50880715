// What elementwise ops mean, each written once: for the loops over arrays
// (sim/kernels/elementwise), the steps of small loops (sim/loops) and machine code (sim/native).
//
// MP_<kind>_<op> is an expression of the operands x, y and z in *words*, which the including code
// defines: as operators of C (words.h), or as calls that build instructions
// (sim/native/module/emit_words.h). All operands of a word may be evaluated, also those that are
// not chosen.
//
//   numbers   ADD SUB MUL NEG, INT(n) or NUM(n): a constant of the elements' type
//   choice    SELECT(c, x, y), CHOOSE(c, x, y): the same, of real numbers of which C computes both
//             first; EITHER(c, d): one of two conditions; FLAG(c): 1 or 0
//             EQUAL LESS GREATER in the type's order, AT_LEAST(x, y): not less, BELOW: less as
//             unsigned integers
//   integers  AND OR XOR NOT; SHL SHR SAR(x, y) by less than the WIDTH, SAR copies the highest bit
//             MAX MIN; QUOTIENT REST: of a division that neither fails nor overflows
//             ONES: how many bits are set; LEADING: how many above all of these are not
//   real      DIV SQRT ABS CEIL FLOOR TRUNC ROUND_EVEN COPYSIGN(size, sign), IS_NAN
//             LARGER SMALLER: MP_LARGER, MP_SMALLER
//             I_OF: the bits as an integer, OF_I: back; IAND IOR: of such integers
//
// The lists name the ops of a kind: X(kind, op, number of operands, whatever the user hands on).
#ifndef MINIPOD_SIM_NUMERIC_MEANING_H_
#define MINIPOD_SIM_NUMERIC_MEANING_H_

// ---- integers: they wrap ----

#define MP_INT_ADD                 ADD(x, y)
#define MP_INT_AND                 AND(x, y)
#define MP_INT_CLAMP               MIN(MAX(y, x), z)
#define MP_INT_COUNT_LEADING_ZEROS LEADING(x)
#define MP_INT_MAXIMUM             MAX(x, y)
#define MP_INT_MINIMUM             MIN(x, y)
#define MP_INT_MULTIPLY            MUL(x, y)
#define MP_INT_NEGATE              NEG(x)
#define MP_INT_NOT                 NOT(x)
#define MP_INT_OR                  OR(x, y)
#define MP_INT_POPCNT              ONES(x)
#define MP_INT_SUBTRACT            SUB(x, y)
#define MP_INT_XOR                 XOR(x, y)
// Shifts by the width or more give 0, or the sign: the arithmetic shift of an unsigned type copies
// the highest bit too.
#define MP_INT_SHIFT(shifted)         SELECT(BELOW(y, INT(WIDTH)), shifted, INT(0))
#define MP_INT_SHIFT_LEFT             MP_INT_SHIFT(SHL(x, AND(y, INT(WIDTH - 1))))
#define MP_INT_SHIFT_RIGHT_LOGICAL    MP_INT_SHIFT(SHR(x, AND(y, INT(WIDTH - 1))))
#define MP_INT_SHIFT_RIGHT_ARITHMETIC SAR(x, SELECT(BELOW(y, INT(WIDTH - 1)), y, INT(WIDTH - 1)))

// x / 0 is -1, all bits set, and x rem 0 is x. MIN / -1 is MIN.
#define MP_SIGNED_ABS     SELECT(LESS(x, INT(0)), NEG(x), x)
#define MP_SIGNED_SIGN    SUB(FLAG(GREATER(x, INT(0))), FLAG(LESS(x, INT(0))))
#define MP_SIGNED_DIVISOR SELECT(EITHER(EQUAL(y, INT(0)), EQUAL(y, INT(-1))), INT(1), y)
#define MP_SIGNED_ODD(by_zero, by_minus_one, other) \
  SELECT(EQUAL(y, INT(0)), by_zero, SELECT(EQUAL(y, INT(-1)), by_minus_one, other))
#define MP_SIGNED_DIVIDE    MP_SIGNED_ODD(INT(-1), NEG(x), QUOTIENT(x, MP_SIGNED_DIVISOR))
#define MP_SIGNED_REMAINDER MP_SIGNED_ODD(x, INT(0), REST(x, MP_SIGNED_DIVISOR))

#define MP_UNSIGNED_ABS       x
#define MP_UNSIGNED_SIGN      SELECT(EQUAL(x, INT(0)), INT(0), INT(1))
#define MP_UNSIGNED_DIVISOR   SELECT(EQUAL(y, INT(0)), INT(1), y)
#define MP_UNSIGNED_DIVIDE    SELECT(EQUAL(y, INT(0)), INT(-1), QUOTIENT(x, MP_UNSIGNED_DIVISOR))
#define MP_UNSIGNED_REMAINDER SELECT(EQUAL(y, INT(0)), x, REST(x, MP_UNSIGNED_DIVISOR))

// Booleans are 0 or 1: for the rest they are unsigned integers.
#define MP_BOOL_AND AND(x, y)
#define MP_BOOL_OR  OR(x, y)
#define MP_BOOL_XOR XOR(x, y)
#define MP_BOOL_NOT XOR(x, INT(1))

// ---- f32 and f64 ----

#define MP_REAL_ABS                ABS(x)
#define MP_REAL_ADD                ADD(x, y)
#define MP_REAL_CEIL               CEIL(x)
#define MP_REAL_CLAMP              SMALLER(LARGER(x, y), z)
#define MP_REAL_DIVIDE             DIV(x, y)
#define MP_REAL_FLOOR              FLOOR(x)
#define MP_REAL_IS_FINITE          LESS(ABS(x), NUM(INFINITY))
#define MP_REAL_MAXIMUM            LARGER(x, y)
#define MP_REAL_MINIMUM            SMALLER(x, y)
#define MP_REAL_MULTIPLY           MUL(x, y)
#define MP_REAL_NEGATE             NEG(x)
#define MP_REAL_ROUND_NEAREST_EVEN ROUND_EVEN(x)
#define MP_REAL_RSQRT              DIV(NUM(1), SQRT(x))
#define MP_REAL_SQRT               SQRT(x)
#define MP_REAL_SUBTRACT           SUB(x, y)
// To nearest, halves away from zero, without the error of adding 0.5 to 0.49999997.
#define MP_REAL_ROUND_NEAREST_AFZ                                                       \
  SELECT(AT_LEAST(ABS(SUB(x, TRUNC(x))), NUM(0.5)), ADD(TRUNC(x), COPYSIGN(NUM(1), x)), \
         COPYSIGN(TRUNC(x), x))
// Zeros and NaNs are their own signs.
#define MP_REAL_SIGN SELECT(GREATER(ABS(x), NUM(0)), COPYSIGN(NUM(1), x), x)
// NaN if one of the two is NaN, the first one if both are. Equal operands differ in the sign of
// zero at most: "and" keeps +0, "or" -0.
#define MP_LARGER \
  CHOOSE(EQUAL(x, y), OF_I(IAND(I_OF(x), I_OF(y))), SELECT(EITHER(GREATER(x, y), IS_NAN(x)), x, y))
#define MP_SMALLER \
  CHOOSE(EQUAL(x, y), OF_I(IOR(I_OF(x), I_OF(y))), SELECT(EITHER(LESS(x, y), IS_NAN(x)), x, y))

// ---- the lists ----

// clang-format changes these macros anew each time it runs.
// clang-format off
#define MP_INT_OPS(X, with)                                                                        \
  X(INT, ADD, 2, with) X(INT, AND, 2, with) X(INT, CLAMP, 3, with)                                 \
  X(INT, COUNT_LEADING_ZEROS, 1, with) X(INT, MAXIMUM, 2, with) X(INT, MINIMUM, 2, with)           \
  X(INT, MULTIPLY, 2, with) X(INT, NEGATE, 1, with) X(INT, NOT, 1, with) X(INT, OR, 2, with)       \
  X(INT, POPCNT, 1, with) X(INT, SHIFT_LEFT, 2, with) X(INT, SHIFT_RIGHT_ARITHMETIC, 2, with)      \
  X(INT, SHIFT_RIGHT_LOGICAL, 2, with) X(INT, SUBTRACT, 2, with) X(INT, XOR, 2, with)
// Besides these.
#define MP_SIGNED_OPS(X, with)                                                                     \
  X(SIGNED, ABS, 1, with) X(SIGNED, DIVIDE, 2, with) X(SIGNED, REMAINDER, 2, with)                 \
  X(SIGNED, SIGN, 1, with)
#define MP_UNSIGNED_OPS(X, with)                                                                   \
  X(UNSIGNED, ABS, 1, with) X(UNSIGNED, DIVIDE, 2, with) X(UNSIGNED, REMAINDER, 2, with)           \
  X(UNSIGNED, SIGN, 1, with)
// All that are real again.
#define MP_REAL_OPS(X, with)                                                                       \
  X(REAL, ABS, 1, with) X(REAL, ADD, 2, with) X(REAL, CEIL, 1, with) X(REAL, CLAMP, 3, with)       \
  X(REAL, DIVIDE, 2, with) X(REAL, FLOOR, 1, with) X(REAL, MAXIMUM, 2, with)                       \
  X(REAL, MINIMUM, 2, with) X(REAL, MULTIPLY, 2, with) X(REAL, NEGATE, 1, with)                    \
  X(REAL, ROUND_NEAREST_AFZ, 1, with) X(REAL, ROUND_NEAREST_EVEN, 1, with)                         \
  X(REAL, RSQRT, 1, with) X(REAL, SIGN, 1, with) X(REAL, SQRT, 1, with) X(REAL, SUBTRACT, 2, with)
// Functions of f32 that are polynomials: X(op, name), where mp_<name>_f32 is one of meaning_f32.h.
#define MP_REAL_FUNCTIONS(X)                                                                       \
  X(EXPONENTIAL, exp) X(EXPONENTIAL_MINUS_ONE, expm1) X(LOG, log) X(LOG_PLUS_ONE, log1p)           \
  X(LOGISTIC, logistic) X(TANH, tanh)
// Functions of two numbers of f32, computed in double precision: those of meaning_wide.h.
#define MP_WIDE_FUNCTIONS(X) X(POWER, pow)
// The directions of a comparison, with C's operators.
#define MP_DIRECTIONS(X, with)                                                                     \
  X(EQ, ==, with) X(NE, !=, with) X(GE, >=, with) X(GT, >, with) X(LE, <=, with) X(LT, <, with)
// clang-format on

#endif  // MINIPOD_SIM_NUMERIC_MEANING_H_
