// The PJRT C API: the Profiler extension (type 1), whose table has errors of its own.
//
// This is the table before minor 114, which added three functions: clients accept only the size in
// their own header, and jaxlib 0.10 and torch_xla 2.9 have this one. Some leave struct_size of the
// arguments empty, so it is not read.
#ifndef MINIPOD_PJRT_C_API_C_API_PROFILER_H_
#define MINIPOD_PJRT_C_API_C_API_PROFILER_H_

#include "pjrt/c_api/c_api.h"

typedef struct PLUGIN_Profiler PLUGIN_Profiler;
typedef struct PLUGIN_Profiler_Error PLUGIN_Profiler_Error;

typedef struct PLUGIN_Profiler_Error_Destroy_Args {
  size_t struct_size;
  void *priv;
  PLUGIN_Profiler_Error *error;
} PLUGIN_Profiler_Error_Destroy_Args;

// The message lives as long as the error.
typedef struct PLUGIN_Profiler_Error_Message_Args {
  size_t struct_size;
  void *priv;
  const PLUGIN_Profiler_Error *error;
  const char *message;  // out
  size_t message_size;  // out
} PLUGIN_Profiler_Error_Message_Args;

typedef struct PLUGIN_Profiler_Error_GetCode_Args {
  size_t struct_size;
  void *priv;
  const PLUGIN_Profiler_Error *error;
  int code;  // out
} PLUGIN_Profiler_Error_GetCode_Args;

// `options` is a ProfileOptions message.
typedef struct PLUGIN_Profiler_Create_Args {
  size_t struct_size;
  const char *options;
  size_t options_size;
  PLUGIN_Profiler *profiler;  // out, the caller's
} PLUGIN_Profiler_Create_Args;

typedef struct PLUGIN_Profiler_Destroy_Args {
  size_t struct_size;
  PLUGIN_Profiler *profiler;
} PLUGIN_Profiler_Destroy_Args;

typedef struct PLUGIN_Profiler_Start_Args {
  size_t struct_size;
  PLUGIN_Profiler *profiler;
} PLUGIN_Profiler_Start_Args;

typedef struct PLUGIN_Profiler_Stop_Args {
  size_t struct_size;
  PLUGIN_Profiler *profiler;
} PLUGIN_Profiler_Stop_Args;

// An XSpace message. Without a buffer the caller gets the profiler's, which lives as long as the
// profiler; otherwise the caller's buffer is filled.
typedef struct PLUGIN_Profiler_CollectData_Args {
  size_t struct_size;
  PLUGIN_Profiler *profiler;
  uint8_t *buffer;              // in, out
  size_t buffer_size_in_bytes;  // out
} PLUGIN_Profiler_CollectData_Args;

typedef struct PLUGIN_Profiler_Api {
  size_t struct_size;
  void *priv;
  void (*error_destroy)(PLUGIN_Profiler_Error_Destroy_Args *args);
  void (*error_message)(PLUGIN_Profiler_Error_Message_Args *args);
  PLUGIN_Profiler_Error *(*error_get_code)(PLUGIN_Profiler_Error_GetCode_Args *args);
  PLUGIN_Profiler_Error *(*create)(PLUGIN_Profiler_Create_Args *args);
  PLUGIN_Profiler_Error *(*destroy)(PLUGIN_Profiler_Destroy_Args *args);
  PLUGIN_Profiler_Error *(*start)(PLUGIN_Profiler_Start_Args *args);
  PLUGIN_Profiler_Error *(*stop)(PLUGIN_Profiler_Stop_Args *args);
  PLUGIN_Profiler_Error *(*collect_data)(PLUGIN_Profiler_CollectData_Args *args);
} PLUGIN_Profiler_Api;

typedef struct PJRT_Profiler_Extension {
  PJRT_Extension_Base base;
  const PLUGIN_Profiler_Api *profiler_api;
  int64_t traceme_context_id;  // the caller's, if it passes the extension itself
} PJRT_Profiler_Extension;

#endif  // MINIPOD_PJRT_C_API_C_API_PROFILER_H_
