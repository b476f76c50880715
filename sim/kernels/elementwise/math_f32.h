// Functions of f32 that compilers turn into vector code, private to sim/kernels: those of
// sim/numeric/meaning_f32.h, and sine and cosine. The statements of meaning_f32.h hold for these,
// too; their greatest errors are 0.99 and 0.96.
#ifndef MINIPOD_SIM_KERNELS_ELEMENTWISE_MATH_F32_H_
#define MINIPOD_SIM_KERNELS_ELEMENTWISE_MATH_F32_H_

#include "sim/numeric/words.h"

// x y + z, rounded once.
static inline float mp_fma(float x, float y, float z) {
  return __builtin_fmaf(x, y, z);
}

#define FUNCTION(type, name, ...) static inline type name(__VA_ARGS__)
#define CALL(name, ...)           name(__VA_ARGS__)
#define REAL                      float
#define BITS                      uint32_t
#define FMA                       mp_fma
#define INUM(n)                   ((uint32_t)(n))
#define ISUB(a, b)                ((a) - (b))
#define INOT(a)                   (~(a))
#define ISHL(a, n)                ((a) << (n))
#define ISHR(a, n)                ((a) >> (n))
#define ISAR(a, n)                ((uint32_t)((int32_t)(a) >> (n)))
#define ILESS(a, b)               ((int32_t)(a) < (int32_t)(b))
#define IMIN(a, b)                ((a) < (b) ? (a) : (b))
#define REAL_OF(a)                ((float)(int32_t)(a))
#include "sim/numeric/meaning_f32.h"

// ---- sine and cosine ----

// The reduction below is not exact enough for larger arguments.
#define MP_TRIG_MAX 1e6f

// x = k pi/2 + r + r_low with an integer k and |r| < 0.79.
typedef struct {
  float sine, cosine;  // of r + r_low
  uint32_t quadrant;   // the last two bits are those of k
} mp_turn_t;

// For |x| <= MP_TRIG_MAX. pi/2 is subtracted in three pieces; the first leaves an exact rest.
static inline mp_turn_t mp_turn_f32(float x) {
  float shifted = mp_fma(x, 0x1.45f306p-1f, 0x1.8p23f), k = shifted - 0x1.8p23f;
  float r_high = mp_fma(k, -0x1.921fb6p+0f, x);
  float second = k * 0x1.777a5cp-25f, r = r_high + second;
  float r_low = (second - (r - r_high)) + mp_fma(k, 0x1.777a5cp-25f, -second);
  r_low = mp_fma(k, 0x1.ee59dap-50f, r_low);
  float square = r * r;
  float s = mp_fma(square, -0x1.991bf4p-13f, 0x1.1106c6p-7f);
  s = mp_fma(square, s, -0x1.555544p-3f);
  float c = mp_fma(square, 0x1.99e70ap-16f, -0x1.6c0c26p-10f);
  c = mp_fma(square, c, 0x1.55554ap-5f);
  float cosine = mp_fma(square, -0.5f, 1), lost = mp_fma(square, -0.5f, 1 - cosine);
  lost = mp_fma(square * square, c, mp_fma(r, -r_low, lost));
  return (mp_turn_t){r + mp_fma(r * square, s, r_low), cosine + lost, mp_f32_bits(shifted)};
}

// The sine of x + quarters * pi/2, for |x| <= MP_TRIG_MAX.
static inline float mp_turned_sine(float x, uint32_t quarters) {
  mp_turn_t turn = mp_turn_f32(x);
  uint32_t quadrant = turn.quadrant + quarters;
  float y = (quadrant & 1) != 0 ? turn.cosine : turn.sine;
  return mp_f32_of_bits(mp_f32_bits(y) ^ ((quadrant & 2) << 30));
}

// sin(x) for |x| <= MP_TRIG_MAX.
static inline float mp_sin_f32(float x) {
  float y = mp_turned_sine(x, 0);
  return x == 0 ? x : y;
}

// cos(x) for |x| <= MP_TRIG_MAX.
static inline float mp_cos_f32(float x) {
  return mp_turned_sine(x, 1);
}

#endif  // MINIPOD_SIM_KERNELS_ELEMENTWISE_MATH_F32_H_
