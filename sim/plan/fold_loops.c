// Chooses the small loops that become one LOOP command each: the commands of a loop, from the
// target of its back edge to the edge, if fold_range.c can merge them into one command. Of nested
// loops it takes the outermost possible one. Remaining sequences of small commands without jumps
// become LOOP commands that run once.

#include "sim/base/containers/array.h"
#include "sim/plan/plan.h"

typedef struct {
  mp_fold_source_t common;
  MP_ARRAY(mp_cmd_t) commands;  // the program's new ones, in its arena
  uint32_t *numbers;            // [num_commands]: the new number of each command
  bool *is_target;              // [num_commands + 1]: of a back edge
  bool *is_entry;               // [num_commands + 1]: of any jump
} fold_t;

// ---- what can be folded ----

static bool fold_loops_can_be_in_loop(const mp_cmd_t *cmd) {
  switch (cmd->kind) {
    case MP_CMD_LAUNCH:
      // The run records the time of a kernel with `control`, which a LOOP command does not.
      if (cmd->control != 0) return false;
      // Kernels with parts are left to several workers, except updates in place
      // (mp_loop_add_kernel).
      return cmd->kernel->num_parts == 1 ||
             (cmd->kernel->op != NULL && cmd->kernel->op->code == MP_OP_DYNAMIC_UPDATE_SLICE);
    case MP_CMD_COPY:
    case MP_CMD_REPLICA_ID:
    case MP_CMD_PARTITION_ID:
    case MP_CMD_JUMP:
    case MP_CMD_BRANCH_UNLESS:
      return true;
    case MP_CMD_SWITCH:
      // With `control` set the run must record which branch it takes, but a LOOP command records
      // only the rounds of its loops.
      return cmd->control == 0;
    default:
      return false;
  }
}

// Whether the commands leave the range only to the command after it, and jump back only by JUMP.
// False for longer bodies, where the overhead per command hardly matters.
static bool fold_loops_is_closed(const mp_program_t *program, uint32_t first, uint32_t last) {
  if (last - first >= MP_LOOP_MOST_COMMANDS) return false;
  for (uint32_t i = first; i <= last; ++i) {
    const mp_cmd_t *cmd = &program->commands[i];
    if (!fold_loops_can_be_in_loop(cmd)) return false;
    for (uint32_t t = 0; t < cmd->num_targets; ++t) {
      const uint32_t target = cmd->targets[t];
      if (target < first || target > last + 1) return false;
      if (target <= i && cmd->kind != MP_CMD_JUMP) return false;
    }
  }
  return true;
}

// The last back edge to command `first` that is before `end`; `end` if there is none.
static uint32_t fold_loops_find_edge(const mp_program_t *program, uint32_t first, uint32_t end) {
  for (uint32_t i = end; i-- > first;) {
    const mp_cmd_t *cmd = &program->commands[i];
    if (cmd->kind == MP_CMD_JUMP && cmd->targets[0] == first) return i;
  }
  return end;
}

// Replaces commands [first, last] by one LOOP command if that is possible.
static mp_status_t fold_loops_range(fold_t *fold, uint32_t first, uint32_t last, bool is_straight,
                                    bool *out_can) {
  mp_cmd_t command;
  MP_RETURN_IF_ERROR(
      mp_plan_fold_range(&fold->common, first, last, is_straight, out_can, &command));
  if (!*out_can) return NULL;
  for (uint32_t i = first; i <= last; ++i) fold->numbers[i] = fold->commands.count;
  return MP_ARRAY_PUSH(fold->common.program->arena, &fold->commands, command);
}

// Folds the largest loop that begins with command `first`, if there is one: `out_last` is its last
// command.
static mp_status_t fold_loops_at(fold_t *fold, uint32_t first, bool *out_can, uint32_t *out_last) {
  const mp_program_t *program = fold->common.program;
  *out_can = false;
  for (uint32_t end = program->num_commands; !*out_can;) {
    const uint32_t last = fold_loops_find_edge(program, first, end);
    if (last == end) return NULL;
    if (fold_loops_is_closed(program, first, last)) {
      MP_RETURN_IF_ERROR(fold_loops_range(fold, first, last, false, out_can));
    }
    *out_last = end = last;
  }
  return NULL;
}

// ---- sequences of commands ----

// The steps of at most MOST commands fit into the second-level cache. Fewer than LEAST are not
// worth the set-up.
enum { LEAST = 4, MOST = 48 };

static bool fold_loops_can_be_straight(const mp_cmd_t *cmd) {
  switch (cmd->kind) {
    case MP_CMD_LAUNCH:
      return cmd->control == 0 && cmd->kernel->num_parts == 1 && cmd->kernel->finish == NULL;
    case MP_CMD_COPY:
      return mp_copy_num_parts(cmd->bytes) == 1;
    default:
      return false;
  }
}

