// Running what a fuzzer made: small programs for few devices, through the real runtime, with
// arguments drawn from the input's bytes. Kernels are guarded (tests/unit/support/guarded.h), loops
// end.
#ifndef MINIPOD_TESTS_FUZZ_FUZZ_EXECUTE_H_
#define MINIPOD_TESTS_FUZZ_FUZZ_EXECUTE_H_

#include <stdio.h>

#include "sim/base/hash.h"
#include "sim/runtime/client.h"
#include "sim/runtime/launch/launch.h"
#include "sim/runtime/runs/executable.h"
#include "tests/unit/support/guarded.h"
#include "tests/unit/support/hostile/hostile_values.h"

// A run that takes this long hangs.
#define FUZZ_SECONDS 15.0

enum {
  FUZZ_DEVICES = 8,
  FUZZ_MAX_BYTES = 64 * 1024,  // of all arrays that are read and written, loops counted once
  FUZZ_MAX_WORK = 256 * 1024,  // elements that a kernel looks at
  FUZZ_MAX_MATRIX = 24,        // rows and columns of what is factorized
  FUZZ_MAX_SCRATCH = 256 * 1024,
  FUZZ_FUEL = 24,  // rounds of all loops together
};

static inline mp_client_t *fuzz_client(void) {
  static mp_client_t *client;
  if (client != NULL) return client;
  const mp_named_value_t values[] = {
      {.name = MP_STR("num_devices"), .type = MP_VALUE_INT64, .int64_value = FUZZ_DEVICES},
      {.name = MP_STR("workers"), .type = MP_VALUE_INT64, .int64_value = 2},
  };
  mp_options_t *options = NULL;
  mp_status_t status = mp_options_create(values, sizeof(values) / sizeof(values[0]), &options);
  if (status == NULL) status = mp_client_create_in(options, NULL, &client);
  if (status != NULL) {
    fprintf(stderr, "no client: %s\n", mp_status_message(status));
    abort();
  }
  mp_options_release(options);
  return client;
}

// How many inputs became programs, and how many of these were run; told at the end.
static struct { unsigned long programs, run; } g_fuzz_counts;

static inline void fuzz_report(void) {
  fprintf(stderr, "%lu programs, %lu of them small enough to be run\n", g_fuzz_counts.programs,
          g_fuzz_counts.run);
}

static inline void fuzz_count(bool was_run) {
  if (g_fuzz_counts.programs++ == 0) atexit(fuzz_report);
  g_fuzz_counts.run += was_run;
}

// ---- which programs are small enough ----

static inline double fuzz_elements(const mp_type_t *type) {
  int64_t count = 0;
  return mp_type_is_tensor(type) && mp_type_num_elements(type, &count) ? (double)count : 0;
}

// Elements that an op looks at, where these are more than its arrays hold.
static inline double fuzz_work(const mp_op_t *op) {
  double work = 0;
  switch (op->code) {
    case MP_OP_REDUCE_WINDOW:
    case MP_OP_SELECT_AND_SCATTER: {
      const mp_type_t *windows =
          op->code == MP_OP_REDUCE_WINDOW ? op->results[0].type : op->operands[1]->type;
      const mp_index_list_t sizes = mp_op_ints(op, MP_ATTR_WINDOW_DIMENSIONS);
      work = fuzz_elements(windows);
      for (uint32_t i = 0; i < sizes.count; ++i) work *= (double)sizes.values[i];
      return work;
    }
    case MP_OP_CONVOLUTION:
      return fuzz_elements(op->results[0].type) * fuzz_elements(op->operands[1]->type);
    case MP_OP_CUSTOM_CALL:
    case MP_OP_CHOLESKY:
    case MP_OP_TRIANGULAR_SOLVE:
      // Cubic in the matrix, and more than once.
      for (uint32_t i = 0; i < op->num_operands; ++i) {
        const mp_type_t *type = op->operands[i]->type;
        for (uint32_t d = 0; mp_type_is_tensor(type) && d < type->rank; ++d) {
          if (type->dims[d] > FUZZ_MAX_MATRIX) work = 2.0 * FUZZ_MAX_WORK;
        }
      }
      return work;
    default:
      return 0;
  }
}

static inline bool fuzz_is_small(const mp_program_t *program) {
  const uint64_t devices = program->num_replicas * (uint64_t)program->num_partitions;
  if (devices > FUZZ_DEVICES) return false;
  if (program->bytes_accessed > FUZZ_MAX_BYTES || program->arena_bytes > FUZZ_MAX_BYTES ||
      program->scratch_bytes > FUZZ_MAX_SCRATCH || program->flops > FUZZ_MAX_WORK) {
    return false;
  }
  double bytes = 0;  // of which two arrays may have more than an integer holds
  for (uint32_t i = 0; i < program->num_params; ++i) bytes += (double)program->params[i].bytes;
  for (uint32_t i = 0; i < program->num_results; ++i) bytes += (double)program->results[i].bytes;
  double work = 0;
  for (uint32_t i = 0; i < program->num_commands; ++i) {
    const mp_kernel_t *kernel = program->commands[i].kernel;
    if (kernel != NULL) work += fuzz_work(kernel->op);
  }
  return bytes <= FUZZ_MAX_BYTES && work <= FUZZ_MAX_WORK;
}

