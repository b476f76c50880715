// Devices: addressing, memories, statistics, attributes.

#include "pjrt/pjrt_objects.h"
#include "sim/base/alloc.h"

// A device's attributes were made with its topology.
MP_GETTER(PJRT_DeviceDescription_Id, device_description, id, it->info->id)
MP_GETTER(PJRT_DeviceDescription_ProcessIndex, device_description, process_index, it->process_index)
MP_LIST_GETTER(PJRT_DeviceDescription_Attributes, device_description, attributes, it->attributes,
               num_attributes, it->num_attributes)
MP_TEXT_GETTER(PJRT_DeviceDescription_Kind, device_description, device_kind, it->kind)
MP_TEXT_GETTER(PJRT_DeviceDescription_DebugString, device_description, debug_string,
               it->debug_string)
MP_TEXT_GETTER(PJRT_DeviceDescription_ToString, device_description, to_string, it->to_string)
MP_GETTER(PJRT_Device_GetDescription, device, device_description, it->description)
MP_GETTER(PJRT_Device_IsAddressable, device, is_addressable, it->is_addressable)

mp_status_t mp_PJRT_Device_LocalHardwareId(PJRT_Device_LocalHardwareId_Args *args) {
  MP_REQUIRE(args, device);
  args->local_hardware_id =
      args->device->is_addressable ? args->device->description->info->local_hardware_id : -1;
  return NULL;
}

MP_LIST_GETTER(PJRT_Device_AddressableMemories, device, memories, it->memories, num_memories,
               it->is_addressable ? MP_MEMORY_SPACE_COUNT : 0)

mp_status_t mp_PJRT_Device_DefaultMemory(PJRT_Device_DefaultMemory_Args *args) {
  MP_REQUIRE(args, device);
  MP_RETURN_IF_ERROR(mp_device_check_local(args->device->device, "no memory of"));
  args->memory = args->device->memories[MP_MEMORY_DEVICE];
  return NULL;
}

#define SET(field, value)        \
  do {                           \
    args->field = (value);       \
    args->field##_is_set = true; \
  } while (0)
#define LEAVE(field)              \
  do {                            \
    args->field = 0;              \
    args->field##_is_set = false; \
  } while (0)

// Statistics of the device's own memory.
mp_status_t mp_PJRT_Device_MemoryStats(PJRT_Device_MemoryStats_Args *args) {
  MP_REQUIRE(args, device);
  MP_RETURN_IF_ERROR(mp_device_check_local(args->device->device, "no memory of"));
  mp_memory_stats_t stats;
  mp_memory_get_stats(mp_device_memory(args->device->device, MP_MEMORY_DEVICE), &stats);
  args->bytes_in_use = stats.bytes_in_use;
  SET(peak_bytes_in_use, stats.peak_bytes_in_use);
  SET(num_allocs, stats.num_allocs);
  SET(largest_alloc_size, stats.largest_alloc_size);
  SET(bytes_limit, stats.bytes_limit);
  SET(bytes_reserved, 0);
  SET(peak_bytes_reserved, 0);
  SET(bytes_reservable_limit, stats.bytes_reservable);
  SET(largest_free_block_bytes, stats.largest_free_block_bytes);
  // The bytes on the device's NUMA node; other bytes in use may be elsewhere.
  if (stats.bytes_on_node < 0) {
    LEAVE(pool_bytes);
  } else {
    SET(pool_bytes, stats.bytes_on_node);
  }
  LEAVE(peak_pool_bytes);
  if (MP_HAS(args, peak_allocated_bytes_is_set)) {
    SET(peak_allocated_bytes, stats.peak_bytes_in_use);
  }
  return NULL;
}

mp_status_t mp_PJRT_Device_ClearMemoryStats(PJRT_Device_ClearMemoryStats_Args *args) {
  MP_REQUIRE(args, device);
  MP_RETURN_IF_ERROR(mp_device_check_local(args->device->device, "no memory of"));
  mp_memory_clear_stats(mp_device_memory(args->device->device, MP_MEMORY_DEVICE));
  return NULL;
}

// The attributes belong to the device; there is nothing to free.
static void pjrt_device_delete_attributes(PJRT_Device_Attributes *attributes) {
  (void)attributes;
}

mp_status_t mp_PJRT_Device_GetAttributes(PJRT_Device_GetAttributes_Args *args) {
  MP_REQUIRE(args, device);
  args->attributes = args->device->description->attributes;
  args->num_attributes = args->device->description->num_attributes;
  args->device_attributes = (PJRT_Device_Attributes *)args->device->description;
  args->attributes_deleter = pjrt_device_delete_attributes;
  return NULL;
}

mp_status_t mp_PJRT_Device_PoisonExecution(PJRT_Device_PoisonExecution_Args *args) {
  (void)args;
  return MP_UNIMPLEMENTED("launches cannot be failed from outside yet");
}

// A tracking event marks a place in the caller's traces; it has no effect on the device.
struct PJRT_AsyncTrackingEvent {
  PJRT_Device *device;
};

mp_status_t mp_PJRT_Device_CreateAsyncTrackingEvent(
    PJRT_Device_CreateAsyncTrackingEvent_Args *args) {
  MP_REQUIRE(args, device);
  PJRT_AsyncTrackingEvent *event = mp_malloc(sizeof(*event));
  MP_RETURN_IF_NULL(event);
  event->device = args->device;
  args->event = event;
  return NULL;
}

mp_status_t mp_PJRT_AsyncTrackingEvent_Destroy(PJRT_AsyncTrackingEvent_Destroy_Args *args) {
  mp_free(args->event);
  return NULL;
}
