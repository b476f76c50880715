// Thread pools of the libraries that foreign functions call (OpenBLAS, for LAPACK's).
//
// Such a library cuts its work by a number of threads that is the process's. For small matrices
// that costs more than it gives: threads wait for each other, those of one call keep the cores from
// the workers for long after it, and calls of several devices at once take turns. So a call on
// small matrices runs on the thread that makes it alone, and one on large matrices on as many as
// the library has. Which of the two depends on the call's shapes; calls of the two kinds never
// overlap, so that no result depends on what else runs.
//
// A number of threads that the user has chosen is never changed.
#ifndef MINIPOD_SIM_FOREIGN_FOREIGN_POOL_H_
#define MINIPOD_SIM_FOREIGN_FOREIGN_POOL_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/base/str.h"

// The pool of a library. It is never freed.
typedef struct mp_foreign_pool_s mp_foreign_pool_t;

// The library's functions, thread-safe, and its number of threads by default.
typedef struct {
  int (*get)(void);
  void (*set)(int threads);
  int usual;
} mp_foreign_pool_calls_t;

// Says that the functions whose names begin with `prefix` use this pool. The first one of a prefix
// stays. INVALID_ARGUMENT without a prefix or a function.
MP_NODISCARD mp_status_t mp_foreign_register_pool(mp_str_t prefix, mp_foreign_pool_calls_t calls);
// The pool that a function of this name uses; NULL: none, or none that we know of.
mp_foreign_pool_t *mp_foreign_find_pool(mp_str_t name);

// Whether a call is small of which a matrix takes so many operations (sim/work).
bool mp_foreign_pool_is_small(double operations);

// Around a call; NULL has no effect. Waits until no call of the other kind runs.
void mp_foreign_pool_enter(mp_foreign_pool_t *pool, bool is_small);
void mp_foreign_pool_leave(mp_foreign_pool_t *pool, bool is_small);

#endif  // MINIPOD_SIM_FOREIGN_FOREIGN_POOL_H_
