// Layouts of foreign functions' arrays.
#ifndef MINIPOD_SIM_PLAN_CALL_LAYOUTS_H_
#define MINIPOD_SIM_PLAN_CALL_LAYOUTS_H_

#include "sim/base/status.h"
#include "sim/ir/module.h"

// Gives every call of a foreign function operands and results whose row-major arrays lie in memory
// as the call's operand_layouts and result_layouts say, with transposes around the call. The
// attributes stay: they tell which dimension of the program each dimension is. Runs on per-device
// types, once.
MP_NODISCARD mp_status_t mp_plan_lay_out_calls(mp_module_t *module);

#endif  // MINIPOD_SIM_PLAN_CALL_LAYOUTS_H_
