// The insides of buffers, for launches and transfers.
#ifndef MINIPOD_SIM_RUNTIME_BUFFERS_BUFFER_IMPL_H_
#define MINIPOD_SIM_RUNTIME_BUFFERS_BUFFER_IMPL_H_

#include "sim/runtime/buffers/buffer.h"
#include "sim/runtime/buffers/buffer_form.h"
#include "sim/runtime/buffers/storage.h"
#include "sim/runtime/devices/device_impl.h"

// The record of a buffer's external references, made with the first one.
typedef struct {
  uint32_t references;      // each with a hold on the storage and a reference to the buffer
  void *stand_in;           // owned: the substitute for values that were not computed; NULL: none
  _Atomic mp_stamp_t view;  // the host's copy in the model of time; 0: none, 1: being reported
} mp_outside_t;

// There may be millions, so this is no larger than it has to be. The memory, the form, the
// definition and the stamp do not change once the buffer has users; the rest is under the lock.
struct mp_buffer_s {
  atomic_int references;  // of users, and one for each external reference
  // Its definition waits for a run that may be in a call that blocks (runs/call.h). Constant like
  // the memory.
  bool is_behind_call;
  bool is_deleted;         // then the buffer's own hold on the storage is released
  bool is_donated;         // it was deleted by being donated
  bool is_unwanted;        // its user deleted it while a launch had taken it as a donation
  mp_memory_t *memory;     // its client is held
  mp_buffer_form_t *form;  // retained
  mp_event_t *definition;  // retained
  mp_stamp_t stamp;        // its producer, in the model of time
  union {
    mp_storage_t *storage;  // valid while not deleted, or while there are external references;
                            // NULL: an error buffer
    uint64_t claim;         // if donated: number of the launch that took it
  };
  _Atomic(mp_outside_t *) outside;  // constant once it is made, so it needs no lock
};

// The lock of all buffers of a device, a leaf of the lock order.
static inline mp_lock_t *mp_buffer_lock(const mp_buffer_t *buffer) {
  return &buffer->memory->device->buffers_lock;
}

// A buffer of this form over `storage`, whose hold it takes over, also on failure (NULL: an error
// buffer); retains the form and `definition`. The storage has the bytes that the form needs.
MP_NODISCARD mp_status_t mp_buffer_make_of(mp_memory_t *memory, mp_buffer_form_t *form,
                                           mp_storage_t *storage, mp_event_t *definition,
                                           mp_buffer_t **out_buffer);
// The same with a form of its own, of which `dims` are copied.
MP_NODISCARD mp_status_t mp_buffer_make(mp_memory_t *memory, mp_dtype_t dtype, const int64_t *dims,
                                        uint32_t rank, mp_storage_t *storage,
                                        mp_event_t *definition, mp_buffer_t **out_buffer);
// As mp_buffer_create, with an origin for the table of holders.
MP_NODISCARD mp_status_t mp_buffer_create_labelled(mp_memory_t *memory, mp_origin_t origin,
                                                   mp_dtype_t dtype, const int64_t *dims,
                                                   uint32_t rank, mp_buffer_t **out_buffer,
                                                   mp_event_t **out_definition);
// A hold on the storage, which the caller releases; NULL for an error buffer. INVALID_ARGUMENT when
// the buffer was deleted.
MP_NODISCARD mp_status_t mp_buffer_hold_storage(mp_buffer_t *buffer, mp_storage_t **out_storage);

// Deletes the buffer and hands its own hold on the storage over; NULL for an error buffer.
// INVALID_ARGUMENT when the buffer was deleted before.
MP_NODISCARD mp_status_t mp_buffer_give_up(mp_buffer_t *buffer, mp_storage_t **out_storage);

// Like mp_buffer_read_raw_to, for the whole array and callers that can do without its values: if it
// has none, nothing is copied, and `*out_is_absent` is set before the event is.
MP_NODISCARD mp_status_t mp_buffer_read_values_to(mp_buffer_t *buffer, void *dst, mp_event_t *done,
                                                  bool *out_is_absent);

// A copy of bytes from storage to storage.
typedef struct {
  mp_storage_t *source, *target;  // holds, consumed, also on failure; source NULL: `after` fails
  mp_event_t *after;              // borrowed: the definition of the source
  uint64_t bytes;
} mp_storage_copy_t;

// Starts a copy, at once or when `what->after` is set. `done` is borrowed and set at the end; on an
// error it is not set.
MP_NODISCARD mp_status_t mp_storage_copy(mp_client_t *client, const mp_storage_copy_t *what,
                                         mp_event_t *done);

// How a launch may use an argument.
typedef enum {
  MP_TAKE_SHARED,  // it may be read: the launch has a hold on the storage
  MP_TAKE_OVER,    // donated: the buffer is deleted, and the launch gets its hold
  MP_TAKE_COPY,    // donated, but others read the storage: a hold, and the launch works on a copy
} mp_take_t;

// Takes an argument for launch number `claim`. With `donate` the buffer is deleted, unless there
// are external references: then it stays, and must be copied. `out_storage` is the hold that goes
// with `out_take`; NULL for an error buffer. INVALID_ARGUMENT when the buffer was deleted, or
// donated to this launch already.
MP_NODISCARD mp_status_t mp_buffer_take(mp_buffer_t *buffer, bool donate, uint64_t claim,
                                        mp_take_t *out_take, mp_storage_t **out_storage);
// Undoes mp_buffer_take with `donate`, for a launch that does not happen. `storage` is the hold
// that it gave. Returns the hold if the caller has to release it, which must be done without locks;
// NULL: it is the buffer's own hold again.
mp_storage_t *mp_buffer_untake(mp_buffer_t *buffer, mp_storage_t *storage);

#endif  // MINIPOD_SIM_RUNTIME_BUFFERS_BUFFER_IMPL_H_
