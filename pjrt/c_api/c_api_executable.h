// The PJRT C API: programs, executables, execution. Include pjrt/c_api/c_api.h, not this file.
#ifndef MINIPOD_PJRT_C_API_C_API_EXECUTABLE_H_
#define MINIPOD_PJRT_C_API_C_API_EXECUTABLE_H_

#include "pjrt/c_api/c_api_buffer.h"

typedef struct PJRT_Executable PJRT_Executable;
typedef struct PJRT_LoadedExecutable PJRT_LoadedExecutable;
typedef struct PJRT_ExecuteContext PJRT_ExecuteContext;
typedef struct PJRT_MultiSlice_Config PJRT_MultiSlice_Config;
typedef PJRT_Serialized PJRT_SerializedExecutable;
typedef PJRT_Serialized PJRT_SerializedCompileOptions;
typedef PJRT_Serialized PJRT_DeviceAssignmentSerialized;

// `code` is an input or an output depending on the call. Formats: "mlir", "hlo",
// "hlo_with_config".
typedef struct PJRT_Program {
  PJRT_HEAD;
  char *code;  // in/out
  size_t code_size;
  const char *format;
  size_t format_size;
} PJRT_Program;

// Compiles and loads a program; `compile_options` is a serialized CompileOptionsProto.
typedef struct PJRT_Client_Compile_Args {
  PJRT_HEAD;
  PJRT_Client *client;
  const PJRT_Program *program;
  const char *compile_options;
  size_t compile_options_size;
  PJRT_LoadedExecutable *executable;  // out
} PJRT_Client_Compile_Args;

// Makes a compiled executable runnable on the client.
typedef struct PJRT_Client_Load_Args {
  PJRT_HEAD;
  PJRT_Client *client;
  PJRT_Executable *executable;
  const char *compile_options;
  size_t compile_options_size;
  PJRT_LoadedExecutable *loaded_executable;  // out
} PJRT_Client_Load_Args;

// Compiles without needing the devices; `client` may be NULL.
typedef struct PJRT_Compile_Args {
  PJRT_HEAD;
  const PJRT_TopologyDescription *topology;
  const PJRT_Program *program;
  const char *compile_options;
  size_t compile_options_size;
  PJRT_Client *client;
  PJRT_Executable *executable;  // out
} PJRT_Compile_Args;

typedef PJRT_Error *(*PJRT_SendCallback)(PJRT_Chunk *chunk, PJRT_CallbackError *callback_error,
                                         size_t total_size_in_bytes, bool done, void *user_arg);
typedef void (*PJRT_RecvCallback)(PJRT_CopyToDeviceStream *stream, void *user_arg);
typedef void (*PJRT_HloOutputCallback)(int64_t, int64_t, const void *, const int64_t *, size_t,
                                       PJRT_Buffer_Type, int64_t, void *);

// Called when a program sends data to the host on the channel.
typedef struct PJRT_SendCallbackInfo {
  int64_t channel_id;
  void *user_arg;
  PJRT_SendCallback send_callback;
} PJRT_SendCallbackInfo;

// Called when a program reads data from the host on the channel.
typedef struct PJRT_RecvCallbackInfo {
  int64_t channel_id;
  void *user_arg;
  PJRT_RecvCallback recv_callback;
} PJRT_RecvCallbackInfo;

typedef struct PJRT_HloOutputCallbackInfo {
  void *user_arg;
  PJRT_HloOutputCallback callback;
  int64_t callback_id;
  size_t num_operands;
} PJRT_HloOutputCallbackInfo;

typedef struct PJRT_ExecuteContext_Create_Args {
  PJRT_HEAD;
  PJRT_ExecuteContext *context;  // out
} PJRT_ExecuteContext_Create_Args;

typedef struct PJRT_ExecuteContext_Destroy_Args {
  PJRT_HEAD;
  PJRT_ExecuteContext *context;
} PJRT_ExecuteContext_Destroy_Args;

// This struct has grown often: it had 80 bytes up to minor 68, then 112, 120 and 121, and now 144.
typedef struct PJRT_ExecuteOptions {
  PJRT_HEAD;
  PJRT_SendCallbackInfo **send_callbacks;
  PJRT_RecvCallbackInfo **recv_callbacks;
  size_t num_send_ops;
  size_t num_recv_ops;
  int launch_id;
  const int64_t *non_donatable_input_indices;
  size_t num_non_donatable_input_indices;
  PJRT_ExecuteContext *context;
  const char *call_location;                          // minor 81
  size_t num_tasks;                                   // minor 81
  int *task_ids;                                      // minor 81
  int64_t *incarnation_ids;                           // minor 81
  PJRT_MultiSlice_Config *multi_slice_config;         // minor 104
  bool use_major_to_minor_data_layout_for_callbacks;  // minor 108
  PJRT_HloOutputCallbackInfo *hlo_output_callbacks;   // minor 112
  size_t num_hlo_output_callbacks;                    // minor 112
  const PJRT_NamedValue *custom_options;              // minor 116
  size_t num_custom_options;                          // minor 116
} PJRT_ExecuteOptions;

