// Sugar becomes plain ops: small programs before, their dump after.
#include <stdio.h>

#include "sim/ir/verify/verify.h"
#include "sim/passes/desugar/desugar.h"
#include "sim/passes/passes.h"
#include "tests/unit/support/ir_test.h"

// ---- sugar ----

static void test_broadcast_and_dot(void **state) {
  (void)state;
  ir_t ir = ir_start("3xf32 2x3xf32 3x4xf32", "5x2x3xf32 2x4xf32 f32");
  mp_value_t *wide = ir_op(&ir, MP_OP_BROADCAST, "5x2x3xf32", VALUES(ir.args[1]),
                           ATTRS(IR_INTS(&ir, MP_ATTR_BROADCAST_SIZES, 5)));
  mp_value_t *matrix = ir_op(&ir, MP_OP_DOT, "2x4xf32", VALUES(ir.args[1], ir.args[2]), NO_ATTRS);
  mp_value_t *inner = ir_op(&ir, MP_OP_DOT, "f32", VALUES(ir.args[0], ir.args[0]),
                            ATTRS(ir_string(&ir, MP_ATTR_MHLO_SHARDING, "{replicated}")));
  ir_return(&ir, VALUES(wide, matrix, inner));
  assert_ok(mp_pass_desugar(ir.module));
  ir_check(&ir,
           "%3 = broadcast_in_dim(%1) {broadcast_dimensions=[1,2]} : tensor<5x2x3xf32>\n"
           "%4 = dot_general(%1, %2) {lhs_contracting_dimensions=[1] "
           "rhs_contracting_dimensions=[0]} : tensor<2x4xf32>\n"
           "%5 = dot_general(%0, %0) {lhs_contracting_dimensions=[0] "
           "rhs_contracting_dimensions=[0] mhlo.sharding=\"{replicated}\"} : tensor<f32>\n"
           "return(%3, %4, %5)\n");
  ir_end(&ir);
}

static void test_token_and_constant(void **state) {
  (void)state;
  ir_t ir = ir_start("", "token i64");
  mp_value_t *token = ir_op(&ir, MP_OP_CREATE_TOKEN, "token", NO_VALUES, NO_ATTRS);
  mp_value_t *constant = IR_I64S(&ir, "i64", 7);
  constant->op->code = MP_OP_SDY_CONSTANT;
  ir_return(&ir, VALUES(token, constant));
  assert_ok(mp_pass_desugar(ir.module));
  ir_check(&ir,
           "%0 = after_all() : !stablehlo.token\n"
           "%1 = constant() {value=7} : tensor<i64>\n"
           "return(%0, %1)\n");
  ir_end(&ir);
}

static void test_if(void **state) {
  (void)state;
  ir_t ir = ir_start("i1 f32", "f32");
  mp_block_t *main_block = ir.block;
  mp_block_t *yes = ir_block(&ir, "");
  ir_return(&ir, VALUES(ir.args[1]));
  mp_block_t *no = ir_block(&ir, "");
  ir_return(&ir, VALUES(ir_op(&ir, MP_OP_NEGATE, "f32", VALUES(ir.args[1]), NO_ATTRS)));
  ir.block = main_block;
  mp_op_t *branch = ir_op_regions(&ir, MP_OP_IF, "f32", VALUES(ir.args[0]), NO_ATTRS, 2,
                                  (mp_block_t *[]){yes, no});
  ir_return(&ir, VALUES(branch->results));
  assert_ok(mp_pass_desugar(ir.module));
  ir_check(&ir,
           "%2 = not(%0) : tensor<i1>\n"
           "%3 = convert(%2) : tensor<i32>\n"
           "%5 = case(%3) : tensor<f32>\n"
           " ^()\n"
           "  return(%1)\n"
           " ^()\n"
           "  %4 = negate(%1) : tensor<f32>\n"
           "  return(%4)\n"
           "return(%5)\n");
  ir_end(&ir);
}

static void test_cross_replica_sum(void **state) {
  (void)state;
  ir_t ir = ir_start("4xbf16", "4xbf16");
  const mp_attr_t *groups = NULL;
  assert_ok(mp_attr_make_table(ir.module->arena, (int64_t[]){0, 1}, 1, 2, &groups));
  ir_return(&ir, VALUES(ir_op(&ir, MP_OP_CROSS_REPLICA_SUM, "4xbf16", VALUES(ir.args[0]),
                              ATTRS(ir_attr(MP_ATTR_REPLICA_GROUPS, groups)))));
  assert_ok(mp_pass_desugar(ir.module));
  ir_check(&ir,
           "%4 = all_reduce(%0) {replica_groups=[[0,1]]} : tensor<4xbf16>\n"
           " ^(%1: tensor<bf16>, %2: tensor<bf16>)\n"
           "  %3 = add(%1, %2) : tensor<bf16>\n"
           "  return(%3)\n"
           "return(%4)\n");
  ir_end(&ir);
}

