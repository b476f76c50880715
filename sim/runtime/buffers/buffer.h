// Buffers: a dense array in one memory space of one device.
//
// A buffer has a type, a memory, storage (shared, counted), and a definition event that is set when
// its contents are there, or when they can never be (an error buffer: every later use reports the
// first cause). Contents are row-major stored elements (sim/numeric/dtype.h). Storage has its
// address from creation on, also while the contents are pending.
//
// Each user holds the storage: a run or copy that was enqueued until it is done, an external
// reference until it is given back. mp_buffer_delete makes the buffer unusable at once; its storage
// is freed with the last hold.
//
// Reference-counted, thread-safe. Functions that bring new contents or read them fail with
// FAILED_PRECONDITION in a forked child and when the client was closed.
#ifndef MINIPOD_SIM_RUNTIME_BUFFERS_BUFFER_H_
#define MINIPOD_SIM_RUNTIME_BUFFERS_BUFFER_H_

#include "sim/ir/type.h"
#include "sim/runtime/devices/device.h"
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
  const int64_t *dims;  // [rank]
  const void *data;
  const int64_t *byte_strides;  // [rank], any sign, 0 repeats; NULL: dense row-major
} mp_host_array_t;

// Copies a host array into a new buffer. `array` and its dims and strides are borrowed during the
// call, its data as `semantics` says; but at most 64 MiB are copied before this returns. `out_done`
// (may be NULL) receives an event that is set when the data is no longer needed. INVALID_ARGUMENT
// for a type or shape that is not supported; RESOURCE_EXHAUSTED (with the table of holders) when it
// does not fit. All makers of buffers have these two errors.
MP_NODISCARD mp_status_t mp_buffer_from_host(mp_memory_t *memory, const mp_host_array_t *array,
                                             mp_host_semantics_t semantics,
                                             mp_buffer_t **out_buffer, mp_event_t **out_done);
// A buffer whose contents the caller writes (mp_buffer_write_raw_to). The caller owns
// `out_definition` and must set it when the contents are complete, or with an error if they never
// will be.
MP_NODISCARD mp_status_t mp_buffer_create(mp_memory_t *memory, mp_dtype_t dtype,
                                          const int64_t *dims, uint32_t rank,
                                          mp_buffer_t **out_buffer, mp_event_t **out_definition);
// An error buffer: it has no storage, and every use reports `error` (consumed, also on failure).
MP_NODISCARD mp_status_t mp_buffer_create_error(mp_memory_t *memory, mp_dtype_t dtype,
                                                const int64_t *dims, uint32_t rank,
                                                mp_status_t error, mp_buffer_t **out_buffer);
// A view of memory that the caller owns: `data` must stay, dense row-major, until `on_release` (may
// be NULL) is called with `context`. That happens once, when the last hold is gone, on any thread
// and without locks; it does not happen when this fails.
MP_NODISCARD mp_status_t mp_buffer_view_external(mp_memory_t *memory, mp_dtype_t dtype,
                                                 const int64_t *dims, uint32_t rank, void *data,
                                                 void (*on_release)(void *context), void *context,
                                                 mp_buffer_t **out_buffer);
// mp_buffer_retain adds a reference and returns the buffer. The last mp_buffer_release frees it and
// releases its hold on the storage. NULL has no effect in either.
mp_buffer_t *mp_buffer_retain(mp_buffer_t *buffer);
void mp_buffer_release(mp_buffer_t *buffer);

// Constant attributes of the buffer, borrowed: its type, its memory, and its size in bytes.
const mp_type_t *mp_buffer_type(const mp_buffer_t *buffer);
mp_memory_t *mp_buffer_memory(const mp_buffer_t *buffer);
uint64_t mp_buffer_bytes(const mp_buffer_t *buffer);
// For tests: the event that is set when the contents are complete, or can never be. Borrowed.
mp_event_t *mp_buffer_definition(const mp_buffer_t *buffer);
// A new reference to the event for a host that is about to wait for the contents (`is_wait`: then
// the wait is recorded in the model of time), or that only wants to know. If time is paced, the
// event is set no earlier than the contents' virtual time.
mp_event_t *mp_buffer_ready_event(mp_buffer_t *buffer, bool is_wait);
// Records in the model of time that the host is about to read the contents in place. On the
// described pod they are first transferred over the link, once, because the reader keeps them (as
// JAX does). The caller has an external reference.
void mp_buffer_note_view(mp_buffer_t *buffer);
// Records in the model of time that the contents come from the host. Called before any user has the
// buffer.
void mp_buffer_note_fill(mp_buffer_t *buffer);
// UNAVAILABLE when the host cannot read the buffer because a device or link is dead
// (devices/reach.h).
MP_NODISCARD mp_status_t mp_buffer_check_read(const mp_buffer_t *buffer);
// The same for writes from the host.
MP_NODISCARD mp_status_t mp_buffer_check_write(const mp_buffer_t *buffer);

