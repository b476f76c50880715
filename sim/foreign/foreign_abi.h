// The binary interface of foreign functions: minipod's declarations of XLA's FFI C API, version
// 0.5.
//
// New versions add fields and slots at the end, and change names: the type ExecutionContext here is
// called InvokeContext since 0.4; handlers cannot see the name.
//
// Names, order of fields and values are those of the interface (openxla/xla, xla/ffi/api/c_api.h);
// tests/e2e/foreign checks every offset and value against the header that jaxlib ships.
// `struct_size` is the size of the struct in the version that the caller was compiled for. As with
// PJRT, structs made here set it not to sizeof but to the end of the last field of the struct's
// first version (XLA_FFI_SIZE).
#ifndef MINIPOD_SIM_FOREIGN_FOREIGN_ABI_H_
#define MINIPOD_SIM_FOREIGN_FOREIGN_ABI_H_

#include <stddef.h>
#include <stdint.h>

enum { XLA_FFI_API_MAJOR = 0, XLA_FFI_API_MINOR = 5 };

typedef struct XLA_FFI_Api XLA_FFI_Api;
typedef struct XLA_FFI_InternalApi XLA_FFI_InternalApi;
typedef struct XLA_FFI_Error XLA_FFI_Error;
typedef struct XLA_FFI_Future XLA_FFI_Future;
typedef struct XLA_FFI_ExecutionContext XLA_FFI_ExecutionContext;

typedef enum {
  XLA_FFI_Extension_Metadata = 1,
} XLA_FFI_Extension_Type;

typedef struct XLA_FFI_Extension_Base {
  size_t struct_size;
  XLA_FFI_Extension_Type type;
  struct XLA_FFI_Extension_Base *next;
} XLA_FFI_Extension_Base;

// How every struct that has extensions begins.
#define XLA_FFI_HEAD  \
  size_t struct_size; \
  XLA_FFI_Extension_Base *extension_start

typedef struct XLA_FFI_Api_Version {
  XLA_FFI_HEAD;
  int major_version;  // out
  int minor_version;  // out
} XLA_FFI_Api_Version;

// ---- Values ----

typedef enum {
  XLA_FFI_DataType_INVALID = 0,
  XLA_FFI_DataType_PRED = 1,
  XLA_FFI_DataType_S8 = 2,
  XLA_FFI_DataType_S16 = 3,
  XLA_FFI_DataType_S32 = 4,
  XLA_FFI_DataType_S64 = 5,
  XLA_FFI_DataType_U8 = 6,
  XLA_FFI_DataType_U16 = 7,
  XLA_FFI_DataType_U32 = 8,
  XLA_FFI_DataType_U64 = 9,
  XLA_FFI_DataType_F16 = 10,
  XLA_FFI_DataType_F32 = 11,
  XLA_FFI_DataType_F64 = 12,
  XLA_FFI_DataType_C64 = 15,
  XLA_FFI_DataType_BF16 = 16,
  XLA_FFI_DataType_TOKEN = 17,
  XLA_FFI_DataType_C128 = 18,
  XLA_FFI_DataType_F8E5M2 = 19,
  XLA_FFI_DataType_F8E4M3FN = 20,
  XLA_FFI_DataType_S4 = 21,
  XLA_FFI_DataType_U4 = 22,
  XLA_FFI_DataType_F8E4M3B11FNUZ = 23,
  XLA_FFI_DataType_F8E5M2FNUZ = 24,
  XLA_FFI_DataType_F8E4M3FNUZ = 25,
  XLA_FFI_DataType_S2 = 26,
  XLA_FFI_DataType_U2 = 27,
  XLA_FFI_DataType_F8E4M3 = 28,
  XLA_FFI_DataType_F8E3M4 = 29,
  XLA_FFI_DataType_F4E2M1FN = 32,
  XLA_FFI_DataType_F8E8M0FNU = 33,
} XLA_FFI_DataType;

typedef struct XLA_FFI_Buffer {
  XLA_FFI_HEAD;
  XLA_FFI_DataType dtype;
  void *data;
  int64_t rank;
  int64_t *dims;  // [rank]
} XLA_FFI_Buffer;

typedef struct XLA_FFI_ByteSpan {
  const char *ptr;
  size_t len;
} XLA_FFI_ByteSpan;

typedef struct XLA_FFI_Scalar {
  XLA_FFI_DataType dtype;
  void *value;
} XLA_FFI_Scalar;

typedef struct XLA_FFI_Array {
  XLA_FFI_DataType dtype;
  size_t size;  // elements
  void *data;
} XLA_FFI_Array;

