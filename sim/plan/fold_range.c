// Merges a range of commands into one LOOP command, if sim/loops can run all of them.

#include "sim/base/assert.h"
#include "sim/base/containers/array.h"
#include "sim/base/containers/hash_map.h"
#include "sim/base/hash.h"
#include "sim/plan/plan.h"

// The number of a slot, by kind, index and offset.
typedef struct {
  uint64_t hash;
  uint32_t number;
} numbered_t;

// A range that is being folded.
typedef struct {
  const mp_fold_source_t *fold;
  uint32_t first, count;      // its commands
  mp_cmd_t *body;             // [count]: the commands, with targets that are numbers in this array
  MP_ARRAY(mp_slot_t) slots;  // in the program's arena
  MP_ARRAY(mp_loop_slot_t) infos;       // of the slots
  MP_ARRAY(const mp_place_t *) places;  // the places of the slots; NULL: unknown
  MP_HASH_MAP(numbered_t) numbers;
  mp_loop_builder_t *builder;
  uint32_t *operands;  // numbers of slots, room for those of one command
} range_t;

// ---- its commands ----

static mp_status_t fold_range_copy_body(range_t *r, uint32_t first) {
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

static uint64_t fold_range_hash(mp_slot_t slot) {
  const uint64_t place = (uint64_t)slot.kind << 32 | slot.index;
  return mp_hash_u64(mp_hash_u64(MP_HASH_START, place), slot.offset);
}

// The place that a slot of command `number` of the range refers to; NULL if it is not known.
static const mp_place_t *fold_range_find_place(const range_t *r, mp_slot_t slot, uint32_t number) {
  if (slot.kind != MP_SLOT_ARENA) return NULL;
  return mp_place_find(r->fold->finder, slot.offset, r->first + number);
}

// Places at the same offset at different times are different slots.
static uint32_t fold_range_find_slot(const range_t *r, mp_slot_t slot, uint32_t number) {
  const mp_place_t *place = fold_range_find_place(r, slot, number);
  const numbered_t *entry = NULL;
  MP_HASH_MAP_EACH(&r->numbers, fold_range_hash(slot), entry) {
    const mp_slot_t *other = &r->slots.items[entry->number];
    if (other->kind == slot.kind && other->index == slot.index && other->offset == slot.offset &&
        r->places.items[entry->number] == place) {
      return entry->number;
    }
  }
  return MP_LOOP_NO_SLOT;
}

static mp_status_t fold_range_add_slot(range_t *r, mp_slot_t slot, uint32_t command,
                                       bool is_written) {
  if (slot.kind == MP_SLOT_NONE) return NULL;
  const mp_program_t *program = r->fold->program;
  uint32_t number = fold_range_find_slot(r, slot, command);
  if (number == MP_LOOP_NO_SLOT) {
    mp_loop_slot_t info = {.memory = (uint64_t)slot.kind << 32 | slot.index, .offset = slot.offset};
    if (slot.kind == MP_SLOT_CONSTANT) {
      info.constant = (const char *)program->constants[slot.index].data + slot.offset;
    }
    const mp_place_t *place = fold_range_find_place(r, slot, command);
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(program->arena, &r->slots, slot));
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(program->arena, &r->infos, info));
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(r->fold->scratch, &r->places, place));
    number = r->slots.count - 1;
    MP_RETURN_IF_ERROR(MP_HASH_MAP_ADD(r->fold->scratch, &r->numbers,
                                       (&(numbered_t){fold_range_hash(slot), number})));
  }
  r->infos.items[number].is_written |= is_written;
  return NULL;
}

// Whether only commands of the range name the slot's place.
static bool fold_range_is_temporary(const range_t *r, uint32_t slot) {
  const mp_place_t *place = r->places.items[slot];
  return place != NULL && place->first_command >= r->first &&
         place->last_command < r->first + r->count;
}

// Whether the range also writes bytes of a temporary slot as part of a slot that is not temporary
// (at another time).
static bool fold_range_is_shared(const range_t *r, uint32_t slot) {
  const mp_place_t *place = r->places.items[slot];
  for (uint32_t i = 0; i < r->slots.count; ++i) {
    if (r->slots.items[i].kind != MP_SLOT_ARENA || !r->infos.items[i].is_written) continue;
    if (fold_range_is_temporary(r, i)) continue;
    const mp_place_t *other = r->places.items[i];
    if (other == NULL || (other->offset < place->offset + place->bytes &&
                          place->offset < other->offset + other->bytes)) {
      return true;
    }
  }
  return false;
}

// Marks temporary slots, and gives each memory of its own if other slots do not share it.
static void fold_range_part_temporary(const range_t *r) {
  for (uint32_t i = 0; i < r->slots.count; ++i) {
    mp_loop_slot_t *info = &r->infos.items[i];
    info->is_temporary = fold_range_is_temporary(r, i);
    if (!info->is_temporary || fold_range_is_shared(r, i)) continue;
    const uint64_t number = (uint64_t)(r->places.items[i] - r->fold->places);
    info->memory = (uint64_t)MP_SLOT_ARENA << 32 | (1 + number);
    info->offset = 0;
  }
}

