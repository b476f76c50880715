// The PJRT C API: element types, layouts, buffers, transfers. Include pjrt/c_api/c_api.h, not this
// file.
#ifndef MINIPOD_PJRT_C_API_C_API_BUFFER_H_
#define MINIPOD_PJRT_C_API_C_API_BUFFER_H_

#include "pjrt/c_api/c_api_client.h"

typedef struct PJRT_Buffer PJRT_Buffer;
typedef struct PJRT_FulfillAliasBufferCallback PJRT_FulfillAliasBufferCallback;
typedef struct PJRT_AsyncHostToDeviceTransferManager PJRT_AsyncHostToDeviceTransferManager;
typedef struct PJRT_CopyToDeviceStream PJRT_CopyToDeviceStream;

typedef enum PJRT_Buffer_Type {
  PJRT_Buffer_Type_INVALID = 0,
  PJRT_Buffer_Type_PRED = 1,
  PJRT_Buffer_Type_S8 = 2,
  PJRT_Buffer_Type_S16 = 3,
  PJRT_Buffer_Type_S32 = 4,
  PJRT_Buffer_Type_S64 = 5,
  PJRT_Buffer_Type_U8 = 6,
  PJRT_Buffer_Type_U16 = 7,
  PJRT_Buffer_Type_U32 = 8,
  PJRT_Buffer_Type_U64 = 9,
  PJRT_Buffer_Type_F16 = 10,
  PJRT_Buffer_Type_F32 = 11,
  PJRT_Buffer_Type_F64 = 12,
  PJRT_Buffer_Type_BF16 = 13,
  PJRT_Buffer_Type_C64 = 14,
  PJRT_Buffer_Type_C128 = 15,
  PJRT_Buffer_Type_F8E5M2 = 16,
  PJRT_Buffer_Type_F8E4M3FN = 17,
  PJRT_Buffer_Type_F8E4M3B11FNUZ = 18,
  PJRT_Buffer_Type_F8E5M2FNUZ = 19,
  PJRT_Buffer_Type_F8E4M3FNUZ = 20,
  PJRT_Buffer_Type_S4 = 21,
  PJRT_Buffer_Type_U4 = 22,
  PJRT_Buffer_Type_TOKEN = 23,
  PJRT_Buffer_Type_S2 = 24,
  PJRT_Buffer_Type_U2 = 25,
  PJRT_Buffer_Type_F8E4M3 = 26,
  PJRT_Buffer_Type_F8E3M4 = 27,
  PJRT_Buffer_Type_F8E8M0FNU = 28,
  PJRT_Buffer_Type_F4E2M1FN = 29,
  PJRT_Buffer_Type_S1 = 30,
  PJRT_Buffer_Type_U1 = 31,
  PJRT_Buffer_Type_F6E2M3FN = 32,
  PJRT_Buffer_Type_F6E3M2FN = 33,
} PJRT_Buffer_Type;

// How long the host promises not to change or free the data.
typedef enum PJRT_HostBufferSemantics {
  PJRT_HostBufferSemantics_kImmutableOnlyDuringCall = 0,
  PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes = 1,
  PJRT_HostBufferSemantics_kImmutableZeroCopy = 2,
  PJRT_HostBufferSemantics_kMutableZeroCopy = 3,
} PJRT_HostBufferSemantics;

typedef enum PJRT_Buffer_MemoryLayout_Type {
  PJRT_Buffer_MemoryLayout_Type_Tiled = 0,
  PJRT_Buffer_MemoryLayout_Type_Strides = 1,
} PJRT_Buffer_MemoryLayout_Type;

// An order of dimensions, minor to major, and tiles (row after row of sizes, one row per tile).
typedef struct PJRT_Buffer_MemoryLayout_Tiled {
  PJRT_HEAD;
  const int64_t *minor_to_major;
  size_t minor_to_major_size;
  const int64_t *tile_dims;
  const size_t *tile_dim_sizes;
  size_t num_tiles;
} PJRT_Buffer_MemoryLayout_Tiled;

// The distance in bytes between one element and the next, per dimension.
typedef struct PJRT_Buffer_MemoryLayout_Strides {
  PJRT_HEAD;
  const int64_t *byte_strides;
  size_t num_byte_strides;
} PJRT_Buffer_MemoryLayout_Strides;

// `struct_size` is not reliable here: jaxlib does not set it.
typedef struct PJRT_Buffer_MemoryLayout {
  PJRT_HEAD;
  union {
    PJRT_Buffer_MemoryLayout_Tiled tiled;
    PJRT_Buffer_MemoryLayout_Strides strides;
  };
  PJRT_Buffer_MemoryLayout_Type type;
} PJRT_Buffer_MemoryLayout;

