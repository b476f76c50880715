// Propagation: a sharding for every value, from the annotations of some.
//
// Shardy's algorithm on atoms: an op's rule projects its tensors' shardings to factors; along each
// factor the longest list of atoms that nobody contradicts is given to the tensors that may still
// take it; until nothing changes. Operations that change nothing but names come first, reductions
// and the like later, so that the obvious choices are made before the arguable ones.
#ifndef MINIPOD_SIM_SPMD_PROPAGATION_PROPAGATE_H_
#define MINIPOD_SIM_SPMD_PROPAGATION_PROPAGATE_H_

#include "sim/spmd/rules/rules.h"
#include "sim/spmd/sharding/atoms.h"

typedef struct {
  uint32_t num_partitions;
  // Whether a parameter or result without a sharding of its own may get one; NULL: none may.
  const bool *is_param_open;   // [main's parameters]
  const bool *is_result_open;  // [main's results]
} mp_propagate_options_t;

typedef struct {
  mp_atom_space_t space;
  uint32_t num_values;
  mp_atom_sharding_t **values;   // by value id; NULL: no tensor
  mp_atom_sharding_t **results;  // [main's results]
  const mp_rule_t **rules;       // by op id (mp_propagate numbers all ops): NULL: needs replication
  uint32_t num_ops;
} mp_propagation_t;

// Rewrites main's body so that annotations reach what they mean (split.h, import.h) and numbers its
// values. `out_found` is false when the module's shardings do not fit one space of atoms; the
// values are numbered then too, and nothing else is written.
MP_NODISCARD mp_status_t mp_propagate(mp_module_t *module, const mp_propagate_options_t *options,
                                      mp_propagation_t *out, bool *out_found);

// Writes the shardings into the module as Shardy's annotations of all values; for people and tests.
MP_NODISCARD mp_status_t mp_propagation_annotate(mp_module_t *module,
                                                 const mp_propagation_t *propagation);

#endif  // MINIPOD_SIM_SPMD_PROPAGATION_PROPAGATE_H_
