// The choice of lowering: which atoms shard which factor.
#include "sim/spmd/lower_form.h"

enum { MP_MAX_FACTORS = 256 };

// --- what the op allows ---

static bool is_in_all_results(const mp_lowerer_t *low, uint32_t factor) {
  for (uint32_t i = 0; i < low->op->num_results; ++i) {
    if (!mp_lowerer_has_factor(low, low->op->num_operands + i, factor)) return false;
  }
  return true;
}

// Whether the op can be computed with this factor sharded.
static bool is_usable(const mp_lowerer_t *low, uint32_t factor) {
  const mp_factor_kind_t kind = low->rule->factors[factor].kind;
  if (kind == MP_FACTOR_REDUCTION) {
    return low->form->is_usable != NULL && low->form->is_usable(low, factor);
  }
  // Parts of an operand make parts of the result only along what both have; only a broadcast makes
  // a dimension out of nothing.
  if (kind != MP_FACTOR_PASS || !is_in_all_results(low, factor)) return false;
  return low->form->is_usable == NULL || low->form->is_usable(low, factor);
}

// Uneven parts have elements behind their end: a reduction would count them, and where a dimension
// has several factors the parts would not begin where the factors do.
static bool needs_even(const mp_lowerer_t *low, uint32_t factor) {
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

// --- greedily ---

// `list` without what is used already or may not be; the longest usable prefix.
static mp_atoms_t usable_prefix(const mp_lowerer_t *low, uint32_t factor, const mp_atoms_t *list,
                                uint32_t used, bool is_even) {
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

// How many elements lie right already if `factor` is sharded by `candidate`.
static double score(const mp_lowerer_t *low, uint32_t factor, const mp_atoms_t *candidate) {
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
  mp_atoms_t atoms;  // none: no choice yet
} mp_choice_t;

static bool is_better(const mp_lowerer_t *low, const mp_choice_t *a, const mp_choice_t *b) {
  if (a->score != b->score) return a->score > b->score;
  if (b->atoms.count != 0) {
    const mp_factor_kind_t kinds[2] = {low->rule->factors[a->factor].kind,
                                       low->rule->factors[b->factor].kind};
    if (kinds[0] != kinds[1]) return kinds[0] < kinds[1];
  }
  return a->atoms.count > b->atoms.count;
}

// Of all lists that some tensor has along some factor, the one that leaves most elements where they
// are; then the next among those that do not contradict it.
static uint32_t choose_lists(mp_lowerer_t *low, const bool *usable, const bool *even) {
  uint32_t used = 0;
  bool fixed[MP_MAX_FACTORS] = {false};
  for (uint32_t round = 0; round < low->rule->num_factors; ++round) {
    mp_choice_t best = {0};
    for (uint32_t f = 0; f < low->rule->num_factors; ++f) {
      if (fixed[f] || !usable[f]) continue;
      for (uint32_t t = 0; t < mp_lowerer_num_tensors(low); ++t) {
        if (low->tensors[t] == NULL) continue;
        mp_choice_t choice = {.factor = f};
        choice.atoms = usable_prefix(low, f, mp_lowerer_list(low, t, f), used, even[f]);
        if (choice.atoms.count == 0) continue;
        choice.score = score(low, f, &choice.atoms);
        if (is_better(low, &choice, &best)) best = choice;
      }
    }
    if (best.atoms.count == 0) break;
    low->chosen[best.factor] = best.atoms;
    fixed[best.factor] = true;
    used |= mp_atoms_set(&best.atoms);
  }
  return used;
}

// --- what is left over ---

// Gives an atom to a factor of the same operand that is still large enough. True when one took it.
static bool spread_atom(mp_lowerer_t *low, uint32_t tensor, uint8_t atom, const bool *usable) {
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

// Whether the results are better had in parts: they lie so anyway, or are smaller than the operand
// that would have to be brought together.
static bool is_worth_it(const mp_lowerer_t *low, uint32_t tensor, uint8_t atom) {
  double size = 0;
  for (uint32_t i = 0; i < low->op->num_results; ++i) {
    const uint32_t result = low->op->num_operands + i;
    size += low->sizes[result];
    if (low->tensors[result] == NULL) continue;
    if (mp_atom_sharding_used(low->tensors[result]) >> atom & 1) return true;
  }
  return size <= low->sizes[tensor];
}

// Dimensions along which the op cannot be computed must come together. Their atoms move to
// dimensions that have room, so that the operand is dealt out again rather than copied to
// everybody.
static void spread(mp_lowerer_t *low, uint32_t used, const bool *usable) {
  for (uint32_t t = 0; t < low->op->num_operands; ++t) {
    if (low->tensors[t] == NULL) continue;
    for (uint32_t f = 0; f < low->rule->num_factors; ++f) {
      const mp_atoms_t *list = mp_lowerer_list(low, t, f);
      if (usable[f]) continue;
      for (uint32_t i = 0; i < list->count; ++i) {
        if ((used >> list->atoms[i] & 1) != 0 || !is_worth_it(low, t, list->atoms[i])) continue;
        if (spread_atom(low, t, list->atoms[i], usable)) used |= 1u << list->atoms[i];
      }
    }
  }
}

// --- what a dimension cannot have ---

// A minor factor is sharded only when the ones before it are, fully. True when something was
// dropped.
static bool drop_in_dim(mp_lowerer_t *low, const mp_dim_factors_t *entry) {
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

static void drop_unreachable(mp_lowerer_t *low) {
  bool dropped = true;
  while (dropped) {
    dropped = false;
    for (uint32_t t = 0; t < mp_lowerer_num_tensors(low); ++t) {
      if (low->tensors[t] == NULL) continue;
      for (uint32_t d = 0; d < low->tensors[t]->rank; ++d) {
        dropped |= drop_in_dim(low, &low->rule->tensors[t][d]);
      }
    }
  }
}

void mp_lowerer_choose(mp_lowerer_t *low) {
  bool usable[MP_MAX_FACTORS] = {false};
  bool even[MP_MAX_FACTORS] = {false};
  for (uint32_t f = 0; f < low->rule->num_factors; ++f) {
    usable[f] = is_usable(low, f);
    even[f] = usable[f] && needs_even(low, f);
  }
  const uint32_t used = choose_lists(low, usable, even);
  spread(low, used, usable);
  drop_unreachable(low);
}
