// Collectives of runs without values: which of them are computed, and how devices agree on that.
//
// A collective is computed if all its members have values for its operands, and operands and
// results are small; if several arrays share a collective, only the arrays that meet these
// conditions are computed. No member may wait for one that has no values or does not come. So
//  - only collectives count that every device executes in the same order, whatever is guessed or
//    lacks a value: those outside of branches, and outside of loops except loops with a constant
//    number of rounds;
//  - of these, only those whose operands can have values if all small parameters have some. If all
//    collectives of a program are computed from large arrays, its devices never meet;
//  - before each collective the members vote, in an all_reduce of three words: it is computed if
//    each member has the values of its operands, and runs the same program.
// So all members agree on which results have values, also if they are in several processes.
#include <string.h>

#include "sim/base/alloc.h"
#include "sim/base/hash.h"
#include "sim/runtime/runs/run.h"
#include "sim/runtime/runs/shapes_impl.h"

enum {
  // A waiting device keeps its region, so on larger pods no collective is computed.
  MEETINGS_MOST_DEVICES = 4096,
  MEETINGS_MOST_PASSES = 16,
};
static const uint64_t k_most_address_space = UINT64_C(1) << 43;

// ---- Votes ----

static void meetings_combine(const void *context, int64_t count, const void *a, const void *b,
                             void *out, void *scratch) {
  (void)context, (void)scratch;
  const uint64_t *x = a, *y = b;
  uint64_t *z = out;
  for (int64_t i = 0; i < count; ++i) z[i] = x[i] > y[i] ? x[i] : y[i];
}

static const int64_t k_vote_dims[] = {MP_SHAPE_VOTE_WORDS};
static const mp_collective_operand_t k_vote_operand = {MP_DTYPE_U64, MP_DTYPE_U64, 1, k_vote_dims,
                                                       k_vote_dims};

static mp_status_t meetings_make_vote(mp_arena_t *arena, const mp_collective_t *collective,
                                      const mp_collective_t **out_vote) {
  mp_collective_t *vote = MP_ARENA_NEW(arena, mp_collective_t);
  MP_RETURN_IF_NULL(vote);
  *vote = (mp_collective_t){
      .kind = MP_COLLECTIVE_ALL_REDUCE,
      .name = collective->name,
      .location = collective->location,
      .channel_id = collective->channel_id,
      .ordinal = collective->ordinal,
      .groups = collective->groups,
      .num_operands = 1,
      .operands = &k_vote_operand,
      .reducer = {.combine = meetings_combine,
                  .max_count = MP_SHAPE_VOTE_WORDS,
                  .digest = mp_hash_u64(MP_HASH_START, MP_SHAPE_VOTE_WORDS)},
  };
  vote->digest = mp_collective_digest(vote);
  *out_vote = vote;
  return NULL;
}

// ---- Parts ----

static double meetings_bytes_of(const mp_collective_operand_t *operand, const int64_t *dims) {
  double bytes = (double)mp_dtype_size(operand->dtype);
  for (uint32_t i = 0; i < operand->rank; ++i) bytes *= (double)dims[i];
  return bytes;
}

// Whether each operand of a collective has a result of its own, so that a part of it can be
// computed.
static bool meetings_has_parts(const mp_cmd_t *cmd) {
  const uint32_t count = cmd->collective->num_operands;
  return cmd->num_operands == count && cmd->num_results == count;
}

// Chooses the operands that can have values, as long as they are small together; all or none if the
// collective has no parts. Returns their number.
static uint32_t meetings_choose(const mp_shape_run_t *run, const mp_cmd_t *cmd,
                                const mp_shape_cmd_t *shape, uint32_t *out_chosen) {
  const mp_collective_t *collective = cmd->collective;
  // Ragged collectives can fail depending on the values.
  if (collective->kind == MP_COLLECTIVE_RAGGED_ALL_TO_ALL) return 0;
  uint32_t count = 0;
  double bytes = 0;
  for (uint32_t i = 0; i < cmd->num_operands; ++i) {
    const mp_collective_operand_t *operand = &collective->operands[i];
    const double more = meetings_bytes_of(operand, operand->dims) +
                        meetings_bytes_of(operand, operand->result_dims);
    if (!mp_shapes_get(run->known, shape->operands[i]) || bytes + more > MP_SMALL_BYTES) continue;
    bytes += more;
    out_chosen[count++] = i;
  }
  return count == cmd->num_operands || meetings_has_parts(cmd) ? count : 0;
}

