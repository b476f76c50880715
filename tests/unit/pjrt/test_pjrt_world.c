// The table over several processes: whose devices are whose, and programs on some of them.
#include <string.h>
#include <time.h>

#include "pjrt/pjrt_objects.h"
#include "sim/base/proto.h"
#include "tests/unit/support/pjrt_test.h"

#define POD_CLIENT  PJRT_Client
#define POD_CREATE  mp_pjrt_client_create_in
#define POD_DESTROY destroy_client
#include "tests/unit/support/processes/worlds.h"

enum { RANKS = 3, EACH = 2, DEVICES = RANKS * EACH };

static pods_t pods;

static int setup(void **state) {
  static const pod_option_t options[] = {
      {"topology", "torus:3x2 hosts:3"}, {"workers", "1"}, {NULL, NULL}};
  (void)state;
  start_pods(&pods, RANKS, 1, options);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  stop_pods(&pods);
  return 0;
}

static const char add_text[] =
    "module @adder {\n"
    "  func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n"
    "    %0 = stablehlo.add %a, %a : tensor<4xf32>\n"
    "    return %0 : tensor<4xf32>\n"
    "  }\n"
    "}\n";

static const char sum_text[] =
    "module @summer {\n"
    "  func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n"
    "    %0 = \"stablehlo.all_reduce\"(%a) ({\n"
    "    ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"
    "      %s = stablehlo.add %x, %y : tensor<f32>\n"
    "      stablehlo.return %s : tensor<f32>\n"
    "    }) {replica_groups = dense<[[0, 1, 2]]> : tensor<1x3xi64>}\n"
    "        : (tensor<4xf32>) -> tensor<4xf32>\n"
    "    return %0 : tensor<4xf32>\n"
    "  }\n"
    "}\n";

// On one replica per device of `ids`.
static PJRT_LoadedExecutable *compile(uint32_t rank, const char *text, const int64_t *ids,
                                      size_t count) {
  mp_strbuf_t options, build, assignment, devices;
  mp_strbuf_init(&options);
  mp_strbuf_init(&build);
  mp_strbuf_init(&assignment);
  mp_strbuf_init(&devices);
  mp_proto_put_packed(&devices, 1, ids, count);
  mp_proto_put_varint(&assignment, 1, count);
  mp_proto_put_varint(&assignment, 2, 1);
  mp_proto_put_message(&assignment, 3, &devices);
  mp_proto_put_varint(&build, 4, count);
  mp_proto_put_varint(&build, 5, 1);
  mp_proto_put_message(&build, 9, &assignment);
  mp_proto_put_message(&options, 3, &build);
  PJRT_Program program = {.struct_size = PJRT_STRUCT_SIZE(PJRT_Program, format_size),
                          .code = (char *)text,
                          .code_size = strlen(text),
                          .format = "mlir",
                          .format_size = 4};
  PJRT_Client_Compile_Args args = ARGS(PJRT_Client_Compile, executable);
  args.client = pods.clients[rank];
  args.program = &program;
  args.compile_options = mp_strbuf_text(&options);
  args.compile_options_size = options.size;
  expect_ok(api()->PJRT_Client_Compile(&args));
  mp_strbuf_deinit(&options);
  mp_strbuf_deinit(&build);
  mp_strbuf_deinit(&assignment);
  mp_strbuf_deinit(&devices);
  return args.executable;
}

static PJRT_DeviceDescription *description_of(PJRT_Device *device) {
  PJRT_Device_GetDescription_Args args = ARGS(PJRT_Device_GetDescription, device_description);
  args.device = device;
  expect_ok(api()->PJRT_Device_GetDescription(&args));
  return args.device_description;
}

