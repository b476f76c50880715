// The way from one layout to another: a short row of slices and standard collectives, chosen by the
// bytes that a device receives.
//
// The search is over layouts: from one, a step leads to the next. Slices cost nothing and come
// first, so that all after them works on smaller parts; sums that are still terms may be finished
// whole (all_reduce) or in parts (reduce_scatter) wherever that is cheapest. It is bounded; what it
// does not find within its bounds is left to minipod.exchange, which always works.
#ifndef MINIPOD_SIM_SPMD_RESHARD_RESHARD_PLAN_H_
#define MINIPOD_SIM_SPMD_RESHARD_RESHARD_PLAN_H_

#include "sim/spmd/sharding/atom_layout.h"

typedef enum {
  MP_RESHARD_SLICE,           // local: each device keeps a part of what it has
  MP_RESHARD_ALL_GATHER,      // `atoms` leave the minor end of from_dim
  MP_RESHARD_ALL_TO_ALL,      // `atoms` move from the minor end of from_dim to that of to_dim
  MP_RESHARD_PERMUTE,         // as many parts as before, on other devices
  MP_RESHARD_ALL_REDUCE,      // `atoms` stood for terms
  MP_RESHARD_REDUCE_SCATTER,  // `atoms` stood for terms and go to the minor end of to_dim
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
} mp_reshard_plan_t;

// The cheapest way from `from` to `to` (NULL: whole), placements of a value of `type`; `to` holds
// no terms. `out_found` is false when one of them is no layout or the search gave up.
MP_NODISCARD mp_status_t mp_reshard_plan(const mp_type_t *type, const mp_boxes_t *from,
                                         const mp_boxes_t *to, mp_reshard_plan_t *out_plan,
                                         bool *out_found);

// Parts that are terms: `to` is unreduced over just those atoms by which `from` is cut further.
typedef struct {
  mp_atom_space_t space;
  mp_layout_t from, to;
} mp_reshard_terms_t;
// False when these placements do not stand to each other like that.
bool mp_reshard_find_terms(const mp_boxes_t *from, const mp_boxes_t *to,
                           mp_reshard_terms_t *out_terms);

// What an exchange would send: the mean over the partitions of what each wants and does not hold.
double mp_reshard_exchange_bytes(const mp_type_t *type, const mp_boxes_t *from,
                                 const mp_boxes_t *to);

#endif  // MINIPOD_SIM_SPMD_RESHARD_RESHARD_PLAN_H_
