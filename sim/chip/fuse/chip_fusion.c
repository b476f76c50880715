// The engine: one backward sweep per block, so that each op is decided after all its readers.
#include "sim/chip/fuse/chip_fusion.h"

#include <math.h>

#include "sim/base/assert.h"
#include "sim/base/hash.h"
#include "sim/chip/fuse/chip_fusion_policy.h"
#include "sim/chip/rules/chip_rules.h"
#include "sim/plan/plan.h"

// Merges sibling readers of a value that no fusion makes.
static mp_status_t chip_fusion_join_readers(mp_chip_fusion_find_t *find, const mp_value_t *value,
                                            const mp_block_t *block) {
  uint32_t memory_use = MP_CHIP_FUSION_NONE;
  ++find->num_decided;
  find->users.count = 0;
  MP_RETURN_IF_ERROR(mp_chip_fusion_add_users(find, value, block, &memory_use));
  mp_chip_fusion_join_siblings(find, value);
  return NULL;
}

// ---- decisions ----

static mp_status_t chip_fusion_join_all(mp_chip_fusion_find_t *find,
                                        const mp_chip_fusion_op_t *at) {
  for (uint32_t i = 0; i < find->users.count; ++i) {
    MP_RETURN_IF_ERROR(mp_chip_fusion_join(find, at, &find->users.items[i]));
  }
  return NULL;
}

// Makes the fusion keep the rows of a reduction.
static void chip_fusion_keep_rows(mp_chip_fusion_find_t *find, const mp_chip_fusion_op_t *at,
                                  uint32_t number) {
  mp_chip_fusion_state_t *state = &find->states.items[number];
  find->out->fusions.items[number].is_rows = true;
  state->row = fmax(state->row, mp_chip_fusion_row(at->op));
}

static mp_status_t chip_fusion_decide(mp_chip_fusion_find_t *find, const mp_chip_fusion_op_t *at) {
  if (find->users.count > 0) {
    const mp_chip_fusion_user_t first = *mp_chip_fusion_first_user(find);
    const bool accepts = find->policy->accepts(find, at, &first);
    const bool is_only = find->users.count == 1 && at->memory_use == MP_CHIP_FUSION_NONE;
    const bool repeats = first.is_reused && find->policy->repeats != NULL;
    if (accepts && is_only && (!repeats || find->policy->repeats(find, at))) {
      if (at->kind == MP_CHIP_FUSION_REDUCTION && first.is_reused) {
        chip_fusion_keep_rows(find, at, first.fusion);
      }
      return mp_chip_fusion_join(find, at, &first);
    }
    // The first user can write the op's result only if it iterates over it, so not if it broadcasts
    // or slices the result, or reads it as a matmul operand.
    const bool may_write =
        accepts && first.is_along && find->states.items[first.fusion].place < at->memory_use;
    if (at->memory_use == MP_CHIP_FUSION_NONE &&
        find->policy->should_copy(find, at, &first, may_write)) {
      return chip_fusion_join_all(find, at);
    }
    if (may_write) {
      MP_RETURN_IF_ERROR(mp_chip_fusion_write(find, at, first.fusion));
      return mp_chip_fusion_join(find, at, &first);
    }
  }
  const uint32_t number = find->out->fusions.count;
  MP_RETURN_IF_ERROR(mp_chip_fusion_begin(find, at));
  return mp_chip_fusion_write(find, at, number);
}