static mp_status_t fold_range_find_slots(range_t *r) {
  uint32_t most = 0;
  for (uint32_t i = 0; i < r->count; ++i) {
    const mp_cmd_t *cmd = &r->body[i];
    for (uint32_t k = 0; k < cmd->num_operands; ++k) {
      MP_RETURN_IF_ERROR(fold_range_add_slot(r, cmd->operands[k], i, false));
    }
    for (uint32_t k = 0; k < cmd->num_results; ++k) {
      MP_RETURN_IF_ERROR(fold_range_add_slot(r, cmd->results[k], i, true));
    }
    const uint32_t count = cmd->num_operands + cmd->num_results;
    if (count > most) most = count;
  }
  fold_range_part_temporary(r);
  r->operands = MP_ARENA_ARRAY(r->fold->scratch, uint32_t, (size_t)most + 1);
  MP_RETURN_IF_NULL(r->operands);
  return NULL;
}

// ---- steps ----

static mp_status_t fold_range_add_kernel(range_t *r, uint32_t number, bool *out_can) {
  const mp_cmd_t *cmd = &r->body[number];
  uint32_t *results = r->operands + cmd->num_operands;
  for (uint32_t i = 0; i < cmd->num_operands; ++i) {
    r->operands[i] = fold_range_find_slot(r, cmd->operands[i], number);
  }
  for (uint32_t i = 0; i < cmd->num_results; ++i) {
    results[i] = fold_range_find_slot(r, cmd->results[i], number);
  }
  return mp_loop_add_kernel(r->builder, cmd->kernel, r->operands, cmd->num_operands, results,
                            cmd->num_results, out_can);
}

static mp_status_t fold_range_add_command(range_t *r, uint32_t number, bool *out_can) {
  const mp_cmd_t *cmd = &r->body[number];
  *out_can = true;
  mp_loop_begin_command(r->builder);
  const uint32_t operand =
      cmd->num_operands == 0 ? MP_LOOP_NO_SLOT : fold_range_find_slot(r, cmd->operands[0], number);
  const uint32_t result =
      cmd->num_results == 0 ? MP_LOOP_NO_SLOT : fold_range_find_slot(r, cmd->results[0], number);
  switch (cmd->kind) {
    case MP_CMD_LAUNCH:
      return fold_range_add_kernel(r, number, out_can);
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

// The number of the next back edge after `edge` that jumps to before `first`; UINT32_MAX if there
// is none. Such an edge belongs to the enclosing `while`.
static uint32_t fold_range_edge_around(const range_t *r, uint32_t edge, uint32_t number) {
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
static bool fold_range_is_in_condition(const range_t *r, uint32_t command, uint32_t edge) {
  for (uint32_t i = command; i < edge; ++i) {
    if (r->body[i].control == r->body[edge].control) return true;
  }
  return false;
}

static uint32_t fold_range_edge_command(const range_t *r, uint32_t number) {
  for (uint32_t i = 0;; ++i) {
    if (r->body[i].kind == MP_CMD_JUMP && r->body[i].targets[0] <= i && number-- == 0) return i;
  }
}

static mp_status_t fold_range_edges(const range_t *r, uint32_t count,
                                    const mp_loop_edge_t **out_edges) {
  mp_loop_edge_t *edges = MP_ARENA_ARRAY(r->fold->program->arena, mp_loop_edge_t, count);
  MP_RETURN_IF_NULL(edges);
  for (uint32_t number = 0; number < count; ++number) {
    const uint32_t edge = fold_range_edge_command(r, number);
    const uint32_t outer = fold_range_edge_around(r, edge, number);
    edges[number] = (mp_loop_edge_t){.control = r->body[edge].control, .outer = number};
    if (outer == UINT32_MAX) continue;
    edges[number].outer = outer;
    edges[number].is_in_condition =
        fold_range_is_in_condition(r, edge, fold_range_edge_command(r, outer));
  }
  *out_edges = edges;
  return NULL;
}

// ---- the command ----

// The slots of the command: all of the loop's, in the order of their numbers, and those that it
// writes.
static mp_status_t fold_range_make_command(const range_t *r, const mp_loop_t *loop,
                                           mp_cmd_t *out_command) {
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
  MP_RETURN_IF_ERROR(fold_range_edges(r, mp_loop_num_edges(loop), &edges));
  *out_command = (mp_cmd_t){.kind = MP_CMD_LOOP,
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
  return NULL;
}

mp_status_t mp_plan_fold_range(const mp_fold_source_t *fold, uint32_t first, uint32_t last,
                               bool is_straight, bool *out_can, mp_cmd_t *out_command) {
  mp_program_t *program = fold->program;
  range_t r = {.fold = fold, .first = first, .count = last + 1 - first};
  MP_RETURN_IF_ERROR(fold_range_copy_body(&r, first));
  MP_RETURN_IF_ERROR(fold_range_find_slots(&r));
  MP_RETURN_IF_ERROR(mp_loop_builder_create(program->arena, r.slots.count, r.infos.items, r.count,
                                            is_straight, &r.builder));
  *out_can = true;
  for (uint32_t i = 0; i < r.count && *out_can; ++i) {
    MP_RETURN_IF_ERROR(fold_range_add_command(&r, i, out_can));
  }
  if (!*out_can) return NULL;
  const mp_loop_t *loop = NULL;
  MP_RETURN_IF_ERROR(mp_loop_builder_end(r.builder, &loop));
  const uint64_t bytes = mp_loop_scratch_bytes(loop);
  if (bytes > program->scratch_bytes) program->scratch_bytes = bytes;
  return fold_range_make_command(&r, loop, out_command);
}
