// The table from outside, as a client sees it: GetPjrtApi and what needs no program.

#include "pjrt/c_api/c_api_tpu_topology.h"
#include "tests/unit/support/pjrt_test.h"

static void no_slot_is_empty(void **state) {
  (void)state;
  assert_int_equal(api()->struct_size, sizeof(PJRT_Api));
  assert_int_equal(api()->pjrt_api_version.minor_version, 117);
  void *const *slots = (void *const *)&api()->PJRT_Error_Destroy;
  size_t count = (sizeof(PJRT_Api) - offsetof(PJRT_Api, PJRT_Error_Destroy)) / sizeof(void *);
  assert_int_equal(count, 138);
  for (size_t i = 0; i < count; ++i) assert_non_null(slots[i]);
}

static void bad_arguments_are_errors(void **state) {
  (void)state;
  expect_error(api()->PJRT_Client_Create(NULL), PJRT_Error_Code_INVALID_ARGUMENT,
               "PJRT_Client_Create: args is NULL");
  PJRT_Client_Devices_Args devices = ARGS(PJRT_Client_Devices, num_devices);
  expect_error(api()->PJRT_Client_Devices(&devices), PJRT_Error_Code_INVALID_ARGUMENT,
               "PJRT_Client_Devices: client is NULL");
  devices.struct_size = 24;
  expect_error(api()->PJRT_Client_Devices(&devices), PJRT_Error_Code_INVALID_ARGUMENT,
               "struct_size is 24, at least 40");
  PJRT_Error_Destroy_Args nothing = ARGS(PJRT_Error_Destroy, error);
  api()->PJRT_Error_Destroy(&nothing);
  api()->PJRT_Error_Destroy(NULL);
}

// Functions that make something out of nothing.
static bool creates(const char *name) {
  static const char *const creators[] = {"PJRT_Client_Create", "PJRT_TopologyDescription_Create",
                                         "PJRT_ExecuteContext_Create", "PJRT_Event_Create"};
  for (size_t i = 0; i < sizeof(creators) / sizeof(creators[0]); ++i) {
    if (strcmp(name, creators[i]) == 0) return true;
  }
  return false;
}