static void the_client_shows_all_devices(void **state) {
  (void)state;
  for (uint32_t rank = 0; rank < RANKS; ++rank) {
    PJRT_Client_Devices_Args all = ARGS(PJRT_Client_Devices, num_devices);
    PJRT_Client_AddressableDevices_Args own =
        ARGS(PJRT_Client_AddressableDevices, num_addressable_devices);
    PJRT_Client_AddressableMemories_Args memories =
        ARGS(PJRT_Client_AddressableMemories, num_addressable_memories);
    PJRT_Client_ProcessIndex_Args index = ARGS(PJRT_Client_ProcessIndex, process_index);
    all.client = own.client = memories.client = index.client = pods.clients[rank];
    expect_ok(api()->PJRT_Client_Devices(&all));
    expect_ok(api()->PJRT_Client_AddressableDevices(&own));
    expect_ok(api()->PJRT_Client_AddressableMemories(&memories));
    expect_ok(api()->PJRT_Client_ProcessIndex(&index));
    assert_int_equal(all.num_devices, DEVICES);
    assert_int_equal(own.num_addressable_devices, EACH);
    assert_int_equal(memories.num_addressable_memories, EACH * 3);
    assert_int_equal(index.process_index, rank);
    for (uint32_t i = 0; i < EACH; ++i) {
      assert_ptr_equal(own.addressable_devices[i], all.devices[rank * EACH + i]);
    }
    for (size_t i = 0; i < memories.num_addressable_memories; ++i) {
      PJRT_Memory_Id_Args id = ARGS(PJRT_Memory_Id, id);
      PJRT_Memory_AddressableByDevices_Args by =
          ARGS(PJRT_Memory_AddressableByDevices, num_devices);
      id.memory = by.memory = memories.addressable_memories[i];
      expect_ok(api()->PJRT_Memory_Id(&id));
      expect_ok(api()->PJRT_Memory_AddressableByDevices(&by));
      assert_int_equal(id.id, (int)(rank * EACH * 3 + i));
      assert_int_equal(by.num_devices, 1);
      assert_ptr_equal(by.devices[0], own.addressable_devices[i / 3]);
    }
  }
}

static int64_t attribute(PJRT_DeviceDescription *description, const char *name) {
  PJRT_DeviceDescription_Attributes_Args args = ARGS(PJRT_DeviceDescription_Attributes, attributes);
  args.device_description = description;
  expect_ok(api()->PJRT_DeviceDescription_Attributes(&args));
  for (size_t i = 0; i < args.num_attributes; ++i) {
    const PJRT_NamedValue *value = &args.attributes[i];
    if (strncmp(value->name, name, value->name_size) != 0) continue;
    return value->type == PJRT_NamedValue_kInt64 ? value->int64_value : value->int64_array_value[0];
  }
  fail_msg("no attribute %s", name);
  return 0;
}

// All that callers ask of foreign devices, by every rank.
static void every_device_describes_itself(void **state) {
  (void)state;
  for (int id = 0; id < DEVICES; ++id) {
    const char *texts[RANKS] = {0};
    for (uint32_t rank = 0; rank < RANKS; ++rank) {
      PJRT_Device *device = device_of(pods.clients[rank], id);
      PJRT_DeviceDescription *description = description_of(device);
      PJRT_DeviceDescription_Id_Args get_id = ARGS(PJRT_DeviceDescription_Id, id);
      PJRT_DeviceDescription_ProcessIndex_Args process =
          ARGS(PJRT_DeviceDescription_ProcessIndex, process_index);
      PJRT_DeviceDescription_Kind_Args kind = ARGS(PJRT_DeviceDescription_Kind, device_kind_size);
      PJRT_DeviceDescription_ToString_Args text =
          ARGS(PJRT_DeviceDescription_ToString, to_string_size);
      PJRT_DeviceDescription_DebugString_Args debug =
          ARGS(PJRT_DeviceDescription_DebugString, debug_string_size);
      PJRT_Device_IsAddressable_Args addressable = ARGS(PJRT_Device_IsAddressable, is_addressable);
      PJRT_Device_LocalHardwareId_Args hardware =
          ARGS(PJRT_Device_LocalHardwareId, local_hardware_id);
      get_id.device_description = process.device_description = kind.device_description =
          description;
      text.device_description = debug.device_description = description;
      addressable.device = hardware.device = device;
      expect_ok(api()->PJRT_DeviceDescription_Id(&get_id));
      expect_ok(api()->PJRT_DeviceDescription_ProcessIndex(&process));
      expect_ok(api()->PJRT_DeviceDescription_Kind(&kind));
      expect_ok(api()->PJRT_DeviceDescription_ToString(&text));
      expect_ok(api()->PJRT_DeviceDescription_DebugString(&debug));
      expect_ok(api()->PJRT_Device_IsAddressable(&addressable));
      expect_ok(api()->PJRT_Device_LocalHardwareId(&hardware));
      bool is_own = id / EACH == (int)rank;
      assert_int_equal(get_id.id, id);
      assert_int_equal(process.process_index, id / EACH);
      assert_int_equal(addressable.is_addressable, is_own);
      assert_int_equal(hardware.local_hardware_id, is_own ? id % EACH : -1);
      assert_memory_equal(kind.device_kind, "minipod", kind.device_kind_size);
      assert_true(text.to_string_size > 0 && debug.debug_string_size > 0);
      assert_int_equal(attribute(description, "host_index"), id / EACH);
      assert_int_equal(attribute(description, "coords"), id % 3);
      assert_int_equal(attribute(description, "slice_index"), 0);
      texts[rank] = text.to_string;
      assert_string_equal(texts[rank], texts[0]);
    }
  }
}

