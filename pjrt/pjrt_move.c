// Buffers that become other buffers: aliases, donations with a condition, bitcasts. In each of them
// the given buffer is deleted, and another buffer gets its bytes.

#include "pjrt/pjrt_objects.h"
#include "sim/base/alloc.h"

// ---- aliases ----

struct PJRT_FulfillAliasBufferCallback {
  PJRT_Client *client;  // retained
  mp_promise_t *promise;
  const PJRT_Layouts_MemoryLayout *layout;  // NULL: row-major
};

static void pjrt_move_free_callback(PJRT_FulfillAliasBufferCallback *callback) {
  if (callback->promise != NULL) {
    mp_promise_break(callback->promise, mp_status_make(MP_CANCELLED, "there is no alias buffer"));
  }
  mp_pjrt_client_release(callback->client);
  mp_free(callback);
}

mp_status_t mp_PJRT_Client_CreateAliasBuffer(PJRT_Client_CreateAliasBuffer_Args *args) {
  MP_REQUIRE(args, client);
  mp_memory_t *memory = NULL;
  mp_pjrt_shape_t shape;
  MP_RETURN_IF_ERROR(mp_pjrt_choose_memory(__func__, args->memory, NULL, &memory));
  MP_RETURN_IF_ERROR(mp_pjrt_shape_read(__func__, args->shape_element_type, args->shape_dims,
                                        args->shape_num_dims, args->shape_layout, &shape));
  PJRT_FulfillAliasBufferCallback *callback = mp_calloc(1, sizeof(*callback));
  MP_RETURN_IF_NULL(callback);
  callback->client = mp_pjrt_client_retain(args->client);
  callback->layout = shape.layout;
  mp_buffer_t *buffer = NULL;
  mp_status_t status =
      mp_buffer_promise(memory, shape.dtype, shape.dims, shape.rank, &buffer, &callback->promise);
  if (status == NULL) {
    status = mp_pjrt_buffer_wrap(args->client, buffer, shape.layout, &args->alias_buffer);
  }
  if (status != NULL) {
    pjrt_move_free_callback(callback);
    return status;
  }
  args->fulfill_alias_buffer_cb = callback;
  return NULL;
}

static mp_status_t pjrt_move_fulfill(PJRT_FulfillAliasBufferCallback *callback,
                                     const PJRT_Buffer *source) {
  mp_promise_t *promise = callback->promise;
  callback->promise = NULL;
  if (callback->layout == mp_pjrt_buffer_layout(source))
    return mp_promise_keep(promise, source->buffer);
  mp_status_t status = mp_status_make(
      MP_INVALID_ARGUMENT,
      "PJRT_Client_FulfillAliasBuffer: the alias has the layout %s, the buffer %s",
      callback->layout == NULL ? "row-major" : callback->layout->text,
      mp_pjrt_buffer_layout(source) == NULL ? "row-major" : mp_pjrt_buffer_layout(source)->text);
  mp_promise_break(promise, mp_status_retain(status));
  return status;
}

// The callback can be used once. It is freed afterwards, even if the buffer does not fit, because
// then the alias has that error.
mp_status_t mp_PJRT_Client_FulfillAliasBuffer(PJRT_Client_FulfillAliasBuffer_Args *args) {
  MP_REQUIRE(args, fulfill_alias_buffer_cb);
  PJRT_FulfillAliasBufferCallback *callback = args->fulfill_alias_buffer_cb;
  mp_status_t status = NULL;
  if (args->status_code == PJRT_Error_Code_OK) {
    MP_REQUIRE(args, buffer);
    status = pjrt_move_fulfill(callback, args->buffer);
  } else {
    mp_promise_break(callback->promise, mp_pjrt_status(args->status_code, args->error_message,
                                                       args->error_message_size));
    callback->promise = NULL;
  }
  pjrt_move_free_callback(callback);
  return status;
}

// ---- donations with a condition ----

static void pjrt_move_condition_ready(PJRT_Buffer_DonateWithControlDependency_Callback_Args *args) {
  mp_event_t *condition = args->callback_data;
  mp_status_t status = NULL;
  if (args->error_code != PJRT_Error_Code_OK) {
    status = mp_pjrt_status(args->error_code, args->error_message, args->error_message_size);
  }
  mp_event_set(condition, status);
  mp_event_release(condition);
}

mp_status_t mp_PJRT_Buffer_DonateWithControlDependency(
    PJRT_Buffer_DonateWithControlDependency_Args *args) {
  MP_REQUIRE(args, buffer);
  // The wrapper is made first: once the contents have moved, nothing may fail.
  PJRT_Buffer *wrapped = NULL;
  MP_RETURN_IF_ERROR(mp_pjrt_buffer_wrap(args->buffer->client, NULL,
                                         mp_pjrt_buffer_layout(args->buffer), &wrapped));
  const mp_type_t *type = mp_buffer_type(args->buffer->buffer);
  mp_buffer_t *moved = NULL;
  mp_event_t *condition = NULL;
  mp_status_t status = mp_event_create(&condition);
  if (status == NULL) {
    status = mp_buffer_move(args->buffer->buffer, type->dtype, type->dims, type->rank, condition,
                            &moved);
  }
  if (status != NULL) {
    mp_event_release(condition);
    mp_pjrt_buffer_destroy(wrapped);
    return status;
  }
  mp_pjrt_buffer_fill(wrapped, moved);
  args->callback_data = condition;
  args->dependency_ready_callback = pjrt_move_condition_ready;
  args->out_buffer = wrapped;
  return NULL;
}

// ---- bitcasts ----

mp_status_t mp_PJRT_Buffer_Bitcast(PJRT_Buffer_Bitcast_Args *args) {
  MP_REQUIRE(args, buffer);
  mp_pjrt_shape_t shape;
  MP_RETURN_IF_ERROR(mp_pjrt_shape_read(__func__, args->element_type, args->dims, args->num_dims,
                                        args->device_layout, &shape));
  PJRT_Buffer *wrapped = NULL;
  MP_RETURN_IF_ERROR(mp_pjrt_buffer_wrap(args->buffer->client, NULL, shape.layout, &wrapped));
  mp_buffer_t *moved = NULL;
  mp_status_t status =
      mp_buffer_move(args->buffer->buffer, shape.dtype, shape.dims, shape.rank, NULL, &moved);
  if (status != NULL) {
    mp_pjrt_buffer_destroy(wrapped);
    return status;
  }
  mp_pjrt_buffer_fill(wrapped, moved);
  args->out_buffer = wrapped;
  return NULL;
}
