// Reductions: all_reduce and reduce_scatter over one balanced tree of group positions.
//
// The tree of n positions splits at the largest power of two below n, so it depends on n alone and
// its left parts are whole subtrees. A block of elements goes through the whole tree before the
// next one: leaves are loaded (and widened) one after another onto a stack of partials, equal
// levels are combined as they meet, like carries of a binary counter.
#include <string.h>

#include "collectives/internal.h"
#include "sim/base/box.h"
#include "sim/base/float.h"

enum { MP_REDUCE_BLOCK = 2048, MP_REDUCE_MAX_LEVELS = 34 };

static int64_t block_elements(const mp_collective_t *collective) {
  int64_t most = collective->reducer.max_count;
  return most < MP_REDUCE_BLOCK ? most : MP_REDUCE_BLOCK;
}

// Bytes of a partial of one block, of the widest operand.
static size_t partial_bytes(const mp_collective_t *collective) {
  size_t widest = 0;
  for (uint32_t i = 0; i < collective->num_operands; ++i) {
    size_t size = mp_dtype_size(collective->operands[i].accumulation);
    if (size > widest) widest = size;
  }
  return ((size_t)block_elements(collective) * widest + 63) & ~(size_t)63;
}

static uint32_t tree_levels(uint32_t group_size) {
  uint32_t levels = 2;  // one more for the leaf on its way
  while (group_size >>= 1) ++levels;
  return levels;
}

size_t mp_reduce_scratch_bytes(const mp_collective_t *collective, uint32_t group_size) {
  return partial_bytes(collective) * tree_levels(group_size) + collective->reducer.scratch_bytes;
}

// The state of one operand's way through the tree.
typedef struct {
  const mp_collective_call_t *call;
  const mp_reducer_t *reducer;
  const mp_collective_operand_t *operand;
  uint32_t number;  // of the operand
  size_t level_bytes;
  char *partials;  // one per level, bottom first
  void *reducer_scratch;
  int64_t count;                         // elements of the block in work
  uint32_t depth;                        // partials on the stack
  uint32_t level[MP_REDUCE_MAX_LEVELS];  // log2 of how many leaves each holds
} mp_reduction_t;

static mp_reduction_t start_reduction(const mp_collective_call_t *call, uint32_t number) {
  const mp_collective_t *collective = call->collective;
  size_t level_bytes = partial_bytes(collective);
  return (mp_reduction_t){
      .call = call,
      .reducer = &collective->reducer,
      .operand = &collective->operands[number],
      .number = number,
      .level_bytes = level_bytes,
      .partials = call->scratch,
      .reducer_scratch = (char *)call->scratch + level_bytes * tree_levels(call->size),
  };
}

static void load_leaf(mp_reduction_t *reduction, uint32_t position, int64_t offset) {
  const mp_collective_operand_t *operand = reduction->operand;
  const size_t size = mp_dtype_size(operand->dtype);
  const char *from =
      (const char *)reduction->call->contributions[position].inputs[reduction->number] +
      (size_t)offset * size;
  void *to = reduction->partials + reduction->depth * reduction->level_bytes;
  if (operand->accumulation == operand->dtype) {
    memcpy(to, from, (size_t)reduction->count * size);
  } else {
    mp_float_widen(operand->dtype, reduction->count, from, to);
  }
  reduction->level[reduction->depth++] = 0;
}

// Combines the two topmost partials into the lower one.
static void combine_top(mp_reduction_t *reduction) {
  char *upper = reduction->partials + (reduction->depth - 1) * reduction->level_bytes;
  char *lower = upper - reduction->level_bytes;
  reduction->reducer->combine(reduction->reducer->context, reduction->count, lower, upper, lower,
                              reduction->reducer_scratch);
  --reduction->depth;
  ++reduction->level[reduction->depth - 1];
}

// Reduces elements [offset, offset + count) over the group; the result is the bottom partial, in
// the accumulation type.
static void reduce_block(mp_reduction_t *reduction, int64_t offset, int64_t count) {
  reduction->count = count;
  reduction->depth = 0;
  for (uint32_t position = 0; position < reduction->call->size; ++position) {
    load_leaf(reduction, position, offset);
    while (reduction->depth >= 2 &&
           reduction->level[reduction->depth - 1] == reduction->level[reduction->depth - 2]) {
      combine_top(reduction);
    }
  }
  while (reduction->depth >= 2) combine_top(reduction);
}

static void store_result(const mp_reduction_t *reduction, uint32_t member, int64_t offset) {
  const mp_collective_operand_t *operand = reduction->operand;
  const size_t size = mp_dtype_size(operand->dtype);
  char *to = (char *)reduction->call->contributions[member].outputs[reduction->number] +
             (size_t)offset * size;
  if (operand->accumulation == operand->dtype) {
    memcpy(to, reduction->partials, (size_t)reduction->count * size);
  } else {
    mp_float_narrow(operand->dtype, reduction->count, (const float *)(void *)reduction->partials,
                    to);
  }
}

static void all_reduce_operand(const mp_collective_call_t *call, uint32_t number) {
  mp_reduction_t reduction = start_reduction(call, number);
  const int64_t step = block_elements(call->collective);
  int64_t begin, end;
  mp_chunk_range(call, mp_dims_product(reduction.operand->dims, reduction.operand->rank), &begin,
                 &end);
  for (int64_t offset = begin; offset < end; offset += step) {
    reduce_block(&reduction, offset, end - offset < step ? end - offset : step);
    for (uint32_t member = 0; member < call->size; ++member) {
      store_result(&reduction, member, offset);
    }
  }
}

mp_status_t mp_all_reduce_chunk(const mp_collective_call_t *call) {
  for (uint32_t i = 0; i < call->collective->num_operands; ++i) all_reduce_operand(call, i);
  return NULL;
}

// Member m gets the m-th part along the scatter dimension: the array is `outer` rows of one part
// per member, each part one run of elements.
static void reduce_scatter_operand(const mp_collective_call_t *call, uint32_t number) {
  mp_reduction_t reduction = start_reduction(call, number);
  const mp_collective_operand_t *operand = reduction.operand;
  const uint32_t dimension = (uint32_t)call->collective->dimension;
  const int64_t outer = mp_dims_product(operand->dims, dimension);
  const int64_t run = mp_dims_product(operand->result_dims + dimension, operand->rank - dimension);
  const int64_t step = block_elements(call->collective);
  int64_t begin, end;
  mp_chunk_range(call, outer * call->size, &begin, &end);
  for (int64_t part = begin; part < end; ++part) {
    const int64_t row = part / call->size;
    for (int64_t done = 0; done < run; done += step) {
      reduce_block(&reduction, part * run + done, run - done < step ? run - done : step);
      store_result(&reduction, (uint32_t)(part % call->size), row * run + done);
    }
  }
}

mp_status_t mp_reduce_scatter_chunk(const mp_collective_call_t *call) {
  for (uint32_t i = 0; i < call->collective->num_operands; ++i) reduce_scatter_operand(call, i);
  return NULL;
}
