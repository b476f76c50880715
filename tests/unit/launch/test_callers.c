// Caller threads: which of them take the work that is submitted, and when there are more of them.
#include <pthread.h>
#include <unistd.h>

#include "sim/base/os/clock.h"
#include "sim/runtime/devices/client_impl.h"
#include "sim/runtime/workers/caller.h"
#include "sim/runtime/workers/workers.h"
#include "tests/unit/support/clients.h"

// How long something waits for what must come. Only a failing test waits for so long.
static const double k_long_seconds = 60;

// ---- Work ----

// A piece of work that ends when `together` of the pieces that were submitted with it have begun.
typedef struct {
  mp_blocking_t blocking;
  uint32_t together;
} work_t;

static pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t g_changed;  // its clock is that of mp_clock_after
static uint32_t g_num_begun, g_num_over, g_num_missed;

// Waits, with the mutex held, until so many pieces of work have begun; false: they have not for
// long.
static bool await_begun(uint32_t wanted) {
  const struct timespec until = mp_clock_after(k_long_seconds);
  int error = 0;
  while (g_num_begun < wanted && error == 0) {
    error = pthread_cond_timedwait(&g_changed, &g_mutex, &until);
  }
  return g_num_begun >= wanted;
}

static void run_work(mp_blocking_t *blocking, bool is_dropped) {
  const uint32_t together = ((work_t *)blocking)->together;
  pthread_mutex_lock(&g_mutex);
  g_num_begun += 1;
  pthread_cond_broadcast(&g_changed);
  if (is_dropped || !await_begun(together)) g_num_missed += 1;
  g_num_over += 1;
  pthread_cond_broadcast(&g_changed);
  pthread_mutex_unlock(&g_mutex);
}

// Submits two pieces of work, one right after the other.
static void submit_two(mp_client_t *client, work_t *work, uint32_t together) {
  pthread_mutex_lock(&g_mutex);
  g_num_begun = g_num_over = g_num_missed = 0;
  pthread_mutex_unlock(&g_mutex);
  for (int i = 0; i < 2; ++i) {
    work[i] = (work_t){.blocking.run = run_work, .together = together};
  }
  for (int i = 0; i < 2; ++i) assert_ok(mp_callers_submit(client, &work[i].blocking));
}

// Waits until both are over, and fails when one has waited for the other in vain.
static void await_two(void) {
  pthread_mutex_lock(&g_mutex);
  while (g_num_over < 2) pthread_cond_wait(&g_changed, &g_mutex);
  const uint32_t num_missed = g_num_missed;
  pthread_mutex_unlock(&g_mutex);
  assert_int_equal(num_missed, 0);
}

static int setup(void **state) {
  (void)state;
  mp_clock_cond_init(&g_changed);
  return 0;
}

// ---- The watcher ----

static bool watcher_is_asleep(mp_callers_t *callers) {
  mp_lock(&callers->lock);
  const bool is_asleep = callers->has_watcher && callers->is_watcher_asleep &&
                         callers->num_idle == 1 && callers->length == 0;
  mp_unlock(&callers->lock);
  return is_asleep;
}

// Submits short work, more than threads wait for, until one thread waits for more and another one
// watches over it and has nothing to watch.
static void let_watcher_sleep(mp_client_t *client) {
  const double deadline = mp_clock_seconds() + k_long_seconds;
  while (!watcher_is_asleep(&client->workers->callers) && mp_clock_seconds() < deadline) {
    work_t work[2];
    submit_two(client, work, 0);
    await_two();
    usleep(1000);
  }
  assert_true(watcher_is_asleep(&client->workers->callers));
}

// The first piece of work wakes the idle thread, which takes a while. If the second one comes
// meanwhile, the watcher must start a thread for it, because the first one waits for it. Nearly
// every pair comes that quickly; the queue afterwards shows which ones did.
static void work_before_the_idle_thread_wakes_is_watched(void **state) {
  (void)state;
  enum { WANTED = 20, ROUNDS = 2000 };
  mp_client_t *client = make_client(2);
  uint32_t num_quick = 0;
  for (uint32_t round = 0; num_quick < WANTED && round < ROUNDS; ++round) {
    let_watcher_sleep(client);
    work_t work[2];
    submit_two(client, work, 2);
    mp_lock(&client->workers->callers.lock);
    num_quick += client->workers->callers.length == 2;
    mp_unlock(&client->workers->callers.lock);
    await_two();
  }
  mp_client_release(client);
  if (num_quick < WANTED) skip();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(work_before_the_idle_thread_wakes_is_watched),
  };
  return cmocka_run_group_tests(tests, setup, NULL);
}
