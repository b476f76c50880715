// The longer rules of mp_pass_desugar, one function per op.
//
// A rule turns its op into plain ones in place (sim/passes/rewrite/), or leaves the op as it is
// when it cannot; later layers then refuse the op by name. A rule fails for what is malformed or
// not supported. It may allocate in the module's arena.
#ifndef MINIPOD_SIM_PASSES_DESUGAR_DESUGAR_IMPL_H_
#define MINIPOD_SIM_PASSES_DESUGAR_DESUGAR_IMPL_H_

#include "sim/base/status.h"
#include "sim/ir/module.h"

// desugar_dynamic.c: dynamic ops whose shapes are static, because the operands that give the shape
// are constants or say only what the result's type says.
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

// desugar_functions.c: calls that stand for functions of one number. Calls of others stay.
MP_NODISCARD mp_status_t mp_desugar_function_call(mp_module_t *module, mp_op_t *op);

// desugar_products.c: the element types of a product, which may be of different classes. `*out_op`
// gets the product, which is `op` itself unless `op` became the conversion of the product's result.
MP_NODISCARD mp_status_t mp_desugar_product(mp_module_t *module, mp_op_t *op, mp_op_t **out_op);

// desugar_groups.c: replica groups that are given as axes of a mesh become a table of ids.
MP_NODISCARD mp_status_t mp_desugar_mesh_groups(mp_module_t *module, mp_op_t *op);

#endif  // MINIPOD_SIM_PASSES_DESUGAR_DESUGAR_IMPL_H_
