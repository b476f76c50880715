// Copies between host arrays and buffers, and buffers made in other ways than by running a program.

#include "pjrt/pjrt_objects.h"
#include "sim/base/alloc.h"
#include "sim/base/log.h"

// The host array in the runtime's form: dimensions and strides in the order of device memory.
typedef struct {
  mp_pjrt_shape_t shape;
  int64_t strides[MP_MAX_RANK];
  mp_host_array_t array;
} host_source_t;

static mp_status_t pjrt_host_transfer_read_host_array(PJRT_Client_BufferFromHostBuffer_Args *args,
                                                      host_source_t *out) {
  const char *function = "PJRT_Client_BufferFromHostBuffer";
  MP_RETURN_IF_ERROR(mp_pjrt_shape_read(function, args->type, args->dims, args->num_dims,
                                        args->device_layout, &out->shape));
  bool is_empty = false;
  for (size_t i = 0; i < args->num_dims; ++i) is_empty = is_empty || args->dims[i] == 0;
  if (args->data == NULL && !is_empty) {
    return mp_status_make(MP_INVALID_ARGUMENT, "%s: data is NULL", function);
  }
  bool has_strides = args->byte_strides != NULL && args->num_byte_strides > 0;
  if (has_strides && args->num_byte_strides != args->num_dims) {
    return mp_status_make(MP_INVALID_ARGUMENT, "%s: %zu strides for %zu dimensions", function,
                          args->num_byte_strides, args->num_dims);
  }
  int64_t row_major[MP_MAX_RANK];
  MP_RETURN_IF_ERROR(mp_pjrt_layout_strides(function, NULL, args->dims, args->num_dims,
                                            mp_dtype_size(out->shape.dtype), row_major));
  mp_pjrt_layout_to_memory(out->shape.layout, has_strides ? args->byte_strides : row_major,
                           args->num_dims, out->strides);
  out->array = (mp_host_array_t){
      .dtype = out->shape.dtype,
      .rank = out->shape.rank,
      .dims = out->shape.dims,
      .data = args->data,
      .byte_strides = has_strides || out->shape.layout != NULL ? out->strides : NULL,
  };
  return NULL;
}

static mp_status_t pjrt_host_transfer_check_semantics(PJRT_HostBufferSemantics semantics,
                                                      mp_host_semantics_t *out_semantics) {
  switch (semantics) {
    case PJRT_HostBufferSemantics_kImmutableOnlyDuringCall:
      *out_semantics = MP_HOST_ONLY_DURING_CALL;
      return NULL;
    case PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes:
    case PJRT_HostBufferSemantics_kImmutableZeroCopy:  // a permission, not a demand
      *out_semantics = MP_HOST_UNTIL_TRANSFER_COMPLETES;
      return NULL;
    case PJRT_HostBufferSemantics_kMutableZeroCopy:
      return mp_status_make(MP_UNIMPLEMENTED,
                            "PJRT_Client_BufferFromHostBuffer: host memory is always copied to the "
                            "device, so it cannot be shared for writing (kMutableZeroCopy)");
  }
  return mp_status_make(MP_INVALID_ARGUMENT,
                        "PJRT_Client_BufferFromHostBuffer: unknown host buffer semantics %d",
                        (int)semantics);
}

static void pjrt_host_transfer_log(const char *direction, const mp_buffer_t *buffer) {
  if (!mp_log_enabled(MP_LOG_DEBUG)) return;
  const mp_memory_t *memory = mp_buffer_memory(buffer);
  mp_strbuf_t type;
  mp_strbuf_init(&type);
  mp_type_print(mp_buffer_type(buffer), &type);
  mp_log(MP_LOG_DEBUG, "%s device %u (%s): %s", direction, mp_device_id(mp_memory_device(memory)),
         mp_memory_space_name(mp_memory_space(memory)), mp_strbuf_text(&type));
  mp_strbuf_deinit(&type);
}

// If a device, host or link is dead, the array fails and not the call, as for launches: elastic
// managers put an array onto each slice and check which arrays succeed.
static bool pjrt_host_transfer_is_lost(mp_status_t status) {
  const mp_status_code_t code = mp_status_code(status);
  return code == MP_UNAVAILABLE || code == MP_DATA_LOSS;
}

