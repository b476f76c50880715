// The entries of the printer; functions and the module.
#include "sim/ir/print/print_module.h"

#include <inttypes.h>

#include "sim/ir/print/print_parts.h"

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
    mp_print_loc(func->loc, &p->room_for_locs, p->out);
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
  // Programs share call stacks, which the text cannot.
  const uint64_t room_for_locs = (uint64_t)1 << 20;
  mp_printer_t p = {.out = out, .pretty = mp_printer_pretty, .room_for_locs = room_for_locs};
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
  mp_printer_op(&p, op);
  return print_module_finish(&p);
}
