#include "collectives/transport/world_return.h"

#include <inttypes.h>
#include <string.h>

#include "sim/base/alloc.h"
#include "sim/base/log.h"
#include "sim/base/os/clock.h"

// The head of a welcome; a place for each rank follows, and then the memo.
typedef struct {
  uint64_t num_agreements;
  uint64_t memo_number;
  uint64_t memo_bytes;
  uint32_t has_memo;
  uint32_t num_ranks;
} world_return_welcome_t;

typedef struct {
  uint64_t incarnation;
  uint64_t is_alive;
} world_return_place_t;

// ---- Memos ----

static void world_return_clear_memo(mp_world_memo_t *memo) {
  mp_free(memo->bytes);
  *memo = (mp_world_memo_t){0};
}

void mp_world_drop_memo(mp_world_t *world, uint64_t number) {
  if (world->generation != mp_process_generation()) return;
  mp_lock(&world->lock);
  if (world->memo.is_set && world->memo.number == number) world_return_clear_memo(&world->memo);
  mp_unlock(&world->lock);
}

bool mp_world_take_memo(mp_world_t *world, uint64_t *out_number, void **out_bytes,
                        size_t *out_size) {
  if (world->generation != mp_process_generation()) return false;
  mp_lock(&world->lock);
  const mp_world_memo_t memo = world->told;
  world->told = (mp_world_memo_t){0};
  mp_unlock(&world->lock);
  if (!memo.is_set) return false;
  *out_number = memo.number;
  *out_bytes = memo.bytes;
  *out_size = memo.size;
  return true;
}

// ---- Welcomes ----

// Agreements that the predecessor has sent, which must not count as the newcomer's; and those in
// progress, in which the newcomer takes no part. The world's lock is held, in the step in which the
// newcomer learns how many there were: it takes part in later ones.
static void world_return_break_agreements(mp_world_t *world, uint32_t rank) {
  mp_lock_assert_held(&world->lock);
  mp_packet_list_drop_from(&world->blobs, rank);
  for (mp_agreement_t *agreement = world->agreements; agreement != NULL;
       agreement = agreement->next) {
    agreement->is_broken = true;
    agreement->broken_by = rank;
  }
  pthread_cond_broadcast(&world->changed);
}

// The welcome of this process for a newcomer, as it is now.
static mp_status_t world_return_make_welcome(mp_world_t *world, uint32_t newcomer,
                                             mp_payload_t **out_payload) {
  mp_lock(&world->lock);
  const size_t most = world->memo.size;
  mp_unlock(&world->lock);
  const size_t places = world->size * sizeof(world_return_place_t);
  MP_RETURN_IF_ERROR(
      mp_payload_create(world, sizeof(world_return_welcome_t) + places + most, out_payload));
  char *bytes = (*out_payload)->data;
  memset(bytes, 0, (*out_payload)->bytes);
  world_return_welcome_t head = {.num_ranks = world->size};
  mp_lock(&world->lock);
  world_return_break_agreements(world, newcomer);
  head.num_agreements = world->num_agreements;
  // Without room for a memo that was set just now the newcomer makes its client with the others, in
  // an agreement, and does not take part in one of theirs.
  if (world->memo.is_set && world->memo.size <= most) {
    head.has_memo = 1;
    head.memo_number = world->memo.number;
    head.memo_bytes = world->memo.size;
    memcpy(bytes + sizeof(head) + places, world->memo.bytes, world->memo.size);
  }
  for (uint32_t rank = 0; rank < world->size; ++rank) {
    const mp_peer_state_t *peer = &world->peers[rank];
    const world_return_place_t place = {.incarnation = peer->incarnation,
                                        .is_alive = !atomic_load(&peer->is_gone)};
    memcpy(bytes + sizeof(head) + rank * sizeof(place), &place, sizeof(place));
  }
  mp_unlock(&world->lock);
  memcpy(bytes, &head, sizeof(head));
  return NULL;
}

