// Chunked transfers: buffers that are returned first and filled later, piece by piece.
//
// Each buffer has a slot, counted by the manager and by its transfers in flight, because the
// manager may be destroyed before they end. A buffer is complete when its last transfer has been
// started and all are done; the first error of any of them becomes the buffer's.

#include "pjrt/pjrt_objects.h"
#include "sim/base/alloc.h"
#include "sim/base/os/lock.h"

typedef struct {
  atomic_int references;
  mp_lock_t mutex;
  mp_buffer_t *buffer;
  const PJRT_Layouts_MemoryLayout *layout;  // NULL: row-major
  mp_event_t *definition;
  // Under the lock: transfers begin on the user's threads and end on workers.
  int64_t pending;  // transfers in flight
  bool is_last_started;
  bool is_settled;  // the definition was set, or is about to be
  mp_status_t error;
} slot_t;

struct PJRT_AsyncHostToDeviceTransferManager {
  PJRT_Client *client;
  PJRT_Device *device;
  size_t num_slots;
  slot_t *slots[];
};

static void pjrt_async_transfer_slot_release(slot_t *slot) {
  if (slot == NULL) return;
  const int before = atomic_fetch_sub(&slot->references, 1);
  MP_ASSERT(before > 0);
  if (before != 1) return;
  MP_ASSERT(slot->pending == 0);  // a transfer has a reference
  mp_event_release(slot->definition);
  mp_buffer_release(slot->buffer);
  mp_status_release(slot->error);
  mp_lock_deinit(&slot->mutex);
  mp_free(slot);
}

static mp_status_t pjrt_async_transfer_slot_create(mp_memory_t *memory, const PJRT_ShapeSpec *spec,
                                                   const PJRT_Buffer_MemoryLayout *layout,
                                                   slot_t **out_slot) {
  mp_pjrt_shape_t shape;
  MP_RETURN_IF_ERROR(mp_pjrt_shape_read("PJRT_Client_CreateBuffersForAsyncHostToDevice",
                                        spec->element_type, spec->dims, spec->num_dims, layout,
                                        &shape));
  slot_t *slot = mp_calloc(1, sizeof(*slot));
  MP_RETURN_IF_NULL(slot);
  slot->layout = shape.layout;
  mp_status_t status = mp_buffer_create(memory, shape.dtype, shape.dims, shape.rank, &slot->buffer,
                                        &slot->definition);
  if (status != NULL) {
    mp_free(slot);
    return status;
  }
  mp_buffer_note_fill(slot->buffer);
  mp_lock_init(&slot->mutex, MP_LOCK_TRANSFER);
  atomic_init(&slot->references, 1);
  *out_slot = slot;
  return NULL;
}

// Sets the definition if the buffer is complete; called without the lock.
static void pjrt_async_transfer_slot_settle(slot_t *slot) {
  mp_lock(&slot->mutex);
  bool is_complete = slot->is_last_started && slot->pending == 0 && !slot->is_settled;
  if (is_complete) slot->is_settled = true;
  mp_unlock(&slot->mutex);
  // Only one thread finds it complete, and nothing changes any more. So it continues without the
  // lock, which is a leaf: setting the definition calls back.
  if (!is_complete) return;
  MP_ASSERT(!mp_event_is_ready(slot->definition));  // only this function sets it
  mp_event_set(slot->definition, mp_status_retain(slot->error));
}

// The buffer gets this error, once the transfers in flight are done.
static void pjrt_async_transfer_slot_fail(slot_t *slot, mp_status_t error) {
  mp_lock(&slot->mutex);
  if (slot->error == NULL && !slot->is_last_started) {
    slot->error = error;
    error = NULL;
  }
  slot->is_last_started = true;
  mp_unlock(&slot->mutex);
  mp_status_release(error);
  pjrt_async_transfer_slot_settle(slot);
}

static void pjrt_async_transfer_done(mp_status_t status, void *context) {
  slot_t *slot = context;
  mp_lock(&slot->mutex);
  MP_ASSERT(slot->pending > 0);
  --slot->pending;
  if (slot->error == NULL) slot->error = mp_status_retain(status);
  mp_unlock(&slot->mutex);
  pjrt_async_transfer_slot_settle(slot);
  pjrt_async_transfer_slot_release(slot);
}

