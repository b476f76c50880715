// Small loops tell how often each of their back edges was taken, wherever they stop, interpreted
// and as machine code.
#include <stdlib.h>

#include "sim/loops/loop.h"
#include "sim/plan/compile.h"
#include "tests/unit/support/native_code.h"
#include "tests/unit/support/unit.h"

// for (i = 0; i < n; ++i) { if (i % 2) for (j = 0; j < i; ++j) x = x + 1; else x = x + 1 }
// The inner loop's condition is more than a comparison.
static const char g_text[] =
    "func.func @main(%x: tensor<f32>, %n: tensor<i32>) -> tensor<f32> {\n"
    "%c0 = stablehlo.constant dense<0> : tensor<i32>\n"
    "%c1 = stablehlo.constant dense<1> : tensor<i32>\n"
    "%f1 = stablehlo.constant dense<1.0> : tensor<f32>\n"
    "%0:2 = stablehlo.while(%i = %c0, %a = %x) : tensor<i32>, tensor<f32>\n"
    "cond {\n%p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
    "stablehlo.return %p : tensor<i1>\n} do {\n"
    "%o = stablehlo.and %i, %c1 : tensor<i32>\n"
    "%1 = \"stablehlo.case\"(%o) ({\n"
    "%e = stablehlo.add %a, %f1 : tensor<f32>\nstablehlo.return %e : tensor<f32>\n}, {\n"
    "%2:2 = stablehlo.while(%j = %c0, %b = %a) : tensor<i32>, tensor<f32>\n"
    "cond {\n%k = stablehlo.add %j, %c1 : tensor<i32>\n"
    "%q = stablehlo.compare LE, %k, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
    "stablehlo.return %q : tensor<i1>\n} do {\n"
    "%d = stablehlo.add %b, %f1 : tensor<f32>\n%l = stablehlo.add %j, %c1 : tensor<i32>\n"
    "stablehlo.return %l, %d : tensor<i32>, tensor<f32>\n}\n"
    "stablehlo.return %2#1 : tensor<f32>\n}) : (tensor<i32>) -> tensor<f32>\n"
    "%m = stablehlo.add %i, %c1 : tensor<i32>\n"
    "stablehlo.return %m, %1 : tensor<i32>, tensor<f32>\n}\nreturn %0#1 : tensor<f32>\n}\n";

typedef struct {
  mp_program_t *program;
  const mp_cmd_t *cmd;
  float x, result[16];
  int32_t n;
  char arena[4096];
  void *slots[64];
  void *scratch;
  uint32_t num_stops;
} looped_t;

static void *slot_address(looped_t *l, const mp_slot_t *slot) {
  switch (slot->kind) {
    case MP_SLOT_ARENA:
      return l->arena + slot->offset;
    case MP_SLOT_PARAM:
      return slot->index == 0 ? (void *)&l->x : (void *)&l->n;
    case MP_SLOT_RESULT:
      return (char *)l->result + slot->offset;
    default:
      return (char *)(uintptr_t)l->program->constants[slot->index].data + slot->offset;
  }
}

// Does what comes before the loop, too: copies.
static void looped_begin(looped_t *l, int32_t n) {
  const mp_compile_request_t request = {0};
  *l = (looped_t){.x = 0, .n = n};
  assert_ok(mp_compile(g_text, strlen(g_text), &request, &l->program));
  assert_true(l->program->arena_bytes <= sizeof(l->arena));
  for (uint32_t i = 0; l->cmd == NULL; ++i) {
    const mp_cmd_t *cmd = &l->program->commands[i];
    if (cmd->kind == MP_CMD_LOOP) {
      l->cmd = cmd;
    } else {
      assert_int_equal(cmd->kind, MP_CMD_COPY);
      memcpy(slot_address(l, &cmd->results[0]), slot_address(l, &cmd->operands[0]), cmd->bytes);
    }
  }
  assert_true(l->cmd->num_operands <= 64);
  for (uint32_t i = 0; i < l->cmd->num_operands; ++i) {
    l->slots[i] = slot_address(l, &l->cmd->operands[i]);
  }
  l->scratch = aligned_alloc(64, (mp_loop_scratch_bytes(l->cmd->loop) + 63) / 64 * 64 + 64);
}

static void looped_end(looped_t *l) {
  free(l->scratch);
  mp_program_release(l->program);
}

static bool stop_always(void *context) {
  ++((looped_t *)context)->num_stops;
  return true;
}

static bool stop_never(void *context) {
  (void)context;
  return false;
}

// Runs the loop for n rounds and checks what was counted: with edges[0] that of the inner loop.
static void expect_counts(int32_t n, bool stops) {
  looped_t l;
  looped_begin(&l, n);
  uint64_t edges[2] = {1000, 1000}, inner = 0;
  for (int32_t i = 1; i < n; i += 2) inner += (uint64_t)i;
  assert_int_equal(mp_loop_num_edges(l.cmd->loop), 2);
  mp_loop_run_t run = {.slots = l.slots,
                       .scratch = l.scratch,
                       .must_stop = stops ? stop_always : stop_never,
                       .context = &l,
                       .edges = edges};
  for (bool is_over = false; !is_over;) {
    assert_ok(mp_loop_run(l.cmd->loop, &run, &is_over));
  }
  assert_int_equal(edges[0] - 1000, inner);
  assert_int_equal(edges[1] - 1000, n);
  if (stops && n > 1000) assert_true(l.num_stops > 1);
  looped_end(&l);
}

static void expect_all_counts(void) {
  for (int32_t n = 0; n < 6; ++n) expect_counts(n, false);
  expect_counts(3000, false);
  expect_counts(3000, true);
}

static void the_interpreter_counts(void **state) {
  (void)state;
  mp_native_set_policy(MP_NATIVE_NEVER);
  expect_all_counts();
}

static void machine_code_counts(void **state) {
  (void)state;
  if (!native_is_there()) skip();
  mp_native_set_policy(MP_NATIVE_AT_ONCE);
  expect_all_counts();
  // It takes over from the interpreter in the middle of a run.
  mp_native_set_policy(MP_NATIVE_WHEN_HOT);
  expect_counts(20000, false);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_interpreter_counts),
      cmocka_unit_test(machine_code_counts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
