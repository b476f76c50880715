// A compiler's decisions about fusions. The engine (chip_fusion.c) visits the ops and calls the
// policy for each. A policy has no state.
#ifndef MINIPOD_SIM_CHIP_FUSE_CHIP_FUSION_POLICY_H_
#define MINIPOD_SIM_CHIP_FUSE_CHIP_FUSION_POLICY_H_

#include "sim/chip/fuse/chip_fusion_impl.h"

struct mp_chip_fusion_policy_t {
  double row;        // elements of the longest row that a kernel keeps, unless `fusion.row` sets it
  bool counts_uses;  // the uses of each value are counted before
  bool computes_parts;  // a fusion computes only the elements that its ops read
  bool needs_early;     // a value in memory has to exist at the place of the reader's fusion
  bool writes_once;     // elements that are updated several times are written once, from a cache
  bool merges_last;     // siblings are merged after all other decisions
  bool has_ragged;      // a ragged_dot skips the rows of other groups

  // Whether the user's fusion can compute the op.
  bool (*accepts)(const mp_chip_fusion_find_t *find, const mp_chip_fusion_op_t *at,
                  const mp_chip_fusion_user_t *user);
  // Whether the only user should compute the op, although it reads elements several times. NULL:
  // always.
  bool (*repeats)(const mp_chip_fusion_find_t *find, const mp_chip_fusion_op_t *at);
  // Whether all users can and should compute the op. The first of them may write it for the others.
  bool (*should_copy)(mp_chip_fusion_find_t *find, const mp_chip_fusion_op_t *at,
                      const mp_chip_fusion_user_t *first, bool first_may_write);
  // Whether two fusions that read an array in the same way can be one kernel. NULL: always.
  bool (*are_siblings)(const mp_chip_fusion_find_t *find, uint32_t a, uint32_t b);
};

extern const mp_chip_fusion_policy_t mp_chip_fusion_gpu;    // XLA for GPUs
extern const mp_chip_fusion_policy_t mp_chip_fusion_tpu;    // libtpu
extern const mp_chip_fusion_policy_t mp_chip_fusion_plain;  // no compiler described

// ---- shared by policies ----

// Whether a single fusion reads the op's results, and no op reads them from memory.
static inline bool mp_chip_fusion_is_only_user(const mp_chip_fusion_find_t *find,
                                               const mp_chip_fusion_op_t *at) {
  return find->users.count == 1 && at->memory_use == MP_CHIP_FUSION_NONE;
}

// Whether the user's fusion iterates over the op's elements, and reads each once.
static inline bool mp_chip_fusion_reads_along(const mp_chip_fusion_find_t *find,
                                              const mp_chip_fusion_op_t *at,
                                              const mp_chip_fusion_user_t *user) {
  return user->is_along && !user->is_reused &&
         find->out->fusions.items[user->fusion].count == mp_chip_fusion_op_count(at->op);
}

// The same, and the fusion keeps no rows.
static inline bool mp_chip_fusion_goes_through(const mp_chip_fusion_find_t *find,
                                               const mp_chip_fusion_op_t *at,
                                               const mp_chip_fusion_user_t *user) {
  return mp_chip_fusion_reads_along(find, at, user) &&
         !find->out->fusions.items[user->fusion].is_rows;
}

// Whether the op reduces rows that the user's fusion reads again.
static inline bool mp_chip_fusion_may_keep_rows(const mp_chip_fusion_find_t *find,
                                                const mp_chip_fusion_op_t *at,
                                                const mp_chip_fusion_user_t *user) {
  const mp_chip_fusion_state_t *state = &find->states.items[user->fusion];
  const double row = mp_chip_fusion_row(at->op);
  return user->is_reused && row > 0 && row <= find->rows_most &&
         (state->kind == MP_CHIP_FUSION_LOOP || state->kind == MP_CHIP_FUSION_REDUCTION) &&
         find->out->fusions.items[user->fusion].count == mp_chip_fusion_extent(at->op, at->kind) &&
         (state->reduced_dims == 0 || state->reduced_dims == mp_chip_fusion_reduced_dims(at->op));
}

#endif  // MINIPOD_SIM_CHIP_FUSE_CHIP_FUSION_POLICY_H_
