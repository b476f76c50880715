// Programs run fused and op by op, whose bits have to be the same, but for the sign of a NaN, which
// IEEE 754 leaves open: compilers order the operands of a sum or product as they like.
#ifndef MINIPOD_TESTS_UNIT_SUPPORT_FUSED_RUNS_H_
#define MINIPOD_TESTS_UNIT_SUPPORT_FUSED_RUNS_H_

#include <stdlib.h>
#include <string.h>

#include "tests/unit/support/hostile/hostile_values.h"
#include "tests/unit/support/native_code.h"
#include "tests/unit/support/text_runs.h"
#include "tests/unit/support/unit.h"

enum { FUSED_RUN_PARAMS = 16 };

static inline char *make_argument(const mp_program_io_t *io, uint64_t *state) {
  char *data = malloc((size_t)io->bytes + 1);
  assert_non_null(data);
  hostile_fill(io->type->dtype, io->bytes / mp_dtype_size(io->type->dtype), state, data);
  return data;
}

static inline void run_as(mp_client_t *client, const char *text, bool op_by_op, uint64_t seed,
                          text_run_t *out_run) {
  const mp_compile_request_t request = {.op_by_op = op_by_op};
  mp_status_t status = text_run_begin_as(client, text, &request, out_run);
  if (status != NULL) fail_msg("%s\n%s", mp_status_message(status), text);
  void *arguments[FUSED_RUN_PARAMS];
  assert_true(out_run->program->num_params <= FUSED_RUN_PARAMS);
  for (uint32_t i = 0; i < out_run->program->num_params; ++i) {
    arguments[i] = make_argument(&out_run->program->params[i], &seed);
  }
  status = text_run_launch(out_run, (const void *const *)arguments);
  if (status != NULL) fail_msg("%s\n%s", mp_status_message(status), text);
  for (uint32_t i = 0; i < out_run->program->num_params; ++i) free(arguments[i]);
}

static inline uint32_t count_launches(const mp_program_t *program) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < program->num_commands; ++i) {
    count += program->commands[i].kind == MP_CMD_LAUNCH;
  }
  return count;
}

// Compares the results of two runs of a program, and ends both.
static inline void expect_same_results(text_run_t *a, text_run_t *b, const char *text,
                                       uint64_t seed) {
  for (uint32_t r = 0; r < a->program->num_results; ++r) {
    const mp_program_io_t *io = &a->program->results[r];
    const int64_t at =
        find_difference(io->type->dtype, a->results[0][r], b->results[0][r], io->bytes);
    if (at < 0) continue;
    fail_msg("seed %llu: result %u differs at element %d\n%s", (unsigned long long)seed, r, (int)at,
             text);
  }
  text_run_end(a);
  text_run_end(b);
}

// Runs the program both ways and compares the results; the number of launches of the fused one.
static inline uint32_t check_text(mp_client_t *client, const char *text, uint64_t seed) {
  text_run_t fused = {0}, plain = {0};
  run_as(client, text, false, seed + 1, &fused);
  run_as(client, text, true, seed + 1, &plain);
  const uint32_t launches = count_launches(fused.program);
  assert_true(launches <= count_launches(plain.program));
  expect_same_results(&plain, &fused, text, seed);
  return launches;
}

// Compares the results of the fused program with and without machine code.
static inline void check_native(mp_client_t *client, const char *text, uint64_t seed) {
  text_run_t plain = {0}, native = {0};
  mp_native_set_policy(MP_NATIVE_NEVER);
  run_as(client, text, false, seed + 1, &plain);
  mp_native_set_policy(MP_NATIVE_AT_ONCE);
  run_as(client, text, false, seed + 1, &native);
  mp_native_set_policy(MP_NATIVE_NEVER);
  expect_same_results(&plain, &native, text, seed);
}

// Checks the program, and how many launches it has when it is fused.
static inline void expect_launches(const char *text, uint32_t launches) {
  mp_client_t *client = make_client(1);
  const uint32_t found = check_text(client, text, 7);
  mp_client_release(client);
  if (found != launches) fail_msg("%u launches, not %u\n%s", found, launches, text);
}

// Checks that the program is refused, as one that is not implemented, with the name of the op.
static inline void expect_refused(const char *text, const char *name) {
  const mp_compile_request_t request = {0};
  mp_program_t *program = NULL;
  mp_status_t status = mp_compile(text, strlen(text), &request, &program);
  assert_int_equal(mp_status_code(status), MP_UNIMPLEMENTED);
  assert_non_null(strstr(mp_status_message(status), name));
  mp_status_release(status);
}

#endif  // MINIPOD_TESTS_UNIT_SUPPORT_FUSED_RUNS_H_
