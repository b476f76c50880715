// The operations of functions, in the IR of StableHLO.
#include "sim/base/assert.h"
#include "sim/readers/bytecode/bytecode_ir.h"

// ---- the form ----

static mp_status_t bytecode_body_value_type_at(mp_bc_reader_t *r, const mp_bc_cursor_t *c,
                                               uint64_t index, const void **out_type) {
  const mp_type_t *type = NULL;
  MP_RETURN_IF_ERROR(mp_bc_value_type_at(r, c, index, &type));
  *out_type = type;
  return NULL;
}

static mp_status_t bytecode_body_read_dict(mp_bc_reader_t *r, mp_bc_cursor_t *c, mp_bc_op_t *op) {
  return mp_bc_attr_of(r, c, MP_KIND_DICT, "an attribute dictionary", &op->attrs.dict);
}

static mp_status_t bytecode_body_make_block(mp_bc_reader_t *r, const void *const *types,
                                            uint32_t num_types, void **out_args, void **out_block) {
  mp_block_t *block = NULL;
  MP_RETURN_IF_ERROR(
      mp_block_create(r->module, num_types, (const mp_type_t *const *)types, &block));
  for (uint32_t i = 0; i < num_types; ++i) out_args[i] = &block->args[i];
  *out_block = block;
  return NULL;
}

const mp_bc_form_t mp_bc_stablehlo_form = {.value_type_at = bytecode_body_value_type_at,
                                           .read_dict = bytecode_body_read_dict,
                                           .make_block = bytecode_body_make_block};

// ---- operations ----

// A cast between equal types of two dialects: its results are its operands.
static mp_status_t bytecode_body_read_cast(mp_bc_ir_t *ir, const mp_bc_op_t *op) {
  if (op->num_operands != op->num_results || op->num_regions != 0) {
    return mp_bc_op_unknown(ir, op, "is not a cast of one value to another type's spelling");
  }
  size_t first = 0;
  MP_RETURN_IF_ERROR(mp_bc_take_numbers(ir, &op->origin, op->num_results, &first));
  for (uint32_t i = 0; i < op->num_results; ++i) {
    if (!mp_type_equal(((const mp_value_t *)op->operands[i])->type, op->result_types[i])) {
      return mp_bc_op_unknown(ir, op, "changes the type of a value");
    }
    MP_ASSERT(ir->values.slots.items[first + i] == NULL);
    ir->values.slots.items[first + i] = op->operands[i];
  }
  return NULL;
}

// The results get their numbers before the regions are read, which is MLIR's order; the values
// themselves exist only afterwards.
mp_status_t mp_bc_read_body_op(mp_bc_ir_t *ir, mp_bc_cursor_t *c, mp_bc_op_t *op, void *block) {
  mp_bc_reader_t *r = ir->r;
  if (mp_bc_op_is(ir, op, MP_BC_BUILTIN, "unrealized_conversion_cast"))
    return bytecode_body_read_cast(ir, op);
  if (op->name->row == NULL) return mp_bc_op_unknown(ir, op, "is not an operation that is known");
  size_t first = 0;
  MP_RETURN_IF_ERROR(mp_bc_take_numbers(ir, &op->origin, op->num_results, &first));
  void **regions = MP_ARENA_ARRAY(r->scratch, void *, op->num_regions);
  MP_RETURN_IF_NULL(regions);
  mp_op_spec_t spec = {.code = (mp_opcode_t)op->name->row->fields[0],
                       .loc = op->loc,
                       .num_operands = op->num_operands,
                       .operands = (mp_value_t **)op->operands,
                       .num_results = op->num_results,
                       .result_types = (const mp_type_t **)op->result_types,
                       .num_regions = (uint32_t)op->num_regions,
                       .regions = (mp_block_t **)regions};
  MP_RETURN_IF_ERROR(mp_bc_read_regions(ir, c, op, mp_bc_read_body_op, regions));
  mp_named_attr_t *attrs;
  MP_RETURN_IF_ERROR(mp_bc_op_attrs(r, op->name->row, &op->attrs, &attrs, &spec.num_attrs));
  spec.attrs = attrs;
  mp_op_t *made = NULL;
  MP_RETURN_IF_ERROR(mp_op_create(r->module, &spec, &made));
  mp_block_append(block, made);
  for (uint32_t i = 0; i < op->num_results; ++i) {
    MP_ASSERT(ir->values.slots.items[first + i] == NULL);
    ir->values.slots.items[first + i] = &made->results[i];
  }
  return NULL;
}
