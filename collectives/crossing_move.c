// Moves over processes: whole inputs for all (all_gather, broadcast), or for each destination what
// it wants (permute, all_to_all, exchange).
#include <string.h>

#include "collectives/collective_parts.h"

static size_t operand_bytes(const mp_collective_operand_t *operand) {
  return (size_t)mp_dims_product(operand->dims, operand->rank) * mp_dtype_size(operand->dtype);
}

// ---- Whole inputs ----

static size_t member_bytes(const mp_collective_t *collective) {
  size_t bytes = 0;
  for (uint32_t i = 0; i < collective->num_operands; ++i) {
    bytes += mp_align64(operand_bytes(&collective->operands[i]));
  }
  return bytes;
}

// Only position 0 gives to a broadcast.
static uint32_t num_givers(const mp_crossing_t *crossing, uint32_t process) {
  if (crossing->collective->kind == MP_COLLECTIVE_BROADCAST) {
    return crossing->spread->process_of[0] == process ? 1 : 0;
  }
  return mp_spread_num_members(crossing->spread, process);
}

static size_t given_bytes(const mp_crossing_t *crossing, uint32_t process) {
  return num_givers(crossing, process) * member_bytes(crossing->collective);
}

// What a process hands on within its host: the inputs of its column's others.
static size_t handed_on_bytes(const mp_crossing_t *crossing, uint32_t process) {
  const mp_spread_t *spread = crossing->spread;
  size_t bytes = 0;
  for (uint32_t host = 0; host < spread->num_hosts; ++host) {
    const uint32_t other = mp_spread_process_at(spread, host, spread->column_of[process]);
    if (other != process) bytes += given_bytes(crossing, other);
  }
  return bytes;
}

static size_t inputs_expected(const mp_crossing_t *crossing, uint32_t phase, uint32_t process) {
  const mp_spread_t *spread = crossing->spread;
  if (phase == 1) return handed_on_bytes(crossing, process);
  const bool is_direct =
      mp_spread_is_near(spread, process) || mp_spread_is_in_line(spread, process);
  return is_direct ? given_bytes(crossing, process) : 0;
}

static bool inputs_awaits(const mp_crossing_t *crossing, uint32_t phase, uint32_t process) {
  (void)phase;
  return mp_spread_is_near(crossing->spread, process);
}

static uint32_t inputs_num_phases(const mp_crossing_t *crossing) {
  return crossing->spread->num_hosts == 1 ? 1 : 2;
}

static mp_status_t inputs_plan(mp_crossing_t *crossing, uint32_t phase, bool *out_is_shared) {
  const mp_spread_t *spread = crossing->spread;
  const size_t bytes =
      phase == 0 ? given_bytes(crossing, spread->self) : handed_on_bytes(crossing, spread->self);
  for (uint32_t p = 0; p < spread->num_processes; ++p) {
    if (p == spread->self) continue;
    const bool is_near = mp_spread_is_near(spread, p);
    if (is_near || (phase == 0 && mp_spread_is_in_line(spread, p))) {
      crossing->sizes[mp_crossing_at(crossing, phase, p)] = bytes;
    } else if (phase == 0) {
      crossing->sizes[p] = 0;
    }
  }
  *out_is_shared = true;
  return NULL;
}

static void copy_part(char *to, const char *from, size_t bytes, uint32_t part, uint32_t num_parts) {
  const size_t begin = bytes / num_parts * part;
  const size_t end = part + 1 == num_parts ? bytes : bytes / num_parts * (part + 1);
  if (begin < end) memcpy(to + begin, from + begin, end - begin);
}

static void hand_on(const mp_crossing_t *crossing, char *to, uint32_t part, uint32_t num_parts) {
  const mp_spread_t *spread = crossing->spread;
  for (uint32_t host = 0; host < spread->num_hosts; ++host) {
    const uint32_t other = mp_spread_process_at(spread, host, spread->column_of[spread->self]);
    if (other == spread->self) continue;
    const mp_shipment_t *shipment = &crossing->received[other];
    copy_part(to, shipment->data, shipment->bytes, part, num_parts);
    to += shipment->bytes;
  }
}

