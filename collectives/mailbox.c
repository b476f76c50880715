#include "collectives/mailbox.h"

#include <inttypes.h>
#include <string.h>

#include "collectives/collective_parts.h"
#include "sim/base/alloc.h"
#include "sim/base/assert.h"
#include "sim/base/containers/list.h"
#include "sim/base/hash.h"
#include "sim/numeric/dims.h"

// A mailbox has no lock of its own: the caller holds the session's. So either the receiver finds
// the message, or the message finds the receiver. Messages themselves belong to one thread at a
// time, and are packed and read without the lock.

struct mp_message_s {
  mp_message_t *next;
  int64_t channel_id;
  uint32_t source, target;
  uint32_t num_operands;
  uint32_t types;  // mp_message_types of the sender
  size_t bytes;
  const unsigned char *data;  // the operands one after the other; after the message or in a packet
  mp_packet_t *packet;        // the packet that contains the message; NULL: it is from this process
};
_Static_assert(sizeof(mp_message_t) <= MP_PACKET_NOTE_BYTES, "a packet has room for its message");

void mp_mailbox_init(mp_mailbox_t *mailbox, const uint32_t *names) {
  *mailbox = (mp_mailbox_t){.names = names};
}

void mp_mailbox_deinit(mp_mailbox_t *mailbox) {
  for (mp_message_t *message; (message = mailbox->messages.first) != NULL;) {
    MP_QUEUE_POP(&mailbox->messages, next);
    mp_message_release(message);
  }
}

void mp_message_release(mp_message_t *message) {
  if (message == NULL) return;
  if (message->packet != NULL) {
    mp_packet_release(message->packet);
  } else {
    mp_free(message);
  }
}

size_t mp_message_bytes(const mp_collective_t *collective) {
  size_t bytes = 0;
  for (uint32_t i = 0; i < collective->num_operands; ++i) {
    bytes += mp_operand_bytes(&collective->operands[i], collective->operands[i].dims);
  }
  return bytes;
}

uint32_t mp_message_types(const mp_collective_t *collective) {
  uint64_t hash = MP_HASH_START;
  for (uint32_t i = 0; i < collective->num_operands; ++i) {
    const mp_collective_operand_t *operand = &collective->operands[i];
    hash = mp_hash_u64(hash, (uint64_t)operand->dtype << 32 | operand->rank);
    for (uint32_t d = 0; d < operand->rank; ++d)
      hash = mp_hash_u64(hash, (uint64_t)operand->dims[d]);
  }
  return (uint32_t)(hash ^ hash >> 32);
}

void mp_message_pack(const mp_collective_t *collective, const void *const *inputs, void *to) {
  size_t offset = 0;
  for (uint32_t i = 0; i < collective->num_operands; ++i) {
    size_t size = mp_operand_bytes(&collective->operands[i], collective->operands[i].dims);
    if (size != 0) memcpy((char *)to + offset, inputs[i], size);
    offset += size;
  }
}

mp_status_t mp_message_create(const mp_collective_t *collective, uint32_t source, uint32_t target,
                              const void *const *inputs, mp_message_t **out_message) {
  const size_t bytes = mp_message_bytes(collective);
  mp_message_t *message = mp_malloc(sizeof(*message) + bytes);
  MP_RETURN_IF_NULL(message);
  *message = (mp_message_t){.channel_id = collective->channel_id,
                            .source = source,
                            .target = target,
                            .num_operands = collective->num_operands,
                            .types = mp_message_types(collective),
                            .bytes = bytes,
                            .data = (const unsigned char *)(message + 1)};
  mp_message_pack(collective, inputs, message + 1);
  *out_message = message;
  return NULL;
}

mp_message_t *mp_message_of_packet(int64_t channel_id, uint32_t source, uint32_t target,
                                   uint32_t num_operands, uint32_t types, mp_packet_t *packet) {
  mp_message_t *message = mp_packet_note(packet);
  // In the packet's own note, because the progress thread must not fail when memory is short.
  *message = (mp_message_t){.channel_id = channel_id,
                            .source = source,
                            .target = target,
                            .num_operands = num_operands,
                            .types = types,
                            .bytes = packet->bytes,
                            .data = packet->data,
                            .packet = packet};
  return message;
}

mp_status_t mp_message_read(const mp_message_t *message, const mp_mailbox_t *mailbox,
                            const mp_collective_t *collective, void *const *outputs) {
  size_t bytes = 0;
  for (uint32_t i = 0; i < collective->num_operands; ++i) {
    bytes += mp_operand_bytes(&collective->operands[i], collective->operands[i].result_dims);
  }
  if (bytes != message->bytes || collective->num_operands != message->num_operands ||
      mp_message_types(collective) != message->types) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "send and recv do not match on channel %" PRId64 ": device %" PRIu32
                          " sent %zu bytes in %" PRIu32 " operands, %s (%s) on device %" PRIu32
                          " expects %zu bytes in %" PRIu32 ": their types differ",
                          message->channel_id, mailbox->names[message->source], message->bytes,
                          message->num_operands, collective->name, collective->location,
                          mailbox->names[message->target], bytes, collective->num_operands);
  }
  size_t offset = 0;
  for (uint32_t i = 0; i < collective->num_operands; ++i) {
    size_t size = mp_operand_bytes(&collective->operands[i], collective->operands[i].result_dims);
    if (size != 0) memcpy(outputs[i], message->data + offset, size);
    offset += size;
  }
  return NULL;
}

static bool mailbox_is_for(const mp_message_t *message, const mp_receiver_t *receiver) {
  return message->channel_id == receiver->collective->channel_id &&
         message->source == receiver->source && message->target == receiver->target;
}

mp_receiver_t *mp_mailbox_post(mp_mailbox_t *mailbox, mp_message_t *message) {
  // The oldest receiver gets the oldest message: messages of one channel and pair never overtake
  // each other.
  mp_receiver_t *previous = NULL, *receiver = mailbox->receivers.first;
  for (; receiver != NULL && !mailbox_is_for(message, receiver); receiver = receiver->next) {
    previous = receiver;
  }
  if (receiver == NULL) {
    MP_QUEUE_PUSH(&mailbox->messages, message, next);
    return NULL;
  }
  MP_ASSERT(mailbox->num_receivers != 0 && receiver->message == NULL);
  // Removed from the list before it is resumed: it is part of its run, which may be freed soon
  // after.
  MP_QUEUE_REMOVE(&mailbox->receivers, previous, receiver, next);
  mailbox->num_receivers -= 1;
  receiver->message = message;
  return receiver;
}

bool mp_mailbox_receive(mp_mailbox_t *mailbox, mp_receiver_t *receiver) {
  mp_message_t *previous = NULL, *message = mailbox->messages.first;
  for (; message != NULL && !mailbox_is_for(message, receiver); message = message->next) {
    previous = message;
  }
  receiver->message = message;
  if (message != NULL) {
    MP_QUEUE_REMOVE(&mailbox->messages, previous, message, next);
    return true;
  }
  MP_QUEUE_PUSH(&mailbox->receivers, receiver, next);
  mailbox->num_receivers += 1;
  return false;
}
