#include "sim/runtime/workers/caller.h"

#include <inttypes.h>
#include <stdio.h>

#include "sim/base/alloc.h"
#include "sim/base/os/clock.h"
#include "sim/base/os/system.h"
#include "sim/runtime/devices/client_impl.h"
#include "sim/runtime/devices/launching.h"
#include "sim/runtime/workers/bind.h"
#include "sim/runtime/workers/workers.h"

enum { MP_CALLER_STACK = 8 << 20 };

// While calls wait and none ends for this long, another thread starts. The first number holds while
// there are fewer threads than cores, because the calls may compute without Python's lock. After
// that calls may wait for each other, and the time grows from the second number to the third.
// (Calls that take turns for Python's lock are slow, not stuck.)
static const double k_patience_seconds[] = {0.004, 0.01, 0.1};

// `client` and `is_first` never change; the rest is under the callers' lock.
struct mp_caller_s {
  mp_client_t *client;
  pthread_t thread;
  bool is_first;    // it stays as long as the client
  bool is_watcher;  // takes nothing from the queue while the others make progress
  bool is_calling;  // runs a piece of work
  bool is_awaited;  // the client's end joins it; other threads exit by themselves
  mp_caller_t *prev, *next;
};

// Each thread has its own.
static _Thread_local mp_client_t *t_client;
static _Thread_local bool t_stays;

mp_client_t *mp_caller_current(void) {
  return t_client;
}

bool mp_caller_stays(void) {
  return t_stays;
}

void mp_callers_init(mp_callers_t *callers) {
  mp_lock_init(&callers->lock, MP_LOCK_CALLERS);
  mp_clock_cond_init(&callers->came);
  mp_clock_cond_init(&callers->watched);
}

void mp_callers_deinit(mp_callers_t *callers) {
  MP_ASSERT(callers->queue.first == NULL);
  pthread_cond_destroy(&callers->came);
  pthread_cond_destroy(&callers->watched);
  mp_lock_deinit(&callers->lock);
}

// ---- Starting threads ----

static void *caller_main(void *context);

static int caller_start(mp_caller_t *caller) {
  mp_client_hold(caller->client);
  const int error = mp_thread_create(&caller->thread, MP_CALLER_STACK, caller_main, caller);
  if (error != 0) mp_client_unhold(caller->client);
  return error;
}

// Makes a thread; false: it could not be started. The lock is held across the start, and the new
// thread first takes the lock: so it finds itself counted and in the list, from which it may have
// to remove itself at once, and finds `thread` written, which it then detaches.
static bool caller_make(mp_client_t *client, bool is_watcher) {
  mp_callers_t *callers = &client->workers->callers;
  mp_lock_assert_held(&callers->lock);
  mp_caller_t *caller = mp_calloc(1, sizeof(*caller));
  if (caller == NULL) return false;
  caller->client = client;
  caller->is_watcher = is_watcher;
  caller->is_first = callers->num_made == 0;
  if (caller_start(caller) != 0) {
    mp_free(caller);
    return false;
  }
  MP_LIST_APPEND(&callers->threads, caller, prev, next);
  callers->num_made += 1;
  if (is_watcher) {
    callers->has_watcher = true;
  } else {
    callers->num_takers += 1;
  }
  return true;
}

// Called when there is more work than idle threads: makes sure that a watcher runs.
static void caller_watch_over(mp_client_t *client) {
  mp_callers_t *callers = &client->workers->callers;
  mp_lock_assert_held(&callers->lock);
  if (!callers->has_watcher) (void)caller_make(client, true);
  if (callers->is_watcher_asleep) pthread_cond_signal(&callers->watched);
}

mp_status_t mp_callers_submit(mp_client_t *client, mp_blocking_t *blocking) {
  mp_lock_assert_none_held();
  mp_callers_t *callers = &client->workers->callers;
  mp_status_t status = NULL;
  mp_lock(&callers->lock);
  const bool is_dropped = callers->must_stop;
  if (!is_dropped) {
    bool has_taker = callers->num_idle > callers->length;
    if (!has_taker && callers->num_takers == 0) has_taker = caller_make(client, false);
    if (callers->num_takers == 0) {
      status = mp_status_make(MP_RESOURCE_EXHAUSTED,
                              "no thread could be started for a call that may block");
    } else {
      MP_QUEUE_PUSH(&callers->queue, blocking, next);
      callers->length += 1;
      if (has_taker) pthread_cond_signal(&callers->came);
      if (!has_taker) caller_watch_over(client);
    }
  }
  mp_unlock(&callers->lock);
  // Read under the lock: work that is queued when must_stop is set is dropped there, later work
  // here.
  if (is_dropped) blocking->run(blocking, true);
  return status;
}

// ---- The threads ----

// After this time without the end of a call, there are too few threads for the calls that wait.
static double caller_patience(const mp_client_t *client) {
  const uint32_t num_takers = client->workers->callers.num_takers;
  if (num_takers < client->workers->num_workers) return k_patience_seconds[0];
  double patience = k_patience_seconds[1];
  for (uint32_t i = client->workers->num_workers;
       i < num_takers && patience < k_patience_seconds[2]; ++i)
    patience *= 2;
  return patience < k_patience_seconds[2] ? patience : k_patience_seconds[2];
}

