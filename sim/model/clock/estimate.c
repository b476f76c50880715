// What a launch of a program would take, without launching it: a replay without paths, in which
// loops go round as often as the program says, or once.
#include <math.h>

#include "sim/base/alloc.h"
#include "sim/model/clock/model_impl.h"

// Kernels share the time of their step in proportion to their own.
static void estimate_add_figures(const mp_chip_program_t *chip_program, const mp_chip_step_t *step,
                                 double seconds, mp_model_estimate_t *estimate) {
  double all = 0;
  for (uint32_t k = step->first; k < step->end; ++k) all += chip_program->kernels[k].seconds;
  for (uint32_t k = step->first; k < step->end && all > 0; ++k) {
    const mp_chip_kernel_t *kernel = &chip_program->kernels[k];
    estimate->by_figure[kernel->figure] += seconds * kernel->seconds / all;
  }
}

static void estimate_add_work(const mp_chip_program_t *chip_program, const mp_replay_books_t *books,
                              mp_model_estimate_t *estimate) {
  for (uint32_t s = 0; s < chip_program->num_steps; ++s) {
    const mp_chip_step_t *step = &chip_program->steps[s];
    if (step->kind != MP_CHIP_STEP_WORK && step->kind != MP_CHIP_STEP_PART) continue;
    const double seconds = mp_moment_seconds(books->times[s]) / books->num_devices;
    estimate->work_seconds += seconds;
    estimate_add_figures(chip_program, step, seconds, estimate);
  }
}

static mp_status_t estimate(mp_model_program_t *program, mp_model_estimate_t *out_estimate) {
  const mp_path_t nothing = {0};
  for (uint32_t i = 0; i < program->num_devices; ++i) {
    program->starts[i] = 0;
    program->paths[i] = &nothing;
  }
  const mp_replay_launch_t launch = {.starts = program->starts, .paths = program->paths};
  MP_RETURN_IF_ERROR(mp_replay_run(program->replay, &launch, program->ends));
  mp_moment_t last = 0;
  for (uint32_t i = 0; i < program->num_devices; ++i) {
    if (program->ends[i] > last) last = program->ends[i];
  }
  *out_estimate = (mp_model_estimate_t){.seconds = mp_moment_seconds(last)};
  estimate_add_work(program->chip_program, mp_replay_books(program->replay), out_estimate);
  return NULL;
}

mp_status_t mp_model_program_estimate(mp_model_program_t *program,
                                      mp_model_estimate_t *out_estimate) {
  mp_lock(&program->model->lock);
  mp_status_t status = estimate(program, out_estimate);
  mp_unlock(&program->model->lock);
  return status;
}

// ---- Guesses ----

// Which branch is taken if the value that selects it was not computed (option `unknown_branch`):
// the one that costs most, or least, as the chip program has it. The cost of a branch is its work
// and what its collectives take alone; loops count as often as they go round, and if that is
// unknown as often as the option `unknown_trip_count` says; of branches in it the most expensive
// one counts.

typedef struct {
  mp_model_program_t *program;
  const mp_chip_program_t *chip_program;
  mp_status_t status;  // the first failure
} guess_t;

static double estimate_cost(guess_t *g, uint32_t begin, uint32_t end);

static double estimate_rounds(const guess_t *g, int64_t rounds) {
  return (double)(rounds < 0 ? g->program->model->unknown_trip_count : rounds);
}

static double estimate_cost_of_collective(guess_t *g, uint32_t number) {
  double seconds = 0;
  if (g->status != NULL) return 0;
  g->status = mp_model_collective_seconds(
      g->program, g->chip_program->collectives[number].collective, &seconds);
  return seconds;
}

// ---- Control flow without meetings ----

static double estimate_cost_of_flow(const guess_t *g, const mp_chip_flow_t *flow);

static double estimate_cost_of_block(const guess_t *g, const mp_chip_block_t *block) {
  double seconds = 0;
  if (block->step != UINT32_MAX)
    seconds = mp_moment_seconds(g->chip_program->steps[block->step].time);
  for (uint32_t i = 0; i < block->num_flows; ++i) {
    seconds += estimate_cost_of_flow(g, &block->flows[i]);
  }
  return seconds;
}

static double estimate_cost_of_flow(const guess_t *g, const mp_chip_flow_t *flow) {
  if (flow->is_loop) {
    const double rounds = estimate_rounds(g, flow->rounds);
    return (rounds + 1) * estimate_cost_of_block(g, &flow->blocks[0]) +
           rounds * estimate_cost_of_block(g, &flow->blocks[1]);
  }
  double most = 0;
  for (uint32_t i = 0; i < flow->num_blocks; ++i) {
    most = fmax(most, estimate_cost_of_block(g, &flow->blocks[i]));
  }
  return most;
}

// ---- Control flow with meetings ----

// Where all branches of a switch come together. Each ends with a jump there (sim/chip/chip
// program.c).
static uint32_t estimate_join(const guess_t *g, const mp_chip_step_t *step) {
  if (step->num_targets < 2) return step->targets[0];
  return g->chip_program->steps[step->targets[1] - 1].targets[0];
}

