// Torture: launches of programs of every kind, on one device and on several, with donation, with
// pending arguments, and programs that fail by themselves.
#include "tests/unit/support/fixtures.h"
#include "tests/unit/torture/torture_pjrt.h"
#include "tests/unit/torture/torture_texts.h"

enum { MAX_ROWS = 120 };

static PJRT_Client *g_client;
static torture_launch_t g_launch;

static int64_t client_books(void) {
  return books_of(g_client);
}

static void open_program(const void *subject) {
  static const torture_option_t options[] = {
      TORTURE_MACHINE, {"num_devices", "4"}, {"workers", "3"}, {NULL, NULL}};
  assert_true(try_client(options, &g_client));
  assert_true(try_load(g_client, subject, &g_launch));
}

static void close_program(void) {
  unload(&g_launch);
  destroy_client(g_client);
  g_client = NULL;
}

static void run_program(const void *subject) {
  (void)subject;
  attempt_launch(&g_launch);
}

// Three launches at once of which each donates the results of the one before.
static void run_in_a_chain(const void *subject) {
  (void)subject;
  torture_launch_t *l = &g_launch;
  bool is_well = try_inputs(l);
  for (int round = 0; round < 3 && is_well; ++round) {
    is_well = try_execute(l);
    for (size_t d = 0; d < l->num_devices && is_well; ++d) {
      destroy_event(l->done[d]);
      drop_buffer(&l->inputs[d][0]);
      if (round == 2) continue;
      l->inputs[d][0] = l->outputs[d][0];
      l->outputs[d][0] = NULL;
    }
  }
  if (is_well) fetch(l);
  drop_launch(l);
}

// ---- Arguments ----

// With an address of the argument outside, the program works on a copy and the argument stays.
static void run_on_seen_arguments(const void *subject) {
  (void)subject;
  torture_launch_t *l = &g_launch;
  if (try_inputs(l)) {
    bool are_seen = true;
    for (uint32_t p = 0; p < l->program->num_params && are_seen; ++p) {
      PJRT_Buffer_IncreaseExternalReferenceCount_Args args =
          ARGS(PJRT_Buffer_IncreaseExternalReferenceCount, buffer);
      args.buffer = l->inputs[0][p];
      are_seen = survived(api()->PJRT_Buffer_IncreaseExternalReferenceCount(&args));
    }
    if (are_seen && try_execute(l)) {
      (void)survived(await_event(l->done[0]));
      fetch(l);
    }
    expect_inputs(l);
  }
  drop_launch(l);
}

// An argument that comes later than the launch: a copy of a buffer that is not filled yet.
typedef struct {
  PJRT_AsyncHostToDeviceTransferManager *manager;
  PJRT_Buffer *source;
  unsigned char *data;
} late_t;

static bool try_late_input(uint32_t number, late_t *late) {
  const mp_program_io_t *io = &g_launch.program->params[number];
  PJRT_ShapeSpec spec = {
      .struct_size = PJRT_STRUCT_SIZE(PJRT_ShapeSpec, element_type),
      .dims = io->type->dims,
      .num_dims = io->type->rank,
      .element_type = (PJRT_Buffer_Type)mp_dtype_number(io->type->dtype, MP_NUMBERS_PJRT)};
  PJRT_Client_CreateBuffersForAsyncHostToDevice_Args make =
      ARGS(PJRT_Client_CreateBuffersForAsyncHostToDevice, transfer_manager);
  make.client = g_client;
  make.shape_specs = &spec;
  make.num_shape_specs = 1;
  make.memory = memory_of(device_of(g_client, 1), 0);
  if (!survived(api()->PJRT_Client_CreateBuffersForAsyncHostToDevice(&make))) return false;
  late->manager = make.transfer_manager;
  late->data = malloc(io->bytes + 1);
  make_argument(io, number, 0, late->data);
  PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args retrieve =
      ARGS(PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer, buffer_out);
  retrieve.transfer_manager = late->manager;
  if (!survived(api()->PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer(&retrieve))) {
    return false;
  }
  late->source = retrieve.buffer_out;
  PJRT_Buffer_CopyToDevice_Args copy = ARGS(PJRT_Buffer_CopyToDevice, dst_buffer);
  copy.buffer = late->source;
  copy.dst_device = g_launch.loaded->addressable_list[0];
  if (!survived(api()->PJRT_Buffer_CopyToDevice(&copy))) return false;
  g_launch.inputs[0][number] = copy.dst_buffer;
  return true;
}