static mp_status_t pjrt_async_transfer_slot_begin(slot_t *slot, bool is_last) {
  mp_status_t status = NULL;
  mp_lock(&slot->mutex);
  if (slot->is_last_started) {
    status = mp_status_make(MP_FAILED_PRECONDITION,
                            "the buffer's last transfer was started, or it was given an error");
  } else {
    ++slot->pending;
    slot->is_last_started = is_last;
  }
  mp_unlock(&slot->mutex);
  return status;
}

// Starts one transfer of `size` bytes; the caller owns `out_done`. All that may fail comes before
// the copy starts: on an error the caller may free its data at once.
static mp_status_t pjrt_async_transfer_slot_transfer(slot_t *slot, const void *data,
                                                     uint64_t offset, uint64_t size, bool is_last,
                                                     mp_event_t **out_done) {
  MP_RETURN_IF_ERROR(pjrt_async_transfer_slot_begin(slot, is_last));
  atomic_fetch_add(&slot->references, 1);
  mp_event_t *done = NULL;
  mp_status_t status = mp_event_create(&done);
  if (status == NULL) status = mp_event_on_ready(done, pjrt_async_transfer_done, slot);
  if (status != NULL) {
    mp_event_release(done);
    pjrt_async_transfer_done(status, slot);
    return status;
  }
  status = mp_buffer_check_write(slot->buffer);
  if (status == NULL) status = mp_buffer_write_raw_to(slot->buffer, data, offset, size, done);
  if (status != NULL) {
    mp_event_set(done, mp_status_retain(status));  // calls pjrt_async_transfer_done
    mp_event_release(done);
    return status;
  }
  *out_done = done;
  return NULL;
}

static mp_status_t pjrt_async_transfer_find_slot(const char *function,
                                                 PJRT_AsyncHostToDeviceTransferManager *manager,
                                                 int index, slot_t **out_slot) {
  if (manager == NULL) return mp_pjrt_null_argument(function, "transfer_manager");
  if (index < 0 || (size_t)index >= manager->num_slots) {
    return mp_status_make(MP_INVALID_ARGUMENT, "%s: buffer_index is %d of %zu", function + 3, index,
                          manager->num_slots);
  }
  *out_slot = manager->slots[index];
  return NULL;
}

static void pjrt_async_transfer_free_manager(PJRT_AsyncHostToDeviceTransferManager *manager) {
  for (size_t i = 0; i < manager->num_slots; ++i) {
    slot_t *slot = manager->slots[i];
    if (slot == NULL) continue;
    pjrt_async_transfer_slot_fail(
        slot, mp_status_make(MP_CANCELLED,
                             "the transfer manager was destroyed before the last transfer"));
    pjrt_async_transfer_slot_release(slot);
  }
  mp_pjrt_client_release(manager->client);
  mp_free(manager);
}

mp_status_t mp_PJRT_Client_CreateBuffersForAsyncHostToDevice(
    PJRT_Client_CreateBuffersForAsyncHostToDevice_Args *args) {
  MP_REQUIRE(args, client);
  MP_REQUIRE(args, memory);
  mp_memory_t *memory = NULL;
  MP_RETURN_IF_ERROR(mp_pjrt_choose_memory(__func__, args->memory, NULL, &memory));
  if (args->num_shape_specs > 0) MP_REQUIRE(args, shape_specs);
  size_t count = args->num_shape_specs;
  PJRT_AsyncHostToDeviceTransferManager *manager =
      mp_calloc(1, sizeof(*manager) + count * sizeof(manager->slots[0]));
  MP_RETURN_IF_NULL(manager);
  manager->client = mp_pjrt_client_retain(args->client);
  manager->device = mp_pjrt_memory(args->memory)->device;
  manager->num_slots = count;
  for (size_t i = 0; i < count; ++i) {
    bool has_layout = args->device_layouts != NULL && i < args->num_device_layouts;
    mp_status_t status = pjrt_async_transfer_slot_create(
        memory, &args->shape_specs[i], has_layout ? args->device_layouts[i] : NULL,
        &manager->slots[i]);
    if (status != NULL) {
      pjrt_async_transfer_free_manager(manager);
      return status;
    }
  }
  args->transfer_manager = manager;
  return NULL;
}

mp_status_t mp_PJRT_AsyncHostToDeviceTransferManager_Destroy(
    PJRT_AsyncHostToDeviceTransferManager_Destroy_Args *args) {
  if (args->transfer_manager != NULL) pjrt_async_transfer_free_manager(args->transfer_manager);
  return NULL;
}

