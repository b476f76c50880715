// Looks up rules, and switches them off by name.
#include "sim/chip/rules/chip_rules.h"

#include "sim/base/assert.h"

static const struct {
  const char *compiler, *pass, *meaning;
  bool is_pass;
} g_rules[] = {
#define MP_CHIP_RULE_ROW(name, compiler, pass, meaning) {compiler, pass, meaning, false},
#define MP_CHIP_PASS_ROW(name, compiler, pass, meaning) {compiler, pass, meaning, true},
    MP_CHIP_RULES(MP_CHIP_RULE_ROW) MP_CHIP_PASSES(MP_CHIP_PASS_ROW)
#undef MP_CHIP_RULE_ROW
#undef MP_CHIP_PASS_ROW
};

static const char *const g_names[] = {
#define MP_CHIP_RULE_NAME(name, ...) #name,
    MP_CHIP_RULES(MP_CHIP_RULE_NAME) MP_CHIP_PASSES(MP_CHIP_RULE_NAME)
#undef MP_CHIP_RULE_NAME
};

const char *mp_chip_rule_name(mp_chip_rule_t rule) {
  return g_names[rule];
}

const char *mp_chip_rule_compiler(mp_chip_rule_t rule) {
  return g_rules[rule].compiler;
}

const char *mp_chip_rule_pass(mp_chip_rule_t rule) {
  return g_rules[rule].pass;
}

const char *mp_chip_rule_meaning(mp_chip_rule_t rule) {
  return g_rules[rule].meaning;
}

bool mp_chip_rule_is_pass(mp_chip_rule_t rule) {
  return g_rules[rule].is_pass;
}

static void chip_rules_put_off(mp_chip_figures_t *figures, mp_chip_rule_t rule) {
  MP_ASSERT(rule < MP_CHIP_RULE_COUNT);
  figures->rules.off[(uint32_t)rule / 64] |= (uint64_t)1 << (rule % 64);
}

static mp_status_t chip_rules_switch_off(mp_str_t name, mp_chip_figures_t *figures) {
  for (int rule = 0; rule < MP_CHIP_RULE_COUNT; ++rule) {
    if (!mp_str_is(name, g_names[rule])) continue;
    chip_rules_put_off(figures, (mp_chip_rule_t)rule);
    return NULL;
  }
  const char *nearest = mp_str_nearest(name, g_names, MP_CHIP_RULE_COUNT);
  return mp_status_make(
      MP_INVALID_ARGUMENT,
      "'%.*s' is not a rule of the chip model%s%s%s; `minipod chip --rules` lists "
      "them",
      MP_STR_ARG(name), nearest == NULL ? "" : ", did you mean '", nearest == NULL ? "" : nearest,
      nearest == NULL ? "" : "'?");
}

mp_status_t mp_chip_rules_without(mp_str_t names, mp_chip_figures_t *in_out_figures) {
  while (names.size != 0) {
    MP_RETURN_IF_ERROR(chip_rules_switch_off(mp_str_trim(mp_str_cut(&names, ',')), in_out_figures));
  }
  return NULL;
}
