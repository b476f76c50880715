// Transfers: copies between the host and buffers and between memory spaces.
//
// A transfer waits for its source's definition without holding a thread. A small one is then done
// at once, by the caller or by the thread that sets the event; a large one becomes a job for the
// workers.
#include <inttypes.h>

#include "sim/base/alloc.h"
#include "sim/base/containers/list.h"
#include "sim/kernels/strided.h"
#include "sim/numeric/dims.h"
#include "sim/runtime/buffers/absent.h"
#include "sim/runtime/buffers/buffer_impl.h"
#include "sim/runtime/devices/device_impl.h"
#include "sim/runtime/devices/pacer.h"
#include "sim/runtime/devices/reach.h"
#include "sim/runtime/workers/job.h"
#include "sim/runtime/workers/worker.h"

enum {
  MP_INLINE_BYTES = 1 << 20,  // larger ones are jobs
  // Host arrays up to this size are copied before the call returns, even if the caller allows more:
  // users do change NumPy arrays that they have given to JAX.
  MP_HOST_COPY_BYTES = 64 << 20,
  MP_LONG_BYTES = 64 << 10,  // copies that take longer than waking a worker
};

typedef struct transfer_s transfer_t;
struct transfer_s {
  mp_job_t job;  // first, because its callbacks get a pointer to it
  mp_client_t *client;
  transfer_t *next;               // in t_due
  mp_status_t source_error;       // of the source's definition: then nothing is copied
  mp_storage_t *source, *target;  // holds; NULL: that side is the host
  const void *from;
  void *to;
  mp_event_t *done;  // a reference
  uint64_t bytes;
  mp_strided_t copy;
  // For reads of values that were not computed: the elements, and which bytes of the array are
  // read.
  mp_dtype_t dtype;
  uint64_t offset;
  void *stand_in;       // owned: the substitute that is copied
  bool *out_is_absent;  // set if the values were not computed, and nothing is copied; NULL: a
                        // substitute is copied
};

static void transfer_describe_bytes(mp_strided_t *copy, uint64_t bytes) {
  mp_strided_init(copy, 1);
  mp_strided_add_dim(copy, (int64_t)bytes, 1, 1);
  mp_strided_finish(copy);
}

// Describes the copy of an array whose sides have these byte strides (NULL: dense row-major). A
// token has no bytes.
static void transfer_describe(mp_strided_t *copy, const mp_type_t *type, const int64_t *dst_strides,
                              const int64_t *src_strides) {
  if (type->kind == MP_TYPE_TOKEN) {
    transfer_describe_bytes(copy, 0);
    return;
  }
  size_t element = mp_dtype_size(type->dtype);
  int64_t dense[MP_MAX_RANK];
  int64_t step = (int64_t)element;
  for (uint32_t d = type->rank; d-- > 0;) {
    dense[d] = step;
    step = mp_dims_next_stride(step, type->dims[d]);
  }
  mp_strided_init(copy, element);
  for (uint32_t d = 0; d < type->rank; ++d) {
    mp_strided_add_dim(copy, type->dims[d], dst_strides == NULL ? dense[d] : dst_strides[d],
                       src_strides == NULL ? dense[d] : src_strides[d]);
  }
  mp_strided_finish(copy);
}

static mp_status_t transfer_run_part(mp_job_t *job, uint32_t part, void *scratch) {
  (void)scratch;
  transfer_t *transfer = (transfer_t *)job;
  mp_strided_run_part(&transfer->copy, transfer->to, transfer->from, job->num_parts, part);
  return NULL;
}

// Gives back everything that the transfer holds, except the event, which the caller gets.
static mp_event_t *transfer_dispose(transfer_t *transfer) {
  mp_client_t *client = transfer->client;
  mp_event_t *done = transfer->done;
  mp_storage_release(transfer->source);
  mp_storage_release(transfer->target);
  mp_free(transfer->stand_in);
  mp_free(transfer);
  mp_client_unhold(client);
  return done;
}

