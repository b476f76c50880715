// minipod-opt: reads a program (MLIR bytecode or text, or HLO), verifies it and prints it as
// StableHLO text. For bug reports and for inspecting a framework's programs; with --propagate, also
// the partitioner's shardings.
#include <stdio.h>
#include <string.h>

#include "pjrt/command/command.h"
#include "sim/ir/compare/module_equal.h"
#include "sim/ir/print/print_module.h"
#include "sim/ir/verify/verify.h"
#include "sim/mosaic/read/mosaic_call.h"
#include "sim/mosaic/read/mosaic_reader.h"
#include "sim/passes/passes.h"
#include "sim/readers/text/text.h"
#include "sim/spmd/gspmd/gspmd_import.h"
#include "sim/spmd/propagation/propagate.h"
#include "sim/spmd/rules/rules.h"

typedef struct {
  mp_print_options_t print;
  mp_program_form_t form;
  bool unverified;
  bool check;
  bool rules;
  bool prepare;
  bool number;
  bool propagate;
  bool mosaic;
  const char *path;
} arguments_t;

static const char g_usage[] =
    "usage: minipod opt [OPTION ...] FILE\n"
    "\n"
    "Reads a StableHLO program, MLIR bytecode or text, verifies it and prints it as text.\n"
    "The same for a Mosaic module, which is a kernel for TPUs.\n"
    "\n"
    "  --form=NAME  FILE is mlir, hlo (an HloModuleProto) or hlo_with_config\n"
    "  --generic    print every operation in its generic form\n"
    "  --locations  print source locations\n"
    "  --elide=N    print constants of more than N elements as dense<...>\n"
    "  --no-verify  do not verify\n"
    "  --rules      print the sharding rule of each operation, as sdy.sharding_rule\n"
    "  --check      print nothing; fail if the text would not read back to the same module\n"
    "  --prepare    print the input of the partitioner: functions inlined, ops desugared\n"
    "  --number     give the n-th operation the location \"op<n>\"; implies --locations\n"
    "  --propagate  print the same as --prepare, with the propagated sharding of every value\n"
    "  --mosaic     print the Mosaic modules of the program's kernels (tpu_custom_call) instead\n"
    "  FILE         - is the standard input\n"
    "  --version    print the version of minipod\n"
    "\n"
    "`minipod partition` divides a program among devices.\n";

static mp_status_t verb_opt_read_elide(const char *text, uint32_t *out_elements) {
  long long count;
  MP_RETURN_IF_ERROR(mp_command_read_number("--elide", text, 0, UINT32_MAX, &count));
  *out_elements = (uint32_t)count;
  return NULL;
}

static mp_status_t verb_opt_parse_arguments(int argc, char **argv, arguments_t *out) {
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--generic") == 0)
      out->print.generic = true;
    else if (strcmp(argv[i], "--locations") == 0)
      out->print.locations = true;
    else if (strcmp(argv[i], "--no-verify") == 0)
      out->unverified = true;
    else if (strcmp(argv[i], "--rules") == 0)
      out->rules = true;
    else if (strcmp(argv[i], "--check") == 0)
      out->check = true;
    else if (strcmp(argv[i], "--prepare") == 0)
      out->prepare = true;
    else if (strcmp(argv[i], "--mosaic") == 0)
      out->mosaic = true;
    else if (strcmp(argv[i], "--number") == 0)
      out->number = out->print.locations = true;
    else if (strcmp(argv[i], "--propagate") == 0)
      out->prepare = out->propagate = true;
    else if (strncmp(argv[i], "--elide=", 8) == 0)
      MP_RETURN_IF_ERROR(verb_opt_read_elide(argv[i] + 8, &out->print.elide_elements));
    else if (strncmp(argv[i], "--form=", 7) == 0)
      MP_RETURN_IF_ERROR(mp_command_read_form(argv[i] + 7, &out->form));
    else if (out->path == NULL && (argv[i][0] != '-' || argv[i][1] == '\0'))
      out->path = argv[i];
    else
      return mp_command_unexpected(argv[i]);
  }
  return out->path == NULL ? mp_command_missing("FILE") : NULL;
}

