// The partitioner: small programs before, the program of each device after.
#include "sim/passes/passes.h"
#include "sim/spmd/partition/partition.h"
#include "tests/unit/support/ir_test.h"
#include "tests/unit/support/sdy_test.h"

static mp_status_t partition(ir_t *ir, uint32_t num_partitions, bool propagate,
                             mp_partition_t *out) {
  const mp_partition_options_t options = {.num_partitions = num_partitions,
                                          .propagate_to_results = &propagate,
                                          .num_propagate_to_results = 1,
                                          .propagate_to_params = &propagate,
                                          .num_propagate_to_params = 1};
  MP_RETURN_IF_ERROR(mp_passes_prepare(ir->module));
  return mp_spmd_partition(ir->module, &options, out);
}

// Gives a parameter or result of main a sharding.
static void annotate(ir_t *ir, const mp_attr_t **slot, const mp_attr_t *sharding) {
  mp_named_attr_t item = ir_attr(
      sharding->kind == MP_KIND_SHARDING ? MP_ATTR_SDY_SHARDING : MP_ATTR_MHLO_SHARDING, sharding);
  mp_attr_t *dict = MP_ARENA_NEW(ir->module->arena, mp_attr_t);
  dict->kind = MP_KIND_DICT;
  dict->u.dict.items = mp_arena_copy(ir->module->arena, &item, sizeof(item));
  dict->u.dict.count = 1;
  *slot = dict;
}

static const mp_attr_t *shard(ir_t *ir, const mp_mesh_t *mesh, uint32_t rank, const char *text) {
  return sdy_sharding_attr(ir->module->arena, mesh, rank, text);
}

static mp_value_t *constrain(ir_t *ir, mp_value_t *value, const char *type,
                             const mp_attr_t *sharding) {
  return ir_op(ir, MP_OP_SDY_SHARDING_CONSTRAINT, type, VALUES(value),
               ATTRS(ir_attr(MP_ATTR_SHARDING, sharding)));
}

// One sdy.manual_computation; shardings are given as attributes, blocks as built.
static mp_op_t *manual(ir_t *ir, const char *result_types, mp_value_t *const *operands,
                       const mp_attr_t *const *in, const mp_attr_t *const *out,
                       const char *axes_text, mp_block_t *body) {
  mp_arena_t *arena = ir->module->arena;
  mp_attr_t *attrs = MP_ARENA_ARRAY(arena, mp_attr_t, 3);
  for (int side = 0; side < 2; ++side) {
    const mp_attr_t *const *list = side == 0 ? in : out;
    mp_sdy_sharding_t *shardings = MP_ARENA_ARRAY(arena, mp_sdy_sharding_t, IR_MAX);
    uint32_t count = 0;
    for (; list[count] != NULL; ++count) shardings[count] = *list[count]->u.sharding;
    attrs[side].kind = MP_KIND_SHARDINGS;
    attrs[side].u.shardings = (mp_sdy_shardings_t){count, shardings};
  }
  attrs[2].kind = MP_KIND_AXES;
  attrs[2].u.axes = sdy_axis_list(arena, axes_text);
  return ir_op_regions(
      ir, MP_OP_SDY_MANUAL_COMPUTATION, result_types, operands,
      ATTRS(ir_attr(MP_ATTR_IN_SHARDINGS, &attrs[0]), ir_attr(MP_ATTR_OUT_SHARDINGS, &attrs[1]),
            ir_attr(MP_ATTR_MANUAL_AXES, &attrs[2])),
      1, &body);
}

#define SHARDINGS(...) ((const mp_attr_t *[]){__VA_ARGS__, NULL})

static mp_value_t *unary(ir_t *ir, mp_opcode_t code, const char *type, mp_value_t *operand) {
  return ir_op(ir, code, type, VALUES(operand), NO_ATTRS);
}

// ---- rings ----

static const mp_op_t *first_op(const ir_t *ir, mp_opcode_t code) {
  for (const mp_op_t *op = ir->module->main->body->first; op != NULL; op = op->next) {
    if (op->code == code) return op;
  }
  return NULL;
}

// main(x, w) = x @ w over a mesh, each with a sharding; `constraint` is of w before the product.
// What of the product may be a ring.
static uint32_t rings_of(const char *axes, const char *x, const char *w, const char *constraint,
                         const char *result) {
  ir_t ir = ir_start("16x16xf32 16x16xf32", "16x16xf32");
  const mp_mesh_t *mesh = sdy_mesh(ir.module->arena, axes, NULL, 0);
  annotate(&ir, &ir.main->arg_attrs[0], shard(&ir, mesh, 2, x));
  annotate(&ir, &ir.main->arg_attrs[1], shard(&ir, mesh, 2, w));
  annotate(&ir, &ir.main->result_attrs[0], shard(&ir, mesh, 2, result));
  mp_value_t *factor = ir.args[1];
  if (constraint != NULL) {
    factor = constrain(&ir, factor, "16x16xf32", shard(&ir, mesh, 2, constraint));
  }
  ir_return(&ir, VALUES(ir_op(&ir, MP_OP_DOT_GENERAL, "16x16xf32", VALUES(ir.args[0], factor),
                              ATTRS(IR_INTS(&ir, MP_ATTR_LHS_CONTRACTING_DIMENSIONS, 1),
                                    IR_INTS(&ir, MP_ATTR_RHS_CONTRACTING_DIMENSIONS, 0)))));
  mp_partition_t parts;
  assert_ok(partition(&ir, 4, false, &parts));
  const mp_op_t *product = first_op(&ir, MP_OP_DOT_GENERAL);
  assert_non_null(product);
  const uint32_t rings = product->rings & 15U;
  const mp_op_t *gather = first_op(&ir, MP_OP_ALL_GATHER);
  const bool is_for_ring = (rings & (MP_OP_RING_LHS | MP_OP_RING_RHS)) != 0;
  if (gather != NULL && !is_for_ring) assert_false(gather->by_permutes);
  if (is_for_ring) assert_true(gather->by_permutes);
  ir_end(&ir);
  return rings;
}

