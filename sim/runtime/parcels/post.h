// The post office of a world: matches incoming parcels with receivers that await them.
#ifndef MINIPOD_SIM_RUNTIME_PARCELS_POST_H_
#define MINIPOD_SIM_RUNTIME_PARCELS_POST_H_

#include <stdatomic.h>

#include "collectives/transport/world.h"
#include "sim/base/containers/list.h"
#include "sim/runtime/parcels/parcel.h"

// The address of a parcel, which is the key of its envelope.
typedef struct {
  uint64_t client;  // its number in the world (mp_endpoint_launch_key)
  uint64_t key;
  uint64_t devices;  // source | target << 32
} mp_parcel_address_t;

// For a receiver that does not know the sender: the rank, and the source in the address. Such a
// receiver fails with any rank that is lost while it waits.
#define MP_PARCEL_FROM_ANY UINT32_MAX

// How every ticket begins: "mpticket".
#define MP_PARCEL_TICKET_MAGIC UINT64_C(0x74656b636974706d)

// The address of what is sent with a ticket.
static inline mp_parcel_address_t mp_parcel_ticket_address(const mp_parcel_ticket_t *ticket) {
  return (mp_parcel_address_t){.client = ticket->client,
                               .key = ticket->key,
                               .devices = MP_PARCEL_FROM_ANY | ticket->target << 32};
}

// The envelope's words are the sender's status, the type, and whether there are contents.
enum { MP_PARCEL_ABSENT = 1 };

// A receiver that awaits a parcel. Made and freed by its owner.
typedef struct mp_parcel_receiver_s mp_parcel_receiver_t;
struct mp_parcel_receiver_s {
  mp_parcel_receiver_t *next;
  mp_parcel_address_t address;
  uint32_t from;    // the rank that the parcel comes from; MP_PARCEL_FROM_ANY: unknown
  double deadline;  // when the receiver gives up (mp_clock_seconds); INFINITY: never
  // Called once, on the office's thread and without locks, with the parcel's packet. If that never
  // comes: NULL and the error, which is NULL as well if the deadline has passed. The function owns
  // both, and the receiver.
  void (*take)(mp_parcel_receiver_t *receiver, mp_packet_t *packet, mp_status_t error);
  mp_packet_t *packet;  // used by the office as long as it has the receiver
  mp_status_t error;
};

typedef struct mp_post_s mp_post_t;

// The world's post office, made on first use. Borrowed. RESOURCE_EXHAUSTED when memory or threads
// are short.
MP_NODISCARD mp_status_t mp_post_get(mp_world_t *world, mp_post_t **out_post);
// Hands over a receiver, which the office owns until it calls `take`.
void mp_post_await(mp_post_t *post, mp_parcel_receiver_t *receiver);
// Notes that something is sent with this ticket of the rank. FAILED_PRECONDITION, with both ranks,
// if something was sent with it before; RESOURCE_EXHAUSTED when memory is short.
MP_NODISCARD mp_status_t mp_post_use_ticket(mp_post_t *post, uint32_t rank, uint64_t number);
// Ends the wait of the receiver with this address, if it still waits. Consumes `error`.
void mp_post_cancel(mp_post_t *post, const mp_parcel_address_t *address, mp_status_t error);
// The number of parcels that this process is copying, in all worlds. The exit handler polls it. A
// sender decrements it when the parcel has been handed to the transport, so that the goodbye comes
// after the parcel.
extern atomic_uint mp_post_num_sending;

#endif  // MINIPOD_SIM_RUNTIME_PARCELS_POST_H_
