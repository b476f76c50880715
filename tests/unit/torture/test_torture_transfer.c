// Torture: buffers made in every way, copies to and from them, and the events that tell of both.
#include "tests/unit/torture/torture_pjrt.h"

enum {
  SMALL = 64,         // floats
  LARGE = 300 << 10,  // floats: more than a thread copies by itself
  CAPACITY = 64 << 10,
};

static PJRT_Client *g_client;
static float *g_data, *g_got;

static int64_t client_books(void) {
  return books_of(g_client);
}

static void open_with(const torture_option_t *options) {
  assert_true(try_client(options, &g_client));
  g_data = malloc(LARGE * sizeof(float));
  g_got = malloc(LARGE * sizeof(float));
  for (int i = 0; i < LARGE; ++i) g_data[i] = (float)i;
}

static void open_client(const void *subject) {
  (void)subject;
  static const torture_option_t options[] = {
      TORTURE_MACHINE, {"num_devices", "2"}, {"workers", "3"}, {NULL, NULL}};
  open_with(options);
}

static void open_small_client(const void *subject) {
  (void)subject;
  static const torture_option_t options[] = {TORTURE_MACHINE,
                                             {"num_devices", "1"},
                                             {"workers", "1"},
                                             {"device_memory", "64KiB"},
                                             {NULL, NULL}};
  open_with(options);
}

static void close_client(void) {
  destroy_client(g_client);
  g_client = NULL;
  free(g_data);
  free(g_got);
}

// ---- Pieces ----

static PJRT_Memory *memory(int device, int space) {
  return memory_of(device_of(g_client, device), (size_t)space);
}

static bool try_put_floats(PJRT_Memory *to, int64_t count, PJRT_HostBufferSemantics semantics,
                           PJRT_Buffer **out_buffer) {
  const host_array_t array = {.type = PJRT_Buffer_Type_F32,
                              .data = g_data,
                              .dims = &count,
                              .rank = 1,
                              .semantics = semantics};
  return survived(try_put(g_client, to, array, out_buffer));
}

static void expect_floats(int64_t count, int64_t offset) {
  assert_memory_equal(g_got, g_data + offset, (size_t)count * sizeof(float));
}

static void try_get_floats(PJRT_Buffer *buffer, int64_t count) {
  memset(g_got, 0, (size_t)count * sizeof(float));
  if (survived(try_get(buffer, g_got, (size_t)count * sizeof(float)))) expect_floats(count, 0);
}

// ---- To and from the host ----

static void to_and_from_host(const void *subject) {
  const int64_t count = *(const int64_t *)subject;
  PJRT_Buffer *buffer = NULL;
  if (try_put_floats(memory(1, 0), count, PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes,
                     &buffer)) {
    try_get_floats(buffer, count);
  }
  drop_buffer(&buffer);
}

static void pinned_and_during_call(const void *subject) {
  (void)subject;
  for (int space = 0; space < 3; ++space) {
    PJRT_Buffer *buffer = NULL;
    if (try_put_floats(memory(0, space), SMALL, PJRT_HostBufferSemantics_kImmutableOnlyDuringCall,
                       &buffer)) {
      try_get_floats(buffer, SMALL);
    }
    drop_buffer(&buffer);
  }
}

