// Late: moves ops to just before the first op that uses their result, if that shortens the lives of
// values and lengthens none.
//
// Frontends emit ops in the order of tracing. The backward pass of a training step, for example,
// computes everything that it needs from the forward pass at once, and keeps it until it is used.
// An op whose operands are needed later anyway can as well wait. The order does not change the
// results.
//
// One backward sweep per block decides about an op after its users. A chain of ops moves as a
// whole: an operand that only this op uses need not live longer if its op can move, too.
#include "sim/kernels/table/kernel_table.h"
#include "sim/plan/plan.h"

// Smaller results do not justify changing the program's order.
enum { LATE_MIN_BYTES = 4096 };
// The longest chain that is considered.
enum { LATE_MAX_CHAIN = 8 };

// Where the ops of a block use a value: the positions of the first and of the last use that the
// sweep has seen. `first` counts every mention, `last` only reads of the value's bytes, and is kept
// at the value's root.
typedef struct {
  const mp_block_t *block;  // the block that the other fields are about
  uint32_t first, last;
  uint32_t num_users;  // of all ops of the block
} late_use_t;

typedef struct {
  mp_arena_t *scratch;
  const bool *is_donated;  // [parameters of main]: a result takes over the parameter's memory
  const mp_block_t *main;
  late_use_t *uses;  // by value id
  // The block of the current sweep. An op's position (op->id) is its number. Moved ops have the
  // position of the op that they wait for, directly before which they stand.
  const mp_block_t *block;
  mp_op_t **heads;  // by position: the first of the ops that have it
} late_t;

static uint64_t late_bytes(const mp_value_t *value) {
  int64_t bytes = 0;
  if (!mp_type_is_tensor(value->type) || !mp_type_num_bytes(value->type, &bytes)) return 0;
  return (uint64_t)bytes;
}

// The value whose bytes this one has (mp_liveness_t).
static mp_value_t *late_root(mp_value_t *value) {
  for (mp_value_t *of; (of = mp_plan_aliased(value)) != NULL;) value = of;
  return value;
}

static late_use_t *late_use(late_t *late, const mp_value_t *value) {
  late_use_t *use = &late->uses[value->id];
  if (use->block != late->block) *use = (late_use_t){late->block, UINT32_MAX, 0, 0};
  return use;
}

static void late_mention(late_t *late, const mp_value_t *value, uint32_t position) {
  late_use_t *use = late_use(late, value);
  if (position < use->first) use->first = position;
}

static void late_read(late_t *late, mp_value_t *value, uint32_t position) {
  late_use_t *use = late_use(late, late_root(value));
  if (position > use->last) use->last = position;
}

static mp_status_t late_note_uses(late_t *late, const mp_op_t *op) {
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    late_mention(late, op->operands[i], op->id);
    late_mention(late, mp_kernel_operand(op, i), op->id);
    late_read(late, mp_kernel_operand(op, i), op->id);
  }
  if (op->num_regions == 0) return NULL;
  mp_value_t **captures = NULL;
  uint32_t count = 0;
  MP_RETURN_IF_ERROR(mp_op_captures(op, late->scratch, &captures, &count));
  for (uint32_t i = 0; i < count; ++i) {
    late_mention(late, captures[i], op->id);
    late_read(late, captures[i], op->id);
  }
  return NULL;
}

static bool late_is_movable(const mp_op_t *op) {
  const mp_op_info_t *info = mp_op_info(op->code);
  // A reshape has no command, but its operand cannot move past it, so it must move, too.
  const bool is_computed = info->role == MP_OP_ROLE_KERNEL || mp_op_has(op, MP_OP_TRAIT_ALIAS);
  return is_computed && info->effect == MP_OP_EFFECT_PURE && op->num_results == 1 &&
         (op->num_regions == 0 || op->code == MP_OP_FUSION) && !mp_plan_is_collective(op) &&
         !mp_plan_is_foreign(op) && late_bytes(&op->results[0]) >= LATE_MIN_BYTES;
}

// Whether the memory of a value stays unchanged until the block ends, whichever ops read it.
static bool late_lives_through(const late_t *late, const mp_value_t *root) {
  if (root->op != NULL && root->op->code == MP_OP_CONSTANT) return true;
  const mp_block_t *block = root->op != NULL ? root->op->parent : root->block;
  if (block == late->block) {
    return root->block == late->main && !late->is_donated[root->index];
  }
  const mp_op_t *around = late->block->parent_op;
  return around != NULL && around->code == MP_OP_WHILE;
}

