// The parameters of a chip (figures): the performance of its compiler, units, memory and links,
// from public sources or microbenchmarks. Each chip has a file, configs/chips/<name>.yaml, with a
// source for every parameter; the library contains these files. If a parameter is missing, its
// reader has a default (sim/chip/README.md).
//
// Plain values that may be copied and read by any thread.
#ifndef MINIPOD_TOPOLOGY_FIGURES_FIGURES_H_
#define MINIPOD_TOPOLOGY_FIGURES_FIGURES_H_

#include <math.h>

#include "sim/base/status.h"
#include "sim/base/str.h"
#include "topology/figures/figure_lists.h"

enum { MP_FIGURE_LIST_MOST = 24 };

// Several numbers; none if the key is missing.
typedef struct {
  uint32_t count;
  double each[MP_FIGURE_LIST_MOST];
} mp_figure_list_t;

// The compiler of the chip's programs, which decides what becomes one kernel and which collectives
// overlap with compute.
#define MP_CHIP_COMPILERS(X) \
  X(PLAIN, "plain")          \
  X(TPU, "tpu")              \
  X(GPU, "gpu")

typedef enum {
#define MP_CHIP_COMPILER_ENUM(name, text) MP_CHIP_COMPILER_##name,
  MP_CHIP_COMPILERS(MP_CHIP_COMPILER_ENUM)
#undef MP_CHIP_COMPILER_ENUM
      MP_CHIP_COMPILER_COUNT
} mp_chip_compiler_t;

