// Prints programs as described chips run them.
#include <stdio.h>
#include <string.h>

#include "pjrt/command/chip_target.h"
#include "pjrt/command/command.h"
#include "sim/base/alloc.h"
#include "sim/base/options.h"
#include "sim/chip/rules/chip_rules.h"
#include "sim/plan/compile.h"

static const char g_usage[] =
    "usage: minipod chip [OPTION ...] FILE ...\n"
    "       minipod chip --parameters [--target POD]\n"
    "       minipod chip --rules\n"
    "\n"
    "Prints programs (StableHLO as MLIR bytecode or text, or HLO) as a described chip runs them:\n"
    "kernels with their ops, what they read and write and where, their times, collectives, and\n"
    "the memory that a device needs. Nothing runs.\n"
    "\n"
    "  --target POD    a line such as \"v5e\", \"v5e:4x4\" or \"h100:8\", or a YAML file; without "
    "a\n"
    "                  grid one device. Repeat it for several. Default: MINIPOD_TOPOLOGY\n"
    "  --devices N     partitions of the program; default: from the program\n"
    "  --form NAME     FILE is mlir (the default), hlo (an HloModuleProto) or hlo_with_config\n"
    "  --json          print a line of JSON for each program and target, with its kernels\n"
    "  --summary       the same without kernels; a program that fails becomes a line with `error`\n"
    "  --stage PASS    print the program as text, as it is after fuse, layout, memory, cost or\n"
    "                  schedule (the default, the last one)\n"
    "  --structure     leave times out of the text\n"
    "  --ablate        the same as `base`, and `without` each rule of the model that the program\n"
    "                  uses\n"
    "  --parameters    print the parameters of the pod's chip: key, value, kind of source, "
    "meaning\n"
    "  --rules         print the rules of the model, then its passes: name, compiler, pass,\n"
    "                  meaning, rule or pass\n"
    "  --version       print the version of minipod\n"
    "  FILE            - is the standard input\n"
    "\n"
    "Loops whose trip count is unknown count once.\n";

enum { MAX_TARGETS = 64 };

typedef struct {
  const char *targets[MAX_TARGETS];
  uint32_t num_targets;
  const char **files;  // pointers into argv
  uint32_t num_files;
  mp_chip_look_t look;
  bool is_parameters;
  mp_compile_request_t request;
} verb_chip_request_t;

// ---- arguments ----

static mp_status_t verb_chip_read_target(const char *value, verb_chip_request_t *out) {
  if (value == NULL) return mp_command_bad_value("--target", value, "a pod such as v5e:4x4");
  if (out->num_targets == MAX_TARGETS) {
    return mp_status_make(MP_INVALID_ARGUMENT, "more than %d targets", MAX_TARGETS);
  }
  out->targets[out->num_targets++] = value;
  return NULL;
}

static mp_status_t verb_chip_read_stage(const char *value, verb_chip_request_t *out) {
  if (value != NULL && mp_chip_stage_from_name(mp_str(value), &out->look.stage)) return NULL;
  return mp_command_bad_value("--stage", value, "fuse, layout, memory, cost or schedule");
}

// Stages and structure are of the text alone.
static mp_status_t verb_chip_check_look(const verb_chip_request_t *asked) {
  const bool is_text = asked->look.form == MP_CHIP_TEXT;
  if (is_text || (asked->look.stage == MP_CHIP_STAGE_SCHEDULE && !asked->look.is_structure)) {
    return NULL;
  }
  return mp_status_make(MP_INVALID_ARGUMENT,
                        "--stage and --structure print text: they cannot be combined with --json, "
                        "--summary or --ablate");
}