// Ends a transfer. Sets the event last, so that its waiters find correct statistics.
static void transfer_finish(mp_job_t *job, mp_status_t status) {
  mp_event_t *done = transfer_dispose((transfer_t *)job);
  mp_event_set(done, status);
  mp_event_release(done);
}

// When programs run for their shapes alone: whether the transfer is over without a copy.
static bool transfer_end_without_values(transfer_t *transfer) {
  if (!transfer->client->shapes_only) return false;
  const mp_storage_t *source = transfer->source, *target = transfer->target;
  const bool is_small = target == NULL || target->bytes <= MP_SMALL_BYTES;
  const bool has_values = is_small && (source == NULL || source->values->are_there);
  // The target gets its values here, unless its address is already known (mp_buffer_promise).
  if (has_values && source != NULL && target != NULL && target->values->data == NULL) {
    mp_status_t status = mp_values_copy(target->values, source->values, transfer->bytes);
    target->values->are_there = status == NULL;
    transfer_finish(&transfer->job, status);
    return true;
  }
  if (target != NULL) target->values->are_there = has_values;
  if (has_values && source != NULL) transfer->from = mp_storage_find(source, transfer->from);
  if (has_values && target != NULL) transfer->to = mp_storage_find(target, transfer->to);
  if (has_values) return false;
  mp_status_t status = NULL;
  if (target != NULL) {
    if (source != NULL) mp_values_set_maker(target->values, source->values->maker);
  } else if (transfer->out_is_absent != NULL) {
    *transfer->out_is_absent = true;
  } else {
    status = mp_absent_read(source, transfer->dtype, transfer->offset, transfer->bytes,
                            &transfer->stand_in);
    if (status == NULL) {
      transfer->from = transfer->stand_in;
      return false;
    }
  }
  transfer_finish(&transfer->job, status);
  return true;
}

static void transfer_start(transfer_t *transfer) {
  if (transfer->source_error != NULL) {
    transfer_finish(&transfer->job, transfer->source_error);
  } else if (transfer_end_without_values(transfer)) {
    return;
  } else if (transfer->job.num_parts == 1) {
    if (transfer->bytes >= MP_LONG_BYTES) mp_worker_looks_later();
    mp_strided_run(&transfer->copy, transfer->to, transfer->from);
    transfer_finish(&transfer->job, NULL);
  } else {
    mp_job_submit(transfer->client, &transfer->job);
  }
}

// Transfers that this thread has yet to start. Others may wait for the end of one transfer, and so
// on, and such a chain must not nest on the stack. So the outermost call starts all of them, one
// after the other.
static _Thread_local struct {
  bool is_starting;
  MP_QUEUE(transfer_t) transfers;
} t_due;

static void transfer_on_source(mp_status_t status, void *context) {
  transfer_t *transfer = context;
  transfer->source_error = mp_status_retain(status);
  MP_QUEUE_PUSH(&t_due.transfers, transfer, next);
  if (t_due.is_starting) return;
  t_due.is_starting = true;
  while ((transfer = t_due.transfers.first) != NULL) {
    MP_QUEUE_POP(&t_due.transfers, next);
    transfer_start(transfer);
  }
  t_due.is_starting = false;
}

typedef struct {
  const void *from;
  void *to;
  mp_storage_t *source, *target;  // consumed, also on failure
  mp_event_t *after;              // borrowed; NULL: at once
  uint64_t bytes;
  const mp_strided_t *copy;
  mp_dtype_t dtype;  // this and the following: as in a transfer
  uint64_t offset;
  bool *out_is_absent;
} transfer_request_t;

