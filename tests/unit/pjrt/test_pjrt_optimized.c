// Compiled programs as clients read them back, and what a profiler hears of their launches.

#include <stdlib.h>

#include "pjrt/c_api/c_api_profiler.h"
#include "sim/base/proto.h"
#include "tests/unit/support/pjrt_test.h"

static PJRT_Client *client;

static int set_up(void **state) {
  (void)state;
  client = make_client(2);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  destroy_client(client);
  return 0;
}

// What the client reads back, which ends in a NUL that is not counted; the caller frees it.
static char *optimized(PJRT_LoadedExecutable *loaded, const char *format, size_t *out_size) {
  PJRT_LoadedExecutable_GetExecutable_Args executable =
      ARGS(PJRT_LoadedExecutable_GetExecutable, executable);
  executable.loaded_executable = loaded;
  expect_ok(api()->PJRT_LoadedExecutable_GetExecutable(&executable));
  PJRT_Program program = {.struct_size = PJRT_STRUCT_SIZE(PJRT_Program, format_size)};
  PJRT_Executable_OptimizedProgram_Args args = ARGS(PJRT_Executable_OptimizedProgram, program);
  args.executable = executable.executable;
  args.program = &program;
  expect_ok(api()->PJRT_Executable_OptimizedProgram(&args));
  assert_int_equal(program.format_size, strlen(format));
  assert_memory_equal(program.format, format, program.format_size);
  program.code = calloc(1, program.code_size + 1);
  expect_ok(api()->PJRT_Executable_OptimizedProgram(&args));
  PJRT_Executable_Destroy_Args destroy = ARGS(PJRT_Executable_Destroy, executable);
  destroy.executable = executable.executable;
  expect_ok(api()->PJRT_Executable_Destroy(&destroy));
  *out_size = program.code_size;
  return program.code;
}

static const char sum_text[] =
    "module @sums {\n"
    "  func.func public @main(%a: tensor<4x2xf32> {mhlo.sharding = \"{devices=[2,1]<=[2]}\"},\n"
    "      %b: tensor<2xf32> {mhlo.sharding = \"{replicated}\"})\n"
    "      -> (tensor<4x2xf32> {mhlo.sharding = \"{devices=[2,1]<=[2]}\"},\n"
    "          tensor<2xf32> {mhlo.sharding = \"{replicated}\"}) {\n"
    "    %0 = stablehlo.add %a, %a : tensor<4x2xf32>\n"
    "    %1 = stablehlo.multiply %b, %b : tensor<2xf32>\n"
    "    return %0, %1 : tensor<4x2xf32>, tensor<2xf32>\n"
    "  }\n"
    "}\n";

static void a_text_says_its_shardings(void **state) {
  (void)state;
  PJRT_LoadedExecutable *loaded = compile_text(client, sum_text, 1, 2);
  size_t size = 0;
  char *text = optimized(loaded, "mlir", &size);
  assert_non_null(strstr(text, "tensor<2x2xf32>"));
  assert_non_null(
      strstr(text, "mhlo.spmd_output_sharding = \"{{devices=[2,1]0,1}, {replicated}}\""));
  assert_non_null(
      strstr(text, "mhlo.spmd_parameters_shardings = [\"{devices=[2,1]0,1}\", \"{replicated}\"]"));
  free(text);
  destroy_loaded(loaded);
}

static void a_text_for_one_partition_has_none(void **state) {
  (void)state;
  PJRT_LoadedExecutable *loaded = compile_text(client, sum_text, 2, 1);
  size_t size = 0;
  char *text = optimized(loaded, "mlir", &size);
  assert_null(strstr(text, "mhlo.spmd"));
  free(text);
  destroy_loaded(loaded);
}

// ---- the profiler ----

static const PLUGIN_Profiler_Api *profiler_api(void) {
  const PJRT_Extension_Base *found = find_extension(PJRT_Extension_Type_Profiler);
  return ((const PJRT_Profiler_Extension *)found)->profiler_api;
}

static PLUGIN_Profiler *make_profiler(void) {
  PLUGIN_Profiler_Create_Args args = {.options = "", .options_size = 0};
  assert_null(profiler_api()->create(&args));
  return args.profiler;
}

static PLUGIN_Profiler_Error *start(PLUGIN_Profiler *profiler) {
  return profiler_api()->start(&(PLUGIN_Profiler_Start_Args){.profiler = profiler});
}

static void stop_and_destroy(PLUGIN_Profiler *profiler) {
  assert_null(profiler_api()->stop(&(PLUGIN_Profiler_Stop_Args){.profiler = profiler}));
  assert_null(profiler_api()->destroy(&(PLUGIN_Profiler_Destroy_Args){.profiler = profiler}));
}

