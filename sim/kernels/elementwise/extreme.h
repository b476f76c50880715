// The larger and the smaller one of two floating-point numbers, without branches.
#ifndef MINIPOD_SIM_KERNELS_ELEMENTWISE_EXTREME_H_
#define MINIPOD_SIM_KERNELS_ELEMENTWISE_EXTREME_H_

#include <stdint.h>
#include <string.h>

// NaN if one of the two is NaN, the first one if both are. Equal operands differ in the sign of
// zero at most: "and" keeps +0, "or" -0.
#define MP_EXTREME(name, T, U)                      \
  static inline T mp_max_##name(T x, T y) {         \
    U a, b;                                         \
    memcpy(&a, &x, sizeof(a));                      \
    memcpy(&b, &y, sizeof(b));                      \
    const T larger = ((x > y) | (x != x)) ? x : y;  \
    const U both = a & b;                           \
    T equal;                                        \
    memcpy(&equal, &both, sizeof(equal));           \
    return x == y ? equal : larger;                 \
  }                                                 \
  static inline T mp_min_##name(T x, T y) {         \
    U a, b;                                         \
    memcpy(&a, &x, sizeof(a));                      \
    memcpy(&b, &y, sizeof(b));                      \
    const T smaller = ((x < y) | (x != x)) ? x : y; \
    const U both = a | b;                           \
    T equal;                                        \
    memcpy(&equal, &both, sizeof(equal));           \
    return x == y ? equal : smaller;                \
  }
MP_EXTREME(f32, float, uint32_t)
MP_EXTREME(f64, double, uint64_t)

#endif  // MINIPOD_SIM_KERNELS_ELEMENTWISE_EXTREME_H_
