#include "sim/ir/verify/module_check.h"
#include "sim/passes/desugar/desugar.h"
#include "sim/passes/passes.h"

mp_status_t mp_passes_prepare(mp_module_t *module) {
  MP_RETURN_IF_ERROR(mp_pass_inline(module));
  mp_module_check(module);
  MP_RETURN_IF_ERROR(mp_pass_desugar(module));
  mp_module_check(module);
  MP_RETURN_IF_ERROR(mp_pass_open_layouts(module));
  MP_RETURN_IF_ERROR(mp_pass_dead_code(module));
  mp_module_check(module);
  return NULL;
}

mp_status_t mp_passes_finish(mp_module_t *module) {
  MP_RETURN_IF_ERROR(mp_pass_layouts(module));
  mp_module_check_verified(module);
  MP_RETURN_IF_ERROR(mp_pass_trivial(module));
  mp_module_check_verified(module);
  MP_RETURN_IF_ERROR(mp_pass_loop_values(module));
  mp_module_check_verified(module);
  MP_RETURN_IF_ERROR(mp_pass_sort_first(module));
  mp_module_check_verified(module);
  MP_RETURN_IF_ERROR(mp_pass_scatter_one(module));
  mp_module_check_verified(module);
  MP_RETURN_IF_ERROR(mp_pass_transforms(module));
  mp_module_check_verified(module);
  MP_RETURN_IF_ERROR(mp_pass_splat(module));
  mp_module_check_verified(module);
  MP_RETURN_IF_ERROR(mp_pass_transposes(module));
  mp_module_check_verified(module);
  MP_RETURN_IF_ERROR(mp_pass_fold(module));
  mp_module_check_verified(module);
  MP_RETURN_IF_ERROR(mp_pass_dead_code(module));  // what is dead uses nothing
  MP_RETURN_IF_ERROR(mp_pass_products(module));
  mp_module_check_verified(module);
  MP_RETURN_IF_ERROR(mp_pass_dead_code(module));
  mp_module_check_verified(module);
  return NULL;
}
