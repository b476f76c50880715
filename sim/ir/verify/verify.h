// The verifier. Every later stage relies on what it has checked.
//
// Checks the constraints of the StableHLO specification (its numbered "Constraints" of each
// operation), of Shardy's operations, and the IR's own rules: single assignment, dominance, regions
// and their terminators, signatures of called functions, no recursion, tensors whose shape is known
// and whose size fits 64 bits.
#ifndef MINIPOD_SIM_IR_VERIFY_VERIFY_H_
#define MINIPOD_SIM_IR_VERIFY_VERIFY_H_

#include "sim/base/status.h"
#include "sim/ir/module.h"

// Checks a module. INVALID_ARGUMENT for a program that breaks a rule; UNIMPLEMENTED for a valid one
// that minipod cannot run (dynamic shapes, quantised types, some Shardy operations). Both name the
// operation and its location. Renumbers the module's values (mp_module_number_values).
MP_NODISCARD mp_status_t mp_module_verify(mp_module_t *module);

#endif  // MINIPOD_SIM_IR_VERIFY_VERIFY_H_
