#include "sim/runtime/parcels/post.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim/base/alloc.h"
#include "sim/base/os/clock.h"
#include "sim/base/os/lock.h"
#include "sim/base/os/process.h"
#include "sim/base/os/system.h"
#include "sim/runtime/parcels/tickets.h"
#include "sim/runtime/remote/router.h"

static const double k_finish_seconds = 30;

typedef MP_QUEUE(mp_parcel_receiver_t) receiver_list_t;

struct mp_post_s {
  mp_post_t *next;  // in the list of all, under that list's lock
  mp_world_t *world;
  pthread_t thread;
  mp_lock_t lock;  // of all that follows
  pthread_cond_t changed;
  bool must_stop;
  mp_packet_list_t early;  // parcels that are not awaited yet
  receiver_list_t waiting;
  receiver_list_t ready;  // their packet or error has come, or their deadline has passed
  double wakes_at;        // the earliest deadline that the sleeping thread knows
  mp_status_t *losses;    // [size of the world] why a rank sends no more; NULL: it is alive
  mp_tickets_t *used;     // [size of the world] of each rank's tickets: something was sent with it
  mp_tickets_t ended;     // of this process: the receive got no parcel, and one may still come
};

// Post offices live as long as their worlds, as routers do.
static mp_lock_t g_posts_lock = MP_LOCK_INITIALIZER(MP_LOCK_POSTS);
static mp_post_t *g_posts;
static bool g_has_exit_handler;  // under the list's lock
// The generation of the process that has the offices. Atomic, because the exit handler of a forked
// child reads it without the lock, which a thread of the parent may have held.
static atomic_uint g_generation;
atomic_uint mp_post_num_sending;

// ---- Matching; the office's lock is held ----

static bool post_is_at(const mp_parcel_receiver_t *receiver, const mp_parcel_address_t *address) {
  const mp_parcel_address_t *own = &receiver->address;
  return own->client == address->client && own->key == address->key &&
         own->devices == address->devices;
}

static bool post_is_for(const mp_packet_t *packet, const mp_parcel_receiver_t *receiver) {
  const uint64_t *key = packet->envelope.key;
  return post_is_at(receiver, &(mp_parcel_address_t){key[0], key[1], key[2]});
}

static void post_make_ready(mp_post_t *post, mp_parcel_receiver_t *receiver) {
  mp_lock_assert_held(&post->lock);
  if (receiver->packet == NULL && receiver->from == MP_PARCEL_FROM_ANY) {
    mp_status_ignore(mp_tickets_add(&post->ended, receiver->address.key));
  }
  MP_QUEUE_PUSH(&post->ready, receiver, next);
  pthread_cond_signal(&post->changed);
}

// Removes the packet for this receiver from the early ones; NULL: it has not come.
static mp_packet_t *post_take_early(mp_post_t *post, const mp_parcel_receiver_t *receiver) {
  mp_packet_list_t rest = {0};
  mp_packet_t *found = NULL;
  for (mp_packet_t *packet; (packet = mp_packet_list_pop(&post->early)) != NULL;) {
    if (found == NULL && post_is_for(packet, receiver)) {
      found = packet;
    } else {
      mp_packet_list_push(&rest, packet);
    }
  }
  post->early = rest;
  return found;
}

// Whether the packet was sent with a ticket of this receiver's client and device.
static bool post_is_ticket_for(const mp_packet_t *packet, const mp_parcel_receiver_t *receiver) {
  return packet->envelope.key[0] == receiver->address.client &&
         packet->envelope.key[2] == receiver->address.devices &&
         receiver->from == MP_PARCEL_FROM_ANY;
}

