// Programs that the verifier refuses: each breaks one rule, and follows the message that it must
// cause (tests/fixtures/verify_refusals.txt). Also exchanges, which have no text form.
// test_verify.c has more of both kinds, and accepted programs.
#include "sim/ir/verify/verify.h"
#include "sim/readers/text/text.h"
#include "tests/unit/support/fixtures.h"
#include "tests/unit/support/ir_test.h"

static void check_refusal(const char *message, const char *text) {
  mp_module_t *module = NULL;
  mp_status_t status = mp_read_text(text, strlen(text), &module);
  if (status != NULL) fail_msg("not read: %s\n%s", mp_status_message(status), text);
  status = mp_module_verify(module);
  if (strstr(mp_status_message(status), message) == NULL) {
    fail_msg("'%s' is not in: %s\n%s", message, mp_status_message(status), text);
  }
  mp_status_release(status);
  mp_module_release(module);
}

static void broken_rules_are_named(void **state) {
  (void)state;
  fixture_t file = fixture_read("verify_refusals.txt");
  size_t count = 0;
  for (char *at = file.data, *next; at != NULL; at = next, ++count) {
    char *message = at + strlen("=== ");
    next = strstr(at, "\n=== ");
    if (next != NULL) *next++ = '\0';
    char *text = strchr(message, '\n');
    *text++ = '\0';
    check_refusal(message, text);
  }
  assert_true(count >= 100);
  free(file.data);
}

// ---- structure, which readers would not let through ----

static mp_op_t *branch(ir_t *ir, mp_block_t *region) {
  ir->block = ir->main->body;
  return ir_op_regions(ir, MP_OP_CASE, "f32", VALUES(ir->args[0]), NO_ATTRS, 1, &region);
}

static void values_are_used_where_they_are_defined(void **state) {
  (void)state;
  // In a region, used behind it.
  ir_t ir = ir_start("i32 f32", "f32");
  mp_block_t *region = ir_block(&ir, "");
  mp_value_t *inner = ir_op(&ir, MP_OP_NEGATE, "f32", VALUES(ir.args[1]), NO_ATTRS);
  ir_return(&ir, VALUES(inner));
  (void)branch(&ir, region);
  ir_return(&ir, VALUES(ir_op(&ir, MP_OP_SINE, "f32", VALUES(inner), NO_ATTRS)));
  assert_status(mp_module_verify(ir.module), MP_INVALID_ARGUMENT,
                "operand 0 is not defined where it is used [stablehlo.sine");
  ir_end(&ir);
  // Before its definition.
  ir = ir_start("f32", "f32");
  mp_value_t *first = ir_op(&ir, MP_OP_SINE, "f32", VALUES(ir.args[0]), NO_ATTRS);
  mp_value_t *second = ir_op(&ir, MP_OP_NEGATE, "f32", VALUES(ir.args[0]), NO_ATTRS);
  first->op->operands[0] = second;
  ir_return(&ir, VALUES(first));
  assert_status(mp_module_verify(ir.module), MP_INVALID_ARGUMENT,
                "operand 0 is not defined where it is used [stablehlo.sine");
  ir_end(&ir);
}

static void blocks_end_in_one_return(void **state) {
  (void)state;
  ir_t ir = ir_start("i32 f32", "f32");
  mp_block_t *region = ir_block(&ir, "");
  ir_return(&ir, VALUES(ir.args[1]));
  ir_return(&ir, VALUES(ir.args[1]));
  mp_op_t *op = branch(&ir, region);
  ir_return(&ir, VALUES(op->results));
  assert_status(mp_module_verify(ir.module), MP_INVALID_ARGUMENT,
                "return is not the last operation");
  mp_op_unlink(region->first);
  assert_ok(mp_module_verify(ir.module));
  mp_op_unlink(region->first);
  assert_status(mp_module_verify(ir.module), MP_INVALID_ARGUMENT, "does not end in return");
  ir.block = region;
  (void)ir_op(&ir, MP_OP_NEGATE, "f32", VALUES(ir.args[1]), NO_ATTRS);
  assert_status(mp_module_verify(ir.module), MP_INVALID_ARGUMENT, "does not end in return");
  ir_end(&ir);
}

