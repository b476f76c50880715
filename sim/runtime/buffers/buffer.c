#include "sim/runtime/buffers/buffer.h"

#include <inttypes.h>

#include "sim/base/alloc.h"
#include "sim/runtime/buffers/absent.h"
#include "sim/runtime/buffers/buffer_impl.h"
#include "sim/runtime/devices/device_impl.h"

mp_status_t mp_buffer_make(mp_memory_t *memory, mp_dtype_t dtype, const int64_t *dims,
                           uint32_t rank, mp_storage_t *storage, mp_event_t *definition,
                           mp_buffer_t **out_buffer) {
  mp_buffer_t *buffer = mp_calloc(1, sizeof(*buffer) + rank * sizeof(int64_t));
  if (buffer == NULL) {
    mp_storage_release(storage);
    return mp_status_out_of_memory();
  }
  atomic_init(&buffer->references, 1);
  buffer->memory = memory;
  if (rank != 0) memcpy(buffer->dims, dims, rank * sizeof(int64_t));
  buffer->type = (mp_type_t){
      .kind = dtype == MP_DTYPE_INVALID ? MP_TYPE_TOKEN : MP_TYPE_TENSOR,
      .dtype = dtype,
      .rank = rank,
      .dims = buffer->dims,
  };
  int64_t bytes = 0;
  (void)mp_type_num_bytes(&buffer->type, &bytes);  // checked by whoever made the storage
  buffer->bytes = (uint64_t)bytes;
  buffer->definition = mp_event_retain(definition);
  mp_lock_init(&buffer->lock, MP_LOCK_BUFFER);
  buffer->storage = storage;
  mp_client_hold(mp_device_client(memory->device));
  *out_buffer = buffer;
  return NULL;
}

mp_status_t mp_buffer_bytes_of(mp_dtype_t dtype, const int64_t *dims, uint32_t rank,
                               uint64_t *out_bytes) {
  if (rank > MP_MAX_RANK) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "an array of rank %" PRIu32 " was given; at most %d is supported", rank,
                          MP_MAX_RANK);
  }
  if (dtype <= MP_DTYPE_INVALID || dtype >= MP_DTYPE_COUNT) {
    return mp_status_make(MP_INVALID_ARGUMENT, "element type number %d is not known", (int)dtype);
  }
  mp_type_t type = {.kind = MP_TYPE_TENSOR, .dtype = dtype, .rank = rank, .dims = dims};
  int64_t bytes;
  for (uint32_t i = 0; i < rank; ++i) {
    if (dims[i] < 0) {
      return mp_status_make(MP_INVALID_ARGUMENT,
                            "dimension %" PRIu32 " is %" PRId64 "; it must not be negative", i,
                            dims[i]);
    }
  }
  if (!mp_type_num_bytes(&type, &bytes)) {
    return mp_status_make(MP_INVALID_ARGUMENT, "the array has more than 2^63 bytes");
  }
  *out_bytes = (uint64_t)bytes;
  return NULL;
}

mp_status_t mp_buffer_create_labelled(mp_memory_t *memory, mp_origin_t origin, mp_dtype_t dtype,
                                      const int64_t *dims, uint32_t rank, mp_buffer_t **out_buffer,
                                      mp_event_t **out_definition) {
  MP_RETURN_IF_ERROR(mp_client_check(mp_device_client(memory->device)));
  uint64_t bytes;
  MP_RETURN_IF_ERROR(mp_buffer_bytes_of(dtype, dims, rank, &bytes));
  mp_label_t label = mp_label_make(origin, dtype, dims, rank, NULL, 0);
  mp_storage_t *storage;
  MP_RETURN_IF_ERROR(
      mp_storage_create(memory, bytes, mp_device_completed(memory->device), &label, &storage));
  mp_event_t *definition = NULL;
  mp_status_t status = mp_event_create(&definition);
  if (status != NULL) {
    mp_storage_release(storage);
    return status;
  }
  status = mp_buffer_make(memory, dtype, dims, rank, storage, definition, out_buffer);
  if (status != NULL) {
    mp_event_release(definition);
    return status;
  }
  *out_definition = definition;
  return NULL;
}

