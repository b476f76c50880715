// The PJRT C API: the extensions that minipod offers (custom partitioner 2, layouts 4, FFI 5,
// memory descriptions 6, cross-host transfers 12, shardings 19, ABI versions 20, host memory 23).
// The profiler and the topology of TPUs have files of their own.
#ifndef MINIPOD_PJRT_C_API_C_API_EXT_H_
#define MINIPOD_PJRT_C_API_C_API_EXT_H_

#include "pjrt/c_api/c_api.h"

typedef struct PJRT_Layouts_MemoryLayout PJRT_Layouts_MemoryLayout;
typedef struct PJRT_Layouts_SerializedLayout PJRT_Layouts_SerializedLayout;
typedef struct PJRT_MemoryDescription PJRT_MemoryDescription;

typedef struct PJRT_Layouts_MemoryLayout_Destroy_Args {
  PJRT_HEAD;
  PJRT_Layouts_MemoryLayout *layout;
} PJRT_Layouts_MemoryLayout_Destroy_Args;

// The layout as text, minor to major: "{1,0}".
typedef struct PJRT_Layouts_MemoryLayout_Serialize_Args {
  PJRT_HEAD;
  PJRT_Layouts_MemoryLayout *layout;
  const char *serialized_bytes;  // out
  size_t serialized_bytes_size;  // out
  PJRT_Layouts_SerializedLayout *serialized_layout;
  void (*serialized_layout_deleter)(PJRT_Layouts_SerializedLayout *);  // out
} PJRT_Layouts_MemoryLayout_Serialize_Args;

typedef struct PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args {
  PJRT_HEAD;
  PJRT_Buffer *buffer;
  PJRT_Layouts_MemoryLayout *layout;  // out
} PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args;

typedef struct PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args {
  PJRT_HEAD;
  PJRT_Client *client;
  PJRT_Buffer_Type type;
  const int64_t *dims;
  size_t num_dims;
  PJRT_Layouts_MemoryLayout *layout;  // out
} PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args;

typedef struct PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args {
  PJRT_HEAD;
  PJRT_TopologyDescription *topology_description;
  PJRT_Buffer_Type type;
  const int64_t *dims;
  size_t num_dims;
  PJRT_Layouts_MemoryLayout *layout;  // out
} PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args;

// The layouts live as long as the executable.
typedef struct PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args {
  PJRT_HEAD;
  PJRT_Executable *executable;
  size_t num_outputs;                   // out
  PJRT_Layouts_MemoryLayout **layouts;  // out
} PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args;

// The memories that a device of a topology has.
typedef struct PJRT_DeviceDescription_MemoryDescriptions_Args {
  PJRT_HEAD;
  PJRT_DeviceDescription *device_description;
  const PJRT_MemoryDescription *const *memory_descriptions;  // out
  size_t num_memory_descriptions;                            // out
  size_t default_memory_index;                               // out
} PJRT_DeviceDescription_MemoryDescriptions_Args;

typedef struct PJRT_MemoryDescription_Kind_Args {
  PJRT_HEAD;
  const PJRT_MemoryDescription *memory_description;
  const char *kind;  // out
  size_t kind_size;  // out
  int kind_id;       // out
} PJRT_MemoryDescription_Kind_Args;

typedef struct PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args {
  PJRT_HEAD;
  PJRT_Executable *executable;
  size_t num_parameters;                // out
  PJRT_Layouts_MemoryLayout **layouts;  // out
} PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args;

// The shardings of the parameters, as serialized OpSharding messages, which live as long as the
// executable. NULL: the program has none.
typedef struct PJRT_Shardings_PJRT_Executable_ParameterShardings_Args {
  PJRT_HEAD;
  PJRT_Executable *executable;
  size_t num_parameters;         // out
  const char *const *shardings;  // out
  const size_t *sharding_sizes;  // out
} PJRT_Shardings_PJRT_Executable_ParameterShardings_Args;

