// The policy of XLA for GPUs: library matmuls with epilogues (GemmRewriter), rows in one kernel
// (SoftmaxRewriterTriton), and PriorityFusion.
#include "sim/chip/fuse/chip_fusion_policy.h"
#include "sim/chip/rules/chip_rules.h"

// Whether an op of the fusion reads an array that is not the matmul's result.
static bool chip_fusion_gpu_reads_array(const mp_chip_fusion_find_t *find,
                                        const mp_chip_fusion_t *fusion, const mp_op_t *op,
                                        const mp_op_t *matmul) {
  for (mp_chip_fusion_read_t read = {0};
       mp_chip_fusion_next(find->figures, op, MP_CHIP_FUSION_LOOP, &read);) {
    if (read.is_reused || read.value->op == matmul) continue;
    if (read.value->op == NULL || !mp_chip_fusion_has_member(find, fusion, read.value->op))
      return true;
  }
  return false;
}

// Whether an op multiplies an array by a scalar constant.
static bool chip_fusion_gpu_scales(const mp_chip_figures_t *figures, const mp_op_t *op) {
  mp_chip_fusion_read_t read = {0};
  return op->code == MP_OP_MULTIPLY &&
         mp_chip_fusion_next(figures, op, MP_CHIP_FUSION_LOOP, &read) &&
         !mp_chip_fusion_next(figures, op, MP_CHIP_FUSION_LOOP, &read);
}

// Whether the ops of a fusion are an epilogue of the matmul library: bias and activation, or the
// sum with another array. A tanh must be part of a gelu, which has six multiplications.
static bool chip_fusion_gpu_is_library_epilogue(const mp_chip_fusion_find_t *find, uint32_t number,
                                                const mp_op_t *matmul) {
  enum { GELU_PRODUCTS_LEAST = 4 };
  uint32_t num_ops = 0, num_sums = 0, num_scales = 0, num_tanhs = 0, num_matmuls = 0;
  bool reads_array = false;
  const mp_chip_fusion_t *fusion = &find->out->fusions.items[number];
  for (const mp_chip_fusion_member_t *m = NULL; mp_chip_fusion_visit(find->out, fusion, &m);) {
    const mp_opcode_t code = m->op->code;
    const bool is_known =
        code == MP_OP_ADD || code == MP_OP_MULTIPLY || code == MP_OP_MAXIMUM || code == MP_OP_TANH;
    if (!is_known) return false;
    ++num_ops;
    num_sums += code == MP_OP_ADD;
    num_tanhs += code == MP_OP_TANH;
    num_matmuls += code == MP_OP_MULTIPLY;
    num_scales += chip_fusion_gpu_scales(find->figures, m->op);
    reads_array |= chip_fusion_gpu_reads_array(find, fusion, m->op, matmul);
  }
  if (num_tanhs > 0 && num_matmuls < GELU_PRODUCTS_LEAST) return false;
  if (!reads_array) return num_ops > 0;
  // The matmul may be scaled before the addition.
  return num_sums == 1 && num_sums + num_scales == num_ops;
}

// Whether a matmul can join the fusion that iterates over its result: its epilogue.
static bool chip_fusion_gpu_takes_result(const mp_chip_fusion_find_t *find,
                                         const mp_chip_fusion_op_t *at,
                                         const mp_chip_fusion_user_t *user) {
  if (!mp_chip_fusion_goes_through(find, at, user) || !mp_chip_fusion_is_only_user(find, at) ||
      find->states.items[user->fusion].kind != MP_CHIP_FUSION_LOOP) {
    return false;
  }
  return chip_fusion_gpu_is_library_epilogue(find, user->fusion, at->op) &&
         mp_chip_rule(find->figures, MP_CHIP_RULE_gemm_epilogue);
}

