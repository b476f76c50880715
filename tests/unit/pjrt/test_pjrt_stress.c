// Many launches at once through the table: 64 devices, four threads whose executables share
// devices, collectives in loops, donation, events destroyed in their callbacks, and a client
// destroyed with work in flight. Meant for the thread sanitizer too.

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/base/proto.h"
#include "tests/unit/support/pjrt_test.h"

enum { NUM_DEVICES = 64, NUM_THREADS = 4, NUM_LAUNCHES = 24, NUM_ELEMENTS = 16 };

// Three rounds of "become the mean of all devices", in place.
static const char program_text[] =
    "module @mean {\n"
    "  func.func public @main(%%x: tensor<16xf32> {tf.aliasing_output = 0 : i32})\n"
    "      -> tensor<16xf32> {\n"
    "    %%zero = stablehlo.constant dense<0> : tensor<i32>\n"
    "    %%one = stablehlo.constant dense<1> : tensor<i32>\n"
    "    %%rounds = stablehlo.constant dense<3> : tensor<i32>\n"
    "    %%n = stablehlo.constant dense<%d.0> : tensor<16xf32>\n"
    "    %%r:2 = stablehlo.while(%%i = %%zero, %%v = %%x) : tensor<i32>, tensor<16xf32>\n"
    "     cond {\n"
    "      %%c = stablehlo.compare LT, %%i, %%rounds : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
    "      stablehlo.return %%c : tensor<i1>\n"
    "    } do {\n"
    "      %%s = \"stablehlo.all_reduce\"(%%v) ({\n"
    "      ^bb0(%%p: tensor<f32>, %%q: tensor<f32>):\n"
    "        %%t = stablehlo.add %%p, %%q : tensor<f32>\n"
    "        stablehlo.return %%t : tensor<f32>\n"
    "      }) {replica_groups = dense<%s> : tensor<1x%dxi64>}\n"
    "          : (tensor<16xf32>) -> tensor<16xf32>\n"
    "      %%m = stablehlo.divide %%s, %%n : tensor<16xf32>\n"
    "      %%k = stablehlo.add %%i, %%one : tensor<i32>\n"
    "      stablehlo.return %%k, %%m : tensor<i32>, tensor<16xf32>\n"
    "    }\n"
    "    return %%r#1 : tensor<16xf32>\n"
    "  }\n"
    "}\n";

typedef struct {
  PJRT_Client *client;
  int first, count;  // the devices: first, first + 1, ...
  bool is_reversed;
  float value;
  PJRT_LoadedExecutable *loaded;
  PJRT_Buffer *buffers[NUM_DEVICES];
} party_t;

static int device_number(const party_t *party, int replica) {
  return party->first + (party->is_reversed ? party->count - 1 - replica : replica);
}

static void write_party_options(const party_t *party, mp_strbuf_t *out) {
  mp_strbuf_t build, assignment, devices;
  int64_t ids[NUM_DEVICES];
  for (int i = 0; i < party->count; ++i) ids[i] = device_number(party, i);
  mp_strbuf_init(out);
  mp_strbuf_init(&build);
  mp_strbuf_init(&assignment);
  mp_strbuf_init(&devices);
  mp_proto_put_packed(&devices, 1, ids, (size_t)party->count);
  mp_proto_put_varint(&assignment, 1, (uint64_t)party->count);
  mp_proto_put_varint(&assignment, 2, 1);
  mp_proto_put_message(&assignment, 3, &devices);
  mp_proto_put_varint(&build, 4, (uint64_t)party->count);
  mp_proto_put_varint(&build, 5, 1);
  mp_proto_put_message(&build, 9, &assignment);
  mp_proto_put_message(out, 3, &build);
  mp_strbuf_deinit(&build);
  mp_strbuf_deinit(&assignment);
  mp_strbuf_deinit(&devices);
}

static void compile(party_t *party) {
  mp_strbuf_t text, groups, options;
  mp_strbuf_init(&text);
  mp_strbuf_init(&groups);
  for (int i = 0; i < party->count; ++i) {
    mp_strbuf_printf(&groups, "%s%d", i == 0 ? "[[" : ", ", i);
  }
  mp_strbuf_puts(&groups, "]]");
  mp_strbuf_printf(&text, program_text, party->count, mp_strbuf_text(&groups), party->count);
  write_party_options(party, &options);
  PJRT_Program program = {.struct_size = PJRT_STRUCT_SIZE(PJRT_Program, format_size),
                          .code = (char *)mp_strbuf_text(&text),
                          .code_size = text.size,
                          .format = "mlir",
                          .format_size = 4};
  PJRT_Client_Compile_Args args = ARGS(PJRT_Client_Compile, executable);
  args.client = party->client;
  args.program = &program;
  args.compile_options = mp_strbuf_text(&options);
  args.compile_options_size = options.size;
  expect_ok(api()->PJRT_Client_Compile(&args));
  party->loaded = args.executable;
  mp_strbuf_deinit(&text);
  mp_strbuf_deinit(&groups);
  mp_strbuf_deinit(&options);
}

static void fill(party_t *party) {
  float data[NUM_ELEMENTS];
  for (int i = 0; i < NUM_ELEMENTS; ++i) data[i] = party->value;
  for (int i = 0; i < party->count; ++i) {
    PJRT_Device *device = device_of(party->client, device_number(party, i));
    party->buffers[i] = put_f32(party->client, device, data, NUM_ELEMENTS);
  }
}

