// Replaces cuDNN's attention calls, `__cudnn$fmha...`, by ops that compute the same.
//
// JAX lowers `jax.nn.dot_product_attention(implementation="cudnn")` to these calls on GPUs. The
// program of the described GPU keeps them, because it runs one kernel for each; this machine has no
// such kernel.
#ifndef MINIPOD_SIM_PASSES_ATTENTION_ATTENTION_H_
#define MINIPOD_SIM_PASSES_ATTENTION_ATTENTION_H_

#include "sim/base/status.h"
#include "sim/ir/module.h"

// Replaces all such calls of the module, if there are any. Scores and sums are f32 whatever the
// arrays are. UNIMPLEMENTED, with the call's place, for dropout (whose random numbers are cuDNN's
// own), packed sequences, paged keys, FP8 and other masks than NO_MASK, PADDING, CAUSAL and
// PADDING_CAUSAL; INVALID_ARGUMENT for operands and results that do not fit each other.
MP_NODISCARD mp_status_t mp_pass_open_attention(mp_module_t *module, bool *out_is_changed);

#endif  // MINIPOD_SIM_PASSES_ATTENTION_ATTENTION_H_
