#include "sim/spmd/partition/versions.h"

#include "sim/base/assert.h"
#include "sim/spmd/build/unreduced.h"
#include "sim/spmd/reshard/reshard_steps.h"

#ifdef MINIPOD_ASSERTS
// Whether an array has the size that it must have: in each dimension that of the largest part.
static bool versions_fits(const mp_type_t *whole, const mp_boxes_t *boxes, const mp_type_t *local) {
  if (boxes == NULL || !mp_type_is_tensor(whole)) return mp_type_equal(whole, local);
  if (local->dtype != whole->dtype || local->rank != whole->rank) return false;
  for (uint32_t d = 0; d < whole->rank; ++d) {
    int64_t largest = 0;
    for (uint32_t p = 0; p < boxes->num_partitions; ++p) {
      const int64_t size = boxes->sizes[(size_t)p * boxes->rank + d];
      if (size > largest) largest = size;
    }
    if (local->dims[d] != largest) return false;
  }
  return true;
}
#else
bool versions_fits(const mp_type_t *whole, const mp_boxes_t *boxes, const mp_type_t *local);
#endif

mp_status_t mp_versions_create(mp_module_t *module, mp_versions_t *out_versions) {
  uint32_t count = mp_module_number_values(module);
  *out_versions = (mp_versions_t){
      .module = module,
      .num_values = count,
      .versions = MP_ARENA_ARRAY(module->arena, mp_version_t *, (size_t)count + 1),
      .preferred = MP_ARENA_ARRAY(module->arena, const mp_boxes_t *, (size_t)count + 1),
  };
  if (out_versions->versions == NULL || out_versions->preferred == NULL) {
    return mp_status_out_of_memory();
  }
  return mp_resharder_create(module, &out_versions->resharder);
}

mp_status_t mp_versions_add(mp_versions_t *versions, const mp_value_t *old, const mp_boxes_t *boxes,
                            mp_value_t *value) {
  MP_ASSERT(old->id < versions->num_values);
  MP_ASSERT(versions_fits(old->type, boxes, value->type));
  mp_version_t *version = MP_ARENA_NEW(versions->module->arena, mp_version_t);
  MP_RETURN_IF_NULL(version);
  MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(versions->module->arena, &versions->log, old->id));
  *version = (mp_version_t){boxes, value, versions->versions[old->id]};
  versions->versions[old->id] = version;
  return NULL;
}

void mp_versions_rewind(mp_versions_t *versions, uint32_t mark) {
  while (versions->log.count > mark) {
    uint32_t id = versions->log.items[--versions->log.count];
    versions->versions[id] = versions->versions[id]->next;
  }
}

static mp_value_t *versions_find_version(const mp_versions_t *versions, const mp_value_t *old,
                                         const mp_boxes_t *boxes) {
  for (const mp_version_t *v = versions->versions[old->id]; v != NULL; v = v->next) {
    if (mp_placement_equal(v->boxes, boxes)) return v->value;
  }
  return NULL;
}

bool mp_versions_has(const mp_versions_t *versions, const mp_value_t *old,
                     const mp_boxes_t *boxes) {
  return versions_find_version(versions, old, boxes) != NULL;
}

const mp_boxes_t *mp_versions_sharded(const mp_versions_t *versions, const mp_value_t *old) {
  for (const mp_version_t *v = versions->versions[old->id]; v != NULL; v = v->next) {
    if (v->boxes != NULL && v->boxes->partials == NULL) return v->boxes;
  }
  return NULL;
}

static bool versions_is_whole(const mp_boxes_t *boxes) {
  for (uint32_t p = 0; p < boxes->num_partitions; ++p) {
    for (uint32_t d = 0; d < boxes->rank; ++d) {
      if (boxes->sizes[(size_t)p * boxes->rank + d] != boxes->dims[d]) return false;
    }
  }
  return true;
}

// The same boxes for the sum instead of its terms; NULL when they are whole.
static mp_status_t versions_reduced_boxes(const mp_spmd_scope_t *scope, const mp_boxes_t *boxes,
                                          const mp_boxes_t **out_boxes) {
  *out_boxes = NULL;
  if (versions_is_whole(boxes)) return NULL;
  mp_boxes_t reduced = *boxes;
  reduced.partials = NULL;
  return mp_spmd_pool_boxes(scope->pool, &reduced, out_boxes);
}

// ---- where collectives come from ----

// Whether the terms of the result are those of the first operand.
static bool versions_passes_terms(const mp_op_t *op) {
  return mp_op_has(op, MP_OP_TRAIT_MOVES) || op->code == MP_OP_CONVERT || op->code == MP_OP_NEGATE;
}

// A sum gets the location of the op that computes its terms, such as the matmul of a layer's
// gradient: the op that first needs the sum may be an optimizer's, for all layers.
static const mp_loc_t *versions_loc_of_terms(const mp_value_t *old, const mp_loc_t *loc) {
  const mp_op_t *op = old->op;
  while (op != NULL && versions_passes_terms(op)) op = op->operands[0]->op;
  return op == NULL || op->loc == NULL ? loc : op->loc;
}

static bool versions_is_known(const mp_loc_t *loc) {
  const mp_loc_found_t found = mp_loc_find(loc);
  return found.name != NULL || found.file != NULL;
}

