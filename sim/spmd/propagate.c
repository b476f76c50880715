#include "sim/spmd/propagate.h"

#include <string.h>

#include "sim/spmd/annotations.h"
#include "sim/spmd/propagate_step.h"

// A rule over particular shardings: an op, or an edge along which values are one and the same (what
// a loop carries, what a branch returns).
typedef struct {
  const mp_rule_t *rule;
  mp_atom_sharding_t **tensors;
  bool has_shared_operand;
  bool is_queued;
} mp_item_t;

typedef struct {
  mp_module_t *module;
  mp_arena_t *arena;
  mp_propagation_t *out;
  mp_annotations_t annotations;
  const bool *is_result_open;
  mp_arena_t *scratch;  // of one step
  uint32_t *uses;       // by value id
  mp_item_t *items;
  uint32_t num_items, capacity;
  bool is_sayable;  // all annotations so far fit the space
} mp_builder_t;

static mp_status_t add_item(mp_builder_t *b, const mp_rule_t *rule, mp_atom_sharding_t **tensors,
                            bool has_shared_operand) {
  if (b->num_items == b->capacity) {
    uint32_t capacity = b->capacity == 0 ? 256 : b->capacity * 2;
    mp_item_t *items = MP_ARENA_ARRAY(b->arena, mp_item_t, capacity);
    MP_RETURN_IF_NULL(items);
    for (uint32_t i = 0; i < b->num_items; ++i) items[i] = b->items[i];
    b->items = items;
    b->capacity = capacity;
  }
  b->items[b->num_items++] = (mp_item_t){rule, tensors, has_shared_operand, false};
  return NULL;
}

// A rule that says that all operands and the one result are the same value.
static mp_status_t identity_rule(mp_builder_t *b, const mp_type_t *type, uint32_t num_sources,
                                 mp_rule_class_t priority, const mp_rule_t **out_rule) {
  mp_rule_t *rule = MP_ARENA_NEW(b->arena, mp_rule_t);
  mp_factor_t *factors = MP_ARENA_ARRAY(b->arena, mp_factor_t, type->rank);
  mp_dim_factors_t *dims = MP_ARENA_ARRAY(b->arena, mp_dim_factors_t, type->rank);
  uint16_t *numbers = MP_ARENA_ARRAY(b->arena, uint16_t, type->rank);
  const mp_dim_factors_t **tensors =
      MP_ARENA_ARRAY(b->arena, const mp_dim_factors_t *, num_sources + 1);
  if (rule == NULL || factors == NULL || dims == NULL || numbers == NULL || tensors == NULL) {
    return mp_status_out_of_memory();
  }
  for (uint32_t d = 0; d < type->rank; ++d) {
    factors[d] = (mp_factor_t){type->dims[d], MP_FACTOR_PASS, false};
    numbers[d] = (uint16_t)d;
    dims[d] = (mp_dim_factors_t){1, &numbers[d]};
  }
  for (uint32_t t = 0; t <= num_sources; ++t) tensors[t] = dims;
  *rule = (mp_rule_t){priority, false, type->rank, factors, num_sources, 1, tensors};
  *out_rule = rule;
  return NULL;
}

static mp_status_t add_edge(mp_builder_t *b, const mp_type_t *type, mp_atom_sharding_t **sources,
                            uint32_t num_sources, mp_atom_sharding_t *target) {
  if (target == NULL) return NULL;
  const mp_rule_t *rule = NULL;
  MP_RETURN_IF_ERROR(identity_rule(b, type, num_sources, MP_RULE_PASS_THROUGH, &rule));
  mp_atom_sharding_t **tensors = MP_ARENA_ARRAY(b->arena, mp_atom_sharding_t *, num_sources + 1);
  MP_RETURN_IF_NULL(tensors);
  memcpy(tensors, sources, num_sources * sizeof(*tensors));
  tensors[num_sources] = target;
  return add_item(b, rule, tensors, false);
}

static mp_status_t new_sharding(mp_builder_t *b, const mp_type_t *type, uint32_t manual,
                                mp_atom_sharding_t **out) {
  *out = NULL;
  if (!mp_type_is_tensor(type)) return NULL;
  MP_RETURN_IF_ERROR(mp_atom_sharding_create(b->arena, type->rank, true, out));
  (*out)->manual = manual;
  return NULL;
}

