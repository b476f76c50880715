// Chooses which atoms shard which factor.
#include "sim/base/assert.h"
#include "sim/spmd/local/lower_form.h"

enum { MP_MAX_FACTORS = 256 };

// ---- what the op allows ----

static bool lower_choose_is_in_all_results(const mp_lowerer_t *low, uint32_t factor) {
  for (uint32_t i = 0; i < low->op->num_results; ++i) {
    if (!mp_lowerer_has_factor(low, low->op->num_operands + i, factor)) return false;
  }
  return true;
}

// Whether the op can be computed with this factor sharded.
static bool lower_choose_is_usable(const mp_lowerer_t *low, uint32_t factor) {
  const mp_factor_kind_t kind = low->rule->factors[factor].kind;
  if (kind == MP_FACTOR_REDUCTION) {
    return low->form->is_usable != NULL && low->form->is_usable(low, factor);
  }
  // The op can work on parts only along a factor that all results have.
  if (!lower_choose_is_in_all_results(low, factor)) return false;
  if (kind != MP_FACTOR_PASS) {  // not worth while if the result is gathered anyway
    if (mp_lowerer_list(low, low->op->num_operands, factor)->count == 0) return false;
    return low->form->is_permutable != NULL && low->form->is_permutable(low, factor);
  }
  return low->form->is_usable == NULL || low->form->is_usable(low, factor);
}

// Arrays of uneven parts have elements after the part's end. A reduction would include them, and in
// a dimension with several factors the parts would not begin where the factors do.
static bool lower_choose_needs_even(const mp_lowerer_t *low, uint32_t factor) {
  if (low->rule->factors[factor].kind == MP_FACTOR_REDUCTION) return true;
  if (low->form->needs_even != NULL && low->form->needs_even(low, factor)) return true;
  for (uint32_t t = 0; t < mp_lowerer_num_tensors(low); ++t) {
    if (low->tensors[t] == NULL) continue;
    for (uint32_t d = 0; d < low->tensors[t]->rank; ++d) {
      if (low->rule->tensors[t][d].count > 1 && mp_lowerer_dim_has(low, t, d, factor)) return true;
    }
  }
  return false;
}

// ---- the greedy choice ----

// The longest prefix of `list` without atoms that are used already or that do not divide the
// factor.
static mp_atoms_t lower_choose_usable_prefix(const mp_lowerer_t *low, uint32_t factor,
                                             const mp_atoms_t *list, uint32_t used, bool is_even) {
  mp_atoms_t prefix = {0};
  int64_t left = low->rule->factors[factor].size;
  for (uint32_t i = 0; i < list->count; ++i) {
    const uint8_t atom = list->atoms[i];
    const int64_t prime = low->propagation->space.prime[atom];
    if (used >> atom & 1) break;
    if (is_even && left % prime != 0) break;
    left /= prime;
    prefix.atoms[prefix.count++] = atom;
  }
  return prefix;
}

// The number of elements that are in the right place already if `factor` is sharded by `candidate`.
static double lower_choose_score(const mp_lowerer_t *low, uint32_t factor,
                                 const mp_atoms_t *candidate) {
  double sum = 0;
  for (uint32_t t = 0; t < mp_lowerer_num_tensors(low); ++t) {
    const mp_atoms_t *list = mp_lowerer_list(low, t, factor);
    if (low->tensors[t] == NULL || list->count < candidate->count) continue;
    if (mp_atoms_common_prefix(list, candidate) == candidate->count) sum += low->sizes[t];
  }
  return sum;
}

typedef struct {
  double score;
  uint32_t factor;
  mp_atoms_t atoms;  // empty: no choice yet
} choice_t;

static bool lower_choose_is_better(const mp_lowerer_t *low, const choice_t *a, const choice_t *b) {
  if (a->score != b->score) return a->score > b->score;
  if (b->atoms.count != 0) {
    const mp_factor_kind_t kinds[2] = {low->rule->factors[a->factor].kind,
                                       low->rule->factors[b->factor].kind};
    if (kinds[0] != kinds[1]) return kinds[0] < kinds[1];
  }
  return a->atoms.count > b->atoms.count;
}