mp_status_t mp_buffer_create(mp_memory_t *memory, mp_dtype_t dtype, const int64_t *dims,
                             uint32_t rank, mp_buffer_t **out_buffer, mp_event_t **out_definition) {
  return mp_buffer_create_labelled(memory, MP_ORIGIN_UNINITIALIZED, dtype, dims, rank, out_buffer,
                                   out_definition);
}

mp_status_t mp_buffer_create_error(mp_memory_t *memory, mp_dtype_t dtype, const int64_t *dims,
                                   uint32_t rank, mp_status_t error, mp_buffer_t **out_buffer) {
  uint64_t bytes;
  mp_event_t *definition = NULL;
  mp_status_t status = mp_buffer_bytes_of(dtype, dims, rank, &bytes);
  if (status == NULL) status = mp_event_create(&definition);
  if (status == NULL)
    status = mp_buffer_make(memory, dtype, dims, rank, NULL, definition, out_buffer);
  if (status != NULL) {
    mp_status_release(error);
  } else {
    mp_event_set(definition, error);
  }
  mp_event_release(definition);
  return status;
}

mp_status_t mp_buffer_view_external(mp_memory_t *memory, mp_dtype_t dtype, const int64_t *dims,
                                    uint32_t rank, void *data, void (*on_release)(void *context),
                                    void *context, mp_buffer_t **out_buffer) {
  MP_RETURN_IF_ERROR(mp_client_check(mp_device_client(memory->device)));
  uint64_t bytes;
  MP_RETURN_IF_ERROR(mp_buffer_bytes_of(dtype, dims, rank, &bytes));
  mp_label_t label = mp_label_make(MP_ORIGIN_EXTERNAL, dtype, dims, rank, NULL, 0);
  mp_event_t *definition;
  MP_RETURN_IF_ERROR(mp_event_create(&definition));
  mp_event_set(definition, NULL);
  mp_storage_t *storage = NULL;
  mp_buffer_t *buffer = NULL;
  mp_status_t status = mp_storage_adopt(memory, bytes, data, &label, NULL, NULL, &storage);
  if (status == NULL) {
    status = mp_buffer_make(memory, dtype, dims, rank, storage, definition, &buffer);
  }
  if (status == NULL) {
    // The callback is set only now, because it must not be called when this fails.
    storage->on_release = on_release;
    storage->context = context;
    *out_buffer = buffer;
  }
  mp_event_release(definition);
  return status;
}

mp_buffer_t *mp_buffer_retain(mp_buffer_t *buffer) {
  if (buffer == NULL) return NULL;
  // Relaxed: the caller has a reference already.
  const int before = atomic_fetch_add_explicit(&buffer->references, 1, memory_order_relaxed);
  MP_ASSERT(before > 0);
  return buffer;
}

void mp_buffer_release(mp_buffer_t *buffer) {
  if (buffer == NULL) return;
  // The last one reads without the lock what others have written under it: it comes after them.
  const int before = atomic_fetch_sub_explicit(&buffer->references, 1, memory_order_acq_rel);
  MP_ASSERT(before > 0);
  if (before != 1) return;
  MP_ASSERT(buffer->externals == 0);  // each has a reference
  if (!buffer->is_deleted) mp_storage_release(buffer->storage);
  mp_event_release(buffer->definition);
  mp_free(buffer->stand_in);
  mp_lock_deinit(&buffer->lock);
  mp_client_t *client = mp_device_client(buffer->memory->device);
  mp_free(buffer);
  mp_client_unhold(client);
}

const mp_type_t *mp_buffer_type(const mp_buffer_t *buffer) {
  return &buffer->type;
}

mp_memory_t *mp_buffer_memory(const mp_buffer_t *buffer) {
  return buffer->memory;
}

uint64_t mp_buffer_bytes(const mp_buffer_t *buffer) {
  return buffer->bytes;
}

mp_event_t *mp_buffer_definition(const mp_buffer_t *buffer) {
  return buffer->definition;
}

// In a forked child another thread may have held the lock for ever; there is only one thread there.
static bool buffer_lock(mp_buffer_t *buffer) {
  if (mp_client_is_forked(mp_device_client(buffer->memory->device))) return false;
  mp_lock(&buffer->lock);
  return true;
}

