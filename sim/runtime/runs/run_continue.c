// Continues the first run of a device that was taken from a queue, and flips bits between commands.
#include "sim/base/os/clock.h"
#include "sim/runtime/devices/device_impl.h"
#include "sim/runtime/runs/inline_run.h"
#include "sim/runtime/runs/run.h"
#include "sim/runtime/runs/shape_memory.h"
#include "sim/runtime/workers/bind.h"
#include "sim/runtime/workers/worker.h"

// The error with which the run has to end; OK: it continues.
static mp_status_t run_continue_why_not(mp_run_t *run) {
  if (mp_client_is_stopping(run->device->client)) {
    return mp_status_make(MP_CANCELLED, "the client was closed while %s ran",
                          run->executable->name->text);
  }
  // Checked before each step: a session that is poisoned later is noticed at the next one.
  if (run->session != NULL) return mp_session_error(run->session);
  return mp_status_retain(atomic_load(&run->error));
}

// Flips the bits that a fault flips in arguments, or in results.
static void run_continue_flip(mp_run_t *run, bool is_result) {
  for (uint32_t i = 0; i < run->num_flips; ++i) {
    const mp_faults_flip_t *flip = &run->flips[i];
    if (flip->is_result != is_result) continue;
    uint8_t *bytes =
        is_result ? run->results[flip->index] : (uint8_t *)(uintptr_t)run->params[flip->index];
    bytes[flip->byte] ^= flip->mask;
  }
}

static mp_status_t run_continue_start(const mp_worker_t *self, mp_run_t *run) {
  MP_ASSERT(!run->is_started && run->pc == 0);
  run->is_started = true;
  if (!self->is_inline) run->began = mp_clock_seconds();
  if (run->shape_run != NULL) {
    mp_shape_run_begin(run->shape_run);
    return mp_shape_memory_begin(run);
  }
  for (uint32_t i = 0; i < run->num_copies; ++i) {
    memcpy(run->copies[i].to, run->copies[i].from, run->copies[i].bytes);
  }
  run_continue_flip(run, false);
  return run->executable->has_stages ? mp_run_begin_calls(run) : NULL;
}

void mp_run_continue(mp_worker_t *self, mp_device_t *device) {
  mp_lock_assert_none_held();
  // Without the lock: the first run changes only when it ends, and only this thread ends it.
  mp_run_t *run = device->first;
  MP_ASSERT(run != NULL && atomic_load(&run->blockers) == 0);
  mp_bind_for_run(self, run->executable->program->num_calls != 0);
  mp_step_t step = MP_STEP_OVER;
  mp_status_t status = run_continue_why_not(run);
  if (status == NULL) {
    if (!run->is_started) status = run_continue_start(self, run);
    if (status == NULL) status = mp_run_commands(self, run, &step);
  }
  if (status == NULL && step == MP_STEP_PARKED) return;  // another thread may own `run` now
  if (status == NULL && step == MP_STEP_YIELDED) {
    mp_device_list_t again = {0};
    mp_device_hand_over(device, MP_OWNER_WORKER, MP_OWNER_LIST);
    mp_device_list_push(&again, device);
    mp_schedule_and_look(&again);
    return;
  }
  if (status == NULL) run_continue_flip(run, true);
  if (run->began != 0) mp_inline_note_long(run->executable, mp_clock_seconds() - run->began);
  if (status != NULL && run->session != NULL) {
    mp_session_poison(run->session, mp_status_retain(status));
  }
  mp_run_end(run, status);
}
