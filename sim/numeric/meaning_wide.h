// Functions of f32 that are computed in double precision, in words as those of meaning_f32.h.
//
// They have no branches and round once: the error is below 0.51 units in the last place. The series
// are Taylor's, on intervals that are short enough for them. NaN gives NaN; signs of zero and
// infinities are as in C99 annex F.
//
// Beside what meaning_f32.h asks for, the including file defines WIDE: the type of an f64, LBITS:
// that of an integer of 64 bits; WIDEN and NARROW, from f32 to f64 and back; WFMA, the FMA of f64;
// of integers of 64 bits LNUM(n), LADD, LSAR(x, n), and LREAL_OF: the signed integer as an f64.

// Adding this to a number rounds it to an integer, which is then in the last bits of the sum.
#define MP_WIDE_TO_INTEGER 0x1.8p52

// The binary logarithm of x > 0, which is a float: within 2^-49 of it. x = 2^k m with m between
// the roots of 1/2 and 2, and log m = 2 artanh f with f = (m - 1) / (m + 1).
FUNCTION(WIDE, mp_log2_wide, WIDE x) {
  IN_TYPE(F64);
  const LBITS bits = I_OF(x), k = LSAR(ISUB(bits, LNUM(0x3fe6a09e667f3bcd)), 52);
  const WIDE m = OF_I(ISUB(bits, ISHL(k, 52)));
  const WIDE f = DIV(SUB(m, NUM(1)), ADD(m, NUM(1))), s = MUL(f, f);
  const WIDE s2 = MUL(s, s), s4 = MUL(s2, s2);
  const WIDE a = WFMA(s, NUM(2.0 / 3), NUM(2)), b = WFMA(s, NUM(2.0 / 7), NUM(2.0 / 5));
  const WIDE c = WFMA(s, NUM(2.0 / 11), NUM(2.0 / 9)), d = WFMA(s, NUM(2.0 / 15), NUM(2.0 / 13));
  const WIDE low = WFMA(s4, WFMA(s2, d, c), WFMA(s2, b, a));
  const WIDE high = WFMA(s, NUM(2.0 / 19), NUM(2.0 / 17));
  const WIDE log_m = MUL(f, WFMA(MUL(s4, s4), high, low));
  return WFMA(log_m, NUM(0x1.71547652b82fep+0), LREAL_OF(k));
}

// 2^t for |t| <= 200.
FUNCTION(WIDE, mp_exp2_wide, WIDE t) {
  IN_TYPE(F64);
  const WIDE shifted = ADD(t, NUM(MP_WIDE_TO_INTEGER));
  const WIDE whole = SUB(shifted, NUM(MP_WIDE_TO_INTEGER));
  const WIDE u = MUL(SUB(t, whole), NUM(0x1.62e42fefa39efp-1));
  const WIDE u2 = MUL(u, u), u4 = MUL(u2, u2);
  const WIDE a = ADD(u, NUM(1)), b = WFMA(u, NUM(1.0 / 6), NUM(0.5));
  const WIDE c = WFMA(u, NUM(1.0 / 120), NUM(1.0 / 24)),
             d = WFMA(u, NUM(1.0 / 5040), NUM(1.0 / 720));
  const WIDE e8 = WFMA(u, NUM(1.0 / 362880), NUM(1.0 / 40320));
  const WIDE e10 = WFMA(u, NUM(1.0 / 39916800), NUM(1.0 / 3628800));
  const WIDE low = WFMA(u4, WFMA(u2, d, c), WFMA(u2, b, a)), high = WFMA(u2, e10, e8);
  const WIDE sum = WFMA(MUL(u4, u4), high, low);
  return MUL(sum, OF_I(ISHL(LADD(I_OF(shifted), LNUM(1023)), 52)));
}

// a to the power of y, for a >= 0. Beyond 2^200 it is infinity as a float, below 2^-200 zero.
FUNCTION(WIDE, mp_pow_wide, WIDE a, WIDE y) {
  IN_TYPE(F64);
  WIDE log = CALL(mp_log2_wide, a);
  log = SELECT(EQUAL(a, NUM(0)), NUM(-INFINITY), log);
  log = SELECT(LESS(a, NUM(INFINITY)), log, a);
  WIDE t = MUL(y, log);
  t = SELECT(GREATER(t, NUM(200)), NUM(200), t);
  t = SELECT(LESS(t, NUM(-200)), NUM(-200), t);
  const WIDE power = CALL(mp_exp2_wide, t);
  return SELECT(EQUAL(a, NUM(1)), NUM(1), SELECT(IS_NAN(t), t, power));
}

// `power`, which is |x| to the power of y, corrected where x is negative or -0.
FUNCTION(REAL, mp_pow_sign, REAL x, REAL y, REAL power) {
  IN_TYPE(F32);
  // Floats from 2^24 on are even.
  const REAL half = MUL(y, NUM(0.5f));
  const REAL odd = SELECT(ILESS(I_OF(x), INUM(0)), NEG(power), power);
  const REAL of_whole = SELECT(EQUAL(FLOOR(half), half), power, odd);
  const REAL of_finite = SELECT(LESS(x, NUM(0)), NUM(NAN), power);
  const REAL of_other = SELECT(LESS(ABS(x), NUM(INFINITY)), of_finite, power);
  return SELECT(EQUAL(FLOOR(y), y), of_whole, of_other);
}

// x to the power of y.
FUNCTION(REAL, mp_pow_f32, REAL x, REAL y) {
  IN_TYPE(F32);
  const WIDE power = CALL(mp_pow_wide, WIDEN(ABS(x)), WIDEN(y));
  const REAL result = CALL(mp_pow_sign, x, y, NARROW(power));
  const REAL valid = SELECT(EITHER(IS_NAN(x), IS_NAN(y)), ADD(x, y), result);
  return SELECT(EITHER(EQUAL(x, NUM(1)), EQUAL(y, NUM(0))), NUM(1), valid);
}