static void end_late_input(uint32_t number, late_t *late) {
  if (late->manager == NULL) return;
  const mp_program_io_t *io = &g_launch.program->params[number];
  PJRT_AsyncHostToDeviceTransferManager_TransferData_Args send =
      ARGS(PJRT_AsyncHostToDeviceTransferManager_TransferData, done_with_h2d_transfer);
  send.transfer_manager = late->manager;
  send.data = late->data;
  send.transfer_size = (int64_t)io->bytes;
  send.is_last_transfer = true;
  if (survived(api()->PJRT_AsyncHostToDeviceTransferManager_TransferData(&send))) {
    (void)survived(await_event(send.done_with_h2d_transfer));
  }
  PJRT_AsyncHostToDeviceTransferManager_Destroy_Args destroy =
      ARGS(PJRT_AsyncHostToDeviceTransferManager_Destroy, transfer_manager);
  destroy.transfer_manager = late->manager;
  expect_ok(api()->PJRT_AsyncHostToDeviceTransferManager_Destroy(&destroy));
  drop_buffer(&late->source);
  free(late->data);
}

static void run_on_late_arguments(const void *subject) {
  (void)subject;
  torture_launch_t *l = &g_launch;
  late_t late[TORTURE_MAX_VALUES] = {{0}};
  bool is_well = true;
  for (uint32_t p = 0; p < l->program->num_params && is_well; ++p) {
    is_well = try_late_input(p, &late[p]);
  }
  is_well = is_well && try_execute(l);
  for (uint32_t p = 0; p < l->program->num_params; ++p) end_late_input(p, &late[p]);
  if (is_well) {
    (void)survived(await_event(l->done[0]));
    fetch(l);
  }
  drop_launch(l);
}

// Arguments of another device: refused by name.
static void run_on_wrong_arguments(const void *subject) {
  (void)subject;
  torture_launch_t *l = &g_launch;
  PJRT_LoadedExecutable wrong = *l->loaded;
  PJRT_Device *list[] = {device_of(g_client, 1)};
  wrong.addressable_list = list;
  PJRT_LoadedExecutable *right = l->loaded;
  l->loaded = &wrong;
  const bool is_well = try_inputs(l);
  l->loaded = right;
  if (is_well) {
    PJRT_Buffer *const *arguments = l->inputs[0];
    PJRT_Buffer **outputs = l->outputs[0];
    PJRT_LoadedExecutable_Execute_Args args = ARGS(PJRT_LoadedExecutable_Execute, execute_device);
    args.executable = l->loaded;
    args.argument_lists = &arguments;
    args.num_devices = 1;
    args.num_args = l->program->num_params;
    args.output_lists = &outputs;
    expect_error_of(api()->PJRT_LoadedExecutable_Execute(&args), PJRT_Error_Code_INVALID_ARGUMENT);
  }
  drop_launch(l);
}

// ---- Devices one by one ----

static bool try_execute_on(torture_launch_t *l, size_t device) {
  PJRT_Buffer *const *arguments = l->inputs[device];
  PJRT_Buffer **outputs = l->outputs[device];
  PJRT_LoadedExecutable_Execute_Args args = ARGS(PJRT_LoadedExecutable_Execute, execute_device);
  args.executable = l->loaded;
  args.argument_lists = &arguments;
  args.num_devices = 1;
  args.num_args = l->program->num_params;
  args.output_lists = &outputs;
  args.device_complete_events = &l->done[device];
  args.execute_device = l->loaded->addressable_list[device];
  return survived(api()->PJRT_LoadedExecutable_Execute(&args));
}

// Each device is launched by itself. When that fails for one, the others hear of it.
static void run_one_by_one(const void *subject) {
  (void)subject;
  torture_launch_t *l = &g_launch;
  bool is_launched[TORTURE_MAX_DEVICES] = {false}, is_well = try_inputs(l);
  for (size_t d = 0; d < l->num_devices && is_well; ++d) {
    is_launched[d] = try_execute_on(l, d);
  }
  for (size_t d = 0; d < l->num_devices; ++d) {
    if (is_launched[d]) (void)survived(await_event(l->done[d]));
  }
  if (torture_is_well()) fetch(l);
  drop_launch(l);
}

// ---- Programs that fail by themselves ----

static void run_to_an_error(PJRT_Error_Code code) {
  torture_launch_t *l = &g_launch;
  if (try_inputs(l) && try_execute(l)) {
    for (size_t d = 0; d < l->num_devices; ++d) {
      PJRT_Error *error = await_event(l->done[d]);
      if (error != NULL)
        expect_error_of(error, code);  // devices that were done before keep their results
    }
    float got[4];
    const size_t last = l->num_devices - 1;
    expect_error_of(try_get(l->outputs[last][0], got, sizeof(got)), code);
  }
  drop_launch(l);
}

static void run_until_stuck(const void *subject) {
  (void)subject;
  run_to_an_error(PJRT_Error_Code_ABORTED);
}

