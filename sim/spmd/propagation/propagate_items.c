#include <string.h>

#include "sim/spmd/propagation/propagate_parts.h"
#include "sim/spmd/sharding/annotations.h"

// ---- the first shardings ----

static mp_status_t propagate_items_give(mp_propagator_t *p, const mp_value_t *value,
                                        uint32_t manual) {
  mp_atom_sharding_t **slot = &p->out->values[value->id];
  if (*slot != NULL || !mp_type_is_tensor(value->type)) return NULL;
  *slot = p->given[value->id];
  if (*slot != NULL) return NULL;
  MP_RETURN_IF_ERROR(mp_atom_sharding_create(p->arena, value->type->rank, true, slot));
  (*slot)->manual = manual;
  return NULL;
}

static mp_status_t propagate_items_give_values(mp_propagator_t *p, mp_block_t *block,
                                               uint32_t manual);

// Gives a loop's results shardings, which the arguments of its regions share.
static mp_status_t propagate_items_give_loop(mp_propagator_t *p, mp_op_t *op, uint32_t manual) {
  for (uint32_t r = 0; r < op->num_regions; ++r) {
    for (uint32_t i = 0; i < op->num_results; ++i) {
      p->out->values[op->regions[r]->args[i].id] = p->out->values[op->results[i].id];
    }
    MP_RETURN_IF_ERROR(propagate_items_give_values(p, op->regions[r], manual));
  }
  return NULL;
}

static mp_status_t propagate_items_give_op(mp_propagator_t *p, mp_op_t *op, uint32_t manual) {
  op->id = p->out->num_ops++;
  for (uint32_t i = 0; i < op->num_results; ++i) {
    MP_RETURN_IF_ERROR(propagate_items_give(p, &op->results[i], manual));
  }
  switch (op->code) {
    case MP_OP_WHILE:
      return propagate_items_give_loop(p, op, manual);
    case MP_OP_CASE:
      for (uint32_t r = 0; r < op->num_regions; ++r) {
        MP_RETURN_IF_ERROR(propagate_items_give_values(p, op->regions[r], manual));
      }
      return NULL;
    case MP_OP_SDY_MANUAL_COMPUTATION: {
      const mp_mesh_t *mesh = NULL;
      uint32_t own = 0;
      (void)mp_manual_atoms(&p->out->space, op, &mesh, &own);
      return propagate_items_give_values(p, op->regions[0], manual | own);
    }
    default:
      return NULL;
  }
}

// Gives every value of the block, and of the control flow in it, its first sharding.
static mp_status_t propagate_items_give_values(mp_propagator_t *p, mp_block_t *block,
                                               uint32_t manual) {
  for (uint32_t i = 0; i < block->num_args; ++i) {
    MP_RETURN_IF_ERROR(propagate_items_give(p, &block->args[i], manual));
  }
  for (mp_op_t *op = block->first; op != NULL; op = op->next) {
    MP_RETURN_IF_ERROR(propagate_items_give_op(p, op, manual));
  }
  return NULL;
}

static mp_status_t propagate_items_give_results(mp_propagator_t *p) {
  const mp_func_t *main = p->module->main;
  for (uint32_t i = 0; i < main->num_results; ++i) {
    const mp_type_t *type = main->result_types[i];
    const mp_attr_t *attr = mp_annotation_of(main->result_attrs, i);
    mp_atom_sharding_t **slot = &p->out->results[i];
    if (!mp_type_is_tensor(type)) continue;
    if (attr != NULL && attr->u.sharding->rank == type->rank) {
      bool found = false;
      MP_RETURN_IF_ERROR(
          mp_atom_sharding_import(p->arena, &p->out->space, attr->u.sharding, 0, slot, &found));
      continue;
    }
    const bool is_open = p->options->is_result_open != NULL && p->options->is_result_open[i];
    MP_RETURN_IF_ERROR(mp_atom_sharding_create(p->arena, type->rank, is_open, slot));
  }
  return NULL;
}

