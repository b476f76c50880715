#include "collectives/transport/world.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "collectives/transport/world_impl.h"
#include "sim/base/alloc.h"
#include "sim/base/assert.h"
#include "sim/base/os/clock.h"
#include "sim/base/os/process.h"

uint32_t mp_world_rank(const mp_world_t *world) {
  return world->rank;
}

uint32_t mp_world_size(const mp_world_t *world) {
  return world->size;
}

const mp_peer_t *mp_world_peer(const mp_world_t *world, uint32_t rank) {
  MP_ASSERT(rank < world->size);
  return &world->peers[rank].peer;
}

void mp_world_peer_name(const mp_world_t *world, uint32_t rank, char out_text[MP_PEER_NAME_BYTES]) {
  const mp_peer_t *peer = &world->peers[rank].peer;
  const char *hostname = atomic_load(&peer->hostname);
  if (hostname == NULL) {
    snprintf(out_text, MP_PEER_NAME_BYTES, "process %" PRIu32, rank);
  } else {
    snprintf(out_text, MP_PEER_NAME_BYTES, "process %" PRIu32 " (pid %" PRId64 " on host %s)", rank,
             atomic_load(&peer->pid), hostname);
  }
}

// ---- Making ----

mp_status_t mp_world_create(uint32_t rank, uint32_t size, mp_world_t **out_world) {
  MP_ASSERT(rank < size);
  mp_process_watch_forks();
  mp_world_t *world = mp_aligned_malloc(_Alignof(mp_world_t), sizeof(*world));
  MP_RETURN_IF_NULL(world);
  memset(world, 0, sizeof(*world));
  world->rank = rank;
  world->size = size;
  world->num_hosts = 1;
  world->generation = mp_process_generation();
  world->doorbell = &world->own_doorbell;
  mp_lock_init(&world->inbox_lock, MP_LOCK_INBOX);
  mp_lock_init(&world->lock, MP_LOCK_WORLD);
  mp_lock_init(&world->afterwards, MP_LOCK_AFTERWARDS);
  mp_lock_init(&world->turn, MP_LOCK_TURN);
  mp_clock_cond_init(&world->changed);
  for (int i = 0; i < MP_WORLD_CHANNELS; ++i) {
    mp_lock_init(&world->channels[i].calls, MP_LOCK_CHANNEL);
  }
  for (int i = 0; i < MP_WORLD_CHANNELS; ++i) {
    world->channels[i].was_told = mp_calloc(size, sizeof(bool));
    world->channels[i].incarnations = mp_calloc(size, sizeof(uint64_t));
    if (world->channels[i].was_told == NULL || world->channels[i].incarnations == NULL) {
      goto no_memory;
    }
  }
  world->peers = mp_calloc(size, sizeof(*world->peers));
  if (world->peers == NULL) goto no_memory;
  for (uint32_t i = 0; i < size; ++i) mp_lock_init(&world->peers[i].send_lock, MP_LOCK_SEND);
  *out_world = world;
  return NULL;

no_memory:
  mp_world_release(world);
  return mp_status_out_of_memory();
}

void mp_world_add_transport(mp_world_t *world, mp_transport_t *transport) {
  // Only the thread that makes the world adds transports, so no other thread changes the count.
  unsigned count = atomic_load(&world->num_transports);
  MP_ASSERT(count < MP_WORLD_MAX_TRANSPORTS);
  world->transports[count] = transport;
  atomic_store(&world->num_transports, count + 1);
  mp_world_ring(world);
}

