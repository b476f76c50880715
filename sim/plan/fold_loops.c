// Folds small loops: the commands of a loop, from the target of its back edge to the edge, become
// one LOOP command, if sim/loops can run them all. Of nested loops it takes the outermost one that
// it can. What is left of commands that follow each other without jumps, and have little to do
// each, becomes LOOP commands that go round once.

#include "sim/base/assert.h"
#include "sim/base/containers/array.h"
#include "sim/base/containers/hash_map.h"
#include "sim/base/hash.h"
#include "sim/plan/plan.h"

typedef struct {
  mp_program_t *program;
  mp_arena_t *scratch;
  MP_ARRAY(mp_cmd_t) commands;  // the program's new ones, in its arena
  uint32_t *numbers;            // [num_commands]: the new number of each command
  bool *is_target;              // [num_commands + 1]: of a back edge
  bool *is_entry;               // [num_commands + 1]: of any jump
  const mp_place_t *places;
  mp_place_finder_t *finder;  // of `places`
} fold_t;

// The number of a slot, by what it is.
typedef struct {
  uint64_t hash;
  uint32_t number;
} numbered_t;

// A loop that is being folded.
typedef struct {
  fold_t *fold;
  uint32_t first, count;           // its commands
  mp_cmd_t *body;                  // [count]: them, with targets that are numbers in this array
  MP_ARRAY(mp_slot_t) slots;       // in the program's arena
  MP_ARRAY(mp_loop_slot_t) infos;  // of the slots
  MP_ARRAY(const mp_place_t *) places;  // of the slots, where they are known; else NULL
  MP_HASH_MAP(numbered_t) numbers;
  mp_loop_builder_t *builder;
  uint32_t *operands;  // numbers of slots, room for those of one command
} range_t;

// ---- what can be folded ----

static bool fold_loops_can_be_in_loop(const mp_cmd_t *cmd) {
  switch (cmd->kind) {
    case MP_CMD_LAUNCH:
      // What has parts is for several workers, but for updates in place (mp_loop_add_kernel).
      return cmd->kernel->num_parts == 1 ||
             (cmd->kernel->op != NULL && cmd->kernel->op->code == MP_OP_DYNAMIC_UPDATE_SLICE);
    case MP_CMD_COPY:
    case MP_CMD_REPLICA_ID:
    case MP_CMD_PARTITION_ID:
    case MP_CMD_JUMP:
    case MP_CMD_BRANCH_UNLESS:
      return true;
    case MP_CMD_SWITCH:
      // Somebody wants to know which way it goes, and a LOOP command says how often its loops go
      // round, not more.
      return cmd->control == 0;
    default:
      return false;
  }
}

// Whether the commands leave the range only to what follows it, and jump back only by JUMP. In a
// longer body the commands themselves take little of the time.
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

static mp_status_t fold_loops_copy_body(range_t *r, uint32_t first) {
  const mp_program_t *program = r->fold->program;
  r->body = mp_arena_copy(program->arena, program->commands + first, r->count * sizeof(*r->body));
  MP_RETURN_IF_NULL(r->body);
  for (uint32_t i = 0; i < r->count; ++i) {
    mp_cmd_t *cmd = &r->body[i];
    uint32_t *targets = MP_ARENA_ARRAY(program->arena, uint32_t, (size_t)cmd->num_targets + 1);
    MP_RETURN_IF_NULL(targets);
    for (uint32_t t = 0; t < cmd->num_targets; ++t) targets[t] = cmd->targets[t] - first;
    cmd->targets = targets;
  }
  return NULL;
}

// ---- slots ----

static uint64_t fold_loops_hash(mp_slot_t slot) {
  const uint64_t place = (uint64_t)slot.kind << 32 | slot.index;
  return mp_hash_u64(mp_hash_u64(MP_HASH_START, place), slot.offset);
}

// The place that a slot of command `number` of the range is; NULL if it is not known.
static const mp_place_t *fold_loops_find_place(const range_t *r, mp_slot_t slot, uint32_t number) {
  if (slot.kind != MP_SLOT_ARENA) return NULL;
  return mp_place_find(r->fold->finder, slot.offset, r->first + number);
}

// Places that come one after the other are slots of their own.
static uint32_t fold_loops_find_slot(const range_t *r, mp_slot_t slot, uint32_t number) {
  const mp_place_t *place = fold_loops_find_place(r, slot, number);
  const numbered_t *entry = NULL;
  MP_HASH_MAP_EACH(&r->numbers, fold_loops_hash(slot), entry) {
    const mp_slot_t *other = &r->slots.items[entry->number];
    if (other->kind == slot.kind && other->index == slot.index && other->offset == slot.offset &&
        r->places.items[entry->number] == place) {
      return entry->number;
    }
  }
  return MP_LOOP_NO_SLOT;
}