static void test_rings(void **state) {
  (void)state;
  const uint32_t lhs = MP_OP_RING_LHS, rhs = MP_OP_RING_RHS, sum = MP_OP_RING_SUM;
  const uint32_t terms = MP_OP_RING_IN_TERMS;
  // FSDP, along what is summed up and along columns; rows that a tensor parallel product gathers.
  assert_int_equal(rings_of("x=4", "x;", "x;", NULL, "x;"), rhs);
  assert_int_equal(rings_of("x=4", "x;", ";x", NULL, "x;"), rhs);
  assert_int_equal(rings_of("x=4", "x;", ";x", NULL, ";x"), lhs);
  // What an annotation gathers is whole before.
  assert_int_equal(rings_of("x=4", "x;", "x;", ";", "x;"), 0);
  // Two axes: the other one splits columns; rows over both; an unused axis.
  assert_int_equal(rings_of("x=2 y=2", "x;", "x;y", NULL, "x;y"), rhs);
  assert_int_equal(rings_of("x=2 y=2", "x,y;", "y;", NULL, "x,y;"), 0);
  assert_int_equal(rings_of("x=2 y=2", "x;", "x;", NULL, "x;"), 0);
  // Sums: scattered, or as a whole.
  assert_int_equal(rings_of("x=4", ";x", "x;", NULL, "x;"), sum | terms);
  assert_int_equal(rings_of("x=4", ";x", "x;", NULL, ";"), terms);
}

// FSDP with tensor parallelism, and with sequence parallelism between layers.
static void test_rings_of_two_axes(void **state) {
  (void)state;
  const uint32_t lhs = MP_OP_RING_LHS, rhs = MP_OP_RING_RHS, sum = MP_OP_RING_SUM;
  const uint32_t terms = MP_OP_RING_IN_TERMS;
  // Into a layer: either factor. Out of it: the weight, or the sum; its whole is no ring.
  assert_int_equal(rings_of("x=2 y=2", "x;y", "x;y", NULL, "x;y"), lhs | rhs);
  assert_int_equal(rings_of("x=2 y=2", "x;y", "y;x", NULL, "x;y"), rhs | sum | terms);
  assert_int_equal(rings_of("x=2 y=2", "x;y", "y;x", NULL, "x;"), rhs | terms);
  // The same, transposed: the first factor's gather is no ring beside a sum.
  assert_int_equal(rings_of("x=2 y=2", "x;y", "y;x", NULL, "y;x"), sum | terms);
}

// ---- automatic code ----

// Elementwise ops stay on parts, other ops get their operands whole.
// main(x, w) = x @ w over four devices, of these types. Whether the one collective is of this kind.
static bool is_brought_by_in(const char *types, const char *result_type, const char *x,
                             const char *w, const char *result, mp_opcode_t code) {
  static const mp_opcode_t all[] = {MP_OP_ALL_GATHER, MP_OP_ALL_TO_ALL, MP_OP_REDUCE_SCATTER,
                                    MP_OP_ALL_REDUCE, MP_OP_EXCHANGE};
  ir_t ir = ir_start(types, result_type);
  const mp_mesh_t *mesh = sdy_mesh(ir.module->arena, "x=4", NULL, 0);
  annotate(&ir, &ir.main->arg_attrs[0], shard(&ir, mesh, 2, x));
  annotate(&ir, &ir.main->arg_attrs[1], shard(&ir, mesh, 2, w));
  annotate(&ir, &ir.main->result_attrs[0], shard(&ir, mesh, 2, result));
  ir_return(&ir, VALUES(ir_op(&ir, MP_OP_DOT_GENERAL, result_type, VALUES(ir.args[0], ir.args[1]),
                              ATTRS(IR_INTS(&ir, MP_ATTR_LHS_CONTRACTING_DIMENSIONS, 1),
                                    IR_INTS(&ir, MP_ATTR_RHS_CONTRACTING_DIMENSIONS, 0)))));
  mp_partition_t parts;
  assert_ok(partition(&ir, 4, false, &parts));
  bool is_only = first_op(&ir, code) != NULL;
  for (uint32_t i = 0; i < sizeof(all) / sizeof(all[0]); ++i) {
    is_only &= all[i] == code || first_op(&ir, all[i]) == NULL;
  }
  ir_end(&ir);
  return is_only;
}

static bool is_brought_by(const char *x, const char *w, const char *result, mp_opcode_t code) {
  return is_brought_by_in("64x16xf32 16x8xf32", "64x8xf32", x, w, result, code);
}

// Sequence parallel products: exchanging rows for columns would send less than gathering the rows,
// or than scattering the sum, but the columns of the result are those of the weight.
static void test_settled_products(void **state) {
  (void)state;
  assert_true(is_brought_by("x;", ";x", ";x", MP_OP_ALL_GATHER));
  assert_true(is_brought_by(";x", "x;", "x;", MP_OP_REDUCE_SCATTER));
}

// A factor that lies in parts along what is summed up, and one that is whole: gathering the first
// sends less than summing up a result that is larger, unless that repeats too much work.
static void test_repeated_products(void **state) {
  (void)state;
  const mp_opcode_t gather = MP_OP_ALL_GATHER, sum = MP_OP_ALL_REDUCE;
  assert_true(is_brought_by_in("8x16xf32 16x64xf32", "8x64xf32", ";x", ";", ";", gather));
  assert_true(is_brought_by_in("8x64xf32 64x16xf32", "8x16xf32", ";x", ";", ";", sum));
  const char *types = "8x8192xf32 8192x16384xf32";
  assert_true(is_brought_by_in(types, "8x16384xf32", ";x", ";", ";", sum));
}

