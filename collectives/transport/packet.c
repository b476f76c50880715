// Packets on the receiver's side, and parcels on the sender's.
#include <string.h>

#include "collectives/transport/world_internal.h"
#include "sim/base/alloc.h"
#include "sim/base/process.h"

void mp_packet_list_push(mp_packet_list_t *list, mp_packet_node_t *node) {
  node->next = NULL;
  if (list->last == NULL) {
    list->first = node;
  } else {
    list->last->next = node;
  }
  list->last = node;
}

mp_packet_node_t *mp_packet_list_pop(mp_packet_list_t *list) {
  mp_packet_node_t *node = list->first;
  if (node == NULL) return NULL;
  list->first = node->next;
  if (list->first == NULL) list->last = NULL;
  node->next = NULL;
  return node;
}

static mp_packet_node_t *make_node(mp_world_t *world, uint32_t from,
                                   const mp_envelope_t *envelope) {
  mp_packet_node_t *node = mp_aligned_malloc(_Alignof(mp_packet_node_t), sizeof(*node));
  if (node == NULL) return NULL;
  node->packet = (mp_packet_t){.from = from, .envelope = *envelope};
  node->next = NULL;
  node->world = world;
  node->cargo = NULL;
  return node;
}

mp_packet_t *mp_packet_create(mp_world_t *world, uint32_t from, const mp_envelope_t *envelope,
                              mp_cargo_t *cargo) {
  mp_packet_node_t *node = make_node(world, from, envelope);
  if (node == NULL) return NULL;
  node->cargo = cargo;
  if (cargo != NULL && cargo->parcel.bytes != 0) {
    node->packet.data = mp_cargo_data(cargo);
    node->packet.bytes = cargo->parcel.bytes;
  }
  return &node->packet;
}

mp_packet_t *mp_packet_create_inline(mp_world_t *world, uint32_t from,
                                     const mp_envelope_t *envelope, const void *data,
                                     size_t bytes) {
  mp_packet_node_t *node = make_node(world, from, envelope);
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
  // In a forked child the reference is the parent's.
  if (node->world->generation == mp_process_generation()) mp_cargo_release(node->cargo);
  mp_free(node);
}

mp_cargo_t *mp_world_take_cargo(mp_world_t *world, size_t bytes) {
  return world->segment == NULL ? mp_cargo_create(bytes) : mp_segment_take(world->segment, bytes);
}

mp_status_t mp_parcel_create(mp_world_t *world, size_t bytes, mp_parcel_t **out_parcel) {
  // What is copied into the packet needs no memory that others see.
  mp_cargo_t *cargo =
      bytes <= MP_INLINE_BYTES ? mp_cargo_create(bytes) : mp_world_take_cargo(world, bytes);
  if (cargo == NULL) {
    return mp_status_make(MP_RESOURCE_EXHAUSTED,
                          "out of memory: no room for a message of %zu bytes", bytes);
  }
  *out_parcel = &cargo->parcel;
  return NULL;
}

void mp_parcel_release(mp_parcel_t *parcel) {
  if (parcel == NULL) return;
  mp_cargo_t *cargo = mp_cargo_of_parcel(parcel);
  if (cargo->generation == mp_process_generation()) mp_cargo_release(cargo);
}
