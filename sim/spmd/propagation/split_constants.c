#include "sim/spmd/propagation/split_constants.h"

#include "sim/base/assert.h"

enum { MP_SPLIT_MAX_COPIES = 1 << 17 };

typedef enum {
  MP_SPLIT_OTHER,
  MP_SPLIT_CONSTANT,   // a constant, or an op on nothing but constants
  MP_SPLIT_EXPANSION,  // a broadcast of a scalar that is no constant
} split_kind_t;

// A sharding_group op on a value. Each copy of the value joins the group too.
typedef struct split_group_s {
  mp_op_t *op;
  struct split_group_s *next;
} split_group_t;

typedef struct {
  mp_module_t *module;
  mp_arena_t *scratch;
  uint8_t *kinds;          // by value id: the kind of the op whose result it is
  uint32_t *uses;          // by value id: number of uses, without sharding_group ops
  split_group_t **groups;  // by value id
  mp_value_t **copies;     // by value id: its copy for the current use
  mp_op_t **found;         // constants and expansions in program order
  uint32_t num_found;
  mp_value_t **stack;  // values that the current copy still needs
  uint32_t *touched;   // value ids with an entry in `copies`
  uint32_t num_touched;
  uint32_t num_copies;
} splitter_t;

static bool split_constants_is_scalar(const mp_value_t *value) {
  return mp_type_is_tensor(value->type) && value->type->rank == 0;
}

static split_kind_t split_constants_classify(const splitter_t *s, const mp_op_t *op) {
  if (op->num_results != 1 || !mp_op_has(op, MP_OP_TRAIT_AGAIN)) return MP_SPLIT_OTHER;
  bool is_constant = true;  // also if it has no operands
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    is_constant &= s->kinds[op->operands[i]->id] == MP_SPLIT_CONSTANT;
  }
  if (is_constant) return MP_SPLIT_CONSTANT;
  const bool is_expansion =
      op->code == MP_OP_BROADCAST_IN_DIM && split_constants_is_scalar(op->operands[0]);
  return is_expansion ? MP_SPLIT_EXPANSION : MP_SPLIT_OTHER;
}

static mp_status_t split_constants_copy_groups(splitter_t *s, uint32_t id, mp_op_t *copy) {
  for (const split_group_t *group = s->groups[id]; group != NULL; group = group->next) {
    mp_op_t *group_copy = NULL;
    MP_RETURN_IF_ERROR(mp_op_clone(s->module, group->op, s->copies, &group_copy));
    mp_block_insert_before(copy->next, group_copy);
  }
  return NULL;
}

// Makes the copy of one op, whose operands are copied already, and inserts it before the op.
static mp_status_t split_constants_copy_op(splitter_t *s, mp_op_t *op) {
  mp_op_t *copy = NULL;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    if (s->copies[op->operands[i]->id] == NULL) ++s->uses[op->operands[i]->id];  // a scalar
  }
  MP_RETURN_IF_ERROR(mp_op_clone(s->module, op, s->copies, &copy));
  mp_block_insert_before(op, copy);
  s->touched[s->num_touched++] = op->results[0].id;
  ++s->num_copies;
  return split_constants_copy_groups(s, op->results[0].id, copy);
}

static bool split_constants_is_copied(const splitter_t *s, const mp_value_t *value) {
  return split_constants_is_scalar(value) || value->op == NULL || s->copies[value->id] != NULL;
}

// Copies the ops that compute `value`, operands first. It uses a stack instead of recursion,
// because chains of ops on constants may be long.
static mp_status_t split_constants_copy_value(splitter_t *s, mp_value_t *value,
                                              mp_value_t **out_copy) {
  uint32_t size = 0;
  s->stack[size++] = value;
  while (size > 0) {
    mp_value_t *top = s->stack[size - 1];
    bool is_ready = true;
    for (uint32_t i = 0; i < top->op->num_operands && is_ready; ++i) {
      if (split_constants_is_copied(s, top->op->operands[i])) continue;
      s->stack[size++] = top->op->operands[i];
      is_ready = false;
    }
    if (!is_ready) continue;
    --size;
    if (s->copies[top->id] == NULL) MP_RETURN_IF_ERROR(split_constants_copy_op(s, top->op));
  }
  *out_copy = s->copies[value->id];
  while (s->num_touched > 0) s->copies[s->touched[--s->num_touched]] = NULL;
  return NULL;
}

