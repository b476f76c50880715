// The CrossHostTransfers extension (type 12): sends buffers from a device of one process to a
// device of another, for device_put.

#include "pjrt/extensions/extensions.h"
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

static mp_status_t ext_cross_host_transfers_receive_one(
    const PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers_Args *args, mp_memory_t *memory,
    size_t i) {
  const char *function = "PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers";
  mp_pjrt_shape_t shape;
  MP_RETURN_IF_ERROR(mp_pjrt_shape_read(function, args->element_types[i], args->num_dims[i],
                                        args->shape_num_dims[i],
                                        args->layouts == NULL ? NULL : args->layouts[i], &shape));
  PJRT_Buffer *wrapped = NULL;
  MP_RETURN_IF_ERROR(mp_pjrt_buffer_wrap(args->client, NULL, shape.layout, &wrapped));
  mp_buffer_t *buffer = NULL;
  mp_status_t status =
      mp_parcel_receive(memory, shape.dtype, shape.dims, shape.rank,
                        (uint32_t)args->src_global_device_ids[i], args->transfer_keys[i], &buffer);
  if (status != NULL) {
    mp_pjrt_buffer_destroy(wrapped);
    return mp_status_annotate(status, "%s: shape %zu", function, i);
  }
  mp_pjrt_buffer_fill(wrapped, buffer);
  args->buffers[i] = wrapped;
  return NULL;
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
  mp_memory_t *memory = NULL;
  mp_status_t status = mp_pjrt_choose_memory(function, NULL, args->device, &memory);
  size_t count = 0;
  while (count < args->num_shapes && status == NULL) {
    status = ext_cross_host_transfers_receive_one(args, memory, count);
    if (status == NULL) ++count;
  }
  for (size_t i = 0; status != NULL && i < count; ++i) mp_pjrt_buffer_destroy(args->buffers[i]);
  return mp_pjrt_error(status);
}

// ---- The older form ----

static mp_status_t ext_cross_host_transfers_refuse(void) {
  return mp_status_make(MP_UNIMPLEMENTED,
                        "transfers between processes go by CrossHostSendBuffers and "
                        "CrossHostReceiveBuffers, not by descriptors");
}

static PJRT_Error *ext_cross_host_transfers_make_receive_buffers(
    PJRT_Transfers_PJRT_Client_MakeCrossHostReceiveBuffers_Args *args) {
  (void)args;
  return mp_pjrt_error(ext_cross_host_transfers_refuse());
}

static void ext_cross_host_transfers_copy_to_remote_device(
    PJRT_Transfers_PJRT_Buffer_CopyToRemoteDevice_Args *args) {
  if (args->event != NULL) mp_event_release(mp_event_of(args->event));
  if (args->on_done.on_done == NULL) return;
  args->on_done.on_done(mp_pjrt_error(ext_cross_host_transfers_refuse()), false,
                        args->on_done.user_arg);
}

MP_PJRT_EXTENSION(CrossHostTransfers, cross_host_transfers) = {
    MP_PJRT_EXTENSION_BASE(CrossHostTransfers),
    .make_cross_host_receive_buffers = ext_cross_host_transfers_make_receive_buffers,
    .copy_to_remote_device = ext_cross_host_transfers_copy_to_remote_device,
    .cross_host_receive_buffers = ext_cross_host_transfers_receive,
    .cross_host_send_buffers = ext_cross_host_transfers_send,
};