// Runs the program of one parameter and result on both devices.
static void run_on_both(PJRT_LoadedExecutable *loaded) {
  static const float ones[4] = {1, 1, 1, 1};
  PJRT_Buffer *inputs[2], *results[2], *const *arguments[2], **outputs[2];
  PJRT_Event *done[2];
  for (int i = 0; i < 2; ++i) {
    inputs[i] = put_f32(client, device_of(client, i), ones, 4);
    arguments[i] = &inputs[i];
    outputs[i] = &results[i];
  }
  PJRT_ExecuteOptions options = {.struct_size = PJRT_STRUCT_SIZE(PJRT_ExecuteOptions, context)};
  PJRT_LoadedExecutable_Execute_Args args = ARGS(PJRT_LoadedExecutable_Execute, execute_device);
  args.executable = loaded;
  args.options = &options;
  args.argument_lists = arguments;
  args.num_devices = 2;
  args.num_args = 1;
  args.output_lists = outputs;
  args.device_complete_events = done;
  expect_ok(api()->PJRT_LoadedExecutable_Execute(&args));
  for (int i = 0; i < 2; ++i) {
    expect_ok(await_event(done[i]));
    destroy_buffer(inputs[i]);
    destroy_buffer(results[i]);
  }
}

// Counts an XSpace's planes and their events, which must not overlap.
static void count_events(mp_str_t space, int *out_planes, int *out_events) {
  *out_planes = *out_events = 0;
  mp_proto_reader_t reader = mp_proto_reader(space, "XSpace");
  mp_proto_field_t field, inner, in_line;
  while (mp_proto_next(&reader, &field)) {
    assert_int_equal(field.number, 1);
    ++*out_planes;
    mp_proto_reader_t plane = mp_proto_message(&reader, &field, "XPlane");
    while (mp_proto_next(&plane, &inner)) {
      if (inner.number != 3) continue;
      mp_proto_reader_t line = mp_proto_message(&plane, &inner, "XLine");
      uint64_t end = 0;
      while (mp_proto_next(&line, &in_line)) {
        if (in_line.number != 4) continue;
        ++*out_events;
        mp_proto_reader_t event = mp_proto_message(&line, &in_line, "XEvent");
        uint64_t values[4] = {0};
        for (mp_proto_field_t of_event; mp_proto_next(&event, &of_event);) {
          values[of_event.number] = mp_proto_varint(&event, &of_event);
        }
        assert_true(values[2] >= end);
        end = values[2] + values[3];
      }
    }
  }
  assert_null(mp_proto_reader_status(&reader));
}

static const char twice_text[] =
    "module @twice {\n"
    "  func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n"
    "    %0 = stablehlo.add %a, %a : tensor<4xf32>\n"
    "    return %0 : tensor<4xf32>\n"
    "  }\n"
    "}\n";

static void a_profiler_hears_of_launches(void **state) {
  (void)state;
  PJRT_LoadedExecutable *loaded = compile_text(client, twice_text, 2, 1);
  PLUGIN_Profiler *profiler = make_profiler();
  run_on_both(loaded);  // no profiler is started
  assert_null(start(profiler));
  for (int i = 0; i < 3; ++i) run_on_both(loaded);
  assert_null(profiler_api()->stop(&(PLUGIN_Profiler_Stop_Args){.profiler = profiler}));
  run_on_both(loaded);
  PLUGIN_Profiler_CollectData_Args data = {.profiler = profiler};
  assert_null(profiler_api()->collect_data(&data));
  int planes = 0, events = 0;
  count_events((mp_str_t){(const char *)data.buffer, data.buffer_size_in_bytes}, &planes, &events);
  assert_int_equal(planes, 3);  // two devices, and the names of ops
  assert_int_equal(events, 6);
  // A caller with a buffer of its own gets the same.
  uint8_t *own = malloc(data.buffer_size_in_bytes);
  PLUGIN_Profiler_CollectData_Args again = {.profiler = profiler, .buffer = own};
  assert_null(profiler_api()->collect_data(&again));
  assert_memory_equal(own, data.buffer, data.buffer_size_in_bytes);
  free(own);
  stop_and_destroy(profiler);
  destroy_loaded(loaded);
}

static void two_profilers_do_not_run_at_once(void **state) {
  (void)state;
  PLUGIN_Profiler *first = make_profiler(), *second = make_profiler();
  assert_null(start(first));
  PLUGIN_Profiler_Error *error = start(second);
  assert_non_null(error);
  PLUGIN_Profiler_Error_Message_Args message = {.error = error};
  profiler_api()->error_message(&message);
  assert_non_null(strstr(message.message, "another profiler is running"));
  PLUGIN_Profiler_Error_GetCode_Args code = {.error = error};
  assert_null(profiler_api()->error_get_code(&code));
  assert_int_equal(code.code, PJRT_Error_Code_FAILED_PRECONDITION);
  profiler_api()->error_destroy(&(PLUGIN_Profiler_Error_Destroy_Args){.error = error});
  stop_and_destroy(first);
  assert_null(start(second));
  PLUGIN_Profiler_CollectData_Args data = {.profiler = second};
  assert_null(profiler_api()->collect_data(&data));
  assert_int_equal(data.buffer_size_in_bytes, 0);
  stop_and_destroy(second);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_text_says_its_shardings),
      cmocka_unit_test(a_text_for_one_partition_has_none),
      cmocka_unit_test(a_profiler_hears_of_launches),
      cmocka_unit_test(two_profilers_do_not_run_at_once),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