static void foreign_devices_are_refused(void **state) {
  (void)state;
  PJRT_Device *foreign = device_of(pods.clients[0], 5);
  PJRT_Device_DefaultMemory_Args memory = ARGS(PJRT_Device_DefaultMemory, memory);
  PJRT_Device_MemoryStats_Args stats = ARGS(PJRT_Device_MemoryStats, peak_pool_bytes_is_set);
  PJRT_Device_AddressableMemories_Args memories =
      ARGS(PJRT_Device_AddressableMemories, num_memories);
  memory.device = stats.device = memories.device = foreign;
  static const char words[] = "device 5: it belongs to process 2, this is process 0";
  expect_error(api()->PJRT_Device_DefaultMemory(&memory), PJRT_Error_Code_INVALID_ARGUMENT, words);
  expect_error(api()->PJRT_Device_MemoryStats(&stats), PJRT_Error_Code_INVALID_ARGUMENT, words);
  expect_ok(api()->PJRT_Device_AddressableMemories(&memories));
  assert_int_equal(memories.num_memories, 0);
  static const float data[4] = {1, 2, 3, 4};
  static const int64_t dims[1] = {4};
  PJRT_Client_BufferFromHostBuffer_Args put = ARGS(PJRT_Client_BufferFromHostBuffer, buffer);
  put.client = pods.clients[0];
  put.data = data;
  put.type = PJRT_Buffer_Type_F32;
  put.dims = dims;
  put.num_dims = 1;
  put.device = foreign;
  expect_error(api()->PJRT_Client_BufferFromHostBuffer(&put), PJRT_Error_Code_INVALID_ARGUMENT,
               words);
  PJRT_Buffer *own = put_f32(pods.clients[0], device_of(pods.clients[0], 1), data, 4);
  PJRT_Buffer_CopyToDevice_Args copy = ARGS(PJRT_Buffer_CopyToDevice, dst_buffer);
  copy.buffer = own;
  copy.dst_device = foreign;
  expect_error(api()->PJRT_Buffer_CopyToDevice(&copy), PJRT_Error_Code_INVALID_ARGUMENT, words);
  destroy_buffer(own);
  PJRT_Client_LookupAddressableDevice_Args lookup =
      ARGS(PJRT_Client_LookupAddressableDevice, addressable_device);
  lookup.client = pods.clients[1];
  lookup.local_hardware_id = 1;
  expect_ok(api()->PJRT_Client_LookupAddressableDevice(&lookup));
  assert_ptr_equal(lookup.addressable_device, device_of(pods.clients[1], 3));
  lookup.local_hardware_id = 2;
  expect_error(api()->PJRT_Client_LookupAddressableDevice(&lookup), PJRT_Error_Code_NOT_FOUND,
               "local hardware id 2");
}

