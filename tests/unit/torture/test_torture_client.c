// Torture: clients from start to end, pods and their descriptions, and executables that are asked,
// stored, loaded and dumped.
#include <glob.h>

#include "sim/runtime/order/faulty.h"
#include "sim/runtime/workers/workers.h"
#include "tests/unit/support/fixtures.h"
#include "tests/unit/torture/torture_pjrt.h"
#include "topology/machine/cgroup.h"
#include "topology/processes/announcement.h"
#include "topology/processes/pod_merge.h"

#define FIXTURES MINIPOD_SOURCE_DIR "/tests/fixtures/"
#define CONFIGS  MINIPOD_SOURCE_DIR "/configs/"

// What a row makes without failure, as text.
static mp_strbuf_t g_wanted;

static void close_wanted(void) {
  mp_strbuf_deinit(&g_wanted);
}

// The first text is what all later ones must be; consumes it.
static void keep_or_equal(mp_strbuf_t *text) {
  if (torture_survived(mp_strbuf_status(text))) {
    if (g_wanted.size == 0) {
      g_wanted = *text;
      return;
    }
    assert_string_equal(mp_strbuf_text(text), mp_strbuf_text(&g_wanted));
  }
  mp_strbuf_deinit(text);
}

// ---- Clients ----

static void start_and_end(const void *subject) {
  PJRT_Client *client = NULL;
  if (!try_client(subject, &client)) return;
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_pod_describe(client->topology->pod, &text);
  mp_strbuf_printf(&text, "%u workers, %llu bytes, dump '%s'\n",
                   client->client->workers->num_workers,
                   (unsigned long long)client->client->budget.machine_bytes, client->dump);
  for (size_t i = 0; i < client->num_addressable_memories; ++i) {
    mp_memory_stats_t stats;
    mp_memory_get_stats(client->memories[i].memory, &stats);
    mp_strbuf_printf(&text, "%s: %lld\n", client->memories[i].to_string,
                     (long long)stats.bytes_limit);
  }
  keep_or_equal(&text);
  destroy_client(client);
}

// The first memory of each kind: books, chunks of every size.
static void memories_of_every_size(const void *subject) {
  static const int64_t sizes[] = {64, 1 << 20, 3 << 20, 16 << 20, 100 << 20};
  enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };
  PJRT_Client *client = NULL;
  if (!try_client(subject, &client)) return;
  PJRT_Buffer *buffers[SIZES] = {NULL};
  for (int i = 0; i < SIZES; ++i) {
    PJRT_Client_CreateUninitializedBuffer_Args args =
        ARGS(PJRT_Client_CreateUninitializedBuffer, buffer);
    args.client = client;
    args.shape_dims = &sizes[i];
    args.shape_num_dims = 1;
    args.shape_element_type = PJRT_Buffer_Type_U8;
    args.memory = memory_of(device_of(client, 0), i == 1 ? 1 : 0);
    if (survived(api()->PJRT_Client_CreateUninitializedBuffer(&args))) buffers[i] = args.buffer;
  }
  for (int i = 0; i < SIZES; ++i) drop_buffer(&buffers[i]);
  assert_int_equal(books_of(client), 0);
  destroy_client(client);
}

// The error of a mistyped option is about the option, with the nearest name.
static void refused_options(const void *subject) {
  (void)subject;
  const PJRT_NamedValue value = mp_pjrt_named_string("num_device", "4");
  PJRT_Client_Create_Args args = ARGS(PJRT_Client_Create, kv_try_get_user_arg);
  args.create_options = &value;
  args.num_options = 1;
  expect_error_of(api()->PJRT_Client_Create(&args), PJRT_Error_Code_INVALID_ARGUMENT);
}

static const torture_option_t k_here[] = {{"num_devices", "3"}, {NULL, NULL}};
static const torture_option_t k_described[] = {
    TORTURE_MACHINE, {"topology", "v5e:4x2"}, {"log_level", "off"}, {NULL, NULL}};
