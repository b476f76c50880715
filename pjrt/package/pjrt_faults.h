// Functions that the Python package calls in the library: faults while the clients of the process
// live (sim/model/faults).
#ifndef MINIPOD_PJRT_PACKAGE_PJRT_FAULTS_H_
#define MINIPOD_PJRT_PACKAGE_PJRT_FAULTS_H_

#include "pjrt/package/pjrt_foreign.h"

// Adds the faults of a text (a list in YAML, NUL-terminated) to every client of the process.
// Returns NULL, or why it failed: a text that the calling thread's next call overwrites. A client
// that does not take one of the faults takes none.
MP_EXPORT const char *minipod_inject(const char *text);
// Takes all faults away, from every client of the process.
MP_EXPORT const char *minipod_heal(void);

#endif  // MINIPOD_PJRT_PACKAGE_PJRT_FAULTS_H_
