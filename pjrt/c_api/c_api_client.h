// The PJRT C API: client, devices, memories, topology. Include pjrt/c_api/c_api.h, not this file.
#ifndef MINIPOD_PJRT_C_API_C_API_CLIENT_H_
#define MINIPOD_PJRT_C_API_C_API_CLIENT_H_

#include "pjrt/c_api/c_api_base.h"

typedef struct PJRT_Client PJRT_Client;
typedef struct PJRT_Device PJRT_Device;
typedef struct PJRT_DeviceDescription PJRT_DeviceDescription;
typedef struct PJRT_Device_Attributes PJRT_Device_Attributes;
typedef struct PJRT_AsyncTrackingEvent PJRT_AsyncTrackingEvent;
typedef struct PJRT_TopologyDescription PJRT_TopologyDescription;
typedef PJRT_Serialized PJRT_SerializedTopology;
typedef struct PJRT_Memory PJRT_Memory;

// The store that processes share: get blocks up to a time limit, try_get does not, put adds. The
// deleter that get returns frees the value.
typedef void (*PJRT_KeyValueGetCallback_ValueDeleter)(char *value);
typedef void (*PJRT_KeyValueTryGetCallback_ValueDeleter)(char *value);

// Blocks up to the time limit until the key has been put.
typedef struct PJRT_KeyValueGetCallback_Args {
  PJRT_HEAD;
  const char *key;
  size_t key_size;
  int timeout_in_ms;
  PJRT_CallbackError *callback_error;
  void *user_arg;
  char *value;                                                   // out
  size_t value_size;                                             // out
  PJRT_KeyValueGetCallback_ValueDeleter value_deleter_callback;  // out
} PJRT_KeyValueGetCallback_Args;

// Does not wait: NOT_FOUND when the key has not been put.
typedef struct PJRT_KeyValueTryGetCallback_Args {
  PJRT_HEAD;
  const char *key;
  size_t key_size;
  PJRT_CallbackError *callback_error;
  void *user_arg;
  char *value;                                                      // out
  size_t value_size;                                                // out
  PJRT_KeyValueTryGetCallback_ValueDeleter value_deleter_callback;  // out
} PJRT_KeyValueTryGetCallback_Args;

typedef struct PJRT_KeyValuePutCallback_Args {
  PJRT_HEAD;
  const char *key;
  size_t key_size;
  const char *value;
  size_t value_size;
  PJRT_CallbackError *callback_error;
  void *user_arg;
} PJRT_KeyValuePutCallback_Args;

typedef PJRT_Error *(*PJRT_KeyValueGetCallback)(PJRT_KeyValueGetCallback_Args *args);
typedef PJRT_Error *(*PJRT_KeyValueTryGetCallback)(PJRT_KeyValueTryGetCallback_Args *args);
typedef PJRT_Error *(*PJRT_KeyValuePutCallback)(PJRT_KeyValuePutCallback_Args *args);

typedef enum PJRT_ProcessState {
  PJRT_ProcessState_kUnspecified = 0,
  PJRT_ProcessState_kUninitialized = 1,
  PJRT_ProcessState_kDisconnected = 2,
  PJRT_ProcessState_kConnected = 3,
  PJRT_ProcessState_kError = 4,
} PJRT_ProcessState;

// The coordinator's description of a process of a distributed run.
typedef struct PJRT_ProcessInfo {
  size_t struct_size;
  int task_id;
  uint64_t incarnation_id;
  PJRT_ProcessState state;
  int error_code;
  const char *error_message;
  size_t error_message_size;
} PJRT_ProcessInfo;