static const torture_option_t k_file[] = {
    TORTURE_MACHINE, {"topology", CONFIGS "two-slices.yaml"}, {NULL, NULL}};
static const torture_option_t k_recorded[] = {
    {"machine", FIXTURES "topology/two_sockets_smt.xml"}, {"workers", "3"}, {NULL, NULL}};
static const torture_option_t k_paced[] = {
    TORTURE_MACHINE, {"topology", "ring:2 hbm:1MiB"}, {"time", "paced"}, {NULL, NULL}};
static const torture_option_t k_small[] = {TORTURE_MACHINE, {"num_devices", "1"}, {NULL, NULL}};

static const torture_option_t k_faulty[] = {TORTURE_MACHINE,
                                            {"topology", "torus:4x2"},
                                            {"time", "model"},
                                            {"faults", CONFIGS "faults.yaml"},
                                            {NULL, NULL}};

// Faults that do not fit into memory are not added in part.
static void inject_and_heal(const void *subject) {
  PJRT_Client *client = NULL;
  if (!try_client(subject, &client)) return;
  mp_faults_t *faults = client->client->faults;
  static const char text[] =
      "[{link: \"slice 0 (0,1) -x\", loss: 0.5}, {device: 1, slow: 2}, {device: 2, dead: true}]";
  const bool is_there = torture_survived(mp_client_inject(client->client, "test", mp_str(text)));
  assert_int_equal(mp_faults_count(faults), is_there ? 9 : 6);
  mp_status_t status = mp_faults_meet_transfer(faults, mp_network_device(2), mp_network_device(3));
  if (is_there && mp_status_code(status) == MP_UNAVAILABLE) {
    mp_status_release(status);
  } else {
    assert_true(!torture_survived(status) || !is_there);
  }
  (void)torture_survived(mp_client_heal(client->client));
  assert_int_equal(mp_faults_count(faults), 0);
  destroy_client(client);
}

// A limit that could not be read is not no limit.
static void cgroup_limits(const void *subject) {
  mp_cgroup_limits_t limits;
  if (!torture_survived(mp_cgroup_limits(subject, &limits))) return;
  assert_true(limits.cpus == 2.5);
  assert_int_equal(limits.memory, 8ull << 30);
}

// ---- Pods of several processes ----

static bool try_announce(int32_t rank, const char *topology, mp_strbuf_t *out_bytes) {
  const mp_named_value_t values[] = {
      {.name = MP_STR("topology"), .string_value = mp_str(topology)},
      {.name = MP_STR("machine"), .string_value = MP_STR("numa:1 l3:1 core:4 pu:2")}};
  mp_options_t *options = NULL;
  if (!torture_survived(mp_options_create(values, 2, &options))) return false;
  const mp_pod_process_t process = {
      .host = rank / 2, .hostname = rank < 2 ? "alpha" : "beta", .pid = 100 + rank};
  const bool is_well = torture_survived(mp_pod_announce(options, &process, out_bytes));
  mp_options_release(options);
  return is_well;
}

// Four processes announce, and one of them makes the pod of it.
static void merge(const void *subject) {
  enum { RANKS = 4 };
  mp_strbuf_t bytes[RANKS], notes, text;
  mp_str_t announcements[RANKS];
  bool is_well = true;
  mp_strbuf_init(&notes);
  for (int32_t rank = 0; rank < RANKS; ++rank) {
    mp_strbuf_init(&bytes[rank]);
    is_well = is_well && try_announce(rank, subject, &bytes[rank]);
    announcements[rank] = (mp_str_t){mp_strbuf_text(&bytes[rank]), bytes[rank].size};
  }
  mp_pod_t *pod = NULL;
  if (is_well && torture_survived(mp_pod_merge(announcements, RANKS, 1, &pod, &notes))) {
    mp_strbuf_init(&text);
    mp_pod_describe(pod, &text);
    keep_or_equal(&text);
    mp_pod_release(pod);
  }
  for (int32_t rank = 0; rank < RANKS; ++rank) mp_strbuf_deinit(&bytes[rank]);
  mp_strbuf_deinit(&notes);
}