static void news_about_processes_are_no_error(void **state) {
  (void)state;
  PJRT_Client_UpdateGlobalProcessInfo_Args args =
      ARGS(PJRT_Client_UpdateGlobalProcessInfo, num_process_infos);
  args.client = pods.clients[0];
  args.process_infos = NULL;
  args.num_process_infos = 0;
  assert_null(api()->PJRT_Client_UpdateGlobalProcessInfo(&args));
  // Of other jobs, of processes that there are not, of those that are not connected, of no size.
  PJRT_ProcessInfo infos[2] = {
      {.struct_size = sizeof(infos[0]), .task_id = -1, .state = PJRT_ProcessState_kConnected},
      {.struct_size = sizeof(infos[0]), .task_id = 9, .state = PJRT_ProcessState_kError}};
  args.process_infos = infos;
  for (args.num_process_infos = 1; args.num_process_infos <= 2; ++args.num_process_infos) {
    assert_null(api()->PJRT_Client_UpdateGlobalProcessInfo(&args));
  }
  infos[0].struct_size = 0;
  assert_null(api()->PJRT_Client_UpdateGlobalProcessInfo(&args));
  infos[0].struct_size = sizeof(infos[0]) + 1;
  assert_null(api()->PJRT_Client_UpdateGlobalProcessInfo(&args));
}

static size_t addressable_of(PJRT_LoadedExecutable *loaded, PJRT_Device *const **out_devices,
                             PJRT_LogicalDeviceIds **out_ids) {
  PJRT_LoadedExecutable_AddressableDevices_Args devices =
      ARGS(PJRT_LoadedExecutable_AddressableDevices, num_addressable_devices);
  PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args ids =
      ARGS(PJRT_LoadedExecutable_AddressableDeviceLogicalIds, num_addressable_device_logical_ids);
  devices.executable = ids.executable = loaded;
  expect_ok(api()->PJRT_LoadedExecutable_AddressableDevices(&devices));
  expect_ok(api()->PJRT_LoadedExecutable_AddressableDeviceLogicalIds(&ids));
  assert_int_equal(devices.num_addressable_devices, ids.num_addressable_device_logical_ids);
  *out_devices = devices.addressable_devices;
  *out_ids = ids.addressable_device_logical_ids;
  return devices.num_addressable_devices;
}

// Replica 0 on device 3, 1 on 0, 2 on 2: process 0 has one device, process 1 two, process 2 none.
static void programs_run_on_the_own_part(void **state) {
  (void)state;
  static const int64_t assignment[] = {3, 0, 2};
  static const float data[4] = {1, 2, 3, 4}, wanted[4] = {2, 4, 6, 8};
  static const size_t expected[RANKS] = {1, 2, 0};
  char fingerprint[64] = "";
  for (uint32_t rank = 0; rank < RANKS; ++rank) {
    PJRT_LoadedExecutable *loaded = compile(rank, add_text, assignment, 3);
    PJRT_Device *const *devices = NULL;
    PJRT_LogicalDeviceIds *ids = NULL;
    size_t count = addressable_of(loaded, &devices, &ids);
    assert_int_equal(count, expected[rank]);
    PJRT_Buffer *inputs[EACH], *results[EACH];
    PJRT_Buffer *const *lists[EACH];
    PJRT_Buffer **outputs[EACH];
    for (size_t i = 0; i < count; ++i) {
      PJRT_DeviceDescription_Id_Args id = ARGS(PJRT_DeviceDescription_Id, id);
      id.device_description = description_of(devices[i]);
      expect_ok(api()->PJRT_DeviceDescription_Id(&id));
      assert_int_equal(assignment[ids[i].replica], id.id);
      inputs[i] = put_f32(pods.clients[rank], devices[i], data, 4);
      lists[i] = &inputs[i];
      outputs[i] = &results[i];
    }
    PJRT_LoadedExecutable_Execute_Args args = ARGS(PJRT_LoadedExecutable_Execute, execute_device);
    args.executable = loaded;
    args.argument_lists = count == 0 ? NULL : lists;
    args.output_lists = count == 0 ? NULL : outputs;
    args.num_devices = count;
    args.num_args = count == 0 ? 0 : 1;
    expect_ok(api()->PJRT_LoadedExecutable_Execute(&args));
    for (size_t i = 0; i < count; ++i) {
      float got[4] = {0};
      get(results[i], got, sizeof(got));
      assert_memory_equal(got, wanted, sizeof(got));
      destroy_buffer(results[i]);
      destroy_buffer(inputs[i]);
    }
    PJRT_LoadedExecutable_Fingerprint_Args print =
        ARGS(PJRT_LoadedExecutable_Fingerprint, executable_fingerprint_size);
    print.executable = loaded;
    expect_ok(api()->PJRT_LoadedExecutable_Fingerprint(&print));
    if (rank == 0) memcpy(fingerprint, print.executable_fingerprint, 16);
    assert_memory_equal(fingerprint, print.executable_fingerprint, 16);
    destroy_loaded(loaded);
  }
}

