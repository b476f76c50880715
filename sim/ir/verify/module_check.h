// Checks of modules in debug and sanitizer builds (sim/base/assert.h); in release builds these
// functions do nothing. They abort when something is broken, because that is a mistake of the pass
// or reader that ran before, never of the program.
#ifndef MINIPOD_SIM_IR_VERIFY_MODULE_CHECK_H_
#define MINIPOD_SIM_IR_VERIFY_MODULE_CHECK_H_

#include "sim/ir/module.h"

#ifdef MINIPOD_ASSERTS

// Checks the lists of ops, the links between ops, values, regions and blocks, and that every block
// ends in a terminator.
void mp_module_check(mp_module_t *module);
// Checks the same and that the verifier accepts the module. For stages after the verifier.
void mp_module_check_verified(mp_module_t *module);

#else

// The same functions in release builds.
static inline void mp_module_check(mp_module_t *module) {
  (void)module;
}
static inline void mp_module_check_verified(mp_module_t *module) {
  (void)module;
}

#endif

#endif  // MINIPOD_SIM_IR_VERIFY_MODULE_CHECK_H_
