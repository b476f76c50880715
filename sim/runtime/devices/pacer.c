#include "sim/runtime/devices/pacer.h"

#include <math.h>

#include "sim/base/alloc.h"
#include "sim/base/containers/list.h"
#include "sim/base/os/clock.h"
#include "sim/base/os/host_clock.h"
#include "sim/base/os/lock.h"
#include "sim/base/os/system.h"
#include "sim/runtime/devices/client_impl.h"

enum { PACER_STACK = 256 << 10 };

static const double k_look_again =
    1e-3;  // seconds between two queries of times that are not known yet
static const double k_patience = 0.1;  // seconds after which events with unknown times are released
static const double k_long_sleep = 3600;  // seconds; the sleeper then looks again

// An event that is held back.
typedef struct held_s held_t;
struct held_s {
  mp_client_t *client;  // a hold
  held_t *next;
  mp_event_t *event;   // a reference: the event that the user has
  mp_status_t status;  // of the inner event
  mp_stamp_t stamp;
  double since;      // real times: when the inner event was set,
  double due;        // and when the user should see it; valid once it is in `held`
  bool stops_clock;  // the host's clock stops until the user sees it
};

struct mp_pacer_s {
  mp_client_t *client;
  mp_lock_t lock;  // of all fields below except `held` and `unknown`, which only the thread uses
  pthread_cond_t changed;  // something came in, or must_stop was set
  pthread_t thread;
  bool must_stop;
  bool is_virtual;            // no waiting: the host's clock is set to the due time; constant
  MP_QUEUE(held_t) incoming;  // inner events that are set
  MP_QUEUE(held_t) unknown;   // events whose due time the model does not know yet
  MP_QUEUE(held_t) held;      // sorted by due time
};

static _Thread_local const mp_pacer_t *t_pacer;  // the pacer whose thread this is

// ---- One event ----

// Sets the user's event. Calls back; no lock is held.
static void pacer_let_go(held_t *held) {
  mp_client_t *client = held->client;
  if (held->stops_clock) mp_host_clock_go();
  mp_event_set(held->event, held->status);
  mp_event_release(held->event);
  mp_free(held);
  mp_client_unhold(client);
}

// Called when the inner event is set.
static void pacer_on_ready(mp_status_t status, void *context) {
  held_t *held = context;
  mp_pacer_t *pacer = held->client->pacer;
  held->status = mp_status_retain(status);
  if (mp_client_is_forked(held->client)) {  // where the lock may be held for ever
    pacer_let_go(held);
    return;
  }
  held->since = mp_clock_seconds();
  mp_lock(&pacer->lock);
  // Under the lock, under which the thread takes `incoming` for the last time once it has seen
  // must_stop: the thread releases events that were added before that, and this function releases
  // later ones.
  const bool is_paced = status == NULL && !pacer->must_stop;
  if (is_paced) {
    MP_QUEUE_PUSH(&pacer->incoming, held, next);
    pthread_cond_signal(&pacer->changed);
  }
  mp_unlock(&pacer->lock);
  if (!is_paced) pacer_let_go(held);
}

mp_event_t *mp_pacer_hold_back(mp_client_t *client, mp_event_t *inner, mp_stamp_t stamp) {
  if (client->pacer == NULL || stamp == 0 || mp_client_is_forked(client))
    return mp_event_retain(inner);
  // With a virtual clock only waits for results count: not the end of a launch.
  const bool is_virtual = client->pacer->is_virtual;
  if (is_virtual && mp_stamp_newer_transfer(0, stamp) == 0) return mp_event_retain(inner);
  held_t *held = mp_calloc(1, sizeof(*held));
  mp_event_t *event = NULL;
  mp_status_t status = held == NULL ? mp_status_out_of_memory() : mp_event_create(&event);
  if (status == NULL) {
    mp_event_retain(event);  // the user's reference
    *held = (held_t){.client = client, .event = event, .stamp = stamp, .stops_clock = is_virtual};
    mp_client_hold(client);
    if (is_virtual) mp_host_clock_stop();
    status = mp_event_on_ready(inner, pacer_on_ready, held);
    if (status == NULL) return event;
    if (is_virtual) mp_host_clock_go();
    mp_client_unhold(client);
    mp_event_release(event);
  }
  mp_status_ignore(status);
  mp_event_release(event);
  mp_free(held);
  return mp_event_retain(inner);
}

// ---- The thread ----

// Inserts an event into `held` by its due time, usually as the last one.
static void pacer_sort_in(mp_pacer_t *pacer, held_t *held) {
  held_t *before = NULL;
  if (pacer->held.last != NULL && pacer->held.last->due <= held->due) {
    before = pacer->held.last;
  } else {
    for (held_t *h = pacer->held.first; h != NULL && h->due <= held->due; h = h->next) before = h;
  }
  held_t **link = before == NULL ? &pacer->held.first : &before->next;
  held->next = *link;
  *link = held;
  if (held->next == NULL) pacer->held.last = held;
}

