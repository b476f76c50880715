// Options of the plugin: one table, from which the create options, the environment variables, their
// help and `minipod info` come.
//
// Precedence: create option > environment (MINIPOD_<NAME>) > default; an empty text is the default.
// A topology given as a create option says how many devices there are, so MINIPOD_DEVICES counts
// for nothing beside it. A create option with an unknown name is an INVALID_ARGUMENT that names the
// nearest known one; an unknown MINIPOD_* variable is a logged warning. Values are checked here for
// type and range only; the layer that uses a value checks what it means (whether the topology
// exists, whether counts agree).
//
// Thread-safety: an mp_options_t is immutable after creation and may be read from any thread.
// mp_options_create reads the environment, so no thread may change it meanwhile.
#ifndef MINIPOD_SIM_BASE_OPTIONS_H_
#define MINIPOD_SIM_BASE_OPTIONS_H_

#include <stdint.h>

#include "sim/base/log.h"
#include "sim/base/status.h"
#include "sim/base/str.h"

// The numbers are those of PJRT_NamedValue_Type.
typedef enum {
  MP_VALUE_STRING = 0,
  MP_VALUE_INT64 = 1,
  MP_VALUE_INT64_LIST = 2,
  MP_VALUE_FLOAT = 3,
  MP_VALUE_BOOL = 4,
} mp_value_type_t;

// One option as a client gives it. Nothing is owned; it needs to live during the call only.
typedef struct {
  mp_str_t name;
  mp_value_type_t type;
  mp_str_t string_value;           // MP_VALUE_STRING
  int64_t int64_value;             // MP_VALUE_INT64
  const int64_t *int64_list_data;  // MP_VALUE_INT64_LIST
  size_t int64_list_count;
  float float_value;  // MP_VALUE_FLOAT
  bool bool_value;    // MP_VALUE_BOOL
} mp_named_value_t;

typedef enum {
  MP_OPTION_INT,    // decimal; as a create option also a string with one
  MP_OPTION_BYTES,  // "64MiB", or a number of bytes
  MP_OPTION_STRING,
  MP_OPTION_LOG_LEVEL,  // off, error, warning, info, debug
} mp_option_type_t;

