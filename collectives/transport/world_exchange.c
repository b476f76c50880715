// Agreeing: every rank gets the bytes of every rank, and learns whether all have succeeded.
#include <inttypes.h>
#include <string.h>

#include "collectives/transport/world_impl.h"
#include "sim/base/alloc.h"
#include "sim/base/assert.h"
#include "sim/base/os/clock.h"
#include "sim/base/os/process.h"
#include "sim/base/str.h"

// How many bytes of an error's text are sent to the others.
enum { MP_MAX_TOLD_BYTES = 4096 };

// ---- Agreements in progress ----

// True when an agreement is over, so that its packets are not needed any more. The caller holds the
// world's lock.
static bool world_exchange_is_over(const mp_world_t *world, uint64_t number) {
  const mp_agreement_t *agreement = world->agreements;
  while (agreement != NULL && agreement->number != number) agreement = agreement->next;
  return number < world->num_agreements && agreement == NULL;
}

void mp_world_take_blob(mp_world_t *world, mp_packet_t *packet) {
  // In one step: an agreement that ends takes what has come for it along, and what comes later
  // finds that it is over.
  mp_lock(&world->lock);
  if (world_exchange_is_over(world, packet->envelope.key[0])) {
    mp_packet_release(packet);
  } else {
    mp_packet_list_push(&world->blobs, packet);
    pthread_cond_broadcast(&world->changed);
  }
  mp_unlock(&world->lock);
}

static mp_status_t world_exchange_check(const mp_agreement_t *agreement) {
  if (agreement->world->generation == mp_process_generation()) return NULL;
  return mp_status_make(MP_FAILED_PRECONDITION,
                        "this is a forked child: it has no part in its parent's job");
}

void mp_agreement_begin(mp_world_t *world, double timeout_s, mp_agreement_t *out_agreement) {
  *out_agreement = (mp_agreement_t){.world = world, .timeout_s = timeout_s};
  if (world->generation != mp_process_generation()) return;  // exchanges and the end will fail
  mp_lock(&world->lock);
  out_agreement->number = world->num_agreements++;
  out_agreement->next = world->agreements;
  world->agreements = out_agreement;
  mp_unlock(&world->lock);
}

static bool world_exchange_is_of(const mp_packet_t *packet, uint64_t number) {
  return packet->envelope.key[0] == number;
}

mp_status_t mp_agreement_set_memo(mp_agreement_t *agreement, const void *bytes, size_t size) {
  mp_free(agreement->memo);
  agreement->has_memo = false;
  agreement->memo = mp_malloc(size + 1);
  MP_RETURN_IF_NULL(agreement->memo);
  memcpy(agreement->memo, bytes, size);
  agreement->has_memo = true;
  agreement->memo_bytes = size;
  return NULL;
}

// Its memo becomes the world's if it has succeeded, in the step in which it ends: a process that
// comes back finds it in progress, or what it came to.
static void world_exchange_forget(mp_agreement_t *agreement, bool has_succeeded) {
  mp_world_t *world = agreement->world;
  mp_lock(&world->lock);
  mp_agreement_t **link = &world->agreements;
  while (*link != agreement) link = &(*link)->next;
  *link = agreement->next;
  void *memo = agreement->memo;
  agreement->memo = NULL;
  if (agreement->has_memo && has_succeeded) {
    const mp_world_memo_t old = world->memo;
    world->memo = (mp_world_memo_t){true, agreement->number, memo, agreement->memo_bytes};
    memo = old.bytes;
  }
  mp_free(memo);
  for (mp_packet_t *packet; (packet = mp_packet_list_take(&world->blobs, world_exchange_is_of,
                                                          agreement->number)) != NULL;) {
    mp_packet_release(packet);
  }
  mp_unlock(&world->lock);
}

// ---- Packets that have come; the lock is held ----

// Moves the packets of the current exchange out of the world's list into `found`, by rank.
static void world_exchange_collect(const mp_agreement_t *agreement, mp_packet_t **found) {
  mp_world_t *world = agreement->world;
  mp_lock_assert_held(&world->lock);
  mp_packet_list_t rest = {0};
  for (mp_packet_t *packet; (packet = mp_packet_list_pop(&world->blobs)) != NULL;) {
    const mp_envelope_t *envelope = &packet->envelope;
    if (envelope->words[0] == MP_WORLD_EXCHANGE && envelope->key[0] == agreement->number &&
        envelope->key[1] == agreement->num_rounds && found[packet->from] == NULL) {
      found[packet->from] = packet;
    } else {
      mp_packet_list_push(&rest, packet);
    }
  }
  world->blobs = rest;
}

// The next verdict on the agreement after `packet` (NULL: the first).
static const mp_packet_t *world_exchange_next_verdict(const mp_agreement_t *agreement,
                                                      const mp_packet_t *packet) {
  packet = packet == NULL ? agreement->world->blobs.first : packet->next;
  for (; packet != NULL; packet = packet->next) {
    if (packet->envelope.words[0] == MP_WORLD_VERDICT &&
        packet->envelope.key[0] == agreement->number) {
      break;
    }
  }
  return packet;
}

