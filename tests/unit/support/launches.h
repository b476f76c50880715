// Launches for tests of the runtime: arguments in, results and events out, for up to 64 devices.
#ifndef MINIPOD_TESTS_UNIT_SUPPORT_LAUNCHES_H_
#define MINIPOD_TESTS_UNIT_SUPPORT_LAUNCHES_H_

#include "sim/runtime/launch/launch.h"
#include "sim/runtime/runs/executable.h"
#include "tests/unit/support/clients.h"

enum { LAUNCH_MAX_DEVICES = 64, LAUNCH_MAX_ARGUMENTS = 2 };

typedef struct {
  mp_executable_t *executable;
  mp_launch_t launch;
  uint32_t num_devices;  // may be lowered, with `logical` filled in
  uint32_t num_arguments;
  uint32_t logical[LAUNCH_MAX_DEVICES];
  mp_buffer_t *arguments[LAUNCH_MAX_DEVICES][LAUNCH_MAX_ARGUMENTS];  // owned
  mp_buffer_t *results[LAUNCH_MAX_DEVICES];                          // one per device
  mp_event_t *done[LAUNCH_MAX_DEVICES];
} test_launch_t;

// On the pod's first devices.
static inline mp_executable_t *make_executable(mp_client_t *client, mp_program_t *program) {
  static uint32_t ids[4096];
  for (uint32_t i = 0; i < 4096; ++i) ids[i] = i;
  mp_executable_t *executable = NULL;
  assert_ok(mp_executable_create(client, program, ids, &executable));
  return executable;
}

static inline void launch_begin(test_launch_t *l, mp_executable_t *executable,
                                uint32_t num_arguments) {
  memset(l, 0, sizeof(*l));
  l->executable = executable;
  l->num_devices = mp_executable_num_devices(executable);
  l->num_arguments = num_arguments;
}

static inline mp_status_t launch_to(test_launch_t *l, mp_buffer_t **results, mp_event_t **done) {
  mp_buffer_t *const *per_device[LAUNCH_MAX_DEVICES];
  mp_buffer_t **outputs[LAUNCH_MAX_DEVICES];
  for (uint32_t i = 0; i < l->num_devices; ++i) {
    per_device[i] = l->arguments[i];
    outputs[i] = &results[i];
  }
  l->launch.arguments = per_device;
  l->launch.num_devices = l->num_devices;
  bool is_part = l->num_devices != mp_executable_num_devices(l->executable);
  l->launch.logical = is_part ? l->logical : NULL;
  return mp_executable_launch(l->executable, &l->launch, outputs, done);
}

static inline mp_status_t launch_try(test_launch_t *l, mp_buffer_t **results) {
  return launch_to(l, results, NULL);
}

static inline void launch_go(test_launch_t *l) {
  assert_ok(launch_to(l, l->results, l->done));
}

// Launches with arguments of 4 equal floats.
static inline void launch_filled(test_launch_t *l, mp_executable_t *executable,
                                 uint32_t num_arguments, float value) {
  launch_begin(l, executable, num_arguments);
  for (uint32_t d = 0; d < l->num_devices; ++d) {
    for (uint32_t a = 0; a < num_arguments; ++a) {
      l->arguments[d][a] = make_f32(mp_executable_device(executable, d), 4, value);
    }
  }
  launch_go(l);
}

static inline void launch_expect(test_launch_t *l, float value) {
  for (uint32_t d = 0; d < l->num_devices; ++d) {
    assert_ok(mp_event_await(l->done[d]));
    expect_f32(l->results[d], 4, value);
  }
}

static inline void launch_expect_error(test_launch_t *l, uint32_t device, mp_status_code_t code,
                                       const char *text) {
  assert_status(mp_event_await(l->done[device]), code, text);
  assert_status(mp_event_await(mp_buffer_definition(l->results[device])), code, text);
}

static inline void launch_end_no_wait(test_launch_t *l) {
  for (uint32_t d = 0; d < l->num_devices; ++d) {
    for (uint32_t a = 0; a < l->num_arguments; ++a) mp_buffer_release(l->arguments[d][a]);
    mp_buffer_release(l->results[d]);
    mp_event_release(l->done[d]);
  }
}

// Waits first, so that memory statistics are settled.
static inline void launch_end(test_launch_t *l) {
  for (uint32_t d = 0; d < l->num_devices; ++d) {
    if (l->done[d] != NULL) mp_status_release(mp_event_await(l->done[d]));
  }
  launch_end_no_wait(l);
}

// A launch with an argument of 4 such floats on all devices, from its begin to its end: all results
// are this, or all devices fail.
static inline void launch_and_expect(mp_executable_t *executable, float value, float expected) {
  test_launch_t l;
  launch_filled(&l, executable, 1, value);
  launch_expect(&l, expected);
  launch_end(&l);
}

static inline void launch_and_fail(mp_executable_t *executable, float value, mp_status_code_t code,
                                   const char *text) {
  test_launch_t l;
  launch_filled(&l, executable, 1, value);
  for (uint32_t d = 0; d < l.num_devices; ++d) launch_expect_error(&l, d, code, text);
  launch_end(&l);
}

#endif  // MINIPOD_TESTS_UNIT_SUPPORT_LAUNCHES_H_