// An array type for PJRT_Client_CreateBuffersForAsyncHostToDevice.
typedef struct PJRT_ShapeSpec {
  PJRT_HEAD;
  const int64_t *dims;
  size_t num_dims;
  PJRT_Buffer_Type element_type;
} PJRT_ShapeSpec;

// Element strides of any sign; sub-byte elements take one byte each.
typedef struct PJRT_Client_BufferFromHostBuffer_Args {
  PJRT_HEAD;
  PJRT_Client *client;
  const void *data;
  PJRT_Buffer_Type type;
  const int64_t *dims;
  size_t num_dims;
  const int64_t *byte_strides;
  size_t num_byte_strides;
  PJRT_HostBufferSemantics host_buffer_semantics;
  PJRT_Device *device;
  PJRT_Memory *memory;
  PJRT_Buffer_MemoryLayout *device_layout;
  PJRT_Event *done_with_host_buffer;  // out
  PJRT_Buffer *buffer;                // out
} PJRT_Client_BufferFromHostBuffer_Args;

// A buffer over memory that the caller owns until `on_delete_callback` is called.
typedef struct PJRT_Client_CreateViewOfDeviceBuffer_Args {
  PJRT_HEAD;
  PJRT_Client *client;
  void *device_buffer_ptr;
  const int64_t *dims;
  size_t num_dims;
  PJRT_Buffer_Type element_type;
  PJRT_Buffer_MemoryLayout *layout;
  PJRT_Device *device;
  void (*on_delete_callback)(void *, void *);
  void *on_delete_callback_arg;
  intptr_t stream;
  PJRT_Buffer *buffer;  // out
  PJRT_Memory *memory;
} PJRT_Client_CreateViewOfDeviceBuffer_Args;

// Makes buffers now that are filled later, in pieces.
typedef struct PJRT_Client_CreateBuffersForAsyncHostToDevice_Args {
  PJRT_HEAD;
  PJRT_Client *client;
  PJRT_ShapeSpec *shape_specs;
  size_t num_shape_specs;
  PJRT_Buffer_MemoryLayout **device_layouts;  // optional
  size_t num_device_layouts;
  PJRT_Memory *memory;
  PJRT_AsyncHostToDeviceTransferManager *transfer_manager;  // out
} PJRT_Client_CreateBuffersForAsyncHostToDevice_Args;

// Makes a buffer that is ready at once, with uninitialized contents.
typedef struct PJRT_Client_CreateUninitializedBuffer_Args {
  PJRT_HEAD;
  PJRT_Client *client;
  const int64_t *shape_dims;
  size_t shape_num_dims;
  PJRT_Buffer_Type shape_element_type;
  PJRT_Buffer_MemoryLayout *shape_layout;
  PJRT_Device *device;
  PJRT_Memory *memory;
  PJRT_Buffer *buffer;  // out
} PJRT_Client_CreateUninitializedBuffer_Args;

// Makes a placeholder for a buffer that comes later.
typedef struct PJRT_Client_CreateAliasBuffer_Args {
  PJRT_HEAD;
  PJRT_Client *client;
  PJRT_Memory *memory;
  const int64_t *shape_dims;
  size_t shape_num_dims;
  PJRT_Buffer_Type shape_element_type;
  PJRT_Buffer_MemoryLayout *shape_layout;
  PJRT_Buffer *alias_buffer;                                 // out
  PJRT_FulfillAliasBufferCallback *fulfill_alias_buffer_cb;  // out
} PJRT_Client_CreateAliasBuffer_Args;

// Gives an alias its buffer or its error.
typedef struct PJRT_Client_FulfillAliasBuffer_Args {
  PJRT_HEAD;
  PJRT_Client *client;
  PJRT_Buffer *buffer;
  PJRT_Error_Code status_code;
  const char *error_message;
  size_t error_message_size;
  PJRT_FulfillAliasBufferCallback *fulfill_alias_buffer_cb;
} PJRT_Client_FulfillAliasBuffer_Args;