static mp_status_t fold_loops_add_slot(range_t *r, mp_slot_t slot, uint32_t command,
                                       bool is_written) {
  if (slot.kind == MP_SLOT_NONE) return NULL;
  const mp_program_t *program = r->fold->program;
  uint32_t number = fold_loops_find_slot(r, slot, command);
  if (number == MP_LOOP_NO_SLOT) {
    mp_loop_slot_t info = {.memory = (uint64_t)slot.kind << 32 | slot.index, .offset = slot.offset};
    if (slot.kind == MP_SLOT_CONSTANT) {
      info.constant = (const char *)program->constants[slot.index].data + slot.offset;
    }
    const mp_place_t *place = fold_loops_find_place(r, slot, command);
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(program->arena, &r->slots, slot));
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(program->arena, &r->infos, info));
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(r->fold->scratch, &r->places, place));
    number = r->slots.count - 1;
    MP_RETURN_IF_ERROR(MP_HASH_MAP_ADD(r->fold->scratch, &r->numbers,
                                       (&(numbered_t){fold_loops_hash(slot), number})));
  }
  r->infos.items[number].is_written |= is_written;
  return NULL;
}

// Whether commands of the range alone name the slot's place.
static bool fold_loops_is_temporary(const range_t *r, uint32_t slot) {
  const mp_place_t *place = r->places.items[slot];
  return place != NULL && place->first_command >= r->first &&
         place->last_command < r->first + r->count;
}

// Whether the range writes bytes of the arena that a temporary slot has, and that are not only
// temporary, though not at the same time.
static bool fold_loops_is_shared(const range_t *r, uint32_t slot) {
  const mp_place_t *place = r->places.items[slot];
  for (uint32_t i = 0; i < r->slots.count; ++i) {
    if (r->slots.items[i].kind != MP_SLOT_ARENA || !r->infos.items[i].is_written) continue;
    if (fold_loops_is_temporary(r, i)) continue;
    const mp_place_t *other = r->places.items[i];
    if (other == NULL || (other->offset < place->offset + place->bytes &&
                          place->offset < other->offset + other->bytes)) {
      return true;
    }
  }
  return false;
}

// Temporary slots are memory of their own, as far as others can tell.
static void fold_loops_part_temporary(const range_t *r) {
  for (uint32_t i = 0; i < r->slots.count; ++i) {
    mp_loop_slot_t *info = &r->infos.items[i];
    info->is_temporary = fold_loops_is_temporary(r, i);
    if (!info->is_temporary || fold_loops_is_shared(r, i)) continue;
    const uint64_t number = (uint64_t)(r->places.items[i] - r->fold->places);
    info->memory = (uint64_t)MP_SLOT_ARENA << 32 | (1 + number);
    info->offset = 0;
  }
}

static mp_status_t fold_loops_find_slots(range_t *r) {
  uint32_t most = 0;
  for (uint32_t i = 0; i < r->count; ++i) {
    const mp_cmd_t *cmd = &r->body[i];
    for (uint32_t k = 0; k < cmd->num_operands; ++k) {
      MP_RETURN_IF_ERROR(fold_loops_add_slot(r, cmd->operands[k], i, false));
    }
    for (uint32_t k = 0; k < cmd->num_results; ++k) {
      MP_RETURN_IF_ERROR(fold_loops_add_slot(r, cmd->results[k], i, true));
    }
    const uint32_t count = cmd->num_operands + cmd->num_results;
    if (count > most) most = count;
  }
  fold_loops_part_temporary(r);
  r->operands = MP_ARENA_ARRAY(r->fold->scratch, uint32_t, (size_t)most + 1);
  MP_RETURN_IF_NULL(r->operands);
  return NULL;
}

// ---- steps ----

static mp_status_t fold_loops_add_kernel(range_t *r, uint32_t number, bool *out_can) {
  const mp_cmd_t *cmd = &r->body[number];
  uint32_t *results = r->operands + cmd->num_operands;
  for (uint32_t i = 0; i < cmd->num_operands; ++i) {
    r->operands[i] = fold_loops_find_slot(r, cmd->operands[i], number);
  }
  for (uint32_t i = 0; i < cmd->num_results; ++i) {
    results[i] = fold_loops_find_slot(r, cmd->results[i], number);
  }
  return mp_loop_add_kernel(r->builder, cmd->kernel, r->operands, cmd->num_operands, results,
                            cmd->num_results, out_can);
}

