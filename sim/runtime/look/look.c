#include "sim/runtime/look/look.h"

#include <stdio.h>

#include "sim/runtime/devices/device_impl.h"
#include "sim/runtime/runs/run.h"

const char *mp_look_state_name(mp_look_state_t state) {
  static const char *const names[] = {"idle", "blocked", "running", "waiting"};
  return names[state];
}

bool mp_look_is_faulty(const mp_client_t *client) {
  return atomic_load(&client->is_faulty);
}

// Where a parked run waits. The caller holds the session's lock: the run wrote its place before it
// parked under that lock, and the thread that resumes it takes the lock first.
static void look_at_place(const mp_run_t *run, mp_look_t *look) {
  const mp_collective_t *at = run->arrival.collective;
  if (at == NULL) at = run->receiver.collective;
  if (at == NULL) return;
  (void)snprintf(look->place, sizeof(look->place), "%s (%s)", at->name, at->location);
}

static void look_at_session(const mp_run_t *run, mp_look_t *look) {
  mp_session_t *session = run->session;
  if (session == NULL) return;
  mp_lock(&session->lock);
  if (session->states[run->logical] == MP_PARTICIPANT_PARKED) {
    look->state = MP_LOOK_WAITING;
    look_at_place(run, look);
  }
  mp_unlock(&session->lock);
}

// The caller holds the device's lock, under which the run stays in the stream.
static void look_at_run(mp_run_t *run, mp_look_t *look) {
  (void)snprintf(look->program, sizeof(look->program), "%s", run->executable->name->text);
  look->state = atomic_load(&run->blockers) > 0 ? MP_LOOK_BLOCKED : MP_LOOK_RUNNING;
  look_at_session(run, look);
}

void mp_look(mp_device_t *device, mp_look_t *out_look) {
  *out_look = (mp_look_t){.state = MP_LOOK_IDLE};
  mp_lock(&device->lock);
  if (device->first != NULL) look_at_run(device->first, out_look);
  out_look->queued = atomic_load(&device->num_ahead);
  out_look->completed = mp_device_completed(device);
  mp_unlock(&device->lock);
  mp_memory_get_stats(&device->memories[MP_MEMORY_DEVICE], &out_look->memory);
}
