// Helpers for tests that use the plugin through its table, as a client does.
#ifndef MINIPOD_TESTS_UNIT_SUPPORT_PJRT_TEST_H_
#define MINIPOD_TESTS_UNIT_SUPPORT_PJRT_TEST_H_

#include <string.h>

#include "pjrt/c_api/c_api_ext.h"
#include "pjrt/plugin/pjrt_api.h"
#include "sim/base/proto.h"
#include "tests/unit/support/unit.h"

#define ARGS(name, last) \
  { .struct_size = PJRT_STRUCT_SIZE(name##_Args, last) }

static inline const PJRT_Api *api(void) {
  return GetPjrtApi();
}

static inline const PJRT_Extension_Base *find_extension(PJRT_Extension_Type type) {
  const PJRT_Extension_Base *found = api()->extension_start;
  while (found != NULL && found->type != type) found = found->next;
  assert_non_null(found);
  return found;
}

// The error must have this code and text; destroys it.
static inline void expect_error(PJRT_Error *error, PJRT_Error_Code code, const char *text) {
  if (error == NULL) fail_msg("no error, but it should say: %s", text);
  PJRT_Error_GetCode_Args get_code = ARGS(PJRT_Error_GetCode, code);
  PJRT_Error_Message_Args message = ARGS(PJRT_Error_Message, message_size);
  PJRT_Error_Destroy_Args destroy = ARGS(PJRT_Error_Destroy, error);
  get_code.error = message.error = destroy.error = error;
  assert_null(api()->PJRT_Error_GetCode(&get_code));
  api()->PJRT_Error_Message(&message);
  const char *said = message.message == NULL ? "" : message.message;
  if (get_code.code != code) fail_msg("code %d: %s", get_code.code, said);
  assert_int_equal(message.message_size, strlen(said));
  if (strstr(said, text) == NULL) fail_msg("'%s' should be in: %s", text, said);
  // The error's own table says the same.
  const char *own = NULL;
  size_t size = 0;
  assert_int_equal(error->vtable->get_code(error), code);
  error->vtable->message(error, &own, &size);
  assert_ptr_equal(own, message.message);
  api()->PJRT_Error_Destroy(&destroy);
}

static inline void expect_ok(PJRT_Error *error) {
  if (error == NULL) return;
  PJRT_Error_Message_Args message = ARGS(PJRT_Error_Message, message_size);
  message.error = error;
  api()->PJRT_Error_Message(&message);
  fail_msg("%s", message.message == NULL ? "" : message.message);
}

// An option of a client that is a number.
static inline PJRT_NamedValue number_option(const char *name, int64_t value) {
  return (PJRT_NamedValue){.struct_size = PJRT_STRUCT_SIZE(PJRT_NamedValue, value_size),
                           .name = name,
                           .name_size = strlen(name),
                           .type = PJRT_NamedValue_kInt64,
                           .int64_value = value,
                           .value_size = 1};
}

// An option of a client that is a text.
static inline PJRT_NamedValue text_option(const char *name, const char *value) {
  return (PJRT_NamedValue){.struct_size = PJRT_STRUCT_SIZE(PJRT_NamedValue, value_size),
                           .name = name,
                           .name_size = strlen(name),
                           .type = PJRT_NamedValue_kString,
                           .string_value = value,
                           .value_size = strlen(value)};
}

static inline PJRT_Client *make_client_with(const PJRT_NamedValue *options, size_t num_options) {
  PJRT_Client_Create_Args args = ARGS(PJRT_Client_Create, kv_try_get_user_arg);
  args.create_options = options;
  args.num_options = num_options;
  expect_ok(api()->PJRT_Client_Create(&args));
  return args.client;
}

static inline PJRT_Client *make_client(int64_t num_devices) {
  const PJRT_NamedValue option = number_option("num_devices", num_devices);
  return make_client_with(&option, 1);
}

// The described TPUs of a pod, which frameworks see as platform tpu.
static inline PJRT_Client *make_tpu_client(const char *topology) {
  const PJRT_NamedValue options[] = {text_option("topology", topology),
                                     text_option("platform", "tpu")};
  return make_client_with(options, 2);
}

static inline void destroy_client(PJRT_Client *client) {
  PJRT_Client_Destroy_Args args = ARGS(PJRT_Client_Destroy, client);
  args.client = client;
  expect_ok(api()->PJRT_Client_Destroy(&args));
}

static inline PJRT_Program program_of(const char *text, const char *format) {
  return (PJRT_Program){.struct_size = PJRT_STRUCT_SIZE(PJRT_Program, format_size),
                        .code = (char *)(uintptr_t)text,
                        .code_size = strlen(text),
                        .format = format,
                        .format_size = strlen(format)};
}

// CompileOptionsProto with so many replicas and partitions and nothing else.
static inline void write_options(mp_strbuf_t *out, uint64_t replicas, uint64_t partitions) {
  mp_strbuf_t build;
  mp_strbuf_init(&build);
  mp_strbuf_init(out);
  mp_proto_put_varint(&build, 4, replicas);
  mp_proto_put_varint(&build, 5, partitions);
  mp_proto_put_message(out, 3, &build);
  mp_strbuf_deinit(&build);
}

// Compiles a program for so many replicas of so many partitions.
static inline PJRT_Error *try_compile_text(PJRT_Client *client, const char *text,
                                           const char *format, uint64_t replicas,
                                           uint64_t partitions,
                                           PJRT_LoadedExecutable **out_loaded) {
  PJRT_Program program = program_of(text, format);
  mp_strbuf_t options;
  write_options(&options, replicas, partitions);
  PJRT_Client_Compile_Args args = ARGS(PJRT_Client_Compile, executable);
  args.client = client;
  args.program = &program;
  args.compile_options = mp_strbuf_text(&options);
  args.compile_options_size = options.size;
  PJRT_Error *error = api()->PJRT_Client_Compile(&args);
  mp_strbuf_deinit(&options);
  if (error == NULL) *out_loaded = args.executable;
  return error;
}

// The same for StableHLO text that is right.
static inline PJRT_LoadedExecutable *compile_text(PJRT_Client *client, const char *text,
                                                  uint64_t replicas, uint64_t partitions) {
  PJRT_LoadedExecutable *loaded = NULL;
  expect_ok(try_compile_text(client, text, "mlir", replicas, partitions, &loaded));
  return loaded;
}

// The sum of an array over two replicas.
static const char replica_sum_text[] =
    "module @summer attributes {mhlo.num_replicas = 2 : i32} {\n"
    "  func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n"
    "    %0 = \"stablehlo.all_reduce\"(%a) ({\n"
    "    ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"
    "      %1 = stablehlo.add %x, %y : tensor<f32>\n"
    "      stablehlo.return %1 : tensor<f32>\n"
    "    }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}\n"
    "        : (tensor<4xf32>) -> tensor<4xf32>\n"
    "    return %0 : tensor<4xf32>\n"
    "  }\n"
    "}\n";

static inline void destroy_loaded(PJRT_LoadedExecutable *loaded) {
  PJRT_LoadedExecutable_Destroy_Args args = ARGS(PJRT_LoadedExecutable_Destroy, executable);
  args.executable = loaded;
  expect_ok(api()->PJRT_LoadedExecutable_Destroy(&args));
}

static inline PJRT_Device *device_of(PJRT_Client *client, int id) {
  PJRT_Client_LookupDevice_Args args = ARGS(PJRT_Client_LookupDevice, device);
  args.client = client;
  args.id = id;
  expect_ok(api()->PJRT_Client_LookupDevice(&args));
  return args.device;
}

// The device's memories: 0 device, 1 pinned_host, 2 unpinned_host.
static inline PJRT_Memory *memory_of(PJRT_Device *device, size_t kind) {
  PJRT_Device_AddressableMemories_Args args = ARGS(PJRT_Device_AddressableMemories, num_memories);
  args.device = device;
  expect_ok(api()->PJRT_Device_AddressableMemories(&args));
  assert_true(kind < args.num_memories);
  return args.memories[kind];
}

static inline void destroy_event(PJRT_Event *event) {
  PJRT_Event_Destroy_Args args = ARGS(PJRT_Event_Destroy, event);
  args.event = event;
  expect_ok(api()->PJRT_Event_Destroy(&args));
}

// Waits, destroys, and returns the event's error.
static inline PJRT_Error *await_event(PJRT_Event *event) {
  PJRT_Event_Await_Args args = ARGS(PJRT_Event_Await, event);
  args.event = event;
  PJRT_Error *error = api()->PJRT_Event_Await(&args);
  destroy_event(event);
  return error;
}

static inline bool is_deleted(PJRT_Buffer *buffer) {
  PJRT_Buffer_IsDeleted_Args args = ARGS(PJRT_Buffer_IsDeleted, is_deleted);
  args.buffer = buffer;
  expect_ok(api()->PJRT_Buffer_IsDeleted(&args));
  return args.is_deleted;
}

static inline void destroy_buffer(PJRT_Buffer *buffer) {
  PJRT_Buffer_Destroy_Args args = ARGS(PJRT_Buffer_Destroy, buffer);
  args.buffer = buffer;
  expect_ok(api()->PJRT_Buffer_Destroy(&args));
}

// What a test puts onto a device.
typedef struct {
  PJRT_Buffer_Type type;
  const void *data;
  const int64_t *dims;
  size_t rank;
  const int64_t *strides;  // NULL: none
  PJRT_HostBufferSemantics semantics;
} host_array_t;

static inline PJRT_Error *try_put(PJRT_Client *client, PJRT_Memory *memory, host_array_t array,
                                  PJRT_Buffer **out_buffer) {
  PJRT_Client_BufferFromHostBuffer_Args args = ARGS(PJRT_Client_BufferFromHostBuffer, buffer);
  args.client = client;
  args.data = array.data;
  args.type = array.type;
  args.dims = array.dims;
  args.num_dims = array.rank;
  args.byte_strides = array.strides;
  args.num_byte_strides = array.strides == NULL ? 0 : array.rank;
  args.host_buffer_semantics = array.semantics;
  args.memory = memory;
  PJRT_Error *error = api()->PJRT_Client_BufferFromHostBuffer(&args);
  if (error != NULL) return error;
  *out_buffer = args.buffer;
  return await_event(args.done_with_host_buffer);
}

static inline PJRT_Buffer *put(PJRT_Client *client, PJRT_Memory *memory, host_array_t array) {
  PJRT_Buffer *buffer = NULL;
  expect_ok(try_put(client, memory, array, &buffer));
  return buffer;
}

static inline PJRT_Buffer *put_f32(PJRT_Client *client, PJRT_Device *device, const float *data,
                                   int64_t count) {
  return put(client, memory_of(device, 0),
             (host_array_t){.type = PJRT_Buffer_Type_F32, .data = data, .dims = &count, .rank = 1});
}

// An array of `count` f32 numbers whose contents are an error.
static inline PJRT_Error *try_put_error(PJRT_Client *client, PJRT_Memory *memory, int64_t count,
                                        PJRT_Error_Code code, const char *message,
                                        PJRT_Buffer **out_buffer) {
  PJRT_Client_CreateErrorBuffer_Args args = ARGS(PJRT_Client_CreateErrorBuffer, num_payload);
  args.client = client;
  args.error_code = code;
  args.error_message = message;
  args.error_message_size = strlen(message);
  args.shape_dims = &count;
  args.shape_num_dims = 1;
  args.shape_element_type = PJRT_Buffer_Type_F32;
  args.memory = memory;
  PJRT_Error *error = api()->PJRT_Client_CreateErrorBuffer(&args);
  if (error == NULL) *out_buffer = args.buffer;
  return error;
}

static inline PJRT_Buffer *put_error(PJRT_Client *client, PJRT_Device *device, int64_t count,
                                     PJRT_Error_Code code, const char *message) {
  PJRT_Buffer *buffer = NULL;
  expect_ok(try_put_error(client, memory_of(device, 0), count, code, message, &buffer));
  return buffer;
}

static inline PJRT_Error *try_get(PJRT_Buffer *buffer, void *dst, size_t size) {
  PJRT_Buffer_ToHostBuffer_Args args = ARGS(PJRT_Buffer_ToHostBuffer, event);
  args.src = buffer;
  args.dst = dst;
  args.dst_size = size;
  PJRT_Error *error = api()->PJRT_Buffer_ToHostBuffer(&args);
  return error != NULL ? error : await_event(args.event);
}

static inline void get(PJRT_Buffer *buffer, void *dst, size_t size) {
  expect_ok(try_get(buffer, dst, size));
}

#endif  // MINIPOD_TESTS_UNIT_SUPPORT_PJRT_TEST_H_
