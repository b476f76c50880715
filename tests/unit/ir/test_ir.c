// The IR's data structures: types, attributes, locations, modules, traversals.
#include "tests/unit/support/unit.h"

#include <string.h>

#include "sim/ir/module.h"

static void check_text(mp_strbuf_t *buffer, const char *expected) {
  assert_string_equal(mp_strbuf_text(buffer), expected);
  mp_strbuf_deinit(buffer);
  mp_strbuf_init(buffer);
}

static void test_types(void **state) {
  (void)state;
  mp_arena_t *arena;
  assert_ok(mp_arena_create(&arena));
  const mp_type_t *a, *b, *scalar, *tuple, *huge, *empty, *dynamic;
  int64_t count, bytes;
  assert_ok(mp_type_tensor(arena, MP_DTYPE_F32, (int64_t[]){4, 8}, 2, &a));
  assert_ok(mp_type_tensor(arena, MP_DTYPE_BF16, (int64_t[]){4, 8}, 2, &b));
  assert_ok(mp_type_tensor(arena, MP_DTYPE_C64, NULL, 0, &scalar));
  assert_ok(mp_type_tensor(arena, MP_DTYPE_F32, (int64_t[]){1LL << 40, 1LL << 40}, 2, &huge));
  assert_ok(mp_type_tensor(arena, MP_DTYPE_F32, (int64_t[]){1LL << 40, 1LL << 40, 0}, 3, &empty));
  assert_ok(mp_type_tensor(arena, MP_DTYPE_F32, (int64_t[]){MP_DYNAMIC, 8}, 2, &dynamic));
  const mp_type_t *elements[] = {a, mp_type_token()};
  assert_ok(mp_type_compound(arena, MP_TYPE_TUPLE, elements, 2, &tuple));

  assert_true(mp_type_same_shape(a, b));
  assert_false(mp_type_equal(a, b));
  assert_true(mp_type_equal(tuple, tuple));
  assert_true(mp_type_num_elements(a, &count) && count == 32);
  assert_true(mp_type_num_bytes(b, &bytes) && bytes == 64);
  assert_true(mp_type_num_bytes(mp_type_token(), &bytes) && bytes == 0);
  assert_false(mp_type_num_elements(huge, &count));
  assert_true(mp_type_num_elements(empty, &count) && count == 0);
  assert_true(mp_type_is_static(a));
  assert_false(mp_type_is_static(dynamic));

  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_type_print(dynamic, &text);
  check_text(&text, "tensor<?x8xf32>");
  mp_type_print(scalar, &text);
  check_text(&text, "tensor<complex<f32>>");
  mp_type_print(tuple, &text);
  check_text(&text, "tuple<tensor<4x8xf32>, !stablehlo.token>");
  mp_strbuf_deinit(&text);
  mp_arena_release(arena);
}

static void test_names(void **state) {
  (void)state;
  mp_opcode_t code;
  for (int i = 0; i < MP_OP_COUNT; ++i) {
    assert_true(mp_opcode_from_name(mp_str(mp_op_info((mp_opcode_t)i)->name), &code));
    assert_int_equal(code, i);
  }
  assert_true(mp_opcode_from_name(MP_STR("mhlo.add"), &code) && code == MP_OP_ADD);
  assert_false(mp_opcode_from_name(MP_STR("mhlo."), &code));
  assert_false(mp_opcode_from_name(MP_STR(""), &code));
  assert_false(mp_opcode_from_name(MP_STR("mhlo.func.call"), &code));
  for (int i = 1; i < MP_ATTR_NAME_COUNT; ++i)
    assert_int_equal(mp_attr_name_from_text(mp_str(mp_attr_name_text((mp_attr_name_t)i))), i);
  assert_int_equal(mp_attr_name_from_text(MP_STR("nothing")), MP_ATTR_OTHER);

  assert_string_equal(mp_enum_value_name(MP_ENUM_COMPARISON_DIRECTION, MP_CMP_LT), "LT");
  assert_null(mp_enum_value_name(MP_ENUM_RNG_DISTRIBUTION, 0));
  assert_null(mp_enum_value_name(MP_ENUM_PRECISION, 77));
  assert_int_equal(mp_enum_value_from_name(MP_ENUM_RNG_DISTRIBUTION, MP_STR("NORMAL")), 2);
  assert_int_equal(mp_enum_value_from_name(MP_ENUM_PRECISION, MP_STR("LOW")), -1);
}

