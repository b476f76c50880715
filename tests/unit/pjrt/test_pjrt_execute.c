// Programs through the table: compiling, asking, storing, launching, donating, failing.

#include <stdio.h>
#include <stdlib.h>

#include "sim/base/alloc.h"
#include "sim/base/proto.h"
#include "tests/unit/support/foreign_test.h"
#include "tests/unit/support/pjrt_test.h"

static PJRT_Client *client;

static int setup(void **state) {
  (void)state;
  client = make_client(4);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  destroy_client(client);
  return 0;
}

static const char add_text[] =
    "module @adder {\n"
    "  func.func public @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {\n"
    "    %0 = stablehlo.add %a, %b : tensor<4xf32>\n"
    "    return %0 : tensor<4xf32>\n"
    "  }\n"
    "}\n";

static const char donate_text[] =
    "module @donor {\n"
    "  func.func public @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32},\n"
    "                         %b: tensor<4xf32>) -> tensor<4xf32> {\n"
    "    %0 = stablehlo.add %a, %b : tensor<4xf32>\n"
    "    return %0 : tensor<4xf32>\n"
    "  }\n"
    "}\n";

static PJRT_LoadedExecutable *compile(const char *text, uint64_t replicas) {
  return compile_text(client, text, replicas, 1);
}

static PJRT_Executable *executable_of(PJRT_LoadedExecutable *loaded) {
  PJRT_LoadedExecutable_GetExecutable_Args args =
      ARGS(PJRT_LoadedExecutable_GetExecutable, executable);
  args.loaded_executable = loaded;
  expect_ok(api()->PJRT_LoadedExecutable_GetExecutable(&args));
  return args.executable;
}

static void destroy_executable(PJRT_Executable *executable) {
  PJRT_Executable_Destroy_Args args = ARGS(PJRT_Executable_Destroy, executable);
  args.executable = executable;
  expect_ok(api()->PJRT_Executable_Destroy(&args));
}

// Custom options of the next runs, which clients pass since minor 116.
static const PJRT_NamedValue *g_custom_options;
static size_t g_num_custom_options;

// One device, one result, options as minor 68 sends them (what comes after is garbage).
static PJRT_Error *try_run(PJRT_LoadedExecutable *loaded, PJRT_Buffer *const *arguments,
                           size_t num_args, const int64_t *kept, size_t num_kept,
                           PJRT_Buffer **out_result) {
  PJRT_ExecuteOptions options;
  memset(&options, 0x5a, sizeof(options));
  options.struct_size = 80;
  options.extension_start = NULL;
  options.send_callbacks = NULL;
  options.recv_callbacks = NULL;
  options.num_send_ops = options.num_recv_ops = 0;
  options.launch_id = 0;
  options.non_donatable_input_indices = kept;
  options.num_non_donatable_input_indices = num_kept;
  options.context = NULL;
  if (g_custom_options != NULL) {
    memset(&options, 0, sizeof(options));
    options.struct_size = PJRT_STRUCT_SIZE(PJRT_ExecuteOptions, num_custom_options);
    options.custom_options = g_custom_options;
    options.num_custom_options = g_num_custom_options;
  }
  PJRT_Buffer **outputs[1] = {out_result};
  PJRT_LoadedExecutable_Execute_Args args = ARGS(PJRT_LoadedExecutable_Execute, execute_device);
  args.executable = loaded;
  args.options = &options;
  args.argument_lists = &arguments;
  args.num_devices = 1;
  args.num_args = num_args;
  args.output_lists = outputs;
  return api()->PJRT_LoadedExecutable_Execute(&args);
}

static const float ones[4] = {1, 1, 1, 1}, counting[4] = {1, 2, 3, 4};

// The sum of `ones` and `counting`.
static void expect_sum(PJRT_LoadedExecutable *loaded, PJRT_Buffer *const inputs[2]) {
  static const float wanted[4] = {2, 3, 4, 5};
  PJRT_Buffer *output = NULL;
  expect_ok(try_run(loaded, inputs, 2, NULL, 0, &output));
  float got[4] = {0};
  get(output, got, sizeof(got));
  assert_memory_equal(got, wanted, sizeof(got));
  destroy_buffer(output);
}