// Makes the buffer unusable: later uses fail, enqueued ones continue. Deleting twice has no effect.
void mp_buffer_delete(mp_buffer_t *buffer);
// True when the buffer was deleted or donated.
bool mp_buffer_is_deleted(const mp_buffer_t *buffer);

// Reads the whole array into `dst`, which has `dst_bytes` bytes, with these byte strides (NULL:
// dense row-major). Asynchronous: the copy waits for the definition, and `dst` must stay until
// `out_done` (may be NULL) is set, with the definition's error if that failed. INVALID_ARGUMENT
// when the buffer was deleted or `dst` is too small.
MP_NODISCARD mp_status_t mp_buffer_to_host(mp_buffer_t *buffer, void *dst, uint64_t dst_bytes,
                                           const int64_t *byte_strides, mp_event_t **out_done);
// The same for `size` bytes of the dense array from byte `offset` on, which must be within it.
MP_NODISCARD mp_status_t mp_buffer_read_raw(mp_buffer_t *buffer, void *dst, uint64_t offset,
                                            uint64_t size, mp_event_t **out_done);
// The same with an event of the caller's (borrowed), which is set when the copy is over. On an
// error nothing was started and the event is not set. So callers can prepare everything first: a
// failure during a copy can only be reported when it is over.
MP_NODISCARD mp_status_t mp_buffer_read_raw_to(mp_buffer_t *buffer, void *dst, uint64_t offset,
                                               uint64_t size, mp_event_t *done);
// Writes `size` bytes at byte `offset` into a buffer whose definition the caller has not set yet
// (chunked transfers). Asynchronous: `src` must stay until `done` (borrowed) is set. On an error
// nothing was started and the event is not set: INVALID_ARGUMENT when the buffer was deleted or the
// bytes are not all within it, FAILED_PRECONDITION for an error buffer.
MP_NODISCARD mp_status_t mp_buffer_write_raw_to(mp_buffer_t *buffer, const void *src,
                                                uint64_t offset, uint64_t size, mp_event_t *done);

// A new buffer with a copy of the contents in another memory of the same client, on the same device
// or another one. Asynchronous: the copy waits for the definition, and the new buffer's definition
// gets its error. INVALID_ARGUMENT when the buffer was deleted or the memory is another client's,
// RESOURCE_EXHAUSTED when the copy does not fit.
MP_NODISCARD mp_status_t mp_buffer_copy_to_memory(mp_buffer_t *buffer, mp_memory_t *memory,
                                                  mp_buffer_t **out_buffer);

// A new buffer of this type and shape that takes over the bytes of `buffer`, which is deleted.
// Nothing is copied. The definition is that of `buffer`; with `after` (may be NULL) it is set when
// that event is set, too. If both fail, it gets the old definition's error. INVALID_ARGUMENT when
// the buffer was deleted, when the new shape has another number of bytes, or when the bytes of its
// elements may be invalid in the new type (elements of less than a byte, or booleans). On an error
// `buffer` is unchanged.
MP_NODISCARD mp_status_t mp_buffer_move(mp_buffer_t *buffer, mp_dtype_t dtype, const int64_t *dims,
                                        uint32_t rank, mp_event_t *after, mp_buffer_t **out_buffer);

// The promise to a buffer that another buffer will bring its contents.
typedef struct mp_promise_s mp_promise_t;

// A placeholder for a buffer that comes later, and the promise to bring that buffer. The caller
// owns both, and must keep or break the promise.
MP_NODISCARD mp_status_t mp_buffer_promise(mp_memory_t *memory, mp_dtype_t dtype,
                                           const int64_t *dims, uint32_t rank,
                                           mp_buffer_t **out_buffer, mp_promise_t **out_promise);
// Keeps the promise: the contents of `source`, which is deleted, are the promised ones. They are
// copied when they are defined, because the address of the promised buffer may already be in use.
// An error fails the promised buffer, too: INVALID_ARGUMENT when `source` was deleted, is another
// client's or has another type or shape; then `source` is unchanged. Consumes the promise in any
// case.
MP_NODISCARD mp_status_t mp_promise_keep(mp_promise_t *promise, mp_buffer_t *source);
// Breaks the promise: every use of the promised buffer reports `error` (consumed). Consumes the
// promise. NULL: nothing.
void mp_promise_break(mp_promise_t *promise, mp_status_t error);

// An external reference: access from outside to the bytes themselves, which stay where they are
// until mp_buffer_release_external, called once per reference. The buffer may be deleted meanwhile,
// and it may be pending or failed: wait for the definition before reading. While there are external
// references a donation copies instead. INVALID_ARGUMENT when the buffer was deleted before,
// RESOURCE_EXHAUSTED when memory is short (the first reference takes some). When programs run for
// their shapes alone it blocks until the buffer is defined, and for a buffer without values returns
// the address of a substitute (absent.h), or FAILED_PRECONDITION.
MP_NODISCARD mp_status_t mp_buffer_acquire_external(mp_buffer_t *buffer, void **out_data);
void mp_buffer_release_external(mp_buffer_t *buffer);

#endif  // MINIPOD_SIM_RUNTIME_BUFFERS_BUFFER_H_