// A failed array with `error` (consumed), whose source is no longer needed.
static mp_status_t pjrt_host_transfer_fail_later(mp_memory_t *memory, const mp_host_array_t *array,
                                                 mp_status_t error, mp_buffer_t **out_buffer,
                                                 mp_event_t **out_done) {
  mp_event_t *done = NULL;
  mp_status_t status = mp_event_create(&done);
  if (status != NULL) {
    mp_status_release(error);
    return status;
  }
  mp_event_set(done, NULL);
  status =
      mp_buffer_create_error(memory, array->dtype, array->dims, array->rank, error, out_buffer);
  if (status != NULL) {
    mp_event_release(done);
    return status;
  }
  *out_done = done;
  return NULL;
}

mp_status_t mp_PJRT_Client_BufferFromHostBuffer(PJRT_Client_BufferFromHostBuffer_Args *args) {
  MP_REQUIRE(args, client);
  mp_memory_t *memory = NULL;
  host_source_t source;
  mp_host_semantics_t semantics = MP_HOST_ONLY_DURING_CALL;
  MP_RETURN_IF_ERROR(mp_pjrt_choose_memory(__func__, args->memory, args->device, &memory));
  MP_RETURN_IF_ERROR(pjrt_host_transfer_read_host_array(args, &source));
  MP_RETURN_IF_ERROR(pjrt_host_transfer_check_semantics(args->host_buffer_semantics, &semantics));
  // The caller frees its data on an error, so nothing may fail once the copy has started.
  PJRT_Buffer *wrapped = NULL;
  MP_RETURN_IF_ERROR(mp_pjrt_buffer_wrap(args->client, NULL, source.shape.layout, &wrapped));
  mp_buffer_t *buffer = NULL;
  mp_event_t *done = NULL;
  mp_status_t status = mp_buffer_from_host(memory, &source.array, semantics, &buffer, &done);
  if (status != NULL && pjrt_host_transfer_is_lost(status)) {
    status = pjrt_host_transfer_fail_later(memory, &source.array, status, &buffer, &done);
  }
  if (status != NULL) {
    mp_pjrt_buffer_destroy(wrapped);
    return status;
  }
  pjrt_host_transfer_log("put on", buffer);
  mp_pjrt_buffer_fill(wrapped, buffer);
  args->buffer = wrapped;
  args->done_with_host_buffer = mp_pjrt_event(done);
  return NULL;
}

// Checks that an array with these strides fits into `dst_size` bytes. The strides must not be
// negative, because `dst` is where the array starts.
static mp_status_t pjrt_host_transfer_check_span(const mp_type_t *type, const int64_t *dims,
                                                 const int64_t *strides, size_t dst_size) {
  int64_t span = (int64_t)mp_dtype_size(type->dtype);
  for (uint32_t i = 0; i < type->rank; ++i) {
    if (dims[i] == 0) return NULL;
    int64_t step = 0;
    if (strides[i] < 0 || __builtin_mul_overflow(dims[i] - 1, strides[i], &step) ||
        __builtin_add_overflow(span, step, &span)) {
      return mp_status_make(MP_INVALID_ARGUMENT,
                            "PJRT_Buffer_ToHostBuffer: the stride of dimension %u is %lld", i,
                            (long long)strides[i]);
    }
  }
  if ((uint64_t)span <= dst_size) return NULL;
  return mp_status_make(MP_INVALID_ARGUMENT,
                        "PJRT_Buffer_ToHostBuffer: the array takes %lld bytes, dst has %zu",
                        (long long)span, dst_size);
}

