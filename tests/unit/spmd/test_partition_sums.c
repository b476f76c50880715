// Sums over partitions: terms that linear ops work on, and sums that are made at once.
#include "sim/ir/verify/verify.h"
#include "sim/passes/passes.h"
#include "sim/spmd/build/append_collective.h"
#include "sim/spmd/build/combine_sums.h"
#include "sim/spmd/partition/partition.h"
#include "tests/unit/support/ir_test.h"
#include "tests/unit/support/sdy_test.h"

// ---- combining ----

static mp_value_t *sum(ir_t *ir, mp_value_t *value, bool is_minor) {
  ir->module->num_partitions = 4;
  static const int64_t tables[2][4] = {{0, 1, 2, 3}, {0, 2, 1, 3}};
  const mp_attr_t *groups = NULL;
  mp_value_t *result = NULL;
  assert_ok(mp_append_groups(ir->module, tables[is_minor ? 0 : 1], 2, 2, &groups));
  assert_ok(mp_append_all_reduce(&(mp_append_at_t){ir->module, ir->block, NULL}, groups, MP_OP_ADD,
                                 value, &result));
  return result;
}

static mp_value_t *negate(ir_t *ir, mp_value_t *value) {
  return ir_op(ir, MP_OP_NEGATE, "4xf32", VALUES(value), NO_ATTRS);
}

// The collectives of main, as their numbers of operands.
static void check_sums(ir_t *ir, const char *expected) {
  assert_ok(mp_spmd_combine(ir->module, ir->main->body));
  char text[64] = "";
  size_t size = 0;
  for (const mp_op_t *op = ir->main->body->first; op != NULL; op = op->next) {
    if (op->code != MP_OP_ALL_REDUCE) continue;
    text[size++] = (char)('0' + op->num_operands);
    text[size] = '\0';
  }
  assert_string_equal(text, expected);
  assert_ok(mp_module_verify(ir->module));
  ir_end(ir);
}

// Those of one group whose terms are there before the first of them is used.
static void test_combine(void **state) {
  (void)state;
  ir_t ir = ir_start("4xf32 4xf32 4xf32", "4xf32 4xf32 4xf32");
  mp_value_t *first = negate(&ir, sum(&ir, ir.args[0], true));
  mp_value_t *second = negate(&ir, sum(&ir, ir.args[1], true));
  mp_value_t *third = negate(&ir, sum(&ir, ir.args[2], true));
  ir_return(&ir, VALUES(first, second, third));
  check_sums(&ir, "3");

  // The second waits for the first.
  ir = ir_start("4xf32 4xf32", "4xf32 4xf32");
  first = negate(&ir, sum(&ir, ir.args[0], true));
  second = sum(&ir, first, true);
  ir_return(&ir, VALUES(second, sum(&ir, ir.args[1], true)));
  check_sums(&ir, "21");

  // A sum of a sum stays; other groups do not mix.
  ir = ir_start("4xf32 4xf32", "4xf32 4xf32");
  second = sum(&ir, sum(&ir, ir.args[0], true), false);
  ir_return(&ir, VALUES(second, sum(&ir, ir.args[1], true)));
  check_sums(&ir, "21");

  // The program's own collectives stay as they are.
  ir = ir_start("4xf32 4xf32", "4xf32 4xf32");
  first = sum(&ir, ir.args[0], true);
  first->op->id = 0;
  ir_return(&ir, VALUES(first, sum(&ir, ir.args[1], true)));
  check_sums(&ir, "11");
}

// ---- terms ----

static void annotate(ir_t *ir, const mp_attr_t **slot, const mp_mesh_t *mesh, const char *text) {
  mp_named_attr_t item =
      ir_attr(MP_ATTR_SDY_SHARDING, sdy_sharding_attr(ir->module->arena, mesh, 2, text));
  mp_attr_t *dict = MP_ARENA_NEW(ir->module->arena, mp_attr_t);
  dict->kind = MP_KIND_DICT;
  dict->u.dict.items = mp_arena_copy(ir->module->arena, &item, sizeof(item));
  dict->u.dict.count = 1;
  *slot = dict;
}

static mp_value_t *dot(ir_t *ir, mp_value_t *a, mp_value_t *b) {
  return ir_op(ir, MP_OP_DOT_GENERAL, "4x4xf32", VALUES(a, b),
               ATTRS(IR_INTS(ir, MP_ATTR_LHS_CONTRACTING_DIMENSIONS, 1),
                     IR_INTS(ir, MP_ATTR_RHS_CONTRACTING_DIMENSIONS, 0)));
}

