// The pod: the hosts, chips, devices (cores of chips), memory spaces and links that a client shows,
// and the place on the real machine where each device runs.
//
// A pod is described by the user (a one-line string or a YAML file, schema in configs/README.md) or
// made from the machine that hwloc finds (each NUMA node split into core groups, one device per
// group, at least four). Either way its devices are placed on *core groups*: sets of cores of the
// machine that share a cache, with the NUMA node that their memory should be bound to. With more
// devices than groups, neighbouring devices share a group; with fewer devices (or fewer workers)
// than groups, neighbouring groups are folded into one.
//
// Ids: devices are numbered from 0, slice by slice, in a slice by chip with the first coordinate
// fastest, on a chip by core. Over several processes they are numbered host by host, and in this
// order within a host, so that the ids of each process are contiguous and ascend with its rank.
// mp_pod_device(pod, i) is the device with id i.
//
// A pod is constant and reference-counted; all functions may be called from any thread. Accessors
// lend objects that live as long as the pod.
#ifndef MINIPOD_TOPOLOGY_POD_H_
#define MINIPOD_TOPOLOGY_POD_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/options.h"
#include "sim/base/status.h"
#include "sim/base/str.h"

enum {
  MP_POD_MAX_DIMS = 6,
  MP_POD_MAX_DEVICES = 65536,
};

// Memory spaces of a device; the order is that of PJRT memory lists (the first is the default).
#define MP_MEMORY_SPACES(X)     \
  X(DEVICE, "device")           \
  X(PINNED_HOST, "pinned_host") \
  X(UNPINNED_HOST, "unpinned_host")

typedef enum {
#define MP_MEMORY_SPACE_ENUM(name, text) MP_MEMORY_##name,
  MP_MEMORY_SPACES(MP_MEMORY_SPACE_ENUM)
#undef MP_MEMORY_SPACE_ENUM
      MP_MEMORY_SPACE_COUNT
} mp_memory_space_t;

// "device", "pinned_host" or "unpinned_host": PJRT's memory kinds.
const char *mp_memory_space_name(mp_memory_space_t space);

// How the chips of a slice are wired. On a torus every line of chips along a dimension of the grid
// closes to a ring, on a mesh it does not. A switch, or links between any two (fully connected),
// connect all chips of the slice, whatever its grid. Mixed: each dimension has its own wiring.
#define MP_WIRINGS(X)                   \
  X(TORUS, "torus")                     \
  X(MESH, "mesh")                       \
  X(RING, "ring")                       \
  X(SWITCH, "switch")                   \
  X(FULLY_CONNECTED, "fully_connected") \
  X(MIXED, "mixed")

typedef enum {
#define MP_WIRING_ENUM(name, text) MP_WIRING_##name,
  MP_WIRINGS(MP_WIRING_ENUM)
#undef MP_WIRING_ENUM
      MP_WIRING_COUNT
} mp_wiring_t;

// The name in descriptions: "torus", "mesh" …
const char *mp_wiring_name(mp_wiring_t wiring);

// The network between hosts: one switch for all, or a tree with a switch for every few hosts
// (leaves) and switches above that connect the leaves.
#define MP_FABRICS(X) \
  X(SWITCH, "switch") \
  X(FAT_TREE, "fat_tree")

typedef enum {
#define MP_FABRIC_ENUM(name, text) MP_FABRIC_##name,
  MP_FABRICS(MP_FABRIC_ENUM)
#undef MP_FABRIC_ENUM
      MP_FABRIC_COUNT
} mp_fabric_t;

// "switch" or "fat_tree".
const char *mp_fabric_name(mp_fabric_t fabric);

// Whether virtual times are kept (sim/model/): not at all, in addition to real time, or so that
// real time follows them.
#define MP_TIME_MODES(X) \
  X(OFF, "off")          \
  X(MODEL, "model")      \
  X(PACED, "paced")

typedef enum {
#define MP_TIME_MODE_ENUM(name, text) MP_TIME_##name,
  MP_TIME_MODES(MP_TIME_MODE_ENUM)
#undef MP_TIME_MODE_ENUM
      MP_TIME_MODE_COUNT
} mp_time_mode_t;

// "off", "model" or "paced".
const char *mp_time_mode_name(mp_time_mode_t mode);

// Whether programs compute, or run for their shapes alone.
#define MP_VALUES_MODES(X) \
  X(REAL, "real")          \
  X(SHAPES, "shapes")

typedef enum {
#define MP_VALUES_MODE_ENUM(name, text) MP_VALUES_MODE_##name,
  MP_VALUES_MODES(MP_VALUES_MODE_ENUM)
#undef MP_VALUES_MODE_ENUM
      MP_VALUES_MODE_COUNT
} mp_values_mode_t;