static void regions_nest_to_a_limit(void **state) {
  (void)state;
  for (int depth = 250; depth <= 260; depth += 10) {
    ir_t ir = ir_start("i32 f32", "f32");
    mp_value_t *value = ir.args[1];
    mp_block_t *inner = NULL;
    for (int i = 0; i < depth; ++i) {
      mp_block_t *block = ir_block(&ir, "");
      if (inner != NULL) {
        value =
            ir_op_regions(&ir, MP_OP_CASE, "f32", VALUES(ir.args[0]), NO_ATTRS, 1, &inner)->results;
      }
      ir_return(&ir, VALUES(value));
      inner = block;
    }
    mp_op_t *outer = branch(&ir, inner);
    ir_return(&ir, VALUES(outer->results));
    mp_status_t status = mp_module_verify(ir.module);
    if (depth < 256) {
      assert_ok(status);
    } else {
      assert_status(status, MP_INVALID_ARGUMENT, "nested");
    }
    ir_end(&ir);
  }
}

// ---- minipod.exchange ----

static const int64_t g_dims[] = {6, 4};
static const int32_t g_groups[] = {0, 0};

static mp_boxes_t halves(void) {
  static const int64_t starts[] = {0, 0, 3, 0}, sizes[] = {3, 4, 3, 4};
  return (mp_boxes_t){2, 2, g_dims, starts, sizes, g_groups, NULL, 0};
}

static mp_status_t verify_exchange(const char *operand, const char *result,
                                   const mp_boxes_t *source, const mp_boxes_t *target) {
  ir_t ir = ir_start(operand, result);
  const mp_attr_t from = {.kind = MP_KIND_BOXES, .u.boxes = source};
  const mp_attr_t to = {.kind = MP_KIND_BOXES, .u.boxes = target};
  ir_return(&ir,
            VALUES(ir_op(&ir, MP_OP_EXCHANGE, result, VALUES(ir.args[0]),
                         ATTRS(ir_attr(MP_ATTR_SOURCE, &from), ir_attr(MP_ATTR_TARGET, &to)))));
  mp_status_t status = mp_module_verify(ir.module);
  ir_end(&ir);
  return status;
}

static void exchanges_stay_within_the_tensor(void **state) {
  (void)state;
  const mp_boxes_t source = halves();
  assert_ok(verify_exchange("3x4xf32", "3x4xf32", &source, &source));
  static const struct {
    int64_t starts[4], sizes[4];
    const char *error;  // NULL: fine
  } cases[] = {
      {{0, 0, 0, 2}, {6, 2, 6, 2}, NULL},
      {{0, 0, 9, 0}, {6, 4, 0, 4}, NULL},  // an empty box lies anywhere
      {{0, 0, -1, 0}, {3, 4, 3, 4}, "box of partition 1"},
      {{0, 0, 3, 0}, {3, 4, -3, 4}, "box of partition 1"},
      {{0, 0, 4, 0}, {3, 4, 3, 4}, "box of partition 1"},
      {{0, 1, 3, 0}, {3, 4, 3, 4}, "box of partition 0"},
      {{0, 0, INT64_MAX, 0}, {3, 4, 3, 4}, "box of partition 1"},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    mp_boxes_t target = source;
    target.starts = cases[i].starts;
    target.sizes = cases[i].sizes;
    for (int turned = 0; turned < 2; ++turned) {
      mp_status_t status = verify_exchange("3x4xf32", "3x4xf32", turned ? &target : &source,
                                           turned ? &source : &target);
      if (cases[i].error == NULL) {
        assert_ok(status);
      } else {
        assert_status(status, MP_INVALID_ARGUMENT, cases[i].error);
      }
    }
  }
}

static void exchanges_are_of_one_tensor(void **state) {
  (void)state;
  const mp_boxes_t source = halves();
  mp_boxes_t other = source;
  other.rank = 1;
  assert_status(verify_exchange("3x4xf32", "3x4xf32", &source, &other), MP_INVALID_ARGUMENT,
                "not of one tensor and one set of partitions");
  other = source;
  other.num_partitions = 1;
  assert_status(verify_exchange("3x4xf32", "3x4xf32", &source, &other), MP_INVALID_ARGUMENT,
                "not of one tensor and one set of partitions");
  assert_status(verify_exchange("3x4xf32", "3x4xi32", &source, &source), MP_INVALID_ARGUMENT,
                "operand and result have different types");
  assert_status(verify_exchange("12xf32", "3x4xf32", &source, &source), MP_INVALID_ARGUMENT,
                "values of rank 1 and 2, boxes of rank 2");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(broken_rules_are_named),
      cmocka_unit_test(values_are_used_where_they_are_defined),
      cmocka_unit_test(blocks_end_in_one_return),
      cmocka_unit_test(regions_nest_to_a_limit),
      cmocka_unit_test(exchanges_stay_within_the_tensor),
      cmocka_unit_test(exchanges_are_of_one_tensor),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