// Field of mp_options_t, type, least value, greatest value (of numbers), default as text, unit,
// environment variable ("" = none), help. This order is the order of documentation.
#define MP_OPTIONS(X)                                                                              \
  X(num_devices, INT, 1, 65536, "", "devices", "MINIPOD_DEVICES",                                  \
    "number of devices of this process; if `topology` is also set, both must agree")               \
  X(topology, STRING, 0, 0, "", "", "MINIPOD_TOPOLOGY",                                            \
    "the pod: one line such as \"v5e:4x4\" or \"torus:4x4 hosts:2 hbm:16GiB\", or a YAML file")    \
  X(platform, STRING, 0, 0, "auto", "", "MINIPOD_PLATFORM",                                        \
    "platform name that JAX reports: minipod, tpu, gpu or cpu; auto: from the description")        \
  X(device_memory, BYTES, 1, INT64_MAX, "", "bytes", "MINIPOD_DEVICE_MEMORY",                      \
    "capacity of each device's own memory, such as \"64MiB\"")                                     \
  X(log_level, LOG_LEVEL, 0, 0, "warning", "", "MINIPOD_LOG_LEVEL",                                \
    "which messages go to stderr: off, error, warning, info or debug")                             \
  X(machine, STRING, 0, 0, "", "", "MINIPOD_MACHINE",                                              \
    "hwloc synthetic description or XML file that replaces the real machine (for tests)")          \
  X(workers, INT, 1, 4096, "", "threads", "MINIPOD_WORKERS",                                       \
    "number of worker threads; default: one per core that the process may use")                    \
  X(dump, STRING, 0, 0, "", "", "MINIPOD_DUMP",                                                    \
    "a folder for each compiled program, as received and as one device runs it")                   \
  X(fuse, INT, 0, 1, "1", "", "MINIPOD_FUSE",                                                      \
    "1: fuse ops and run them tile by tile; 0: run ops one by one, with the same results")         \
  X(rewrites, INT, 0, 1, "1", "", "MINIPOD_REWRITES",                                              \
    "1: rewrite idioms as XLA's simplifier does; 0: compute every op as written")                  \
  X(native, INT, 0, 2, "1", "", "MINIPOD_NATIVE",                                                  \
    "compile to machine code: 0 nothing, 1 code that runs often, 2 all; results are the same")     \
  X(time, STRING, 0, 0, "off", "", "MINIPOD_TIME",                                                 \
    "model: predict times on the described pod; paced: also delay results until then; off: none")  \
  X(values, STRING, 0, 0, "real", "", "MINIPOD_VALUES",                                            \
    "real: compute all arrays; shapes: only small ones, for pods larger than the machine")         \
  X(absent, STRING, 0, 0, "error", "", "MINIPOD_ABSENT",                                           \
    "with values=shapes: what reading a value that was not computed gives: error, nan, zero, one") \
  X(unknown_branch, STRING, 0, 0, "largest", "", "MINIPOD_UNKNOWN_BRANCH",                         \
    "with values=shapes: the branch taken if its index is unknown: largest, smallest, a number")   \
  X(unknown_trip_count, INT, 0, INT32_MAX, "1", "rounds", "MINIPOD_UNKNOWN_TRIP_COUNT",            \
    "with values=shapes: iterations of a loop whose condition is unknown")                         \
  X(pace, STRING, 0, 0, "1", "", "MINIPOD_PACE",                                                   \
    "with time=paced: real seconds per virtual second")                                            \
  X(clock, STRING, 0, 0, "real", "", "MINIPOD_CLOCK",                                              \
    "virtual: Python's clocks show the time of a host of the pod (with a time model)")             \
  X(algorithms, STRING, 0, 0, "", "", "MINIPOD_ALGORITHMS",                                        \
    "algorithms of collectives (with a time model): \"all_reduce:ring,all_gather:direct\"")        \
  X(calibration, STRING, 0, 0, "", "", "MINIPOD_CALIBRATION",                                      \
    "a file with the efficiency of each class of ops (with a time model)")                         \
  X(chip_without, STRING, 0, 0, "", "", "MINIPOD_CHIP_WITHOUT",                                    \
    "rules of the chip model to switch off, such as \"chains,shifted_exp\" (with a time model)")   \
  X(check, STRING, 0, 0, "off", "", "MINIPOD_CHECK",                                               \
    "replicas: launches compare the copies of an array on several devices; off: they do not")      \
  X(kernels, STRING, 0, 0, "run", "", "MINIPOD_KERNELS",                                           \
    "check: find races, unset memory and busy semaphores in Mosaic kernels; run: run them")        \
  X(faults, STRING, 0, 0, "", "", "MINIPOD_FAULTS",                                                \
    "a list of faults (dead or slow devices and links, flipped bits), or a file with one")         \
  X(trace, STRING, 0, 0, "", "", "MINIPOD_TRACE",                                                  \
    "a file for a timeline of the pod, for Perfetto (with a time model)")                          \
  X(trace_events, INT, 0, INT64_MAX, "1000000", "", "MINIPOD_TRACE_EVENTS",                        \
    "number of events after which the timeline ends")                                              \
  X(trace_devices, STRING, 0, 0, "auto", "", "MINIPOD_TRACE_DEVICES",                              \
    "devices in the timeline: all, ids such as \"0,8-15\", or auto: all of small "                 \
    "pods, the first 8 of large ones")                                                             \
  X(chakra, STRING, 0, 0, "", "", "MINIPOD_CHAKRA",                                                \
    "a folder for execution traces (MLCommons' Chakra), one per device (with a time model)")       \
  X(bootstrap, STRING, 0, 0, "auto", "", "MINIPOD_BOOTSTRAP",                                      \
    "how processes find each other: mpi, kv (the client's key-value store, or the "                \
    "variables of TPU hosts), none, absent (this one stands for all), or auto")                    \
  X(mpi_module, STRING, 0, 0, "", "", "MINIPOD_MPI_MODULE",                                        \
    "path of the library that calls MPI; default: minipod_mpi_*.so next to the plugin")            \
  X(init_timeout, INT, 1, 86400, "300", "seconds", "MINIPOD_INIT_TIMEOUT_S",                       \
    "how long to wait for the other processes at start")                                           \
  X(exit_timeout, INT, 0, 86400, "30", "seconds", "MINIPOD_EXIT_TIMEOUT_S",                        \
    "how long to wait for the other processes at exit; MPI may wait longer")                       \
  X(match, STRING, 0, 0, "launches", "", "MINIPOD_MATCH",                                          \
    "launches of several processes match by number: launches: of all; groups: of their groups")    \
  X(collective_warn, INT, 0, 86400, "10", "seconds", "MINIPOD_COLLECTIVE_WARN_S",                  \
    "how long a launch waits for other processes before minipod prints this; 0: never prints")     \
  X(collective_timeout, INT, 0, 86400, "300", "seconds", "MINIPOD_COLLECTIVE_TIMEOUT_S",           \
    "how long a launch or transfer waits for other processes before it fails; 0: for ever")        \
  X(callback_wait, INT, 0, 86400, "1", "seconds", "MINIPOD_CALLBACK_WAIT_S",                       \
    "how long a launch of a single process waits for its Python callbacks")                        \
  X(node_id, INT, 0, INT32_MAX, "", "", "", "index of this process (added by JAX)")                \
  X(num_nodes, INT, 0, INT32_MAX, "", "", "", "number of processes (added by JAX)")                \
  X(subset, STRING, 0, 0, "", "", "MINIPOD_SUBSET",                                                \
    "the processes of the job that share this client's pod, such as \"0,2,3\"; default: all")      \
  X(partition_index, INT, 0, INT32_MAX, "", "", "", "partition of this process (added by JAX)")