// A part is the same share of every input.
static void inputs_pack(const mp_crossing_t *crossing, uint32_t phase, uint32_t part,
                        uint32_t num_parts, void *scratch) {
  (void)scratch;
  const mp_spread_t *spread = crossing->spread;
  const uint32_t *givers = mp_spread_members(spread, spread->self);
  char *to = crossing->parcels[mp_crossing_at(crossing, phase, spread->self)];
  if (to == NULL) return;  // nothing to give
  if (phase == 1) {
    hand_on(crossing, to, part, num_parts);
    return;
  }
  for (uint32_t g = 0; g < num_givers(crossing, spread->self); ++g) {
    for (uint32_t i = 0; i < crossing->collective->num_operands; ++i) {
      const size_t bytes = operand_bytes(&crossing->collective->operands[i]);
      copy_part(to, crossing->contributions[givers[g]].inputs[i], bytes, part, num_parts);
      to += mp_align64(bytes);
    }
  }
}

// Where the inputs of a process' givers are.
static const char *find_inputs(const mp_crossing_t *crossing, uint32_t process) {
  const mp_spread_t *spread = crossing->spread;
  if (mp_spread_is_near(spread, process) || mp_spread_is_in_line(spread, process)) {
    return crossing->received[process].data;
  }
  // Our neighbour in that column has handed them on.
  const uint32_t column = spread->column_of[process];
  const uint32_t neighbour = mp_spread_process_at(spread, spread->host_of[spread->self], column);
  const char *data = crossing->received[mp_crossing_at(crossing, 1, neighbour)].data;
  for (uint32_t host = 0; host < spread->host_of[process] && data != NULL; ++host) {
    const uint32_t other = mp_spread_process_at(spread, host, column);
    if (other != neighbour) data += given_bytes(crossing, other);
  }
  return data;
}

static mp_status_t inputs_open(mp_crossing_t *crossing) {
  const mp_spread_t *spread = crossing->spread;
  const uint32_t num_operands = crossing->collective->num_operands;
  for (uint32_t p = 0; p < spread->num_processes; ++p) {
    if (p == spread->self) continue;
    const char *from = find_inputs(crossing, p);
    for (uint32_t g = 0; g < num_givers(crossing, p); ++g) {
      const uint32_t giver = mp_spread_members(spread, p)[g];
      const void **inputs = crossing->inputs + (size_t)giver * num_operands;
      for (uint32_t i = 0; i < num_operands; ++i) {
        inputs[i] = from;
        if (from != NULL) from += mp_align64(operand_bytes(&crossing->collective->operands[i]));
      }
      crossing->contributions[giver].inputs = inputs;
    }
  }
  return NULL;
}

const mp_crossing_kind_t mp_crossing_inputs = {.num_phases = inputs_num_phases,
                                               .plan = inputs_plan,
                                               .pack = inputs_pack,
                                               .awaits = inputs_awaits,
                                               .expected = inputs_expected,
                                               .open = inputs_open};

// ---- What each destination wants ----

// Goes over what `process` has for `destination`, in the order in which the algorithms take it.
// Writes it when `to` is given, which needs our own process. Returns its bytes, padded.
typedef size_t (*mp_slicer_t)(const mp_crossing_t *crossing, uint32_t process, uint32_t destination,
                              char *to);

static size_t permute_slices(const mp_crossing_t *crossing, uint32_t process, uint32_t destination,
                             char *to) {
  const mp_collective_t *collective = crossing->collective;
  const int64_t source = mp_permute_source(collective, crossing->members[destination]);
  if (source < 0 || crossing->spread->process_of[source] != process) return 0;
  size_t at = 0;
  for (uint32_t i = 0; i < collective->num_operands; ++i) {
    const size_t bytes = operand_bytes(&collective->operands[i]);
    at = mp_align(at, mp_dtype_size(collective->operands[i].dtype));
    if (to != NULL && bytes != 0) {
      memcpy(to + at, crossing->contributions[source].inputs[i], bytes);
    }
    at += bytes;
  }
  return mp_align64(at);
}

static size_t all_to_all_slices(const mp_crossing_t *crossing, uint32_t process,
                                uint32_t destination, char *to) {
  const mp_collective_t *collective = crossing->collective;
  const mp_spread_t *spread = crossing->spread;
  const uint32_t split = (uint32_t)collective->dimension;
  const int64_t zero[MP_BOX_MAX_RANK] = {0};
  size_t at = 0;
  for (uint32_t i = 0; i < collective->num_operands; ++i) {
    const mp_collective_operand_t *operand = &collective->operands[i];
    const size_t element = mp_dtype_size(operand->dtype);
    int64_t size[MP_BOX_MAX_RANK];
    int64_t from[MP_BOX_MAX_RANK] = {0};
    memcpy(size, operand->dims, operand->rank * sizeof(*size));
    size[split] /= spread->size;
    from[split] = size[split] * destination;
    const size_t bytes = (size_t)mp_dims_product(size, operand->rank) * element;
    at = mp_align(at, element);
    for (uint32_t m = 0; m < mp_spread_num_members(spread, process); ++m) {
      const uint32_t source = mp_spread_members(spread, process)[m];
      if (to != NULL) {
        mp_box_copy(operand->rank, size, element, crossing->contributions[source].inputs[i],
                    operand->dims, from, to + at, size, zero);
      }
      at += bytes;
    }
  }
  return mp_align64(at);
}