// With strides on the host's side, column-major on the device, and back in another order.
static void layouts(const void *subject) {
  (void)subject;
  static const int64_t dims[] = {3, 5}, strides[] = {4, 12}, minor_to_major[] = {0, 1};
  PJRT_Buffer_MemoryLayout layout = {
      .struct_size = PJRT_STRUCT_SIZE(PJRT_Buffer_MemoryLayout, type),
      .tiled = {.struct_size = PJRT_STRUCT_SIZE(PJRT_Buffer_MemoryLayout_Tiled, num_tiles),
                .minor_to_major = minor_to_major,
                .minor_to_major_size = 2},
      .type = PJRT_Buffer_MemoryLayout_Type_Tiled};
  PJRT_Client_BufferFromHostBuffer_Args put = ARGS(PJRT_Client_BufferFromHostBuffer, buffer);
  put.client = g_client;
  put.data = g_data;
  put.type = PJRT_Buffer_Type_F32;
  put.dims = dims;
  put.num_dims = 2;
  put.byte_strides = strides;
  put.num_byte_strides = 2;
  put.memory = memory(0, 0);
  put.device_layout = &layout;
  if (!survived(api()->PJRT_Client_BufferFromHostBuffer(&put))) return;
  (void)survived(await_event(put.done_with_host_buffer));
  PJRT_Buffer_ToHostBuffer_Args get = ARGS(PJRT_Buffer_ToHostBuffer, event);
  get.src = put.buffer;
  get.dst = g_got;
  get.dst_size = 15 * sizeof(float);
  get.host_layout = &layout;
  if (survived(api()->PJRT_Buffer_ToHostBuffer(&get)) && survived(await_event(get.event))) {
    expect_floats(15, 0);  // the same order on both sides
  }
  destroy_buffer(put.buffer);
}

static void raw_reads(const void *subject) {
  (void)subject;
  PJRT_Buffer *buffer = NULL;
  if (try_put_floats(memory(0, 0), SMALL, PJRT_HostBufferSemantics_kImmutableOnlyDuringCall,
                     &buffer)) {
    PJRT_Buffer_CopyRawToHost_Args args = ARGS(PJRT_Buffer_CopyRawToHost, event);
    args.buffer = buffer;
    args.dst = g_got;
    args.offset = 8 * sizeof(float);
    args.transfer_size = 16 * sizeof(float);
    if (survived(api()->PJRT_Buffer_CopyRawToHost(&args)) && survived(await_event(args.event))) {
      expect_floats(16, 8);
    }
  }
  drop_buffer(&buffer);
}

// ---- Between memories ----

static bool try_copy(PJRT_Buffer *buffer, PJRT_Memory *to, PJRT_Buffer **out_copy) {
  PJRT_Buffer_CopyToMemory_Args args = ARGS(PJRT_Buffer_CopyToMemory, dst_buffer);
  args.buffer = buffer;
  args.dst_memory = to;
  if (!survived(api()->PJRT_Buffer_CopyToMemory(&args))) return false;
  *out_copy = args.dst_buffer;
  return true;
}

// Through all memories of both devices, one after the other.
static void copy_around(PJRT_Buffer *buffer, int64_t count) {
  PJRT_Buffer *copies[6] = {NULL};
  for (int i = 0; i < 6 && buffer != NULL; ++i) {
    buffer = try_copy(buffer, memory(i / 3, i % 3), &copies[i]) ? copies[i] : NULL;
  }
  if (buffer != NULL) try_get_floats(buffer, count);
  for (int i = 0; i < 6; ++i) drop_buffer(&copies[i]);
}

static void copies(const void *subject) {
  const int64_t count = *(const int64_t *)subject;
  PJRT_Buffer *buffer = NULL;
  if (try_put_floats(memory(0, 0), count, PJRT_HostBufferSemantics_kImmutableOnlyDuringCall,
                     &buffer)) {
    copy_around(buffer, count);
  }
  drop_buffer(&buffer);
}

// ---- Chunks ----

typedef struct {
  PJRT_AsyncHostToDeviceTransferManager *manager;
  PJRT_Buffer *buffers[2];
} chunks_t;

static void drop_chunks(chunks_t *chunks) {
  for (int i = 0; i < 2; ++i) drop_buffer(&chunks->buffers[i]);
  if (chunks->manager == NULL) return;
  PJRT_AsyncHostToDeviceTransferManager_Destroy_Args args =
      ARGS(PJRT_AsyncHostToDeviceTransferManager_Destroy, transfer_manager);
  args.transfer_manager = chunks->manager;
  expect_ok(api()->PJRT_AsyncHostToDeviceTransferManager_Destroy(&args));
  chunks->manager = NULL;
}