// A ticket has a receiver before anything can be sent with it. So with this packet, its sender
// repeats a ticket, and any receiver of the device may be the one that it is meant for.
static mp_status_t post_repeated(const mp_packet_t *packet) {
  const bool has_text = packet->envelope.words[0] != MP_OK && packet->data != NULL;
  if (has_text) {
    return mp_status_make(mp_status_code_of_number(packet->envelope.words[0]), "%.*s",
                          mp_str_precision(packet->bytes), (const char *)packet->data);
  }
  return mp_status_make(MP_FAILED_PRECONDITION,
                        "process %" PRIu32 " has sent an array to device %" PRIu64
                        " with the descriptor of a receive that has its array already: it is not "
                        "known which receive of the device this one is for",
                        packet->from, packet->envelope.key[2] >> 32);
}

// Ends the waits of all receivers that the packet may be meant for, and keeps it for later ones.
static void post_end_all(mp_post_t *post, mp_packet_t *packet) {
  if (mp_tickets_have(&post->ended, packet->envelope.key[1])) {
    mp_packet_release(packet);
    return;
  }
  receiver_list_t all = post->waiting;
  post->waiting = (receiver_list_t){0};
  for (mp_parcel_receiver_t *receiver; (receiver = all.first) != NULL;) {
    MP_QUEUE_POP(&all, next);
    if (post_is_ticket_for(packet, receiver)) {
      receiver->error = post_repeated(packet);
      post_make_ready(post, receiver);
    } else {
      MP_QUEUE_PUSH(&post->waiting, receiver, next);
    }
  }
  mp_packet_list_push(&post->early, packet);
}

// The error of a receiver that comes after a repeated ticket; NULL: there was none.
static mp_status_t post_find_repeated(const mp_post_t *post, const mp_parcel_receiver_t *receiver) {
  for (const mp_packet_t *packet = post->early.first; packet != NULL; packet = packet->next) {
    if (post_is_ticket_for(packet, receiver)) return post_repeated(packet);
  }
  return NULL;
}

// Makes the receiver of this packet ready or, without a packet, all receivers that await one from
// the lost rank. A packet without a receiver is early.
static void post_match(mp_post_t *post, mp_packet_t *packet, uint32_t lost_rank) {
  receiver_list_t all = post->waiting;
  post->waiting = (receiver_list_t){0};
  bool is_taken = packet == NULL;
  for (mp_parcel_receiver_t *receiver; (receiver = all.first) != NULL;) {
    MP_QUEUE_POP(&all, next);
    receiver->next = NULL;
    if (!is_taken && post_is_for(packet, receiver)) {
      receiver->packet = packet;
      is_taken = true;
      post_make_ready(post, receiver);
    } else if (packet == NULL &&
               (receiver->from == lost_rank || receiver->from == MP_PARCEL_FROM_ANY)) {
      receiver->error = mp_status_retain(post->losses[lost_rank]);
      post_make_ready(post, receiver);
    } else {
      MP_QUEUE_PUSH(&post->waiting, receiver, next);
    }
  }
  if (is_taken) return;
  if ((uint32_t)packet->envelope.key[2] == MP_PARCEL_FROM_ANY) {
    post_end_all(post, packet);
  } else {
    mp_packet_list_push(&post->early, packet);
  }
}

// Makes the receivers ready whose deadline has passed, and returns the next deadline.
static double post_expire(mp_post_t *post, double now) {
  receiver_list_t all = post->waiting;
  post->waiting = (receiver_list_t){0};
  double next_deadline = INFINITY;
  for (mp_parcel_receiver_t *receiver; (receiver = all.first) != NULL;) {
    MP_QUEUE_POP(&all, next);
    if (receiver->deadline <= now) {
      post_make_ready(post, receiver);
      continue;
    }
    MP_QUEUE_PUSH(&post->waiting, receiver, next);
    if (receiver->deadline < next_deadline) next_deadline = receiver->deadline;
  }
  return next_deadline;
}

// ---- The world's side ----

static void post_deliver(void *context, mp_packet_t *packet) {
  mp_post_t *post = context;
  mp_lock(&post->lock);
  post_match(post, packet, 0);
  mp_unlock(&post->lock);
}

static void post_lose(void *context, uint32_t rank, mp_status_t why) {
  mp_post_t *post = context;
  mp_lock(&post->lock);
  if (post->losses[rank] == NULL) post->losses[rank] = mp_status_retain(why);
  post_match(post, NULL, rank);
  mp_unlock(&post->lock);
}