static void test_locations(void **state) {
  (void)state;
  mp_loc_t inner = {.kind = MP_LOC_FILE, .text = MP_STR("train.py"), .line = 12, .column = 7};
  mp_loc_t outer = {.kind = MP_LOC_FILE, .text = MP_STR("main.py"), .line = 3};
  const mp_loc_t *function_child[] = {&inner};
  mp_loc_t function = {
      .kind = MP_LOC_NAME, .text = MP_STR("step"), .num_children = 1, .children = function_child};
  const mp_loc_t *call_children[] = {&function, &outer};
  mp_loc_t call = {.kind = MP_LOC_CALL_SITE, .num_children = 2, .children = call_children};
  const mp_loc_t *name_child[] = {&call};
  mp_loc_t name = {.kind = MP_LOC_NAME,
                   .text = MP_STR("jit(f)/vmap(a/b)/psum"),
                   .num_children = 1,
                   .children = name_child};
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_loc_describe(&name, &text);
  check_text(&text, "psum at train.py:12:7");
  // A marked name is a path, although it is not the outermost name.
  mp_loc_t marked = function;
  marked.text = MP_STR(MP_LOC_PATH_MARK "blocks.0.up/addmm");
  const mp_loc_t *marked_children[] = {&marked, &outer};
  mp_loc_t marked_call = {.kind = MP_LOC_CALL_SITE, .num_children = 2, .children = marked_children};
  const mp_loc_t *marked_child[] = {&marked_call};
  mp_loc_t op = {
      .kind = MP_LOC_NAME, .text = MP_STR("mm/mm"), .num_children = 1, .children = marked_child};
  mp_loc_describe(&op, &text);
  check_text(&text, "addmm at train.py:12:7");
  assert_true(mp_str_is(mp_loc_path(&op), "blocks.0.up/addmm"));
  assert_true(mp_str_is(mp_loc_path(&name), "jit(f)/vmap(a/b)/psum"));
  assert_int_equal(mp_loc_path(&outer).size, 0);

  mp_loc_describe(&outer, &text);
  check_text(&text, "main.py:3");
  mp_loc_describe(NULL, &text);
  check_text(&text, "unknown location");

  // A tree of 2^40 leaves in forty nodes must not take long.
  mp_loc_t fused[40];
  const mp_loc_t *children[40][2];
  mp_loc_t unknown = {.kind = MP_LOC_UNKNOWN};
  for (int i = 0; i < 40; ++i) {
    children[i][0] = children[i][1] = i == 0 ? &unknown : &fused[i - 1];
    fused[i] = (mp_loc_t){.kind = MP_LOC_FUSED, .num_children = 2, .children = children[i]};
  }
  mp_loc_describe(&fused[39], &text);
  check_text(&text, "unknown location");
  mp_strbuf_deinit(&text);
}

// What is described of calls, the innermost frame first.
static void check_stack(const char *const *files, int count, const char *expected) {
  mp_loc_t file[8], call[8];
  const mp_loc_t *parts[8][2];
  for (int i = count; i-- > 0;) {
    file[i] = (mp_loc_t){.kind = MP_LOC_FILE, .text = mp_str(files[i]), .line = (uint32_t)i + 1};
    call[i] = file[i];
    if (i + 1 == count) continue;
    parts[i][0] = &file[i];
    parts[i][1] = &call[i + 1];
    call[i] = (mp_loc_t){.kind = MP_LOC_CALL_SITE, .num_children = 2, .children = parts[i]};
  }
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_loc_describe(&call[0], &text);
  check_text(&text, expected);
  mp_strbuf_deinit(&text);
}

