// Runs a program on the pod that the environment describes, without a framework: arguments random
// or from files, results printed, written or compared.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "pjrt/command/command.h"
#include "pjrt/command/exec_pod.h"
#include "pjrt/command/exec_values.h"
#include "sim/base/alloc.h"
#include "sim/base/os/system.h"
#include "sim/ir/mesh.h"

static const char g_usage[] =
    "usage: minipod exec [OPTION ...] FILE\n"
    "\n"
    "Compiles a program (StableHLO as MLIR bytecode or text, or HLO), runs it, and prints its\n"
    "results. It runs on the pod that the MINIPOD_ variables describe, or on one with as many\n"
    "devices as the program needs.\n"
    "\n"
    "  --devices N     devices; default: from the program (mhlo.num_partitions and\n"
    "                  mhlo.num_replicas, or the size of its mesh)\n"
    "  --replicas N    replicas among these; default: mhlo.num_replicas\n"
    "  --form NAME     FILE is mlir (the default), hlo (an HloModuleProto) or hlo_with_config\n"
    "  --input A.npy   the whole array of the first argument, which minipod shards as the program\n"
    "                  says; repeat it for the next ones. Other arguments are random: floats in\n"
    "                  [-1, 1), integers from 0 to 9\n"
    "  --seed N        seed of the random arguments; default: 0\n"
    "  --output DIR    write the results there, as result_0.npy and so on, and print none\n"
    "  --compare DIR   print the largest difference from the files that --output wrote to DIR;\n"
    "                  exit with 1 if it exceeds the tolerance. If the program has one result, "
    "you\n"
    "                  may name a file instead, A.npy\n"
    "  --tolerance X   largest difference that --compare accepts; default: 0\n"
    "  --repeat K      run the program K times and print the seconds of each run; with\n"
    "                  MINIPOD_TIME=model also its virtual time, which for the first run includes\n"
    "                  the transfer of the arguments\n"
    "  --version       print the version of minipod\n"
    "  FILE            - is the standard input\n"
    "\n"
    "With several replicas, arrays have one more dimension, the first: the replicas. Elements of\n"
    "types that NumPy's files do not know (bf16, f8 kinds, i4 ...) are raw bytes there: |V2, "
    "|V1.\n";

enum { PATH_SIZE = 4096, MAX_DEVICES = 65536 };

typedef struct {
  const char *path, *output, *compare;
  const char *form;
  mp_program_form_t form_number;
  uint32_t num_devices, num_replicas;  // 0: as in the program
  uint64_t seed;
  double tolerance;
  uint32_t repeat;      // 0: once, and no times are printed
  const char **inputs;  // pointers into argv
  uint32_t num_inputs;
} verb_exec_request_t;

// ---- arguments ----

typedef enum {
  OPTION_INPUT,
  OPTION_OUTPUT,
  OPTION_COMPARE,
  OPTION_TOLERANCE,
  OPTION_FORM,
  OPTION_DEVICES,
  OPTION_REPLICAS,
  OPTION_SEED,
  OPTION_REPEAT,
  NUM_OPTIONS,
} option_t;

static const struct {
  const char *name, *accepted;  // `accepted` NULL: a number in [least, most], or a form
  long long least, most;
} g_options[NUM_OPTIONS] = {
    [OPTION_INPUT] = {"--input", "a file", 0, 0},
    [OPTION_OUTPUT] = {"--output", "a folder", 0, 0},
    [OPTION_COMPARE] = {"--compare", "a folder or a file", 0, 0},
    [OPTION_TOLERANCE] = {"--tolerance", "a number from 0", 0, 0},
    [OPTION_FORM] = {"--form", NULL, 0, 0},
    [OPTION_DEVICES] = {"--devices", NULL, 1, MAX_DEVICES},
    [OPTION_REPLICAS] = {"--replicas", NULL, 1, MAX_DEVICES},
    [OPTION_SEED] = {"--seed", NULL, 0, INT64_MAX},
    [OPTION_REPEAT] = {"--repeat", NULL, 1, 1000000},
};

