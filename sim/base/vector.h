// Loops that compilers turn into vector code.
#ifndef MINIPOD_SIM_BASE_VECTOR_H_
#define MINIPOD_SIM_BASE_VECTOR_H_

#include <stdbool.h>
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

// What code for AVX-512 (F, BW, DQ, VL) that is chosen by hand is compiled for, and whether this
// machine runs it.
#ifdef __x86_64__
#define MP_AVX512 __attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,fma")))
static inline bool mp_has_avx512(void) {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
}
#endif

// Asks for `bytes` bytes, `shift` bytes behind an array's begin, to come into the cache. They need
// not be part of the array.
static inline void mp_prefetch(const void *array, int64_t shift, int64_t bytes) {
  enum { LINE = 64 };
  for (int64_t i = 0; i < bytes; i += LINE) {
    __builtin_prefetch((const void *)((uintptr_t)array + (uintptr_t)(shift + i)));
  }
}

#endif  // MINIPOD_SIM_BASE_VECTOR_H_
