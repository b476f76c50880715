#include "sim/ir/verify/module_check.h"
#include "sim/passes/desugar/desugar.h"
#include "sim/passes/passes.h"

mp_status_t mp_passes_prepare(mp_module_t *module) {
  MP_RETURN_IF_ERROR(mp_pass_inline(module));
  mp_module_check(module);
  MP_RETURN_IF_ERROR(mp_pass_desugar(module));
  mp_module_check(module);
  MP_RETURN_IF_ERROR(mp_pass_open_layouts(module));
  MP_RETURN_IF_ERROR(mp_pass_loop_values_early(module));
  MP_RETURN_IF_ERROR(mp_pass_dead_code(module));
  mp_module_check(module);
  return NULL;
}

mp_status_t mp_passes_finish(mp_module_t *module) {
  static mp_status_t (*const passes[])(mp_module_t *) = {
      mp_pass_layouts,     mp_pass_trivial,    mp_pass_loop_values, mp_pass_sort_first,
      mp_pass_scatter_one, mp_pass_transforms, mp_pass_splat,       mp_pass_transposes,
      mp_pass_fold,        mp_pass_dead_code,  // dead ops do not count as uses
      mp_pass_products,    mp_pass_dead_code};
  for (size_t i = 0; i < sizeof(passes) / sizeof(passes[0]); ++i) {
    MP_RETURN_IF_ERROR(passes[i](module));
    mp_module_check_verified(module);
  }
  return NULL;
}
