// The system calls that may be refused. Each function does what the call of the same name does, and
// tests can make the n-th call of a kind fail (fault.h), as alloc.h does for the heap.
//
// tests/refusals.py checks that no other file calls the originals.
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

// Maps `bytes` of the file from its beginning, or memory, at an address of the system's choice.
// MAP_FAILED and errno on failure.
void *mp_mmap(size_t bytes, int protection, int flags, int file);
// Unmaps what mp_mmap mapped.
void mp_munmap(void *address, size_t bytes);
// For tests: the bytes that were mapped and not unmapped since mp_fault_watch (fault.h).
int64_t mp_mmap_live(void);
// Makes a file in memory. A descriptor, or -1 and errno.
int mp_memfd_create(const char *name, unsigned flags);
// Opens a file that exists. A descriptor, or -1 and errno.
int mp_open(const char *path, int flags);
// Opens a file as a stream. NULL and errno on failure.
FILE *mp_fopen(const char *path, const char *mode);
// Opens a file that others may read as a stream, as "wb" (new, or emptied) or "ab" (appended to).
// What a symbolic link of this name points to is never written: in a folder of many, its owner may
// not be who is writing. NULL and errno on failure, ELOOP for a link.
FILE *mp_fopen_out(const char *path, const char *mode);
// Opens a shared library without adding its symbols to the global scope. NULL on failure (dlerror).
void *mp_dlopen(const char *name);
// What went wrong, by the number of the error, for messages about files. The text is static or
// lives until the thread's next call.
const char *mp_system_text(int error);
// Starts a thread of ours, which takes none of the process's signals: these are for the user's
// threads (Python handles them on its main thread only). `stack` is in bytes; 0: what the system
// has. 0, or the number of the error.
int mp_thread_create(pthread_t *out_thread, size_t stack, void *(*run)(void *context),
                     void *context);

#endif  // MINIPOD_SIM_BASE_OS_SYSTEM_H_
