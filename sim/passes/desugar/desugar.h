// Desugaring: the pass that leaves only plain ops.
//
// Like all passes (sim/passes/passes.h) it works in place on a verified module, allocates in its
// arena, and leaves it verifiable. Not thread-safe on one module.
#ifndef MINIPOD_SIM_PASSES_DESUGAR_DESUGAR_H_
#define MINIPOD_SIM_PASSES_DESUGAR_DESUGAR_H_

#include "sim/base/status.h"
#include "sim/ir/module.h"

// Replaces syntactic sugar by plain ops: broadcast, dot, create_token, cross-replica-sum, if,
// torch_index_select, einsum, replica groups as mesh axes, dynamic ops whose shapes are static
// after all; tuples and async pairs (mp_pass_flatten). Unusual or malformed ops are refused here (a
// label twice in an operand of einsum), or left unchanged and refused by name later (a dynamic op
// whose shape is not known).
MP_NODISCARD mp_status_t mp_pass_desugar(mp_module_t *module);

// Replaces values of tuple and future type by the values in them, also in while, case, and main's
// parameters and results; async regions run where they start. Part of desugaring. `main` must be
// the only function.
MP_NODISCARD mp_status_t mp_pass_flatten(mp_module_t *module);

#endif  // MINIPOD_SIM_PASSES_DESUGAR_DESUGAR_H_