static mp_status_t chip_fusion_place(mp_chip_fusion_find_t *find, const mp_op_t *op) {
  mp_chip_fusion_op_t at = {.op = op, .memory_use = MP_CHIP_FUSION_NONE};
  if (op->code == MP_OP_CONSTANT) return NULL;
  at.kind = mp_chip_fusion_kind(find->figures, op, &at.work);
  ++find->num_decided;
  find->users.count = 0;
  for (uint32_t i = 0; i < op->num_results; ++i) {
    at.bytes += mp_work_bytes_of(op->results[i].type);
    MP_RETURN_IF_ERROR(mp_chip_fusion_add_users(find, &op->results[i], op->parent, &at.memory_use));
  }
  // A transpose, or a value that users compute or fold, needs no kernel if no op reads it.
  const bool is_free = mp_chip_fusion_is_generator(op) || op->code == MP_OP_TRANSPOSE ||
                       (op->num_results == 1 && mp_chip_fusion_is_folded(&op->results[0]));
  const bool is_used = find->users.count > 0 || at.memory_use != MP_CHIP_FUSION_NONE;
  if (is_free && !is_used) return NULL;
  if (op->num_results == 1 && !find->policy->merges_last) {
    mp_chip_fusion_join_siblings(find, &op->results[0]);
  }
  return chip_fusion_decide(find, &at);
}

// ---- the sweep ----

static mp_status_t chip_fusion_sweep(mp_chip_fusion_find_t *find, const mp_block_t *block);

static mp_status_t chip_fusion_op(mp_chip_fusion_find_t *find, const mp_op_t *op) {
  const mp_op_role_t role = mp_op_info(op->code)->role;
  const bool is_of_host = mp_op_is_of_host(op), crosses = mp_op_crosses(op);
  const bool may_be_kernel = role == MP_OP_ROLE_KERNEL || mp_chip_fusion_is_generator(op);
  const bool is_kernel = may_be_kernel && !is_of_host && !crosses;
  const uint32_t place = find->place--;
  if (role == MP_OP_ROLE_CONTROL) {
    for (uint32_t i = 0; i < op->num_regions; ++i) {
      MP_RETURN_IF_ERROR(chip_fusion_sweep(find, op->regions[i]));
    }
  }
  const uint32_t next = find->place;
  mp_status_t status = NULL;
  find->place = place;
  if (is_kernel) {
    // Aliases have no kernel.
    const bool is_alias = op->num_results == 1 && mp_plan_aliased(&op->results[0]) != NULL;
    if (!is_alias) status = chip_fusion_place(find, op);
  } else if (is_of_host) {
    status = mp_chip_fusion_use_all_in_memory(find, op);
  } else if (crosses || !mp_op_has(op, MP_OP_TRAIT_ALIAS) || mp_op_has(op, MP_OP_TRAIT_FLOW)) {
    for (uint32_t i = 0; !find->policy->merges_last && i < op->num_results && status == NULL; ++i) {
      status = chip_fusion_join_readers(find, &op->results[i], op->parent);
    }
    if (status == NULL) status = mp_chip_fusion_use_all_in_memory(find, op);
  }
  find->place = next;
  return status;
}

static mp_status_t chip_fusion_join_args(mp_chip_fusion_find_t *find, const mp_block_t *block) {
  for (uint32_t i = 0; i < block->num_args; ++i) {
    MP_RETURN_IF_ERROR(chip_fusion_join_readers(find, &block->args[i], block));
  }
  return NULL;
}

static mp_status_t chip_fusion_sweep(mp_chip_fusion_find_t *find, const mp_block_t *block) {
  for (const mp_op_t *op = block->last; op != NULL; op = op->prev) {
    MP_RETURN_IF_ERROR(chip_fusion_op(find, op));
  }
  return find->policy->merges_last ? NULL : chip_fusion_join_args(find, block);
}

// Merges siblings after all other decisions, as XLA for GPUs does (MultiOutputFusion).
static mp_status_t chip_fusion_merge_last(mp_chip_fusion_find_t *find, const mp_block_t *block) {
  for (const mp_op_t *op = block->last; op != NULL; op = op->prev) {
    const bool is_control = mp_op_info(op->code)->role == MP_OP_ROLE_CONTROL;
    for (uint32_t i = 0; is_control && i < op->num_regions; ++i) {
      MP_RETURN_IF_ERROR(chip_fusion_merge_last(find, op->regions[i]));
    }
    for (uint32_t i = 0; i < op->num_results; ++i) {
      MP_RETURN_IF_ERROR(chip_fusion_join_readers(find, &op->results[i], block));
    }
  }
  return chip_fusion_join_args(find, block);
}

