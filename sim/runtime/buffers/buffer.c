#include "sim/runtime/buffers/buffer.h"

#include <inttypes.h>

#include "sim/base/alloc.h"
#include "sim/runtime/buffers/absent.h"
#include "sim/runtime/buffers/buffer_impl.h"
#include "sim/runtime/devices/device_impl.h"

mp_status_t mp_buffer_make_of(mp_memory_t *memory, mp_buffer_form_t *form, mp_storage_t *storage,
                              mp_event_t *definition, mp_buffer_t **out_buffer) {
  mp_buffer_t *buffer = mp_calloc(1, sizeof(*buffer));
  if (buffer == NULL) {
    mp_storage_release(storage);
    return mp_status_out_of_memory();
  }
  atomic_init(&buffer->references, 1);
  buffer->memory = memory;
  buffer->form = mp_buffer_form_retain(form);
  buffer->definition = mp_event_retain(definition);
  buffer->storage = storage;
  mp_client_hold(mp_device_client(memory->device));
  *out_buffer = buffer;
  return NULL;
}

mp_status_t mp_buffer_make(mp_memory_t *memory, mp_dtype_t dtype, const int64_t *dims,
                           uint32_t rank, mp_storage_t *storage, mp_event_t *definition,
                           mp_buffer_t **out_buffer) {
  mp_buffer_form_t *form = NULL;
  mp_status_t status = mp_buffer_form_create(dtype, dims, rank, &form);
  if (status != NULL) {
    mp_storage_release(storage);
    return status;
  }
  status = mp_buffer_make_of(memory, form, storage, definition, out_buffer);
  mp_buffer_form_release(form);
  return status;
}

mp_status_t mp_buffer_create_labelled(mp_memory_t *memory, mp_origin_t origin, mp_dtype_t dtype,
                                      const int64_t *dims, uint32_t rank, mp_buffer_t **out_buffer,
                                      mp_event_t **out_definition) {
  MP_RETURN_IF_ERROR(mp_client_check(mp_device_client(memory->device)));
  uint64_t bytes;
  MP_RETURN_IF_ERROR(mp_buffer_form_bytes_of(dtype, dims, rank, &bytes));
  mp_label_t label = mp_label_make(origin, dtype, dims, rank, NULL, 0);
  mp_storage_t *storage;
  const uint64_t after = mp_device_completed(memory->device);
  MP_RETURN_IF_ERROR(origin == MP_ORIGIN_COPY
                         ? mp_storage_create_copy(memory, bytes, after, &label, &storage)
                         : mp_storage_create(memory, bytes, after, &label, &storage));
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
  mp_status_t status = mp_buffer_form_bytes_of(dtype, dims, rank, &bytes);
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
  MP_RETURN_IF_ERROR(mp_buffer_form_bytes_of(dtype, dims, rank, &bytes));
  mp_label_t label = mp_label_make(MP_ORIGIN_EXTERNAL, dtype, dims, rank, NULL, 0);
  mp_event_t *definition;
  MP_RETURN_IF_ERROR(mp_event_create(&definition));
  mp_event_set(definition, NULL);
  mp_storage_t *storage = NULL;
  mp_buffer_t *buffer = NULL;
  mp_status_t status = mp_storage_adopt(memory, bytes, data, &label, &storage);
  if (status == NULL) {
    status = mp_buffer_make(memory, dtype, dims, rank, storage, definition, &buffer);
  }
  // The lender is set only now, because it must not be called when this fails.
  if (status == NULL && on_release != NULL) {
    status = mp_storage_set_lender(storage, on_release, context);
    if (status != NULL) mp_buffer_release(buffer);
  }
  if (status == NULL) *out_buffer = buffer;
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
  // Acquire: the last one reads without the lock what others have written under it.
  const int before = atomic_fetch_sub_explicit(&buffer->references, 1, memory_order_acq_rel);
  MP_ASSERT(before > 0);
  if (before != 1) return;
  mp_outside_t *outside = atomic_load(&buffer->outside);
  if (outside != NULL) {
    MP_ASSERT(outside->references == 0);  // each has one of the buffer
    mp_free(outside->stand_in);
    mp_free(outside);
  }
  if (!buffer->is_deleted) mp_storage_release(buffer->storage);
  mp_event_release(buffer->definition);
  mp_buffer_form_release(buffer->form);
  mp_client_t *client = mp_device_client(buffer->memory->device);
  mp_free(buffer);
  mp_client_unhold(client);
}

const mp_type_t *mp_buffer_type(const mp_buffer_t *buffer) {
  return &buffer->form->type;
}

mp_memory_t *mp_buffer_memory(const mp_buffer_t *buffer) {
  return buffer->memory;
}

uint64_t mp_buffer_bytes(const mp_buffer_t *buffer) {
  return buffer->form->bytes;
}

