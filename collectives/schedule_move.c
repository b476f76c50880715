// Moves between processes: whole inputs for all (all_gather, broadcast), or a part for each
// destination (permute, all_to_all, exchange).
#include <string.h>

#include "collectives/collective_parts.h"
#include "sim/base/assert.h"
#include "sim/numeric/dims.h"

static size_t schedule_move_operand_bytes(const mp_collective_operand_t *operand) {
  return (size_t)mp_dims_product(operand->dims, 0, operand->rank) * mp_dtype_size(operand->dtype);
}

// ---- Whole inputs ----

static size_t schedule_move_member_bytes(const mp_collective_t *collective) {
  size_t bytes = 0;
  for (uint32_t i = 0; i < collective->num_operands; ++i) {
    bytes += mp_align64(schedule_move_operand_bytes(&collective->operands[i]));
  }
  return bytes;
}

// The number of a process's members that give their inputs to the others: all, except in a
// broadcast, where only position 0 does.
static uint32_t schedule_move_num_givers(const mp_collective_schedule_t *schedule,
                                         uint32_t process) {
  if (schedule->collective->kind == MP_COLLECTIVE_BROADCAST) {
    return schedule->layout->process_of[0] == process ? 1 : 0;
  }
  return mp_group_layout_num_members(schedule->layout, process);
}

static size_t schedule_move_given_bytes(const mp_collective_schedule_t *schedule,
                                        uint32_t process) {
  return schedule_move_num_givers(schedule, process) *
         schedule_move_member_bytes(schedule->collective);
}

// The bytes that a process passes on within its host: the inputs of the others of its column.
static size_t schedule_move_handed_on_bytes(const mp_collective_schedule_t *schedule,
                                            uint32_t process) {
  const mp_group_layout_t *layout = schedule->layout;
  size_t bytes = 0;
  for (uint32_t host = 0; host < layout->num_hosts; ++host) {
    const uint32_t other = mp_group_layout_process_at(layout, host, layout->column_of[process]);
    if (other != process) bytes += schedule_move_given_bytes(schedule, other);
  }
  return bytes;
}

static size_t schedule_move_inputs_expected(const mp_collective_schedule_t *schedule,
                                            uint32_t phase, uint32_t process) {
  const mp_group_layout_t *layout = schedule->layout;
  if (phase == 1) return schedule_move_handed_on_bytes(schedule, process);
  const bool is_direct =
      mp_group_layout_is_near(layout, process) || mp_group_layout_is_in_column(layout, process);
  return is_direct ? schedule_move_given_bytes(schedule, process) : 0;
}

static bool schedule_move_inputs_awaits(const mp_collective_schedule_t *schedule, uint32_t phase,
                                        uint32_t process) {
  (void)phase;
  return mp_group_layout_is_near(schedule->layout, process);
}

static uint32_t schedule_move_inputs_num_phases(const mp_collective_schedule_t *schedule) {
  return schedule->layout->num_hosts == 1 ? 1 : 2;
}

static mp_status_t schedule_move_inputs_plan(mp_collective_schedule_t *schedule, uint32_t phase,
                                             bool *out_is_shared) {
  const mp_group_layout_t *layout = schedule->layout;
  const size_t bytes = phase == 0 ? schedule_move_given_bytes(schedule, layout->self)
                                  : schedule_move_handed_on_bytes(schedule, layout->self);
  for (uint32_t p = 0; p < layout->num_processes; ++p) {
    if (p == layout->self) continue;
    const bool is_near = mp_group_layout_is_near(layout, p);
    if (is_near || (phase == 0 && mp_group_layout_is_in_column(layout, p))) {
      schedule->sizes[mp_collective_schedule_at(schedule, phase, p)] = bytes;
    } else if (phase == 0) {
      schedule->sizes[p] = 0;
    }
  }
  *out_is_shared = true;
  return NULL;
}

static void schedule_move_copy_part(char *to, const char *from, size_t bytes, uint32_t part,
                                    uint32_t num_parts) {
  const size_t begin = bytes / num_parts * part;
  const size_t end = part + 1 == num_parts ? bytes : bytes / num_parts * (part + 1);
  if (begin < end) memcpy(to + begin, from + begin, end - begin);
}

