// When entries of the log were done, and when that is to be seen.
#include "sim/model/clock/model_impl.h"

// Whether the end of an entry is still kept.
static bool model_moments_is_kept(const mp_model_t *model, uint64_t number) {
  return number != 0 && model->num_entries - number < MP_MODEL_KEPT_ENDS;
}

mp_moment_t mp_model_end_of(mp_model_t *model, mp_stamp_t stamp) {
  const uint64_t number = stamp >> 1;
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
