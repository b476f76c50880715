#include "sim/base/assert.h"
#include "sim/spmd/build/unreduced.h"
#include "sim/spmd/local/lower_form.h"

#include <string.h>

enum { MP_MAX_FACTORS = 256, MP_MAX_TENSORS = 256 };

// ---- the table of forms ----
//
// Ops without an entry can be computed along all of their PASS factors, and none of their
// attributes counts elements.

static const mp_local_form_t g_plain = {0};

static const mp_local_form_t *const g_forms[MP_OP_COUNT] = {
    [MP_OP_ALL_GATHER] = &mp_form_collective,
    [MP_OP_ALL_REDUCE] = &mp_form_collective,
    [MP_OP_ALL_TO_ALL] = &mp_form_collective,
    [MP_OP_COLLECTIVE_BROADCAST] = &mp_form_collective,
    [MP_OP_COLLECTIVE_PERMUTE] = &mp_form_collective,
    [MP_OP_CONCATENATE] = &mp_form_concatenate,
    [MP_OP_CONSTANT] = &mp_form_constant,
    [MP_OP_CONVOLUTION] = &mp_form_convolution,
    [MP_OP_CUSTOM_CALL] = &mp_form_custom_call,
    [MP_OP_DOT_GENERAL] = &mp_form_dot_general,
    [MP_OP_DYNAMIC_SLICE] = &mp_form_dynamic_slice,
    [MP_OP_DYNAMIC_UPDATE_SLICE] = &mp_form_dynamic_update_slice,
    [MP_OP_GATHER] = &mp_form_gather,
    [MP_OP_PAD] = &mp_form_pad,
    [MP_OP_REDUCE] = &mp_form_reduce,
    [MP_OP_REDUCE_SCATTER] = &mp_form_collective,
    [MP_OP_REDUCE_WINDOW] = &mp_form_reduce_window,
    [MP_OP_RESHAPE] = &mp_form_reshape,
    [MP_OP_REVERSE] = &mp_form_reverse,
    [MP_OP_SCATTER] = &mp_form_scatter,
    [MP_OP_SELECT_AND_SCATTER] = &mp_form_select_and_scatter,
    [MP_OP_SLICE] = &mp_form_slice,
};
// A missing row looks like an op that needs none, and would compute wrong parts.
_Static_assert(MP_OP_COUNT == 137,
               "a new op: does it need a form above for its attributes or factors?");

// ---- reading the shardings ----

// Gives a dimension's atoms to its factors, major first; drops atoms that do not fit.
static void lower_project_dim(mp_lowerer_t *low, uint32_t tensor, uint32_t dim) {
  const mp_dim_factors_t *entry = &low->rule->tensors[tensor][dim];
  const mp_atoms_t *atoms = &low->tensors[tensor]->dims[dim].atoms;
  uint32_t next = 0;
  for (uint32_t i = 0; i < entry->count; ++i) {
    const int64_t left = mp_atoms_take(
        &low->propagation->space, atoms, &next, low->rule->factors[entry->factors[i]].size,
        i + 1 == entry->count, mp_lowerer_list(low, tensor, entry->factors[i]));
    if (left != 1) return;
  }
}

static mp_status_t lower_read_shardings(mp_lowerer_t *low) {
  const uint32_t count = mp_lowerer_num_tensors(low);
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
    for (uint32_t d = 0; d < low->tensors[t]->rank; ++d) lower_project_dim(low, t, d);
  }
  return NULL;
}

// ---- the local op ----

// Parts of a tensor, or terms over the atoms of `unreduced` (of the kind `kind`).
static mp_status_t lower_tensor_boxes(const mp_lowerer_t *low, uint32_t tensor, uint32_t unreduced,
                                      uint32_t kind, const mp_boxes_t **out_boxes) {
  *out_boxes = NULL;
  if (low->tensors[tensor] == NULL) return NULL;
  const mp_type_t *type = mp_lowerer_type(low, tensor);
  mp_atom_sharding_t *sharding = NULL;
  MP_RETURN_IF_ERROR(mp_atom_sharding_create(low->arena, type->rank, false, &sharding));
  sharding->unreduced = unreduced;
  sharding->unreduced_kind = kind;
  for (uint32_t d = 0; d < type->rank; ++d) {
    const mp_dim_factors_t *entry = &low->rule->tensors[tensor][d];
    mp_atoms_t *atoms = &sharding->dims[d].atoms;
    for (uint32_t i = 0; i < entry->count; ++i) {
      const mp_atoms_t *list = &low->chosen[entry->factors[i]];
      MP_ASSERT(atoms->count + list->count <= MP_MAX_ATOMS);
      memcpy(atoms->atoms + atoms->count, list->atoms, list->count);
      atoms->count = (uint8_t)(atoms->count + list->count);
    }
  }
  return mp_atom_sharding_boxes(&low->propagation->space, low->scope, type, sharding, out_boxes);
}