// Starts a transfer, at once or when request->after is set. `done` is borrowed and set at the end;
// on an error it is not set.
static mp_status_t transfer_begin(mp_client_t *client, const transfer_request_t *request,
                                  mp_event_t *done) {
  transfer_t *transfer = mp_calloc(1, sizeof(*transfer));
  if (transfer == NULL) {
    mp_storage_release(request->source);
    mp_storage_release(request->target);
    return mp_status_out_of_memory();
  }
  transfer->job.run = transfer_run_part;
  transfer->job.done = transfer_finish;
  transfer->job.num_parts =
      request->bytes <= MP_INLINE_BYTES ? 1 : mp_strided_num_parts(request->copy);
  transfer->client = client;
  transfer->source = request->source;
  transfer->target = request->target;
  transfer->from = request->from;
  transfer->to = request->to;
  transfer->bytes = request->bytes;
  transfer->copy = *request->copy;
  transfer->dtype = request->dtype;
  transfer->offset = request->offset;
  transfer->out_is_absent = request->out_is_absent;
  transfer->done = mp_event_retain(done);
  mp_client_hold(client);
  if (request->after == NULL || mp_event_is_ready(request->after)) {
    if (request->after != NULL) transfer->source_error = mp_event_status(request->after);
    transfer_start(transfer);
    return NULL;
  }
  mp_status_t status = mp_event_on_ready(request->after, transfer_on_source, transfer);
  if (status != NULL) mp_event_release(transfer_dispose(transfer));
  return status;
}

// Gives the event of a started transfer to the caller, if it requested one. `stamp` names the
// transfer in the model of time.
static mp_status_t transfer_give_event(mp_client_t *client, mp_status_t status, mp_stamp_t stamp,
                                       mp_event_t *done, mp_event_t **out_done) {
  if (status == NULL && out_done != NULL) *out_done = mp_pacer_hold_back(client, done, stamp);
  mp_event_release(done);
  return status;
}

// ---- From the host ----

// For a caller whose memory may be used only during the call: its thread copies, and idle workers
// help.
typedef struct {
  mp_job_t job;
  const mp_strided_t *copy;
  void *to;
  const void *from;
} copy_job_t;

static mp_status_t transfer_run_copy_part(mp_job_t *job, uint32_t part, void *scratch) {
  (void)scratch;
  copy_job_t *copy = (copy_job_t *)job;
  mp_strided_run_part(copy->copy, copy->to, copy->from, job->num_parts, part);
  return NULL;
}

static mp_status_t transfer_copy_now(mp_client_t *client, const mp_strided_t *copy, void *to,
                                     const void *from, uint64_t bytes) {
  if (bytes <= MP_INLINE_BYTES) {
    mp_strided_run(copy, to, from);
    return NULL;
  }
  copy_job_t job = {.job = {.run = transfer_run_copy_part, .num_parts = mp_strided_num_parts(copy)},
                    .copy = copy,
                    .to = to,
                    .from = from};
  return mp_job_attend(client, mp_worker_current(), &job.job);
}

// Whether programs run for their shapes alone and the array is too large to have values.
static bool transfer_lacks_values(const mp_client_t *client, uint64_t bytes) {
  return client->shapes_only && bytes > MP_SMALL_BYTES;
}

mp_status_t mp_buffer_from_host(mp_memory_t *memory, const mp_host_array_t *array,
                                mp_host_semantics_t semantics, mp_buffer_t **out_buffer,
                                mp_event_t **out_done) {
  mp_client_t *client = mp_device_client(memory->device);
  MP_RETURN_IF_ERROR(
      mp_client_check_transfer(client, mp_memory_host_end(memory), mp_memory_end(memory)));
  mp_buffer_t *buffer;
  mp_event_t *definition;
  MP_RETURN_IF_ERROR(mp_buffer_create_labelled(memory, MP_ORIGIN_HOST, array->dtype, array->dims,
                                               array->rank, &buffer, &definition));
  mp_strided_t copy;
  transfer_describe(&copy, &buffer->form->type, NULL, array->byte_strides);
  mp_status_t status = NULL;
  if (transfer_lacks_values(client, buffer->form->bytes)) {
    mp_event_set(definition, NULL);
  } else if (semantics == MP_HOST_ONLY_DURING_CALL || buffer->form->bytes <= MP_HOST_COPY_BYTES) {
    status =
        transfer_copy_now(client, &copy, buffer->storage->data, array->data, buffer->form->bytes);
    if (buffer->storage->values != NULL) buffer->storage->values->are_there = true;
    if (status == NULL) mp_event_set(definition, NULL);
  } else {
    transfer_request_t request = {.from = array->data,
                                  .to = buffer->storage->data,
                                  .target = mp_storage_retain(buffer->storage),
                                  .bytes = buffer->form->bytes,
                                  .copy = &copy};
    status = transfer_begin(client, &request, definition);
  }
  if (status != NULL) {
    mp_event_release(definition);
    mp_buffer_release(buffer);
    return status;
  }
  mp_buffer_note_fill(buffer);
  *out_buffer = buffer;
  // The source is no longer needed when the contents are complete.
  if (out_done != NULL) {
    *out_done = definition;
  } else {
    mp_event_release(definition);
  }
  return NULL;
}

