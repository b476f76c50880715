// Parameters that are lists of numbers: the names of their members in a chip's file, and their
// positions in the code. For each kind of list a table of X(position, name, meaning).
#ifndef MINIPOD_TOPOLOGY_FIGURES_FIGURE_LISTS_H_
#define MINIPOD_TOPOLOGY_FIGURES_FIGURE_LISTS_H_

// Matmuls on GPUs, such as `matmul.bf16` (sim/chip/cost/matmul_gpu.c).
#define MP_MATMUL_GPU_MEMBERS(X)                                                          \
  X(MP_MATMUL_GPU_LAUNCH, "launch", "us in addition to the work")                         \
  X(MP_MATMUL_GPU_RATE, "rate", "share of the peak that a full wave reaches")             \
  X(MP_MATMUL_GPU_LOAD, "load", "GB/s with which a multiprocessor loads tiles")           \
  X(MP_MATMUL_GPU_STORE, "store", "GB/s with which it stores them")                       \
  X(MP_MATMUL_GPU_SPLIT, "split", "us to add up a split k")                               \
  X(MP_MATMUL_GPU_SUM, "sum", "TB/s of the sums of its parts")                            \
  X(MP_MATMUL_GPU_MEMORY, "memory", "share of the memory's bandwidth that matmuls reach") \
  X(MP_MATMUL_GPU_SUSTAINED, "sustained",                                                 \
    "share of the peak that long ones sustain, by the "                                   \
    "limit of power")

// Matmuls on TPUs (sim/chip/cost/matmul_tpu.c).
#define MP_MATMUL_TILE_MEMBERS(X)                     \
  X(MP_MATMUL_TILE_K, "k", "of the unit")             \
  X(MP_MATMUL_TILE_COLUMNS, "columns", "of the unit") \
  X(MP_MATMUL_TILE_ROWS, "rows", "while a tile is loaded")
#define MP_MATMUL_RATES_MEMBERS(X)                            \
  X(MP_MATMUL_RATES_BF16, "bf16", "relative to that of bf16") \
  X(MP_MATMUL_RATES_F32, "f32", "the same")                   \
  X(MP_MATMUL_RATES_S8, "s8", "the same")                     \
  X(MP_MATMUL_RATES_F8, "f8", "the same")
#define MP_MATMUL_WRITE_MEMBERS(X)                                 \
  X(MP_MATMUL_WRITE_NARROW, "narrow",                              \
    "share of the bandwidth, results of up to 2 bytes an element") \
  X(MP_MATMUL_WRITE_WIDE, "wide", "the same, wider results")

// JAX's splash kernels on TPUs, such as `attention.splash_forward`
// (sim/chip/cost/attention_cost.c).
#define MP_ATTENTION_TPU_MEMBERS(X)                                                               \
  X(MP_ATTENTION_TPU_SHARE, "share", "of the rate of bf16, inside of blocks; heads of up to 128") \
  X(MP_ATTENTION_TPU_WIDE, "wide", "the same of wider heads")                                     \
  X(MP_ATTENTION_TPU_STEP, "step", "ns per block in addition")                                    \
  X(MP_ATTENTION_TPU_SKIP, "skip", "ns per block that is all masked")                             \
  X(MP_ATTENTION_TPU_ENDS, "ends", "ns at the start and the end of 512 rows of results")

// What masks of those kernels cost in blocks that are not all masked, such as `attention.mask`.
#define MP_ATTENTION_MASK_MEMBERS(X)                                                           \
  X(MP_ATTENTION_MASK_FORWARD, "forward", "ns per 512 x 512 scores, blocks of up to 512 keys") \
  X(MP_ATTENTION_MASK_LONG, "long", "the same, blocks of more keys")                           \
  X(MP_ATTENTION_MASK_DKV, "dkv", "the same, of the dk, dv kernel")                            \
  X(MP_ATTENTION_MASK_DQ, "dq", "the same, of the dq kernel")                                  \
  X(MP_ATTENTION_MASK_FUSED, "fused", "the same, of a fused one")

// Attention on GPUs by sequence length, such as `attention.forward`, and by head width.
#define MP_ATTENTION_GPU_MEMBERS(X)                                                 \
  X(MP_ATTENTION_GPU_512, "512", "share of the rate of bf16 with sequences of 512") \
  X(MP_ATTENTION_GPU_1K, "1k", "the same of 1,024")                                 \
  X(MP_ATTENTION_GPU_2K, "2k", "the same of 2,048")                                 \
  X(MP_ATTENTION_GPU_4K, "4k", "the same of 4,096")                                 \
  X(MP_ATTENTION_GPU_8K, "8k", "the same of 8,192")                                 \
  X(MP_ATTENTION_GPU_16K, "16k", "the same of 16,384")
#define MP_ATTENTION_HEADS_MEMBERS(X)                                         \
  X(MP_ATTENTION_HEADS_64, "64", "relative to the rate with heads of 128")    \
  X(MP_ATTENTION_HEADS_256, "256", "the same")                                \
  X(MP_ATTENTION_HEADS_BACKWARD_64, "backward_64", "the same, backward pass") \
  X(MP_ATTENTION_HEADS_BACKWARD_256, "backward_256", "the same, backward pass")