// The set of the atoms along which the results are terms of a reduction.
static uint32_t lower_reduced_atoms(const mp_lowerer_t *low) {
  uint32_t atoms = 0;
  for (uint32_t f = 0; f < low->rule->num_factors; ++f) {
    if (low->rule->factors[f].kind == MP_FACTOR_REDUCTION) atoms |= mp_atoms_set(&low->chosen[f]);
  }
  return atoms;
}

// Whether the program requests terms that `combine` combines (for example of a maximum).
static bool lower_is_asked_for_terms(const mp_lowerer_t *low, mp_opcode_t combine) {
  const mp_atom_sharding_t *asked = low->tensors[low->op->num_operands];
  return low->op->num_results == 1 && asked != NULL && asked->unreduced != 0 &&
         mp_unreduced_opcode(asked->unreduced_kind) == combine;
}

// Sums stay terms; the terms of other reductions are combined at once, unless the program requests
// them.
static mp_status_t lower_place_terms(const mp_lowerer_t *low, uint32_t terms, mp_local_op_t *out) {
  const mp_opcode_t combine = low->form->combine == NULL ? MP_OP_ADD : low->form->combine(low);
  out->terms = out->results[0];
  if (combine == MP_OP_ADD) return NULL;
  const uint32_t first = low->op->num_operands;
  if (lower_is_asked_for_terms(low, combine)) {
    return lower_tensor_boxes(low, first, terms, low->tensors[first]->unreduced_kind,
                              &out->results[0]);
  }
  for (uint32_t i = 0; i < low->op->num_results; ++i) {
    MP_RETURN_IF_ERROR(lower_tensor_boxes(low, first + i, 0, MP_UNREDUCED_SUM, &out->results[i]));
  }
  if (combine == MP_OP_COUNT) return NULL;
  out->combine = combine;
  out->combine_over = out->terms;
  return NULL;
}

static mp_status_t lower_make_local(mp_lowerer_t *low, mp_local_op_t *out, bool *out_is_local) {
  const mp_op_t *op = low->op;
  out->op = op;
  out->operands = MP_ARENA_ARRAY(low->arena, const mp_boxes_t *, op->num_operands);
  out->results = MP_ARENA_ARRAY(low->arena, const mp_boxes_t *, op->num_results);
  if (out->operands == NULL || out->results == NULL) return mp_status_out_of_memory();
  const uint32_t terms = lower_reduced_atoms(low);
  bool is_local = false;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    MP_RETURN_IF_ERROR(lower_tensor_boxes(low, i, 0, MP_UNREDUCED_SUM, &out->operands[i]));
    is_local |= out->operands[i] != NULL;
  }
  for (uint32_t i = 0; i < op->num_results; ++i) {
    MP_RETURN_IF_ERROR(
        lower_tensor_boxes(low, op->num_operands + i, terms, MP_UNREDUCED_SUM, &out->results[i]));
    is_local |= out->results[i] != NULL;
  }
  *out_is_local = is_local;
  if (!is_local) return NULL;
  if (terms != 0) MP_RETURN_IF_ERROR(lower_place_terms(low, terms, out));
  out->attrs = mp_arena_copy(low->arena, op->attrs, op->num_attrs * sizeof(*op->attrs));
  MP_RETURN_IF_NULL(out->attrs);
  return low->form->localize == NULL ? NULL : low->form->localize(low, out);
}

mp_status_t mp_lower_op(mp_arena_t *arena, const mp_propagation_t *propagation,
                        const mp_spmd_scope_t *scope, const mp_op_t *op, mp_local_op_t *out,
                        bool *out_is_local) {
  *out_is_local = false;
  const mp_rule_t *rule = propagation->rules[op->id];
  if (rule == NULL || rule->num_factors == 0) return NULL;
  // A rule that the op states itself guides propagation, but it may be wrong for the op.
  if (op->code != MP_OP_CUSTOM_CALL && mp_op_attr(op, MP_ATTR_SDY_SHARDING_RULE) != NULL) {
    return NULL;
  }
  // The choice compares every tensor with every other, which takes too long for hundreds of
  // operands.
  if (rule->num_factors > MP_MAX_FACTORS ||
      rule->num_operands + rule->num_results > MP_MAX_TENSORS) {
    return NULL;
  }
  const mp_local_form_t *form = g_forms[op->code] == NULL ? &g_plain : g_forms[op->code];
  mp_lowerer_t low = {.arena = arena,
                      .propagation = propagation,
                      .scope = scope,
                      .op = op,
                      .rule = rule,
                      .form = form};
  MP_RETURN_IF_ERROR(lower_read_shardings(&low));
  mp_lowerer_choose(&low);
  mp_local_op_t local = {0};
  MP_RETURN_IF_ERROR(lower_make_local(&low, &local, out_is_local));
  if (*out_is_local) *out = local;
  return NULL;
}
