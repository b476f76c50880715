// Files that are compressed as they are written, by the zlib that is there when the program runs:
// nothing else of minipod needs it.
#ifndef MINIPOD_SIM_BASE_OS_GZIP_H_
#define MINIPOD_SIM_BASE_OS_GZIP_H_

#include <stdbool.h>
#include <stdio.h>

#include "sim/base/status.h"

// Whether a file of this name is compressed: it ends in ".gz".
bool mp_gzip_is_named(const char *path);
// A stream whose bytes go to `file` (consumed, also on failure), compressed. The last flush before
// a process dies can still be read. UNAVAILABLE without zlib, RESOURCE_EXHAUSTED when memory is
// short.
MP_NODISCARD mp_status_t mp_gzip_open(FILE *file, FILE **out_stream);

#endif  // MINIPOD_SIM_BASE_OS_GZIP_H_
