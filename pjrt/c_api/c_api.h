// The PJRT C API, minor version 117: the table of functions.
//
// One list gives, in the order of the table: the result (void, or error: PJRT_Error *), the
// function, and the last argument field that every known caller has (minor 68 and later). Later
// fields may be read and written only if the caller's struct_size covers them. pjrt/pjrt_objects.h
// has minipod's objects.
#ifndef MINIPOD_PJRT_C_API_C_API_H_
#define MINIPOD_PJRT_C_API_C_API_H_

#include "pjrt/c_api/c_api_executable.h"

// clang-format off
#define PJRT_FUNCTIONS(X) \
  X(void, PJRT_Error_Destroy, error) \
  X(void, PJRT_Error_Message, message_size) \
  X(error, PJRT_Error_GetCode, code) \
  X(error, PJRT_Plugin_Initialize, extension_start) \
  X(error, PJRT_Plugin_Attributes, attributes) \
  X(error, PJRT_Event_Destroy, event) \
  X(error, PJRT_Event_IsReady, is_ready) \
  X(error, PJRT_Event_Error, event) \
  X(error, PJRT_Event_Await, event) \
  X(error, PJRT_Event_OnReady, user_arg) \
  X(error, PJRT_Client_Create, kv_try_get_user_arg) \
  X(error, PJRT_Client_Destroy, client) \
  X(error, PJRT_Client_PlatformName, platform_name_size) \
  X(error, PJRT_Client_ProcessIndex, process_index) \
  X(error, PJRT_Client_PlatformVersion, platform_version_size) \
  X(error, PJRT_Client_Devices, num_devices) \
  X(error, PJRT_Client_AddressableDevices, num_addressable_devices) \
  X(error, PJRT_Client_LookupDevice, device) \
  X(error, PJRT_Client_LookupAddressableDevice, addressable_device) \
  X(error, PJRT_Client_AddressableMemories, num_addressable_memories) \
  X(error, PJRT_Client_Compile, executable) \
  X(error, PJRT_Client_DefaultDeviceAssignment, default_assignment) \
  X(error, PJRT_Client_BufferFromHostBuffer, buffer) \
  X(error, PJRT_DeviceDescription_Id, id) \
  X(error, PJRT_DeviceDescription_ProcessIndex, process_index) \
  X(error, PJRT_DeviceDescription_Attributes, attributes) \
  X(error, PJRT_DeviceDescription_Kind, device_kind_size) \
  X(error, PJRT_DeviceDescription_DebugString, debug_string_size) \
  X(error, PJRT_DeviceDescription_ToString, to_string_size) \
  X(error, PJRT_Device_GetDescription, device_description) \
  X(error, PJRT_Device_IsAddressable, is_addressable) \
  X(error, PJRT_Device_LocalHardwareId, local_hardware_id) \
  X(error, PJRT_Device_AddressableMemories, num_memories) \
  X(error, PJRT_Device_DefaultMemory, memory) \
  X(error, PJRT_Device_MemoryStats, peak_pool_bytes_is_set) \
  X(error, PJRT_Memory_Id, id) \
  X(error, PJRT_Memory_Kind, kind_size) \
  X(error, PJRT_Memory_DebugString, debug_string_size) \
  X(error, PJRT_Memory_ToString, to_string_size) \
  X(error, PJRT_Memory_AddressableByDevices, num_devices) \
  X(error, PJRT_Executable_Destroy, executable) \
  X(error, PJRT_Executable_Name, executable_name_size) \
  X(error, PJRT_Executable_NumReplicas, num_replicas) \
  X(error, PJRT_Executable_NumPartitions, num_partitions) \
  X(error, PJRT_Executable_NumOutputs, num_outputs) \
  X(error, PJRT_Executable_SizeOfGeneratedCodeInBytes, size_in_bytes) \
  X(error, PJRT_Executable_GetCostAnalysis, properties) \
  X(error, PJRT_Executable_OutputMemoryKinds, memory_kind_sizes) \
  X(error, PJRT_Executable_OptimizedProgram, program) \
  X(error, PJRT_Executable_Serialize, serialized_executable_deleter) \
  X(error, PJRT_LoadedExecutable_Destroy, executable) \
  X(error, PJRT_LoadedExecutable_GetExecutable, executable) \
  X(error, PJRT_LoadedExecutable_AddressableDevices, num_addressable_devices) \
  X(error, PJRT_LoadedExecutable_Delete, executable) \
  X(error, PJRT_LoadedExecutable_IsDeleted, is_deleted) \
  X(error, PJRT_LoadedExecutable_Execute, execute_device) \
  X(error, PJRT_Executable_DeserializeAndLoad, loaded_executable) \
  X(error, PJRT_LoadedExecutable_Fingerprint, executable_fingerprint_size) \
  X(error, PJRT_Buffer_Destroy, buffer) \
  X(error, PJRT_Buffer_ElementType, type) \
  X(error, PJRT_Buffer_Dimensions, num_dims) \
  X(error, PJRT_Buffer_UnpaddedDimensions, num_dims) \
  X(error, PJRT_Buffer_DynamicDimensionIndices, num_dynamic_dims) \
  X(error, PJRT_Buffer_GetMemoryLayout, layout) \
  X(error, PJRT_Buffer_OnDeviceSizeInBytes, on_device_size_in_bytes) \
  X(error, PJRT_Buffer_Device, device) \
  X(error, PJRT_Buffer_Memory, memory) \
  X(error, PJRT_Buffer_Delete, buffer) \
  X(error, PJRT_Buffer_IsDeleted, is_deleted) \
  X(error, PJRT_Buffer_CopyToDevice, dst_buffer) \
  X(error, PJRT_Buffer_ToHostBuffer, event) \
  X(error, PJRT_Buffer_IsOnCpu, is_on_cpu) \
  X(error, PJRT_Buffer_ReadyEvent, event) \
  X(error, PJRT_Buffer_UnsafePointer, buffer_pointer) \
  X(error, PJRT_Buffer_IncreaseExternalReferenceCount, buffer) \
  X(error, PJRT_Buffer_DecreaseExternalReferenceCount, buffer) \
  X(error, PJRT_Buffer_OpaqueDeviceMemoryDataPointer, device_memory_ptr) \
  X(error, PJRT_CopyToDeviceStream_Destroy, stream) \
  X(error, PJRT_CopyToDeviceStream_AddChunk, transfer_complete) \
  X(error, PJRT_CopyToDeviceStream_TotalBytes, total_bytes) \
  X(error, PJRT_CopyToDeviceStream_GranuleSize, granule_size_in_bytes) \
  X(error, PJRT_CopyToDeviceStream_CurrentBytes, current_bytes) \
  X(error, PJRT_TopologyDescription_Create, topology) \
  X(error, PJRT_TopologyDescription_Destroy, topology) \
  X(error, PJRT_TopologyDescription_PlatformName, platform_name_size) \
  X(error, PJRT_TopologyDescription_PlatformVersion, platform_version_size) \
  X(error, PJRT_TopologyDescription_GetDeviceDescriptions, num_descriptions) \
  X(error, PJRT_TopologyDescription_Serialize, serialized_topology_deleter) \
  X(error, PJRT_TopologyDescription_Attributes, num_attributes) \
  X(error, PJRT_Compile, executable) \
  X(error, PJRT_Executable_OutputElementTypes, num_output_types) \
  X(error, PJRT_Executable_OutputDimensions, dim_sizes) \
  X(error, PJRT_Buffer_CopyToMemory, dst_buffer) \
  X(error, PJRT_Client_CreateViewOfDeviceBuffer, memory) \
  X(error, PJRT_Executable_Fingerprint, executable_fingerprint_size) \
  X(error, PJRT_Client_TopologyDescription, topology) \
  X(error, PJRT_Executable_GetCompiledMemoryStats, host_temp_size_in_bytes) \
  X(error, PJRT_Memory_Kind_Id, kind_id) \
  X(error, PJRT_ExecuteContext_Create, context) \
  X(error, PJRT_ExecuteContext_Destroy, context) \
  X(error, PJRT_Buffer_CopyRawToHost, event) \
  X(error, PJRT_AsyncHostToDeviceTransferManager_Destroy, transfer_manager) \
  X(error, PJRT_AsyncHostToDeviceTransferManager_TransferData, done_with_h2d_transfer) \
  X(error, PJRT_Client_CreateBuffersForAsyncHostToDevice, transfer_manager) \
  X(error, PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer, buffer_out) \
  X(error, PJRT_AsyncHostToDeviceTransferManager_Device, device_out) \
  X(error, PJRT_AsyncHostToDeviceTransferManager_BufferCount, buffer_count) \
  X(error, PJRT_AsyncHostToDeviceTransferManager_BufferSize, buffer_size) \
  X(error, PJRT_AsyncHostToDeviceTransferManager_SetBufferError, error_message_size) \
  X(error, PJRT_AsyncHostToDeviceTransferManager_AddMetadata, num_metadata) \
  X(error, PJRT_Client_DmaMap, size) \
  X(error, PJRT_Client_DmaUnmap, data) \
  X(error, PJRT_Client_CreateUninitializedBuffer, buffer) \
  X(error, PJRT_Client_UpdateGlobalProcessInfo, num_process_infos) \
  X(error, PJRT_TopologyDescription_Deserialize, topology) \
  X(error, PJRT_Client_CreateAliasBuffer, fulfill_alias_buffer_cb) \
  X(error, PJRT_Client_FulfillAliasBuffer, fulfill_alias_buffer_cb) \
  X(error, PJRT_LoadedExecutable_GetDeviceAssignment, serialized_device_assignment_deleter) \
  X(error, PJRT_Client_CreateErrorBuffer, buffer) \
  X(error, PJRT_AsyncHostToDeviceTransferManager_TransferLiteral, done_with_h2d_transfer) \
  X(error, PJRT_Buffer_CopyRawToHostFuture, future_ready_callback) \
  X(error, PJRT_Device_PoisonExecution, poisoned) \
  X(error, PJRT_Device_CreateAsyncTrackingEvent, event) \
  X(error, PJRT_AsyncTrackingEvent_Destroy, event) \
  X(error, PJRT_Executable_GetCompileOptions, serialized_compile_options_deleter) \
  X(error, PJRT_Buffer_DonateWithControlDependency, out_buffer) \
  X(error, PJRT_Event_Create, event) \
  X(error, PJRT_Event_Set, error_message_size) \
  X(error, PJRT_Device_GetAttributes, attributes_deleter) \
  X(error, PJRT_Client_Load, loaded_executable) \
  X(error, PJRT_LoadedExecutable_AddressableDeviceLogicalIds, num_addressable_device_logical_ids) \
  X(error, PJRT_Buffer_Bitcast, out_buffer) \
  X(error, PJRT_Error_ForEachPayload, user_arg) \
  X(error, PJRT_TopologyDescription_Fingerprint, fingerprint) \
  X(error, PJRT_Executable_ParameterMemoryKinds, memory_kind_sizes) \
  X(error, PJRT_Device_ClearMemoryStats, device) \
  X(error, PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace, serialized_shape_deleter) \
  X(error, PJRT_TopologyDescription_GetMemorySpaceKindIds, num_memory_space_kind_ids)
// clang-format on

// A function type for each: PJRT_Error *PJRT_Client_Create(PJRT_Client_Create_Args *args);
#define PJRT_RESULT_void  void
#define PJRT_RESULT_error PJRT_Error *
#define PJRT_FUNCTION_TYPE(result, name, required) \
  typedef PJRT_RESULT_##result name(name##_Args *args);
PJRT_FUNCTIONS(PJRT_FUNCTION_TYPE)
#undef PJRT_FUNCTION_TYPE

// A field has the name of its type, which C++ would treat as a type declared in the struct.
#ifdef __cplusplus
#define PJRT_FUNCTION_FIELD(result, name, required) ::name *name;
#else
#define PJRT_FUNCTION_FIELD(result, name, required) name *name;
#endif
typedef struct PJRT_Api {
  PJRT_HEAD;
  PJRT_Api_Version pjrt_api_version;
  PJRT_FUNCTIONS(PJRT_FUNCTION_FIELD)
} PJRT_Api;
#undef PJRT_FUNCTION_FIELD

#endif  // MINIPOD_PJRT_C_API_C_API_H_
