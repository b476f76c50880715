// The verbs of the command `minipod` that need nothing of Python: what a pod is, what its network
// does, what a program becomes.
//
// Each is a main function: NULL ends argv, argv[0] is the name of the command for messages
// ("minipod topo"), the result an exit code. They print to the standard output, and one line about
// what is wrong to the standard error. The programs of tools/ are nothing but calls of them, and so
// is most of the command in the package (pjrt/python/minipod/command/).
#ifndef MINIPOD_PJRT_COMMAND_COMMAND_H_
#define MINIPOD_PJRT_COMMAND_COMMAND_H_

#include <stdint.h>

#include "pjrt/package/pjrt_foreign.h"
#include "sim/base/status.h"
#include "sim/base/str.h"
#include "sim/ir/module.h"

typedef enum {
  MP_EXIT_GOOD = 0,
  MP_EXIT_FAILED = 1,  // the request failed
  MP_EXIT_USAGE = 2,   // usage error
} mp_exit_t;

typedef int mp_verb_t(int argc, char **argv);

// The pod that options make: as a table, as JSON, as a picture, or how far its devices are apart.
int mp_verb_topo(int argc, char **argv);
// What a collective takes on a pod, by each algorithm.
int mp_verb_network(int argc, char **argv);
// A program, read, verified and printed; with the sharding of its values.
int mp_verb_opt(int argc, char **argv);
// A program as one device runs it, with a report of what is communicated.
int mp_verb_partition(int argc, char **argv);
// A program run on the pod of the environment: arguments from files or random, results to files.
int mp_verb_exec(int argc, char **argv);
// The table of options with what the environment makes of it, as JSON: the package's `info` and its
// documentation come from it.
int mp_verb_options(int argc, char **argv);

// Runs the verb that `name` is: "topo", "network" and so on. -1: there is none.
MP_EXPORT int minipod_command(const char *name, int argc, char **argv);
// What binds memory to NUMA nodes here (sim/base/os/numa.h), for `minipod info`.
MP_EXPORT const char *minipod_numa_name(void);

// ---- for the verbs ----

// Whether an argument asks for help or for the version, which is then printed: `usage` is the whole
// text of the first.
bool mp_command_answers(int argc, char **argv, const char *usage);
// Usage errors, for the line that mp_command_misuse prints. An argument that the verb does not
// know:
MP_NODISCARD mp_status_t mp_command_unexpected(const char *argument);
// An argument that the verb needs, by its name in the usage ("FILE"):
MP_NODISCARD mp_status_t mp_command_missing(const char *name);
// An option without a value (NULL), or with one that it does not take; `accepted` says what it
// takes ("a number from 1 to 9").
MP_NODISCARD mp_status_t mp_command_bad_value(const char *option, const char *value,
                                              const char *accepted);
// What --form takes.
#define MP_COMMAND_FORMS "mlir, hlo or hlo_with_config"
// Prints a usage error (consumed) and the command that lists the arguments; the exit code.
int mp_command_misuse(const char *program, mp_status_t status);
// Ends a verb: prints the error that there is (consumed), and returns the exit code.
int mp_command_end(const char *program, mp_status_t status);
// The same of what was asked of a program: its error names the file where the program is a text.
int mp_command_end_of(const char *program, const char *path, mp_status_t status);
// Operations of a text without locations are at their places in the file; "-" has no name. The path
// lives longer than the module.
MP_NODISCARD mp_status_t mp_command_name_places(const char *path, mp_module_t *module);
enum { MP_COMMAND_MOST_BYTES = 1 << 30 };
// Appends a file, or the standard input for "-". NOT_FOUND and DATA_LOSS name it and the reason;
// INVALID_ARGUMENT for devices, and for what is larger than MP_COMMAND_MOST_BYTES.
MP_NODISCARD mp_status_t mp_command_read(const char *path, mp_strbuf_t *out_text);

#endif  // MINIPOD_PJRT_COMMAND_COMMAND_H_
