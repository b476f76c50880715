// Agreeing: everybody's bytes to everybody.
#include <inttypes.h>
#include <string.h>

#include "collectives/transport/world_internal.h"
#include "sim/base/alloc.h"
#include "sim/base/assert.h"
#include "sim/base/os/clock.h"
#include "sim/base/os/process.h"
#include "sim/base/str.h"

// Nobody will ask for what comes for a call that is over. Under the lock.
static bool world_exchange_is_over(const mp_world_t *world, uint64_t number) {
  const mp_exchange_call_t *call = world->calls;
  while (call != NULL && call->number != number) call = call->next;
  return number < world->num_exchanges && call == NULL;
}

void mp_world_take_blob(mp_world_t *world, mp_packet_t *packet) {
  mp_lock(&world->lock);
  if (world_exchange_is_over(world, packet->envelope.key[0])) {
    mp_packet_release(packet);
  } else {
    mp_packet_list_push(&world->blobs, packet);
    pthread_cond_broadcast(&world->changed);
  }
  mp_unlock(&world->lock);
}

static void world_exchange_begin(mp_world_t *world, mp_exchange_call_t *call) {
  mp_lock(&world->lock);
  *call = (mp_exchange_call_t){.number = world->num_exchanges++, .next = world->calls};
  world->calls = call;
  mp_unlock(&world->lock);
}

static bool world_exchange_is_of(const mp_packet_t *packet, uint64_t number) {
  return packet->envelope.key[0] == number;
}

static void world_exchange_end(mp_world_t *world, const mp_exchange_call_t *call) {
  mp_lock(&world->lock);
  mp_exchange_call_t **link = &world->calls;
  while (*link != call) link = &(*link)->next;
  *link = call->next;
  for (mp_packet_t *packet;
       (packet = mp_packet_list_take(&world->blobs, world_exchange_is_of, call->number)) != NULL;) {
    mp_packet_release(packet);
  }
  mp_unlock(&world->lock);
}

// Moves the blobs of call `number` out of the world's list into `found`. Under the lock.
static void world_exchange_collect(mp_world_t *world, uint64_t number, mp_packet_t **found) {
  mp_lock_assert_held(&world->lock);
  mp_packet_list_t rest = {0};
  for (mp_packet_t *packet; (packet = mp_packet_list_pop(&world->blobs)) != NULL;) {
    if (packet->envelope.key[0] == number && found[packet->from] == NULL) {
      found[packet->from] = packet;
    } else {
      mp_packet_list_push(&rest, packet);
    }
  }
  world->blobs = rest;
}

static mp_status_t world_exchange_name_missing(const mp_world_t *world, mp_packet_t *const *found,
                                               double timeout_s) {
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  const char *separator = "";
  for (uint32_t rank = 0; rank < world->size; ++rank) {
    if (found[rank] != NULL) continue;
    char name[MP_PEER_NAME_BYTES];
    mp_world_peer_name(world, rank, name);
    mp_strbuf_printf(&text, "%s%s", separator, name);
    separator = ", ";
  }
  mp_status_t status = mp_status_make(MP_DEADLINE_EXCEEDED, "not heard of within %g s: %s",
                                      timeout_s, mp_strbuf_text(&text));
  mp_strbuf_deinit(&text);
  return status;
}

// Waits for all blobs of call `number`.
static mp_status_t world_exchange_await_blobs(mp_world_t *world, uint64_t number, double timeout_s,
                                              mp_packet_t **found) {
  double deadline = mp_clock_seconds() + timeout_s;
  mp_status_t status = NULL;
  mp_lock(&world->lock);
  while (status == NULL) {
    world_exchange_collect(world, number, found);
    uint32_t missing = 0;
    for (uint32_t rank = 0; rank < world->size && status == NULL; ++rank) {
      if (found[rank] != NULL) continue;
      ++missing;
      if (atomic_load(&world->peers[rank].is_gone)) {
        status = mp_status_retain(world->peers[rank].why);
      }
    }
    if (missing == 0) break;
    if (status == NULL && !mp_world_wait_changed(world, deadline)) {
      status = world_exchange_name_missing(world, found, timeout_s);
    }
  }
  mp_unlock(&world->lock);
  return status;
}

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
static mp_status_t world_exchange_with_all(mp_world_t *world, uint64_t number, const void *bytes,
                                           size_t size, double timeout_s, mp_packet_t **found) {
  mp_payload_t *payload = NULL;
  MP_RETURN_IF_ERROR(mp_payload_create(world, size, &payload));
  const mp_envelope_t envelope = {
      .channel = MP_WORLD_OWN_CHANNEL, .words = {MP_WORLD_EXCHANGE}, .key = {number}};
  if (size != 0) memcpy(payload->data, bytes, size);
  mp_status_t status = NULL;
  // To all even if one is gone: its bytes may have come before, and the others need ours.
  for (uint32_t rank = 0; rank < world->size && status == NULL; ++rank) {
    status = mp_world_send(world, rank, &envelope, payload);
    if (mp_status_code(status) == MP_UNAVAILABLE) {
      mp_status_release(status);
      status = NULL;
    }
  }
  mp_payload_release(payload);
  return status == NULL ? world_exchange_await_blobs(world, number, timeout_s, found) : status;
}

mp_status_t mp_world_exchange(mp_world_t *world, const void *bytes, size_t size, double timeout_s,
                              void ***out_bytes, size_t **out_sizes) {
  if (world->generation != mp_process_generation()) {
    return mp_status_make(MP_FAILED_PRECONDITION,
                          "this is a forked child: it has no part in its parent's job");
  }
  mp_exchange_call_t call;
  world_exchange_begin(world, &call);
  mp_packet_t **found = mp_calloc(world->size, sizeof(mp_packet_t *));
  mp_status_t status =
      found == NULL ? mp_status_out_of_memory()
                    : world_exchange_with_all(world, call.number, bytes, size, timeout_s, found);
  if (status == NULL) status = world_exchange_lay_out(world, found, out_bytes, out_sizes);
  for (uint32_t rank = 0; found != NULL && rank < world->size; ++rank) {
    mp_packet_release(found[rank]);
  }
  mp_free(found);
  world_exchange_end(world, &call);
  return status;
}