static size_t exchange_slices(const mp_crossing_t *crossing, uint32_t process, uint32_t destination,
                              char *to) {
  const mp_collective_t *collective = crossing->collective;
  const mp_spread_t *spread = crossing->spread;
  const mp_collective_operand_t *operand = &collective->operands[0];
  const uint32_t *owner = collective->source.owner;
  const size_t element = mp_dtype_size(operand->dtype);
  const int64_t zero[MP_BOX_MAX_RANK] = {0};
  size_t at = 0;
  for (uint32_t m = 0; m < mp_spread_num_members(spread, process); ++m) {
    const uint32_t source = mp_spread_members(spread, process)[m];
    const uint32_t logical = crossing->members[source];
    // Whose box the destination holds as well gives nothing.
    if (owner[logical] != logical || owner[crossing->members[destination]] == logical) continue;
    mp_exchange_part_t part;
    if (!mp_exchange_part(collective, crossing->members, source, destination, &part)) continue;
    if (to != NULL) {
      mp_box_copy(operand->rank, part.size, element, crossing->contributions[source].inputs[0],
                  operand->dims, part.from, to + at, part.size, zero);
    }
    at += (size_t)mp_dims_product(part.size, operand->rank) * element;
  }
  return mp_align64(at);
}

static mp_slicer_t slicer_of(const mp_crossing_t *crossing) {
  switch (crossing->collective->kind) {
    case MP_COLLECTIVE_PERMUTE:
      return permute_slices;
    case MP_COLLECTIVE_ALL_TO_ALL:
      return all_to_all_slices;
    default:
      return exchange_slices;
  }
}

static mp_status_t slices_plan(mp_crossing_t *crossing, uint32_t phase, bool *out_is_shared) {
  (void)phase;
  const mp_spread_t *spread = crossing->spread;
  const mp_slicer_t slicer = slicer_of(crossing);
  for (uint32_t p = 0; p < spread->num_processes; ++p) {
    if (p == spread->self) continue;
    crossing->sizes[p] = 0;
    for (uint32_t m = 0; m < mp_spread_num_members(spread, p); ++m) {
      const uint32_t destination = mp_spread_members(spread, p)[m];
      crossing->send_at[destination] = crossing->sizes[p];
      crossing->sizes[p] += slicer(crossing, spread->self, destination, NULL);
    }
  }
  *out_is_shared = false;
  return NULL;
}

static void slices_pack(const mp_crossing_t *crossing, uint32_t phase, uint32_t part,
                        uint32_t num_parts, void *scratch) {
  (void)phase, (void)scratch;
  const mp_spread_t *spread = crossing->spread;
  const mp_slicer_t slicer = slicer_of(crossing);
  const uint32_t begin = (uint32_t)((uint64_t)spread->size * part / num_parts);
  const uint32_t end = (uint32_t)((uint64_t)spread->size * (part + 1) / num_parts);
  for (uint32_t i = begin; i < end; ++i) {
    const uint32_t destination = spread->positions[i];
    const uint32_t process = spread->process_of[destination];
    if (process == spread->self || crossing->sizes[process] == 0) continue;
    slicer(crossing, spread->self, destination,
           (char *)crossing->parcels[process] + crossing->send_at[destination]);
  }
}

// Notes on the way where each of our members finds its slices.
static size_t slices_expected(const mp_crossing_t *crossing, uint32_t phase, uint32_t process) {
  (void)phase;
  const mp_spread_t *spread = crossing->spread;
  const mp_slicer_t slicer = slicer_of(crossing);
  const uint32_t own = mp_spread_num_members(spread, spread->self);
  size_t bytes = 0;
  for (uint32_t m = 0; m < own; ++m) {
    crossing->find_at[(size_t)process * own + m] = bytes;
    bytes += slicer(crossing, process, mp_spread_members(spread, spread->self)[m], NULL);
  }
  return bytes;
}

const mp_crossing_kind_t mp_crossing_slices = {.num_phases = mp_crossing_one_phase,
                                               .plan = slices_plan,
                                               .pack = slices_pack,
                                               .expected = slices_expected};
