// Whether a fusion can compute what it reads.
#include "sim/chip/fuse/chip_fusion_impl.h"
#include "sim/chip/rules/chip_rules.h"

// Whether an op of the fusion reads a whole array besides the matmul's result.
static bool chip_fusion_accepts_reads_array(const mp_chip_fusion_find_t *find,
                                            const mp_chip_fusion_t *fusion, const mp_op_t *op,
                                            const mp_op_t *matmul) {
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    bool is_reused = false;
    const mp_value_t *value =
        mp_chip_fusion_source(find->figures, op, MP_CHIP_FUSION_LOOP, i, &is_reused);
    if (value == NULL || is_reused || value->op == matmul) continue;
    if (value->op == NULL || !mp_chip_fusion_has_member(find, fusion, value->op)) return true;
  }
  return false;
}

// Whether the ops of a fusion are what a library of matmuls does with a result: bias and
// activation, or the sum with another array. Of tanh it has gelu, which multiplies six times.
static bool chip_fusion_accepts_is_library_epilogue(const mp_chip_fusion_find_t *find,
                                                    uint32_t number, const mp_op_t *matmul) {
  enum { OPS_MOST = 16, GELU_PRODUCTS_LEAST = 4 };
  uint32_t num_ops = 0, num_sums = 0, num_scales = 0, num_tanhs = 0, num_matmuls = 0;
  bool reads_array = false;
  const mp_chip_fusion_t *fusion = &find->out->fusions.items[number];
  for (uint32_t at = fusion->first_member; at != MP_CHIP_FUSION_NONE;) {
    const mp_chip_fusion_member_t *member = &find->out->members.items[at];
    const mp_opcode_t code = member->op->code;
    const bool is_known = code == MP_OP_ADD || code == MP_OP_MULTIPLY || code == MP_OP_MAXIMUM ||
                          code == MP_OP_TANH || code == MP_OP_POWER;
    if (!is_known || ++num_ops > OPS_MOST) return false;
    num_sums += code == MP_OP_ADD;
    num_tanhs += code == MP_OP_TANH;
    num_matmuls += code == MP_OP_MULTIPLY;
    num_scales += mp_chip_fusion_scales(find->figures, member->op);
    reads_array |= chip_fusion_accepts_reads_array(find, fusion, member->op, matmul);
    at = member->next;
  }
  if (num_tanhs > 0 && num_matmuls < GELU_PRODUCTS_LEAST) return false;
  if (!reads_array) return num_ops > 0;
  // The matmul may be scaled before it is added.
  return num_sums == 1 && num_sums + num_scales == num_ops && num_scales <= 1;
}

// Whether a GPU's kernel of a reduction can end in what the fusion does: in ops of one operand
// alone, as with another one it would go through the results (FindNonTrivialHero).
static bool chip_fusion_accepts_is_unary(const mp_chip_fusion_find_t *find, uint32_t number) {
  uint32_t at = find->out->fusions.items[number].first_member;
  for (; at != MP_CHIP_FUSION_NONE; at = find->out->members.items[at].next) {
    if (find->out->members.items[at].op->num_operands != 1) return false;
  }
  return true;
}

