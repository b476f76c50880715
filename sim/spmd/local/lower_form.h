// Local forms, shared by the files of lowering.
//
// lower_choose.c chooses one list of atoms per factor, and lower.c works out the parts. A form
// describes a kind of op: along which factors it can be computed in parts, which of its attributes
// count elements, and which other ops it needs around it (lower_<subject>.c).
#ifndef MINIPOD_SIM_SPMD_LOCAL_LOWER_FORM_H_
#define MINIPOD_SIM_SPMD_LOCAL_LOWER_FORM_H_

#include "sim/spmd/local/lower.h"

typedef struct mp_lowerer_s mp_lowerer_t;

// A local form. All members may be NULL. Factors are given by their number in the op's rule.
typedef struct {
  // Whether the op can be computed with this factor sharded. Called for PASS factors that are in
  // all results and for REDUCTION factors. NULL: PASS factors only, and those always.
  bool (*is_usable)(const mp_lowerer_t *low, uint32_t factor);
  // Whether the op can be computed with this factor sharded, which is not PASS but is in all
  // results; `localize` then gives the operands the boxes that each part needs. NULL: no.
  bool (*is_permutable)(const mp_lowerer_t *low, uint32_t factor);
  // Whether the factor must be cut into parts of one size. Reductions always need this.
  bool (*needs_even)(const mp_lowerer_t *low, uint32_t factor);
  // The op that combines the terms that a sharded reduction makes. NULL, or ADD: they stay terms of
  // a sum until an op needs the sum. MP_OP_COUNT: `emit` combines them.
  mp_opcode_t (*combine)(const mp_lowerer_t *low);
  // Called when the parts are known, to set attributes and `emit` of the local op.
  mp_status_t (*localize)(const mp_lowerer_t *low, mp_local_op_t *out);
} mp_local_form_t;

struct mp_lowerer_s {
  mp_arena_t *arena;
  const mp_propagation_t *propagation;
  const mp_spmd_scope_t *scope;
  const mp_op_t *op;
  const mp_rule_t *rule;
  const mp_local_form_t *form;
  mp_atom_sharding_t **tensors;  // [tensor]: propagation's sharding; operands, then results
  mp_atoms_t *lists;             // [tensor * num_factors + factor]: the tensor's atoms along it
  double *sizes;                 // [tensor]: number of elements
  mp_atoms_t *chosen;            // [factor]: the atoms by which the op's parts are cut along it
};

// The number of operands and results together; tensors are numbered operands first.
uint32_t mp_lowerer_num_tensors(const mp_lowerer_t *low);
// The type of a tensor in the whole program.
const mp_type_t *mp_lowerer_type(const mp_lowerer_t *low, uint32_t tensor);
// The entry of `lists` for a tensor and a factor.
mp_atoms_t *mp_lowerer_list(const mp_lowerer_t *low, uint32_t tensor, uint32_t factor);
// Whether any dimension of the tensor has the factor, and whether dimension `dim` has it.
bool mp_lowerer_has_factor(const mp_lowerer_t *low, uint32_t tensor, uint32_t factor);
bool mp_lowerer_dim_has(const mp_lowerer_t *low, uint32_t tensor, uint32_t dim, uint32_t factor);

// ---- lower_choose.c ----

// Chooses the atoms of each factor: fills `chosen`.
void mp_lowerer_choose(mp_lowerer_t *low);

// ---- helpers for `localize` ----

// The type of a tensor's part, once the parts are known.
MP_NODISCARD mp_status_t mp_lowerer_local_type(const mp_lowerer_t *low, const mp_local_op_t *out,
                                               uint32_t tensor, const mp_type_t **out_type);
// Replace the value of an attribute of the op that is an integer, or a list of integers.
MP_NODISCARD mp_status_t mp_lowerer_set_int(const mp_lowerer_t *low, mp_local_op_t *out,
                                            mp_attr_name_t name, int64_t value);
MP_NODISCARD mp_status_t mp_lowerer_set_ints(const mp_lowerer_t *low, mp_local_op_t *out,
                                             mp_attr_name_t name, const int64_t *values,
                                             uint32_t count);

// ---- lower_window.c: parts that need their neighbours' elements ----

// For pad, reduce_window and convolution: whether a part along this PERMUTE factor needs only its
// own elements and its neighbours'.
bool mp_lowerer_is_window(const mp_lowerer_t *low, uint32_t factor);
// For the same ops: gives the operands the boxes that the parts need, and sets `emit` if these are
// larger than the parts.
MP_NODISCARD mp_status_t mp_lowerer_widen(const mp_lowerer_t *low, mp_local_op_t *out);
// Changes the boxes of operand `operand` to these intervals in dimension `dim`; both arrays have
// num_partitions numbers.
MP_NODISCARD mp_status_t mp_lowerer_move_boxes(const mp_lowerer_t *low, mp_local_op_t *out,
                                               uint32_t operand, uint32_t dim,
                                               const int64_t *starts, const int64_t *sizes);
// Whether some partition does not hold all of dimension `dim`; NULL boxes are whole.
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
