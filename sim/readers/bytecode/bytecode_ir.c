// Blocks, regions, operations and values of the IR section (MLIR BytecodeFormat.md, "IR Section").
#include "sim/readers/bytecode/bytecode_ir.h"
#include "sim/base/assert.h"

// The bits of an operation's mask say which fields follow its location, in this order.
enum {
  HAS_ATTRS = 0x01,
  HAS_PROPERTIES = 0x40,
  HAS_RESULTS = 0x02,
  HAS_OPERANDS = 0x04,
  HAS_SUCCESSORS = 0x08,
  HAS_USE_LISTS = 0x20,
  HAS_REGIONS = 0x10,
  HAS_ALL = 0x7F,
};

static mp_bc_dialect_t bytecode_ir_op_dialect(const mp_bc_ir_t *ir, const mp_bc_op_t *op) {
  return ir->r->dialects[op->name->dialect].dialect;
}

bool mp_bc_op_is(const mp_bc_ir_t *ir, const mp_bc_op_t *op, mp_bc_dialect_t dialect,
                 const char *name) {
  return bytecode_ir_op_dialect(ir, op) == dialect && mp_str_is(op->name->name, name);
}

mp_status_t mp_bc_op_unknown(const mp_bc_ir_t *ir, const mp_bc_op_t *op, const char *reason) {
  mp_strbuf_t where;
  mp_strbuf_init(&where);
  mp_loc_describe(op->loc, &where);
  mp_str_t dialect = ir->r->dialects[op->name->dialect].name;
  mp_status_t status = mp_bc_unknown(&op->origin, "%.*s.%.*s %s [%s]", MP_STR_ARG(dialect),
                                     MP_STR_ARG(op->name->name), reason, mp_strbuf_text(&where));
  mp_strbuf_deinit(&where);
  return status;
}

// ---- values ----

static mp_status_t bytecode_ir_reserve_values(mp_bc_values_t *values, size_t count) {
  if (count > UINT32_MAX) return mp_status_out_of_memory();
  MP_RETURN_IF_ERROR(MP_ARRAY_RESERVE(NULL, &values->slots, (uint32_t)count));
  values->next = values->slots.count;
  for (size_t i = 0; i < count; ++i) values->slots.items[values->slots.count++] = NULL;
  return NULL;
}

mp_status_t mp_bc_take_numbers(mp_bc_ir_t *ir, const mp_bc_cursor_t *c, size_t count,
                               size_t *out_first) {
  mp_bc_values_t *values = &ir->values;
  MP_ASSERT(values->next <= values->slots.count);
  if (count > values->slots.count - values->next) {
    return mp_bc_fail(c, "a region defines more values than it announces");
  }
  *out_first = values->next;
  values->next += count;
  return NULL;
}

// In programs values are defined before they are used, so a forward reference is refused.
static mp_status_t bytecode_ir_read_operands(mp_bc_ir_t *ir, mp_bc_cursor_t *c, mp_bc_op_t *op) {
  size_t count = 0;
  MP_ASSERT(ir->values.base <= ir->values.slots.count);
  MP_RETURN_IF_ERROR(mp_bc_count(c, "operands", &count));
  op->operands = MP_ARENA_ARRAY(ir->r->scratch, void *, count);
  MP_RETURN_IF_NULL(op->operands);
  op->num_operands = (uint32_t)count;
  for (size_t i = 0; i < count; ++i) {
    mp_bc_cursor_t before = *c;
    uint64_t number = 0;
    MP_RETURN_IF_ERROR(mp_bc_varint(c, &number));
    size_t visible = ir->values.slots.count - ir->values.base;
    if (number >= visible || ir->values.slots.items[ir->values.base + number] == NULL) {
      return mp_bc_fail(&before, "operand %zu of %.*s is value %llu, which is not defined here", i,
                        MP_STR_ARG(op->name->name), (unsigned long long)number);
    }
    op->operands[i] = ir->values.slots.items[ir->values.base + number];
  }
  return NULL;
}