static mp_status_t meetings_make_part(mp_arena_t *arena, const mp_collective_t *collective,
                                      mp_shape_meeting_t *meeting) {
  meeting->part = collective;
  if (meeting->num_operands == collective->num_operands) return NULL;
  mp_collective_t *part = MP_ARENA_NEW(arena, mp_collective_t);
  mp_collective_operand_t *operands =
      MP_ARENA_ARRAY(arena, mp_collective_operand_t, meeting->num_operands);
  if (part == NULL || operands == NULL) return mp_status_out_of_memory();
  *part = *collective;
  for (uint32_t i = 0; i < meeting->num_operands; ++i)
    operands[i] = collective->operands[meeting->operands[i]];
  part->operands = operands;
  part->num_operands = meeting->num_operands;
  part->digest = 0;
  part->digest = mp_collective_digest(part);
  meeting->part = part;
  return NULL;
}

// Records which part of a collective is computed; NULL: none.
static mp_status_t meetings_add(mp_shapes_t *shapes, const mp_shape_run_t *run, uint32_t number) {
  const mp_cmd_t *cmd = &shapes->program->commands[number];
  mp_shape_cmd_t *shape = &shapes->commands[number];
  mp_shape_meeting_t *meeting = MP_ARENA_NEW(shapes->arena, mp_shape_meeting_t);
  uint32_t *chosen = MP_ARENA_ARRAY(shapes->arena, uint32_t, cmd->num_operands);
  if (meeting == NULL || chosen == NULL) return mp_status_out_of_memory();
  meeting->operands = chosen;
  meeting->num_operands = meetings_choose(run, cmd, shape, chosen);
  if (meeting->num_operands == 0) return NULL;
  MP_RETURN_IF_ERROR(meetings_make_vote(shapes->arena, cmd->collective, &meeting->vote));
  MP_RETURN_IF_ERROR(meetings_make_part(shapes->arena, cmd->collective, meeting));
  if (meeting->num_operands > shapes->most_operands) shapes->most_operands = meeting->num_operands;
  shape->meeting = meeting;
  return NULL;
}

// ---- Which collectives are computed ----

typedef struct {
  mp_shapes_t *shapes;
  // Not a real run: `known` has what may have a value, or what is computed from constants, at the
  // current command of the walk.
  mp_shape_run_t *run;
  size_t words;      // of `known`
  uint64_t *heads;   // [num_loops][words] what is known at the beginning of each round
  uint64_t *leaves;  // [num_loops][words] what is known where the loop is left
  uint32_t *loops;   // [num_commands] the loop that begins here and is left by its last command;
                     // MP_SHAPES_NONE: none does
} meetings_t;

static void meetings_keep(uint64_t *bits, const uint64_t *others, size_t words) {
  for (size_t i = 0; i < words; ++i) bits[i] &= others[i];
}

static bool meetings_is_loop(const mp_cmd_t *cmd) {
  return cmd->kind == MP_CMD_BRANCH_UNLESS;
}

// Updates what is computed from constants alone. The number of a device differs between devices,
// and collectives of it may, too.
static void meetings_step_fixed(meetings_t *m, uint32_t pc) {
  const mp_cmd_t *cmd = &m->shapes->program->commands[pc];
  const mp_shape_cmd_t *shape = &m->shapes->commands[pc];
  if (cmd->kind == MP_CMD_LAUNCH || cmd->kind == MP_CMD_COPY) {
    (void)mp_shape_run_note_results(m->run, cmd, shape);
  } else if (shape->join == MP_SHAPES_NONE) {
    mp_shape_run_forget_results(m->run, pc);
  } else if (!meetings_is_loop(cmd) || !mp_shapes_get(m->run->known, shape->operands[0])) {
    mp_shape_run_guess(m->run, pc);
  } else {
    memcpy(m->leaves + shape->loop * m->words, m->run->known, m->words * sizeof(uint64_t));
  }
}

