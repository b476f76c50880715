#include "sim/runtime/runs/shapes.h"

#include "sim/base/alloc.h"
#include "sim/base/containers/hash_map.h"
#include "sim/base/hash.h"
#include "sim/plan/program_blame.h"
#include "sim/runtime/runs/run.h"
#include "sim/runtime/runs/run_slots.h"
#include "sim/runtime/runs/shapes_impl.h"

enum {
  SHAPES_MOST_TRACKED = 64
};  // results of a fused op are distinguished up to so many operands

typedef struct {
  uint64_t hash;
  uint32_t number;
} known_slot_t;

// ---- What can be computed ----

typedef struct {
  mp_shapes_t *shapes;
  MP_HASH_MAP(known_slot_t) map;
} shapes_builder_t;

static mp_status_t shapes_number(shapes_builder_t *b, const mp_slot_t *slot, uint32_t *out) {
  *out = MP_SHAPES_ALWAYS;
  if (slot->kind == MP_SLOT_NONE || slot->kind == MP_SLOT_CONSTANT) return NULL;
  // Kinds and indices are small numbers, so the key is exact.
  uint64_t hash = mp_hash_u64(MP_HASH_START, (uint64_t)slot->kind << 32 | slot->index);
  hash = mp_hash_u64(hash, slot->offset);
  known_slot_t *entry;
  MP_HASH_MAP_GET(&b->map, hash, entry);
  if (entry != NULL) {
    *out = entry->number;
    return NULL;
  }
  *out = b->shapes->num_slots++;
  const known_slot_t added = {hash, *out};
  return MP_HASH_MAP_ADD(NULL, &b->map, &added);
}

static mp_status_t shapes_number_all(shapes_builder_t *b, const mp_slot_t *slots, uint32_t count,
                                     const uint32_t **out) {
  uint32_t *numbers = MP_ARENA_ARRAY(b->shapes->arena, uint32_t, count);
  MP_RETURN_IF_NULL(numbers);
  for (uint32_t i = 0; i < count; ++i) MP_RETURN_IF_ERROR(shapes_number(b, &slots[i], &numbers[i]));
  *out = numbers;
  return NULL;
}

static double shapes_bytes_of(mp_value_t *const *values, uint32_t count) {
  double bytes = 0;
  for (uint32_t i = 0; i < count; ++i) {
    int64_t size = 0;
    if (mp_type_num_bytes(values[i]->type, &size)) bytes += (double)size;
  }
  return bytes;
}

// The op that a kernel or a foreign function computes; NULL: the command is neither.
static const mp_op_t *shapes_op(const mp_cmd_t *cmd) {
  if (cmd->kind == MP_CMD_CALL) return cmd->call->op;
  return cmd->kind == MP_CMD_LAUNCH ? cmd->kernel->op : NULL;
}

static bool shapes_is_small(const mp_cmd_t *cmd) {
  if (cmd->kind == MP_CMD_COPY) return cmd->bytes <= MP_SMALL_BYTES;
  const mp_op_t *op = shapes_op(cmd);
  if (op == NULL) return false;
  double bytes = shapes_bytes_of(op->operands, op->num_operands);
  for (uint32_t i = 0; i < op->num_results; ++i) {
    mp_value_t *result = &op->results[i];
    bytes += shapes_bytes_of(&result, 1);
  }
  return bytes <= MP_SMALL_BYTES;
}

typedef struct {
  uint64_t hash;
  uint64_t mask;
} known_needs_t;

typedef MP_HASH_MAP(known_needs_t) known_needs_map_t;

// The operands of the op around the region, in bits, that a value in the region depends on.
static uint64_t shapes_needs_of(known_needs_map_t *map, const mp_value_t *value,
                                const mp_block_t *region) {
  if (value->block == region) return UINT64_C(1) << value->index;
  const known_needs_t *entry;
  MP_HASH_MAP_GET(map, mp_hash_pointer(value->op), entry);
  return entry == NULL ? UINT64_MAX : entry->mask;
}

