#include "sim/passes/passes.h"

mp_status_t mp_pass_desugar(mp_module_t *module) {
  (void)module;
  return NULL;
}