typedef enum { XLA_FFI_ArgType_BUFFER = 1 } XLA_FFI_ArgType;
typedef enum { XLA_FFI_RetType_BUFFER = 1 } XLA_FFI_RetType;
typedef enum {
  XLA_FFI_AttrType_ARRAY = 1,       // XLA_FFI_Array
  XLA_FFI_AttrType_DICTIONARY = 2,  // XLA_FFI_Attrs
  XLA_FFI_AttrType_SCALAR = 3,      // XLA_FFI_Scalar
  XLA_FFI_AttrType_STRING = 4,      // XLA_FFI_ByteSpan
} XLA_FFI_AttrType;

// ---- Call frames and handlers ----

typedef enum {
  XLA_FFI_ExecutionStage_INSTANTIATE = 0,
  XLA_FFI_ExecutionStage_PREPARE = 1,
  XLA_FFI_ExecutionStage_INITIALIZE = 2,
  XLA_FFI_ExecutionStage_EXECUTE = 3,
  XLA_FFI_ExecutionStage_RECORD = 4,  // since 0.4: for graphs of other devices, never called here
} XLA_FFI_ExecutionStage;

typedef struct XLA_FFI_Args {
  XLA_FFI_HEAD;
  int64_t size;
  XLA_FFI_ArgType *types;  // [size]
  void **args;             // [size]
} XLA_FFI_Args;

typedef struct XLA_FFI_Rets {
  XLA_FFI_HEAD;
  int64_t size;
  XLA_FFI_RetType *types;  // [size]
  void **rets;             // [size]
} XLA_FFI_Rets;

// Sorted by name: handlers use binary search.
typedef struct XLA_FFI_Attrs {
  XLA_FFI_HEAD;
  int64_t size;
  XLA_FFI_AttrType *types;   // [size]
  XLA_FFI_ByteSpan **names;  // [size]
  void **attrs;              // [size]
} XLA_FFI_Attrs;

typedef struct XLA_FFI_CallFrame {
  XLA_FFI_HEAD;
  const XLA_FFI_Api *api;
  XLA_FFI_ExecutionContext *ctx;
  XLA_FFI_ExecutionStage stage;
  XLA_FFI_Args args;
  XLA_FFI_Rets rets;
  XLA_FFI_Attrs attrs;
  XLA_FFI_Future *future;  // out; not counted in struct_size
} XLA_FFI_CallFrame;

typedef XLA_FFI_Error *XLA_FFI_Handler(XLA_FFI_CallFrame *frame);

// The handlers of a call's stages. Only `execute` is required. Since 0.4 `record` follows, which
// minipod does not use.
typedef struct XLA_FFI_Handler_Bundle {
  XLA_FFI_Handler *instantiate;
  XLA_FFI_Handler *prepare;
  XLA_FFI_Handler *initialize;
  XLA_FFI_Handler *execute;
} XLA_FFI_Handler_Bundle;

enum { XLA_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE = 1 };
typedef uint32_t XLA_FFI_Handler_Traits;

// ---- Types, metadata ----

typedef struct XLA_FFI_TypeId {
  int64_t type_id;  // 0: unknown
} XLA_FFI_TypeId;

typedef struct XLA_FFI_TypeInfo {
  XLA_FFI_HEAD;
  void (*deleter)(void *object);
} XLA_FFI_TypeInfo;

typedef struct XLA_FFI_Metadata {
  size_t struct_size;
  XLA_FFI_Api_Version api_version;
  XLA_FFI_Handler_Traits traits;
  XLA_FFI_TypeId state_type_id;  // since 0.2; not counted in struct_size
} XLA_FFI_Metadata;

typedef struct XLA_FFI_Metadata_Extension {
  XLA_FFI_Extension_Base extension_base;
  XLA_FFI_Metadata *metadata;
} XLA_FFI_Metadata_Extension;

// ---- The functions that handlers call ----

typedef enum {
  XLA_FFI_Error_Code_OK = 0,
  XLA_FFI_Error_Code_UNKNOWN = 2,
  XLA_FFI_Error_Code_UNAUTHENTICATED =
      16,  // and all numbers between, equal to those of mp_status_code_t
} XLA_FFI_Error_Code;

typedef struct XLA_FFI_Error_Create_Args {
  XLA_FFI_HEAD;
  const char *message;
  XLA_FFI_Error_Code errc;
} XLA_FFI_Error_Create_Args;

// Up to 0.3 the function is called GetMessage, and has no code to write.
typedef struct XLA_FFI_Error_GetDetails_Args {
  XLA_FFI_HEAD;
  XLA_FFI_Error *error;
  const char *message;      // out
  XLA_FFI_Error_Code errc;  // out, since 0.4
} XLA_FFI_Error_GetDetails_Args;

