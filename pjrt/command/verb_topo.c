// The pod that given options describe: the machine that hwloc finds, and the devices it becomes; as
// a table, as JSON, as a picture of its network, or the distances between its devices. Arguments
// are name=value options; the environment counts too.

#include <stdio.h>
#include <string.h>

#include "pjrt/command/command.h"
#include "pjrt/command/topo_json.h"
#include "pjrt/command/topo_matrix.h"
#include "sim/base/alloc.h"
#include "sim/base/options.h"
#include "sim/model/faults/faults.h"
#include "sim/model/picture/picture.h"
#include "topology/pod.h"

enum { MAX_OPTIONS = 32 };

typedef enum { FORM_TABLE, FORM_SVG, FORM_JSON, FORM_MATRIX } form_t;

typedef struct {
  size_t count;
  mp_named_value_t values[MAX_OPTIONS];
  form_t form;
  bool is_json;
  const char *loads_path;  // or NULL
} request_t;

static const char g_usage[] =
    "usage: minipod topo [--svg [--loads FILE] | --json | -m [--json]] [POD] [name=value ...]\n"
    "\n"
    "Prints the pod that POD (a line such as \"v5e:4x4\", or a YAML file) and these options "
    "describe.\n"
    "\n"
    "  --svg          draw its network instead\n"
    "  --loads FILE   colour links by load: one line 'LINK: SHARE' per link, as in\n"
    "                 'slice 0 (1,2,0) +x: 0.83'; LINK is a link's title in the picture\n"
    "  --json         print devices and links as JSON\n"
    "  -m, --matrix   print the number of links and the bandwidth between devices\n"
    "  --version      print the version of minipod\n"
    "\n"
    "Options, or their variables:\n"
    "\n";

static void verb_topo_print_options(void) {
  for (int id = 0; id < MP_OPTION_ID_COUNT; ++id) {
    const mp_option_info_t *info = mp_option_info((mp_option_id_t)id);
    if (info->environment[0] == '\0') continue;
    printf("  %-14s %s\n  %-14s (or %s)\n", info->name, info->help, "", info->environment);
  }
}

static mp_status_t verb_topo_draw_network(const mp_network_t *network, const char *loads_path,
                                          mp_strbuf_t *out_text) {
  if (loads_path == NULL) return mp_picture_write(network, NULL, out_text);
  double *loads = mp_calloc(mp_network_num_links(network) + 1, sizeof(*loads));
  MP_RETURN_IF_NULL(loads);
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_status_t status = mp_command_read(loads_path, &text);
  if (status == NULL) {
    status = mp_picture_read_loads(network, loads_path,
                                   (mp_str_t){mp_strbuf_text(&text), text.size}, loads);
  }
  if (status == NULL) status = mp_picture_write(network, loads, out_text);
  mp_strbuf_deinit(&text);
  mp_free(loads);
  return status;
}

// Writes the outputs that need the network of the pod.
static mp_status_t verb_topo_write_network(mp_pod_t *pod, const request_t *request,
                                           mp_strbuf_t *out_text) {
  mp_network_t *network = NULL;
  MP_RETURN_IF_ERROR(mp_network_create(pod, NULL, &network));
  mp_status_t status = NULL;
  if (request->form == FORM_SVG) {
    status = verb_topo_draw_network(network, request->loads_path, out_text);
  } else if (request->form == FORM_JSON) {
    mp_topo_json_write(network, out_text);
  } else {
    status = mp_topo_matrix_write(network, request->is_json, out_text);
  }
  mp_network_release(network);
  return status;
}

