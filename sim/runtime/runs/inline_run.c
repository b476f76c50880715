#include "sim/runtime/runs/inline_run.h"

#include <sched.h>

#include "sim/base/alloc.h"
#include "sim/base/os/clock.h"
#include "sim/runtime/devices/device_impl.h"
#include "sim/runtime/devices/launching.h"
#include "sim/runtime/runs/deadlock.h"
#include "sim/runtime/runs/run.h"
#include "sim/runtime/workers/workers.h"

// The caller's own thread runs a launch that is estimated to take less than this on one core:
// waking a worker would take as long.
#define MP_INLINE_SECONDS 100e-6
// The guess may be wrong. An executable whose inline runs take longer than this twice in a row, or
// often, is left to the workers for a while: each such run adds MP_SLOW_STEP to its slowness, any
// other takes 1 off. Perhaps the machine was slow, so another inline run is tried after
// MP_FIRST_BREAK launches. Each time that this one is slow too, the number of launches doubles.
#define MP_SLOW_SECONDS 500e-6
enum { MP_SLOW_STEP = 4, MP_TOO_SLOW = 8, MP_FIRST_BREAK = 64, MP_MOST_DOUBLINGS = 12 };
// A thread that waits for its launches at once runs those that took less than this itself. For
// longer ones the saved wake-ups do not matter, and if the thread does not wait this time, it is
// held up.
enum { MP_AWAITED_US = 3000 };

// True when workers should run this launch because earlier ones took too long.
static bool inline_run_is_on_break(mp_inline_record_t *record) {
  if (atomic_load_explicit(&record->slowness, memory_order_relaxed) < MP_TOO_SLOW) return false;
  if (atomic_fetch_sub_explicit(&record->num_left, 1, memory_order_relaxed) > 1) return true;
  atomic_store_explicit(&record->slowness, MP_TOO_SLOW - MP_SLOW_STEP, memory_order_relaxed);
  return false;
}

static void inline_run_note(mp_inline_record_t *record, double seconds) {
  if (seconds > MP_SLOW_SECONDS) {
    const int before =
        atomic_fetch_add_explicit(&record->slowness, MP_SLOW_STEP, memory_order_relaxed);
    if (before + MP_SLOW_STEP < MP_TOO_SLOW) return;
    int doublings = atomic_fetch_add_explicit(&record->num_breaks, 1, memory_order_relaxed);
    if (doublings > MP_MOST_DOUBLINGS) doublings = MP_MOST_DOUBLINGS;
    atomic_store_explicit(&record->num_left, MP_FIRST_BREAK << doublings, memory_order_relaxed);
  } else if (atomic_load_explicit(&record->slowness, memory_order_relaxed) > 0) {
    atomic_fetch_sub_explicit(&record->slowness, 1, memory_order_relaxed);
  } else if (atomic_load_explicit(&record->num_breaks, memory_order_relaxed) != 0) {
    atomic_store_explicit(&record->num_breaks, 0, memory_order_relaxed);
  }
}

void mp_inline_note_long(mp_executable_t *executable, double seconds) {
  // Only the last run counts, so that workers soon take over a program whose loops become longer.
  const double us = seconds * 1e6 + 1;
  if (executable->has_collectives || executable->may_block) return;
  atomic_store_explicit(&executable->inline_record.last_us,
                        us < MP_AWAITED_US ? (unsigned)us : MP_AWAITED_US, memory_order_relaxed);
}

// Whether a thread that waits at once runs this launch itself, although it is not short.
static bool inline_run_is_worth(mp_executable_t *executable, uint32_t num_devices) {
  const unsigned us =
      atomic_load_explicit(&executable->inline_record.last_us, memory_order_relaxed);
  // Several devices keep several workers busy.
  return num_devices == 1 && us != 0 && us < MP_AWAITED_US;
}

// Makes an inline worker use the queue of the worker that is bound to the calling thread's core.
static void inline_run_set_core(mp_worker_t *inline_worker) {
  const mp_workers_t *all = inline_worker->client->workers;
  const int cpu = sched_getcpu();
  inline_worker->index = 0;
  inline_worker->cpu = -1;
  for (uint32_t i = 0; i < all->num_workers; ++i) {
    if (all->workers[i].cpu < 0 || all->workers[i].cpu != cpu) continue;
    inline_worker->index = all->workers[i].index;
    inline_worker->cpu = cpu;
    return;
  }
}