// The printed text must read back to the same module.
static mp_status_t verb_opt_check_text(const mp_module_t *module, const mp_strbuf_t *text) {
  mp_module_t *again = NULL;
  MP_RETURN_IF_ERROR(mp_status_annotate(mp_read_text(mp_strbuf_text(text), text->size, &again),
                                        "reading back what was printed"));
  mp_status_t status = mp_module_compare(module, again);
  mp_module_release(again);
  return status;
}

static mp_status_t verb_opt_add_rule(void *context, mp_op_t *op) {
  mp_module_t *module = context;
  const mp_rule_t *rule = NULL;
  const mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_rule_create(module->arena, op, &rule));
  if (rule == NULL || rule->num_operands == 0) return NULL;  // there is no rule to print
  MP_RETURN_IF_ERROR(mp_rule_export(module->arena, op, rule, &attr));
  return mp_op_set_attr(module, op, MP_ATTR_SDY_SHARDING_RULE, attr);
}

typedef struct {
  mp_module_t *module;
  uint32_t next;
} numberer_t;

static mp_status_t verb_opt_number_op(void *context, mp_op_t *op) {
  numberer_t *numberer = context;
  mp_loc_t *loc = MP_ARENA_NEW(numberer->module->arena, mp_loc_t);
  char name[32];
  const int size = snprintf(name, sizeof(name), "op%u", numberer->next++);
  char *text = mp_arena_strndup(numberer->module->arena, name, (size_t)size);
  if (loc == NULL || text == NULL) return mp_status_out_of_memory();
  *loc = (mp_loc_t){.kind = MP_LOC_NAME, .text = {text, (size_t)size}};
  op->loc = loc;
  return NULL;
}

static mp_status_t verb_opt_propagate(mp_module_t *module) {
  const mp_func_t *main = module->main;
  bool *params = MP_ARENA_ARRAY(module->arena, bool, main->body->num_args + 1);
  bool *results = MP_ARENA_ARRAY(module->arena, bool, main->num_results + 1);
  if (params == NULL || results == NULL) return mp_status_out_of_memory();
  memset(params, true, main->body->num_args);
  memset(results, true, main->num_results);
  const mp_propagate_options_t options = {module->num_partitions, params, results, false};
  mp_propagation_t propagation;
  bool found = false;
  MP_RETURN_IF_ERROR(mp_propagate(module, &options, &propagation, &found));
  if (!found) return mp_status_make(MP_UNIMPLEMENTED, "its shardings have no common mesh");
  return mp_propagation_annotate(module, &propagation);
}

// Propagates shardings, as the partitioner does before it rewrites the program.
static mp_status_t verb_opt_transform(const arguments_t *arguments, mp_module_t *module) {
  if (arguments->prepare) {
    MP_RETURN_IF_ERROR(mp_spmd_import_gspmd(module, module->num_partitions));
    MP_RETURN_IF_ERROR(mp_passes_prepare(module));
  }
  numberer_t numberer = {.module = module};
  if (arguments->number) MP_RETURN_IF_ERROR(mp_module_walk(module, verb_opt_number_op, &numberer));
  if (arguments->rules) MP_RETURN_IF_ERROR(mp_module_walk(module, verb_opt_add_rule, module));
  return arguments->propagate ? verb_opt_propagate(module) : NULL;
}

// ---- kernels in Mosaic ----

// Each op of such a module has the dialect's name, as has its list of dialects in bytecode;
// programs carry modules in base64.
static bool verb_opt_is_mosaic(mp_str_t bytes) {
  static const char dialect[] = "stable_mosaic";
  const size_t size = sizeof(dialect) - 1;
  for (size_t i = 0; bytes.size >= size && i <= bytes.size - size; ++i)
    if (bytes.data[i] == dialect[0] && memcmp(bytes.data + i, dialect, size) == 0) return true;
  return false;
}