// Called before a command: where paths join, only what is known on every path is known.
static void meetings_come_together(meetings_t *m, uint32_t pc) {
  const mp_shape_cmd_t *commands = m->shapes->commands;
  uint64_t *known = m->run->known;
  for (uint32_t i = commands[pc].first_joined; i != MP_SHAPES_NONE; i = commands[i].next_joined) {
    if (mp_shapes_get(m->run->guessed, i)) continue;
    meetings_keep(known, m->leaves + commands[i].loop * m->words, m->words);
  }
  mp_shape_run_join(m->run, pc);
  if (m->loops[pc] != MP_SHAPES_NONE)
    meetings_keep(known, m->heads + commands[m->loops[pc]].loop * m->words, m->words);
}

// Called after a loop's last command: the next round begins with what is known now. True when that
// is less than was assumed.
static bool meetings_go_round(meetings_t *m, uint32_t pc) {
  const mp_cmd_t *cmd = &m->shapes->program->commands[pc];
  if (cmd->kind != MP_CMD_JUMP || cmd->targets[0] > pc) return false;
  uint64_t *head = m->heads + m->shapes->commands[m->loops[cmd->targets[0]]].loop * m->words;
  bool is_less = false;
  for (size_t i = 0; i < m->words; ++i) is_less |= (head[i] & ~m->run->known[i]) != 0;
  meetings_keep(head, m->run->known, m->words);
  return is_less;
}

static void meetings_begin(meetings_t *m) {
  memset(m->run->known, 0, m->words * sizeof(uint64_t));
  mp_shapes_set(m->run->known, MP_SHAPES_ALWAYS, true);
}

// Marks the commands that depend on a choice, except loops whose number of rounds is constant.
// `has_end` false: all choices count.
static void meetings_mark_decided(const meetings_t *m, bool has_end, bool *decided) {
  const mp_shapes_t *shapes = m->shapes;
  for (uint32_t i = 0; i < shapes->program->num_commands; ++i) {
    const mp_shape_cmd_t *shape = &shapes->commands[i];
    if (shape->join == MP_SHAPES_NONE) continue;
    const bool is_loop = meetings_is_loop(&shapes->program->commands[i]);
    const uint64_t *leave = m->leaves + (is_loop ? shape->loop * m->words : 0);
    if (is_loop && has_end && mp_shapes_get(leave, shape->operands[0])) continue;
    memset(decided + shape->begin, true, shape->join - shape->begin);
  }
}

// Walks through the program until what is known at the beginning of each loop holds in every round.
static void meetings_find_decided(meetings_t *m, bool *decided) {
  const uint32_t num_commands = m->shapes->program->num_commands;
  bool is_less = true;
  for (uint32_t pass = 0; pass < MEETINGS_MOST_PASSES && is_less; ++pass) {
    is_less = false;
    memset(m->leaves, 0, m->shapes->num_loops * m->words * sizeof(uint64_t));
    meetings_begin(m);
    for (uint32_t pc = 0; pc < num_commands; ++pc) {
      meetings_come_together(m, pc);
      meetings_step_fixed(m, pc);
      is_less |= meetings_go_round(m, pc);
    }
  }
  meetings_mark_decided(m, !is_less, decided);
}

static bool meetings_has_small(const mp_cmd_t *cmd) {
  const mp_collective_t *collective = cmd->collective;
  bool has_small = false;
  for (uint32_t i = 0; i < collective->num_operands; ++i) {
    const mp_collective_operand_t *operand = &collective->operands[i];
    has_small |= meetings_bytes_of(operand, operand->dims) <= MP_SMALL_BYTES;
  }
  return has_small;
}

