#include "sim/spmd/propagation/propagate.h"

#include <stdlib.h>

#include "sim/base/assert.h"
#include "sim/base/containers/hash_map.h"
#include "sim/base/hash.h"
#include "sim/ir/mesh.h"
#include "sim/spmd/propagation/propagate_parts.h"
#include "sim/spmd/propagation/split_constants.h"
#include "sim/spmd/sharding/annotations.h"

enum { MP_NUM_LEVELS = 5 };

// ---- meshes ----

static bool propagate_is_empty(const mp_mesh_t *mesh) {
  return mesh->num_axes == 0 && mesh->num_device_ids == 0;
}

// The mesh that all shardings of an item have in common. NULL when none has one, when they differ,
// or when it has a single device, which only says where something runs.
static const mp_mesh_t *propagate_common_mesh(mp_atom_sharding_t *const *tensors, uint32_t count) {
  const mp_mesh_t *common = NULL;
  for (uint32_t t = 0; t < count; ++t) {
    const mp_mesh_t *mesh = tensors[t] == NULL ? NULL : tensors[t]->mesh;
    if (mesh == NULL || mesh == common) continue;
    if (common == NULL || propagate_is_empty(common)) {
      common = mesh;
    } else if (!propagate_is_empty(mesh) && !mp_mesh_same_devices(common, mesh)) {
      return NULL;
    }
  }
  const bool is_maximal = common != NULL && common->num_axes == 0 && common->num_device_ids == 1;
  return is_maximal ? NULL : common;
}

// ---- borders of manual regions ----

// Converts the sharding of an edge's target to its form on the source's side of the border.
static mp_status_t propagate_cross(mp_arena_t *scratch, const mp_border_t *border,
                                   const mp_atom_sharding_t *target,
                                   mp_atom_sharding_t **out_seen) {
  mp_atom_sharding_t *seen = NULL;
  MP_RETURN_IF_ERROR(mp_atom_sharding_copy(scratch, target, &seen));
  for (uint32_t d = 0; d < seen->rank; ++d) {
    mp_atoms_t *atoms = &seen->dims[d].atoms;
    mp_atoms_t joined = {0};
    if (border->is_entry) joined = border->prefixes[d];
    for (uint32_t i = 0; i < atoms->count && joined.count < MP_MAX_ATOMS; ++i) {
      const bool is_manual = (border->manual >> atoms->atoms[i] & 1) != 0;
      if (!is_manual) joined.atoms[joined.count++] = atoms->atoms[i];
    }
    *atoms = joined;
  }
  if (border->is_entry) {
    seen->manual = border->outer_manual;
    seen->replicated = border->replicated;
    seen->unreduced = border->unreduced;
    seen->unreduced_kind = border->unreduced_kind;
  } else {
    seen->manual |= border->manual;
    seen->replicated &= ~border->manual;
    seen->unreduced &= ~border->manual;
  }
  *out_seen = seen;
  return NULL;
}

// Converts it back.
static void propagate_cross_back(const mp_border_t *border, const mp_atom_sharding_t *seen,
                                 mp_atom_sharding_t *target) {
  for (uint32_t d = 0; d < target->rank; ++d) {
    mp_atoms_t joined = {0};
    if (!border->is_entry) joined = border->prefixes[d];
    const mp_atoms_t *atoms = &seen->dims[d].atoms;
    for (uint32_t i = 0; i < atoms->count && joined.count < MP_MAX_ATOMS; ++i) {
      const bool is_manual = (border->manual >> atoms->atoms[i] & 1) != 0;
      if (!is_manual) joined.atoms[joined.count++] = atoms->atoms[i];
    }
    target->dims[d].atoms = joined;
  }
}

// ---- the fixed point ----

// An item that has a certain sharding among its tensors.
typedef struct user_s {
  uint32_t item;
  bool is_source;  // the sharding is that of a result of the item
  struct user_s *next;
} user_t;

typedef struct {
  uint64_t hash;  // of the pointer to the sharding
  user_t *users;  // the last item first
} users_t;
typedef MP_HASH_MAP(users_t) user_table_t;

