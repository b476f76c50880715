// What the files that find clusters share.
#ifndef MINIPOD_SIM_CHIP_CLUSTERS_CLUSTER_IMPL_H_
#define MINIPOD_SIM_CHIP_CLUSTERS_CLUSTER_IMPL_H_

#include "sim/chip/clusters/cluster.h"
#include "sim/chip/clusters/cluster_kinds.h"

// A cluster that reads a value, and how.
typedef struct {
  uint32_t cluster;
  uint32_t next;   // the next reader of the value; MP_CLUSTER_NONE at the end
  bool is_along;   // element by element, as it goes through all it does
  bool is_reused;  // reads each element several times
  uint8_t sides;   // mp_cluster_side_t
  const mp_op_t *op;
  double emitted;  // how often the cluster has the op in its code
} mp_cluster_use_t;

// What is known of a value.
typedef struct {
  uint64_t hash;        // mp_hash_pointer of the value
  uint32_t first_use;   // in `uses`
  uint32_t memory_use;  // the place of the first who wants it in memory; MP_CLUSTER_NONE: nobody
  uint32_t written_by;  // the cluster that writes it to memory
  uint32_t made_by;     // the cluster at hand makes it
  uint32_t reader;    // the cluster for which `bytes` holds; in the end the last one that reads it
  double bytes;       // that it reads of the value
  double padding;     // bytes in tiles by bytes without; 0: the least there is
  double narrowed;    // the share of its bits that all have who want it in memory; 0: nobody
  uint32_t access;    // the read that `bytes` belongs to
  uint32_t num_uses;  // operands of ops that it is, on TPUs
  bool is_outside;    // somebody who is no cluster of its block wants it in memory
  bool is_apart;      // SparseCores look something up in it, in memory
  bool is_scratch;
} mp_cluster_value_t;

// A cluster while others are being found.
typedef struct {
  uint32_t place;        // of its last op: places grow with the order of the program
  uint32_t first_need;   // the place of the first who reads what it writes
  uint32_t merged_into;  // MP_CLUSTER_NONE: it is one of its own
  uint32_t seen, user;   // it is users[user] of the op that was decided about as the `seen`-th one
  mp_cluster_kind_t kind;
  uint64_t reduced_dims;  // of its reductions
  double row;             // elements of the rows that it goes through again; 0: none
  double copied;          // work on each element that other clusters do as well
  uint32_t num_members;
} mp_cluster_state_t;

// One cluster of those that read what an op makes.
typedef struct {
  uint32_t cluster;
  bool is_along, is_reused;
  uint8_t sides;        // mp_cluster_side_t
  uint32_t num_slices;  // parts that it cuts out
} mp_cluster_user_t;

typedef struct {
  const mp_chip_figures_t *figures;
  mp_chip_compiler_t compiler;
  double rows_most;          // elements of a row that a kernel can keep at hand
  double product_rows_most;  // the same for one that makes them by a product
  double mixed_rows_most;    // the same where matrices of its batch lie inside of each other
  double scratch;            // bytes of scratch memory that kernels hand to each other
  bool is_shared_out;        // cores of a device that have a scratch memory each share a kernel out
  double resident;           // the largest operand of a product that is copied there before
  const mp_block_t *main;
  const mp_attr_t *const *arg_attrs;  // of main's arguments; NULL: they have none
  mp_arena_t *arena, *scratch_arena;
  mp_clusters_t *out;
  MP_ARRAY(mp_cluster_state_t) states;  // as out->clusters
  MP_ARRAY(mp_cluster_use_t) uses;
  MP_ARRAY(mp_cluster_user_t) users;  // of the op at hand, each cluster once
  MP_HASH_MAP(mp_cluster_value_t) values;
  MP_ARRAY(const mp_block_t *) bodies;  // of loops
  uint32_t place;                       // of the op at hand
  uint32_t num_decided;                 // ops
} mp_cluster_find_t;

// The op at hand.
typedef struct {
  const mp_op_t *op;
  mp_work_t work;
  mp_cluster_kind_t kind;
  uint32_t memory_use;  // the place of the first who wants a result in memory
  double bytes;         // of its results
} mp_cluster_op_t;

// What is known of a value, perhaps nothing yet. Good until the next call.
MP_NODISCARD mp_status_t mp_cluster_value(mp_cluster_find_t *find, const mp_value_t *value,
                                          mp_cluster_value_t **out);

// The cluster that one became part of, or is.
uint32_t mp_cluster_now(const mp_cluster_find_t *find, uint32_t number);

bool mp_cluster_has_member(const mp_cluster_find_t *find, const mp_cluster_t *cluster,
                           const mp_op_t *op);