static bool try_make_chunks(int64_t count, chunks_t *out_chunks) {
  PJRT_ShapeSpec spec = {.struct_size = PJRT_STRUCT_SIZE(PJRT_ShapeSpec, element_type),
                         .dims = &count,
                         .num_dims = 1,
                         .element_type = PJRT_Buffer_Type_F32};
  PJRT_ShapeSpec specs[2] = {spec, spec};
  PJRT_Client_CreateBuffersForAsyncHostToDevice_Args args =
      ARGS(PJRT_Client_CreateBuffersForAsyncHostToDevice, transfer_manager);
  args.client = g_client;
  args.shape_specs = specs;
  args.num_shape_specs = 2;
  args.memory = memory(0, 0);
  *out_chunks = (chunks_t){0};
  if (!survived(api()->PJRT_Client_CreateBuffersForAsyncHostToDevice(&args))) return false;
  out_chunks->manager = args.transfer_manager;
  for (int i = 0; i < 2; ++i) {
    PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args retrieve =
        ARGS(PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer, buffer_out);
    retrieve.transfer_manager = out_chunks->manager;
    retrieve.buffer_index = i;
    if (!survived(api()->PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer(&retrieve))) {
      return false;
    }
    out_chunks->buffers[i] = retrieve.buffer_out;
  }
  return true;
}

static bool try_chunk(chunks_t *chunks, int index, int64_t from, int64_t to, bool is_last) {
  PJRT_AsyncHostToDeviceTransferManager_TransferData_Args args =
      ARGS(PJRT_AsyncHostToDeviceTransferManager_TransferData, done_with_h2d_transfer);
  args.transfer_manager = chunks->manager;
  args.buffer_index = index;
  args.data = g_data + from;
  args.offset = from * (int64_t)sizeof(float);
  args.transfer_size = (to - from) * (int64_t)sizeof(float);
  args.is_last_transfer = is_last;
  return survived(api()->PJRT_AsyncHostToDeviceTransferManager_TransferData(&args)) &&
         survived(await_event(args.done_with_h2d_transfer));
}

static bool try_literal(chunks_t *chunks, int index, int64_t count) {
  PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args args =
      ARGS(PJRT_AsyncHostToDeviceTransferManager_TransferLiteral, done_with_h2d_transfer);
  args.transfer_manager = chunks->manager;
  args.buffer_index = index;
  args.data = g_data;
  args.shape_dims = &count;
  args.shape_num_dims = 1;
  args.shape_element_type = PJRT_Buffer_Type_F32;
  return survived(api()->PJRT_AsyncHostToDeviceTransferManager_TransferLiteral(&args)) &&
         survived(await_event(args.done_with_h2d_transfer));
}

static void in_chunks(const void *subject) {
  const int64_t count = *(const int64_t *)subject;
  chunks_t chunks;
  if (try_make_chunks(count, &chunks)) {
    if (try_chunk(&chunks, 0, 0, count / 2, false) &&
        try_chunk(&chunks, 0, count / 2, count, true)) {
      try_get_floats(chunks.buffers[0], count);
    }
    if (try_literal(&chunks, 1, count)) try_get_floats(chunks.buffers[1], count);
  }
  drop_chunks(&chunks);
}

// A buffer that is never filled fails, and every wait for it gets the error.
static void chunks_that_fail(const void *subject) {
  (void)subject;
  chunks_t chunks;
  if (try_make_chunks(SMALL, &chunks)) {
    PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args args =
        ARGS(PJRT_AsyncHostToDeviceTransferManager_SetBufferError, error_message_size);
    args.transfer_manager = chunks.manager;
    args.error_code = PJRT_Error_Code_DATA_LOSS;
    args.error_message = "the cable";
    args.error_message_size = strlen(args.error_message);
    expect_ok(api()->PJRT_AsyncHostToDeviceTransferManager_SetBufferError(&args));
    expect_error_of(try_get(chunks.buffers[0], g_got, SMALL * sizeof(float)),
                    PJRT_Error_Code_DATA_LOSS);
    PJRT_Buffer *never = chunks.buffers[1];
    chunks.buffers[1] = NULL;
    drop_chunks(&chunks);
    expect_error_of(try_get(never, g_got, SMALL * sizeof(float)), PJRT_Error_Code_CANCELLED);
    destroy_buffer(never);
  }
  drop_chunks(&chunks);
}

