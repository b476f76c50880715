// What the files that find fusions share.
#ifndef MINIPOD_SIM_CHIP_FUSE_CHIP_FUSION_IMPL_H_
#define MINIPOD_SIM_CHIP_FUSE_CHIP_FUSION_IMPL_H_

#include "sim/chip/fuse/chip_fusion.h"
#include "sim/chip/fuse/chip_fusion_kinds.h"

// A fusion that reads a value, and how.
typedef struct {
  uint32_t fusion;
  uint32_t next;   // the next reader of the value; MP_CHIP_FUSION_NONE at the end
  bool is_along;   // element by element, as it goes through all it does
  bool is_reused;  // reads each element several times
  uint8_t sides;   // mp_chip_fusion_side_t
  const mp_op_t *op;
  double emitted;  // how often the fusion has the op in its code
  double share;    // of the value's elements that it reads for what is wanted of the op
} mp_chip_fusion_use_t;

// What is known of a value.
typedef struct {
  uint64_t hash;       // mp_hash_pointer of the value
  uint32_t first_use;  // in `uses`
  uint32_t
      memory_use;  // the place of the first who wants it in memory; MP_CHIP_FUSION_NONE: nobody
  uint32_t written_by;  // the fusion that writes it to memory
  uint32_t made_by;     // the fusion at hand makes it
  uint32_t reader;      // the fusion for which `bytes` holds; in the end the last one that reads it
  double bytes;         // that it reads of the value
  double padding;       // bytes in tiles by bytes without; 0: the least there is
  double narrowed;      // the share of its bits that all have who want it in memory; 0: nobody
  uint32_t access;      // the read that `bytes` belongs to
  uint32_t num_uses;    // operands of ops that it is, on TPUs
  bool is_outside;      // somebody who is no fusion of its block wants it in memory
} mp_chip_fusion_value_t;

// A fusion while others are being found.
typedef struct {
  uint32_t place;        // of its last op: places grow with the order of the program
  uint32_t merged_into;  // MP_CHIP_FUSION_NONE: it is one of its own
  uint32_t seen, user;   // it is users[user] of the op that was decided about as the `seen`-th one
  mp_chip_fusion_kind_t kind;
  uint64_t reduced_dims;  // of its reductions
  double row;             // elements of the rows that it goes through again; 0: none
  double copied;          // work on each element that other fusions do as well
  uint32_t num_members;
} mp_chip_fusion_state_t;

// One fusion of those that read what an op makes.
typedef struct {
  uint32_t fusion;
  bool is_along, is_reused;
  uint8_t sides;        // mp_chip_fusion_side_t
  uint32_t num_slices;  // parts that it cuts out
} mp_chip_fusion_user_t;

typedef struct mp_chip_fusion_policy_t mp_chip_fusion_policy_t;

typedef struct {
  const mp_chip_figures_t *figures;
  const mp_chip_fusion_policy_t *policy;
  mp_chip_compiler_t compiler;
  double rows_most;         // elements of a row that a kernel can keep at hand
  double matmul_rows_most;  // the same for one that makes them by a matmul
  double mixed_rows_most;   // the same where matrices of its batch lie inside of each other
  const mp_block_t *main;
  mp_arena_t *arena;
  mp_chip_fusions_t *out;
  MP_ARRAY(mp_chip_fusion_state_t) states;  // as out->fusions
  MP_ARRAY(mp_chip_fusion_use_t) uses;
  MP_ARRAY(mp_chip_fusion_user_t) users;  // of the op at hand, each fusion once
  MP_HASH_MAP(mp_chip_fusion_value_t) values;
  uint32_t place;        // of the op at hand
  uint32_t num_decided;  // ops
} mp_chip_fusion_find_t;

// The op at hand.
typedef struct {
  const mp_op_t *op;
  mp_work_t work;
  mp_chip_fusion_kind_t kind;
  uint32_t memory_use;  // the place of the first who wants a result in memory
  double bytes;         // of its results
} mp_chip_fusion_op_t;

// What is known of a value, perhaps nothing yet. Good until the next call.
MP_NODISCARD mp_status_t mp_chip_fusion_value(mp_chip_fusion_find_t *find, const mp_value_t *value,
                                              mp_chip_fusion_value_t **out);

// The fusion that one became part of, or is.
uint32_t mp_chip_fusion_now(const mp_chip_fusion_find_t *find, uint32_t number);