// "real" or "shapes".
const char *mp_values_mode_name(mp_values_mode_t values);

// The time on the script's clocks (sim/base/os/host_clock.h): real time, or that of a host of the
// described pod.
#define MP_CLOCK_MODES(X) \
  X(REAL, "real")         \
  X(VIRTUAL, "virtual")

typedef enum {
#define MP_CLOCK_MODE_ENUM(name, text) MP_CLOCK_##name,
  MP_CLOCK_MODES(MP_CLOCK_MODE_ENUM)
#undef MP_CLOCK_MODE_ENUM
      MP_CLOCK_MODE_COUNT
} mp_clock_mode_t;

// "real" or "virtual".
const char *mp_clock_mode_name(mp_clock_mode_t clock);

// The platform name that frameworks see: minipod's own, or one for which they have code. AUTO: by
// the described chips. It does not change how programs are lowered and run.
#define MP_PLATFORMS(X) \
  X(AUTO, "auto")       \
  X(MINIPOD, "minipod") \
  X(TPU, "tpu")         \
  X(GPU, "gpu")         \
  X(CPU, "cpu")

typedef enum {
#define MP_PLATFORM_ENUM(name, text) MP_PLATFORM_##name,
  MP_PLATFORMS(MP_PLATFORM_ENUM)
#undef MP_PLATFORM_ENUM
      MP_PLATFORM_COUNT
} mp_platform_t;

// "auto", "minipod", "tpu", "gpu" or "cpu".
const char *mp_platform_name(mp_platform_t platform);

// The result of reading values that were not computed, because programs run for their shapes alone.
#define MP_ABSENT_MODES(X) \
  X(ERROR, "error")        \
  X(NAN, "nan")            \
  X(ZERO, "zero")          \
  X(ONE, "one")

typedef enum {
#define MP_ABSENT_MODE_ENUM(name, text) MP_ABSENT_MODE_##name,
  MP_ABSENT_MODES(MP_ABSENT_MODE_ENUM)
#undef MP_ABSENT_MODE_ENUM
      MP_ABSENT_MODE_COUNT
} mp_absent_mode_t;

// "error", "nan", "zero" or "one".
const char *mp_absent_mode_name(mp_absent_mode_t absent);

// The branch that is taken if its condition was not computed: its number (the last one if there are
// fewer branches), or by the cost of the branches.
enum { MP_BRANCH_LARGEST = -1, MP_BRANCH_SMALLEST = -2 };

// A latency that is not described; 0 is a valid latency.
#define MP_NO_LATENCY (-1.0)

// Latency in seconds (MP_NO_LATENCY: not described), bandwidth in bytes per second and direction
// (0: not described).
typedef struct {
  double latency;
  double bandwidth;
} mp_link_t;

// One dimension of the grid of chips. If a whole slice is a switch or fully connected, every
// dimension repeats the slice's wiring and link.
typedef struct {
  mp_wiring_t wiring;  // of each line of chips along it: ring, mesh, switch or fully connected
  mp_link_t link;  // between neighbours, or of a chip to its switch; parallel links taken together
} mp_pod_dim_t;

// Element classes whose peak rate a description may give (flops: {bf16: 197T}).
#define MP_FLOP_KINDS(X) \
  X(F64, "f64")          \
  X(F32, "f32")          \
  X(BF16, "bf16")        \
  X(F16, "f16")          \
  X(F8, "f8")            \
  X(S8, "s8")            \
  X(S4, "s4")

typedef enum {
#define MP_FLOP_KIND_ENUM(name, text) MP_FLOP_##name,
  MP_FLOP_KINDS(MP_FLOP_KIND_ENUM)
#undef MP_FLOP_KIND_ENUM
      MP_FLOP_KIND_COUNT
} mp_flop_kind_t;