mp_event_t *mp_buffer_definition(const mp_buffer_t *buffer) {
  return buffer->definition;
}

// In a forked child another thread may have held the lock when the process forked; but the child
// has only one thread, so it needs no lock.
static bool buffer_lock(const mp_buffer_t *buffer) {
  if (mp_client_is_forked(mp_device_client(buffer->memory->device))) return false;
  mp_lock(mp_buffer_lock(buffer));
  return true;
}

static void buffer_unlock(const mp_buffer_t *buffer, bool locked) {
  if (locked) mp_unlock(mp_buffer_lock(buffer));
}

// Under the lock, too.
static uint32_t buffer_externals(const mp_buffer_t *buffer) {
  const mp_outside_t *outside = atomic_load(&buffer->outside);
  return outside == NULL ? 0 : outside->references;
}

// Asserts an invariant of the lock: the buffer's own hold and those of external references exist.
static void buffer_assert_holds(const mp_buffer_t *buffer) {
#ifdef MINIPOD_ASSERTS
  if (mp_client_is_forked(mp_device_client(buffer->memory->device))) return;
  mp_lock_assert_held(mp_buffer_lock(buffer));
  MP_ASSERT(atomic_load(&buffer->references) > 0);
  const uint32_t holds = (buffer->is_deleted ? 0 : 1) + buffer_externals(buffer);
  if (holds == 0 || buffer->storage == NULL) return;  // the storage may be freed
  MP_ASSERT(atomic_load(&buffer->storage->references) >= (int)holds);
  MP_ASSERT(buffer->storage->bytes >= buffer->form->bytes);
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
    buffer->is_unwanted = true;  // a launch that fails must not restore it
  }
  buffer_unlock(buffer, locked);
  // Without the lock: this may be the last hold, which calls the owner of adopted memory.
  mp_storage_release(storage);
}

bool mp_buffer_is_deleted(const mp_buffer_t *buffer) {
  bool locked = buffer_lock(buffer);
  bool is_deleted = buffer->is_deleted;
  buffer_unlock(buffer, locked);
  return is_deleted;
}

static mp_status_t buffer_deleted_error(const mp_buffer_t *buffer) {
  return mp_status_make(
      MP_INVALID_ARGUMENT, "the buffer has been %s",
      buffer->is_donated ? "donated: its memory belongs to a result now" : "deleted");
}

// A hold on the storage: one more, or the buffer's own, which is deleted then.
static mp_status_t buffer_get_storage(mp_buffer_t *buffer, bool is_given_up,
                                      mp_storage_t **out_storage) {
  mp_status_t status = NULL;
  mp_lock(mp_buffer_lock(buffer));
  buffer_assert_holds(buffer);
  if (buffer->is_deleted) {
    status = buffer_deleted_error(buffer);
  } else {
    *out_storage = is_given_up ? buffer->storage : mp_storage_retain(buffer->storage);
    buffer->is_deleted = is_given_up;
  }
  mp_unlock(mp_buffer_lock(buffer));
  return status;
}

mp_status_t mp_buffer_give_up(mp_buffer_t *buffer, mp_storage_t **out_storage) {
  return buffer_get_storage(buffer, true, out_storage);
}

mp_status_t mp_buffer_hold_storage(mp_buffer_t *buffer, mp_storage_t **out_storage) {
  return buffer_get_storage(buffer, false, out_storage);
}

// When programs run for their shapes alone, only an array that is defined knows whether it has
// values, so a reader first waits for the definition.
static void buffer_await_values(const mp_buffer_t *buffer) {
  mp_status_release(mp_event_await(buffer->definition));  // readers wait for it, too
}

// Whether the buffer still has its storage.
static bool buffer_is_open(const mp_buffer_t *buffer) {
  return !buffer->is_deleted || buffer_externals(buffer) != 0;
}

// Whether the array is defined and has no values.
static bool buffer_lacks_values(const mp_buffer_t *buffer) {
  // The success of the definition publishes are_there.
  if (buffer->storage == NULL || buffer->storage->values == NULL) return false;
  return mp_event_has_succeeded(buffer->definition) && !buffer->storage->values->are_there;
}

// The record of the buffer's external references, made with the first one.
static mp_status_t buffer_make_outside(mp_buffer_t *buffer, mp_outside_t **out_outside) {
  mp_outside_t *outside = atomic_load(&buffer->outside);
  if (outside == NULL) {
    mp_outside_t *made = mp_calloc(1, sizeof(*made));
    MP_RETURN_IF_NULL(made);
    // If two threads do this at the same time, one of them wins.
    if (atomic_compare_exchange_strong(&buffer->outside, &outside, made)) {
      outside = made;
    } else {
      mp_free(made);
    }
  }
  *out_outside = outside;
  return NULL;
}