// ---- all ----

static const mp_chip_fusion_policy_t *chip_fusion_policy(const mp_chip_figures_t *figures) {
  static const mp_chip_fusion_policy_t *const policies[MP_CHIP_COMPILER_COUNT] = {
      [MP_CHIP_COMPILER_PLAIN] = &mp_chip_fusion_plain,
      [MP_CHIP_COMPILER_TPU] = &mp_chip_fusion_tpu,
      [MP_CHIP_COMPILER_GPU] = &mp_chip_fusion_gpu,
  };
  return policies[figures->compiler];
}

static void chip_fusion_set_limits(mp_chip_fusion_find_t *find, const mp_chip_figures_t *figures) {
  find->policy = chip_fusion_policy(figures);
  find->rows_most = mp_figure_or(figures->fusion_row, find->policy->row);
  find->matmul_rows_most = mp_figure_or(figures->fusion_matmul_row, 0);
  find->mixed_rows_most = mp_figure_or(figures->fusion_mixed_row, find->matmul_rows_most);
  find->figures = figures;
}

static mp_status_t chip_fusion_fuse(mp_chip_fusion_find_t *find) {
  if (find->policy->counts_uses) MP_RETURN_IF_ERROR(mp_chip_fusion_note_uses(find, find->main));
  MP_RETURN_IF_ERROR(chip_fusion_sweep(find, find->main));
  return find->policy->merges_last ? chip_fusion_merge_last(find, find->main) : NULL;
}

static void chip_fusion_find_ragged(mp_chip_fusions_t *fusions) {
  for (uint32_t i = 0; i < fusions->fusions.count; ++i) {
    mp_chip_fusion_t *fusion = &fusions->fusions.items[i];
    fusion->ragged = mp_chip_fusion_ragged(fusion->hero);
  }
}

mp_status_t mp_chip_fusions_find(const mp_module_t *module, const mp_chip_figures_t *figures,
                                 mp_arena_t *arena, mp_chip_fusions_t *fusions) {
  MP_ASSERT(fusions->fusions.count == 0);
  mp_chip_fusion_find_t find = {
      .place = MP_CHIP_FUSION_NONE - 1, .arena = arena, .out = fusions, .main = module->main->body};
  chip_fusion_set_limits(&find, figures);
  MP_RETURN_IF_ERROR(chip_fusion_fuse(&find));
  if (find.policy->has_ragged) chip_fusion_find_ragged(fusions);
  return mp_chip_fusion_find_accesses(&find);
}

const mp_chip_fusion_t *mp_chip_fusion_at(const mp_chip_fusions_t *fusions, const mp_op_t *op) {
  const mp_chip_fusion_entry_t *entry;
  MP_HASH_MAP_GET(&fusions->by_last, mp_hash_pointer(op), entry);
  if (entry == NULL) return NULL;
  const mp_chip_fusion_t *fusion = &fusions->fusions.items[entry->fusion];
  return fusion->first_member == MP_CHIP_FUSION_NONE ? NULL : fusion;
}

const mp_chip_fusion_access_t *mp_chip_fusion_accesses(const mp_chip_fusions_t *fusions,
                                                       const mp_chip_fusion_t *fusion) {
  if (fusion->num_reads + fusion->num_writes == 0) return NULL;
  return &fusions->accesses.items[fusion->first_access];
}

bool mp_chip_fusion_moves_nothing(const mp_chip_fusions_t *fusions,
                                  const mp_chip_fusion_t *fusion) {
  if (fusions->layouts.num_values == 0) return false;
  for (const mp_chip_fusion_member_t *m = NULL; mp_chip_fusion_visit(fusions, fusion, &m);) {
    if (m->op->code != MP_OP_TRANSPOSE) return false;
  }
  return true;
}