static void expect_add(PJRT_LoadedExecutable *loaded) {
  PJRT_Buffer *inputs[2] = {put_f32(client, device_of(client, 0), ones, 4),
                            put_f32(client, device_of(client, 0), counting, 4)};
  expect_sum(loaded, inputs);
  destroy_buffer(inputs[0]);
  destroy_buffer(inputs[1]);
}

static void a_program_runs_and_describes_itself(void **state) {
  (void)state;
  PJRT_LoadedExecutable *loaded = compile(add_text, 1);
  expect_add(loaded);
  PJRT_Executable *executable = executable_of(loaded);
  destroy_loaded(loaded);  // the executable stays
  PJRT_Executable_Name_Args name = ARGS(PJRT_Executable_Name, executable_name_size);
  PJRT_Executable_NumOutputs_Args outputs = ARGS(PJRT_Executable_NumOutputs, num_outputs);
  PJRT_Executable_OutputElementTypes_Args types =
      ARGS(PJRT_Executable_OutputElementTypes, num_output_types);
  PJRT_Executable_OutputDimensions_Args dims = ARGS(PJRT_Executable_OutputDimensions, dim_sizes);
  PJRT_Executable_OutputMemoryKinds_Args kinds =
      ARGS(PJRT_Executable_OutputMemoryKinds, memory_kind_sizes);
  name.executable = outputs.executable = types.executable = executable;
  dims.executable = kinds.executable = executable;
  expect_ok(api()->PJRT_Executable_Name(&name));
  expect_ok(api()->PJRT_Executable_NumOutputs(&outputs));
  expect_ok(api()->PJRT_Executable_OutputElementTypes(&types));
  expect_ok(api()->PJRT_Executable_OutputDimensions(&dims));
  expect_ok(api()->PJRT_Executable_OutputMemoryKinds(&kinds));
  assert_string_equal(name.executable_name, "adder");
  assert_int_equal(outputs.num_outputs, 1);
  assert_int_equal(types.output_types[0], PJRT_Buffer_Type_F32);
  assert_int_equal(dims.dim_sizes[0], 1);
  assert_int_equal(dims.dims[0], 4);
  assert_memory_equal(kinds.memory_kinds[0], "device", kinds.memory_kind_sizes[0]);
  destroy_executable(executable);
}

static void the_optimized_program_is_text(void **state) {
  (void)state;
  PJRT_LoadedExecutable *loaded = compile(add_text, 1);
  PJRT_Executable *executable = executable_of(loaded);
  PJRT_Program program = {.struct_size = PJRT_STRUCT_SIZE(PJRT_Program, format_size)};
  PJRT_Executable_OptimizedProgram_Args args = ARGS(PJRT_Executable_OptimizedProgram, program);
  args.executable = executable;
  args.program = &program;
  expect_ok(api()->PJRT_Executable_OptimizedProgram(&args));
  assert_memory_equal(program.format, "mlir", program.format_size);
  char *text = calloc(1, program.code_size + 1);
  program.code = text;
  expect_ok(api()->PJRT_Executable_OptimizedProgram(&args));
  assert_non_null(strstr(text, "stablehlo.add"));
  // It compiles again.
  PJRT_LoadedExecutable *again = compile(text, 1);
  expect_add(again);
  destroy_loaded(again);
  free(text);
  destroy_loaded(loaded);
  destroy_executable(executable);
}

static void the_device_assignment_is_a_proto(void **state) {
  (void)state;
  static const unsigned char wanted[] = {8, 1, 16, 1, 26, 3, 10, 1, 0};
  PJRT_LoadedExecutable *loaded = compile(add_text, 1);
  PJRT_LoadedExecutable_GetDeviceAssignment_Args args =
      ARGS(PJRT_LoadedExecutable_GetDeviceAssignment, serialized_device_assignment_deleter);
  args.executable = loaded;
  expect_ok(api()->PJRT_LoadedExecutable_GetDeviceAssignment(&args));
  assert_int_equal(args.serialized_bytes_size, sizeof(wanted));
  assert_memory_equal(args.serialized_bytes, wanted, sizeof(wanted));
  args.serialized_device_assignment_deleter(args.serialized_device_assignment);
  destroy_loaded(loaded);
}