static mp_status_t verb_chip_read_arguments(int argc, char **argv, verb_chip_request_t *out) {
  for (int i = 1; i < argc; ++i) {
    long long number;
    if (strcmp(argv[i], "--json") == 0) {
      out->look.form = MP_CHIP_JSON;
    } else if (strcmp(argv[i], "--summary") == 0) {
      out->look.form = MP_CHIP_SUMMARY;
    } else if (strcmp(argv[i], "--ablate") == 0) {
      out->look.form = MP_CHIP_ABLATE;
    } else if (strcmp(argv[i], "--parameters") == 0) {
      out->is_parameters = true;
    } else if (strcmp(argv[i], "--structure") == 0) {
      out->look.is_structure = true;
    } else if (strcmp(argv[i], "--stage") == 0) {
      MP_RETURN_IF_ERROR(verb_chip_read_stage(argv[++i], out));
    } else if (strcmp(argv[i], "--target") == 0) {
      MP_RETURN_IF_ERROR(verb_chip_read_target(argv[++i], out));  // argv ends in NULL
    } else if (strcmp(argv[i], "--devices") == 0) {
      MP_RETURN_IF_ERROR(mp_command_read_number("--devices", argv[++i], 1, 65536, &number));
      out->request.num_partitions = (uint32_t)number;
    } else if (strcmp(argv[i], "--form") == 0) {
      MP_RETURN_IF_ERROR(mp_command_read_form(argv[++i], &out->request.form));
    } else if (argv[i][0] != '-' || argv[i][1] == '\0') {
      out->files[out->num_files++] = argv[i];
    } else {
      return mp_command_unexpected(argv[i]);
    }
  }
  MP_RETURN_IF_ERROR(verb_chip_check_look(out));
  const bool is_missing = out->num_files == 0 && !out->is_parameters;
  return is_missing ? mp_command_missing("FILE") : NULL;
}

// ---- programs ----

static mp_status_t verb_chip_compile(const verb_chip_request_t *asked, const char *path,
                                     mp_program_t **out_program) {
  mp_strbuf_t code;
  mp_strbuf_init(&code);
  mp_status_t status = mp_command_read(path, &code);
  if (status == NULL) {
    status = mp_status_annotate(
        mp_compile(mp_strbuf_text(&code), code.size, &asked->request, out_program), "%s", path);
  }
  mp_strbuf_deinit(&code);
  if (status == NULL) status = mp_command_name_places(path, (*out_program)->module);
  return status;
}

// In a summary an error is a line of its own, and the next program follows.
static mp_status_t verb_chip_end(const verb_chip_request_t *asked, const char *path,
                                 const char *target, mp_status_t status, mp_strbuf_t *text) {
  if (status == NULL) status = mp_strbuf_status(text);
  if (status == NULL) {
    printf("%.*s%s", (int)text->size, mp_strbuf_text(text),
           asked->look.form == MP_CHIP_TEXT ? "" : "\n");
  } else if (asked->look.form == MP_CHIP_SUMMARY || asked->look.form == MP_CHIP_ABLATE) {
    mp_strbuf_t line;
    mp_strbuf_init(&line);
    mp_strbuf_puts(&line, "{\"file\": ");
    mp_strbuf_put_json(&line, mp_str(path));
    mp_strbuf_puts(&line, ", \"target\": ");
    mp_strbuf_put_json(&line, mp_str(target));
    mp_strbuf_puts(&line, ", \"error\": ");
    mp_strbuf_put_json(&line, mp_str(mp_status_message(status)));
    printf("%s}\n", mp_strbuf_text(&line));
    mp_strbuf_deinit(&line);
    mp_status_release(status);
    status = NULL;
  }
  mp_strbuf_deinit(text);
  return status;
}

static mp_status_t verb_chip_run_file(const verb_chip_request_t *asked, const char *path,
                                      const mp_chip_target_t *targets, uint32_t num_targets) {
  mp_program_t *program = NULL;
  mp_strbuf_t text;
  mp_status_t status = verb_chip_compile(asked, path, &program);
  if (status != NULL) {
    mp_strbuf_init(&text);
    return verb_chip_end(asked, path, "", status, &text);
  }
  for (uint32_t i = 0; i < num_targets && status == NULL; ++i) {
    mp_strbuf_init(&text);
    status = mp_chip_target_print(&targets[i], &asked->look, path, program, &text);
    status = verb_chip_end(asked, path, targets[i].name, status, &text);
  }
  mp_program_release(program);
  return status;
}