// The operands that the regions of an op in the region use.
static mp_status_t shapes_needs_of_captures(known_needs_map_t *map, const mp_op_t *op,
                                            const mp_block_t *region, mp_arena_t *arena,
                                            uint64_t *mask) {
  mp_value_t **captures = NULL;
  uint32_t count = 0;
  if (op->num_regions != 0) MP_RETURN_IF_ERROR(mp_op_captures(op, arena, &captures, &count));
  for (uint32_t i = 0; i < count; ++i) *mask |= shapes_needs_of(map, captures[i], region);
  return NULL;
}

static mp_status_t shapes_walk_region(known_needs_map_t *map, const mp_block_t *region,
                                      mp_arena_t *arena, uint64_t *needs, uint32_t num_results) {
  for (const mp_op_t *op = region->first; op != NULL; op = op->next) {
    uint64_t mask = 0;
    for (uint32_t i = 0; i < op->num_operands; ++i) {
      const uint64_t of_operand = shapes_needs_of(map, op->operands[i], region);
      mask |= of_operand;
      if (op->next == NULL && i < num_results) needs[i] = of_operand;
    }
    MP_RETURN_IF_ERROR(shapes_needs_of_captures(map, op, region, arena, &mask));
    const known_needs_t entry = {mp_hash_pointer(op), mask};
    MP_RETURN_IF_ERROR(MP_HASH_MAP_SET(NULL, map, &entry));
  }
  return NULL;
}

// Finds what each result of a fused op depends on. Other ops need all their operands.
static mp_status_t shapes_find_needs(shapes_builder_t *b, const mp_cmd_t *cmd,
                                     const uint64_t **out_needs) {
  *out_needs = NULL;
  if (cmd->kind != MP_CMD_LAUNCH || cmd->kernel->op == NULL) return NULL;
  const mp_op_t *op = cmd->kernel->op;
  const bool can_tell = op->code == MP_OP_FUSION && op->num_operands < SHAPES_MOST_TRACKED &&
                        op->num_operands == cmd->num_operands &&
                        op->num_results == cmd->num_results;
  if (!can_tell) return NULL;
  uint64_t *needs = MP_ARENA_ARRAY(b->shapes->arena, uint64_t, cmd->num_results);
  MP_RETURN_IF_NULL(needs);
  known_needs_map_t map = {0};
  mp_status_t status =
      shapes_walk_region(&map, op->regions[0], b->shapes->arena, needs, cmd->num_results);
  MP_HASH_MAP_FREE(&map);
  *out_needs = needs;
  return status;
}

// Finds the commands that depend on a choice, from the form of control flow that the planner emits
// (sim/plan/emit_control.c). The branch that leaves a loop jumps to the command after the loop's
// back edge. The whole loop depends on it, including the condition, which is computed once more or
// once less. Each branch of a switch ends with a jump to the common end.
static void shapes_find_span(mp_shapes_t *shapes, uint32_t number, mp_shape_cmd_t *out) {
  const mp_program_t *program = shapes->program;
  const mp_cmd_t *cmd = &program->commands[number];
  out->join = out->next_joined = out->first_joined = MP_SHAPES_NONE;
  if (cmd->kind == MP_CMD_BRANCH_UNLESS) {
    const mp_cmd_t *edge = &program->commands[cmd->targets[0] - 1];
    MP_ASSERT(edge->kind == MP_CMD_JUMP && edge->targets[0] <= number);
    out->begin = edge->targets[0];
    out->join = cmd->targets[0];
    out->loop = shapes->num_loops++;
  } else if (cmd->kind == MP_CMD_SWITCH && cmd->num_targets > 1) {
    const mp_cmd_t *end = &program->commands[cmd->targets[1] - 1];
    MP_ASSERT(end->kind == MP_CMD_JUMP && end->targets[0] >= cmd->targets[cmd->num_targets - 1]);
    out->begin = number + 1;
    out->join = end->targets[0];
    const uint32_t branch = mp_model_program_branch(shapes->timed, cmd->control);
    out->branch = branch < cmd->num_targets ? branch : cmd->num_targets - 1;
  }
}

// Lists the choices at their joins, the innermost first.
static void shapes_list_joins(const mp_program_t *program, mp_shape_cmd_t *commands) {
  for (uint32_t i = 0; i < program->num_commands; ++i) {
    if (commands[i].join == MP_SHAPES_NONE) continue;
    mp_shape_cmd_t *join = &commands[commands[i].join];
    commands[i].next_joined = join->first_joined;
    join->first_joined = i;
  }
}

