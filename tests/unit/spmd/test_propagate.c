// Propagation: what sharding every value gets, in atoms. "[{0}, {1,?}]" is a tensor whose first
// dimension is sharded over atom 0 and whose second over atom 1 and perhaps more.
#include "sim/passes/passes.h"
#include "sim/spmd/propagation/propagate.h"
#include "tests/unit/support/ir_test.h"
#include "tests/unit/support/sdy_test.h"

// ---- spaces ----

static void check_space(uint32_t num_partitions, const char *first, const char *second,
                        const char *expected) {
  mp_arena_t *arena = NULL;
  assert_ok(mp_arena_create(&arena));
  const mp_mesh_t *meshes[2] = {sdy_mesh(arena, first, NULL, 0), sdy_mesh(arena, second, NULL, 0)};
  mp_atom_space_t space;
  bool found = false;
  assert_ok(mp_atom_space_create(arena, meshes, 2, num_partitions, &space, &found));
  mp_strbuf_t out;
  mp_strbuf_init(&out);
  for (uint32_t a = 0; found && a < space.count; ++a) {
    mp_strbuf_printf(&out, "%s%lld/%lld", a == 0 ? "" : " ", (long long)space.prime[a],
                     (long long)space.stride[a]);
  }
  assert_string_equal(found ? mp_strbuf_text(&out) : "none", expected);
  mp_strbuf_deinit(&out);
  mp_arena_release(arena);
}

// prime/stride of each atom, major first.
static void test_spaces(void **state) {
  (void)state;
  check_space(8, "x=2 y=4", "", "2/4 2/2 2/1");
  check_space(8, "x=8", "a=2 b=2 c=2", "2/4 2/2 2/1");
  check_space(12, "x=4 y=3", "", "2/6 2/3 3/1");
  check_space(12, "x=3 y=4", "", "3/4 2/2 2/1");
  check_space(12, "x=12", "", "2/6 2/3 3/1");
  check_space(6, "x=2 y=3", "z=6", "2/3 3/1");
  check_space(6, "x=2 y=3", "x=3 y=2", "none");  // they do not nest
  check_space(8, "x=4", "", "none");             // other devices
  check_space(8, "x=0 y=8", "", "none");
  check_space(7, "x=7", "z=1", "7/1");
  check_space(65536, "x=65536", "",
              "2/32768 2/16384 2/8192 2/4096 2/2048 2/1024 2/512 2/256 2/128 2/64 2/32 2/16 2/8 "
              "2/4 2/2 2/1");
}

// ---- programs: eight partitions as x=2 y=4, so x is atom 0 and y is atoms 1 and 2 ----

static const mp_mesh_t *g_mesh;

static ir_t start(const char *params, const char *results) {
  ir_t ir = ir_start(params, results);
  g_mesh = sdy_mesh(ir.module->arena, "x=2 y=4", NULL, 0);
  return ir;
}

static void annotate(ir_t *ir, const mp_attr_t **slot, uint32_t rank, const char *text) {
  mp_named_attr_t item =
      ir_attr(MP_ATTR_SDY_SHARDING, sdy_sharding_attr(ir->module->arena, g_mesh, rank, text));
  mp_attr_t *dict = MP_ARENA_NEW(ir->module->arena, mp_attr_t);
  dict->kind = MP_KIND_DICT;
  dict->u.dict.items = mp_arena_copy(ir->module->arena, &item, sizeof(item));
  dict->u.dict.count = 1;
  *slot = dict;
}

static void annotate_arg(ir_t *ir, uint32_t arg, const char *text) {
  annotate(ir, &ir->main->arg_attrs[arg], ir->args[arg]->type->rank, text);
}

static void annotate_result(ir_t *ir, uint32_t result, const char *text) {
  annotate(ir, &ir->main->result_attrs[result], ir->main->result_types[result]->rank, text);
}

static mp_value_t *op(ir_t *ir, mp_opcode_t code, const char *type, mp_value_t *const *operands) {
  return ir_op(ir, code, type, operands, NO_ATTRS);
}

// The atoms of each dimension, and `?` if it is open.
static void put_sharding(mp_strbuf_t *out, const mp_atom_sharding_t *sharding) {
  if (sharding == NULL) {
    mp_strbuf_puts(out, "none");
    return;
  }
  mp_strbuf_putc(out, '[');
  for (uint32_t d = 0; d < sharding->rank; ++d) {
    mp_strbuf_puts(out, d == 0 ? "{" : ", {");
    const mp_dim_atoms_t *dim = &sharding->dims[d];
    for (uint32_t i = 0; i < dim->atoms.count; ++i) {
      mp_strbuf_printf(out, i == 0 ? "%u" : ",%u", dim->atoms.atoms[i]);
    }
    if (dim->is_open) mp_strbuf_puts(out, dim->atoms.count == 0 ? "?" : ",?");
    mp_strbuf_putc(out, '}');
  }
  mp_strbuf_putc(out, ']');
}

