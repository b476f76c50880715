#include "sim/model/report/step_parts.h"

void mp_step_parts(const mp_timing_t *timing, uint32_t step, uint32_t device, mp_moment_t begin,
                   mp_moment_t end, void (*tell)(void *context, const mp_step_part_t *part),
                   void *context) {
  const mp_timing_step_t *s = &timing->steps[step];
  double all = 0, done = 0;
  for (uint32_t i = s->first; i < s->end; ++i) all += timing->costs[i].seconds;
  if (all == 0 && s->first < s->end) {  // a loop whose rounds alone take time
    tell(context, &(mp_step_part_t){&timing->program->commands[s->first], &timing->costs[s->first],
                                    device, begin, end});
    return;
  }
  mp_moment_t at = begin;
  for (uint32_t i = s->first; i < s->end; ++i) {
    const mp_cost_t *cost = &timing->costs[i];
    if (cost->seconds == 0) continue;
    done += cost->seconds;
    const mp_moment_t until = begin + (mp_moment_t)((double)(end - begin) * (done / all));
    tell(context, &(mp_step_part_t){&timing->program->commands[i], cost, device, at, until});
    at = until;
  }
}
