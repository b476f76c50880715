// The CrossHostTransfers extension (type 12), version 8: sends buffers from a device of one process
// to a device of another. There are two ways: both sides know each other and a key (JAX's
// device_put); or the receiver makes descriptors of its buffers, which the client brings to the
// sender (TorchTPU's send and recv).
//
// The processes that the caller names (num_tasks) are not read: parcels of a dead process are
// refused anyway.

#include "pjrt/extensions/extensions.h"
#include "sim/base/alloc.h"
#include "sim/runtime/parcels/parcel.h"

// ---- Sending ----

static mp_status_t ext_cross_host_transfers_send_one(
    const PJRT_Transfers_PJRT_Client_CrossHostSendBuffers_Args *args, size_t i) {
  const char *function = "PJRT_Transfers_PJRT_Client_CrossHostSendBuffers";
  const PJRT_Buffer *buffer = args->buffers[i];
  if (buffer == NULL) {
    return mp_status_make(MP_INVALID_ARGUMENT, "%s: buffer %zu is NULL", function, i);
  }
  mp_event_t *sent = NULL;
  mp_status_t status = mp_parcel_send(buffer->buffer, (uint32_t)args->dst_global_device_ids[i],
                                      args->transfer_keys[i], &sent);
  if (status != NULL) return mp_status_annotate(status, "%s: buffer %zu", function, i);
  args->send_events[i] = mp_pjrt_event(sent);
  return NULL;
}

// Buffers sent before one fails stay sent, because the receivers await them.
static PJRT_Error *ext_cross_host_transfers_send(
    PJRT_Transfers_PJRT_Client_CrossHostSendBuffers_Args *args) {
  if (args->num_buffers != 0 && (args->buffers == NULL || args->dst_global_device_ids == NULL ||
                                 args->transfer_keys == NULL || args->send_events == NULL)) {
    return mp_pjrt_error(mp_status_make(
        MP_INVALID_ARGUMENT, "PJRT_Transfers_PJRT_Client_CrossHostSendBuffers: an array is NULL"));
  }
  mp_status_t status = NULL;
  size_t count = 0;
  while (count < args->num_buffers && status == NULL) {
    status = ext_cross_host_transfers_send_one(args, count);
    if (status == NULL) ++count;
  }
  for (size_t i = 0; status != NULL && i < count; ++i) {
    mp_event_release(mp_event_of(args->send_events[i]));
  }
  return mp_pjrt_error(status);
}

// ---- Receiving ----

// What a call receives: from known devices by keys or, with tickets, from whatever devices have
// them.
typedef struct {
  const char *function;
  PJRT_Client *client;
  mp_memory_t *memory;
  size_t count;
  // Each [count]:
  const PJRT_Buffer_Type *types;
  const int64_t *const *dims;
  const size_t *ranks;
  PJRT_Buffer_MemoryLayout *const *layouts;  // NULL: row-major
  const int32_t *sources;                    // used without tickets
  const int64_t *keys;                       // used without tickets
  mp_parcel_ticket_t *tickets;               // NULL: none
  PJRT_Buffer **buffers;
} receives_t;

// From the arguments of either function; without what follows `buffers`.
#define RECEIVES(name, args)                                                                   \
  (receives_t) {                                                                               \
    .function = name, .client = (args)->client, .count = (args)->num_shapes,                   \
    .types = (args)->element_types, .dims = (args)->num_dims, .ranks = (args)->shape_num_dims, \
    .layouts = (args)->layouts, .buffers = (args)->buffers                                     \
  }

static mp_status_t ext_cross_host_transfers_receive_one(const receives_t *all, size_t i) {
  mp_pjrt_shape_t shape;
  MP_RETURN_IF_ERROR(mp_pjrt_shape_read(all->function, all->types[i], all->dims[i], all->ranks[i],
                                        all->layouts == NULL ? NULL : all->layouts[i], &shape));
  PJRT_Buffer *wrapped = NULL;
  MP_RETURN_IF_ERROR(mp_pjrt_buffer_wrap(all->client, NULL, shape.layout, &wrapped));
  mp_buffer_t *buffer = NULL;
  mp_status_t status = all->tickets != NULL
                           ? mp_parcel_receive_any(all->memory, shape.dtype, shape.dims, shape.rank,
                                                   &all->tickets[i], &buffer)
                           : mp_parcel_receive(all->memory, shape.dtype, shape.dims, shape.rank,
                                               (uint32_t)all->sources[i], all->keys[i], &buffer);
  if (status != NULL) {
    mp_pjrt_buffer_destroy(wrapped);
    return mp_status_annotate(status, "%s: shape %zu", all->function, i);
  }
  mp_pjrt_buffer_fill(wrapped, buffer);
  all->buffers[i] = wrapped;
  return NULL;
}