static void run_into_disagreement(const void *subject) {
  (void)subject;
  run_to_an_error(PJRT_Error_Code_INVALID_ARGUMENT);
}

// ---- The whole way ----

static void go_the_whole_way(const void *subject) {
  static const torture_option_t options[] = {
      TORTURE_MACHINE, {"num_devices", "4"}, {"workers", "2"}, {NULL, NULL}};
  PJRT_Client *client = NULL;
  if (!try_client(options, &client)) return;
  torture_launch_t launch;
  if (try_load(client, subject, &launch)) {
    for (int i = 0; i < 2; ++i) attempt_launch(&launch);
    unload(&launch);
  }
  destroy_client(client);
}

// The client goes first; what is in flight ends, well or with words for that.
static void leave_in_flight(const void *subject) {
  static const torture_option_t options[] = {
      TORTURE_MACHINE, {"num_devices", "4"}, {"workers", "2"}, {NULL, NULL}};
  PJRT_Client *client = NULL;
  if (!try_client(options, &client)) return;
  torture_launch_t launch;
  const bool is_loaded = try_load(client, subject, &launch);
  const bool is_launched = is_loaded && try_inputs(&launch) && try_execute(&launch);
  destroy_client(client);
  for (size_t d = 0; is_launched && d < launch.num_devices; ++d) {
    PJRT_Error *error = await_event(launch.done[d]);
    if (error != NULL) expect_error_of(error, PJRT_Error_Code_CANCELLED);
  }
  if (!is_loaded) return;
  drop_launch(&launch);
  unload(&launch);
}

// ---- The table ----

static torture_code_t g_codes[MAX_ROWS];
static torture_row_t g_rows[MAX_ROWS];
static char g_names[MAX_ROWS][100];
static size_t g_count;

static const struct {
  const char *program;
  const char *what;  // after the program's name
  void (*attempt)(const void *subject);
  bool is_whole;  // with a client of its own each time
} k_special[] = {
    {"add", "on late arguments", run_on_late_arguments, false},
    {"add", "on wrong arguments", run_on_wrong_arguments, false},
    {"add", "the whole way", go_the_whole_way, true},
    {"add large arrays", "on late arguments", run_on_late_arguments, false},
    {"add large arrays", "the whole way", go_the_whole_way, true},
    {"donate", "on late arguments", run_on_late_arguments, false},
    {"donate", "on seen arguments", run_on_seen_arguments, false},
    {"donate on four devices in turns", "in a chain", run_in_a_chain, false},
    {"sum", "one by one", run_one_by_one, false},
    {"sum", "the whole way", go_the_whole_way, true},
    {"sums of large arrays in a loop", "left in flight", leave_in_flight, true},
    {"send and receive", "one by one", run_one_by_one, false},
    {"send and receive", "the whole way", go_the_whole_way, true},
    {"stuck", "until that shows", run_until_stuck, false},
    {"different collectives", "meet", run_into_disagreement, false},
};
enum { NUM_SPECIAL = sizeof(k_special) / sizeof(k_special[0]) };

static void add_row(const char *program, const char *text, const char *what,
                    void (*attempt)(const void *subject), bool is_whole) {
  if (g_count == MAX_ROWS) return;
  g_codes[g_count] = (torture_code_t){.code = text, .size = strlen(text)};
  snprintf(g_names[g_count], sizeof(g_names[0]), "%s%s%s", program, what[0] == '\0' ? "" : ": ",
           what);
  g_rows[g_count] = (torture_row_t){.name = g_names[g_count],
                                    .open = is_whole ? NULL : open_program,
                                    .attempt = attempt,
                                    .close = is_whole ? NULL : close_program,
                                    .subject = &g_codes[g_count],
                                    .books = is_whole ? NULL : client_books};
  ++g_count;
}

static void add_special(const char *name, const char *text) {
  for (int i = 0; i < NUM_SPECIAL; ++i) {
    if (strcmp(k_special[i].program, name) != 0) continue;
    add_row(name, text, k_special[i].what, k_special[i].attempt, k_special[i].is_whole);
  }
}

static void add_program(const char *name, const char *text) {
  add_row(name, text, "", run_program, false);
  add_special(name, text);
}

int main(int argc, char **argv) {
  fixture_t launches = fixture_read("torture_launches.txt");
  fixture_t errors = fixture_read("torture_errors.txt");
  fixture_t programs = fixture_read("torture_programs.txt");
  torture_texts(launches.data, NULL, add_program);
  torture_texts(errors.data, NULL, add_special);
  torture_texts(programs.data, NULL, add_program);
  const int result = torture_main(g_rows, g_count, argc, argv);
  free(launches.data);
  free(errors.data);
  free(programs.data);
  return result;
}
