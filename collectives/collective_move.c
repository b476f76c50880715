// Collectives that only move data: all_gather, all_to_all, permute, broadcast, exchange.
//
// Chunks are ranges of destinations, so every output has one writer.
#include <string.h>

#include "collectives/collective_parts.h"
#include "sim/base/assert.h"
#include "sim/numeric/box.h"
#include "sim/numeric/dims.h"

static void collective_move_gather_to(const mp_collective_call_t *call, uint32_t destination,
                                      uint32_t i) {
  const mp_collective_operand_t *operand = &call->collective->operands[i];
  const uint32_t dimension = (uint32_t)call->collective->dimension;
  const int64_t zero[MP_BOX_MAX_RANK] = {0};
  int64_t start[MP_BOX_MAX_RANK] = {0};
  MP_ASSERT(dimension < operand->rank);
  for (uint32_t source = 0; source < call->size; ++source) {
    start[dimension] = operand->dims[dimension] * source;
    mp_box_copy_by(call->copy, &(mp_box_copy_t){.rank = operand->rank,
                                                .size = operand->dims,
                                                .element_size = mp_dtype_size(operand->dtype),
                                                .src = call->contributions[source].inputs[i],
                                                .src_dims = operand->dims,
                                                .src_start = zero,
                                                .dst = call->contributions[destination].outputs[i],
                                                .dst_dims = operand->result_dims,
                                                .dst_start = start});
  }
}

mp_status_t mp_all_gather_chunk(const mp_collective_call_t *call) {
  int64_t begin, end;
  mp_chunk_range(call, call->size, &begin, &end);
  for (int64_t destination = begin; destination < end; ++destination) {
    if (!mp_call_writes(call, destination)) continue;
    for (uint32_t i = 0; i < call->collective->num_operands; ++i) {
      collective_move_gather_to(call, (uint32_t)destination, i);
    }
  }
  return NULL;
}

// Copies one source's slice for one destination. Slices that come from another process are packed.
static void collective_move_all_to_all_part(const mp_collective_call_t *call, uint32_t destination,
                                            uint32_t source, uint32_t i) {
  const mp_collective_t *collective = call->collective;
  const mp_collective_operand_t *operand = &collective->operands[i];
  const uint32_t split = (uint32_t)collective->dimension;
  const uint32_t concat = (uint32_t)collective->concat_dimension;
  const size_t element = mp_dtype_size(operand->dtype);
  int64_t size[MP_BOX_MAX_RANK];
  int64_t from[MP_BOX_MAX_RANK] = {0};
  int64_t to[MP_BOX_MAX_RANK] = {0};
  memcpy(size, operand->dims, operand->rank * sizeof(*size));
  MP_ASSERT(split < operand->rank && concat < operand->rank && size[split] % call->size == 0);
  size[split] /= call->size;
  to[concat] = size[concat] * source;
  const void *input;
  const int64_t *dims;
  if (call->schedule == NULL || mp_group_layout_is_local(call->schedule->layout, source)) {
    input = call->contributions[source].inputs[i];
    dims = operand->dims;
    from[split] = size[split] * destination;
  } else {
    const size_t bytes = (size_t)mp_dims_product(size, 0, operand->rank) * element;
    input = mp_collective_schedule_take(call->schedule, source, destination, bytes, element);
    dims = size;
  }
  mp_box_copy_by(call->copy, &(mp_box_copy_t){.rank = operand->rank,
                                              .size = size,
                                              .element_size = element,
                                              .src = input,
                                              .src_dims = dims,
                                              .src_start = from,
                                              .dst = call->contributions[destination].outputs[i],
                                              .dst_dims = operand->result_dims,
                                              .dst_start = to});
}

mp_status_t mp_all_to_all_chunk(const mp_collective_call_t *call) {
  int64_t begin, end;
  mp_chunk_range(call, call->size, &begin, &end);
  for (int64_t destination = begin; destination < end; ++destination) {
    if (!mp_call_writes(call, destination)) continue;
    for (uint32_t i = 0; i < call->collective->num_operands; ++i) {
      for (uint32_t source = 0; source < call->size; ++source) {
        collective_move_all_to_all_part(call, (uint32_t)destination, source, i);
      }
    }
  }
  return NULL;
}

int64_t mp_permute_source(const mp_collective_t *collective, uint32_t target) {
  uint32_t low = 0;
  uint32_t high = collective->num_pairs;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (collective->pairs[2 * middle + 1] < target) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == collective->num_pairs || collective->pairs[2 * low + 1] != target) return -1;
  MP_ASSERT(collective->pairs[2 * low] < collective->groups->num_devices);
  return collective->groups->position[collective->pairs[2 * low]];
}

