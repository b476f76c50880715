#include "sim/spmd/propagation/propagate_step.h"

#include "sim/base/assert.h"

enum { MP_LAST_LEVEL = 4 };

// The direction in which a factor propagates at a level (0 .. 4), which depends on the rule's
// class.
static mp_flow_t propagate_step_flow_at(const mp_rule_t *rule, const mp_factor_t *factor,
                                        uint32_t level, bool has_shared_operand) {
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

// The sharding of one tensor along one factor.
typedef struct {
  mp_atoms_t atoms;
  mp_atoms_t overflow;  // the dimension's next atoms, which do not divide the factor
  bool present;         // the tensor has the factor
  bool is_open;
  bool is_minor;  // it is the last factor of its dimension, which may be sharded unevenly
} projected_t;

typedef struct {
  const mp_atom_space_t *space;
  const mp_rule_t *rule;
  mp_atom_sharding_t *const *tensors;
  uint32_t num_tensors;
  projected_t *lists;    // [tensor * num_factors + factor]
  mp_flow_t *flows;      // [factor]
  mp_atoms_t *wanted;    // [factor]: the atoms on which its tensors agree
  mp_atoms_t **written;  // [tensor]: its new dimensions; NULL: it does not change
} step_t;

static projected_t *propagate_step_list_of(const step_t *step, uint32_t tensor, uint32_t factor) {
  return &step->lists[(size_t)tensor * step->rule->num_factors + factor];
}

// ---- projecting ----

// Projects a dimension to its factors. If a factor has overflow, the next factor is closed, and
// those after it are not present.
static void propagate_step_project_dim(const step_t *step, uint32_t tensor, uint32_t dim) {
  const mp_dim_factors_t *entry = &step->rule->tensors[tensor][dim];
  const mp_dim_atoms_t *from = &step->tensors[tensor]->dims[dim];
  uint32_t next = 0;
  bool overflows = false;
  for (uint32_t i = 0; i < entry->count; ++i) {
    projected_t *list = propagate_step_list_of(step, tensor, entry->factors[i]);
    *list = (projected_t){
        .present = true, .is_open = from->is_open && !overflows, .is_minor = i + 1 == entry->count};
    if (overflows) return;
    const int64_t left =
        mp_atoms_take(step->space, &from->atoms, &next, step->rule->factors[entry->factors[i]].size,
                      list->is_minor, &list->atoms);
    overflows = !list->is_minor && left > 1 && next < from->atoms.count;
    for (; overflows && next < from->atoms.count; ++next) {
      list->overflow.atoms[list->overflow.count++] = from->atoms.atoms[next];
    }
  }
}

static void propagate_step_project(const step_t *step) {
  for (uint32_t t = 0; t < step->num_tensors; ++t) {
    if (step->tensors[t] == NULL) continue;
    for (uint32_t d = 0; d < step->tensors[t]->rank; ++d) propagate_step_project_dim(step, t, d);
  }
}

// ---- the atoms on which a factor's tensors agree ----

static void propagate_step_fold(mp_atoms_t *wanted, const mp_atoms_t *list, bool may_extend,
                                bool *can_extend) {
  const uint32_t common = mp_atoms_common_prefix(wanted, list);
  if (common == list->count) return;
  if (common == wanted->count) {
    if (may_extend && *can_extend) *wanted = *list;
    return;
  }
  wanted->count = (uint8_t)common;
  *can_extend = false;
}

static void propagate_step_find_wanted(const step_t *step, uint32_t factor) {
  const mp_flow_t flow = step->flows[factor];
  mp_atoms_t *wanted = &step->wanted[factor];
  *wanted = (mp_atoms_t){0};
  if (flow == MP_FLOW_NONE) return;
  bool can_extend = true;
  // First come the tensors from which shardings may propagate; the others may only limit the
  // result.
  for (uint32_t pass = 0; pass < 2; ++pass) {
    for (uint32_t t = 0; t < step->num_tensors; ++t) {
      const projected_t *list = propagate_step_list_of(step, t, factor);
      if (step->tensors[t] == NULL || !list->present) continue;
      const bool is_operand = t < step->rule->num_operands;
      const bool is_source = (flow & (is_operand ? MP_FLOW_FORWARD : MP_FLOW_BACKWARD)) != 0;
      if (is_source != (pass == 0)) continue;
      propagate_step_fold(wanted, &list->atoms, is_source, &can_extend);
    }
  }
}

// ---- the order of factors ----

typedef struct {
  uint32_t factor;
  double size;  // the elements of the largest tensor that has all of the wanted atoms
  int64_t parts;
  uint32_t tensor;
} ranked_t;

static double propagate_step_tensor_size(const step_t *step, uint32_t tensor) {
  double size = 1;
  for (uint32_t f = 0; f < step->rule->num_factors; ++f) {
    if (propagate_step_list_of(step, tensor, f)->present)
      size *= (double)step->rule->factors[f].size;
  }
  return size;
}

static ranked_t propagate_step_rank_factor(const step_t *step, uint32_t factor) {
  const mp_atoms_t *wanted = &step->wanted[factor];
  ranked_t ranked = {factor, -1, mp_atoms_product(step->space, wanted), 0};
  for (uint32_t t = 0; t < step->num_tensors; ++t) {
    const projected_t *list = propagate_step_list_of(step, t, factor);
    if (step->tensors[t] == NULL || !list->present) continue;
    if (mp_atoms_common_prefix(&list->atoms, wanted) != wanted->count) continue;
    const double size = propagate_step_tensor_size(step, t);
    if (size > ranked.size) {
      ranked.size = size;
      ranked.tensor = t;
    }
  }
  return ranked;
}

static bool propagate_step_comes_before(const step_t *step, const ranked_t *a, const ranked_t *b) {
  if (a->size != b->size) return a->size > b->size;
  if (step->rule->is_elementwise && a->parts != b->parts) return a->parts > b->parts;
  if (a->tensor != b->tensor) return a->tensor < b->tensor;
  return a->factor < b->factor;
}

static uint32_t propagate_step_order_factors(const step_t *step, ranked_t *order) {
  uint32_t count = 0;
  for (uint32_t f = 0; f < step->rule->num_factors; ++f) {
    if (step->wanted[f].count == 0) continue;
    const ranked_t ranked = propagate_step_rank_factor(step, f);
    uint32_t at = count++;
    for (; at > 0 && propagate_step_comes_before(step, &ranked, &order[at - 1]); --at)
      order[at] = order[at - 1];
    order[at] = ranked;
  }
  return count;
}

// ---- extending ----

// The set of the atoms that a tensor has along other factors than `factor`.
static uint32_t propagate_step_used_elsewhere(const step_t *step, uint32_t tensor,
                                              uint32_t factor) {
  uint32_t used = 0;
  for (uint32_t f = 0; f < step->rule->num_factors; ++f) {
    const projected_t *list = propagate_step_list_of(step, tensor, f);
    if (f == factor || !list->present) continue;
    used |= mp_atoms_set(&list->atoms) | mp_atoms_set(&list->overflow);
  }
  return used;
}

// Operands of an elementwise op get no more atoms than its results have, so that shardings do not
// propagate from operand to operand if the result cannot have them.
static void propagate_step_limit_to_results(const step_t *step, uint32_t factor,
                                            mp_atoms_t *wanted) {
  for (uint32_t i = 0; i < step->rule->num_results; ++i) {
    const projected_t *result = propagate_step_list_of(step, step->rule->num_operands + i, factor);
    if (!result->present) continue;
    const uint32_t common = mp_atoms_common_prefix(&result->atoms, wanted);
    if (common == result->atoms.count && common < wanted->count) wanted->count = (uint8_t)common;
  }
}

static bool propagate_step_extend(const step_t *step, uint32_t tensor, uint32_t factor) {
  projected_t *list = propagate_step_list_of(step, tensor, factor);
  const mp_atom_sharding_t *sharding = step->tensors[tensor];
  mp_atoms_t wanted = step->wanted[factor];
  const bool may_grow = list->is_open && list->overflow.count == 0;
  if (!may_grow || wanted.count <= list->atoms.count) return false;
  if (mp_atoms_common_prefix(&list->atoms, &wanted) != list->atoms.count) return false;
  if (step->rule->is_elementwise && tensor < step->rule->num_operands) {
    propagate_step_limit_to_results(step, factor, &wanted);
  }
  const uint32_t taken = sharding->replicated | sharding->unreduced | sharding->manual |
                         propagate_step_used_elsewhere(step, tensor, factor);
  int64_t left = step->rule->factors[factor].size;
  uint32_t count = 0;
  for (; count < wanted.count; ++count) {
    const uint8_t atom = wanted.atoms[count];
    if (!list->is_minor) {
      if (left % step->space->prime[atom] != 0) break;
      left /= step->space->prime[atom];
    }
    if (count >= list->atoms.count && (taken >> atom & 1) != 0) break;
  }
  if (count <= list->atoms.count) return false;
  wanted.count = (uint8_t)count;
  list->atoms = wanted;
  return true;
}

// ---- unprojecting ----

static void propagate_step_append(mp_atoms_t *to, const mp_atoms_t *from) {
  for (uint32_t i = 0; i < from->count && to->count < MP_MAX_ATOMS; ++i) {
    to->atoms[to->count++] = from->atoms[i];
  }
}

// Joins the atoms of a dimension's factors, up to the first factor that is not fully sharded.
static void propagate_step_unproject_dim(const step_t *step, uint32_t tensor, uint32_t dim,
                                         mp_atoms_t *out) {
  const mp_dim_factors_t *entry = &step->rule->tensors[tensor][dim];
  *out = (mp_atoms_t){0};
  if (entry->count == 0) *out = step->tensors[tensor]->dims[dim].atoms;
  for (uint32_t i = 0; i < entry->count; ++i) {
    const projected_t *list = propagate_step_list_of(step, tensor, entry->factors[i]);
    propagate_step_append(out, &list->atoms);
    propagate_step_append(out, &list->overflow);
    const int64_t size = step->rule->factors[entry->factors[i]].size;
    if (list->overflow.count != 0 || mp_atoms_product(step->space, &list->atoms) < size) return;
  }
}

static mp_status_t propagate_step_unproject(mp_arena_t *scratch, const step_t *step,
                                            uint32_t tensor) {
  const mp_atom_sharding_t *old = step->tensors[tensor];
  mp_atoms_t *dims = MP_ARENA_ARRAY(scratch, mp_atoms_t, old->rank);
  MP_RETURN_IF_NULL(dims);
  bool changed = false;
  for (uint32_t d = 0; d < old->rank; ++d) {
    propagate_step_unproject_dim(step, tensor, d, &dims[d]);
    changed |= dims[d].count != old->dims[d].atoms.count ||
               mp_atoms_common_prefix(&dims[d], &old->dims[d].atoms) != dims[d].count;
  }
  if (changed) step->written[tensor] = dims;
  return NULL;
}

// Extends the results and then the operands, each along the factors in order.
static mp_status_t propagate_step_extend_all(mp_arena_t *scratch, const step_t *step,
                                             const ranked_t *order, uint32_t count) {
  for (uint32_t i = 0; i < step->num_tensors; ++i) {
    const uint32_t num_results = step->rule->num_results;
    const uint32_t t = i < num_results ? step->rule->num_operands + i : i - num_results;
    if (step->tensors[t] == NULL) continue;
    bool extended = false;
    for (uint32_t k = 0; k < count; ++k) {
      if (propagate_step_list_of(step, t, order[k].factor)->present)
        extended |= propagate_step_extend(step, t, order[k].factor);
    }
    if (extended) MP_RETURN_IF_ERROR(propagate_step_unproject(scratch, step, t));
  }
  return NULL;
}

// The new shardings are written at the end, because a value that occurs twice in an op is one
// object, and the whole step must see its old state. Of two results for one object, or for members
// of one sharding group, the later one counts.
static void propagate_step_write_back(const step_t *step, const mp_mesh_t *mesh,
                                      bool *out_changed) {
  for (uint32_t t = 0; t < step->num_tensors; ++t) {
    if (step->written[t] == NULL) continue;
    for (uint32_t d = 0; d < step->tensors[t]->rank; ++d) {
      step->tensors[t]->dims[d].atoms = step->written[t][d];
    }
    step->tensors[t]->mesh = mesh;  // also in place of an empty mesh, which has no axes
    MP_ASSERT(mp_atom_sharding_is_sound(step->space, step->tensors[t]));
    mp_atom_sharding_share(step->tensors[t]);
    out_changed[t] = true;
  }
}

mp_status_t mp_propagate_step(mp_arena_t *scratch, const mp_atom_space_t *space,
                              const mp_rule_t *rule, const mp_step_mode_t *mode,
                              mp_atom_sharding_t *const *tensors, bool *out_changed) {
  step_t step = {.space = space,
                 .rule = rule,
                 .tensors = tensors,
                 .num_tensors = rule->num_operands + rule->num_results};
  if (rule->num_factors == 0) return NULL;
  step.flows = MP_ARENA_ARRAY(scratch, mp_flow_t, rule->num_factors);
  MP_RETURN_IF_NULL(step.flows);
  bool flows = false;
  for (uint32_t f = 0; f < rule->num_factors; ++f) {
    step.flows[f] =
        propagate_step_flow_at(rule, &rule->factors[f], mode->level, mode->has_shared_operand) &
        mode->allowed;
    flows |= step.flows[f] != MP_FLOW_NONE;
  }
  if (!flows) return NULL;
  step.lists = MP_ARENA_ARRAY(scratch, projected_t, (size_t)step.num_tensors * rule->num_factors);
  step.wanted = MP_ARENA_ARRAY(scratch, mp_atoms_t, rule->num_factors);
  step.written = MP_ARENA_ARRAY(scratch, mp_atoms_t *, step.num_tensors);
  ranked_t *order = MP_ARENA_ARRAY(scratch, ranked_t, rule->num_factors);
  if (step.lists == NULL || step.wanted == NULL || step.written == NULL || order == NULL) {
    return mp_status_out_of_memory();
  }
  propagate_step_project(&step);
  for (uint32_t f = 0; f < rule->num_factors; ++f) propagate_step_find_wanted(&step, f);
  const uint32_t count = propagate_step_order_factors(&step, order);
  if (count == 0) return NULL;
  MP_RETURN_IF_ERROR(propagate_step_extend_all(scratch, &step, order, count));
  propagate_step_write_back(&step, mode->mesh, out_changed);
  return NULL;
}