static atomic_int callbacks_run;

// user_arg is the event, which the callback destroys.
static void on_done(PJRT_Error *error, void *user_arg) {
  if (error != NULL) error->vtable->destroy(error);
  PJRT_Event_Destroy_Args args = ARGS(PJRT_Event_Destroy, event);
  args.event = user_arg;
  api()->PJRT_Event_Destroy(&args);
  atomic_fetch_add(&callbacks_run, 1);
}

// Replaces the party's buffers by the launch's results; the donated ones are destroyed at once.
static bool launch(party_t *party) {
  PJRT_Buffer *const *arguments[NUM_DEVICES];
  PJRT_Buffer *results[NUM_DEVICES] = {NULL}, **outputs[NUM_DEVICES];
  PJRT_Event *done[NUM_DEVICES] = {NULL};
  for (int i = 0; i < party->count; ++i) {
    arguments[i] = &party->buffers[i];
    outputs[i] = &results[i];
  }
  PJRT_LoadedExecutable_Execute_Args args = ARGS(PJRT_LoadedExecutable_Execute, execute_device);
  args.executable = party->loaded;
  args.argument_lists = arguments;
  args.num_devices = (size_t)party->count;
  args.num_args = 1;
  args.output_lists = outputs;
  args.device_complete_events = done;
  PJRT_Error *error = api()->PJRT_LoadedExecutable_Execute(&args);
  if (error != NULL) {
    error->vtable->destroy(error);
    return false;
  }
  for (int i = 0; i < party->count; ++i) {
    destroy_buffer(party->buffers[i]);
    party->buffers[i] = results[i];
    PJRT_Event_OnReady_Args on_ready = ARGS(PJRT_Event_OnReady, user_arg);
    on_ready.event = done[i];
    on_ready.callback = on_done;
    on_ready.user_arg = done[i];
    error = api()->PJRT_Event_OnReady(&on_ready);
    if (error != NULL) error->vtable->destroy(error);
  }
  return true;
}

// No assertions here: cmocka's jump out of the thread that runs the test only.
static void *run_party(void *context) {
  party_t *party = context;
  for (int i = 0; i < NUM_LAUNCHES; ++i) {
    if (!launch(party)) return NULL;
  }
  return party;
}

static void destroy_party(party_t *party) {
  for (int i = 0; i < party->count; ++i) destroy_buffer(party->buffers[i]);
  PJRT_LoadedExecutable_Destroy_Args args = ARGS(PJRT_LoadedExecutable_Destroy, executable);
  args.executable = party->loaded;
  expect_ok(api()->PJRT_LoadedExecutable_Destroy(&args));
}

static void make_parties(PJRT_Client *client, party_t *parties) {
  static const party_t shapes[NUM_THREADS] = {
      {.first = 0, .count = 64},
      {.first = 16, .count = 32, .is_reversed = true},
      {.first = 0, .count = 48},
      {.first = 60, .count = 4, .is_reversed = true},
  };
  for (int i = 0; i < NUM_THREADS; ++i) {
    parties[i] = shapes[i];
    parties[i].client = client;
    parties[i].value = (float)(i + 1);
    compile(&parties[i]);
    fill(&parties[i]);
  }
}

static void overlapping_launches_come_to_the_right_end(void **state) {
  (void)state;
  PJRT_Client *client = make_client(NUM_DEVICES);
  party_t parties[NUM_THREADS];
  pthread_t threads[NUM_THREADS];
  make_parties(client, parties);
  atomic_store(&callbacks_run, 0);
  int wanted_callbacks = 0;
  for (int i = 0; i < NUM_THREADS; ++i) {
    assert_int_equal(pthread_create(&threads[i], NULL, run_party, &parties[i]), 0);
    wanted_callbacks += parties[i].count * NUM_LAUNCHES;
  }
  for (int i = 0; i < NUM_THREADS; ++i) {
    void *result = NULL;
    pthread_join(threads[i], &result);
    assert_non_null(result);
  }
  for (int i = 0; i < NUM_THREADS; ++i) {
    for (int d = 0; d < parties[i].count; ++d) {
      float got[NUM_ELEMENTS];
      get(parties[i].buffers[d], got, sizeof(got));
      for (int e = 0; e < NUM_ELEMENTS; ++e) assert_true(got[e] == parties[i].value);
    }
    destroy_party(&parties[i]);
  }
  destroy_client(client);
  assert_int_equal(atomic_load(&callbacks_run), wanted_callbacks);
}

static void a_client_goes_while_its_devices_work(void **state) {
  (void)state;
  for (int round = 0; round < 3; ++round) {
    PJRT_Client *client = make_client(NUM_DEVICES);
    party_t parties[NUM_THREADS];
    make_parties(client, parties);
    atomic_store(&callbacks_run, 0);
    int wanted_callbacks = 0;
    for (int i = 0; i < NUM_THREADS; ++i) {
      for (int k = 0; k < 4; ++k) assert_true(launch(&parties[i]));
      wanted_callbacks += 4 * parties[i].count;
    }
    destroy_client(client);
    // Every event was set, well or badly, and its callback has run.
    assert_int_equal(atomic_load(&callbacks_run), wanted_callbacks);
    for (int i = 0; i < NUM_THREADS; ++i) destroy_party(&parties[i]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(overlapping_launches_come_to_the_right_end),
      cmocka_unit_test(a_client_goes_while_its_devices_work),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
