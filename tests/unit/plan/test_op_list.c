// The op list: checks each op's role, effect and cost in a program that has the op.
#include "tests/unit/support/op_samples.h"

#include "sim/ir/compare/module_equal.h"
#include "sim/ir/forms.h"
#include "sim/ir/print/print_module.h"
#include "sim/kernels/table/kernel_table.h"
#include "sim/passes/passes.h"
#include "sim/runtime/runs/executable_impl.h"
#include "sim/spmd/gspmd/gspmd_import.h"
#include "tests/unit/support/clients.h"

// minipod.exchange has no text: the partitioner makes it.
static void every_op_has_a_program(void **state) {
  (void)state;
  FOR_EACH_OP(code) {
    if (g_samples[code] == NULL) fail_msg("%s has no program in op_samples.txt", op_name(code));
    mp_module_t *module = sample_read(code);
    if (code != MP_OP_EXCHANGE) (void)first_op(module, code);
    mp_module_release(module);
  }
}

// ---- forms ----

static void check_text(mp_opcode_t code, bool is_generic) {
  mp_module_t *module = sample_read(code), *again = NULL;
  const mp_print_options_t options = {.generic = is_generic};
  char quoted[64];
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  assert_ok(mp_module_print(module, &options, &text));
  mp_status_t status = mp_read_text(mp_strbuf_text(&text), text.size, &again);
  if (status == NULL) status = mp_module_compare(module, again);
  if (status != NULL) {
    fail_msg("%s: %s\n%s", op_name(code), mp_status_message(status), mp_strbuf_text(&text));
  }
  // An op with a form of its own is not in quotes.
  snprintf(quoted, sizeof(quoted), "\"%s\"(", op_name(code));
  const bool is_quoted = strstr(mp_strbuf_text(&text), quoted) != NULL;
  const bool has_form = mp_form_of(code)->types != MP_FORM_GENERIC;
  if (code != MP_OP_RETURN && is_quoted != (is_generic || !has_form)) {
    fail_msg("%s is %sgeneric:\n%s", op_name(code), is_quoted ? "" : "not ", mp_strbuf_text(&text));
  }
  mp_strbuf_deinit(&text);
  mp_module_release(module);
  mp_module_release(again);
}

// minipod.exchange is printed for people alone.
static void every_op_prints_and_reads_back(void **state) {
  (void)state;
  FOR_EACH_OP(code) {
    if (code == MP_OP_EXCHANGE) continue;
    check_text(code, false);
    check_text(code, true);
  }
}

// ---- roles ----

static bool is_command_of(const mp_cmd_t *cmd, mp_opcode_t code, mp_op_role_t role) {
  const bool is_named = strcmp(cmd->name, op_name(code)) == 0;
  switch (cmd->kind) {
    case MP_CMD_LAUNCH:
    case MP_CMD_TALK:
      return role == MP_OP_ROLE_KERNEL && cmd->kernel->op->code == code;
    case MP_CMD_COLLECTIVE:
    case MP_CMD_SEND:
    case MP_CMD_RECV:
      return role == MP_OP_ROLE_COLLECTIVE && is_named;
    case MP_CMD_REPLICA_ID:
    case MP_CMD_PARTITION_ID:
      return role == MP_OP_ROLE_COMMAND && is_named;
    case MP_CMD_JUMP:
    case MP_CMD_BRANCH_UNLESS:
    case MP_CMD_SWITCH:
      return role == MP_OP_ROLE_CONTROL && is_named;
    default:
      return false;
  }
}

static void check_commands(const mp_program_t *program, mp_opcode_t code) {
  for (int role = MP_OP_ROLE_KERNEL; role <= MP_OP_ROLE_CONTROL; ++role) {
    bool is_there = false;
    for (uint32_t i = 0; i < program->num_commands; ++i) {
      is_there |= is_command_of(&program->commands[i], code, (mp_op_role_t)role);
    }
    if (is_there != (mp_op_info(code)->role == (mp_op_role_t)role)) {
      fail_msg("%s %s command of role %d", op_name(code), is_there ? "has a" : "has no", role);
    }
  }
}

static void check_prepared(mp_opcode_t code, bool is_sugar) {
  mp_module_t *module = sample_read(code);
  assert_ok(mp_module_verify(module));
  assert_ok(mp_spmd_import_gspmd(module, 2));
  assert_ok(mp_passes_prepare(module));
  if ((count_ops(module, code) == 0) != is_sugar && code != MP_OP_EXCHANGE) {
    fail_msg("%s is %s after sim/passes prepared its program", op_name(code),
             is_sugar ? "still there" : "gone");
  }
  mp_module_release(module);
}

