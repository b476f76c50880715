// Running: hand-made programs on pods of several devices.

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sim/runtime/buffer.h"
#include "sim/runtime/client.h"
#include "sim/runtime/executable.h"
#include "tests/unit/clients.h"
#include "tests/unit/programs.h"
#include "tests/unit/unit.h"

enum { MAX_DEVICES = 1024 };

// y = x + 1, in parts
static mp_status_t add_one(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  const float *x = call->operands[0];
  float *y = call->results[0];
  int64_t begin, end;
  mp_part_range(4, kernel->num_parts, call->part, &begin, &end);
  memset(call->scratch, (int)call->part, kernel->scratch_bytes);
  for (int64_t i = begin; i < end; ++i) y[i] = x[i] + 1;
  return NULL;
}

static mp_executable_t *make_executable(mp_client_t *client, mp_program_t *program) {
  uint32_t ids[MAX_DEVICES];
  for (uint32_t i = 0; i < MAX_DEVICES; ++i) ids[i] = i;
  mp_executable_t *executable;
  assert_ok(mp_executable_create(client, program, ids, &executable));
  return executable;
}

static mp_program_t *add_one_program(void) {
  test_program_t p;
  program_begin(&p, "add_one", 1, 1);
  mp_slot_t x = slot_param(program_param(&p, MP_DTYPE_F32, 4));
  mp_slot_t y = slot_result(program_result(&p, MP_DTYPE_F32, 4));
  program_launch(&p, add_one, 2, 1, &x, 1, &y);
  return program_end(&p);
}

static void a_program_runs(void **state) {
  (void)state;
  mp_client_t *client = make_client(1);
  mp_executable_t *executable = make_executable(client, add_one_program());
  mp_buffer_t *x = make_f32(mp_client_device(client, 0), 4, 1.5f), *y;
  mp_buffer_t *const arguments[] = {x}, *const * per_device[] = {arguments};
  mp_launch_t launch = {.arguments = per_device};
  mp_buffer_t **results[] = {&y};
  mp_event_t *done;
  assert_ok(mp_executable_launch(executable, &launch, results, &done));
  assert_ok(mp_event_await(done));
  mp_event_release(done);
  expect_f32(y, 4, 2.5f);
  mp_buffer_release(x);
  mp_buffer_release(y);
  mp_executable_release(executable);
  mp_client_release(client);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_program_runs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