// ---- Before the contents are there ----

// Reads and copies that were asked for before the buffer was filled.
static void of_pending_buffers(const void *subject) {
  const int64_t count = *(const int64_t *)subject;
  chunks_t chunks;
  if (try_make_chunks(count, &chunks)) {
    PJRT_Buffer *copy = NULL;
    PJRT_Buffer_ToHostBuffer_Args get = ARGS(PJRT_Buffer_ToHostBuffer, event);
    get.src = chunks.buffers[0];
    get.dst = g_got;
    get.dst_size = (size_t)count * sizeof(float);
    const bool has_read = survived(api()->PJRT_Buffer_ToHostBuffer(&get));
    const bool has_copy = try_copy(chunks.buffers[0], memory(1, 0), &copy);
    (void)try_literal(&chunks, 0, count);
    if (has_read && survived(await_event(get.event))) expect_floats(count, 0);
    if (has_copy) try_get_floats(copy, count);
    drop_buffer(&copy);
  }
  drop_chunks(&chunks);
}

// ---- Raw futures ----

static bool try_future(PJRT_Buffer *buffer, PJRT_Buffer_CopyRawToHostFuture_Args *args) {
  args->buffer = buffer;
  args->offset = 0;
  args->transfer_size = SMALL * sizeof(float);
  return survived(api()->PJRT_Buffer_CopyRawToHostFuture(args));
}

static void call_future(const PJRT_Buffer_CopyRawToHostFuture_Args *args, void *room,
                        PJRT_Error_Code code) {
  PJRT_Buffer_CopyRawToHostFuture_Callback_Args call = {
      .struct_size = PJRT_STRUCT_SIZE(PJRT_Buffer_CopyRawToHostFuture_Callback_Args, dst),
      .callback_data = args->callback_data,
      .error_code = code,
      .error_message = "no room",
      .error_message_size = 7,
      .dst = room};
  args->future_ready_callback(&call);
}

// The room for the bytes is gone as soon as the event is set.
static void raw_futures_by_workers(const void *subject) {
  (void)subject;
  PJRT_Buffer_CopyRawToHostFuture_Args args =
      ARGS(PJRT_Buffer_CopyRawToHostFuture, future_ready_callback);
  PJRT_Buffer *buffer = NULL;
  if (!try_put_floats(memory(0, 0), LARGE, PJRT_HostBufferSemantics_kImmutableOnlyDuringCall,
                      &buffer)) {
    return;
  }
  args.buffer = buffer;
  args.transfer_size = LARGE * sizeof(float);
  if (survived(api()->PJRT_Buffer_CopyRawToHostFuture(&args))) {
    float *room = malloc(LARGE * sizeof(float));
    call_future(&args, room, PJRT_Error_Code_OK);
    if (survived(await_event(args.event))) {
      assert_memory_equal(room, g_data, LARGE * sizeof(float));
    }
    free(room);
  }
  destroy_buffer(buffer);
}

// The destination comes before the buffer is written, or after that, or an error comes instead.
static void raw_futures(const void *subject) {
  (void)subject;
  PJRT_Buffer_CopyRawToHostFuture_Args args =
      ARGS(PJRT_Buffer_CopyRawToHostFuture, future_ready_callback);
  chunks_t chunks;
  if (try_make_chunks(SMALL, &chunks)) {
    if (try_future(chunks.buffers[0], &args)) {
      call_future(&args, g_got, PJRT_Error_Code_OK);
      (void)try_literal(&chunks, 0, SMALL);
      if (survived(await_event(args.event))) expect_floats(SMALL, 0);
    } else {
      (void)try_literal(&chunks, 0, SMALL);
    }
    if (try_future(chunks.buffers[0], &args)) {
      call_future(&args, g_got, PJRT_Error_Code_OK);
      if (survived(await_event(args.event))) expect_floats(SMALL, 0);
    }
    if (try_future(chunks.buffers[0], &args)) {
      call_future(&args, g_got, PJRT_Error_Code_ABORTED);
      expect_error_of(await_event(args.event), PJRT_Error_Code_ABORTED);
    }
  }
  drop_chunks(&chunks);
}

