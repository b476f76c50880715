// Execute as clients use it that launch much: share by share far ahead, and beyond what device
// memory has.

#include <stdlib.h>

#include "sim/base/alloc.h"
#include "sim/base/proto.h"
#include "tests/unit/support/pjrt_test.h"

// Runs the program on one device with one argument.
static PJRT_Error *try_execute(PJRT_LoadedExecutable *loaded, PJRT_Device *device,
                               PJRT_Buffer *argument, PJRT_Buffer **results,
                               PJRT_Event **out_done) {
  PJRT_Buffer *const *arguments = &argument;
  PJRT_LoadedExecutable_Execute_Args args = ARGS(PJRT_LoadedExecutable_Execute, execute_device);
  args.executable = loaded;
  args.argument_lists = &arguments;
  args.num_devices = 1;
  args.num_args = 1;
  args.output_lists = &results;
  args.device_complete_events = out_done;
  args.execute_device = device;
  return api()->PJRT_LoadedExecutable_Execute(&args);
}

// All shares of device 0 come before the first one of device 1.
static void shares_far_ahead_of_the_others(void **state) {
  (void)state;
  enum { NUM_LAUNCHES = 100 };
  PJRT_Client *client = make_client(2);
  PJRT_LoadedExecutable *loaded = compile_text(client, replica_sum_text, 2, 1);
  PJRT_Buffer *results[2][NUM_LAUNCHES];
  for (int d = 0; d < 2; ++d) {
    for (int i = 0; i < NUM_LAUNCHES; ++i) {
      const float values[4] = {(float)i, (float)d, 1, 2};
      PJRT_Buffer *argument = put_f32(client, device_of(client, d), values, 4);
      expect_ok(try_execute(loaded, device_of(client, d), argument, &results[d][i], NULL));
      destroy_buffer(argument);
    }
  }
  for (int d = 0; d < 2; ++d) {
    for (int i = 0; i < NUM_LAUNCHES; ++i) {
      const float wanted[4] = {(float)(2 * i), 1, 2, 4};
      float got[4] = {0};
      get(results[d][i], got, sizeof(got));
      assert_memory_equal(got, wanted, sizeof(got));
      destroy_buffer(results[d][i]);
    }
  }
  destroy_loaded(loaded);
  destroy_client(client);
}

// Result 0 takes over the argument; result 1 has 4 MiB.
static const char grow_text[] =
    "module @grow {\n"
    "  func.func public @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32})\n"
    "      -> (tensor<4xf32>, tensor<262144x4xf32>) {\n"
    "    %0 = stablehlo.add %a, %a : tensor<4xf32>\n"
    "    %1 = stablehlo.broadcast_in_dim %a, dims = [1]\n"
    "        : (tensor<4xf32>) -> tensor<262144x4xf32> loc(\"model.py\":7:3)\n"
    "    return %0, %1 : tensor<4xf32>, tensor<262144x4xf32>\n"
    "  }\n"
    "}\n";

// `is_short`: there may have been no memory for the whole text.
static void expect_failed(PJRT_Buffer **results, PJRT_Event *done, bool is_short) {
  const char *what = "out of memory: 4194304 bytes for f32[262144,4], result 1 of grow";
  const char *where =
      "in the program: result 1 of grow is made by stablehlo.broadcast_in_dim (model.py:7:3)";
  float got[4];
  expect_error(try_get(results[0], got, sizeof(got)), PJRT_Error_Code_RESOURCE_EXHAUSTED,
               is_short ? "memory" : what);
  expect_error(await_event(done), PJRT_Error_Code_RESOURCE_EXHAUSTED, is_short ? "memory" : where);
  destroy_buffer(results[0]);
  destroy_buffer(results[1]);
}

// Where device memory does not suffice the results have failed, and the arguments stay. Where not
// even these results can be made, the call fails.
static void memory_runs_out(void **state) {
  (void)state;
  setenv("MINIPOD_DEVICE_MEMORY", "1MiB", 1);
  PJRT_Client *client = make_client(1);
  unsetenv("MINIPOD_DEVICE_MEMORY");
  PJRT_LoadedExecutable *loaded = compile_text(client, grow_text, 1, 1);
  static const float values[4] = {1, 2, 3, 4};
  PJRT_Buffer *argument = put_f32(client, device_of(client, 0), values, 4);
  int num_refused = 0, num_done = 0;
  for (int64_t n = 0; n < 60; ++n) {  // 0: no allocation fails
    PJRT_Buffer *results[2] = {NULL, NULL};
    PJRT_Event *done = NULL;
    mp_alloc_fail_at(n, 0);
    PJRT_Error *error = try_execute(loaded, NULL, argument, results, &done);
    mp_alloc_fail_at(0, 0);
    if (error == NULL) {
      expect_failed(results, done, n != 0);
      num_done += 1;
    } else {
      expect_error(error, PJRT_Error_Code_RESOURCE_EXHAUSTED, "");
      num_refused += 1;
    }
    float got[4] = {0};
    get(argument, got, sizeof(got));  // it was not donated
    assert_memory_equal(got, values, sizeof(got));
  }
  assert_true(num_refused > 3 && num_done > 3);
  destroy_buffer(argument);
  destroy_loaded(loaded);
  destroy_client(client);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(shares_far_ahead_of_the_others),
      cmocka_unit_test(memory_runs_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
