// Calls of functions that block: runs that are out, launches that must not wait for them, failures
// and ends meanwhile.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "sim/base/fault.h"
#include "sim/foreign/foreign_api.h"
#include "sim/plan/compile.h"
#include "sim/runtime/devices/device_impl.h"
#include "sim/runtime/workers/caller.h"
#include "tests/unit/support/launches.h"

// ---- Functions ----

// The gate: calls of test_gate wait until it opens.
static pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t g_changed = PTHREAD_COND_INITIALIZER;
static bool g_is_open;
static uint32_t g_num_inside;  // calls that have begun, of test_gate and test_together
static uint32_t g_num_together;

static void gate_close(void) {
  pthread_mutex_lock(&g_mutex);
  g_is_open = false;
  g_num_inside = 0;
  pthread_mutex_unlock(&g_mutex);
}

static void gate_open(void) {
  pthread_mutex_lock(&g_mutex);
  g_is_open = true;
  pthread_cond_broadcast(&g_changed);
  pthread_mutex_unlock(&g_mutex);
}

static void gate_await_inside(uint32_t count) {
  pthread_mutex_lock(&g_mutex);
  while (g_num_inside < count) pthread_cond_wait(&g_changed, &g_mutex);
  pthread_mutex_unlock(&g_mutex);
}

static uint32_t gate_num_inside(void) {
  pthread_mutex_lock(&g_mutex);
  const uint32_t count = g_num_inside;
  pthread_mutex_unlock(&g_mutex);
  return count;
}

static bool answer_metadata(XLA_FFI_CallFrame *frame) {
  if (frame->extension_start == NULL) return false;
  XLA_FFI_Metadata_Extension *extension = (XLA_FFI_Metadata_Extension *)frame->extension_start;
  extension->metadata->api_version.major_version = XLA_FFI_API_MAJOR;
  extension->metadata->api_version.minor_version = XLA_FFI_API_MINOR;
  return true;
}

// The result is the argument plus 1.
static void compute(XLA_FFI_CallFrame *frame) {
  const XLA_FFI_Buffer *from = frame->args.args[0], *to = frame->rets.rets[0];
  for (int64_t i = 0; i < from->dims[0]; ++i) ((float *)to->data)[i] = ((float *)from->data)[i] + 1;
}

static XLA_FFI_Error *test_gate(XLA_FFI_CallFrame *frame) {
  if (answer_metadata(frame)) return NULL;
  pthread_mutex_lock(&g_mutex);
  g_num_inside += 1;
  pthread_cond_broadcast(&g_changed);
  while (!g_is_open) pthread_cond_wait(&g_changed, &g_mutex);
  pthread_mutex_unlock(&g_mutex);
  compute(frame);
  return NULL;
}

// Returns when g_num_together calls are inside.
static XLA_FFI_Error *test_together(XLA_FFI_CallFrame *frame) {
  if (answer_metadata(frame)) return NULL;
  pthread_mutex_lock(&g_mutex);
  g_num_inside += 1;
  pthread_cond_broadcast(&g_changed);
  while (g_num_inside < g_num_together) pthread_cond_wait(&g_changed, &g_mutex);
  pthread_mutex_unlock(&g_mutex);
  compute(frame);
  return NULL;
}

static XLA_FFI_Error *test_fail(XLA_FFI_CallFrame *frame) {
  if (answer_metadata(frame)) return NULL;
  return mp_foreign_error(mp_status_make(MP_DATA_LOSS, "the function has failed"));
}

// Launches g_nested on all its devices, with an argument of its own, and waits for the results.
static mp_executable_t *g_nested;
static float g_nested_expected;

static XLA_FFI_Error *test_nested(XLA_FFI_CallFrame *frame) {
  if (answer_metadata(frame)) return NULL;
  launch_and_expect(g_nested, 5, g_nested_expected);
  compute(frame);
  return NULL;
}

// Its result comes later, from another thread.
typedef struct {
  XLA_FFI_Future *future;
  XLA_FFI_CallFrame frame;
} later_t;

static void *set_later(void *context) {
  later_t *later = context;
  pthread_mutex_lock(&g_mutex);
  while (!g_is_open) pthread_cond_wait(&g_changed, &g_mutex);
  pthread_mutex_unlock(&g_mutex);
  mp_foreign_future_set(later->future, NULL);
  free(later);
  return NULL;
}

static pthread_t g_later;

