// minipod-opt: reads a program (bytecode or text), verifies it and prints it as StableHLO text.
// For bug reports and for looking at what a framework hands over.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/ir/module_equal.h"
#include "sim/ir/print.h"
#include "sim/ir/verify.h"
#include "sim/readers/reader.h"
#include "sim/readers/text.h"
#include "sim/spmd/rules.h"

typedef struct {
  mp_print_options_t print;
  bool unverified;
  bool check;
  bool rules;
  const char *path;
} arguments_t;

static int print_help(void) {
  puts(
      "usage: minipod-opt [OPTION ...] FILE\n\n"
      "Reads a StableHLO program, MLIR bytecode or text, verifies it and prints it as text.\n\n"
      "  --generic    every operation in its generic form\n"
      "  --locations  with source locations\n"
      "  --elide=N    constants of more than N elements as dense<...>\n"
      "  --no-verify  also what breaks the rules of its operations\n"
      "  --rules      with the sharding rule of each operation, as sdy.sharding_rule\n"
      "  --check      print nothing; an error if the text would not read back to the same module\n"
      "  FILE         - is the standard input");
  return EXIT_FAILURE;
}

static bool parse_arguments(int argc, char **argv, arguments_t *out) {
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
    else if (strncmp(argv[i], "--elide=", 8) == 0)
      out->print.elide_elements = (uint32_t)strtoul(argv[i] + 8, NULL, 10);
    else if (out->path == NULL && (argv[i][0] != '-' || argv[i][1] == '\0'))
      out->path = argv[i];
    else
      return false;
  }
  return out->path != NULL;
}

static mp_status_t read_file(const char *path, mp_strbuf_t *out) {
  FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
  if (file == NULL) return mp_status_make(MP_NOT_FOUND, "cannot open %s", path);
  char block[65536];
  for (size_t size; (size = fread(block, 1, sizeof(block), file)) > 0;)
    mp_strbuf_append(out, block, size);
  bool failed = ferror(file) != 0;
  if (file != stdin) fclose(file);
  if (failed) return mp_status_make(MP_DATA_LOSS, "cannot read %s", path);
  return mp_strbuf_status(out);
}

// The printed text must read back to the same module.
static mp_status_t check_text(const mp_module_t *module, const mp_strbuf_t *text) {
  mp_module_t *again = NULL;
  MP_RETURN_IF_ERROR(mp_status_annotate(mp_read_text(mp_strbuf_text(text), text->size, &again),
                                        "reading back what was printed"));
  mp_status_t status = mp_module_compare(module, again);
  mp_module_release(again);
  return status;
}

static mp_status_t add_rule(void *context, mp_op_t *op) {
  mp_module_t *module = context;
  const mp_rule_t *rule = NULL;
  const mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_rule_create(module->arena, op, &rule));
  if (rule == NULL || rule->num_operands == 0) return NULL;  // says nothing about nothing
  MP_RETURN_IF_ERROR(mp_rule_export(module->arena, op, rule, &attr));
  return mp_op_set_attr(module, op, MP_ATTR_SDY_SHARDING_RULE, attr);
}

static mp_status_t run(const arguments_t *arguments) {
  mp_strbuf_t bytes, text;
  mp_strbuf_init(&bytes);
  mp_strbuf_init(&text);
  mp_module_t *module = NULL;
  mp_status_t status = NULL;
  MP_GOTO_IF_ERROR(status, read_file(arguments->path, &bytes), done);
  MP_GOTO_IF_ERROR(status, mp_read_program(mp_strbuf_text(&bytes), bytes.size, &module), done);
  if (!arguments->unverified) MP_GOTO_IF_ERROR(status, mp_module_verify(module), done);
  if (arguments->rules) MP_GOTO_IF_ERROR(status, mp_module_walk(module, add_rule, module), done);
  MP_GOTO_IF_ERROR(status, mp_module_print(module, &arguments->print, &text), done);
  if (arguments->check)
    status = check_text(module, &text);
  else
    fwrite(mp_strbuf_text(&text), 1, text.size, stdout);
done:
  mp_module_release(module);
  mp_strbuf_deinit(&text);
  mp_strbuf_deinit(&bytes);
  return status;
}

int main(int argc, char **argv) {
  arguments_t arguments = {0};
  if (!parse_arguments(argc, argv, &arguments)) return print_help();
  mp_status_t status = run(&arguments);
  if (status == NULL) return EXIT_SUCCESS;
  fprintf(stderr, "minipod-opt: %s: %s\n", arguments.path, mp_status_message(status));
  mp_status_release(status);
  return EXIT_FAILURE;
}
