// Buffers through the table: host arrays of any strides and element sizes, layouts, lifetimes,
// copies, chunked transfers, errors as contents.

#include "tests/unit/support/pjrt_test.h"

static PJRT_Client *client;

static int setup(void **state) {
  (void)state;
  client = make_client(2);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  destroy_client(client);
  return 0;
}

static PJRT_Memory *memory(int device, size_t kind) {
  return memory_of(device_of(client, device), kind);
}

static void strides_of_any_sign_are_read(void **state) {
  (void)state;
  static const int32_t source[6] = {0, 1, 2, 3, 4, 5};
  static const int64_t dims[] = {3, 2};
  int32_t got[6] = {0};
  // The transpose of a 2x3 array, read from its last element backwards.
  static const int64_t backwards[] = {-4, -12};
  static const int32_t wanted_backwards[6] = {5, 2, 4, 1, 3, 0};
  PJRT_Buffer *buffer = put(client, memory(0, 0),
                            (host_array_t){.type = PJRT_Buffer_Type_S32,
                                           .data = source + 5,
                                           .dims = dims,
                                           .rank = 2,
                                           .strides = backwards});
  get(buffer, got, sizeof(got));
  assert_memory_equal(got, wanted_backwards, sizeof(got));
  destroy_buffer(buffer);
  // A column repeated.
  static const int64_t repeat[] = {4, 0};
  static const int32_t wanted_repeat[6] = {0, 0, 1, 1, 2, 2};
  buffer = put(client, memory(0, 0),
               (host_array_t){.type = PJRT_Buffer_Type_S32,
                              .data = source,
                              .dims = dims,
                              .rank = 2,
                              .strides = repeat,
                              .semantics = PJRT_HostBufferSemantics_kImmutableZeroCopy});
  get(buffer, got, sizeof(got));
  assert_memory_equal(got, wanted_repeat, sizeof(got));
  destroy_buffer(buffer);
}

static void narrow_elements_take_a_byte_each(void **state) {
  (void)state;
  static const int8_t source[3] = {-8, 7, -1};
  static const int64_t dims[] = {3};
  PJRT_Buffer *buffer =
      put(client, memory(0, 0),
          (host_array_t){.type = PJRT_Buffer_Type_S4, .data = source, .dims = dims, .rank = 1});
  PJRT_Buffer_ElementType_Args type = ARGS(PJRT_Buffer_ElementType, type);
  type.buffer = buffer;
  expect_ok(api()->PJRT_Buffer_ElementType(&type));
  assert_int_equal(type.type, PJRT_Buffer_Type_S4);
  PJRT_Buffer_ToHostBuffer_Args size = ARGS(PJRT_Buffer_ToHostBuffer, event);
  size.src = buffer;
  expect_ok(api()->PJRT_Buffer_ToHostBuffer(&size));
  assert_int_equal(size.dst_size, 3);
  destroy_buffer(buffer);
}

static void host_layouts_are_honoured(void **state) {
  (void)state;
  static const float source[6] = {0, 1, 2, 3, 4, 5};
  static const float column_major[6] = {0, 3, 1, 4, 2, 5};
  static const int64_t dims[] = {2, 3};
  static const int64_t order[] = {0, 1};
  PJRT_Buffer *buffer =
      put(client, memory(0, 0),
          (host_array_t){.type = PJRT_Buffer_Type_F32, .data = source, .dims = dims, .rank = 2});
  // As jaxlib sends it: sizes of structs not set.
  PJRT_Buffer_MemoryLayout layout = {.struct_size = 0x7fffdeadbeef,
                                     .tiled = {.minor_to_major = order, .minor_to_major_size = 2},
                                     .type = PJRT_Buffer_MemoryLayout_Type_Tiled};
  float got[6] = {0};
  PJRT_Buffer_ToHostBuffer_Args args = ARGS(PJRT_Buffer_ToHostBuffer, event);
  args.src = buffer;
  args.host_layout = &layout;
  args.dst = got;
  args.dst_size = sizeof(got);
  expect_ok(api()->PJRT_Buffer_ToHostBuffer(&args));
  expect_ok(await_event(args.event));
  assert_memory_equal(got, column_major, sizeof(got));
  args.dst_size = sizeof(got) - 1;
  expect_error(api()->PJRT_Buffer_ToHostBuffer(&args), PJRT_Error_Code_INVALID_ARGUMENT,
               "takes 24 bytes, dst has 23");
  args.dst_size = sizeof(got);
  static const int64_t twice[] = {1, 1};
  layout.tiled.minor_to_major = twice;
  expect_error(api()->PJRT_Buffer_ToHostBuffer(&args), PJRT_Error_Code_INVALID_ARGUMENT,
               "not an order of the 2 dimensions");
  layout.tiled.num_tiles = 1;
  expect_error(api()->PJRT_Buffer_ToHostBuffer(&args), PJRT_Error_Code_UNIMPLEMENTED, "tiles");
  destroy_buffer(buffer);
}

