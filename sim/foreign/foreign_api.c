// The functions that handlers call, and how handlers are called.
//
// Every struct that a handler passes has its size; a struct that is too small for the fields of the
// interface's first version is refused. State_Get, State_Set and Handler_Register had other layouts
// before.
#include "sim/foreign/foreign_api.h"

#include "sim/base/os/lock.h"
#include "sim/foreign/foreign_guard.h"

static mp_status_t foreign_api_check(const char *function, size_t given, size_t needed) {
  if (given >= needed) return NULL;
  return mp_status_make(MP_INVALID_ARGUMENT,
                        "%s: the arguments' struct_size is %zu, at least %zu is needed", function,
                        given, needed);
}

#define CHECK(type, last)                                                                        \
  do {                                                                                           \
    mp_status_t checked = foreign_api_check(#type, args->struct_size, XLA_FFI_SIZE(type, last)); \
    if (checked != NULL) return mp_foreign_error(checked);                                       \
  } while (0)

// ---- Errors ----

static XLA_FFI_Error *foreign_api_XLA_FFI_Error_Create(XLA_FFI_Error_Create_Args *args) {
  CHECK(XLA_FFI_Error_Create_Args, errc);
  const mp_status_code_t code = mp_status_code_of_number((uint32_t)args->errc);
  if (code == MP_OK) return NULL;
  return mp_foreign_error(mp_status_make(code, "%s", args->message == NULL ? "" : args->message));
}

static void foreign_api_XLA_FFI_Error_GetDetails(XLA_FFI_Error_GetDetails_Args *args) {
  args->message = mp_status_message((mp_status_t)args->error);
  if (args->struct_size >= XLA_FFI_SIZE(XLA_FFI_Error_GetDetails_Args, errc)) {
    args->errc = (XLA_FFI_Error_Code)mp_status_code((mp_status_t)args->error);
  }
}

static void foreign_api_XLA_FFI_Error_Destroy(XLA_FFI_Error_Destroy_Args *args) {
  mp_status_release(mp_foreign_status(args->error));
}

// ---- Registrations ----

static XLA_FFI_Error *foreign_api_XLA_FFI_Handler_Register(XLA_FFI_Handler_Register_Args *args) {
  CHECK(XLA_FFI_Handler_Register_Args_V03, traits);
  const XLA_FFI_Handler_Register_Args_V03 *old = (const XLA_FFI_Handler_Register_Args_V03 *)args;
  const bool is_old = args->struct_size < XLA_FFI_SIZE(XLA_FFI_Handler_Register_Args, traits);
  const mp_foreign_traits_t traits = {.traits = is_old ? old->traits : args->traits};
  const mp_str_t name = {args->name.ptr, args->name.len};
  const mp_str_t platform = {args->platform.ptr, args->platform.len};
  return mp_foreign_error(mp_foreign_register_typed(name, platform, &args->bundle, traits));
}

static XLA_FFI_Error *foreign_api_XLA_FFI_Type_Register(XLA_FFI_Type_Register_Args *args) {
  CHECK(XLA_FFI_Type_Register_Args, type_id);
  const bool has_info = args->struct_size >= XLA_FFI_SIZE(XLA_FFI_Type_Register_Args, type_info) &&
                        args->type_info != NULL;
  const mp_str_t name = {args->name.ptr, args->name.len};
  return mp_foreign_error(
      mp_foreign_register_type(name, has_info ? args->type_info->deleter : NULL, args->type_id));
}

// ---- Contexts ----

static mp_status_t foreign_api_invocation(const XLA_FFI_ExecutionContext *context, const char *what,
                                          const mp_foreign_invocation_t **out_invocation) {
  if (context == NULL || context->invocation == NULL) {
    return mp_status_make(MP_UNIMPLEMENTED, "there is no %s in the instantiate stage", what);
  }
  *out_invocation = context->invocation;
  return NULL;
}

#define GET_INVOCATION(what)                                                  \
  const mp_foreign_invocation_t *invocation = NULL;                           \
  do {                                                                        \
    mp_status_t found = foreign_api_invocation(args->ctx, what, &invocation); \
    if (found != NULL) return mp_foreign_error(found);                        \
  } while (0)

static XLA_FFI_Error *foreign_api_XLA_FFI_Stream_Get(XLA_FFI_Stream_Get_Args *args) {
  CHECK(XLA_FFI_Stream_Get_Args, stream);
  return mp_foreign_error(mp_status_make(
      MP_UNIMPLEMENTED, "minipod's devices have no streams: their memory is the host's"));
}

static XLA_FFI_Error *foreign_api_XLA_FFI_ExecutionContext_Get(
    XLA_FFI_ExecutionContext_Get_Args *args) {
  CHECK(XLA_FFI_ExecutionContext_Get_Args, data);
  GET_INVOCATION("user data");
  const mp_foreign_user_data_t *item = invocation->user_data;
  while (item != NULL && item->type_id != args->type_id->type_id) item = item->next;
  if (item == NULL) {
    return mp_foreign_error(mp_status_make(MP_NOT_FOUND,
                                           "the execution has no user data of type %lld",
                                           (long long)args->type_id->type_id));
  }
  args->data = item->data;
  return NULL;
}

static XLA_FFI_Error *foreign_api_XLA_FFI_RunId_Get(XLA_FFI_RunId_Get_Args *args) {
  CHECK(XLA_FFI_RunId_Get_Args, run_id);
  GET_INVOCATION("run");
  args->run_id = invocation->run_id;
  return NULL;
}

static XLA_FFI_Error *foreign_api_XLA_FFI_DeviceOrdinal_Get(XLA_FFI_DeviceOrdinal_Get_Args *args) {
  CHECK(XLA_FFI_DeviceOrdinal_Get_Args, device_ordinal);
  GET_INVOCATION("device");
  args->device_ordinal = invocation->device_ordinal;
  return NULL;
}

static XLA_FFI_Error *foreign_api_XLA_FFI_InvokeContext_FindExtension(
    XLA_FFI_InvokeContext_FindExtension_Args *args) {
  CHECK(XLA_FFI_InvokeContext_FindExtension_Args, extension);
  args->extension = NULL;
  return NULL;
}

static XLA_FFI_Error *foreign_api_XLA_FFI_CustomOptions_Get(XLA_FFI_CustomOptions_Get_Args *args) {
  CHECK(XLA_FFI_CustomOptions_Get_Args, attrs);
  static const XLA_FFI_Attrs none = {.struct_size = XLA_FFI_SIZE(XLA_FFI_Attrs, attrs)};
  const mp_foreign_invocation_t *invocation = args->ctx == NULL ? NULL : args->ctx->invocation;
  args->attrs = invocation == NULL || invocation->options == NULL ? &none : invocation->options;
  return NULL;
}

// ---- States ----

static mp_foreign_state_t *foreign_api_state(const XLA_FFI_ExecutionContext *context,
                                             XLA_FFI_ExecutionStage stage) {
  if (stage == XLA_FFI_ExecutionStage_INSTANTIATE) return context->instantiate;
  if (context->invocation == NULL || context->invocation->states == NULL) return NULL;
  if (stage == XLA_FFI_ExecutionStage_PREPARE) return &context->invocation->states->prepare;
  if (stage == XLA_FFI_ExecutionStage_INITIALIZE) return &context->invocation->states->initialize;
  return NULL;
}

static XLA_FFI_Error *foreign_api_set_state(const XLA_FFI_ExecutionContext *context,
                                            XLA_FFI_ExecutionStage stage, XLA_FFI_TypeId type,
                                            void *object) {
  mp_foreign_state_t *state = foreign_api_state(context, stage);
  // A stage may set only its own state, so that states in use never change.
  if (state == NULL || stage != context->stage) {
    return mp_foreign_error(mp_status_make(MP_FAILED_PRECONDITION,
                                           "a state of stage %d cannot be set in stage %d",
                                           (int)stage, (int)context->stage));
  }
  return mp_foreign_error(mp_foreign_state_set(state, type, object));
}

static XLA_FFI_Error *foreign_api_get_state(const XLA_FFI_ExecutionContext *context,
                                            XLA_FFI_ExecutionStage stage, XLA_FFI_TypeId type,
                                            void **out_object) {
  const mp_foreign_state_t *state = foreign_api_state(context, stage);
  if (state == NULL) {
    return mp_foreign_error(
        mp_status_make(MP_NOT_FOUND, "there is no state of stage %d", (int)stage));
  }
  return mp_foreign_error(mp_foreign_state_get(state, type, out_object));
}

static XLA_FFI_Error *foreign_api_XLA_FFI_State_Set(XLA_FFI_State_Set_Args *args) {
  if (args->struct_size == XLA_FFI_SIZE(XLA_FFI_State_Args_V02, state)) {
    const XLA_FFI_State_Args_V02 *old = (const XLA_FFI_State_Args_V02 *)args;
    return foreign_api_set_state(old->ctx, XLA_FFI_ExecutionStage_INSTANTIATE, *old->type_id,
                                 old->state);
  }
  CHECK(XLA_FFI_State_Set_Args, state);
  return foreign_api_set_state(args->ctx, args->stage, *args->type_id, args->state);
}

static XLA_FFI_Error *foreign_api_XLA_FFI_State_Get(XLA_FFI_State_Get_Args *args) {
  if (args->struct_size == XLA_FFI_SIZE(XLA_FFI_State_Args_V02, state)) {
    XLA_FFI_State_Args_V02 *old = (XLA_FFI_State_Args_V02 *)args;
    return foreign_api_get_state(old->ctx, XLA_FFI_ExecutionStage_INSTANTIATE, *old->type_id,
                                 &old->state);
  }
  CHECK(XLA_FFI_State_Get_Args, state);
  return foreign_api_get_state(args->ctx, args->stage, *args->type_id, &args->state);
}

// ---- Memory and threads ----

static XLA_FFI_Error *foreign_api_XLA_FFI_DeviceMemory_Allocate(
    XLA_FFI_DeviceMemory_Allocate_Args *args) {
  CHECK(XLA_FFI_DeviceMemory_Allocate_Args, data);
  GET_INVOCATION("device memory");
  if (args->alignment == 0 || (args->alignment & (args->alignment - 1)) != 0 ||
      args->alignment > 64) {
    return mp_foreign_error(mp_status_make(
        MP_INVALID_ARGUMENT, "device memory cannot be aligned to %zu bytes", args->alignment));
  }
  return mp_foreign_error(
      invocation->host->allocate(invocation->host_data, args->size, args->alignment, &args->data));
}

static XLA_FFI_Error *foreign_api_XLA_FFI_DeviceMemory_Free(XLA_FFI_DeviceMemory_Free_Args *args) {
  CHECK(XLA_FFI_DeviceMemory_Free_Args, data);
  GET_INVOCATION("device memory");
  if (args->data != NULL) {
    invocation->host->free(invocation->host_data, args->data, args->size);
  }
  return NULL;
}

static XLA_FFI_Error *foreign_api_XLA_FFI_ThreadPool_Schedule(
    XLA_FFI_ThreadPool_Schedule_Args *args) {
  CHECK(XLA_FFI_ThreadPool_Schedule_Args, data);
  GET_INVOCATION("thread pool");
  return mp_foreign_error(
      invocation->host->schedule(invocation->host_data, args->task, args->data));
}

static XLA_FFI_Error *foreign_api_XLA_FFI_ThreadPool_NumThreads(
    XLA_FFI_ThreadPool_NumThreads_Args *args) {
  CHECK(XLA_FFI_ThreadPool_NumThreads_Args, num_threads);
  GET_INVOCATION("thread pool");
  *args->num_threads = invocation->host->num_threads(invocation->host_data);
  return NULL;
}

// ---- Futures ----

static XLA_FFI_Error *foreign_api_XLA_FFI_Future_Create(XLA_FFI_Future_Create_Args *args) {
  CHECK(XLA_FFI_Future_Create_Args, extension_start);
  return mp_foreign_error(mp_foreign_future_create(&args->future));
}

static XLA_FFI_Error *foreign_api_set_future(XLA_FFI_Future *future, mp_status_t status) {
  if (mp_foreign_future_set(future, status)) return NULL;
  return mp_foreign_error(mp_status_make(MP_FAILED_PRECONDITION, "the future was set before"));
}

static XLA_FFI_Error *foreign_api_XLA_FFI_Future_SetAvailable(
    XLA_FFI_Future_SetAvailable_Args *args) {
  CHECK(XLA_FFI_Future_SetAvailable_Args, future);
  return foreign_api_set_future(args->future, NULL);
}

static XLA_FFI_Error *foreign_api_XLA_FFI_Future_SetError(XLA_FFI_Future_SetError_Args *args) {
  CHECK(XLA_FFI_Future_SetError_Args, error);
  if (args->error == NULL) {
    return mp_foreign_error(
        mp_status_make(MP_INVALID_ARGUMENT, "a future cannot be set to an error that is NULL"));
  }
  return foreign_api_set_future(args->future, mp_foreign_status(args->error));
}

// ---- The table ----

#define FILL_SLOT(result, name) .name = foreign_api_##name,
static const XLA_FFI_Api g_api = {
    .struct_size = sizeof(XLA_FFI_Api),
    .api_version = {.struct_size = XLA_FFI_SIZE(XLA_FFI_Api_Version, minor_version),
                    .major_version = XLA_FFI_API_MAJOR,
                    .minor_version = XLA_FFI_API_MINOR},
    XLA_FFI_FUNCTIONS(FILL_SLOT)};

const XLA_FFI_Api *mp_foreign_api(void) {
  return &g_api;
}

// ---- Calling handlers ----

static void foreign_api_drop_result(void *context, mp_status_t status) {
  (void)context;
  mp_status_ignore(status);
}

typedef struct {
  XLA_FFI_Handler *handler;
  XLA_FFI_CallFrame *frame;
  XLA_FFI_Error *error;
} called_t;

static void foreign_api_call(void *argument) {
  called_t *called = argument;
  called->error = called->handler(called->frame);
}

mp_status_t mp_foreign_invoke(XLA_FFI_Handler *handler, XLA_FFI_CallFrame *frame,
                              XLA_FFI_Future **out_future) {
  mp_lock_assert_none_held();
  called_t called = {.handler = handler, .frame = frame};
  mp_status_t status = mp_foreign_guard(foreign_api_call, &called);
  if (status == NULL) status = mp_foreign_status(called.error);
  if (status == NULL) {
    *out_future = frame->future;
    return NULL;
  }
  mp_status_t late = NULL;
  if (frame->future != NULL &&
      mp_foreign_future_take(frame->future, foreign_api_drop_result, NULL, &late)) {
    mp_status_ignore(late);
  }
  return status;
}

mp_status_t mp_foreign_ask_metadata(XLA_FFI_Handler *handler, XLA_FFI_Metadata *out_metadata) {
  XLA_FFI_Metadata metadata = {
      .struct_size = XLA_FFI_SIZE(XLA_FFI_Metadata, traits),
      .api_version = {.struct_size = XLA_FFI_SIZE(XLA_FFI_Api_Version, minor_version)}};
  XLA_FFI_Metadata_Extension extension = {
      .extension_base = {.struct_size = XLA_FFI_SIZE(XLA_FFI_Metadata_Extension, metadata),
                         .type = XLA_FFI_Extension_Metadata},
      .metadata = &metadata};
  XLA_FFI_CallFrame frame = {
      .struct_size = XLA_FFI_SIZE(XLA_FFI_CallFrame, attrs),
      .extension_start = &extension.extension_base,
      .api = &g_api,
      .stage = XLA_FFI_ExecutionStage_EXECUTE,
      .args = {.struct_size = XLA_FFI_SIZE(XLA_FFI_Args, args)},
      .rets = {.struct_size = XLA_FFI_SIZE(XLA_FFI_Rets, rets)},
      .attrs = {.struct_size = XLA_FFI_SIZE(XLA_FFI_Attrs, attrs)},
  };
  XLA_FFI_Future *future = NULL;
  MP_RETURN_IF_ERROR(mp_foreign_invoke(handler, &frame, &future));
  const int major = metadata.api_version.major_version;
  const int minor = metadata.api_version.minor_version;
  if (major != XLA_FFI_API_MAJOR || minor < 1 || minor > XLA_FFI_API_MINOR) {
    return mp_status_make(
        MP_INVALID_ARGUMENT,
        "it was compiled for version %d.%d of XLA's FFI; minipod has versions 0.1 "
        "to %d.%d: compile it with the headers of this jaxlib",
        major, minor, XLA_FFI_API_MAJOR, XLA_FFI_API_MINOR);
  }
  *out_metadata = metadata;
  return NULL;
}
