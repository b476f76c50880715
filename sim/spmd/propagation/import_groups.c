#include <stdlib.h>

#include "sim/spmd/propagation/import_parts.h"

typedef struct {
  const mp_op_t *op;
  mp_value_t *value;
  int64_t id;
  uint32_t root;  // the number of the first member of its set
  uint32_t next;  // the next member of the set; 0: none
} member_t;

typedef struct {
  member_t *members;  // in program order
  uint32_t *parents;  // a union-find forest over them
  uint32_t *by_id;    // member numbers, sorted by group id
  uint32_t count;
} members_t;

static mp_status_t import_groups_collect(void *context, mp_op_t *op) {
  members_t *m = context;
  if (op->code != MP_OP_SDY_SHARDING_GROUP || !mp_type_is_tensor(op->operands[0]->type)) {
    return NULL;
  }
  m->members[m->count] =
      (member_t){op, op->operands[0], mp_op_int(op, MP_ATTR_GROUP_ID, 0), m->count, 0};
  m->parents[m->count] = m->by_id[m->count] = m->count;
  ++m->count;
  return NULL;
}

static uint32_t import_groups_root_of(const members_t *m, uint32_t i) {
  while (m->parents[i] != i) i = m->parents[i] = m->parents[m->parents[i]];
  return i;
}

// Joins two sets. The root of a set is its first member in program order.
static void import_groups_unite(const members_t *m, uint32_t i, uint32_t j) {
  const uint32_t a = import_groups_root_of(m, i);
  const uint32_t b = import_groups_root_of(m, j);
  m->parents[a > b ? a : b] = a > b ? b : a;
}

static int import_groups_compare_ids(const void *a, const void *b, void *context) {
  const members_t *m = context;
  const uint32_t i = *(const uint32_t *)a;
  const uint32_t j = *(const uint32_t *)b;
  if (m->members[i].id != m->members[j].id) return m->members[i].id < m->members[j].id ? -1 : 1;
  return i < j ? -1 : i > j;
}

// The manual region around an op; NULL: none.
static const mp_op_t *import_groups_region_of(const mp_op_t *op) {
  while (op != NULL && op->code != MP_OP_SDY_MANUAL_COMPUTATION) op = op->parent->parent_op;
  return op;
}

// Checks two members of one group: they must have the same shape and be in the same manual region.
static mp_status_t import_groups_check_pair(const member_t *first, const member_t *second) {
  if (!mp_type_same_shape(first->value->type, second->value->type)) {
    mp_strbuf_t text;
    mp_strbuf_init(&text);
    mp_type_print(second->value->type, &text);
    mp_strbuf_printf(&text, " in sharding group %lld, which has a member of ",
                     (long long)second->id);
    mp_type_print(first->value->type, &text);
    mp_status_t status = mp_strbuf_status(&text);
    if (status == NULL) {
      status = mp_op_error(second->op, MP_INVALID_ARGUMENT, "%s", mp_strbuf_text(&text));
    }
    mp_strbuf_deinit(&text);
    return status;
  }
  if (import_groups_region_of(first->op) == import_groups_region_of(second->op)) return NULL;
  return mp_op_error(second->op, MP_INVALID_ARGUMENT,
                     "sharding group %lld has members inside and outside of a manual region",
                     (long long)second->id);
}

// Puts the members of a group into one set, and all groups of a value too; then links the members
// of each set.
static mp_status_t import_groups_find_sets(mp_importer_t *im, members_t *m) {
  uint32_t *first = MP_ARENA_ARRAY(im->scratch, uint32_t, im->num_values);  // by value id, plus 1
  uint32_t *last = MP_ARENA_ARRAY(im->scratch, uint32_t, m->count);         // by root
  if (first == NULL || last == NULL) return mp_status_out_of_memory();
  qsort_r(m->by_id, m->count, sizeof(*m->by_id), import_groups_compare_ids, m);
  for (uint32_t k = 1; k < m->count; ++k) {
    const uint32_t i = m->by_id[k - 1];
    const uint32_t j = m->by_id[k];
    if (m->members[i].id != m->members[j].id) continue;
    MP_RETURN_IF_ERROR(import_groups_check_pair(&m->members[i], &m->members[j]));
    import_groups_unite(m, i, j);
  }
  for (uint32_t i = 0; i < m->count; ++i) {
    uint32_t *slot = &first[m->members[i].value->id];
    if (*slot == 0) *slot = i + 1;
    import_groups_unite(m, i, *slot - 1);
  }
  for (uint32_t i = 0; i < m->count; ++i) {
    const uint32_t root = m->members[i].root = import_groups_root_of(m, i);
    if (root != i) m->members[last[root]].next = i;
    last[root] = i;
  }
  return NULL;
}

