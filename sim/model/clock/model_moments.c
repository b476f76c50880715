// When entries of the log were done, and when that is to be seen.
#include <stdlib.h>

#include "sim/base/log.h"
#include "sim/base/os/clock.h"
#include "sim/base/os/host_clock.h"
#include "sim/model/clock/model_impl.h"

double mp_model_clock(const mp_model_t *model) {
  return model->is_virtual ? mp_host_clock_seconds() : mp_clock_seconds();
}

// Whether the end of an entry is still kept.
static bool model_moments_is_kept(const mp_model_t *model, uint64_t number) {
  return number != 0 && model->num_entries - number < MP_MODEL_KEPT_ENDS;
}

mp_moment_t mp_model_end_of(mp_model_t *model, mp_stamp_t stamp) {
  const uint64_t number = stamp >> 1;
  if (number == 0) return 0;
  for (uint32_t i = 0; i < model->beside.count; ++i) {
    mp_beside_t *beside = &model->beside.items[i];
    beside->is_used |= beside->entry != NULL && beside->entry->number == number;
  }
  return model_moments_is_kept(model, number) ? model->ends[number % MP_MODEL_KEPT_ENDS] : 0;
}

double mp_model_due_of(const mp_model_t *model, uint64_t number) {
  return model_moments_is_kept(model, number) ? model->dues[number % MP_MODEL_KEPT_ENDS] : 0;
}

void mp_model_begin_entry(mp_model_t *model, const mp_entry_t *entry, mp_moment_t begin) {
  if (model->pace == 0) return;
  const double offset = entry->asked - model->pace * mp_moment_seconds(begin);
  if (offset > model->offset) model->offset = offset;
}

void mp_model_end_entry(mp_model_t *model, uint64_t number, mp_moment_t end) {
  model->ends[number % MP_MODEL_KEPT_ENDS] = end;
  if (model->pace == 0) return;
  model->dues[number % MP_MODEL_KEPT_ENDS] = model->offset + model->pace * mp_moment_seconds(end);
}

// ---- How a script goes round ----

void mp_model_beat(mp_model_program_t *program, mp_moment_t begin) {
  const mp_model_t *model = program->model;
  if (model->pace == 0) return;
  const double stood = (model->offset - model->began) / model->pace;
  program->beats[program->num_beats % (MP_MODEL_RHYTHM + 1)] =
      (mp_beat_t){.began = stood + mp_moment_seconds(begin), .stood = stood};
  program->num_beats += 1;
}

static int model_moments_compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

mp_rhythm_t mp_model_rhythm_of(const mp_model_program_t *program) {
  double periods[MP_MODEL_RHYTHM], stood[MP_MODEL_RHYTHM];
  uint32_t count = 0;
  for (uint64_t i = program->num_beats; i > 1 && count < MP_MODEL_RHYTHM; --i, ++count) {
    const mp_beat_t *last = &program->beats[(i - 1) % (MP_MODEL_RHYTHM + 1)];
    const mp_beat_t *before = &program->beats[(i - 2) % (MP_MODEL_RHYTHM + 1)];
    periods[count] = last->began - before->began;
    stood[count] = last->stood - before->stood;
  }
  if (count == 0) return (mp_rhythm_t){.count = 0};
  qsort(periods, count, sizeof(*periods), model_moments_compare);
  qsort(stood, count, sizeof(*stood), model_moments_compare);
  return (mp_rhythm_t){
      .count = count, .seconds = periods[count / 2], .host_seconds = stood[count / 2]};
}

// ---- Lateness ----

// What goes without saying: a first step that is slow, say.
static const double k_late_seconds = 0.5, k_late_share = 0.05;

static void model_moments_log_late(mp_model_t *model, double since) {
  const double whole = since - model->began;
  if (model->is_late_logged || model->late < k_late_seconds || model->late < k_late_share * whole) {
    return;
  }
  model->is_late_logged = true;
  mp_log(MP_LOG_WARNING,
         "the machine is slower than the pod at this pace: after %.1f s the script has waited %.1f "
         "s longer than it would there, and its own clocks show that (clock: virtual shows the "
         "pod's time; a greater pace makes the pod slower)",
         whole, model->late);
}

void mp_model_note_late(mp_model_t *model, double due, double moment) {
  if (!(moment > due)) return;
  mp_lock(&model->lock);
  // Results that are late together are waited for together.
  const double from = due > model->late_until ? due : model->late_until;
  if (moment > from) {
    model->late += moment - from;
    model->late_until = moment;
    model_moments_log_late(model, moment);
  }
  mp_unlock(&model->lock);
}