typedef struct XLA_FFI_Error_Destroy_Args {
  XLA_FFI_HEAD;
  XLA_FFI_Error *error;
} XLA_FFI_Error_Destroy_Args;

typedef struct XLA_FFI_Future_Create_Args {
  XLA_FFI_HEAD;
  XLA_FFI_Future *future;  // out; not counted in struct_size
} XLA_FFI_Future_Create_Args;

typedef struct XLA_FFI_Future_SetAvailable_Args {
  XLA_FFI_HEAD;
  XLA_FFI_Future *future;
} XLA_FFI_Future_SetAvailable_Args;

typedef struct XLA_FFI_Future_SetError_Args {
  XLA_FFI_HEAD;
  XLA_FFI_Future *future;
  XLA_FFI_Error *error;  // ownership passes to the callee
} XLA_FFI_Future_SetError_Args;

typedef struct XLA_FFI_Handler_Register_Args {
  XLA_FFI_HEAD;
  XLA_FFI_ByteSpan name;
  XLA_FFI_ByteSpan platform;
  XLA_FFI_Handler_Bundle bundle;
  XLA_FFI_Handler *record;
  XLA_FFI_Handler_Traits traits;
} XLA_FFI_Handler_Register_Args;

// The same up to version 0.3.
typedef struct XLA_FFI_Handler_Register_Args_V03 {
  XLA_FFI_HEAD;
  XLA_FFI_ByteSpan name;
  XLA_FFI_ByteSpan platform;
  XLA_FFI_Handler_Bundle bundle;
  XLA_FFI_Handler_Traits traits;
} XLA_FFI_Handler_Register_Args_V03;

typedef struct XLA_FFI_Type_Register_Args {
  XLA_FFI_HEAD;
  XLA_FFI_ByteSpan name;
  XLA_FFI_TypeId *type_id;            // in and out
  const XLA_FFI_TypeInfo *type_info;  // since 0.2; not counted in struct_size
} XLA_FFI_Type_Register_Args;

typedef struct XLA_FFI_ExecutionContext_Get_Args {
  XLA_FFI_HEAD;
  XLA_FFI_ExecutionContext *ctx;
  XLA_FFI_TypeId *type_id;
  void *data;  // out
} XLA_FFI_ExecutionContext_Get_Args;

typedef struct XLA_FFI_State_Set_Args {
  XLA_FFI_HEAD;
  XLA_FFI_ExecutionContext *ctx;
  XLA_FFI_ExecutionStage stage;
  XLA_FFI_TypeId *type_id;
  void *state;
} XLA_FFI_State_Set_Args;

typedef struct XLA_FFI_State_Get_Args {
  XLA_FFI_HEAD;
  XLA_FFI_ExecutionContext *ctx;
  XLA_FFI_ExecutionStage stage;
  XLA_FFI_TypeId *type_id;
  void *state;  // out
} XLA_FFI_State_Get_Args;

// The form of both structs above up to version 0.2, when only INSTANTIATE had a state.
typedef struct XLA_FFI_State_Args_V02 {
  XLA_FFI_HEAD;
  XLA_FFI_ExecutionContext *ctx;
  XLA_FFI_TypeId *type_id;
  void *state;
} XLA_FFI_State_Args_V02;

typedef struct XLA_FFI_Stream_Get_Args {
  XLA_FFI_HEAD;
  XLA_FFI_ExecutionContext *ctx;
  void *stream;  // out
} XLA_FFI_Stream_Get_Args;

typedef struct XLA_FFI_DeviceMemory_Allocate_Args {
  XLA_FFI_HEAD;
  XLA_FFI_ExecutionContext *ctx;
  size_t size;
  size_t alignment;
  void *data;  // out
} XLA_FFI_DeviceMemory_Allocate_Args;

typedef struct XLA_FFI_DeviceMemory_Free_Args {
  XLA_FFI_HEAD;
  XLA_FFI_ExecutionContext *ctx;
  size_t size;
  void *data;
} XLA_FFI_DeviceMemory_Free_Args;

typedef void XLA_FFI_Task(void *data);

typedef struct XLA_FFI_ThreadPool_Schedule_Args {
  XLA_FFI_HEAD;
  XLA_FFI_ExecutionContext *ctx;
  XLA_FFI_Task *task;
  void *data;
} XLA_FFI_ThreadPool_Schedule_Args;