// ---- a run ----

static inline mp_buffer_t *fuzz_argument(mp_device_t *device, const mp_program_io_t *io,
                                         uint64_t *state) {
  const mp_type_t *type = io->type;
  const bool is_tensor = mp_type_is_tensor(type);
  const mp_dtype_t dtype = is_tensor ? type->dtype : MP_DTYPE_BOOL;
  const int64_t no_elements = 0;
  const int64_t *dims = is_tensor ? type->dims : &no_elements;
  char *data = malloc((size_t)io->bytes + 1);
  mp_buffer_t *buffer = NULL;
  if (data == NULL) abort();
  hostile_fill(dtype, io->bytes / mp_dtype_size(dtype), state, data);
  const mp_host_array_t array = {
      .dtype = dtype, .rank = is_tensor ? type->rank : 1, .dims = dims, .data = data};
  mp_status_ignore(mp_buffer_from_host(mp_device_memory(device, io->memory), &array,
                                       MP_HOST_ONLY_DURING_CALL, &buffer, NULL));
  free(data);
  return buffer;
}

static inline void fuzz_await(mp_event_t *done, const mp_program_t *program) {
  if (!mp_event_wait_for(done, FUZZ_SECONDS)) {
    fprintf(stderr, "hangs: %.*s\n", MP_STR_ARG(program->name));
    __builtin_trap();
  }
  mp_status_t status = mp_event_status(done);
  if (mp_status_code(status) == MP_DATA_LOSS) {
    fprintf(stderr, "%s\n", mp_status_message(status));
    __builtin_trap();
  }
  mp_status_release(status);
  mp_event_release(done);
}

static inline void fuzz_read(mp_buffer_t *buffer, const mp_program_t *program) {
  uint64_t bytes = mp_buffer_bytes(buffer);
  char *data = malloc((size_t)bytes + 1);
  mp_event_t *done = NULL;
  mp_status_t status = mp_buffer_to_host(buffer, data, bytes, NULL, &done);
  if (status == NULL) fuzz_await(done, program);
  mp_status_release(status);
  free(data);
}

// The arguments of one device, or what there is of them: true if it is all.
static inline bool fuzz_arguments(mp_executable_t *executable, uint32_t device, uint64_t *state,
                                  mp_buffer_t **arguments) {
  const mp_program_t *program = mp_executable_program(executable);
  for (uint32_t i = 0; i < program->num_params; ++i) {
    arguments[i] =
        fuzz_argument(mp_executable_device(executable, device), &program->params[i], state);
    if (arguments[i] == NULL) return false;
  }
  return true;
}

static inline void fuzz_launch(mp_executable_t *executable, uint64_t *state) {
  const mp_program_t *program = mp_executable_program(executable);
  const uint32_t devices = mp_executable_num_devices(executable);
  mp_buffer_t **arguments[FUZZ_DEVICES], **results[FUZZ_DEVICES];
  mp_event_t *done[FUZZ_DEVICES] = {NULL};
  bool is_ready = true;
  for (uint32_t d = 0; d < devices; ++d) {
    arguments[d] = calloc((size_t)program->num_params + 1, sizeof(*arguments[d]));
    results[d] = calloc((size_t)program->num_results + 1, sizeof(*results[d]));
    if (arguments[d] == NULL || results[d] == NULL) abort();
    is_ready = is_ready && fuzz_arguments(executable, d, state, arguments[d]);
  }
  const mp_launch_t launch = {.arguments = (mp_buffer_t *const *const *)arguments};
  mp_status_t status = is_ready ? mp_executable_launch(executable, &launch, results, done) : NULL;
  for (uint32_t d = 0; d < devices; ++d) {
    if (is_ready && status == NULL) fuzz_await(done[d], program);
    for (uint32_t r = 0; r < program->num_results; ++r) {
      if (results[d][r] != NULL) fuzz_read(results[d][r], program);
      mp_buffer_release(results[d][r]);
    }
    for (uint32_t i = 0; i < program->num_params; ++i) mp_buffer_release(arguments[d][i]);
    free(arguments[d]);
    free(results[d]);
  }
  mp_status_release(status);
}

// Adopts the program and runs it, if it is small: whether it was.
static inline bool fuzz_execute(mp_program_t *program, const uint8_t *data, size_t size) {
  static const uint32_t assignment[FUZZ_DEVICES] = {0, 1, 2, 3, 4, 5, 6, 7};
  uint64_t state = mp_hash_bytes(MP_HASH_START, data, size) | 1;
  const bool is_small = fuzz_is_small(program);
  fuzz_count(is_small);
  if (!is_small || guard_program(program, FUZZ_FUEL) != NULL) {
    mp_program_release(program);
    return false;
  }
  mp_executable_t *executable = NULL;
  mp_status_t status = mp_executable_create(fuzz_client(), program, assignment, &executable);
  if (status == NULL) fuzz_launch(executable, &state);
  mp_executable_release(executable);
  mp_status_release(status);
  return true;
}

#endif  // MINIPOD_TESTS_FUZZ_FUZZ_EXECUTE_H_
