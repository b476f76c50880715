// Computations become blocks.
#include "sim/readers/hlo/hlo_build.h"

#include "sim/readers/hlo/hlo_sharding.h"

// Calls nest no deeper in the IR either (sim/ir/verify). A computation is built again for each
// region that it becomes, so the number of instructions has a limit, too.
enum { MAX_DEPTH = 256, MAX_INSTS = 1 << 20 };

mp_status_t mp_hlo_called(const mp_hlo_inst_t *inst, uint32_t number, mp_hlo_comp_t **out_comp) {
  if (number >= inst->called_ids.count) {
    return mp_hlo_error(inst, MP_INVALID_ARGUMENT,
                        "called_computation_ids: there are %u, number %u is needed",
                        inst->called_ids.count, number);
  }
  *out_comp = inst->called[number];
  return NULL;
}

// Checks that the built values have the types of the instruction's shape.
static mp_status_t hlo_build_check(const mp_hlo_inst_t *inst, mp_hlo_leaves_t leaves) {
  if (leaves.count != inst->shape->num_leaves) {
    return mp_hlo_error(inst, MP_INVALID_ARGUMENT, "shape: %u values, but there are %u",
                        inst->shape->num_leaves, leaves.count);
  }
  for (uint32_t i = 0; i < leaves.count; ++i) {
    if (mp_type_equal(leaves.items[i]->type, inst->shape->types[i])) continue;
    mp_strbuf_t stated, real;
    mp_strbuf_init(&stated);
    mp_strbuf_init(&real);
    mp_type_print(inst->shape->types[i], &stated);
    mp_type_print(leaves.items[i]->type, &real);
    mp_status_t status =
        mp_hlo_error(inst, MP_INVALID_ARGUMENT, "shape: value %u is %s, but stated as %s", i,
                     mp_strbuf_text(&real), mp_strbuf_text(&stated));
    mp_strbuf_deinit(&stated);
    mp_strbuf_deinit(&real);
    return status;
  }
  return NULL;
}

static mp_status_t hlo_build_inst(mp_hlo_build_t *b, mp_hlo_inst_t *inst) {
  const mp_hlo_row_t *row = b->h->find_row(inst->opcode);
  inst->row = row;
  if (++b->h->num_insts > MAX_INSTS) {
    return mp_hlo_error(inst, MP_RESOURCE_EXHAUSTED,
                        "the program has over %d instructions with all regions written out",
                        MAX_INSTS);
  }
  if (row == NULL) return mp_hlo_error(inst, MP_UNIMPLEMENTED, "the opcode is not known");
  if (row->trouble != NULL) return mp_hlo_error(inst, MP_UNIMPLEMENTED, "%s", row->trouble);
  if (row->num_operands >= 0 && inst->operand_ids.count != (uint32_t)row->num_operands) {
    return mp_hlo_error(inst, MP_INVALID_ARGUMENT, "operand_ids: %u operands instead of %d",
                        inst->operand_ids.count, row->num_operands);
  }
  mp_hlo_leaves_t *out = &b->values[inst->index];
  mp_op_t *last = b->block->last;
  MP_RETURN_IF_ERROR(row->build(b, inst, out));
  MP_RETURN_IF_ERROR(hlo_build_check(inst, *out));
  return b->block->last == last ? NULL : mp_hlo_annotate(b, inst, *out);
}

mp_status_t mp_hlo_build_comp(mp_hlo_t *h, mp_hlo_comp_t *comp, mp_block_t *block,
                              mp_hlo_leaves_t args, mp_hlo_leaves_t *out_root) {
  mp_hlo_build_t b = {.h = h, .comp = comp, .block = block, .args = args};
  if (comp->is_active) {
    return mp_status_make(MP_INVALID_ARGUMENT, "computation '%.*s' calls itself",
                          MP_STR_ARG(comp->name));
  }
  if (h->depth >= MAX_DEPTH) {
    return mp_status_make(MP_RESOURCE_EXHAUSTED, "computations call each other more than %d deep",
                          MAX_DEPTH);
  }
  if (args.count != comp->num_leaves) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "computation '%.*s' takes %u values, and is called with %u",
                          MP_STR_ARG(comp->name), comp->num_leaves, args.count);
  }
  b.values = MP_ARENA_ARRAY(h->source.arena, mp_hlo_leaves_t, comp->count);
  MP_RETURN_IF_NULL(b.values);
  comp->is_active = true;
  ++h->depth;
  for (uint32_t i = 0; i < comp->count; ++i) {
    MP_RETURN_IF_ERROR(hlo_build_inst(&b, comp->order[i]));
  }
  --h->depth;
  comp->is_active = false;
  *out_root = b.values[comp->root->index];
  return NULL;
}