// The location of the ops that make one version from another. Ends of regions and of main have
// none: a gather for them gets the location of the op that computes the value.
static const mp_loc_t *versions_loc(const mp_value_t *old, const mp_boxes_t *from,
                                    const mp_loc_t *loc) {
  if (from != NULL && from->partials != NULL) return versions_loc_of_terms(old, loc);
  return versions_is_known(loc) || old->op == NULL ? loc : old->op->loc;
}

// Makes terms from terms over more partitions, by combining those that need not stay apart.
static mp_status_t versions_combine_some(mp_versions_t *versions, const mp_value_t *old,
                                         const mp_boxes_t *boxes, const mp_loc_t *loc,
                                         mp_value_t **out_value, bool *out_found) {
  *out_found = false;
  for (const mp_version_t *v = versions->versions[old->id]; v != NULL; v = v->next) {
    if (v->boxes == NULL || v->boxes->partials == NULL) continue;
    if (v->boxes->unreduced_kind != boxes->unreduced_kind) continue;
    mp_reshard_plan_t plan;
    MP_RETURN_IF_ERROR(mp_reshard_plan(old->type, v->boxes, boxes, &plan, out_found));
    if (!*out_found) continue;
    return mp_reshard_append_steps(
        &(mp_append_at_t){versions->module, versions->block, versions_loc(old, v->boxes, loc)},
        old->type, &plan, v->value, out_value);
  }
  return NULL;
}

// Makes a version of terms: from terms over more partitions; from parts, each of which is a term of
// a sum with zeros around it; or else from the version of the sum with the same boxes.
static mp_status_t versions_get_terms(mp_versions_t *versions, const mp_spmd_scope_t *scope,
                                      const mp_value_t *old, const mp_boxes_t *boxes,
                                      const mp_loc_t *loc, mp_value_t **out_value) {
  bool is_found = false;
  MP_RETURN_IF_ERROR(versions_combine_some(versions, old, boxes, loc, out_value, &is_found));
  if (is_found) return mp_versions_add(versions, old, boxes, *out_value);
  const bool is_sum = boxes->unreduced_kind == MP_UNREDUCED_SUM;
  for (const mp_version_t *v = versions->versions[old->id]; v != NULL && is_sum; v = v->next) {
    mp_reshard_terms_t terms;
    if (!mp_reshard_find_terms(v->boxes, boxes, &terms)) continue;
    MP_RETURN_IF_ERROR(
        mp_reshard_append_terms(&(mp_append_at_t){versions->module, versions->block, loc},
                                old->type, &terms, v->value, out_value));
    return mp_versions_add(versions, old, boxes, *out_value);
  }
  const mp_boxes_t *reduced = NULL;
  MP_RETURN_IF_ERROR(versions_reduced_boxes(scope, boxes, &reduced));
  mp_value_t *value = NULL;
  MP_RETURN_IF_ERROR(mp_versions_get(versions, scope, old, reduced, loc, &value));
  MP_RETURN_IF_ERROR(mp_unreduced_split(&(mp_append_at_t){versions->module, versions->block, loc},
                                        boxes, value, out_value));
  return mp_versions_add(versions, old, boxes, *out_value);
}

// Finds the version from which the least must be sent; among equal ones the whole one, or else the
// newest.
static mp_status_t versions_find_source(mp_versions_t *versions, const mp_value_t *old,
                                        const mp_boxes_t *boxes, const mp_version_t **out_source) {
  double least = 0;
  *out_source = NULL;
  for (const mp_version_t *v = versions->versions[old->id]; v != NULL; v = v->next) {
    double cost = 0;
    MP_RETURN_IF_ERROR(mp_reshard_cost(versions->resharder, old->type, v->boxes, boxes, &cost));
    if (*out_source != NULL && (cost > least || (cost == least && v->boxes != NULL))) continue;
    *out_source = v;
    least = cost;
  }
  return NULL;
}

mp_status_t mp_versions_get_excerpt(mp_versions_t *versions, const mp_spmd_scope_t *scope,
                                    const mp_value_t *old, const mp_boxes_t *boxes,
                                    const mp_loc_t *loc, mp_value_t **out_value) {
  if (versions->versions[old->id] == NULL) {
    return mp_status_make(MP_INTERNAL, "a value is used before it was partitioned");
  }
  *out_value = versions_find_version(versions, old, boxes);
  if (*out_value != NULL) return NULL;
  const mp_version_t *source = NULL;
  MP_RETURN_IF_ERROR(versions_find_source(versions, old, boxes, &source));
  MP_ASSERT(source != NULL);
  const mp_reshard_request_t request = {
      .at = {versions->module, versions->block, versions_loc(old, source->boxes, loc)},
      .scope = scope,
      .type = old->type,
      .from = source->boxes,
      .to = boxes,
      .value = source->value};
  return mp_reshard(versions->resharder, &request, out_value);
}

mp_status_t mp_versions_get(mp_versions_t *versions, const mp_spmd_scope_t *scope,
                            const mp_value_t *old, const mp_boxes_t *boxes, const mp_loc_t *loc,
                            mp_value_t **out_value) {
  if (boxes != NULL && boxes->partials != NULL) {
    *out_value = versions_find_version(versions, old, boxes);
    if (*out_value != NULL) return NULL;
    return versions_get_terms(versions, scope, old, boxes, loc, out_value);
  }
  mp_value_t *value = NULL;
  MP_RETURN_IF_ERROR(mp_versions_get_excerpt(versions, scope, old, boxes, loc, &value));
  *out_value = value;
  if (versions_find_version(versions, old, boxes) != NULL) return NULL;
  return mp_versions_add(versions, old, boxes, value);
}
