#include "sim/spmd/propagation/import_parts.h"
#include "sim/spmd/sharding/annotations.h"

// Whether a value equals another value: one that a loop carries, or that a branch or a barrier
// returns.
static bool import_constraints_is_edge_target(const mp_value_t *value) {
  const mp_op_t *op = value->op != NULL ? value->op : value->block->parent_op;
  if (op == NULL || !mp_type_is_static(value->type)) return false;
  return mp_op_has(op, MP_OP_TRAIT_FLOW);
}

// The sharding that a use requests: that of a constraint, or a manual region's in_sharding.
static mp_status_t import_constraints_asked_by(mp_importer_t *im, const mp_op_t *op,
                                               uint32_t operand,
                                               mp_atom_sharding_t **out_sharding) {
  *out_sharding = NULL;
  if (op->code == MP_OP_SDY_SHARDING_CONSTRAINT) {
    *out_sharding = im->given[op->results[0].id];
  } else if (op->code == MP_OP_SDY_MANUAL_COMPUTATION) {
    // As seen from outside of the region: the manual axes count, and those that are not used are
    // replicated.
    const mp_value_t *arg = &op->regions[0]->args[operand];
    if (im->given[arg->id] == NULL) return NULL;
    const mp_mesh_t *mesh = NULL;
    uint32_t own = 0;
    bool found = mp_manual_atoms(im->space, op, &mesh, &own);
    const uint32_t outer = im->given[arg->id]->manual & ~own;
    const mp_attr_t *in = mp_op_attr(op, MP_ATTR_IN_SHARDINGS);
    MP_RETURN_IF_ERROR(mp_atom_sharding_import(
        im->scratch, im->space, &in->u.shardings.shardings[operand], outer, out_sharding, &found));
    mp_import_fix_unused(*out_sharding, mesh, own);
  }
  return NULL;
}

static bool import_constraints_is_constraining(const mp_op_t *op) {
  return op->code == MP_OP_SDY_SHARDING_CONSTRAINT || op->code == MP_OP_SDY_MANUAL_COMPUTATION;
}

static mp_status_t import_constraints_should_apply(mp_importer_t *im, const mp_value_t *input,
                                                   const mp_atom_sharding_t *sharding,
                                                   bool *out_should) {
  *out_should = false;
  const mp_value_t *holder = mp_import_holder(input);
  if (holder == NULL || im->given[holder->id] != NULL || sharding == NULL) return NULL;
  if (im->is_torn[input->id]) return NULL;
  for (uint32_t d = 0; d < sharding->rank; ++d) {
    if (sharding->dims[d].is_open) return NULL;
  }
  for (const mp_use_t *use = im->uses[input->id]; use != NULL; use = use->next) {
    if (!import_constraints_is_constraining(use->op)) continue;
    mp_atom_sharding_t *other = NULL;
    MP_RETURN_IF_ERROR(import_constraints_asked_by(im, use->op, use->operand, &other));
    if (other == NULL || !mp_atom_sharding_identical(other, sharding)) {
      im->is_torn[input->id] = true;
      return NULL;
    }
  }
  *out_should = true;
  return NULL;
}

void mp_import_replace_uses(mp_importer_t *im, mp_value_t *from, mp_value_t *to,
                            const mp_op_t *except, const mp_op_t *after) {
  mp_use_t **link = &im->uses[from->id];
  while (*link != NULL) {
    mp_use_t *use = *link;
    const bool is_behind =
        after == NULL || (use->op->parent == after->parent && use->op->id > after->id &&
                          !(use->op->next == NULL && use->op->parent->parent_func != NULL));
    if (use->op == except || !is_behind) {
      link = &use->next;
      continue;
    }
    use->op->operands[use->operand] = to;
    *link = use->next;
    use->next = im->uses[to->id];
    im->uses[to->id] = use;
  }
}

static void import_constraints_insert_after_value(mp_value_t *value, mp_op_t *op) {
  mp_block_t *block = value->op != NULL ? value->op->parent : value->block;
  mp_op_t *next = value->op != NULL ? value->op->next : block->first;
  if (next != NULL) {
    mp_block_insert_before(next, op);
  } else {
    mp_block_append(block, op);
  }
  op->id = value->op != NULL ? value->op->id : 0;
}

mp_status_t mp_import_add_constraint(mp_importer_t *im, mp_value_t *input, const mp_loc_t *loc,
                                     mp_atom_sharding_t *sharding, mp_op_t **out_op) {
  mp_sdy_sharding_t exported;
  const mp_attr_t *attr = NULL;
  mp_use_t *use = MP_ARENA_NEW(im->scratch, mp_use_t);
  MP_RETURN_IF_NULL(use);
  MP_RETURN_IF_ERROR(mp_atom_sharding_export(im->arena, im->space, sharding, &exported));
  MP_RETURN_IF_ERROR(mp_annotation_make(im->arena, &exported, &attr));
  const mp_named_attr_t named = {MP_ATTR_SHARDING, MP_STR("sharding"), attr};
  const mp_op_spec_t spec = {.code = MP_OP_SDY_SHARDING_CONSTRAINT,
                             .loc = loc,
                             .num_operands = 1,
                             .operands = &input,
                             .num_results = 1,
                             .result_types = &input->type,
                             .num_attrs = 1,
                             .attrs = &named};
  MP_RETURN_IF_ERROR(mp_op_create(im->module, &spec, out_op));
  mp_value_t *result = &(*out_op)->results[0];
  result->id = im->num_values++;
  im->values[result->id] = result;
  im->given[result->id] = sharding;
  *use = (mp_use_t){*out_op, 0, im->uses[input->id]};
  im->uses[input->id] = use;
  import_constraints_insert_after_value(input, *out_op);
  return NULL;
}

