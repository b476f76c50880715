// cmocka with the headers that it needs before it, in its order.
#ifndef MINIPOD_TESTS_UNIT_SUPPORT_UNIT_H_
#define MINIPOD_TESTS_UNIT_SUPPORT_UNIT_H_

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include "sim/base/status.h"

// Defined where a sanitizer makes tests several times slower. gcc and clang say it differently.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UNIT_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define UNIT_SANITIZED
#endif
#endif

// The status must be OK; prints the message and releases it otherwise.
#define assert_ok(expr)                                                                 \
  do {                                                                                  \
    mp_status_t status_of_expr = (expr);                                                \
    if (status_of_expr != NULL) print_error("%s\n", mp_status_message(status_of_expr)); \
    assert_null(status_of_expr);                                                        \
  } while (0)

// The status must have this code and hold `text` in its message; releases it.
#define assert_status(expr, wanted_code, text)                                 \
  do {                                                                         \
    mp_status_t status_of_expr = (expr);                                       \
    assert_int_equal(mp_status_code(status_of_expr), wanted_code);             \
    if (strstr(mp_status_message(status_of_expr), text) == NULL)               \
      fail_msg("'%s' is not in: %s", text, mp_status_message(status_of_expr)); \
    mp_status_release(status_of_expr);                                         \
  } while (0)

#endif  // MINIPOD_TESTS_UNIT_SUPPORT_UNIT_H_
