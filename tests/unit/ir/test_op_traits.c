// The traits of the op list against the passes, the partitioner and the planner, in a program of
// each op. What can be seen in numbers is in test_op_numbers.c.
#include "tests/unit/support/op_samples.h"

#include "sim/passes/passes.h"
#include "sim/spmd/propagation/split_constants.h"
#include "sim/spmd/rules/rules.h"

// Each trait belongs to ops of certain roles: code that checks it never sees other ops, for which
// it would mean nothing.
static void traits_belong_to_ops_of_their_roles(void **state) {
  (void)state;
#define ROLE(name) (1u << MP_OP_ROLE_##name)
  static const struct {
    uint32_t trait, roles;
  } rows[] = {
      {MP_OP_TRAIT_ELEMENTWISE, ROLE(KERNEL)},
      {MP_OP_TRAIT_COMMUTATIVE, ROLE(KERNEL)},
      {MP_OP_TRAIT_IDEMPOTENT, ROLE(KERNEL)},
      {MP_OP_TRAIT_LINEAR, ROLE(KERNEL)},
      {MP_OP_TRAIT_ALIAS, ROLE(KERNEL) | ROLE(NOTHING)},
      {MP_OP_TRAIT_MOVES, ROLE(KERNEL) | ROLE(NOTHING) | ROLE(SHARDING)},
      {MP_OP_TRAIT_AGAIN, ROLE(KERNEL) | ROLE(NOTHING) | ROLE(SHARDING)},
      {MP_OP_TRAIT_FLOW, ROLE(CONTROL) | ROLE(NOTHING) | ROLE(SHARDING) | ROLE(SUGAR)},
      {MP_OP_TRAIT_ISOLATED, ROLE(CONTROL) | ROLE(SHARDING) | ROLE(SUGAR) | ROLE(KERNEL)},
      {MP_OP_TRAIT_COLLECTIVE, ROLE(COLLECTIVE) | ROLE(SUGAR) | ROLE(REFUSED)},
      {MP_OP_TRAIT_TERMINATOR, ROLE(NOTHING)},
  };
#undef ROLE
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    uint32_t count = 0;
    FOR_EACH_OP(code) {
      if (!mp_opcode_has(code, rows[i].trait)) continue;
      ++count;
      if ((rows[i].roles >> mp_op_info(code)->role & 1) == 0) {
        fail_msg("%s has trait %x", op_name(code), rows[i].trait);
      }
    }
    assert_true(count > 0);
  }
}

// A program of two launches with an op between them that takes no command and no memory: what the
// second reads is what the first wrote.
static void check_shares(const char *name, mp_program_t *program) {
  const mp_cmd_t *first = &program->commands[0], *second = &program->commands[1];
  if (program->num_commands != 3 || first->kind != MP_CMD_LAUNCH || second->kind != MP_CMD_LAUNCH) {
    fail_msg("%s takes a command", name);
  }
  const mp_slot_t from = first->results[0], to = second->operands[0];
  if (from.kind != to.kind || from.index != to.index || from.offset != to.offset) {
    fail_msg("%s has memory of its own", name);
  }
  mp_program_release(program);
}

static mp_program_t *compile_text(const char *text) {
  mp_module_t *module = NULL;
  mp_program_t *program = NULL;
  assert_ok(mp_read_text(text, strlen(text), &module));
  assert_ok(compile_module(module, 1, &program));
  return program;
}

// Results of an op without a kernel must share memory, because nothing else writes them.
static void aliases_share_memory(void **state) {
  (void)state;
  FOR_EACH_OP(code) {
    const mp_op_info_t *info = mp_op_info(code);
    const bool is_alias = mp_opcode_has(code, MP_OP_TRAIT_ALIAS);
    if (is_alias && info->num_operands >= 0) {
      assert_int_equal(info->num_operands, info->num_results);
    }
    if (info->role != MP_OP_ROLE_NOTHING || info->num_results == 0) continue;
    mp_module_t *module = sample_read(code);
    const mp_op_t *op = first_op(module, code);
    const bool is_tensor = op->num_operands != 0 && mp_type_is_tensor(op->operands[0]->type);
    mp_module_release(module);
    if (is_alias != is_tensor) fail_msg("%s: who makes its results?", op_name(code));
    if (is_alias) check_shares(op_name(code), compile_one(code));
  }
}