// ---- Topology descriptions ----

static void destroy_topology(PJRT_TopologyDescription *topology) {
  PJRT_TopologyDescription_Destroy_Args args = ARGS(PJRT_TopologyDescription_Destroy, topology);
  args.topology = topology;
  expect_ok(api()->PJRT_TopologyDescription_Destroy(&args));
}

static void store_and_load_topology(PJRT_TopologyDescription *topology) {
  PJRT_TopologyDescription_Serialize_Args store =
      ARGS(PJRT_TopologyDescription_Serialize, serialized_topology_deleter);
  store.topology = topology;
  if (!survived(api()->PJRT_TopologyDescription_Serialize(&store))) return;
  PJRT_TopologyDescription_Deserialize_Args load =
      ARGS(PJRT_TopologyDescription_Deserialize, topology);
  load.serialized_topology = store.serialized_bytes;
  load.serialized_topology_size = store.serialized_bytes_size;
  if (survived(api()->PJRT_TopologyDescription_Deserialize(&load))) {
    assert_int_equal(mp_pod_fingerprint(load.topology->pod), mp_pod_fingerprint(topology->pod));
    assert_string_equal(load.topology->platform_version, topology->platform_version);
    destroy_topology(load.topology);
  }
  store.serialized_topology_deleter(store.serialized_topology);
}

static void ask_for_a_shape(void) {
  static const int64_t dims[] = {2, 3, 4};
  PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args args =
      ARGS(PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace, serialized_shape_deleter);
  args.element_type = PJRT_Buffer_Type_F32;
  args.dims = dims;
  args.num_dims = 3;
  if (!survived(api()->PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace(&args))) return;
  assert_true(args.serialized_shape_size > 3);
  args.serialized_shape_deleter(args.serialized_shape);
}

static void describe_topology(const void *subject) {
  PJRT_TopologyDescription_Create_Args args = ARGS(PJRT_TopologyDescription_Create, topology);
  args.topology_name = subject;
  args.topology_name_size = strlen(subject);
  if (!survived(api()->PJRT_TopologyDescription_Create(&args))) return;
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  for (size_t i = 0; i < args.topology->num_devices; ++i) {
    mp_strbuf_puts(&text, args.topology->descriptions[i].debug_string);
  }
  keep_or_equal(&text);
  store_and_load_topology(args.topology);
  ask_for_a_shape();
  destroy_topology(args.topology);
}

// ---- Executables ----

static PJRT_Client *g_client;
static torture_launch_t g_launch;
static char g_folder[] = "/tmp/minipod-torture-XXXXXX";

static int64_t client_books(void) {
  return books_of(g_client);
}

static void open_client(const void *subject) {
  static const torture_option_t options[] = {
      TORTURE_MACHINE, {"num_devices", "4"}, {"workers", "1"}, {NULL, NULL}};
  (void)subject;
  assert_true(try_client(options, &g_client));
}

static void open_dumping_client(const void *subject) {
  (void)subject;
  strcpy(g_folder + strlen(g_folder) - 6, "XXXXXX");
  assert_non_null(mkdtemp(g_folder));
  const torture_option_t options[] = {
      TORTURE_MACHINE, {"num_devices", "4"}, {"workers", "1"}, {"dump", g_folder}, {NULL, NULL}};
  assert_true(try_client(options, &g_client));
}

static void close_client(void) {
  destroy_client(g_client);
  g_client = NULL;
}

static void remove_dumps(void) {
  char pattern[100];
  snprintf(pattern, sizeof(pattern), "%s/*", g_folder);
  glob_t found;
  if (glob(pattern, 0, NULL, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc; ++i) unlink(found.gl_pathv[i]);
    globfree(&found);
  }
}

