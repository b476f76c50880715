#include "sim/kernels/lanes.h"

#include <string.h>

#include "sim/base/assert.h"

typedef struct {
  uint64_t words[2];
} bytes16_t;

#define ELEMENTS(X) \
  X(1, uint8_t)     \
  X(2, uint16_t)    \
  X(4, uint32_t)    \
  X(8, uint64_t)    \
  X(16, bytes16_t)

void mp_lanes_gather(size_t element, int64_t n, const void *array, const int64_t *index,
                     void *lanes) {
  switch (element) {
#define GATHER(bytes, T)                                    \
  case bytes: {                                             \
    const T *from = array;                                  \
    T *to = lanes;                                          \
    for (int64_t i = 0; i < n; ++i) to[i] = from[index[i]]; \
    break;                                                  \
  }
    ELEMENTS(GATHER)
#undef GATHER
    default:
      MP_ASSERT_NOT_REACHED();
  }
}

void mp_lanes_gather_runs(size_t element, int64_t n, int64_t count, const void *array,
                          const int64_t *index, void *lanes) {
  switch (element) {
#define GATHER_RUNS(bytes, T)                                  \
  case bytes:                                                  \
    for (int64_t i = 0; i < n; ++i) {                          \
      const T *from = (const T *)array + index[i];             \
      T *to = (T *)lanes + i;                                  \
      for (int64_t t = 0; t < count; ++t) to[t * n] = from[t]; \
    }                                                          \
    break;
    ELEMENTS(GATHER_RUNS)
#undef GATHER_RUNS
    default:
      MP_ASSERT_NOT_REACHED();
  }
}

void mp_lanes_scatter(size_t element, int64_t n, const void *lanes, const int64_t *index,
                      void *array) {
  switch (element) {
#define SCATTER(bytes, T)                                   \
  case bytes: {                                             \
    const T *from = lanes;                                  \
    T *to = array;                                          \
    for (int64_t i = 0; i < n; ++i) to[index[i]] = from[i]; \
    break;                                                  \
  }
    ELEMENTS(SCATTER)
#undef SCATTER
    default:
      MP_ASSERT_NOT_REACHED();
  }
}
