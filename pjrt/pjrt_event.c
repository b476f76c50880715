// Events of the interface: each handle is one reference to a runtime event.

#include "pjrt/pjrt_objects.h"
#include "sim/base/alloc.h"
#include "sim/runtime/devices/launching.h"

mp_status_t mp_PJRT_Event_Destroy(PJRT_Event_Destroy_Args *args) {
  mp_event_release(mp_event_of(args->event));
  return NULL;
}

MP_GETTER(PJRT_Event_IsReady, event, is_ready, mp_event_is_ready(mp_event_of(it)))

mp_status_t mp_PJRT_Event_Error(PJRT_Event_Error_Args *args) {
  MP_REQUIRE(args, event);
  return mp_event_status(mp_event_of(args->event));
}

mp_status_t mp_PJRT_Event_Await(PJRT_Event_Await_Args *args) {
  MP_REQUIRE(args, event);
  mp_launching_note_wait();
  return mp_event_await(mp_event_of(args->event));
}

typedef struct {
  PJRT_Event_OnReadyCallback callback;
  void *user_arg;
} on_ready_t;

// The callback owns its error and may destroy the event.
static void pjrt_event_call_back(mp_status_t status, void *context) {
  on_ready_t on_ready = *(on_ready_t *)context;
  mp_free(context);
  on_ready.callback(mp_pjrt_error(mp_status_retain(status)), on_ready.user_arg);
}

mp_status_t mp_PJRT_Event_OnReady(PJRT_Event_OnReady_Args *args) {
  MP_REQUIRE(args, event);
  MP_REQUIRE(args, callback);
  on_ready_t *context = mp_malloc(sizeof(*context));
  MP_RETURN_IF_NULL(context);
  *context = (on_ready_t){args->callback, args->user_arg};
  mp_status_t status = mp_event_on_ready(mp_event_of(args->event), pjrt_event_call_back, context);
  if (status != NULL) mp_free(context);
  return status;
}

mp_status_t mp_PJRT_Event_Create(PJRT_Event_Create_Args *args) {
  mp_event_t *event = NULL;
  MP_RETURN_IF_ERROR(mp_event_create(&event));
  args->event = mp_pjrt_event(event);
  return NULL;
}

mp_status_t mp_PJRT_Event_Set(PJRT_Event_Set_Args *args) {
  MP_REQUIRE(args, event);
  mp_event_t *event = mp_event_of(args->event);
  if (mp_event_is_ready(event)) {
    return mp_status_make(MP_FAILED_PRECONDITION, "PJRT_Event_Set: the event is set already");
  }
  mp_status_t status = NULL;
  if (args->error_code != PJRT_Error_Code_OK) {
    status = mp_pjrt_status(args->error_code, args->error_message, args->error_message_size);
  }
  mp_event_set(event, status);
  return NULL;
}