// Makes the substitute for values that were not computed; its address is constant for the buffer's
// life.
static mp_status_t buffer_make_stand_in(mp_buffer_t *buffer, mp_outside_t *outside) {
  mp_storage_t *storage = NULL;
  void *stand_in = NULL;
  mp_lock(mp_buffer_lock(buffer));
  const bool is_wanted =
      buffer_is_open(buffer) && outside->stand_in == NULL && buffer_lacks_values(buffer);
  if (is_wanted) storage = mp_storage_retain(buffer->storage);
  mp_unlock(mp_buffer_lock(buffer));
  if (!is_wanted) return NULL;
  // Without the lock, as messages about storages take another leaf of the lock order.
  mp_status_t status =
      mp_absent_read(storage, buffer->form->type.dtype, 0, buffer->form->bytes, &stand_in);
  mp_storage_release(storage);
  MP_RETURN_IF_ERROR(status);
  mp_lock(mp_buffer_lock(buffer));
  void *other = outside->stand_in;  // made by a thread that was faster
  if (other == NULL) outside->stand_in = stand_in;
  mp_unlock(mp_buffer_lock(buffer));
  if (other != NULL) mp_free(stand_in);
  return NULL;
}

static void *buffer_data(const mp_buffer_t *buffer, const mp_outside_t *outside) {
  static _Alignas(64) unsigned char no_data[64];  // the data of error buffers
  const mp_storage_t *storage = buffer->storage;
  if (storage == NULL) return no_data;
  return outside->stand_in != NULL ? outside->stand_in : mp_storage_find(storage, storage->data);
}

mp_status_t mp_buffer_acquire_external(mp_buffer_t *buffer, void **out_data) {
  mp_status_t status = NULL;
  mp_outside_t *outside = NULL;
  MP_RETURN_IF_ERROR(buffer_make_outside(buffer, &outside));
  if (mp_device_client(buffer->memory->device)->shapes_only) {
    buffer_await_values(buffer);
    MP_RETURN_IF_ERROR(buffer_make_stand_in(buffer, outside));
  }
  bool locked = buffer_lock(buffer);
  buffer_assert_holds(buffer);
  if (!buffer_is_open(buffer)) {
    status = buffer_deleted_error(buffer);
  } else {
    outside->references += 1;
    mp_storage_retain(buffer->storage);
    mp_buffer_retain(buffer);
    *out_data = buffer_data(buffer, outside);
  }
  buffer_unlock(buffer, locked);
  return status;
}

void mp_buffer_release_external(mp_buffer_t *buffer) {
  bool locked = buffer_lock(buffer);
  buffer_assert_holds(buffer);
  MP_ASSERT(buffer_externals(buffer) != 0);
  atomic_load(&buffer->outside)->references -= 1;
  mp_storage_t *storage = buffer->storage;
  buffer_unlock(buffer, locked);
  mp_storage_release(storage);
  mp_buffer_release(buffer);
}

// ---- Arguments of launches ----

mp_status_t mp_buffer_take(mp_buffer_t *buffer, bool donate, uint64_t claim, mp_take_t *out_take,
                           mp_storage_t **out_storage) {
  mp_status_t status = NULL;
  mp_lock(mp_buffer_lock(buffer));
  buffer_assert_holds(buffer);
  MP_ASSERT(claim != 0);
  if (buffer->is_deleted) {
    if (buffer->is_donated && buffer->claim == claim) {
      status = mp_status_make(MP_INVALID_ARGUMENT,
                              donate ? "the same buffer is donated twice in this call"
                                     : "the buffer is donated to another argument of this call");
    } else {
      status = buffer_deleted_error(buffer);
    }
  } else if (!donate || buffer_externals(buffer) != 0) {
    *out_take = donate ? MP_TAKE_COPY : MP_TAKE_SHARED;
    *out_storage = mp_storage_retain(buffer->storage);
  } else {
    // The buffer is deleted in any case. But its memory is taken over only if no transfer still
    // reads it and if the client allocated it; otherwise the launch works on a copy.
    bool is_free = buffer->storage != NULL && mp_storage_is_sole(buffer->storage) &&
                   !mp_storage_is_adopted(buffer->storage);
    *out_take = is_free ? MP_TAKE_OVER : MP_TAKE_COPY;
    *out_storage = buffer->storage;
    buffer->is_deleted = buffer->is_donated = true;
    buffer->claim = claim;  // in the storage's place
  }
  mp_unlock(mp_buffer_lock(buffer));
  return status;
}

mp_storage_t *mp_buffer_untake(mp_buffer_t *buffer, mp_storage_t *storage) {
  mp_lock(mp_buffer_lock(buffer));
  const bool was_donated = buffer->is_donated;
  buffer->is_donated = false;
  if (was_donated) buffer->storage = storage;
  if (was_donated && !buffer->is_unwanted) {
    buffer->is_deleted = false;
    storage = NULL;  // its hold is the buffer's again
  }
  mp_unlock(mp_buffer_lock(buffer));
  return storage;
}
