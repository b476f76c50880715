// The outer parts of the printer: modules, functions, regions, and the generic form of ops.
#include "sim/ir/print/print_module.h"

#include <inttypes.h>

#include "sim/base/hash.h"
#include "sim/ir/print/print_parts.h"

// ---- values ----

// A printed name is a number, shifted by one, with a flag for block arguments in the lowest bit.
enum { ARG_FLAG = 1 };

static void print_module_set_name(mp_printer_t *p, const void *key, uint64_t name) {
  mp_status_t status =
      MP_HASH_MAP_SET(NULL, &p->names, &(mp_print_name_t){mp_hash_pointer(key), name});
  if (p->status == NULL)
    p->status = status;
  else
    mp_status_release(status);
}

static void print_module_name_results(mp_printer_t *p, const mp_op_t *op) {
  print_module_set_name(p, op, p->next_result++ << 1);
}

void mp_printer_name_args(mp_printer_t *p, const mp_block_t *block) {
  for (uint32_t i = 0; i < block->num_args; ++i)
    print_module_set_name(p, &block->args[i], p->next_arg++ << 1 | ARG_FLAG);
}

static bool print_module_is_unfused(const mp_printer_t *p, const mp_op_t *op) {
  return p->options.unfused && op != NULL && op->code == MP_OP_FUSION;
}

// When the ops of a fused op are printed in its place, they use its operands, and others their
// results.
static const mp_value_t *print_module_unfused(const mp_printer_t *p, const mp_value_t *value) {
  while (true) {
    const mp_op_t *around = value->op == NULL ? value->block->parent_op : NULL;
    if (print_module_is_unfused(p, value->op)) {
      value = mp_block_terminator(value->op->regions[0])->operands[value->index];
    } else if (print_module_is_unfused(p, around)) {
      value = around->operands[value->index];
    } else {
      return value;
    }
  }
}

void mp_printer_value(mp_printer_t *p, const mp_value_t *value) {
  value = print_module_unfused(p, value);
  const void *key = value->op != NULL ? (const void *)value->op : (const void *)value;
  const mp_print_name_t *known;
  uint64_t name;
  if (MP_HASH_MAP_GET(&p->names, mp_hash_pointer(key), known) != NULL) {
    name = known->name;
  } else {
    // When an op is printed alone, its operands are named where they are first met.
    name = value->op != NULL ? p->next_result++ << 1 : p->next_arg++ << 1 | ARG_FLAG;
    print_module_set_name(p, key, name);
  }
  mp_strbuf_printf(p->out, "%%%s%" PRIu64, (name & ARG_FLAG) != 0 ? "arg" : "", name >> 1);
  if (value->op != NULL && value->op->num_results > 1)
    mp_strbuf_printf(p->out, "#%u", value->index);
}

void mp_printer_operands(mp_printer_t *p, const mp_op_t *op, uint32_t first, uint32_t count) {
  for (uint32_t i = first; i < first + count; ++i) {
    if (i > first) mp_strbuf_puts(p->out, ", ");
    mp_printer_value(p, op->operands[i]);
  }
}

// ---- types ----

void mp_printer_operand_types(mp_printer_t *p, const mp_op_t *op) {
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    if (i > 0) mp_strbuf_puts(p->out, ", ");
    mp_type_print(op->operands[i]->type, p->out);
  }
}

static void print_module_result_types(mp_printer_t *p, const mp_op_t *op) {
  if (op->num_results != 1) mp_strbuf_putc(p->out, '(');
  for (uint32_t i = 0; i < op->num_results; ++i) {
    if (i > 0) mp_strbuf_puts(p->out, ", ");
    mp_type_print(op->results[i].type, p->out);
  }
  if (op->num_results != 1) mp_strbuf_putc(p->out, ')');
}

void mp_printer_function_type(mp_printer_t *p, const mp_op_t *op) {
  mp_strbuf_putc(p->out, '(');
  mp_printer_operand_types(p, op);
  mp_strbuf_puts(p->out, ") -> ");
  print_module_result_types(p, op);
}

// ---- attributes ----

