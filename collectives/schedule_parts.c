// Shared by the kinds of schedules.
#include "collectives/collective_parts.h"

uint32_t mp_collective_schedule_one_phase(const mp_collective_schedule_t *schedule) {
  (void)schedule;
  return 1;
}

const void *mp_collective_schedule_take(mp_collective_schedule_t *schedule, uint32_t source,
                                        uint32_t destination, size_t bytes, size_t alignment) {
  const mp_group_layout_t *layout = schedule->layout;
  const uint32_t process = layout->process_of[source];
  const uint32_t own = mp_group_layout_num_members(layout, layout->self);
  size_t *cursor = &schedule->find_at[(size_t)process * own + layout->index_of[destination]];
  const size_t at = mp_align(*cursor, alignment);
  *cursor = at + bytes;
  const mp_payload_view_t *view =
      &schedule->received[mp_collective_schedule_at(schedule, 0, process)];
  MP_ASSERT(process != layout->self && *cursor <= view->bytes);
  return (const char *)view->data + at;
}
