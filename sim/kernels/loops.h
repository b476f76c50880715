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

// Makes three versions of a function, of which one is chosen when the library is loaded: for
// machines with AVX-512 (F, BW, CD, DQ, VL), for machines with AVX2 and FMA, and for all others.
// They give the same bits, because nothing here lets the compiler fuse a product and a sum on its
// own. A function that asks for it with __builtin_fma is fast in the first two; in the third it
// calls the C library.
//
// The names are those of the instruction set's levels. The name of a processor, such as
// "arch=haswell", would choose a version on that very processor and on no later one.
//
// Not under sanitizers: they cannot run before the choice is made.
#if defined(__x86_64__) && defined(__ELF__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__) && !defined(MINIPOD_SANITIZED) && !defined(__clang__)
#define MP_VECTOR __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define MP_VECTOR
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
