// PJRT_Error: a status behind the function table that callers of minor 107 and later may use.

#include <string.h>

#include "pjrt/pjrt_objects.h"
#include "sim/base/alloc.h"
#include "sim/base/assert.h"
#include "sim/base/log.h"
#include "sim/runtime/devices/unread.h"

// `base`, the part that the interface knows, comes first.
typedef struct {
  PJRT_Error base;
  mp_status_t status;
} pjrt_error_t;

static mp_status_t pjrt_error_status_of(const PJRT_Error *error) {
  return ((const pjrt_error_t *)error)->status;
}

static void pjrt_error_destroy(PJRT_Error *error);

static void pjrt_error_message(const PJRT_Error *error, const char **out_message,
                               size_t *out_size) {
  *out_message = mp_status_message(pjrt_error_status_of(error));
  *out_size = strlen(*out_message);
}

static PJRT_Error_Code pjrt_error_code(const PJRT_Error *error) {
  return (PJRT_Error_Code)mp_status_code(pjrt_error_status_of(error));
}

// minipod's errors have no payloads.
static void pjrt_error_for_each_payload(const PJRT_Error *error, PJRT_Error_PayloadVisitor visitor,
                                        void *user_arg) {
  (void)error;
  (void)visitor;
  (void)user_arg;
}

static const PJRT_Error_FunctionTable error_functions = {
    .struct_size = PJRT_STRUCT_SIZE(PJRT_Error_FunctionTable, for_each_payload),
    .instance_size = sizeof(pjrt_error_t),
    .destroy = pjrt_error_destroy,
    .message = pjrt_error_message,
    .get_code = pjrt_error_code,
    .for_each_payload = pjrt_error_for_each_payload,
};

// The error that is returned when there is no memory for an error object. It gets the static
// out-of-memory status when it is first needed, and is never freed.
static pjrt_error_t no_memory = {.base = {&error_functions}};

static void pjrt_error_destroy(PJRT_Error *error) {
  if (error == NULL || error == &no_memory.base) return;
  mp_status_release(pjrt_error_status_of(error));
  mp_free(error);
}

void mp_pjrt_log_origin(mp_status_t status) {
  int line = 0;
  const char *file = mp_status_origin(status, &line);
  if (file == NULL) return;
  mp_log(MP_LOG_DEBUG, "%s:%d: %s: %s", file, line, mp_status_code_name(mp_status_code(status)),
         mp_status_message(status));
}

void mp_pjrt_log_unread(void) {
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_unread_take(&text);
  if (text.size != 0) {
    mp_log(MP_LOG_WARNING, "errors that the script never saw:");
    mp_log_lines(MP_LOG_WARNING, mp_strbuf_text(&text));
  }
  mp_strbuf_deinit(&text);
}

PJRT_Error *mp_pjrt_error(mp_status_t status) {
  if (status == NULL) return NULL;
  MP_ASSERT(mp_status_code(status) != MP_OK);
  mp_pjrt_log_origin(status);
  mp_unread_deliver(status);
  pjrt_error_t *error = mp_malloc(sizeof(*error));
  if (error == NULL) {
    mp_status_release(status);
    // The status is static and so is the object, so writing the same pointer again is harmless.
    __atomic_store_n(&no_memory.status, mp_status_out_of_memory(), __ATOMIC_RELEASE);
    return &no_memory.base;
  }
  *error = (pjrt_error_t){{&error_functions}, status};
  return &error->base;
}

mp_status_t mp_pjrt_status(PJRT_Error_Code code, const char *message, size_t message_size) {
  mp_status_code_t status_code = (mp_status_code_t)code;
  if (code < PJRT_Error_Code_CANCELLED || code > PJRT_Error_Code_UNAUTHENTICATED) {
    status_code = MP_UNKNOWN;
  }
  if (message == NULL) message_size = 0;
  if (message_size > 1 << 20) message_size = 1 << 20;
  return mp_status_make(status_code, "%.*s", (int)message_size, message == NULL ? "" : message);
}

mp_status_t mp_pjrt_take_error(PJRT_Error *error) {
  if (error == NULL) return NULL;
  mp_status_t status = mp_status_retain(pjrt_error_status_of(error));
  pjrt_error_destroy(error);
  return status;
}

// A NULL error is usual here: clients destroy whatever a call returned.
mp_status_t mp_PJRT_Error_Destroy(PJRT_Error_Destroy_Args *args) {
  pjrt_error_destroy(args->error);
  return NULL;
}

mp_status_t mp_PJRT_Error_Message(PJRT_Error_Message_Args *args) {
  args->message = "";
  args->message_size = 0;
  if (args->error != NULL) pjrt_error_message(args->error, &args->message, &args->message_size);
  return NULL;
}

mp_status_t mp_PJRT_Error_GetCode(PJRT_Error_GetCode_Args *args) {
  args->code = args->error == NULL ? PJRT_Error_Code_OK : pjrt_error_code(args->error);
  return NULL;
}

mp_status_t mp_PJRT_Error_ForEachPayload(PJRT_Error_ForEachPayload_Args *args) {
  if (args->error != NULL) pjrt_error_for_each_payload(args->error, args->visitor, args->user_arg);
  return NULL;
}
