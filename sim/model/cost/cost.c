// From clusters of ops to the costs of commands.
#include "sim/model/cost/cost.h"

#include "sim/base/hash.h"
#include "sim/model/cost/cluster.h"

typedef struct {
  uint64_t hash;  // mp_hash_pointer of the op
  uint32_t number;
} cost_command_t;

typedef struct {
  const mp_chip_t *chip;
  const mp_program_t *program;
  mp_arena_t *arena, *scratch;
  mp_clusters_t clusters;
  MP_HASH_MAP(cost_command_t)
  commands;  // of ops: the command's number, in its body if it is in one
} cost_t;

// The op whose work a command is; NULL for commands that are none's.
static const mp_op_t *cost_op(const mp_cmd_t *cmd) {
  if (cmd->kind == MP_CMD_LAUNCH) return cmd->kernel->op;
  return cmd->kind == MP_CMD_CALL ? cmd->call->op : NULL;
}

static mp_status_t cost_number_commands(cost_t *c, const mp_cmd_t *commands, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    const mp_op_t *op = cost_op(&commands[i]);
    MP_RETURN_IF_ERROR(cost_number_commands(c, commands[i].body, commands[i].num_body));
    if (op == NULL) continue;
    const cost_command_t entry = {mp_hash_pointer(op), i};
    MP_RETURN_IF_ERROR(MP_HASH_MAP_SET(c->scratch, &c->commands, &entry));
  }
  return NULL;
}

// Whether both are the same memory in every run, a donated argument's.
static bool cost_is_same_memory(const mp_program_t *program, mp_slot_t a, mp_slot_t b) {
  if (a.kind == MP_SLOT_PARAM && b.kind == MP_SLOT_RESULT) {
    return program->params[a.index].alias == (int32_t)b.index && a.offset == b.offset;
  }
  return a.kind == b.kind && a.index == b.index && a.offset == b.offset;
}

// ---- single commands ----

static void cost_take_work(mp_cost_t *cost, const mp_work_t *work) {
  cost->work_class = work->work_class;
  cost->flops = work->flops;
  cost->transcendentals = work->transcendentals;
  if (work->product.batch > 0) cost->kind = mp_chip_flop_kind(work->product.dtype);
}

// What an update copies first because the array is still needed as it was.
static double cost_bytes_kept(const cost_t *c, const mp_cmd_t *cmd) {
  double bytes = 0;
  if (cmd->kind != MP_CMD_LAUNCH) return 0;
  const mp_op_t *op = cmd->kernel->op;
  for (uint32_t i = 0; i < 32 && i < op->num_results; ++i) {
    if ((cmd->kernel->begins_as >> i & 1) == 0) continue;
    if (cost_is_same_memory(c->program, cmd->operands[i], cmd->results[i])) continue;
    bytes += 2 * mp_work_bytes_of(op->results[i].type);
  }
  return bytes;
}

static void cost_of_op(const cost_t *c, const mp_cmd_t *cmd, const mp_op_t *op, uint32_t number,
                       mp_cost_t *cost) {
  mp_work_t work;
  mp_work_of_op(op, &work);
  cost_take_work(cost, &work);
  const mp_cluster_t *cluster = mp_cluster_of(&c->clusters, op);
  if (cluster == NULL) return;
  if (cluster->leader != op) {
    const cost_command_t *leader;
    MP_HASH_MAP_GET(&c->commands, mp_hash_pointer(cluster->leader), leader);
    if (leader != NULL) cost->leader = leader->number;
    return;
  }
  cost->leader = number;
  cost->work_class = cluster->work.work_class;
  cost->bytes = cluster->bytes + cost_bytes_kept(c, cmd);
  cost->seconds = mp_chip_seconds(c->chip, &cluster->work, cost->bytes);
}

// Constants are written, not read: a real program has them in its code.
static void cost_of_copy(const cost_t *c, const mp_cmd_t *cmd, mp_cost_t *cost) {
  enum { SCALAR_BYTES = 16 };
  mp_work_t work = {.work_class = cmd->bytes <= SCALAR_BYTES ? MP_WORK_SCALAR : MP_WORK_COPY};
  cost->work_class = work.work_class;
  if (cost_is_same_memory(c->program, cmd->operands[0], cmd->results[0])) return;
  const double times = cmd->operands[0].kind == MP_SLOT_CONSTANT ? 1 : 2;
  cost->bytes = times * (double)cmd->bytes;
  cost->seconds = mp_chip_seconds(c->chip, &work, cost->bytes);
}

static void cost_of_command(const cost_t *c, const mp_cmd_t *cmd, uint32_t number,
                            mp_cost_t *cost) {
  const mp_op_t *op = cost_op(cmd);
  cost->leader = number;
  cost->kind = MP_FLOP_F32;
  if (op != NULL) {
    cost_of_op(c, cmd, op, number, cost);
    return;
  }
  mp_work_t work = {.work_class = MP_WORK_FREE};
  switch (cmd->kind) {
    case MP_CMD_COPY:
      cost_of_copy(c, cmd, cost);
      return;
    case MP_CMD_LAUNCH:  // of a program made by hand
      work.work_class = MP_WORK_ELEMENTWISE;
      break;
    case MP_CMD_REPLICA_ID:
    case MP_CMD_PARTITION_ID:
      work.work_class = MP_WORK_SCALAR;
      break;
    case MP_CMD_COLLECTIVE:
    case MP_CMD_SEND:
    case MP_CMD_RECV:
      work.work_class = MP_WORK_COLLECTIVE;
      break;
    default:
      break;
  }
  cost->work_class = work.work_class;
  cost->seconds = mp_chip_seconds(c->chip, &work, 0);
}

// ---- all commands ----

static mp_status_t cost_of_commands(const cost_t *c, const mp_cmd_t *commands, uint32_t count,
                                    const mp_cost_t **out_costs) {
  mp_cost_t *costs = MP_ARENA_ARRAY(c->arena, mp_cost_t, (size_t)count + 1);
  MP_RETURN_IF_NULL(costs);
  for (uint32_t i = 0; i < count; ++i) {
    cost_of_command(c, &commands[i], i, &costs[i]);
    if (commands[i].kind != MP_CMD_LOOP) continue;
    MP_RETURN_IF_ERROR(cost_of_commands(c, commands[i].body, commands[i].num_body, &costs[i].body));
    mp_cost_of_loop(&commands[i], &costs[i], NULL, &costs[i]);
  }
  *out_costs = costs;
  return NULL;
}

static mp_status_t cost_of_program(cost_t *c, const mp_cost_t **out_costs) {
  const mp_program_t *program = c->program;
  if (program->module != NULL) {
    MP_RETURN_IF_ERROR(mp_clusters_find(program->module, c->scratch, &c->clusters));
  }
  MP_RETURN_IF_ERROR(cost_number_commands(c, program->commands, program->num_commands));
  return cost_of_commands(c, program->commands, program->num_commands, out_costs);
}

mp_status_t mp_cost_of_program(const mp_chip_t *chip, const mp_program_t *program,
                               mp_arena_t *arena, const mp_cost_t **out_costs) {
  cost_t c = {.chip = chip, .program = program, .arena = arena};
  MP_RETURN_IF_ERROR(mp_arena_create(&c.scratch));
  const mp_status_t status = cost_of_program(&c, out_costs);
  mp_arena_release(c.scratch);
  return status;
}
