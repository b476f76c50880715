#include "sim/spmd/lower.h"

#include <string.h>

enum { MP_MAX_FACTORS = 256, MP_MAX_TENSORS = 256 };

typedef struct {
  mp_arena_t *arena;
  const mp_propagation_t *propagation;
  const mp_spmd_scope_t *scope;
  const mp_op_t *op;
  const mp_rule_t *rule;
  mp_atom_sharding_t **tensors;  // by propagation, operands first
  mp_atoms_t *lists;             // [tensor * num_factors + factor]: what a tensor has of a factor
  double *sizes;                 // [tensor]: elements
  mp_atoms_t *chosen;            // [factor]
} mp_lowerer_t;

static uint32_t num_tensors(const mp_lowerer_t *low) {
  return low->rule->num_operands + low->rule->num_results;
}

static mp_atoms_t *list_of(const mp_lowerer_t *low, uint32_t tensor, uint32_t factor) {
  return &low->lists[(size_t)tensor * low->rule->num_factors + factor];
}

// --- reading what there is ---

// Hands a dimension's atoms to its factors, major first; what does not fit is dropped.
static void project_dim(mp_lowerer_t *low, uint32_t tensor, uint32_t dim) {
  const mp_dim_factors_t *entry = &low->rule->tensors[tensor][dim];
  const mp_atoms_t *atoms = &low->tensors[tensor]->dims[dim].atoms;
  uint32_t next = 0;
  for (uint32_t i = 0; i < entry->count; ++i) {
    const int64_t left = mp_atoms_take(
        &low->propagation->space, atoms, &next, low->rule->factors[entry->factors[i]].size,
        i + 1 == entry->count, list_of(low, tensor, entry->factors[i]));
    if (left != 1) return;
  }
}

static mp_status_t read_shardings(mp_lowerer_t *low) {
  const uint32_t count = num_tensors(low);
  low->tensors = MP_ARENA_ARRAY(low->arena, mp_atom_sharding_t *, count);
  low->sizes = MP_ARENA_ARRAY(low->arena, double, count);
  low->lists = MP_ARENA_ARRAY(low->arena, mp_atoms_t, (size_t)count * low->rule->num_factors);
  low->chosen = MP_ARENA_ARRAY(low->arena, mp_atoms_t, low->rule->num_factors);
  if (low->tensors == NULL || low->sizes == NULL || low->lists == NULL || low->chosen == NULL) {
    return mp_status_out_of_memory();
  }
  for (uint32_t t = 0; t < count; ++t) {
    const mp_value_t *value = t < low->op->num_operands
                                  ? low->op->operands[t]
                                  : &low->op->results[t - low->op->num_operands];
    low->tensors[t] = low->propagation->values[value->id];
    int64_t elements = 0;
    if (mp_type_num_elements(value->type, &elements)) low->sizes[t] = (double)elements;
    if (low->tensors[t] == NULL) continue;
    for (uint32_t d = 0; d < low->tensors[t]->rank; ++d) project_dim(low, t, d);
  }
  return NULL;
}

// --- what the op itself allows ---

// Whether the region is one commutative op that all_reduce can finish, given that each part begins
// with the initial value: true when that value changes nothing.
static bool is_identity_constant(const mp_value_t *value, mp_opcode_t code) {
  if (value->op == NULL || value->op->code != MP_OP_CONSTANT) return false;
  const mp_attr_t *dense = mp_op_attr(value->op, MP_ATTR_VALUE);
  if (dense == NULL || dense->kind != MP_KIND_DENSE) return false;
  const mp_dtype_t dtype = value->type->dtype;
  const unsigned char *bytes = dense->u.dense.data;
  if (code == MP_OP_MULTIPLY) {
    if (mp_dtype_is_float(dtype)) return mp_float_decode(dtype, bytes) == 1.0;
    if (!mp_dtype_is_integer(dtype) || bytes[0] != 1) return false;
    for (size_t i = 1; i < mp_dtype_size(dtype); ++i) {
      if (bytes[i] != 0) return false;
    }
    return true;
  }
  // Sums: zero, also negative zero.
  if (mp_dtype_is_float(dtype)) return mp_float_decode(dtype, bytes) == 0.0;
  for (size_t i = 0; i < mp_dtype_size(dtype); ++i) {
    if (bytes[i] != 0) return false;
  }
  return true;
}