static void close_dumping_client(void) {
  close_client();
  remove_dumps();
  rmdir(g_folder);
}

static const char k_sharded[] =
    "module @sharded attributes {mhlo.num_partitions = 4 : i32} {\n"
    "  sdy.mesh @mesh = <[\"x\"=4]>\n"
    "  func.func public @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}, "
    "{}]>}) -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {\n"
    "    %zero = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "    %0 = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [0] : "
    "(tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>\n"
    "    return %0 : tensor<4xf32>\n"
    "  }\n"
    "}\n";
static const torture_code_t k_code = {k_sharded, sizeof(k_sharded) - 1, 1, 4};

static void ask_for_the_text(PJRT_Executable *executable) {
  PJRT_Program program = {.struct_size = PJRT_STRUCT_SIZE(PJRT_Program, format_size)};
  PJRT_Executable_OptimizedProgram_Args args = ARGS(PJRT_Executable_OptimizedProgram, program);
  args.executable = executable;
  args.program = &program;
  if (survived(api()->PJRT_Executable_OptimizedProgram(&args))) assert_true(program.code_size > 9);
}

static void ask_for_the_assignment(PJRT_LoadedExecutable *loaded) {
  PJRT_LoadedExecutable_GetDeviceAssignment_Args args =
      ARGS(PJRT_LoadedExecutable_GetDeviceAssignment, serialized_device_assignment_deleter);
  args.executable = loaded;
  if (!survived(api()->PJRT_LoadedExecutable_GetDeviceAssignment(&args))) return;
  assert_true(args.serialized_bytes_size > 4);
  args.serialized_device_assignment_deleter(args.serialized_device_assignment);
}

static void ask_for_the_options(PJRT_Executable *executable) {
  PJRT_Executable_GetCompileOptions_Args args =
      ARGS(PJRT_Executable_GetCompileOptions, serialized_compile_options_deleter);
  args.executable = executable;
  if (!survived(api()->PJRT_Executable_GetCompileOptions(&args))) return;
  args.serialized_compile_options_deleter(args.serialized_compile_options);
}

static void ask_for_the_costs(PJRT_Executable *executable) {
  PJRT_Executable_GetCostAnalysis_Args args = ARGS(PJRT_Executable_GetCostAnalysis, properties);
  args.executable = executable;
  (void)survived(api()->PJRT_Executable_GetCostAnalysis(&args));
}

static void ask_executables(const void *subject) {
  (void)subject;
  PJRT_LoadedExecutable *loaded = NULL;
  if (!try_compile(g_client, &k_code, &loaded)) return;
  ask_for_the_text(loaded->executable);
  ask_for_the_assignment(loaded);
  ask_for_the_options(loaded->executable);
  ask_for_the_costs(loaded->executable);
  destroy_loaded(loaded);
}

// What was loaded runs like what was compiled.
static void run_loaded(PJRT_LoadedExecutable *loaded) {
  torture_launch_t launch = g_launch;
  launch.loaded = loaded;
  launch.program = loaded->executable->program;
  attempt_launch(&launch);
  memcpy(g_launch.results, launch.results, sizeof(launch.results));
}

static void open_launch(const void *subject) {
  open_client(subject);
  assert_true(try_load(g_client, &k_code, &g_launch));
  attempt_launch(&g_launch);
}

static void close_launch(void) {
  unload(&g_launch);
  close_client();
}

static void store_and_load(const void *subject) {
  (void)subject;
  PJRT_Executable_Serialize_Args store =
      ARGS(PJRT_Executable_Serialize, serialized_executable_deleter);
  store.executable = g_launch.loaded->executable;
  if (!survived(api()->PJRT_Executable_Serialize(&store))) return;
  PJRT_Executable_DeserializeAndLoad_Args load =
      ARGS(PJRT_Executable_DeserializeAndLoad, loaded_executable);
  load.client = g_client;
  load.serialized_executable = store.serialized_bytes;
  load.serialized_executable_size = store.serialized_bytes_size;
  if (survived(api()->PJRT_Executable_DeserializeAndLoad(&load))) {
    run_loaded(load.loaded_executable);
    destroy_loaded(load.loaded_executable);
  }
  store.serialized_executable_deleter(store.serialized_executable);
}