static uint32_t estimate_branch_end(const guess_t *g, const mp_chip_step_t *step, uint32_t branch) {
  return branch + 1 < step->num_targets ? step->targets[branch + 1] : estimate_join(g, step);
}

static double estimate_cost_of_switch(guess_t *g, const mp_chip_step_t *step) {
  double most = 0;
  for (uint32_t i = 0; i < step->num_targets; ++i) {
    most = fmax(most, estimate_cost(g, step->targets[i], estimate_branch_end(g, step, i)));
  }
  return most;
}

// The steps [begin, end), without jumps into or out of them.
static double estimate_cost(guess_t *g, uint32_t begin, uint32_t end) {
  double seconds = 0;
  for (uint32_t s = begin; s < end;) {
    const mp_chip_step_t *step = &g->chip_program->steps[s];
    uint32_t next = s + 1;
    double rounds;
    switch (step->kind) {
      case MP_CHIP_STEP_WORK:
      case MP_CHIP_STEP_DONE:
        seconds += mp_moment_seconds(step->time);
        break;
      case MP_CHIP_STEP_LOCAL:
        seconds += estimate_cost_of_flow(g, step->flow);
        next = step->targets[0];
        break;
      case MP_CHIP_STEP_MEET:
      case MP_CHIP_STEP_START:
      case MP_CHIP_STEP_RECV:
        seconds += estimate_cost_of_collective(g, step->collective);
        break;
      case MP_CHIP_STEP_COPY:
        seconds += g->chip_program->copies[step->copy].seconds;
        break;
      case MP_CHIP_STEP_BRANCH:  // its condition has counted once
        rounds = estimate_rounds(g, step->rounds);
        next = step->targets[0];
        seconds += rounds * (estimate_cost(g, g->chip_program->steps[next - 1].targets[0], s) +
                             estimate_cost(g, s + 1, next));
        break;
      case MP_CHIP_STEP_SWITCH:
        seconds += estimate_cost_of_switch(g, step);
        if (step->num_targets > 1) next = estimate_join(g, step);
        break;
      case MP_CHIP_STEP_AWAIT:
      case MP_CHIP_STEP_SEND:
      case MP_CHIP_STEP_JUMP:
      case MP_CHIP_STEP_PART:
      case MP_CHIP_STEP_END:
        break;
    }
    s = next;
  }
  return seconds;
}

// ---- Choosing ----

// Notes a branch with this cost, if it is the one that is wanted so far.
static void estimate_note(const guess_t *g, uint32_t control, uint32_t branch, double cost,
                          double *best) {
  const bool is_least = g->program->model->unknown_branch == MP_BRANCH_SMALLEST;
  if (branch != 0 && (is_least ? cost >= *best : cost <= *best)) return;
  *best = cost;
  g->program->branches[control] = branch;
}

static void estimate_of_flow(const guess_t *g, const mp_chip_flow_t *flow) {
  double best = 0;
  for (uint32_t i = 0; i < flow->num_blocks; ++i) {
    const mp_chip_block_t *block = &flow->blocks[i];
    if (!flow->is_loop) estimate_note(g, flow->control, i, estimate_cost_of_block(g, block), &best);
    for (uint32_t f = 0; f < block->num_flows; ++f) estimate_of_flow(g, &block->flows[f]);
  }
}

static void estimate_of_switch(guess_t *g, const mp_chip_step_t *step) {
  double best = 0;
  for (uint32_t i = 0; i < step->num_targets; ++i) {
    const double cost = estimate_cost(g, step->targets[i], estimate_branch_end(g, step, i));
    estimate_note(g, step->op->control, i, cost, &best);
  }
}

uint32_t mp_model_program_branch(const mp_model_program_t *program, uint32_t control) {
  const bool is_there = program->branches != NULL && control < program->chip_program->num_controls;
  return is_there ? program->branches[control] : 0;
}

mp_status_t mp_model_guess_branches(mp_model_program_t *program) {
  const mp_chip_program_t *chip_program = program->chip_program;
  const int32_t wanted = program->model->unknown_branch;
  program->branches = MP_ARENA_ARRAY(program->arena, uint32_t, chip_program->num_controls + 1);
  MP_RETURN_IF_NULL(program->branches);
  for (uint32_t i = 0; wanted >= 0 && i < chip_program->num_controls; ++i) {
    program->branches[i] = (uint32_t)wanted;
  }
  guess_t g = {.program = program, .chip_program = chip_program};
  for (uint32_t s = 0; wanted < 0 && s < chip_program->num_steps; ++s) {
    const mp_chip_step_t *step = &chip_program->steps[s];
    if (step->kind == MP_CHIP_STEP_LOCAL) estimate_of_flow(&g, step->flow);
    if (step->kind == MP_CHIP_STEP_SWITCH) estimate_of_switch(&g, step);
  }
  return g.status;
}
