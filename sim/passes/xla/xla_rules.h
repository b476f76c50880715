// Shared by the rules; private to this folder.
//
// A rule handles one op whose operands have already been simplified. It may change the op in place
// (sim/passes/rewrite/), insert ops before it, or return a replacement of its result. It matches
// only ops of the same block, and constants of any block: XLA's loop bodies and branches see
// nothing else.
#ifndef MINIPOD_SIM_PASSES_XLA_XLA_RULES_H_
#define MINIPOD_SIM_PASSES_XLA_XLA_RULES_H_

#include "sim/base/containers/array.h"
#include "sim/base/status.h"
#include "sim/passes/rewrite/rewrite.h"
#include "sim/passes/xla/xla_values.h"

// The state of the pass.
typedef struct {
  mp_module_t *module;
  // By value id: the replacement; NULL: the value itself.
  MP_ARRAY(mp_value_t *) replaced;
} mp_xla_t;

// The effect of a rule on its op.
typedef struct {
  bool is_changed;
  mp_value_t *by;  // replaces the op's result; NULL: the op stays
} mp_xla_outcome_t;

typedef mp_status_t (*mp_xla_rule_t)(mp_xla_t *x, mp_op_t *op, mp_xla_outcome_t *out);

// ---- xla_match.c ----

// The op that computes `value`, if it is a `code` of the block of `user`; otherwise NULL.
mp_op_t *mp_xla_operand(const mp_op_t *user, const mp_value_t *value, mp_opcode_t code);
// Whether all elements are known when the program is compiled: a constant, or one broadcast from a
// scalar.
bool mp_xla_is_constant(const mp_value_t *value);
// Whether `value` is a constant with the same real number everywhere, and that number.
bool mp_xla_number(const mp_value_t *value, double *out_number);

// Inserts an op before `position`; results are numbered.
MP_NODISCARD mp_status_t mp_xla_insert(mp_xla_t *x, mp_op_t *position, const mp_op_one_t *op,
                                       mp_value_t **out_value);
// Inserts an elementwise op of one or two operands (`b` may be NULL) of the type of `a`.
MP_NODISCARD mp_status_t mp_xla_compute(mp_xla_t *x, mp_op_t *position, mp_opcode_t code,
                                        mp_value_t *a, mp_value_t *b, mp_value_t **out_value);
// Inserts a constant of `type`, a floating-point or complex one, with one real number everywhere.
MP_NODISCARD mp_status_t mp_xla_insert_number(mp_xla_t *x, mp_op_t *position, const mp_type_t *type,
                                              double number, mp_value_t **out_value);
// `op` becomes a `code` of these operands (`b` may be NULL).
MP_NODISCARD mp_status_t mp_xla_become(mp_xla_t *x, mp_op_t *op, mp_opcode_t code, mp_value_t *a,
                                       mp_value_t *b, mp_xla_outcome_t *out);

// ---- the rules of MP_XLA_RULES: xla_masks.c, xla_powers.c, xla_constants.c ----

#define MP_XLA_RULE(name, ...) \
  MP_NODISCARD mp_status_t mp_xla_##name(mp_xla_t *x, mp_op_t *op, mp_xla_outcome_t *out);
MP_XLA_RULES(MP_XLA_RULE)
#undef MP_XLA_RULE

#endif  // MINIPOD_SIM_PASSES_XLA_XLA_RULES_H_