typedef struct {
  uint32_t *uses;  // by value id
  uint32_t num_ops;
} counts_t;

static mp_status_t propagate_items_count(void *context, mp_op_t *op) {
  counts_t *counts = context;
  ++counts->num_ops;
  for (uint32_t i = 0; i < op->num_operands; ++i) ++counts->uses[op->operands[i]->id];
  return NULL;
}

// ---- items ----

// Makes the rule of an edge: all operands and the one result are the same value.
static mp_status_t propagate_items_identity_rule(mp_propagator_t *p, const mp_type_t *type,
                                                 uint32_t num_sources, const mp_rule_t **out_rule) {
  mp_rule_t *rule = MP_ARENA_NEW(p->arena, mp_rule_t);
  mp_factor_t *factors = MP_ARENA_ARRAY(p->arena, mp_factor_t, type->rank);
  mp_dim_factors_t *dims = MP_ARENA_ARRAY(p->arena, mp_dim_factors_t, type->rank);
  uint16_t *numbers = MP_ARENA_ARRAY(p->arena, uint16_t, type->rank);
  const mp_dim_factors_t **tensors =
      MP_ARENA_ARRAY(p->arena, const mp_dim_factors_t *, num_sources + 1);
  if (rule == NULL || factors == NULL || dims == NULL || numbers == NULL || tensors == NULL) {
    return mp_status_out_of_memory();
  }
  for (uint32_t d = 0; d < type->rank; ++d) {
    factors[d] = (mp_factor_t){.size = type->dims[d], .kind = MP_FACTOR_PASS};
    numbers[d] = (uint16_t)d;
    dims[d] = (mp_dim_factors_t){1, &numbers[d]};
  }
  for (uint32_t t = 0; t <= num_sources; ++t) tensors[t] = dims;
  *rule = (mp_rule_t){.priority = MP_RULE_PASS_THROUGH,
                      .num_factors = type->rank,
                      .factors = factors,
                      .num_operands = num_sources,
                      .num_results = 1,
                      .tensors = tensors};
  *out_rule = rule;
  return NULL;
}

static mp_atom_sharding_t *propagate_items_of(const mp_propagator_t *p, const mp_value_t *value) {
  return p->out->values[value->id];
}

// Makes an edge; the sources have `target`'s shape.
static mp_status_t propagate_items_make_edge(mp_propagator_t *p, const mp_type_t *type,
                                             mp_atom_sharding_t *const *sources,
                                             uint32_t num_sources, mp_atom_sharding_t *target,
                                             mp_item_t *out_item) {
  *out_item = (mp_item_t){.allowed = MP_FLOW_BOTH};
  MP_RETURN_IF_ERROR(propagate_items_identity_rule(p, type, num_sources, &out_item->rule));
  out_item->tensors = MP_ARENA_ARRAY(p->arena, mp_atom_sharding_t *, num_sources + 1);
  MP_RETURN_IF_NULL(out_item->tensors);
  memcpy(out_item->tensors, sources, num_sources * sizeof(*sources));
  out_item->tensors[num_sources] = target;
  return NULL;
}

static mp_status_t propagate_items_add_edge(mp_propagator_t *p, const mp_type_t *type,
                                            mp_atom_sharding_t *const *sources,
                                            uint32_t num_sources, mp_atom_sharding_t *target) {
  mp_item_t item;
  if (target == NULL || !mp_type_is_static(type)) return NULL;
  MP_RETURN_IF_ERROR(propagate_items_make_edge(p, type, sources, num_sources, target, &item));
  return MP_ARRAY_PUSH(p->arena, &p->items, item);
}

// Whether XLA replaces the op by a reshape: a broadcast that only adds dimensions of one element.
static bool propagate_items_is_unit_broadcast(const mp_op_t *op) {
  int64_t in = 0, out = 0;
  if (op->code != MP_OP_BROADCAST_IN_DIM) return false;
  const bool is_known = mp_type_num_elements(op->operands[0]->type, &in) &&
                        mp_type_num_elements(op->results[0].type, &out);
  if (!is_known || in != out) return false;
  const mp_index_list_t dims = mp_op_ints(op, MP_ATTR_BROADCAST_DIMENSIONS);
  for (uint32_t i = 1; i < dims.count; ++i) {
    if (dims.values[i] <= dims.values[i - 1]) return false;
  }
  return true;
}

