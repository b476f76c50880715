// Decides when code has run for so long that compiling it pays off.
#include <stdatomic.h>

#include "sim/native/native.h"

// Set with each client; a run that still reads the old one compiles a little early or late.
static _Atomic int g_policy = MP_NATIVE_WHEN_HOT;

void mp_native_set_policy(mp_native_policy_t policy) {
  atomic_store(&g_policy, (int)policy);
}

// About as long as compiling takes, so that little is lost if the code does not run again.
#define HOT_NANOSECONDS          UINT64_C(5000000)
#define HOT_NANOSECONDS_PER_STEP UINT64_C(250000)

// The heat from the moment when a thread compiles the code.
#define TAKEN (UINT64_MAX / 2)

bool mp_native_heat(mp_native_heat_t *heat, uint64_t nanoseconds, uint32_t num_steps) {
  const int policy = atomic_load_explicit(&g_policy, memory_order_relaxed);
  if (policy == MP_NATIVE_NEVER) return false;
  // Relaxed: times only add up. The thread that stores the function publishes the compiled code.
  uint64_t so_far = atomic_load_explicit(&heat->nanoseconds, memory_order_relaxed);
  if (so_far >= TAKEN) return false;
  so_far = nanoseconds +
           atomic_fetch_add_explicit(&heat->nanoseconds, nanoseconds, memory_order_relaxed);
  const uint64_t hot = HOT_NANOSECONDS + num_steps * HOT_NANOSECONDS_PER_STEP;
  if (policy == MP_NATIVE_WHEN_HOT && so_far < hot) return false;
  // Several threads may find the code hot at the same time: the exchange lets one of them compile.
  return atomic_exchange(&heat->nanoseconds, TAKEN) < TAKEN;
}
