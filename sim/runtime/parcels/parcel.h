// Parcels: contents of buffers on their way to a device of another process.
//
// The sender names the device that they are for, the receiver the one that they come from, and both
// a key, which is used once for this pair of devices in a client. Either side may come first. A
// parcel goes as soon as its contents are there, whether or not it is awaited, and in no order with
// launches or other parcels: so processes that send to each other never wait for each other.
//
// Thread-safe. Both functions fail with FAILED_PRECONDITION in a forked child, when the client was
// closed, and when the process is alone.
#ifndef MINIPOD_SIM_RUNTIME_PARCELS_PARCEL_H_
#define MINIPOD_SIM_RUNTIME_PARCELS_PARCEL_H_

#include "sim/runtime/buffers/buffer.h"

// Sends the contents of `buffer` to the device with the id `target`. `out_sent` (the caller's) is
// set when the contents have been copied and are on their way, or with the reason why they will not
// be (the buffer was deleted, for one); the receiver then gets that reason, if it can be reached.
// INVALID_ARGUMENT when there is no such device, RESOURCE_EXHAUSTED when memory is short.
MP_NODISCARD mp_status_t mp_parcel_send(mp_buffer_t *buffer, uint32_t target, int64_t key,
                                        mp_event_t **out_sent);
// A buffer that gets what the device with the id `source` sends to that of `memory`. Its contents
// are an error when the sender's were, when they have another type or size, and when the sender's
// process ends before, and DEADLINE_EXCEEDED when nothing has come after `collective_timeout`
// seconds (options.h); what comes later is dropped at the end of the job. INVALID_ARGUMENT when
// there is no such device; otherwise as mp_buffer_create.
MP_NODISCARD mp_status_t mp_parcel_receive(mp_memory_t *memory, mp_dtype_t dtype,
                                           const int64_t *dims, uint32_t rank, uint32_t source,
                                           int64_t key, mp_buffer_t **out_buffer);

// Waits until what was sent is on its way, for half a minute at most: called where a client or the
// process ends.
void mp_parcels_finish(void);
// Called before a world ends (in tests), when its clients have been released: parcels that are
// awaited fail with CANCELLED.
void mp_parcels_forget(mp_world_t *world);

#endif  // MINIPOD_SIM_RUNTIME_PARCELS_PARCEL_H_