static void schedule_move_hand_on(const mp_collective_schedule_t *schedule, char *to, uint32_t part,
                                  uint32_t num_parts) {
  const mp_group_layout_t *layout = schedule->layout;
  for (uint32_t host = 0; host < layout->num_hosts; ++host) {
    const uint32_t other =
        mp_group_layout_process_at(layout, host, layout->column_of[layout->self]);
    if (other == layout->self) continue;
    const mp_payload_view_t *view = &schedule->received[other];
    schedule_move_copy_part(to, view->data, view->bytes, part, num_parts);
    to += view->bytes;
  }
}

// Each part has the same share of every input.
static void schedule_move_inputs_pack(const mp_collective_schedule_t *schedule, uint32_t phase,
                                      uint32_t part, uint32_t num_parts, void *scratch) {
  (void)scratch;
  const mp_group_layout_t *layout = schedule->layout;
  const uint32_t *givers = mp_group_layout_members(layout, layout->self);
  char *to = schedule->payloads[mp_collective_schedule_at(schedule, phase, layout->self)];
  if (to == NULL) return;  // nothing to give
  if (phase == 1) {
    schedule_move_hand_on(schedule, to, part, num_parts);
    return;
  }
  for (uint32_t g = 0; g < schedule_move_num_givers(schedule, layout->self); ++g) {
    for (uint32_t i = 0; i < schedule->collective->num_operands; ++i) {
      const size_t bytes = schedule_move_operand_bytes(&schedule->collective->operands[i]);
      schedule_move_copy_part(to, schedule->contributions[givers[g]].inputs[i], bytes, part,
                              num_parts);
      to += mp_align64(bytes);
    }
  }
}

// The received inputs of a process; NULL: it gives none.
static const char *schedule_move_find_inputs(const mp_collective_schedule_t *schedule,
                                             uint32_t process) {
  const mp_group_layout_t *layout = schedule->layout;
  if (mp_group_layout_is_near(layout, process) || mp_group_layout_is_in_column(layout, process)) {
    return schedule->received[process].data;
  }
  // This host's process in that column has passed them on.
  const uint32_t column = layout->column_of[process];
  const uint32_t neighbour =
      mp_group_layout_process_at(layout, layout->host_of[layout->self], column);
  const char *data = schedule->received[mp_collective_schedule_at(schedule, 1, neighbour)].data;
  for (uint32_t host = 0; host < layout->host_of[process] && data != NULL; ++host) {
    const uint32_t other = mp_group_layout_process_at(layout, host, column);
    if (other != neighbour) data += schedule_move_given_bytes(schedule, other);
  }
  return data;
}

static mp_status_t schedule_move_inputs_open(mp_collective_schedule_t *schedule) {
  const mp_group_layout_t *layout = schedule->layout;
  const uint32_t num_operands = schedule->collective->num_operands;
  for (uint32_t p = 0; p < layout->num_processes; ++p) {
    if (p == layout->self) continue;
    const char *from = schedule_move_find_inputs(schedule, p);
    for (uint32_t g = 0; g < schedule_move_num_givers(schedule, p); ++g) {
      const uint32_t giver = mp_group_layout_members(layout, p)[g];
      const void **inputs = schedule->inputs + (size_t)giver * num_operands;
      for (uint32_t i = 0; i < num_operands; ++i) {
        inputs[i] = from;
        if (from != NULL)
          from += mp_align64(schedule_move_operand_bytes(&schedule->collective->operands[i]));
      }
      schedule->contributions[giver].inputs = inputs;
    }
  }
  return NULL;
}

const mp_collective_schedule_kind_t mp_collective_schedule_inputs = {
    .num_phases = schedule_move_inputs_num_phases,
    .plan = schedule_move_inputs_plan,
    .pack = schedule_move_inputs_pack,
    .awaits = schedule_move_inputs_awaits,
    .expected = schedule_move_inputs_expected,
    .open = schedule_move_inputs_open};

// ---- A part for each destination ----

