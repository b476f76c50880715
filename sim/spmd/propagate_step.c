#include "sim/spmd/propagate_step.h"

#include <string.h>

enum { MP_LAST_LEVEL = 4 };

mp_flow_t mp_flow_at(const mp_rule_t *rule, const mp_factor_t *factor, uint32_t level,
                     bool has_shared_operand) {
  if (factor->blocked) return MP_FLOW_NONE;
  const bool by_kind = level >= 3 || (level == 2 && factor->kind == MP_FACTOR_PASS);
  switch (rule->priority) {
    case MP_RULE_PASS_THROUGH:
      return level == 0 && has_shared_operand ? MP_FLOW_NONE : MP_FLOW_BOTH;
    case MP_RULE_FORWARD_FIRST:
      if (by_kind) return MP_FLOW_BOTH;
      return level == 0 && has_shared_operand ? MP_FLOW_NONE : MP_FLOW_FORWARD;
    case MP_RULE_BACKWARD_FIRST:
      if (level == MP_LAST_LEVEL) return MP_FLOW_BOTH;
      return by_kind ? MP_FLOW_BACKWARD : MP_FLOW_NONE;
    case MP_RULE_PLAIN:
      break;
  }
  return by_kind ? MP_FLOW_BOTH : MP_FLOW_NONE;
}

// What a tensor has along one factor.
typedef struct {
  mp_atoms_t atoms;
  uint16_t dim;
  bool present;
  bool overflow;  // the dimension has atoms behind these that do not fit the factor
  bool is_minor;  // the last factor of its dimension: may be sharded unevenly
} mp_projected_t;

typedef struct {
  const mp_atom_space_t *space;
  const mp_rule_t *rule;
  mp_atom_sharding_t *const *tensors;
  uint32_t num_tensors;
  mp_projected_t *lists;  // [tensor * num_factors + factor]
  mp_flow_t *flows;       // [factor]
  mp_atoms_t *wanted;     // [factor]: the compatible axes
} mp_step_t;

static mp_projected_t *list_of(const mp_step_t *step, uint32_t tensor, uint32_t factor) {
  return &step->lists[(size_t)tensor * step->rule->num_factors + factor];
}

// --- projecting ---

static void project_dim(const mp_step_t *step, uint32_t tensor, uint32_t dim) {
  const mp_dim_factors_t *entry = &step->rule->tensors[tensor][dim];
  const mp_atoms_t *atoms = &step->tensors[tensor]->dims[dim].atoms;
  uint32_t next = 0;
  bool is_stopped = false;
  for (uint32_t i = 0; i < entry->count; ++i) {
    mp_projected_t *list = list_of(step, tensor, entry->factors[i]);
    *list =
        (mp_projected_t){.dim = (uint16_t)dim, .present = true, .is_minor = i + 1 == entry->count};
    if (is_stopped) continue;
    const int64_t left =
        mp_atoms_take(step->space, atoms, &next, step->rule->factors[entry->factors[i]].size,
                      list->is_minor, &list->atoms);
    if (list->is_minor) break;
    is_stopped = left != 1;
    list->overflow = is_stopped && next < atoms->count;
  }
}

static void project(const mp_step_t *step) {
  for (uint32_t t = 0; t < step->num_tensors; ++t) {
    if (step->tensors[t] == NULL) continue;
    for (uint32_t d = 0; d < step->tensors[t]->rank; ++d) project_dim(step, t, d);
  }
}

// --- what a factor's tensors agree on ---

static void fold(mp_atoms_t *wanted, const mp_atoms_t *list, bool may_extend, bool *can_extend) {
  const uint32_t common = mp_atoms_common_prefix(wanted, list);
  if (common == list->count) return;
  if (common == wanted->count) {
    if (may_extend && *can_extend) *wanted = *list;
    return;
  }
  wanted->count = (uint8_t)common;
  *can_extend = false;
}

