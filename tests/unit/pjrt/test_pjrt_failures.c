// Calls that fail half-way: when the caller gets the error, the work that they began is over, or
// was never begun. And launches that wait for a refused call fail, too.

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "sim/base/alloc.h"
#include "sim/base/os/clock.h"
#include "sim/base/proto.h"
#include "tests/unit/support/pjrt_test.h"

// How long a test waits for what must come. Only a failing test waits for so long.
static const double k_long_seconds = 60;

// More than this many bytes are copied by the workers, not by the calling thread.
enum { LARGE_BYTES = 4 << 20 };

static PJRT_Client *client;

// One worker: a call on it that waits for the workers waits for itself.
static int setup(void **state) {
  (void)state;
  const PJRT_NamedValue options[] = {number_option("num_devices", 2), number_option("workers", 1)};
  PJRT_Client_Create_Args args = ARGS(PJRT_Client_Create, kv_try_get_user_arg);
  args.create_options = options;
  args.num_options = 2;
  expect_ok(api()->PJRT_Client_Create(&args));
  client = args.client;
  return 0;
}

static int teardown(void **state) {
  (void)state;
  destroy_client(client);
  return 0;
}

static PJRT_Memory *memory(void) {
  return memory_of(device_of(client, 0), 0);
}

static int64_t bytes_in_use(void) {
  PJRT_Device_MemoryStats_Args stats = ARGS(PJRT_Device_MemoryStats, peak_allocated_bytes_is_set);
  stats.device = device_of(client, 0);
  expect_ok(api()->PJRT_Device_MemoryStats(&stats));
  return stats.bytes_in_use;
}

// True: no error. The only errors are for lack of memory; they are destroyed.
static bool went_well(PJRT_Error *error) {
  if (error == NULL) return true;
  expect_error(error, PJRT_Error_Code_RESOURCE_EXHAUSTED, "out of");
  return false;
}

static bool is_ready(PJRT_Event *event) {
  PJRT_Event_IsReady_Args args = ARGS(PJRT_Event_IsReady, is_ready);
  args.event = event;
  expect_ok(api()->PJRT_Event_IsReady(&args));
  return args.is_ready;
}

static bool wait_until_ready(PJRT_Event *event) {
  const double deadline = mp_clock_seconds() + k_long_seconds;
  while (!is_ready(event)) {
    if (mp_clock_seconds() > deadline) return false;
    usleep(1000);
  }
  return true;
}

// ---- Buffers that are filled later ----

typedef struct {
  PJRT_AsyncHostToDeviceTransferManager *manager;
  PJRT_Buffer *buffer;
} later_t;

static void begin_later(later_t *later, int64_t count) {
  PJRT_ShapeSpec spec = {.struct_size = PJRT_STRUCT_SIZE(PJRT_ShapeSpec, element_type),
                         .dims = &count,
                         .num_dims = 1,
                         .element_type = PJRT_Buffer_Type_F32};
  PJRT_Client_CreateBuffersForAsyncHostToDevice_Args create =
      ARGS(PJRT_Client_CreateBuffersForAsyncHostToDevice, transfer_manager);
  create.client = client;
  create.shape_specs = &spec;
  create.num_shape_specs = 1;
  create.memory = memory();
  expect_ok(api()->PJRT_Client_CreateBuffersForAsyncHostToDevice(&create));
  PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args retrieve =
      ARGS(PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer, buffer_out);
  retrieve.transfer_manager = create.transfer_manager;
  expect_ok(api()->PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer(&retrieve));
  *later = (later_t){create.transfer_manager, retrieve.buffer_out};
}

static PJRT_Error *try_fill(later_t *later, const void *data, int64_t bytes, bool is_last,
                            PJRT_Event **out_done) {
  PJRT_AsyncHostToDeviceTransferManager_TransferData_Args transfer =
      ARGS(PJRT_AsyncHostToDeviceTransferManager_TransferData, done_with_h2d_transfer);
  transfer.transfer_manager = later->manager;
  transfer.data = data;
  transfer.transfer_size = bytes;
  transfer.is_last_transfer = is_last;
  PJRT_Error *error = api()->PJRT_AsyncHostToDeviceTransferManager_TransferData(&transfer);
  if (error == NULL) *out_done = transfer.done_with_h2d_transfer;
  return error;
}

static void fill(later_t *later, const void *data, int64_t bytes) {
  PJRT_Event *done = NULL;
  expect_ok(try_fill(later, data, bytes, true, &done));
  expect_ok(await_event(done));
}

