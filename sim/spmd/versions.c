#include "sim/spmd/versions.h"

#include "sim/spmd/unreduced.h"

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
  return NULL;
}

static mp_status_t log_value(mp_versions_t *versions, uint32_t id) {
  if (versions->log_size == versions->log_capacity) {
    uint32_t capacity = versions->log_capacity == 0 ? 256 : versions->log_capacity * 2;
    uint32_t *log = MP_ARENA_ARRAY(versions->module->arena, uint32_t, capacity);
    MP_RETURN_IF_NULL(log);
    for (uint32_t i = 0; i < versions->log_size; ++i) log[i] = versions->log[i];
    versions->log = log;
    versions->log_capacity = capacity;
  }
  versions->log[versions->log_size++] = id;
  return NULL;
}

mp_status_t mp_versions_add(mp_versions_t *versions, const mp_value_t *old, const mp_boxes_t *boxes,
                            mp_value_t *value) {
  mp_version_t *version = MP_ARENA_NEW(versions->module->arena, mp_version_t);
  MP_RETURN_IF_NULL(version);
  MP_RETURN_IF_ERROR(log_value(versions, old->id));
  *version = (mp_version_t){boxes, value, versions->versions[old->id]};
  versions->versions[old->id] = version;
  return NULL;
}

void mp_versions_rewind(mp_versions_t *versions, uint32_t mark) {
  while (versions->log_size > mark) {
    uint32_t id = versions->log[--versions->log_size];
    versions->versions[id] = versions->versions[id]->next;
  }
}

static mp_value_t *find_version(const mp_versions_t *versions, const mp_value_t *old,
                                const mp_boxes_t *boxes) {
  for (const mp_version_t *v = versions->versions[old->id]; v != NULL; v = v->next) {
    if (mp_placement_equal(v->boxes, boxes)) return v->value;
  }
  return NULL;
}

bool mp_versions_has(const mp_versions_t *versions, const mp_value_t *old,
                     const mp_boxes_t *boxes) {
  return find_version(versions, old, boxes) != NULL;
}

const mp_boxes_t *mp_versions_sharded(const mp_versions_t *versions, const mp_value_t *old) {
  for (const mp_version_t *v = versions->versions[old->id]; v != NULL; v = v->next) {
    if (v->boxes != NULL && v->boxes->partials == NULL) return v->boxes;
  }
  return NULL;
}

static mp_status_t make_boxes_attr(mp_versions_t *versions, const mp_spmd_scope_t *scope,
                                   const mp_type_t *type, const mp_boxes_t *boxes,
                                   const mp_attr_t **out_attr) {
  mp_attr_t *attr = MP_ARENA_NEW(versions->module->arena, mp_attr_t);
  MP_RETURN_IF_NULL(attr);
  attr->kind = MP_KIND_BOXES;
  attr->u.boxes = boxes;
  if (boxes == NULL) MP_RETURN_IF_ERROR(mp_placement_whole(scope, type, &attr->u.boxes));
  *out_attr = attr;
  return NULL;
}

static mp_status_t emit_exchange(mp_versions_t *versions, const mp_spmd_scope_t *scope,
                                 const mp_type_t *type, const mp_version_t *source,
                                 const mp_boxes_t *target, const mp_loc_t *loc,
                                 mp_value_t **out_value) {
  mp_module_t *module = versions->module;
  mp_named_attr_t attrs[2] = {{.name = MP_ATTR_SOURCE, .text = MP_STR("source")},
                              {.name = MP_ATTR_TARGET, .text = MP_STR("target")}};
  MP_RETURN_IF_ERROR(make_boxes_attr(versions, scope, type, source->boxes, &attrs[0].value));
  MP_RETURN_IF_ERROR(make_boxes_attr(versions, scope, type, target, &attrs[1].value));
  const mp_type_t *result_type = NULL;
  MP_RETURN_IF_ERROR(mp_placement_local_type(module->arena, type, target, &result_type));
  mp_value_t *operand = source->value;
  const mp_op_spec_t spec = {.code = MP_OP_EXCHANGE,
                             .loc = loc,
                             .num_operands = 1,
                             .operands = &operand,
                             .num_results = 1,
                             .result_types = &result_type,
                             .num_attrs = 2,
                             .attrs = attrs};
  mp_op_t *op = NULL;
  MP_RETURN_IF_ERROR(mp_op_create(module, &spec, &op));
  mp_block_append(versions->block, op);
  *out_value = &op->results[0];
  return NULL;
}

