#include "sim/model/clock/timing.h"

#include <math.h>

mp_moment_t mp_moment_of(double seconds) {
  if (!(seconds > 0)) return 0;
  const double moments = nearbyint(seconds * MP_MOMENTS_PER_SECOND);
  const double most = 9e18;
  return moments < most ? (mp_moment_t)moments : (mp_moment_t)most;
}

double mp_moment_seconds(mp_moment_t moment) {
  return (double)moment / MP_MOMENTS_PER_SECOND;
}

const mp_cmd_t *mp_timing_collective(const mp_timing_t *timing, uint32_t number) {
  return &timing->program->commands[timing->collectives[number]];
}

mp_moment_t mp_timing_loop(const mp_timing_t *timing, const mp_timing_step_t *step,
                           const uint64_t *edges) {
  mp_cost_t cost;
  mp_cost_of_loop(&timing->program->commands[step->first], &timing->costs[step->first], edges,
                  &cost);
  return mp_moment_of(cost.seconds);
}

static mp_timing_kind_t timing_kind_of(mp_cmd_kind_t kind) {
  switch (kind) {
    case MP_CMD_LOOP:
      return MP_TIMING_LOOP;
    case MP_CMD_COLLECTIVE:
      return MP_TIMING_MEET;
    case MP_CMD_SEND:
      return MP_TIMING_SEND;
    case MP_CMD_RECV:
      return MP_TIMING_RECV;
    case MP_CMD_JUMP:
      return MP_TIMING_JUMP;
    case MP_CMD_BRANCH_UNLESS:
      return MP_TIMING_BRANCH;
    case MP_CMD_SWITCH:
      return MP_TIMING_SWITCH;
    case MP_CMD_DONE:
      return MP_TIMING_END;
    case MP_CMD_LAUNCH:
    case MP_CMD_CALL:
    case MP_CMD_COPY:
    case MP_CMD_REPLICA_ID:
    case MP_CMD_PARTITION_ID:
      break;
  }
  return MP_TIMING_WORK;
}

typedef struct {
  const mp_program_t *program;
  mp_arena_t *arena;
  bool *is_target;    // [num_commands] a jump goes there
  uint32_t *step_of;  // [num_commands] the step that a command is in
  mp_timing_step_t *steps;
  uint32_t *collectives;
  mp_timing_t *timing;
} timing_builder_t;

static void timing_mark_targets(timing_builder_t *b) {
  for (uint32_t i = 0; i < b->program->num_commands; ++i) {
    const mp_cmd_t *cmd = &b->program->commands[i];
    for (uint32_t t = 0; t < cmd->num_targets; ++t) b->is_target[cmd->targets[t]] = true;
  }
}

// True when the command can be part of the last step.
static bool timing_continues(const timing_builder_t *b, uint32_t command, mp_timing_kind_t kind) {
  if (kind != MP_TIMING_WORK || b->is_target[command] || b->timing->num_steps == 0) return false;
  return b->steps[b->timing->num_steps - 1].kind == MP_TIMING_WORK;
}

static void timing_add(timing_builder_t *b, uint32_t command) {
  mp_timing_t *timing = b->timing;
  const mp_timing_kind_t kind = timing_kind_of(b->program->commands[command].kind);
  if (!timing_continues(b, command, kind)) {
    b->steps[timing->num_steps++] = (mp_timing_step_t){.kind = kind, .first = command};
  }
  mp_timing_step_t *step = &b->steps[timing->num_steps - 1];
  step->end = command + 1;
  b->step_of[command] = timing->num_steps - 1;
  if (kind == MP_TIMING_WORK) step->time += mp_moment_of(timing->costs[command].seconds);
  if (kind == MP_TIMING_MEET || kind == MP_TIMING_SEND || kind == MP_TIMING_RECV) {
    step->collective = timing->num_collectives;
    b->collectives[timing->num_collectives++] = command;
  }
  timing->has_choices |=
      kind == MP_TIMING_LOOP || kind == MP_TIMING_BRANCH || kind == MP_TIMING_SWITCH;
}

static mp_status_t timing_set_targets(timing_builder_t *b) {
  for (uint32_t i = 0; i < b->timing->num_steps; ++i) {
    mp_timing_step_t *step = &b->steps[i];
    const mp_cmd_t *cmd = &b->program->commands[step->first];
    if (cmd->num_targets == 0 || step->kind == MP_TIMING_WORK) continue;
    uint32_t *targets = MP_ARENA_ARRAY(b->arena, uint32_t, cmd->num_targets);
    MP_RETURN_IF_NULL(targets);
    for (uint32_t t = 0; t < cmd->num_targets; ++t) targets[t] = b->step_of[cmd->targets[t]];
    step->num_targets = cmd->num_targets;
    step->targets = targets;
  }
  return NULL;
}

mp_status_t mp_timing_create(const mp_chip_t *chip, const mp_program_t *program, mp_arena_t *arena,
                             const mp_timing_t **out_timing) {
  const uint32_t count = program->num_commands;
  timing_builder_t b = {
      .program = program,
      .arena = arena,
      .is_target = MP_ARENA_ARRAY(arena, bool, count),
      .step_of = MP_ARENA_ARRAY(arena, uint32_t, count),
      .steps = MP_ARENA_ARRAY(arena, mp_timing_step_t, count),
      .collectives = MP_ARENA_ARRAY(arena, uint32_t, count),
      .timing = MP_ARENA_NEW(arena, mp_timing_t),
  };
  MP_RETURN_IF_NULL(b.is_target);
  MP_RETURN_IF_NULL(b.step_of);
  MP_RETURN_IF_NULL(b.steps);
  MP_RETURN_IF_NULL(b.collectives);
  MP_RETURN_IF_NULL(b.timing);
  b.timing->program = program;
  b.timing->steps = b.steps;
  b.timing->collectives = b.collectives;
  MP_RETURN_IF_ERROR(mp_cost_of_program(chip, program, arena, &b.timing->costs));
  timing_mark_targets(&b);
  for (uint32_t i = 0; i < count; ++i) timing_add(&b, i);
  MP_RETURN_IF_ERROR(timing_set_targets(&b));
  *out_timing = b.timing;
  return NULL;
}