// The additional bytes in use until `target` if a value has to live until then; UINT64_MAX if it
// must not.
static uint64_t late_cost(late_t *late, mp_value_t *value, uint32_t target, int depth) {
  const mp_value_t *root = late_root(value);
  if (late_use(late, root)->last >= target || late_lives_through(late, root)) return 0;
  // A result, or the loop's next round, needs the memory of an argument.
  if (root->block != NULL) return UINT64_MAX;
  const uint64_t bytes = late_bytes(root);
  const mp_op_t *op = value->op;
  if (depth == LATE_MAX_CHAIN || op == NULL || op->parent != late->block ||
      late_use(late, value)->num_users != 1 || !late_is_movable(op)) {
    return bytes;
  }
  // The value can itself be computed later, from its operands.
  uint64_t cost = 0;
  for (uint32_t i = 0; i < op->num_operands && cost < bytes; ++i) {
    const uint64_t more = late_cost(late, mp_kernel_operand(op, i), target, depth + 1);
    cost = more > bytes ? bytes : cost + more;
  }
  return cost < bytes ? cost : bytes;
}

// Whether moving `op` to `target` pays off: the operands that would live longer are smaller than
// the result that would live shorter.
static bool late_pays(late_t *late, const mp_op_t *op, uint32_t target) {
  // A value that the block returns has a place of its own from the start, so computing it early
  // costs nothing.
  const bool is_returned =
      late_use(late, &op->results[0])->last == mp_block_terminator(late->block)->id;
  const uint64_t gain = is_returned ? 1 : late_bytes(&op->results[0]);
  uint64_t cost = 0;
  for (uint32_t i = 0; i < op->num_operands && cost < gain; ++i) {
    const uint64_t more = late_cost(late, mp_kernel_operand(op, i), target, 0);
    cost = more > gain ? gain : cost + more;
  }
  return cost < gain;
}

static mp_status_t late_count_user(late_t *late, const mp_op_t *op) {
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    bool is_counted = false;
    for (uint32_t j = 0; j < i && !is_counted; ++j) {
      is_counted = op->operands[j] == op->operands[i];
    }
    if (!is_counted) ++late_use(late, op->operands[i])->num_users;
  }
  if (op->num_regions == 0) return NULL;
  mp_value_t **captures = NULL;
  uint32_t count = 0;
  MP_RETURN_IF_ERROR(mp_op_captures(op, late->scratch, &captures, &count));
  for (uint32_t i = 0; i < count; ++i) ++late_use(late, captures[i])->num_users;
  return NULL;
}

static mp_status_t late_sweep(late_t *late, mp_block_t *block) {
  late->block = block;
  uint32_t count = 0;
  for (mp_op_t *op = block->first; op != NULL; op = op->next) {
    op->id = count++;
    MP_RETURN_IF_ERROR(late_count_user(late, op));
  }
  late->heads = MP_ARENA_ARRAY(late->scratch, mp_op_t *, (size_t)count + 1);
  MP_RETURN_IF_NULL(late->heads);
  for (mp_op_t *op = block->last; op != NULL;) {
    mp_op_t *previous = op->prev;
    late->heads[op->id] = op;
    const uint32_t target =
        late_is_movable(op) ? late_use(late, &op->results[0])->first : UINT32_MAX;
    // An op without users stays, and so does one that only the block's end uses.
    mp_op_t *head = target < count - 1 ? late->heads[target] : op->next;
    if (head != op->next && late_pays(late, op, target)) {
      mp_op_unlink(op);
      mp_block_insert_before(head, op);
      late->heads[target] = op;
      op->id = target;
    }
    MP_RETURN_IF_ERROR(late_note_uses(late, op));
    op = previous;
  }
  return NULL;
}

// Inner blocks of control flow come first, because uses are kept for one block at a time.
static mp_status_t late_block(late_t *late, mp_block_t *block) {
  for (mp_op_t *op = block->first; op != NULL; op = op->next) {
    if (op->code != MP_OP_WHILE && op->code != MP_OP_CASE) continue;
    for (uint32_t r = 0; r < op->num_regions; ++r) {
      MP_RETURN_IF_ERROR(late_block(late, op->regions[r]));
    }
  }
  return late_sweep(late, block);
}

mp_status_t mp_plan_move_late(mp_module_t *module, const bool *is_donated, mp_arena_t *scratch) {
  mp_block_t *body = module->main->body;
  late_t late = {.scratch = scratch, .is_donated = is_donated, .main = body};
  const uint32_t count = mp_module_number_values(module);
  late.uses = MP_ARENA_ARRAY(scratch, late_use_t, (size_t)count + 1);
  MP_RETURN_IF_NULL(late.uses);
  return late_block(&late, body);
}