// Properties of all devices of a pod. If not described, latencies are MP_NO_LATENCY, and rates 0.
typedef struct {
  const char *name;        // of the description ("v5e:4x4", "rack" …), for messages; never NULL
  const char *chip;        // whose figures count (topology/figures), "v5e"; "": none; never NULL
  const char *flags;       // given to its compiler, "a=true,b=false"; never NULL
  const char *kind;        // device kind, "TPU v5 lite", "minipod"; never NULL
  const char *capability;  // what code for GPUs asks of a device, "9.0"; "": not described
  mp_wiring_t wiring;      // of the chips of a slice
  mp_pod_dim_t dims[MP_POD_MAX_DIMS];  // the same by dimension; num_dims of them count
  int32_t num_slices;
  int32_t num_hosts;  // in the whole pod
  int32_t num_dims;   // of the grid of chips of one slice, and of coords; 1 .. MP_POD_MAX_DIMS
  int32_t shape[MP_POD_MAX_DIMS];
  int32_t host_shape[MP_POD_MAX_DIMS];  // chips of one host as a box of the grid; all 0: not a box
  int32_t chips_per_slice;
  int32_t cores_per_chip;    // devices of a chip
  int32_t cores_per_device;  // cores that work as one device; does not change num_devices
  int32_t num_devices;       // slices * chips * cores: of all processes
  int32_t process_index;     // of this process
  int32_t num_processes;
  int32_t first_local_device;  // ids of this process's devices are contiguous
  int32_t num_local_devices;
  // dims[0].link: between neighbouring chips of a slice, if all dimensions are alike. All parallel
  // links of two neighbours count as one.
  mp_link_t ici;
  // One network card: latency from host to host through one switch, bandwidth of one direction.
  mp_link_t dcn;
  int32_t dcn_links;       // network cards of a host; at least 1
  mp_fabric_t dcn_fabric;  // the network between hosts
  // For a fat tree: hosts per leaf, and the ratio of their total bandwidth to that of the leaf's
  // links upwards (1: not oversubscribed). 0 if the fabric is a switch.
  int32_t dcn_leaf_hosts;
  double dcn_oversubscription;
  mp_link_t host_link;               // between a host and one of its devices
  uint64_t vmem, smem;               // bytes of a core's vector and scalar memory
  uint64_t scoped_vmem;              // of these, for a kernel that asks for none; 0: all
  double memory_bandwidth;           // of a device's own memory, bytes/s
  double launch_latency;             // seconds from enqueueing to running
  double op_latency;                 // seconds that each operation of a program takes at least
  int32_t matrix_unit[2];            // rows and columns of a matrix unit's tile; 0: not described
  double flops[MP_FLOP_KIND_COUNT];  // per device, operations/s, of matmuls
  double vector_flops;               // the same for all other operations; 0: flops[MP_FLOP_F32]
} mp_pod_info_t;

typedef struct {
  int32_t id;  // global
  int32_t process_index;
  int32_t local_hardware_id;  // index among the devices of its process
  int32_t host_index;         // of the described host
  int32_t slice_index;
  int32_t chip_index;  // in the slice
  int32_t core_on_chip;
  int32_t coords[MP_POD_MAX_DIMS];  // of the chip; info->num_dims of them count
  int32_t core_group;  // the core group where it runs, index for mp_pod_core_group; -1: no machine
  int32_t numa_node;   // OS index of the node its memory is bound to; -1: none
  // Bytes by space; UINT64_MAX = no limit. A shared capacity is for all devices of the process with
  // the same numa_node together; others are the device's own. (The nodes of other processes'
  // devices are unknown here: their shared capacity is for all devices of the process.)
  uint64_t capacity[MP_MEMORY_SPACE_COUNT];
  bool is_shared[MP_MEMORY_SPACE_COUNT];
} mp_pod_device_t;

// A set of cores of the machine with its devices and workers. The pod owns the arrays. Cpus are the
// operating system's numbers (as for sched_setaffinity and numa_*).
typedef struct {
  int32_t index;
  int32_t num_cpus;
  const int32_t *cpus;  // ascending; all usable hardware threads of its cores
  int32_t num_cores;
  const int32_t *core_cpus;  // one cpu (the first) of each core
  int32_t num_numa_nodes;
  const int32_t *numa_nodes;  // OS indices; several only where groups were folded
  uint64_t node_memory;       // bytes of the only NUMA node; 0: not known, or there are several
  // Devices that run here: ids, ascending within a host, grouped by host.
  int32_t num_devices;
  const int32_t *device_ids;
  int32_t num_workers;  // at least 1
} mp_core_group_t;

// The machine that the pod runs on.
typedef struct {
  bool is_real;  // false: a synthetic or recorded machine; then nothing may be bound
  // True when there is exactly one worker per core, so that worker w of a group may be bound to
  // core_cpus[w]; otherwise (cgroup quota, `workers` option) bind workers to the whole group.
  bool worker_per_core;
  int32_t num_core_groups;  // 0 for a pod without machine
  int32_t num_workers;      // sum over the groups
  int32_t num_cores;        // that the process may use (affinity mask, cpuset), before the quota
  int32_t num_numa_nodes;   // with usable cores
  double cpu_quota;         // cores' worth of time per second by cgroup; 0 = unlimited
  uint64_t memory;          // bytes, cgroup limit respected
} mp_pod_machine_t;

