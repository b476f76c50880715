// A client of the PJRT C API without any framework: y = A x on four devices, each of which has two
// columns of A and the two elements of x that belong to them.
//
//   sharded_matvec [LIBRARY]
//
// It opens the plugin, makes a client with four devices, compiles a program whose arguments are
// sharded, puts the shards onto the devices, runs it, and compares each device's result with what
// the host computes. Any PJRT plugin with four devices can be LIBRARY; the option `num_devices` is
// minipod's own.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pjrt/c_api/c_api.h"

#ifndef MINIPOD_PLUGIN  // the build may say where it is
#define MINIPOD_PLUGIN "pjrt_c_api_minipod_plugin.so"
#endif

enum { DEVICES = 4, ROWS = 3, COLUMNS = 8, WIDTH = COLUMNS / DEVICES };

// The product of a device's shards is a part of each sum, so the partitioner adds an all-reduce:
// `minipod partition` shows it.
static const char g_program[] =
    "module @matvec {\n"
    "  sdy.mesh @pod = <[\"x\"=4]>\n"
    "  func.func public @main(\n"
    "      %a: tensor<3x8xf32> {sdy.sharding = #sdy.sharding<@pod, [{}, {\"x\"}]>},\n"
    "      %x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@pod, [{\"x\"}]>})\n"
    "      -> (tensor<3xf32> {sdy.sharding = #sdy.sharding<@pod, [{}]>}) {\n"
    "    %y = stablehlo.dot_general %a, %x, contracting_dims = [1] x [0]\n"
    "        : (tensor<3x8xf32>, tensor<8xf32>) -> tensor<3xf32>\n"
    "    return %y : tensor<3xf32>\n"
    "  }\n"
    "}\n";

// A CompileOptionsProto as its bytes: each field is number * 8 + kind (0: a number, 2: bytes with
// their size before them), numbers are in groups of seven bits, the lowest first.
static const char g_options[] =
    "\x1a\x14"  // 3: executable_build_options, a message of 20 bytes
    "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"  // 1: device_ordinal = -1, no one device
    "\x20\x01"                                      // 4: num_replicas = 1
    "\x28\x04"                                      // 5: num_partitions = DEVICES
    "\x30\x01"                                      // 6: use_spmd_partitioning
    "\x98\x01\x01";  // 19: use_shardy_partitioner; the number takes two groups

static const PJRT_Api *g_api;
static PJRT_Client *g_client;