// On a device of the client. All or nothing.
static mp_status_t ext_cross_host_transfers_receive_all(receives_t *all, PJRT_Device *device) {
  MP_RETURN_IF_ERROR(mp_pjrt_choose_memory(all->function, NULL, device, &all->memory));
  size_t count = 0;
  mp_status_t status = NULL;
  while (count < all->count && status == NULL) {
    status = ext_cross_host_transfers_receive_one(all, count);
    if (status == NULL) ++count;
  }
  for (size_t i = 0; status != NULL && i < count; ++i) {
    if (all->tickets != NULL) {
      mp_parcel_cancel(all->client->client, &all->tickets[i], mp_status_retain(status));
    }
    mp_pjrt_buffer_destroy(all->buffers[i]);
  }
  return status;
}

static PJRT_Error *ext_cross_host_transfers_receive(
    PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers_Args *args) {
  const char *function = "PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers";
  if (args->client == NULL ||
      (args->num_shapes != 0 && (args->shape_num_dims == NULL || args->num_dims == NULL ||
                                 args->element_types == NULL || args->transfer_keys == NULL ||
                                 args->src_global_device_ids == NULL || args->buffers == NULL))) {
    return mp_pjrt_error(
        mp_status_make(MP_INVALID_ARGUMENT, "%s: the client or an array is NULL", function));
  }
  receives_t all = RECEIVES(function, args);
  all.sources = args->src_global_device_ids;
  all.keys = args->transfer_keys;
  return mp_pjrt_error(ext_cross_host_transfers_receive_all(&all, args->device));
}

// ---- By descriptors: receiving ----

// Calls the client's function, and destroys the error that it was lent.
static void ext_cross_host_transfers_tell(mp_status_t error,
                                          PJRT_Transfers_CrossHostOnCanceledCallback *tell,
                                          void *user_arg) {
  PJRT_Error *lent = mp_pjrt_error(error);
  if (tell != NULL) tell(lent, user_arg);
  mp_status_release(mp_pjrt_take_error(lent));
}

static mp_status_t ext_cross_host_transfers_read_ticket(const char *bytes, size_t size,
                                                        mp_parcel_ticket_t *out_ticket) {
  if (bytes == NULL || size != sizeof(*out_ticket)) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "a descriptor of %zu bytes is not minipod's, which has %zu",
                          bytes == NULL ? 0 : size, sizeof(*out_ticket));
  }
  memcpy(out_ticket, bytes, size);
  return NULL;
}

// `user_arg` is the client, or NULL if cancelling has no effect.
static void ext_cross_host_transfers_cancel(const char *descriptor, size_t descriptor_size,
                                            PJRT_Error_Code reason, const char *message,
                                            size_t message_size,
                                            PJRT_Transfers_CrossHostOnCanceledCallback *on_canceled,
                                            void *on_canceled_user_arg, void *user_arg) {
  mp_status_t status = NULL;
  if (user_arg != NULL) {
    mp_parcel_ticket_t ticket;
    status = ext_cross_host_transfers_read_ticket(descriptor, descriptor_size, &ticket);
    const PJRT_Client *client = user_arg;
    if (status == NULL) {
      mp_parcel_cancel(client->client, &ticket, mp_pjrt_status(reason, message, message_size));
    }
  }
  ext_cross_host_transfers_tell(status, on_canceled, on_canceled_user_arg);
}

// What one call makes for its descriptors.
typedef struct {
  mp_parcel_ticket_t *tickets;
  const char **descriptors;
  size_t *sizes;
} descriptors_t;

static void ext_cross_host_transfers_free(descriptors_t *made) {
  mp_free(made->tickets);
  mp_free(made->descriptors);
  mp_free(made->sizes);
}

static mp_status_t ext_cross_host_transfers_allocate(size_t count, descriptors_t *out_made) {
  *out_made = (descriptors_t){mp_calloc(count, sizeof(mp_parcel_ticket_t)),
                              mp_calloc(count, sizeof(char *)), mp_calloc(count, sizeof(size_t))};
  if (out_made->tickets != NULL && out_made->descriptors != NULL && out_made->sizes != NULL) {
    for (size_t i = 0; i < count; ++i) {
      out_made->descriptors[i] = (const char *)&out_made->tickets[i];
      out_made->sizes[i] = sizeof(mp_parcel_ticket_t);
    }
    return NULL;
  }
  ext_cross_host_transfers_free(out_made);
  return mp_status_out_of_memory();
}

static PJRT_Error *ext_cross_host_transfers_make_receive_buffers(
    PJRT_Transfers_PJRT_Client_MakeCrossHostReceiveBuffers_Args *args) {
  const char *function = "PJRT_Transfers_PJRT_Client_MakeCrossHostReceiveBuffers";
  if (args->client == NULL || args->notifier.notifier == NULL ||
      (args->num_shapes != 0 && (args->shape_num_dims == NULL || args->num_dims == NULL ||
                                 args->element_types == NULL || args->buffers == NULL))) {
    return mp_pjrt_error(mp_status_make(
        MP_INVALID_ARGUMENT, "%s: the client, the notifier or an array is NULL", function));
  }
  descriptors_t made;
  mp_status_t status = ext_cross_host_transfers_allocate(args->num_shapes, &made);
  if (status != NULL) return mp_pjrt_error(status);
  receives_t all = RECEIVES(function, args);
  all.tickets = made.tickets;
  status = ext_cross_host_transfers_receive_all(&all, args->device);
  if (status == NULL) {
    args->num_buffers = args->num_shapes;
    const bool may_cancel = MP_HAS(args, allow_cancel_notifier) && args->allow_cancel_notifier;
    args->notifier.notifier(NULL, made.descriptors, made.sizes, args->num_shapes,
                            args->notifier.user_arg, ext_cross_host_transfers_cancel,
                            may_cancel ? args->client : NULL);
  }
  ext_cross_host_transfers_free(&made);
  return mp_pjrt_error(status);
}

