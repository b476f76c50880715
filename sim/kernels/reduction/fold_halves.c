// The end of a row: the accumulators of all lanes become one, by folding the upper half into the
// lower one again and again. For the usual folds all halves are in one function.
#include "sim/kernels/reduction/fold_halves.h"

#include "sim/base/vector.h"
#include "sim/kernels/elementwise/extreme.h"

#define HALF(n, T, expr)                             \
  MP_INDEPENDENT for (int64_t i = 0; i < (n); ++i) { \
    const T x = p[i], y = p[i + (n)];                \
    p[i] = (expr);                                   \
  }

_Static_assert(MP_FOLD_LANES == 512, "the halves below are those of 512 lanes");

#define HALVES(name, T, expr)                           \
  MP_VECTOR static void fold_halves_##name(void *acc) { \
    T *p = acc;                                         \
    HALF(256, T, expr)                                  \
    HALF(128, T, expr)                                  \
    HALF(64, T, expr)                                   \
    HALF(32, T, expr)                                   \
    HALF(16, T, expr)                                   \
    HALF(8, T, expr)                                    \
    HALF(4, T, expr)                                    \
    HALF(2, T, expr)                                    \
    HALF(1, T, expr)                                    \
  }

HALVES(add_f32, float, x + y)
HALVES(max_f32, float, mp_max_f32(x, y))
HALVES(min_f32, float, mp_min_f32(x, y))
HALVES(add_f64, double, x + y)
HALVES(max_f64, double, mp_max_f64(x, y))
HALVES(min_f64, double, mp_min_f64(x, y))

mp_fold_halves_t mp_fold_find_halves(mp_reduce_kind_t kind, mp_dtype_t dtype) {
  const bool is_f32 = dtype == MP_DTYPE_F32;
  if (!is_f32 && dtype != MP_DTYPE_F64) return NULL;
  switch (kind) {
    case MP_REDUCE_ADD:
      return is_f32 ? fold_halves_add_f32 : fold_halves_add_f64;
    case MP_REDUCE_MAX:
      return is_f32 ? fold_halves_max_f32 : fold_halves_max_f64;
    case MP_REDUCE_MIN:
      return is_f32 ? fold_halves_min_f32 : fold_halves_min_f64;
    default:
      return NULL;
  }
}