typedef struct XLA_FFI_ThreadPool_NumThreads_Args {
  XLA_FFI_HEAD;
  XLA_FFI_ExecutionContext *ctx;
  int64_t *num_threads;  // out
} XLA_FFI_ThreadPool_NumThreads_Args;

typedef struct XLA_FFI_RunId_Get_Args {
  XLA_FFI_HEAD;
  XLA_FFI_ExecutionContext *ctx;
  int64_t run_id;  // out
} XLA_FFI_RunId_Get_Args;

typedef struct XLA_FFI_DeviceOrdinal_Get_Args {
  XLA_FFI_HEAD;
  XLA_FFI_ExecutionContext *ctx;
  int32_t device_ordinal;  // out
} XLA_FFI_DeviceOrdinal_Get_Args;

// Since 0.4: data that a runtime may attach to a context for handlers that know about it.
typedef struct XLA_FFI_Extension XLA_FFI_Extension;

typedef struct XLA_FFI_InvokeContext_FindExtension_Args {
  XLA_FFI_HEAD;
  XLA_FFI_ExecutionContext *ctx;
  int64_t extension_type;
  const XLA_FFI_Extension *extension;  // out; NULL: the context has none of this type
} XLA_FFI_InvokeContext_FindExtension_Args;

// Since 0.5: options of an execution.
typedef struct XLA_FFI_CustomOptions_Get_Args {
  XLA_FFI_HEAD;
  XLA_FFI_ExecutionContext *ctx;
  const XLA_FFI_Attrs *attrs;  // out
} XLA_FFI_CustomOptions_Get_Args;

// The functions in the order of the table: result, name.
#define XLA_FFI_FUNCTIONS(X)                              \
  X(XLA_FFI_Error *, XLA_FFI_Error_Create)                \
  X(void, XLA_FFI_Error_GetDetails)                       \
  X(void, XLA_FFI_Error_Destroy)                          \
  X(XLA_FFI_Error *, XLA_FFI_Handler_Register)            \
  X(XLA_FFI_Error *, XLA_FFI_Stream_Get)                  \
  X(XLA_FFI_Error *, XLA_FFI_Type_Register)               \
  X(XLA_FFI_Error *, XLA_FFI_ExecutionContext_Get)        \
  X(XLA_FFI_Error *, XLA_FFI_State_Set)                   \
  X(XLA_FFI_Error *, XLA_FFI_State_Get)                   \
  X(XLA_FFI_Error *, XLA_FFI_DeviceMemory_Allocate)       \
  X(XLA_FFI_Error *, XLA_FFI_DeviceMemory_Free)           \
  X(XLA_FFI_Error *, XLA_FFI_ThreadPool_Schedule)         \
  X(XLA_FFI_Error *, XLA_FFI_ThreadPool_NumThreads)       \
  X(XLA_FFI_Error *, XLA_FFI_Future_Create)               \
  X(XLA_FFI_Error *, XLA_FFI_Future_SetAvailable)         \
  X(XLA_FFI_Error *, XLA_FFI_Future_SetError)             \
  X(XLA_FFI_Error *, XLA_FFI_RunId_Get)                   \
  X(XLA_FFI_Error *, XLA_FFI_DeviceOrdinal_Get)           \
  X(XLA_FFI_Error *, XLA_FFI_InvokeContext_FindExtension) \
  X(XLA_FFI_Error *, XLA_FFI_CustomOptions_Get)

struct XLA_FFI_Api {
  XLA_FFI_HEAD;
  XLA_FFI_Api_Version api_version;
  const XLA_FFI_InternalApi *internal_api;
#define XLA_FFI_SLOT(result, name) result (*name)(name##_Args *);
  XLA_FFI_FUNCTIONS(XLA_FFI_SLOT)
#undef XLA_FFI_SLOT
};

// The struct_size of a struct that ends with `last`.
#define XLA_FFI_SIZE(type, last) (offsetof(type, last) + sizeof(((type *)0)->last))

// ---- The interface before FFI ----

// Through this object a function of API version 2 or 3 reports a failure. The caller owns it, and
// the function writes it by XlaCustomCallStatusSetFailure of the XLA library that it is linked to.
typedef struct XlaCustomCallStatus_ XlaCustomCallStatus;

typedef void mp_foreign_untyped_v1_t(void *out, const void **in);
typedef void mp_foreign_untyped_v2_t(void *out, const void **in, XlaCustomCallStatus *status);
typedef void mp_foreign_untyped_v3_t(void *out, const void **in, const char *opaque,
                                     size_t opaque_len, XlaCustomCallStatus *status);

#endif  // MINIPOD_SIM_FOREIGN_FOREIGN_ABI_H_
