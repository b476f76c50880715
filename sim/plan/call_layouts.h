// Layouts of foreign functions' arrays.
#ifndef MINIPOD_SIM_PLAN_CALL_LAYOUTS_H_
#define MINIPOD_SIM_PLAN_CALL_LAYOUTS_H_

#include "sim/base/status.h"
#include "sim/ir/module.h"

// Adds transposes around every call of a foreign function, so that its row-major operands and
// results have the memory layout that the call's operand_layouts and result_layouts require. The
// attributes stay: they map each dimension to the program's dimension. Runs on per-device types,
// once.
MP_NODISCARD mp_status_t mp_plan_lay_out_calls(mp_module_t *module);

#endif  // MINIPOD_SIM_PLAN_CALL_LAYOUTS_H_