static option_t verb_exec_find_option(const char *name) {
  option_t option = 0;
  while (option < NUM_OPTIONS && strcmp(g_options[option].name, name) != 0) ++option;
  return option;
}

static bool verb_exec_read_text(const char *text, const char **out) {
  *out = text;
  return text != NULL;
}

static bool verb_exec_read_tolerance(const char *text, double *out) {
  const size_t size = text == NULL ? 0 : mp_str_scan_double(mp_str(text), out);
  return size > 0 && text[size] == '\0' && *out >= 0;
}

static mp_status_t verb_exec_read_number(option_t option, const char *text,
                                         verb_exec_request_t *out) {
  long long number;
  MP_RETURN_IF_ERROR(mp_command_read_number(g_options[option].name, text, g_options[option].least,
                                            g_options[option].most, &number));
  if (option == OPTION_DEVICES) out->num_devices = (uint32_t)number;
  if (option == OPTION_REPLICAS) out->num_replicas = (uint32_t)number;
  if (option == OPTION_SEED) out->seed = (uint64_t)number;
  if (option == OPTION_REPEAT) out->repeat = (uint32_t)number;
  return NULL;
}

// `value` NULL: there is none.
static mp_status_t verb_exec_read_option(option_t option, const char *value,
                                         verb_exec_request_t *out) {
  bool is_good = false;
  switch (option) {
    case OPTION_INPUT:
      is_good = verb_exec_read_text(value, &out->inputs[out->num_inputs++]);
      break;
    case OPTION_OUTPUT:
      is_good = verb_exec_read_text(value, &out->output);
      break;
    case OPTION_COMPARE:
      is_good = verb_exec_read_text(value, &out->compare);
      break;
    case OPTION_TOLERANCE:
      is_good = verb_exec_read_tolerance(value, &out->tolerance);
      break;
    case OPTION_FORM:
      out->form = value;
      return mp_command_read_form(value, &out->form_number);
    default:
      return verb_exec_read_number(option, value, out);
  }
  if (is_good) return NULL;
  return mp_command_bad_value(g_options[option].name, value, g_options[option].accepted);
}

static mp_status_t verb_exec_read_arguments(int argc, char **argv, verb_exec_request_t *out) {
  for (int i = 1; i < argc; ++i) {
    const option_t option = verb_exec_find_option(argv[i]);
    if (option < NUM_OPTIONS) {
      MP_RETURN_IF_ERROR(verb_exec_read_option(option, argv[++i], out));  // argv ends in NULL
    } else if (out->path == NULL && (argv[i][0] != '-' || argv[i][1] == '\0')) {
      out->path = argv[i];
    } else {
      return mp_command_unexpected(argv[i]);
    }
  }
  return out->path == NULL ? mp_command_missing("FILE") : NULL;
}

// ---- the program ----

// The numbers of replicas and partitions, from the user or the program.
static mp_status_t verb_exec_count(const verb_exec_request_t *asked, const mp_module_t *module,
                                   mp_exec_program_t *out) {
  const uint32_t said = module->num_replicas, devices = asked->num_devices;
  uint32_t replicas = asked->num_replicas != 0 ? asked->num_replicas : said;
  uint32_t partitions = module->num_partitions;
  for (uint32_t i = 0; i < module->meshes.count && replicas * partitions == 1; ++i) {
    const int64_t size = mp_mesh_size(module->meshes.items[i]);
    if (size > 1 && size <= MAX_DEVICES) partitions = (uint32_t)size;
  }
  if (devices != 0 && asked->num_replicas == 0 && said > 1 && partitions == 1) {
    replicas = devices;  // a program of replicas alone
  } else if (replicas == 0 || devices % replicas != 0) {
    return mp_status_make(MP_INVALID_ARGUMENT, "%u devices are not a multiple of its %u replicas",
                          devices, replicas);
  } else if (devices != 0) {
    partitions = devices / replicas;
  }
  if (partitions == 0 || (uint64_t)replicas * partitions > MAX_DEVICES) {
    return mp_status_make(MP_INVALID_ARGUMENT, "%u replicas of %u partitions: no pod has so many",
                          replicas, partitions);
  }
  out->num_replicas = replicas;
  out->num_partitions = partitions;
  return NULL;
}