static void test_lines_of_users(void **state) {
  (void)state;
  check_stack((const char *[]){"/venv/lib/python3.12/site-packages/flax/linear.py",
                               "/usr/lib/python3.12/contextlib.py", "/home/me/train.py",
                               "/home/me/main.py"},
              4, "/home/me/train.py:3, in flax/linear.py:1");
  check_stack((const char *[]){"/home/me/train.py", "/usr/lib/python3/dist-packages/optax/a.py"}, 2,
              "/home/me/train.py:1");
  check_stack((const char *[]){"<frozen runpy>", "/usr/lib64/python3.11/runpy.py", "/a/lib/b.py"},
              3, "/a/lib/b.py:3, in <frozen runpy>:1");
  // Nothing but packages: the innermost one. What starts them is no user's.
  check_stack(
      (const char *[]){"/x/site-packages/a/b.py", "/x/site-packages/a/c.py", "/x/bin/torchrun"}, 3,
      "a/b.py:1");
  check_stack((const char *[]){"/x/site-packages/a/b.py", "/x/bin/train.py"}, 2,
              "/x/bin/train.py:2, in a/b.py:1");
  check_stack((const char *[]){"a\033[31m\n\xC2\x9Bé.py"}, 1, "a\\x1b[31m\\x0a\xC2\\x9bé.py:1");
}

// f(x, y) { c = case(y) { return add(x, x) } ; return c }
typedef struct {
  mp_module_t *module;
  mp_func_t *func;
  mp_op_t *add, *branch;
} sample_t;

static mp_op_t *new_op(mp_module_t *module, mp_opcode_t code, uint32_t n, mp_value_t **operands,
                       uint32_t num_results, const mp_type_t *type, mp_block_t *region) {
  mp_op_spec_t spec = {.code = code,
                       .num_operands = n,
                       .operands = operands,
                       .num_results = num_results,
                       .result_types = &type,
                       .num_regions = region != NULL,
                       .regions = &region};
  mp_op_t *op = NULL;
  assert_ok(mp_op_create(module, &spec, &op));
  return op;
}

static sample_t make_sample(void) {
  sample_t s;
  const mp_type_t *type, *index;
  assert_ok(mp_module_create(&s.module));
  assert_ok(mp_type_tensor(s.module->arena, MP_DTYPE_F32, (int64_t[]){4}, 1, &type));
  assert_ok(mp_type_tensor(s.module->arena, MP_DTYPE_S32, NULL, 0, &index));
  const mp_type_t *arg_types[] = {type, index};
  assert_ok(mp_func_create(s.module, MP_STR("main"), 2, arg_types, 1, &type, &s.func));
  mp_value_t *x = &s.func->body->args[0], *y = &s.func->body->args[1];
  mp_block_t *region;
  assert_ok(mp_block_create(s.module, 0, NULL, &region));
  s.add = new_op(s.module, MP_OP_ADD, 2, (mp_value_t *[]){x, x}, 1, type, NULL);
  mp_block_append(region, s.add);
  mp_value_t *sum = &s.add->results[0];
  mp_block_append(region, new_op(s.module, MP_OP_RETURN, 1, &sum, 0, NULL, NULL));
  s.branch = new_op(s.module, MP_OP_CASE, 1, &y, 1, type, region);
  mp_block_append(s.func->body, s.branch);
  mp_value_t *result = &s.branch->results[0];
  mp_block_append(s.func->body, new_op(s.module, MP_OP_RETURN, 1, &result, 0, NULL, NULL));
  return s;
}

