// Errors as values: every fallible function of minipod returns an mp_status_t.
//
// A status is one pointer. OK is NULL and costs nothing; anything else is a reference-counted,
// immutable object with one of the sixteen canonical codes (those of PJRT_Error_Code) and a
// message. The function that detects an error writes the message; callers add context with
// mp_status_annotate or pass the status on. In builds with assertions it also knows the line of our
// source where it was made (mp_status_origin), which no message has.
//
// Lifetimes, here and in every other header: `_create` and `_retain` give ownership, accessors
// lend, a callee that keeps something retains it, `_release` accepts NULL. Out parameters come
// last, are named `out_…` and are written only on success.
//
// Thread-safety: all functions may be called from any thread; one status may be shared by many.
#ifndef MINIPOD_SIM_BASE_STATUS_H_
#define MINIPOD_SIM_BASE_STATUS_H_

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Name, value. The values are the canonical ones (absl::StatusCode, PJRT_Error_Code).
#define MP_STATUS_CODES(X)  \
  X(OK, 0)                  \
  X(CANCELLED, 1)           \
  X(UNKNOWN, 2)             \
  X(INVALID_ARGUMENT, 3)    \
  X(DEADLINE_EXCEEDED, 4)   \
  X(NOT_FOUND, 5)           \
  X(ALREADY_EXISTS, 6)      \
  X(PERMISSION_DENIED, 7)   \
  X(RESOURCE_EXHAUSTED, 8)  \
  X(FAILED_PRECONDITION, 9) \
  X(ABORTED, 10)            \
  X(OUT_OF_RANGE, 11)       \
  X(UNIMPLEMENTED, 12)      \
  X(INTERNAL, 13)           \
  X(UNAVAILABLE, 14)        \
  X(DATA_LOSS, 15)          \
  X(UNAUTHENTICATED, 16)

typedef enum {
#define MP_STATUS_ENUM(name, value) MP_##name = value,
  MP_STATUS_CODES(MP_STATUS_ENUM)
#undef MP_STATUS_ENUM
} mp_status_code_t;

typedef struct mp_status_s *mp_status_t;

#define MP_NODISCARD          __attribute__((warn_unused_result))
#define MP_PRINTF(text, args) __attribute__((format(printf, text, args)))

// Make an error, which the caller owns. When memory is short, the result is the static
// out-of-memory status instead.
MP_NODISCARD MP_PRINTF(2, 3) mp_status_t
    mp_status_make(mp_status_code_t code, const char *format, ...);
MP_NODISCARD mp_status_t mp_status_vmake(mp_status_code_t code, const char *format, va_list args);

// The static RESOURCE_EXHAUSTED status for a failed host allocation; never allocates.
MP_NODISCARD mp_status_t mp_status_out_of_memory(void);

// Consumes `status` and returns it with "context: " before its message. OK stays OK.
MP_NODISCARD MP_PRINTF(2, 3) mp_status_t
    mp_status_annotate(mp_status_t status, const char *format, ...);

// Adds an owner and returns `status`.
MP_NODISCARD mp_status_t mp_status_retain(mp_status_t status);
// Removes an owner; the last one frees the status.
void mp_status_release(mp_status_t status);

// The code; MP_OK for OK.
mp_status_code_t mp_status_code(mp_status_t status);

// Borrowed, NUL-terminated, lives as long as the status; "" for OK.
const char *mp_status_message(mp_status_t status);

// Where the error was made, in builds with assertions: the file, borrowed for ever, and its line.
// NULL in other builds, for OK and for the static status. What annotates it is not its origin.
const char *mp_status_origin(mp_status_t status, int *out_line);
// Says where a status that was just made, and has one owner, was made; returns it.
MP_NODISCARD mp_status_t mp_status_locate(mp_status_t status, const char *file, int line);
#ifdef MINIPOD_ASSERTS
#define mp_status_make(...)  mp_status_locate(mp_status_make(__VA_ARGS__), __FILE__, __LINE__)
#define mp_status_vmake(...) mp_status_locate(mp_status_vmake(__VA_ARGS__), __FILE__, __LINE__)
#endif

// The code with this number, which another process has sent; MP_UNKNOWN when there is none.
static inline mp_status_code_t mp_status_code_of_number(uint32_t number) {
  return number <= MP_UNAUTHENTICATED ? (mp_status_code_t)number : MP_UNKNOWN;
}

// "INVALID_ARGUMENT" and so on; "UNKNOWN" for a number that is no code.
const char *mp_status_code_name(mp_status_code_t code);

// Drops a status on purpose, where nothing can be done with it (destructors, best effort).
static inline void mp_status_ignore(mp_status_t status) {
  mp_status_release(status);
}

#define MP_CONCAT_(a, b) a##b
#define MP_CONCAT(a, b)  MP_CONCAT_(a, b)

#define MP_RETURN_IF_ERROR(expr)                             \
  do {                                                       \
    mp_status_t mp_status_of_expr = (expr);                  \
    if (mp_status_of_expr != NULL) return mp_status_of_expr; \
  } while (0)

// For functions with one exit: `status` is the variable, `label` the exit.
#define MP_GOTO_IF_ERROR(status, expr, label) \
  do {                                        \
    (status) = (expr);                        \
    if ((status) != NULL) goto label;         \
  } while (0)

// For allocation results.
#define MP_RETURN_IF_NULL(pointer)                           \
  do {                                                       \
    if ((pointer) == NULL) return mp_status_out_of_memory(); \
  } while (0)

#endif  // MINIPOD_SIM_BASE_STATUS_H_
