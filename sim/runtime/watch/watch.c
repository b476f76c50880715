#include "sim/runtime/watch/watch.h"

#include <inttypes.h>
#include <stdio.h>

#include "sim/base/alloc.h"
#include "sim/base/log.h"
#include "sim/base/os/clock.h"
#include "sim/base/os/lock.h"
#include "sim/base/os/system.h"
#include "sim/runtime/devices/client_impl.h"
#include "sim/runtime/sessions/session.h"

enum { MP_WATCH_STACK = 256 * 1024 };

atomic_uint mp_watch_tick_ms = 500;

// How long the watch waits for answers of other processes.
static const double k_answer_seconds = 1.5;

struct mp_watch_s {
  mp_endpoint_t *endpoint;
  double warn_s, timeout_s;  // 0: never
  mp_lock_t lock;            // of the next three
  pthread_cond_t changed;    // one of the next two was set
  bool must_stop;
  bool has_inquiries;
  pthread_t thread;
};

// ---- One session; its lock is held ----

static bool watch_has_all_answers(const mp_peers_t *peers) {
  for (uint32_t i = 0; i < peers->num_ranks; ++i) {
    if (peers->answers[i] == NULL && mp_session_misses_rank(peers->session, peers->ranks[i])) {
      return false;
    }
  }
  return true;
}

static void watch_ask(mp_peers_t *peers) {
  const mp_envelope_t envelope = mp_peers_envelope(peers, MP_PACKET_ASK);
  for (uint32_t i = 0; i < peers->num_ranks; ++i) {
    mp_packet_release(peers->answers[i]);
    peers->answers[i] = NULL;
    if (mp_session_misses_rank(peers->session, peers->ranks[i])) {
      mp_peers_send(peers, peers->ranks[i], &envelope, NULL, 0);
    }
  }
}

static void watch_print_answers(mp_strbuf_t *out, const mp_peers_t *peers) {
  const mp_world_t *world = mp_endpoint_world(peers->endpoint);
  for (uint32_t i = 0; i < peers->num_ranks; ++i) {
    if (!mp_session_misses_rank(peers->session, peers->ranks[i])) continue;
    const mp_peer_t *peer = mp_world_peer(world, peers->ranks[i]);
    const mp_packet_t *answer = peers->answers[i];
    if (answer != NULL) {
      mp_strbuf_printf(out, "; process %" PRIu32 " reports: %.*s", peers->ranks[i],
                       mp_str_precision(answer->bytes),
                       answer->bytes == 0 ? "" : (const char *)answer->data);
    } else {
      mp_strbuf_printf(out, "; process %" PRIu32 " (pid %" PRId64 " on host %s) does not answer",
                       peers->ranks[i], peer->pid, peer->hostname == NULL ? "?" : peer->hostname);
    }
  }
}

// Describes the wait, for the warning and for the error.
static void watch_describe(mp_strbuf_t *out, const mp_session_t *session, double seconds) {
  mp_session_describe_wait(session, seconds, out);
  watch_print_answers(out, session->peers);
}

static void watch_warn(const mp_session_t *session, double seconds) {
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  watch_describe(&text, session, seconds);
  mp_log_notice("process %" PRIu32 ": %s", session->peers->self, mp_strbuf_text(&text));
  mp_strbuf_deinit(&text);
}

// Processes that have not answered are not waited for when this process ends.
static void watch_note_silent(const mp_peers_t *peers) {
  for (uint32_t i = 0; i < peers->num_ranks; ++i) {
    if (peers->answers[i] != NULL || !mp_session_misses_rank(peers->session, peers->ranks[i])) {
      continue;
    }
    mp_world_note_silent(mp_endpoint_world(peers->endpoint), peers->ranks[i]);
  }
}

static mp_status_t watch_timeout_error(const mp_session_t *session, double seconds) {
  watch_note_silent(session->peers);
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  watch_describe(&text, session, seconds);
  mp_status_t status =
      mp_status_make(MP_DEADLINE_EXCEEDED, "%s (the limit is MINIPOD_COLLECTIVE_TIMEOUT_S)",
                     mp_strbuf_text(&text));
  mp_strbuf_deinit(&text);
  return status;
}

// Checks a session that has not failed. If nothing has moved for long enough, asks the missing
// processes. At a later check warns with their answers, or without if they take too long. At last
// returns the error of a session that has waited too long; OK until then.
static mp_status_t watch_look_at(const mp_watch_t *watch, mp_session_t *session, double now) {
  mp_lock_assert_held(&session->lock);
  mp_peers_t *peers = session->peers;
  if (!mp_session_waits_for_peers(session) || peers->num_changes != peers->watched_changes) {
    peers->watched_changes = peers->num_changes;
    peers->still_since = now;
    peers->alarm = MP_ALARM_NONE;
    return NULL;
  }
  const double seconds = now - peers->still_since;
  const bool is_late = watch->timeout_s > 0 && seconds >= watch->timeout_s;
  const bool must_ask = (watch->warn_s > 0 && seconds >= watch->warn_s) || is_late;
  if (peers->alarm == MP_ALARM_NONE && must_ask) {
    watch_ask(peers);
    peers->alarm = MP_ALARM_ASKED;
    peers->asked_at = now;
    return NULL;
  }
  if (peers->alarm == MP_ALARM_NONE) return NULL;
  if (!watch_has_all_answers(peers) && now - peers->asked_at < k_answer_seconds) return NULL;
  if (peers->alarm == MP_ALARM_ASKED) {
    if (watch->warn_s > 0 && !is_late) watch_warn(session, seconds);
    peers->alarm = MP_ALARM_TOLD;
  }
  return is_late ? watch_timeout_error(session, seconds) : NULL;
}

