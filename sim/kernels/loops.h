// Building blocks of vectorisable loops, private to sim/kernels.
#ifndef MINIPOD_SIM_KERNELS_LOOPS_H_
#define MINIPOD_SIM_KERNELS_LOOPS_H_

#include <stdint.h>

// Promises the compiler that the iterations of a loop are independent, because its arrays are
// either the same or disjoint.
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed"  // loops that stay scalar are fine
#define MP_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define MP_INDEPENDENT _Pragma("GCC ivdep")
#endif

// Makes a second version of a function for machines with AVX2, chosen when the library is loaded.
// Not under sanitizers: they cannot run before the choice is made.
#if defined(__x86_64__) && defined(__ELF__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__) && !defined(MINIPOD_SANITIZED) && !defined(__clang__)
#define MP_VECTOR __attribute__((target_clones("avx2", "default")))
// The same for a function that uses __builtin_fma, which every machine with AVX2 has.
#define MP_VECTOR_FMA __attribute__((target_clones("arch=haswell", "default")))
#else
#define MP_VECTOR
#define MP_VECTOR_FMA
#endif

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

#endif  // MINIPOD_SIM_KERNELS_LOOPS_H_