// The number of commands from `first` on that can be merged and that no jump enters.
static uint32_t fold_loops_straight_length(const fold_t *fold, uint32_t first) {
  const mp_program_t *program = fold->common.program;
  uint32_t count = 0;
  while (count < MOST && first + count < program->num_commands &&
         fold_loops_can_be_straight(&program->commands[first + count]) &&
         (count == 0 || !fold->is_entry[first + count])) {
    ++count;
  }
  return count;
}

static mp_status_t fold_loops_straight_at(fold_t *fold, uint32_t first, bool *out_can,
                                          uint32_t *out_last) {
  const uint32_t count = fold_loops_straight_length(fold, first);
  *out_can = false;
  if (count < LEAST) return NULL;
  *out_last = first + count - 1;
  return fold_loops_range(fold, first, *out_last, true, out_can);
}

// ---- the whole ----

static mp_status_t fold_loops_renumber(const fold_t *fold) {
  for (uint32_t i = 0; i < fold->commands.count; ++i) {
    mp_cmd_t *cmd = &fold->commands.items[i];
    if (cmd->num_targets == 0) continue;
    uint32_t *targets = MP_ARENA_ARRAY(fold->common.program->arena, uint32_t, cmd->num_targets);
    MP_RETURN_IF_NULL(targets);
    for (uint32_t t = 0; t < cmd->num_targets; ++t) targets[t] = fold->numbers[cmd->targets[t]];
    cmd->targets = targets;
  }
  return NULL;
}

static mp_status_t fold_loops_find_targets(fold_t *fold) {
  const mp_program_t *program = fold->common.program;
  fold->is_target = MP_ARENA_ARRAY(fold->common.scratch, bool, (size_t)program->num_commands + 1);
  fold->is_entry = MP_ARENA_ARRAY(fold->common.scratch, bool, (size_t)program->num_commands + 1);
  if (fold->is_target == NULL || fold->is_entry == NULL) return mp_status_out_of_memory();
  for (uint32_t i = 0; i < program->num_commands; ++i) {
    const mp_cmd_t *cmd = &program->commands[i];
    for (uint32_t t = 0; t < cmd->num_targets; ++t) fold->is_entry[cmd->targets[t]] = true;
    const bool is_back = cmd->kind == MP_CMD_JUMP && cmd->targets[0] <= i;
    if (is_back) fold->is_target[cmd->targets[0]] = true;
  }
  return NULL;
}

// Folds the loop or sequence that begins with command `first`, if there is one: `out_last` is its
// last command.
static mp_status_t fold_loops_next(fold_t *fold, uint32_t first, bool *out_is_folded,
                                   uint32_t *out_last) {
  *out_is_folded = false;
  if (fold->is_target[first]) {
    MP_RETURN_IF_ERROR(fold_loops_at(fold, first, out_is_folded, out_last));
  }
  if (*out_is_folded) return NULL;
  return fold_loops_straight_at(fold, first, out_is_folded, out_last);
}

static mp_status_t fold_loops(fold_t *fold) {
  mp_program_t *program = fold->common.program;
  const uint32_t count = program->num_commands;
  fold->numbers = MP_ARENA_ARRAY(fold->common.scratch, uint32_t, count);
  MP_RETURN_IF_NULL(fold->numbers);
  MP_RETURN_IF_ERROR(fold_loops_find_targets(fold));
  for (uint32_t i = 0; i < count; ++i) {
    bool is_folded = false;
    uint32_t last = i;
    MP_RETURN_IF_ERROR(fold_loops_next(fold, i, &is_folded, &last));
    if (is_folded) {
      i = last;
      continue;
    }
    fold->numbers[i] = fold->commands.count;
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(program->arena, &fold->commands, program->commands[i]));
  }
  MP_RETURN_IF_ERROR(fold_loops_renumber(fold));
  program->commands = fold->commands.items;
  program->num_commands = fold->commands.count;
  return NULL;
}

mp_status_t mp_plan_fold_loops(mp_program_t *program, const mp_place_t *places,
                               uint32_t num_places) {
  fold_t fold = {.common = {.program = program, .places = places}};
  MP_RETURN_IF_ERROR(mp_arena_create(&fold.common.scratch));
  mp_status_t status =
      mp_place_finder_create(fold.common.scratch, places, num_places, &fold.common.finder);
  if (status == NULL) status = fold_loops(&fold);
  mp_arena_release(fold.common.scratch);
  return status;
}