// The op's rule, which is NULL if it has none.
static mp_status_t propagate_items_make_rule(mp_propagator_t *p, const mp_op_t *op,
                                             const mp_rule_t **out_rule) {
  MP_RETURN_IF_ERROR(mp_rule_create(p->arena, op, out_rule));
  if (!p->options->is_as_in_xla || !propagate_items_is_unit_broadcast(op)) return NULL;
  mp_rule_t *rule = mp_arena_copy(p->arena, *out_rule, sizeof(**out_rule));
  MP_RETURN_IF_NULL(rule);
  rule->priority = MP_RULE_PASS_THROUGH;
  *out_rule = rule;
  return NULL;
}

static mp_status_t propagate_items_add_rule(mp_propagator_t *p, const mp_op_t *op) {
  mp_item_t item = {.allowed = MP_FLOW_BOTH};
  const uint32_t count = op->num_operands + op->num_results;
  MP_RETURN_IF_ERROR(propagate_items_make_rule(p, op, &item.rule));
  p->out->rules[op->id] = item.rule;
  if (item.rule == NULL) return NULL;
  item.tensors = MP_ARENA_ARRAY(p->arena, mp_atom_sharding_t *, count);
  MP_RETURN_IF_NULL(item.tensors);
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const mp_value_t *operand = op->operands[i];
    item.tensors[i] = propagate_items_of(p, operand);
    const bool is_scalar = mp_type_is_tensor(operand->type) && operand->type->rank == 0;
    item.has_shared_operand |= !is_scalar && p->uses[operand->id] > 1;
  }
  for (uint32_t i = 0; i < op->num_results; ++i) {
    item.tensors[op->num_operands + i] = propagate_items_of(p, &op->results[i]);
  }
  if (op->code == MP_OP_SDY_PROPAGATION_BARRIER) {
    item.allowed = (mp_flow_t)(mp_op_int(op, MP_ATTR_ALLOWED_DIRECTION, 0) & MP_FLOW_BOTH);
    item.has_shared_operand = false;
  }
  return MP_ARRAY_PUSH(p->arena, &p->items, item);
}

static mp_status_t propagate_items_add_block(mp_propagator_t *p, const mp_block_t *block);

static mp_status_t propagate_items_add_loop(mp_propagator_t *p, const mp_op_t *op) {
  const mp_op_t *end = mp_block_terminator(op->regions[1]);
  MP_RETURN_IF_ERROR(propagate_items_add_block(p, op->regions[0]));
  MP_RETURN_IF_ERROR(propagate_items_add_block(p, op->regions[1]));
  for (uint32_t i = 0; i < op->num_results; ++i) {
    mp_atom_sharding_t *sources[2] = {propagate_items_of(p, op->operands[i]),
                                      propagate_items_of(p, end->operands[i])};
    MP_RETURN_IF_ERROR(propagate_items_add_edge(p, op->results[i].type, sources, 2,
                                                propagate_items_of(p, &op->results[i])));
  }
  return NULL;
}

static mp_status_t propagate_items_add_branches(mp_propagator_t *p, const mp_op_t *op) {
  mp_atom_sharding_t **sources = MP_ARENA_ARRAY(p->arena, mp_atom_sharding_t *, op->num_regions);
  MP_RETURN_IF_NULL(sources);
  for (uint32_t r = 0; r < op->num_regions; ++r)
    MP_RETURN_IF_ERROR(propagate_items_add_block(p, op->regions[r]));
  for (uint32_t i = 0; i < op->num_results; ++i) {
    for (uint32_t r = 0; r < op->num_regions; ++r) {
      sources[r] = propagate_items_of(p, mp_block_terminator(op->regions[r])->operands[i]);
    }
    MP_RETURN_IF_ERROR(propagate_items_add_edge(p, op->results[i].type, sources, op->num_regions,
                                                propagate_items_of(p, &op->results[i])));
  }
  return NULL;
}

