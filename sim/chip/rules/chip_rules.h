// The rules of the chip model: special cases of compilers that are not in their published
// algorithms. Each has a row in the table, and can be switched off (option `chip_without`).
// tools/chip/ablate.py measures how much worse predictions are without each rule, and lists those
// without evidence (README.md). Passes that XLA publishes have a table of their own, and the same
// switches.
//
// Code asks for a rule only if the rule's condition holds. So a program *uses* exactly the rules
// that it asks for.
#ifndef MINIPOD_SIM_CHIP_RULES_CHIP_RULES_H_
#define MINIPOD_SIM_CHIP_RULES_CHIP_RULES_H_

#include "sim/base/status.h"
#include "sim/chip/rules/chip_rules_table.h"
#include "topology/figures/figures.h"

typedef enum {
#define MP_CHIP_RULE_ENUM(name, ...) MP_CHIP_RULE_##name,
  MP_CHIP_RULES(MP_CHIP_RULE_ENUM) MP_CHIP_PASSES(MP_CHIP_RULE_ENUM)
#undef MP_CHIP_RULE_ENUM
      MP_CHIP_RULE_COUNT
} mp_chip_rule_t;

_Static_assert(MP_CHIP_RULE_COUNT <= 64 * MP_CHIP_RULE_WORDS, "the switches have a bit per rule");

// Whether the rule is on. Notes that it was used if `figures->rules.used` is set.
static inline bool mp_chip_rule(const mp_chip_figures_t *figures, mp_chip_rule_t rule) {
  const uint64_t bit = (uint64_t)1 << (rule % 64);
  const uint32_t word = (uint32_t)rule / 64;
  if (figures->rules.used != NULL) figures->rules.used[word] |= bit;
  return (figures->rules.off[word] & bit) == 0;
}

// The rule's name ("sparse_core"), compiler ("tpu", "gpu", "both"), pass ("fuse", "PriorityFusion")
// and sentence; and whether it is a pass that XLA publishes.
const char *mp_chip_rule_name(mp_chip_rule_t rule);
const char *mp_chip_rule_compiler(mp_chip_rule_t rule);
const char *mp_chip_rule_pass(mp_chip_rule_t rule);
const char *mp_chip_rule_meaning(mp_chip_rule_t rule);
bool mp_chip_rule_is_pass(mp_chip_rule_t rule);

// Switches off the rules of a list "a,b". INVALID_ARGUMENT for an unknown name; the message has the
// nearest one.
MP_NODISCARD mp_status_t mp_chip_rules_without(mp_str_t names, mp_chip_figures_t *in_out_figures);

#endif  // MINIPOD_SIM_CHIP_RULES_CHIP_RULES_H_
