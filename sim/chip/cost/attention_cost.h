// Attention as libraries' kernels do it, without scores in memory: which custom_calls are such
// kernels, and what they take on a chip. README.md has the formulas.
//
// Pure functions; thread-safe.
#ifndef MINIPOD_SIM_CHIP_COST_ATTENTION_COST_H_
#define MINIPOD_SIM_CHIP_COST_ATTENTION_COST_H_

#include "sim/chip/cost/chip.h"

// What a kernel makes of queries, keys and values.
typedef enum {
  MP_ATTENTION_FORWARD,
  MP_ATTENTION_DKV,       // gradients of keys and values
  MP_ATTENTION_DQ,        // of queries
  MP_ATTENTION_BACKWARD,  // of all three
  MP_ATTENTION_PASS_COUNT
} mp_attention_pass_t;

typedef struct {
  mp_attention_pass_t pass;
  bool is_causal;                    // what is behind a token is masked
  bool is_splash;                    // one of JAX's splash kernels
  double heads;                      // of all sequences
  double queries, keys;              // lengths
  double width;                      // of a head
  double block_queries, block_keys;  // of the blocks that a TPU's kernel goes through
  double steps;                      // blocks that a kernel goes through for a head; 0: all
  double window;                     // keys that a token sees with a causal mask; 0: all
  double flops;                      // operations, as the call says; 0: it does not
} mp_attention_t;

// attention_call.c: whether the op is such a kernel, by its target and name. Then what it says of
// itself, and its operands do.
bool mp_attention_of_call(const mp_op_t *op, mp_attention_t *out_attention);

// The operations of its matmuls, of what the mask leaves.
double mp_attention_flops(const mp_attention_t *attention);

// The seconds of the kernel, without its latency.
double mp_attention_seconds(const mp_chip_t *chip, const mp_attention_t *attention);

// The members of a figure such as `attention.splash_forward`.
typedef enum {
  MP_ATTENTION_TPU_SHARE,  // of the rate of bf16, inside of blocks; heads of up to 128
  MP_ATTENTION_TPU_WIDE,   // the same of wider ones
  MP_ATTENTION_TPU_STEP,   // ns that a block takes besides
  MP_ATTENTION_TPU_SKIP,   // ns of a block that is all masked
  MP_ATTENTION_TPU_ENDS,   // ns at the begin and the end of 512 rows of results
  MP_ATTENTION_TPU_COUNT
} mp_attention_tpu_t;

// Of the figures by sequence, such as `attention.forward`: 512, 1k, 2k, 4k, 8k, 16k.
enum { MP_ATTENTION_GPU_FIRST = 512, MP_ATTENTION_GPU_COUNT = 6 };

// The members of `attention.heads`: of the rate with heads of 128.
typedef enum {
  MP_ATTENTION_HEADS_64,
  MP_ATTENTION_HEADS_256,
  MP_ATTENTION_HEADS_BACKWARD_64,
  MP_ATTENTION_HEADS_BACKWARD_256,
  MP_ATTENTION_HEADS_COUNT
} mp_attention_heads_t;

#endif  // MINIPOD_SIM_CHIP_COST_ATTENTION_COST_H_