static void device_layouts_are_honoured(void **state) {
  (void)state;
  static const float source[6] = {0, 1, 2, 3, 4, 5};
  static const float column_major[6] = {0, 3, 1, 4, 2, 5};
  static const int64_t dims[] = {2, 3}, order[] = {0, 1};
  PJRT_Buffer_MemoryLayout layout = {.tiled = {.minor_to_major = order, .minor_to_major_size = 2},
                                     .type = PJRT_Buffer_MemoryLayout_Type_Tiled};
  PJRT_Client_BufferFromHostBuffer_Args args = ARGS(PJRT_Client_BufferFromHostBuffer, buffer);
  args.client = client;
  args.data = source;
  args.type = PJRT_Buffer_Type_F32;
  args.dims = dims;
  args.num_dims = 2;
  args.memory = memory(0, 0);
  args.device_layout = &layout;
  expect_ok(api()->PJRT_Client_BufferFromHostBuffer(&args));
  expect_ok(await_event(args.done_with_host_buffer));
  // A copy keeps the order.
  PJRT_Buffer_CopyToMemory_Args copy = ARGS(PJRT_Buffer_CopyToMemory, dst_buffer);
  copy.buffer = args.buffer;
  copy.dst_memory = memory(1, 0);
  expect_ok(api()->PJRT_Buffer_CopyToMemory(&copy));
  destroy_buffer(args.buffer);
  PJRT_Buffer_Dimensions_Args shape = ARGS(PJRT_Buffer_Dimensions, num_dims);
  PJRT_Buffer_GetMemoryLayout_Args got_layout = ARGS(PJRT_Buffer_GetMemoryLayout, layout);
  shape.buffer = got_layout.buffer = copy.dst_buffer;
  expect_ok(api()->PJRT_Buffer_Dimensions(&shape));
  expect_ok(api()->PJRT_Buffer_GetMemoryLayout(&got_layout));
  assert_memory_equal(shape.dims, dims, sizeof(dims));
  assert_memory_equal(got_layout.layout.tiled.minor_to_major, order, sizeof(order));
  // Without a host layout the bytes come as they lie there, with one in the order asked for.
  float got[6] = {0};
  get(copy.dst_buffer, got, sizeof(got));
  assert_memory_equal(got, column_major, sizeof(got));
  static const int64_t row_major[] = {1, 0};
  layout.tiled.minor_to_major = row_major;
  PJRT_Buffer_ToHostBuffer_Args fetch = ARGS(PJRT_Buffer_ToHostBuffer, event);
  fetch.src = copy.dst_buffer;
  fetch.host_layout = &layout;
  fetch.dst = got;
  fetch.dst_size = sizeof(got);
  expect_ok(api()->PJRT_Buffer_ToHostBuffer(&fetch));
  expect_ok(await_event(fetch.event));
  assert_memory_equal(got, source, sizeof(got));
  destroy_buffer(copy.dst_buffer);
}

