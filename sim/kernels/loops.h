// Building blocks of vectorisable loops, private to sim/kernels.
#ifndef MINIPOD_SIM_KERNELS_LOOPS_H_
#define MINIPOD_SIM_KERNELS_LOOPS_H_

#include <stdint.h>

#include "sim/base/vector.h"

// A loop function (mp_ew_loop_t) over one, two or three inputs. `expr` computes from x, y, z.
#define MP_LOOP1(name, in_t, out_t, expr)                                   \
  MP_VECTOR static void name(int64_t n, const void *const *in, void *out) { \
    const in_t *a = in[0];                                                  \
    out_t *r = out;                                                         \
    MP_INDEPENDENT for (int64_t i = 0; i < n; ++i) {                        \
      in_t x = a[i];                                                        \
      r[i] = (out_t)(expr);                                                 \
    }                                                                       \
  }
#define MP_LOOP2(name, in_t, out_t, expr)                                   \
  MP_VECTOR static void name(int64_t n, const void *const *in, void *out) { \
    const in_t *a = in[0], *b = in[1];                                      \
    out_t *r = out;                                                         \
    MP_INDEPENDENT for (int64_t i = 0; i < n; ++i) {                        \
      in_t x = a[i], y = b[i];                                              \
      r[i] = (out_t)(expr);                                                 \
    }                                                                       \
  }
#define MP_LOOP3(name, in_t, out_t, expr)                                   \
  MP_VECTOR static void name(int64_t n, const void *const *in, void *out) { \
    const in_t *a = in[0], *b = in[1], *c = in[2];                          \
    out_t *r = out;                                                         \
    MP_INDEPENDENT for (int64_t i = 0; i < n; ++i) {                        \
      in_t x = a[i], y = b[i], z = c[i];                                    \
      r[i] = (out_t)(expr);                                                 \
    }                                                                       \
  }

// The same over two inputs; the left or the right one is a scalar.
#define MP_LOOP_LEFT(name, T, R, expr)                                             \
  MP_VECTOR static void name##_left(int64_t n, const void *const *in, void *out) { \
    const T x = *(const T *)in[0];                                                 \
    const T *b = in[1];                                                            \
    R *r = out;                                                                    \
    MP_INDEPENDENT for (int64_t i = 0; i < n; ++i) {                               \
      T y = b[i];                                                                  \
      r[i] = (R)(expr);                                                            \
    }                                                                              \
  }
#define MP_LOOP_RIGHT(name, T, R, expr)                                             \
  MP_VECTOR static void name##_right(int64_t n, const void *const *in, void *out) { \
    const T *a = in[0];                                                             \
    const T y = *(const T *)in[1];                                                  \
    R *r = out;                                                                     \
    MP_INDEPENDENT for (int64_t i = 0; i < n; ++i) {                                \
      T x = a[i];                                                                   \
      r[i] = (R)(expr);                                                             \
    }                                                                               \
  }

#endif  // MINIPOD_SIM_KERNELS_LOOPS_H_
