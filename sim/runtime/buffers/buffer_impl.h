// The insides of buffers, for launches and transfers.
#ifndef MINIPOD_SIM_RUNTIME_BUFFERS_BUFFER_IMPL_H_
#define MINIPOD_SIM_RUNTIME_BUFFERS_BUFFER_IMPL_H_

#include "sim/runtime/buffers/buffer.h"
#include "sim/runtime/buffers/storage.h"

struct mp_buffer_s {
  atomic_int references;
  mp_memory_t *memory;  // its client is held
  mp_type_t type;
  uint64_t bytes;
  mp_event_t *definition;
  mp_lock_t lock;         // of all below; a leaf but for the memory's
  mp_storage_t *storage;  // valid while not deleted or externals != 0; NULL: an error buffer
  bool is_deleted;        // then the buffer's own hold on the storage is gone
  bool is_unwanted;       // its user deleted it while a launch had taken it as a donation
  uint32_t externals;     // external references, each with a hold
  uint64_t claim;         // number of the launch that took it as a donation; 0: none
  int64_t dims[];
};

// A buffer over `storage` (consumed, may be NULL for an error buffer); retains `definition`.
MP_NODISCARD mp_status_t mp_buffer_make(mp_memory_t *memory, mp_dtype_t dtype, const int64_t *dims,
                                        uint32_t rank, mp_storage_t *storage,
                                        mp_event_t *definition, mp_buffer_t **out_buffer);
// mp_buffer_create with a choice of what the table of who holds what says.
MP_NODISCARD mp_status_t mp_buffer_create_labelled(mp_memory_t *memory, mp_origin_t origin,
                                                   mp_dtype_t dtype, const int64_t *dims,
                                                   uint32_t rank, mp_buffer_t **out_buffer,
                                                   mp_event_t **out_definition);
// A retained reference to the storage; INVALID_ARGUMENT when deleted. NULL for an error buffer.
MP_NODISCARD mp_status_t mp_buffer_hold_storage(mp_buffer_t *buffer, mp_storage_t **out_storage);

// How a launch may use an argument.
typedef enum {
  MP_TAKE_SHARED,  // to be read: a hold on the storage
  MP_TAKE_OVER,    // donated: the buffer is deleted, its hold moved to the launch
  MP_TAKE_COPY,    // donated, but others look at the storage: a hold, copy it first
} mp_take_t;

// Takes an argument for launch number `claim`. With `donate` the buffer is deleted, unless an
// external reference is out (then it is not, and must be copied). Errors: deleted, or donated to
// this launch already.
MP_NODISCARD mp_status_t mp_buffer_take(mp_buffer_t *buffer, bool donate, uint64_t claim,
                                        mp_take_t *out_take, mp_storage_t **out_storage);
// Undoes mp_buffer_take(donate) of a launch that does not happen. Returns the hold that is the
// caller's to release, without locks; NULL: it is the buffer's again.
mp_storage_t *mp_buffer_untake(mp_buffer_t *buffer, mp_storage_t *storage);

#endif  // MINIPOD_SIM_RUNTIME_BUFFERS_BUFFER_IMPL_H_