typedef enum {
#define MP_OPTION_ENUM(field, ...) MP_OPTION_ID_##field,
  MP_OPTIONS(MP_OPTION_ENUM)
#undef MP_OPTION_ENUM
      MP_OPTION_ID_COUNT
} mp_option_id_t;

typedef enum {
  MP_SOURCE_DEFAULT,
  MP_SOURCE_ENVIRONMENT,
  MP_SOURCE_CREATE_OPTION,
} mp_option_source_t;

enum { MP_OPTION_UNSET = -1 };

// The resolved values, owned by the object. Numbers that were not set are MP_OPTION_UNSET, strings
// that were not set are "".
typedef struct {
  int64_t num_devices;
  const char *topology;
  const char *platform;
  int64_t device_memory;  // bytes
  mp_log_level_t log_level;
  const char *machine;
  int64_t workers;
  const char *dump;
  int64_t fuse;
  int64_t rewrites;
  int64_t native;
  const char *time;
  const char *values;
  const char *absent;
  const char *unknown_branch;
  int64_t unknown_trip_count;
  const char *pace;
  const char *clock;
  const char *algorithms;
  const char *calibration;
  const char *chip_without;
  const char *check, *kernels, *match;
  const char *faults;
  const char *trace;
  int64_t trace_events;
  const char *trace_devices;
  const char *chakra;
  const char *bootstrap;
  const char *mpi_module;
  int64_t init_timeout;
  int64_t exit_timeout;
  int64_t collective_warn;
  int64_t collective_timeout;
  int64_t callback_wait;
  int64_t node_id;
  int64_t num_nodes;
  const char *subset;
  int64_t partition_index;
  mp_option_source_t source[MP_OPTION_ID_COUNT];
} mp_options_t;

// Resolves create options (may be NULL when count is 0), environment and defaults, and sets the
// logger's level. Errors: INVALID_ARGUMENT for an unknown name, a wrong type, a value that cannot
// be read or is out of range, with the option's name, where it came from and what is expected.
MP_NODISCARD mp_status_t mp_options_create(const mp_named_value_t *values, size_t count,
                                           mp_options_t **out_options);
// Frees the object and its strings. NULL is allowed.
void mp_options_release(mp_options_t *options);

// What the table says about one option; all strings are static.
typedef struct {
  const char *name;
  mp_option_type_t type;
  int64_t min;
  int64_t max;
  const char *default_text;
  const char *unit;
  const char *environment;
  const char *help;
} mp_option_info_t;
// The row of an option.
const mp_option_info_t *mp_option_info(mp_option_id_t id);

// "default", "environment variable MINIPOD_X" or "create option", for messages and `minipod info`.
const char *mp_option_source_name(mp_option_source_t source);

#endif  // MINIPOD_SIM_BASE_OPTIONS_H_