typedef struct {
  const mp_watch_t *watch;
  double now;
} look_t;

static void watch_look(mp_session_t *session, void *context) {
  const look_t *at = context;
  mp_lock(&session->lock);
  mp_status_t error = session->error != NULL ? NULL : watch_look_at(at->watch, session, at->now);
  mp_unlock(&session->lock);
  // Takes the session's lock itself, and schedules. If another error came first, this one is
  // dropped.
  if (error != NULL) mp_session_poison(session, error);
}

// ---- The thread ----

// Called with the router's lock held, when another process has sent an inquiry.
static void watch_wake(void *context) {
  mp_watch_t *watch = context;
  mp_lock(&watch->lock);
  watch->has_inquiries = true;
  pthread_cond_broadcast(&watch->changed);
  mp_unlock(&watch->lock);
}

// Sleeps until the time of the next check, and answers inquiries meanwhile. The lock is held.
static void watch_sleep_until_next(mp_watch_t *watch, mp_client_t *client) {
  const struct timespec until = mp_clock_after(1e-3 * atomic_load(&mp_watch_tick_ms));
  for (bool is_due = false; !watch->must_stop && !is_due;) {
    if (watch->has_inquiries) {
      watch->has_inquiries = false;
      mp_unlock(&watch->lock);
      client->runner->answer(client);
      mp_lock(&watch->lock);
    } else {
      is_due = !mp_lock_wait_until(&watch->lock, &watch->changed, &until);
    }
  }
}

static void watch_destroy(mp_watch_t *watch) {
  mp_endpoint_on_inquiry(watch->endpoint, NULL, NULL);
  pthread_cond_destroy(&watch->changed);
  mp_lock_deinit(&watch->lock);
  mp_free(watch);
}

static void *watch_main(void *context) {
  mp_watch_t *watch = context;
  (void)pthread_setname_np(pthread_self(), "mp-watch");
  mp_client_t *client = mp_endpoint_client(watch->endpoint);
  bool must_end_client = false;
  mp_lock(&watch->lock);
  while (!watch->must_stop && !must_end_client) {
    watch_sleep_until_next(watch, client);
    if (watch->must_stop) break;
    // The check takes the locks of launches, of the router and of sessions, and may send. So the
    // watch's own lock, a leaf, is free meanwhile, and mp_watch_stop can set must_stop at any time;
    // it is read after the check.
    mp_unlock(&watch->lock);
    look_t at = {watch, mp_clock_seconds()};
    mp_endpoint_visit(watch->endpoint, watch_look, &at);
    client->runner->probe(client);
    must_end_client = mp_endpoint_is_spent(watch->endpoint);
    mp_lock(&watch->lock);
  }
  mp_unlock(&watch->lock);
  // An endpoint can be spent only after the users have released its client. So this thread ends the
  // client; no other thread calls mp_watch_stop or could join this thread.
  if (must_end_client) {
    pthread_detach(pthread_self());
    client->watch = NULL;
    watch_destroy(watch);
    client->runner->end(client);
  }
  return NULL;
}

mp_status_t mp_watch_start(mp_endpoint_t *endpoint, const mp_options_t *options,
                           mp_watch_t **out_watch) {
  mp_watch_t *watch = mp_calloc(1, sizeof(*watch));
  MP_RETURN_IF_NULL(watch);
  watch->endpoint = endpoint;
  watch->warn_s = (double)options->collective_warn;
  watch->timeout_s = (double)options->collective_timeout;
  mp_lock_init(&watch->lock, MP_LOCK_WATCH);
  mp_clock_cond_init(&watch->changed);
  const int error = mp_thread_create(&watch->thread, MP_WATCH_STACK, watch_main, watch);
  if (error != 0) {
    watch_destroy(watch);
    return mp_status_make(MP_RESOURCE_EXHAUSTED,
                          "the thread that watches launches could not be started (error %d)",
                          error);
  }
  mp_endpoint_on_inquiry(endpoint, watch_wake, watch);
  *out_watch = watch;
  return NULL;
}

void mp_watch_stop(mp_watch_t *watch) {
  if (watch == NULL) return;
  mp_lock_assert_none_held();  // the thread is waited for
  mp_lock(&watch->lock);
  watch->must_stop = true;
  pthread_cond_broadcast(&watch->changed);
  mp_unlock(&watch->lock);
  pthread_join(watch->thread, NULL);
  watch_destroy(watch);
}
