// Progress: looking for incoming packets and delivering them. The world's thread does this, or for
// some time a thread that would otherwise only wait for it (mp_world_attend_begin).
#include <math.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>

#include "collectives/transport/world_impl.h"
#include "sim/base/os/clock.h"
#include "sim/base/os/system.h"

// How often transports check whether their peers are alive. A launcher that ends a job because one
// process has died gives the others only a second, in which one of them reports it.
static const double k_tick_seconds = 0.25;
// How long the thread sleeps while there are envelopes that there was no memory to send.
static const double k_owed_seconds = 0.001;

enum {
  MP_TICKS_PER_TRIM = 4,
  MP_PROGRESS_STACK = 8 << 20,  // as large as a worker's: the thread may run the rest of a launch
  // How long the thread stays awake after it has found something: answers tend to come at once, and
  // waking the thread would take longer. It yields, so any other thread gets the core meanwhile. No
  // longer: the kernel finds a free core for threads that wake up, and hardly ever moves one that
  // only yields, however many others want its core.
  MP_LINGER_US = 50,
  // An attending thread gives up when nothing has come for the first time, and in any case after
  // the second.
  MP_PATIENCE_US = 300,
  MP_MOST_PATIENCE_US = 100000,
  // A thread that has attended tends to be back soon: for this time the world's thread looks only
  // when a thread of this process rings.
  MP_BACK_SOON_US = 200,
  // While a thread attends, the world's thread checks this often whether that is still so, and
  // makes a round if the other has made none meanwhile: a callback may hold it up.
  MP_ATTENDED_PAUSE_US = 1000,
};

// ---- A round ----

static bool world_progress_take_inbox(mp_world_t *world) {
  // The whole list at once, because handlers must not be called under this lock: they may post.
  mp_lock(&world->inbox_lock);
  mp_packet_list_t list = world->inbox;
  world->inbox = (mp_packet_list_t){0};
  mp_unlock(&world->inbox_lock);
  if (list.first == NULL) return false;
  for (mp_packet_t *packet; (packet = mp_packet_list_pop(&list)) != NULL;) {
    mp_world_arrive(world, packet);
  }
  return true;
}

// Gives all channels what is new for them; true when there was any.
static bool world_progress_deliver_news(mp_world_t *world) {
  bool did = false;
  for (int i = 0; i < MP_WORLD_CHANNELS; ++i) {
    mp_channel_state_t *channel = &world->channels[i];
    // A relaxed load may miss the flag: a thread with news rings after setting it, and then there
    // is another round.
    if (!atomic_load_explicit(&channel->has_news, memory_order_relaxed)) continue;
    // Cleared before the news are looked at: what comes after that look sets the flag again. It is
    // read as it is cleared, so that whatever came before the flag that this clears is seen below.
    (void)atomic_exchange(&channel->has_news, false);
    mp_world_catch_up(world, channel);
    did = true;
  }
  return did;
}

void mp_world_work_off(mp_world_t *world, uint32_t number) {
  mp_channel_state_t *channel = &world->channels[number];
  for (bool did = true; did;) {
    mp_followup_t followup = {0};
    // The handler stays attached meanwhile: detaching takes this lock, too.
    mp_lock(&world->afterwards);
    mp_lock(&channel->calls);
    const mp_handler_t handler = channel->is_attached ? channel->handler : (mp_handler_t){0};
    mp_unlock(&channel->calls);
    did = handler.afterwards != NULL && handler.afterwards(handler.context, &followup);
    mp_unlock(&world->afterwards);
    if (followup.run != NULL) followup.run(followup.context);
  }
}

// Makes one round through everything that may have news. True when there was any; *out_sleep is for
// how many seconds no other round is needed, unless the bell rings.
static bool world_progress_go_round(mp_world_t *world, double *out_sleep) {
  double sleep = k_tick_seconds;
  // Only one thread at a time may call the transports.
  mp_lock(&world->turn);
  atomic_fetch_add_explicit(&world->num_rounds, 1, memory_order_relaxed);
  bool busy = world_progress_take_inbox(world);
  for (uint32_t i = 0; i < world->num_transports; ++i) {
    mp_transport_t *transport = world->transports[i];
    busy |= transport->ops->progress(transport);
    uint32_t us =
        transport->ops->poll_after_us == NULL ? 0 : transport->ops->poll_after_us(transport);
    if (us != 0) {
      sleep = fmin(sleep, 1e-6 * us);
    }
  }
  // A debt that is made after this look has rung the bell.
  if (atomic_load(&world->num_owed) != 0) {
    mp_world_pay_all(world);
    sleep = fmin(sleep, k_owed_seconds);
  }
  busy |= world_progress_deliver_news(world);
  mp_unlock(&world->turn);
  for (uint32_t i = 0; busy && i < MP_WORLD_CHANNELS; ++i) mp_world_work_off(world, i);
  *out_sleep = sleep;
  return busy;
}