static mp_status_t fold_loops_add_command(range_t *r, uint32_t number, bool *out_can) {
  const mp_cmd_t *cmd = &r->body[number];
  *out_can = true;
  mp_loop_begin_command(r->builder);
  const uint32_t operand =
      cmd->num_operands == 0 ? MP_LOOP_NO_SLOT : fold_loops_find_slot(r, cmd->operands[0], number);
  const uint32_t result =
      cmd->num_results == 0 ? MP_LOOP_NO_SLOT : fold_loops_find_slot(r, cmd->results[0], number);
  switch (cmd->kind) {
    case MP_CMD_LAUNCH:
      return fold_loops_add_kernel(r, number, out_can);
    case MP_CMD_COPY:
      return mp_loop_add_copy(r->builder, operand, result, cmd->bytes);
    case MP_CMD_REPLICA_ID:
    case MP_CMD_PARTITION_ID:
      return mp_loop_add_number(r->builder, cmd->kind == MP_CMD_REPLICA_ID, result);
    case MP_CMD_JUMP:
      return mp_loop_add_jump(r->builder, cmd->targets[0]);
    case MP_CMD_BRANCH_UNLESS:
      return mp_loop_add_branch_unless(r->builder, operand, cmd->targets[0]);
    case MP_CMD_SWITCH:
      return mp_loop_add_switch(r->builder, operand, cmd->targets, cmd->num_targets);
    default:
      MP_ASSERT_NOT_REACHED();
      return NULL;
  }
}

// ---- back edges ----

// The number of the next back edge behind `edge` that goes further back than to `first`; UINT32_MAX
// if there is none. Such an edge belongs to the `while` around.
static uint32_t fold_loops_edge_around(const range_t *r, uint32_t edge, uint32_t number) {
  const uint32_t first = r->body[edge].targets[0];
  for (uint32_t i = edge + 1; i < r->count; ++i) {
    if (r->body[i].kind != MP_CMD_JUMP || r->body[i].targets[0] > i) continue;
    ++number;
    if (r->body[i].targets[0] <= first) return number;
  }
  return UINT32_MAX;
}

// Whether a command comes before the branch that leaves the `while` whose back edge is command
// `edge`.
static bool fold_loops_is_in_condition(const range_t *r, uint32_t command, uint32_t edge) {
  for (uint32_t i = command; i < edge; ++i) {
    if (r->body[i].control == r->body[edge].control) return true;
  }
  return false;
}

static uint32_t fold_loops_edge_command(const range_t *r, uint32_t number) {
  for (uint32_t i = 0;; ++i) {
    if (r->body[i].kind == MP_CMD_JUMP && r->body[i].targets[0] <= i && number-- == 0) return i;
  }
}

static mp_status_t fold_loops_edges(const range_t *r, uint32_t count,
                                    const mp_loop_edge_t **out_edges) {
  mp_loop_edge_t *edges = MP_ARENA_ARRAY(r->fold->program->arena, mp_loop_edge_t, count);
  MP_RETURN_IF_NULL(edges);
  for (uint32_t number = 0; number < count; ++number) {
    const uint32_t edge = fold_loops_edge_command(r, number);
    const uint32_t outer = fold_loops_edge_around(r, edge, number);
    edges[number] = (mp_loop_edge_t){.control = r->body[edge].control, .outer = number};
    if (outer == UINT32_MAX) continue;
    edges[number].outer = outer;
    edges[number].is_in_condition =
        fold_loops_is_in_condition(r, edge, fold_loops_edge_command(r, outer));
  }
  *out_edges = edges;
  return NULL;
}

// ---- the command ----

// The slots of the command: all of the loop's, in the order of their numbers, and those that it
// writes.
static mp_status_t fold_loops_add_loop(range_t *r, const mp_loop_t *loop) {
  const mp_program_t *program = r->fold->program;
  const uint32_t count = r->slots.count;
  mp_slot_t *written = MP_ARENA_ARRAY(program->arena, mp_slot_t, (size_t)count + 1);
  MP_RETURN_IF_NULL(written);
  uint32_t num_written = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (r->infos.items[i].is_written) written[num_written++] = r->slots.items[i];
  }
  const mp_cmd_t *edge = &r->body[r->count - 1];
  const mp_loop_edge_t *edges = NULL;
  MP_RETURN_IF_ERROR(fold_loops_edges(r, mp_loop_num_edges(loop), &edges));
  const mp_cmd_t command = {.kind = MP_CMD_LOOP,
                            .loc = edge->loc,
                            .name = edge->name,
                            .num_operands = count,
                            .num_results = num_written,
                            .operands = r->slots.items,
                            .results = written,
                            .loop = loop,
                            .body = r->body,
                            .num_body = r->count,
                            .edges = edges};
  return MP_ARRAY_PUSH(program->arena, &r->fold->commands, command);
}