// Without a host layout the bytes are copied in the order of device memory.
mp_status_t mp_PJRT_Buffer_ToHostBuffer(PJRT_Buffer_ToHostBuffer_Args *args) {
  MP_REQUIRE(args, src);
  mp_buffer_t *buffer = args->src->buffer;
  if (args->dst == NULL) {
    args->dst_size = mp_buffer_bytes(buffer);
    return NULL;
  }
  const mp_type_t *type = mp_buffer_type(buffer);
  const int64_t *dims = mp_pjrt_buffer_dims(args->src);
  int64_t strides[MP_MAX_RANK], in_memory[MP_MAX_RANK];
  MP_RETURN_IF_ERROR(mp_pjrt_layout_strides("PJRT_Buffer_ToHostBuffer", args->host_layout, dims,
                                            type->rank, mp_dtype_size(type->dtype), strides));
  MP_RETURN_IF_ERROR(pjrt_host_transfer_check_span(type, dims, strides, args->dst_size));
  mp_pjrt_layout_to_memory(mp_pjrt_buffer_layout(args->src), strides, type->rank, in_memory);
  pjrt_host_transfer_log("got from", buffer);
  mp_event_t *done = NULL;
  MP_RETURN_IF_ERROR(mp_buffer_to_host(buffer, args->dst, args->dst_size,
                                       args->host_layout == NULL ? NULL : in_memory, &done));
  args->event = mp_pjrt_event(done);
  return NULL;
}

static mp_status_t pjrt_host_transfer_check_range(const char *function, int64_t offset,
                                                  int64_t size) {
  if (offset >= 0 && size >= 0) return NULL;
  return mp_status_make(MP_INVALID_ARGUMENT, "%s: offset %lld and size %lld must not be negative",
                        function, (long long)offset, (long long)size);
}

mp_status_t mp_PJRT_Buffer_CopyRawToHost(PJRT_Buffer_CopyRawToHost_Args *args) {
  MP_REQUIRE(args, buffer);
  MP_RETURN_IF_ERROR(pjrt_host_transfer_check_range("PJRT_Buffer_CopyRawToHost", args->offset,
                                                    args->transfer_size));
  if (args->transfer_size > 0) MP_REQUIRE(args, dst);
  mp_event_t *done = NULL;
  MP_RETURN_IF_ERROR(mp_buffer_read_raw(args->buffer->buffer, args->dst, (uint64_t)args->offset,
                                        (uint64_t)args->transfer_size, &done));
  args->event = mp_pjrt_event(done);
  return NULL;
}

// A read whose destination the client gives later, through a callback.
typedef struct {
  mp_buffer_t *buffer;
  mp_event_t *event;
  uint64_t offset, size;
} raw_future_t;

static void pjrt_host_transfer_raw_future_ready(
    PJRT_Buffer_CopyRawToHostFuture_Callback_Args *args) {
  raw_future_t *future = args->callback_data;
  mp_status_t status = NULL;
  if (args->error_code != PJRT_Error_Code_OK) {
    status = mp_pjrt_status(args->error_code, args->error_message, args->error_message_size);
  } else {
    status = mp_buffer_read_raw_to(future->buffer, args->dst, future->offset, future->size,
                                   future->event);
  }
  if (status != NULL) mp_event_set(future->event, status);  // nothing was started
  mp_event_release(future->event);
  mp_buffer_release(future->buffer);
  mp_free(future);
}

mp_status_t mp_PJRT_Buffer_CopyRawToHostFuture(PJRT_Buffer_CopyRawToHostFuture_Args *args) {
  MP_REQUIRE(args, buffer);
  MP_RETURN_IF_ERROR(pjrt_host_transfer_check_range("PJRT_Buffer_CopyRawToHostFuture", args->offset,
                                                    args->transfer_size));
  mp_event_t *event = NULL;
  MP_RETURN_IF_ERROR(mp_event_create(&event));
  raw_future_t *future = mp_malloc(sizeof(*future));
  if (future == NULL) {
    mp_event_release(event);
    return mp_status_out_of_memory();
  }
  *future = (raw_future_t){.buffer = mp_buffer_retain(args->buffer->buffer),
                           .event = mp_event_retain(event),
                           .offset = (uint64_t)args->offset,
                           .size = (uint64_t)args->transfer_size};
  args->event = mp_pjrt_event(event);
  args->callback_data = future;
  args->future_ready_callback = pjrt_host_transfer_raw_future_ready;
  return NULL;
}