// The sides on which what a member reads as operand `operand` is.
static inline uint8_t mp_cluster_sides(const mp_cluster_member_t *member, mp_cluster_kind_t kind,
                                       uint32_t operand) {
  if (kind != MP_CLUSTER_PRODUCT) return member->sides;
  if ((member->sides & (MP_CLUSTER_LHS | MP_CLUSTER_RHS)) != 0) {
    return operand == 0 ? MP_CLUSTER_INNER_LHS : MP_CLUSTER_INNER_RHS;
  }
  return operand == 0 ? MP_CLUSTER_LHS : operand == 1 ? MP_CLUSTER_RHS : MP_CLUSTER_BESIDE;
}

// ---- cluster_uses.c ----

// The user's cluster reads the value in the op, which it has `emitted` times in its code.
MP_NODISCARD mp_status_t mp_cluster_use(mp_cluster_find_t *find, const mp_value_t *value,
                                        const mp_op_t *op, const mp_cluster_user_t *user,
                                        double emitted);
// Something that is no cluster reads all the operands' bytes from memory: those that lie there.
MP_NODISCARD mp_status_t mp_cluster_use_all_in_memory(mp_cluster_find_t *find, const mp_op_t *op);
// Adds the clusters that read a value to those of the op at hand. Those of other blocks read it
// from memory.
MP_NODISCARD mp_status_t mp_cluster_add_users(mp_cluster_find_t *find, const mp_value_t *value,
                                              const mp_block_t *block, uint32_t *memory_use);
// The user that is done first.
const mp_cluster_user_t *mp_cluster_first_user(const mp_cluster_find_t *find);
// The op reads a copy of the value, in the type in which it wants it.
MP_NODISCARD mp_status_t mp_cluster_use_copied(mp_cluster_find_t *find, const mp_value_t *value,
                                               const mp_op_t *op);
// The op finds an operand in memory.
MP_NODISCARD mp_status_t mp_cluster_find_in_memory(mp_cluster_find_t *find,
                                                   const mp_cluster_op_t *at,
                                                   const mp_cluster_user_t *user,
                                                   const mp_value_t *value);
// The latest use of a value by a cluster, as an index of `uses`, whose `next` has the ones before;
// MP_CLUSTER_NONE: there is none.
uint32_t mp_cluster_first_use(const mp_cluster_find_t *find, const mp_value_t *value);
// How many operands of ops the value is, on TPUs.
uint32_t mp_cluster_num_uses(const mp_cluster_find_t *find, const mp_value_t *value);
// Whether a cluster reads the value already, as far as its latest readers show.
bool mp_cluster_reads(const mp_cluster_find_t *find, uint32_t number, const mp_value_t *value);

// ---- cluster_join.c ----

// Makes an op that is decided about a member of the user's cluster.
MP_NODISCARD mp_status_t mp_cluster_join(mp_cluster_find_t *find, const mp_cluster_op_t *at,
                                         const mp_cluster_user_t *user);
// Begins a cluster with the op, as its last one.
MP_NODISCARD mp_status_t mp_cluster_begin(mp_cluster_find_t *find, const mp_cluster_op_t *at);
// The cluster writes the op's results, which all its other users read from memory.
MP_NODISCARD mp_status_t mp_cluster_write(mp_cluster_find_t *find, const mp_cluster_op_t *at,
                                          uint32_t number);

// ---- cluster_accepts.c ----

// Whether the reduction of rows may be done in the cluster that then goes through the rows again.
bool mp_cluster_keeps_rows(const mp_cluster_find_t *find, const mp_cluster_op_t *at,
                           const mp_cluster_user_t *user);
// Whether the user's cluster can compute the op.
bool mp_cluster_accepts(const mp_cluster_find_t *find, const mp_cluster_op_t *at,
                        const mp_cluster_user_t *user);

// ---- cluster_copies.c ----

// Counts, on TPUs, the uses of the values of a block, and of those inside it.
MP_NODISCARD mp_status_t mp_cluster_note_uses(mp_cluster_find_t *find, const mp_block_t *block);
// What becomes of an elementwise op all of whose operands come from matmuls through values that
// others read as well: an activation whose gradient reads the pre-activation.
typedef enum {
  MP_CLUSTER_KEPT_NOT,         // it is no such op, or the chip is no TPU
  MP_CLUSTER_KEPT_RECOMPUTED,  // all readers compute it again
  MP_CLUSTER_KEPT_WRITTEN,     // it is expensive and comes from three matmuls
} mp_cluster_kept_t;

// libtpu 0.0.52 for v5e and v6e stores the pre-activation alone in 16 gradients of MLPs, plain and
// gated, with gelu, silu, relu and its square. It writes the gradient of a gate with a gelu, and
// on other chips than v5e with a silu.
mp_cluster_kept_t mp_cluster_kept(const mp_cluster_find_t *find, const mp_op_t *op);
// Whether all users may and should compute the op themselves.
bool mp_cluster_should_copy(mp_cluster_find_t *find, const mp_cluster_op_t *at,
                            const mp_cluster_user_t *first, bool first_may_write);

