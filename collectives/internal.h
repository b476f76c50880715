// Shared by the algorithms' files: one function per kind, behind mp_collective_run.
#ifndef MINIPOD_COLLECTIVES_INTERNAL_H_
#define MINIPOD_COLLECTIVES_INTERNAL_H_

#include "collectives/collective.h"

typedef struct {
  const mp_collective_t *collective;
  const uint32_t *members;  // logical numbers, in group order
  uint32_t size;            // of the group
  const mp_contribution_t *contributions;
  uint32_t chunk, num_chunks;
  void *scratch;
} mp_collective_call_t;

// The part [begin, end) of `total` items that the call's chunk does.
static inline void mp_chunk_range(const mp_collective_call_t *call, int64_t total,
                                  int64_t *out_begin, int64_t *out_end) {
  *out_begin = total * call->chunk / call->num_chunks;
  *out_end = total * (call->chunk + 1) / call->num_chunks;
}

size_t mp_reduce_scratch_bytes(const mp_collective_t *collective, uint32_t group_size);
mp_status_t mp_all_reduce_chunk(const mp_collective_call_t *call);
mp_status_t mp_reduce_scatter_chunk(const mp_collective_call_t *call);
mp_status_t mp_all_gather_chunk(const mp_collective_call_t *call);
mp_status_t mp_all_to_all_chunk(const mp_collective_call_t *call);
mp_status_t mp_permute_chunk(const mp_collective_call_t *call);
mp_status_t mp_broadcast_chunk(const mp_collective_call_t *call);
mp_status_t mp_ragged_all_to_all_chunk(const mp_collective_call_t *call);
mp_status_t mp_exchange_chunk(const mp_collective_call_t *call);

#endif  // MINIPOD_COLLECTIVES_INTERNAL_H_
