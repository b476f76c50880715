// mp_collective_run: the table of the kinds, and their division into chunks.
#include "collectives/collective.h"
#include "collectives/collective_parts.h"
#include "collectives/reduction_tree.h"
#include "sim/base/assert.h"

typedef mp_status_t (*chunk_fn_t)(const mp_collective_call_t *call);

static const chunk_fn_t g_algorithms[MP_GROUP_COLLECTIVE_KINDS] = {
#define ROW(name, text, run, ...) [MP_COLLECTIVE_##name] = mp_##run##_chunk,
    MP_GROUP_COLLECTIVES(ROW)
#undef ROW
};

static const char *const g_names[MP_COLLECTIVE_KINDS] = {
#define ROW(name, text, ...) [MP_COLLECTIVE_##name] = text,
    MP_COLLECTIVES(ROW)
#undef ROW
};

const char *mp_collective_kind_name(mp_collective_kind_t kind) {
  return g_names[kind];
}

bool mp_collective_kind_from_name(mp_str_t name, mp_collective_kind_t *out_kind) {
  for (uint32_t kind = 0; kind < MP_COLLECTIVE_KINDS; ++kind) {
    if (!mp_str_is(name, g_names[kind])) continue;
    *out_kind = (mp_collective_kind_t)kind;
    return true;
  }
  return false;
}

static uint32_t collective_run_group_size(const mp_collective_t *collective, uint32_t group) {
  MP_ASSERT(group < collective->groups->num_groups);
  return collective->groups->offsets[group + 1] - collective->groups->offsets[group];
}

// The bytes of the results of all groups.
static double collective_run_results(const mp_collective_t *collective) {
  double bytes = 0;
  for (uint32_t i = 0; i < collective->num_operands; ++i) {
    const mp_collective_operand_t *operand = &collective->operands[i];
    bytes += (double)mp_operand_bytes(operand, operand->result_dims);
  }
  return bytes * collective->groups->num_devices;
}

// The total of bytes read or written, which determines the number of chunks.
static double collective_run_traffic(const mp_collective_t *collective, uint32_t size) {
  double bytes = 0;
  for (uint32_t i = 0; i < collective->num_operands; ++i) {
    const mp_collective_operand_t *operand = &collective->operands[i];
    bytes += (double)mp_operand_bytes(operand, operand->dims) +
             (double)mp_operand_bytes(operand, operand->result_dims);
  }
  return bytes * size;
}

uint32_t mp_collective_num_chunks(const mp_collective_t *collective, uint32_t group) {
  return mp_parts_of(
      collective_run_traffic(collective, collective_run_group_size(collective, group)));
}

size_t mp_collective_scratch_bytes(const mp_collective_t *collective, uint32_t group) {
  if (!mp_collective_reduces(collective)) return 0;
  return mp_reduce_scratch_bytes(collective, collective_run_group_size(collective, group), 0);
}

static mp_status_t collective_run_run(const mp_collective_t *collective, uint32_t group,
                                      const mp_contribution_t *contributions, const uint32_t *names,
                                      mp_collective_schedule_t *schedule, uint32_t chunk,
                                      void *scratch) {
  const mp_collective_call_t call = {
      .collective = collective,
      .members = collective->groups->members + collective->groups->offsets[group],
      .size = collective_run_group_size(collective, group),
      .contributions = contributions,
      .names = names,
      .chunk = chunk,
      .num_chunks = mp_collective_num_chunks(collective, group),
      .scratch = scratch,
      .schedule = schedule,
      .copy = mp_copy_for(collective_run_results(collective)),
  };
  if (collective->kind >= MP_GROUP_COLLECTIVE_KINDS) {
    return mp_status_make(MP_INTERNAL, "%s is not a group operation", collective->name);
  }
  MP_ASSERT(chunk < call.num_chunks && call.size != 0);
  return g_algorithms[collective->kind](&call);
}

mp_status_t mp_collective_run(const mp_collective_t *collective, uint32_t group,
                              const mp_contribution_t *contributions, const uint32_t *names,
                              uint32_t chunk, void *scratch) {
  return collective_run_run(collective, group, contributions, names, NULL, chunk, scratch);
}

mp_status_t mp_collective_schedule_finish(mp_collective_schedule_t *schedule, uint32_t part,
                                          void *scratch) {
  MP_ASSERT(schedule->layout->size ==
            collective_run_group_size(schedule->collective, schedule->group));
  return collective_run_run(schedule->collective, schedule->group, schedule->contributions,
                            schedule->names, schedule, part, scratch);
}
