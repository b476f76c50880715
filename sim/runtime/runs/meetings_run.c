// A run without values at a collective: the members vote, and then all of them compute what they
// have agreed on (meetings.c), or none does.
#include "sim/runtime/runs/run.h"
#include "sim/runtime/runs/shapes_impl.h"

static bool meetings_run_has_operands(const mp_shape_run_t *run, const mp_shape_cmd_t *shape) {
  const mp_shape_meeting_t *meeting = shape->meeting;
  for (uint32_t i = 0; i < meeting->num_operands; ++i)
    if (!mp_shapes_get(run->known, shape->operands[meeting->operands[i]])) return false;
  return true;
}

void mp_shape_run_know_part(mp_shape_run_t *run, uint32_t number,
                            const mp_shape_meeting_t *meeting) {
  if (meeting->part == run->shapes->program->commands[number].collective) {
    mp_shape_run_know_results(run, number);
    return;
  }
  mp_shape_run_forget_results(run, number);
  for (uint32_t i = 0; i < meeting->num_operands; ++i) {
    const uint32_t result = run->shapes->commands[number].results[meeting->operands[i]];
    mp_shapes_set(run->known, result, true);
  }
}

static void meetings_run_cast_vote(mp_run_t *run, uint32_t pc) {
  mp_shape_run_t *shape_run = run->shape_run;
  const mp_shape_cmd_t *shape = &shape_run->shapes->commands[pc];
  shape_run->said[MP_SHAPE_VOTE_ABSENT] = !meetings_run_has_operands(shape_run, shape);
  shape_run->said[MP_SHAPE_VOTE_PROGRAM] = run->executable->digest;
  shape_run->said[MP_SHAPE_VOTE_INVERSE] = ~run->executable->digest;
  shape_run->vote_input = shape_run->said;
  shape_run->vote_output = shape_run->heard;
}

// Selects the inputs and outputs of the part.
static void meetings_run_take_part(mp_run_t *run, const mp_shape_meeting_t *meeting,
                                   mp_contribution_t *contribution) {
  mp_shape_run_t *shape_run = run->shape_run;
  for (uint32_t i = 0; i < meeting->num_operands; ++i) {
    shape_run->inputs[i] = run->inputs[meeting->operands[i]];
    shape_run->outputs[i] = run->outputs[meeting->operands[i]];
  }
  *contribution = (mp_contribution_t){shape_run->inputs, shape_run->outputs};
}

const mp_collective_t *mp_shape_run_part(mp_run_t *run, uint32_t pc,
                                         mp_contribution_t *contribution) {
  const mp_shape_cmd_t *shape = &run->shape_run->shapes->commands[pc];
  if (!meetings_run_has_operands(run->shape_run, shape)) return NULL;
  const bool is_whole =
      shape->meeting->part == run->shape_run->shapes->program->commands[pc].collective;
  if (!is_whole) meetings_run_take_part(run, shape->meeting, contribution);
  return shape->meeting->part;
}

const mp_collective_t *mp_shape_run_meeting(mp_run_t *run, uint32_t pc,
                                            mp_contribution_t *contribution) {
  mp_shape_run_t *shape_run = run->shape_run;
  const mp_collective_t *collective = shape_run->shapes->program->commands[pc].collective;
  const mp_shape_meeting_t *meeting = shape_run->shapes->commands[pc].meeting;
  // A device that is in no group does not vote, and gets zeros.
  shape_run->has_voted |= collective->groups->group_of[run->logical] < 0;
  if (shape_run->has_voted) {
    if (meeting->part != collective) meetings_run_take_part(run, meeting, contribution);
    return meeting->part;
  }
  if (run->arrival.collective == NULL) meetings_run_cast_vote(run, pc);
  *contribution = (mp_contribution_t){&shape_run->vote_input, &shape_run->vote_output};
  return meeting->vote;
}

bool mp_shape_run_has_met(mp_run_t *run, uint32_t pc) {
  mp_shape_run_t *shape_run = run->shape_run;
  if (shape_run->has_voted) {
    shape_run->has_voted = false;
    mp_shape_run_know_part(shape_run, pc, shape_run->shapes->commands[pc].meeting);
    return true;
  }
  const uint64_t *heard = shape_run->heard;
  const bool is_same = heard[MP_SHAPE_VOTE_PROGRAM] == ~heard[MP_SHAPE_VOTE_INVERSE];
  shape_run->has_voted = heard[MP_SHAPE_VOTE_ABSENT] == 0 && is_same;
  if (!shape_run->has_voted) mp_shape_run_forget_results(shape_run, pc);
  return !shape_run->has_voted;
}