// Updates what may have a value.
static mp_status_t meetings_step(meetings_t *m, uint32_t pc, bool is_decided) {
  const mp_cmd_t *cmd = &m->shapes->program->commands[pc];
  const mp_shape_cmd_t *shape = &m->shapes->commands[pc];
  mp_shape_run_join(m->run, pc);
  switch (cmd->kind) {
    case MP_CMD_LAUNCH:
    case MP_CMD_COPY:
    case MP_CMD_CALL:
      (void)mp_shape_run_note_results(m->run, cmd, shape);
      return NULL;
    case MP_CMD_REPLICA_ID:
    case MP_CMD_PARTITION_ID:
      mp_shape_run_know_results(m->run, pc);
      return NULL;
    case MP_CMD_BRANCH_UNLESS:
    case MP_CMD_SWITCH:
      if (shape->join == MP_SHAPES_NONE || mp_shapes_get(m->run->known, shape->operands[0]))
        return NULL;
      mp_shape_run_guess(m->run, pc);
      return NULL;
    case MP_CMD_COLLECTIVE:
      if (is_decided) break;
      MP_RETURN_IF_ERROR(meetings_add(m->shapes, m->run, pc));
      if (shape->meeting == NULL) break;
      mp_shape_run_know_part(m->run, pc, shape->meeting);
      return NULL;
    case MP_CMD_JUMP:
    case MP_CMD_DONE:
    case MP_CMD_LOOP:
    case MP_CMD_SEND:
    case MP_CMD_RECV:
    case MP_CMD_TALK:
      break;
  }
  mp_shape_run_forget_results(m->run, pc);
  return NULL;
}

static mp_status_t meetings_find(meetings_t *m, bool *decided) {
  const mp_program_t *program = m->shapes->program;
  meetings_find_decided(m, decided);
  meetings_begin(m);
  for (uint32_t i = 0; i < program->num_params; ++i) {
    const bool is_small = program->params[i].bytes <= MP_SMALL_BYTES;
    mp_shapes_set(m->run->known, m->shapes->params[i], is_small);
  }
  for (uint32_t pc = 0; pc < program->num_commands; ++pc)
    MP_RETURN_IF_ERROR(meetings_step(m, pc, decided[pc]));
  return NULL;
}

// Whether there is address space for the regions of all devices at once.
static bool meetings_has_space(const mp_program_t *program) {
  const uint64_t devices = (uint64_t)program->num_replicas * program->num_partitions;
  uint64_t bytes = program->arena_bytes;
  for (uint32_t r = 0; r < program->num_results; ++r) bytes += program->results[r].bytes;
  return devices <= MEETINGS_MOST_DEVICES && bytes <= k_most_address_space / devices;
}

static bool meetings_has_any(const mp_program_t *program) {
  if (!meetings_has_space(program)) return false;
  for (uint32_t i = 0; i < program->num_commands; ++i) {
    const mp_cmd_t *cmd = &program->commands[i];
    if (cmd->kind == MP_CMD_COLLECTIVE && meetings_has_small(cmd)) return true;
  }
  return false;
}

static void meetings_note_loops(meetings_t *m) {
  const mp_shapes_t *shapes = m->shapes;
  memset(m->heads, 0xff, shapes->num_loops * m->words * sizeof(uint64_t));
  for (uint32_t i = 0; i < shapes->program->num_commands; ++i) m->loops[i] = MP_SHAPES_NONE;
  for (uint32_t i = 0; i < shapes->program->num_commands; ++i)
    if (meetings_is_loop(&shapes->program->commands[i])) m->loops[shapes->commands[i].begin] = i;
}

mp_status_t mp_shapes_find_meetings(mp_shapes_t *shapes) {
  const mp_program_t *program = shapes->program;
  if (!meetings_has_any(program)) return NULL;
  meetings_t m = {.shapes = shapes, .words = mp_shapes_words(shapes->num_slots)};
  MP_RETURN_IF_ERROR(mp_shape_run_create(shapes, &m.run));
  const size_t bits = (size_t)shapes->num_loops * m.words + 1;
  m.heads = mp_calloc(2 * bits, sizeof(uint64_t));
  m.loops = mp_calloc(program->num_commands, sizeof(*m.loops));
  bool *decided = mp_calloc(program->num_commands + 1, sizeof(bool));
  mp_status_t status = NULL;
  if (m.heads == NULL || m.loops == NULL || decided == NULL) {
    status = mp_status_out_of_memory();
  } else {
    m.leaves = m.heads + bits;
    meetings_note_loops(&m);
    status = meetings_find(&m, decided);
  }
  mp_free(decided);
  mp_free(m.loops);
  mp_free(m.heads);
  mp_shape_run_release(m.run);
  return status;
}