static void test_elementwise_and_others(void **state) {
  (void)state;
  ir_t ir = ir_start("4x6xf32 4x6xf32 f32", "4x6xf32 6x4xf32");
  const mp_mesh_t *mesh = sdy_mesh(ir.module->arena, "x=2", NULL, 0);
  annotate(&ir, &ir.main->arg_attrs[0], shard(&ir, mesh, 2, "x;"));
  annotate(&ir, &ir.main->result_attrs[0], shard(&ir, mesh, 2, "x;"));
  mp_value_t *sum = ir_op(&ir, MP_OP_ADD, "4x6xf32", VALUES(ir.args[0], ir.args[1]), NO_ATTRS);
  // clamp's bounds are scalars and stay whole.
  mp_value_t *clamped =
      ir_op(&ir, MP_OP_CLAMP, "4x6xf32", VALUES(ir.args[2], sum, ir.args[2]), NO_ATTRS);
  mp_value_t *turned = ir_op(&ir, MP_OP_TRANSPOSE, "6x4xf32", VALUES(clamped),
                             ATTRS(IR_INTS(&ir, MP_ATTR_PERMUTATION, 1, 0)));
  ir_return(&ir, VALUES(clamped, turned));
  mp_partition_t parts;
  assert_ok(partition(&ir, 2, false, &parts));
  ir_check(&ir,
           "%3 = partition_id() : tensor<ui32>\n"
           "%4 = constant() {value=splat 2} : tensor<ui32>\n"
           "%5 = multiply(%3, %4) : tensor<ui32>\n"
           "%6 = constant() {value=splat 0} : tensor<ui32>\n"
           "%7 = dynamic_slice(%1, %5, %6) {slice_sizes=[2,6]} : tensor<2x6xf32>\n"
           "%8 = add(%0, %7) : tensor<2x6xf32>\n"
           "%9 = clamp(%2, %8, %2) : tensor<2x6xf32>\n"
           "%10 = transpose(%9) {permutation=[1,0]} : tensor<6x2xf32>\n"
           "%11 = all_gather(%10) {all_gather_dim=1 channel_id=1 replica_groups=[[0,1]] "
           "use_global_device_ids=true} : tensor<6x4xf32>\n"
           "return(%9, %11)\n");
  assert_non_null(parts.params[0].boxes);
  assert_null(parts.params[1].boxes);
  assert_ptr_equal(parts.results[0].boxes, parts.params[0].boxes);
  assert_int_equal(parts.results[1].global_type->dims[0], 6);
  assert_int_equal(ir.main->result_types[0]->dims[0], 2);
  ir_end(&ir);
}

// One partition: annotations vanish, nothing is exchanged.
static void test_one_partition(void **state) {
  (void)state;
  ir_t ir = ir_start("4xf32", "4xf32");
  const mp_mesh_t *mesh = sdy_mesh(ir.module->arena, "x=1", NULL, 0);
  annotate(&ir, &ir.main->arg_attrs[0], shard(&ir, mesh, 1, "x"));
  mp_value_t *value = constrain(&ir, ir.args[0], "4xf32", shard(&ir, mesh, 1, "x"));
  ir_return(&ir, VALUES(unary(&ir, MP_OP_NEGATE, "4xf32", value)));
  mp_partition_t parts;
  assert_ok(partition(&ir, 1, true, &parts));
  ir_check(&ir, "%1 = negate(%0) : tensor<4xf32>\nreturn(%1)\n");
  ir_end(&ir);
}

// A constraint only says where the value shall lie; an open result takes it over, when it may.
static void test_constraints_and_results(void **state) {
  (void)state;
  for (int propagate = 0; propagate < 2; ++propagate) {
    ir_t ir = ir_start("4xf32", "4xf32");
    const mp_mesh_t *mesh = sdy_mesh(ir.module->arena, "x=2", NULL, 0);
    mp_value_t *value = unary(&ir, MP_OP_COSINE, "4xf32", ir.args[0]);
    ir_return(&ir, VALUES(constrain(&ir, value, "4xf32", shard(&ir, mesh, 1, "x"))));
    mp_partition_t parts;
    assert_ok(partition(&ir, 2, propagate == 1, &parts));
    ir_check(&ir, propagate == 0
                      ? "%1 = partition_id() : tensor<ui32>\n"
                        "%2 = constant() {value=splat 2} : tensor<ui32>\n"
                        "%3 = multiply(%1, %2) : tensor<ui32>\n"
                        "%4 = dynamic_slice(%0, %3) {slice_sizes=[2]} : tensor<2xf32>\n"
                        "%5 = cosine(%4) : tensor<2xf32>\n"
                        "%6 = all_gather(%5) {all_gather_dim=0 channel_id=1 replica_groups=[[0,1]] "
                        "use_global_device_ids=true} : tensor<4xf32>\n"
                        "return(%6)\n"
                      : "%1 = cosine(%0) : tensor<2xf32>\nreturn(%1)\n");
    assert_true((parts.params[0].boxes != NULL) == (propagate == 1));
    assert_true((parts.results[0].boxes != NULL) == (propagate == 1));
    ir_end(&ir);
  }
}

static const mp_attr_t *shard_unreduced(ir_t *ir, const mp_mesh_t *mesh, uint32_t rank,
                                        const char *text, const char *axes) {
  mp_sdy_sharding_t sharding = sdy_sharding(ir->module->arena, mesh, rank, text);
  sharding.unreduced = sdy_axis_list(ir->module->arena, axes);
  mp_attr_t *attr = MP_ARENA_NEW(ir->module->arena, mp_attr_t);
  attr->kind = MP_KIND_SHARDING;
  attr->u.sharding = mp_arena_copy(ir->module->arena, &sharding, sizeof(sharding));
  return attr;
}

// A constraint to partial sums makes none. A result of partial sums: the first keeps the value. A
// parameter of partial sums: they are added up before use, once.
static void test_unreduced(void **state) {
  (void)state;
  mp_partition_t parts;
  ir_t ir = ir_start("4xf32", "4xf32 4xf32");
  const mp_mesh_t *mesh = sdy_mesh(ir.module->arena, "x=2", NULL, 0);
  const mp_attr_t *unreduced = shard_unreduced(&ir, mesh, 1, "", "x");
  annotate(&ir, &ir.main->result_attrs[0], unreduced);
  mp_value_t *value = constrain(&ir, ir.args[0], "4xf32", unreduced);
  ir_return(&ir, VALUES(value, value));
  assert_ok(partition(&ir, 2, false, &parts));
  ir_check(&ir,
           "%1 = constant() {value=1,0} : tensor<2xi1>\n"
           "%2 = partition_id() : tensor<ui32>\n"
           "%3 = dynamic_slice(%1, %2) {slice_sizes=[1]} : tensor<1xi1>\n"
           "%4 = reshape(%3) : tensor<i1>\n"
           "%5 = constant() {value=splat -0} : tensor<4xf32>\n"
           "%6 = select(%4, %0, %5) : tensor<4xf32>\n"
           "return(%6, %0)\n");
  ir_end(&ir);

  ir = ir_start("4xf32", "4xf32");
  mesh = sdy_mesh(ir.module->arena, "x=2 y=2", NULL, 0);
  annotate(&ir, &ir.main->arg_attrs[0], shard_unreduced(&ir, mesh, 1, "y", "x"));
  annotate(&ir, &ir.main->result_attrs[0], shard(&ir, mesh, 1, "y"));
  value = unary(&ir, MP_OP_COSINE, "4xf32", ir.args[0]);
  ir_return(&ir, VALUES(ir_op(&ir, MP_OP_ADD, "4xf32", VALUES(value, ir.args[0]), NO_ATTRS)));
  assert_ok(partition(&ir, 4, false, &parts));
  ir_check(&ir,
           "%4 = all_reduce(%0) {channel_id=1 replica_groups=[[0,2],[1,3]] "
           "use_global_device_ids=true} : tensor<2xf32>\n"
           " ^(%1: tensor<f32>, %2: tensor<f32>)\n"
           "  %3 = add(%1, %2) : tensor<f32>\n"
           "  return(%3)\n"
           "%5 = cosine(%4) : tensor<2xf32>\n"
           "%6 = add(%5, %4) : tensor<2xf32>\n"
           "return(%6)\n");
  ir_end(&ir);
}