static void end_later(later_t *later) {
  PJRT_AsyncHostToDeviceTransferManager_Destroy_Args destroy =
      ARGS(PJRT_AsyncHostToDeviceTransferManager_Destroy, transfer_manager);
  destroy.transfer_manager = later->manager;
  expect_ok(api()->PJRT_AsyncHostToDeviceTransferManager_Destroy(&destroy));
  destroy_buffer(later->buffer);
}

// ---- Reads whose destination comes later ----

static void answer(const PJRT_Buffer_CopyRawToHostFuture_Args *future, void *dst) {
  PJRT_Buffer_CopyRawToHostFuture_Callback_Args ready = {
      .struct_size = PJRT_STRUCT_SIZE(PJRT_Buffer_CopyRawToHostFuture_Callback_Args, dst),
      .callback_data = future->callback_data,
      .dst = dst};
  future->future_ready_callback(&ready);
}

static PJRT_Buffer_CopyRawToHostFuture_Args begin_read(PJRT_Buffer *buffer, int64_t bytes) {
  PJRT_Buffer_CopyRawToHostFuture_Args future =
      ARGS(PJRT_Buffer_CopyRawToHostFuture, future_ready_callback);
  future.buffer = buffer;
  future.transfer_size = bytes;
  expect_ok(api()->PJRT_Buffer_CopyRawToHostFuture(&future));
  return future;
}

// When the event says that the read has failed, its caller frees the destination: nothing may be
// written there any more, also not when the source is there at last.
static void a_failed_read_writes_nothing_afterwards(void **state) {
  (void)state;
  static const float source[4] = {1, 2, 3, 4}, untouched[4] = {-1, -1, -1, -1};
  int failures = 0;
  for (int n = 1; n < 10; ++n) {
    later_t later;
    begin_later(&later, 4);
    PJRT_Buffer_CopyRawToHostFuture_Args future = begin_read(later.buffer, sizeof(source));
    float got[4];
    memcpy(got, untouched, sizeof(got));
    mp_alloc_fail_at(n, 0);
    answer(&future, got);
    mp_alloc_fail_at(0, 0);
    const bool has_failed = is_ready(future.event);  // the source is not written yet
    failures += has_failed;
    fill(&later, source, sizeof(source));
    assert_true(wait_until_ready(future.event));
    assert_int_equal(went_well(await_event(future.event)), !has_failed);
    assert_memory_equal(got, has_failed ? untouched : source, sizeof(got));
    end_later(&later);
  }
  assert_true(failures > 0);
  assert_int_equal(bytes_in_use(), 0);
}

static void a_read_may_be_called_off(void **state) {
  (void)state;
  static const float source[4] = {1, 2, 3, 4};
  PJRT_Buffer *buffer = put_f32(client, device_of(client, 0), source, 4);
  PJRT_Buffer_CopyRawToHostFuture_Args future = begin_read(buffer, sizeof(source));
  PJRT_Buffer_CopyRawToHostFuture_Callback_Args ready = {
      .struct_size = PJRT_STRUCT_SIZE(PJRT_Buffer_CopyRawToHostFuture_Callback_Args, dst),
      .callback_data = future.callback_data,
      .error_code = PJRT_Error_Code_CANCELLED,
      .error_message = "no room for it",
      .error_message_size = strlen("no room for it")};
  future.future_ready_callback(&ready);
  expect_error(await_event(future.event), PJRT_Error_Code_CANCELLED, "no room for it");
  destroy_buffer(buffer);
}

// ---- Transfers to the device ----

// A chunk that is refused was not copied, and the buffer has failed.
static void a_refused_chunk_copies_nothing(void **state) {
  (void)state;
  static const float source[4] = {1, 2, 3, 4}, zeros[4] = {0};
  int failures = 0;
  for (int n = 1; n < 10; ++n) {
    later_t later;
    begin_later(&later, 4);
    PJRT_Event *done = NULL;
    expect_ok(try_fill(&later, zeros, sizeof(zeros), false, &done));
    expect_ok(await_event(done));
    PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args where =
        ARGS(PJRT_Buffer_OpaqueDeviceMemoryDataPointer, device_memory_ptr);
    where.buffer = later.buffer;
    expect_ok(api()->PJRT_Buffer_OpaqueDeviceMemoryDataPointer(&where));
    mp_alloc_fail_at(n, 0);
    PJRT_Error *error = try_fill(&later, source, sizeof(source), true, &done);
    mp_alloc_fail_at(0, 0);
    const bool is_well = went_well(error);
    failures += !is_well;
    if (is_well) expect_ok(await_event(done));
    assert_memory_equal(where.device_memory_ptr, is_well ? source : zeros, sizeof(source));
    float got[4];
    assert_int_equal(went_well(try_get(later.buffer, got, sizeof(got))), is_well);
    end_later(&later);
  }
  assert_true(failures > 1);
  assert_int_equal(bytes_in_use(), 0);
}

