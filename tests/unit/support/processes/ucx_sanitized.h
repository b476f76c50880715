// For programs that use UCX: whether it is here, and what sanitizers find in UCX itself. Include it
// once in a program.
#ifndef MINIPOD_TESTS_UNIT_SUPPORT_PROCESSES_UCX_SANITIZED_H_
#define MINIPOD_TESTS_UNIT_SUPPORT_PROCESSES_UCX_SANITIZED_H_

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collectives/transport/ucx/ucx_library.h"
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

// Whether UCX is here; it then connects simulated hosts over the loopback device. Prints what is
// missing.
static inline bool ucx_is_here(void) {
  setenv("UCX_NET_DEVICES", "lo", 1);
  const pid_t child = fork();  // what is opened stays, and the processes to come are to open it
  if (child == 0) {
    const mp_ucx_library_t *library = NULL;
    _exit(mp_ucx_library_open(&library) == NULL ? 0 : 1);
  }
  int end = -1;
  waitpid(child, &end, 0);
  if (end != 0) print_message("skipped: UCX is not here (Debian: apt install libucx0)\n");
  return end == 0;
}

#endif  // MINIPOD_TESTS_UNIT_SUPPORT_PROCESSES_UCX_SANITIZED_H_