static bool is_whole(const mp_boxes_t *boxes) {
  for (uint32_t p = 0; p < boxes->num_partitions; ++p) {
    for (uint32_t d = 0; d < boxes->rank; ++d) {
      if (boxes->sizes[(size_t)p * boxes->rank + d] != boxes->dims[d]) return false;
    }
  }
  return true;
}

// `boxes` without saying that they are partial sums; NULL when they are whole.
static mp_status_t reduced_boxes(mp_versions_t *versions, const mp_boxes_t *boxes,
                                 const mp_boxes_t **out_boxes) {
  *out_boxes = NULL;
  if (is_whole(boxes)) return NULL;
  mp_boxes_t *reduced = mp_arena_copy(versions->module->arena, boxes, sizeof(*reduced));
  MP_RETURN_IF_NULL(reduced);
  reduced->partials = NULL;
  *out_boxes = reduced;
  return NULL;
}

// Adds the version that `partial` sums up to.
static mp_status_t add_sum(mp_versions_t *versions, const mp_value_t *old,
                           const mp_version_t *partial, const mp_loc_t *loc) {
  mp_value_t *value = NULL;
  MP_RETURN_IF_ERROR(mp_unreduced_combine(versions->module, versions->block, partial->boxes,
                                          MP_OP_ADD, partial->value, loc, &value));
  const mp_boxes_t *boxes = NULL;
  MP_RETURN_IF_ERROR(reduced_boxes(versions, partial->boxes, &boxes));
  return mp_versions_add(versions, old, boxes, value);
}

// What an exchange starts from: the whole array, of which a part is a local copy, or any reduced
// version. NULL when all are partial sums.
static const mp_version_t *find_source(const mp_versions_t *versions, const mp_value_t *old) {
  const mp_version_t *source = NULL;
  for (const mp_version_t *v = versions->versions[old->id]; v != NULL; v = v->next) {
    if (v->boxes == NULL) return v;
    if (source == NULL && v->boxes->partials == NULL) source = v;
  }
  return source;
}

// An unreduced version from a reduced one of the same boxes.
static mp_status_t get_terms(mp_versions_t *versions, const mp_spmd_scope_t *scope,
                             const mp_value_t *old, const mp_boxes_t *boxes, const mp_loc_t *loc,
                             mp_value_t **out_value) {
  const mp_boxes_t *reduced = NULL;
  MP_RETURN_IF_ERROR(reduced_boxes(versions, boxes, &reduced));
  mp_value_t *value = NULL;
  MP_RETURN_IF_ERROR(mp_versions_get(versions, scope, old, reduced, loc, &value));
  MP_RETURN_IF_ERROR(
      mp_unreduced_split(versions->module, versions->block, boxes, value, loc, out_value));
  return mp_versions_add(versions, old, boxes, *out_value);
}

mp_status_t mp_versions_get(mp_versions_t *versions, const mp_spmd_scope_t *scope,
                            const mp_value_t *old, const mp_boxes_t *boxes, const mp_loc_t *loc,
                            mp_value_t **out_value) {
  if (versions->versions[old->id] == NULL) {
    return mp_status_make(MP_INTERNAL, "a value is used before it was partitioned");
  }
  *out_value = find_version(versions, old, boxes);
  if (*out_value != NULL) return NULL;
  if (boxes != NULL && boxes->partials != NULL) {
    return get_terms(versions, scope, old, boxes, loc, out_value);
  }
  if (find_source(versions, old) == NULL) {
    MP_RETURN_IF_ERROR(add_sum(versions, old, versions->versions[old->id], loc));
    *out_value = find_version(versions, old, boxes);
    if (*out_value != NULL) return NULL;
  }
  mp_value_t *value = NULL;
  MP_RETURN_IF_ERROR(
      emit_exchange(versions, scope, old->type, find_source(versions, old), boxes, loc, &value));
  MP_RETURN_IF_ERROR(mp_versions_add(versions, old, boxes, value));
  *out_value = value;
  return NULL;
}