static void world_return_send_welcome(mp_world_t *world, uint32_t rank) {
  mp_payload_t *payload = NULL;
  mp_status_ignore(world_return_make_welcome(world, rank, &payload));
  const mp_envelope_t envelope = {.channel = MP_WORLD_OWN_CHANNEL, .words = {MP_WORLD_WELCOME}};
  mp_status_t status = mp_world_send(world, rank, &envelope, payload);
  if (mp_status_code(status) == MP_RESOURCE_EXHAUSTED && payload != NULL) {
    mp_status_ignore(status);
    status = mp_world_send(world, rank, &envelope, NULL);  // it learns that there is no memory
  }
  mp_status_ignore(status);
  mp_payload_release(payload);
}

void mp_world_take_welcome(mp_world_t *world, mp_packet_t *packet) {
  mp_lock(&world->lock);
  mp_packet_list_push(&world->welcomes, packet);
  pthread_cond_broadcast(&world->changed);
  mp_unlock(&world->lock);
}

mp_status_t mp_world_await_welcome(mp_world_t *world, uint32_t rank, double timeout_s,
                                   mp_packet_t **out_welcome) {
  const double deadline = mp_clock_seconds() + timeout_s;
  mp_status_t status = NULL;
  mp_packet_t *packet = NULL;
  mp_lock(&world->lock);
  do {
    packet = mp_packet_list_take(&world->welcomes, mp_packet_is_from, rank);
    if (packet == NULL) status = mp_world_loss(world, rank);
  } while (packet == NULL && status == NULL && mp_world_wait_changed(world, deadline));
  mp_unlock(&world->lock);
  *out_welcome = packet;
  return status;
}

// ---- Answering knocks ----

mp_status_code_t mp_world_check_knock(const mp_world_t *world, const mp_knock_t *knock) {
  if (knock->rank >= world->size || knock->rank == world->rank || knock->incarnation == 0) {
    return MP_INVALID_ARGUMENT;
  }
  return MP_OK;
}

static void world_return_tell_channel(mp_channel_state_t *channel, uint32_t rank,
                                      uint64_t incarnation) {
  mp_lock(&channel->calls);
  mp_packet_list_drop_from(&channel->backlog, rank);
  channel->was_told[rank] = false;
  channel->incarnations[rank] = incarnation;
  if (channel->is_attached && channel->handler.returned != NULL) {
    channel->handler.returned(channel->handler.context, rank, incarnation);
  }
  mp_unlock(&channel->calls);
}

// Forgets envelopes that were owed to the predecessor.
static void world_return_drop_owed(mp_world_t *world, uint32_t rank) {
  mp_peer_state_t *peer = &world->peers[rank];
  mp_lock(&peer->send_lock);
  atomic_fetch_sub(&world->num_owed, peer->num_owed);
  peer->num_owed = 0;
  mp_unlock(&peer->send_lock);
}

// The lowest rank that has stayed logs it.
static void world_return_say(const mp_world_t *world, uint32_t newcomer) {
  for (uint32_t rank = 0; rank < world->rank; ++rank) {
    if (rank != newcomer && !atomic_load(&world->peers[rank].is_gone)) return;
  }
  char name[MP_PEER_NAME_BYTES];
  mp_world_peer_name(world, newcomer, name);
  mp_log_notice("%s has rejoined the job", name);
}

void mp_world_take_back(mp_world_t *world, const mp_knock_t *knock, mp_transport_t *transport,
                        mp_bygone_t *bygone) {
  const uint32_t rank = knock->rank;
  mp_peer_state_t *peer = &world->peers[rank];
  for (int i = 0; i < MP_WORLD_CHANNELS; ++i) {
    mp_world_catch_up(world, &world->channels[i]);  // with the loss
  }
  world_return_drop_owed(world, rank);
  memcpy(bygone->hostname, knock->hostname, sizeof(knock->hostname));
  atomic_store(&peer->peer.pid, knock->pid);
  atomic_store(&peer->peer.hostname, bygone->hostname);
  atomic_store(&peer->transport, transport);
  mp_lock(&world->lock);
  bygone->next = world->bygones;
  world->bygones = bygone;
  peer->incarnation = knock->incarnation;
  peer->has_left = false;
  peer->has_succeeded = false;
  peer->skips_end = false;
  atomic_store(&peer->is_silent, false);
  // From here on packets go to the newcomer. A thread that has just seen the loss and finds no
  // reason any more reports none.
  atomic_store(&peer->is_gone, false);
  bygone->why = atomic_exchange(&peer->why, NULL);
  mp_unlock(&world->lock);
  // After that: what is begun because the newcomer is there can be sent to it.
  for (int i = 0; i < MP_WORLD_CHANNELS; ++i) {
    world_return_tell_channel(&world->channels[i], rank, knock->incarnation);
  }
  world_return_send_welcome(world, rank);
  world_return_say(world, rank);
}