// The shardings of the outputs in the same form, one for each output.
typedef struct PJRT_Shardings_PJRT_Executable_OutputShardings_Args {
  PJRT_HEAD;
  PJRT_Executable *executable;
  size_t num_outputs;            // out
  const char *const *shardings;  // out
  const size_t *sharding_sizes;  // out
} PJRT_Shardings_PJRT_Executable_OutputShardings_Args;

// ---- Custom partitioners; the partitioner sets "out" fields ----

typedef struct JAX_CustomCallPartitioner_string {
  const char *data;
  size_t size;
} JAX_CustomCallPartitioner_string;

typedef struct JAX_CustomCallPartitioner_aval {
  JAX_CustomCallPartitioner_string shape;  // ShapeProto
  bool has_sharding;
  JAX_CustomCallPartitioner_string sharding;  // OpSharding
} JAX_CustomCallPartitioner_aval;

typedef struct JAX_CustomCallPartitioner_version_and_error {
  int64_t api_version;
  void *data;                                  // out
  void (*cleanup_fn)(void *data);              // out; all other results live until it is called
  bool has_error;                              // out
  PJRT_Error_Code code;                        // out
  JAX_CustomCallPartitioner_string error_msg;  // out
} JAX_CustomCallPartitioner_version_and_error;

typedef struct JAX_CustomCallPartitioner_Partition_Args {
  JAX_CustomCallPartitioner_version_and_error header;
  size_t num_args;
  JAX_CustomCallPartitioner_aval *op_args;
  JAX_CustomCallPartitioner_aval op_result;
  JAX_CustomCallPartitioner_string backend_config;
  JAX_CustomCallPartitioner_string mlir_module;      // out
  JAX_CustomCallPartitioner_string *args_sharding;   // out, [num_args]
  JAX_CustomCallPartitioner_string result_sharding;  // out
} JAX_CustomCallPartitioner_Partition_Args;

// The functions for GSPMD's propagation are not called: Shardy's propagation uses the rule in the
// call.
typedef struct JAX_CustomCallPartitioner_Callbacks JAX_CustomCallPartitioner_Callbacks;
struct JAX_CustomCallPartitioner_Callbacks {
  int64_t version;
  void *private_data;
  void (*dtor)(JAX_CustomCallPartitioner_Callbacks *callbacks);
  void (*partition)(JAX_CustomCallPartitioner_Callbacks *callbacks,
                    JAX_CustomCallPartitioner_Partition_Args *args);
  void (*infer_sharding)(void);
  void (*propagate_user_sharding)(void);
  bool can_side_effecting_have_replicated_sharding;
};

// Without an extension_start, like the next one.
typedef struct PJRT_Register_Custom_Partitioner_Args {
  size_t struct_size;
  const char *name;
  size_t name_size;
  JAX_CustomCallPartitioner_Callbacks *callbacks;  // ownership passes to the plugin
} PJRT_Register_Custom_Partitioner_Args;

typedef struct PJRT_Register_Batch_Partitionable_Args {
  size_t struct_size;
  const char *name;
  size_t name_size;
} PJRT_Register_Batch_Partitionable_Args;

typedef struct PJRT_Custom_Partitioner_Extension {
  PJRT_Extension_Base base;
  PJRT_Error *(*register_custom_partitioner)(PJRT_Register_Custom_Partitioner_Args *args);
  PJRT_Error *(*register_batch_partitionable)(PJRT_Register_Batch_Partitionable_Args *args);
} PJRT_Custom_Partitioner_Extension;

// ---- Foreign functions ----

// The deleter of objects of a type of user data or state; the other functions are not used yet.
typedef struct PJRT_FFI_Type_Info {
  void (*deleter)(void *object);
  void (*serialize)(void);
  void (*deserialize)(void);
} PJRT_FFI_Type_Info;