static mp_status_t import(mp_builder_t *b, const mp_type_t *type, const mp_sdy_sharding_t *sharding,
                          uint32_t manual, mp_atom_sharding_t **out) {
  *out = NULL;
  if (!mp_type_is_tensor(type)) return NULL;
  bool found = false;
  if (sharding->rank == type->rank) {
    MP_RETURN_IF_ERROR(
        mp_atom_sharding_import(b->arena, &b->out->space, sharding, manual, out, &found));
  }
  b->is_sayable &= found;
  return NULL;
}

// --- values ---

static mp_status_t give_values(mp_builder_t *b, mp_block_t *block, uint32_t manual);

static mp_status_t give_result(mp_builder_t *b, mp_op_t *op, uint32_t i, uint32_t manual) {
  mp_value_t *result = &op->results[i];
  mp_atom_sharding_t **slot = &b->out->values[result->id];
  const mp_attr_t *own = mp_op_attr(op, MP_ATTR_SHARDING);
  const bool is_annotated =
      op->code == MP_OP_SDY_SHARDING_CONSTRAINT || op->code == MP_OP_SDY_RESHARD;
  if (is_annotated && own != NULL && own->kind == MP_KIND_SHARDING) {
    return import(b, result->type, own->u.sharding, manual, slot);
  }
  if (op->code == MP_OP_SDY_MANUAL_COMPUTATION) {
    const mp_attr_t *out = mp_op_attr(op, MP_ATTR_OUT_SHARDINGS);
    return import(b, result->type, &out->u.shardings.shardings[i], manual, slot);
  }
  return new_sharding(b, result->type, manual, slot);
}

// Whether a manual region has what the verifier asks of it; the partitioner words the error.
static bool is_well_formed(const mp_op_t *op) {
  const mp_attr_t *in = mp_op_attr(op, MP_ATTR_IN_SHARDINGS);
  const mp_attr_t *out = mp_op_attr(op, MP_ATTR_OUT_SHARDINGS);
  const mp_attr_t *axes = mp_op_attr(op, MP_ATTR_MANUAL_AXES);
  return in != NULL && in->kind == MP_KIND_SHARDINGS && in->u.shardings.count == op->num_operands &&
         out != NULL && out->kind == MP_KIND_SHARDINGS &&
         out->u.shardings.count == op->num_results && axes != NULL && axes->kind == MP_KIND_AXES &&
         op->regions[0]->num_args == op->num_operands;
}

static mp_status_t give_loop(mp_builder_t *b, mp_op_t *op, uint32_t manual) {
  for (uint32_t r = 0; r < 2; ++r) {
    for (uint32_t i = 0; i < op->num_results; ++i) {
      b->out->values[op->regions[r]->args[i].id] = b->out->values[op->results[i].id];
    }
    MP_RETURN_IF_ERROR(give_values(b, op->regions[r], manual));
  }
  return NULL;
}

// The body of a manual region: its arguments have what their in_shardings leave to propagation.
static mp_status_t give_manual(mp_builder_t *b, mp_op_t *op, uint32_t manual) {
  const mp_attr_t *in = mp_op_attr(op, MP_ATTR_IN_SHARDINGS);
  const mp_attr_t *out = mp_op_attr(op, MP_ATTR_OUT_SHARDINGS);
  const mp_axis_list_t *axes = &mp_op_attr(op, MP_ATTR_MANUAL_AXES)->u.axes;
  const mp_mesh_t *mesh = in->u.shardings.count != 0    ? in->u.shardings.shardings[0].mesh
                          : out->u.shardings.count != 0 ? out->u.shardings.shardings[0].mesh
                                                        : NULL;
  mp_atoms_t list = {0};
  for (uint32_t i = 0; i < axes->count && mesh != NULL; ++i) {
    b->is_sayable &= mp_atoms_of_axis(&b->out->space, mesh, &axes->axes[i], &list);
  }
  const uint32_t inner = manual | mp_atoms_set(&list);
  for (uint32_t i = 0; i < op->num_operands && b->is_sayable; ++i) {
    const mp_value_t *arg = &op->regions[0]->args[i];
    MP_RETURN_IF_ERROR(
        import(b, arg->type, &in->u.shardings.shardings[i], inner, &b->out->values[arg->id]));
  }
  return give_values(b, op->regions[0], inner);
}

