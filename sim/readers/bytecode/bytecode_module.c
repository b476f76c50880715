// The IR section's outermost levels: the module, its functions and meshes.
#include "sim/readers/bytecode/bytecode_ir.h"

static mp_status_t bytecode_module_check_field(const mp_bc_op_t *op, const mp_attr_t *attr,
                                               mp_attr_kind_t kind, const char *name) {
  if (attr != NULL && attr->kind == kind) return NULL;
  return mp_bc_fail(&op->origin, "%.*s has no %s, or one of the wrong kind",
                    MP_STR_ARG(op->name->name), name);
}

// Takes the attribute that lists the dictionaries of all arguments (or results) apart into `dicts`,
// one per argument; empty dictionaries and an empty list leave them NULL.
static mp_status_t bytecode_module_spread_dicts(const mp_bc_op_t *op, const mp_attr_t *list,
                                                uint32_t count, const char *name,
                                                const mp_attr_t **dicts) {
  MP_RETURN_IF_ERROR(bytecode_module_check_field(op, list, MP_KIND_ARRAY, name));
  if (list->u.array.count == 0) return NULL;
  if (list->u.array.count != count) {
    return mp_bc_fail(&op->origin, "%s has %zu entries for %u values", name, list->u.array.count,
                      count);
  }
  for (uint32_t i = 0; i < count; ++i) {
    MP_RETURN_IF_ERROR(bytecode_module_check_field(op, list->u.array.items[i], MP_KIND_DICT, name));
    if (list->u.array.items[i]->u.dict.count != 0) dicts[i] = list->u.array.items[i];
  }
  return NULL;
}

// The arguments of the body must be the function's parameters: the same types in the same order.
static mp_status_t bytecode_module_check_parameters(const mp_bc_op_t *op, const mp_func_t *func,
                                                    const mp_type_t *type, const mp_block_t *body) {
  if (body->num_args != type->num_inputs) {
    return mp_bc_fail(&op->origin, "function %.*s has %u parameters, its body %u",
                      MP_STR_ARG(func->name), type->num_inputs, body->num_args);
  }
  for (uint32_t i = 0; i < body->num_args; ++i) {
    if (mp_type_equal(body->args[i].type, type->elements[i])) continue;
    return mp_bc_fail(&op->origin, "parameter %u of function %.*s has another type in its body", i,
                      MP_STR_ARG(func->name));
  }
  return NULL;
}

// Reads a function. A function is not isolated: its values continue the module's numbering.
static mp_status_t bytecode_module_read_func(mp_bc_ir_t *ir, mp_bc_cursor_t *c,
                                             const mp_bc_op_t *op) {
  enum { ARG_ATTRS, TYPE, RESULT_ATTRS, NAME, VISIBILITY, NUM_FIELDS };
  static const char *const names[] = {"arg_attrs", "function_type", "res_attrs", "sym_name",
                                      "sym_visibility"};
  mp_bc_reader_t *r = ir->r;
  const mp_attr_t *fields[NUM_FIELDS];
  MP_RETURN_IF_ERROR(mp_bc_op_fields(r, names, NUM_FIELDS, 0, &op->attrs, fields));
  MP_RETURN_IF_ERROR(bytecode_module_check_field(op, fields[NAME], MP_KIND_STRING, names[NAME]));
  MP_RETURN_IF_ERROR(
      bytecode_module_check_field(op, fields[VISIBILITY], MP_KIND_STRING, names[VISIBILITY]));
  MP_RETURN_IF_ERROR(bytecode_module_check_field(op, fields[TYPE], MP_KIND_TYPE, names[TYPE]));
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
  // Before version 5 the dictionary also holds the fields above, and is not kept.
  func->attrs = r->version >= 5 ? op->attrs.dict : NULL;
  MP_RETURN_IF_ERROR(bytecode_module_spread_dicts(op, fields[ARG_ATTRS], type->num_inputs,
                                                  names[ARG_ATTRS], func->arg_attrs));
  MP_RETURN_IF_ERROR(bytecode_module_spread_dicts(op, fields[RESULT_ATTRS], num_results,
                                                  names[RESULT_ATTRS], func->result_attrs));
  void *region = NULL;
  MP_RETURN_IF_ERROR(mp_bc_read_only_region(ir, c, op, mp_bc_read_body_op, &region));
  mp_block_t *body = region;
  MP_RETURN_IF_ERROR(bytecode_module_check_parameters(op, func, type, body));
  func->body = body;
  body->parent_func = func;
  return NULL;
}

// Reads the definition of a mesh, which becomes no operation: it fills in the mesh that shardings
// refer to by its name. Its discardable attribute `stablehlo.mesh` is a copy and is dropped.
static mp_status_t bytecode_module_read_mesh(mp_bc_ir_t *ir, const mp_bc_op_t *op) {
  enum { MESH, NAME, NUM_FIELDS };
  static const char *const names[] = {"mesh", "sym_name"};
  const mp_attr_t *fields[NUM_FIELDS];
  if (op->num_operands != 0 || op->num_results != 0 || op->num_regions != 0) {
    return mp_bc_op_unknown(ir, op, "has operands, results or regions");
  }
  MP_RETURN_IF_ERROR(mp_bc_op_fields(ir->r, names, NUM_FIELDS, 0, &op->attrs, fields));
  MP_RETURN_IF_ERROR(bytecode_module_check_field(op, fields[MESH], MP_KIND_MESH, names[MESH]));
  MP_RETURN_IF_ERROR(bytecode_module_check_field(op, fields[NAME], MP_KIND_STRING, names[NAME]));
  return mp_bc_mesh_define(ir->r, &op->origin, fields[NAME]->u.str, fields[MESH]->u.mesh);
}