// ---- By descriptors: sending ----

// A copy whose descriptor has not come, or whose contents are being sent.
typedef struct {
  mp_buffer_t *buffer;
  mp_event_t *ready;  // of the descriptor; NULL: it can be read
  char **descriptor;
  size_t *size;
  void (*destructor)(char **descriptor, size_t *size);
  PJRT_Transfers_CrossHostRemoteSendCallbackInfo on_done;
} remote_copy_t;

static void ext_cross_host_transfers_end_copy(remote_copy_t *copy, mp_status_t error,
                                              bool is_enqueued) {
  PJRT_Error *lent = mp_pjrt_error(error);
  if (copy->on_done.on_done != NULL) {
    copy->on_done.on_done(lent, is_enqueued, copy->on_done.user_arg);
  }
  mp_status_release(mp_pjrt_take_error(lent));
  mp_buffer_release(copy->buffer);
  mp_event_release(copy->ready);
  mp_free(copy);
}

static void ext_cross_host_transfers_on_sent(mp_status_t status, void *context) {
  ext_cross_host_transfers_end_copy(context, mp_status_retain(status), true);
}

static mp_status_t ext_cross_host_transfers_start_copy(remote_copy_t *copy, mp_status_t status,
                                                       mp_event_t **out_sent) {
  mp_parcel_ticket_t ticket;
  MP_RETURN_IF_ERROR(mp_status_retain(status));
  const char *bytes = copy->descriptor == NULL ? NULL : *copy->descriptor;
  MP_RETURN_IF_ERROR(
      ext_cross_host_transfers_read_ticket(bytes, copy->size == NULL ? 0 : *copy->size, &ticket));
  return mp_parcel_send_to(copy->buffer, &ticket, out_sent);
}

// The descriptor can be read, or will never come.
static void ext_cross_host_transfers_on_descriptor(mp_status_t status, void *context) {
  remote_copy_t *copy = context;
  mp_event_t *sent = NULL;
  mp_status_t error = ext_cross_host_transfers_start_copy(copy, status, &sent);
  error = mp_status_annotate(error, "PJRT_Transfers_PJRT_Buffer_CopyToRemoteDevice");
  if (copy->destructor != NULL) copy->destructor(copy->descriptor, copy->size);
  if (error == NULL) {
    error = mp_event_on_ready(sent, ext_cross_host_transfers_on_sent, copy);
    mp_event_release(sent);
  }
  if (error != NULL) ext_cross_host_transfers_end_copy(copy, error, false);
}

static void ext_cross_host_transfers_copy_to_remote_device(
    PJRT_Transfers_PJRT_Buffer_CopyToRemoteDevice_Args *args) {
  mp_event_t *ready = args->event == NULL ? NULL : mp_event_of(args->event);
  remote_copy_t *copy = args->buffer == NULL ? NULL : mp_calloc(1, sizeof(*copy));
  if (copy == NULL) {
    PJRT_Error *error = mp_pjrt_error(
        args->buffer == NULL
            ? mp_pjrt_null_argument("PJRT_Transfers_PJRT_Buffer_CopyToRemoteDevice", "buffer")
            : mp_status_out_of_memory());
    if (args->on_done.on_done != NULL) args->on_done.on_done(error, false, args->on_done.user_arg);
    mp_status_release(mp_pjrt_take_error(error));
    mp_event_release(ready);
    return;
  }
  *copy = (remote_copy_t){
      .buffer = mp_buffer_retain(args->buffer->buffer),
      .ready = ready,
      .descriptor = args->serialized_descriptor,
      .size = args->serialized_descriptor_size,
      .destructor = MP_HAS(args, descriptor_destructor) ? args->descriptor_destructor : NULL,
      .on_done = args->on_done};
  if (ready == NULL) {
    ext_cross_host_transfers_on_descriptor(NULL, copy);
    return;
  }
  mp_status_t status = mp_event_on_ready(ready, ext_cross_host_transfers_on_descriptor, copy);
  if (status != NULL) ext_cross_host_transfers_end_copy(copy, status, false);
}

MP_PJRT_EXTENSION(CrossHostTransfers, cross_host_transfers) = {
    MP_PJRT_EXTENSION_BASE(CrossHostTransfers),
    .make_cross_host_receive_buffers = ext_cross_host_transfers_make_receive_buffers,
    .copy_to_remote_device = ext_cross_host_transfers_copy_to_remote_device,
    .cross_host_receive_buffers = ext_cross_host_transfers_receive,
    .cross_host_send_buffers = ext_cross_host_transfers_send,
};
