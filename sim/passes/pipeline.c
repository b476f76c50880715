#include "sim/passes/passes.h"

mp_status_t mp_passes_prepare(mp_module_t *module) {
  MP_RETURN_IF_ERROR(mp_pass_inline(module));
  MP_RETURN_IF_ERROR(mp_pass_desugar(module));
  return mp_pass_dead_code(module);
}

mp_status_t mp_passes_finish(mp_module_t *module) {
  MP_RETURN_IF_ERROR(mp_pass_layouts(module));
  MP_RETURN_IF_ERROR(mp_pass_splat(module));
  MP_RETURN_IF_ERROR(mp_pass_fold(module));
  return mp_pass_dead_code(module);
}
