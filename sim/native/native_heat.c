// When something has run for so long that compiling it pays.
#include <stdatomic.h>

#include "sim/native/native.h"

// Set with each client; a run that still finds the old one compiles a little early or late.
static _Atomic int g_policy = MP_NATIVE_WHEN_HOT;

void mp_native_set_policy(mp_native_policy_t policy) {
  atomic_store(&g_policy, (int)policy);
}

// About as long as compiling takes, so that what does not run again has lost little.
#define HOT_NANOSECONDS          UINT64_C(5000000)
#define HOT_NANOSECONDS_PER_STEP UINT64_C(250000)

// What the heat is when it is somebody's turn to compile, and after that.
#define TAKEN (UINT64_MAX / 2)

bool mp_native_heat(mp_native_heat_t *heat, uint64_t nanoseconds, uint32_t num_steps) {
  const int policy = atomic_load_explicit(&g_policy, memory_order_relaxed);
  if (policy == MP_NATIVE_NEVER) return false;
  // Relaxed: times only add up. What has been compiled is published by whoever stores the function.
  uint64_t so_far = atomic_load_explicit(&heat->nanoseconds, memory_order_relaxed);
  if (so_far >= TAKEN) return false;
  so_far = nanoseconds +
           atomic_fetch_add_explicit(&heat->nanoseconds, nanoseconds, memory_order_relaxed);
  const uint64_t hot = HOT_NANOSECONDS + num_steps * HOT_NANOSECONDS_PER_STEP;
  if (policy == MP_NATIVE_WHEN_HOT && so_far < hot) return false;
  // Several threads may find it hot at once: the exchange lets one of them compile.
  return atomic_exchange(&heat->nanoseconds, TAKEN) < TAKEN;
}