static mp_block_t *reducer(ir_t *ir, mp_opcode_t code) {
  mp_block_t *outer = ir->block;
  mp_block_t *body = ir_block(ir, "f32 f32");
  ir_return(ir, VALUES(ir_op(ir, code, "f32", VALUES(&body->args[0], &body->args[1]), NO_ATTRS)));
  ir->block = outer;
  return body;
}

// The maxima of parts stay terms if the program asks for that, and are combined along those axes
// alone along which it does not.
static void test_unreduced_maximum(void **state) {
  (void)state;
  ir_t ir = ir_start("8xf32 f32", "f32 f32");
  const mp_mesh_t *mesh = sdy_mesh(ir.module->arena, "x=2 y=2", NULL, 0);
  mp_sdy_sharding_t terms[2];
  const mp_attr_t *attrs[2] = {shard_unreduced(&ir, mesh, 0, "", "x,y"),
                               shard_unreduced(&ir, mesh, 0, "", "x")};
  for (int i = 0; i < 2; ++i) {
    terms[i] = *attrs[i]->u.sharding;
    terms[i].unreduced_kind = MP_UNREDUCED_MAX;
    mp_attr_t *attr = MP_ARENA_NEW(ir.module->arena, mp_attr_t);
    attr->kind = MP_KIND_SHARDING;
    attr->u.sharding = mp_arena_copy(ir.module->arena, &terms[i], sizeof(terms[i]));
    attrs[i] = attr;
  }
  annotate(&ir, &ir.main->arg_attrs[0], shard(&ir, mesh, 1, "x,y"));
  annotate(&ir, &ir.main->result_attrs[0], attrs[1]);
  annotate(&ir, &ir.main->result_attrs[1], shard(&ir, mesh, 0, ""));
  mp_block_t *body = reducer(&ir, MP_OP_MAXIMUM);
  mp_value_t *value = ir_op_regions(&ir, MP_OP_REDUCE, "f32", VALUES(ir.args[0], ir.args[1]),
                                    ATTRS(IR_INTS(&ir, MP_ATTR_DIMENSIONS, 0)), 1, &body)
                          ->results;
  value = constrain(&ir, value, "f32", attrs[0]);
  value = constrain(&ir, value, "f32", attrs[1]);
  ir_return(&ir, VALUES(value, value));
  mp_partition_t parts;
  assert_ok(partition(&ir, 4, true, &parts));
  ir_check(&ir,
           "%5 = reduce(%0, %1) {dimensions=[0]} : tensor<f32>\n"
           " ^(%2: tensor<f32>, %3: tensor<f32>)\n"
           "  %4 = maximum(%2, %3) : tensor<f32>\n"
           "  return(%4)\n"
           "%9 = all_reduce(%5) {channel_id=1 replica_groups=[[0,1],[2,3]] "
           "use_global_device_ids=true} : tensor<f32>\n"
           " ^(%6: tensor<f32>, %7: tensor<f32>)\n"
           "  %8 = maximum(%6, %7) : tensor<f32>\n"
           "  return(%8)\n"
           "%13 = all_reduce(%9) {channel_id=1 replica_groups=[[0,2],[1,3]] "
           "use_global_device_ids=true} : tensor<f32>\n"
           " ^(%10: tensor<f32>, %11: tensor<f32>)\n"
           "  %12 = maximum(%10, %11) : tensor<f32>\n"
           "  return(%12)\n"
           "return(%9, %13)\n");
  ir_end(&ir);
}

// ---- ops on parts ----

// A product over a dimension that is in parts is a sum to be made; a result of parts takes its own.
static void test_dot_of_parts(void **state) {
  (void)state;
  ir_t ir = ir_start("4x8xf32 8x6xf32", "4x6xf32");
  const mp_mesh_t *mesh = sdy_mesh(ir.module->arena, "x=2", NULL, 0);
  annotate(&ir, &ir.main->arg_attrs[0], shard(&ir, mesh, 2, ";x"));
  annotate(&ir, &ir.main->arg_attrs[1], shard(&ir, mesh, 2, "x;"));
  ir_return(&ir, VALUES(ir_op(&ir, MP_OP_DOT_GENERAL, "4x6xf32", VALUES(ir.args[0], ir.args[1]),
                              ATTRS(IR_INTS(&ir, MP_ATTR_LHS_CONTRACTING_DIMENSIONS, 1),
                                    IR_INTS(&ir, MP_ATTR_RHS_CONTRACTING_DIMENSIONS, 0)))));
  mp_partition_t parts;
  assert_ok(partition(&ir, 2, true, &parts));
  ir_check(&ir,
           "%2 = dot_general(%0, %1) {lhs_contracting_dimensions=[1] "
           "rhs_contracting_dimensions=[0]} : tensor<4x6xf32>\n"
           "%6 = all_reduce(%2) {channel_id=1 replica_groups=[[0,1]] use_global_device_ids=true} : "
           "tensor<4x6xf32>\n"
           " ^(%3: tensor<f32>, %4: tensor<f32>)\n"
           "  %5 = add(%3, %4) : tensor<f32>\n"
           "  return(%5)\n"
           "return(%6)\n");
  ir_end(&ir);
}