// Chooses, among the lists that tensors have along factors, the one that leaves most elements where
// they are; then the next one among the lists that do not contradict it, and so on. Returns the set
// of atoms that are used.
static uint32_t lower_choose_lists(mp_lowerer_t *low, const bool *usable, const bool *even) {
  uint32_t used = 0;
  bool fixed[MP_MAX_FACTORS] = {false};
  for (uint32_t f = 0; f < low->rule->num_factors; ++f) {
    fixed[f] = low->chosen[f].count != 0;
    used |= mp_atoms_set(&low->chosen[f]);
  }
  for (uint32_t round = 0; round < low->rule->num_factors; ++round) {
    choice_t best = {0};
    for (uint32_t f = 0; f < low->rule->num_factors; ++f) {
      if (fixed[f] || !usable[f]) continue;
      for (uint32_t t = 0; t < mp_lowerer_num_tensors(low); ++t) {
        if (low->tensors[t] == NULL) continue;
        choice_t choice = {.factor = f};
        choice.atoms =
            lower_choose_usable_prefix(low, f, mp_lowerer_list(low, t, f), used, even[f]);
        if (choice.atoms.count == 0) continue;
        choice.score = lower_choose_score(low, f, &choice.atoms);
        if (lower_choose_is_better(low, &choice, &best)) best = choice;
      }
    }
    if (best.atoms.count == 0) break;
    MP_ASSERT((used & mp_atoms_set(&best.atoms)) == 0);
    low->chosen[best.factor] = best.atoms;
    fixed[best.factor] = true;
    used |= mp_atoms_set(&best.atoms);
  }
  return used;
}

// ---- atoms that are left over ----

// Gives an atom to another factor of the same operand that it divides; false when there is none.
static bool lower_choose_spread_atom(mp_lowerer_t *low, uint32_t tensor, uint8_t atom,
                                     const bool *usable) {
  const mp_atom_space_t *space = &low->propagation->space;
  for (uint32_t f = 0; f < low->rule->num_factors; ++f) {
    const mp_factor_t *factor = &low->rule->factors[f];
    if (!usable[f] || factor->kind != MP_FACTOR_PASS) continue;
    if (!mp_lowerer_has_factor(low, tensor, f)) continue;
    mp_atoms_t *list = &low->chosen[f];
    const int64_t parts = mp_atoms_product(space, list) * space->prime[atom];
    if (factor->size % parts != 0) continue;
    list->atoms[list->count++] = atom;
    return true;
  }
  return false;
}

// Whether it is better to have the results in parts: because they will be sharded by the atom
// anyway, or because they are no larger than the operand that would have to be gathered.
static bool lower_choose_is_worth_it(const mp_lowerer_t *low, uint32_t tensor, uint8_t atom) {
  double size = 0;
  for (uint32_t i = 0; i < low->op->num_results; ++i) {
    const uint32_t result = low->op->num_operands + i;
    size += low->sizes[result];
    if (low->tensors[result] == NULL) continue;
    if (mp_atom_sharding_used(low->tensors[result]) >> atom & 1) return true;
  }
  return size <= low->sizes[tensor];
}

// Along dimensions where the op cannot be computed in parts, operands must be brought together.
// Their atoms move to other dimensions that have room, so that the operand is redistributed instead
// of copied to all devices.
static void lower_choose_spread(mp_lowerer_t *low, uint32_t used, const bool *usable) {
  for (uint32_t t = 0; t < low->op->num_operands; ++t) {
    if (low->tensors[t] == NULL) continue;
    for (uint32_t f = 0; f < low->rule->num_factors; ++f) {
      const mp_atoms_t *list = mp_lowerer_list(low, t, f);
      if (usable[f]) continue;
      for (uint32_t i = 0; i < list->count; ++i) {
        if ((used >> list->atoms[i] & 1) != 0 || !lower_choose_is_worth_it(low, t, list->atoms[i]))
          continue;
        if (lower_choose_spread_atom(low, t, list->atoms[i], usable)) used |= 1u << list->atoms[i];
      }
    }
  }
}

// ---- shardings that a dimension cannot have ----

// In a dimension of several factors, a factor can be sharded only if all factors before it are
// fully sharded. Drops other choices; true when something was dropped.
static bool lower_choose_drop_in_dim(mp_lowerer_t *low, const mp_dim_factors_t *entry) {
  bool is_full = true;
  bool dropped = false;
  for (uint32_t i = 0; i < entry->count; ++i) {
    mp_atoms_t *list = &low->chosen[entry->factors[i]];
    if (!is_full && list->count != 0) {
      list->count = 0;
      dropped = true;
    }
    is_full &= mp_atoms_product(&low->propagation->space, list) ==
               low->rule->factors[entry->factors[i]].size;
  }
  return dropped;
}

static void lower_choose_drop_unreachable(mp_lowerer_t *low) {
  bool dropped = true;
  while (dropped) {
    dropped = false;
    for (uint32_t t = 0; t < mp_lowerer_num_tensors(low); ++t) {
      if (low->tensors[t] == NULL) continue;
      for (uint32_t d = 0; d < low->tensors[t]->rank; ++d) {
        dropped |= lower_choose_drop_in_dim(low, &low->rule->tensors[t][d]);
      }
    }
  }
}

