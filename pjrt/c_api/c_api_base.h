// The PJRT C API, minor version 117: errors, named values, events, plugin.
//
// These are declarations of a binary interface, which fixes names, order, types and numbers.
// tests/unit/pjrt/test_pjrt_abi.c checks every field's offset. Include pjrt/c_api/c_api.h, not this
// file.
//
// Every argument struct starts with its size in the caller's version, up to the end of the last
// field (not sizeof: tail padding does not count), and a list of extensions. Fields are inputs
// unless marked "out". "minor n" is the version in or before which a field was added.
#ifndef MINIPOD_PJRT_C_API_C_API_BASE_H_
#define MINIPOD_PJRT_C_API_C_API_BASE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PJRT_API_MAJOR 0
#define PJRT_API_MINOR 117

// The size to declare for a struct: the end of its last field.
#define PJRT_STRUCT_SIZE(type, last_field) \
  (offsetof(type, last_field) + sizeof(((type *)0)->last_field))

#define PJRT_HEAD     \
  size_t struct_size; \
  PJRT_Extension_Base *extension_start

typedef enum PJRT_Extension_Type {
  PJRT_Extension_Type_Gpu_Custom_Call = 0,
  PJRT_Extension_Type_Profiler = 1,
  PJRT_Extension_Type_Custom_Partitioner = 2,
  PJRT_Extension_Type_Stream = 3,
  PJRT_Extension_Type_Layouts = 4,
  PJRT_Extension_Type_FFI = 5,
  PJRT_Extension_Type_MemoryDescriptions = 6,
  PJRT_Extension_Type_Triton = 7,
  PJRT_Extension_Type_RawBuffer = 8,
  PJRT_Extension_Type_PhaseCompile = 9,
  PJRT_Extension_Type_Example = 10,
  PJRT_Extension_Type_Unknown = 11,
  PJRT_Extension_Type_CrossHostTransfers = 12,
  PJRT_Extension_Type_ExecutableMetadata = 13,
  PJRT_Extension_Type_Callback = 14,
  PJRT_Extension_Type_HostAllocator = 15,
  PJRT_Extension_Type_TpuTopology = 16,
  PJRT_Extension_Type_TpuExecutable = 17,
  PJRT_Extension_Type_Megascale = 18,
  PJRT_Extension_Type_Shardings = 19,
  PJRT_Extension_Type_AbiVersion = 20,
  PJRT_Extension_Type_Collectives = 21,
  PJRT_Extension_Type_MultiSlice = 22,
  PJRT_Extension_Type_HostMemoryAllocator = 23,
  PJRT_Extension_Type_XlaTransform = 24,
} PJRT_Extension_Type;

typedef struct PJRT_Extension_Base PJRT_Extension_Base;

// Every extension starts with this; extensions form a linked list.
typedef struct PJRT_Extension_Base {
  size_t struct_size;
  PJRT_Extension_Type type;
  PJRT_Extension_Base *next;
} PJRT_Extension_Base;

typedef struct PJRT_Api_Version {
  PJRT_HEAD;
  int major_version;  // out
  int minor_version;  // out
} PJRT_Api_Version;

// The canonical status codes.
typedef enum PJRT_Error_Code {
  PJRT_Error_Code_OK = 0,
  PJRT_Error_Code_CANCELLED = 1,
  PJRT_Error_Code_UNKNOWN = 2,
  PJRT_Error_Code_INVALID_ARGUMENT = 3,
  PJRT_Error_Code_DEADLINE_EXCEEDED = 4,
  PJRT_Error_Code_NOT_FOUND = 5,
  PJRT_Error_Code_ALREADY_EXISTS = 6,
  PJRT_Error_Code_PERMISSION_DENIED = 7,
  PJRT_Error_Code_RESOURCE_EXHAUSTED = 8,
  PJRT_Error_Code_FAILED_PRECONDITION = 9,
  PJRT_Error_Code_ABORTED = 10,
  PJRT_Error_Code_OUT_OF_RANGE = 11,
  PJRT_Error_Code_UNIMPLEMENTED = 12,
  PJRT_Error_Code_INTERNAL = 13,
  PJRT_Error_Code_UNAVAILABLE = 14,
  PJRT_Error_Code_DATA_LOSS = 15,
  PJRT_Error_Code_UNAUTHENTICATED = 16,
} PJRT_Error_Code;

typedef struct PJRT_Error PJRT_Error;

typedef void (*PJRT_Error_PayloadVisitor)(const char *key, size_t key_size, const char *value,
                                          size_t value_size, void *user_arg);

// Since minor 107 an error object begins with a pointer to its functions, so that it can be
// handled without the table of the library that made it.
typedef struct PJRT_Error_FunctionTable {
  size_t struct_size;
  size_t instance_size;
  PJRT_Extension_Base *extension_start;
  void (*destroy)(PJRT_Error *);
  void (*message)(const PJRT_Error *, const char **, size_t *);
  PJRT_Error_Code (*get_code)(const PJRT_Error *);
  void (*for_each_payload)(const PJRT_Error *, PJRT_Error_PayloadVisitor, void *);
} PJRT_Error_FunctionTable;