// The region's one op on its two arguments, or MP_OP_COUNT.
static mp_opcode_t region_op(const mp_block_t *block) {
  const mp_op_t *op = block->first;
  if (op == NULL || op->num_operands != 2 || op->num_results != 1 || block->num_args != 2) {
    return MP_OP_COUNT;
  }
  const mp_op_t *end = op->next;
  if (end == NULL || end != block->last || end->num_operands != 1) return MP_OP_COUNT;
  if (end->operands[0] != &op->results[0]) return MP_OP_COUNT;
  const bool straight = op->operands[0] == &block->args[0] && op->operands[1] == &block->args[1];
  const bool swapped = op->operands[0] == &block->args[1] && op->operands[1] == &block->args[0];
  if (!straight && !swapped) return MP_OP_COUNT;
  return op->code;
}

static bool can_reduce_parts(const mp_op_t *op) {
  if (op->code == MP_OP_DOT_GENERAL) return true;
  if (op->code != MP_OP_REDUCE || op->num_results != 1) return false;
  const mp_opcode_t code = region_op(op->regions[0]);
  switch (code) {
    case MP_OP_ADD:
    case MP_OP_MULTIPLY:
      return is_identity_constant(op->operands[1], code);
    case MP_OP_MAXIMUM:
    case MP_OP_MINIMUM:
    case MP_OP_AND:
    case MP_OP_OR:
      return true;  // the initial value may come in any number of times
    default:
      return false;
  }
}

static bool has_factor(const mp_lowerer_t *low, uint32_t tensor, uint32_t factor) {
  if (low->tensors[tensor] == NULL) return false;
  for (uint32_t d = 0; d < low->tensors[tensor]->rank; ++d) {
    const mp_dim_factors_t *entry = &low->rule->tensors[tensor][d];
    for (uint32_t i = 0; i < entry->count; ++i) {
      if (entry->factors[i] == factor) return true;
    }
  }
  return false;
}

// Whether the op can be computed with this factor sharded.
static bool is_usable(const mp_lowerer_t *low, uint32_t factor) {
  const mp_op_t *op = low->op;
  const mp_factor_t *info = &low->rule->factors[factor];
  if (info->kind == MP_FACTOR_REDUCTION) return can_reduce_parts(op);
  if (info->kind != MP_FACTOR_PASS) return false;
  // Parts of an operand make parts of the result only along what both have; only a broadcast makes
  // a dimension out of nothing.
  for (uint32_t i = 0; i < op->num_results; ++i) {
    if (!has_factor(low, op->num_operands + i, factor)) return false;
  }
  if (op->code == MP_OP_RESHAPE && !has_factor(low, 0, factor)) return false;
  if (op->code == MP_OP_DYNAMIC_UPDATE_SLICE) {
    // Only where the update is full: its dimension has the same factor.
    for (uint32_t d = 0; d < op->operands[1]->type->rank; ++d) {
      if (low->rule->tensors[1][d].factors[0] == factor) return true;
    }
    return false;
  }
  if (op->code == MP_OP_CONSTANT) return mp_op_attr(op, MP_ATTR_VALUE)->u.dense.splat;
  return true;
}

// Uneven parts have elements behind their end: a reduction would count them, and the local shapes
// of a reshape would not fit.
static bool needs_even(const mp_lowerer_t *low, uint32_t factor) {
  return low->rule->factors[factor].kind == MP_FACTOR_REDUCTION || low->op->code == MP_OP_RESHAPE;
}

// --- choosing ---

// `list` without what is used already or may not be; the longest usable prefix.
static mp_atoms_t usable_prefix(const mp_lowerer_t *low, uint32_t factor, const mp_atoms_t *list,
                                uint32_t used) {
  mp_atoms_t prefix = {0};
  int64_t left = low->rule->factors[factor].size;
  for (uint32_t i = 0; i < list->count; ++i) {
    const uint8_t atom = list->atoms[i];
    const int64_t prime = low->propagation->space.prime[atom];
    if (used >> atom & 1) break;
    if (needs_even(low, factor) && left % prime != 0) break;
    left /= prime;
    prefix.atoms[prefix.count++] = atom;
  }
  return prefix;
}

// How many elements lie right already if `factor` is sharded by `candidate`.
static double score(const mp_lowerer_t *low, uint32_t factor, const mp_atoms_t *candidate) {
  double sum = 0;
  for (uint32_t t = 0; t < num_tensors(low); ++t) {
    const mp_atoms_t *list = list_of(low, t, factor);
    if (low->tensors[t] == NULL || list->count < candidate->count) continue;
    if (mp_atoms_common_prefix(list, candidate) == candidate->count) sum += low->sizes[t];
  }
  return sum;
}