static mp_status_t bytecode_module_read_module_op(mp_bc_ir_t *ir, mp_bc_cursor_t *c, mp_bc_op_t *op,
                                                  void *block) {
  (void)block;
  if (mp_bc_op_is(ir, op, MP_BC_VHLO, "func_v1")) return bytecode_module_read_func(ir, c, op);
  if (mp_bc_op_is(ir, op, MP_BC_SDY, "mesh")) return bytecode_module_read_mesh(ir, op);
  return mp_bc_op_unknown(ir, op, "stands outside of any function");
}

// The value of an attribute that is a number of replicas or partitions.
static mp_status_t bytecode_module_count_attr(const mp_bc_op_t *op, const mp_named_attr_t *attr,
                                              uint32_t *out_count) {
  MP_RETURN_IF_ERROR(
      bytecode_module_check_field(op, attr->value, MP_KIND_INT, mp_attr_name_text(attr->name)));
  if (attr->value->u.i64 < 1 || attr->value->u.i64 > INT32_MAX) {
    return mp_bc_fail(&op->origin, "%s is %lld", mp_attr_name_text(attr->name),
                      (long long)attr->value->u.i64);
  }
  *out_count = (uint32_t)attr->value->u.i64;
  return NULL;
}

// Keeps the module's dictionary without the attributes for which the module has fields.
static mp_status_t bytecode_module_read_module_attrs(mp_bc_reader_t *r, const mp_bc_op_t *op) {
  const mp_attr_t *dict = op->attrs.dict;
  if (dict == NULL) return NULL;
  mp_named_attr_t *others = MP_ARENA_ARRAY(r->arena, mp_named_attr_t, dict->u.dict.count);
  MP_RETURN_IF_NULL(others);
  size_t count = 0;
  for (size_t i = 0; i < dict->u.dict.count; ++i) {
    const mp_named_attr_t *attr = &dict->u.dict.items[i];
    if (attr->name == MP_ATTR_MHLO_NUM_PARTITIONS) {
      MP_RETURN_IF_ERROR(bytecode_module_count_attr(op, attr, &r->module->num_partitions));
    } else if (attr->name == MP_ATTR_MHLO_NUM_REPLICAS) {
      MP_RETURN_IF_ERROR(bytecode_module_count_attr(op, attr, &r->module->num_replicas));
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

// The name of a program that its framework has named after a marked function (sim/ir/loc.h):
// "tt_jit_up/addmm" of "tt_jit_export_L204C0_minipod:up/addmm". What is before the mark is a line
// of the framework.
static mp_status_t bytecode_module_drop_mark(mp_bc_reader_t *r, mp_str_t *name) {
  const mp_str_t mark = MP_STR(MP_LOC_PATH_MARK), kind = MP_STR("tt_jit_");
  const char *found = name->size == 0 ? NULL : memmem(name->data, name->size, mark.data, mark.size);
  if (found == NULL) return NULL;
  const char *path = found + mark.size;
  const size_t rest = (size_t)(name->data + name->size - path);
  const size_t before = mp_str_starts_with(*name, kind.data) ? kind.size : 0;
  char *copy = mp_arena_alloc(r->arena, before + rest + 1);
  MP_RETURN_IF_NULL(copy);
  memcpy(copy, kind.data, before);
  memcpy(copy + before, path, rest);
  *name = (mp_str_t){copy, before + rest};
  return NULL;
}

// Reads builtin.module. Modules within modules do not occur in programs.
static mp_status_t bytecode_module_read_top_op(mp_bc_ir_t *ir, mp_bc_cursor_t *c, mp_bc_op_t *op,
                                               void *block) {
  enum { NAME, VISIBILITY, NUM_FIELDS };
  static const char *const names[] = {"sym_name", "sym_visibility"};
  mp_bc_reader_t *r = ir->r;
  (void)block;
  if (!mp_bc_op_is(ir, op, MP_BC_BUILTIN, "module")) {
    return mp_bc_op_unknown(ir, op, "stands where a module is expected");
  }
  const mp_attr_t *fields[NUM_FIELDS];
  MP_RETURN_IF_ERROR(mp_bc_op_fields(r, names, NUM_FIELDS, 3, &op->attrs, fields));
  if (fields[NAME] != NULL) {
    MP_RETURN_IF_ERROR(bytecode_module_check_field(op, fields[NAME], MP_KIND_STRING, names[NAME]));
    r->module->name = fields[NAME]->u.str;
    MP_RETURN_IF_ERROR(bytecode_module_drop_mark(r, &r->module->name));
  }
  MP_RETURN_IF_ERROR(bytecode_module_read_module_attrs(r, op));
  void *region = NULL;
  return mp_bc_read_only_region(ir, c, op, bytecode_module_read_module_op, &region);
}

static mp_status_t bytecode_module_read_ir(mp_bc_ir_t *ir) {
  mp_bc_cursor_t c = ir->r->sections[MP_BC_SECTION_IR], start = c;
  uint64_t num_ops = 0;
  bool has_args = false;
  MP_RETURN_IF_ERROR(mp_bc_flagged(&c, &num_ops, &has_args));
  if (num_ops != 1 || has_args) return mp_bc_fail(&start, "the program is not one module");
  mp_bc_op_t op;
  MP_RETURN_IF_ERROR(mp_bc_read_op_head(ir, &c, &op));
  MP_RETURN_IF_ERROR(bytecode_module_read_top_op(ir, &c, &op, NULL));
  return mp_bc_finish(&c, "the section of operations");
}

mp_status_t mp_bc_read_ir(mp_bc_reader_t *r) {
  mp_bc_ir_t ir = {.r = r, .form = &mp_bc_stablehlo_form};
  mp_status_t status = bytecode_module_read_ir(&ir);
  MP_ARRAY_FREE(&ir.values.slots);
  return status;
}