// Makes one command of [first, last] if that is possible: a loop, or, if it is straight, commands
// without jumps.
static mp_status_t fold_loops_range(fold_t *fold, uint32_t first, uint32_t last, bool is_straight,
                                    bool *out_can) {
  mp_program_t *program = fold->program;
  range_t r = {.fold = fold, .first = first, .count = last + 1 - first};
  MP_RETURN_IF_ERROR(fold_loops_copy_body(&r, first));
  MP_RETURN_IF_ERROR(fold_loops_find_slots(&r));
  MP_RETURN_IF_ERROR(mp_loop_builder_create(program->arena, r.slots.count, r.infos.items, r.count,
                                            is_straight, &r.builder));
  *out_can = true;
  for (uint32_t i = 0; i < r.count && *out_can; ++i) {
    MP_RETURN_IF_ERROR(fold_loops_add_command(&r, i, out_can));
  }
  if (!*out_can) return NULL;
  const mp_loop_t *loop = NULL;
  MP_RETURN_IF_ERROR(mp_loop_builder_end(r.builder, &loop));
  const uint64_t bytes = mp_loop_scratch_bytes(loop);
  if (bytes > program->scratch_bytes) program->scratch_bytes = bytes;
  for (uint32_t i = first; i <= last; ++i) fold->numbers[i] = fold->commands.count;
  return fold_loops_add_loop(&r, loop);
}

// Folds the largest loop that begins with command `first`, if there is one: `out_last` is its last
// command.
static mp_status_t fold_loops_at(fold_t *fold, uint32_t first, bool *out_can, uint32_t *out_last) {
  const mp_program_t *program = fold->program;
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

// ---- commands that follow each other ----

// A run of at most MOST commands has its steps in the second cache. Fewer than LEAST are not worth
// the setting up.
enum { LEAST = 4, MOST = 48 };

static bool fold_loops_can_be_straight(const mp_cmd_t *cmd) {
  switch (cmd->kind) {
    case MP_CMD_LAUNCH:
      return cmd->kernel->num_parts == 1 && cmd->kernel->finish == NULL;
    case MP_CMD_COPY:
      return mp_copy_num_parts(cmd->bytes) == 1;
    default:
      return false;
  }
}

// The commands from `first` on that nothing jumps into, up to the last one that can be straight.
static uint32_t fold_loops_straight_length(const fold_t *fold, uint32_t first) {
  const mp_program_t *program = fold->program;
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
    uint32_t *targets = MP_ARENA_ARRAY(fold->program->arena, uint32_t, cmd->num_targets);
    MP_RETURN_IF_NULL(targets);
    for (uint32_t t = 0; t < cmd->num_targets; ++t) targets[t] = fold->numbers[cmd->targets[t]];
    cmd->targets = targets;
  }
  return NULL;
}

static mp_status_t fold_loops_find_targets(fold_t *fold) {
  const mp_program_t *program = fold->program;
  fold->is_target = MP_ARENA_ARRAY(fold->scratch, bool, (size_t)program->num_commands + 1);
  fold->is_entry = MP_ARENA_ARRAY(fold->scratch, bool, (size_t)program->num_commands + 1);
  if (fold->is_target == NULL || fold->is_entry == NULL) return mp_status_out_of_memory();
  for (uint32_t i = 0; i < program->num_commands; ++i) {
    const mp_cmd_t *cmd = &program->commands[i];
    for (uint32_t t = 0; t < cmd->num_targets; ++t) fold->is_entry[cmd->targets[t]] = true;
    const bool is_back = cmd->kind == MP_CMD_JUMP && cmd->targets[0] <= i;
    if (is_back) fold->is_target[cmd->targets[0]] = true;
  }
  return NULL;
}

// Folds what begins with command `first`, if something does: `out_last` is its last command.
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
  mp_program_t *program = fold->program;
  const uint32_t count = program->num_commands;
  fold->numbers = MP_ARENA_ARRAY(fold->scratch, uint32_t, count);
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
  fold_t fold = {.program = program, .places = places};
  MP_RETURN_IF_ERROR(mp_arena_create(&fold.scratch));
  mp_status_t status = mp_place_finder_create(fold.scratch, places, num_places, &fold.finder);
  if (status == NULL) status = fold_loops(&fold);
  mp_arena_release(fold.scratch);
  return status;
}
