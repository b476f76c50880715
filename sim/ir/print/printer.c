// What printing a program is made of: values, types, attributes, regions, and ops in the generic
// form.
#include <inttypes.h>
#include "sim/base/hash.h"
#include "sim/ir/print/print_module.h"
#include "sim/ir/print/print_parts.h"

// ---- values ----

// A printed name is a number, shifted by one, with a flag for block arguments in the lowest bit.
enum { ARG_FLAG = 1 };

static void printer_set_name(mp_printer_t *p, const void *key, uint64_t name) {
  mp_status_t status =
      MP_HASH_MAP_SET(NULL, &p->names, &(mp_print_name_t){mp_hash_pointer(key), name});
  if (p->status == NULL)
    p->status = status;
  else
    mp_status_release(status);
}

static void printer_name_results(mp_printer_t *p, const mp_op_t *op) {
  printer_set_name(p, op, p->next_result++ << 1);
}

void mp_printer_name_args(mp_printer_t *p, const mp_block_t *block) {
  for (uint32_t i = 0; i < block->num_args; ++i)
    printer_set_name(p, &block->args[i], p->next_arg++ << 1 | ARG_FLAG);
}

static bool printer_is_unfused(const mp_printer_t *p, const mp_op_t *op) {
  return p->options.unfused && op != NULL && op->code == MP_OP_FUSION;
}

// When the ops of a fused op are printed in its place, they use its operands, and others their
// results.
static const mp_value_t *printer_unfused(const mp_printer_t *p, const mp_value_t *value) {
  while (true) {
    const mp_op_t *around = value->op == NULL ? value->block->parent_op : NULL;
    if (printer_is_unfused(p, value->op)) {
      value = mp_block_terminator(value->op->regions[0])->operands[value->index];
    } else if (printer_is_unfused(p, around)) {
      value = around->operands[value->index];
    } else {
      return value;
    }
  }
}