struct PJRT_Error {
  const PJRT_Error_FunctionTable *vtable;
};

// Frees an error. NULL has no effect.
typedef struct PJRT_Error_Destroy_Args {
  PJRT_HEAD;
  PJRT_Error *error;
} PJRT_Error_Destroy_Args;

// The message lives as long as the error, and need not end in NUL.
typedef struct PJRT_Error_Message_Args {
  PJRT_HEAD;
  const PJRT_Error *error;
  const char *message;  // out
  size_t message_size;  // out
} PJRT_Error_Message_Args;

// Must not fail: callers would request the code of that error, and so on.
typedef struct PJRT_Error_GetCode_Args {
  PJRT_HEAD;
  const PJRT_Error *error;
  PJRT_Error_Code code;  // out
} PJRT_Error_GetCode_Args;

// Calls the visitor for each key and value that is attached to the error.
typedef struct PJRT_Error_ForEachPayload_Args {
  PJRT_HEAD;
  const PJRT_Error *error;
  PJRT_Error_PayloadVisitor visitor;
  void *user_arg;
} PJRT_Error_ForEachPayload_Args;

// For callbacks of the client: makes an error of the plugin.
typedef PJRT_Error *(*PJRT_CallbackError)(PJRT_Error_Code code, const char *message,
                                          size_t message_size);

typedef enum PJRT_NamedValue_Type {
  PJRT_NamedValue_kString = 0,
  PJRT_NamedValue_kInt64 = 1,
  PJRT_NamedValue_kInt64List = 2,
  PJRT_NamedValue_kFloat = 3,
  PJRT_NamedValue_kBool = 4,
} PJRT_NamedValue_Type;

// A name and a value of one of five types; names and strings need not end in NUL.
typedef struct PJRT_NamedValue {
  PJRT_HEAD;
  const char *name;
  size_t name_size;
  PJRT_NamedValue_Type type;
  union {
    const char *string_value;
    int64_t int64_value;
    const int64_t *int64_array_value;
    float float_value;
    bool bool_value;
  };
  size_t value_size;
} PJRT_NamedValue;

// The holder of lent bytes, valid until its deleter is called. The interface has a type per
// function; here all are the same type.
typedef struct PJRT_Serialized PJRT_Serialized;

// Called once per process, before anything else but versions and attributes.
typedef struct PJRT_Plugin_Initialize_Args {
  PJRT_HEAD;
} PJRT_Plugin_Initialize_Args;

// Facts about the plugin, such as the versions of StableHLO that it reads; they live for ever.
typedef struct PJRT_Plugin_Attributes_Args {
  PJRT_HEAD;
  const PJRT_NamedValue *attributes;  // out
  size_t num_attributes;              // out
} PJRT_Plugin_Attributes_Args;

typedef struct PJRT_Event PJRT_Event;
typedef void (*PJRT_Event_OnReadyCallback)(PJRT_Error *error, void *user_arg);

// Drops the handle, which may be done before the event is set: its callbacks still run.
typedef struct PJRT_Event_Destroy_Args {
  PJRT_HEAD;
  PJRT_Event *event;
} PJRT_Event_Destroy_Args;

// Tells whether the event was set, with or without an error.
typedef struct PJRT_Event_IsReady_Args {
  PJRT_HEAD;
  PJRT_Event *event;
  bool is_ready;  // out
} PJRT_Event_IsReady_Args;

// Returns the event's error, NULL for success. Only for events that are ready.
typedef struct PJRT_Event_Error_Args {
  PJRT_HEAD;
  PJRT_Event *event;
} PJRT_Event_Error_Args;

// Blocks until the event is set, and then returns the same as PJRT_Event_Error.
typedef struct PJRT_Event_Await_Args {
  PJRT_HEAD;
  PJRT_Event *event;
} PJRT_Event_Await_Args;

// The callback owns the error that it gets, and may destroy the event.
typedef struct PJRT_Event_OnReady_Args {
  PJRT_HEAD;
  PJRT_Event *event;
  PJRT_Event_OnReadyCallback callback;
  void *user_arg;
} PJRT_Event_OnReady_Args;

// Makes an event that the caller sets by PJRT_Event_Set.
typedef struct PJRT_Event_Create_Args {
  PJRT_HEAD;
  PJRT_Event *event;  // out
} PJRT_Event_Create_Args;

// Sets an event that PJRT_Event_Create made, once; the code OK sets it without error.
typedef struct PJRT_Event_Set_Args {
  PJRT_HEAD;
  PJRT_Event *event;
  PJRT_Error_Code error_code;
  const char *error_message;
  size_t error_message_size;
} PJRT_Event_Set_Args;

#endif  // MINIPOD_PJRT_C_API_C_API_BASE_H_
