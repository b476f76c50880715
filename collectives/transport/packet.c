// Packets on the receiver's side, and payloads on the sender's.
#include <string.h>

#include "collectives/transport/world_impl.h"
#include "sim/base/alloc.h"
#include "sim/base/assert.h"
#include "sim/base/containers/list.h"
#include "sim/base/os/process.h"

// ---- Lists ----

void mp_packet_list_push(mp_packet_list_t *list, mp_packet_t *packet) {
  MP_QUEUE_PUSH(list, packet, next);
}

static bool packet_is_any(const mp_packet_t *packet, uint64_t number) {
  (void)packet, (void)number;
  return true;
}

mp_packet_t *mp_packet_list_pop(mp_packet_list_t *list) {
  return mp_packet_list_take(list, packet_is_any, 0);
}

mp_packet_t *mp_packet_list_take(mp_packet_list_t *list,
                                 bool (*is_wanted)(const mp_packet_t *packet, uint64_t number),
                                 uint64_t number) {
  mp_packet_t *previous = NULL;
  mp_packet_t *packet = list->first;
  for (; packet != NULL && !is_wanted(packet, number); packet = packet->next) previous = packet;
  if (packet == NULL) return NULL;
  MP_QUEUE_REMOVE(list, previous, packet, next);
  packet->next = NULL;
  return packet;
}

bool mp_packet_is_from(const mp_packet_t *packet, uint64_t rank) {
  return packet->from == rank;
}

void mp_packet_list_drop_from(mp_packet_list_t *list, uint32_t rank) {
  for (mp_packet_t *packet;
       (packet = mp_packet_list_take(list, mp_packet_is_from, rank)) != NULL;) {
    mp_packet_release(packet);
  }
}

void mp_packet_list_clear(mp_packet_list_t *list) {
  for (mp_packet_t *packet; (packet = mp_packet_list_pop(list)) != NULL;) {
    mp_packet_release(packet);
  }
}

// ---- Packets ----

static mp_packet_node_t *packet_make_node(mp_world_t *world, uint32_t from,
                                          const mp_envelope_t *envelope) {
  MP_ASSERT(from < world->size);
  mp_packet_node_t *node = mp_aligned_malloc(_Alignof(mp_packet_node_t), sizeof(*node));
  if (node == NULL) return NULL;
  node->packet = (mp_packet_t){.from = from, .envelope = *envelope};
  node->world = world;
  node->block = NULL;
  node->segment = NULL;
  return node;
}

mp_packet_t *mp_packet_create(mp_world_t *world, uint32_t from, const mp_envelope_t *envelope,
                              mp_payload_block_t *block) {
  mp_packet_node_t *node = packet_make_node(world, from, envelope);
  if (node == NULL) return NULL;
  node->block = block;
  if (block != NULL && block->payload.bytes != 0) {
    node->packet.data = mp_payload_block_data(block);
    node->packet.bytes = block->payload.bytes;
  }
  return &node->packet;
}

mp_packet_t *mp_packet_create_inline(mp_world_t *world, uint32_t from,
                                     const mp_envelope_t *envelope, const void *data,
                                     size_t bytes) {
  MP_ASSERT(bytes <= MP_INLINE_BYTES && (data != NULL || bytes == 0));
  mp_packet_node_t *node = packet_make_node(world, from, envelope);
  if (node == NULL) return NULL;
  if (bytes != 0) {
    memcpy(node->bytes, data, bytes);
    node->packet.data = node->bytes;
    node->packet.bytes = bytes;
  }
  return &node->packet;
}

void mp_packet_release(mp_packet_t *packet) {
  if (packet == NULL) return;
  mp_packet_node_t *node = (mp_packet_node_t *)packet;
  // In a forked child the reference still belongs to the parent.
  if (node->world->generation == mp_process_generation()) {
    mp_payload_block_release(node->block);
    mp_segment_release(node->segment);
  }
  mp_free(node);
}

void mp_packet_keep_segment(mp_packet_t *packet, mp_segment_t *segment) {
  ((mp_packet_node_t *)packet)->segment = mp_segment_retain(segment);
}

void *mp_packet_note(mp_packet_t *packet) {
  return ((mp_packet_node_t *)packet)->note;
}

// ---- Payloads ----

mp_payload_block_t *mp_world_take_block(mp_world_t *world, size_t bytes) {
  return world->segment == NULL ? mp_payload_block_create(bytes)
                                : mp_segment_take(world->segment, bytes);
}

mp_status_t mp_payload_create(mp_world_t *world, size_t bytes, mp_payload_t **out_payload) {
  // Small payloads are copied into packets, so they need no memory that other processes can map.
  mp_payload_block_t *block =
      bytes <= MP_INLINE_BYTES ? mp_payload_block_create(bytes) : mp_world_take_block(world, bytes);
  if (block == NULL) {
    return mp_status_make(MP_RESOURCE_EXHAUSTED,
                          "out of memory: no room for a message of %zu bytes", bytes);
  }
  *out_payload = &block->payload;
  return NULL;
}

void mp_payload_release(mp_payload_t *payload) {
  if (payload == NULL) return;
  mp_payload_block_t *block = mp_payload_block_of(payload);
  if (block->generation == mp_process_generation()) mp_payload_block_release(block);
}