// A maximum over parts is finished by an all_reduce; of a sum whose initial value would count twice
// only the first part has it.
static void test_reduce_of_parts(void **state) {
  (void)state;
  ir_t ir = ir_start("8xf32 f32", "f32 f32");
  const mp_mesh_t *mesh = sdy_mesh(ir.module->arena, "x=2", NULL, 0);
  annotate(&ir, &ir.main->arg_attrs[0], shard(&ir, mesh, 1, "x"));
  mp_block_t *bodies[2] = {reducer(&ir, MP_OP_MAXIMUM), reducer(&ir, MP_OP_ADD)};
  mp_value_t *values[2];
  for (int i = 0; i < 2; ++i) {
    values[i] = ir_op_regions(&ir, MP_OP_REDUCE, "f32", VALUES(ir.args[0], ir.args[1]),
                              ATTRS(IR_INTS(&ir, MP_ATTR_DIMENSIONS, 0)), 1, &bodies[i])
                    ->results;
  }
  ir_return(&ir, VALUES(values[0], values[1]));
  mp_partition_t parts;
  assert_ok(partition(&ir, 2, true, &parts));
  ir_check(
      &ir,
      "%5 = reduce(%0, %1) {dimensions=[0]} : tensor<f32>\n"
      " ^(%2: tensor<f32>, %3: tensor<f32>)\n"
      "  %4 = maximum(%2, %3) : tensor<f32>\n"
      "  return(%4)\n"
      "%9 = all_reduce(%5) {channel_id=1 replica_groups=[[0,1]] use_global_device_ids=true} : "
      "tensor<f32>\n"
      " ^(%6: tensor<f32>, %7: tensor<f32>)\n"
      "  %8 = maximum(%6, %7) : tensor<f32>\n"
      "  return(%8)\n"
      "%10 = constant() {value=1,0} : tensor<2xi1>\n"
      "%11 = partition_id() : tensor<ui32>\n"
      "%12 = dynamic_slice(%10, %11) {slice_sizes=[1]} : tensor<1xi1>\n"
      "%13 = reshape(%12) : tensor<i1>\n"
      "%14 = constant() {value=splat -0} : tensor<f32>\n"
      "%15 = select(%13, %1, %14) : tensor<f32>\n"
      "%19 = reduce(%0, %15) {dimensions=[0]} : tensor<f32>\n"
      " ^(%16: tensor<f32>, %17: tensor<f32>)\n"
      "  %18 = add(%16, %17) : tensor<f32>\n"
      "  return(%18)\n"
      "%23 = all_reduce(%19) {channel_id=1 replica_groups=[[0,1]] use_global_device_ids=true} : "
      "tensor<f32>\n"
      " ^(%20: tensor<f32>, %21: tensor<f32>)\n"
      "  %22 = add(%20, %21) : tensor<f32>\n"
      "  return(%22)\n"
      "return(%9, %23)\n");
  ir_end(&ir);
}

// Shapes in attributes become those of the parts; an iota along a sharded dimension counts from the
// part's start.
static void test_local_attributes(void **state) {
  (void)state;
  ir_t ir = ir_start("8x6xf32", "8x3xf32");
  const mp_mesh_t *mesh = sdy_mesh(ir.module->arena, "x=2", NULL, 0);
  annotate(&ir, &ir.main->arg_attrs[0], shard(&ir, mesh, 2, "x;"));
  mp_value_t *cut =
      ir_op(&ir, MP_OP_SLICE, "8x3xf32", VALUES(ir.args[0]),
            ATTRS(IR_INTS(&ir, MP_ATTR_START_INDICES, 0, 1),
                  IR_INTS(&ir, MP_ATTR_LIMIT_INDICES, 8, 4), IR_INTS(&ir, MP_ATTR_STRIDES, 1, 1)));
  mp_value_t *rows =
      ir_op(&ir, MP_OP_IOTA, "8x3xf32", NO_VALUES, ATTRS(ir_int(&ir, MP_ATTR_IOTA_DIMENSION, 0)));
  mp_value_t *columns =
      ir_op(&ir, MP_OP_IOTA, "8x3xf32", NO_VALUES, ATTRS(ir_int(&ir, MP_ATTR_IOTA_DIMENSION, 1)));
  const float one = 1;
  mp_value_t *ones = ir_constant(&ir, "8x3xf32", &one, sizeof(one));
  mp_value_t *sum = ir_op(&ir, MP_OP_ADD, "8x3xf32", VALUES(cut, rows), NO_ATTRS);
  sum = ir_op(&ir, MP_OP_ADD, "8x3xf32", VALUES(sum, columns), NO_ATTRS);
  ir_return(&ir, VALUES(ir_op(&ir, MP_OP_ADD, "8x3xf32", VALUES(sum, ones), NO_ATTRS)));
  mp_partition_t parts;
  assert_ok(partition(&ir, 2, true, &parts));
  ir_check(
      &ir,
      "%1 = slice(%0) {limit_indices=[4,4] start_indices=[0,1] strides=[1,1]} : tensor<4x3xf32>\n"
      "%2 = iota() {iota_dimension=0} : tensor<4x3xi64>\n"
      "%3 = constant() {value=0,4} : tensor<2xi64>\n"
      "%4 = partition_id() : tensor<ui32>\n"
      "%5 = dynamic_slice(%3, %4) {slice_sizes=[1]} : tensor<1xi64>\n"
      "%6 = reshape(%5) : tensor<i64>\n"
      "%7 = broadcast_in_dim(%6) {broadcast_dimensions=[]} : tensor<4x3xi64>\n"
      "%8 = add(%2, %7) : tensor<4x3xi64>\n"
      "%9 = convert(%8) : tensor<4x3xf32>\n"
      "%10 = iota() {iota_dimension=1} : tensor<4x3xf32>\n"
      "%11 = constant() {value=splat 1} : tensor<4x3xf32>\n"
      "%12 = add(%1, %9) : tensor<4x3xf32>\n"
      "%13 = add(%12, %10) : tensor<4x3xf32>\n"
      "%14 = add(%13, %11) : tensor<4x3xf32>\n"
      "return(%14)\n");
  ir_end(&ir);
}