static void buffer_unlock(mp_buffer_t *buffer, bool locked) {
  if (locked) mp_unlock(&buffer->lock);
}

// Asserts what the lock promises: the buffer's own hold and those of external references are there.
static void buffer_assert_holds(const mp_buffer_t *buffer) {
#ifdef MINIPOD_ASSERTS
  if (mp_client_is_forked(mp_device_client(buffer->memory->device))) return;
  mp_lock_assert_held(&buffer->lock);
  MP_ASSERT(atomic_load(&buffer->references) > 0);
  const uint32_t holds = (buffer->is_deleted ? 0 : 1) + buffer->externals;
  if (buffer->storage == NULL || holds == 0) return;  // the storage may be gone
  MP_ASSERT(atomic_load(&buffer->storage->references) >= (int)holds);
  MP_ASSERT(buffer->storage->bytes >= buffer->bytes);
#else
  (void)buffer;
#endif
}

void mp_buffer_delete(mp_buffer_t *buffer) {
  mp_storage_t *storage = NULL;
  bool locked = buffer_lock(buffer);
  buffer_assert_holds(buffer);
  if (!buffer->is_deleted) {
    buffer->is_deleted = true;
    storage = buffer->storage;
  } else {
    buffer->is_unwanted = true;  // a launch that fails shall not bring it back
  }
  buffer_unlock(buffer, locked);
  // Without the lock: it may be the last hold, and the owner of adopted memory is called.
  mp_storage_release(storage);
}

bool mp_buffer_is_deleted(const mp_buffer_t *buffer) {
  mp_buffer_t *b = (mp_buffer_t *)buffer;
  bool locked = buffer_lock(b);
  bool is_deleted = b->is_deleted;
  buffer_unlock(b, locked);
  return is_deleted;
}

static mp_status_t buffer_deleted_error(const mp_buffer_t *buffer) {
  return mp_status_make(
      MP_INVALID_ARGUMENT, "the buffer has been %s",
      buffer->claim != 0 ? "donated: its memory belongs to a result now" : "deleted");
}

// A hold on the storage: one more, or the buffer's own, which is deleted then.
static mp_status_t buffer_get_storage(mp_buffer_t *buffer, bool is_given_up,
                                      mp_storage_t **out_storage) {
  mp_status_t status = NULL;
  mp_lock(&buffer->lock);
  buffer_assert_holds(buffer);
  if (buffer->is_deleted) {
    status = buffer_deleted_error(buffer);
  } else {
    *out_storage = is_given_up ? buffer->storage : mp_storage_retain(buffer->storage);
    buffer->is_deleted = is_given_up;
  }
  mp_unlock(&buffer->lock);
  return status;
}

mp_status_t mp_buffer_give_up(mp_buffer_t *buffer, mp_storage_t **out_storage) {
  return buffer_get_storage(buffer, true, out_storage);
}

mp_status_t mp_buffer_hold_storage(mp_buffer_t *buffer, mp_storage_t **out_storage) {
  return buffer_get_storage(buffer, false, out_storage);
}

// Where programs run for their shapes alone, only the array's definition says whether it has
// values: whoever wants to look at it waits for that first.
static void buffer_await_values(const mp_buffer_t *buffer) {
  mp_status_release(mp_event_await(buffer->definition));  // whoever looks waits for it, too
}

// Whether the buffer still has its storage.
static bool buffer_is_open(const mp_buffer_t *buffer) {
  return !buffer->is_deleted || buffer->externals != 0;
}

// Whether the array is there, and has no values.
static bool buffer_lacks_values(const mp_buffer_t *buffer) {
  // That the definition has succeeded publishes are_there.
  if (buffer->storage == NULL || buffer->storage->values == NULL) return false;
  return mp_event_has_succeeded(buffer->definition) && !buffer->storage->values->are_there;
}