static void bitcasts_of_whole_bytes_share_memory(void **state) {
  (void)state;
  check_shares("f32 to i32",
               compile_text("func.func @main(%a: tensor<6xf32>) -> tensor<6xi32> {\n"
                            "%b = stablehlo.add %a, %a : tensor<6xf32>\n"
                            "%c = stablehlo.bitcast_convert %b : (tensor<6xf32>) -> tensor<6xi32>\n"
                            "%0 = stablehlo.add %c, %c : tensor<6xi32>\n"
                            "return %0 : tensor<6xi32> }"));
  check_shares(
      "f32 to ui16",
      compile_text("func.func @main(%a: tensor<6xf32>) -> tensor<6x2xui16> {\n"
                   "%b = stablehlo.add %a, %a : tensor<6xf32>\n"
                   "%c = stablehlo.bitcast_convert %b : (tensor<6xf32>) -> tensor<6x2xui16>\n"
                   "%0 = stablehlo.add %c, %c : tensor<6x2xui16>\n"
                   "return %0 : tensor<6x2xui16> }"));
}

// A constant of zeros of the value's type, at the beginning of main.
static mp_value_t *insert_zeros(mp_module_t *module, const mp_type_t *type) {
  mp_named_attr_t attr = {MP_ATTR_VALUE, MP_STR("value"), NULL};
  static const char zeros[16] = {0};
  assert_ok(mp_attr_make_dense(module->arena, type, zeros, mp_dtype_size(type->dtype), true,
                               &attr.value));
  const mp_op_spec_t spec = {.code = MP_OP_CONSTANT,
                             .num_results = 1,
                             .result_types = &type,
                             .num_attrs = 1,
                             .attrs = &attr};
  mp_op_t *op = NULL;
  assert_ok(mp_op_create(module, &spec, &op));
  mp_block_insert_before(module->main->body->first, op);
  return &op->results[0];
}

static mp_status_t replace_argument(void *context, mp_op_t *op) {
  mp_value_t **pair = context;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    if (op->operands[i] == pair[0]) op->operands[i] = pair[1];
  }
  return NULL;
}

// The program on constants, returning what it returns twice: each use of a constant gets its own.
static bool is_split(mp_opcode_t code) {
  mp_module_t *module = sample_read(code);
  const mp_block_t *body = module->main->body;
  for (uint32_t i = 0; i < body->num_args; ++i) {
    mp_value_t *pair[2] = {&body->args[i], insert_zeros(module, body->args[i].type)};
    assert_ok(mp_module_walk(module, replace_argument, pair));
  }
  mp_value_t *value = mp_block_terminator(body)->operands[0];
  return_values(module, 2, (mp_value_t *[]){value, value});
  const uint32_t before = count_ops(module, code);
  assert_ok(mp_spmd_split_constants(module));
  const uint32_t after = count_ops(module, code);
  mp_module_release(module);
  return after > before;
}

// Elementwise ops and what Shardy's constant splitter copies beside them.
static bool is_copied_by_shardy(mp_opcode_t code) {
  switch (code) {
    case MP_OP_CONSTANT:
    case MP_OP_IOTA:
    case MP_OP_BROADCAST_IN_DIM:
    case MP_OP_RESHAPE:
    case MP_OP_SLICE:
    case MP_OP_SDY_PROPAGATION_BARRIER:
      return true;
    default:
      return mp_opcode_has(code, MP_OP_TRAIT_ELEMENTWISE);
  }
}

static void what_may_be_computed_again_is(void **state) {
  (void)state;
  FOR_EACH_OP(code) {
    const mp_op_info_t *info = mp_op_info(code);
    const bool is_again = mp_opcode_has(code, MP_OP_TRAIT_AGAIN);
    if (is_again != is_copied_by_shardy(code)) fail_msg("%s is not as in Shardy", op_name(code));
    if (is_again) {
      assert_true(info->effect == MP_OP_EFFECT_PURE || info->effect == MP_OP_EFFECT_DISTINCT);
      assert_true(info->cost != MP_OP_COST_COUNTED && info->cost != MP_OP_COST_HEAVY);
      assert_int_equal(info->num_regions, 0);
    }
    const bool is_known = info->role == MP_OP_ROLE_KERNEL || info->role == MP_OP_ROLE_NOTHING ||
                          code == MP_OP_SDY_PROPAGATION_BARRIER;
    if (!is_known || code == MP_OP_RETURN || code == MP_OP_AFTER_ALL) continue;
    if (is_split(code) != is_again) {
      fail_msg("%s is %s for each use of it", op_name(code), is_again ? "not copied" : "copied");
    }
  }
}

