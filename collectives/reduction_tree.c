// Reductions over one balanced tree of group positions.
//
// The tree of n positions splits at the largest power of two below n, so it depends on n alone and
// its left parts are whole subtrees. A block of elements goes through the whole tree before the
// next one; partials are kept on a stack: left part, right part, then both combined.
#include "collectives/reduction_tree.h"

#include "collectives/collective_parts.h"
#include "sim/base/assert.h"
#include "sim/numeric/float.h"

enum { MP_REDUCE_BLOCK = 8192 };

int64_t mp_reduce_block_elements(const mp_collective_t *collective) {
  int64_t most = collective->reducer.max_count;
  return most < MP_REDUCE_BLOCK ? most : MP_REDUCE_BLOCK;
}

// Bytes of a partial of one block, of the widest operand.
static size_t reduction_tree_partial_bytes(const mp_collective_t *collective) {
  size_t widest = 0;
  for (uint32_t i = 0; i < collective->num_operands; ++i) {
    size_t size = mp_dtype_size(collective->operands[i].accumulation);
    if (size > widest) widest = size;
  }
  return mp_align64((size_t)mp_reduce_block_elements(collective) * widest);
}

static uint32_t reduction_tree_levels(uint32_t group_size) {
  uint32_t levels = 2;  // one of them for the leaf that is being pushed
  while (group_size >>= 1) ++levels;
  return levels;
}

// Scratch memory holds the stack of partials, then the bases of pieces, then the reducer's own.
static size_t reduction_tree_stack_bytes(const mp_collective_t *collective, uint32_t group_size) {
  return reduction_tree_partial_bytes(collective) * reduction_tree_levels(group_size);
}

size_t mp_reduce_scratch_bytes(const mp_collective_t *collective, uint32_t group_size,
                               uint32_t num_processes) {
  return reduction_tree_stack_bytes(collective, group_size) +
         2 * mp_align64(num_processes * sizeof(char *)) + collective->reducer.scratch_bytes;
}

mp_reduction_t mp_reduction_start(const mp_collective_t *collective,
                                  const mp_contribution_t *contributions, uint32_t group_size,
                                  uint32_t number, uint32_t num_processes, void *scratch) {
  const size_t bases_bytes = mp_align64(num_processes * sizeof(char *));
  char *after_stack = (char *)scratch + reduction_tree_stack_bytes(collective, group_size);
  return (mp_reduction_t){
      .collective = collective,
      .contributions = contributions,
      .operand = &collective->operands[number],
      .number = number,
      .level_bytes = reduction_tree_partial_bytes(collective),
      .partials = scratch,
      .copy = mp_copy_cached,
      .far.bases = (const char **)(void *)after_stack,
      .near.bases = (const char **)(void *)(after_stack + bases_bytes),
      .reducer_scratch = after_stack + 2 * bases_bytes,
  };
}

static void reduction_tree_push(mp_reduction_t *reduction, bool is_accumulated, const void *from) {
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

static void reduction_tree_push_leaf(mp_reduction_t *reduction, uint32_t position, int64_t leaf) {
  const char *input = reduction->contributions[position].inputs[reduction->number];
  reduction_tree_push(reduction, false,
                      input + (size_t)leaf * mp_dtype_size(reduction->operand->dtype));
}

const void *mp_piece_data(const mp_piece_source_t *source, const mp_piece_t *piece,
                          const mp_collective_operand_t *operand) {
  const size_t size = mp_piece_element_bytes(source->layout, piece->process, operand);
  return source->bases[piece->process] + piece->index * mp_align64((size_t)source->count * size) +
         (size_t)source->at * size;
}

// If the subtree is a piece that the source has, pushes it and returns true.
static bool reduction_tree_push_piece(mp_reduction_t *reduction, mp_piece_source_t *source,
                                      uint32_t begin, uint32_t positions) {
  const mp_group_layout_t *layout = source->layout;
  if (layout == NULL) return false;
  // The walk visits subtrees from left to right. It skips pieces that are within a larger piece of
  // the other source.
  while (source->next < layout->num_pieces && layout->pieces[source->next].begin < begin) {
    ++source->next;
  }
  if (source->next == layout->num_pieces) return false;
  const mp_piece_t *piece = &layout->pieces[source->next];
  if (piece->begin != begin || piece->count != positions) return false;
  if (source->bases[piece->process] == NULL) return false;
  reduction_tree_push(reduction, !mp_group_layout_has_leaves_only(layout, piece->process),
                      mp_piece_data(source, piece, reduction->operand));
  return true;
}

// Combines the two topmost partials into one. `is_last`: that is the result of the block.
static void reduction_tree_combine_top(mp_reduction_t *reduction, bool is_last) {
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

static void reduction_tree_walk(mp_reduction_t *reduction, uint32_t begin, uint32_t positions,
                                int64_t leaf) {
  if (reduction_tree_push_piece(reduction, &reduction->far, begin, positions)) return;
  if (reduction_tree_push_piece(reduction, &reduction->near, begin, positions)) return;
  if (positions == 1) {
    reduction_tree_push_leaf(reduction, begin, leaf);
    return;
  }
  const uint32_t left = mp_tree_left(positions);
  MP_ASSERT(left >= 1 && left < positions);
  reduction_tree_walk(reduction, begin, left, leaf);
  reduction_tree_walk(reduction, begin + left, positions - left, leaf);
  reduction_tree_combine_top(reduction, positions == reduction->total);
}

void mp_reduction_run(mp_reduction_t *reduction, uint32_t begin, uint32_t positions, int64_t leaf,
                      int64_t count) {
  reduction->count = count;
  reduction->depth = 0;
  reduction->total = positions;
  reduction->far.next = reduction->near.next = 0;
  MP_ASSERT(positions != 0 && count > 0);
  reduction_tree_walk(reduction, begin, positions, leaf);
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

static char *reduction_tree_output(const mp_reduction_t *reduction, const mp_contribution_t *member,
                                   int64_t offset) {
  char *to = member->outputs[reduction->number];
  return to + (size_t)offset * mp_dtype_size(reduction->operand->dtype);
}

void mp_reduction_aim_at(mp_reduction_t *reduction, const mp_contribution_t *member,
                         int64_t offset) {
  const mp_collective_operand_t *operand = reduction->operand;
  // A result that is written past the caches is first computed within them.
  const bool is_direct =
      operand->accumulation == operand->dtype && reduction->copy == mp_copy_cached;
  reduction->target = is_direct ? reduction_tree_output(reduction, member, offset) : NULL;
}

void mp_reduction_store_at(const mp_reduction_t *reduction, const mp_contribution_t *member,
                           int64_t offset) {
  mp_reduction_store(reduction, reduction_tree_output(reduction, member, offset));
}