static void test_blocks(void **state) {
  (void)state;
  sample_t s = make_sample();
  mp_block_t *body = s.func->body;
  assert_ptr_equal(mp_module_find_func(s.module, MP_STR("main")), s.func);
  assert_null(mp_module_find_func(s.module, MP_STR("other")));
  assert_ptr_equal(s.branch->regions[0]->parent_op, s.branch);
  assert_ptr_equal(mp_block_terminator(body)->prev, s.branch);
  mp_op_unlink(s.branch);
  assert_ptr_equal(body->first, body->last);
  mp_block_insert_before(body->last, s.branch);
  assert_ptr_equal(body->first, s.branch);
  assert_ptr_equal(s.branch->next, body->last);
  mp_op_unlink(body->last);
  assert_ptr_equal(body->last, s.branch);
  mp_module_release(s.module);
}

static mp_status_t count_visits(void *context, mp_op_t *op) {
  (void)op;
  ++*(int *)context;
  return NULL;
}

static mp_status_t unlink_case(void *context, mp_op_t *op) {
  ++*(int *)context;
  if (op->code == MP_OP_CASE) mp_op_unlink(op);
  return NULL;
}

static void test_walks(void **state) {
  (void)state;
  sample_t s = make_sample();
  int visits = 0;
  assert_ok(mp_module_walk(s.module, count_visits, &visits));
  assert_int_equal(visits, 4);
  assert_int_equal(mp_module_number_values(s.module), 4);
  mp_value_t **captured;
  uint32_t count;
  assert_ok(mp_op_captures(s.branch, s.module->arena, &captured, &count));
  assert_int_equal(count, 1);
  assert_ptr_equal(captured[0], &s.func->body->args[0]);
  visits = 0;
  assert_ok(mp_module_walk(s.module, unlink_case, &visits));
  assert_int_equal(visits, 2);  // case and return: what was unlinked is not entered
  mp_module_release(s.module);
}

static void test_clone(void **state) {
  (void)state;
  sample_t s = make_sample();
  uint32_t num_values = mp_module_number_values(s.module);
  mp_value_t **map = MP_ARENA_ARRAY(s.module->arena, mp_value_t *, num_values);
  mp_value_t *other = MP_ARENA_NEW(s.module->arena, mp_value_t);
  map[s.func->body->args[0].id] = other;
  mp_op_t *copy;
  assert_ok(mp_op_clone(s.module, s.branch, map, &copy));
  mp_op_t *add = copy->regions[0]->first;
  assert_ptr_not_equal(add, s.add);
  assert_ptr_equal(add->operands[0], other);
  assert_ptr_equal(add->next->operands[0], &add->results[0]);
  assert_ptr_equal(map[s.branch->results[0].id], &copy->results[0]);
  assert_ptr_equal(copy->operands[0], s.branch->operands[0]);
  assert_null(copy->parent);
  mp_module_release(s.module);
}

static void tables_that_are_equal_are_one(void **state) {
  (void)state;
  sample_t s = make_sample();
  const mp_attr_t *first, *same, *other, *flat, *none[2];
  assert_ok(mp_module_make_table(s.module, (int64_t[]){0, 1, 2, 3}, 2, 2, &first));
  assert_ok(mp_module_make_table(s.module, (int64_t[]){0, 2, 1, 3}, 2, 2, &other));
  assert_ok(mp_module_make_table(s.module, (int64_t[]){0, 1, 2, 3}, 1, 4, &flat));
  assert_ok(mp_module_make_table(s.module, (int64_t[]){0, 1, 2, 3}, 2, 2, &same));
  assert_ptr_equal(first, same);
  assert_ptr_not_equal(first, other);
  assert_ptr_not_equal(first, flat);
  assert_int_equal(first->u.ints.values[2], 2);
  assert_int_equal(other->u.ints.values[2], 1);
  for (int i = 0; i < 2; ++i) assert_ok(mp_module_make_table(s.module, NULL, 0, 2, &none[i]));
  assert_ptr_equal(none[0], none[1]);
  mp_module_release(s.module);
}

