#include "sim/runtime/runs/deadlock.h"

#include "sim/runtime/devices/device_impl.h"
#include "sim/runtime/order/launch_order.h"
#include "sim/runtime/order/side_stream.h"
#include "sim/runtime/runs/run.h"
#include "sim/runtime/sessions/session.h"
#include "sim/runtime/workers/workers.h"

#ifdef MINIPOD_ASSERTS
void (*mp_deadlock_at_read)(void);
#endif

// True when a moment ago nothing inside the client could move a run: no worker or inline run was
// active, no device runnable, and there was no job. This means only that a look is worth while: a
// launching thread that is about to release its runs, an input, a call that ends or a packet may
// move runs at any time, also during the look.
static bool deadlock_is_at_rest(const mp_client_t *client) {
  mp_lock_assert_held(&client->launches->lock);
  if (atomic_load(&client->workers->num_idle) != client->workers->num_workers) return false;
  if (atomic_load(&client->workers->num_inline_runs) != 0 ||
      atomic_load(&client->workers->jobs.count) != 0)
    return false;
  for (uint32_t i = 0; i < client->workers->num_queues; ++i) {
    if (atomic_load(&client->workers->queues[i].length) != 0) return false;
  }
  return true;
}

// The session, retained, that the first run of the device is parked in; NULL: not parked.
static mp_session_t *deadlock_parked_session(mp_device_t *device) {
  mp_lock(&device->lock);
  mp_run_t *run = device->first;
  mp_session_t *session = run == NULL ? NULL : mp_session_retain(run->session);
  uint32_t logical = run == NULL ? 0 : run->logical;
  mp_unlock(&device->lock);
  if (session == NULL || mp_session_is_parked(session, logical)) return session;
  mp_session_release(session);
  return NULL;
}

// True when `run` of this device, which has not arrived at a meeting point yet, may still do so.
// The run may be over by now, so only its address is used.
static bool deadlock_may_come(mp_device_t *device, const mp_run_t *run) {
  mp_lock(&device->lock);
  bool is_first = device->first == run;
  mp_unlock(&device->lock);
  if (is_first) return true;  // it waits for inputs, which may come
  mp_session_t *before = deadlock_parked_session(device);
  bool may = before == NULL || before->may_go_on;
  mp_session_release(before);
  return may;
}

static bool deadlock_may_go_on(mp_session_t *session) {
  if (mp_session_is_carried(session)) return true;
  for (uint32_t i = 0; i < session->num_participants; ++i) {
    mp_lock(&session->lock);
    mp_participant_state_t state = session->states[i];
    const mp_run_t *run = session->runs[i];
    mp_device_t *device = session->devices[i];
    mp_unlock(&session->lock);
#ifdef MINIPOD_ASSERTS
    if (mp_deadlock_at_read != NULL) mp_deadlock_at_read();
#endif
    if (state == MP_PARTICIPANT_ABSENT) return true;  // its launch may still come
    if (state == MP_PARTICIPANT_REMOTE) return true;
    if (state == MP_PARTICIPANT_ACTIVE && deadlock_may_come(device, run)) return true;
  }
  return false;
}

// A session, retained, that can never continue; NULL: none was found. At first every session counts
// as unable to continue; those that can are marked, until a whole round marks no more. Streams and
// participants are read one after the other, so the result holds only if no run was parked or
// resumed meanwhile.
static mp_session_t *deadlock_find_stuck(mp_client_t *client) {
  mp_lock_assert_held(&client->launches->lock);
  mp_device_t *device = NULL;
  while ((device = mp_side_stream_next(client, device)) != NULL) {
    mp_session_t *session = deadlock_parked_session(device);
    if (session != NULL) session->may_go_on = false;
    mp_session_release(session);
  }
  mp_session_t *stuck = NULL;
  for (bool again = true; again;) {
    again = false;
    mp_session_release(stuck);
    stuck = NULL;
    while ((device = mp_side_stream_next(client, device)) != NULL) {
      mp_session_t *session = deadlock_parked_session(device);
      if (session != NULL && !session->may_go_on) {
        session->may_go_on = deadlock_may_go_on(session);
        again |= session->may_go_on;
        if (!session->may_go_on && stuck == NULL) stuck = mp_session_retain(session);
      }
      mp_session_release(session);
    }
  }
  return stuck;
}