static XLA_FFI_Error *test_later(XLA_FFI_CallFrame *frame) {
  if (answer_metadata(frame)) return NULL;
  compute(frame);
  later_t *later = calloc(1, sizeof(*later));
  assert_ok(mp_foreign_future_create(&later->future));
  frame->future = later->future;
  pthread_mutex_lock(&g_mutex);
  g_num_inside += 1;
  pthread_cond_broadcast(&g_changed);
  pthread_mutex_unlock(&g_mutex);
  assert_int_equal(pthread_create(&g_later, NULL, set_later, later), 0);
  return NULL;
}

static int register_all(void **state) {
  (void)state;
  static const struct {
    const char *name;
    XLA_FFI_Handler *execute;
    bool may_block;
  } functions[] = {{"test_gate", test_gate, true},
                   {"test_together", test_together, true},
                   {"test_fail", test_fail, true},
                   {"test_nested", test_nested, true},
                   {"test_later", test_later, false}};
  for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); ++i) {
    const XLA_FFI_Handler_Bundle bundle = {.execute = functions[i].execute};
    const mp_foreign_traits_t traits = {.may_block = functions[i].may_block};
    assert_ok(
        mp_foreign_register_typed(mp_str(functions[i].name), mp_str("minipod"), &bundle, traits));
  }
  return 0;
}

// ---- Programs ----

static mp_executable_t *compile(mp_client_t *client, uint32_t devices, const char *body) {
  char text[2048];
  snprintf(text, sizeof(text),
           "module @test attributes {mhlo.num_partitions = %u : i32} {\n"
           "func.func public @main(%%x: tensor<4xf32>) -> tensor<4xf32> {\n%s"
           "return %%y : tensor<4xf32>\n}\n}\n",
           devices, body);
  const mp_compile_request_t request = {0};
  mp_program_t *program = NULL;
  assert_ok(mp_compile(text, strlen(text), &request, &program));
  return make_executable(client, program);
}

#define CALL(result, target, operand)                         \
  "%" result " = stablehlo.custom_call @" target "(%" operand \
  ") {api_version = 4 : i32, has_side_effect = true} : (tensor<4xf32>) -> tensor<4xf32>\n"
#define DOUBLE(result, operand) \
  "%" result " = stablehlo.add %" operand ", %" operand " : tensor<4xf32>\n"
#define SUM(result, operand, groups)                                               \
  "%" result " = \"stablehlo.all_reduce\"(%" operand                               \
  ") ({\n^bb0(%a: tensor<f32>, %b: "                                               \
  "tensor<f32>):\n%s = stablehlo.add %a, %b : tensor<f32>\nstablehlo.return %s : " \
  "tensor<f32>\n}) {replica_groups = dense<" groups                                \
  "> : tensor<1x2xi64>, channel_handle = "                                         \
  "#stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids} : "     \
  "(tensor<4xf32>) -> tensor<4xf32>\n"
#define ON_DEVICE_0(then)                                       \
  "%p = stablehlo.partition_id : tensor<ui32>\n"                \
  "%i = stablehlo.convert %p : (tensor<ui32>) -> tensor<i32>\n" \
  "%c = \"stablehlo.case\"(%i) ({\n" then                       \
  "stablehlo.return %t : tensor<4xf32>\n}, {\n"                 \
  "stablehlo.return %x : tensor<4xf32>\n}) : (tensor<i32>) -> tensor<4xf32>\n"

// One argument, on the executable's first device alone.
static void launch_value(test_launch_t *l, mp_executable_t *executable, float value) {
  launch_filled(l, executable, 1, value);
}

static bool is_over(const test_launch_t *l, uint32_t device) {
  return mp_event_is_ready(l->done[device]);
}

// ---- Workers and order ----

// More calls are out than there are workers, and others still compute.
static void calls_that_wait_hold_no_worker(void **state) {
  (void)state;
  enum { CALLS = 5 };
  mp_client_t *client = make_client(8);
  gate_close();
  mp_executable_t *call = compile(client, CALLS, CALL("y", "test_gate", "x"));
  mp_executable_t *plain = compile(client, 8, DOUBLE("y", "x"));
  test_launch_t l, other;
  launch_value(&l, call, 3);
  gate_await_inside(1);
  for (int i = 0; i < 3; ++i) {
    launch_value(&other, plain, 4);
    launch_expect(&other, 8);  // also on the devices whose runs are out
    launch_end(&other);
  }
  for (uint32_t d = 0; d < CALLS; ++d) assert_false(is_over(&l, d));
  gate_open();
  launch_expect(&l, 4);
  launch_end(&l);
  mp_executable_release(call);
  mp_executable_release(plain);
  mp_client_release(client);
}