static void test_attributes(void **state) {
  (void)state;
  sample_t s = make_sample();
  mp_arena_t *arena = s.module->arena;
  const mp_attr_t *ints, *boolean, *text, *number, *table;
  assert_ok(mp_attr_make_ints(arena, (int64_t[]){3, 1, 2}, 3, &ints));
  assert_ok(mp_attr_make_table(arena, (int64_t[]){0, 1, 2, -1}, 2, 2, &table));
  assert_ok(mp_attr_make_bool(arena, true, &boolean));
  assert_ok(mp_attr_make_string(arena, MP_STR("text"), &text));
  assert_ok(mp_attr_make_int(arena, MP_DTYPE_S64, -5, &number));
  assert_ok(mp_op_set_attr(s.module, s.add, MP_ATTR_DIMENSIONS, table));
  assert_ok(mp_op_set_attr(s.module, s.add, MP_ATTR_DIMENSIONS, ints));
  assert_ok(mp_op_set_attr(s.module, s.add, MP_ATTR_IS_STABLE, boolean));
  assert_ok(mp_op_set_attr(s.module, s.add, MP_ATTR_NAME, text));
  assert_ok(mp_op_set_attr(s.module, s.add, MP_ATTR_DIMENSION, number));
  assert_int_equal(s.add->num_attrs, 4);
  mp_index_list_t dims = mp_op_ints(s.add, MP_ATTR_DIMENSIONS);
  assert_int_equal(dims.count, 3);
  assert_int_equal(dims.values[2], 2);
  assert_true(mp_op_bool(s.add, MP_ATTR_IS_STABLE, false));
  assert_int_equal(mp_op_int(s.add, MP_ATTR_DIMENSION, 0), -5);
  assert_int_equal(mp_op_int(s.add, MP_ATTR_INDEX, 9), 9);
  assert_true(mp_str_is(mp_op_str(s.add, MP_ATTR_NAME), "text"));
  assert_ptr_equal(mp_op_attr(s.add, MP_ATTR_NAME), text);

  mp_named_attr_t items[] = {{MP_ATTR_OTHER, MP_STR("k"), number},
                             {MP_ATTR_MHLO_SHARDING, MP_STR("mhlo.sharding"), text}};
  mp_attr_t dict = {.kind = MP_KIND_DICT, .u.dict = {items, 2}};
  assert_ptr_equal(mp_attr_dict_get(&dict, MP_ATTR_MHLO_SHARDING), text);
  assert_ptr_equal(mp_attr_dict_get_text(&dict, "k"), number);
  assert_null(mp_attr_dict_get(NULL, MP_ATTR_MHLO_SHARDING));
  mp_module_release(s.module);
}

static void test_errors(void **state) {
  (void)state;
  sample_t s = make_sample();
  assert_status(mp_op_error(s.add, MP_INVALID_ARGUMENT, "bad %d", 3), MP_INVALID_ARGUMENT,
                "bad 3 [stablehlo.add]");
  mp_loc_t loc = {.kind = MP_LOC_FILE, .text = MP_STR("a.py"), .line = 1, .column = 2};
  s.add->loc = &loc;
  assert_status(mp_op_error(s.add, MP_INTERNAL, "bad"), MP_INTERNAL,
                "bad [stablehlo.add, a.py:1:2]");
  const mp_mesh_t meshes[5] = {{.num_axes = 0}};
  for (int i = 0; i < 5; ++i) assert_ok(mp_module_add_mesh(s.module, &meshes[i]));
  assert_int_equal(s.module->meshes.count, 5);
  assert_ptr_equal(s.module->meshes.items[2], &meshes[2]);
  mp_module_release(s.module);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_types),      cmocka_unit_test(test_names),
      cmocka_unit_test(test_locations),  cmocka_unit_test(test_lines_of_users),
      cmocka_unit_test(test_blocks),     cmocka_unit_test(test_walks),
      cmocka_unit_test(test_clone),      cmocka_unit_test(tables_that_are_equal_are_one),
      cmocka_unit_test(test_attributes), cmocka_unit_test(test_errors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