// The kv_ fields hold garbage unless the options `node_id` and `num_nodes` are present.
typedef struct PJRT_Client_Create_Args {
  PJRT_HEAD;
  const PJRT_NamedValue *create_options;
  size_t num_options;
  PJRT_KeyValueGetCallback kv_get_callback;
  void *kv_get_user_arg;
  PJRT_KeyValuePutCallback kv_put_callback;
  void *kv_put_user_arg;
  PJRT_Client *client;  // out
  PJRT_KeyValueTryGetCallback kv_try_get_callback;
  void *kv_try_get_user_arg;
} PJRT_Client_Create_Args;

// Callers promise to destroy all buffers and executables first; minipod does not rely on it.
typedef struct PJRT_Client_Destroy_Args {
  PJRT_HEAD;
  PJRT_Client *client;
} PJRT_Client_Destroy_Args;

typedef struct PJRT_Client_PlatformName_Args {
  PJRT_HEAD;
  PJRT_Client *client;
  const char *platform_name;  // out
  size_t platform_name_size;  // out
} PJRT_Client_PlatformName_Args;

// The number of this process among those of the client.
typedef struct PJRT_Client_ProcessIndex_Args {
  PJRT_HEAD;
  PJRT_Client *client;
  int process_index;  // out
} PJRT_Client_ProcessIndex_Args;

// The version becomes part of the keys of compilation caches.
typedef struct PJRT_Client_PlatformVersion_Args {
  PJRT_HEAD;
  PJRT_Client *client;
  const char *platform_version;  // out
  size_t platform_version_size;  // out
} PJRT_Client_PlatformVersion_Args;

// The description belongs to the client.
typedef struct PJRT_Client_TopologyDescription_Args {
  PJRT_HEAD;
  PJRT_Client *client;
  PJRT_TopologyDescription *topology;  // out
} PJRT_Client_TopologyDescription_Args;

// All devices, also those of other processes; the list lives as long as the client.
typedef struct PJRT_Client_Devices_Args {
  PJRT_HEAD;
  PJRT_Client *client;
  PJRT_Device *const *devices;  // out
  size_t num_devices;           // out
} PJRT_Client_Devices_Args;

// The devices of this process.
typedef struct PJRT_Client_AddressableDevices_Args {
  PJRT_HEAD;
  PJRT_Client *client;
  PJRT_Device *const *addressable_devices;  // out
  size_t num_addressable_devices;           // out
} PJRT_Client_AddressableDevices_Args;

// Finds a device by its global id.
typedef struct PJRT_Client_LookupDevice_Args {
  PJRT_HEAD;
  PJRT_Client *client;
  int id;
  PJRT_Device *device;  // out
} PJRT_Client_LookupDevice_Args;

// Finds a device by its number within the process.
typedef struct PJRT_Client_LookupAddressableDevice_Args {
  PJRT_HEAD;
  PJRT_Client *client;
  int local_hardware_id;
  PJRT_Device *addressable_device;  // out
} PJRT_Client_LookupAddressableDevice_Args;

typedef struct PJRT_Client_AddressableMemories_Args {
  PJRT_HEAD;
  PJRT_Client *client;
  PJRT_Memory *const *addressable_memories;  // out
  size_t num_addressable_memories;           // out
} PJRT_Client_AddressableMemories_Args;

// Fills ids by replica, then partition.
typedef struct PJRT_Client_DefaultDeviceAssignment_Args {
  PJRT_HEAD;
  PJRT_Client *client;
  int num_replicas;
  int num_partitions;
  size_t default_assignment_size;
  int *default_assignment;
} PJRT_Client_DefaultDeviceAssignment_Args;

// Registers host memory for transfers.
typedef struct PJRT_Client_DmaMap_Args {
  PJRT_HEAD;
  PJRT_Client *client;
  void *data;
  size_t size;
} PJRT_Client_DmaMap_Args;

typedef struct PJRT_Client_DmaUnmap_Args {
  PJRT_HEAD;
  PJRT_Client *client;
  void *data;
} PJRT_Client_DmaUnmap_Args;