// ---- Other ways to make buffers ----

static void uninitialized(const void *subject) {
  (void)subject;
  static const int64_t dims[] = {SMALL};
  PJRT_Client_CreateUninitializedBuffer_Args args =
      ARGS(PJRT_Client_CreateUninitializedBuffer, buffer);
  args.client = g_client;
  args.shape_dims = dims;
  args.shape_num_dims = 1;
  args.shape_element_type = PJRT_Buffer_Type_F32;
  args.memory = memory(0, 0);
  if (!survived(api()->PJRT_Client_CreateUninitializedBuffer(&args))) return;
  (void)survived(try_get(args.buffer, g_got, SMALL * sizeof(float)));
  PJRT_Buffer_IncreaseExternalReferenceCount_Args hold =
      ARGS(PJRT_Buffer_IncreaseExternalReferenceCount, buffer);
  hold.buffer = args.buffer;
  (void)survived(api()->PJRT_Buffer_IncreaseExternalReferenceCount(&hold));
  destroy_buffer(args.buffer);
}

static void error_buffers(const void *subject) {
  (void)subject;
  PJRT_Buffer *buffer = NULL, *copy = NULL;
  if (!survived(try_put_error(g_client, memory(0, 0), SMALL, PJRT_Error_Code_NOT_FOUND, "lost",
                              &buffer))) {
    return;
  }
  expect_error_of(try_get(buffer, g_got, SMALL * sizeof(float)), PJRT_Error_Code_NOT_FOUND);
  if (try_copy(buffer, memory(1, 0), &copy)) {
    expect_error_of(try_get(copy, g_got, SMALL * sizeof(float)), PJRT_Error_Code_NOT_FOUND);
  }
  drop_buffer(&copy);
  destroy_buffer(buffer);
}

static void count_call(void *data, void *count) {
  (void)data;
  *(int *)count += 1;
}

// The caller's memory is given back once, and not at all when there never was a view of it.
static void views(const void *subject) {
  (void)subject;
  static const int64_t dims[] = {SMALL};
  int num_calls = 0;
  PJRT_Client_CreateViewOfDeviceBuffer_Args args =
      ARGS(PJRT_Client_CreateViewOfDeviceBuffer, memory);
  args.client = g_client;
  args.device_buffer_ptr = g_data;
  args.dims = dims;
  args.num_dims = 1;
  args.element_type = PJRT_Buffer_Type_F32;
  args.memory = memory(0, 0);
  args.on_delete_callback = count_call;
  args.on_delete_callback_arg = &num_calls;
  if (!survived(api()->PJRT_Client_CreateViewOfDeviceBuffer(&args))) {
    assert_int_equal(num_calls, 0);
    return;
  }
  try_get_floats(args.buffer, SMALL);
  destroy_buffer(args.buffer);
  assert_int_equal(num_calls, 1);
}

