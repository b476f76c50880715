// Thread pools of the libraries that foreign functions call (OpenBLAS, for LAPACK's).
//
// Such a library divides its work among a number of threads that is set per process. For small
// matrices that costs more than it gains: threads wait for each other, keep cores busy for long
// after the call, and calls of several devices take turns. So a call on small matrices runs only on
// the calling thread, and one on large matrices on all threads of the library. Which of the two
// depends on the call's shapes; calls of the two kinds never overlap, so that no result depends on
// what else runs.
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

// Registers that functions whose names begin with `prefix` use this pool. Only the first
// registration of a prefix counts. INVALID_ARGUMENT without a prefix or a function.
MP_NODISCARD mp_status_t mp_foreign_register_pool(mp_str_t prefix, mp_foreign_pool_calls_t calls);
// The pool that a function of this name uses; NULL: none is known.
mp_foreign_pool_t *mp_foreign_find_pool(mp_str_t name);

// Whether a call is small, by the operations per matrix (sim/work).
bool mp_foreign_pool_is_small(double operations);

// Called before and after a call; NULL has no effect. `enter` waits until no call of the other kind
// runs.
void mp_foreign_pool_enter(mp_foreign_pool_t *pool, bool is_small);
void mp_foreign_pool_leave(mp_foreign_pool_t *pool, bool is_small);

#endif  // MINIPOD_SIM_FOREIGN_FOREIGN_POOL_H_
