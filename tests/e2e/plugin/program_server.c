// Compiles and runs programs in forms that JAX does not send, for the tests in Python: a client of
// the PJRT C API with eight devices.
//
// It reads requests from the standard input until that ends, and answers on the standard output.
// Numbers are uint64_t; a text is its size and its bytes.
//
//   request: text program, text form, text compile options, number of devices, number of
//            arguments, and for each device each argument: PJRT_Buffer_Type, rank, dimensions, text
//            bytes
//   answer:  0, text error
//            or 1, number of results, and for each device each result: text bytes
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pjrt/c_api/c_api_ext.h"
#include "pjrt/plugin/pjrt_api.h"

#define ARGS(name, last) \
  { .struct_size = PJRT_STRUCT_SIZE(name##_Args, last) }

enum { MAX_DEVICES = 8, MAX_VALUES = 256, MAX_RANK = 32 };

static const PJRT_Api *g_api;
static PJRT_Client *g_client;
static PJRT_Device *const *g_devices;

// ---- the pipe ----

typedef struct {
  char *data;
  uint64_t size;
} bytes_t;

static void read_exactly(void *data, size_t size) {
  if (fread(data, 1, size, stdin) != size) exit(feof(stdin) ? 0 : 1);
}

static uint64_t read_number(void) {
  uint64_t value = 0;
  read_exactly(&value, sizeof(value));
  return value;
}

static bytes_t read_bytes(void) {
  bytes_t bytes = {.size = read_number()};
  bytes.data = malloc(bytes.size + 1);
  if (bytes.data == NULL) exit(1);
  read_exactly(bytes.data, bytes.size);
  bytes.data[bytes.size] = '\0';
  return bytes;
}

static void write_number(uint64_t value) {
  fwrite(&value, sizeof(value), 1, stdout);
}

static void write_bytes(const void *data, uint64_t size) {
  write_number(size);
  fwrite(data, 1, size, stdout);
}

// ---- PJRT ----

// The first error of a request, or NULL.
static PJRT_Error *g_error;

// Whether all is well so far.
static int check(PJRT_Error *error) {
  if (g_error == NULL) g_error = error;
  return g_error == NULL;
}

static void answer_error(void) {
  PJRT_Error_Message_Args message = ARGS(PJRT_Error_Message, message_size);
  message.error = g_error;
  g_api->PJRT_Error_Message(&message);
  write_number(0);
  write_bytes(message.message, message.message_size);
  PJRT_Error_Destroy_Args destroy = ARGS(PJRT_Error_Destroy, error);
  destroy.error = g_error;
  g_api->PJRT_Error_Destroy(&destroy);
  g_error = NULL;
}

static void await(PJRT_Event *event) {
  PJRT_Event_Await_Args wait = ARGS(PJRT_Event_Await, event);
  wait.event = event;
  check(g_api->PJRT_Event_Await(&wait));
  PJRT_Event_Destroy_Args destroy = ARGS(PJRT_Event_Destroy, event);
  destroy.event = event;
  check(g_api->PJRT_Event_Destroy(&destroy));
}

static void make_client(void) {
  PJRT_NamedValue option = {.struct_size = PJRT_STRUCT_SIZE(PJRT_NamedValue, value_size),
                            .name = "num_devices",
                            .name_size = strlen("num_devices"),
                            .type = PJRT_NamedValue_kInt64,
                            .int64_value = MAX_DEVICES,
                            .value_size = 1};
  PJRT_Client_Create_Args create = ARGS(PJRT_Client_Create, kv_try_get_user_arg);
  create.create_options = &option;
  create.num_options = 1;
  if (!check(g_api->PJRT_Client_Create(&create))) exit(1);
  g_client = create.client;
  PJRT_Client_Devices_Args devices = ARGS(PJRT_Client_Devices, num_devices);
  devices.client = g_client;
  if (!check(g_api->PJRT_Client_Devices(&devices))) exit(1);
  g_devices = devices.devices;
}

static PJRT_LoadedExecutable *compile(bytes_t code, bytes_t form, bytes_t options) {
  PJRT_Program program = {.struct_size = PJRT_STRUCT_SIZE(PJRT_Program, format_size),
                          .code = code.data,
                          .code_size = code.size,
                          .format = form.data,
                          .format_size = form.size};
  PJRT_Client_Compile_Args args = ARGS(PJRT_Client_Compile, executable);
  args.client = g_client;
  args.program = &program;
  args.compile_options = options.data;
  args.compile_options_size = options.size;
  return check(g_api->PJRT_Client_Compile(&args)) ? args.executable : NULL;
}

static uint64_t count_results(PJRT_LoadedExecutable *loaded) {
  PJRT_LoadedExecutable_GetExecutable_Args get =
      ARGS(PJRT_LoadedExecutable_GetExecutable, executable);
  get.loaded_executable = loaded;
  if (!check(g_api->PJRT_LoadedExecutable_GetExecutable(&get))) return 0;
  PJRT_Executable_NumOutputs_Args count = ARGS(PJRT_Executable_NumOutputs, num_outputs);
  count.executable = get.executable;
  check(g_api->PJRT_Executable_NumOutputs(&count));
  PJRT_Executable_Destroy_Args destroy = ARGS(PJRT_Executable_Destroy, executable);
  destroy.executable = get.executable;
  check(g_api->PJRT_Executable_Destroy(&destroy));
  return count.num_outputs;
}

// The device of a program's argument list; any, where the program is refused.
static PJRT_Device *device_of(PJRT_LoadedExecutable *loaded, uint64_t index) {
  if (loaded == NULL) return g_devices[index];
  PJRT_LoadedExecutable_AddressableDevices_Args args =
      ARGS(PJRT_LoadedExecutable_AddressableDevices, num_addressable_devices);
  args.executable = loaded;
  check(g_api->PJRT_LoadedExecutable_AddressableDevices(&args));
  return index < args.num_addressable_devices ? args.addressable_devices[index] : g_devices[index];
}

// Reads an argument and puts it onto the device; what follows an error is read all the same.
static PJRT_Buffer *read_argument(PJRT_Device *device) {
  int64_t dims[MAX_RANK];
  PJRT_Client_BufferFromHostBuffer_Args args = ARGS(PJRT_Client_BufferFromHostBuffer, buffer);
  args.client = g_client;
  args.type = (PJRT_Buffer_Type)read_number();
  args.num_dims = read_number();
  for (size_t i = 0; i < args.num_dims && i < MAX_RANK; ++i) dims[i] = (int64_t)read_number();
  const bytes_t bytes = read_bytes();
  args.dims = dims;
  args.data = bytes.data;
  args.device = device;
  args.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableOnlyDuringCall;
  if (g_error == NULL && check(g_api->PJRT_Client_BufferFromHostBuffer(&args))) {
    await(args.done_with_host_buffer);
  }
  free(bytes.data);
  return args.buffer;
}

static void write_result(PJRT_Buffer *buffer) {
  PJRT_Buffer_ToHostBuffer_Args args = ARGS(PJRT_Buffer_ToHostBuffer, event);
  args.src = buffer;
  if (!check(g_api->PJRT_Buffer_ToHostBuffer(&args))) exit(1);
  char *data = malloc(args.dst_size + 1);
  if (data == NULL) exit(1);
  args.dst = data;
  if (!check(g_api->PJRT_Buffer_ToHostBuffer(&args))) exit(1);
  await(args.event);
  write_bytes(data, args.dst_size);
  free(data);
}

static void destroy_buffer(PJRT_Buffer *buffer) {
  PJRT_Buffer_Destroy_Args args = ARGS(PJRT_Buffer_Destroy, buffer);
  args.buffer = buffer;
  if (buffer != NULL) check(g_api->PJRT_Buffer_Destroy(&args));
}

// ---- requests ----

static void run(PJRT_LoadedExecutable *loaded, uint64_t num_devices, uint64_t num_args,
                PJRT_Buffer *(*arguments)[MAX_VALUES]) {
  PJRT_Buffer *results[MAX_DEVICES][MAX_VALUES] = {{NULL}};
  PJRT_Buffer *const *argument_lists[MAX_DEVICES];
  PJRT_Buffer **result_lists[MAX_DEVICES];
  PJRT_Event *done[MAX_DEVICES] = {NULL};
  PJRT_ExecuteOptions options = {.struct_size = sizeof(options)};
  const uint64_t num_results = count_results(loaded);
  if (num_results > MAX_VALUES) exit(1);
  for (uint64_t d = 0; d < num_devices; ++d) {
    argument_lists[d] = arguments[d];
    result_lists[d] = results[d];
  }
  PJRT_LoadedExecutable_Execute_Args args = ARGS(PJRT_LoadedExecutable_Execute, execute_device);
  args.executable = loaded;
  args.options = &options;
  args.argument_lists = argument_lists;
  args.num_devices = num_devices;
  args.num_args = num_args;
  args.output_lists = result_lists;
  args.device_complete_events = done;
  if (!check(g_api->PJRT_LoadedExecutable_Execute(&args))) return;
  for (uint64_t d = 0; d < num_devices; ++d) await(done[d]);
  if (g_error == NULL) {
    write_number(1);
    write_number(num_results);
  }
  for (uint64_t d = 0; d < num_devices; ++d) {
    for (uint64_t r = 0; r < num_results; ++r) {
      if (g_error == NULL) write_result(results[d][r]);
      destroy_buffer(results[d][r]);
    }
  }
}

static void serve(void) {
  static PJRT_Buffer *arguments[MAX_DEVICES][MAX_VALUES];
  const bytes_t code = read_bytes(), form = read_bytes(), options = read_bytes();
  const uint64_t num_devices = read_number(), num_args = read_number();
  if (num_devices > MAX_DEVICES || num_args > MAX_VALUES) exit(1);
  PJRT_LoadedExecutable *loaded = compile(code, form, options);
  for (uint64_t d = 0; d < num_devices; ++d) {
    PJRT_Device *device = device_of(loaded, d);
    for (uint64_t i = 0; i < num_args; ++i) arguments[d][i] = read_argument(device);
  }
  if (g_error == NULL) run(loaded, num_devices, num_args, arguments);
  for (uint64_t d = 0; d < num_devices; ++d) {
    for (uint64_t i = 0; i < num_args; ++i) destroy_buffer(arguments[d][i]);
  }
  PJRT_LoadedExecutable_Destroy_Args destroy = ARGS(PJRT_LoadedExecutable_Destroy, executable);
  destroy.executable = loaded;
  if (loaded != NULL) check(g_api->PJRT_LoadedExecutable_Destroy(&destroy));
  if (g_error != NULL) answer_error();
  fflush(stdout);
  free(code.data);
  free(form.data);
  free(options.data);
}

int main(void) {
  g_api = GetPjrtApi();
  make_client();
  for (;;) serve();
}
