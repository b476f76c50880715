// Liveness: the positions of ops in the order in which they are emitted, and the last use of every
// value.
//
// A value that was defined before a loop and is used in it must live until the loop ends, because
// the next round uses it again. The values that a loop carries live through the whole loop.
#include "sim/base/assert.h"
#include "sim/base/containers/array.h"
#include "sim/kernels/table/kernel_table.h"
#include "sim/plan/plan.h"

// A `while` around the current op, with the values from outside that it uses.
typedef struct loop_s loop_t;
struct loop_s {
  loop_t *outer;
  uint32_t start;
  MP_ARRAY(mp_liveness_t *) used;
};

typedef struct {
  mp_arena_t *scratch;
  mp_liveness_table_t *table;
  uint32_t position;
  loop_t *loop;
} walk_t;

static mp_status_t liveness_walk_block(walk_t *walk, mp_block_t *block);

static mp_status_t liveness_remember_in_loop(walk_t *walk, mp_liveness_t *value) {
  // Of the loops around a use that begin after the definition, the outermost one ends last.
  loop_t *keeper = NULL;
  for (loop_t *loop = walk->loop; loop != NULL && loop->start > value->defined;
       loop = loop->outer) {
    keeper = loop;
  }
  if (keeper == NULL) return NULL;
  return MP_ARRAY_PUSH(walk->scratch, &keeper->used, value);
}

static mp_status_t liveness_use(walk_t *walk, mp_value_t *value) {
  MP_ASSERT(value->id < walk->table->num_values);
  mp_value_t *root = walk->table->values[value->id].root;
  mp_liveness_t *live = &walk->table->values[root->id];
  MP_ASSERT(root != NULL && live->root == root);  // a value is defined before it is used
  if (walk->position > live->last_use) live->last_use = walk->position;
  return liveness_remember_in_loop(walk, live);
}

static void liveness_define(walk_t *walk, mp_value_t *value, uint32_t position) {
  MP_ASSERT(walk->table->values[value->id].root == NULL);  // a value is defined once
  walk->table->values[value->id] = (mp_liveness_t){value, position, position};
}

static bool liveness_same_bytes(const mp_type_t *a, const mp_type_t *b) {
  int64_t of_a = 0;
  int64_t of_b = 0;
  return mp_type_num_bytes(a, &of_a) && mp_type_num_bytes(b, &of_b) && of_a == of_b;
}

mp_value_t *mp_plan_aliased(const mp_value_t *value) {
  if (value->op == NULL || !mp_op_has(value->op, MP_OP_TRAIT_ALIAS)) return NULL;
  mp_value_t *operand = value->op->operands[value->index];
  // A bitcast between a one-byte type and a narrower one changes the stored elements.
  return liveness_same_bytes(operand->type, value->type) ? operand : NULL;
}

static void liveness_define_results(walk_t *walk, mp_op_t *op) {
  for (uint32_t i = 0; i < op->num_results; ++i) {
    mp_value_t *result = &op->results[i];
    liveness_define(walk, result, op->id);
    const mp_value_t *aliased = mp_plan_aliased(result);
    if (aliased != NULL) {
      walk->table->values[result->id].root = walk->table->values[aliased->id].root;
    }
  }
}

static mp_status_t liveness_walk_while(walk_t *walk, mp_op_t *op) {
  loop_t loop = {.outer = walk->loop, .start = op->id};
  walk->loop = &loop;
  for (uint32_t r = 0; r < 2; ++r) {
    for (uint32_t i = 0; i < op->regions[r]->num_args; ++i) {
      liveness_define(walk, &op->regions[r]->args[i], op->id);
    }
    MP_RETURN_IF_ERROR(liveness_walk_block(walk, op->regions[r]));
  }
  walk->loop = loop.outer;
  uint32_t end = walk->position++;
  for (uint32_t i = 0; i < loop.used.count; ++i) {
    if (loop.used.items[i]->last_use < end) loop.used.items[i]->last_use = end;
  }
  walk->table->ends[op->id] = end;
  return NULL;
}

static mp_status_t liveness_walk_case(walk_t *walk, mp_op_t *op) {
  for (uint32_t r = 0; r < op->num_regions; ++r) {
    MP_RETURN_IF_ERROR(liveness_walk_block(walk, op->regions[r]));
  }
  walk->table->ends[op->id] = walk->position++;
  return NULL;
}

static mp_status_t liveness_use_captures(walk_t *walk, const mp_op_t *op) {
  mp_value_t **captures = NULL;
  uint32_t count = 0;
  MP_RETURN_IF_ERROR(mp_op_captures(op, walk->scratch, &captures, &count));
  for (uint32_t i = 0; i < count; ++i) MP_RETURN_IF_ERROR(liveness_use(walk, captures[i]));
  return NULL;
}

static mp_status_t liveness_walk_block(walk_t *walk, mp_block_t *block) {
  for (mp_op_t *op = block->first; op != NULL; op = op->next) {
    op->id = walk->position;
    for (uint32_t i = 0; i < op->num_operands; ++i)
      MP_RETURN_IF_ERROR(liveness_use(walk, mp_kernel_operand(op, i)));
    // Ops in the regions of control flow have positions of their own. Uses in other regions count
    // at the position of the op that has the region.
    if (op->num_regions != 0 && mp_op_info(op->code)->role != MP_OP_ROLE_CONTROL) {
      MP_RETURN_IF_ERROR(liveness_use_captures(walk, op));
    }
    ++walk->position;
    liveness_define_results(walk, op);
    if (op->code == MP_OP_WHILE) MP_RETURN_IF_ERROR(liveness_walk_while(walk, op));
    if (op->code == MP_OP_CASE) MP_RETURN_IF_ERROR(liveness_walk_case(walk, op));
  }
  return NULL;
}

static mp_status_t liveness_count_ops(void *context, mp_op_t *op) {
  (void)op;
  ++*(uint32_t *)context;
  return NULL;
}

mp_status_t mp_liveness_compute(mp_module_t *module, mp_arena_t *scratch,
                                mp_liveness_table_t *out_table) {
  uint32_t num_ops = 0;
  MP_RETURN_IF_ERROR(mp_module_walk(module, liveness_count_ops, &num_ops));
  mp_liveness_table_t table = {.num_values = mp_module_number_values(module)};
  table.values = MP_ARENA_ARRAY(scratch, mp_liveness_t, (size_t)table.num_values + 1);
  table.ends = MP_ARENA_ARRAY(scratch, uint32_t, 2 * (size_t)num_ops + 2);
  if (table.values == NULL || table.ends == NULL) return mp_status_out_of_memory();
  walk_t walk = {.scratch = scratch, .table = &table, .position = 1};
  mp_block_t *body = module->main->body;
  for (uint32_t i = 0; i < body->num_args; ++i) liveness_define(&walk, &body->args[i], 0);
  MP_RETURN_IF_ERROR(liveness_walk_block(&walk, body));
  table.num_positions = walk.position;
  *out_table = table;
  return NULL;
}