static mp_value_t *function_call(ir_t *ir, const char *target, const char *type) {
  return ir_op(ir, MP_OP_CUSTOM_CALL, type, VALUES(ir->args[0]),
               ATTRS(ir_string(ir, MP_ATTR_CALL_TARGET_NAME, target),
                     ir_string(ir, MP_ATTR_MHLO_SHARDING, "{replicated}")));
}

static void test_function_calls(void **state) {
  (void)state;
  ir_t ir = ir_start("4xbf16", "4xbf16");
  ir_return(&ir, VALUES(function_call(&ir, "mhlo.cosh", "4xbf16")));
  assert_ok(mp_pass_desugar(ir.module));
  ir_check(&ir,
           "%1 = convert(%0) : tensor<4xf32>\n"
           "%2 = constant() {value=splat -0.693147} : tensor<4xf32>\n"
           "%3 = add(%1, %2) : tensor<4xf32>\n"
           "%4 = exponential(%3) : tensor<4xf32>\n"
           "%5 = subtract(%2, %1) : tensor<4xf32>\n"
           "%6 = exponential(%5) : tensor<4xf32>\n"
           "%7 = add(%4, %6) : tensor<4xf32>\n"
           "%8 = convert(%7) {mhlo.sharding=\"{replicated}\"} : tensor<4xbf16>\n"
           "return(%8)\n");
  ir_end(&ir);
  static const char *const targets[] = {"mhlo.acos",  "mhlo.acosh", "mhlo.asin", "mhlo.asinh",
                                        "mhlo.atanh", "mhlo.cosh",  "mhlo.erf",  "mhlo.sinh",
                                        "mhlo.tan",   "mhlo.topk"};
  for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); ++i) {
    const bool is_function = i + 1 < sizeof(targets) / sizeof(targets[0]);
    for (int k = 0; k < 3; ++k) {
      const char *type = (const char *[]){"4xf32", "4xf64", "4xi32"}[k];
      ir = ir_start(type, type);
      ir_return(&ir, VALUES(function_call(&ir, targets[i], type)));
      if (is_function && k == 2) {
        assert_status(mp_pass_desugar(ir.module), MP_UNIMPLEMENTED, "is not supported for i32");
      } else {
        assert_ok(mp_pass_desugar(ir.module));
        const mp_op_t *last = ir.module->main->body->last->prev;
        assert_int_equal(last->code == MP_OP_CUSTOM_CALL, !is_function);
      }
      ir_end(&ir);
    }
  }
}

// ---- buffers ----

static mp_value_t *call_of(ir_t *ir, const char *target, mp_value_t *operand, const char *type) {
  return ir_op(ir, MP_OP_CUSTOM_CALL, type, (mp_value_t *[]){operand, NULL},
               ATTRS(ir_string(ir, MP_ATTR_CALL_TARGET_NAME, target)));
}

static void become_buffer(ir_t *ir, mp_value_t *value) {
  mp_type_t *type = MP_ARENA_NEW(ir->module->arena, mp_type_t);
  *type = *value->type;
  type->kind = MP_TYPE_BUFFER;
  value->type = type;
}

static void test_buffers(void **state) {
  (void)state;
  ir_t ir = ir_start("4xf32", "4xf32 2x3xi8 4xf32");
  mp_value_t *pinned = call_of(&ir, "Pin", ir.args[0], "4xf32");
  become_buffer(&ir, pinned);
  mp_value_t *changed = call_of(&ir, "other", pinned, "4xf32");
  become_buffer(&ir, changed);
  mp_value_t *unpinned = call_of(&ir, "Unpin", changed, "4xf32");
  mp_value_t *made = call_of(&ir, "CreateBuffer", NULL, "4xf32");
  become_buffer(&ir, made);
  ir_return(&ir, VALUES(unpinned, call_of(&ir, "AllocateBuffer", NULL, "2x3xi8"),
                        call_of(&ir, "Unpin", made, "4xf32")));
  assert_ok(mp_module_verify(ir.module));
  assert_ok(mp_pass_desugar(ir.module));
  assert_ok(mp_module_verify(ir.module));
  ir_check(&ir,
           "%1 = reshape(%0) : tensor<4xf32>\n"
           "%2 = custom_call(%1) {call_target_name=\"other\"} : tensor<4xf32>\n"
           "%3 = reshape(%2) : tensor<4xf32>\n"
           "%4 = constant() {value=splat 0} : tensor<f32>\n"
           "%5 = broadcast_in_dim(%4) {broadcast_dimensions=[]} : tensor<4xf32>\n"
           "%6 = constant() {value=splat 0} : tensor<i8>\n"
           "%7 = broadcast_in_dim(%6) {broadcast_dimensions=[]} : tensor<2x3xi8>\n"
           "%8 = reshape(%5) : tensor<4xf32>\n"
           "return(%3, %7, %8)\n");
  ir_end(&ir);
}

