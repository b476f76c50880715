// The table of rules: name, compiler, pass, and one sentence in XLA's terms.
#ifndef MINIPOD_SIM_CHIP_RULES_RULES_TABLE_H_
#define MINIPOD_SIM_CHIP_RULES_RULES_TABLE_H_

// clang-format off
#define MP_CHIP_RULES(X) \
  X(chains, "tpu", "fuse", "a matmul that produces an operand of one other matmul is fused into it")
// clang-format on

#endif  // MINIPOD_SIM_CHIP_RULES_RULES_TABLE_H_
