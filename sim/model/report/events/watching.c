#include "sim/model/report/events/watching.h"

void mp_step_parts(const mp_chip_program_t *chip_program, const mp_step_span_t *span,
                   void (*tell)(void *context, const mp_step_part_t *part), void *context) {
  const mp_chip_step_t *s = &chip_program->steps[span->step];
  const double time = (double)(span->end - span->begin);
  double all = 0, done = 0;
  for (uint32_t i = s->first; i < s->end; ++i) all += chip_program->kernels[i].seconds;
  mp_moment_t at = span->begin;
  for (uint32_t i = s->first; i < s->end; ++i) {
    const mp_chip_kernel_t *kernel = &chip_program->kernels[i];
    if (kernel->seconds == 0) continue;
    done += kernel->seconds;
    const mp_moment_t until = span->begin + (mp_moment_t)(time * (done / all));
    tell(context, &(mp_step_part_t){kernel, i, span->device, at, until});
    at = until;
  }
}

// ---- names ----

mp_str_t mp_op_path(const mp_loc_t *loc) {
  return mp_loc_path(loc);
}

bool mp_op_source(const mp_loc_t *loc, mp_str_t *out_file, uint32_t *out_line) {
  const mp_loc_t *file = mp_loc_find(loc).file;
  if (file == NULL) return false;
  *out_file = file->text;
  *out_line = file->line;
  return true;
}

// ---- an observer that does nothing ----

static void watching_on_enqueue(void *context, const mp_model_program_t *program,
                                mp_moment_t moment) {
  (void)context, (void)program, (void)moment;
}

static void watching_on_launch(void *context, const mp_model_program_t *program, uint32_t device,
                               int64_t traced, mp_moment_t begin, mp_moment_t end) {
  (void)context, (void)program, (void)device, (void)traced, (void)begin, (void)end;
}

static void watching_on_work(void *context, const mp_model_program_t *program, uint32_t device,
                             uint32_t step, mp_moment_t begin, mp_moment_t end) {
  (void)context, (void)program, (void)device, (void)step, (void)begin, (void)end;
}

static void watching_on_meeting(void *context, const mp_model_program_t *program,
                                const mp_model_meeting_t *meeting) {
  (void)context, (void)program, (void)meeting;
}

static void watching_on_stream(void *context, const mp_model_program_t *program, uint32_t device,
                               uint32_t collective, mp_moment_t begin, mp_moment_t end) {
  (void)context, (void)program, (void)device, (void)collective, (void)begin, (void)end;
}

static void watching_on_message(void *context, const mp_model_program_t *program,
                                const mp_model_message_t *message) {
  (void)context, (void)program, (void)message;
}

static void watching_on_link(void *context, const mp_model_program_t *program,
                             const mp_model_carried_t *carried) {
  (void)context, (void)program, (void)carried;
}

static void watching_on_transfer(void *context, const mp_model_transfer_t *transfer,
                                 mp_moment_t begin, mp_moment_t end) {
  (void)context, (void)transfer, (void)begin, (void)end;
}

mp_model_observer_t mp_watching_silent_observer(void) {
  return (mp_model_observer_t){.on_enqueue = watching_on_enqueue,
                               .on_launch = watching_on_launch,
                               .on_work = watching_on_work,
                               .on_meeting = watching_on_meeting,
                               .on_stream = watching_on_stream,
                               .on_message = watching_on_message,
                               .on_link = watching_on_link,
                               .on_transfer = watching_on_transfer};
}
