// Sharding rules describe how the tensors of an op share their dimensions.
//
// A rule has *factors*: each dimension of each operand and result is an ordered list of factors,
// major first. Shardings propagate along factors (propagate.h), and an op can work on parts if all
// of its tensors are sharded alike along the factors that allow it (lower.h). Ops without a rule
// "need replication": they get all operands whole.
#ifndef MINIPOD_SIM_SPMD_RULES_RULES_H_
#define MINIPOD_SIM_SPMD_RULES_RULES_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/base/status.h"
#include "sim/ir/module.h"

typedef enum {
  MP_FACTOR_PASS,       // every part is computed from the same parts of the operands
  MP_FACTOR_REDUCTION,  // parts of the result are terms of a reduction
  MP_FACTOR_PERMUTE,    // could be sharded, but parts need their neighbours' data
  MP_FACTOR_REPLICATE,  // must be whole to compute
} mp_factor_kind_t;

typedef struct {
  int64_t size;
  mp_factor_kind_t kind;
  bool blocked;  // shardings never propagate along it
} mp_factor_t;

typedef struct {
  uint32_t count;
  const uint16_t *factors;  // major first
} mp_dim_factors_t;

// When a rule's factors start to propagate, and in which direction (propagate.c has the levels).
typedef enum {
  MP_RULE_PLAIN,           // factors by kind
  MP_RULE_PASS_THROUGH,    // first, both ways: elementwise, reshape, transpose
  MP_RULE_FORWARD_FIRST,   // dynamic_slice, dynamic_update_slice
  MP_RULE_BACKWARD_FIRST,  // broadcast_in_dim
} mp_rule_class_t;

typedef struct {
  mp_rule_class_t priority;
  bool is_elementwise;
  uint32_t num_factors;
  const mp_factor_t *factors;
  uint32_t num_operands, num_results;
  // [num_operands + num_results], operands first; each an array over the tensor's dimensions.
  const mp_dim_factors_t *const *tensors;
} mp_rule_t;

// Makes the op's rule in `arena`; `*out_rule` is NULL when the op needs replication.
MP_NODISCARD mp_status_t mp_rule_create(mp_arena_t *arena, const mp_op_t *op,
                                        const mp_rule_t **out_rule);

// Makes the rule as the attribute sdy.sharding_rule (#sdy.op_sharding_rule).
MP_NODISCARD mp_status_t mp_rule_export(mp_arena_t *arena, const mp_op_t *op, const mp_rule_t *rule,
                                        const mp_attr_t **out_attr);

#endif  // MINIPOD_SIM_SPMD_RULES_RULES_H_