// What comes from a run that is out waits for it, and so do programs that call themselves.
static void results_and_calls_keep_their_order(void **state) {
  (void)state;
  mp_client_t *client = make_client(1);
  gate_close();
  mp_executable_t *call = compile(client, 1, CALL("y", "test_gate", "x"));
  mp_executable_t *plain = compile(client, 1, DOUBLE("y", "x"));
  test_launch_t first, second, after;
  launch_value(&first, call, 1);
  launch_value(&second, call, 10);
  launch_begin(&after, plain, 1);
  after.arguments[0][0] = mp_buffer_retain(first.results[0]);
  launch_go(&after);
  gate_await_inside(1);
  usleep(20000);
  assert_int_equal(gate_num_inside(), 1);
  assert_false(is_over(&after, 0));
  gate_open();
  launch_expect(&first, 2);
  launch_expect(&second, 11);
  launch_expect(&after, 4);
  launch_end(&first);
  launch_end(&second);
  launch_end(&after);
  mp_executable_release(call);
  mp_executable_release(plain);
  mp_client_release(client);
}

// A launch beside the stream shares no memory with what is queued there, whatever order the
// launches and the deletions of their buffers have.
static void launches_in_side_streams_have_their_own_memory(void **state) {
  (void)state;
  mp_client_t *client = make_client(1);
  gate_close();
  mp_executable_t *call =
      compile(client, 1, DOUBLE("a", "x") CALL("b", "test_gate", "a") DOUBLE("y", "b"));
  mp_executable_t *plain = compile(client, 1, DOUBLE("a", "x") DOUBLE("y", "a"));
  test_launch_t l[4], other[12];
  for (int i = 0; i < 4; ++i) {
    launch_value(&l[i], call, (float)i);
    mp_buffer_delete(l[i].arguments[0][0]);  // the queued run still reads it
  }
  gate_await_inside(1);
  for (int i = 0; i < 12; ++i) {
    launch_value(&other[i], plain, (float)(100 + i));
    mp_buffer_delete(other[i].arguments[0][0]);
  }
  for (int i = 0; i < 12; ++i) {
    launch_expect(&other[i], 4 * (float)(100 + i));
    launch_end(&other[i]);
  }
  gate_open();
  for (int i = 0; i < 4; ++i) {
    launch_expect(&l[i], 2 * (2 * (float)i + 1));
    launch_end(&l[i]);
  }
  mp_executable_release(call);
  mp_executable_release(plain);
  assert_int_equal(stats_of(mp_client_device(client, 0), MP_MEMORY_DEVICE).bytes_in_use, 0);
  mp_client_release(client);
}

// A donated input that a queued run reads is copied, not overwritten.
static void a_donation_in_a_side_stream_spares_queued_readers(void **state) {
  (void)state;
  mp_client_t *client = make_client(1);
  gate_close();
  mp_executable_t *call = compile(client, 1, CALL("b", "test_gate", "x") DOUBLE("y", "b"));
  mp_program_t *program = NULL;
  const char *text =
      "func.func public @main(%x: tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> tensor<4xf32> "
      "{\n"
      "%y = stablehlo.add %x, %x : tensor<4xf32>\nreturn %y : tensor<4xf32>\n}\n";
  const mp_compile_request_t request = {0};
  assert_ok(mp_compile(text, strlen(text), &request, &program));
  mp_executable_t *donating = make_executable(client, program);
  test_launch_t first, second, donation;
  launch_value(&first, call, 0);
  launch_value(&second, call, 7);  // queued, and reads its argument later
  gate_await_inside(1);
  launch_begin(&donation, donating, 1);
  donation.arguments[0][0] = mp_buffer_retain(second.arguments[0][0]);
  launch_go(&donation);
  launch_expect(&donation, 14);
  gate_open();
  launch_expect(&first, 2);
  launch_expect(&second, 16);
  launch_end(&first);
  launch_end(&second);
  launch_end(&donation);
  mp_executable_release(call);
  mp_executable_release(donating);
  mp_client_release(client);
}

// ---- Calls that launch, and calls that wait for each other ----