// The watcher waits until there is work and the others make no progress; then it becomes one of
// them.
static void caller_watch(mp_caller_t *self) {
  mp_callers_t *callers = &self->client->workers->callers;
  mp_lock_assert_held(&callers->lock);
  bool is_late = false;
  while (!callers->must_stop && !is_late) {
    const uint64_t num_done = callers->num_done;
    const bool has_work = callers->length != 0;
    const struct timespec until = mp_clock_after(has_work ? caller_patience(self->client) : 1e9);
    callers->is_watcher_asleep = !has_work;
    const bool is_over = !mp_lock_wait_until(&callers->lock, &callers->watched, &until);
    callers->is_watcher_asleep = false;
    is_late = has_work && is_over && callers->length != 0 && callers->num_done == num_done;
  }
  callers->has_watcher = false;
  self->is_watcher = false;
  callers->num_takers += 1;
}

// The next piece of work for this thread; NULL: the thread exits.
static mp_blocking_t *caller_take(mp_caller_t *self) {
  mp_callers_t *callers = &self->client->workers->callers;
  mp_lock_assert_held(&callers->lock);
  if (self->is_watcher) caller_watch(self);
  while (!callers->must_stop && callers->length == 0) {
    if (!self->is_first) return NULL;
    callers->num_idle += 1;
    const struct timespec until = mp_clock_after(1e9);
    (void)mp_lock_wait_until(&callers->lock, &callers->came, &until);
    callers->num_idle -= 1;
  }
  if (callers->must_stop) return NULL;
  mp_blocking_t *blocking = callers->queue.first;
  MP_QUEUE_POP(&callers->queue, next);
  callers->length -= 1;
  if (callers->length > callers->num_idle) caller_watch_over(self->client);
  return blocking;
}

static void caller_leave(mp_caller_t *self) {
  mp_callers_t *callers = &self->client->workers->callers;
  mp_lock_assert_held(&callers->lock);
  callers->num_takers -= 1;
  if (self->is_awaited) return;  // it is in the list of mp_callers_stop, which frees it
  MP_LIST_REMOVE(&callers->threads, self, prev, next);
  pthread_detach(self->thread);
  mp_free(self);
}

static void *caller_main(void *context) {
  mp_caller_t *self = context;
  mp_client_t *client = self->client;
  mp_callers_t *callers = &client->workers->callers;
  mp_bind_to_all(client);
  mp_lock(&callers->lock);
  char name[16];
  snprintf(name, sizeof(name), "mp-c%" PRIu32, callers->num_made % 100000u);
  (void)pthread_setname_np(pthread_self(), name);
  t_stays = self->is_first;
  mp_launching_exempt();  // launches of a call never wait, because a run waits for the call
  for (mp_blocking_t *blocking; (blocking = caller_take(self)) != NULL;) {
    self->is_calling = true;
    mp_unlock(&callers->lock);
    t_client = client;
    // The client may have begun to end meanwhile; then the work is dropped.
    blocking->run(blocking, mp_client_is_stopping(client));
    t_client = NULL;
    if (mp_client_is_forked(client)) return NULL;  // the call has forked, and this is the child
    mp_lock(&callers->lock);
    self->is_calling = false;
    callers->num_done += 1;
  }
  caller_leave(self);
  mp_unlock(&callers->lock);
  mp_client_unhold(client);
  return NULL;
}

void mp_callers_stop(mp_client_t *client) {
  mp_lock_assert_none_held();
  mp_callers_t *callers = &client->workers->callers;
  MP_LIST(mp_caller_t) idle = {NULL, NULL};
  mp_lock(&callers->lock);
  callers->must_stop = true;
  mp_blocking_t *dropped = callers->queue.first;
  callers->queue.first = callers->queue.last = NULL;
  callers->length = 0;
  for (mp_caller_t *caller = callers->threads.first, *next; caller != NULL; caller = next) {
    next = caller->next;
    // A call may never end, and this may be its own thread, so threads in calls are not joined.
    // When their call returns they see must_stop, release their hold on the client and exit.
    if (caller->is_calling) continue;
    caller->is_awaited = true;
    MP_LIST_REMOVE(&callers->threads, caller, prev, next);
    MP_LIST_APPEND(&idle, caller, prev, next);
  }
  pthread_cond_broadcast(&callers->came);
  pthread_cond_broadcast(&callers->watched);
  mp_unlock(&callers->lock);
  // This function now owns the work and the threads, and must not hold the lock: dropped work calls
  // back, and idle threads take the lock to exit.
  while (dropped != NULL) {
    mp_blocking_t *blocking = dropped;
    dropped = blocking->next;
    blocking->run(blocking, true);
  }
  while (idle.first != NULL) {
    mp_caller_t *caller = idle.first;
    idle.first = caller->next;
    pthread_join(caller->thread, NULL);
    mp_free(caller);
  }
}