static mp_status_t shapes_add_command(shapes_builder_t *b, uint32_t number, mp_shape_cmd_t *out) {
  const mp_cmd_t *cmd = &b->shapes->program->commands[number];
  shapes_find_span(b->shapes, number, out);
  MP_RETURN_IF_ERROR(shapes_number_all(b, cmd->operands, cmd->num_operands, &out->operands));
  MP_RETURN_IF_ERROR(shapes_number_all(b, cmd->results, cmd->num_results, &out->results));
  out->is_small = shapes_is_small(cmd);
  return out->is_small ? shapes_find_needs(b, cmd, &out->needs) : NULL;
}

static mp_status_t shapes_number_border(shapes_builder_t *b, mp_slot_kind_t kind, uint32_t count,
                                        const uint32_t **out) {
  uint32_t *numbers = MP_ARENA_ARRAY(b->shapes->arena, uint32_t, count);
  MP_RETURN_IF_NULL(numbers);
  for (uint32_t i = 0; i < count; ++i) {
    const mp_slot_t slot = {.kind = kind, .index = i};
    MP_RETURN_IF_ERROR(shapes_number(b, &slot, &numbers[i]));
  }
  *out = numbers;
  return NULL;
}

static mp_status_t shapes_build(shapes_builder_t *b) {
  mp_shapes_t *shapes = b->shapes;
  const mp_program_t *program = shapes->program;
  MP_RETURN_IF_ERROR(mp_arena_create(&shapes->arena));
  shapes->num_slots = MP_SHAPES_FIRST;
  MP_RETURN_IF_ERROR(shapes_number_border(b, MP_SLOT_PARAM, program->num_params, &shapes->params));
  MP_RETURN_IF_ERROR(
      shapes_number_border(b, MP_SLOT_RESULT, program->num_results, &shapes->results));
  mp_shape_cmd_t *commands = MP_ARENA_ARRAY(shapes->arena, mp_shape_cmd_t, program->num_commands);
  MP_RETURN_IF_NULL(commands);
  for (uint32_t i = 0; i < program->num_commands; ++i) {
    MP_RETURN_IF_ERROR(shapes_add_command(b, i, &commands[i]));
  }
  shapes_list_joins(program, commands);
  shapes->commands = commands;
  return NULL;
}

static mp_status_t shapes_name_makers(mp_shapes_t *shapes) {
  const mp_program_t *program = shapes->program;
  shapes->makers = mp_calloc(program->num_results, sizeof(mp_name_t *));
  if (shapes->makers == NULL && program->num_results != 0) return mp_status_out_of_memory();
  for (uint32_t i = 0; i < program->num_results; ++i) {
    mp_strbuf_t text;
    mp_strbuf_init(&text);
    mp_program_describe_result(program, i, &text);
    mp_status_t status = NULL;
    if (text.size != 0) status = mp_name_create(mp_str(mp_strbuf_text(&text)), &shapes->makers[i]);
    mp_strbuf_deinit(&text);
    MP_RETURN_IF_ERROR(status);
  }
  return NULL;
}

// A large pod has thousands of arrays: those that cannot have values share one record of that.
static mp_status_t shapes_make_absent(mp_shapes_t *shapes) {
  const mp_program_t *program = shapes->program;
  shapes->absent = mp_calloc(program->num_results + 1, sizeof(mp_values_t *));
  MP_RETURN_IF_NULL(shapes->absent);
  for (uint32_t r = 0; r < program->num_results; ++r) {
    if (program->results[r].bytes <= MP_SMALL_BYTES) continue;
    MP_RETURN_IF_ERROR(mp_values_create(&shapes->absent[r]));
    mp_values_set_maker(shapes->absent[r], shapes->makers[r]);
  }
  return NULL;
}

