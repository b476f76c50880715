// Torture of clients through their table: fallible forms of what pjrt_test.h does, and programs
// that are run on made-up arguments and compared with how they went without failure.
#ifndef MINIPOD_TESTS_UNIT_TORTURE_TORTURE_PJRT_H_
#define MINIPOD_TESTS_UNIT_TORTURE_TORTURE_PJRT_H_

#include "pjrt/pjrt_objects.h"
#include "sim/base/proto.h"
#include "sim/runtime/devices/device_impl.h"
#include "tests/unit/support/pjrt_test.h"
#include "tests/unit/torture/torture.h"

enum { TORTURE_MAX_DEVICES = 8, TORTURE_MAX_VALUES = 16 };

// Destroys the error.
static inline bool survived(PJRT_Error *error) {
  if (error == NULL) return true;
  const char *message = NULL;
  size_t size = 0;
  const mp_status_code_t code = (mp_status_code_t)error->vtable->get_code(error);
  error->vtable->message(error, &message, &size);
  const bool has_survived = torture_survived_code(code, message);
  error->vtable->destroy(error);
  return has_survived;
}

// An error that was asked for, or the one of the torture. Destroys it.
static inline void expect_error_of(PJRT_Error *error, PJRT_Error_Code code) {
  assert_non_null(error);
  if (error->vtable->get_code(error) == code) {
    error->vtable->destroy(error);
  } else {
    (void)survived(error);
  }
}

// ---- Clients ----

typedef struct {
  const char *name, *value;
} torture_option_t;

// A machine description, so that hwloc need not detect the real one.
#define TORTURE_MACHINE \
  { "machine", "pack:1 core:2 pu:1" }

// `options` end with an empty name.
static inline bool try_client(const torture_option_t *options, PJRT_Client **out_client) {
  PJRT_NamedValue values[8];
  PJRT_Client_Create_Args args = ARGS(PJRT_Client_Create, kv_try_get_user_arg);
  for (; options->name != NULL; ++options) {
    values[args.num_options++] = mp_pjrt_named_string(options->name, options->value);
  }
  args.create_options = values;
  if (!survived(api()->PJRT_Client_Create(&args))) return false;
  *out_client = args.client;
  return true;
}

// All that the client's memories say is in use, by both of its books.
static inline int64_t books_of(const PJRT_Client *client) {
  if (client == NULL) return 0;
  int64_t sum = 0;
  for (size_t i = 0; i < client->num_addressable_memories; ++i) {
    mp_memory_stats_t stats;
    mp_memory_get_stats(client->memories[i].memory, &stats);
    sum += stats.bytes_in_use;
  }
  return sum + (int64_t)atomic_load(&client->client->budget.bytes_in_use);
}

// ---- Programs ----

static inline bool try_write_options(mp_strbuf_t *out, uint64_t replicas, uint64_t partitions) {
  write_options(out, replicas, partitions);
  return torture_survived(mp_strbuf_status(out));
}

typedef struct {
  const char *code;
  size_t size;
  uint32_t replicas, partitions;
} torture_code_t;

static inline bool try_compile(PJRT_Client *client, const torture_code_t *code,
                               PJRT_LoadedExecutable **out_loaded) {
  PJRT_Program program = {.struct_size = PJRT_STRUCT_SIZE(PJRT_Program, format_size),
                          .code = (char *)code->code,
                          .code_size = code->size,
                          .format = "mlir",
                          .format_size = 4};
  mp_strbuf_t options;
  PJRT_Client_Compile_Args args = ARGS(PJRT_Client_Compile, executable);
  bool is_well = try_write_options(&options, code->replicas, code->partitions);
  args.client = client;
  args.program = &program;
  args.compile_options = mp_strbuf_text(&options);
  args.compile_options_size = options.size;
  is_well = is_well && survived(api()->PJRT_Client_Compile(&args));
  mp_strbuf_deinit(&options);
  if (is_well) *out_loaded = args.executable;
  return is_well;
}

// ---- Arguments ----

// The i-th element of argument `number` on device `device`, of any type.
static inline void make_element(mp_dtype_t dtype, size_t i, uint32_t number, uint32_t device,
                                void *to) {
  const size_t mixed = i * 7 + number * 3 + device;
  const float small = 0.25f * (float)(mixed % 13) + (mixed % 5 == 0 ? 1.0f : 0.0f);
  if (dtype == MP_DTYPE_F32) {
    memcpy(to, &small, sizeof(small));
  } else {
    memset(to, 0, mp_dtype_size(dtype));
    *(unsigned char *)to = (unsigned char)(mixed % (dtype == MP_DTYPE_BOOL ? 2 : 3));
  }
}

// make_element gives the same again after so many elements: 13 x 5 x 3 x 2.
enum { TORTURE_PERIOD = 390 };

static inline void make_argument(const mp_program_io_t *io, uint32_t number, uint32_t device,
                                 unsigned char *to) {
  const size_t size = mp_dtype_size(io->type->dtype);
  size_t made = 0;
  for (size_t i = 0; i < TORTURE_PERIOD && made < io->bytes; ++i, made += size) {
    make_element(io->type->dtype, i, number, device, to + made);
  }
  while (made < io->bytes) {
    const size_t more = made < io->bytes - made ? made : io->bytes - made;
    memcpy(to + made, to, more);
    made += more;
  }
}

// ---- Launches ----

typedef struct {
  PJRT_Client *client;
  PJRT_LoadedExecutable *loaded;
  const mp_program_t *program;
  size_t num_devices;
  unsigned char *results[TORTURE_MAX_DEVICES][TORTURE_MAX_VALUES];  // without failure; NULL: open
  PJRT_Buffer *inputs[TORTURE_MAX_DEVICES][TORTURE_MAX_VALUES];
  PJRT_Buffer *outputs[TORTURE_MAX_DEVICES][TORTURE_MAX_VALUES];
  PJRT_Event *done[TORTURE_MAX_DEVICES];
} torture_launch_t;