// A stack of items to visit. Items that a change reaches come before those that already wait.
typedef struct {
  mp_propagator_t *p;
  user_table_t users;
  uint32_t *stack;
  uint32_t size;
  uint32_t level;
  // The steps that a level may take. Shardings only grow, so that a level ends by itself; but
  // members of a group within one op may take from each other what they have gained, and so never
  // end.
  uint64_t max_steps;
} rounds_t;

static void propagate_push(rounds_t *rounds, uint32_t number) {
  if (rounds->p->items.items[number].is_queued) return;
  rounds->p->items.items[number].is_queued = true;
  rounds->stack[rounds->size++] = number;
}

static uint32_t propagate_num_tensors(const mp_item_t *item) {
  return item->rule->num_operands + item->rule->num_results;
}

static mp_status_t propagate_add_user(mp_propagator_t *p, user_table_t *table,
                                      const mp_atom_sharding_t *sharding, user_t *user) {
  const users_t first = {mp_hash_pointer(sharding), user};
  users_t *known;
  user->next = NULL;
  if (MP_HASH_MAP_GET(table, first.hash, known) == NULL) {
    return MP_HASH_MAP_ADD(p->arena, table, &first);
  }
  user->next = known->users;
  known->users = user;
  return NULL;
}

static mp_status_t propagate_index_users(mp_propagator_t *p, user_table_t *out_table) {
  size_t entries = 0;
  for (uint32_t i = 0; i < p->items.count; ++i)
    entries += propagate_num_tensors(&p->items.items[i]);
  user_table_t table = {0};
  user_t *users = MP_ARENA_ARRAY(p->arena, user_t, entries);
  MP_RETURN_IF_NULL(users);
  for (uint32_t i = 0; i < p->items.count; ++i) {
    const mp_item_t *item = &p->items.items[i];
    for (uint32_t t = 0; t < propagate_num_tensors(item); ++t) {
      if (item->tensors[t] == NULL) continue;
      *users = (user_t){.item = i, .is_source = t >= item->rule->num_operands};
      MP_RETURN_IF_ERROR(propagate_add_user(p, &table, item->tensors[t], users++));
    }
  }
  *out_table = table;
  return NULL;
}

// Pushes all items with the changed sharding: its first user will be visited next, and the op that
// computes the value last.
static void propagate_push_users(rounds_t *rounds, const mp_atom_sharding_t *sharding,
                                 uint32_t self) {
  const users_t *known;
  MP_HASH_MAP_GET(&rounds->users, mp_hash_pointer(sharding), known);
  const user_t *list = known != NULL ? known->users : NULL;
  for (const user_t *user = list; user != NULL; user = user->next) {
    if (user->is_source && user->item != self) propagate_push(rounds, user->item);
  }
  for (const user_t *user = list; user != NULL; user = user->next) {
    if (!user->is_source && user->item != self) propagate_push(rounds, user->item);
  }
}

// Makes a step along one item; out_changed[t] says which tensors have changed.
static mp_status_t propagate_step(mp_propagator_t *p, const mp_item_t *item, uint32_t level,
                                  const bool **out_changed) {
  const uint32_t count = propagate_num_tensors(item);
  *out_changed = NULL;
  const mp_mesh_t *mesh = propagate_common_mesh(item->tensors, count);
  if (mesh == NULL) return NULL;
  mp_arena_reset(p->scratch);
  bool *changed = MP_ARENA_ARRAY(p->scratch, bool, count);
  mp_atom_sharding_t **tensors = item->tensors;
  MP_RETURN_IF_NULL(changed);
  if (item->border != NULL) {
    tensors = mp_arena_copy(p->scratch, item->tensors, count * sizeof(*tensors));
    MP_RETURN_IF_NULL(tensors);
    MP_RETURN_IF_ERROR(
        propagate_cross(p->scratch, item->border, item->tensors[count - 1], &tensors[count - 1]));
  }
  const mp_step_mode_t mode = {level, item->has_shared_operand, item->allowed, mesh};
  MP_RETURN_IF_ERROR(
      mp_propagate_step(p->scratch, &p->out->space, item->rule, &mode, tensors, changed));
  if (item->border != NULL && changed[count - 1]) {
    propagate_cross_back(item->border, tensors[count - 1], item->tensors[count - 1]);
    item->tensors[count - 1]->mesh = mesh;
    mp_atom_sharding_share(item->tensors[count - 1]);
  }
  bool any = false;
  bool of_result = false;
  for (uint32_t t = 0; t < count; ++t) {
    any |= changed[t];
    of_result |= changed[t] && t >= item->rule->num_operands;
  }
  // If one result of an op has a mesh, the others get it too.
  for (uint32_t t = item->rule->num_operands; of_result && t < count; ++t) {
    if (item->tensors[t] != NULL && item->tensors[t]->mesh == NULL) item->tensors[t]->mesh = mesh;
  }
  if (any) *out_changed = changed;
  return NULL;
}