static bool import_groups_says_nothing(const mp_atom_sharding_t *sharding) {
  if (sharding == NULL) return true;
  for (uint32_t d = 0; d < sharding->rank; ++d) {
    if (!sharding->dims[d].is_open || sharding->dims[d].atoms.count != 0) return false;
  }
  return true;
}

static mp_atom_sharding_t *import_groups_given_to(const mp_importer_t *im,
                                                  const mp_value_t *value) {
  const mp_value_t *holder = mp_import_holder(value);
  return holder == NULL ? NULL : im->given[holder->id];
}

// The common sharding of a set: that of the first member that has one, and NULL when none has. If
// another member has a different one, `out_conflict` is set and the sharding is open.
static mp_status_t import_groups_common_sharding(mp_importer_t *im, const members_t *m,
                                                 uint32_t root, bool *out_conflict,
                                                 mp_atom_sharding_t **out_sharding) {
  const mp_atom_sharding_t *with_mesh = NULL;
  mp_atom_sharding_t *common = NULL;
  *out_conflict = false;
  for (uint32_t i = root, at = 0; at == 0 || i != 0; i = m->members[i].next, ++at) {
    mp_atom_sharding_t *own = import_groups_given_to(im, m->members[i].value);
    if (import_groups_says_nothing(own)) continue;
    if (common == NULL) common = own;
    if (with_mesh == NULL && own->mesh != NULL) with_mesh = own;
    *out_conflict |= !mp_atom_sharding_identical(common, own);
  }
  *out_conflict &= with_mesh != NULL;
  *out_sharding = common;
  if (!*out_conflict) return NULL;
  MP_RETURN_IF_ERROR(mp_atom_sharding_create(im->arena, with_mesh->rank, true, out_sharding));
  (*out_sharding)->mesh = with_mesh->mesh;
  (*out_sharding)->manual = with_mesh->manual;
  return NULL;
}

// Adds a sharding to the circle of those that are in `group` already.
static void import_groups_join(mp_atom_sharding_t **group, mp_atom_sharding_t *sharding) {
  if (*group == NULL) {
    *group = sharding;
    sharding->next_in_group = sharding;
  } else if (sharding->next_in_group == NULL) {
    sharding->next_in_group = (*group)->next_in_group;
    (*group)->next_in_group = sharding;
  }
}

static mp_status_t import_groups_sync_set(mp_importer_t *im, const members_t *m, uint32_t root,
                                          bool *is_done) {
  bool conflict = false;
  mp_atom_sharding_t *common = NULL;
  mp_atom_sharding_t *group = NULL;
  MP_RETURN_IF_ERROR(import_groups_common_sharding(im, m, root, &conflict, &common));
  const uint32_t rank = m->members[root].value->type->rank;
  for (uint32_t i = root, at = 0; at == 0 || i != 0; i = m->members[i].next, ++at) {
    mp_value_t *value = m->members[i].value;
    const mp_value_t *holder = mp_import_holder(value);
    if (holder == NULL || value->type->rank != rank || is_done[value->id]) continue;
    is_done[value->id] = true;
    mp_atom_sharding_t *own = im->given[holder->id];
    if (common != NULL) {
      MP_RETURN_IF_ERROR(mp_atom_sharding_copy(im->arena, common, &own));
    } else if (own == NULL) {
      MP_RETURN_IF_ERROR(mp_atom_sharding_create(im->arena, rank, true, &own));
    }
    import_groups_join(&group, own);
    if (!conflict) {
      im->given[holder->id] = own;
      continue;
    }
    mp_op_t *constraint = NULL;
    const mp_loc_t *loc = value->op == NULL ? NULL : value->op->loc;
    MP_RETURN_IF_ERROR(mp_import_add_constraint(im, value, loc, own, &constraint));
    mp_import_replace_uses(im, value, &constraint->results[0], constraint, NULL);
  }
  return NULL;
}

mp_status_t mp_import_groups(mp_importer_t *im) {
  members_t m = {.members = MP_ARENA_ARRAY(im->scratch, member_t, im->num_groups),
                 .parents = MP_ARENA_ARRAY(im->scratch, uint32_t, im->num_groups),
                 .by_id = MP_ARENA_ARRAY(im->scratch, uint32_t, im->num_groups)};
  bool *is_done = MP_ARENA_ARRAY(im->scratch, bool, im->num_values);
  if (m.members == NULL || m.parents == NULL || m.by_id == NULL || is_done == NULL) {
    return mp_status_out_of_memory();
  }
  MP_RETURN_IF_ERROR(mp_block_walk(im->module->main->body, import_groups_collect, &m));
  MP_RETURN_IF_ERROR(import_groups_find_sets(im, &m));
  for (uint32_t i = 0; i < m.count; ++i) {
    if (m.members[i].root == i) MP_RETURN_IF_ERROR(import_groups_sync_set(im, &m, i, is_done));
  }
  return NULL;
}
