// Local forms: what the files of lowering share.
//
// lower.c chooses one list of atoms per factor and works out the parts; lower_choose.c is the
// choice; a form says what an op's own kind allows and changes: which factors it can be computed
// along, which attributes count elements, what it becomes beyond itself (lower_<subject>.c).
#ifndef MINIPOD_SIM_SPMD_LOCAL_LOWER_FORM_H_
#define MINIPOD_SIM_SPMD_LOCAL_LOWER_FORM_H_

#include "sim/spmd/local/lower.h"

typedef struct mp_lowerer_s mp_lowerer_t;

// All may be NULL. Factors are numbers of the op's rule.
typedef struct {
  // Whether the op can be computed with this factor sharded. It is asked about PASS factors that
  // are in all results and about REDUCTION factors. NULL: PASS factors only, and those always.
  bool (*is_usable)(const mp_lowerer_t *low, uint32_t factor);
  // Whether it can with this factor sharded that does not pass but is in all results; `localize`
  // then gives the operands the boxes that each part needs. NULL: no.
  bool (*is_permutable)(const mp_lowerer_t *low, uint32_t factor);
  // Whether the factor must be cut into parts of one size (reductions always).
  bool (*needs_even)(const mp_lowerer_t *low, uint32_t factor);
  // How the terms that a sharded reduction makes are put together. NULL, or ADD: they stay terms
  // of a sum until somebody needs it. MP_OP_COUNT: the emitter does it.
  mp_opcode_t (*combine)(const mp_lowerer_t *low);
  // Called with the parts known: local attributes, an emitter.
  mp_status_t (*localize)(const mp_lowerer_t *low, mp_local_op_t *out);
} mp_local_form_t;

struct mp_lowerer_s {
  mp_arena_t *arena;
  const mp_propagation_t *propagation;
  const mp_spmd_scope_t *scope;
  const mp_op_t *op;
  const mp_rule_t *rule;
  const mp_local_form_t *form;
  mp_atom_sharding_t **tensors;  // by propagation, operands first
  mp_atoms_t *lists;             // [tensor * num_factors + factor]: what a tensor has of a factor
  double *sizes;                 // [tensor]: elements
  mp_atoms_t *chosen;            // [factor]
};

uint32_t mp_lowerer_num_tensors(const mp_lowerer_t *low);
const mp_type_t *mp_lowerer_type(const mp_lowerer_t *low, uint32_t tensor);
mp_atoms_t *mp_lowerer_list(const mp_lowerer_t *low, uint32_t tensor, uint32_t factor);
// Whether some dimension of the tensor has the factor; and whether this one does.
bool mp_lowerer_has_factor(const mp_lowerer_t *low, uint32_t tensor, uint32_t factor);
bool mp_lowerer_dim_has(const mp_lowerer_t *low, uint32_t tensor, uint32_t dim, uint32_t factor);

// ---- lower_choose.c ----

// Fills `chosen`.
void mp_lowerer_choose(mp_lowerer_t *low);

// ---- helpers for `localize` ----

// The type of a tensor's part.
MP_NODISCARD mp_status_t mp_lowerer_local_type(const mp_lowerer_t *low, const mp_local_op_t *out,
                                               uint32_t tensor, const mp_type_t **out_type);
// Replaces an integer attribute, or a list of them.
MP_NODISCARD mp_status_t mp_lowerer_set_int(const mp_lowerer_t *low, mp_local_op_t *out,
                                            mp_attr_name_t name, int64_t value);
MP_NODISCARD mp_status_t mp_lowerer_set_ints(const mp_lowerer_t *low, mp_local_op_t *out,
                                             mp_attr_name_t name, const int64_t *values,
                                             uint32_t count);

// ---- lower_window.c: parts that need their neighbours' elements ----

// Whether a part of this PERMUTE factor needs no more than its neighbours': pad, reduce_window,
// convolution.
bool mp_lowerer_is_window(const mp_lowerer_t *low, uint32_t factor);
// Gives the operands of these ops what their parts need, and sets an emitter if that is more than a
// part.
MP_NODISCARD mp_status_t mp_lowerer_widen(const mp_lowerer_t *low, mp_local_op_t *out);
// Gives operand `operand` these intervals in dimension `dim`: [num_partitions] each.
MP_NODISCARD mp_status_t mp_lowerer_move_boxes(const mp_lowerer_t *low, mp_local_op_t *out,
                                               uint32_t operand, uint32_t dim,
                                               const int64_t *starts, const int64_t *sizes);
// Whether some partition does not hold all of dimension `dim` (`boxes` may be NULL: whole).
bool mp_boxes_is_cut(const mp_boxes_t *boxes, uint32_t dim);

// ---- the forms ----

// lower_shape.c
extern const mp_local_form_t mp_form_constant;
extern const mp_local_form_t mp_form_reshape;
extern const mp_local_form_t mp_form_slice;
extern const mp_local_form_t mp_form_reverse;
extern const mp_local_form_t mp_form_pad;
extern const mp_local_form_t mp_form_dynamic_slice;
extern const mp_local_form_t mp_form_dynamic_update_slice;
// lower_window.c
extern const mp_local_form_t mp_form_concatenate;
// lower_reduce.c
extern const mp_local_form_t mp_form_dot_general;
extern const mp_local_form_t mp_form_convolution;
extern const mp_local_form_t mp_form_reduce;
extern const mp_local_form_t mp_form_reduce_window;
extern const mp_local_form_t mp_form_select_and_scatter;
// lower_index.c
extern const mp_local_form_t mp_form_gather;
extern const mp_local_form_t mp_form_scatter;
// lower_call.c
extern const mp_local_form_t mp_form_custom_call;
extern const mp_local_form_t mp_form_collective;

#endif  // MINIPOD_SIM_SPMD_LOCAL_LOWER_FORM_H_