static void bad_host_arrays_are_refused(void **state) {
  (void)state;
  static const float source[4] = {0};
  static const int64_t dims[] = {2, 2}, negative[] = {2, -2}, huge[] = {INT64_MAX / 2, 8};
  PJRT_Buffer *buffer = NULL;
  host_array_t array = {.type = PJRT_Buffer_Type_F32, .data = source, .dims = dims, .rank = 2};
  // No elements: sizes that nothing bounds. (A test for the sanitizer of undefined behaviour.)
  array.dims = (const int64_t[]){0, INT64_MAX / 2, 8};
  array.rank = 3;
  destroy_buffer(put(client, memory(0, 0), array));
  array.rank = 2;
  array.dims = negative;
  expect_error(try_put(client, memory(0, 0), array, &buffer), PJRT_Error_Code_INVALID_ARGUMENT,
               "dimension 1 is -2");
  array.dims = huge;
  expect_error(try_put(client, memory(0, 0), array, &buffer), PJRT_Error_Code_INVALID_ARGUMENT,
               "overflows");
  array.dims = dims;
  array.data = NULL;
  expect_error(try_put(client, memory(0, 0), array, &buffer), PJRT_Error_Code_INVALID_ARGUMENT,
               "data is NULL");
  array.data = source;
  array.type = PJRT_Buffer_Type_TOKEN;
  expect_error(try_put(client, memory(0, 0), array, &buffer), PJRT_Error_Code_INVALID_ARGUMENT,
               "element type 23");
  array.type = PJRT_Buffer_Type_F32;
  array.semantics = PJRT_HostBufferSemantics_kMutableZeroCopy;
  expect_error(try_put(client, memory(0, 0), array, &buffer), PJRT_Error_Code_UNIMPLEMENTED,
               "kMutableZeroCopy");
  assert_null(buffer);
}

static void a_view_outlives_delete(void **state) {
  (void)state;
  static const float source[4] = {1, 2, 3, 4};
  PJRT_Buffer *buffer = put_f32(client, device_of(client, 0), source, 4);
  PJRT_Buffer_IncreaseExternalReferenceCount_Args more =
      ARGS(PJRT_Buffer_IncreaseExternalReferenceCount, buffer);
  PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args pointer =
      ARGS(PJRT_Buffer_OpaqueDeviceMemoryDataPointer, device_memory_ptr);
  PJRT_Buffer_Delete_Args delete = ARGS(PJRT_Buffer_Delete, buffer);
  PJRT_Buffer_DecreaseExternalReferenceCount_Args less =
      ARGS(PJRT_Buffer_DecreaseExternalReferenceCount, buffer);
  more.buffer = pointer.buffer = delete.buffer = less.buffer = buffer;
  expect_ok(api()->PJRT_Buffer_IncreaseExternalReferenceCount(&more));
  expect_ok(api()->PJRT_Buffer_OpaqueDeviceMemoryDataPointer(&pointer));
  expect_ok(api()->PJRT_Buffer_Delete(&delete));
  assert_true(is_deleted(buffer));
  assert_memory_equal(pointer.device_memory_ptr, source, sizeof(source));
  float got[4];
  expect_error(try_get(buffer, got, sizeof(got)), PJRT_Error_Code_INVALID_ARGUMENT, "deleted");
  expect_ok(api()->PJRT_Buffer_DecreaseExternalReferenceCount(&less));
  expect_error(api()->PJRT_Buffer_DecreaseExternalReferenceCount(&less),
               PJRT_Error_Code_INVALID_ARGUMENT, "no reference");
  destroy_buffer(buffer);
}

static void copies_go_to_any_memory(void **state) {
  (void)state;
  static const float source[4] = {1, 2, 3, 4};
  PJRT_Buffer *buffer = put_f32(client, device_of(client, 0), source, 4);
  PJRT_Memory *target = memory(1, 1);
  PJRT_Buffer_CopyToMemory_Args copy = ARGS(PJRT_Buffer_CopyToMemory, dst_buffer);
  copy.buffer = buffer;
  copy.dst_memory = target;
  expect_ok(api()->PJRT_Buffer_CopyToMemory(&copy));
  destroy_buffer(buffer);
  float got[4] = {0};
  get(copy.dst_buffer, got, sizeof(got));
  assert_memory_equal(got, source, sizeof(got));
  PJRT_Buffer_Memory_Args where = ARGS(PJRT_Buffer_Memory, memory);
  PJRT_Buffer_Device_Args whose = ARGS(PJRT_Buffer_Device, device);
  where.buffer = whose.buffer = copy.dst_buffer;
  expect_ok(api()->PJRT_Buffer_Memory(&where));
  expect_ok(api()->PJRT_Buffer_Device(&whose));
  assert_ptr_equal(where.memory, target);
  assert_ptr_equal(whose.device, device_of(client, 1));
  destroy_buffer(copy.dst_buffer);
}