static void test_buffers_refuse(void **state) {
  (void)state;
  static const struct {
    const char *target;
    bool has_operand;
    const char *type, *message;
  } refusals[] = {
      {"Pin", true, "5xf32", "'Pin' takes one array and returns it"},
      {"Unpin", false, "4xf32", "'Unpin' takes one array and returns it"},
      {"AllocateBuffer", true, "4xf32", "'AllocateBuffer' makes one array of nothing"},
  };
  for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); ++i) {
    ir_t ir = ir_start("4xf32", refusals[i].type);
    ir_return(&ir, VALUES(call_of(&ir, refusals[i].target,
                                  refusals[i].has_operand ? ir.args[0] : NULL, refusals[i].type)));
    assert_status(mp_pass_desugar(ir.module), MP_INVALID_ARGUMENT, refusals[i].message);
    ir_end(&ir);
  }
}

static void test_torch_index_select(void **state) {
  (void)state;
  ir_t ir = ir_start("2x5x7xf32 3x4xi32 2x9xi32", "3x4x5x7xf32 2x5x9xf32");
  mp_value_t *rows =
      ir_op(&ir, MP_OP_TORCH_INDEX_SELECT, "3x4x5x7xf32", VALUES(ir.args[0], ir.args[1]),
            ATTRS(ir_int(&ir, MP_ATTR_DIM, 0), ir_int(&ir, MP_ATTR_BATCH_DIMS, 0)));
  mp_value_t *batched =
      ir_op(&ir, MP_OP_TORCH_INDEX_SELECT, "2x5x9xf32", VALUES(ir.args[0], ir.args[2]),
            ATTRS(ir_int(&ir, MP_ATTR_DIM, 2), ir_int(&ir, MP_ATTR_BATCH_DIMS, 1)));
  ir_return(&ir, VALUES(rows, batched));
  assert_ok(mp_pass_desugar(ir.module));
  ir_check(&ir,
           "%3 = gather(%0, %1) {collapsed_slice_dims=[0] index_vector_dim=2 offset_dims=[2,3] "
           "slice_sizes=[1,5,7] start_index_map=[0]} : tensor<3x4x5x7xf32>\n"
           "%4 = gather(%0, %2) {collapsed_slice_dims=[2] index_vector_dim=2 offset_dims=[1] "
           "operand_batching_dims=[0] slice_sizes=[1,5,1] start_index_map=[2] "
           "start_indices_batching_dims=[0]} : tensor<2x5x9xf32>\n"
           "return(%3, %4)\n");
  ir_end(&ir);
}

static void test_torch_index_select_refuses(void **state) {
  (void)state;
  ir_t ir = ir_start("2x5xf32 3xi32", "2x3xf32");
  ir_return(&ir, VALUES(ir_op(&ir, MP_OP_TORCH_INDEX_SELECT, "2x3xf32",
                              VALUES(ir.args[0], ir.args[1]), ATTRS(ir_int(&ir, MP_ATTR_DIM, 2)))));
  assert_status(mp_pass_desugar(ir.module), MP_INVALID_ARGUMENT,
                "dim 2 and batch_dims 0 do not fit operands of rank 2 and 1 "
                "[stablehlo.torch_index_select]");
  ir_end(&ir);
}

// ---- einsum ----

static mp_value_t *einsum(ir_t *ir, const char *config, const char *type) {
  return ir_op(ir, MP_OP_EINSUM, type, VALUES(ir->args[0], ir->args[1]),
               ATTRS(ir_string(ir, MP_ATTR_EINSUM_CONFIG, config)));
}

static void test_einsum(void **state) {
  (void)state;
  ir_t ir = ir_start("2x3x5xf32 2x5x7xf32", "2x3x7xf32 7x2x3xf32");
  mp_value_t *plain = einsum(&ir, "bij,bjk->bik", "2x3x7xf32");
  mp_value_t *turned = einsum(&ir, "bij,bjk->kbi", "7x2x3xf32");
  ir_return(&ir, VALUES(plain, turned));
  assert_ok(mp_pass_desugar(ir.module));
  ir_check(&ir,
           "%2 = dot_general(%0, %1) {lhs_batching_dimensions=[0] lhs_contracting_dimensions=[2] "
           "rhs_batching_dimensions=[0] rhs_contracting_dimensions=[1]} : tensor<2x3x7xf32>\n"
           "%3 = dot_general(%0, %1) {lhs_batching_dimensions=[0] lhs_contracting_dimensions=[2] "
           "rhs_batching_dimensions=[0] rhs_contracting_dimensions=[1]} : tensor<2x3x7xf32>\n"
           "%4 = transpose(%3) {permutation=[2,0,1]} : tensor<7x2x3xf32>\n"
           "return(%2, %4)\n");
  ir_end(&ir);
}