// Adds the edge between a value outside of a manual region and the same value inside. `annotation`
// is the outer value's sharding, which the region states; of `kind`, only the direction and the two
// sets of manual axes are read.
static mp_status_t propagate_items_add_border(mp_propagator_t *p, const mp_type_t *type,
                                              const mp_border_t *kind,
                                              const mp_sdy_sharding_t *annotation,
                                              mp_atom_sharding_t *source,
                                              mp_atom_sharding_t *target) {
  if (target == NULL || source == NULL || !mp_type_is_static(type)) return NULL;
  mp_item_t item;
  MP_RETURN_IF_ERROR(propagate_items_make_edge(p, type, &source, 1, target, &item));
  mp_border_t *border = MP_ARENA_NEW(p->arena, mp_border_t);
  mp_atoms_t *prefixes = MP_ARENA_ARRAY(p->arena, mp_atoms_t, type->rank);
  if (border == NULL || prefixes == NULL) return mp_status_out_of_memory();
  mp_atom_sharding_t *outer = NULL;
  bool found = false;
  MP_RETURN_IF_ERROR(mp_atom_sharding_import(p->arena, &p->out->space, annotation,
                                             kind->outer_manual, &outer, &found));
  uint32_t used = outer->unreduced;
  for (uint32_t d = 0; d < type->rank && d < outer->rank; ++d) {
    const mp_atoms_t *atoms = &outer->dims[d].atoms;
    used |= mp_atoms_set(atoms);
    for (uint32_t i = 0; i < atoms->count && (kind->manual >> atoms->atoms[i] & 1) != 0; ++i) {
      prefixes[d].atoms[prefixes[d].count++] = atoms->atoms[i];
    }
  }
  *border = *kind;
  border->prefixes = prefixes;
  border->replicated = outer->replicated | (kind->manual & ~used);
  border->unreduced = outer->unreduced;
  border->unreduced_kind = outer->unreduced_kind;
  item.border = border;
  return MP_ARRAY_PUSH(p->arena, &p->items, item);
}

static mp_status_t propagate_items_add_manual(mp_propagator_t *p, const mp_op_t *op) {
  const mp_mesh_t *mesh = NULL;
  uint32_t own = 0;
  (void)mp_manual_atoms(&p->out->space, op, &mesh, &own);
  const mp_block_t *body = op->regions[0];
  const mp_op_t *end = mp_block_terminator(body);
  const mp_sdy_shardings_t *in = &mp_op_attr(op, MP_ATTR_IN_SHARDINGS)->u.shardings;
  const mp_sdy_shardings_t *out = &mp_op_attr(op, MP_ATTR_OUT_SHARDINGS)->u.shardings;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const mp_atom_sharding_t *inner = propagate_items_of(p, &body->args[i]);
    const mp_border_t kind = {
        .is_entry = true, .manual = own, .outer_manual = inner == NULL ? 0 : inner->manual & ~own};
    MP_RETURN_IF_ERROR(propagate_items_add_border(p, body->args[i].type, &kind, &in->shardings[i],
                                                  propagate_items_of(p, op->operands[i]),
                                                  propagate_items_of(p, &body->args[i])));
  }
  MP_RETURN_IF_ERROR(propagate_items_add_block(p, body));
  for (uint32_t i = 0; i < op->num_results && end != NULL && i < end->num_operands; ++i) {
    const mp_atom_sharding_t *outer = propagate_items_of(p, &op->results[i]);
    const mp_border_t kind = {.manual = own, .outer_manual = outer == NULL ? 0 : outer->manual};
    MP_RETURN_IF_ERROR(propagate_items_add_border(p, op->results[i].type, &kind, &out->shardings[i],
                                                  propagate_items_of(p, end->operands[i]),
                                                  propagate_items_of(p, &op->results[i])));
  }
  return NULL;
}

