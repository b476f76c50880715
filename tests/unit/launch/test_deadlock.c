// Units of sim/runtime/runs/deadlock: a look proves nothing if runs move meanwhile, and is
// repeated when they are at rest.
#include "sim/runtime/runs/deadlock.h"

#include <unistd.h>

#include "sim/runtime/devices/device_impl.h"
#include "sim/runtime/runs/run.h"
#include "sim/runtime/sessions/session_impl.h"
#include "sim/runtime/workers/workers.h"
#include "tests/unit/support/launches.h"
#include "tests/unit/support/programs.h"

#ifdef MINIPOD_ASSERTS

enum { NUM_DEVICES = 2 };

// A session whose runs execute nothing: the test parks and resumes them by hand, as workers would.
static mp_client_t *client;
static mp_session_t *session;
static mp_run_t runs[NUM_DEVICES];

// The streams are looked at in the order of devices: that of run 0, the first one that is read in
// the session, comes last, so that nothing is read twice.
static mp_device_t *device_of(uint32_t i) {
  return mp_client_device(client, NUM_DEVICES - 1 - i);
}

static void park(uint32_t i) {
  mp_lock(&session->lock);
  mp_session_park(session, i);
  mp_unlock(&session->lock);
}

static void resume(uint32_t i) {
  mp_device_list_t resumed = {0};
  mp_lock(&session->lock);
  mp_session_resume(session, i, &resumed);
  mp_unlock(&session->lock);
  mp_device_t *device = mp_device_list_pop(&resumed);
  mp_device_hand_over(device, MP_OWNER_LIST, MP_OWNER_WORKER);
}

// Workers look for themselves before they sleep, and must not do so in the middle of the test.
static void wait_until_asleep(void) {
  for (uint32_t num_asleep = 0; num_asleep != client->workers->num_workers;) {
    usleep(1000);
    num_asleep = 0;
    for (uint32_t q = 0; q < client->workers->num_queues; ++q)
      num_asleep += atomic_load(&client->workers->queues[q].sleepers);
  }
}

static void begin(void) {
  static const uint32_t ids[NUM_DEVICES] = {0, 1};
  client = make_client_with(NUM_DEVICES, 1 << 20);
  wait_until_asleep();
  assert_ok(mp_session_create(NUM_DEVICES, ids, &session));
  for (uint32_t i = 0; i < NUM_DEVICES; ++i) {
    mp_device_t *device = device_of(i);
    runs[i] = (mp_run_t){.session = session, .device = device, .logical = i};
    device->first = device->last = &runs[i];
    mp_session_join(session, i, device, &runs[i]);
    mp_device_hand_over(device, MP_OWNER_BLOCKERS, MP_OWNER_WORKER);
  }
}

static void end(void) {
  for (uint32_t i = 0; i < NUM_DEVICES; ++i) {
    mp_device_t *device = device_of(i);
    mp_session_leave(session, i);
    device->first = device->last = NULL;
    atomic_store(&device->owner, MP_OWNER_BLOCKERS);
  }
  mp_session_release(session);
  mp_client_release(client);
}

// Run 1 comes to the meeting where run 0 is, goes on, and waits at the next one, where run 0 will
// come.
static void meet_and_go_on(void) {
  mp_deadlock_at_read = NULL;
  resume(0);
  park(1);
}

static void runs_that_move_are_not_stuck(void **state) {
  (void)state;
  begin();
  park(0);
  mp_deadlock_at_read = meet_and_go_on;  // after run 0 was seen parked, before run 1 is looked at
  mp_deadlock_check(client);
  assert_null(mp_deadlock_at_read);
  assert_false(mp_session_is_poisoned(session));
  // Run 0 may still come, so this is no deadlock either.
  mp_deadlock_check(client);
  assert_false(mp_session_is_poisoned(session));
  end();
}

static void look_is_made_again_at_rest(void **state) {
  (void)state;
  begin();
  park(0);
  mp_deadlock_at_read = meet_and_go_on;
  mp_deadlock_check(client);
  park(0);
  mp_deadlock_check(client);
  assert_true(mp_session_is_poisoned(session));
  end();
}

// What only resumes a run may be the last that happens before the look.
static void resumed_run_is_noted(void **state) {
  (void)state;
  begin();
  park(0);
  mp_deadlock_check(client);  // run 1 may still come
  assert_false(atomic_load(&client->workers->needs_look));
  resume(0);
  assert_true(atomic_load(&client->workers->needs_look));
  end();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(runs_that_move_are_not_stuck),
      cmocka_unit_test(look_is_made_again_at_rest),
      cmocka_unit_test(resumed_run_is_noted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void) {
  return 0;  // only builds with assertions can be held up in the middle of a look
}

#endif