// MLIR prints all attributes by name. An op's own and its discardable attributes are each sorted by
// name already, so the two lists are merged.
static bool print_module_comes_first(mp_str_t a, mp_str_t b) {
  size_t size = a.size < b.size ? a.size : b.size;
  int order = size > 0 ? memcmp(a.data, b.data, size) : 0;
  return order != 0 ? order < 0 : a.size <= b.size;
}

static const mp_named_attr_t *print_module_next_discardable(const mp_op_t *op, uint32_t *i) {
  for (; *i < op->num_attrs; ++*i)
    if (mp_schema_find(op->code, op->attrs[*i].name) == NULL) return &op->attrs[*i];
  return NULL;
}

void mp_printer_attr_dict(mp_printer_t *p, const mp_op_t *op, const mp_attr_name_t *skip,
                          uint32_t num_skip) {
  mp_print_item_t items[MP_MAX_PRINTED_ATTRS];
  uint32_t count = mp_print_own_items(op, skip, num_skip, items);
  uint32_t own = 0, other = 0;
  const char *before = " {";
  while (true) {
    const mp_named_attr_t *attr = print_module_next_discardable(op, &other);
    if (own == count && attr == NULL) break;
    mp_strbuf_puts(p->out, before);
    before = ", ";
    if (own < count && (attr == NULL || print_module_comes_first(items[own].name, attr->text))) {
      mp_print_item(op, &items[own++], p->out);
    } else {
      mp_print_named(attr, NULL, p->out);
      ++other;
    }
  }
  if (before[0] == ',') mp_strbuf_putc(p->out, '}');
}

// Prints <{...}>, the op's own attributes in the generic form. The discardable ones stand behind
// the regions.
static void print_module_properties(mp_printer_t *p, const mp_op_t *op) {
  mp_print_item_t items[MP_MAX_PRINTED_ATTRS];
  uint32_t count = mp_print_own_items(op, NULL, 0, items);
  for (uint32_t i = 0; i < count; ++i) {
    mp_strbuf_puts(p->out, i == 0 ? " <{" : ", ");
    mp_print_item(op, &items[i], p->out);
  }
  if (count > 0) mp_strbuf_puts(p->out, "}>");
}

static void print_module_discardable(mp_printer_t *p, const mp_op_t *op) {
  const char *before = " {";
  for (uint32_t i = 0; print_module_next_discardable(op, &i) != NULL; ++i) {
    mp_strbuf_puts(p->out, before);
    before = ", ";
    mp_print_named(&op->attrs[i], NULL, p->out);
  }
  if (before[0] == ',') mp_strbuf_putc(p->out, '}');
}

// ---- regions and ops ----

void mp_printer_newline(mp_printer_t *p) {
  mp_strbuf_putc(p->out, '\n');
  for (int i = 0; i < p->indent; ++i) mp_strbuf_puts(p->out, "  ");
}

void mp_printer_block_args(mp_printer_t *p, const mp_block_t *block) {
  mp_strbuf_putc(p->out, '(');
  for (uint32_t i = 0; i < block->num_args; ++i) {
    if (i > 0) mp_strbuf_puts(p->out, ", ");
    mp_printer_value(p, &block->args[i]);
    mp_strbuf_puts(p->out, ": ");
    mp_type_print(block->args[i].type, p->out);
  }
  mp_strbuf_putc(p->out, ')');
}

static void print_module_op(mp_printer_t *p, const mp_op_t *op);

static void print_module_ops(mp_printer_t *p, const mp_block_t *block) {
  ++p->indent;
  for (const mp_op_t *op = block->first; op != NULL; op = op->next) {
    const bool is_unfused = print_module_is_unfused(p, op);
    const mp_op_t *in = is_unfused ? op->regions[0]->first : op;
    const mp_op_t *end = is_unfused ? mp_block_terminator(op->regions[0]) : op->next;
    for (; in != end; in = in->next) {
      mp_printer_newline(p);
      print_module_op(p, in);
    }
  }
  --p->indent;
}