mp_status_t mp_shapes_create(const mp_program_t *program, const mp_model_program_t *timed,
                             uint64_t trip_count, mp_shapes_t **out_shapes) {
  mp_shapes_t *shapes = mp_calloc(1, sizeof(*shapes));
  MP_RETURN_IF_NULL(shapes);
  shapes->program = program;
  shapes->timed = timed;
  shapes->trip_count = trip_count;
  shapes_builder_t builder = {.shapes = shapes};
  mp_status_t status = shapes_build(&builder);
  MP_HASH_MAP_FREE(&builder.map);
  if (status == NULL) status = shapes_name_makers(shapes);
  if (status == NULL) status = shapes_make_absent(shapes);
  shapes->timed = NULL;
  if (status != NULL) {
    mp_shapes_release(shapes);
    return status;
  }
  *out_shapes = shapes;
  return NULL;
}

void mp_shapes_release(mp_shapes_t *shapes) {
  if (shapes == NULL) return;
  for (uint32_t i = 0; shapes->makers != NULL && i < shapes->program->num_results; ++i)
    mp_name_release(shapes->makers[i]);
  mp_free(shapes->makers);
  for (uint32_t i = 0; shapes->absent != NULL && i < shapes->program->num_results; ++i)
    mp_values_release(shapes->absent[i]);
  mp_free(shapes->absent);
  mp_arena_release(shapes->arena);
  mp_free(shapes);
}

// ---- A run ----

mp_status_t mp_shape_run_create(const mp_shapes_t *shapes, mp_shape_run_t **out_run) {
  const mp_program_t *program = shapes->program;
  const size_t bits = mp_shapes_words(shapes->num_slots) + mp_shapes_words(program->num_commands);
  const size_t words = bits + shapes->num_loops;
  const size_t values = (size_t)program->num_params + program->num_results;
  const size_t pointers = values + 2 * (size_t)shapes->most_operands;
  char *memory =
      mp_calloc(1, sizeof(mp_shape_run_t) + words * sizeof(uint64_t) + pointers * sizeof(void *));
  MP_RETURN_IF_NULL(memory);
  mp_shape_run_t *run = (mp_shape_run_t *)(void *)memory;
  run->shapes = shapes;
  run->known = (uint64_t *)(void *)(memory + sizeof(*run));
  run->guessed = run->known + mp_shapes_words(shapes->num_slots);
  run->rounds = run->known + bits;
  run->values = (mp_values_t **)(void *)(run->known + words);
  run->inputs = (const void **)(void *)(run->values + values);
  run->outputs = (void **)(void *)(run->inputs + shapes->most_operands);
  for (uint32_t r = 0; r < program->num_results; ++r) {
    mp_values_t **result = &run->values[program->num_params + r];
    *result = mp_values_retain(shapes->absent[r]);
    if (*result != NULL) continue;
    mp_status_t status = mp_values_create(result);
    if (status != NULL) {
      mp_shape_run_release(run);
      return status;
    }
    mp_values_set_maker(*result, shapes->makers[r]);
  }
  *out_run = run;
  return NULL;
}

void mp_shape_run_release(mp_shape_run_t *run) {
  if (run == NULL) return;
  const mp_program_t *program = run->shapes->program;
  for (uint32_t i = 0; i < program->num_params + program->num_results; ++i)
    mp_values_release(run->values[i]);
  mp_free(run);
}

void mp_shape_run_add_param(mp_shape_run_t *run, const mp_storage_t *storage) {
  run->values[run->num_params++] = storage == NULL ? NULL : mp_values_retain(storage->values);
}

void mp_shape_run_add_result(mp_shape_run_t *run, mp_storage_t *storage) {
  mp_values_release(storage->values);
  storage->values =
      mp_values_retain(run->values[run->shapes->program->num_params + run->num_results++]);
}

mp_values_t *mp_shape_run_values(const mp_shape_run_t *run, uint32_t i) {
  return run->values[i];
}

void mp_shape_run_begin(mp_shape_run_t *run) {
  mp_shapes_set(run->known, MP_SHAPES_ALWAYS, true);
  for (uint32_t i = 0; i < run->num_params; ++i) {
    const mp_values_t *values = run->values[i];
    mp_shapes_set(run->known, run->shapes->params[i], values != NULL && values->are_there);
  }
}

void mp_shape_run_end(mp_shape_run_t *run) {
  const uint32_t num_params = run->shapes->program->num_params;
  for (uint32_t i = 0; i < run->num_results; ++i) {
    const bool is_known = mp_shapes_get(run->known, run->shapes->results[i]);
    MP_ASSERT(!is_known || run->shapes->absent[i] == NULL);
    if (is_known) run->values[num_params + i]->are_there = true;
  }
}

