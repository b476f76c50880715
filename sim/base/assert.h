// Assertions: conditions that hold for every input if our own code is right.
//
// They are on where MINIPOD_ASSERTS is defined (CMake: debug and sanitizer builds, and the fuzzers;
// the option MINIPOD_ASSERTS switches them by hand). When a condition does not hold, the assertion
// prints where it stands and what it says, and aborts. In release builds nothing is evaluated, but
// everything is still compiled, so that an assertion stays valid code and what only assertions use
// does not count as unused.
//
// Assertions are never for input: what a program, a user or another process can get wrong is
// reported as a status.
#ifndef MINIPOD_SIM_BASE_ASSERT_H_
#define MINIPOD_SIM_BASE_ASSERT_H_

#include "sim/base/status.h"

// Prints "file:line: function: what: words" as one line to stderr and aborts. `format` may be NULL.
_Noreturn MP_PRINTF(5, 6) void mp_assert_fail(const char *file, int line, const char *function,
                                              const char *what, const char *format, ...);

#ifdef MINIPOD_ASSERTS
#define MP_ASSERT(condition) \
  ((condition) ? (void)0     \
               : mp_assert_fail(__FILE__, __LINE__, __func__, "MP_ASSERT(" #condition ")", NULL))
// With words about the values: MP_ASSERT_MSG(i < n, "%u of %u", i, n).
#define MP_ASSERT_MSG(condition, ...) \
  ((condition)                        \
       ? (void)0                      \
       : mp_assert_fail(__FILE__, __LINE__, __func__, "MP_ASSERT(" #condition ")", __VA_ARGS__))
#else
#define MP_ASSERT(condition) ((void)sizeof((condition) ? 1 : 0))
#define MP_ASSERT_MSG(condition, ...) \
  ((void)sizeof((condition) ? 1 : (mp_assert_fail("", 0, "", "", __VA_ARGS__), 0)))
#endif

// For places that no execution comes to: the default of a switch over all values.
#define MP_ASSERT_NOT_REACHED() MP_ASSERT(0 && "this place is never reached")

#endif  // MINIPOD_SIM_BASE_ASSERT_H_