// A sum over the first devices of all processes.
typedef struct {
  PJRT_LoadedExecutable *loaded[RANKS];
  PJRT_Buffer *inputs[RANKS];
} sum_t;

static void sum_begin(sum_t *sum) {
  static const int64_t assignment[] = {0, 2, 4};
  static const float data[4] = {1, 2, 3, 4};
  for (uint32_t rank = 0; rank < RANKS; ++rank) {
    sum->loaded[rank] = compile(rank, sum_text, assignment, RANKS);
    sum->inputs[rank] =
        put_f32(pods.clients[rank], device_of(pods.clients[rank], (int)rank * EACH), data, 4);
  }
}

// One process launches, with this argument.
static PJRT_Error *sum_launch(const sum_t *sum, uint32_t rank, PJRT_Buffer *argument,
                              PJRT_ExecuteOptions *options, PJRT_Buffer **result) {
  PJRT_Buffer *const *list = &argument;
  PJRT_LoadedExecutable_Execute_Args args = ARGS(PJRT_LoadedExecutable_Execute, execute_device);
  args.executable = sum->loaded[rank];
  args.options = options;
  args.argument_lists = &list;
  args.output_lists = &result;
  args.num_devices = args.num_args = 1;
  return api()->PJRT_LoadedExecutable_Execute(&args);
}

// Takes the results of all ranks that have one: the sum or, with `words`, an error.
static void sum_expect(PJRT_Buffer *const results[RANKS], PJRT_Error_Code code, const char *words) {
  static const float wanted[4] = {3, 6, 9, 12};
  for (uint32_t rank = 0; rank < RANKS; ++rank) {
    float got[4] = {0};
    if (results[rank] == NULL) continue;
    if (words != NULL) {
      expect_error(try_get(results[rank], got, sizeof(got)), code, words);
    } else {
      get(results[rank], got, sizeof(got));
      assert_memory_equal(got, wanted, sizeof(got));
    }
    destroy_buffer(results[rank]);
  }
}

static void sum_end(const sum_t *sum) {
  for (uint32_t rank = 0; rank < RANKS; ++rank) {
    destroy_buffer(sum->inputs[rank]);
    destroy_loaded(sum->loaded[rank]);
  }
}

// If the table refuses a launch before the runtime sees it, the other ranks get the error, too.
static void a_refused_launch_fails_everywhere(void **state) {
  (void)state;
  sum_t sum;
  sum_begin(&sum);
  for (int round = 0; round < 2; ++round) {  // the second goes well
    PJRT_Buffer *results[RANKS] = {NULL};
    for (uint32_t rank = 0; rank < RANKS; ++rank) {
      const bool is_refused = round == 0 && rank == 1;
      PJRT_Error *error =
          sum_launch(&sum, rank, is_refused ? NULL : sum.inputs[rank], NULL, &results[rank]);
      if (is_refused) {
        expect_error(error, PJRT_Error_Code_INVALID_ARGUMENT, "is NULL");
      } else {
        expect_ok(error);
      }
    }
    sum_expect(results, PJRT_Error_Code_INVALID_ARGUMENT,
               round == 0 ? "is NULL (on process 1)" : NULL);
  }
  sum_end(&sum);
}

