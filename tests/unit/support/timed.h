// A program in the model of time of a described pod, for tests that launch it by hand.
#ifndef MINIPOD_TESTS_UNIT_SUPPORT_TIMED_H_
#define MINIPOD_TESTS_UNIT_SUPPORT_TIMED_H_

#include "sim/base/options.h"
#include "sim/model/clock/model.h"
#include "sim/plan/compile.h"
#include "sim/readers/text/text.h"
#include "tests/unit/support/unit.h"

typedef struct {
  mp_pod_t *pod;
  mp_model_t *model;
  mp_program_t *device_program;
  mp_model_program_t *program;
} timed_t;

// For as many devices as it says, with what the model of time needs of it.
static inline mp_program_t *compile_text(const char *text) {
  mp_module_t *module = NULL;
  mp_program_t *program = NULL;
  const mp_compile_request_t request = {.keep_partitioned = true};
  assert_ok(mp_read_text(text, strlen(text), &module));
  assert_ok(mp_compile_module(module, &request, &program));
  return program;
}

// The program on the first devices of the pod, at most four.
static inline timed_t time_program_with(const mp_options_t *options, const char *pod,
                                        mp_program_t *program, uint32_t num_devices) {
  timed_t t = {.device_program = program};
  const uint32_t ids[] = {0, 1, 2, 3};
  assert_ok(mp_pod_create_from_name(mp_str(pod), "test", &t.pod));
  assert_ok(mp_model_create(t.pod, options, &t.model));
  assert_ok(mp_model_program_create(t.model, program, num_devices, ids, &t.program));
  return t;
}

static inline timed_t time_program_on(const char *pod, mp_program_t *program,
                                      uint32_t num_devices) {
  mp_options_t *options = NULL;
  assert_ok(mp_options_create(NULL, 0, &options));
  const timed_t t = time_program_with(options, pod, program, num_devices);
  mp_options_release(options);
  return t;
}

static inline timed_t time_text_on(const char *pod, const char *text, uint32_t num_devices) {
  return time_program_on(pod, compile_text(text), num_devices);
}

// A launch on the first devices at the host's moment 0, after these inputs (NULL: none); it has no
// choices to tell of.
static inline mp_stamp_t time_launch(timed_t *t, uint32_t count, const mp_stamp_t *inputs) {
  const uint32_t logical[] = {0, 1, 2, 3};
  const mp_stamp_t none[4] = {0};
  mp_model_share_t *shares[4];
  static uint64_t number = 0;
  const mp_stamp_t stamp = mp_model_launch(t->program, &(mp_model_call_t){.number = ++number},
                                           count, logical, inputs == NULL ? none : inputs, shares);
  for (uint32_t i = 0; i < count; ++i) assert_null(shares[i]);
  return stamp;
}

static inline void time_end(timed_t *t) {
  mp_model_program_release(t->program, t->device_program);
  mp_model_release(t->model);
  mp_pod_release(t->pod);
}

#endif  // MINIPOD_TESTS_UNIT_SUPPORT_TIMED_H_
