// The verbs of the command `minipod` that do not need Python: describing a pod, timing its network,
// transforming and running programs.
//
// Each is a main function: NULL ends argv, argv[0] is the name of the command for messages
// ("minipod topo"), the result an exit code. They print to the standard output, and one line about
// an error to the standard error. The programs of tools/ only call them, and so does most of the
// command in the package (pjrt/python/minipod/command/).
#ifndef MINIPOD_PJRT_COMMAND_COMMAND_H_
#define MINIPOD_PJRT_COMMAND_COMMAND_H_

#include <stdint.h>

#include "pjrt/package/pjrt_foreign.h"
#include "sim/base/status.h"
#include "sim/base/str.h"
#include "sim/ir/module.h"
#include "sim/readers/reader.h"

typedef enum {
  MP_EXIT_GOOD = 0,
  MP_EXIT_FAILED = 1,  // the request failed
  MP_EXIT_USAGE = 2,   // usage error
} mp_exit_t;

typedef int mp_verb_t(int argc, char **argv);

// The pod that options describe: as a table, as JSON, as a picture, or the distances between its
// devices.
int mp_verb_topo(int argc, char **argv);
// The time of a collective on a pod, for each algorithm.
int mp_verb_network(int argc, char **argv);
// Reads, verifies and prints a program; optionally with the shardings of its values.
int mp_verb_opt(int argc, char **argv);
// The per-device program, with a report about its communication.
int mp_verb_partition(int argc, char **argv);
// Runs a program on the pod of the environment: arguments from files or random, results to files.
int mp_verb_exec(int argc, char **argv);
// Programs as the described chip runs them: kernels, times, memory.
int mp_verb_chip(int argc, char **argv);
// The table of options with their values in this environment, as JSON, for the package's `info` and
// its documentation.
int mp_verb_options(int argc, char **argv);

// Runs the verb `name`: "topo", "network" and so on. -1: there is none.
MP_EXPORT int minipod_command(const char *name, int argc, char **argv);
// The name of the method that binds memory to NUMA nodes (sim/base/os/numa.h), for `minipod info`.
MP_EXPORT const char *minipod_numa_name(void);

// ---- for the verbs ----

// Prints help (`usage`) or the version if an argument requests it; true: it did.
bool mp_command_answers(int argc, char **argv, const char *usage);
// Usage errors, for the line that mp_command_misuse prints. An argument that the verb does not
// know:
MP_NODISCARD mp_status_t mp_command_unexpected(const char *argument);
// An argument that the verb needs, by its name in the usage ("FILE"):
MP_NODISCARD mp_status_t mp_command_missing(const char *name);
// An option without a value (NULL), or with an invalid one; `accepted` describes valid values ("a
// number from 1 to 9").
MP_NODISCARD mp_status_t mp_command_bad_value(const char *option, const char *value,
                                              const char *accepted);
// Reads an option's value, an integer in [least, most]; or else the error of mp_command_bad_value.
MP_NODISCARD mp_status_t mp_command_read_number(const char *option, const char *value,
                                                long long least, long long most,
                                                long long *out_number);
// Reads the value of --form in the same way.
MP_NODISCARD mp_status_t mp_command_read_form(const char *value, mp_program_form_t *out_form);
// Prints a usage error (consumed) and the command that lists the arguments; the exit code.
int mp_command_misuse(const char *program, mp_status_t status);
// Ends a verb: prints the error, if any (consumed), and returns the exit code.
int mp_command_end(const char *program, mp_status_t status);
// The same for a verb on a program: if the program is text, the error names the file.
int mp_command_end_of(const char *program, const char *path, mp_status_t status);
// Gives operations of a text without locations their places in the file; "-" has no name. The path
// must outlive the module.
MP_NODISCARD mp_status_t mp_command_name_places(const char *path, mp_module_t *module);
enum { MP_COMMAND_MOST_BYTES = 1 << 30 };
// Appends a file, or the standard input for "-". NOT_FOUND and DATA_LOSS name it and the reason;
// INVALID_ARGUMENT for devices, and for files larger than MP_COMMAND_MOST_BYTES.
MP_NODISCARD mp_status_t mp_command_read(const char *path, mp_strbuf_t *out_text);

#endif  // MINIPOD_PJRT_COMMAND_COMMAND_H_
