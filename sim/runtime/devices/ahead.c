#include "sim/runtime/devices/ahead.h"

#include "sim/base/os/clock.h"
#include "sim/base/os/futex.h"
#include "sim/runtime/devices/device_impl.h"

enum {
  MP_AHEAD_WAKE = 24,      // a thread that waits is woken when no more runs are left than this
  MP_AHEAD_SLICE_MS = 10,  // and checks by itself this often
  MP_AHEAD_BESIDE_MS = 1,  // for a place in side streams
};
// How long to wait for a stream that itself waits for something from outside.
#define MP_AHEAD_PATIENCE 0.1

// ---- Places ----

bool mp_ahead_has_place(const mp_device_t *device) {
  // Relaxed, and not read together: places are not reserved, so a number that is outdated by one
  // run only moves the bound by one.
  const uint32_t runs = atomic_load_explicit(&device->num_ahead, memory_order_relaxed);
  if (runs < MP_AHEAD_FEW) return true;
  const uint64_t bytes = atomic_load_explicit(&device->bytes_ahead, memory_order_relaxed);
  return runs < MP_AHEAD_RUNS && bytes < MP_AHEAD_BYTES;
}

bool mp_ahead_is_awaited(const mp_device_t *device) {
  mp_lock_assert_held(&device->lock);
  if (device->num_waiters == 0) return false;
  // Relaxed: both change under the lock, which is held.
  const uint32_t runs = atomic_load_explicit(&device->num_ahead, memory_order_relaxed);
  const uint64_t bytes = atomic_load_explicit(&device->bytes_ahead, memory_order_relaxed);
  return runs < MP_AHEAD_FEW || (runs <= MP_AHEAD_WAKE && bytes < MP_AHEAD_BYTES);
}

// Sleeps until the end of a run makes a wake-up worth while, or for a short time.
static void ahead_sleep(mp_device_t *device) {
  mp_lock_assert_none_held();
  mp_lock(&device->lock);
  const bool must_wait = !mp_ahead_has_place(device);
  // Read under the lock that an ending run takes: either the check above has counted that run as
  // over, or the run finds the waiter and changes the number on which this thread sleeps.
  const unsigned moves = atomic_load(&device->num_moves);
  device->num_waiters += must_wait;
  mp_unlock(&device->lock);
  if (!must_wait) return;
  const struct timespec slice = {.tv_nsec = MP_AHEAD_SLICE_MS * 1000000};
  mp_futex_wait(&device->num_moves, moves, &slice);
  mp_lock(&device->lock);
  device->num_waiters -= 1;
  mp_unlock(&device->lock);
}

// ---- Waiting ----

// True when threads have waited long enough for the stream, which waits for an input: this thread
// now, or an earlier launch since the stream last moved.
static bool ahead_is_in_vain(mp_device_t *device, uint64_t completed, bool is_tired) {
  // Relaxed: the number orders nothing else, and a thread that misses it waits once more.
  if (is_tired) {
    atomic_store_explicit(&device->waited_in_vain, completed + 1, memory_order_relaxed);
  }
  return atomic_load_explicit(&device->waited_in_vain, memory_order_relaxed) == completed + 1;
}

void mp_ahead_await(mp_device_t *device, bool *has_looked) {
  mp_client_t *client = device->client;
  uint64_t completed = mp_device_completed(device);
  double since = mp_clock_seconds();
  while (!mp_ahead_has_place(device) && !mp_client_is_stopping(client)) {
    if (!*has_looked) {
      const mp_holdup_t holdup = client->runner->find_holdup(device);
      if (holdup == MP_HOLDUP_LAUNCH) return;
      const bool is_tired = mp_clock_seconds() - since >= MP_AHEAD_PATIENCE;
      if (holdup == MP_HOLDUP_CALL && is_tired) return;
      if (holdup == MP_HOLDUP_INPUT && ahead_is_in_vain(device, completed, is_tired)) return;
    }
    *has_looked = false;
    ahead_sleep(device);
    const uint64_t now = mp_device_completed(device);
    if (now != completed) since = mp_clock_seconds();
    completed = now;
  }
  *has_looked = true;
}

bool mp_ahead_has_place_beside(const mp_device_t *device) {
  // Relaxed, as in mp_ahead_has_place.
  return atomic_load_explicit(&device->num_beside, memory_order_relaxed) < MP_AHEAD_RUNS;
}

void mp_ahead_await_beside(mp_device_t *device) {
  mp_lock_assert_none_held();
  const struct timespec slice = {.tv_nsec = MP_AHEAD_BESIDE_MS * 1000000};
  unsigned left = atomic_load(&device->num_beside);
  double since = mp_clock_seconds();
  while (!mp_ahead_has_place_beside(device) && !mp_client_is_stopping(device->client)) {
    if (mp_clock_seconds() - since >= MP_AHEAD_PATIENCE) return;
    mp_futex_wait(&device->num_beside, left, &slice);  // no wake-up comes
    const unsigned now = atomic_load(&device->num_beside);
    if (now < left) since = mp_clock_seconds();
    left = now;
  }
}