static void a_serialized_executable_loads_and_runs(void **state) {
  (void)state;
  PJRT_LoadedExecutable *loaded = compile(add_text, 1);
  PJRT_Executable *executable = executable_of(loaded);
  PJRT_Executable_Serialize_Args serialize =
      ARGS(PJRT_Executable_Serialize, serialized_executable_deleter);
  serialize.executable = executable;
  expect_ok(api()->PJRT_Executable_Serialize(&serialize));
  destroy_loaded(loaded);
  destroy_executable(executable);
  // As minor 68 calls it.
  PJRT_Executable_DeserializeAndLoad_Args load =
      ARGS(PJRT_Executable_DeserializeAndLoad, loaded_executable);
  load.client = client;
  load.serialized_executable = serialize.serialized_bytes;
  load.serialized_executable_size = serialize.serialized_bytes_size;
  load.overridden_serialized_compile_options = (const char *)1;
  load.overridden_serialized_compile_options_size = 1;
  expect_ok(api()->PJRT_Executable_DeserializeAndLoad(&load));
  expect_add(load.loaded_executable);
  destroy_loaded(load.loaded_executable);
  // Damage is noticed.
  char *damaged = malloc(serialize.serialized_bytes_size);
  memcpy(damaged, serialize.serialized_bytes, serialize.serialized_bytes_size);
  damaged[serialize.serialized_bytes_size / 2] ^= 1;
  load.serialized_executable = damaged;
  expect_error(api()->PJRT_Executable_DeserializeAndLoad(&load), PJRT_Error_Code_DATA_LOSS,
               "damaged");
  load.serialized_executable_size = 4;
  expect_error(api()->PJRT_Executable_DeserializeAndLoad(&load), PJRT_Error_Code_INVALID_ARGUMENT,
               "not the bytes of a minipod executable");
  free(damaged);
  serialize.serialized_executable_deleter(serialize.serialized_executable);
}

static void compiling_ahead_needs_no_client(void **state) {
  (void)state;
  PJRT_TopologyDescription_Create_Args topology = ARGS(PJRT_TopologyDescription_Create, topology);
  topology.topology_name = "v5e:2x2";
  topology.topology_name_size = strlen(topology.topology_name);
  expect_ok(api()->PJRT_TopologyDescription_Create(&topology));
  PJRT_Program program = program_of(add_text, "mlir");
  PJRT_Compile_Args compile_args = ARGS(PJRT_Compile, executable);
  compile_args.topology = topology.topology;
  compile_args.program = &program;
  expect_ok(api()->PJRT_Compile(&compile_args));
  PJRT_Client_Load_Args load = ARGS(PJRT_Client_Load, loaded_executable);
  load.client = client;
  load.executable = compile_args.executable;
  expect_ok(api()->PJRT_Client_Load(&load));
  destroy_executable(compile_args.executable);
  expect_add(load.loaded_executable);
  destroy_loaded(load.loaded_executable);
  PJRT_TopologyDescription_Destroy_Args destroy = ARGS(PJRT_TopologyDescription_Destroy, topology);
  destroy.topology = topology.topology;
  expect_ok(api()->PJRT_TopologyDescription_Destroy(&destroy));
}

static void bad_programs_are_refused(void **state) {
  (void)state;
  PJRT_LoadedExecutable *loaded = NULL;
  expect_error(try_compile_text(client, "this is no program", "mlir", 1, 1, &loaded),
               PJRT_Error_Code_INVALID_ARGUMENT, "");
  expect_error(try_compile_text(client, "", "mlir", 1, 1, &loaded),
               PJRT_Error_Code_INVALID_ARGUMENT, "empty");
  expect_error(try_compile_text(client, add_text, "hlo", 1, 1, &loaded),
               PJRT_Error_Code_INVALID_ARGUMENT, "hlo: HloModuleProto: ");
  expect_error(try_compile_text(client, add_text, "c++", 1, 1, &loaded),
               PJRT_Error_Code_INVALID_ARGUMENT, "'c++'");
  expect_error(try_compile_text(client, add_text, "mlir", 5, 1, &loaded),
               PJRT_Error_Code_INVALID_ARGUMENT, "need 5 devices, the pod has 4");
  assert_null(loaded);
}

