// ragged_all_to_all: rows of varying number from every member to every member.
//
// Operands in the order of the custom call: operand, output, input_offsets, send_sizes,
// output_offsets, recv_sizes. The four index arrays hold k entries per member (k = their length /
// group size); entry j*k+u of source i describes its u-th update for destination j. Offsets and
// sizes count rows of the outermost dimension.
//
// Between processes, a payload begins with three numbers (in, rows, out) for every update from a
// member of the sender to a member of the receiver. The rows follow, grouped by destination.
#include <string.h>

#include "collectives/collective_parts.h"
#include "sim/base/assert.h"
#include "sim/numeric/dims.h"

enum { MP_RAGGED_NUMBERS = 3 };

static int64_t collective_ragged_index_at(const mp_collective_operand_t *operand, const void *data,
                                          int64_t i) {
  MP_ASSERT(i >= 0 && i < operand->dims[0]);
  MP_ASSERT(mp_dtype_size(operand->dtype) == 4 || mp_dtype_size(operand->dtype) == 8);
  if (mp_dtype_size(operand->dtype) == 4) return ((const int32_t *)data)[i];
  return ((const int64_t *)data)[i];
}

static int64_t collective_ragged_row_bytes_of(const mp_collective_t *collective) {
  const mp_collective_operand_t *operand = &collective->operands[0];
  return mp_dims_product(operand->dims, 1, operand->rank) * (int64_t)mp_dtype_size(operand->dtype);
}

typedef struct {
  int64_t in, out, rows;
} ragged_update_t;

// The u-th update of a member of this process for `destination`.
static ragged_update_t collective_ragged_update_of(const mp_collective_t *collective,
                                                   uint32_t group_size,
                                                   const mp_contribution_t *from,
                                                   uint32_t destination, int64_t u) {
  const mp_collective_operand_t *operands = collective->operands;
  const int64_t i = destination * (operands[2].dims[0] / group_size) + u;
  return (ragged_update_t){.in = collective_ragged_index_at(&operands[2], from->inputs[2], i),
                           .rows = collective_ragged_index_at(&operands[3], from->inputs[3], i),
                           .out = collective_ragged_index_at(&operands[4], from->inputs[4], i)};
}

// The name of a member in messages.
static uint32_t collective_ragged_name(const uint32_t *names, uint32_t logical) {
  return names == NULL ? logical : names[logical];
}

static mp_status_t collective_ragged_check_update(const mp_collective_t *collective,
                                                  const uint32_t *members, const uint32_t *names,
                                                  const ragged_update_t *update, uint32_t source,
                                                  uint32_t destination) {
  const mp_collective_operand_t *operands = collective->operands;
  if (update->rows >= 0 && update->in >= 0 && update->out >= 0 &&
      update->rows <= operands[0].dims[0] - update->in &&
      update->rows <= operands[1].dims[0] - update->out) {
    return NULL;
  }
  return mp_status_make(MP_INVALID_ARGUMENT,
                        "%s [%s]: device %u sends rows %lld+%lld of %lld to rows %lld of %lld of "
                        "device %u",
                        collective->name, collective->location,
                        collective_ragged_name(names, members[source]), (long long)update->in,
                        (long long)update->rows, (long long)operands[0].dims[0],
                        (long long)update->out, (long long)operands[1].dims[0],
                        collective_ragged_name(names, members[destination]));
}

static mp_status_t collective_ragged_check_received(const mp_collective_call_t *call,
                                                    const ragged_update_t *update, uint32_t source,
                                                    uint32_t destination, int64_t u) {
  const mp_collective_operand_t *operands = call->collective->operands;
  const int64_t per_pair = operands[2].dims[0] / call->size;
  const int64_t received = collective_ragged_index_at(
      &operands[5], call->contributions[destination].inputs[5], source * per_pair + u);
  if (update->rows == received) return NULL;
  return mp_status_make(
      MP_INVALID_ARGUMENT, "%s [%s]: device %u sends %lld rows to device %u, which expects %lld",
      call->collective->name, call->collective->location,
      collective_ragged_name(call->names, call->members[source]), (long long)update->rows,
      collective_ragged_name(call->names, call->members[destination]), (long long)received);
}

// ---- Between processes ----

// The number of index numbers that this process and another one exchange.
static size_t collective_ragged_num_numbers(const mp_collective_schedule_t *schedule,
                                            uint32_t other) {
  const mp_group_layout_t *layout = schedule->layout;
  const int64_t per_pair = schedule->collective->operands[2].dims[0] / layout->size;
  return (size_t)per_pair * MP_RAGGED_NUMBERS * mp_group_layout_num_members(layout, other) *
         mp_group_layout_num_members(layout, layout->self);
}