// Propagates between main's results and the values that it returns.
static mp_status_t propagate_flow_results(mp_propagator_t *p) {
  for (uint32_t i = 0; i < p->module->main->num_results; ++i) {
    const bool *changed = NULL;
    if (p->results[i].rule == NULL) continue;
    MP_RETURN_IF_ERROR(propagate_step(p, &p->results[i], MP_NUM_LEVELS - 1, &changed));
  }
  return NULL;
}

static mp_status_t propagate_run_level(rounds_t *rounds) {
  mp_propagator_t *p = rounds->p;
  MP_RETURN_IF_ERROR(propagate_flow_results(p));
  for (uint32_t i = p->items.count; i-- > 0;) propagate_push(rounds, i);
  for (uint64_t steps = 0; rounds->size != 0; ++steps) {
    const uint32_t number = rounds->stack[--rounds->size];
    mp_item_t *item = &p->items.items[number];
    const bool *changed = NULL;
    MP_ASSERT(item->is_queued);
    item->is_queued = false;
    if (steps >= rounds->max_steps) continue;  // the stack is only emptied
    MP_RETURN_IF_ERROR(propagate_step(p, item, rounds->level, &changed));
    for (uint32_t t = 0; changed != NULL && t < propagate_num_tensors(item); ++t) {
      if (!changed[t]) continue;
      propagate_push_users(rounds, item->tensors[t], number);
      const mp_atom_sharding_t *other = item->tensors[t]->next_in_group;
      for (; other != NULL && other != item->tensors[t]; other = other->next_in_group) {
        propagate_push_users(rounds, other, number);
      }
    }
  }
  return propagate_flow_results(p);
}

// ---- the user's priorities ----

// A dimension whose sharding only counts from a later round on.
typedef struct {
  mp_atom_sharding_t *sharding;
  uint32_t dim;
  mp_dim_atoms_t original;
} delayed_t;

typedef MP_ARRAY(delayed_t) delays_t;  // sorted by priority

// Delays the dimensions of a sharding that have a priority: until its round, such a dimension
// counts as not sharded, and the value cannot use its axes elsewhere.
static mp_status_t propagate_delay(mp_propagator_t *p, mp_atom_sharding_t *sharding,
                                   delays_t *delays) {
  for (uint32_t d = 0; sharding != NULL && d < sharding->rank; ++d) {
    mp_dim_atoms_t *dim = &sharding->dims[d];
    if (dim->priority == 0) continue;
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(p->arena, delays, (delayed_t){sharding, d, *dim}));
    sharding->replicated |= mp_atoms_set(&dim->atoms);
    *dim = (mp_dim_atoms_t){.is_open = false};
  }
  return NULL;
}

static int propagate_by_priority(const void *a, const void *b) {
  const int64_t x = ((const delayed_t *)a)->original.priority;
  const int64_t y = ((const delayed_t *)b)->original.priority;
  return x < y ? -1 : x > y;
}

// Delays all dimensions with a priority, except those of loop-carried values and of borders of
// manual regions.
static mp_status_t propagate_delay_all(mp_propagator_t *p, const mp_import_t *import,
                                       delays_t *delays) {
  for (uint32_t i = 0; i < import->num_given; ++i) {
    const mp_value_t *value = import->given[i].value;
    const mp_op_t *op = value->op != NULL ? value->op : value->block->parent_op;
    const bool is_edge = op != NULL && mp_op_has(op, MP_OP_TRAIT_FLOW);
    if (!is_edge) MP_RETURN_IF_ERROR(propagate_delay(p, import->given[i].sharding, delays));
  }
  for (uint32_t i = 0; i < p->module->main->num_results; ++i) {
    MP_RETURN_IF_ERROR(propagate_delay(p, p->out->results[i], delays));
  }
  if (delays->count != 0)
    qsort(delays->items, delays->count, sizeof(*delays->items), propagate_by_priority);
  return NULL;
}