static void check_refused(mp_opcode_t code, mp_status_t status) {
  if (mp_status_code(status) != MP_UNIMPLEMENTED) fail_msg("%s is not refused", op_name(code));
  if (strstr(mp_status_message(status), op_name(code)) == NULL) {
    fail_msg("%s is not named: %s", op_name(code), mp_status_message(status));
  }
  mp_status_release(status);
}

static void roles_are_what_becomes_of_ops(void **state) {
  (void)state;
  FOR_EACH_OP(code) {
    const mp_op_role_t role = mp_op_info(code)->role;
    mp_program_t *program = NULL;
    mp_status_t status = compile_module(sample_read(code), 2, &program);
    if (role == MP_OP_ROLE_REFUSED) {
      check_refused(code, status);
      continue;
    }
    if (status != NULL) fail_msg("%s: %s", op_name(code), mp_status_message(status));
    check_prepared(code, role == MP_OP_ROLE_SUGAR);
    const bool is_there = count_ops(program->module, code) != 0;
    const bool is_gone = role == MP_OP_ROLE_SUGAR || role == MP_OP_ROLE_SHARDING;
    if (is_there == is_gone) {
      fail_msg("%s is %s when it is planned", op_name(code), is_there ? "still there" : "gone");
    }
    check_commands(program, code);
    mp_program_release(program);
  }
}

// ---- effects ----

// Whether the op stays in a program that uses none of its results.
static bool stays_unused(mp_module_t *module, mp_opcode_t code) {
  return_values(module, 0, NULL);
  assert_ok(mp_pass_dead_code(module));
  return count_ops(module, code) != 0;
}

static void what_has_an_effect_stays(void **state) {
  (void)state;
  FOR_EACH_OP(code) {
    if (code == MP_OP_EXCHANGE) continue;
    mp_module_t *module = sample_read(code);
    // Of async_start, the collective in its region has the effect.
    const bool expected =
        mp_op_info(code)->effect == MP_OP_EFFECT_STAYS || code == MP_OP_ASYNC_START;
    if (stays_unused(module, code) != expected) {
      fail_msg("%s %s", op_name(code), expected ? "goes" : "stays although nobody uses it");
    }
    mp_module_release(module);
  }
}

// What only devices of its own see: kernels and commands, however they are computed.
static void what_gives_nothing_but_results_may_go(void **state) {
  (void)state;
  FOR_EACH_OP(code) {
    const mp_op_info_t *info = mp_op_info(code);
    if (info->num_results == 0) assert_int_equal(info->effect, MP_OP_EFFECT_STAYS);
    assert_int_equal(info->effect == MP_OP_EFFECT_STATED, code == MP_OP_CUSTOM_CALL);
    if (info->role != MP_OP_ROLE_KERNEL && info->role != MP_OP_ROLE_COMMAND) continue;
    if (info->effect == MP_OP_EFFECT_STAYS) fail_msg("%s stays", op_name(code));
  }
}

// Programs that would do something else without an op whose results they do not use.
static void what_is_seen_elsewhere_stays(void **state) {
  (void)state;
#define TOKEN "%t = stablehlo.create_token : !stablehlo.token\n"
#define ENDLESS                                             \
  "%0 = stablehlo.while(%x = %a) : tensor<6xf32>\ncond {\n" \
  "%p = stablehlo.constant dense<true> : tensor<i1>\n"      \
  "stablehlo.return %p : tensor<i1>\n} do {\n"              \
  "stablehlo.return %x : tensor<6xf32>\n}\n"
  static const struct {
    mp_opcode_t code;
    const char *body;
  } cases[] = {
      {MP_OP_WHILE, ENDLESS},
      {MP_OP_CALL, "%0 = call @f(%a) : (tensor<6xf32>) -> tensor<6xf32>\n"},
      {MP_OP_COMPOSITE,
       "%0 = stablehlo.composite \"f\" %a {decomposition = @f} : (tensor<6xf32>) -> "
       "tensor<6xf32>\n"},
      {MP_OP_INFEED,
       TOKEN "%0:2 = \"stablehlo.infeed\"(%t) <{infeed_config = \"\", layout = [[0]]}> : "
             "(!stablehlo.token) -> (tensor<6xf32>, !stablehlo.token)\n"},
      {MP_OP_OUTFEED,
       TOKEN "%0 = \"stablehlo.outfeed\"(%a, %t) <{outfeed_config = \"\"}> : (tensor<6xf32>, "
             "!stablehlo.token) -> !stablehlo.token\n"},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    static char text[2048];
    mp_module_t *module = NULL;
    snprintf(text, sizeof(text),
             "func.func private @f(%%a: tensor<6xf32>) -> tensor<6xf32> {\n%s"
             "return %%a : tensor<6xf32>\n}\n"
             "func.func @main(%%a: tensor<6xf32>) {\n%sreturn\n}\n",
             ENDLESS, cases[i].body);
    assert_ok(mp_read_text(text, strlen(text), &module));
    assert_ok(mp_pass_dead_code(module));
    const mp_op_t *first = module->main->body->first;
    while (first->code == MP_OP_CREATE_TOKEN) first = first->next;
    if (first->code != cases[i].code) fail_msg("%s went", op_name(cases[i].code));
    mp_module_release(module);
  }
}