// Puts an equal op behind the sample's and folds.
static bool is_merged(mp_opcode_t code) {
  mp_module_t *module = sample_read(code);
  mp_op_t *op = first_op(module, code), *twin = NULL;
  const uint32_t num_values = mp_module_number_values(module);
  mp_value_t **map = MP_ARENA_ARRAY(module->arena, mp_value_t *, num_values);
  assert_ok(mp_op_clone(module, op, map, &twin));
  mp_block_insert_before(op->next, twin);
  return_values(module, 2, (mp_value_t *[]){&op->results[0], &twin->results[0]});
  assert_ok(mp_pass_fold(module));
  assert_ok(mp_pass_dead_code(module));
  const bool is_one = count_ops(module, code) == 1;
  mp_module_release(module);
  return is_one;
}

static void what_is_pure_is_made_once(void **state) {
  (void)state;
  FOR_EACH_OP(code) {
    const mp_op_info_t *info = mp_op_info(code);
    if (code == MP_OP_EXCHANGE || info->num_results == 0) continue;
    const bool is_computed = info->role == MP_OP_ROLE_KERNEL || info->role == MP_OP_ROLE_NOTHING;
    // The sample of a reduction adds, which is all that there is to know about its region.
    const bool is_shared = (is_computed && info->effect == MP_OP_EFFECT_PURE &&
                            info->num_results == 1 && info->num_regions == 0) ||
                           code == MP_OP_REDUCE;
    if (is_merged(code) != is_shared) {
      fail_msg("two equal %s %s", op_name(code), is_shared ? "stay two" : "become one");
    }
  }
}

static const mp_rule_t *rule_of(mp_module_t *module, mp_opcode_t code) {
  const mp_rule_t *rule = NULL;
  assert_ok(mp_rule_create(module->arena, first_op(module, code), &rule));
  return rule;
}

// A sharding of any dimension is one of the same dimension of all tensors that are no scalars.
static void elementwise_ops_have_elementwise_rules(void **state) {
  (void)state;
  FOR_EACH_OP(code) {
    const mp_op_role_t role = mp_op_info(code)->role;
    if (role == MP_OP_ROLE_REFUSED || code == MP_OP_EXCHANGE) continue;
    mp_module_t *module = sample_read(code);
    const mp_rule_t *rule = rule_of(module, code);
    if (mp_opcode_has(code, MP_OP_TRAIT_ELEMENTWISE)) {
      if (rule == NULL || !rule->is_elementwise) fail_msg("%s has no such rule", op_name(code));
      assert_int_equal(rule->num_factors, 1);
      assert_int_equal(rule->factors[0].kind, MP_FACTOR_PASS);
      for (uint32_t i = 0; i < rule->num_operands + rule->num_results; ++i) {
        assert_int_equal(rule->tensors[i][0].count, 1);
      }
    } else if (rule != NULL && rule->is_elementwise) {
      // What says where values lie is.
      if (role != MP_OP_ROLE_SHARDING) fail_msg("%s has an elementwise rule", op_name(code));
    }
    mp_module_release(module);
  }
}

static void elementwise_ops_keep_the_shape(void **state) {
  (void)state;
  FOR_EACH_OP(code) {
    if (!mp_opcode_has(code, MP_OP_TRAIT_ELEMENTWISE)) continue;
    if (mp_op_info(code)->role == MP_OP_ROLE_REFUSED) continue;
    mp_module_t *module = sample_read(code);
    mp_value_t *result = &first_op(module, code)->results[0];
    const int64_t dims[] = {7};
    assert_ok(mp_type_tensor(module->arena, result->type->dtype, dims, 1, &result->type));
    return_values(module, 1, &result);
    mp_status_t status = mp_module_verify(module);
    if (strstr(mp_status_message(status), op_name(code)) == NULL) {
      fail_msg("%s makes 7 elements of 6: %s", op_name(code), mp_status_message(status));
    }
    mp_status_release(status);
    mp_module_release(module);
  }
}