static mp_status_t propagate_run_rounds(rounds_t *rounds, const delays_t *delays) {
  uint32_t next = 0;
  for (;;) {
    for (rounds->level = 0; rounds->level < MP_NUM_LEVELS; ++rounds->level) {
      MP_RETURN_IF_ERROR(propagate_run_level(rounds));
    }
    if (next == delays->count) return NULL;
    const int64_t priority = delays->items[next].original.priority;
    for (; next < delays->count && delays->items[next].original.priority == priority; ++next) {
      const delayed_t *delayed = &delays->items[next];
      delayed->sharding->replicated &= ~mp_atoms_set(&delayed->original.atoms);
      delayed->sharding->dims[delayed->dim] = delayed->original;
      delayed->sharding->dims[delayed->dim].priority = 0;
    }
  }
}

static mp_status_t propagate_run(mp_propagator_t *p, const mp_import_t *import) {
  rounds_t rounds = {.p = p};
  delays_t delays = {0};
  MP_RETURN_IF_ERROR(propagate_index_users(p, &rounds.users));
  MP_RETURN_IF_ERROR(propagate_delay_all(p, import, &delays));
  rounds.stack = MP_ARENA_ARRAY(p->arena, uint32_t, (size_t)p->items.count + 1);
  MP_RETURN_IF_NULL(rounds.stack);
  for (uint32_t i = 0; i < p->items.count; ++i) {
    rounds.max_steps +=
        (uint64_t)propagate_num_tensors(&p->items.items[i]) * (4 * p->out->space.count + 4);
  }
  MP_RETURN_IF_ERROR(mp_arena_create(&p->scratch));
  mp_status_t status = propagate_run_rounds(&rounds, &delays);
  mp_arena_release(p->scratch);
  return status;
}

// Whether the space can express the shardings of main's results.
static mp_status_t propagate_check_results(mp_propagator_t *p, bool *out_found) {
  const mp_func_t *main = p->module->main;
  for (uint32_t i = 0; i < main->num_results && *out_found; ++i) {
    const mp_attr_t *attr = mp_annotation_of(main->result_attrs, i);
    if (attr == NULL || !mp_type_is_tensor(main->result_types[i])) continue;
    mp_atom_sharding_t *sharding = NULL;
    MP_RETURN_IF_ERROR(mp_atom_sharding_import(p->arena, &p->out->space, attr->u.sharding, 0,
                                               &sharding, out_found));
  }
  return NULL;
}

static mp_status_t propagate(mp_propagator_t *p, bool *out_found) {
  mp_annotations_t annotations;
  mp_import_t import = {0};
  mp_propagation_t *out = p->out;
  MP_RETURN_IF_ERROR(mp_annotations_collect(p->module, &annotations));
  *out_found = !annotations.has_gspmd;
  if (!*out_found) return NULL;
  MP_RETURN_IF_ERROR(mp_atom_space_create(p->arena, annotations.meshes.items,
                                          annotations.meshes.count, p->options->num_partitions,
                                          &out->space, out_found));
  if (*out_found) MP_RETURN_IF_ERROR(propagate_check_results(p, out_found));
  if (!*out_found) return NULL;
  MP_RETURN_IF_ERROR(mp_spmd_split_constants(p->module));
  MP_RETURN_IF_ERROR(mp_spmd_import(p->module, &out->space, p->options->is_param_open, &import));
  *out_found = import.is_sayable;
  if (!*out_found) return NULL;
  out->num_values = mp_module_number_values(p->module);
  MP_RETURN_IF_ERROR(mp_propagate_prepare(p, &import));
  MP_RETURN_IF_ERROR(propagate_run(p, &import));
  MP_RETURN_IF_ERROR(mp_propagate_close(p));
  return mp_propagate_merge(p);
}

mp_status_t mp_propagate(mp_module_t *module, const mp_propagate_options_t *options,
                         mp_propagation_t *out, bool *out_found) {
  mp_propagator_t p = {.module = module, .arena = module->arena, .options = options, .out = out};
  *out = (mp_propagation_t){0};
  MP_RETURN_IF_ERROR(propagate(&p, out_found));
  if (!*out_found) out->num_values = mp_module_number_values(module);
  return NULL;
}