// Compiles; arguments and results are those of the devices of this process.
static inline bool try_load(PJRT_Client *client, const torture_code_t *code,
                            torture_launch_t *out) {
  *out = (torture_launch_t){.client = client};
  if (!try_compile(client, code, &out->loaded)) return false;
  out->program = out->loaded->executable->program;
  out->num_devices = out->loaded->num_addressable;
  assert_true(out->num_devices <= TORTURE_MAX_DEVICES);
  assert_true(out->program->num_params <= TORTURE_MAX_VALUES);
  assert_true(out->program->num_results <= TORTURE_MAX_VALUES);
  return true;
}

static inline bool try_input(torture_launch_t *l, size_t device, uint32_t number) {
  const mp_program_io_t *io = &l->program->params[number];
  PJRT_Device *place = l->loaded->addressable_list[device];
  unsigned char *data = malloc(io->bytes + 1);
  make_argument(io, number, l->loaded->logical[device], data);
  const host_array_t array = {
      .type = (PJRT_Buffer_Type)mp_dtype_number(io->type->dtype, MP_NUMBERS_PJRT),
      .data = data,
      .dims = io->type->dims,
      .rank = io->type->rank};
  const bool is_well =
      survived(try_put(l->client, place->memories[io->memory], array, &l->inputs[device][number]));
  free(data);
  return is_well;
}

static inline bool try_inputs(torture_launch_t *l) {
  bool is_well = true;
  for (size_t d = 0; d < l->num_devices; ++d) {
    for (uint32_t p = 0; p < l->program->num_params && is_well; ++p) is_well = try_input(l, d, p);
  }
  return is_well;
}

// A launch that was refused leaves its arguments as they were.
static inline void expect_inputs(const torture_launch_t *l) {
  for (size_t d = 0; d < l->num_devices; ++d) {
    for (uint32_t p = 0; p < l->program->num_params; ++p) {
      const mp_program_io_t *io = &l->program->params[p];
      mp_buffer_t *buffer = l->inputs[d][p]->buffer;
      assert_false(mp_buffer_is_deleted(buffer));
      void *data = NULL;
      if (!torture_survived(mp_buffer_acquire_external(buffer, &data))) continue;
      unsigned char *wanted = malloc(io->bytes + 1);
      make_argument(io, p, l->loaded->logical[d], wanted);
      assert_memory_equal(data, wanted, io->bytes);
      free(wanted);
      mp_buffer_release_external(buffer);
    }
  }
}

static inline bool try_execute(torture_launch_t *l) {
  PJRT_Buffer *const *arguments[TORTURE_MAX_DEVICES];
  PJRT_Buffer **outputs[TORTURE_MAX_DEVICES];
  for (size_t d = 0; d < l->num_devices; ++d) {
    arguments[d] = l->inputs[d];
    outputs[d] = l->outputs[d];
  }
  PJRT_LoadedExecutable_Execute_Args args = ARGS(PJRT_LoadedExecutable_Execute, execute_device);
  args.executable = l->loaded;
  args.argument_lists = arguments;
  args.num_devices = l->num_devices;
  args.num_args = l->program->num_params;
  args.output_lists = outputs;
  args.device_complete_events = l->done;
  return survived(api()->PJRT_LoadedExecutable_Execute(&args));
}

// The first results are those that all later ones must equal.
static inline void keep_or_compare(torture_launch_t *l, size_t device, uint32_t number,
                                   unsigned char *data) {
  unsigned char **wanted = &l->results[device][number];
  if (*wanted == NULL) {
    *wanted = data;
    return;
  }
  assert_memory_equal(data, *wanted, l->program->results[number].bytes);
  free(data);
}

static inline void fetch(torture_launch_t *l) {
  for (size_t d = 0; d < l->num_devices; ++d) {
    for (uint32_t r = 0; r < l->program->num_results; ++r) {
      const size_t bytes = l->program->results[r].bytes;
      unsigned char *data = calloc(bytes + 1, 1);
      if (survived(try_get(l->outputs[d][r], data, bytes))) {
        keep_or_compare(l, d, r, data);
      } else {
        free(data);
      }
    }
  }
}

static inline void drop_buffer(PJRT_Buffer **buffer) {
  if (*buffer != NULL) destroy_buffer(*buffer);
  *buffer = NULL;
}

static inline void drop_launch(torture_launch_t *l) {
  for (size_t d = 0; d < l->num_devices; ++d) {
    for (int i = 0; i < TORTURE_MAX_VALUES; ++i) {
      drop_buffer(&l->inputs[d][i]);
      drop_buffer(&l->outputs[d][i]);
    }
  }
}

// From arguments to results, all of which must be right, and everything given back.
static inline void attempt_launch(torture_launch_t *l) {
  if (try_inputs(l)) {
    if (try_execute(l)) {
      for (size_t d = 0; d < l->num_devices; ++d) (void)survived(await_event(l->done[d]));
      fetch(l);
    } else {
      expect_inputs(l);
    }
  }
  drop_launch(l);
}

static inline void unload(torture_launch_t *l) {
  for (size_t d = 0; d < l->num_devices; ++d) {
    for (int i = 0; i < TORTURE_MAX_VALUES; ++i) free(l->results[d][i]);
  }
  destroy_loaded(l->loaded);
}

#endif  // MINIPOD_TESTS_UNIT_TORTURE_TORTURE_PJRT_H_