// Gives every value of the block, and of the control flow in it, a sharding to begin with.
static mp_status_t give_values(mp_builder_t *b, mp_block_t *block, uint32_t manual) {
  for (mp_op_t *op = block->first; op != NULL && b->is_sayable; op = op->next) {
    op->id = b->out->num_ops++;
    for (uint32_t i = 0; i < op->num_operands; ++i) ++b->uses[op->operands[i]->id];
    if (op->code == MP_OP_SDY_MANUAL_COMPUTATION && !is_well_formed(op)) b->is_sayable = false;
    if (!b->is_sayable) break;
    for (uint32_t i = 0; i < op->num_results; ++i) {
      MP_RETURN_IF_ERROR(give_result(b, op, i, manual));
    }
    if (op->code == MP_OP_WHILE) {
      MP_RETURN_IF_ERROR(give_loop(b, op, manual));
    } else if (op->code == MP_OP_CASE) {
      for (uint32_t r = 0; r < op->num_regions; ++r) {
        MP_RETURN_IF_ERROR(give_values(b, op->regions[r], manual));
      }
    } else if (op->code == MP_OP_SDY_MANUAL_COMPUTATION) {
      MP_RETURN_IF_ERROR(give_manual(b, op, manual));
    }
  }
  return NULL;
}

// --- items ---

static mp_status_t add_block(mp_builder_t *b, const mp_block_t *block);

static mp_atom_sharding_t *of(const mp_builder_t *b, const mp_value_t *value) {
  return b->out->values[value->id];
}

static mp_status_t add_rule(mp_builder_t *b, const mp_op_t *op) {
  const mp_rule_t *rule = NULL;
  MP_RETURN_IF_ERROR(mp_rule_create(b->arena, op, &rule));
  b->out->rules[op->id] = rule;
  if (rule == NULL) return NULL;
  mp_atom_sharding_t **tensors =
      MP_ARENA_ARRAY(b->arena, mp_atom_sharding_t *, op->num_operands + op->num_results);
  MP_RETURN_IF_NULL(tensors);
  bool has_shared = false;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    tensors[i] = of(b, op->operands[i]);
    has_shared |= op->operands[i]->type->rank != 0 && b->uses[op->operands[i]->id] > 1;
  }
  for (uint32_t i = 0; i < op->num_results; ++i) {
    tensors[op->num_operands + i] = of(b, &op->results[i]);
  }
  return add_item(b, rule, tensors, has_shared);
}

static mp_status_t add_loop(mp_builder_t *b, const mp_op_t *op) {
  const mp_op_t *end = mp_block_terminator(op->regions[1]);
  for (uint32_t i = 0; i < op->num_results; ++i) {
    mp_atom_sharding_t *sources[2] = {of(b, op->operands[i]), of(b, end->operands[i])};
    MP_RETURN_IF_ERROR(add_edge(b, op->results[i].type, sources, 2, of(b, &op->results[i])));
  }
  MP_RETURN_IF_ERROR(add_block(b, op->regions[0]));
  return add_block(b, op->regions[1]);
}

static mp_status_t add_branches(mp_builder_t *b, const mp_op_t *op) {
  mp_atom_sharding_t **sources = MP_ARENA_ARRAY(b->arena, mp_atom_sharding_t *, op->num_regions);
  MP_RETURN_IF_NULL(sources);
  for (uint32_t i = 0; i < op->num_results; ++i) {
    for (uint32_t r = 0; r < op->num_regions; ++r) {
      sources[r] = of(b, mp_block_terminator(op->regions[r])->operands[i]);
    }
    MP_RETURN_IF_ERROR(
        add_edge(b, op->results[i].type, sources, op->num_regions, of(b, &op->results[i])));
  }
  for (uint32_t r = 0; r < op->num_regions; ++r) MP_RETURN_IF_ERROR(add_block(b, op->regions[r]));
  return NULL;
}

// An operand flows into its in_sharding, which is fixed by the program.
static mp_status_t add_manual(mp_builder_t *b, const mp_op_t *op) {
  const mp_attr_t *in = mp_op_attr(op, MP_ATTR_IN_SHARDINGS);
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    mp_atom_sharding_t *source = of(b, op->operands[i]);
    if (source == NULL) continue;
    mp_atom_sharding_t *target = NULL;
    MP_RETURN_IF_ERROR(
        import(b, op->operands[i]->type, &in->u.shardings.shardings[i], source->manual, &target));
    MP_RETURN_IF_ERROR(add_edge(b, op->operands[i]->type, &source, 1, target));
  }
  return add_block(b, op->regions[0]);
}

