// Which results a kernel may write over its operands: those of which it makes an element only when
// it has read the operand's element at the same place for the last time.
#include "sim/chip/fuse/chip_fusion_kinds.h"
#include "sim/chip/memory/memory_impl.h"
#include "sim/chip/rules/chip_policy.h"
#include "sim/chip/rules/chip_rules.h"
#include "sim/plan/plan.h"

static bool memory_in_place_is_aliased(const mp_op_t *op, uint32_t operand) {
  for (uint32_t i = 0; i < op->num_results; ++i) {
    if (mp_op_aliased_operand(op, i) == (int64_t)operand) return true;
  }
  return false;
}

// Whether an op reads each element of an operand only when it makes the same element of its
// results, or, if it is a reduction, when it adds the element up.
static bool memory_in_place_is_along(const mp_chip_figures_t *figures,
                                     const mp_chip_fusion_t *fusion, const mp_op_t *op,
                                     mp_chip_fusion_kind_t kind, uint32_t operand) {
  if (kind == MP_CHIP_FUSION_UPDATE) return operand < op->num_results;
  if (op->code == MP_OP_CUSTOM_CALL) return memory_in_place_is_aliased(op, operand);
  if (op->code == MP_OP_REDUCE) {
    const bool is_sum = mp_chip_policy(figures)->sums_in_place && !fusion->is_rows;
    if (!is_sum || !mp_chip_rule(figures, MP_CHIP_RULE_reduce_in_place)) return false;
  }
  return op->code != MP_OP_TRANSPOSE &&
         mp_chip_fusion_goes_along(op, kind, mp_chip_fusion_value_count(op->operands[operand]));
}

// Notes that an op of the fusion reads a value. Returns whether it is no longer `is_along`.
static bool memory_in_place_take(mp_memory_values_t *all, uint32_t fusion, const mp_value_t *value,
                                 bool is_along) {
  mp_memory_value_t *taken = &all->values[mp_chip_fusion_root(value)->id];
  const bool was_along = taken->taken_by != fusion || taken->is_along;
  taken->is_along = is_along && was_along;
  taken->taken_by = fusion;
  return was_along && !is_along;
}

// One step of mp_memory_find_in_place. True: another one is necessary.
static bool memory_in_place_take_again(mp_memory_values_t *all, const mp_chip_fusion_t *fusion,
                                       uint32_t number) {
  bool is_changed = false;
  for (const mp_chip_fusion_member_t *m = NULL; mp_chip_fusion_visit(all->fusions, fusion, &m);) {
    const mp_op_t *op = m->op;
    mp_work_t work;
    const mp_chip_fusion_kind_t kind = mp_chip_fusion_kind(all->figures, op, &work);
    bool is_written = true;
    for (uint32_t i = 0; i < op->num_results; ++i) {
      const mp_memory_value_t *made = &all->values[op->results[i].id];
      is_written &= made->taken_by != number || made->is_along;
    }
    for (uint32_t i = 0; i < op->num_operands; ++i) {
      const bool is_along =
          is_written && memory_in_place_is_along(all->figures, fusion, op, kind, i);
      is_changed |= memory_in_place_take(all, number, op->operands[i], is_along);
    }
  }
  return is_changed;
}

void mp_memory_find_in_place(mp_memory_values_t *all, const mp_chip_fusion_t *fusion) {
  const uint32_t number = (uint32_t)(fusion - all->fusions->fusions.items);
  while (memory_in_place_take_again(all, fusion, number)) continue;
}

// Whether a result that the fusion writes may be written over a value that it reads. On TPUs only
// updates write a result of main over their operands.
static bool memory_in_place_may_inherit(const mp_memory_values_t *all,
                                        const mp_chip_fusion_t *fusion,
                                        const mp_memory_value_t *value,
                                        const mp_memory_value_t *written) {
  mp_work_t work;
  if (!mp_memory_may_take(all, value, written)) return false;
  return value->kind == MP_MEMORY_ARGUMENT || written->kind != MP_MEMORY_RESULT ||
         !mp_chip_policy(all->figures)->keeps_results_apart ||
         mp_chip_fusion_kind(all->figures, fusion->hero, &work) == MP_CHIP_FUSION_UPDATE ||
         !mp_chip_rule(all->figures, MP_CHIP_RULE_result_not_in_place);
}

uint32_t mp_memory_heir(const mp_memory_values_t *all, const mp_chip_fusion_t *fusion,
                        const mp_value_t *value) {
  const uint32_t number = (uint32_t)(fusion - all->fusions->fusions.items);
  const mp_memory_value_t *read = &all->values[mp_chip_fusion_root(value)->id];
  const mp_memory_value_t *place = mp_memory_place_of(all, value);
  if (read->taken_by != number || !read->is_along) return MP_MEMORY_NONE;
  const mp_chip_fusion_access_t *writes =
      mp_chip_fusion_accesses(all->fusions, fusion) + fusion->num_reads;
  for (uint32_t i = 0; i < fusion->num_writes; ++i) {
    const mp_memory_value_t *written = mp_memory_place_of(all, writes[i].value);
    const bool is_free = written->first == fusion->last->id;
    if (is_free && memory_in_place_may_inherit(all, fusion, place, written))
      return writes[i].value->id;
  }
  return MP_MEMORY_NONE;
}