// "a" is only on the left: summed before the product.
static void test_einsum_sums_out(void **state) {
  (void)state;
  ir_t ir = ir_start("2x3xf32 3x4xf32", "4xf32");
  ir_return(&ir, VALUES(einsum(&ir, "ab,bc->c", "4xf32")));
  assert_ok(mp_pass_desugar(ir.module));
  ir_check(&ir,
           "%2 = constant() {value=splat 0} : tensor<f32>\n"
           "%6 = reduce(%0, %2) {dimensions=[0]} : tensor<3xf32>\n"
           " ^(%3: tensor<f32>, %4: tensor<f32>)\n"
           "  %5 = add(%3, %4) : tensor<f32>\n"
           "  return(%5)\n"
           "%7 = dot_general(%6, %1) {lhs_contracting_dimensions=[0] "
           "rhs_contracting_dimensions=[0]} : tensor<4xf32>\n"
           "return(%7)\n");
  ir_end(&ir);
}

static void test_unary_einsum(void **state) {
  (void)state;
  ir_t ir = ir_start("2x3x4xf32", "4x2xf32");
  ir_return(&ir, VALUES(ir_op(&ir, MP_OP_UNARY_EINSUM, "4x2xf32", VALUES(ir.args[0]),
                              ATTRS(ir_string(&ir, MP_ATTR_EINSUM_CONFIG, "abc->ca")))));
  assert_ok(mp_pass_desugar(ir.module));
  ir_check(&ir,
           "%1 = constant() {value=splat 0} : tensor<f32>\n"
           "%5 = reduce(%0, %1) {dimensions=[1]} : tensor<2x4xf32>\n"
           " ^(%2: tensor<f32>, %3: tensor<f32>)\n"
           "  %4 = add(%2, %3) : tensor<f32>\n"
           "  return(%4)\n"
           "%6 = transpose(%5) {permutation=[1,0]} : tensor<4x2xf32>\n"
           "return(%6)\n");
  ir_end(&ir);
}

static void test_einsum_refuses(void **state) {
  (void)state;
  static const struct {
    const char *config;
    mp_status_code_t code;
    const char *text;
  } cases[] = {
      {"aa,ab->b", MP_UNIMPLEMENTED, "a label twice in one array"},
      {"...a,ab->b", MP_INVALID_ARGUMENT, "do not fit the operands' ranks"},
      {"ab,bc", MP_UNIMPLEMENTED, "only letters, ',' and '->'"},
      {"ab", MP_INVALID_ARGUMENT, "one label list for each operand"},
      {"ab,bc->", MP_INVALID_ARGUMENT, "result's labels"},
      {"ab,bc->ad", MP_INVALID_ARGUMENT, "no operand has a label of the result"},
      {"ab,bc->ac ", MP_INVALID_ARGUMENT, "result's labels"},
      {"ab,ac->bc", MP_INVALID_ARGUMENT, "a label stands for different sizes"},
      {"", MP_INVALID_ARGUMENT, "do not fit the operands' ranks"},
      {"abcdefghijklmnopqrstuvwxyzABCDEFGHIJ,b->a", MP_UNIMPLEMENTED, "too many dimensions"},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    ir_t ir = ir_start("2x3xf32 3x4xf32", "2x4xf32");
    ir_return(&ir, VALUES(einsum(&ir, cases[i].config, "2x4xf32")));
    assert_status(mp_pass_desugar(ir.module), cases[i].code, cases[i].text);
    ir_end(&ir);
  }
}

// ---- replica groups as mesh axes ----

static const mp_mesh_axis_t g_axes[] = {{{"x", 1}, 2}, {{"y", 1}, 4}};

static void check_groups(const mp_mesh_t *mesh, mp_axis_list_t axes, const char *expected) {
  ir_t ir = ir_start("4xf32", "4xf32");
  mp_attr_t groups = {.kind = MP_KIND_MESH_GROUPS, .u.mesh_groups = {mesh, axes}};
  ir_return(&ir, VALUES(ir_op(&ir, MP_OP_COLLECTIVE_BROADCAST, "4xf32", VALUES(ir.args[0]),
                              ATTRS(ir_attr(MP_ATTR_REPLICA_GROUPS, &groups)))));
  mp_status_t status = mp_pass_desugar(ir.module);
  if (status != NULL) {
    assert_status(status, MP_INVALID_ARGUMENT, expected);
  } else {
    char text[400];
    (void)snprintf(text, sizeof(text),
                   "%%1 = collective_broadcast(%%0) {replica_groups=[%s]} : tensor<4xf32>\n"
                   "return(%%1)\n",
                   expected);
    ir_check(&ir, text);
  }
  ir_end(&ir);
}

