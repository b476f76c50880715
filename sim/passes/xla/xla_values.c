// The sweep that applies the rules.
#include "sim/passes/xla/xla_values.h"

#include "sim/base/log.h"
#include "sim/passes/xla/xla_rules.h"

typedef struct {
  const char *name;
  mp_opcode_t code, other_code;  // the opcodes that the rule handles
  mp_xla_rule_t apply;
} rule_t;

#define RULE(name, code, other_code, ...) {#name, MP_OP_##code, MP_OP_##other_code, mp_xla_##name},
static const rule_t g_rules[] = {MP_XLA_RULES(RULE)};
#undef RULE

enum { NUM_RULES = sizeof(g_rules) / sizeof(g_rules[0]) };

static void xla_values_tell(const rule_t *rule, mp_opcode_t code, const mp_op_t *op) {
  if (!mp_log_enabled(MP_LOG_DEBUG)) return;
  mp_strbuf_t where;
  mp_strbuf_init(&where);
  mp_loc_describe(op->loc, &where);
  mp_log(MP_LOG_DEBUG, "rewrote %s as XLA does, by the rule %s [%s]", mp_op_info(code)->name,
         rule->name, mp_strbuf_text(&where));
  mp_strbuf_deinit(&where);
}

// An op with its own sharding is not replaced, because the replacement may have another one: it
// becomes a conversion to the same type, which folding removes after partitioning.
static mp_status_t xla_values_keep_sharding(mp_xla_t *x, mp_op_t *op, mp_xla_outcome_t *out) {
  mp_value_t *by = out->by;
  if (by == NULL || mp_op_attr(op, MP_ATTR_SDY_SHARDING) == NULL) return NULL;
  out->by = NULL;
  return mp_xla_become(x, op, MP_OP_CONVERT, by, NULL, out);
}

static mp_status_t xla_values_apply(mp_xla_t *x, mp_op_t *op, mp_xla_outcome_t *out) {
  const mp_opcode_t code = op->code;
  for (size_t i = 0; i < NUM_RULES; ++i) {
    if (g_rules[i].code != code && g_rules[i].other_code != code) continue;
    MP_RETURN_IF_ERROR(g_rules[i].apply(x, op, out));
    MP_RETURN_IF_ERROR(xla_values_keep_sharding(x, op, out));
    if (!out->is_changed && out->by == NULL) continue;
    xla_values_tell(&g_rules[i], code, op);
    return NULL;
  }
  return NULL;
}

static void xla_values_replace_operands(mp_xla_t *x, mp_op_t *op) {
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    mp_value_t *by = x->replaced.items[op->operands[i]->id];
    if (by != NULL) op->operands[i] = by;
  }
}

// The next op of the block to visit: the first op that the rule inserted, if it changed something,
// because rules may match the inserted ops and then the op again.
static mp_status_t xla_values_visit(mp_xla_t *x, mp_op_t *op, mp_op_t **out_next) {
  mp_op_t *before = op->prev;
  mp_xla_outcome_t outcome = {0};
  MP_RETURN_IF_ERROR(xla_values_apply(x, op, &outcome));
  if (outcome.by != NULL) x->replaced.items[op->results[0].id] = outcome.by;
  *out_next = op->next;
  if (outcome.is_changed) *out_next = before == NULL ? op->parent->first : before->next;
  return NULL;
}

static bool xla_values_is_control(const mp_op_t *op) {
  return op->code == MP_OP_WHILE || op->code == MP_OP_CASE;
}

static mp_status_t xla_values_block(mp_xla_t *x, mp_block_t *block, bool has_rules) {
  for (mp_op_t *op = block->first, *next = NULL; op != NULL; op = next) {
    next = op->next;
    xla_values_replace_operands(x, op);
    if (has_rules && op->num_results == 1) MP_RETURN_IF_ERROR(xla_values_visit(x, op, &next));
    for (uint32_t r = 0; r < op->num_regions; ++r)
      MP_RETURN_IF_ERROR(
          xla_values_block(x, op->regions[r], has_rules && xla_values_is_control(op)));
  }
  return NULL;
}

mp_status_t mp_pass_xla_values(mp_module_t *module) {
  mp_xla_t x = {.module = module};
  const uint32_t num_values = mp_module_number_values(module);
  MP_RETURN_IF_ERROR(MP_ARRAY_RESERVE(module->arena, &x.replaced, num_values));
  while (x.replaced.count < num_values) x.replaced.items[x.replaced.count++] = NULL;
  return xla_values_block(&x, module->main->body, true);
}
