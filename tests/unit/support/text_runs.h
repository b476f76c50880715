// Programs given as text, run on the first devices of a client with their kernels guarded
// (guarded.h), for tests that look at every bit of the results.
#ifndef MINIPOD_TESTS_UNIT_SUPPORT_TEXT_RUNS_H_
#define MINIPOD_TESTS_UNIT_SUPPORT_TEXT_RUNS_H_

#include "sim/plan/compile.h"
#include "sim/runtime/launch/launch.h"
#include "sim/runtime/runs/executable.h"
#include "tests/unit/support/clients.h"
#include "tests/unit/support/guarded.h"

enum { TEXT_RUN_DEVICES = 4, TEXT_RUN_FUEL = 1000 };

typedef struct {
  mp_executable_t *executable;
  const mp_program_t *program;
  uint32_t num_devices;
  char **results[TEXT_RUN_DEVICES];  // [num_results], owned; NULL before a run
} text_run_t;

// Compiles the text for the devices that it asks for; what cannot be compiled is an error. A
// guarded program must not have loops that are one command, since their kernels cannot be replaced.
static inline mp_status_t text_run_begin_with(mp_client_t *client, const char *text,
                                              const mp_compile_request_t *request, bool is_guarded,
                                              text_run_t *out_run) {
  static const uint32_t ids[TEXT_RUN_DEVICES] = {0, 1, 2, 3};
  mp_program_t *program = NULL;
  mp_executable_t *executable = NULL;
  MP_RETURN_IF_ERROR(mp_compile(text, strlen(text), request, &program));
  assert_true((uint64_t)program->num_replicas * program->num_partitions <= TEXT_RUN_DEVICES);
  if (is_guarded) assert_ok(guard_program(program, TEXT_RUN_FUEL));
  MP_RETURN_IF_ERROR(mp_executable_create(client, program, ids, &executable));
  *out_run = (text_run_t){.executable = executable,
                          .program = mp_executable_program(executable),
                          .num_devices = mp_executable_num_devices(executable)};
  return NULL;
}

// With guarded kernels.
static inline mp_status_t text_run_begin_as(mp_client_t *client, const char *text,
                                            const mp_compile_request_t *request,
                                            text_run_t *out_run) {
  mp_compile_request_t open = *request;
  open.open_loops = true;
  return text_run_begin_with(client, text, &open, true, out_run);
}

static inline mp_status_t text_run_begin(mp_client_t *client, const char *text,
                                         text_run_t *out_run) {
  return text_run_begin_as(client, text, &(mp_compile_request_t){0}, out_run);
}

static inline mp_buffer_t *text_run_argument(mp_device_t *device, const mp_type_t *type,
                                             const void *data) {
  const mp_host_array_t array = {
      .dtype = type->dtype, .rank = type->rank, .dims = type->dims, .data = data};
  mp_buffer_t *buffer = NULL;
  assert_ok(mp_buffer_from_host(mp_device_memory(device, MP_MEMORY_DEVICE), &array,
                                MP_HOST_ONLY_DURING_CALL, &buffer, NULL));
  return buffer;
}

static inline char *text_run_read(mp_buffer_t *buffer) {
  uint64_t bytes = mp_buffer_bytes(buffer);
  char *data = malloc((size_t)bytes + 1);
  mp_event_t *done = NULL;
  assert_non_null(data);
  assert_ok(mp_buffer_to_host(buffer, data, bytes, NULL, &done));
  assert_ok(mp_event_await(done));
  mp_event_release(done);
  return data;
}

// Runs it with the same arguments ([num_params] arrays) on every device. An error is the first
// device's.
static inline mp_status_t text_run_launch(text_run_t *run, const void *const *arguments) {
  const mp_program_t *program = run->program;
  mp_buffer_t **buffers[TEXT_RUN_DEVICES], **results[TEXT_RUN_DEVICES];
  mp_event_t *done[TEXT_RUN_DEVICES] = {NULL};
  for (uint32_t d = 0; d < run->num_devices; ++d) {
    mp_device_t *device = mp_executable_device(run->executable, d);
    buffers[d] = calloc((size_t)program->num_params + 1, sizeof(*buffers[d]));
    results[d] = calloc((size_t)program->num_results + 1, sizeof(*results[d]));
    for (uint32_t i = 0; i < program->num_params; ++i) {
      buffers[d][i] = text_run_argument(device, program->params[i].type, arguments[i]);
    }
  }
  const mp_launch_t launch = {.arguments = (mp_buffer_t *const *const *)buffers};
  assert_ok(mp_executable_launch(run->executable, &launch, results, done));
  mp_status_t status = NULL;
  for (uint32_t d = 0; d < run->num_devices; ++d) {
    mp_status_t own = mp_event_await(done[d]);
    mp_event_release(done[d]);
    if (status == NULL) {
      status = own;
    } else {
      mp_status_release(own);
    }
  }
  for (uint32_t d = 0; d < run->num_devices; ++d) {
    run->results[d] = calloc((size_t)program->num_results + 1, sizeof(char *));
    for (uint32_t r = 0; r < program->num_results; ++r) {
      if (status == NULL) run->results[d][r] = text_run_read(results[d][r]);
      mp_buffer_release(results[d][r]);
    }
    for (uint32_t i = 0; i < program->num_params; ++i) mp_buffer_release(buffers[d][i]);
    free(buffers[d]);
    free(results[d]);
  }
  return status;
}

static inline void text_run_end(text_run_t *run) {
  for (uint32_t d = 0; d < run->num_devices; ++d) {
    for (uint32_t r = 0; r < run->program->num_results && run->results[d] != NULL; ++r) {
      free(run->results[d][r]);
    }
    free(run->results[d]);
  }
  mp_executable_release(run->executable);
}

#endif  // MINIPOD_TESTS_UNIT_SUPPORT_TEXT_RUNS_H_