#define AXES(...)                                                                   \
  ((mp_axis_list_t){sizeof((mp_axis_ref_t[]){__VA_ARGS__}) / sizeof(mp_axis_ref_t), \
                    (mp_axis_ref_t[]){__VA_ARGS__}})
#define AXIS(name) \
  { MP_STR(name), 1, 0 }
#define SUB_AXIS(name, pre, size) \
  { MP_STR(name), (pre), (size) }

static void test_mesh_groups(void **state) {
  (void)state;
  const mp_mesh_t mesh = {.name = MP_STR("m"), .num_axes = 2, .axes = g_axes};
  check_groups(&mesh, AXES(AXIS("x")), "[0,4],[1,5],[2,6],[3,7]");
  check_groups(&mesh, AXES(AXIS("y")), "[0,1,2,3],[4,5,6,7]");
  check_groups(&mesh, AXES(AXIS("x"), AXIS("y")), "[0,1,2,3,4,5,6,7]");
  check_groups(&mesh, AXES(AXIS("y"), AXIS("x")), "[0,4,1,5,2,6,3,7]");
  check_groups(&mesh, AXES(SUB_AXIS("y", 1, 2)), "[0,2],[1,3],[4,6],[5,7]");
  check_groups(&mesh, AXES(SUB_AXIS("y", 2, 2)), "[0,1],[2,3],[4,5],[6,7]");
  check_groups(&mesh, AXES(SUB_AXIS("y", 2, 2), AXIS("x")), "[0,4,1,5],[2,6,3,7]");
  const int64_t ids[] = {7, 6, 5, 4, 3, 2, 1, 0};
  const mp_mesh_t reversed = {MP_STR("r"), 2, g_axes, 8, ids};
  check_groups(&reversed, AXES(AXIS("x")), "[7,3],[6,2],[5,1],[4,0]");
}

static void test_mesh_groups_refuses(void **state) {
  (void)state;
  const mp_mesh_t mesh = {.name = MP_STR("m"), .num_axes = 2, .axes = g_axes};
  check_groups(&mesh, AXES(AXIS("z")),
               "mesh @m has no axis \"z\" [stablehlo.collective_broadcast]");
  check_groups(&mesh, AXES(AXIS("x"), AXIS("x")), "overlap");
  check_groups(&mesh, AXES(AXIS("y"), SUB_AXIS("y", 1, 2)), "overlap");
  check_groups(&mesh, AXES(SUB_AXIS("y", 1, 3)), "does not divide its axis of size 4");
  check_groups(&mesh, AXES(SUB_AXIS("y", INT64_MAX, INT64_MAX)), "does not divide");
  const int64_t twice[] = {0, 0, 1, 2, 3, 4, 5, 6};
  const mp_mesh_t bad = {MP_STR("b"), 2, g_axes, 8, twice};
  check_groups(&bad, AXES(AXIS("x")), "device_ids of mesh @b are not a permutation of 0 .. 7");
  const mp_mesh_axis_t huge[] = {{{"x", 1}, INT64_MAX}, {{"y", 1}, 4}};
  const mp_mesh_t large = {MP_STR("l"), 2, huge, 0, NULL};
  check_groups(&large, AXES(AXIS("y")), "empty or larger");
}

// ---- dynamic ops ----

static void test_dynamic_shapes(void **state) {
  (void)state;
  ir_t ir = ir_start("2x3xf32 2xi64", "6xf32");
  mp_value_t *shape = ir.args[1];
  mp_value_t *flat =
      ir_op(&ir, MP_OP_DYNAMIC_RESHAPE, "6xf32", VALUES(ir.args[0], shape), NO_ATTRS);
  mp_value_t *wide = ir_op(&ir, MP_OP_DYNAMIC_BROADCAST_IN_DIM, "4x6xf32", VALUES(flat, shape),
                           ATTRS(IR_INTS(&ir, MP_ATTR_BROADCAST_DIMENSIONS, 1),
                                 IR_INTS(&ir, MP_ATTR_KNOWN_EXPANDING_DIMENSIONS, 0)));
  mp_value_t *iota = ir_op(&ir, MP_OP_DYNAMIC_IOTA, "4x6xf32", VALUES(shape),
                           ATTRS(ir_int(&ir, MP_ATTR_IOTA_DIMENSION, 1)));
  mp_value_t *size = ir_op(&ir, MP_OP_GET_DIMENSION_SIZE, "i32", VALUES(wide),
                           ATTRS(ir_int(&ir, MP_ATTR_DIMENSION, 1)));
  mp_value_t *unknown =
      ir_op(&ir, MP_OP_DYNAMIC_RESHAPE, "?xf32", VALUES(ir.args[0], shape), NO_ATTRS);
  ir_return(&ir, VALUES(wide, iota, size, unknown));
  assert_ok(mp_pass_desugar(ir.module));
  ir_check(&ir,
           "%2 = reshape(%0) : tensor<6xf32>\n"
           "%3 = broadcast_in_dim(%2) {broadcast_dimensions=[1]} : tensor<4x6xf32>\n"
           "%4 = iota() {iota_dimension=1} : tensor<4x6xf32>\n"
           "%5 = constant() {value=6} : tensor<i32>\n"
           "%6 = dynamic_reshape(%0, %1) : tensor<?xf32>\n"
           "return(%3, %4, %5, %6)\n");
  ir_end(&ir);
}