void mp_deadlock_check(mp_client_t *client) {
  mp_lock_assert_none_held();
  if (atomic_load(&client->workers->num_idle) != client->workers->num_workers) return;
  if (!atomic_load(&client->workers->needs_look)) return;
  mp_session_t *stuck = NULL;
  // No launch can come during the look, so a participant that is missing now stays missing.
  mp_lock(&client->launches->lock);
  // A thread that is still active calls this function when it is done.
  if (atomic_load(&client->workers->needs_look) && deadlock_is_at_rest(client)) {
    // Cleared before the first read: a thread that parks or resumes a run after the look has read
    // it takes the session's lock later than the look, so it finds the flag cleared and sets it.
    atomic_store(&client->workers->needs_look, false);
    stuck = deadlock_find_stuck(client);
    // Checked after the last read: if the look has read anything that came after such a change, the
    // locks under which it read publish the flag, too. Then the look has mixed states of different
    // times and proves nothing; the flag stays set, and the thread that made the change looks again
    // when it is done. If the flag is still cleared, all that was read was true at one time, and a
    // session that is stuck then stays stuck.
    if (atomic_load(&client->workers->needs_look)) {
      mp_session_release(stuck);
      stuck = NULL;
    }
  }
  mp_unlock(&client->launches->lock);
  if (stuck != NULL) mp_session_poison_stuck(stuck);
  mp_session_release(stuck);
}

// ---- What holds up a stream ----

// Devices to look at, linked through `next_looked`. Each is looked at once.
typedef struct {
  mp_device_t *devices;
  uint64_t look;  // the number of this look
} look_t;

static void deadlock_look_at_later(look_t *look, mp_device_t *device) {
  if (device->looked == look->look) return;
  device->looked = look->look;
  device->next_looked = look->devices;
  look->devices = device;
}

// What keeps the session from continuing: its participant `logical` is the first run of its device.
// The waits of its other runs are examined later.
static mp_holdup_t deadlock_look_at_session(look_t *look, mp_session_t *session, uint32_t logical) {
  mp_holdup_t holdup = MP_HOLDUP_NOTHING;
  mp_lock(&session->lock);
  if (session->states[logical] != MP_PARTICIPANT_PARKED || session->error != NULL) {
    holdup = MP_HOLDUP_NOTHING;
  } else if (session->num_joined != session->num_local) {
    holdup = MP_HOLDUP_LAUNCH;
  } else if (session->looked != look->look) {
    session->looked = look->look;
    for (uint32_t i = 0; i < session->num_participants; ++i) {
      if (session->states[i] == MP_PARTICIPANT_REMOTE) holdup = MP_HOLDUP_CALL;
      if (session->states[i] == MP_PARTICIPANT_ACTIVE)
        deadlock_look_at_later(look, session->devices[i]);
    }
  }
  mp_unlock(&session->lock);
  return holdup;
}

static mp_holdup_t deadlock_look_at_device(look_t *look, mp_device_t *device) {
  mp_lock(&device->lock);
  const mp_run_t *run = device->first;
  mp_session_t *session = run == NULL ? NULL : mp_session_retain(run->session);
  const uint32_t logical = run == NULL ? 0 : run->logical;
  const bool is_blocked = run != NULL && atomic_load(&run->blockers) != 0;
  // A run of a program with calls may be in one.
  const bool may_call = run != NULL && run->executable->program->num_calls != 0;
  mp_unlock(&device->lock);
  mp_holdup_t holdup = is_blocked ? MP_HOLDUP_INPUT : may_call ? MP_HOLDUP_CALL : MP_HOLDUP_NOTHING;
  if (holdup == MP_HOLDUP_NOTHING && session != NULL) {
    holdup = deadlock_look_at_session(look, session, logical);
  }
  mp_session_release(session);
  return holdup;
}

mp_holdup_t mp_deadlock_find_holdup(mp_device_t *device) {
  mp_client_t *client = device->client;
  mp_holdup_t worst = MP_HOLDUP_NOTHING;
  mp_lock(&client->launches->lock);
  look_t look = {.look = ++client->launches->num_looks};
  deadlock_look_at_later(&look, device);
  while (look.devices != NULL && worst != MP_HOLDUP_LAUNCH) {
    mp_device_t *next = look.devices;
    look.devices = next->next_looked;
    const mp_holdup_t holdup = deadlock_look_at_device(&look, next);
    if (holdup > worst) worst = holdup;
  }
  mp_unlock(&client->launches->lock);
  return worst;
}
