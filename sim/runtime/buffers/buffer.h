// Buffers: a dense array in one memory space of one device.
//
// A buffer has a type, a memory, storage (shared, counted), and a definition event that is set when
// its contents are there, or when they can never be (an error buffer: every later use reports the
// first cause). Contents are row-major stored elements (sim/numeric/dtype.h). Storage has its
// address from creation on, also while the contents are pending.
//
// Uses hold the storage: a run or copy that was enqueued keeps it until it is done, an external
// reference until it is given back; mp_buffer_delete takes the buffer away from the user at once
// and the storage goes (or returns to the space's books) with its last hold.
//
// Reference-counted, thread-safe.
#ifndef MINIPOD_SIM_RUNTIME_BUFFERS_BUFFER_H_
#define MINIPOD_SIM_RUNTIME_BUFFERS_BUFFER_H_

#include "sim/ir/type.h"
#include "sim/runtime/devices/client.h"
#include "sim/runtime/devices/event.h"

typedef struct mp_buffer_s mp_buffer_t;

// When the caller's memory of mp_buffer_from_host may be touched again (PJRT_HostBufferSemantics).
typedef enum {
  MP_HOST_ONLY_DURING_CALL,
  MP_HOST_UNTIL_TRANSFER_COMPLETES,
} mp_host_semantics_t;

typedef struct {
  mp_dtype_t dtype;
  uint32_t rank;
  const int64_t *dims;
  const void *data;
  const int64_t *byte_strides;  // [rank], any sign, 0 repeats; NULL: dense row-major
} mp_host_array_t;

// Copies a host array into a new buffer. RESOURCE_EXHAUSTED (with the table of who holds what) when
// it does not fit. `out_done` (may be NULL): set when `data` is no longer needed.
MP_NODISCARD mp_status_t mp_buffer_from_host(mp_memory_t *memory, const mp_host_array_t *array,
                                             mp_host_semantics_t semantics,
                                             mp_buffer_t **out_buffer, mp_event_t **out_done);
// Contents to be written by the owner of the returned definition event, who must set it.
MP_NODISCARD mp_status_t mp_buffer_create(mp_memory_t *memory, mp_dtype_t dtype,
                                          const int64_t *dims, uint32_t rank,
                                          mp_buffer_t **out_buffer, mp_event_t **out_definition);
// An error buffer; consumes `error`.
MP_NODISCARD mp_status_t mp_buffer_create_error(mp_memory_t *memory, mp_dtype_t dtype,
                                                const int64_t *dims, uint32_t rank,
                                                mp_status_t error, mp_buffer_t **out_buffer);
// A view of memory that the caller owns; `on_release` is called once when the last hold is gone.
MP_NODISCARD mp_status_t mp_buffer_view_external(mp_memory_t *memory, mp_dtype_t dtype,
                                                 const int64_t *dims, uint32_t rank, void *data,
                                                 void (*on_release)(void *context), void *context,
                                                 mp_buffer_t **out_buffer);
mp_buffer_t *mp_buffer_retain(mp_buffer_t *buffer);
void mp_buffer_release(mp_buffer_t *buffer);

const mp_type_t *mp_buffer_type(const mp_buffer_t *buffer);
mp_memory_t *mp_buffer_memory(const mp_buffer_t *buffer);
uint64_t mp_buffer_bytes(const mp_buffer_t *buffer);
// Borrowed: set when the contents are there.
mp_event_t *mp_buffer_definition(const mp_buffer_t *buffer);

void mp_buffer_delete(mp_buffer_t *buffer);
bool mp_buffer_is_deleted(const mp_buffer_t *buffer);

// Asynchronous read of the whole array into `dst` with these strides (NULL: dense row-major), or of
// `size` raw bytes from `offset`. INVALID_ARGUMENT when deleted; a failed definition comes out of
// `out_done`.
MP_NODISCARD mp_status_t mp_buffer_to_host(mp_buffer_t *buffer, void *dst, uint64_t dst_bytes,
                                           const int64_t *byte_strides, mp_event_t **out_done);
MP_NODISCARD mp_status_t mp_buffer_read_raw(mp_buffer_t *buffer, void *dst, uint64_t offset,
                                            uint64_t size, mp_event_t **out_done);
// Writes into a buffer whose definition the caller still owes (chunked transfers).
MP_NODISCARD mp_status_t mp_buffer_write_raw(mp_buffer_t *buffer, const void *src, uint64_t offset,
                                             uint64_t size, mp_event_t **out_done);
// The same two with an event of the caller's (borrowed), which is set when the copy is over. On an
// error nothing was started and the event is not set. So callers can prepare everything first:
// what fails when a copy is under way can only be told when it is over.
MP_NODISCARD mp_status_t mp_buffer_read_raw_to(mp_buffer_t *buffer, void *dst, uint64_t offset,
                                               uint64_t size, mp_event_t *done);
MP_NODISCARD mp_status_t mp_buffer_write_raw_to(mp_buffer_t *buffer, const void *src,
                                                uint64_t offset, uint64_t size, mp_event_t *done);

// A copy in another memory space (same or other device); asynchronous.
MP_NODISCARD mp_status_t mp_buffer_copy_to_memory(mp_buffer_t *buffer, mp_memory_t *memory,
                                                  mp_buffer_t **out_buffer);

// Zero-copy access from outside: valid until released, also after delete, and on pending and failed
// buffers (wait for the definition before reading). While one is out, donation copies instead.
MP_NODISCARD mp_status_t mp_buffer_acquire_external(mp_buffer_t *buffer, void **out_data);
void mp_buffer_release_external(mp_buffer_t *buffer);

#endif  // MINIPOD_SIM_RUNTIME_BUFFERS_BUFFER_H_
