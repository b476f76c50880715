// The policies of libtpu, and of chips without a described compiler.
#include "sim/chip/fuse/chip_fusion_policy.h"
#include "sim/chip/rules/chip_rules.h"

// Whether the fusion computes no expensive op for each element of a broadcast, as XLA's
// InstructionFusion::ShouldFuse has it (ReusesOperandElements, IsExpensive).
static bool chip_fusion_tpu_is_cheap(const mp_chip_fusion_op_t *at,
                                     const mp_chip_fusion_user_t *user) {
  if (!user->is_reused || mp_chip_fusion_is_scaling_quotient(at->op)) return true;
  return at->work.transcendentals == 0 && at->op->code != MP_OP_DIVIDE;
}

// Whether a matmul can join the fusion that iterates over its result.
static bool chip_fusion_tpu_takes_matmul(const mp_chip_fusion_find_t *find,
                                         const mp_chip_fusion_op_t *at,
                                         const mp_chip_fusion_user_t *user) {
  const mp_chip_fusion_kind_t kind = find->states.items[user->fusion].kind;
  const bool is_rows = find->out->fusions.items[user->fusion].is_rows;
  if (is_rows && !mp_chip_fusion_makes_rows(find, at->op, user->fusion)) return false;
  return mp_chip_fusion_reads_along(find, at, user) &&
         (kind == MP_CHIP_FUSION_LOOP || kind == MP_CHIP_FUSION_REDUCTION ||
          kind == MP_CHIP_FUSION_UPDATE);
}

// ---- libtpu ----

static bool chip_fusion_tpu_keeps_rows(const mp_chip_fusion_find_t *find,
                                       const mp_chip_fusion_op_t *at,
                                       const mp_chip_fusion_user_t *user) {
  return find->users.count == 1 && mp_chip_fusion_may_keep_rows(find, at, user) &&
         at->op->results[0].type->rank >= 2 &&
         mp_chip_rule(find->figures, MP_CHIP_RULE_softmax_rows);
}

// Whether a matmul can join the fusion whose matmul reads it as an operand.
static bool chip_fusion_tpu_takes_operand(const mp_chip_fusion_find_t *find,
                                          const mp_chip_fusion_op_t *at,
                                          const mp_chip_fusion_user_t *user) {
  return mp_chip_fusion_is_only_user(find, at) && !user->is_reused &&
         mp_chip_fusion_chains(find, at->op, &at->work, user);
}

static bool chip_fusion_tpu_accepts(const mp_chip_fusion_find_t *find,
                                    const mp_chip_fusion_op_t *at,
                                    const mp_chip_fusion_user_t *user) {
  if (at->kind == MP_CHIP_FUSION_MATMUL) {
    return chip_fusion_tpu_takes_matmul(find, at, user) ||
           chip_fusion_tpu_takes_operand(find, at, user);
  }
  if (at->kind == MP_CHIP_FUSION_REDUCTION) return chip_fusion_tpu_keeps_rows(find, at, user);
  // A value that several slices of a fusion read is written, not recomputed for each.
  const bool is_read = user->num_slices < 2 || mp_chip_fusion_is_generator(at->op) ||
                       !mp_chip_rule(find->figures, MP_CHIP_RULE_several_slices);
  return at->kind == MP_CHIP_FUSION_LOOP && is_read && chip_fusion_tpu_is_cheap(at, user);
}

static bool chip_fusion_tpu_should_copy(mp_chip_fusion_find_t *find, const mp_chip_fusion_op_t *at,
                                        const mp_chip_fusion_user_t *first, bool first_may_write) {
  const bool is_of_rows = mp_chip_fusion_is_shifted_exp(at->op, find->rows_most);
  if (is_of_rows && at->op->results[0].type->rank > 2 &&
      mp_chip_rule(find->figures, MP_CHIP_RULE_shifted_exp)) {
    return false;
  }
  return mp_chip_fusion_copies(find, at, first, first_may_write);
}

const mp_chip_fusion_policy_t mp_chip_fusion_tpu = {
    .row = 8192,
    .counts_uses = true,
    .has_ragged = true,
    .accepts = chip_fusion_tpu_accepts,
    .should_copy = chip_fusion_tpu_should_copy,
};

// ---- others ----

static bool chip_fusion_tpu_plain_accepts(const mp_chip_fusion_find_t *find,
                                          const mp_chip_fusion_op_t *at,
                                          const mp_chip_fusion_user_t *user) {
  if (at->kind == MP_CHIP_FUSION_MATMUL) return chip_fusion_tpu_takes_matmul(find, at, user);
  if (at->kind == MP_CHIP_FUSION_REDUCTION) {
    return mp_chip_fusion_goes_through(find, at, user) && mp_chip_fusion_is_only_user(find, at) &&
           find->states.items[user->fusion].kind == MP_CHIP_FUSION_LOOP;
  }
  return at->kind == MP_CHIP_FUSION_LOOP && chip_fusion_tpu_is_cheap(at, user);
}

const mp_chip_fusion_policy_t mp_chip_fusion_plain = {.accepts = chip_fusion_tpu_plain_accepts,
                                                      .should_copy = mp_chip_fusion_copies};