static mp_status_t partition(ir_t *ir, uint32_t num_partitions) {
  const bool is_open = false;
  const mp_partition_options_t options = {.num_partitions = num_partitions,
                                          .propagate_to_results = &is_open,
                                          .num_propagate_to_results = 1};
  mp_partition_t parts;
  MP_RETURN_IF_ERROR(mp_passes_prepare(ir->module));
  return mp_spmd_partition(ir->module, &options, &parts);
}

// Two products whose contracted dimension is cut are added, transposed and then summed up, once.
static void test_linear_ops(void **state) {
  (void)state;
  ir_t ir = ir_start("4x8xf32 8x4xf32", "4x4xf32");
  const mp_mesh_t *mesh = sdy_mesh(ir.module->arena, "x=2", NULL, 0);
  annotate(&ir, &ir.main->arg_attrs[0], mesh, ";x");
  annotate(&ir, &ir.main->arg_attrs[1], mesh, "x;");
  annotate(&ir, &ir.main->result_attrs[0], mesh, ";");
  mp_value_t *both =
      ir_op(&ir, MP_OP_ADD, "4x4xf32",
            VALUES(dot(&ir, ir.args[0], ir.args[1]), dot(&ir, ir.args[0], ir.args[1])), NO_ATTRS);
  ir_return(&ir, VALUES(ir_op(&ir, MP_OP_TRANSPOSE, "4x4xf32", VALUES(both),
                              ATTRS(IR_INTS(&ir, MP_ATTR_PERMUTATION, 1, 0)))));
  assert_ok(partition(&ir, 2));
  ir_check(&ir,
           "%2 = dot_general(%0, %1) {lhs_contracting_dimensions=[1] "
           "rhs_contracting_dimensions=[0]} : tensor<4x4xf32>\n"
           "%3 = dot_general(%0, %1) {lhs_contracting_dimensions=[1] "
           "rhs_contracting_dimensions=[0]} : tensor<4x4xf32>\n"
           "%4 = add(%2, %3) : tensor<4x4xf32>\n"
           "%5 = transpose(%4) {permutation=[1,0]} : tensor<4x4xf32>\n"
           "%9 = all_reduce(%5) {channel_id=1 replica_groups=[[0,1]] use_global_device_ids=true} : "
           "tensor<4x4xf32>\n"
           " ^(%6: tensor<f32>, %7: tensor<f32>)\n"
           "  %8 = add(%6, %7) : tensor<f32>\n"
           "  return(%8)\n"
           "return(%9)\n");
  ir_end(&ir);
}

// A value that something else uses is summed up at once, or it would be sent twice.
static void test_terms_used_twice(void **state) {
  (void)state;
  ir_t ir = ir_start("4x8xf32 8x4xf32", "4x4xf32");
  const mp_mesh_t *mesh = sdy_mesh(ir.module->arena, "x=2", NULL, 0);
  annotate(&ir, &ir.main->arg_attrs[0], mesh, ";x");
  annotate(&ir, &ir.main->arg_attrs[1], mesh, "x;");
  annotate(&ir, &ir.main->result_attrs[0], mesh, ";");
  mp_value_t *product = dot(&ir, ir.args[0], ir.args[1]);
  mp_value_t *negated = ir_op(&ir, MP_OP_NEGATE, "4x4xf32", VALUES(product), NO_ATTRS);
  mp_value_t *cosine = ir_op(&ir, MP_OP_COSINE, "4x4xf32", VALUES(product), NO_ATTRS);
  ir_return(&ir, VALUES(ir_op(&ir, MP_OP_ADD, "4x4xf32", VALUES(negated, cosine), NO_ATTRS)));
  assert_ok(partition(&ir, 2));
  uint32_t sums = 0;
  for (const mp_op_t *op = ir.module->main->body->first; op != NULL; op = op->next) {
    sums += op->code == MP_OP_ALL_REDUCE;
    if (op->code == MP_OP_NEGATE) assert_int_equal(op->operands[0]->op->code, MP_OP_ALL_REDUCE);
  }
  assert_int_equal(sums, 1);
  ir_end(&ir);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_combine),
      cmocka_unit_test(test_linear_ops),
      cmocka_unit_test(test_terms_used_twice),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