static void a_call_may_launch_on_its_own_device(void **state) {
  (void)state;
  mp_client_t *client = make_client(2);
  mp_executable_t *call = compile(client, 1, CALL("y", "test_nested", "x"));
  g_nested = compile(client, 1, DOUBLE("y", "x"));
  g_nested_expected = 10;
  test_launch_t l[3];
  for (int i = 0; i < 3; ++i) launch_value(&l[i], call, (float)i);
  for (int i = 0; i < 3; ++i) {
    launch_expect(&l[i], (float)(i + 1));
    launch_end(&l[i]);
  }
  mp_executable_release(call);
  mp_executable_release(g_nested);
  mp_client_release(client);
}

// Both devices are in a program with a collective: one waits there for the other, which is in the
// call that launches a program with a collective on both.
static void a_call_may_launch_collectives_on_devices_that_wait_for_it(void **state) {
  (void)state;
  mp_client_t *client = make_client(2);
  mp_executable_t *call =
      compile(client, 2, ON_DEVICE_0(CALL("t", "test_nested", "x")) SUM("y", "c", "[[0, 1]]"));
  g_nested = compile(client, 2, SUM("y", "x", "[[0, 1]]"));
  g_nested_expected = 10;
  for (int i = 0; i < 20; ++i) {
    test_launch_t l;
    launch_value(&l, call, 2);
    launch_expect(&l, 5);
    launch_end(&l);
  }
  mp_executable_release(call);
  mp_executable_release(g_nested);
  mp_client_release(client);
}

// A call within a call, on the same device.
static void a_call_may_launch_a_program_that_calls(void **state) {
  (void)state;
  mp_client_t *client = make_client(1);
  mp_executable_t *call = compile(client, 1, CALL("y", "test_nested", "x"));
  gate_close();
  gate_open();
  g_nested = compile(client, 1, CALL("y", "test_gate", "x"));
  g_nested_expected = 6;
  test_launch_t l;
  launch_value(&l, call, 2);
  launch_expect(&l, 3);
  launch_end(&l);
  mp_executable_release(call);
  mp_executable_release(g_nested);
  mp_client_release(client);
}

// Runs `main` on a thread of its own to its end.
static void on_another_thread(void *(*main)(void *), void *context) {
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, main, context), 0);
  pthread_join(thread, NULL);
}

// Two programs, of which the second needs the first's result and the first one calls test_together.
static mp_executable_t *g_calling, *g_plain;

static void *launch_two(void *context) {
  (void)context;
  test_launch_t l, after;
  launch_value(&l, g_calling, 5);
  launch_begin(&after, g_plain, 1);
  after.arguments[0][0] = mp_buffer_retain(l.results[0]);
  launch_go(&after);
  launch_expect(&after, 12);
  launch_end(&l);
  launch_end(&after);
  return NULL;
}

// A call may wait for what another thread launches, be it a program that calls or not.
static void programs_that_call_do_not_wait_for_those_of_other_threads(void **state) {
  (void)state;
  mp_client_t *client = make_client(1);
  gate_close();
  g_num_together = 2;
  mp_executable_t *call = compile(client, 1, CALL("y", "test_gate", "x"));
  g_calling = compile(client, 1, CALL("y", "test_together", "x"));
  g_plain = compile(client, 1, DOUBLE("y", "x"));
  test_launch_t l;
  launch_value(&l, call, 1);
  gate_await_inside(1);
  on_another_thread(launch_two, NULL);
  assert_false(is_over(&l, 0));
  gate_open();
  launch_expect(&l, 2);
  launch_end(&l);
  mp_executable_release(call);
  mp_executable_release(g_calling);
  mp_executable_release(g_plain);
  mp_client_release(client);
}

static void *launch_in_order(void *context) {
  test_launch_t *l = context;
  for (int i = 0; i < 3; ++i) launch_value(&l[i], g_calling, (float)i);
  return NULL;
}

static void programs_with_calls_keep_their_threads_order_in_side_streams(void **state) {
  (void)state;
  mp_client_t *client = make_client(1);
  gate_close();
  g_calling = compile(client, 1, CALL("y", "test_gate", "x"));
  test_launch_t first, l[3];
  launch_value(&first, g_calling, 1);
  on_another_thread(launch_in_order, l);
  gate_await_inside(2);  // the first one, and the thread's first
  usleep(20000);
  assert_int_equal(gate_num_inside(), 2);
  gate_open();
  for (int i = 0; i < 3; ++i) {
    launch_expect(&l[i], (float)(i + 1));
    launch_end(&l[i]);
  }
  launch_expect(&first, 2);
  launch_end(&first);
  mp_executable_release(g_calling);
  mp_client_release(client);
}