// A merged dimension keeps the parts of its major factor; what is in parts of the minor one must
// come together first.
static void test_reshape_of_parts(void **state) {
  (void)state;
  for (int minor = 0; minor < 2; ++minor) {
    ir_t ir = ir_start("4x6xf32", "24xf32");
    const mp_mesh_t *mesh = sdy_mesh(ir.module->arena, "x=2", NULL, 0);
    annotate(&ir, &ir.main->arg_attrs[0], shard(&ir, mesh, 2, minor ? ";x" : "x;"));
    ir_return(&ir, VALUES(unary(&ir, MP_OP_RESHAPE, "24xf32", ir.args[0])));
    mp_partition_t parts;
    assert_ok(partition(&ir, 2, true, &parts));
    ir_check(&ir, minor
                      ? "%1 = all_gather(%0) {all_gather_dim=1 channel_id=1 replica_groups=[[0,1]] "
                        "use_global_device_ids=true} : tensor<4x6xf32>\n"
                        "%2 = reshape(%1) : tensor<24xf32>\n"
                        "return(%2)\n"
                      : "%1 = reshape(%0) : tensor<12xf32>\n"
                        "return(%1)\n");
    ir_end(&ir);
  }
}

// A sum over uneven parts would count what lies behind their ends: it is made of whole arrays.
static void test_uneven_reduce(void **state) {
  (void)state;
  ir_t ir = ir_start("5xf32", "f32");
  const mp_mesh_t *mesh = sdy_mesh(ir.module->arena, "x=2", NULL, 0);
  const float zero = 0;
  mp_value_t *value = constrain(&ir, ir.args[0], "5xf32", shard(&ir, mesh, 1, "x"));
  value = unary(&ir, MP_OP_COSINE, "5xf32", value);
  mp_value_t *initial = ir_constant(&ir, "f32", &zero, sizeof(zero));
  mp_block_t *body = reducer(&ir, MP_OP_ADD);
  mp_op_t *sum = ir_op_regions(&ir, MP_OP_REDUCE, "f32", VALUES(value, initial),
                               ATTRS(IR_INTS(&ir, MP_ATTR_DIMENSIONS, 0)), 1, &body);
  ir_return(&ir, VALUES(sum->results));
  mp_partition_t parts;
  assert_ok(partition(&ir, 2, true, &parts));
  ir_check(
      &ir,
      "%1 = minipod.exchange(%0) {source=0:[0+5] 1:[0+5] target=0:[0+3] 1:[3+2]} : tensor<3xf32>\n"
      "%2 = cosine(%1) : tensor<3xf32>\n"
      "%3 = constant() {value=0} : tensor<f32>\n"
      "%4 = minipod.exchange(%2) {source=0:[0+3] 1:[3+2] target=0:[0+5] 1:[0+5]} : tensor<5xf32>\n"
      "%8 = reduce(%4, %3) {dimensions=[0]} : tensor<f32>\n"
      " ^(%5: tensor<f32>, %6: tensor<f32>)\n"
      "  %7 = add(%5, %6) : tensor<f32>\n"
      "  return(%7)\n"
      "return(%8)\n");
  ir_end(&ir);
}

// Uneven parts: local arrays of ceil(n/k). No open result comes out like that.
static void test_uneven(void **state) {
  (void)state;
  ir_t ir = ir_start("5xf32", "5xf32");
  annotate(&ir, &ir.main->arg_attrs[0],
           ir_string(&ir, MP_ATTR_MHLO_SHARDING, "{devices=[3]<=[3]}").value);
  ir_return(&ir, VALUES(unary(&ir, MP_OP_NEGATE, "5xf32", ir.args[0])));
  mp_partition_t parts;
  assert_ok(partition(&ir, 3, true, &parts));
  assert_null(parts.results[0].boxes);
  ir_check(&ir,
           "%1 = negate(%0) : tensor<2xf32>\n"
           "%2 = minipod.exchange(%1) {source=0:[0+2] 1:[2+2] 2:[4+1] "
           "target=0:[0+5] 1:[0+5] 2:[0+5]} : tensor<5xf32>\n"
           "return(%2)\n");
  ir_end(&ir);
}

// ---- control flow ----

// What a loop captures is brought before the loop, once; its carried values are whole.
static void test_while_captures(void **state) {
  (void)state;
  ir_t ir = ir_start("4xf32 i1 4xf32", "4xf32");
  const mp_mesh_t *mesh = sdy_mesh(ir.module->arena, "x=2", NULL, 0);
  annotate(&ir, &ir.main->arg_attrs[0], shard(&ir, mesh, 1, "x"));
  annotate(&ir, &ir.main->arg_attrs[2], shard(&ir, mesh, 1, "x"));
  annotate(&ir, &ir.main->result_attrs[0], shard(&ir, mesh, 1, "x"));
  mp_value_t *captured = unary(&ir, MP_OP_NEGATE, "4xf32", ir.args[0]);
  mp_block_t *main_block = ir.block;
  mp_block_t *condition = ir_block(&ir, "4xf32");
  ir_return(&ir, VALUES(ir.args[1]));
  mp_block_t *body = ir_block(&ir, "4xf32");
  mp_value_t *sum = ir_op(&ir, MP_OP_ADD, "4xf32", VALUES(body->args, captured), NO_ATTRS);
  ir_return(&ir, VALUES(sum));
  ir.block = main_block;
  mp_op_t *loop = ir_op_regions(&ir, MP_OP_WHILE, "4xf32", VALUES(ir.args[2]), NO_ATTRS, 2,
                                (mp_block_t *[]){condition, body});
  // The loop carries parts, as what it starts from and what it adds lie in parts.
  mp_value_t *after =
      ir_op(&ir, MP_OP_SUBTRACT, "4xf32", VALUES(captured, loop->results), NO_ATTRS);
  ir_return(&ir, VALUES(after));
  mp_partition_t parts;
  assert_ok(partition(&ir, 2, false, &parts));
  ir_check(&ir,
           "%3 = negate(%0) : tensor<2xf32>\n"
           "%7 = while(%2) : tensor<2xf32>\n"
           " ^(%4: tensor<2xf32>)\n"
           "  return(%1)\n"
           " ^(%5: tensor<2xf32>)\n"
           "  %6 = add(%5, %3) : tensor<2xf32>\n"
           "  return(%6)\n"
           "%8 = subtract(%3, %7) : tensor<2xf32>\n"
           "return(%8)\n");
  ir_end(&ir);
}