// What a function says to NULL objects is an error or nothing, never a crash. PJRT_RESULT_void
// functions have nothing to say.
#define TRY_void(name, args)  api()->name(args)
#define TRY_error(name, args) release_error(api()->name(args))
#define TRY_EMPTY(result, name, required)             \
  if (!creates(#name)) {                              \
    name##_Args args = {.struct_size = sizeof(args)}; \
    TRY_##result(name, &args);                        \
    name##_Args none = {.struct_size = 0};            \
    TRY_##result(name, &none);                        \
    TRY_##result(name, NULL);                         \
  }

static void release_error(PJRT_Error *error) {
  if (error != NULL) error->vtable->destroy(error);
}

static void empty_arguments_crash_nothing(void **state) {
  (void)state;
  PJRT_FUNCTIONS(TRY_EMPTY)
}

static void stubs_say_what_they_are(void **state) {
  (void)state;
  PJRT_CopyToDeviceStream_AddChunk_Args args =
      ARGS(PJRT_CopyToDeviceStream_AddChunk, transfer_complete);
  expect_error(api()->PJRT_CopyToDeviceStream_AddChunk(&args), PJRT_Error_Code_UNIMPLEMENTED,
               "minipod does not implement PJRT_CopyToDeviceStream_AddChunk: ");
}

static void plugin_attributes_respect_old_callers(void **state) {
  (void)state;
  PJRT_Plugin_Attributes_Args args = ARGS(PJRT_Plugin_Attributes, num_attributes);
  assert_null(api()->PJRT_Plugin_Attributes(&args));
  assert_int_equal(args.num_attributes, 3);
  assert_memory_equal(args.attributes[1].name, "stablehlo_current_version",
                      args.attributes[1].name_size);
  assert_int_equal(args.attributes[1].int64_array_value[1], 17);
  args.struct_size = PJRT_STRUCT_SIZE(PJRT_Plugin_Attributes_Args, attributes);
  args.num_attributes = 77;
  assert_null(api()->PJRT_Plugin_Attributes(&args));
  assert_int_equal(args.num_attributes, 77);
}

static PJRT_TopologyDescription *make_topology(const char *name) {
  PJRT_TopologyDescription_Create_Args args = ARGS(PJRT_TopologyDescription_Create, topology);
  args.topology_name = name;
  args.topology_name_size = strlen(name);
  assert_null(api()->PJRT_TopologyDescription_Create(&args));
  return args.topology;
}

static void destroy_topology(PJRT_TopologyDescription *topology) {
  PJRT_TopologyDescription_Destroy_Args args = ARGS(PJRT_TopologyDescription_Destroy, topology);
  args.topology = topology;
  assert_null(api()->PJRT_TopologyDescription_Destroy(&args));
}

static uint64_t fingerprint_of(PJRT_TopologyDescription *topology) {
  PJRT_TopologyDescription_Fingerprint_Args args =
      ARGS(PJRT_TopologyDescription_Fingerprint, fingerprint);
  args.topology = topology;
  assert_null(api()->PJRT_TopologyDescription_Fingerprint(&args));
  return args.fingerprint;
}

static void a_topology_survives_its_serialization(void **state) {
  (void)state;
  PJRT_TopologyDescription *topology = make_topology("v5e:2x2");
  PJRT_TopologyDescription_Serialize_Args serialize =
      ARGS(PJRT_TopologyDescription_Serialize, serialized_topology_deleter);
  serialize.topology = topology;
  assert_null(api()->PJRT_TopologyDescription_Serialize(&serialize));
  PJRT_TopologyDescription_Deserialize_Args deserialize =
      ARGS(PJRT_TopologyDescription_Deserialize, topology);
  deserialize.serialized_topology = serialize.serialized_bytes;
  deserialize.serialized_topology_size = serialize.serialized_bytes_size;
  assert_null(api()->PJRT_TopologyDescription_Deserialize(&deserialize));
  assert_int_equal(fingerprint_of(topology), fingerprint_of(deserialize.topology));
  deserialize.serialized_topology_size /= 2;
  PJRT_TopologyDescription *again = deserialize.topology;
  expect_error(api()->PJRT_TopologyDescription_Deserialize(&deserialize),
               PJRT_Error_Code_INVALID_ARGUMENT, "");
  serialize.serialized_topology_deleter(serialize.serialized_topology);
  destroy_topology(again);
  destroy_topology(topology);
}

static void devices_of_a_topology_have_attributes(void **state) {
  (void)state;
  PJRT_TopologyDescription *topology = make_topology("v5e:2x2");
  PJRT_TopologyDescription_GetDeviceDescriptions_Args list =
      ARGS(PJRT_TopologyDescription_GetDeviceDescriptions, num_descriptions);
  list.topology = topology;
  assert_null(api()->PJRT_TopologyDescription_GetDeviceDescriptions(&list));
  assert_int_equal(list.num_descriptions, 4);
  PJRT_DeviceDescription_Attributes_Args attributes =
      ARGS(PJRT_DeviceDescription_Attributes, attributes);
  attributes.device_description = list.descriptions[3];
  assert_null(api()->PJRT_DeviceDescription_Attributes(&attributes));
  assert_memory_equal(attributes.attributes[0].name, "coords", 6);
  assert_int_equal(attributes.attributes[0].int64_array_value[0], 1);
  assert_int_equal(attributes.attributes[0].int64_array_value[1], 1);
  for (size_t i = 0; i < attributes.num_attributes; ++i) {
    // Callers end the process for any other type.
    assert_true(attributes.attributes[i].type <= PJRT_NamedValue_kInt64List);
  }
  destroy_topology(topology);
}

static void host_memory_is_the_callers_until_it_is_freed(void **state) {
  (void)state;
  const PJRT_HostMemoryAllocator_Extension *allocator =
      (const void *)find_extension(PJRT_Extension_Type_HostMemoryAllocator);
  assert_non_null(allocator);
  PJRT_Client *client = make_client(1);
  PJRT_HostMemoryAllocator_Allocate_Args args = {
      .struct_size = PJRT_STRUCT_SIZE(PJRT_HostMemoryAllocator_Allocate_Args, deleter_arg),
      .client = client,
      .numa_node = -1};
  const size_t sizes[] = {0, 1, 100000};
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
    args.size = sizes[i];
    expect_ok(allocator->allocate(&args));
    assert_int_equal((uintptr_t)args.ptr % 4096, 0);
    assert_non_null(args.ptr);
    memset(args.ptr, 1, sizes[i]);
    args.deleter(args.ptr, args.deleter_arg);
  }
  args.size = SIZE_MAX / 2;
  expect_error(allocator->allocate(&args), PJRT_Error_Code_RESOURCE_EXHAUSTED,
               "the host has no 9223372036854775807 bytes");
  args.client = NULL;
  expect_error(allocator->allocate(&args), PJRT_Error_Code_INVALID_ARGUMENT, "client is NULL");
  destroy_client(client);
}