// The operands that have values, as bits; the last bit stands for all further operands.
static uint64_t shapes_known_operands(const mp_shape_run_t *run, const mp_cmd_t *cmd,
                                      const mp_shape_cmd_t *shape) {
  uint64_t mask = UINT64_MAX;
  for (uint32_t i = 0; i < cmd->num_operands; ++i) {
    if (mp_shapes_get(run->known, shape->operands[i])) continue;
    mask &= ~(UINT64_C(1) << (i < SHAPES_MOST_TRACKED ? i : SHAPES_MOST_TRACKED - 1));
  }
  return mask;
}

bool mp_shape_run_note_results(mp_shape_run_t *run, const mp_cmd_t *cmd,
                               const mp_shape_cmd_t *shape) {
  const uint64_t known = shape->is_small ? shapes_known_operands(run, cmd, shape) : 0;
  bool is_any = cmd->num_results == 0 && known == UINT64_MAX;
  for (uint32_t i = 0; i < cmd->num_results; ++i) {
    const uint64_t needs = shape->needs == NULL ? UINT64_MAX : shape->needs[i];
    const bool has = shape->is_small && (needs & ~known) == 0;
    if (shape->results[i] != MP_SHAPES_ALWAYS) mp_shapes_set(run->known, shape->results[i], has);
    is_any |= has;
  }
  return !is_any;
}

void mp_shape_run_forget_results(mp_shape_run_t *run, uint32_t number) {
  const mp_cmd_t *cmd = &run->shapes->program->commands[number];
  const mp_shape_cmd_t *shape = &run->shapes->commands[number];
  for (uint32_t i = 0; i < cmd->num_results; ++i) {
    if (shape->results[i] != MP_SHAPES_ALWAYS) mp_shapes_set(run->known, shape->results[i], false);
  }
}

void mp_shape_run_know_results(mp_shape_run_t *run, uint32_t number) {
  const mp_cmd_t *cmd = &run->shapes->program->commands[number];
  const mp_shape_cmd_t *shape = &run->shapes->commands[number];
  for (uint32_t i = 0; i < cmd->num_results; ++i)
    mp_shapes_set(run->known, shape->results[i], true);
}

// Whether a foreign function is skipped. Records which results get values.
static bool shapes_skips_call(mp_shape_run_t *run, const mp_cmd_t *cmd,
                              const mp_shape_cmd_t *shape) {
  const mp_foreign_call_t *call = cmd->call;
  const bool is_unknown = mp_shape_run_note_results(run, cmd, shape);
  if (call->is_absent || call->has_stages) {
    mp_shape_run_forget_results(run, (uint32_t)(cmd - run->shapes->program->commands));
    return true;
  }
  if (mp_op_has_effect(call->op)) return run->num_guessed != 0 || !call->may_block;
  return is_unknown;
}

bool mp_shape_run_has_operand(const mp_shape_run_t *run, const mp_cmd_t *cmd, uint32_t operand) {
  const uint32_t pc = (uint32_t)(cmd - run->shapes->program->commands);
  return mp_shapes_get(run->known, run->shapes->commands[pc].operands[operand]);
}

// Ends the guesses at choices that have their join here. Before the join the run follows the
// guessed path and computes values on it. After the join no value may depend on the guess:
// everything that any path could have written loses its value, even if the guessed path has not
// written it.
void mp_shape_run_join(mp_shape_run_t *run, uint32_t pc) {
  const mp_shape_cmd_t *commands = run->shapes->commands;
  for (uint32_t i = commands[pc].first_joined; i != MP_SHAPES_NONE; i = commands[i].next_joined) {
    if (!mp_shapes_get(run->guessed, i)) continue;
    mp_shapes_set(run->guessed, i, false);
    run->num_guessed -= 1;
    for (uint32_t c = commands[i].begin; c < commands[i].join; ++c)
      mp_shape_run_forget_results(run, c);
  }
}

void mp_shape_run_guess(mp_shape_run_t *run, uint32_t pc) {
  if (!mp_shapes_get(run->guessed, pc)) run->num_guessed += 1;
  mp_shapes_set(run->guessed, pc, true);
}