typedef struct mp_pod_s mp_pod_t;

// Makes the pod that `options` describe, on the machine that they name. INVALID_ARGUMENT for a bad
// description (with file:line, key and what was expected) and for a number of devices that
// disagrees with it, NOT_FOUND for a missing file, UNAVAILABLE when hwloc cannot read the machine.
MP_NODISCARD mp_status_t mp_pod_create(const mp_options_t *options, mp_pod_t **out_pod);

// Makes the pod of a one-line description or YAML file without a machine: devices have no core
// group, NUMA node, or limits from a machine. For compiling ahead of time. `where` names the origin
// of the text in messages ("topology name").
MP_NODISCARD mp_status_t mp_pod_create_from_name(mp_str_t description, const char *where,
                                                 mp_pod_t **out_pod);

// mp_pod_retain adds a reference and returns the pod; the last mp_pod_release frees it. NULL is
// released without effect.
mp_pod_t *mp_pod_retain(mp_pod_t *pod);
void mp_pod_release(mp_pod_t *pod);

// The common properties of all devices, and the machine that the pod runs on.
const mp_pod_info_t *mp_pod_info(const mp_pod_t *pod);
const mp_pod_machine_t *mp_pod_machine(const mp_pod_t *pod);
// The device with this id, in 0 .. info->num_devices - 1.
const mp_pod_device_t *mp_pod_device(const mp_pod_t *pod, int32_t id);
// Writes the ids of this process's devices (of all devices, if nothing runs on the pod) to
// `out_ids`, host by host and ascending within a host: the order in which TPU systems list their
// devices.
MP_NODISCARD mp_status_t mp_pod_list_by_host(const mp_pod_t *pod, int32_t *out_ids);
// The core group with this index, in 0 .. machine->num_core_groups - 1.
const mp_core_group_t *mp_pod_core_group(const mp_pod_t *pod, int32_t index);

// Appends the description of the pod as bytes (versioned, with a checksum), without its machine.
MP_NODISCARD mp_status_t mp_pod_serialize(const mp_pod_t *pod, mp_strbuf_t *out_bytes);
// The pod of such bytes, without a machine. INVALID_ARGUMENT for invalid bytes.
MP_NODISCARD mp_status_t mp_pod_deserialize(mp_str_t bytes, mp_pod_t **out_pod);

// A hash of the description: equal for pods with equal descriptions, on any machine.
uint64_t mp_pod_fingerprint(const mp_pod_t *pod);

// The platform from the option `platform`, or else from the description, or else by the device
// kind: tpu or gpu for kinds of TPUs and GPUs, and minipod for others. Never AUTO. `options` may be
// NULL: no options. INVALID_ARGUMENT for an option that cannot be read.
MP_NODISCARD mp_status_t mp_pod_read_platform(const mp_pod_t *pod, const mp_options_t *options,
                                              mp_platform_t *out_platform);

// Whether the devices are TPUs, by their kind.
bool mp_pod_is_tpu(const mp_pod_t *pod);

// ---- Time ----

// The settings of the model of time in the description and the options, which lend the texts.
typedef struct {
  mp_time_mode_t mode;
  mp_values_mode_t values;
  mp_clock_mode_t clock;
  mp_absent_mode_t absent;
  int32_t unknown_branch;      // 0 or more, MP_BRANCH_LARGEST or MP_BRANCH_SMALLEST
  int64_t unknown_trip_count;  // rounds of a loop whose condition was not computed
  const char *algorithms;      // of collectives; "": none is named
  const char *calibration;     // a file; "": none
  const char *chip_without;    // rules of the chip model, with commas; "": none
  double pace;                 // paced: real seconds for a virtual one
} mp_pod_time_t;

// Reads them. An option that is set wins over the description. INVALID_ARGUMENT for an option that
// cannot be read.
MP_NODISCARD mp_status_t mp_pod_read_time(const mp_pod_t *pod, const mp_options_t *options,
                                          mp_pod_time_t *out_time);
// Prefixes an error (consumed; OK stays OK) about `algorithms` or `calibration` with its origin:
// the option, or file, line and key.
MP_NODISCARD mp_status_t mp_pod_blame_time(const mp_pod_t *pod, const mp_options_t *options,
                                           mp_option_id_t id, mp_status_t status);

// Appends a table for users: the machine that hwloc found, and the devices.
void mp_pod_describe(const mp_pod_t *pod, mp_strbuf_t *out_text);

#endif  // MINIPOD_TOPOLOGY_POD_H_