static void chunked_transfers_complete_with_the_last_chunk(void **state) {
  (void)state;
  static const float source[4] = {1, 2, 3, 4};
  static const int64_t dims[] = {4};
  PJRT_ShapeSpec specs[2] = {
      {.struct_size = 36, .dims = dims, .num_dims = 1, .element_type = PJRT_Buffer_Type_F32},
      {.struct_size = 36, .dims = dims, .num_dims = 1, .element_type = PJRT_Buffer_Type_F32}};
  PJRT_Client_CreateBuffersForAsyncHostToDevice_Args create =
      ARGS(PJRT_Client_CreateBuffersForAsyncHostToDevice, transfer_manager);
  create.client = client;
  create.shape_specs = specs;
  create.num_shape_specs = 2;
  create.memory = memory(0, 0);
  expect_ok(api()->PJRT_Client_CreateBuffersForAsyncHostToDevice(&create));
  PJRT_Buffer *buffers[2];
  for (int i = 0; i < 2; ++i) {
    PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args retrieve =
        ARGS(PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer, buffer_out);
    retrieve.transfer_manager = create.transfer_manager;
    retrieve.buffer_index = i;
    expect_ok(api()->PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer(&retrieve));
    buffers[i] = retrieve.buffer_out;
  }
  PJRT_AsyncHostToDeviceTransferManager_TransferData_Args transfer =
      ARGS(PJRT_AsyncHostToDeviceTransferManager_TransferData, done_with_h2d_transfer);
  transfer.transfer_manager = create.transfer_manager;
  transfer.transfer_size = 8;
  for (int half = 0; half < 2; ++half) {
    transfer.offset = 8 * half;
    transfer.data = source + 2 * half;
    transfer.is_last_transfer = half == 1;
    expect_ok(api()->PJRT_AsyncHostToDeviceTransferManager_TransferData(&transfer));
    expect_ok(await_event(transfer.done_with_h2d_transfer));
  }
  transfer.offset = 12;
  expect_error(api()->PJRT_AsyncHostToDeviceTransferManager_TransferData(&transfer),
               PJRT_Error_Code_INVALID_ARGUMENT, "8 bytes to offset 12");
  PJRT_AsyncHostToDeviceTransferManager_Destroy_Args destroy =
      ARGS(PJRT_AsyncHostToDeviceTransferManager_Destroy, transfer_manager);
  destroy.transfer_manager = create.transfer_manager;
  expect_ok(api()->PJRT_AsyncHostToDeviceTransferManager_Destroy(&destroy));
  float got[4] = {0};
  get(buffers[0], got, sizeof(got));
  assert_memory_equal(got, source, sizeof(got));
  // The second one was never filled.
  expect_error(try_get(buffers[1], got, sizeof(got)), PJRT_Error_Code_CANCELLED,
               "before the last transfer");
  destroy_buffer(buffers[0]);
  destroy_buffer(buffers[1]);
}

static void error_buffers_carry_their_cause(void **state) {
  (void)state;
  static const int64_t dims[] = {4};
  PJRT_Client_CreateErrorBuffer_Args create = ARGS(PJRT_Client_CreateErrorBuffer, num_payload);
  create.client = client;
  create.error_code = PJRT_Error_Code_DATA_LOSS;
  create.error_message = "the dog ate it...";
  create.error_message_size = strlen("the dog ate it");
  create.shape_dims = dims;
  create.shape_num_dims = 1;
  create.shape_element_type = PJRT_Buffer_Type_F32;
  create.memory = memory(0, 0);
  expect_ok(api()->PJRT_Client_CreateErrorBuffer(&create));
  float got[4];
  expect_error(try_get(create.buffer, got, sizeof(got)), PJRT_Error_Code_DATA_LOSS,
               "the dog ate it");
  PJRT_Buffer_ReadyEvent_Args ready = ARGS(PJRT_Buffer_ReadyEvent, event);
  ready.buffer = create.buffer;
  expect_ok(api()->PJRT_Buffer_ReadyEvent(&ready));
  expect_error(await_event(ready.event), PJRT_Error_Code_DATA_LOSS, "the dog ate it");
  destroy_buffer(create.buffer);
  // An older client's struct ends before the layout. A newer one's layout counts.
  static const int64_t square[] = {2, 2}, order[] = {0, 1}, wrong[] = {0, 0};
  PJRT_Buffer_MemoryLayout columns = {.type = PJRT_Buffer_MemoryLayout_Type_Tiled,
                                      .tiled = {.minor_to_major = order, .minor_to_major_size = 2}};
  PJRT_Buffer_MemoryLayout bad = {.type = PJRT_Buffer_MemoryLayout_Type_Tiled,
                                  .tiled = {.minor_to_major = wrong, .minor_to_major_size = 2}};
  create.shape_dims = square;
  create.shape_num_dims = 2;
  create.device_layout = &bad;
  expect_ok(api()->PJRT_Client_CreateErrorBuffer(&create));
  destroy_buffer(create.buffer);
  create.struct_size = PJRT_STRUCT_SIZE(PJRT_Client_CreateErrorBuffer_Args, device_layout);
  expect_error(api()->PJRT_Client_CreateErrorBuffer(&create), PJRT_Error_Code_INVALID_ARGUMENT,
               "minor_to_major");
  create.shape_layout = &bad;
  create.device_layout = &columns;
  expect_ok(api()->PJRT_Client_CreateErrorBuffer(&create));
  PJRT_Buffer_GetMemoryLayout_Args layout = ARGS(PJRT_Buffer_GetMemoryLayout, layout);
  layout.buffer = create.buffer;
  expect_ok(api()->PJRT_Buffer_GetMemoryLayout(&layout));
  assert_memory_equal(layout.layout.tiled.minor_to_major, order, sizeof(order));
  destroy_buffer(create.buffer);
}