// Nothing that does not wait for a call itself comes behind what does, on any device.
static void programs_do_not_wait_for_those_that_wait_for_a_call(void **state) {
  (void)state;
  mp_client_t *client = make_client(2);
  gate_close();
  mp_executable_t *call = compile(client, 1, CALL("y", "test_gate", "x"));
  mp_executable_t *plain = compile(client, 2, DOUBLE("y", "x"));
  mp_device_t *second = mp_client_device(client, 1);
  test_launch_t l, late, other;
  launch_value(&l, call, 1);
  gate_await_inside(1);
  launch_begin(&late, plain, 1);
  late.num_devices = 1;
  late.logical[0] = 1;
  other = late;
  assert_ok(mp_buffer_copy_to_memory(l.results[0], mp_device_memory(second, MP_MEMORY_DEVICE),
                                     &late.arguments[0][0]));
  launch_go(&late);
  other.arguments[0][0] = make_f32(second, 4, 4);
  launch_go(&other);
  launch_expect(&other, 8);
  assert_false(is_over(&late, 0));
  gate_open();
  launch_expect(&late, 4);
  launch_end(&l);
  launch_end(&late);
  launch_end(&other);
  mp_executable_release(call);
  mp_executable_release(plain);
  mp_client_release(client);
}

static void calls_may_wait_for_each_other(void **state) {
  (void)state;
  enum { CALLS = 12 };
  mp_client_t *client = make_client(CALLS);
  gate_close();
  g_num_together = CALLS;
  mp_executable_t *call = compile(client, CALLS, CALL("y", "test_together", "x"));
  test_launch_t l;
  launch_value(&l, call, 1);
  launch_expect(&l, 2);
  launch_end(&l);
  mp_executable_release(call);
  mp_client_release(client);
}

static void a_result_may_come_later(void **state) {
  (void)state;
  mp_client_t *client = make_client(1);
  gate_close();
  mp_executable_t *call = compile(client, 1, CALL("y", "test_later", "x"));
  test_launch_t l;
  launch_value(&l, call, 1);
  gate_await_inside(1);
  assert_false(is_over(&l, 0));
  gate_open();
  launch_expect(&l, 2);
  pthread_join(g_later, NULL);
  launch_end(&l);
  mp_executable_release(call);
  mp_client_release(client);
}

// ---- Failures ----

static void a_failure_is_that_of_all_participants(void **state) {
  (void)state;
  mp_client_t *client = make_client(2);
  mp_executable_t *call =
      compile(client, 2, ON_DEVICE_0(CALL("t", "test_fail", "x")) SUM("y", "c", "[[0, 1]]"));
  mp_executable_t *plain = compile(client, 2, DOUBLE("y", "x"));
  test_launch_t l;
  launch_value(&l, call, 1);
  launch_expect_error(&l, 0, MP_DATA_LOSS, "the function has failed");
  launch_expect_error(&l, 1, MP_DATA_LOSS, "the function has failed");
  launch_end(&l);
  launch_value(&l, plain, 1);
  launch_expect(&l, 2);
  launch_end(&l);
  mp_executable_release(call);
  mp_executable_release(plain);
  mp_client_release(client);
}

// Where the machine gives no thread, the launch says so, and the client goes on.
static void no_thread_is_an_error_of_the_launch(void **state) {
  (void)state;
  mp_client_t *client = make_client(1);
  gate_close();
  gate_open();
  mp_executable_t *call = compile(client, 1, CALL("y", "test_gate", "x"));
  test_launch_t l;
  mp_fault_watch();
  mp_fault_at(MP_FAULT_THREAD, 1, 1);
  launch_value(&l, call, 1);
  launch_expect_error(&l, 0, MP_RESOURCE_EXHAUSTED,
                      "no thread could be started for a call that may block");
  launch_end(&l);
  mp_fault_at(MP_FAULT_THREAD, 0, 0);
  launch_value(&l, call, 1);
  launch_expect(&l, 2);
  launch_end(&l);
  mp_executable_release(call);
  mp_client_release(client);
}