// Walks over the slices that `process` has for `destination`, in the order of the algorithms.
// Returns their bytes, padded to 64. Writes them to `to` unless that is NULL; only the slices of
// this process can be written.
typedef size_t (*slicer_t)(const mp_collective_schedule_t *schedule, uint32_t process,
                           uint32_t destination, char *to);

static size_t schedule_move_permute_slices(const mp_collective_schedule_t *schedule,
                                           uint32_t process, uint32_t destination, char *to) {
  const mp_collective_t *collective = schedule->collective;
  const int64_t source = mp_permute_source(collective, schedule->members[destination]);
  if (source < 0 || schedule->layout->process_of[source] != process) return 0;
  size_t at = 0;
  for (uint32_t i = 0; i < collective->num_operands; ++i) {
    const size_t bytes = schedule_move_operand_bytes(&collective->operands[i]);
    at = mp_align(at, mp_dtype_size(collective->operands[i].dtype));
    if (to != NULL && bytes != 0) {
      memcpy(to + at, schedule->contributions[source].inputs[i], bytes);
    }
    at += bytes;
  }
  return mp_align64(at);
}

static size_t schedule_move_all_to_all_slices(const mp_collective_schedule_t *schedule,
                                              uint32_t process, uint32_t destination, char *to) {
  const mp_collective_t *collective = schedule->collective;
  const mp_group_layout_t *layout = schedule->layout;
  const uint32_t split = (uint32_t)collective->dimension;
  const int64_t zero[MP_BOX_MAX_RANK] = {0};
  size_t at = 0;
  for (uint32_t i = 0; i < collective->num_operands; ++i) {
    const mp_collective_operand_t *operand = &collective->operands[i];
    const size_t element = mp_dtype_size(operand->dtype);
    int64_t size[MP_BOX_MAX_RANK];
    int64_t from[MP_BOX_MAX_RANK] = {0};
    memcpy(size, operand->dims, operand->rank * sizeof(*size));
    MP_ASSERT(split < operand->rank && size[split] % layout->size == 0);
    size[split] /= layout->size;
    from[split] = size[split] * destination;
    const size_t bytes = (size_t)mp_dims_product(size, 0, operand->rank) * element;
    at = mp_align(at, element);
    for (uint32_t m = 0; m < mp_group_layout_num_members(layout, process); ++m) {
      const uint32_t source = mp_group_layout_members(layout, process)[m];
      if (to != NULL) {
        mp_box_copy(&(mp_box_copy_t){.rank = operand->rank,
                                     .size = size,
                                     .element_size = element,
                                     .src = schedule->contributions[source].inputs[i],
                                     .src_dims = operand->dims,
                                     .src_start = from,
                                     .dst = to + at,
                                     .dst_dims = size,
                                     .dst_start = zero});
      }
      at += bytes;
    }
  }
  return mp_align64(at);
}

static size_t schedule_move_exchange_slices(const mp_collective_schedule_t *schedule,
                                            uint32_t process, uint32_t destination, char *to) {
  const mp_collective_t *collective = schedule->collective;
  const mp_group_layout_t *layout = schedule->layout;
  const mp_collective_operand_t *operand = &collective->operands[0];
  const uint32_t *owner = collective->source.owner;
  const size_t element = mp_dtype_size(operand->dtype);
  const int64_t zero[MP_BOX_MAX_RANK] = {0};
  size_t at = 0;
  for (uint32_t m = 0; m < mp_group_layout_num_members(layout, process); ++m) {
    const uint32_t source = mp_group_layout_members(layout, process)[m];
    const uint32_t logical = schedule->members[source];
    // A source gives nothing to a destination that has the same box.
    if (owner[logical] != logical || owner[schedule->members[destination]] == logical) continue;
    mp_exchange_part_t part;
    if (!mp_exchange_part(collective, schedule->members, source, destination, &part)) continue;
    if (to != NULL) {
      mp_box_copy(&(mp_box_copy_t){.rank = operand->rank,
                                   .size = part.size,
                                   .element_size = element,
                                   .src = schedule->contributions[source].inputs[0],
                                   .src_dims = operand->dims,
                                   .src_start = part.from,
                                   .dst = to + at,
                                   .dst_dims = part.size,
                                   .dst_start = zero});
    }
    at += (size_t)mp_dims_product(part.size, 0, operand->rank) * element;
  }
  return mp_align64(at);
}