static mp_status_t add_block(mp_builder_t *b, const mp_block_t *block) {
  for (const mp_op_t *op = block->first; op != NULL; op = op->next) {
    switch (op->code) {
      case MP_OP_WHILE:
        MP_RETURN_IF_ERROR(add_loop(b, op));
        break;
      case MP_OP_CASE:
        MP_RETURN_IF_ERROR(add_branches(b, op));
        break;
      case MP_OP_SDY_MANUAL_COMPUTATION:
        MP_RETURN_IF_ERROR(add_manual(b, op));
        break;
      case MP_OP_OPTIMIZATION_BARRIER:
        for (uint32_t i = 0; i < op->num_results; ++i) {
          mp_atom_sharding_t *source = of(b, op->operands[i]);
          MP_RETURN_IF_ERROR(add_edge(b, op->results[i].type, &source, 1, of(b, &op->results[i])));
        }
        break;
      default:
        MP_RETURN_IF_ERROR(add_rule(b, op));
    }
  }
  return NULL;
}

// --- main's own annotations ---

static const mp_attr_t *sdy_of(const mp_attr_t *const *attrs, uint32_t i) {
  const mp_attr_t *attr = attrs == NULL ? NULL : mp_attr_dict_get(attrs[i], MP_ATTR_SDY_SHARDING);
  return attr != NULL && attr->kind == MP_KIND_SHARDING ? attr : NULL;
}

static mp_status_t give_main(mp_builder_t *b) {
  mp_func_t *main = b->module->main;
  for (uint32_t i = 0; i < main->body->num_args; ++i) {
    const mp_value_t *arg = &main->body->args[i];
    const mp_attr_t *attr = sdy_of(main->arg_attrs, i);
    MP_RETURN_IF_ERROR(attr == NULL
                           ? new_sharding(b, arg->type, 0, &b->out->values[arg->id])
                           : import(b, arg->type, attr->u.sharding, 0, &b->out->values[arg->id]));
    // Where a parameter lies is the caller's word: without one it is whole on every device.
    if (attr == NULL && b->out->values[arg->id] != NULL) {
      for (uint32_t d = 0; d < arg->type->rank; ++d) {
        b->out->values[arg->id]->dims[d].is_open = false;
      }
    }
  }
  for (uint32_t i = 0; i < main->num_results; ++i) {
    const mp_type_t *type = main->result_types[i];
    const mp_attr_t *attr = sdy_of(main->result_attrs, i);
    if (attr != NULL) {
      MP_RETURN_IF_ERROR(import(b, type, attr->u.sharding, 0, &b->out->results[i]));
    } else {
      MP_RETURN_IF_ERROR(new_sharding(b, type, 0, &b->out->results[i]));
      for (uint32_t d = 0; d < type->rank && b->out->results[i] != NULL; ++d) {
        b->out->results[i]->dims[d].is_open = b->is_result_open[i];
      }
    }
  }
  return give_values(b, main->body, 0);
}

// --- the fixed point ---

// Which items touch a sharding: found by scanning, since programs are small beside the steps; the
// queue holds item numbers.
typedef struct {
  uint32_t *numbers;
  uint32_t head, size, capacity;
} mp_queue_t;

static void push(mp_queue_t *queue, mp_item_t *items, uint32_t number) {
  if (items[number].is_queued) return;
  items[number].is_queued = true;
  queue->numbers[(queue->head + queue->size++) % queue->capacity] = number;
}

// Items by sharding: a list per sharding object, found through its address.
typedef struct mp_user_s {
  uint32_t item;
  struct mp_user_s *next;
} mp_user_t;

typedef struct {
  const mp_atom_sharding_t **keys;
  mp_user_t **lists;
  size_t capacity;
} mp_user_table_t;

static size_t find_slot(const mp_user_table_t *table, const mp_atom_sharding_t *key) {
  size_t at = ((uintptr_t)key >> 4) * 11400714819323198485ull & (table->capacity - 1);
  while (table->keys[at] != NULL && table->keys[at] != key) at = (at + 1) & (table->capacity - 1);
  return at;
}

