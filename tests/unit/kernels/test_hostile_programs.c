// Every operation that has a kernel, drawn at random (hostile_programs.h) and run on hostile
// values: nothing fails, no kernel leaves its arrays, and parts do not depend on each other
// (guarded.h).
#include "tests/unit/support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/support/hostile/hostile_calls.h"
#include "tests/unit/support/text_runs.h"

// Operations that are no kernels: control flow, collectives, and what passes make others of.
static const mp_opcode_t k_no_kernels[] = {
    MP_OP_AFTER_ALL,
    MP_OP_ALL_GATHER,
    MP_OP_ALL_REDUCE,
    MP_OP_ALL_TO_ALL,
    MP_OP_ASYNC_DONE,
    MP_OP_ASYNC_START,
    MP_OP_BROADCAST,
    MP_OP_CASE,
    MP_OP_COLLECTIVE_BROADCAST,
    MP_OP_COLLECTIVE_PERMUTE,
    MP_OP_COLLECTIVE_REDUCE,
    MP_OP_COMPOSITE,
    MP_OP_CONSTANT,
    MP_OP_CREATE_TOKEN,
    MP_OP_CROSS_REPLICA_SUM,
    MP_OP_DOT,
    MP_OP_DYNAMIC_BROADCAST_IN_DIM,
    MP_OP_DYNAMIC_CONV,
    MP_OP_DYNAMIC_GATHER,
    MP_OP_DYNAMIC_IOTA,
    MP_OP_DYNAMIC_PAD,
    MP_OP_DYNAMIC_RESHAPE,
    MP_OP_EINSUM,
    MP_OP_GET_TUPLE_ELEMENT,
    MP_OP_GET_DIMENSION_SIZE,
    MP_OP_IF,
    MP_OP_INFEED,
    MP_OP_OPTIMIZATION_BARRIER,
    MP_OP_OUTFEED,
    MP_OP_PARTITION_ID,
    MP_OP_REAL_DYNAMIC_SLICE,
    MP_OP_RECV,
    MP_OP_REDUCE_SCATTER,
    MP_OP_REPLICA_ID,
    MP_OP_RESHAPE,
    MP_OP_RETURN,
    MP_OP_SEND,
    MP_OP_SET_DIMENSION_SIZE,
    MP_OP_TORCH_INDEX_SELECT,
    MP_OP_TUPLE,
    MP_OP_UNARY_EINSUM,
    MP_OP_UNIFORM_DEQUANTIZE,
    MP_OP_UNIFORM_QUANTIZE,
    MP_OP_WHILE,
    MP_OP_CALL,
    MP_OP_SDY_ALL_GATHER,
    MP_OP_SDY_ALL_REDUCE,
    MP_OP_SDY_ALL_SLICE,
    MP_OP_SDY_ALL_TO_ALL,
    MP_OP_SDY_COLLECTIVE_PERMUTE,
    MP_OP_SDY_CONSTANT,
    MP_OP_SDY_DATA_FLOW_EDGE,
    MP_OP_SDY_MANUAL_COMPUTATION,
    MP_OP_SDY_NAMED_COMPUTATION,
    MP_OP_SDY_PROPAGATION_BARRIER,
    MP_OP_SDY_REDUCE_SCATTER,
    MP_OP_SDY_REPLICATED_TO_UNREDUCED,
    MP_OP_SDY_RESHARD,
    MP_OP_SDY_SHARDED_TO_UNREDUCED,
    MP_OP_SDY_SHARDING_CONSTRAINT,
    MP_OP_SDY_SHARDING_GROUP,
    MP_OP_EXCHANGE,
};

static uint32_t g_runs[MP_OP_COUNT];
static uint32_t g_num_refused;

static void note_kernels(const mp_program_t *program) {
  for (uint32_t i = 0; i < program->num_commands; ++i) {
    const mp_cmd_t *cmd = &program->commands[i];
    if (cmd->kind == MP_CMD_LAUNCH && cmd->kernel->op != NULL) g_runs[cmd->kernel->op->code]++;
  }
}

static void run_with_hostile_values(text_run_t *run, const char *text, uint64_t *state) {
  const mp_program_t *program = run->program;
  void *arguments[DRAW_MAX_VALUES];
  assert_true(program->num_params <= DRAW_MAX_VALUES);
  for (uint32_t i = 0; i < program->num_params; ++i) {
    const mp_program_io_t *io = &program->params[i];
    arguments[i] = malloc((size_t)io->bytes + 1);
    hostile_fill(io->type->dtype, io->bytes / mp_dtype_size(io->type->dtype), state, arguments[i]);
  }
  mp_status_t status = text_run_launch(run, (const void *const *)arguments);
  if (status != NULL) fail_msg("%s\n%s", mp_status_message(status), text);
  for (uint32_t i = 0; i < program->num_params; ++i) free(arguments[i]);
}

static void run_seed(mp_client_t *client, uint64_t seed) {
  uint64_t state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  draw_program(NULL, 0, hostile_random(&state), &text);
  text_run_t run = {0};
  mp_status_t status = text_run_begin(client, mp_strbuf_text(&text), &run);
  if (mp_status_code(status) == MP_UNIMPLEMENTED) {
    mp_status_release(status);
    ++g_num_refused;
  } else if (status != NULL) {
    fail_msg("seed %llu: %s\n%s", (unsigned long long)seed, mp_status_message(status),
             mp_strbuf_text(&text));
  } else {
    note_kernels(run.program);
    run_with_hostile_values(&run, mp_strbuf_text(&text), &state);
    text_run_end(&run);
  }
  mp_strbuf_deinit(&text);
}

static bool has_kernel(mp_opcode_t code) {
  for (size_t i = 0; i < sizeof(k_no_kernels) / sizeof(k_no_kernels[0]); ++i) {
    if (k_no_kernels[i] == code) return false;
  }
  return true;
}

// MINIPOD_TEST_PROGRAMS: how many programs; MINIPOD_TEST_SEED: the first one's number.
static void test_every_op(void **state) {
  (void)state;
  const char *count_text = getenv("MINIPOD_TEST_PROGRAMS"), *seed = getenv("MINIPOD_TEST_SEED");
  const uint64_t count = count_text == NULL ? 6000 : strtoull(count_text, NULL, 10);
  const uint64_t first = seed == NULL ? 1 : strtoull(seed, NULL, 10);
  mp_client_t *client = make_client(1);
  for (uint64_t i = 0; i < count; ++i) run_seed(client, first + i);
  mp_client_release(client);
  print_message("%llu programs, %u of them refused\n", (unsigned long long)count, g_num_refused);
  for (int code = 0; code < MP_OP_COUNT && count >= 6000; ++code) {
    const bool is_run = g_runs[code] > 0;
    if (is_run == has_kernel((mp_opcode_t)code)) continue;
    fail_msg("%s %s", mp_op_info((mp_opcode_t)code)->name,
             is_run ? "ran, but is listed as without a kernel" : "did not run");
  }
  // What is refused: element types that an operation has no kernel for.
  if (count >= 6000) assert_true(g_num_refused < count / 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_op)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