static mp_status_t verb_exec_open(const verb_exec_request_t *asked, mp_exec_pod_t *pod) {
  mp_strbuf_t code;
  mp_strbuf_init(&code);
  mp_module_t *module = NULL;
  mp_exec_program_t program = {.form = asked->form};
  mp_status_t status = mp_command_read(asked->path, &code);
  const bool is_read = status == NULL;
  if (status == NULL) {
    status = mp_read_program(mp_strbuf_text(&code), code.size, asked->form_number, &module);
  }
  if (status == NULL) status = verb_exec_count(asked, module, &program);
  mp_module_release(module);
  program.code = (mp_str_t){mp_strbuf_text(&code), code.size};
  if (status == NULL) status = mp_exec_pod_open(&program, pod);
  mp_strbuf_deinit(&code);
  return is_read ? mp_status_annotate(status, "%s", asked->path) : status;
}

// Prints "argument 0: f32[3,8], f32[3,2] on each of 4 devices".
static mp_status_t verb_exec_print_type(const mp_exec_pod_t *pod, const char *what,
                                        const mp_program_io_t *io, const mp_exec_array_t *array,
                                        const char *end) {
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_exec_array_t part = {.dtype = array->dtype, .rank = io->type->rank};
  for (uint32_t d = 0; d < part.rank; ++d) part.dims[d] = io->type->dims[d];
  mp_strbuf_printf(&text, "%s: ", what);
  mp_exec_array_print_type(array, &text);
  if (pod->num_devices > 1) {
    mp_strbuf_puts(&text, ", ");
    mp_exec_array_print_type(&part, &text);
    mp_strbuf_printf(&text, " on each of %u devices", pod->num_devices);
  }
  mp_status_t status = mp_strbuf_status(&text);
  if (status == NULL) printf("%s%s\n", mp_strbuf_text(&text), end);
  mp_strbuf_deinit(&text);
  return status;
}

// ---- inputs and runs ----

// The arguments' whole arrays, with data from the given files.
static mp_status_t verb_exec_read_inputs(const verb_exec_request_t *asked, const mp_exec_pod_t *pod,
                                         mp_exec_array_t *arrays) {
  const uint32_t count = pod->program->num_params;
  if (asked->num_inputs > count) {
    return mp_status_make(MP_INVALID_ARGUMENT, "the program has %u arguments, %u inputs are given",
                          count, asked->num_inputs);
  }
  for (uint32_t i = 0; i < count; ++i) {
    char what[32];
    snprintf(what, sizeof(what), "argument %u", i);
    MP_RETURN_IF_ERROR(mp_exec_pod_shape_of_argument(pod, i, what, &arrays[i]));
    const bool is_given = i < asked->num_inputs;
    if (is_given) MP_RETURN_IF_ERROR(mp_exec_array_read(asked->inputs[i], what, &arrays[i]));
    MP_RETURN_IF_ERROR(verb_exec_print_type(pod, what, &pod->program->params[i], &arrays[i],
                                            is_given ? "" : ", random"));
  }
  return NULL;
}