static void test_dynamic_operands(void **state) {
  (void)state;
  ir_t ir = ir_start("4x6xf32 f32 5x1xi32", "1x1xf32");
  mp_value_t *low = IR_I64S(&ir, "2xi64", 1, -1), *zeros = IR_I64S(&ir, "2xi64", 0);
  mp_value_t *high = ir_constant(&ir, "2xi32", (int32_t[]){2, -3}, 8);
  mp_value_t *wide = ir_op(&ir, MP_OP_CONVERT, "2xi64", VALUES(high), NO_ATTRS);
  mp_value_t *padded = ir_op(&ir, MP_OP_DYNAMIC_PAD, "7x2xf32",
                             VALUES(ir.args[0], ir.args[1], low, wide, zeros), NO_ATTRS);
  mp_value_t *ones = IR_I64S(&ir, "2xi64", 1), *limit = IR_I64S(&ir, "2xi64", 4, 2);
  mp_value_t *slice =
      ir_op(&ir, MP_OP_REAL_DYNAMIC_SLICE, "4x2xf32", VALUES(padded, zeros, limit, ones), NO_ATTRS);
  mp_value_t *gathered = ir_op(
      &ir, MP_OP_DYNAMIC_GATHER, "5x2xf32", VALUES(slice, ir.args[2], IR_I64S(&ir, "2xi64", 1, 2)),
      ATTRS(IR_INTS(&ir, MP_ATTR_OFFSET_DIMS, 1), IR_INTS(&ir, MP_ATTR_COLLAPSED_SLICE_DIMS, 0),
            IR_INTS(&ir, MP_ATTR_START_INDEX_MAP, 0), ir_int(&ir, MP_ATTR_INDEX_VECTOR_DIM, 1)));
  mp_value_t *left = ir_op(&ir, MP_OP_REAL_DYNAMIC_SLICE, "1x1xf32",
                           VALUES(gathered, zeros, limit, ir.args[2]), NO_ATTRS);
  ir_return(&ir, VALUES(left));
  assert_ok(mp_pass_desugar(ir.module));
  assert_ok(mp_pass_dead_code(ir.module));
  ir_check(&ir,
           "%3 = constant() {value=splat 0} : tensor<2xi64>\n"
           "%4 = pad(%0, %1) {edge_padding_high=[2,-3] edge_padding_low=[1,-1] "
           "interior_padding=[0,0]} : tensor<7x2xf32>\n"
           "%5 = constant() {value=4,2} : tensor<2xi64>\n"
           "%6 = slice(%4) {limit_indices=[4,2] start_indices=[0,0] strides=[1,1]} : "
           "tensor<4x2xf32>\n"
           "%7 = gather(%6, %2) {collapsed_slice_dims=[0] index_vector_dim=1 offset_dims=[1] "
           "slice_sizes=[1,2] start_index_map=[0]} : tensor<5x2xf32>\n"
           "%8 = real_dynamic_slice(%7, %3, %5, %2) : tensor<1x1xf32>\n"
           "return(%8)\n");
  ir_end(&ir);
}

static void test_dynamic_conv(void **state) {
  (void)state;
  ir_t ir = ir_start("1x1x8xf32 1x1x3xf32", "1x1x8xf32");
  mp_value_t *padding = IR_I64S(&ir, "1x2xi64", 2, 0);
  ir_return(&ir, VALUES(ir_op(&ir, MP_OP_DYNAMIC_CONV, "1x1x8xf32",
                              VALUES(ir.args[0], ir.args[1], padding),
                              ATTRS(ir_int(&ir, MP_ATTR_INPUT_BATCH_DIMENSION, 0),
                                    ir_int(&ir, MP_ATTR_INPUT_FEATURE_DIMENSION, 1),
                                    IR_INTS(&ir, MP_ATTR_INPUT_SPATIAL_DIMENSIONS, 2)))));
  assert_ok(mp_pass_desugar(ir.module));
  assert_ok(mp_pass_dead_code(ir.module));
  ir_check(&ir,
           "%2 = convolution(%0, %1) {input_batch_dimension=0 input_feature_dimension=1 "
           "input_spatial_dimensions=[2] padding=[[2,0]]} : tensor<1x1x8xf32>\n"
           "return(%2)\n");
  ir_end(&ir);
}

