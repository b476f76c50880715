// Propagation finds a sharding for every value from the annotations of some.
//
// It is Shardy's algorithm on atoms. An op's rule projects the shardings of its tensors to factors.
// Along each factor, the longest list of atoms that no tensor contradicts is given to the tensors
// that may still take atoms. This is repeated until nothing changes. Ops whose tensors have the
// same dimensions (elementwise ones, reshapes, transposes) come first and reductions and the like
// later, so that obvious choices are made before the others.
#ifndef MINIPOD_SIM_SPMD_PROPAGATION_PROPAGATE_H_
#define MINIPOD_SIM_SPMD_PROPAGATION_PROPAGATE_H_

#include "sim/spmd/rules/rules.h"
#include "sim/spmd/sharding/atoms.h"

typedef struct {
  uint32_t num_partitions;
  // Whether a parameter or result without a sharding of its own may get one; NULL: none may.
  const bool *is_param_open;   // [main's parameters]
  const bool *is_result_open;  // [main's results]
  // Whether to treat the program as XLA passes it to Shardy: in XLA's order of ops
  // (propagate_order.c), and with reshapes instead of broadcast_in_dims that only add dimensions of
  // one element.
  bool is_as_in_xla;
} mp_propagate_options_t;

typedef struct {
  mp_atom_space_t space;
  uint32_t num_values;
  mp_atom_sharding_t **values;   // by value id; NULL: no tensor
  mp_atom_sharding_t **results;  // [main's results]
  const mp_rule_t **rules;       // by op id (mp_propagate numbers all ops); NULL: it has no rule
  uint32_t num_ops;
} mp_propagation_t;

// Prepares main's body (split_constants.h, import_shardings.h), numbers its values, and propagates.
// Everything is allocated in the module's arena. `*out_found` is false when no space of atoms can
// express all shardings of the module; then the values are numbered, and nothing else is written.
MP_NODISCARD mp_status_t mp_propagate(mp_module_t *module, const mp_propagate_options_t *options,
                                      mp_propagation_t *out, bool *out_found);

// Writes the shardings into the module as Shardy's annotations of all values, for people and tests.
MP_NODISCARD mp_status_t mp_propagation_annotate(mp_module_t *module,
                                                 const mp_propagation_t *propagation);

#endif  // MINIPOD_SIM_SPMD_PROPAGATION_PROPAGATE_H_