// Packets of the predecessor are dropped: they are not from this process.
static void post_return(void *context, uint32_t rank, uint64_t incarnation) {
  mp_post_t *post = context;
  (void)incarnation;
  mp_lock(&post->lock);
  mp_status_release(post->losses[rank]);
  post->losses[rank] = NULL;
  mp_tickets_clear(&post->used[rank]);
  mp_packet_list_drop_from(&post->early, rank);
  mp_unlock(&post->lock);
}

void mp_post_await(mp_post_t *post, mp_parcel_receiver_t *receiver) {
  receiver->next = NULL;
  mp_lock(&post->lock);
  receiver->packet = post_take_early(post, receiver);
  receiver->error = receiver->packet == NULL ? post_find_repeated(post, receiver) : NULL;
  if (receiver->packet == NULL && receiver->from != MP_PARCEL_FROM_ANY &&
      post->losses[receiver->from] != NULL) {
    receiver->error = mp_status_retain(post->losses[receiver->from]);
  }
  if (receiver->packet != NULL || receiver->error != NULL) {
    post_make_ready(post, receiver);
  } else {
    MP_QUEUE_PUSH(&post->waiting, receiver, next);
    // Under the lock under which the thread goes to sleep: if it sleeps, it sleeps until wakes_at;
    // if not, it checks the deadlines again before it sleeps.
    if (receiver->deadline < post->wakes_at) pthread_cond_signal(&post->changed);
  }
  mp_unlock(&post->lock);
}

mp_status_t mp_post_use_ticket(mp_post_t *post, uint32_t rank, uint64_t number) {
  mp_lock(&post->lock);
  const bool is_repeated = mp_tickets_have(&post->used[rank], number);
  mp_status_t status = is_repeated ? NULL : mp_tickets_add(&post->used[rank], number);
  mp_unlock(&post->lock);
  if (!is_repeated) return status;
  return mp_status_make(MP_FAILED_PRECONDITION,
                        "process %" PRIu32 " sends two arrays to process %" PRIu32
                        " with the descriptor of one receive: it is not known which receive the "
                        "second one is for",
                        mp_world_rank(post->world), rank);
}

void mp_post_cancel(mp_post_t *post, const mp_parcel_address_t *address, mp_status_t error) {
  mp_lock(&post->lock);
  mp_parcel_receiver_t *previous = NULL, *receiver = post->waiting.first;
  while (receiver != NULL && !post_is_at(receiver, address)) {
    previous = receiver;
    receiver = receiver->next;
  }
  if (receiver != NULL) {
    MP_QUEUE_REMOVE(&post->waiting, previous, receiver, next);
    receiver->error = error;
    error = NULL;
    post_make_ready(post, receiver);
  }
  mp_unlock(&post->lock);
  mp_status_release(error);
}

// ---- The thread ----

// Waits until something is ready, a deadline passes, or the office closes; it may return early.
static void post_sleep(mp_post_t *post) {
  const double now = mp_clock_seconds();
  post->wakes_at = post_expire(post, now);
  if (post->ready.first != NULL) return;
  const struct timespec until = mp_clock_after(post->wakes_at - now);
  (void)mp_lock_wait_until(&post->lock, &post->changed, &until);
}

static void *post_main(void *context) {
  mp_post_t *post = context;
  (void)pthread_setname_np(pthread_self(), "mp-parcels");
  mp_lock(&post->lock);
  for (;;) {
    mp_parcel_receiver_t *receiver = post->ready.first;
    if (receiver == NULL && post->must_stop) break;
    if (receiver == NULL) {
      post_sleep(post);
      continue;
    }
    MP_QUEUE_POP(&post->ready, next);
    // The receiver is in no list any more, so only this thread uses it. Without the lock, because
    // `take` copies, sets events and calls back.
    mp_unlock(&post->lock);
    receiver->take(receiver, receiver->packet, receiver->error);
    mp_lock(&post->lock);
  }
  mp_unlock(&post->lock);
  return NULL;
}