// Tells the plugin about the states of the processes of a distributed run.
typedef struct PJRT_Client_UpdateGlobalProcessInfo_Args {
  PJRT_HEAD;
  PJRT_Client *client;
  PJRT_ProcessInfo *process_infos;
  size_t num_process_infos;
} PJRT_Client_UpdateGlobalProcessInfo_Args;

typedef struct PJRT_DeviceDescription_Id_Args {
  PJRT_HEAD;
  PJRT_DeviceDescription *device_description;
  int id;  // out
} PJRT_DeviceDescription_Id_Args;

typedef struct PJRT_DeviceDescription_ProcessIndex_Args {
  PJRT_HEAD;
  PJRT_DeviceDescription *device_description;
  int process_index;  // out
} PJRT_DeviceDescription_ProcessIndex_Args;

// The values may be strings, integers and lists of integers: for other types, callers end the
// process.
typedef struct PJRT_DeviceDescription_Attributes_Args {
  PJRT_HEAD;
  PJRT_DeviceDescription *device_description;
  size_t num_attributes;              // out
  const PJRT_NamedValue *attributes;  // out
} PJRT_DeviceDescription_Attributes_Args;

typedef struct PJRT_DeviceDescription_Kind_Args {
  PJRT_HEAD;
  PJRT_DeviceDescription *device_description;
  const char *device_kind;  // out
  size_t device_kind_size;  // out
} PJRT_DeviceDescription_Kind_Args;

// The text that Python's str() shows.
typedef struct PJRT_DeviceDescription_DebugString_Args {
  PJRT_HEAD;
  PJRT_DeviceDescription *device_description;
  const char *debug_string;  // out
  size_t debug_string_size;  // out
} PJRT_DeviceDescription_DebugString_Args;

// The text that Python's repr() shows.
typedef struct PJRT_DeviceDescription_ToString_Args {
  PJRT_HEAD;
  PJRT_DeviceDescription *device_description;
  const char *to_string;  // out
  size_t to_string_size;  // out
} PJRT_DeviceDescription_ToString_Args;

typedef struct PJRT_Device_GetDescription_Args {
  PJRT_HEAD;
  PJRT_Device *device;
  PJRT_DeviceDescription *device_description;  // out
} PJRT_Device_GetDescription_Args;

typedef struct PJRT_Device_IsAddressable_Args {
  PJRT_HEAD;
  PJRT_Device *device;
  bool is_addressable;  // out
} PJRT_Device_IsAddressable_Args;

// The number of the device within the process; -1 for devices of other processes.
typedef struct PJRT_Device_LocalHardwareId_Args {
  PJRT_HEAD;
  PJRT_Device *device;
  int local_hardware_id;  // out
} PJRT_Device_LocalHardwareId_Args;

// The list lives as long as the device; the order is that of memory kinds.
typedef struct PJRT_Device_AddressableMemories_Args {
  PJRT_HEAD;
  PJRT_Device *device;
  PJRT_Memory *const *memories;  // out
  size_t num_memories;           // out
} PJRT_Device_AddressableMemories_Args;

// The memory of new buffers when the caller names none.
typedef struct PJRT_Device_DefaultMemory_Args {
  PJRT_HEAD;
  PJRT_Device *device;
  PJRT_Memory *memory;  // out
} PJRT_Device_DefaultMemory_Args;