void mp_printer_region(mp_printer_t *p, const mp_block_t *block) {
  mp_strbuf_putc(p->out, '{');
  print_module_ops(p, block);
  mp_printer_newline(p);
  mp_strbuf_putc(p->out, '}');
}

void mp_printer_generic_region(mp_printer_t *p, const mp_block_t *block) {
  mp_strbuf_putc(p->out, '{');
  if (block->num_args > 0) {
    mp_printer_newline(p);
    mp_strbuf_puts(p->out, "^bb0");
    mp_printer_name_args(p, block);
    mp_printer_block_args(p, block);
    mp_strbuf_putc(p->out, ':');
  }
  print_module_ops(p, block);
  mp_printer_newline(p);
  mp_strbuf_putc(p->out, '}');
}

// The terminator is one op in the IR, but three ops in the text; which one depends on what the
// block belongs to.
static const char *print_module_generic_name(const mp_op_t *op) {
  if (!mp_op_has(op, MP_OP_TRAIT_TERMINATOR) || op->parent == NULL)
    return mp_op_info(op->code)->name;
  const mp_op_t *outer = op->parent->parent_op;
  if (outer == NULL) return "func.return";
  return mp_op_is_sdy(outer) ? "sdy.return" : "stablehlo.return";
}

static void print_module_generic(mp_printer_t *p, const mp_op_t *op) {
  mp_strbuf_printf(p->out, "\"%s\"(", print_module_generic_name(op));
  mp_printer_operands(p, op, 0, op->num_operands);
  mp_strbuf_putc(p->out, ')');
  print_module_properties(p, op);
  for (uint32_t i = 0; i < op->num_regions; ++i) {
    mp_strbuf_puts(p->out, i == 0 ? " (" : ", ");
    mp_printer_generic_region(p, op->regions[i]);
  }
  if (op->num_regions > 0) mp_strbuf_putc(p->out, ')');
  print_module_discardable(p, op);
  mp_strbuf_puts(p->out, " : ");
  mp_printer_function_type(p, op);
}

// StableHLO has no exchange. It is printed as a custom call, so that other tools can at least read
// the program.
static void print_module_exchange(mp_printer_t *p, const mp_op_t *op) {
  mp_strbuf_puts(p->out, "stablehlo.custom_call @minipod.exchange(");
  mp_printer_operands(p, op, 0, op->num_operands);
  mp_strbuf_puts(p->out, ") : ");
  mp_printer_function_type(p, op);
}

static void print_module_op(mp_printer_t *p, const mp_op_t *op) {
  if (op->num_results > 0) {
    print_module_name_results(p, op);
    uint64_t name = p->next_result - 1;
    mp_strbuf_printf(p->out, "%%%" PRIu64, name);
    if (op->num_results > 1) mp_strbuf_printf(p->out, ":%u", op->num_results);
    mp_strbuf_puts(p->out, " = ");
  }
  if (op->code == MP_OP_EXCHANGE) {
    print_module_exchange(p, op);
  } else if (p->options.generic || !mp_printer_pretty(p, op)) {
    print_module_generic(p, op);
  }
  if (p->options.locations) {
    mp_strbuf_putc(p->out, ' ');
    mp_print_loc(op->loc, p->out);
  }
}

// ---- functions and the module ----

static void print_module_optional_dict(const mp_attr_t *dict, mp_strbuf_t *out) {
  if (dict == NULL || dict->kind != MP_KIND_DICT || dict->u.dict.count == 0) return;
  mp_strbuf_putc(out, ' ');
  mp_print_dict(dict->u.dict.items, dict->u.dict.count, out);
}

static void print_module_func_results(mp_printer_t *p, const mp_func_t *func) {
  if (func->num_results == 0) return;
  mp_strbuf_puts(p->out, " -> ");
  bool bare = func->num_results == 1 && func->result_attrs[0] == NULL &&
              func->result_types[0]->kind != MP_TYPE_FUNCTION;
  if (!bare) mp_strbuf_putc(p->out, '(');
  for (uint32_t i = 0; i < func->num_results; ++i) {
    if (i > 0) mp_strbuf_puts(p->out, ", ");
    mp_type_print(func->result_types[i], p->out);
    print_module_optional_dict(func->result_attrs[i], p->out);
  }
  if (!bare) mp_strbuf_putc(p->out, ')');
}