static mp_status_t verb_topo_print_pod(const request_t *request) {
  mp_options_t *options = NULL;
  mp_pod_t *pod = NULL;
  mp_faults_t *faults = NULL;
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_status_t status = NULL;
  MP_GOTO_IF_ERROR(status, mp_options_create(request->values, request->count, &options), done);
  MP_GOTO_IF_ERROR(status, mp_pod_create(options, &pod), done);
  MP_GOTO_IF_ERROR(status, mp_faults_create(pod, options, &faults), done);
  if (request->form != FORM_TABLE) {
    MP_GOTO_IF_ERROR(status, verb_topo_write_network(pod, request, &text), done);
  } else {
    mp_pod_describe(pod, &text);
    const uint32_t count = mp_faults_count(faults);
    if (count != 0) mp_strbuf_printf(&text, "faults: %u\n", count);
  }
  MP_GOTO_IF_ERROR(status, mp_strbuf_status(&text), done);
  fputs(mp_strbuf_text(&text), stdout);
done:
  mp_strbuf_deinit(&text);
  mp_faults_release(faults);
  mp_pod_release(pod);
  mp_options_release(options);
  return status;
}

static mp_status_t verb_topo_add_option(request_t *request, mp_str_t name, const char *value) {
  if (request->count >= MAX_OPTIONS) {
    return mp_status_make(MP_INVALID_ARGUMENT, "more than %d options", MAX_OPTIONS);
  }
  request->values[request->count++] =
      (mp_named_value_t){.name = name, .type = MP_VALUE_STRING, .string_value = mp_str(value)};
  return NULL;
}

// Finds the first '=' if the text before it can be the name of an option: a pod's line has blanks,
// and a file's name may have any characters.
static const char *verb_topo_find_equals(const char *argument) {
  const size_t size = strspn(argument, "abcdefghijklmnopqrstuvwxyz_");
  return size != 0 && argument[size] == '=' ? argument + size : NULL;
}

static mp_status_t verb_topo_read_option(const char *argument, request_t *out) {
  const char *equals = verb_topo_find_equals(argument);
  if (argument[0] == '-') return mp_command_unexpected(argument);
  if (equals == NULL) return verb_topo_add_option(out, MP_STR("topology"), argument);
  const mp_str_t name = {argument, (size_t)(equals - argument)};
  return verb_topo_add_option(out, name, equals + 1);
}

static mp_status_t verb_topo_read_arguments(int argc, char **argv, request_t *out) {
  bool is_svg = false, is_matrix = false;
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--svg") == 0) {
      is_svg = true;
    } else if (strcmp(argv[i], "--json") == 0) {
      out->is_json = true;
    } else if (strcmp(argv[i], "-m") == 0 || strcmp(argv[i], "--matrix") == 0) {
      is_matrix = true;
    } else if (strcmp(argv[i], "--loads") == 0) {
      out->loads_path = argv[++i];  // the last argument is followed by NULL
      if (out->loads_path == NULL) return mp_command_bad_value("--loads", NULL, "a file");
    } else {
      MP_RETURN_IF_ERROR(verb_topo_read_option(argv[i], out));
    }
  }
  if (is_svg && (is_matrix || out->is_json)) {
    return mp_status_make(MP_INVALID_ARGUMENT, "--svg cannot be combined with --json or --matrix");
  }
  if (out->loads_path != NULL && !is_svg) {
    return mp_status_make(MP_INVALID_ARGUMENT, "--loads needs --svg");
  }
  if (is_svg) out->form = FORM_SVG;
  if (is_matrix) out->form = FORM_MATRIX;
  if (out->is_json && !is_matrix) out->form = FORM_JSON;
  return NULL;
}

int mp_verb_topo(int argc, char **argv) {
  request_t request = {0};
  if (mp_command_answers(argc, argv, g_usage)) {
    for (int i = 1; i < argc; ++i) {
      if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) verb_topo_print_options();
    }
    return MP_EXIT_GOOD;
  }
  mp_status_t status = verb_topo_read_arguments(argc, argv, &request);
  if (status != NULL) return mp_command_misuse(argv[0], status);
  return mp_command_end(argv[0], verb_topo_print_pod(&request));
}
