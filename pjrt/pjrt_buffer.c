// Buffers: their type and place, deleting and copying them, and their address.

#include "pjrt/pjrt_objects.h"
#include "sim/base/alloc.h"
#include "sim/base/assert.h"
#include "sim/ir/layout.h"
#include "sim/runtime/devices/launching.h"

mp_status_t mp_pjrt_buffer_wrap(PJRT_Client *client, mp_buffer_t *buffer,
                                const PJRT_Layouts_MemoryLayout *layout, PJRT_Buffer **out_buffer) {
  if (layout != NULL && layout->is_row_major) layout = NULL;
  const size_t more = layout == NULL ? 0 : 1 + layout->rank;
  PJRT_Buffer *result = mp_malloc(sizeof(*result) + more * sizeof(result->order[0]));
  if (result == NULL) {
    mp_buffer_release(buffer);
    return mp_status_out_of_memory();
  }
  result->buffer = NULL;
  result->client = mp_pjrt_client_retain(client);
  result->is_row_major = layout == NULL;
  if (layout != NULL) result->order[0].layout = layout;
  atomic_init(&result->external_references, 0);
  if (buffer != NULL) mp_pjrt_buffer_fill(result, buffer);
  *out_buffer = result;
  return NULL;
}

void mp_pjrt_buffer_fill(PJRT_Buffer *wrapper, mp_buffer_t *buffer) {
  MP_ASSERT(wrapper->buffer == NULL && buffer != NULL);
  wrapper->buffer = buffer;
  if (wrapper->is_row_major) return;
  const PJRT_Layouts_MemoryLayout *layout = wrapper->order[0].layout;
  const mp_type_t *type = mp_buffer_type(buffer);
  MP_ASSERT(type->rank == layout->rank);
  for (uint32_t k = 0; k < type->rank; ++k) {
    wrapper->order[1 + mp_layout_logical(layout->minor_to_major, type->rank, k)].dim =
        type->dims[k];
  }
}

const int64_t *mp_pjrt_buffer_dims(const PJRT_Buffer *buffer) {
  if (buffer->is_row_major) return mp_buffer_type(buffer->buffer)->dims;
  return &buffer->order[1].dim;
}

mp_status_t mp_pjrt_choose_memory(const char *function, PJRT_Memory *memory, PJRT_Device *device,
                                  mp_memory_t **out_memory) {
  if (memory == NULL && device == NULL) return mp_pjrt_null_argument(function, "device or memory");
  if (memory == NULL) {
    MP_RETURN_IF_ERROR(mp_device_check_local(device->device, function + 3));
    memory = device->memories[MP_MEMORY_DEVICE];
  }
  *out_memory = mp_pjrt_memory(memory)->memory;
  MP_ASSERT(*out_memory != NULL);
  return NULL;
}

void mp_pjrt_buffer_destroy(PJRT_Buffer *buffer) {
  if (buffer == NULL) return;
  // Destroying a buffer is its last use, as PJRT requires.
  for (int i = atomic_load(&buffer->external_references); i > 0; --i) {
    mp_buffer_release_external(buffer->buffer);
  }
  mp_buffer_release(buffer->buffer);
  mp_pjrt_client_release(buffer->client);
  mp_free(buffer);
}

mp_status_t mp_PJRT_Buffer_Destroy(PJRT_Buffer_Destroy_Args *args) {
  mp_pjrt_buffer_destroy(args->buffer);
  return NULL;
}

MP_GETTER(PJRT_Buffer_ElementType, buffer, type,
          (PJRT_Buffer_Type)mp_dtype_number(mp_buffer_type(it->buffer)->dtype, MP_NUMBERS_PJRT))
MP_LIST_GETTER(PJRT_Buffer_Dimensions, buffer, dims, mp_pjrt_buffer_dims(it), num_dims,
               mp_buffer_type(it->buffer)->rank)

// Nothing is padded and no dimension is dynamic.
MP_LIST_GETTER(PJRT_Buffer_UnpaddedDimensions, buffer, unpadded_dims, mp_pjrt_buffer_dims(it),
               num_dims, mp_buffer_type(it->buffer)->rank)

mp_status_t mp_PJRT_Buffer_DynamicDimensionIndices(PJRT_Buffer_DynamicDimensionIndices_Args *args) {
  args->dynamic_dim_indices = NULL;
  args->num_dynamic_dims = 0;
  return NULL;
}

mp_status_t mp_PJRT_Buffer_GetMemoryLayout(PJRT_Buffer_GetMemoryLayout_Args *args) {
  MP_REQUIRE(args, buffer);
  size_t rank = mp_buffer_type(args->buffer->buffer)->rank;
  const PJRT_Layouts_MemoryLayout *layout = mp_pjrt_buffer_layout(args->buffer);
  if (layout == NULL) {
    PJRT_Layouts_MemoryLayout *row_major = NULL;
    MP_RETURN_IF_ERROR(mp_pjrt_layout_row_major(rank, &row_major));
    layout = row_major;
  }
  args->layout = (PJRT_Buffer_MemoryLayout){
      .struct_size = PJRT_STRUCT_SIZE(PJRT_Buffer_MemoryLayout, type),
      .tiled = {.struct_size = PJRT_STRUCT_SIZE(PJRT_Buffer_MemoryLayout_Tiled, num_tiles),
                .minor_to_major = layout->minor_to_major,
                .minor_to_major_size = rank},
      .type = PJRT_Buffer_MemoryLayout_Type_Tiled,
  };
  return NULL;
}

MP_GETTER(PJRT_Buffer_OnDeviceSizeInBytes, buffer, on_device_size_in_bytes,
          mp_buffer_bytes(it->buffer))
