#include "sim/runtime/guest.h"

#include "sim/base/alloc.h"
#include "sim/base/clock.h"

// A launch that takes less than this on one core is done by the caller's own thread: waking a
// worker would take as long.
#define MP_GUEST_SECONDS 100e-6
// The guess may be wrong. An executable that takes this long twice in a row, or often, is for the
// workers from then on. Who runs it never changes its results.
#define MP_SLOW_SECONDS 500e-6
enum { MP_SLOW_STEP = 4, MP_TOO_SLOW = 8 };

mp_worker_t *mp_guest_get(const mp_executable_t *executable, uint32_t num_devices) {
  mp_client_t *client = executable->client;
  bool is_small = executable->guest_seconds * num_devices < MP_GUEST_SECONDS;
  bool is_slow = atomic_load_explicit(&executable->slowness, memory_order_relaxed) >= MP_TOO_SLOW;
  if (!is_small || is_slow || mp_worker_current() != NULL) return NULL;
  mp_worker_t *guest = atomic_exchange(&client->spare_guest, NULL);
  if (guest == NULL) guest = mp_calloc(1, sizeof(*guest));
  if (guest == NULL) return NULL;
  guest->client = client;
  guest->is_guest = true;
  return guest;
}

void mp_guest_put(mp_worker_t *guest) {
  mp_worker_t *expected = NULL;
  if (!atomic_compare_exchange_strong(&guest->client->spare_guest, &expected, guest)) {
    mp_worker_free_guest(guest);
  }
}

void mp_guest_launch(mp_worker_t *guest, mp_executable_t *executable, mp_device_list_t *devices) {
  mp_client_t *client = executable->client;
  guest->own = *devices;
  double begin = mp_clock_seconds();
  atomic_fetch_add(&client->num_guests, 1);
  mp_guest_run(guest);
  atomic_fetch_sub(&client->num_guests, 1);
  if (mp_clock_seconds() - begin > MP_SLOW_SECONDS) {
    atomic_fetch_add(&executable->slowness, MP_SLOW_STEP);
  } else if (atomic_load_explicit(&executable->slowness, memory_order_relaxed) > 0) {
    atomic_fetch_sub(&executable->slowness, 1);
  }
}
