// Attention kernels of libraries, which keep no scores in memory: recognises them among custom
// calls, and computes their time. README.md has the formulas.
//
// Pure functions; thread-safe.
#ifndef MINIPOD_SIM_CHIP_COST_ATTENTION_COST_H_
#define MINIPOD_SIM_CHIP_COST_ATTENTION_COST_H_

#include "sim/chip/cost/chip.h"

// The results of a kernel.
typedef enum {
  MP_ATTENTION_FORWARD,
  MP_ATTENTION_DKV,       // gradients of keys and values
  MP_ATTENTION_DQ,        // of queries
  MP_ATTENTION_BACKWARD,  // of all three
  MP_ATTENTION_PASS_COUNT
} mp_attention_pass_t;

typedef struct {
  mp_attention_pass_t pass;
  bool is_causal;                    // later tokens are masked
  bool is_splash;                    // one of JAX's splash kernels
  bool is_masked;                    // a splash kernel with a mask by position
  bool is_segmented;                 // a splash kernel with segment ids
  double heads;                      // of all sequences
  double queries, keys;              // lengths
  double width;                      // of a head
  double block_queries, block_keys;  // of a TPU kernel's blocks
  double steps;                      // blocks per head; 0: all
  double window;                     // keys that a token sees with a causal mask; 0: all
  double flops;                      // operations that the call states; 0: none
} mp_attention_t;

// attention_call.c: whether the op is an attention kernel, by its target and name. If so, its
// sizes, from its operands and its configuration.
bool mp_attention_of_call(const mp_op_t *op, mp_attention_t *out_attention);

// The operations of its matmuls without masked scores.
double mp_attention_flops(const mp_attention_t *attention);

// The seconds of the kernel, without its latency.
double mp_attention_seconds(const mp_chip_t *chip, const mp_attention_t *attention);

// The shortest sequence of parameters such as `attention.forward`; each next one is twice as long.
enum { MP_ATTENTION_GPU_FIRST = 512 };

#endif  // MINIPOD_SIM_CHIP_COST_ATTENTION_COST_H_