static void calls_have_the_effect_that_they_state(void **state) {
  (void)state;
  for (int has_effect = 0; has_effect < 2; ++has_effect) {
    mp_module_t *module = sample_read(MP_OP_CUSTOM_CALL);
    const mp_attr_t *attr = NULL;
    assert_ok(mp_attr_make_bool(module->arena, has_effect, &attr));
    assert_ok(
        mp_op_set_attr(module, first_op(module, MP_OP_CUSTOM_CALL), MP_ATTR_HAS_SIDE_EFFECT, attr));
    assert_int_equal(stays_unused(module, MP_OP_CUSTOM_CALL), has_effect);
    mp_module_release(module);
  }
}

// ---- costs ----

// An op with a result of 2^17 elements in place of the sample's.
static const mp_kernel_t *make_large_kernel(mp_module_t *module, mp_opcode_t code) {
  const int64_t dims[] = {1 << 17};
  mp_op_t *op = first_op(module, code);
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    mp_value_t *value = op->operands[i];
    assert_ok(mp_type_tensor(module->arena, value->type->dtype, dims, 1, &value->type));
  }
  mp_value_t *result = &op->results[0];
  assert_ok(mp_type_tensor(module->arena, result->type->dtype, dims, 1, &result->type));
  const mp_kernel_t *kernel = NULL;
  assert_ok(mp_kernel_create(module->arena, op, &kernel));
  return kernel;
}

static void costs_count(void **state) {
  (void)state;
  FOR_EACH_OP(code) {
    const mp_op_info_t *info = mp_op_info(code);
    const bool is_elementwise = mp_opcode_has(code, MP_OP_TRAIT_ELEMENTWISE);
    assert_int_equal(info->cost != MP_OP_COST_FREE, info->role == MP_OP_ROLE_KERNEL);
    if (info->cost == MP_OP_COST_COSTLY) assert_true(is_elementwise);
    if (info->cost == MP_OP_COST_HEAVY || info->cost == MP_OP_COST_COUNTED) {
      assert_false(is_elementwise);
    }
    if (info->role != MP_OP_ROLE_KERNEL) continue;
    mp_program_t *program = compile_one(code);
    const double operations = program->flops + program->transcendentals;
    if (operations == 0 && (is_elementwise || info->cost == MP_OP_COST_COUNTED)) {
      fail_msg("%s has no operations", op_name(code));
    }
    mp_program_release(program);
    if (!is_elementwise) continue;
    mp_module_t *module = sample_read(code);
    const uint32_t parts = make_large_kernel(module, code)->num_parts;
    if (parts != (info->cost == MP_OP_COST_COSTLY ? 16 : 2)) {
      fail_msg("%s: %u parts for 2^17 elements", op_name(code), parts);
    }
    mp_module_release(module);
  }
}

static void heavy_ops_are_guessed_to_take_long(void **state) {
  (void)state;
  mp_client_t *client = make_client(1);
  FOR_EACH_OP(code) {
    if (mp_op_info(code)->role != MP_OP_ROLE_KERNEL) continue;
    mp_program_t *program = compile_one(code);
    const double light = 0.3e-6 * program->num_commands +
                         1e-9 * (program->flops + program->transcendentals) +
                         0.5e-9 * program->bytes_accessed;
    const uint32_t device = 0;
    mp_executable_t *executable = NULL;
    assert_ok(mp_executable_create(client, program, &device, &executable));
    const bool is_heavy = executable->inline_seconds > 1.0001 * light;
    if (is_heavy != (mp_op_info(code)->cost == MP_OP_COST_HEAVY)) {
      fail_msg("%s: %g s, by bytes and operations %g s", op_name(code), executable->inline_seconds,
               light);
    }
    mp_executable_release(executable);
  }
  mp_client_release(client);
}

int main(void) {
  samples_load();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_op_has_a_program),
      cmocka_unit_test(every_op_prints_and_reads_back),
      cmocka_unit_test(roles_are_what_becomes_of_ops),
      cmocka_unit_test(what_has_an_effect_stays),
      cmocka_unit_test(what_gives_nothing_but_results_may_go),
      cmocka_unit_test(what_is_seen_elsewhere_stays),
      cmocka_unit_test(calls_have_the_effect_that_they_state),
      cmocka_unit_test(costs_count),
      cmocka_unit_test(heavy_ops_are_guessed_to_take_long),
  };
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  samples_unload();
  return failed;
}