mp_status_t mp_PJRT_AsyncHostToDeviceTransferManager_TransferData(
    PJRT_AsyncHostToDeviceTransferManager_TransferData_Args *args) {
  slot_t *slot = NULL;
  MP_RETURN_IF_ERROR(
      pjrt_async_transfer_find_slot(__func__, args->transfer_manager, args->buffer_index, &slot));
  uint64_t bytes = mp_buffer_bytes(slot->buffer);
  if (args->offset < 0 || args->transfer_size < 0 || (uint64_t)args->offset > bytes ||
      (uint64_t)args->transfer_size > bytes - (uint64_t)args->offset) {
    return mp_status_make(
        MP_INVALID_ARGUMENT, "a transfer of %lld bytes to offset %lld of a buffer of %llu bytes",
        (long long)args->transfer_size, (long long)args->offset, (unsigned long long)bytes);
  }
  if (args->transfer_size > 0) MP_REQUIRE(args, data);
  mp_event_t *done = NULL;
  MP_RETURN_IF_ERROR(pjrt_async_transfer_slot_transfer(slot, args->data, (uint64_t)args->offset,
                                                       (uint64_t)args->transfer_size,
                                                       args->is_last_transfer, &done));
  args->done_with_h2d_transfer = mp_pjrt_event(done);
  return NULL;
}

mp_status_t mp_PJRT_AsyncHostToDeviceTransferManager_TransferLiteral(
    PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args *args) {
  slot_t *slot = NULL;
  MP_RETURN_IF_ERROR(
      pjrt_async_transfer_find_slot(__func__, args->transfer_manager, args->buffer_index, &slot));
  mp_pjrt_shape_t shape;
  MP_RETURN_IF_ERROR(mp_pjrt_shape_read(__func__, args->shape_element_type, args->shape_dims,
                                        args->shape_num_dims, args->shape_layout, &shape));
  const mp_type_t *type = mp_buffer_type(slot->buffer);
  bool is_same =
      type->dtype == shape.dtype && type->rank == shape.rank && slot->layout == shape.layout;
  for (uint32_t i = 0; is_same && i < type->rank; ++i) is_same = type->dims[i] == shape.dims[i];
  if (!is_same) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "the literal's shape and layout are not those of buffer %d",
                          args->buffer_index);
  }
  uint64_t bytes = mp_buffer_bytes(slot->buffer);
  if (bytes > 0) MP_REQUIRE(args, data);
  mp_event_t *done = NULL;
  MP_RETURN_IF_ERROR(pjrt_async_transfer_slot_transfer(slot, args->data, 0, bytes, true, &done));
  args->done_with_h2d_transfer = mp_pjrt_event(done);
  return NULL;
}

mp_status_t mp_PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer(
    PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args *args) {
  slot_t *slot = NULL;
  MP_RETURN_IF_ERROR(
      pjrt_async_transfer_find_slot(__func__, args->transfer_manager, args->buffer_index, &slot));
  return mp_pjrt_buffer_wrap(args->transfer_manager->client, mp_buffer_retain(slot->buffer),
                             slot->layout, &args->buffer_out);
}

MP_GETTER(PJRT_AsyncHostToDeviceTransferManager_Device, transfer_manager, device_out, it->device)
MP_GETTER(PJRT_AsyncHostToDeviceTransferManager_BufferCount, transfer_manager, buffer_count,
          it->num_slots)

mp_status_t mp_PJRT_AsyncHostToDeviceTransferManager_BufferSize(
    PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args *args) {
  slot_t *slot = NULL;
  MP_RETURN_IF_ERROR(
      pjrt_async_transfer_find_slot(__func__, args->transfer_manager, args->buffer_index, &slot));
  args->buffer_size = mp_buffer_bytes(slot->buffer);
  return NULL;
}

mp_status_t mp_PJRT_AsyncHostToDeviceTransferManager_SetBufferError(
    PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args *args) {
  slot_t *slot = NULL;
  MP_RETURN_IF_ERROR(
      pjrt_async_transfer_find_slot(__func__, args->transfer_manager, args->buffer_index, &slot));
  pjrt_async_transfer_slot_fail(
      slot, mp_pjrt_status(args->error_code, args->error_message, args->error_message_size));
  return NULL;
}

// The metadata are for profiles of the transfer, which minipod does not keep.
mp_status_t mp_PJRT_AsyncHostToDeviceTransferManager_AddMetadata(
    PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args *args) {
  (void)args;
  return NULL;
}