// Tells all that these are the incarnations of the processes now.
static void tell_incarnations(const uint64_t incarnations[RANKS]) {
  PJRT_ProcessInfo infos[RANKS];
  for (int rank = 0; rank < RANKS; ++rank) {
    infos[rank] = (PJRT_ProcessInfo){.struct_size = sizeof(infos[0]),
                                     .task_id = RANKS - 1 - rank,
                                     .incarnation_id = incarnations[RANKS - 1 - rank],
                                     .state = PJRT_ProcessState_kConnected};
  }
  for (uint32_t rank = 0; rank < RANKS; ++rank) {
    PJRT_Client_UpdateGlobalProcessInfo_Args args =
        ARGS(PJRT_Client_UpdateGlobalProcessInfo, num_process_infos);
    args.client = pods.clients[rank];
    args.process_infos = infos;
    args.num_process_infos = RANKS;
    assert_null(api()->PJRT_Client_UpdateGlobalProcessInfo(&args));
  }
}

// A launch that is meant for a process which another one has replaced fails; the next one does not.
static void launches_are_meant_for_processes(void **state) {
  (void)state;
  static int tasks[RANKS] = {0, 1, 2};
  static int64_t meant[2][RANKS] = {{11, 12, 13}, {11, -12, 13}};
  tell_incarnations((uint64_t[RANKS]){11, 12, 13});
  tell_incarnations((uint64_t[RANKS]){11, (uint64_t)-12, 13});
  sum_t sum;
  sum_begin(&sum);
  for (int round = 0; round < 2; ++round) {
    PJRT_Buffer *results[RANKS] = {NULL};
    for (uint32_t rank = 0; rank < RANKS; ++rank) {
      PJRT_ExecuteOptions options = {
          .struct_size = PJRT_STRUCT_SIZE(PJRT_ExecuteOptions, incarnation_ids),
          .num_tasks = RANKS,
          .task_ids = tasks,
          .incarnation_ids = meant[round]};
      expect_ok(sum_launch(&sum, rank, sum.inputs[rank], &options, &results[rank]));
      assert_non_null(results[rank]);
    }
    sum_expect(results, PJRT_Error_Code_UNAVAILABLE,
               round == 0 ? "process 1 has ended, and a restarted one has replaced it" : NULL);
  }
  sum_end(&sum);
}

// ---- transfers by descriptors ----

static const PJRT_CrossHostTransfers_Extension *transfers(void) {
  return (const void *)find_extension(PJRT_Extension_Type_CrossHostTransfers);
}

// What a notifier receives.
typedef struct {
  char descriptors[2][64];
  size_t sizes[2];
  size_t count;
  PJRT_Transfers_CrossHostSendCancelNotifier *cancel;
  void *cancel_arg;
} told_t;

static void note_descriptors(PJRT_Error *error, const char **descriptors, size_t *sizes,
                             size_t count, void *user_arg,
                             PJRT_Transfers_CrossHostSendCancelNotifier *cancel, void *cancel_arg) {
  told_t *told = user_arg;
  assert_null(error);
  for (size_t i = 0; i < count; ++i) {
    assert_true(sizes[i] <= sizeof(told->descriptors[i]));
    memcpy(told->descriptors[i], descriptors[i], sizes[i]);
    told->sizes[i] = sizes[i];
  }
  told->count = count;
  told->cancel = cancel;
  told->cancel_arg = cancel_arg;
}

// Two receive buffers of f32[4] on a device of this rank.
static PJRT_Error *receive(uint32_t rank, int device, bool may_cancel, told_t *told,
                           PJRT_Buffer *buffers[2]) {
  static const int64_t dims[] = {4};
  PJRT_Transfers_PJRT_Client_MakeCrossHostReceiveBuffers_Args args = {
      .struct_size = PJRT_STRUCT_SIZE(PJRT_Transfers_PJRT_Client_MakeCrossHostReceiveBuffers_Args,
                                      allow_cancel_notifier),
      .client = pods.clients[rank],
      .num_shapes = 2,
      .shape_num_dims = (size_t[]){1, 1},
      .num_dims = (const int64_t *[]){dims, dims},
      .element_types = (PJRT_Buffer_Type[]){PJRT_Buffer_Type_F32, PJRT_Buffer_Type_F32},
      .layouts = (PJRT_Buffer_MemoryLayout *[]){NULL, NULL},
      .device = device_of(pods.clients[rank], device),
      .notifier = {told, note_descriptors},
      .buffers = buffers,
      .allow_cancel_notifier = may_cancel};
  return transfers()->make_cross_host_receive_buffers(&args);
}

