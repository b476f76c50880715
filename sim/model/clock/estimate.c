// What a launch of a program would take, when nobody has launched it.
//
// A replay without paths goes round every loop once, and so tells what one round takes. Loops whose
// rounds are known (mp_cmd_t.rounds) then count as often as they go round, on the average of the
// devices: between rounds, devices do not come apart.
#include "sim/base/alloc.h"
#include "sim/model/clock/model_impl.h"

// Multiplies the visits of a loop's steps. The replay was at its condition twice and in its body
// once.
static void estimate_count_loop(const mp_twin_t *twin, uint32_t branch, double *visits) {
  const mp_twin_step_t *exit = &twin->steps[branch];
  const double rounds = (double)exit->rounds;
  const mp_twin_step_t *edge = &twin->steps[exit->targets[0] - 1];
  if (rounds < 0 || edge->kind != MP_TWIN_JUMP || edge->targets[0] > branch) return;
  for (uint32_t s = edge->targets[0]; s < exit->targets[0]; ++s) {
    visits[s] *= s <= branch ? (rounds + 1) / 2 : rounds;
  }
}

// What the launch takes longer than its replay, because its loops go round more often than once.
static double estimate_of_rounds(const mp_twin_t *twin, const mp_replay_books_t *books,
                                 double *visits) {
  double moments = 0;
  for (uint32_t s = 0; s < twin->num_steps; ++s) visits[s] = 1;
  for (uint32_t s = 0; s < twin->num_steps; ++s) {
    if (twin->steps[s].kind == MP_TWIN_BRANCH) estimate_count_loop(twin, s, visits);
  }
  for (uint32_t s = 0; s < twin->num_steps; ++s) {
    const mp_twin_step_t *step = &twin->steps[s];
    double once = (double)books->times[s];
    if (step->kind == MP_TWIN_MEET || step->kind == MP_TWIN_SEND || step->kind == MP_TWIN_RECV ||
        step->kind == MP_TWIN_DONE) {
      const mp_replay_meetings_t *met = &books->meetings[step->collective];
      once += (double)(met->members - met->hidden) + (double)met->waiting;
    }
    moments += (visits[s] - 1) * once / books->num_devices;
  }
  return moments / MP_MOMENTS_PER_SECOND;
}

static mp_status_t estimate(mp_model_program_t *program, double *visits, double *out_seconds) {
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
  *out_seconds = mp_moment_seconds(last) +
                 estimate_of_rounds(program->twin, mp_replay_books(program->replay), visits);
  return NULL;
}

mp_status_t mp_model_program_estimate(mp_model_program_t *program, double *out_seconds) {
  double *visits = mp_calloc(program->twin->num_steps, sizeof(*visits));
  MP_RETURN_IF_NULL(visits);
  mp_lock(&program->model->lock);
  mp_status_t status = estimate(program, visits, out_seconds);
  mp_unlock(&program->model->lock);
  mp_free(visits);
  return status;
}
