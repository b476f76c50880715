// The user's description of a pod: one table of keys (the schema) that the one-line string, the
// YAML file, the presets and the serialized form all share.
//
// A description is read in layers: the preset, above it the file, and at the top the words of the
// one-line string. A key may be given once in each layer; the value of the highest layer counts.
// mp_spec_finish then checks the whole description and derives missing values. configs/README.md
// has the schema for users.
//
// For one thread at a time while a description is being read; constant afterwards.
#ifndef MINIPOD_TOPOLOGY_SPEC_H_
#define MINIPOD_TOPOLOGY_SPEC_H_

#include "sim/base/status.h"
#include "sim/base/str.h"
#include "topology/pod.h"

enum {
  MP_SPEC_MAX_TEXT = 128,   // longest name or kind
  MP_SPEC_MAX_PATH = 1024,  // longest path of a file, with the NUL
};

typedef struct {
  int32_t num_dims;  // 0 = not given
  int32_t dims[MP_POD_MAX_DIMS];
} mp_shape_t;

// The wiring of a slice, or of each of its dimensions.
typedef struct {
  int32_t count;  // 0 = not given, 1 = of the slice, more = of that many dimensions
  mp_wiring_t each[MP_POD_MAX_DIMS];
} mp_wirings_t;

// A quantity, or one for each dimension.
typedef struct {
  int32_t count;  // 0 = not given, 1 = in every dimension, more = in that many dimensions
  double each[MP_POD_MAX_DIMS];
} mp_quantities_t;

// The types of values: enum name, C type of the member, functions to read and write it
// (spec_value.c), its description in messages. BYTES: UINT64_MAX is unlimited; times are in
// seconds, rates in bytes per second, FLOPS in operations per second.
// clang-format off
#define MP_SPEC_TYPES(X) \
  X(TEXT, mp_spec_text_t, text, text, "1 to 128 printable characters without quotes") \
  X(INT, int32_t, int, int, "a whole number from 1 to 65536") \
  X(DIMS, int32_t, dims, int, "a whole number from 1 to 6") \
  X(WIRING, mp_wirings_t, wirings, wirings, \
    "torus, mesh, ring, switch or fully_connected, or a list of them by dimension") \
  X(FABRIC, mp_fabric_t, fabric, fabric, "switch or fat_tree") \
  X(SHAPE, mp_shape_t, shape, shape, "up to 6 sizes such as 4x4 or [4, 4], of 65536 in all") \
  X(BYTES, uint64_t, bytes, bytes, "a size such as 16GiB, or unlimited") \
  X(TIME, double, time, double, "a time such as 1us or 500ns") \
  X(TIMES, mp_quantities_t, times, quantities, \
    "a time such as 1us or 500ns, or a list of them by dimension") \
  X(RATE, double, rate, double, "a rate such as 45GB/s") \
  X(RATES, mp_quantities_t, rates, quantities, \
    "a rate such as 45GB/s, or a list of them by dimension") \
  X(FLOPS, double, flops, double, "operations per second such as 197T") \
  X(RATIO, double, ratio, double, "a number from 1 such as 2 or 1.5") \
  X(FACTOR, double, factor, double, "a number from 1e-9 to 1e9 such as 1 or 1000") \
  X(TEXTS, mp_spec_text_t, text, text, \
    "1 to 128 printable characters without quotes, or a list of texts") \
  X(MODE, mp_time_mode_t, mode, mode, "off, model or paced") \
  X(VALUES, mp_values_mode_t, values, values, "real or shapes") \
  X(CLOCK, mp_clock_mode_t, clock, clock, "real or virtual") \
  X(PLATFORM, mp_platform_t, platform, platform, "auto, minipod, tpu, gpu or cpu") \
  X(ABSENT, mp_absent_mode_t, absent, absent, "error, nan, zero or one")
// clang-format on

typedef char mp_spec_text_t[MP_SPEC_MAX_TEXT + 1];  // printable ASCII

typedef enum {
#define MP_SPEC_TYPE_ENUM(name, ...) MP_SPEC_##name,
  MP_SPEC_TYPES(MP_SPEC_TYPE_ENUM)
#undef MP_SPEC_TYPE_ENUM
} mp_spec_type_t;

