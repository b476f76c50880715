// Shared by the files that find fusions.
#ifndef MINIPOD_SIM_CHIP_FUSE_CHIP_FUSION_IMPL_H_
#define MINIPOD_SIM_CHIP_FUSE_CHIP_FUSION_IMPL_H_

#include "sim/chip/fuse/chip_fusion.h"
#include "sim/chip/fuse/chip_fusion_kinds.h"

// A use: an op of a fusion reads a value.
typedef struct {
  uint32_t fusion;
  uint32_t next;   // the next use of the value; MP_CHIP_FUSION_NONE at the end
  bool is_along;   // element by element, as the kernel iterates
  bool is_reused;  // the kernel reads each element several times
  uint8_t sides;   // mp_chip_fusion_side_t
  const mp_op_t *op;
  double emitted;  // how often the fusion emits the op
  double share;    // the share of the value's elements that it reads
} mp_chip_fusion_use_t;

// What is known about a value so far.
typedef struct {
  uint64_t hash;       // mp_hash_pointer of the value
  uint32_t first_use;  // in `uses`
  // The place of the first op that reads it from memory; MP_CHIP_FUSION_NONE: none does.
  uint32_t memory_use;
  uint32_t written_by;  // the fusion that writes it to memory
  uint32_t made_by;     // the last fusion whose accesses were found, if it computes the value
  uint32_t reader;      // the last fusion found to read it
  double bytes;         // that `reader` reads
  double padding;       // its size in tiles as a multiple of its size; 0: by its layout
  double narrowed;      // the share of its bits that readers from memory keep; 0: no such readers
  uint32_t access;      // the access of `reader`
  uint32_t num_uses;    // the operands of ops that it is; counted on TPUs
} mp_chip_fusion_value_t;

// The state of a fusion during the sweep.
typedef struct {
  uint32_t place;        // of its last op: places grow in the order of the program
  uint32_t merged_into;  // another fusion; MP_CHIP_FUSION_NONE: not merged
  uint32_t seen, user;   // the fusion is users[user] of the `seen`-th op to be decided
  mp_chip_fusion_kind_t kind;
  uint64_t reduced_dims;  // of its reductions: a bit for each
  double row;             // elements of the rows that it keeps; 0: none
  uint32_t num_members;
} mp_chip_fusion_state_t;

// A fusion that reads the results of the current op.
typedef struct {
  uint32_t fusion;
  bool is_along, is_reused;
  uint8_t sides;        // mp_chip_fusion_side_t
  uint32_t num_slices;  // slices and pads through which it reads
} mp_chip_fusion_user_t;

typedef struct mp_chip_fusion_policy_t mp_chip_fusion_policy_t;

typedef struct {
  const mp_chip_figures_t *figures;
  const mp_chip_fusion_policy_t *policy;
  double rows_most;         // elements of the longest row that a kernel can keep
  double matmul_rows_most;  // the same if a matmul in the kernel makes the rows
  double mixed_rows_most;   // the same if the matrices of its batch are interleaved
  const mp_block_t *main;
  mp_arena_t *arena;
  mp_chip_fusions_t *out;
  MP_ARRAY(mp_chip_fusion_state_t) states;  // as out->fusions
  MP_ARRAY(mp_chip_fusion_use_t) uses;
  MP_ARRAY(mp_chip_fusion_user_t) users;  // of the current op, each fusion once
  MP_HASH_MAP(mp_chip_fusion_value_t) values;
  uint32_t place;        // of the current op
  uint32_t num_decided;  // ops and values that were decided
} mp_chip_fusion_find_t;

// The current op.
typedef struct {
  const mp_op_t *op;
  mp_work_t work;
  mp_chip_fusion_kind_t kind;
  uint32_t memory_use;  // the place of the first op that reads a result from memory
  double bytes;         // of its results
} mp_chip_fusion_op_t;

// Finds or adds what is known about a value. Valid until the next call.
MP_NODISCARD mp_status_t mp_chip_fusion_value(mp_chip_fusion_find_t *find, const mp_value_t *value,
                                              mp_chip_fusion_value_t **out);