typedef struct PJRT_FFI_Type_Register_Args {
  PJRT_HEAD;
  const char *type_name;
  size_t type_name_size;
  int64_t type_id;  // in and out; 0: assign an id
  PJRT_FFI_Type_Info *type_info;
} PJRT_FFI_Type_Register_Args;

typedef struct PJRT_FFI_UserData {
  int64_t type_id;
  void *data;
} PJRT_FFI_UserData;

typedef struct PJRT_FFI_UserData_Add_Args {
  PJRT_HEAD;
  PJRT_ExecuteContext *context;
  PJRT_FFI_UserData user_data;
} PJRT_FFI_UserData_Add_Args;

typedef enum PJRT_FFI_Handler_TraitsBits {
  PJRT_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE = 1,
} PJRT_FFI_Handler_TraitsBits;

// Without an extension_start, unlike all others.
typedef struct PJRT_FFI_Register_Handler_Args {
  size_t struct_size;
  const char *target_name;
  size_t target_name_size;
  void *handler;  // XLA_FFI_Handler *
  const char *platform_name;
  size_t platform_name_size;
  PJRT_FFI_Handler_TraitsBits traits;
} PJRT_FFI_Register_Handler_Args;

typedef struct PJRT_Layouts_Extension {
  PJRT_Extension_Base base;
  PJRT_Error *(*PJRT_Layouts_MemoryLayout_Destroy)(PJRT_Layouts_MemoryLayout_Destroy_Args *args);
  PJRT_Error *(*PJRT_Layouts_MemoryLayout_Serialize)(
      PJRT_Layouts_MemoryLayout_Serialize_Args *args);
  PJRT_Error *(*PJRT_Layouts_PJRT_Client_GetDefaultLayout)(
      PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args *args);
  PJRT_Error *(*PJRT_Layouts_PJRT_Buffer_MemoryLayout)(
      PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args *args);
  PJRT_Error *(*PJRT_Layouts_PJRT_Topology_GetDefaultLayout)(
      PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args *args);
  PJRT_Error *(*PJRT_Layouts_PJRT_Executable_GetOutputLayouts)(
      PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args *args);
  PJRT_Error *(*PJRT_Layouts_PJRT_Executable_GetParameterLayouts)(
      PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args *args);  // minor 104
} PJRT_Layouts_Extension;

typedef struct PJRT_FFI_Extension {
  PJRT_Extension_Base base;
  PJRT_Error *(*type_register)(PJRT_FFI_Type_Register_Args *args);
  PJRT_Error *(*user_data_add)(PJRT_FFI_UserData_Add_Args *args);
  PJRT_Error *(*register_handler)(PJRT_FFI_Register_Handler_Args *args);
} PJRT_FFI_Extension;

typedef struct PJRT_MemoryDescriptions_Extension {
  PJRT_Extension_Base base;
  PJRT_Error *(*PJRT_DeviceDescription_MemoryDescriptions)(
      PJRT_DeviceDescription_MemoryDescriptions_Args *args);
  PJRT_Error *(*PJRT_MemoryDescription_Kind)(PJRT_MemoryDescription_Kind_Args *args);
} PJRT_MemoryDescriptions_Extension;

typedef struct PJRT_Shardings_Extension {
  PJRT_Extension_Base base;
  PJRT_Error *(*PJRT_Shardings_PJRT_Executable_ParameterShardings)(
      PJRT_Shardings_PJRT_Executable_ParameterShardings_Args *args);
  PJRT_Error *(*PJRT_Shardings_PJRT_Executable_OutputShardings)(
      PJRT_Shardings_PJRT_Executable_OutputShardings_Args *args);
} PJRT_Shardings_Extension;

// ---- Versions of stored executables ----

typedef struct PJRT_RuntimeAbiVersion PJRT_RuntimeAbiVersion;
typedef struct PJRT_ExecutableAbiVersion PJRT_ExecutableAbiVersion;
typedef PJRT_Serialized PJRT_SerializedProto;

