// The tree of a reduction over the positions of a group, for all_reduce and reduce_scatter, within
// a process and over several.
#ifndef MINIPOD_COLLECTIVES_REDUCTION_TREE_H_
#define MINIPOD_COLLECTIVES_REDUCTION_TREE_H_

#include "collectives/collective.h"
#include "collectives/group_layout.h"
#include "sim/numeric/copy.h"

// Pieces (group_layout.h) of one operand that were already reduced, here or in other processes.
typedef struct {
  const mp_group_layout_t *layout;  // the layout of the pieces; NULL: there are none
  const char **bases;  // [num_processes] a process' pieces, in order; NULL: there are none
  int64_t count;       // elements of each piece
  int64_t at;          // the first element of the current block in them
  uint32_t next;       // index of the next piece in the walk over the tree
} mp_piece_source_t;

// The most partials of a group.
enum { MP_TREE_LEVELS = 34 };

// The reduction of one operand, in one chunk. A block of elements goes through the whole tree
// before the next block does; partials are kept on a stack. Inputs and pieces that already are in
// the accumulation type are not copied: the stack has their addresses.
typedef struct {
  const mp_collective_t *collective;
  const mp_contribution_t *contributions;
  const mp_collective_operand_t *operand;
  uint32_t number;                   // of the operand
  size_t level_bytes;                // of one partial
  char *partials;                    // memory of the stack, bottom first
  const void *tops[MP_TREE_LEVELS];  // the partials, in that memory or elsewhere
  void
      *target;  // the preferred place of the next block's result, if it is combined; NULL: anywhere
  uint32_t total;     // positions of the block's tree
  mp_copy_fn_t copy;  // the function that writes results: mp_copy_cached at first
  void *reducer_scratch;
  uint32_t depth;               // partials on the stack
  int64_t count;                // elements of the current block
  mp_piece_source_t far, near;  // pieces of hosts; pieces of processes
} mp_reduction_t;

// The bytes of scratch memory that a chunk of a reduction needs; `num_processes` is 0 when all
// members are in this process.
size_t mp_reduce_scratch_bytes(const mp_collective_t *collective, uint32_t group_size,
                               uint32_t num_processes);
// The most elements of a block.
int64_t mp_reduce_block_elements(const mp_collective_t *collective);
// A reduction of operand `number`. It has no pieces yet, but room for the bases of `num_processes`
// in each of its two sources. All arguments are borrowed as long as the reduction is used;
// `scratch` has mp_reduce_scratch_bytes.
mp_reduction_t mp_reduction_start(const mp_collective_t *collective,
                                  const mp_contribution_t *contributions, uint32_t group_size,
                                  uint32_t number, uint32_t num_processes, void *scratch);
// Reduces one block, elements [leaf, leaf + count) of the members' inputs, over the positions
// [begin, begin + positions), which are a subtree. The caller has set far.at and near.at to the
// offsets of these elements in the pieces. The result is the bottom partial, tops[0], in the
// accumulation type.
void mp_reduction_run(mp_reduction_t *reduction, uint32_t begin, uint32_t positions, int64_t leaf,
                      int64_t count);
// The elements of a piece that the source has, from element source->at on.
const void *mp_piece_data(const mp_piece_source_t *source, const mp_piece_t *piece,
                          const mp_collective_operand_t *operand);
// Writes the bottom partial to `to`, in the operand's type, unless it is already there.
void mp_reduction_store(const mp_reduction_t *reduction, void *to);
// Makes the next block's result be computed at element `offset` of a member's output, if it has
// that type. The output may have the memory of this block of one input, but of no other.
void mp_reduction_aim_at(mp_reduction_t *reduction, const mp_contribution_t *member,
                         int64_t offset);
// The same as mp_reduction_store, to element `offset` of a member's output.
void mp_reduction_store_at(const mp_reduction_t *reduction, const mp_contribution_t *member,
                           int64_t offset);

// The bytes of an element of the process' pieces: pieces that are single leaves stay in the
// operand's type.
static inline size_t mp_piece_element_bytes(const mp_group_layout_t *layout, uint32_t process,
                                            const mp_collective_operand_t *operand) {
  const bool is_plain = mp_group_layout_has_leaves_only(layout, process);
  return mp_dtype_size(is_plain ? operand->dtype : operand->accumulation);
}

#endif  // MINIPOD_COLLECTIVES_REDUCTION_TREE_H_
