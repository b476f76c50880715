// Parcels: contents of buffers that are sent to a device of another process.
//
// The sender names the target device, the receiver the source device, and both use a key that is
// unique for this pair of devices in a client. Either side may come first. A parcel is sent as soon
// as its contents are defined, whether or not it is awaited, and unordered with launches and other
// parcels: so processes that send to each other never wait for each other.
//
// Thread-safe. The functions that send and receive fail with FAILED_PRECONDITION in a forked child,
// when the client was closed, and when the process is alone.
#ifndef MINIPOD_SIM_RUNTIME_PARCELS_PARCEL_H_
#define MINIPOD_SIM_RUNTIME_PARCELS_PARCEL_H_

#include "sim/runtime/buffers/buffer.h"

// Sends the contents of `buffer` to the device with the id `target`. `out_sent` (owned by the
// caller) is set when the contents have been copied and handed to the transport, or with the error
// that prevents it (for example, the buffer was deleted); the receiver then gets that error, if it
// can be reached. INVALID_ARGUMENT when there is no such device, RESOURCE_EXHAUSTED when memory is
// short.
MP_NODISCARD mp_status_t mp_parcel_send(mp_buffer_t *buffer, uint32_t target, int64_t key,
                                        mp_event_t **out_sent);
// A buffer that receives what the device with the id `source` sends to that of `memory`. Its
// contents are an error if the sender's are, if type or size differ, or if the sender's process
// ends before; DEADLINE_EXCEEDED if nothing has come after `collective_timeout` seconds
// (options.h). A parcel that comes later is dropped at the end of the job. INVALID_ARGUMENT when
// there is no such device; otherwise as mp_buffer_create.
MP_NODISCARD mp_status_t mp_parcel_receive(mp_memory_t *memory, mp_dtype_t dtype,
                                           const int64_t *dims, uint32_t rank, uint32_t source,
                                           int64_t key, mp_buffer_t **out_buffer);

// What a receiver passes to a sender that it does not know: it may be copied and sent as bytes.
typedef struct {
  uint64_t magic;  // of this form
  uint64_t client, key;
  uint64_t target;  // the receiving device's id
} mp_parcel_ticket_t;

// mp_parcel_receive from whatever device sends with the ticket. If a process ends meanwhile, the
// contents are an error, because it may be the sender's.
MP_NODISCARD mp_status_t mp_parcel_receive_any(mp_memory_t *memory, mp_dtype_t dtype,
                                               const int64_t *dims, uint32_t rank,
                                               mp_parcel_ticket_t *out_ticket,
                                               mp_buffer_t **out_buffer);
// mp_parcel_send to the receiver that made the ticket. If this fails at once, the receiver gets the
// error too, if it can be reached. INVALID_ARGUMENT for bytes that are no ticket.
//
// With a ticket that something was sent with before, it fails with FAILED_PRECONDITION, and so do
// all receivers with tickets on that device, because any of them may be the one that is meant.
MP_NODISCARD mp_status_t mp_parcel_send_to(mp_buffer_t *buffer, const mp_parcel_ticket_t *ticket,
                                           mp_event_t **out_sent);
// Ends the wait of this process's receiver that made the ticket, with `error` (consumed). No effect
// if the contents have come.
void mp_parcel_cancel(mp_client_t *client, const mp_parcel_ticket_t *ticket, mp_status_t error);

// Waits until all parcels have been handed to the transport, at most half a minute: called when a
// client or the process ends.
void mp_parcels_finish(void);
// Called before a world ends (in tests), when its clients have been released: parcels that are
// awaited fail with CANCELLED.
void mp_parcels_forget(mp_world_t *world);

#endif  // MINIPOD_SIM_RUNTIME_PARCELS_PARCEL_H_