static void count_deletion(void *data, void *user_arg) {
  (void)data;
  ++*(int *)user_arg;
}

// If making the view fails, the caller still owns the memory.
static void a_failed_view_does_not_call_back(void **state) {
  (void)state;
  static _Alignas(64) float data[16];
  static const int64_t dims[] = {16};
  int failures = 0;
  for (int n = 1; n < 20; ++n) {
    int deletions = 0;
    PJRT_Client_CreateViewOfDeviceBuffer_Args view =
        ARGS(PJRT_Client_CreateViewOfDeviceBuffer, memory);
    view.client = client;
    view.device_buffer_ptr = data;
    view.dims = dims;
    view.num_dims = 1;
    view.element_type = PJRT_Buffer_Type_F32;
    view.device = device_of(client, 0);
    view.on_delete_callback = count_deletion;
    view.on_delete_callback_arg = &deletions;
    mp_alloc_fail_at(n, 0);
    PJRT_Error *error = api()->PJRT_Client_CreateViewOfDeviceBuffer(&view);
    mp_alloc_fail_at(0, 0);
    assert_int_equal(deletions, 0);
    const bool is_well = went_well(error);
    failures += !is_well;
    if (is_well) destroy_buffer(view.buffer);
    assert_int_equal(deletions, is_well);
  }
  assert_true(failures > 2);
  assert_int_equal(bytes_in_use(), 0);
}

// ---- On a worker ----

typedef struct {
  later_t later;
  float *source;
  PJRT_Event *done[8];  // of copies that read the source
  int num_done, failures;
  atomic_bool is_over;
} on_worker_t;

// Large transfers are for the workers, of which this thread is the only one: a call that fails must
// not wait for a copy that it has begun.
static void transfer_until_it_works(PJRT_Error *error, void *user_arg) {
  on_worker_t *w = user_arg;
  expect_ok(error);
  const int64_t count = LARGE_BYTES / (int64_t)sizeof(float);
  PJRT_Client_BufferFromHostBuffer_Args args = ARGS(PJRT_Client_BufferFromHostBuffer, buffer);
  args.client = client;
  args.data = w->source;
  args.type = PJRT_Buffer_Type_F32;
  args.dims = &count;
  args.num_dims = 1;
  args.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes;
  args.memory = memory();
  for (int n = 1;; ++n) {
    mp_alloc_fail_at(n, 0);
    PJRT_Error *failure = api()->PJRT_Client_BufferFromHostBuffer(&args);
    mp_alloc_fail_at(0, 0);
    if (went_well(failure)) break;
    w->failures += 1;
  }
  w->done[w->num_done++] = args.done_with_host_buffer;
  destroy_buffer(args.buffer);
  for (int n = 1; n < 6; ++n) {
    PJRT_Event *done = NULL;
    later_t later;
    begin_later(&later, count);
    mp_alloc_fail_at(n, 0);
    PJRT_Error *failure = try_fill(&later, w->source, LARGE_BYTES, true, &done);
    mp_alloc_fail_at(0, 0);
    if (went_well(failure)) {
      w->done[w->num_done++] = done;
    } else {
      w->failures += 1;
    }
    end_later(&later);
  }
  atomic_store(&w->is_over, true);
}

static void a_call_that_fails_on_a_worker_does_not_wait_for_it(void **state) {
  (void)state;
  static on_worker_t w;  // static: a failing test leaves the worker behind
  w.source = calloc(1, LARGE_BYTES);
  const int64_t count = LARGE_BYTES / (int64_t)sizeof(float);
  begin_later(&w.later, count);
  PJRT_Buffer_ReadyEvent_Args ready = ARGS(PJRT_Buffer_ReadyEvent, event);
  ready.buffer = w.later.buffer;
  expect_ok(api()->PJRT_Buffer_ReadyEvent(&ready));
  PJRT_Event_OnReady_Args on_ready = ARGS(PJRT_Event_OnReady, user_arg);
  on_ready.event = ready.event;
  on_ready.callback = transfer_until_it_works;
  on_ready.user_arg = &w;
  expect_ok(api()->PJRT_Event_OnReady(&on_ready));
  PJRT_Event *done = NULL;
  expect_ok(try_fill(&w.later, w.source, LARGE_BYTES, true, &done));
  const double deadline = mp_clock_seconds() + k_long_seconds;
  while (!atomic_load(&w.is_over) && mp_clock_seconds() < deadline) usleep(1000);
  if (!atomic_load(&w.is_over)) {
    client = make_client(1);  // for the tests that follow: this one has lost its worker
    fail_msg("a call waits for the worker that it was made on");
  }
  assert_true(w.failures > 4);
  for (int i = 0; i < w.num_done; ++i) expect_ok(await_event(w.done[i]));
  expect_ok(await_event(done));
  destroy_event(ready.event);
  end_later(&w.later);
  free(w.source);
}