// Propagates, then prints the shardings of the given values (NULL ends them) and of main's results,
// which all may be chosen. Ends the module.
static void check(ir_t *ir, mp_value_t *const *values, const char *expected) {
  const bool open[8] = {true, true, true, true, true, true, true, true};
  const mp_propagate_options_t options = {8, NULL, open, false};
  mp_propagation_t propagation;
  bool found = false;
  assert_ok(mp_propagate(ir->module, &options, &propagation, &found));
  assert_true(found);
  mp_strbuf_t out;
  mp_strbuf_init(&out);
  for (uint32_t i = 0; values[i] != NULL; ++i) {
    put_sharding(&out, propagation.values[values[i]->id]);
    mp_strbuf_putc(&out, ' ');
  }
  mp_strbuf_puts(&out, "->");
  for (uint32_t i = 0; i < ir->main->num_results; ++i) {
    mp_strbuf_putc(&out, ' ');
    put_sharding(&out, propagation.results[i]);
  }
  assert_string_equal(mp_strbuf_text(&out), expected);
  mp_strbuf_deinit(&out);
  ir_end(ir);
}

static void test_elementwise(void **state) {
  (void)state;
  // Forwards, and to the operand that has no sharding of its own.
  ir_t ir = start("8x16xf32", "8x16xf32");
  annotate_arg(&ir, 0, "x;y");
  mp_value_t *one = op(&ir, MP_OP_COSINE, "8x16xf32", VALUES(ir.args[0]));
  ir_return(&ir, VALUES(op(&ir, MP_OP_NEGATE, "8x16xf32", VALUES(one))));
  check(&ir, VALUES(one), "[{0,?}, {1,2,?}] -> [{0,?}, {1,2,?}]");

  // Backwards from a result; parameters stay where the caller has them.
  ir = start("8x16xf32", "8x16xf32");
  annotate_result(&ir, 0, "x;");
  one = op(&ir, MP_OP_COSINE, "8x16xf32", VALUES(ir.args[0]));
  ir_return(&ir, VALUES(op(&ir, MP_OP_NEGATE, "8x16xf32", VALUES(one))));
  check(&ir, VALUES(ir.args[0], one), "[{}, {}] [{0,?}, {?}] -> [{0}, {}]");

  // Conflicting dimensions: the same axis may not shard both.
  ir = start("8x8xf32 8x8xf32", "8x8xf32");
  annotate_arg(&ir, 0, "x;");
  annotate_arg(&ir, 1, ";x");
  ir_return(&ir, VALUES(op(&ir, MP_OP_ADD, "8x8xf32", VALUES(ir.args[0], ir.args[1]))));
  check(&ir, NO_VALUES, "-> [{0,?}, {?}]");
}

static void test_closed_constraint(void **state) {
  (void)state;
  ir_t ir = start("8x16xf32", "8x16xf32 8x16xf32");
  annotate_arg(&ir, 0, "x;y");
  mp_value_t *closed =
      ir_op(&ir, MP_OP_SDY_SHARDING_CONSTRAINT, "8x16xf32", VALUES(ir.args[0]),
            ATTRS(ir_attr(MP_ATTR_SHARDING, sdy_sharding_attr(ir.module->arena, g_mesh, 2, "x;"))));
  mp_value_t *open = ir_op(
      &ir, MP_OP_SDY_SHARDING_CONSTRAINT, "8x16xf32", VALUES(ir.args[0]),
      ATTRS(ir_attr(MP_ATTR_SHARDING, sdy_sharding_attr(ir.module->arena, g_mesh, 2, "x;?"))));
  ir_return(&ir, VALUES(closed, open));
  check(&ir, VALUES(closed, open), "[{0}, {}] [{0}, {1,2,?}] -> [{0,?}, {?}] [{0,?}, {1,2,?}]");
}

static mp_value_t *dot(ir_t *ir, const char *type, mp_value_t *lhs, mp_value_t *rhs) {
  return ir_op(ir, MP_OP_DOT_GENERAL, type, VALUES(lhs, rhs),
               ATTRS(IR_INTS(ir, MP_ATTR_LHS_CONTRACTING_DIMENSIONS, 1),
                     IR_INTS(ir, MP_ATTR_RHS_CONTRACTING_DIMENSIONS, 0)));
}