static void bad_arguments_store_nothing(void **state) {
  (void)state;
  PJRT_LoadedExecutable *loaded = compile(add_text, 1);
  PJRT_Buffer *inputs[2] = {put_f32(client, device_of(client, 0), ones, 4), NULL};
  PJRT_Buffer *output = NULL;
  expect_error(try_run(loaded, inputs, 1, NULL, 0, &output), PJRT_Error_Code_INVALID_ARGUMENT,
               "'adder' takes 2 arguments, not 1");
  expect_error(try_run(loaded, inputs, 2, NULL, 0, &output), PJRT_Error_Code_INVALID_ARGUMENT,
               "argument 1 of device 0 is NULL");
  inputs[1] = put_f32(client, device_of(client, 0), ones, 3);
  expect_error(try_run(loaded, inputs, 2, NULL, 0, &output), PJRT_Error_Code_INVALID_ARGUMENT, "");
  destroy_buffer(inputs[1]);
  inputs[1] = put_f32(client, device_of(client, 1), ones, 4);
  expect_error(try_run(loaded, inputs, 2, NULL, 0, &output), PJRT_Error_Code_INVALID_ARGUMENT, "");
  destroy_buffer(inputs[1]);
  assert_null(output);
  destroy_buffer(inputs[0]);
  destroy_loaded(loaded);
}

static void donated_inputs_are_gone(void **state) {
  (void)state;
  static const int64_t kept[] = {0};
  PJRT_LoadedExecutable *loaded = compile(donate_text, 1);
  PJRT_Buffer *inputs[2] = {put_f32(client, device_of(client, 0), ones, 4),
                            put_f32(client, device_of(client, 0), counting, 4)};
  PJRT_Buffer *output = NULL;
  expect_error(try_run(loaded, inputs, 2, kept, ((size_t)1 << 32) + 1, &output),
               PJRT_Error_Code_INVALID_ARGUMENT, "4294967297 inputs are not to be donated");
  expect_ok(try_run(loaded, inputs, 2, kept, 1, &output));
  assert_false(is_deleted(inputs[0]));
  destroy_buffer(output);
  output = NULL;
  PJRT_Buffer *twice[2] = {inputs[0], inputs[0]};
  expect_error(try_run(loaded, twice, 2, NULL, 0, &output), PJRT_Error_Code_INVALID_ARGUMENT,
               "donate");
  expect_ok(try_run(loaded, inputs, 2, NULL, 0, &output));
  assert_true(is_deleted(inputs[0]));
  assert_false(is_deleted(inputs[1]));
  destroy_buffer(output);
  output = NULL;
  expect_error(try_run(loaded, inputs, 2, NULL, 0, &output), PJRT_Error_Code_INVALID_ARGUMENT,
               "donated");
  assert_null(output);
  destroy_buffer(inputs[0]);
  destroy_buffer(inputs[1]);
  destroy_loaded(loaded);
}

static void failed_inputs_fail_the_outputs(void **state) {
  (void)state;
  PJRT_LoadedExecutable *loaded = compile(add_text, 1);
  PJRT_Buffer *inputs[2] = {
      put_error(client, device_of(client, 0), 4, PJRT_Error_Code_DATA_LOSS, "first cause"),
      put_f32(client, device_of(client, 0), ones, 4)};
  PJRT_Buffer *output = NULL;
  expect_ok(try_run(loaded, inputs, 2, NULL, 0, &output));
  float got[4];
  expect_error(try_get(output, got, sizeof(got)), PJRT_Error_Code_DATA_LOSS, "first cause");
  destroy_buffer(output);
  destroy_buffer(inputs[0]);
  destroy_buffer(inputs[1]);
  expect_add(loaded);  // the device lives on
  destroy_loaded(loaded);
}

