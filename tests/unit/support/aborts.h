// Tests that must die: what breaks an assertion runs in a child process, whose last words and end
// are looked at. Only where assertions are on (sim/base/assert.h); elsewhere such tests are
// skipped.
#ifndef MINIPOD_TESTS_UNIT_SUPPORT_ABORTS_H_
#define MINIPOD_TESTS_UNIT_SUPPORT_ABORTS_H_

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/support/unit.h"

enum { ABORTS_MAX_TEXT = 16 << 10 };

// Runs `function(context)` in a child; returns how it ended (wait status) and what it wrote to
// stderr. The caller's process must have no threads of its own.
static inline int aborts_run(void (*function)(void *context), void *context,
                             char out_text[ABORTS_MAX_TEXT]) {
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  fflush(NULL);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    const struct rlimit no_core = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &no_core);
    signal(SIGABRT, SIG_DFL);  // cmocka would take it for its own test's
    dup2(ends[1], STDERR_FILENO);
    function(context);
    _exit(0);
  }
  close(ends[1]);
  size_t size = 0;
  for (ssize_t got; size < ABORTS_MAX_TEXT - 1 &&
                    (got = read(ends[0], out_text + size, ABORTS_MAX_TEXT - 1 - size)) > 0;) {
    size += (size_t)got;
  }
  out_text[size] = '\0';
  close(ends[0]);
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  return status;
}

// The function must abort and say `text`.
static inline void expect_abort_with(void (*function)(void *context), void *context,
                                     const char *text) {
#ifndef MINIPOD_ASSERTS
  (void)function, (void)context, (void)text;
  skip();
#endif
  static char said[ABORTS_MAX_TEXT];
  const int status = aborts_run(function, context, said);
  if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT) {
    fail_msg("expected an abort with '%s', got status %#x: %s", text, (unsigned)status, said);
  }
  if (strstr(said, text) == NULL) fail_msg("'%s' is not in: %s", text, said);
}

// It must come to its end.
static inline void expect_no_abort(void (*function)(void *context), void *context) {
  static char said[ABORTS_MAX_TEXT];
  const int status = aborts_run(function, context, said);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    fail_msg("expected a good end, got status %#x: %s", (unsigned)status, said);
  }
}

#endif  // MINIPOD_TESTS_UNIT_SUPPORT_ABORTS_H_