void mp_world_release(mp_world_t *world) {
  if (world == NULL) return;
  if (world->is_started) {
    atomic_store(&world->must_stop, true);
    mp_world_ring(world);
    mp_lock_assert_none_held();
    pthread_join(world->thread, NULL);
  }
  mp_packet_list_clear(&world->inbox);
  mp_packet_list_clear(&world->blobs);
  mp_packet_list_clear(&world->welcomes);
  mp_free(world->memo.bytes);
  mp_free(world->told.bytes);
  for (int i = 0; i < MP_WORLD_CHANNELS; ++i) {
    mp_packet_list_clear(&world->channels[i].backlog);
    mp_free(world->channels[i].was_told);
    mp_free(world->channels[i].incarnations);
    mp_lock_deinit(&world->channels[i].calls);
  }
  for (uint32_t i = 0; i < world->num_transports; ++i) {
    world->transports[i]->ops->release(world->transports[i]);
  }
  for (uint32_t i = 0; world->peers != NULL && i < world->size; ++i) {
    mp_status_release(atomic_load(&world->peers[i].why));
    mp_lock_deinit(&world->peers[i].send_lock);
  }
  mp_free(world->peers);
  for (mp_bygone_t *bygone; (bygone = world->bygones) != NULL;) {
    world->bygones = bygone->next;
    mp_status_release(bygone->why);
    mp_free(bygone);
  }
  mp_segment_release(world->segment);
  pthread_cond_destroy(&world->changed);
  mp_lock_deinit(&world->turn);
  mp_lock_deinit(&world->afterwards);
  mp_lock_deinit(&world->lock);
  mp_lock_deinit(&world->inbox_lock);
  mp_free(world);
}

// ---- Losses ----

mp_status_t mp_world_loss(const mp_world_t *world, uint32_t rank) {
  // Acquire, with the release in mp_world_lose: a thread that sees the flag may read the reason.
  if (!atomic_load_explicit(&world->peers[rank].is_gone, memory_order_acquire)) return NULL;
  return mp_status_retain(atomic_load(&world->peers[rank].why));
}

void mp_world_catch_up(mp_world_t *world, mp_channel_state_t *channel) {
  mp_lock(&channel->calls);
  while (channel->is_attached) {
    mp_packet_t *packet = mp_packet_list_pop(&channel->backlog);
    if (packet == NULL) break;
    channel->handler.deliver(channel->handler.context, packet);
  }
  for (uint32_t rank = 0; channel->is_attached && rank < world->size; ++rank) {
    if (channel->was_told[rank]) continue;
    mp_status_t why = mp_world_loss(world, rank);
    if (why == NULL) continue;
    channel->was_told[rank] = true;
    if (channel->handler.lost != NULL) {
      channel->handler.lost(channel->handler.context, rank, why);
    }
    mp_status_release(why);
  }
  mp_unlock(&channel->calls);
}

// ---- Arrivals ----

void mp_world_note_silent(mp_world_t *world, uint32_t rank) {
  atomic_store(&world->peers[rank].is_silent, true);
  const mp_envelope_t envelope = {.channel = MP_WORLD_OWN_CHANNEL,
                                  .words = {MP_WORLD_SILENT, rank}};
  for (uint32_t to = 0; to < world->size; ++to) {
    if (to != rank && to != world->rank) {
      mp_status_ignore(mp_world_send(world, to, &envelope, NULL));
    }
  }
}

void mp_world_post(mp_world_t *world, mp_packet_t *packet) {
  mp_lock(&world->inbox_lock);
  mp_packet_list_push(&world->inbox, packet);
  mp_unlock(&world->inbox_lock);
  mp_world_ring(world);
}

static void world_take_goodbye(mp_world_t *world, const mp_packet_t *packet) {
  const uint32_t from = packet->from, exit_status = packet->envelope.words[1];
  char name[MP_PEER_NAME_BYTES];
  mp_world_peer_name(world, from, name);
  mp_lock(&world->lock);
  world->peers[from].has_left = true;
  world->peers[from].has_succeeded = exit_status == 0;
  world->peers[from].skips_end = packet->envelope.words[2] != 0;
  mp_unlock(&world->lock);
  mp_world_lose(world, from,
                exit_status == 0
                    ? mp_status_make(MP_UNAVAILABLE, "%s has exited", name)
                    : mp_status_make(MP_UNAVAILABLE,
                                     "%s has exited with status %" PRIu32 "; see its own output",
                                     name, exit_status));
}

