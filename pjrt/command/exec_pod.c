#include "pjrt/command/exec_pod.h"

#include <stdlib.h>
#include <string.h>

#include "pjrt/command/exec_part.h"
#include "pjrt/package/pjrt_time.h"
#include "pjrt/plugin/pjrt_api.h"
#include "sim/base/alloc.h"
#include "sim/base/os/clock.h"
#include "sim/base/proto.h"
#include "sim/runtime/buffers/storage.h"
#include "sim/runtime/devices/device.h"

// Calls a function of the interface like any client.
#define CALL(function, args) mp_pjrt_take_error(GetPjrtApi()->function(args))
#define ARGS(function, last) \
  { .struct_size = PJRT_STRUCT_SIZE(function##_Args, last) }

static mp_status_t exec_pod_await(PJRT_Event *event) {
  PJRT_Event_Await_Args wait = ARGS(PJRT_Event_Await, event);
  wait.event = event;
  mp_status_t status = CALL(PJRT_Event_Await, &wait);
  PJRT_Event_Destroy_Args destroy = ARGS(PJRT_Event_Destroy, event);
  destroy.event = event;
  mp_status_ignore(CALL(PJRT_Event_Destroy, &destroy));
  return status;
}

// ---- client and program ----

static bool exec_pod_is_said(const char *variable) {
  const char *value = getenv(variable);
  return value != NULL && value[0] != '\0';
}

static mp_status_t exec_pod_make_client(uint32_t num_devices, mp_exec_pod_t *pod) {
  PJRT_NamedValue option = mp_pjrt_named_int("num_devices", num_devices);
  PJRT_Client_Create_Args args = ARGS(PJRT_Client_Create, kv_try_get_user_arg);
  args.create_options = &option;
  args.num_options = !exec_pod_is_said("MINIPOD_DEVICES") && !exec_pod_is_said("MINIPOD_TOPOLOGY");
  MP_RETURN_IF_ERROR(CALL(PJRT_Client_Create, &args));
  pod->client = args.client;
  if (pod->client->num_addressable == pod->client->num_devices) return NULL;
  return mp_status_make(MP_UNIMPLEMENTED,
                        "the pod is one of several processes, which this command does not run on");
}

// A CompileOptionsProto: executable_build_options (3) with num_replicas (4), num_partitions (5) and
// use_spmd_partitioning (6).
static void exec_pod_print_options(const mp_exec_program_t *program, mp_strbuf_t *out) {
  mp_strbuf_t build;
  mp_strbuf_init(&build);
  mp_proto_put_varint(&build, 4, program->num_replicas);
  mp_proto_put_varint(&build, 5, program->num_partitions);
  mp_proto_put_varint(&build, 6, 1);
  mp_proto_put_message(out, 3, &build);
  mp_strbuf_deinit(&build);
}

static mp_status_t exec_pod_compile(const mp_exec_program_t *program, mp_exec_pod_t *pod) {
  mp_strbuf_t options;
  mp_strbuf_init(&options);
  exec_pod_print_options(program, &options);
  PJRT_Program code = {.struct_size = PJRT_STRUCT_SIZE(PJRT_Program, format_size),
                       .code = (char *)program->code.data,
                       .code_size = program->code.size,
                       .format = program->form,
                       .format_size = strlen(program->form)};
  PJRT_Client_Compile_Args args = ARGS(PJRT_Client_Compile, executable);
  args.client = pod->client;
  args.program = &code;
  args.compile_options = mp_strbuf_text(&options);
  args.compile_options_size = options.size;
  mp_status_t status = mp_strbuf_status(&options);
  if (status == NULL) status = CALL(PJRT_Client_Compile, &args);
  mp_strbuf_deinit(&options);
  if (status == NULL) pod->loaded = args.executable;
  return status;
}

// Lists of buffers, one for each device.
static mp_status_t exec_pod_make_lists(uint32_t num_devices, uint32_t count,
                                       PJRT_Buffer ****out_lists) {
  PJRT_Buffer ***lists = mp_calloc(num_devices, sizeof(lists[0]));
  MP_RETURN_IF_NULL(lists);
  *out_lists = lists;
  for (uint32_t d = 0; d < num_devices; ++d) {
    lists[d] = mp_calloc(count, sizeof(lists[d][0]));
    MP_RETURN_IF_NULL(lists[d]);
  }
  return NULL;
}

mp_status_t mp_exec_pod_open(const mp_exec_program_t *program, mp_exec_pod_t *pod) {
  MP_RETURN_IF_ERROR(exec_pod_make_client(program->num_replicas * program->num_partitions, pod));
  MP_RETURN_IF_ERROR(exec_pod_compile(program, pod));
  pod->program = pod->loaded->executable->program;
  pod->num_devices = (uint32_t)pod->loaded->num_addressable;
  pod->devices = pod->loaded->addressable_list;
  MP_RETURN_IF_ERROR(
      exec_pod_make_lists(pod->num_devices, pod->program->num_params, &pod->arguments));
  return exec_pod_make_lists(pod->num_devices, pod->program->num_results, &pod->results);
}

static void exec_pod_drop(PJRT_Buffer **buffer) {
  PJRT_Buffer_Destroy_Args args = ARGS(PJRT_Buffer_Destroy, buffer);
  args.buffer = *buffer;
  if (*buffer != NULL) mp_status_ignore(CALL(PJRT_Buffer_Destroy, &args));
  *buffer = NULL;
}

static void exec_pod_free_lists(uint32_t num_devices, uint32_t count, PJRT_Buffer ***lists) {
  for (uint32_t d = 0; lists != NULL && d < num_devices; ++d) {
    for (uint32_t i = 0; lists[d] != NULL && i < count; ++i) exec_pod_drop(&lists[d][i]);
    mp_free(lists[d]);
  }
  mp_free(lists);
}

void mp_exec_pod_close(mp_exec_pod_t *pod) {
  if (pod->loaded != NULL) {
    exec_pod_free_lists(pod->num_devices, pod->program->num_params, pod->arguments);
    exec_pod_free_lists(pod->num_devices, pod->program->num_results, pod->results);
    PJRT_LoadedExecutable_Destroy_Args args = ARGS(PJRT_LoadedExecutable_Destroy, executable);
    args.executable = pod->loaded;
    mp_status_ignore(CALL(PJRT_LoadedExecutable_Destroy, &args));
  }
  if (pod->client != NULL) {
    PJRT_Client_Destroy_Args args = ARGS(PJRT_Client_Destroy, client);
    args.client = pod->client;
    mp_status_ignore(CALL(PJRT_Client_Destroy, &args));
  }
}

// ---- whole arrays and their parts ----

static mp_status_t exec_pod_check(const mp_program_io_t *io,
                                  const PJRT_Layouts_MemoryLayout *layout, const char *what) {
  const mp_type_t *type = io->type;
  const char *why = NULL;
  if (!mp_type_is_static(type) || !mp_type_is_static(io->global_type)) {
    why = "is not a plain array";
  } else if (io->sharding != NULL && io->sharding->partials != NULL) {
    why = "is an unreduced sum";
  } else if (layout != NULL && !layout->is_row_major) {
    why = "has a layout that is not row-major";
  }
  for (uint32_t i = 0; why == NULL && io->sharding != NULL && i < io->sharding->num_partitions;
       ++i) {
    const int64_t *sizes = io->sharding->sizes + (size_t)i * type->rank;
    if (memcmp(sizes, type->dims, sizeof(sizes[0]) * type->rank) != 0) {
      why = "is cut into uneven parts";
    }
  }
  if (why == NULL) return NULL;
  return mp_status_make(MP_UNIMPLEMENTED, "%s %s, which 'minipod exec' has no files for", what,
                        why);
}

static mp_status_t exec_pod_shape(const mp_exec_pod_t *pod, const mp_program_io_t *io,
                                  const char *what, mp_exec_array_t *out_array) {
  const mp_type_t *type = io->type, *whole = io->global_type;
  mp_exec_array_t array = {.dtype = type->dtype};
  if (pod->program->num_replicas > 1) array.dims[array.rank++] = pod->program->num_replicas;
  for (uint32_t d = 0; d < whole->rank; ++d) array.dims[array.rank++] = whole->dims[d];
  int64_t bytes = 0;
  array.count = 1;
  bool fits = true;
  for (uint32_t d = 0; d < array.rank; ++d) {
    fits = fits && !__builtin_mul_overflow(array.count, array.dims[d], &array.count);
  }
  fits = fits && !__builtin_mul_overflow(array.count, (int64_t)mp_dtype_size(array.dtype), &bytes);
  if (!fits) return mp_status_make(MP_UNIMPLEMENTED, "%s is too large for an array", what);
  *out_array = array;
  return NULL;
}

mp_status_t mp_exec_pod_shape_of_argument(const mp_exec_pod_t *pod, uint32_t index,
                                          const char *what, mp_exec_array_t *out_array) {
  const mp_program_io_t *io = &pod->program->params[index];
  PJRT_Layouts_MemoryLayout **layouts = pod->loaded->executable->parameter_layouts;
  MP_RETURN_IF_ERROR(exec_pod_check(io, layouts == NULL ? NULL : layouts[index], what));
  return exec_pod_shape(pod, io, what, out_array);
}

mp_status_t mp_exec_pod_shape_of_result(const mp_exec_pod_t *pod, uint32_t index, const char *what,
                                        mp_exec_array_t *out_array) {
  const mp_program_io_t *io = &pod->program->results[index];
  PJRT_Layouts_MemoryLayout **layouts = pod->loaded->executable->output_layouts;
  MP_RETURN_IF_ERROR(exec_pod_check(io, layouts == NULL ? NULL : layouts[index], what));
  return exec_pod_shape(pod, io, what, out_array);
}

// The place of a device's part in the whole array.
static mp_exec_part_t exec_pod_part(const mp_exec_pod_t *pod, const mp_program_io_t *io,
                                    uint32_t device) {
  const uint32_t partitions = pod->program->num_partitions;
  const mp_type_t *whole = io->global_type;
  mp_exec_part_t part = {.rank = whole->rank, .count = 1};
  int64_t step = 1;
  for (uint32_t d = whole->rank; d-- > 0;) {
    part.dims[d] = io->type->dims[d];
    part.steps[d] = step;
    if (io->sharding != NULL) {
      part.begin += step * io->sharding->starts[device % partitions * whole->rank + d];
    }
    step *= whole->dims[d];
    part.count *= part.dims[d];
  }
  part.begin += device / partitions * step;  // of the replica
  return part;
}

// ---- arguments, runs, results ----

static mp_status_t exec_pod_send(mp_exec_pod_t *pod, uint32_t index, uint32_t device,
                                 const void *data) {
  const mp_program_io_t *io = &pod->program->params[index];
  PJRT_Client_BufferFromHostBuffer_Args args = ARGS(PJRT_Client_BufferFromHostBuffer, buffer);
  args.client = pod->client;
  args.data = data;
  args.type = (PJRT_Buffer_Type)mp_dtype_number(io->type->dtype, MP_NUMBERS_PJRT);
  args.dims = io->type->dims;
  args.num_dims = io->type->rank;
  args.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes;
  args.memory = pod->devices[device]->memories[io->memory];
  MP_RETURN_IF_ERROR(CALL(PJRT_Client_BufferFromHostBuffer, &args));
  pod->arguments[device][index] = args.buffer;
  MP_RETURN_IF_ERROR(exec_pod_await(args.done_with_host_buffer));
  // The transfer to the device does not count as part of a run.
  PJRT_Buffer_ReadyEvent_Args ready = ARGS(PJRT_Buffer_ReadyEvent, event);
  ready.buffer = args.buffer;
  MP_RETURN_IF_ERROR(CALL(PJRT_Buffer_ReadyEvent, &ready));
  return exec_pod_await(ready.event);
}

// For arrays without values on this pod (option `values`): sends no data.
static mp_status_t exec_pod_send_nothing(mp_exec_pod_t *pod, uint32_t index, uint32_t device) {
  const mp_program_io_t *io = &pod->program->params[index];
  PJRT_Client_CreateUninitializedBuffer_Args args =
      ARGS(PJRT_Client_CreateUninitializedBuffer, buffer);
  args.client = pod->client;
  args.shape_dims = io->type->dims;
  args.shape_num_dims = io->type->rank;
  args.shape_element_type = (PJRT_Buffer_Type)mp_dtype_number(io->type->dtype, MP_NUMBERS_PJRT);
  args.memory = pod->devices[device]->memories[io->memory];
  MP_RETURN_IF_ERROR(CALL(PJRT_Client_CreateUninitializedBuffer, &args));
  pod->arguments[device][index] = args.buffer;
  return NULL;
}

static mp_status_t exec_pod_put(mp_exec_pod_t *pod, uint32_t index, const mp_exec_array_t *array,
                                uint64_t seed) {
  const mp_program_io_t *io = &pod->program->params[index];
  char *data = NULL;
  const bool is_absent =
      io->bytes > MP_SMALL_BYTES && array->data == NULL && mp_exec_pod_is_absent(pod);
  mp_status_t status = NULL;
  if (!is_absent) {
    data = mp_malloc(io->bytes);
    MP_RETURN_IF_NULL(data);
  }
  for (uint32_t d = 0; d < pod->num_devices && status == NULL; ++d) {
    exec_pod_drop(&pod->arguments[d][index]);
    if (is_absent) {
      status = exec_pod_send_nothing(pod, index, d);
      continue;
    }
    const mp_exec_part_t part = exec_pod_part(pod, io, d);
    if (array->data != NULL) {
      mp_exec_part_take(&part, array, data);
    } else {
      mp_exec_part_draw(&part, array->dtype, seed, index, data);
    }
    status = exec_pod_send(pod, index, d, data);
  }
  mp_free(data);
  return status;
}

mp_status_t mp_exec_pod_put(mp_exec_pod_t *pod, uint32_t index, const mp_exec_array_t *array,
                            uint64_t seed) {
  return mp_status_annotate(exec_pod_put(pod, index, array, seed), "argument %u", index);
}

bool mp_exec_pod_needs(const mp_exec_pod_t *pod, uint32_t index) {
  const PJRT_Buffer *buffer = pod->arguments[0][index];
  return buffer == NULL || mp_buffer_is_deleted(buffer->buffer);
}

bool mp_exec_pod_is_absent(const mp_exec_pod_t *pod) {
  return mp_client_has_shapes_only(pod->client->client);
}

// Waits for all events, and returns the first error.
static mp_status_t exec_pod_await_all(PJRT_Event **events, uint32_t count) {
  mp_status_t first = NULL;
  for (uint32_t i = 0; i < count; ++i) {
    mp_status_t status = exec_pod_await(events[i]);
    if (first == NULL) {
      first = status;
    } else {
      mp_status_ignore(status);
    }
  }
  return first;
}

mp_status_t mp_exec_pod_run(mp_exec_pod_t *pod, double *out_real, double *out_virtual) {
  for (uint32_t d = 0; d < pod->num_devices; ++d) {
    for (uint32_t i = 0; i < pod->program->num_results; ++i) exec_pod_drop(&pod->results[d][i]);
  }
  PJRT_Event **done = mp_calloc(pod->num_devices, sizeof(done[0]));
  MP_RETURN_IF_NULL(done);
  PJRT_ExecuteOptions options = {
      .struct_size = PJRT_STRUCT_SIZE(PJRT_ExecuteOptions, num_hlo_output_callbacks)};
  PJRT_LoadedExecutable_Execute_Args args = ARGS(PJRT_LoadedExecutable_Execute, execute_device);
  args.executable = pod->loaded;
  args.options = &options;
  args.argument_lists = (PJRT_Buffer *const *const *)pod->arguments;
  args.num_devices = pod->num_devices;
  args.num_args = pod->program->num_params;
  args.output_lists = pod->results;
  args.device_complete_events = done;
  const double virtual_before = minipod_virtual_time(), before = mp_clock_seconds();
  mp_status_t status = CALL(PJRT_LoadedExecutable_Execute, &args);
  if (status == NULL) status = exec_pod_await_all(done, pod->num_devices);
  *out_real = mp_clock_seconds() - before;
  *out_virtual = virtual_before < 0 ? -1 : minipod_virtual_time() - virtual_before;
  mp_free(done);
  return status;
}

static mp_status_t exec_pod_fetch(PJRT_Buffer *buffer, char *out_data, size_t size) {
  PJRT_Buffer_ToHostBuffer_Args args = ARGS(PJRT_Buffer_ToHostBuffer, event);
  args.src = buffer;
  args.dst = out_data;
  args.dst_size = size;
  MP_RETURN_IF_ERROR(CALL(PJRT_Buffer_ToHostBuffer, &args));
  return exec_pod_await(args.event);
}

// Whether the array has values, found by reading its first element before memory for all is
// allocated.
static mp_status_t exec_pod_probe(PJRT_Buffer *buffer, size_t element_size) {
  char element[16];
  PJRT_Buffer_CopyRawToHost_Args args = ARGS(PJRT_Buffer_CopyRawToHost, event);
  args.buffer = buffer;
  args.dst = element;
  args.transfer_size = (int64_t)element_size;
  MP_RETURN_IF_ERROR(CALL(PJRT_Buffer_CopyRawToHost, &args));
  return exec_pod_await(args.event);
}

static mp_status_t exec_pod_get(mp_exec_pod_t *pod, uint32_t index, mp_exec_array_t *array) {
  const mp_program_io_t *io = &pod->program->results[index];
  if (io->bytes > 0) {
    MP_RETURN_IF_ERROR(exec_pod_probe(pod->results[0][index], mp_dtype_size(array->dtype)));
  }
  char *data = mp_malloc(io->bytes);
  MP_RETURN_IF_NULL(data);
  mp_status_t status = mp_exec_array_allocate(array);
  for (uint32_t d = 0; d < pod->num_devices && status == NULL; ++d) {
    if (io->sharding == NULL && d % pod->program->num_partitions != 0) continue;  // a copy
    status = exec_pod_fetch(pod->results[d][index], data, io->bytes);
    const mp_exec_part_t part = exec_pod_part(pod, io, d);
    if (status == NULL) mp_exec_part_give(&part, data, array);
  }
  mp_free(data);
  return status;
}

mp_status_t mp_exec_pod_get(mp_exec_pod_t *pod, uint32_t index, mp_exec_array_t *array) {
  return mp_status_annotate(exec_pod_get(pod, index, array), "result %u", index);
}
