#include "sim/base/alloc.h"
#include "sim/base/os/futex.h"
#include "sim/base/os/lock.h"
#include "sim/foreign/foreign_api.h"

// Which of the two sides, setter and taker, has acted. The second one frees the future.
enum { OPEN, SET, TAKEN };

struct XLA_FFI_Future {
  atomic_uint phase;
  mp_status_t status;                 // written before it is SET
  void (*done)(void *, mp_status_t);  // written before it is TAKEN
  void *context;
};

mp_status_t mp_foreign_future_create(XLA_FFI_Future **out_future) {
  XLA_FFI_Future *future = mp_calloc(1, sizeof(*future));
  MP_RETURN_IF_NULL(future);
  *out_future = future;
  return NULL;
}

bool mp_foreign_future_set(XLA_FFI_Future *future, mp_status_t status) {
  // Acquire: if it is TAKEN, `done` and `context` were written before. Each side publishes its
  // fields by the release of its exchange; the side that comes second sees them, owns the future
  // and frees it.
  unsigned phase = atomic_load(&future->phase);
  if (phase == OPEN) {
    future->status = status;
    if (atomic_compare_exchange_strong(&future->phase, &phase, SET)) return true;
  }
  if (phase == SET) {
    mp_status_ignore(status);
    return false;
  }
  void (*done)(void *, mp_status_t) = future->done;
  void *context = future->context;
  mp_free(future);
  done(context, status);
  return true;
}

bool mp_foreign_future_take(XLA_FFI_Future *future, void (*done)(void *, mp_status_t),
                            void *context, mp_status_t *out_status) {
  unsigned phase = OPEN;
  future->done = done;
  future->context = context;
  if (atomic_compare_exchange_strong(&future->phase, &phase, TAKEN)) return false;
  *out_status = future->status;
  mp_free(future);
  return true;
}

typedef struct {
  atomic_uint is_over;
  mp_status_t status;
} wait_t;

static void foreign_future_wake(void *context, mp_status_t status) {
  wait_t *wait = context;
  wait->status = status;
  // The waiter may return as soon as it sees this; waking an address where no thread waits is
  // harmless.
  atomic_store(&wait->is_over, 1);
  mp_futex_wake(&wait->is_over, 1);
}

mp_status_t mp_foreign_future_await(XLA_FFI_Future *future) {
  mp_lock_assert_none_held();
  wait_t wait = {.status = NULL};
  mp_status_t status = NULL;
  if (mp_foreign_future_take(future, foreign_future_wake, &wait, &status)) return status;
  while (atomic_load(&wait.is_over) == 0) mp_futex_wait(&wait.is_over, 0, NULL);
  return wait.status;
}