// Compiled for a description, without a client, and loaded by one.
static void compile_ahead(const void *subject) {
  (void)subject;
  PJRT_Program program = {.struct_size = PJRT_STRUCT_SIZE(PJRT_Program, format_size),
                          .code = (char *)k_code.code,
                          .code_size = k_code.size,
                          .format = "mlir",
                          .format_size = 4};
  mp_strbuf_t options;
  PJRT_Compile_Args compile = ARGS(PJRT_Compile, executable);
  const bool has_options = try_write_options(&options, 1, 4);
  compile.topology = g_client->topology;
  compile.program = &program;
  compile.compile_options = mp_strbuf_text(&options);
  compile.compile_options_size = options.size;
  if (has_options && survived(api()->PJRT_Compile(&compile))) {
    PJRT_Client_Load_Args load = ARGS(PJRT_Client_Load, loaded_executable);
    load.client = g_client;
    load.executable = compile.executable;
    if (survived(api()->PJRT_Client_Load(&load))) {
      run_loaded(load.loaded_executable);
      destroy_loaded(load.loaded_executable);
    }
    PJRT_Executable_Destroy_Args destroy = ARGS(PJRT_Executable_Destroy, executable);
    destroy.executable = compile.executable;
    expect_ok(api()->PJRT_Executable_Destroy(&destroy));
  }
  mp_strbuf_deinit(&options);
}

// A dump that cannot be written is the user's loss, not the program's.
static void dump(const void *subject) {
  (void)subject;
  PJRT_LoadedExecutable *loaded = NULL;
  if (try_compile(g_client, &k_code, &loaded)) destroy_loaded(loaded);
  remove_dumps();
}

#define START(title, options) \
  { .name = title, .attempt = start_and_end, .close = close_wanted, .subject = (options) }
#define EXECUTABLE(title, begin, function, end) \
  { .name = title, .open = begin, .attempt = function, .close = end, .books = client_books }

int main(int argc, char **argv) {
  static const torture_row_t rows[] = {
      START("start and end: this machine", k_here),
      START("start and end: a described pod", k_described),
      START("start and end: a pod from a file", k_file),
      START("start and end: a recorded machine", k_recorded),
      START("start and end: a paced client", k_paced),
      START("start and end: a pod with faults", k_faulty),
      {.name = "faults that come and go", .attempt = inject_and_heal, .subject = k_faulty},
      {.name = "refused options", .attempt = refused_options},
      {.name = "limits of a control group",
       .attempt = cgroup_limits,
       .subject = FIXTURES "cgroup/v2"},
      {.name = "memories of every size", .attempt = memories_of_every_size, .subject = k_small},
      {.name = "a pod of four processes",
       .attempt = merge,
       .close = close_wanted,
       .subject = "v5e:4x4"},
      {.name = "a pod of four machines", .attempt = merge, .close = close_wanted, .subject = ""},
      {.name = "a topology by name",
       .attempt = describe_topology,
       .close = close_wanted,
       .subject = "torus:4x4x2 hosts:2"},
      {.name = "a topology by file",
       .attempt = describe_topology,
       .close = close_wanted,
       .subject = CONFIGS "rack.yaml"},
      EXECUTABLE("ask executables", open_client, ask_executables, close_client),
      EXECUTABLE("store and load", open_launch, store_and_load, close_launch),
      EXECUTABLE("compile ahead", open_launch, compile_ahead, close_launch),
      EXECUTABLE("dump", open_dumping_client, dump, close_dumping_client),
  };
  return torture_main(rows, sizeof(rows) / sizeof(rows[0]), argc, argv);
}