// Whether nothing else uses the ops that compute `value`. The last use of these needs no copy.
static bool split_constants_is_sole_use(const splitter_t *s, const mp_value_t *value) {
  if (s->uses[value->id] != 1) return false;
  for (uint32_t i = 0; i < value->op->num_operands; ++i) {
    if (!split_constants_is_scalar(value->op->operands[i])) return false;
  }
  return true;
}

static mp_status_t split_constants_operands(splitter_t *s, mp_op_t *op) {
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    mp_value_t *operand = op->operands[i];
    if (s->kinds[operand->id] == MP_SPLIT_OTHER || split_constants_is_scalar(operand)) continue;
    if (s->num_copies >= MP_SPLIT_MAX_COPIES) return NULL;
    if (split_constants_is_sole_use(s, operand)) continue;
    MP_RETURN_IF_ERROR(split_constants_copy_value(s, operand, &op->operands[i]));
    MP_ASSERT(s->uses[operand->id] != 0);
    --s->uses[operand->id];
  }
  return NULL;
}

static mp_status_t split_constants_visit(void *context, mp_op_t *op) {
  splitter_t *s = context;
  if (op->code == MP_OP_SDY_SHARDING_GROUP) return NULL;
  const split_kind_t kind = split_constants_classify(s, op);
  if (kind == MP_SPLIT_OTHER) return split_constants_operands(s, op);
  s->kinds[op->results[0].id] = (uint8_t)kind;
  s->found[s->num_found++] = op;
  return NULL;
}

static mp_status_t split_constants_count_op(void *context, mp_op_t *op) {
  splitter_t *s = context;
  ++s->num_found;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const uint32_t id = op->operands[i]->id;
    if (op->code != MP_OP_SDY_SHARDING_GROUP) {
      ++s->uses[id];
      continue;
    }
    split_group_t *group = MP_ARENA_NEW(s->scratch, split_group_t);
    MP_RETURN_IF_NULL(group);
    *group = (split_group_t){op, s->groups[id]};
    s->groups[id] = group;
  }
  return NULL;
}

// Removes originals of which only copies are used; a user before the ops that it uses.
static void split_constants_remove_unused(splitter_t *s) {
  while (s->num_found > 0) {
    mp_op_t *op = s->found[--s->num_found];
    const uint32_t id = op->results[0].id;
    if (s->uses[id] != 0) continue;
    MP_ASSERT(op->num_results == 1);
    for (const split_group_t *group = s->groups[id]; group != NULL; group = group->next) {
      mp_op_unlink(group->op);
    }
    for (uint32_t i = 0; i < op->num_operands; ++i) --s->uses[op->operands[i]->id];
    mp_op_unlink(op);
  }
}

static mp_status_t split_constants_split(splitter_t *s, uint32_t num_values) {
  s->kinds = MP_ARENA_ARRAY(s->scratch, uint8_t, num_values);
  s->uses = MP_ARENA_ARRAY(s->scratch, uint32_t, num_values);
  s->groups = MP_ARENA_ARRAY(s->scratch, split_group_t *, num_values);
  s->copies = MP_ARENA_ARRAY(s->scratch, mp_value_t *, num_values);
  s->stack = MP_ARENA_ARRAY(s->scratch, mp_value_t *, (size_t)num_values + 1);
  s->touched = MP_ARENA_ARRAY(s->scratch, uint32_t, num_values);
  if (s->kinds == NULL || s->uses == NULL || s->groups == NULL || s->copies == NULL ||
      s->stack == NULL || s->touched == NULL) {
    return mp_status_out_of_memory();
  }
  mp_block_t *body = s->module->main->body;
  MP_RETURN_IF_ERROR(mp_block_walk(body, split_constants_count_op, s));
  s->found = MP_ARENA_ARRAY(s->scratch, mp_op_t *, s->num_found);
  MP_RETURN_IF_NULL(s->found);
  s->num_found = 0;
  MP_RETURN_IF_ERROR(mp_block_walk(body, split_constants_visit, s));
  split_constants_remove_unused(s);
  return NULL;
}

mp_status_t mp_spmd_split_constants(mp_module_t *module) {
  splitter_t s = {.module = module};
  const uint32_t num_values = mp_module_number_values(module);
  if (num_values == 0) return NULL;
  MP_RETURN_IF_ERROR(mp_arena_create(&s.scratch));
  mp_status_t status = split_constants_split(&s, num_values);
  mp_arena_release(s.scratch);
  return status;
}