static void count_deletion(void *data, void *user_arg) {
  (void)data;
  ++*(int *)user_arg;
}

static void views_tell_when_they_are_done(void **state) {
  (void)state;
  static float data[16] __attribute__((aligned(64)));
  static const int64_t dims[] = {16};
  int deletions = 0;
  PJRT_Client_CreateViewOfDeviceBuffer_Args view =
      ARGS(PJRT_Client_CreateViewOfDeviceBuffer, memory);
  view.client = client;
  view.device_buffer_ptr = data;
  view.dims = dims;
  view.num_dims = 1;
  view.element_type = PJRT_Buffer_Type_F32;
  view.device = device_of(client, 0);
  view.on_delete_callback = count_deletion;
  view.on_delete_callback_arg = &deletions;
  expect_ok(api()->PJRT_Client_CreateViewOfDeviceBuffer(&view));
  PJRT_Buffer_UnsafePointer_Args pointer = ARGS(PJRT_Buffer_UnsafePointer, buffer_pointer);
  pointer.buffer = view.buffer;
  expect_ok(api()->PJRT_Buffer_UnsafePointer(&pointer));
  assert_int_equal(pointer.buffer_pointer, (uintptr_t)data);
  assert_int_equal(deletions, 0);
  destroy_buffer(view.buffer);
  assert_int_equal(deletions, 1);
}

typedef struct {
  PJRT_Event *event;
  int calls;
} callback_t;

// Owns its error, and destroys the event it hangs on.
static void destroy_own_event(PJRT_Error *error, void *user_arg) {
  callback_t *callback = user_arg;
  expect_error(error, PJRT_Error_Code_ABORTED, "stop");
  destroy_event(callback->event);
  ++callback->calls;
}

static void events_may_be_destroyed_in_their_callback(void **state) {
  (void)state;
  PJRT_Event_Create_Args create = ARGS(PJRT_Event_Create, event);
  expect_ok(api()->PJRT_Event_Create(&create));
  callback_t callback = {create.event, 0};
  PJRT_Event_OnReady_Args on_ready = ARGS(PJRT_Event_OnReady, user_arg);
  on_ready.event = create.event;
  on_ready.callback = destroy_own_event;
  on_ready.user_arg = &callback;
  expect_ok(api()->PJRT_Event_OnReady(&on_ready));
  PJRT_Event_Set_Args set = ARGS(PJRT_Event_Set, error_message_size);
  set.event = create.event;
  set.error_code = PJRT_Error_Code_ABORTED;
  set.error_message = "stop";
  set.error_message_size = 4;
  assert_int_equal(callback.calls, 0);
  expect_ok(api()->PJRT_Event_Set(&set));
  assert_int_equal(callback.calls, 1);
}

