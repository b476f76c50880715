// For programs that use UCX: the thread that it leaves behind stops AddressSanitizer's search for
// leaks at the end of the process. Include it once in a program.
#ifndef MINIPOD_TESTS_UNIT_SUPPORT_NO_LEAK_SEARCH_H_
#define MINIPOD_TESTS_UNIT_SUPPORT_NO_LEAK_SEARCH_H_

#include "tests/unit/support/unit.h"

#ifdef UNIT_SANITIZED
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
  return "detect_leaks=0";
}
#endif

#endif  // MINIPOD_TESTS_UNIT_SUPPORT_NO_LEAK_SEARCH_H_