// ---- manual regions ----

// The body is local code already; its results feed ops outside as parts.
static void test_manual(void **state) {
  (void)state;
  ir_t ir = ir_start("8xf32 8xf32", "8xf32 4xf32");
  const mp_mesh_t *mesh = sdy_mesh(ir.module->arena, "x=2", NULL, 0);
  annotate(&ir, &ir.main->arg_attrs[0], shard(&ir, mesh, 1, "x"));
  annotate(&ir, &ir.main->result_attrs[0], shard(&ir, mesh, 1, "x"));
  mp_block_t *main_block = ir.block;
  mp_block_t *body = ir_block(&ir, "4xf32 8xf32");
  mp_value_t *half =
      ir_op(&ir, MP_OP_SLICE, "4xf32", VALUES(&body->args[1]),
            ATTRS(IR_INTS(&ir, MP_ATTR_START_INDICES, 0), IR_INTS(&ir, MP_ATTR_LIMIT_INDICES, 4),
                  IR_INTS(&ir, MP_ATTR_STRIDES, 1)));
  mp_value_t *sum = ir_op(&ir, MP_OP_ADD, "4xf32", VALUES(&body->args[0], half), NO_ATTRS);
  ir_return(&ir, VALUES(sum, half));
  ir.block = main_block;
  mp_op_t *op = manual(&ir, "8xf32 4xf32", VALUES(ir.args[0], ir.args[1]),
                       SHARDINGS(shard(&ir, mesh, 1, "x"), shard(&ir, mesh, 1, "")),
                       SHARDINGS(shard(&ir, mesh, 1, "x"), shard(&ir, mesh, 1, "")), "x", body);
  ir_return(&ir, VALUES(unary(&ir, MP_OP_NEGATE, "8xf32", &op->results[0]), &op->results[1]));
  mp_partition_t parts;
  assert_ok(partition(&ir, 2, false, &parts));
  ir_check(&ir,
           "%2 = slice(%1) {limit_indices=[4] start_indices=[0] strides=[1]} : tensor<4xf32>\n"
           "%3 = add(%0, %2) : tensor<4xf32>\n"
           "%4 = negate(%3) : tensor<4xf32>\n"
           "return(%4, %2)\n");
  ir_end(&ir);
}

// An open parameter gets the sharding that the manual region that uses it requires.
static void test_open_parameters(void **state) {
  (void)state;
  for (int shared = 0; shared < 2; ++shared) {
    ir_t ir = ir_start("8xf32", "8xf32 8xf32");
    const mp_mesh_t *mesh = sdy_mesh(ir.module->arena, "x=2", NULL, 0);
    mp_block_t *main_block = ir.block;
    mp_block_t *body = ir_block(&ir, "4xf32");
    ir_return(&ir, VALUES(unary(&ir, MP_OP_NEGATE, "4xf32", body->args)));
    ir.block = main_block;
    const mp_attr_t *along_x = shard(&ir, mesh, 1, "x");
    mp_op_t *op =
        manual(&ir, "8xf32", VALUES(ir.args[0]), SHARDINGS(along_x), SHARDINGS(along_x), "x", body);
    ir_return(&ir, VALUES(op->results, shared == 1 ? ir.args[0] : op->results));
    mp_partition_t parts;
    assert_ok(partition(&ir, 2, true, &parts));
    assert_non_null(parts.params[0].boxes);
    ir_check(&ir, shared == 0 ? "%1 = negate(%0) : tensor<4xf32>\nreturn(%1, %1)\n"
                              : "%1 = negate(%0) : tensor<4xf32>\nreturn(%1, %0)\n");
    ir_end(&ir);
  }
}

// Manual over y inside manual over x: what is sent between the two stays within partitions of one
// x.
static void test_nested_manual(void **state) {
  (void)state;
  ir_t ir = ir_start("8xf32", "8xf32");
  const mp_mesh_t *mesh = sdy_mesh(ir.module->arena, "x=2 y=2", NULL, 0);
  annotate(&ir, &ir.main->arg_attrs[0], shard(&ir, mesh, 1, "x"));
  mp_block_t *main_block = ir.block;
  mp_block_t *outer = ir_block(&ir, "4xf32");
  mp_block_t *inner = ir_block(&ir, "2xf32");
  ir_return(&ir, VALUES(unary(&ir, MP_OP_NEGATE, "2xf32", inner->args)));
  ir.block = outer;
  mp_op_t *nested = manual(&ir, "4xf32", VALUES(outer->args), SHARDINGS(shard(&ir, mesh, 1, "y")),
                           SHARDINGS(shard(&ir, mesh, 1, "y")), "y", inner);
  ir_return(&ir, VALUES(ir_op(&ir, MP_OP_REVERSE, "4xf32", VALUES(nested->results),
                              ATTRS(IR_INTS(&ir, MP_ATTR_DIMENSIONS, 0)))));
  ir.block = main_block;
  mp_op_t *op = manual(&ir, "8xf32", VALUES(ir.args[0]), SHARDINGS(shard(&ir, mesh, 1, "x")),
                       SHARDINGS(shard(&ir, mesh, 1, "x")), "x", outer);
  ir_return(&ir, VALUES(op->results));
  mp_partition_t parts;
  assert_ok(partition(&ir, 4, true, &parts));
  ir_check(&ir,
           "%1 = partition_id() : tensor<ui32>\n"
           "%2 = constant() {value=splat 2} : tensor<ui32>\n"
           "%3 = remainder(%1, %2) : tensor<ui32>\n"
           "%4 = constant() {value=splat 2} : tensor<ui32>\n"
           "%5 = multiply(%3, %4) : tensor<ui32>\n"
           "%6 = dynamic_slice(%0, %5) {slice_sizes=[2]} : tensor<2xf32>\n"
           "%7 = negate(%6) : tensor<2xf32>\n"
           "%8 = minipod.exchange(%7) {source=0:[0+2] 1:[2+2] 2/1:[0+2] 3/1:[2+2] "
           "target=0:[2+2] 1:[0+2] 2/1:[2+2] 3/1:[0+2]} : tensor<2xf32>\n"
           "%9 = reverse(%8) {dimensions=[0]} : tensor<2xf32>\n"
           "%10 = all_gather(%9) {all_gather_dim=0 channel_id=1 replica_groups=[[0,1],[2,3]] "
           "use_global_device_ids=true} : tensor<4xf32>\n"
           "return(%10)\n");
  ir_end(&ir);
}