// True when the run leaves the loop at its condition. Once the end of a loop was guessed, it stays
// guessed: if the condition has a value again, it may end the loop earlier but never later, because
// a loop must not run for ever on a path that the program would not take.
static bool shapes_leaves_loop(mp_run_t *run, const mp_cmd_t *cmd, const mp_shape_cmd_t *shape,
                               bool is_known, bool is_guess) {
  uint64_t *rounds = &run->shape_run->rounds[shape->loop];
  const uint8_t *condition = mp_run_address(run, &cmd->operands[0]);
  const bool is_over = is_guess && *rounds >= run->shape_run->shapes->trip_count;
  const bool leaves = is_over || (is_known && *condition == 0);
  *rounds = leaves ? 0 : *rounds + 1;
  return leaves;
}

// Whether the outcome of a choice is guessed because its operand has no value. Then `*next` is set.
static bool shapes_guesses(mp_run_t *run, uint32_t pc, uint32_t *next) {
  mp_shape_run_t *shape_run = run->shape_run;
  const mp_cmd_t *cmd = &shape_run->shapes->program->commands[pc];
  const mp_shape_cmd_t *shape = &shape_run->shapes->commands[pc];
  if (shape->join == MP_SHAPES_NONE) return false;
  const bool is_loop = cmd->kind == MP_CMD_BRANCH_UNLESS;
  const bool was_guessed = mp_shapes_get(shape_run->guessed, pc);
  const bool is_known = mp_shapes_get(shape_run->known, shape->operands[0]);
  const bool is_guess = !is_known || (is_loop && was_guessed);
  uint64_t choice = shape->branch;
  if (is_loop) choice = shapes_leaves_loop(run, cmd, shape, is_known, is_guess);
  if (!is_guess) return false;
  if (!is_loop || choice == 1) *next = cmd->targets[is_loop ? 0 : choice];
  // The path records once per loop that its number of rounds was guessed.
  if (run->path != NULL) {
    const uint64_t mark = is_loop && was_guessed ? 0 : MP_PATH_GUESSED;
    mp_path_add(run->path, cmd->control, choice | mark, 1);
  }
  mp_shape_run_guess(shape_run, pc);
  return true;
}

// Records the rounds of a loop that is one command and is not executed: one round of each loop in
// it.
static void shapes_guess_rounds(mp_run_t *run, const mp_cmd_t *cmd) {
  for (uint32_t i = 0; i < mp_loop_num_edges(cmd->loop) && run->path != NULL; ++i) {
    mp_path_add(run->path, cmd->edges[i].control, MP_PATH_GUESSED, 1);
    mp_path_add(run->path, cmd->edges[i].control, 1, 1);
  }
}

bool mp_shape_run_skips(mp_run_t *run, uint32_t pc, uint32_t *next) {
  mp_shape_run_t *shape_run = run->shape_run;
  const mp_cmd_t *cmd = &shape_run->shapes->program->commands[pc];
  const mp_shape_cmd_t *shape = &shape_run->shapes->commands[pc];
  if (shape->first_joined != MP_SHAPES_NONE) mp_shape_run_join(shape_run, pc);
  switch (cmd->kind) {
    case MP_CMD_LAUNCH:
    case MP_CMD_COPY:
      return mp_shape_run_note_results(shape_run, cmd, shape);
    case MP_CMD_CALL:
      return run->call.state != MP_CALL_OVER && shapes_skips_call(shape_run, cmd, shape);
    case MP_CMD_REPLICA_ID:
    case MP_CMD_PARTITION_ID:
      mp_shape_run_know_results(shape_run, pc);
      return false;
    case MP_CMD_BRANCH_UNLESS:
    case MP_CMD_SWITCH:
      return shapes_guesses(run, pc, next);
    case MP_CMD_JUMP:
    case MP_CMD_DONE:
      return false;
    case MP_CMD_LOOP:
      shapes_guess_rounds(run, cmd);
      break;
    case MP_CMD_COLLECTIVE:
      if (shape->meeting != NULL) return false;
      break;
    case MP_CMD_SEND:
    case MP_CMD_RECV:
    case MP_CMD_TALK:
      break;
  }
  mp_shape_run_forget_results(shape_run, pc);
  return true;
}