// Member of mp_pod_spec_t, key, type, help. The preset is applied as soon as it is read.
#define MP_SPEC_KEYS(X)                                                                       \
  X(preset, "preset", TEXT, "start from a known machine")                                     \
  X(name, "name", TEXT, "name of the pod, for messages")                                      \
  X(kind, "kind", TEXT, "device kind that clients see")                                       \
  X(capability, "compute_capability", TEXT, "what code for GPUs asks of a device")            \
  X(wirings, "topology", WIRING, "how the chips of a slice, or of each dimension, are wired") \
  X(shape, "shape", SHAPE, "grid of chips of one slice")                                      \
  X(chips, "chips", INT, "number of chips of one slice; alone: a grid with one dimension")    \
  X(shapes, "shapes", TEXTS, "grids that a slice may have, or any")                           \
  X(dims, "dims", DIMS, "least number of coordinates; the grid is padded with ones")          \
  X(wrap_side, "wrap.side", INT, "a side of a torus is a ring if this divides its length")    \
  X(wrap_block, "wrap.block", SHAPE, "a torus has rings if it consists of such blocks")       \
  X(cores_per_chip, "cores_per_chip", INT, "devices on one chip")                             \
  X(cores_per_device, "cores_per_device", INT, "cores that work as one device")               \
  X(slices, "slices", INT, "number of slices")                                                \
  X(hosts, "hosts", INT, "number of hosts of the whole pod")                                  \
  X(host_shape, "host_shape", SHAPE, "chips of one host, as a box of the grid")               \
  X(memory[0], "memory.device", BYTES, "capacity of a device's own memory")                   \
  X(memory[1], "memory.pinned_host", BYTES, "page-locked host memory of a device")            \
  X(memory[2], "memory.unpinned_host", BYTES, "other host memory of a device")                \
  X(vmem, "memory.vmem", BYTES, "vector memory of a TPU's core, for kernels")                 \
  X(smem, "memory.smem", BYTES, "scalar memory of a TPU's core, for kernels")                 \
  X(scoped_vmem, "memory.scoped_vmem", BYTES, "of it, for a kernel that asks for none")       \
  X(memory_bandwidth, "memory.bandwidth", RATE, "rate of a device's own memory")              \
  X(link_latency, "links.latency", TIMES, "between neighbouring chips of a slice")            \
  X(link_bandwidth, "links.bandwidth", RATES, "the same, one link, one direction")            \
  X(links, "links.count", INT, "parallel links between two neighbours")                       \
  X(dcn.latency, "dcn.latency", TIME, "between hosts, through one switch")                    \
  X(dcn.bandwidth, "dcn.bandwidth", RATE, "of a host's network card, one direction")          \
  X(dcn_links, "dcn.links", INT, "network cards of a host")                                   \
  X(dcn_fabric, "dcn.topology", FABRIC, "what joins the hosts")                               \
  X(dcn_leaf_hosts, "dcn.leaf_hosts", INT, "hosts at one leaf of a fat tree")                 \
  X(dcn_oversubscription, "dcn.oversubscription", RATIO,                                      \
    "of a leaf: bandwidth of its hosts to that upwards")                                      \
  X(host_link.latency, "host_link.latency", TIME, "between a host and its device")            \
  X(host_link.bandwidth, "host_link.bandwidth", RATE, "the same, one direction")              \
  X(launch_latency, "launch_latency", TIME, "from enqueueing a program to its start")         \
  X(op_latency, "op_latency", TIME, "least time of an operation")                             \
  X(matrix_unit, "matrix_unit", SHAPE, "tile of the matrix unit, rows and columns")           \
  X(vector_flops, "flops.vector", FLOPS, "peak rate of ops other than matmuls")               \
  X(flops[MP_FLOP_F64], "flops.f64", FLOPS, "peak rate of a device")                          \
  X(flops[MP_FLOP_F32], "flops.f32", FLOPS, "peak rate of a device")                          \
  X(flops[MP_FLOP_BF16], "flops.bf16", FLOPS, "peak rate of a device")                        \
  X(flops[MP_FLOP_F16], "flops.f16", FLOPS, "peak rate of a device")                          \
  X(flops[MP_FLOP_F8], "flops.f8", FLOPS, "peak rate of a device")                            \
  X(flops[MP_FLOP_S8], "flops.s8", FLOPS, "peak rate of a device")                            \
  X(flops[MP_FLOP_S4], "flops.s4", FLOPS, "peak rate of a device")                            \
  X(time_mode, "time", MODE, "whether minipod computes virtual times")                        \
  X(values, "values", VALUES, "whether programs compute")                                     \
  X(clock, "clock", CLOCK, "what the clocks of the script show")                              \
  X(platform, "platform", PLATFORM, "platform name that frameworks see")                      \
  X(algorithms, "algorithms", TEXTS, "of collectives, for the time model")                    \
  X(chip, "chip", TEXT, "parameters of a chip, or a file of them, for the time model")        \
  X(flags, "flags", TEXTS, "of the chip's compiler, for the time model")                      \
  X(calibration, "calibration", TEXT, "a file with efficiencies, for the time model")         \
  X(pace, "pace", FACTOR, "time paced: real seconds per virtual second")                      \
  X(memory[0], "hbm", BYTES, "short for memory.device")

enum {
#define MP_SPEC_COUNT_ONE(...) +1
  MP_SPEC_KEY_COUNT = 0 MP_SPEC_KEYS(MP_SPEC_COUNT_ONE)
#undef MP_SPEC_COUNT_ONE
};

typedef enum {
  MP_LAYER_NONE,
  MP_LAYER_PRESET,
  MP_LAYER_FILE,
  MP_LAYER_WORDS,
} mp_spec_layer_t;

// The origin of a text, for messages: "<origin>:<line>: key 'x': …"; line 0 is omitted.
typedef struct {
  const char *origin;
  int line;
  mp_spec_layer_t layer;
} mp_spec_place_t;

