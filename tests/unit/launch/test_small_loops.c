// Small loops, which are one command (sim/loops): kernels run in them, and what can stop a run
// stops them too.
#include <math.h>

#include "sim/plan/plan.h"
#include "tests/unit/support/launches.h"
#include "tests/unit/support/loop_programs.h"

static mp_status_t fail_above_40(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  if (*(const float *)call->operands[0] > 40) {
    return mp_status_make(MP_INVALID_ARGUMENT, "above 40 at train.py:7:3");
  }
  return add_one(kernel, call);
}

static mp_status_t fail_at_once(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  (void)kernel, (void)call;
  return mp_status_make(MP_INVALID_ARGUMENT, "never at train.py:9:3");
}

static mp_program_t *folded_loop_program(uint32_t devices, mp_kernel_run_t step) {
  mp_program_t *program = loop_program(devices, step);
  assert_ok(mp_plan_fold_loops(program, NULL, 0));
  assert_int_equal(program->num_commands, 3);
  assert_int_equal(program->commands[1].kind, MP_CMD_LOOP);
  assert_int_equal(program->commands[1].num_body, 4);
  return program;
}

// Partition 1 fails, while partition 0 is in an endless loop, before a psum.
static mp_program_t *failing_program(void) {
  test_program_t p;
  program_begin(&p, "failing", 1, 2);
  mp_slot_t x = slot_param(program_param(&p, MP_DTYPE_F32, 4));
  mp_slot_t y = slot_result(program_result(&p, MP_DTYPE_F32, 4));
  mp_slot_t id = slot_arena(0), condition = slot_arena(64), z = slot_arena(128);
  p.program->arena_bytes = 192;
  command_slots(&p, program_command(&p, MP_CMD_PARTITION_ID), 0, NULL, 1, &id);
  program_jump(&p, MP_CMD_BRANCH_UNLESS, id, 4);               // 1
  program_launch(&p, fail_at_once, 1, 1, &x, 1, &z);           // 2
  program_jump(&p, MP_CMD_JUMP, id, 9);                        // 3
  program_launch(&p, quarter, 1, 1, &x, 1, &z);                // 4
  program_launch(&p, less_than_100, 1, 1, &z, 1, &condition);  // 5
  program_jump(&p, MP_CMD_BRANCH_UNLESS, condition, 9);        // 6
  program_launch(&p, quarter, 1, 1, &z, 1, &z);                // 7
  program_jump(&p, MP_CMD_JUMP, condition, 5);                 // 8
  program_collective(&p, MP_COLLECTIVE_ALL_REDUCE, "stablehlo.all_reduce", 4, z, y);
  mp_program_t *program = program_end(&p);
  assert_ok(mp_plan_fold_loops(program, NULL, 0));
  assert_int_equal(program->num_commands, 8);
  assert_int_equal(program->commands[5].kind, MP_CMD_LOOP);
  return program;
}

// y = x + 2, by `step`; if x[0] < 100: y + 5; y / 4. The first commands and those of the branch
// follow each other; what the branch jumps to is none of them.
static mp_program_t *straight_program(mp_kernel_run_t step) {
  test_program_t p;
  program_begin(&p, "straight", 1, 1);
  mp_slot_t x = slot_param(program_param(&p, MP_DTYPE_F32, 4));
  mp_slot_t y = slot_result(program_result(&p, MP_DTYPE_F32, 4)), condition = slot_arena(0);
  p.program->arena_bytes = 64;
  program_copy(&p, x, y, 16);
  program_launch(&p, step, 1, 1, &y, 1, &y);                                 // 1
  program_launch(&p, add_one, 1, 1, &y, 1, &y);                              // 2
  program_launch(&p, less_than_100, 1, 1, &x, 1, &condition);                // 3
  program_jump(&p, MP_CMD_BRANCH_UNLESS, condition, 10);                     // 4
  for (int i = 0; i < 5; ++i) program_launch(&p, add_one, 1, 1, &y, 1, &y);  // 5 to 9
  program_launch(&p, quarter, 1, 1, &y, 1, &y);                              // 10
  mp_program_t *program = program_end(&p);                                   // 11
  assert_ok(mp_plan_fold_loops(program, NULL, 0));
  assert_int_equal(program->num_commands, 5);
  assert_int_equal(program->commands[0].num_body, 4);
  assert_int_equal(program->commands[2].num_body, 5);
  assert_int_equal(program->commands[1].targets[0], 3);
  assert_int_equal(mp_loop_num_edges(program->commands[0].loop), 0);
  return program;
}