typedef struct PJRT_LoadOptions {
  size_t struct_size;
  const int32_t *computation_origin;
  size_t computation_origin_size;
  PJRT_MultiSlice_Config *multi_slice_config;
} PJRT_LoadOptions;

// The place of a device in a program's grid of replicas and partitions.
typedef struct PJRT_LogicalDeviceIds {
  int replica;
  int partition;
} PJRT_LogicalDeviceIds;

// The result is independent of the loaded executable that it comes from.
typedef struct PJRT_Executable_Destroy_Args {
  PJRT_HEAD;
  PJRT_Executable *executable;
} PJRT_Executable_Destroy_Args;

typedef struct PJRT_Executable_Name_Args {
  PJRT_HEAD;
  PJRT_Executable *executable;
  const char *executable_name;  // out
  size_t executable_name_size;  // out
} PJRT_Executable_Name_Args;

typedef struct PJRT_Executable_NumReplicas_Args {
  PJRT_HEAD;
  PJRT_Executable *executable;
  size_t num_replicas;  // out
} PJRT_Executable_NumReplicas_Args;

typedef struct PJRT_Executable_NumPartitions_Args {
  PJRT_HEAD;
  PJRT_Executable *executable;
  size_t num_partitions;  // out
} PJRT_Executable_NumPartitions_Args;

// Called twice: with `program->code` NULL for the size, and then with memory to fill.
typedef struct PJRT_Executable_OptimizedProgram_Args {
  PJRT_HEAD;
  PJRT_Executable *executable;
  PJRT_Program *program;  // out
} PJRT_Executable_OptimizedProgram_Args;

typedef struct PJRT_Executable_NumOutputs_Args {
  PJRT_HEAD;
  PJRT_Executable *executable;
  size_t num_outputs;  // out
} PJRT_Executable_NumOutputs_Args;

typedef struct PJRT_Executable_SizeOfGeneratedCodeInBytes_Args {
  PJRT_HEAD;
  PJRT_Executable *executable;
  int64_t size_in_bytes;  // out
} PJRT_Executable_SizeOfGeneratedCodeInBytes_Args;

// The fingerprint is equal for equal programs and options.
typedef struct PJRT_Executable_Fingerprint_Args {
  PJRT_HEAD;
  PJRT_Executable *executable;
  const char *executable_fingerprint;  // out
  size_t executable_fingerprint_size;  // out
} PJRT_Executable_Fingerprint_Args;

// Estimates under names such as "flops"; they live as long as the executable.
typedef struct PJRT_Executable_GetCostAnalysis_Args {
  PJRT_HEAD;
  PJRT_Executable *executable;
  size_t num_properties;              // out
  const PJRT_NamedValue *properties;  // out
} PJRT_Executable_GetCostAnalysis_Args;

// How many bytes the program needs on one device, and on its host.
typedef struct PJRT_Executable_GetCompiledMemoryStats_Args {
  PJRT_HEAD;
  PJRT_Executable *executable;
  int64_t generated_code_size_in_bytes;       // out
  int64_t argument_size_in_bytes;             // out
  int64_t output_size_in_bytes;               // out
  int64_t alias_size_in_bytes;                // out
  int64_t temp_size_in_bytes;                 // out
  int64_t host_generated_code_size_in_bytes;  // out
  int64_t host_argument_size_in_bytes;        // out
  int64_t host_output_size_in_bytes;          // out
  int64_t host_alias_size_in_bytes;           // out
  int64_t host_temp_size_in_bytes;            // out
  int64_t peak_memory_in_bytes;               // out, minor 81
  int64_t total_size_in_bytes;                // out, minor 90
  int64_t total_allocation_bytes;             // out, minor 104
  int64_t indefinite_allocations;             // out, minor 104
  int64_t peak_unpadded_heap_bytes;           // out, minor 104
} PJRT_Executable_GetCompiledMemoryStats_Args;

typedef struct PJRT_Executable_OutputElementTypes_Args {
  PJRT_HEAD;
  PJRT_Executable *executable;
  PJRT_Buffer_Type *output_types;  // out
  size_t num_output_types;         // out
} PJRT_Executable_OutputElementTypes_Args;

// The dimensions of all outputs, one after the other, and how many each output has.
typedef struct PJRT_Executable_OutputDimensions_Args {
  PJRT_HEAD;
  PJRT_Executable *executable;
  size_t num_outputs;
  const int64_t *dims;      // out
  const size_t *dim_sizes;  // out
} PJRT_Executable_OutputDimensions_Args;

// The kinds of memory of the outputs. They must agree with the buffers that
// PJRT_LoadedExecutable_Execute makes.
typedef struct PJRT_Executable_OutputMemoryKinds_Args {
  PJRT_HEAD;
  PJRT_Executable *executable;
  size_t num_outputs;
  const char *const *memory_kinds;  // out
  const size_t *memory_kind_sizes;  // out
} PJRT_Executable_OutputMemoryKinds_Args;