static mp_status_t index_users(mp_builder_t *b, mp_user_table_t *out_table) {
  size_t entries = 0;
  for (uint32_t i = 0; i < b->num_items; ++i) {
    entries += b->items[i].rule->num_operands + b->items[i].rule->num_results;
  }
  mp_user_table_t table = {.capacity = 64};
  while (table.capacity < 2 * entries) table.capacity *= 2;
  table.keys = MP_ARENA_ARRAY(b->arena, const mp_atom_sharding_t *, table.capacity);
  table.lists = MP_ARENA_ARRAY(b->arena, mp_user_t *, table.capacity);
  if (table.keys == NULL || table.lists == NULL) return mp_status_out_of_memory();
  for (uint32_t i = b->num_items; i-- > 0;) {
    const mp_item_t *item = &b->items[i];
    for (uint32_t t = 0; t < item->rule->num_operands + item->rule->num_results; ++t) {
      if (item->tensors[t] == NULL) continue;
      const size_t slot = find_slot(&table, item->tensors[t]);
      mp_user_t *user = MP_ARENA_NEW(b->arena, mp_user_t);
      MP_RETURN_IF_NULL(user);
      *user = (mp_user_t){i, table.lists[slot]};
      table.keys[slot] = item->tensors[t];
      table.lists[slot] = user;
    }
  }
  *out_table = table;
  return NULL;
}

static mp_status_t run_item(mp_builder_t *b, const mp_user_table_t *users, mp_queue_t *queue,
                            uint32_t number, uint32_t level) {
  const mp_item_t *item = &b->items[number];
  const uint32_t count = item->rule->num_operands + item->rule->num_results;
  mp_arena_t *scratch = b->scratch;
  mp_arena_reset(scratch);
  bool *changed = MP_ARENA_ARRAY(scratch, bool, count);
  mp_status_t status = changed == NULL
                           ? mp_status_out_of_memory()
                           : mp_propagate_step(scratch, &b->out->space, item->rule, level,
                                               item->has_shared_operand, item->tensors, changed);
  for (uint32_t t = 0; t < count && status == NULL; ++t) {
    if (!changed[t]) continue;
    const mp_user_t *user = users->lists[find_slot(users, item->tensors[t])];
    for (; user != NULL; user = user->next) push(queue, b->items, user->item);
  }
  return status;
}

// Between main's results and what is returned: backwards before a level, forwards after it.
static mp_status_t flow_results(mp_builder_t *b, mp_rule_class_t way, uint32_t level) {
  const mp_func_t *main = b->module->main;
  const mp_op_t *end = mp_block_terminator(main->body);
  for (uint32_t i = 0; i < main->num_results; ++i) {
    mp_atom_sharding_t *tensors[2] = {of(b, end->operands[i]), b->out->results[i]};
    if (tensors[0] == NULL || tensors[1] == NULL) continue;
    const mp_rule_t *rule = NULL;
    bool changed[2] = {false, false};
    MP_RETURN_IF_ERROR(identity_rule(b, main->result_types[i], 1, way, &rule));
    MP_RETURN_IF_ERROR(
        mp_propagate_step(b->arena, &b->out->space, rule, level, false, tensors, changed));
  }
  return NULL;
}

static mp_status_t run_level(mp_builder_t *b, const mp_user_table_t *users, mp_queue_t *queue,
                             uint32_t level) {
  MP_RETURN_IF_ERROR(flow_results(b, MP_RULE_BACKWARD_FIRST, 2));
  for (uint32_t i = 0; i < b->num_items; ++i) push(queue, b->items, i);
  while (queue->size != 0) {
    const uint32_t number = queue->numbers[queue->head];
    queue->head = (queue->head + 1) % queue->capacity;
    --queue->size;
    b->items[number].is_queued = false;
    MP_RETURN_IF_ERROR(run_item(b, users, queue, number, level));
  }
  return flow_results(b, MP_RULE_FORWARD_FIRST, 1);
}

// --- results that are left to us ---

// The length of the mesh axis whose atoms begin at `at`; 0 when no whole axis does.
static uint32_t axis_at(const mp_builder_t *b, const mp_atoms_t *atoms, uint32_t at) {
  for (uint32_t m = 0; m < b->annotations.num_meshes; ++m) {
    const mp_mesh_t *mesh = b->annotations.meshes[m];
    for (uint32_t i = 0; i < mesh->num_axes; ++i) {
      const mp_axis_ref_t whole = {.name = mesh->axes[i].name, .pre_size = 1};
      mp_atoms_t axis = {0};
      if (!mp_atoms_of_axis(&b->out->space, mesh, &whole, &axis) || axis.count == 0) continue;
      if (axis.count > atoms->count - at) continue;
      if (memcmp(axis.atoms, atoms->atoms + at, axis.count) == 0) return axis.count;
    }
  }
  return 0;
}