// Records the due time of an event.
static void pacer_note(mp_pacer_t *pacer, held_t *held) {
  if (pacer->is_virtual) {
    mp_host_clock_advance(held->due);
    held->due = held->since;
  } else if (mp_stamp_newer_transfer(0, held->stamp) != 0) {  // the end of a launch without waiters
    mp_model_note_late(pacer->client->model, held->due, held->since);
  }
}

// Asks the model for the due times of incoming events. No lock is held.
static void pacer_ask(mp_pacer_t *pacer, held_t *first) {
  const double now = mp_clock_seconds();
  for (held_t *held = first; held != NULL; held = first) {
    first = held->next;
    if (mp_model_due(pacer->client->model, held->stamp, &held->due)) {
      pacer_note(pacer, held);
      pacer_sort_in(pacer, held);
    } else if (now - held->since >= k_patience) {
      held->due = now;
      pacer_sort_in(pacer, held);
    } else {
      MP_QUEUE_PUSH(&pacer->unknown, held, next);
    }
  }
}

// Releases all events that are due. No lock is held.
static void pacer_let_go_until(mp_pacer_t *pacer, double moment) {
  for (held_t *held = pacer->held.first; held != NULL && held->due <= moment;
       held = pacer->held.first) {
    MP_QUEUE_POP(&pacer->held, next);
    pacer_let_go(held);
  }
}

// Sleeps until an event comes in or is due; the lock is held.
static void pacer_sleep(mp_pacer_t *pacer) {
  double seconds = k_long_sleep;
  if (pacer->held.first != NULL) seconds = pacer->held.first->due - mp_clock_seconds();
  if (pacer->unknown.first != NULL && seconds > k_look_again) seconds = k_look_again;
  if (!(seconds > 0)) return;
  const struct timespec until = mp_clock_after(seconds);
  while (!pacer->must_stop && pacer->incoming.first == NULL &&
         mp_lock_wait_until(&pacer->lock, &pacer->changed, &until)) {
  }
}

static void *pacer_main(void *context) {
  mp_pacer_t *pacer = context;
  mp_client_t *client = pacer->client;
  (void)pthread_setname_np(pthread_self(), "mp-pacer");
  t_pacer = pacer;
  mp_lock(&pacer->lock);
  while (!pacer->must_stop) {
    pacer_sleep(pacer);
    MP_QUEUE_APPEND(&pacer->unknown, &pacer->incoming, next);
    held_t *asked = pacer->unknown.first;
    pacer->unknown.first = pacer->unknown.last = NULL;
    // Without the lock: asking takes the model's lock, releasing calls back, and inner events that
    // are set meanwhile must not wait for either. Only this thread uses `unknown` and `held`.
    mp_unlock(&pacer->lock);
    pacer_ask(pacer, asked);
    pacer_let_go_until(pacer, mp_clock_seconds());
    mp_lock(&pacer->lock);
  }
  MP_QUEUE_APPEND(&pacer->unknown, &pacer->incoming, next);
  mp_unlock(&pacer->lock);
  for (held_t *held = pacer->unknown.first; held != NULL; held = pacer->unknown.first) {
    MP_QUEUE_POP(&pacer->unknown, next);
    pacer_let_go(held);
  }
  pacer_let_go_until(pacer, INFINITY);
  mp_client_unhold(client);  // the pacer may be freed from here on
  return NULL;
}

mp_status_t mp_pacer_create(mp_client_t *client, mp_pacer_t **out_pacer) {
  mp_pacer_t *pacer = mp_calloc(1, sizeof(*pacer));
  MP_RETURN_IF_NULL(pacer);
  pacer->client = client;
  pacer->is_virtual = mp_model_is_virtual(client->model);
  mp_lock_init(&pacer->lock, MP_LOCK_PACER);
  mp_clock_cond_init(&pacer->changed);
  mp_client_hold(client);  // the thread's
  const int error = mp_thread_create(&pacer->thread, PACER_STACK, pacer_main, pacer);
  if (error != 0) {
    mp_client_unhold(client);
    mp_pacer_free(pacer);
    return mp_status_make(MP_RESOURCE_EXHAUSTED,
                          "the thread that keeps the pace could not be started (error %d)", error);
  }
  if (pacer->is_virtual) mp_host_clock_use();
  *out_pacer = pacer;
  return NULL;
}

void mp_pacer_stop(mp_pacer_t *pacer) {
  if (pacer == NULL) return;
  mp_lock_assert_none_held();  // the thread is waited for
  mp_lock(&pacer->lock);
  pacer->must_stop = true;
  pthread_cond_signal(&pacer->changed);
  mp_unlock(&pacer->lock);
  // Events that the thread releases call back, and a callback may end the client: then the thread
  // cannot wait for itself. It later releases the remaining events; its hold keeps the pacer until
  // then.
  if (pacer == t_pacer) {
    pthread_detach(pacer->thread);
  } else {
    pthread_join(pacer->thread, NULL);
  }
  if (pacer->is_virtual) mp_host_clock_unuse();
}

void mp_pacer_free(mp_pacer_t *pacer) {
  if (pacer == NULL) return;
  MP_ASSERT(pacer->incoming.first == NULL && pacer->held.first == NULL);
  pthread_cond_destroy(&pacer->changed);
  mp_lock_deinit(&pacer->lock);
  mp_free(pacer);
}