// ---- tuples and futures ----

static void test_tuples(void **state) {
  (void)state;
  ir_t ir = ir_start("f32 (i32,(f32,i1))", "f32 (f32,i32) i1");
  mp_value_t *inner = ir_op(&ir, MP_OP_GET_TUPLE_ELEMENT, "(f32,i1)", VALUES(ir.args[1]),
                            ATTRS(ir_int(&ir, MP_ATTR_INDEX, 1)));
  mp_value_t *flag = ir_op(&ir, MP_OP_GET_TUPLE_ELEMENT, "i1", VALUES(inner),
                           ATTRS(ir_int(&ir, MP_ATTR_INDEX, 1)));
  mp_value_t *number = ir_op(&ir, MP_OP_GET_TUPLE_ELEMENT, "i32", VALUES(ir.args[1]),
                             ATTRS(ir_int(&ir, MP_ATTR_INDEX, 0)));
  mp_value_t *real = ir_op(&ir, MP_OP_GET_TUPLE_ELEMENT, "f32", VALUES(inner),
                           ATTRS(ir_int(&ir, MP_ATTR_INDEX, 0)));
  mp_value_t *sum = ir_op(&ir, MP_OP_ADD, "f32", VALUES(ir.args[0], real), NO_ATTRS);
  mp_value_t *pair = ir_op(&ir, MP_OP_TUPLE, "(f32,i32)", VALUES(sum, number), NO_ATTRS);
  ir_return(&ir, VALUES(real, pair, flag));
  assert_ok(mp_pass_desugar(ir.module));
  ir_check(&ir,
           "%4 = add(%0, %2) : tensor<f32>\n"
           "return(%2, %4, %1, %3)\n");
  assert_int_equal(ir.main->body->num_args, 4);
  assert_int_equal(ir.main->num_results, 4);
  assert_int_equal(ir.main->result_types[2]->dtype, MP_DTYPE_S32);
  ir_end(&ir);
}

static void test_tuple_through_while(void **state) {
  (void)state;
  ir_t ir = ir_start("(f32,i1)", "f32");
  mp_block_t *main_block = ir.block;
  mp_block_t *condition = ir_block(&ir, "(f32,i1)");
  ir_return(&ir, VALUES(ir_op(&ir, MP_OP_GET_TUPLE_ELEMENT, "i1", VALUES(condition->args),
                              ATTRS(ir_int(&ir, MP_ATTR_INDEX, 1)))));
  mp_block_t *body = ir_block(&ir, "(f32,i1)");
  mp_value_t *real = ir_op(&ir, MP_OP_GET_TUPLE_ELEMENT, "f32", VALUES(body->args),
                           ATTRS(ir_int(&ir, MP_ATTR_INDEX, 0)));
  mp_value_t *finite = ir_op(&ir, MP_OP_IS_FINITE, "i1", VALUES(real), NO_ATTRS);
  ir_return(&ir, VALUES(ir_op(&ir, MP_OP_TUPLE, "(f32,i1)", VALUES(real, finite), NO_ATTRS)));
  ir.block = main_block;
  mp_op_t *loop = ir_op_regions(&ir, MP_OP_WHILE, "(f32,i1)", VALUES(ir.args[0]), NO_ATTRS, 2,
                                (mp_block_t *[]){condition, body});
  ir_return(&ir, VALUES(ir_op(&ir, MP_OP_GET_TUPLE_ELEMENT, "f32", VALUES(loop->results),
                              ATTRS(ir_int(&ir, MP_ATTR_INDEX, 0)))));
  assert_ok(mp_pass_desugar(ir.module));
  ir_check(&ir,
           "%7, %8 = while(%0, %1) : tensor<f32>, tensor<i1>\n"
           " ^(%2: tensor<f32>, %3: tensor<i1>)\n"
           "  return(%3)\n"
           " ^(%4: tensor<f32>, %5: tensor<i1>)\n"
           "  %6 = is_finite(%4) : tensor<i1>\n"
           "  return(%4, %6)\n"
           "return(%7)\n");
  ir_end(&ir);
}