// ---- the cost of a choice ----

// The average share, along one factor, of the part that a device needs and already holds.
static double lower_choose_held_share(const mp_lowerer_t *low, const mp_atoms_t *held,
                                      const mp_atoms_t *wanted) {
  mp_atoms_t rest = {0};
  for (uint32_t i = mp_atoms_common_prefix(held, wanted); i < held->count; ++i) {
    rest.atoms[rest.count++] = held->atoms[i];
  }
  return 1 / (double)mp_atoms_product(&low->propagation->space, &rest);
}

// The elements that a device receives to bring an operand from its sharding to the chosen parts, or
// a result from these to its sharding.
static double lower_choose_moving_cost(const mp_lowerer_t *low, uint32_t tensor) {
  const bool is_result = tensor >= low->op->num_operands;
  double part = low->sizes[tensor];
  double share = 1;
  for (uint32_t f = 0; f < low->rule->num_factors; ++f) {
    if (!mp_lowerer_has_factor(low, tensor, f)) continue;
    const mp_atoms_t *own = mp_lowerer_list(low, tensor, f);
    const mp_atoms_t *held = is_result ? &low->chosen[f] : own;
    const mp_atoms_t *wanted = is_result ? own : &low->chosen[f];
    part /= (double)mp_atoms_product(&low->propagation->space, wanted);
    share *= lower_choose_held_share(low, held, wanted);
  }
  return part * (1 - share);
}

// The elements that a device receives to sum up the terms of a result.
static double lower_choose_summing_cost(const mp_lowerer_t *low, uint32_t tensor) {
  double part = low->sizes[tensor];
  double terms = 1;
  for (uint32_t f = 0; f < low->rule->num_factors; ++f) {
    const double parts = (double)mp_atoms_product(&low->propagation->space, &low->chosen[f]);
    if (low->rule->factors[f].kind == MP_FACTOR_REDUCTION) terms *= parts;
    if (mp_lowerer_has_factor(low, tensor, f)) part /= parts;
  }
  return 2 * part * (1 - 1 / terms);
}

static double lower_choose_choice_cost(const mp_lowerer_t *low) {
  double cost = 0;
  for (uint32_t t = 0; t < mp_lowerer_num_tensors(low); ++t) {
    if (low->tensors[t] == NULL) continue;
    cost += lower_choose_moving_cost(low, t);
    if (t >= low->op->num_operands) cost += lower_choose_summing_cost(low, t);
  }
  return cost;
}

// The number of parts into which the op's work is divided.
static double lower_choose_num_parts(const mp_lowerer_t *low) {
  double parts = 1;
  for (uint32_t f = 0; f < low->rule->num_factors; ++f) {
    parts *= (double)mp_atoms_product(&low->propagation->space, &low->chosen[f]);
  }
  return parts;
}

// ---- the choice ----

typedef struct {
  bool usable[MP_MAX_FACTORS], even[MP_MAX_FACTORS];
} allowed_t;

// Makes the greedy choice for factors without one.
static void lower_choose_finish(mp_lowerer_t *low, const allowed_t *allowed) {
  const uint32_t used = lower_choose_lists(low, allowed->usable, allowed->even);
  lower_choose_spread(low, used, allowed->usable);
  lower_choose_drop_unreachable(low);
}

// Makes the greedy choice, beginning with the sharding of this tensor, if one is given.
static void lower_choose_after(mp_lowerer_t *low, const allowed_t *allowed, uint32_t tensor) {
  uint32_t used = 0;
  for (uint32_t f = 0; f < low->rule->num_factors; ++f) {
    low->chosen[f].count = 0;
    if (tensor == UINT32_MAX || !allowed->usable[f]) continue;
    low->chosen[f] =
        lower_choose_usable_prefix(low, f, mp_lowerer_list(low, tensor, f), used, allowed->even[f]);
    used |= mp_atoms_set(&low->chosen[f]);
  }
  lower_choose_finish(low, allowed);
}