void mp_printer_value(mp_printer_t *p, const mp_value_t *value) {
  value = printer_unfused(p, value);
  const void *key = value->op != NULL ? (const void *)value->op : (const void *)value;
  const mp_print_name_t *known;
  uint64_t name;
  if (MP_HASH_MAP_GET(&p->names, mp_hash_pointer(key), known) != NULL) {
    name = known->name;
  } else {
    // When an op is printed alone, its operands are named where they are first met.
    name = value->op != NULL ? p->next_result++ << 1 : p->next_arg++ << 1 | ARG_FLAG;
    printer_set_name(p, key, name);
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

static void printer_result_types(mp_printer_t *p, const mp_op_t *op) {
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
  printer_result_types(p, op);
}

// ---- attributes ----

static const mp_named_attr_t *printer_next_discardable(const mp_op_t *op, uint32_t *i) {
  for (; *i < op->num_attrs; ++*i)
    if (mp_schema_find(op->code, op->attrs[*i].name) == NULL) return &op->attrs[*i];
  return NULL;
}

// MLIR prints all attributes by name. An op's own and its discardable attributes are each sorted by
// name already, so the two lists are merged.
void mp_printer_attr_dict(mp_printer_t *p, const mp_op_t *op, const mp_attr_name_t *skip,
                          uint32_t num_skip) {
  mp_print_item_t items[MP_MAX_PRINTED_ATTRS];
  uint32_t count = mp_print_own_items(op, skip, num_skip, items);
  uint32_t own = 0, other = 0;
  const char *before = " {";
  while (true) {
    const mp_named_attr_t *attr = printer_next_discardable(op, &other);
    if (own == count && attr == NULL) break;
    mp_strbuf_puts(p->out, before);
    before = ", ";
    if (own < count && (attr == NULL || mp_str_compare(items[own].name, attr->text) <= 0)) {
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
static void printer_properties(mp_printer_t *p, const mp_op_t *op) {
  mp_print_item_t items[MP_MAX_PRINTED_ATTRS];
  uint32_t count = mp_print_own_items(op, NULL, 0, items);
  for (uint32_t i = 0; i < count; ++i) {
    mp_strbuf_puts(p->out, i == 0 ? " <{" : ", ");
    mp_print_item(op, &items[i], p->out);
  }
  if (count > 0) mp_strbuf_puts(p->out, "}>");
}

static void printer_discardable(mp_printer_t *p, const mp_op_t *op) {
  const char *before = " {";
  for (uint32_t i = 0; printer_next_discardable(op, &i) != NULL; ++i) {
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

static void printer_ops(mp_printer_t *p, const mp_block_t *block) {
  ++p->indent;
  for (const mp_op_t *op = block->first; op != NULL; op = op->next) {
    const bool is_unfused = printer_is_unfused(p, op);
    const mp_op_t *in = is_unfused ? op->regions[0]->first : op;
    const mp_op_t *end = is_unfused ? mp_block_terminator(op->regions[0]) : op->next;
    for (; in != end; in = in->next) {
      mp_printer_newline(p);
      mp_printer_op(p, in);
    }
  }
  --p->indent;
}

void mp_printer_region(mp_printer_t *p, const mp_block_t *block) {
  mp_strbuf_putc(p->out, '{');
  printer_ops(p, block);
  mp_printer_newline(p);
  mp_strbuf_putc(p->out, '}');
}

// Names the block's arguments and prints {^bb0(...): ops}, which is a region in the generic form.
static void printer_generic_region(mp_printer_t *p, const mp_block_t *block) {
  mp_strbuf_putc(p->out, '{');
  if (block->num_args > 0) {
    mp_printer_newline(p);
    mp_strbuf_puts(p->out, "^bb0");
    mp_printer_name_args(p, block);
    mp_printer_block_args(p, block);
    mp_strbuf_putc(p->out, ':');
  }
  printer_ops(p, block);
  mp_printer_newline(p);
  mp_strbuf_putc(p->out, '}');
}

// The terminator is one op in the IR, but three ops in the text; which one depends on what the
// block belongs to.
static const char *printer_generic_name(const mp_op_t *op) {
  if (!mp_op_has(op, MP_OP_TRAIT_TERMINATOR) || op->parent == NULL)
    return mp_op_info(op->code)->name;
  const mp_op_t *outer = op->parent->parent_op;
  if (outer == NULL) return "func.return";
  return mp_op_is_sdy(outer) ? "sdy.return" : "stablehlo.return";
}

static void printer_generic(mp_printer_t *p, const mp_op_t *op) {
  mp_strbuf_printf(p->out, "\"%s\"(", printer_generic_name(op));
  mp_printer_operands(p, op, 0, op->num_operands);
  mp_strbuf_putc(p->out, ')');
  printer_properties(p, op);
  for (uint32_t i = 0; i < op->num_regions; ++i) {
    mp_strbuf_puts(p->out, i == 0 ? " (" : ", ");
    printer_generic_region(p, op->regions[i]);
  }
  if (op->num_regions > 0) mp_strbuf_putc(p->out, ')');
  printer_discardable(p, op);
  mp_strbuf_puts(p->out, " : ");
  mp_printer_function_type(p, op);
}

// StableHLO has no exchange. It is printed as a custom call, so that other tools can at least read
// the program.
static void printer_exchange(mp_printer_t *p, const mp_op_t *op) {
  mp_strbuf_puts(p->out, "stablehlo.custom_call @minipod.exchange(");
  mp_printer_operands(p, op, 0, op->num_operands);
  mp_strbuf_puts(p->out, ") : ");
  mp_printer_function_type(p, op);
}

void mp_printer_op(mp_printer_t *p, const mp_op_t *op) {
  if (op->num_results > 0) {
    printer_name_results(p, op);
    uint64_t name = p->next_result - 1;
    mp_strbuf_printf(p->out, "%%%" PRIu64, name);
    if (op->num_results > 1) mp_strbuf_printf(p->out, ":%u", op->num_results);
    mp_strbuf_puts(p->out, " = ");
  }
  if (op->code == MP_OP_EXCHANGE) {
    printer_exchange(p, op);
  } else if (p->options.generic || !p->pretty(p, op)) {
    printer_generic(p, op);
  }
  if (p->options.locations) {
    mp_strbuf_putc(p->out, ' ');
    mp_print_loc(op->loc, &p->room_for_locs, p->out);
  }
}
