// The partitioner on custom calls that are on one device, or that take parts as they are.
#include "sim/passes/passes.h"
#include "sim/spmd/partition/partition.h"
#include "tests/unit/support/ir_test.h"
#include "tests/unit/support/sdy_test.h"

static mp_status_t partition(ir_t *ir, uint32_t num_partitions) {
  static const bool propagate = true;
  const mp_partition_options_t options = {.num_partitions = num_partitions,
                                          .propagate_to_results = &propagate,
                                          .num_propagate_to_results = 1,
                                          .propagate_to_params = &propagate,
                                          .num_propagate_to_params = 1};
  mp_partition_t parts;
  MP_RETURN_IF_ERROR(mp_passes_prepare(ir->module));
  return mp_spmd_partition(ir->module, &options, &parts);
}

// A program of a parameter [8] that is cut in two.
static ir_t start(const char *results) {
  ir_t ir = ir_start("8xf32", results);
  const mp_mesh_t *mesh = sdy_mesh(ir.module->arena, "x=2", NULL, 0);
  mp_named_attr_t item =
      ir_attr(MP_ATTR_SDY_SHARDING, sdy_sharding_attr(ir.module->arena, mesh, 1, "x"));
  mp_attr_t *dict = MP_ARENA_NEW(ir.module->arena, mp_attr_t);
  dict->kind = MP_KIND_DICT;
  dict->u.dict.items = mp_arena_copy(ir.module->arena, &item, sizeof(item));
  dict->u.dict.count = 1;
  ir.main->arg_attrs[0] = dict;
  return ir;
}

// The annotation "on partition `device`" for one value.
static mp_named_attr_t on_one(ir_t *ir, int64_t device) {
  mp_arena_t *arena = ir->module->arena;
  const int64_t *ids = mp_arena_copy(arena, &device, sizeof(device));
  mp_sdy_sharding_t *sharding = MP_ARENA_NEW(arena, mp_sdy_sharding_t);
  sharding->mesh = sdy_mesh(arena, "", ids, 1);
  mp_attr_t *attr = MP_ARENA_NEW(arena, mp_attr_t);
  attr->kind = MP_KIND_SHARDINGS;
  attr->u.shardings = (mp_sdy_shardings_t){1, sharding};
  return ir_attr(MP_ATTR_SDY_SHARDING, attr);
}

static mp_named_attr_t has_effect(ir_t *ir) {
  const mp_attr_t *attr = NULL;
  assert_ok(mp_attr_make_bool(ir->module->arena, true, &attr));
  return ir_attr(MP_ATTR_HAS_SIDE_EFFECT, attr);
}

// The device calls with the whole operand, and the others get what it returns.
static void a_call_on_one_device_is_a_branch_and_a_broadcast(void **state) {
  (void)state;
  ir_t ir = start("8xf32");
  mp_value_t *result = ir_op(&ir, MP_OP_CUSTOM_CALL, "8xf32", VALUES(ir.args[0]),
                             ATTRS(ir_string(&ir, MP_ATTR_CALL_TARGET_NAME, "f"), on_one(&ir, 1)));
  ir_return(&ir, VALUES(result));
  assert_ok(partition(&ir, 2));
  ir_check(&ir,
           "%1 = all_gather(%0) {all_gather_dim=0 channel_id=1 replica_groups=[[0,1]] "
           "use_global_device_ids=true} : tensor<8xf32>\n"
           "%2 = constant() {value=1,0} : tensor<2xi32>\n"
           "%3 = partition_id() : tensor<ui32>\n"
           "%4 = dynamic_slice(%2, %3) {slice_sizes=[1]} : tensor<1xi32>\n"
           "%5 = reshape(%4) : tensor<i32>\n"
           "%8 = case(%5) : tensor<8xf32>\n"
           " ^()\n"
           "  %6 = custom_call(%1) {call_target_name=\"f\" sdy.sharding=kind 17} : tensor<8xf32>\n"
           "  return(%6)\n"
           " ^()\n"
           "  %7 = constant() {value=splat 0} : tensor<8xf32>\n"
           "  return(%7)\n"
           "%9 = collective_broadcast(%8) {channel_id=1 replica_groups=[[1,0]]} : tensor<8xf32>\n"
           "return(%9)\n");
  ir_end(&ir);
}

// Nothing is sent for a call without results.
static void a_call_without_results_sends_nothing(void **state) {
  (void)state;
  ir_t ir = start("8xf32");
  (void)ir_op_regions(
      &ir, MP_OP_CUSTOM_CALL, "", VALUES(ir.args[0]),
      ATTRS(ir_string(&ir, MP_ATTR_CALL_TARGET_NAME, "f"), has_effect(&ir), on_one(&ir, 0)), 0,
      NULL);
  ir_return(&ir, VALUES(ir.args[0]));
  assert_ok(partition(&ir, 2));
  ir_check(&ir,
           "%1 = all_gather(%0) {all_gather_dim=0 channel_id=1 replica_groups=[[0,1]] "
           "use_global_device_ids=true} : tensor<8xf32>\n"
           "%2 = constant() {value=0,1} : tensor<2xi32>\n"
           "%3 = partition_id() : tensor<ui32>\n"
           "%4 = dynamic_slice(%2, %3) {slice_sizes=[1]} : tensor<1xi32>\n"
           "%5 = reshape(%4) : tensor<i32>\n"
           "case(%5)\n"
           " ^()\n"
           "  custom_call(%1) {call_target_name=\"f\" has_side_effect=true sdy.sharding=kind 17}\n"
           "  return()\n"
           " ^()\n"
           "  return()\n"
           "return(%0)\n");
  ir_end(&ir);
}

static void partitioned_callbacks_get_parts(void **state) {
  (void)state;
  ir_t ir = start("8xf32");
  (void)ir_op_regions(
      &ir, MP_OP_CUSTOM_CALL, "", VALUES(ir.args[0]),
      ATTRS(ir_string(&ir, MP_ATTR_CALL_TARGET_NAME, "xla_ffi_partitioned_python_cpu_callback"),
            has_effect(&ir), on_one(&ir, 0)),
      0, NULL);
  ir_return(&ir, VALUES(ir.args[0]));
  assert_ok(partition(&ir, 2));
  ir_check(&ir,
           "custom_call(%0) {call_target_name=\"xla_ffi_partitioned_python_cpu_callback\" "
           "has_side_effect=true sdy.sharding=kind 17}\n"
           "return(%0)\n");
  ir_end(&ir);
}

static void a_device_that_is_not_there_is_refused(void **state) {
  (void)state;
  ir_t ir = start("8xf32");
  ir_return(&ir,
            VALUES(ir_op(&ir, MP_OP_CUSTOM_CALL, "8xf32", VALUES(ir.args[0]),
                         ATTRS(ir_string(&ir, MP_ATTR_CALL_TARGET_NAME, "f"), on_one(&ir, 2)))));
  assert_status(partition(&ir, 2), MP_INVALID_ARGUMENT,
                "it is to be on partition 2, but there are 2 partitions");
  ir_end(&ir);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_call_on_one_device_is_a_branch_and_a_broadcast),
      cmocka_unit_test(a_call_without_results_sends_nothing),
      cmocka_unit_test(partitioned_callbacks_get_parts),
      cmocka_unit_test(a_device_that_is_not_there_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
