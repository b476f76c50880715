// The per-device program, headed by a report about the communication between devices.
#include <stdio.h>
#include <string.h>

#include "pjrt/command/command.h"
#include "pjrt/compile/pjrt_compile.h"
#include "sim/plan/compile.h"

static const char g_usage[] =
    "usage: minipod partition [--devices N] [--form NAME] [--commands] FILE\n"
    "\n"
    "Partitions a program (StableHLO as MLIR bytecode or text, or HLO) by its shardings, and "
    "prints\n"
    "its communication and the program of one device.\n"
    "\n"
    "  --devices N   number of partitions; default: from the program (mhlo.num_partitions)\n"
    "  --form NAME   FILE is mlir (the default), hlo (an HloModuleProto) or hlo_with_config\n"
    "  --commands    print the commands of a device instead of the program\n"
    "  --version     print the version of minipod\n"
    "  FILE          - is the standard input\n";

typedef struct {
  const char *path;
  mp_compile_request_t request;
  bool is_commands;
} verb_partition_request_t;

static mp_status_t verb_partition_read_devices(const char *text, uint32_t *out_count) {
  long long count;
  MP_RETURN_IF_ERROR(mp_command_read_number("--devices", text, 1, 65536, &count));
  *out_count = (uint32_t)count;
  return NULL;
}

static mp_status_t verb_partition_read_arguments(int argc, char **argv,
                                                 verb_partition_request_t *out) {
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--commands") == 0) {
      out->is_commands = true;
    } else if (strcmp(argv[i], "--devices") == 0) {
      // The last argument is followed by NULL.
      MP_RETURN_IF_ERROR(verb_partition_read_devices(argv[++i], &out->request.num_partitions));
    } else if (strcmp(argv[i], "--form") == 0) {
      MP_RETURN_IF_ERROR(mp_command_read_form(argv[++i], &out->request.form));
    } else if (out->path == NULL && (argv[i][0] != '-' || argv[i][1] == '\0')) {
      out->path = argv[i];
    } else {
      return mp_command_unexpected(argv[i]);
    }
  }
  return out->path == NULL ? mp_command_missing("FILE") : NULL;
}

static mp_status_t verb_partition_print(const verb_partition_request_t *asked,
                                        const mp_program_t *program) {
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_status_t status = NULL;
  if (asked->is_commands) {
    mp_program_print(program, &text);
  } else {
    status = mp_pjrt_print_program(program, program->module->attrs, true, &text);
  }
  if (status == NULL) status = mp_strbuf_status(&text);
  if (status == NULL) fwrite(mp_strbuf_text(&text), 1, text.size, stdout);
  mp_strbuf_deinit(&text);
  return status;
}

static mp_status_t verb_partition_run(const verb_partition_request_t *asked) {
  mp_strbuf_t code;
  mp_strbuf_init(&code);
  mp_program_t *program = NULL;
  mp_status_t status = mp_command_read(asked->path, &code);
  if (status == NULL) {
    status = mp_status_annotate(
        mp_compile(mp_strbuf_text(&code), code.size, &asked->request, &program), "%s", asked->path);
  }
  mp_strbuf_deinit(&code);
  if (status == NULL) status = mp_command_name_places(asked->path, program->module);
  if (status == NULL) status = verb_partition_print(asked, program);
  mp_program_release(program);
  return status;
}

int mp_verb_partition(int argc, char **argv) {
  // Functions that only frameworks register may be missing, because nothing runs.
  verb_partition_request_t asked = {.request = {.absent_calls = true}};
  if (mp_command_answers(argc, argv, g_usage)) return MP_EXIT_GOOD;
  mp_status_t status = verb_partition_read_arguments(argc, argv, &asked);
  if (status != NULL) return mp_command_misuse(argv[0], status);
  return mp_command_end_of(argv[0], asked.path, verb_partition_run(&asked));
}
