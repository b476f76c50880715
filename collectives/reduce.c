// Reductions: all_reduce and reduce_scatter over one balanced tree of group positions.
//
// The tree of n positions splits at the largest power of two below n, so it depends on n alone and
// its left parts are whole subtrees. A block of elements goes through the whole tree before the
// next one: leaves are loaded (and widened) one after another onto a stack of partials, equal
// levels are combined as they meet, like carries of a binary counter.
#include <string.h>

#include "collectives/internal.h"
#include "sim/base/box.h"
#include "sim/base/dtype.h"

enum { MP_REDUCE_BLOCK = 2048, MP_REDUCE_MAX_LEVELS = 33 };

static int64_t block_elements(const mp_collective_t *collective) {
  int64_t most = collective->reducer.max_count;
  return most < MP_REDUCE_BLOCK ? most : MP_REDUCE_BLOCK;
}

static size_t round_up_64(size_t bytes) {
  return (bytes + 63) & ~(size_t)63;
}

// Bytes of one operand's partial of one block.
static size_t partial_bytes(const mp_collective_t *collective, uint32_t operand) {
  return round_up_64((size_t)block_elements(collective) *
                     mp_dtype_size(collective->operands[operand].accumulation));
}

static uint32_t tree_levels(uint32_t group_size) {
  uint32_t levels = 1;
  while (group_size >>= 1) ++levels;
  return levels + 1;  // one more for the leaf on its way
}

size_t mp_reduce_scratch_bytes(const mp_collective_t *collective, uint32_t group_size) {
  size_t level = 0;
  for (uint32_t i = 0; i < collective->num_operands; ++i) level += partial_bytes(collective, i);
  size_t pointers = round_up_64(3 * (size_t)collective->num_operands * sizeof(void *));
  return level * tree_levels(group_size) + pointers + collective->reducer.scratch_bytes;
}

// The state of one block's way through the tree.
typedef struct {
  const mp_collective_call_t *call;
  const mp_collective_t *collective;
  int64_t count;  // elements of this block
  size_t level_bytes;
  char *partials;        // [levels][operands]
  void **a, **b, **out;  // [operands], arguments for the reducer
  void *reducer_scratch;
  uint32_t depth;                        // partials on the stack
  uint32_t level[MP_REDUCE_MAX_LEVELS];  // log2 of how many leaves each holds
} mp_reduce_block_t;

static void set_pointers(const mp_reduce_block_t *block, uint32_t slot, void **pointers) {
  char *at = block->partials + slot * block->level_bytes;
  for (uint32_t i = 0; i < block->collective->num_operands; ++i) {
    pointers[i] = at;
    at += partial_bytes(block->collective, i);
  }
}

static void load_leaf(mp_reduce_block_t *block, uint32_t position, int64_t offset) {
  set_pointers(block, block->depth, block->out);
  for (uint32_t i = 0; i < block->collective->num_operands; ++i) {
    const mp_collective_operand_t *operand = &block->collective->operands[i];
    size_t size = mp_dtype_size(operand->dtype);
    const char *from =
        (const char *)block->call->contributions[position].inputs[i] + (size_t)offset * size;
    if (operand->accumulation == operand->dtype) {
      memcpy(block->out[i], from, (size_t)block->count * size);
    } else {
      mp_float_widen(operand->dtype, block->count, from, block->out[i]);
    }
  }
  block->level[block->depth++] = 0;
}

// Combines the two topmost partials into the lower one.
static void combine_top(mp_reduce_block_t *block) {
  const mp_reducer_t *reducer = &block->collective->reducer;
  set_pointers(block, block->depth - 2, block->a);
  set_pointers(block, block->depth - 1, block->b);
  reducer->combine(reducer->context, block->count, (const void *const *)block->a,
                   (const void *const *)block->b, block->a, block->reducer_scratch);
  --block->depth;
  ++block->level[block->depth - 1];
}