static void find_wanted(const mp_step_t *step, uint32_t factor) {
  const mp_flow_t flow = step->flows[factor];
  mp_atoms_t *wanted = &step->wanted[factor];
  *wanted = (mp_atoms_t){0};
  if (flow == MP_FLOW_NONE) return;
  bool can_extend = true;
  // The sides that sharding flows from first; the other one may only limit.
  for (uint32_t pass = 0; pass < 2; ++pass) {
    for (uint32_t t = 0; t < step->num_tensors; ++t) {
      const mp_projected_t *list = list_of(step, t, factor);
      if (step->tensors[t] == NULL || !list->present) continue;
      const bool is_operand = t < step->rule->num_operands;
      const bool is_source = (flow & (is_operand ? MP_FLOW_FORWARD : MP_FLOW_BACKWARD)) != 0;
      if (is_source != (pass == 0)) continue;
      fold(wanted, &list->atoms, is_source, &can_extend);
    }
  }
}

// --- the order of factors ---

typedef struct {
  uint32_t factor;
  double size;  // elements of the largest tensor that has all the wanted atoms
  int64_t parts;
  uint32_t tensor;
} mp_ranked_t;

static double tensor_size(const mp_step_t *step, uint32_t tensor) {
  double size = 1;
  for (uint32_t f = 0; f < step->rule->num_factors; ++f) {
    if (list_of(step, tensor, f)->present) size *= (double)step->rule->factors[f].size;
  }
  return size;
}

static mp_ranked_t rank_factor(const mp_step_t *step, uint32_t factor) {
  const mp_atoms_t *wanted = &step->wanted[factor];
  mp_ranked_t ranked = {factor, -1, mp_atoms_product(step->space, wanted), 0};
  for (uint32_t t = 0; t < step->num_tensors; ++t) {
    const mp_projected_t *list = list_of(step, t, factor);
    if (step->tensors[t] == NULL || !list->present) continue;
    if (mp_atoms_common_prefix(&list->atoms, wanted) != wanted->count) continue;
    const double size = tensor_size(step, t);
    if (size > ranked.size) {
      ranked.size = size;
      ranked.tensor = t;
    }
  }
  return ranked;
}

static bool comes_before(const mp_step_t *step, const mp_ranked_t *a, const mp_ranked_t *b) {
  if (a->size != b->size) return a->size > b->size;
  if (step->rule->is_elementwise && a->parts != b->parts) return a->parts > b->parts;
  if (a->tensor != b->tensor) return a->tensor < b->tensor;
  return a->factor < b->factor;
}

static uint32_t order_factors(const mp_step_t *step, mp_ranked_t *order) {
  uint32_t count = 0;
  for (uint32_t f = 0; f < step->rule->num_factors; ++f) {
    if (step->wanted[f].count == 0) continue;
    const mp_ranked_t ranked = rank_factor(step, f);
    uint32_t at = count++;
    for (; at > 0 && comes_before(step, &ranked, &order[at - 1]); --at) order[at] = order[at - 1];
    order[at] = ranked;
  }
  return count;
}

// --- extending ---

// Atoms that a tensor uses in other places than `factor`.
static uint32_t used_elsewhere(const mp_step_t *step, uint32_t tensor, uint32_t factor) {
  const mp_atom_sharding_t *sharding = step->tensors[tensor];
  uint32_t used = mp_atom_sharding_used(sharding);
  for (uint32_t f = 0; f < step->rule->num_factors; ++f) {
    if (list_of(step, tensor, f)->present) used |= mp_atoms_set(&list_of(step, tensor, f)->atoms);
  }
  return used & ~mp_atoms_set(&list_of(step, tensor, factor)->atoms);
}

static bool extend(const mp_step_t *step, uint32_t tensor, uint32_t factor) {
  mp_projected_t *list = list_of(step, tensor, factor);
  const mp_atom_sharding_t *sharding = step->tensors[tensor];
  mp_atoms_t wanted = step->wanted[factor];
  if (mp_atoms_common_prefix(&list->atoms, &wanted) != list->atoms.count) return false;
  if (step->rule->is_elementwise && tensor < step->rule->num_operands) {
    const mp_projected_t *result = list_of(step, step->rule->num_operands, factor);
    const uint32_t common = mp_atoms_common_prefix(&result->atoms, &wanted);
    if (result->present && common == result->atoms.count && common < wanted.count) {
      wanted.count = (uint8_t)common;
    }
  }
  const uint32_t taken = sharding->replicated | sharding->unreduced | sharding->manual |
                         used_elsewhere(step, tensor, factor);
  int64_t left = step->rule->factors[factor].size;
  uint32_t count = 0;
  for (; count < wanted.count; ++count) {
    const uint8_t atom = wanted.atoms[count];
    if (!list->is_minor && left % step->space->prime[atom] != 0) break;
    if (!list->is_minor) left /= step->space->prime[atom];
    if (count < list->atoms.count) continue;
    if ((taken >> atom & 1) != 0 || !sharding->dims[list->dim].is_open || list->overflow) break;
  }
  if (count <= list->atoms.count) return false;
  wanted.count = (uint8_t)count;
  list->atoms = wanted;
  return true;
}