MP_GETTER(PJRT_Buffer_Memory, buffer, memory,
          mp_pjrt_memory_of(it->client, mp_buffer_memory(it->buffer)))

mp_status_t mp_PJRT_Buffer_Device(PJRT_Buffer_Device_Args *args) {
  MP_REQUIRE(args, buffer);
  PJRT_Memory *memory =
      mp_pjrt_memory_of(args->buffer->client, mp_buffer_memory(args->buffer->buffer));
  args->device = mp_pjrt_memory(memory)->device;
  return NULL;
}

mp_status_t mp_PJRT_Buffer_Delete(PJRT_Buffer_Delete_Args *args) {
  MP_REQUIRE(args, buffer);
  mp_buffer_delete(args->buffer->buffer);
  return NULL;
}

MP_GETTER(PJRT_Buffer_IsDeleted, buffer, is_deleted, mp_buffer_is_deleted(it->buffer))

// All memories are in this process: callers may read them in place.
mp_status_t mp_PJRT_Buffer_IsOnCpu(PJRT_Buffer_IsOnCpu_Args *args) {
  args->is_on_cpu = true;
  return NULL;
}

// Clients wait by these events, unless they have said otherwise.
static atomic_bool g_waits_are_told;

void mp_pjrt_expect_waits(void) {
  atomic_store(&g_waits_are_told, true);
}

mp_status_t mp_PJRT_Buffer_ReadyEvent(PJRT_Buffer_ReadyEvent_Args *args) {
  MP_REQUIRE(args, buffer);
  mp_launching_note_wait();  // its caller is about to wait
  args->event =
      mp_pjrt_event(mp_buffer_ready_event(args->buffer->buffer, !atomic_load(&g_waits_are_told)));
  return NULL;
}

static mp_status_t pjrt_buffer_copy_to(PJRT_Buffer *buffer, mp_memory_t *memory,
                                       PJRT_Buffer **out_buffer) {
  mp_buffer_t *copy = NULL;
  MP_RETURN_IF_ERROR(mp_buffer_copy_to_memory(buffer->buffer, memory, &copy));
  return mp_pjrt_buffer_wrap(buffer->client, copy, mp_pjrt_buffer_layout(buffer), out_buffer);
}

mp_status_t mp_PJRT_Buffer_CopyToDevice(PJRT_Buffer_CopyToDevice_Args *args) {
  MP_REQUIRE(args, buffer);
  mp_memory_t *memory = NULL;
  MP_RETURN_IF_ERROR(mp_pjrt_choose_memory(__func__, NULL, args->dst_device, &memory));
  return pjrt_buffer_copy_to(args->buffer, memory, &args->dst_buffer);
}

mp_status_t mp_PJRT_Buffer_CopyToMemory(PJRT_Buffer_CopyToMemory_Args *args) {
  MP_REQUIRE(args, buffer);
  mp_memory_t *memory = NULL;
  MP_RETURN_IF_ERROR(mp_pjrt_choose_memory(__func__, args->dst_memory, NULL, &memory));
  return pjrt_buffer_copy_to(args->buffer, memory, &args->dst_buffer);
}

// ---- the address ----

mp_status_t mp_PJRT_Buffer_IncreaseExternalReferenceCount(
    PJRT_Buffer_IncreaseExternalReferenceCount_Args *args) {
  MP_REQUIRE(args, buffer);
  void *data = NULL;
  // JAX reads arrays in place.
  MP_RETURN_IF_ERROR(mp_buffer_check_read(args->buffer->buffer));
  MP_RETURN_IF_ERROR(mp_buffer_acquire_external(args->buffer->buffer, &data));
  mp_buffer_note_view(args->buffer->buffer);
  atomic_fetch_add(&args->buffer->external_references, 1);
  return NULL;
}

mp_status_t mp_PJRT_Buffer_DecreaseExternalReferenceCount(
    PJRT_Buffer_DecreaseExternalReferenceCount_Args *args) {
  MP_REQUIRE(args, buffer);
  int count = atomic_load(&args->buffer->external_references);
  do {
    if (count == 0) {
      return mp_status_make(MP_INVALID_ARGUMENT,
                            "PJRT_Buffer_DecreaseExternalReferenceCount: there is no reference");
    }
    // Checked and decremented in one step, so that two threads cannot both give back the last one.
    // The count orders nothing; the runtime's buffer has a lock.
  } while (!atomic_compare_exchange_weak(&args->buffer->external_references, &count, count - 1));
  mp_buffer_release_external(args->buffer->buffer);
  return NULL;
}

// The address is constant for the buffer's life, so the hold need not last.
static mp_status_t pjrt_buffer_get_address(PJRT_Buffer *buffer, void **out_data) {
  MP_RETURN_IF_ERROR(mp_buffer_acquire_external(buffer->buffer, out_data));
  mp_buffer_release_external(buffer->buffer);
  return NULL;
}

mp_status_t mp_PJRT_Buffer_OpaqueDeviceMemoryDataPointer(
    PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args *args) {
  MP_REQUIRE(args, buffer);
  return pjrt_buffer_get_address(args->buffer, &args->device_memory_ptr);
}

mp_status_t mp_PJRT_Buffer_UnsafePointer(PJRT_Buffer_UnsafePointer_Args *args) {
  MP_REQUIRE(args, buffer);
  void *data = NULL;
  MP_RETURN_IF_ERROR(pjrt_buffer_get_address(args->buffer, &data));
  args->buffer_pointer = (uintptr_t)data;
  return NULL;
}