static void commands_in_a_row_are_one(void **state) {
  (void)state;
  mp_client_t *client = make_client(1);
  mp_executable_t *straight = make_executable(client, straight_program(add_one));
  launch_and_expect(straight, 1, 2);
  launch_and_expect(straight, 398, 100);  // not by the branch
  mp_executable_release(straight);
  straight = make_executable(client, straight_program(fail_at_once));
  launch_and_fail(straight, 1, MP_INVALID_ARGUMENT, "never at train.py:9:3");
  mp_executable_release(straight);
  mp_client_release(client);
}

static void kernels_run_in_loops(void **state) {
  (void)state;
  mp_client_t *client = make_client(2);
  mp_executable_t *loop = make_executable(client, folded_loop_program(2, add_one));
  launch_and_expect(loop, 3, 100);
  launch_and_expect(loop, 200, 200);  // no round
  mp_executable_release(loop);
  mp_client_release(client);
}

static void a_loop_takes_its_rounds_where_they_are_known(void **state) {
  (void)state;
  mp_program_t *program = folded_loop_program(1, add_one);
  const mp_cmd_t *loop = &program->commands[1];
  assert_true(isinf(mp_cmd_loop_seconds(loop)));
  ((mp_cmd_t *)(uintptr_t)&loop->body[1])->rounds = 9;
  const double seconds = mp_loop_seconds(loop->loop);
  assert_float_equal(mp_cmd_loop_seconds(loop), 10 * seconds, seconds / 1000);
  mp_program_release(program);
}

static void a_failed_kernel_ends_its_loop(void **state) {
  (void)state;
  mp_client_t *client = make_client(1);
  mp_executable_t *loop = make_executable(client, folded_loop_program(1, fail_above_40));
  launch_and_fail(loop, 3, MP_INVALID_ARGUMENT, "above 40 at train.py:7:3");
  mp_executable_release(loop);
  mp_client_release(client);
}

static void poison_ends_a_loop(void **state) {
  (void)state;
  mp_client_t *client = make_client(2);
  mp_executable_t *failing = make_executable(client, failing_program());
  launch_and_fail(failing, 1, MP_INVALID_ARGUMENT, "never at train.py:9:3");
  mp_executable_release(failing);
  mp_client_release(client);
}

// More endless loops than workers: they yield to other programs, and end with the client.
static void loops_yield_and_end(void **state) {
  (void)state;
  enum { LOOPS = 6 };
  const uint32_t last = LOOPS;
  mp_client_t *client = make_client(LOOPS + 1);
  mp_executable_t *endless = make_executable(client, folded_loop_program(LOOPS, quarter)),
                  *ends = NULL;
  assert_ok(mp_executable_create(client, folded_loop_program(1, add_one), &last, &ends));
  test_launch_t loops;
  launch_filled(&loops, endless, 1, 1);
  for (int i = 0; i < 3; ++i) {
    launch_and_expect(ends, 3, 100);
  }
  mp_client_release(client);
  for (uint32_t d = 0; d < LOOPS; ++d) {
    launch_expect_error(&loops, d, MP_CANCELLED, "closed");
  }
  launch_end(&loops);
  mp_executable_release(endless);
  mp_executable_release(ends);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(commands_in_a_row_are_one),
      cmocka_unit_test(kernels_run_in_loops),
      cmocka_unit_test(a_failed_kernel_ends_its_loop),
      cmocka_unit_test(poison_ends_a_loop),
      cmocka_unit_test(loops_yield_and_end),
      cmocka_unit_test(a_loop_takes_its_rounds_where_they_are_known),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