static void print_module_func(mp_printer_t *p, const mp_func_t *func) {
  mp_printer_newline(p);
  mp_strbuf_puts(p->out, "func.func ");
  if (func->visibility.size > 0) mp_strbuf_printf(p->out, "%.*s ", MP_STR_ARG(func->visibility));
  mp_print_symbol(func->name, p->out);
  mp_strbuf_putc(p->out, '(');
  p->next_result = p->next_arg = 0;
  mp_printer_name_args(p, func->body);
  bool is_declaration = func->body->first == NULL;
  for (uint32_t i = 0; i < func->body->num_args; ++i) {
    if (i > 0) mp_strbuf_puts(p->out, ", ");
    if (!is_declaration) {
      mp_printer_value(p, &func->body->args[i]);
      mp_strbuf_puts(p->out, ": ");
    }
    mp_type_print(func->body->args[i].type, p->out);
    print_module_optional_dict(func->arg_attrs[i], p->out);
  }
  mp_strbuf_putc(p->out, ')');
  print_module_func_results(p, func);
  if (func->attrs != NULL && func->attrs->u.dict.count > 0) {
    mp_strbuf_puts(p->out, " attributes");
    print_module_optional_dict(func->attrs, p->out);
  }
  if (!is_declaration) {
    mp_strbuf_putc(p->out, ' ');
    mp_printer_region(p, func->body);
  }
  if (p->options.locations) {
    mp_strbuf_putc(p->out, ' ');
    mp_print_loc(func->loc, p->out);
  }
}

static void print_module(mp_printer_t *p, const mp_module_t *module) {
  mp_strbuf_puts(p->out, "module ");
  if (module->name.size > 0) {
    mp_print_symbol(module->name, p->out);
    mp_strbuf_putc(p->out, ' ');
  }
  mp_strbuf_puts(p->out, "attributes {");
  const mp_attr_t *attrs = module->attrs;
  for (size_t i = 0; attrs != NULL && i < attrs->u.dict.count; ++i) {
    mp_print_named(&attrs->u.dict.items[i], NULL, p->out);
    mp_strbuf_puts(p->out, ", ");
  }
  mp_strbuf_printf(p->out, "mhlo.num_partitions = %u : i32, mhlo.num_replicas = %u : i32} {",
                   module->num_partitions, module->num_replicas);
  ++p->indent;
  for (uint32_t i = 0; i < module->meshes.count; ++i) {
    mp_printer_newline(p);
    mp_strbuf_puts(p->out, "sdy.mesh ");
    mp_print_symbol(module->meshes.items[i]->name, p->out);
    mp_strbuf_puts(p->out, " = ");
    mp_print_mesh_body(module->meshes.items[i], p->out);
  }
  for (const mp_func_t *func = module->funcs.first; func != NULL; func = func->next)
    print_module_func(p, func);
  --p->indent;
  mp_strbuf_puts(p->out, "\n}\n");
}

static mp_printer_t print_module_start(const mp_print_options_t *options, mp_strbuf_t *out) {
  mp_printer_t p = {.out = out};
  if (options != NULL) p.options = *options;
  return p;
}

static mp_status_t print_module_finish(mp_printer_t *p) {
  MP_HASH_MAP_FREE(&p->names);
  return p->status != NULL ? p->status : mp_strbuf_status(p->out);
}

mp_status_t mp_module_print(const mp_module_t *module, const mp_print_options_t *options,
                            mp_strbuf_t *out) {
  mp_printer_t p = print_module_start(options, out);
  print_module(&p, module);
  return print_module_finish(&p);
}

mp_status_t mp_op_print(const mp_op_t *op, const mp_print_options_t *options, mp_strbuf_t *out) {
  mp_printer_t p = print_module_start(options, out);
  print_module_op(&p, op);
  return print_module_finish(&p);
}
