// A loop that counts to 100, and its kernels, for tests of the runtime.
#ifndef MINIPOD_TESTS_UNIT_SUPPORT_LOOP_PROGRAMS_H_
#define MINIPOD_TESTS_UNIT_SUPPORT_LOOP_PROGRAMS_H_

#include "tests/unit/support/programs.h"

// condition = x[0] < 100
static inline mp_status_t less_than_100(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  (void)kernel;
  *(uint8_t *)call->results[0] = *(const float *)call->operands[0] < 100;
  return NULL;
}

// y = x + 1 for 4 elements, in parts
static inline mp_status_t add_one(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  const float *x = call->operands[0];
  float *y = call->results[0];
  int64_t begin, end;
  mp_part_range(4, kernel->num_parts, call->part, &begin, &end);
  memset(call->scratch, (int)call->part, kernel->scratch_bytes);
  for (int64_t i = begin; i < end; ++i) y[i] = x[i] + 1;
  return NULL;
}

// y = x / 4 for 4 elements
static inline mp_status_t quarter(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  (void)kernel;
  for (int i = 0; i < 4; ++i) {
    ((float *)call->results[0])[i] = ((const float *)call->operands[0])[i] / 4;
  }
  return NULL;
}

// y = x; while (y[0] < 100) y = step(y); for ever if the step is `quarter`.
static inline mp_program_t *loop_program(uint32_t devices, mp_kernel_run_t step) {
  test_program_t p;
  program_begin(&p, "loop", 1, devices);
  mp_slot_t x = slot_param(program_param(&p, MP_DTYPE_F32, 4));
  mp_slot_t y = slot_result(program_result(&p, MP_DTYPE_F32, 4)), condition = slot_arena(0);
  p.program->arena_bytes = 64;
  program_copy(&p, x, y, 16);
  program_launch(&p, less_than_100, 1, 1, &y, 1, &condition);  // 1
  program_jump(&p, MP_CMD_BRANCH_UNLESS, condition, 5);        // 2
  program_launch(&p, step, 1, 1, &y, 1, &y);                   // 3
  program_jump(&p, MP_CMD_JUMP, condition, 1);                 // 4
  return program_end(&p);                                      // 5
}

#endif  // MINIPOD_TESTS_UNIT_SUPPORT_LOOP_PROGRAMS_H_