// The buffer is ready at once, with uninitialized contents.
mp_status_t mp_PJRT_Client_CreateUninitializedBuffer(
    PJRT_Client_CreateUninitializedBuffer_Args *args) {
  MP_REQUIRE(args, client);
  mp_memory_t *memory = NULL;
  mp_pjrt_shape_t shape;
  MP_RETURN_IF_ERROR(mp_pjrt_choose_memory(__func__, args->memory, args->device, &memory));
  MP_RETURN_IF_ERROR(mp_pjrt_shape_read("PJRT_Client_CreateUninitializedBuffer",
                                        args->shape_element_type, args->shape_dims,
                                        args->shape_num_dims, args->shape_layout, &shape));
  mp_buffer_t *buffer = NULL;
  mp_event_t *definition = NULL;
  MP_RETURN_IF_ERROR(
      mp_buffer_create(memory, shape.dtype, shape.dims, shape.rank, &buffer, &definition));
  mp_event_set(definition, NULL);
  mp_event_release(definition);
  return mp_pjrt_buffer_wrap(args->client, buffer, shape.layout, &args->buffer);
}

mp_status_t mp_PJRT_Client_CreateErrorBuffer(PJRT_Client_CreateErrorBuffer_Args *args) {
  MP_REQUIRE(args, client);
  mp_memory_t *memory = NULL;
  mp_pjrt_shape_t shape;
  MP_RETURN_IF_ERROR(mp_pjrt_choose_memory(__func__, args->memory, NULL, &memory));
  const bool has_device_layout = MP_HAS(args, device_layout) && args->device_layout != NULL;
  MP_RETURN_IF_ERROR(mp_pjrt_shape_read(
      "PJRT_Client_CreateErrorBuffer", args->shape_element_type, args->shape_dims,
      args->shape_num_dims, has_device_layout ? args->device_layout : args->shape_layout, &shape));
  mp_status_t error =
      mp_pjrt_status(args->error_code, args->error_message, args->error_message_size);
  mp_buffer_t *buffer = NULL;
  MP_RETURN_IF_ERROR(
      mp_buffer_create_error(memory, shape.dtype, shape.dims, shape.rank, error, &buffer));
  return mp_pjrt_buffer_wrap(args->client, buffer, shape.layout, &args->buffer);
}

typedef struct {
  void (*on_delete)(void *data, void *user_arg);
  void *data, *user_arg;
} view_t;

static void pjrt_host_transfer_view_released(void *context) {
  view_t view = *(view_t *)context;
  mp_free(context);
  if (view.on_delete != NULL) view.on_delete(view.data, view.user_arg);
}

mp_status_t mp_PJRT_Client_CreateViewOfDeviceBuffer(
    PJRT_Client_CreateViewOfDeviceBuffer_Args *args) {
  MP_REQUIRE(args, client);
  mp_memory_t *memory = NULL;
  mp_pjrt_shape_t shape;
  MP_RETURN_IF_ERROR(mp_pjrt_choose_memory(__func__, args->memory, args->device, &memory));
  MP_RETURN_IF_ERROR(mp_pjrt_shape_read("PJRT_Client_CreateViewOfDeviceBuffer", args->element_type,
                                        args->dims, args->num_dims, args->layout, &shape));
  // The wrapper is made first: releasing a view calls the caller back, which the caller does not
  // expect from a failed call.
  PJRT_Buffer *wrapped = NULL;
  MP_RETURN_IF_ERROR(mp_pjrt_buffer_wrap(args->client, NULL, shape.layout, &wrapped));
  mp_buffer_t *buffer = NULL;
  view_t *view = mp_malloc(sizeof(*view));
  mp_status_t status = view == NULL ? mp_status_out_of_memory() : NULL;
  if (status == NULL) {
    *view =
        (view_t){args->on_delete_callback, args->device_buffer_ptr, args->on_delete_callback_arg};
    status = mp_buffer_view_external(memory, shape.dtype, shape.dims, shape.rank,
                                     args->device_buffer_ptr, pjrt_host_transfer_view_released,
                                     view, &buffer);
  }
  if (status != NULL) {
    mp_free(view);
    mp_pjrt_buffer_destroy(wrapped);
    return status;
  }
  mp_pjrt_buffer_fill(wrapped, buffer);
  args->buffer = wrapped;
  return NULL;
}