mp_worker_t *mp_inline_get(mp_executable_t *executable, uint32_t num_devices, bool awaits) {
  mp_client_t *client = executable->client;
  if (mp_worker_current() != NULL) return NULL;
  const bool is_small = executable->inline_seconds * num_devices < MP_INLINE_SECONDS &&
                        !inline_run_is_on_break(&executable->inline_record);
  if (!is_small && !(awaits && inline_run_is_worth(executable, num_devices))) return NULL;
  // Removed while it is used, so that threads that launch at the same time never share one. The
  // exchange also publishes its scratch memory, which the last user may have made.
  mp_worker_t *inline_worker = atomic_exchange(&client->workers->spare_inline_worker, NULL);
  if (inline_worker == NULL) inline_worker = mp_calloc(1, sizeof(*inline_worker));
  if (inline_worker == NULL) return NULL;
  inline_worker->client = client;
  inline_worker->is_inline = true;
  inline_worker->has_help = !is_small;
  if (!is_small) inline_run_set_core(inline_worker);
  return inline_worker;
}

void mp_inline_put(mp_worker_t *inline_worker) {
  mp_worker_t *expected = NULL;
  if (!atomic_compare_exchange_strong(&inline_worker->client->workers->spare_inline_worker,
                                      &expected, inline_worker)) {
    mp_worker_free_inline(inline_worker);
  }
}

void mp_inline_launch(mp_worker_t *inline_worker, mp_executable_t *executable,
                      mp_device_list_t *devices) {
  mp_client_t *client = executable->client;
  MP_ASSERT(inline_worker->own.first == NULL);
  const bool is_empty =
      devices->first == NULL;  // the launch waits for others, and workers will run it
  const bool has_help = inline_worker->has_help;
  inline_worker->own = *devices;
  double begin = mp_clock_seconds();
  // Counted from before the first device runs until the last is done: meanwhile no deadlock proof
  // is tried, because this thread may move any run.
  atomic_fetch_add(&client->workers->num_inline_runs, 1);
  mp_inline_run(inline_worker);
  atomic_fetch_sub(&client->workers->num_inline_runs, 1);
  const double seconds = mp_clock_seconds() - begin;
  if (!has_help) {
    inline_run_note(&executable->inline_record, seconds);
  } else if (!is_empty) {
    mp_inline_note_long(executable, seconds);
  }
}

// The worker that the calling thread acts as for the rest of these runs; NULL: none.
static mp_worker_t *inline_run_get_for(const mp_device_list_t *devices) {
  mp_executable_t *executable = devices->first->first->executable;
  // Other processes may wait for this thread, so it must not call anything that could wait for
  // them: foreign functions, and owners of lent memory.
  if (executable->program->num_calls != 0) return NULL;
  for (const mp_device_t *device = devices->first; device != NULL; device = device->next_runnable) {
    if (device->first->num_holds != 0) return NULL;
  }
  return mp_inline_get(executable, devices->length, false);
}

// Acts as this worker for devices of a client that is not ending.
static void inline_run_go_on_as(mp_worker_t *inline_worker, mp_device_list_t *devices) {
  // Retained, because the runs may end and release it.
  mp_executable_t *executable = mp_executable_retain(devices->first->first->executable);
  for (mp_device_t *device = devices->first; device != NULL; device = device->next_runnable) {
    device->first->inline_worker = inline_worker;
  }
  mp_inline_launch(inline_worker, executable, devices);
  mp_executable_release(executable);
}

void mp_inline_go_on(mp_client_t *client, mp_device_t *first) {
  mp_device_list_t devices = {0};
  while (first != NULL) {
    mp_device_t *next = first->next_runnable;
    first->next_runnable = NULL;
    mp_device_list_push(&devices, first);
    first = next;
  }
  mp_launching_t launching;
  mp_launching_enter(&launching, client);
  // Checked after the thread was counted: a client that ends later waits for this thread. One that
  // began to end earlier ends the runs itself.
  if (!atomic_load(&client->is_stopping)) {
    mp_worker_t *inline_worker = inline_run_get_for(&devices);
    if (inline_worker == NULL) {
      mp_schedule(&devices);
    } else {
      inline_run_go_on_as(inline_worker, &devices);
      mp_inline_put(inline_worker);
    }
    mp_deadlock_check(client);  // the workers may all be asleep
  }
  mp_launching_leave(&launching);
}