// Arguments begin with their size, by which the plugin knows what version its caller speaks; `last`
// is the last field of them. All others are 0.
#define ARGS(function, last) \
  { .struct_size = PJRT_STRUCT_SIZE(function##_Args, last) }

// Ends the program where a call has failed. The error belongs to us.
static void check(PJRT_Error *error) {
  if (error == NULL) return;
  PJRT_Error_Message_Args message = ARGS(PJRT_Error_Message, message_size);
  message.error = error;
  g_api->PJRT_Error_Message(&message);
  fprintf(stderr, "%.*s\n", (int)message.message_size, message.message);
  PJRT_Error_Destroy_Args destroy = ARGS(PJRT_Error_Destroy, error);
  destroy.error = error;
  g_api->PJRT_Error_Destroy(&destroy);
  exit(1);
}

// Waits for what is under way; its error is the event's.
static void await(PJRT_Event *event) {
  PJRT_Event_Await_Args wait = ARGS(PJRT_Event_Await, event);
  wait.event = event;
  check(g_api->PJRT_Event_Await(&wait));
  PJRT_Event_Destroy_Args destroy = ARGS(PJRT_Event_Destroy, event);
  destroy.event = event;
  check(g_api->PJRT_Event_Destroy(&destroy));
}

static void open_plugin(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void *symbol = library == NULL ? NULL : dlsym(library, "GetPjrtApi");
  if (symbol == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  const PJRT_Api *(*get_api)(void);
  memcpy(&get_api, &symbol, sizeof(get_api));  // ISO C has no cast from data to functions
  g_api = get_api();
  if (g_api->pjrt_api_version.major_version != PJRT_API_MAJOR) {
    fprintf(stderr, "%s speaks another version of the interface\n", path);
    exit(1);
  }
  PJRT_Plugin_Initialize_Args args = ARGS(PJRT_Plugin_Initialize, extension_start);
  check(g_api->PJRT_Plugin_Initialize(&args));
}

static void make_client(void) {
  PJRT_NamedValue option = {.struct_size = PJRT_STRUCT_SIZE(PJRT_NamedValue, value_size),
                            .name = "num_devices",
                            .name_size = strlen("num_devices"),
                            .type = PJRT_NamedValue_kInt64,
                            .int64_value = DEVICES,
                            .value_size = 1};
  PJRT_Client_Create_Args args = ARGS(PJRT_Client_Create, kv_try_get_user_arg);
  args.create_options = &option;
  args.num_options = 1;
  check(g_api->PJRT_Client_Create(&args));
  g_client = args.client;
}

static PJRT_LoadedExecutable *compile(void) {
  PJRT_Program program = {.struct_size = PJRT_STRUCT_SIZE(PJRT_Program, format_size),
                          .code = (char *)g_program,
                          .code_size = strlen(g_program),
                          .format = "mlir",
                          .format_size = strlen("mlir")};
  PJRT_Client_Compile_Args args = ARGS(PJRT_Client_Compile, executable);
  args.client = g_client;
  args.program = &program;
  args.compile_options = g_options;
  args.compile_options_size = sizeof(g_options) - 1;
  check(g_api->PJRT_Client_Compile(&args));
  return args.executable;
}

// A device's part of an array of the host: `data` is its first element, and the last dimension is
// cut, so that rows of A are COLUMNS apart.
static PJRT_Buffer *put(PJRT_Device *device, const float *data, size_t num_dims) {
  const int64_t dims[] = {ROWS, WIDTH}, strides[] = {COLUMNS * sizeof(float), sizeof(float)};
  PJRT_Client_BufferFromHostBuffer_Args args = ARGS(PJRT_Client_BufferFromHostBuffer, buffer);
  args.client = g_client;
  args.data = data;
  args.type = PJRT_Buffer_Type_F32;
  args.dims = dims + 2 - num_dims;
  args.num_dims = num_dims;
  args.byte_strides = strides + 2 - num_dims;
  args.num_byte_strides = num_dims;
  args.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes;
  args.device = device;
  check(g_api->PJRT_Client_BufferFromHostBuffer(&args));
  await(args.done_with_host_buffer);
  return args.buffer;
}

static void get(PJRT_Buffer *buffer, float *out_data, size_t size) {
  PJRT_Buffer_ToHostBuffer_Args args = ARGS(PJRT_Buffer_ToHostBuffer, event);
  args.src = buffer;
  args.dst = out_data;
  args.dst_size = size;
  check(g_api->PJRT_Buffer_ToHostBuffer(&args));
  await(args.event);
}

static void destroy_buffer(PJRT_Buffer *buffer) {
  PJRT_Buffer_Destroy_Args args = ARGS(PJRT_Buffer_Destroy, buffer);
  args.buffer = buffer;
  check(g_api->PJRT_Buffer_Destroy(&args));
}

// Runs the program on all its devices; each has its list of arguments and of results.
static void execute(PJRT_LoadedExecutable *executable, PJRT_Buffer *arguments[DEVICES][2],
                    PJRT_Buffer *out_results[DEVICES]) {
  PJRT_Buffer *const *argument_lists[DEVICES];
  PJRT_Buffer **result_lists[DEVICES];
  PJRT_Event *done[DEVICES];
  for (int d = 0; d < DEVICES; ++d) {
    argument_lists[d] = arguments[d];
    result_lists[d] = &out_results[d];
  }
  PJRT_ExecuteOptions options = {
      .struct_size = PJRT_STRUCT_SIZE(PJRT_ExecuteOptions, num_hlo_output_callbacks)};
  PJRT_LoadedExecutable_Execute_Args args = ARGS(PJRT_LoadedExecutable_Execute, execute_device);
  args.executable = executable;
  args.options = &options;
  args.argument_lists = argument_lists;
  args.num_devices = DEVICES;
  args.num_args = 2;
  args.output_lists = result_lists;
  args.device_complete_events = done;
  check(g_api->PJRT_LoadedExecutable_Execute(&args));
  for (int d = 0; d < DEVICES; ++d) await(done[d]);
}

// Whether the result of each device, which has the whole sum, is the host's.
static bool run(PJRT_LoadedExecutable *executable, PJRT_Device *const *devices) {
  float a[ROWS][COLUMNS], x[COLUMNS], y[ROWS] = {0};
  for (int c = 0; c < COLUMNS; ++c) {
    x[c] = (float)(c + 1);
    for (int r = 0; r < ROWS; ++r) y[r] += (a[r][c] = (float)(r * COLUMNS + c)) * x[c];
  }
  PJRT_Buffer *arguments[DEVICES][2], *results[DEVICES];
  for (int d = 0; d < DEVICES; ++d) {
    arguments[d][0] = put(devices[d], &a[0][d * WIDTH], 2);
    arguments[d][1] = put(devices[d], &x[d * WIDTH], 1);
  }
  execute(executable, arguments, results);
  bool is_right = true;
  for (int d = 0; d < DEVICES; ++d) {
    float found[ROWS];
    get(results[d], found, sizeof(found));
    printf("device %d: y = [%g %g %g]\n", d, found[0], found[1], found[2]);
    is_right &= memcmp(found, y, sizeof(y)) == 0;  // small whole numbers: no rounding
    destroy_buffer(results[d]);
    for (int i = 0; i < 2; ++i) destroy_buffer(arguments[d][i]);
  }
  return is_right;
}

int main(int argc, char **argv) {
  open_plugin(argc > 1 ? argv[1] : MINIPOD_PLUGIN);
  make_client();
  PJRT_LoadedExecutable *executable = compile();
  // In the order of partitions, which need not be that of the client's devices.
  PJRT_LoadedExecutable_AddressableDevices_Args devices =
      ARGS(PJRT_LoadedExecutable_AddressableDevices, num_addressable_devices);
  devices.executable = executable;
  check(g_api->PJRT_LoadedExecutable_AddressableDevices(&devices));
  const bool is_right =
      devices.num_addressable_devices == DEVICES && run(executable, devices.addressable_devices);
  PJRT_LoadedExecutable_Destroy_Args destroy = ARGS(PJRT_LoadedExecutable_Destroy, executable);
  destroy.executable = executable;
  check(g_api->PJRT_LoadedExecutable_Destroy(&destroy));
  PJRT_Client_Destroy_Args end = ARGS(PJRT_Client_Destroy, client);
  end.client = g_client;
  check(g_api->PJRT_Client_Destroy(&end));
  puts(is_right ? "right" : "wrong");
  return is_right ? 0 : 1;
}
