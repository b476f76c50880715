// Propagation at work: what propagate.c (the rounds), propagate_items.c (what is to be propagated
// along), propagate_close.c (what callers can be told) and propagate_merge.c share.
#ifndef MINIPOD_SIM_SPMD_PROPAGATION_PROPAGATE_PARTS_H_
#define MINIPOD_SIM_SPMD_PROPAGATION_PROPAGATE_PARTS_H_

#include "sim/base/containers/array.h"
#include "sim/spmd/propagation/import_shardings.h"
#include "sim/spmd/propagation/propagate.h"
#include "sim/spmd/propagation/propagate_step.h"

// The border of a manual region: on one side of it a value's dimensions begin with the manual axes
// that its in_sharding or out_sharding names, on the other these do not exist.
typedef struct {
  bool is_entry;               // the value stands inside, its source outside
  uint32_t manual;             // the region's own
  const mp_atoms_t *prefixes;  // [rank]: the manual atoms of each dimension
  uint32_t outer_manual;       // sets as seen from outside
  uint32_t replicated;
  uint32_t unreduced;
} mp_border_t;

// A rule over particular shardings: an op, or an edge along which values are one and the same (what
// a loop carries, what a branch returns).
typedef struct {
  const mp_rule_t *rule;
  mp_atom_sharding_t **tensors;
  const mp_border_t *border;  // of an edge's target; NULL: none
  mp_flow_t allowed;
  bool has_shared_operand;
  bool is_queued;
} mp_item_t;

typedef struct {
  mp_module_t *module;
  mp_arena_t *arena;
  mp_arena_t *scratch;  // of one step
  const mp_propagate_options_t *options;
  mp_propagation_t *out;
  uint32_t *uses;              // by value id
  mp_atom_sharding_t **given;  // by value id: what annotations say
  MP_ARRAY(mp_item_t) items;
  mp_item_t *results;  // [main's results]: between what is returned and the result
} mp_propagator_t;

// ---- propagate_items.c ----

// The shardings of all values and results to begin with, the rules of all ops, and the items.
MP_NODISCARD mp_status_t mp_propagate_prepare(mp_propagator_t *p, const mp_import_t *import);

// ---- propagate_close.c ----

// Cuts what is left to us of parameters, results and regions' borders to what clients can say.
MP_NODISCARD mp_status_t mp_propagate_close(mp_propagator_t *p);

// ---- propagate_merge.c ----

// Copies of constants (split.h) with one sharding become one again.
MP_NODISCARD mp_status_t mp_propagate_merge(mp_propagator_t *p);

#endif  // MINIPOD_SIM_SPMD_PROPAGATION_PROPAGATE_PARTS_H_