// Launches the two replicas of the sum, together or one by one.
static void run_sum(bool one_by_one) {
  static const float wanted[4] = {2, 3, 4, 5};
  PJRT_LoadedExecutable *loaded = compile(replica_sum_text, 2);
  PJRT_Buffer *inputs[2] = {put_f32(client, device_of(client, 0), ones, 4),
                            put_f32(client, device_of(client, 1), counting, 4)};
  PJRT_Buffer *const *argument_lists[2] = {&inputs[0], &inputs[1]};
  PJRT_Buffer *outputs[2] = {NULL, NULL};
  PJRT_Buffer **output_lists[2] = {&outputs[0], &outputs[1]};
  PJRT_Event *done[2] = {NULL, NULL};
  for (int i = 0; i < (one_by_one ? 2 : 1); ++i) {
    PJRT_LoadedExecutable_Execute_Args args = ARGS(PJRT_LoadedExecutable_Execute, execute_device);
    args.executable = loaded;
    args.argument_lists = &argument_lists[i];
    args.num_devices = one_by_one ? 1 : 2;
    args.num_args = 1;
    args.output_lists = &output_lists[i];
    args.device_complete_events = &done[i];
    args.execute_device = one_by_one ? device_of(client, i) : NULL;
    expect_ok(api()->PJRT_LoadedExecutable_Execute(&args));
  }
  destroy_loaded(loaded);  // launches in flight hold it
  for (int i = 0; i < 2; ++i) {
    expect_ok(await_event(done[i]));
    float got[4] = {0};
    get(outputs[i], got, sizeof(got));
    assert_memory_equal(got, wanted, sizeof(got));
    destroy_buffer(outputs[i]);
    destroy_buffer(inputs[i]);
  }
}

static void replicas_meet_in_one_launch(void **state) {
  (void)state;
  run_sum(false);
}

static void replicas_meet_over_single_launches(void **state) {
  (void)state;
  run_sum(true);
}

static void a_client_is_destroyed_with_work_in_flight(void **state) {
  (void)state;
  for (int i = 0; i < 20; ++i) {
    PJRT_Client *kept = client;
    client = make_client(2);
    PJRT_LoadedExecutable *loaded = compile(add_text, 1);
    PJRT_Buffer *inputs[2] = {put_f32(client, device_of(client, 0), ones, 4),
                              put_f32(client, device_of(client, 0), ones, 4)};
    PJRT_Buffer *output = NULL;
    expect_ok(try_run(loaded, inputs, 2, NULL, 0, &output));
    destroy_client(client);
    destroy_buffer(inputs[0]);
    destroy_buffer(inputs[1]);
    destroy_buffer(output);
    destroy_loaded(loaded);
    client = kept;
  }
}

static const char layout_text[] =
    "module @columns {\n"
    "  func.func public @main(%a: tensor<2x3xf32> {mhlo.layout_mode = \"{0,1}\"})\n"
    "      -> (tensor<2x3xf32> {mhlo.layout_mode = \"{0,1}\"}) {\n"
    "    %0 = stablehlo.iota dim = 0 : tensor<2x3xf32>\n"
    "    %1 = stablehlo.add %a, %0 : tensor<2x3xf32>\n"
    "    return %1 : tensor<2x3xf32>\n"
    "  }\n"
    "}\n";

static void bad_layouts_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *layout;
    PJRT_Error_Code code;
    const char *text;
  } cases[] = {
      {"{0,0}", PJRT_Error_Code_INVALID_ARGUMENT, "'{0,0}' is not a layout of 2 dimensions"},
      {"{0}", PJRT_Error_Code_INVALID_ARGUMENT, "is not a layout"},
      {"{0,1,2}", PJRT_Error_Code_INVALID_ARGUMENT, "is not a layout"},
      {"{0,2}", PJRT_Error_Code_INVALID_ARGUMENT, "is not a layout"},
      {"{,}", PJRT_Error_Code_INVALID_ARGUMENT, "is not a layout"},
      {"0,1", PJRT_Error_Code_INVALID_ARGUMENT, "is not a layout"},
      {"{1,0:T(8,128)}", PJRT_Error_Code_UNIMPLEMENTED, "tiles"},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    char text[512];
    snprintf(text, sizeof(text),
             "func.func public @main(%%a: tensor<2x3xf32> {mhlo.layout_mode = \"%s\"})\n"
             "    -> tensor<2x3xf32> {\n"
             "  return %%a : tensor<2x3xf32>\n"
             "}\n",
             cases[i].layout);
    PJRT_LoadedExecutable *loaded = NULL;
    expect_error(try_compile_text(client, text, "mlir", 1, 1, &loaded), cases[i].code,
                 cases[i].text);
  }
}