// ---- To the host ----

// Records in the model of time that the host reads `bytes` and waits for them; returns the stamp of
// the read. For data in host memory only the wait is recorded.
static mp_stamp_t transfer_note_read(const mp_buffer_t *buffer, uint64_t bytes) {
  const mp_device_t *device = buffer->memory->device;
  const bool is_on_host = buffer->memory->space != MP_MEMORY_DEVICE;
  if (device->client->model == NULL || (is_on_host && buffer->stamp == 0)) return 0;
  return mp_model_get(device->client->model, mp_device_id(device), is_on_host ? 0 : bytes,
                      buffer->stamp);
}

void mp_buffer_note_view(mp_buffer_t *buffer) {
  if (mp_device_client(buffer->memory->device)->model == NULL) return;
  mp_outside_t *outside = atomic_load(&buffer->outside);
  if (outside == NULL) return;  // no reader is possible
  // Of two threads at the same time one records the copy, as with a lock.
  uint64_t none = 0;
  if (!atomic_compare_exchange_strong(&outside->view, &none, 1)) return;
  atomic_store(&outside->view, transfer_note_read(buffer, buffer->form->bytes));
}

mp_event_t *mp_buffer_ready_event(mp_buffer_t *buffer, bool is_wait) {
  mp_client_t *client = mp_device_client(buffer->memory->device);
  if (!is_wait) return mp_pacer_hold_back(client, buffer->definition, buffer->stamp);
  const mp_outside_t *outside = atomic_load(&buffer->outside);
  const mp_stamp_t view = outside == NULL ? 0 : atomic_load(&outside->view);
  const mp_stamp_t stamp = view > 1 ? view : transfer_note_read(buffer, 0);
  return mp_pacer_hold_back(client, buffer->definition, stamp);
}

void mp_buffer_note_fill(mp_buffer_t *buffer) {
  const mp_memory_t *memory = buffer->memory;
  mp_model_t *model = mp_device_client(memory->device)->model;
  if (model == NULL || memory->space != MP_MEMORY_DEVICE) return;
  buffer->stamp = mp_model_put(model, mp_device_id(memory->device), buffer->form->bytes);
}

mp_status_t mp_buffer_check_read(const mp_buffer_t *buffer) {
  const mp_memory_t *memory = buffer->memory;
  return mp_client_check_transfer(mp_device_client(memory->device), mp_memory_end(memory),
                                  mp_memory_host_end(memory));
}

mp_status_t mp_buffer_check_write(const mp_buffer_t *buffer) {
  const mp_memory_t *memory = buffer->memory;
  return mp_client_check_transfer(mp_device_client(memory->device), mp_memory_host_end(memory),
                                  mp_memory_end(memory));
}