// ---- Launches that are refused ----

// One replica, on its device alone.
typedef struct {
  PJRT_Buffer *input, *output;
  PJRT_Buffer *const *argument_list;
  PJRT_Buffer **output_list;
  PJRT_Event *done;
  PJRT_ExecuteOptions options;
  PJRT_LoadedExecutable_Execute_Args args;
} single_t;

static void begin_single(single_t *s, PJRT_LoadedExecutable *loaded, int device) {
  static const float ones[4] = {1, 1, 1, 1};
  *s = (single_t){.input = put_f32(client, device_of(client, device), ones, 4),
                  .options = {.struct_size = PJRT_STRUCT_SIZE(PJRT_ExecuteOptions, context)},
                  .args = ARGS(PJRT_LoadedExecutable_Execute, execute_device)};
  s->argument_list = &s->input;
  s->output_list = &s->output;
  s->args.executable = loaded;
  s->args.options = &s->options;
  s->args.argument_lists = &s->argument_list;
  s->args.num_devices = 1;
  s->args.num_args = 1;
  s->args.output_lists = &s->output_list;
  s->args.device_complete_events = &s->done;
  s->args.execute_device = device_of(client, device);
}

static void end_single(single_t *s) {
  destroy_buffer(s->input);
  if (s->output != NULL) destroy_buffer(s->output);
}

static void take_arguments(single_t *s) {
  s->args.num_args = 2;
}
static void take_output_lists(single_t *s) {
  s->args.output_lists = NULL;
}
static void want_sends(single_t *s) {
  s->options.num_send_ops = 1;
}
static void give_no_argument(single_t *s) {
  s->input = NULL;
}

// However a launch on one device is refused: it counts, and its partner's fails with its error.
static void a_refused_call_fails_on_the_other_devices(void **state) {
  (void)state;
  static const struct {
    void (*spoil)(single_t *s);
    PJRT_Error_Code code;
    const char *text;
  } cases[] = {
      {take_arguments, PJRT_Error_Code_INVALID_ARGUMENT, "takes 1 arguments, not 2"},
      {take_output_lists, PJRT_Error_Code_INVALID_ARGUMENT, "output_lists is NULL"},
      {want_sends, PJRT_Error_Code_UNIMPLEMENTED, "send and recv callbacks"},
      {give_no_argument, PJRT_Error_Code_INVALID_ARGUMENT, "argument 0 of device 0 is NULL"},
  };
  PJRT_LoadedExecutable *loaded = compile_text(client, replica_sum_text, 2, 1);
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    single_t waiting, refused;
    begin_single(&waiting, loaded, 0);
    expect_ok(api()->PJRT_LoadedExecutable_Execute(&waiting.args));
    begin_single(&refused, loaded, 1);
    PJRT_Buffer *input = refused.input;
    cases[i].spoil(&refused);
    expect_error(api()->PJRT_LoadedExecutable_Execute(&refused.args), cases[i].code, cases[i].text);
    refused.input = input;
    assert_true(wait_until_ready(waiting.done));
    expect_error(await_event(waiting.done), cases[i].code, cases[i].text);
    end_single(&waiting);
    end_single(&refused);
    // The next ones belong together again.
    single_t next[2];
    for (int d = 0; d < 2; ++d) {
      begin_single(&next[d], loaded, d);
      expect_ok(api()->PJRT_LoadedExecutable_Execute(&next[d].args));
    }
    for (int d = 0; d < 2; ++d) {
      float got[4] = {0};
      expect_ok(await_event(next[d].done));
      get(next[d].output, got, sizeof(got));
      assert_true(got[0] == 2 && got[3] == 2);
      end_single(&next[d]);
    }
  }
  PJRT_LoadedExecutable_Destroy_Args destroy = ARGS(PJRT_LoadedExecutable_Destroy, executable);
  destroy.executable = loaded;
  expect_ok(api()->PJRT_LoadedExecutable_Destroy(&destroy));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_failed_read_writes_nothing_afterwards),
      cmocka_unit_test(a_read_may_be_called_off),
      cmocka_unit_test(a_refused_chunk_copies_nothing),
      cmocka_unit_test(a_failed_view_does_not_call_back),
      cmocka_unit_test(a_refused_call_fails_on_the_other_devices),
      cmocka_unit_test(a_call_that_fails_on_a_worker_does_not_wait_for_it),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