static bool is_better(double new_score, const mp_factor_t *factor, uint32_t count,
                      double best_score, const mp_factor_t *best, uint32_t best_count) {
  if (new_score != best_score) return new_score > best_score;
  if (best != NULL && factor->kind != best->kind) return factor->kind < best->kind;
  return count > best_count;
}

// Greedily: of all lists that some tensor has along some factor, the one that leaves most elements
// where they are; then the next among those that do not contradict it.
static void choose(mp_lowerer_t *low) {
  uint32_t used = 0;
  bool fixed[MP_MAX_FACTORS] = {false};
  for (uint32_t round = 0; round < low->rule->num_factors; ++round) {
    double best_score = 0;
    uint32_t best_factor = 0;
    mp_atoms_t best = {0};
    for (uint32_t f = 0; f < low->rule->num_factors; ++f) {
      if (fixed[f] || !is_usable(low, f)) continue;
      for (uint32_t t = 0; t < num_tensors(low); ++t) {
        if (low->tensors[t] == NULL) continue;
        const mp_atoms_t list = usable_prefix(low, f, list_of(low, t, f), used);
        if (list.count == 0) continue;
        const double points = score(low, f, &list);
        if (is_better(points, &low->rule->factors[f], list.count, best_score,
                      best.count == 0 ? NULL : &low->rule->factors[best_factor], best.count)) {
          best_score = points;
          best_factor = f;
          best = list;
        }
      }
    }
    if (best.count == 0) return;
    low->chosen[best_factor] = best;
    fixed[best_factor] = true;
    used |= mp_atoms_set(&best);
  }
}

// Drops what a dimension cannot have: a minor factor is sharded only when the ones before it are,
// fully. True when something was dropped.
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
    for (uint32_t t = 0; t < num_tensors(low); ++t) {
      if (low->tensors[t] == NULL) continue;
      for (uint32_t d = 0; d < low->tensors[t]->rank; ++d) {
        dropped |= drop_in_dim(low, &low->rule->tensors[t][d]);
      }
    }
  }
}

// --- the local op ---

static mp_status_t tensor_boxes(const mp_lowerer_t *low, uint32_t tensor, uint32_t unreduced,
                                const mp_boxes_t **out_boxes) {
  *out_boxes = NULL;
  if (low->tensors[tensor] == NULL) return NULL;
  const mp_value_t *value = tensor < low->op->num_operands
                                ? low->op->operands[tensor]
                                : &low->op->results[tensor - low->op->num_operands];
  mp_atom_sharding_t *sharding = NULL;
  MP_RETURN_IF_ERROR(mp_atom_sharding_create(low->arena, value->type->rank, false, &sharding));
  sharding->unreduced = unreduced;
  for (uint32_t d = 0; d < value->type->rank; ++d) {
    const mp_dim_factors_t *entry = &low->rule->tensors[tensor][d];
    mp_atoms_t *atoms = &sharding->dims[d].atoms;
    for (uint32_t i = 0; i < entry->count; ++i) {
      const mp_atoms_t *list = &low->chosen[entry->factors[i]];
      memcpy(atoms->atoms + atoms->count, list->atoms, list->count);
      atoms->count = (uint8_t)(atoms->count + list->count);
    }
  }
  return mp_atom_sharding_boxes(&low->propagation->space, low->scope, value->type, sharding,
                                out_boxes);
}

// Sizes in attributes that count elements of a sharded dimension.
static mp_status_t localize_ints(const mp_lowerer_t *low, mp_attr_name_t name,
                                 const mp_type_t *local, mp_local_op_t *out) {
  for (uint32_t a = 0; a < low->op->num_attrs; ++a) {
    if (out->attrs[a].name != name) continue;
    const mp_attr_t *old = out->attrs[a].value;
    int64_t values[MP_MAX_RANK];
    for (uint32_t d = 0; d < old->u.ints.count && d < MP_MAX_RANK; ++d) {
      const bool is_sharded = local->dims[d] != low->op->results[0].type->dims[d];
      values[d] = is_sharded ? local->dims[d] : old->u.ints.values[d];
    }
    return mp_attr_make_ints(low->arena, values, old->u.ints.count, &out->attrs[a].value);
  }
  return NULL;
}