// The overheads of a kind of collective in addition to its links (sim/model/network/overheads.c):
// seconds at its start, more per doubling of its members and of its bytes above a threshold, and
// the members' work in their own memory.
#define MP_CHIP_COLLECTIVE(X, kind)                                                          \
  X(kind##_start, "network." #kind "_start", TIME, "fixed cost, in addition to its links")   \
  X(kind##_members, "network." #kind "_members", TIME, "more per doubling of members")       \
  X(kind##_ramp, "network." #kind "_ramp", TIME, "more per doubling of its bytes")           \
  X(kind##_ramp_from, "network." #kind "_ramp_from", BYTES, "size at which the ramp begins") \
  X(kind##_own, "network." #kind "_own", RATE, "copying a member's own part")                \
  X(kind##_all, "network." #kind "_all", RATE, "a member's pass over all of its bytes")

#define MP_CHIP_NETWORK_FIGURES(X)                                                        \
  X(network_share, "network.share", NUMBER, "achieved share of a link's rate in a slice") \
  X(network_channel, "network.channel", RATE, "rate of one channel of a message")         \
  X(network_cards, "network.cards", NUMBER, "achieved share of the cards' rate")          \
  X(network_ring, "network.ring", NETWORK_COSTS,                                          \
    "rings between hosts (sim/model/network/README.md)")                                  \
  X(network_tree, "network.tree", NETWORK_COSTS, "the same for trees")                    \
  X(network_switch_tree, "network.switch_tree", NETWORK_SWITCHES,                         \
    "the same for trees with adding switches")                                            \
  X(network_pairs, "network.pairs", NETWORK_PAIRS, "the same for exchanges by host")      \
  MP_CHIP_COLLECTIVE(X, all_reduce)                                                       \
  MP_CHIP_COLLECTIVE(X, all_gather)                                                       \
  MP_CHIP_COLLECTIVE(X, reduce_scatter)                                                   \
  MP_CHIP_COLLECTIVE(X, all_to_all)                                                       \
  MP_CHIP_COLLECTIVE(X, permute)                                                          \
  MP_CHIP_COLLECTIVE(X, switch_sum)

// The costs of matmuls (sim/chip/cost/README.md): first those of TPUs, then those of GPUs. Rates
// are shares of the described peak rate of the element type, and of the described memory bandwidth,
// so that they also hold for a faster chip.
#define MP_CHIP_PRODUCT_FIGURES(X)                                                            \
  X(matmul_launch, "matmul.launch", TIME, "fixed cost of a matmul")                           \
  X(matmul_scratch_launch, "matmul.scratch_launch", TIME, "the same with all in VMEM")        \
  X(matmul_ramp, "matmul.ramp", BYTES, "bytes that a matmul counts twice")                    \
  X(matmul_step, "matmul.step", TIME, "cost per step through the windows")                    \
  X(matmul_accumulate, "matmul.accumulate", TIME, "reading and writing 1,024 f32 sums")       \
  X(matmul_fetch, "matmul.fetch", TIME, "latency of an operand's window")                     \
  X(matmul_tile, "matmul.tile", MATMUL_TILE, "the unit")                                      \
  X(matmul_rows, "matmul.rows", TIME, "8 x 128 results with their softmax in the kernel")     \
  X(matmul_inner_write, "matmul.inner_write", NUMBER, "times `write`, for an inner product")  \
  X(matmul_ragged, "matmul.ragged", TIME, "128 rows of one group, in addition")               \
  X(matmul_images, "matmul.images", TIME, "8 x 128 results with images in the lanes")         \
  X(matmul_rates, "matmul.rates", MATMUL_RATES, "of other types, by the rate of bf16")        \
  X(matmul_read, "matmul.read", NUMBER, "share of the bandwidth for windows")                 \
  X(matmul_write, "matmul.write", MATMUL_WRITE, "the same for results")                       \
  X(matmul_near_write, "matmul.near_write", MATMUL_WRITE, "the same for results in VMEM")     \
  X(matmul_ring_write, "matmul.ring_write", NUMBER, "times that, for a ring's parts in VMEM") \
  X(matmul_window, "matmul.window", BYTES, "VMEM for windows")                                \
  X(matmul_resident, "matmul.resident", BYTES, "the largest operand that is prefetched")      \
  X(matmul_units, "matmul.units", NUMBER, "multiprocessors; tiles run in waves")              \
  X(matmul_bf16, "matmul.bf16", MATMUL_GPU, "how 16-bit matmuls run")                         \
  X(matmul_f32, "matmul.f32", MATMUL_GPU, "the same for TF32")                                \
  X(matmul_f8, "matmul.f8", MATMUL_GPU, "the same for 8 bits")

// Between a host and its devices (sim/model/clock).
#define MP_CHIP_HOST_FIGURES(X)                                                       \
  X(host_dispatch, "host.dispatch", TIME, "host time per launch")                     \
  X(host_latency, "host.latency", TIME, "fixed cost of a transfer, without its link") \
  X(host_share, "host.share", NUMBER, "achieved share of host_link.bandwidth")        \
  X(host_put, "host.put", RATE, "from unpinned arrays of the process")                \
  X(host_get, "host.get", RATE, "the same, to the process")                           \
  X(host_bandwidth, "host.bandwidth", RATE, "all devices of a host, per direction")

// The costs of all other kernels (sim/chip/cost/README.md).
#define MP_CHIP_COST_FIGURES(X)                                                                  \
  X(memory_latency, "memory.latency", TIME, "until a kernel's first bytes arrive")               \
  X(memory_ramp, "memory.ramp", BYTES, "first and last windows, not overlapped")                 \
  X(vector_rate, "vector.rate", NUMBER, "simple operations per second, by default")              \
  X(vector_share, "vector.share", NUMBER, "achieved share of the described rate")                \
  X(vector_exponential, "vector.exponential", NUMBER, "cost in simple operations")               \
  X(vector_logistic, "vector.logistic", NUMBER, "the same")                                      \
  X(vector_logarithm, "vector.logarithm", NUMBER, "the same")                                    \
  X(vector_tanh, "vector.tanh", NUMBER, "the same")                                              \
  X(vector_sine, "vector.sine", NUMBER, "the same; for all functions of angles")                 \
  X(vector_power, "vector.power", NUMBER, "the same; for cube roots, too")                       \
  X(vector_root, "vector.root", NUMBER, "the same; square roots and their inverses")             \
  X(vector_division, "vector.division", NUMBER, "the same")                                      \
  X(vector_integer_division, "vector.integer_division", NUMBER, "the same; for remainders, too") \
  X(vmem_load, "vmem.load", TIME, "loading 8 x 128 words from VMEM")                             \
  X(vmem_store, "vmem.store", TIME, "storing them there")                                        \
  X(vmem_rotate, "vmem.rotate", TIME, "rotating them along the lanes")                           \
  X(vmem_reduce, "vmem.reduce", TIME, "reducing their lanes")                                    \
  X(vmem_broadcast, "vmem.broadcast", TIME, "filling the lanes of each row")                     \
  X(vmem_lanes_latency, "vmem.lanes_latency", TIME, "until the first of these is done")          \
  X(vmem_transpose, "vmem.transpose", TIME, "exchanging lanes and sublanes")                     \
  X(gather_slice, "gather.slice", TIME, "least time per slice")                                  \
  X(gather_apart, "gather.apart", NUMBER, "from this many slices on: SparseCores")               \
  X(gather_granule, "gather.granule", BYTES, "least bytes moved per row of a slice")             \
  X(gather_cache, "gather.cache", BYTES, "size of the cache for tables")                         \
  X(gather_cache_rate, "gather.cache_rate", NUMBER, "its rate, relative to the memory's")        \
  X(scatter_slice, "scatter.slice", TIME, "least time of one update")                            \
  X(scatter_scalar, "scatter.scalar", TIME, "an updated scalar, if not a sum")                   \
  X(scatter_near, "scatter.near", BYTES, "the largest array for which this holds")               \
  X(scatter_far_scalar, "scatter.far_scalar", TIME, "the same in larger arrays")                 \
  X(tiles_element, "tiles.element", TIME, "an element moved to another tile")                    \
  X(tiles_rows, "tiles.rows", TIME, "the same after a matmul, same lanes")                       \
  X(tiles_lanes, "tiles.lanes", TIME, "the same, in other lanes")                                \
  X(tiles_swap, "tiles.swap", TIME, "the same, where lanes and sublanes change places")          \
  X(reverse_element, "reverse.element", TIME, "an element, in the last dimension")               \
  X(sort_stage, "sort.stage", NUMBER, "simple operations per element, array, stage")             \
  X(sort_best, "sort.best", TIME, "searching 8 x 128 elements for the largest")                  \
  X(sort_tile, "sort.tile", NUMBER, "elements of a line that are sorted in one pass")            \
  X(window_share, "window.share", NUMBER, "rate of windows, relative to streams")                \
  X(window_scan, "window.scan", NUMBER, "passes through memory of a cumulative op")              \
  X(fft_element, "fft.element", TIME, "an element, per factor of the length")                    \
  X(linalg_column, "linalg.column", TIME, "a sequential step of a decomposition")

// The costs of a library's attention kernel (sim/chip/cost/attention_cost.c): JAX's splash kernels
// on TPUs per block, cuDNN's and similar ones on GPUs by sequence length.
#define MP_CHIP_ATTENTION_FIGURES(X)                                                               \
  X(attention_splash_forward, "attention.splash_forward", ATTENTION_TPU, "the forward kernel")     \
  X(attention_splash_dkv, "attention.splash_dkv", ATTENTION_TPU, "the same for the dk, dv kernel") \
  X(attention_splash_dq, "attention.splash_dq", ATTENTION_TPU, "the same for the dq kernel")       \
  X(attention_splash_fused, "attention.splash_fused", ATTENTION_TPU, "the same for a fused one")   \
  X(attention_mask, "attention.mask", ATTENTION_MASK, "what a mask by position costs them")        \
  X(attention_segments, "attention.segments", ATTENTION_MASK, "the same of segment ids")           \
  X(attention_cores, "attention.cores", NUMBER, "cores that divide the heads")                     \
  X(attention_forward, "attention.forward", ATTENTION_GPU, "share of the bf16 rate")               \
  X(attention_forward_causal, "attention.forward_causal", ATTENTION_GPU,                           \
    "the same for causal attention")                                                               \
  X(attention_backward, "attention.backward", ATTENTION_GPU, "the same for the backward pass")     \
  X(attention_backward_causal, "attention.backward_causal", ATTENTION_GPU,                         \
    "the same for causal attention")                                                               \
  X(attention_heads, "attention.heads", ATTENTION_HEADS, "relative to heads of 128")

// How collectives are scheduled (sim/chip/schedule/README.md).
#define MP_CHIP_OVERLAP_FIGURES(X)                                                                \
  X(overlap_all_gather, "overlap.all_gather", NUMBER, "0 sync, 1 async, 2 decomposed")            \
  X(overlap_all_reduce, "overlap.all_reduce", NUMBER, "the same for all_reduce")                  \
  X(overlap_least, "overlap.least", BYTES, "smallest all_reduce that overlaps")                   \
  X(overlap_permute, "overlap.permute", NUMBER, "the same for collective_permute")                \
  X(overlap_ring_members, "overlap.ring_members", NUMBER, "most members of rings")                \
  X(overlap_ring_dims, "overlap.ring_dims", NUMBER, "1: groups have the links of all dimensions") \
  X(overlap_ring_work, "overlap.ring_work", NUMBER, "least work per message of rings")            \
  X(overlap_no_ring, "overlap.no_ring", NUMBER, "0 sync, 1 async: gathers without one")           \
  X(overlap_carried, "overlap.carried", NUMBER, "1: matmuls overlap with gathers")                \
  X(overlap_whole_gathers, "overlap.whole_gathers", NUMBER, "1: all devices gather by sums")      \
  X(overlap_whole_sums, "overlap.whole_sums", NUMBER, "1: scatters of all devices sum all")       \
  X(overlap_combine, "overlap.combine", BYTES, "largest combined collective")                     \
  X(overlap_pipeline, "overlap.pipeline", NUMBER, "1: overlap across rounds of a loop")           \
  X(overlap_tracks, "overlap.tracks", NUMBER, "collectives that run at a time")                   \
  X(overlap_started, "overlap.started", NUMBER, "collectives started at a time at most")          \
  X(overlap_units, "overlap.units", NUMBER, "share of `matmul.units` that one takes")             \
  X(overlap_lost, "overlap.lost", NUMBER, "share that an overlapped matmul loses")

// Member, key (group and name), type, meaning. Types: COMPILER; NUMBER, above 0 or 0; TIME in
// seconds; RATE in bytes a second; BYTES; a list of numbers (figure_lists.h).
#define MP_CHIP_FIGURES(X)                                                                \
  X(compiler, "compiler", COMPILER, "the compiler of the chip's programs")                \
  MP_CHIP_HOST_FIGURES(X)                                                                 \
  MP_CHIP_OVERLAP_FIGURES(X)                                                              \
  MP_CHIP_NETWORK_FIGURES(X)                                                              \
  X(kernel_latency, "kernel.latency", TIME, "fixed cost of a kernel")                     \
  X(vmem_latency, "kernel.vmem_latency", TIME, "the same with all arrays in VMEM")        \
  X(scalar_latency, "kernel.scalar_latency", TIME, "the same for ops on single elements") \
  X(kernel_clock, "kernel.clock", NUMBER, "bundles of instructions per second and core")  \
  X(memory_share, "memory.share", NUMBER, "achieved share of the bandwidth")              \
  X(memory_scratch, "memory.scratch", BYTES, "memory kept on chip between kernels")       \
  X(memory_workspace, "memory.workspace", BYTES, "workspace of libraries' matmuls")       \
  X(fusion_row, "fusion.row", NUMBER, "elements of a row that a kernel keeps on chip")    \
  X(fusion_matmul_row, "fusion.matmul_row", NUMBER, "the same for one with a matmul")     \
  X(fusion_mixed_row, "fusion.mixed_row", NUMBER, "the same with heads of 128 or more")   \
  X(fusion_cores, "fusion.cores", NUMBER, "cores of a device, each with its own VMEM")    \
  X(fusion_again, "fusion.again", FUSION_AGAIN, "its compiler's cost of recomputed work") \
  MP_CHIP_PRODUCT_FIGURES(X)                                                              \
  MP_CHIP_ATTENTION_FIGURES(X)                                                            \
  MP_CHIP_COST_FIGURES(X)

#define MP_FIGURE_TYPE_COMPILER         mp_chip_compiler_t
#define MP_FIGURE_TYPE_NUMBER           double
#define MP_FIGURE_TYPE_TIME             double
#define MP_FIGURE_TYPE_RATE             double
#define MP_FIGURE_TYPE_BYTES            double
#define MP_FIGURE_TYPE_NETWORK_COSTS    mp_figure_list_t
#define MP_FIGURE_TYPE_NETWORK_SWITCHES mp_figure_list_t
#define MP_FIGURE_TYPE_NETWORK_PAIRS    mp_figure_list_t
#define MP_FIGURE_TYPE_MATMUL_TILE      mp_figure_list_t
#define MP_FIGURE_TYPE_MATMUL_RATES     mp_figure_list_t
#define MP_FIGURE_TYPE_MATMUL_WRITE     mp_figure_list_t
#define MP_FIGURE_TYPE_MATMUL_GPU       mp_figure_list_t
#define MP_FIGURE_TYPE_ATTENTION_TPU    mp_figure_list_t
#define MP_FIGURE_TYPE_ATTENTION_MASK   mp_figure_list_t
#define MP_FIGURE_TYPE_ATTENTION_GPU    mp_figure_list_t
#define MP_FIGURE_TYPE_ATTENTION_HEADS  mp_figure_list_t
#define MP_FIGURE_TYPE_FUSION_AGAIN     mp_figure_list_t

// Where a parameter comes from, as the key `sources` of a chip's file says. A parameter that a file
// takes over from the chip it is like is COPIED. UNMARKED: the file says nothing.
#define MP_CHIP_SOURCES(X)    \
  X(UNMARKED, "unmarked")     \
  X(MEASURED, "measured")     \
  X(COMPILER, "compiler")     \
  X(DATA_SHEET, "data sheet") \
  X(ESTIMATE, "estimate")     \
  X(COPIED, "copied")

typedef enum {
#define MP_CHIP_SOURCE_ENUM(name, text) MP_CHIP_SOURCE_##name,
  MP_CHIP_SOURCES(MP_CHIP_SOURCE_ENUM)
#undef MP_CHIP_SOURCE_ENUM
      MP_CHIP_SOURCE_COUNT
} mp_chip_source_t;

// The numbers of parameters, in the order of the table: MP_CHIP_FIGURE_matmul_launch.
typedef enum {
#define MP_CHIP_FIGURE_NUMBER(member, key, type, meaning) MP_CHIP_FIGURE_##member,
  MP_CHIP_FIGURES(MP_CHIP_FIGURE_NUMBER)
#undef MP_CHIP_FIGURE_NUMBER
      MP_FIGURE_COUNT
} mp_chip_figure_t;
// In place of a number: rates of the pod's description.
#define MP_CHIP_FIGURE_NONE MP_CHIP_FIGURE_compiler

// Which rules of the chip model are switched off (sim/chip/rules/chip_rules.h), a bit each. `used`:
// where the model notes which it asked for, [MP_CHIP_RULE_WORDS], written by one thread at a time;
// NULL: nowhere.
enum { MP_CHIP_RULE_WORDS = 4 };
typedef struct {
  uint64_t off[MP_CHIP_RULE_WORDS];
  uint64_t *used;
} mp_chip_switches_t;

// Missing numbers are NaN.
typedef struct {
#define MP_FIGURE_MEMBER(member, key, type, meaning) MP_FIGURE_TYPE_##type member;
  MP_CHIP_FIGURES(MP_FIGURE_MEMBER)
#undef MP_FIGURE_MEMBER
  uint8_t sources[MP_FIGURE_COUNT];  // mp_chip_source_t of each, in the order of the table
  mp_chip_switches_t rules;
} mp_chip_figures_t;

static inline double mp_figure_or(double figure, double otherwise) {
  return isnan(figure) ? otherwise : figure;
}

// Parameters that are all missing.
mp_chip_figures_t mp_chip_figures_none(void);

// Reads a file's text. INVALID_ARGUMENT "<origin>:<line>: ..." for an unknown parameter, or one
// that is given twice.
MP_NODISCARD mp_status_t mp_chip_figures_read(const char *origin, mp_str_t text,
                                              mp_chip_figures_t *out_figures);

// Finds the parameters that a description names: those of a chip that the library knows ("v5e"), or
// of a file (a word with '/', or ending in .yaml). Empty: none. INVALID_ARGUMENT for an unknown
// chip, NOT_FOUND for a missing file.
MP_NODISCARD mp_status_t mp_chip_figures_find(mp_str_t name, mp_chip_figures_t *out_figures);

// The key of a parameter: "matmul.launch".
const char *mp_chip_figure_key(mp_chip_figure_t figure);
// Whether the parameter has a value. False for `compiler`, which is no number.
bool mp_chip_figure_is_given(const mp_chip_figures_t *figures, mp_chip_figure_t figure);
// Appends a line per parameter that is given: key, value, kind of source and meaning, with tabs
// between them.
void mp_chip_figures_print(const mp_chip_figures_t *figures, mp_strbuf_t *out);
// Whether its value is an estimate, copied from another chip, or has no mark.
bool mp_chip_figure_is_unsure(const mp_chip_figures_t *figures, mp_chip_figure_t figure);

// Changes parameters according to flags of the chip's compiler in a description: "a=true,b=false".
// INVALID_ARGUMENT for a flag that changes no parameter, and for values that are neither true nor
// false.
MP_NODISCARD mp_status_t mp_chip_figures_take_flags(mp_str_t flags,
                                                    mp_chip_figures_t *in_out_figures);
// The same for libtpu's flags in LIBTPU_INIT_ARGS ("--a=true --b"). Other flags have no effect,
// which is logged at level info.
void mp_chip_figures_take_init_args(mp_str_t args, mp_chip_figures_t *in_out_figures);
// The same for one flag of a program's compile options, "a=true"; false: it has no effect.
bool mp_chip_figures_take_flag(mp_str_t flag, mp_chip_figures_t *in_out_figures);
// Appends those of libtpu's flags in LIBTPU_INIT_ARGS that have an effect, with their last values:
// equal for arguments with equal effects.
void mp_chip_flags_write(mp_str_t args, mp_strbuf_t *out);

#endif  // MINIPOD_TOPOLOGY_FIGURES_FIGURES_H_