// Makes a buffer whose every use reports this error.
typedef struct PJRT_Client_CreateErrorBuffer_Args {
  PJRT_HEAD;
  PJRT_Client *client;
  PJRT_Error_Code error_code;
  const char *error_message;
  size_t error_message_size;
  const int64_t *shape_dims;
  size_t shape_num_dims;
  PJRT_Buffer_Type shape_element_type;
  PJRT_Buffer_MemoryLayout *shape_layout;
  PJRT_Memory *memory;
  PJRT_Buffer *buffer;                      // out
  const PJRT_NamedValue *payload;           // minor 104
  size_t num_payload;                       // minor 104
  PJRT_Buffer_MemoryLayout *device_layout;  // minor 117, in place of shape_layout if not NULL
} PJRT_Client_CreateErrorBuffer_Args;

typedef struct PJRT_Buffer_CopyRawToHostFuture_Callback_Args {
  size_t struct_size;
  void *callback_data;
  PJRT_Error_Code error_code;
  const char *error_message;
  size_t error_message_size;
  void *dst;
} PJRT_Buffer_CopyRawToHostFuture_Callback_Args;

typedef struct PJRT_Buffer_DonateWithControlDependency_Callback_Args {
  size_t struct_size;
  void *callback_data;
  PJRT_Error_Code error_code;
  const char *error_message;
  size_t error_message_size;
} PJRT_Buffer_DonateWithControlDependency_Callback_Args;

// Drops the handle; work that uses the buffer continues.
typedef struct PJRT_Buffer_Destroy_Args {
  PJRT_HEAD;
  PJRT_Buffer *buffer;
} PJRT_Buffer_Destroy_Args;

typedef struct PJRT_Buffer_ElementType_Args {
  PJRT_HEAD;
  PJRT_Buffer *buffer;
  PJRT_Buffer_Type type;  // out
} PJRT_Buffer_ElementType_Args;

typedef struct PJRT_Buffer_Dimensions_Args {
  PJRT_HEAD;
  PJRT_Buffer *buffer;
  const int64_t *dims;  // out
  size_t num_dims;      // out
} PJRT_Buffer_Dimensions_Args;

typedef struct PJRT_Buffer_UnpaddedDimensions_Args {
  PJRT_HEAD;
  PJRT_Buffer *buffer;
  const int64_t *unpadded_dims;  // out
  size_t num_dims;               // out
} PJRT_Buffer_UnpaddedDimensions_Args;

// Which dimensions have a size that is only a bound.
typedef struct PJRT_Buffer_DynamicDimensionIndices_Args {
  PJRT_HEAD;
  PJRT_Buffer *buffer;
  const size_t *dynamic_dim_indices;  // out
  size_t num_dynamic_dims;            // out
} PJRT_Buffer_DynamicDimensionIndices_Args;

typedef struct PJRT_Buffer_GetMemoryLayout_Args {
  PJRT_HEAD;
  PJRT_Buffer *buffer;
  PJRT_Buffer_MemoryLayout layout;  // out
} PJRT_Buffer_GetMemoryLayout_Args;

// Copies the array to the host. With `dst` NULL it only returns the required `dst_size`.
typedef struct PJRT_Buffer_ToHostBuffer_Args {
  PJRT_HEAD;
  PJRT_Buffer *src;
  PJRT_Buffer_MemoryLayout *host_layout;
  void *dst;          // in/out
  size_t dst_size;    // in/out
  PJRT_Event *event;  // out
} PJRT_Buffer_ToHostBuffer_Args;

// The size in device memory, with the padding of the layout.
typedef struct PJRT_Buffer_OnDeviceSizeInBytes_Args {
  PJRT_HEAD;
  PJRT_Buffer *buffer;
  size_t on_device_size_in_bytes;  // out
} PJRT_Buffer_OnDeviceSizeInBytes_Args;

// Gives the memory back as soon as it is unused; the handle stays until it is destroyed.
typedef struct PJRT_Buffer_Delete_Args {
  PJRT_HEAD;
  PJRT_Buffer *buffer;
} PJRT_Buffer_Delete_Args;

typedef struct PJRT_Buffer_IsDeleted_Args {
  PJRT_HEAD;
  PJRT_Buffer *buffer;
  bool is_deleted;  // out
} PJRT_Buffer_IsDeleted_Args;

// Copies the unchanged bytes of device memory.
typedef struct PJRT_Buffer_CopyRawToHost_Args {
  PJRT_HEAD;
  PJRT_Buffer *buffer;
  void *dst;
  int64_t offset;
  int64_t transfer_size;
  PJRT_Event *event;  // out
} PJRT_Buffer_CopyRawToHost_Args;

typedef struct PJRT_Buffer_CopyToDevice_Args {
  PJRT_HEAD;
  PJRT_Buffer *buffer;
  PJRT_Device *dst_device;
  PJRT_Buffer *dst_buffer;  // out
} PJRT_Buffer_CopyToDevice_Args;

