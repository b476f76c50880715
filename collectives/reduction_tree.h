// The tree of a reduction over the positions of a group, of which all_reduce and reduce_scatter are
// made, within a process and over several.
#ifndef MINIPOD_COLLECTIVES_REDUCTION_TREE_H_
#define MINIPOD_COLLECTIVES_REDUCTION_TREE_H_

#include "collectives/collective.h"
#include "collectives/group_layout.h"
#include "sim/numeric/copy.h"

// Pieces (group_layout.h) of one operand that were reduced before, here or in other processes.
typedef struct {
  const mp_group_layout_t *layout;  // whose pieces they are; NULL: there are none
  const char **bases;  // [num_processes] a process' pieces, in order; NULL: there are none
  int64_t count;       // elements of each piece
  int64_t at;          // which of them is the first of the current block
  uint32_t next;       // index of the piece that the walk over the tree comes to next
} mp_piece_source_t;

// Partials of a group are that many at most.
enum { MP_TREE_LEVELS = 34 };

// The reduction of one operand, in one chunk. A block of elements goes through the whole tree
// before the next block does; partials are kept on a stack. Those that are in the accumulation type
// already, inputs and pieces, are not copied there: the stack knows where they are.
typedef struct {
  const mp_collective_t *collective;
  const mp_contribution_t *contributions;
  const mp_collective_operand_t *operand;
  uint32_t number;                   // of the operand
  size_t level_bytes;                // of one partial
  char *partials;                    // memory of the stack, bottom first
  const void *tops[MP_TREE_LEVELS];  // the partials, in that memory or elsewhere
  void *target;  // where the result of the next block is wanted, if it is combined; NULL: anywhere
  uint32_t total;     // positions of the block's tree
  mp_copy_fn_t copy;  // how results are to be written: mp_copy_cached to begin with
  void *reducer_scratch;
  uint32_t depth;               // partials on the stack
  int64_t count;                // elements of the current block
  mp_piece_source_t far, near;  // pieces of hosts; pieces of processes
} mp_reduction_t;

// How many bytes of scratch memory a chunk of a reduction needs; `num_processes` is 0 when all
// members are in this process.
size_t mp_reduce_scratch_bytes(const mp_collective_t *collective, uint32_t group_size,
                               uint32_t num_processes);
// How many elements a block has at most.
int64_t mp_reduce_block_elements(const mp_collective_t *collective);
// A reduction of operand `number`. It has no pieces yet, but room for the bases of `num_processes`
// in each of its two sources. All that is given is borrowed for as long as the reduction is used;
// `scratch` has mp_reduce_scratch_bytes.
mp_reduction_t mp_reduction_start(const mp_collective_t *collective,
                                  const mp_contribution_t *contributions, uint32_t group_size,
                                  uint32_t number, uint32_t num_processes, void *scratch);
// Reduces one block, elements [leaf, leaf + count) of the members' inputs, over the positions
// [begin, begin + positions), which are a subtree. The caller has set far.at and near.at to where
// these elements are in the pieces. The result is the bottom partial, tops[0], in the accumulation
// type.
void mp_reduction_run(mp_reduction_t *reduction, uint32_t begin, uint32_t positions, int64_t leaf,
                      int64_t count);
// The elements of a piece that the source has, from element source->at on.
const void *mp_piece_data(const mp_piece_source_t *source, const mp_piece_t *piece,
                          const mp_collective_operand_t *operand);
// Writes the bottom partial to `to`, in the operand's type, unless it is there already.
void mp_reduction_store(const mp_reduction_t *reduction, void *to);
// Wants the result of the next block at element `offset` of a member's output, if it has that type.
// That may be the memory of the block of one input, but not of others.
void mp_reduction_aim_at(mp_reduction_t *reduction, const mp_contribution_t *member,
                         int64_t offset);
// The same as mp_reduction_store, to element `offset` of a member's output.
void mp_reduction_store_at(const mp_reduction_t *reduction, const mp_contribution_t *member,
                           int64_t offset);

// How many bytes an element of the process' pieces has: pieces that are single leaves stay in the
// operand's type.
static inline size_t mp_piece_element_bytes(const mp_group_layout_t *layout, uint32_t process,
                                            const mp_collective_operand_t *operand) {
  const bool is_plain = mp_group_layout_has_leaves_only(layout, process);
  return mp_dtype_size(is_plain ? operand->dtype : operand->accumulation);
}

#endif  // MINIPOD_COLLECTIVES_REDUCTION_TREE_H_