static void test_async(void **state) {
  (void)state;
  ir_t ir = ir_start("4xf32", "4xf32");
  mp_block_t *main_block = ir.block;
  mp_block_t *region = ir_block(&ir, "4xf32");
  const mp_attr_t *pairs = NULL;
  assert_ok(mp_attr_make_table(ir.module->arena, (int64_t[]){0, 1, 1, 0}, 2, 2, &pairs));
  ir_return(&ir, VALUES(ir_op(&ir, MP_OP_COLLECTIVE_PERMUTE, "4xf32", VALUES(region->args),
                              ATTRS(ir_attr(MP_ATTR_SOURCE_TARGET_PAIRS, pairs)))));
  ir.block = main_block;
  mp_op_t *start =
      ir_op_regions(&ir, MP_OP_ASYNC_START, "<4xf32>", VALUES(ir.args[0]), NO_ATTRS, 1, &region);
  mp_value_t *other = ir_op(&ir, MP_OP_NEGATE, "4xf32", VALUES(ir.args[0]), NO_ATTRS);
  mp_value_t *done = ir_op(&ir, MP_OP_ASYNC_DONE, "4xf32", VALUES(start->results), NO_ATTRS);
  ir_return(&ir, VALUES(ir_op(&ir, MP_OP_ADD, "4xf32", VALUES(other, done), NO_ATTRS)));
  assert_ok(mp_pass_desugar(ir.module));
  ir_check(&ir,
           "%1 = collective_permute(%0) {source_target_pairs=[[0,1],[1,0]]} : tensor<4xf32>\n"
           "%2 = negate(%0) : tensor<4xf32>\n"
           "%3 = add(%2, %1) : tensor<4xf32>\n"
           "return(%3)\n");
  ir_end(&ir);
}

// Types that double at each level: 2^40 leaves, or 2^40 empty tuples.
static void test_tuple_bombs(void **state) {
  (void)state;
  for (int is_empty = 0; is_empty < 2; ++is_empty) {
    ir_t ir = ir_start("", "");
    const mp_type_t *type = mp_type_token();
    if (is_empty) {
      assert_ok(mp_type_compound(ir.module->arena, MP_TYPE_TUPLE, NULL, 0, &type));
    }
    for (int i = 0; i < 40; ++i) {
      const mp_type_t *const twice[] = {type, type};
      assert_ok(mp_type_compound(ir.module->arena, MP_TYPE_TUPLE, twice, 2, &type));
    }
    mp_func_t *main = NULL;
    assert_ok(mp_func_create(ir.module, MP_STR("bomb"), 1, &type, 1, &type, &main));
    ir.module->main = main;
    ir.block = main->body;
    ir_return(&ir, VALUES(main->body->args));
    assert_status(mp_pass_flatten(ir.module), MP_RESOURCE_EXHAUSTED, "too large or too deep");
    ir_end(&ir);
  }
}

static void test_tuple_refusals(void **state) {
  (void)state;
  ir_t ir = ir_start("(f32,i1)", "i1");
  mp_named_attr_t item = ir_string(&ir, MP_ATTR_MHLO_SHARDING, "{{replicated}, {replicated}}");
  mp_attr_t dict = {.kind = MP_KIND_DICT, .u.dict = {&item, 1}};
  ir.main->arg_attrs[0] = &dict;
  ir_return(&ir, VALUES(ir_op(&ir, MP_OP_GET_TUPLE_ELEMENT, "i1", VALUES(ir.args[0]),
                              ATTRS(ir_int(&ir, MP_ATTR_INDEX, 1)))));
  assert_status(mp_pass_flatten(ir.module), MP_UNIMPLEMENTED,
                "argument 0 of main is a tuple and has attributes");
  ir_end(&ir);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_broadcast_and_dot),
      cmocka_unit_test(test_token_and_constant),
      cmocka_unit_test(test_if),
      cmocka_unit_test(test_cross_replica_sum),
      cmocka_unit_test(test_function_calls),
      cmocka_unit_test(test_buffers),
      cmocka_unit_test(test_buffers_refuse),
      cmocka_unit_test(test_torch_index_select),
      cmocka_unit_test(test_torch_index_select_refuses),
      cmocka_unit_test(test_einsum),
      cmocka_unit_test(test_einsum_sums_out),
      cmocka_unit_test(test_unary_einsum),
      cmocka_unit_test(test_einsum_refuses),
      cmocka_unit_test(test_mesh_groups),
      cmocka_unit_test(test_mesh_groups_refuses),
      cmocka_unit_test(test_dynamic_shapes),
      cmocka_unit_test(test_dynamic_operands),
      cmocka_unit_test(test_dynamic_conv),
      cmocka_unit_test(test_tuples),
      cmocka_unit_test(test_tuple_through_while),
      cmocka_unit_test(test_async),
      cmocka_unit_test(test_tuple_bombs),
      cmocka_unit_test(test_tuple_refusals),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