static mp_status_t verb_exec_launch(const verb_exec_request_t *asked, mp_exec_pod_t *pod,
                                    const mp_exec_array_t *arrays) {
  const uint32_t times = asked->repeat == 0 ? 1 : asked->repeat;
  for (uint32_t run = 1; run <= times; ++run) {
    double real = 0, virtual = 0;
    for (uint32_t i = 0; i < pod->program->num_params; ++i) {
      // Arguments that the previous run has taken over must be put again.
      if (!mp_exec_pod_needs(pod, i)) continue;
      MP_RETURN_IF_ERROR(mp_exec_pod_put(pod, i, &arrays[i], asked->seed));
    }
    MP_RETURN_IF_ERROR(mp_exec_pod_run(pod, &real, &virtual));
    if (asked->repeat == 0) continue;
    printf("run %u: %.9f s", run, real);
    if (virtual >= 0) printf(", virtual %.12f s", virtual);
    printf("\n");
  }
  return NULL;
}

// ---- results ----

static mp_status_t verb_exec_path(const char *folder, uint32_t index, char out_path[PATH_SIZE]) {
  const int size = snprintf(out_path, PATH_SIZE, "%s/result_%u.npy", folder, index);
  if (size < PATH_SIZE) return NULL;
  return mp_status_make(MP_INVALID_ARGUMENT, "the name of the folder is too long");
}

static mp_status_t verb_exec_write(const char *folder, uint32_t index,
                                   const mp_exec_array_t *array) {
  char path[PATH_SIZE];
  MP_RETURN_IF_ERROR(verb_exec_path(folder, index, path));
  if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
    return mp_status_make(MP_PERMISSION_DENIED, "cannot make the folder '%s': %s", folder,
                          mp_system_text(errno));
  }
  MP_RETURN_IF_ERROR(mp_exec_array_write(path, array));
  printf(
      "  written to %s%s\n", path,
      mp_exec_array_is_raw(array->dtype) ? ", as raw bytes: NumPy's files have no such type" : "");
  return NULL;
}

// The file to compare a result with: one in the folder, or the named file.
static mp_status_t verb_exec_path_to_compare(const char *name, uint32_t index, uint32_t num_results,
                                             char out_path[PATH_SIZE]) {
  if (!mp_str_ends_with(mp_str(name), ".npy")) return verb_exec_path(name, index, out_path);
  if (num_results > 1) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "--compare '%s': the program has %u results, which require a folder with "
                          "result_0.npy and so on",
                          name, num_results);
  }
  if (snprintf(out_path, PATH_SIZE, "%s", name) < PATH_SIZE) return NULL;
  return mp_status_make(MP_INVALID_ARGUMENT, "the name of the file is too long");
}

// Prints the difference between the result and the file; raises `*largest` to it.
static mp_status_t verb_exec_compare(const char *name, uint32_t index, uint32_t num_results,
                                     const mp_exec_array_t *array, double *largest) {
  char path[PATH_SIZE], what[32];
  snprintf(what, sizeof(what), "result %u", index);
  MP_RETURN_IF_ERROR(verb_exec_path_to_compare(name, index, num_results, path));
  mp_exec_array_t expected = *array;
  expected.data = NULL;
  MP_RETURN_IF_ERROR(mp_exec_array_read(path, what, &expected));
  const mp_exec_difference_t found = mp_exec_values_compare(array, &expected);
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_strbuf_printf(&text, "  largest difference %.9g", found.largest);
  if (found.largest > 0) {
    mp_strbuf_printf(&text, ", at element %lld: ", (long long)found.index);
    mp_exec_values_print_element(array, found.index, &text);
    mp_strbuf_puts(&text, ", in the file ");
    mp_exec_values_print_element(&expected, found.index, &text);
  }
  mp_status_t status = mp_strbuf_status(&text);
  if (status == NULL) printf("%s\n", mp_strbuf_text(&text));
  mp_strbuf_deinit(&text);
  mp_exec_array_deinit(&expected);
  if (found.largest > *largest) *largest = found.largest;
  return status;
}

static mp_status_t verb_exec_show(const mp_exec_array_t *array) {
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_exec_values_print(array, "  ", &text);
  mp_status_t status = mp_strbuf_status(&text);
  if (status == NULL) fputs(mp_strbuf_text(&text), stdout);
  mp_strbuf_deinit(&text);
  return status;
}