static mp_status_t post_start(mp_post_t *post) {
  const int error = mp_thread_create(&post->thread, 0, post_main, post);
  if (error == 0) return NULL;
  return mp_status_make(MP_RESOURCE_EXHAUSTED, "no thread for parcels: %s", strerror(error));
}

// ---- Life ----

void mp_parcels_finish(void) {
  if (atomic_load(&g_generation) != mp_process_generation())
    return;  // a forked child sends nothing
  const double deadline = mp_clock_seconds() + k_finish_seconds;
  while (atomic_load(&mp_post_num_sending) != 0 && mp_clock_seconds() < deadline) {
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  }
}

// It runs before the world's exit handler, which was registered earlier and sends the goodbye.
static void post_on_exit_status(int status, void *context) {
  (void)context;
  if (status == 0) mp_parcels_finish();
}

static void post_free(mp_post_t *post) {
  for (uint32_t i = 0; i < mp_world_size(post->world); ++i) {
    mp_status_release(post->losses[i]);
    mp_tickets_clear(&post->used[i]);
  }
  mp_tickets_clear(&post->ended);
  mp_packet_list_clear(&post->early);
  pthread_cond_destroy(&post->changed);
  mp_lock_deinit(&post->lock);
  mp_free(post);
}

static mp_status_t post_make(mp_world_t *world, mp_post_t **out_post) {
  const size_t size = mp_world_size(world);
  mp_post_t *post =
      mp_calloc(1, sizeof(*post) + size * (sizeof(mp_tickets_t) + sizeof(mp_status_t)));
  MP_RETURN_IF_NULL(post);
  post->world = world;
  post->used = (mp_tickets_t *)(post + 1);
  post->losses = (mp_status_t *)(post->used + size);
  mp_lock_init(&post->lock, MP_LOCK_POST);
  mp_clock_cond_init(&post->changed);
  mp_status_t status = post_start(post);
  if (status != NULL) {
    post_free(post);
    return status;
  }
  atomic_store(&g_generation, mp_process_generation());
  if (!g_has_exit_handler) g_has_exit_handler = on_exit(post_on_exit_status, NULL) == 0;
  post->next = g_posts;
  g_posts = post;
  mp_world_attach(
      world, MP_CHANNEL_PARCELS,
      &(mp_handler_t){
          .deliver = post_deliver, .lost = post_lose, .returned = post_return, .context = post});
  *out_post = post;
  return NULL;
}

mp_status_t mp_post_get(mp_world_t *world, mp_post_t **out_post) {
  mp_lock(&g_posts_lock);
  mp_post_t *post = g_posts;
  while (post != NULL && post->world != world) post = post->next;
  mp_status_t status = NULL;
  if (post == NULL) {
    status = post_make(world, out_post);
  } else {
    *out_post = post;
  }
  mp_unlock(&g_posts_lock);
  return status;
}

void mp_parcels_forget(mp_world_t *world) {
  mp_lock(&g_posts_lock);
  mp_post_t **link = &g_posts;
  while (*link != NULL && (*link)->world != world) link = &(*link)->next;
  mp_post_t *post = *link;
  if (post != NULL) *link = post->next;
  mp_unlock(&g_posts_lock);
  if (post == NULL) return;
  // Waits for a packet that is being delivered; from then on no other thread uses the office.
  mp_world_detach(world, MP_CHANNEL_PARCELS);
  mp_lock(&post->lock);
  for (mp_parcel_receiver_t *receiver; (receiver = post->waiting.first) != NULL;) {
    MP_QUEUE_POP(&post->waiting, next);
    receiver->next = NULL;
    receiver->error = mp_status_make(MP_CANCELLED, "the job has ended");
    post_make_ready(post, receiver);
  }
  post->must_stop = true;
  pthread_cond_signal(&post->changed);
  mp_unlock(&post->lock);
  pthread_join(post->thread, NULL);
  post_free(post);
}
