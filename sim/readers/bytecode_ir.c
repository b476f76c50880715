// The IR section: blocks, regions, operations and values.
#include "sim/base/alloc.h"
#include "sim/readers/bytecode_reader.h"

// What follows an operation's location, in this order.
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

// Values are numbered through an isolated region and those within it; each region's own values
// take a run of numbers while it is read.
typedef struct {
  mp_value_t **slots;
  size_t capacity;
  size_t base;  // first slot of the innermost isolated region
  size_t next;  // slot of the next value that the current region defines
  size_t end;   // behind the current region's slots
} mp_bc_values_t;

typedef struct {
  mp_bc_reader_t *r;
  mp_bc_values_t values;
  int depth;  // of regions
} mp_bc_ir_t;

// An operation's fields up to its regions.
typedef struct {
  mp_bc_cursor_t origin;
  const mp_bc_op_name_t *name;
  uint8_t mask;
  const mp_loc_t *loc;
  mp_bc_op_attrs_t attrs;
  uint32_t num_results;
  const mp_type_t **result_types;
  uint32_t num_operands;
  mp_value_t **operands;
  uint64_t num_regions;
  bool isolated;
} mp_bc_op_t;

static mp_bc_dialect_t op_dialect(const mp_bc_ir_t *ir, const mp_bc_op_t *op) {
  return ir->r->dialects[op->name->dialect].dialect;
}

static bool op_is(const mp_bc_ir_t *ir, const mp_bc_op_t *op, mp_bc_dialect_t dialect,
                  const char *name) {
  return op_dialect(ir, op) == dialect && mp_str_is(op->name->name, name);
}

// An error about an operation: its name and where the user wrote it.
static mp_status_t op_unknown(const mp_bc_ir_t *ir, const mp_bc_op_t *op, const char *reason) {
  mp_strbuf_t where;
  mp_strbuf_init(&where);
  mp_loc_describe(op->loc, &where);
  mp_str_t dialect = ir->r->dialects[op->name->dialect].name;
  mp_status_t status = mp_bc_unknown(&op->origin, "%.*s.%.*s %s [%s]", MP_STR_ARG(dialect),
                                     MP_STR_ARG(op->name->name), reason, mp_strbuf_text(&where));
  mp_strbuf_deinit(&where);
  return status;
}

// --- values ---

static mp_status_t reserve_values(mp_bc_values_t *values, size_t count) {
  size_t needed = values->end + count;
  if (needed > values->capacity) {
    size_t capacity = needed + needed / 2 + 64;
    mp_value_t **slots = mp_realloc_array(values->slots, capacity, sizeof(*slots));
    MP_RETURN_IF_NULL(slots);
    values->slots = slots;
    values->capacity = capacity;
  }
  for (size_t i = values->end; i < needed; ++i) values->slots[i] = NULL;
  values->next = values->end;
  values->end = needed;
  return NULL;
}

// Takes `count` numbers for values that are about to be defined; they are entered later.
static mp_status_t take_numbers(mp_bc_ir_t *ir, const mp_bc_cursor_t *c, size_t count,
                                size_t *out_first) {
  mp_bc_values_t *values = &ir->values;
  if (count > values->end - values->next) {
    return mp_bc_fail(c, "a region defines more values than it announces");
  }
  *out_first = values->next;
  values->next += count;
  return NULL;
}

static mp_status_t read_operands(mp_bc_ir_t *ir, mp_bc_cursor_t *c, mp_bc_op_t *op) {
  size_t count = 0;
  MP_RETURN_IF_ERROR(mp_bc_count(c, "operands", &count));
  op->operands = MP_ARENA_ARRAY(ir->r->scratch, mp_value_t *, count);
  MP_RETURN_IF_NULL(op->operands);
  op->num_operands = (uint32_t)count;
  for (size_t i = 0; i < count; ++i) {
    mp_bc_cursor_t before = *c;
    uint64_t number = 0;
    MP_RETURN_IF_ERROR(mp_bc_varint(c, &number));
    size_t visible = ir->values.end - ir->values.base;
    if (number >= visible || ir->values.slots[ir->values.base + number] == NULL) {
      return mp_bc_fail(&before, "operand %zu of %.*s is value %llu, which is not defined here", i,
                        MP_STR_ARG(op->name->name), (unsigned long long)number);
    }
    op->operands[i] = ir->values.slots[ir->values.base + number];
  }
  return NULL;
}

