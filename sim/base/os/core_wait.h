// How long the process's first thread, the one that runs a script, has waited for a core although
// it could have run: because other processes, or other threads of this one, had them all.
#ifndef MINIPOD_SIM_BASE_OS_CORE_WAIT_H_
#define MINIPOD_SIM_BASE_OS_CORE_WAIT_H_

#include <stdint.h>

// Asks the kernel from now on; without this the wait is 0. Thread-safe, cheap when repeated. In a
// forked child it has to be called again, for the child's first thread.
void mp_core_wait_start(void);
// Nanoseconds so far, at the moment `real` of CLOCK_MONOTONIC. The kernel is asked again when its
// last answer to this thread is older than MP_CORE_WAIT_STALE_NS, so this is how much may be
// missing on the first thread, and to others also the wait that it is in just now. 0 where the
// kernel does not say. Never becomes less. Thread-safe, takes no lock.
int64_t mp_core_wait_ns(int64_t real);
enum { MP_CORE_WAIT_STALE_NS = 50000 };

#endif  // MINIPOD_SIM_BASE_OS_CORE_WAIT_H_