// Reduces elements [offset, offset + count) of all operands over the group; the result is at
// level 0 afterwards, in the accumulation types.
static void reduce_block(mp_reduce_block_t *block, int64_t offset, int64_t count) {
  block->count = count;
  block->depth = 0;
  for (uint32_t position = 0; position < block->call->size; ++position) {
    load_leaf(block, position, offset);
    while (block->depth >= 2 && block->level[block->depth - 1] == block->level[block->depth - 2]) {
      combine_top(block);
    }
  }
  while (block->depth >= 2) combine_top(block);
}

static void store_result(const mp_reduce_block_t *block, uint32_t operand, void *output,
                         int64_t offset) {
  const mp_collective_operand_t *info = &block->collective->operands[operand];
  size_t size = mp_dtype_size(info->dtype);
  char *to = (char *)output + (size_t)offset * size;
  if (info->accumulation == info->dtype) {
    memcpy(to, block->a[operand], (size_t)block->count * size);
  } else {
    mp_float_narrow(info->dtype, block->count, block->a[operand], to);
  }
}

static mp_reduce_block_t make_block(const mp_collective_call_t *call) {
  const mp_collective_t *collective = call->collective;
  mp_reduce_block_t block = {.call = call, .collective = collective};
  for (uint32_t i = 0; i < collective->num_operands; ++i) {
    block.level_bytes += partial_bytes(collective, i);
  }
  char *at = call->scratch;
  block.a = (void **)(void *)at;
  block.b = block.a + collective->num_operands;
  block.out = block.b + collective->num_operands;
  at += round_up_64(3 * (size_t)collective->num_operands * sizeof(void *));
  block.partials = at;
  at += block.level_bytes * tree_levels(call->size);
  block.reducer_scratch = at;
  return block;
}

mp_status_t mp_all_reduce_chunk(const mp_collective_call_t *call) {
  const mp_collective_t *collective = call->collective;
  mp_reduce_block_t block = make_block(call);
  const int64_t step = block_elements(collective);
  int64_t begin, end;
  // All operands of a variadic reduction have one shape.
  mp_chunk_range(call, mp_dims_product(collective->operands[0].dims, collective->operands[0].rank),
                 &begin, &end);
  for (int64_t offset = begin; offset < end; offset += step) {
    reduce_block(&block, offset, end - offset < step ? end - offset : step);
    set_pointers(&block, 0, block.a);
    for (uint32_t member = 0; member < call->size; ++member) {
      for (uint32_t i = 0; i < collective->num_operands; ++i) {
        store_result(&block, i, call->contributions[member].outputs[i], offset);
      }
    }
  }
  return NULL;
}

// Member m gets the m-th part along the scatter dimension; the array is `outer` rows of the group's
// parts, each part one run of `run` elements.
mp_status_t mp_reduce_scatter_chunk(const mp_collective_call_t *call) {
  const mp_collective_t *collective = call->collective;
  const mp_collective_operand_t *operand = &collective->operands[0];
  const uint32_t dimension = (uint32_t)collective->dimension;
  const int64_t outer = mp_dims_product(operand->dims, dimension);
  const int64_t run = mp_dims_product(operand->result_dims + dimension, operand->rank - dimension);
  mp_reduce_block_t block = make_block(call);
  const int64_t step = block_elements(collective);
  int64_t begin, end;
  mp_chunk_range(call, outer * call->size, &begin, &end);
  for (int64_t part = begin; part < end; ++part) {
    const int64_t row = part / call->size;
    const int64_t member = part % call->size;
    for (int64_t done = 0; done < run; done += step) {
      reduce_block(&block, part * run + done, run - done < step ? run - done : step);
      set_pointers(&block, 0, block.a);
      for (uint32_t i = 0; i < collective->num_operands; ++i) {
        store_result(&block, i, call->contributions[member].outputs[i], row * run + done);
      }
    }
  }
  return NULL;
}