// Orders of use lists serve MLIR's optimiser. Their form is checked, and they are dropped.
static mp_status_t bytecode_ir_skip_use_lists(mp_bc_cursor_t *c, size_t num_values) {
  size_t count = 1;
  if (num_values > 1) MP_RETURN_IF_ERROR(mp_bc_count(c, "use lists", &count));
  for (size_t i = 0; i < count; ++i) {
    uint64_t value, uses;
    bool pairs = false;
    if (num_values > 1) MP_RETURN_IF_ERROR(mp_bc_varint(c, &value));
    MP_RETURN_IF_ERROR(mp_bc_flagged(c, &uses, &pairs));
    MP_RETURN_IF_ERROR(mp_bc_check_count(c, uses, "uses"));
    for (uint64_t j = 0; j < uses; ++j) MP_RETURN_IF_ERROR(mp_bc_varint(c, &value));
  }
  return NULL;
}

// ---- operations ----

static mp_status_t bytecode_ir_read_op_attrs(mp_bc_ir_t *ir, mp_bc_cursor_t *c, mp_bc_op_t *op) {
  mp_bc_reader_t *r = ir->r;
  op->attrs.properties = *c;
  op->attrs.properties.end = c->at;
  if (op->mask & HAS_ATTRS) {
    MP_RETURN_IF_ERROR(ir->form->read_dict(r, c, op));
  }
  if (!(op->mask & HAS_PROPERTIES)) return NULL;
  mp_bc_cursor_t before = *c;
  uint64_t index = 0;
  MP_RETURN_IF_ERROR(mp_bc_varint(c, &index));
  if (!op->name->registered)
    return mp_bc_op_unknown(ir, op, "was not known to the program's writer");
  if (index >= r->num_properties) {
    return mp_bc_fail(&before, "properties %llu of %zu are referred to", (unsigned long long)index,
                      r->num_properties);
  }
  op->attrs.properties = r->properties[index];
  return NULL;
}

static mp_status_t bytecode_ir_read_type(mp_bc_ir_t *ir, mp_bc_cursor_t *c, const void **out_type) {
  const mp_bc_cursor_t before = *c;
  uint64_t index = 0;
  MP_RETURN_IF_ERROR(mp_bc_varint(c, &index));
  return ir->form->value_type_at(ir->r, &before, index, out_type);
}

// Reads the results' types only. The results get their numbers before the regions are read, and
// exist after that.
static mp_status_t bytecode_ir_read_results(mp_bc_ir_t *ir, mp_bc_cursor_t *c, mp_bc_op_t *op) {
  size_t count = 0;
  MP_RETURN_IF_ERROR(mp_bc_count(c, "results", &count));
  op->result_types = MP_ARENA_ARRAY(ir->r->scratch, const void *, count);
  MP_RETURN_IF_NULL(op->result_types);
  op->num_results = (uint32_t)count;
  for (size_t i = 0; i < count; ++i) {
    MP_RETURN_IF_ERROR(bytecode_ir_read_type(ir, c, &op->result_types[i]));
  }
  return NULL;
}

