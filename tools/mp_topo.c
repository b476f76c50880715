// minipod-topo: prints the pod that given options make: the machine that hwloc finds, and the
// devices it becomes; or draws its network. Arguments are name=value options; the environment
// counts too.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/alloc.h"
#include "sim/base/options.h"
#include "sim/model/faults/faults.h"
#include "sim/model/picture/picture.h"
#include "topology/pod.h"

enum { MAX_OPTIONS = 32, MAX_LOADS = 1 << 26 };

typedef struct {
  size_t count;
  mp_named_value_t values[MAX_OPTIONS];
  bool is_picture;
  const char *loads_path;  // or NULL
} request_t;

static void print_help(void) {
  printf(
      "usage: minipod-topo [--svg [--loads FILE]] [name=value ...]\n\n"
      "Prints the pod that these options make.\n\n"
      "  --svg          draws its network instead\n"
      "  --loads FILE   colours links by load: a line 'LINK: SHARE' for each, as in\n"
      "                 'slice 0 (1,2,0) +x: 0.83'; names are the titles of the picture's "
      "links\n\n");
  for (int id = 0; id < MP_OPTION_ID_COUNT; ++id) {
    const mp_option_info_t *info = mp_option_info((mp_option_id_t)id);
    if (info->environment[0] == '\0') continue;
    printf("  %-14s %s\n  %-14s (or %s)\n", info->name, info->help, "", info->environment);
  }
}

static mp_status_t read_file(const char *path, mp_strbuf_t *out_text) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) return mp_status_make(MP_NOT_FOUND, "cannot open '%s'", path);
  char block[4096];
  size_t size = 0;
  while (out_text->size < MAX_LOADS && (size = fread(block, 1, sizeof(block), file)) > 0) {
    mp_strbuf_append(out_text, block, size);
  }
  const bool failed = ferror(file) != 0 || out_text->size >= MAX_LOADS;
  fclose(file);
  if (failed) return mp_status_make(MP_INVALID_ARGUMENT, "cannot read '%s'", path);
  return mp_strbuf_status(out_text);
}

static mp_status_t draw_network(const mp_network_t *network, const char *loads_path,
                                mp_strbuf_t *out_text) {
  if (loads_path == NULL) return mp_picture_write(network, NULL, out_text);
  double *loads = mp_calloc(mp_network_num_links(network) + 1, sizeof(*loads));
  MP_RETURN_IF_NULL(loads);
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_status_t status = read_file(loads_path, &text);
  if (status == NULL) {
    status = mp_picture_read_loads(network, loads_path,
                                   (mp_str_t){mp_strbuf_text(&text), text.size}, loads);
  }
  if (status == NULL) status = mp_picture_write(network, loads, out_text);
  mp_strbuf_deinit(&text);
  mp_free(loads);
  return status;
}

static mp_status_t draw_pod(mp_pod_t *pod, const char *loads_path, mp_strbuf_t *out_text) {
  mp_network_t *network = NULL;
  MP_RETURN_IF_ERROR(mp_network_create(pod, NULL, &network));
  mp_status_t status = draw_network(network, loads_path, out_text);
  mp_network_release(network);
  return status;
}

static mp_status_t print_pod(const request_t *request) {
  mp_options_t *options = NULL;
  mp_pod_t *pod = NULL;
  mp_faults_t *faults = NULL;
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_status_t status = NULL;
  MP_GOTO_IF_ERROR(status, mp_options_create(request->values, request->count, &options), done);
  MP_GOTO_IF_ERROR(status, mp_pod_create(options, &pod), done);
  MP_GOTO_IF_ERROR(status, mp_faults_create(pod, options, &faults), done);
  if (request->is_picture) {
    MP_GOTO_IF_ERROR(status, draw_pod(pod, request->loads_path, &text), done);
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

// False: an argument is none that there is.
static bool read_arguments(int argc, char **argv, request_t *out_request) {
  for (int i = 1; i < argc; ++i) {
    const char *equals = strchr(argv[i], '=');
    if (strcmp(argv[i], "--svg") == 0) {
      out_request->is_picture = true;
    } else if (strcmp(argv[i], "--loads") == 0 && i + 1 < argc) {
      out_request->loads_path = argv[++i];
    } else if (equals != NULL && argv[i][0] != '-' && out_request->count < MAX_OPTIONS) {
      out_request->values[out_request->count++] =
          (mp_named_value_t){.name = {argv[i], (size_t)(equals - argv[i])},
                             .type = MP_VALUE_STRING,
                             .string_value = mp_str(equals + 1)};
    } else {
      return false;
    }
  }
  return out_request->loads_path == NULL || out_request->is_picture;
}

int main(int argc, char **argv) {
  request_t request = {0};
  if (!read_arguments(argc, argv, &request)) {
    print_help();
    return strcmp(argv[argc - 1], "--help") == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
  }
  mp_status_t status = print_pod(&request);
  if (status == NULL) return EXIT_SUCCESS;
  fprintf(stderr, "minipod-topo: %s\n", mp_status_message(status));
  mp_status_release(status);
  return EXIT_FAILURE;
}