static slicer_t schedule_move_slicer_of(const mp_collective_schedule_t *schedule) {
  switch (schedule->collective->kind) {
    case MP_COLLECTIVE_PERMUTE:
      return schedule_move_permute_slices;
    case MP_COLLECTIVE_ALL_TO_ALL:
      return schedule_move_all_to_all_slices;
    default:
      MP_ASSERT(schedule->collective->kind == MP_COLLECTIVE_EXCHANGE);
      return schedule_move_exchange_slices;
  }
}

static mp_status_t schedule_move_slices_plan(mp_collective_schedule_t *schedule, uint32_t phase,
                                             bool *out_is_shared) {
  (void)phase;
  const mp_group_layout_t *layout = schedule->layout;
  const slicer_t slicer = schedule_move_slicer_of(schedule);
  for (uint32_t p = 0; p < layout->num_processes; ++p) {
    if (p == layout->self) continue;
    schedule->sizes[p] = 0;
    for (uint32_t m = 0; m < mp_group_layout_num_members(layout, p); ++m) {
      const uint32_t destination = mp_group_layout_members(layout, p)[m];
      schedule->send_at[destination] = schedule->sizes[p];
      schedule->sizes[p] += slicer(schedule, layout->self, destination, NULL);
    }
  }
  *out_is_shared = false;
  return NULL;
}

static void schedule_move_slices_pack(const mp_collective_schedule_t *schedule, uint32_t phase,
                                      uint32_t part, uint32_t num_parts, void *scratch) {
  (void)phase, (void)scratch;
  const mp_group_layout_t *layout = schedule->layout;
  const slicer_t slicer = schedule_move_slicer_of(schedule);
  const uint32_t begin = (uint32_t)((uint64_t)layout->size * part / num_parts);
  const uint32_t end = (uint32_t)((uint64_t)layout->size * (part + 1) / num_parts);
  for (uint32_t i = begin; i < end; ++i) {
    const uint32_t destination = layout->positions[i];
    const uint32_t process = layout->process_of[destination];
    if (process == layout->self || schedule->sizes[process] == 0) continue;
    slicer(schedule, layout->self, destination,
           (char *)schedule->payloads[process] + schedule->send_at[destination]);
  }
}

static size_t schedule_move_slices_expected(const mp_collective_schedule_t *schedule,
                                            uint32_t phase, uint32_t process) {
  (void)phase;
  const mp_group_layout_t *layout = schedule->layout;
  const slicer_t slicer = schedule_move_slicer_of(schedule);
  size_t bytes = 0;
  for (uint32_t m = 0; m < mp_group_layout_num_members(layout, layout->self); ++m) {
    bytes += slicer(schedule, process, mp_group_layout_members(layout, layout->self)[m], NULL);
  }
  return bytes;
}

// Records where each of this process's members finds its slices.
static mp_status_t schedule_move_slices_open(mp_collective_schedule_t *schedule) {
  const mp_group_layout_t *layout = schedule->layout;
  const slicer_t slicer = schedule_move_slicer_of(schedule);
  const uint32_t own = mp_group_layout_num_members(layout, layout->self);
  for (uint32_t p = 0; p < layout->num_processes; ++p) {
    if (p == layout->self) continue;
    size_t at = 0;
    for (uint32_t m = 0; m < own; ++m) {
      schedule->find_at[(size_t)p * own + m] = at;
      at += slicer(schedule, p, mp_group_layout_members(layout, layout->self)[m], NULL);
    }
  }
  return NULL;
}

const mp_collective_schedule_kind_t mp_collective_schedule_slices = {
    .num_phases = mp_collective_schedule_one_phase,
    .plan = schedule_move_slices_plan,
    .pack = schedule_move_slices_pack,
    .expected = schedule_move_slices_expected,
    .open = schedule_move_slices_open};