bool mp_chip_fusion_has_member(const mp_chip_fusion_find_t *find, const mp_chip_fusion_t *fusion,
                               const mp_op_t *op);

// The sides on which what a member reads as operand `operand` is.
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

// The user's fusion reads the value in the op, which it has `emitted` times in its code and of
// which it computes this share of the elements.
MP_NODISCARD mp_status_t mp_chip_fusion_use(mp_chip_fusion_find_t *find, const mp_value_t *value,
                                            const mp_op_t *op, const mp_chip_fusion_user_t *user,
                                            double emitted, double share);
// Something that is no fusion reads all the operands' bytes from memory: those that lie there.
MP_NODISCARD mp_status_t mp_chip_fusion_use_all_in_memory(mp_chip_fusion_find_t *find,
                                                          const mp_op_t *op);
// Adds the fusions that read a value to those of the op at hand. Those of other blocks read it
// from memory.
MP_NODISCARD mp_status_t mp_chip_fusion_add_users(mp_chip_fusion_find_t *find,
                                                  const mp_value_t *value, const mp_block_t *block,
                                                  uint32_t *memory_use);
// The user that is done first.
const mp_chip_fusion_user_t *mp_chip_fusion_first_user(const mp_chip_fusion_find_t *find);
// The op reads a copy of the value, in the type in which it wants it.
MP_NODISCARD mp_status_t mp_chip_fusion_use_copied(mp_chip_fusion_find_t *find,
                                                   const mp_value_t *value, const mp_op_t *op);
// The op finds an operand in memory.
MP_NODISCARD mp_status_t mp_chip_fusion_find_in_memory(mp_chip_fusion_find_t *find,
                                                       const mp_chip_fusion_op_t *at,
                                                       const mp_chip_fusion_user_t *user,
                                                       const mp_value_t *value);
// The latest use of a value by a fusion, as an index of `uses`, whose `next` has the ones before;
// MP_CHIP_FUSION_NONE: there is none.
uint32_t mp_chip_fusion_first_use(const mp_chip_fusion_find_t *find, const mp_value_t *value);
// How many operands of ops the value is, on TPUs.
uint32_t mp_chip_fusion_num_uses(const mp_chip_fusion_find_t *find, const mp_value_t *value);
// Whether a fusion reads the value already, as far as its latest readers show.
bool mp_chip_fusion_reads(const mp_chip_fusion_find_t *find, uint32_t number,
                          const mp_value_t *value);

// ---- chip_fusion_join.c ----

// Makes an op that is decided about a member of the user's fusion.
MP_NODISCARD mp_status_t mp_chip_fusion_join(mp_chip_fusion_find_t *find,
                                             const mp_chip_fusion_op_t *at,
                                             const mp_chip_fusion_user_t *user);
// Begins a fusion with the op, as its last one.
MP_NODISCARD mp_status_t mp_chip_fusion_begin(mp_chip_fusion_find_t *find,
                                              const mp_chip_fusion_op_t *at);
// The fusion writes the op's results, which all its other users read from memory.
MP_NODISCARD mp_status_t mp_chip_fusion_write(mp_chip_fusion_find_t *find,
                                              const mp_chip_fusion_op_t *at, uint32_t number);

// ---- chip_fusion_copies.c ----

// Counts, on TPUs, the uses of the values of a block, and of those inside it.
MP_NODISCARD mp_status_t mp_chip_fusion_note_uses(mp_chip_fusion_find_t *find,
                                                  const mp_block_t *block);
// What becomes of an elementwise op all of whose operands come from matmuls through values that
// others read as well: an activation whose gradient reads the pre-activation.
typedef enum {
  MP_CHIP_FUSION_KEPT_NOT,         // it is no such op, or the chip is no TPU
  MP_CHIP_FUSION_KEPT_RECOMPUTED,  // all readers compute it again
  MP_CHIP_FUSION_KEPT_WRITTEN,     // it is expensive and comes from three matmuls
} mp_chip_fusion_kept_t;