// `fusion.again` (sim/chip/fuse/chip_fusion_priority.c): what XLA's compiler for GPUs counts when
// it decides whether kernels recompute a value. Cycles are per element; 0: not measured.
#define MP_FUSION_AGAIN_MEMBERS(X)                                                           \
  X(MP_FUSION_AGAIN_BALANCE, "balance", "operations while a byte comes from memory")         \
  X(MP_FUSION_AGAIN_LAUNCH, "launch", "MB that come from memory while a kernel is launched") \
  X(MP_FUSION_AGAIN_ADD, "add", "cycles")                                                    \
  X(MP_FUSION_AGAIN_MULTIPLY, "multiply", "cycles")                                          \
  X(MP_FUSION_AGAIN_DIVIDE, "divide", "cycles")                                              \
  X(MP_FUSION_AGAIN_EXPONENTIAL, "exponential", "cycles")                                    \
  X(MP_FUSION_AGAIN_EXPONENTIAL_MINUS_ONE, "exponential_minus_one", "cycles")                \
  X(MP_FUSION_AGAIN_LOG, "log", "cycles")                                                    \
  X(MP_FUSION_AGAIN_LOG_PLUS_ONE, "log_plus_one", "cycles")                                  \
  X(MP_FUSION_AGAIN_TANH, "tanh", "cycles")                                                  \
  X(MP_FUSION_AGAIN_SINE, "sine", "cycles")                                                  \
  X(MP_FUSION_AGAIN_ROOT, "root", "cycles")                                                  \
  X(MP_FUSION_AGAIN_POWER, "power", "cycles")                                                \
  X(MP_FUSION_AGAIN_UNITS, "units", "multiprocessors")

// NCCL's table of costs between hosts, such as `network.ring` (sim/model/network/algorithms/
// between_hosts.c): for its protocols LL, LL128 and Simple.
#define MP_NETWORK_COSTS_MEMBERS(X)                                  \
  X(MP_NETWORK_COSTS_START, "start_ll", "us at the start")           \
  X(MP_NETWORK_COSTS_START_LL128, "start_ll128", "the same")         \
  X(MP_NETWORK_COSTS_START_SIMPLE, "start_simple", "the same")       \
  X(MP_NETWORK_COSTS_INNER, "inner_ll", "us per step in a host")     \
  X(MP_NETWORK_COSTS_INNER_LL128, "inner_ll128", "the same")         \
  X(MP_NETWORK_COSTS_INNER_SIMPLE, "inner_simple", "the same")       \
  X(MP_NETWORK_COSTS_OUTER, "outer_ll", "us per step between hosts") \
  X(MP_NETWORK_COSTS_OUTER_LL128, "outer_ll128", "the same")         \
  X(MP_NETWORK_COSTS_OUTER_SIMPLE, "outer_simple", "the same")       \
  X(MP_NETWORK_COSTS_SHARE, "share_ll", "share of the cards' rate")  \
  X(MP_NETWORK_COSTS_SHARE_LL128, "share_ll128", "the same")         \
  X(MP_NETWORK_COSTS_SHARE_SIMPLE, "share_simple", "the same")       \
  X(MP_NETWORK_COSTS_LL_MOST, "ll_most", "GB/s that LL reaches")
#define MP_NETWORK_SWITCHES_MEMBERS(X)                             \
  X(MP_NETWORK_SWITCHES_START, "start", "us in hosts")             \
  X(MP_NETWORK_SWITCHES_STEP, "step", "us per step between hosts") \
  X(MP_NETWORK_SWITCHES_SHARE, "share", "share of the cards' rate")
#define MP_NETWORK_PAIRS_MEMBERS(X)                                    \
  X(MP_NETWORK_PAIRS_START, "start", "us at the start")                \
  X(MP_NETWORK_PAIRS_DOUBLING, "doubling", "us per doubling of hosts") \
  X(MP_NETWORK_PAIRS_MEMBER, "member", "us per member")                \
  X(MP_NETWORK_PAIRS_SHARE, "share", "share of the cards' rate")

// The kinds of lists.
#define MP_FIGURE_LISTS(X) \
  X(MATMUL_GPU)            \
  X(MATMUL_TILE)           \
  X(MATMUL_RATES)          \
  X(MATMUL_WRITE)          \
  X(ATTENTION_TPU)         \
  X(ATTENTION_MASK)        \
  X(ATTENTION_GPU)         \
  X(ATTENTION_HEADS)       \
  X(FUSION_AGAIN)          \
  X(NETWORK_COSTS)         \
  X(NETWORK_SWITCHES)      \
  X(NETWORK_PAIRS)

#define MP_FIGURE_LIST_POSITION(position, name, meaning) position,
#define MP_FIGURE_LIST_ENUM(list) \
  enum { MP_##list##_MEMBERS(MP_FIGURE_LIST_POSITION) MP_##list##_COUNT };
MP_FIGURE_LISTS(MP_FIGURE_LIST_ENUM)
#undef MP_FIGURE_LIST_ENUM
#undef MP_FIGURE_LIST_POSITION

#endif  // MINIPOD_TOPOLOGY_FIGURES_FIGURE_LISTS_H_
