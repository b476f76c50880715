// What small tensors of integers come to when a program computes them from constants.
#include "sim/passes/desugar/constant_ints.h"
#include "tests/unit/support/ir_test.h"

static void check(const mp_value_t *value, uint32_t count, const int64_t *wanted) {
  int64_t found[MP_CONSTANT_INTS_MAX] = {0};
  assert_true(mp_constant_ints(value, found, count));
  for (uint32_t i = 0; i < count; ++i) assert_int_equal(found[i], wanted[i]);
}
#define CHECK(value, ...)                                                      \
  check(value, (uint32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
        (int64_t[]){__VA_ARGS__})

static mp_value_t *ew(ir_t *ir, mp_opcode_t code, const char *type, mp_value_t *a, mp_value_t *b) {
  if (b == NULL) return ir_op(ir, code, type, VALUES(a), NO_ATTRS);
  return ir_op(ir, code, type, VALUES(a, b), NO_ATTRS);
}

static mp_value_t *compare(ir_t *ir, const char *type, uint32_t direction, mp_value_t *a,
                           mp_value_t *b) {
  const mp_attr_t *value = NULL;
  assert_ok(mp_attr_make_enum(ir->module->arena, MP_ENUM_COMPARISON_DIRECTION, direction, &value));
  return ir_op(ir, MP_OP_COMPARE, type, VALUES(a, b),
               ATTRS(ir_attr(MP_ATTR_COMPARISON_DIRECTION, value)));
}

static void test_movement(void **state) {
  (void)state;
  ir_t ir = ir_start("i64", "");
  mp_value_t *three = IR_I64S(&ir, "3xi64", 5, -6, 7), *one = IR_I64S(&ir, "i64", 9);
  mp_value_t *flat = ir_op(&ir, MP_OP_RESHAPE, "1xi64", VALUES(one), NO_ATTRS);
  mp_value_t *joined = ir_op(&ir, MP_OP_CONCATENATE, "4xi64", VALUES(three, flat),
                             ATTRS(ir_int(&ir, MP_ATTR_DIMENSION, 0)));
  mp_value_t *cut =
      ir_op(&ir, MP_OP_SLICE, "2xi64", VALUES(joined),
            ATTRS(IR_INTS(&ir, MP_ATTR_START_INDICES, 1), IR_INTS(&ir, MP_ATTR_LIMIT_INDICES, 4),
                  IR_INTS(&ir, MP_ATTR_STRIDES, 2)));
  mp_value_t *wide = ir_op(&ir, MP_OP_BROADCAST_IN_DIM, "2x2xi64", VALUES(one),
                           ATTRS(IR_INTS(&ir, MP_ATTR_BROADCAST_DIMENSIONS, 0)));
  mp_value_t *iota =
      ir_op(&ir, MP_OP_IOTA, "3xi32", NO_VALUES, ATTRS(ir_int(&ir, MP_ATTR_IOTA_DIMENSION, 0)));
  CHECK(joined, 5, -6, 7, 9);
  CHECK(cut, -6, 9);
  CHECK(wide, 9, 9, 9, 9);
  CHECK(iota, 0, 1, 2);
  int64_t values[4];
  assert_false(mp_constant_ints(joined, values, 3));
  assert_false(mp_constant_ints(ir.args[0], values, 1));
  assert_false(mp_constant_ints(ew(&ir, MP_OP_ADD, "i64", one, ir.args[0]), values, 1));
  ir_end(&ir);
}

static void test_arithmetic(void **state) {
  (void)state;
  ir_t ir = ir_start("", "");
  mp_value_t *a = IR_I64S(&ir, "3xi64", 7, -7, INT64_MAX), *b = IR_I64S(&ir, "3xi64", 2, 2, 2);
  CHECK(ew(&ir, MP_OP_ADD, "3xi64", a, b), 9, -5, INT64_MIN + 1);
  CHECK(ew(&ir, MP_OP_SUBTRACT, "3xi64", b, a), -5, 9, 3 - INT64_MAX - 1);
  CHECK(ew(&ir, MP_OP_MULTIPLY, "3xi64", a, b), 14, -14, -2);
  CHECK(ew(&ir, MP_OP_DIVIDE, "3xi64", a, b), 3, -3, INT64_MAX / 2);
  CHECK(ew(&ir, MP_OP_REMAINDER, "3xi64", a, b), 1, -1, 1);
  CHECK(ew(&ir, MP_OP_MAXIMUM, "3xi64", a, b), 7, 2, INT64_MAX);
  CHECK(ew(&ir, MP_OP_MINIMUM, "3xi64", a, b), 2, -7, 2);
  CHECK(ew(&ir, MP_OP_NEGATE, "3xi64", a, NULL), -7, 7, -INT64_MAX);
  CHECK(ew(&ir, MP_OP_ABS, "3xi64", a, NULL), 7, 7, INT64_MAX);
  CHECK(ew(&ir, MP_OP_SIGN, "3xi64", a, NULL), 1, -1, 1);
  mp_value_t *less = compare(&ir, "3xi1", MP_CMP_LT, a, b);
  CHECK(less, 0, 1, 0);
  CHECK(ew(&ir, MP_OP_NOT, "3xi1", less, NULL), 1, 0, 1);
  CHECK(ir_op(&ir, MP_OP_SELECT, "3xi64", VALUES(less, a, b), NO_ATTRS), 2, -7, 2);
  mp_value_t *zero = IR_I64S(&ir, "3xi64", 1, 0, 1);
  int64_t values[3];
  assert_false(mp_constant_ints(ew(&ir, MP_OP_DIVIDE, "3xi64", a, zero), values, 3));
  ir_end(&ir);
}

// Values wrap in the program's types, and order depends on their signs.
static void test_types(void **state) {
  (void)state;
  ir_t ir = ir_start("", "");
  mp_value_t *wide = IR_I64S(&ir, "2xi64", 300, -1);
  mp_value_t *bytes = ew(&ir, MP_OP_CONVERT, "2xui8", wide, NULL);
  CHECK(bytes, 44, 255);
  CHECK(ew(&ir, MP_OP_CONVERT, "2xi8", bytes, NULL), 44, -1);
  CHECK(ew(&ir, MP_OP_CONVERT, "2xi32", wide, NULL), 300, -1);
  mp_value_t *sum = ew(&ir, MP_OP_ADD, "2xui8", bytes, bytes);
  CHECK(sum, 88, 254);
  CHECK(compare(&ir, "2xi1", MP_CMP_GT, bytes, sum), 0, 1);
  mp_value_t *big = ew(&ir, MP_OP_CONVERT, "2xui64", wide, NULL);
  CHECK(ew(&ir, MP_OP_DIVIDE, "2xui64", big, IR_I64S(&ir, "2xui64", 2, 2)), 150, INT64_MAX);
  int64_t values[2];
  mp_value_t *real = ew(&ir, MP_OP_CONVERT, "2xf32", wide, NULL);
  assert_false(mp_constant_ints(ew(&ir, MP_OP_CONVERT, "2xi64", real, NULL), values, 2));
  ir_end(&ir);
}

// A value that is doubled forty times would be evaluated 2^40 times, and a chain of a thousand ops
// be as many calls deep.
static void test_bounds(void **state) {
  (void)state;
  ir_t ir = ir_start("", "");
  mp_value_t *value = IR_I64S(&ir, "i64", 1);
  int64_t found = 0;
  for (int i = 0; i < 40; ++i) value = ew(&ir, MP_OP_ADD, "i64", value, value);
  assert_false(mp_constant_ints(value, &found, 1));
  value = IR_I64S(&ir, "i64", 1);
  for (int i = 0; i < 1000; ++i) value = ew(&ir, MP_OP_NEGATE, "i64", value, NULL);
  assert_false(mp_constant_ints(value, &found, 1));
  ir_end(&ir);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_movement),
      cmocka_unit_test(test_arithmetic),
      cmocka_unit_test(test_types),
      cmocka_unit_test(test_bounds),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