// A device with little memory: what is in use never is more than what was asked for, and what does
// not fit is refused with the list of what is held.
static void a_full_device(const void *subject) {
  (void)subject;
  PJRT_Buffer *buffers[4] = {NULL};
  int64_t in_use = 0;
  for (int i = 0; i < 3; ++i) {
    const int64_t count = (CAPACITY / 4) / (int64_t)sizeof(float);
    if (try_put_floats(memory(0, 0), count, PJRT_HostBufferSemantics_kImmutableOnlyDuringCall,
                       &buffers[i])) {
      in_use += CAPACITY / 4;
    }
    PJRT_Device_MemoryStats_Args stats = ARGS(PJRT_Device_MemoryStats, peak_pool_bytes_is_set);
    stats.device = device_of(g_client, 0);
    expect_ok(api()->PJRT_Device_MemoryStats(&stats));
    assert_int_equal(stats.bytes_in_use, in_use);
    assert_int_equal(stats.largest_free_block_bytes, CAPACITY - in_use);
  }
  const int64_t too_many = CAPACITY / (int64_t)sizeof(float);
  const host_array_t array = {
      .type = PJRT_Buffer_Type_F32, .data = g_data, .dims = &too_many, .rank = 1};
  expect_error_of(try_put(g_client, memory(0, 0), array, &buffers[3]),
                  PJRT_Error_Code_RESOURCE_EXHAUSTED);
  for (int i = 0; i < 4; ++i) drop_buffer(&buffers[i]);
}

// ---- Events ----

typedef struct {
  atomic_int num_calls, num_errors;
} calls_t;

static void on_ready(PJRT_Error *error, void *user_arg) {
  calls_t *calls = user_arg;
  if (error != NULL) {
    atomic_fetch_add(&calls->num_errors, 1);
    error->vtable->destroy(error);
  }
  atomic_fetch_add(&calls->num_calls, 1);
}

static int try_on_ready(PJRT_Event *event, calls_t *calls) {
  PJRT_Event_OnReady_Args args = ARGS(PJRT_Event_OnReady, user_arg);
  args.event = event;
  args.callback = on_ready;
  args.user_arg = calls;
  return survived(api()->PJRT_Event_OnReady(&args)) ? 1 : 0;
}

// Each callback that was taken is called once, the others are not; before and after the event is
// set, and when it is dropped without.
static void events(const void *subject) {
  (void)subject;
  calls_t calls = {0};
  int wanted = 0;
  for (int is_set = 0; is_set < 2; ++is_set) {
    PJRT_Event_Create_Args create = ARGS(PJRT_Event_Create, event);
    if (!survived(api()->PJRT_Event_Create(&create))) continue;
    for (int i = 0; i < 3; ++i) wanted += try_on_ready(create.event, &calls);
    if (is_set) {
      assert_int_equal(atomic_load(&calls.num_calls), atomic_load(&calls.num_errors));
      PJRT_Event_Set_Args set = ARGS(PJRT_Event_Set, error_message_size);
      set.event = create.event;
      set.error_code = PJRT_Error_Code_ABORTED;
      set.error_message = "over";
      set.error_message_size = 4;
      expect_ok(api()->PJRT_Event_Set(&set));
      wanted += try_on_ready(create.event, &calls);
      expect_error_of(await_event(create.event), PJRT_Error_Code_ABORTED);
    } else {
      destroy_event(create.event);
    }
    assert_int_equal(atomic_load(&calls.num_calls), wanted);
    assert_int_equal(atomic_load(&calls.num_errors), wanted);
  }
}

// Of the events of a transfer that workers do.
static void events_of_transfers(const void *subject) {
  (void)subject;
  calls_t calls = {0};
  const int64_t count = LARGE;
  int wanted = 0;
  PJRT_Client_BufferFromHostBuffer_Args put = ARGS(PJRT_Client_BufferFromHostBuffer, buffer);
  put.client = g_client;
  put.data = g_data;
  put.type = PJRT_Buffer_Type_F32;
  put.dims = &count;
  put.num_dims = 1;
  put.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes;
  put.memory = memory(0, 0);
  if (!survived(api()->PJRT_Client_BufferFromHostBuffer(&put))) return;
  PJRT_Buffer_ReadyEvent_Args ready = ARGS(PJRT_Buffer_ReadyEvent, event);
  ready.buffer = put.buffer;
  expect_ok(api()->PJRT_Buffer_ReadyEvent(&ready));
  wanted += try_on_ready(ready.event, &calls);
  wanted += try_on_ready(put.done_with_host_buffer, &calls);
  destroy_event(ready.event);
  // The caller may free its memory after this, and not earlier.
  (void)survived(await_event(put.done_with_host_buffer));
  while (atomic_load(&calls.num_calls) < wanted) sched_yield();
  try_get_floats(put.buffer, LARGE);
  destroy_buffer(put.buffer);
}

