// Mailboxes: messages from one device to another (StableHLO spec, send and recv).
//
// A message belongs to a channel, a source and a target; messages of equal keys are received in the
// order in which they were sent. Sending copies the data and never waits. Receiving takes the
// message if it has come; otherwise the receiver is put into a list, and the sender of the message
// passes it to the receiver.
//
// Not thread-safe: the caller holds the lock of the mailbox's owner, except for the functions that
// make and read messages. One mailbox serves one launch.
#ifndef MINIPOD_COLLECTIVES_MAILBOX_H_
#define MINIPOD_COLLECTIVES_MAILBOX_H_

#include "collectives/collective.h"
#include "collectives/transport/world.h"
#include "sim/base/containers/list.h"

typedef struct mp_message_s mp_message_t;

typedef struct mp_receiver_s mp_receiver_t;
struct mp_receiver_s {
  const mp_collective_t *collective;
  uint32_t source, target;  // logical
  mp_message_t *message;    // set when it has come; the receiver releases it
  mp_receiver_t *next;
};

typedef struct {
  const uint32_t *names;              // the participants' names in messages to the user
  MP_QUEUE(mp_message_t) messages;    // not received yet
  MP_QUEUE(mp_receiver_t) receivers;  // receives that wait
  uint32_t num_receivers;
} mp_mailbox_t;

// Makes an empty mailbox; `names` is borrowed for as long as it lives.
void mp_mailbox_init(mp_mailbox_t *mailbox, const uint32_t *names);
// Releases the messages that were never received.
void mp_mailbox_deinit(mp_mailbox_t *mailbox);

// A message with a copy of the data from `source` to `target`. RESOURCE_EXHAUSTED when memory is
// short.
MP_NODISCARD mp_status_t mp_message_create(const mp_collective_t *collective, uint32_t source,
                                           uint32_t target, const void *const *inputs,
                                           mp_message_t **out_message);
// The bytes of a message, or of a device's part in any collective: all operands one after the
// other.
size_t mp_message_bytes(const mp_collective_t *collective);
// A fingerprint of the operands' types, on which sender and receiver must agree.
uint32_t mp_message_types(const mp_collective_t *collective);
// Writes the operands to `to`, which has mp_message_bytes.
void mp_message_pack(const mp_collective_t *collective, const void *const *inputs, void *to);
// The message in a packet of another process. Takes the packet; the message is stored in the
// packet's note, so this cannot fail.
mp_message_t *mp_message_of_packet(int64_t channel_id, uint32_t source, uint32_t target,
                                   uint32_t num_operands, uint32_t types, mp_packet_t *packet);
// Frees a message, with the packet that contains it. NULL has no effect.
void mp_message_release(mp_message_t *message);
// Copies the message into the receiver's outputs, which `collective` (the receiver's) describes.
// Uses only the names of the mailbox. INVALID_ARGUMENT when the types disagree.
MP_NODISCARD mp_status_t mp_message_read(const mp_message_t *message, const mp_mailbox_t *mailbox,
                                         const mp_collective_t *collective, void *const *outputs);

// Adopts `message`. Returns the receiver that waited for it, which now has it and is off the list;
// NULL: no receiver waits, and the mailbox keeps the message.
mp_receiver_t *mp_mailbox_post(mp_mailbox_t *mailbox, mp_message_t *message);
// The caller has filled in the receiver's collective, source and target. True: it has its message.
// False: the receiver is in the list, and must stay valid until it gets its message.
bool mp_mailbox_receive(mp_mailbox_t *mailbox, mp_receiver_t *receiver);

#endif  // MINIPOD_COLLECTIVES_MAILBOX_H_
