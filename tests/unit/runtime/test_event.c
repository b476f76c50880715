// Events: set once, waited for, called back, from any thread.

#include "sim/runtime/devices/event.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/base/alloc.h"
#include "sim/base/os/process.h"
#include "tests/unit/support/unit.h"

typedef struct {
  atomic_int calls;
  atomic_int code;  // callbacks of one event may run concurrently: a thread that registers late
                    // runs its own
  int order[4];
  mp_event_t *to_release;
} record_t;

static void note(mp_status_t status, void *context) {
  record_t *record = context;
  record->code = mp_status_code(status);
  atomic_fetch_add(&record->calls, 1);
  if (record->to_release != NULL) mp_event_release(record->to_release);
}

static void callbacks_run_once_before_and_after_setting(void **state) {
  (void)state;
  mp_event_t *event;
  assert_ok(mp_event_create(&event));
  record_t early = {0}, late = {0};
  assert_ok(mp_event_on_ready(event, note, &early));
  assert_false(mp_event_is_ready(event));
  assert_ok(mp_event_status(event));
  assert_int_equal(early.calls, 0);
  mp_event_set(event, mp_status_make(MP_DATA_LOSS, "gone"));
  mp_event_set(event, NULL);  // ignored
  assert_int_equal(early.calls, 1);
  assert_int_equal(early.code, MP_DATA_LOSS);
  assert_ok(mp_event_on_ready(event, note, &late));
  assert_int_equal(late.calls, 1);
  assert_status(mp_event_await(event), MP_DATA_LOSS, "gone");
  assert_true(mp_event_wait_for(event, 0));
  assert_false(mp_event_has_succeeded(event));
  mp_event_release(event);
  assert_int_equal(early.calls, 1);
}

static int g_sequence;
static void note_order(mp_status_t status, void *context) {
  (void)status;
  *(int *)context = ++g_sequence;
}

static void callbacks_run_in_the_order_of_registration(void **state) {
  (void)state;
  mp_event_t *event;
  assert_ok(mp_event_create(&event));
  int order[3] = {0};
  g_sequence = 0;
  for (int i = 0; i < 3; ++i) assert_ok(mp_event_on_ready(event, note_order, &order[i]));
  mp_event_set(event, NULL);
  for (int i = 0; i < 3; ++i) assert_int_equal(order[i], i + 1);
  mp_event_release(event);
}

static void a_callback_may_release_its_event(void **state) {
  (void)state;
  for (int set_first = 0; set_first < 2; ++set_first) {
    mp_event_t *event;
    assert_ok(mp_event_create(&event));
    record_t record = {.to_release = event};
    if (set_first) mp_event_set(event, NULL);
    assert_ok(mp_event_on_ready(event, note, &record));
    if (!set_first) mp_event_set(event, NULL);
    assert_int_equal(record.calls, 1);
  }
}

static void callbacks_outlive_the_last_reference(void **state) {
  (void)state;
  mp_event_t *event;
  assert_ok(mp_event_create(&event));
  record_t record = {0};
  assert_ok(mp_event_on_ready(event, note, &record));
  mp_event_release(event);
  assert_int_equal(record.calls, 1);
  assert_int_equal(record.code, MP_CANCELLED);
}

static void a_failed_registration_is_reported(void **state) {
  (void)state;
  mp_event_t *event;
  assert_ok(mp_event_create(&event));
  record_t record = {0};
  mp_alloc_fail_at(1, 0);
  assert_status(mp_event_on_ready(event, note, &record), MP_RESOURCE_EXHAUSTED, "memory");
  mp_event_set(event, NULL);
  assert_int_equal(record.calls, 0);
  mp_event_release(event);
  mp_alloc_fail_at(1, 0);
  assert_status(mp_event_create(&event), MP_RESOURCE_EXHAUSTED, "memory");
}

static void waiting_ends_in_time(void **state) {
  (void)state;
  mp_event_t *event;
  assert_ok(mp_event_create(&event));
  assert_false(mp_event_wait_for(event, 0.01));
  assert_false(mp_event_wait_for(event, -1));
  mp_event_set(event, NULL);
  mp_event_release(event);
}

static void *set_it(void *context) {
  usleep(1000);
  mp_event_set(context, NULL);
  mp_event_release(context);
  return NULL;
}

static void *wait_for_it(void *context) {
  mp_status_release(mp_event_await(context));
  mp_event_release(context);
  return NULL;
}

static void threads_race_to_set_wait_and_register(void **state) {
  (void)state;
  for (int round = 0; round < 50; ++round) {
    mp_event_t *event;
    assert_ok(mp_event_create(&event));
    pthread_t threads[4];
    for (int i = 0; i < 4; ++i) {
      mp_event_retain(event);
      assert_int_equal(pthread_create(&threads[i], NULL, i % 2 == 0 ? set_it : wait_for_it, event),
                       0);
    }
    record_t record = {0};
    for (int i = 0; i < 100; ++i) assert_ok(mp_event_on_ready(event, note, &record));
    assert_ok(mp_event_await(event));
    mp_event_release(event);
    for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
    assert_int_equal(record.calls, 100);
  }
}

static void a_forked_child_does_not_wait_for_its_parent(void **state) {
  (void)state;
  mp_process_watch_forks();
  mp_event_t *event;
  assert_ok(mp_event_create(&event));
  pid_t child = fork();
  if (child == 0) {
    mp_status_t status = mp_event_await(event);
    _exit(mp_status_code(status) == MP_FAILED_PRECONDITION && mp_event_is_ready(event) ? 0 : 1);
  }
  int result = -1;
  assert_int_equal(waitpid(child, &result, 0), child);
  assert_int_equal(result, 0);
  assert_false(mp_event_is_ready(event));
  mp_event_release(event);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(callbacks_run_once_before_and_after_setting),
      cmocka_unit_test(callbacks_run_in_the_order_of_registration),
      cmocka_unit_test(a_callback_may_release_its_event),
      cmocka_unit_test(callbacks_outlive_the_last_reference),
      cmocka_unit_test(a_failed_registration_is_reported),
      cmocka_unit_test(waiting_ends_in_time),
      cmocka_unit_test(threads_race_to_set_wait_and_register),
      cmocka_unit_test(a_forked_child_does_not_wait_for_its_parent),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
