#include "sim/model/report/step_parts.h"

void mp_step_parts(const mp_twin_t *twin, uint32_t step, uint32_t device, mp_moment_t begin,
                   mp_moment_t end, void (*tell)(void *context, const mp_step_part_t *part),
                   void *context) {
  const mp_twin_step_t *s = &twin->steps[step];
  double all = 0, done = 0;
  for (uint32_t i = s->first; i < s->end; ++i) all += twin->kernels[i].seconds;
  mp_moment_t at = begin;
  for (uint32_t i = s->first; i < s->end; ++i) {
    const mp_twin_kernel_t *kernel = &twin->kernels[i];
    if (kernel->seconds == 0) continue;
    done += kernel->seconds;
    const mp_moment_t until = begin + (mp_moment_t)((double)(end - begin) * (done / all));
    tell(context, &(mp_step_part_t){kernel, i, device, at, until});
    at = until;
  }
}
