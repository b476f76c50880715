// What reductions may begin with.
#include "sim/ir/reducer.h"
#include "tests/unit/support/ir_test.h"

static void some_values_may_begin_each_part(void **state) {
  (void)state;
  static const float zero[] = {0, 0}, minus[] = {-0.0F, 0}, one[] = {1, 0}, other[] = {0, 2};
  static const struct {
    const char *type;
    const float *element;
    mp_opcode_t code;
    bool may_repeat;
  } rows[] = {
      {"f32", zero, MP_OP_ADD, true},
      {"f32", minus, MP_OP_ADD, true},
      {"f32", one, MP_OP_ADD, false},
      {"f32", one, MP_OP_MULTIPLY, true},
      {"f32", zero, MP_OP_MULTIPLY, false},
      {"f32", one, MP_OP_MAXIMUM, true},
      {"complex<f32>", zero, MP_OP_ADD, true},
      {"complex<f32>", minus, MP_OP_ADD, true},
      {"complex<f32>", other, MP_OP_ADD, false},
      {"complex<f32>", one, MP_OP_ADD, false},
      {"complex<f32>", one, MP_OP_MULTIPLY, false},  // an infinity times 1 + 0i is not itself
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    ir_t ir = ir_start("", rows[i].type);
    const size_t size = rows[i].type[0] == 'c' ? 2 * sizeof(float) : sizeof(float);
    mp_value_t *value = ir_constant(&ir, rows[i].type, rows[i].element, size);
    if (mp_reducer_may_repeat(value, rows[i].code) != rows[i].may_repeat)
      fail_msg("row %zu: %s", i, rows[i].type);
    ir_return(&ir, VALUES(value));
    ir_end(&ir);
  }
}

// A value that is not known may begin only a choice.
static void arguments_may_begin_choices(void **state) {
  (void)state;
  ir_t ir = ir_start("i32", "i32");
  assert_true(mp_reducer_may_repeat(ir.args[0], MP_OP_MINIMUM));
  assert_true(mp_reducer_may_repeat(ir.args[0], MP_OP_AND));
  assert_false(mp_reducer_may_repeat(ir.args[0], MP_OP_ADD));
  assert_false(mp_reducer_may_repeat(ir.args[0], MP_OP_XOR));
  ir_return(&ir, VALUES(ir.args[0]));
  ir_end(&ir);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(some_values_may_begin_each_part),
      cmocka_unit_test(arguments_may_begin_choices),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
