// Checks of modules in debug and sanitizer builds (sim/base/assert.h); nothing in release builds.
// What is broken aborts: it is the mistake of the pass or reader before.
#ifndef MINIPOD_SIM_IR_VERIFY_MODULE_CHECK_H_
#define MINIPOD_SIM_IR_VERIFY_MODULE_CHECK_H_

#include "sim/ir/module.h"

#ifdef MINIPOD_ASSERTS

// The lists of ops, the links between ops, values, regions and blocks, and that every block ends in
// a terminator.
void mp_module_check(mp_module_t *module);
// The same, and that the verifier accepts it: for what comes after the verifier has accepted the
// program.
void mp_module_check_verified(mp_module_t *module);

#else

static inline void mp_module_check(mp_module_t *module) {
  (void)module;
}
static inline void mp_module_check_verified(mp_module_t *module) {
  (void)module;
}

#endif

#endif  // MINIPOD_SIM_IR_VERIFY_MODULE_CHECK_H_
