// Reductions: all_reduce and reduce_scatter over the tree of group positions (reduction_tree.h).
#include "collectives/collective_parts.h"
#include "collectives/reduction_tree.h"
#include "sim/numeric/dims.h"

static void collective_reduce_all_reduce_operand(const mp_collective_call_t *call,
                                                 uint32_t number) {
  mp_reduction_t reduction = mp_reduction_start(call->collective, call->contributions, call->size,
                                                number, 0, call->scratch);
  reduction.copy = call->copy;
  const int64_t step = mp_reduce_block_elements(call->collective);
  int64_t begin, end;
  mp_chunk_range(call, mp_dims_product(reduction.operand->dims, 0, reduction.operand->rank), &begin,
                 &end);
  for (int64_t offset = begin; offset < end; offset += step) {
    mp_reduction_aim_at(&reduction, &call->contributions[0], offset);
    mp_reduction_run(&reduction, 0, call->size, offset, end - offset < step ? end - offset : step);
    for (uint32_t member = 0; member < call->size; ++member) {
      mp_reduction_store_at(&reduction, &call->contributions[member], offset);
    }
  }
}

mp_status_t mp_all_reduce_chunk(const mp_collective_call_t *call) {
  if (call->schedule != NULL) {
    mp_all_reduce_schedule(call);
    return NULL;
  }
  for (uint32_t i = 0; i < call->collective->num_operands; ++i)
    collective_reduce_all_reduce_operand(call, i);
  return NULL;
}

// Member m gets the m-th part along the scatter dimension: the array is `outer` rows of one part
// per member, each part one run of elements.
static void collective_reduce_scatter_operand(const mp_collective_call_t *call, uint32_t number) {
  mp_reduction_t reduction = mp_reduction_start(call->collective, call->contributions, call->size,
                                                number, 0, call->scratch);
  reduction.copy = call->copy;
  const mp_collective_operand_t *operand = reduction.operand;
  const uint32_t dimension = (uint32_t)call->collective->dimension;
  const int64_t outer = mp_dims_product(operand->dims, 0, dimension);
  const int64_t run = mp_dims_product(operand->result_dims, dimension, operand->rank);
  const int64_t step = mp_reduce_block_elements(call->collective);
  int64_t begin, end;
  mp_chunk_range(call, outer * call->size, &begin, &end);
  for (int64_t part = begin; part < end; ++part) {
    const int64_t row = part / call->size;
    const mp_contribution_t *member = &call->contributions[part % call->size];
    for (int64_t done = 0; done < run; done += step) {
      mp_reduction_aim_at(&reduction, member, row * run + done);
      mp_reduction_run(&reduction, 0, call->size, part * run + done,
                       run - done < step ? run - done : step);
      mp_reduction_store_at(&reduction, member, row * run + done);
    }
  }
}

mp_status_t mp_reduce_scatter_chunk(const mp_collective_call_t *call) {
  if (call->schedule != NULL) {
    mp_reduce_scatter_schedule(call);
    return NULL;
  }
  for (uint32_t i = 0; i < call->collective->num_operands; ++i)
    collective_reduce_scatter_operand(call, i);
  return NULL;
}