// The index of the first number of a pair in a payload: the numbers are ordered by destination,
// then by source.
static size_t collective_ragged_numbers_at(const mp_collective_schedule_t *schedule,
                                           uint32_t source, uint32_t destination) {
  const mp_group_layout_t *layout = schedule->layout;
  const size_t per_pair = (size_t)schedule->collective->operands[2].dims[0] / layout->size;
  const size_t sources = mp_group_layout_num_members(layout, layout->process_of[source]);
  return ((size_t)layout->index_of[destination] * sources + layout->index_of[source]) * per_pair *
         MP_RAGGED_NUMBERS;
}

static ragged_update_t collective_ragged_received_update(const mp_collective_schedule_t *schedule,
                                                         uint32_t source, uint32_t destination,
                                                         int64_t u) {
  const int64_t *numbers = schedule->received[schedule->layout->process_of[source]].data;
  numbers +=
      collective_ragged_numbers_at(schedule, source, destination) + (size_t)u * MP_RAGGED_NUMBERS;
  return (ragged_update_t){.in = numbers[0], .rows = numbers[1], .out = numbers[2]};
}

// Adds to `bytes` the size of the rows that this process's members send to `destination`, and
// checks their updates.
static mp_status_t collective_ragged_weigh(const mp_collective_schedule_t *schedule,
                                           uint32_t destination, size_t *bytes) {
  const mp_group_layout_t *layout = schedule->layout;
  const int64_t per_pair = schedule->collective->operands[2].dims[0] / layout->size;
  const size_t row_bytes = (size_t)collective_ragged_row_bytes_of(schedule->collective);
  for (uint32_t m = 0; m < mp_group_layout_num_members(layout, layout->self); ++m) {
    const uint32_t source = mp_group_layout_members(layout, layout->self)[m];
    for (int64_t u = 0; u < per_pair; ++u) {
      const ragged_update_t update = collective_ragged_update_of(
          schedule->collective, layout->size, &schedule->contributions[source], destination, u);
      MP_RETURN_IF_ERROR(collective_ragged_check_update(
          schedule->collective, schedule->members, schedule->names, &update, source, destination));
      *bytes += (size_t)update.rows * row_bytes;
    }
  }
  return NULL;
}

static mp_status_t collective_ragged_rows_plan(mp_collective_schedule_t *schedule, uint32_t phase,
                                               bool *out_is_shared) {
  (void)phase;
  const mp_group_layout_t *layout = schedule->layout;
  for (uint32_t p = 0; p < layout->num_processes; ++p) {
    if (p == layout->self) continue;
    size_t bytes = mp_align64(collective_ragged_num_numbers(schedule, p) * sizeof(int64_t));
    for (uint32_t m = 0; m < mp_group_layout_num_members(layout, p); ++m) {
      const uint32_t destination = mp_group_layout_members(layout, p)[m];
      schedule->send_at[destination] = bytes;
      MP_RETURN_IF_ERROR(collective_ragged_weigh(schedule, destination, &bytes));
      bytes = mp_align64(bytes);
    }
    schedule->sizes[p] = bytes;
  }
  *out_is_shared = false;
  return NULL;
}

static void collective_ragged_pack_for(const mp_collective_schedule_t *schedule,
                                       uint32_t destination) {
  const mp_group_layout_t *layout = schedule->layout;
  const int64_t per_pair = schedule->collective->operands[2].dims[0] / layout->size;
  const size_t row_bytes = (size_t)collective_ragged_row_bytes_of(schedule->collective);
  char *payload = schedule->payloads[layout->process_of[destination]];
  char *to = payload + schedule->send_at[destination];
  for (uint32_t m = 0; m < mp_group_layout_num_members(layout, layout->self); ++m) {
    const uint32_t source = mp_group_layout_members(layout, layout->self)[m];
    const mp_contribution_t *from = &schedule->contributions[source];
    int64_t *numbers =
        (int64_t *)(void *)payload + collective_ragged_numbers_at(schedule, source, destination);
    for (int64_t u = 0; u < per_pair; ++u, numbers += MP_RAGGED_NUMBERS) {
      const ragged_update_t update =
          collective_ragged_update_of(schedule->collective, layout->size, from, destination, u);
      numbers[0] = update.in;
      numbers[1] = update.rows;
      numbers[2] = update.out;
      const size_t bytes = (size_t)update.rows * row_bytes;
      if (bytes == 0) continue;
      memcpy(to, (const char *)from->inputs[0] + (size_t)update.in * row_bytes, bytes);
      to += bytes;
    }
  }
}

static void collective_ragged_rows_pack(const mp_collective_schedule_t *schedule, uint32_t phase,
                                        uint32_t part, uint32_t num_parts, void *scratch) {
  (void)phase, (void)scratch;
  const mp_group_layout_t *layout = schedule->layout;
  const uint32_t begin = (uint32_t)((uint64_t)layout->size * part / num_parts);
  const uint32_t end = (uint32_t)((uint64_t)layout->size * (part + 1) / num_parts);
  for (uint32_t i = begin; i < end; ++i) {
    const uint32_t destination = layout->positions[i];
    const uint32_t process = layout->process_of[destination];
    if (process != layout->self && schedule->sizes[process] != 0)
      collective_ragged_pack_for(schedule, destination);
  }
}

