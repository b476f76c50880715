// The state of a propagation, shared by propagate.c (the rounds), propagate_items.c (the items
// along which shardings propagate), propagate_close.c (reducing shardings to what clients can
// express) and propagate_merge.c.
#ifndef MINIPOD_SIM_SPMD_PROPAGATION_PROPAGATE_PARTS_H_
#define MINIPOD_SIM_SPMD_PROPAGATION_PROPAGATE_PARTS_H_

#include "sim/base/containers/array.h"
#include "sim/spmd/propagation/import_shardings.h"
#include "sim/spmd/propagation/propagate.h"
#include "sim/spmd/propagation/propagate_step.h"

// The border of a manual region. Outside of it, a value's dimensions begin with the manual axes
// that its in_sharding or out_sharding names; inside, these axes do not exist.
typedef struct {
  bool is_entry;               // the edge's target is inside and its source outside
  uint32_t manual;             // set of the region's own manual atoms
  const mp_atoms_t *prefixes;  // [rank]: the manual atoms of each dimension
  uint32_t outer_manual;       // the value's sets as seen from outside
  uint32_t replicated;
  uint32_t unreduced;
  uint32_t unreduced_kind;
} mp_border_t;

// An item along which shardings propagate: an op with its rule, or an edge between equal values
// (loop-carried ones, results of branches).
typedef struct {
  const mp_rule_t *rule;
  mp_atom_sharding_t **tensors;
  const mp_border_t *border;  // the border that the edge crosses; NULL: none
  mp_flow_t allowed;
  bool has_shared_operand;  // see mp_step_mode_t
  bool is_queued;           // it is on the stack
} mp_item_t;

typedef struct {
  mp_module_t *module;
  mp_arena_t *arena;
  mp_arena_t *scratch;  // reset after each step
  const mp_propagate_options_t *options;
  mp_propagation_t *out;
  uint32_t *uses;              // by value id
  uint8_t *states;             // by op id; see propagate_order.c
  mp_atom_sharding_t **given;  // by value id: the sharding by annotations
  MP_ARRAY(mp_item_t) items;
  mp_item_t *results;  // [main's results]: the edges from the returned values to the results
} mp_propagator_t;

// ---- propagate_items.c ----

// Makes the shardings with which all values and results begin, the rules of all ops, and the items.
MP_NODISCARD mp_status_t mp_propagate_prepare(mp_propagator_t *p, const mp_import_t *import);

// ---- propagate_order.c ----

// The ops of a block in the order in which their items are made.
MP_NODISCARD mp_status_t mp_propagate_order(mp_propagator_t *p, const mp_block_t *block,
                                            const mp_op_t ***out_ops, uint32_t *out_count);

// ---- propagate_close.c ----

// Where the client left the sharding of parameters, results and borders of regions open, reduces it
// to what clients can express.
MP_NODISCARD mp_status_t mp_propagate_close(mp_propagator_t *p);

// ---- propagate_merge.c ----

// Merges copies of constants (split_constants.h) that got the same sharding.
MP_NODISCARD mp_status_t mp_propagate_merge(mp_propagator_t *p);

#endif  // MINIPOD_SIM_SPMD_PROPAGATION_PROPAGATE_PARTS_H_
