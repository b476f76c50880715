// The table of attributes: order, defaults, completion.
#include "tests/unit/support/unit.h"

#include <string.h>

#include "sim/ir/schema.h"

static void test_table(void **state) {
  (void)state;
  for (int code = 0; code < MP_OP_COUNT; ++code) {
    mp_schema_t schema = mp_schema_of((mp_opcode_t)code);
    for (uint32_t i = 0; i < schema.count; ++i) {
      const mp_schema_attr_t *row = &schema.attrs[i];
      assert_true(row->kinds != 0);
      assert_ptr_equal(mp_schema_find((mp_opcode_t)code, row->name), row);
      if (i > 0) {
        const char *before = mp_attr_name_text(schema.attrs[i - 1].name);
        if (strcmp(before, mp_attr_name_text(row->name)) >= 0)
          fail_msg("%s: %s is out of order", mp_op_info((mp_opcode_t)code)->name,
                   mp_attr_name_text(row->name));
      }
    }
  }
  assert_int_equal(mp_schema_of(MP_OP_ADD).count, 0);
  assert_null(mp_schema_find(MP_OP_SORT, MP_ATTR_OTHER));
  assert_null(mp_schema_find(MP_OP_SORT, MP_ATTR_PADDING));
}

static const mp_attr_t *find(const mp_named_attr_t *attrs, uint32_t count, mp_attr_name_t name) {
  for (uint32_t i = 0; i < count; ++i)
    if (attrs[i].name == name) return attrs[i].value;
  return NULL;
}

static void test_completion(void **state) {
  (void)state;
  mp_module_t *module;
  assert_ok(mp_module_create(&module));
  const mp_attr_t *dims, *text, *other_dims;
  assert_ok(mp_attr_make_ints(module->arena, (int64_t[]){1, 3, 3}, 3, &dims));
  assert_ok(mp_attr_make_ints(module->arena, (int64_t[]){1}, 1, &other_dims));
  assert_ok(mp_attr_make_string(module->arena, MP_STR("{replicated}"), &text));
  mp_named_attr_t given[] = {
      {MP_ATTR_MHLO_SHARDING, MP_STR("mhlo.sharding"), text},
      {MP_ATTR_WINDOW_DIMENSIONS, MP_STR("window_dimensions"), dims},
      {MP_ATTR_WINDOW_DIMENSIONS, MP_STR("window_dimensions"), other_dims},
  };
  mp_named_attr_t *attrs;
  uint32_t count;
  assert_ok(mp_schema_complete(module->arena, MP_OP_REDUCE_WINDOW, given, 3, &attrs, &count));
  assert_int_equal(count, 6);
  assert_int_equal(attrs[0].name, MP_ATTR_BASE_DILATIONS);
  assert_ptr_equal(find(attrs, count, MP_ATTR_WINDOW_DIMENSIONS), dims);
  assert_int_equal(attrs[5].name, MP_ATTR_MHLO_SHARDING);
  const mp_attr_t *padding = find(attrs, count, MP_ATTR_PADDING);
  assert_int_equal(padding->u.ints.rank, 2);
  assert_int_equal(padding->u.ints.dims[0], 3);
  const mp_attr_t *strides = find(attrs, count, MP_ATTR_WINDOW_STRIDES);
  assert_int_equal(strides->u.ints.count, 3);
  assert_int_equal(strides->u.ints.values[2], 1);

  mp_op_t op = {.code = MP_OP_REDUCE_WINDOW, .num_attrs = count, .attrs = attrs};
  for (uint32_t i = 0; i < count; ++i) {
    const mp_schema_attr_t *row = mp_schema_find(MP_OP_REDUCE_WINDOW, attrs[i].name);
    if (row == NULL) continue;
    assert_int_equal(mp_schema_is_default(&op, row, attrs[i].value),
                     row->name != MP_ATTR_WINDOW_DIMENSIONS);
  }
  mp_module_release(module);
}

static void test_defaults_are_defaults(void **state) {
  (void)state;
  mp_arena_t *arena;
  assert_ok(mp_arena_create(&arena));
  for (int code = 0; code < MP_OP_COUNT; ++code) {
    mp_op_t op = {.code = (mp_opcode_t)code};
    assert_ok(mp_schema_complete(arena, op.code, NULL, 0, &op.attrs, &op.num_attrs));
    for (uint32_t i = 0; i < op.num_attrs; ++i) {
      const mp_schema_attr_t *row = mp_schema_find(op.code, op.attrs[i].name);
      if (!mp_schema_is_default(&op, row, op.attrs[i].value))
        fail_msg("%s of %s", mp_attr_name_text(row->name), mp_op_info(op.code)->name);
      if ((row->kinds >> op.attrs[i].value->kind & 1) == 0)
        fail_msg("kind of %s of %s", mp_attr_name_text(row->name), mp_op_info(op.code)->name);
    }
  }
  mp_arena_release(arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_table),
      cmocka_unit_test(test_completion),
      cmocka_unit_test(test_defaults_are_defaults),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
