// Functions that the Python package calls in the library: the virtual times of the process's
// clients (sim/model/report).
#ifndef MINIPOD_PJRT_PACKAGE_PJRT_TIME_H_
#define MINIPOD_PJRT_PACKAGE_PJRT_TIME_H_

#include "pjrt/package/pjrt_foreign.h"

// The tables of all clients, as a text that the caller frees by minipod_time_free. Returns NULL, or
// why there is none: a text that the calling thread's next call overwrites.
MP_EXPORT const char *minipod_time_report(char **out_text);
MP_EXPORT void minipod_time_free(char *text);
// The virtual time in seconds, of the client that has come furthest; negative: none keeps it.
MP_EXPORT double minipod_virtual_time(void);

#endif  // MINIPOD_PJRT_PACKAGE_PJRT_TIME_H_
