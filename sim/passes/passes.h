// Passes: rewrites of a verified module that keep its meaning. Each is one function, one file.
//
// All work in place on a module whose functions were verified, allocate in its arena, and leave it
// verifiable. Not thread-safe on one module.
#ifndef MINIPOD_SIM_PASSES_PASSES_H_
#define MINIPOD_SIM_PASSES_PASSES_H_

#include "sim/base/status.h"
#include "sim/ir/module.h"

// The sequence that every program goes through before partitioning: inline, desugar, dead code.
MP_NODISCARD mp_status_t mp_passes_prepare(mp_module_t *module);
// The sequence after partitioning, before planning.
MP_NODISCARD mp_status_t mp_passes_finish(mp_module_t *module);

// Replaces calls, composites (by their decomposition) and sdy.named_computation by the bodies, so
// that `main` is the only function left. RESOURCE_EXHAUSTED when the result would be absurdly large
// (functions that call each other twice, thirty levels deep).
MP_NODISCARD mp_status_t mp_pass_inline(mp_module_t *module);

// Ops that are sugar become their plain forms: broadcast, dot, create_token, cross-replica-sum, if,
// tuples, async pairs, torch_index_select, einsum, dynamic ops whose shapes are static after all.
MP_NODISCARD mp_status_t mp_pass_desugar(mp_module_t *module);

// Removes ops without effect whose results nobody uses.
MP_NODISCARD mp_status_t mp_pass_dead_code(mp_module_t *module);

#endif  // MINIPOD_SIM_PASSES_PASSES_H_