// ---- The restarted process ----

static void world_return_spread_news(mp_world_t *world) {
  for (int i = 0; i < MP_WORLD_CHANNELS; ++i) atomic_store(&world->channels[i].has_news, true);
  mp_world_ring(world);
}

// Takes over a place from the welcome: as dead, or with the address of its process.
static void world_return_settle_place(mp_world_t *world, uint32_t rank,
                                      const world_return_place_t *place,
                                      mp_world_place_t *out_place) {
  *out_place = (mp_world_place_t){0};
  if (rank == world->rank) return;
  mp_peer_state_t *peer = &world->peers[rank];
  bool is_news = false;
  mp_lock(&world->lock);
  // Another restarted process may have knocked here since this welcome was written.
  if (peer->incarnation == 0) {
    peer->incarnation = place->incarnation;
    *out_place = (mp_world_place_t){place->is_alive != 0, place->incarnation};
    if (place->is_alive == 0) {
      is_news = mp_world_note_loss(
          world, rank,
          mp_status_make(MP_UNAVAILABLE,
                         "process %" PRIu32 " had ended before this process was restarted", rank));
    }
  }
  mp_unlock(&world->lock);
  mp_world_note_incarnation(world, rank, place->incarnation);
  if (is_news) world_return_spread_news(world);
}

void mp_world_note_incarnation(mp_world_t *world, uint32_t rank, uint64_t incarnation) {
  for (int i = 0; i < MP_WORLD_CHANNELS; ++i) {
    mp_channel_state_t *channel = &world->channels[i];
    mp_lock(&channel->calls);
    // A newer one may have knocked here meanwhile.
    if (channel->incarnations[rank] == 0) channel->incarnations[rank] = incarnation;
    mp_unlock(&channel->calls);
  }
}

void mp_world_miss(mp_world_t *world, uint32_t rank, uint64_t incarnation, mp_status_t why) {
  mp_lock(&world->lock);
  const bool is_same = world->peers[rank].incarnation == incarnation;
  const bool is_news = is_same && mp_world_note_loss(world, rank, why);
  if (!is_same) mp_status_release(why);
  mp_unlock(&world->lock);
  if (is_news) world_return_spread_news(world);
}

mp_status_t mp_world_settle(mp_world_t *world, const mp_packet_t *welcome,
                            mp_world_place_t *out_places) {
  world_return_welcome_t head;
  const char *bytes = welcome->data;
  const size_t places = world->size * sizeof(world_return_place_t);
  if (welcome->bytes == 0) {
    return mp_status_make(MP_RESOURCE_EXHAUSTED,
                          "process %" PRIu32 " has too little memory to send the state of the job",
                          welcome->from);
  }
  bool is_sound = welcome->bytes >= sizeof(head) + places;
  if (is_sound) memcpy(&head, bytes, sizeof(head));
  if (!is_sound || head.num_ranks != world->size ||
      head.memo_bytes > welcome->bytes - sizeof(head) - places) {
    return mp_status_make(MP_INTERNAL, "process %" PRIu32 " has sent a damaged state of the job",
                          welcome->from);
  }
  mp_world_memo_t memo = {head.has_memo != 0, head.memo_number, NULL, head.memo_bytes};
  if (memo.is_set) {
    memo.bytes = mp_malloc(memo.size + 1);
    MP_RETURN_IF_NULL(memo.bytes);
    memcpy(memo.bytes, bytes + sizeof(head) + places, memo.size);
  }
  mp_lock(&world->lock);
  world->num_agreements = head.num_agreements;
  world->told = memo;
  mp_unlock(&world->lock);
  for (uint32_t rank = 0; rank < world->size; ++rank) {
    world_return_place_t place;
    memcpy(&place, bytes + sizeof(head) + rank * sizeof(place), sizeof(place));
    world_return_settle_place(world, rank, &place, &out_places[rank]);
  }
  return NULL;
}