// Its answers are compared with libtpu's in tests/e2e/plugin/test_tpu_topology_extension.py.
static void topologies_of_clients_have_places_of_tpus(void **state) {
  (void)state;
  const PJRT_TpuTopology_Extension *tpus =
      (const void *)find_extension(PJRT_Extension_Type_TpuTopology);
  assert_non_null(tpus);
  PJRT_Client *client = make_tpu_client("v6e:4x4");
  PJRT_Client_TopologyDescription_Args get = ARGS(PJRT_Client_TopologyDescription, topology);
  get.client = client;
  expect_ok(api()->PJRT_Client_TopologyDescription(&get));
  PJRT_TpuTopology_ChipCount_Args chips = {
      .struct_size = PJRT_STRUCT_SIZE(PJRT_TpuTopology_ChipCount_Args, chip_count),
      .topology = get.topology};
  expect_ok(tpus->chip_count(&chips));
  assert_int_equal(chips.chip_count, 16);
  // The client's process has all hosts.
  int32_t bounds[4] = {0};
  PJRT_TpuTopology_ChipsPerProcessBounds_Args box = {
      .struct_size = PJRT_STRUCT_SIZE(PJRT_TpuTopology_ChipsPerProcessBounds_Args,
                                      chip_per_process_bounds_num_dims),
      .topology = get.topology,
      .chip_per_process_bounds_max_dims = 4,
      .chip_per_process_bounds = bounds};
  expect_ok(tpus->chips_per_process_bounds(&box));
  assert_int_equal(box.chip_per_process_bounds_num_dims, 3);
  assert_true(bounds[0] == 4 && bounds[1] == 4 && bounds[2] == 1);
  destroy_client(client);
  client = make_client(2);
  get.client = client;
  expect_ok(api()->PJRT_Client_TopologyDescription(&get));
  chips.topology = get.topology;
  expect_error(tpus->chip_count(&chips), PJRT_Error_Code_FAILED_PRECONDITION, "are not TPUs");
  expect_error(tpus->chip_count(NULL), PJRT_Error_Code_INVALID_ARGUMENT, "arguments are NULL");
  destroy_client(client);
}

static void extensions_are_complete(void **state) {
  (void)state;
  const PJRT_Layouts_Extension *layouts = (const void *)find_extension(PJRT_Extension_Type_Layouts);
  assert_non_null(layouts);
  assert_int_equal(layouts->base.struct_size, 80);
  static const int64_t dims[] = {2, 3};
  PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args layout = {
      .struct_size = 56, .type = PJRT_Buffer_Type_F32, .dims = dims, .num_dims = 2};
  assert_null(layouts->PJRT_Layouts_PJRT_Topology_GetDefaultLayout(&layout));
  PJRT_Layouts_MemoryLayout_Serialize_Args text = {.struct_size = 56, .layout = layout.layout};
  assert_null(layouts->PJRT_Layouts_MemoryLayout_Serialize(&text));
  assert_string_equal(text.serialized_bytes, "{1,0}");
  text.serialized_layout_deleter(text.serialized_layout);

  const PJRT_MemoryDescriptions_Extension *memories =
      (const void *)find_extension(PJRT_Extension_Type_MemoryDescriptions);
  assert_non_null(memories);
  PJRT_DeviceDescription_MemoryDescriptions_Args list = {.struct_size = 48};
  assert_null(memories->PJRT_DeviceDescription_MemoryDescriptions(&list));
  assert_int_equal(list.num_memory_descriptions, 3);
  PJRT_MemoryDescription_Kind_Args kind = {.struct_size = 44,
                                           .memory_description = list.memory_descriptions[1]};
  assert_null(memories->PJRT_MemoryDescription_Kind(&kind));
  assert_string_equal(kind.kind, "pinned_host");
  assert_non_null(find_extension(PJRT_Extension_Type_Profiler));
  assert_non_null(find_extension(PJRT_Extension_Type_Shardings));
  assert_non_null(find_extension(PJRT_Extension_Type_AbiVersion));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_slot_is_empty),
      cmocka_unit_test(bad_arguments_are_errors),
      cmocka_unit_test(empty_arguments_crash_nothing),
      cmocka_unit_test(stubs_say_what_they_are),
      cmocka_unit_test(plugin_attributes_respect_old_callers),
      cmocka_unit_test(a_topology_survives_its_serialization),
      cmocka_unit_test(devices_of_a_topology_have_attributes),
      cmocka_unit_test(extensions_are_complete),
      cmocka_unit_test(host_memory_is_the_callers_until_it_is_freed),
      cmocka_unit_test(topologies_of_clients_have_places_of_tpus),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