// The bytes live until the deleter is called with `serialized_executable`.
typedef struct PJRT_Executable_Serialize_Args {
  PJRT_HEAD;
  const PJRT_Executable *executable;
  const char *serialized_bytes;  // out
  size_t serialized_bytes_size;  // out
  PJRT_SerializedExecutable *serialized_executable;
  void (*serialized_executable_deleter)(PJRT_SerializedExecutable *);  // out
} PJRT_Executable_Serialize_Args;

// Overriding options of size 0 override nothing.
typedef struct PJRT_Executable_DeserializeAndLoad_Args {
  PJRT_HEAD;
  PJRT_Client *client;
  const char *serialized_executable;
  size_t serialized_executable_size;
  PJRT_LoadedExecutable *loaded_executable;           // out
  const char *overridden_serialized_compile_options;  // minor 81
  size_t overridden_serialized_compile_options_size;  // minor 81
  PJRT_LoadOptions *load_options;                     // minor 111
} PJRT_Executable_DeserializeAndLoad_Args;

// The options of the compilation, as a serialized CompileOptionsProto.
typedef struct PJRT_Executable_GetCompileOptions_Args {
  PJRT_HEAD;
  PJRT_Executable *executable;
  const char *serialized_bytes;  // out
  size_t serialized_bytes_size;  // out
  PJRT_SerializedCompileOptions *serialized_compile_options;
  void (*serialized_compile_options_deleter)(PJRT_SerializedCompileOptions *);  // out
} PJRT_Executable_GetCompileOptions_Args;

typedef struct PJRT_Executable_ParameterMemoryKinds_Args {
  PJRT_HEAD;
  PJRT_Executable *executable;
  size_t num_parameters;
  const char *const *memory_kinds;  // out
  const size_t *memory_kind_sizes;  // out
} PJRT_Executable_ParameterMemoryKinds_Args;

typedef struct PJRT_LoadedExecutable_Destroy_Args {
  PJRT_HEAD;
  PJRT_LoadedExecutable *executable;
} PJRT_LoadedExecutable_Destroy_Args;

// The caller owns the executable that it gets.
typedef struct PJRT_LoadedExecutable_GetExecutable_Args {
  PJRT_HEAD;
  PJRT_LoadedExecutable *loaded_executable;
  PJRT_Executable *executable;  // out
} PJRT_LoadedExecutable_GetExecutable_Args;

// The devices of this process, in the order of the argument lists.
typedef struct PJRT_LoadedExecutable_AddressableDevices_Args {
  PJRT_HEAD;
  PJRT_LoadedExecutable *executable;
  PJRT_Device *const *addressable_devices;  // out
  size_t num_addressable_devices;           // out
} PJRT_LoadedExecutable_AddressableDevices_Args;

// Frees what the executable needs to run: further launches are refused.
typedef struct PJRT_LoadedExecutable_Delete_Args {
  PJRT_HEAD;
  PJRT_LoadedExecutable *executable;
} PJRT_LoadedExecutable_Delete_Args;

typedef struct PJRT_LoadedExecutable_IsDeleted_Args {
  PJRT_HEAD;
  PJRT_LoadedExecutable *executable;
  bool is_deleted;  // out
} PJRT_LoadedExecutable_IsDeleted_Args;

// argument_lists[device][argument], output_lists[device][output]; device_complete_events may be
// NULL; execute_device chooses one device of a portable executable.
typedef struct PJRT_LoadedExecutable_Execute_Args {
  PJRT_HEAD;
  PJRT_LoadedExecutable *executable;
  PJRT_ExecuteOptions *options;
  PJRT_Buffer *const *const *argument_lists;
  size_t num_devices;
  size_t num_args;
  PJRT_Buffer **const *output_lists;    // in/out
  PJRT_Event **device_complete_events;  // in/out
  PJRT_Device *execute_device;
} PJRT_LoadedExecutable_Execute_Args;

typedef struct PJRT_LoadedExecutable_Fingerprint_Args {
  PJRT_HEAD;
  PJRT_LoadedExecutable *executable;
  const char *executable_fingerprint;  // out
  size_t executable_fingerprint_size;  // out
} PJRT_LoadedExecutable_Fingerprint_Args;

// The device assignment, as a serialized DeviceAssignmentProto; no bytes mean "any device".
typedef struct PJRT_LoadedExecutable_GetDeviceAssignment_Args {
  PJRT_HEAD;
  PJRT_LoadedExecutable *executable;
  const char *serialized_bytes;  // out
  size_t serialized_bytes_size;  // out
  PJRT_DeviceAssignmentSerialized *serialized_device_assignment;
  void (*serialized_device_assignment_deleter)(PJRT_DeviceAssignmentSerialized *);  // out
} PJRT_LoadedExecutable_GetDeviceAssignment_Args;

// The logical ids, in the order of the addressable devices; the array lives as long as the
// executable.
typedef struct PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args {
  PJRT_HEAD;
  PJRT_LoadedExecutable *executable;
  PJRT_LogicalDeviceIds *addressable_device_logical_ids;  // out
  size_t num_addressable_device_logical_ids;              // out
} PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args;

#endif  // MINIPOD_PJRT_C_API_C_API_EXECUTABLE_H_