static bool chip_fusion_gpu_keeps_rows(const mp_chip_fusion_find_t *find,
                                       const mp_chip_fusion_op_t *at,
                                       const mp_chip_fusion_user_t *user) {
  if (!mp_chip_fusion_may_keep_rows(find, at, user)) return false;
  if (mp_chip_fusion_is_transposed(find, at->op) &&
      mp_chip_rule(find->figures, MP_CHIP_RULE_transposed_rows)) {
    return false;
  }
  return (mp_chip_fusion_closes_rows(find, at->op) || mp_chip_fusion_follows_rows(find, at->op)) &&
         mp_chip_rule(find->figures, MP_CHIP_RULE_rows_close);
}

// Whether a fusion can compute an elementwise op. A library's matmul cannot.
static bool chip_fusion_gpu_takes_loop(const mp_chip_fusion_find_t *find,
                                       const mp_chip_fusion_op_t *at,
                                       const mp_chip_fusion_user_t *user) {
  if (find->states.items[user->fusion].kind == MP_CHIP_FUSION_MATMUL) return false;
  if (!mp_chip_fusion_has_room(find, at->op, user->fusion) &&
      mp_chip_rule(find->figures, MP_CHIP_RULE_code_size)) {
    return false;
  }
  return !mp_chip_fusion_overwrites_source(find, at->op, user->fusion) ||
         !mp_chip_rule(find->figures, MP_CHIP_RULE_update_source);
}

static bool chip_fusion_gpu(const mp_chip_fusion_find_t *find, const mp_chip_fusion_op_t *at,
                            const mp_chip_fusion_user_t *user) {
  switch (at->kind) {
    case MP_CHIP_FUSION_MATMUL:
      return chip_fusion_gpu_takes_result(find, at, user);
    case MP_CHIP_FUSION_REDUCTION:
      return find->users.count == 1 && chip_fusion_gpu_keeps_rows(find, at, user);
    case MP_CHIP_FUSION_LOOP:
      return chip_fusion_gpu_takes_loop(find, at, user);
    default:
      return false;
  }
}

// Whether the only fusion that reads an op should compute it for each element of a broadcast.
static bool chip_fusion_gpu_repeats(const mp_chip_fusion_find_t *find,
                                    const mp_chip_fusion_op_t *at) {
  return at->kind != MP_CHIP_FUSION_LOOP || mp_chip_fusion_is_between_rows(find, at->op) ||
         mp_chip_fusion_pays_again(find, at->op);
}

static bool chip_fusion_gpu_should_copy(mp_chip_fusion_find_t *find, const mp_chip_fusion_op_t *at,
                                        const mp_chip_fusion_user_t *first, bool first_may_write) {
  (void)first, (void)first_may_write;
  if (at->kind != MP_CHIP_FUSION_LOOP) return false;
  for (uint32_t i = 0; i < find->users.count; ++i) {
    if (!chip_fusion_gpu(find, at, &find->users.items[i])) return false;
  }
  return mp_chip_fusion_pays_again(find, at->op);
}

// A kernel that keeps rows iterates over tiles of rows, so it has no siblings. A block of threads
// reduces in one direction, so reductions must have the same dimensions.
static bool chip_fusion_gpu_are_siblings(const mp_chip_fusion_find_t *find, uint32_t a,
                                         uint32_t b) {
  const uint64_t dims_a = find->states.items[a].reduced_dims;
  const uint64_t dims_b = find->states.items[b].reduced_dims;
  return !find->out->fusions.items[a].is_rows && !find->out->fusions.items[b].is_rows &&
         (dims_a == dims_b || dims_a == 0 || dims_b == 0);
}

const mp_chip_fusion_policy_t mp_chip_fusion_gpu = {
    .row = MP_CHIP_FUSION_GPU_ROW,
    .computes_parts = true,
    .needs_early = true,
    .writes_once = true,
    .merges_last = true,
    .accepts = chip_fusion_gpu,
    .repeats = chip_fusion_gpu_repeats,
    .should_copy = chip_fusion_gpu_should_copy,
    .are_siblings = chip_fusion_gpu_are_siblings,
};
