// Reductions: all_reduce and reduce_scatter over one balanced tree of group positions.
//
// The tree of n positions splits at the largest power of two below n, so it depends on n alone and
// its left parts are whole subtrees. A block of elements goes through the whole tree before the
// next one; partials are kept on a stack: left part, right part, the two combined.
#include <string.h>

#include "collectives/collective_parts.h"
#include "sim/base/assert.h"
#include "sim/numeric/dims.h"
#include "sim/numeric/float.h"

enum { MP_REDUCE_BLOCK = 8192 };

int64_t mp_reduce_block_elements(const mp_collective_t *collective) {
  int64_t most = collective->reducer.max_count;
  return most < MP_REDUCE_BLOCK ? most : MP_REDUCE_BLOCK;
}

// Bytes of a partial of one block, of the widest operand.
static size_t collective_reduce_partial_bytes(const mp_collective_t *collective) {
  size_t widest = 0;
  for (uint32_t i = 0; i < collective->num_operands; ++i) {
    size_t size = mp_dtype_size(collective->operands[i].accumulation);
    if (size > widest) widest = size;
  }
  return mp_align64((size_t)mp_reduce_block_elements(collective) * widest);
}

static uint32_t collective_reduce_tree_levels(uint32_t group_size) {
  uint32_t levels = 2;  // one of them for the leaf that is being pushed
  while (group_size >>= 1) ++levels;
  return levels;
}

// Scratch memory holds the stack of partials, then the bases of pieces, then the reducer's own.
static size_t collective_reduce_stack_bytes(const mp_collective_t *collective,
                                            uint32_t group_size) {
  return collective_reduce_partial_bytes(collective) * collective_reduce_tree_levels(group_size);
}

size_t mp_reduce_scratch_bytes(const mp_collective_t *collective, uint32_t group_size,
                               uint32_t num_processes) {
  return collective_reduce_stack_bytes(collective, group_size) +
         2 * mp_align64(num_processes * sizeof(char *)) + collective->reducer.scratch_bytes;
}

mp_reduction_t mp_reduction_start(const mp_collective_t *collective,
                                  const mp_contribution_t *contributions, uint32_t group_size,
                                  uint32_t number, uint32_t num_processes, void *scratch) {
  const size_t bases_bytes = mp_align64(num_processes * sizeof(char *));
  char *after_stack = (char *)scratch + collective_reduce_stack_bytes(collective, group_size);
  return (mp_reduction_t){
      .collective = collective,
      .contributions = contributions,
      .operand = &collective->operands[number],
      .number = number,
      .level_bytes = collective_reduce_partial_bytes(collective),
      .partials = scratch,
      .copy = mp_copy_cached,
      .far.bases = (const char **)(void *)after_stack,
      .near.bases = (const char **)(void *)(after_stack + bases_bytes),
      .reducer_scratch = after_stack + 2 * bases_bytes,
  };
}

static void collective_reduce_push(mp_reduction_t *reduction, bool is_accumulated,
                                   const void *from) {
  const mp_collective_operand_t *operand = reduction->operand;
  MP_ASSERT((size_t)reduction->count * mp_dtype_size(operand->accumulation) <=
            reduction->level_bytes);
  const uint32_t level = reduction->depth++;
  MP_ASSERT(level < MP_TREE_LEVELS);
  reduction->tops[level] = from;
  if (is_accumulated || operand->accumulation == operand->dtype) return;
  void *to = reduction->partials + level * reduction->level_bytes;
  mp_float_widen(operand->dtype, reduction->count, from, to);
  reduction->tops[level] = to;
}

static void collective_reduce_push_leaf(mp_reduction_t *reduction, uint32_t position,
                                        int64_t leaf) {
  const char *input = reduction->contributions[position].inputs[reduction->number];
  collective_reduce_push(reduction, false,
                         input + (size_t)leaf * mp_dtype_size(reduction->operand->dtype));
}

const void *mp_piece_data(const mp_piece_source_t *source, const mp_piece_t *piece,
                          const mp_collective_operand_t *operand) {
  const size_t size = mp_piece_element_bytes(source->layout, piece->process, operand);
  return source->bases[piece->process] + piece->index * mp_align64((size_t)source->count * size) +
         (size_t)source->at * size;
}

