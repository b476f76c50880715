// Programs made by hand, for tests of the runtime: commands are appended one by one, kernels are
// plain functions.
//
//   test_program_t p;
//   program_begin(&p, "name", replicas, partitions);
//   uint32_t x = program_param(&p, MP_DTYPE_F32, 4), y = program_result(&p, MP_DTYPE_F32, 4);
//   program_launch(&p, my_kernel, parts, param(x), result(y));
//   mp_program_t *program = program_end(&p);
#ifndef MINIPOD_TESTS_UNIT_SUPPORT_PROGRAMS_H_
#define MINIPOD_TESTS_UNIT_SUPPORT_PROGRAMS_H_

#include "sim/plan/program.h"
#include "sim/work/rounds.h"
#include "tests/unit/support/unit.h"

enum { TEST_MAX_IO = 8, TEST_MAX_COMMANDS = 32 };

typedef struct {
  mp_program_t *program;
  mp_arena_t *arena;
  mp_program_io_t params[TEST_MAX_IO], results[TEST_MAX_IO];
  mp_cmd_t commands[TEST_MAX_COMMANDS];
  const char *name;
} test_program_t;

static inline mp_slot_t slot_param(uint32_t i) {
  return (mp_slot_t){MP_SLOT_PARAM, i, 0};
}
static inline mp_slot_t slot_result(uint32_t i) {
  return (mp_slot_t){MP_SLOT_RESULT, i, 0};
}
static inline mp_slot_t slot_arena(uint64_t offset) {
  return (mp_slot_t){MP_SLOT_ARENA, 0, offset};
}

static inline void program_begin(test_program_t *p, const char *name, uint32_t replicas,
                                 uint32_t partitions) {
  memset(p, 0, sizeof(*p));
  assert_ok(mp_arena_create(&p->arena));
  p->program = mp_arena_alloc(p->arena, sizeof(*p->program));
  p->program->arena = p->arena;
  p->program->name = mp_str(name);
  p->program->num_replicas = replicas;
  p->program->num_partitions = partitions;
}

static inline mp_program_io_t program_io(test_program_t *p, mp_dtype_t dtype, int64_t count) {
  mp_program_io_t io = {.memory = MP_MEMORY_DEVICE, .alias = -1};
  assert_ok(mp_type_tensor(p->arena, dtype, &count, 1, &io.type));
  io.bytes = (uint64_t)count * mp_dtype_size(dtype);
  return io;
}

static inline uint32_t program_param(test_program_t *p, mp_dtype_t dtype, int64_t count) {
  p->params[p->program->num_params] = program_io(p, dtype, count);
  return p->program->num_params++;
}

static inline uint32_t program_result(test_program_t *p, mp_dtype_t dtype, int64_t count) {
  p->results[p->program->num_results] = program_io(p, dtype, count);
  return p->program->num_results++;
}

static inline mp_cmd_t *program_command(test_program_t *p, mp_cmd_kind_t kind) {
  assert_true(p->program->num_commands < TEST_MAX_COMMANDS);
  mp_cmd_t *cmd = &p->commands[p->program->num_commands++];
  cmd->kind = kind;
  cmd->name = "test";
  return cmd;
}

static inline void command_slots(test_program_t *p, mp_cmd_t *cmd, uint32_t num_operands,
                                 const mp_slot_t *operands, uint32_t num_results,
                                 const mp_slot_t *results) {
  cmd->num_operands = num_operands;
  cmd->num_results = num_results;
  cmd->operands = mp_arena_copy(p->arena, operands, num_operands * sizeof(*operands));
  cmd->results = mp_arena_copy(p->arena, results, num_results * sizeof(*results));
}

static inline void program_launch(test_program_t *p, mp_kernel_run_t run, uint32_t num_parts,
                                  uint32_t num_operands, const mp_slot_t *operands,
                                  uint32_t num_results, const mp_slot_t *results) {
  mp_kernel_t *kernel = mp_arena_alloc(p->arena, sizeof(*kernel));
  *kernel = (mp_kernel_t){.run = run, .num_parts = num_parts, .scratch_bytes = 128};
  mp_cmd_t *cmd = program_command(p, MP_CMD_LAUNCH);
  cmd->kernel = kernel;
  command_slots(p, cmd, num_operands, operands, num_results, results);
}