// Parameter and result lie in memory column by column; rows are numbered from 0.
static void layouts_at_the_border_are_honoured(void **state) {
  (void)state;
  static const float columns[6] = {1, 2, 3, 4, 5, 6}, wanted[6] = {1, 3, 3, 5, 5, 7};
  static const int64_t dims[] = {2, 3}, order[] = {0, 1};
  PJRT_LoadedExecutable *loaded = compile(layout_text, 1);
  PJRT_Executable *executable = executable_of(loaded);
  PJRT_Executable_OutputDimensions_Args out = ARGS(PJRT_Executable_OutputDimensions, dim_sizes);
  out.executable = executable;
  expect_ok(api()->PJRT_Executable_OutputDimensions(&out));
  assert_memory_equal(out.dims, dims, sizeof(dims));
  destroy_executable(executable);
  PJRT_Buffer_MemoryLayout layout = {.tiled = {.minor_to_major = order, .minor_to_major_size = 2},
                                     .type = PJRT_Buffer_MemoryLayout_Type_Tiled};
  static const int64_t strides[] = {4, 8};
  PJRT_Client_BufferFromHostBuffer_Args put_args = ARGS(PJRT_Client_BufferFromHostBuffer, buffer);
  put_args.client = client;
  put_args.data = columns;
  put_args.type = PJRT_Buffer_Type_F32;
  put_args.dims = dims;
  put_args.num_dims = 2;
  put_args.byte_strides = strides;
  put_args.num_byte_strides = 2;
  put_args.memory = memory_of(device_of(client, 0), 0);
  PJRT_Buffer *output = NULL;
  // The same array row by row is refused.
  expect_ok(api()->PJRT_Client_BufferFromHostBuffer(&put_args));
  expect_ok(await_event(put_args.done_with_host_buffer));
  expect_error(try_run(loaded, &put_args.buffer, 1, NULL, 0, &output),
               PJRT_Error_Code_INVALID_ARGUMENT, "argument 0 has the layout row-major");
  destroy_buffer(put_args.buffer);
  put_args.device_layout = &layout;
  expect_ok(api()->PJRT_Client_BufferFromHostBuffer(&put_args));
  expect_ok(await_event(put_args.done_with_host_buffer));
  expect_ok(try_run(loaded, &put_args.buffer, 1, NULL, 0, &output));
  float got[6] = {0};
  get(output, got, sizeof(got));
  assert_memory_equal(got, wanted, sizeof(got));
  destroy_buffer(output);
  destroy_buffer(put_args.buffer);
  destroy_loaded(loaded);
}