mp_status_t mp_permute_chunk(const mp_collective_call_t *call) {
  int64_t begin, end;
  mp_chunk_range(call, call->size, &begin, &end);
  for (int64_t destination = begin; destination < end; ++destination) {
    if (!mp_call_writes(call, destination)) continue;
    int64_t source = mp_permute_source(call->collective, call->members[destination]);
    for (uint32_t i = 0; i < call->collective->num_operands; ++i) {
      const mp_collective_operand_t *operand = &call->collective->operands[i];
      const size_t bytes = mp_operand_bytes(operand, operand->dims);
      void *output = call->contributions[destination].outputs[i];
      if (bytes == 0) continue;
      if (source < 0) {
        memset(output, 0, bytes);
      } else if (call->schedule == NULL ||
                 mp_group_layout_is_local(call->schedule->layout, (uint32_t)source)) {
        call->copy(output, call->contributions[source].inputs[i], bytes);
      } else {
        const size_t element = mp_dtype_size(call->collective->operands[i].dtype);
        call->copy(output,
                   mp_collective_schedule_take(call->schedule, (uint32_t)source,
                                               (uint32_t)destination, bytes, element),
                   bytes);
      }
    }
  }
  return NULL;
}

mp_status_t mp_broadcast_chunk(const mp_collective_call_t *call) {
  int64_t begin, end;
  mp_chunk_range(call, call->size, &begin, &end);
  for (int64_t destination = begin; destination < end; ++destination) {
    if (!mp_call_writes(call, destination)) continue;
    for (uint32_t i = 0; i < call->collective->num_operands; ++i) {
      const mp_collective_operand_t *operand = &call->collective->operands[i];
      const size_t bytes = mp_operand_bytes(operand, operand->dims);
      if (bytes == 0) continue;
      call->copy(call->contributions[destination].outputs[i], call->contributions[0].inputs[i],
                 bytes);
    }
  }
  return NULL;
}

bool mp_exchange_part(const mp_collective_t *collective, const uint32_t *members, uint32_t source,
                      uint32_t destination, mp_exchange_part_t *out_part) {
  const uint32_t rank = collective->operands[0].rank;
  const size_t from = members[source], to = members[destination];
  const int64_t *have = collective->source.starts + from * rank;
  const int64_t *want = collective->target.starts + to * rank;
  int64_t start[MP_BOX_MAX_RANK];
  if (!mp_box_intersect(rank, have, collective->source.sizes + from * rank, want,
                        collective->target.sizes + to * rank, start, out_part->size)) {
    return false;
  }
  for (uint32_t d = 0; d < rank; ++d) {
    out_part->from[d] = start[d] - have[d];
    out_part->to[d] = start[d] - want[d];
  }
  return true;
}

// Copies the part of the destination's box that `source` (a position) has. The arrays have the
// operand's dimensions, which uneven boxes do not fill; data from other processes are packed
// densely.
static void collective_move_exchange_part(const mp_collective_call_t *call, uint32_t destination,
                                          uint32_t source) {
  const mp_collective_operand_t *operand = &call->collective->operands[0];
  const size_t element = mp_dtype_size(operand->dtype);
  mp_exchange_part_t part;
  if (!mp_exchange_part(call->collective, call->members, source, destination, &part)) return;
  void *output = call->contributions[destination].outputs[0];
  if (call->schedule == NULL || mp_group_layout_is_local(call->schedule->layout, source)) {
    mp_box_copy_by(call->copy, &(mp_box_copy_t){.rank = operand->rank,
                                                .size = part.size,
                                                .element_size = element,
                                                .src = call->contributions[source].inputs[0],
                                                .src_dims = operand->dims,
                                                .src_start = part.from,
                                                .dst = output,
                                                .dst_dims = operand->result_dims,
                                                .dst_start = part.to});
    return;
  }
  const int64_t zero[MP_BOX_MAX_RANK] = {0};
  const size_t bytes = (size_t)mp_dims_product(part.size, 0, operand->rank) * element;
  mp_box_copy_by(call->copy,
                 &(mp_box_copy_t){.rank = operand->rank,
                                  .size = part.size,
                                  .element_size = element,
                                  .src = mp_collective_schedule_take(call->schedule, source,
                                                                     destination, bytes, element),
                                  .src_dims = part.size,
                                  .src_start = zero,
                                  .dst = output,
                                  .dst_dims = operand->result_dims,
                                  .dst_start = part.to});
}

mp_status_t mp_exchange_chunk(const mp_collective_call_t *call) {
  const uint32_t *owner = call->collective->source.owner;
  int64_t begin, end;
  mp_chunk_range(call, call->size, &begin, &end);
  for (int64_t destination = begin; destination < end; ++destination) {
    if (!mp_call_writes(call, destination)) continue;
    const uint32_t own = owner[call->members[destination]];
    for (uint32_t source = 0; source < call->size; ++source) {
      const uint32_t logical = call->members[source];
      if (owner[logical] != logical) continue;
      // If the destination has the same box as this source, it copies its own.
      collective_move_exchange_part(call, (uint32_t)destination,
                                    own == logical ? (uint32_t)destination : source);
    }
  }
  return NULL;
}
