// The plan for going from one layout to another: a short sequence of slices and standard
// collectives, chosen by the bytes that a device receives.
//
// It is found by a search over layouts, in which each step leads from one layout to another. Slices
// cost nothing and come first, so that all steps after them work on smaller parts. Terms of sums
// are combined whole (all_reduce) or in parts (reduce_scatter), whichever is cheapest. The search
// is bounded; if it finds nothing, minipod.exchange is used, which always works.
#ifndef MINIPOD_SIM_SPMD_RESHARD_RESHARD_PLAN_H_
#define MINIPOD_SIM_SPMD_RESHARD_RESHARD_PLAN_H_

#include "sim/spmd/sharding/atom_layout.h"

typedef enum {
  MP_RESHARD_SLICE,           // local: each device keeps a part of what it has
  MP_RESHARD_ALL_GATHER,      // `atoms` leave the minor end of from_dim
  MP_RESHARD_ALL_TO_ALL,      // `atoms` move from the minor end of from_dim to that of to_dim
  MP_RESHARD_PERMUTE,         // the same parts on other devices
  MP_RESHARD_ALL_REDUCE,      // `atoms` stood for terms before
  MP_RESHARD_REDUCE_SCATTER,  // `atoms` stood for terms and move to the minor end of to_dim
} mp_reshard_kind_t;

typedef struct {
  mp_reshard_kind_t kind;
  uint8_t from_dim, to_dim;
  mp_atoms_t atoms;
  mp_layout_t before, after;
} mp_reshard_step_t;

enum { MP_RESHARD_MAX_STEPS = 8 };

typedef struct {
  mp_atom_space_t space;
  uint32_t num_steps;
  mp_reshard_step_t steps[MP_RESHARD_MAX_STEPS];
  double bytes;  // that a device receives
  uint32_t num_collectives;
  uint32_t unreduced_kind;  // the combining op of the terms of `from`
} mp_reshard_plan_t;

// Finds the cheapest plan from placement `from` to `to` (NULL: whole) of a value of `type`. If `to`
// is terms, then `from` must be terms of the same kind. `*out_found` is false when one of them is
// no layout, when `to` is terms along other atoms than `from`, or when the search reached its
// bounds.
MP_NODISCARD mp_status_t mp_reshard_plan(const mp_type_t *type, const mp_boxes_t *from,
                                         const mp_boxes_t *to, mp_reshard_plan_t *out_plan,
                                         bool *out_found);

// Two layouts where a part of `from`, with zeros around it, is a term of `to`: `to` is unreduced
// over just those atoms by which `from` is cut further.
typedef struct {
  mp_atom_space_t space;
  mp_layout_t from, to;
} mp_reshard_terms_t;
// Reads two placements as such layouts; false when they are not.
bool mp_reshard_find_terms(const mp_boxes_t *from, const mp_boxes_t *to,
                           mp_reshard_terms_t *out_terms);

// The bytes that an exchange would send: the mean, over the partitions, of what each needs and does
// not hold.
double mp_reshard_exchange_bytes(const mp_type_t *type, const mp_boxes_t *from,
                                 const mp_boxes_t *to);

#endif  // MINIPOD_SIM_SPMD_RESHARD_RESHARD_PLAN_H_