static mp_status_t verb_chip_print_parameters(const mp_chip_target_t *target) {
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_chip_figures_print(&mp_model_chip(target->model)->figures, &text);
  const mp_status_t status = mp_strbuf_status(&text);
  if (status == NULL) fputs(mp_strbuf_text(&text), stdout);
  mp_strbuf_deinit(&text);
  return status;
}

static mp_status_t verb_chip_run_files(const verb_chip_request_t *asked,
                                       const mp_options_t *options, mp_chip_target_t *targets,
                                       const char **out_path) {
  const uint32_t count = asked->num_targets == 0 ? 1 : asked->num_targets;
  for (uint32_t i = 0; i < count; ++i) {
    const char *name = asked->num_targets == 0 ? NULL : asked->targets[i];
    MP_RETURN_IF_ERROR(mp_chip_target_make(options, name, &targets[i]));
    if (asked->is_parameters) MP_RETURN_IF_ERROR(verb_chip_print_parameters(&targets[i]));
  }
  for (uint32_t i = 0; i < asked->num_files; ++i) {
    *out_path = asked->files[i];
    MP_RETURN_IF_ERROR(verb_chip_run_file(asked, asked->files[i], targets, count));
  }
  return NULL;
}

static mp_status_t verb_chip_run(const verb_chip_request_t *asked, const char **out_path) {
  mp_chip_target_t targets[MAX_TARGETS] = {{0}};
  mp_options_t *options = NULL;
  mp_status_t status = mp_options_create(NULL, 0, &options);
  if (status == NULL) status = verb_chip_run_files(asked, options, targets, out_path);
  for (uint32_t i = 0; i < MAX_TARGETS; ++i) mp_chip_target_release(&targets[i]);
  mp_options_release(options);
  return status;
}

static int verb_chip_print_rules(void) {
  for (int i = 0; i < MP_CHIP_RULE_COUNT; ++i) {
    const mp_chip_rule_t rule = (mp_chip_rule_t)i;
    printf("%s\t%s\t%s\t%s\t%s\n", mp_chip_rule_name(rule), mp_chip_rule_compiler(rule),
           mp_chip_rule_pass(rule), mp_chip_rule_meaning(rule),
           mp_chip_rule_is_pass(rule) ? "pass" : "rule");
  }
  return MP_EXIT_GOOD;
}

int mp_verb_chip(int argc, char **argv) {
  static const bool all[] = {true};
  // Nothing runs: nothing is fused for this machine, and functions that only frameworks register
  // may be missing.
  verb_chip_request_t asked = {.look = {.stage = MP_CHIP_STAGE_SCHEDULE},
                               .request = {.absent_calls = true,
                                           .keep_partitioned = true,
                                           .op_by_op = true,
                                           .propagate_to_results = all,
                                           .num_propagate_to_results = 1}};
  if (mp_command_answers(argc, argv, g_usage)) return MP_EXIT_GOOD;
  if (argc == 2 && strcmp(argv[1], "--rules") == 0) return verb_chip_print_rules();
  asked.files = mp_calloc((size_t)argc, sizeof(*asked.files));
  mp_status_t status = asked.files == NULL ? mp_status_out_of_memory() : NULL;
  if (status == NULL) status = verb_chip_read_arguments(argc, argv, &asked);
  if (status != NULL) {
    mp_free(asked.files);
    return mp_command_misuse(argv[0], status);
  }
  const char *path = NULL;
  status = verb_chip_run(&asked, &path);
  mp_free(asked.files);
  return mp_command_end_of(argv[0], path, status);
}