mp_status_t mp_buffer_to_host(mp_buffer_t *buffer, void *dst, uint64_t dst_bytes,
                              const int64_t *byte_strides, mp_event_t **out_done) {
  mp_client_t *client = mp_device_client(buffer->memory->device);
  MP_RETURN_IF_ERROR(mp_client_check(client));
  MP_RETURN_IF_ERROR(mp_buffer_check_read(buffer));
  if (dst_bytes < buffer->form->bytes) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "the destination has %" PRIu64 " bytes, the array %" PRIu64, dst_bytes,
                          buffer->form->bytes);
  }
  mp_strided_t copy;
  transfer_describe(&copy, &buffer->form->type, byte_strides, NULL);
  mp_event_t *done = NULL;
  MP_RETURN_IF_ERROR(mp_event_create(&done));
  mp_storage_t *source = NULL;
  mp_status_t status = mp_buffer_hold_storage(buffer, &source);
  if (status == NULL) {
    transfer_request_t request = {.from = source == NULL ? NULL : source->data,
                                  .to = dst,
                                  .source = source,
                                  .after = buffer->definition,
                                  .bytes = buffer->form->bytes,
                                  .copy = &copy,
                                  .dtype = buffer->form->type.dtype};
    status = transfer_begin(client, &request, done);
  }
  const mp_stamp_t stamp = status == NULL ? transfer_note_read(buffer, buffer->form->bytes) : 0;
  return transfer_give_event(client, status, stamp, done, out_done);
}

static mp_status_t transfer_check_range(const mp_buffer_t *buffer, uint64_t offset, uint64_t size) {
  MP_RETURN_IF_ERROR(mp_client_check(mp_device_client(buffer->memory->device)));
  if (offset > buffer->form->bytes || size > buffer->form->bytes - offset) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "bytes %" PRIu64 " to %" PRIu64 " are not all in a buffer of %" PRIu64
                          " bytes",
                          offset, offset + size, buffer->form->bytes);
  }
  return NULL;
}

static mp_status_t transfer_read_raw(mp_buffer_t *buffer, void *dst, uint64_t offset, uint64_t size,
                                     mp_event_t *done, bool *out_is_absent, mp_stamp_t *out_stamp) {
  MP_RETURN_IF_ERROR(transfer_check_range(buffer, offset, size));
  mp_strided_t copy;
  transfer_describe_bytes(&copy, size);
  mp_storage_t *source = NULL;
  MP_RETURN_IF_ERROR(mp_buffer_hold_storage(buffer, &source));
  transfer_request_t request = {.from = source == NULL ? NULL : (char *)source->data + offset,
                                .to = dst,
                                .source = source,
                                .after = buffer->definition,
                                .bytes = size,
                                .copy = &copy,
                                .dtype = buffer->form->type.dtype,
                                .offset = offset,
                                .out_is_absent = out_is_absent};
  MP_RETURN_IF_ERROR(transfer_begin(mp_device_client(buffer->memory->device), &request, done));
  *out_stamp = transfer_note_read(buffer, size);
  return NULL;
}

mp_status_t mp_buffer_read_raw_to(mp_buffer_t *buffer, void *dst, uint64_t offset, uint64_t size,
                                  mp_event_t *done) {
  mp_stamp_t stamp;
  return transfer_read_raw(buffer, dst, offset, size, done, NULL, &stamp);
}

mp_status_t mp_buffer_read_values_to(mp_buffer_t *buffer, void *dst, mp_event_t *done,
                                     bool *out_is_absent) {
  mp_stamp_t stamp;
  return transfer_read_raw(buffer, dst, 0, buffer->form->bytes, done, out_is_absent, &stamp);
}

mp_status_t mp_buffer_read_raw(mp_buffer_t *buffer, void *dst, uint64_t offset, uint64_t size,
                               mp_event_t **out_done) {
  mp_event_t *done = NULL;
  MP_RETURN_IF_ERROR(mp_buffer_check_read(buffer));
  MP_RETURN_IF_ERROR(mp_event_create(&done));
  mp_stamp_t stamp = 0;
  const mp_status_t status = transfer_read_raw(buffer, dst, offset, size, done, NULL, &stamp);
  return transfer_give_event(mp_device_client(buffer->memory->device), status, stamp, done,
                             out_done);
}