// The error of a rank that has reported its failure, with that rank's text; OK when there is none.
static mp_status_t world_exchange_hear(mp_agreement_t *agreement) {
  const mp_packet_t *packet = world_exchange_next_verdict(agreement, NULL);
  while (packet != NULL && packet->envelope.words[1] == MP_OK) {
    packet = world_exchange_next_verdict(agreement, packet);
  }
  if (packet == NULL) return NULL;
  agreement->has_heard = true;
  const mp_status_code_t code = mp_status_code_of_number(packet->envelope.words[1]);
  char name[MP_PEER_NAME_BYTES];
  mp_world_peer_name(agreement->world, packet->from, name);
  if (packet->bytes == 0) {
    return mp_status_make(code, "%s has failed; it had no memory for the reason", name);
  }
  return mp_status_make(code, "%s has failed: %.*s", name, mp_str_precision(packet->bytes),
                        (const char *)packet->data);
}

// The error of an agreement in which a process was replaced after it had begun it.
static mp_status_t world_exchange_broken(const mp_agreement_t *agreement) {
  if (!agreement->is_broken) return NULL;
  char name[MP_PEER_NAME_BYTES];
  mp_world_peer_name(agreement->world, agreement->broken_by, name);
  return mp_status_make(
      MP_UNAVAILABLE,
      "%s was restarted and has rejoined the job; repeat what was in progress with "
      "its predecessor",
      name);
}

// True when something of `rank` is still to come: its bytes or, when `found` is NULL, its verdict.
static bool world_exchange_misses(const mp_agreement_t *agreement, mp_packet_t *const *found,
                                  uint32_t rank) {
  if (found != NULL) return found[rank] == NULL;
  const mp_packet_t *packet = NULL;
  while ((packet = world_exchange_next_verdict(agreement, packet)) != NULL) {
    if (packet->from == rank) return false;
  }
  return rank != agreement->world->rank;
}

static mp_status_t world_exchange_name_missing(const mp_agreement_t *agreement,
                                               mp_packet_t *const *found) {
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  const char *separator = "";
  for (uint32_t rank = 0; rank < agreement->world->size; ++rank) {
    if (!world_exchange_misses(agreement, found, rank)) continue;
    char name[MP_PEER_NAME_BYTES];
    mp_world_peer_name(agreement->world, rank, name);
    mp_strbuf_printf(&text, "%s%s", separator, name);
    separator = ", ";
  }
  mp_status_t status = mp_status_make(MP_DEADLINE_EXCEEDED, "no message within %g s from %s",
                                      agreement->timeout_s, mp_strbuf_text(&text));
  mp_strbuf_deinit(&text);
  return status;
}

// True when everything has come. `out_failure` is OK, or the reason why it never will.
static bool world_exchange_is_complete(mp_agreement_t *agreement, mp_packet_t **found,
                                       mp_status_t *out_failure) {
  const mp_world_t *world = agreement->world;
  if (found != NULL) world_exchange_collect(agreement, found);
  *out_failure = world_exchange_hear(agreement);
  if (*out_failure == NULL) *out_failure = world_exchange_broken(agreement);
  bool is_complete = true;
  for (uint32_t rank = 0; rank < world->size && *out_failure == NULL; ++rank) {
    if (!world_exchange_misses(agreement, found, rank)) continue;
    is_complete = false;
    *out_failure = mp_world_loss(world, rank);
  }
  return is_complete;
}

// Waits for the bytes of all ranks or, when `found` is NULL, for their verdicts.
static mp_status_t world_exchange_await(mp_agreement_t *agreement, mp_packet_t **found) {
  mp_world_t *world = agreement->world;
  const double deadline = mp_clock_seconds() + agreement->timeout_s;
  mp_status_t status = NULL;
  mp_lock(&world->lock);
  while (!world_exchange_is_complete(agreement, found, &status) && status == NULL) {
    if (!mp_world_wait_changed(world, deadline)) {
      status = world_exchange_name_missing(agreement, found);
      break;
    }
  }
  mp_unlock(&world->lock);
  return status;
}

// ---- Exchanges ----

// Lays pointers, sizes and bytes into one allocation.
static mp_status_t world_exchange_lay_out(const mp_world_t *world, mp_packet_t *const *found,
                                          void ***out_bytes, size_t **out_sizes) {
  size_t total = 0;
  for (uint32_t rank = 0; rank < world->size; ++rank) {
    total += (found[rank]->bytes + 15) / 16 * 16;
  }
  size_t head = (world->size * (sizeof(void *) + sizeof(size_t)) + 15) / 16 * 16;
  char *memory = mp_malloc(head + total);
  MP_RETURN_IF_NULL(memory);
  void **bytes = (void **)(void *)memory;
  size_t *sizes = (size_t *)(void *)(bytes + world->size);
  char *next = memory + head;
  for (uint32_t rank = 0; rank < world->size; ++rank) {
    const mp_packet_t *packet = found[rank];
    bytes[rank] = next;
    sizes[rank] = packet->bytes;
    if (packet->bytes != 0) memcpy(next, packet->data, packet->bytes);
    next += (packet->bytes + 15) / 16 * 16;
  }
  *out_bytes = bytes;
  *out_sizes = sizes;
  return NULL;
}

