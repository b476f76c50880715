// Records launches for the running profiler; pjrt/plugin/ registers the functions as observers.
#ifndef MINIPOD_PJRT_EXTENSIONS_EXT_PROFILER_H_
#define MINIPOD_PJRT_EXTENSIONS_EXT_PROFILER_H_

#include "pjrt/pjrt_objects.h"

// The time before a launch, 0 when no profiler runs; and afterwards, unless that was 0, a record of
// the program's op names and of the end event of each device. As in mp_pjrt_observer_t
// (pjrt/pjrt_observer.h).
int64_t mp_pjrt_profiler_begin(void);
void mp_pjrt_profiler_note(int64_t begin, const PJRT_Executable *executable,
                           const uint32_t *logical, mp_event_t *const *done, size_t num_devices);

#endif  // MINIPOD_PJRT_EXTENSIONS_EXT_PROFILER_H_