static void test_dot(void **state) {
  (void)state;
  // Rows of the left, columns of the right.
  ir_t ir = start("8x16xf32 16x32xf32", "8x32xf32");
  annotate_arg(&ir, 0, "x;");
  annotate_arg(&ir, 1, ";y");
  ir_return(&ir, VALUES(dot(&ir, "8x32xf32", ir.args[0], ir.args[1])));
  check(&ir, NO_VALUES, "-> [{0,?}, {1,2,?}]");

  // A contracted axis does not come out.
  ir = start("8x16xf32 16x32xf32", "8x32xf32");
  annotate_arg(&ir, 0, "x;y");
  annotate_arg(&ir, 1, "y;");
  ir_return(&ir, VALUES(dot(&ir, "8x32xf32", ir.args[0], ir.args[1])));
  check(&ir, NO_VALUES, "-> [{0,?}, {?}]");
}

static void test_shapes(void **state) {
  (void)state;
  ir_t ir = start("8x16xf32", "16x8xf32 128xf32 2x4x16xf32 8x16x3xf32");
  annotate_arg(&ir, 0, "y;x");
  mp_value_t *a = ir.args[0];
  mp_value_t *turned = ir_op(&ir, MP_OP_TRANSPOSE, "16x8xf32", VALUES(a),
                             ATTRS(IR_INTS(&ir, MP_ATTR_PERMUTATION, 1, 0)));
  mp_value_t *merged = op(&ir, MP_OP_RESHAPE, "128xf32", VALUES(a));
  mp_value_t *split = op(&ir, MP_OP_RESHAPE, "2x4x16xf32", VALUES(a));
  mp_value_t *wide = ir_op(&ir, MP_OP_BROADCAST_IN_DIM, "8x16x3xf32", VALUES(a),
                           ATTRS(IR_INTS(&ir, MP_ATTR_BROADCAST_DIMENSIONS, 0, 1)));
  ir_return(&ir, VALUES(turned, merged, split, wide));
  // y is four ways: half of it splits the dimension of 2, the other half that of 4.
  check(&ir, VALUES(merged, split),
        "[{1,2,?}] [{1,?}, {2,?}, {0,?}] -> [{0,?}, {1,2,?}] [{1,2,?}] [{?}, {?}, {0,?}] "
        "[{1,2,?}, {0,?}, {?}]");
}

static void test_slices(void **state) {
  (void)state;
  ir_t ir = start("8x16xf32 f32", "8x8xf32 8x18xf32 8x16xf32 8x32xf32");
  annotate_arg(&ir, 0, "x;y");
  mp_value_t *a = ir.args[0];
  mp_value_t *cut =
      ir_op(&ir, MP_OP_SLICE, "8x8xf32", VALUES(a),
            ATTRS(IR_INTS(&ir, MP_ATTR_START_INDICES, 0, 4),
                  IR_INTS(&ir, MP_ATTR_LIMIT_INDICES, 8, 12), IR_INTS(&ir, MP_ATTR_STRIDES, 1, 1)));
  mp_value_t *padded = ir_op(&ir, MP_OP_PAD, "8x18xf32", VALUES(a, ir.args[1]),
                             ATTRS(IR_INTS(&ir, MP_ATTR_EDGE_PADDING_LOW, 0, 1),
                                   IR_INTS(&ir, MP_ATTR_EDGE_PADDING_HIGH, 0, 1),
                                   IR_INTS(&ir, MP_ATTR_INTERIOR_PADDING, 0, 0)));
  mp_value_t *turned =
      ir_op(&ir, MP_OP_REVERSE, "8x16xf32", VALUES(a), ATTRS(IR_INTS(&ir, MP_ATTR_DIMENSIONS, 0)));
  mp_value_t *joined = ir_op(&ir, MP_OP_CONCATENATE, "8x32xf32", VALUES(a, a),
                             ATTRS(ir_int(&ir, MP_ATTR_DIMENSION, 1)));
  ir_return(&ir, VALUES(cut, padded, turned, joined));
  // 18 columns do not divide by four, so that result comes out without y.
  check(&ir, NO_VALUES, "-> [{0,?}, {1,2,?}] [{0,?}, {?}] [{0,?}, {1,2,?}] [{0,?}, {1,2,?}]");
}

static void test_reduce(void **state) {
  (void)state;
  ir_t ir = start("8x16xf32 f32", "8xf32 16xf32");
  annotate_arg(&ir, 0, "x;y");
  mp_block_t *main_block = ir.block;
  mp_value_t *sums[2];
  for (int dim = 0; dim < 2; ++dim) {
    mp_block_t *body = ir_block(&ir, "f32 f32");
    ir_return(&ir, VALUES(op(&ir, MP_OP_ADD, "f32", VALUES(&body->args[0], &body->args[1]))));
    ir.block = main_block;
    sums[dim] = ir_op_regions(&ir, MP_OP_REDUCE, dim == 0 ? "16xf32" : "8xf32",
                              VALUES(ir.args[0], ir.args[1]),
                              ATTRS(IR_INTS(&ir, MP_ATTR_DIMENSIONS, dim)), 1, &body)
                    ->results;
  }
  ir_return(&ir, VALUES(sums[1], sums[0]));
  check(&ir, NO_VALUES, "-> [{0,?}] [{1,2,?}]");
}