// What GSPMD's partitioner decides about a matmul before it counts bytes: if both operands are
// sharded alike along the contracted dimension, the result stays a sum of terms; if an operand and
// the result have rows or columns in the same parts, these stay where they are, even if it would
// cost less to move them and to gather the other operand. Begins the choice with these; false:
// there are none.
static bool lower_choose_settle(mp_lowerer_t *low, const allowed_t *allowed) {
  uint32_t used = 0;
  for (uint32_t f = 0; f < low->rule->num_factors; ++f) low->chosen[f].count = 0;
  for (uint32_t is_own = 0; is_own < 2; ++is_own) {
    for (uint32_t f = 0; f < low->rule->num_factors; ++f) {
      const bool is_sum = low->rule->factors[f].kind == MP_FACTOR_REDUCTION;
      if (!allowed->usable[f] || is_sum == (is_own != 0)) continue;
      const uint32_t a = !is_sum && !mp_lowerer_has_factor(low, 0, f) ? 1 : 0, b = is_sum ? 1 : 2;
      const mp_atoms_t *lists[] = {mp_lowerer_list(low, a, f), mp_lowerer_list(low, b, f)};
      const uint32_t count = lists[0]->count;
      if (count != lists[1]->count || mp_atoms_common_prefix(lists[0], lists[1]) != count) continue;
      low->chosen[f] = lower_choose_usable_prefix(low, f, lists[0], used, allowed->even[f]);
      used |= mp_atoms_set(&low->chosen[f]);
    }
  }
  return used != 0;
}

// The multiplications that a device computes in the time of receiving one element, on described
// pods: 197 Tflop/s and 180 GB/s on a v5e, 989 Tflop/s and 450 GB/s on an H100.
static const double k_products_per_element = 1000;

// The cost of a matmul with the choice: the elements received, and the work in the same unit.
static double lower_choose_product_cost(const mp_lowerer_t *low) {
  double work = 1;
  for (uint32_t f = 0; f < low->rule->num_factors; ++f) work *= (double)low->rule->factors[f].size;
  return lower_choose_choice_cost(low) +
         work / lower_choose_num_parts(low) / k_products_per_element;
}

// Chooses only the result's parts and what lower_choose_settle decides: operands that are sharded
// along the contracted dimension are gathered, as GSPMD's partitioner does.
static void lower_choose_followed(mp_lowerer_t *low, const allowed_t *allowed) {
  (void)lower_choose_settle(low, allowed);
  uint32_t used = 0;
  for (uint32_t f = 0; f < low->rule->num_factors; ++f) used |= mp_atoms_set(&low->chosen[f]);
  for (uint32_t f = 0; f < low->rule->num_factors; ++f) {
    if (!allowed->usable[f] || low->chosen[f].count != 0) continue;
    low->chosen[f] =
        lower_choose_usable_prefix(low, f, mp_lowerer_list(low, 2, f), used, allowed->even[f]);
    used |= mp_atoms_set(&low->chosen[f]);
  }
  lower_choose_drop_unreachable(low);
}

// The greedy choice after lower_choose_settle, unless it divides the work into fewer parts; or
// fewer parts, if that saves more communication than the repeated work costs.
static bool lower_choose_product(mp_lowerer_t *low, const allowed_t *allowed, double parts) {
  if (low->op->code != MP_OP_DOT_GENERAL) return false;
  const double greedy = lower_choose_product_cost(low);
  const bool is_settled = lower_choose_settle(low, allowed);
  double settled = greedy;
  bool is_done = false;
  if (is_settled) {
    lower_choose_finish(low, allowed);
    is_done = lower_choose_num_parts(low) >= parts;
    if (is_done) settled = lower_choose_product_cost(low);
  }
  lower_choose_followed(low, allowed);
  if (lower_choose_product_cost(low) < settled) return true;
  if (!is_done) return false;
  (void)lower_choose_settle(low, allowed);
  lower_choose_finish(low, allowed);
  return true;
}

enum { MP_MAX_FOLLOWED = 8 };

// Takes the greedy choice, or one that begins with a tensor's sharding if it sends less and divides
// the work into as many parts.
void mp_lowerer_choose(mp_lowerer_t *low) {
  allowed_t allowed = {{false}, {false}};
  for (uint32_t f = 0; f < low->rule->num_factors; ++f) {
    allowed.usable[f] = lower_choose_is_usable(low, f);
    allowed.even[f] = allowed.usable[f] && lower_choose_needs_even(low, f);
  }
  lower_choose_after(low, &allowed, UINT32_MAX);
  double least = lower_choose_choice_cost(low);
  const double parts = lower_choose_num_parts(low);
  uint32_t best = UINT32_MAX;
  const uint32_t count = mp_lowerer_num_tensors(low);
  if (least == 0 || count > MP_MAX_FOLLOWED || lower_choose_product(low, &allowed, parts)) return;
  for (uint32_t t = 0; t < count; ++t) {
    if (low->tensors[t] == NULL) continue;
    lower_choose_after(low, &allowed, t);
    const double cost = lower_choose_choice_cost(low);
    if (cost >= least || lower_choose_num_parts(low) < parts) continue;
    best = t;
    least = cost;
  }
  lower_choose_after(low, &allowed, best);
}