// As XLA's client for TPUs does.
static void a_tpu_compares_arguments_by_type_and_bytes(void **state) {
  (void)state;
  static const int64_t square[] = {2, 2};
  PJRT_Client *tpu = make_tpu_client("v6e:1x1");
  PJRT_LoadedExecutable *donor = compile_text(tpu, donate_text, 1, 1);
  PJRT_Buffer *inputs[2] = {
      put(tpu, memory_of(device_of(tpu, 0), 0),
          (host_array_t){.type = PJRT_Buffer_Type_F32, .data = ones, .dims = square, .rank = 2}),
      put_f32(tpu, device_of(tpu, 0), counting, 4)};
  expect_sum(donor, inputs);
  destroy_buffer(inputs[0]);
  // Fewer bytes, or another element type of the same size.
  PJRT_Buffer *output = NULL;
  PJRT_LoadedExecutable *adder = compile_text(tpu, add_text, 1, 1);
  inputs[0] = put_f32(tpu, device_of(tpu, 0), ones, 3);
  expect_error(try_run(adder, inputs, 2, NULL, 0, &output), PJRT_Error_Code_INVALID_ARGUMENT,
               "argument 0: expected tensor<4xf32>, got tensor<3xf32>");
  destroy_buffer(inputs[0]);
  inputs[0] =
      put(tpu, memory_of(device_of(tpu, 0), 0),
          (host_array_t){.type = PJRT_Buffer_Type_S32, .data = ones, .dims = square, .rank = 2});
  expect_error(try_run(adder, inputs, 2, NULL, 0, &output), PJRT_Error_Code_INVALID_ARGUMENT,
               "argument 0: expected tensor<4xf32>, got tensor<2x2xi32>");
  destroy_buffer(inputs[0]);
  // Other layouts than the row-major one still must agree.
  PJRT_LoadedExecutable *by_columns = compile_text(tpu, layout_text, 1, 1);
  static const float six[6] = {1, 2, 3, 4, 5, 6};
  inputs[0] = put_f32(tpu, device_of(tpu, 0), six, 6);
  expect_error(try_run(by_columns, inputs, 1, NULL, 0, &output), PJRT_Error_Code_INVALID_ARGUMENT,
               "argument 0 has the layout row-major");
  destroy_buffer(inputs[0]);
  destroy_buffer(inputs[1]);
  destroy_loaded(by_columns);
  destroy_loaded(adder);
  destroy_loaded(donor);
  destroy_client(tpu);
}

// Writes the option "answer" to its result, 0 if there is none.
static XLA_FFI_Error *write_answer(XLA_FFI_CallFrame *frame) {
  if (foreign_is_metadata(frame, 5)) return NULL;
  XLA_FFI_CustomOptions_Get_Args args = {
      .struct_size = XLA_FFI_SIZE(XLA_FFI_CustomOptions_Get_Args, attrs), .ctx = frame->ctx};
  int64_t *result = ((XLA_FFI_Buffer *)frame->rets.rets[0])->data;
  XLA_FFI_Error *error = frame->api->XLA_FFI_CustomOptions_Get(&args);
  *result = 0;
  for (int64_t i = 0; error == NULL && i < args.attrs->size; ++i) {
    if (strncmp(args.attrs->names[i]->ptr, "answer", args.attrs->names[i]->len) != 0) continue;
    *result = *(int64_t *)((XLA_FFI_Scalar *)args.attrs->attrs[i])->value;
  }
  return error;
}

