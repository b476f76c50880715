#include "sim/base/fault.h"

#include <errno.h>

atomic_bool mp_fault_watching;

// The requests with the numbers first .. last are refused; none while last is 0. In the one order
// of all threads (sequentially consistent), which mp_fault_at relies on and only tests pay for.
typedef struct {
  _Atomic int64_t requests, refusals, first, last;
} fault_state_t;

static fault_state_t g_states[MP_FAULT_COUNT];

static const int k_errors[] = {
#define MP_FAULT_ROW(kind, number) [MP_FAULT_##kind] = number,
    MP_FAULTS(MP_FAULT_ROW)
#undef MP_FAULT_ROW
};

bool mp_fault_count(mp_fault_t kind) {
  fault_state_t *state = &g_states[kind];
  const int64_t number = atomic_fetch_add(&state->requests, 1) + 1;
  if (number < atomic_load(&state->first) || number > atomic_load(&state->last)) return false;
  atomic_fetch_add(&state->refusals, 1);
  errno = k_errors[kind];
  return true;
}

void mp_fault_watch(void) {
  atomic_store(&mp_fault_watching, true);
}

void mp_fault_at(mp_fault_t kind, int64_t n, int64_t length) {
  fault_state_t *state = &g_states[kind];
  // In this order a request of another thread that comes in between is not refused by mistake.
  atomic_store(&state->last, 0);
  atomic_store(&state->requests, 0);
  atomic_store(&state->refusals, 0);
  atomic_store(&state->first, n);
  const bool has_end = n == 0 || length <= INT64_MAX - n;
  atomic_store(&state->last, n == 0 ? 0 : has_end ? n + length - 1 : INT64_MAX);
}

int64_t mp_fault_requests(mp_fault_t kind) {
  return atomic_load(&g_states[kind].requests);
}

int64_t mp_fault_refusals(mp_fault_t kind) {
  return atomic_load(&g_states[kind].refusals);
}