// Bits of the mask that the format's version does not know are refused.
mp_status_t mp_bc_read_op_head(mp_bc_ir_t *ir, mp_bc_cursor_t *c, mp_bc_op_t *op) {
  mp_bc_reader_t *r = ir->r;
  *op = (mp_bc_op_t){.origin = *c};
  uint64_t name = 0;
  MP_RETURN_IF_ERROR(mp_bc_varint(c, &name));
  if (name >= r->num_op_names) {
    return mp_bc_fail(&op->origin, "operation name %llu of %zu is referred to",
                      (unsigned long long)name, r->num_op_names);
  }
  op->name = &r->op_names[name];
  mp_bc_cursor_t before = *c;
  MP_RETURN_IF_ERROR(mp_bc_byte(c, &op->mask));
  uint8_t known = HAS_ALL;
  if (r->version < 5) known &= (uint8_t)~HAS_PROPERTIES;
  if (r->version < 3) known &= (uint8_t)~HAS_USE_LISTS;
  if (op->mask & ~known) return mp_bc_fail(&before, "an operation has fields %#x", op->mask);
  MP_RETURN_IF_ERROR(mp_bc_loc(r, c, &op->loc));
  MP_RETURN_IF_ERROR(bytecode_ir_read_op_attrs(ir, c, op));
  if (op->mask & HAS_RESULTS) MP_RETURN_IF_ERROR(bytecode_ir_read_results(ir, c, op));
  if (op->mask & HAS_OPERANDS) MP_RETURN_IF_ERROR(bytecode_ir_read_operands(ir, c, op));
  if (op->mask & HAS_SUCCESSORS) return mp_bc_op_unknown(ir, op, "branches between blocks");
  if (op->mask & HAS_USE_LISTS) MP_RETURN_IF_ERROR(bytecode_ir_skip_use_lists(c, op->num_results));
  if (op->mask & HAS_REGIONS) {
    MP_RETURN_IF_ERROR(mp_bc_flagged(c, &op->num_regions, &op->isolated));
    MP_RETURN_IF_ERROR(mp_bc_check_count(c, op->num_regions, "regions"));
  }
  return NULL;
}

// ---- blocks and regions ----

static mp_status_t bytecode_ir_read_block_arg(mp_bc_ir_t *ir, mp_bc_cursor_t *c,
                                              const void **out_type) {
  mp_bc_reader_t *r = ir->r;
  const mp_loc_t *loc = NULL;
  if (r->version < 4) {
    MP_RETURN_IF_ERROR(bytecode_ir_read_type(ir, c, out_type));
    return mp_bc_loc(r, c, &loc);
  }
  mp_bc_cursor_t before = *c;
  uint64_t index = 0;
  bool has_loc = false;
  MP_RETURN_IF_ERROR(mp_bc_flagged(c, &index, &has_loc));
  MP_RETURN_IF_ERROR(ir->form->value_type_at(r, &before, index, out_type));
  return has_loc ? mp_bc_loc(r, c, &loc) : NULL;
}

static mp_status_t bytecode_ir_read_block_args(mp_bc_ir_t *ir, mp_bc_cursor_t *c,
                                               void **out_block) {
  mp_bc_reader_t *r = ir->r;
  size_t count = 0, first = 0;
  MP_RETURN_IF_ERROR(mp_bc_count(c, "block arguments", &count));
  const void **types = MP_ARENA_ARRAY(r->scratch, const void *, count);
  MP_RETURN_IF_NULL(types);
  for (size_t i = 0; i < count; ++i)
    MP_RETURN_IF_ERROR(bytecode_ir_read_block_arg(ir, c, &types[i]));
  if (r->version >= 3) {
    uint8_t use_lists = 0;  // any number but 0 means yes; MLIR writes HAS_USE_LISTS
    MP_RETURN_IF_ERROR(mp_bc_byte(c, &use_lists));
    if (use_lists != 0) MP_RETURN_IF_ERROR(bytecode_ir_skip_use_lists(c, count));
  }
  MP_RETURN_IF_ERROR(mp_bc_take_numbers(ir, c, count, &first));
  // The numbers are given out once, so their slots are empty.
  void **slots = count == 0 ? NULL : ir->values.slots.items + first;
  return ir->form->make_block(r, types, (uint32_t)count, slots, out_block);
}

// Reads a block: its arguments, then its operations.
static mp_status_t bytecode_ir_read_block(mp_bc_ir_t *ir, mp_bc_cursor_t *c,
                                          mp_bc_op_reader_t read_op, void **out_block) {
  uint64_t num_ops = 0;
  bool has_args = false;
  void *block = NULL;
  MP_RETURN_IF_ERROR(mp_bc_flagged(c, &num_ops, &has_args));
  if (has_args) {
    MP_RETURN_IF_ERROR(bytecode_ir_read_block_args(ir, c, &block));
  } else {
    MP_RETURN_IF_ERROR(ir->form->make_block(ir->r, NULL, 0, NULL, &block));
  }
  MP_RETURN_IF_ERROR(mp_bc_check_count(c, num_ops, "operations"));
  for (uint64_t i = 0; i < num_ops; ++i) {
    mp_bc_op_t op;
    MP_RETURN_IF_ERROR(mp_bc_read_op_head(ir, c, &op));
    MP_RETURN_IF_ERROR(read_op(ir, c, &op, block));
  }
  *out_block = block;
  return NULL;
}