// `bytes_in_use` is always set; each other field has an `_is_set` flag.
typedef struct PJRT_Device_MemoryStats_Args {
  PJRT_HEAD;
  PJRT_Device *device;
  int64_t bytes_in_use;                  // out
  int64_t peak_bytes_in_use;             // out
  bool peak_bytes_in_use_is_set;         // out
  int64_t num_allocs;                    // out
  bool num_allocs_is_set;                // out
  int64_t largest_alloc_size;            // out
  bool largest_alloc_size_is_set;        // out
  int64_t bytes_limit;                   // out
  bool bytes_limit_is_set;               // out
  int64_t bytes_reserved;                // out
  bool bytes_reserved_is_set;            // out
  int64_t peak_bytes_reserved;           // out
  bool peak_bytes_reserved_is_set;       // out
  int64_t bytes_reservable_limit;        // out
  bool bytes_reservable_limit_is_set;    // out
  int64_t largest_free_block_bytes;      // out
  bool largest_free_block_bytes_is_set;  // out
  int64_t pool_bytes;                    // out
  bool pool_bytes_is_set;                // out
  int64_t peak_pool_bytes;               // out
  bool peak_pool_bytes_is_set;           // out
  int64_t peak_allocated_bytes;          // out, minor 113
  bool peak_allocated_bytes_is_set;      // out, minor 113
} PJRT_Device_MemoryStats_Args;

// Fails the launch with this id, if it has not ended.
typedef struct PJRT_Device_PoisonExecution_Args {
  PJRT_HEAD;
  PJRT_Device *device;
  int32_t launch_id;
  PJRT_Error_Code error_code;
  const char *error_message;
  size_t error_message_size;
  bool poisoned;                   // out
  const PJRT_NamedValue *payload;  // minor 104
  size_t num_payload;              // minor 104
} PJRT_Device_PoisonExecution_Args;

// Makes a mark for the caller's traces.
typedef struct PJRT_Device_CreateAsyncTrackingEvent_Args {
  PJRT_HEAD;
  PJRT_Device *device;
  const char *description;
  size_t description_size;
  PJRT_AsyncTrackingEvent *event;  // out
} PJRT_Device_CreateAsyncTrackingEvent_Args;

// Like PJRT_DeviceDescription_Attributes, for a live device; `attributes_deleter` is always called.
typedef struct PJRT_Device_GetAttributes_Args {
  PJRT_HEAD;
  PJRT_Device *device;
  const PJRT_NamedValue *attributes;                     // out
  size_t num_attributes;                                 // out
  PJRT_Device_Attributes *device_attributes;             // out
  void (*attributes_deleter)(PJRT_Device_Attributes *);  // out
} PJRT_Device_GetAttributes_Args;

// Resets the peak values.
typedef struct PJRT_Device_ClearMemoryStats_Args {
  PJRT_HEAD;
  PJRT_Device *device;
} PJRT_Device_ClearMemoryStats_Args;

typedef struct PJRT_AsyncTrackingEvent_Destroy_Args {
  PJRT_HEAD;
  PJRT_AsyncTrackingEvent *event;
} PJRT_AsyncTrackingEvent_Destroy_Args;

// Since minor 105 a memory begins with a pointer to these functions: user data under keys.
typedef struct PJRT_Memory_FunctionTable {
  PJRT_HEAD;
  size_t instance_struct_size;
  void *(*get_user_data)(PJRT_Memory *, const void *);
  void (*set_user_data)(PJRT_Memory *, const void *, void *, void (*set_user_data)(void *));
} PJRT_Memory_FunctionTable;

struct PJRT_Memory {
  const PJRT_Memory_FunctionTable *vtable;
};

typedef struct PJRT_Memory_Id_Args {
  PJRT_HEAD;
  PJRT_Memory *memory;
  int id;  // out
} PJRT_Memory_Id_Args;

// The kind of a memory: "device", "pinned_host" or "unpinned_host" in minipod.
typedef struct PJRT_Memory_Kind_Args {
  PJRT_HEAD;
  PJRT_Memory *memory;
  const char *kind;  // out
  size_t kind_size;  // out
} PJRT_Memory_Kind_Args;

// A number for the kind, the same for all devices.
typedef struct PJRT_Memory_Kind_Id_Args {
  PJRT_HEAD;
  PJRT_Memory *memory;
  int kind_id;  // out
} PJRT_Memory_Kind_Id_Args;

typedef struct PJRT_Memory_DebugString_Args {
  PJRT_HEAD;
  PJRT_Memory *memory;
  const char *debug_string;  // out
  size_t debug_string_size;  // out
} PJRT_Memory_DebugString_Args;