static mp_status_t propagate_items_add_block(mp_propagator_t *p, const mp_block_t *block) {
  const mp_op_t **ops = NULL;
  uint32_t count = 0;
  MP_RETURN_IF_ERROR(mp_propagate_order(p, block, &ops, &count));
  for (uint32_t k = 0; k < count; ++k) {
    const mp_op_t *op = ops[k];
    switch (op->code) {
      case MP_OP_WHILE:
        MP_RETURN_IF_ERROR(propagate_items_add_loop(p, op));
        break;
      case MP_OP_CASE:
        MP_RETURN_IF_ERROR(propagate_items_add_branches(p, op));
        break;
      case MP_OP_SDY_MANUAL_COMPUTATION:
        MP_RETURN_IF_ERROR(propagate_items_add_manual(p, op));
        break;
      case MP_OP_OPTIMIZATION_BARRIER:
        for (uint32_t i = 0; i < op->num_results; ++i) {
          mp_atom_sharding_t *source = propagate_items_of(p, op->operands[i]);
          MP_RETURN_IF_ERROR(propagate_items_add_edge(p, op->results[i].type, &source, 1,
                                                      propagate_items_of(p, &op->results[i])));
        }
        break;
      default:
        MP_RETURN_IF_ERROR(propagate_items_add_rule(p, op));
    }
  }
  return NULL;
}

static mp_status_t propagate_items_make_result_items(mp_propagator_t *p) {
  const mp_func_t *main = p->module->main;
  const mp_op_t *end = mp_block_terminator(main->body);
  p->results = MP_ARENA_ARRAY(p->arena, mp_item_t, main->num_results);
  MP_RETURN_IF_NULL(p->results);
  for (uint32_t i = 0; i < main->num_results && end != NULL && i < end->num_operands; ++i) {
    mp_atom_sharding_t *source = propagate_items_of(p, end->operands[i]);
    if (source == NULL || p->out->results[i] == NULL) continue;
    MP_RETURN_IF_ERROR(propagate_items_make_edge(p, main->result_types[i], &source, 1,
                                                 p->out->results[i], &p->results[i]));
  }
  return NULL;
}

mp_status_t mp_propagate_prepare(mp_propagator_t *p, const mp_import_t *import) {
  mp_propagation_t *out = p->out;
  mp_block_t *body = p->module->main->body;
  counts_t counts = {0};
  out->values = MP_ARENA_ARRAY(p->arena, mp_atom_sharding_t *, (size_t)out->num_values + 1);
  out->results = MP_ARENA_ARRAY(p->arena, mp_atom_sharding_t *, p->module->main->num_results);
  p->given = MP_ARENA_ARRAY(p->arena, mp_atom_sharding_t *, (size_t)out->num_values + 1);
  p->uses = counts.uses = MP_ARENA_ARRAY(p->arena, uint32_t, (size_t)out->num_values + 1);
  if (out->values == NULL || out->results == NULL || p->uses == NULL || p->given == NULL) {
    return mp_status_out_of_memory();
  }
  MP_RETURN_IF_ERROR(mp_block_walk(body, propagate_items_count, &counts));
  out->rules = MP_ARENA_ARRAY(p->arena, const mp_rule_t *, (size_t)counts.num_ops + 1);
  p->states = MP_ARENA_ARRAY(p->arena, uint8_t, (size_t)counts.num_ops + 1);
  if (out->rules == NULL || p->states == NULL) return mp_status_out_of_memory();
  for (uint32_t i = 0; i < import->num_given; ++i) {
    p->given[import->given[i].value->id] = import->given[i].sharding;
  }
  MP_RETURN_IF_ERROR(propagate_items_give_values(p, body, 0));
  MP_RETURN_IF_ERROR(propagate_items_give_results(p));
  MP_RETURN_IF_ERROR(propagate_items_add_block(p, body));
  return propagate_items_make_result_items(p);
}
