// Prints modules in MLIR's generic form.
#include "sim/mosaic/ir/mosaic_print.h"

#include "sim/ir/print/print_parts.h"

static void mosaic_print_indent(int depth, mp_strbuf_t *out) {
  for (int i = 0; i < depth; ++i) mp_strbuf_puts(out, "  ");
}

static void mosaic_print_types(const mp_mosaic_op_t *op, mp_strbuf_t *out) {
  mp_strbuf_puts(out, " : (");
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    if (i > 0) mp_strbuf_puts(out, ", ");
    mp_mosaic_type_print(op->operands[i]->type, out);
  }
  mp_strbuf_puts(out, op->num_results == 1 ? ") -> " : ") -> (");
  for (uint32_t i = 0; i < op->num_results; ++i) {
    if (i > 0) mp_strbuf_puts(out, ", ");
    mp_mosaic_type_print(op->results[i].type, out);
  }
  mp_strbuf_puts(out, op->num_results == 1 ? "" : ")");
}

static void mosaic_print_block(const mp_mosaic_block_t *block, int depth, mp_strbuf_t *out);

static void mosaic_print_op(const mp_mosaic_op_t *op, int depth, mp_strbuf_t *out) {
  mosaic_print_indent(depth, out);
  for (uint32_t i = 0; i < op->num_results; ++i)
    mp_strbuf_printf(out, i > 0 ? ", %%%u" : "%%%u", op->results[i].id);
  if (op->num_results > 0) mp_strbuf_puts(out, " = ");
  mp_strbuf_printf(out, "\"stable_mosaic.%s\"(", mp_mosaic_op_info(op->code)->name);
  for (uint32_t i = 0; i < op->num_operands; ++i)
    mp_strbuf_printf(out, i > 0 ? ", %%%u" : "%%%u", op->operands[i]->id);
  mp_strbuf_putc(out, ')');
  for (uint32_t i = 0; i < op->num_regions; ++i) {
    mp_strbuf_puts(out, i == 0 ? " (" : ", ");
    mosaic_print_block(op->regions[i], depth, out);
  }
  if (op->num_regions > 0) mp_strbuf_putc(out, ')');
  if (op->num_attrs > 0) mp_strbuf_putc(out, ' ');
  mp_mosaic_print_attrs(op->attrs, op->num_attrs, out);
  mosaic_print_types(op, out);
  mp_strbuf_putc(out, '\n');
}

static void mosaic_print_block(const mp_mosaic_block_t *block, int depth, mp_strbuf_t *out) {
  mp_strbuf_puts(out, "{\n");
  if (block->num_args > 0) {
    mosaic_print_indent(depth, out);
    mp_strbuf_puts(out, "^bb0(");
    for (uint32_t i = 0; i < block->num_args; ++i) {
      mp_strbuf_printf(out, i > 0 ? ", %%%u: " : "%%%u: ", block->args[i].id);
      mp_mosaic_type_print(block->args[i].type, out);
    }
    mp_strbuf_puts(out, "):\n");
  }
  for (const mp_mosaic_op_t *op = block->first; op != NULL; op = op->next)
    mosaic_print_op(op, depth + 1, out);
  mosaic_print_indent(depth, out);
  mp_strbuf_putc(out, '}');
}

// The name and the type of a function are attributes like others, and the first ones here.
static void mosaic_print_func(const mp_mosaic_func_t *func, mp_strbuf_t *out) {
  mp_strbuf_puts(out, "  \"stable_mosaic.func.func\"() (");
  mosaic_print_block(func->body, 1, out);
  mp_strbuf_puts(out, ") {sym_name = ");
  mp_print_quoted(func->name, out);
  mp_strbuf_puts(out, ", function_type = ");
  mp_mosaic_type_print(func->type, out);
  for (uint32_t i = 0; i < func->num_attrs; ++i) {
    mp_strbuf_puts(out, ", ");
    mp_print_name(func->attrs[i].name, out);
    if (func->attrs[i].value->kind == MP_MOSAIC_UNIT) continue;
    mp_strbuf_puts(out, " = ");
    mp_mosaic_print_attr(func->attrs[i].value, out);
  }
  mp_strbuf_puts(out, "} : () -> ()\n");
}

void mp_mosaic_print(const mp_mosaic_module_t *module, mp_strbuf_t *out) {
  mp_strbuf_puts(out, "module ");
  if (module->name.size > 0) {
    mp_print_symbol(module->name, out);
    mp_strbuf_putc(out, ' ');
  }
  mp_strbuf_printf(out, "attributes {stable_mosaic.version = %lld : i64} {\n",
                   (long long)module->version);
  for (const mp_mosaic_func_t *func = module->funcs.first; func != NULL; func = func->next)
    mosaic_print_func(func, out);
  mp_strbuf_puts(out, "}\n");
}