// --- unprojecting ---

// Writes the dimension's factors back, up to the first that leaves room for more of itself.
static bool unproject_dim(const mp_step_t *step, uint32_t tensor, uint32_t dim) {
  const mp_dim_factors_t *entry = &step->rule->tensors[tensor][dim];
  mp_atoms_t *atoms = &step->tensors[tensor]->dims[dim].atoms;
  mp_atoms_t joined = {0};
  for (uint32_t i = 0; i < entry->count; ++i) {
    const mp_projected_t *list = list_of(step, tensor, entry->factors[i]);
    for (uint32_t k = 0; k < list->atoms.count && joined.count < MP_MAX_ATOMS; ++k) {
      joined.atoms[joined.count++] = list->atoms.atoms[k];
    }
    if (mp_atoms_product(step->space, &list->atoms) !=
        step->rule->factors[entry->factors[i]].size) {
      break;
    }
  }
  if (joined.count <= atoms->count || mp_atoms_common_prefix(&joined, atoms) != atoms->count) {
    return false;
  }
  *atoms = joined;
  return true;
}

static bool unproject(const mp_step_t *step, uint32_t tensor) {
  bool changed = false;
  for (uint32_t d = 0; d < step->tensors[tensor]->rank; ++d) {
    changed |= unproject_dim(step, tensor, d);
  }
  return changed;
}

// Results before operands, each with its factors in order.
static void extend_all(const mp_step_t *step, const mp_ranked_t *order, uint32_t count,
                       bool *out_changed) {
  for (uint32_t i = 0; i < step->num_tensors; ++i) {
    const uint32_t num_results = step->rule->num_results;
    const uint32_t t = i < num_results ? step->rule->num_operands + i : i - num_results;
    if (step->tensors[t] == NULL) continue;
    bool extended = false;
    for (uint32_t k = 0; k < count; ++k) {
      const uint32_t factor = order[k].factor;
      const mp_flow_t needed = t < step->rule->num_operands ? MP_FLOW_BACKWARD : MP_FLOW_FORWARD;
      const bool may = step->flows[factor] == MP_FLOW_BOTH || (step->flows[factor] & needed) != 0;
      if (may && list_of(step, t, factor)->present) extended |= extend(step, t, factor);
    }
    if (extended && unproject(step, t)) out_changed[t] = true;
  }
}

mp_status_t mp_propagate_step(mp_arena_t *scratch, const mp_atom_space_t *space,
                              const mp_rule_t *rule, uint32_t level, bool has_shared_operand,
                              mp_atom_sharding_t *const *tensors, bool *out_changed) {
  mp_step_t step = {.space = space,
                    .rule = rule,
                    .tensors = tensors,
                    .num_tensors = rule->num_operands + rule->num_results};
  if (rule->num_factors == 0) return NULL;
  step.flows = MP_ARENA_ARRAY(scratch, mp_flow_t, rule->num_factors);
  MP_RETURN_IF_NULL(step.flows);
  bool flows = false;
  for (uint32_t f = 0; f < rule->num_factors; ++f) {
    step.flows[f] = mp_flow_at(rule, &rule->factors[f], level, has_shared_operand);
    flows |= step.flows[f] != MP_FLOW_NONE;
  }
  if (!flows) return NULL;
  step.lists =
      MP_ARENA_ARRAY(scratch, mp_projected_t, (size_t)step.num_tensors * rule->num_factors);
  step.wanted = MP_ARENA_ARRAY(scratch, mp_atoms_t, rule->num_factors);
  mp_ranked_t *order = MP_ARENA_ARRAY(scratch, mp_ranked_t, rule->num_factors);
  if (step.lists == NULL || step.wanted == NULL || order == NULL) return mp_status_out_of_memory();
  project(&step);
  for (uint32_t f = 0; f < rule->num_factors; ++f) find_wanted(&step, f);
  const uint32_t count = order_factors(&step, order);
  extend_all(&step, order, count, out_changed);
  return NULL;
}
