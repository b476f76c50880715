// minipod-topo: prints the pod that given options make: the machine that hwloc finds, and the
// devices it becomes. Arguments are name=value options; the environment counts too.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/options.h"
#include "topology/pod.h"

enum { MAX_OPTIONS = 32 };

static void print_help(void) {
  printf("usage: minipod-topo [name=value ...]\n\nPrints the pod that these options make.\n\n");
  for (int id = 0; id < MP_OPTION_ID_COUNT; ++id) {
    const mp_option_info_t *info = mp_option_info((mp_option_id_t)id);
    if (info->environment[0] == '\0') continue;
    printf("  %-14s %s\n  %-14s (or %s)\n", info->name, info->help, "", info->environment);
  }
}

static mp_status_t print_pod(const mp_named_value_t *values, size_t count) {
  mp_options_t *options = NULL;
  mp_pod_t *pod = NULL;
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_status_t status = NULL;
  MP_GOTO_IF_ERROR(status, mp_options_create(values, count, &options), done);
  MP_GOTO_IF_ERROR(status, mp_pod_create(options, &pod), done);
  mp_pod_describe(pod, &text);
  MP_GOTO_IF_ERROR(status, mp_strbuf_status(&text), done);
  fputs(mp_strbuf_text(&text), stdout);
done:
  mp_strbuf_deinit(&text);
  mp_pod_release(pod);
  mp_options_release(options);
  return status;
}

int main(int argc, char **argv) {
  mp_named_value_t values[MAX_OPTIONS];
  size_t count = 0;
  for (int i = 1; i < argc; ++i) {
    const char *equals = strchr(argv[i], '=');
    if (equals == NULL || count == MAX_OPTIONS) {
      print_help();
      return strcmp(argv[i], "--help") == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    values[count++] = (mp_named_value_t){.name = {argv[i], (size_t)(equals - argv[i])},
                                         .type = MP_VALUE_STRING,
                                         .string_value = mp_str(equals + 1)};
  }
  mp_status_t status = print_pod(values, count);
  if (status == NULL) return EXIT_SUCCESS;
  fprintf(stderr, "minipod-topo: %s\n", mp_status_message(status));
  mp_status_release(status);
  return EXIT_FAILURE;
}
