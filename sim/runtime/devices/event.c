#include "sim/runtime/devices/event.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>

#include "sim/base/alloc.h"
#include "sim/base/os/clock.h"
#include "sim/base/os/futex.h"
#include "sim/base/os/lock.h"
#include "sim/base/os/process.h"
#include "sim/runtime/devices/launching.h"

// UNSET -> SETTING (one thread wins) -> SET (status may be read). Without SETTING two threads that
// set the event at once could both write its status.
enum { MP_EVENT_UNSET, MP_EVENT_SETTING, MP_EVENT_SET };

typedef struct event_waiter_s {
  struct event_waiter_s *next;
  mp_event_callback_t callback;
  void *context;
} event_waiter_t;

struct mp_event_s {
  atomic_int references;
  atomic_uint state;     // futex word
  atomic_uint sleepers;  // threads in mp_event_await; 0: no system call is needed
  uint32_t generation;   // mp_process_generation() at creation
  mp_status_t status;    // written while SETTING, read by all once SET: the state publishes it
  _Atomic(event_waiter_t *) waiters;  // newest first; &g_closed after the event was set
};

static event_waiter_t g_closed;

mp_status_t mp_event_create(mp_event_t **out_event) {
  mp_event_t *event = mp_malloc(sizeof(*event));
  MP_RETURN_IF_NULL(event);
  atomic_init(&event->references, 1);
  atomic_init(&event->state, MP_EVENT_UNSET);
  atomic_init(&event->sleepers, 0);
  event->generation = mp_process_generation();
  event->status = NULL;
  atomic_init(&event->waiters, NULL);
  *out_event = event;
  return NULL;
}

mp_event_t *mp_event_retain(mp_event_t *event) {
  if (event == NULL) return NULL;
  // Relaxed: the caller has a reference already, and a count that grows publishes nothing.
  const int before = atomic_fetch_add_explicit(&event->references, 1, memory_order_relaxed);
  MP_ASSERT(before > 0);
  return event;
}

// Calls the callbacks in the order in which they were registered, and frees the list.
static void event_run_waiters(event_waiter_t *newest, mp_status_t status) {
  mp_lock_assert_none_held();
  event_waiter_t *oldest = NULL;
  while (newest != NULL) {
    event_waiter_t *next = newest->next;
    newest->next = oldest;
    oldest = newest;
    newest = next;
  }
  mp_launching_exempt();  // launches in callbacks must not wait, because later callbacks wait for
                          // them
  while (oldest != NULL) {
    event_waiter_t *next = oldest->next;
    oldest->callback(status, oldest->context);
    mp_free(oldest);
    oldest = next;
  }
  mp_launching_unexempt();
}

void mp_event_release(mp_event_t *event) {
  if (event == NULL) return;
  // Release: what this thread did with the event comes before the decrement. Acquire: the last one
  // sees what all others did, and then frees the event.
  const int before = atomic_fetch_sub_explicit(&event->references, 1, memory_order_acq_rel);
  MP_ASSERT(before > 0);
  if (before != 1) return;
  MP_ASSERT(atomic_load(&event->state) != MP_EVENT_SETTING && atomic_load(&event->sleepers) == 0);
  // No other thread can change the list any more, so this needs no exchange.
  event_waiter_t *waiters = atomic_load(&event->waiters);
  if (waiters != NULL && waiters != &g_closed) {
    // The last reference was released before the event was set: it can never be set any more, but
    // its callbacks must run.
    mp_status_t lost = mp_status_make(MP_CANCELLED, "an event was dropped before it was set");
    event_run_waiters(waiters, lost);
    mp_status_release(lost);
  }
  mp_status_release(event->status);
  mp_free(event);
}