// Sends the bytes to all, and waits for theirs.
static mp_status_t world_exchange_with_all(mp_agreement_t *agreement, const void *bytes,
                                           size_t size, mp_packet_t **found) {
  mp_world_t *world = agreement->world;
  mp_payload_t *payload = NULL;
  MP_RETURN_IF_ERROR(mp_payload_create(world, size, &payload));
  const mp_envelope_t envelope = {.channel = MP_WORLD_OWN_CHANNEL,
                                  .words = {MP_WORLD_EXCHANGE},
                                  .key = {agreement->number, agreement->num_rounds}};
  if (size != 0) memcpy(payload->data, bytes, size);
  mp_status_t status = NULL;
  // Sent to all even if one of them is gone: its bytes may have come before, and the others need
  // those of this process.
  for (uint32_t rank = 0; rank < world->size && status == NULL; ++rank) {
    status = mp_world_send(world, rank, &envelope, payload);
    if (mp_status_code(status) == MP_UNAVAILABLE) {
      mp_status_release(status);
      status = NULL;
    }
  }
  mp_payload_release(payload);
  return status == NULL ? world_exchange_await(agreement, found) : status;
}

mp_status_t mp_agreement_exchange(mp_agreement_t *agreement, const void *bytes, size_t size,
                                  void ***out_bytes, size_t **out_sizes) {
  MP_RETURN_IF_ERROR(world_exchange_check(agreement));
  const mp_world_t *world = agreement->world;
  mp_packet_t **found = mp_calloc(world->size, sizeof(mp_packet_t *));
  MP_RETURN_IF_NULL(found);
  mp_status_t status = world_exchange_with_all(agreement, bytes, size, found);
  if (status == NULL) status = world_exchange_lay_out(world, found, out_bytes, out_sizes);
  for (uint32_t rank = 0; rank < world->size; ++rank) mp_packet_release(found[rank]);
  mp_free(found);
  ++agreement->num_rounds;
  return status;
}

mp_status_t mp_agreement_check(mp_agreement_t *agreement) {
  MP_RETURN_IF_ERROR(world_exchange_check(agreement));
  mp_world_t *world = agreement->world;
  mp_lock(&world->lock);
  mp_status_t status = world_exchange_hear(agreement);
  if (status == NULL) status = world_exchange_broken(agreement);
  for (uint32_t rank = 0; rank < world->size && status == NULL; ++rank) {
    status = mp_world_loss(world, rank);
  }
  mp_unlock(&world->lock);
  return status;
}

// ---- Ends ----

// Sends a verdict to all others. A verdict without text needs no memory (mp_world_send). Ranks that
// cannot be reached any more do not need one.
static void world_exchange_tell(const mp_agreement_t *agreement, mp_status_t verdict) {
  mp_world_t *world = agreement->world;
  const mp_envelope_t envelope = {.channel = MP_WORLD_OWN_CHANNEL,
                                  .words = {MP_WORLD_VERDICT, (uint32_t)mp_status_code(verdict)},
                                  .key = {agreement->number}};
  const size_t size = strnlen(mp_status_message(verdict), MP_MAX_TOLD_BYTES);
  mp_payload_t *words = NULL;
  if (size != 0) mp_status_ignore(mp_payload_create(world, size, &words));
  if (words != NULL) memcpy(words->data, mp_status_message(verdict), size);
  for (uint32_t rank = 0; rank < world->size; ++rank) {
    if (rank == world->rank) continue;
    mp_status_t status = mp_world_send(world, rank, &envelope, words);
    if (words != NULL && mp_status_code(status) == MP_RESOURCE_EXHAUSTED) {
      mp_status_ignore(status);
      status = mp_world_send(world, rank, &envelope, NULL);
    }
    mp_status_ignore(status);
  }
  mp_payload_release(words);
}

mp_status_t mp_agreement_end(mp_agreement_t *agreement, mp_status_t status) {
  mp_status_t check = world_exchange_check(agreement);
  if (check != NULL) {
    mp_free(agreement->memo);
    mp_status_release(status);
    return check;
  }
  if (status == NULL) {
    world_exchange_tell(agreement, NULL);
    status = world_exchange_await(agreement, NULL);
  }
  if (status != NULL && !agreement->has_heard) world_exchange_tell(agreement, status);
  world_exchange_forget(agreement, status == NULL);
  return status;
}

mp_status_t mp_world_exchange(mp_world_t *world, const void *bytes, size_t size, double timeout_s,
                              void ***out_bytes, size_t **out_sizes) {
  mp_agreement_t agreement;
  mp_agreement_begin(world, timeout_s, &agreement);
  mp_status_t status = mp_agreement_exchange(&agreement, bytes, size, out_bytes, out_sizes);
  if (status != NULL) return mp_agreement_end(&agreement, status);
  world_exchange_forget(&agreement, true);
  return NULL;
}