// None of these has an extension_start.
typedef struct PJRT_Client_RuntimeAbiVersion_Args {
  size_t struct_size;
  PJRT_Client *client;
  PJRT_RuntimeAbiVersion *abi_version;  // out, the caller's
} PJRT_Client_RuntimeAbiVersion_Args;

typedef struct PJRT_Executable_GetAbiVersion_Args {
  size_t struct_size;
  PJRT_Executable *executable;
  PJRT_ExecutableAbiVersion *abi_version;  // out, the caller's
} PJRT_Executable_GetAbiVersion_Args;

typedef struct PJRT_RuntimeAbiVersion_IsCompatibleWithRuntime_Args {
  size_t struct_size;
  const PJRT_RuntimeAbiVersion *abi_version;
  const PJRT_RuntimeAbiVersion *other_abi_version;
} PJRT_RuntimeAbiVersion_IsCompatibleWithRuntime_Args;

typedef struct PJRT_RuntimeAbiVersion_IsCompatibleWithExecutable_Args {
  size_t struct_size;
  const PJRT_RuntimeAbiVersion *abi_version;
  const PJRT_ExecutableAbiVersion *executable_abi_version;
} PJRT_RuntimeAbiVersion_IsCompatibleWithExecutable_Args;

typedef struct PJRT_RuntimeAbiVersion_Destroy_Args {
  size_t struct_size;
  PJRT_RuntimeAbiVersion *abi_version;
} PJRT_RuntimeAbiVersion_Destroy_Args;

typedef struct PJRT_RuntimeAbiVersion_ToProto_Args {
  size_t struct_size;
  const PJRT_RuntimeAbiVersion *abi_version;
  const char *serialized_proto;                                    // out
  size_t serialized_proto_size;                                    // out
  PJRT_SerializedProto *serialized_proto_holder;                   // out
  void (*serialized_proto_deleter)(PJRT_SerializedProto *holder);  // out
} PJRT_RuntimeAbiVersion_ToProto_Args;

typedef struct PJRT_RuntimeAbiVersion_PlatformId_Args {
  size_t struct_size;
  const PJRT_RuntimeAbiVersion *abi_version;
  uint64_t platform_id;  // out
} PJRT_RuntimeAbiVersion_PlatformId_Args;

typedef struct PJRT_RuntimeAbiVersion_FromProto_Args {
  size_t struct_size;
  const char *serialized_proto;
  size_t serialized_proto_size;
  PJRT_RuntimeAbiVersion *abi_version;  // out, the caller's
} PJRT_RuntimeAbiVersion_FromProto_Args;

typedef struct PJRT_ExecutableAbiVersion_Destroy_Args {
  size_t struct_size;
  PJRT_ExecutableAbiVersion *abi_version;
} PJRT_ExecutableAbiVersion_Destroy_Args;

typedef struct PJRT_ExecutableAbiVersion_ToProto_Args {
  size_t struct_size;
  const PJRT_ExecutableAbiVersion *abi_version;
  const char *serialized_proto;                                    // out
  size_t serialized_proto_size;                                    // out
  PJRT_SerializedProto *serialized_proto_holder;                   // out
  void (*serialized_proto_deleter)(PJRT_SerializedProto *holder);  // out
} PJRT_ExecutableAbiVersion_ToProto_Args;

typedef struct PJRT_ExecutableAbiVersion_PlatformId_Args {
  size_t struct_size;
  const PJRT_ExecutableAbiVersion *abi_version;
  uint64_t platform_id;  // out
} PJRT_ExecutableAbiVersion_PlatformId_Args;

typedef struct PJRT_ExecutableAbiVersion_FromProto_Args {
  size_t struct_size;
  const char *serialized_proto;
  size_t serialized_proto_size;
  PJRT_ExecutableAbiVersion *abi_version;  // out, the caller's
} PJRT_ExecutableAbiVersion_FromProto_Args;