// Gives `input` the sharding that its user `op` requests.
static mp_status_t import_constraints_apply(mp_importer_t *im, mp_op_t *op, mp_value_t *input,
                                            mp_atom_sharding_t *sharding) {
  bool should = false;
  MP_RETURN_IF_ERROR(import_constraints_should_apply(im, input, sharding, &should));
  if (!should) return NULL;
  const mp_value_t *holder = mp_import_holder(input);
  if (!import_constraints_is_edge_target(input)) {
    return mp_atom_sharding_copy(im->arena, sharding, &im->given[holder->id]);
  }
  mp_op_t *constraint = op;
  if (op->code == MP_OP_SDY_SHARDING_CONSTRAINT) {
    mp_op_unlink(op);
    import_constraints_insert_after_value(input, op);
  } else {
    mp_atom_sharding_t *own = NULL;
    MP_RETURN_IF_ERROR(mp_atom_sharding_copy(im->arena, sharding, &own));
    MP_RETURN_IF_ERROR(mp_import_add_constraint(im, input, op->loc, own, &constraint));
  }
  mp_import_replace_uses(im, input, &constraint->results[0], constraint, NULL);
  if (sharding->unreduced == 0) return NULL;
  // Unreduced axes do not propagate, so the value itself must have them.
  mp_atom_sharding_t **slot = &im->given[holder->id];
  MP_RETURN_IF_ERROR(mp_atom_sharding_create(im->arena, input->type->rank, true, slot));
  (*slot)->mesh = sharding->mesh;
  (*slot)->manual = sharding->manual;
  (*slot)->unreduced = sharding->unreduced;
  (*slot)->unreduced_kind = sharding->unreduced_kind;
  return NULL;
}

static bool import_constraints_has_one_use(const mp_importer_t *im, const mp_value_t *value) {
  return im->uses[value->id] != NULL && im->uses[value->id]->next == NULL;
}

static bool import_constraints_is_constrained(const mp_importer_t *im, const mp_value_t *value,
                                              const mp_op_t *but) {
  for (const mp_use_t *use = im->uses[value->id]; use != NULL; use = use->next) {
    if (use->op != but && import_constraints_is_constraining(use->op)) return true;
  }
  return false;
}

// The last one of a chain of constraints that begins with `head`. NULL when the chain does not
// decide for its operand, because another constraint does or because a value within it has other
// users.
static mp_op_t *import_constraints_chain_end(const mp_importer_t *im, mp_op_t *head) {
  const mp_value_t *input = head->operands[0];
  if (input->op != NULL && input->op->code == MP_OP_SDY_SHARDING_CONSTRAINT) return NULL;
  const mp_value_t *holder = mp_import_holder(input);
  if (holder != NULL && im->given[holder->id] != NULL) return NULL;
  if (import_constraints_is_constrained(im, input, head)) return NULL;
  mp_op_t *end = head;
  while (import_constraints_has_one_use(im, &end->results[0])) {
    mp_op_t *user = im->uses[end->results[0].id]->op;
    if (user->code != MP_OP_SDY_SHARDING_CONSTRAINT) break;
    end = user;
  }
  return end == head || import_constraints_is_constrained(im, &end->results[0], NULL) ? NULL : end;
}

static mp_status_t import_constraints_apply_op(mp_importer_t *im, mp_op_t *op) {
  if (op->code == MP_OP_SDY_SHARDING_CONSTRAINT) {
    mp_op_t *end = import_constraints_chain_end(im, op);
    if (end != NULL) mp_import_replace_uses(im, op->operands[0], &end->results[0], op, end);
    return import_constraints_apply(im, op, op->operands[0], im->given[op->results[0].id]);
  }
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    mp_atom_sharding_t *sharding = NULL;
    MP_RETURN_IF_ERROR(import_constraints_asked_by(im, op, i, &sharding));
    MP_RETURN_IF_ERROR(import_constraints_apply(im, op, op->operands[i], sharding));
  }
  return NULL;
}

// Applies the constraints of a block, those in an op's regions before the op itself.
static mp_status_t import_constraints_apply_block(mp_importer_t *im, mp_block_t *block) {
  for (mp_op_t *op = block->first, *next = NULL; op != NULL; op = next) {
    next = op->next;
    for (uint32_t r = 0; r < op->num_regions; ++r) {
      MP_RETURN_IF_ERROR(import_constraints_apply_block(im, op->regions[r]));
    }
    if (import_constraints_is_constraining(op))
      MP_RETURN_IF_ERROR(import_constraints_apply_op(im, op));
  }
  return NULL;
}

mp_status_t mp_import_constraints(mp_importer_t *im) {
  return import_constraints_apply_block(im, im->module->main->body);
}
