// The table of options (sim/base/options.h) with their values in this environment, as JSON.
#include <stdio.h>
#include <stdlib.h>

#include "pjrt/command/command.h"
#include "sim/base/options.h"

static void verb_options_put_value(mp_strbuf_t *out, const mp_option_info_t *info,
                                   const mp_options_t *options, mp_option_id_t id) {
  const bool is_given = options->source[id] == MP_SOURCE_ENVIRONMENT;
  const char *text = is_given ? getenv(info->environment) : info->default_text;
  mp_strbuf_put_json(out, mp_str(text == NULL ? "" : text));
}

static void verb_options_put(mp_strbuf_t *out, const mp_options_t *options, mp_option_id_t id) {
  static const char *const types[] = {
      [MP_OPTION_INT] = "int",
      [MP_OPTION_BYTES] = "bytes",
      [MP_OPTION_STRING] = "string",
      [MP_OPTION_LOG_LEVEL] = "string",
  };
  const mp_option_info_t *info = mp_option_info(id);
  const struct {
    const char *key, *text;
  } texts[] = {{"name", info->name},
               {"variable", info->environment},
               {"type", types[info->type]},
               {"default", info->default_text},
               {"unit", info->unit},
               {"source", options->source[id] == MP_SOURCE_ENVIRONMENT ? "environment" : "default"},
               {"help", info->help}};
  mp_strbuf_puts(out, "{\"value\": ");
  verb_options_put_value(out, info, options, id);
  for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); ++i) {
    mp_strbuf_printf(out, ", \"%s\": ", texts[i].key);
    mp_strbuf_put_json(out, mp_str(texts[i].text));
  }
  mp_strbuf_putc(out, '}');
}

static const char g_usage[] =
    "usage: minipod options\n"
    "\n"
    "Prints all options as a list of JSON objects: name, variable, default, and the value in the\n"
    "environment.\n"
    "\n"
    "  --version  print the version of minipod\n";

int mp_verb_options(int argc, char **argv) {
  if (mp_command_answers(argc, argv, g_usage)) return MP_EXIT_GOOD;
  if (argc > 1) return mp_command_misuse(argv[0], mp_command_unexpected(argv[1]));
  mp_options_t *options = NULL;
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_status_t status = mp_options_create(NULL, 0, &options);
  if (status == NULL) {
    mp_strbuf_putc(&text, '[');
    const char *between = "";
    for (int id = 0; id < MP_OPTION_ID_COUNT; ++id) {
      if (mp_option_info((mp_option_id_t)id)->environment[0] == '\0') continue;
      mp_strbuf_puts(&text, between);
      verb_options_put(&text, options, (mp_option_id_t)id);
      between = ",\n ";
    }
    mp_strbuf_puts(&text, "]\n");
    status = mp_strbuf_status(&text);
  }
  if (status == NULL) fputs(mp_strbuf_text(&text), stdout);
  mp_strbuf_deinit(&text);
  mp_options_release(options);
  return mp_command_end(argv[0], status);
}