typedef struct PJRT_AbiVersion_Extension {
  PJRT_Extension_Base base;
  PJRT_Error *(*client_runtime_abi_version)(PJRT_Client_RuntimeAbiVersion_Args *args);
  PJRT_Error *(*executable_get_abi_version)(PJRT_Executable_GetAbiVersion_Args *args);
  PJRT_Error *(*runtime_abi_version_destroy)(PJRT_RuntimeAbiVersion_Destroy_Args *args);
  PJRT_Error *(*runtime_abi_version_is_compatible_with_runtime)(
      PJRT_RuntimeAbiVersion_IsCompatibleWithRuntime_Args *args);
  PJRT_Error *(*runtime_abi_version_is_compatible_with_executable)(
      PJRT_RuntimeAbiVersion_IsCompatibleWithExecutable_Args *args);
  PJRT_Error *(*runtime_abi_version_to_proto)(PJRT_RuntimeAbiVersion_ToProto_Args *args);
  PJRT_Error *(*runtime_abi_version_platform_id)(PJRT_RuntimeAbiVersion_PlatformId_Args *args);
  PJRT_Error *(*executable_abi_version_destroy)(PJRT_ExecutableAbiVersion_Destroy_Args *args);
  PJRT_Error *(*executable_abi_version_to_proto)(PJRT_ExecutableAbiVersion_ToProto_Args *args);
  PJRT_Error *(*executable_abi_version_platform_id)(
      PJRT_ExecutableAbiVersion_PlatformId_Args *args);
  PJRT_Error *(*runtime_abi_version_from_proto)(PJRT_RuntimeAbiVersion_FromProto_Args *args);
  PJRT_Error *(*executable_abi_version_from_proto)(PJRT_ExecutableAbiVersion_FromProto_Args *args);
} PJRT_AbiVersion_Extension;

// Buffers between the devices of different processes (version 5: jaxlib 0.10.2 to 0.12.0.1, whose
// ids of devices are all of 32 bits). Both sides identify a transfer by its key and both devices.
// Version 8 of the extension: the processes that the caller takes part with.
#define PJRT_TRANSFERS_TASKS                                  \
  size_t num_tasks;              /* version 8 */              \
  const int *task_ids;           /* version 8, [num_tasks] */ \
  const int64_t *incarnation_ids /* version 8, [num_tasks] */

typedef struct PJRT_Transfers_PJRT_Client_CrossHostSendBuffers_Args {
  PJRT_HEAD;
  PJRT_Client *client;
  size_t num_buffers;
  PJRT_Buffer **buffers;
  const int32_t *dst_global_device_ids;  // [num_buffers]
  const int64_t *transfer_keys;          // [num_buffers]
  PJRT_Event **send_events;              // out, [num_buffers], the array is the caller's
  PJRT_TRANSFERS_TASKS;
} PJRT_Transfers_PJRT_Client_CrossHostSendBuffers_Args;

typedef struct PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers_Args {
  PJRT_HEAD;
  PJRT_Client *client;
  size_t num_shapes;
  size_t *shape_num_dims;
  const int64_t **num_dims;  // the dimensions
  PJRT_Buffer_Type *element_types;
  PJRT_Buffer_MemoryLayout **layouts;
  PJRT_Device *device;
  const int32_t *src_global_device_ids;  // [num_shapes]
  const int64_t *transfer_keys;          // [num_shapes]
  PJRT_Buffer **buffers;                 // out, [num_shapes], the array is the caller's
  PJRT_TRANSFERS_TASKS;
} PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers_Args;

// Tells how a cancellation has ended; the error is the caller's.
typedef void PJRT_Transfers_CrossHostOnCanceledCallback(PJRT_Error *error, void *user_arg);

// Ends the wait for the contents of a receive buffer, with an error.
typedef void PJRT_Transfers_CrossHostSendCancelNotifier(
    const char *serialized_descriptor, size_t serialized_descriptor_size, PJRT_Error_Code reason,
    const char *error_message, size_t error_message_size,
    PJRT_Transfers_CrossHostOnCanceledCallback *on_canceled, void *on_canceled_user_arg,
    void *user_arg);

