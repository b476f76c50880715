// Crossings: one row of functions per kind, and the order in which they are called.
#include "collectives/crossing.h"

#include <string.h>

#include "collectives/collective_parts.h"
#include "sim/base/alloc.h"
#include "sim/numeric/box.h"

static const mp_crossing_kind_t *const g_kinds[] = {
    [MP_COLLECTIVE_ALL_REDUCE] = &mp_crossing_pieces,
    [MP_COLLECTIVE_REDUCE_SCATTER] = &mp_crossing_pieces,
    [MP_COLLECTIVE_ALL_GATHER] = &mp_crossing_inputs,
    [MP_COLLECTIVE_BROADCAST] = &mp_crossing_inputs,
    [MP_COLLECTIVE_PERMUTE] = &mp_crossing_slices,
    [MP_COLLECTIVE_ALL_TO_ALL] = &mp_crossing_slices,
    [MP_COLLECTIVE_EXCHANGE] = &mp_crossing_slices,
    [MP_COLLECTIVE_RAGGED_ALL_TO_ALL] = &mp_crossing_rows,
};

static const mp_crossing_kind_t *kind_of(const mp_crossing_t *crossing) {
  return g_kinds[crossing->collective->kind];
}

mp_status_t mp_crossing_create(const mp_collective_t *collective, uint32_t group,
                               const mp_spread_t *spread, mp_contribution_t *contributions,
                               mp_crossing_t **out_crossing) {
  if ((size_t)collective->kind >= sizeof(g_kinds) / sizeof(g_kinds[0])) {
    return mp_status_make(MP_INTERNAL, "%s is no group operation", collective->name);
  }
  const size_t processes = spread->num_processes;
  const size_t parcels = MP_CROSSING_MAX_PHASES * processes;
  const size_t finds = processes * mp_spread_num_members(spread, spread->self);
  const size_t inputs = (size_t)spread->size * collective->num_operands;
  mp_crossing_t *crossing = mp_calloc(
      1, sizeof(*crossing) + parcels * (sizeof(mp_shipment_t) + sizeof(void *) + sizeof(size_t)) +
             inputs * sizeof(void *) + (spread->size + finds) * sizeof(size_t));
  MP_RETURN_IF_NULL(crossing);
  crossing->collective = collective;
  crossing->group = group;
  crossing->members = collective->groups->members + collective->groups->offsets[group];
  crossing->spread = spread;
  crossing->contributions = contributions;
  crossing->received = (mp_shipment_t *)(crossing + 1);
  crossing->parcels = (void **)(crossing->received + parcels);
  crossing->inputs = (const void **)(crossing->parcels + parcels);
  crossing->sizes = (size_t *)(crossing->inputs + inputs);
  crossing->send_at = crossing->sizes + parcels;
  crossing->find_at = crossing->send_at + spread->size;
  crossing->num_phases = kind_of(crossing)->num_phases(crossing);
  *out_crossing = crossing;
  return NULL;
}

void mp_crossing_release(mp_crossing_t *crossing) {
  mp_free(crossing);
}

uint32_t mp_crossing_one_phase(const mp_crossing_t *crossing) {
  (void)crossing;
  return 1;
}

mp_status_t mp_crossing_plan(mp_crossing_t *crossing, uint32_t phase, bool *out_is_shared) {
  for (uint32_t p = 0; p < crossing->spread->num_processes; ++p) {
    crossing->sizes[mp_crossing_at(crossing, phase, p)] = MP_NO_PARCEL;
  }
  return kind_of(crossing)->plan(crossing, phase, out_is_shared);
}

bool mp_crossing_awaits(const mp_crossing_t *crossing, uint32_t phase, uint32_t process) {
  if (process == crossing->spread->self) return false;
  return phase == 0 || kind_of(crossing)->awaits(crossing, phase, process);
}

// The bytes of our members' inputs: what packing reads.
static double input_bytes(const mp_crossing_t *crossing) {
  const mp_collective_t *collective = crossing->collective;
  double bytes = 0;
  for (uint32_t i = 0; i < collective->num_operands; ++i) {
    const mp_collective_operand_t *operand = &collective->operands[i];
    bytes += (double)mp_dims_product(operand->dims, operand->rank) *
             (double)mp_dtype_size(operand->dtype);
  }
  return bytes * mp_spread_num_members(crossing->spread, crossing->spread->self);
}

uint32_t mp_crossing_num_parts(const mp_crossing_t *crossing, uint32_t phase) {
  if (phase == crossing->num_phases) {
    return mp_collective_num_chunks(crossing->collective, crossing->group);
  }
  return mp_parts_of(input_bytes(crossing));
}

size_t mp_crossing_scratch_bytes(const mp_crossing_t *crossing) {
  const mp_collective_kind_t kind = crossing->collective->kind;
  if (kind != MP_COLLECTIVE_ALL_REDUCE && kind != MP_COLLECTIVE_REDUCE_SCATTER) return 0;
  return mp_reduce_scratch_bytes(crossing->collective, crossing->spread->size,
                                 crossing->spread->num_processes);
}

mp_status_t mp_crossing_pack(mp_crossing_t *crossing, uint32_t phase, uint32_t part,
                             void *scratch) {
  kind_of(crossing)->pack(crossing, phase, part, mp_crossing_num_parts(crossing, phase), scratch);
  return NULL;
}

mp_status_t mp_crossing_receive(mp_crossing_t *crossing, uint32_t phase, uint32_t process,
                                const void *data, size_t bytes) {
  const size_t expected = kind_of(crossing)->expected(crossing, phase, process);
  if (expected != MP_SIZE_BY_CONTENT && expected != bytes) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "%s (%s): process %u sent %zu bytes where %zu were expected",
                          crossing->collective->name, crossing->collective->location,
                          crossing->spread->ranks[process], bytes, expected);
  }
  crossing->received[mp_crossing_at(crossing, phase, process)] = (mp_shipment_t){data, bytes};
  return NULL;
}

mp_status_t mp_crossing_open(mp_crossing_t *crossing) {
  const mp_crossing_kind_t *kind = kind_of(crossing);
  return kind->open == NULL ? NULL : kind->open(crossing);
}

mp_status_t mp_crossing_finish(mp_crossing_t *crossing, uint32_t part, void *scratch) {
  return mp_collective_run_crossing(crossing, part, scratch);
}

const void *mp_crossing_take(const mp_crossing_t *crossing, uint32_t source, uint32_t destination,
                             size_t bytes, size_t alignment) {
  const mp_spread_t *spread = crossing->spread;
  const uint32_t process = spread->process_of[source];
  const uint32_t own = mp_spread_num_members(spread, spread->self);
  size_t *cursor = &crossing->find_at[(size_t)process * own + spread->index_of[destination]];
  const size_t at = mp_align(*cursor, alignment);
  *cursor = at + bytes;
  const mp_shipment_t *shipment = &crossing->received[mp_crossing_at(crossing, 0, process)];
  return (const char *)shipment->data + at;
}
