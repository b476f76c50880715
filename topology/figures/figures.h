// The parameters of a chip (figures): what its compiler, its units, its memory and its links reach,
// as public sources say or microbenchmarks show. Each chip has a file, configs/chips/<name>.yaml,
// in which every figure has its source; the library carries these files. If a figure is missing,
// its reader has a default (sim/chip/README.md).
//
// Plain values that may be copied and read by any thread.
#ifndef MINIPOD_TOPOLOGY_FIGURES_FIGURES_H_
#define MINIPOD_TOPOLOGY_FIGURES_FIGURES_H_

#include <math.h>

#include "sim/base/status.h"
#include "sim/base/str.h"

enum { MP_FIGURE_LIST_MOST = 24 };

// Several numbers; none where the key is absent.
typedef struct {
  uint32_t count;
  double each[MP_FIGURE_LIST_MOST];
} mp_figure_list_t;

// Whose compiler makes the chip's programs: what becomes one kernel, which collectives overlap with
// compute.
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

// What a collective of a kind takes besides its links (sim/model/network/overheads.c): seconds at
// its start, more for each doubling of its members and of its bytes beyond some, and what members
// do in their memory.
#define MP_CHIP_COLLECTIVE(X, kind)                                                         \
  X(kind##_start, "network." #kind "_start", TIME, "what it takes besides its links")       \
  X(kind##_members, "network." #kind "_members", TIME, "more for each doubling of members") \
  X(kind##_ramp, "network." #kind "_ramp", TIME, "more for each doubling of its bytes")     \
  X(kind##_ramp_from, "network." #kind "_ramp_from", BYTES, "as which the ramp begins")     \
  X(kind##_own, "network." #kind "_own", RATE, "at which a member's own part is copied")    \
  X(kind##_all, "network." #kind "_all", RATE, "at which a member goes over all of its bytes")

#define MP_CHIP_NETWORK_FIGURES(X)                                                              \
  X(network_share, "network.share", NUMBER, "of the links' rate in a slice, what arrives")      \
  X(network_channel, "network.channel", RATE, "of a message, what one of its channels carries") \
  X(network_cards, "network.cards", NUMBER, "of the cards' rate between hosts, what arrives")   \
  X(network_ring, "network.ring", LIST, "rings between hosts (sim/model/network/README.md)")    \
  X(network_tree, "network.tree", LIST, "the same of trees")                                    \
  X(network_switch_tree, "network.switch_tree", LIST, "of trees with switches that add")        \
  X(network_pairs, "network.pairs", LIST, "of exchanges by one member of each host")            \
  MP_CHIP_COLLECTIVE(X, all_reduce)                                                             \
  MP_CHIP_COLLECTIVE(X, all_gather)                                                             \
  MP_CHIP_COLLECTIVE(X, reduce_scatter)                                                         \
  MP_CHIP_COLLECTIVE(X, all_to_all)                                                             \
  MP_CHIP_COLLECTIVE(X, permute)                                                                \
  MP_CHIP_COLLECTIVE(X, switch_sum)

// What matmuls take (sim/chip/cost/README.md). Those of TPUs first, then those of GPUs. Rates are
// shares of what the description says of the element type and of the memory, so that a faster one
// can be tried.
#define MP_CHIP_PRODUCT_FIGURES(X)                                                                \
  X(product_launch, "product.launch", TIME, "what a product takes besides its work")              \
  X(product_scratch_launch, "product.scratch_launch", TIME, "the same with all in scratch")       \
  X(product_scratch_narrow, "product.scratch_narrow", TIME, "more, of a result of 2 bytes there") \
  X(product_ramp, "product.ramp", BYTES, "of memory that count twice in a product")               \
  X(product_step, "product.step", TIME, "what each step through the windows takes")               \
  X(product_accumulate, "product.accumulate", TIME, "1,024 sums of f32 read and written again")   \
  X(product_fetch, "product.fetch", TIME, "until a window of a factor begins to come")            \
  X(product_turn, "product.turn", TIME, "layout change of 1,024 elements of a result")            \
  X(product_reduced, "product.reduced", TIME, "8 x 128 results reduced where they are made")      \
  X(product_tile, "product.tile", LIST, "k, columns, and rows during which a tile is loaded")     \
  X(product_rows, "product.rows", TIME, "8 x 128 results with their softmax in the kernel")       \
  X(product_rows_again, "product.rows_again", LIST,                                               \
    "ns for the same of recomputed rows: those that fill the lanes, others")                      \
  X(product_inner_write, "product.inner_write", NUMBER, "times `write`, of an inner product")     \
  X(product_ragged, "product.ragged", TIME, "128 rows of one group, besides the units")           \
  X(product_stream, "product.stream", LIST, "ns for 8 x 128 of a factor that few rows go by")     \
  X(product_results, "product.results", LIST,                                                     \
    "ns for 8 x 128 results of few channels: by images, ...")                                     \
  X(product_rates, "product.rates", LIST, "bf16, f32, s8, f8 by the rate of bf16")                \
  X(product_read, "product.read", NUMBER, "of the memory's bandwidth, what windows reach")        \
  X(product_write, "product.write", LIST, "the same of results: of 2 bytes, of 4")                \
  X(product_near_write, "product.near_write", LIST, "the same of results in scratch memory")      \
  X(product_ring_write, "product.ring_write", NUMBER, "times that, of a ring's parts in scratch") \
  X(product_window, "product.window", BYTES, "scratch memory for windows")                        \
  X(product_resident, "product.resident", BYTES, "the largest operand that is fetched before")    \
  X(product_units, "product.units", NUMBER, "multiprocessors, on which tiles run in waves")       \
  X(product_bf16, "product.bf16", LIST, "how 16-bit products run, MP_PRODUCT_GPU_...")            \
  X(product_f32, "product.f32", LIST, "the same of TF32")                                         \
  X(product_f8, "product.f8", LIST, "the same of 8 bits")                                         \
  X(product_batched, "product.f32_batched", NUMBER, "times that TF32 takes longer in batches")    \
  X(product_f8_last, "product.f8_last", NUMBER, "1: factors of f8 have what is summed up last")

// Between a host and its devices (sim/model/clock).
#define MP_CHIP_HOST_FIGURES(X)                                                       \
  X(host_dispatch, "host.dispatch", TIME, "what a launch costs the host")             \
  X(host_latency, "host.latency", TIME, "what a transfer takes besides its link's")   \
  X(host_share, "host.share", NUMBER, "of host_link.bandwidth, what transfers reach") \
  X(host_put, "host.put", RATE, "of arrays of the process, which are not pinned")     \
  X(host_get, "host.get", RATE, "the same, to the process")                           \
  X(host_bandwidth, "host.bandwidth", RATE, "of all devices of a host, each direction")

// What all other kernels take (sim/chip/cost/README.md).
#define MP_CHIP_COST_FIGURES(X)                                                                   \
  X(memory_latency, "memory.latency", TIME, "until a kernel has its first bytes from memory")     \
  X(memory_ramp, "memory.ramp", BYTES, "of its first and last windows, which nothing is beside")  \
  X(vector_rate, "vector.rate", NUMBER, "simple operations a second, if not described")           \
  X(vector_share, "vector.share", NUMBER, "of the described rate, what simple operations reach")  \
  X(vector_bf16, "vector.bf16", NUMBER, "16-bit operations in the time of one on 32 bits")        \
  X(vector_exponential, "vector.exponential", NUMBER, "simple operations that it counts as")      \
  X(vector_logistic, "vector.logistic", NUMBER, "the same")                                       \
  X(vector_logarithm, "vector.logarithm", NUMBER, "the same")                                     \
  X(vector_tanh, "vector.tanh", NUMBER, "the same")                                               \
  X(vector_sine, "vector.sine", NUMBER, "the same; of all functions of angles")                   \
  X(vector_power, "vector.power", NUMBER, "the same; of cube roots, too")                         \
  X(vector_root, "vector.root", NUMBER, "the same; of square roots, and 1 by them")               \
  X(vector_division, "vector.division", NUMBER, "the same")                                       \
  X(vector_integer_division, "vector.integer_division", NUMBER, "the same; of remainders, too")   \
  X(vector_across, "vector.across", NUMBER, "the same; to add up the lanes of one result")        \
  X(vector_transpose, "vector.transpose", NUMBER, "the same; to bring an element to other lanes") \
  X(gather_slice, "gather.slice", TIME, "least time of one slice that is looked up")              \
  X(gather_near, "gather.near", TIME, "a row of a table that lies in scratch memory")             \
  X(gather_apart, "gather.apart", NUMBER, "slices; SparseCores look more than so many up")        \
  X(gather_granule, "gather.granule", BYTES, "that move at least, of each row of a slice")        \
  X(gather_cache, "gather.cache", BYTES, "in which tables are found again, not in memory")        \
  X(gather_cache_rate, "gather.cache_rate", NUMBER, "of the memory's bandwidth, what it has")     \
  X(scatter_slice, "scatter.slice", TIME, "least time of one update")                             \
  X(scatter_near_row, "scatter.near_row", TIME, "a row of an array in scratch memory")            \
  X(scatter_scalar, "scatter.scalar", TIME, "of a scalar that is updated, if no sum")             \
  X(scatter_near, "scatter.near", BYTES, "the largest array for which this holds")                \
  X(scatter_far_scalar, "scatter.far_scalar", TIME, "the same in larger arrays")                  \
  X(tiles_element, "tiles.element", TIME, "of an element that is brought into other tiles")       \
  X(tiles_rows, "tiles.rows", TIME, "the same behind a product, in the same lanes")               \
  X(tiles_lanes, "tiles.lanes", TIME, "the same, in other lanes")                                 \
  X(reverse_element, "reverse.element", TIME, "of an element, in the last dimension")             \
  X(sort_stage, "sort.stage", NUMBER, "simple operations for an element, an array and a stage")   \
  X(sort_best, "sort.best", TIME, "to search 8 x 128 elements once for the largest")              \
  X(sort_tile, "sort.tile", NUMBER, "elements of a line that are sorted in one pass")             \
  X(window_share, "window.share", NUMBER, "of what streams reach, what windows do")               \
  X(window_scan, "window.scan", NUMBER, "passes through memory of a cumulative op")               \
  X(window_scan_last, "window.scan_last", NUMBER, "the same along the last dimension")            \
  X(fft_element, "fft.element", TIME, "of an element, for a factor of 128 of the length")         \
  X(linalg_column, "linalg.column", TIME, "a step of a decomposition that others wait for")

// What a library's kernel for attention takes (sim/chip/cost/attention_cost.c): JAX's splash
// kernels on TPUs by block, those of cuDNN and their like on GPUs by sequence.
#define MP_CHIP_ATTENTION_FIGURES(X)                                                            \
  X(attention_splash_forward, "attention.splash_forward", LIST, "MP_ATTENTION_TPU_...")         \
  X(attention_splash_dkv, "attention.splash_dkv", LIST, "the same of keys' and values' kernel") \
  X(attention_splash_dq, "attention.splash_dq", LIST, "the same of queries' kernel")            \
  X(attention_splash_fused, "attention.splash_fused", LIST, "the same of one for all three")    \
  X(attention_cores, "attention.cores", NUMBER, "of a device, that share out heads")            \
  X(attention_forward, "attention.forward", LIST, "of the rate of bf16, at 512, 1k ... 16k")    \
  X(attention_forward_causal, "attention.forward_causal", LIST, "the same of half a square")    \
  X(attention_backward, "attention.backward", LIST, "the same of the backward pass")            \
  X(attention_backward_causal, "attention.backward_causal", LIST, "the same of half a square")  \
  X(attention_heads, "attention.heads", LIST, "by 128 wide ones: 64, 256; and in backward ones")

// How collectives are done (sim/chip/schedule/README.md).
#define MP_CHIP_OVERLAP_FIGURES(X)                                                                \
  X(overlap_all_gather, "overlap.all_gather", NUMBER, "0 sync, 1 async, 2 decomposed")            \
  X(overlap_all_reduce, "overlap.all_reduce", NUMBER, "the same of all_reduce")                   \
  X(overlap_least, "overlap.least", BYTES, "of an all_reduce that overlaps with compute")         \
  X(overlap_all_to_all, "overlap.all_to_all", NUMBER, "the same of all_to_all")                   \
  X(overlap_broadcast, "overlap.broadcast", NUMBER, "the same of collective_broadcast")           \
  X(overlap_permute, "overlap.permute", NUMBER, "the same of collective_permute")                 \
  X(overlap_scatter, "overlap.reduce_scatter", NUMBER, "the same of reduce_scatter")              \
  X(overlap_ring_members, "overlap.ring_members", NUMBER, "most members of rings")                \
  X(overlap_ring_dims, "overlap.ring_dims", NUMBER, "1: groups have the links of all dimensions") \
  X(overlap_ring_work, "overlap.ring_work", NUMBER, "least product by message of rings")          \
  X(overlap_no_ring, "overlap.no_ring", NUMBER, "0 sync, 1 async: gathers without one")           \
  X(overlap_carried, "overlap.carried", NUMBER, "1: matmuls overlap with gathers")                \
  X(overlap_whole_gathers, "overlap.whole_gathers", NUMBER, "1: all devices gather by sums")      \
  X(overlap_whole_sums, "overlap.whole_sums", NUMBER, "1: scatters of all devices sum all")       \
  X(overlap_combine, "overlap.combine", BYTES, "of collectives that are made one")                \
  X(overlap_pipeline, "overlap.pipeline", NUMBER, "1: beside other rounds of a loop")             \
  X(overlap_tracks, "overlap.tracks", NUMBER, "collectives that run at a time")                   \
  X(overlap_started, "overlap.started", NUMBER, "collectives started at a time at most")          \
  X(overlap_units, "overlap.units", NUMBER, "of `product.units`, what one of them takes")         \
  X(overlap_lost, "overlap.lost", NUMBER, "share that products beside one of them lose")

// Member, key (group and name), type, meaning. Types: COMPILER; NUMBER, above 0 or 0; TIME in
// seconds; RATE in bytes a second; BYTES; LIST of numbers.
#define MP_CHIP_FIGURES(X)                                                                      \
  X(compiler, "compiler", COMPILER, "whose compiler makes the chip's programs")                 \
  MP_CHIP_HOST_FIGURES(X)                                                                       \
  MP_CHIP_OVERLAP_FIGURES(X)                                                                    \
  MP_CHIP_NETWORK_FIGURES(X)                                                                    \
  X(kernel_latency, "kernel.latency", TIME, "what a kernel takes besides its work")             \
  X(scalar_latency, "kernel.scalar_latency", TIME, "the same of ops on single elements")        \
  X(memory_share, "memory.share", NUMBER, "of the bandwidth, what streams reach")               \
  X(memory_scratch, "memory.scratch", BYTES, "what stays on the chip between kernels")          \
  X(memory_workspace, "memory.workspace", BYTES, "that libraries' products work in")            \
  X(cluster_row, "cluster.row", NUMBER, "elements of a row that a kernel keeps on chip")        \
  X(cluster_product_row, "cluster.product_row", NUMBER, "the same of one with a product")       \
  X(cluster_mixed_row, "cluster.mixed_row", NUMBER, "the same with heads inside of tokens")     \
  X(cluster_cores, "cluster.cores", NUMBER, "of a device, each with scratch memory of its own") \
  X(cluster_carried, "cluster.carried", NUMBER, "of scratch memory, where rounds hand on")      \
  X(cluster_again, "cluster.again", LIST, "what its compiler counts for recomputed work")       \
  MP_CHIP_PRODUCT_FIGURES(X)                                                                    \
  MP_CHIP_ATTENTION_FIGURES(X)                                                                  \
  MP_CHIP_COST_FIGURES(X)

#define MP_FIGURE_TYPE_COMPILER mp_chip_compiler_t
#define MP_FIGURE_TYPE_NUMBER   double
#define MP_FIGURE_TYPE_TIME     double
#define MP_FIGURE_TYPE_RATE     double
#define MP_FIGURE_TYPE_BYTES    double
#define MP_FIGURE_TYPE_LIST     mp_figure_list_t

// Numbers that are absent are NaN.
typedef struct {
#define MP_FIGURE_MEMBER(member, key, type, meaning) MP_FIGURE_TYPE_##type member;
  MP_CHIP_FIGURES(MP_FIGURE_MEMBER)
#undef MP_FIGURE_MEMBER
} mp_chip_figures_t;

static inline double mp_figure_or(double figure, double otherwise) {
  return isnan(figure) ? otherwise : figure;
}

// No figures at all.
mp_chip_figures_t mp_chip_figures_none(void);

// Reads a file's text. INVALID_ARGUMENT "<origin>:<line>: ..." for what is no figure, or one that
// is given twice.
MP_NODISCARD mp_status_t mp_chip_figures_read(const char *origin, mp_str_t text,
                                              mp_chip_figures_t *out_figures);

// Finds the figures that a description names: those of a chip that the library knows ("v5e"), or of
// a file (a word with '/', or ending in .yaml). Empty: none. INVALID_ARGUMENT for an unknown chip,
// NOT_FOUND for a missing file.
MP_NODISCARD mp_status_t mp_chip_figures_find(mp_str_t name, mp_chip_figures_t *out_figures);

// Changes figures as flags of the chip's compiler do that a description names: "a=true,b=false".
// INVALID_ARGUMENT for one that no figure depends on, and for values that are neither true nor
// false.
MP_NODISCARD mp_status_t mp_chip_figures_take_flags(mp_str_t flags,
                                                    mp_chip_figures_t *in_out_figures);

#endif  // MINIPOD_TOPOLOGY_FIGURES_FIGURES_H_