// Reads a region, which must have one block, as all regions of StableHLO and Mosaic have.
static mp_status_t bytecode_ir_read_region(mp_bc_ir_t *ir, mp_bc_cursor_t *c,
                                           mp_bc_op_reader_t read_op, void **out_block) {
  mp_bc_cursor_t before = *c;
  uint64_t num_blocks = 0, num_values = 0;
  MP_RETURN_IF_ERROR(mp_bc_varint(c, &num_blocks));
  if (num_blocks == 0 && ir->form->empty_regions)
    return ir->form->make_block(ir->r, NULL, 0, NULL, out_block);
  if (num_blocks != 1) {
    return mp_bc_unknown(&before, "a region has %llu blocks; only one is supported",
                         (unsigned long long)num_blocks);
  }
  if (ir->depth >= MP_BC_MAX_REGION_DEPTH) {
    return mp_bc_unknown(&before, "regions are nested more than %d deep", MP_BC_MAX_REGION_DEPTH);
  }
  MP_RETURN_IF_ERROR(mp_bc_varint(c, &num_values));
  MP_RETURN_IF_ERROR(mp_bc_check_count(c, num_values, "values"));
  mp_bc_values_t *values = &ir->values;
  const size_t next = values->next;
  const uint32_t end = values->slots.count;
  MP_RETURN_IF_ERROR(bytecode_ir_reserve_values(values, (size_t)num_values));
  ++ir->depth;
  MP_RETURN_IF_ERROR(bytecode_ir_read_block(ir, c, read_op, out_block));
  MP_ASSERT(ir->depth > 0 && next <= end && end <= values->slots.count);
  --ir->depth;
  if (values->next != values->slots.count) {
    return mp_bc_fail(c, "a region defines fewer values than it announces");
  }
  values->next = next;
  values->slots.count = end;
  return NULL;
}

// Reads the regions of an operation. Those of an isolated operation number their values from 0
// and, from version 2 on, lie in a section of their own.
mp_status_t mp_bc_read_regions(mp_bc_ir_t *ir, mp_bc_cursor_t *c, const mp_bc_op_t *op,
                               mp_bc_op_reader_t read_op, void **blocks) {
  if (op->num_regions == 0) return NULL;
  size_t base = ir->values.base;
  mp_bc_cursor_t section, *from = c;
  if (op->isolated) {
    ir->values.base = ir->values.slots.count;
    if (ir->r->version >= 2) {
      mp_bc_cursor_t before = *c;
      uint8_t id = 0;
      MP_RETURN_IF_ERROR(mp_bc_section(c, &id, &section));
      if (id != MP_BC_SECTION_IR) return mp_bc_fail(&before, "regions are in section %u", id);
      from = &section;
    }
  }
  for (uint64_t i = 0; i < op->num_regions; ++i) {
    MP_RETURN_IF_ERROR(bytecode_ir_read_region(ir, from, read_op, &blocks[i]));
  }
  if (from == &section) MP_RETURN_IF_ERROR(mp_bc_finish(&section, "a section of regions"));
  ir->values.base = base;
  return NULL;
}

mp_status_t mp_bc_read_only_region(mp_bc_ir_t *ir, mp_bc_cursor_t *c, const mp_bc_op_t *op,
                                   mp_bc_op_reader_t read_op, void **out_block) {
  if (op->num_regions != 1) return mp_bc_op_unknown(ir, op, "does not have one region");
  return mp_bc_read_regions(ir, c, op, read_op, out_block);
}