// ---- The world's thread ----

static void world_progress_tick(mp_world_t *world, unsigned number) {
  mp_lock(&world->turn);
  if (world->segment != NULL && number % MP_TICKS_PER_TRIM == 0) mp_segment_trim(world->segment);
  for (uint32_t i = 0; i < world->num_transports; ++i) {
    mp_transport_t *transport = world->transports[i];
    if (transport->ops->tick != NULL) transport->ops->tick(transport);
  }
  mp_unlock(&world->turn);
}

// For how many seconds the world's thread may leave the rounds to an attending thread; 0 or less:
// it may not.
static double world_progress_seconds_off(mp_world_t *world, unsigned *num_rounds) {
  const unsigned before = *num_rounds;
  *num_rounds = atomic_load_explicit(&world->num_rounds, memory_order_relaxed);
  if (atomic_load(&world->is_attended)) {
    return *num_rounds == before ? 0 : 1e-6 * MP_ATTENDED_PAUSE_US;
  }
  const double until = atomic_load(&world->attended_until);
  return until == 0 ? 0 : until - mp_clock_seconds();
}

// Sleeps while another thread makes progress, or has just done so; false: it is this thread's turn.
// Peers of this host, which ring the doorbell, do not wake it: an attending thread looks anyway,
// and one that has just attended will be back before this one has woken up.
static bool world_progress_doze(mp_world_t *world, unsigned rung, unsigned *num_rounds) {
  atomic_store(&world->is_dozing, true);
  const double seconds = world_progress_seconds_off(world, num_rounds);
  if (seconds > 0) mp_doorbell_doze(world->doorbell, rung, seconds);
  atomic_store(&world->is_dozing, false);
  return seconds > 0;
}

// Makes a round, and the checks that are due when nothing has come for a while. Returns the time.
static double world_progress_work(mp_world_t *world, unsigned rung, double *last_busy) {
  double sleep;
  const bool busy = world_progress_go_round(world, &sleep);
  const double now = mp_clock_seconds();
  if (busy) {
    *last_busy = now;
  } else if (now - *last_busy < 1e-6 * MP_LINGER_US) {
    sched_yield();
  } else {
    mp_doorbell_sleep(world->doorbell, rung, sleep);
    return mp_clock_seconds();
  }
  return now;
}

static void *world_progress_main(void *context) {
  mp_world_t *world = context;
  (void)pthread_setname_np(pthread_self(), "mp-world");
  (void)prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);  // ns: pauses are short
  double last_busy = 0;
  unsigned num_ticks = 0, num_rounds = 0;
  double next_tick = mp_clock_seconds() + k_tick_seconds;
  while (!atomic_load(&world->must_stop)) {
    // Before all that is looked at: whatever comes in after its look has rung since, and the bell
    // does not let this thread sleep.
    const unsigned rung = atomic_load(&world->doorbell->rung);
    const double now = world_progress_doze(world, rung, &num_rounds)
                           ? mp_clock_seconds()
                           : world_progress_work(world, rung, &last_busy);
    if (now < next_tick) continue;
    next_tick = now + k_tick_seconds;
    world_progress_tick(world, ++num_ticks);
  }
  return NULL;
}

mp_status_t mp_world_start(mp_world_t *world) {
  const int error = mp_thread_create(&world->thread, MP_PROGRESS_STACK, world_progress_main, world);
  if (error != 0) {
    return mp_status_make(MP_RESOURCE_EXHAUSTED, "the thread for messages could not be started: %s",
                          strerror(error));
  }
  world->is_started = true;
  return NULL;
}

// ---- A thread that attends ----

void mp_world_attend_end(mp_world_t *world, bool (*is_going_on)(void *context), void *context) {
  const double begin = mp_clock_seconds();
  double last_busy = begin, now = begin, sleep;
  unsigned rung;
  bool is_over;
  do {
    // Asked before the round, so that what this thread has sent at the end goes with the last one.
    is_over = !is_going_on(context) || now - last_busy > 1e-6 * MP_PATIENCE_US ||
              now - begin > 1e-6 * MP_MOST_PATIENCE_US;
    rung = atomic_load(&world->doorbell->rung);
    (void)mp_world_hear_own_bell(world);
    const bool busy = world_progress_go_round(world, &sleep);
    now = mp_clock_seconds();
    if (busy) {
      last_busy = now;
    } else if (!is_over) {
      sched_yield();
    }
  } while (!is_over);
  const bool has_rung = mp_world_hear_own_bell(world);
  atomic_store(&world->attended_until, now + 1e-6 * MP_BACK_SOON_US);
  // Before the look at the bell (mp_world_ring).
  mp_world_stop_attending(world);
  if (has_rung || is_going_on(context) || atomic_load(&world->doorbell->rung) != rung) {
    mp_world_ring(world);
  }
}