// How a copy has ended, and how often its descriptor was given back.
typedef struct {
  atomic_int num_ends, num_freed;
  bool is_enqueued;
  mp_status_t error;
} copied_t;

static copied_t g_copied;

static void note_end(PJRT_Error *error, bool is_enqueued, void *user_arg) {
  copied_t *copied = user_arg;
  copied->is_enqueued = is_enqueued;
  if (error != NULL) {
    const char *text = NULL;
    size_t size = 0;
    error->vtable->message(error, &text, &size);
    copied->error = mp_status_make(MP_INTERNAL, "%s", text);
  }
  atomic_fetch_add(&copied->num_ends, 1);
}

static void note_freed(char **descriptor, size_t *size) {
  assert_true(descriptor != NULL && size != NULL);
  atomic_fetch_add(&g_copied.num_freed, 1);
}

static void await_end(void) {
  while (atomic_load(&g_copied.num_ends) == 0) {
    nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
  }
}

// Copies four numbers from a device of `rank`, and waits for the end. `event` as in the interface.
static void copy(uint32_t rank, int device, char *descriptor, size_t size, PJRT_Event *event,
                 float first) {
  const float values[4] = {first, 2, 3, 4};
  g_copied = (copied_t){.error = NULL};
  PJRT_Buffer *buffer =
      put_f32(pods.clients[rank], device_of(pods.clients[rank], device), values, 4);
  PJRT_Transfers_PJRT_Buffer_CopyToRemoteDevice_Args args = {
      .struct_size = PJRT_STRUCT_SIZE(PJRT_Transfers_PJRT_Buffer_CopyToRemoteDevice_Args,
                                      descriptor_destructor),
      .buffer = buffer,
      .event = event,
      .serialized_descriptor = &descriptor,
      .serialized_descriptor_size = &size,
      .on_done = {&g_copied, note_end},
      .descriptor_destructor = note_freed};
  transfers()->copy_to_remote_device(&args);
  destroy_buffer(buffer);  // the copy has what it needs
  if (event == NULL) {
    await_end();
  } else {
    assert_int_equal(atomic_load(&g_copied.num_ends), 0);
    PJRT_Event_Set_Args set = ARGS(PJRT_Event_Set, error_message_size);
    set.event = event;
    expect_ok(api()->PJRT_Event_Set(&set));
    await_end();
  }
  assert_int_equal(atomic_load(&g_copied.num_ends), 1);
  assert_int_equal(atomic_load(&g_copied.num_freed), 1);
}

static void note_canceled(PJRT_Error *error, void *user_arg) {
  assert_null(error);
  ++*(int *)user_arg;
}

static void expect_first(PJRT_Buffer *buffer, float first) {
  float got[4] = {0};
  get(buffer, got, sizeof(got));
  assert_true(got[0] == first && got[3] == 4);
  destroy_buffer(buffer);
}

static void descriptors_bring_arrays_to_their_receivers(void **state) {
  (void)state;
  told_t told;
  PJRT_Buffer *buffers[2];
  expect_ok(receive(1, 2, false, &told, buffers));
  assert_int_equal(told.count, 2);
  assert_null(told.cancel_arg);
  PJRT_Event_Create_Args create = ARGS(PJRT_Event_Create, event);
  expect_ok(api()->PJRT_Event_Create(&create));
  copy(2, 4, told.descriptors[1], told.sizes[1], create.event, 20);
  assert_true(g_copied.is_enqueued && g_copied.error == NULL);
  copy(0, 1, told.descriptors[0], told.sizes[0], NULL, 10);
  expect_first(buffers[0], 10);
  expect_first(buffers[1], 20);
  // Without permission, cancelling has no effect, but is answered.
  expect_ok(receive(1, 3, false, &told, buffers));
  int num_canceled = 0;
  told.cancel(told.descriptors[0], told.sizes[0], PJRT_Error_Code_ABORTED, "no", 2, note_canceled,
              &num_canceled, told.cancel_arg);
  assert_int_equal(num_canceled, 1);
  copy(0, 0, told.descriptors[0], told.sizes[0], NULL, 30);
  copy(0, 0, told.descriptors[1], told.sizes[1], NULL, 40);
  expect_first(buffers[0], 30);
  expect_first(buffers[1], 40);
}

