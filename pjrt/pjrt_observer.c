#include "pjrt/pjrt_observer.h"

// Relaxed: what it points to is a constant of the library, and the maker of a client has called
// GetPjrtApi, which sets it.
static _Atomic(const mp_pjrt_observer_t *) g_observer;

static const mp_pjrt_observer_t *pjrt_observer_get(void) {
  return atomic_load_explicit(&g_observer, memory_order_relaxed);
}

void mp_pjrt_observe(const mp_pjrt_observer_t *observer) {
  atomic_store_explicit(&g_observer, observer, memory_order_relaxed);
}

mp_status_t mp_pjrt_observe_client(PJRT_Client *client, const mp_options_t *options) {
  const mp_pjrt_observer_t *observer = pjrt_observer_get();
  return observer == NULL ? NULL : observer->client_made(client, options);
}

void mp_pjrt_observe_client_end(PJRT_Client *client) {
  const mp_pjrt_observer_t *observer = pjrt_observer_get();
  if (observer != NULL) observer->client_ends(client);
}

mp_status_t mp_pjrt_observe_program(const mp_program_t *program) {
  const mp_pjrt_observer_t *observer = pjrt_observer_get();
  return observer == NULL ? NULL : observer->program_made(program);
}

int64_t mp_pjrt_observe_launch(void) {
  const mp_pjrt_observer_t *observer = pjrt_observer_get();
  return observer == NULL ? 0 : observer->launch_begins();
}

void mp_pjrt_observe_launched(int64_t begin, const PJRT_Executable *executable,
                              const uint32_t *logical, mp_event_t *const *done,
                              size_t num_devices) {
  const mp_pjrt_observer_t *observer = pjrt_observer_get();
  if (observer != NULL) observer->launch_made(begin, executable, logical, done, num_devices);
}