mp_status_t mp_buffer_write_raw_to(mp_buffer_t *buffer, const void *src, uint64_t offset,
                                   uint64_t size, mp_event_t *done) {
  MP_RETURN_IF_ERROR(transfer_check_range(buffer, offset, size));
  mp_strided_t copy;
  transfer_describe_bytes(&copy, size);
  mp_storage_t *target = NULL;
  MP_RETURN_IF_ERROR(mp_buffer_hold_storage(buffer, &target));
  if (target == NULL) {
    return mp_status_make(MP_FAILED_PRECONDITION, "an error buffer cannot be written");
  }
  transfer_request_t request = {.from = src,
                                .to = (char *)target->data + offset,
                                .target = target,
                                .bytes = size,
                                .copy = &copy};
  return transfer_begin(mp_device_client(buffer->memory->device), &request, done);
}

// ---- Between memories ----

mp_status_t mp_storage_copy(mp_client_t *client, const mp_storage_copy_t *what, mp_event_t *done) {
  mp_strided_t copy;
  transfer_describe_bytes(&copy, what->bytes);
  transfer_request_t request = {.from = what->source == NULL ? NULL : what->source->data,
                                .to = what->target->data,
                                .source = what->source,
                                .target = what->target,
                                .after = what->after,
                                .bytes = what->bytes,
                                .copy = &copy};
  return transfer_begin(client, &request, done);
}

static mp_model_place_t transfer_place(const mp_memory_t *memory) {
  return (mp_model_place_t){.device = mp_device_id(memory->device), .space = memory->space};
}

// Copies inside a memory, and between those of one host, take no time.
static mp_stamp_t transfer_note_copy(const mp_buffer_t *buffer, const mp_memory_t *memory) {
  mp_model_t *model = mp_device_client(memory->device)->model;
  const mp_memory_t *from = buffer->memory;
  const bool is_on_device = from->space == MP_MEMORY_DEVICE || memory->space == MP_MEMORY_DEVICE;
  const bool is_same = from->device == memory->device && (from == memory || !is_on_device);
  if (model == NULL || is_same) return buffer->stamp;
  return mp_model_copy(model, transfer_place(from), transfer_place(memory), buffer->form->bytes,
                       buffer->stamp);
}

mp_status_t mp_buffer_copy_to_memory(mp_buffer_t *buffer, mp_memory_t *memory,
                                     mp_buffer_t **out_buffer) {
  mp_client_t *client = mp_device_client(buffer->memory->device);
  MP_RETURN_IF_ERROR(mp_client_check(client));
  if (mp_device_client(memory->device) != client) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "a buffer can only be copied to a memory of its own client");
  }
  MP_RETURN_IF_ERROR(
      mp_client_check_transfer(client, mp_memory_end(buffer->memory), mp_memory_end(memory)));
  mp_storage_t *source = NULL;
  MP_RETURN_IF_ERROR(mp_buffer_hold_storage(buffer, &source));
  mp_buffer_t *copy_buffer = NULL;
  mp_event_t *definition = NULL;
  mp_status_t status = mp_buffer_create_labelled(memory, MP_ORIGIN_COPY, buffer->form->type.dtype,
                                                 buffer->form->type.dims, buffer->form->type.rank,
                                                 &copy_buffer, &definition);
  if (status != NULL) {
    mp_storage_release(source);
    return status;
  }
  copy_buffer->is_behind_call = buffer->is_behind_call;
  copy_buffer->stamp = transfer_note_copy(buffer, memory);
  const mp_storage_copy_t copy = {.source = source,
                                  .target = mp_storage_retain(copy_buffer->storage),
                                  .after = buffer->definition,
                                  .bytes = buffer->form->bytes};
  status = mp_storage_copy(client, &copy, definition);
  mp_event_release(definition);
  if (status != NULL) {
    mp_buffer_release(copy_buffer);
    return status;
  }
  *out_buffer = copy_buffer;
  return NULL;
}