// Copies the buffer to any memory of the client; the caller owns the copy.
typedef struct PJRT_Buffer_CopyToMemory_Args {
  PJRT_HEAD;
  PJRT_Buffer *buffer;
  PJRT_Memory *dst_memory;
  PJRT_Buffer *dst_buffer;  // out
} PJRT_Buffer_CopyToMemory_Args;

// Tells whether the host may read the bytes where they are.
typedef struct PJRT_Buffer_IsOnCpu_Args {
  PJRT_HEAD;
  PJRT_Buffer *buffer;
  bool is_on_cpu;  // out
} PJRT_Buffer_IsOnCpu_Args;

typedef struct PJRT_Buffer_Device_Args {
  PJRT_HEAD;
  PJRT_Buffer *buffer;
  PJRT_Device *device;  // out
} PJRT_Buffer_Device_Args;

typedef struct PJRT_Buffer_Memory_Args {
  PJRT_HEAD;
  PJRT_Buffer *buffer;
  PJRT_Memory *memory;  // out
} PJRT_Buffer_Memory_Args;

// Gives an event, which the caller owns. It is set when the contents are there, or never will be.
typedef struct PJRT_Buffer_ReadyEvent_Args {
  PJRT_HEAD;
  PJRT_Buffer *buffer;
  PJRT_Event *event;  // out
} PJRT_Buffer_ReadyEvent_Args;

// The address of the bytes, without any promise of how long it is valid.
typedef struct PJRT_Buffer_UnsafePointer_Args {
  PJRT_HEAD;
  PJRT_Buffer *buffer;
  uintptr_t buffer_pointer;  // out
} PJRT_Buffer_UnsafePointer_Args;

// Keeps the memory where it is until the reference is given back, even after PJRT_Buffer_Delete.
typedef struct PJRT_Buffer_IncreaseExternalReferenceCount_Args {
  PJRT_HEAD;
  PJRT_Buffer *buffer;
} PJRT_Buffer_IncreaseExternalReferenceCount_Args;

typedef struct PJRT_Buffer_DecreaseExternalReferenceCount_Args {
  PJRT_HEAD;
  PJRT_Buffer *buffer;
} PJRT_Buffer_DecreaseExternalReferenceCount_Args;

// The address of the bytes, valid while an external reference is held; also before the buffer is
// ready.
typedef struct PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args {
  PJRT_HEAD;
  PJRT_Buffer *buffer;
  void *device_memory_ptr;  // out
} PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args;

// As PJRT_Buffer_CopyRawToHost, but the destination comes with a callback.
typedef struct PJRT_Buffer_CopyRawToHostFuture_Args {
  PJRT_HEAD;
  PJRT_Buffer *buffer;
  int64_t offset;
  int64_t transfer_size;
  PJRT_Event *event;                                                               // out
  void *callback_data;                                                             // out
  void (*future_ready_callback)(PJRT_Buffer_CopyRawToHostFuture_Callback_Args *);  // out
} PJRT_Buffer_CopyRawToHostFuture_Args;

// Moves the contents to a new buffer that is ready when the dependency is.
typedef struct PJRT_Buffer_DonateWithControlDependency_Args {
  PJRT_HEAD;
  PJRT_Buffer *buffer;
  void *callback_data;  // out
  void (*dependency_ready_callback)(
      PJRT_Buffer_DonateWithControlDependency_Callback_Args *);  // out
  PJRT_Buffer *out_buffer;                                       // out
} PJRT_Buffer_DonateWithControlDependency_Args;

// Makes a buffer of another type with the same bytes.
typedef struct PJRT_Buffer_Bitcast_Args {
  PJRT_HEAD;
  PJRT_Buffer *buffer;
  PJRT_Buffer_Type element_type;
  const int64_t *dims;
  size_t num_dims;
  PJRT_Buffer_MemoryLayout *device_layout;
  PJRT_Buffer *out_buffer;  // out
} PJRT_Buffer_Bitcast_Args;

// Drops the manager; buffers that are not full by then fail.
typedef struct PJRT_AsyncHostToDeviceTransferManager_Destroy_Args {
  PJRT_HEAD;
  PJRT_AsyncHostToDeviceTransferManager *transfer_manager;
} PJRT_AsyncHostToDeviceTransferManager_Destroy_Args;

