// Schedules: one row of functions per kind, and the order in which they are called.
#include "collectives/collective_schedule.h"

#include "collectives/collective_parts.h"
#include "collectives/reduction_tree.h"
#include "sim/base/alloc.h"
#include "sim/base/assert.h"
#include "sim/numeric/dims.h"

static const mp_collective_schedule_kind_t *const g_kinds[MP_GROUP_COLLECTIVE_KINDS] = {
#define ROW(name, text, run, schedule) [MP_COLLECTIVE_##name] = &mp_collective_schedule_##schedule,
    MP_GROUP_COLLECTIVES(ROW)
#undef ROW
};

static const mp_collective_schedule_kind_t *collective_schedule_kind_of(
    const mp_collective_schedule_t *schedule) {
  return g_kinds[schedule->collective->kind];
}

mp_status_t mp_collective_schedule_create(const mp_collective_t *collective, uint32_t group,
                                          const mp_group_layout_t *layout,
                                          mp_contribution_t *contributions, const uint32_t *names,
                                          mp_collective_schedule_t **out_schedule) {
  if (collective->kind >= MP_GROUP_COLLECTIVE_KINDS) {
    return mp_status_make(MP_INTERNAL, "%s is not a group operation", collective->name);
  }
  const size_t processes = layout->num_processes;
  const size_t payloads = MP_SCHEDULE_MAX_PHASES * processes;
  const size_t finds = processes * mp_group_layout_num_members(layout, layout->self);
  const size_t inputs = (size_t)layout->size * collective->num_operands;
  mp_collective_schedule_t *schedule =
      mp_calloc(1, sizeof(*schedule) +
                       payloads * (sizeof(mp_payload_view_t) + sizeof(void *) + sizeof(size_t)) +
                       inputs * sizeof(void *) + (layout->size + finds) * sizeof(size_t));
  MP_RETURN_IF_NULL(schedule);
  schedule->collective = collective;
  schedule->group = group;
  schedule->members = collective->groups->members + collective->groups->offsets[group];
  schedule->layout = layout;
  schedule->names = names;
  schedule->contributions = contributions;
  schedule->received = (mp_payload_view_t *)(schedule + 1);
  schedule->payloads = (void **)(schedule->received + payloads);
  schedule->inputs = (const void **)(schedule->payloads + payloads);
  schedule->sizes = (size_t *)(schedule->inputs + inputs);
  schedule->send_at = schedule->sizes + payloads;
  schedule->find_at = schedule->send_at + layout->size;
  schedule->num_phases = collective_schedule_kind_of(schedule)->num_phases(schedule);
  MP_ASSERT(schedule->num_phases >= 1 && schedule->num_phases <= MP_SCHEDULE_MAX_PHASES);
  *out_schedule = schedule;
  return NULL;
}

void mp_collective_schedule_release(mp_collective_schedule_t *schedule) {
  mp_free(schedule);
}

mp_status_t mp_collective_schedule_plan(mp_collective_schedule_t *schedule, uint32_t phase,
                                        bool *out_is_shared) {
  MP_ASSERT(phase < schedule->num_phases);
  for (uint32_t p = 0; p < schedule->layout->num_processes; ++p) {
    schedule->sizes[mp_collective_schedule_at(schedule, phase, p)] = MP_NO_PAYLOAD;
  }
  return collective_schedule_kind_of(schedule)->plan(schedule, phase, out_is_shared);
}

bool mp_collective_schedule_awaits(const mp_collective_schedule_t *schedule, uint32_t phase,
                                   uint32_t process) {
  if (process == schedule->layout->self) return false;
  return phase == 0 || collective_schedule_kind_of(schedule)->awaits(schedule, phase, process);
}

// The bytes of this process's members' inputs, which packing reads.
static double collective_schedule_input_bytes(const mp_collective_schedule_t *schedule) {
  return mp_operands_bytes(schedule->collective) *
         mp_group_layout_num_members(schedule->layout, schedule->layout->self);
}

uint32_t mp_collective_schedule_num_parts(const mp_collective_schedule_t *schedule,
                                          uint32_t phase) {
  MP_ASSERT(phase <= schedule->num_phases);
  if (phase == schedule->num_phases) {
    return mp_collective_num_chunks(schedule->collective, schedule->group);
  }
  return mp_parts_of(collective_schedule_input_bytes(schedule));
}

size_t mp_collective_schedule_scratch_bytes(const mp_collective_schedule_t *schedule) {
  if (!mp_collective_reduces(schedule->collective)) return 0;
  return mp_reduce_scratch_bytes(schedule->collective, schedule->layout->size,
                                 schedule->layout->num_processes);
}

mp_status_t mp_collective_schedule_pack(mp_collective_schedule_t *schedule, uint32_t phase,
                                        uint32_t part, void *scratch) {
  collective_schedule_kind_of(schedule)->pack(
      schedule, phase, part, mp_collective_schedule_num_parts(schedule, phase), scratch);
  return NULL;
}

mp_status_t mp_collective_schedule_receive(mp_collective_schedule_t *schedule, uint32_t phase,
                                           uint32_t process, const void *data, size_t bytes) {
  const size_t expected = collective_schedule_kind_of(schedule)->expected(schedule, phase, process);
  if (expected != MP_SIZE_BY_CONTENT && expected != bytes) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "%s (%s): process %u sent %zu bytes where %zu were expected",
                          schedule->collective->name, schedule->collective->location,
                          schedule->layout->ranks[process], bytes, expected);
  }
  MP_ASSERT(schedule->received[mp_collective_schedule_at(schedule, phase, process)].data == NULL);
  schedule->received[mp_collective_schedule_at(schedule, phase, process)] =
      (mp_payload_view_t){data, bytes};
  return NULL;
}

mp_status_t mp_collective_schedule_open(mp_collective_schedule_t *schedule) {
  const mp_collective_schedule_kind_t *kind = collective_schedule_kind_of(schedule);
  return kind->open == NULL ? NULL : kind->open(schedule);
}