typedef struct PJRT_Memory_ToString_Args {
  PJRT_HEAD;
  PJRT_Memory *memory;
  const char *to_string;  // out
  size_t to_string_size;  // out
} PJRT_Memory_ToString_Args;

typedef struct PJRT_Memory_AddressableByDevices_Args {
  PJRT_HEAD;
  PJRT_Memory *memory;
  PJRT_Device *const *devices;  // out
  size_t num_devices;           // out
} PJRT_Memory_AddressableByDevices_Args;

// Describes devices that need not exist, by a name that the plugin understands.
typedef struct PJRT_TopologyDescription_Create_Args {
  PJRT_HEAD;
  const char *topology_name;
  size_t topology_name_size;
  const PJRT_NamedValue *create_options;
  size_t num_options;
  PJRT_TopologyDescription *topology;  // out
} PJRT_TopologyDescription_Create_Args;

typedef struct PJRT_TopologyDescription_Destroy_Args {
  PJRT_HEAD;
  PJRT_TopologyDescription *topology;
} PJRT_TopologyDescription_Destroy_Args;

typedef struct PJRT_TopologyDescription_PlatformVersion_Args {
  PJRT_HEAD;
  PJRT_TopologyDescription *topology;
  const char *platform_version;  // out
  size_t platform_version_size;  // out
} PJRT_TopologyDescription_PlatformVersion_Args;

typedef struct PJRT_TopologyDescription_PlatformName_Args {
  PJRT_HEAD;
  const PJRT_TopologyDescription *topology;
  const char *platform_name;  // out
  size_t platform_name_size;  // out
} PJRT_TopologyDescription_PlatformName_Args;

typedef struct PJRT_TopologyDescription_GetDeviceDescriptions_Args {
  PJRT_HEAD;
  const PJRT_TopologyDescription *topology;
  PJRT_DeviceDescription *const *descriptions;  // out
  size_t num_descriptions;                      // out
} PJRT_TopologyDescription_GetDeviceDescriptions_Args;

// The bytes live until the deleter is called with `serialized_topology`.
typedef struct PJRT_TopologyDescription_Serialize_Args {
  PJRT_HEAD;
  PJRT_TopologyDescription *topology;
  const char *serialized_bytes;                                    // out
  size_t serialized_bytes_size;                                    // out
  PJRT_SerializedTopology *serialized_topology;                    // out
  void (*serialized_topology_deleter)(PJRT_SerializedTopology *);  // out
} PJRT_TopologyDescription_Serialize_Args;

typedef struct PJRT_TopologyDescription_Attributes_Args {
  PJRT_HEAD;
  PJRT_TopologyDescription *topology;
  const PJRT_NamedValue *attributes;  // out
  size_t num_attributes;              // out
} PJRT_TopologyDescription_Attributes_Args;

typedef struct PJRT_TopologyDescription_Deserialize_Args {
  PJRT_HEAD;
  const char *serialized_topology;
  size_t serialized_topology_size;
  PJRT_TopologyDescription *topology;  // out
} PJRT_TopologyDescription_Deserialize_Args;

// The version becomes part of the keys of compilation caches.
typedef struct PJRT_TopologyDescription_Fingerprint_Args {
  PJRT_HEAD;
  const PJRT_TopologyDescription *topology;
  uint64_t fingerprint;  // out
} PJRT_TopologyDescription_Fingerprint_Args;

typedef struct PJRT_TopologyDescription_GetMemorySpaceKindIds_Args {
  PJRT_HEAD;
  const PJRT_TopologyDescription *topology;
  const int *memory_space_kind_ids;  // out
  size_t num_memory_space_kind_ids;  // out
} PJRT_TopologyDescription_GetMemorySpaceKindIds_Args;

#endif  // MINIPOD_PJRT_C_API_C_API_CLIENT_H_
