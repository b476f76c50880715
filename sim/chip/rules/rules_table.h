// The table of rules: name, compiler, pass, and one sentence in XLA's terms.
#ifndef MINIPOD_SIM_CHIP_RULES_RULES_TABLE_H_
#define MINIPOD_SIM_CHIP_RULES_RULES_TABLE_H_

// clang-format off
#define MP_CHIP_FUSE_RULES(X) \
  X(chains, "tpu", "fuse", "a matmul that produces an operand of one other matmul is fused into it")

#define MP_CHIP_SPACE_RULES(X)

#define MP_CHIP_LAYOUT_RULES(X)

#define MP_CHIP_COST_RULES(X)

#define MP_CHIP_SCHEDULE_RULES(X)

#define MP_CHIP_MEMORY_RULES(X)
// clang-format on

#define MP_CHIP_RULES(X)    \
  MP_CHIP_FUSE_RULES(X)     \
  MP_CHIP_SPACE_RULES(X)    \
  MP_CHIP_LAYOUT_RULES(X)   \
  MP_CHIP_COST_RULES(X)     \
  MP_CHIP_SCHEDULE_RULES(X) \
  MP_CHIP_MEMORY_RULES(X)

#endif  // MINIPOD_SIM_CHIP_RULES_RULES_TABLE_H_