static void test_manual_refusals(void **state) {
  (void)state;
  // A body whose type is not the part, and one that uses a value from outside.
  for (int kind = 0; kind < 3; ++kind) {
    ir_t ir = ir_start("8xf32", "8xf32");
    const mp_mesh_t *mesh = sdy_mesh(ir.module->arena, "x=2", NULL, 0);
    mp_block_t *main_block = ir.block;
    mp_block_t *body = ir_block(&ir, kind == 0 ? "3xf32" : "4xf32");
    ir_return(&ir, VALUES(kind == 1 ? ir.args[0] : body->args));
    ir.block = main_block;
    mp_op_t *op =
        manual(&ir, "8xf32", VALUES(ir.args[0]),
               kind == 2 ? (const mp_attr_t *[]){NULL} : SHARDINGS(shard(&ir, mesh, 1, "x")),
               SHARDINGS(shard(&ir, mesh, 1, "x")), "x", body);
    ir_return(&ir, VALUES(op->results));
    mp_partition_t parts;
    static const char *const texts[] = {
        "tensor<3xf32> is not the local part tensor<4xf32> [sdy.manual_computation]",
        "the body uses a value from outside of it [sdy.manual_computation]",
        "1 operands and 1 results, but 0 in_shardings and 1 out_shardings"};
    assert_status(partition(&ir, 2, true, &parts), MP_INVALID_ARGUMENT, texts[kind]);
    ir_end(&ir);
  }
}

// ---- GSPMD's manual code ----

static mp_value_t *call(ir_t *ir, const char *target, const char *type, const char *sharding,
                        mp_value_t *operand) {
  return ir_op(ir, MP_OP_CUSTOM_CALL, type, VALUES(operand),
               ATTRS(ir_string(ir, MP_ATTR_CALL_TARGET_NAME, target),
                     ir_string(ir, MP_ATTR_MHLO_SHARDING, sharding)));
}

static void test_gspmd_manual(void **state) {
  (void)state;
  ir_t ir = ir_start("8xf32", "8xf32");
  mp_value_t *value = call(&ir, "Sharding", "8xf32", "{devices=[2]<=[2]}", ir.args[0]);
  value = call(&ir, "SPMDFullToShardShape", "4xf32", "{manual}", value);
  value = unary(&ir, MP_OP_NEGATE, "4xf32", value);
  value = call(&ir, "Sharding", "4xf32", "{manual}", value);
  value = call(&ir, "SPMDShardToFullShape", "8xf32", "{devices=[2]<=[2]}", value);
  ir_return(&ir, VALUES(value));
  mp_partition_t parts;
  assert_ok(partition(&ir, 2, true, &parts));
  ir_check(&ir,
           "%1 = partition_id() : tensor<ui32>\n"
           "%2 = constant() {value=splat 4} : tensor<ui32>\n"
           "%3 = multiply(%1, %2) : tensor<ui32>\n"
           "%4 = dynamic_slice(%0, %3) {slice_sizes=[4]} : tensor<4xf32>\n"
           "%5 = negate(%4) : tensor<4xf32>\n"
           "return(%5)\n");
  assert_non_null(parts.results[0].boxes);
  ir_end(&ir);
}

static void test_refusals(void **state) {
  (void)state;
  mp_partition_t parts;
  ir_t ir = ir_start("8xf32", "8xf32");
  annotate(&ir, &ir.main->arg_attrs[0],
           ir_string(&ir, MP_ATTR_MHLO_SHARDING, "{devices=[2]<=[2]").value);
  ir_return(&ir, VALUES(ir.args[0]));
  assert_status(partition(&ir, 2, true, &parts), MP_INVALID_ARGUMENT,
                "argument 0 of main: sharding \"{devices=[2]<=[2]\", position 17: expected '}'");
  ir_end(&ir);

  ir = ir_start("8xf32", "8xf32");
  ir_return(&ir, VALUES(call(&ir, "SPMDFullToShardShape", "4xf32", "{manual}", ir.args[0])));
  assert_status(partition(&ir, 2, true, &parts), MP_INVALID_ARGUMENT,
                "tensor<4xf32> is not the local part tensor<8xf32>");
  ir_end(&ir);

  ir = ir_start("8xf32", "8xf32");
  const mp_mesh_t *mesh = sdy_mesh(ir.module->arena, "x=2", NULL, 0);
  ir_return(&ir, VALUES(ir_op(&ir, MP_OP_SDY_ALL_REDUCE, "8xf32", VALUES(ir.args[0]),
                              ATTRS(ir_attr(MP_ATTR_OUT_SHARDING, shard(&ir, mesh, 1, ""))))));
  assert_status(partition(&ir, 2, true, &parts), MP_UNIMPLEMENTED, "only partitioners make");
  ir_end(&ir);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rings),
      cmocka_unit_test(test_rings_of_two_axes),
      cmocka_unit_test(test_settled_products),
      cmocka_unit_test(test_repeated_products),
      cmocka_unit_test(test_elementwise_and_others),
      cmocka_unit_test(test_one_partition),
      cmocka_unit_test(test_constraints_and_results),
      cmocka_unit_test(test_unreduced),
      cmocka_unit_test(test_unreduced_maximum),
      cmocka_unit_test(test_dot_of_parts),
      cmocka_unit_test(test_reduce_of_parts),
      cmocka_unit_test(test_local_attributes),
      cmocka_unit_test(test_reshape_of_parts),
      cmocka_unit_test(test_uneven_reduce),
      cmocka_unit_test(test_uneven),
      cmocka_unit_test(test_while_captures),
      cmocka_unit_test(test_manual),
      cmocka_unit_test(test_open_parameters),
      cmocka_unit_test(test_nested_manual),
      cmocka_unit_test(test_manual_refusals),
      cmocka_unit_test(test_gspmd_manual),
      cmocka_unit_test(test_refusals),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
