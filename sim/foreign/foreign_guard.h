// A barrier for C++ exceptions. Foreign functions are mostly C++, and their exceptions must not
// pass through minipod's frames: C code there would not clean up, and a caller far up may catch the
// exception.
#ifndef MINIPOD_SIM_FOREIGN_FOREIGN_GUARD_H_
#define MINIPOD_SIM_FOREIGN_FOREIGN_GUARD_H_

#include "sim/base/status.h"

// Calls call(argument). UNKNOWN, with the exception's own message if it has one, when the call
// throws instead of returning. (On machines other than x86-64 there is no barrier.)
MP_NODISCARD mp_status_t mp_foreign_guard(void (*call)(void *argument), void *argument);

#endif  // MINIPOD_SIM_FOREIGN_FOREIGN_GUARD_H_
