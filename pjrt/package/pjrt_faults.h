// Functions that the Python package calls in the library: injects faults into the live clients of
// the process (sim/model/faults).
#ifndef MINIPOD_PJRT_PACKAGE_PJRT_FAULTS_H_
#define MINIPOD_PJRT_PACKAGE_PJRT_FAULTS_H_

#include "pjrt/package/pjrt_foreign.h"

// Adds the faults of a text (a list in YAML, NUL-terminated) to every client of the process.
// Returns NULL, or an error message, which the calling thread's next call overwrites. A client that
// refuses one of the faults gets none of them. If the newest client refuses, no client gets any; if
// an older one does, which may be another pod, that is no failure.
MP_EXPORT const char *minipod_inject(const char *text);
// Removes all faults from every client of the process.
MP_EXPORT const char *minipod_heal(void);

#endif  // MINIPOD_PJRT_PACKAGE_PJRT_FAULTS_H_
