// The system calls that may be refused, behind one door, as the heap is behind alloc.h: each does
// what its namesake does, and tests can make the n-th of a kind fail (fault.h).
//
// tests/refusals.py sees to it that nobody calls the originals.
#ifndef MINIPOD_SIM_BASE_OS_SYSTEM_H_
#define MINIPOD_SIM_BASE_OS_SYSTEM_H_

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "sim/base/status.h"

// The code for an error number: RESOURCE_EXHAUSTED when something has run out (memory, open files),
// else `otherwise`.
mp_status_code_t mp_system_code(int error, mp_status_code_t otherwise);

// At an address of the system's choice, from the file's beginning. MAP_FAILED and errno on failure.
void *mp_mmap(size_t bytes, int protection, int flags, int file);
void mp_munmap(void *address, size_t bytes);
// Bytes that were mapped and not unmapped since a test watches (fault.h).
int64_t mp_mmap_live(void);
// -1 and errno on failure.
int mp_memfd_create(const char *name, unsigned flags);
// -1 and errno on failure. Never creates a file.
int mp_open(const char *path, int flags);
// NULL and errno on failure.
FILE *mp_fopen(const char *path, const char *mode);
// 0, or the number of the error.
int mp_thread_create(pthread_t *out_thread, const pthread_attr_t *attributes,
                     void *(*run)(void *context), void *context);

#endif  // MINIPOD_SIM_BASE_OS_SYSTEM_H_