// The fusion that this one was merged into, or itself.
uint32_t mp_chip_fusion_now(const mp_chip_fusion_find_t *find, uint32_t number);

bool mp_chip_fusion_has_member(const mp_chip_fusion_find_t *find, const mp_chip_fusion_t *fusion,
                               const mp_op_t *op);

// Into which operands of the fusion's matmul operand `operand` of a member goes.
static inline uint8_t mp_chip_fusion_sides(const mp_chip_fusion_member_t *member,
                                           mp_chip_fusion_kind_t kind, uint32_t operand) {
  if (kind != MP_CHIP_FUSION_MATMUL) return member->sides;
  if ((member->sides & (MP_CHIP_FUSION_LHS | MP_CHIP_FUSION_RHS)) != 0) {
    return operand == 0 ? MP_CHIP_FUSION_INNER_LHS : MP_CHIP_FUSION_INNER_RHS;
  }
  return operand == 0   ? MP_CHIP_FUSION_LHS
         : operand == 1 ? MP_CHIP_FUSION_RHS
                        : MP_CHIP_FUSION_BESIDE;
}

// ---- chip_fusion_uses.c ----

// Records that an op of the user's fusion reads the value. The fusion emits the op `emitted` times,
// and computes this share of its elements.
MP_NODISCARD mp_status_t mp_chip_fusion_use(mp_chip_fusion_find_t *find, const mp_value_t *value,
                                            const mp_op_t *op, const mp_chip_fusion_user_t *user,
                                            double emitted, double share);
// Records that an op outside of fusions reads its operands from memory.
MP_NODISCARD mp_status_t mp_chip_fusion_use_all_in_memory(mp_chip_fusion_find_t *find,
                                                          const mp_op_t *op);
// Adds the fusions that read a value to the users of the current op. Fusions of other blocks read
// it from memory.
MP_NODISCARD mp_status_t mp_chip_fusion_add_users(mp_chip_fusion_find_t *find,
                                                  const mp_value_t *value, const mp_block_t *block,
                                                  uint32_t *memory_use);
// The user that runs first.
const mp_chip_fusion_user_t *mp_chip_fusion_first_user(const mp_chip_fusion_find_t *find);
// Records that the op reads a layout copy of the value, in the type that it converts to.
MP_NODISCARD mp_status_t mp_chip_fusion_use_copied(mp_chip_fusion_find_t *find,
                                                   const mp_value_t *value, const mp_op_t *op);
// Records that an op of the user's fusion reads an operand from memory.
MP_NODISCARD mp_status_t mp_chip_fusion_find_in_memory(mp_chip_fusion_find_t *find,
                                                       const mp_chip_fusion_op_t *at,
                                                       const mp_chip_fusion_user_t *user,
                                                       const mp_value_t *value);
// The latest use of a value, as an index of `uses`, whose `next` is the use before;
// MP_CHIP_FUSION_NONE: no use.
uint32_t mp_chip_fusion_first_use(const mp_chip_fusion_find_t *find, const mp_value_t *value);
// How many operands of ops the value is; counted on TPUs.
uint32_t mp_chip_fusion_num_uses(const mp_chip_fusion_find_t *find, const mp_value_t *value);
// Whether a fusion is among the latest readers of the value.
bool mp_chip_fusion_reads(const mp_chip_fusion_find_t *find, uint32_t number,
                          const mp_value_t *value);

// ---- chip_fusion_join.c ----

// Adds the current op to the user's fusion.
MP_NODISCARD mp_status_t mp_chip_fusion_join(mp_chip_fusion_find_t *find,
                                             const mp_chip_fusion_op_t *at,
                                             const mp_chip_fusion_user_t *user);
// Starts a fusion with the current op, as its last op.
MP_NODISCARD mp_status_t mp_chip_fusion_begin(mp_chip_fusion_find_t *find,
                                              const mp_chip_fusion_op_t *at);
// Records that the fusion writes the op's results. All other users read them from memory.
MP_NODISCARD mp_status_t mp_chip_fusion_write(mp_chip_fusion_find_t *find,
                                              const mp_chip_fusion_op_t *at, uint32_t number);