// Use-list orders serve MLIR's optimiser; they are checked for their form and dropped.
static mp_status_t skip_use_lists(mp_bc_cursor_t *c, size_t num_values) {
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

// --- operations ---

static mp_status_t read_op_attrs(mp_bc_ir_t *ir, mp_bc_cursor_t *c, mp_bc_op_t *op) {
  mp_bc_reader_t *r = ir->r;
  op->attrs.properties = *c;
  op->attrs.properties.end = c->at;
  if (op->mask & HAS_ATTRS) {
    MP_RETURN_IF_ERROR(
        mp_bc_attr_of(r, c, MP_KIND_DICT, "an attribute dictionary", &op->attrs.dict));
  }
  if (!(op->mask & HAS_PROPERTIES)) return NULL;
  mp_bc_cursor_t before = *c;
  uint64_t index = 0;
  MP_RETURN_IF_ERROR(mp_bc_varint(c, &index));
  if (!op->name->registered) return op_unknown(ir, op, "was not known to the program's writer");
  if (index >= r->num_properties) {
    return mp_bc_fail(&before, "properties %llu of %zu are referred to", (unsigned long long)index,
                      r->num_properties);
  }
  op->attrs.properties = r->properties[index];
  return NULL;
}

static mp_status_t read_results(mp_bc_ir_t *ir, mp_bc_cursor_t *c, mp_bc_op_t *op) {
  size_t count = 0;
  MP_RETURN_IF_ERROR(mp_bc_count(c, "results", &count));
  op->result_types = MP_ARENA_ARRAY(ir->r->scratch, const mp_type_t *, count);
  MP_RETURN_IF_NULL(op->result_types);
  op->num_results = (uint32_t)count;
  for (size_t i = 0; i < count; ++i) {
    MP_RETURN_IF_ERROR(mp_bc_value_type(ir->r, c, &op->result_types[i]));
  }
  return NULL;
}

static mp_status_t read_op_head(mp_bc_ir_t *ir, mp_bc_cursor_t *c, mp_bc_op_t *op) {
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
  MP_RETURN_IF_ERROR(read_op_attrs(ir, c, op));
  if (op->mask & HAS_RESULTS) MP_RETURN_IF_ERROR(read_results(ir, c, op));
  if (op->mask & HAS_OPERANDS) MP_RETURN_IF_ERROR(read_operands(ir, c, op));
  if (op->mask & HAS_SUCCESSORS) return op_unknown(ir, op, "branches between blocks");
  if (op->mask & HAS_USE_LISTS) MP_RETURN_IF_ERROR(skip_use_lists(c, op->num_results));
  if (op->mask & HAS_REGIONS) {
    MP_RETURN_IF_ERROR(mp_bc_flagged(c, &op->num_regions, &op->isolated));
    MP_RETURN_IF_ERROR(mp_bc_check_count(c, op->num_regions, "regions"));
  }
  return NULL;
}

// --- blocks and regions ---

typedef mp_status_t (*mp_bc_op_reader_t)(mp_bc_ir_t *ir, mp_bc_cursor_t *c, mp_bc_op_t *op,
                                         mp_block_t *block);

static mp_status_t read_block_arg(mp_bc_ir_t *ir, mp_bc_cursor_t *c, const mp_type_t **out_type) {
  mp_bc_reader_t *r = ir->r;
  const mp_loc_t *loc = NULL;
  if (r->version < 4) {
    MP_RETURN_IF_ERROR(mp_bc_value_type(r, c, out_type));
    return mp_bc_loc(r, c, &loc);
  }
  mp_bc_cursor_t before = *c;
  uint64_t index = 0;
  bool has_loc = false;
  const mp_bc_type_t *type = NULL;
  MP_RETURN_IF_ERROR(mp_bc_flagged(c, &index, &has_loc));
  MP_RETURN_IF_ERROR(mp_bc_type_at(r, &before, index, &type));
  if (type->dtype != MP_DTYPE_INVALID || type->type->kind == MP_TYPE_FUNCTION ||
      type->type->kind == MP_TYPE_NONE) {
    return mp_bc_fail(&before, "a block argument has a type that no value can have");
  }
  *out_type = type->type;
  return has_loc ? mp_bc_loc(r, c, &loc) : NULL;
}

static mp_status_t read_block_args(mp_bc_ir_t *ir, mp_bc_cursor_t *c, mp_block_t **out_block) {
  mp_bc_reader_t *r = ir->r;
  size_t count = 0, first = 0;
  mp_block_t *block = NULL;
  MP_RETURN_IF_ERROR(mp_bc_count(c, "block arguments", &count));
  const mp_type_t **types = MP_ARENA_ARRAY(r->scratch, const mp_type_t *, count);
  MP_RETURN_IF_NULL(types);
  for (size_t i = 0; i < count; ++i) MP_RETURN_IF_ERROR(read_block_arg(ir, c, &types[i]));
  if (r->version >= 3) {
    uint8_t use_lists = 0;  // 0 or any other number; MLIR writes HAS_USE_LISTS
    MP_RETURN_IF_ERROR(mp_bc_byte(c, &use_lists));
    if (use_lists != 0) MP_RETURN_IF_ERROR(skip_use_lists(c, count));
  }
  MP_RETURN_IF_ERROR(take_numbers(ir, c, count, &first));
  MP_RETURN_IF_ERROR(mp_block_create(r->module, (uint32_t)count, types, &block));
  for (size_t i = 0; i < count; ++i) ir->values.slots[first + i] = &block->args[i];
  *out_block = block;
  return NULL;
}

static mp_status_t read_block(mp_bc_ir_t *ir, mp_bc_cursor_t *c, mp_bc_op_reader_t read_op,
                              mp_block_t **out_block) {
  uint64_t num_ops = 0;
  bool has_args = false;
  mp_block_t *block = NULL;
  MP_RETURN_IF_ERROR(mp_bc_flagged(c, &num_ops, &has_args));
  if (has_args) {
    MP_RETURN_IF_ERROR(read_block_args(ir, c, &block));
  } else {
    MP_RETURN_IF_ERROR(mp_block_create(ir->r->module, 0, NULL, &block));
  }
  MP_RETURN_IF_ERROR(mp_bc_check_count(c, num_ops, "operations"));
  for (uint64_t i = 0; i < num_ops; ++i) {
    mp_bc_op_t op;
    MP_RETURN_IF_ERROR(read_op_head(ir, c, &op));
    MP_RETURN_IF_ERROR(read_op(ir, c, &op, block));
  }
  *out_block = block;
  return NULL;
}

// A region of one block, as all regions of StableHLO are.
static mp_status_t read_region(mp_bc_ir_t *ir, mp_bc_cursor_t *c, mp_bc_op_reader_t read_op,
                               mp_block_t **out_block) {
  mp_bc_cursor_t before = *c;
  uint64_t num_blocks = 0, num_values = 0;
  MP_RETURN_IF_ERROR(mp_bc_varint(c, &num_blocks));
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
  size_t next = values->next, end = values->end;
  MP_RETURN_IF_ERROR(reserve_values(values, (size_t)num_values));
  ++ir->depth;
  MP_RETURN_IF_ERROR(read_block(ir, c, read_op, out_block));
  --ir->depth;
  if (values->next != values->end) {
    return mp_bc_fail(c, "a region defines fewer values than it announces");
  }
  values->next = next;
  values->end = end;
  return NULL;
}

// The regions of an operation; those of an isolated one number their values from 0 and, from
// version 2 on, lie in a section of their own.
static mp_status_t read_regions(mp_bc_ir_t *ir, mp_bc_cursor_t *c, const mp_bc_op_t *op,
                                mp_bc_op_reader_t read_op, mp_block_t **blocks) {
  if (op->num_regions == 0) return NULL;
  size_t base = ir->values.base;
  mp_bc_cursor_t section, *from = c;
  if (op->isolated) {
    ir->values.base = ir->values.end;
    if (ir->r->version >= 2) {
      mp_bc_cursor_t before = *c;
      uint8_t id = 0;
      MP_RETURN_IF_ERROR(mp_bc_section(c, &id, &section));
      if (id != MP_BC_SECTION_IR) return mp_bc_fail(&before, "regions are in section %u", id);
      from = &section;
    }
  }
  for (uint64_t i = 0; i < op->num_regions; ++i) {
    MP_RETURN_IF_ERROR(read_region(ir, from, read_op, &blocks[i]));
  }
  if (from == &section) MP_RETURN_IF_ERROR(mp_bc_finish(&section, "a section of regions"));
  ir->values.base = base;
  return NULL;
}

// The one region of an operation that must have just one.
static mp_status_t read_only_region(mp_bc_ir_t *ir, mp_bc_cursor_t *c, const mp_bc_op_t *op,
                                    mp_bc_op_reader_t read_op, mp_block_t **out_block) {
  if (op->num_regions != 1) return op_unknown(ir, op, "does not have one region");
  return read_regions(ir, c, op, read_op, out_block);
}

// A cast between equal types of two dialects: its results are its operands.
static mp_status_t read_cast(mp_bc_ir_t *ir, const mp_bc_op_t *op) {
  if (op->num_operands != op->num_results || op->num_regions != 0) {
    return op_unknown(ir, op, "is no cast of one value to another type's spelling");
  }
  size_t first = 0;
  MP_RETURN_IF_ERROR(take_numbers(ir, &op->origin, op->num_results, &first));
  for (uint32_t i = 0; i < op->num_results; ++i) {
    if (!mp_type_equal(op->operands[i]->type, op->result_types[i])) {
      return op_unknown(ir, op, "changes the type of a value");
    }
    ir->values.slots[first + i] = op->operands[i];
  }
  return NULL;
}

// An operation within a function.
static mp_status_t read_body_op(mp_bc_ir_t *ir, mp_bc_cursor_t *c, mp_bc_op_t *op,
                                mp_block_t *block) {
  mp_bc_reader_t *r = ir->r;
  if (op_is(ir, op, MP_BC_BUILTIN, "unrealized_conversion_cast")) return read_cast(ir, op);
  if (op->name->row == NULL) return op_unknown(ir, op, "is not an operation that is known");
  size_t first = 0;
  MP_RETURN_IF_ERROR(take_numbers(ir, &op->origin, op->num_results, &first));
  mp_block_t **regions = MP_ARENA_ARRAY(r->scratch, mp_block_t *, op->num_regions);
  MP_RETURN_IF_NULL(regions);
  mp_op_spec_t spec = {.code = (mp_opcode_t)op->name->row->fields[0],
                       .loc = op->loc,
                       .num_operands = op->num_operands,
                       .operands = op->operands,
                       .num_results = op->num_results,
                       .result_types = op->result_types,
                       .num_regions = (uint32_t)op->num_regions,
                       .regions = regions};
  MP_RETURN_IF_ERROR(read_regions(ir, c, op, read_body_op, regions));
  mp_named_attr_t *attrs;
  MP_RETURN_IF_ERROR(mp_bc_op_attrs(r, op->name->row, &op->attrs, &attrs, &spec.num_attrs));
  spec.attrs = attrs;
  mp_op_t *made = NULL;
  MP_RETURN_IF_ERROR(mp_op_create(r->module, &spec, &made));
  mp_block_append(block, made);
  for (uint32_t i = 0; i < op->num_results; ++i) {
    ir->values.slots[first + i] = &made->results[i];
  }
  return NULL;
}

// --- the module and what stands in it ---

static mp_status_t check_field(const mp_bc_op_t *op, const mp_attr_t *attr, mp_attr_kind_t kind,
                               const char *name) {
  if (attr != NULL && attr->kind == kind) return NULL;
  return mp_bc_fail(&op->origin, "%.*s has no %s, or one of the wrong kind",
                    MP_STR_ARG(op->name->name), name);
}

// Spreads a list of dictionaries over arguments or results; an empty list stands for none.
static mp_status_t spread_dicts(const mp_bc_op_t *op, const mp_attr_t *list, uint32_t count,
                                const char *name, const mp_attr_t **dicts) {
  MP_RETURN_IF_ERROR(check_field(op, list, MP_KIND_ARRAY, name));
  if (list->u.array.count == 0) return NULL;
  if (list->u.array.count != count) {
    return mp_bc_fail(&op->origin, "%s has %zu entries for %u values", name, list->u.array.count,
                      count);
  }
  for (uint32_t i = 0; i < count; ++i) {
    MP_RETURN_IF_ERROR(check_field(op, list->u.array.items[i], MP_KIND_DICT, name));
    if (list->u.array.items[i]->u.dict.count != 0) dicts[i] = list->u.array.items[i];
  }
  return NULL;
}

static mp_status_t read_func(mp_bc_ir_t *ir, mp_bc_cursor_t *c, const mp_bc_op_t *op) {
  enum { ARG_ATTRS, TYPE, RESULT_ATTRS, NAME, VISIBILITY, NUM_FIELDS };
  static const char *const names[] = {"arg_attrs", "function_type", "res_attrs", "sym_name",
                                      "sym_visibility"};
  mp_bc_reader_t *r = ir->r;
  const mp_attr_t *fields[NUM_FIELDS];
  MP_RETURN_IF_ERROR(mp_bc_op_fields(r, names, NUM_FIELDS, 0, &op->attrs, fields));
  MP_RETURN_IF_ERROR(check_field(op, fields[NAME], MP_KIND_STRING, names[NAME]));
  MP_RETURN_IF_ERROR(check_field(op, fields[VISIBILITY], MP_KIND_STRING, names[VISIBILITY]));
  MP_RETURN_IF_ERROR(check_field(op, fields[TYPE], MP_KIND_TYPE, names[TYPE]));
  const mp_type_t *type = fields[TYPE]->u.type;
  if (type->kind != MP_TYPE_FUNCTION || op->num_operands != 0 || op->num_results != 0) {
    return mp_bc_fail(&op->origin, "a function has no function type");
  }
  mp_func_t *func = NULL;
  uint32_t num_results = type->num_elements - type->num_inputs;
  MP_RETURN_IF_ERROR(mp_func_create(r->module, fields[NAME]->u.str, type->num_inputs,
                                    type->elements, num_results, type->elements + type->num_inputs,
                                    &func));
  func->visibility = fields[VISIBILITY]->u.str;
  func->loc = op->loc;
  func->attrs = r->version >= 5 ? op->attrs.dict : NULL;
  MP_RETURN_IF_ERROR(
      spread_dicts(op, fields[ARG_ATTRS], type->num_inputs, names[ARG_ATTRS], func->arg_attrs));
  MP_RETURN_IF_ERROR(
      spread_dicts(op, fields[RESULT_ATTRS], num_results, names[RESULT_ATTRS], func->result_attrs));
  mp_block_t *body = NULL;
  MP_RETURN_IF_ERROR(read_only_region(ir, c, op, read_body_op, &body));
  // arg_attrs and others count on it.
  if (body->num_args != type->num_inputs) {
    return mp_bc_fail(&op->origin, "function %.*s has %u parameters, its body %u",
                      MP_STR_ARG(func->name), type->num_inputs, body->num_args);
  }
  func->body = body;
  body->parent_func = func;
  return NULL;
}

static mp_status_t read_mesh(mp_bc_ir_t *ir, const mp_bc_op_t *op) {
  enum { MESH, NAME, NUM_FIELDS };
  static const char *const names[] = {"mesh", "sym_name"};
  const mp_attr_t *fields[NUM_FIELDS];
  if (op->num_operands != 0 || op->num_results != 0 || op->num_regions != 0) {
    return op_unknown(ir, op, "has operands, results or regions");
  }
  MP_RETURN_IF_ERROR(mp_bc_op_fields(ir->r, names, NUM_FIELDS, 0, &op->attrs, fields));
  MP_RETURN_IF_ERROR(check_field(op, fields[MESH], MP_KIND_MESH, names[MESH]));
  MP_RETURN_IF_ERROR(check_field(op, fields[NAME], MP_KIND_STRING, names[NAME]));
  return mp_bc_mesh_define(ir->r, &op->origin, fields[NAME]->u.str, fields[MESH]->u.mesh);
}

static mp_status_t read_module_op(mp_bc_ir_t *ir, mp_bc_cursor_t *c, mp_bc_op_t *op,
                                  mp_block_t *block) {
  (void)block;
  if (op_is(ir, op, MP_BC_VHLO, "func_v1")) return read_func(ir, c, op);
  if (op_is(ir, op, MP_BC_SDY, "mesh")) return read_mesh(ir, op);
  return op_unknown(ir, op, "stands outside of any function");
}

static mp_status_t count_attr(const mp_bc_op_t *op, const mp_named_attr_t *attr,
                              uint32_t *out_count) {
  MP_RETURN_IF_ERROR(check_field(op, attr->value, MP_KIND_INT, mp_attr_name_text(attr->name)));
  if (attr->value->u.i64 < 1 || attr->value->u.i64 > INT32_MAX) {
    return mp_bc_fail(&op->origin, "%s is %lld", mp_attr_name_text(attr->name),
                      (long long)attr->value->u.i64);
  }
  *out_count = (uint32_t)attr->value->u.i64;
  return NULL;
}

// The module's dictionary without what the module has fields for.
static mp_status_t read_module_attrs(mp_bc_reader_t *r, const mp_bc_op_t *op) {
  const mp_attr_t *dict = op->attrs.dict;
  if (dict == NULL) return NULL;
  mp_named_attr_t *others = MP_ARENA_ARRAY(r->arena, mp_named_attr_t, dict->u.dict.count);
  MP_RETURN_IF_NULL(others);
  size_t count = 0;
  for (size_t i = 0; i < dict->u.dict.count; ++i) {
    const mp_named_attr_t *attr = &dict->u.dict.items[i];
    if (attr->name == MP_ATTR_MHLO_NUM_PARTITIONS) {
      MP_RETURN_IF_ERROR(count_attr(op, attr, &r->module->num_partitions));
    } else if (attr->name == MP_ATTR_MHLO_NUM_REPLICAS) {
      MP_RETURN_IF_ERROR(count_attr(op, attr, &r->module->num_replicas));
    } else if (!mp_str_is(attr->text, "sym_name") && !mp_str_is(attr->text, "sym_visibility")) {
      others[count++] = *attr;
    }
  }
  if (count == 0) return NULL;
  mp_attr_t *rest = MP_ARENA_NEW(r->arena, mp_attr_t);
  MP_RETURN_IF_NULL(rest);
  rest->kind = MP_KIND_DICT;
  rest->u.dict.items = others;
  rest->u.dict.count = count;
  r->module->attrs = rest;
  return NULL;
}

static mp_status_t read_top_op(mp_bc_ir_t *ir, mp_bc_cursor_t *c, mp_bc_op_t *op,
                               mp_block_t *block) {
  enum { NAME, VISIBILITY, NUM_FIELDS };
  static const char *const names[] = {"sym_name", "sym_visibility"};
  mp_bc_reader_t *r = ir->r;
  (void)block;
  if (!op_is(ir, op, MP_BC_BUILTIN, "module")) {
    return op_unknown(ir, op, "stands where a module is expected");
  }
  const mp_attr_t *fields[NUM_FIELDS];
  MP_RETURN_IF_ERROR(mp_bc_op_fields(r, names, NUM_FIELDS, 3, &op->attrs, fields));
  if (fields[NAME] != NULL) {
    MP_RETURN_IF_ERROR(check_field(op, fields[NAME], MP_KIND_STRING, names[NAME]));
    r->module->name = fields[NAME]->u.str;
  }
  MP_RETURN_IF_ERROR(read_module_attrs(r, op));
  mp_block_t *body = NULL;
  return read_only_region(ir, c, op, read_module_op, &body);
}

static mp_status_t read_ir(mp_bc_ir_t *ir) {
  mp_bc_cursor_t c = ir->r->sections[MP_BC_SECTION_IR], start = c;
  uint64_t num_ops = 0;
  bool has_args = false;
  MP_RETURN_IF_ERROR(mp_bc_flagged(&c, &num_ops, &has_args));
  if (num_ops != 1 || has_args) return mp_bc_fail(&start, "the program is not one module");
  mp_bc_op_t op;
  MP_RETURN_IF_ERROR(read_op_head(ir, &c, &op));
  MP_RETURN_IF_ERROR(read_top_op(ir, &c, &op, NULL));
  return mp_bc_finish(&c, "the section of operations");
}

mp_status_t mp_bc_read_ir(mp_bc_reader_t *r) {
  mp_bc_ir_t ir = {.r = r};
  mp_status_t status = read_ir(&ir);
  mp_free(ir.values.slots);
  return status;
}
