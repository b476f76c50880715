// The longer rules of mp_pass_desugar, one function per op.
//
// A rule replaces its op by plain ones in place (sim/passes/rewrite/), or leaves it unchanged if it
// cannot; later layers then refuse the op by name. A rule fails for malformed or unsupported ops.
// It may allocate in the module's arena.
#ifndef MINIPOD_SIM_PASSES_DESUGAR_DESUGAR_IMPL_H_
#define MINIPOD_SIM_PASSES_DESUGAR_DESUGAR_IMPL_H_

#include "sim/base/status.h"
#include "sim/ir/module.h"

// desugar_dynamic.c: dynamic ops whose shapes are static, because the operands that give the shape
// are constants or repeat the result's type.
MP_NODISCARD mp_status_t mp_desugar_dynamic_reshape(mp_module_t *module, mp_op_t *op);
MP_NODISCARD mp_status_t mp_desugar_dynamic_broadcast_in_dim(mp_module_t *module, mp_op_t *op);
MP_NODISCARD mp_status_t mp_desugar_dynamic_iota(mp_module_t *module, mp_op_t *op);
MP_NODISCARD mp_status_t mp_desugar_dynamic_pad(mp_module_t *module, mp_op_t *op);
MP_NODISCARD mp_status_t mp_desugar_real_dynamic_slice(mp_module_t *module, mp_op_t *op);
MP_NODISCARD mp_status_t mp_desugar_dynamic_gather(mp_module_t *module, mp_op_t *op);
MP_NODISCARD mp_status_t mp_desugar_dynamic_conv(mp_module_t *module, mp_op_t *op);
MP_NODISCARD mp_status_t mp_desugar_get_dimension_size(mp_module_t *module, mp_op_t *op);

// desugar_einsum.c: einsum.
MP_NODISCARD mp_status_t mp_desugar_einsum(mp_module_t *module, mp_op_t *op);
MP_NODISCARD mp_status_t mp_desugar_unary_einsum(mp_module_t *module, mp_op_t *op);

// desugar_functions.c: calls of functions of one number. Other calls stay.
MP_NODISCARD mp_status_t mp_desugar_function_call(mp_module_t *module, mp_op_t *op);

// desugar_buffers.c: values that stand for memory become arrays, throughout the module. Then: calls
// that make such memory, or only say where it lies; other calls stay.
MP_NODISCARD mp_status_t mp_desugar_buffers(mp_module_t *module);
MP_NODISCARD mp_status_t mp_desugar_buffer_call(mp_module_t *module, mp_op_t *op, bool *out_is_one);

// desugar_products.c: the element types of a dot, convolution or einsum, which may be of different
// classes. `*out_op` gets the op, which is `op` itself unless `op` became the conversion of the
// result.
MP_NODISCARD mp_status_t mp_desugar_product(mp_module_t *module, mp_op_t *op, mp_op_t **out_op);

// desugar_groups.c: replica groups that are given as axes of a mesh become a table of ids.
MP_NODISCARD mp_status_t mp_desugar_mesh_groups(mp_module_t *module, mp_op_t *op);

#endif  // MINIPOD_SIM_PASSES_DESUGAR_DESUGAR_IMPL_H_
