// Elements that are computed when a kernel requests them, in place of an operand that is an array.
#ifndef MINIPOD_SIM_KERNELS_SOURCE_H_
#define MINIPOD_SIM_KERNELS_SOURCE_H_

#include <stdint.h>

// The most elements that a kernel requests at once.
enum { MP_SOURCE_MOST = 1024 };

// `load` returns `count` elements from number `first` on, at most MP_SOURCE_MOST; they stay until
// the next call. It may compute elements before `limit` ahead: the kernel sets `limit` if it will
// request them next. For one thread.
typedef struct mp_source_s mp_source_t;
struct mp_source_s {
  const char *(*load)(mp_source_t *source, int64_t first, int64_t count);
  int64_t limit;
};

#endif  // MINIPOD_SIM_KERNELS_SOURCE_H_