static mp_status_t verb_opt_print_verified(const mp_mosaic_module_t *module, bool unverified,
                                           mp_strbuf_t *out) {
  if (!unverified) MP_RETURN_IF_ERROR(mp_mosaic_verify(module));
  mp_mosaic_print(module, out);
  return mp_strbuf_status(out);
}

static mp_status_t verb_opt_print_mosaic(mp_str_t bytes, bool unverified, mp_strbuf_t *out) {
  mp_mosaic_module_t *module = NULL;
  MP_RETURN_IF_ERROR(mp_mosaic_read(bytes.data, bytes.size, &module));
  mp_status_t status = verb_opt_print_verified(module, unverified, out);
  mp_mosaic_module_release(module);
  return status;
}

typedef struct {
  bool unverified;
  mp_strbuf_t *out;
} printer_t;

static mp_status_t verb_opt_print_kernel(void *context, mp_op_t *op) {
  const printer_t *printer = context;
  if (op->code != MP_OP_CUSTOM_CALL ||
      !mp_str_is(mp_op_str(op, MP_ATTR_CALL_TARGET_NAME), "tpu_custom_call"))
    return NULL;
  mp_mosaic_call_t call = {0};
  mp_status_t status = mp_mosaic_read_call(mp_op_str(op, MP_ATTR_BACKEND_CONFIG), &call);
  if (status != NULL) return mp_op_error_at(op, status);
  mp_strbuf_puts(printer->out, "// ");
  mp_loc_describe(op->loc, printer->out);
  mp_strbuf_putc(printer->out, '\n');
  status = verb_opt_print_verified(call.module, printer->unverified, printer->out);
  mp_mosaic_module_release(call.module);
  return status;
}

static mp_status_t verb_opt_print_kernels(mp_module_t *module, bool unverified, mp_strbuf_t *out) {
  printer_t printer = {unverified, out};
  return mp_module_walk(module, verb_opt_print_kernel, &printer);
}

// ---- the verb ----

static mp_status_t verb_opt_print(const arguments_t *arguments, mp_str_t bytes,
                                  mp_module_t **module, mp_strbuf_t *out) {
  MP_RETURN_IF_ERROR(mp_read_program(bytes.data, bytes.size, arguments->form, module));
  MP_RETURN_IF_ERROR(mp_command_name_places(arguments->path, *module));
  if (!arguments->unverified) MP_RETURN_IF_ERROR(mp_module_verify(*module));
  if (arguments->mosaic) return verb_opt_print_kernels(*module, arguments->unverified, out);
  MP_RETURN_IF_ERROR(verb_opt_transform(arguments, *module));
  MP_RETURN_IF_ERROR(mp_module_print(*module, &arguments->print, out));
  return arguments->check ? verb_opt_check_text(*module, out) : NULL;
}

static mp_status_t verb_opt_run(const arguments_t *arguments) {
  mp_strbuf_t bytes, text;
  mp_strbuf_init(&bytes);
  mp_strbuf_init(&text);
  mp_module_t *module = NULL;
  mp_status_t status = mp_command_read(arguments->path, &bytes);
  const mp_str_t program = {mp_strbuf_text(&bytes), bytes.size};
  if (status == NULL && verb_opt_is_mosaic(program))
    status = verb_opt_print_mosaic(program, arguments->unverified, &text);
  else if (status == NULL)
    status = verb_opt_print(arguments, program, &module, &text);
  if (status == NULL && !arguments->check) fwrite(mp_strbuf_text(&text), 1, text.size, stdout);
  if (bytes.size != 0) status = mp_status_annotate(status, "%s", arguments->path);
  mp_module_release(module);
  mp_strbuf_deinit(&text);
  mp_strbuf_deinit(&bytes);
  return status;
}

int mp_verb_opt(int argc, char **argv) {
  arguments_t arguments = {0};
  if (mp_command_answers(argc, argv, g_usage)) return MP_EXIT_GOOD;
  mp_status_t status = verb_opt_parse_arguments(argc, argv, &arguments);
  if (status != NULL) return mp_command_misuse(argv[0], status);
  return mp_command_end_of(argv[0], arguments.path, verb_opt_run(&arguments));
}