void mp_world_arrive(mp_world_t *world, mp_packet_t *packet) {
  MP_ASSERT(packet->from < world->size);
  uint32_t number = packet->envelope.channel;
  atomic_bool *is_silent = &world->peers[packet->from].is_silent;
  // Relaxed: an ending thread looks eventually.
  if (atomic_load_explicit(is_silent, memory_order_relaxed)) atomic_store(is_silent, false);
  bool is_own = number == MP_WORLD_OWN_CHANNEL;
  const uint32_t word = packet->envelope.words[0];
  if (is_own && (word == MP_WORLD_EXCHANGE || word == MP_WORLD_VERDICT)) {
    mp_world_take_blob(world, packet);
    return;
  }
  if (is_own && word == MP_WORLD_WELCOME) {
    mp_world_take_welcome(world, packet);
    return;
  }
  if (is_own && word == MP_WORLD_SILENT && packet->envelope.words[1] < world->size) {
    atomic_store(&world->peers[packet->envelope.words[1]].is_silent, true);
  }
  if (is_own && word == MP_WORLD_GOODBYE) {
    world_take_goodbye(world, packet);
  }
  if (number >= MP_WORLD_CHANNELS) {
    mp_packet_release(packet);
    return;
  }
  mp_channel_state_t *channel = &world->channels[number];
  mp_lock(&channel->calls);
  if (channel->is_attached && channel->backlog.first == NULL) {
    channel->handler.deliver(channel->handler.context, packet);
  } else {
    mp_packet_list_push(&channel->backlog, packet);
  }
  mp_unlock(&channel->calls);
}

bool mp_world_note_loss(mp_world_t *world, uint32_t rank, mp_status_t why) {
  MP_ASSERT(rank < world->size && why != NULL);
  mp_lock_assert_held(&world->lock);
  mp_peer_state_t *peer = &world->peers[rank];
  if (atomic_load(&peer->is_gone)) {
    mp_status_release(why);
    return false;
  }
  atomic_store(&peer->why, why);
  // After the reason.
  atomic_store_explicit(&peer->is_gone, true, memory_order_release);
  pthread_cond_broadcast(&world->changed);
  return true;
}

void mp_world_lose(mp_world_t *world, uint32_t rank, mp_status_t why) {
  mp_lock(&world->lock);
  // Under the lock for threads that wait for the loss: they look, and go to sleep, in one step.
  const bool is_news = mp_world_note_loss(world, rank, why);
  mp_unlock(&world->lock);
  if (!is_news) return;
  // After the loss, and before the bell: the thread that clears the flag finds the loss.
  for (int i = 0; i < MP_WORLD_CHANNELS; ++i) atomic_store(&world->channels[i].has_news, true);
  mp_world_ring(world);
}

mp_status_t mp_world_failure(mp_world_t *world) {
  mp_status_t failure = NULL;
  mp_lock(&world->lock);
  for (uint32_t rank = 0; rank < world->size && failure == NULL; ++rank) {
    const mp_peer_state_t *peer = &world->peers[rank];
    if (atomic_load(&peer->is_gone) && !peer->has_succeeded) {
      failure = mp_status_retain(atomic_load(&peer->why));
    }
  }
  mp_unlock(&world->lock);
  return failure;
}

void mp_world_attach(mp_world_t *world, uint32_t number, const mp_handler_t *handler) {
  MP_ASSERT(number < MP_WORLD_CHANNELS && handler->deliver != NULL);
  if (world->generation != mp_process_generation()) return;
  mp_channel_state_t *channel = &world->channels[number];
  mp_lock(&channel->calls);
  channel->handler = *handler;
  channel->is_attached = true;
  memset(channel->was_told, 0, world->size * sizeof(bool));
  for (uint32_t rank = 0; rank < world->size && handler->returned != NULL; ++rank) {
    if (channel->incarnations[rank] == 0) continue;
    handler->returned(handler->context, rank, channel->incarnations[rank]);
  }
  mp_unlock(&channel->calls);
  // After the handler is there: the thread that clears this finds it, and gives it the backlog.
  atomic_store(&channel->has_news, true);
  mp_world_ring(world);
}

void mp_world_detach(mp_world_t *world, uint32_t number) {
  if (world->generation != mp_process_generation()) return;
  mp_channel_state_t *channel = &world->channels[number];
  mp_lock(&world->afterwards);
  mp_lock(&channel->calls);
  channel->is_attached = false;
  mp_unlock(&channel->calls);
  mp_unlock(&world->afterwards);
}

// ---- Waiting ----

bool mp_world_wait_changed(mp_world_t *world, double deadline) {
  double left = deadline - mp_clock_seconds();
  if (left <= 0) return false;
  const struct timespec until = mp_clock_after(left);
  (void)mp_lock_wait_until(&world->lock, &world->changed, &until);
  return true;
}