// Writes a piece of a buffer; `is_last_transfer` ends the filling of that buffer.
typedef struct PJRT_AsyncHostToDeviceTransferManager_TransferData_Args {
  PJRT_HEAD;
  PJRT_AsyncHostToDeviceTransferManager *transfer_manager;
  int buffer_index;
  const void *data;
  int64_t offset;
  int64_t transfer_size;
  bool is_last_transfer;
  PJRT_Event *done_with_h2d_transfer;  // out
} PJRT_AsyncHostToDeviceTransferManager_TransferData_Args;

// Gives the caller a buffer, which it owns; also before the buffer is full.
typedef struct PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args {
  PJRT_HEAD;
  PJRT_AsyncHostToDeviceTransferManager *transfer_manager;
  int buffer_index;
  PJRT_Buffer *buffer_out;  // out
} PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args;

typedef struct PJRT_AsyncHostToDeviceTransferManager_Device_Args {
  PJRT_HEAD;
  PJRT_AsyncHostToDeviceTransferManager *transfer_manager;
  PJRT_Device *device_out;  // out
} PJRT_AsyncHostToDeviceTransferManager_Device_Args;

typedef struct PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args {
  PJRT_HEAD;
  PJRT_AsyncHostToDeviceTransferManager *transfer_manager;
  size_t buffer_count;  // out
} PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args;

typedef struct PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args {
  PJRT_HEAD;
  PJRT_AsyncHostToDeviceTransferManager *transfer_manager;
  int buffer_index;
  size_t buffer_size;  // out
} PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args;

// Ends the filling of a buffer with an error.
typedef struct PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args {
  PJRT_HEAD;
  PJRT_AsyncHostToDeviceTransferManager *transfer_manager;
  int buffer_index;
  PJRT_Error_Code error_code;
  const char *error_message;
  size_t error_message_size;
} PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args;

typedef struct PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args {
  PJRT_HEAD;
  PJRT_AsyncHostToDeviceTransferManager *transfer_manager;
  const PJRT_NamedValue *transfer_metadata;
  size_t num_metadata;
} PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args;

// Writes the whole array at once.
typedef struct PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args {
  PJRT_HEAD;
  PJRT_AsyncHostToDeviceTransferManager *transfer_manager;
  int buffer_index;
  const void *data;
  const int64_t *shape_dims;
  size_t shape_num_dims;
  PJRT_Buffer_Type shape_element_type;
  PJRT_Buffer_MemoryLayout *shape_layout;
  PJRT_Event *done_with_h2d_transfer;  // out
} PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args;

// A piece of data with its deleter.
typedef struct PJRT_Chunk {
  void *data;
  size_t size;
  void (*deleter)(void *, void *);
  void *deleter_arg;
} PJRT_Chunk;

typedef struct PJRT_CopyToDeviceStream_Destroy_Args {
  PJRT_HEAD;
  PJRT_CopyToDeviceStream *stream;
} PJRT_CopyToDeviceStream_Destroy_Args;

typedef struct PJRT_CopyToDeviceStream_AddChunk_Args {
  PJRT_HEAD;
  PJRT_CopyToDeviceStream *stream;
  PJRT_Chunk *chunk;
  PJRT_Event *transfer_complete;  // out
} PJRT_CopyToDeviceStream_AddChunk_Args;

typedef struct PJRT_CopyToDeviceStream_TotalBytes_Args {
  PJRT_HEAD;
  PJRT_CopyToDeviceStream *stream;
  int64_t total_bytes;  // out
} PJRT_CopyToDeviceStream_TotalBytes_Args;

typedef struct PJRT_CopyToDeviceStream_GranuleSize_Args {
  PJRT_HEAD;
  PJRT_CopyToDeviceStream *stream;
  int64_t granule_size_in_bytes;  // out
} PJRT_CopyToDeviceStream_GranuleSize_Args;

typedef struct PJRT_CopyToDeviceStream_CurrentBytes_Args {
  PJRT_HEAD;
  PJRT_CopyToDeviceStream *stream;
  int64_t current_bytes;  // out
} PJRT_CopyToDeviceStream_CurrentBytes_Args;

// The shape with the layout that the memory would give it, as a serialized ShapeProto.
typedef struct PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args {
  PJRT_HEAD;
  const PJRT_TopologyDescription *topology;
  int memory_space_kind_id;
  const int64_t *dims;
  size_t num_dims;
  PJRT_Buffer_Type element_type;
  const PJRT_Buffer_MemoryLayout *layout;          // optional
  const char *serialized_shape;                    // out
  size_t serialized_shape_size;                    // out
  void (*serialized_shape_deleter)(const char *);  // out
} PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args;

#endif  // MINIPOD_PJRT_C_API_C_API_BUFFER_H_