// ---- cluster_rows.c ----

// What an op goes through, if it is one array besides numbers that are the same for all elements;
// else NULL.
const mp_value_t *mp_cluster_rows_operand(const mp_cluster_find_t *find, const mp_op_t *op);

// Whether XLA's compiler for GPUs has the reduction of rows in the kernel that goes through them
// again: the result comes, by ops of one operand, back to what was summed up, and nobody else reads
// it on that way.
bool mp_cluster_closes_rows(const mp_cluster_find_t *find, const mp_op_t *op);

// Whether what a reduction of rows sums up comes, element by element, of rows from which a sum of
// them was taken in this way: it goes on in a kernel that has those at hand.
bool mp_cluster_follows_rows(const mp_cluster_find_t *find, const mp_op_t *op);

// Whether the op takes a sum of rows from them, element by element, which closes these rows: that
// sum, or any if it is NULL.
bool mp_cluster_takes_sum(const mp_cluster_find_t *find, const mp_op_t *op, const mp_op_t *sum);

// Whether an op's result comes, element by element, of rows from which a sum of them was taken.
bool mp_cluster_is_of_rows(const mp_cluster_find_t *find, const mp_op_t *op);
// Whether what is reduced is the result of a product, turned: a compiler for GPUs leaves it as it
// lies, and rows are columns then.
bool mp_cluster_is_turned(const mp_cluster_find_t *find, const mp_op_t *op);

// ---- cluster_products.c ----

// Whether the op, a product, may make the rows through which the cluster goes several times.
bool mp_cluster_makes_rows(const mp_cluster_find_t *find, const mp_op_t *op, uint32_t number);
// Whether the op may be the inner product of the user's cluster: it makes a factor there.
bool mp_cluster_chains(const mp_cluster_find_t *find, const mp_op_t *op, const mp_work_t *work,
                       const mp_cluster_user_t *user);

// ---- cluster_again.c ----

// The bytes that a value comes of, where a few ops go from these to it element by element.
double mp_cluster_source_bytes(const mp_cluster_find_t *find, const mp_value_t *value,
                               uint32_t ops_most);
// Elements along the last dimension of what an op makes.
double mp_cluster_line(const mp_op_t *op);
// Whether the compiler takes it to be sooner done if each of the users at hand makes what the op
// does, than if they read it. True where no figures say what it counts (`cluster.again`).
bool mp_cluster_pays_again(const mp_cluster_find_t *find, const mp_op_t *op);
// ---- cluster_blocks.c ----

// ---- cluster_code.c ----

// How often the cluster would have the op in its code: an op is there again for each reader that
// wants its elements in another order.
double mp_cluster_emitted(const mp_cluster_find_t *find, const mp_op_t *op, uint32_t number);
// Whether the code of the cluster stays small enough for XLA's compiler for GPUs with the op.
bool mp_cluster_has_room(const mp_cluster_find_t *find, const mp_op_t *op, uint32_t number);
// ---- cluster_siblings.c ----

// Joins those users at hand that read the value in the same way, so that they read it once.
void mp_cluster_join_siblings(mp_cluster_find_t *find, const mp_value_t *value);

// ---- cluster_updates.c ----

// Whether the op, of which the cluster would make what it writes to a part of an array, has to be
// done before: it reads the array in other places, which XLA's compiler for GPUs would overwrite.
bool mp_cluster_overwrites_source(const mp_cluster_find_t *find, const mp_op_t *op,
                                  uint32_t number);

// ---- cluster_merge.c ----

// ---- cluster_fetch.c ----

// Bytes in scratch memory while the clusters are gone through in the order of the program.
typedef struct {
  double kept, fetched;                // results, and factors of products
  double *freed_kept, *freed_fetched;  // [clusters]: by the last reader
  double argument;                     // that is there when the program begins
  uint32_t last_product;               // of main, if an argument is there when the program begins
  uint32_t previous;                   // the cluster before the one at hand; MP_CLUSTER_NONE: none
} mp_cluster_scratch_t;

// Finds the argument that is in scratch memory when the program begins: a factor of a product.
void mp_cluster_fetch_argument(mp_cluster_find_t *find, mp_cluster_scratch_t *scratch);
// Finds whether a factor of the cluster's product is copied to scratch memory beside the cluster
// before it.
void mp_cluster_fetch_factor(mp_cluster_find_t *find, mp_cluster_scratch_t *scratch,
                             uint32_t number);

// ---- cluster_bytes.c ----

// Finds what each cluster reads and writes, and which values stay in scratch memory.
MP_NODISCARD mp_status_t mp_cluster_find_bytes(mp_cluster_find_t *find);

#endif  // MINIPOD_SIM_CHIP_CLUSTERS_CLUSTER_IMPL_H_