mp_status_t mp_hlo_build_return(mp_hlo_t *h, mp_block_t *block, const mp_loc_t *loc,
                                mp_hlo_leaves_t values) {
  const mp_op_spec_t spec = {
      .code = MP_OP_RETURN, .loc = loc, .num_operands = values.count, .operands = values.items};
  mp_op_t *made = NULL;
  MP_RETURN_IF_ERROR(mp_op_create(h->module, &spec, &made));
  mp_block_append(block, made);
  return NULL;
}

// The block's arguments as leaves.
static mp_status_t hlo_build_args(mp_hlo_t *h, mp_block_t *block, mp_hlo_leaves_t *out) {
  MP_RETURN_IF_ERROR(mp_hlo_new_leaves(h, block->num_args, out));
  for (uint32_t i = 0; i < block->num_args; ++i) out->items[i] = &block->args[i];
  return NULL;
}

// Builds the computation into a block that has its parameters as arguments.
static mp_status_t hlo_build_body(mp_hlo_t *h, mp_hlo_comp_t *comp, mp_block_t *block) {
  mp_hlo_leaves_t args = {0}, root = {0};
  MP_RETURN_IF_ERROR(hlo_build_args(h, block, &args));
  MP_RETURN_IF_ERROR(mp_hlo_build_comp(h, comp, block, args, &root));
  return mp_hlo_build_return(h, block, comp->root->loc, root);
}

mp_status_t mp_hlo_build_region(mp_hlo_build_t *b, const mp_hlo_inst_t *inst, uint32_t number,
                                mp_block_t **out_region) {
  mp_hlo_comp_t *comp = NULL;
  MP_RETURN_IF_ERROR(mp_hlo_called(inst, number, &comp));
  MP_RETURN_IF_ERROR(mp_block_create(b->h->module, comp->num_leaves, comp->types, out_region));
  return hlo_build_body(b->h, comp, *out_region);
}

// The name ends in the computation's number, so it is unique and not "main".
static mp_status_t hlo_build_func(mp_hlo_t *h, mp_hlo_comp_t *comp, mp_func_t **out_func) {
  mp_strbuf_t name;
  mp_strbuf_init(&name);
  mp_strbuf_append(&name, comp->name.data, comp->name.size);
  mp_strbuf_printf(&name, ".%u", comp->index);
  const mp_hlo_shape_t *result = comp->root->shape;
  mp_status_t status = mp_strbuf_status(&name);
  if (status == NULL) {
    status =
        mp_func_create(h->module, (mp_str_t){mp_strbuf_text(&name), name.size}, comp->num_leaves,
                       comp->types, result->num_leaves, result->types, out_func);
  }
  mp_strbuf_deinit(&name);
  MP_RETURN_IF_ERROR(status);
  (*out_func)->visibility = MP_STR("private");
  (*out_func)->loc = comp->root->loc;
  return hlo_build_body(h, comp, (*out_func)->body);
}

mp_status_t mp_hlo_func_of(mp_hlo_t *h, mp_hlo_comp_t *comp, mp_func_t **out_func) {
  if (comp->is_active) {
    return mp_status_make(MP_INVALID_ARGUMENT, "computation '%.*s' calls itself",
                          MP_STR_ARG(comp->name));
  }
  if (comp->func == NULL) {
    mp_func_t *func = NULL;
    MP_RETURN_IF_ERROR(hlo_build_func(h, comp, &func));
    comp->func = func;
  }
  *out_func = comp->func;
  return NULL;
}

mp_status_t mp_hlo_emit_call(mp_hlo_build_t *b, const mp_hlo_inst_t *inst, mp_hlo_comp_t *comp,
                             mp_hlo_leaves_t args, mp_hlo_leaves_t *out) {
  mp_hlo_attrs_t attrs = mp_hlo_attrs(b);
  mp_func_t *func = NULL;
  MP_RETURN_IF_ERROR(mp_hlo_func_of(b->h, comp, &func));
  mp_hlo_put_string(&attrs, MP_ATTR_CALLEE, func->name);
  const mp_hlo_op_t op = {.code = MP_OP_CALL,
                          .operands = args,
                          .num_results = comp->root->shape->num_leaves,
                          .types = comp->root->shape->types,
                          .attrs = &attrs};
  return mp_hlo_emit(b, inst, &op, out);
}