typedef struct {
  // Missing values are 0. For times, which may be 0, `given` tells.
  mp_spec_text_t preset;
  mp_spec_text_t name;
  mp_spec_text_t kind;
  mp_spec_text_t capability;
  mp_wirings_t wirings;
  mp_shape_t shape;
  int32_t chips;
  mp_spec_text_t shapes;  // empty: any grid, or the spec is finished
  int32_t dims;
  int32_t wrap_side;  // once the spec is finished, this and the next are included in the wirings
  mp_shape_t wrap_block;
  int32_t cores_per_chip;
  int32_t cores_per_device;
  int32_t slices;
  int32_t hosts;
  mp_shape_t host_shape;
  uint64_t memory[MP_MEMORY_SPACE_COUNT];  // 0 = not given
  uint64_t vmem, smem, scoped_vmem;        // 0 = not given
  double memory_bandwidth;
  mp_quantities_t link_latency;
  mp_quantities_t link_bandwidth;
  int32_t links;
  mp_link_t dcn;
  int32_t dcn_links;
  mp_fabric_t dcn_fabric;
  int32_t dcn_leaf_hosts;
  double dcn_oversubscription;
  mp_link_t host_link;
  double launch_latency;
  double op_latency;
  mp_shape_t matrix_unit;
  double vector_flops;
  double flops[MP_FLOP_KIND_COUNT];
  mp_time_mode_t time_mode;
  mp_values_mode_t values;
  mp_clock_mode_t clock;
  mp_platform_t platform;
  mp_spec_text_t algorithms;
  mp_spec_text_t chip;
  mp_spec_text_t flags;
  mp_spec_text_t calibration;
  double pace;                  // 0 = not given
  char file[MP_SPEC_MAX_PATH];  // the file that was read; empty: none
  // By key: the highest layer that gave it, and the line there.
  struct {
    mp_spec_layer_t layer;
    int line;
  } given[MP_SPEC_KEY_COUNT];
} mp_pod_spec_t;

// The id of a key in `given`; synonyms have the same id. -1: there is no such key.
int mp_spec_key_id(mp_str_t key);

// INVALID_ARGUMENT "<place>: key 'x': <message>", as printf writes it, of up to 511 bytes.
MP_PRINTF(3, 4)
MP_NODISCARD mp_status_t mp_spec_error(mp_spec_place_t place, mp_str_t key, const char *format,
                                       ...);

// Sets one key. INVALID_ARGUMENT "<place>: key 'x': expected …, got …"; for an unknown key the
// message suggests the nearest one, and for a second value in one layer it has both lines.
MP_NODISCARD mp_status_t mp_spec_set(mp_pod_spec_t *spec, mp_spec_place_t place, mp_str_t key,
                                     mp_str_t value);

// The error for a key whose value is `got` ("a mapping", "a list") instead of what it should be.
// For a scalar key it names what is expected, for the first part of a nested key ("memory") it is
// "expected a mapping of …", and any other key is unknown, with a suggestion.
MP_NODISCARD mp_status_t mp_spec_refuse(mp_spec_place_t place, mp_str_t key, const char *got);

// True if `key` is in the table.
bool mp_spec_is_key(mp_str_t key);
// True if `key` begins some nested key ("memory").
bool mp_spec_is_mapping(mp_str_t key);
// True if the key's value may be a list, which mp_spec_set takes with commas between.
bool mp_spec_is_list(mp_str_t key);

// Reads a one-line description (spec_line.c): a preset, wiring or file, then key:value words.
// Messages call it `origin`.
MP_NODISCARD mp_status_t mp_spec_read_line(mp_pod_spec_t *spec, const char *origin, mp_str_t line);

// Writes the path of the file that a one-line description names; false: it names none.
bool mp_spec_file_of(mp_str_t line, char *out_path, size_t capacity);

// Reads YAML text (spec_yaml.c), named `origin` in messages.
MP_NODISCARD mp_status_t mp_spec_read_yaml(mp_pod_spec_t *spec, const char *origin, mp_str_t text);
// Reads a YAML file. NOT_FOUND when there is none, INVALID_ARGUMENT when it is too large.
MP_NODISCARD mp_status_t mp_spec_read_file(mp_pod_spec_t *spec, const char *path);

// Checks the whole description and derives missing values (spec_finish.c): shape, hosts, kind, the
// wiring of each dimension. INVALID_ARGUMENT names the wrong key and its place, or `origin`.
MP_NODISCARD mp_status_t mp_spec_finish(mp_pod_spec_t *spec, const char *origin);

// Appends a finished spec as YAML, without its name, which is read back to the same spec. Equal
// pods give equal text, however they were described.
void mp_spec_write(const mp_pod_spec_t *spec, mp_strbuf_t *out_text);

// Appends "4x4".
void mp_shape_write(const mp_shape_t *shape, mp_strbuf_t *out_text);

// The number of chips of a grid of this shape; MP_POD_MAX_DEVICES + 1 when there are more than
// MP_POD_MAX_DEVICES.
int64_t mp_shape_num_chips(const mp_shape_t *shape);

#endif  // MINIPOD_TOPOLOGY_SPEC_H_