static void a_transfer_that_fails_ends_the_wait(void **state) {
  (void)state;
  told_t told;
  PJRT_Buffer *buffers[2];
  float got[4];
  expect_ok(receive(1, 2, true, &told, buffers));
  assert_non_null(told.cancel_arg);
  // Of the receiver.
  int num_canceled = 0;
  told.cancel(told.descriptors[0], told.sizes[0], PJRT_Error_Code_ABORTED, "not wanted...", 10,
              note_canceled, &num_canceled, told.cancel_arg);
  assert_int_equal(num_canceled, 1);
  expect_error(try_get(buffers[0], got, sizeof(got)), PJRT_Error_Code_ABORTED, "not wanted");
  destroy_buffer(buffers[0]);
  // Of the sender, with a buffer whose contents are an error.
  PJRT_Buffer *broken = put_error(pods.clients[0], device_of(pods.clients[0], 0), 4,
                                  PJRT_Error_Code_DATA_LOSS, "it broke");
  char *descriptor = told.descriptors[1];
  g_copied = (copied_t){.error = NULL};
  // An older client's struct ends before the destructor.
  PJRT_Transfers_PJRT_Buffer_CopyToRemoteDevice_Args args = {
      .struct_size = PJRT_STRUCT_SIZE(PJRT_Transfers_PJRT_Buffer_CopyToRemoteDevice_Args, on_done),
      .buffer = broken,
      .serialized_descriptor = &descriptor,
      .serialized_descriptor_size = &told.sizes[1],
      .on_done = {&g_copied, note_end},
      .descriptor_destructor = (void (*)(char **, size_t *))(uintptr_t)0x5a5a};
  transfers()->copy_to_remote_device(&args);
  await_end();
  assert_status(g_copied.error, MP_INTERNAL, "it broke");
  expect_error(try_get(buffers[1], got, sizeof(got)), PJRT_Error_Code_DATA_LOSS,
               "process 0 could not send this array: it broke");
  destroy_buffer(buffers[1]);
  destroy_buffer(broken);
}

static void bad_descriptors_are_refused(void **state) {
  (void)state;
  char bytes[32] = "not a descriptor";
  copy(0, 0, bytes, 7, NULL, 1);
  assert_false(g_copied.is_enqueued);
  assert_status(g_copied.error, MP_INTERNAL, "a descriptor of 7 bytes is not minipod's");
  copy(0, 0, bytes, 32, NULL, 1);
  assert_status(g_copied.error, MP_INTERNAL, "not minipod's");
  told_t told;
  PJRT_Buffer *buffers[2];
  expect_error(receive(1, 0, false, &told, buffers), PJRT_Error_Code_INVALID_ARGUMENT, "");
  PJRT_Transfers_PJRT_Client_MakeCrossHostReceiveBuffers_Args none = {.struct_size = 112};
  expect_error(transfers()->make_cross_host_receive_buffers(&none),
               PJRT_Error_Code_INVALID_ARGUMENT, "the notifier or an array is NULL");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_client_shows_all_devices),
      cmocka_unit_test(every_device_describes_itself),
      cmocka_unit_test(foreign_devices_are_refused),
      cmocka_unit_test(news_about_processes_are_no_error),
      cmocka_unit_test(programs_run_on_the_own_part),
      cmocka_unit_test(a_refused_launch_fails_everywhere),
      cmocka_unit_test(launches_are_meant_for_processes),
      cmocka_unit_test(descriptors_bring_arrays_to_their_receivers),
      cmocka_unit_test(a_transfer_that_fails_ends_the_wait),
      cmocka_unit_test(bad_descriptors_are_refused),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