typedef struct PJRT_Transfers_CrossHostRecvNotifierInfo {
  void *user_arg;
  // Called once; everything is the caller's.
  void (*notifier)(PJRT_Error *error, const char **serialized_descriptors,
                   size_t *descriptors_sizes, size_t num_descriptors, void *user_arg,
                   PJRT_Transfers_CrossHostSendCancelNotifier *cancel_notifier,
                   void *cancel_notifier_user_arg);
} PJRT_Transfers_CrossHostRecvNotifierInfo;

// The older form: the receiver makes descriptors of its buffers, which the client brings to the
// sender.
typedef struct PJRT_Transfers_PJRT_Client_MakeCrossHostReceiveBuffers_Args {
  PJRT_HEAD;
  PJRT_Client *client;
  size_t num_shapes;
  size_t *shape_num_dims;
  const int64_t **num_dims;
  PJRT_Buffer_Type *element_types;
  PJRT_Buffer_MemoryLayout **layouts;
  PJRT_Device *device;
  PJRT_Transfers_CrossHostRecvNotifierInfo notifier;
  PJRT_Buffer **buffers;       // out, [num_shapes], the array is the caller's
  size_t num_buffers;          // out
  bool allow_cancel_notifier;  // version 7; without it the cancel notifier has no effect
} PJRT_Transfers_PJRT_Client_MakeCrossHostReceiveBuffers_Args;

typedef struct PJRT_Transfers_CrossHostRemoteSendCallbackInfo {
  void *user_arg;
  void (*on_done)(PJRT_Error *error, bool sends_were_enqueued, void *user_arg);
} PJRT_Transfers_CrossHostRemoteSendCallbackInfo;

typedef struct PJRT_Transfers_PJRT_Buffer_CopyToRemoteDevice_Args {
  PJRT_HEAD;
  PJRT_Buffer *buffer;
  PJRT_Event *event;  // when the descriptor can be read; NULL: at once. The function owns it
  char **serialized_descriptor;
  size_t *serialized_descriptor_size;
  PJRT_Transfers_CrossHostRemoteSendCallbackInfo on_done;
  // Version 6: called when the two fields above are not read any more.
  void (*descriptor_destructor)(char **descriptor_data, size_t *descriptor_size);
} PJRT_Transfers_PJRT_Buffer_CopyToRemoteDevice_Args;

typedef struct PJRT_CrossHostTransfers_Extension {
  PJRT_Extension_Base base;
  PJRT_Error *(*make_cross_host_receive_buffers)(
      PJRT_Transfers_PJRT_Client_MakeCrossHostReceiveBuffers_Args *args);
  void (*copy_to_remote_device)(PJRT_Transfers_PJRT_Buffer_CopyToRemoteDevice_Args *args);
  PJRT_Error *(*cross_host_receive_buffers)(
      PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers_Args *args);
  PJRT_Error *(*cross_host_send_buffers)(
      PJRT_Transfers_PJRT_Client_CrossHostSendBuffers_Args *args);
} PJRT_CrossHostTransfers_Extension;

// Host memory; `deleter`(ptr, deleter_arg) frees it.
typedef struct PJRT_HostMemoryAllocator_Allocate_Args {
  PJRT_HEAD;
  PJRT_Client *client;
  size_t size;
  int numa_node;                          // the preferred one; negative: any
  uint8_t *ptr;                           // out
  void (*deleter)(void *ptr, void *arg);  // out
  void *deleter_arg;                      // out
} PJRT_HostMemoryAllocator_Allocate_Args;

typedef struct PJRT_HostMemoryAllocator_Extension {
  PJRT_Extension_Base base;
  PJRT_Error *(*allocate)(PJRT_HostMemoryAllocator_Allocate_Args *args);
} PJRT_HostMemoryAllocator_Extension;

#endif  // MINIPOD_PJRT_C_API_C_API_EXT_H_
