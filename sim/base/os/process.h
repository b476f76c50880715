// The process that we are: noticing a fork.
//
// After a fork the child has a copy of all our memory but none of our threads, and locks that other
// threads held stay locked for ever. Objects that depend on threads note the generation they were
// made in and refuse service in a later one.
#ifndef MINIPOD_SIM_BASE_OS_PROCESS_H_
#define MINIPOD_SIM_BASE_OS_PROCESS_H_

#include <stdint.h>

// Starts the counting: call before making what must notice a fork. Thread-safe; cheap when
// repeated.
void mp_process_watch_forks(void);
// 0 in the process that called mp_process_watch_forks first, one more in each generation of
// children. One relaxed load.
uint32_t mp_process_generation(void);

#endif  // MINIPOD_SIM_BASE_OS_PROCESS_H_