// Whether a matmul or a reduction may end in the fusion that goes through its result.
static bool chip_fusion_accepts_takes_result(const mp_chip_fusion_find_t *find,
                                             const mp_chip_fusion_op_t *at,
                                             const mp_chip_fusion_user_t *user) {
  const mp_chip_fusion_t *fusion = &find->out->fusions.items[user->fusion];
  const mp_chip_fusion_kind_t kind = find->states.items[user->fusion].kind;
  if (!user->is_along || user->is_reused) return false;
  if (fusion->is_rows && (at->kind != MP_CHIP_FUSION_MATMUL ||
                          !mp_chip_fusion_makes_rows(find, at->op, user->fusion))) {
    return false;
  }
  if (fusion->count != mp_chip_fusion_op_count(at->op)) return false;
  const bool is_only = find->users.count == 1 && at->memory_use == MP_CHIP_FUSION_NONE;
  if (at->kind == MP_CHIP_FUSION_REDUCTION) {
    return kind == MP_CHIP_FUSION_LOOP && is_only && find->compiler != MP_CHIP_COMPILER_TPU &&
           (find->compiler != MP_CHIP_COMPILER_GPU ||
            chip_fusion_accepts_is_unary(find, user->fusion));
  }
  if (find->compiler == MP_CHIP_COMPILER_GPU) {
    return kind == MP_CHIP_FUSION_LOOP && is_only &&
           chip_fusion_accepts_is_library_epilogue(find, user->fusion, at->op) &&
           mp_chip_rule(find->figures, MP_CHIP_RULE_gemm_epilogue);
  }
  return kind == MP_CHIP_FUSION_LOOP || kind == MP_CHIP_FUSION_REDUCTION ||
         kind == MP_CHIP_FUSION_UPDATE;
}

// Whether a matmul may be done in the kernel of the one of which it makes a factor.
static bool chip_fusion_accepts_takes_factor(const mp_chip_fusion_find_t *find,
                                             const mp_chip_fusion_op_t *at,
                                             const mp_chip_fusion_user_t *user) {
  const bool is_only = find->users.count == 1 && at->memory_use == MP_CHIP_FUSION_NONE;
  return is_only && !user->is_reused && mp_chip_fusion_chains(find, at->op, &at->work, user);
}

bool mp_chip_fusion_keeps_rows(const mp_chip_fusion_find_t *find, const mp_chip_fusion_op_t *at,
                               const mp_chip_fusion_user_t *user) {
  const mp_chip_fusion_t *fusion = &find->out->fusions.items[user->fusion];
  const mp_chip_fusion_state_t *state = &find->states.items[user->fusion];
  const double row = mp_chip_fusion_row(at->op);
  if (!user->is_reused || row == 0 || row > find->rows_most) return false;
  if (state->kind != MP_CHIP_FUSION_LOOP && state->kind != MP_CHIP_FUSION_REDUCTION) return false;
  if (fusion->count != mp_chip_fusion_extent(at->op, at->kind)) return false;
  const uint64_t dims = mp_chip_fusion_reduced_dims(at->op);
  if (state->reduced_dims != 0 && state->reduced_dims != dims) return false;
  const bool is_only = find->users.count == 1;
  if (find->compiler == MP_CHIP_COMPILER_TPU && !mp_chip_fusion_leaves_rows(at->op)) return false;
  if (find->compiler != MP_CHIP_COMPILER_GPU) {
    return is_only && mp_chip_fusion_is_of_softmax(at->op) &&
           mp_chip_rule(find->figures, MP_CHIP_RULE_softmax_rows);
  }
  if (mp_chip_fusion_is_turned(find, at->op) &&
      mp_chip_rule(find->figures, MP_CHIP_RULE_transposed_rows))
    return false;
  return (mp_chip_fusion_closes_rows(find, at->op) &&
          mp_chip_rule(find->figures, MP_CHIP_RULE_rows_close)) ||
         (is_only && mp_chip_fusion_follows_rows(find, at->op) &&
          mp_chip_rule(find->figures, MP_CHIP_RULE_rows_follow));
}

// Whether all that read a window's result, or a sum of windows, go through it one by one: XLA's
// compiler for GPUs has no kernel of its own for it, but for cumulative ones.
static bool chip_fusion_accepts_takes_windows(const mp_chip_fusion_find_t *find,
                                              const mp_chip_fusion_op_t *at,
                                              const mp_chip_fusion_user_t *user) {
  if (find->compiler != MP_CHIP_COMPILER_GPU || at->op->code != MP_OP_REDUCE_WINDOW) return false;
  const mp_chip_fusion_t *fusion = &find->out->fusions.items[user->fusion];
  const bool is_only = find->users.count == 1 && at->memory_use == MP_CHIP_FUSION_NONE;
  return is_only && user->is_along && !user->is_reused && !fusion->is_rows &&
         find->states.items[user->fusion].kind == MP_CHIP_FUSION_LOOP &&
         fusion->count == mp_chip_fusion_op_count(at->op) &&
         mp_chip_fusion_cumulative(at->op) < 0 &&
         mp_chip_rule(find->figures, MP_CHIP_RULE_window_fusion);
}