// A run that is out when its launch fails ends when it is back: its memory is in use until then.
static void a_run_that_is_out_outlasts_the_failure(void **state) {
  (void)state;
  mp_client_t *client = make_client(2);
  gate_close();
  mp_executable_t *call = compile(
      client, 2,
      "%p = stablehlo.partition_id : tensor<ui32>\n"
      "%i = stablehlo.convert %p : (tensor<ui32>) -> tensor<i32>\n"
      "%y = \"stablehlo.case\"(%i) ({\n" CALL("t", "test_gate", "x")
      "stablehlo.return %t : tensor<4xf32>\n}, {\n" CALL("t", "test_fail", "x")
      "stablehlo.return %t : tensor<4xf32>\n}) : (tensor<i32>) -> tensor<4xf32>\n");
  test_launch_t l;
  launch_value(&l, call, 1);
  gate_await_inside(1);
  launch_expect_error(&l, 1, MP_DATA_LOSS, "the function has failed");
  assert_false(is_over(&l, 0));
  gate_open();
  launch_expect_error(&l, 0, MP_DATA_LOSS, "the function has failed");
  launch_end(&l);
  mp_executable_release(call);
  mp_client_release(client);
}

// ---- The end of the client ----

// What is out keeps its memory; everything else is cancelled at once, and nothing is waited for.
static void the_client_may_end_while_runs_are_out(void **state) {
  (void)state;
  mp_client_t *client = make_client(3);
  gate_close();
  mp_executable_t *call = compile(client, 3, CALL("y", "test_gate", "x"));
  mp_executable_t *plain = compile(client, 1, DOUBLE("y", "x"));
  test_launch_t l, queued, after;
  launch_value(&l, call, 1);
  launch_value(&queued, call, 1);
  launch_begin(&after, plain, 1);
  after.arguments[0][0] = mp_buffer_retain(l.results[0]);
  launch_go(&after);
  gate_await_inside(1);
  mp_client_release(client);
  launch_expect_error(&after, 0, MP_CANCELLED, "the client was closed");
  for (uint32_t d = 0; d < 3; ++d) {
    launch_expect_error(&queued, d, MP_CANCELLED, "the client was closed");
  }
  uint32_t num_out = 0;
  for (uint32_t d = 0; d < 3; ++d) num_out += !is_over(&l, d);
  assert_true(num_out >= 1);
  gate_open();
  for (uint32_t d = 0; d < 3; ++d) {
    launch_expect_error(&l, d, MP_CANCELLED, "the client was closed");
  }
  launch_end(&l);
  launch_end(&queued);
  launch_end(&after);
  mp_executable_release(call);
  mp_executable_release(plain);
}

static atomic_int g_num_ended;

static XLA_FFI_Error *test_release(XLA_FFI_CallFrame *frame) {
  if (answer_metadata(frame)) return NULL;
  mp_client_release(mp_caller_current());
  atomic_fetch_add(&g_num_ended, 1);
  return NULL;
}

static void a_call_may_end_the_client(void **state) {
  (void)state;
  const XLA_FFI_Handler_Bundle bundle = {.execute = test_release};
  assert_ok(mp_foreign_register_typed(mp_str("test_release"), mp_str("minipod"), &bundle,
                                      (mp_foreign_traits_t){.may_block = true}));
  mp_client_t *client = make_client(1);
  mp_executable_t *call = compile(client, 1, CALL("y", "test_release", "x"));
  test_launch_t l;
  launch_value(&l, call, 1);
  launch_expect_error(&l, 0, MP_CANCELLED, "the client was closed");
  assert_int_equal(atomic_load(&g_num_ended), 1);
  launch_end(&l);
  mp_executable_release(call);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(calls_that_wait_hold_no_worker),
      cmocka_unit_test(results_and_calls_keep_their_order),
      cmocka_unit_test(launches_in_side_streams_have_their_own_memory),
      cmocka_unit_test(a_donation_in_a_side_stream_spares_queued_readers),
      cmocka_unit_test(a_call_may_launch_on_its_own_device),
      cmocka_unit_test(a_call_may_launch_collectives_on_devices_that_wait_for_it),
      cmocka_unit_test(a_call_may_launch_a_program_that_calls),
      cmocka_unit_test(programs_that_call_do_not_wait_for_those_of_other_threads),
      cmocka_unit_test(programs_with_calls_keep_their_threads_order_in_side_streams),
      cmocka_unit_test(programs_do_not_wait_for_those_that_wait_for_a_call),
      cmocka_unit_test(calls_may_wait_for_each_other),
      cmocka_unit_test(a_result_may_come_later),
      cmocka_unit_test(a_failure_is_that_of_all_participants),
      cmocka_unit_test(no_thread_is_an_error_of_the_launch),
      cmocka_unit_test(a_run_that_is_out_outlasts_the_failure),
      cmocka_unit_test(the_client_may_end_while_runs_are_out),
      cmocka_unit_test(a_call_may_end_the_client),
  };
  return cmocka_run_group_tests(tests, register_all, NULL);
}