// Whether the op hands on what its regions return, values of the program's own shapes: functions on
// elements (reducers and the like) return scalars and booleans.
static bool regions_are_programs(const mp_op_t *op) {
  if (op->num_regions == 0) return false;
  const mp_block_t *last = op->regions[op->num_regions - 1];
  const mp_value_t *returned = mp_block_terminator(last)->operands[0];
  return mp_type_is_tensor(op->results[0].type) &&
         mp_type_equal(returned->type, op->results[0].type);
}

static void what_hands_on_values_has_no_rule(void **state) {
  (void)state;
  FOR_EACH_OP(code) {
    if (mp_op_info(code)->role == MP_OP_ROLE_REFUSED || code == MP_OP_EXCHANGE) continue;
    if (code == MP_OP_FUSION) continue;  // it is made behind the partitioner
    mp_module_t *module = sample_read(code);
    const mp_op_t *op = first_op(module, code);
    const bool is_flow = mp_opcode_has(code, MP_OP_TRAIT_FLOW);
    // Collectives and reductions to scalars return what their regions return, too.
    const bool is_sharded = op->num_results != 0 && mp_type_is_tensor(op->results[0].type) &&
                            op->results[0].type->rank != 0;
    const bool is_barrier = code == MP_OP_OPTIMIZATION_BARRIER;
    if (is_flow != (is_barrier || (is_sharded && regions_are_programs(op)))) {
      fail_msg("%s: are its results what its regions return?", op_name(code));
    }
    if (is_flow && rule_of(module, code) != NULL) fail_msg("%s has a rule", op_name(code));
    mp_module_release(module);
  }
}

// The op's last region returns an argument of main.
static bool uses_outer_value(mp_module_t *module, mp_opcode_t code) {
  const mp_op_t *op = first_op(module, code);
  if (op->num_regions == 0) return false;
  mp_op_t *end = mp_block_terminator(op->regions[op->num_regions - 1]);
  const mp_block_t *body = module->main->body;
  for (uint32_t i = 0; i < body->num_args; ++i) {
    if (!mp_type_equal(end->operands[0]->type, body->args[i].type)) continue;
    end->operands[0] = &body->args[i];
    return true;
  }
  return false;
}

static void isolated_regions_see_nothing(void **state) {
  (void)state;
  uint32_t num_open = 0, num_isolated = 0;
  FOR_EACH_OP(code) {
    if (mp_op_info(code)->role == MP_OP_ROLE_REFUSED || code == MP_OP_EXCHANGE) continue;
    mp_module_t *module = sample_read(code);
    if (uses_outer_value(module, code)) {
      const bool is_isolated = mp_opcode_has(code, MP_OP_TRAIT_ISOLATED);
      *(is_isolated ? &num_isolated : &num_open) += 1;
      mp_status_t status = mp_module_verify(module);
      if ((status != NULL) != is_isolated)
        fail_msg("%s: %s", op_name(code), mp_status_message(status));
      mp_status_release(status);
    }
    mp_module_release(module);
  }
  assert_true(num_open >= 4 && num_isolated >= 1);
}

// What async_start may hold: what becomes a collective.
static void collectives_are(void **state) {
  (void)state;
  FOR_EACH_OP(code) {
    const mp_op_info_t *info = mp_op_info(code);
    const bool is_collective = mp_opcode_has(code, MP_OP_TRAIT_COLLECTIVE);
    if (info->role == MP_OP_ROLE_COLLECTIVE) assert_true(is_collective);
    if (is_collective) assert_int_equal(info->effect, MP_OP_EFFECT_STAYS);
  }
  assert_true(mp_opcode_has(MP_OP_CROSS_REPLICA_SUM, MP_OP_TRAIT_COLLECTIVE));
  assert_false(mp_opcode_has(MP_OP_CALL, MP_OP_TRAIT_COLLECTIVE));
}

int main(void) {
  samples_load();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(traits_belong_to_ops_of_their_roles),
      cmocka_unit_test(aliases_share_memory),
      cmocka_unit_test(bitcasts_of_whole_bytes_share_memory),
      cmocka_unit_test(what_may_be_computed_again_is),
      cmocka_unit_test(what_is_pure_is_made_once),
      cmocka_unit_test(elementwise_ops_have_elementwise_rules),
      cmocka_unit_test(elementwise_ops_keep_the_shape),
      cmocka_unit_test(what_hands_on_values_has_no_rule),
      cmocka_unit_test(isolated_regions_see_nothing),
      cmocka_unit_test(collectives_are),
  };
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  samples_unload();
  return failed;
}
