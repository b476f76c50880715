// Mailboxes: messages from one device to another (StableHLO spec, send and recv).
//
// A message belongs to a channel, a source and a target; messages of equal keys are received in the
// order in which they were sent. Sending copies the data and never waits. Receiving takes the
// message if it is there; else the receiver is written down and whoever sends hands the message to
// it.
//
// Not thread-safe: the owner locks (messages are made and read without the lock). One mailbox
// serves one launch.
#ifndef MINIPOD_COLLECTIVES_MAILBOX_H_
#define MINIPOD_COLLECTIVES_MAILBOX_H_

#include "collectives/collective.h"
#include "collectives/transport/world.h"

typedef struct mp_message_s mp_message_t;

typedef struct mp_receiver_s mp_receiver_t;
struct mp_receiver_s {
  const mp_collective_t *collective;
  uint32_t source, target;  // logical
  mp_message_t *message;    // set when it has come; the receiver's to release
  mp_receiver_t *next;
};

typedef struct {
  const uint32_t *names;  // what messages to the user call participants
  mp_message_t *first, *last;
  mp_receiver_t *receivers;  // who waits, oldest first
  uint32_t num_receivers;
} mp_mailbox_t;

void mp_mailbox_init(mp_mailbox_t *mailbox, const uint32_t *names);
void mp_mailbox_deinit(mp_mailbox_t *mailbox);

// A copy of what `source` sends to `target`.
MP_NODISCARD mp_status_t mp_message_create(const mp_collective_t *collective, uint32_t source,
                                           uint32_t target, const void *const *inputs,
                                           mp_message_t **out_message);
// The same between processes: what is sent, and what came, which takes the packet and is written
// into it.
size_t mp_message_bytes(const mp_collective_t *collective);
// A fingerprint of the operands' types, which sender and receiver must agree on.
uint32_t mp_message_types(const mp_collective_t *collective);
void mp_message_pack(const mp_collective_t *collective, const void *const *inputs, void *to);
mp_message_t *mp_message_of_packet(int64_t channel_id, uint32_t source, uint32_t target,
                                   uint32_t num_operands, uint32_t types, mp_packet_t *packet);
void mp_message_release(mp_message_t *message);
// Copies its contents into the receiver's outputs. INVALID_ARGUMENT when the types disagree.
MP_NODISCARD mp_status_t mp_message_read(const mp_message_t *message, const mp_mailbox_t *mailbox,
                                         const mp_collective_t *collective, void *const *outputs);

// Adopts `message`. Returns the receiver that waited for it and has it now, or NULL.
mp_receiver_t *mp_mailbox_post(mp_mailbox_t *mailbox, mp_message_t *message);
// True: receiver->message is there. False: the receiver is written down and must stay.
bool mp_mailbox_receive(mp_mailbox_t *mailbox, mp_receiver_t *receiver);

#endif  // MINIPOD_COLLECTIVES_MAILBOX_H_
