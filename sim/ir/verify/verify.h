// The verifier: what it accepts, every later stage trusts.
//
// Checks the constraints of the StableHLO specification (its numbered "Constraints" of each
// operation), of Shardy's operations, and the IR's own rules: single assignment, dominance, regions
// and their terminators, signatures of called functions, no recursion, tensors whose shape is known
// and whose size fits 64 bits.
#ifndef MINIPOD_SIM_IR_VERIFY_VERIFY_H_
#define MINIPOD_SIM_IR_VERIFY_VERIFY_H_

#include "sim/base/status.h"
#include "sim/ir/module.h"

// INVALID_ARGUMENT for what breaks a rule; UNIMPLEMENTED for valid programs that minipod has no
// meaning for (dynamic shapes, quantised types, some Shardy operations). Both name operation and
// location. Renumbers the module's values.
MP_NODISCARD mp_status_t mp_module_verify(mp_module_t *module);

#endif  // MINIPOD_SIM_IR_VERIFY_VERIFY_H_