void mp_event_set(mp_event_t *event, mp_status_t status) {
  unsigned expected = MP_EVENT_UNSET;
  if (!atomic_compare_exchange_strong(&event->state, &expected, MP_EVENT_SETTING)) {
    mp_status_release(status);
    return;
  }
  mp_event_retain(event);  // a callback, or a woken thread, may drop the caller's reference
  MP_ASSERT(event->status == NULL);
  event->status = status;
  // The store publishes the status, and everything that this thread and those before it have
  // written to the results. It is sequentially consistent because of the load after it: a sleeper
  // counts itself before it reads the state, and this thread sets the state before it reads the
  // count. With a weaker order each could miss the other, and the sleeper would sleep for ever.
  atomic_store(&event->state, MP_EVENT_SET);
  if (atomic_load(&event->sleepers) != 0) mp_futex_wake_all(&event->state);
  // A callback that is registered before the exchange is in the list that is taken here; a later
  // registration finds the list closed and calls back itself. So each callback runs once.
  event_waiter_t *waiters = atomic_exchange(&event->waiters, &g_closed);
  MP_ASSERT(waiters != &g_closed);  // only the thread that sets the event closes the list
  if (waiters != NULL) event_run_waiters(waiters, status);
  mp_event_release(event);
}

static bool event_is_set(const mp_event_t *event) {
  // Acquire, paired with the store in mp_event_set: a thread that sees SET may read the status, and
  // the bytes of buffers whose definition the event is, without any lock.
  return atomic_load_explicit(&event->state, memory_order_acquire) == MP_EVENT_SET;
}

// In a forked child no thread can set an event of the parent.
static bool event_is_orphan(const mp_event_t *event) {
  return event->generation != mp_process_generation();
}

bool mp_event_is_ready(const mp_event_t *event) {
  return event_is_set(event) || event_is_orphan(event);
}

bool mp_event_has_succeeded(const mp_event_t *event) {
  return event_is_set(event) && event->status == NULL;
}

mp_status_t mp_event_status(const mp_event_t *event) {
  if (event_is_set(event)) return mp_status_retain(event->status);
  if (!event_is_orphan(event)) return NULL;
  return mp_status_make(MP_FAILED_PRECONDITION,
                        "this work was pending when the process forked: the child has no workers "
                        "to finish it");
}

mp_status_t mp_event_await(mp_event_t *event) {
  while (!mp_event_is_ready(event)) (void)mp_event_wait_for(event, 1e9);
  return mp_event_status(event);
}

bool mp_event_wait_for(mp_event_t *event, double seconds) {
  if (mp_event_is_ready(event)) return true;
  if (!(seconds > 0)) return false;
  mp_lock_assert_none_held();
  double deadline = mp_clock_seconds() + fmin(seconds, 1e9);
  // Before the state is read; see mp_event_set.
  atomic_fetch_add(&event->sleepers, 1);
  bool ready = false;
  for (;;) {
    // The kernel lets the thread sleep only if the state is still this one. So an event that is set
    // in between is not missed, and a change from UNSET to SETTING only costs one more round.
    unsigned state = atomic_load(&event->state);
    ready = mp_event_is_ready(event);
    double left = deadline - mp_clock_seconds();
    if (ready || left <= 0) break;
    const struct timespec timeout = mp_clock_interval(left);
    mp_futex_wait(&event->state, state, &timeout);
  }
  atomic_fetch_sub(&event->sleepers, 1);
  return ready;
}

mp_status_t mp_event_on_ready(mp_event_t *event, mp_event_callback_t callback, void *context) {
  event_waiter_t *waiter = NULL;
  if (!mp_event_is_ready(event)) {
    waiter = mp_malloc(sizeof(*waiter));
    MP_RETURN_IF_NULL(waiter);
    *waiter = (event_waiter_t){NULL, callback, context};
    event_waiter_t *head = atomic_load(&event->waiters);
    // Single waiters are never removed from the list, so an equal head means an equal list. The
    // exchange publishes the waiter to the thread that sets the event.
    while (head != &g_closed) {
      waiter->next = head;
      if (atomic_compare_exchange_weak(&event->waiters, &head, waiter)) return NULL;
    }
    mp_free(waiter);  // the event was set meanwhile
  }
  mp_lock_assert_none_held();
  mp_event_retain(event);  // the callback may drop the caller's reference
  mp_status_t status = mp_event_status(event);
  callback(status, context);
  mp_status_release(status);
  mp_event_release(event);
  return NULL;
}