// Has something stand there for absent values, at one address for the buffer's life.
static mp_status_t buffer_make_stand_in(mp_buffer_t *buffer) {
  mp_storage_t *storage = NULL;
  void *stand_in = NULL;
  mp_lock(&buffer->lock);
  const bool is_wanted =
      buffer_is_open(buffer) && buffer->stand_in == NULL && buffer_lacks_values(buffer);
  if (is_wanted) storage = mp_storage_retain(buffer->storage);
  mp_unlock(&buffer->lock);
  if (!is_wanted) return NULL;
  // Without the lock, as texts about storages need another leaf of the lock order.
  mp_status_t status = mp_absent_read(storage, buffer->type.dtype, 0, buffer->bytes, &stand_in);
  mp_storage_release(storage);
  MP_RETURN_IF_ERROR(status);
  mp_lock(&buffer->lock);
  void *other = buffer->stand_in;  // of a thread that was faster
  if (other == NULL) buffer->stand_in = stand_in;
  mp_unlock(&buffer->lock);
  if (other != NULL) mp_free(stand_in);
  return NULL;
}

static void *buffer_data(const mp_buffer_t *buffer) {
  static _Alignas(64) unsigned char no_data[64];  // what error buffers point to
  const mp_storage_t *storage = buffer->storage;
  if (storage == NULL) return no_data;
  return buffer->stand_in != NULL ? buffer->stand_in : mp_storage_find(storage, storage->data);
}

mp_status_t mp_buffer_acquire_external(mp_buffer_t *buffer, void **out_data) {
  mp_status_t status = NULL;
  if (mp_device_client(buffer->memory->device)->shapes_only) {
    buffer_await_values(buffer);
    MP_RETURN_IF_ERROR(buffer_make_stand_in(buffer));
  }
  bool locked = buffer_lock(buffer);
  buffer_assert_holds(buffer);
  if (!buffer_is_open(buffer)) {
    status = buffer_deleted_error(buffer);
  } else {
    buffer->externals += 1;
    mp_storage_retain(buffer->storage);
    mp_buffer_retain(buffer);
    *out_data = buffer_data(buffer);
  }
  buffer_unlock(buffer, locked);
  return status;
}

void mp_buffer_release_external(mp_buffer_t *buffer) {
  bool locked = buffer_lock(buffer);
  buffer_assert_holds(buffer);
  MP_ASSERT(buffer->externals != 0);
  buffer->externals -= 1;
  mp_storage_t *storage = buffer->storage;
  buffer_unlock(buffer, locked);
  mp_storage_release(storage);
  mp_buffer_release(buffer);
}

// ---- Arguments of launches ----

mp_status_t mp_buffer_take(mp_buffer_t *buffer, bool donate, uint64_t claim, mp_take_t *out_take,
                           mp_storage_t **out_storage) {
  mp_status_t status = NULL;
  mp_lock(&buffer->lock);
  buffer_assert_holds(buffer);
  MP_ASSERT(claim != 0);
  if (buffer->is_deleted) {
    if (buffer->claim == claim) {
      status = mp_status_make(MP_INVALID_ARGUMENT,
                              donate ? "the same buffer is donated twice in this call"
                                     : "the buffer is donated to another argument of this call");
    } else {
      status = buffer_deleted_error(buffer);
    }
  } else if (!donate || buffer->externals != 0) {
    *out_take = donate ? MP_TAKE_COPY : MP_TAKE_SHARED;
    *out_storage = mp_storage_retain(buffer->storage);
  } else {
    // The buffer is deleted in any case. But its memory is taken over only if no transfer still
    // reads it and if it is ours; otherwise the launch works on a copy.
    bool is_free = buffer->storage != NULL && mp_storage_is_sole(buffer->storage) &&
                   !mp_storage_is_adopted(buffer->storage);
    *out_take = is_free ? MP_TAKE_OVER : MP_TAKE_COPY;
    *out_storage = buffer->storage;
    buffer->is_deleted = true;
    buffer->claim = claim;
  }
  mp_unlock(&buffer->lock);
  return status;
}

mp_storage_t *mp_buffer_untake(mp_buffer_t *buffer, mp_storage_t *storage) {
  mp_lock(&buffer->lock);
  const bool was_donated = buffer->is_deleted && buffer->claim != 0;
  if (was_donated) buffer->claim = 0;
  if (was_donated && !buffer->is_unwanted) {
    buffer->is_deleted = false;
    storage = NULL;  // its hold is the buffer's again
  }
  mp_unlock(&buffer->lock);
  return storage;
}