// Whether an op is made again in each kernel of a cumulative op: XLA's compiler for GPUs adds up
// tiles, and then goes through them again, reading each element for several results. It writes
// before what is dear or made of several arrays.
static bool chip_fusion_accepts_is_made_again(const mp_chip_fusion_find_t *find,
                                              const mp_chip_fusion_op_t *at) {
  uint32_t num_arrays = 0;
  for (uint32_t i = 0; i < at->op->num_operands; ++i) {
    bool is_reused = false;
    const mp_value_t *value = mp_chip_fusion_source(find->figures, at->op, at->kind, i, &is_reused);
    num_arrays += value != NULL && mp_chip_fusion_value_count(value) > 1;
  }
  return (num_arrays <= 1 && !mp_chip_fusion_is_dear(at->op, &at->work)) ||
         !mp_chip_rule(find->figures, MP_CHIP_RULE_cumulative_inputs);
}

// Whether the fusion does not compute what is dear more often than pays.
static bool chip_fusion_accepts_is_cheap(const mp_chip_fusion_find_t *find,
                                         const mp_chip_fusion_op_t *at,
                                         const mp_chip_fusion_user_t *user) {
  const bool is_dear = mp_chip_fusion_is_dear(at->op, &at->work);
  return !is_dear || !user->is_reused || find->compiler == MP_CHIP_COMPILER_GPU ||
         !mp_chip_rule(find->figures, MP_CHIP_RULE_expensive_broadcast);
}

bool mp_chip_fusion_accepts(const mp_chip_fusion_find_t *find, const mp_chip_fusion_op_t *at,
                            const mp_chip_fusion_user_t *user) {
  if (at->kind == MP_CHIP_FUSION_MATMUL) {
    return chip_fusion_accepts_takes_result(find, at, user) ||
           chip_fusion_accepts_takes_factor(find, at, user);
  }
  if (at->kind == MP_CHIP_FUSION_REDUCTION) {
    return chip_fusion_accepts_takes_result(find, at, user) ||
           (find->users.count == 1 && mp_chip_fusion_keeps_rows(find, at, user));
  }
  if (at->kind == MP_CHIP_FUSION_WINDOW) return chip_fusion_accepts_takes_windows(find, at, user);
  if (at->kind != MP_CHIP_FUSION_LOOP) return false;
  const mp_chip_fusion_t *fusion = &find->out->fusions.items[user->fusion];
  if (find->compiler == MP_CHIP_COMPILER_GPU && mp_chip_fusion_cumulative(fusion->hero) >= 0 &&
      !chip_fusion_accepts_is_made_again(find, at)) {
    return false;
  }
  if (!mp_chip_fusion_has_room(find, at->op, user->fusion) &&
      mp_chip_rule(find->figures, MP_CHIP_RULE_code_size)) {
    return false;
  }
  if (mp_chip_fusion_overwrites_source(find, at->op, user->fusion) &&
      mp_chip_rule(find->figures, MP_CHIP_RULE_update_source)) {
    return false;
  }
  // Slices are users of their own: what several of them read is not computed for each.
  const bool is_read = user->num_slices < 2 || mp_chip_fusion_is_generator(at->op);
  if (find->compiler == MP_CHIP_COMPILER_TPU && !is_read &&
      mp_chip_rule(find->figures, MP_CHIP_RULE_several_slices)) {
    return false;
  }
  // A library's matmul is as it is.
  if (find->compiler == MP_CHIP_COMPILER_GPU &&
      find->states.items[user->fusion].kind == MP_CHIP_FUSION_MATMUL) {
    return false;
  }
  return chip_fusion_accepts_is_cheap(find, at, user);
}