static size_t collective_ragged_rows_expected(const mp_collective_schedule_t *schedule,
                                              uint32_t phase, uint32_t process) {
  (void)schedule, (void)phase, (void)process;
  return MP_SIZE_BY_CONTENT;
}

// Records where this process's members find their rows in a process' payload, and checks that it
// has all of them.
static mp_status_t collective_ragged_open_payload(mp_collective_schedule_t *schedule,
                                                  uint32_t process) {
  const mp_group_layout_t *layout = schedule->layout;
  const mp_collective_t *collective = schedule->collective;
  const int64_t per_pair = collective->operands[2].dims[0] / layout->size;
  const uint32_t own = mp_group_layout_num_members(layout, layout->self);
  const size_t row_bytes = (size_t)collective_ragged_row_bytes_of(collective);
  const size_t weight = schedule->received[process].bytes;
  size_t bytes = mp_align64(collective_ragged_num_numbers(schedule, process) * sizeof(int64_t));
  bool is_whole = bytes <= weight;
  for (uint32_t m = 0; m < own && is_whole; ++m) {
    const uint32_t destination = mp_group_layout_members(layout, layout->self)[m];
    schedule->find_at[(size_t)process * own + m] = bytes;
    for (uint32_t s = 0; s < mp_group_layout_num_members(layout, process); ++s) {
      const uint32_t source = mp_group_layout_members(layout, process)[s];
      for (int64_t u = 0; u < per_pair; ++u) {
        const ragged_update_t update =
            collective_ragged_received_update(schedule, source, destination, u);
        MP_RETURN_IF_ERROR(collective_ragged_check_update(
            collective, schedule->members, schedule->names, &update, source, destination));
        bytes += (size_t)update.rows * row_bytes;
      }
    }
    bytes = mp_align64(bytes);
  }
  if (is_whole && bytes == weight) return NULL;
  return mp_status_make(MP_INVALID_ARGUMENT, "%s (%s): process %u sent %zu bytes, not %zu",
                        collective->name, collective->location, layout->ranks[process], weight,
                        bytes);
}

static mp_status_t collective_ragged_rows_open(mp_collective_schedule_t *schedule) {
  for (uint32_t p = 0; p < schedule->layout->num_processes; ++p) {
    if (p != schedule->layout->self)
      MP_RETURN_IF_ERROR(collective_ragged_open_payload(schedule, p));
  }
  return NULL;
}

const mp_collective_schedule_kind_t mp_collective_schedule_rows = {
    .num_phases = mp_collective_schedule_one_phase,
    .plan = collective_ragged_rows_plan,
    .pack = collective_ragged_rows_pack,
    .expected = collective_ragged_rows_expected,
    .open = collective_ragged_rows_open};

// ---- The algorithm ----

static mp_status_t collective_ragged_receive_update(const mp_collective_call_t *call,
                                                    uint32_t source, uint32_t destination,
                                                    int64_t u) {
  const bool is_here =
      call->schedule == NULL || mp_group_layout_is_local(call->schedule->layout, source);
  const ragged_update_t update =
      is_here ? collective_ragged_update_of(call->collective, call->size,
                                            &call->contributions[source], destination, u)
              : collective_ragged_received_update(call->schedule, source, destination, u);
  MP_RETURN_IF_ERROR(collective_ragged_check_update(call->collective, call->members, call->names,
                                                    &update, source, destination));
  MP_RETURN_IF_ERROR(collective_ragged_check_received(call, &update, source, destination, u));
  const int64_t row_bytes = collective_ragged_row_bytes_of(call->collective);
  const size_t bytes = (size_t)(update.rows * row_bytes);
  if (bytes == 0) return NULL;
  const void *from =
      is_here ? (const char *)call->contributions[source].inputs[0] + update.in * row_bytes
              : mp_collective_schedule_take(call->schedule, source, destination, bytes, 1);
  memcpy((char *)call->contributions[destination].outputs[0] + update.out * row_bytes, from, bytes);
  return NULL;
}

mp_status_t mp_ragged_all_to_all_chunk(const mp_collective_call_t *call) {
  const mp_collective_operand_t *operands = call->collective->operands;
  const int64_t per_pair = operands[2].dims[0] / call->size;
  const size_t bytes =
      (size_t)(operands[1].dims[0] * collective_ragged_row_bytes_of(call->collective));
  int64_t begin, end;
  mp_chunk_range(call, call->size, &begin, &end);
  for (int64_t destination = begin; destination < end; ++destination) {
    if (!mp_call_writes(call, destination)) continue;
    const mp_contribution_t *to = &call->contributions[destination];
    if (bytes != 0) memcpy(to->outputs[0], to->inputs[1], bytes);
    for (uint32_t source = 0; source < call->size; ++source) {
      for (int64_t u = 0; u < per_pair; ++u) {
        MP_RETURN_IF_ERROR(
            collective_ragged_receive_update(call, source, (uint32_t)destination, u));
      }
    }
  }
  return NULL;
}