// libtpu 0.0.52 for v5e and v6e stores the pre-activation alone in 16 gradients of MLPs, plain and
// gated, with gelu, silu, relu and its square. It writes the gradient of a gate with a gelu, and
// on other chips than v5e with a silu.
mp_chip_fusion_kept_t mp_chip_fusion_kept(const mp_chip_fusion_find_t *find, const mp_op_t *op);
// Whether all users can compute the op, and move fewer bytes if they do.
bool mp_chip_fusion_copies(mp_chip_fusion_find_t *find, const mp_chip_fusion_op_t *at,
                           const mp_chip_fusion_user_t *first, bool first_may_write);

// ---- chip_fusion_rows.c ----

// What an op goes through, if it is one array besides numbers that are the same for all elements;
// else NULL.
const mp_value_t *mp_chip_fusion_rows_operand(const mp_chip_fusion_find_t *find, const mp_op_t *op);

// Whether XLA's compiler for GPUs has the reduction of rows in the kernel that goes through them
// again: the result comes, by ops of one operand, back to what was summed up, and nobody else reads
// it on that way.
bool mp_chip_fusion_closes_rows(const mp_chip_fusion_find_t *find, const mp_op_t *op);

// Whether the op is one of those between such a reduction and the rows.
bool mp_chip_fusion_is_between_rows(const mp_chip_fusion_find_t *find, const mp_op_t *op);

// Whether what a reduction of rows sums up comes, element by element, of rows from which a sum of
// them was taken in this way: it goes on in a kernel that has those at hand.
bool mp_chip_fusion_follows_rows(const mp_chip_fusion_find_t *find, const mp_op_t *op);

// Whether the op takes a sum of rows from them, element by element, which closes these rows: that
// sum, or any if it is NULL.
bool mp_chip_fusion_takes_sum(const mp_chip_fusion_find_t *find, const mp_op_t *op,
                              const mp_op_t *sum);

// Whether what is reduced is the result of a matmul, turned: a compiler for GPUs leaves it as it
// lies, and rows are columns then.
bool mp_chip_fusion_is_turned(const mp_chip_fusion_find_t *find, const mp_op_t *op);

// ---- chip_fusion_matmuls.c ----

// Whether the op, a matmul, may make the rows through which the fusion goes several times.
bool mp_chip_fusion_makes_rows(const mp_chip_fusion_find_t *find, const mp_op_t *op,
                               uint32_t number);
// Whether the op may be the inner product of the user's fusion: it makes a factor there.
bool mp_chip_fusion_chains(const mp_chip_fusion_find_t *find, const mp_op_t *op,
                           const mp_work_t *work, const mp_chip_fusion_user_t *user);

// ---- chip_fusion_priority.c ----

// Whether the compiler takes it to be sooner done if each of the users at hand makes what the op
// does, than if they read it. True where no figures say what it counts (`fusion.again`).
bool mp_chip_fusion_pays_again(const mp_chip_fusion_find_t *find, const mp_op_t *op);
// ---- chip_fusion_code.c ----

// How often the fusion would have the op in its code: an op is there again for each reader that
// wants its elements in another order.
double mp_chip_fusion_emitted(const mp_chip_fusion_find_t *find, const mp_op_t *op,
                              uint32_t number);
// How often the fusion reads each element of what the op makes: XLA's utilization. Elementwise ops
// share one reading.
double mp_chip_fusion_utilization(const mp_chip_fusion_find_t *find, const mp_op_t *op,
                                  uint32_t number);
// Whether the code of the fusion stays small enough for XLA's compiler for GPUs with the op.
bool mp_chip_fusion_has_room(const mp_chip_fusion_find_t *find, const mp_op_t *op, uint32_t number);
// ---- chip_fusion_siblings.c ----

// Joins those users at hand that read the value in the same way, so that they read it once.
void mp_chip_fusion_join_siblings(mp_chip_fusion_find_t *find, const mp_value_t *value);

// ---- chip_fusion_updates.c ----

// Whether the op, of which the fusion would make what it writes to a part of an array, has to be
// done before: it reads the array in other places, which XLA's compiler for GPUs would overwrite.
bool mp_chip_fusion_overwrites_source(const mp_chip_fusion_find_t *find, const mp_op_t *op,
                                      uint32_t number);

// ---- chip_fusion_bytes.c ----

// Finds what each fusion reads and writes.
MP_NODISCARD mp_status_t mp_chip_fusion_find_accesses(mp_chip_fusion_find_t *find);

#endif  // MINIPOD_SIM_CHIP_FUSE_CHIP_FUSION_IMPL_H_