// What a loop carries is one value in all rounds: its result's sharding reaches the operand.
static void test_loop(void **state) {
  (void)state;
  ir_t ir = start("8xf32 i1", "8xf32");
  annotate_result(&ir, 0, "x");
  mp_value_t *begin = op(&ir, MP_OP_NEGATE, "8xf32", VALUES(ir.args[0]));
  mp_block_t *main_block = ir.block;
  mp_block_t *condition = ir_block(&ir, "8xf32");
  ir_return(&ir, VALUES(ir.args[1]));
  mp_block_t *body = ir_block(&ir, "8xf32");
  mp_value_t *next = op(&ir, MP_OP_COSINE, "8xf32", VALUES(body->args));
  ir_return(&ir, VALUES(next));
  ir.block = main_block;
  mp_op_t *loop = ir_op_regions(&ir, MP_OP_WHILE, "8xf32", VALUES(begin), NO_ATTRS, 2,
                                (mp_block_t *[]){condition, body});
  ir_return(&ir, VALUES(loop->results));
  check(&ir, VALUES(begin, body->args, next, loop->results),
        "[{0,?}] [{0,?}] [{0,?}] [{0,?}] -> [{0}]");
}

static void test_branches(void **state) {
  (void)state;
  ir_t ir = start("8xf32 i32", "8xf32");
  annotate_arg(&ir, 0, "y");
  mp_block_t *main_block = ir.block;
  mp_block_t *branches[2];
  mp_value_t *values[2];
  for (int i = 0; i < 2; ++i) {
    branches[i] = ir_block(&ir, "");
    values[i] = i == 0 ? op(&ir, MP_OP_COSINE, "8xf32", VALUES(ir.args[0]))
                       : ir_op(&ir, MP_OP_IOTA, "8xf32", NO_VALUES,
                               ATTRS(ir_int(&ir, MP_ATTR_IOTA_DIMENSION, 0)));
    ir_return(&ir, VALUES(values[i]));
  }
  ir.block = main_block;
  mp_op_t *branch =
      ir_op_regions(&ir, MP_OP_CASE, "8xf32", VALUES(ir.args[1]), NO_ATTRS, 2, branches);
  ir_return(&ir, VALUES(branch->results));
  check(&ir, VALUES(values[0], values[1], branch->results),
        "[{1,2,?}] [{1,2,?}] [{1,2,?}] -> [{1,2,?}]");
}

// Open results must divide evenly and be made of whole axes.
static void test_open_results(void **state) {
  (void)state;
  ir_t ir = start("6xf32 8xf32", "6xf32 8xf32");
  mp_value_t *values[2];
  for (int i = 0; i < 2; ++i) {
    values[i] = ir_op(
        &ir, MP_OP_SDY_SHARDING_CONSTRAINT, i == 0 ? "6xf32" : "8xf32", VALUES(ir.args[i]),
        ATTRS(ir_attr(MP_ATTR_SHARDING,
                      sdy_sharding_attr(ir.module->arena, g_mesh, 1, i == 0 ? "y" : "y:1:2"))));
  }
  ir_return(&ir, VALUES(values[0], values[1]));
  check(&ir, VALUES(values[0], values[1]), "[{1,2}] [{1}] -> [{?}] [{?}]");
}

// Shardings that one space cannot say are left to the partitioner's other way.
static void test_not_sayable(void **state) {
  (void)state;
  ir_t ir = start("8xf32", "8xf32");
  mp_named_attr_t item = ir_string(&ir, MP_ATTR_MHLO_SHARDING, "{devices=[8]<=[8]}");
  mp_attr_t dict = {.kind = MP_KIND_DICT, .u.dict = {&item, 1}};
  ir.main->arg_attrs[0] = &dict;
  ir_return(&ir, VALUES(ir.args[0]));
  const bool open = true;
  const mp_propagate_options_t options = {8, &open, &open, false};
  mp_propagation_t propagation;
  bool found = true;
  assert_ok(mp_propagate(ir.module, &options, &propagation, &found));
  assert_false(found);
  ir_end(&ir);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_spaces),
      cmocka_unit_test(test_elementwise),
      cmocka_unit_test(test_closed_constraint),
      cmocka_unit_test(test_dot),
      cmocka_unit_test(test_shapes),
      cmocka_unit_test(test_slices),
      cmocka_unit_test(test_reduce),
      cmocka_unit_test(test_loop),
      cmocka_unit_test(test_branches),
      cmocka_unit_test(test_open_results),
      cmocka_unit_test(test_not_sayable),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