static void tracking_and_contexts(const void *subject) {
  (void)subject;
  PJRT_Device_CreateAsyncTrackingEvent_Args event =
      ARGS(PJRT_Device_CreateAsyncTrackingEvent, event);
  event.device = device_of(g_client, 0);
  if (survived(api()->PJRT_Device_CreateAsyncTrackingEvent(&event))) {
    PJRT_AsyncTrackingEvent_Destroy_Args args = ARGS(PJRT_AsyncTrackingEvent_Destroy, event);
    args.event = event.event;
    expect_ok(api()->PJRT_AsyncTrackingEvent_Destroy(&args));
  }
  PJRT_ExecuteContext_Create_Args context = ARGS(PJRT_ExecuteContext_Create, context);
  if (survived(api()->PJRT_ExecuteContext_Create(&context))) {
    PJRT_ExecuteContext_Destroy_Args args = ARGS(PJRT_ExecuteContext_Destroy, context);
    args.context = context.context;
    expect_ok(api()->PJRT_ExecuteContext_Destroy(&args));
  }
}

static int g_num_values, g_num_deleted;

static void delete_value(void *value) {
  (void)value;
  ++g_num_deleted;
}

// The deleter of each value is called once, when another one takes its place; a value that could
// not be kept is deleted at once.
static void user_data(const void *subject) {
  (void)subject;
  PJRT_Memory *place = memory(0, 1);
  static int key, values[2];
  for (int i = 0; i < 2; ++i) {
    ++g_num_values;
    place->vtable->set_user_data(place, &key, &values[i], delete_value);
  }
  const void *value = place->vtable->get_user_data(place, &key);
  assert_true(value == NULL || value == &values[1]);
  assert_int_equal(g_num_deleted, g_num_values - (value == NULL ? 0 : 1));
}

static const int64_t k_small = SMALL, k_large = LARGE;

#define ROW(title, function, what)                                                  \
  {                                                                                 \
    .name = title, .open = open_client, .attempt = function, .close = close_client, \
    .subject = what, .books = client_books                                          \
  }

int main(int argc, char **argv) {
  static const torture_row_t rows[] = {
      ROW("to and from the host", to_and_from_host, &k_small),
      ROW("to and from the host by workers", to_and_from_host, &k_large),
      ROW("to and from every memory", pinned_and_during_call, NULL),
      ROW("layouts", layouts, NULL),
      ROW("raw reads", raw_reads, NULL),
      ROW("copies", copies, &k_small),
      ROW("copies by workers", copies, &k_large),
      ROW("in chunks", in_chunks, &k_small),
      ROW("in chunks by workers", in_chunks, &k_large),
      ROW("chunks that fail", chunks_that_fail, NULL),
      ROW("of pending buffers", of_pending_buffers, &k_small),
      ROW("of pending buffers by workers", of_pending_buffers, &k_large),
      ROW("raw futures", raw_futures, NULL),
      ROW("raw futures by workers", raw_futures_by_workers, NULL),
      ROW("uninitialized buffers", uninitialized, NULL),
      ROW("error buffers", error_buffers, NULL),
      ROW("views", views, NULL),
      ROW("events", events, NULL),
      ROW("events of transfers", events_of_transfers, NULL),
      ROW("tracking events and contexts", tracking_and_contexts, NULL),
      ROW("user data", user_data, NULL),
      {.name = "a full device",
       .open = open_small_client,
       .attempt = a_full_device,
       .close = close_client,
       .books = client_books},
  };
  return torture_main(rows, sizeof(rows) / sizeof(rows[0]), argc, argv);
}