static mp_status_t localize_attrs(const mp_lowerer_t *low, mp_local_op_t *out) {
  const mp_op_t *op = low->op;
  out->attrs = mp_arena_copy(low->arena, op->attrs, op->num_attrs * sizeof(*op->attrs));
  MP_RETURN_IF_NULL(out->attrs);
  const mp_type_t *local = NULL;
  MP_RETURN_IF_ERROR(
      mp_placement_local_type(low->arena, op->results[0].type, out->results[0], &local));
  switch (op->code) {
    case MP_OP_SLICE:
      return localize_ints(low, MP_ATTR_LIMIT_INDICES, local, out);
    case MP_OP_DYNAMIC_SLICE:
      return localize_ints(low, MP_ATTR_SLICE_SIZES, local, out);
    case MP_OP_CONSTANT:
      for (uint32_t a = 0; a < op->num_attrs; ++a) {
        if (out->attrs[a].name != MP_ATTR_VALUE) continue;
        const mp_attr_t *old = out->attrs[a].value;
        MP_RETURN_IF_ERROR(mp_attr_make_dense(low->arena, local, old->u.dense.data,
                                              old->u.dense.size, true, &out->attrs[a].value));
      }
      return NULL;
    default:
      return NULL;
  }
}

// The atoms along which the result is a term of a reduction.
static uint32_t reduced_atoms(const mp_lowerer_t *low) {
  uint32_t atoms = 0;
  for (uint32_t f = 0; f < low->rule->num_factors; ++f) {
    if (low->rule->factors[f].kind == MP_FACTOR_REDUCTION) atoms |= mp_atoms_set(&low->chosen[f]);
  }
  return atoms;
}

static bool adds_up(const mp_op_t *op) {
  return op->code == MP_OP_DOT_GENERAL || region_op(op->regions[0]) == MP_OP_ADD;
}

static mp_status_t make_local(mp_lowerer_t *low, mp_local_op_t *out, bool *out_is_local) {
  const mp_op_t *op = low->op;
  out->operands = MP_ARENA_ARRAY(low->arena, const mp_boxes_t *, op->num_operands);
  out->results = MP_ARENA_ARRAY(low->arena, const mp_boxes_t *, op->num_results);
  if (out->operands == NULL || out->results == NULL) return mp_status_out_of_memory();
  const uint32_t terms = reduced_atoms(low);
  bool is_local = false;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    MP_RETURN_IF_ERROR(tensor_boxes(low, i, 0, &out->operands[i]));
    is_local |= out->operands[i] != NULL;
  }
  for (uint32_t i = 0; i < op->num_results; ++i) {
    MP_RETURN_IF_ERROR(tensor_boxes(low, op->num_operands + i, terms, &out->results[i]));
    is_local |= out->results[i] != NULL;
  }
  *out_is_local = is_local;
  if (!is_local) return NULL;
  if (terms != 0 && !adds_up(op)) {
    out->combine = region_op(op->regions[0]);
    out->combine_over = out->results[0];
    MP_RETURN_IF_ERROR(tensor_boxes(low, op->num_operands, 0, &out->results[0]));
  }
  return localize_attrs(low, out);
}

mp_status_t mp_lower_op(mp_arena_t *arena, const mp_propagation_t *propagation,
                        const mp_spmd_scope_t *scope, const mp_op_t *op, mp_local_op_t *out,
                        bool *out_is_local) {
  *out_is_local = false;
  const mp_rule_t *rule = propagation->rules[op->id];
  if (rule == NULL || rule->num_factors == 0) return NULL;
  // Choosing compares every tensor with every other: not for ops of hundreds of operands.
  if (rule->num_factors > MP_MAX_FACTORS ||
      rule->num_operands + rule->num_results > MP_MAX_TENSORS) {
    return NULL;
  }
  if (mp_op_info(op->code)->traits & MP_OP_TRAIT_COLLECTIVE) return NULL;
  mp_lowerer_t low = {
      .arena = arena, .propagation = propagation, .scope = scope, .op = op, .rule = rule};
  MP_RETURN_IF_ERROR(read_shardings(&low));
  choose(&low);
  drop_unreachable(&low);
  mp_local_op_t local = {0};
  MP_RETURN_IF_ERROR(make_local(&low, &local, out_is_local));
  if (*out_is_local) *out = local;
  return NULL;
}