// If the subtree is a piece that the source has, pushes it and returns true.
static bool collective_reduce_push_piece(mp_reduction_t *reduction, mp_piece_source_t *source,
                                         uint32_t begin, uint32_t positions) {
  const mp_group_layout_t *layout = source->layout;
  if (layout == NULL) return false;
  // The walk comes to subtrees from left to right. It passes over pieces that lie within a larger
  // piece of the other source.
  while (source->next < layout->num_pieces && layout->pieces[source->next].begin < begin) {
    ++source->next;
  }
  if (source->next == layout->num_pieces) return false;
  const mp_piece_t *piece = &layout->pieces[source->next];
  if (piece->begin != begin || piece->count != positions) return false;
  if (source->bases[piece->process] == NULL) return false;
  collective_reduce_push(reduction, !mp_group_layout_has_leaves_only(layout, piece->process),
                         mp_piece_data(source, piece, reduction->operand));
  return true;
}

// Combines the two topmost partials into one. `is_last`: that is the result of the block.
static void collective_reduce_combine_top(mp_reduction_t *reduction, bool is_last) {
  const mp_reducer_t *reducer = &reduction->collective->reducer;
  MP_ASSERT(reduction->depth >= 2);
  const uint32_t lower = reduction->depth - 2;
  void *to = reduction->partials + lower * reduction->level_bytes;
  if (is_last && reduction->target != NULL) to = reduction->target;
  reducer->combine(reducer->context, reduction->count, reduction->tops[lower],
                   reduction->tops[lower + 1], to, reduction->reducer_scratch);
  reduction->tops[lower] = to;
  --reduction->depth;
}

static void collective_reduce_tree(mp_reduction_t *reduction, uint32_t begin, uint32_t positions,
                                   int64_t leaf) {
  if (collective_reduce_push_piece(reduction, &reduction->far, begin, positions)) return;
  if (collective_reduce_push_piece(reduction, &reduction->near, begin, positions)) return;
  if (positions == 1) {
    collective_reduce_push_leaf(reduction, begin, leaf);
    return;
  }
  const uint32_t left = mp_tree_left(positions);
  MP_ASSERT(left >= 1 && left < positions);
  collective_reduce_tree(reduction, begin, left, leaf);
  collective_reduce_tree(reduction, begin + left, positions - left, leaf);
  collective_reduce_combine_top(reduction, positions == reduction->total);
}

void mp_reduction_run(mp_reduction_t *reduction, uint32_t begin, uint32_t positions, int64_t leaf,
                      int64_t count) {
  reduction->count = count;
  reduction->depth = 0;
  reduction->total = positions;
  reduction->far.next = reduction->near.next = 0;
  MP_ASSERT(positions != 0 && count > 0);
  collective_reduce_tree(reduction, begin, positions, leaf);
  MP_ASSERT(reduction->depth == 1);  // one result is left
  reduction->target = NULL;
}

void mp_reduction_store(const mp_reduction_t *reduction, void *to) {
  const mp_collective_operand_t *operand = reduction->operand;
  const void *from = reduction->tops[0];
  if (operand->accumulation != operand->dtype) {
    mp_float_narrow(operand->dtype, reduction->count, from, to);
  } else if (to != from) {
    reduction->copy(to, from, (size_t)reduction->count * mp_dtype_size(operand->dtype));
  }
}

static char *collective_reduce_output(const mp_reduction_t *reduction,
                                      const mp_contribution_t *member, int64_t offset) {
  char *to = member->outputs[reduction->number];
  return to + (size_t)offset * mp_dtype_size(reduction->operand->dtype);
}

void mp_reduction_aim_at(mp_reduction_t *reduction, const mp_contribution_t *member,
                         int64_t offset) {
  const mp_collective_operand_t *operand = reduction->operand;
  // A result that goes past the caches is made within them first.
  const bool is_direct =
      operand->accumulation == operand->dtype && reduction->copy == mp_copy_cached;
  reduction->target = is_direct ? collective_reduce_output(reduction, member, offset) : NULL;
}

void mp_reduction_store_at(const mp_reduction_t *reduction, const mp_contribution_t *member,
                           int64_t offset) {
  mp_reduction_store(reduction, collective_reduce_output(reduction, member, offset));
}

// ---- The algorithms ----

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
