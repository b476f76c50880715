// The rules of mp_pass_desugar, one function per op, by subject.
//
// A rule turns its op into plain ones in place (rewrite.h), or leaves it as it is when it cannot:
// later layers then refuse it by name. It fails for what is malformed or not supported.
#ifndef MINIPOD_SIM_PASSES_DESUGAR_H_
#define MINIPOD_SIM_PASSES_DESUGAR_H_

#include "sim/base/status.h"
#include "sim/ir/module.h"

// desugar_dynamic.c: ops whose shapes are static after all.
MP_NODISCARD mp_status_t mp_desugar_dynamic_reshape(mp_module_t *module, mp_op_t *op);
MP_NODISCARD mp_status_t mp_desugar_dynamic_broadcast_in_dim(mp_module_t *module, mp_op_t *op);
MP_NODISCARD mp_status_t mp_desugar_dynamic_iota(mp_module_t *module, mp_op_t *op);
MP_NODISCARD mp_status_t mp_desugar_dynamic_pad(mp_module_t *module, mp_op_t *op);
MP_NODISCARD mp_status_t mp_desugar_real_dynamic_slice(mp_module_t *module, mp_op_t *op);
MP_NODISCARD mp_status_t mp_desugar_dynamic_gather(mp_module_t *module, mp_op_t *op);
MP_NODISCARD mp_status_t mp_desugar_dynamic_conv(mp_module_t *module, mp_op_t *op);
MP_NODISCARD mp_status_t mp_desugar_get_dimension_size(mp_module_t *module, mp_op_t *op);

// desugar_einsum.c: products by labels.
MP_NODISCARD mp_status_t mp_desugar_einsum(mp_module_t *module, mp_op_t *op);
MP_NODISCARD mp_status_t mp_desugar_unary_einsum(mp_module_t *module, mp_op_t *op);

// desugar_groups.c: replica groups given as mesh axes become a table.
MP_NODISCARD mp_status_t mp_desugar_mesh_groups(mp_module_t *module, mp_op_t *op);

#endif  // MINIPOD_SIM_PASSES_DESUGAR_H_
