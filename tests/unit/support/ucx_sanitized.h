// For programs that use UCX: what sanitizers find in UCX itself. Include it once in a program.
#ifndef MINIPOD_TESTS_UNIT_SUPPORT_UCX_SANITIZED_H_
#define MINIPOD_TESTS_UNIT_SUPPORT_UCX_SANITIZED_H_

#include "tests/unit/support/unit.h"

#ifdef UNIT_SANITIZED
// The thread that UCX leaves behind stops AddressSanitizer's search for leaks.
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
  return "detect_leaks=0";
}

// When the process ends, that thread still reads what UCX's destructors take away.
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void) {
  return "race:libucs.so\n";
}
#endif

#endif  // MINIPOD_TESTS_UNIT_SUPPORT_UCX_SANITIZED_H_