static void custom_options_reach_foreign_functions(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main() -> tensor<i64> {\n"
      "  %0 = \"stablehlo.custom_call\"() {call_target_name = \"answer\", api_version = 4 : i32,\n"
      "      backend_config = {}} : () -> tensor<i64>\n"
      "  return %0 : tensor<i64>\n"
      "}\n";
  assert_ok(foreign_register("answer", "cpu", (XLA_FFI_Handler_Bundle){.execute = write_answer}));
  PJRT_LoadedExecutable *loaded = compile(text, 1);
  const PJRT_NamedValue values[] = {text_option("name", "x"), number_option("answer", 42)};
  for (int i = 0; i < 3; ++i) {
    g_custom_options = i == 1 ? values : NULL;
    g_num_custom_options = 2;
    PJRT_Buffer *output = NULL;
    int64_t got = -1;
    expect_ok(try_run(loaded, NULL, 0, NULL, 0, &output));
    get(output, &got, sizeof(got));
    assert_int_equal(got, i == 1 ? 42 : 0);
    destroy_buffer(output);
  }
  PJRT_NamedValue bad = values[0];
  PJRT_Buffer *output = NULL;
  bad.name = NULL;
  g_custom_options = &bad;
  g_num_custom_options = 1;
  expect_error(try_run(loaded, NULL, 0, NULL, 0, &output), PJRT_Error_Code_INVALID_ARGUMENT,
               "an option without name");
  g_custom_options = NULL;
  destroy_loaded(loaded);
}

// A failed allocation may come out as an error of the call or of the data; nothing else.
static bool survived(PJRT_Error *error) {
  if (error == NULL) return true;
  if (error->vtable->get_code(error) != PJRT_Error_Code_RESOURCE_EXHAUSTED) {
    expect_ok(error);  // says what it is
  }
  error->vtable->destroy(error);
  return false;
}

// The whole way of a program: client, compile, transfer, launch, fetch, serialize. Returns whether
// all of it went well.
static bool go_the_whole_way(void) {
  PJRT_Client_Create_Args create = ARGS(PJRT_Client_Create, kv_try_get_user_arg);
  if (!survived(api()->PJRT_Client_Create(&create))) return false;
  PJRT_Client *kept = client;
  client = create.client;
  PJRT_LoadedExecutable *loaded = NULL;
  PJRT_Buffer *inputs[2] = {NULL, NULL}, *output = NULL;
  static const int64_t dims[] = {4};
  host_array_t array = {.type = PJRT_Buffer_Type_F32, .data = ones, .dims = dims, .rank = 1};
  PJRT_Memory *memory = memory_of(device_of(client, 0), 0);
  float got[4] = {0};
  bool is_well = survived(try_compile_text(client, add_text, "mlir", 1, 1, &loaded)) &&
                 survived(try_put(client, memory, array, &inputs[0])) &&
                 survived(try_put(client, memory, array, &inputs[1])) &&
                 survived(try_run(loaded, inputs, 2, NULL, 0, &output)) &&
                 survived(try_get(output, got, sizeof(got)));
  if (is_well) {
    assert_true(got[3] == 2);
    PJRT_Executable *executable = executable_of(loaded);
    PJRT_Executable_Serialize_Args serialize =
        ARGS(PJRT_Executable_Serialize, serialized_executable_deleter);
    serialize.executable = executable;
    is_well = survived(api()->PJRT_Executable_Serialize(&serialize));
    if (is_well) serialize.serialized_executable_deleter(serialize.serialized_executable);
    destroy_executable(executable);
  }
  if (output != NULL) destroy_buffer(output);
  for (int i = 0; i < 2; ++i) {
    if (inputs[i] != NULL) destroy_buffer(inputs[i]);
  }
  if (loaded != NULL) destroy_loaded(loaded);
  destroy_client(client);
  client = kept;
  return is_well;
}

// Some allocations may fail without harm (a name, a hint): the end is where many in a row do none.
static void every_failed_allocation_is_an_error(void **state) {
  (void)state;
  enum { ENOUGH_IN_A_ROW = 40 };
  int failures = 0;
  for (int64_t n = 1, in_a_row = 0; in_a_row < ENOUGH_IN_A_ROW; ++n) {
    mp_alloc_fail_at(n, 0);
    bool is_well = go_the_whole_way();
    mp_alloc_fail_at(0, 0);
    in_a_row = is_well ? in_a_row + 1 : 0;
    failures += !is_well;
  }
  assert_true(failures > 50);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_program_runs_and_describes_itself),
      cmocka_unit_test(the_optimized_program_is_text),
      cmocka_unit_test(the_device_assignment_is_a_proto),
      cmocka_unit_test(a_serialized_executable_loads_and_runs),
      cmocka_unit_test(compiling_ahead_needs_no_client),
      cmocka_unit_test(bad_programs_are_refused),
      cmocka_unit_test(bad_arguments_store_nothing),
      cmocka_unit_test(a_tpu_compares_arguments_by_type_and_bytes),
      cmocka_unit_test(donated_inputs_are_gone),
      cmocka_unit_test(failed_inputs_fail_the_outputs),
      cmocka_unit_test(replicas_meet_in_one_launch),
      cmocka_unit_test(replicas_meet_over_single_launches),
      cmocka_unit_test(layouts_at_the_border_are_honoured),
      cmocka_unit_test(bad_layouts_are_refused),
      cmocka_unit_test(custom_options_reach_foreign_functions),
      cmocka_unit_test(every_failed_allocation_is_an_error),
      cmocka_unit_test(a_client_is_destroyed_with_work_in_flight),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