static mp_status_t verb_exec_finish(const verb_exec_request_t *asked, mp_exec_pod_t *pod,
                                    uint32_t index, double *largest) {
  const mp_program_io_t *io = &pod->program->results[index];
  char what[32];
  snprintf(what, sizeof(what), "result %u", index);
  if (io->type->kind == MP_TYPE_TOKEN) {
    printf("%s: a token\n", what);
    return NULL;
  }
  mp_exec_array_t array;
  MP_RETURN_IF_ERROR(mp_exec_pod_shape_of_result(pod, index, what, &array));
  MP_RETURN_IF_ERROR(verb_exec_print_type(pod, what, io, &array, ""));
  const bool is_shown = asked->output == NULL && asked->compare == NULL;
  mp_status_t status = mp_exec_pod_get(pod, index, &array);
  if (is_shown && mp_status_code(status) == MP_FAILED_PRECONDITION && mp_exec_pod_is_absent(pod)) {
    mp_status_ignore(status);
    status = NULL;
    printf("  without values (MINIPOD_VALUES)\n");
  } else if (status == NULL && is_shown) {
    status = verb_exec_show(&array);
  }
  if (status == NULL && asked->output != NULL) {
    status = verb_exec_write(asked->output, index, &array);
  }
  if (status == NULL && asked->compare != NULL) {
    status = verb_exec_compare(asked->compare, index, pod->program->num_results, &array, largest);
  }
  mp_exec_array_deinit(&array);
  return status;
}

static mp_status_t verb_exec_run_on(const verb_exec_request_t *asked, mp_exec_pod_t *pod,
                                    mp_exec_array_t *arrays) {
  double largest = 0;
  MP_RETURN_IF_ERROR(verb_exec_read_inputs(asked, pod, arrays));
  MP_RETURN_IF_ERROR(verb_exec_launch(asked, pod, arrays));
  for (uint32_t i = 0; i < pod->program->num_results; ++i) {
    MP_RETURN_IF_ERROR(verb_exec_finish(asked, pod, i, &largest));
  }
  if (largest <= asked->tolerance) return NULL;
  return mp_status_make(MP_FAILED_PRECONDITION,
                        "a result differs by %.9g from that in '%s', the tolerance is %.9g",
                        largest, asked->compare, asked->tolerance);
}

static mp_status_t verb_exec_run(const verb_exec_request_t *asked) {
  mp_exec_pod_t pod = {0};
  mp_exec_array_t *arrays = NULL;
  mp_status_t status = verb_exec_open(asked, &pod);
  if (status == NULL) {
    arrays = mp_calloc(pod.program->num_params, sizeof(arrays[0]));
    status = arrays == NULL ? mp_status_out_of_memory() : verb_exec_run_on(asked, &pod, arrays);
  }
  for (uint32_t i = 0; arrays != NULL && i < pod.program->num_params; ++i) {
    mp_exec_array_deinit(&arrays[i]);
  }
  mp_free(arrays);
  mp_exec_pod_close(&pod);
  return status;
}

int mp_verb_exec(int argc, char **argv) {
  verb_exec_request_t asked = {.form = "mlir"};
  if (mp_command_answers(argc, argv, g_usage)) return MP_EXIT_GOOD;
  asked.inputs = mp_calloc((size_t)argc, sizeof(asked.inputs[0]));
  if (asked.inputs == NULL) return mp_command_end(argv[0], mp_status_out_of_memory());
  mp_status_t status = verb_exec_read_arguments(argc, argv, &asked);
  const int code = status != NULL ? mp_command_misuse(argv[0], status)
                                  : mp_command_end_of(argv[0], asked.path, verb_exec_run(&asked));
  mp_free((void *)asked.inputs);
  return code;
}