static void user_data_of_memories_is_freed(void **state) {
  (void)state;
  static const int key = 0;
  int value = 0;
  PJRT_Memory *target = memory(0, 0);
  const PJRT_Memory_FunctionTable *functions = target->vtable;
  assert_null(functions->get_user_data(target, &key));
  functions->set_user_data(target, &key, &value, NULL);
  assert_ptr_equal(functions->get_user_data(target, &key), &value);
  functions->set_user_data(target, &key, NULL, NULL);
  assert_null(functions->get_user_data(target, &key));
}

static void memory_statistics_follow_buffers(void **state) {
  (void)state;
  static const float source[1024] = {0};
  PJRT_Device *device = device_of(client, 1);
  // As callers before minor 113 send it.
  PJRT_Device_MemoryStats_Args before = ARGS(PJRT_Device_MemoryStats, peak_pool_bytes_is_set);
  assert_int_equal(before.struct_size, 185);
  before.device = device;
  before.peak_allocated_bytes = 77;
  expect_ok(api()->PJRT_Device_MemoryStats(&before));
  assert_int_equal(before.peak_allocated_bytes, 77);
  assert_true(before.bytes_limit_is_set);
  PJRT_Buffer *buffer = put_f32(client, device, source, 1024);
  PJRT_Device_MemoryStats_Args after = ARGS(PJRT_Device_MemoryStats, peak_allocated_bytes_is_set);
  after.device = device;
  expect_ok(api()->PJRT_Device_MemoryStats(&after));
  assert_true(after.bytes_in_use >= before.bytes_in_use + 4096);
  assert_true(after.peak_bytes_in_use >= after.bytes_in_use);
  destroy_buffer(buffer);
  expect_ok(api()->PJRT_Device_MemoryStats(&after));
  assert_int_equal(after.bytes_in_use, before.bytes_in_use);
  PJRT_Device_ClearMemoryStats_Args clear = ARGS(PJRT_Device_ClearMemoryStats, device);
  clear.device = device;
  expect_ok(api()->PJRT_Device_ClearMemoryStats(&clear));
  expect_ok(api()->PJRT_Device_MemoryStats(&after));
  assert_int_equal(after.peak_bytes_in_use, after.bytes_in_use);
}

static void buffers_outlive_their_client(void **state) {
  (void)state;
  static const float source[4] = {1, 2, 3, 4};
  PJRT_Client *other = make_client(1);
  PJRT_Buffer *buffer = put_f32(other, device_of(other, 0), source, 4);
  destroy_client(other);
  PJRT_Buffer_Dimensions_Args dims = ARGS(PJRT_Buffer_Dimensions, num_dims);
  dims.buffer = buffer;
  expect_ok(api()->PJRT_Buffer_Dimensions(&dims));
  assert_int_equal(dims.dims[0], 4);
  destroy_buffer(buffer);
}

static void unknown_client_options_are_refused_by_name(void **state) {
  (void)state;
  PJRT_NamedValue option = {.struct_size = PJRT_STRUCT_SIZE(PJRT_NamedValue, value_size),
                            .name = "num_device",
                            .name_size = strlen("num_device"),
                            .type = PJRT_NamedValue_kInt64,
                            .int64_value = 4,
                            .value_size = 1};
  PJRT_Client_Create_Args args = ARGS(PJRT_Client_Create, kv_try_get_user_arg);
  args.create_options = &option;
  args.num_options = 1;
  expect_error(api()->PJRT_Client_Create(&args), PJRT_Error_Code_INVALID_ARGUMENT, "num_devices");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(strides_of_any_sign_are_read),
      cmocka_unit_test(narrow_elements_take_a_byte_each),
      cmocka_unit_test(host_layouts_are_honoured),
      cmocka_unit_test(device_layouts_are_honoured),
      cmocka_unit_test(bad_host_arrays_are_refused),
      cmocka_unit_test(a_view_outlives_delete),
      cmocka_unit_test(copies_go_to_any_memory),
      cmocka_unit_test(chunked_transfers_complete_with_the_last_chunk),
      cmocka_unit_test(error_buffers_carry_their_cause),
      cmocka_unit_test(views_tell_when_they_are_done),
      cmocka_unit_test(events_may_be_destroyed_in_their_callback),
      cmocka_unit_test(user_data_of_memories_is_freed),
      cmocka_unit_test(memory_statistics_follow_buffers),
      cmocka_unit_test(buffers_outlive_their_client),
      cmocka_unit_test(unknown_client_options_are_refused_by_name),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