// Callers can only name whole axes of their meshes, in parts of one size.
static void close_result(const mp_builder_t *b, const mp_type_t *type,
                         mp_atom_sharding_t *sharding) {
  for (uint32_t d = 0; d < sharding->rank; ++d) {
    mp_atoms_t *atoms = &sharding->dims[d].atoms;
    int64_t left = type->dims[d];
    uint32_t kept = 0;
    while (kept < atoms->count) {
      const uint32_t length = axis_at(b, atoms, kept);
      mp_atoms_t axis = {.count = (uint8_t)length};
      memcpy(axis.atoms, atoms->atoms + kept, length);
      const int64_t parts = mp_atoms_product(&b->out->space, &axis);
      if (length == 0 || left == 0 || left % parts != 0) break;
      left /= parts;
      kept += length;
    }
    atoms->count = (uint8_t)kept;
  }
}

static void close_results(const mp_builder_t *b) {
  const mp_func_t *main = b->module->main;
  for (uint32_t i = 0; i < main->num_results; ++i) {
    if (b->out->results[i] == NULL || sdy_of(main->result_attrs, i) != NULL) continue;
    close_result(b, main->result_types[i], b->out->results[i]);
  }
}

static mp_status_t count_ops(void *context, mp_op_t *op) {
  (void)op;
  ++*(uint32_t *)context;
  return NULL;
}

mp_status_t mp_propagate(mp_module_t *module, uint32_t num_partitions, const bool *is_result_open,
                         mp_propagation_t *out, bool *out_found) {
  mp_builder_t b = {.module = module,
                    .arena = module->arena,
                    .out = out,
                    .is_result_open = is_result_open,
                    .is_sayable = true};
  const uint32_t num_values = out->num_values;
  uint32_t num_ops = 0;
  MP_RETURN_IF_ERROR(mp_module_walk(module, count_ops, &num_ops));
  *out = (mp_propagation_t){.num_values = num_values};
  MP_RETURN_IF_ERROR(mp_annotations_collect(module, &b.annotations));
  *out_found = !b.annotations.has_gspmd;
  if (!*out_found) return NULL;
  MP_RETURN_IF_ERROR(mp_atom_space_create(b.annotations.meshes, b.annotations.num_meshes,
                                          num_partitions, &out->space, out_found));
  if (!*out_found) return NULL;
  out->values = MP_ARENA_ARRAY(b.arena, mp_atom_sharding_t *, (size_t)num_values + 1);
  out->results = MP_ARENA_ARRAY(b.arena, mp_atom_sharding_t *, module->main->num_results);
  out->rules = MP_ARENA_ARRAY(b.arena, const mp_rule_t *, (size_t)num_ops + 1);
  b.uses = MP_ARENA_ARRAY(b.arena, uint32_t, (size_t)num_values + 1);
  if (out->values == NULL || out->results == NULL || out->rules == NULL || b.uses == NULL) {
    return mp_status_out_of_memory();
  }
  MP_RETURN_IF_ERROR(give_main(&b));
  if (b.is_sayable) MP_RETURN_IF_ERROR(add_block(&b, module->main->body));
  *out_found = b.is_sayable;
  if (!b.is_sayable) return NULL;
  mp_user_table_t users = {0};
  MP_RETURN_IF_ERROR(index_users(&b, &users));
  mp_queue_t queue = {.capacity = b.num_items + 1};
  queue.numbers = MP_ARENA_ARRAY(b.arena, uint32_t, queue.capacity);
  MP_RETURN_IF_NULL(queue.numbers);
  MP_RETURN_IF_ERROR(mp_arena_create(&b.scratch));
  mp_status_t status = NULL;
  for (uint32_t level = 0; level <= 4 && status == NULL; ++level) {
    status = run_level(&b, &users, &queue, level);
  }
  mp_arena_release(b.scratch);
  MP_RETURN_IF_ERROR(status);
  close_results(&b);
  return NULL;
}