static inline void program_jump(test_program_t *p, mp_cmd_kind_t kind, mp_slot_t condition,
                                uint32_t target) {
  mp_cmd_t *cmd = program_command(p, kind);
  command_slots(p, cmd, kind == MP_CMD_JUMP ? 0 : 1, &condition, 0, NULL);
  cmd->num_targets = 1;
  cmd->targets = mp_arena_copy(p->arena, &target, sizeof(target));
  cmd->rounds = MP_ROUNDS_UNKNOWN;
}

static inline void program_copy(test_program_t *p, mp_slot_t from, mp_slot_t to, uint64_t bytes) {
  mp_cmd_t *copy = program_command(p, MP_CMD_COPY);
  command_slots(p, copy, 1, &from, 1, &to);
  copy->bytes = bytes;
}

static void test_add_f32(const void *context, int64_t count, const void *a, const void *b,
                         void *out, void *scratch) {
  (void)context, (void)scratch;
  const float *x = a, *y = b;
  for (int64_t i = 0; i < count; ++i) ((float *)out)[i] = x[i] + y[i];
}

// An all_reduce (sum of f32) over one group of all devices of the program.
static inline mp_collective_t *program_collective(test_program_t *p, mp_collective_kind_t kind,
                                                  const char *name, int64_t count, mp_slot_t from,
                                                  mp_slot_t to) {
  mp_collective_t *c = mp_arena_alloc(p->arena, sizeof(*c));
  mp_collective_operand_t *operand = mp_arena_alloc(p->arena, sizeof(*operand));
  int64_t *dims = mp_arena_copy(p->arena, &count, sizeof(count));
  *operand = (mp_collective_operand_t){MP_DTYPE_F32, MP_DTYPE_F32, 1, dims, dims};
  *c = (mp_collective_t){.kind = kind,
                         .name = name,
                         .location = "psum at train.py:12:7",
                         .ordinal = p->program->num_collectives++,
                         .num_operands = 1,
                         .operands = operand,
                         .reducer = {.combine = test_add_f32, .max_count = 1024}};
  assert_ok(mp_groups_create(p->arena, MP_GROUPS_CROSS_REPLICA_AND_PARTITION,
                             p->program->num_replicas, p->program->num_partitions, NULL, 0, 0,
                             &c->groups));
  mp_cmd_t *cmd = program_command(p, MP_CMD_COLLECTIVE);
  cmd->collective = c;
  command_slots(p, cmd, 1, &from, 1, &to);
  return c;
}

static inline mp_program_t *program_end(test_program_t *p) {
  program_command(p, MP_CMD_DONE);
  mp_program_t *program = p->program;
  program->params = mp_arena_copy(p->arena, p->params, sizeof(p->params));
  program->results = mp_arena_copy(p->arena, p->results, sizeof(p->results));
  program->commands = mp_arena_copy(p->arena, p->commands, sizeof(p->commands));
  return program;
}

// y = what the kernel makes of x in so many parts, 4 floats each.
static inline mp_program_t *program_of_parts(const char *name, uint32_t devices,
                                             mp_kernel_run_t run, uint32_t num_parts) {
  test_program_t p;
  program_begin(&p, name, 1, devices);
  mp_slot_t x = slot_param(program_param(&p, MP_DTYPE_F32, 4));
  mp_slot_t y = slot_result(program_result(&p, MP_DTYPE_F32, 4));
  program_launch(&p, run, num_parts, 1, &x, 1, &y);
  return program_end(&p);
}

static inline mp_program_t *one_kernel_program(const char *name, uint32_t devices,
                                               mp_kernel_run_t run) {
  return program_of_parts(name, devices, run, 1);
}

// y = the sum of x over all devices, of `count` floats each.
static inline mp_program_t *psum_program(uint32_t devices, int64_t count) {
  test_program_t p;
  program_begin(&p, "psum", 1, devices);
  mp_slot_t x = slot_param(program_param(&p, MP_DTYPE_F32, count));
  mp_slot_t y = slot_result(program_result(&p, MP_DTYPE_F32, count));
  program_collective(&p, MP_COLLECTIVE_ALL_REDUCE, "stablehlo.all_reduce", count, x, y);
  return program_end(&p);
}

#endif  // MINIPOD_TESTS_UNIT_SUPPORT_PROGRAMS_H_