// ---- chip_fusion_copies.c ----

// Counts the uses of values in a block and its control flow.
MP_NODISCARD mp_status_t mp_chip_fusion_note_uses(mp_chip_fusion_find_t *find,
                                                  const mp_block_t *block);
// Whether all users can compute the op, and move fewer bytes if they do.
bool mp_chip_fusion_copies(mp_chip_fusion_find_t *find, const mp_chip_fusion_op_t *at,
                           const mp_chip_fusion_user_t *first, bool first_may_write);

// ---- chip_fusion_rows.c ----

// Whether XLA for GPUs fuses a reduction of rows with the op that reads the rows again: no other op
// reads the result, or what elementwise ops compute from it until it is broadcast.
bool mp_chip_fusion_closes_rows(const mp_chip_fusion_find_t *find, const mp_op_t *op);

// Whether the op is between such a reduction and the op that reads the rows again.
bool mp_chip_fusion_is_between_rows(const mp_chip_fusion_find_t *find, const mp_op_t *op);

// Whether a reduction reduces values that are computed, element by element, from such rows: it
// joins the kernel that keeps them.
bool mp_chip_fusion_follows_rows(const mp_chip_fusion_find_t *find, const mp_op_t *op);

// Whether the reduced array is the transposed result of a matmul. XLA for GPUs keeps its layout, so
// rows are columns.
bool mp_chip_fusion_is_transposed(const mp_chip_fusion_find_t *find, const mp_op_t *op);

// ---- chip_fusion_matmuls.c ----

// Whether the op, a matmul, can make the rows that the fusion keeps.
bool mp_chip_fusion_makes_rows(const mp_chip_fusion_find_t *find, const mp_op_t *op,
                               uint32_t number);
// Whether the op can be the inner matmul of the user's fusion, whose matmul reads it as an operand.
bool mp_chip_fusion_chains(const mp_chip_fusion_find_t *find, const mp_op_t *op,
                           const mp_work_t *work, const mp_chip_fusion_user_t *user);
// Whether the hero of a fusion is a `ragged_dot`, and of which groups.
mp_ragged_t mp_chip_fusion_ragged(const mp_op_t *hero);

// ---- chip_fusion_priority.c ----

// Whether recomputing the op in each user is faster than writing its result, by XLA's cost model.
// True if the chip has no `fusion.again`.
bool mp_chip_fusion_pays_again(const mp_chip_fusion_find_t *find, const mp_op_t *op);

// ---- chip_fusion_code.c ----

// How often the fusion would emit the op: once for all elementwise readers, and once more per
// reader that needs the elements in another order.
double mp_chip_fusion_emitted(const mp_chip_fusion_find_t *find, const mp_op_t *op,
                              uint32_t number);
// How often the fusion reads each element of the op's result: XLA's utilization. Elementwise
// readers share one read.
double mp_chip_fusion_utilization(const mp_chip_fusion_find_t *find, const mp_op_t *op,
                                  uint32_t number);
// Whether the fusion's code stays small enough for XLA for GPUs with the op.
bool mp_chip_fusion_has_room(const mp_chip_fusion_find_t *find, const mp_op_t *op, uint32_t number);

// ---- chip_fusion_siblings.c ----

// Merges users of the value that iterate over it in the same way, so that they read it once.
void mp_chip_fusion_join_siblings(mp_chip_fusion_find_t *find, const mp_value_t *value);

// ---- chip_fusion_updates.c ----

// Whether the op is a slice of the array that the fusion updates: XLA for GPUs would overwrite it.
bool mp_chip_fusion_overwrites_source(const mp_chip_fusion_find_t *find, const mp_op_t *op,
                                      uint32_t number);

// ---- chip_fusion_bytes.c ----

// Finds the reads and writes of each fusion.
MP_NODISCARD mp_status_t mp_chip_fusion_find_accesses(mp_chip_fusion_find_t *find);

#endif  // MINIPOD_SIM_CHIP_FUSE_CHIP_FUSION_IMPL_H_
